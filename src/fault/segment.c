#include "fault/segment.h"

#include "fault/pack.h"
#include "base/put.h"
#include "words/words.h"

enum {
	SEGMENT_VERSION = 1,
	RUN_VERSION = 1,
	RUN_REWRITTEN = 2,
	ARENA_MAX_BYTES = 3 * FAULT_DIRECTORY_MAX_BYTES,
};

/* ---- Planning -------------------------------------------------------------------------------- */

/* Qsort has no argument of the caller. */
struct segment_place {
	const struct fault_sealed *report;
	uint32_t place;
};

/* By group; within a group as they came. */
static int segment_compare(const void *a, const void *b)
{
	const struct segment_place *x = a, *y = b;
	int order = slice_compare(x->report->arrival.facts.texts[FAULT_GROUP],
				  y->report->arrival.facts.texts[FAULT_GROUP]);
	return order ? order : (x->place > y->place) - (x->place < y->place);
}

static bool segment_is_full(const struct fault_block *block, uint64_t body_bytes)
{
	return block->count == FAULT_BLOCK_REPORTS ||
	       (block->count && block->body_bytes + body_bytes > FAULT_BLOCK_BYTES);
}

/* Fills in blocks, and where each report lies, by `order`, body_bytes and what a block may have. */
static void segment_cut(struct fault_segment *segment)
{
	for (uint32_t i = 0; i < segment->count; i++) {
		struct fault_sealed *report = &segment->reports[segment->order[i]];
		struct fault_block *block = &segment->blocks[segment->block_count];
		if (!i || segment_is_full(block - 1, report->arrival.body_bytes)) {
			*block++ = (struct fault_block){.first = i};
			segment->block_count++;
		}
		block--;
		report->block = (uint32_t)segment->block_count - 1;
		report->at = (uint32_t)block->body_bytes;
		block->body_bytes += report->arrival.body_bytes;
		block->count++;
	}
}

static int segment_alloc(struct fault_segment *segment, size_t count)
{
	size_t room = count + 1;
	segment->reports = arena_alloc(&segment->arena, room * sizeof(*segment->reports));
	segment->order = arena_alloc(&segment->arena, room * sizeof(*segment->order));
	segment->blocks = arena_alloc(&segment->arena, room * sizeof(*segment->blocks));
	return segment->reports && segment->order && segment->blocks ? 0 : ERR_LIMIT;
}

void fault_segment_plan(struct fault_segment *segment, struct fault_sealed *reports, size_t count)
{
	ASSERT(count <= FAULT_RUN_REPORTS);
	struct segment_place *places = mem_alloc_array(count, sizeof(*places));
	*segment = (struct fault_segment){.dictionary = FAULT_DICTIONARY_SHIPPED, .count = count};
	arena_init(&segment->arena, ARENA_MAX_BYTES);
	int err = segment_alloc(segment, count);
	ASSERT(!err); /* some few numbers of each report */
	for (size_t i = 0; i < count; i++) {
		segment->reports[i] = reports[i];
		places[i] = (struct segment_place){&segment->reports[i], (uint32_t)i};
	}
	qsort(places, count, sizeof(*places), segment_compare);
	for (size_t i = 0; i < count; i++)
		segment->order[i] = places[i].place;
	segment_cut(segment);
	mem_free(places);
}

