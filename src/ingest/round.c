/* Rounds: what waits for its series. See private.h for the way a value takes. */
#include "ingest/round.h"

#include "base/stats.h"
#include "ingest/kept.h"
#include "ingest/marks.h"

/* ---- Life ----------------------------------------------------------------------------------- */

static struct round *gathering(struct request *q)
{
	if (q->gathering)
		return q->gathering;
	struct round *round = mem_zalloc(sizeof(*round));
	round->request = q;
	round->judged_ms = q->r.now_ms;
	arena_init(&round->arena, ROUND_MAX_BYTES);
	round->last_group = &round->groups;
	round->last_point = &round->points;
	q->gathering = round;
	return round;
}

static void round_free(struct round *round)
{
	for (struct group *group = round->groups; group; group = group->next) {
		if (group->shape)
			shape_release(group->shape);
	}
	mem_free(round->table);
	arena_release(&round->arena);
	mem_free(round);
}

void round_drop_gathering(struct request *q)
{
	if (q->gathering)
		round_free(q->gathering);
	q->gathering = NULL;
	q->waits_to_open = false;
}

static size_t bytes_of(const struct round *round)
{
	return round ? round->arena.used_bytes + round->table_size * sizeof(*round->table) +
			       ROUND_FIXED_BYTES
		     : 0;
}

size_t round_bytes(const struct request *q)
{
	size_t bytes = bytes_of(q->gathering) + bytes_of(q->opening);
	if (q->flight) {
		for (struct round *round = q->flight->rounds; round; round = round->next)
			bytes += bytes_of(round);
	}
	return bytes;
}

bool round_crowded(const struct request *q)
{
	return round_pending(q) && q->gathering &&
	       q->gathering->arena.used_bytes > ROUND_CROWDED_BYTES;
}

static void finish_opening(struct round *round, int err)
{
	if (round->opened)
		catalog_open_finish(&round->open, err);
}

void rounds_finish(struct round *rounds, int err)
{
	while (rounds) {
		struct round *round = rounds;
		rounds = round->next;
		finish_opening(round, err);
		if (!err)
			marks_remember(round);
		round->over = true;
		if (!round->busy)
			round_free(round);
	}
}

/* ---- Gathering ------------------------------------------------------------------------------ */

static struct hash128 group_identity(const struct unknown *u)
{
	struct hash128 same = u->key;
	if (u->shape) {
		same.low ^= u->shape->key.low;
		same.high ^= u->shape->key.high;
	}
	if (u->positions) {
		struct hash128 which =
			hash128(u->positions, u->count * sizeof(*u->positions), same.low);
		same.low += which.low;
		same.high ^= which.high;
	}
	return same;
}

static void enter(struct group **table, size_t size, struct group *group)
{
	size_t at = group->same.low & (size - 1);
	while (table[at])
		at = (at + 1) & (size - 1);
	table[at] = group;
}

static void table_add(struct round *round, struct group *group)
{
	if (round->group_count * 2 >= round->table_size) {
		size_t size = round->table_size ? round->table_size * 2 : 16;
		mem_free(round->table);
		round->table = mem_zalloc(size * sizeof(struct group *));
		round->table_size = size;
		for (struct group *g = round->groups; g; g = g->next)
			enter(round->table, size, g);
	}
	enter(round->table, round->table_size, group);
}

static struct group *table_find(const struct round *round, struct hash128 same)
{
	if (!round->table_size)
		return NULL;
	size_t mask = round->table_size - 1;
	for (size_t at = same.low & mask; round->table[at]; at = (at + 1) & mask) {
		struct group *group = round->table[at];
		if (group->same.low == same.low && group->same.high == same.high)
			return group;
	}
	return NULL;
}

static char *put_text(char *to, struct slice text, struct slice *copy)
{
	if (text.len)
		memcpy(to, text.data, text.len);
	*copy = (struct slice){to, text.len};
	return to + text.len;
}

