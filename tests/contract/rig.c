#include "contract.h"

enum { MEMORY_MAX_BYTES = 64 << 20, KEEP_MAX_BYTES = 1 << 30 };

void rig_open(struct rig *rig, const struct contract_engine *engine)
{
	*rig = (struct rig){.engine = engine};
	clock_virtual_init(&rig->clock, T0 * 1000);
	task_queue_init(&rig->queue);
	arena_init(&rig->keep, KEEP_MAX_BYTES);
	rig->store = engine->open(engine->context, &rig->clock.clock);
	assert_non_null(rig->store);
}

void rig_close(struct rig *rig)
{
	rig->engine->close(rig->engine->context, rig->store);
	arena_release(&rig->keep);
	task_queue_release(&rig->queue);
}

void rig_reopen(struct rig *rig)
{
	rig->store = rig->engine->reopen(rig->engine->context, rig->store, &rig->clock.clock);
	assert_non_null(rig->store);
}

void rig_settle(struct rig *rig)
{
	rig->engine->settle(rig->engine->context, rig->store);
}

int64_t rig_now_ms(struct rig *rig)
{
	return clock_wall_ms(&rig->clock.clock);
}

void rig_advance_ms(struct rig *rig, int64_t by_ms)
{
	clock_virtual_advance(&rig->clock, by_ms * 1000);
}

/* ---- Batches ------------------------------------------------------------------------------- */

static void write_done(struct store_write *write, int err)
{
	*(int *)write->owner = err;
}

static void read_done(struct store_read *read, int err)
{
	*(int *)read->owner = err;
}

/* No error of ours or the system's. */
enum { PENDING = 1 };

struct store_write *rig_write_new(struct rig *rig)
{
	struct store_write *write = store_write_new(rig->store, MEMORY_MAX_BYTES);
	write->executor = &rig->queue.executor;
	write->done = write_done;
	return write;
}

int rig_write(struct rig *rig, struct store_write *write)
{
	int result = PENDING;
	write->owner = &result;
	int err = store_write_submit(write);
	if (err)
		return err;
	while (result == PENDING)
		task_queue_wait(&rig->queue);
	return result;
}

void rig_commit(struct rig *rig, struct store_write *write)
{
	int err = rig_write(rig, write);
	if (err)
		fail_msg("the batch failed: %s (%s)", err_text(err), write->error.text);
	store_write_free(write);
}

struct store_read *rig_read_new(struct rig *rig)
{
	struct store_read *read = store_read_new(rig->store, MEMORY_MAX_BYTES);
	read->executor = &rig->queue.executor;
	read->done = read_done;
	read->now_ms = rig_now_ms(rig);
	return read;
}

int rig_read(struct rig *rig, struct store_read *read)
{
	int result = PENDING;
	read->owner = &result;
	int err = store_read_submit(read);
	if (err)
		return err;
	while (result == PENDING)
		task_queue_wait(&rig->queue);
	return result;
}

static struct store_request *add_request(struct store_read *read, enum store_op op)
{
	struct store_request *request = store_read_add(read, op);
	assert_non_null(request);
	return request;
}

/* Runs the only request of `read` once. */
static void run_slice(struct rig *rig, struct store_read *read, struct store_request *request)
{
	int err = rig_read(rig, read);
	if (err || request->err)
		fail_msg("the read failed: %s, %s", err_text(err), err_text(request->err));
}

/* What the last request that was added again points to. */
static struct arena before;

/* Makes the request ready for its next slice: by a reset and the token alone, every second time. */
static struct store_request *next_slice(struct store_read *read, struct store_request *request,
					size_t slice)
{
	if (slice % 2)
		return request;
	struct store_request copy = *request;
	arena_release(&before);
	before = read->arena;
	arena_init(&read->arena, before.max_bytes);
	store_read_reset(read);
	request = add_request(read, copy.op);
	struct store_request fresh = *request;
	*request = copy;
	if (copy.op == STORE_STATS) {
		request->stats = fresh.stats;
		*request->stats = *copy.stats;
	}
	request->next = fresh.next;
	request->ran = request->resumed = request->more = request->owned = false;
	return request;
}

/* ---- Series -------------------------------------------------------------------------------- */

