/* What a value may be, several fields at one time, and several series in one append. */
#include <math.h>

#include "contract.h"

#define F(x) value_f64(x)
#define I(x) value_i64(x)
#define U(x) value_u64(x)
#define NONE ((struct value){0, VALUE_NONE})

static struct value bits_f64(uint64_t bits)
{
	return (struct value){bits, VALUE_F64};
}

/* Every one comes back with its bits and its type. */
static void values_come_back_bit_for_bit(struct rig *rig)
{
	const struct value values[] = {
		F(0.0),
		F(-0.0),
		F(1.5),
		F(-1e308),
		F(5e-324),
		F(INFINITY),
		F(-INFINITY),
		bits_f64(UINT64_C(0x7ff8000000000000)), /* quiet NaN */
		bits_f64(UINT64_C(0xfff8000000000000)), /* its negative */
		bits_f64(UINT64_C(0x7ff0000000000001)), /* signalling */
		bits_f64(UINT64_C(0x7ff8deadbeefcafe)), /* with a payload */
		bits_f64(UINT64_C(0x7ff0000000000002)), /* the stale marker of Prometheus */
		F(0.1),
		F(0x1.fffffffffffffp1023),
		F(9007199254740993.0),
		I(0),
		I(-1),
		I(INT64_C(9007199254740993)), /* 2^53 + 1: no double is this */
		I(-INT64_C(9007199254740993)),
		I(INT64_MAX),
		I(INT64_MIN),
		U(0),
		U(UINT64_C(9007199254740993)),
		U(UINT64_C(9223372036854775808)), /* 2^63 */
		U(UINT64_MAX),
		F(3),
		I(3),
		U(3),
	};
	enum { COUNT = ARRAY_LEN(values) };
	uint64_t mixed = rig_series(rig, "mixed", ""), alone[COUNT];
	struct point points[COUNT];
	char tags[32];
	for (size_t i = 0; i < COUNT; i++) {
		points[i] = (struct point){T0 + (int64_t)i, {values[i]}};
		snprintf(tags, sizeof(tags), "i=%zu", i);
		alone[i] = rig_series(rig, "alone", tags);
		rig_put(rig, RAW, mixed, T0 + (int64_t)i, values[i]);
		rig_put(rig, RAW, alone[i], T0, values[i]);
		rig_put(rig, RAW, alone[i], T0 + 1, values[i]);
	}
	for (int pass = 0; pass < 3; pass++) {
		expect_all(rig, RAW, mixed, (struct points){points, COUNT});
		for (size_t i = 0; i < COUNT; i++)
			expect_all(rig, RAW, alone[i],
				   POINTS({T0, {values[i]}}, {T0 + 1, {values[i]}}));
		if (pass == 0)
			rig_settle(rig);
		if (pass != 1)
			continue;
		rig_reopen(rig);
		mixed = rig_find(rig, "t", "mixed", "");
		for (size_t i = 0; i < COUNT; i++) {
			snprintf(tags, sizeof(tags), "i=%zu", i);
			alone[i] = rig_find(rig, "t", "alone", tags);
		}
	}
}

/* Shapes that invite a codec each: constants, counters, decimals, gauges, jumps, alternations. */
static struct value shaped(int shape, int64_t i)
{
	switch (shape) {
	case 0:
		return I(42);
	case 1:
		return U(UINT64_C(18446744073709551000) + (uint64_t)(i % 616));
	case 2:
		return F((double)(i * 25) / 100);
	case 3:
		return F(sin((double)i));
	case 4:
		return I(i % 2 ? INT64_MAX : INT64_MIN);
	case 5:
		return i % 5 ? F(477.0) : I(477);
	case 6:
		return F(i % 11 ? 1e-300 * (double)i : NAN);
	case 7:
		return I(i * i * i);
	case 8:
		return F((double)(i % 100) - 0.0);
	case 9:
		return i % 2 ? F(-0.0) : F(0.0);
	default:
		return F(1234567.891 + 0.001 * (double)i);
	}
}

static int64_t shaped_ts(int shape, int64_t i)
{
	/* Regular, with jitter, with gaps. */
	return T0 + 10000 * i + (shape % 3 == 1 ? i * 7 % 13 : 0) +
	       (shape % 3 == 2 && i > 700 ? 5 * HOUR_MS : 0);
}