/* Tenant and tags, in one piece. */
static int copy_identity(struct round *round, const struct unknown *u, struct group *group)
{
	size_t bytes = u->tenant.len + u->tags.count * sizeof(struct tag);
	for (size_t i = 0; i < u->tags.count; i++)
		bytes += u->tags.list[i].key.len + u->tags.list[i].value.len;
	struct tag *tags = arena_alloc(&round->arena, bytes);
	if (!tags)
		return ERR_LIMIT;
	char *to = put_text((char *)(tags + u->tags.count), u->tenant, &group->tenant);
	for (size_t i = 0; i < u->tags.count; i++) {
		to = put_text(to, u->tags.list[i].key, &tags[i].key);
		to = put_text(to, u->tags.list[i].value, &tags[i].value);
	}
	group->tags = (struct tags){tags, u->tags.count};
	return 0;
}

static size_t position(const struct unknown *u, size_t i)
{
	return u->positions ? u->positions[i] : i;
}

/* The metrics that are asked for. Those of a shape need no copy: the group holds it. */
static int copy_metrics(struct round *round, const struct unknown *u, struct group *group)
{
	if (u->shape && !u->positions) {
		group->metrics = u->metrics;
		return 0;
	}
	size_t bytes = u->count * sizeof(struct slice);
	for (size_t i = 0; i < u->count && !u->shape; i++)
		bytes += u->metrics[position(u, i)].len;
	struct slice *metrics = arena_alloc(&round->arena, bytes);
	if (!metrics)
		return ERR_LIMIT;
	char *to = (char *)(metrics + u->count);
	for (size_t i = 0; i < u->count; i++) {
		metrics[i] = u->metrics[position(u, i)];
		if (!u->shape)
			to = put_text(to, metrics[i], &metrics[i]);
	}
	group->metrics = metrics;
	return 0;
}

static int copy_positions(struct round *round, const struct unknown *u, struct group *group)
{
	if (!u->positions)
		return 0;
	size_t bytes = u->count * sizeof(*u->positions);
	uint16_t *positions = arena_alloc(&round->arena, bytes);
	if (!positions)
		return ERR_LIMIT;
	memcpy(positions, u->positions, bytes);
	group->positions = positions;
	return 0;
}

/* Mostly all are of one level. */
static int set_levels(struct round *round, const struct unknown *u, struct group *group)
{
	uint8_t levels[INGEST_POINTS_MAX];
	bool several = false;
	if (!kept_levels(round->request->r.ingest, u->tenant, group->metrics, group->count, levels))
		return 0;
	for (size_t i = 1; i < group->count; i++)
		several |= levels[i] != levels[0];
	group->level = levels[0];
	if (!several)
		return 0;
	struct slice copy = {(const char *)levels, group->count};
	group->levels = (const uint8_t *)arena_copy(&round->arena, copy).data;
	return group->levels ? 0 : ERR_LIMIT;
}

struct cache_entry *round_entry(const struct round *round, const struct group *group)
{
	struct cache *cache = round->request->r.ingest->cache;
	struct cache_entry *entry = group->no_cache ? NULL : cache_find(cache, group->key);
	return entry && entry->shape == group->shape && entry->count == round_key_count(group)
		       ? entry
		       : NULL;
}

/* What the cache has of its handles. Whether that is all. */
static bool take_handles(const struct round *round, struct group *group)
{
	const struct cache_entry *entry = round_entry(round, group);
	bool all = entry != NULL;
	for (size_t i = 0; i < group->count && all; i++) {
		group->handles[i] = cache_handle(entry, group->positions ? group->positions[i] : i);
		all = group->handles[i] != 0;
	}
	return all;
}

