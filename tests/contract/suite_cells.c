/* Stamped and set cells: which write wins, scans and their bounds, expiry, sizes. */
#include "contract.h"

#define DAY_KEY  PARTS(TEXT("default"), TEXT("2023-11-14"))
#define KIND_KEY PARTS(TEXT("2023-11-14"))

static void put(struct rig *rig, const char *column, const char *value, int64_t stamp_us)
{
	rig_cell_put(rig, TABLE_SUMMARIES, DAY_KEY, PARTS(slice_of(column)), slice_of(value),
		     stamp_us, 0);
}

static void expect_cell(struct rig *rig, const char *column, const char *value, int64_t stamp_us)
{
	struct store_cell cell;
	assert_true(rig_cell_get(rig, TABLE_SUMMARIES, DAY_KEY, PARTS(slice_of(column)), &cell));
	assert_slice(cell.value, slice_of(value));
	assert_slice(cell.column.part[0], slice_of(column));
	assert_int_equal(cell.stamp_us, stamp_us);
	assert_int_equal(cell.expires_ms, 0);
}

static void expect_absent(struct rig *rig, const char *column)
{
	struct store_cell cell;
	assert_false(rig_cell_get(rig, TABLE_SUMMARIES, DAY_KEY, PARTS(slice_of(column)), &cell));
}

static void drop(struct rig *rig, const char *column, int64_t stamp_us)
{
	rig_cell_delete(rig, TABLE_SUMMARIES, DAY_KEY, PARTS(slice_of(column)), stamp_us);
}

static void cell_is_where_it_was_put(struct rig *rig)
{
	struct store_cell cell;
	expect_absent(rig, "duration");
	put(rig, "duration", "17", 1);
	expect_cell(rig, "duration", "17", 1);
	expect_absent(rig, "duratio");
	expect_absent(rig, "duration2");
	assert_false(rig_cell_get(rig, TABLE_SUMMARIES, PARTS(TEXT("default"), TEXT("2023-11-15")),
				  PARTS(TEXT("duration")), &cell));
	assert_false(rig_cell_get(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("duration")), &cell));
	put(rig, "empty", "", 1);
	expect_cell(rig, "empty", "", 1);
	put(rig, "", "a column without a name", 1);
	expect_cell(rig, "", "a column without a name", 1);
	rig_reopen(rig);
	expect_cell(rig, "duration", "17", 1);
	expect_cell(rig, "empty", "", 1);
	expect_cell(rig, "", "a column without a name", 1);
	rig_settle(rig);
	expect_cell(rig, "duration", "17", 1);
}

