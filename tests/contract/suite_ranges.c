/* Samples by time: order, bounds, limits, slices, deletions, late and doubled data. */
#include "contract.h"

#define F(x) value_f64(x)
#define I(x) value_i64(x)

static void given_in_order_of_time(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	static const int64_t written[] = {500, 100, 300, 200, 400};
	for (size_t i = 0; i < ARRAY_LEN(written); i++)
		rig_put(rig, RAW, h, T0 + written[i], I(written[i]));
	expect_all(rig, RAW, h,
		   POINTS({T0 + 100, {I(100)}}, {T0 + 200, {I(200)}}, {T0 + 300, {I(300)}},
			  {T0 + 400, {I(400)}}, {T0 + 500, {I(500)}}));
}

static void start_is_in_and_end_is_out(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	rig_put_all(rig, RAW, h, POINTS({T0 + 10, {I(1)}}, {T0 + 20, {I(2)}}, {T0 + 30, {I(3)}}));
	expect_points(rig, RAW, h, T0 + 10, T0 + 30, POINTS({T0 + 10, {I(1)}}, {T0 + 20, {I(2)}}));
	expect_points(rig, RAW, h, T0 + 11, T0 + 31, POINTS({T0 + 20, {I(2)}}, {T0 + 30, {I(3)}}));
	expect_points(rig, RAW, h, T0 + 20, T0 + 21, POINTS({T0 + 20, {I(2)}}));
	expect_points(rig, RAW, h, T0 + 20, T0 + 20, NO_POINTS);
	expect_points(rig, RAW, h, T0 + 21, T0 + 30, NO_POINTS);
	expect_points(rig, RAW, h, T0 + 31, T0 + 99, NO_POINTS);
	expect_points(rig, RAW, h, T0, T0 + 10, NO_POINTS);
}

static void same_after_settling_and_reopening(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	struct points three = POINTS({T0 + 10, {I(1)}}, {T0 + 20, {F(2.5)}}, {T0 + 30, {I(3)}});
	rig_put_all(rig, RAW, h, three);
	rig_settle(rig);
	expect_all(rig, RAW, h, three);
	expect_points(rig, RAW, h, T0 + 10, T0 + 30, (struct points){three.list, 2});
	rig_reopen(rig);
	h = rig_find(rig, "t", "cpu", "host=a");
	assert_int_not_equal(h, 0);
	expect_all(rig, RAW, h, three);
	rig_reopen(rig);
	rig_settle(rig);
	h = rig_find(rig, "t", "cpu", "host=a");
	expect_all(rig, RAW, h, three);
	assert_true(rig_verify(rig) > 0);
}

static void row_without_samples_is_empty(struct rig *rig)
{
	uint64_t empty = rig_series(rig, "cpu", "host=a"), full = rig_series(rig, "cpu", "host=b");
	rig_put(rig, RAW, full, T0, I(1));
	expect_all(rig, RAW, empty, NO_POINTS);
	expect_all(rig, (struct store_target){TABLE_DATA_LATE, RETENTION_EVER}, full, NO_POINTS);
	expect_all(rig, (struct store_target){TABLE_RAW_DATA, RETENTION_EVER, 30000}, full,
		   NO_POINTS);
	expect_all(rig, RAW, UINT64_MAX - 1, NO_POINTS);
	expect_all(rig, RAW, 0, NO_POINTS);
}

static void read_of_no_handles_succeeds(struct rig *rig)
{
	struct store_range range = {.table = TABLE_DATA_RAW, .end_ms = T0};
	assert_int_equal(rig_range(rig, &range, 0, NULL), 0);
}

