#include "stream/line_runs.h"

#include "stream/chunk_reader.h"
#include "stream/heads.h"

enum {
	RUNS_OPEN_MAX_BYTES = 2 * CHUNK_DATA_MAX_BYTES, /* a record that is open, and a piece */
	RUNS_ENDS_MAX_BYTES = 16 << 20,
	RUNS_HEAD_MAX_BYTES = 1 << 20,
};

struct line_runs {
	const struct stream_site *site;
	struct task_queue *queue;
	const struct stream_id *id;
	struct errbuf *e;
	int (*see)(const struct line_run *run, void *owner);
	void *owner;
	uint64_t end; /* behind the piece before */
	struct buf open;
	uint64_t open_begin;
	int64_t open_received_ms;
	bool open_lines, open_begins, open_continues;
	struct buf zone; /* of what is open */
	struct arena ends;
	/* Heads of the block that was read last. */
	struct chunk_place block;
	struct chunk_lines head;
	struct arena head_arena;
	struct arena receipts; /* of the run */
};

static int runs_see_open(struct line_runs *runs, bool cut)
{
	const struct line_run run = {
		.begin = runs->open_begin,
		.records = {.data = buf_slice(&runs->open), .lines = runs->open_lines},
		.receipts = {.received_ms = runs->open_received_ms},
		.zone = buf_slice(&runs->zone),
		.begins = runs->open_begins,
		.continues = runs->open_continues,
		.open = true,
		.cut = cut};
	int err = run.records.data.len ? runs->see(&run, runs->owner) : 0;
	buf_clear(&runs->open);
	return err;
}

static bool runs_goes_on(const struct line_runs *runs, const struct stream_piece *piece)
{
	return piece->begin == runs->end && piece->fields.lines == runs->open_lines &&
	       slice_equal(piece->fields.zone, buf_slice(&runs->zone));
}

/* ---- Receipts -------------------------------------------------------------------------------- */

static int runs_see_head(const struct chunk_place *place, struct slice value, void *owner)
{
	struct line_runs *runs = owner;
	if (memcmp(place, &runs->block, sizeof(*place)))
		return 0;
	int err = chunk_lines_decode(value, &runs->head_arena, &runs->head);
	if (err && err != ERR_LIMIT) { /* nothing is known of it */
		runs->head.receipt_count = 0;
		err = 0;
	}
	return err;
}

static int runs_read_head(struct line_runs *runs, const struct stream_piece *piece)
{
	if (memcmp(&runs->block, &piece->block, sizeof(piece->block)) == 0)
		return 0;
	arena_reset(&runs->head_arena);
	runs->head = (struct chunk_lines){.count = 0};
	runs->block = piece->block;
	if (!piece->block.length)
		return 0;
	int err = chunk_heads_at(runs->site, runs->queue, runs->id, CHUNK_HEAD_LINES,
				 piece->block.sequence_id, runs_see_head, runs, runs->e);
	return err == ERR_DAMAGED ? 0 : err;
}

/* When the bytes of a run were received: of the `open` first ones the record that is open, and then
 * of the piece, in a block those of the chunks that it was made of. */
