/* Tracking in the store itself (marks/marks.h): marks are part of the writes that they stand
 * before, and cost no talk with anybody.
 *
 * Marks lie in the table `marks`: the row is (partition, slot), the column (stamp, writer), the
 * value a list of series: one cell for all that a batch touched of that slot. A cell is never
 * changed by its writer. Who rolls up removes it, or leaves those of its series in it that are not
 * done. So a row holds what is waiting and nothing else, and no removed mark is ever passed over
 * again.
 *
 *     value   version u8 = 1, or 2 where samples were deleted, time of the touch in ms i64 (LE),
 *             then per series:
 *             tenant length u8, tenant, series-set length u16 (LE), series-set */
#ifndef MARKS_STORE_H
#define MARKS_STORE_H

#include "marks/marks.h"

struct marks_store_options {
	struct store *store;
	struct slice writer;    /* names this process in marks; the caller's */
	size_t write_max_bytes; /* of what it writes by itself; 0: as much as is good */
};

struct marks *marks_store_open(const struct marks_store_options *options);

#endif
