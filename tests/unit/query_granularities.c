/* Queries over raw data and roll-ups together: whatever answers them, windows hold the same, also
 * where some of the samples came late and have rows of their own. The roll-ups are made here, by
 * the plainest of loops. */
#include <math.h>

#include "marks/watermark_cells.h"
#include "query_harness.h"
#include "task_step.h"
#include "retention/granularity.h"
#include "retention/retention.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)
/* 2020-09-13T00:00:00Z, 12:26:40 before the clock's now; `date -u -d @1599955200`. */
#define DAY0_MS INT64_C(1599955200000)

enum { SAMPLES_MAX = 4000, SERIES = 3, POINTS_MAX = 20000, ROUNDS = 200 };

static struct granularities granularities;
static int64_t rolled_ms;
static bool counts, lates; /* the series are counters; some of their samples came late */

static int64_t rolled_before(UNUSED void *owner, UNUSED struct slice tenant,
			     UNUSED struct slice metric, UNUSED const struct watermark_asked *asked)
{
	return rolled_ms;
}

static bool is_counter(UNUSED void *owner, UNUSED struct slice metric)
{
	return counts;
}

/* Granularities of 5 min and 1 h, rolled up in slots of 2 h, everything kept for ever. */
static void with_granularities(int64_t rolled_before_ms)
{
	granularities = (struct granularities){
		.slot_ms = 2 * HOUR_MS, .count = 2, .list = {{5 * MINUTE_MS, 0}, {HOUR_MS, 0}}};
	rolled_ms = rolled_before_ms;
	options.granularities = &granularities;
	options.rolled_before_ms = rolled_before;
	options.is_counter = is_counter;
	engine_again();
}

/* ---- Roll-ups, the plainest way ---------------------------------------------------------------
 */

struct sample {
	int64_t ts_ms;
	struct value value;
	bool late;
};

struct samples {
	size_t count;
	struct sample list[SAMPLES_MAX];
};

static void put_row(uint64_t handle, int64_t width_ms, int64_t ts_ms, const struct value row[8])
{
	struct store_write *write = store_write_new(store, 1 << 20);
	write->executor = &loop.executor;
	write->done = written;
	assert_int_equal(store_append(write,
				      &(struct store_target){TABLE_DATA_DOWNSAMPLED, RETENTION_EVER,
							     width_ms},
				      ts_ms, &handle, 1, row),
			 0);
	assert_int_equal(store_write_submit(write), 0);
	pump();
	store_write_free(write);
}

static struct value sum_value(const struct sample *list, size_t count, bool *integers)
{
	double doubles = 0;
	int64_t sum = 0;
	*integers = true;
	for (size_t i = 0; i < count; i++) {
		*integers = *integers && list[i].value.type == VALUE_I64;
		doubles += value_as_f64(list[i].value);
		sum += list[i].value.type == VALUE_I64 ? (int64_t)list[i].value.bits : 0;
	}
	return *integers ? value_i64(sum) : value_f64(doubles);
}

/* `whole`: with what came first and last. */
static void put_gauge_bucket(uint64_t handle, int64_t width_ms, int64_t ts_ms,
			     const struct sample *list, size_t count, bool whole)
{
	bool integers;
	struct value row[8] = {list[0].value, list[0].value, sum_value(list, count, &integers),
			       value_i64((int64_t)count)};
	for (size_t i = 1; i < count; i++) {
		if (value_compare(list[i].value, row[0]) < 0)
			row[0] = list[i].value;
		if (value_compare(list[i].value, row[1]) > 0)
			row[1] = list[i].value;
	}
	if (whole) {
		row[6] = list[0].value;
		row[7] = list[count - 1].value;
	}
	put_row(handle, width_ms, ts_ms, row);
}

static void put_counter_bucket(uint64_t handle, int64_t width_ms, int64_t ts_ms,
			       const struct sample *list, size_t count, bool whole)
{
	bool integers;
	struct value row[8] = {{0}};
	int64_t increase = 0;
	for (size_t i = 1; i < count; i++) {
		int64_t from = (int64_t)list[i - 1].value.bits, to = (int64_t)list[i].value.bits;
		increase += to < from ? to : to - from;
	}
	row[2] = sum_value(list, count, &integers);
	if (whole) {
		row[5] = value_i64(increase);
		row[6] = list[0].value;
		row[7] = list[count - 1].value;
	}
	put_row(handle, width_ms, ts_ms, row);
}

/* Those that came late, or those that did not. */
static size_t choose(const struct sample *list, size_t count, bool late, struct sample *chosen)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		if (list[i].late == late)
			chosen[n++] = list[i];
	}
	return n;
}

