/* Private to marks/redis/: the driver, and what marking.c, listing.c and reading.c share. */
#ifndef MARKS_REDIS_PRIVATE_H
#define MARKS_REDIS_PRIVATE_H

#include "marks/driver.h"
#include "marks/redis/client.h"
#include "marks/redis/epoch.h"
#include "marks/redis/redis.h"

enum {
	KEY_MAX_BYTES = 64,
	MEMBERS_OF_COMMAND = 1000, /* so many at once keep nobody waiting for long */
};

struct redis_marks {
	struct marks base;
	struct marks_redis_options options;
	struct redis_client *client;
	struct redis_epoch epoch;
	char epoch_key[KEY_MAX_BYTES];
	_Atomic int64_t late_after_ms; /* options.late_after_ms, as it is now */
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

/* An answer of SCAN or SSCAN: where to go on, 0: it is over; and an array of texts. */
bool redis_reply_is_scan(const struct redisReply *reply, uint64_t *cursor);

/* ---- marking.c, listing.c, reading.c --------------------------------------------------------- */

int redis_mark(struct marks *of_all, const struct marks_marking *marking);
int redis_list(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms);
int redis_read(struct marks_reading *reading, struct task_queue *queue, int64_t now_ms);
int redis_finish(struct marks_reading *reading, struct task_queue *queue);
void redis_reading_release(struct marks_reading *reading);

#endif