static void shapes_survive_every_codec(struct rig *rig)
{
	enum { SHAPES = 11, COUNT = 1500 };
	struct point *expected = arena_zalloc(&rig->keep, COUNT * sizeof(*expected));
	for (int shape = 0; shape < SHAPES; shape++) {
		char tags[32];
		snprintf(tags, sizeof(tags), "shape=%d", shape);
		uint64_t h = rig_series(rig, "m", tags);
		for (int64_t i = 0; i < COUNT; i++)
			expected[i] = (struct point){shaped_ts(shape, i), {shaped(shape, i)}};
		rig_put_all(rig, RAW, h, (struct points){expected, COUNT});
		if (shape % 2)
			rig_settle(rig);
	}
	rig_settle(rig);
	for (int shape = 0; shape < SHAPES; shape++) {
		char tags[32];
		snprintf(tags, sizeof(tags), "shape=%d", shape);
		uint64_t h = rig_find(rig, "t", "m", tags);
		for (int64_t i = 0; i < COUNT; i++)
			expected[i] = (struct point){shaped_ts(shape, i), {shaped(shape, i)}};
		expect_all(rig, RAW, h, (struct points){expected, COUNT});
	}
}

#define RATES ((struct store_target){TABLE_BASE_RATES, RETENTION_EVER, 30000})

static void fields_of_one_time_lie_together(struct rig *rig)
{
	uint64_t h = rig_series(rig, "ifHCInOctets", "device=r");
	struct points two = POINTS({T0, {U(15), I(1), I(30000), U(0), NONE}},
				   {T0 + 30000, {U(25), I(0), I(15000), U(5), U(77)}});
	rig_put_all(rig, RATES, h, two);
	for (int pass = 0; pass < 2; pass++) {
		expect_all(rig, RATES, h, two);
		rig_settle(rig);
	}
}

static void fields_are_written_one_by_one(struct rig *rig)
{
	uint64_t h = rig_series(rig, "ifHCInOctets", "device=r");
	rig_put_fields(rig, RATES, h, T0, (struct value[]){I(1), NONE, NONE, NONE, NONE});
	rig_put_fields(rig, RATES, h, T0, (struct value[]){NONE, NONE, I(3), NONE, NONE});
	expect_all(rig, RATES, h, POINTS({T0, {I(1), NONE, I(3), NONE, NONE}}));
	rig_settle(rig);
	rig_put_fields(rig, RATES, h, T0, (struct value[]){NONE, NONE, NONE, NONE, U(5)});
	expect_all(rig, RATES, h, POINTS({T0, {I(1), NONE, I(3), NONE, U(5)}}));
	/* NONE leaves alone; another type overwrites. */
	rig_put_fields(rig, RATES, h, T0, (struct value[]){NONE, NONE, U(45), NONE, NONE});
	expect_all(rig, RATES, h, POINTS({T0, {I(1), NONE, U(45), NONE, U(5)}}));
	rig_settle(rig);
	expect_all(rig, RATES, h, POINTS({T0, {I(1), NONE, U(45), NONE, U(5)}}));
	rig_reopen(rig);
	h = rig_find(rig, "t", "ifHCInOctets", "device=r");
	expect_all(rig, RATES, h, POINTS({T0, {I(1), NONE, U(45), NONE, U(5)}}));
	rig_expect_samples(rig, TABLE_BASE_RATES, 3);
}

static int append_some(struct store_write *write, unsigned fields, const uint64_t *handles,
		       size_t n, const struct value *values)
{
	return store_append_fields(write,
				   &(struct store_target){TABLE_BASE_RATES, RETENTION_EVER, 30000},
				   T0, fields, handles, n, values);
}

/* Values of the fields that are given, series by series; the others stay as they are. */
static void some_fields_of_several_series_at_once(struct rig *rig)
{
	static const char *const metrics[3] = {"in", "out", "errors"};
	uint64_t h[3];
	size_t created;
	rig_group(rig, "t", metrics, 3, "device=r", false, h, &created);
	rig_put_fields(rig, RATES, h[1], T0, (struct value[]){U(1), U(2), U(3), U(4), U(5)});
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(append_some(write, 1, h, 3, (struct value[]){U(10), U(20), U(30)}), 0);
	assert_int_equal(write->samples, 3);
	assert_int_equal(append_some(write, 1 << 1 | 1 << 4, h, 2,
				     (struct value[]){U(11), U(14), NONE, U(24)}),
			 0);
	assert_int_equal(write->samples, 6);
	/* Of unlike types, and not next to each other. */
	assert_int_equal(append_some(write, 1 << 2 | 1 << 3, (uint64_t[]){h[2], h[0]}, 2,
				     (struct value[]){I(-2), U(5), U(12), I(13)}),
			 0);
	rig_commit(rig, write);
	for (int pass = 0; pass < 2; pass++) {
		expect_all(rig, RATES, h[0], POINTS({T0, {U(10), U(11), U(12), I(13), U(14)}}));
		expect_all(rig, RATES, h[1], POINTS({T0, {U(20), U(2), U(3), U(4), U(24)}}));
		expect_all(rig, RATES, h[2], POINTS({T0, {U(30), NONE, I(-2), U(5), NONE}}));
		rig_settle(rig);
	}
}

