/* Lines of streams become samples, by hand: times, labels and names of samples, lines that lie in
 * several chunks or blocks, holes, damage, and bytes that have gone. stream_demux_model.c has
 * streams by lot. */
#include "stream_demux_world.h"

#include "base/stats.h"

static struct contract_engine engine;

/* A sample is written at the time of its line, with the tags of its stream. */
static void a_line_is_a_sample(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1,
		   "datatypes: {acc: {format: logfmt, samples: {tags: [dev], values: [used]}}}\n");
	world_put(&w, 1, 0,
		  "time=1700000000.250 dev=sda used=5\ntime=1700000001.000 dev=sdb used=7.5\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.used{host=h1,cluster=c1,dev=sda}250") == 5);
	assert_true(world_value(&w, "acc.used{host=h1,cluster=c1,dev=sdb}1000") == 7.5);
	assert_int_equal(w.sink.count, 2);
	world_close(&w);
}

/* A line whose end has not come is not counted; when it has, it is, once. */
static void a_line_is_counted_when_its_end_has_come(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1, events);
	world_put(&w, 1, 0, "1700000000 G 1\n1700000001 G ");
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 1);
	world_put_chunk(&w, 1, 28, SLICE("20\n"), true);
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 2);
	assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,method=G}0") == 21);
	world_close(&w);
}

/* Labels beyond the maximum are counted together, and the first ones keep their series, also after
 * a restart. */
static void labels_beyond_the_maximum_are_the_rest(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1,
		   "datatypes: {acc: {pattern: '<_> <user> <bytes>', series_max: 2, "
		   "events: {tags: [user], values: [bytes]}}}\n");
	world_put(&w, 1, 0, "1700000000 a 1\n1700000001 b 2\n1700000002 c 3\n1700000003 d 4\n");
	world_finish(&w);
	world_kill(&w);
	world_put(&w, 1, 60, "1700000010 d 5\n1700000011 a 6\n1700000012 e 7\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,user=a}0") == 1);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,user=b}0") == 1);
	assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,rest=true}0") == 7);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,user=a}10000") == 1);
	assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,rest=true}10000") == 12);
	assert_int_equal(w.stream.state.counts.rest, 4);
	assert_int_equal(w.sink.count, 5 * 4);
	world_close(&w);
}

/* The other stream was made later, but has series without a name already. */
static void a_stream_says_its_name_where_another_says_none(void **state)
{
	(void)state;
	struct world w;
	struct demux_state without_name = {.rule = 1};
	struct stream_names other = names;
	struct stream_parts key, column;
	struct buf value;
	world_open(&w, &engine, 1, events);
	world_put(&w, 1, 0, "1700000000 G 1\n");
	other.name = SLICE("/var/log/b");
	buf_init(&value, 4096);
	assert_int_equal(demux_state_encode(&without_name, &other, &value), 0);
	demux_key(&key, SLICE("t"));
	demux_column(&column, &other);
	rig_cell_put(&w.rig, TABLE_DEMUX, &key.parts, &column.parts, buf_slice(&value), 1, 0);
	buf_release(&value);
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,name=/var/log/a,method=G}0") ==
		    1);
	assert_int_equal(w.sink.count, 4);
	world_close(&w);
}

/* One that is too far behind the newest line, or a day ahead of its receipt, is told and not
 * counted. The clock is at T0. */
static void lines_out_of_all_time_are_told(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1, events);
	world_put(&w, 1, 0, "1700000000 G 1\n");
	world_finish(&w);
	world_put(&w, 1, 15, "1699900000 G 1\n1700086400 G 1\n1699913600 G 1\n");
	world_finish(&w);
	assert_int_equal(w.stream.state.counts.late, 2);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 1);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}-86400000") == 1);
	assert_int_equal(w.sink.count, 2 * 4);
	world_close(&w);
}

/* A line that says no time has that of its receipt; of a line that lies in two chunks it is that of
 * the first of them. The chunks are received 30 s one after the other. */
