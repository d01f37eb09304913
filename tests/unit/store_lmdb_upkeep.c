/* What the writer does when nobody writes: sealing, settling, expiry and their retries go on by the
 * clock alone, for all groups, and what a slice could not finish or do is done by another.
 *
 * The clock is virtual. That upkeep has happened is seen in the store's own count of what it holds;
 * the writer looks at the clock every 100 ms, and no event tells of it. */
#include <unistd.h>

#include "base/fault.h"
#include "base/stats.h"
#include "contract.h"
#include "lmdb_dir.h"
#include "store/lmdb/lmdb.h"

enum {
	TRIES_MAX = 30000, /* of 1 ms each; only a failure takes them all */
	HEAD_ROWS = 2048,  /* of one column: so many are sealed at once, doc/format-store.md */
};

/* Each look at it takes 2 ms, so that a slice of upkeep is over after a few. */
struct ticking_clock {
	struct clock clock;
	struct clock_virtual *base;
	bool ticks;
};

static struct {
	struct lmdb_dir dir;
	struct lmdb_options options;
	struct ticking_clock clock;
} lmdb;

static int64_t ticking_wall_us(UNUSED struct clock *clock)
{
	return lmdb.clock.base->clock.wall_us(&lmdb.clock.base->clock);
}

static int64_t ticking_mono_us(UNUSED struct clock *clock)
{
	if (lmdb.clock.ticks)
		lmdb.clock.base->mono_us += 2000;
	return lmdb.clock.base->mono_us;
}

static struct store *open_again(void)
{
	struct errbuf e = {""};
	struct store *store = NULL;
	int err = lmdb_open(&lmdb.options, &store, &e);
	if (err)
		fail_msg("%s", e.text);
	return store;
}

static struct store *open_new(UNUSED void *context, struct clock *clock)
{
	lmdb_dir_make(&lmdb.dir);
	lmdb.clock.base = CONTAINER_OF(clock, struct clock_virtual, clock);
	lmdb.options.path = lmdb.dir.path;
	return open_again();
}

static struct store *reopen(UNUSED void *context, struct store *store, UNUSED struct clock *clock)
{
	store_close(store);
	return open_again();
}

static void close_and_remove(UNUSED void *context, struct store *store)
{
	store_close(store);
	lmdb_dir_remove(&lmdb.dir);
}

static const struct contract_engine engine = {
	.name = "upkeep", .open = open_new, .reopen = reopen, .close = close_and_remove};

static int set_up(void **state)
{
	struct rig *rig = mem_zalloc(sizeof(*rig));
	lmdb.clock = (struct ticking_clock){{ticking_wall_us, ticking_mono_us}, NULL, false};
	lmdb.options = (struct lmdb_options){
		.map_bytes = UINT64_C(1) << 30, .not_durable = true, .clock = &lmdb.clock.clock};
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;
	fault_disarm_all();
	rig_close(rig);
	mem_free(rig);
	return 0;
}

/* ---- Looking --------------------------------------------------------------------------------- */

struct held {
	uint64_t in_heads, sealed, extents;
};

static struct held held(struct rig *rig)
{
	struct store_stats stats = rig_stats(rig);
	const struct store_table_stats *raw = &stats.tables[TABLE_DATA_RAW];
	return (struct held){raw->head_samples, raw->samples, raw->extents};
}

static bool is_held(struct rig *rig, struct held wanted)
{
	struct held now = held(rig);
	return now.in_heads == wanted.in_heads && now.sealed == wanted.sealed &&
	       now.extents == wanted.extents;
}

