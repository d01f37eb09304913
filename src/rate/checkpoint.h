/* The checkpoint cell of a run of rows: up to when raw data was looked at, and the state of each
 * counter, which goes on after its last sample: what came of it later may be older than that. Table
 * rate_checkpoints, key device and OIDSet; the column is the least id that the run may hold, and
 * the run ends where the next one begins. Private to rate/.
 *
 *  u8 version
 *  varint base_ms; varint periods; varint period_ms each
 *  varint until_ms (zigzag)
 *  varint columns; varint bytes, name each
 *  u32 rows; of each: u64 id, varint of the columns that have a state (bit 0 the first, at least
 * one), u32 bytes that follow; of these columns together: numbers (numbers.h), 0 each (once the
 * ms by which a counter was fed less far; not looked at), states (counter_state.c)
 */
#ifndef RATE_CHECKPOINT_H
#define RATE_CHECKPOINT_H

#include "base/cursor.h"
#include "rate/rate.h"

/* One that an older version wrote may have been longer; it is read all the same. */
enum { CHECKPOINT_MAX_BYTES = TABLE_SHARED_VALUE_MAX_BYTES, CHECKPOINT_READ_MAX_BYTES = 8 << 20 };

/* Nothing is in any bin yet. */
#define CHECKPOINT_NEVER INT64_MIN

struct checkpoint {
	struct counter_config config;
	int64_t until_ms;
	size_t column_count;
	struct slice columns[RATE_COLUMNS_MAX];
	uint64_t rows_left;
	struct cursor from;
	struct slice states; /* of the present row */
};

/* The head; rows follow. Names point into `bytes`. ERR_DAMAGED, ERR_VERSION. */
int checkpoint_open(struct slice bytes, struct checkpoint *checkpoint) MUST_CHECK;

/* The place of each of its columns in the table; RATE_COLUMNS_MAX: it has none. */
void checkpoint_match(const struct checkpoint *checkpoint, const struct rate_table *table,
		      size_t match[RATE_COLUMNS_MAX]);

struct checkpoint_row {
	uint64_t id;
	uint64_t columns;                        /* bits */
	struct counter states[RATE_COLUMNS_MAX]; /* of these */
};
/* The next row, of which only id and columns are set; ERR_NOT_FOUND after the last, ERR_DAMAGED. */
int checkpoint_next(struct checkpoint *checkpoint, struct checkpoint_row *row) MUST_CHECK;
/* And the rest of it, before the next. `places`: by column where its state goes instead, or NULL;
 * itself NULL: nowhere else. ERR_DAMAGED, ERR_VERSION: the states mean nothing. */
int checkpoint_states(const struct checkpoint *checkpoint, struct checkpoint_row *row,
		      struct counter *const *places) MUST_CHECK;

/* Writing: begin, rows in order, end. */
struct checkpoint_writer {
	const struct counter_config *config;
	struct buf bytes;
	size_t count_at; /* where the number of rows stands */
	uint32_t rows;
};
void checkpoint_begin(struct checkpoint_writer *writer, const struct counter_config *config,
		      int64_t until_ms, const struct slice *columns, size_t column_count);
/* At least one column. */
void checkpoint_add(struct checkpoint_writer *writer, uint64_t id, uint64_t columns,
		    const struct counter *states);
/* ERR_LIMIT: it has become too long. */
int checkpoint_end(struct checkpoint_writer *writer, struct slice *bytes) MUST_CHECK;

#endif
