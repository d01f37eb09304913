/* Random histories of counters against a model that is done the plainest way: every delta is what
 * the history says that it was, every bin is a sum over all deltas of what lies in it by fractions
 * of whole numbers. Beside the equality of each row: bins and unplaced growth are the counter's
 * growth, any cut of the input into runs gives the same rows, and so does any repetition.
 *
 * GRANARY_LONG=1 takes 100,000 histories; GRANARY_SEED another beginning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "base/random.h"
#include "rate/counter.h"

enum { SAMPLES_MAX = 48, ROWS_MAX = 60000, HISTORIES = 3000, HISTORIES_LONG = 100000 };

__extension__ typedef __int128 wide;

static const struct counter_config configs[] = {
	{30000, 2, {3600000, 86400000}},  {11000, 3, {30000, 3600000, 86400000}},
	{300000, 2, {3600000, 86400000}}, {60000, 0, {0}},
	{1000, 2, {1000 * 7, 2500}},      {7, 4, {7 * 2, 10, 700, 7}},
};

enum step { STEP_GROWS, STEP_LOST, STEP_NOTHING };

/* One sample and what is true of the interval before it. */
struct event {
	struct counter_sample sample;
	enum step step;
	uint64_t growth;
	uint8_t flags;
};

struct history {
	const struct counter_config *config;
	unsigned width_bits;
	size_t count;
	struct event events[SAMPLES_MAX];
};

/* ---- The model ------------------------------------------------------------------------------- */

struct rows {
	size_t count;
	struct counter_row *list;
};

static struct counter_row *model_row(struct rows *rows, unsigned level, int64_t start_ms)
{
	for (size_t i = rows->count; i-- > 0;)
		if (rows->list[i].level == level && rows->list[i].start_ms == start_ms)
			return &rows->list[i];
	assert_true(rows->count < ROWS_MAX);
	rows->list[rows->count] =
		(struct counter_row){.level = (uint8_t)level, .start_ms = start_ms};
	return &rows->list[rows->count++];
}

struct part {
	int64_t start_ms, time_ms;
	wide growth;
	int turn; /* in the order of the reference: first, last, those between */
};

static int by_time_up(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->time_ms != y->time_ms)
		return x->time_ms < y->time_ms ? -1 : 1;
	return x->turn - y->turn;
}

static int by_time_down(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->time_ms != y->time_ms)
		return x->time_ms > y->time_ms ? -1 : 1;
	return x->turn - y->turn;
}

static size_t model_split(uint64_t growth, int64_t t0, int64_t t1, int64_t width,
			  struct part *parts)
{
	int64_t first = floor_to(t0, width), last = floor_to(t1, width);
	wide left = growth, whole = t1 - t0;
	size_t n = 0;

	for (int64_t t = first; t <= last; t += width) {
		int64_t begin = t < t0 ? t0 : t, end = t + width > t1 ? t1 : t + width;
		struct part *p = &parts[n];
		*p = (struct part){t, end - begin, 0, (int)n + 1};
		if (t == last)
			p->turn = 1;
		if (t == first)
			p->turn = 0;
		p->growth = whole ? (2 * (wide)growth * p->time_ms + whole) / (2 * whole) : 0;
		left -= p->growth;
		n++;
	}
	if (left != 0)
		qsort(parts, n, sizeof(*parts), left > 0 ? by_time_down : by_time_up);
	for (size_t i = 0; left != 0; i = (i + 1) % n) {
		if (left < 0 && parts[i].growth == 0)
			continue;
		parts[i].growth += left > 0 ? 1 : -1;
		left -= left > 0 ? 1 : -1;
	}
	return n;
}

static void add_part(struct rows *rows, unsigned level, const struct part *p, uint8_t flags)
{
	struct counter_row *row = model_row(rows, level, p->start_ms);

	row->val += (uint64_t)p->growth;
	row->covered_ms += (uint32_t)p->time_ms;
	row->flags |= flags;
}

static void flag_rows(struct rows *rows, unsigned level, int64_t t0, int64_t t1, int64_t width,
		      uint8_t flags)
{
	int64_t first = floor_to(t0, width), last = floor_to(t1, width);

	for (int64_t t = first; t <= last; t += width) {
		if (t - first > COUNTER_GAP_ROWS_MAX * width && t < last)
			t = last;
		model_row(rows, level, t)->flags |= flags;
	}
}

/* Growth from t0 to t1 on one level, by that level's edges or by the sums of bins. */
static void model_place(const struct history *h, struct rows *rows, unsigned level, uint64_t growth,
			int64_t t0, int64_t t1, uint8_t flags)
{
	int64_t width = counter_level_ms(h->config, level);
	int64_t by = width % h->config->base_ms == 0 ? h->config->base_ms : width;
	struct part parts[16];
	size_t n = model_split(growth, t0, t1, by, parts);

	for (size_t i = 0; i < n; i++) {
		parts[i].start_ms = floor_to(parts[i].start_ms, width);
		add_part(rows, level, &parts[i], flags);
		if (level == 0)
			model_row(rows, 0, parts[i].start_ms)->count++;
	}
	if (level)
		model_row(rows, level, floor_to(t1, width))->count++;
}

