#include "stream/seal.h"

#include "base/grow.h"
#include "base/stats.h"
#include "store/wait.h"
#include "stream/chunk_reader.h"
#include "stream/heads.h"

enum {
	SEAL_WAITING_MAX = 100000, /* chunks of one pass */
	SEAL_REMOVALS_MAX = 1000,  /* in one write: with the longest names they have room */
	SEAL_WRITE_MAX_BYTES = 8 << 20,
	SEAL_NOTE_MAX_BYTES = 1 << 20,
	SEAL_NOTE_PART = 4, /* of the time of a write that is left for the note after the blocks */
	SEAL_ENDS_MAX = CHUNK_ENDS_MAX_BYTES / 4, /* so that they fit, however long records are */
	SEAL_UNREADABLE_MAX = 100,                /* of one pass */
};

struct seal {
	const struct stream_site *site;
	struct task_queue *queue;
	const struct stream_id *id;
	const struct stream_seal_rules *rules;
	struct stream_seal_result *result;
	struct errbuf *e;
	int64_t stamp_us; /* of the note; taken before anything is read */
	struct stream_known known;
	uint64_t noted; /* blocks of the result that are */

	/* The block that is being gathered. */
	struct chunk_fields fields;
	uint64_t begin;
	struct chunk_place unreadable; /* length 0: none */
	bool continues;                /* its first record began before it */
	struct buf data;
	uint32_t *ends;
	size_t end_count, end_room;
	/* When its bytes were received: the first from its beginning on. */
	struct chunk_receipt *receipts;
	size_t receipt_count, receipt_room;
	struct buf frame, value;
	struct store_write *write;

	struct line_clock clock;
	uint64_t clock_at; /* the offset of the line that is its next */
	struct words_set words;
};

/* Whether a write ends so long before the lease does. */
static bool seal_may_write(const struct seal *s, int64_t left_ms)
{
	int64_t now_ms = clock_wall_ms(s->site->clock);
	return now_ms + s->rules->write_max_ms + left_ms < s->rules->until_ms;
}

