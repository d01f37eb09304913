/* Private to the drivers of marks: what each driver is, and what marks.c keeps for it. What a
 * driver makes begins with the struct of that name here. */
#ifndef MARKS_DRIVER_H
#define MARKS_DRIVER_H

#include <pthread.h>

#include "marks/marks.h"

struct marks_driver {
	void (*close)(struct marks *marks);
	/* Adds what only the driver knows. NULL: it is never degraded. */
	void (*state)(const struct marks *marks, struct marks_state *state);
	/* See marks_restored. The driver calls marks_regain when that is durable. */
	void (*restored)(struct marks *marks, uint64_t losses);
	bool in_writes;
	int (*touches_add)(struct marks *marks, struct store_write *write, int64_t now_ms,
			   const struct mark_touch *touches, size_t count, size_t *added);

	struct marks_marking *(*marking_new)(const struct marks_marking *begun);
	void (*marking_free)(struct marks_marking *marking);
	int (*marking_begin)(struct marks_marking *marking, int64_t now_ms,
			     const struct mark_touch *touches, size_t count);

	struct marks_listing *(*listing_new)(struct marks *marks);
	void (*listing_free)(struct marks_listing *listing);
	int (*listing_begin)(struct marks_listing *listing, struct task_queue *queue,
			     int64_t now_ms);
	int (*listing_next)(struct marks_listing *listing, struct task_queue *queue,
			    int64_t now_ms);

	struct marks_reading *(*reading_new)(struct marks *marks);
	void (*reading_free)(struct marks_reading *reading);
	int (*reading_begin)(struct marks_reading *reading, struct task_queue *queue,
			     const struct mark_slot *slots, size_t count, int64_t now_ms);
	int (*reading_next)(struct marks_reading *reading, struct task_queue *queue,
			    int64_t now_ms);
	int (*reading_finish)(struct marks_reading *reading, struct task_queue *queue);
};

struct marks {
	const struct marks_driver *ops;
	struct watermark *watermark; /* NULL: nobody asks */
	pthread_mutex_t lock;        /* guards the next */
	struct marks_state state;
	_Atomic uint64_t losses;
};

void marks_init(struct marks *marks, const struct marks_driver *ops);
void marks_release(struct marks *marks);
/* Marks that were made before now may be lost. */
void marks_lose(struct marks *marks, int64_t now_ms);
/* They have been made again. False: others were lost since. */
bool marks_regain(struct marks *marks, uint64_t losses);

struct marks_marking {
	struct marks *marks;
	struct executor *executor;
	marks_marking_done *done;
	void *owner;
};

struct marks_listing {
	struct marks *marks;
	/* The slots of the page, in the driver's memory. */
	struct mark_slot *slots;
	size_t count;
	bool more;
};

struct marks_reading {
	struct marks *marks;
	/* The marks of the part, in the driver's memory. */
	struct mark *list;
	size_t count, unread;
	char unread_name[MARKS_UNREAD_NAME_BYTES]; /* the first unread mark in words */
	bool more;
};

/* Counts a mark of the part that cannot be read. */
__attribute__((format(printf, 2, 3))) void marks_reading_skip(struct marks_reading *reading,
							      const char *fmt, ...);

#endif
