#include "stream/search.h"

#include <stdlib.h>

#include "base/grow.h"
#include "stream/chunk_reader.h"
#include "stream/heads.h"

enum {
	SEARCH_STREAMS_MAX = 100000,
	SEARCH_BLOCKS_MAX = 1000000,
	SEARCH_NAMES_MAX_BYTES = 256 << 20,
	SEARCH_FOUND_MAX_BYTES = 8 << 20, /* of all texts; fewer lines are given then */
	SEARCH_BLOCK_MAX_BYTES = 16 << 20,
	SEARCH_LOOK_LINES = 1024, /* between two looks at whether it may go on */
};

struct search_stream {
	struct stream_id id;
	struct slice address;
	struct stream_known known;
};

/* Bytes of a stream that are looked at together. */
struct search_part {
	size_t stream;
	uint64_t from, to;         /* offsets at which its lines begin */
	struct chunk_place place;  /* of a block; length 0: it is read as it lies there */
	int64_t first_ms, last_ms; /* of its lines */
};

struct search {
	const struct stream_site *site;
	struct task_queue *queue;
	const struct line_search_rules *rules;
	struct line_search_result *result;
	struct errbuf *e;
	struct search_stream *streams;
	size_t stream_count, stream_room;
	struct search_part *parts;
	size_t part_count, part_room;
	/* A heap: the first is the one that comes last of those that were found. */
	struct line_found *found;
	size_t found_count, limit;
	size_t found_bytes;
	struct line_clock clock;
	struct buf unpacked;
	struct arena arena; /* of the part that is looked at */
	unsigned lines;     /* since the last look at whether it may go on */
};

/* ---- Order ----------------------------------------------------------------------------------- */

