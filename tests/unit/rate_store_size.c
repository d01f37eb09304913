/* Rates of devices of many interfaces: their checkpoints, and reading some of their rows. On the
 * naive engine and on LMDB. */
#include "rate_store_harness.h"

static void put_all(struct rig *rig, size_t rows, int64_t ts_ms, uint64_t value)
{
	struct store_write *write = rig_new_write(rig);

	for (size_t i = 0; i < rows; i++)
		for (size_t c = 0; c < RIG_COLUMNS; c++)
			rig_put(rig, write, rig->handles[i][c], ts_ms, value * (i + 1));
	rig_submit(rig, write);
}

static size_t count_cells(struct rig *rig)
{
	struct store_read *read = rig_new_read(rig);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	size_t count;

	request->cell_scan = (struct store_cell_scan){
		.table = TABLE_RATE_CHECKPOINTS, .key = {{rig->table.device, rig->table.oidset}}};
	assert_int_equal(store_read_submit(read), 0);
	rig_wait(rig);
	count = request->cell_scan.count;
	for (size_t i = 0; i < count; i++)
		assert_true(request->cell_scan.cells[i].value.len < 200000);
	store_read_free(read);
	return count;
}

static size_t index_of(const struct rig *rig, const uint64_t *handles)
{
	size_t i = 0;

	while (rig->rows[i].handles != handles)
		i++;
	return i;
}

/* Bins of interface i have i + 1 times what those of the first have. */
static void assert_rows_grow(struct rig *rig, size_t rows, size_t bins)
{
	assert_int_equal(rig_read_table(rig, &rig->table, 0, NEW_YEAR, NEW_YEAR + 3600000), 0);
	for (size_t i = 0; i < rows; i += 7) {
		size_t at = index_of(rig, rig->handles[i]);
		for (size_t c = 0; c < RIG_COLUMNS; c++) {
			struct rate_series s = rate_read_series(rig->read, at, c);
			assert_int_equal(s.count, bins + 1);
			for (size_t b = 0; b < bins; b++)
				assert_int_equal(s.rows[b].val, 100 * (i + 1));
			assert_int_equal(s.rows[bins].val, 0); /* begun at its edge */
		}
	}
}

/* 600 interfaces, then 1500: runs are divided, and nobody's state is lost. */
static void check_many(bool on_lmdb)
{
	struct rig *rig = rig_new(on_lmdb, 600);
	size_t cells;

	for (uint64_t i = 0; i < 4; i++)
		put_all(rig, 600, NEW_YEAR + (int64_t)i * 30000, i * 100);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	cells = count_cells(rig);
	assert_int_equal(cells, 2); /* 257 rows of two columns, and the rest */
	assert_rows_grow(rig, 600, 3);
	rig_open_table(rig, 1500);
	for (uint64_t i = 4; i < 6; i++)
		put_all(rig, 1500, NEW_YEAR + (int64_t)i * 30000, i * 100);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	put_all(rig, 600, NEW_YEAR + 6 * 30000, 600);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_true(count_cells(rig) > cells);
	assert_rows_grow(rig, 600, 6);
	rig_free(rig);
}

static void devices_of_many_interfaces_have_several_checkpoints(void **state)
{
	(void)state;
	check_many(false);
	check_many(true);
}

/* After a restart a job may run before every interface and OID has been polled again: what it does
 * not have waits with its raw data, and nothing of it is passed over. */
static void what_a_table_lacks_for_a_while_loses_nothing(void **state)
{
	struct rig *rig = rig_new(true, 3);
	uint64_t lacking[RIG_COLUMNS] = {0, 0};
	struct rate_row all[3], rows[2];

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		put_all(rig, 3, NEW_YEAR + (int64_t)i * 30000, i * i * 100);
	assert_int_equal(rig_job_until(rig, NEW_YEAR + 60000), 0);
	memcpy(all, rig->rows, sizeof(all));
	memcpy(rows, all, sizeof(rows));
	lacking[1] = all[0].handles[1];
	rows[0].handles = lacking; /* the first OID of the first, and all of the third */
	rig->table.rows = rows;
	rig->table.row_count = 2;
	assert_int_equal(rig_job_until(rig, NEW_YEAR + 110000), 0);
	rig->table.rows = rig->rows;
	rig->table.row_count = 3;
	for (uint64_t i = 4; i < 6; i++)
		put_all(rig, 3, NEW_YEAR + (int64_t)i * 30000, i * i * 100);
	for (int job = 0; job < 2; job++) {
		assert_int_equal(rig_read_table(rig, &rig->table, 0, NEW_YEAR, NEW_YEAR + 3600000),
				 0);
		for (size_t i = 0; i < 3; i++) {
			size_t at = index_of(rig, rig->handles[i]);
			for (size_t c = 0; c < RIG_COLUMNS; c++) {
				struct rate_series s = rate_read_series(rig->read, at, c);
				assert_int_equal(s.count, 6);
				for (size_t b = 0; b < 5; b++)
					assert_int_equal(s.rows[b].val,
							 (2 * b + 1) * 100 * (i + 1));
			}
		}
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	}
	rig_free(rig);
}

/* A reader asks for one interface and one OID of it; its cell has all of them. */
static void part_of_a_table_is_read_by_itself(void **state)
{
	struct rig *rig = rig_new(true, 600);
	struct rate_row row;
	struct rate_table table;
	struct rate_series s;

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		put_all(rig, 600, NEW_YEAR + (int64_t)i * 30000, i * 100);
	assert_int_equal(rig_job_until(rig, NEW_YEAR + 80000), 0);
	row = rig->rows[index_of(rig, rig->handles[400])];
	row.handles++;
	table = rig->table;
	table.rows = &row;
	table.row_count = 1;
	table.columns++;
	table.column_count = 1;
	assert_int_equal(rig_read_table(rig, &table, 0, 0, NEW_YEAR * 2), 0);
	s = rate_read_series(rig->read, 0, 0);
	assert_int_equal(s.count, 4);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(s.rows[i].val, 40100);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_of_many_interfaces_have_several_checkpoints),
		cmocka_unit_test(what_a_table_lacks_for_a_while_loses_nothing),
		cmocka_unit_test(part_of_a_table_is_read_by_itself),
	};
	return cmocka_run_group_tests_name("rate_store_size", tests, NULL, NULL);
}
