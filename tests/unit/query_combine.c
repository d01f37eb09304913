/* What becomes of points behind the engine: rates with resets, series put together, gaps, seconds.
 * All expected values are worked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/buf.h"
#include "query/combine.h"
#include "wire/number.h"

#define S INT64_C(1000)

struct sample {
	int64_t ts_ms;
	struct value value;
};

static struct combine *combine;
static struct buf said;

static int setup(void **state)
{
	(void)state;
	combine = NULL;
	buf_init(&said, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	combine_free(combine);
	buf_release(&said);
	return 0;
}

static void take(size_t max)
{
	struct combine_point points[16];
	size_t count;
	while ((count = combine_next(combine, points, max)) > 0) {
		for (size_t i = 0; i < count; i++) {
			buf_printf(&said, "%lld:", (long long)points[i].ts_ms);
			if (points[i].value.type == VALUE_NONE)
				buf_append_text(&said, "null");
			number_append(&said, points[i].value);
			buf_append_char(&said, ' ');
		}
	}
}

static void begin(struct combine_spec spec)
{
	combine_free(combine);
	combine = combine_new(&spec);
	buf_clear(&said);
	combine_begin(combine);
}

/* A series in chunks of `each`. */
static void add(const struct sample *samples, size_t count, size_t each)
{
	combine_series(combine);
	for (size_t at = 0; at < count; at += each) {
		int64_t ts_ms[64];
		uint64_t bits[64];
		uint8_t types[64];
		size_t n = count - at < each ? count - at : each, work = 0;
		for (size_t i = 0; i < n; i++) {
			ts_ms[i] = samples[at + i].ts_ms;
			bits[i] = samples[at + i].value.bits;
			types[i] = (uint8_t)samples[at + i].value.type;
		}
		struct query_chunk chunk = {
			.count = n, .ts_ms = ts_ms, .bits = bits, .types = types};
		assert_int_equal(combine_add(combine, &chunk, &work), 0);
		assert_true(work >= n);
		take(3);
	}
}

static void expect(const char *text)
{
	combine_end(combine);
	take(1);
	buf_append_char(&said, 0);
	assert_string_equal(said.data, text);
}

#define ADD(samples, each) add(samples, ARRAY_LEN(samples), each)

/* ---- Rates ----------------------------------------------------------------------------------- */

static const struct sample counter[] = {{0, {10, VALUE_I64}},
					{10 * S, {30, VALUE_I64}},
					{20 * S, {5, VALUE_I64}},
					{30 * S, {15, VALUE_I64}}};

static void expect_rates(struct combine_spec spec, const char *text)
{
	spec.rate = true;
	for (size_t each = 1; each <= 4; each++) {
		begin(spec);
		ADD(counter, each);
		expect(text);
	}
}

static void test_rates(void **state)
{
	(void)state;
	expect_rates((struct combine_spec){.agg = AGG_NONE}, "10000:2.0 20000:-2.5 30000:1.0 ");
	/* It began again at zero: 5 in 10 s. */
	expect_rates((struct combine_spec){.counter = true}, "10000:2.0 20000:0.5 30000:1.0 ");
	/* It passed 35: 5 up to it and 5 behind it. */
	struct combine_spec spec = {
		.counter = true, .has_max = true, .counter_max = {35, VALUE_I64}};
	expect_rates(spec, "10000:2.0 20000:1.0 30000:1.0 ");
	spec.reset_value = 1;
	expect_rates(spec, "10000:2.0 20000:1.0 30000:1.0 ");
	spec.reset_value = 0.99; /* only what fell is looked at */
	expect_rates(spec, "10000:2.0 20000:0.0 30000:1.0 ");
	/* The value before lies above the largest: so it was none. */
	spec = (struct combine_spec){
		.counter = true, .has_max = true, .counter_max = {29, VALUE_I64}};
	expect_rates(spec, "10000:2.0 20000:0.5 30000:1.0 ");
	spec.drop_resets = true;
	expect_rates(spec, "10000:2.0 30000:1.0 ");
	/* What is no counter does not reset. */
	expect_rates((struct combine_spec){.drop_resets = true}, "10000:2.0 20000:-2.5 30000:1.0 ");
}