static void many_handles_are_sliced_together(struct rig *rig)
{
	enum { SERIES = 5 };
	uint64_t handles[SERIES + 1];
	char tags[32];
	for (size_t i = 0; i < SERIES; i++) {
		snprintf(tags, sizeof(tags), "host=h%zu", i);
		handles[i] = rig_series(rig, "cpu", tags);
		/* i samples in series i: 0, 1, 2, 3, 4 */
		for (size_t j = 0; j < i; j++)
			rig_put(rig, RAW, handles[i], T0 + (int64_t)j, I((int64_t)(10 * i + j)));
	}
	handles[SERIES] = handles[2]; /* a handle may stand twice */
	for (size_t max = 0; max < 13; max++) {
		struct points points[SERIES + 1];
		struct store_range range = {
			.table = TABLE_DATA_RAW,
			.handles = handles,
			.handle_count = SERIES + 1,
			.start_ms = T0,
			.end_ms = T0 + 100,
			.backward = max % 2,
		};
		assert_int_equal(rig_range(rig, &range, max, points), 0);
		for (size_t i = 0; i < SERIES; i++) {
			assert_int_equal(points[i].count, i);
			for (size_t j = 0; j < i; j++) {
				size_t at = range.backward ? i - 1 - j : j;
				assert_int_equal(points[i].list[j].ts_ms, T0 + (int64_t)at);
				assert_value(points[i].list[j].values[0],
					     I((int64_t)(10 * i + at)));
			}
		}
		assert_int_equal(points[SERIES].count, 2);
	}
}

static void limit_is_of_each_series(struct rig *rig)
{
	uint64_t handles[2] = {rig_series(rig, "cpu", "host=a"), rig_series(rig, "cpu", "host=b")};
	struct points points[2];
	for (int64_t i = 0; i < 10; i++) {
		rig_put(rig, RAW, handles[0], T0 + i, I(i));
		rig_put(rig, RAW, handles[1], T0 + i, I(100 + i));
	}
	for (size_t max = 0; max < 6; max++) {
		struct store_range range = {
			.table = TABLE_DATA_RAW,
			.handles = handles,
			.handle_count = 2,
			.start_ms = T0 + 1,
			.end_ms = T0 + 9,
			.backward = true,
			.limit = 3,
		};
		assert_int_equal(rig_range(rig, &range, max, points), 0);
		assert_points(points[0],
			      POINTS({T0 + 8, {I(8)}}, {T0 + 7, {I(7)}}, {T0 + 6, {I(6)}}), 1);
		assert_points(points[1],
			      POINTS({T0 + 8, {I(108)}}, {T0 + 7, {I(107)}}, {T0 + 6, {I(106)}}),
			      1);
	}
}

/* What is written between two slices ahead of the token is seen or not; what was there is. */
static void slices_go_on_while_others_write(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	for (int64_t i = 0; i < 100; i++)
		rig_put(rig, RAW, h, T0 + 10 * i, I(i));
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){
		.table = TABLE_DATA_RAW,
		.handles = &h,
		.handle_count = 1,
		.start_ms = T0,
		.end_ms = T0 + 1000,
	};
	read->points_max = 7;
	int64_t next = 0;
	for (int64_t round = 0; round == 0 || request->more; round++) {
		assert_int_equal(rig_read(rig, read), 0);
		const struct store_points *points = request->range.points;
		for (size_t i = 0; i < points->count; i++) {
			if (points->ts_ms[i] % 10)
				continue;
			assert_int_equal(points->ts_ms[i], T0 + 10 * next);
			assert_int_equal(points->bits[0][i], next);
			next++;
		}
		rig_put(rig, RAW, h, T0 + 5 + 10 * ((round * 37) % 100), I(-1));
		if (round == 3)
			rig_settle(rig);
	}
	assert_int_equal(next, 100);
	store_read_free(read);
}

static void written_again_the_later_wins(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	rig_put(rig, RAW, h, T0, I(1));
	rig_put(rig, RAW, h, T0 + 1, I(7));
	rig_put(rig, RAW, h, T0, F(2.5)); /* of another type too */
	expect_all(rig, RAW, h, POINTS({T0, {F(2.5)}}, {T0 + 1, {I(7)}}));
	rig_settle(rig);
	expect_all(rig, RAW, h, POINTS({T0, {F(2.5)}}, {T0 + 1, {I(7)}}));
	rig_put(rig, RAW, h, T0, value_u64(3));
	expect_all(rig, RAW, h, POINTS({T0, {value_u64(3)}}, {T0 + 1, {I(7)}}));
	rig_settle(rig);
	rig_reopen(rig);
	h = rig_find(rig, "t", "cpu", "host=a");
	expect_all(rig, RAW, h, POINTS({T0, {value_u64(3)}}, {T0 + 1, {I(7)}}));
	rig_expect_rows(rig, TABLE_DATA_RAW, 1);
}

