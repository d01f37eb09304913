#include "stream/verify.h"

#include "store/wait.h"
#include "stream/chunk_reader.h"
#include "stream/demux_state.h"
#include "stream/heads.h"

enum {
	VERIFY_ARENA_MAX_BYTES = 16 << 20,
	VERIFY_WORDS_OF = 16,       /* one of so many blocks is compared with its filter */
	VERIFY_PARTS_MAX = 1 << 20, /* of a range */
	VERIFY_ENOUGH = 1,          /* stops a walk, without an error */
};

struct stream_verify {
	struct tables_verify *v;
	struct stream_site site;
	struct errbuf e;
	struct line_clock clock;
	struct words_set words;
	struct arena arena; /* of the chunk or block that is looked at */
	struct buf unpacked;

	/* The stream that is looked at. */
	const struct stream_id *id;
	struct stream_known known;
	struct offsets there; /* in blocks that can be read */
	bool unknown;         /* notes of its blocks cannot be read */
	const struct store_parts *row;
	uint64_t head_count; /* of blocks of the row */

	/* The block that is looked at. */
	const struct store_cell *block;
	struct chunk_place place;
	struct chunk_frame frame;
	struct chunk_data data;
	int64_t received_ms;
	bool found; /* the head */

	struct chunk_place next; /* of the row: all blocks before are looked at */
};

