#include "fault/canonical.h"

#include "base/cursor.h"

/* Up to so many members are sorted by insertion: qsort calls a function for each comparison. */
enum { CANONICAL_FEW = 16 };

struct canonical_member {
	struct json *node;
	size_t place;
	uint64_t head; /* the first bytes of the name: two numbers compare as the names do */
};

static struct canonical_member canonical_member_of(struct json *node, size_t place)
{
	uint8_t head[8] = {0};
	struct slice name = node->key;
	if (name.len)
		memcpy(head, name.data, name.len < sizeof(head) ? name.len : sizeof(head));
	return (struct canonical_member){node, place, be64_get(head)};
}

static int canonical_by_name(const void *a, const void *b)
{
	const struct canonical_member *x = a, *y = b;
	if (x->head != y->head)
		return x->head < y->head ? -1 : 1;
	int order = slice_compare(x->node->key, y->node->key);
	return order ? order : (x->place > y->place) - (x->place < y->place);
}

static void canonical_sort_list(struct canonical_member *members, size_t count)
{
	if (count > CANONICAL_FEW) {
		qsort(members, count, sizeof(*members), canonical_by_name);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		struct canonical_member member = members[i];
		size_t at = i;
		for (; at && canonical_by_name(&members[at - 1], &member) > 0; at--)
			members[at] = members[at - 1];
		members[at] = member;
	}
}

static bool canonical_is_sorted(const struct json *object)
{
	for (const struct json *member = object->first; member && member->next;
	     member = member->next) {
		if (slice_compare(member->key, member->next->key) >= 0)
			return false;
	}
	return true;
}

static void canonical_link(struct json *object, const struct canonical_member *members,
			   size_t count)
{
	struct json **tail = &object->first;
	object->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct json *node = members[i].node;
		if (i + 1 < count && slice_equal(node->key, members[i + 1].node->key))
			continue;
		*tail = node;
		tail = &node->next;
		object->count++;
	}
	*tail = NULL;
}

static int canonical_sort_members(struct json *object, struct arena *arena)
{
	size_t count = 0;
	if (canonical_is_sorted(object))
		return 0;
	for (const struct json *member = object->first; member; member = member->next)
		count++;
	struct canonical_member *members = arena_alloc(arena, count * sizeof(*members));
	if (!members)
		return ERR_LIMIT;
	count = 0;
	for (struct json *member = object->first; member; member = member->next, count++)
		members[count] = canonical_member_of(member, count);
	canonical_sort_list(members, count);
	canonical_link(object, members, count);
	return 0;
}

int canonical_sort(struct json *tree, unsigned levels_max, struct arena *arena)
{
	int err = 0;
	if (tree->type != JSON_T_OBJECT && tree->type != JSON_T_ARRAY)
		return 0;
	if (!levels_max)
		return ERR_INVALID;
	if (tree->type == JSON_T_OBJECT)
		err = canonical_sort_members(tree, arena);
	for (struct json *child = tree->first; !err && child; child = child->next)
		err = canonical_sort(child, levels_max - 1, arena);
	return err;
}
