/* What is wrong with what is stored of streams is found: a small store that is right, of which one
 * cell is changed, removed or added. */
#include "contract/engines.h"

#include <stdio.h>

#include "base/hash.h"
#include "stream/demux_state.h"
#include "stream/mend.h"
#include "stream/verify.h"
#include "stream_rig.h"

enum { BLOCK_BYTES = 37, ALL_BYTES = 54, CELLS = 8 };

static const struct stream_id stream = {
	SLICE("t"), {SLICE("h1"), SLICE("c1"), SLICE("acc"), SLICE("/var/log/a")}, 1};
#define ADDRESS "h1/c1/acc//var/log/a@0000000000000001"

static struct contract_engine engine;

struct world {
	struct rig rig;
	struct tables_verify verify;
	struct buf told; /* a line each */
	struct stream_parts sink, tail, streams;
	struct store_cell block, chunk; /* in the rig's arena */
	struct chunk_place place;       /* of the block */
};

static void world_tell(void *owner, const char *sentence)
{
	struct world *w = owner;
	buf_append_text(&w->told, sentence);
	buf_append_char(&w->told, '\n');
}

static struct store_cell world_only_cell(struct world *w, enum table table,
					 const struct stream_parts *key)
{
	const struct store_cell_scan scan = {.table = table, .key = key->parts};
	struct cells cells = rig_scan(&w->rig, &scan, 0);
	assert_int_equal(cells.count, 1);
	return cells.list[0];
}

static void world_put_demux(struct world *w, uint64_t done)
{
	struct demux_state state = {.rule = 1};
	struct stream_parts key, column;
	struct buf value;
	offsets_add(&demux_state_read(&state, 1)->done, 0, done);
	buf_init(&value, 4096);
	assert_int_equal(demux_state_encode(&state, &stream.names, &value), 0);
	demux_key(&key, stream.tenant);
	demux_column(&column, &stream.names);
	rig_cell_put(&w->rig, TABLE_DEMUX, &key.parts, &column.parts, buf_slice(&value),
		     store_stamp(w->rig.store), 0);
	buf_release(&value);
	demux_state_release(&state);
}

/* Two lines in a block, one in a chunk, and what is read of them. */
static void world_open(struct world *w)
{
	memset(w, 0, sizeof(*w));
	rig_open(&w->rig, &engine);
	buf_init(&w->told, 1 << 20);
	stream_rig_put_made(&w->rig, &stream, T0, store_stamp(w->rig.store));
	stream_rig_put_chunk(&w->rig, &stream, 0, SLICE("1700000000 alpha 1\n1700000005 beta 2\n"),
			     false);
	stream_rig_seal(&w->rig, &stream, true, INT64_MIN);
	stream_rig_put_chunk(&w->rig, &stream, BLOCK_BYTES, SLICE("1700000007 gamma\n"), false);
	world_put_demux(w, ALL_BYTES);
	chunk_sink_key(&w->sink, &stream, 0);
	chunk_tail_key(&w->tail, &stream);
	streams_key(&w->streams, stream.tenant);
	w->block = world_only_cell(w, TABLE_CHUNK_SINK, &w->sink);
	w->chunk = world_only_cell(w, TABLE_CHUNK_TAIL, &w->tail);
	assert_int_equal(chunk_column_read(&w->block, &w->place), 0);
}

static void world_close(struct world *w)
{
	buf_release(&w->told);
	rig_close(&w->rig);
}

static void world_verify(struct world *w)
{
	w->verify = (struct tables_verify){.store = w->rig.store,
					   .clock = &w->rig.clock.clock,
					   .queue = &w->rig.queue,
					   .all_words = true,
					   .tell = world_tell,
					   .owner = w};
	buf_clear(&w->told);
	assert_int_equal(stream_verify(&w->verify), 0);
	buf_append_char(&w->told, 0);
}

/* Of each line the sentence, or its beginning. */
static void world_expect(struct world *w, uint64_t orphans, const char *const *sentences)
{
	const char *at;
	size_t count = 0;
	world_verify(w);
	at = w->told.data;
	for (; sentences[count]; count++) {
		size_t len = strlen(sentences[count]);
		const char *end = strchr(at, '\n');
		if (!end || strncmp(at, sentences[count], len))
			fail_msg("not told: %s\nbut: %s", sentences[count], w->told.data);
		at = end + 1;
	}
	if (*at)
		fail_msg("told, too: %s", at);
	assert_int_equal(w->verify.problems, count);
	assert_int_equal(w->verify.orphans, orphans);
	world_close(w);
}
#define EXPECT(w, orphans, ...) world_expect(w, orphans, (const char *const[]){__VA_ARGS__, NULL})