static void put_bucket(uint64_t handle, int64_t width_ms, int64_t ts_ms, const struct sample *list,
		       size_t count)
{
	static struct sample some[SAMPLES_MAX];
	size_t n = choose(list, count, false, some);
	bool whole = !n;
	if (n)
		(counts ? put_counter_bucket : put_gauge_bucket)(handle, width_ms, ts_ms, some, n,
								 true);
	n = choose(list, count, true, some);
	if (n)
		(counts ? put_counter_bucket : put_gauge_bucket)(handle, width_ms, ts_ms + 1, some,
								 n, whole);
}

/* Buckets of a width that begin before `before_ms`. */
static void roll_up(uint64_t handle, const struct samples *samples, int64_t width_ms,
		    int64_t before_ms)
{
	for (size_t i = 0, n; i < samples->count; i += n) {
		int64_t ts_ms = floor_to(samples->list[i].ts_ms, width_ms);
		for (n = 1; i + n < samples->count; n++) {
			if (floor_to(samples->list[i + n].ts_ms, width_ms) != ts_ms)
				break;
		}
		if (ts_ms >= before_ms)
			return;
		put_bucket(handle, width_ms, ts_ms, &samples->list[i], n);
	}
}

static void put_samples(uint64_t handle, const struct samples *samples)
{
	for (size_t i = 0; i < samples->count; i++)
		put_value(handle, samples->list[i].ts_ms, samples->list[i].value);
}

/* ---- Random data --------------------------------------------------------------------------------
 */

static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % n;
}

static struct value random_value(bool integers)
{
	int64_t n = (int64_t)random_below(2000) - 1000;
	return integers ? value_i64(n) : value_f64((double)n / 8 + 0.1);
}

/* Some 12 hours from DAY0 on, with gaps; a counter begins again now and then. */
static void make_samples(struct samples *samples, size_t series)
{
	int64_t ts_ms = DAY0_MS + (int64_t)random_below(600000), counter = 0;
	samples->count = 0;
	while (ts_ms < T0_MS && samples->count < SAMPLES_MAX) {
		struct value value = random_value(series == 1);
		counter = random_below(40) ? counter + (int64_t)random_below(100)
					   : (int64_t)random_below(50);
		if (counts)
			value = value_i64(counter);
		samples->list[samples->count++] =
			(struct sample){ts_ms, value, lates && random_below(3) == 0};
		ts_ms += (int64_t)random_below(random_below(30) ? 180000 : 5400000) + 1;
	}
}

static struct samples data[SERIES];

static void make_data(void)
{
	for (size_t i = 0; i < SERIES; i++) {
		char tags[32];
		snprintf(tags, sizeof(tags), "h=%c,os=%s", (char)('a' + i), i ? "l" : "w");
		uint64_t handle = open_series("t", "m", tags);
		make_samples(&data[i], i);
		put_samples(handle, &data[i]);
		roll_up(handle, &data[i], 5 * MINUTE_MS, rolled_ms);
		roll_up(handle, &data[i], HOUR_MS, rolled_ms);
	}
}

/* ---- Answers ------------------------------------------------------------------------------------
 */

struct answer {
	struct query *query;
	size_t count;
	size_t rows[POINTS_MAX];
	int64_t ts_ms[POINTS_MAX];
	struct value values[POINTS_MAX];
	size_t part_count;
	struct query_part parts[QUERY_PARTS_MAX];
};

static void keep_all(void *owner)
{
	struct answer *a = owner;
	struct query_chunk chunk;
	while (query_next(a->query, 100, &chunk)) {
		for (size_t i = 0; i < chunk.count; i++, a->count++) {
			assert_true(a->count < POINTS_MAX);
			a->rows[a->count] = chunk.series_index;
			a->ts_ms[a->count] = chunk.ts_ms[i];
			a->values[a->count] =
				(struct value){chunk.bits[i], (enum value_type)chunk.types[i]};
		}
	}
}

static void answer(struct answer *a, const struct query_spec *spec)
{
	*a = (struct answer){.query = query_new(engine, keep_all, a)};
	a->query->spec = *spec;
	a->query->spec.tenant = SLICE("t");
	a->query->spec.metric = SLICE("m");
	assert_int_equal(query_start(a->query), 0);
	pump();
	assert_true(a->query->ended);
	if (a->query->err)
		fail_msg("%s", a->query->error.text);
	assert_false(a->query->cut);
	const struct query_part *parts = query_parts(a->query, &a->part_count);
	memcpy(a->parts, parts, a->part_count * sizeof(*parts));
	query_free(a->query);
}

static bool same_value(struct value a, struct value b, bool rounded)
{
	if (a.type == VALUE_NONE || b.type == VALUE_NONE)
		return a.type == b.type;
	if (!rounded)
		return value_compare(a, b) == 0;
	double x = value_as_f64(a), y = value_as_f64(b);
	return fabs(x - y) <= 1e-9 * (1 + fabs(x));
}

