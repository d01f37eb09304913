#include "stream/offsets.h"

#include "base/grow.h"
#include "base/mem.h"

void offsets_release(struct offsets *offsets)
{
	mem_free(offsets->list);
	*offsets = (struct offsets){.list = NULL};
}

void offsets_move(struct offsets *to, struct offsets *from)
{
	offsets_release(to);
	*to = *from;
	*from = (struct offsets){.list = NULL};
}

/* The first that ends at the offset or behind it. */
static size_t offsets_find(const struct offsets *offsets, uint64_t offset)
{
	size_t low = 0, high = offsets->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (offsets->list[middle].end < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Those from *first to before *last meet or touch the bytes. */
static void offsets_find_near(const struct offsets *offsets, uint64_t begin, uint64_t end,
			      size_t *first, size_t *last)
{
	*first = *last = offsets_find(offsets, begin);
	while (*last < offsets->count && offsets->list[*last].begin <= end)
		++*last;
}

void offsets_add(struct offsets *offsets, uint64_t begin, uint64_t end)
{
	size_t first, last;
	ASSERT(begin < end);
	offsets_find_near(offsets, begin, end, &first, &last);
	if (first < last) {
		if (offsets->list[first].begin < begin)
			begin = offsets->list[first].begin;
		if (offsets->list[last - 1].end > end)
			end = offsets->list[last - 1].end;
	} else {
		GROW(offsets->list, offsets->room, offsets->count + 1);
	}
	memmove(&offsets->list[first + 1], &offsets->list[last],
		(offsets->count - last) * sizeof(*offsets->list));
	offsets->list[first] = (struct offset_range){begin, end};
	offsets->count = offsets->count - (last - first) + 1;
}

static void offsets_erase(struct offsets *offsets, size_t first, size_t last)
{
	if (first < last)
		memmove(&offsets->list[first], &offsets->list[last],
			(offsets->count - last) * sizeof(*offsets->list));
	offsets->count -= last - first;
}

void offsets_cut(struct offsets *offsets, uint64_t below)
{
	size_t gone = 0;
	while (gone < offsets->count && offsets->list[gone].end <= below)
		gone++;
	offsets_erase(offsets, 0, gone);
	if (offsets->count && offsets->list[0].begin < below)
		offsets->list[0].begin = below;
}

void offsets_remove(struct offsets *offsets, uint64_t begin, uint64_t end)
{
	ASSERT(begin < end);
	size_t first = offsets_find(offsets, begin + 1), last = first;
	while (last < offsets->count && offsets->list[last].begin < end)
		last++;
	if (first == last)
		return;
	struct offset_range left = {offsets->list[first].begin, begin},
			    right = {end, offsets->list[last - 1].end};
	offsets_erase(offsets, first, last);
	if (left.begin < left.end)
		offsets_add(offsets, left.begin, left.end);
	if (right.begin < right.end)
		offsets_add(offsets, right.begin, right.end);
}

void offsets_subtract(const struct offsets *all, const struct offsets *without,
		      struct offsets *left)
{
	size_t at = 0;
	for (size_t i = 0; i < all->count; i++) {
		uint64_t begin = all->list[i].begin, end = all->list[i].end;
		while (begin < end) {
			while (at < without->count && without->list[at].end <= begin)
				at++;
			bool met = at < without->count && without->list[at].begin < end;
			uint64_t to = met ? without->list[at].begin : end;
			if (begin < to)
				offsets_add(left, begin, to);
			begin = met ? without->list[at].end : end;
		}
	}
}

size_t offsets_count_with(const struct offsets *offsets, uint64_t begin, uint64_t end)
{
	size_t first, last;
	offsets_find_near(offsets, begin, end, &first, &last);
	return offsets->count - (last - first) + 1;
}

struct offset_range offsets_at(const struct offsets *offsets, uint64_t offset)
{
	size_t at = offset < UINT64_MAX ? offsets_find(offsets, offset + 1) : offsets->count;
	bool has = at < offsets->count && offsets->list[at].begin <= offset;
	return has ? offsets->list[at] : (struct offset_range){0, 0};
}

bool offsets_cover(const struct offsets *offsets, uint64_t begin, uint64_t end)
{
	struct offset_range range = offsets_at(offsets, begin);
	return range.begin < range.end && range.end >= end;
}

bool offsets_meet(const struct offsets *offsets, uint64_t begin, uint64_t end)
{
	size_t at = offsets_find(offsets, begin + 1);
	return at < offsets->count && offsets->list[at].begin < end;
}
