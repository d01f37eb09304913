/* Rates in a store, of worked examples: whatever the jobs are cut into, what is read is what one
 * pass over all samples gives. On the naive engine and on LMDB. */
#include "rate_store_harness.h"

static void check_alu(bool on_lmdb)
{
	struct rig *rig = rig_new(on_lmdb, 1);

	feed_alu(rig);
	assert_alu(rig); /* before any job: all of it is open */
	assert_int_equal(rig_job_until(rig, alu_polls[50].s * 1000), 0);
	assert_alu(rig);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_alu(rig);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0); /* nothing to do */
	assert_int_equal(rate_job_result(rig->job).rows, 0);
	rig_reopen(rig);
	assert_alu(rig);
	rig_free(rig);
}

static void a_routers_hours_are_read_before_between_and_after_jobs(void **state)
{
	(void)state;
	check_alu(false);
	check_alu(true);
}

/* 30 s before and 30 s after midnight: 300 and 600. The document's row ends there; a range does not
 * name it. */
static void check_new_year(bool on_lmdb)
{
	struct rig *rig = rig_new(on_lmdb, 1);
	struct store_write *write = rig_new_write(rig);
	struct rate_series s;

	rig_put(rig, write, rig->handles[0][0], NEW_YEAR - 30000, 0);
	rig_put(rig, write, rig->handles[0][0], NEW_YEAR, 300);
	rig_put(rig, write, rig->handles[0][0], NEW_YEAR + 30000, 900);
	rig_put(rig, write, rig->handles[0][0], NEW_YEAR + 60000, 900);
	rig_submit(rig, write);
	for (int job = 0; job < 2; job++) {
		assert_int_equal(
			rig_read_table(rig, &rig->table, 0, NEW_YEAR - 30000, NEW_YEAR + 30000), 0);
		s = rate_read_series(rig->read, 0, 0);
		assert_int_equal(s.count, 2);
		assert_int_equal(s.rows[0].val, 300);
		assert_int_equal(s.rows[1].val, 600);
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	}
	rig_free(rig);
}

static void ranges_go_over_new_year(void **state)
{
	(void)state;
	check_new_year(false);
	check_new_year(true);
}

/* ---- Speeds that change ---------------------------------------------------------------------- */

/* 3e9 octets in 30 s, three times: the counter of 32 bits passes its largest value twice. Then the
 * agent begins again, and from then on says that the line has 10 Mbit/s: more than 46,875,000 in 30
 * s no such line carries. */
static const struct line_poll {
	uint64_t hc, octets;
	uint32_t ticks, speed_mbit;
} line_polls[] = {
	{10000000000, 0, 100000, 10000},          {13000000000, 3000000000, 103000, 10000},
	{16000000000, 1705032704, 106000, 10000}, /* 6e9 - 2^32 */
	{19000000000, 410065408, 109000, 10000},  /* 9e9 - 2 * 2^32 */
	{2000000000, 1000000000, 2000, 10},       {2000001000, 1000001000, 5000, 10},
	{2000002000, 1000002000, 8000, 10},       {2000003000, 1000003000, 11000, 10},
};

/* A delta that ends on an edge touches the bin that begins there, too. */
static const struct {
	uint64_t val;
	uint8_t flags;
} line_bins[RIG_COLUMNS][ARRAY_LEN(line_polls) - 1] = {
	{{3000000000, 0},
	 {3000000000, 0},
	 {3000000000, 0},
	 {2000000000, COUNTER_RESET},
	 {1000, COUNTER_RESET},
	 {1000, 0},
	 {1000, 0}},
	/* What is higher than before counts as what it rose by. */
	{{3000000000, 0},
	 {3000000000, COUNTER_WRAP},
	 {3000000000, COUNTER_WRAP},
	 {589934592, COUNTER_WRAP | COUNTER_RESET},
	 {1000, COUNTER_RESET},
	 {1000, 0},
	 {1000, 0}},
};

static void put_line_polls(struct rig *rig, size_t from, size_t to)
{
	struct store_write *write = rig_new_write(rig);
	const struct rate_row *row = &rig->rows[0];

	for (size_t i = from; i < to; i++) {
		int64_t ts_ms = NEW_YEAR + (int64_t)i * 30000;
		rig_put(rig, write, rig->table.uptime, ts_ms, line_polls[i].ticks);
		rig_put(rig, write, row->handles[0], ts_ms, line_polls[i].hc);
		rig_put(rig, write, row->handles[1], ts_ms, line_polls[i].octets);
		rig_put(rig, write, row->speed, ts_ms, line_polls[i].speed_mbit);
	}
	rig_submit(rig, write);
}

/* Of so many polls: those on an edge open a bin with nothing in it. */
static void assert_line(struct rig *rig, size_t polls)
{
	assert_int_equal(rig_read_table(rig, &rig->table, 0, NEW_YEAR, NEW_YEAR + 3600000), 0);
	for (size_t c = 0; c < RIG_COLUMNS; c++) {
		struct rate_series s = rate_read_series(rig->read, 0, c);
		assert_int_equal(s.count, polls);
		for (size_t i = 0; i + 1 < polls; i++) {
			assert_int_equal(s.rows[i].val, line_bins[c][i].val);
			assert_int_equal(s.rows[i].flags, line_bins[c][i].flags);
		}
	}
}

/* Wherever the jobs are cut, and however much of it was read before: what the line's speed became
 * later says nothing of what was counted before. */
static void a_speed_that_changes_judges_nothing_before_it(void **state)
{
	size_t all = ARRAY_LEN(line_polls);

	(void)state;
	for (size_t cut = 2; cut < all; cut++) {
		struct rig *rig = rig_new(true, 1);
		struct rate_recompute_result r;
		put_line_polls(rig, 0, cut);
		assert_line(rig, cut); /* before any job: all of it is open */
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
		rig_reopen(rig);
		assert_line(rig, cut);
		put_line_polls(rig, cut, all);
		assert_line(rig, all);
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
		assert_line(rig, all);
		for (int64_t from = 0; from < 5; from++) {
			r = rig_recompute(rig, NEW_YEAR + from * 30000, NEW_YEAR + 150000, true);
			assert_int_equal(r.compared, 2 * (5 - from));
			assert_int_equal(r.differed + r.missing + r.extra, 0);
		}
		rig_free(rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_routers_hours_are_read_before_between_and_after_jobs),
		cmocka_unit_test(ranges_go_over_new_year),
		cmocka_unit_test(a_speed_that_changes_judges_nothing_before_it),
	};
	return cmocka_run_group_tests_name("rate_store_examples", tests, NULL, NULL);
}
