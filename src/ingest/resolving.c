/* Rounds: what waits for its series. See private.h for the way a value takes. */
#include "ingest/resolving.h"

#include "base/stats.h"
#include "ingest/marks.h"
#include "ingest/raw_retention.h"

/* ---- Life ----------------------------------------------------------------------------------- */

static struct resolving *resolving_gathering(struct request *q)
{
	if (q->gathering)
		return q->gathering;
	struct resolving *resolving = mem_zalloc(sizeof(*resolving));
	resolving->request = q;
	resolving->judged_ms = q->r.now_ms;
	arena_init(&resolving->arena, RESOLVING_MAX_BYTES);
	resolving->last_group = &resolving->groups;
	resolving->last_point = &resolving->points;
	q->gathering = resolving;
	return resolving;
}

static void resolving_free(struct resolving *resolving)
{
	for (struct group *group = resolving->groups; group; group = group->next) {
		if (group->fields)
			field_names_release(group->fields);
	}
	mem_free(resolving->table);
	arena_release(&resolving->arena);
	mem_free(resolving);
}

void resolving_drop_gathering(struct request *q)
{
	if (q->gathering)
		resolving_free(q->gathering);
	q->gathering = NULL;
	q->waits_to_open = false;
}

static size_t resolving_bytes_of(const struct resolving *resolving)
{
	return resolving ? resolving->arena.used_bytes +
				   resolving->table_size * sizeof(*resolving->table) +
				   RESOLVING_FIXED_BYTES
			 : 0;
}

size_t resolving_bytes(const struct request *q)
{
	size_t bytes = resolving_bytes_of(q->gathering) + resolving_bytes_of(q->opening);
	if (q->filling) {
		for (struct resolving *resolving = q->filling->resolvings; resolving;
		     resolving = resolving->next)
			bytes += resolving_bytes_of(resolving);
	}
	return bytes;
}

bool resolving_crowded(const struct request *q)
{
	return resolving_pending(q) && q->gathering &&
	       q->gathering->arena.used_bytes > RESOLVING_OPEN_BYTES;
}

static void resolving_finish_opening(struct resolving *resolving, int err)
{
	if (resolving->opened)
		catalog_open_finish(&resolving->open, err);
}

void resolving_finish_all(struct resolving *resolvings, int err)
{
	while (resolvings) {
		struct resolving *resolving = resolvings;
		resolvings = resolving->next;
		resolving_finish_opening(resolving, err);
		if (!err)
			ingest_marks_remember(resolving);
		resolving->over = true;
		if (!resolving->busy)
			resolving_free(resolving);
	}
}

/* ---- Gathering ------------------------------------------------------------------------------ */

static struct hash128 group_identity(const struct unknown *u)
{
	struct hash128 same = u->key;
	if (u->fields) {
		same.low ^= u->fields->key.low;
		same.high ^= u->fields->key.high;
	}
	if (u->positions) {
		struct hash128 which =
			hash128(u->positions, u->count * sizeof(*u->positions), same.low);
		same.low += which.low;
		same.high ^= which.high;
	}
	return same;
}

static void resolving_enter(struct group **table, size_t size, struct group *group)
{
	size_t at = group->same.low & (size - 1);
	while (table[at])
		at = (at + 1) & (size - 1);
	table[at] = group;
}

static void resolving_table_add(struct resolving *resolving, struct group *group)
{
	if (resolving->group_count * 2 >= resolving->table_size) {
		size_t size = resolving->table_size ? resolving->table_size * 2 : 16;
		mem_free(resolving->table);
		resolving->table = mem_zalloc(size * sizeof(struct group *));
		resolving->table_size = size;
		for (struct group *g = resolving->groups; g; g = g->next)
			resolving_enter(resolving->table, size, g);
	}
	resolving_enter(resolving->table, resolving->table_size, group);
}

static struct group *resolving_table_find(const struct resolving *resolving, struct hash128 same)
{
	if (!resolving->table_size)
		return NULL;
	size_t mask = resolving->table_size - 1;
	for (size_t at = same.low & mask; resolving->table[at]; at = (at + 1) & mask) {
		struct group *group = resolving->table[at];
		if (group->same.low == same.low && group->same.high == same.high)
			return group;
	}
	return NULL;
}

