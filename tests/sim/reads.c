/* Readers of the store's contract itself: some among others while everything goes on, and one that
 * reads everything, after a crash and from time to time. */
#include <math.h>

#include "model/series.h"
#include "world.h"

#define DAY_MS INT64_C(86400000)

enum { READ_BYTES = 16 << 20 };

/* ---- What was read --------------------------------------------------------------------------- */

void got_add(struct got *got, int64_t ts_ms, const struct value *values)
{
	if (got->count == got->cap) {
		got->cap = got->cap ? got->cap * 2 : 32;
		got->ts_ms = mem_resize_array(got->ts_ms, got->cap, sizeof(*got->ts_ms));
		got->values =
			mem_resize_array(got->values, got->cap * got->fields, sizeof(*got->values));
	}
	got->ts_ms[got->count] = ts_ms;
	memcpy(got->values + got->count++ * got->fields, values, got->fields * sizeof(*values));
}

void got_reverse(struct got *got)
{
	for (size_t i = 0; i < got->count / 2; i++) {
		size_t j = got->count - 1 - i;
		int64_t ts_ms = got->ts_ms[i];
		got->ts_ms[i] = got->ts_ms[j];
		got->ts_ms[j] = ts_ms;
		for (unsigned f = 0; f < got->fields; f++) {
			struct value value = got->values[i * got->fields + f];
			got->values[i * got->fields + f] = got->values[j * got->fields + f];
			got->values[j * got->fields + f] = value;
		}
	}
}

void got_release(struct got *got)
{
	mem_free(got->ts_ms);
	mem_free(got->values);
	*got = (struct got){.fields = got->fields};
}

static void got_points(struct got *got, const struct store_points *points)
{
	for (size_t i = 0; i < points->count; i++) {
		struct value values[TABLE_FIELDS_MAX];
		for (unsigned f = 0; f < got->fields; f++)
			values[f] = (struct value){points->bits[f][i],
						   (enum value_type)points->types[f][i]};
		got_add(got, points->ts_ms[i], values);
	}
}

static bool is_version(const struct world *world, const struct row *row, int64_t ts_ms,
		       const struct value *values, uint32_t id)
{
	for (unsigned f = 0; f < schema[row->table].field_count; f++) {
		if (!value_identical(values[f], row_value(world, row, ts_ms, f, id)))
			return false;
	}
	return true;
}

/* Which version these values are; UINT32_MAX: none that was ever sent. */
static uint32_t id_of(const struct world *world, const struct row *row, const struct reg *reg,
		      const struct value *values)
{
	for (uint32_t i = 0; i < reg->count; i++) {
		uint32_t id = reg->versions[i].id;
		if (id && is_version(world, row, reg->ts_ms, values, id))
			return id;
	}
	/* Something is wrong: perhaps an older one has come back. */
	for (uint32_t id = 1; id <= world->next_id; id++) {
		if (is_version(world, row, reg->ts_ms, values, id))
			return id;
	}
	return UINT32_MAX;
}

static const char *describe(const struct world *world, const struct row *row, int64_t ts_ms)
{
	static char text[256];
	const struct series_name *name = &world->names[row->series];
	snprintf(text, sizeof(text), "%s of %s,%s (series %u) at %lld", schema[row->table].name,
		 name->metric, name->tags, row->series, (long long)ts_ms);
	return text;
}

/* Every version of it, for whoever looks into a failure. */
static const char *history(const struct reg *reg)
{
	static char text[512];
	size_t n = 0;
	text[0] = 0;
	for (uint32_t i = 0; i < reg->count && n + 64 < sizeof(text); i++) {
		const struct version *v = &reg->versions[i];
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %u%s%s", v->id,
				      !v->batch                       ? " (base)"
				      : v->batch->outcome == OPEN     ? " (open)"
				      : v->batch->outcome == ANSWERED ? " (answered)"
								      : " (refused)",
				      v->seen_at != UINT64_MAX ? "(seen)" : "");
	}
	return text;
}

