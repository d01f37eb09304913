#define BASE_MAY_MALLOC
#include "base/mem.h"

#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>

static NORETURN void out_of_memory(size_t size_bytes)
{
	fprintf(stderr, "granary: out of memory while asking for %zu bytes\n", size_bytes);
	abort();
}

void *mem_alloc(size_t size_bytes)
{
	void *ptr = malloc(size_bytes ? size_bytes : 1);
	if (!ptr)
		out_of_memory(size_bytes);
	return ptr;
}

void *mem_zalloc(size_t size_bytes)
{
	void *ptr = calloc(1, size_bytes ? size_bytes : 1);
	if (!ptr)
		out_of_memory(size_bytes);
	return ptr;
}

void *mem_resize(void *ptr, size_t size_bytes)
{
	void *grown = realloc(ptr, size_bytes ? size_bytes : 1);
	if (!grown)
		out_of_memory(size_bytes);
	return grown;
}

static size_t array_bytes(size_t count, size_t size_bytes)
{
	size_t product = 0;
	if (__builtin_mul_overflow(count, size_bytes, &product))
		out_of_memory(SIZE_MAX);
	return product;
}

void *mem_alloc_array(size_t count, size_t size_bytes)
{
	return mem_alloc(array_bytes(count, size_bytes));
}

void *mem_resize_array(void *ptr, size_t count, size_t size_bytes)
{
	return mem_resize(ptr, array_bytes(count, size_bytes));
}

char *mem_copy_text(struct slice text)
{
	char *copy = mem_alloc(text.len + 1);
	if (text.len)
		memcpy(copy, text.data, text.len);
	copy[text.len] = 0;
	return copy;
}

struct slice mem_copy_slice(struct slice text)
{
	return (struct slice){mem_copy_text(text), text.len};
}

void mem_free_slice(struct slice text)
{
	mem_free((char *)(uintptr_t)text.data);
}

void mem_free(void *ptr)
{
	free(ptr);
}

enum {
	ARENA_ALIGN = 16,
	ARENA_CHUNK_SMALL_BYTES = 192,
	ARENA_CHUNK_MIN_BYTES = 4096,
	ARENA_CHUNK_MAX_BYTES = 1 << 20,
	/* What would be more than that has one of the largest chunks, if one is spare. */
	ARENA_CHUNK_LARGE_BYTES = 128 << 10,
};

struct arena_chunk {
	struct arena_chunk *older;
	size_t size_bytes, used_bytes;
	alignas(ARENA_ALIGN) char data[];
};

void arena_init(struct arena *arena, size_t max_bytes)
{
	*arena = (struct arena){.max_bytes = max_bytes};
}

void arena_init_small(struct arena *arena, size_t max_bytes)
{
	*arena = (struct arena){.max_bytes = max_bytes, .first_bytes = ARENA_CHUNK_SMALL_BYTES};
}

/* The largest chunks that nobody has, for the next who needs one: given back to the system they
 * would have to be mapped again, page by page, for each query. A sanitizer is to see who uses one
 * after it was freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
	defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
enum { SPARE_CHUNKS_MAX = 0 };
#else
enum { SPARE_CHUNKS_MAX = 8 };
#endif
static struct {
	pthread_mutex_t lock;
	struct arena_chunk *list;
	size_t count;
} spare_chunks = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* NULL: there is none. */
static struct arena_chunk *take_spare_chunk(void)
{
	pthread_mutex_lock(&spare_chunks.lock);
	struct arena_chunk *chunk = spare_chunks.list;
	if (chunk) {
		spare_chunks.list = chunk->older;
		spare_chunks.count--;
	}
	pthread_mutex_unlock(&spare_chunks.lock);
	return chunk;
}

/* False: there are enough. */
static bool keep_spare_chunk(struct arena_chunk *chunk)
{
	pthread_mutex_lock(&spare_chunks.lock);
	bool kept = spare_chunks.count < SPARE_CHUNKS_MAX;
	if (kept) {
		chunk->older = spare_chunks.list;
		spare_chunks.list = chunk;
		spare_chunks.count++;
	}
	pthread_mutex_unlock(&spare_chunks.lock);
	return kept;
}

static void free_chunks(struct arena_chunk *chunk)
{
	while (chunk) {
		struct arena_chunk *older = chunk->older;
		if (chunk->size_bytes != ARENA_CHUNK_MAX_BYTES || !keep_spare_chunk(chunk))
			free(chunk);
		chunk = older;
	}
}