static void no_field_and_one_too_many_are_refused(struct rig *rig)
{
	uint64_t h = rig_series(rig, "in", "device=r");
	struct store_write *write = rig_write_new(rig);
	struct value values[6] = {U(1), U(2), U(3), U(4), U(5), U(6)};
	assert_int_equal(append_some(write, 0, &h, 1, values), ERR_INVALID);
	assert_int_equal(append_some(write, 1 << 5, &h, 1, values), ERR_INVALID);
	assert_int_equal(append_some(write, 0x3f, &h, 1, values), ERR_INVALID);
	assert_int_equal(write->samples, 0);
	assert_int_equal(append_some(write, 0x1f, &h, 1, values), 0);
	rig_commit(rig, write);
	expect_all(rig, RATES, h, POINTS({T0, {U(1), U(2), U(3), U(4), U(5)}}));
}

static void fields_take_the_types_that_the_schema_says(struct rig *rig)
{
	static const struct store_target extremes = {TABLE_STAT_AGGREGATIONS, RETENTION_EVER,
						     3600000},
					 rollups = {TABLE_DATA_DOWNSAMPLED, RETENTION_EVER, 60000};
	uint64_t h = rig_series(rig, "in", "device=r");
	struct store_write *write = rig_write_new(rig);
	struct value real = F(1), whole = I(1), both[2] = {U(1), F(1)};
	assert_int_equal(append_some(write, 1 << 4, &h, 1, &real), ERR_INVALID);
	assert_string_equal(write->error.text,
			    "a real number in unplaced of base_rates, which holds integers");
	assert_int_equal(append_some(write, 1 << 0 | 1 << 1, &h, 1, both), ERR_INVALID);
	assert_int_equal(store_append_fields(write, &extremes, T0, 1 << 1, &h, 1, &whole),
			 ERR_INVALID);
	assert_string_equal(write->error.text,
			    "an integer in max of stat_aggregations, which holds real numbers");
	int64_t ts_ms = T0;
	struct store_columns columns = {&ts_ms, 1,         1 << 0 | 1 << 3,   &h,
					1,      VALUE_U64, (uint64_t[]){1, 2}};
	assert_int_equal(store_append_columns(write, &rollups, &columns), 0);
	columns.fields = 1 << 0 | 1 << 4;
	assert_int_equal(store_append_columns(write, &rollups, &columns), ERR_INVALID);
	assert_int_equal(append_some(write, 1 << 0 | 1 << 1, &h, 1, (struct value[]){NONE, U(2)}),
			 0);
	assert_int_equal(store_append_fields(write, &extremes, T0, 1 << 0 | 1 << 2, &h, 1,
					     (struct value[]){F(1), I(-1)}),
			 0);
	rig_commit(rig, write);
	expect_all(rig, RATES, h, POINTS({T0, {NONE, U(2)}}));
	expect_all(rig, extremes, h, POINTS({T0, {F(1), NONE, I(-1)}}));
	expect_all(rig, rollups, h, POINTS({T0, {U(1), NONE, NONE, U(2)}}));
}

static void nothing_but_none_is_nothing(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	struct value none[5] = {NONE, NONE, NONE, NONE, NONE};
	rig_put(rig, RAW, h, T0, NONE);
	rig_put_fields(rig, RATES, h, T0, none);
	expect_all(rig, RAW, h, NO_POINTS);
	expect_all(rig, RATES, h, NO_POINTS);
	rig_put(rig, RAW, h, T0, I(1));
	rig_put(rig, RAW, h, T0, NONE);
	expect_all(rig, RAW, h, POINTS({T0, {I(1)}}));
}

