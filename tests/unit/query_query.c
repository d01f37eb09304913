/* Queries over the naive engine: points and windows worked out by hand, slices, limits,
 * cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "naive.h"
#include "query/query.h"

#define T0_MS INT64_C(1600000000000) /* 2020-09-13T12:26:40Z */

static struct clock_virtual clock_;
static struct task_queue loop;
static struct store *store;
static struct catalog *catalog;
static struct query_engine *engine;
static struct query_options options;

static void pump(void)
{
	while (task_queue_run(&loop))
		;
}

static void engine_begin(void)
{
	engine = query_engine_new(&options);
}

static void engine_end(void)
{
	pump();
	assert_true(query_engine_idle(engine));
	query_engine_free(engine);
}

static void engine_again(void)
{
	engine_end();
	engine_begin();
}

static int setup(void **state)
{
	(void)state;
	clock_virtual_init(&clock_, T0_MS * 1000);
	task_queue_init(&loop);
	store = naive_open(&clock_.clock);
	struct catalog_options catalog_options = catalog_options_default();
	catalog = catalog_new(store, &clock_.clock, &loop.executor, &catalog_options);
	options = (struct query_options){
		.store = store,
		.catalog = catalog,
		.clock = &clock_.clock,
		.executor = &loop.executor,
	};
	engine_begin();
	return 0;
}

static void closed(void *owner)
{
	*(bool *)owner = true;
}

static int teardown(void **state)
{
	(void)state;
	bool is_closed = false;
	engine_end();
	catalog_close(catalog, closed, &is_closed);
	pump();
	assert_true(is_closed);
	store_close(store);
	task_queue_release(&loop);
	return 0;
}

/* ---- Data ---------------------------------------------------------------------------------- */

static void opened(struct catalog_open *open)
{
	(void)open;
}

static void written(struct store_write *write, int err)
{
	(void)write;
	assert_int_equal(err, 0);
}

static uint64_t open_series(const char *tenant, const char *metric, const char *tags)
{
	struct arena arena;
	struct slice name = slice_of(metric);
	uint64_t handle = 0;
	arena_init(&arena, 1 << 20);
	struct catalog_group group = {
		.tenant = slice_of(tenant),
		.metrics = &name,
		.count = 1,
		.handles = &handle,
	};
	assert_int_equal(tags_decode(slice_of(tags), &arena, &group.tags), 0);
	struct catalog_open open = {
		.catalog = catalog,
		.executor = &loop.executor,
		.done = opened,
		.groups = &group,
		.count = 1,
	};
	assert_int_equal(catalog_open_start(&open), 0);
	pump();
	catalog_open_finish(&open, ERR_CANCELLED);
	assert_int_equal(group.err, 0);
	arena_release(&arena);
	return handle;
}

static void put_value(uint64_t handle, int64_t ts_ms, struct value value)
{
	struct store_write *write = store_write_new(store, 1 << 20);
	write->executor = &loop.executor;
	write->done = written;
	assert_int_equal(
		store_append(write, TABLE_DATA_RAW, 0, RETENTION_EVER, ts_ms, &handle, 1, &value),
		0);
	assert_int_equal(store_write_submit(write), 0);
	pump();
	store_write_free(write);
}

static void put(uint64_t handle, int64_t ts_ms, double value)
{
	put_value(handle, ts_ms, value_f64(value));
}

/* ---- Queries ------------------------------------------------------------------------------- */

struct asked {
	struct query *query;
	int readies;
	char text[4096]; /* `tags: time=value ...; ` by chunk; a later one of a series has + */
	size_t len;
	size_t take_max;
	struct value value; /* take_one */
};

