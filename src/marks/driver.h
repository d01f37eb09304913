/* Private to the drivers of marks: what each driver is, and what marks.c keeps for it. What a
 * driver makes begins with struct marks. */
#ifndef MARKS_DRIVER_H
#define MARKS_DRIVER_H

#include <pthread.h>

#include "marks/marks.h"
#include "marks/store.h"

struct marks_driver {
	bool in_writes;
	int (*mark)(struct marks *marks, const struct marks_marking *marking);
	int (*list)(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms);
	int (*read)(struct marks_reading *reading, struct task_queue *queue, int64_t now_ms);
	int (*finish)(struct marks_reading *reading, struct task_queue *queue);

	/* What only Redis has; the store has NULL for these. */
	void (*reading_release)(struct marks_reading *reading);
	void (*close)(struct marks *marks);
	void (*state)(const struct marks *marks, struct marks_state *state);
	/* See marks_restored. The driver calls marks_regain when that is durable. */
	void (*restored)(struct marks *marks, uint64_t losses);
};

struct marks {
	const struct marks_driver *ops;
	struct marks_store_options of_store; /* where marks lie, or lie while Redis is away */
	struct watermark *watermark;         /* NULL: nobody asks */
	pthread_mutex_t lock;                /* guards the next */
	struct marks_state state;
	_Atomic uint64_t losses;
	_Atomic int64_t enumerated_ms; /* when all rows of a shared store were, the last time */
};

void marks_init(struct marks *marks, const struct marks_driver *ops,
		const struct marks_store_options *of_store);
/* Marks that were made before now may be lost. */
void marks_lose(struct marks *marks, int64_t now_ms);
/* They have been made again. False: others were lost since. */
bool marks_regain(struct marks *marks, uint64_t losses);

void marks_listing_add(struct marks_listing *listing, struct mark_slot slot);
/* Counts a mark of the part that cannot be read. */
PRINTF_LIKE(2, 3) void marks_reading_skip(struct marks_reading *reading, const char *fmt, ...);

/* ---- The store's: Redis begins each listing and reading with them, and marks while it is away */

int marks_store_mark(struct marks *marks, const struct marks_marking *marking) MUST_CHECK;
int marks_store_list(struct marks_listing *listing, struct task_queue *queue,
		     int64_t now_ms) MUST_CHECK;
int marks_store_read(struct marks_reading *reading, struct task_queue *queue,
		     int64_t now_ms) MUST_CHECK;
int marks_store_finish(struct marks_reading *reading, struct task_queue *queue) MUST_CHECK;
void marks_store_reading_release(struct marks_reading *reading);

#endif