static void wanted_fields_alone_are_given(struct rig *rig)
{
	uint64_t h = rig_series(rig, "ifHCInOctets", "device=r");
	rig_put_all(rig, RATES, h,
		    POINTS({T0, {I(1), I(1), NONE, NONE, NONE}},
			   {T0 + 1, {NONE, NONE, I(2), NONE, NONE}},
			   {T0 + 2, {I(3), NONE, NONE, NONE, NONE}},
			   {T0 + 3, {NONE, NONE, NONE, U(4), NONE}}));
	struct store_range range = {
		.table = TABLE_BASE_RATES,
		.period_ms = 30000,
		.handles = &h,
		.handle_count = 1,
		.start_ms = T0,
		.end_ms = T0 + 10,
	};
	for (int pass = 0; pass < 2; pass++) {
		for (size_t max = 0; max < 4; max++) {
			struct points points;
			range.fields = 1;
			assert_int_equal(rig_range(rig, &range, max, &points), 0);
			assert_points(points, POINTS({T0, {I(1)}}, {T0 + 2, {I(3)}}), 5);
			range.fields = 1 << 1 | 1 << 2;
			assert_int_equal(rig_range(rig, &range, max, &points), 0);
			assert_points(points,
				      POINTS({T0, {NONE, I(1)}}, {T0 + 1, {NONE, NONE, I(2)}}), 5);
			range.fields = 1 << 4;
			assert_int_equal(rig_range(rig, &range, max, &points), 0);
			assert_points(points, NO_POINTS, 5);
			range.fields = 1;
			range.limit = 1;
			range.backward = true;
			assert_int_equal(rig_range(rig, &range, max, &points), 0);
			assert_points(points, POINTS({T0 + 2, {I(3)}}), 5);
			range.limit = 0;
			range.backward = false;
		}
		rig_settle(rig);
	}
}

static void unasked_fields_have_no_column(struct rig *rig)
{
	uint64_t h = rig_series(rig, "ifHCInOctets", "device=r");
	rig_put_fields(rig, RATES, h, T0, (struct value[]){I(1), I(1), I(2), U(3), U(4)});
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){
		.table = TABLE_BASE_RATES,
		.period_ms = 30000,
		.handles = &h,
		.handle_count = 1,
		.start_ms = T0,
		.end_ms = T0 + 10,
		.fields = 1 << 1 | 1 << 3,
	};
	assert_int_equal(rig_read(rig, read), 0);
	const struct store_points *points = request->range.points;
	assert_int_equal(points->count, 1);
	for (size_t f = 0; f < 5; f++) {
		bool asked = f == 1 || f == 3;
		assert_int_equal(points->bits[f] != NULL, asked);
		assert_int_equal(points->types[f] != NULL, asked);
	}
	store_read_free(read);
}

/* A line with ten fields: ten metrics opened together, written with holes. */
static void one_append_many_handles_with_holes(struct rig *rig)
{
	enum { METRICS = 10, TIMES = 300 };
	static const char *const metrics[METRICS] = {
		"cpu_user", "cpu_system", "cpu_idle",  "cpu_nice",  "cpu_iowait",
		"cpu_irq",  "cpu_soft",   "cpu_steal", "cpu_guest", "cpu_guest_nice"};
	uint64_t handles[METRICS];
	size_t created;
	rig_group(rig, "t", metrics, METRICS, "host=a", false, handles, &created);
	assert_int_equal(created, METRICS);
	for (int64_t t = 0; t < TIMES; t++) {
		struct value values[METRICS];
		for (size_t m = 0; m < METRICS; m++) {
			bool hole = (t + (int64_t)m) % 4 == 0;
			values[m] = hole ? NONE : I(t * 100 + (int64_t)m);
		}
		struct store_write *write = rig_write_new(rig);
		assert_int_equal(
			store_append(write, &RAW, T0 + t * 10000, handles, METRICS, values), 0);
		rig_commit(rig, write);
		if (t == TIMES / 2)
			rig_settle(rig);
	}
	for (int pass = 0; pass < 2; pass++) {
		for (size_t m = 0; m < METRICS; m++) {
			struct point expected[TIMES];
			size_t count = 0;
			for (int64_t t = 0; t < TIMES; t++) {
				if ((t + (int64_t)m) % 4)
					expected[count++] = (struct point){
						T0 + t * 10000, {I(t * 100 + (int64_t)m)}};
			}
			expect_all(rig, RAW, handles[m], (struct points){expected, count});
		}
		rig_settle(rig);
	}
}

/* Handles of several registrations in one append, in an order of nobody's, and a part of a group.
 */