static char *resolving_put_text(char *to, struct slice text, struct slice *copy)
{
	if (text.len)
		memcpy(to, text.data, text.len);
	*copy = (struct slice){to, text.len};
	return to + text.len;
}

/* Tenant and tags, in one piece. */
static int resolving_copy_identity(struct resolving *resolving, const struct unknown *u,
				   struct group *group)
{
	size_t bytes = u->tenant.len + u->tags.count * sizeof(struct tag);
	for (size_t i = 0; i < u->tags.count; i++)
		bytes += u->tags.list[i].key.len + u->tags.list[i].value.len;
	struct tag *tags = arena_alloc(&resolving->arena, bytes);
	if (!tags)
		return ERR_LIMIT;
	char *to = resolving_put_text((char *)(tags + u->tags.count), u->tenant, &group->tenant);
	for (size_t i = 0; i < u->tags.count; i++) {
		to = resolving_put_text(to, u->tags.list[i].key, &tags[i].key);
		to = resolving_put_text(to, u->tags.list[i].value, &tags[i].value);
	}
	group->tags = (struct tags){tags, u->tags.count};
	return 0;
}

static size_t resolving_position(const struct unknown *u, size_t i)
{
	return u->positions ? u->positions[i] : i;
}

/* The metrics that are asked for. Those of a shape need no copy: the group holds it. */
static int resolving_copy_metrics(struct resolving *resolving, const struct unknown *u,
				  struct group *group)
{
	if (u->fields && !u->positions) {
		group->metrics = u->metrics;
		return 0;
	}
	size_t bytes = u->count * sizeof(struct slice);
	for (size_t i = 0; i < u->count && !u->fields; i++)
		bytes += u->metrics[resolving_position(u, i)].len;
	struct slice *metrics = arena_alloc(&resolving->arena, bytes);
	if (!metrics)
		return ERR_LIMIT;
	char *to = (char *)(metrics + u->count);
	for (size_t i = 0; i < u->count; i++) {
		metrics[i] = u->metrics[resolving_position(u, i)];
		if (!u->fields)
			to = resolving_put_text(to, metrics[i], &metrics[i]);
	}
	group->metrics = metrics;
	return 0;
}

static int resolving_copy_positions(struct resolving *resolving, const struct unknown *u,
				    struct group *group)
{
	if (!u->positions)
		return 0;
	size_t bytes = u->count * sizeof(*u->positions);
	uint16_t *positions = arena_alloc(&resolving->arena, bytes);
	if (!positions)
		return ERR_LIMIT;
	memcpy(positions, u->positions, bytes);
	group->positions = positions;
	return 0;
}

/* Mostly all are of one level. */
static int resolving_set_levels(struct resolving *resolving, struct slice tenant,
				struct group *group)
{
	uint8_t levels[INGEST_POINTS_MAX];
	bool several = false;
	if (!raw_retention_levels(resolving->request->r.ingest, tenant, group->metrics,
				  group->count, levels))
		return 0;
	for (size_t i = 1; i < group->count; i++)
		several |= levels[i] != levels[0];
	group->level = levels[0];
	if (!several)
		return 0;
	struct slice copy = {(const char *)levels, group->count};
	group->levels = (const uint8_t *)arena_copy(&resolving->arena, copy).data;
	return group->levels ? 0 : ERR_LIMIT;
}

/* ---- Other rules ----------------------------------------------------------------------------- */

static void resolving_keep_targets_of(const struct request *q, struct resolving *resolving)
{
	struct resolving_point *point = resolving ? resolving->points : NULL;
	for (; point; point = point->next) {
		if (point->group || point->has_target)
			continue;
		point->has_target = true;
		point->target = request_target(q, point->level, point->ts_ms);
	}
}

void resolving_keep_targets(struct request *q)
{
	resolving_keep_targets_of(q, q->gathering);
	resolving_keep_targets_of(q, q->opening);
}

