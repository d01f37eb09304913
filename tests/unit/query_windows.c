/* Windows and several series in one, worked out by hand. */
#include "query_harness.h"

/* ---- Windows ------------------------------------------------------------------------------- */

static void expect_fn(enum query_fn fn, int64_t window_ms, int64_t start_ms, int64_t end_ms,
		      const char *wanted)
{
	struct asked a;
	struct query_spec *spec = ask(&a, take_all, NULL, start_ms, end_ms);
	spec->fn = fn;
	spec->window_ms = window_ms;
	finish(&a, wanted);
}

/* T0 is a multiple of 1,000 ms but not of an hour: 12:26:40, 1,600 s after 12:00. */
static void test_windows(void **state)
{
	(void)state;
	uint64_t h = open_series("t", "m", "h=a");
	put(h, T0_MS + 100, 4);
	put(h, T0_MS + 200, 2);
	put(h, T0_MS + 900, 9);
	put(h, T0_MS + 1000, 5); /* the next window */
	put(h, T0_MS + 3999, -1);
	expect_fn(FN_MIN, 1000, 0, 4000, "h=a: 0=2 1000=5 3000=-1; ");
	expect_fn(FN_MAX, 1000, 0, 4000, "h=a: 0=9 1000=5 3000=-1; ");
	expect_fn(FN_SUM, 1000, 0, 4000, "h=a: 0=15 1000=5 3000=-1; ");
	expect_fn(FN_AVG, 1000, 0, 4000, "h=a: 0=5 1000=5 3000=-1; ");
	expect_fn(FN_COUNT, 1000, 0, 4000, "h=a: 0=3i 1000=1i 3000=1i; ");
	expect_fn(FN_FIRST, 1000, 0, 4000, "h=a: 0=4 1000=5 3000=-1; ");
	expect_fn(FN_LAST, 1000, 0, 4000, "h=a: 0=9 1000=5 3000=-1; ");
	/* Cut at the front (only 200 and 900 are left) and at the end. */
	expect_fn(FN_FIRST, 1000, 150, 3999, "h=a: 0=2 1000=5; ");
	expect_fn(FN_COUNT, 1000, 150, 901, "h=a: 0=2i; ");
	expect_fn(FN_COUNT, 1000, 201, 1000, "h=a: 0=1i; ");
	/* Windows begin at multiples since 1970, wherever start is. */
	expect_fn(FN_COUNT, 3600000, 0, 4000, "h=a: -1600000=5i; ");
	expect_fn(FN_COUNT, 300, 0, 4000, "h=a: -100=1i 200=1i 800=2i 3800=1i; ");
	expect_fn(FN_MAX, 1, 0, 4000, "h=a: 100=4 200=2 900=9 1000=5 3999=-1; ");
	expect_fn(FN_MAX, 1000, 4000, 9000, "");
}

static void test_windows_types(void **state)
{
	(void)state;
	uint64_t h = open_series("t", "m", "h=a");
	put_value(h, T0_MS, value_i64(-3));
	put_value(h, T0_MS + 1, value_u64(UINT64_MAX));
	put(h, T0_MS + 1000, __builtin_nan(""));
	expect_fn(FN_MIN, 1000, 0, 1000, "h=a: 0=-3i; ");
	expect_fn(FN_MAX, 1000, 0, 1000, "h=a: 0=1.84467e+19i; ");
	expect_fn(FN_COUNT, 1000, 0, 2000, "h=a: 0=2i 1000=1i; ");
	expect_fn(FN_MIN, 1000, 0, 2000, "h=a: 0=-3i; "); /* NaN alone has no minimum */
}

/* 100,000 windows of one series are four stages of 32,768. */
static void test_many_windows(void **state)
{
	(void)state;
	uint64_t h = open_series("t", "m", "h=a");
	put(h, T0_MS + 5, 1);
	put(h, T0_MS + 32767, 2);
	put(h, T0_MS + 32768, 3);
	put(h, T0_MS + 99999, 4);
	expect_fn(FN_SUM, 1, 0, 100000, "h=a: 5=1 32767=2; +h=a: 32768=3; +h=a: 99999=4; ");
}

