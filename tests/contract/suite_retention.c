/* Retention classes and expiry on the test's clock. */
#include "contract.h"

#define I(x) value_i64(x)

static struct store_target raw_in(enum retention_class retention)
{
	return (struct store_target){TABLE_DATA_RAW, retention};
}

static size_t count_at(struct rig *rig, uint64_t h, int64_t now_ms)
{
	struct store_range range = {
		.table = TABLE_DATA_RAW,
		.handles = &h,
		.handle_count = 1,
		.start_ms = INT64_MIN,
		.end_ms = INT64_MAX,
	};
	struct points points;
	assert_int_equal(rig_range_at(rig, &range, 0, now_ms, &points), 0);
	return points.count;
}

/* A sample exactly as old as its retention is there; 1 ms older, it is not. */
static void edge_of_each_class(struct rig *rig)
{
	static const int64_t days[] = {2, 7, 35, 400};
	for (int c = 0; c < RETENTION_EVER; c++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "class=%d", c);
		uint64_t h = rig_series(rig, "cpu", tags);
		int64_t edge = T0 - days[c] * DAY_MS;
		struct points three =
			POINTS({edge - 1, {I(1)}}, {edge, {I(2)}}, {edge + 1, {I(3)}});
		rig_put_all(rig, raw_in((enum retention_class)c), h, three);
		for (int pass = 0; pass < 2; pass++) {
			expect_all(rig, RAW, h, (struct points){three.list + 1, 2});
			/* The query's now decides. */
			assert_int_equal(count_at(rig, h, T0 - 1), 3);
			assert_int_equal(count_at(rig, h, T0), 2);
			assert_int_equal(count_at(rig, h, T0 + 1), 1);
			assert_int_equal(count_at(rig, h, T0 + 2), 0);
			rig_settle(rig);
		}
	}
}

static void ever_is_for_ever(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct points two = POINTS({STORE_TS_MIN, {I(1)}}, {0, {I(2)}});
	rig_put_all(rig, RAW, h, two);
	rig_advance_ms(rig, 36500LL * DAY_MS);
	rig_settle(rig);
	expect_all(rig, RAW, h, two);
}

/* From the first slice to the last, though the clock goes on. */
static void now_is_the_querys_throughout(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	for (int64_t i = 0; i < 100; i++)
		rig_put(rig, raw_in(RETENTION_2_DAYS), h, T0 - 2 * DAY_MS + 1000 * i, I(i));
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){
		.table = TABLE_DATA_RAW,
		.handles = &h,
		.handle_count = 1,
		.start_ms = INT64_MIN,
		.end_ms = INT64_MAX,
	};
	read->points_max = 10;
	size_t given = 0;
	for (int slice = 0; slice == 0 || request->more; slice++) {
		assert_int_equal(rig_read(rig, read), 0);
		given += request->range.points->count;
		rig_advance_ms(rig, 5000);
		if (slice == 4)
			rig_settle(rig);
	}
	assert_int_equal(given, 100);
	store_read_free(read);
	assert_in_range(rig_now_ms(rig), T0 + 50000, T0 + 60000);
	assert_int_equal(count_at(rig, h, T0 + 50000), 50);
}

/* Not before the longest query that could still want it has ended. */
static void removed_a_query_deadline_later(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	for (int64_t i = 0; i < 500; i++)
		rig_put(rig, raw_in(RETENTION_2_DAYS), h, T0 + i, I(i));
	rig_advance_ms(rig, 2 * DAY_MS + STORE_QUERY_DEADLINE_MAX_MS - 1000);
	int64_t began_ms = rig_now_ms(rig) - STORE_QUERY_DEADLINE_MAX_MS + 1000;
	rig_settle(rig);
	assert_int_equal(count_at(rig, h, began_ms), 500);
	assert_int_equal(count_at(rig, h, rig_now_ms(rig)), 0);
	/* Now whole segments are past it. */
	rig_advance_ms(rig, 2LL * DAY_MS);
	rig_settle(rig);
	assert_int_equal(count_at(rig, h, rig_now_ms(rig)), 0);
	rig_expect_samples(rig, TABLE_DATA_RAW, 0);
	rig_expect_rows(rig, TABLE_DATA_RAW, 0);
	rig_reopen(rig);
	h = rig_find(rig, "t", "cpu", "");
	if (h)
		assert_int_equal(count_at(rig, h, T0), 0);
	rig_verify(rig);
}