void arena_reset(struct arena *arena)
{
	arena->used_bytes = 0;
	if (!arena->chunks)
		return;
	free_chunks(arena->chunks->older);
	arena->chunks->older = NULL;
	arena->chunks->used_bytes = 0;
}

void arena_release(struct arena *arena)
{
	free_chunks(arena->chunks);
	arena->chunks = NULL;
	arena->used_bytes = 0;
}

/* Chunks double, so that a small request costs one small allocation and a large one few. */
static struct arena_chunk *arena_add_chunk(struct arena *arena, size_t need_bytes)
{
	size_t first_bytes = arena->first_bytes ? arena->first_bytes : ARENA_CHUNK_MIN_BYTES;
	size_t size_bytes = arena->chunks ? arena->chunks->size_bytes * 2 : first_bytes;
	if (size_bytes > ARENA_CHUNK_MAX_BYTES)
		size_bytes = ARENA_CHUNK_MAX_BYTES;
	if (size_bytes < need_bytes)
		size_bytes = need_bytes;
	struct arena_chunk *chunk = NULL;
	if (size_bytes > ARENA_CHUNK_LARGE_BYTES && size_bytes <= ARENA_CHUNK_MAX_BYTES)
		chunk = take_spare_chunk();
	if (chunk)
		size_bytes = chunk->size_bytes;
	else
		chunk = mem_alloc(sizeof(*chunk) + size_bytes);
	*chunk = (struct arena_chunk){.older = arena->chunks, .size_bytes = size_bytes};
	arena->chunks = chunk;
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t size_bytes)
{
	if (size_bytes > arena->max_bytes - arena->used_bytes)
		return NULL;
	size_t need_bytes = (size_bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	struct arena_chunk *chunk = arena->chunks;
	if (!chunk || chunk->size_bytes - chunk->used_bytes < need_bytes)
		chunk = arena_add_chunk(arena, need_bytes);
	void *ptr = chunk->data + chunk->used_bytes;
	chunk->used_bytes += need_bytes;
	/* What it takes, so that many small pieces stay within the maximum too. */
	size_t left_bytes = arena->max_bytes - arena->used_bytes;
	arena->used_bytes += need_bytes < left_bytes ? need_bytes : left_bytes;
	return ptr;
}

void *arena_zalloc(struct arena *arena, size_t size_bytes)
{
	void *ptr = arena_alloc(arena, size_bytes);
	if (ptr)
		memset(ptr, 0, size_bytes);
	return ptr;
}

struct slice arena_copy(struct arena *arena, struct slice bytes)
{
	char *copy = arena_alloc(arena, bytes.len + 1);
	if (!copy)
		return (struct slice){NULL, 0};
	if (bytes.len)
		memcpy(copy, bytes.data, bytes.len);
	copy[bytes.len] = 0;
	return (struct slice){copy, bytes.len};
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	ASSERT(len >= 0);
	char *text = arena_alloc(arena, (size_t)len + 1);
	if (text)
		vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	return text;
}

enum {
	MAPPED_FROM_BYTES = 2 * ARENA_CHUNK_MAX_BYTES, /* chunks of arenas are no mappings */
	KEPT_MAX_BYTES = 1 << 20,
};

/* Unless told so, glibc raises both by itself, up to 64 MB that each thread may keep, whenever it
 * sees something large freed. */
void mem_keep_little(void)
{
	/* Another allocator, such as a sanitizer's, has no such sizes and says so: nothing is lost.
	 */
	mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_MAX_BYTES);
}

void mem_give_back(void)
{
	pthread_mutex_lock(&spare_chunks.lock);
	struct arena_chunk *spare = spare_chunks.list;
	spare_chunks.list = NULL;
	spare_chunks.count = 0;
	pthread_mutex_unlock(&spare_chunks.lock);
	while (spare) {
		struct arena_chunk *older = spare->older;
		free(spare);
		spare = older;
	}
	malloc_trim(0);
}

size_t mem_kept_bytes(void)
{
	pthread_mutex_lock(&spare_chunks.lock);
	size_t spare_bytes = spare_chunks.count * ARENA_CHUNK_MAX_BYTES;
	pthread_mutex_unlock(&spare_chunks.lock);
	return mallinfo2().fordblks + spare_bytes;
}
