/* Rows of stamped cells that are deleted as a whole: what is gone, what comes late, and that the
 * cells leave the store. */
#include "contract.h"

#define DAY_KEY PARTS(TEXT("2023-11-14"))

static void put(struct rig *rig, const char *column, const char *value, int64_t stamp_us)
{
	rig_cell_put(rig, TABLE_DEVICES, DAY_KEY, PARTS(slice_of(column)), slice_of(value),
		     stamp_us, 0);
}

static void drop(struct rig *rig, const char *column, int64_t stamp_us)
{
	rig_cell_delete(rig, TABLE_DEVICES, DAY_KEY, PARTS(slice_of(column)), stamp_us);
}

static void expect_cell(struct rig *rig, const char *column, const char *value, int64_t stamp_us)
{
	struct store_cell cell;
	assert_true(rig_cell_get(rig, TABLE_DEVICES, DAY_KEY, PARTS(slice_of(column)), &cell));
	assert_slice(cell.value, slice_of(value));
	assert_int_equal(cell.stamp_us, stamp_us);
}

static void expect_absent(struct rig *rig, const char *column)
{
	struct store_cell cell;
	assert_false(rig_cell_get(rig, TABLE_DEVICES, DAY_KEY, PARTS(slice_of(column)), &cell));
}

static struct slice filled(struct rig *rig, size_t len, char c)
{
	char *bytes = arena_alloc(&rig->keep, len + 1);
	memset(bytes, c, len);
	return (struct slice){bytes, len};
}

/* The columns that there are, in order, with a space behind each; DAY_KEY of TABLE_DEVICES. */
static void expect_columns(struct rig *rig, const char *expected)
{
	for (size_t max = 0; max < 3; max++) {
		struct store_cell_scan scan = {.table = TABLE_DEVICES, .key = *DAY_KEY};
		char text[256] = "";
		size_t len = 0;
		struct cells cells = rig_scan(rig, &scan, max);
		for (size_t i = 0; i < cells.count && len < sizeof(text); i++) {
			struct slice column = cells.list[i].column.part[0];
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s ",
						(int)column.len, column.data);
		}
		assert_string_equal(text, expected);
	}
}

static void drop_row(struct rig *rig, int64_t stamp_us)
{
	rig_row_delete(rig, TABLE_DEVICES, DAY_KEY, stamp_us);
}

static void a_row_goes_up_to_the_stamp(struct rig *rig)
{
	struct store_cell cell;
	put(rig, "a", "below", 9);
	put(rig, "b", "equal", 10);
	put(rig, "c", "above", 11);
	drop(rig, "d", 8);
	drop(rig, "e", 12);
	rig_cell_put(rig, TABLE_CHUKWA, PARTS(TEXT("t"), TEXT("2023-11-14")),
		     PARTS(TEXT("a"), TEXT("")), TEXT("elsewhere"), 1, 0);
	rig_cell_put(rig, TABLE_DEVICES, PARTS(TEXT("2023-11-1")), PARTS(TEXT("a")),
		     TEXT("a shorter key"), 1, 0);
	drop_row(rig, 10);
	for (int pass = 0; pass < 4; pass++) {
		expect_columns(rig, pass < 2 ? "c " : "c new ");
		expect_absent(rig, "a");
		expect_absent(rig, "b");
		expect_cell(rig, "c", "above", 11);
		/* Late: below, and equal; of cells that were there, and of others. */
		put(rig, "a", "late", 9);
		put(rig, "b", "late", 10);
		put(rig, "d", "late", 9);
		put(rig, "e", "late", 11);
		put(rig, "f", "late", 10);
		drop(rig, "f", 9);
		expect_columns(rig, pass < 2 ? "c " : "c new ");
		expect_absent(rig, "f");
		if (pass == 1)
			put(rig, "new", "later", 11);
		rig_settle(rig);
		rig_reopen(rig);
	}
	put(rig, "a", "again", 11);
	expect_cell(rig, "a", "again", 11);
	drop(rig, "a", 11);
	expect_absent(rig, "a");
	assert_true(rig_cell_get(rig, TABLE_CHUKWA, PARTS(TEXT("t"), TEXT("2023-11-14")),
				 PARTS(TEXT("a"), TEXT("")), &cell));
	assert_true(rig_cell_get(rig, TABLE_DEVICES, PARTS(TEXT("2023-11-1")), PARTS(TEXT("a")),
				 &cell));
}