static void test_rates_are_exact_and_skip_what_is_no_number(void **state)
{
	(void)state;
	const struct sample large[] = {{0, value_i64(INT64_C(1) << 53)},
				       {1 * S, value_i64((INT64_C(1) << 53) + 1)}};
	const struct sample wraps[] = {{0, value_u64(UINT64_MAX - 4)}, {500, value_u64(5)}};
	const struct sample gaps[] = {{0, value_f64(NAN)},
				      {10 * S, value_f64(10)},
				      {20 * S, value_f64(INFINITY)},
				      {30 * S, value_f64(30)}};
	struct combine_spec spec = {.rate = true};
	begin(spec);
	ADD(large, 2); /* as doubles they are equal */
	expect("1000:1.0 ");
	spec.counter = spec.has_max = true;
	spec.counter_max = value_u64(UINT64_MAX);
	begin(spec);
	ADD(wraps, 1); /* 4 up to the largest, and 5, in half a second */
	expect("500:18.0 ");
	begin(spec);
	ADD(gaps, 1);
	expect("30000:1.0 ");
	begin(spec);
	add(gaps, 2, 1); /* a first point has none */
	expect("");
}

/* Each series by itself: of the sums, 110 130 125, nobody could tell what fell. */
static void test_rates_come_before_sums(void **state)
{
	(void)state;
	const struct sample a[] = {
		{0, value_i64(10)}, {10 * S, value_i64(20)}, {20 * S, value_i64(5)}};
	const struct sample b[] = {
		{0, value_i64(100)}, {10 * S, value_i64(110)}, {20 * S, value_i64(120)}};
	for (size_t each = 1; each <= 3; each++) {
		begin((struct combine_spec){.rate = true, .counter = true, .agg = AGG_SUM});
		ADD(a, each);
		ADD(b, each);
		expect("10000:2.0 20000:1.5 ");
	}
}

/* ---- Series and gaps ------------------------------------------------------------------------- */

static const struct sample left[] = {{0, {4, VALUE_I64}}, {10 * S, {6, VALUE_I64}}};
static const struct sample right[] = {{10 * S, {2, VALUE_I64}}, {20 * S, {8, VALUE_I64}}};

static void expect_both(struct combine_spec spec, const char *text)
{
	spec.window_ms = 10 * S;
	spec.end_ms = 30 * S;
	for (size_t each = 1; each <= 2; each++) {
		begin(spec);
		ADD(left, each);
		ADD(right, each);
		expect(text);
		begin(spec); /* the order does not matter */
		ADD(right, each);
		ADD(left, each);
		expect(text);
	}
}

static void test_series_in_one(void **state)
{
	(void)state;
	expect_both((struct combine_spec){.agg = AGG_SUM}, "0:4 10000:8 20000:8 ");
	expect_both((struct combine_spec){.agg = AGG_AVG}, "0:4.0 10000:4.0 20000:8.0 ");
	expect_both((struct combine_spec){.agg = AGG_MIN}, "0:4 10000:2 20000:8 ");
	expect_both((struct combine_spec){.agg = AGG_COUNT}, "0:1 10000:2 20000:1 ");
	/* Who has no point has a zero. */
	expect_both((struct combine_spec){.agg = AGG_SUM, .fill = FILL_ZERO},
		    "0:4 10000:8 20000:8 ");
	expect_both((struct combine_spec){.agg = AGG_AVG, .fill = FILL_ZERO},
		    "0:2.0 10000:4.0 20000:4.0 ");
	expect_both((struct combine_spec){.agg = AGG_MIN, .fill = FILL_ZERO},
		    "0:0 10000:2 20000:0 ");
	expect_both((struct combine_spec){.agg = AGG_MAX, .fill = FILL_ZERO},
		    "0:4 10000:6 20000:8 ");
	/* Counted are values that were measured. */
	expect_both((struct combine_spec){.agg = AGG_COUNT, .fill = FILL_ZERO},
		    "0:1 10000:2 20000:1 ");
	/* Nothing at all is not a zero of the others. */
	begin((struct combine_spec){
		.agg = AGG_AVG, .fill = FILL_ZERO, .window_ms = 10 * S, .end_ms = 10 * S});
	add(left, 1, 1);
	add(right, 0, 1);
	expect("0:4.0 ");
}

/* Times of one series between, before and behind those of the others. */
static void test_times_are_sorted_in(void **state)
{
	(void)state;
	const struct sample a[] = {{20, value_i64(1)}, {40, value_i64(1)}, {60, value_i64(1)}};
	const struct sample b[] = {
		{10, value_i64(2)}, {20, value_i64(2)}, {50, value_i64(2)}, {70, value_i64(2)}};
	const struct sample c[] = {{5, value_i64(4)},
				   {50, value_i64(4)},
				   {60, value_i64(4)},
				   {70, value_i64(4)},
				   {80, value_i64(4)}};
	for (size_t each = 1; each <= 5; each++) {
		begin((struct combine_spec){.agg = AGG_SUM});
		ADD(a, each);
		ADD(b, each);
		ADD(c, each);
		expect("5:4 10:2 20:3 40:1 50:6 60:5 70:6 80:4 ");
	}
}