/* The value with one bit changed. */
static void world_flip(struct world *w, enum table table, const struct store_parts *key,
		       const struct store_parts *column, size_t at)
{
	char bytes[4096];
	struct store_cell cell;
	assert_true(rig_cell_get(&w->rig, table, key, column, &cell));
	assert_true(at < cell.value.len && cell.value.len <= sizeof(bytes));
	memcpy(bytes, cell.value.data, cell.value.len);
	bytes[at] ^= 1;
	const struct slice value = {bytes, cell.value.len};
	if (schema[table].cell_kind == CELL_LOG)
		rig_log_put(&w->rig, table, key, column, value);
	else
		rig_cell_put(&w->rig, table, key, column, value, store_stamp(w->rig.store), 0);
}

static void world_remove_log(struct world *w, enum table table, const struct store_parts *key,
			     const struct store_parts *column)
{
	struct store_parts to = *column;
	const size_t last = schema[table].column_count - 1;
	uint64_t checksum = be64_get((const uint8_t *)column->part[last].data) + 1;
	uint8_t bytes[8];
	be64_put(bytes, checksum);
	to.part[last] = (struct slice){(char *)bytes, 8};
	rig_log_remove(&w->rig, table, key, column, &to);
}

static void world_put_head(struct world *w, enum chunk_head_kind kind,
			   const struct chunk_place *place, const struct buf *value)
{
	struct stream_parts column;
	chunk_head_column(&column, kind, place);
	rig_log_put(&w->rig, TABLE_CHUNK_HEADS, &w->sink.parts, &column.parts, buf_slice(value));
}

/* ---- Sound ----------------------------------------------------------------------------------- */

static void nothing_is_wrong(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_verify(&w);
	assert_string_equal(w.told.data, "");
	/* Two of the stream, a chunk, a block, its three heads, and how far it is read. */
	assert_int_equal(w.verify.checked, CELLS);
	assert_int_equal(w.verify.problems + w.verify.orphans, 0);
	world_close(&w);
}

/* ---- Chunks and blocks ----------------------------------------------------------------------- */

static void a_chunk_with_a_flipped_bit(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_flip(&w, TABLE_CHUNK_TAIL, &w.tail.parts, &w.chunk.column, w.chunk.value.len - 1);
	EXPECT(&w, 0,
	       "chunk_tail: tenant t stream " ADDRESS ", sequence_id 54 length 17 checksum ");
}

/* A list has its bytes; whoever reads them looks at the frame. */
static void a_damaged_chunk_is_listed(void **state)
{
	(void)state;
	struct world w;
	struct errbuf e = {""};
	struct stream_known known = {.made = false};
	world_open(&w);
	const struct stream_site site = {.store = w.rig.store, .clock = &w.rig.clock.clock};
	assert_int_equal(stream_known_read(&known, &site, &w.rig.queue, &stream, 0, &e), 0);
	const uint64_t stored = known.tail_stored_bytes;
	const int64_t oldest_ms = known.oldest_ms;
	world_flip(&w, TABLE_CHUNK_TAIL, &w.tail.parts, &w.chunk.column, w.chunk.value.len - 1);
	assert_int_equal(stream_known_read(&known, &site, &w.rig.queue, &stream, 0, &e),
			 ERR_DAMAGED);
	assert_int_equal(stream_known_list(&known, &site, &w.rig.queue, &stream, &e), 0);
	assert_true(offsets_cover(&known.held, 0, ALL_BYTES));
	assert_int_equal(known.tail_data_bytes, ALL_BYTES - BLOCK_BYTES);
	assert_int_equal(known.tail_stored_bytes, stored);
	assert_int_equal(known.oldest_ms, oldest_ms);
	stream_known_release(&known);
	world_close(&w);
}

static void a_block_with_a_flipped_bit(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_flip(&w, TABLE_CHUNK_SINK, &w.sink.parts, &w.block.column, w.block.value.len - 1);
	EXPECT(&w, 3,
	       "chunk_sink: tenant t stream " ADDRESS " part 0, sequence_id 37 length 37 checksum ",
	       "streams: tenant t, names h1/c1/acc//var/log/a incarnation 1 property sealed: the "
	       "bytes 0 to 37 are in no block");
}