static struct group *add_group(struct round *round, const struct unknown *u, struct hash128 same)
{
	size_t handle_bytes = u->count * sizeof(uint64_t);
	struct group *group = arena_alloc(&round->arena, sizeof(*group) + handle_bytes);
	if (!group)
		return NULL;
	*group = (struct group){.key = u->key,
				.same = same,
				.no_cache = u->no_cache,
				.key_count = (uint16_t)u->metric_count,
				.handles = (uint64_t *)(group + 1),
				.count = u->count};
	if (copy_identity(round, u, group) || copy_metrics(round, u, group) ||
	    copy_positions(round, u, group) || set_levels(round, u, group))
		return NULL;
	if (u->shape)
		shape_hold(group->shape = u->shape);
	round->needs_catalog |= !take_handles(round, group);
	table_add(round, group);
	*round->last_group = group;
	round->last_group = &group->next;
	group->index = round->group_count++;
	return group;
}

/* With room for the values, and for handles too if they are known. */
static struct pending *add_point(struct round *round, int64_t ts_ms, const struct value *values,
				 size_t count, const uint64_t *handles)
{
	size_t value_bytes = count * sizeof(*values);
	size_t handle_bytes = handles ? count * sizeof(*handles) : 0;
	struct pending *point =
		arena_alloc(&round->arena, sizeof(*point) + value_bytes + handle_bytes);
	if (!point)
		return NULL;
	char *behind = (char *)(point + 1);
	memcpy(behind, values, value_bytes);
	*point = (struct pending){
		.values = (const struct value *)(void *)behind, .count = count, .ts_ms = ts_ms};
	if (handles) {
		memcpy(behind + value_bytes, handles, handle_bytes);
		point->handles = (const uint64_t *)(void *)(behind + value_bytes);
	}
	*round->last_point = point;
	round->last_point = &point->next;
	return point;
}

/* What gathers is too much: it has to wait for the catalog, or the request fails. */
static void overflow(struct request *q)
{
	request_fail(
		q, ERR_BUSY,
		"too many samples wait for their series to be registered (ingest.in_flight_max)");
}

static void gathered(struct request *q)
{
	if (q->gathering && !q->opening && q->gathering->arena.used_bytes >= ROUND_OPEN_BYTES)
		round_start(q);
}

void round_add_unknown(struct request *q, const struct unknown *u)
{
	if (LIKELY(u->ts_ms >= q->sure_ms))
		round_put(q, u);
	else
		kept_add_unknown(q, u);
}

/* Of a group of the round that gathers; NULL: it had no room for it. */
static void put_point(struct request *q, struct group *group, const struct unknown *u)
{
	struct round *round = q->gathering;
	struct pending *point =
		group ? add_point(round, u->ts_ms, u->values, u->count, NULL) : NULL;
	if (!point) {
		overflow(q);
		return;
	}
	point->group = group;
	point->place = u->place;
	point->one_by_one = u->one_by_one;
	if (q->r.door.keep_source && u->source.len)
		point->source = arena_copy(&round->arena, u->source);
	gathered(q);
}

bool round_put_again(struct request *q, const struct unknown *u)
{
	const struct round *round = q->gathering;
	struct group *group = NULL;
	if (round && u->ts_ms >= q->sure_ms)
		group = table_find(round, group_identity(u));
	if (group)
		put_point(q, group, u);
	return group != NULL;
}

void round_put(struct request *q, const struct unknown *u)
{
	if (q->r.err)
		return;
	struct round *round = gathering(q);
	struct hash128 same = group_identity(u);
	struct group *group = table_find(round, same);
	put_point(q, group ? group : add_group(round, u, same), u);
}

