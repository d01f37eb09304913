/* Journal records: how samples and deletions wait in the journal until their heads are sealed. Pure
 * functions; the writer (writer.c) puts records into pages and pages into LMDB. Private.
 *
 * Each record has a sequence number of its own; a page is stored under that of its first record.
 * The byte layout is doc/format-store.md, "Journal". */
#ifndef STORE_LMDB_JOURNAL_H
#define STORE_LMDB_JOURNAL_H

#include "store/lmdb/codec/row_codec.h"
#include "store/lmdb/registry.h"

enum record_kind {
	RECORD_ROW = 1,
	RECORD_DELETE = 2,
	RECORD_CLEAR = 3, /* a deletion in every class but that of the sheet (rekey.c) */
	/* Rows of several times, by column: in batches only. What does not go straight to extents
	 * becomes rows (bulk_to_rows.c), so neither the journal nor heads ever see one. */
	RECORD_COLUMNS = 4,
};

enum {
	RECORD_VALUES_MAX = ROW_VALUES_MAX, /* so that it fits a page whatever they are */
	JOURNAL_PAGE_HEADER_BYTES = RECORD_HEADER_BYTES + 2 + 2 + 8,
	RECORD_MAX_BYTES = 2 + 64 + ROW_MAX_BYTES,
};

/* One row, or a deletion of start <= ts < end in one series (all its fields, every retention, or
 * but one). */
struct record {
	enum record_kind kind;
	struct store_target sheet; /* whose rows lie together */
	uint32_t shape, ordinal;
	unsigned first_column, columns; /* of the band times its fields */
	int64_t ts_ms;                  /* of a deletion: start */
	int64_t end_ms;                 /* of a deletion */
	/* Of a row, as row_codec.h has them; of columns, as record_columns finds them. Points into
	 * the bytes. */
	const uint8_t *values;
	unsigned values_bytes;
};

/* Records of one stage, encoded on the caller's thread. */
struct record_chunk {
	struct record_chunk *next;
	uint32_t used, cap;
	uint8_t bytes[];
};

/* Appends one row record, of `count` series from `first` on, which are columns of one band. Of each
 * the values of the fields given (bits), in order; the others are none. */
int record_put_row(struct arena *arena, struct record_chunk **last,
		   const struct store_target *sheet, uint64_t first, unsigned count,
		   unsigned fields, int64_t ts_ms, const struct value *values) MUST_CHECK;
/* `kind`: RECORD_DELETE, of no retention, or RECORD_CLEAR. */
int record_put_delete(struct arena *arena, struct record_chunk **last, enum record_kind kind,
		      const struct store_target *sheet, uint64_t handle, int64_t start_ms,
		      int64_t end_ms) MUST_CHECK;

/* Several times, ascending, of `series` neighbours: of each the fields given (bits), and of each of
 * these `count` values of one type, one after the other. */
struct record_columns {
	unsigned series, fields;
	uint8_t type;
	size_t count;
	const uint8_t *ts_ms; /* i64 each */
	const uint8_t *bits;  /* u64 each */
};
/* How many times one record takes. */
size_t record_columns_max(unsigned series, unsigned fields);
/* `step`: how far apart the columns lie, in values. */
int record_put_columns(struct arena *arena, struct record_chunk **last,
		       const struct store_target *sheet, uint64_t first,
		       const struct record_columns *columns, size_t step) MUST_CHECK;
struct record_columns record_columns(const struct record *record);
/* A record as it is, without its prefix. */
int record_put_copy(struct arena *arena, struct record_chunk **last, const uint8_t *record,
		    size_t len) MUST_CHECK;

/* The next record at *at (`left` bytes) with its length prefix; NULL at the end or if it is cut. */
const uint8_t *record_next(const uint8_t **at, size_t *left, size_t *len);
static inline enum table record_table(const uint8_t *record)
{
	return (enum table)(record[1] & 0x1f);
}
/* ERR_DAMAGED for bytes that record_put did not write. */
int record_parse(const uint8_t *bytes, size_t len, struct record *record) MUST_CHECK;
/* The same without looking into the values of a row: for what this process wrote. */
int record_view(const uint8_t *bytes, size_t len, struct record *record) MUST_CHECK;

/* A page while it is filled. */
struct journal_page {
	uint64_t first_sequence;
	uint16_t records;
	size_t used;
	uint8_t bytes[PAGE_VALUE_MAX_BYTES];
};

void journal_page_init(struct journal_page *page, uint64_t first_sequence, int64_t now_ms);
/* False when the record (with its prefix) does not fit any more. */
bool journal_page_add(struct journal_page *page, const uint8_t *record, size_t len);
/* Of records with their prefixes. */
static inline size_t journal_page_room(const struct journal_page *page)
{
	return sizeof(page->bytes) - page->used;
}
/* `count` records that stand one after the other with their prefixes, for which there is room. */
void journal_page_add_many(struct journal_page *page, const uint8_t *records, size_t bytes,
			   unsigned count);
void journal_page_finish(struct journal_page *page, uint8_t key[8]);

/* A stored page: its records, and when it was written. */
struct journal_view {
	uint64_t first_sequence;
	unsigned records;
	int64_t written_ms;
	const uint8_t *at;
	size_t left;
};
int journal_page_open(struct slice key, struct slice value, struct journal_view *view) MUST_CHECK;

#endif