static void test_gaps(void **state)
{
	(void)state;
	const struct sample one[] = {{20 * S, value_i64(7)}};
	struct combine_spec spec = {
		.fill = FILL_NULL, .window_ms = 10 * S, .start_ms = 5 * S, .end_ms = 41 * S};
	begin(spec);
	ADD(one, 1);
	expect("0:null 10000:null 20000:7 30000:null 40000:null ");
	spec.end_ms = 40 * S; /* the window at the end is none */
	spec.fill = FILL_ZERO;
	begin(spec);
	ADD(one, 1);
	expect("0:0 10000:0 20000:7 30000:0 ");
	spec.fill = FILL_NONE;
	begin(spec);
	ADD(one, 1);
	expect("20000:7 ");
	/* A group without a point, here since its series has no rate, has no gaps either. */
	spec.fill = FILL_NULL;
	spec.rate = true;
	begin(spec);
	ADD(one, 1);
	expect("");
	/* The next group begins again; windows before 1970 too. */
	spec.rate = false;
	spec.start_ms = -15 * S;
	spec.end_ms = 25 * S;
	begin(spec);
	ADD(one, 1);
	expect("-20000:null -10000:null 0:null 10000:null 20000:7 ");
	combine_begin(combine);
	buf_clear(&said);
	ADD(one, 1);
	expect("-20000:null -10000:null 0:null 10000:null 20000:7 ");
}

/* ---- Seconds --------------------------------------------------------------------------------- */

static void test_points_of_one_second(void **state)
{
	(void)state;
	const struct sample samples[] = {{100, value_i64(1)},
					 {900, value_i64(2)},
					 {999, value_i64(6)},
					 {1500, value_i64(7)},
					 {3000, value_i64(8)}};
	static const struct {
		enum query_agg same;
		const char *text;
	} expected[] = {
		{AGG_NONE, "0:6 1000:7 3000:8 "}, /* the last */
		{AGG_SUM, "0:9 1000:7 3000:8 "},
		{AGG_MIN, "0:1 1000:7 3000:8 "},
		{AGG_AVG, "0:3.0 1000:7 3000:8 "},
	};
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		for (size_t each = 1; each <= 5; each++) {
			begin((struct combine_spec){.tick_ms = S, .same = expected[i].same});
			ADD(samples, each);
			expect(expected[i].text);
		}
	}
	/* A gap beside a value is none. */
	const struct sample half[] = {{500, value_i64(3)}};
	begin((struct combine_spec){.tick_ms = S,
				    .same = AGG_SUM,
				    .fill = FILL_NULL,
				    .window_ms = 500,
				    .end_ms = 2 * S});
	ADD(half, 1);
	expect("0:3 1000:null ");
	/* Windows of 300 ms from that at 900 to that at 3000, which begin in these seconds. */
	const struct sample late[] = {{2100, value_i64(4)}};
	begin((struct combine_spec){.tick_ms = S,
				    .agg = AGG_AVG,
				    .fill = FILL_NULL,
				    .window_ms = 300,
				    .start_ms = 1100,
				    .end_ms = 3100});
	ADD(late, 1);
	expect("0:null 1000:null 2000:4.0 3000:null ");
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void test_times_are_bounded(void **state)
{
	(void)state;
	static int64_t ts_ms[COMBINE_CHUNK_MAX];
	static uint64_t bits[COMBINE_CHUNK_MAX];
	static uint8_t types[COMBINE_CHUNK_MAX];
	struct query_chunk chunk = {.ts_ms = ts_ms, .bits = bits, .types = types};
	size_t work = 0;
	begin((struct combine_spec){.agg = AGG_SUM});
	combine_series(combine);
	chunk.count = COMBINE_CHUNK_MAX;
	for (int64_t at = 0; at < COMBINE_TIMES_MAX; at += COMBINE_CHUNK_MAX) {
		for (size_t i = 0; i < chunk.count; i++) {
			ts_ms[i] = at + (int64_t)i;
			types[i] = VALUE_I64;
		}
		assert_int_equal(combine_add(combine, &chunk, &work), 0);
	}
	chunk.count = 1;
	ts_ms[0] = COMBINE_TIMES_MAX - 1;
	combine_series(combine);
	assert_int_equal(combine_add(combine, &chunk, &work), 0); /* a time that is there */
	ts_ms[0] = COMBINE_TIMES_MAX;
	assert_int_equal(combine_add(combine, &chunk, &work), ERR_LIMIT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rates),
		TEST(test_rates_are_exact_and_skip_what_is_no_number),
		TEST(test_rates_come_before_sums),
		TEST(test_series_in_one),
		TEST(test_times_are_sorted_in),
		TEST(test_gaps),
		TEST(test_points_of_one_second),
		TEST(test_times_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