/* The six orders of three writes all end with the highest stamp. */
static void higher_stamp_wins_in_any_order(struct rig *rig)
{
	static const int orders[6][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
					 {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
	for (int deleted = 0; deleted <= 3; deleted++) {
		for (int o = 0; o < 6; o++) {
			char column[32], value[8];
			snprintf(column, sizeof(column), "c%d%d", deleted, o);
			for (int i = 0; i < 3; i++) {
				int stamp = orders[o][i];
				snprintf(value, sizeof(value), "v%d", stamp);
				if (stamp == deleted)
					drop(rig, column, stamp);
				else
					put(rig, column, value, stamp);
			}
			if (deleted == 3)
				expect_absent(rig, column);
			else
				expect_cell(rig, column, "v3", 3);
		}
	}
}

static void deletion_holds_after_reopening(struct rig *rig)
{
	put(rig, "c", "old", 10);
	drop(rig, "c", 20);
	drop(rig, "never was", 20);
	rig_reopen(rig);
	rig_settle(rig);
	put(rig, "c", "between", 15);
	put(rig, "never was", "between", 19);
	expect_absent(rig, "c");
	expect_absent(rig, "never was");
	/* For at least STORE_TOMBSTONE_MS. */
	rig_advance_ms(rig, STORE_TOMBSTONE_MS - 1000);
	rig_settle(rig);
	put(rig, "c", "between", 15);
	expect_absent(rig, "c");
	put(rig, "c", "new", 21);
	expect_cell(rig, "c", "new", 21);
}

static void of_equal_stamps_the_greater_value(struct rig *rig)
{
	put(rig, "a", "1", 5);
	put(rig, "a", "2", 5);
	expect_cell(rig, "a", "2", 5);
	put(rig, "a", "1", 5);
	expect_cell(rig, "a", "2", 5);
	put(rig, "a", "2x", 5); /* a prefix is smaller */
	expect_cell(rig, "a", "2x", 5);
	put(rig, "a", "2", 5);
	expect_cell(rig, "a", "2x", 5);
	put(rig, "b", "", 5);
	put(rig, "b", "1", 5);
	expect_cell(rig, "b", "1", 5);
	put(rig, "c", "\x7f", 5);
	put(rig, "c", "\x80", 5); /* bytes have no sign */
	expect_cell(rig, "c", "\x80", 5);
	put(rig, "c", "\x7f", 5);
	expect_cell(rig, "c", "\x80", 5);
}

/* So whoever has read a cell may delete just what it read: a later put stays. */
static void of_equal_stamps_the_deletion(struct rig *rig)
{
	put(rig, "a", "2", 5);
	drop(rig, "a", 5);
	expect_absent(rig, "a");
	put(rig, "a", "3", 5);
	expect_absent(rig, "a");
	put(rig, "a", "0", 6);
	expect_cell(rig, "a", "0", 6);
	drop(rig, "a", 5);
	expect_cell(rig, "a", "0", 6);
	/* An expiry beyond that of anything, and a deletion that comes first. */
	rig_cell_put(rig, TABLE_SUMMARIES, DAY_KEY, PARTS(TEXT("b")), TEXT("v"), 5, INT64_MAX);
	drop(rig, "b", 5);
	expect_absent(rig, "b");
	drop(rig, "c", 5);
	rig_cell_put(rig, TABLE_SUMMARIES, DAY_KEY, PARTS(TEXT("c")), TEXT("v"), 5, INT64_MAX);
	expect_absent(rig, "c");
}

static void stamps_at_both_ends(struct rig *rig)
{
	struct store_write *write = rig_write_new(rig);
	put(rig, "low", "a", INT64_MIN + 1);
	expect_cell(rig, "low", "a", INT64_MIN + 1);
	put(rig, "low", "b", -1);
	put(rig, "low", "c", INT64_MIN + 2);
	expect_cell(rig, "low", "b", -1);
	put(rig, "low", "d", 0);
	expect_cell(rig, "low", "d", 0);
	assert_int_equal(store_cell_put(write, TABLE_SUMMARIES, DAY_KEY, PARTS(TEXT("low")),
					TEXT("v"), INT64_MIN, 0),
			 ERR_INVALID);
	assert_int_equal(
		store_cell_delete(write, TABLE_SUMMARIES, DAY_KEY, PARTS(TEXT("low")), INT64_MIN),
		ERR_INVALID);
	store_write_free(write);
}

static void stamped_twice_is_there_once(struct rig *rig)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(
		store_cell_put(write, TABLE_SUMMARIES, DAY_KEY, PARTS(TEXT("c")), TEXT("v"), 7, 0),
		0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_write(rig, write), 0);
	store_write_free(write);
	struct store_cell_scan scan = {.table = TABLE_SUMMARIES, .key = *DAY_KEY};
	assert_int_equal(rig_scan(rig, &scan, 0).count, 1);
	expect_cell(rig, "c", "v", 7);
}

static void expired_cell_is_invisible_from_its_ms(struct rig *rig)
{
	struct store_cell cell;
	struct store_cell_scan scan = {.table = TABLE_DEVICES, .key = *KIND_KEY};
	rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("a")), TEXT("v"), 1, T0 + 1000);
	rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("b")), TEXT("v"), 1, T0 + 1001);
	rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("c")), TEXT("v"), 1, 0);
	rig_advance_ms(rig, 999);
	assert_int_equal(rig_scan(rig, &scan, 0).count, 3);
	assert_true(rig_cell_get(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("a")), &cell));
	assert_int_equal(cell.expires_ms, T0 + 1000);
	rig_advance_ms(rig, 1);
	assert_int_equal(rig_scan(rig, &scan, 0).count, 2);
	assert_false(rig_cell_get(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("a")), &cell));
	assert_true(rig_cell_get(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("b")), &cell));
	rig_settle(rig);
	rig_reopen(rig);
	rig_advance_ms(rig, 1);
	assert_int_equal(rig_scan(rig, &scan, 0).count, 1);
	/* What has expired still wins over a lower stamp, and a higher one over it. */
	rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("a")), TEXT("old"), 0, 0);
	assert_int_equal(rig_scan(rig, &scan, 0).count, 1);
	rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("a")), TEXT("new"), 2, 0);
	assert_true(rig_cell_get(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("a")), &cell));
	assert_slice(cell.value, TEXT("new"));
	assert_int_equal(cell.expires_ms, 0);
}

/* The expiry decides before the value, and one that expires wins over one that never does. */
static void of_equal_stamps_the_later_expiry(struct rig *rig)
{
	static const struct {
		const char *value;
		int64_t expires_ms;
		const char *expected;
		int64_t expected_ms;
	} steps[] = {
		{"v", 0, "v", 0},
		{"w", 0, "w", 0},
		{"b", T0 + 5000, "b", T0 + 5000},
		{"z", 0, "b", T0 + 5000},
		{"a", T0 + 9000, "a", T0 + 9000},
		{"z", T0 + 7000, "a", T0 + 9000},
		{"c", T0 + 9000, "c", T0 + 9000},
		{"b", T0 + 9000, "c", T0 + 9000},
	};
	struct store_cell cell;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("a")),
			     slice_of(steps[i].value), 1, steps[i].expires_ms);
		assert_true(rig_cell_get(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("a")), &cell));
		assert_slice(cell.value, slice_of(steps[i].expected));
		assert_int_equal(cell.expires_ms, steps[i].expected_ms);
	}
}