static void model_extremes(const struct history *h, struct rows *rows, unsigned level,
			   uint64_t growth, int64_t t0, int64_t t1)
{
	struct counter_row *row =
		model_row(rows, level, floor_to(t1, counter_level_ms(h->config, level)));
	double rate = (double)growth * 1000.0 / (double)(t1 - t0);

	if (!row->has_rate || rate < row->min) {
		row->min = rate;
		row->min_ts_ms = t1;
	}
	if (!row->has_rate || rate > row->max) {
		row->max = rate;
		row->max_ts_ms = t1;
	}
	row->has_rate = true;
}

static void model_interval(const struct history *h, struct rows *rows, int64_t t0,
			   const struct event *e)
{
	int64_t t1 = e->sample.ts_ms, base = h->config->base_ms, bin = floor_to(t1, base);
	bool gap = t1 - t0 > 3 * base;
	uint8_t flags = (uint8_t)(e->flags | (gap ? COUNTER_GAP : 0));

	for (unsigned level = 0; level <= h->config->period_count; level++) {
		int64_t width = counter_level_ms(h->config, level);
		if (e->step == STEP_LOST) {
			flag_rows(rows, level, t0, t1, width,
				  (uint8_t)((flags & COUNTER_GAP) | COUNTER_RESET));
		} else if (!gap) {
			model_place(h, rows, level, e->growth, t0, t1, flags);
			if (level)
				model_extremes(h, rows, level, e->growth, t0, t1);
		} else {
			uint64_t share = (uint64_t)((wide)e->growth * (t1 - bin) / (t1 - t0));
			int64_t at = floor_to(t0, base) + base;
			flag_rows(rows, level, t0, bin, width, flags);
			model_row(rows, level, floor_to(at, width))->unplaced += e->growth - share;
			model_place(h, rows, level, share, bin, t1, flags);
		}
	}
}

static void model_all(const struct history *h, struct rows *rows)
{
	int64_t last = 0;
	bool known = false;

	for (size_t i = 0; i < h->count; i++) {
		const struct event *e = &h->events[i];
		if (e->step == STEP_NOTHING)
			continue;
		if (known)
			model_interval(h, rows, last, e);
		last = e->sample.ts_ms;
		known = true;
	}
}

/* ---- Histories ------------------------------------------------------------------------------- */

struct device {
	int64_t now_ms, booted_ms; /* the latter: when its uptime was 0 */
	uint64_t value;
	bool tells_uptime;
	bool known; /* a sample was taken */
	bool last_had_uptime;
};

/* Rates that every line carries, so that nothing but what is planned is doubted. */
static uint64_t some_growth(struct random *r, int64_t span_ms, unsigned width_bits)
{
	uint64_t most = (uint64_t)span_ms * 100000000; /* 100e9 per second */
	uint64_t range = width_bits == 32 ? UINT64_C(0xe0000000) : UINT64_C(1) << 62;

	switch (random_below(r, 5)) {
	case 0:
		most = 3;
		break;
	case 1:
		most = (uint64_t)span_ms;
		break;
	case 2:
		most = (uint64_t)span_ms * 1000;
		break;
	default:
		break;
	}
	return random_below(r, (most < range ? most : range) + 1);
}

static int64_t some_span(struct random *r, int64_t base)
{
	uint64_t b = (uint64_t)base;

	switch (random_below(r, 12)) {
	case 0:
		return 1 + (int64_t)random_below(r, 3 * b);
	case 1:
		return 1 + (int64_t)random_below(r, 5);
	case 2:
		return base;
	case 3:
		return 3 * base + (int64_t)random_below(r, 2);
	case 4:
		return 1 + (int64_t)random_below(r, 20 * b);
	case 5:
		return random_below(r, 30) ? base : 1 + (int64_t)random_below(r, 3000 * b);
	default:
		return base - base / 10 + (int64_t)random_below(r, b / 5 + 1);
	}
}

static void tell(struct random *r, struct device *d, struct counter_sample *s)
{
	*s = (struct counter_sample){.ts_ms = d->now_ms, .value = d->value};
	s->has_uptime = d->tells_uptime && random_below(r, 20) != 0;
	s->uptime_ts_ms = d->now_ms;
	s->uptime_ticks = (uint32_t)((d->now_ms - d->booted_ms) / 10);
}

