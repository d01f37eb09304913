/* That the far store does break what it does not promise (far.h), by seeds. One sample of one
 * series is written by two processes; which value stays follows from their stamps alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "far.h"

#define T0 INT64_C(1700000000000)

enum { SEEDS = 200, PROCESSES = 2 };

struct rig {
	struct clock_virtual clock;
	struct far *far;
	struct store *process[PROCESSES];
	struct task_queue queue;
	uint64_t handle[2];
	int err; /* of the write that ended last */
	size_t ended;
};

static void write_done(struct store_write *write, int err)
{
	struct rig *rig = write->owner;
	rig->err = err;
	rig->ended++;
}

static void read_done(struct store_read *read, int err)
{
	assert_int_equal(err, 0);
	*(bool *)read->owner = true;
}

/* Until nothing can go on. */
static void run(struct rig *rig)
{
	while (far_step(rig->far) || task_queue_run(&rig->queue))
		;
}

static void read_failed(struct store_read *read, int err)
{
	assert_int_equal(err, ERR_UNKNOWN);
	*(bool *)read->owner = true;
}

static struct store_read *run_read(struct rig *rig, struct store_read *read)
{
	bool over = false;
	read->executor = &rig->queue.executor;
	read->done = read_done;
	read->owner = &over;
	read->now_ms = T0;
	assert_int_equal(store_read_submit(read), 0);
	task_queue_run(&rig->queue);
	assert_true(over);
	return read;
}

/* What has landed is looked at without the far store's delays. */
static struct store_read *landed_read(struct rig *rig)
{
	return store_read_new(far_landed(rig->far), 1 << 20);
}

static void rig_open(struct rig *rig, uint64_t seed, struct far_faults faults)
{
	static const struct slice metrics[] = {SLICE("a"), SLICE("b")};
	*rig = (struct rig){.err = 1};
	clock_virtual_init(&rig->clock, T0 * 1000);
	task_queue_init(&rig->queue);
	rig->far = far_new(&rig->clock.clock, seed, &faults);
	for (size_t i = 0; i < PROCESSES; i++)
		rig->process[i] = far_open(rig->far, &rig->clock.clock, 0);
	struct store_read *read = landed_read(rig);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open = (struct store_series_open){
		.tenant = SLICE("t"), .metrics = metrics, .count = ARRAY_LEN(metrics)};
	run_read(rig, read);
	memcpy(rig->handle, request->series_open.handles, sizeof(rig->handle));
	store_read_free(read);
}

static void rig_close(struct rig *rig)
{
	run(rig);
	for (size_t i = 0; i < PROCESSES; i++)
		store_close(rig->process[i]);
	far_free(rig->far);
	task_queue_release(&rig->queue);
}

/* The values of the first `n` series at T0, in a write of a process, which the rig frees. */
static struct store_write *submit(struct rig *rig, size_t process, size_t n, int64_t value,
				  int64_t stamp_us)
{
	struct store_write *write = store_write_new(rig->process[process], 1 << 20);
	struct value values[] = {value_i64(value), value_i64(value)};
	const struct store_target raw = {TABLE_DATA_RAW, RETENTION_EVER, 0};
	write->executor = &rig->queue.executor;
	write->done = write_done;
	write->owner = rig;
	write->stamp_us = stamp_us;
	assert_int_equal(store_append(write, &raw, T0, rig->handle, n, values), 0);
	assert_int_equal(store_write_submit(write), 0);
	return write;
}

/* The value of a series at T0; 0: there is none. */
static int64_t value_of(struct rig *rig, size_t series)
{
	struct store_read *read = landed_read(rig);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){.table = TABLE_DATA_RAW,
					      .handles = &rig->handle[series],
					      .handle_count = 1,
					      .start_ms = T0,
					      .end_ms = T0 + 1};
	run_read(rig, read);
	const struct store_points *points = &request->range.points[0];
	int64_t value = points->count ? (int64_t)points->bits[0][0] : 0;
	store_read_free(read);
	return value;
}

/* A batch has two rows. With some seeds the first lands first, with others the second. */
static void rows_of_a_batch_land_in_any_order(UNUSED void **state)
{
	size_t first[2] = {0, 0};
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rig rig;
		rig_open(&rig, seed, (struct far_faults){0});
		struct store_write *write = submit(&rig, 0, 2, 1, 100);
		assert_true(far_step(rig.far));
		assert_int_equal(value_of(&rig, 0) + value_of(&rig, 1), 1);
		first[value_of(&rig, 1)]++;
		run(&rig);
		assert_int_equal(rig.err, 0);
		assert_int_equal(value_of(&rig, 0) + value_of(&rig, 1), 2);
		store_write_free(write);
		rig_close(&rig);
	}
	assert_true(first[0] && first[1]);
}

