/* A stream that is deleted, or forgotten, by processes that share a far store (contract/far.h), and
 * whose clocks differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "contract/far.h"
#include "stepped.h"
#include "store/wait.h"
#include "stream/known.h"
#include "stream/retain.h"

#define T0 INT64_C(1700000000000000)

static const struct stream_id id = {
	SLICE("t"), {SLICE("h"), SLICE("c"), SLICE("d"), SLICE("/a")}, 1};

struct rig {
	struct clock_virtual clock, ahead; /* that of the other process */
	struct far *far;
	struct stream_site site, other;
	uint64_t bytes;
	int err;
};

/* A chunk of 10 bytes that begins at an offset, as the collector has it. */
static void put_chunk(struct store *store, struct task_queue *queue, uint64_t begin,
		      int64_t stamp_us)
{
	const struct chunk_fields fields = {.names = id.names,
					    .incarnation = id.incarnation,
					    .sequence_id = begin + 10,
					    .lines = true};
	const struct chunk_data data = {.data = SLICE("123456789\n")};
	const struct stream_made made = {.id = id, .made_ms = 1};
	struct store_write *write = store_write_new(store, 1 << 20);
	struct stream_parts key, column;
	struct chunk_frame frame;
	struct buf bytes, value;
	const char *why;
	buf_init(&bytes, 4096);
	buf_init(&value, 4096);
	assert_int_equal(chunk_frame_put(&fields, &data, 1, &bytes), 0);
	struct slice rest = buf_slice(&bytes);
	assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_FOUND);
	assert_int_equal(chunk_cell_encode(1, frame.bytes, &value), 0);
	const struct chunk_place place = chunk_place_of(&frame);
	chunk_tail_key(&key, &id);
	chunk_column(&column, &place);
	assert_int_equal(store_log_put(write, TABLE_CHUNK_TAIL, &key.parts, &column.parts,
				       buf_slice(&value)),
			 0);
	buf_clear(&value);
	stream_made_encode(&made, &value);
	streams_key(&key, id.tenant);
	streams_column(&column, &id, STREAM_MADE);
	assert_int_equal(store_cell_put(write, TABLE_STREAMS, &key.parts, &column.parts,
					buf_slice(&value), stamp_us, 0),
			 0);
	assert_int_equal(store_write_wait(write, queue), 0);
	store_write_free(write);
	buf_release(&value);
	buf_release(&bytes);
}

static void delete_twice(struct task_queue *queue, void *owner)
{
	struct rig *rig = owner;
	struct errbuf e = {""};
	put_chunk(rig->site.store, queue, 0, 1);
	rig->err = stream_delete(&rig->other, queue, &id, false, &rig->bytes, &e);
	assert_int_equal(rig->bytes, 10);
	put_chunk(rig->site.store, queue, 10, 1);
	if (!rig->err)
		rig->err = stream_delete(&rig->site, queue, &id, false, &rig->bytes, &e);
}

static void rig_open(struct rig *rig, int64_t ahead_us)
{
	*rig = (struct rig){.err = 1};
	clock_virtual_init(&rig->clock, T0);
	clock_virtual_init(&rig->ahead, T0 + ahead_us);
	rig->far = far_new(&rig->clock.clock, 1, &(struct far_faults){0});
	rig->site = (struct stream_site){.store = far_open(rig->far, &rig->clock.clock, 0),
					 .clock = &rig->clock.clock};
	rig->other = (struct stream_site){.store = far_open(rig->far, &rig->ahead.clock, 0),
					  .clock = &rig->ahead.clock};
}

static void rig_close(struct rig *rig)
{
	store_close(rig->site.store);
	store_close(rig->other.store);
	far_free(rig->far);
}

/* Whoever is the second to delete has a clock that is 3 s behind, and deletes more. */
static void who_deletes_more_wins_though_his_clock_is_behind(void **state)
{
	(void)state;
	struct rig rig;
	struct stepped work;
	struct stream_known known = {.made = false};
	struct task_queue queue;
	struct errbuf e = {""};
	rig_open(&rig, 3000000);
	stepped_start(&work, delete_twice, &rig);
	while (!stepped_over(&work))
		if (!stepped_ready(&work) || !stepped_step(&work))
			assert_true(far_step(rig.far));
	stepped_release(&work);
	assert_int_equal(rig.err, 0);
	assert_int_equal(rig.bytes, 10); /* what was deleted before is not held */
	const struct stream_site landed = {.store = far_landed(rig.far), .clock = &rig.clock.clock};
	task_queue_init(&queue);
	assert_int_equal(stream_known_read(&known, &landed, &queue, &id, 0, &e), 0);
	assert_int_equal(known.deleted_to, 20);
	stream_known_release(&known);
	task_queue_release(&queue);
	rig_close(&rig);
}