static void wait_until_held(struct rig *rig, struct held wanted)
{
	for (int i = 0; i < TRIES_MAX; i++) {
		if (is_held(rig, wanted))
			return;
		usleep(1000);
	}
	struct held now = held(rig);
	fail_msg("%d in heads, %d sealed in %d extents; expected %d, %d, %d", (int)now.in_heads,
		 (int)now.sealed, (int)now.extents, (int)wanted.in_heads, (int)wanted.sealed,
		 (int)wanted.extents);
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* Sample i of a second each is i, from .. to. */
static struct store_write *fill(struct rig *rig, bool in_runs, uint64_t handle,
				enum retention_class retention, int64_t start_ms, int from, int to)
{
	struct store_write *write = rig_write_new(rig);
	write->in_runs = in_runs;
	for (int i = from; i < to; i++) {
		struct value value = value_f64(i);
		assert_int_equal(store_append(write,
					      &(struct store_target){TABLE_DATA_RAW, retention},
					      start_ms + 1000 * i, &handle, 1, &value),
				 0);
	}
	return write;
}

static void put_as(struct rig *rig, bool in_runs, uint64_t handle, enum retention_class retention,
		   int64_t start_ms, int from, int to)
{
	rig_commit(rig, fill(rig, in_runs, handle, retention, start_ms, from, to));
}

static void put(struct rig *rig, uint64_t handle, enum retention_class retention, int64_t start_ms,
		int from, int to)
{
	put_as(rig, false, handle, retention, start_ms, from, to);
}

static void expect(struct rig *rig, uint64_t handle, int64_t start_ms, int count)
{
	struct points expected = {mem_zalloc((size_t)count * sizeof(struct point)), (size_t)count};
	for (int i = 0; i < count; i++)
		expected.list[i] = (struct point){start_ms + 1000 * i, {value_f64(i)}};
	expect_points(rig, RAW, handle, start_ms, start_ms + DAY_MS, expected);
	mem_free(expected.list);
}

/* The beginning of a day, `days` from that of T0. */
static int64_t day(int days)
{
	return T0 / DAY_MS * DAY_MS + (int64_t)days * DAY_MS;
}

/* ---- Without traffic ------------------------------------------------------------------------- */

static void quiet_heads_of_closed_segments_are_sealed(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t handle = rig_series(rig, "m", "");
	put(rig, handle, RETENTION_EVER, day(-2), 0, 10);
	put(rig, handle, RETENTION_EVER, day(0), 0, 10);
	rig_advance_ms(rig, 61 * SECOND_MS);
	/* That of the day before yesterday alone. */
	wait_until_held(rig, (struct held){10, 10, 1});
	expect(rig, handle, day(-2), 10);
	expect(rig, handle, day(0), 10);
}

static void an_old_journal_is_sealed(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t handle = rig_series(rig, "m", "");
	put(rig, handle, RETENTION_EVER, day(0), 0, 10);
	rig_advance_ms(rig, 2 * HOUR_MS + SECOND_MS);
	wait_until_held(rig, (struct held){0, 10, 1});
	expect(rig, handle, day(0), 10);
	for (int i = 0; rig_stats(rig).journal_records && i < TRIES_MAX; i++) {
		rig_advance_ms(rig, SECOND_MS);
		usleep(1000);
	}
	assert_int_equal(rig_stats(rig).journal_records, 0);
}

static void groups_of_several_flushes_are_settled(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t handle = rig_series(rig, "m", "");
	put(rig, handle, RETENTION_EVER, day(-2), 0, 10);
	rig_advance_ms(rig, 61 * SECOND_MS);
	wait_until_held(rig, (struct held){0, 10, 1});
	put(rig, handle, RETENTION_EVER, day(-2), 10, 20);
	rig_advance_ms(rig, 61 * SECOND_MS);
	wait_until_held(rig, (struct held){0, 20, 2});
	rig_advance_ms(rig, 61 * SECOND_MS);
	wait_until_held(rig, (struct held){0, 20, 1});
	expect(rig, handle, day(-2), 20);
}

static void expect_unsettled(struct rig *rig, bool inspect, uint64_t groups)
{
	lmdb.options.inspect = inspect;
	rig_reopen(rig);
	assert_int_equal(rig_stats(rig).unsettled_groups, groups);
}

/* Also of a store at which one only looks, where no upkeep runs. */
static void what_waits_to_be_settled_is_counted(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t one = rig_series(rig, "m", ""), other = rig_series(rig, "n", "a=b");
	assert_int_equal(rig_stats(rig).unsettled_groups, 0);
	put(rig, one, RETENTION_EVER, day(0), 0, HEAD_ROWS);
	put(rig, one, RETENTION_EVER, day(1), 0, HEAD_ROWS);
	put(rig, other, RETENTION_EVER, day(1), 0, HEAD_ROWS - 1);
	wait_until_held(rig, (struct held){HEAD_ROWS - 1, 2 * HEAD_ROWS, 2});
	assert_int_equal(rig_stats(rig).unsettled_groups, 2);
	expect_unsettled(rig, true, 2);
	expect_unsettled(rig, false, 2);
	assert_int_equal(lmdb_settle(rig->store), 0);
	assert_int_equal(rig_stats(rig).unsettled_groups, 0);
	expect_unsettled(rig, true, 0);
}

static void what_expires_goes(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t handle = rig_series(rig, "m", "");
	put(rig, handle, RETENTION_7_DAYS, day(-2), 0, 10); /* will be sealed */
	put(rig, handle, RETENTION_EVER, day(-2), 10, 20);
	rig_advance_ms(rig, 61 * SECOND_MS);
	wait_until_held(rig, (struct held){0, 20, 2});
	put(rig, handle, RETENTION_7_DAYS, day(0), 0, 10); /* stay in memory */
	assert_true(is_held(rig, (struct held){10, 20, 2}));
	/* The class lives 7 days, and a query deadline longer; both its days are over then. */
	rig_advance_ms(rig, 9 * DAY_MS);
	wait_until_held(rig, (struct held){0, 10, 1});
	for (int i = 0; i < 10; i++)
		assert_true(rig_last_before(rig, RAW, handle, day(-2) + 1000 * (11 + i), 0,
					    &(struct point){0}));
}

/* ---- More than a slice ----------------------------------------------------------------------- */

/* 300 days with two flushes each, every second day in the past. A slice is over after a few groups
 * or 64 empty places of the set, and the groups that are not due stay in its way. */
static void the_walk_comes_to_every_group(void **state)
{
	enum { DAYS = 150 };
	struct rig *rig = *state;
	lmdb.options.journal_max_age_ms = 1000;
	lmdb.options.settle_delay_ms = 1000 * (int64_t)HOUR_MS;
	rig_open(rig, &engine);
	uint64_t handle = rig_series(rig, "m", "");
	for (int flush = 0; flush < 2; flush++) {
		for (int i = 2; i < 2 + DAYS; i++) {
			put(rig, handle, RETENTION_EVER, day(-i), flush, flush + 1);
			put(rig, handle, RETENTION_EVER, day(i), flush, flush + 1);
		}
		rig_advance_ms(rig, 2 * SECOND_MS);
		wait_until_held(
			rig, (struct held){0, 2u * DAYS * (flush + 1u), 2u * DAYS * (flush + 1u)});
	}
	lmdb.clock.ticks = true;
	lmdb.clock.base->mono_us += lmdb.options.settle_delay_ms * 1000 + 1;
	wait_until_held(rig, (struct held){0, 4 * DAYS, DAYS + 2 * DAYS});
	for (int i = 2; i < 2 + DAYS; i++) {
		expect(rig, handle, day(-i), 2);
		expect(rig, handle, day(i), 2);
	}
}

/* ---- What fails ------------------------------------------------------------------------------ */

/* A full head is asked to be sealed only once, by the row that fills it. */
static void fill_a_head(struct rig *rig, const char *point, unsigned pass)
{
	uint64_t handle = rig_series(rig, "m", "");
	put(rig, handle, RETENTION_EVER, day(0), 0, HEAD_ROWS - 1);
	fault_arm(point, FAULT_ERROR, pass, 3);
	put(rig, handle, RETENTION_EVER, day(0), HEAD_ROWS - 1, HEAD_ROWS);
	wait_until_held(rig, (struct held){0, HEAD_ROWS, 1});
	expect(rig, handle, day(0), HEAD_ROWS);
	assert_true(rig_verify(rig) > 0);
}

/* The first commit is that of the row. */
static void a_seal_whose_commit_failed_is_done_again(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	fill_a_head(rig, "store.commit", 2);
}

static void a_seal_that_failed_itself_is_done_again(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	fill_a_head(rig, "store.seal", 1);
}

/* ---- Replay ---------------------------------------------------------------------------------- */

/* Many series of one sample each come back from the journal, each with its own value; series number
 * i has value i. GRANARY_LONG=1 takes a million, and the log says how long that took. */
static void a_journal_of_many_series_of_one_sample(void **state)
{
	enum { OPENED_AT_ONCE = 1000 };
	struct rig *rig = *state;
	const char *is_long = getenv("GRANARY_LONG");
	size_t count = is_long && *is_long && *is_long != '0' ? 1000000 : 50000;
	uint64_t *handles = mem_alloc_array(count, sizeof(*handles));
	struct slice metric = SLICE("m");
	rig_open(rig, &engine);
	for (size_t at = 0; at < count; at += OPENED_AT_ONCE) {
		struct store_read *read = rig_read_new(rig);
		struct store_write *write = rig_write_new(rig);
		struct tag tags[OPENED_AT_ONCE];
		char names[OPENED_AT_ONCE][16];
		struct store_request *requests[OPENED_AT_ONCE];
		for (size_t i = 0; i < OPENED_AT_ONCE; i++) {
			snprintf(names[i], sizeof(names[i]), "%zu", at + i);
			tags[i] = (struct tag){SLICE("id"), slice_of(names[i])};
			requests[i] = store_read_add(read, STORE_SERIES_OPEN);
			requests[i]->series_open =
				(struct store_series_open){.tenant = SLICE("t"),
							   .metrics = &metric,
							   .count = 1,
							   .tags = {&tags[i], 1}};
		}
		assert_int_equal(rig_read(rig, read), 0);
		for (size_t i = 0; i < OPENED_AT_ONCE; i++) {
			struct value value = value_u64(at + i);
			handles[at + i] = requests[i]->series_open.handles[0];
			assert_int_equal(
				store_append(write,
					     &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
					     T0, &handles[at + i], 1, &value),
				0);
		}
		rig_commit(rig, write);
		store_read_free(read);
	}
	assert_true(is_held(rig, (struct held){count, 0, 0}));
	int64_t replayed = stat_get(STAT_store_replayed_samples);
	rig_reopen(rig);
	assert_int_equal(stat_get(STAT_store_replayed_samples) - replayed, count);
	assert_true(is_held(rig, (struct held){count, 0, 0}));
	for (size_t i = 0; i < count; i += 997)
		expect_all(rig, RAW, handles[i], POINTS({T0, {value_u64(i)}}));
	mem_free(handles);
}

/* As those of devices do that are polled together: they do not become full together. */
static void heads_that_began_together_are_sealed_one_after_the_other(void **state)
{
	enum { SERIES = 400, ROWS = 60 };
	struct rig *rig = *state;
	uint64_t handles[SERIES], before = 0, most = 0;
	lmdb.options.journal_max_bytes = 200 << 10; /* about twenty rows of each */
	rig_open(rig, &engine);
	for (int i = 0; i < SERIES; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "i=%d", i * 64); /* far from each other */
		handles[i] = rig_series(rig, "m", tags);
	}
	for (int64_t row = 0; row < ROWS; row++) {
		struct store_write *write = rig_write_new(rig);
		for (int i = 0; i < SERIES; i++) {
			struct value value = value_u64(UINT64_MAX - (uint64_t)row);
			assert_int_equal(
				store_append(write,
					     &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
					     T0 + 1000 * row, &handles[i], 1, &value),
				0);
		}
		rig_commit(rig, write);
		uint64_t now = held(rig).in_heads;
		assert_true(now + SERIES * 4 > before);
		most = now > most ? now : most;
		before = now;
	}
	assert_true(most > 5 * SERIES && before < ROWS / 2 * SERIES);
	lmdb.options.journal_max_bytes = 0;
}