static void print_answer(const struct answer *a)
{
	for (size_t i = 0; i < a->part_count; i++)
		print_error("  %lld .. %lld: %d\n", (long long)(a->parts[i].from_ms - DAY0_MS),
			    (long long)(a->parts[i].to_ms - DAY0_MS), a->parts[i].granularity);
}

static void expect_same(const struct answer *raw, const struct answer *planned, bool rounded,
			const char *what)
{
	size_t i = 0;
	while (i < raw->count && i < planned->count && raw->rows[i] == planned->rows[i] &&
	       raw->ts_ms[i] == planned->ts_ms[i] &&
	       same_value(raw->values[i], planned->values[i], rounded))
		i++;
	if (i == raw->count && i == planned->count)
		return;
	print_answer(planned);
	fail_msg("%s: point %zu of %zu, %zu: %lld %.17g, %lld %.17g", what, i, raw->count,
		 planned->count, (long long)(raw->ts_ms[i] - DAY0_MS), value_as_f64(raw->values[i]),
		 (long long)(planned->ts_ms[i] - DAY0_MS), value_as_f64(planned->values[i]));
}

/* ---- Whatever answers, it is the same
 * ------------------------------------------------------------ */

static const struct slice by_os[] = {{"os", 2}};

static void random_spec(struct query_spec *spec)
{
	static const int64_t windows[] = {
		MINUTE_MS,      5 * MINUTE_MS, 7 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS,
		90 * MINUTE_MS, 2 * HOUR_MS,   3 * HOUR_MS,   24 * HOUR_MS,   720 * HOUR_MS};
	static const enum query_fn gauge_fns[] = {FN_MIN,   FN_MAX,   FN_SUM, FN_AVG,
						  FN_COUNT, FN_FIRST, FN_LAST};
	static const enum query_fn counter_fns[] = {FN_SUM,  FN_MAX,      FN_FIRST,
						    FN_LAST, FN_INCREASE, FN_RATE};
	/* Of what came late, the first ones: nobody knows what came before what. */
	uint64_t gauge_count = lates ? 5 : ARRAY_LEN(gauge_fns);
	uint64_t counter_count = lates ? 2 : ARRAY_LEN(counter_fns);
	int64_t unit = (int64_t[]){1, MINUTE_MS, 5 * MINUTE_MS, HOUR_MS}[random_below(4)];
	int64_t a = floor_to((int64_t)random_below(14 * HOUR_MS), unit) + DAY0_MS - HOUR_MS;
	int64_t b = floor_to((int64_t)random_below(14 * HOUR_MS), unit) + DAY0_MS - HOUR_MS;
	*spec = (struct query_spec){
		.start_ms = a < b ? a : b,
		.end_ms = a < b ? b : a,
		.fn = counts ? counter_fns[random_below(counter_count)]
			     : gauge_fns[random_below(gauge_count)],
		.window_ms = windows[random_below(ARRAY_LEN(windows))],
		.agg = random_below(2) ? (enum query_agg)random_below(6) : AGG_NONE,
		.by = by_os,
		.by_count = random_below(2),
		.fill = (enum query_fill)random_below(3),
	};
}

static bool is_rounded(const struct query_spec *spec)
{
	return spec->fn == FN_SUM || spec->fn == FN_AVG || spec->fn == FN_RATE ||
	       spec->agg == AGG_SUM || spec->agg == AGG_AVG;
}

static size_t ask_both_ways(uint64_t first_seed)
{
	static struct answer raw, planned;
	size_t coarse = 0;
	seed = first_seed;
	with_granularities(DAY0_MS + (int64_t)random_below(7) * 2 * HOUR_MS);
	make_data();
	for (int i = 0; i < 60; i++) {
		struct query_spec spec;
		char what[200];
		random_spec(&spec);
		options.granularities = NULL;
		engine_again();
		answer(&raw, &spec);
		options.granularities = &granularities;
		options.late_after_ms = lates;
		options.slice_points = random_below(2) ? 1 + random_below(40) : 0;
		engine_again();
		answer(&planned, &spec);
		options.slice_points = 0;
		snprintf(what, sizeof(what), "seed %llu, %d: %s of %lld by %d from %lld to %lld",
			 (unsigned long long)first_seed, i, query_fn_name(spec.fn),
			 (long long)spec.window_ms, (int)spec.agg,
			 (long long)(spec.start_ms - DAY0_MS), (long long)(spec.end_ms - DAY0_MS));
		expect_same(&raw, &planned, is_rounded(&spec), what);
		for (size_t p = 0; p < planned.part_count; p++)
			coarse += planned.parts[p].granularity >= 0;
	}
	return coarse;
}

static void test_windows_are_the_same_whatever_answers(void **state)
{
	size_t coarse = 0;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		counts = round % 2 == 0;
		lates = round % 4 >= 2;
		coarse += ask_both_ways(round);
		teardown(state);
		setup(state);
	}
	counts = lates = false;
	assert_true(coarse > 20 * ROUNDS);
}

