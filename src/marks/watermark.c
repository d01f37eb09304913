#include "marks/watermark.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define NO_SLOT INT64_MAX

enum { WATERMARK_LINES_A_MINUTE = 3 };

/* Touches go in two lots, so that what is written without a pause moves on, too: to `fresh` come
 * the new ones, and when those before them have gone it takes their place. */
struct watermark_times {
	int64_t marked_s; /* the oldest slot that the last pass found */
	int64_t found_s;  /* this one, up to now */
	struct watermark_touched fresh, settling;
	uint64_t call; /* of watermark_touch_each, that gave them last */
};

static const struct watermark_times no_times = {
	.marked_s = NO_SLOT, .found_s = NO_SLOT, .fresh = {NO_SLOT, 0}, .settling = {NO_SLOT, 0}};

struct watermark_metric {
	struct watermark_metric *next; /* of its place */
	uint64_t hash;
	struct watermark_times times;
	size_t tenant_len, metric_len;
	char text[]; /* the tenant and the metric */
};

struct watermark {
	int64_t slot_ms, quiet_ms;
	bool shared;
	/* Touches of earlier slots count, whether they have ended or not: they did when this was
	 * said, and the clock may have been set back. */
	_Atomic int64_t ended_s;
	pthread_mutex_t lock; /* guards all else */
	int64_t asof_ms, closed_s;
	int64_t before_s; /* of those that are not behind; 0: no pass has seen all */
	struct watermark_times any;
	struct watermark_metric *places[WATERMARK_MAX];
	size_t count;
	uint64_t calls; /* of watermark_touch_each */

	pthread_mutex_t lines_lock; /* guards the next */
	struct log_rate lines;      /* of cells that cannot be read */
};

struct watermark *watermark_new(int64_t slot_ms, int64_t quiet_ms, bool shared)
{
	struct watermark *w = mem_zalloc(sizeof(*w));
	w->slot_ms = slot_ms;
	w->quiet_ms = quiet_ms;
	w->shared = shared;
	w->any = no_times;
	w->lines = (struct log_rate){.lines_max = WATERMARK_LINES_A_MINUTE};
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_init(&w->lines_lock, NULL);
	return w;
}

void watermark_free(struct watermark *w)
{
	for (size_t i = 0; i < WATERMARK_MAX; i++) {
		while (w->places[i]) {
			struct watermark_metric *metric = w->places[i];
			w->places[i] = metric->next;
			mem_free(metric);
		}
	}
	pthread_mutex_destroy(&w->lines_lock);
	pthread_mutex_destroy(&w->lock);
	mem_free(w);
}

void watermark_warn_unread(struct watermark *w, const struct store_parts *row, struct slice writer,
			   const char *what)
{
	pthread_mutex_lock(&w->lines_lock);
	log_rated(&w->lines, clock_mono_ms(clock_real()), LOG_WARN,
		  "roll-ups: the cell \"" SHOWN "\" of the row (\"" SHOWN "\", \"" SHOWN
		  "\", \"" SHOWN "\"), table watermarks, cannot be read; %s",
		  SHOWN_OF(writer), SHOWN_OF(row->part[0]), SHOWN_OF(row->part[1]),
		  SHOWN_OF(row->part[2]), what);
	pthread_mutex_unlock(&w->lines_lock);
}

/* ---- Metrics --------------------------------------------------------------------------------- */

static bool watermark_is_of(const struct watermark_metric *one, uint64_t hash, struct slice tenant,
			    struct slice metric)
{
	return one->hash == hash && one->tenant_len == tenant.len &&
	       one->metric_len == metric.len && memcmp(one->text, tenant.data, tenant.len) == 0 &&
	       memcmp(one->text + tenant.len, metric.data, metric.len) == 0;
}

static uint64_t watermark_hash_of(struct slice tenant, struct slice metric)
{
	return hash64(metric.data, metric.len, hash64(tenant.data, tenant.len, 0));
}

static struct watermark_metric *watermark_find(const struct watermark *w, uint64_t hash,
					       struct slice tenant, struct slice metric)
{
	struct watermark_metric *one = w->places[hash % WATERMARK_MAX];
	while (one && !watermark_is_of(one, hash, tenant, metric))
		one = one->next;
	return one;
}

static struct watermark_metric *watermark_add(struct watermark *w, uint64_t hash,
					      struct slice tenant, struct slice metric)
{
	struct watermark_metric *one = mem_alloc(sizeof(*one) + tenant.len + metric.len);
	struct watermark_metric **place = &w->places[hash % WATERMARK_MAX];
	*one = (struct watermark_metric){.next = *place,
					 .hash = hash,
					 .times = no_times,
					 .tenant_len = tenant.len,
					 .metric_len = metric.len};
	memcpy(one->text, tenant.data, tenant.len);
	memcpy(one->text + tenant.len, metric.data, metric.len);
	*place = one;
	w->count++;
	return one;
}

