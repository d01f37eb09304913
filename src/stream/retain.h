/* Retention and deletion: what is old goes, and what somebody has deleted. Done by the stream's
 * owner, in a job.
 *
 * Both are one thing: an offset below which nothing is shown any more (struct stream_kept). For
 * retention it is the end of the last block, of those one behind the other from the beginning, all
 * of whose chunks were received too long ago, and before which no younger byte is held; for a
 * deletion it is the end of all that was held. A pass removes what was below the offset that the
 * pass before had noted, so that whoever is reading it then can end; then it notes the new one.
 * What comes again from below it is not taken again, if its sender says the incarnation; else it
 * begins another one (collector.h).
 *
 * A stream of which nothing is left is forgotten after a day. */
#ifndef STREAM_RETAIN_H
#define STREAM_RETAIN_H

#include "stream/known.h"

struct stream_retain_rules {
	int64_t before_ms;    /* what was received before then goes; INT64_MIN: nothing */
	int64_t until_ms;     /* of the owner's lease, by the wall clock */
	int64_t write_max_ms; /* how long a write may take */
};

struct stream_retained {
	bool raised;    /* the offset is another one: what is known elsewhere is to be read anew */
	bool waits;     /* chunks that wait are below it */
	bool forgotten; /* the stream is no longer there */
};

/* ERR_CANCELLED: the job is to end, or the lease ends too soon; ERR_DAMAGED; or the store's error,
 * with a sentence. */
int stream_retain(const struct stream_site *site, struct task_queue *queue,
		  const struct stream_id *id, const struct stream_retain_rules *rules,
		  struct stream_retained *retained, struct errbuf *e) MUST_CHECK;

/* Notes that all that is held of a stream now is to go. *bytes: how many they are. ERR_NOT_FOUND;
 * ERR_DAMAGED; or the store's error, with a sentence. */
int stream_delete(const struct stream_site *site, struct task_queue *queue,
		  const struct stream_id *id, bool dry_run, uint64_t *bytes,
		  struct errbuf *e) MUST_CHECK;

#endif
