#include "stream/line_scan.h"

#include "base/grow.h"
#include "stream/chunk_reader.h"
#include "stream/heads.h"
#include "stream/line_runs.h"

enum {
	SCAN_STREAMS_MAX = 100000,
	SCAN_BLOCKS_MAX = 1000000,
	SCAN_NAMES_MAX_BYTES = 256 << 20,
	SCAN_BLOCK_MAX_BYTES = 16 << 20,
	/* Between two looks at whether it may go on: lines or heads of blocks, and the work of the
	 * query's regular expressions, which is some 10 ms. */
	SCAN_LOOK_LINES = 1024,
	SCAN_LOOK_WORK = 1 << 22,
};

/* ---- Lines that were found ------------------------------------------------------------------- */

int line_place_compare(const struct line_place *a, const struct line_place *b)
{
	if (a->ms != b->ms)
		return a->ms < b->ms ? -1 : 1;
	int order = slice_compare(a->stream, b->stream);
	if (order)
		return order;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

struct line_found line_found_copy(const struct line_seen *seen)
{
	size_t len = smaller_of(seen->text.len, LINE_FOUND_TEXT_MAX_BYTES);
	char *text = mem_alloc(len + 1);
	memcpy(text, seen->text.data, len);
	return (struct line_found){.place = {seen->ms, seen->stream->address, seen->offset},
				   .text = {text, len},
				   .cut = len < seen->text.len,
				   .bytes = seen->bytes};
}

void line_found_release(struct line_found *found)
{
	mem_free((char *)found->text.data);
}

void line_found_release_all(struct line_found *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		line_found_release(&list[i]);
	mem_free(list);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static int scan_may_go_on(struct line_scan *scan)
{
	scan->lines = 0;
	scan->query_work = scan->rules->query->work;
	if (task_queue_is_stopped(scan->queue))
		return ERR_CANCELLED;
	return scan->rules->may_go_on ? scan->rules->may_go_on(scan->rules->owner, scan->e) : 0;
}

static int scan_query_may_go_on(void *owner)
{
	return scan_may_go_on(owner);
}

/* After each line or head. */
static int scan_check_time(struct line_scan *scan)
{
	if (scan->rules->query->stopped)
		return scan->rules->query->stopped;
	uint64_t work = scan->rules->query->work - scan->query_work;
	bool due = ++scan->lines >= SCAN_LOOK_LINES || work >= SCAN_LOOK_WORK;
	return due ? scan_may_go_on(scan) : 0;
}

/* ---- Streams and parts ----------------------------------------------------------------------- */

static int scan_see_stream(const struct stream_made *made, void *owner)
{
	struct line_scan *scan = owner;
	struct arena *arena = &scan->names;
	struct line_stream stream = {.id = made->id};
	struct buf address;
	if (!stream_names_fit(&scan->rules->names, &made->id.names) ||
	    (scan->rules->incarnation && scan->rules->incarnation != made->id.incarnation))
		return 0;
	buf_init(&address, STREAM_ADDRESS_MAX_BYTES);
	stream_address_put(&made->id.names, made->id.incarnation, &address);
	stream.address = arena_copy(arena, buf_slice(&address));
	buf_release(&address);
	if (!stream.address.data || stream_id_keep(&stream.id, arena) ||
	    scan->stream_count == SCAN_STREAMS_MAX)
		return errbuf_set(scan->e, ERR_LIMIT,
				  "more than %d streams are asked for; a source, datatype or name "
				  "makes them fewer",
				  SCAN_STREAMS_MAX);
	GROW(scan->streams, scan->stream_room, scan->stream_count + 1);
	scan->streams[scan->stream_count++] = stream;
	return 0;
}

/* Whether a line with a time in between may be asked for. */
static bool scan_asks_for(const struct line_scan *scan, int64_t first_ms, int64_t last_ms)
{
	return last_ms >= scan->rules->from_ms && first_ms < scan->rules->to_ms;
}

static int scan_add_part(struct line_scan *scan, const struct line_part *part)
{
	if (!scan_asks_for(scan, part->first_ms, part->last_ms))
		return 0;
	if (scan->part_count == SCAN_BLOCKS_MAX)
		return errbuf_set(scan->e, ERR_LIMIT,
				  "more than %d blocks are asked for; a time, source, datatype or "
				  "name makes them fewer",
				  SCAN_BLOCKS_MAX);
	GROW(scan->parts, scan->part_room, scan->part_count + 1);
	scan->parts[scan->part_count++] = *part;
	return 0;
}

/* Blocks of a stream. */
struct scan_blocks {
	struct line_scan *scan;
	size_t stream;
	struct offsets seen; /* what is in the blocks that have come */
	uint64_t at;         /* all before is in them, or in none */
};

/* Owners that did not know of each other may have put the same bytes into blocks twice. */
static int scan_see_lines(const struct chunk_place *place, struct slice value, void *owner)
{
	struct scan_blocks *blocks = owner;
	struct line_scan *scan = blocks->scan;
	const struct stream_known *known = &scan->streams[blocks->stream].known;
	uint64_t begin = place->sequence_id - place->length;
	struct chunk_lines lines;
	begin = begin < blocks->at ? blocks->at : begin;
	if (begin >= place->sequence_id ||
	    !offsets_cover(&known->sealed, begin, place->sequence_id))
		return 0;
	arena_reset(&scan->arena);
	int err = chunk_lines_decode(value, &scan->arena, &lines);
	if (err == ERR_LIMIT)
		return err;
	if (err) /* the block is read as it lies there */
		return 0;
	const struct line_part part = {.stream = blocks->stream,
				       .from = begin,
				       .to = place->sequence_id,
				       .place = *place,
				       .first_ms = lines.first_ms,
				       .last_ms = lines.last_ms};
	offsets_add(&blocks->seen, begin, place->sequence_id);
	blocks->at = place->sequence_id;
	err = scan_add_part(scan, &part);
	return err ? err : scan_check_time(scan);
}

/* Adds the bytes of a stream that are held and in no block that was seen. */
static int scan_add_others(struct line_scan *scan, size_t stream, const struct offsets *seen)
{
	struct offsets others = {.list = NULL};
	int err = 0;
	offsets_subtract(&scan->streams[stream].known.held, seen, &others);
	for (size_t i = 0; i < others.count && !err; i++) {
		const struct line_part part = {.stream = stream,
					       .from = others.list[i].begin,
					       .to = others.list[i].end,
					       .first_ms = INT64_MIN,
					       .last_ms = INT64_MAX};
		err = scan_add_part(scan, &part);
	}
	offsets_release(&others);
	return err;
}

static bool scan_is_damage(int err)
{
	return err == ERR_DAMAGED || err == ERR_VERSION;
}

/* Leaves out the chunks of a stream that cannot be read, or all of the stream. */
static int scan_read_known(struct line_scan *scan, struct line_stream *stream)
{
	int err =
		stream_known_read(&stream->known, scan->site, scan->queue, &stream->id, 0, scan->e);
	if (!scan_is_damage(err))
		return err;
	scan->work.damaged++;
	err = stream_known_read_blocks(&stream->known, scan->site, scan->queue, &stream->id,
				       scan->e);
	if (!scan_is_damage(err))
		return err;
	stream_known_release(&stream->known);
	return 0;
}

static int scan_add_stream(struct line_scan *scan, size_t at)
{
	struct line_stream *stream = &scan->streams[at];
	struct line_query *query = scan->rules->query;
	stream->rule = datatypes_find(query->datatypes, stream->id.names.datatype);
	line_query_begin(query, stream->rule);
	if (query->without_rule)
		line_without_add(&scan->work.without_rule, query, stream->id.names.datatype);
	if (query->never)
		return 0;
	int err = scan_read_known(scan, stream);
	const struct offsets *sealed = &stream->known.sealed;
	struct scan_blocks blocks = {.scan = scan, .stream = at};
	if (!err && sealed->count) {
		blocks.at = sealed->list[0].begin;
		err = chunk_heads_each(scan->site, scan->queue, &stream->id, CHUNK_HEAD_LINES,
				       sealed, scan_see_lines, &blocks, scan->e);
		if (scan_is_damage(err)) /* the blocks that are left are read as they lie there */
			err = 0;
	}
	err = err ? err : scan_add_others(scan, at, &blocks.seen);
	offsets_release(&blocks.seen);
	return err;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Some bytes that lie together, and when they were received. */
struct scan_bytes {
	const struct line_part *part;
	uint64_t begin;
	struct line_records records;
	struct receipt_walk receipts;
};

/* Gives the line on, where it may be one that is asked for. */
static int scan_see_line(struct line_scan *scan, struct scan_bytes *bytes, bool may_fit)
{
	const struct line_scan_rules *rules = scan->rules;
	struct slice text = line_records_text(&bytes->records);
	const struct line_seen seen = {
		.stream = &scan->streams[bytes->part->stream],
		.ms = line_clock_next(&scan->clock, text,
				      receipt_walk_to(&bytes->receipts, bytes->records.begin)),
		.offset = bytes->begin + bytes->records.begin,
		.bytes = bytes->records.end - bytes->records.begin,
		.text = text};
	if (!may_fit || seen.ms < rules->from_ms || seen.ms >= rules->to_ms ||
	    seen.offset < bytes->part->from || seen.offset >= bytes->part->to)
		return 0;
	return scan->see(&seen, scan->see_owner);
}

/* The lines of some bytes. `all`: the clock is needed behind them; else they are left when no line
 * that is left may fit. */
static int scan_look_at(struct line_scan *scan, struct scan_bytes *bytes, bool all)
{
	const struct slice data = bytes->records.data;
	size_t hit = line_query_seek(scan->rules->query, data, 0);
	int err = 0;
	scan->work.bytes += data.len;
	while (!err && (all || hit < data.len) && line_records_next(&bytes->records)) {
		bool may_fit = hit < bytes->records.end;
		err = scan_see_line(scan, bytes, may_fit);
		if (may_fit)
			hit = line_query_seek(scan->rules->query, data, bytes->records.end);
		err = err ? err : scan_check_time(scan);
	}
	return err;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* What is known of one block. */
struct scan_head {
	struct line_scan *scan;
	const struct chunk_place *place;
	bool may_fit;
	struct chunk_lines lines;
};

static bool scan_is_place(const struct scan_head *head, const struct chunk_place *place)
{
	return memcmp(head->place, place, sizeof(*place)) == 0;
}

static int scan_see_filter(const struct chunk_place *place, struct slice value, void *owner)
{
	struct scan_head *head = owner;
	struct slice filter;
	if (scan_is_place(head, place) && !chunk_words_decode(value, &filter))
		head->may_fit = line_query_may_fit(head->scan->rules->query, filter);
	return 0;
}

static int scan_see_head(const struct chunk_place *place, struct slice value, void *owner)
{
	struct scan_head *head = owner;
	if (!scan_is_place(head, place))
		return 0;
	return chunk_lines_decode(value, &head->scan->arena, &head->lines);
}

static int scan_read_head(struct line_scan *scan, const struct line_part *part,
			  enum chunk_head_kind kind,
			  int (*see)(const struct chunk_place *, struct slice, void *),
			  struct scan_head *head)
{
	return chunk_heads_at(scan->site, scan->queue, &scan->streams[part->stream].id, kind,
			      part->place.sequence_id, see, head, scan->e);
}

static int scan_read_block(struct line_scan *scan, const struct line_part *part,
			   const struct scan_head *head)
{
	struct chunk_fields fields;
	struct chunk_data data;
	struct scan_bytes bytes = {
		.part = part,
		.begin = part->place.sequence_id - part->place.length,
		.receipts = {.list = head->lines.receipts, .count = head->lines.receipt_count}};
	int err = chunk_block_read(scan->site, scan->queue, &scan->streams[part->stream].id,
				   &part->place, &scan->unpacked, &scan->arena, &fields, &data,
				   &bytes.receipts.received_ms, scan->e);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err; /* it was too old */
	bytes.records = (struct line_records){.data = data.data,
					      .ends = data.ends,
					      .end_count = data.end_count,
					      .lines = fields.lines};
	scan->clock.carry = head->lines.before;
	line_clock_set_zone(&scan->clock, fields.zone);
	scan->work.blocks++;
	return scan_look_at(scan, &bytes, false);
}

static int scan_look_at_block(struct line_scan *scan, const struct line_part *part)
{
	struct scan_head head = {.scan = scan, .place = &part->place, .may_fit = true};
	int err = 0;
	arena_reset(&scan->arena);
	if (scan->rules->query->has_words)
		err = scan_read_head(scan, part, CHUNK_HEAD_WORDS, scan_see_filter, &head);
	if (scan_is_damage(err)) { /* nothing is known of the block */
		head.may_fit = true;
		err = 0;
	}
	scan->work.excluded_blocks += !err && !head.may_fit;
	if (err || !head.may_fit)
		return err;
	err = scan_read_head(scan, part, CHUNK_HEAD_LINES, scan_see_head, &head);
	return err ? err : scan_read_block(scan, part, &head);
}

/* ---- Other ranges ---------------------------------------------------------------------------- */

/* A range that is read run by run. */
struct scan_range {
	struct line_scan *scan;
	const struct line_part *part;
};

/* Where a chunk cannot be read there is a hole, and nothing goes over it from one line to the next,
 * as where blocks are made. */
static int scan_see_run(const struct line_run *run, void *owner)
{
	const struct scan_range *range = owner;
	struct scan_bytes bytes = {.part = range->part,
				   .begin = run->begin,
				   .receipts = run->receipts,
				   .records = run->records};
	struct line_scan *scan = range->scan;
	if (run->lost) {
		scan->work.damaged++;
		return 0;
	}
	if (run->begins && run->begin != range->part->from)
		scan->clock.carry = (struct line_carry){0, 0};
	line_clock_set_zone(&scan->clock, run->zone);
	return scan_look_at(scan, &bytes, true);
}

static int scan_look_at_range(struct line_scan *scan, const struct line_part *part)
{
	struct scan_range range = {scan, part};
	const struct line_stream *stream = &scan->streams[part->stream];
	int err = chunk_carry_read(scan->site, scan->queue, &stream->id, &stream->known.sealed,
				   part->from, &scan->clock.carry, scan->e);
	return err ? err
		   : line_runs_read(scan->site, scan->queue, &stream->id, &stream->known,
				    part->from, part->to, scan_see_run, &range, scan->e);
}

/* ---- All of it ------------------------------------------------------------------------------- */

int line_scan_look(struct line_scan *scan, const struct line_part *part,
		   int (*see)(const struct line_seen *seen, void *owner), void *owner)
{
	int err = scan_may_go_on(scan);
	if (err)
		return err;
	scan->see = see;
	scan->see_owner = owner;
	line_query_begin(scan->rules->query, scan->streams[part->stream].rule);
	err = part->place.length ? scan_look_at_block(scan, part) : scan_look_at_range(scan, part);
	if (!scan_is_damage(err))
		return err;
	scan->work.damaged++;
	scan->e->text[0] = 0; /* the scan goes on, and may end for another reason */
	return 0;
}

int line_scan_open(struct line_scan *scan, const struct stream_site *site, struct task_queue *queue,
		   const struct line_scan_rules *rules, struct errbuf *e)
{
	*scan = (struct line_scan){.rules = rules, .site = site, .queue = queue, .e = e};
	arena_init(&scan->names, SCAN_NAMES_MAX_BYTES);
	arena_init(&scan->arena, SCAN_BLOCK_MAX_BYTES);
	buf_init(&scan->unpacked, SCAN_BLOCK_MAX_BYTES);
	line_clock_init(&scan->clock);
	rules->query->may_go_on = scan_query_may_go_on;
	rules->query->owner = scan;
	int err = stream_each(site, queue, rules->tenant, NULL, scan_see_stream, scan, e);
	for (size_t i = 0; i < scan->stream_count && !err; i++) {
		err = scan_may_go_on(scan);
		err = err ? err : scan_add_stream(scan, i);
	}
	scan->work.streams = scan->stream_count;
	return err;
}

void line_scan_close(struct line_scan *scan)
{
	for (size_t i = 0; i < scan->stream_count; i++)
		stream_known_release(&scan->streams[i].known);
	line_clock_release(&scan->clock);
	buf_release(&scan->unpacked);
	arena_release(&scan->arena);
	arena_release(&scan->names);
	mem_free(scan->parts);
	mem_free(scan->streams);
}
