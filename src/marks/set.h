/* Private to the drivers of tracking: marks of a part of a reading, each series once. */
#ifndef ROLLUP_MARK_SET_H
#define ROLLUP_MARK_SET_H

#include "marks/marks.h"

struct rollup_mark_set {
	struct rollup_mark *marks;
	size_t count, room;
	uint32_t *table; /* by the series: index + 1; a power of two */
	size_t table_size;
};

/* Beginning with {0}. */
void rollup_mark_set_release(struct rollup_mark_set *set);
void rollup_mark_set_clear(struct rollup_mark_set *set);
/* The index of the mark of this series, entered if it is new; the texts are not copied. */
uint32_t rollup_mark_set_enter(struct rollup_mark_set *set, struct slice tenant,
			       struct series_set series_set);

#endif