static void of_several_deletions_of_a_row_the_highest(struct rig *rig)
{
	static const int orders[6][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
					 {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
	for (int o = 0; o < 6; o++) {
		int64_t base_us = 10 * (o + 1);
		for (int i = 0; i < 3; i++)
			drop_row(rig, base_us + orders[o][i]);
		if (o % 2)
			rig_settle(rig);
		put(rig, "a", "late", base_us + 3);
		expect_columns(rig, "");
		put(rig, "a", "v", base_us + 4);
		expect_cell(rig, "a", "v", base_us + 4);
		rig_verify(rig);
	}
}

/* Neither a row that never was nor one that is empty takes what is late. */
static void a_row_is_deleted_before_it_is_there(struct rig *rig)
{
	drop_row(rig, 5);
	expect_columns(rig, "");
	put(rig, "a", "late", 5);
	expect_columns(rig, "");
	rig_settle(rig);
	rig_reopen(rig);
	put(rig, "a", "late", 4);
	expect_columns(rig, "");
	put(rig, "b", "v", 6);
	expect_columns(rig, "b ");
	rig_verify(rig);
}

static void a_deleted_row_is_not_enumerated(struct rig *rig)
{
	for (int pass = 0; pass < 2; pass++) {
		put(rig, "a", "v", 5 * pass + 1);
		put(rig, "b", "v", 5 * pass + 2);
		drop(rig, "c", 5 * pass + 4);
		rig_cell_put(rig, TABLE_DEVICES, PARTS(TEXT("other")), PARTS(TEXT("a")), TEXT("v"),
			     1, 0);
		for (size_t max = 0; max < 2; max++)
			assert_int_equal(rig_enumerate(rig, TABLE_DEVICES, 0, max).count, 2);
		drop_row(rig, 5 * pass + 2);
		for (int again = 0; again < 2; again++) {
			for (size_t max = 0; max < 2; max++) {
				struct rows rows = rig_enumerate(rig, TABLE_DEVICES, 0, max);
				assert_int_equal(rows.count, 1);
				assert_slice(rows.list[0].key.part[0], TEXT("other"));
			}
			rig_settle(rig);
			rig_reopen(rig);
		}
	}
	put(rig, "b", "v", 8);
	assert_int_equal(rig_enumerate(rig, TABLE_DEVICES, 0, 0).count, 2);
}

/* By stamps, in whatever order the requests stand; and sent twice it is the same. */
static void a_row_is_deleted_within_a_batch(struct rig *rig)
{
	for (int first = 0; first < 2; first++) {
		struct store_write *write = rig_write_new(rig);
		int64_t at_us = 100 * (first + 1);
		if (first)
			assert_int_equal(store_row_delete(write, TABLE_DEVICES, DAY_KEY, at_us), 0);
		for (int64_t i = -1; i <= 1; i++) {
			char column[] = {(char)('b' + i), 0};
			assert_int_equal(store_cell_put(write, TABLE_DEVICES, DAY_KEY,
							PARTS(slice_of(column)), TEXT("v"),
							at_us + i, 0),
					 0);
		}
		if (!first)
			assert_int_equal(store_row_delete(write, TABLE_DEVICES, DAY_KEY, at_us), 0);
		assert_int_equal(write->cells, 4);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(rig_write(rig, write), 0);
			expect_columns(rig, "c ");
			expect_cell(rig, "c", "v", at_us + 1);
		}
		store_write_free(write);
	}
}

static void what_expires_goes_with_its_row(struct rig *rig)
{
	struct store_cell cell;
	rig_cell_put(rig, TABLE_DEVICES, DAY_KEY, PARTS(TEXT("a")), TEXT("v"), 5, T0 + 1000);
	rig_cell_put(rig, TABLE_DEVICES, DAY_KEY, PARTS(TEXT("b")), TEXT("v"), 5, INT64_MAX);
	rig_cell_put(rig, TABLE_DEVICES, DAY_KEY, PARTS(TEXT("c")), TEXT("v"), 6, T0 + 1000);
	drop_row(rig, 5);
	expect_columns(rig, "c ");
	rig_advance_ms(rig, 999);
	assert_true(rig_cell_get(rig, TABLE_DEVICES, DAY_KEY, PARTS(TEXT("c")), &cell));
	assert_int_equal(cell.expires_ms, T0 + 1000);
	rig_advance_ms(rig, 1);
	expect_columns(rig, "");
	/* What has expired still wins over what is late, and the row over both. */
	put(rig, "c", "late", 5);
	put(rig, "c", "late too", 6);
	expect_columns(rig, "");
	drop_row(rig, 6);
	put(rig, "c", "v", 7);
	expect_columns(rig, "c ");
	rig_settle(rig);
	rig_verify(rig);
}

/* A scan that has begun goes on with what is left. */
static void a_row_is_deleted_between_two_slices(struct rig *rig)
{
	for (int backward = 0; backward < 2; backward++) {
		for (char c = 'a'; c <= 'e'; c++) {
			const char column[] = {c, 0};
			put(rig, column, "v", backward * 100 + (c % 2 ? 10 : 20));
		}
		struct store_read *read = rig_read_new(rig);
		struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
		read->points_max = 1;
		request->cell_scan = (struct store_cell_scan){
			.table = TABLE_DEVICES, .key = *DAY_KEY, .backward = backward};
		assert_int_equal(rig_read(rig, read), 0);
		assert_true(request->more);
		assert_slice(request->cell_scan.cells[0].column.part[0],
			     backward ? TEXT("e") : TEXT("a"));
		drop_row(rig, backward * 100 + 10);
		if (backward)
			rig_settle(rig);
		char given[8] = "";
		size_t count = 0;
		while (request->more) {
			assert_int_equal(rig_read(rig, read), 0);
			for (size_t i = 0; i < request->cell_scan.count && count < 7; i++)
				given[count++] = *request->cell_scan.cells[i].column.part[0].data;
		}
		assert_string_equal(given, backward ? "db" : "bd");
		store_read_free(read);
		expect_columns(rig, "b d ");
	}
}

static void a_deletion_of_a_row_lasts(struct rig *rig)
{
	put(rig, "a", "v", 10);
	drop_row(rig, 20);
	rig_advance_ms(rig, STORE_TOMBSTONE_MS - 1000);
	rig_settle(rig);
	rig_reopen(rig);
	put(rig, "a", "late", 20);
	put(rig, "b", "late", 19);
	expect_columns(rig, "");
	put(rig, "c", "v", 21);
	for (int days = 0; days < 3; days++) {
		rig_advance_ms(rig, DAY_MS);
		rig_settle(rig);
		expect_columns(rig, "c ");
		expect_cell(rig, "c", "v", 21);
		rig_verify(rig);
	}
	drop_row(rig, 30);
	for (int days = 0; days < 3; days++) {
		rig_advance_ms(rig, DAY_MS);
		rig_settle(rig);
		expect_columns(rig, "");
		rig_verify(rig);
	}
	put(rig, "d", "v", 40);
	expect_columns(rig, "d ");
}

/* Many cells, and values of many pages. */
static void a_large_row_is_deleted_at_once(struct rig *rig)
{
	enum { COUNT = 3000 };
	struct store_write *write = rig_write_new(rig);
	for (int i = 0; i < COUNT; i++) {
		char column[16];
		snprintf(column, sizeof(column), "%05d", i);
		struct slice value = filled(rig, i % 100 ? 20 : 20000, 'v');
		assert_int_equal(store_cell_put(write, TABLE_DEVICES, DAY_KEY,
						PARTS(slice_of(column)), value, 5 + i % 2, 0),
				 0);
	}
	rig_commit(rig, write);
	drop_row(rig, 5);
	struct store_cell_scan scan = {.table = TABLE_DEVICES, .key = *DAY_KEY};
	assert_int_equal(rig_scan(rig, &scan, 0).count, COUNT / 2);
	expect_absent(rig, "00000");
	drop_row(rig, 6);
	expect_columns(rig, "");
	expect_absent(rig, "00001");
	put(rig, "00001", "v", 7);
	expect_columns(rig, "00001 ");
	rig_settle(rig);
	expect_columns(rig, "00001 ");
	assert_int_equal(rig_stats(rig).tables[TABLE_DEVICES].samples, 1);
	assert_int_equal(rig_stats(rig).blob_bytes, 0);
	rig_verify(rig);
}

static void only_rows_of_stamped_cells_are_deleted(struct rig *rig)
{
	static const struct {
		enum table table;
		struct store_parts key;
		int64_t stamp_us;
	} bad[] = {
		{TABLE_LEASES, {{TEXT("k")}}, 1},
		{TABLE_METRIC_NAMES, {{TEXT("t")}}, 1},
		{TABLE_SERIES_SETS, {{TEXT("t"), TEXT("m")}}, 1},
		{TABLE_QUEUE, {{TEXT("q"), TEXT("12345678")}}, 1},
		{TABLE_DATA_RAW, {{TEXT("t")}}, 1},
		{TABLE_COUNT, {{TEXT("t")}}, 1},
		{TABLE_DEVICES, {{TEXT("t")}}, INT64_MIN},
		{TABLE_DEVICES, {{TEXT("")}}, 1},
		{TABLE_DEVICES, {{{NULL, 0}}}, 1},
		{TABLE_REPORT_ARRIVALS, {{TEXT("s"), TEXT("1234567"), TEXT("12345678")}}, 1},
	};
	struct store_write *write = rig_write_new(rig);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
			store_row_delete(write, bad[i].table, &bad[i].key, bad[i].stamp_us),
			ERR_INVALID);
	assert_int_equal(store_row_delete(write, TABLE_DEVICES,
					  PARTS(filled(rig, STORE_KEY_MAX_BYTES + 1, 'k')), 1),
			 ERR_LIMIT);
	assert_int_equal(write->cells, 0);
	/* Of any name, as what is removed may have; and the longest. */
	struct slice longest = filled(rig, STORE_KEY_MAX_BYTES, 'k');
	rig_cell_put(rig, TABLE_DEVICES, PARTS(longest), PARTS(TEXT("a")), TEXT("v"), 1, 0);
	assert_int_equal(store_row_delete(write, TABLE_DEVICES, PARTS(TEXT("\xff")), 1), 0);
	assert_int_equal(store_row_delete(write, TABLE_DEVICES, PARTS(longest), INT64_MAX), 0);
	rig_commit(rig, write);
	assert_int_equal(rig_enumerate(rig, TABLE_DEVICES, 0, 0).count, 0);
	rig_verify(rig);
}