/* ---- Points as they are stored ------------------------------------------------------------------
 */

static void add_wanted(struct answer *a, size_t row, int64_t ts_ms, struct value value)
{
	assert_true(a->count < POINTS_MAX);
	a->rows[a->count] = row;
	a->ts_ms[a->count] = ts_ms;
	a->values[a->count++] = value;
}

/* Of one series what a part is to give: samples, or a value for each bucket. */
static void want_part(struct answer *a, size_t row, const struct query_part *part)
{
	const struct samples *samples = &data[row];
	int64_t width_ms =
		part->granularity < 0 ? 1 : granularities.list[part->granularity].width_ms;
	for (size_t i = 0, n; i < samples->count && part->granularity != QUERY_PART_NONE; i += n) {
		int64_t ts_ms = floor_to(samples->list[i].ts_ms, width_ms);
		double sum = 0;
		struct value last = samples->list[i].value;
		bool late = true;
		for (n = 0; i + n < samples->count; n++) {
			if (floor_to(samples->list[i + n].ts_ms, width_ms) != ts_ms)
				break;
			const struct sample *sample = &samples->list[i + n];
			sum += value_as_f64(sample->value);
			/* What came in time says what was last, if anything did. */
			if (late || !sample->late)
				last = sample->value;
			late = late && sample->late;
		}
		if (ts_ms < part->from_ms || ts_ms >= part->to_ms)
			continue;
		add_wanted(a, row, ts_ms,
			   counts || part->granularity < 0 ? last : value_f64(sum / (double)n));
	}
}

static void ask_for_points(uint64_t first_seed)
{
	static struct answer wanted, got;
	seed = first_seed;
	with_granularities(T0_MS);
	make_data();
	for (int i = 0; i < 30; i++) {
		int64_t start_ms = DAY0_MS + (int64_t)random_below(12 * HOUR_MS);
		int64_t end_ms = start_ms + (int64_t)random_below(12 * HOUR_MS);
		retention.levels_ms[0] = 1 + (int64_t)random_below(8 * HOUR_MS);
		granularities.list[0].retention_ms = 1 + (int64_t)random_below(14 * HOUR_MS);
		options.slice_points = random_below(3) ? 1 + random_below(60) : 0;
		options.late_after_ms = lates;
		engine_again();
		answer(&got, &(struct query_spec){.start_ms = start_ms, .end_ms = end_ms});
		wanted.count = 0;
		for (size_t row = 0; row < SERIES; row++) {
			for (size_t p = 0; p < got.part_count; p++)
				want_part(&wanted, row, &got.parts[p]);
		}
		expect_same(&wanted, &got, true, "points");
	}
}

static void test_points_of_all_parts_are_given(void **state)
{
	for (uint64_t round = 1; round <= ROUNDS / 4; round++) {
		counts = round % 2 == 0;
		lates = round % 4 >= 2;
		ask_for_points(round);
		teardown(state);
		setup(state);
	}
	counts = lates = false;
}

/* ---- By hand ------------------------------------------------------------------------------------
 */

#define AT(minutes) ((minutes)*MINUTE_MS)
#define NOON        (T0_MS - 1600000) /* T0 is 12:26:40 */

static struct query_spec *ask_from_noon(struct asked *a, int64_t start_ms, int64_t end_ms)
{
	struct query_spec *spec = ask(a, take_all, NULL, 0, 0);
	spec->start_ms = NOON + start_ms;
	spec->end_ms = NOON + end_ms;
	return spec;
}

static void put_gauge(uint64_t handle, int64_t width_ms, int64_t ts_ms, double sum, int count)
{
	struct value row[8] = {value_f64(sum / count), value_f64(sum / count), value_f64(sum),
			       value_i64(count)};
	put_row(handle, width_ms, ts_ms, row);
}

static void put_counter(uint64_t handle, int64_t width_ms, int64_t ts_ms, int64_t increase,
			int64_t first, int64_t last)
{
	struct value row[8] = {[2] = value_i64(0),
			       [5] = value_i64(increase),
			       [6] = value_i64(first),
			       [7] = value_i64(last)};
	put_row(handle, width_ms, ts_ms, row);
}

/* Two series that are raw from 12:00 on (kept for 26 min 40 s) and buckets of 5 min before: 11:50
 * and 11:55. Their points are means; agg=avg weighs them by their counts. */