static bool check_present(struct world *world, struct row *row, struct reg *reg,
			  const struct value *values, int64_t at_ms, uint64_t tick)
{
	bool must;
	if (!in_sight(world, row, reg->ts_ms, at_ms, &must))
		return violate(world, "%s is shown though it has expired",
			       describe(world, row, reg->ts_ms));
	uint32_t id = id_of(world, row, reg, values);
	world->counts.checked++;
	if (must && !register_see(reg, id, tick, world->tick))
		return violate(world, "%s has version %u, which may not be there:%s",
			       describe(world, row, reg->ts_ms), id, history(reg));
	return true;
}

static bool check_absent(struct world *world, struct row *row, struct reg *reg, int64_t at_ms,
			 uint64_t tick)
{
	bool must;
	if (!in_sight(world, row, reg->ts_ms, at_ms, &must) || !must)
		return true;
	if (!register_see(reg, 0, tick, world->tick))
		return violate(world, "%s is missing:%s", describe(world, row, reg->ts_ms),
			       history(reg));
	return true;
}

bool check_got(struct world *world, struct row *row, const struct got *got, int64_t from_ms,
	       int64_t to_ms, int64_t at_ms, uint64_t tick)
{
	size_t r = model_row_find(row, from_ms);
	world->counts.points += got->count;
	for (size_t i = 0; i < got->count; i++) {
		int64_t ts_ms = got->ts_ms[i];
		if (i && ts_ms <= got->ts_ms[i - 1])
			return violate(world, "%s comes out of order", describe(world, row, ts_ms));
		for (; r < row->count && row->regs[r].ts_ms < ts_ms; r++) {
			if (!check_absent(world, row, &row->regs[r], at_ms, tick))
				return false;
		}
		if (r == row->count || row->regs[r].ts_ms != ts_ms || ts_ms < from_ms ||
		    ts_ms >= to_ms)
			return violate(world, "%s was never sent, or is not in %lld..%lld",
				       describe(world, row, ts_ms), (long long)from_ms,
				       (long long)to_ms);
		if (!check_present(world, row, &row->regs[r++], got->values + i * got->fields,
				   at_ms, tick))
			return false;
	}
	for (; r < row->count && row->regs[r].ts_ms < to_ms; r++) {
		if (!check_absent(world, row, &row->regs[r], at_ms, tick))
			return false;
	}
	return true;
}

/* ---- Reads ----------------------------------------------------------------------------------- */

struct direct_read {
	struct world *world;
	size_t slot;
	struct store_read *read;
	struct store_request *request;
	uint64_t tick;
	int64_t at_ms, start_ms, end_ms;
	bool backward, done; /* done: for one that is waited for */
	struct row *rows[ROWS];
	uint64_t handles[ROWS];
	size_t count;
	struct got got[ROWS];
	size_t cells[CELLS];
	size_t cell_count;
	int err;
};

static struct direct_read *new_read(struct world *world)
{
	struct direct_read *r = mem_zalloc(sizeof(*r));
	r->world = world;
	r->slot = READS_MAX;
	r->read = store_read_new(world->store, READ_BYTES);
	r->read->executor = &world->executor;
	r->read->owner = r;
	r->tick = world->tick;
	r->at_ms = r->read->now_ms = now_ms();
	return r;
}

static void free_read(struct direct_read *r)
{
	if (r->slot < READS_MAX)
		r->world->reads[r->slot] = NULL;
	for (size_t i = 0; i < r->count; i++)
		got_release(&r->got[i]);
	store_read_free(r->read);
	mem_free(r);
}

static void add_row(struct direct_read *r, struct row *row)
{
	r->rows[r->count] = row;
	r->handles[r->count] = r->world->handles[row->series];
	r->got[r->count++].fields = (unsigned)schema[row->table].field_count;
}

static void gather(struct direct_read *r)
{
	const struct store_points *points = r->request->op == STORE_RANGE
						    ? r->request->range.points
						    : r->request->last_before.points;
	for (size_t i = 0; i < r->count && points; i++)
		got_points(&r->got[i], &points[i]);
}