static void lines_without_a_time_have_that_of_their_receipt(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1,
		   "datatypes: {acc: {pattern: '<method> <bytes>', events: {tags: [method], "
		   "values: [bytes]}}}\n");
	world_put(&w, 1, 0, "A 1\nB");
	rig_advance_ms(&w.rig, 30000);
	world_put_chunk(&w, 1, 5, SLICE(" 2\nC 3\n"), true);
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=A}0") == 1);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=B}0") == 1);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=C}30000") == 1);
	assert_int_equal(w.sink.count, 3 * 4);
	world_close(&w);
}

/* A line that is ahead of its receipt, which is at T0, and then one more: the bin has both, though
 * the process was killed in between, and nothing is late. */
static void a_bin_that_is_ahead_of_its_receipt_outlives_the_process(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1, events);
	world_put(&w, 1, 0, "1700005000 G 1\n");
	world_finish(&w);
	world_kill(&w);
	world_put(&w, 1, 15, "1700005001 G 2\n1700000000 G 4\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}5000000") == 2);
	assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,method=G}5000000") == 3);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 1);
	assert_int_equal(w.stream.state.counts.late, 0);
	world_close(&w);
}

/* Parts of lines before and behind a hole could be read as events of the bin at T0, which a late
 * line has derived anew. */
static void a_part_of_a_line_is_no_event_of_a_bin_that_is_derived(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1, events);
	world_put(&w, 1, 0, "1700000000 G 1\n1700000020 G 1\n1700000001 G 2");
	world_put_chunk(&w, 1, 100, SLICE("00000003 G 5\n1700000004 G 1\n"), true);
	world_finish(&w);
	world_kill(&w);
	world_put(&w, 1, 128, "1700000005 G 1\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 3);
	assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,method=G}0") == 3);
	world_close(&w);
}

static const char untimed[] = "datatypes: {acc: {pattern: '<method> <bytes>', events: {tags: "
			      "[method], values: [bytes]}}}\n";

/* The same of lines that are in one block when they are read. */
static void lines_in_a_block_have_the_time_of_their_own_receipt(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1, untimed);
	world_put(&w, 1, 0, "A 1\nB");
	rig_advance_ms(&w.rig, 30000);
	world_put_chunk(&w, 1, 5, SLICE(" 2\nC 3\n"), true);
	rig_advance_ms(&w.rig, 30000);
	world_put(&w, 1, 12, "D 4\n");
	world_seal(&w, 1, true);
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=A}0") == 1);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=B}0") == 1);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=C}30000") == 1);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=D}60000") == 1);
	assert_int_equal(w.sink.count, 4 * 4);
	world_close(&w);
}

/* A record that is open when a block ends, and lies in it from another chunk than its first
 * one. */
static void a_line_of_two_blocks_has_the_time_of_its_own_receipt(void **state)
{
	(void)state;
	struct world w;
	struct stream_id id = world_id(1);
	world_open(&w, &engine, 1, untimed);
	world_put(&w, 1, 0, "A 1\n");
	rig_advance_ms(&w.rig, 30000);
	world_put(&w, 1, 4, "B");
	stream_rig_seal(&w.rig, &id, true, INT64_MAX);
	rig_advance_ms(&w.rig, 30000);
	world_put_chunk(&w, 1, 5, SLICE(" 2\n"), true);
	stream_rig_seal(&w.rig, &id, true, INT64_MAX);
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=A}0") == 1);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=B}30000") == 1);
	assert_int_equal(w.sink.count, 2 * 4);
	/* Bins that are derived anew have the same. */
	world_kill(&w);
	world_put(&w, 1, 8, "1700000031 1\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=B}30000") == 1);
	assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,method=B}30000") == 2);
	assert_int_equal(w.sink.count, 3 * 4);
	world_close(&w);
}