void rig_group(struct rig *rig, const char *tenant, const char *const *metrics, size_t count,
	       const char *tags, bool find_only, uint64_t *handles, size_t *created)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_SERIES_OPEN);
	struct slice names[STORE_GROUP_MAX];
	for (size_t i = 0; i < count; i++)
		names[i] = slice_of(metrics[i]);
	request->series_open.tenant = slice_of(tenant);
	assert_int_equal(tags_decode(slice_of(tags), &read->arena, &request->series_open.tags), 0);
	request->series_open.metrics = names;
	request->series_open.count = count;
	request->series_open.find_only = find_only;
	run_slice(rig, read, request);
	assert_false(request->more);
	memcpy(handles, request->series_open.handles, count * sizeof(*handles));
	if (created)
		*created = request->series_open.created;
	store_read_free(read);
}

uint64_t rig_series(struct rig *rig, const char *metric, const char *tags)
{
	uint64_t handle;
	rig_group(rig, "t", &metric, 1, tags, false, &handle, NULL);
	assert_int_not_equal(handle, 0);
	return handle;
}

uint64_t rig_find(struct rig *rig, const char *tenant, const char *metric, const char *tags)
{
	uint64_t handle;
	rig_group(rig, tenant, &metric, 1, tags, true, &handle, NULL);
	return handle;
}

/* ---- Samples ------------------------------------------------------------------------------- */

void rig_put_fields(struct rig *rig, struct store_target place, uint64_t handle, int64_t ts_ms,
		    const struct value *values)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_append(write, &place, ts_ms, &handle, 1, values), 0);
	rig_commit(rig, write);
}

void rig_put(struct rig *rig, struct store_target place, uint64_t handle, int64_t ts_ms,
	     struct value value)
{
	struct value values[TABLE_FIELDS_MAX] = {value};
	rig_put_fields(rig, place, handle, ts_ms, values);
}

void rig_put_all(struct rig *rig, struct store_target place, uint64_t handle, struct points points)
{
	struct store_write *write = rig_write_new(rig);
	for (size_t i = 0; i < points.count; i++)
		assert_int_equal(store_append(write, &place, points.list[i].ts_ms, &handle, 1,
					      points.list[i].values),
				 0);
	rig_commit(rig, write);
}

void rig_delete(struct rig *rig, struct store_target place, uint64_t handle, int64_t start_ms,
		int64_t end_ms)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_delete_range(write, &place, &handle, 1, start_ms, end_ms), 0);
	rig_commit(rig, write);
}

void rig_rekey(struct rig *rig, struct store_target place, enum store_rekey_step step,
	       const uint64_t *handles, size_t n, int64_t start_ms, int64_t end_ms)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(
		store_rekey(write, &(struct store_rekeying){place, step, handles, n, start_ms,
							    end_ms, rig_now_ms(rig)}),
		0);
	rig_commit(rig, write);
}

/* What an array of `count` in rig->keep has room for. */
static size_t room_of(size_t count)
{
	size_t room = 16;
	while (room < count)
		room *= 2;
	return room;
}

/* The array with room for `add` more; it moves only when it must. */
static void *grow(struct rig *rig, void *old, size_t old_count, size_t add, size_t size_bytes)
{
	if (old && old_count + add <= room_of(old_count))
		return old;
	char *grown = arena_zalloc(&rig->keep, room_of(old_count + add) * size_bytes);
	assert_non_null(grown);
	if (old_count)
		memcpy(grown, old, old_count * size_bytes);
	return grown;
}

static void take_point(struct point *to, const struct store_points *from, size_t i, size_t fields)
{
	to->ts_ms = from->ts_ms[i];
	for (size_t f = 0; f < fields; f++) {
		if (!from->bits[f])
			continue;
		to->values[f].type = from->types[f][i];
		to->values[f].bits = from->bits[f][i];
		if (to->values[f].type == VALUE_NONE)
			to->values[f].bits = 0;
	}
}

static void take_points(struct rig *rig, struct points *to, const struct store_points *from,
			enum table table)
{
	if (from->count == 0)
		return;
	to->list = grow(rig, to->list, to->count, from->count, sizeof(*to->list));
	for (size_t i = 0; i < from->count; i++)
		take_point(&to->list[to->count++], from, i, schema[table].field_count);
}