static void expired_does_not_come_back_by_reopening(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	rig_put(rig, raw_in(RETENTION_2_DAYS), h, T0, I(1));
	rig_put(rig, raw_in(RETENTION_7_DAYS), h, T0 + 1, I(2));
	rig_advance_ms(rig, 3 * DAY_MS);
	rig_reopen(rig);
	expect_all(rig, RAW, rig_find(rig, "t", "cpu", ""), POINTS({T0 + 1, {I(2)}}));
	rig_settle(rig);
	rig_reopen(rig);
	expect_all(rig, RAW, rig_find(rig, "t", "cpu", ""), POINTS({T0 + 1, {I(2)}}));
}

static void classes_of_one_row_are_merged(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct point expected[50];
	for (int64_t i = 0; i < 50; i++) {
		expected[i] = (struct point){T0 + i, {I(i)}};
		rig_put(rig, raw_in((enum retention_class)(i % RETENTION_CLASSES)), h, T0 + i,
			I(i));
	}
	for (int pass = 0; pass < 2; pass++) {
		expect_all(rig, RAW, h, (struct points){expected, 50});
		rig_settle(rig);
	}
	rig_advance_ms(rig, 10 * DAY_MS);
	size_t left = 0;
	for (size_t i = 0; i < 50; i++) {
		if (i % RETENTION_CLASSES >= RETENTION_35_DAYS)
			expected[left++] = expected[i];
	}
	expect_all(rig, RAW, h, (struct points){expected, left});
	rig_settle(rig);
	expect_all(rig, RAW, h, (struct points){expected, left});
}

static void later_write_wins_over_another_class(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	rig_put(rig, raw_in(RETENTION_EVER), h, T0, I(1));
	rig_put(rig, raw_in(RETENTION_7_DAYS), h, T0, I(2));
	rig_put(rig, raw_in(RETENTION_2_DAYS), h, T0 + 1, I(3));
	rig_put(rig, raw_in(RETENTION_400_DAYS), h, T0 + 1, I(4));
	for (int pass = 0; pass < 2; pass++) {
		expect_all(rig, RAW, h, POINTS({T0, {I(2)}}, {T0 + 1, {I(4)}}));
		rig_settle(rig);
	}
	rig_reopen(rig);
	h = rig_find(rig, "t", "cpu", "");
	expect_all(rig, RAW, h, POINTS({T0, {I(2)}}, {T0 + 1, {I(4)}}));
}

static void deletion_reaches_every_class(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	for (int c = 0; c < RETENTION_CLASSES; c++) {
		rig_put(rig, raw_in((enum retention_class)c), h, T0 + c, I(c));
		rig_put(rig, raw_in((enum retention_class)c), h, T0 + 10, I(c));
	}
	rig_settle(rig);
	rig_put(rig, raw_in(RETENTION_35_DAYS), h, T0 + 20, I(20));
	rig_delete(rig, RAW, h, T0, T0 + 20);
	expect_all(rig, RAW, h, POINTS({T0 + 20, {I(20)}}));
	rig_settle(rig);
	expect_all(rig, RAW, h, POINTS({T0 + 20, {I(20)}}));
}

static void expired_is_nothing_to_other_reads(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct point point;
	size_t windows;
	rig_put(rig, raw_in(RETENTION_2_DAYS), h, T0 - 2 * DAY_MS - 1, I(-100));
	rig_put(rig, raw_in(RETENTION_2_DAYS), h, T0 - 2 * DAY_MS, I(7));
	rig_put(rig, raw_in(RETENTION_2_DAYS), h, T0, I(9));
	for (int pass = 0; pass < 2; pass++) {
		assert_false(rig_last_before(rig, RAW, h, T0 - 2 * DAY_MS, 0, &point));
		assert_true(rig_last_before(rig, RAW, h, T0 - 2 * DAY_MS + 1, 0, &point));
		assert_value(point.values[0], I(7));
		struct store_aggregate aggregate = {
			.table = TABLE_DATA_RAW,
			.handles = &h,
			.handle_count = 1,
			.start_ms = T0 - 10LL * DAY_MS,
			.end_ms = T0 + 1,
			.window_ms = 20LL * DAY_MS,
		};
		struct store_summary *s = rig_aggregate(rig, &aggregate, 0, &windows);
		assert_int_equal(windows, 1);
		assert_int_equal(s->count, 2);
		assert_true(s->sum == 16);
		assert_value(s->min, I(7));
		assert_value(s->first, I(7));
		assert_int_equal(s->first_ts_ms, T0 - 2 * DAY_MS);
		rig_settle(rig);
	}
}