static void handles_of_different_registrations_mix(struct rig *rig)
{
	static const char *const first[3] = {"a", "b", "c"};
	static const char *const second[2] = {"a", "d"};
	uint64_t one[3], two[2], three = rig_series(rig, "alone", "");
	rig_group(rig, "t", first, 3, "host=x", false, one, NULL);
	rig_group(rig, "t", second, 2, "host=y", false, two, NULL);
	const uint64_t mixed[5] = {two[1], one[2], three, one[0], two[0]};
	for (int64_t t = 0; t < 3; t++) {
		struct store_write *write = rig_write_new(rig);
		const struct value values[5] = {I(10 * t), I(10 * t + 1), I(10 * t + 2),
						I(10 * t + 3), I(10 * t + 4)};
		assert_int_equal(store_append(write, &RAW, T0 + t, mixed, 5, values), 0);
		rig_commit(rig, write);
	}
	for (int pass = 0; pass < 2; pass++) {
		for (int64_t i = 0; i < 5; i++)
			expect_all(
				rig, RAW, mixed[i],
				POINTS({T0, {I(i)}}, {T0 + 1, {I(10 + i)}}, {T0 + 2, {I(20 + i)}}));
		expect_all(rig, RAW, one[1], NO_POINTS);
		rig_settle(rig);
	}
}

/* Ten of a second each, those before `from` left out, as they are said to come in runs. */
static void put_run(struct rig *rig, uint64_t handle, int64_t from, int64_t times)
{
	struct store_write *write = rig_write_new(rig);
	write->in_runs = write->can_wait = true;
	for (int64_t t = from; t < 10; t++) {
		struct value value = I(times * t);
		assert_int_equal(store_append(write, &RAW, T0 + 1000 * t, &handle, 1, &value), 0);
	}
	rig_commit(rig, write);
}

/* Before, between and after rows that are not, of the same times: the later write wins. */
static void rows_in_runs_are_rows_like_any(struct rig *rig)
{
	uint64_t h = rig_series(rig, "m", "host=a");
	struct point expected[10];
	for (int64_t t = 0; t < 10; t++)
		expected[t] = (struct point){T0 + 1000 * t, {I(t < 4 ? t : 7 * t)}};
	rig_put(rig, RAW, h, T0 + 5000, I(77));
	put_run(rig, h, 0, 1);
	put_run(rig, h, 4, 7);
	rig_put(rig, RAW, h, T0 + 2000, I(99));
	expected[2].values[0] = I(99);
	for (int pass = 0; pass < 2; pass++) {
		expect_all(rig, RAW, h, (struct points){expected, 10});
		rig_reopen(rig);
		h = rig_series(rig, "m", "host=a");
		expect_all(rig, RAW, h, (struct points){expected, 10});
		rig_settle(rig);
	}
	rig_delete(rig, RAW, h, T0 + 1000, T0 + 10000);
	expect_all(rig, RAW, h, POINTS({T0, {I(0)}}));
}

enum { COLUMN_TIMES = 70 };

/* Of each series fields 0 and 3, at a time each minute from `start` on: the time's number times the
 * factor, and 1000 more by series and 100 by field. */
static int add_columns(struct store_write *write, const uint64_t *handles, size_t n, int64_t start,
		       size_t count, uint64_t factor)
{
	int64_t ts_ms[COLUMN_TIMES];
	uint64_t bits[3 * 2 * COLUMN_TIMES];
	for (size_t t = 0; t < count; t++) {
		ts_ms[t] = T0 + (start + (int64_t)t) * 60000;
		for (size_t c = 0; c < 2 * n; c++)
			bits[c * count + t] = (uint64_t)(start + (int64_t)t) * factor +
					      c / 2 * 1000 + c % 2 * 100;
	}
	struct store_columns columns = {ts_ms, count, 1 << 0 | 1 << 3, handles, n, VALUE_U64, bits};
	return store_append_columns(
		write, &(struct store_target){RATES.table, RETENTION_EVER, RATES.period_ms},
		&columns);
}

/* Minutes 0 to 69 of `h`, which are 7 times their number; without those of 20 to 39 if there was a
 * deletion; then again 30 to 34, 11 times; then 50 to 53 of the first and last series, 13 times. */