int line_place_compare(const struct line_place *a, const struct line_place *b)
{
	if (a->ms != b->ms)
		return a->ms < b->ms ? -1 : 1;
	int order = slice_compare(a->stream, b->stream);
	if (order)
		return order;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

/* In the order that is asked for. */
static int search_compare(const struct search *s, const struct line_place *a,
			  const struct line_place *b)
{
	int order = line_place_compare(a, b);
	return s->rules->oldest_first ? order : -order;
}

static int search_compare_found(const void *a, const void *b, void *owner)
{
	return search_compare(owner, &((const struct line_found *)a)->place,
			      &((const struct line_found *)b)->place);
}

/* By the first line that each can have. */
static int search_compare_parts(const void *a, const void *b, void *owner)
{
	const struct search *s = owner;
	const struct search_part *x = a, *y = b;
	if (s->rules->oldest_first)
		return (x->first_ms > y->first_ms) - (x->first_ms < y->first_ms);
	return (x->last_ms < y->last_ms) - (x->last_ms > y->last_ms);
}

/* ---- What was found -------------------------------------------------------------------------- */

static void found_swap(struct search *s, size_t a, size_t b)
{
	struct line_found kept = s->found[a];
	s->found[a] = s->found[b];
	s->found[b] = kept;
}

static bool found_is_behind(const struct search *s, size_t a, size_t b)
{
	return search_compare(s, &s->found[a].place, &s->found[b].place) > 0;
}

static void found_sift_up(struct search *s, size_t at)
{
	for (; at && found_is_behind(s, at, (at - 1) / 2); at = (at - 1) / 2)
		found_swap(s, at, (at - 1) / 2);
}

static void found_sift_down(struct search *s)
{
	size_t at = 0, child;
	while ((child = 2 * at + 1) < s->found_count) {
		child += child + 1 < s->found_count && found_is_behind(s, child + 1, child);
		if (!found_is_behind(s, child, at))
			return;
		found_swap(s, at, child);
		at = child;
	}
}

static void found_drop_last(struct search *s)
{
	found_swap(s, 0, --s->found_count);
	s->found_bytes -= s->found[s->found_count].text.len;
	mem_free((char *)s->found[s->found_count].text.data);
	found_sift_down(s);
}

static bool found_is_full(const struct search *s)
{
	return s->found_count == s->limit;
}

static void found_add(struct search *s, const struct line_place *place, struct slice text,
		      uint64_t bytes)
{
	if (found_is_full(s) && search_compare(s, place, &s->found[0].place) > 0)
		return;
	if (found_is_full(s))
		found_drop_last(s);
	size_t len = smaller_of(text.len, LINE_SEARCH_TEXT_MAX_BYTES);
	char *copy = mem_alloc(len + 1);
	memcpy(copy, text.data, len);
	s->found[s->found_count++] = (struct line_found){*place, {copy, len}, bytes};
	s->found_bytes += len;
	found_sift_up(s, s->found_count - 1);
	while (s->found_bytes > SEARCH_FOUND_MAX_BYTES && s->found_count > 1) {
		found_drop_last(s);
		s->limit = s->found_count;
	}
}

/* ---- What is looked at ----------------------------------------------------------------------- */

static int search_see_stream(const struct stream_made *made, void *owner)
{
	struct search *s = owner;
	struct arena *arena = &s->result->arena;
	struct search_stream stream = {.id = made->id};
	struct buf address;
	if (!stream_names_fit(&s->rules->names, &made->id.names) ||
	    (s->rules->incarnation && s->rules->incarnation != made->id.incarnation))
		return 0;
	buf_init(&address, STREAM_ADDRESS_MAX_BYTES);
	stream_address_put(&made->id.names, made->id.incarnation, &address);
	stream.address = arena_copy(arena, buf_slice(&address));
	buf_release(&address);
	if (!stream.address.data || stream_id_keep(&stream.id, arena) ||
	    s->stream_count == SEARCH_STREAMS_MAX)
		return errbuf_set(s->e, ERR_LIMIT,
				  "more than %d streams are asked for; a source, datatype or name "
				  "makes them fewer",
				  SEARCH_STREAMS_MAX);
	GROW(s->streams, s->stream_room, s->stream_count + 1);
	s->streams[s->stream_count++] = stream;
	return 0;
}

/* Whether a line with a time in between may be asked for. */
static bool search_asks_for(const struct search *s, int64_t first_ms, int64_t last_ms)
{
	const struct line_search_rules *rules = s->rules;
	if (last_ms < rules->from_ms || first_ms >= rules->to_ms)
		return false;
	if (!rules->goes_on)
		return true;
	return rules->oldest_first ? last_ms >= rules->after.ms : first_ms <= rules->after.ms;
}

static int search_add_part(struct search *s, const struct search_part *part)
{
	if (!search_asks_for(s, part->first_ms, part->last_ms))
		return 0;
	if (s->part_count == SEARCH_BLOCKS_MAX)
		return errbuf_set(s->e, ERR_LIMIT,
				  "more than %d blocks are asked for; a time, source, datatype or "
				  "name makes them fewer",
				  SEARCH_BLOCKS_MAX);
	GROW(s->parts, s->part_room, s->part_count + 1);
	s->parts[s->part_count++] = *part;
	return 0;
}

/* Blocks of a stream. */
struct search_blocks {
	struct search *s;
	size_t stream;
	struct offsets seen; /* what is in the blocks that have come */
	uint64_t at;         /* all before is in them, or in none */
};

/* Owners that did not know of each other may have put the same bytes into blocks twice. */
static int search_see_lines(const struct chunk_place *place, struct slice value, void *owner)
{
	struct search_blocks *blocks = owner;
	struct search *s = blocks->s;
	const struct stream_known *known = &s->streams[blocks->stream].known;
	uint64_t begin = place->sequence_id - place->length;
	struct chunk_lines lines;
	begin = begin < blocks->at ? blocks->at : begin;
	if (begin >= place->sequence_id ||
	    !offsets_cover(&known->sealed, begin, place->sequence_id))
		return 0;
	arena_reset(&s->arena);
	int err = chunk_lines_decode(value, &s->arena, &lines);
	if (err == ERR_LIMIT)
		return err;
	if (err) /* the block is read as it lies there */
		return 0;
	const struct search_part part = {.stream = blocks->stream,
					 .from = begin,
					 .to = place->sequence_id,
					 .place = *place,
					 .first_ms = lines.first_ms,
					 .last_ms = lines.last_ms};
	offsets_add(&blocks->seen, begin, place->sequence_id);
	blocks->at = place->sequence_id;
	return search_add_part(s, &part);
}

/* What is held of a stream and in no block that was seen. */
static int search_add_others(struct search *s, size_t stream, const struct offsets *seen)
{
	const struct offsets *held = &s->streams[stream].known.held;
	size_t at = 0;
	int err = 0;
	for (size_t i = 0; i < held->count && !err; i++) {
		uint64_t from = held->list[i].begin, end = held->list[i].end;
		while (from < end && !err) {
			while (at < seen->count && seen->list[at].end <= from)
				at++;
			bool met = at < seen->count && seen->list[at].begin < end;
			uint64_t to = met ? seen->list[at].begin : end;
			const struct search_part part = {.stream = stream,
							 .from = from,
							 .to = to,
							 .first_ms = INT64_MIN,
							 .last_ms = INT64_MAX};
			if (from < to)
				err = search_add_part(s, &part);
			from = met ? seen->list[at].end : end;
		}
	}
	return err;
}

static int search_add_stream(struct search *s, size_t at)
{
	struct search_stream *stream = &s->streams[at];
	int err = stream_known_read(&stream->known, s->site, s->queue, &stream->id, 0, s->e);
	const struct offsets *sealed = &stream->known.sealed;
	struct search_blocks blocks = {.s = s, .stream = at};
	if (!err && sealed->count) {
		blocks.at = sealed->list[0].begin;
		err = chunk_heads_each(s->site, s->queue, &stream->id, CHUNK_HEAD_LINES,
				       sealed->list[0].begin, sealed->list[sealed->count - 1].end,
				       search_see_lines, &blocks, s->e);
	}
	err = err ? err : search_add_others(s, at, &blocks.seen);
	offsets_release(&blocks.seen);
	return err;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static int search_may_go_on(struct search *s)
{
	s->lines = 0;
	if (task_queue_is_stopped(s->queue))
		return ERR_CANCELLED;
	return s->rules->may_go_on ? s->rules->may_go_on(s->rules->owner, s->e) : 0;
}

/* Some bytes that lie together, and when they were received. */
struct search_bytes {
	const struct search_part *part;
	uint64_t begin;
	struct line_records records;
	int64_t received_ms;
	const struct chunk_receipt *receipts; /* may be none: then received_ms holds for all */
	size_t receipt_count, receipt;
};

static int64_t search_received(struct search_bytes *bytes)
{
	while (bytes->receipt < bytes->receipt_count &&
	       bytes->receipts[bytes->receipt].offset <= bytes->records.begin)
		bytes->received_ms = bytes->receipts[bytes->receipt++].received_ms;
	return bytes->received_ms;
}

static void search_see_line(struct search *s, struct search_bytes *bytes, bool may_fit)
{
	const struct line_search_rules *rules = s->rules;
	struct slice text = line_records_text(&bytes->records);
	const struct line_place place = {
		.ms = line_clock_next(&s->clock, text, search_received(bytes)),
		.stream = s->streams[bytes->part->stream].address,
		.offset = bytes->begin + bytes->records.begin};
	if (!may_fit || place.ms < rules->from_ms || place.ms >= rules->to_ms ||
	    place.offset < bytes->part->from || place.offset >= bytes->part->to)
		return;
	if (rules->goes_on && search_compare(s, &place, &rules->after) <= 0)
		return;
	if (found_is_full(s) && search_compare(s, &place, &s->found[0].place) > 0)
		return;
	if (line_query_fits(rules->query, text))
		found_add(s, &place, text, bytes->records.end - bytes->records.begin);
}

/* The lines of some bytes. `all`: the clock is needed behind them; else they are left when no line
 * that is left may fit. */
static int search_look_at(struct search *s, struct search_bytes *bytes, bool all)
{
	const struct slice data = bytes->records.data;
	size_t hit = line_query_seek(s->rules->query, data, 0);
	int err = 0;
	s->result->bytes += data.len;
	while (!err && (all || hit < data.len) && line_records_next(&bytes->records)) {
		bool may_fit = hit < bytes->records.end;
		search_see_line(s, bytes, may_fit);
		if (may_fit)
			hit = line_query_seek(s->rules->query, data, bytes->records.end);
		if (++s->lines == SEARCH_LOOK_LINES)
			err = search_may_go_on(s);
	}
	return err;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* What is known of one block. */
struct search_head {
	struct search *s;
	const struct chunk_place *place;
	bool may_fit;
	struct chunk_lines lines;
};

static bool search_is_place(const struct search_head *head, const struct chunk_place *place)
{
	return memcmp(head->place, place, sizeof(*place)) == 0;
}

static int search_see_filter(const struct chunk_place *place, struct slice value, void *owner)
{
	struct search_head *head = owner;
	struct slice filter;
	if (search_is_place(head, place) && !chunk_words_decode(value, &filter))
		head->may_fit = line_query_may_fit(head->s->rules->query, filter);
	return 0;
}

static int search_see_head(const struct chunk_place *place, struct slice value, void *owner)
{
	struct search_head *head = owner;
	if (!search_is_place(head, place))
		return 0;
	return chunk_lines_decode(value, &head->s->arena, &head->lines);
}

static int search_read_head(struct search *s, const struct search_part *part,
			    enum chunk_head_kind kind,
			    int (*see)(const struct chunk_place *, struct slice, void *),
			    struct search_head *head)
{
	return chunk_heads_each(s->site, s->queue, &s->streams[part->stream].id, kind,
				part->place.sequence_id - 1, part->place.sequence_id, see, head,
				s->e);
}

static int search_read_block(struct search *s, const struct search_part *part,
			     const struct search_head *head)
{
	struct chunk_fields fields;
	struct chunk_data data;
	struct search_bytes bytes = {.part = part,
				     .begin = part->place.sequence_id - part->place.length,
				     .receipts = head->lines.receipts,
				     .receipt_count = head->lines.receipt_count};
	int err =
		chunk_block_read(s->site, s->queue, &s->streams[part->stream].id, &part->place,
				 &s->unpacked, &s->arena, &fields, &data, &bytes.received_ms, s->e);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err; /* it was too old */
	bytes.records = (struct line_records){.data = data.data,
					      .ends = data.ends,
					      .end_count = data.end_count,
					      .lines = fields.lines};
	s->clock.carry = head->lines.before;
	line_clock_set_zone(&s->clock, fields.zone);
	s->result->blocks++;
	return search_look_at(s, &bytes, false);
}

static bool search_has_words(const struct search *s)
{
	const struct line_query *query = s->rules->query;
	for (size_t i = 0; i < query->count; i++)
		if (!query->terms[i].negated && query->terms[i].literal.hash_count)
			return true;
	return false;
}

static int search_look_at_block(struct search *s, const struct search_part *part)
{
	struct search_head head = {.s = s, .place = &part->place, .may_fit = true};
	int err = 0;
	arena_reset(&s->arena);
	if (search_has_words(s))
		err = search_read_head(s, part, CHUNK_HEAD_WORDS, search_see_filter, &head);
	s->result->excluded_blocks += !err && !head.may_fit;
	if (err || !head.may_fit)
		return err;
	err = search_read_head(s, part, CHUNK_HEAD_LINES, search_see_head, &head);
	return err ? err : search_read_block(s, part, &head);
}

/* ---- Other ranges ---------------------------------------------------------------------------- */

static int search_look_at_piece(struct search *s, const struct search_part *part,
				const struct stream_piece *piece)
{
	struct search_bytes bytes = {.part = part,
				     .begin = piece->begin,
				     .received_ms = piece->received_ms,
				     .records = {.data = piece->data,
						 .ends = piece->ends,
						 .end_count = piece->end_count,
						 .lines = piece->fields.lines}};
	line_clock_set_zone(&s->clock, piece->fields.zone);
	return search_look_at(s, &bytes, true);
}

static int search_look_at_range(struct search *s, const struct search_part *part)
{
	const struct search_stream *stream = &s->streams[part->stream];
	struct chunk_reader reader;
	struct stream_piece piece;
	int err = chunk_carry_read(s->site, s->queue, &stream->id, &stream->known.sealed,
				   part->from, &s->clock.carry, s->e);
	if (err)
		return err;
	chunk_reader_init(&reader, s->site, s->queue, &stream->id, &stream->known.sealed,
			  &stream->known.held, part->from, part->to, s->e);
	do {
		err = chunk_reader_next_readable(&reader, &piece);
		if (!err && piece.data.len)
			err = search_look_at_piece(s, part, &piece);
	} while (!err && piece.data.len);
	chunk_reader_release(&reader);
	return err;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* Whether no line of a part, and of those behind it, comes before what was found. */
static bool search_is_over(const struct search *s, const struct search_part *part)
{
	if (!found_is_full(s))
		return false;
	int64_t last_ms = s->found[0].place.ms;
	return s->rules->oldest_first ? part->first_ms > last_ms : part->last_ms < last_ms;
}

/* What cannot be read is left out, and counted. */
static int search_look(struct search *s)
{
	int err = 0;
	for (size_t i = 0; i < s->part_count && !err; i++) {
		const struct search_part *part = &s->parts[i];
		if (search_is_over(s, part))
			break;
		err = search_may_go_on(s);
		if (err)
			break;
		err = part->place.length ? search_look_at_block(s, part)
					 : search_look_at_range(s, part);
		if (err == ERR_DAMAGED || err == ERR_VERSION) {
			s->result->damaged++;
			err = 0;
		}
	}
	return err;
}

static int search_list(struct search *s)
{
	int err =
		stream_each(s->site, s->queue, s->rules->tenant, NULL, search_see_stream, s, s->e);
	for (size_t i = 0; i < s->stream_count && !err; i++) {
		err = search_may_go_on(s);
		err = err ? err : search_add_stream(s, i);
	}
	s->result->streams = s->stream_count;
	if (!err && s->part_count)
		qsort_r(s->parts, s->part_count, sizeof(*s->parts), search_compare_parts, s);
	return err;
}

int line_search(const struct stream_site *site, struct task_queue *queue,
		const struct line_search_rules *rules, struct line_search_result *result,
		struct errbuf *e)
{
	struct search s = {.site = site,
			   .queue = queue,
			   .rules = rules,
			   .result = result,
			   .e = e,
			   .limit = rules->limit};
	*result = (struct line_search_result){.found = NULL};
	arena_init(&result->arena, SEARCH_NAMES_MAX_BYTES);
	arena_init(&s.arena, SEARCH_BLOCK_MAX_BYTES);
	buf_init(&s.unpacked, SEARCH_BLOCK_MAX_BYTES);
	line_clock_init(&s.clock);
	s.found = mem_alloc(rules->limit * sizeof(*s.found));
	int err = search_list(&s);
	err = err ? err : search_look(&s);
	if (!err && s.found_count)
		qsort_r(s.found, s.found_count, sizeof(*s.found), search_compare_found, &s);
	result->found = s.found;
	result->count = s.found_count;
	result->more = found_is_full(&s);
	for (size_t i = 0; i < s.stream_count; i++)
		stream_known_release(&s.streams[i].known);
	line_clock_release(&s.clock);
	buf_release(&s.unpacked);
	arena_release(&s.arena);
	mem_free(s.parts);
	mem_free(s.streams);
	return err;
}

void line_search_release(struct line_search_result *result)
{
	for (size_t i = 0; i < result->count; i++)
		mem_free((char *)result->found[i].text.data);
	mem_free(result->found);
	arena_release(&result->arena);
}