/* Written so late that it has expired already: accepted, and never seen. */
static void written_after_its_expiry(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	rig_put(rig, raw_in(RETENTION_2_DAYS), h, T0 - 30LL * DAY_MS, I(1));
	expect_all(rig, RAW, h, NO_POINTS);
	rig_settle(rig);
	expect_all(rig, RAW, h, NO_POINTS);
	rig_put(rig, raw_in(RETENTION_35_DAYS), h, T0 - 30LL * DAY_MS, I(2));
	expect_all(rig, RAW, h, POINTS({T0 - 30LL * DAY_MS, {I(2)}}));
}

/* Two series in one group and one elsewhere, some of each in several classes, one unknown. */
static void shares_by_class(struct rig *rig)
{
	uint64_t a = rig_series(rig, "cpu", "h=a"), b = rig_series(rig, "net", "h=a");
	uint64_t c = rig_series(rig, "cpu", "h=c");
	uint64_t handles[] = {a, b, UINT64_MAX / 3, c};
	for (int64_t i = 0; i < 100; i++)
		rig_put(rig, raw_in(RETENTION_7_DAYS), a, T0 + i, I(i));
	for (int64_t i = 0; i < 3; i++)
		rig_put(rig, raw_in(RETENTION_EVER), a, T0 - 40LL * DAY_MS + i, I(i));
	rig_put(rig, raw_in(RETENTION_2_DAYS), b, T0, I(1));
	rig_put(rig, raw_in(RETENTION_2_DAYS), c, T0 - 3 * DAY_MS, I(1)); /* has expired */
	rig_put(rig, raw_in(RETENTION_35_DAYS), c, T0 - 3 * DAY_MS, I(1));
	for (int pass = 0; pass < 2; pass++) {
		for (size_t points_max = 0; points_max <= 7; points_max += 7) {
			struct store_share *s = rig_shares(rig, RAW, handles, 4, points_max);
			assert_int_equal(s[RETENTION_7_DAYS].samples, 100);
			assert_int_equal(s[RETENTION_7_DAYS].oldest_ms, T0);
			assert_true(s[RETENTION_7_DAYS].bytes > 0);
			assert_int_equal(s[RETENTION_EVER].samples, 3);
			assert_int_equal(s[RETENTION_EVER].oldest_ms, T0 - 40LL * DAY_MS);
			assert_int_equal(s[RETENTION_2_DAYS].samples, 0);
			s += RETENTION_CLASSES;
			assert_int_equal(s[RETENTION_2_DAYS].samples, 1);
			assert_int_equal(s[RETENTION_7_DAYS].samples, 0);
			s += RETENTION_CLASSES;
			for (size_t k = 0; k < RETENTION_CLASSES; k++)
				assert_int_equal(s[k].samples, 0);
			s += RETENTION_CLASSES;
			assert_int_equal(s[RETENTION_2_DAYS].samples, 0);
			assert_int_equal(s[RETENTION_35_DAYS].samples, 1);
		}
		rig_settle(rig);
	}
}

/* Values count by field, as they do in a row of roll-ups. */
static void shares_of_fields(struct rig *rig)
{
	struct store_target hours = {TABLE_DATA_DOWNSAMPLED, RETENTION_400_DAYS, 3600000};
	uint64_t h = rig_series(rig, "cpu", "");
	struct points rows = POINTS({0, {I(1), I(2), I(3)}}, {3600000, {I(1), I(2), I(3), I(4)}});
	rig_put_all(rig, (struct store_target){TABLE_DATA_DOWNSAMPLED, RETENTION_EVER, 3600000}, h,
		    rows);
	for (int pass = 0; pass < 2; pass++) {
		struct store_share *s = rig_shares(rig, hours, &h, 1, 0);
		assert_int_equal(s[RETENTION_EVER].samples, 7);
		assert_int_equal(s[RETENTION_EVER].oldest_ms, 0);
		hours.period_ms = 300000;
		assert_int_equal(rig_shares(rig, hours, &h, 1, 0)[RETENTION_EVER].samples, 0);
		hours.period_ms = 3600000;
		rig_settle(rig);
	}
}

/* ---- Re-keying ------------------------------------------------------------------------------- */

