#include "fault/merges.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/put.h"
#include "store/wait.h"

enum {
	MERGES_VERSION = 1,
	MERGES_VALUE_MAX_BYTES = 16 + FAULT_MERGES_MAX * 2 * (2 + FAULT_LABEL_MAX_BYTES),
	MERGES_TRIES = 20,
};

_Static_assert((int)MERGES_VALUE_MAX_BYTES < (int)TABLE_SHARED_VALUE_MAX_BYTES, "one cell has all");

static const struct slice merges_column = SLICE("merges");

/* ---- What follows from them ------------------------------------------------------------------ */

static int merges_compare(const void *one, const void *other)
{
	const struct fault_merge *a = one, *b = other;
	return slice_compare(a->group, b->group);
}

static struct fault_merge *merges_find(const struct fault_merges *merges, struct slice group)
{
	const struct fault_merge key = {.group = group};
	return merges && merges->count ? bsearch(&key, merges->list, merges->count,
						 sizeof(*merges->list), merges_compare)
				       : NULL;
}

const struct fault_merge *fault_merges_find(const struct fault_merges *merges, struct slice group)
{
	return merges_find(merges, group);
}

struct slice fault_merges_root(const struct fault_merges *merges, struct slice group)
{
	const struct fault_merge *merge = merges_find(merges, group);
	return merge ? merge->root : group;
}

void fault_merges_apply(const struct fault_merges *merges, struct fault_facts *facts)
{
	struct slice own = facts->texts[FAULT_GROUP], root = fault_merges_root(merges, own);
	if (!facts->texts[FAULT_GROUP_ALL].len && !slice_equal(root, own))
		facts->texts[FAULT_GROUP_ALL] = own; /* the report has one hash, its own group */
	facts->texts[FAULT_GROUP] = root;
}

bool fault_merges_fit(const struct fault_merges *merges, const struct slice *wanted,
		      const struct slice *texts)
{
	for (enum fault_text i = 0; i < FAULT_TEXTS; i++) {
		bool same = !wanted[i].data || slice_equal(wanted[i], texts[i]);
		if (!same &&
		    (i != FAULT_GROUP || !slice_equal(fault_merges_root(merges, wanted[i]),
						      fault_merges_root(merges, texts[i]))))
			return false;
	}
	return true;
}

