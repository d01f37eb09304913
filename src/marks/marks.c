#include "marks/marks.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "marks/watermark.h"
#include "marks/driver.h"

/* ---- Slots ----------------------------------------------------------------------------------- */

/* Twice the quiet time: once until the mark is ready, once for the work. */
int64_t rollup_open_from_ms(int64_t now_ms, int64_t raw_ms, int64_t slot_ms, int64_t quiet_ms)
{
	int64_t kept_ms = now_ms - raw_ms + 2 * quiet_ms;
	if (!raw_ms || kept_ms <= 0)
		return 0;
	return (kept_ms + slot_ms - 1) / slot_ms * slot_ms;
}

int64_t rollup_ready_ms(int64_t slot_s, int64_t touched_ms, int64_t slot_ms, int64_t quiet_ms,
			int64_t now_ms)
{
	int64_t since_ms = slot_s * 1000 + slot_ms;
	if (touched_ms > since_ms && touched_ms - quiet_ms <= now_ms)
		since_ms = touched_ms;
	return since_ms + quiet_ms;
}

static int compare_touches(const void *a, const void *b)
{
	const struct rollup_touch *x = a, *y = b;
	int order = rollup_slot_compare(&x->slot, &y->slot);
	return order ? order : (int)x->deleted - (int)y->deleted;
}

/* Mostly all are of one slot, and there is one partition. */
void rollup_touches_sort(struct rollup_touch *touches, size_t count)
{
	size_t i = 1;
	while (i < count && compare_touches(&touches[i - 1], &touches[i]) <= 0)
		i++;
	if (i >= count)
		return;
	qsort(touches, count, sizeof(*touches), compare_touches);
}

/* ---- What the drivers do --------------------------------------------------------------------- */

void rollup_track_init(struct rollup_track *track, const struct rollup_track_ops *ops)
{
	*track = (struct rollup_track){.ops = ops};
	pthread_mutex_init(&track->lock, NULL);
}

void rollup_track_release(struct rollup_track *track)
{
	pthread_mutex_destroy(&track->lock);
}

void rollup_track_lose(struct rollup_track *track, int64_t now_ms)
{
	pthread_mutex_lock(&track->lock);
	track->state.incomplete = true;
	track->state.lost_ms = now_ms;
	track->state.losses++;
	atomic_store(&track->losses, track->state.losses);
	pthread_mutex_unlock(&track->lock);
}

bool rollup_track_regain(struct rollup_track *track, uint64_t losses)
{
	pthread_mutex_lock(&track->lock);
	bool same = track->state.losses == losses;
	if (same)
		track->state.incomplete = false;
	pthread_mutex_unlock(&track->lock);
	return same;
}

struct rollup_track_state rollup_track_state(struct rollup_track *track)
{
	pthread_mutex_lock(&track->lock);
	struct rollup_track_state state = track->state;
	pthread_mutex_unlock(&track->lock);
	if (track->ops->state)
		track->ops->state(track, &state);
	return state;
}

uint64_t rollup_track_losses(const struct rollup_track *track)
{
	return atomic_load(&track->losses);
}

void rollup_track_restored(struct rollup_track *track, uint64_t losses)
{
	track->ops->restored(track, losses);
}

void rollup_track_close(struct rollup_track *track)
{
	track->ops->close(track);
}

void rollup_track_tell(struct rollup_track *track, struct rollup_behind *behind)
{
	track->behind = behind;
}

bool rollup_track_in_writes(const struct rollup_track *track)
{
	return track->ops->in_writes;
}

int rollup_touches_add(struct rollup_track *track, struct store_write *write, int64_t now_ms,
		       const struct rollup_touch *touches, size_t count, size_t *added)
{
	size_t before = *added;
	int err = track->ops->touches_add(track, write, now_ms, touches, count, added);
	if (track->behind && *added > before)
		rollup_behind_touch(track->behind, now_ms, touches + before, *added - before);
	return err;
}

struct rollup_marking *rollup_marking_new(struct rollup_track *track, struct executor *executor,
					  rollup_marking_done *done, void *owner)
{
	return track->ops->marking_new(&(struct rollup_marking){track, executor, done, owner});
}

void rollup_marking_free(struct rollup_marking *marking)
{
	marking->track->ops->marking_free(marking);
}

int rollup_marking_begin(struct rollup_marking *marking, int64_t now_ms,
			 const struct rollup_touch *touches, size_t count)
{
	if (marking->track->behind)
		rollup_behind_touch(marking->track->behind, now_ms, touches, count);
	return marking->track->ops->marking_begin(marking, now_ms, touches, count);
}

static void track_marked(void *owner, int err)
{
	*(struct task_answer *)owner = (struct task_answer){true, err};
}

int rollup_mark_wait(struct rollup_track *track, struct task_queue *queue, int64_t now_ms,
		     const struct rollup_touch *touches, size_t count)
{
	struct task_answer answer = {false, 0};
	if (task_queue_is_stopped(queue))
		return ERR_CANCELLED;
	struct rollup_marking *marking =
		rollup_marking_new(track, &queue->executor, track_marked, &answer);
	int err = rollup_marking_begin(marking, now_ms, touches, count);
	err = err ? err : task_queue_wait_for(queue, &answer);
	rollup_marking_free(marking);
	return err;
}

struct rollup_listing *rollup_listing_new(struct rollup_track *track)
{
	struct rollup_listing *listing = track->ops->listing_new(track);
	listing->track = track;
	return listing;
}

void rollup_listing_free(struct rollup_listing *listing)
{
	listing->track->ops->listing_free(listing);
}

int rollup_listing_begin(struct rollup_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	return listing->track->ops->listing_begin(listing, queue, now_ms);
}

int rollup_listing_next(struct rollup_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	return listing->track->ops->listing_next(listing, queue, now_ms);
}

const struct rollup_slot *rollup_listing_page(const struct rollup_listing *listing, size_t *count,
					      bool *more)
{
	*count = listing->count;
	*more = listing->more;
	return listing->slots;
}

struct rollup_reading *rollup_reading_new(struct rollup_track *track)
{
	struct rollup_reading *reading = track->ops->reading_new(track);
	reading->track = track;
	return reading;
}

void rollup_reading_free(struct rollup_reading *reading)
{
	reading->track->ops->reading_free(reading);
}

int rollup_reading_begin(struct rollup_reading *reading, struct task_queue *queue,
			 const struct rollup_slot *slots, size_t count, int64_t now_ms)
{
	ASSERT(count && count <= ROLLUP_READING_MAX);
	return reading->track->ops->reading_begin(reading, queue, slots, count, now_ms);
}

int rollup_reading_next(struct rollup_reading *reading, struct task_queue *queue, int64_t now_ms)
{
	return reading->track->ops->reading_next(reading, queue, now_ms);
}

struct rollup_mark *rollup_reading_marks(struct rollup_reading *reading, size_t *count, bool *more)
{
	*count = reading->count;
	*more = reading->more;
	return reading->marks;
}

size_t rollup_reading_unread(const struct rollup_reading *reading)
{
	return reading->unread;
}

const char *rollup_reading_unread_name(const struct rollup_reading *reading)
{
	return reading->unread_name;
}

void rollup_reading_skip(struct rollup_reading *reading, const char *fmt, ...)
{
	va_list args;
	if (reading->unread++)
		return;
	va_start(args, fmt);
	vsnprintf(reading->unread_name, sizeof(reading->unread_name), fmt, args);
	va_end(args);
}

int rollup_reading_finish(struct rollup_reading *reading, struct task_queue *queue)
{
	return reading->track->ops->reading_finish(reading, queue);
}