/* The query's now decides, not the clock. */
static void expiry_follows_the_querys_now(struct rig *rig)
{
	rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("a")), TEXT("v"), 1, T0 + 1000);
	rig_advance_ms(rig, 5000);
	for (int64_t now_ms = T0 + 999; now_ms <= T0 + 1000; now_ms++) {
		struct store_read *read = rig_read_new(rig);
		struct store_request *request = store_read_add(read, STORE_CELL_GET);
		read->now_ms = now_ms;
		request->cell_get = (struct store_cell_get){
			.table = TABLE_DEVICES, .key = *KIND_KEY, .column = *PARTS(TEXT("a"))};
		assert_int_equal(rig_read(rig, read), 0);
		assert_int_equal(request->cell_get.found, now_ms < T0 + 1000);
		store_read_free(read);
	}
}

/* ---- Scans --------------------------------------------------------------------------------- */

/* Asserts the columns of a scan, as text with spaces between: both ways, in slices, limited. */
static void expect_scan(struct rig *rig, struct store_cell_scan scan, const struct slice *expected,
			size_t count)
{
	for (int backward = 0; backward < 2; backward++) {
		scan.backward = backward;
		for (size_t max = 0; max < 4; max++) {
			for (scan.limit = 0; scan.limit <= count + 1; scan.limit++) {
				struct cells cells = rig_scan(rig, &scan, max);
				size_t wanted =
					scan.limit && scan.limit < count ? scan.limit : count;
				assert_int_equal(cells.count, wanted);
				for (size_t i = 0; i < wanted; i++)
					assert_slice(cells.list[i].column.part[0],
						     expected[backward ? count - 1 - i : i]);
			}
		}
	}
}

static void scan_between_two_columns(struct rig *rig)
{
	static const char *const columns[] = {"b", "d", "a", "c", "ab"};
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		put(rig, columns[i], "v", 1);
	drop(rig, "c", 2);
	put(rig, "c2", "v", 1);
	struct slice all[] = {TEXT("a"), TEXT("ab"), TEXT("b"), TEXT("c2"), TEXT("d")};
	struct store_cell_scan scan = {.table = TABLE_SUMMARIES, .key = *DAY_KEY};
	for (int pass = 0; pass < 2; pass++) {
		expect_scan(rig, scan, all, 5);
		scan.from = *PARTS(TEXT("ab"));
		expect_scan(rig, scan, all + 1, 4);
		scan.to = *PARTS(TEXT("d"));
		expect_scan(rig, scan, all + 1, 3);
		scan.from = *PARTS(TEXT("aa"));
		expect_scan(rig, scan, all + 1, 3);
		scan.from = (struct store_parts){0};
		expect_scan(rig, scan, all, 4);
		scan.to = *PARTS(TEXT("a"));
		expect_scan(rig, scan, all, 0);
		scan.to = *PARTS(TEXT(""));
		expect_scan(rig, scan, all, 0);
		scan.to = (struct store_parts){0};
		scan.from = *PARTS(TEXT("e"));
		expect_scan(rig, scan, all, 0);
		scan.to = *PARTS(TEXT("b")); /* ends before it begins */
		expect_scan(rig, scan, all, 0);
		scan.from = scan.to = (struct store_parts){0};
		rig_settle(rig);
		rig_reopen(rig);
	}
	scan.key = *PARTS(TEXT("default"), TEXT("2023-11-13"));
	expect_scan(rig, scan, all, 0);
}

/* The character with the greatest bytes, U+10FFFF. */
#define LAST "\xf4\x8f\xbf\xbf"