static bool check_range(struct direct_read *r)
{
	for (size_t i = 0; i < r->count; i++) {
		if (r->backward)
			got_reverse(&r->got[i]);
		if (!check_got(r->world, r->rows[i], &r->got[i], r->start_ms, r->end_ms, r->at_ms,
			       r->tick))
			return false;
	}
	return true;
}

/* From the newest given on nothing is left out. */
static bool check_last(struct direct_read *r)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct got *got = &r->got[i];
		int64_t from_ms = got->count ? got->ts_ms[0] : INT64_MIN;
		if (got->count > 1)
			return violate(r->world, "two last samples");
		if (!check_got(r->world, r->rows[i], got, from_ms, r->end_ms, r->at_ms, r->tick))
			return false;
	}
	return true;
}

/* ---- Aggregates ------------------------------------------------------------------------------ */

/* What a window must say; false: more than one thing would be right. */
static bool summarise(struct direct_read *r, struct row *row, int64_t from_ms, int64_t to_ms,
		      struct store_summary *s)
{
	*s = (struct store_summary){0};
	for (size_t i = model_row_find(row, from_ms); i < row->count; i++) {
		struct reg *reg = &row->regs[i];
		bool must;
		if (reg->ts_ms >= to_ms)
			break;
		bool shown = in_sight(r->world, row, reg->ts_ms, r->at_ms, &must);
		if (shown && (!must || !register_settled(reg, r->tick)))
			return false;
		uint32_t id = register_state(reg, register_known(reg, r->tick));
		if (!shown || !id)
			continue;
		struct value v = row_value(r->world, row, reg->ts_ms, 0, id);
		if (!s->count || value_compare(v, s->min) < 0)
			s->min = v;
		if (!s->count || value_compare(v, s->max) > 0)
			s->max = v;
		if (!s->count)
			s->first = v, s->first_ts_ms = reg->ts_ms;
		s->last = v;
		s->last_ts_ms = reg->ts_ms;
		s->sum += value_as_f64(v);
		s->count++;
	}
	return true;
}

static bool check_window(struct direct_read *r, struct row *row, int64_t from_ms, int64_t to_ms,
			 const struct store_summary *is)
{
	struct store_summary want;
	if (!summarise(r, row, from_ms, to_ms, &want))
		return true;
	bool same = is->count == want.count;
	if (same && want.count)
		same = value_equal(is->min, want.min) && value_equal(is->max, want.max) &&
		       value_identical(is->first, want.first) &&
		       value_identical(is->last, want.last) &&
		       is->first_ts_ms == want.first_ts_ms && is->last_ts_ms == want.last_ts_ms &&
		       fabs(is->sum - want.sum) <= fabs(want.sum) * 1e-9 + 1e-3;
	r->world->counts.checked++;
	if (!same)
		return violate(r->world,
			       "%s: the window to %lld has %llu samples, sum %.17g; expected "
			       "%llu, %.17g",
			       describe(r->world, row, from_ms), (long long)to_ms,
			       (unsigned long long)is->count, is->sum,
			       (unsigned long long)want.count, want.sum);
	return true;
}