static void test_older_points_are_means(void **state)
{
	(void)state;
	struct asked a;
	retention.levels_ms[0] = 1600000;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a"), y = open_series("t", "m", "h=b");
	put(x, NOON - 1, 100); /* no longer visible */
	put(x, NOON, 1);
	put(y, NOON, 2);
	put(y, NOON + 1, 3);
	put_gauge(x, AT(5), NOON - AT(10), 6, 3);
	put_gauge(y, AT(5), NOON - AT(10), 10, 1);
	put_gauge(y, AT(5), NOON - AT(5), 9, 2);
	put_gauge(y, AT(5), NOON, 5, 2); /* raw is there */
	put_gauge(y, HOUR_MS, NOON - AT(60), 19, 3);
	ask_from_noon(&a, -AT(20), AT(10));
	finish(&a, "h=a: -2200000=2; +h=a: -1600000=1; h=b: -2200000=10 -1900000=4.5; "
		   "+h=b: -1600000=2 -1599999=3; ");
	ask_from_noon(&a, -AT(20), AT(10))->agg = AGG_AVG;
	finish(&a, ": -2200000=4 -1900000=4.5; +: -1600000=1.5 -1599999=3; ");
	ask_from_noon(&a, -AT(20), AT(10))->agg = AGG_MAX;
	finish(&a, ": -2200000=10 -1900000=4.5; +: -1600000=2 -1599999=3; ");
}

/* In slices of 2 points, and what one series has fits none. */
static void test_older_points_in_slices(void **state)
{
	(void)state;
	struct asked a;
	retention.levels_ms[0] = 1600000;
	options.slice_points = 2;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a"), y = open_series("t", "m", "h=b");
	for (int i = 1; i <= 5; i++)
		put_gauge(x, AT(5), NOON - AT(5 * i), i, 1);
	for (int i = 0; i < 3; i++)
		put(x, NOON + i, i ? -i : 0);
	put(y, NOON, 7);
	ask_from_noon(&a, -AT(60), AT(10));
	finish(&a, "h=a: -3100000=5 -2800000=4; +h=a: -2500000=3 -2200000=2; +h=a: -1900000=1; "
		   "+h=a: -1600000=0 -1599999=-1; +h=a: -1599998=-2; h=b: -1600000=7; ");
}

static void test_older_points_of_counters_are_the_last(void **state)
{
	(void)state;
	struct asked a;
	counts = true;
	retention.levels_ms[0] = 1600000;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a");
	put_counter(x, AT(5), NOON - AT(5), 5, 10, 15);
	put_value(x, NOON, value_i64(18));
	ask_from_noon(&a, -AT(20), AT(10));
	finish(&a, "h=a: -1900000=15i; +h=a: -1600000=18i; ");
	counts = false;
}

static void expect_growth(enum query_fn fn, int64_t window_ms, bool stored, const char *wanted)
{
	struct asked a;
	struct query_spec *spec = ask_from_noon(&a, -AT(30), AT(10));
	spec->fn = fn;
	spec->window_ms = window_ms;
	spec->stored = stored;
	finish(&a, wanted);
}

/* Buckets 10..15 (+5), 20..4 (+7: a reset within), 2..3 (+1: a reset before), then raw 5, 1, 2.
 * Steps: 20 - 15 = 5, 2 after 4 is 2, 5 - 3 = 2; raw: 1 after 5 is 1, 2 - 1 = 1. */
static void test_increase_over_resets(void **state)
{
	(void)state;
	counts = true;
	retention.levels_ms[0] = 1600000;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a");
	put_counter(x, AT(5), NOON - AT(15), 5, 10, 15);
	put_counter(x, AT(5), NOON - AT(10), 7, 20, 4);
	put_counter(x, AT(5), NOON - AT(5), 1, 2, 3);
	put_value(x, NOON + 10, value_i64(5));
	put_value(x, NOON + AT(5), value_i64(1));
	put_value(x, NOON + AT(5) + 1, value_i64(2));
	expect_growth(FN_INCREASE, AT(5), false,
		      "h=a: -2500000=5i -2200000=12i -1900000=3i -1600000=2i -1300000=2i; ");
	/* From 11:30 to 12:10, all in one day: 5 + 12 + 3 + 2 + 2, in 2,400 s. */
	expect_growth(FN_INCREASE, AT(24 * 60), false, "h=a: -44800000=24i; ");
	expect_growth(FN_RATE, AT(24 * 60), false, "h=a: -44800000=0.01; ");
	/* As it is stored: within each bucket. */
	expect_growth(FN_INCREASE, AT(5), true, "h=a: -2500000=5 -2200000=7 -1900000=1; ");
	counts = false;
}

/* Rows of when m was no counter: 10 to 15 and 20 to 4, which began again at zero, so 5 and 4 at
 * least; of 11:55 there are late samples alone, whose row may not say where they begin. Then a
 * counter's row, 6..8 by way of a reset (+9). Steps: 20 - 15 = 5, 6 - 4 = 2. */