static size_t take_slice(struct rig *rig, struct points *to, const struct store_points *from,
			 size_t handle_count, enum table table)
{
	size_t given = 0;
	for (size_t h = 0; h < handle_count; h++) {
		take_points(rig, &to[h], &from[h], table);
		given += from[h].count;
	}
	return given;
}

int rig_range_at(struct rig *rig, const struct store_range *range, size_t points_max,
		 int64_t now_ms, struct points *points)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_RANGE);
	int err = 0;
	read->points_max = points_max;
	read->now_ms = now_ms;
	request->range = *range;
	for (size_t h = 0; h < range->handle_count; h++)
		points[h] = NO_POINTS;
	for (size_t slice = 0;; slice++) {
		err = rig_read(rig, read);
		if (err)
			break;
		size_t given = take_slice(rig, points, request->range.points, range->handle_count,
					  range->table);
		if (points_max)
			assert_true(given <= points_max);
		if (!request->more)
			break;
		assert_true(slice < 1000000);
		request = next_slice(read, request, slice);
	}
	store_read_free(read);
	return err;
}

int rig_range(struct rig *rig, const struct store_range *range, size_t points_max,
	      struct points *points)
{
	return rig_range_at(rig, range, points_max, rig_now_ms(rig), points);
}

void assert_value(struct value actual, struct value expected)
{
	if (expected.type == VALUE_NONE)
		expected.bits = 0;
	if (!value_identical(actual, expected))
		fail_msg("value %016llx of type %d, expected %016llx of type %d",
			 (unsigned long long)actual.bits, (int)actual.type,
			 (unsigned long long)expected.bits, (int)expected.type);
}

void assert_points(struct points actual, struct points expected, size_t fields)
{
	for (size_t i = 0; i < actual.count && i < expected.count; i++) {
		if (actual.list[i].ts_ms != expected.list[i].ts_ms)
			fail_msg("point %zu is at %lld, expected at %lld", i,
				 (long long)actual.list[i].ts_ms,
				 (long long)expected.list[i].ts_ms);
		for (size_t f = 0; f < fields; f++)
			assert_value(actual.list[i].values[f], expected.list[i].values[f]);
	}
	assert_int_equal(actual.count, expected.count);
}

static struct points reversed(struct rig *rig, struct points points)
{
	struct points turned = {grow(rig, NULL, 0, points.count, sizeof(struct point)),
				points.count};
	for (size_t i = 0; i < points.count; i++)
		turned.list[i] = points.list[points.count - 1 - i];
	return turned;
}

static void expect_way(struct rig *rig, const struct store_range *range, struct points expected)
{
	static const size_t slices[] = {0, 1, 2, 3, 7};
	struct arena keep = rig->keep;
	arena_init(&rig->keep, KEEP_MAX_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(slices); i++) {
		struct points actual;
		/* Point by point takes long where there are many. */
		if (slices[i] && expected.count > slices[i] * 300)
			continue;
		assert_int_equal(rig_range(rig, range, slices[i], &actual), 0);
		assert_points(actual, expected, schema[range->table].field_count);
	}
	arena_release(&rig->keep);
	rig->keep = keep;
}

void expect_points(struct rig *rig, struct store_target place, uint64_t handle, int64_t start_ms,
		   int64_t end_ms, struct points expected)
{
	struct store_range range = {
		.table = place.table,
		.period_ms = place.period_ms,
		.handles = &handle,
		.handle_count = 1,
		.start_ms = start_ms,
		.end_ms = end_ms,
	};
	struct points backward = reversed(rig, expected);
	expect_way(rig, &range, expected);
	for (range.limit = 1; range.limit <= expected.count + 1; range.limit++) {
		size_t count = expected.count < range.limit ? expected.count : range.limit;
		range.backward = false;
		expect_way(rig, &range, (struct points){expected.list, count});
		range.backward = true;
		expect_way(rig, &range, (struct points){backward.list, count});
		if (range.limit == 4 && expected.count > 6)
			range.limit = expected.count - 2;
	}
	range.limit = 0;
	range.backward = true;
	expect_way(rig, &range, backward);
}

void expect_all(struct rig *rig, struct store_target place, uint64_t handle, struct points expected)
{
	expect_points(rig, place, handle, INT64_MIN, INT64_MAX, expected);
}

