/* Deletion of a stream by two processes that share a far store (contract/far.h), and whose clocks
 * differ. */
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
static void put_chunk(struct rig *rig, struct task_queue *queue, uint64_t begin)
{
	const struct chunk_fields fields = {.names = id.names,
					    .incarnation = id.incarnation,
					    .sequence_id = begin + 10,
					    .lines = true};
	const struct chunk_data data = {.data = SLICE("123456789\n")};
	const struct stream_made made = {.id = id, .made_ms = 1};
	struct store_write *write = store_write_new(rig->site.store, 1 << 20);
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
					buf_slice(&value), 1, 0),
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
	put_chunk(rig, queue, 0);
	rig->err = stream_delete(&rig->other, queue, &id, false, &rig->bytes, &e);
	assert_int_equal(rig->bytes, 10);
	put_chunk(rig, queue, 10);
	if (!rig->err)
		rig->err = stream_delete(&rig->site, queue, &id, false, &rig->bytes, &e);
}

/* Whoever is the second to delete has a clock that is 3 s behind, and deletes more. */
static void who_deletes_more_wins_though_his_clock_is_behind(void **state)
{
	(void)state;
	struct rig rig = {.err = 1};
	struct stepped work;
	struct stream_known known = {.made = false};
	struct task_queue queue;
	struct errbuf e = {""};
	clock_virtual_init(&rig.clock, T0);
	clock_virtual_init(&rig.ahead, T0 + 3000000);
	rig.far = far_new(&rig.clock.clock, 1, &(struct far_faults){0});
	rig.site = (struct stream_site){.store = far_open(rig.far, &rig.clock.clock, 0),
					.clock = &rig.clock.clock};
	rig.other = (struct stream_site){.store = far_open(rig.far, &rig.ahead.clock, 0),
					 .clock = &rig.ahead.clock};
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
	store_close(rig.site.store);
	store_close(rig.other.store);
	far_free(rig.far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_deletes_more_wins_though_his_clock_is_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