static void append_chunk(struct asked *a, const struct query_chunk *chunk)
{
	size_t count;
	const struct catalog_series *series = query_series(a->query, &count);
	assert_true(chunk->series_index < count && chunk->count > 0);
	a->len += (size_t)snprintf(a->text + a->len, sizeof(a->text) - a->len,
				   "%s%s:", chunk->first ? "" : "+",
				   series[chunk->series_index].tags_text.data);
	for (size_t i = 0; i < chunk->count; i++) {
		struct value v = {chunk->bits[i], (enum value_type)chunk->types[i]};
		a->len += (size_t)snprintf(a->text + a->len, sizeof(a->text) - a->len, " %lld=%g%s",
					   (long long)(chunk->ts_ms[i] - T0_MS), value_as_f64(v),
					   v.type == VALUE_F64 ? "" : "i");
	}
	a->len += (size_t)snprintf(a->text + a->len, sizeof(a->text) - a->len, "; ");
}

static void take_all(void *owner)
{
	struct asked *a = owner;
	struct query_chunk chunk;
	a->readies++;
	while (query_take(a->query, a->take_max, &chunk))
		append_chunk(a, &chunk);
}

static struct query_spec *ask(struct asked *a, query_ready *ready, const char *selectors,
			      int64_t start_ms, int64_t end_ms)
{
	struct errbuf e;
	struct catalog_selector *list;
	memset(a, 0, sizeof(*a));
	a->take_max = 1000;
	a->query = query_new(engine, ready, a);
	list = arena_alloc(&a->query->arena, CATALOG_SELECTORS_MAX * sizeof(*list));
	assert_non_null(list);
	struct query_spec *spec = &a->query->spec;
	*spec = (struct query_spec){
		.tenant = SLICE("t"),
		.metric = SLICE("m"),
		.selectors = list,
		.start_ms = T0_MS + start_ms,
		.end_ms = T0_MS + end_ms,
	};
	if (selectors)
		assert_int_equal(catalog_selectors_parse(slice_of(selectors), &a->query->arena,
							 list, &spec->selector_count, &e),
				 0);
	return spec;
}

static void finish(struct asked *a, const char *wanted)
{
	assert_int_equal(query_start(a->query), 0);
	assert_int_equal(a->readies, 0);
	pump();
	assert_true(a->query->ended);
	if (a->query->err)
		fail_msg("%s", a->query->error.text);
	assert_string_equal(a->text, wanted);
	query_free(a->query);
}

static void expect(const char *selectors, int64_t start_ms, int64_t end_ms, const char *wanted)
{
	struct asked a;
	ask(&a, take_all, selectors, start_ms, end_ms);
	finish(&a, wanted);
}

static void test_raw(void **state)
{
	(void)state;
	uint64_t a = open_series("t", "m", "h=a"), b = open_series("t", "m", "h=b");
	uint64_t c = open_series("t", "m", "");
	put(b, T0_MS + 10, 2);
	put(b, T0_MS + 20, 3);
	put(a, T0_MS + 20, 1);
	put_value(c, T0_MS + 30, value_u64(7));
	put(open_series("other", "m", "h=a"), T0_MS + 20, 99);
	open_series("t", "m", "h=empty");
	expect(NULL, 0, 100, ": 30=7i; h=a: 20=1; h=b: 10=2 20=3; ");
	expect(NULL, 10, 20, "h=b: 10=2; "); /* start counts, end does not */
	expect("h=*", 11, 21, "h=a: 20=1; h=b: 20=3; ");
	expect("h=b", 0, 100, "h=b: 10=2 20=3; ");
	expect("h=c", 0, 100, "");
	expect("h=empty", 0, 100, "");
	expect(NULL, 20, 20, "");
	expect(NULL, 40, 100, "");
	expect(NULL, INT64_MIN / 2, INT64_MAX / 2, ": 30=7i; h=a: 20=1; h=b: 10=2 20=3; ");
}

static void fill(int series, int points)
{
	for (int s = 0; s < series; s++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "h=%c", 'a' + s);
		uint64_t handle = open_series("t", "m", tags);
		for (int i = 0; i < points; i++)
			put(handle, T0_MS + i, i * 10 + s);
	}
}

