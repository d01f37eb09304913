/* Private to rollup/redis/: the track, and what marking.c, listing.c and reading.c share. */
#ifndef ROLLUP_REDIS_PRIVATE_H
#define ROLLUP_REDIS_PRIVATE_H

#include "marks/redis/client.h"
#include "marks/redis/epoch.h"
#include "marks/redis/redis.h"
#include "marks/driver.h"

enum {
	KEY_MAX_BYTES = 64,
	MEMBERS_OF_COMMAND = 1000, /* so many at once keep nobody waiting for long */
};

struct redis_track {
	struct rollup_track base;
	struct rollup_track_redis_options options;
	struct rollup_track *of_store;
	struct redis_client *client;
	struct redis_epoch epoch;
	char epoch_key[KEY_MAX_BYTES];
	struct task restored;
	_Atomic bool restored_posted;
	_Atomic uint64_t restored_losses;
	_Atomic uint64_t stamps; /* the next one, beginning with one drawn by lot */
};

static inline struct redis_track *redis_track_of(const struct rollup_track *track)
{
	return CONTAINER_OF(track, struct redis_track, base);
}

/* `pending:3:1598263200`. */
struct slice redis_key(const struct redis_track *track, const char *kind, struct rollup_slot slot,
		       char to[KEY_MAX_BYTES]);

/* ---- marking.c, listing.c, reading.c --------------------------------------------------------- */

struct rollup_marking *redis_marking_new(const struct rollup_marking *begun);
void redis_marking_free(struct rollup_marking *marking);
int redis_marking_begin(struct rollup_marking *marking, int64_t now_ms,
			const struct rollup_touch *touches, size_t count);

struct rollup_listing *redis_listing_new(struct rollup_track *track);
void redis_listing_free(struct rollup_listing *listing);
int redis_listing_begin(struct rollup_listing *listing, struct task_queue *queue, int64_t now_ms);
int redis_listing_next(struct rollup_listing *listing, struct task_queue *queue, int64_t now_ms);

struct rollup_reading *redis_reading_new(struct rollup_track *track);
void redis_reading_free(struct rollup_reading *reading);
int redis_reading_begin(struct rollup_reading *reading, struct task_queue *queue,
			const struct rollup_slot *slots, size_t count, int64_t now_ms);
int redis_reading_next(struct rollup_reading *reading, struct task_queue *queue, int64_t now_ms);
int redis_reading_finish(struct rollup_reading *reading, struct task_queue *queue);

#endif