static void expect_columns(struct rig *rig, const uint64_t h[3], bool deleted)
{
	for (size_t s = 0; s < 3; s++) {
		struct point points[COLUMN_TIMES];
		size_t count = 0;
		for (int64_t t = 0; t < COLUMN_TIMES; t++) {
			bool again = t >= 30 && t < 35, alone = s != 1 && t >= 50 && t < 54;
			uint64_t v = (uint64_t)t * (alone ? 13 : again ? 11 : 7);
			v += alone ? 0 : s * 1000;
			if (!deleted || t < 20 || t >= 40 || again)
				points[count++] = (struct point){
					T0 + t * 60000, {U(v), NONE, NONE, U(v + 100), NONE}};
		}
		expect_all(rig, RATES, h[s], (struct points){points, count});
	}
}

static void put_some_columns(struct rig *rig, const uint64_t h[3], bool in_runs, bool deletes)
{
	struct store_write *write = rig_write_new(rig);
	write->in_runs = in_runs;
	assert_int_equal(add_columns(write, h, 3, 0, COLUMN_TIMES, 7), 0);
	assert_int_equal(write->samples, 3 * 2 * COLUMN_TIMES);
	if (deletes)
		assert_int_equal(
			store_delete_range(write,
					   &(struct store_target){.table = RATES.table,
								  .period_ms = RATES.period_ms},
					   h, 3, T0 + 20 * 60000, T0 + 40 * 60000),
			0);
	assert_int_equal(add_columns(write, h, 3, 30, 5, 11), 0);
	rig_commit(rig, write);
	write = rig_write_new(rig);
	write->in_runs = in_runs;
	assert_int_equal(add_columns(write, &h[2], 1, 50, 4, 13), 0);
	assert_int_equal(add_columns(write, &h[0], 1, 50, 4, 13), 0);
	rig_commit(rig, write);
}

/* In runs or not; of two writes of one time the later wins, and a deletion between the two is
 * between them. */
static void columns_are_rows_like_any(struct rig *rig)
{
	static const char *const metrics[3] = {"in", "out", "errors"};
	static const char *const devices[4] = {"d=0", "d=1", "d=2", "d=3"};
	for (int manner = 0; manner < 4; manner++) {
		const char *tags = devices[manner];
		uint64_t h[3];
		size_t created;
		rig_group(rig, "t", metrics, 3, tags, false, h, &created);
		put_some_columns(rig, h, manner % 2, manner < 2);
		for (int pass = 0; pass < 2; pass++) {
			expect_columns(rig, h, manner < 2);
			rig_reopen(rig);
			rig_group(rig, "t", metrics, 3, tags, false, h, &created);
		}
	}
}

/* Columns over the end of a segment, of doubles; and what is none. */
static void columns_are_checked_and_may_pass_segments(struct rig *rig)
{
	uint64_t h = rig_series(rig, "m", "host=a"), bits[4];
	int64_t day_ms = 86400000, ts_ms[4] = {T0, T0 + 1, T0 + day_ms, T0 + 3 * day_ms};
	struct point expected[4];
	for (size_t t = 0; t < 4; t++) {
		struct value value = F(0.1 * (double)t);
		expected[t] = (struct point){ts_ms[t], {value}};
		bits[t] = value.bits;
	}
	struct store_columns columns = {ts_ms, 4, 1, &h, 1, VALUE_F64, bits}, bad = columns;
	struct store_write *write = rig_write_new(rig);
	write->in_runs = true;
	bad.count = 0;
	assert_int_equal(store_append_columns(
				 write, &(struct store_target){RAW.table, RETENTION_EVER}, &bad),
			 ERR_INVALID);
	bad = columns;
	bad.type = VALUE_NONE;
	assert_int_equal(store_append_columns(
				 write, &(struct store_target){RAW.table, RETENTION_EVER}, &bad),
			 ERR_INVALID);
	bad = columns;
	bad.fields = 2;
	assert_int_equal(store_append_columns(
				 write, &(struct store_target){RAW.table, RETENTION_EVER}, &bad),
			 ERR_INVALID);
	bad = columns;
	bad.ts_ms = (int64_t[]){T0, T0 + 2, T0 + 2, T0 + 3};
	assert_int_equal(store_append_columns(
				 write, &(struct store_target){RAW.table, RETENTION_EVER}, &bad),
			 ERR_INVALID);
	bad.ts_ms = (int64_t[]){T0, T0 + 2, T0 + 3, INT64_MAX};
	assert_int_equal(store_append_columns(
				 write, &(struct store_target){RAW.table, RETENTION_EVER}, &bad),
			 ERR_INVALID);
	assert_int_equal(write->samples, 0);
	assert_int_equal(store_append_columns(write,
					      &(struct store_target){RAW.table, RETENTION_EVER},
					      &columns),
			 0);
	rig_commit(rig, write);
	for (int pass = 0; pass < 2; pass++) {
		expect_all(rig, RAW, h, (struct points){expected, 4});
		rig_settle(rig);
	}
}

