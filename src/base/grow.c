#include "base/grow.h"

enum { ROOM_MIN_BYTES = 512, ARENA_ROOM_MIN = 64 };

void *grow_room(void *list, size_t *capacity, size_t need, size_t size_bytes)
{
	size_t room = *capacity ? *capacity * 2 : ROOM_MIN_BYTES / size_bytes;
	*capacity = room > need ? room : need;
	return mem_resize_array(list, *capacity, size_bytes);
}

bool grow_in_arena(struct arena *arena, void **list, size_t *capacity, size_t size_bytes)
{
	size_t room = *capacity ? *capacity * 2 : ARENA_ROOM_MIN;
	void *grown = arena_alloc(arena, room * size_bytes);
	if (!grown)
		return false;
	if (*capacity)
		memcpy(grown, *list, *capacity * size_bytes);
	*list = grown;
	*capacity = room;
	return true;
}