static int seal_submit(struct seal *s)
{
	if (!seal_may_write(s, 0))
		return ERR_CANCELLED;
	int err = store_write_wait_known(s->write, s->queue);
	store_write_reset(s->write);
	return err ? errbuf_set(s->e, err, "%s", err_text(err)) : 0;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Behind the last record that ends in the first `len` bytes; 0: none does. */
static size_t seal_ended(const struct seal *s, size_t len)
{
	size_t at = s->end_count;
	while (at && s->ends[at - 1] > len)
		at--;
	return line_records_ended(&(struct line_records){.data = {s->data.data, len},
							 .ends = s->ends,
							 .end_count = at,
							 .lines = s->fields.lines});
}

static int seal_encode_block(struct seal *s, size_t len)
{
	size_t count = 0;
	while (count < s->end_count && s->ends[count] <= len)
		count++;
	const struct chunk_data data = {{s->data.data, len}, s->ends, count};
	struct chunk_fields fields = s->fields;
	fields.sequence_id = s->begin + len;
	fields.continues = s->continues;
	fields.goes_on =
		fields.lines ? s->data.data[len - 1] != '\n' : !count || s->ends[count - 1] != len;
	s->continues = fields.goes_on; /* of the next one, which begins with what is left */
	buf_clear(&s->frame);
	int err = chunk_frame_put(&fields, &data, s->rules->level, &s->frame);
	return err ? err
		   : chunk_cell_encode(s->receipts[0].received_ms, buf_slice(&s->frame), &s->value);
}

/* The place of the block that was encoded. */
static struct chunk_place seal_place_of(const struct seal *s)
{
	const char *why;
	struct chunk_frame frame;
	struct slice bytes = buf_slice(&s->frame);
	enum chunk_found found = chunk_frame_next(&bytes, &frame, &why);
	ASSERT(found == CHUNK_FOUND); /* it was made just now */
	return chunk_place_of(&frame);
}

static void seal_put_head(struct seal *s, const struct stream_parts *key, enum chunk_head_kind kind,
			  const struct chunk_place *place)
{
	struct stream_parts column;
	chunk_head_column(&column, kind, place);
	int err = store_log_put(s->write, TABLE_CHUNK_HEADS, &key->parts, &column.parts,
				buf_slice(&s->value));
	ASSERT(!err); /* less than a block, behind one block */
	buf_clear(&s->value);
}

/* Chunks may have come in any order. */
static void seal_find_received(const struct seal *s, size_t len, struct chunk_received *received)
{
	*received = (struct chunk_received){s->receipts[0].received_ms, s->receipts[0].received_ms};
	for (size_t i = 1; i < s->receipt_count && s->receipts[i].offset < len; i++) {
		received->first_ms = smaller_of(received->first_ms, s->receipts[i].received_ms);
		received->last_ms = larger_of(received->last_ms, s->receipts[i].received_ms);
	}
}

/* When a line was received for those who read the block, as far as that is noted. */
static int64_t seal_noted_ms(const struct seal *s, const struct chunk_lines *lines)
{
	size_t count = lines->receipt_count;
	return count ? lines->receipts[count - 1].received_ms : s->receipts[0].received_ms;
}

/* Whether the time of the last line is another one for who does not know when it was received. */
static bool seal_is_of_receipt(const struct seal *s, int64_t ms, const struct chunk_lines *lines)
{
	const int64_t surely_ms = LINE_TIME_SURELY_NEAREST_DAYS * 86400000LL;
	return s->clock.of_receipt ||
	       (s->clock.year_of_receipt && llabs(ms - seal_noted_ms(s, lines)) >= surely_ms);
}

/* A line whose time is of its receipt: when that was is noted. */
static void seal_note_receipt(struct seal *s, size_t at, struct chunk_lines *lines)
{
	struct chunk_receipt receipt = s->receipts[at];
	size_t count = lines->receipt_count;
	if (count == CHUNK_RECEIPTS_MAX ||
	    (count && lines->receipts[count - 1].received_ms == receipt.received_ms))
		return;
	lines->receipts[lines->receipt_count++] = receipt;
}

/* Looks at the lines of a block: their times, and their words. */
static void seal_look_at_lines(struct seal *s, size_t len, struct chunk_lines *lines)
{
	struct line_records records = {.data = {s->data.data, len},
				       .ends = s->ends,
				       .end_count = s->end_count,
				       .lines = s->fields.lines};
	size_t at = 0;
	words_set_clear(&s->words);
	lines->before = s->clock.carry;
	while (line_records_next(&records)) {
		struct slice text = line_records_text(&records);
		while (at + 1 < s->receipt_count && s->receipts[at + 1].offset <= records.begin)
			at++;
		int64_t received_ms = lines->receipt_count < CHUNK_RECEIPTS_MAX
					      ? s->receipts[at].received_ms
					      : seal_noted_ms(s, lines);
		int64_t ms = line_clock_next(&s->clock, text, received_ms);
		if (seal_is_of_receipt(s, ms, lines))
			seal_note_receipt(s, at, lines);
		lines->first_ms = lines->count ? smaller_of(ms, lines->first_ms) : ms;
		lines->last_ms = lines->count ? larger_of(ms, lines->last_ms) : ms;
		lines->count++;
		if (!records.lines)
			words_set_add_lines(&s->words, text);
	}
	if (records.lines)
		words_set_add_lines(&s->words, records.data);
	lines->behind = s->clock.carry;
	s->clock_at = s->begin + len;
}

/* Beside the block, in rows with the same key. */
static void seal_put_heads(struct seal *s, const struct stream_parts *key,
			   const struct chunk_place *place)
{
	struct chunk_received received;
	struct chunk_lines lines = {.receipts =
					    mem_alloc(s->receipt_count * sizeof(*lines.receipts))};
	seal_find_received(s, place->length, &received);
	buf_clear(&s->value);
	chunk_received_encode(&received, &s->value);
	seal_put_head(s, key, CHUNK_HEAD_RECEIVED, place);
	seal_look_at_lines(s, place->length, &lines);
	if (s->continues) { /* the next block does, with the rest of a record */
		lines.first_ms = INT64_MIN;
		lines.last_ms = INT64_MAX;
	}
	chunk_lines_encode(&lines, &s->value);
	seal_put_head(s, key, CHUNK_HEAD_LINES, place);
	chunk_words_encode(&s->words, &s->value);
	stat_add(STAT_chunks_filter_bytes, (int64_t)s->value.len);
	seal_put_head(s, key, CHUNK_HEAD_WORDS, place);
	mem_free(lines.receipts);
}

static int seal_put_block(struct seal *s, size_t len)
{
	struct stream_parts key, column;
	uint64_t sequence_id = s->begin + len;
	int err = seal_encode_block(s, len);
	if (err)
		return errbuf_set(s->e, err, "a block does not fit: %s", err_text(err));
	chunk_sink_key(&key, s->id, sequence_id >> CHUNK_SINK_PART_BITS);
	const struct chunk_place place = seal_place_of(s);
	chunk_column(&column, &place);
	err = store_log_put(s->write, TABLE_CHUNK_SINK, &key.parts, &column.parts,
			    buf_slice(&s->value));
	ASSERT(!err); /* one block in an empty write */
	seal_put_heads(s, &key, &place);
	bool may = seal_may_write(s, s->rules->write_max_ms / SEAL_NOTE_PART);
	err = may ? seal_submit(s) : ERR_CANCELLED;
	if (err)
		return err;
	offsets_add(&s->known.sealed, s->begin, sequence_id);
	offsets_add(&s->known.noted, s->begin, sequence_id);
	s->result->blocks++;
	s->result->data_bytes += len;
	s->result->stored_bytes += s->frame.len;
	stat_add(STAT_chunks_blocks, 1);
	stat_add(STAT_chunks_block_raw_bytes, (int64_t)len);
	stat_add(STAT_chunks_block_bytes, (int64_t)s->frame.len);
	return 0;
}

/* What is left are the receipts of the data behind the first `len` bytes. */
static void seal_cut_receipts(struct seal *s, size_t len)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->receipt_count; i++) {
		bool last = i + 1 == s->receipt_count;
		struct chunk_receipt receipt = s->receipts[i];
		if (!last && s->receipts[i + 1].offset <= len)
			continue;
		receipt.offset = receipt.offset > len ? receipt.offset - (uint32_t)len : 0;
		s->receipts[kept++] = receipt;
	}
	s->receipt_count = kept;
}