/* Half of its time is none: alone, its first half has the time of the line before. */
static void a_line_of_two_blocks_is_an_event_of_a_bin_that_is_derived(void **state)
{
	(void)state;
	struct world w;
	struct stream_id id = world_id(1);
	world_open(&w, &engine, 1, events);
	world_put(&w, 1, 0, "1699990000 G 1\n17000");
	stream_rig_seal(&w.rig, &id, true, INT64_MAX);
	world_put_chunk(&w, 1, 20, SLICE("00001 G 2\n"), true);
	stream_rig_seal(&w.rig, &id, true, INT64_MAX);
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 1);
	world_kill(&w);
	world_put(&w, 1, 30, "1700000005 G 3\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 2);
	assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,method=G}0") == 5);
	world_close(&w);
}

/* The rest of it is a line of its own, wherever it lies. */
static void a_record_that_is_too_long_is_several(void **state)
{
	(void)state;
	enum { CUT = 960 << 10, END = 2 * CUT + 30, CHUNK = 300000 };
	char *text = mem_alloc(END);
	memset(text, 'x', END);
	memcpy(text, "1700000000 G 5", 14);
	memcpy(text + CUT, "1700000003 P 7", 14);
	memcpy(text + 2 * CUT, "1700000004 P 7\n1700000004 G 1\n", 30);
	for (int sealed = 0; sealed < 2; sealed++) {
		struct world w;
		world_open(&w, &engine, 1, events);
		for (size_t at = 0; at < END; at += CHUNK) {
			size_t len = smaller_of(CHUNK, END - at);
			world_put_chunk(&w, 1, at, (struct slice){text + at, len}, at > 0);
		}
		if (sealed)
			world_seal(&w, 1, true);
		world_finish(&w);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 2);
		assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,method=G}0") == 1);
		assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,method=P}0") == 7);
		/* And where its bin is derived anew. */
		world_kill(&w);
		world_put(&w, 1, END, "1700000009 P 1\n");
		world_finish(&w);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 2);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=P}0") == 3);
		assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,method=P}0") == 8);
		world_close(&w);
	}
	mem_free(text);
}

/* Lines that fill a hole go on from those in front of it: by their time, and by names of
 * columns. */
static void what_fills_a_hole_goes_on_from_what_is_in_front(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1,
		   "datatypes: {acc: {format: logfmt, samples: {tags: [dev], values: "
		   "[used]}}}\n");
	world_put(&w, 1, 0, "time=1700000010 dev=a used=1\n");
	world_put(&w, 1, 42, "time=1700000020 dev=c used=3\n");
	world_finish(&w);
	world_kill(&w);
	world_put(&w, 1, 29, "dev=b used=2\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.used{host=h1,cluster=c1,dev=b}10000") == 2);
	assert_int_equal(w.sink.count, 3);
	world_close(&w);

	world_open(&w, &engine, 1,
		   "datatypes: {acc: {columns: {header: [PID]}, samples: {tags: [USER], "
		   "values: "
		   "[CPU]}}}\n");
	world_put(&w, 1, 0, "PID USER CPU\n1 a 5\n");
	world_put(&w, 1, 25, "PID CPU USER\n3 7 c\n");
	world_finish(&w);
	world_kill(&w);
	world_put(&w, 1, 19, "2 b 6\n");
	world_put(&w, 1, 44, "4 8 d\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.CPU{host=h1,cluster=c1,USER=a}0") == 5);
	assert_true(world_value(&w, "acc.CPU{host=h1,cluster=c1,USER=b}0") == 6);
	assert_true(world_value(&w, "acc.CPU{host=h1,cluster=c1,USER=d}0") == 8);
	assert_int_equal(w.sink.count, 4);
	world_close(&w);
}

/* Names of columns are looked for in front of a block that has none. */
static void names_of_columns_are_those_in_front_of_a_block(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1,
		   "datatypes: {acc: {columns: {header: [PID]}, events: {tags: [USER], "
		   "values: "
		   "[CPU]}}}\n");
	world_put(&w, 1, 0, "PID USER CPU\n1 a 5\n");
	world_seal(&w, 1, true);
	world_put(&w, 1, 19, "2 a 6\n");
	world_seal(&w, 1, true);
	world_finish(&w);
	assert_true(world_value(&w, "acc.CPU.sum{host=h1,cluster=c1,USER=a}0") == 11);
	world_kill(&w);
	world_put(&w, 1, 25, "3 a 7\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.CPU.sum{host=h1,cluster=c1,USER=a}0") == 18);
	world_close(&w);
}

