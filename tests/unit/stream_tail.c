/* Readers of lines as they come: against a model that knows all bytes, with chunks that are cut
 * anywhere, overlap and leave holes; and what a reader keeps that takes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/random.h"
#include "stream/tail_private.h"

enum {
	TEXT_BYTES = 3000,
	STREAMS = 3,
	BIG_BYTES = 900 << 10,
	RECEIVED_MS = 1000,
};

static struct task_queue queue;
static struct stream_tail *tail;

static int set_up(void **state)
{
	(void)state;
	task_queue_init(&queue);
	tail = stream_tail_new(&queue.executor, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	while (!stream_tail_is_over(tail))
		task_queue_wait(&queue);
	stream_tail_free(tail);
	task_queue_release(&queue);
	return 0;
}

static struct stream_id id_of(const char *name)
{
	return (struct stream_id){
		.tenant = SLICE("t"),
		.names = {SLICE("host"), SLICE("c"), SLICE("log"), slice_of(name)},
		.incarnation = 1};
}

static void write_chunk(const char *name, uint64_t begin, struct slice data)
{
	struct stream_id id = id_of(name);
	const struct chunk_fields fields = {.names = id.names,
					    .incarnation = 1,
					    .sequence_id = begin + data.len,
					    .data_bytes = (uint32_t)data.len,
					    .lines = true};
	struct chunk_frame frame;
	const char *why;
	struct buf bytes;
	buf_init(&bytes, CHUNK_FRAME_MAX_BYTES);
	int err = chunk_frame_put(&fields, &(struct chunk_data){.data = data}, 1, &bytes);
	assert_int_equal(err, 0);
	struct slice rest = buf_slice(&bytes);
	assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_FOUND);
	stream_tail_written(tail, &id, &frame, RECEIVED_MS);
	buf_release(&bytes);
}

static void ready(void *owner)
{
	if (owner)
		++*(unsigned *)owner;
}

static struct tail_reader *open_reader(const char *name, const char *q)
{
	struct stream_tail_rules rules = {.tenant = SLICE("t"), .q = slice_of(q), .ready = ready};
	struct tail_reader *reader;
	struct errbuf e = {""};
	if (name)
		rules.names.name = slice_of(name);
	int err = stream_tail_open(tail, &rules, &reader, &e);
	assert_int_equal(err, 0);
	return reader;
}

/* The next news; waits for what a worker has. False: it has told all. */
static bool take(struct tail_reader *reader, struct stream_news *news)
{
	while (!stream_tail_next(reader, news)) {
		if (!reader->working)
			return false;
		task_queue_wait(&queue);
	}
	return true;
}

/* ---- Against a model ------------------------------------------------------------------------- */

struct model_stream {
	char name[8], text[TEXT_BYTES];
	bool seen[TEXT_BYTES];
	size_t at, run; /* `run`: the beginning of the line at `at` */
	bool begun;
};

struct model {
	struct model_stream streams[STREAMS];
	struct random random;
	struct buf expected, told; /* `NAME OFFSET TEXT` and a zero, a line */
	uint64_t missed;
};

static void model_tell(struct model *model, const struct model_stream *stream, size_t begin,
		       size_t end)
{
	while (end > begin && stream->text[end - 1] == '\n')
		end--; /* a text has no empty lines, so that there is one at most */
	buf_printf(&model->expected, "%s %zu %.*s", stream->name, begin, (int)(end - begin),
		   stream->text + begin);
	buf_append_char(&model->expected, 0);
}

static void model_write(struct model *model, struct model_stream *stream, size_t begin, size_t end)
{
	write_chunk(stream->name, begin, (struct slice){stream->text + begin, end - begin});
	for (size_t i = begin; i < end && i < stream->at && stream->begun; i++)
		model->missed += !stream->seen[i];
	for (size_t i = begin; i < end; i++)
		stream->seen[i] = true;
	if (stream->begun && begin > stream->at && stream->run < stream->at)
		model_tell(model, stream, stream->run, stream->at);
	if (!stream->begun || begin > stream->at)
		stream->at = stream->run = begin;
	stream->begun = true;
	for (; stream->at < end; stream->at++) {
		if (stream->text[stream->at] != '\n')
			continue;
		model_tell(model, stream, stream->run, stream->at + 1);
		stream->run = stream->at + 1;
	}
}

static void model_fill(struct model *model, unsigned seed)
{
	random_init(&model->random, seed);
	for (size_t s = 0; s < STREAMS; s++) {
		struct model_stream *stream = &model->streams[s];
		snprintf(stream->name, sizeof(stream->name), "s%zu", s);
		for (size_t i = 0; i < TEXT_BYTES; i++) {
			bool may_end = i && stream->text[i - 1] != '\n';
			stream->text[i] = may_end && !random_below(&model->random, 20)
						  ? '\n'
						  : (char)('a' + random_below(&model->random, 26));
		}
	}
}