/* NULL: there is no room; or, where the name is to be the key of a cell, it is no text. */
static struct watermark_metric *watermark_metric_of(struct watermark *w, struct slice tenant,
						    struct slice metric)
{
	uint64_t hash = watermark_hash_of(tenant, metric);
	struct watermark_metric *one = watermark_find(w, hash, tenant, metric);
	bool fits = w->count < WATERMARK_MAX &&
		    !(w->shared && !(utf8_is_valid(tenant) && utf8_is_valid(metric)));
	if (!one && fits)
		one = watermark_add(w, hash, tenant, metric);
	return one;
}

/* The times of a metric; a metric that has no room shares those of all. */
static struct watermark_times *watermark_times_of(struct watermark *w, struct slice tenant,
						  struct slice metric)
{
	struct watermark_metric *one = watermark_metric_of(w, tenant, metric);
	return one ? &one->times : &w->any;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static int64_t watermark_oldest_of(const struct watermark_times *times)
{
	return smaller_of(times->marked_s, smaller_of(times->fresh.slot_s, times->settling.slot_s));
}

int64_t watermark_before_ms(struct watermark *w, struct slice tenant, struct slice metric)
{
	pthread_mutex_lock(&w->lock);
	const struct watermark_metric *one =
		watermark_find(w, watermark_hash_of(tenant, metric), tenant, metric);
	int64_t before_s = smaller_of(w->before_s, watermark_oldest_of(&w->any));
	if (one)
		before_s = smaller_of(before_s, watermark_oldest_of(&one->times));
	pthread_mutex_unlock(&w->lock);
	return before_s * 1000;
}

/* ---- Touches --------------------------------------------------------------------------------- */

static void watermark_touch_one(struct watermark_times *times, int64_t now_ms,
				const struct mark_touch *touch)
{
	struct watermark_touched *fresh = &times->fresh;
	if (fresh->slot_s > touch->slot.slot_s)
		fresh->slot_s = touch->slot.slot_s;
	if (fresh->at_ms < now_ms)
		fresh->at_ms = now_ms;
}

/* A slot that has not ended yet is left out: when queries are answered from its rows it has been
 * over for the quiet time, longer than what is touched now may take, and a pass has seen it. */
static size_t watermark_first_ended(struct watermark *w, int64_t now_ms,
				    const struct mark_touch *touches, size_t count, int64_t *last_s)
{
	int64_t ended_s = atomic_load(&w->ended_s) - 1;
	size_t i = 0;
	*last_s = (now_ms - w->slot_ms) / 1000;
	if (*last_s < ended_s)
		*last_s = ended_s;
	while (i < count && touches[i].slot.slot_s > *last_s)
		i++;
	return i;
}

static int watermark_touch_metric(struct watermark *w, const struct mark_touch *touch,
				  int64_t now_ms, watermark_put *put, void *owner)
{
	struct watermark_metric *one =
		watermark_metric_of(w, touch->tenant, touch->series_set.metric);
	struct watermark_times *times = one ? &one->times : &w->any;
	bool given = times->call == w->calls && times->fresh.slot_s <= touch->slot.slot_s;
	watermark_touch_one(times, now_ms, touch);
	times->call = w->calls;
	if (given || !put)
		return 0;
	const struct watermark_touched lots[WATERMARK_LOTS] = {times->fresh, times->settling};
	return one ? put(owner, touch->tenant, touch->series_set.metric, lots)
		   : put(owner, SLICE(""), SLICE(""), lots);
}

int watermark_touch_each(struct watermark *w, int64_t now_ms, const struct mark_touch *touches,
			 size_t count, watermark_put *put, void *owner)
{
	int64_t last_s;
	int err = 0;
	size_t i = watermark_first_ended(w, now_ms, touches, count, &last_s);
	if (i == count)
		return 0;
	pthread_mutex_lock(&w->lock);
	w->calls++;
	for (; i < count && !err; i++) {
		int64_t slot_s = touches[i].slot.slot_s;
		if (slot_s <= last_s && slot_s >= w->closed_s)
			err = watermark_touch_metric(w, &touches[i], now_ms, put, owner);
	}
	pthread_mutex_unlock(&w->lock);
	return err;
}

void watermark_touch(struct watermark *w, int64_t now_ms, const struct mark_touch *touches,
		     size_t count)
{
	int err = watermark_touch_each(w, now_ms, touches, count, NULL, NULL);
	ASSERT(!err);
}

/* ---- A pass ---------------------------------------------------------------------------------- */

static int64_t watermark_over_before_s(const struct watermark *w)
{
	int64_t over_ms = w->asof_ms - w->quiet_ms;
	return over_ms < 0 ? 0 : over_ms / w->slot_ms * (w->slot_ms / 1000);
}

void watermark_begin(struct watermark *w, int64_t asof_ms, int64_t closed_s)
{
	pthread_mutex_lock(&w->lock);
	w->asof_ms = asof_ms;
	w->closed_s = closed_s;
	if (atomic_load(&w->ended_s) < watermark_over_before_s(w))
		atomic_store(&w->ended_s, watermark_over_before_s(w));
	pthread_mutex_unlock(&w->lock);
}

static void watermark_find_slot(const struct watermark *w, struct watermark_times *times,
				int64_t slot_s)
{
	if (slot_s >= w->closed_s && slot_s < times->found_s)
		times->found_s = slot_s;
}

void watermark_found(struct watermark *w, int64_t slot_s, const struct mark *marks, size_t count)
{
	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < count; i++) {
		if (!marks[i].waits)
			continue;
		if (!w->shared)
			watermark_find_slot(
				w,
				watermark_times_of(w, marks[i].tenant, marks[i].series_set.metric),
				slot_s);
		else if (marks[i].touched_ms <= w->asof_ms - w->quiet_ms)
			watermark_find_slot(w, &w->any, slot_s);
	}
	pthread_mutex_unlock(&w->lock);
}