bool rig_last_before(struct rig *rig, struct store_target place, uint64_t handle, int64_t before_ms,
		     int64_t look_back_ms, struct point *point)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_LAST_BEFORE);
	request->last_before = (struct store_last_before){
		.table = place.table,
		.period_ms = place.period_ms,
		.handles = &handle,
		.handle_count = 1,
		.before_ms = before_ms,
		.look_back_ms = look_back_ms,
	};
	run_slice(rig, read, request);
	const struct store_points *points = request->last_before.points;
	assert_true(points->count <= 1 && !request->more);
	*point = (struct point){0};
	bool found = points->count == 1;
	if (found)
		take_point(point, points, 0, schema[place.table].field_count);
	store_read_free(read);
	return found;
}

struct store_summary *rig_aggregate(struct rig *rig, const struct store_aggregate *aggregate,
				    size_t points_max, size_t *window_count)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_AGGREGATE);
	struct store_summary *all = NULL;
	size_t next = 0;
	read->points_max = points_max;
	request->aggregate = *aggregate;
	for (size_t slice = 0;; slice++) {
		run_slice(rig, read, request);
		const struct store_aggregate *result = &request->aggregate;
		size_t windows = *window_count = result->window_count;
		if (!all)
			all = grow(rig, NULL, 0, windows * aggregate->handle_count + 1,
				   sizeof(*all));
		assert_true(result->next_handle > next || !request->more);
		for (; next < result->next_handle; next++)
			store_windows_spread(&result->windows[next], windows, all + next * windows);
		if (!request->more)
			break;
		request = next_slice(read, request, slice);
	}
	assert_int_equal(next, aggregate->handle_count);
	store_read_free(read);
	return all;
}

struct store_share *rig_shares(struct rig *rig, struct store_target place, const uint64_t *handles,
			       size_t count, size_t points_max)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_SHARES);
	struct store_share *all = grow(rig, NULL, 0, count * RETENTION_CLASSES + 1, sizeof(*all));
	size_t next = 0;
	read->points_max = points_max;
	request->shares = (struct store_shares){.table = place.table,
						.period_ms = place.period_ms,
						.handles = handles,
						.handle_count = count};
	for (size_t slice = 0;; slice++) {
		run_slice(rig, read, request);
		const struct store_shares *result = &request->shares;
		assert_true(result->next_handle > next || !request->more);
		memcpy(all + next * RETENTION_CLASSES, result->list + next * RETENTION_CLASSES,
		       (result->next_handle - next) * RETENTION_CLASSES * sizeof(*all));
		next = result->next_handle;
		if (!request->more)
			break;
		request = next_slice(read, request, slice);
	}
	assert_int_equal(next, count);
	store_read_free(read);
	return all;
}

/* ---- Cells --------------------------------------------------------------------------------- */

void rig_cell_put(struct rig *rig, enum table table, const struct store_parts *key,
		  const struct store_parts *column, struct slice value, int64_t stamp_us,
		  int64_t expires_ms)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_cell_put(write, table, key, column, value, stamp_us, expires_ms), 0);
	rig_commit(rig, write);
}

void rig_log_put(struct rig *rig, enum table table, const struct store_parts *key,
		 const struct store_parts *column, struct slice value)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_log_put(write, table, key, column, value), 0);
	rig_commit(rig, write);
}

void rig_log_remove(struct rig *rig, enum table table, const struct store_parts *key,
		    const struct store_parts *from, const struct store_parts *to)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_log_remove(write, table, key, from, to), 0);
	rig_commit(rig, write);
}

void rig_cell_delete(struct rig *rig, enum table table, const struct store_parts *key,
		     const struct store_parts *column, int64_t stamp_us)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_cell_delete(write, table, key, column, stamp_us), 0);
	rig_commit(rig, write);
}

void rig_row_delete(struct rig *rig, enum table table, const struct store_parts *key,
		    int64_t stamp_us)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_row_delete(write, table, key, stamp_us), 0);
	rig_commit(rig, write);
}

void rig_set_add(struct rig *rig, enum table table, const struct store_parts *key,
		 const struct store_parts *column, const char *element)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_set_add(write, table, key, column, slice_of(element)), 0);
	rig_commit(rig, write);
}