static void test_newest(void **state)
{
	(void)state;
	uint64_t a = open_series("t", "m", "h=a"), b = open_series("t", "m", "h=b");
	put(a, T0_MS + 10, 1);
	put(a, T0_MS + 20, 2);
	put_value(b, T0_MS + 30, value_i64(3));
	open_series("t", "m", "h=c");
	expect_fn(FN_LAST, 0, 0, 100, "h=a: 20=2; h=b: 30=3i; ");
	expect_fn(FN_LAST, 0, 0, 20, "h=a: 10=1; ");
	expect_fn(FN_LAST, 0, 11, 20, "");
	expect_fn(FN_LAST, 0, 20, 31, "h=a: 20=2; h=b: 30=3i; ");
}

/* ---- Several series in one ------------------------------------------------------------------ */

static struct query_spec *ask_agg(struct asked *a, enum query_agg agg, const char *by,
				  enum query_fn fn, int64_t window_ms, int64_t end_ms)
{
	static struct slice keys[2];
	struct query_spec *spec = ask(a, take_all, NULL, 0, end_ms);
	spec->agg = agg;
	spec->fn = fn;
	spec->window_ms = window_ms;
	spec->by = keys;
	for (; by && *by; by += strcspn(by, ",") + (strchr(by, ',') != NULL))
		keys[spec->by_count++] = (struct slice){by, strcspn(by, ",")};
	return spec;
}

static void expect_agg(enum query_agg agg, const char *by, const char *wanted)
{
	struct asked a;
	ask_agg(&a, agg, by, FN_NONE, 0, 100);
	finish(&a, wanted);
}

static void test_agg_at_equal_times(void **state)
{
	(void)state;
	uint64_t a = open_series("t", "m", "h=a,os=l"), b = open_series("t", "m", "h=b,os=l");
	uint64_t c = open_series("t", "m", "h=c,os=w"), d = open_series("t", "m", "h=d");
	open_series("t", "m", "h=e,os=x"); /* no samples: its group is not there */
	put(a, T0_MS, 1);
	put(a, T0_MS + 10, 2);
	put(b, T0_MS + 10, 4.5);
	put(b, T0_MS + 20, __builtin_nan(""));
	put_value(c, T0_MS + 10, value_i64(10));
	put_value(c, T0_MS + 15, value_i64(-1));
	put_value(d, T0_MS + 10, value_u64(7));
	expect_agg(AGG_COUNT, NULL, ": 0=1i 10=4i 15=1i 20=1i; ");
	expect_agg(AGG_MIN, NULL, ": 0=1 10=2 15=-1i; "); /* NaN alone is no minimum */
	expect_agg(AGG_MAX, NULL, ": 0=1 10=10i 15=-1i; ");
	expect_agg(AGG_SUM, NULL, ": 0=1 10=23.5 15=-1i 20=nan; ");
	expect_agg(AGG_AVG, NULL, ": 0=1 10=5.875 15=-1 20=nan; ");
	/* One that lacks the tag is in the group that lacks it. */
	expect_agg(AGG_SUM, "os", ": 10=7i; os=l: 0=1 10=6.5 20=nan; os=w: 10=10i 15=-1i; ");
	expect_agg(AGG_AVG, "os", ": 10=7; os=l: 0=1 10=3.25 20=nan; os=w: 10=10 15=-1; ");
	/* Every tag: each series by itself, in the order of tags whatever that of `by`. */
	expect_agg(AGG_MAX, "os,h",
		   "h=a,os=l: 0=1 10=2; h=b,os=l: 10=4.5; h=c,os=w: 10=10i 15=-1i; h=d: 10=7i; ");
	/* A tag that nobody has: one group without tags. */
	expect_agg(AGG_COUNT, "nosuch", ": 0=1i 10=4i 15=1i 20=1i; ");
	struct asked none;
	ask_agg(&none, AGG_SUM, NULL, FN_NONE, 0, 0);
	finish(&none, "");
	ask_agg(&none, AGG_SUM, NULL, FN_NONE, 0, 100)->metric = SLICE("unknown");
	finish(&none, "");
}

