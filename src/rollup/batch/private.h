/* Private to rollup/batch/: the batch, and what its parts share.
 *
 * batch.c has its life and what comes after what, read.c opens the series and makes rows of what
 * was read, existing_rows.c looks for rows that are there already, write.c writes. */
#ifndef ROLLUP_BATCH_PRIVATE_H
#define ROLLUP_BATCH_PRIVATE_H

#include "base/hash_set.h"
#include "base/log.h"
#include "rollup/aggregate_row.h"
#include "rollup/batch/batch.h"

enum batch_phase { BATCH_RAW, BATCH_LATE, BATCH_ROWS, BATCH_REMOVALS };

/* Which rows a bucket of a series has. */
enum {
	ROW_THERE = 1 << 0,
	LATE_ROW_THERE = 1 << 1,
	LATE_ROW_WHOLE = 1 << 2, /* it says what came first and last */
};

/* A series of the batch. */
struct member {
	struct mark *mark;
	bool stays, lost; /* see struct rollup_batch_mark */
	struct slice metric;
	uint64_t handle;
	bool counter, damaged;
	bool has_raw; /* all its raw data of the slot is there */
	bool late;    /* it has late points in the slot */
	struct retention_fit fit;
	int64_t keep_ms[GRANULARITIES_MAX];   /* of its rows, by granularity; 0: for ever */
	uint8_t retention[GRANULARITIES_MAX]; /* class of these rows */
};

struct rollup_batch {
	const struct rollup_site *site;
	struct task_queue *queue; /* of the thread that works on it */
	size_t windows;           /* of the finest granularity in a slot */
	size_t rows;              /* of all granularities in a slot */

	int64_t slot_s;
	int64_t begun_ms;   /* wall clock */
	struct arena arena; /* names of the members */
	struct member members[STORE_GROUP_MAX];
	size_t count;
	size_t from, to; /* of members: what is being read */
	enum batch_phase phase;
	bool has_late;
	struct store_read *read;
	size_t removals;
	/* [0] of gauges, [1] of counters; [0] also of series whose stored rows are looked for. */
	uint64_t handles[2][STORE_GROUP_MAX];
	uint16_t places[2][STORE_GROUP_MAX]; /* in members, of these */
	size_t place_count[2];
	struct rollup_growth *growths; /* of counters, by windows */
	struct store_summary *coarse;  /* a series' summaries, of one granularity */
	struct value *values, *late;   /* [row][member][field]; of raw data, of late points */
	uint8_t *there;                /* [row][member]; NULL, like `late`: there are none */
	struct store_write *write;
	struct hash_set names;
	struct retention_memo memo;
	const struct retention_rules *rules; /* of this run */
	unsigned classes[GRANULARITIES_MAX]; /* bit by class that members have */
	struct log_rate damaged_lines;
	struct rollup_batch_result result;
};

static inline size_t batch_windows(const struct granularities *granularities, size_t granularity)
{
	return (size_t)(granularities->slot_ms / granularities->list[granularity].width_ms);
}

/* The granularity's first row in `values`, of member 0. */
static inline size_t batch_first_row(const struct rollup_batch *b, size_t granularity)
{
	size_t row = 0;
	for (size_t g = 0; g < granularity; g++)
		row += batch_windows(&b->site->granularities, g);
	return row;
}

static inline size_t batch_place(const struct rollup_batch *b, size_t row, size_t member)
{
	return row * b->count + member;
}

static inline struct value *batch_row_in(const struct rollup_batch *b, struct value *values,
					 size_t row, size_t member)
{
	return &values[batch_place(b, row, member) * ROLLUP_FIELDS];
}

static inline struct value *batch_row(struct rollup_batch *b, size_t row, size_t member)
{
	return batch_row_in(b, b->values, row, member);
}

static inline bool batch_has_row(struct rollup_batch *b, size_t row, size_t member)
{
	/* Every row has this one. */
	return batch_row(b, row, member)[ROLLUP_FIRST].type != VALUE_NONE;
}

/* A row that is written: of this granularity and class. */
struct row_place {
	struct value *values; /* those of the batch that it is of */
	size_t granularity, row;
	int64_t ts_ms;
	enum retention_class retention;
};

/* ---- batch.c --------------------------------------------------------------------------------- */

/* Whether all raw data that there ever was of the member in the slot is there still. */
bool batch_has_raw(const struct rollup_batch *b, const struct member *m);
/* Whether there is something of the member to be read in this phase. */
bool batch_reads(const struct rollup_batch *b, const struct member *m);
/* Reads what was added to b->read, as of now. */
int batch_read(struct rollup_batch *b) MUST_CHECK;
/* It stays marked, and is counted and told. */
void batch_give_up_series(struct rollup_batch *b, struct member *m);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* The handles of the members. */
int batch_open_series(struct rollup_batch *b) MUST_CHECK;
/* The rows of what there is of members from..to, in the table of the phase. */
int batch_read_data(struct rollup_batch *b) MUST_CHECK;

/* ---- existing_rows.c ------------------------------------------------------------------------- */

/* Which rows there are of members from..to. */
int batch_read_rows(struct rollup_batch *b) MUST_CHECK;
/* A row of late points of one member, before it is written: what it may say, and whether one that
 * is there has to go first. */
int batch_settle_member(struct rollup_batch *b, const struct row_place *place, size_t member);
/* Adds rows that are to go to the write. */
int batch_remove_rows(struct rollup_batch *b) MUST_CHECK;

/* ---- write.c --------------------------------------------------------------------------------- */

int batch_write_rows(struct rollup_batch *b) MUST_CHECK;

#endif
