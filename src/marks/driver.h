/* Private to the drivers of tracking: what each of them is, and what track.c keeps for it. What a
 * driver makes begins with the struct of that name here. */
#ifndef ROLLUP_TRACK_DRIVER_H
#define ROLLUP_TRACK_DRIVER_H

#include <pthread.h>

#include "marks/marks.h"

struct rollup_track_ops {
	void (*close)(struct rollup_track *track);
	/* Adds what only the driver knows; NULL: it is always well. */
	void (*state)(const struct rollup_track *track, struct rollup_track_state *state);
	/* See rollup_track_restored; rollup_track_regain follows when that is durable. */
	void (*restored)(struct rollup_track *track, uint64_t losses);
	bool in_writes;
	int (*touches_add)(struct rollup_track *track, struct store_write *write, int64_t now_ms,
			   const struct rollup_touch *touches, size_t count, size_t *added);

	struct rollup_marking *(*marking_new)(const struct rollup_marking *begun);
	void (*marking_free)(struct rollup_marking *marking);
	int (*marking_begin)(struct rollup_marking *marking, int64_t now_ms,
			     const struct rollup_touch *touches, size_t count);

	struct rollup_listing *(*listing_new)(struct rollup_track *track);
	void (*listing_free)(struct rollup_listing *listing);
	int (*listing_begin)(struct rollup_listing *listing, struct task_queue *queue,
			     int64_t now_ms);
	int (*listing_next)(struct rollup_listing *listing, struct task_queue *queue,
			    int64_t now_ms);

	struct rollup_reading *(*reading_new)(struct rollup_track *track);
	void (*reading_free)(struct rollup_reading *reading);
	int (*reading_begin)(struct rollup_reading *reading, struct task_queue *queue,
			     const struct rollup_slot *slots, size_t count, int64_t now_ms);
	int (*reading_next)(struct rollup_reading *reading, struct task_queue *queue,
			    int64_t now_ms);
	int (*reading_finish)(struct rollup_reading *reading, struct task_queue *queue);
};

struct rollup_track {
	const struct rollup_track_ops *ops;
	struct rollup_behind *behind; /* NULL: nobody asks */
	pthread_mutex_t lock;         /* guards the next */
	struct rollup_track_state state;
	_Atomic uint64_t losses;
};

void rollup_track_init(struct rollup_track *track, const struct rollup_track_ops *ops);
void rollup_track_release(struct rollup_track *track);
/* Marks that were made before now are lost, or may be. */
void rollup_track_lose(struct rollup_track *track, int64_t now_ms);
/* They have been made anew. False: others were lost since. */
bool rollup_track_regain(struct rollup_track *track, uint64_t losses);

struct rollup_marking {
	struct rollup_track *track;
	struct executor *executor;
	rollup_marking_done *done;
	void *owner;
};

struct rollup_listing {
	struct rollup_track *track;
	/* The page, in the driver's memory. */
	struct rollup_slot *slots;
	size_t count;
	bool more;
};

struct rollup_reading {
	struct rollup_track *track;
	/* The part, in the driver's memory. */
	struct rollup_mark *marks;
	size_t count, unread;
	char unread_name[ROLLUP_UNREAD_NAME_BYTES]; /* of the first of them */
	bool more;
};

/* Counts something of the part that cannot be read. */
__attribute__((format(printf, 2, 3))) void rollup_reading_skip(struct rollup_reading *reading,
							       const char *fmt, ...);

#endif
