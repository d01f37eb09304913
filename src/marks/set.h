/* Private to the drivers: the marks of a part of a reading, each series once. */
#ifndef MARKS_SET_H
#define MARKS_SET_H

#include "marks/marks.h"

struct mark_set {
	struct mark *marks;
	size_t count, room;
	uint32_t *table; /* by the series: index + 1; a power of two */
	size_t table_size;
};

/* Beginning with {0}. */
void mark_set_release(struct mark_set *set);
void mark_set_clear(struct mark_set *set);
/* The index of the mark of this series, entered if it is new; the texts are not copied. */
uint32_t mark_set_enter(struct mark_set *set, struct slice tenant, struct series_set series_set);

#endif
