/* Rates in a store where a checkpoint is damaged, raw data has expired or the configuration was
 * another. */
#include "rate_store_harness.h"

#include "base/stats.h"

#define DAY INT64_C(86400000)

static void a_damaged_checkpoint_makes_its_run_begin_again(void **state)
{
	struct rig *rig = rig_new(true, 1);
	int64_t damaged = stat_get(STAT_rate_checkpoints_damaged);
	struct buf old;
	struct slice bytes;
	size_t cut = 0;

	(void)state;
	buf_init(&old, 1 << 20);
	feed_alu(rig);
	do {
		assert_int_equal(rig_job_until(rig, alu_polls[50].s * 1000), 0);
		bytes = read_cell(rig, &old);
		write_cell(rig, (struct slice){bytes.data, cut});
		/* Readers do not wait for the job. */
		assert_alu(rig);
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
		assert_alu(rig);
		assert_int_equal(stat_get(STAT_rate_checkpoints_damaged), ++damaged);
	} while ((cut += 7) < bytes.len);
	/* A later program's is not ours to throw away. */
	bytes = read_cell(rig, &old);
	old.data[0]++;
	write_cell(rig, bytes);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), ERR_VERSION);
	buf_release(&old);
	rig_free(rig);
}

static void assert_bins_and_first_hour(struct rig *rig)
{
	struct rate_series s;
	uint64_t sum = 0;

	assert_int_equal(rig_read_table(rig, &rig->table, 0, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	for (size_t i = 0; i < s.count; i++)
		sum += s.rows[i].val;
	assert_int_equal(sum, 8656);
	assert_int_equal(rig_read_table(rig, &rig->table, 1, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	assert_int_equal(s.rows[0].val, 8656);
	assert_int_equal(s.rows[0].count, 117);
	assert_true(s.rows[0].max == 736 * 1000.0 / 31000);
}

/* Raw data is gone up to a point in an hour that is closed: the bins and the hour that were made of
 * it stay as they were. (The day is still open, and was in the checkpoint only.) */
static void beginning_again_keeps_what_came_from_expired_raw_data(void **state)
{
	int64_t last_ms = alu_polls[ARRAY_LEN(alu_polls) - 1].s * 1000;
	struct rig *rig = rig_new(true, 1);
	struct store_write *write;

	(void)state;
	feed_alu(rig);
	write = rig_new_write(rig);
	for (int64_t i = 1; i <= 3; i++)
		rig_put(rig, write, rig->handles[0][0], last_ms + i * 30000, 11739801);
	rig_submit(rig, write);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_bins_and_first_hour(rig);
	write = rig_new_write(rig);
	assert_int_equal(store_delete_range(write,
					    &(struct store_target){.table = TABLE_RAW_DATA,
								   .period_ms = 30000},
					    rig->handles[0], 1, 0, alu_polls[30].s * 1000),
			 0);
	rig_submit(rig, write);
	write_cell(rig, SLICE("\2 nothing that a checkpoint could be"));
	assert_bins_and_first_hour(rig);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_bins_and_first_hour(rig);
	rig_free(rig);
}

/* Raw data is gone up to a point: what was computed from it stays, also the hour in which it ends.
 */
static void what_came_from_expired_raw_data_is_not_touched(void **state)
{
	struct rig *rig = rig_new(true, 1);
	struct store_write *write;
	struct rate_recompute_result r;

	(void)state;
	feed_alu(rig);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	write = rig_new_write(rig);
	assert_int_equal(store_delete_range(write,
					    &(struct store_target){.table = TABLE_RAW_DATA,
								   .period_ms = 30000},
					    rig->handles[0], 1, 0, alu_polls[30].s * 1000),
			 0);
	rig_submit(rig, write);
	r = rig_recompute(rig, 0, NEW_YEAR, false);
	assert_int_equal(r.differed + r.missing + r.extra, 0);
	assert_true(r.compared > 50 && r.compared < 100);
	assert_alu(rig);
	rig_free(rig);
}

static void assert_bin(struct rig *rig, size_t row, int64_t start_ms, uint64_t val)
{
	struct rate_series s;

	assert_int_equal(rig_read_table(rig, &rig->table, 0, start_ms, start_ms + 30000), 0);
	s = rate_read_series(rig->read, row, 0);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.rows[0].start_ms, start_ms);
	assert_int_equal(s.rows[0].val, val);
}

/* Of so many polls every 30 s, at the edges of bins, each of which counted `step`. */
static void put_polls(struct rig *rig, size_t row, int64_t first, int64_t count, uint64_t step)
{
	struct store_write *write = rig_new_write(rig);

	for (int64_t i = first; i < first + count; i++)
		rig_put(rig, write, rig->rows[row].handles[0], NEW_YEAR + i * 30000,
			(uint64_t)i * step);
	rig_submit(rig, write);
}

/* The history of one interface comes in pieces, while the other is polled and jobs go on. */
static void late_samples_of_one_counter_have_rates_beside_live_ones(void **state)
{
	(void)state;
	for (int on_lmdb = 0; on_lmdb < 2; on_lmdb++) {
		struct rig *rig = rig_new(on_lmdb, 2);
		put_polls(rig, 0, 0, 1000, 3);
		for (int64_t piece = 0; piece < 4; piece++) {
			put_polls(rig, 1, piece * 100, piece == 0 ? 1 : 100, 7);
			assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
			put_polls(rig, 1, piece * 100 + 1, 99, 7);
			put_polls(rig, 0, 1000 + piece, 1, 3);
			assert_bin(rig, 1, NEW_YEAR + (piece * 100 + 50) * 30000, 7);
			if (piece == 2)
				rig_reopen(rig);
			assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
			assert_bin(rig, 1, NEW_YEAR + (piece * 100 + 50) * 30000, 7);
		}
		/* A worker that took over knows of the history only. */
		put_polls(rig, 1, 400, 50, 7);
		assert_int_equal(rig_job_until(rig, NEW_YEAR + 449 * 30000), 0);
		for (int64_t i = 0; i < 449; i++)
			assert_bin(rig, 1, NEW_YEAR + i * 30000, 7);
		assert_int_equal(rig_recompute(rig, NEW_YEAR, NEW_YEAR + DAY, true).missing, 0);
		assert_bin(rig, 0, NEW_YEAR + 700 * 30000, 3);
		rig_free(rig);
	}
}

/* Its OID is out of the OIDSet for a time, and the raw data of what is closed expires. */
static void a_counter_left_out_for_a_time_keeps_what_came_from_expired_raw_data(void **state)
{
	struct rig *rig = rig_new(true, 1);
	struct store_write *write;
	struct rate_series s;

	(void)state;
	put_polls(rig, 0, 0, 200, 9);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	rig->table.columns = &rig_columns[1];
	rig->table.column_count = 1;
	rig->rows[0].handles = &rig->handles[0][1];
	write = rig_new_write(rig);
	for (int64_t i = 200; i < 210; i++)
		rig_put(rig, write, rig->handles[0][1], NEW_YEAR + i * 30000, 1);
	assert_int_equal(store_delete_range(write,
					    &(struct store_target){.table = TABLE_RAW_DATA,
								   .period_ms = 30000},
					    rig->handles[0], 1, 0, NEW_YEAR + 60 * 30000),
			 0);
	rig_submit(rig, write);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	rig->table.columns = rig_columns;
	rig->table.column_count = RIG_COLUMNS;
	rig->rows[0].handles = rig->handles[0];
	put_polls(rig, 0, 210, 100, 9);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_int_equal(rig_read_table(rig, &rig->table, 1, NEW_YEAR, NEW_YEAR + DAY), 0);
	s = rate_read_series(rig->read, 0, 0);
	/* 120 polls an hour. */
	assert_int_equal(s.rows[0].start_ms, NEW_YEAR);
	assert_int_equal(s.rows[0].val, 120 * 9);
	/* Ten polls of it are missing. */
	assert_int_equal(s.rows[1].val + s.rows[1].unplaced, 120 * 9);
	assert_bin(rig, 0, NEW_YEAR + 10 * 30000, 9);
	assert_bin(rig, 0, NEW_YEAR + 60 * 30000, 9);
	rig_free(rig);
}

/* A new aggregate begins when it is asked for; those that stay go on. */
static void aggregates_may_change(void **state)
{
	struct rig *rig = rig_new(true, 1);
	struct rate_series s;
	uint64_t sum = 0;

	(void)state;
	feed_alu(rig);
	assert_int_equal(rig_job_until(rig, alu_polls[50].s * 1000), 0);
	rig->table.config = (struct counter_config){30000, 2, {86400000, 300000}};
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_int_equal(rig_read_table(rig, &rig->table, 1, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.rows[0].val, 8656);
	assert_int_equal(s.rows[0].count, 117);
	assert_int_equal(rig_read_table(rig, &rig->table, 2, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	for (size_t i = 0; i < s.count; i++) {
		assert_int_equal(s.rows[i].start_ms % 300000, 0);
		sum += s.rows[i].val;
	}
	assert_true(s.count >= 6 && sum > 0 && sum < 8656);
	rig_free(rig);
}

static void tables_have_bounds(void **state)
{
	struct rig *rig = rig_new(false, 2);
	struct rate_row swapped[2];

	(void)state;
	rig->table.row_count = 0;
	assert_int_equal(rig_job_until(rig, 0), ERR_INVALID);
	rig->table.row_count = 2;
	rig->table.column_count = RATE_COLUMNS_MAX + 1;
	assert_int_equal(rig_job_until(rig, 0), ERR_LIMIT);
	rig->table.column_count = RIG_COLUMNS;
	swapped[0] = rig->rows[1];
	swapped[1] = rig->rows[0];
	rig->table.rows = swapped;
	assert_int_equal(rig_job_until(rig, 0), ERR_INVALID);
	swapped[0] = swapped[1];
	assert_int_equal(rig_job_until(rig, 0), ERR_INVALID);
	rig->table.rows = rig->rows;
	assert_int_equal(rig_read_table(rig, &rig->table, 3, 0, 1), ERR_INVALID);
	assert_int_equal(rig_read_table(rig, &rig->table, 0, 1, 0), ERR_INVALID);
	rig_free(rig);
}

/* Notes the stamp that a store has when it is first read, and those of what is written. */
static struct {
	const struct store_engine *of;
	bool was_read;
	int64_t read_us, highest_us;
	size_t writes;
} stamps;

static int note_read(struct store_read *read)
{
	/* A millisecond passes: there are fewer windows than that. */
	for (int i = 0; i < 1000 && !stamps.was_read; i++)
		stamps.read_us = store_stamp(read->store);
	stamps.was_read = true;
	return stamps.of->read_submit(read);
}

static int note_write(struct store_write *write)
{
	stamps.writes++;
	if (write->stamp_us > stamps.highest_us)
		stamps.highest_us = write->stamp_us;
	return stamps.of->write_submit(write);
}

static int64_t checkpoint_stamp_us(struct rig *rig)
{
	struct store_read *read = rig_new_read(rig);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	request->cell_scan = (struct store_cell_scan){
		.table = TABLE_RATE_CHECKPOINTS, .key = {{rig->table.device, rig->table.oidset}}};
	assert_int_equal(store_read_submit(read), 0);
	rig_wait(rig);
	assert_int_equal(request->cell_scan.count, 1);
	int64_t stamp_us = request->cell_scan.cells[0].stamp_us;
	store_read_free(read);
	return stamp_us;
}

/* Whoever reads the same raw data later and writes sooner is not overwritten. */
static void what_is_derived_is_stamped_before_its_inputs_are_read(void **state)
{
	struct rig *rig = rig_new(false, 1);
	struct store_engine noting = *rig->store->engine;
	(void)state;
	feed_alu(rig);
	noting.read_submit = note_read;
	noting.write_submit = note_write;
	stamps.of = rig->store->engine;
	rig->store->engine = &noting;
	assert_int_equal(rig_job_until(rig, NEW_YEAR), 0);
	rig->store->engine = stamps.of;
	assert_true(stamps.writes > 0 && stamps.highest_us > 0);
	assert_true(stamps.highest_us < stamps.read_us);
	assert_true(checkpoint_stamp_us(rig) < stamps.read_us);
	assert_alu(rig);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_damaged_checkpoint_makes_its_run_begin_again),
		cmocka_unit_test(beginning_again_keeps_what_came_from_expired_raw_data),
		cmocka_unit_test(what_came_from_expired_raw_data_is_not_touched),
		cmocka_unit_test(late_samples_of_one_counter_have_rates_beside_live_ones),
		cmocka_unit_test(
			a_counter_left_out_for_a_time_keeps_what_came_from_expired_raw_data),
		cmocka_unit_test(aggregates_may_change),
		cmocka_unit_test(tables_have_bounds),
		cmocka_unit_test(what_is_derived_is_stamped_before_its_inputs_are_read),
	};
	return cmocka_run_group_tests_name("rate_store_changes", tests, NULL, NULL);
}