static void summaries_fold_one(void *owner)
{
	struct asked *a = owner;
	struct query_chunk chunk;
	a->readies++;
	while (query_next(a->query, 1, &chunk)) {
		a->value = (struct value){chunk.bits[0], (enum value_type)chunk.types[0]};
		a->len++;
	}
}

static struct value value_of_two(struct value x, struct value y, enum query_agg agg)
{
	struct asked a;
	static int64_t at_ms;
	put_value(open_series("t", "m", "h=a"), T0_MS + ++at_ms, x);
	put_value(open_series("t", "m", "h=b"), T0_MS + at_ms, y);
	struct query_spec *spec = ask(&a, summaries_fold_one, NULL, at_ms, at_ms + 1);
	spec->agg = agg;
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_true(a.query->ended && !a.query->err);
	assert_int_equal(a.len, 1);
	query_free(a.query);
	return a.value;
}

static void same(struct value got, struct value wanted)
{
	assert_int_equal(got.type, wanted.type);
	assert_true(got.bits == wanted.bits);
}

/* 2^53 + 1 is no double; 2^63 is no i64, 2^64 - 1 is a u64, 2^64 is neither. */
static void test_agg_of_large_integers(void **state)
{
	(void)state;
	const int64_t two53 = INT64_C(9007199254740992);
	same(value_of_two(value_i64(two53), value_i64(1), AGG_SUM), value_i64(two53 + 1));
	same(value_of_two(value_i64(two53), value_i64(two53 + 1), AGG_MAX), value_i64(two53 + 1));
	same(value_of_two(value_f64((double)two53), value_i64(two53 + 1), AGG_MAX),
	     value_i64(two53 + 1));
	same(value_of_two(value_i64(two53 + 1), value_f64((double)two53), AGG_MIN),
	     value_f64((double)two53));
	same(value_of_two(value_i64(INT64_MAX), value_i64(1), AGG_SUM),
	     value_u64(UINT64_C(9223372036854775808)));
	same(value_of_two(value_u64(UINT64_MAX - 1), value_i64(1), AGG_SUM), value_u64(UINT64_MAX));
	same(value_of_two(value_u64(UINT64_MAX), value_i64(1), AGG_SUM),
	     value_f64(18446744073709551616.0));
	same(value_of_two(value_i64(INT64_MIN), value_i64(-1), AGG_SUM),
	     value_f64(-9223372036854775808.0));
	same(value_of_two(value_u64(UINT64_MAX), value_i64(INT64_MIN), AGG_SUM),
	     value_i64(INT64_MAX));
	/* The sum is exact before it is divided: 2^53 + 1 + 1 by 2 is 2^52 + 1. */
	same(value_of_two(value_i64(two53 + 1), value_i64(1), AGG_AVG),
	     value_f64(4503599627370497.0));
}

/* Sums of multiples of 2^1022 that leave the doubles, though their mean does not: a quarter of
 * 2^1023 (1 + 1.5 + 1 + 0.5) is 2^1023, and what comes back was never away. */