/* Writes a block of what is gathered, and keeps the rest. */
static int seal_write_block(struct seal *s, bool whole)
{
	size_t len = s->data.len;
	if (len > CHUNK_DATA_MAX_BYTES)
		len = CHUNK_DATA_MAX_BYTES;
	if (len < s->data.len || !whole) {
		size_t ended = seal_ended(s, len);
		len = ended ? ended : len;
	}
	int err = seal_put_block(s, len);
	if (err)
		return err;
	size_t kept = 0;
	for (size_t i = 0; i < s->end_count; i++)
		if (s->ends[i] > len)
			s->ends[kept++] = s->ends[i] - (uint32_t)len;
	s->end_count = kept;
	s->begin += len;
	buf_consume(&s->data, len);
	seal_cut_receipts(s, len);
	return 0;
}

static int seal_flush(struct seal *s)
{
	int err = 0;
	while (s->data.len && !err)
		err = seal_write_block(s, true);
	return err;
}

/* The same but for a record whose end may still come, and is not in a block already. */
static int seal_flush_ended(struct seal *s)
{
	int err = 0;
	while (s->data.len && !err) {
		size_t ended = seal_ended(s, s->data.len);
		uint64_t next = s->begin + s->data.len;
		bool given_up = s->receipts[0].received_ms < s->rules->open_before_ms ||
				offsets_meet(&s->known.sealed, next, next + 1);
		if (!ended && !given_up)
			break;
		err = seal_write_block(s, !ended || ended == s->data.len);
	}
	return err;
}