/* The place in by_root of the first that this group stands for, or would stand. */
static size_t merges_first_of(const struct fault_merges *merges, struct slice root)
{
	size_t low = 0, high = merges ? merges->count : 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (slice_compare(merges->by_root[middle].root, root) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool merges_is_of(const struct fault_merges *merges, size_t at, struct slice root)
{
	return merges && at < merges->count && slice_equal(merges->by_root[at].root, root);
}

size_t fault_merges_tree(const struct fault_merges *merges, struct slice group, struct slice *to)
{
	size_t count = 0;
	to[count++] = group;
	for (size_t at = merges_first_of(merges, group); merges_is_of(merges, at, group); at++)
		to[count++] = merges->by_root[at].group;
	return count;
}

uint64_t fault_merges_hash(const struct fault_merges *merges, struct slice group)
{
	uint64_t hash = 0;
	for (size_t at = merges_first_of(merges, group); merges_is_of(merges, at, group); at++) {
		struct slice member = merges->by_root[at].group;
		hash ^= hash64(member.data, member.len, 0);
	}
	return hash;
}

/* Where the way from a merge ends. data NULL: nowhere, it is a circle. */
static struct slice merges_end(const struct fault_merges *merges, const struct fault_merge *from)
{
	const struct fault_merge *next = from;
	struct slice end = from->into;
	for (size_t steps = 0; next; steps++) {
		if (steps > merges->count)
			return (struct slice){NULL, 0};
		end = next->root.data ? next->root : next->into;
		next = next->root.data ? NULL : merges_find(merges, end);
	}
	return end;
}

static int merges_compare_roots(const void *one, const void *other)
{
	const struct fault_merge *a = one, *b = other;
	int order = slice_compare(a->root, b->root);
	return order ? order : slice_compare(a->group, b->group);
}

/* Finds all roots; each step of a way is gone once. ERR_DAMAGED: there is a circle. */
static int merges_resolve(struct fault_merges *merges, struct arena *arena)
{
	size_t bytes = merges->count * sizeof(*merges->list);
	for (size_t i = 0; i < merges->count; i++)
		merges->list[i].root = (struct slice){NULL, 0};
	for (size_t i = 0; i < merges->count; i++) {
		struct fault_merge *at = &merges->list[i];
		struct slice end = merges_end(merges, at);
		if (!end.data)
			return ERR_DAMAGED;
		for (; at && !at->root.data; at = merges_find(merges, at->into))
			at->root = end;
	}
	merges->by_root = arena_alloc(arena, bytes + 1);
	if (!merges->by_root)
		return ERR_LIMIT;
	memcpy(merges->by_root, merges->list, bytes);
	qsort(merges->by_root, merges->count, sizeof(*merges->by_root), merges_compare_roots);
	return 0;
}

/* ---- Changes --------------------------------------------------------------------------------- */

static int merges_check_join(const struct fault_merges *merges, struct slice group,
			     struct slice root, struct errbuf *e)
{
	const struct fault_merge *merge = merges_find(merges, group);
	if (merge)
		return errbuf_set(e, ERR_EXISTS,
				  "group " SHOWN " is merged into " SHOWN
				  "; it is to be split off first",
				  SHOWN_OF(group), SHOWN_OF(merge->root));
	if (slice_equal(root, group))
		return errbuf_set(e, ERR_EXISTS,
				  "group " SHOWN " cannot be merged into a group that is merged "
				  "into it",
				  SHOWN_OF(group));
	if (merges->count >= FAULT_MERGES_MAX)
		return errbuf_set(e, ERR_LIMIT,
				  "%d groups are merged into others, and there can be no more of "
				  "them; one has to be split off first",
				  FAULT_MERGES_MAX);
	return 0;
}

/* A copy of the list without the group, with room for one more. */
static int merges_copy_without(struct fault_merges *merges, struct slice group, struct arena *arena,
			       struct errbuf *e)
{
	struct fault_merge *copy = arena_alloc(arena, (merges->count + 1) * sizeof(*copy));
	size_t count = 0;
	if (!copy)
		return errbuf_set(e, ERR_LIMIT, "what is merged takes too much memory");
	for (size_t i = 0; i < merges->count; i++)
		if (!slice_equal(merges->list[i].group, group))
			copy[count++] = merges->list[i];
	merges->list = copy;
	merges->count = count;
	return 0;
}

static int merges_join(struct fault_merges *merges, struct slice group, struct slice into,
		       struct arena *arena, struct errbuf *e)
{
	struct slice root = fault_merges_root(merges, into);
	if (slice_equal(group, into))
		return errbuf_set(e, ERR_INVALID, "group " SHOWN " cannot be merged into itself",
				  SHOWN_OF(group));
	if (merges_find(merges, group) && slice_equal(fault_merges_root(merges, group), root))
		return 0;
	int err = merges_check_join(merges, group, root, e);
	err = err ? err : merges_copy_without(merges, group, arena, e);
	if (err)
		return err;
	merges->list[merges->count++] = (struct fault_merge){.group = group, .into = root};
	qsort(merges->list, merges->count, sizeof(*merges->list), merges_compare);
	return 0;
}

static int merges_split(struct fault_merges *merges, struct slice group, struct arena *arena,
			struct errbuf *e)
{
	if (!merges_find(merges, group))
		return errbuf_set(e, ERR_EXISTS, "group " SHOWN " is not merged into another one",
				  SHOWN_OF(group));
	return merges_copy_without(merges, group, arena, e);
}

int fault_merges_change(struct fault_merges *merges, const struct fault_merge_change *change,
			struct arena *arena, struct errbuf *e)
{
	struct fault_merges changed = *merges;
	int err = change->into.len ? merges_join(&changed, change->group, change->into, arena, e)
				   : merges_split(&changed, change->group, arena, e);
	if (err)
		return err;
	err = merges_resolve(&changed, arena);
	ASSERT(err != ERR_DAMAGED); /* a root gets a way, or a way goes */
	if (err)
		return errbuf_set(e, err, "what is merged takes too much memory");
	*merges = changed;
	return 0;
}

/* ---- The cell -------------------------------------------------------------------------------- */

void fault_merges_encode(const struct fault_merges *merges, struct buf *out)
{
	buf_append_char(out, MERGES_VERSION);
	buf_put_varint(out, merges->count);
	for (size_t i = 0; i < merges->count; i++) {
		buf_put_text(out, merges->list[i].group);
		buf_put_text(out, merges->list[i].into);
	}
}

int fault_merges_decode(struct slice bytes, struct arena *arena, struct fault_merges *merges)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c);
	*merges = (struct fault_merges){.list = NULL};
	if (!c.bad && version != MERGES_VERSION)
		return ERR_VERSION;
	uint64_t count = cursor_varint(&c);
	if (c.bad || count > FAULT_MERGES_MAX)
		return ERR_DAMAGED;
	merges->list = arena_alloc(arena, (count + 1) * sizeof(*merges->list));
	if (!merges->list)
		return ERR_LIMIT;
	for (uint64_t i = 0; i < count; i++) {
		struct fault_merge *merge = &merges->list[i];
		merge->group = cursor_text(&c, FAULT_LABEL_MAX_BYTES);
		merge->into = cursor_text(&c, FAULT_LABEL_MAX_BYTES);
		if (c.bad || !merge->group.len || !merge->into.len ||
		    (i && merges_compare(merge - 1, merge) >= 0))
			return ERR_DAMAGED;
	}
	merges->count = (size_t)count;
	return merges_resolve(merges, arena);
}