/* If there is no room for several levels, all samples are kept for as long as the longest. */
static void resolving_match_groups_again(struct resolving *resolving)
{
	struct group *group = resolving ? resolving->groups : NULL;
	for (; group; group = group->next) {
		group->level = 0;
		group->levels = NULL;
		if (resolving_set_levels(resolving, group->tenant, group))
			group->level = resolving->request->r.ingest->longest;
	}
}

void resolving_match_again(struct request *q)
{
	resolving_match_groups_again(q->gathering);
	resolving_match_groups_again(q->opening);
}

struct cache_entry *resolving_entry(const struct resolving *resolving, const struct group *group)
{
	struct cache *cache = resolving->request->r.ingest->cache;
	struct cache_entry *entry = group->no_cache ? NULL : cache_find(cache, group->key);
	return entry && entry->fields == group->fields && entry->count == resolving_key_count(group)
		       ? entry
		       : NULL;
}

/* Takes the handles that the cache has. True: these are all. */
static bool resolving_find_handles(const struct resolving *resolving, struct group *group)
{
	const struct cache_entry *entry = resolving_entry(resolving, group);
	bool all = entry != NULL;
	for (size_t i = 0; i < group->count && all; i++) {
		group->handles[i] = cache_handle(entry, group->positions ? group->positions[i] : i);
		all = group->handles[i] != 0;
	}
	return all;
}

static struct group *resolving_add_group(struct resolving *resolving, const struct unknown *u,
					 struct hash128 same)
{
	size_t handle_bytes = u->count * sizeof(uint64_t);
	struct group *group = arena_alloc(&resolving->arena, sizeof(*group) + handle_bytes);
	if (!group)
		return NULL;
	*group = (struct group){.key = u->key,
				.same = same,
				.no_cache = u->no_cache,
				.key_count = (uint16_t)u->metric_count,
				.handles = (uint64_t *)(group + 1),
				.count = u->count};
	if (resolving_copy_identity(resolving, u, group) ||
	    resolving_copy_metrics(resolving, u, group) ||
	    resolving_copy_positions(resolving, u, group) ||
	    resolving_set_levels(resolving, u->tenant, group))
		return NULL;
	if (u->fields)
		field_names_hold(group->fields = u->fields);
	resolving->needs_catalog |= !resolving_find_handles(resolving, group);
	resolving_table_add(resolving, group);
	*resolving->last_group = group;
	resolving->last_group = &group->next;
	group->index = resolving->group_count++;
	return group;
}

/* With room for the values, and for handles too if they are known. */
static struct resolving_point *resolving_add_point(struct resolving *resolving, int64_t ts_ms,
						   const struct value *values, size_t count,
						   const uint64_t *handles)
{
	size_t value_bytes = count * sizeof(*values);
	size_t handle_bytes = handles ? count * sizeof(*handles) : 0;
	struct resolving_point *point =
		arena_alloc(&resolving->arena, sizeof(*point) + value_bytes + handle_bytes);
	if (!point)
		return NULL;
	char *rest = (char *)(point + 1);
	memcpy(rest, values, value_bytes);
	*point = (struct resolving_point){
		.values = (const struct value *)(void *)rest, .count = count, .ts_ms = ts_ms};
	if (handles) {
		memcpy(rest + value_bytes, handles, handle_bytes);
		point->handles = (const uint64_t *)(void *)(rest + value_bytes);
	}
	*resolving->last_point = point;
	resolving->last_point = &point->next;
	return point;
}

/* Too much has been gathered: it has to wait for the catalog, or the request fails. */
static void resolving_overflow(struct request *q)
{
	request_fail(
		q, ERR_BUSY,
		"too many samples wait for their series to be registered (ingest.in_flight_max)");
}

static void resolving_gathered(struct request *q)
{
	if (q->gathering && !q->opening && q->gathering->arena.used_bytes >= RESOLVING_OPEN_BYTES)
		resolving_start(q);
}

