/* last_before and aggregate, against samples that were decoded one by one. */
#include <math.h>

#include "base/random.h"
#include "contract.h"

#define F(x) value_f64(x)
#define I(x) value_i64(x)
#define U(x) value_u64(x)
#define NONE ((struct value){0, VALUE_NONE})

static void expect_last(struct rig *rig, uint64_t h, int64_t before_ms, int64_t look_back_ms,
			int64_t ts_ms, int64_t value)
{
	struct point point;
	assert_true(rig_last_before(rig, RAW, h, before_ms, look_back_ms, &point));
	assert_int_equal(point.ts_ms, ts_ms);
	assert_value(point.values[0], I(value));
}

static void expect_no_last(struct rig *rig, uint64_t h, int64_t before_ms, int64_t look_back_ms)
{
	struct point point;
	assert_false(rig_last_before(rig, RAW, h, before_ms, look_back_ms, &point));
}

static void last_before_and_how_far_it_looks_back(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	expect_no_last(rig, h, T0, 0);
	rig_put(rig, RAW, h, T0 - 500LL * DAY_MS, I(1));
	rig_put(rig, RAW, h, T0 - 1000, I(2));
	rig_put(rig, RAW, h, T0, I(3));
	for (int pass = 0; pass < 2; pass++) {
		expect_last(rig, h, T0 + 1, 0, T0, 3);
		expect_last(rig, h, T0, 0, T0 - 1000, 2); /* before is out */
		expect_last(rig, h, INT64_MAX, 0, T0, 3);
		expect_last(rig, h, T0, 1000, T0 - 1000, 2); /* just as far as it looks */
		expect_no_last(rig, h, T0, 999);
		expect_no_last(rig, h, T0 - 1000, 1000);
		expect_last(rig, h, T0 - 1000, 0, T0 - 500LL * DAY_MS, 1);
		expect_last(rig, h, T0 - 1000, 500LL * DAY_MS - 1000, T0 - 500LL * DAY_MS, 1);
		expect_no_last(rig, h, T0 - 1000, 500LL * DAY_MS - 1001);
		expect_last(rig, h, T0 + 1, INT64_MAX, T0, 3);
		expect_no_last(rig, h, T0 - 500LL * DAY_MS, 0);
		expect_no_last(rig, h, INT64_MIN, 0);
		expect_no_last(rig, h, INT64_MIN, 1000);
		rig_settle(rig);
	}
}

static void last_before_of_many_has_all_fields(struct rig *rig)
{
	struct store_target rates = {TABLE_BASE_RATES, RETENTION_EVER, 30000};
	uint64_t handles[3] = {rig_series(rig, "a", ""), rig_series(rig, "b", ""),
			       rig_series(rig, "c", "")};
	rig_put_fields(rig, rates, handles[0], T0, (struct value[]){I(1), I(1), NONE, NONE, U(9)});
	rig_put_fields(rig, rates, handles[0], T0 + 1,
		       (struct value[]){NONE, NONE, I(7), NONE, NONE});
	rig_put_fields(rig, rates, handles[2], T0 + 5,
		       (struct value[]){I(2), NONE, NONE, NONE, NONE});
	for (int pass = 0; pass < 2; pass++) {
		for (size_t max = 0; max < 3; max++) {
			struct store_read *read = rig_read_new(rig);
			struct store_request *request = store_read_add(read, STORE_LAST_BEFORE);
			size_t counts[3] = {0};
			read->points_max = max;
			request->last_before = (struct store_last_before){
				.table = TABLE_BASE_RATES,
				.period_ms = 30000,
				.handles = handles,
				.handle_count = 3,
				.before_ms = T0 + 100,
			};
			for (int slice = 0; slice == 0 || request->more; slice++) {
				assert_int_equal(rig_read(rig, read), 0);
				const struct store_points *points = request->last_before.points;
				for (size_t i = 0; i < 3; i++)
					counts[i] += points[i].count;
				if (points[0].count) {
					assert_int_equal(points[0].ts_ms[0], T0 + 1);
					assert_int_equal(points[0].types[0][0], VALUE_NONE);
					assert_int_equal(points[0].types[2][0], VALUE_I64);
					assert_int_equal(points[0].bits[2][0], 7);
				}
			}
			assert_int_equal(counts[0], 1);
			assert_int_equal(counts[1], 0);
			assert_int_equal(counts[2], 1);
			store_read_free(read);
		}
		rig_settle(rig);
	}
}