static bool check_aggregate(struct direct_read *r)
{
	const struct store_aggregate *a = &r->request->aggregate;
	struct store_summary *all = mem_alloc_array(a->window_count, sizeof(*all));
	bool good = true;
	for (size_t i = 0; i < a->next_handle && good; i++) {
		store_windows_spread(&a->windows[i], a->window_count, all);
		for (size_t w = 0; w < a->window_count && good; w++) {
			int64_t from_ms = a->start_ms + (int64_t)w * a->window_ms;
			int64_t to_ms = from_ms + a->window_ms;
			good = check_window(r, r->rows[i], from_ms,
					    to_ms < a->end_ms ? to_ms : a->end_ms, &all[w]);
		}
	}
	mem_free(all);
	return good;
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* Which version a cell's value is. */
static uint32_t id_of_cell(const struct store_cell_get *get)
{
	char number[16] = "", text[CELL_VALUE_MAX];
	if (!get->found)
		return 0;
	size_t n = get->cell.value.len < 12 ? get->cell.value.len : 12;
	memcpy(number, get->cell.value.data, n);
	uint32_t id = (uint32_t)strtoul(number, NULL, 10);
	return slice_equal(sim_cell_value(id, text), get->cell.value) ? id : UINT32_MAX;
}

static bool check_cell(struct direct_read *r, size_t number, const struct store_cell_get *get,
		       bool resolve, struct cut *cut)
{
	struct world *world = r->world;
	bool is_lease = number >= CELLS;
	struct reg *reg = is_lease ? &world->leases[number - CELLS].reg : &world->cells[number];
	uint32_t id = id_of_cell(get);
	world->counts.checked++;
	bool good = resolve ? register_resolve(reg, id, world->was_full, cut)
			    : register_see(reg, id, r->tick, world->tick);
	if (!good)
		return violate(world, "cell %zu has version %u, which may not be there:%s", number,
			       id, history(reg));
	if (is_lease && resolve)
		return learn_lease(world, number - CELLS, id, get->found ? get->cell.version : 0);
	return true;
}

static void add_cells(struct direct_read *r, bool all)
{
	char texts[2][8];
	for (size_t i = 0; i < CELLS + LEASES; i++) {
		if (!all && pick(r->world, 4))
			continue;
		struct store_request *q = store_read_add(r->read, STORE_CELL_GET);
		ASSERT(q);
		bool lease = i >= CELLS;
		struct store_parts key = lease ? LEASE_KEY : sim_cell_key(i, texts[0]);
		struct store_parts column = lease ? sim_lease_column(i - CELLS, texts[1])
						  : sim_cell_column(i, texts[1]);
		/* The names live as long as the read. */
		key.part[0] = arena_copy(&r->read->arena, key.part[0]);
		column.part[0] = arena_copy(&r->read->arena, column.part[0]);
		q->cell_get = (struct store_cell_get){.table = lease ? TABLE_LEASES : TABLE_DEVICES,
						      .key = key,
						      .column = column};
	}
}

static bool check_cells(struct direct_read *r, bool resolve, struct cut *cut)
{
	for (struct store_request *q = r->read->requests; q; q = q->next) {
		if (q->op != STORE_CELL_GET || q->err)
			continue;
		const char *column = q->cell_get.column.part[0].data;
		const char *key = q->cell_get.key.part[0].data;
		size_t number = column[0] == 'l' ? CELLS + (size_t)(column[1] - '0')
						 : (size_t)(key[4] - '0') * ROW_CELLS +
							   (size_t)(column[1] - '0');
		if (!check_cell(r, number, &q->cell_get, resolve, cut))
			return false;
	}
	return true;
}

/* ---- A reader among others ------------------------------------------------------------------- */

static void check_read(struct direct_read *r)
{
	switch (r->request ? r->request->op : STORE_CELL_GET) {
	case STORE_RANGE:
		check_range(r);
		break;
	case STORE_LAST_BEFORE:
		check_last(r);
		break;
	case STORE_AGGREGATE:
		check_aggregate(r);
		break;
	default:
		check_cells(r, false, NULL);
	}
}

/* A commit broke: LMDB lets nobody begin to read any more, and the writer is about to find out. */
static bool is_about_to_die(const struct world *world, int err)
{
	return world->dead || (err == ERR_UNKNOWN && disk_counts.failed);
}

static void on_read(struct store_read *read, int err)
{
	struct direct_read *r = read->owner;
	struct world *world = r->world;
	if (!world->ghost && !err) {
		bool sliced = r->request && (r->request->op == STORE_RANGE ||
					     r->request->op == STORE_LAST_BEFORE);
		if (sliced)
			gather(r);
		if (sliced && r->request->more) {
			if (store_read_submit(read) == 0)
				return;
		} else {
			check_read(r);
		}
	} else if (!world->ghost && !is_about_to_die(world, err) && err != ERR_TIMEOUT &&
		   err != ERR_BUSY) {
		violate(world, "a read fails: %s", err_text(err));
	}
	say(world, "read %zu: %s", r->slot, err_text(err));
	free_read(r);
}

static void pick_range(struct direct_read *r)
{
	struct world *world = r->world;
	int64_t now = now_ms();
	r->start_ms = now - (int64_t)pick(world, chance(world, 50) ? 1200 : 90000) * GRID_MS;
	r->end_ms = r->start_ms + (int64_t)pick(world, chance(world, 50) ? 1200 : 90000) * GRID_MS;
	if (chance(world, 50)) {
		r->start_ms = floor_to(r->start_ms, GRID_MS);
		r->end_ms = floor_to(r->end_ms, GRID_MS);
	}
	if (chance(world, 25)) {
		r->start_ms = INT64_MIN;
		r->end_ms = INT64_MAX;
	}
	bool rates = chance(world, 20);
	for (size_t n = 1 + pick(world, 6); n; n--)
		add_row(r, direct_row(world, (unsigned)pick(world, DIRECT_SERIES), rates));
}

static void ask_range(struct direct_read *r)
{
	r->backward = chance(r->world, 40);
	r->read->points_max = chance(r->world, 40) ? 1 + pick(r->world, 60) : 0;
	r->request->range = (struct store_range){.table = r->rows[0]->table,
						 .period_ms = r->rows[0]->period_ms,
						 .handles = r->handles,
						 .handle_count = r->count,
						 .start_ms = r->start_ms,
						 .end_ms = r->end_ms,
						 .backward = r->backward};
}

static void ask_last(struct direct_read *r)
{
	r->request->last_before = (struct store_last_before){.table = r->rows[0]->table,
							     .period_ms = r->rows[0]->period_ms,
							     .handles = r->handles,
							     .handle_count = r->count,
							     .before_ms = r->end_ms};
}

static void ask_aggregate(struct direct_read *r)
{
	static const int64_t widths[] = {60000, 600000, 3600000, DAY_MS};
	int64_t width = widths[pick(r->world, ARRAY_LEN(widths))];
	if (r->start_ms == INT64_MIN || r->end_ms - r->start_ms > 2000 * width) {
		r->end_ms = now_ms();
		r->start_ms = r->end_ms - 300 * width;
	}
	r->request->aggregate = (struct store_aggregate){.table = r->rows[0]->table,
							 .period_ms = r->rows[0]->period_ms,
							 .handles = r->handles,
							 .handle_count = r->count,
							 .start_ms = r->start_ms,
							 .end_ms = r->end_ms,
							 .window_ms = width};
}

static void ask(struct direct_read *r)
{
	unsigned kind = (unsigned)pick(r->world, 10);
	if (kind < 2) {
		add_cells(r, false);
		return;
	}
	pick_range(r);
	enum store_op op = kind < 6 ? STORE_RANGE : kind < 8 ? STORE_LAST_BEFORE : STORE_AGGREGATE;
	r->request = store_read_add(r->read, op);
	ASSERT(r->request);
	if (op == STORE_RANGE)
		ask_range(r);
	else if (op == STORE_LAST_BEFORE)
		ask_last(r);
	else
		ask_aggregate(r);
}

void direct_read_step(struct world *world)
{
	size_t slot = 0;
	while (slot < READS_MAX && world->reads[slot])
		slot++;
	if (slot == READS_MAX)
		return;
	struct direct_read *r = new_read(world);
	r->read->done = on_read;
	r->slot = slot;
	world->reads[slot] = r;
	ask(r);
	world->counts.reads++;
	int err = r->read->requests ? store_read_submit(r->read) : ERR_BUSY;
	say(world, "read %zu of %zu series, %lld..%lld: %s", slot, r->count, (long long)r->start_ms,
	    (long long)r->end_ms, err_text(err));
	if (err && err != ERR_BUSY)
		violate(world, "a read is refused: %s", err_text(err));
	if (err)
		free_read(r);
}

bool direct_idle(const struct world *world)
{
	for (size_t i = 0; i < WRITES_MAX; i++) {
		if (world->writes[i])
			return false;
	}
	for (size_t i = 0; i < READS_MAX; i++) {
		if (world->reads[i])
			return false;
	}
	return true;
}

/* ---- Reads that are waited for --------------------------------------------------------------- */

static void on_waited(struct store_read *read, int err)
{
	struct direct_read *r = read->owner;
	r->err = err;
	r->done = true;
}

/* Until there is no more. */
static bool wait_read(struct direct_read *r, const char *what)
{
	r->read->done = on_waited;
	r->done = false;
	int err = store_read_submit(r->read);
	if (!err && !pump_until(r->world, &r->done, what))
		return false;
	err = err ? err : r->err;
	if (err && r->world->dead)
		return false; /* nothing can be read any more; the next step sees it */
	return err ? violate(r->world, "%s fails: %s", what, err_text(err)) : true;
}

static bool must_exist(const struct world *world, unsigned series)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *row = &world->rows[i];
		bool must;
		for (size_t k = 0; row->series == series && k < row->count; k++) {
			const struct reg *reg = &row->regs[k];
			if (!reg->vague && register_state(reg, register_known(reg, world->tick)) &&
			    in_sight(world, row, reg->ts_ms, now_ms(), &must) && must)
				return true;
		}
	}
	return false;
}