void resolving_add_unknown(struct request *q, const struct unknown *u)
{
	if (LIKELY(u->ts_ms >= q->sure_ms))
		resolving_put(q, u);
	else
		raw_retention_add_unknown(q, u);
}

/* A point of a group; NULL: there was no room for it. */
static void resolving_put_point(struct request *q, struct group *group, const struct unknown *u)
{
	struct resolving *resolving = q->gathering;
	struct resolving_point *point =
		group ? resolving_add_point(resolving, u->ts_ms, u->values, u->count, NULL) : NULL;
	if (!point) {
		resolving_overflow(q);
		return;
	}
	point->group = group;
	point->place = u->place;
	point->one_by_one = u->one_by_one;
	if (q->r.door.keep_source && u->source.len)
		point->source = arena_copy(&resolving->arena, u->source);
	resolving_gathered(q);
}

bool resolving_put_again(struct request *q, const struct unknown *u)
{
	const struct resolving *resolving = q->gathering;
	struct group *group = NULL;
	if (resolving && u->ts_ms >= q->sure_ms)
		group = resolving_table_find(resolving, group_identity(u));
	if (group)
		resolving_put_point(q, group, u);
	return group != NULL;
}

void resolving_put(struct request *q, const struct unknown *u)
{
	if (q->r.err)
		return;
	struct resolving *resolving = resolving_gathering(q);
	struct hash128 same = group_identity(u);
	struct group *group = resolving_table_find(resolving, same);
	resolving_put_point(q, group ? group : resolving_add_group(resolving, u, same), u);
}