static void within_a_batch_the_later_wins(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	uint64_t twice[2] = {h, h};
	rig_put_all(rig, RAW, h, POINTS({T0, {I(1)}}, {T0 + 1, {I(2)}}, {T0, {I(3)}}));
	expect_all(rig, RAW, h, POINTS({T0, {I(3)}}, {T0 + 1, {I(2)}}));
	struct store_write *write = rig_write_new(rig);
	struct value values[2] = {I(4), I(5)};
	assert_int_equal(store_append(write, &RAW, T0, twice, 2, values), 0);
	rig_commit(rig, write);
	expect_all(rig, RAW, h, POINTS({T0, {I(5)}}, {T0 + 1, {I(2)}}));
}

static void batch_sent_twice_is_there_once(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	struct store_write *write = rig_write_new(rig);
	struct value one = I(1), two = I(2);
	assert_int_equal(store_append(write, &RAW, T0, &h, 1, &one), 0);
	assert_int_equal(store_append(write, &RAW, T0 + 5, &h, 1, &two), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rig_write(rig, write), 0);
		assert_int_equal(write->stages_kept, 1);
	}
	store_write_free(write);
	expect_all(rig, RAW, h, POINTS({T0, {I(1)}}, {T0 + 5, {I(2)}}));
	rig_settle(rig);
	expect_all(rig, RAW, h, POINTS({T0, {I(1)}}, {T0 + 5, {I(2)}}));
	rig_expect_samples(rig, TABLE_DATA_RAW, 2);
}

/* Data of yesterday, last month and ten years ago, after newer data was sealed. */
static void late_samples_find_their_place(struct rig *rig)
{
	static const int64_t ages_ms[] = {0,
					  SECOND_MS,
					  HOUR_MS,
					  DAY_MS,
					  2LL * DAY_MS,
					  31LL * DAY_MS,
					  366LL * DAY_MS,
					  3650LL * DAY_MS};
	uint64_t h = rig_series(rig, "cpu", "host=a");
	struct point expected[2 * ARRAY_LEN(ages_ms)];
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LEN(ages_ms); i++) {
		rig_put(rig, RAW, h, T0 - ages_ms[i], I((int64_t)i));
		rig_settle(rig);
	}
	/* And between what is settled. */
	for (size_t i = 0; i < ARRAY_LEN(ages_ms); i++)
		rig_put(rig, RAW, h, T0 - ages_ms[i] + 1, I(100 + (int64_t)i));
	for (size_t i = ARRAY_LEN(ages_ms); i-- > 0;) {
		expected[count++] = (struct point){T0 - ages_ms[i], {I((int64_t)i)}};
		expected[count++] = (struct point){T0 - ages_ms[i] + 1, {I(100 + (int64_t)i)}};
	}
	expect_all(rig, RAW, h, (struct points){expected, count});
	rig_settle(rig);
	expect_all(rig, RAW, h, (struct points){expected, count});
	rig_reopen(rig);
	h = rig_find(rig, "t", "cpu", "host=a");
	expect_all(rig, RAW, h, (struct points){expected, count});
}

static void late_sample_overwrites_what_is_settled(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	struct point expected[200];
	for (int64_t i = 0; i < 200; i++) {
		expected[i] = (struct point){T0 + 1000 * i, {I(i)}};
		rig_put(rig, RAW, h, expected[i].ts_ms, expected[i].values[0]);
	}
	rig_settle(rig);
	for (size_t i = 0; i < 200; i += 50) {
		expected[i].values[0] = F(0.5 + (double)i);
		rig_put(rig, RAW, h, expected[i].ts_ms, expected[i].values[0]);
	}
	expect_all(rig, RAW, h, (struct points){expected, 200});
	rig_settle(rig);
	expect_all(rig, RAW, h, (struct points){expected, 200});
	rig_expect_samples(rig, TABLE_DATA_RAW, 200);
}