void round_add_known(struct request *q, uint8_t level, int64_t ts_ms, const uint64_t *handles,
		     const struct value *values, size_t count)
{
	if (q->r.err || !count)
		return;
	struct pending *point = add_point(gathering(q), ts_ms, values, count, handles);
	if (!point) {
		overflow(q);
		return;
	}
	point->level = level;
	gathered(q);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static void put(struct ingest *ingest, const struct group *group, const struct slice *metrics,
		const uint64_t *handles, size_t count)
{
	uint8_t levels[INGEST_POINTS_MAX];
	bool any = kept_levels(ingest, group->tenant, metrics, count, levels);
	cache_put(ingest->cache, group->key, group->shape, handles, any ? levels : NULL, count);
}

static void remember(struct request *q, const struct group *group)
{
	struct ingest *ingest = q->r.ingest;
	if (group->no_cache)
		return;
	if (!group->positions) {
		put(ingest, group, group->metrics, group->handles, group->count);
		return;
	}
	uint64_t handles[INGEST_POINTS_MAX] = {0};
	for (size_t i = 0; i < group->count; i++)
		handles[group->positions[i]] = group->handles[i];
	put(ingest, group, group->shape->metrics, handles, group->key_count);
}

static void remember_all(struct round *round)
{
	struct request *q = round->request;
	for (struct group *group = round->groups; group; group = group->next) {
		if (round->open.groups[group->index].err == 0)
			remember(q, group);
	}
	struct cache_usage usage = cache_usage(q->r.ingest->cache);
	stat_set(STAT_ingest_cache_entries, (int64_t)usage.entries);
	stat_set(STAT_ingest_cache_bytes, (int64_t)usage.bytes);
}

/* All are taken: that was seen when they came. */
static void append_all(struct request *q, const struct pending *point)
{
	const struct group *group = point->group;
	kept_append(q, &(struct known){.level = group->level,
				       .levels = group->levels,
				       .ts_ms = point->ts_ms,
				       .handles = group->handles,
				       .values = point->values,
				       .count = point->count});
}

/* Limits hide nothing that exists: the series that were there before take their values. */
static void append_found(struct request *q, const struct pending *point)
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
	kept_append(q, &(struct known){.level = group->level,
				       .levels = group->levels ? levels : NULL,
				       .ts_ms = point->ts_ms,
				       .handles = handles,
				       .values = values,
				       .count = n});
}