static struct store_write_cond finish_conditional(struct rig *rig, struct store_write *write,
						  struct store_write_cond **outcome)
{
	assert_int_equal(rig_write(rig, write), 0);
	struct store_write_cond copy = **outcome;
	if (copy.value.data)
		copy.value = arena_copy(&rig->keep, copy.value);
	store_write_free(write);
	return copy;
}

struct store_write_cond rig_put_if(struct rig *rig, const struct store_parts *key,
				   const struct store_parts *column, uint64_t version,
				   const char *value, int64_t expires_ms)
{
	struct store_write *write = rig_write_new(rig);
	struct store_write_cond *outcome;
	assert_int_equal(store_cell_put_if(write, TABLE_LEASES, key, column, version,
					   slice_of(value), expires_ms, &outcome),
			 0);
	return finish_conditional(rig, write, &outcome);
}

struct store_write_cond rig_delete_if(struct rig *rig, const struct store_parts *key,
				      const struct store_parts *column, uint64_t version)
{
	struct store_write *write = rig_write_new(rig);
	struct store_write_cond *outcome;
	assert_int_equal(store_cell_delete_if(write, TABLE_LEASES, key, column, version, &outcome),
			 0);
	return finish_conditional(rig, write, &outcome);
}

static void keep_parts(struct rig *rig, struct store_parts *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		parts->part[i] = arena_copy(&rig->keep, parts->part[i]);
}

static struct store_cell keep_cell(struct rig *rig, enum table table, struct store_cell cell)
{
	keep_parts(rig, &cell.column, schema[table].column_count);
	cell.value = arena_copy(&rig->keep, cell.value);
	return cell;
}

bool rig_cell_get(struct rig *rig, enum table table, const struct store_parts *key,
		  const struct store_parts *column, struct store_cell *cell)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_CELL_GET);
	request->cell_get.table = table;
	request->cell_get.key = *key;
	request->cell_get.column = *column;
	run_slice(rig, read, request);
	bool found = request->cell_get.found;
	if (found)
		*cell = keep_cell(rig, table, request->cell_get.cell);
	store_read_free(read);
	return found;
}

struct cells rig_scan(struct rig *rig, const struct store_cell_scan *scan, size_t points_max)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_CELL_SCAN);
	struct cells cells = {0};
	read->points_max = points_max;
	request->cell_scan = *scan;
	for (size_t slice = 0;; slice++) {
		run_slice(rig, read, request);
		const struct store_cell_scan *result = &request->cell_scan;
		if (points_max)
			assert_true(result->count <= points_max);
		cells.list =
			grow(rig, cells.list, cells.count, result->count + 1, sizeof(*cells.list));
		for (size_t i = 0; i < result->count; i++)
			cells.list[cells.count++] = keep_cell(rig, scan->table, result->cells[i]);
		if (!request->more)
			break;
		request = next_slice(read, request, slice);
	}
	store_read_free(read);
	return cells;
}

void assert_slice(struct slice actual, struct slice expected)
{
	assert_int_equal(actual.len, expected.len);
	if (expected.len)
		assert_memory_equal(actual.data, expected.data, expected.len);
}

/* ---- Registry and rows --------------------------------------------------------------------- */

struct rows rig_enumerate(struct rig *rig, enum table table, size_t limit, size_t points_max)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_ENUMERATE);
	struct rows rows = {0};
	read->points_max = points_max;
	request->enumerate.table = table;
	request->enumerate.limit = limit;
	for (size_t slice = 0;; slice++) {
		run_slice(rig, read, request);
		const struct store_enumerate *result = &request->enumerate;
		assert_true(!limit || result->count <= limit);
		assert_true(!points_max || result->count <= points_max);
		rows.list = grow(rig, rows.list, rows.count, result->count + 1, sizeof(*rows.list));
		for (size_t i = 0; i < result->count; i++) {
			struct store_row *row = &rows.list[rows.count++];
			*row = result->rows[i];
			if (schema[table].kind == TABLE_CELLS)
				keep_parts(rig, &row->key, schema[table].key_count);
		}
		if (!request->more)
			break;
		assert_true(slice < 1000000);
		request = next_slice(read, request, slice);
	}
	store_read_free(read);
	return rows;
}