static void a_block_that_is_gone(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_remove_log(&w, TABLE_CHUNK_SINK, &w.sink.parts, &w.block.column);
	EXPECT(&w, 3,
	       "streams: tenant t, names h1/c1/acc//var/log/a incarnation 1 property sealed: the "
	       "bytes 0 to 37 are in no block");
}

struct lost {
	uint64_t begin, end;
	int count;
};

static void lost_tell(void *owner, const struct stream_id *id, const struct offset_range *range)
{
	struct lost *lost = owner;
	assert_true(stream_names_equal(&id->names, &stream.names));
	*lost = (struct lost){range->begin, range->end, lost->count + 1};
}

static struct lost world_mend(struct world *w)
{
	const struct stream_site site = {.store = w->rig.store, .clock = &w->rig.clock.clock};
	struct errbuf e = {""};
	struct lost lost = {.count = 0};
	assert_int_equal(stream_mend(&site, &w->rig.queue, lost_tell, &lost, &e), 0);
	return lost;
}

/* What is left over are the heads of the block. Its lines count as not read. */
static void a_block_that_is_gone_is_a_hole(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	assert_int_equal(world_mend(&w).count, 0);
	world_remove_log(&w, TABLE_CHUNK_SINK, &w.sink.parts, &w.block.column);
	const struct lost lost = world_mend(&w);
	assert_int_equal(lost.count, 1);
	assert_int_equal(lost.begin, 0);
	assert_int_equal(lost.end, BLOCK_BYTES);
	assert_int_equal(world_mend(&w).count, 0);
	world_verify(&w);
	assert_string_equal(w.told.data, "");
	assert_int_equal(w.verify.orphans, 3);
	world_close(&w);
}

/* Its checksum is right; the packed bytes are not. */
static void a_chunk_that_does_not_unpack(void **state)
{
	(void)state;
	struct world w;
	struct stream_parts column;
	struct buf value;
	world_open(&w);
	const struct slice was = w.chunk.value;
	buf_init(&value, 4096);
	buf_append(&value, was.data, was.len);
	char *frame = memmem(value.data, value.len, "Gch2", 4);
	assert_non_null(frame);
	size_t len = value.len - (size_t)(frame - value.data);
	frame[len - 18] ^= 0x40; /* in the frame of zstd */
	uint32_t crc = crc32c(crc32c(0, frame + 4, 4), frame + 12, len - 12);
	memcpy(frame + 8, &crc, 4);
	const struct chunk_place place = {ALL_BYTES, ALL_BYTES - BLOCK_BYTES, crc};
	world_remove_log(&w, TABLE_CHUNK_TAIL, &w.tail.parts, &w.chunk.column);
	chunk_column(&column, &place);
	rig_log_put(&w.rig, TABLE_CHUNK_TAIL, &w.tail.parts, &column.parts, buf_slice(&value));
	buf_release(&value);
	EXPECT(&w, 0, "chunk_tail: tenant t stream " ADDRESS ", sequence_id 54 length 17");
}

/* Of what nobody noted, or of bytes that were sealed twice. */
static void a_block_of_no_range_is_left_over(void **state)
{
	(void)state;
	struct world w;
	struct stream_parts column;
	const struct chunk_place place = {5000, 37, 1};
	world_open(&w);
	chunk_column(&column, &place);
	rig_log_put(&w.rig, TABLE_CHUNK_SINK, &w.sink.parts, &column.parts, w.block.value);
	world_verify(&w);
	assert_string_equal(w.told.data, "");
	assert_int_equal(w.verify.orphans, 1);
	world_close(&w);
}

static void rows_of_streams_that_are_not_there(void **state)
{
	(void)state;
	struct world w;
	struct stream_parts tail, sink;
	struct stream_id other = stream;
	other.incarnation = 2;
	world_open(&w);
	chunk_tail_key(&tail, &other);
	chunk_sink_key(&sink, &other, 0);
	rig_log_put(&w.rig, TABLE_CHUNK_TAIL, &tail.parts, &w.chunk.column, w.chunk.value);
	rig_log_put(&w.rig, TABLE_CHUNK_SINK, &sink.parts, &w.block.column, w.block.value);
	rig_log_put(&w.rig, TABLE_CHUNK_SINK, PARTS(SLICE("t"), SLICE("none"), sink.parts.part[2]),
		    &w.block.column, w.block.value);
	EXPECT(&w, 1,
	       "chunk_tail: tenant t stream h1/c1/acc//var/log/a@0000000000000002: the stream is "
	       "not there whose 1 chunk waits",
	       "chunk_sink: tenant t stream none part 0: it is of no stream: ");
}

