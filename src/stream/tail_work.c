/* What a worker does with a chunk of a reader: bytes in, lines out. No I/O but files of zones. */
#include "base/grow.h"
#include "stream/tail_private.h"

enum {
	TAIL_LOOK_LINES = 1024, /* between two looks at whether it is cancelled */
	/* The last record may be two lines, as long as texts may be. */
	TAIL_TEXTS_MAX_BYTES = TAIL_BATCH_BYTES + 3 * LINE_FOUND_TEXT_MAX_BYTES,
	TAIL_ENDS_MAX_BYTES = 1 << 20,
};

static int tail_may_go_on(void *owner)
{
	const struct tail_work *work = owner;
	return atomic_load(&work->cancelled) ? ERR_CANCELLED : 0;
}

void tail_work_init(struct tail_work *work)
{
	arena_init(&work->texts, TAIL_TEXTS_MAX_BYTES);
	line_clock_init(&work->clock);
}

void tail_work_clear(struct tail_work *work)
{
	arena_release(&work->texts);
	arena_init(&work->texts, TAIL_TEXTS_MAX_BYTES);
	mem_free(work->lines);
	work->lines = NULL;
	work->count = work->line_room = 0;
}

/* ---- Streams --------------------------------------------------------------------------------- */

struct tail_slot {
	struct hash128 hash;
	struct tail_stream *stream;
};

static void tail_stream_free(struct tail_stream *stream)
{
	buf_release(&stream->open);
	offsets_release(&stream->seen);
	mem_free(stream);
}

void tail_work_release(struct tail_work *work)
{
	tail_work_clear(work);
	arena_release(&work->texts);
	for (size_t at = 0; at < work->streams.slot_count; at++) {
		struct tail_slot *slot = hash_table_at(&work->streams, at);
		if (slot)
			tail_stream_free(slot->stream);
	}
	hash_table_release(&work->streams);
	line_clock_release(&work->clock);
	line_query_release(&work->query);
}

/* Its line that has not ended is missed: nobody joins it with what follows. */
static void tail_forget_quietest(struct tail_work *work)
{
	struct tail_slot *quietest = NULL;
	for (size_t at = 0; at < work->streams.slot_count; at++) {
		struct tail_slot *slot = hash_table_at(&work->streams, at);
		if (slot && (!quietest || slot->stream->used < quietest->stream->used))
			quietest = slot;
	}
	struct tail_stream *stream = quietest->stream;
	work->missed_bytes += stream->open.len;
	work->open_bytes -= stream->open.len;
	hash_table_remove(&work->streams, quietest->hash);
	tail_stream_free(stream);
}

static struct tail_stream *tail_find_stream(struct tail_work *work, struct hash128 hash)
{
	struct tail_slot *slot = hash_table_find(&work->streams, hash);
	bool added;
	if (!slot) {
		if (work->streams.count == TAIL_STREAMS_MAX)
			tail_forget_quietest(work);
		slot = hash_table_add(&work->streams, hash, sizeof(*slot), &added);
		slot->stream = mem_zalloc(sizeof(*slot->stream));
		buf_init(&slot->stream->open, TAIL_OPEN_MAX_BYTES);
	}
	slot->stream->used = ++work->used;
	return slot->stream;
}

/* Bytes that come below those that were told count as missed, but for what has come before. */
static uint64_t tail_count_unseen(const struct offsets *seen, uint64_t begin, uint64_t end)
{
	uint64_t unseen = 0;
	for (size_t i = 0; i < seen->count && begin < end; i++) {
		const struct offset_range *range = &seen->list[i];
		if (range->end <= begin)
			continue;
		if (range->begin > begin)
			unseen += smaller_of(range->begin, end) - begin;
		begin = range->end;
	}
	return unseen + (begin < end ? end - begin : 0);
}