/* Whichever lands first, the higher stamp stays; for some seed it lands first. */
static void the_higher_stamp_stays_whichever_lands_first(UNUSED void **state)
{
	size_t higher_first = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rig rig;
		rig_open(&rig, seed, (struct far_faults){0});
		struct store_write *low = submit(&rig, 0, 1, 1, 100);
		struct store_write *high = submit(&rig, 1, 1, 2, 101);
		assert_true(far_step(rig.far));
		higher_first += value_of(&rig, 0) == 2;
		run(&rig);
		assert_int_equal(value_of(&rig, 0), 2);
		store_write_free(low);
		store_write_free(high);
		rig_close(&rig);
	}
	assert_in_range(higher_first, 1, SEEDS - 1);
}

/* What a process handed over before it froze lands after its successor's work, and undoes none. */
static void what_a_frozen_process_handed_over_lands_when_it_wakes(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, 1, (struct far_faults){0});
	struct store_write *old = submit(&rig, 0, 2, 1, 100);
	far_freeze(rig.process[0], true);
	run(&rig);
	assert_int_equal(rig.ended, 0);
	assert_int_equal(value_of(&rig, 0), 0);
	struct store_write *new = submit(&rig, 1, 1, 2, 200);
	run(&rig);
	assert_int_equal(rig.ended, 1);
	assert_int_equal(value_of(&rig, 0), 2);
	far_freeze(rig.process[0], false);
	run(&rig);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(value_of(&rig, 0), 2); /* 200 is above 100 */
	assert_int_equal(value_of(&rig, 1), 1);
	store_write_free(old);
	store_write_free(new);
	rig_close(&rig);
}

/* The outcome of each batch is not learned: its second row lands later for some seeds, and never
 * for others. */
static void what_is_unknown_lands_later_or_never(UNUSED void **state)
{
	size_t later = 0, never = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rig rig;
		rig_open(&rig, seed, (struct far_faults){.unknown = 1000});
		struct store_write *write = submit(&rig, 0, 2, 1, 100);
		assert_true(far_step(rig.far));
		task_queue_run(&rig.queue);
		assert_int_equal(rig.err, ERR_UNKNOWN);
		assert_int_equal(value_of(&rig, 0) + value_of(&rig, 1), 1);
		store_write_free(write);
		run(&rig);
		later += value_of(&rig, 0) + value_of(&rig, 1) == 2;
		never += value_of(&rig, 0) + value_of(&rig, 1) == 1;
		rig_close(&rig);
	}
	assert_int_equal(later + never, SEEDS);
	assert_true(later && never);
}

/* A caller writes with a stamp that is an hour ahead of the clock. The process did not take it:
 * what it takes later is by its clock, and loses. */
static void a_stamp_of_a_callers_own_moves_no_later_one(UNUSED void **state)
{
	const int64_t ahead_us = (T0 + 3600000) * 1000;
	struct rig rig;
	rig_open(&rig, 1, (struct far_faults){0});
	int64_t before_us = store_stamp(rig.process[0]);
	struct store_write *ahead = submit(&rig, 0, 1, 1, ahead_us);
	assert_int_equal(far_last_stamp_us(rig.process[0]), before_us);
	struct store_write *later = submit(&rig, 0, 1, 2, 0);
	assert_in_range(later->stamp_us, before_us + 1, ahead_us - 1);
	run(&rig);
	assert_int_equal(value_of(&rig, 0), 1);
	store_write_free(ahead);
	store_write_free(later);
	rig_close(&rig);
}

/* A row of `count` cells of 1,000 bytes: how many there are, which are the first ones. */
static size_t first_cells_of(struct rig *rig, size_t count)
{
	static const struct store_parts key = {{SLICE("row")}};
	static char bytes[1000];
	struct store_write *write = store_write_new(rig->process[0], 1 << 20);
	write->executor = &rig->queue.executor;
	write->done = write_done;
	write->owner = rig;
	for (size_t i = 0; i < count; i++) {
		char column[4] = {(char)('a' + i / 26), (char)('a' + i % 26)};
		const struct store_parts at = {{slice_of(column)}};
		assert_int_equal(store_cell_put(write, TABLE_DEVICES, &key, &at,
						(struct slice){bytes, sizeof(bytes)}, 1, 0),
				 0);
	}
	assert_int_equal(store_write_submit(write), 0);
	run(rig);
	clock_virtual_advance(&rig->clock, 1000000000);
	run(rig);
	store_write_free(write);
	struct store_read *read = landed_read(rig);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	request->cell_scan = (struct store_cell_scan){.table = TABLE_DEVICES, .key = key};
	run_read(rig, read);
	size_t there = request->cell_scan.count;
	for (size_t i = 0; i < there; i++) {
		struct slice column = request->cell_scan.cells[i].column.part[0];
		assert_int_equal((column.data[0] - 'a') * 26 + column.data[1] - 'a', i);
	}
	store_read_free(read);
	return there;
}

