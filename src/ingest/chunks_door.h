/* The line before the collector of chunks: posts wait, in their order, while others have as many
 * bytes as may be at work at once (backpressure.h). One that has waited for too long is turned
 * away, and so are new ones while the first has waited for half of that.
 *
 * One thread: the loop's. */
#ifndef INGEST_CHUNKS_DOOR_H
#define INGEST_CHUNKS_DOOR_H

#include "ingest/backpressure.h"

struct chunks_door {
	struct backpressure line;
};

/* A post. Zeroed before it enters. */
struct chunks_post {
	struct backpressure_sender sender;
	struct backpressure *line;
	size_t bytes;
	/* It may go on (0), has waited for too long (ERR_BUSY), or was seen to be gone
	 * (ERR_CANCELLED): it has left then, unless it may go on. */
	void (*go)(struct chunks_post *post, int err);
	bool (*is_gone)(const struct chunks_post *post);
};

void chunks_door_init(struct chunks_door *door, struct clock *clock, size_t bytes_max,
		      int64_t wait_max_ms);
/* 0: it may go on now; ERR_RETRY: it waits, and `go` comes; ERR_BUSY: it is turned away. */
int chunks_door_enter(struct chunks_door *door, struct chunks_post *post, size_t bytes) MUST_CHECK;
/* Of one that was told to go on. */
void chunks_door_leave(struct chunks_door *door, struct chunks_post *post);
void chunks_door_tick(struct chunks_door *door); /* several times a second */

#endif