static struct store_request *add_open(struct direct_read *r, unsigned series, bool find_only)
{
	struct store_request *q = store_read_add(r->read, STORE_SERIES_OPEN);
	struct slice *metric = arena_alloc(&r->read->arena, sizeof(*metric));
	ASSERT(q && metric);
	const struct series_name *name = &r->world->names[series];
	*metric = slice_of(name->metric);
	q->series_open = (struct store_series_open){.tenant = slice_of(name->tenant),
						    .metrics = metric,
						    .count = 1,
						    .find_only = find_only};
	ASSERT(tags_decode(slice_of(name->tags), &r->read->arena, &q->series_open.tags) == 0);
	return q;
}

static bool find_series(struct world *world)
{
	struct direct_read *r = new_read(world);
	for (unsigned s = 0; s < SERIES; s++)
		(void)add_open(r, s, true);
	bool good = wait_read(r, "finding the series");
	struct store_request *q = r->read->requests;
	for (unsigned s = 0; good && s < SERIES; s++, q = q->next) {
		world->handles[s] = q->series_open.handles[0];
		if (!world->handles[s] && must_exist(world, s))
			good = violate(world, "series %u (%s,%s) is gone", s,
				       world->names[s].metric, world->names[s].tags);
	}
	free_read(r);
	return good;
}