/* The block that ends at an offset; a cell of it with one bit changed takes its place, or
 * none. */
static void world_damage(struct world *w, uint64_t end, bool removes)
{
	const struct stream_id id = world_id(1);
	struct stream_parts key, from, to;
	char bytes[4096];
	chunk_sink_key(&key, &id, 0);
	chunk_bound(&from, end - 1);
	chunk_bound(&to, end);
	const struct store_cell_scan scan = {
		.table = TABLE_CHUNK_SINK, .key = key.parts, .from = from.parts, .to = to.parts};
	struct cells cells = rig_scan(&w->rig, &scan, 0);
	assert_int_equal(cells.count, 1);
	const struct slice was = cells.list[0].value;
	assert_true(was.len <= sizeof(bytes));
	memcpy(bytes, was.data, was.len);
	bytes[was.len - 1] ^= 1;
	if (removes)
		rig_log_remove(&w->rig, TABLE_CHUNK_SINK, &key.parts, &from.parts, &to.parts);
	else
		rig_log_put(&w->rig, TABLE_CHUNK_SINK, &key.parts, &cells.list[0].column,
			    (struct slice){bytes, was.len});
}

/* One of three blocks is damaged: lines of the others are counted, and the damage is told once. */
static void a_damaged_block_is_passed_over(void **state)
{
	(void)state;
	for (unsigned lot = 0; lot < 6; lot++) {
		struct world w;
		world_open(&w, &engine, 1, events);
		world_put(&w, 1, 0, "1700000000 G 1\n");
		world_seal(&w, 1, true);
		world_put(&w, 1, 15, "1700000010 G 1\n");
		world_seal(&w, 1, true);
		world_put(&w, 1, 30, "1700000020 G 1\n");
		world_seal(&w, 1, true);
		world_put(&w, 1, 45, "1700000030 G 1\n");
		world_damage(&w, 15 + lot % 3 * 15, lot >= 3);
		assert_int_equal(world_pass(&w), 0);
		assert_int_equal(w.passed.lost, 15);
		assert_int_equal(w.stream.state.counts.lines, 3);
		assert_int_equal(w.sink.count, 3 * 4);
		assert_int_equal(world_pass(&w), 0);
		assert_int_equal(w.passed.lost, 0);
		world_kill(&w);
		world_put(&w, 1, 60, "1700000040 G 1\n");
		assert_int_equal(world_pass(&w), 0);
		assert_int_equal(w.passed.lost, 0);
		assert_int_equal(w.stream.state.counts.lines, 4);
		world_close(&w);
	}
}

/* The first so many bytes have gone; they were received before then. */
static void world_expire(struct world *w, uint64_t from, int64_t before_ms)
{
	const struct stream_id id = world_id(1);
	const struct stream_kept kept = {.from = from, .before_ms = before_ms};
	struct buf value;
	buf_init(&value, 100);
	stream_kept_encode(&kept, &value);
	stream_rig_put(&w->rig, &id, STREAM_KEPT, buf_slice(&value), store_stamp(w->rig.store));
	buf_release(&value);
	world_damage(w, from, true);
}

/* A bin whose bytes have gone in part stays as it is stored: where a late line belongs to it, and
 * where the stream is read from its beginning again. The lines that have gone were 12 s ahead of
 * their receipt. */
static void bins_whose_bytes_have_gone_stay(void **state)
{
	(void)state;
	for (int restarts = 0; restarts < 2; restarts++) {
		struct world w;
		struct errbuf e = {""};
		world_open(&w, &engine, 1, events);
		world_put(&w, 1, 0, "1700000012 G 1\n1700000012 G 2\n");
		world_seal(&w, 1, true);
		rig_advance_ms(&w.rig, 90000);
		world_put(&w, 1, 30, "1700000013 G 3\n1700000070 G 4\n");
		world_finish(&w);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}10000") == 3);
		world_expire(&w, 30, T0 + 1);
		world_kill(&w);
		world_put(&w, 1, 60, "1700000014 G 5\n1700000071 G 6\n");
		world_finish(&w);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}10000") == 3);
		assert_true(world_value(&w, "acc.bytes.sum{host=h1,cluster=c1,method=G}10000") ==
			    6);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}70000") == 2);
		if (restarts)
			world_kill(&w);
		assert_int_equal(demux_begin_again(&w.work, &w.stream, &e), 0);
		world_finish(&w);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}10000") == 3);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}70000") == 2);
		assert_int_equal(w.stream.state.counts.lines, 4);
		assert_int_equal(w.stream.state.counts.late, 2);
		world_close(&w);
	}
}

