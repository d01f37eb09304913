/* Clients that write to the store's contract itself: batches of appends, deletions and cells. */
#include "world.h"

#define DAY_MS INT64_C(86400000)

enum { BATCH_BYTES = 1 << 20, TIMES_MAX = 100, HANDLES_MAX = 12, CONDITIONS_MAX = 4 };

/* ---- Names ----------------------------------------------------------------------------------- */

struct row *direct_row(struct world *world, unsigned series, bool rates)
{
	return &world->rows[series + (rates ? DIRECT_SERIES : 0)];
}

struct store_parts sim_cell_key(size_t cell, char text[8])
{
	snprintf(text, 8, "oops%zu", cell / ROW_CELLS);
	return (struct store_parts){{slice_of(text)}};
}

struct store_parts sim_cell_column(size_t cell, char text[8])
{
	snprintf(text, 8, "c%zu", cell % ROW_CELLS);
	return (struct store_parts){{slice_of(text)}};
}

struct store_parts sim_lease_column(size_t lease, char text[8])
{
	snprintf(text, 8, "l%zu", lease);
	return (struct store_parts){{slice_of(text)}};
}

/* Some are so long that they lie in parts. */
struct slice sim_cell_value(uint32_t id, char text[CELL_VALUE_MAX])
{
	size_t len = id % 7 == 0 ? 2500 : id % 31 == 0 ? 9000 : 12;
	memset(text, 'a' + (int)(id % 26), len);
	int n = snprintf(text, 12, "%u.", id);
	text[n] = 'x';
	return (struct slice){text, len};
}

/* ---- Batches --------------------------------------------------------------------------------- */

struct condition {
	size_t lease;
	uint32_t id, version; /* of the model */
	struct store_write_cond *outcome;
};

struct direct_write {
	struct world *world;
	size_t slot;
	struct store_write *write;
	struct batch *batch;
	struct condition conditions[CONDITIONS_MAX];
	size_t condition_count;
	int64_t stamp_us; /* the highest of its cells */
	bool is_late;     /* a cell has a stamp that was taken long before */
};

bool learn_lease(struct world *world, size_t number, uint32_t id, uint64_t version)
{
	struct lease *lease = &world->leases[number];
	lease->id = id;
	lease->version = version;
	for (size_t i = 0; version && i < lease->given_count; i++) {
		if (lease->given[i] != version)
			continue;
		if (lease->given_to[i] == id)
			return true;
		return violate(world, "lease %zu has version %llu a second time", number,
			       (unsigned long long)version);
	}
	if (version && lease->given_count < LEASE_VERSIONS) {
		lease->given[lease->given_count] = version;
		lease->given_to[lease->given_count++] = id;
	}
	return true;
}

static bool check_condition(struct world *world, const struct condition *c)
{
	const struct reg *reg = &world->leases[c->lease].reg;
	const struct version *v = &reg->versions[c->version];
	bool applied = register_state(reg, c->version - 1) == v->expects;
	uint32_t there = register_state(reg, c->version);
	if (c->outcome->applied != applied || !c->outcome->version != !there)
		return violate(world, "lease %zu: applied %d, version %llu; expected %d, %u",
			       c->lease, c->outcome->applied,
			       (unsigned long long)c->outcome->version, applied, there);
	return learn_lease(world, c->lease, there, c->outcome->version);
}

static void free_write(struct direct_write *w)
{
	w->world->writes[w->slot] = NULL;
	store_write_free(w->write);
	mem_free(w);
}

static void on_written(struct store_write *write, int err)
{
	struct direct_write *w = write->owner;
	struct world *world = w->world;
	if (world->ghost) {
		free_write(w);
		return;
	}
	say(world, "batch %u: %s", w->batch->number, err ? err_text(err) : "safe");
	if (err == 0) {
		w->batch->outcome = ANSWERED;
		w->batch->answered_at = world->tick;
		world->counts.answered++;
		if (w->stamp_us > world->stamp_stored_us)
			world->stamp_stored_us = w->stamp_us;
		for (size_t i = 0; i < w->condition_count; i++)
			check_condition(world, &w->conditions[i]);
	} else if (err == ERR_FULL || err == ERR_READ_ONLY) {
		w->batch->outcome = REFUSED;
		world->counts.refused++;
	} else if (err != ERR_UNKNOWN || !world->dead) {
		violate(world, "batch %u ends with: %s", w->batch->number, err_text(err));
	}
	free_write(w);
}

/* ---- Requests of a batch --------------------------------------------------------------------- */

static int64_t pick_start(struct world *world, struct group *group, size_t times)
{
	int64_t now = floor_to(now_ms(), GRID_MS), back = 0;
	unsigned kind = (unsigned)pick(world, 20);
	if (kind < 12) {
		if (group->next_ms > now || group->next_ms < now - DAY_MS)
			group->next_ms = now - (int64_t)times * GRID_MS;
		int64_t start_ms = group->next_ms;
		group->next_ms += (int64_t)times * GRID_MS;
		return start_ms;
	}
	if (kind < 16)
		back = (int64_t)pick(world, 600) * GRID_MS;
	else if (kind < 18)
		back = (int64_t)pick(world, (uint64_t)(9 * DAY_MS / GRID_MS)) * GRID_MS;
	else
		now = floor_to(now, DAY_MS) - (int64_t)pick(world, 3) * GRID_MS;
	return now - back;
}