static void test_agg_of_the_largest_doubles(void **state)
{
	(void)state;
	const double half = 0x1p1023, most = 0x1.fffffffffffffp1023;
	same(value_of_two(value_f64(half), value_f64(1.5 * half), AGG_AVG), value_f64(1.25 * half));
	same(value_of_two(value_f64(-half), value_f64(-1.5 * half), AGG_AVG),
	     value_f64(-1.25 * half));
	same(value_of_two(value_f64(half), value_f64(half), AGG_SUM), value_f64(INFINITY));
	same(value_of_two(value_f64(most), value_f64(most), AGG_AVG), value_f64(most));
	/* Windows of their own, at times that are not those above. */
	uint64_t a = open_series("t", "large", "h=a"), b = open_series("t", "large", "h=b");
	put(a, T0_MS, half);
	put(a, T0_MS + 1, 1.5 * half);
	put(b, T0_MS + 2, half);
	put(b, T0_MS + 3, 0.5 * half);
	static const struct {
		enum query_fn fn;
		enum query_agg agg;
		double wanted;
	} cases[] = {{FN_AVG, AGG_AVG, 1},
		     {FN_MAX, AGG_AVG, 1.25},
		     {FN_AVG, AGG_MAX, 1.25},
		     {FN_AVG, AGG_MIN, 0.75}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct asked asked;
		struct query_spec *spec = ask(&asked, summaries_fold_one, NULL, 0, 4);
		spec->metric = SLICE("large");
		spec->fn = cases[i].fn;
		spec->window_ms = 1000;
		spec->agg = cases[i].agg;
		assert_int_equal(query_start(asked.query), 0);
		pump();
		assert_int_equal(asked.len, 1);
		same(asked.value, value_f64(cases[i].wanted * half));
		query_free(asked.query);
	}
}

static void expect_agg_fn(enum query_agg agg, enum query_fn fn, const char *by, const char *wanted)
{
	struct asked a;
	ask_agg(&a, agg, by, fn, 1000, 3000);
	finish(&a, wanted);
}

static void test_agg_of_windows(void **state)
{
	(void)state;
	uint64_t a = open_series("t", "m", "h=a,os=l"), b = open_series("t", "m", "h=b,os=l");
	uint64_t c = open_series("t", "m", "h=c,os=w");
	put(a, T0_MS, 1);
	put(b, T0_MS + 100, 2);
	put(b, T0_MS + 200, 3);
	put(b, T0_MS + 999, 4);
	put(b, T0_MS + 2000, 6);
	put_value(c, T0_MS + 2500, value_i64(8));
	/* All samples weigh the same: (1 + 2 + 3 + 4) / 4, not (1 + 3) / 2. */
	expect_agg_fn(AGG_AVG, FN_AVG, NULL, ": 0=2.5 2000=7; ");
	expect_agg_fn(AGG_AVG, FN_MAX, NULL, ": 0=2.5 2000=7; "); /* (1 + 4) / 2 */
	expect_agg_fn(AGG_AVG, FN_SUM, NULL, ": 0=5 2000=7; ");   /* (1 + 9) / 2 */
	expect_agg_fn(AGG_MAX, FN_AVG, NULL, ": 0=3 2000=8; ");
	expect_agg_fn(AGG_MIN, FN_MAX, NULL, ": 0=1 2000=6; ");
	expect_agg_fn(AGG_SUM, FN_SUM, NULL, ": 0=10 2000=14; ");
	expect_agg_fn(AGG_SUM, FN_COUNT, NULL, ": 0=4i 2000=2i; ");
	expect_agg_fn(AGG_COUNT, FN_COUNT, NULL, ": 0=2i 2000=2i; "); /* of series */
	expect_agg_fn(AGG_SUM, FN_LAST, "os", "os=l: 0=5 2000=6; os=w: 2000=8i; ");
	expect_agg_fn(AGG_AVG, FN_AVG, "os", "os=l: 0=2.5 2000=6; os=w: 2000=8; ");
	struct asked refusal;
	ask_agg(&refusal, AGG_SUM, NULL, FN_LAST, 0, 100);
	assert_int_equal(query_start(refusal.query), ERR_INVALID);
	query_free(refusal.query);
}