static void delete_all(struct task_queue *queue, void *owner)
{
	struct rig *rig = owner;
	struct errbuf e = {""};
	rig->err = stream_delete(&rig->other, queue, &id, false, &rig->bytes, &e);
}

/* Another one deletes ten bytes more after so many steps. False: the first was over before. */
static bool delete_more_meanwhile(int steps)
{
	struct rig rig;
	struct stepped work;
	struct stream_known known = {.made = false};
	struct task_queue queue;
	struct errbuf e = {""};
	uint64_t bytes;
	int step = 0;
	task_queue_init(&queue);
	rig_open(&rig, 3000000);
	const struct stream_site landed = {.store = far_landed(rig.far), .clock = &rig.clock.clock};
	put_chunk(landed.store, &queue, 0, 1);
	stepped_start(&work, delete_all, &rig);
	for (; !stepped_over(&work); step++) {
		if (step == steps) {
			put_chunk(landed.store, &queue, 10, 1);
			assert_int_equal(stream_delete(&landed, &queue, &id, false, &bytes, &e), 0);
		}
		if (!stepped_ready(&work) || !stepped_step(&work))
			assert_true(far_step(rig.far));
	}
	stepped_release(&work);
	assert_int_equal(stream_known_read(&known, &landed, &queue, &id, 0, &e), 0);
	assert_int_equal(known.deleted_to, step > steps ? 20 : 10);
	stream_known_release(&known);
	task_queue_release(&queue);
	rig_close(&rig);
	return step > steps;
}

static void who_stands_while_he_deletes_undoes_no_later_deletion(UNUSED void **state)
{
	int steps = 0;
	while (delete_more_meanwhile(steps))
		steps++;
	assert_true(steps > 3); /* two reads, and the note */
}

static void forget(struct task_queue *queue, void *owner)
{
	struct rig *rig = owner;
	const struct stream_retain_rules rules = {INT64_MIN, INT64_MAX, 1000};
	struct stream_retained retained;
	struct errbuf e = {""};
	rig->err = stream_retain(&rig->site, queue, &id, &rules, &retained, &e);
}

/* As the job that seals does with chunks below `end`. */
static void remove_chunks(struct store *store, struct task_queue *queue, uint64_t end)
{
	struct store_write *write = store_write_new(store, 1 << 20);
	struct stream_parts key, from, to;
	chunk_tail_key(&key, &id);
	chunk_bound(&from, 0);
	chunk_bound(&to, end);
	assert_int_equal(
		store_log_remove(write, TABLE_CHUNK_TAIL, &key.parts, &from.parts, &to.parts), 0);
	assert_int_equal(store_write_wait(write, queue), 0);
	store_write_free(write);
}

/* The stream was made at T0, and then nothing of it was left. */
static void put_empty(struct store *store, struct task_queue *queue)
{
	const struct stream_kept kept = {.from = 10, .empty_ms = T0 / 1000};
	struct store_write *write = store_write_new(store, 1 << 20);
	struct stream_parts key, column;
	struct buf value;
	buf_init(&value, 4096);
	put_chunk(store, queue, 0, T0);
	remove_chunks(store, queue, 10);
	stream_kept_encode(&kept, &value);
	streams_key(&key, id.tenant);
	streams_column(&column, &id, STREAM_KEPT);
	assert_int_equal(store_cell_put(write, TABLE_STREAMS, &key.parts, &column.parts,
					buf_slice(&value), T0, 0),
			 0);
	assert_int_equal(store_write_wait(write, queue), 0);
	store_write_free(write);
	buf_release(&value);
}

/* The stream is forgotten a day later. A collector took its stamp before that, by a clock that is
 * `behind_us` behind. Its chunk lands after so many steps. False: all was over before. */
static bool forget_while_it_goes_on(int steps, int64_t behind_us, bool lands)
{
	struct rig rig;
	struct stepped work;
	struct stream_known known = {.made = false};
	struct task_queue queue;
	struct errbuf e = {""};
	int step = 0;
	task_queue_init(&queue);
	rig_open(&rig, -behind_us);
	struct store *landed = far_landed(rig.far);
	put_empty(landed, &queue);
	clock_virtual_advance(&rig.clock, 86400000000);
	clock_virtual_advance(&rig.ahead, 86400000000);
	int64_t stamp_us = store_stamp(rig.other.store);
	stepped_start(&work, forget, &rig);
	for (; !stepped_over(&work); step++) {
		if (step == steps && lands)
			put_chunk(landed, &queue, 10, stamp_us);
		if (!stepped_ready(&work) || !stepped_step(&work))
			assert_true(far_step(rig.far));
	}
	if (step <= steps && lands)
		put_chunk(landed, &queue, 10, stamp_us);
	stepped_release(&work);
	assert_int_equal(rig.err, 0);
	const struct stream_site site = {.store = landed, .clock = &rig.clock.clock};
	assert_int_equal(stream_known_read(&known, &site, &queue, &id, 0, &e), 0);
	assert_int_equal(known.made, lands);
	assert_int_equal(known.held.count, lands);
	stream_known_release(&known);
	task_queue_release(&queue);
	rig_close(&rig);
	return step > steps;
}

