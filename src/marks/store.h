/* Marks in the store itself (marks.h): they are part of the writes that have their samples, and
 * need no other round trip.
 *
 * Marks lie in the table `marks`: the row is (partition, slot), the column (stamp, writer), the
 * value a list of series: one cell for all series of that slot that a batch touched. A writer never
 * changes a cell. Whoever rolls up removes it, or leaves in it the series that are not done. So a
 * row holds the series that wait and nothing else, and no removed mark is ever read again.
 *
 * Where several processes share the store, rows cannot be enumerated each minute. There the table
 * `mark_slots` says which slots of a partition may have marks: the row is the partition, the column
 * (slot, writer), the stamp that of the writer's last mark in the slot. It is written with the
 * mark. Whoever has finished all marks of a slot removes it, with the stamp that was read before
 * the marks were, and only when that is older than the quiet time: a mark of such a stamp that has
 * not come by then is one of a write that has failed (late_ms).
 *
 * cell.h has the layout of a value. */
#ifndef MARKS_STORE_H
#define MARKS_STORE_H

#include "base/clock.h"
#include "marks/marks.h"

struct marks_store_options {
	struct store *store;
	struct slice writer;    /* names this process in marks; the caller's */
	size_t write_max_bytes; /* of a write with marks alone; 0: the preset */
	/* Where writes are not serial: marks alone that took this long to be durable have failed,
	 * since a job may have looked for them before. */
	struct clock *clock;
	int64_t late_ms;
};

struct marks *marks_store_open(const struct marks_store_options *options);

#endif
