#include "store/lmdb/ranges.h"

#include "base/grow.h"
#include "base/mem.h"

enum { LEAF_RANGES_MAX = 255 }; /* with its count a leaf is a page */

struct range {
	uint64_t first, last;
};

struct ranges_leaf {
	size_t count; /* never 0 */
	struct range list[LEAF_RANGES_MAX];
};

/* The last leaf that begins at or before the number, else the first one. */
static size_t ranges_find_leaf(const struct ranges *ranges, uint64_t number)
{
	size_t low = 0, high = ranges->leaf_count;
	while (low + 1 < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges->leaves[middle]->list[0].first <= number)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* How many ranges of the leaf begin at or before the number. */
static size_t ranges_count_before(const struct ranges_leaf *leaf, uint64_t number)
{
	size_t low = 0, high = leaf->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (leaf->list[middle].first <= number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool ranges_has(const struct ranges *ranges, uint64_t number)
{
	if (!ranges->leaf_count)
		return false;
	const struct ranges_leaf *leaf = ranges->leaves[ranges_find_leaf(ranges, number)];
	size_t before = ranges_count_before(leaf, number);
	return before && number <= leaf->list[before - 1].last;
}

static struct ranges_leaf *ranges_insert_leaf(struct ranges *ranges, size_t at)
{
	GROW(ranges->leaves, ranges->leaf_cap, ranges->leaf_count + 1);
	struct ranges_leaf **place = ranges->leaves + at;
	memmove((void *)(place + 1), (const void *)place,
		(ranges->leaf_count - at) * sizeof(*place));
	ranges->leaf_count++;
	*place = mem_zalloc(sizeof(**place));
	return *place;
}

static void ranges_remove_leaf(struct ranges *ranges, size_t at)
{
	struct ranges_leaf **place = ranges->leaves + at;
	mem_free(*place);
	ranges->leaf_count--;
	memmove((void *)place, (const void *)(place + 1),
		(ranges->leaf_count - at) * sizeof(*place));
}

static void ranges_move(struct ranges_leaf *to, struct ranges_leaf *from, size_t at)
{
	memcpy(to->list + to->count, from->list + at, (from->count - at) * sizeof(*from->list));
	to->count += from->count - at;
	from->count = at;
}

static void ranges_insert(struct ranges *ranges, size_t leaf_at, size_t at, uint64_t number)
{
	struct ranges_leaf *leaf = ranges->leaves[leaf_at];
	if (leaf->count == LEAF_RANGES_MAX) {
		/* Numbers mostly come in order: then what is full stays full. */
		bool at_end = at == leaf->count && leaf_at + 1 == ranges->leaf_count;
		size_t half = at_end ? at : LEAF_RANGES_MAX / 2 + 1;
		struct ranges_leaf *next = ranges_insert_leaf(ranges, leaf_at + 1);
		ranges_move(next, leaf, half);
		if (at >= half) {
			leaf = next;
			at -= half;
		}
	}
	memmove(leaf->list + at + 1, leaf->list + at, (leaf->count - at) * sizeof(*leaf->list));
	leaf->list[at] = (struct range){number, number};
	leaf->count++;
	ranges->count++;
}

/* Puts a leaf and the one after it together if they have become small. */
static void ranges_join_leaves(struct ranges *ranges, size_t at)
{
	if (at + 1 >= ranges->leaf_count)
		return;
	struct ranges_leaf *leaf = ranges->leaves[at], *next = ranges->leaves[at + 1];
	if (leaf->count + next->count > LEAF_RANGES_MAX / 2)
		return;
	ranges_move(leaf, next, 0);
	ranges_remove_leaf(ranges, at + 1);
}

static void ranges_remove(struct ranges *ranges, size_t leaf_at, size_t at)
{
	struct ranges_leaf *leaf = ranges->leaves[leaf_at];
	leaf->count--;
	memmove(leaf->list + at, leaf->list + at + 1, (leaf->count - at) * sizeof(*leaf->list));
	ranges->count--;
	if (leaf->count)
		ranges_join_leaves(ranges, leaf_at);
	else
		ranges_remove_leaf(ranges, leaf_at);
	if (leaf_at > 0)
		ranges_join_leaves(ranges, leaf_at - 1);
}

bool ranges_add(struct ranges *ranges, uint64_t number)
{
	if (!ranges->leaf_count)
		ranges_insert_leaf(ranges, 0);
	size_t leaf_at = ranges_find_leaf(ranges, number);
	struct ranges_leaf *leaf = ranges->leaves[leaf_at];
	size_t at = ranges_count_before(leaf, number);
	struct range *left = at ? &leaf->list[at - 1] : NULL;
	if (left && number <= left->last)
		return false;
	size_t right_leaf = at < leaf->count ? leaf_at : leaf_at + 1;
	size_t right_at = at < leaf->count ? at : 0;
	struct range *right = right_leaf < ranges->leaf_count
				      ? &ranges->leaves[right_leaf]->list[right_at]
				      : NULL;
	bool meets_left = left && left->last + 1 == number;
	bool meets_right = right && right->first == number + 1;
	if (meets_left && meets_right) {
		left->last = right->last;
		ranges_remove(ranges, right_leaf, right_at);
	} else if (meets_left) {
		left->last = number;
	} else if (meets_right) {
		right->first = number;
	} else {
		ranges_insert(ranges, leaf_at, at, number);
	}
	return true;
}

size_t ranges_bytes(const struct ranges *ranges)
{
	return ranges->leaf_count * sizeof(struct ranges_leaf) +
	       ranges->leaf_cap * sizeof(*ranges->leaves);
}

void ranges_release(struct ranges *ranges)
{
	for (size_t i = 0; i < ranges->leaf_count; i++)
		mem_free(ranges->leaves[i]);
	mem_free((void *)ranges->leaves);
	*ranges = (struct ranges){0};
}
