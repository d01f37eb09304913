/* A sealed run: the reports of a run of arrivals, in columns, and their bodies in blocks
 * (doc/format-faults.md, **Sealed runs**). Bytes in, struct out. Pure.
 *
 * The reports lie in the order of their numbers, the bodies in the order of groups, so that what
 * stands together in a block is alike. */
#ifndef FAULT_SEGMENT_H
#define FAULT_SEGMENT_H

#include "base/mem.h"
#include "fault/arrival.h"
#include "words/filter.h"

enum {
	FAULT_BLOCK_REPORTS = FAULT_RUN_PART,
	FAULT_BLOCK_BYTES = 512 << 10, /* of bodies, unless it is one report */
	FAULT_DIRECTORY_MAX_BYTES = 32 << 20,
	FAULT_FILTERS_MAX_BYTES = 32 << 20, /* of a run */
	FAULT_FILTERS_FORMAT = 2, /* a cell begins with this ^ words_rules(); of before: 0 ^ */
};

/* A report of a segment. Its arrival is without the packed body. */
struct fault_sealed {
	uint64_t sequence;
	struct fault_arrival arrival;
	uint32_t block;
	uint32_t at; /* where its body begins in the block */
};

struct fault_block {
	uint64_t body_bytes;   /* of its reports, as they come out of it */
	uint32_t first, count; /* places in `order` */
};

struct fault_segment {
	uint64_t dictionary;          /* by which blocks are compressed */
	struct fault_sealed *reports; /* by sequence, ascending */
	size_t count;
	uint32_t *order; /* places in `reports`, block by block */
	struct fault_block *blocks;
	size_t block_count;
	struct arena arena; /* of all of it but the texts */
	struct buf bytes;   /* that were decoded: of the texts */
};

/* Puts reports, whose arrivals and sequences are filled in, in the order of blocks. The texts stay
 * the caller's. The segment is to be released. */
void fault_segment_plan(struct fault_segment *segment, struct fault_sealed *reports, size_t count);
/* The directory: all but the bodies. */
void fault_segment_encode(const struct fault_segment *segment, struct buf *out);
/* ERR_DAMAGED, ERR_VERSION, ERR_LIMIT. The segment is to be released in any case. */
int fault_segment_decode(struct slice bytes, struct fault_segment *segment) MUST_CHECK;
void fault_segment_release(struct fault_segment *segment);

/* The place in `reports` of the first whose sequence is not less; `count`: there is none. */
size_t fault_segment_find(const struct fault_segment *segment, uint64_t sequence);
/* Likewise of the first that was not received earlier. */
size_t fault_segment_find_date(const struct fault_segment *segment, int64_t date_us);

/* The part of a block, for its filter, that its report at this place is in. */
static inline unsigned fault_block_part(uint32_t at)
{
	return at * WORDS_PARTS_MAX / FAULT_BLOCK_REPORTS;
}
/* A cell of filters: those of `count` blocks from the block `first` on, which follow one by one. */
void fault_filters_begin(uint64_t first, uint64_t count, struct buf *out);
void fault_filters_put(struct slice filter, struct buf *out);
/* Takes those that a cell has, of a run with so many blocks: list[b] is that of block b, in the
 * arena. *next: the block with whose filter the cell has to begin, and then the next one. A cell
 * that begins elsewhere is of an attempt that did not end, and one that was made by other rules of
 * words says nothing: both are passed over. ERR_DAMAGED, ERR_LIMIT. */
int fault_filters_take(struct slice bytes, uint64_t blocks, uint64_t *next, struct slice *list,
		       struct arena *arena) MUST_CHECK;

/* A cell of `report_runs`. */
struct fault_run_cell {
	bool cleared;    /* the arrivals are gone */
	bool rewritten;  /* cleared, and earlier segments of the run are to go */
	uint64_t name;   /* of the segment, among those that were made of this run */
	uint64_t chunks; /* of the directory */
	uint64_t blocks;
	uint64_t reports;
	int64_t first_us, last_us; /* when its first and last report were received */
	uint64_t bytes;            /* of all cells of the segment */
};
void fault_run_cell_encode(const struct fault_run_cell *cell, struct buf *out);
int fault_run_cell_decode(struct slice bytes, struct fault_run_cell *cell) MUST_CHECK;

#endif