static struct store_summary *summaries(struct rig *rig, uint64_t h, int64_t start_ms,
				       int64_t end_ms, int64_t window_ms, size_t *windows)
{
	struct store_aggregate aggregate = {
		.table = TABLE_DATA_RAW,
		.handles = &h,
		.handle_count = 1,
		.start_ms = start_ms,
		.end_ms = end_ms,
		.window_ms = window_ms,
	};
	return rig_aggregate(rig, &aggregate, 0, windows);
}

static void windows_begin_at_start_and_are_cut_at_end(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	for (int64_t i = 0; i < 10; i++)
		rig_put(rig, RAW, h, T0 + i, I(i));
	for (int pass = 0; pass < 2; pass++) {
		size_t windows;
		/* [1,4) 1+2+3, [4,7) 4+5+6, [7,8) 7: the last is cut */
		struct store_summary *s = summaries(rig, h, T0 + 1, T0 + 8, 3, &windows);
		assert_int_equal(windows, 3);
		static const struct {
			uint64_t count;
			double sum;
			int64_t first, last;
		} expected[] = {{3, 6, 1, 3}, {3, 15, 4, 6}, {1, 7, 7, 7}};
		for (size_t w = 0; w < 3; w++) {
			assert_int_equal(s[w].count, expected[w].count);
			assert_true(s[w].sum == expected[w].sum);
			assert_value(s[w].min, I(expected[w].first));
			assert_value(s[w].first, I(expected[w].first));
			assert_value(s[w].max, I(expected[w].last));
			assert_value(s[w].last, I(expected[w].last));
			assert_int_equal(s[w].first_ts_ms, T0 + expected[w].first);
			assert_int_equal(s[w].last_ts_ms, T0 + expected[w].last);
		}
		/* A window wider than the range; a range before, between and behind the data. */
		s = summaries(rig, h, T0 + 8, T0 + 100, INT64_MAX, &windows);
		assert_int_equal(windows, 1);
		assert_int_equal(s->count, 2);
		assert_true(s->sum == 17);
		s = summaries(rig, h, INT64_MIN, INT64_MAX, INT64_MAX, &windows);
		assert_int_equal(windows, 3); /* 2^64 - 1 = 2 (2^63 - 1) + 1 */
		assert_int_equal(s[0].count + s[1].count + s[2].count, 10);
		s = summaries(rig, h, T0, T0, 10, &windows);
		assert_int_equal(windows, 0);
		rig_settle(rig);
	}
}

static void window_without_samples_has_count_zero(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	size_t windows;
	rig_put(rig, RAW, h, T0, I(0));
	rig_put(rig, RAW, h, T0 + 30, I(5));
	for (int pass = 0; pass < 2; pass++) {
		struct store_summary *s = summaries(rig, h, T0 - 10, T0 + 40, 10, &windows);
		assert_int_equal(windows, 5);
		static const uint64_t counts[] = {0, 1, 0, 0, 1};
		for (size_t w = 0; w < 5; w++) {
			assert_int_equal(s[w].count, counts[w]);
			if (counts[w] == 0)
				assert_int_equal(s[w].min.type, VALUE_NONE);
		}
		/* Zero was measured: that is a number. */
		assert_value(s[1].min, I(0));
		assert_true(s[1].sum == 0);
		rig_settle(rig);
	}
}

static struct store_summary one_window(struct rig *rig, const char *name,
				       const struct value *values, size_t count)
{
	uint64_t h = rig_series(rig, name, "");
	size_t windows;
	for (size_t i = 0; i < count; i++)
		rig_put(rig, RAW, h, T0 + (int64_t)i, values[i]);
	struct store_summary before = *summaries(rig, h, T0, T0 + (int64_t)count, DAY_MS, &windows);
	rig_settle(rig);
	struct store_summary after = *summaries(rig, h, T0, T0 + (int64_t)count, DAY_MS, &windows);
	assert_int_equal(before.count, after.count);
	assert_true(before.sum == after.sum || (isnan(before.sum) && isnan(after.sum)));
	assert_true(value_equal(before.min, after.min));
	assert_true(value_equal(before.max, after.max));
	assert_value(before.first, after.first);
	assert_value(before.last, after.last);
	return after;
}
#define ONE_WINDOW(name, ...)                                                                      \
	one_window(rig, name, (struct value[]){__VA_ARGS__},                                       \
		   ARRAY_LEN(((struct value[]){__VA_ARGS__})))