/* Whether a piece lies behind what is gathered, and is of the same kind. */
static bool seal_is_next(const struct seal *s, const struct stream_piece *piece)
{
	return piece->begin == s->begin + s->data.len && piece->fields.lines == s->fields.lines &&
	       slice_equal(piece->fields.zone, s->fields.zone);
}

static bool seal_goes_on(const struct seal *s, const struct stream_piece *piece)
{
	return seal_is_next(s, piece) && s->end_count + piece->end_count <= SEAL_ENDS_MAX;
}

/* The first line of a block goes on from the last one before it. */
static int seal_set_clock(struct seal *s, const struct stream_piece *piece)
{
	line_clock_set_zone(&s->clock, piece->fields.zone);
	if (s->clock_at == piece->begin)
		return 0;
	s->clock_at = piece->begin;
	return chunk_carry_read(s->site, s->queue, s->id, &s->known.sealed, piece->begin,
				&s->clock.carry, s->e);
}

/* What is said of a block is what was said of its first chunk. */
static int seal_begin_block(struct seal *s, const struct stream_piece *piece, struct arena *arena)
{
	struct chunk_fields *fields = &s->fields;
	arena_reset(arena);
	*fields = piece->fields;
	fields->tenant = s->id->tenant;
	fields->names = s->id->names;
	fields->incarnation = s->id->incarnation;
	fields->zone = arena_copy(arena, fields->zone);
	fields->tags = arena_copy(arena, fields->tags);
	fields->debug = arena_copy(arena, fields->debug);
	ASSERT(fields->zone.data && fields->tags.data && fields->debug.data); /* some KB */
	s->begin = piece->begin;
	s->receipt_count = s->end_count = 0;
	s->continues = piece->continues;
	return seal_set_clock(s, piece);
}

static int seal_gather(struct seal *s, const struct stream_piece *piece, struct arena *arena)
{
	int err = 0;
	if (s->data.len && seal_is_next(s, piece) && !seal_goes_on(s, piece))
		err = seal_write_block(s, false); /* its ends are too many; a record stays whole */
	if (!err && s->data.len && !seal_goes_on(s, piece))
		err = seal_flush(s);
	if (!err && !s->data.len)
		err = seal_begin_block(s, piece, arena);
	if (err)
		return err;
	GROW(s->receipts, s->receipt_room, s->receipt_count + 1);
	s->receipts[s->receipt_count++] =
		(struct chunk_receipt){(uint32_t)s->data.len, piece->received_ms};
	GROW(s->ends, s->end_room, s->end_count + piece->end_count);
	for (size_t i = 0; i < piece->end_count; i++)
		s->ends[s->end_count++] = (uint32_t)s->data.len + piece->ends[i];
	err = buf_append(&s->data, piece->data.data, piece->data.len);
	ASSERT(!err); /* at most two of the largest */
	while (s->data.len >= CHUNK_DATA_MAX_BYTES && !err)
		err = seal_write_block(s, false);
	return err;
}

/* ---- A pass ---------------------------------------------------------------------------------- */

/* Behind a hole: where the record ends that began in the hole, which is to be in one block when
 * that is filled. SIZE_MAX: not in this piece. */
static size_t seal_first_end(const struct stream_piece *piece)
{
	struct line_records records = {.data = piece->data,
				       .ends = piece->ends,
				       .end_count = piece->end_count,
				       .lines = piece->fields.lines};
	size_t ended = line_records_ended(&records);
	return ended && line_records_next(&records) ? records.end : SIZE_MAX;
}

/* Whether a range begins with a part of such a record. What has gone leaves no hole. */
static bool seal_begins_open(const struct seal *s, const struct stream_piece *piece)
{
	bool hole = piece->begin > s->known.kept_from &&
		    !offsets_meet(&s->known.sealed, piece->begin - 1, piece->begin);
	return hole && piece->continues && piece->received_ms >= s->rules->open_before_ms;
}