/* Whatever the slices of the store and the pieces taken are, the same points come in one order. */
static void test_slices(void **state)
{
	(void)state;
	fill(3, 5);
	for (size_t slice = 1; slice < 18; slice++) {
		options.slice_points = slice;
		engine_again();
		for (size_t take = 1; take < 8; take++) {
			struct asked a;
			struct query_chunk chunk;
			ask(&a, take_all, NULL, 0, 100);
			a.take_max = take;
			assert_int_equal(query_start(a.query), 0);
			pump();
			assert_true(a.query->ended && !a.query->err && !a.query->cut);
			assert_int_equal(a.query->points, 15);
			char plain[512], *to = plain;
			for (char *p = a.text; *p; p++) /* join what was cut */
				if (strncmp(p, "; +h=", 5) == 0)
					p += 6;
				else
					*to++ = *p;
			*to = 0;
			assert_string_equal(plain, "h=a: 0=0 1=10 2=20 3=30 4=40; "
						   "h=b: 0=1 1=11 2=21 3=31 4=41; "
						   "h=c: 0=2 1=12 2=22 3=32 4=42; ");
			assert_false(query_take(a.query, 1, &chunk));
			query_free(a.query);
		}
	}
}

/* More series than one read takes. */
static void test_batches(void **state)
{
	(void)state;
	for (int i = 0; i < 1030; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "n=%04d", i);
		uint64_t handle = open_series("t", "m", tags);
		if (i == 3 || i == 511 || i == 512 || i == 1029)
			put(handle, T0_MS, i);
	}
	expect(NULL, 0, 1, "n=0003: 0=3; n=0511: 0=511; n=0512: 0=512; n=1029: 0=1029; ");
	for (enum query_fn fn = FN_MIN; fn <= FN_LAST; fn++) {
		struct asked a;
		struct query_spec *spec = ask(&a, take_all, NULL, 0, 1);
		spec->fn = fn;
		spec->window_ms = 1;
		finish(&a, fn == FN_COUNT
				   ? "n=0003: 0=1i; n=0511: 0=1i; n=0512: 0=1i; n=1029: 0=1i; "
				   : "n=0003: 0=3; n=0511: 0=511; n=0512: 0=512; n=1029: "
				     "0=1029; ");
	}
}

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

/* Times ascend by one, and values are the times'. */
static void take_in_order(void *owner)
{
	struct asked *a = owner;
	struct query_chunk chunk;
	while (query_take(a->query, 1000, &chunk)) {
		for (size_t i = 0; i < chunk.count; i++, a->len++) {
			struct value v = {chunk.bits[i], (enum value_type)chunk.types[i]};
			assert_int_equal(chunk.ts_ms[i] - T0_MS, a->len);
			assert_int_equal((size_t)value_as_f64(v), a->len);
		}
	}
}

static void take_nothing(void *owner)
{
	((struct asked *)owner)->readies++;
}

