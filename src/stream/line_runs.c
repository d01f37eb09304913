#include "stream/line_runs.h"

#include "stream/chunk_reader.h"

enum {
	RUNS_OPEN_MAX_BYTES = 2 * CHUNK_DATA_MAX_BYTES, /* a record that is open, and a piece */
	RUNS_ENDS_MAX_BYTES = 16 << 20,
};

struct line_runs {
	int (*see)(const struct line_run *run, void *owner);
	void *owner;
	uint64_t end; /* behind the piece before */
	struct buf open;
	uint64_t open_begin;
	int64_t open_received_ms;
	bool open_lines, open_begins, open_continues;
	struct buf zone; /* of what is open */
	struct arena ends;
};

static int runs_see_open(struct line_runs *runs, bool cut)
{
	const struct line_run run = {
		.begin = runs->open_begin,
		.records = {.data = buf_slice(&runs->open), .lines = runs->open_lines},
		.received_ms = runs->open_received_ms,
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
	       slice_equal(piece->fields.zone, buf_slice(&runs->zone)) &&
	       runs->open.len + piece->data.len <= RUNS_OPEN_MAX_BYTES;
}

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

/* Keeps what is behind the last whole record of a run for the next piece. */
static int runs_hold(struct line_runs *runs, const struct stream_piece *piece,
		     const struct line_run *run, size_t cut)
{
	const struct line_records *records = &run->records;
	size_t left = records->data.len - cut;
	bool joined = records->data.data == runs->open.data;
	/* A record that goes on over a whole piece began before that. */
	if (!joined || cut) {
		runs->open_begin = piece->begin + piece->data.len - left;
		runs->open_received_ms = piece->received_ms;
		runs->open_begins = !cut && run->begins;
		runs->open_continues = !cut && run->continues;
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
				 bool goes_on, const struct chunk_receipt *receipt)
{
	struct line_run run = {.begin = piece->begin,
			       .records = {.data = piece->data,
					   .ends = piece->ends,
					   .end_count = piece->end_count,
					   .lines = piece->fields.lines},
			       .received_ms = piece->received_ms,
			       .tags = piece->fields.tags,
			       .zone = piece->fields.zone,
			       .begins = piece->begin != runs->end,
			       .continues = piece->continues};
	if (!goes_on)
		return run;
	run.begin = runs->open_begin;
	run.received_ms = runs->open_received_ms;
	run.receipt = receipt;
	run.begins = runs->open_begins;
	run.continues = runs->open_continues;
	return run;
}

static int runs_see_piece(struct line_runs *runs, const struct stream_piece *piece)
{
	const struct chunk_receipt receipt = {(uint32_t)runs->open.len, piece->received_ms};
	bool goes_on = runs->open.len && runs_goes_on(runs, piece);
	struct line_run run = runs_make(runs, piece, goes_on, &receipt);
	int err = goes_on ? runs_join(runs, piece, &run.records)
			  : runs_see_open(runs, piece->begin == runs->end);
	runs->end = piece->begin + piece->data.len;
	if (err)
		return err;
	size_t cut = line_records_ended(&run.records);
	struct line_run whole = run;
	whole.records.data.len = cut;
	if (cut)
		err = runs->see(&whole, runs->owner);
	return err ? err : runs_hold(runs, piece, &run, cut);
}

static int runs_see_pieces(struct line_runs *runs, struct chunk_reader *reader)
{
	struct stream_piece piece;
	int err;
	do {
		err = chunk_reader_next_readable(reader, &piece);
		if (!err && piece.data.len)
			err = runs_see_piece(runs, &piece);
	} while (!err && piece.data.len);
	return err ? err : runs_see_open(runs, false);
}

int line_runs_read(const struct stream_site *site, struct task_queue *queue,
		   const struct stream_id *id, const struct stream_known *known, uint64_t from,
		   uint64_t to, int (*see)(const struct line_run *run, void *owner), void *owner,
		   struct errbuf *e)
{
	/* No piece ends at UINT64_MAX: the first one begins, wherever it lies. */
	struct line_runs runs = {.see = see, .owner = owner, .end = UINT64_MAX};
	struct chunk_reader reader;
	buf_init(&runs.open, RUNS_OPEN_MAX_BYTES);
	buf_init(&runs.zone, CHUNK_ZONE_MAX_BYTES + 1);
	arena_init(&runs.ends, RUNS_ENDS_MAX_BYTES);
	chunk_reader_init(&reader, site, queue, id, &known->sealed, &known->held, from, to, e);
	int err = runs_see_pieces(&runs, &reader);
	chunk_reader_release(&reader);
	arena_release(&runs.ends);
	buf_release(&runs.zone);
	buf_release(&runs.open);
	return err;
}