/* The blocks of a stream. Notes that cannot be read are told elsewhere; then `unknown` is set. */
static int stream_verify_read_blocks(struct stream_verify *s, const struct stream_id *id,
				     struct stream_known *known)
{
	int err = stream_known_read_blocks(known, &s->site, s->v->queue, id, &s->e);
	s->unknown = err == ERR_DAMAGED || err == ERR_VERSION;
	if (s->unknown)
		stream_known_release(known);
	return s->unknown ? 0 : err;
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* Unpacks a chunk or block. False: what is wrong with it was told. */
static bool stream_verify_unpack(struct stream_verify *s, enum table table,
				 const struct store_cell *cell)
{
	int err = chunk_column_read(cell, &s->place);
	tables_verify_count(s->v);
	if (err) {
		tables_verify_tell(s->v, table, s->row, &cell->column,
				   "the length is none of a chunk that ends there");
		return false;
	}
	err = chunk_cell_decode(cell, &s->received_ms, &s->frame);
	if (err) {
		tables_verify_tell(s->v, table, s->row, &cell->column,
				   "the chunk cannot be read: %s", err_text(err));
		return false;
	}
	arena_reset(&s->arena);
	err = chunk_frame_unpack(&s->frame, &s->unpacked, &s->arena, &s->data);
	if (err)
		tables_verify_tell(s->v, table, s->row, &cell->column,
				   "the chunk does not unpack to the bytes and ends of records "
				   "that it says");
	else if (!stream_names_equal(&s->frame.fields.names, &s->id->names))
		tables_verify_tell(s->v, table, s->row, &cell->column,
				   "the chunk is of another stream");
	return !err;
}

static int stream_verify_see_chunk(const struct store_cell *cell, void *owner)
{
	(void)!stream_verify_unpack(owner, TABLE_CHUNK_TAIL, cell);
	return 0;
}

/* ---- Heads of blocks ------------------------------------------------------------------------- */

/* The block that is looked at has its own head of the kind, and others may end there. */
static void stream_verify_tell_head(struct stream_verify *s, enum chunk_head_kind kind,
				    const char *what)
{
	struct stream_parts column;
	chunk_head_column(&column, kind, &s->place);
	tables_verify_tell(s->v, TABLE_CHUNK_HEADS, s->row, &column.parts, "%s", what);
}

static bool stream_verify_is_head(struct stream_verify *s, const struct chunk_place *place)
{
	bool same = memcmp(place, &s->place, sizeof(*place)) == 0;
	s->found = s->found || same;
	s->head_count += same;
	return same;
}

static int stream_verify_see_received(const struct chunk_place *place, struct slice value,
				      void *owner)
{
	struct stream_verify *s = owner;
	struct chunk_received received;
	if (!stream_verify_is_head(s, place))
		return 0;
	if (chunk_received_decode(value, &received))
		stream_verify_tell_head(s, CHUNK_HEAD_RECEIVED, "the head cannot be read");
	else if (received.first_ms > s->received_ms || received.last_ms < s->received_ms)
		stream_verify_tell_head(
			s, CHUNK_HEAD_RECEIVED,
			"the first chunk of the block was received at another time");
	return 0;
}

static struct line_records stream_verify_records(const struct stream_verify *s)
{
	return (struct line_records){.data = s->data.data,
				     .ends = s->data.ends,
				     .end_count = s->data.end_count,
				     .lines = s->frame.fields.lines};
}

/* Reads the lines of the block as whoever searches does. */
static struct chunk_lines stream_verify_count_lines(struct stream_verify *s,
						    const struct chunk_lines *said)
{
	struct chunk_lines is = {.before = said->before};
	struct line_records records = stream_verify_records(s);
	struct receipt_walk receipts = {s->received_ms, said->receipts, said->receipt_count, 0};
	s->clock.carry = said->before;
	line_clock_set_zone(&s->clock, s->frame.fields.zone);
	while (line_records_next(&records)) {
		int64_t ms = line_clock_next(&s->clock, line_records_text(&records),
					     receipt_walk_to(&receipts, records.begin));
		is.first_ms = is.count ? smaller_of(ms, is.first_ms) : ms;
		is.last_ms = is.count ? larger_of(ms, is.last_ms) : ms;
		is.count++;
	}
	if (s->frame.fields.goes_on) {
		is.first_ms = INT64_MIN;
		is.last_ms = INT64_MAX;
	}
	is.behind = s->clock.carry;
	return is;
}

static int stream_verify_see_lines(const struct chunk_place *place, struct slice value, void *owner)
{
	struct stream_verify *s = owner;
	struct chunk_lines said;
	if (!stream_verify_is_head(s, place))
		return 0;
	int err = chunk_lines_decode(value, &s->arena, &said);
	if (err) {
		stream_verify_tell_head(s, CHUNK_HEAD_LINES, "the head cannot be read");
		return 0;
	}
	const struct chunk_lines is = stream_verify_count_lines(s, &said);
	if (said.count != is.count)
		stream_verify_tell_head(s, CHUNK_HEAD_LINES,
					"the block has another number of lines");
	else if (said.first_ms != is.first_ms || said.last_ms != is.last_ms)
		stream_verify_tell_head(s, CHUNK_HEAD_LINES,
					"the lines of the block have other times");
	else if (said.behind.left != is.behind.left ||
		 (is.behind.left && said.behind.ms != is.behind.ms))
		stream_verify_tell_head(
			s, CHUNK_HEAD_LINES,
			"another time goes from the last line of the block to the next");
	return 0;
}

/* Words are gathered as where blocks are made. */
static void stream_verify_gather_words(struct stream_verify *s)
{
	struct line_records records = stream_verify_records(s);
	words_set_clear(&s->words);
	if (records.lines)
		words_set_add_lines(&s->words, records.data);
	while (!records.lines && line_records_next(&records))
		words_set_add_lines(&s->words, line_records_text(&records));
}

static int stream_verify_see_words(const struct chunk_place *place, struct slice value, void *owner)
{
	struct stream_verify *s = owner;
	struct slice filter;
	if (!stream_verify_is_head(s, place))
		return 0;
	if (chunk_words_decode(value, &filter)) {
		stream_verify_tell_head(s, CHUNK_HEAD_WORDS, "the head cannot be read");
		return 0;
	}
	if (!s->v->all_words && place->checksum % VERIFY_WORDS_OF)
		return 0;
	stream_verify_gather_words(s);
	if (words_filter_count_lacking(filter, &s->words))
		stream_verify_tell_head(
			s, CHUNK_HEAD_WORDS,
			"the filter lacks words of the block: searches pass over it");
	return 0;
}

/* The block may have gone since it was read. */
static int stream_verify_missing_head(struct stream_verify *s, enum chunk_head_kind kind,
				      const char *what)
{
	struct stream_known now = {.made = false};
	int err = stream_verify_read_blocks(s, s->id, &now);
	if (!err && now.made && s->place.sequence_id > now.kept.from)
		stream_verify_tell_head(s, kind, what);
	stream_known_release(&now);
	return err;
}

static int stream_verify_heads(struct stream_verify *s)
{
	static const struct {
		int (*see)(const struct chunk_place *place, struct slice value, void *owner);
		const char *missing;
	} kinds[CHUNK_HEAD_KINDS] = {
		[CHUNK_HEAD_RECEIVED] = {stream_verify_see_received,
					 "when the block was received is not there"},
		[CHUNK_HEAD_LINES] = {stream_verify_see_lines,
				      "the times of the lines of the block are not there"},
		[CHUNK_HEAD_WORDS] = {stream_verify_see_words,
				      "the filter of the block is not there"}};
	for (int kind = CHUNK_HEAD_RECEIVED; kind < CHUNK_HEAD_KINDS; kind++) {
		s->found = false;
		int err = chunk_heads_at(&s->site, s->v->queue, s->id, (enum chunk_head_kind)kind,
					 s->place.sequence_id, kinds[kind].see, s, &s->e);
		if (err == ERR_DAMAGED) {
			stream_verify_tell_head(s, (enum chunk_head_kind)kind, s->e.text);
			continue;
		}
		if (!err && !s->found)
			err = stream_verify_missing_head(s, (enum chunk_head_kind)kind,
							 kinds[kind].missing);
		if (err)
			return err;
	}
	return 0;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Nobody reads blocks that are about to go or have no note. */
static int stream_verify_see_block(const struct store_cell *cell, void *owner)
{
	struct stream_verify *s = owner;
	bool good = !chunk_column_read(cell, &s->place);
	s->next = s->place;
	s->next.checksum++;
	if (good) {
		uint64_t begin = s->place.sequence_id - s->place.length;
		if (!offsets_meet(&s->known.noted, begin, s->place.sequence_id)) {
			tables_verify_count(s->v);
			s->v->orphans += s->place.sequence_id > s->known.kept.from;
			return 0;
		}
	}
	if (!stream_verify_unpack(s, TABLE_CHUNK_SINK, cell))
		return 0;
	offsets_add(&s->there, s->place.sequence_id - s->place.length, s->place.sequence_id);
	return stream_verify_heads(s);
}

static bool stream_verify_is_damage(int err)
{
	return err == ERR_DAMAGED || err == ERR_VERSION;
}

/* Reads blocks from s->next on up to one, or to the end of the row; `limit`: 0, or how many. */
static int stream_verify_scan(struct stream_verify *s, const struct chunk_place *to, size_t limit,
			      int (*see)(const struct store_cell *cell, void *owner))
{
	struct stream_parts from, behind;
	chunk_column(&from, &s->next);
	struct store_cell_scan scan = {
		.table = TABLE_CHUNK_SINK, .key = *s->row, .from = from.parts, .limit = limit};
	if (to) {
		chunk_column(&behind, to);
		scan.to = behind.parts;
	}
	return store_cells_wait(s->v->store, s->v->queue, clock_wall_ms(s->v->clock), &scan, see, s,
				&s->e);
}

/* The first block whose head stands at s->next or behind it. */
static int stream_verify_see_place(const struct chunk_place *place, UNUSED struct slice value,
				   void *owner)
{
	struct stream_verify *s = owner;
	const uint64_t at[] = {place->sequence_id, place->length, place->checksum},
		       next[] = {s->next.sequence_id, s->next.length, s->next.checksum};
	size_t i = 0;
	while (i < 2 && at[i] == next[i])
		i++;
	if (at[i] < next[i])
		return 0;
	s->place = *place;
	return VERIFY_ENOUGH;
}

static int stream_verify_pass_over(UNUSED const struct store_cell *cell, UNUSED void *owner)
{
	return 0;
}

/* Tells the block at s->next, which the store cannot read, and moves behind it: heads say which
 * block it is. False: no head is left, and the row is not read further. */
static bool stream_verify_skip_block(struct stream_verify *s, uint64_t part)
{
	const struct errbuf why = s->e;
	struct stream_parts column;
	struct offset_range range = {part << CHUNK_SINK_PART_BITS,
				     ((part + 1) << CHUNK_SINK_PART_BITS) - 1};
	const struct offsets all = {.list = &range, .count = 1};
	range.begin -= part > 0;
	bool known = chunk_heads_each(&s->site, s->v->queue, s->id, CHUNK_HEAD_RECEIVED, &all,
				      stream_verify_see_place, s, &s->e) == VERIFY_ENOUGH;
	/* Not one in front of it, whose head is not there. */
	bool here = known && !stream_verify_scan(s, &s->place, 1, stream_verify_pass_over);
	chunk_column(&column, &s->place);
	tables_verify_tell(s->v, TABLE_CHUNK_SINK, s->row, here ? &column.parts : NULL,
			   "%s cannot be read: %s", here ? "the block" : "one of its blocks",
			   why.text);
	s->next = s->place;
	s->next.checksum += here;
	return known;
}

/* The blocks of a row, whatever the store cannot read of them: then they are read one by one. */
static int stream_verify_blocks(struct stream_verify *s, uint64_t part)
{
	size_t limit = 0;
	int err;
	s->next = (struct chunk_place){0, 0, 0};
	for (;;) {
		const struct chunk_place at = s->next;
		err = stream_verify_scan(s, NULL, limit, stream_verify_see_block);
		if (!stream_verify_is_damage(err) &&
		    (err || !limit || memcmp(&at, &s->next, sizeof(at)) == 0))
			return err;
		if (stream_verify_is_damage(err) && limit && !stream_verify_skip_block(s, part))
			return 0;
		limit = 1;
	}
}

static int stream_verify_see_head(const struct store_cell *cell, void *owner)
{
	struct stream_verify *s = owner;
	struct chunk_place place;
	tables_verify_count(s->v);
	if (chunk_head_column_read(cell, &place))
		tables_verify_tell(s->v, TABLE_CHUNK_HEADS, s->row, &cell->column,
				   "the length is none of a block that ends there");
	else if (place.sequence_id <= s->known.kept.from || s->head_count)
		s->head_count -= s->head_count > 0;
	else
		s->v->orphans++;
	return 0;
}

/* The blocks that end in one part, and their heads. */
static int stream_verify_part(struct stream_verify *s, uint64_t part)
{
	struct stream_parts key;
	chunk_sink_key(&key, s->id, part);
	s->row = &key.parts;
	s->head_count = 0;
	int err = stream_verify_blocks(s, part);
	return err ? err
		   : tables_verify_row(s->v, TABLE_CHUNK_HEADS, s->row, stream_verify_see_head, s);
}

/* Whether a part has an end of a block of these ranges. */
static bool stream_verify_has_part(const struct offsets *ranges, uint64_t part)
{
	for (size_t i = 0; i < ranges->count; i++)
		if (part >= (ranges->list[i].begin + 1) >> CHUNK_SINK_PART_BITS &&
		    part <= ranges->list[i].end >> CHUNK_SINK_PART_BITS)
			return true;
	return false;
}

/* No stream is so long; without a bound a damaged range would take years. */
static void stream_verify_tell_range(struct stream_verify *s, const struct offset_range *range)
{
	struct stream_parts key, column;
	streams_key(&key, s->id->tenant);
	streams_column(&column, s->id, STREAM_SEALED);
	tables_verify_tell(
		s->v, TABLE_STREAMS, &key.parts, &column.parts,
		"the bytes from %llu to %llu are said to be in blocks, which is too many "
		"to look at",
		(unsigned long long)range->begin, (unsigned long long)range->end);
}

static int stream_verify_parts(struct stream_verify *s)
{
	const struct offsets *noted = &s->known.noted;
	uint64_t next = 0; /* the first part that was not read yet */
	int err = 0;
	for (size_t i = 0; i < noted->count && !err; i++) {
		const struct offset_range *range = &noted->list[i];
		uint64_t part = (range->begin + 1) >> CHUNK_SINK_PART_BITS,
			 last = range->end >> CHUNK_SINK_PART_BITS;
		if (last - part > VERIFY_PARTS_MAX) {
			stream_verify_tell_range(s, range);
			last = part + VERIFY_PARTS_MAX;
		}
		for (part = larger_of(part, next); part <= last && !err; next = ++part) {
			tables_verify_goes_on(s->v);
			err = stream_verify_part(s, part);
		}
	}
	return err;
}

/* Bytes that are in no block may have been removed since the note was read: it is read once more.
 */
static int stream_verify_ranges(struct stream_verify *s)
{
	struct stream_known now = {.made = false};
	struct stream_parts key, column;
	struct offsets *lost = &s->known.noted;
	int err = stream_verify_read_blocks(s, s->id, &now);
	streams_key(&key, s->id->tenant);
	streams_column(&column, s->id, STREAM_SEALED);
	offsets_cut(lost, now.kept.from);
	for (size_t i = 0; i < s->there.count; i++)
		offsets_remove(lost, s->there.list[i].begin, s->there.list[i].end);
	for (size_t i = 0; i < lost->count && !err; i++)
		if (offsets_meet(&now.noted, lost->list[i].begin, lost->list[i].end))
			tables_verify_tell(s->v, TABLE_STREAMS, &key.parts, &column.parts,
					   "the bytes %llu to %llu are in no block",
					   (unsigned long long)lost->list[i].begin,
					   (unsigned long long)lost->list[i].end);
	stream_known_release(&now);
	return err;
}

/* Chunks first, as in known.c. */
static int stream_verify_stream(struct stream_verify *s, const struct stream_id *id)
{
	struct stream_parts key;
	s->id = id;
	chunk_tail_key(&key, id);
	s->row = &key.parts;
	int err = tables_verify_row(s->v, TABLE_CHUNK_TAIL, s->row, stream_verify_see_chunk, s);
	err = err ? err : stream_verify_read_blocks(s, id, &s->known);
	err = err ? err : stream_verify_parts(s);
	err = err ? err : stream_verify_ranges(s);
	offsets_release(&s->there);
	return err;
}

/* ---- The table of streams -------------------------------------------------------------------- */

/* A stream of which only the column is known. */
struct stream_verify_there {
	bool made, sealed;
};

static int stream_verify_see_there(const struct store_cell *cell, void *owner)
{
	struct stream_verify_there *there = owner;
	enum stream_property property;
	bool known = streams_read_property(cell, &property);
	there->made = there->made || (known && property == STREAM_MADE);
	there->sealed = there->sealed || (known && property == STREAM_SEALED);
	return 0;
}

/* The cell as it is now: a stream may have been forgotten since it was read. */
static int stream_verify_look(struct stream_verify *s, const struct store_parts *column,
			      struct stream_verify_there *there)
{
	struct store_parts from = *column, to = *column;
	from.part[2] = SLICE("");
	to.part[2] = SLICE("~");
	const struct store_cell_scan scan = {
		.table = TABLE_STREAMS, .key = *s->row, .from = from, .to = to};
	*there = (struct stream_verify_there){.made = false};
	int err = store_cells_wait(s->v->store, s->v->queue, clock_wall_ms(s->v->clock), &scan,
				   stream_verify_see_there, there, &s->e);
	return err == ERR_DAMAGED ? 0 : err;
}

/* Whether names are those of a column. */
static bool stream_verify_are_names_of(const struct store_cell *cell,
				       const struct stream_names *names)
{
	struct stream_parts column;
	struct errbuf why = {""};
	if (stream_names_check(names, &why))
		return false;
	streams_names_bound(&column, names, false);
	return slice_equal(column.parts.part[0], cell->column.part[0]);
}

static const char stream_verify_other_names[] = "its names are not those of its column";

static int stream_verify_made(struct stream_verify *s, const struct store_cell *cell)
{
	struct stream_made made;
	const struct store_parts *row = s->row;
	int err = stream_made_decode(cell, &made);
	if (err || !stream_verify_are_names_of(cell, &made.id.names)) {
		tables_verify_tell(s->v, TABLE_STREAMS, row, &cell->column, "it cannot be read: %s",
				   err ? err_text(err) : stream_verify_other_names);
		return 0;
	}
	made.id.tenant = row->part[0];
	err = stream_verify_stream(s, &made.id);
	s->row = row;
	return err;
}

/* Cells of a stream that was forgotten meanwhile stay, and nobody reads them; but bytes that
 * are in blocks are of one that is there. */
static int stream_verify_said(struct stream_verify *s, const struct store_cell *cell,
			      enum stream_property property, int err, bool any)
{
	struct stream_verify_there there;
	if (err) {
		tables_verify_tell(s->v, TABLE_STREAMS, s->row, &cell->column,
				   "it cannot be read: %s", err_text(err));
		return 0;
	}
	err = stream_verify_look(s, &cell->column, &there);
	if (err || there.made)
		return err;
	if (any && property == STREAM_SEALED && there.sealed)
		tables_verify_tell(s->v, TABLE_STREAMS, s->row, &cell->column,
				   "the stream is not there whose bytes are in blocks");
	else
		s->v->orphans++;
	return 0;
}

/* The column of a note has its offset, too; one of before has none. */
static int stream_verify_deleted(const struct store_cell *cell)
{
	static const struct stream_id none = {.incarnation = 0};
	struct stream_parts with, without;
	uint64_t offset;
	int err = stream_deleted_decode(cell->value, &offset);
	if (err)
		return err;
	streams_deleted_column(&with, &none, offset);
	streams_column(&without, &none, STREAM_DELETED);
	return slice_equal(cell->column.part[2], with.parts.part[2]) ||
			       slice_equal(cell->column.part[2], without.parts.part[2])
		       ? 0
		       : ERR_DAMAGED;
}

static int stream_verify_see_property(const struct store_cell *cell, void *owner)
{
	struct stream_verify *s = owner;
	enum stream_property property;
	struct offsets sealed = {.list = NULL};
	struct stream_kept kept = {.from = 0};
	int err = 0;
	tables_verify_count(s->v);
	if (!streams_read_property(cell, &property)) {
		tables_verify_tell(s->v, TABLE_STREAMS, s->row, &cell->column,
				   "there is no such property");
		return 0;
	}
	if (property == STREAM_MADE)
		return stream_verify_made(s, cell);
	if (property == STREAM_SEALED)
		err = stream_sealed_decode(cell->value, &sealed);
	else if (property == STREAM_KEPT)
		err = stream_kept_decode(cell->value, &kept);
	else
		err = stream_verify_deleted(cell);
	err = stream_verify_said(s, cell, property, err, sealed.count > 0);
	offsets_release(&sealed);
	offsets_release(&kept.going);
	return err;
}

static int stream_verify_see_tenant(const struct store_row *row, void *owner)
{
	struct stream_verify *s = owner;
	s->row = &row->key;
	return tables_verify_row(s->v, TABLE_STREAMS, &row->key, stream_verify_see_property, s);
}

/* ---- Rows of no stream ----------------------------------------------------------------------- */

/* Cells of a row. */
struct stream_verify_row {
	struct stream_verify *s;
	enum table table;
	uint64_t count;
};

static int stream_verify_count_cell(UNUSED const struct store_cell *cell, void *owner)
{
	struct stream_verify_row *of = owner;
	tables_verify_count(of->s->v);
	of->count++;
	return 0;
}

/* Chunks are written with the note of their stream; blocks, and what is known of them, may have
 * come back. */
static int stream_verify_lost_row(struct stream_verify_row *of, const struct store_parts *key,
				  const struct stream_known *known)
{
	struct stream_verify *s = of->s;
	of->count = 0;
	int err = tables_verify_row(s->v, of->table, key, stream_verify_count_cell, of);
	if (err || !of->count)
		return err;
	if (of->table == TABLE_CHUNK_TAIL)
		tables_verify_tell(s->v, of->table, key, NULL,
				   "the stream is not there whose %llu chunk%s wait%s",
				   (unsigned long long)of->count, plural_end(of->count),
				   of->count == 1 ? "s" : "");
	else if (!known->made ||
		 !stream_verify_has_part(&known->kept.going,
					 be64_get((const uint8_t *)key->part[2].data)))
		s->v->orphans += of->count;
	return 0;
}

static int stream_verify_see_row(const struct store_row *row, void *owner)
{
	struct stream_verify_row *of = owner;
	struct stream_verify *s = of->s;
	struct stream_id id = {.tenant = row->key.part[0]};
	struct stream_known known = {.made = false};
	arena_reset(&s->arena);
	if (stream_address_parse(row->key.part[1], &s->arena, &id.names, &id.incarnation, &s->e)) {
		tables_verify_tell(s->v, of->table, &row->key, NULL, "it is of no stream: %s",
				   s->e.text);
		return 0;
	}
	int err = stream_verify_read_blocks(s, &id, &known);
	tables_verify_goes_on(s->v);
	bool looked_at = known.made &&
			 (of->table == TABLE_CHUNK_TAIL ||
			  stream_verify_has_part(&known.noted,
						 be64_get((const uint8_t *)row->key.part[2].data)));
	err = err || looked_at || s->unknown ? err : stream_verify_lost_row(of, &row->key, &known);
	stream_known_release(&known);
	return err;
}

static int stream_verify_other_rows(struct stream_verify *s)
{
	static const enum table tables[] = {TABLE_CHUNK_TAIL, TABLE_CHUNK_SINK, TABLE_CHUNK_HEADS};
	int err = 0;
	for (size_t i = 0; i < ARRAY_LEN(tables) && !err; i++) {
		struct stream_verify_row of = {.s = s, .table = tables[i]};
		err = tables_verify_rows(s->v, tables[i], stream_verify_see_row, &of);
	}
	return err;
}

/* ---- How far lines are read ------------------------------------------------------------------ */

/* Lines that were read are, or were, held. */
static int stream_verify_read_of(struct stream_verify *s, const struct store_cell *cell,
				 const struct stream_names *names, struct demux_read *read)
{
	const struct stream_id id = {s->row->part[0], *names, read->incarnation};
	int err = stream_known_read(&s->known, &s->site, s->v->queue, &id, 0, &s->e);
	if (err)
		return err == ERR_DAMAGED || err == ERR_VERSION ? 0 : err;
	offsets_cut(&read->done, s->known.kept_from);
	for (size_t i = 0; i < read->done.count && s->known.made; i++) {
		const struct offset_range *done = &read->done.list[i];
		if (!offsets_cover(&s->known.held, done->begin, done->end))
			tables_verify_tell(s->v, TABLE_DEMUX, s->row, &cell->column,
					   "of incarnation %016llx the bytes %llu to %llu are read "
					   "and not held",
					   (unsigned long long)read->incarnation,
					   (unsigned long long)done->begin,
					   (unsigned long long)done->end);
	}
	return 0;
}

static int stream_verify_see_demux(const struct store_cell *cell, void *owner)
{
	struct stream_verify *s = owner;
	struct demux_state state = {.rule = 0};
	struct stream_names names;
	int err = demux_state_decode(cell->value, &state, &names);
	bool good = !err && stream_verify_are_names_of(cell, &names);
	tables_verify_count(s->v);
	if (!good)
		tables_verify_tell(s->v, TABLE_DEMUX, s->row, &cell->column,
				   "it cannot be read: %s",
				   err ? err_text(err) : stream_verify_other_names);
	err = 0;
	for (size_t i = 0; i < state.read_count && good && !err; i++)
		err = stream_verify_read_of(s, cell, &names, &state.reads[i]);
	demux_state_release(&state);
	return err;
}

static int stream_verify_see_demux_tenant(const struct store_row *row, void *owner)
{
	struct stream_verify *s = owner;
	s->row = &row->key;
	return tables_verify_row(s->v, TABLE_DEMUX, &row->key, stream_verify_see_demux, s);
}

/* ---- All of it ------------------------------------------------------------------------------- */

int stream_verify(struct tables_verify *v)
{
	struct stream_verify s = {.v = v, .site = {.store = v->store, .clock = v->clock}};
	line_clock_init(&s.clock);
	words_set_init(&s.words, 0);
	arena_init(&s.arena, VERIFY_ARENA_MAX_BYTES);
	buf_init(&s.unpacked, CHUNK_DATA_MAX_BYTES + CHUNK_ENDS_MAX_BYTES);
	int err = tables_verify_rows(v, TABLE_STREAMS, stream_verify_see_tenant, &s);
	err = err ? err : stream_verify_other_rows(&s);
	err = err ? err : tables_verify_rows(v, TABLE_DEMUX, stream_verify_see_demux_tenant, &s);
	stream_known_release(&s.known);
	buf_release(&s.unpacked);
	arena_release(&s.arena);
	words_set_release(&s.words);
	line_clock_release(&s.clock);
	return err;
}