static void test_increase_of_what_was_rolled_up_as_a_gauge(void **state)
{
	(void)state;
	counts = true;
	retention.levels_ms[0] = 1600000;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a");
	struct value row[8] = {value_i64(10), value_i64(15), value_i64(25), value_i64(2),
			       {0},           {0},           value_i64(10), value_i64(15)};
	put_row(x, AT(5), NOON - AT(20), row);
	row[6] = value_i64(20);
	row[7] = value_i64(4);
	put_row(x, AT(5), NOON - AT(15), row);
	row[6] = row[7] = (struct value){0};
	put_row(x, AT(5), NOON - AT(10) + 1, row);
	put_counter(x, AT(5), NOON - AT(5), 9, 6, 8);
	expect_growth(FN_INCREASE, AT(5), false, "h=a: -2800000=5i -2500000=9i -1900000=11i; ");
	counts = false;
}

/* Raw samples are kept for ever, but of m for 26 min 40 s; buckets of 5 min for ever, but of m for
 * 2 h, so from 10:26:40 on: the bucket of 10:25 is not whole. */
static void test_rules_clip_what_is_shown(void **state)
{
	(void)state;
	static const char *const items[] = {"t/m/raw:1600s", "*/m*/5m:2h"};
	struct retention_rules rules;
	struct errbuf e;
	struct asked a;
	options.retention = &rules;
	with_granularities(NOON);
	assert_int_equal(retention_parse(items, 2, &granularities, 0, &rules, &e), 0);
	uint64_t x = open_series("t", "m", "h=a");
	put(x, NOON - 1, 100);
	put(x, NOON, 1);
	put_gauge(x, AT(5), NOON - AT(95), 9, 3);
	put_gauge(x, AT(5), NOON - AT(10), 6, 3);
	ask_from_noon(&a, -AT(110), AT(10));
	finish(&a, "h=a: -2200000=2; +h=a: -1600000=1; ");
	/* The same of a tenant whom only the second names. */
	uint64_t y = open_series("u", "m", "h=a");
	put(y, NOON - AT(100), 5);
	put(y, NOON, 6);
	ask_from_noon(&a, -AT(110), AT(10))->tenant = SLICE("u");
	finish(&a, "h=a: -7600000=5 -1600000=6; ");
	options.retention = &retention;
}

/* 11:50 of h=a: 6 in three samples and a late one of 10; 11:55: 4 in two. Of h=b there are only
 * late ones, of 11:50: 9 in three. */
static void test_late_samples_count_beside_the_others(void **state)
{
	(void)state;
	retention.levels_ms[0] = 1600000;
	options.late_after_ms = 1;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a"), y = open_series("t", "m", "h=b");
	put_gauge(x, AT(5), NOON - AT(10), 6, 3);
	put_gauge(x, AT(5), NOON - AT(10) + 1, 10, 1);
	put_gauge(x, AT(5), NOON - AT(5), 4, 2);
	put_gauge(y, AT(5), NOON - AT(10) + 1, 9, 3);
	for (options.slice_points = 1; options.slice_points < 6; options.slice_points++) {
		struct asked a;
		engine_again();
		ask_from_noon(&a, -AT(20), AT(10));
		finish(&a, "h=a: -2200000=4 -1900000=2; h=b: -2200000=3; ");
		/* (6 + 10 + 9) / 7 */
		ask_from_noon(&a, -AT(20), AT(10))->agg = AGG_AVG;
		finish(&a, ": -2200000=3.57143 -1900000=2; ");
		ask_from_noon(&a, -AT(20), AT(10))->agg = AGG_COUNT;
		finish(&a, ": -2200000=2i -1900000=1i; ");
		ask_from_noon(&a, -AT(20), AT(10))->agg = AGG_MAX;
		finish(&a, ": -2200000=4 -1900000=2; ");
		expect_growth(FN_MAX, AT(5), true,
			      "h=a: -2200000=10 -1900000=2; h=b: -2200000=3; ");
		expect_growth(FN_COUNT, AT(5), true,
			      "h=a: -2200000=4i -1900000=2i; h=b: -2200000=3i; ");
		expect_growth(FN_AVG, HOUR_MS, false, "h=a: -5200000=3.33333; h=b: -5200000=3; ");
	}
}

/* Asks what any store answers; what came of it says nothing here. */
static int ask_first(UNUSED void *owner, struct slice tenant, struct slice metric,
		     struct store_read *read, struct watermark_asked **asked)
{
	return watermark_cells_ask(read, tenant, metric, asked);
}

static int refuse_to_ask(UNUSED void *owner, UNUSED struct slice tenant, UNUSED struct slice metric,
			 UNUSED struct store_read *read, struct watermark_asked **asked)
{
	*asked = NULL;
	return ERR_LIMIT;
}

static int64_t rolled_as_asked(UNUSED void *owner, UNUSED struct slice tenant,
			       UNUSED struct slice metric, const struct watermark_asked *asked)
{
	bool answered = asked && !asked->late->err && !asked->late->more;
	return answered ? rolled_ms : 0;
}