static void integers_are_exact(struct rig *rig)
{
	const int64_t big = INT64_C(9007199254740993); /* 2^53 + 1 */
	struct store_summary s = ONE_WINDOW("a", I(big), I(big - 1), I(big - 2), I(big - 1));
	assert_value(s.max, I(big));
	assert_value(s.min, I(big - 2));
	assert_value(s.first, I(big));
	assert_value(s.last, I(big - 1));
	/* 4 * 2^53 = 36028797018963968: the sum of them is just this, and a double. */
	assert_true(s.sum == 36028797018963968.0);

	/* Added as doubles, the first two would swallow the ones: 2^53 + 1 + 1 = 2^53 + 2. */
	s = ONE_WINDOW("b", I(INT64_C(9007199254740992)), I(1), I(1));
	assert_true(s.sum == 9007199254740994.0);

	s = ONE_WINDOW("c", U(UINT64_MAX), I(INT64_MIN), U(UINT64_C(1) << 63), I(-1), I(0));
	assert_value(s.max, U(UINT64_MAX));
	assert_value(s.min, I(INT64_MIN));

	/* Between a double and the integers beside it. */
	s = ONE_WINDOW("d", F(9007199254740992.0), I(big), F(9007199254740994.0));
	assert_true(value_equal(s.max, F(9007199254740994.0)));
	assert_true(value_equal(s.min, F(9007199254740992.0)));
	s = ONE_WINDOW("e", I(big), F(9007199254740992.0));
	assert_value(s.max, I(big));
	s = ONE_WINDOW("f", I(-5), U(3), F(2.5), I(2));
	assert_value(s.max, U(3));
	assert_value(s.min, I(-5));
	assert_true(s.sum == 2.5);
}

static bool is_sum(const struct store_summary *s, __int128 integers, double doubles)
{
	return s->integers == integers && s->doubles == doubles && s->scaled == doubles * 0x1p-64 &&
	       s->sum == (double)integers + doubles;
}

/* Sums that no double is, and what the integers and the doubles add to them; of few values and of
 * blocks with a summary. */
static void sums_of_integers_are_whole(struct rig *rig)
{
	enum { ROWS = 1000 };
	const int64_t big = INT64_C(9007199254740993); /* 2^53 + 1 */
	struct value list[ROWS];
	struct store_summary s = ONE_WINDOW("a", I(big), I(0));
	assert_true(is_sum(&s, big, 0));
	s = ONE_WINDOW("b", I(INT64_MAX), I(INT64_MAX), I(5));
	assert_true(is_sum(&s, (__int128)INT64_MAX * 2 + 5, 0));
	s = ONE_WINDOW("c", I(INT64_MIN), I(INT64_MIN), I(-5));
	assert_true(is_sum(&s, (__int128)INT64_MIN * 2 - 5, 0));
	s = ONE_WINDOW("d", U(UINT64_MAX), U(UINT64_MAX - 1), U(0));
	assert_true(is_sum(&s, (__int128)UINT64_MAX * 2 - 1, 0));
	s = ONE_WINDOW("e", F(0.5), F(-2.25), F(0));
	assert_true(is_sum(&s, 0, -1.75));
	/* 0 + 1 + ... + 999 = 499,500. */
	for (int i = 0; i < ROWS; i++)
		list[i] = I(big - i * 7);
	s = one_window(rig, "f", list, ROWS);
	assert_true(is_sum(&s, (__int128)big * ROWS - 7 * 499500, 0));
	for (int i = 0; i < ROWS; i++)
		list[i] = U(UINT64_MAX - (uint64_t)(i * 3));
	s = one_window(rig, "g", list, ROWS);
	assert_true(is_sum(&s, (__int128)UINT64_MAX * ROWS - 3 * 499500, 0));
	for (int i = 0; i < ROWS; i++)
		list[i] = I(big);
	s = one_window(rig, "h", list, ROWS);
	assert_true(is_sum(&s, (__int128)big * ROWS, 0));
	for (int i = 0; i < ROWS; i++)
		list[i] = F(i / 4.0);
	s = one_window(rig, "i", list, ROWS);
	assert_true(is_sum(&s, 0, 124875));
}