static void deletion_takes_start_and_leaves_end(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a"), other = rig_series(rig, "cpu", "host=b");
	struct points all = POINTS({T0, {I(0)}}, {T0 + 1, {I(1)}}, {T0 + 2, {I(2)}},
				   {T0 + 3, {I(3)}}, {T0 + 4, {I(4)}});
	rig_put_all(rig, RAW, h, all);
	rig_put_all(rig, RAW, other, all);
	rig_delete(rig, RAW, h, T0 + 1, T0 + 3);
	struct points left = POINTS({T0, {I(0)}}, {T0 + 3, {I(3)}}, {T0 + 4, {I(4)}});
	expect_all(rig, RAW, h, left);
	expect_all(rig, RAW, other, all);
	rig_settle(rig);
	expect_all(rig, RAW, h, left);
	rig_delete(rig, RAW, h, T0 + 3, T0 + 4); /* of what is settled */
	left = POINTS({T0, {I(0)}}, {T0 + 4, {I(4)}});
	expect_all(rig, RAW, h, left);
	rig_delete(rig, RAW, h, T0 + 1, T0 + 1);
	rig_delete(rig, RAW, h, T0 + 1, T0 + 4); /* of nothing */
	expect_all(rig, RAW, h, left);
	rig_reopen(rig);
	h = rig_find(rig, "t", "cpu", "host=a");
	expect_all(rig, RAW, h, left);
	rig_delete(rig, RAW, h, INT64_MIN, INT64_MAX);
	expect_all(rig, RAW, h, NO_POINTS);
	rig_settle(rig);
	rig_reopen(rig);
	expect_all(rig, RAW, rig_find(rig, "t", "cpu", "host=a"), NO_POINTS);
	expect_all(rig, RAW, rig_find(rig, "t", "cpu", "host=b"), all);
}

static void written_after_deletion_is_there(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	for (int64_t i = 0; i < 3; i++) {
		rig_put(rig, RAW, h, T0, I(i));
		if (i == 1)
			rig_settle(rig);
		rig_delete(rig, RAW, h, T0 - 10, T0 + 10);
		expect_all(rig, RAW, h, NO_POINTS);
	}
	rig_put(rig, RAW, h, T0, I(9));
	expect_all(rig, RAW, h, POINTS({T0, {I(9)}}));
	rig_settle(rig);
	expect_all(rig, RAW, h, POINTS({T0, {I(9)}}));
	rig_reopen(rig);
	expect_all(rig, RAW, rig_find(rig, "t", "cpu", "host=a"), POINTS({T0, {I(9)}}));
}

static void deletion_is_ordered_within_its_batch(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	struct store_write *write = rig_write_new(rig);
	struct value v = I(1);
	assert_int_equal(store_append(write, &RAW, T0, &h, 1, &v), 0);
	assert_int_equal(store_append(write, &RAW, T0 + 1, &h, 1, &v), 0);
	assert_int_equal(store_delete_range(write, &RAW, &h, 1, T0, T0 + 9), 0);
	v = I(2);
	assert_int_equal(store_append(write, &RAW, T0 + 1, &h, 1, &v), 0);
	rig_commit(rig, write);
	expect_all(rig, RAW, h, POINTS({T0 + 1, {I(2)}}));
	rig_reopen(rig);
	h = rig_find(rig, "t", "cpu", "host=a");
	expect_all(rig, RAW, h, POINTS({T0 + 1, {I(2)}}));
	rig_settle(rig);
	expect_all(rig, RAW, h, POINTS({T0 + 1, {I(2)}}));
}

/* Segments are a day, 30 days and 360 days wide and aligned to the epoch; years are not. */
static void nothing_is_lost_at_the_edges_of_segments(struct rig *rig)
{
	static const struct store_target places[] = {
		{TABLE_DATA_RAW, RETENTION_EVER, 0},
		{TABLE_RAW_DATA, RETENTION_EVER, 30000},
		{TABLE_RAW_DATA, RETENTION_EVER, 60000},
	};
	static const int64_t edges[] = {
		19675 * INT64_C(86400000), /* a day */
		INT64_C(1704067200000),    /* 2024-01-01 */
		INT64_C(1672531200000),    /* 2023-01-01 */
		0,
		-INT64_C(86400000),
		-INT64_C(62135596800000), /* year 1 */
		INT64_C(253402300800000), /* year 10000 */
	};
	uint64_t h = rig_series(rig, "cpu", "host=a");
	for (size_t p = 0; p < ARRAY_LEN(places); p++) {
		for (size_t e = 0; e < ARRAY_LEN(edges); e++) {
			int64_t edge = edges[e];
			struct points three =
				POINTS({edge - 1, {I(1)}}, {edge, {I(2)}}, {edge + 1, {I(3)}});
			rig_put_all(rig, places[p], h, three);
			if (e % 2)
				rig_settle(rig);
			expect_points(rig, places[p], h, edge - 1, edge + 2, three);
			expect_points(rig, places[p], h, edge, edge + 2,
				      (struct points){three.list + 1, 2});
			expect_points(rig, places[p], h, edge - 100, edge,
				      (struct points){three.list, 1});
		}
		struct store_range range = {
			.table = places[p].table,
			.period_ms = places[p].period_ms,
			.handles = &h,
			.handle_count = 1,
			.start_ms = INT64_MIN,
			.end_ms = INT64_MAX,
		};
		struct points points;
		assert_int_equal(rig_range(rig, &range, 0, &points), 0);
		assert_int_equal(points.count, 3 * ARRAY_LEN(edges));
	}
}

