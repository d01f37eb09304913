/* Growing arrays: a list, how many objects it has room for, and how many it is to have room for. */
#ifndef BASE_GROW_H
#define BASE_GROW_H

#include "base/mem.h"

/* Room for at least `need` objects, twice the old room or more; what is there stays. Both change:
 * the list (a pointer to objects, NULL at first) and its capacity (a size_t). */
#define GROW(list, capacity, need)                                                                 \
	do {                                                                                       \
		if (UNLIKELY((need) > (capacity)))                                                 \
			(list) = grow_room((void *)(list), &(capacity), (need), sizeof(*(list)));  \
	} while (0)

void *grow_room(void *list, size_t *capacity, size_t need, size_t size_bytes);

/* The same of a list in an arena, for one more object than it has room for. False: the arena is
 * full, and nothing has changed. */
#define GROW_IN_ARENA(arena, list, capacity, need)                                                 \
	((need) <= (capacity) ||                                                                   \
	 grow_in_arena((arena), (void **)&(list), &(capacity), sizeof(*(list))))

bool grow_in_arena(struct arena *arena, void **list, size_t *capacity,
		   size_t size_bytes) MUST_CHECK;

#endif