/* With what the head of their group held; and nothing of it comes again. */
static void rows_in_runs_are_sealed_at_once(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t h = rig_series(rig, "m", "host=a"), other = rig_series(rig, "m", "host=b");
	put_as(rig, true, h, RETENTION_EVER, T0, 0, 10);
	assert_true(is_held(rig, (struct held){0, 10, 1}));
	put(rig, h, RETENTION_EVER, T0, 10, 12);
	put(rig, other, RETENTION_EVER, T0, 0, 3);
	assert_true(is_held(rig, (struct held){5, 10, 1}));
	put_as(rig, true, h, RETENTION_EVER, T0, 12, 16);
	assert_true(is_held(rig, (struct held){0, 19, 2}));
	/* Too few to be runs. */
	put_as(rig, true, h, RETENTION_EVER, T0, 16, 19);
	assert_true(is_held(rig, (struct held){3, 19, 2}));
	for (int pass = 0; pass < 2; pass++) {
		expect(rig, h, T0, 19);
		expect(rig, other, T0, 3);
		rig_reopen(rig);
		assert_true(is_held(rig, (struct held){3, 19, 2}));
	}
}

/* As fill, by column. */
static struct store_write *fill_columns(struct rig *rig, uint64_t handle, int from, int to)
{
	struct store_write *write = rig_write_new(rig);
	int64_t ts_ms[100];
	uint64_t bits[100];
	size_t count = (size_t)(to - from);
	write->in_runs = true;
	for (size_t i = 0; i < count; i++) {
		ts_ms[i] = T0 + 1000 * (from + (int64_t)i);
		bits[i] = value_f64(from + (double)i).bits;
	}
	struct store_columns columns = {ts_ms, count, 1, &handle, 1, VALUE_F64, bits};
	assert_int_equal(
		store_append_columns(write, &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
				     &columns),
		0);
	return write;
}