/* Some neighbours of a group: those of one host, or the same of each host, or all. */
static size_t pick_members(struct world *world, const struct group *group, unsigned *series)
{
	size_t n = 0, first = pick(world, group->count), len = 1 + pick(world, HANDLES_MAX);
	for (size_t i = first; i < group->count && n < len; i++)
		series[n++] = (unsigned)(group->first + i);
	return n;
}

static bool all_open(const struct world *world, const unsigned *series, size_t n, uint64_t *handles)
{
	for (size_t i = 0; i < n; i++) {
		handles[i] = world->handles[series[i]];
		if (!handles[i])
			return false;
	}
	return n > 0;
}

static int append_one(struct world *world, struct direct_write *w, const unsigned *series, size_t n,
		      const uint64_t *handles, bool rates, int64_t ts_ms)
{
	struct value values[HANDLES_MAX * TABLE_FIELDS_MAX] = {0};
	const struct row *row = direct_row(world, series[0], rates);
	unsigned fields = (unsigned)schema[row->table].field_count;
	uint32_t id = ++world->next_id;
	for (size_t i = 0; i < n; i++) {
		for (unsigned f = 0; f < fields; f++)
			values[i * fields + f] =
				version_value(world->seed, series[i], ts_ms, f, rates, id);
	}
	int err = store_append(w->write,
			       &(struct store_target){row->table, row->retention, row->period_ms},
			       ts_ms, handles, n, values);
	for (size_t i = 0; i < n && !err; i++)
		model_row_put(direct_row(world, series[i], rates), ts_ms, w->batch, id);
	return err;
}

static void add_append(struct world *world, struct direct_write *w)
{
	struct group *group = &world->groups[pick(world, GROUPS)];
	unsigned series[HANDLES_MAX];
	uint64_t handles[HANDLES_MAX];
	size_t n = pick_members(world, group, series);
	size_t times = 1 + pick(world, chance(world, 50) ? 4 : TIMES_MAX);
	int64_t start_ms = pick_start(world, group, times);
	bool rates = chance(world, 20);
	if (!all_open(world, series, n, handles))
		return;
	say(world, "append %zu series from %u, %zu times from %lld%s", n, series[0], times,
	    (long long)start_ms, rates ? ", rates" : "");
	for (size_t i = 0; i < times; i++) {
		if (append_one(world, w, series, n, handles, rates,
			       start_ms + (int64_t)i * GRID_MS))
			return;
	}
}

static void add_deletion(struct world *world, struct direct_write *w)
{
	struct group *group = &world->groups[pick(world, GROUPS)];
	unsigned series[HANDLES_MAX];
	uint64_t handles[HANDLES_MAX];
	size_t n = pick_members(world, group, series);
	bool rates = chance(world, 20);
	int64_t start_ms = floor_to(now_ms(), GRID_MS) - (int64_t)pick(world, 500) * GRID_MS;
	int64_t end_ms = start_ms + (int64_t)pick(world, 200) * GRID_MS;
	if (chance(world, 10)) {
		start_ms = INT64_MIN;
		end_ms = INT64_MAX;
	}
	if (!all_open(world, series, n, handles))
		return;
	const struct row *row = direct_row(world, series[0], rates);
	say(world, "delete %zu series from %u, %lld..%lld%s", n, series[0], (long long)start_ms,
	    (long long)end_ms, rates ? ", rates" : "");
	if (store_delete_range(
		    w->write,
		    &(struct store_target){.table = row->table, .period_ms = row->period_ms},
		    handles, n, start_ms, end_ms))
		return;
	for (size_t i = 0; i < n; i++)
		model_row_delete(direct_row(world, series[i], rates), start_ms, end_ms, w->batch);
}

/* A stamp of now, or one that was taken before and comes late. */
static int64_t take_stamp(struct world *world, struct direct_write *w)
{
	int64_t held_us = world->held_stamp_us, stamp_us = store_stamp(world->store);
	if (stamp_us <= world->stamp_most_us)
		violate(world, "stamp %lld is not above %lld", (long long)stamp_us,
			(long long)world->stamp_most_us);
	world->stamp_most_us = stamp_us;
	world->held_stamp_us = 0;
	/* A deletion is remembered for a day. */
	bool usable = held_us && stamp_us - held_us < STORE_TOMBSTONE_MS / 2 * INT64_C(1000);
	if (usable && chance(world, 50)) {
		w->is_late = true;
		return held_us;
	}
	if (chance(world, 30)) {
		world->held_stamp_us = stamp_us;
		stamp_us = world->stamp_most_us = store_stamp(world->store);
	}
	return stamp_us;
}