static int runs_set_receipts(struct line_runs *runs, const struct stream_piece *piece, size_t open,
			     struct receipt_walk *walk)
{
	int err = runs_read_head(runs, piece);
	if (err)
		return err;
	const uint64_t skip = piece->begin - (runs->block.sequence_id - runs->block.length);
	*walk = (struct receipt_walk){.received_ms =
					      open ? runs->open_received_ms : piece->received_ms};
	if (!open && !runs->head.receipt_count)
		return 0;
	arena_reset(&runs->receipts);
	struct chunk_receipt *list =
		arena_alloc(&runs->receipts, (runs->head.receipt_count + 1) * sizeof(*list));
	if (!list)
		return ERR_LIMIT;
	list[walk->count++] = (struct chunk_receipt){(uint32_t)open, piece->received_ms};
	for (size_t i = 0; i < runs->head.receipt_count; i++) {
		struct chunk_receipt receipt = runs->head.receipts[i];
		receipt.offset = (uint32_t)open +
				 (receipt.offset > skip ? receipt.offset - (uint32_t)skip : 0);
		list[walk->count++] = receipt;
	}
	walk->list = list;
	return 0;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* Joins the record that is open and the piece behind it. */
static int runs_join(struct line_runs *runs, const struct stream_piece *piece,
		     struct line_records *records)
{
	size_t open = runs->open.len;
	arena_reset(&runs->ends);
	uint32_t *ends = arena_alloc(&runs->ends, (piece->end_count + 1) * sizeof(*ends));
	if (!ends || buf_append(&runs->open, piece->data.data, piece->data.len))
		return ERR_LIMIT;
	for (size_t i = 0; i < piece->end_count; i++)
		ends[i] = piece->ends[i] + (uint32_t)open;
	records->data = buf_slice(&runs->open);
	records->ends = ends;
	return 0;
}

/* Keeps what is behind the last whole record of a run for the next piece. `within`: it is the rest
 * of a record that is longer than one may be. */
static int runs_hold(struct line_runs *runs, const struct stream_piece *piece,
		     const struct line_run *run, size_t cut, bool within)
{
	struct receipt_walk receipts = run->receipts;
	const struct line_records *records = &run->records;
	size_t left = records->data.len - cut;
	bool joined = records->data.data == runs->open.data;
	/* A record that goes on over a whole piece began before that. */
	if (!joined || cut) {
		runs->open_begin = piece->begin + piece->data.len - left;
		runs->open_received_ms = receipt_walk_to(&receipts, cut);
		runs->open_begins = !cut && run->begins;
		runs->open_continues = cut ? within : run->continues;
	}
	runs->open_lines = records->lines;
	buf_clear(&runs->zone);
	int err = buf_append(&runs->zone, piece->fields.zone.data, piece->fields.zone.len);
	if (joined)
		buf_consume(&runs->open, cut);
	else
		err = err ? err : buf_append(&runs->open, records->data.data + cut, left);
	return err ? ERR_LIMIT : 0;
}

/* The run that begins with what is open, or with the piece. */
static struct line_run runs_make(const struct line_runs *runs, const struct stream_piece *piece,
				 bool goes_on)
{
	struct line_run run = {.begin = piece->begin,
			       .records = {.data = piece->data,
					   .ends = piece->ends,
					   .end_count = piece->end_count,
					   .lines = piece->fields.lines},
			       .tags = piece->fields.tags,
			       .zone = piece->fields.zone,
			       .begins = piece->begin != runs->end,
			       .continues = piece->continues};
	if (!goes_on)
		return run;
	run.begin = runs->open_begin;
	run.begins = runs->open_begins;
	run.continues = runs->open_continues;
	return run;
}

static int runs_see_piece(struct line_runs *runs, const struct stream_piece *piece)
{
	bool goes_on = runs->open.len && runs_goes_on(runs, piece);
	struct line_run run = runs_make(runs, piece, goes_on);
	int err = goes_on ? 0 : runs_see_open(runs, piece->begin == runs->end);
	err = err ? err : runs_set_receipts(runs, piece, runs->open.len, &run.receipts);
	if (!err && goes_on)
		err = runs_join(runs, piece, &run.records);
	runs->end = piece->begin + piece->data.len;
	if (err)
		return err;
	size_t ended = line_records_ended(&run.records), cut = ended;
	cut += (run.records.data.len - ended) / LINE_RECORD_MAX_BYTES * LINE_RECORD_MAX_BYTES;
	struct line_run whole = run;
	whole.records.data.len = cut;
	if (cut)
		err = runs->see(&whole, runs->owner);
	return err ? err : runs_hold(runs, piece, &run, cut, cut > ended);
}

/* Bytes of blocks that cannot be read: nothing goes over them from one line to the next. */
static int runs_see_lost(struct line_runs *runs, struct chunk_reader *reader, int damage)
{
	struct offset_range lost;
	int err = chunk_reader_skip_lost(reader, &lost);
	if (err || lost.begin == lost.end)
		return err ? err : damage;
	const struct line_run run = {.begin = lost.begin,
				     .begins = lost.begin != runs->end,
				     .lost = lost.end - lost.begin};
	err = runs_see_open(runs, lost.begin == runs->end);
	runs->end = UINT64_MAX;
	return err ? err : runs->see(&run, runs->owner);
}

static int runs_see_pieces(struct line_runs *runs, struct chunk_reader *reader)
{
	struct stream_piece piece;
	int err;
	do {
		err = chunk_reader_next_readable(reader, &piece);
		if (err == ERR_DAMAGED || err == ERR_VERSION)
			err = runs_see_lost(runs, reader, err);
		else if (!err && piece.data.len)
			err = runs_see_piece(runs, &piece);
		else if (!err)
			return runs_see_open(runs, false);
	} while (!err);
	return err;
}

int line_runs_read(const struct stream_site *site, struct task_queue *queue,
		   const struct stream_id *id, const struct stream_known *known, uint64_t from,
		   uint64_t to, int (*see)(const struct line_run *run, void *owner), void *owner,
		   struct errbuf *e)
{
	/* No piece ends at UINT64_MAX: the first one begins, wherever it lies. */
	struct line_runs runs = {.site = site,
				 .queue = queue,
				 .id = id,
				 .e = e,
				 .see = see,
				 .owner = owner,
				 .end = UINT64_MAX};
	struct chunk_reader reader;
	buf_init(&runs.open, RUNS_OPEN_MAX_BYTES);
	buf_init(&runs.zone, CHUNK_ZONE_MAX_BYTES + 1);
	arena_init(&runs.ends, RUNS_ENDS_MAX_BYTES);
	arena_init(&runs.head_arena, RUNS_HEAD_MAX_BYTES);
	arena_init(&runs.receipts, RUNS_HEAD_MAX_BYTES);
	chunk_reader_init(&reader, site, queue, id, &known->sealed, &known->held, from, to, e);
	int err = runs_see_pieces(&runs, &reader);
	chunk_reader_release(&reader);
	arena_release(&runs.receipts);
	arena_release(&runs.head_arena);
	arena_release(&runs.ends);
	buf_release(&runs.zone);
	buf_release(&runs.open);
	return err;
}