static void tail_note_seen(struct tail_stream *stream, uint64_t begin, uint64_t end)
{
	struct offsets *seen = &stream->seen;
	offsets_add(seen, begin, end);
	if (seen->count <= TAIL_RANGES_MAX)
		return;
	/* The hole before the second range counts as seen from now on. */
	offsets_add(seen, seen->list[0].begin, seen->list[1].end);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool tail_is_full(const struct tail_work *work)
{
	return work->count == TAIL_BATCH_LINES || work->texts.used_bytes >= TAIL_BATCH_BYTES;
}

/* A line that is whole, with its end. */
static void tail_see_line(struct tail_work *work, uint64_t offset, struct slice line,
			  int64_t received_ms)
{
	const struct line_records one = {.data = line, .end = line.len};
	struct slice text = line_records_text(&one);
	int64_t ms = line_clock_next(&work->clock, text, received_ms);
	if (!line_query_fits(&work->query, text))
		return;
	bool cut = text.len > LINE_FOUND_TEXT_MAX_BYTES;
	text.len = smaller_of(text.len, LINE_FOUND_TEXT_MAX_BYTES);
	GROW(work->lines, work->line_room, work->count + 1);
	struct line_found *found = &work->lines[work->count++];
	*found = (struct line_found){
		.place = {.ms = ms, .stream = work->chunk->address, .offset = offset},
		.text = arena_copy(&work->texts, text),
		.cut = cut,
		.bytes = line.len};
	ASSERT(found->text.data); /* it is seen before whether it is full */
}

/* The line that was open is told as it is. */
static void tail_end_open(struct tail_work *work, struct tail_stream *stream)
{
	struct buf *open = &stream->open;
	if (!open->len)
		return;
	tail_see_line(work, stream->at - open->len, buf_slice(open), stream->open_received_ms);
	work->open_bytes -= open->len;
	buf_release(open);
	buf_init(open, TAIL_OPEN_MAX_BYTES);
}

/* The next record of a stream; with what was open before it. */
static void tail_see_record(struct tail_work *work, struct tail_stream *stream, struct slice record,
			    bool whole)
{
	struct buf *open = &stream->open;
	int64_t received_ms = work->chunk->received_ms;
	bool joins = work->open_bytes + record.len <= TAIL_OPEN_MAX_BYTES;
	if (!joins) /* too long for what may be open */
		tail_end_open(work, stream);
	if (!open->len && (whole || !joins)) {
		tail_see_line(work, stream->at, record, received_ms);
		stream->at += record.len;
		return;
	}
	if (!open->len)
		stream->open_received_ms = received_ms;
	buf_append(open, record.data, record.len);
	ASSERT(!open->failed);
	work->open_bytes += record.len;
	stream->at += record.len;
	if (whole)
		tail_end_open(work, stream);
}

/* True: all were seen. */
static bool tail_see_records(struct tail_work *work, struct tail_stream *stream,
			     struct line_records *records)
{
	const size_t ended = line_records_ended(records);
	unsigned lines = 0;
	while (!tail_is_full(work)) {
		if (!line_records_next(records))
			return true;
		const struct slice record = {records->data.data + records->begin,
					     records->end - records->begin};
		tail_see_record(work, stream, record, records->end <= ended);
		if (++lines % TAIL_LOOK_LINES == 0 && atomic_load(&work->cancelled))
			return true;
	}
	return records->end == records->data.len;
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* What is new of a chunk begins here. */
static uint64_t tail_begin_chunk(struct tail_work *work, struct tail_stream *stream,
				 const struct chunk_fields *fields)
{
	uint64_t begin = chunk_begin(fields), end = fields->sequence_id;
	if (work->begun)
		return stream->at;
	work->begun = true;
	if (stream->begun && begin < stream->at)
		work->missed_bytes +=
			tail_count_unseen(&stream->seen, begin, smaller_of(end, stream->at));
	tail_note_seen(stream, begin, end);
	if (stream->begun && begin <= stream->at)
		return stream->at;
	tail_end_open(work, stream);
	work->clock.carry = (struct line_carry){.left = 0};
	stream->begun = true;
	stream->at = begin;
	return begin;
}

static bool tail_see_chunk(struct tail_work *work, const struct chunk_fields *fields,
			   const struct chunk_data *data)
{
	struct tail_stream *stream = tail_find_stream(work, work->chunk->hash);
	struct line_query *query = &work->query;
	query->may_go_on = tail_may_go_on;
	query->owner = work;
	line_query_begin(query, datatypes_find(query->datatypes, fields->names.datatype));
	if (query->without_rule && !stream->without_rule)
		line_without_add(&work->without_rule, query, fields->names.datatype);
	stream->without_rule = query->without_rule;
	line_clock_set_zone(&work->clock, fields->zone);
	work->clock.carry = stream->carry;
	uint64_t from = tail_begin_chunk(work, stream, fields);
	if (from >= fields->sequence_id)
		return true;
	struct line_records records = {.data = data->data,
				       .ends = data->ends,
				       .end_count = data->end_count,
				       .lines = fields->lines,
				       .end = (size_t)(from - chunk_begin(fields))};
	bool all = tail_see_records(work, stream, &records);
	stream->carry = work->clock.carry;
	return all;
}

/* The frame was checked when it was taken; its bytes may still unpack to something else. */
void tail_work_run(struct tail_work *work)
{
	struct slice bytes = work->chunk->frame;
	struct chunk_frame frame;
	struct chunk_data data;
	struct arena ends;
	struct buf unpacked;
	const char *why;
	buf_init(&unpacked, CHUNK_DATA_MAX_BYTES + CHUNK_ENDS_MAX_BYTES);
	arena_init(&ends, TAIL_ENDS_MAX_BYTES);
	if (chunk_frame_next(&bytes, &frame, &why) != CHUNK_FOUND ||
	    chunk_frame_unpack(&frame, &unpacked, &ends, &data)) {
		work->missed_bytes += work->chunk->data_bytes;
		work->done = true;
	} else {
		work->done = tail_see_chunk(work, &frame.fields, &data);
	}
	arena_release(&ends);
	buf_release(&unpacked);
}