/* Points by themselves are refused by themselves: those that have no handle. */
static void refuse_unopened(struct request *q, const struct pending *point,
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

static void append_point(struct round *round, const struct pending *point)
{
	struct request *q = round->request;
	if (!point->group) {
		request_append(q, point->level, point->ts_ms, point->handles, point->values,
			       point->count);
		return;
	}
	const struct catalog_group *opened =
		round->opened ? &round->open.groups[point->group->index] : NULL;
	if (LIKELY(!opened || !opened->err)) {
		append_all(q, point);
		return;
	}
	bool limit = opened->err == ERR_LIMIT || opened->err == ERR_INVALID;
	refuse_unopened(q, point, limit ? INGEST_LIMIT : INGEST_STORE, opened->sentence);
	if (limit)
		append_found(q, point);
	else
		request_fail(q, opened->err, opened->sentence);
}

static void append_points(struct round *round)
{
	struct request *q = round->request;
	if (!round->points || q->r.err)
		return;
	/* Those of a flight that is begun on the way are no younger. */
	int64_t judged_ms = q->judged_ms;
	q->judged_ms = round->judged_ms;
	struct flight *flight = request_flight(q);
	if (round->judged_ms < flight->judged_ms)
		flight->judged_ms = round->judged_ms;
	for (struct pending *point = round->points; point && !q->r.err; point = point->next)
		append_point(round, point);
	q->judged_ms = judged_ms;
}

static int add_marks_and_names(struct round *round, struct flight *flight, size_t *marked)
{
	size_t before = *marked;
	int err = marks_add(round, flight->write, marked);
	flight->marks |= *marked > before;
	if (!err && round->opened)
		err = catalog_open_add_names(&round->open, flight->write);
	return err;
}

/* Marks and names before samples; those that do not fit a write go on in the next one. The round
 * stays with the last of these. */
static int give_marks_and_names(struct round *round)
{
	struct request *q = round->request;
	size_t marked = 0;
	for (;;) {
		struct flight *flight = request_flight(q);
		int err = add_marks_and_names(round, flight, &marked);
		q->leans = true;
		if (!err) {
			if (!q->r.ingest->options.store->engine->can.batch_atomic)
				store_write_next_stage(flight->write);
			round->next = flight->rounds;
			flight->rounds = round;
			return 0;
		}
		if (err != ERR_LIMIT || !(flight->write->cells || flight->write->samples))
			return err;
		request_submit(q);
		if (q->r.err)
			return q->r.err;
	}
}

/* All handles are there. An error of the first kind means that the round hangs on no flight. */
static void apply(struct round *round)
{
	struct request *q = round->request;
	int err = q->abandoned ? ERR_CANCELLED : q->r.err;
	if (!err) {
		if (round->opened)
			remember_all(round);
		err = marks_collect(round);
		if (!err)
			err = give_marks_and_names(round);
		if (err)
			request_fail(q, err == ERR_LIMIT ? ERR_BUSY : err,
				     "the names of new metrics could not be written");
	}
	if (err) {
		finish_opening(round, ERR_CANCELLED);
		round_free(round);
		return;
	}
	round->busy = true;
	append_points(round);
	q->leans = false;
	round->busy = false;
	if (round->over)
		round_free(round);
}

/* The request that has waited longest is the last of the list, which new ones head. */
static struct request *find_waiting(const struct ingest *ingest)
{
	struct request *oldest = NULL;
	for (struct request *q = ingest->requests; q; q = q->next)
		oldest = q->waits_to_open ? q : oldest;
	return oldest;
}

/* Not from within a piece. */
static void open_waiting(struct ingest *ingest)
{
	struct request *q;
	while (ingest->opening < ROUNDS_OPENING_MAX && (q = find_waiting(ingest))) {
		round_start(q);
		/* It could not even be begun: the request has failed. */
		if (!round_pending(q))
			request_progress(q);
	}
}

static void on_opened(struct catalog_open *open)
{
	struct round *round = open->owner;
	struct request *q = round->request;
	struct ingest *ingest = q->r.ingest;
	q->opening = NULL;
	ingest->opening--;
	apply(round);
	round_start(q);
	/* One that is paused adds nothing more either, and others may wait for its bytes. */
	if ((q->ended || q->paused) && !round_pending(q))
		request_submit(q);
	request_account(q);
	request_progress(q);
	open_waiting(ingest);
}

static int prepare(struct round *round)
{
	struct ingest *ingest = round->request->r.ingest;
	struct catalog_group *groups =
		arena_alloc(&round->arena, round->group_count * sizeof(*groups));
	if (!groups)
		return ERR_LIMIT;
	for (struct group *group = round->groups; group; group = group->next)
		groups[group->index] = (struct catalog_group){.tenant = group->tenant,
							      .tags = group->tags,
							      .metrics = group->metrics,
							      .count = group->count,
							      .handles = group->handles};
	round->open = (struct catalog_open){.catalog = ingest->options.catalog,
					    .executor = ingest->options.executor,
					    .done = on_opened,
					    .owner = round,
					    .groups = groups,
					    .count = round->group_count};
	return 0;
}

void round_start(struct request *q)
{
	struct round *round = q->gathering;
	q->waits_to_open = false;
	if (!round || q->opening || q->r.err)
		return;
	if (round->needs_catalog && q->r.ingest->opening >= ROUNDS_OPENING_MAX) {
		q->waits_to_open = true;
		return;
	}
	q->gathering = NULL;
	if (!round->needs_catalog) {
		apply(round);
		return;
	}
	int err = prepare(round);
	if (!err)
		err = catalog_open_start(&round->open);
	if (err) {
		request_fail(q, err == ERR_LIMIT ? ERR_BUSY : err,
			     "new series cannot be registered now");
		round_free(round);
		return;
	}
	stat_add(STAT_ingest_unknown, (int64_t)round->group_count);
	round->opened = true;
	q->opening = round;
	q->r.ingest->opening++;
}

void round_piece_end(struct request *q)
{
	if (q->gathering && q->gathering->needs_catalog)
		round_start(q);
}

void round_settle(struct request *q)
{
	if (q->gathering && !q->gathering->needs_catalog)
		round_start(q);
}