/* ---- In the store ---------------------------------------------------------------------------- */

/* Each list of groups reads the cell, on any thread: one line a minute says that it is damaged. */
static bool merges_may_say(struct clock *clock)
{
	static _Atomic int64_t said_ms = INT64_MIN / 2;
	int64_t now_ms = clock_mono_ms(clock), last_ms = atomic_load(&said_ms);
	return now_ms - last_ms >= 60000 &&
	       atomic_compare_exchange_strong(&said_ms, &last_ms, now_ms);
}

static int merges_take(struct clock *clock, struct slice value, struct slice tenant,
		       struct arena *arena, struct fault_merges *merges, struct errbuf *e)
{
	struct slice copy = arena_copy(arena, value);
	int err = copy.data ? fault_merges_decode(copy, arena, merges) : ERR_LIMIT;
	if (err == ERR_LIMIT)
		return errbuf_set(e, err, "what is merged takes too much memory");
	if (!err)
		return 0;
	*merges = (struct fault_merges){.unreadable = err};
	if (merges_may_say(clock))
		log_warn("faults: which groups of tenant " SHOWN
			 " are merged (table fault_merges) cannot be read: %s; until groups are "
			 "merged or split again, each group stands for itself, and no reports are "
			 "collected",
			 SHOWN_OF(tenant), err_text(err));
	return 0;
}

/* *version 0: there is no cell. */
static int merges_read(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		       struct arena *arena, struct fault_merges *merges, uint64_t *version,
		       struct errbuf *e)
{
	struct store_read *read = store_read_new(site->store, FAULT_MERGES_MEMORY_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get = (struct store_cell_get){
		.table = TABLE_FAULT_MERGES, .key = {{tenant}}, .column = {{merges_column}}};
	read->now_ms = clock_wall_ms(site->clock);
	int err = store_read_wait(read, queue);
	bool found = !err && request->cell_get.found;
	*merges = (struct fault_merges){.list = NULL};
	*version = found ? request->cell_get.cell.version : 0;
	if (err)
		errbuf_set(e, err, "%s", store_read_sentence(read, err));
	else if (found)
		err = merges_take(site->clock, request->cell_get.cell.value, tenant, arena, merges,
				  e);
	store_read_free(read);
	return err;
}

int fault_merges_read(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		      struct arena *arena, struct fault_merges *merges, struct errbuf *e)
{
	uint64_t version;
	return merges_read(site, queue, tenant, arena, merges, &version, e);
}

static int merges_put(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		      const struct fault_merges *merges, uint64_t version)
{
	const struct store_parts key = {{tenant}}, column = {{merges_column}};
	struct buf value;
	buf_init(&value, MERGES_VALUE_MAX_BYTES);
	fault_merges_encode(merges, &value);
	ASSERT(!value.failed);
	int err = store_put_if_wait(site->store, queue, TABLE_FAULT_MERGES, &key, &column, version,
				    buf_slice(&value));
	buf_release(&value);
	return err;
}

int fault_merges_write(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		       const struct fault_merge_change *change, struct arena *arena,
		       struct fault_merges *merges, struct errbuf *e)
{
	int err = ERR_EXISTS;
	for (int i = 0; i < MERGES_TRIES && err == ERR_EXISTS; i++) {
		uint64_t version;
		err = merges_read(site, queue, tenant, arena, merges, &version, e);
		if (!err && merges->unreadable == ERR_VERSION)
			err = errbuf_set(e, ERR_VERSION,
					 "a newer program has merged groups; this one cannot read "
					 "which");
		merges->unreadable = 0;
		err = err ? err : fault_merges_change(merges, change, arena, e);
		if (err)
			return err;
		err = merges_put(site, queue, tenant, merges, version);
	}
	if (err == ERR_EXISTS)
		err = ERR_BUSY;
	return err ? errbuf_set(e, err,
				"the store did not confirm the change of group " SHOWN ": %s",
				SHOWN_OF(change->group), err_text(err))
		   : 0;
}