/* Rows say 6 in three samples where raw data says 1. */
static void test_how_far_is_asked_before_data_is_read(UNUSED void **state)
{
	struct asked a;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a");
	put_gauge(x, AT(5), NOON - AT(5), 6, 3);
	put(x, NOON - AT(5), 1);
	options.rolled_before_ms = rolled_as_asked;
	engine_again();
	expect_growth(FN_SUM, AT(5), false, "h=a: -1900000=1; ");
	options.rolled_ask = ask_first;
	engine_again();
	expect_growth(FN_SUM, AT(5), true, "h=a: -1900000=6; ");
	/* It goes away at any moment. */
	for (int steps = 0; steps < 12; steps++) {
		ask_from_noon(&a, -AT(20), AT(10));
		assert_int_equal(query_start(a.query), 0);
		for (int i = 0; i < steps; i++)
			task_step(&loop);
		query_free(a.query);
		pump();
	}
	options.rolled_ask = refuse_to_ask;
	engine_again();
	ask_from_noon(&a, -AT(20), AT(10));
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_int_equal(a.query->err, ERR_LIMIT);
	assert_non_null(strstr(a.query->error.text, "how far the metric is rolled up"));
	query_free(a.query);
	options.rolled_ask = NULL;
}

/* A question that begins a millisecond after a bucket does not have its late samples either, and
 * one that ends so has both. */
static void test_late_samples_lie_where_their_bucket_begins(void **state)
{
	(void)state;
	retention.levels_ms[0] = 1600000;
	options.late_after_ms = 1;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a");
	for (int i = 0; i < 2; i++) {
		put_gauge(x, AT(5), NOON - AT(10), 6, 3);
		put_gauge(x, AT(5), NOON - AT(10) + 1, 10, 1);
		put_gauge(x, AT(5), NOON - AT(5), 4, 2);
		put_gauge(x, AT(5), NOON - AT(5) + 1, 8, 1);
	}
	for (int64_t window_ms = AT(5); window_ms <= AT(60); window_ms += AT(55)) {
		struct asked a;
		struct query_spec *spec = ask_from_noon(&a, -AT(10) + 1, -AT(5) + 1);
		spec->fn = FN_SUM;
		spec->window_ms = window_ms;
		finish(&a, window_ms == AT(5) ? "h=a: -1900000=12; " : "h=a: -5200000=12; ");
	}
}

/* In time 10..15 (+5), late alone 17..20 (+3), in time 22..25 (+3) with late ones beside, whose
 * growth is on the way, then raw 26. Steps: 17 - 15, 22 - 20, 26 - 25. */
static void test_growth_goes_by_late_samples(void **state)
{
	(void)state;
	counts = true;
	retention.levels_ms[0] = 1600000;
	options.late_after_ms = 1;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a");
	struct value late[8] = {[2] = value_i64(23)};
	put_counter(x, AT(5), NOON - AT(15), 5, 10, 15);
	put_counter(x, AT(5), NOON - AT(10) + 1, 3, 17, 20);
	put_counter(x, AT(5), NOON - AT(5), 3, 22, 25);
	put_row(x, AT(5), NOON - AT(5) + 1, late);
	put_value(x, NOON, value_i64(26));
	expect_growth(FN_INCREASE, AT(5), false,
		      "h=a: -2500000=5i -2200000=5i -1900000=5i -1600000=1i; ");
	expect_growth(FN_INCREASE, AT(5), true, "h=a: -2500000=5 -2200000=3 -1900000=3; ");
	expect_growth(FN_FIRST, AT(5), true, "h=a: -2500000=10i -2200000=17i -1900000=22i; ");
	expect_growth(FN_LAST, AT(60), false, "h=a: -5200000=25i -1600000=26i; ");
	expect_growth(FN_SUM, AT(5), true, "h=a: -2500000=0 -2200000=0 -1900000=23; ");
	counts = false;
}

/* What is only there in buckets of an hour has no windows of 5 min. */
static void test_nothing_answers(void **state)
{
	(void)state;
	struct asked a;
	size_t count;
	retention.levels_ms[0] = 1600000;
	with_granularities(NOON);
	granularities.list[0].retention_ms = 5200000; /* to 11:00 */
	uint64_t x = open_series("t", "m", "h=a");
	put_gauge(x, HOUR_MS, NOON - AT(180), 60, 6);
	put_gauge(x, AT(5), NOON - AT(60), 8, 4);
	struct query_spec *spec = ask_from_noon(&a, -AT(240), AT(10));
	spec->fn = FN_AVG;
	spec->window_ms = AT(5);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_string_equal(a.text, "h=a: -5200000=2; ");
	const struct query_part *parts = query_parts(a.query, &count);
	assert_int_equal(count, 3);
	assert_int_equal(parts[0].granularity, QUERY_PART_NONE);
	assert_int_equal(parts[0].to_ms, NOON - AT(60));
	assert_int_equal(parts[2].granularity, QUERY_PART_RAW);
	query_free(a.query);
	/* Windows of an hour have all of it. */
	spec = ask_from_noon(&a, -AT(240), AT(10));
	spec->fn = FN_AVG;
	spec->window_ms = HOUR_MS;
	finish(&a, "h=a: -12400000=10; ");
}