/* The metrics of one host, in one call, as they lie together. */
static bool open_host(struct world *world, const struct group *group, size_t first, size_t count)
{
	struct direct_read *r = new_read(world);
	struct store_request *q = add_open(r, (unsigned)first, false);
	struct slice *metrics = arena_alloc(&r->read->arena, count * sizeof(*metrics));
	ASSERT(metrics);
	for (size_t i = 0; i < count; i++)
		metrics[i] = slice_of(group->metrics[i]);
	q->series_open.metrics = metrics;
	q->series_open.count = count;
	r->read->done = on_waited;
	int err = store_read_submit(r->read);
	bool good = !err && pump_until(world, &r->done, "opening series");
	if (good && !r->err)
		memcpy(&world->handles[first], q->series_open.handles, count * sizeof(uint64_t));
	if (good && r->err && r->err != ERR_FULL)
		good = violate(world, "series cannot be opened: %s", err_text(r->err));
	free_read(r);
	return good;
}

bool direct_open_series(struct world *world)
{
	static const size_t per_host[GROUPS] = {1, 3, 10, 1};
	if (!find_series(world))
		return false;
	for (size_t g = 0; g < GROUPS; g++) {
		const struct group *group = &world->groups[g];
		for (size_t i = 0; i < group->count; i += per_host[g]) {
			if (!open_host(world, group, group->first + i, per_host[g]))
				return false;
		}
	}
	return true;
}

/* ---- Everything ------------------------------------------------------------------------------ */