void fault_segment_release(struct fault_segment *segment)
{
	arena_release(&segment->arena);
	buf_release(&segment->bytes);
	*segment = (struct fault_segment){0};
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* A text of all reports: the different ones, then for each report which. */
struct segment_texts {
	struct slice *list;
	uint32_t *slots; /* open addressing: place in the list and 1; 0: free */
	size_t count;
};
enum { TEXT_SLOTS = 2 * FAULT_RUN_REPORTS };

/* The place of a text in the list, and 1. */
static uint32_t segment_enter(struct segment_texts *texts, struct slice text)
{
	size_t at = hash64(text.data, text.len, 0) & (TEXT_SLOTS - 1);
	for (; texts->slots[at]; at = (at + 1) & (TEXT_SLOTS - 1))
		if (slice_equal(texts->list[texts->slots[at] - 1], text))
			return texts->slots[at];
	texts->list[texts->count++] = text;
	return texts->slots[at] = (uint32_t)texts->count;
}

static void segment_put_texts(const struct fault_segment *segment, enum fault_text which,
			      struct segment_texts *texts, struct buf *out)
{
	uint32_t *places = mem_alloc_array(segment->count, sizeof(*places));
	texts->count = 0;
	memset(texts->slots, 0, TEXT_SLOTS * sizeof(*texts->slots));
	for (size_t i = 0; i < segment->count; i++) {
		struct slice text = segment->reports[i].arrival.facts.texts[which];
		places[i] = text.len ? segment_enter(texts, text) : 0;
	}
	buf_put_varint(out, texts->count);
	for (size_t i = 0; i < texts->count; i++)
		buf_put_text(out, texts->list[i]);
	for (size_t i = 0; i < segment->count; i++)
		buf_put_varint(out, places[i]);
	mem_free(places);
}

/* Numbers that may be -1. */
static void segment_put_fact(int64_t number, struct buf *out)
{
	buf_put_varint(out, (uint64_t)number + 1);
}

static void segment_put_reports(const struct fault_segment *segment, struct buf *out)
{
	uint64_t sequence = 0, date_us = 0;
	for (size_t i = 0; i < segment->count; i++) {
		buf_put_varint(out, segment->reports[i].sequence - sequence);
		sequence = segment->reports[i].sequence;
	}
	for (size_t i = 0; i < segment->count; i++) {
		buf_put_varint(out, (uint64_t)segment->reports[i].arrival.date_us - date_us);
		date_us = (uint64_t)segment->reports[i].arrival.date_us;
	}
	for (size_t i = 0; i < segment->count; i++)
		buf_append(out, &segment->reports[i].arrival.digest, 16);
	for (size_t i = 0; i < segment->count; i++)
		buf_put_text(out, segment->reports[i].arrival.id);
	for (size_t i = 0; i < segment->count; i++)
		buf_put_varint(out, segment->reports[i].arrival.body_bytes);
	for (size_t i = 0; i < segment->count; i++)
		segment_put_fact(segment->reports[i].arrival.facts.duration_us, out);
	for (size_t i = 0; i < segment->count; i++)
		segment_put_fact(segment->reports[i].arrival.facts.statements, out);
	for (size_t i = 0; i < segment->count; i++)
		segment_put_fact(segment->reports[i].arrival.facts.attachments, out);
}

static void segment_put_all(const struct fault_segment *segment, struct buf *out)
{
	struct segment_texts texts = {
		.list = mem_alloc_array(segment->count, sizeof(*texts.list)),
		.slots = mem_alloc_array(TEXT_SLOTS, sizeof(*texts.slots)),
	};
	buf_put_varint(out, segment->dictionary);
	buf_put_varint(out, segment->count);
	segment_put_reports(segment, out);
	buf_put_varint(out, FAULT_TEXTS);
	for (enum fault_text t = 0; t < FAULT_TEXTS; t++)
		segment_put_texts(segment, t, &texts, out);
	for (size_t i = 0; i < segment->count; i++)
		buf_put_varint(out, segment->order[i]);
	buf_put_varint(out, segment->block_count);
	for (size_t i = 0; i < segment->block_count; i++)
		buf_put_varint(out, segment->blocks[i].count);
	mem_free(texts.list);
	mem_free(texts.slots);
}

void fault_segment_encode(const struct fault_segment *segment, struct buf *out)
{
	struct buf raw;
	buf_init(&raw, FAULT_DIRECTORY_MAX_BYTES);
	segment_put_all(segment, &raw);
	ASSERT(!raw.failed); /* facts are at most some KB a report */
	buf_append_char(out, SEGMENT_VERSION);
	buf_put_varint(out, FAULT_DICTIONARY_SHIPPED);
	buf_put_varint(out, raw.len);
	fault_pack(buf_slice(&raw), out);
	buf_release(&raw);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Sums of what is written as differences never come round. */
static uint64_t segment_take_step(struct cursor *c, uint64_t before)
{
	uint64_t step = cursor_varint(c);
	if (step > UINT64_MAX - before)
		c->bad = true;
	return before + step;
}

static int64_t segment_take_fact(struct cursor *c)
{
	uint64_t number = cursor_varint(c);
	if (number > (uint64_t)INT64_MAX + 1)
		c->bad = true;
	return (int64_t)(number - 1);
}

static void segment_take_order(struct cursor *c, struct fault_segment *segment)
{
	uint64_t sequence = 0, date_us = 0;
	for (size_t i = 0; i < segment->count; i++) {
		uint64_t before = sequence;
		sequence = segment_take_step(c, before);
		segment->reports[i].sequence = sequence;
		c->bad = c->bad || (i && sequence == before);
	}
	for (size_t i = 0; i < segment->count; i++) {
		date_us += cursor_varint(c);
		segment->reports[i].arrival.date_us = (int64_t)date_us;
		c->bad = c->bad || (i && segment->reports[i].arrival.date_us <
						 segment->reports[i - 1].arrival.date_us);
	}
}

static void segment_take_reports(struct cursor *c, struct fault_segment *segment)
{
	struct fault_sealed *reports = segment->reports;
	segment_take_order(c, segment);
	for (size_t i = 0; i < segment->count; i++) {
		reports[i].arrival.digest.low = cursor_u64(c);
		reports[i].arrival.digest.high = cursor_u64(c);
	}
	for (size_t i = 0; i < segment->count; i++) {
		reports[i].arrival.id = cursor_text(c, FAULT_ID_MAX_BYTES);
		c->bad = c->bad || !reports[i].arrival.id.len;
	}
	for (size_t i = 0; i < segment->count; i++) {
		reports[i].arrival.body_bytes = cursor_varint(c);
		c->bad = c->bad || reports[i].arrival.body_bytes > FAULT_BODY_MAX_BYTES;
	}
	for (size_t i = 0; i < segment->count; i++)
		reports[i].arrival.facts.duration_us = segment_take_fact(c);
	for (size_t i = 0; i < segment->count; i++)
		reports[i].arrival.facts.statements = segment_take_fact(c);
	for (size_t i = 0; i < segment->count; i++)
		reports[i].arrival.facts.attachments = larger_of(segment_take_fact(c), 0);
}

static void segment_take_texts(struct cursor *c, struct fault_segment *segment,
			       enum fault_text which, struct slice *list)
{
	uint64_t count = cursor_varint(c);
	if (count > segment->count)
		c->bad = true;
	for (uint64_t i = 0; i < count && !c->bad; i++)
		list[i] = cursor_text(c, fault_text_max_bytes(which));
	for (size_t i = 0; i < segment->count && !c->bad; i++) {
		uint64_t place = cursor_varint(c);
		c->bad = c->bad || place > count;
		segment->reports[i].arrival.facts.texts[which] =
			place && !c->bad ? list[place - 1] : SLICE("");
	}
}

/* Each report stands in the order once. */
static void segment_take_places(struct cursor *c, struct fault_segment *segment)
{
	bool *seen = mem_zalloc(segment->count + 1);
	for (size_t i = 0; i < segment->count && !c->bad; i++) {
		uint64_t place = cursor_varint(c);
		c->bad = c->bad || place >= segment->count || seen[place];
		if (c->bad)
			break;
		seen[place] = true;
		segment->order[i] = (uint32_t)place;
	}
	mem_free(seen);
}

/* Blocks are cut by their counts, not as this program would cut them. */
static void segment_take_blocks(struct cursor *c, struct fault_segment *segment)
{
	uint64_t count = cursor_varint(c), at = 0;
	if (count > segment->count)
		c->bad = true;
	for (uint64_t b = 0; b < count && !c->bad; b++) {
		struct fault_block *block = &segment->blocks[b];
		uint64_t reports = cursor_varint(c);
		*block = (struct fault_block){.first = (uint32_t)at};
		c->bad = c->bad || !reports || reports > segment->count - at;
		for (uint64_t i = 0; i < reports && !c->bad; i++) {
			struct fault_sealed *report = &segment->reports[segment->order[at++]];
			report->block = (uint32_t)b;
			report->at = (uint32_t)block->body_bytes;
			block->body_bytes += report->arrival.body_bytes;
			block->count++;
			c->bad = block->body_bytes > FAULT_BODY_MAX_BYTES;
		}
	}
	c->bad = c->bad || at != segment->count;
	segment->block_count = c->bad ? 0 : (size_t)count;
}

static int segment_take_all(struct cursor *c, struct fault_segment *segment)
{
	segment->dictionary = cursor_varint(c);
	uint64_t count = cursor_varint(c);
	if (c->bad || count > FAULT_RUN_REPORTS)
		return ERR_DAMAGED;
	segment->count = (size_t)count;
	struct slice *list = arena_alloc(&segment->arena, ((size_t)count + 1) * sizeof(*list));
	int err = segment_alloc(segment, segment->count);
	if (err || !list)
		return ERR_LIMIT;
	memset(segment->reports, 0, segment->count * sizeof(*segment->reports));
	segment_take_reports(c, segment);
	uint64_t texts = cursor_varint(c);
	if (!c->bad && texts > FAULT_TEXTS)
		return ERR_VERSION;
	for (enum fault_text t = 0; t < FAULT_TEXTS; t++) {
		for (size_t i = 0; i < segment->count; i++)
			segment->reports[i].arrival.facts.texts[t] = SLICE("");
		if (t < texts)
			segment_take_texts(c, segment, t, list);
	}
	segment_take_places(c, segment);
	if (!c->bad)
		segment_take_blocks(c, segment);
	for (size_t i = 0; i < segment->count; i++) {
		segment->reports[i].arrival.packed = SLICE("");
		segment->reports[i].arrival.dictionary = segment->dictionary;
	}
	return c->bad ? ERR_DAMAGED : 0;
}

int fault_segment_decode(struct slice bytes, struct fault_segment *segment)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	*segment = (struct fault_segment){0};
	arena_init(&segment->arena, ARENA_MAX_BYTES);
	buf_init(&segment->bytes, FAULT_DIRECTORY_MAX_BYTES);
	uint8_t version = cursor_u8(&c);
	uint64_t dictionary = cursor_varint(&c), want = cursor_varint(&c);
	if (!c.bad && version != SEGMENT_VERSION)
		return ERR_VERSION;
	if (c.bad || want > FAULT_DIRECTORY_MAX_BYTES)
		return ERR_DAMAGED;
	const struct slice packed = {(const char *)c.at, cursor_left(&c)};
	int err = fault_unpack(dictionary, packed, want, &segment->bytes);
	if (err)
		return err;
	c = cursor_of(segment->bytes.data, segment->bytes.len);
	return segment_take_all(&c, segment);
}

size_t fault_segment_find(const struct fault_segment *segment, uint64_t sequence)
{
	size_t low = 0, high = segment->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (segment->reports[middle].sequence < sequence)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t fault_segment_find_date(const struct fault_segment *segment, int64_t date_us)
{
	size_t low = 0, high = segment->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (segment->reports[middle].arrival.date_us < date_us)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- Filters --------------------------------------------------------------------------------- */

void fault_filters_begin(uint64_t first, uint64_t count, struct buf *out)
{
	uint64_t rules = words_rules() ^ FAULT_FILTERS_FORMAT;
	buf_append(out, &rules, 8);
	buf_put_varint(out, first);
	buf_put_varint(out, count);
}

void fault_filters_put(struct slice filter, struct buf *out)
{
	buf_put_text(out, filter);
}

/* Earlier versions wrote one filter for all parts. */
static struct slice filters_wrap(struct slice filter, struct arena *arena)
{
	uint8_t head[11] = {0};
	size_t len = 1 + varint_put(head + 1, filter.len);
	char *to = filter.len ? arena_alloc(arena, len + filter.len) : NULL;
	if (!to)
		return filter.len ? (struct slice){NULL, 0} : SLICE("");
	memcpy(to, head, len);
	memcpy(to + len, filter.data, filter.len);
	return (struct slice){to, len + filter.len};
}

int fault_filters_take(struct slice bytes, uint64_t blocks, uint64_t *next, struct slice *list,
		       struct arena *arena)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint64_t rules = cursor_u64(&c), first = cursor_varint(&c), count = cursor_varint(&c);
	bool one = rules == words_rules();
	bool known = one || rules == (words_rules() ^ FAULT_FILTERS_FORMAT);
	if (!c.bad && (!known || first != *next))
		return 0;
	if (c.bad || first > blocks || count > blocks - first)
		return ERR_DAMAGED;
	for (uint64_t i = 0; i < count; i++) {
		struct slice filter = cursor_text(&c, FAULT_FILTERS_MAX_BYTES);
		if (c.bad)
			return ERR_DAMAGED;
		list[first + i] = one ? filters_wrap(filter, arena) : arena_copy(arena, filter);
		if (!list[first + i].data)
			return ERR_LIMIT;
	}
	*next = first + count;
	return 0;
}

/* ---- The cell of a run ----------------------------------------------------------------------- */

void fault_run_cell_encode(const struct fault_run_cell *cell, struct buf *out)
{
	buf_append_char(out, RUN_VERSION);
	buf_append_char(out, cell->rewritten ? RUN_REWRITTEN : cell->cleared);
	buf_append(out, &cell->name, 8);
	buf_put_varint(out, cell->chunks);
	buf_put_varint(out, cell->blocks);
	buf_put_varint(out, cell->reports);
	buf_append(out, &cell->first_us, 8);
	buf_append(out, &cell->last_us, 8);
	buf_put_varint(out, cell->bytes);
}

int fault_run_cell_decode(struct slice bytes, struct fault_run_cell *cell)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c);
	if (!c.bad && version != RUN_VERSION)
		return ERR_VERSION;
	uint8_t state = cursor_u8(&c);
	cell->cleared = state != 0;
	cell->rewritten = state == RUN_REWRITTEN;
	cell->name = cursor_u64(&c);
	cell->chunks = cursor_varint(&c);
	cell->blocks = cursor_varint(&c);
	cell->reports = cursor_varint(&c);
	cell->first_us = (int64_t)cursor_u64(&c);
	cell->last_us = (int64_t)cursor_u64(&c);
	cell->bytes = cursor_varint(&c);
	bool right = !c.bad && cell->reports <= FAULT_RUN_REPORTS &&
		     cell->blocks <= cell->reports && cell->first_us <= cell->last_us &&
		     cell->first_us > INT64_MIN && cell->last_us < INT64_MAX;
	return right ? 0 : ERR_DAMAGED;
}