static struct value value_of_windows(const char *metric, enum query_fn fn, enum query_agg agg)
{
	struct asked asked;
	struct query_spec *spec = ask(&asked, summaries_fold_one, NULL, 0, 1000);
	spec->metric = slice_of(metric);
	spec->fn = fn;
	spec->window_ms = 1000;
	spec->agg = agg;
	assert_int_equal(query_start(asked.query), 0);
	pump();
	assert_true(asked.query->ended && !asked.query->err);
	assert_int_equal(asked.len, 1);
	query_free(asked.query);
	return asked.value;
}

/* 2^53 + 1 and -2^53: the first is no double, their sum is 1. */
static void test_agg_of_windows_of_large_integers(void **state)
{
	(void)state;
	const int64_t two53 = INT64_C(9007199254740992);
	uint64_t a = open_series("t", "ex", "h=a"), b = open_series("t", "ex", "h=b");
	put_value(a, T0_MS, value_i64(two53 + 1));
	put_value(b, T0_MS, value_i64(-two53));
	same(value_of_windows("ex", FN_SUM, AGG_SUM), value_f64(1));
	same(value_of_windows("ex", FN_SUM, AGG_AVG), value_f64(0.5));
	same(value_of_windows("ex", FN_AVG, AGG_AVG), value_f64(0.5));
	same(value_of_windows("ex", FN_SUM, AGG_MAX), value_f64((double)two53)); /* of doubles */
	/* A double beside them: 1.25, and the average of three. */
	put(open_series("t", "ex", "h=c"), T0_MS, 0.25);
	same(value_of_windows("ex", FN_SUM, AGG_SUM), value_f64(1.25));
	same(value_of_windows("ex", FN_AVG, AGG_AVG), value_f64(1.25 / 3));
	/* A series whose sum no 64 bits hold: 2 (2^63 - 1) + 5 - 2 2^63 = 3. */
	a = open_series("t", "ey", "h=a"), b = open_series("t", "ey", "h=b");
	put_value(a, T0_MS, value_i64(INT64_MAX));
	put_value(a, T0_MS + 1, value_i64(INT64_MAX));
	put_value(a, T0_MS + 2, value_i64(5));
	put_value(b, T0_MS, value_i64(INT64_MIN));
	put_value(b, T0_MS + 1, value_i64(INT64_MIN));
	same(value_of_windows("ey", FN_SUM, AGG_SUM), value_f64(3));
	same(value_of_windows("ey", FN_AVG, AGG_AVG), value_f64(0.6));
}

/* ---- Parts in any order ---------------------------------------------------------------------- */

enum { PARTS = 3, EACH_PART = 64 };

/* What the store has read waits here, and arrives in the order of `turns`. */
static struct task_queue arrivals;

static struct value value_of_parts(const unsigned turns[PARTS], enum query_fn fn,
				   enum query_agg agg)
{
	struct asked asked;
	struct task *parts[PARTS];
	struct query_spec *spec = ask(&asked, summaries_fold_one, NULL, 0, 1000);
	spec->fn = fn;
	spec->window_ms = 1000;
	spec->agg = agg;
	assert_int_equal(query_start(asked.query), 0);
	pump();
	for (unsigned i = 0; i < PARTS; i++) {
		assert_non_null(arrivals.first);
		parts[i] = arrivals.first;
		arrivals.first = parts[i]->next;
	}
	assert_null(arrivals.first);
	arrivals.last = NULL;
	for (unsigned i = 0; i < PARTS; i++) {
		assert_false(asked.query->ended);
		parts[turns[i]]->run(parts[turns[i]]);
	}
	assert_true(asked.query->ended && !asked.query->err);
	assert_int_equal(asked.query->reads, PARTS);
	assert_int_equal(asked.len, 1);
	query_free(asked.query);
	return asked.value;
}

/* 1, 2^54 and -2^54 in three parts: added as doubles in that order they are 0, the other way round
 * 1. Infinities, and equal numbers of different type, do not depend on it either. */