static void grow(struct random *r, struct history *h, struct device *d, struct event *e,
		 int64_t span)
{
	uint64_t largest = h->width_bits == 32 ? UINT32_MAX : UINT64_MAX;
	uint64_t before = d->value;

	e->step = STEP_GROWS;
	e->growth = some_growth(r, span, h->width_bits);
	d->value = (before + e->growth) & largest;
	tell(r, d, &e->sample);
	if (d->value >= before)
		return;
	e->flags = COUNTER_WRAP;
	/* It fell. Without knowing that the device was up all the time, nobody can tell. */
	if (!e->sample.has_uptime || !d->last_had_uptime)
		e->step = STEP_LOST;
	/* Agents whose uptime has ticked only once in this time do not show that it rises. */
	if (e->sample.uptime_ticks == (uint32_t)((d->now_ms - span - d->booted_ms) / 10))
		e->step = STEP_LOST;
}

/* The counter steps back a little, or the uptime is not known while it falls. */
static void step_back(struct random *r, struct device *d, struct event *e)
{
	uint64_t by = 1 + random_below(r, 1000);

	e->step = STEP_LOST;
	if (d->value < by) {
		e->step = STEP_GROWS;
		by = 0;
	}
	d->value -= by;
	tell(r, d, &e->sample);
}

static void reboot(struct random *r, struct history *h, struct device *d, struct event *e,
		   int64_t span)
{
	uint64_t before = d->value;

	d->booted_ms = d->now_ms - (int64_t)random_below(r, (uint64_t)span);
	d->value = some_growth(r, 1 + (d->now_ms - d->booted_ms), h->width_bits);
	tell(r, d, &e->sample);
	e->step = STEP_GROWS;
	if (!e->sample.has_uptime || !d->last_had_uptime) {
		e->step = d->value >= before ? STEP_GROWS : STEP_LOST;
		e->growth = d->value - before;
		return;
	}
	e->growth = d->value >= before ? d->value - before : d->value;
	e->flags = COUNTER_RESET;
}

static void repeat(struct random *r, struct history *h, struct event *e)
{
	const struct event *old = &h->events[random_below(r, h->count)];

	e->sample = old->sample;
	e->step = STEP_NOTHING;
	/* Another value for a time that was. */
	if (random_below(r, 2))
		e->sample.value ^= random_next(r);
}

static void next_event(struct random *r, struct history *h, struct device *d)
{
	struct event *e = &h->events[h->count];
	uint64_t kind = random_below(r, 20);
	int64_t span = some_span(r, h->config->base_ms);

	*e = (struct event){.step = STEP_GROWS};
	if (d->known && kind == 0) {
		repeat(r, h, e);
		h->count++;
		return;
	}
	d->now_ms += span;
	if (!d->known)
		tell(r, d, &e->sample);
	else if (kind == 1)
		step_back(r, d, e);
	/* Uptimes that differ by no more than clocks may are left to the cases worked by hand. */
	else if (kind == 2 && d->now_ms - d->booted_ms > 100000 + span * 2)
		reboot(r, h, d, e, span);
	else
		grow(r, h, d, e, span);
	d->known = true;
	d->last_had_uptime = e->sample.has_uptime;
	h->count++;
}

static void make_history(struct random *r, struct history *h)
{
	struct device d = {.tells_uptime = random_below(r, 4) != 0};
	size_t count = 2 + random_below(r, SAMPLES_MAX - 2);

	*h = (struct history){.config = &configs[random_below(r, ARRAY_LEN(configs))],
			      .width_bits = random_below(r, 2) ? 64 : 32};
	d.now_ms = (int64_t)random_below(r, 1600000000) * 1000 - 100000000;
	/* Up for at least a day, at most until its uptime has wrapped twice. */
	d.booted_ms = d.now_ms - 86400000 - (int64_t)random_below(r, UINT64_C(80000000000));
	d.value = h->width_bits == 32  ? random_below(r, UINT32_MAX)
		  : random_below(r, 2) ? UINT64_MAX - random_below(r, UINT64_C(1) << 40)
				       : random_below(r, UINT64_C(1) << 50);
	while (h->count < count)
		next_event(r, h, &d);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct counter_row *x = a, *y = b;

	if (x->level != y->level)
		return x->level - y->level;
	return x->start_ms < y->start_ms ? -1 : x->start_ms > y->start_ms;
}

static bool rows_equal(const struct counter_row *a, const struct counter_row *b)
{
	return a->level == b->level && a->start_ms == b->start_ms && a->val == b->val &&
	       a->unplaced == b->unplaced && a->covered_ms == b->covered_ms &&
	       a->count == b->count && a->flags == b->flags && a->has_rate == b->has_rate &&
	       (!a->has_rate || (a->min == b->min && a->max == b->max &&
				 a->min_ts_ms == b->min_ts_ms && a->max_ts_ms == b->max_ts_ms));
}