/* Moves the reader behind what is left out at the beginning of a range. */
static int seal_skip_open(struct seal *s, struct chunk_reader *reader)
{
	struct stream_piece piece;
	int err = chunk_reader_next(reader, &piece);
	bool open = !err && piece.data.len && seal_begins_open(s, &piece);
	size_t end = open ? seal_first_end(&piece) : 0;
	while (open && end == SIZE_MAX && !err) {
		err = chunk_reader_next(reader, &piece);
		end = err || !piece.data.len ? 0 : seal_first_end(&piece);
	}
	if (!err && piece.data.len)
		reader->at = piece.begin + end;
	return err;
}

/* Seals the bytes from `begin` to `end`, which are held and in no block. */
static int seal_range(struct seal *s, uint64_t begin, uint64_t end)
{
	struct chunk_reader reader;
	struct stream_piece piece;
	struct arena arena;
	arena_init(&arena, 1 << 20);
	chunk_reader_init(&reader, s->site, s->queue, s->id, &s->known.sealed, &s->known.held,
			  begin, end, s->e);
	int err = seal_skip_open(s, &reader);
	do {
		err = err ? err : chunk_reader_next(&reader, &piece);
		if (!err && piece.data.len)
			err = seal_gather(s, &piece, &arena);
	} while (!err && piece.data.len);
	if (err)
		s->unreadable = reader.unreadable;
	else if (s->rules->all)
		err = seal_flush_ended(s);
	buf_clear(&s->data);
	chunk_reader_release(&reader);
	arena_release(&arena);
	return err;
}

/* The ranges are listed before, since sealing changes what is in blocks. */
static int seal_ranges(struct seal *s)
{
	struct offsets open = {.list = NULL};
	int err = 0;
	offsets_subtract(&s->known.held, &s->known.sealed, &open);
	for (size_t i = 0; i < open.count && !err; i++)
		if (s->rules->all || open.list[i].end - open.list[i].begin >= CHUNK_DATA_MAX_BYTES)
			err = seal_range(s, open.list[i].begin, open.list[i].end);
	offsets_release(&open);
	return err;
}

static int seal_note(struct seal *s)
{
	struct stream_parts key, column;
	struct buf value;
	buf_init(&value, SEAL_NOTE_MAX_BYTES);
	stream_sealed_encode(&s->known.noted, &value);
	streams_key(&key, s->id->tenant);
	streams_column(&column, s->id, STREAM_SEALED);
	int err = value.failed ? ERR_LIMIT
			       : store_cell_put(s->write, TABLE_STREAMS, &key.parts, &column.parts,
						buf_slice(&value), s->stamp_us, 0);
	buf_release(&value);
	return err ? err : seal_submit(s);
}

/* ---- Removing -------------------------------------------------------------------------------- */

/* All of its bytes are in blocks, or below what is kept. */
static bool seal_is_sealed(const struct stream_known *known, const struct chunk_place *place)
{
	uint64_t begin = place->sequence_id - place->length;
	if (begin < known->kept_from)
		begin = known->kept_from;
	return begin >= place->sequence_id ||
	       offsets_cover(&known->sealed, begin, place->sequence_id);
}

/* This chunk and no other: a chunk that ends between two that go may have come meanwhile. */
static int seal_remove(struct seal *s, const struct chunk_place *place)
{
	struct stream_parts key, from, to;
	struct chunk_place next = *place;
	next.checksum++;
	chunk_tail_key(&key, s->id);
	chunk_column(&from, place);
	chunk_column(&to, &next);
	return store_log_remove(s->write, TABLE_CHUNK_TAIL, &key.parts, &from.parts, &to.parts);
}