enum { KILLED_CELLS = 20000, KILLED_BYTES = 400 };

static void note_done(struct store_write *write, int err)
{
	ASSERT(!err);
	*(bool *)write->owner = true;
}

static void wait_for(struct store_write *write, struct task_queue *queue)
{
	bool done = false;
	write->executor = &queue->executor;
	write->done = note_done;
	write->owner = &done;
	ASSERT(!store_write_submit(write));
	while (!done)
		task_queue_wait(queue);
	store_write_free(write);
}

static void delete_a_row_and_die(struct store *store, UNUSED struct clock *clock)
{
	static char bytes[KILLED_BYTES];
	struct task_queue queue;
	task_queue_init(&queue);
	struct store_write *write = store_write_new(store, 32 << 20);
	for (int i = 0; i < KILLED_CELLS; i++) {
		char column[16];
		snprintf(column, sizeof(column), "%05d", i);
		ASSERT(!store_cell_put(write, TABLE_DEVICES, DAY_KEY, PARTS(slice_of(column)),
				       (struct slice){bytes, sizeof(bytes)}, 5, 0));
	}
	ASSERT(!store_cell_put(write, TABLE_DEVICES, DAY_KEY, PARTS(TEXT("z")), TEXT("v"), 6, 0));
	wait_for(write, &queue);
	write = store_write_new(store, 1 << 20);
	ASSERT(!store_row_delete(write, TABLE_DEVICES, DAY_KEY, 5));
	wait_for(write, &queue);
}