/* Parts with 00 and ff inside, which an order of flat bytes would mix up: by hand, part by part. */
static void order_is_part_by_part(struct rig *rig)
{
	static const struct store_parts columns[] = {
		{{TEXT(""), TEXT("")}},        {{TEXT(""), TEXT("\0")}},
		{{TEXT(""), TEXT("\xff")}},    {{TEXT("\0"), TEXT("")}},
		{{TEXT("\0"), TEXT("z")}},     {{TEXT("\0\0"), TEXT("a")}},
		{{TEXT("\0\x01"), TEXT("a")}}, {{TEXT("\0\xc3\xbf"), TEXT("a")}},
		{{TEXT("\x01"), TEXT("a")}},   {{TEXT("a"), TEXT("")}},
		{{TEXT("a"), TEXT("\0\x01")}}, {{TEXT("a"), TEXT("z")}},
		{{TEXT("a\0"), TEXT("a")}},    {{TEXT("a\0\x01"), TEXT("a")}},
		{{TEXT("a\x01"), TEXT("a")}},  {{TEXT("ab"), TEXT("a")}},
		{{TEXT(LAST), TEXT("")}},      {{TEXT(LAST), TEXT("\xff\xff")}},
		{{TEXT(LAST "\0"), TEXT("")}}, {{TEXT(LAST LAST), TEXT("")}},
	};
	enum { COUNT = ARRAY_LEN(columns) };
	const struct store_parts *key = PARTS(TEXT("t"), TEXT("k\0ey"));
	/* Written in an order that is not theirs: 7 and 20 have no common divisor. */
	for (size_t i = 0; i < COUNT; i++)
		rig_cell_put(rig, TABLE_CHUKWA, key, &columns[i * 7 % COUNT], TEXT("v"), 1, 0);
	struct store_cell_scan scan = {.table = TABLE_CHUKWA, .key = *key};
	for (size_t max = 0; max < 3; max++) {
		struct cells cells = rig_scan(rig, &scan, max);
		assert_int_equal(cells.count, COUNT);
		for (size_t i = 0; i < COUNT; i++) {
			assert_slice(cells.list[i].column.part[0], columns[i].part[0]);
			assert_slice(cells.list[i].column.part[1], columns[i].part[1]);
		}
	}
	/* Every pair of bounds, whole and of the first part alone. */
	for (size_t from = 0; from < COUNT; from++) {
		for (size_t to = 0; to < COUNT; to++) {
			scan.from = columns[from];
			scan.to = columns[to];
			assert_int_equal(rig_scan(rig, &scan, 0).count, to > from ? to - from : 0);
		}
	}
	scan.from = *PARTS(TEXT("a"));
	scan.to = *PARTS(TEXT("a\0"));
	assert_int_equal(rig_scan(rig, &scan, 0).count, 3);
	scan.to = *PARTS(TEXT("a"));
	assert_int_equal(rig_scan(rig, &scan, 0).count, 0);
	scan.to = *PARTS(TEXT(LAST));
	assert_int_equal(rig_scan(rig, &scan, 1).count, 7);
	scan.from = *PARTS(TEXT(LAST));
	scan.to = (struct store_parts){0};
	assert_int_equal(rig_scan(rig, &scan, 0).count, 4);
	/* Bounds may be any bytes: cut characters, and what stands in no text. */
	scan.from = *PARTS(TEXT("\xf4\x8f\xbf"));
	scan.to = *PARTS(TEXT("\xff"));
	assert_int_equal(rig_scan(rig, &scan, 0).count, 4);
	scan.from = *PARTS(TEXT("\xff"));
	scan.to = (struct store_parts){0};
	assert_int_equal(rig_scan(rig, &scan, 0).count, 0);
}

/* What stands in no valid UTF-8: a byte alone, a character cut or overlong, a half of a pair, a
 * character beyond the last. */
static void texts_that_are_not_utf8_are_not_put(struct rig *rig)
{
	static const struct slice bad[] = {TEXT("\xff"),         TEXT("a\x80"),
					   TEXT("\xe2\x82"),     TEXT("\xc0\x80"),
					   TEXT("\xed\xa0\x80"), TEXT("\xf4\x90\x80\x80")};
	const struct store_parts *good = PARTS(TEXT("gr\xc3\xbc\xc3\x9f\0"));
	struct store_write_cond *outcome;
	struct store_write *write = rig_write_new(rig);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct store_parts *parts = PARTS(bad[i]);
		struct slice v = TEXT("v");
		assert_int_equal(store_cell_put(write, TABLE_DEVICES, parts, good, v, 1, 0),
				 ERR_INVALID);
		assert_string_equal(write->error.text, "kind of devices is not UTF-8");
		assert_int_equal(store_cell_put(write, TABLE_DEVICES, good, parts, v, 1, 0),
				 ERR_INVALID);
		assert_string_equal(write->error.text, "name of devices is not UTF-8");
		assert_int_equal(store_set_add(write, TABLE_METRIC_NAMES, good, parts, v),
				 ERR_INVALID);
		assert_int_equal(
			store_cell_put_if(write, TABLE_LEASES, good, parts, 0, v, 0, &outcome),
			ERR_INVALID);
		assert_int_equal(store_log_put(write, TABLE_QUEUE, PARTS(bad[i], TEXT("12345678")),
					       PARTS(TEXT("12345678")), v),
				 ERR_INVALID);
		/* Bytes may be any; and what is not there may be removed, whatever it is called. */
		assert_int_equal(store_cell_put(write, TABLE_CHUKWA, PARTS(TEXT("t"), bad[i]),
						PARTS(TEXT("t"), bad[i]), v, 1, 0),
				 0);
		assert_int_equal(store_cell_delete(write, TABLE_DEVICES, parts, parts, 1), 0);
		assert_int_equal(store_log_remove(write, TABLE_QUEUE,
						  PARTS(bad[i], TEXT("12345678")), PARTS({0}),
						  PARTS({0})),
				 0);
	}
	assert_int_equal(store_cell_put(write, TABLE_DEVICES, good, good, TEXT("v"), 1, 0), 0);
	rig_commit(rig, write);
	struct store_cell cell;
	assert_true(rig_cell_get(rig, TABLE_DEVICES, good, good, &cell));
	assert_int_equal(rig_enumerate(rig, TABLE_CHUKWA, 0, 0).count, ARRAY_LEN(bad));
	assert_int_equal(rig_enumerate(rig, TABLE_LEASES, 0, 0).count, 0);
	assert_int_equal(rig_enumerate(rig, TABLE_QUEUE, 0, 0).count, 0);
}