static void nan_counts_and_is_no_extreme(struct rig *rig)
{
	struct store_summary s = ONE_WINDOW("a", F(NAN), F(3), F(-1), F(NAN));
	assert_int_equal(s.count, 4);
	assert_true(isnan(s.sum));
	assert_value(s.min, F(-1));
	assert_value(s.max, F(3));
	assert_true(isnan(value_as_f64(s.first)) && s.first.type == VALUE_F64);
	assert_true(isnan(value_as_f64(s.last)) && s.last.type == VALUE_F64);

	s = ONE_WINDOW("b", F(NAN), F(NAN));
	assert_int_equal(s.count, 2);
	assert_int_equal(s.min.type, VALUE_NONE);
	assert_int_equal(s.max.type, VALUE_NONE);
	assert_true(isnan(s.sum));

	s = ONE_WINDOW("c", F(NAN), I(7));
	assert_value(s.min, I(7));
	assert_value(s.max, I(7));
}

static void infinities_and_zeros(struct rig *rig)
{
	struct store_summary s = ONE_WINDOW("a", F(1), F(INFINITY), F(2));
	assert_true(s.sum == INFINITY);
	assert_value(s.max, F(INFINITY));
	assert_value(s.min, F(1));
	s = ONE_WINDOW("b", F(INFINITY), F(-INFINITY));
	assert_true(isnan(s.sum));
	assert_value(s.max, F(INFINITY));
	assert_value(s.min, F(-INFINITY));
	s = ONE_WINDOW("c", F(-0.0), F(-0.0));
	assert_value(s.first, F(-0.0));
	assert_value(s.last, F(-0.0));
	assert_true(s.sum == 0);
	s = ONE_WINDOW("d", F(-INFINITY), I(INT64_MIN));
	assert_value(s.min, F(-INFINITY));
	assert_value(s.max, I(INT64_MIN));
}

/* Sums that leave the doubles on their way, of which the mean is one. All numbers here are
 * multiples of 2^1013 below 2^1024, so that each mean and each sum is exact: worked out by hand. */
static void means_of_the_largest(struct rig *rig)
{
	enum { ROWS = 1000 };
	static const double half = 0x1p1023;
	struct value list[ROWS];
	struct store_summary s = ONE_WINDOW("a", F(1.5 * half), F(1.25 * half));
	assert_true(s.sum == INFINITY);
	assert_true(store_mean(s.sum, s.scaled, s.count) == 1.375 * half);
	s = ONE_WINDOW("b", F(-1.5 * half), F(-half), F(-half), I(-7));
	assert_true(s.sum == -INFINITY);
	assert_true(store_mean(s.sum, s.scaled, s.count) == -0.875 * half);
	/* There and back again. */
	s = ONE_WINDOW("c", F(half), F(half), F(-half), F(-half), F(0x1p1000));
	assert_true(s.sum == 0x1p1000);
	s = ONE_WINDOW("d", F(INFINITY), F(1));
	assert_true(store_mean(s.sum, s.scaled, s.count) == INFINITY);
	s = ONE_WINDOW("e", F(NAN), F(half), F(half));
	assert_true(isnan(store_mean(s.sum, s.scaled, s.count)));
	/* Blocks with a summary: (1 + i / 1024) 2^1023 for i below 1,000, then as many below zero.
	 */
	for (int i = 0; i < ROWS; i++)
		list[i] = F((1 + i / 1024.0) * half);
	s = one_window(rig, "f", list, ROWS);
	assert_true(s.sum == INFINITY);
	assert_true(store_mean(s.sum, s.scaled, s.count) == (1 + 999 / 2048.0) * half);
	for (int i = ROWS / 2; i < ROWS; i++)
		list[i] = F(-(1 + (i - ROWS / 2) / 1024.0) * half);
	s = one_window(rig, "g", list, ROWS);
	assert_true(s.sum == 0 && store_mean(s.sum, s.scaled, s.count) == 0);
	for (int i = 0; i < ROWS; i++)
		list[i] = F(1.75 * half);
	s = one_window(rig, "h", list, ROWS);
	assert_true(store_mean(s.sum, s.scaled, s.count) == 1.75 * half);
}