static void take_one(void *owner)
{
	struct asked *a = owner;
	struct query_chunk chunk;
	a->readies++;
	while (query_take(a->query, 1, &chunk)) {
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
	struct query_spec *spec = ask(&a, take_one, NULL, at_ms, at_ms + 1);
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
		struct query_spec *spec = ask(&asked, take_one, NULL, 0, 4);
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
		assert_int_equal(store_append(write, TABLE_DATA_RAW, 0, RETENTION_EVER, T0_MS + i,
					      &handles[i % 2], 1, &value),
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

/* ---- Many at once ---------------------------------------------------------------------------- */

/* A series of 1030 is read in parts; what is small and came later is answered between them. */
static void test_small_before_large(void **state)
{
	(void)state;
	struct asked large, small;
	for (int i = 0; i < 1030; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "n=%04d", i);
		put(open_series("t", "m", tags), T0_MS + i, i);
	}
	expect("n=0000", 0, 1, "n=0000: 0=0; "); /* the index is built */
	options.parallel_max = 2;
	engine_again();
	struct query_spec *spec = ask(&large, take_in_order, NULL, 0, 1030);
	spec->fn = FN_MAX;
	spec->window_ms = 1;
	ask(&small, take_all, "n=0007", 0, 100);
	assert_int_equal(query_start(large.query), 0);
	for (int i = 0; i < 3; i++)
		task_queue_run(&loop);
	assert_int_equal(query_start(small.query), 0);
	while (!small.query->ended)
		assert_true(task_queue_run(&loop));
	assert_false(large.query->ended);
	assert_string_equal(small.text, "n=0007: 7=7; ");
	pump();
	assert_true(large.query->ended);
	assert_int_equal(large.query->points, 1030);
	assert_true(large.query->reads > 10);
	query_free(large.query);
	query_free(small.query);
}

/* What was read first is given before the rest is asked for. */
static void test_given_while_reading(void **state)
{
	(void)state;
	struct asked a;
	struct query_chunk chunk;
	fill(3, 5);
	options.slice_points = 4;
	engine_again();
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_int_equal(a.query->reads, 1);
	assert_true(query_take(a.query, 10, &chunk));
	assert_int_equal(chunk.count, 4);
	assert_int_equal(a.query->reads, 1);
	while (!a.query->ended) {
		while (query_take(a.query, 10, &chunk))
			continue;
		pump();
	}
	assert_int_equal(a.query->points, 15);
	assert_true(a.query->reads >= 4);
	query_free(a.query);
}

/* ---- Limits -------------------------------------------------------------------------------- */

static void refused(struct asked *a, int err, const char *sentence)
{
	int started = query_start(a->query);
	if (!started) {
		pump();
		assert_true(a->query->ended);
		assert_int_equal(a->query->err, err);
	} else {
		assert_int_equal(started, err);
	}
	assert_string_equal(a->query->error.text, sentence);
	assert_string_equal(a->text, "");
	query_free(a->query);
}

static void test_limits(void **state)
{
	(void)state;
	struct asked a;
	struct query_spec *spec;
	fill(3, 5);
	options.series_max = 2;
	options.range_max_ms = 7200000;
	options.points_max = 12;
	engine_again();
	ask(&a, take_all, NULL, 0, 100);
	refused(&a, ERR_LIMIT, "3 series match; at most 2 are read at once");
	ask(&a, take_all, "h=a", 0, 7200001);
	refused(&a, ERR_LIMIT, "the time from start to end is longer than 2 hours");
	ask(&a, take_all, "h=a", 5, 4);
	refused(&a, ERR_INVALID, "start lies after end");
	spec = ask(&a, take_all, "h=a|b", 0, 7);
	spec->fn = FN_MAX;
	spec->window_ms = 1;
	refused(&a, ERR_LIMIT,
		"2 series in 7 windows are more than the 12 points of an answer; take a wider "
		"window, less time or fewer series");
	spec = ask(&a, take_all, "h=a|b", 0, 6);
	spec->fn = FN_MAX;
	spec->window_ms = 1;
	finish(&a, "h=a: 0=0 1=10 2=20 3=30 4=40; h=b: 0=1 1=11 2=21 3=31 4=41; ");
	spec = ask(&a, take_all, "h=a", 0, 6);
	spec->fn = FN_MAX;
	refused(&a, ERR_INVALID, "a window is at least one millisecond long");
	spec = ask(&a, take_all, "h=a", 0, 6);
	spec->fn = FN_MAX;
	spec->window_ms = INT64_MAX;
	refused(&a, ERR_INVALID, "a window is at least one millisecond long");
}

/* Three series of five samples; what is asked for is known from all of them. */
static void test_estimate(void **state)
{
	(void)state;
	struct asked a;
	struct query_spec *spec;
	fill(3, 5);
	options.samples_max = 14;
	engine_again();
	ask(&a, take_all, NULL, 0, 10000);
	refused(&a, ERR_LIMIT,
		"the query would look at about 15 samples (3 series of about 5 each); at most 14: "
		"ask for fewer series, less time or wider windows");
	ask(&a, take_all, "h=a|b", 0, 10000);
	finish(&a, "h=a: 0=0 1=10 2=20 3=30 4=40; h=b: 0=1 1=11 2=21 3=31 4=41; ");
	spec = ask(&a, take_all, NULL, 0, 10000);
	spec->fn = FN_COUNT;
	spec->window_ms = 1000;
	/* Whole windows are tried: eight of the ten seconds, in which all 15 are. */
	refused(&a, ERR_LIMIT,
		"the query would look at about 18 samples (3 series of about 6 each); at most 14: "
		"ask for fewer series, less time or wider windows");
	spec = ask(&a, take_all, NULL, 0, 10000);
	spec->fn = FN_LAST; /* the newest is not looked for */
	finish(&a, "h=a: 4=40; h=b: 4=41; h=c: 4=42; ");
	options.samples_max = 15;
	engine_again();
	ask(&a, take_all, NULL, 0, 10000);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_true(a.query->ended && !a.query->err);
	assert_int_equal(a.query->estimate, 15);
	assert_int_equal(a.query->points, 15);
	query_free(a.query);
}

static void test_cut(void **state)
{
	(void)state;
	fill(3, 5);
	for (size_t slice = 1; slice < 18; slice++) {
		for (uint64_t max = 1; max < 18; max++) {
			struct asked a;
			options.points_max = max;
			options.slice_points = slice;
			engine_again();
			ask(&a, take_all, NULL, 0, 100);
			assert_int_equal(query_start(a.query), 0);
			pump();
			assert_true(a.query->ended && !a.query->err);
			assert_int_equal(a.query->points, max < 15 ? max : 15);
			assert_int_equal(a.query->cut, max < 15);
			if (max < 15)
				assert_string_equal(a.query->cut_why, "points");
			query_free(a.query);
		}
	}
}

static void test_retention(void **state)
{
	(void)state;
	fill(1, 5);
	options.retention_ms = 1000;
	engine_again();
	clock_virtual_advance(&clock_, 1003 * 1000); /* now is T0 + 1003: 3 and 4 are left */
	expect(NULL, 0, 100, "h=a: 3=30 4=40; ");
	expect(NULL, 0, 2, "");
}

/* ---- Deadlines, places, freeing ------------------------------------------------------------ */

static void test_deadline(void **state)
{
	(void)state;
	struct asked a;
	struct query_chunk chunk;
	fill(2, 5);
	options.slice_points = 2;
	options.timeout_ms = 500;
	engine_again();
	/* Between two slices, after some points were given. */
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_true(query_take(a.query, 10, &chunk));
	assert_int_equal(chunk.count, 2);
	clock_virtual_advance(&clock_, 500000);
	assert_false(query_take(a.query, 10, &chunk));
	assert_true(a.query->ended && a.query->cut && !a.query->err);
	assert_string_equal(a.query->cut_why, "time");
	query_free(a.query);
	/* While nobody takes: the tick frees its place. */
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_true(query_take(a.query, 1, &chunk));
	query_engine_tick(engine);
	assert_false(a.query->ended);
	clock_virtual_advance(&clock_, 500000);
	query_engine_tick(engine);
	assert_true(a.query->ended && a.query->cut);
	assert_false(query_take(a.query, 1, &chunk));
	query_free(a.query);
	/* Before the first point it is an error. */
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	clock_virtual_advance(&clock_, 500000);
	pump();
	assert_int_equal(a.readies, 1);
	assert_int_equal(a.query->err, ERR_TIMEOUT);
	assert_string_equal(a.query->error.text,
			    "the query took longer than 500 ms; ask for fewer series or less time");
	query_free(a.query);
}

static void test_places(void **state)
{
	(void)state;
	struct asked a, b, c, d;
	struct query_chunk chunk;
	fill(1, 2);
	options.concurrent_max = 1;
	options.waiting_max = 2;
	engine_again();
	ask(&a, take_nothing, NULL, 0, 100);
	ask(&b, take_all, NULL, 0, 100);
	ask(&c, take_all, NULL, 0, 100);
	ask(&d, take_all, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	assert_int_equal(query_start(b.query), 0);
	assert_int_equal(query_start(c.query), 0);
	assert_int_equal(query_start(d.query), ERR_BUSY);
	assert_string_equal(d.query->error.text, "1 queries run and 2 wait; try again later");
	query_free(d.query);
	pump();
	assert_int_equal(a.readies, 1);
	assert_int_equal(b.readies, 0);
	query_free(b.query); /* while it waits */
	while (query_take(a.query, 10, &chunk))
		;
	pump();
	assert_true(a.query->ended);
	assert_string_equal(c.text, "h=a: 0=0 1=10; ");
	query_free(a.query);
	query_free(c.query);
	/* The deadline of one that waits. */
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	pump();
	clock_virtual_advance(&clock_, 30000000);
	ask(&b, take_all, NULL, 0, 100);
	assert_int_equal(query_start(b.query), 0);
	clock_virtual_advance(&clock_, 30000000);
	query_engine_tick(engine); /* ends the first, which makes room for the second */
	pump();
	assert_true(a.query->ended);
	assert_string_equal(b.text, "h=a: 0=0 1=10; ");
	query_free(a.query);
	query_free(b.query);
}

static void test_free_at_any_time(void **state)
{
	(void)state;
	fill(2, 5);
	options.slice_points = 2;
	engine_again();
	for (int steps = 0; steps < 12; steps++) {
		struct asked a;
		ask(&a, take_all, NULL, 0, 100);
		assert_int_equal(query_start(a.query), 0);
		for (int i = 0; i < steps; i++)
			task_queue_run(&loop);
		query_free(a.query);
		pump();
		assert_true(query_engine_idle(engine));
	}
	struct asked a;
	ask(&a, take_all, NULL, 0, 100);
	query_free(a.query); /* never started */
}

static void test_busy_store(void **state)
{
	(void)state;
	struct asked a;
	fill(1, 2);
	expect(NULL, 0, 100, "h=a: 0=0 1=10; "); /* the index is built now */
	ask(&a, take_all, NULL, 0, 100);
	naive_refuse_reads(store, ERR_BUSY, 1);
	refused(&a, ERR_BUSY, err_text(ERR_BUSY));
	expect(NULL, 0, 100, "h=a: 0=0 1=10; ");
}

static void test_fn_names(void **state)
{
	(void)state;
	enum query_fn fn = FN_NONE;
	assert_int_equal(query_fn_parse(SLICE("min"), &fn), 0);
	assert_int_equal(fn, FN_MIN);
	assert_int_equal(query_fn_parse(SLICE("last"), &fn), 0);
	assert_int_equal(fn, FN_LAST);
	assert_int_equal(query_fn_parse(SLICE("count"), &fn), 0);
	assert_int_equal(fn, FN_COUNT);
	assert_int_equal(query_fn_parse(SLICE("median"), &fn), ERR_INVALID);
	assert_int_equal(query_fn_parse(SLICE(""), &fn), ERR_INVALID);
	assert_int_equal(query_fn_parse(SLICE("mi"), &fn), ERR_INVALID);
	enum query_agg agg = AGG_NONE;
	assert_int_equal(query_agg_parse(SLICE("min"), &agg), 0);
	assert_int_equal(agg, AGG_MIN);
	assert_int_equal(query_agg_parse(SLICE("count"), &agg), 0);
	assert_int_equal(agg, AGG_COUNT);
	assert_int_equal(query_agg_parse(SLICE("last"), &agg), ERR_INVALID);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_raw),
		TEST(test_slices),
		TEST(test_batches),
		TEST(test_windows),
		TEST(test_windows_types),
		TEST(test_many_windows),
		TEST(test_limits),
		TEST(test_cut),
		TEST(test_retention),
		TEST(test_deadline),
		TEST(test_places),
		TEST(test_free_at_any_time),
		TEST(test_busy_store),
		TEST(test_newest),
		TEST(test_agg_at_equal_times),
		TEST(test_agg_of_each_by_itself),
		TEST(test_agg_of_large_integers),
		TEST(test_agg_of_the_largest_doubles),
		TEST(test_agg_of_windows),
		TEST(test_agg_of_many_times),
		TEST(test_small_before_large),
		TEST(test_given_while_reading),
		TEST(test_estimate),
		cmocka_unit_test(test_fn_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