static uint64_t model_take(struct model *model, struct tail_reader *reader)
{
	struct stream_news news;
	uint64_t missed = 0;
	while (take(reader, &news)) {
		missed += news.missed_bytes;
		if (!news.line)
			continue;
		const struct line_found *line = news.line;
		const char *name = strstr((const char *)line->place.stream.data, "/s") + 1;
		buf_printf(&model->told, "%.2s %llu %.*s", name,
			   (unsigned long long)line->place.offset, (int)line->text.len,
			   line->text.data);
		buf_append_char(&model->told, 0);
		assert_int_equal(line->place.ms, RECEIVED_MS);
	}
	return missed;
}

static void lines_of_chunks_that_are_cut_anywhere(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 300; seed++) {
		struct model *model = mem_zalloc(sizeof(*model));
		uint64_t missed = 0;
		model_fill(model, seed);
		buf_init(&model->expected, 1 << 20);
		buf_init(&model->told, 1 << 20);
		struct tail_reader *reader = open_reader(NULL, "");
		for (int i = 0; i < 60; i++) {
			struct model_stream *stream =
				&model->streams[random_below(&model->random, STREAMS)];
			size_t begin = stream->at;
			if (!random_below(&model->random, 4))
				begin = random_below(&model->random, TEXT_BYTES - 1);
			size_t most = smaller_of(TEXT_BYTES - begin, 150);
			if (most)
				model_write(model, stream, begin,
					    begin + 1 + random_below(&model->random, most));
			if (!random_below(&model->random, 3))
				missed += model_take(model, reader);
		}
		missed += model_take(model, reader);
		assert_int_equal(model->told.len, model->expected.len);
		assert_memory_equal(model->told.data, model->expected.data, model->told.len);
		assert_int_equal(missed, model->missed);
		stream_tail_close(&reader);
		buf_release(&model->expected);
		buf_release(&model->told);
		mem_free(model);
	}
}

/* ---- What is kept ---------------------------------------------------------------------------- */

/* Bytes of a chunk that takes about as much as it has. */
static void fill_big(char *to, unsigned seed)
{
	struct random random;
	random_init(&random, seed);
	for (size_t i = 0; i < BIG_BYTES; i++)
		to[i] = (char)(128 + random_below(&random, 128));
	to[BIG_BYTES - 1] = '\n';
}

static void a_ring_has_so_many_chunks(void **state)
{
	struct tail_reader *reader = open_reader(NULL, "");
	struct stream_news news;
	const uint64_t count = 3 * STREAM_TAIL_RING_CHUNKS;
	(void)state;
	for (uint64_t i = 0; i < count; i++)
		write_chunk("a", 4 * i, SLICE("abc\n"));
	/* The first one has gone to a worker. */
	assert_true(take(reader, &news));
	assert_int_equal(news.line->place.offset, 0);
	assert_true(take(reader, &news));
	assert_null(news.line);
	assert_int_equal(news.missed_bytes, 4 * (count - 1 - STREAM_TAIL_RING_CHUNKS));
	for (uint64_t i = count - STREAM_TAIL_RING_CHUNKS; i < count; i++) {
		assert_true(take(reader, &news));
		assert_int_equal(news.line->place.offset, 4 * i);
	}
	assert_false(take(reader, &news));
	write_chunk("a", 4 * count, SLICE("new\n"));
	assert_true(take(reader, &news));
	assert_int_equal(news.line->place.offset, 4 * count);
	stream_tail_close(&reader);
}

static void a_ring_has_so_many_bytes(void **state)
{
	enum { CHUNKS = 15 };
	struct tail_reader *reader = open_reader(NULL, "");
	struct stream_news news;
	char *data = mem_alloc(BIG_BYTES);
	uint64_t begin = 0;
	(void)state;
	for (unsigned i = 0; i < CHUNKS; i++) {
		fill_big(data, i);
		write_chunk("a", (uint64_t)i * BIG_BYTES, (struct slice){data, BIG_BYTES});
		assert_true(reader->ring_bytes <= STREAM_TAIL_RING_BYTES);
	}
	/* zstd makes each an eighth smaller, since its bytes have seven bits. */
	uint64_t kept = reader->ring_count;
	assert_int_equal(kept, 10);
	while (take(reader, &news)) {
		begin += news.missed_bytes;
		if (news.line) {
			assert_int_equal(news.line->place.offset, begin);
			begin += news.line->bytes;
		} else { /* all but the first, which a worker had, and those in the ring */
			assert_int_equal(news.missed_bytes, (CHUNKS - 1 - kept) * BIG_BYTES);
		}
	}
	assert_int_equal(begin, (uint64_t)CHUNKS * BIG_BYTES);
	stream_tail_close(&reader);
	mem_free(data);
}