/* Rows whose keys are prefixes of each other, or would be the same if parts were just joined. */
static void rows_do_not_run_together(struct rig *rig)
{
	static const char day1[8] = {0, 0, 0, 0, 0, 0, 0, 1}, day0[8];
	const struct store_parts keys[] = {
		{{TEXT("a"), {day1, 8}, {day0, 8}}},
		{{TEXT("a\0"), {day1, 8}, {day0, 8}}},
		{{TEXT("a"), {day0, 8}, {day0, 8}}},
		{{TEXT("a\0\x01\0\0\0\0\0\0\0"), {day0, 8}, {day0, 8}}},
		{{TEXT(""), {day1, 8}, {day0, 8}}},
	};
	static const char end[8] = {0, 0, 0, 0, 0, 0, 1, 0};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		char value[8];
		snprintf(value, sizeof(value), "%zu", i);
		rig_cell_put(rig, TABLE_REPORT_ARRIVALS, &keys[i], PARTS({end, 8}), slice_of(value),
			     1, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct store_cell_scan scan = {.table = TABLE_REPORT_ARRIVALS, .key = keys[i]};
		struct cells cells = rig_scan(rig, &scan, 0);
		assert_int_equal(cells.count, 1);
		assert_int_equal(cells.list[0].value.data[0], '0' + (int)i);
	}
	struct rows rows = rig_enumerate(rig, TABLE_REPORT_ARRIVALS, 0, 0);
	assert_int_equal(rows.count, ARRAY_LEN(keys));
}

static void numbers_are_in_the_order_of_numbers(struct rig *rig)
{
	static const uint64_t ids[] = {0, 1, 255, 256, 65536, UINT64_C(1) << 63, UINT64_MAX};
	enum { COUNT = ARRAY_LEN(ids) };
	static const char day[8];
	const struct store_parts *key = PARTS(TEXT("s"), {day, 8}, {day, 8});
	char bytes[COUNT][8];
	for (size_t i = 0; i < COUNT; i++) {
		for (size_t b = 0; b < 8; b++)
			bytes[i][b] = (char)(ids[i] >> (56 - 8 * b));
	}
	for (size_t i = 0; i < COUNT; i++) {
		size_t at = (i * 3 + 1) % COUNT;
		rig_cell_put(rig, TABLE_REPORT_ARRIVALS, key, PARTS({bytes[at], 8}), TEXT("v"), 1,
			     0);
	}
	struct store_cell_scan scan = {.table = TABLE_REPORT_ARRIVALS, .key = *key};
	struct cells cells = rig_scan(rig, &scan, 2);
	assert_int_equal(cells.count, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		assert_slice(cells.list[i].column.part[0], (struct slice){bytes[i], 8});
	scan.from = *PARTS({bytes[2], 8});
	scan.to = *PARTS({bytes[6], 8});
	assert_int_equal(rig_scan(rig, &scan, 0).count, 4);
}

static void many_cells_in_one_row(struct rig *rig)
{
	enum { COUNT = 3000 };
	struct store_write *write = rig_write_new(rig);
	for (int i = 0; i < COUNT; i++) {
		char column[16], value[32];
		snprintf(column, sizeof(column), "%05d", (i * 7) % COUNT);
		snprintf(value, sizeof(value), "value of %05d", (i * 7) % COUNT);
		assert_int_equal(store_cell_put(write, TABLE_SUMMARIES, DAY_KEY,
						PARTS(slice_of(column)), slice_of(value), 1, 0),
				 0);
	}
	assert_int_equal(write->cells, COUNT);
	rig_commit(rig, write);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t max = 0; max <= 1000; max += 500) {
			struct store_cell_scan scan = {
				.table = TABLE_SUMMARIES, .key = *DAY_KEY, .backward = max == 500};
			struct cells cells = rig_scan(rig, &scan, max);
			assert_int_equal(cells.count, COUNT);
			for (int i = 0; i < COUNT; i++) {
				char column[16];
				snprintf(column, sizeof(column), "%05d",
					 scan.backward ? COUNT - 1 - i : i);
				assert_slice(cells.list[i].column.part[0], slice_of(column));
				assert_slice((struct slice){cells.list[i].value.data + 9, 5},
					     slice_of(column));
			}
		}
		rig_settle(rig);
		rig_reopen(rig);
	}
	rig_expect_samples(rig, TABLE_SUMMARIES, COUNT);
	rig_expect_rows(rig, TABLE_SUMMARIES, 1);
}