/* The largest doubles: a bucket's sum is infinite, its mean is stored beside it. */
static void test_sums_beyond_all_doubles(void **state)
{
	(void)state;
	const double most = 0x1.fffffffffffffp1023;
	struct asked a;
	with_granularities(NOON);
	uint64_t x = open_series("t", "m", "h=a");
	struct value row[8] = {
		[2] = value_f64(INFINITY), [3] = value_i64(3), [4] = value_f64(most)};
	put_row(x, AT(5), NOON - AT(10), row);
	put_gauge(x, AT(5), NOON - AT(5), -most, 1);
	put(x, NOON, most);
	for (int agg = 0; agg < 2; agg++) {
		struct query_spec *spec = ask_from_noon(&a, -AT(40), AT(10));
		spec->fn = FN_AVG;
		spec->window_ms = AT(24 * 60);
		spec->agg = agg ? AGG_AVG : AGG_NONE;
		/* (3 most - most + most) / 5 */
		finish(&a, agg ? ": -44800000=1.07862e+308; " : "h=a: -44800000=1.07862e+308; ");
	}
}

/* ---- Gaps ---------------------------------------------------------------------------------------
 */

static void expect_filled(enum query_fill fill, enum query_agg agg, const char *wanted)
{
	struct asked a;
	struct query_spec *spec = ask(&a, take_all, NULL, 0, 5000);
	spec->fn = FN_SUM;
	spec->window_ms = 1000;
	spec->fill = fill;
	spec->agg = agg;
	a.take_max = 2;
	finish(&a, wanted);
}

static void test_gaps_are_filled(void **state)
{
	(void)state;
	uint64_t x = open_series("t", "m", "h=a"), y = open_series("t", "m", "h=c");
	open_series("t", "m", "h=b"); /* has no points, and gets none */
	put(x, T0_MS + 2000, 1);
	put(x, T0_MS + 3000, 2);
	put(y, T0_MS + 500, 3);
	expect_filled(FILL_NONE, AGG_NONE, "h=a: 2000=1 3000=2; h=c: 0=3; ");
	expect_filled(FILL_ZERO, AGG_NONE,
		      "h=a: 0=0i 1000=0i; +h=a: 2000=1 3000=2; +h=a: 4000=0i; "
		      "h=c: 0=3 1000=0i; +h=c: 2000=0i 3000=0i; +h=c: 4000=0i; ");
	expect_filled(FILL_NULL, AGG_SUM, ": 0=3 1000=nani; +: 2000=1 3000=2; +: 4000=nani; ");
}

static size_t gap_count, point_count;

static void count_gaps(void *owner)
{
	struct asked *a = owner;
	struct query_chunk chunk;
	while (query_next(a->query, 1000, &chunk)) {
		for (size_t i = 0; i < chunk.count; i++, point_count++) {
			assert_int_equal(chunk.ts_ms[i] - T0_MS, point_count % 100000);
			gap_count += chunk.types[i] == VALUE_NONE;
		}
	}
}

/* 100,000 windows of one series are four stages: what the first ones lack is given with the first
 * value, which is in the third. */
static void test_gaps_over_stages(void **state)
{
	(void)state;
	struct asked a;
	gap_count = point_count = 0;
	put(open_series("t", "m", "h=a"), T0_MS + 90000, 5);
	put(open_series("t", "m", "h=b"), T0_MS + 5, 6);
	struct query_spec *spec = ask(&a, count_gaps, NULL, 0, 100000);
	spec->fn = FN_SUM;
	spec->window_ms = 1;
	spec->fill = FILL_NULL;
	finish(&a, "");
	assert_int_equal(point_count, 200000);
	assert_int_equal(gap_count, 199998);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_windows_are_the_same_whatever_answers, setup,
						teardown),
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(test_points_of_all_parts_are_given),
		TEST(test_older_points_are_means),
		TEST(test_older_points_in_slices),
		TEST(test_older_points_of_counters_are_the_last),
		TEST(test_increase_over_resets),
		TEST(test_increase_of_what_was_rolled_up_as_a_gauge),
		TEST(test_rules_clip_what_is_shown),
		TEST(test_late_samples_count_beside_the_others),
		TEST(test_how_far_is_asked_before_data_is_read),
		TEST(test_late_samples_lie_where_their_bucket_begins),
		TEST(test_growth_goes_by_late_samples),
		TEST(test_nothing_answers),
		TEST(test_sums_beyond_all_doubles),
		TEST(test_gaps_are_filled),
		TEST(test_gaps_over_stages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