/* The same of what somebody has deleted, before and after that is carried through. */
static void bins_of_what_was_deleted_stay(void **state)
{
	(void)state;
	for (int forgotten = 0; forgotten < 2; forgotten++) {
		struct world w;
		struct buf value;
		struct errbuf e = {""};
		const struct stream_id id = world_id(1);
		world_open(&w, &engine, 1, events);
		world_put(&w, 1, 0, "1700000000 G 1\n1700000001 G 2\n");
		world_finish(&w);
		buf_init(&value, 100);
		stream_deleted_encode(30, &value);
		stream_rig_put(&w.rig, &id, STREAM_DELETED, buf_slice(&value),
			       store_stamp(w.rig.store));
		buf_release(&value);
		world_put(&w, 1, 30, "1700000020 G 3\n");
		world_finish(&w);
		if (forgotten) { /* all of it, and another incarnation is there */
			struct stream_parts key, from, to;
			streams_key(&key, id.tenant);
			streams_column(&from, &id, STREAM_MADE);
			rig_cell_delete(&w.rig, TABLE_STREAMS, &key.parts, &from.parts,
					INT64_MAX / 2);
			chunk_tail_key(&key, &id);
			chunk_bound(&from, 0);
			chunk_bound(&to, 1000);
			rig_log_remove(&w.rig, TABLE_CHUNK_TAIL, &key.parts, &from.parts,
				       &to.parts);
		}
		world_put(&w, 2, 0, "1700000002 G 4\n1700000030 G 5\n");
		world_kill(&w);
		world_finish(&w);
		assert_int_equal(demux_begin_again(&w.work, &w.stream, &e), 0);
		world_finish(&w);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 2);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}20000") == 1);
		assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}30000") == 1);
		world_close(&w);
	}
}

/* A line that was read waits for its bin to be derived, and the bytes go meanwhile. */
static void a_counter_never_falls(void **state)
{
	(void)state;
	struct world w;
	struct buf value;
	const struct stream_id id = world_id(1);
	const int64_t read = stat_get(STAT_demux_read), late = stat_get(STAT_demux_late);
	world_open(&w, &engine, 1, events);
	world_put(&w, 1, 0, "1700000000 G 1\n");
	world_finish(&w);
	world_kill(&w);
	world_put(&w, 1, 15, "1700000001 G 2\n");
	assert_int_equal(world_pass(&w), 0);
	world_put(&w, 1, 30, "1700000002 G 3\n");
	assert_int_equal(world_pass(&w), 0);
	assert_true(w.passed.waits);
	assert_int_equal(stat_get(STAT_demux_read) - read, 3);
	buf_init(&value, 100);
	stream_deleted_encode(45, &value);
	stream_rig_put(&w.rig, &id, STREAM_DELETED, buf_slice(&value), store_stamp(w.rig.store));
	buf_release(&value);
	assert_int_equal(world_pass(&w), 0);
	assert_int_equal(w.stream.state.counts.late, 1);
	assert_int_equal(stat_get(STAT_demux_late) - late, 1);
	assert_int_equal(stat_get(STAT_demux_read) - read, 3);
	world_close(&w);
}