/* What a slice gives comes to `all`, with copies of its names. */
static void keep_series(struct rig *rig, struct series_list *all, const struct store_series *given,
			size_t count)
{
	all->list = grow(rig, all->list, all->count, count + 1, sizeof(*all->list));
	for (size_t i = 0; i < count; i++) {
		struct store_series *series = &all->list[all->count++];
		*series = given[i];
		series->tenant = arena_copy(&rig->keep, series->tenant);
		series->metric = arena_copy(&rig->keep, series->metric);
		series->tags_text = arena_copy(&rig->keep, series->tags_text);
	}
}

struct series_list rig_list(struct rig *rig, const char *tenant, const char *metric, size_t limit,
			    size_t points_max)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_SERIES_LIST);
	struct series_list all = {0};
	read->points_max = points_max;
	request->series_list.tenant = slice_of(tenant);
	request->series_list.metric = slice_of(metric);
	request->series_list.limit = limit;
	for (size_t slice = 0;; slice++) {
		run_slice(rig, read, request);
		const struct store_series_list *result = &request->series_list;
		assert_true(!limit || result->count <= limit);
		assert_true(!points_max || result->count <= points_max);
		keep_series(rig, &all, result->series, result->count);
		if (!request->more)
			break;
		assert_true(slice < 1000000);
		request = next_slice(read, request, slice);
	}
	store_read_free(read);
	return all;
}

struct series_list rig_news(struct rig *rig, const char *tenant, const char *metric,
			    uint64_t *since, size_t limit, size_t points_max)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_SERIES_NEWS);
	struct series_list all = {0};
	read->points_max = points_max;
	request->series_news = (struct store_series_news){.tenant = slice_of(tenant),
							  .metric = slice_of(metric),
							  .since = *since,
							  .limit = limit};
	for (size_t slice = 0;; slice++) {
		run_slice(rig, read, request);
		const struct store_series_news *result = &request->series_news;
		assert_true(!limit || result->count <= limit);
		assert_true(!points_max || result->count <= points_max);
		keep_series(rig, &all, result->series, result->count);
		if (!request->more)
			break;
		assert_true(slice < 1000000);
		request = next_slice(read, request, slice);
	}
	*since = request->series_news.next_since;
	assert_int_not_equal(*since, 0);
	store_read_free(read);
	return all;
}

struct store_stats rig_stats(struct rig *rig)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_STATS);
	run_slice(rig, read, request);
	for (size_t slice = 0; request->more; slice++) {
		request = next_slice(read, request, slice);
		run_slice(rig, read, request);
	}
	struct store_stats stats = *request->stats;
	store_read_free(read);
	return stats;
}

void rig_expect_samples(struct rig *rig, enum table table, uint64_t samples)
{
	if (rig->store->engine->can & STORE_COUNTS)
		assert_int_equal(rig_stats(rig).tables[table].samples, samples);
}

void rig_expect_rows(struct rig *rig, enum table table, uint64_t rows)
{
	if (rig->store->engine->can & STORE_COUNTS)
		assert_int_equal(rig_stats(rig).tables[table].rows, rows);
}

uint64_t rig_verify(struct rig *rig)
{
	if (!(rig->store->engine->can & STORE_VERIFIES))
		return 1;
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = add_request(read, STORE_VERIFY);
	for (size_t slice = 0;; slice++) {
		run_slice(rig, read, request);
		if (request->verify.sentence_count)
			fail_msg("verify: %s", request->verify.sentences[0]);
		if (!request->more)
			break;
		request = next_slice(read, request, slice);
	}
	assert_int_equal(request->verify.problems, 0);
	uint64_t checked = request->verify.checked;
	store_read_free(read);
	return checked;
}

/* ---- Running ------------------------------------------------------------------------------- */

struct run {
	const struct contract_case *test;
	const struct contract_engine *engine;
};

static void run_case(void **state)
{
	const struct run *run = *state;
	struct rig rig;
	rig_open(&rig, run->engine);
	run->test->run(&rig);
	rig_close(&rig);
}

static bool chosen(const char *name, int argc, char **argv)
{
	bool any = argc < 2;
	for (int i = 1; i < argc; i++)
		any |= strstr(name, argv[i]) != NULL;
	return any;
}

