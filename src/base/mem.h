/* Memory: owned objects and arenas. Out of memory aborts, here and nowhere else; in exchange
 * everything that can grow (arena, buf, queues) has a maximum. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/base.h"

/* Never NULL, never for size 0 of meaning: a zero size gives a pointer that may be freed. */
void *mem_alloc(size_t size_bytes);
void *mem_zalloc(size_t size_bytes);
void *mem_resize(void *ptr, size_t size_bytes);
char *mem_copy_text(struct slice text); /* zero-terminated */
void mem_free(void *ptr);
/* A copy that belongs to the caller, who gives it back by mem_free_slice. */
struct slice mem_copy_slice(struct slice text);
void mem_free_slice(struct slice text);

/* An array of `count` objects of `size_bytes` each; an overflow of the product aborts. */
void *mem_alloc_array(size_t count, size_t size_bytes);
void *mem_resize_array(void *ptr, size_t count, size_t size_bytes);

/* From here on what is freed goes back to the system but for about a megabyte at the end of each
 * heap, of which every thread may have one. Once, before there are threads. */
void mem_keep_little(void);
/* What is free in the middle of heaps goes back to the system now. For who has freed very much at
 * once: it looks at every free piece, while nobody else has memory from that heap (2 ms for 30 MB).
 */
void mem_give_back(void);
/* What has been freed and is kept for the next user: memory of this process that nobody holds. What
 * mem_give_back() gave back is in it until it is used again: the heap cannot tell. Looks at every
 * free piece: for people who ask, not for each event. */
size_t mem_kept_bytes(void);

/* Memory with the life of one request, batch or configuration: allocated in pieces, freed at once.
 * One thread. */
struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* newest first */
	size_t used_bytes;          /* given out, of all chunks, with what aligning costs */
	size_t max_bytes;
	size_t first_bytes; /* of the first chunk; 0: as most requests need */
};

void arena_init(struct arena *arena, size_t max_bytes);
/* The same for one that holds little and lives long, where there may be very many. */
void arena_init_small(struct arena *arena, size_t max_bytes);
/* Keeps the newest chunk for the next user. */
void arena_reset(struct arena *arena);
void arena_release(struct arena *arena);

/* NULL when the arena's maximum would be passed: a normal error, ERR_LIMIT to the caller's caller.
 * Aligned to 16 bytes; not cleared. */
void *arena_alloc(struct arena *arena, size_t size_bytes) MUST_CHECK;
void *arena_zalloc(struct arena *arena, size_t size_bytes) MUST_CHECK;
/* A zero-terminated copy; data is NULL when the arena is full. */
struct slice arena_copy(struct arena *arena, struct slice bytes) MUST_CHECK;
char *arena_printf(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_CHECK;

#endif