/* Too few become rows of the journal, and are there after a restart. */
static void columns_are_sealed_at_once(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t h = rig_series(rig, "m", "host=a");
	rig_commit(rig, fill_columns(rig, h, 0, 10));
	assert_true(is_held(rig, (struct held){0, 10, 1}));
	rig_commit(rig, fill_columns(rig, h, 10, 13));
	assert_true(is_held(rig, (struct held){3, 10, 1}));
	rig_commit(rig, fill_columns(rig, h, 13, 20));
	assert_true(is_held(rig, (struct held){0, 20, 2}));
	rig_commit(rig, fill_columns(rig, h, 20, 22));
	for (int pass = 0; pass < 2; pass++) {
		expect(rig, h, T0, 22);
		rig_reopen(rig);
		assert_true(is_held(rig, (struct held){2, 20, 2}));
	}
}

/* The batch is as it was: it goes straight the second time, or through the journal again. */
static void columns_whose_commit_failed_can_be_sent_again(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t h = rig_series(rig, "m", "host=a");
	for (int few = 0; few < 2; few++) {
		struct store_write *write = fill_columns(rig, h, few ? 10 : 0, few ? 12 : 10);
		fault_arm("store.commit", FAULT_ERROR, 1, 1);
		assert_int_equal(rig_write(rig, write), ERR_FAULT);
		expect(rig, h, T0, few ? 10 : 0);
		assert_int_equal(rig_write(rig, write), 0);
		store_write_free(write);
		expect(rig, h, T0, few ? 12 : 10);
	}
	rig_reopen(rig);
	expect(rig, h, T0, 12);
}