/* What a range of several series gives, whatever it is cut into, is what each alone gives. */
static void expect_together(struct rig *rig, struct store_target place, const uint64_t *handles,
			    size_t n, int64_t start_ms, int64_t end_ms,
			    const struct points *expected)
{
	static const size_t most[] = {0, 1, 7, 40};
	struct points points[16];
	for (size_t i = 0; i < ARRAY_LEN(most); i++) {
		struct store_range range = {.table = place.table,
					    .period_ms = place.period_ms,
					    .handles = handles,
					    .handle_count = n,
					    .start_ms = start_ms,
					    .end_ms = end_ms};
		assert_int_equal(rig_range(rig, &range, most[i], points), 0);
		for (size_t h = 0; h < n; h++)
			assert_points(points[h], expected[h], schema[place.table].field_count);
	}
}

/* Neighbours with holes, one that has nothing, one twice, one that nobody knows, out of order: each
 * has its own. */
static void neighbours_in_one_range_have_each_their_own(struct rig *rig)
{
	static const char *const metrics[5] = {"a", "b", "c", "d", "e"};
	uint64_t h[5];
	rig_group(rig, "t", metrics, 5, "host=x", false, h, NULL);
	struct value first[5] = {I(1), NONE, I(3), NONE, I(5)};
	struct value second[5] = {I(11), NONE, NONE, I(14), I(15)};
	struct value third[5] = {I(21), NONE, I(23), NONE, NONE};
	for (int64_t t = 0; t < 3; t++) {
		struct store_write *write = rig_write_new(rig);
		assert_int_equal(store_append(write, &RAW, T0 + t, h, 5,
					      t == 0   ? first
					      : t == 1 ? second
						       : third),
				 0);
		rig_commit(rig, write);
	}
	rig_delete(rig, RAW, h[4], T0 + 1, T0 + 2);
	const struct points a = POINTS({T0, {I(1)}}, {T0 + 1, {I(11)}}, {T0 + 2, {I(21)}});
	const struct points c = POINTS({T0, {I(3)}}, {T0 + 2, {I(23)}});
	const struct points d = POINTS({T0 + 1, {I(14)}}), e = POINTS({T0, {I(5)}});
	for (int pass = 0; pass < 2; pass++) {
		/* h[4] + 1 is none of the five. */
		const uint64_t asked[9] = {h[0],     h[1], h[2], h[3], h[4],
					   h[4] + 1, h[2], h[2], h[0]};
		const struct points expected[9] = {a, NO_POINTS, c, d, e, NO_POINTS, c, c, a};
		expect_together(rig, RAW, asked, 9, T0, T0 + 3, expected);
		const uint64_t some[3] = {h[0], h[2], h[4]};
		expect_together(rig, RAW, some, 3, T0 + 2, T0 + 9,
				(struct points[]){POINTS({T0 + 2, {I(21)}}),
						  POINTS({T0 + 2, {I(23)}}), NO_POINTS});
		rig_settle(rig);
	}
}

/* Most of the rows have long been written away when the last ones come, and one that is late. */
static void newest_and_late_rows_are_found_behind_old_ones(struct rig *rig)
{
	enum { ROWS = 700, SERIES = 10, LATE = 300 };
	static const char *const metrics[SERIES] = {"a", "b", "c", "d", "e",
						    "f", "g", "h", "i", "j"};
	uint64_t h[SERIES];
	rig_group(rig, "t", metrics, SERIES, "host=x", false, h, NULL);
	for (int64_t t = 0; t <= ROWS; t++) {
		/* The last is one that was left out before. */
		int64_t row = t == ROWS ? LATE : t;
		struct value values[SERIES * 5];
		for (int64_t i = 0; i < SERIES * 5; i++)
			values[i] = i % 5 == 3 ? U(0) : I(row * 100 + i);
		struct store_write *write = rig_write_new(rig);
		if (row != LATE || t == ROWS)
			assert_int_equal(store_append(write,
						      &(struct store_target){TABLE_BASE_RATES,
									     RETENTION_EVER, 30000},
						      T0 + row, h, SERIES, values),
					 0);
		rig_commit(rig, write);
		if (t % 50 != 49 && t < ROWS)
			continue;
		/* The newest three; in the end also the late one among its neighbours. */
		int64_t from = t < ROWS ? t - 2 : LATE - 1;
		struct point expected[SERIES][3];
		struct points lists[SERIES];
		for (int64_t s = 0; s < SERIES; s++) {
			for (int64_t p = 0; p < 3; p++) {
				int64_t v = (from + p) * 100 + s * 5;
				expected[s][p] = (struct point){
					T0 + from + p, {I(v), I(v + 1), I(v + 2), U(0), I(v + 4)}};
			}
			lists[s] = (struct points){expected[s], 3};
		}
		expect_together(rig, RATES, h, SERIES, T0 + from, T0 + from + 3, lists);
	}
}

