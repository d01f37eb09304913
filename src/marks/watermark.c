#include "marks/watermark.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"

#define NO_SLOT INT64_MAX

/* Touches go in two lots, so that what is written without a pause moves on, too: to `fresh` come
 * the new ones, and when those before them have gone it takes their place. */
struct watermark_times {
	int64_t marked_s; /* the oldest slot that the last pass found */
	int64_t found_s;  /* this one, up to now */
	struct watermark_touched fresh, settling;
};

static const struct watermark_times no_times = {
	.marked_s = NO_SLOT, .found_s = NO_SLOT, .fresh = {NO_SLOT, 0}, .settling = {NO_SLOT, 0}};

struct watermark_metric {
	struct watermark_metric *next; /* of its place */
	uint64_t hash;
	uint64_t call; /* of watermark_touch_each, that gave it last */
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
};

struct watermark *watermark_new(int64_t slot_ms, int64_t quiet_ms, bool shared)
{
	struct watermark *b = mem_zalloc(sizeof(*b));
	b->slot_ms = slot_ms;
	b->quiet_ms = quiet_ms;
	b->shared = shared;
	b->any = no_times;
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

void watermark_free(struct watermark *b)
{
	for (size_t i = 0; i < WATERMARK_MAX; i++) {
		while (b->places[i]) {
			struct watermark_metric *metric = b->places[i];
			b->places[i] = metric->next;
			mem_free(metric);
		}
	}
	pthread_mutex_destroy(&b->lock);
	mem_free(b);
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

static struct watermark_metric *watermark_find(const struct watermark *b, uint64_t hash,
					       struct slice tenant, struct slice metric)
{
	struct watermark_metric *one = b->places[hash % WATERMARK_MAX];
	while (one && !watermark_is_of(one, hash, tenant, metric))
		one = one->next;
	return one;
}

static struct watermark_metric *watermark_add(struct watermark *b, uint64_t hash,
					      struct slice tenant, struct slice metric)
{
	struct watermark_metric *one = mem_alloc(sizeof(*one) + tenant.len + metric.len);
	struct watermark_metric **place = &b->places[hash % WATERMARK_MAX];
	*one = (struct watermark_metric){.next = *place,
					 .hash = hash,
					 .times = no_times,
					 .tenant_len = tenant.len,
					 .metric_len = metric.len};
	memcpy(one->text, tenant.data, tenant.len);
	memcpy(one->text + tenant.len, metric.data, metric.len);
	*place = one;
	b->count++;
	return one;
}

/* NULL: there is no room; or, where the name is to be the key of a cell, it is no text. */
static struct watermark_metric *watermark_metric_of(struct watermark *b, struct slice tenant,
						    struct slice metric)
{
	uint64_t hash = watermark_hash_of(tenant, metric);
	struct watermark_metric *one = watermark_find(b, hash, tenant, metric);
	bool fits = b->count < WATERMARK_MAX &&
		    !(b->shared && !(utf8_is_valid(tenant) && utf8_is_valid(metric)));
	if (!one && fits)
		one = watermark_add(b, hash, tenant, metric);
	return one;
}

/* The times of a metric; a metric that has no room shares those of all. */
static struct watermark_times *watermark_times_of(struct watermark *b, struct slice tenant,
						  struct slice metric)
{
	struct watermark_metric *one = watermark_metric_of(b, tenant, metric);
	return one ? &one->times : &b->any;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static int64_t watermark_oldest_of(const struct watermark_times *times)
{
	return smaller_of(times->marked_s, smaller_of(times->fresh.slot_s, times->settling.slot_s));
}

int64_t watermark_before_ms(struct watermark *b, struct slice tenant, struct slice metric)
{
	pthread_mutex_lock(&b->lock);
	const struct watermark_metric *one =
		watermark_find(b, watermark_hash_of(tenant, metric), tenant, metric);
	int64_t before_s = smaller_of(b->before_s, watermark_oldest_of(&b->any));
	if (one)
		before_s = smaller_of(before_s, watermark_oldest_of(&one->times));
	pthread_mutex_unlock(&b->lock);
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
static size_t watermark_first_ended(struct watermark *b, int64_t now_ms,
				    const struct mark_touch *touches, size_t count, int64_t *last_s)
{
	int64_t ended_s = atomic_load(&b->ended_s) - 1;
	size_t i = 0;
	*last_s = (now_ms - b->slot_ms) / 1000;
	if (*last_s < ended_s)
		*last_s = ended_s;
	while (i < count && touches[i].slot.slot_s > *last_s)
		i++;
	return i;
}

void watermark_touch(struct watermark *b, int64_t now_ms, const struct mark_touch *touches,
		     size_t count)
{
	int64_t last_s;
	size_t i = watermark_first_ended(b, now_ms, touches, count, &last_s);
	if (i == count)
		return;
	pthread_mutex_lock(&b->lock);
	for (; i < count; i++) {
		int64_t slot_s = touches[i].slot.slot_s;
		if (slot_s <= last_s && slot_s >= b->closed_s)
			watermark_touch_one(watermark_times_of(b, touches[i].tenant,
							       touches[i].series_set.metric),
					    now_ms, &touches[i]);
	}
	pthread_mutex_unlock(&b->lock);
}

static int watermark_put_metric(struct watermark *b, const struct mark_touch *touch, int64_t now_ms,
				watermark_put *put, void *owner)
{
	struct watermark_metric *one =
		watermark_metric_of(b, touch->tenant, touch->series_set.metric);
	struct watermark_times *times = one ? &one->times : &b->any;
	bool known = one && one->call == b->calls && times->fresh.slot_s <= touch->slot.slot_s;
	watermark_touch_one(times, now_ms, touch);
	if (known)
		return 0;
	if (one)
		one->call = b->calls;
	const struct watermark_touched lots[WATERMARK_LOTS] = {times->fresh, times->settling};
	return one ? put(owner, touch->tenant, touch->series_set.metric, lots)
		   : put(owner, SLICE(""), SLICE(""), lots);
}

int watermark_touch_each(struct watermark *b, int64_t now_ms, const struct mark_touch *touches,
			 size_t count, watermark_put *put, void *owner)
{
	int64_t last_s;
	int err = 0;
	size_t i = watermark_first_ended(b, now_ms, touches, count, &last_s);
	if (i == count)
		return 0;
	pthread_mutex_lock(&b->lock);
	b->calls++;
	for (; i < count && !err; i++) {
		int64_t slot_s = touches[i].slot.slot_s;
		if (slot_s <= last_s && slot_s >= b->closed_s)
			err = watermark_put_metric(b, &touches[i], now_ms, put, owner);
	}
	pthread_mutex_unlock(&b->lock);
	return err;
}

/* ---- A pass ---------------------------------------------------------------------------------- */

static int64_t watermark_over_before_s(const struct watermark *b)
{
	int64_t over_ms = b->asof_ms - b->quiet_ms;
	return over_ms < 0 ? 0 : over_ms / b->slot_ms * (b->slot_ms / 1000);
}

void watermark_begin(struct watermark *b, int64_t asof_ms, int64_t closed_s)
{
	pthread_mutex_lock(&b->lock);
	b->asof_ms = asof_ms;
	b->closed_s = closed_s;
	if (atomic_load(&b->ended_s) < watermark_over_before_s(b))
		atomic_store(&b->ended_s, watermark_over_before_s(b));
	pthread_mutex_unlock(&b->lock);
}

static void watermark_find_slot(const struct watermark *b, struct watermark_times *times,
				int64_t slot_s)
{
	if (slot_s >= b->closed_s && slot_s < times->found_s)
		times->found_s = slot_s;
}

void watermark_found(struct watermark *b, int64_t slot_s, const struct mark *marks, size_t count)
{
	pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < count; i++) {
		if (!marks[i].waits)
			continue;
		if (!b->shared)
			watermark_find_slot(
				b,
				watermark_times_of(b, marks[i].tenant, marks[i].series_set.metric),
				slot_s);
		else if (marks[i].touched_ms <= b->asof_ms - b->quiet_ms)
			watermark_find_slot(b, &b->any, slot_s);
	}
	pthread_mutex_unlock(&b->lock);
}

void watermark_found_any(struct watermark *b, int64_t slot_s)
{
	pthread_mutex_lock(&b->lock);
	watermark_find_slot(b, &b->any, slot_s);
	pthread_mutex_unlock(&b->lock);
}

bool watermark_counts(const struct watermark *b, const struct watermark_touched *touched,
		      int64_t asof_ms)
{
	return touched->slot_s != NO_SLOT && touched->at_ms > asof_ms - b->quiet_ms;
}

/* A touch of later than now is of before the clock was set back: it is as if it were of now. */
static void watermark_settle(const struct watermark *b, struct watermark_touched *touched,
			     int64_t now_ms, int64_t asof_ms)
{
	if (touched->at_ms > now_ms)
		touched->at_ms = now_ms;
	if (!watermark_counts(b, touched, asof_ms))
		*touched = (struct watermark_touched){NO_SLOT, 0};
}

/* What settles makes room for the fresh ones. */
static void watermark_settle_lots(const struct watermark *b, struct watermark_times *times,
				  int64_t now_ms, int64_t asof_ms)
{
	watermark_settle(b, &times->fresh, now_ms, asof_ms);
	watermark_settle(b, &times->settling, now_ms, asof_ms);
	if (times->settling.slot_s != NO_SLOT)
		return;
	times->settling = times->fresh;
	times->fresh = (struct watermark_touched){NO_SLOT, 0};
}

static void watermark_end_times(const struct watermark *b, struct watermark_times *times,
				int64_t now_ms, bool all)
{
	if (all || times->found_s < times->marked_s)
		times->marked_s = times->found_s;
	times->found_s = NO_SLOT;
	if (all)
		watermark_settle_lots(b, times, now_ms, b->asof_ms);
}

/* Metrics of which nothing waits and nothing was touched go. */
static void watermark_leave_out(struct watermark *b, struct watermark_metric **place)
{
	while (*place) {
		struct watermark_metric *metric = *place;
		if (watermark_oldest_of(&metric->times) != NO_SLOT) {
			place = &metric->next;
			continue;
		}
		*place = metric->next;
		mem_free(metric);
		b->count--;
	}
}

void watermark_end(struct watermark *b, int64_t now_ms, bool all)
{
	pthread_mutex_lock(&b->lock);
	watermark_end_times(b, &b->any, now_ms, all);
	for (size_t i = 0; i < WATERMARK_MAX; i++) {
		for (struct watermark_metric *one = b->places[i]; one; one = one->next)
			watermark_end_times(b, &one->times, now_ms, all);
		watermark_leave_out(b, &b->places[i]);
	}
	if (all)
		b->before_s = watermark_over_before_s(b);
	pthread_mutex_unlock(&b->lock);
}

void watermark_forget(struct watermark *b)
{
	pthread_mutex_lock(&b->lock);
	b->before_s = 0;
	pthread_mutex_unlock(&b->lock);
}

int64_t watermark_end_own(struct watermark *b)
{
	pthread_mutex_lock(&b->lock);
	int64_t before_s = smaller_of(watermark_over_before_s(b), b->any.found_s);
	b->any.found_s = NO_SLOT;
	pthread_mutex_unlock(&b->lock);
	return before_s;
}

void watermark_learn(struct watermark *b, int64_t now_ms, int64_t asof_ms, int64_t before_s)
{
	pthread_mutex_lock(&b->lock);
	if (atomic_load(&b->ended_s) < before_s)
		atomic_store(&b->ended_s, before_s);
	watermark_settle_lots(b, &b->any, now_ms, asof_ms);
	for (size_t i = 0; i < WATERMARK_MAX; i++) {
		for (struct watermark_metric *one = b->places[i]; one; one = one->next)
			watermark_settle_lots(b, &one->times, now_ms, asof_ms);
		watermark_leave_out(b, &b->places[i]);
	}
	pthread_mutex_unlock(&b->lock);
}