static void show(const char *who, const struct counter_row *row)
{
	print_error("%s: level %u start %lld val %llu unplaced %llu covered %u count %u flags %u "
		    "rates %d %g %g\n",
		    who, row->level, (long long)row->start_ms, (unsigned long long)row->val,
		    (unsigned long long)row->unplaced, row->covered_ms, row->count, row->flags,
		    row->has_rate, row->min, row->max);
}

static void assert_rows(uint64_t seed, const struct rows *expected, const struct rows *got)
{
	qsort(expected->list, expected->count, sizeof(*expected->list), by_place);
	qsort(got->list, got->count, sizeof(*got->list), by_place);
	for (size_t i = 0; i < expected->count && i < got->count; i++) {
		if (rows_equal(&expected->list[i], &got->list[i]))
			continue;
		show("expected", &expected->list[i]);
		show("got", &got->list[i]);
		fail_msg("GRANARY_SEED=%llu", (unsigned long long)seed);
	}
	if (expected->count != got->count)
		fail_msg("GRANARY_SEED=%llu: %zu rows expected, %zu there",
			 (unsigned long long)seed, expected->count, got->count);
}

static void assert_growth(uint64_t seed, const struct history *h, const struct rows *rows)
{
	uint64_t growth = 0, sums[COUNTER_LEVELS_MAX] = {0};
	bool known = false;

	for (size_t i = 0; i < h->count; i++) {
		if (h->events[i].step == STEP_GROWS && known)
			growth += h->events[i].growth;
		known = true;
	}
	for (size_t i = 0; i < rows->count; i++)
		sums[rows->list[i].level] += rows->list[i].val + rows->list[i].unplaced;
	for (size_t level = 0; level <= h->config->period_count; level++)
		if (sums[level] != growth)
			fail_msg("GRANARY_SEED=%llu: level %zu has %llu of %llu",
				 (unsigned long long)seed, level, (unsigned long long)sums[level],
				 (unsigned long long)growth);
}

static void pass_through_bytes(const struct history *h, struct counter *counter)
{
	struct cursor from;
	struct buf bytes;

	const struct counter *state = counter;

	buf_init(&bytes, 4096);
	assert_int_equal(counter_encode(h->config, &state, 1, &bytes), 0);
	memset(counter, 0xaa, sizeof(*counter));
	from = cursor_of(bytes.data, bytes.len);
	assert_int_equal(counter_decode(h->config, &from, &counter, 1), 0);
	assert_int_equal(cursor_left(&from), 0);
	buf_release(&bytes);
}

/* With restarts, after each of which some of what was fed comes again. */
static void run_all(struct random *r, const struct history *h, bool restarts, struct rows *rows)
{
	struct counter_def def = {h->config, h->width_bits, false};
	struct counter_out out = {.rows = rows->list, .max = ROWS_MAX};
	struct counter counter = {0};

	for (size_t i = 0; i < h->count; i++) {
		enum counter_outcome outcome =
			counter_feed(&def, &counter, &h->events[i].sample, &out);
		if (h->events[i].step == STEP_NOTHING)
			assert_true(outcome == COUNTER_REPEATED || outcome == COUNTER_REFUSED);
		if (!restarts || random_below(r, 4))
			continue;
		pass_through_bytes(h, &counter);
		for (size_t again = random_below(r, i + 1); again <= i; again++)
			counter_feed(&def, &counter, &h->events[again].sample, &out);
	}
	counter_emit_open(h->config, &counter, &out);
	rows->count = out.count;
}

static void random_histories_are_as_the_model_says(void **state)
{
	const char *is_long = getenv("GRANARY_LONG"), *from = getenv("GRANARY_SEED");
	uint64_t seed = from ? strtoull(from, NULL, 10) : 1;
	size_t count = from ? 1 : is_long && is_long[0] == '1' ? HISTORIES_LONG : HISTORIES;
	struct rows expected = {.list = mem_alloc_array(ROWS_MAX, sizeof(struct counter_row))};
	struct rows got = {.list = mem_alloc_array(ROWS_MAX, sizeof(struct counter_row))};
	struct history *h = mem_alloc(sizeof(*h));

	(void)state;
	for (size_t i = 0; i < count; i++, seed++) {
		struct random r;
		random_init(&r, seed);
		make_history(&r, h);
		expected.count = 0;
		model_all(h, &expected);
		run_all(&r, h, false, &got);
		assert_rows(seed, &expected, &got);
		assert_growth(seed, h, &got);
		run_all(&r, h, true, &got);
		assert_rows(seed, &expected, &got);
	}
	mem_free(h);
	mem_free(expected.list);
	mem_free(got.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_histories_are_as_the_model_says),
	};
	return cmocka_run_group_tests_name("rate_history", tests, NULL, NULL);
}