static void roll_ups_lie_in_wider_segments(struct rig *rig)
{
	static const int64_t periods_ms[] = {60000, 3600000, 3600001, 86400000};
	uint64_t h = rig_series(rig, "cpu", "host=a");
	for (size_t p = 0; p < ARRAY_LEN(periods_ms); p++) {
		struct store_target place = {TABLE_DATA_DOWNSAMPLED, RETENTION_EVER, periods_ms[p]};
		int64_t width = schema_segment_ms(place.table, place.period_ms);
		assert_int_equal(width, (periods_ms[p] <= HOUR_MS ? 30 : 360) * (int64_t)DAY_MS);
		int64_t edge = floor_to(T0, width);
		struct points two =
			POINTS({edge - 1, {I(1), I(2), I(3), I(4), F(5), I(6), I(7), I(8)}},
			       {edge, {I(8), I(7), I(6), I(5), F(4), I(3), I(2), I(1)}});
		rig_put_all(rig, place, h, two);
		expect_all(rig, place, h, two);
		rig_settle(rig);
		expect_all(rig, place, h, two);
		expect_points(rig, place, h, edge, edge + 1, (struct points){two.list + 1, 1});
	}
}

static void times_at_both_ends(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	struct points ends = POINTS({STORE_TS_MIN, {I(1)}}, {STORE_TS_MIN + 1, {I(2)}}, {0, {I(3)}},
				    {STORE_TS_MAX - 1, {I(4)}}, {STORE_TS_MAX, {I(5)}});
	rig_put_all(rig, RAW, h, ends);
	expect_all(rig, RAW, h, ends);
	rig_settle(rig);
	expect_all(rig, RAW, h, ends);
	rig_reopen(rig);
	h = rig_find(rig, "t", "cpu", "host=a");
	expect_all(rig, RAW, h, ends);
	expect_points(rig, RAW, h, STORE_TS_MIN, STORE_TS_MAX, (struct points){ends.list, 4});
	expect_points(rig, RAW, h, STORE_TS_MAX, INT64_MAX, (struct points){ends.list + 4, 1});
	expect_points(rig, RAW, h, INT64_MIN, STORE_TS_MIN, NO_POINTS);
	rig_delete(rig, RAW, h, STORE_TS_MAX, INT64_MAX);
	rig_delete(rig, RAW, h, INT64_MIN, STORE_TS_MIN + 1);
	expect_all(rig, RAW, h, (struct points){ends.list + 1, 3});
}

/* One series in every table of samples, and several periods: none sees another's. */
static void tables_and_periods_are_apart(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	for (int pass = 0; pass < 3; pass++) {
		for (int t = 0; t < TABLE_COUNT; t++) {
			if (schema[t].kind != TABLE_SAMPLES)
				continue;
			for (int64_t p = 1; p <= (schema[t].has_period ? 3 : 1); p++) {
				struct store_target place = {(enum table)t, RETENTION_EVER,
							     schema[t].has_period ? p * 30000 : 0};
				struct point point = {.ts_ms = T0};
				for (size_t f = 0; f < schema[t].field_count; f++) {
					int64_t n = 1000 * t + 100 * p + (int64_t)f;
					bool real = schema[t].fields[f].type == FIELD_REAL;
					point.values[f] = real ? F((double)n) : I(n);
				}
				if (pass == 0)
					rig_put_fields(rig, place, h, T0, point.values);
				else
					expect_all(rig, place, h, (struct points){&point, 1});
			}
		}
		rig_settle(rig);
	}
}

