/* What the reading of samples, cells and series shares in the naive engine. */
#ifndef TESTS_CONTRACT_NAIVE_READ_H
#define TESTS_CONTRACT_NAIVE_READ_H

#include "naive_private.h"

/* What one submission may still give. */
struct budget {
	struct naive *naive;
	struct store_read *read;
	size_t points;
};

/* Tokens are the bytes of a struct; what is unset is zero, so that len 0 is the beginning. */
static inline void token_get(const struct store_request *request, void *state, size_t size_bytes)
{
	memset(state, 0, size_bytes);
	if (request->token.len == size_bytes)
		memcpy(state, request->token.bytes, size_bytes);
}

static inline void token_set(struct store_request *request, const void *state, size_t size_bytes)
{
	request->more = true;
	request->token.len = size_bytes;
	memcpy(request->token.bytes, state, size_bytes);
}

static inline void *alloc_array(struct store_read *read, size_t count, size_t size_bytes)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size_bytes, &bytes))
		return NULL;
	return arena_zalloc(&read->arena, bytes);
}

/* An array of as many as fit into half of what is free, at most *count, at least one: what its
 * elements point to needs room too. */
static inline void *alloc_some(struct store_read *read, size_t *count, size_t size_bytes)
{
	size_t half_bytes = (read->arena.max_bytes - read->arena.used_bytes) / 2;
	while (*count > 1 && *count > half_bytes / size_bytes)
		*count /= 2;
	return alloc_array(read, *count, size_bytes);
}

static inline size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline int64_t query_now(const struct budget *budget)
{
	if (budget->naive->bug == NAIVE_BUG_WALL_FOR_NOW)
		return clock_wall_ms(budget->naive->clock);
	return budget->read->now_ms;
}

/* Room for the results of one slice of a request with a limit of its own. */
static inline size_t slice_room(const struct budget *budget, size_t limit, size_t most)
{
	size_t room = smaller(budget->points, most);
	return limit ? smaller(room, limit) : room;
}

/* naive_samples.c */
int naive_range(struct budget *budget, struct store_request *request,
		const struct store_range *range, struct store_points **result);
int naive_last_before(struct budget *budget, struct store_request *request);
int naive_aggregate(struct budget *budget, struct store_request *request);
int naive_periods(struct budget *budget, struct store_periods *out);
int naive_shares(struct budget *budget, struct store_request *request);

/* naive_cells.c */
int naive_cell_get(struct budget *budget, struct store_request *request);
int naive_cell_scan(struct budget *budget, struct store_request *request);

/* naive_series.c */
size_t naive_all_rows(const struct naive *naive);
int naive_enumerate(struct budget *budget, struct store_request *request);
int naive_series_open(struct budget *budget, struct store_request *request);
int naive_series_list(struct budget *budget, struct store_request *request);
int naive_series_news(struct budget *budget, struct store_request *request);
int naive_series_describe(struct budget *budget, struct store_request *request);

#endif