static void test_parts_in_any_order(void **state)
{
	(void)state;
	static const unsigned turns[][PARTS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
						{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	static const double firsts[PARTS] = {1, 0x1p54, -0x1p54};
	engine_end();
	task_queue_init(&arrivals);
	options.executor = &arrivals.executor;
	options.parallel_max = PARTS;
	engine_begin();
	for (int i = 0; i < PARTS * EACH_PART; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "h=%03d", i);
		uint64_t handle = open_series("t", "m", tags);
		if (i % EACH_PART == 0)
			put(handle, T0_MS, firsts[i / EACH_PART]);
		else
			put_value(handle, T0_MS, i < EACH_PART ? value_i64(0) : value_f64(-0.0));
	}
	for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
		same(value_of_parts(turns[i], FN_SUM, AGG_SUM), value_f64(1));
		same(value_of_parts(turns[i], FN_MAX, AGG_SUM), value_f64(1));
		same(value_of_parts(turns[i], FN_AVG, AGG_AVG), value_f64(1.0 / 192));
	}
	put(open_series("t", "m", "h=000"), T0_MS, -0.0);
	put(open_series("t", "m", "h=064"), T0_MS, 0);
	put(open_series("t", "m", "h=128"), T0_MS, 0);
	struct value min = value_of_parts(turns[0], FN_MAX, AGG_MIN);
	struct value max = value_of_parts(turns[0], FN_MAX, AGG_MAX);
	for (size_t i = 1; i < ARRAY_LEN(turns); i++) {
		same(value_of_parts(turns[i], FN_MAX, AGG_MIN), min);
		same(value_of_parts(turns[i], FN_MAX, AGG_MAX), max);
	}
	engine_end();
	task_queue_release(&arrivals);
	engine_begin();
}

/* However many groups there are, each has its own series and no other's. */
static void test_agg_of_each_by_itself(void **state)
{
	(void)state;
	char wanted[1000] = "";
	for (int i = 0; i < 20; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "h=%c", 'a' + i);
		put(open_series("t", "m", tags), T0_MS, i);
		size_t len = strlen(wanted);
		snprintf(wanted + len, sizeof(wanted) - len, "%s: 0=%d; ", tags, i);
		expect_agg(AGG_SUM, "h", wanted);
		expect_agg_fn(AGG_SUM, FN_SUM, "h", wanted);
	}
}

/* Two series with 45,000 times each, none of them equal, are more than one stage has room for:
 * every time comes once, in order. */
static void test_agg_of_many_times(void **state)
{
	(void)state;
	enum { EACH = 45000 };
	uint64_t handles[2] = {open_series("t", "m", "h=a"), open_series("t", "m", "h=b")};
	struct store_write *write = store_write_new(store, STORE_BATCH_MAX_BYTES);
	write->executor = &loop.executor;
	write->done = written;
	for (int i = 0; i < 2 * EACH; i++) {
		struct value value = value_i64(i);
		assert_int_equal(
			store_append(write, &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
				     T0_MS + i, &handles[i % 2], 1, &value),
			0);
	}
	assert_int_equal(store_write_submit(write), 0);
	pump();
	store_write_free(write);
	struct asked a;
	ask(&a, take_in_order, NULL, 0, 2 * EACH)->agg = AGG_SUM;
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_true(a.query->ended && !a.query->err && !a.query->cut);
	assert_int_equal(a.len, 2 * EACH);
	query_free(a.query);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_windows),
		TEST(test_windows_types),
		TEST(test_many_windows),
		TEST(test_newest),
		TEST(test_agg_at_equal_times),
		TEST(test_agg_of_each_by_itself),
		TEST(test_agg_of_large_integers),
		TEST(test_agg_of_the_largest_doubles),
		TEST(test_agg_of_windows),
		TEST(test_agg_of_windows_of_large_integers),
		TEST(test_parts_in_any_order),
		TEST(test_agg_of_many_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