/* ---- Sizes --------------------------------------------------------------------------------- */

static struct slice filled(struct rig *rig, size_t len, char c)
{
	char *bytes = arena_alloc(&rig->keep, len + 1);
	memset(bytes, c, len);
	return (struct slice){bytes, len};
}

/* Keys far over what an engine may take as one key, which differ in their last byte only. */
static void long_keys_stay_apart(struct rig *rig)
{
	static const size_t lens[] = {400, 500, 511, 512, 1000, STORE_KEY_MAX_BYTES};
	for (int pass = 0; pass < 3; pass++) {
		for (size_t l = 0; l < ARRAY_LEN(lens); l++) {
			for (char c = 'a'; c <= 'c'; c++) {
				struct slice key = filled(rig, lens[l], 'k');
				((char *)(uintptr_t)key.data)[key.len - 1] = c;
				struct slice value = {key.data + key.len - 1, 1};
				struct store_cell cell;
				if (pass == 0)
					rig_cell_put(rig, TABLE_DEVICES, PARTS(key),
						     PARTS(TEXT("a")), value, 1, 0);
				assert_true(rig_cell_get(rig, TABLE_DEVICES, PARTS(key),
							 PARTS(TEXT("a")), &cell));
				assert_slice(cell.value, value);
				struct store_cell_scan scan = {.table = TABLE_DEVICES,
							       .key = *PARTS(key)};
				assert_int_equal(rig_scan(rig, &scan, 1).count, 1);
			}
		}
		if (pass == 0)
			rig_reopen(rig);
		if (pass == 1)
			rig_settle(rig);
	}
	struct rows rows = rig_enumerate(rig, TABLE_DEVICES, 2, 0);
	assert_int_equal(rows.count, 3 * ARRAY_LEN(lens));
	size_t full = 0;
	for (size_t i = 0; i < rows.count; i++)
		full += rows.list[i].key.part[0].len == STORE_KEY_MAX_BYTES;
	assert_int_equal(full, 3);
}

static void long_columns_stay_apart_and_in_order(struct rig *rig)
{
	struct slice key = filled(rig, STORE_KEY_MAX_BYTES, 'k');
	for (char c = 'e'; c >= 'a'; c--) {
		struct slice column = filled(rig, STORE_COLUMN_MAX_BYTES, 'c');
		((char *)(uintptr_t)column.data)[column.len - 1] = c;
		rig_cell_put(rig, TABLE_DEVICES, PARTS(key), PARTS(column), TEXT("v"), 1, 0);
	}
	for (size_t max = 0; max < 3; max++) {
		struct store_cell_scan scan = {.table = TABLE_DEVICES, .key = *PARTS(key)};
		struct cells cells = rig_scan(rig, &scan, max);
		assert_int_equal(cells.count, 5);
		for (size_t i = 0; i < 5; i++) {
			struct slice column = cells.list[i].column.part[0];
			assert_int_equal(column.len, STORE_COLUMN_MAX_BYTES);
			assert_int_equal(column.data[column.len - 1], 'a' + (char)i);
		}
		scan.from = cells.list[1].column;
		scan.to = cells.list[3].column;
		assert_int_equal(rig_scan(rig, &scan, max).count, 2);
	}
}

/* Bytes that depend on where they stand, so that no piece can be taken for another. */
static struct slice patterned(struct rig *rig, size_t len, uint32_t seed)
{
	uint8_t *bytes = arena_alloc(&rig->keep, len + 1);
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
	return (struct slice){(const char *)bytes, len};
}

static void large_values_come_back_whole(struct rig *rig)
{
	static const size_t lens[] = {1,
				      1000,
				      1900,
				      4000,
				      4079,
				      4080,
				      4081,
				      4096,
				      8160,
				      8161,
				      65535,
				      65536,
				      1000000,
				      TABLE_SHARED_VALUE_MAX_BYTES - 1,
				      TABLE_SHARED_VALUE_MAX_BYTES};
	for (int pass = 0; pass < 2; pass++) {
		for (size_t l = 0; l < ARRAY_LEN(lens); l++) {
			char column[16];
			struct store_cell cell;
			struct slice value = patterned(rig, lens[l], (uint32_t)l);
			snprintf(column, sizeof(column), "%zu", l);
			if (pass == 0)
				rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(slice_of(column)),
					     value, 1, 0);
			assert_true(rig_cell_get(rig, TABLE_DEVICES, KIND_KEY,
						 PARTS(slice_of(column)), &cell));
			assert_slice(cell.value, value);
			arena_reset(&rig->keep);
		}
		rig_settle(rig);
		rig_reopen(rig);
	}
	/* A smaller one over a large one, and the other way round. */
	rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("14")), TEXT("small"), 2, 0);
	struct slice large = patterned(rig, 999999, 9);
	rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("0")), large, 2, 0);
	struct store_cell cell;
	assert_true(rig_cell_get(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("14")), &cell));
	assert_slice(cell.value, TEXT("small"));
	assert_true(rig_cell_get(rig, TABLE_DEVICES, KIND_KEY, PARTS(TEXT("0")), &cell));
	assert_slice(cell.value, large);
	/* A scan that cannot hold them all at once still gives them all. */
	struct store_cell_scan scan = {.table = TABLE_DEVICES, .key = *KIND_KEY};
	assert_int_equal(rig_scan(rig, &scan, 1).count, ARRAY_LEN(lens));
	rig_verify(rig);
}