/* 32 KiB are 32 cells of 1,000 bytes with their keys and columns; the next ones may be missing. */
static void a_long_row_lands_in_pieces_one_after_the_other(UNUSED void **state)
{
	unsigned parts = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct rig rig;
		rig_open(&rig, seed, (struct far_faults){.unknown = 500});
		size_t there = first_cells_of(&rig, 100);
		assert_true(there % 32 == 0 || there == 100);
		parts |= 1u << (there + 31) / 32;
		rig_close(&rig);
		rig_open(&rig, seed, (struct far_faults){.unknown = 500});
		assert_int_equal(first_cells_of(&rig, 32) % 32, 0);
		rig_close(&rig);
	}
	/* Each end was seen but that nothing lands: what is first landed before it was unknown. */
	assert_int_equal(parts, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4);
}

/* A process is killed. Some of its rows land after that, the others never. */
static void what_a_killed_process_handed_over_lands_later_or_never(UNUSED void **state)
{
	size_t landed[3] = {0};
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rig rig;
		rig_open(&rig, seed, (struct far_faults){0});
		struct store_write *write = submit(&rig, 0, 2, 1, 100);
		far_kill(rig.process[0]);
		task_queue_run(&rig.queue);
		assert_int_equal(rig.err, ERR_CANCELLED);
		assert_int_equal(value_of(&rig, 0) + value_of(&rig, 1), 0);
		store_write_free(write);
		run(&rig);
		landed[value_of(&rig, 0) + value_of(&rig, 1)]++;
		rig_close(&rig);
	}
	assert_true(landed[0] && landed[1] && landed[2]);
}

/* A batch that is refused stays the caller's; a read that fails gives no answer. */
static void submissions_are_refused_and_reads_fail(UNUSED void **state)
{
	struct rig rig;
	struct value one = value_i64(1);
	const struct store_target raw = {TABLE_DATA_RAW, RETENTION_EVER, 0};
	bool failed = false;
	rig_open(&rig, 1, (struct far_faults){.failed = 1000});
	struct store_read *read = store_read_new(rig.process[0], 1 << 20);
	read->executor = &rig.queue.executor;
	read->done = read_failed;
	read->owner = &failed;
	read->now_ms = T0;
	store_read_add(read, STORE_ENUMERATE)->enumerate.table = TABLE_DATA_RAW;
	assert_int_equal(store_read_submit(read), 0);
	run(&rig);
	assert_true(failed);
	store_read_free(read);
	far_set_faults(rig.far, &(struct far_faults){.refused = 1000});
	struct store_write *write = store_write_new(rig.process[0], 1 << 20);
	write->executor = &rig.queue.executor;
	write->done = write_done;
	write->owner = &rig;
	assert_int_equal(store_append(write, &raw, T0, rig.handle, 1, &one), 0);
	assert_int_equal(store_write_submit(write), ERR_BUSY);
	far_set_faults(rig.far, &(struct far_faults){0});
	assert_int_equal(store_write_submit(write), 0);
	run(&rig);
	assert_int_equal(rig.err, 0);
	assert_int_equal(value_of(&rig, 0), 1);
	store_write_free(write);
	rig_close(&rig);
}

/* Two series are listed. Sometimes each comes in a slice of its own, sometimes both in one. */
static void reads_are_cut_short(UNUSED void **state)
{
	size_t cut = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rig rig;
		bool over = false;
		rig_open(&rig, seed, (struct far_faults){.cut = 1000});
		struct store_read *read = store_read_new(rig.process[0], 1 << 20);
		struct store_request *request = store_read_add(read, STORE_SERIES_LIST);
		read->executor = &rig.queue.executor;
		read->done = read_done;
		read->owner = &over;
		read->now_ms = T0;
		assert_int_equal(store_read_submit(read), 0);
		run(&rig);
		assert_true(over);
		assert_int_equal(request->series_list.count, request->more ? 1 : 2);
		cut += request->more;
		store_read_free(read);
		rig_close(&rig);
	}
	assert_in_range(cut, 1, SEEDS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_a_batch_land_in_any_order),
		cmocka_unit_test(the_higher_stamp_stays_whichever_lands_first),
		cmocka_unit_test(what_a_frozen_process_handed_over_lands_when_it_wakes),
		cmocka_unit_test(what_is_unknown_lands_later_or_never),
		cmocka_unit_test(a_stamp_of_a_callers_own_moves_no_later_one),
		cmocka_unit_test(a_long_row_lands_in_pieces_one_after_the_other),
		cmocka_unit_test(what_a_killed_process_handed_over_lands_later_or_never),
		cmocka_unit_test(submissions_are_refused_and_reads_fail),
		cmocka_unit_test(reads_are_cut_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
