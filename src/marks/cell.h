/* Private to marks/store.c: a cell of marks says which series of a slot were touched, when, and
 * whether by a deletion. Series of the same tags that follow each other have these tags once.
 *
 *   version, 1 byte: 3, or 4 for touches of a deletion
 *   when, in ms, 8 bytes
 *   groups, to the end: tenant after its length in 1 byte, the tags' text after its length in 2,
 *     2 bytes how many metrics, 1 at least, and each metric's text after its length in 2
 *
 * Numbers are little endian. Versions 1 and 2 have no groups, but for each series the tenant and
 * the whole text of its series-set, each after its length. */
#ifndef MARKS_CELL_H
#define MARKS_CELL_H

#include "base/buf.h"
#include "base/cursor.h"
#include "model/series.h"

/* ---- Writing --------------------------------------------------------------------------------- */

struct mark_cell_writer {
	struct buf *value;
	struct slice tenant, tags; /* of the group that is open */
	size_t count_at;           /* where its count stands; 0: none is open */
	uint16_t count;
};

/* Clears `value`, which has to have room. */
void mark_cell_begin(struct mark_cell_writer *writer, struct buf *value, bool deleted,
		     int64_t touched_ms);
/* How many bytes more the cell has with it, at most. */
size_t mark_cell_bytes(struct slice tenant, struct series_set series_set);
/* The texts stay until the cell is whole. */
void mark_cell_put(struct mark_cell_writer *writer, struct slice tenant,
		   struct series_set series_set);

/* ---- Reading --------------------------------------------------------------------------------- */

struct mark_cell_reader {
	struct cursor rest;
	bool whole_texts; /* versions 1 and 2 */
	bool deleted;
	int64_t touched_ms;
	struct slice tenant, tags; /* of the group */
	size_t left;               /* of it */
};

/* Whether it is to its end what a program up to this version writes; if so the reader stands before
 * the first series. */
bool mark_cell_open(struct mark_cell_reader *reader, struct slice value);
/* The next series, its texts in the cell; false: there are no more. */
bool mark_cell_next(struct mark_cell_reader *reader, struct slice *tenant,
		    struct series_set *series_set);

#endif