void resolving_add_known(struct request *q, uint8_t level, int64_t ts_ms, const uint64_t *handles,
			 const struct value *values, size_t count)
{
	if (q->r.err || !count)
		return;
	struct resolving_point *point =
		resolving_add_point(resolving_gathering(q), ts_ms, values, count, handles);
	if (!point) {
		resolving_overflow(q);
		return;
	}
	point->level = level;
	resolving_gathered(q);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static void resolving_cache(struct ingest *ingest, const struct group *group,
			    const struct slice *metrics, const uint64_t *handles, size_t count)
{
	uint8_t levels[INGEST_POINTS_MAX];
	bool any = raw_retention_levels(ingest, group->tenant, metrics, count, levels);
	cache_put(ingest->cache, group->key, group->fields, handles, any ? levels : NULL, count);
}

static void resolving_remember(struct request *q, const struct group *group)
{
	struct ingest *ingest = q->r.ingest;
	if (group->no_cache)
		return;
	if (!group->positions) {
		resolving_cache(ingest, group, group->metrics, group->handles, group->count);
		return;
	}
	uint64_t handles[INGEST_POINTS_MAX] = {0};
	for (size_t i = 0; i < group->count; i++)
		handles[group->positions[i]] = group->handles[i];
	resolving_cache(ingest, group, group->fields->metrics, handles, group->key_count);
}

static void resolving_remember_all(struct resolving *resolving)
{
	struct request *q = resolving->request;
	for (struct group *group = resolving->groups; group; group = group->next) {
		if (group->opened && group->opened->err == 0)
			resolving_remember(q, group);
	}
	struct cache_usage usage = cache_usage(q->r.ingest->cache);
	stat_set(STAT_ingest_cache_entries, (int64_t)usage.entries);
	stat_set(STAT_ingest_cache_bytes, (int64_t)usage.bytes);
}

/* All are taken: that was seen when they came. */
static void resolving_append_all(struct request *q, const struct resolving_point *point)
{
	const struct group *group = point->group;
	raw_retention_append(q, &(struct known){.level = group->level,
						.levels = group->levels,
						.ts_ms = point->ts_ms,
						.handles = group->handles,
						.values = point->values,
						.count = point->count});
}

/* Limits hide nothing that exists: the series that were there before take their values. */
static void resolving_append_found(struct request *q, const struct resolving_point *point)
{
	const struct group *group = point->group;
	uint64_t handles[INGEST_POINTS_MAX];
	uint8_t levels[INGEST_POINTS_MAX];
	struct value values[INGEST_POINTS_MAX];
	size_t n = 0;
	for (size_t i = 0; i < point->count; i++) {
		if (!group->handles[i])
			continue;
		handles[n] = group->handles[i];
		levels[n] = group->levels ? group->levels[i] : 0;
		values[n++] = point->values[i];
	}
	raw_retention_append(q, &(struct known){.level = group->level,
						.levels = group->levels ? levels : NULL,
						.ts_ms = point->ts_ms,
						.handles = handles,
						.values = values,
						.count = n});
}

/* Points by themselves are refused by themselves: those that have no handle. */
static void resolving_refuse_unopened(struct request *q, const struct resolving_point *point,
				      enum ingest_reason reason, const char *sentence)
{
	struct ingest_place place = point->place;
	if (!point->one_by_one) {
		ingest_refuse(&q->r, place, reason, point->source, "%s", sentence);
		return;
	}
	for (size_t i = 0; i < point->count; i++, place.index++) {
		if (!point->group->handles[i])
			ingest_refuse(&q->r, place, reason, point->source, "%s", sentence);
	}
}

static void resolving_append_point(struct resolving *resolving, const struct resolving_point *point)
{
	struct request *q = resolving->request;
	if (!point->group) {
		struct store_target target =
			point->has_target ? point->target
					  : request_target(q, point->level, point->ts_ms);
		request_append_to(q, &target, point->ts_ms, point->handles, point->values,
				  point->count);
		return;
	}
	const struct catalog_group *opened = point->group->opened;
	if (LIKELY(!opened || !opened->err)) {
		resolving_append_all(q, point);
		return;
	}
	bool limit = opened->err == ERR_LIMIT || opened->err == ERR_INVALID;
	resolving_refuse_unopened(q, point, limit ? INGEST_LIMIT : INGEST_STORE, opened->sentence);
	if (limit)
		resolving_append_found(q, point);
	else
		request_fail(q, opened->err, opened->sentence);
}

static void resolving_append_points(struct resolving *resolving)
{
	struct request *q = resolving->request;
	if (!resolving->points || q->r.err)
		return;
	/* The points of a write that begins within this round are no younger. */
	int64_t judged_ms = q->judged_ms;
	q->judged_ms = resolving->judged_ms;
	struct pending_write *pending = request_pending(q);
	if (resolving->judged_ms < pending->judged_ms)
		pending->judged_ms = resolving->judged_ms;
	for (struct resolving_point *point = resolving->points; point && !q->r.err;
	     point = point->next)
		resolving_append_point(resolving, point);
	q->judged_ms = judged_ms;
}

static int resolving_add_marks_and_names(struct resolving *resolving, struct pending_write *pending,
					 size_t *marked)
{
	size_t before = *marked;
	int err = ingest_marks_add(resolving, pending->write, marked);
	pending->marks |= *marked > before;
	if (!err && resolving->opened)
		err = catalog_open_add_names(&resolving->open, pending->write);
	return err;
}

/* Marks and names before samples; those that do not fit a write go on in the next one. The round
 * stays with the last of these. */
static int resolving_write_marks_and_names(struct resolving *resolving)
{
	struct request *q = resolving->request;
	size_t marked = 0;
	for (;;) {
		struct pending_write *pending = request_pending(q);
		int err = resolving_add_marks_and_names(resolving, pending, &marked);
		q->leans = true;
		if (!err) {
			if (!(q->r.ingest->options.store->engine->can & STORE_ATOMIC_STAGES))
				store_write_next_stage(pending->write);
			resolving->next = pending->resolvings;
			pending->resolvings = resolving;
			return 0;
		}
		if (err != ERR_LIMIT || !(pending->write->cells || pending->write->samples))
			return err;
		request_submit(q);
		if (q->r.err)
			return q->r.err;
	}
}

/* All handles are there. If an error is returned, the round hangs on no pending write. */
static void resolving_apply(struct resolving *resolving)
{
	struct request *q = resolving->request;
	int err = q->abandoned ? ERR_CANCELLED : q->r.err;
	if (!err) {
		if (resolving->opened)
			resolving_remember_all(resolving);
		err = ingest_marks_collect(resolving);
		if (!err)
			err = resolving_write_marks_and_names(resolving);
		if (err)
			request_fail(q, err == ERR_LIMIT ? ERR_BUSY : err,
				     "the names of new metrics could not be written");
	}
	if (err) {
		resolving_finish_opening(resolving, ERR_CANCELLED);
		resolving_free(resolving);
		return;
	}
	resolving->busy = true;
	resolving_append_points(resolving);
	q->leans = false;
	resolving->busy = false;
	if (resolving->over)
		resolving_free(resolving);
}

/* The request that has waited longest is the last of the list, which new ones head. */
static struct request *resolving_find_waiting(const struct ingest *ingest)
{
	struct request *oldest = NULL;
	for (struct request *q = ingest->requests; q; q = q->next)
		oldest = q->waits_to_open ? q : oldest;
	return oldest;
}

/* Not from within a piece. */
static void resolving_open_waiting(struct ingest *ingest)
{
	struct request *q;
	while (ingest->opening < RESOLVINGS_OPENING_MAX && (q = resolving_find_waiting(ingest))) {
		resolving_start(q);
		/* It could not even be begun: the request has failed. */
		if (!resolving_pending(q))
			request_progress(q);
	}
}

static void resolving_on_opened(struct catalog_open *open)
{
	struct resolving *resolving = open->owner;
	struct request *q = resolving->request;
	struct ingest *ingest = q->r.ingest;
	q->opening = NULL;
	ingest->opening--;
	resolving_apply(resolving);
	resolving_start(q);
	/* One that is paused adds nothing more either, and others may wait for its bytes. */
	if ((q->ended || q->sender.is_paused) && !resolving_pending(q))
		request_submit(q);
	request_account(q);
	request_progress(q);
	resolving_open_waiting(ingest);
}

/* What the round before has opened since it came to this one is known by now. */
static int resolving_prepare(struct resolving *resolving)
{
	struct ingest *ingest = resolving->request->r.ingest;
	struct catalog_group *groups =
		arena_alloc(&resolving->arena, resolving->group_count * sizeof(*groups));
	size_t count = 0;
	if (!groups)
		return ERR_LIMIT;
	for (struct group *group = resolving->groups; group; group = group->next) {
		if (resolving_find_handles(resolving, group))
			continue;
		group->opened = &groups[count];
		groups[count++] = (struct catalog_group){.tenant = group->tenant,
							 .tags = group->tags,
							 .metrics = group->metrics,
							 .count = group->count,
							 .handles = group->handles};
	}
	resolving->open = (struct catalog_open){.catalog = ingest->options.catalog,
						.executor = ingest->options.executor,
						.done = resolving_on_opened,
						.owner = resolving,
						.groups = groups,
						.count = count};
	return 0;
}

void resolving_start(struct request *q)
{
	struct resolving *resolving = q->gathering;
	q->waits_to_open = false;
	if (!resolving || q->opening || q->r.err)
		return;
	if (resolving->needs_catalog && q->r.ingest->opening >= RESOLVINGS_OPENING_MAX) {
		q->waits_to_open = true;
		return;
	}
	q->gathering = NULL;
	int err = resolving->needs_catalog ? resolving_prepare(resolving) : 0;
	if (!err && !resolving->open.count) {
		resolving_apply(resolving);
		return;
	}
	if (!err)
		err = catalog_open_start(&resolving->open);
	if (err) {
		request_fail(q, err == ERR_LIMIT ? ERR_BUSY : err,
			     "new series cannot be registered now");
		resolving_free(resolving);
		return;
	}
	stat_add(STAT_ingest_unknown, (int64_t)resolving->open.count);
	resolving->opened = true;
	q->opening = resolving;
	q->r.ingest->opening++;
}

void resolving_piece_end(struct request *q)
{
	if (q->gathering && q->gathering->needs_catalog)
		resolving_start(q);
}

void resolving_settle(struct request *q)
{
	if (q->gathering && !q->gathering->needs_catalog)
		resolving_start(q);
}
