/* Any bytes as the cells of a sealed run: nothing is read outside, and a directory that is read is
 * the same when it is written and read again. */
#include "fault/pack.h"
#include "base/put.h"
#include "fault/segment.h"
#include "words/filter.h"

enum { FILTERS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_blocks(const struct fault_segment *segment)
{
	size_t count = 0;
	for (size_t b = 0; b < segment->block_count; b++) {
		const struct fault_block *block = &segment->blocks[b];
		for (uint32_t i = 0; i < block->count; i++, count++) {
			const struct fault_sealed *report =
				&segment->reports[segment->order[block->first + i]];
			ASSERT(report->block == b);
			ASSERT(report->at + report->arrival.body_bytes <= block->body_bytes);
		}
	}
	ASSERT(count == segment->count);
}

static void check_same(const struct fault_segment *a, const struct fault_segment *b)
{
	ASSERT(a->count == b->count && a->block_count == b->block_count);
	for (size_t i = 0; i < a->count; i++) {
		const struct fault_sealed *x = &a->reports[i], *y = &b->reports[i];
		ASSERT(x->sequence == y->sequence && x->block == y->block && x->at == y->at);
		ASSERT(x->arrival.date_us == y->arrival.date_us);
		ASSERT(slice_equal(x->arrival.id, y->arrival.id));
		for (size_t t = 0; t < FAULT_TEXTS; t++)
			ASSERT(slice_equal(x->arrival.facts.texts[t], y->arrival.facts.texts[t]));
	}
}

static void check_directory(struct slice bytes)
{
	struct fault_segment segment, again;
	struct buf out;
	buf_init(&out, FAULT_DIRECTORY_MAX_BYTES);
	if (!fault_segment_decode(bytes, &segment)) {
		check_blocks(&segment);
		fault_segment_encode(&segment, &out);
		ASSERT(!out.failed && !fault_segment_decode(buf_slice(&out), &again));
		check_same(&segment, &again);
		fault_segment_release(&again);
	}
	fault_segment_release(&segment);
	buf_release(&out);
}

/* As it lies packed; and what comes out when it is unpacked. */
static void check_both(struct slice bytes)
{
	struct buf packed;
	check_directory(bytes);
	buf_init(&packed, 2 * bytes.len + 1000);
	buf_append_char(&packed, 1);
	buf_put_varint(&packed, FAULT_DICTIONARY_SHIPPED);
	buf_put_varint(&packed, bytes.len);
	fault_pack(bytes, &packed);
	ASSERT(!packed.failed);
	check_directory(buf_slice(&packed));
	buf_release(&packed);
}

/* The bytes are a cell of a run with a few blocks. Each filter that was taken can be asked. */
static void check_filters(struct slice bytes, uint64_t format)
{
	struct slice list[FILTERS] = {{NULL, 0}};
	struct words_term term = {.word_count = 1, .words = {SLICE("word")}};
	const struct words_query query = {&term, 1};
	struct arena arena;
	struct buf cell;
	uint64_t rules = words_rules() ^ format, next = 0;
	arena_init(&arena, FAULT_FILTERS_MAX_BYTES);
	buf_init(&cell, bytes.len + 8);
	buf_append(&cell, &rules, 8);
	buf_append(&cell, bytes.data, bytes.len);
	if (!fault_filters_take(buf_slice(&cell), FILTERS, &next, list, &arena))
		ASSERT(next <= FILTERS);
	buf_release(&cell);
	for (size_t b = 0; b < FILTERS; b++)
		(void)words_filter_parts(list[b], &query);
	arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = {size ? (const char *)data : "", size};
	struct words_term term = {.word_count = 1, .words = {SLICE("word")}};
	const struct words_query query = {&term, 1};
	struct fault_run_cell cell;
	check_both(bytes);
	check_filters(bytes, FAULT_FILTERS_FORMAT);
	check_filters(bytes, 0);
	if (!fault_run_cell_decode(bytes, &cell))
		ASSERT(size > 26);
	ASSERT(size || words_filter_parts(bytes, &query) == WORDS_PARTS_ALL);
	(void)words_filter_parts(bytes, &query);
	return 0;
}
