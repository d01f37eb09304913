/* Marks in the store itself (marks.h): they are part of the writes that have their samples, and
 * need no other round trip.
 *
 * Marks lie in the table `marks`: the row is (partition, slot), the column (stamp, writer), the
 * value a list of series: one cell for all series of that slot that a batch touched. A writer never
 * changes a cell. Whoever rolls up removes it, or leaves in it the series that are not done. So a
 * row holds the series that wait and nothing else, and no removed mark is ever read again.
 *
 * cell.h has the layout of a value. */
#ifndef MARKS_STORE_H
#define MARKS_STORE_H

#include "marks/marks.h"

struct marks_store_options {
	struct store *store;
	struct slice writer;    /* names this process in marks; the caller's */
	size_t write_max_bytes; /* of a write with marks alone; 0: the preset */
};

struct marks *marks_store_open(const struct marks_store_options *options);

#endif
