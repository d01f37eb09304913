/* Private to rollup/redis/: the track, and what marking.c, listing.c and reading.c share. */
#ifndef MARKS_REDIS_PRIVATE_H
#define MARKS_REDIS_PRIVATE_H

#include "marks/redis/client.h"
#include "marks/redis/epoch.h"
#include "marks/redis/redis.h"
#include "marks/driver.h"

enum {
	KEY_MAX_BYTES = 64,
	MEMBERS_OF_COMMAND = 1000, /* so many at once keep nobody waiting for long */
};

struct redis_marks {
	struct marks base;
	struct marks_redis_options options;
	struct marks *of_store;
	struct redis_client *client;
	struct redis_epoch epoch;
	char epoch_key[KEY_MAX_BYTES];
	struct task restored;
	_Atomic bool restored_posted;
	_Atomic uint64_t restored_losses;
	_Atomic uint64_t stamps; /* the next one, beginning with one drawn by lot */
};

static inline struct redis_marks *redis_marks_of(const struct marks *marks)
{
	return CONTAINER_OF(marks, struct redis_marks, base);
}

/* `pending:3:1598263200`. */
struct slice redis_key(const struct redis_marks *marks, const char *kind, struct mark_slot slot,
		       char to[KEY_MAX_BYTES]);

/* ---- marking.c, listing.c, reading.c --------------------------------------------------------- */

struct marks_marking *redis_marking_new(const struct marks_marking *begun);
void redis_marking_free(struct marks_marking *marking);
int redis_marking_begin(struct marks_marking *marking, int64_t now_ms,
			const struct mark_touch *touches, size_t count);

struct marks_listing *redis_listing_new(struct marks *marks);
void redis_listing_free(struct marks_listing *listing);
int redis_listing_begin(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms);
int redis_listing_next(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms);

struct marks_reading *redis_reading_new(struct marks *marks);
void redis_reading_free(struct marks_reading *reading);
int redis_reading_begin(struct marks_reading *reading, struct task_queue *queue,
			const struct mark_slot *slots, size_t count, int64_t now_ms);
int redis_reading_next(struct marks_reading *reading, struct task_queue *queue, int64_t now_ms);
int redis_reading_finish(struct marks_reading *reading, struct task_queue *queue);

#endif