void watermark_found_any(struct watermark *w, int64_t slot_s)
{
	pthread_mutex_lock(&w->lock);
	watermark_find_slot(w, &w->any, slot_s);
	pthread_mutex_unlock(&w->lock);
}

bool watermark_counts(const struct watermark *w, const struct watermark_touched *touched,
		      int64_t asof_ms)
{
	return touched->slot_s != NO_SLOT && touched->at_ms > asof_ms - w->quiet_ms;
}

/* A touch of later than now is of before the clock was set back: it is as if it were of now. */
static void watermark_settle(const struct watermark *w, struct watermark_touched *touched,
			     int64_t now_ms, int64_t asof_ms)
{
	if (touched->at_ms > now_ms)
		touched->at_ms = now_ms;
	if (!watermark_counts(w, touched, asof_ms))
		*touched = (struct watermark_touched){NO_SLOT, 0};
}

/* What settles makes room for the fresh ones. */
static void watermark_settle_lots(const struct watermark *w, struct watermark_times *times,
				  int64_t now_ms, int64_t asof_ms)
{
	watermark_settle(w, &times->fresh, now_ms, asof_ms);
	watermark_settle(w, &times->settling, now_ms, asof_ms);
	if (times->settling.slot_s != NO_SLOT)
		return;
	times->settling = times->fresh;
	times->fresh = (struct watermark_touched){NO_SLOT, 0};
}

static void watermark_end_times(const struct watermark *w, struct watermark_times *times,
				int64_t now_ms, bool all)
{
	if (all || times->found_s < times->marked_s)
		times->marked_s = times->found_s;
	times->found_s = NO_SLOT;
	if (all)
		watermark_settle_lots(w, times, now_ms, w->asof_ms);
}

/* Metrics of which nothing waits and nothing was touched go. */
static void watermark_leave_out(struct watermark *w, struct watermark_metric **place)
{
	while (*place) {
		struct watermark_metric *metric = *place;
		if (watermark_oldest_of(&metric->times) != NO_SLOT) {
			place = &metric->next;
			continue;
		}
		*place = metric->next;
		mem_free(metric);
		w->count--;
	}
}

void watermark_end(struct watermark *w, int64_t now_ms, bool all)
{
	pthread_mutex_lock(&w->lock);
	watermark_end_times(w, &w->any, now_ms, all);
	for (size_t i = 0; i < WATERMARK_MAX; i++) {
		for (struct watermark_metric *one = w->places[i]; one; one = one->next)
			watermark_end_times(w, &one->times, now_ms, all);
		watermark_leave_out(w, &w->places[i]);
	}
	if (all)
		w->before_s = watermark_over_before_s(w);
	pthread_mutex_unlock(&w->lock);
}

void watermark_forget(struct watermark *w)
{
	pthread_mutex_lock(&w->lock);
	w->before_s = 0;
	pthread_mutex_unlock(&w->lock);
}

int64_t watermark_end_own(struct watermark *w)
{
	pthread_mutex_lock(&w->lock);
	int64_t before_s = smaller_of(watermark_over_before_s(w), w->any.found_s);
	w->any.found_s = NO_SLOT;
	pthread_mutex_unlock(&w->lock);
	return before_s;
}

void watermark_learn(struct watermark *w, int64_t now_ms, int64_t asof_ms, int64_t before_s)
{
	pthread_mutex_lock(&w->lock);
	if (atomic_load(&w->ended_s) < before_s)
		atomic_store(&w->ended_s, before_s);
	watermark_settle_lots(w, &w->any, now_ms, asof_ms);
	for (size_t i = 0; i < WATERMARK_MAX; i++) {
		for (struct watermark_metric *one = w->places[i]; one; one = one->next)
			watermark_settle_lots(w, &one->times, now_ms, asof_ms);
		watermark_leave_out(w, &w->places[i]);
	}
	pthread_mutex_unlock(&w->lock);
}