/* Enough for several blocks, of a shape that can be checked without keeping it. */
static void many_samples_of_one_series(struct rig *rig)
{
	enum { COUNT = 20000, BATCH = 1000 };
	uint64_t h = rig_series(rig, "cpu", "host=a");
	for (int64_t i = 0; i < COUNT; i += BATCH) {
		struct store_write *write = rig_write_new(rig);
		for (int64_t j = i; j < i + BATCH; j++) {
			struct value v = j % 3 ? I(j * j) : F((double)j / 7);
			assert_int_equal(store_append(write, &RAW, T0 + 10000 * j, &h, 1, &v), 0);
		}
		rig_commit(rig, write);
		if (i == COUNT / 2)
			rig_settle(rig);
	}
	for (size_t max = 0; max <= 999; max += 333) {
		struct points points;
		struct store_range range = {
			.table = TABLE_DATA_RAW,
			.handles = &h,
			.handle_count = 1,
			.start_ms = T0 + 10000,
			.end_ms = T0 + 10000 * (COUNT - 1),
			.backward = max == 333,
		};
		assert_int_equal(rig_range(rig, &range, max, &points), 0);
		assert_int_equal(points.count, COUNT - 2);
		for (int64_t i = 0; i < COUNT - 2; i++) {
			int64_t j = range.backward ? COUNT - 2 - i : i + 1;
			assert_int_equal(points.list[i].ts_ms, T0 + 10000 * j);
			assert_value(points.list[i].values[0], j % 3 ? I(j * j) : F((double)j / 7));
		}
		arena_reset(&rig->keep);
	}
}

static void shorter_than_its_arena(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	for (int64_t i = 0; i < 2000; i++)
		rig_put(rig, RAW, h, T0 + i, I(i));
	struct store_read *read = store_read_new(rig->store, 16384);
	struct store_read *whole = rig_read_new(rig);
	read->executor = whole->executor;
	read->done = whole->done;
	read->now_ms = whole->now_ms;
	store_read_free(whole);
	struct store_token token = {0};
	int64_t next = 0;
	for (bool more = true; more;) {
		store_read_reset(read);
		struct store_request *request = store_read_add(read, STORE_RANGE);
		request->token = token;
		request->range = (struct store_range){
			.table = TABLE_DATA_RAW,
			.handles = &h,
			.handle_count = 1,
			.start_ms = T0,
			.end_ms = T0 + 2000,
		};
		assert_int_equal(rig_read(rig, read), 0);
		const struct store_points *points = request->range.points;
		assert_true(points->count > 0 || !request->more);
		for (size_t i = 0; i < points->count; i++)
			assert_int_equal(points->ts_ms[i], T0 + next++);
		more = request->more;
		token = request->token;
	}
	assert_int_equal(next, 2000);
	store_read_free(read);
}

/* ---- Stamps of samples ----------------------------------------------------------------------- */

#define NOTHING ((struct value){0, VALUE_NONE})

/* One sample of RAW at T0; NOTHING deletes it. */
static void stamped(struct rig *rig, uint64_t h, struct value value, int64_t stamp_us)
{
	struct store_write *write = rig_write_new(rig);
	write->stamp_us = stamp_us;
	if (value.type == VALUE_NONE)
		assert_int_equal(store_delete_range(write, &RAW, &h, 1, T0, T0 + 1), 0);
	else
		assert_int_equal(store_append(write, &RAW, T0, &h, 1, &value), 0);
	assert_int_equal(rig_write(rig, write), 0);
	store_write_free(write);
}

static void of_two_samples_the_higher_stamp_stays(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	stamped(rig, h, I(1), 100);
	stamped(rig, h, I(2), 50);
	expect_all(rig, RAW, h, POINTS({T0, {I(1)}}));
	stamped(rig, h, I(3), 150);
	expect_all(rig, RAW, h, POINTS({T0, {I(3)}}));
	/* Two values have one stamp: the greater wins, whichever comes first. */
	stamped(rig, h, I(2), 150);
	expect_all(rig, RAW, h, POINTS({T0, {I(3)}}));
	stamped(rig, h, I(4), 150);
	expect_all(rig, RAW, h, POINTS({T0, {I(4)}}));
}

static void a_deletion_takes_what_is_not_stamped_above_it(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	stamped(rig, h, I(1), 100);
	stamped(rig, h, NOTHING, 99);
	expect_all(rig, RAW, h, POINTS({T0, {I(1)}}));
	stamped(rig, h, NOTHING, 100);
	expect_all(rig, RAW, h, NO_POINTS);
	/* What was on its way longer than the deletion. */
	stamped(rig, h, I(2), 99);
	stamped(rig, h, I(2), 100);
	expect_all(rig, RAW, h, NO_POINTS);
	stamped(rig, h, I(3), 101);
	expect_all(rig, RAW, h, POINTS({T0, {I(3)}}));
	rig_settle(rig);
	rig_reopen(rig);
	h = rig_series(rig, "cpu", "");
	stamped(rig, h, I(2), 100);
	expect_all(rig, RAW, h, POINTS({T0, {I(3)}}));
}

