#include "marks/marks.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "marks/driver.h"
#include "marks/watermark.h"

enum { SLOTS_FIRST = 256 };

/* ---- Slots ----------------------------------------------------------------------------------- */

/* Twice the quiet time: once until the mark is ready, once for the work. */
int64_t slot_open_from_ms(int64_t now_ms, int64_t raw_ms, int64_t slot_ms, int64_t quiet_ms)
{
	int64_t kept_ms = now_ms - raw_ms + 2 * quiet_ms;
	if (!raw_ms || kept_ms <= 0)
		return 0;
	return (kept_ms + slot_ms - 1) / slot_ms * slot_ms;
}

int64_t slot_ready_ms(int64_t slot_s, int64_t touched_ms, int64_t slot_ms, int64_t quiet_ms,
		      int64_t now_ms)
{
	int64_t since_ms = slot_s * 1000 + slot_ms;
	if (touched_ms > since_ms && touched_ms - quiet_ms <= now_ms)
		since_ms = touched_ms;
	return since_ms + quiet_ms;
}

static int marks_compare_touches(const void *a, const void *b)
{
	const struct mark_touch *x = a, *y = b;
	int order = mark_slot_compare(&x->slot, &y->slot);
	return order ? order : (int)x->deleted - (int)y->deleted;
}

/* Mostly all are of one slot, and there is one partition. */
void mark_touches_sort(struct mark_touch *touches, size_t count)
{
	size_t i = 1;
	while (i < count && marks_compare_touches(&touches[i - 1], &touches[i]) <= 0)
		i++;
	if (i >= count)
		return;
	qsort(touches, count, sizeof(*touches), marks_compare_touches);
}

/* ---- What the drivers do --------------------------------------------------------------------- */

void marks_init(struct marks *marks, const struct marks_driver *ops,
		const struct marks_store_options *of_store)
{
	*marks = (struct marks){.ops = ops, .of_store = *of_store};
	pthread_mutex_init(&marks->lock, NULL);
}

void marks_close(struct marks *marks)
{
	if (marks->ops->close)
		marks->ops->close(marks);
	pthread_mutex_destroy(&marks->lock);
	mem_free(marks);
}

void marks_lose(struct marks *marks, int64_t now_ms)
{
	pthread_mutex_lock(&marks->lock);
	marks->state.incomplete = true;
	marks->state.lost_ms = now_ms;
	marks->state.losses++;
	atomic_store(&marks->losses, marks->state.losses);
	pthread_mutex_unlock(&marks->lock);
}

bool marks_regain(struct marks *marks, uint64_t losses)
{
	pthread_mutex_lock(&marks->lock);
	bool same = marks->state.losses == losses;
	if (same)
		marks->state.incomplete = false;
	pthread_mutex_unlock(&marks->lock);
	return same;
}

struct marks_state marks_state(struct marks *marks)
{
	pthread_mutex_lock(&marks->lock);
	struct marks_state state = marks->state;
	pthread_mutex_unlock(&marks->lock);
	if (marks->ops->state)
		marks->ops->state(marks, &state);
	return state;
}

uint64_t marks_losses(const struct marks *marks)
{
	return atomic_load(&marks->losses);
}

/* The store does not lose marks. */
void marks_restored(struct marks *marks, uint64_t losses)
{
	if (marks->ops->restored)
		marks->ops->restored(marks, losses);
}

void marks_tell(struct marks *marks, struct watermark *watermark)
{
	marks->watermark = watermark;
}

bool marks_in_writes(const struct marks *marks)
{
	return marks->ops->in_writes;
}

/* ---- Mark, list, read, finish ---------------------------------------------------------------- */

int marks_mark(struct marks *marks, const struct marks_marking *marking)
{
	ASSERT(marking->count);
	if (marks->watermark)
		watermark_touch(marks->watermark, marking->now_ms, marking->touches,
				marking->count);
	return marks->ops->mark(marks, marking);
}

static void marks_wake(void *owner, int err)
{
	*(struct task_answer *)owner = (struct task_answer){true, err};
}

int marks_mark_wait(struct marks *marks, struct task_queue *queue, int64_t now_ms,
		    const struct mark_touch *touches, size_t count)
{
	struct task_answer answer = {false, 0};
	if (task_queue_is_stopped(queue))
		return ERR_CANCELLED;
	if (!count)
		return 0;
	int err = marks_mark(marks, &(struct marks_marking){.executor = &queue->executor,
							    .done = marks_wake,
							    .owner = &answer,
							    .now_ms = now_ms,
							    .touches = touches,
							    .count = count});
	return err ? err : task_queue_wait_for(queue, &answer);
}

int marks_list(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	ASSERT(!listing->over);
	listing->count = 0;
	int err = listing->marks->ops->list(listing, queue, now_ms);
	if (err)
		listing->count = 0;
	return err;
}

void marks_listing_add(struct marks_listing *listing, struct mark_slot slot)
{
	if (listing->count == listing->room) {
		listing->room = listing->room ? listing->room * 2 : SLOTS_FIRST;
		listing->slots = mem_resize_array(listing->slots, listing->room, sizeof(slot));
	}
	listing->slots[listing->count++] = slot;
}

void marks_listing_release(struct marks_listing *listing)
{
	mem_free(listing->slots);
}

int marks_read(struct marks_reading *reading, struct task_queue *queue, int64_t now_ms)
{
	ASSERT(reading->slot_count && reading->slot_count <= MARKS_READING_MAX && !reading->over);
	reading->count = reading->unread = 0;
	int err = reading->marks->ops->read(reading, queue, now_ms);
	if (err)
		reading->count = reading->unread = 0;
	return err;
}

void marks_reading_skip(struct marks_reading *reading, const char *fmt, ...)
{
	va_list args;
	if (reading->unread++)
		return;
	va_start(args, fmt);
	vsnprintf(reading->unread_name, sizeof(reading->unread_name), fmt, args);
	va_end(args);
}

int marks_finish(struct marks_reading *reading, struct task_queue *queue)
{
	ASSERT(reading->of_store); /* a part was read */
	return reading->marks->ops->finish(reading, queue);
}

void marks_reading_release(struct marks_reading *reading)
{
	if (reading->of_redis)
		reading->marks->ops->reading_release(reading);
	if (reading->of_store)
		marks_store_reading_release(reading);
}
