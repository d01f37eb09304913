/* Private to demux_*.c: a pass over a stream, and what its parts share. */
#ifndef STREAM_DEMUX_PRIVATE_H
#define STREAM_DEMUX_PRIVATE_H

#include "stream/demux_pass.h"

enum {
	PASS_NUMBERS = 1 + 3 * DATATYPE_VALUES_MAX, /* of a point, which a bin has */
	/* Stop a walk, without an error. */
	PASS_ENOUGH = 1,
	PASS_END = 2,
	PASS_BACK = 3,            /* what stands in front is needed, too */
	PASS_AHEAD_MS = 86400000, /* a line so far after its receipt has a wrong clock */
	PASS_HOUR_MS = 3600000,
	PASS_RECORD_MAX_BYTES = 2 * CHUNK_DATA_MAX_BYTES,
};

/* A pass over a stream. */
struct pass {
	struct demux_work *work;
	struct demux_stream *stream;
	struct demux_passed *passed;
	struct errbuf *e;
	int64_t stamp_us;      /* of the cell; taken before anything is read */
	uint64_t late;         /* of the lines that it reads: they are in no bin */
	int64_t written;       /* values; those that follow have a stamp above theirs */
	int64_t written_texts; /* likewise */
	struct datatype_reader reader;
	struct datatype_record record;
	struct tag fixed[3]; /* host, cluster, name */
	size_t fixed_count;

	/* Of the incarnation that is read. */
	struct demux_read *read;
	uint64_t end;    /* a record that begins there, or behind, is read already */
	uint64_t done;   /* behind the last record that was read */
	uint64_t from;   /* where the range begins that is read */
	uint64_t lost;   /* bytes that cannot be read, of all incarnations */
	bool after_done; /* the byte in front of it is done */
	bool after_hole; /* that byte is not held, and no record was read since */

	struct bins derived;  /* while bins are derived anew */
	size_t derived_count; /* the first so many that wait for that */

	/* The numbers of a point that is made. */
	struct slice metrics[PASS_NUMBERS], units[PASS_NUMBERS];
	struct value values[PASS_NUMBERS];
};

/* ---- demux_points.c: what goes to the sink --------------------------------------------------- */

/* Whether a write ends before the lease does. */
bool pass_may_write(const struct demux_work *work);
/* Writes the points that wait. */
int pass_flush_points(struct pass *p) MUST_CHECK;
/* Adds the numbers that are gathered, of which there may be none. */
int pass_add_numbers(struct pass *p, struct demux_point *point) MUST_CHECK;
/* A label that a line has not is no tag. NULL: labels of which there are too many. */
void pass_set_tags(const struct pass *p, struct demux_point *point, const struct slice *labels);

/* Whether labels have series of their own: the first ones have. */
bool pass_has_series(struct pass *p, struct hash128 hash);
/* The series of the record's labels. */
size_t pass_series(struct pass *p, struct bins *bins, bool *is_rest);

/* ---- demux_texts.c: what is no number ------------------------------------------------------- */

void demux_texts_init(struct demux_work *work);
void demux_texts_release(struct demux_work *work);
/* Forgets the texts that wait. */
void demux_texts_clear(struct demux_work *work);
/* Takes the texts of the record, which has the tags of this point. */
int pass_take_texts(struct pass *p, const struct demux_point *point) MUST_CHECK;
/* Takes the tags of a chunk that has a line in this hour. */
int pass_take_chunk_tags(struct pass *p, struct slice tags, int64_t hour_ms) MUST_CHECK;
/* Writes the texts that wait. */
int pass_flush_texts(struct pass *p) MUST_CHECK;

/* ---- demux_bins.c ---------------------------------------------------------------------------- */

void pass_add_to_bin(struct pass *p, struct bins *bins, int64_t bin_ms, size_t series);
/* Writes the bins that have changed. */
int pass_write_bins(struct pass *p, struct bins *bins) MUST_CHECK;
/* What is left of memory are the bins of the last minutes. */
void pass_trim_bins(struct pass *p);
/* Bins of which a part is in no memory are made of all lines of their time. */
int pass_derive(struct pass *p) MUST_CHECK;

/* ---- demux_cell.c ---------------------------------------------------------------------------- */

/* Reads the state, without more. ERR_DAMAGED and ERR_VERSION, with a sentence: the cell has none.
 */
int pass_read_cell(struct pass *p, bool *found) MUST_CHECK;
/* Reads what is known of the stream, whose first incarnation was made then. */
int pass_load(struct pass *p, int64_t made_ms) MUST_CHECK;
/* Writes it; `gone`: nothing is known any more. */
int pass_write_cell(struct pass *p, bool gone) MUST_CHECK;

#endif
