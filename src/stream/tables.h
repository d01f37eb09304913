/* Keys, columns and small values of the tables of streams (doc/format-chunks.md). */
#ifndef STREAM_TABLES_H
#define STREAM_TABLES_H

#include "base/cursor.h"
#include "model/stream.h"
#include "store/store.h"
#include "stream/line_clock.h"
#include "stream/offsets.h"
#include "wire/chunk.h"
#include "words/lines.h"

/* One stream: its names and one incarnation. */
struct stream_id {
	struct slice tenant;
	struct stream_names names;
	uint64_t incarnation;
};

/* Copies its texts into the arena. ERR_LIMIT: that is full. */
int stream_id_keep(struct stream_id *id, struct arena *arena) MUST_CHECK;

enum { STREAM_PROPERTY_MAX_BYTES = 32 };

/* Parts of a key or a column, with the memory of those that are made. */
struct stream_parts {
	struct store_parts parts;
	uint8_t numbers[4][8];
	char text[STREAM_ADDRESS_MAX_BYTES], property[STREAM_PROPERTY_MAX_BYTES];
};

/* ---- streams: key (tenant), column (names, incarnation, property) -----------------------------
 */

enum stream_property {
	STREAM_MADE,   /* struct stream_made */
	STREAM_SEALED, /* offsets: which bytes are in blocks */
	STREAM_KEPT,   /* struct stream_kept */
	/* An offset: what is below it is to go, since somebody said so. There may be several, each
	 * in a column of its own: the greatest counts, whoever writes last. */
	STREAM_DELETED,
	STREAM_PROPERTIES
};

void streams_key(struct stream_parts *to, struct slice tenant);
void streams_column(struct stream_parts *to, const struct stream_id *id,
		    enum stream_property property);
void streams_deleted_column(struct stream_parts *to, const struct stream_id *id, uint64_t offset);
/* The first and, with `after`, the bound behind the last column of a stream. */
void streams_bound(struct stream_parts *to, const struct stream_id *id, bool after);
/* The same of all incarnations. */
void streams_names_bound(struct stream_parts *to, const struct stream_names *names, bool after);

/* ---- demux: key (tenant), column (names), value of demux_state.h ------------------------------
 */

void demux_key(struct stream_parts *to, struct slice tenant);
void demux_column(struct stream_parts *to, const struct stream_names *names);

struct stream_made {
	struct stream_id id; /* without a tenant */
	int64_t made_ms;     /* when its first chunk was received */
	bool here;           /* the collector made the incarnation: its sender knows of none */
	bool appended;       /* the same, of one that is appended to (struct stream_append) */
};

/* Which property a cell is of. False: of none that is known. */
bool streams_read_property(const struct store_cell *cell, enum stream_property *property);
void stream_made_encode(const struct stream_made *made, struct buf *out);
/* Names point into the value. ERR_DAMAGED; ERR_VERSION. */
int stream_made_decode(const struct store_cell *cell, struct stream_made *made) MUST_CHECK;
/* As they are part of a value; offsets that are read are added. */
void stream_put_offsets(const struct offsets *offsets, struct buf *out);
void stream_take_offsets(struct cursor *c, struct offsets *offsets);
void stream_sealed_encode(const struct offsets *sealed, struct buf *out);
/* Adds them to *sealed. ERR_DAMAGED; ERR_VERSION. */
int stream_sealed_decode(struct slice value, struct offsets *sealed) MUST_CHECK;

/* What has gone of a stream, or is to go. */
struct stream_kept {
	uint64_t from;     /* what is below is not shown any more */
	int64_t empty_ms;  /* since when nothing of it was there; 0: something is */
	int64_t before_ms; /* what is below was received before then; 0: that is not known */
	/* What is in blocks below, and is to be removed. */
	struct offsets going;
};
void stream_kept_encode(const struct stream_kept *kept, struct buf *out);
/* Adds to `going`. ERR_DAMAGED; ERR_VERSION. */
int stream_kept_decode(struct slice value, struct stream_kept *kept) MUST_CHECK;
void stream_deleted_encode(uint64_t offset, struct buf *out);
/* ERR_DAMAGED; ERR_VERSION. */
int stream_deleted_decode(struct slice value, uint64_t *offset) MUST_CHECK;

/* ---- chunk_tail: key (tenant, stream), column (sequence id, length, checksum) ------------------
 */

/* The checksum is that of the frame: what two collectors have taken never lies in one cell unless
 * it is the same. */
struct chunk_place {
	uint64_t sequence_id, length, checksum;
};
struct chunk_place chunk_place_of(const struct chunk_frame *frame);