static void expect_share(struct rig *rig, struct store_target place, uint64_t handle,
			 enum retention_class retention, uint64_t samples)
{
	struct store_share *shares = rig_shares(rig, place, &handle, 1, 0);
	assert_int_equal(shares[retention].samples, samples);
}

static void rekey_both(struct rig *rig, enum retention_class to, uint64_t h)
{
	rig_rekey(rig, raw_in(to), STORE_REKEY_COPY, &h, 1, STORE_TS_MIN, STORE_TS_MAX);
	rig_rekey(rig, raw_in(to), STORE_REKEY_CLEAR, &h, 1, STORE_TS_MIN, STORE_TS_MAX);
}

/* From heads, from blocks, and from both, to a class that has some samples already. */
static void rekeyed_samples_stay_longer(struct rig *rig)
{
	for (int settled = 0; settled < 3; settled++) {
		int64_t t = rig_now_ms(rig);
		char tags[16];
		snprintf(tags, sizeof(tags), "settled=%d", settled);
		uint64_t h = rig_series(rig, "cpu", tags);
		struct point all[120];
		for (int64_t i = 0; i < 120; i++) {
			bool new = i % 10 == 0;
			all[i] = (struct point){t + i, {I(i)}};
			rig_put(rig, raw_in(new ? RETENTION_35_DAYS : RETENTION_2_DAYS), h, t + i,
				I(i));
			if (i == 60 && settled == 1)
				rig_settle(rig);
		}
		if (settled == 2)
			rig_settle(rig);
		rig_rekey(rig, raw_in(RETENTION_35_DAYS), STORE_REKEY_COPY, &h, 1, STORE_TS_MIN,
			  STORE_TS_MAX);
		expect_all(rig, RAW, h, (struct points){all, 120});
		rig_rekey(rig, raw_in(RETENTION_35_DAYS), STORE_REKEY_CLEAR, &h, 1, STORE_TS_MIN,
			  STORE_TS_MAX);
		expect_all(rig, RAW, h, (struct points){all, 120});
		expect_share(rig, RAW, h, RETENTION_35_DAYS, 120);
		expect_share(rig, RAW, h, RETENTION_2_DAYS, 0);
		rig_reopen(rig);
		h = rig_find(rig, "t", "cpu", tags);
		expect_share(rig, RAW, h, RETENTION_2_DAYS, 0);
		rig_put(rig, raw_in(RETENTION_35_DAYS), h, t + 5, I(-5));
		all[5].values[0] = I(-5);
		rig_advance_ms(rig, 4 * DAY_MS);
		rig_settle(rig);
		expect_all(rig, RAW, h, (struct points){all, 120});
		rig_verify(rig);
	}
}

/* Of what is moved to a shorter class that which is too old for it goes, and the rest with it. */
static void rekeyed_samples_leave_sooner(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct points three =
		POINTS({T0 - 9 * DAY_MS, {I(1)}}, {T0 - 3 * DAY_MS, {I(2)}}, {T0, {I(3)}});
	rig_put_all(rig, raw_in(RETENTION_EVER), h, three);
	rig_rekey(rig, raw_in(RETENTION_7_DAYS), STORE_REKEY_COPY, &h, 1, STORE_TS_MIN,
		  STORE_TS_MAX);
	expect_all(rig, RAW, h, three);
	rig_rekey(rig, raw_in(RETENTION_7_DAYS), STORE_REKEY_CLEAR, &h, 1, STORE_TS_MIN,
		  STORE_TS_MAX);
	for (int pass = 0; pass < 2; pass++) {
		expect_all(rig, RAW, h, (struct points){three.list + 1, 2});
		expect_share(rig, RAW, h, RETENTION_EVER, 0);
		rig_reopen(rig);
		h = rig_find(rig, "t", "cpu", "");
	}
	rig_advance_ms(rig, 5 * DAY_MS);
	expect_all(rig, RAW, h, (struct points){three.list + 2, 1});
	rig_advance_ms(rig, 5 * DAY_MS);
	expect_all(rig, RAW, h, NO_POINTS);
	rig_settle(rig);
	expect_all(rig, RAW, h, NO_POINTS);
	rig_verify(rig);
}

static void open_pair(struct rig *rig, const char *host, uint64_t handles[2])
{
	static const struct slice metrics[] = {SLICE("cpu"), SLICE("net")};
	struct tag tag = {SLICE("h"), slice_of(host)};
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open = (struct store_series_open){
		.tenant = SLICE("t"), .tags = {&tag, 1}, .metrics = metrics, .count = 2};
	assert_int_equal(rig_read(rig, read), 0);
	memcpy(handles, request->series_open.handles, 2 * sizeof(*handles));
	store_read_free(read);
}