/* ---- Heads ----------------------------------------------------------------------------------- */

static void heads_that_are_gone(void **state)
{
	(void)state;
	static const char *const missing[CHUNK_HEAD_KINDS] = {
		[CHUNK_HEAD_RECEIVED] = "chunk_heads: tenant t stream " ADDRESS
					" part 0, kind 1 sequence_id 37 length 37 checksum ",
		[CHUNK_HEAD_LINES] = "chunk_heads: tenant t stream " ADDRESS
				     " part 0, kind 2 sequence_id 37 length 37 checksum ",
		[CHUNK_HEAD_WORDS] = "chunk_heads: tenant t stream " ADDRESS
				     " part 0, kind 3 sequence_id 37 length 37 checksum "};
	for (int kind = CHUNK_HEAD_RECEIVED; kind < CHUNK_HEAD_KINDS; kind++) {
		struct world w;
		struct stream_parts column;
		world_open(&w);
		chunk_head_column(&column, (enum chunk_head_kind)kind, &w.place);
		world_remove_log(&w, TABLE_CHUNK_HEADS, &w.sink.parts, &column.parts);
		EXPECT(&w, 0, missing[kind]);
	}
}

static void heads_that_cannot_be_read(void **state)
{
	(void)state;
	for (int kind = CHUNK_HEAD_RECEIVED; kind < CHUNK_HEAD_KINDS; kind++) {
		struct world w;
		struct stream_parts column;
		world_open(&w);
		chunk_head_column(&column, (enum chunk_head_kind)kind, &w.place);
		world_flip(&w, TABLE_CHUNK_HEADS, &w.sink.parts, &column.parts, 0);
		world_verify(&w);
		assert_non_null(strstr(w.told.data, "the head cannot be read\n"));
		assert_int_equal(w.verify.problems, 1);
		world_close(&w);
	}
}

/* The block has two lines, at T0 and 5 s later; it was received at T0. */
static void heads_that_say_something_else(void **state)
{
	(void)state;
	static const struct chunk_lines right = {.count = 2,
						 .first_ms = T0,
						 .last_ms = T0 + 5000,
						 .behind = {LINE_CARRY_MAX, T0 + 5000}};
	struct chunk_lines wrong[5] = {right, right, right, right, right};
	static const char *const told[] = {
		"the block has another number of lines\n",
		"the lines of the block have other times\n",
		"the lines of the block have other times\n",
		"another time goes from the last line of the block to the next\n", ""};
	wrong[0].count = 3;
	wrong[1].first_ms++;
	wrong[2].last_ms--;
	wrong[3].behind.ms++;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct world w;
		struct buf value;
		world_open(&w);
		buf_init(&value, 4096);
		chunk_lines_encode(&wrong[i], &value);
		world_put_head(&w, CHUNK_HEAD_LINES, &w.place, &value);
		world_verify(&w);
		assert_non_null(strstr(w.told.data, told[i]));
		assert_int_equal(w.verify.problems, *told[i] != 0);
		buf_release(&value);
		world_close(&w);
	}
}

static void a_receipt_that_was_another(void **state)
{
	(void)state;
	for (int64_t last_ms = T0 - 1; last_ms <= T0; last_ms++) {
		struct world w;
		struct buf value;
		world_open(&w);
		buf_init(&value, 4096);
		chunk_received_encode(&(struct chunk_received){T0 - 10, last_ms}, &value);
		world_put_head(&w, CHUNK_HEAD_RECEIVED, &w.place, &value);
		world_verify(&w);
		assert_int_equal(w.verify.problems, last_ms < T0);
		buf_release(&value);
		world_close(&w);
	}
}

