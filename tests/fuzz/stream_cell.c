/* Any bytes as what is stored of streams, and as the address of one: what can be read is the same
 * when it is written and read again. */
#include "stream/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char numbers[24] = {0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 6};

static void read_made(struct slice value)
{
	const struct store_cell cell = {.column = {{SLICE("n"), {numbers, 8}, SLICE("made")}},
					.value = value};
	struct stream_made made, again;
	struct errbuf e = {""};
	struct buf out;
	if (stream_made_decode(&cell, &made) || stream_names_check(&made.id.names, &e))
		return;
	buf_init(&out, STREAM_ADDRESS_MAX_BYTES);
	stream_made_encode(&made, &out);
	const struct store_cell written = {.column = cell.column, .value = buf_slice(&out)};
	ASSERT(!stream_made_decode(&written, &again));
	ASSERT(stream_names_equal(&made.id.names, &again.id.names));
	ASSERT(made.made_ms == again.made_ms && made.here == again.here &&
	       made.appended == again.appended);
	buf_release(&out);
}

static void read_sealed(struct slice value)
{
	struct offsets sealed = {.list = NULL}, again = {.list = NULL};
	struct buf out;
	buf_init(&out, 1 << 22);
	if (!stream_sealed_decode(value, &sealed)) {
		stream_sealed_encode(&sealed, &out);
		ASSERT(!stream_sealed_decode(buf_slice(&out), &again));
		ASSERT(sealed.count == again.count);
		ASSERT(!sealed.count ||
		       memcmp(sealed.list, again.list, sealed.count * sizeof(*sealed.list)) == 0);
	}
	offsets_release(&sealed);
	offsets_release(&again);
	buf_release(&out);
}

static void read_lines(struct slice value)
{
	struct chunk_lines lines, again;
	struct arena arena;
	struct buf out;
	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 20);
	if (!chunk_lines_decode(value, &arena, &lines)) {
		chunk_lines_encode(&lines, &out);
		ASSERT(!chunk_lines_decode(buf_slice(&out), &arena, &again));
		ASSERT(lines.count == again.count && lines.first_ms == again.first_ms &&
		       lines.last_ms == again.last_ms);
		ASSERT(lines.before.left == again.before.left &&
		       lines.behind.ms == again.behind.ms);
		ASSERT(lines.receipt_count == again.receipt_count);
		for (size_t i = 0; i < lines.receipt_count; i++)
			ASSERT(lines.receipts[i].offset == again.receipts[i].offset &&
			       lines.receipts[i].received_ms == again.receipts[i].received_ms);
	}
	buf_release(&out);
	arena_release(&arena);
}

static void read_words(struct slice value)
{
	struct slice filter;
	const uint64_t hash = 1;
	if (!chunk_words_decode(value, &filter))
		(void)words_filter_has(filter, &hash, 1);
	/* The same as a filter, whatever rules of letters it names. */
	(void)words_filter_has(value, &hash, 1);
}

static void read_chunk(struct slice value)
{
	const struct store_cell cell = {
		.column = {{{numbers, 8}, {numbers + 8, 8}, {numbers + 16, 8}}}, .value = value};
	int64_t received_ms;
	struct chunk_frame frame;
	int err = chunk_cell_decode(&cell, &received_ms, &frame);
	ASSERT(!err || err == ERR_DAMAGED || err == ERR_VERSION);
}

static void read_address(struct slice text)
{
	struct arena arena;
	struct buf out;
	struct errbuf e = {""};
	struct stream_names names;
	uint64_t incarnation;
	arena_init(&arena, 1 << 20);
	buf_init(&out, STREAM_ADDRESS_MAX_BYTES);
	if (!stream_address_parse(text, &arena, &names, &incarnation, &e)) {
		stream_address_put(&names, incarnation, &out);
		ASSERT(slice_equal(buf_slice(&out), text));
	} else {
		ASSERT(e.text[0]);
	}
	buf_release(&out);
	arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = {size ? (const char *)data : "", size};
	read_made(bytes);
	read_sealed(bytes);
	read_chunk(bytes);
	read_lines(bytes);
	read_words(bytes);
	read_address(bytes);
	return 0;
}