static void forget(struct rig *rig, uint64_t handle)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_series_forget(write, &handle, 1), 0);
	rig_commit(rig, write);
}

/* A series that was forgotten sent the runs of all others through the journal, until a restart. Its
 * own are refused. */
static void runs_of_others_go_straight_after_a_series_was_forgotten(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t h = rig_series(rig, "m", "host=a"), gone = rig_series(rig, "m", "host=b");
	struct store_write *late = fill(rig, true, gone, RETENTION_EVER, T0, 0, 10);
	struct store_write *columns = fill_columns(rig, gone, 0, 10);
	forget(rig, gone);
	assert_int_equal(rig_write(rig, late), ERR_NOT_FOUND);
	assert_int_equal(rig_write(rig, columns), ERR_NOT_FOUND);
	store_write_free(late);
	store_write_free(columns);
	put_as(rig, true, h, RETENTION_EVER, T0, 0, 10);
	assert_true(is_held(rig, (struct held){0, 10, 1}));
	expect(rig, h, T0, 10);
}

/* A commit that fails leaves the head where it was. */
static void a_run_whose_commit_failed_is_not_there(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &engine);
	uint64_t h = rig_series(rig, "m", "host=a");
	put(rig, h, RETENTION_EVER, T0, 0, 2);
	struct store_write *write = fill(rig, true, h, RETENTION_EVER, T0, 2, 8);
	fault_arm("store.commit", FAULT_ERROR, 1, 1);
	assert_int_equal(rig_write(rig, write), ERR_FAULT);
	expect(rig, h, T0, 2);
	assert_int_equal(rig_write(rig, write), 0);
	store_write_free(write);
	expect(rig, h, T0, 8);
	rig_reopen(rig);
	expect(rig, h, T0, 8);
}

#define UPKEEP_CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UPKEEP_CASE(quiet_heads_of_closed_segments_are_sealed),
		UPKEEP_CASE(an_old_journal_is_sealed),
		UPKEEP_CASE(groups_of_several_flushes_are_settled),
		UPKEEP_CASE(what_waits_to_be_settled_is_counted),
		UPKEEP_CASE(what_expires_goes),
		UPKEEP_CASE(the_walk_comes_to_every_group),
		UPKEEP_CASE(a_seal_whose_commit_failed_is_done_again),
		UPKEEP_CASE(a_seal_that_failed_itself_is_done_again),
		UPKEEP_CASE(heads_that_began_together_are_sealed_one_after_the_other),
		UPKEEP_CASE(rows_in_runs_are_sealed_at_once),
		UPKEEP_CASE(columns_are_sealed_at_once),
		UPKEEP_CASE(columns_whose_commit_failed_can_be_sent_again),
		UPKEEP_CASE(runs_of_others_go_straight_after_a_series_was_forgotten),
		UPKEEP_CASE(a_run_whose_commit_failed_is_not_there),
		UPKEEP_CASE(a_journal_of_many_series_of_one_sample),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