/* Of one band two metrics, and two bands of one group; of one of these, half of its time. */
static void rekeying_takes_what_is_meant(struct rig *rig)
{
	uint64_t a[2], b[2];
	struct point point;
	open_pair(rig, "a", a);
	open_pair(rig, "b", b);
	for (int64_t i = 0; i < 80; i++) {
		for (size_t m = 0; m < 2; m++) {
			rig_put(rig, raw_in(RETENTION_2_DAYS), a[m], T0 + i, I(i));
			rig_put(rig, raw_in(RETENTION_2_DAYS), b[m], T0 + i, I(-i));
		}
		if (i == 40)
			rig_settle(rig);
	}
	uint64_t meant[] = {a[1], UINT64_MAX / 3, b[0]};
	for (int step = STORE_REKEY_COPY; step <= STORE_REKEY_CLEAR; step++)
		rig_rekey(rig, raw_in(RETENTION_7_DAYS), (enum store_rekey_step)step, meant, 3, T0,
			  T0 + 50);
	for (int pass = 0; pass < 3; pass++) {
		expect_share(rig, RAW, a[0], RETENTION_2_DAYS, 80);
		expect_share(rig, RAW, b[1], RETENTION_2_DAYS, 80);
		expect_share(rig, RAW, a[1], RETENTION_2_DAYS, 30);
		expect_share(rig, RAW, a[1], RETENTION_7_DAYS, 50);
		expect_share(rig, RAW, b[0], RETENTION_2_DAYS, 30);
		expect_share(rig, RAW, b[0], RETENTION_7_DAYS, 50);
		assert_int_equal(count_at(rig, b[0], T0), 80);
		assert_true(rig_last_before(rig, RAW, b[0], T0 + 31, 0, &point));
		assert_value(point.values[0], I(-30));
		if (pass == 0)
			rig_settle(rig);
		if (pass == 1)
			rig_reopen(rig);
		open_pair(rig, "a", a);
		open_pair(rig, "b", b);
	}
	rig_advance_ms(rig, 3 * DAY_MS);
	assert_int_equal(count_at(rig, a[0], rig_now_ms(rig)), 0);
	assert_int_equal(count_at(rig, a[1], rig_now_ms(rig)), 50);
	rig_verify(rig);
}

/* What was written to the class since is not overwritten by what comes to it. */
static void of_rekeyed_samples_the_later_stays(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	for (int settled = 0; settled < 2; settled++) {
		int64_t t = T0 + 1000 * settled;
		rig_put(rig, raw_in(RETENTION_EVER), h, t, I(1));
		rig_put(rig, raw_in(RETENTION_EVER), h, t + 1, I(1));
		if (settled)
			rig_settle(rig);
		rig_put(rig, raw_in(RETENTION_7_DAYS), h, t, I(2));
		rig_rekey(rig, raw_in(RETENTION_7_DAYS), STORE_REKEY_COPY, &h, 1, t, t + 1000);
		rig_put(rig, raw_in(RETENTION_7_DAYS), h, t + 1, I(3));
		rig_put(rig, raw_in(RETENTION_7_DAYS), h, t + 2, I(4));
		rig_rekey(rig, raw_in(RETENTION_7_DAYS), STORE_REKEY_CLEAR, &h, 1, t, t + 1000);
	}
	for (int pass = 0; pass < 2; pass++) {
		expect_all(rig, RAW, h,
			   POINTS({T0, {I(2)}}, {T0 + 1, {I(3)}}, {T0 + 2, {I(4)}},
				  {T0 + 1000, {I(2)}}, {T0 + 1001, {I(3)}}, {T0 + 1002, {I(4)}}));
		rig_reopen(rig);
		h = rig_find(rig, "t", "cpu", "");
	}
}

