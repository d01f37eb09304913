/* A post of chunks at work, at any door of streams: its body is read, on the loop where that takes
 * no time, else by a worker; it waits in line (ingest/chunks_door.h); its chunks are submitted.
 * Once they are, the submission is carried through, and the call, to which everything belongs,
 * stays until then. Then, or where it cannot go on, it is answered, if its client is still there.
 *
 * A door has a kind of call, whose `release` is streams_post_release. */
#ifndef API_STREAM_POST_H
#define API_STREAM_POST_H

#include "api/call.h"
#include "ingest/chunks.h"
#include "ingest/chunks_door.h"

struct streams_post;

struct streams_post_door {
	/* Reads the body into the batch: on a worker, unless `is_quick` says that it takes no time.
	 * An error, with a sentence, is one of the whole body. */
	int (*read)(struct streams_post *post);
	bool (*is_quick)(struct slice body); /* NULL: it never is */
	/* Counts what became of the chunks, also when nobody waits for the answer any more. May be
	 * NULL. */
	void (*count)(const struct streams_post *post);
	void (*answer)(struct streams_post *post);
};

struct streams_post {
	struct api_call call;
	const struct streams_post_door *door;
	struct slice tenant; /* in the call's arena */
	struct chunks_batch batch;
	int err; /* of the whole body */
	struct errbuf error;

	/* private */
	struct stream_submission submission;
	struct chunks_post post;
	bool at_work; /* it has gone through the door, and not left */
	struct task task;
};

enum { STREAMS_POST_ARENA_MAX_BYTES = 4 << 10 }; /* of the call: the tenant */

/* Takes the request's body. */
void streams_post_begin(struct http_request *request, const struct api_call_kind *kind,
			const struct streams_post_door *door, struct slice tenant);
void streams_post_release(struct api_call *call);
/* For the kind's `late`. */
void streams_post_late(struct api_call *call);

/* Says why a chunk was not taken, in a sentence; says nothing of one that was. */
void streams_post_say_outcome(const struct streams_post *post, const struct stream_chunk *chunk,
			      struct buf *out);
/* Whether there was no room to store one of them. */
bool streams_post_is_full(const struct streams_post *post);

#endif