/* A filter of other words: searches for `alpha` would pass over the block. */
static void a_filter_that_lacks_a_word(void **state)
{
	(void)state;
	struct world w;
	struct words_set words;
	struct buf value;
	world_open(&w);
	words_set_init(&words, 0);
	words_set_add_lines(&words, SLICE("a block of other words has such a filter\n"));
	buf_init(&value, 1 << 16);
	chunk_words_encode(&words, &value);
	world_put_head(&w, CHUNK_HEAD_WORDS, &w.place, &value);
	words_set_release(&words);
	buf_release(&value);
	world_verify(&w);
	assert_non_null(strstr(w.told.data, "the filter lacks words of the block"));
	assert_int_equal(w.verify.problems, 1);
	world_close(&w);
}

static void a_head_without_a_block_is_left_over(void **state)
{
	(void)state;
	struct world w;
	struct buf value;
	const struct chunk_place place = {5000, 37, 1};
	world_open(&w);
	buf_init(&value, 100);
	chunk_received_encode(&(struct chunk_received){T0, T0}, &value);
	world_put_head(&w, CHUNK_HEAD_RECEIVED, &place, &value);
	buf_release(&value);
	world_verify(&w);
	assert_string_equal(w.told.data, "");
	assert_int_equal(w.verify.orphans, 1);
	world_close(&w);
}

/* ---- The tables of streams ------------------------------------------------------------------- */

#define STREAM "streams: tenant t, names h1/c1/acc//var/log/a incarnation "

static void what_is_said_of_a_stream_and_cannot_be_read(void **state)
{
	(void)state;
	static const enum stream_property properties[] = {STREAM_MADE, STREAM_SEALED};
	static const char *const told[] = {STREAM "1 property made: it cannot be read: ",
					   STREAM "1 property sealed: it cannot be read: "};
	for (size_t i = 0; i < ARRAY_LEN(properties); i++) {
		struct world w;
		struct stream_parts column;
		world_open(&w);
		streams_column(&column, &stream, properties[i]);
		world_flip(&w, TABLE_STREAMS, &w.streams.parts, &column.parts, 0);
		world_verify(&w);
		assert_non_null(strstr(w.told.data, told[i]));
		world_close(&w);
	}
}

static void a_stream_that_is_gone(void **state)
{
	(void)state;
	struct world w;
	struct stream_parts column;
	world_open(&w);
	streams_column(&column, &stream, STREAM_MADE);
	rig_cell_delete(&w.rig, TABLE_STREAMS, &w.streams.parts, &column.parts,
			store_stamp(w.rig.store));
	EXPECT(&w, 4, STREAM "1 property sealed: the stream is not there whose bytes are in blocks",
	       "chunk_tail: tenant t stream " ADDRESS ": the stream is not there whose 1 chunk "
	       "waits");
}

static void names_of_another_stream(void **state)
{
	(void)state;
	struct world w;
	struct stream_parts column;
	struct stream_made made = {.id = stream, .made_ms = T0};
	struct buf value;
	world_open(&w);
	made.id.names.name = SLICE("/var/log/b");
	buf_init(&value, 4096);
	stream_made_encode(&made, &value);
	streams_column(&column, &stream, STREAM_MADE);
	rig_cell_put(&w.rig, TABLE_STREAMS, &w.streams.parts, &column.parts, buf_slice(&value),
		     store_stamp(w.rig.store), 0);
	buf_release(&value);
	world_verify(&w);
	assert_non_null(strstr(w.told.data, STREAM "1 property made: it cannot be read: its names "
						   "are not those of its column\n"));
	world_close(&w);
}

/* More is said to be in blocks than is: in front, between, behind. */
static void ranges_that_are_in_no_block(void **state)
{
	(void)state;
	struct world w;
	struct offsets sealed = {.list = NULL};
	struct buf value;
	world_open(&w);
	offsets_add(&sealed, 0, BLOCK_BYTES + 1);
	offsets_add(&sealed, 100, 200);
	buf_init(&value, 100);
	stream_sealed_encode(&sealed, &value);
	stream_rig_put(&w.rig, &stream, STREAM_SEALED, buf_slice(&value), store_stamp(w.rig.store));
	offsets_release(&sealed);
	buf_release(&value);
	EXPECT(&w, 0, STREAM "1 property sealed: the bytes 37 to 38 are in no block\n",
	       STREAM "1 property sealed: the bytes 100 to 200 are in no block\n");
}

/* ---- How far lines are read ------------------------------------------------------------------ */

