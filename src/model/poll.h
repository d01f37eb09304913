/* What one poll of one OIDSet at one device gave: the message that the queue carries from poller to
 * persister. Bytes: doc/format-poll.md.
 *
 * Rows are what was measured (an interface), columns the OIDs. The names of both lie in a block of
 * their own that is equal, byte for byte, from one poll to the next, so that a reader compares it
 * (slice_equal) with the last one of that device, OIDSet and part, and reuses what it found out
 * about each place.
 *
 * Values come as an array by row, in the shape that store_append takes: the columns of one row are
 * neighbours. Texts and other JSON are listed aside; their place in the array is VALUE_NONE.
 *
 * A builder belongs to one thread. What was decoded points into the message and the arena. */
#ifndef MODEL_POLL_H
#define MODEL_POLL_H

#include "base/base.h"
#include "base/buf.h"
#include "model/value.h"

struct arena;

enum {
	POLL_BYTES_MAX = (16 << 20) - 4096, /* of one message */
	POLL_ROWS_MAX = 65536,
	POLL_COLUMNS_MAX = 256,
	POLL_CELLS_MAX = 1 << 20,  /* rows times columns */
	POLL_PARTS_MAX = 4,        /* of a row's path */
	POLL_NAME_MAX_BYTES = 255, /* device, OIDSet */
	POLL_COLUMN_MAX_BYTES = 256,
	POLL_PART_MAX_BYTES = 1024,
	POLL_TEXT_MAX_BYTES = 65535, /* of one value */
	/* An arena of this size takes what any message decodes to. */
	POLL_ARENA_MAX_BYTES = 128 << 20,
};

/* ---- Reading ------------------------------------------------------------------------------- */

/* A message cut into its blocks. Counts and texts are within the limits; the rest is looked at when
 * it is decoded. */
struct poll {
	int64_t ts_ms;
	uint32_t part; /* of the messages of this poll, from 0 */
	bool last;     /* there are no more of them */
	size_t row_count, column_count;
	size_t text_count;
	struct slice device, oidset;
	struct slice names;  /* the whole block: to compare, and for poll_decode_names */
	struct slice values; /* for poll_decode_values: from the rows' times on */
};

struct poll_row {
	size_t part_count;
	struct slice parts[POLL_PARTS_MAX];
};

struct poll_names {
	const struct slice *columns;
	const struct poll_row *rows;
};

struct poll_text {
	uint32_t row, column;
	bool json; /* the text is a JSON value, not a string's content */
	struct slice text;
};

struct poll_values {
	int64_t *row_ts_ms;   /* by row: the time of its own reply */
	struct value *values; /* [row * column_count + column]; the reader may change them */
	const struct poll_text *texts; /* by column, in it by row */
	size_t text_count;
};

/* ERR_INVALID with a sentence for bytes that no encoder wrote; ERR_VERSION for a newer format. */
int poll_open(struct slice message, struct poll *poll, struct errbuf *e) MUST_CHECK;
/* ERR_INVALID likewise; ERR_LIMIT when the arena is full. A names block that is equal to one that
 * was decoded need not be decoded again. */
int poll_decode_names(const struct poll *poll, struct arena *arena, struct poll_names *names,
		      struct errbuf *e) MUST_CHECK;
/* The latest of its own time and those of its rows. ERR_INVALID likewise. */
int poll_latest_ms(const struct poll *poll, int64_t *latest_ms, struct errbuf *e) MUST_CHECK;
int poll_decode_values(const struct poll *poll, struct arena *arena, struct poll_values *values,
		       struct errbuf *e) MUST_CHECK;

/* ---- Writing ------------------------------------------------------------------------------- */

struct poll_cell; /* private */

/* Columns first, then rows, each followed by its values. Reused from poll to poll: it keeps its
 * memory. */
struct poll_builder {
	struct buf device, oidset;
	struct buf columns, rows; /* encoded names */
	struct buf texts;         /* the bytes of text values */
	size_t row_count, column_count;
	int64_t ts_ms;
	/* private */
	bool has_texts;
	int64_t *row_ts_ms;
	struct poll_cell *cells;
	size_t row_cap, cell_cap;
};

void poll_builder_init(struct poll_builder *builder);
void poll_builder_release(struct poll_builder *builder);

/* Empties it. ERR_INVALID: a name is empty or too long. */
int poll_begin(struct poll_builder *builder, struct slice device, struct slice oidset,
	       int64_t ts_ms, struct errbuf *e) MUST_CHECK;
/* The same, with the OIDSet and the columns of the poll before. */
int poll_begin_again(struct poll_builder *builder, struct slice device, int64_t ts_ms,
		     struct errbuf *e) MUST_CHECK;
/* ERR_INVALID: the name is empty or too long; ERR_LIMIT: too many. Only before the first row. Of
 * columns with equal names both are kept. */
int poll_add_column(struct poll_builder *builder, struct slice name, struct errbuf *e) MUST_CHECK;
/* A row whose values are all none. ERR_INVALID: a part is too long, or there are too many;
 * ERR_LIMIT: the message is full, encode it and begin the next part. After an error the builder is
 * as before. */
int poll_add_row(struct poll_builder *builder, const struct slice *parts, size_t part_count,
		 int64_t ts_ms, struct errbuf *e) MUST_CHECK;
void poll_set(struct poll_builder *builder, size_t row, size_t column, struct value value);
/* All of a row: `values` by column. */
void poll_set_row(struct poll_builder *builder, size_t row, const struct value *values);
/* `text` is copied. ERR_INVALID: it is too long; ERR_LIMIT: the message is full. */
int poll_set_text(struct poll_builder *builder, size_t row, size_t column, struct slice text,
		  bool json, struct errbuf *e) MUST_CHECK;

/* Appends the message to `out`; the builder stays as it is. ERR_LIMIT: it passes POLL_BYTES_MAX or
 * the buffer's maximum; then the buffer is as before. */
int poll_encode(const struct poll_builder *builder, uint32_t part, bool last, struct buf *out,
		struct errbuf *e) MUST_CHECK;

#endif