static void one_field_of_several(struct rig *rig)
{
	struct store_target rates = {TABLE_BASE_RATES, RETENTION_EVER, 30000};
	uint64_t h = rig_series(rig, "a", "");
	size_t windows;
	rig_put_all(rig, rates, h,
		    POINTS({T0, {I(1), NONE, I(10), NONE, NONE}},
			   {T0 + 1, {I(2), I(1), NONE, NONE, NONE}},
			   {T0 + 2, {NONE, I(0), I(30), NONE, NONE}}));
	for (int pass = 0; pass < 2; pass++) {
		static const uint64_t counts[] = {2, 2, 2, 0, 0};
		static const double sums[] = {3, 1, 40, 0, 0};
		for (unsigned f = 0; f < 5; f++) {
			struct store_aggregate aggregate = {
				.table = TABLE_BASE_RATES,
				.period_ms = 30000,
				.handles = &h,
				.handle_count = 1,
				.field = f,
				.start_ms = T0,
				.end_ms = T0 + 100,
				.window_ms = 100,
			};
			struct store_summary *s = rig_aggregate(rig, &aggregate, 0, &windows);
			assert_int_equal(s->count, counts[f]);
			if (counts[f])
				assert_true(s->sum == sums[f]);
			if (f == 1) {
				assert_int_equal(s->first_ts_ms, T0 + 1);
				assert_int_equal(s->last_ts_ms, T0 + 2);
			}
		}
		rig_settle(rig);
	}
}

/* Slices of some handles, one of which has never been: those that a slice gives are whole, of all
 * others there is nothing. Slices lie where the ones before have lain. */
static void a_slice_is_whole_handles_and_nothing(struct rig *rig)
{
	enum { HANDLES = 5, WINDOWS = 2, NEVER = 2 };
	uint64_t handles[HANDLES] = {rig_series(rig, "a", ""), rig_series(rig, "b", ""), UINT64_MAX,
				     rig_series(rig, "c", ""), rig_series(rig, "d", "")};
	for (int64_t i = 0; i < HANDLES; i++) {
		if (i == NEVER)
			continue;
		rig_put(rig, RAW, handles[i], T0, I(i + 1));
		rig_put(rig, RAW, handles[i], T0 + 10, I(-i - 1));
	}
	for (size_t max = 1; max <= HANDLES * WINDOWS + 2; max += 2) {
		struct store_read *read = rig_read_new(rig);
		struct store_request *request = store_read_add(read, STORE_AGGREGATE);
		struct store_aggregate *q = &request->aggregate;
		*q = (struct store_aggregate){.table = TABLE_DATA_RAW,
					      .handles = handles,
					      .handle_count = HANDLES,
					      .start_ms = T0,
					      .end_ms = T0 + 20,
					      .window_ms = 10};
		read->points_max = max;
		for (size_t begin = 0; begin == 0 || request->more; begin = q->next_handle) {
			assert_int_equal(rig_read(rig, read), 0);
			assert_true(q->next_handle > begin);
			for (size_t i = 0; i < HANDLES * WINDOWS; i++) {
				size_t h = i / WINDOWS;
				if (h < begin || h >= q->next_handle || h == NEVER) {
					assert_int_equal(q->windows[h].count, 0);
					continue;
				}
				assert_int_equal(q->windows[h].count, WINDOWS);
				assert_int_equal(q->windows[h].numbers[i % WINDOWS], i % WINDOWS);
				const struct store_summary *s = &q->windows[h].list[i % WINDOWS];
				int64_t value = i % WINDOWS ? -(int64_t)h - 1 : (int64_t)h + 1;
				assert_int_equal(s->count, 1);
				assert_value(s->max, I(value));
				assert_true(s->sum == (double)value);
			}
		}
		assert_int_equal(q->next_handle, HANDLES);
		store_read_free(read);
	}
}

/* The plain definition, from samples that a range has given. */
static struct store_summary define(const struct points *points, int64_t from_ms, int64_t to_ms)
{
	struct store_summary s = {0};
	for (size_t i = 0; i < points->count; i++) {
		struct point p = points->list[i];
		if (p.ts_ms < from_ms || p.ts_ms >= to_ms)
			continue;
		if (s.count++ == 0) {
			s.first = s.min = s.max = p.values[0];
			s.first_ts_ms = p.ts_ms;
		}
		s.last = p.values[0];
		s.last_ts_ms = p.ts_ms;
		s.sum += value_as_f64(p.values[0]);
		if (value_compare(p.values[0], s.min) < 0)
			s.min = p.values[0];
		if (value_compare(p.values[0], s.max) > 0)
			s.max = p.values[0];
	}
	return s;
}

static void assert_defined(const struct store_summary *s, const struct store_summary *d)
{
	assert_int_equal(s->count, d->count);
	if (d->count == 0)
		return;
	assert_true(s->sum == d->sum);
	assert_true(value_equal(s->min, d->min) && value_equal(s->max, d->max));
	assert_value(s->first, d->first);
	assert_value(s->last, d->last);
	assert_int_equal(s->first_ts_ms, d->first_ts_ms);
	assert_int_equal(s->last_ts_ms, d->last_ts_ms);
}

enum { KINDS = 7 };