/* A batch that is sent again keeps its stamp, so it undoes nothing that came meanwhile. */
static void sent_again_undoes_nothing(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct value one = I(1), two = I(2);
	struct store_write *first = rig_write_new(rig), *second = rig_write_new(rig);
	assert_int_equal(store_append(first, &RAW, T0, &h, 1, &one), 0);
	assert_int_equal(store_append(second, &RAW, T0, &h, 1, &two), 0);
	assert_int_equal(rig_write(rig, first), 0);
	assert_int_equal(rig_write(rig, second), 0);
	assert_true(first->stamp_us > 0 && second->stamp_us > first->stamp_us);
	assert_int_equal(rig_write(rig, first), 0);
	expect_all(rig, RAW, h, POINTS({T0, {I(2)}}));
	store_write_reset(first);
	assert_int_equal(first->stamp_us, 0);
	assert_int_equal(store_append(first, &RAW, T0, &h, 1, &one), 0);
	assert_int_equal(rig_write(rig, first), 0);
	expect_all(rig, RAW, h, POINTS({T0, {I(1)}}));
	store_write_free(first);
	store_write_free(second);
}

/* With one stamp for all of a batch the deletion would win over what was put after it. */
static void requests_of_a_batch_that_meet_are_ordered(struct rig *rig)
{
	uint64_t h[] = {rig_series(rig, "cpu", ""), rig_series(rig, "mem", "")};
	struct value values[] = {I(1), I(1)}, after = I(2);
	struct store_write *write = rig_write_new(rig);
	write->stamp_us = 100;
	assert_int_equal(store_append(write, &RAW, T0, h, 2, values), 0);
	assert_int_equal(store_delete_range(write, &RAW, h, 2, T0, T0 + 1), 0);
	assert_int_equal(store_append(write, &RAW, T0, h, 1, &after), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_write(rig, write), 0);
		expect_all(rig, RAW, h[0], POINTS({T0, {I(2)}}));
		expect_all(rig, RAW, h[1], NO_POINTS);
	}
	store_write_free(write);
	/* The last of the three has 102. */
	stamped(rig, h[0], NOTHING, 101);
	expect_all(rig, RAW, h[0], POINTS({T0, {I(2)}}));
	stamped(rig, h[0], NOTHING, 102);
	expect_all(rig, RAW, h[0], NO_POINTS);
}

const struct contract_case cases_ranges[] = {
	CASE(given_in_order_of_time),
	CASE(start_is_in_and_end_is_out),
	CASE(same_after_settling_and_reopening),
	CASE(row_without_samples_is_empty),
	CASE(read_of_no_handles_succeeds),
	CASE(many_handles_are_sliced_together),
	CASE(limit_is_of_each_series),
	CASE(slices_go_on_while_others_write),
	CASE(written_again_the_later_wins),
	CASE(within_a_batch_the_later_wins),
	CASE(batch_sent_twice_is_there_once),
	CASE(late_samples_find_their_place),
	CASE(late_sample_overwrites_what_is_settled),
	CASE(deletion_takes_start_and_leaves_end),
	CASE(written_after_deletion_is_there),
	CASE(deletion_is_ordered_within_its_batch),
	CASE(nothing_is_lost_at_the_edges_of_segments),
	CASE(roll_ups_lie_in_wider_segments),
	CASE(times_at_both_ends),
	CASE(tables_and_periods_are_apart),
	CASE(many_samples_of_one_series),
	CASE(shorter_than_its_arena),
	CASE_NEEDS(of_two_samples_the_higher_stamp_stays, STORE_SAMPLE_STAMPS),
	CASE_NEEDS(a_deletion_takes_what_is_not_stamped_above_it, STORE_SAMPLE_STAMPS),
	CASE_NEEDS(sent_again_undoes_nothing, STORE_SAMPLE_STAMPS),
	CASE_NEEDS(requests_of_a_batch_that_meet_are_ordered, STORE_SAMPLE_STAMPS),
	{0},
};