static void take_part(struct direct_write *w, struct reg *reg, const struct version *v)
{
	register_add(reg, *v);
	if (v->stamp_us > w->stamp_us)
		w->stamp_us = v->stamp_us;
}

/* One version of each of its cells. */
static void add_row_deletion(struct world *world, struct direct_write *w)
{
	char key_text[8];
	size_t first = pick(world, CELLS / ROW_CELLS) * ROW_CELLS;
	struct store_parts key = sim_cell_key(first, key_text);
	struct version v = {.batch = w->batch,
			    .id = ++world->next_id,
			    .deletes = true,
			    .seen_at = UINT64_MAX,
			    .stamp_us = take_stamp(world, w)};
	say(world, "row of cell %zu: deleted by %u", first, v.id);
	if (store_row_delete(w->write, TABLE_DEVICES, &key, v.stamp_us))
		return;
	for (size_t i = 0; i < ROW_CELLS; i++)
		take_part(w, &world->cells[first + i], &v);
}

static void add_cell(struct world *world, struct direct_write *w)
{
	char key_text[8], column_text[8], text[CELL_VALUE_MAX];
	size_t cell = pick(world, CELLS);
	struct store_parts key = sim_cell_key(cell, key_text);
	struct store_parts column = sim_cell_column(cell, column_text);
	struct version v = {.batch = w->batch,
			    .id = ++world->next_id,
			    .deletes = chance(world, 25),
			    .seen_at = UINT64_MAX,
			    .stamp_us = take_stamp(world, w)};
	say(world, "cell %zu: %s%u", cell, v.deletes ? "deleted by " : "", v.id);
	int err = v.deletes ? store_cell_delete(w->write, TABLE_DEVICES, &key, &column, v.stamp_us)
			    : store_cell_put(w->write, TABLE_DEVICES, &key, &column,
					     sim_cell_value(v.id, text), v.stamp_us, 0);
	if (err)
		return;
	take_part(w, &world->cells[cell], &v);
}

static void add_condition(struct world *world, struct direct_write *w)
{
	char column_text[8], text[CELL_VALUE_MAX];
	if (w->condition_count == CONDITIONS_MAX)
		return;
	struct condition *c = &w->conditions[w->condition_count];
	c->lease = pick(world, LEASES);
	struct lease *lease = &world->leases[c->lease];
	struct store_parts key = LEASE_KEY, column = sim_lease_column(c->lease, column_text);
	struct version v = {.batch = w->batch,
			    .id = ++world->next_id,
			    .deletes = lease->version && chance(world, 30),
			    .seen_at = UINT64_MAX,
			    .expects = lease->id};
	say(world, "lease %zu: %s%u if %u", c->lease, v.deletes ? "deleted by " : "", v.id,
	    v.expects);
	int err = v.deletes
			  ? store_cell_delete_if(w->write, TABLE_LEASES, &key, &column,
						 lease->version, &c->outcome)
			  : store_cell_put_if(w->write, TABLE_LEASES, &key, &column, lease->version,
					      sim_cell_value(v.id, text), 0, &c->outcome);
	if (err)
		return;
	c->id = v.id;
	c->version = lease->reg.count;
	register_add(&lease->reg, v);
	w->condition_count++;
}

static void add_request(struct world *world, struct direct_write *w)
{
	unsigned kind = (unsigned)pick(world, 100);
	if (kind < 62)
		add_append(world, w);
	else if (kind < 74)
		add_deletion(world, w);
	else if (kind < 77)
		add_row_deletion(world, w);
	else if (kind < 88)
		add_cell(world, w);
	else
		add_condition(world, w);
}

bool direct_is_late(const struct world *world)
{
	for (size_t i = 0; i < WRITES_MAX; i++)
		if (world->writes[i] && world->writes[i]->is_late)
			return true;
	return false;
}

void direct_write_step(struct world *world)
{
	size_t slot = 0;
	while (slot < WRITES_MAX && world->writes[slot])
		slot++;
	if (slot == WRITES_MAX)
		return;
	struct direct_write *w = mem_zalloc(sizeof(*w));
	*w = (struct direct_write){.world = world, .slot = slot};
	w->batch = new_batch(world, true);
	w->write = store_write_new(world->store, BATCH_BYTES);
	w->write->executor = &world->executor;
	w->write->done = on_written;
	w->write->owner = w;
	w->write->in_runs = chance(world, 40);
	w->write->can_wait = chance(world, 30);
	world->writes[slot] = w;
	for (size_t n = 1 + pick(world, 4); n; n--)
		add_request(world, w);
	world->counts.writes++;
	int err = store_write_submit(w->write);
	say(world, "batch %u: %s", w->batch->number, err ? err_text(err) : "sent");
	if (!err)
		return;
	w->batch->outcome = REFUSED;
	if (err != ERR_BUSY && err != ERR_FULL && err != ERR_READ_ONLY)
		violate(world, "a batch is refused: %s", err_text(err));
	free_write(w);
}