/* The times of lines are those of their receipt, so that none is ahead of it. */
static void bins_behind_what_has_gone_are_derived(void **state)
{
	(void)state;
	struct world w;
	struct errbuf e = {""};
	world_open(&w, &engine, 1, events);
	rig_advance_ms(&w.rig, 20000);
	world_put(&w, 1, 0, "1700000000 G 1\n");
	world_seal(&w, 1, true);
	rig_advance_ms(&w.rig, 100000);
	world_put(&w, 1, 15, "1700000030 G 2\n1700000100 G 3\n");
	world_finish(&w);
	world_expire(&w, 15, T0 + 20001);
	world_kill(&w);
	world_put(&w, 1, 45, "1700000031 G 4\n1700000029 G 5\n");
	world_finish(&w);
	/* Bins before T0 + 30 s may have had lines that have gone. */
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}30000") == 2);
	assert_int_equal(w.stream.state.counts.late, 1);
	assert_int_equal(demux_begin_again(&w.work, &w.stream, &e), 0);
	w.sink.count = 0;
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}30000") == 2);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}100000") == 1);
	assert_int_equal(w.sink.count, 2 * 4);
	world_close(&w);
}

/* A state that an earlier program has noted, by doc/format-chunks.md. */
static void a_state_of_version_1_is_read(void **state)
{
	(void)state;
	static const char value[] = "\x01\x01h\x01" /* names: h, c, d, n */
				    "c\x01"
				    "d\x01n"
				    "\x07"                     /* the rule */
				    "\x02"                     /* a line was read */
				    "\x90\x4e"                 /* at 5,000 ms */
				    "\x01"                     /* bins before -1 ms */
				    "\x05\x00\x00\x00\x00\x00" /* lines; no example */
				    "\x00\x00\x01"             /* no late bins, no series */
				    "\x09\x02\x00\x0f\x05\x0a" /* 0 to 15, 20 to 30 */
				    "\x00\x03\x90\x4e\x02"
				    "ab"; /* 3 lines have 5,000 ms */
	struct demux_state read = {.rule = 0};
	struct stream_names found;
	assert_int_equal(
		demux_state_decode((struct slice){value, sizeof(value) - 1}, &read, &found), 0);
	assert_int_equal(read.last_ms, 5000);
	assert_int_equal(read.top_ms, 5000);
	assert_int_equal(read.floor_ms, -1);
	assert_true(read.gone_ms == INT64_MIN && !read.ahead_ms);
	assert_int_equal(read.read_count, 1);
	assert_int_equal(read.reads[0].incarnation, 9);
	assert_int_equal(read.reads[0].end_count, 1);
	const struct demux_end *end = demux_read_end_at(&read.reads[0], 30);
	assert_non_null(end);
	assert_int_equal(end->carry.left, 3);
	assert_int_equal(end->carry.ms, 5000);
	assert_slice(end->header, SLICE("ab"));
	demux_state_release(&read);
	struct stream_kept kept = {.from = 0};
	assert_int_equal(stream_kept_decode(SLICE("\x01\x1e\x00\x00"), &kept), 0);
	assert_int_equal(kept.from, 30);
	assert_int_equal(kept.before_ms, 0);
}

/* Ranges that begin first are forgotten where there are more than are noted. */
static void ends_of_ranges_are_bounded(void **state)
{
	(void)state;
	struct demux_state all = {.rule = 0};
	struct demux_read *read = demux_state_read(&all, 1);
	for (uint64_t i = 1; i <= DEMUX_ENDS_MAX + 2; i++) {
		offsets_add(&read->done, 100 * i, 100 * i + 10);
		demux_read_put_end(read, &(struct demux_end){.at = 100 * i + 10,
							     .header = mem_copy_slice(SLICE("h"))});
	}
	assert_int_equal(read->end_count, DEMUX_ENDS_MAX);
	assert_null(demux_read_end_at(read, 210));
	assert_non_null(demux_read_end_at(read, 310));
	/* A hole is filled: its beginning is no end any more. */
	offsets_add(&read->done, 310, 500);
	demux_read_put_end(read, &(struct demux_end){.at = 510});
	assert_null(demux_read_end_at(read, 310));
	assert_null(demux_read_end_at(read, 410));
	assert_non_null(demux_read_end_at(read, 510));
	assert_int_equal(read->end_count, DEMUX_ENDS_MAX - 2);
	demux_state_release(&all);
}

