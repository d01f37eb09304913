/* Keys and columns of the tables of faults, and the small values in them (doc/format-faults.md). */
#ifndef FAULT_TABLES_H
#define FAULT_TABLES_H

#include "fault/arrival.h"
#include "fault/attachment.h"
#include "fault/day.h"
#include "store/store.h"

/* A column of `oops` has an id and a tracker, and may have so many bytes (store.h). */
enum { FAULT_BUG_TRACKER_MAX_BYTES = 100 };
#define FAULT_BUG_PREFIX "bug."

/* Parts of a key or a column, with the memory of those that are made. */
struct fault_parts {
	struct store_parts parts;
	uint8_t numbers[3][8];
	uint8_t place[16];
	char text[FAULT_ROW_TEXT_BYTES + 1];
	char attribute[sizeof(FAULT_BUG_PREFIX) + FAULT_BUG_TRACKER_MAX_BYTES];
};

void fault_writers_key(struct fault_parts *to, struct slice tenant);
void fault_writers_column(struct fault_parts *to, uint64_t writer);
void fault_arrivals_key(struct fault_parts *to, struct slice tenant, struct fault_place place);
void fault_arrivals_column(struct fault_parts *to, uint64_t sequence);
/* Their rows are those of arrivals. */
void fault_attachments_column(struct fault_parts *to, uint64_t sequence,
			      enum fault_attachment_part part, uint64_t number);
/* Their rows are those of arrivals, too. */
enum fault_segment_part { FAULT_SEGMENT_DIRECTORY, FAULT_SEGMENT_FILTERS, FAULT_SEGMENT_BLOCK };
void fault_segments_column(struct fault_parts *to, uint64_t name, enum fault_segment_part part,
			   uint64_t number);
void fault_runs_key(struct fault_parts *to, struct slice tenant);
/* The run of this place. */
void fault_runs_column(struct fault_parts *to, struct fault_place place);
enum { FAULT_OOPS_SHARDS = 1 << 12 };
void fault_oops_key(struct fault_parts *to, struct slice tenant, struct slice id);
void fault_oops_shard_key(struct fault_parts *to, struct slice tenant, uint64_t shard);
/* Of an arrival; the first and, with `after`, the one after the last that an id may have. */
void fault_oops_column(struct fault_parts *to, struct slice id, struct fault_place place);
void fault_oops_bound(struct fault_parts *to, struct slice id, bool after);
enum {
	FAULT_LISTINGS_MAX = 64,    /* arrivals of one id that are looked at */
	FAULT_BUG_ENTRIES_MAX = 64, /* bugs of one id: jobs may have set the last one at once */
};
/* Of a bug; and the first that an id may have of any kind, which lies before those of arrivals. */
void fault_oops_bug_column(struct fault_parts *to, struct slice id, struct slice tracker);
void fault_oops_begin(struct fault_parts *to, struct slice id);
void fault_books_key(struct fault_parts *to, struct slice tenant);
void fault_books_column(struct fault_parts *to, uint64_t tenure);
void fault_summaries_key(struct fault_parts *to, struct slice tenant, int64_t day,
			 enum fault_row row);
void fault_groups_key(struct fault_parts *to, struct slice tenant, struct slice group);
void fault_groups_column(struct fault_parts *to, int64_t day);
/* A group that has its first reports of a day; or, without one, a day that is over. */
void fault_causes_column(struct fault_parts *to, int64_t day, struct slice group);

void fault_erased_column(struct fault_parts *to, struct fault_place place);
/* The numbers are on disk. */
enum fault_erased_state {
	FAULT_ERASED_ENTERED = 1,
	FAULT_ERASED_DONE = 2, /* the arrival is in no counts any more, and may go */
};
static inline bool fault_erased_is_done(const struct store_cell *cell)
{
	return cell->value.len == 1 && cell->value.data[0] == FAULT_ERASED_DONE;
}

/* A part that is a number; 0 where it is none. */
uint64_t fault_part_number(struct slice part);

/* The numbers are on disk: never renumber, only append. */
enum fault_writer_state {
	FAULT_WRITER_WRITES = 0,
	FAULT_WRITER_ENDED = 1,  /* the owner says so */
	FAULT_WRITER_CLOSED = 2, /* its process says that nothing comes of it any more */
};

/* A cell of `report_writers`. */
struct fault_writer_cell {
	enum fault_writer_state state;
	uint64_t next;    /* of one that does not write any more */
	int64_t began_us; /* when it was made */
	int64_t last_us;  /* likewise: when it received its last; INT64_MIN: nothing */
	struct slice holder;
};
void fault_writer_cell_encode(const struct fault_writer_cell *cell, struct buf *out);
int fault_writer_cell_decode(struct slice bytes, struct fault_writer_cell *cell) MUST_CHECK;

/* A cell of `oops` with the attribute `date`. */
struct fault_listing {
	struct fault_order order;
	struct hash128 digest;
};
enum { FAULT_LISTING_BYTES = 24 };
void fault_listing_encode(const struct fault_listing *listing, uint8_t to[FAULT_LISTING_BYTES]);
/* False: no program wrote it. */
bool fault_listing_decode(const struct store_cell *cell, struct fault_listing *listing) MUST_CHECK;
/* It says that reports of the id are erased (erase.h): it comes before all others, by column and by
 * date, and no writer has this number. */
extern const struct fault_listing fault_erased_listing;
static inline bool fault_listing_is_erased(const struct fault_listing *listing)
{
	return !listing->order.place.writer;
}

/* A cell of `oops` with the attribute `bug.TRACKER`: which bug of this tracker a report is, as
 * people said when it was there. An empty text: none, though its body has one. */
struct fault_oops_bug {
	struct slice tracker, bug;
	int64_t stamp_us;
};
/* Texts point into the cell. False: it is another attribute. */
bool fault_oops_bug_decode(const struct store_cell *cell, struct fault_oops_bug *bug) MUST_CHECK;
/* Copies the texts into the arena. ERR_LIMIT: it is full. */
int fault_oops_bug_keep(struct fault_oops_bug *bug, struct arena *arena) MUST_CHECK;

#endif