static void all_rings_have_so_many_bytes(void **state)
{
	enum { READERS = 20, CHUNKS = 12 };
	struct tail_reader *readers[READERS];
	char names[READERS][8], *data = mem_alloc(BIG_BYTES);
	(void)state;
	for (unsigned i = 0; i < READERS; i++) {
		snprintf(names[i], sizeof(names[i]), "%u", i);
		readers[i] = open_reader(names[i], "");
	}
	for (unsigned i = 0; i < READERS * CHUNKS; i++) {
		struct tail_reader *reader = readers[i % READERS];
		fill_big(data, i);
		write_chunk(names[i % READERS], (uint64_t)(i / READERS) * BIG_BYTES,
			    (struct slice){data, BIG_BYTES});
		assert_true(reader->ring_bytes <= STREAM_TAIL_RING_BYTES);
		assert_true(tail->held_bytes <= STREAM_TAIL_ALL_BYTES);
	}
	for (unsigned i = 0; i < READERS; i++) {
		struct stream_news news;
		uint64_t bytes = 0;
		while (take(readers[i], &news))
			bytes += news.line ? news.line->bytes : news.missed_bytes;
		assert_int_equal(bytes, (uint64_t)CHUNKS * BIG_BYTES);
		stream_tail_close(&readers[i]);
	}
	mem_free(data);
}

/* One copy of a chunk is there for all. */
static void readers_share_chunks(void **state)
{
	struct tail_reader *readers[50];
	char *data = mem_alloc(BIG_BYTES);
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(readers); i++)
		readers[i] = open_reader(NULL, "");
	fill_big(data, 1);
	for (uint64_t i = 0; i < 8; i++)
		write_chunk("a", i * BIG_BYTES, (struct slice){data, BIG_BYTES});
	assert_in_range(tail->held_bytes, 1, 8 << 20);
	for (size_t i = 0; i < ARRAY_LEN(readers); i++)
		stream_tail_close(&readers[i]); /* some are at work */
	assert_int_equal(tail->reader_count, 0);
	while (!stream_tail_is_over(tail))
		task_queue_wait(&queue);
	assert_int_equal(tail->held_bytes, 0);
	mem_free(data);
}

/* A reader that has more streams than it may know forgets the quietest, with its open line. */
static void many_streams(void **state)
{
	enum { COUNT = TAIL_STREAMS_MAX + 200 };
	struct tail_reader *reader = open_reader(NULL, "");
	struct stream_news news;
	uint64_t missed = 0, lines = 0;
	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < COUNT; i++) {
			char name[16];
			snprintf(name, sizeof(name), "%u", i);
			write_chunk(name, 3 * round, round ? SLICE("ef\n") : SLICE("abc"));
			while (take(reader, &news)) {
				lines += news.line != NULL;
				missed += news.missed_bytes;
				if (news.line)
					assert_in_range(news.line->bytes, 3, 6);
			}
		}
	}
	/* Each is forgotten before its end comes, since it was quiet for longest. */
	assert_int_equal(lines, COUNT);
	assert_int_equal(missed, 3 * COUNT);
	assert_int_equal(reader->work.streams.count, TAIL_STREAMS_MAX);
	stream_tail_close(&reader);
}

static void many_lines_in_one_chunk(void **state)
{
	struct tail_reader *reader = open_reader(NULL, "");
	struct stream_news news;
	char *data = mem_alloc(BIG_BYTES);
	(void)state;
	memset(data, '\n', BIG_BYTES);
	write_chunk("a", 7, (struct slice){data, BIG_BYTES});
	for (uint64_t i = 0; i < BIG_BYTES; i++) {
		assert_true(take(reader, &news));
		assert_int_equal(news.line->place.offset, 7 + i);
		assert_int_equal(news.line->text.len, 0);
	}
	assert_false(take(reader, &news));
	stream_tail_close(&reader);
	mem_free(data);
}

static void a_chunk_that_does_not_unpack_is_missed(void **state)
{
	struct tail_reader *reader = open_reader(NULL, "");
	struct stream_news news;
	struct stream_id id = id_of("a");
	const struct chunk_fields fields = {
		.names = id.names, .sequence_id = 4, .data_bytes = 4, .lines = true};
	struct chunk_frame frame;
	const char *why;
	struct buf bytes;
	(void)state;
	buf_init(&bytes, 1000);
	assert_int_equal(
		chunk_frame_put(&fields, &(struct chunk_data){.data = SLICE("abc\n")}, 1, &bytes),
		0);
	struct slice rest = buf_slice(&bytes);
	assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_FOUND);
	bytes.data[bytes.len - 1] ^= 1; /* the frame points to it */
	stream_tail_written(tail, &id, &frame, RECEIVED_MS);
	assert_true(take(reader, &news));
	assert_null(news.line);
	assert_int_equal(news.missed_bytes, 4);
	write_chunk("a", 4, SLICE("new\n"));
	assert_true(take(reader, &news));
	assert_int_equal(news.line->place.offset, 4);
	stream_tail_close(&reader);
	buf_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_of_chunks_that_are_cut_anywhere, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_ring_has_so_many_chunks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_ring_has_so_many_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_rings_have_so_many_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(readers_share_chunks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_streams, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_lines_in_one_chunk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_chunk_that_does_not_unpack_is_missed, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