static int seal_remove_chunks(struct seal *s, const struct stream_known *known)
{
	size_t count = 0;
	uint64_t gone = 0;
	int err = 0;
	for (size_t i = 0; i < s->known.waiting_count && !err; i++) {
		const struct stream_waiting *waiting = &s->known.waiting[i];
		bool last = i + 1 == s->known.waiting_count;
		if (seal_is_sealed(known, &waiting->place)) {
			err = seal_remove(s, &waiting->place);
			ASSERT(!err); /* some of the first of a write */
			count++;
			gone += waiting->stored_bytes;
			s->result->left_data_bytes -= waiting->place.length;
		}
		if (count == SEAL_REMOVALS_MAX || (last && count)) {
			err = seal_submit(s);
			s->result->left_stored_bytes -= err ? 0 : gone;
			count = 0;
			gone = 0;
		}
	}
	return err;
}

/* The note is read back: if another owner has written a newer one, that one counts. */
static int seal_clear(struct seal *s)
{
	struct stream_known known = {.made = false};
	int err = stream_known_read_blocks(&known, s->site, s->queue, s->id, s->e);
	err = err ? err : seal_remove_chunks(s, &known);
	stream_known_release(&known);
	return err;
}

static bool seal_has_covered(const struct seal *s)
{
	for (size_t i = 0; i < s->known.waiting_count; i++)
		if (seal_is_sealed(&s->known, &s->known.waiting[i].place))
			return true;
	return false;
}

/* A chunk that cannot be unpacked; not a block, since what is in blocks is not sealed again. */
static int seal_drop_unreadable(struct seal *s)
{
	const struct chunk_place *place = &s->unreadable;
	int err = seal_remove(s, place);
	ASSERT(!err); /* the first of a write */
	err = seal_submit(s);
	if (err)
		return err;
	s->result->unreadable++;
	s->result->last_unreadable = *place;
	stat_add(STAT_chunks_unreadable, 1);
	return 0;
}

static int seal_try(struct seal *s)
{
	s->stamp_us = store_stamp(s->site->store);
	s->unreadable.length = 0;
	int err = stream_known_read(&s->known, s->site, s->queue, s->id, SEAL_WAITING_MAX, s->e);
	s->result->left_data_bytes = s->known.tail_data_bytes;
	s->result->left_stored_bytes = s->known.tail_stored_bytes;
	err = err ? err : seal_ranges(s);
	/* What is in blocks already is noted also where a later block failed. */
	if (s->result->blocks > s->noted) {
		int noted = seal_note(s);
		err = err ? err : noted;
		s->noted = s->result->blocks;
	}
	return !err && seal_has_covered(s) ? seal_clear(s) : err;
}

static int seal_pass(struct seal *s)
{
	int err = seal_try(s);
	for (int i = 0; err == ERR_DAMAGED && s->unreadable.length && i < SEAL_UNREADABLE_MAX;
	     i++) {
		err = seal_drop_unreadable(s);
		err = err ? err : seal_try(s);
	}
	return err;
}

int stream_seal(const struct stream_site *site, struct task_queue *queue,
		const struct stream_id *id, const struct stream_seal_rules *rules,
		struct stream_seal_result *result, struct errbuf *e)
{
	struct seal s = {
		.site = site, .queue = queue, .id = id, .rules = rules, .result = result, .e = e};
	*result = (struct stream_seal_result){.blocks = 0};
	buf_init(&s.data, 2 * CHUNK_DATA_MAX_BYTES);
	buf_init(&s.frame, 2 * CHUNK_DATA_MAX_BYTES);
	buf_init(&s.value, TABLE_SHARED_VALUE_MAX_BYTES);
	s.write = store_write_new(site->store, SEAL_WRITE_MAX_BYTES);
	line_clock_init(&s.clock);
	s.clock_at = UINT64_MAX;
	words_set_init(&s.words, 0);
	int err = seal_pass(&s);
	words_set_release(&s.words);
	line_clock_release(&s.clock);
	store_write_free(s.write);
	buf_release(&s.value);
	buf_release(&s.frame);
	buf_release(&s.data);
	mem_free(s.ends);
	mem_free(s.receipts);
	stream_known_release(&s.known);
	return err;
}
