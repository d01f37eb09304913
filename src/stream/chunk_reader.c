#include "stream/chunk_reader.h"

#include "base/grow.h"
#include "store/wait.h"
#include "stream/heads.h"

enum {
	READER_CELLS_MAX = 64, /* read at once */
	READER_CELLS_MAX_BYTES = 4 << 20,
	READER_ARENA_MAX_BYTES = 8 << 20,
	READER_FULL = 1, /* a scan is stopped, without an error */
};

struct reader_cell {
	struct chunk_place place;
	int64_t received_ms;
	struct chunk_frame frame; /* in the arena */
};

void chunk_reader_init(struct chunk_reader *reader, const struct stream_site *site,
		       struct task_queue *queue, const struct stream_id *id,
		       const struct offsets *sealed, const struct offsets *held, uint64_t from,
		       uint64_t to, struct errbuf *e)
{
	*reader = (struct chunk_reader){.site = site,
					.queue = queue,
					.id = id,
					.sealed = sealed,
					.held = held,
					.at = from,
					.end = to,
					.e = e};
	buf_init(&reader->unpacked, CHUNK_DATA_MAX_BYTES + CHUNK_ENDS_MAX_BYTES);
	arena_init(&reader->cells, READER_ARENA_MAX_BYTES);
	arena_init(&reader->ends, READER_ARENA_MAX_BYTES);
	arena_init(&reader->cut_ends, READER_ARENA_MAX_BYTES);
}