/* The next value of a series of some kind, whose last was made of *n. All are integers or quarters,
 * so that every sum is exact in whatever order it is added. */
static struct value next_value(struct random *random, size_t kind, int64_t *n)
{
	int64_t step = (int64_t)random_below(random, 5) - 2;
	switch (kind) {
	case 0: /* of mixed types, without order */
		*n = (int64_t)random_below(random, 2000) - 1000;
		return *n % 3 ? F((double)*n / 4) : I(*n);
	case 1: /* a gauge */
		*n += step;
		return I(*n - 20);
	case 2: /* one that touches zero, below which its type has nothing */
		*n = *n + step < 0 ? 0 : *n + step;
		return U((uint64_t)*n);
	case 3: /* decimals */
		*n += step;
		return F((double)*n / 4);
	case 4: /* a counter, now and then reset */
		*n = random_below(random, 200) ? *n + 700 + step : 0;
		return U((uint64_t)*n);
	case 5: /* often the same */
		*n += random_below(random, 50) ? 0 : step;
		return I(*n);
	default: /* always */
		return F(1.5);
	}
}

static void same_as_from_decoded_samples(struct rig *rig)
{
	enum { SERIES = 2 * KINDS, COUNT = 3000 };
	struct random random;
	uint64_t handles[SERIES];
	struct points points[SERIES];
	random_init(&random, 4711);
	for (size_t s = 0; s < SERIES; s++) {
		int64_t n = 0;
		char tags[16];
		snprintf(tags, sizeof(tags), "s=%zu", s);
		handles[s] = rig_series(rig, "cpu", tags);
		struct store_write *write = rig_write_new(rig);
		for (int64_t i = 0; i < COUNT; i++) {
			struct value v = next_value(&random, s / 2, &n);
			/* Every other at a steady pace. */
			int64_t off_ms = s % 2 ? 0 : (int64_t)random_below(&random, 60000);
			int64_t ts_ms = T0 + i * 60000 + off_ms;
			assert_int_equal(store_append(write, &RAW, ts_ms, &handles[s], 1, &v), 0);
		}
		rig_commit(rig, write);
		if (s % 3 == 1)
			rig_settle(rig);
	}
	rig_delete(rig, RAW, handles[0], T0 + 500 * 60000, T0 + 900 * 60000 + 17);
	struct store_range range = {
		.table = TABLE_DATA_RAW,
		.handles = handles,
		.handle_count = SERIES,
		.start_ms = INT64_MIN,
		.end_ms = INT64_MAX,
	};
	assert_int_equal(rig_range(rig, &range, 0, points), 0);
	for (int round = 0; round < 60; round++) {
		int64_t start = T0 - HOUR_MS + (int64_t)random_below(&random, COUNT * 60000);
		int64_t end = start + (int64_t)random_below(&random, COUNT * 60000);
		int64_t window = 1 + (int64_t)random_below(&random, round % 2 ? DAY_MS : HOUR_MS);
		struct store_aggregate aggregate = {
			.table = TABLE_DATA_RAW,
			.handles = handles,
			.handle_count = SERIES,
			.start_ms = start,
			.end_ms = end,
			.window_ms = window,
		};
		size_t windows;
		if ((end - start) / window > 5000)
			continue;
		struct store_summary *s =
			rig_aggregate(rig, &aggregate, round % 3 ? 0 : 1, &windows);
		assert_int_equal(windows, (end - start + window - 1) / window);
		for (size_t h = 0; h < SERIES; h++) {
			for (size_t w = 0; w < windows; w++) {
				int64_t from = start + (int64_t)w * window;
				int64_t to = from + window < end ? from + window : end;
				struct store_summary d = define(&points[h], from, to);
				assert_defined(&s[h * windows + w], &d);
			}
		}
		if (round == 20)
			rig_settle(rig);
	}
}

const struct contract_case cases_aggregate[] = {
	CASE(last_before_and_how_far_it_looks_back),
	CASE(last_before_of_many_has_all_fields),
	CASE(windows_begin_at_start_and_are_cut_at_end),
	CASE(window_without_samples_has_count_zero),
	CASE(integers_are_exact),
	CASE(sums_of_integers_are_whole),
	CASE(nan_counts_and_is_no_extreme),
	CASE(infinities_and_zeros),
	CASE(means_of_the_largest),
	CASE(one_field_of_several),
	CASE(a_slice_is_whole_handles_and_nothing),
	CASE(same_as_from_decoded_samples),
	{0},
};