/* More than the read's memory in one row: slices, each with something in it. */
static void row_larger_than_the_reads_memory(struct rig *rig)
{
	enum { CELLS = 20, VALUE_BYTES = 100000, MEMORY_BYTES = 500000 };
	for (int i = 0; i < CELLS; i++) {
		char column[16];
		snprintf(column, sizeof(column), "%02d", i);
		rig_cell_put(rig, TABLE_DEVICES, KIND_KEY, PARTS(slice_of(column)),
			     patterned(rig, VALUE_BYTES, (uint32_t)i), 1, 0);
	}
	struct store_read *model = rig_read_new(rig);
	struct store_read *read = store_read_new(rig->store, MEMORY_BYTES);
	read->executor = model->executor;
	read->done = model->done;
	read->now_ms = model->now_ms;
	struct store_token token = {0};
	int seen = 0;
	for (bool more = true; more;) {
		store_read_reset(read);
		struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
		request->token = token;
		request->cell_scan =
			(struct store_cell_scan){.table = TABLE_DEVICES, .key = *KIND_KEY};
		assert_int_equal(rig_read(rig, read), 0);
		more = request->more;
		token = request->token;
		assert_true(request->cell_scan.count > 0 && request->cell_scan.count <= 5);
		for (size_t i = 0; i < request->cell_scan.count; i++, seen++)
			assert_slice(request->cell_scan.cells[i].value,
				     patterned(rig, VALUE_BYTES, (uint32_t)seen));
	}
	assert_int_equal(seen, CELLS);
	store_read_free(read);
	/* Not even one. */
	read = store_read_new(rig->store, VALUE_BYTES / 2);
	read->executor = model->executor;
	read->done = model->done;
	read->now_ms = model->now_ms;
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	request->cell_scan = (struct store_cell_scan){.table = TABLE_DEVICES, .key = *KIND_KEY};
	assert_int_equal(rig_read(rig, read), ERR_LIMIT);
	assert_int_equal(request->err, ERR_LIMIT);
	store_read_free(read);
	store_read_free(model);
}

/* ---- Sets ---------------------------------------------------------------------------------- */

/* The set of `metric`, with `;` behind each element. */
static const char *set_text(struct rig *rig, const char *metric)
{
	struct store_cell cell;
	if (!rig_cell_get(rig, TABLE_METRIC_NAMES, PARTS(TEXT("t")), PARTS(slice_of(metric)),
			  &cell))
		return NULL;
	char *text = arena_zalloc(&rig->keep, cell.value.len + 1);
	size_t n = 0;
	for (size_t at = 0; at < cell.value.len;) {
		size_t len = (uint8_t)cell.value.data[at] | (size_t)(uint8_t)cell.value.data[at + 1]
								    << 8;
		memcpy(text + n, cell.value.data + at + 2, len);
		n += len;
		text[n++] = ';';
		at += 2 + len;
		assert_true(at <= cell.value.len);
	}
	return text;
}

static void set_add(struct rig *rig, const char *metric, const char *element)
{
	rig_set_add(rig, TABLE_METRIC_NAMES, PARTS(TEXT("t")), PARTS(slice_of(metric)), element);
}

static void set_only_grows_and_is_in_order(struct rig *rig)
{
	assert_null(set_text(rig, "cpu"));
	set_add(rig, "cpu", "raw");
	assert_string_equal(set_text(rig, "cpu"), "raw;");
	set_add(rig, "cpu", "max");
	set_add(rig, "cpu", "raw");
	set_add(rig, "cpu", "avg");
	set_add(rig, "cpu", "ra");
	assert_string_equal(set_text(rig, "cpu"), "avg;max;ra;raw;");
	assert_null(set_text(rig, "cp"));
	set_add(rig, "disk", "raw");
	rig_reopen(rig);
	set_add(rig, "cpu", "max");
	set_add(rig, "cpu", "min");
	rig_settle(rig);
	assert_string_equal(set_text(rig, "cpu"), "avg;max;min;ra;raw;");
	struct store_cell_scan scan = {.table = TABLE_METRIC_NAMES, .key = *PARTS(TEXT("t"))};
	struct cells cells = rig_scan(rig, &scan, 1);
	assert_int_equal(cells.count, 2);
	assert_slice(cells.list[0].column.part[0], TEXT("cpu"));
	assert_slice(cells.list[1].column.part[0], TEXT("disk"));
}