/* The younger incarnation has the lower number, and lines of two days later. */
static void incarnations_are_read_in_the_order_in_which_they_were_made(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1, events);
	rig_advance_ms(&w.rig, 3 * (int64_t)DAY_MS);
	world_put_made(&w, 2, T0);
	world_put_made(&w, 1, T0 + 2 * (int64_t)DAY_MS);
	world_put(&w, 2, 0, "1700000000 G 1\n");
	world_put(&w, 1, 0, "1700172800 G 1\n");
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}0") == 1);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,method=G}172800000") == 1);
	assert_int_equal(w.stream.state.counts.late, 0);
	world_close(&w);
}

/* The second stream of a source that has the datatype says its name. */
static void the_second_stream_of_a_datatype_says_its_name(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1, events);
	world_put(&w, 1, 0, "1700000000 G 1\n");
	struct stream_id other = world_id(7);
	other.names.name = SLICE("/var/log/b");
	stream_rig_put_made(&w.rig, &other, T0 - 1, 1);
	world_finish(&w);
	assert_true(world_value(&w, "acc.count{host=h1,cluster=c1,name=/var/log/a,method=G}0") ==
		    1);
	world_close(&w);
}

/* The example is the last line that the rule does not read; a line that a condition leaves
 * out is none of these. */
static void unread_lines_are_counted_and_shown(void **state)
{
	(void)state;
	struct world w;
	world_open(&w, &engine, 1,
		   "datatypes: {acc: {pattern: '<_> <method> <bytes>', where: 'method=G', "
		   "events: {values: [bytes]}}}\n");
	world_put(&w, 1, 0, "junk\n1700000000 G 1\n1700000000 P 1\n\xff\xfe junk\n");
	world_finish(&w);
	const struct demux_counts *counts = &w.stream.state.counts;
	assert_int_equal(counts->lines, 4);
	assert_int_equal(counts->unread, 2);
	assert_int_equal(counts->passed, 1);
	assert_int_equal(w.stream.state.example_len, 7);
	assert_memory_equal(w.stream.state.example, "\xff\xfe junk", 7);
	world_close(&w);
}

int main(void)
{
	engine = engine_lmdb("demux", 0, 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_a_sample),
		cmocka_unit_test(a_line_is_counted_when_its_end_has_come),
		cmocka_unit_test(labels_beyond_the_maximum_are_the_rest),
		cmocka_unit_test(lines_out_of_all_time_are_told),
		cmocka_unit_test(the_second_stream_of_a_datatype_says_its_name),
		cmocka_unit_test(a_stream_says_its_name_where_another_says_none),
		cmocka_unit_test(unread_lines_are_counted_and_shown),
		cmocka_unit_test(lines_without_a_time_have_that_of_their_receipt),
		cmocka_unit_test(lines_in_a_block_have_the_time_of_their_own_receipt),
		cmocka_unit_test(a_line_of_two_blocks_has_the_time_of_its_own_receipt),
		cmocka_unit_test(a_line_of_two_blocks_is_an_event_of_a_bin_that_is_derived),
		cmocka_unit_test(a_record_that_is_too_long_is_several),
		cmocka_unit_test(what_fills_a_hole_goes_on_from_what_is_in_front),
		cmocka_unit_test(names_of_columns_are_those_in_front_of_a_block),
		cmocka_unit_test(a_damaged_block_is_passed_over),
		cmocka_unit_test(bins_whose_bytes_have_gone_stay),
		cmocka_unit_test(bins_of_what_was_deleted_stay),
		cmocka_unit_test(bins_behind_what_has_gone_are_derived),
		cmocka_unit_test(a_counter_never_falls),
		cmocka_unit_test(a_state_of_version_1_is_read),
		cmocka_unit_test(ends_of_ranges_are_bounded),
		cmocka_unit_test(incarnations_are_read_in_the_order_in_which_they_were_made),
		cmocka_unit_test(a_bin_that_is_ahead_of_its_receipt_outlives_the_process),
		cmocka_unit_test(a_part_of_a_line_is_no_event_of_a_bin_that_is_derived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