/* After a crash: what is there is what there is from now on. */
static bool resolve_row(struct direct_read *r, size_t i, struct cut *cut)
{
	struct row *row = r->rows[i];
	const struct got *got = &r->got[i];
	size_t g = 0;
	for (size_t k = 0; k < row->count; k++) {
		struct reg *reg = &row->regs[k];
		bool must, found = g < got->count && got->ts_ms[g] == reg->ts_ms;
		uint32_t id = found ? id_of(r->world, row, reg, got->values + g * got->fields) : 0;
		bool shown = in_sight(r->world, row, reg->ts_ms, r->at_ms, &must);
		reg->vague = reg->vague || !shown || !must;
		if (!register_resolve(reg, id, r->world->was_full, cut))
			return violate(r->world, "%s: found %u, which may not be there:%s",
				       describe(r->world, row, reg->ts_ms), id, history(reg));
		g += found;
	}
	if (g < got->count)
		return violate(r->world, "%s was never sent",
			       describe(r->world, row, got->ts_ms[g]));
	return true;
}

static bool read_rows(struct world *world, enum table table, bool doors, bool resolve,
		      struct cut *cut)
{
	struct direct_read *r = new_read(world);
	size_t first = doors ? 0 : table == TABLE_BASE_RATES ? DIRECT_SERIES : 0;
	size_t count = doors ? DOORS * DOOR_SERIES : DIRECT_SERIES;
	for (size_t i = 0; i < count; i++) {
		struct row *row = doors ? door_row(world, i) : &world->rows[first + i];
		if (world->handles[row->series])
			add_row(r, row);
	}
	r->start_ms = INT64_MIN;
	r->end_ms = INT64_MAX;
	bool good = true;
	if (r->count) {
		r->request = store_read_add(r->read, STORE_RANGE);
		ASSERT(r->request);
		ask_range(r);
		r->backward = r->request->range.backward = false;
		r->read->points_max = 0;
		good = wait_read(r, "reading everything");
		if (good && r->request->more)
			good = violate(world, "the run has outgrown a read");
	}
	if (good && r->count) {
		gather(r);
		/* Doors send what they like when they like: no order among their batches. */
		struct cut none = {0, UINT32_MAX};
		for (size_t i = 0; resolve && good && i < r->count; i++)
			good = resolve_row(r, i, doors ? &none : cut);
		if (!resolve)
			good = check_range(r);
	}
	free_read(r);
	return good;
}

static bool read_cells(struct world *world, bool resolve, struct cut *cut)
{
	struct direct_read *r = new_read(world);
	add_cells(r, true);
	bool good = wait_read(r, "reading all cells") && check_cells(r, resolve, cut);
	free_read(r);
	return good;
}

bool direct_read_all(struct world *world, bool resolve)
{
	struct cut cut = {0, UINT32_MAX};
	if (disk_dead() || world->dead)
		return true;
	disk_die_at(DISK_KILL, 0); /* not while it is waited for */
	bool good = read_rows(world, TABLE_DATA_RAW, false, resolve, &cut) &&
		    read_rows(world, TABLE_BASE_RATES, false, resolve, &cut) &&
		    read_cells(world, resolve, &cut) &&
		    read_rows(world, TABLE_DATA_RAW, true, resolve, &cut);
	if (good && cut.least > cut.most && !world->was_full)
		return violate(world, "batch %u is there, but of batch %u not all", cut.least,
			       cut.most + 1);
	if (resolve) {
		world->held_stamp_us = 0;
		world->stamp_most_us = world->stamp_stored_us;
	}
	return good;
}

bool direct_verify(struct world *world)
{
	struct direct_read *r = new_read(world);
	struct store_request *q = store_read_add(r->read, STORE_VERIFY);
	ASSERT(q);
	bool good = wait_read(r, "verify");
	while (good && q->more)
		good = wait_read(r, "verify");
	if (good && q->verify.problems)
		good = violate(world, "verify: %s",
			       q->verify.sentence_count ? q->verify.sentences[0] : "problems");
	free_read(r);
	return good;
}