static void a_stream_that_goes_on_while_it_is_forgotten_stays(void **state)
{
	(void)state;
	(void)forget_while_it_goes_on(0, 0, false);
	for (int64_t behind_us = -3000000; behind_us <= 3000000; behind_us += 3000000) {
		int steps = 0;
		while (forget_while_it_goes_on(steps, behind_us, true))
			steps++;
		assert_true(steps > 3); /* two reads, and the deletion */
	}
}

static int count_cell(UNUSED const struct store_cell *cell, void *owner)
{
	++*(size_t *)owner;
	return 0;
}

static size_t cells_of_stream(const struct stream_site *site, struct task_queue *queue)
{
	struct stream_parts key, from, to;
	struct errbuf e = {""};
	size_t count = 0;
	streams_key(&key, id.tenant);
	streams_bound(&from, &id, false);
	streams_bound(&to, &id, true);
	const struct store_cell_scan scan = {
		.table = TABLE_STREAMS, .key = key.parts, .from = from.parts, .to = to.parts};
	assert_int_equal(store_cells_wait(site->store, queue, clock_wall_ms(site->clock), &scan,
					  count_cell, &count, &e),
			 0);
	return count;
}

static void put_note(struct store *store, struct task_queue *queue, uint64_t offset)
{
	struct store_write *write = store_write_new(store, 1 << 20);
	struct stream_parts key, column;
	struct buf value;
	buf_init(&value, 100);
	stream_deleted_encode(offset, &value);
	streams_key(&key, id.tenant);
	streams_deleted_column(&column, &id, offset);
	assert_int_equal(store_cell_put(write, TABLE_STREAMS, &key.parts, &column.parts,
					buf_slice(&value), T0, 0),
			 0);
	assert_int_equal(store_write_wait(write, queue), 0);
	store_write_free(write);
	buf_release(&value);
}

/* Notes that other processes have left behind: the greatest counts. All go with the stream, some in
 * each pass where there are many, and the lesser ones with the next deletion. */
static void notes_of_deletions_go(UNUSED void **state)
{
	enum { NOTES = 2 * STREAM_NOTES_MAX + 3 };
	const struct stream_retain_rules rules = {INT64_MIN, INT64_MAX, 1000};
	struct stream_retained retained;
	struct stream_known known = {.made = false};
	struct task_queue queue;
	struct errbuf e = {""};
	struct rig rig;
	uint64_t bytes;
	task_queue_init(&queue);
	rig_open(&rig, 0);
	const struct stream_site landed = {.store = far_landed(rig.far), .clock = &rig.clock.clock};
	put_empty(landed.store, &queue);
	for (uint64_t offset = NOTES; offset > 0; offset--)
		put_note(landed.store, &queue, offset);
	assert_int_equal(stream_known_read(&known, &landed, &queue, &id, 0, &e), 0);
	assert_int_equal(known.deleted_to, NOTES);
	stream_known_release(&known);
	assert_int_equal(cells_of_stream(&landed, &queue), NOTES + 2); /* made, kept */
	put_chunk(landed.store, &queue, 100, T0);
	assert_int_equal(stream_delete(&landed, &queue, &id, false, &bytes, &e), 0);
	assert_int_equal(bytes, 10);
	assert_int_equal(cells_of_stream(&landed, &queue), NOTES + 3 - STREAM_NOTES_MAX);
	remove_chunks(landed.store, &queue, 110);
	assert_int_equal(stream_retain(&landed, &queue, &id, &rules, &retained, &e), 0);
	clock_virtual_advance(&rig.clock, 86400000000);
	for (size_t left = NOTES + 1 - STREAM_NOTES_MAX; left >= STREAM_NOTES_MAX;
	     left -= STREAM_NOTES_MAX) {
		assert_int_equal(stream_retain(&landed, &queue, &id, &rules, &retained, &e), 0);
		assert_false(retained.forgotten);
		assert_int_equal(cells_of_stream(&landed, &queue), left + 2 - STREAM_NOTES_MAX);
	}
	assert_int_equal(stream_retain(&landed, &queue, &id, &rules, &retained, &e), 0);
	assert_true(retained.forgotten);
	assert_int_equal(cells_of_stream(&landed, &queue), 0);
	task_queue_release(&queue);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_deletes_more_wins_though_his_clock_is_behind),
		cmocka_unit_test(who_stands_while_he_deletes_undoes_no_later_deletion),
		cmocka_unit_test(notes_of_deletions_go),
		cmocka_unit_test(a_stream_that_goes_on_while_it_is_forgotten_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
