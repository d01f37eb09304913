#include "snmp/correlate_names.h"

#include "wire/snmp_index.h"

enum {
	TICK_MS = 10,
	/* How far uptime and our clock may run apart: by nature, and in a thousand. */
	RESTART_SLACK_MS = 10000,
	RESTART_SLACK_PER_MILLE = 20,
};

/* ---- Guard ----------------------------------------------------------------------------------- */

static bool if_names_read_ticks(const struct correlate_cell *cell, uint32_t *ticks)
{
	if (!cell || cell->type != CELL_U64)
		return false;
	*ticks = (uint32_t)cell->bits;
	return true;
}

static struct correlate_guard guard_of(const struct correlate_set *set, size_t uptime_column,
				       size_t change_column)
{
	struct correlate_guard guard = {.ts_ms = set->begun_ms};
	const struct correlate_cell *uptime = correlate_set_scalar(set, uptime_column);
	const struct correlate_cell *change = correlate_set_scalar(set, change_column);
	guard.has_uptime = if_names_read_ticks(uptime, &guard.uptime_ticks);
	guard.has_change = if_names_read_ticks(change, &guard.last_change);
	if (guard.has_uptime)
		guard.ts_ms = correlate_cell_ms(set, uptime);
	return guard;
}

struct correlate_guard correlate_guard_before(const struct correlate_set *set)
{
	return guard_of(set, set->plan->uptime, set->plan->last_change);
}

struct correlate_guard correlate_guard_behind(const struct correlate_set *set)
{
	return guard_of(set, set->plan->closing_uptime, set->plan->closing_last_change);
}

bool correlate_guard_restarted(const struct correlate_guard *before,
			       const struct correlate_guard *after)
{
	if (!before->has_uptime || !after->has_uptime)
		return true;
	int64_t passed_ms = after->ts_ms - before->ts_ms;
	/* Modulo 2^32 ticks, so that the 497th day is a day like any other. */
	int64_t grown_ms =
		(int64_t)(uint32_t)(after->uptime_ticks - before->uptime_ticks) * TICK_MS;
	int64_t apart_ms = passed_ms > grown_ms ? passed_ms - grown_ms : grown_ms - passed_ms;
	int64_t slack_ms = passed_ms > 0 ? passed_ms / 1000 * RESTART_SLACK_PER_MILLE : 0;
	return apart_ms > RESTART_SLACK_MS + slack_ms;
}

bool correlate_guard_unchanged(const struct correlate_guard *before,
			       const struct correlate_guard *after)
{
	/* Agents that do not keep it say 0 for ever. */
	return before->has_change && after->has_change && before->last_change != 0 &&
	       before->last_change == after->last_change &&
	       !correlate_guard_restarted(before, after);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static struct slice cell_text(const struct correlate_set *set, size_t row, size_t column)
{
	if (column >= set->plan->count)
		return (struct slice){NULL, 0};
	struct slice text = correlate_cell_text(correlate_cell(set, row, column));
	return text.len <= IF_NAME_MAX_BYTES ? text : (struct slice){NULL, 0};
}

static bool names_is_text(const struct correlate_set *set, size_t row, size_t column)
{
	return column < set->plan->count && correlate_cell(set, row, column)->type == CELL_TEXT;
}

/* Rows of scalars, and of tables that are indexed by more, are none of ours. */
static bool if_name_read(const struct correlate_set *set, size_t row, struct arena *arena,
			 struct if_name *made)
{
	struct index_arcs arcs;
	const struct correlate_plan *plan = set->plan;
	bool named =
		names_is_text(set, row, plan->if_name) || names_is_text(set, row, plan->if_descr);
	if (!named || index_read(set->indices[row], &arcs) || arcs.count != 1)
		return false;
	struct slice name = cell_text(set, row, plan->if_name);
	if (!name.len)
		name = cell_text(set, row, plan->if_descr);
	*made = (struct if_name){
		.index = arcs.list[0],
		.described = cell_text(set, row, plan->if_alias).len > 0,
		.name = arena_copy(arena, name),
	};
	return true;
}

static int names_by_name(const void *a, const void *b)
{
	const struct if_name *const *x = a, *const *y = b;
	return slice_compare((*x)->name, (*y)->name);
}

static int mark_shared(struct if_names *names, struct if_name *list)
{
	struct if_name **order =
		arena_alloc(&names->arena, names->count * sizeof(struct if_name *));
	if (!order)
		return ERR_LIMIT;
	for (size_t i = 0; i < names->count; i++)
		order[i] = &list[i];
	qsort(order, names->count, sizeof(struct if_name *), names_by_name);
	for (size_t i = 1; i < names->count; i++)
		if (slice_equal(order[i - 1]->name, order[i]->name))
			order[i - 1]->shared = order[i]->shared = true;
	return 0;
}

static int names_fill(struct if_names *names, struct correlate_set *set)
{
	const uint32_t *order = correlate_set_order(set, &set->arena);
	struct if_name *list = arena_alloc(&names->arena, set->row_count * sizeof(*list));
	if (!order || !list)
		return ERR_LIMIT;
	for (size_t i = 0; i < set->row_count; i++) {
		if (!if_name_read(set, order[i], &names->arena, &list[names->count]))
			continue;
		if (!list[names->count].name.data)
			return ERR_LIMIT;
		names->count++;
	}
	names->list = list;
	return mark_shared(names, list);
}

int if_names_new(struct correlate_set *set, struct if_names **names, struct errbuf *e)
{
	struct if_names *made = mem_zalloc(sizeof(*made));
	made->references = 1;
	arena_init(&made->arena, NAMES_ARENA_MAX_BYTES);
	made->guard = correlate_guard_before(set);
	int err = names_fill(made, set);
	if (err) {
		if_names_release(made);
		return errbuf_set(e, err, "the names of the interfaces take more than %d bytes",
				  NAMES_ARENA_MAX_BYTES);
	}
	*names = made;
	return 0;
}

void if_names_acquire(struct if_names *names)
{
	names->references++;
}

void if_names_release(struct if_names *names)
{
	if (!names || --names->references)
		return;
	arena_release(&names->arena);
	mem_free(names);
}

const struct if_name *if_names_find(const struct if_names *names, uint32_t index)
{
	size_t low = 0, high = names ? names->count : 0;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (names->list[middle].index == index)
			return &names->list[middle];
		if (names->list[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

bool if_names_equal(const struct if_names *a, const struct if_names *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct if_name *x = &a->list[i], *y = &b->list[i];
		if (x->index != y->index || x->described != y->described ||
		    !slice_equal(x->name, y->name))
			return false;
	}
	return true;
}

bool if_names_lack(const struct if_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		if (!names->list[i].name.len)
			return true;
	return names->count == 0;
}

bool if_names_moved(const struct if_names *before, const struct if_names *after)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct if_name *now = if_names_find(after, before->list[i].index);
		if (now && !slice_equal(now->name, before->list[i].name))
			return true;
	}
	return false;
}