static void more_is_read_than_is_held(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_put_demux(&w, ALL_BYTES + 1);
	EXPECT(&w, 0,
	       "demux: tenant t, names h1/c1/acc//var/log/a: of incarnation 0000000000000001 the "
	       "bytes 0 to 55 are read and not held\n");
}

static void a_state_that_cannot_be_read(void **state)
{
	(void)state;
	struct world w;
	struct stream_parts column;
	world_open(&w);
	demux_column(&column, &stream.names);
	world_flip(&w, TABLE_DEMUX, &w.streams.parts, &column.parts, 0);
	EXPECT(&w, 0, "demux: tenant t, names h1/c1/acc//var/log/a: it cannot be read: ");
}

static void world_put_note(struct world *w, uint64_t column_says, uint64_t value_says)
{
	struct stream_parts column;
	struct buf value;
	buf_init(&value, 100);
	stream_deleted_encode(value_says, &value);
	streams_deleted_column(&column, &stream, column_says);
	rig_cell_put(&w->rig, TABLE_STREAMS, &w->streams.parts, &column.parts, buf_slice(&value),
		     store_stamp(w->rig.store), 0);
	buf_release(&value);
}

static void a_deletion_of_two_offsets(UNUSED void **state)
{
	struct world w;
	world_open(&w);
	world_put_note(&w, 2, 1);
	EXPECT(&w, 0,
	       "streams: tenant t, names h1/c1/acc//var/log/a incarnation 1 property "
	       "deleted.0000000000000002: it cannot be read: damaged data\n");
}

/* What is below what is kept may be read and gone, and blocks of it may still be there. */
static void what_has_gone_is_no_fault(void **state)
{
	(void)state;
	struct world w;
	struct stream_kept kept = {.from = BLOCK_BYTES};
	struct buf value;
	world_open(&w);
	offsets_add(&kept.going, 0, BLOCK_BYTES);
	buf_init(&value, 100);
	stream_kept_encode(&kept, &value);
	stream_rig_put(&w.rig, &stream, STREAM_KEPT, buf_slice(&value), store_stamp(w.rig.store));
	buf_clear(&value);
	stream_deleted_encode(BLOCK_BYTES - 1, &value); /* as versions before wrote it */
	stream_rig_put(&w.rig, &stream, STREAM_DELETED, buf_slice(&value),
		       store_stamp(w.rig.store));
	world_put_note(&w, BLOCK_BYTES, BLOCK_BYTES);
	world_verify(&w);
	assert_string_equal(w.told.data, "");
	assert_int_equal(w.verify.orphans, 0);
	world_remove_log(&w, TABLE_CHUNK_SINK, &w.sink.parts, &w.block.column);
	world_verify(&w);
	assert_string_equal(w.told.data, "");
	offsets_release(&kept.going);
	buf_release(&value);
	world_close(&w);
}

int main(void)
{
	engine = engine_lmdb("stream-verify", 0, 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_wrong),
		cmocka_unit_test(a_chunk_with_a_flipped_bit),
		cmocka_unit_test(a_damaged_chunk_is_listed),
		cmocka_unit_test(a_block_with_a_flipped_bit),
		cmocka_unit_test(a_block_that_is_gone),
		cmocka_unit_test(a_block_that_is_gone_is_a_hole),
		cmocka_unit_test(a_chunk_that_does_not_unpack),
		cmocka_unit_test(a_block_of_no_range_is_left_over),
		cmocka_unit_test(rows_of_streams_that_are_not_there),
		cmocka_unit_test(heads_that_are_gone),
		cmocka_unit_test(heads_that_cannot_be_read),
		cmocka_unit_test(heads_that_say_something_else),
		cmocka_unit_test(a_receipt_that_was_another),
		cmocka_unit_test(a_filter_that_lacks_a_word),
		cmocka_unit_test(a_head_without_a_block_is_left_over),
		cmocka_unit_test(what_is_said_of_a_stream_and_cannot_be_read),
		cmocka_unit_test(a_stream_that_is_gone),
		cmocka_unit_test(names_of_another_stream),
		cmocka_unit_test(ranges_that_are_in_no_block),
		cmocka_unit_test(more_is_read_than_is_held),
		cmocka_unit_test(a_state_that_cannot_be_read),
		cmocka_unit_test(a_deletion_of_two_offsets),
		cmocka_unit_test(what_has_gone_is_no_fault),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
