#include "marks/marks.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "marks/watermark.h"
#include "marks/driver.h"

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

void marks_init(struct marks *marks, const struct marks_driver *ops)
{
	*marks = (struct marks){.ops = ops};
	pthread_mutex_init(&marks->lock, NULL);
}

void marks_release(struct marks *marks)
{
	pthread_mutex_destroy(&marks->lock);
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

void marks_restored(struct marks *marks, uint64_t losses)
{
	marks->ops->restored(marks, losses);
}

void marks_close(struct marks *marks)
{
	marks->ops->close(marks);
}

void marks_tell(struct marks *marks, struct watermark *watermark)
{
	marks->watermark = watermark;
}

bool marks_in_writes(const struct marks *marks)
{
	return marks->ops->in_writes;
}

int marks_touches_add(struct marks *marks, struct store_write *write, int64_t now_ms,
		      const struct mark_touch *touches, size_t count, size_t *added)
{
	size_t before = *added;
	int err = marks->ops->touches_add(marks, write, now_ms, touches, count, added);
	if (marks->watermark && *added > before)
		watermark_touch(marks->watermark, now_ms, touches + before, *added - before);
	return err;
}

struct marks_marking *marks_marking_new(struct marks *marks, struct executor *executor,
					marks_marking_done *done, void *owner)
{
	return marks->ops->marking_new(&(struct marks_marking){marks, executor, done, owner});
}

void marks_marking_free(struct marks_marking *marking)
{
	marking->marks->ops->marking_free(marking);
}

int marks_marking_begin(struct marks_marking *marking, int64_t now_ms,
			const struct mark_touch *touches, size_t count)
{
	if (marking->marks->watermark)
		watermark_touch(marking->marks->watermark, now_ms, touches, count);
	return marking->marks->ops->marking_begin(marking, now_ms, touches, count);
}

static void marks_track_marked(void *owner, int err)
{
	*(struct task_answer *)owner = (struct task_answer){true, err};
}

int marks_mark_wait(struct marks *marks, struct task_queue *queue, int64_t now_ms,
		    const struct mark_touch *touches, size_t count)
{
	struct task_answer answer = {false, 0};
	if (task_queue_is_stopped(queue))
		return ERR_CANCELLED;
	struct marks_marking *marking =
		marks_marking_new(marks, &queue->executor, marks_track_marked, &answer);
	int err = marks_marking_begin(marking, now_ms, touches, count);
	err = err ? err : task_queue_wait_for(queue, &answer);
	marks_marking_free(marking);
	return err;
}

struct marks_listing *marks_listing_new(struct marks *marks)
{
	struct marks_listing *listing = marks->ops->listing_new(marks);
	listing->marks = marks;
	return listing;
}

void marks_listing_free(struct marks_listing *listing)
{
	listing->marks->ops->listing_free(listing);
}

int marks_listing_begin(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	return listing->marks->ops->listing_begin(listing, queue, now_ms);
}

int marks_listing_next(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	return listing->marks->ops->listing_next(listing, queue, now_ms);
}

const struct mark_slot *marks_listing_page(const struct marks_listing *listing, size_t *count,
					   bool *more)
{
	*count = listing->count;
	*more = listing->more;
	return listing->slots;
}

struct marks_reading *marks_reading_new(struct marks *marks)
{
	struct marks_reading *reading = marks->ops->reading_new(marks);
	reading->marks = marks;
	return reading;
}

void marks_reading_free(struct marks_reading *reading)
{
	reading->marks->ops->reading_free(reading);
}

int marks_reading_begin(struct marks_reading *reading, struct task_queue *queue,
			const struct mark_slot *slots, size_t count, int64_t now_ms)
{
	ASSERT(count && count <= MARKS_READING_MAX);
	return reading->marks->ops->reading_begin(reading, queue, slots, count, now_ms);
}

int marks_reading_next(struct marks_reading *reading, struct task_queue *queue, int64_t now_ms)
{
	return reading->marks->ops->reading_next(reading, queue, now_ms);
}

struct mark *marks_reading_marks(struct marks_reading *reading, size_t *count, bool *more)
{
	*count = reading->count;
	*more = reading->more;
	return reading->list;
}

size_t marks_reading_unread(const struct marks_reading *reading)
{
	return reading->unread;
}

const char *marks_reading_unread_name(const struct marks_reading *reading)
{
	return reading->unread_name;
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

int marks_reading_finish(struct marks_reading *reading, struct task_queue *queue)
{
	return reading->marks->ops->reading_finish(reading, queue);
}