/* Deleted samples do not come back by it, nor twice is more than once. */
static void rekeying_beside_deletions(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	for (int64_t i = 0; i < 10; i++)
		rig_put(rig, raw_in(RETENTION_2_DAYS), h, T0 + i, I(i));
	rig_delete(rig, RAW, h, T0, T0 + 3);
	rig_rekey(rig, raw_in(RETENTION_EVER), STORE_REKEY_COPY, &h, 1, STORE_TS_MIN, STORE_TS_MAX);
	rig_delete(rig, RAW, h, T0 + 3, T0 + 6);
	rekey_both(rig, RETENTION_EVER, h);
	rekey_both(rig, RETENTION_EVER, h);
	struct points left =
		POINTS({T0 + 6, {I(6)}}, {T0 + 7, {I(7)}}, {T0 + 8, {I(8)}}, {T0 + 9, {I(9)}});
	for (int pass = 0; pass < 3; pass++) {
		expect_all(rig, RAW, h, left);
		if (pass == 0)
			rig_settle(rig);
		rig_reopen(rig);
		h = rig_find(rig, "t", "cpu", "");
	}
	rig_delete(rig, RAW, h, T0, T0 + 10);
	rig_reopen(rig);
	expect_all(rig, RAW, rig_find(rig, "t", "cpu", ""), NO_POINTS);
}

static void rekeying_rows_of_fields(struct rig *rig)
{
	struct store_target hours = {TABLE_DATA_DOWNSAMPLED, RETENTION_7_DAYS, 3600000};
	uint64_t h[2] = {rig_series(rig, "cpu", "h=a"), rig_series(rig, "cpu", "h=b")};
	struct points rows =
		POINTS({T0, {I(1), I(2), I(3)}}, {T0 + 3600000, {I(4), I(5), I(6), I(7)}});
	for (size_t i = 0; i < 2; i++)
		rig_put_all(rig, hours, h[i], rows);
	hours.retention = RETENTION_400_DAYS;
	for (int step = STORE_REKEY_COPY; step <= STORE_REKEY_CLEAR; step++)
		rig_rekey(rig, hours, (enum store_rekey_step)step, h, 2, STORE_TS_MIN,
			  STORE_TS_MAX);
	rig_reopen(rig);
	rig_advance_ms(rig, 20LL * DAY_MS);
	rig_settle(rig);
	expect_all(rig, hours, rig_find(rig, "t", "cpu", "h=a"), rows);
	expect_all(rig, hours, rig_find(rig, "t", "cpu", "h=b"), rows);
}

static void rekeying_outside_the_contract(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct value one = I(1);
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(
		store_rekey(write, &(struct store_rekeying){raw_in(RETENTION_CLASSES),
							    STORE_REKEY_COPY, &h, 1, 0, 1, T0}),
		ERR_INVALID);
	assert_int_equal(store_rekey(write, &(struct store_rekeying){RAW, STORE_REKEY_COPY, &h, 1,
								     1, 0, T0}),
			 ERR_INVALID);
	assert_int_equal(store_rekey(write, &(struct store_rekeying){RAW, STORE_REKEY_COPY, &h, 1,
								     0, 1, T0}),
			 0);
	assert_int_equal(store_append(write, &RAW, T0, &h, 1, &one), 0);
	assert_int_equal(store_write_submit(write), ERR_INVALID);
	store_write_free(write);
	rekey_both(rig, RETENTION_EVER, h);
	expect_all(rig, RAW, h, NO_POINTS);
}

const struct contract_case cases_retention[] = {
	CASE(edge_of_each_class),
	CASE(ever_is_for_ever),
	CASE(now_is_the_querys_throughout),
	CASE(removed_a_query_deadline_later),
	CASE(expired_does_not_come_back_by_reopening),
	CASE(classes_of_one_row_are_merged),
	CASE(later_write_wins_over_another_class),
	CASE(deletion_reaches_every_class),
	CASE(expired_is_nothing_to_other_reads),
	CASE(written_after_its_expiry),
	CASE_NEEDS(shares_by_class, STORE_HAS_SHARES),
	CASE_NEEDS(shares_of_fields, STORE_HAS_SHARES),
	CASE_NEEDS(rekeyed_samples_stay_longer, STORE_REKEYS | STORE_HAS_SHARES),
	CASE_NEEDS(rekeyed_samples_leave_sooner, STORE_REKEYS | STORE_HAS_SHARES),
	CASE_NEEDS(rekeying_takes_what_is_meant, STORE_REKEYS | STORE_HAS_SHARES),
	CASE_NEEDS(of_rekeyed_samples_the_later_stays, STORE_REKEYS),
	CASE_NEEDS(rekeying_beside_deletions, STORE_REKEYS),
	CASE_NEEDS(rekeying_rows_of_fields, STORE_REKEYS),
	CASE_NEEDS(rekeying_outside_the_contract, STORE_REKEYS),
	{0},
};