/* What a store of the engine offers. */
static unsigned offers(const struct contract_engine *engine)
{
	struct rig rig;
	rig_open(&rig, engine);
	unsigned can = rig.store->engine->can;
	rig_close(&rig);
	ASSERT(!(can & STORE_SURVIVES_KILL) == !engine->kill_in);
	return can;
}

enum { CASES_MAX = 256 };

static const struct {
	enum store_capability capability;
	const char *name;
} capabilities[] = {
	{STORE_ATOMIC_STAGES, "atomic stages"},
	{STORE_SNAPSHOTS, "snapshots"},
	{STORE_SAMPLE_STAMPS, "sample stamps"},
	{STORE_SURVIVES_KILL, "survives a kill"},
	{STORE_SERIAL_WRITES, "serial writes"},
	{STORE_SHARED, "shared"},
	{STORE_EXACT_FORGETTING, "exact forgetting"},
	{STORE_EXACT_SETS, "exact sets"},
	{STORE_COUNTS, "counts"},
	{STORE_VERIFIES, "verify"},
	{STORE_HAS_SHARES, "shares"},
	{STORE_REKEYS, "re-keying"},
	{STORE_NEWS, "news"},
	{STORE_BACKS_UP, "backups"},
};

/* All of them, in their order. */
static size_t list_cases(const struct contract_case *cases[CASES_MAX])
{
	static const struct contract_case *const suites[] = {
		cases_ranges, cases_values,      cases_retention, cases_aggregate, cases_cells,
		cases_rows,   cases_conditional, cases_log,       cases_series,    cases_batches,
	};
	size_t count = 0;
	for (size_t s = 0; s < ARRAY_LEN(suites); s++) {
		for (const struct contract_case *c = suites[s]; c->name; c++) {
			ASSERT(count < CASES_MAX);
			cases[count++] = c;
		}
	}
	return count;
}

/* Which cases the engine is excused from, by what it lacks; a case may stand there twice. */
static int print_needs(const struct contract_engine *engine)
{
	const struct contract_case *cases[CASES_MAX];
	size_t count = list_cases(cases), excused = 0;
	unsigned can = offers(engine);
	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++) {
		unsigned capability = capabilities[i].capability;
		size_t needed = 0;
		for (size_t c = 0; c < count; c++)
			needed += (cases[c]->needs & capability) != 0;
		printf("%s, %s: %s, cases that need it: %zu\n", engine->name, capabilities[i].name,
		       can & capability ? "yes" : "no", needed);
		for (size_t c = 0; c < count && !(can & capability); c++) {
			if (cases[c]->needs & capability)
				printf("    %s\n", cases[c]->name);
		}
	}
	for (size_t c = 0; c < count; c++)
		excused += (cases[c]->needs & ~can) != 0;
	printf("%s: %zu of %zu cases are excused\n", engine->name, excused, count);
	return 0;
}

static void print_excuse(const struct contract_case *c, unsigned lacks)
{
	const char *separator = ": excused, the engine lacks ";
	printf("%s", c->name);
	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++) {
		if (!(c->needs & lacks & (unsigned)capabilities[i].capability))
			continue;
		printf("%s%s", separator, capabilities[i].name);
		separator = ", ";
	}
	printf("\n");
}

int contract_run(const struct contract_engine *engine, int argc, char **argv)
{
	static struct CMUnitTest tests[CASES_MAX];
	static struct run runs[CASES_MAX];
	const struct contract_case *cases[CASES_MAX];
	if (argc == 2 && strcmp(argv[1], "--needs") == 0)
		return print_needs(engine);
	size_t count = 0, all = list_cases(cases);
	unsigned can = offers(engine);
	for (size_t i = 0; i < all; i++) {
		const struct contract_case *c = cases[i];
		if (!chosen(c->name, argc, argv))
			continue;
		if (c->needs & ~can) {
			print_excuse(c, ~can);
			continue;
		}
		runs[count] = (struct run){c, engine};
		tests[count] = (struct CMUnitTest){
			.name = c->name, .test_func = run_case, .initial_state = &runs[count]};
		count++;
	}
	return _cmocka_run_group_tests(engine->name, tests, count, NULL, NULL);
}