static void several_adds_in_one_batch(struct rig *rig)
{
	struct store_write *write = rig_write_new(rig);
	for (int i = 0; i < 6; i++) {
		char element[8];
		snprintf(element, sizeof(element), "e%d", i % 3);
		assert_int_equal(store_set_add(write, TABLE_METRIC_NAMES, PARTS(TEXT("t")),
					       PARTS(TEXT("m")), slice_of(element)),
				 0);
	}
	rig_commit(rig, write);
	assert_string_equal(set_text(rig, "m"), "e0;e1;e2;");
}

/* The 65th element is left out; the rest of the batch is kept. */
static void full_set_takes_no_more(struct rig *rig)
{
	char element[STORE_SET_ELEMENT_MAX_BYTES + 1] = "";
	for (int i = 0; i < STORE_SET_ELEMENTS_MAX; i++) {
		memset(element, 'x', STORE_SET_ELEMENT_MAX_BYTES);
		element[0] = (char)('0' + i);
		set_add(rig, "m", element);
	}
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_set_add(write, TABLE_METRIC_NAMES, PARTS(TEXT("t")),
				       PARTS(TEXT("m")), TEXT("one more")),
			 0);
	assert_int_equal(store_set_add(write, TABLE_METRIC_NAMES, PARTS(TEXT("t")),
				       PARTS(TEXT("n")), TEXT("raw")),
			 0);
	assert_int_equal(rig_write(rig, write), ERR_LIMIT);
	assert_int_equal(write->stages_kept, 1);
	store_write_free(write);
	set_add(rig, "m", element); /* one that is there is no further one */
	assert_string_equal(set_text(rig, "n"), "raw;");
	const char *text = set_text(rig, "m");
	assert_int_equal(strlen(text), STORE_SET_ELEMENTS_MAX * (STORE_SET_ELEMENT_MAX_BYTES + 1));
	assert_null(strstr(text, "one more"));
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static void rows_are_enumerated_with_their_parts(struct rig *rig)
{
	for (char day = 0; day < 10; day++) {
		char bytes[8] = {0, 0, 0, 0, 0, 0, 1, day};
		const struct store_parts *key = PARTS(TEXT("stream"), {bytes, 8}, {bytes, 8});
		for (char c = 'a'; c <= 'c'; c++) {
			char sequence[8] = {0, 0, 0, 0, 0, 0, 0, c};
			rig_cell_put(rig, TABLE_REPORT_ARRIVALS, key, PARTS({sequence, 8}),
				     TEXT(""), 1, 0);
		}
	}
	for (size_t max = 0; max < 4; max++) {
		for (size_t limit = 0; limit < 4; limit++) {
			struct rows rows = rig_enumerate(rig, TABLE_REPORT_ARRIVALS, limit, max);
			unsigned seen = 0;
			assert_true(rows.count >= 10);
			for (size_t i = 0; i < rows.count; i++) {
				assert_slice(rows.list[i].key.part[0], TEXT("stream"));
				assert_int_equal(rows.list[i].key.part[1].len, 8);
				seen |= 1u << rows.list[i].key.part[1].data[7];
			}
			assert_int_equal(seen, 0x3ff);
		}
	}
	assert_int_equal(rig_enumerate(rig, TABLE_DEVICES, 0, 0).count, 0);
}

const struct contract_case cases_cells[] = {
	CASE(cell_is_where_it_was_put),
	CASE(higher_stamp_wins_in_any_order),
	CASE(deletion_holds_after_reopening),
	CASE(of_equal_stamps_the_greater_value),
	CASE(of_equal_stamps_the_deletion),
	CASE(stamps_at_both_ends),
	CASE(stamped_twice_is_there_once),
	CASE(expired_cell_is_invisible_from_its_ms),
	CASE(of_equal_stamps_the_later_expiry),
	CASE(expiry_follows_the_querys_now),
	CASE(scan_between_two_columns),
	CASE(order_is_part_by_part),
	CASE(texts_that_are_not_utf8_are_not_put),
	CASE(rows_do_not_run_together),
	CASE(numbers_are_in_the_order_of_numbers),
	CASE(many_cells_in_one_row),
	CASE(long_keys_stay_apart),
	CASE(long_columns_stay_apart_and_in_order),
	CASE(large_values_come_back_whole),
	CASE(row_larger_than_the_reads_memory),
	CASE(set_only_grows_and_is_in_order),
	CASE(several_adds_in_one_batch),
	CASE_NEEDS(full_set_takes_no_more, STORE_EXACT_SETS),
	CASE(rows_are_enumerated_with_their_parts),
	{0},
};