static void group_written_in_parts_and_out_of_step(struct rig *rig)
{
	static const char *const metrics[4] = {"a", "b", "c", "d"};
	uint64_t h[4];
	rig_group(rig, "t", metrics, 4, "host=x", false, h, NULL);
	for (size_t i = 0; i < 4; i++) {
		for (int64_t t = 0; t < 70; t++)
			rig_put(rig, RAW, h[i], T0 + t * 1000 + (int64_t)i, I(t * 4 + (int64_t)i));
		if (i == 1)
			rig_settle(rig);
	}
	for (int pass = 0; pass < 2; pass++) {
		for (int64_t i = 0; i < 4; i++) {
			struct point expected[70];
			for (int64_t t = 0; t < 70; t++)
				expected[t] = (struct point){T0 + t * 1000 + i, {I(t * 4 + i)}};
			expect_all(rig, RAW, h[i], (struct points){expected, 70});
		}
		rig_settle(rig);
	}
}

/* A reader sees all fields of one time of one row, or none: here after each commit. */
static void one_time_of_one_row_is_whole(struct rig *rig)
{
	uint64_t h = rig_series(rig, "ifHCInOctets", "device=r");
	for (int64_t i = 1; i <= 50; i++) {
		struct store_write *write = rig_write_new(rig);
		struct value v[5] = {I(i), I(i), I(i), I(i), I(i)};
		int result = 1;
		assert_int_equal(store_append(write,
					      &(struct store_target){TABLE_BASE_RATES,
								     RETENTION_EVER, 30000},
					      T0, &h, 1, v),
				 0);
		write->owner = &result;
		assert_int_equal(store_write_submit(write), 0);
		/* While the batch is on its way. */
		struct store_read *read = rig_read_new(rig);
		struct store_request *request = store_read_add(read, STORE_RANGE);
		request->range = (struct store_range){
			.table = TABLE_BASE_RATES,
			.period_ms = 30000,
			.handles = &h,
			.handle_count = 1,
			.start_ms = T0,
			.end_ms = T0 + 1,
		};
		assert_int_equal(rig_read(rig, read), 0);
		const struct store_points *points = request->range.points;
		for (size_t f = 0; points->count && f < 5; f++) {
			assert_int_equal(points->bits[f][0], points->bits[0][0]);
			assert_true(points->bits[f][0] == (uint64_t)i ||
				    points->bits[f][0] == (uint64_t)i - 1);
		}
		assert_true(points->count == 1 || i == 1);
		store_read_free(read);
		while (result == 1)
			task_queue_wait(&rig->queue);
		assert_int_equal(result, 0);
		store_write_free(write);
	}
}

const struct contract_case cases_values[] = {
	CASE(values_come_back_bit_for_bit),
	CASE(shapes_survive_every_codec),
	CASE(fields_of_one_time_lie_together),
	CASE(fields_are_written_one_by_one),
	CASE(some_fields_of_several_series_at_once),
	CASE(no_field_and_one_too_many_are_refused),
	CASE(fields_take_the_types_that_the_schema_says),
	CASE(nothing_but_none_is_nothing),
	CASE(wanted_fields_alone_are_given),
	CASE(unasked_fields_have_no_column),
	CASE(one_append_many_handles_with_holes),
	CASE(handles_of_different_registrations_mix),
	CASE(rows_in_runs_are_rows_like_any),
	CASE(columns_are_rows_like_any),
	CASE(columns_are_checked_and_may_pass_segments),
	CASE(neighbours_in_one_range_have_each_their_own),
	CASE(newest_and_late_rows_are_found_behind_old_ones),
	CASE(group_written_in_parts_and_out_of_step),
	CASE(one_time_of_one_row_is_whole),
	{0},
};