void chunk_tail_key(struct stream_parts *to, const struct stream_id *id);
void chunk_column(struct stream_parts *to, const struct chunk_place *place);
/* The first column whose bytes end behind an offset. */
void chunk_bound(struct stream_parts *to, uint64_t offset);

/* ERR_DAMAGED: the length is none, or longer than the sequence id. */
int chunk_column_read(const struct store_cell *cell, struct chunk_place *place) MUST_CHECK;

/* A cell of chunk_tail, or of chunk_sink, whose blocks are chunks, too: when the chunk was
 * received, of a block its first one, and its frame. */
int chunk_cell_encode(int64_t received_ms, struct slice frame, struct buf *out) MUST_CHECK;
/* The frame points into the value. ERR_DAMAGED; ERR_VERSION. */
int chunk_cell_decode(const struct store_cell *cell, int64_t *received_ms,
		      struct chunk_frame *frame) MUST_CHECK;

/* The same without a look at the frame, which may be damaged: how long it is. */
int chunk_cell_peek(const struct store_cell *cell, int64_t *received_ms,
		    size_t *frame_bytes) MUST_CHECK;

/* ---- chunk_sink: key (tenant, stream, sequence id >> 30), column as of chunk_tail -------------
 */

enum { CHUNK_SINK_PART_BITS = 30 };
void chunk_sink_key(struct stream_parts *to, const struct stream_id *id, uint64_t part);

/* ---- chunk_heads: key as of chunk_sink, column (kind, sequence id, length, checksum) ------------
 */

/* The numbers are on disk: never renumber, only append. */
enum chunk_head_kind {
	CHUNK_HEAD_RECEIVED = 1, /* struct chunk_received */
	CHUNK_HEAD_LINES = 2,    /* struct chunk_lines */
	CHUNK_HEAD_WORDS = 3,    /* a filter of the words of its lines (words/lines.h) */
	CHUNK_HEAD_KINDS
};
void chunk_head_column(struct stream_parts *to, enum chunk_head_kind kind,
		       const struct chunk_place *place);
/* The first column of a kind whose block ends behind an offset. */
void chunk_head_bound(struct stream_parts *to, enum chunk_head_kind kind, uint64_t offset);
/* ERR_DAMAGED. */
int chunk_head_column_read(const struct store_cell *cell, struct chunk_place *place) MUST_CHECK;

/* When the first and the last of the chunks of a block were received. */
struct chunk_received {
	int64_t first_ms, last_ms;
};
void chunk_received_encode(const struct chunk_received *received, struct buf *out);
/* ERR_DAMAGED; ERR_VERSION. */
int chunk_received_decode(struct slice value, struct chunk_received *received) MUST_CHECK;

/* From an offset of a block on, its bytes were received then. */
struct chunk_receipt {
	uint32_t offset;
	int64_t received_ms;
};

/* The lines of a block. */
struct chunk_lines {
	uint64_t count;
	/* The least and the greatest of their times. All times, if the last record ends in another
	 * block: what time the whole of it says is not known. */
	int64_t first_ms, last_ms;
	struct line_carry before, behind; /* what goes to its first line, and from its last one */
	/* Where lines have the time at which they were received: when that was, by offset. */
	struct chunk_receipt *receipts;
	size_t receipt_count;
};
enum { CHUNK_RECEIPTS_MAX = 10000 }; /* of a block; behind them the last one holds */

/* When bytes were received, by offsets that do not descend. */
struct receipt_walk {
	int64_t received_ms; /* at first */
	const struct chunk_receipt *list;
	size_t count, next;
};
static inline int64_t receipt_walk_to(struct receipt_walk *walk, size_t offset)
{
	while (walk->next < walk->count && walk->list[walk->next].offset <= offset)
		walk->received_ms = walk->list[walk->next++].received_ms;
	return walk->received_ms;
}

void chunk_lines_encode(const struct chunk_lines *lines, struct buf *out);
/* Receipts are in the arena. ERR_DAMAGED; ERR_VERSION; ERR_LIMIT: the arena is full. */
int chunk_lines_decode(struct slice value, struct arena *arena,
		       struct chunk_lines *lines) MUST_CHECK;

void chunk_words_encode(struct words_set *words, struct buf *out);
/* The filter, of which words_filter_has knows nothing where it is of other rules of letters.
 * ERR_DAMAGED; ERR_VERSION. */
int chunk_words_decode(struct slice value, struct slice *filter) MUST_CHECK;

#endif