void chunk_reader_release(struct chunk_reader *reader)
{
	mem_free(reader->list);
	arena_release(&reader->cut_ends);
	arena_release(&reader->ends);
	arena_release(&reader->cells);
	buf_release(&reader->unpacked);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* Keeps cells that may have bytes from the reader's place on. */
static int reader_see_cell(const struct store_cell *cell, void *owner)
{
	struct chunk_reader *reader = owner;
	struct reader_cell kept;
	int err = chunk_column_read(cell, &kept.place);
	err = err ? err : chunk_cell_decode(cell, &kept.received_ms, &kept.frame);
	if (err)
		return errbuf_set(
			reader->e, err, "a chunk or block that ends at %llu cannot be read",
			(unsigned long long)be64_get((const uint8_t *)cell->column.part[0].data));
	reader->seen++;
	if (reader->count == READER_CELLS_MAX ||
	    (reader->count && reader->cells.used_bytes > READER_CELLS_MAX_BYTES)) {
		if (reader->found)
			return READER_FULL;
		arena_reset(&reader->cells);
		reader->count = 0;
	}
	struct store_cell copy = *cell;
	copy.value = arena_copy(&reader->cells, cell->value);
	if (!copy.value.data)
		return READER_FULL;
	err = chunk_cell_decode(&copy, &kept.received_ms, &kept.frame);
	ASSERT(!err); /* the same bytes */
	reader->found = reader->found || kept.place.sequence_id - kept.place.length <= reader->at;
	GROW(reader->list, reader->room, reader->count + 1);
	reader->list[reader->count++] = kept;
	return 0;
}

static int reader_scan_some(struct chunk_reader *reader, enum table table,
			    const struct stream_parts *key, size_t limit)
{
	struct stream_parts from, to;
	chunk_bound(&from, reader->at);
	chunk_bound(&to, reader->at + CHUNK_DATA_MAX_BYTES);
	struct store_cell_scan scan = {
		.table = table, .key = key->parts, .from = from.parts, .limit = limit};
	if (!limit)
		scan.to = to.parts;
	arena_reset(&reader->cells);
	reader->next = reader->count = reader->seen = 0;
	reader->of_blocks = table == TABLE_CHUNK_SINK;
	int err = store_cells_wait(reader->site->store, reader->queue,
				   clock_wall_ms(reader->site->clock), &scan, reader_see_cell,
				   reader, reader->e);
	return err == READER_FULL ? 0 : err;
}

/* Many short chunks may end before the one that has the byte, which is longer. */
static int reader_scan(struct chunk_reader *reader, enum table table,
		       const struct stream_parts *key)
{
	int err = reader_scan_some(reader, table, key, READER_CELLS_MAX);
	if (err == ERR_DAMAGED || err == ERR_VERSION) /* it may be one behind that is asked for */
		err = reader_scan_some(reader, table, key, 1);
	if (!err && !reader->found && reader->seen == READER_CELLS_MAX)
		err = reader_scan_some(reader, table, key, 0);
	return err;
}

static int reader_scan_blocks(struct chunk_reader *reader)
{
	struct stream_parts key;
	uint64_t last = (reader->at + CHUNK_DATA_MAX_BYTES) >> CHUNK_SINK_PART_BITS;
	int err = 0;
	for (uint64_t part = (reader->at + 1) >> CHUNK_SINK_PART_BITS;
	     part <= last && !err && !reader->found; part++) {
		chunk_sink_key(&key, reader->id, part);
		err = reader_scan(reader, TABLE_CHUNK_SINK, &key);
	}
	return err;
}

static int reader_scan_chunks(struct chunk_reader *reader)
{
	struct stream_parts key;
	chunk_tail_key(&key, reader->id);
	return reader->found ? 0 : reader_scan(reader, TABLE_CHUNK_TAIL, &key);
}

/* What was not in blocks when that was read may be now: it goes there before it goes from the
 * chunks. */
static int reader_fill(struct chunk_reader *reader)
{
	bool sealed = offsets_meet(reader->sealed, reader->at, reader->at + 1);
	reader->found = false;
	int err = sealed ? 0 : reader_scan_chunks(reader);
	err = err ? err : reader_scan_blocks(reader);
	if (err || reader->found)
		return err;
	return errbuf_set(reader->e, ERR_DAMAGED,
			  "the bytes at offset %llu of the stream are not there",
			  (unsigned long long)reader->at);
}

/* The first of the cells that has the byte at the reader's place. */
static const struct reader_cell *reader_find(struct chunk_reader *reader)
{
	for (; reader->next < reader->count; reader->next++) {
		const struct reader_cell *cell = &reader->list[reader->next];
		if (cell->place.sequence_id <= reader->at)
			continue;
		for (size_t i = reader->next; i < reader->count; i++) {
			cell = &reader->list[i];
			if (cell->place.sequence_id - cell->place.length <= reader->at)
				return cell;
		}
		return NULL;
	}
	return NULL;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* Moves to the next offset that is held. False: there is none. */
static bool reader_skip_hole(struct chunk_reader *reader)
{
	const struct offsets *held = reader->held;
	size_t at = 0, end = held->count;
	while (at < end) {
		size_t middle = at + (end - at) / 2;
		if (held->list[middle].end <= reader->at)
			at = middle + 1;
		else
			end = middle;
	}
	if (at == held->count)
		return false;
	if (held->list[at].begin > reader->at)
		reader->at = held->list[at].begin;
	return reader->at < reader->end;
}

/* Whether a record ends before an offset within the data. */
static bool reader_ends_at(const struct chunk_fields *fields, const struct chunk_data *data,
			   uint32_t offset)
{
	if (fields->lines)
		return data->data.data[offset - 1] == '\n';
	for (size_t i = 0; i < data->end_count; i++)
		if (data->ends[i] >= offset)
			return data->ends[i] == offset;
	return false;
}

/* What was unpacked last is often asked for again: a block has many pieces. */
static int reader_unpack(struct chunk_reader *reader, const struct reader_cell *cell)
{
	if (memcmp(&reader->unpacked_place, &cell->place, sizeof(cell->place)) == 0)
		return 0;
	reader->unpacked_place.length = 0;
	arena_reset(&reader->ends);
	int err = chunk_frame_unpack(&cell->frame, &reader->unpacked, &reader->ends, &reader->data);
	if (!err)
		reader->unpacked_place = cell->place;
	return err;
}

/* The ends of records within a part of the data, as offsets within the part. */
static int reader_cut_ends(struct chunk_reader *reader, uint32_t skip, size_t len,
			   struct stream_piece *piece)
{
	const struct chunk_data *data = &reader->data;
	if (!data->end_count)
		return 0;
	uint32_t *ends = arena_alloc(&reader->cut_ends, data->end_count * sizeof(*ends));
	if (!ends)
		return ERR_LIMIT;
	for (size_t i = 0; i < data->end_count; i++)
		if (data->ends[i] > skip && data->ends[i] <= skip + len)
			ends[piece->end_count++] = data->ends[i] - skip;
	piece->ends = ends;
	return 0;
}

/* The part of a cell's data from the reader's place on. */
static int reader_cut(struct chunk_reader *reader, const struct reader_cell *cell,
		      struct stream_piece *piece)
{
	const struct chunk_fields *fields = &cell->frame.fields;
	int err = reader_unpack(reader, cell);
	if (err == ERR_LIMIT)
		return errbuf_set(reader->e, err, "a chunk takes more memory than reading has");
	if (err) {
		if (!reader->of_blocks)
			reader->unreadable = cell->place;
		return errbuf_set(reader->e, ERR_DAMAGED,
				  "the bytes at offset %llu of the stream cannot be unpacked",
				  (unsigned long long)reader->at);
	}
	uint32_t skip = (uint32_t)(reader->at - (cell->place.sequence_id - cell->place.length));
	size_t len = reader->data.data.len - skip;
	if (len > reader->end - reader->at)
		len = (size_t)(reader->end - reader->at);
	*piece = (struct stream_piece){
		.begin = reader->at,
		.received_ms = cell->received_ms,
		.data = {reader->data.data.data + skip, len},
		.fields = *fields,
		.block = reader->of_blocks ? cell->place : (struct chunk_place){0, 0, 0},
		.continues =
			skip ? !reader_ends_at(fields, &reader->data, skip) : fields->continues,
	};
	arena_reset(&reader->cut_ends);
	err = reader_cut_ends(reader, skip, len, piece);
	if (err)
		return errbuf_set(reader->e, err, "a chunk takes more memory than reading has");
	reader->at += len;
	return 0;
}

int chunk_reader_next(struct chunk_reader *reader, struct stream_piece *piece)
{
	int err = 0;
	*piece = (struct stream_piece){.begin = reader->at};
	if (reader->at >= reader->end || !reader_skip_hole(reader))
		return 0;
	const struct reader_cell *cell = reader_find(reader);
	if (!cell) {
		err = reader_fill(reader);
		cell = err ? NULL : reader_find(reader);
	}
	return cell ? reader_cut(reader, cell, piece) : err;
}

int chunk_reader_next_readable(struct chunk_reader *reader, struct stream_piece *piece)
{
	int err = chunk_reader_next(reader, piece);
	while (err == ERR_DAMAGED && reader->unreadable.length) {
		reader->at = reader->unreadable.sequence_id;
		reader->unreadable.length = 0;
		err = chunk_reader_next(reader, piece);
	}
	return err;
}

/* Heads say where the block ends that has the reader's place, or where the next one begins. */
static int reader_see_head(const struct chunk_place *place, UNUSED struct slice value, void *owner)
{
	struct offset_range *lost = owner;
	uint64_t begin = place->sequence_id - place->length;
	if (place->sequence_id <= lost->begin)
		return 0;
	lost->end = smaller_of(lost->end, begin > lost->begin ? begin : place->sequence_id);
	return READER_FULL;
}

int chunk_reader_skip_lost(struct chunk_reader *reader, struct offset_range *lost)
{
	*lost = (struct offset_range){0, 0};
	struct offset_range range = offsets_at(reader->sealed, reader->at);
	if (range.begin == range.end)
		return 0;
	range.begin = reader->at;
	range.end = smaller_of(range.end, reader->end);
	struct offsets left = {.list = &range, .count = 1};
	*lost = range;
	int err = chunk_heads_each(reader->site, reader->queue, reader->id, CHUNK_HEAD_RECEIVED,
				   &left, reader_see_head, lost, reader->e);
	if (err && err != READER_FULL && err != ERR_DAMAGED && err != ERR_VERSION)
		return err;
	reader->at = lost->end;
	reader->count = 0;
	return 0;
}

/* ---- One block ------------------------------------------------------------------------------- */

struct block_reading {
	struct buf *unpacked;
	struct arena *arena;
	struct chunk_fields *fields;
	struct chunk_data *data;
	int64_t *received_ms;
	bool found;
};

static int block_see(const struct store_cell *cell, void *owner)
{
	struct block_reading *r = owner;
	struct chunk_frame frame;
	int err = chunk_cell_decode(cell, r->received_ms, &frame);
	err = err ? err : chunk_frame_unpack(&frame, r->unpacked, r->arena, r->data);
	if (err)
		return err;
	/* Other texts lie in the store's answer, which goes. */
	*r->fields = (struct chunk_fields){.sequence_id = frame.fields.sequence_id,
					   .data_bytes = frame.fields.data_bytes,
					   .clock_ms = frame.fields.clock_ms,
					   .zone = arena_copy(r->arena, frame.fields.zone),
					   .lines = frame.fields.lines,
					   .continues = frame.fields.continues,
					   .goes_on = frame.fields.goes_on};
	r->found = true;
	return r->fields->zone.data ? 0 : ERR_LIMIT;
}

int chunk_block_read(const struct stream_site *site, struct task_queue *queue,
		     const struct stream_id *id, const struct chunk_place *place,
		     struct buf *unpacked, struct arena *arena, struct chunk_fields *fields,
		     struct chunk_data *data, int64_t *received_ms, struct errbuf *e)
{
	struct block_reading r = {unpacked, arena, fields, data, received_ms, false};
	struct stream_parts key, from, to;
	struct chunk_place next = *place;
	next.checksum++;
	chunk_sink_key(&key, id, place->sequence_id >> CHUNK_SINK_PART_BITS);
	chunk_column(&from, place);
	chunk_column(&to, &next);
	const struct store_cell_scan scan = {
		.table = TABLE_CHUNK_SINK, .key = key.parts, .from = from.parts, .to = to.parts};
	int err = store_cells_wait(site->store, queue, clock_wall_ms(site->clock), &scan, block_see,
				   &r, e);
	if (err)
		return err;
	return r.found ? 0
		       : errbuf_set(e, ERR_NOT_FOUND, "the block that ends at %llu has gone",
				    (unsigned long long)place->sequence_id);
}