/* Whatever of it had been removed when the process was killed: more than a slice. */
static void a_deletion_of_a_row_survives_a_kill(struct rig *rig)
{
	rig->store = rig->engine->kill_in(rig->engine->context, rig->store, &rig->clock.clock,
					  delete_a_row_and_die);
	expect_columns(rig, "z ");
	put(rig, "00007", "late", 5);
	expect_columns(rig, "z ");
	rig_verify(rig);
	rig_settle(rig);
	expect_columns(rig, "z ");
	assert_int_equal(rig_stats(rig).tables[TABLE_DEVICES].samples, 1);
	rig_verify(rig);
}

const struct contract_case cases_rows[] = {
	CASE(a_row_goes_up_to_the_stamp),
	CASE(of_several_deletions_of_a_row_the_highest),
	CASE(a_row_is_deleted_before_it_is_there),
	CASE(a_deleted_row_is_not_enumerated),
	CASE(a_row_is_deleted_within_a_batch),
	CASE(what_expires_goes_with_its_row),
	CASE(a_row_is_deleted_between_two_slices),
	CASE(a_deletion_of_a_row_lasts),
	CASE_NEEDS(a_large_row_is_deleted_at_once, STORE_COUNTS),
	CASE(only_rows_of_stamped_cells_are_deleted),
	CASE_NEEDS(a_deletion_of_a_row_survives_a_kill, STORE_SURVIVES_KILL),
	{0},
};
