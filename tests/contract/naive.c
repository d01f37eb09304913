#include "naive_private.h"

static const char *const bug_names[NAIVE_BUG_COUNT] = {
	[NAIVE_BUG_NONE] = "none",
	[NAIVE_BUG_RANGE_END] = "range_end",
	[NAIVE_BUG_RANGE_START] = "range_start",
	[NAIVE_BUG_LOST_OVERWRITE] = "lost_overwrite",
	[NAIVE_BUG_WHOLE_OVERWRITE] = "whole_overwrite",
	[NAIVE_BUG_LIMIT_PER_SLICE] = "limit_per_slice",
	[NAIVE_BUG_TOKEN_REPEATS] = "token_repeats",
	[NAIVE_BUG_DELETE_END] = "delete_end",
	[NAIVE_BUG_EXPIRY_EDGE] = "expiry_edge",
	[NAIVE_BUG_WALL_FOR_NOW] = "wall_for_now",
	[NAIVE_BUG_NAN_IS_MIN] = "nan_is_min",
	[NAIVE_BUG_SUM_ROUNDS] = "sum_rounds",
	[NAIVE_BUG_COMPARE_ROUNDS] = "compare_rounds",
	[NAIVE_BUG_EQUAL_STAMP_LATE] = "equal_stamp_late",
	[NAIVE_BUG_DELETE_FORGETS] = "delete_forgets",
	[NAIVE_BUG_ROW_SPARES_EQUAL] = "row_spares_equal",
	[NAIVE_BUG_ROW_FORGETS] = "row_forgets",
	[NAIVE_BUG_VERSION_REUSED] = "version_reused",
	[NAIVE_BUG_EXPIRED_LEASE] = "expired_lease",
	[NAIVE_BUG_SCAN_TO] = "scan_to",
	[NAIVE_BUG_SET_UNORDERED] = "set_unordered",
	[NAIVE_BUG_NAN_PAYLOAD] = "nan_payload",
	[NAIVE_BUG_LOOK_BACK_EDGE] = "look_back_edge",
	[NAIVE_BUG_FORGET_ALL] = "forget_all",
	[NAIVE_BUG_LOG_REMOVE_TO] = "log_remove_to",
	[NAIVE_BUG_LOG_PUT_ONCE] = "log_put_once",
	[NAIVE_BUG_REOPEN_LOSES] = "reopen_loses",
};

const char *naive_bug_name(enum naive_bug bug)
{
	return bug_names[bug];
}

struct slice naive_copy(struct slice bytes)
{
	return (struct slice){mem_copy_text(bytes), bytes.len};
}

static void free_slice(struct slice bytes)
{
	mem_free((void *)(uintptr_t)bytes.data);
}

/* Makes room for one object at `index` of an array of `count`. */
static void *insert_at(void *array, size_t count, size_t index, size_t size_bytes)
{
	char *grown = mem_resize_array(array, count + 1, size_bytes);
	memmove(grown + (index + 1) * size_bytes, grown + index * size_bytes,
		(count - index) * size_bytes);
	memset(grown + index * size_bytes, 0, size_bytes);
	return grown;
}

/* ---- Series -------------------------------------------------------------------------------- */

/* The epoch makes handles of an earlier opening unknown. */
uint64_t naive_handle(const struct naive *naive, size_t index)
{
	return naive->epoch << 32 | (index + 1);
}

struct naive_series *naive_series_of(struct naive *naive, uint64_t handle)
{
	size_t index = (size_t)(handle & UINT32_MAX) - 1;
	if (handle >> 32 != naive->epoch || index >= naive->series_count)
		return NULL;
	if (!naive->series[index].alive && !naive->handles_revive)
		return NULL;
	return &naive->series[index];
}

void naive_register(struct naive *naive, struct naive_series *series)
{
	if (series->alive)
		return;
	series->alive = true;
	series->registration = ++naive->registrations;
	series->registered_ms = clock_wall_ms(naive->clock);
}

struct naive_row *naive_row_of(struct naive_series *series, enum table table, int64_t period_ms)
{
	for (size_t i = 0; series && i < series->row_count; i++) {
		struct naive_row *row = &series->rows[i];
		if (row->table == table && row->period_ms == period_ms)
			return row;
	}
	return NULL;
}

static struct naive_row *make_row(struct naive_series *series, enum table table, int64_t period_ms)
{
	struct naive_row *row = naive_row_of(series, table, period_ms);
	if (row)
		return row;
	size_t at = series->row_count;
	series->rows = insert_at(series->rows, at, at, sizeof(*row));
	series->row_count++;
	series->rows[at].table = table;
	series->rows[at].period_ms = period_ms;
	return &series->rows[at];
}

static bool has_data(const struct naive_series *series)
{
	for (size_t i = 0; i < series->row_count; i++) {
		if (series->rows[i].count)
			return true;
	}
	return false;
}

static void forget(struct naive *naive, uint64_t handle)
{
	struct naive_series *series = naive_series_of(naive, handle);
	if (!series || (has_data(series) && naive->bug != NAIVE_BUG_FORGET_ALL))
		return;
	series->alive = false;
	naive->generation++;
}

/* ---- Samples ------------------------------------------------------------------------------- */

/* The first point at or after `ts_ms`. */
static size_t point_index(const struct naive_row *row, int64_t ts_ms)
{
	size_t low = 0, high = row->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (row->points[middle].ts_ms < ts_ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct naive_point *make_point(struct naive_row *row, int64_t ts_ms)
{
	size_t at = point_index(row, ts_ms);
	if (at < row->count && row->points[at].ts_ms == ts_ms)
		return &row->points[at];
	if (row->count == row->cap) {
		row->cap = row->cap ? row->cap * 2 : 4;
		row->points = mem_resize_array(row->points, row->cap, sizeof(*row->points));
	}
	memmove(&row->points[at + 1], &row->points[at], (row->count - at) * sizeof(*row->points));
	row->count++;
	row->points[at] = (struct naive_point){.ts_ms = ts_ms};
	return &row->points[at];
}

static struct value stored_value(const struct naive *naive, struct value value)
{
	double d = value_as_f64(value);
	if (naive->bug == NAIVE_BUG_NAN_PAYLOAD && value.type == VALUE_F64 && d != d)
		return value_f64(__builtin_nan(""));
	return value;
}

static bool is_deleted(const struct naive_row *row, int64_t ts_ms, int64_t stamp_us)
{
	for (size_t i = 0; i < row->deletion_count; i++) {
		const struct naive_deletion *d = &row->deletions[i];
		if (ts_ms >= d->start_ms && ts_ms < d->end_ms && stamp_us <= d->stamp_us)
			return true;
	}
	return false;
}

/* The order of writes of one sample: the stamp; the class that keeps it longer, for ever least; the
 * value. */
static bool sample_wins(const struct naive_point *point, size_t f, struct value value,
			enum retention_class retention, int64_t stamp_us)
{
	if (point->values[f].type == VALUE_NONE || point->stamps_us[f] != stamp_us)
		return point->values[f].type == VALUE_NONE || point->stamps_us[f] < stamp_us;
	int64_t old_ms = retention_class_ms(point->retention[f]);
	int64_t new_ms = retention_class_ms(retention);
	if (old_ms != new_ms)
		return old_ms < new_ms;
	if (point->values[f].type != value.type)
		return point->values[f].type < value.type;
	return point->values[f].bits < value.bits;
}

static void put_sample(struct naive *naive, struct naive_row *row, enum retention_class retention,
		       int64_t ts_ms, int64_t stamp_us, const struct value *values,
		       size_t field_count)
{
	bool any = false;
	for (size_t f = 0; f < field_count; f++)
		any |= values[f].type != VALUE_NONE;
	if (!any || is_deleted(row, ts_ms, stamp_us))
		return;
	struct naive_point *point = make_point(row, ts_ms);
	for (size_t f = 0; f < field_count; f++) {
		bool there = point->values[f].type != VALUE_NONE;
		if (values[f].type == VALUE_NONE && naive->bug != NAIVE_BUG_WHOLE_OVERWRITE)
			continue;
		if (there && naive->bug == NAIVE_BUG_LOST_OVERWRITE)
			continue;
		if (!sample_wins(point, f, values[f], retention, stamp_us))
			continue;
		point->values[f] = stored_value(naive, values[f]);
		point->retention[f] = retention;
		point->stamps_us[f] = stamp_us;
	}
}

/* Takes away what is not above the stamp; whether anything is left. */
static bool delete_point(struct naive_point *point, int64_t stamp_us)
{
	bool any = false;
	for (size_t f = 0; f < TABLE_FIELDS_MAX; f++) {
		if (point->stamps_us[f] <= stamp_us)
			point->values[f] = (struct value){0, VALUE_NONE};
		any |= point->values[f].type != VALUE_NONE;
	}
	return any;
}

static void delete_range(struct naive *naive, struct naive_row *row, int64_t start_ms,
			 int64_t end_ms, int64_t stamp_us)
{
	size_t kept = 0;
	if (naive->bug == NAIVE_BUG_DELETE_END && end_ms < INT64_MAX)
		end_ms++;
	row->deletions =
		mem_resize_array(row->deletions, row->deletion_count + 1, sizeof(*row->deletions));
	row->deletions[row->deletion_count++] = (struct naive_deletion){start_ms, end_ms, stamp_us};
	for (size_t i = 0; i < row->count; i++) {
		struct naive_point *point = &row->points[i];
		bool meant = point->ts_ms >= start_ms && point->ts_ms < end_ms;
		if (!meant || delete_point(point, stamp_us))
			row->points[kept++] = *point;
	}
	row->count = kept;
}

bool naive_sample_visible(const struct naive *naive, const struct naive_point *point, size_t field,
			  int64_t now_ms)
{
	if (point->values[field].type == VALUE_NONE)
		return false;
	int64_t keep_ms = retention_class_ms(point->retention[field]), oldest_ms;
	if (keep_ms == 0 || __builtin_sub_overflow(now_ms, keep_ms, &oldest_ms))
		return true;
	if (naive->bug == NAIVE_BUG_EXPIRY_EDGE)
		oldest_ms++;
	return point->ts_ms >= oldest_ms;
}

static void settle_row(const struct naive *naive, struct naive_row *row, int64_t now_ms)
{
	size_t kept = 0;
	for (size_t i = 0; i < row->count; i++) {
		struct naive_point *point = &row->points[i];
		bool any = false;
		for (size_t f = 0; f < TABLE_FIELDS_MAX; f++)
			any |= naive_sample_visible(naive, point, f, now_ms);
		if (any)
			row->points[kept++] = *point;
	}
	row->count = kept;
}

void naive_settle(struct store *store)
{
	struct naive *naive = naive_of(store);
	pthread_mutex_lock(&naive->lock);
	int64_t now_ms = clock_wall_ms(naive->clock) - STORE_QUERY_DEADLINE_MAX_MS;
	for (size_t s = 0; s < naive->series_count; s++) {
		for (size_t r = 0; r < naive->series[s].row_count; r++)
			settle_row(naive, &naive->series[s].rows[r], now_ms);
	}
	pthread_mutex_unlock(&naive->lock);
}

/* ---- Cells --------------------------------------------------------------------------------- */

bool naive_cell_visible(const struct naive_cell *cell, int64_t now_ms)
{
	return !cell->deleted && (cell->expires_ms == 0 || now_ms < cell->expires_ms);
}

static struct naive_cells *make_cells(struct naive_table *table, struct slice key)
{
	for (size_t i = 0; i < table->count; i++) {
		if (slice_equal(table->rows[i].key, key))
			return &table->rows[i];
	}
	table->rows = insert_at(table->rows, table->count, table->count, sizeof(*table->rows));
	struct naive_cells *cells = &table->rows[table->count++];
	cells->key = naive_copy(key);
	cells->gone_us = INT64_MIN;
	return cells;
}

/* The cell of that column; made, as deleted with its row, where there is none. */
static struct naive_cell *make_cell(struct naive_cells *row, struct slice column)
{
	size_t at = 0;
	while (at < row->count && slice_compare(row->cells[at].column, column) < 0)
		at++;
	if (at < row->count && slice_equal(row->cells[at].column, column))
		return &row->cells[at];
	row->cells = insert_at(row->cells, row->count, at, sizeof(*row->cells));
	row->count++;
	row->cells[at] = (struct naive_cell){
		.column = naive_copy(column),
		.value = naive_copy(SLICE("")),
		.deleted = true,
		.stamp_us = row->gone_us,
	};
	return &row->cells[at];
}

static void set_value(struct naive_cell *cell, struct slice value)
{
	struct slice copy = naive_copy(value);
	free_slice(cell->value);
	cell->value = copy;
}

/* The order of writes of one stamped cell: stamp, then a deletion over a value, the later expiry
 * over an earlier one and over none, the greater value. */
static int compare_stamped(const struct naive_cell *old, const struct store_cell_write *new)
{
	if (old->stamp_us != new->stamp_us)
		return old->stamp_us < new->stamp_us ? -1 : 1;
	bool new_deleted = new->action != CELL_PUT;
	if (old->deleted || new_deleted)
		return (int)old->deleted - (int)new_deleted;
	if (old->expires_ms != new->expires_ms)
		return old->expires_ms < new->expires_ms ? -1 : 1;
	return slice_compare(old->value, new->value);
}

static void apply_stamped(struct naive *naive, struct naive_cell *cell,
			  const struct store_cell_write *write)
{
	if (write->stamp_us > naive->last_stamp_us)
		naive->last_stamp_us = write->stamp_us;
	int order = compare_stamped(cell, write);
	bool late = naive->bug == NAIVE_BUG_EQUAL_STAMP_LATE && cell->stamp_us == write->stamp_us;
	if (order >= 0 && !late)
		return;
	set_value(cell, write->value);
	cell->deleted = write->action != CELL_PUT;
	cell->stamp_us = write->stamp_us;
	cell->expires_ms = write->expires_ms;
	if (cell->deleted && naive->bug == NAIVE_BUG_DELETE_FORGETS)
		cell->stamp_us = INT64_MIN;
}

/* Each cell is deleted, those that are not there yet, too. */
static void apply_row_delete(struct naive *naive, struct naive_cells *row,
			     const struct store_cell_write *write)
{
	for (size_t i = 0; i < row->count; i++) {
		bool spared = naive->bug == NAIVE_BUG_ROW_SPARES_EQUAL &&
			      row->cells[i].stamp_us == write->stamp_us;
		if (!spared)
			apply_stamped(naive, &row->cells[i], write);
	}
	if (write->stamp_us > row->gone_us && naive->bug != NAIVE_BUG_ROW_FORGETS)
		row->gone_us = write->stamp_us;
	if (write->stamp_us > naive->last_stamp_us)
		naive->last_stamp_us = write->stamp_us;
}

static void apply_conditional(struct naive *naive, struct arena *arena, struct naive_cell *cell,
			      const struct store_cell_write *request)
{
	bool there = naive->bug == NAIVE_BUG_EXPIRED_LEASE
			     ? !cell->deleted
			     : naive_cell_visible(cell, clock_wall_ms(naive->clock));
	struct store_write_cond *outcome = request->outcome;
	outcome->applied = request->version == (there ? cell->version : 0);
	if (outcome->applied) {
		set_value(cell, request->value);
		cell->deleted = request->action == CELL_DELETE_IF;
		cell->expires_ms = request->expires_ms;
		cell->version++;
		if (cell->deleted && naive->bug == NAIVE_BUG_VERSION_REUSED)
			cell->version = 0;
		there = !cell->deleted;
	}
	outcome->version = there ? cell->version : 0;
	outcome->value = (struct slice){0};
	if (there)
		outcome->value = arena_copy(arena, cell->value);
}

static struct slice element_at(struct slice set, size_t at)
{
	uint16_t len;
	memcpy(&len, set.data + at, sizeof(len));
	return (struct slice){set.data + at + sizeof(len), len};
}

static int apply_add(struct naive *naive, struct naive_cell *cell, struct slice element)
{
	struct slice set = cell->value;
	size_t count = 0, place = set.len;
	cell->deleted = false;
	for (size_t at = 0; at < set.len;) {
		struct slice there = element_at(set, at);
		int order = slice_compare(element, there);
		if (order == 0)
			return 0;
		if (order < 0 && place == set.len && naive->bug != NAIVE_BUG_SET_UNORDERED)
			place = at;
		at += sizeof(uint16_t) + there.len;
		count++;
	}
	if (count == STORE_SET_ELEMENTS_MAX)
		return ERR_LIMIT;
	uint16_t len = (uint16_t)element.len;
	char *grown = mem_alloc(set.len + sizeof(len) + len + 1);
	memcpy(grown, set.data, place);
	memcpy(grown + place, &len, sizeof(len));
	memcpy(grown + place + sizeof(len), element.data, len);
	memcpy(grown + place + sizeof(len) + len, set.data + place, set.len - place);
	free_slice(set);
	cell->value = (struct slice){grown, set.len + sizeof(len) + len};
	return 0;
}

static void remove_log(const struct naive *naive, struct naive_cells *row,
		       const struct store_cell_write *request)
{
	for (size_t i = 0; i < row->count; i++) {
		struct slice column = row->cells[i].column;
		int to = request->to_end ? -1 : slice_compare(column, request->to);
		bool past = naive->bug == NAIVE_BUG_LOG_REMOVE_TO ? to > 0 : to >= 0;
		if (slice_compare(column, request->column) >= 0 && !past)
			row->cells[i].deleted = true;
	}
}

static void put_log(const struct naive *naive, struct naive_cell *cell, struct slice value)
{
	if (cell->deleted || naive->bug != NAIVE_BUG_LOG_PUT_ONCE)
		set_value(cell, value);
	cell->deleted = false;
}

static int apply_cell(struct naive *naive, struct arena *arena,
		      const struct store_cell_write *request)
{
	struct naive_cells *row = make_cells(&naive->tables[request->table], request->key);
	if (request->action == CELL_LOG_REMOVE) {
		remove_log(naive, row, request);
		return 0;
	}
	if (request->action == CELL_ROW_DELETE) {
		apply_row_delete(naive, row, request);
		return 0;
	}
	struct naive_cell *cell = make_cell(row, request->column);
	switch (request->action) {
	case CELL_PUT:
	case CELL_DELETE:
		apply_stamped(naive, cell, request);
		return 0;
	case CELL_PUT_IF:
	case CELL_DELETE_IF:
		apply_conditional(naive, arena, cell, request);
		return 0;
	case CELL_LOG_PUT:
		put_log(naive, cell, request->value);
		return 0;
	case CELL_LOG_REMOVE:
	case CELL_ROW_DELETE:
		break; /* above */
	case CELL_ADD:
		return apply_add(naive, cell, request->value);
	}
	return 0;
}

/* ---- Requests of a batch ------------------------------------------------------------------- */

static int next_stage_of(struct store_write *write)
{
	struct store_stage *stage = arena_zalloc(&write->arena, sizeof(*stage));
	if (!stage)
		return ERR_LIMIT;
	if (write->last_stage)
		write->last_stage->next = stage;
	else
		write->stages = stage;
	write->last_stage = stage;
	return 0;
}

static const void *keep(struct store_write *write, const void *bytes, size_t len)
{
	return arena_copy(&write->arena, (struct slice){bytes, len}).data;
}

/* The request joins its stage when all of it has found room. A stage begins with its first request:
 * store.c counts those of the present one. */
static int add(struct store_write *write, const struct naive_request *request)
{
	if (!write->last_stage || (write->stage_requests == 0 && write->last_stage->first)) {
		int err = next_stage_of(write);
		if (err)
			return err;
	}
	struct naive_request *kept = arena_alloc(&write->arena, sizeof(*kept));
	if (!kept)
		return ERR_LIMIT;
	*kept = *request;
	struct store_stage *stage = write->last_stage;
	if (stage->last)
		stage->last->next = kept;
	else
		stage->first = kept;
	stage->last = kept;
	return 0;
}

/* Values with those of the fields that were not given, which are none. */
static const struct value *keep_values(struct store_write *write, enum table table, unsigned fields,
				       size_t n, const struct value *values)
{
	size_t all = schema[table].field_count;
	struct value *kept = arena_zalloc(&write->arena, n * all * sizeof(*kept));
	for (size_t i = 0; kept && i < n * all; i++) {
		if (fields >> i % all & 1)
			kept[i] = *values++;
	}
	return kept;
}

static int naive_append(struct store_write *write, const struct store_target *target, int64_t ts_ms,
			unsigned fields, const uint64_t *handles, size_t n,
			const struct value *values)
{
	struct naive_request request = {
		.kind = REQUEST_APPEND,
		.target = *target,
		.start_ms = ts_ms,
		.handles = keep(write, handles, n * sizeof(*handles)),
		.n = n,
		.values = keep_values(write, target->table, fields, n, values),
	};
	return request.handles && request.values ? add(write, &request) : ERR_LIMIT;
}

static int naive_add_delete_range(struct store_write *write, const struct store_target *target,
				  const uint64_t *handles, size_t n, int64_t start_ms,
				  int64_t end_ms)
{
	struct naive_request request = {
		.kind = REQUEST_DELETE_RANGE,
		.target = *target,
		.start_ms = start_ms,
		.end_ms = end_ms,
		.handles = keep(write, handles, n * sizeof(*handles)),
		.n = n,
	};
	return request.handles ? add(write, &request) : ERR_LIMIT;
}

static int naive_add_cell(struct store_write *write, const struct store_cell_write *cell)
{
	struct naive_request request = {.kind = REQUEST_CELL, .cell = *cell};
	request.cell.key = arena_copy(&write->arena, cell->key);
	request.cell.column = arena_copy(&write->arena, cell->column);
	request.cell.to = arena_copy(&write->arena, cell->to);
	request.cell.value = arena_copy(&write->arena, cell->value);
	if (!request.cell.key.data || !request.cell.column.data || !request.cell.to.data ||
	    !request.cell.value.data)
		return ERR_LIMIT;
	return add(write, &request);
}

static int naive_add_forget(struct store_write *write, const uint64_t *handles, size_t n)
{
	struct naive_request request = {
		.kind = REQUEST_FORGET,
		.handles = keep(write, handles, n * sizeof(*handles)),
		.n = n,
	};
	return request.handles ? add(write, &request) : ERR_LIMIT;
}

static int naive_add_rekey(struct store_write *write, const struct store_rekeying *rekeying)
{
	struct naive_request request = {
		.kind = REQUEST_REKEY,
		.target = rekeying->target,
		.handles = keep(write, rekeying->handles, rekeying->n * sizeof(*rekeying->handles)),
		.n = rekeying->n,
		.rekeying = *rekeying,
	};
	return request.handles ? add(write, &request) : ERR_LIMIT;
}

/* add() begins the stage. */
static void naive_next_stage(UNUSED struct store_write *write)
{
}

struct naive_row *naive_request_row(struct naive *naive, const struct naive_request *request,
				    size_t i)
{
	struct naive_series *series = naive_series_of(naive, request->handles[i]);
	return series ? make_row(series, request->target.table, request->target.period_ms) : NULL;
}

int64_t naive_next_stamp_us(struct naive *naive, struct naive_row *row, int64_t stamp_us)
{
	if (row->batch != naive->batch)
		row->meetings = 0;
	row->batch = naive->batch;
	stamp_us += row->meetings++;
	if (stamp_us > naive->last_stamp_us)
		naive->last_stamp_us = stamp_us;
	return stamp_us;
}

/* A value has one class: after the first step that which keeps it longer. */
static void rekey_value(const struct naive *naive, struct naive_point *point, size_t field,
			const struct store_rekeying *r)
{
	struct naive_point there = *point;
	there.retention[field] = r->target.retention;
	bool lives = naive_sample_visible(naive, point, field, r->now_ms);
	bool would_live = naive_sample_visible(naive, &there, field, r->now_ms);
	if (point->retention[field] == r->target.retention)
		return;
	if (lives && would_live &&
	    (r->step == STORE_REKEY_CLEAR || r->target.retention > point->retention[field]))
		point->retention[field] = r->target.retention;
	else if (r->step == STORE_REKEY_CLEAR)
		point->values[field] = (struct value){0, VALUE_NONE};
}

static void rekey_row(const struct naive *naive, struct naive_row *row,
		      const struct store_rekeying *r)
{
	size_t kept = 0;
	for (size_t p = 0; p < row->count; p++) {
		struct naive_point *point = &row->points[p];
		bool meant = point->ts_ms >= r->start_ms && point->ts_ms < r->end_ms, any = false;
		for (size_t f = 0; f < schema[r->target.table].field_count; f++) {
			if (meant)
				rekey_value(naive, point, f, r);
			any |= point->values[f].type != VALUE_NONE;
		}
		if (any)
			row->points[kept++] = *point;
	}
	row->count = kept;
}

int naive_apply(struct naive *naive, const struct naive_request *request, size_t i,
		int64_t stamp_us, struct arena *arena)
{
	struct naive_row *row;
	size_t fields = schema[request->target.table].field_count;
	switch (request->kind) {
	case REQUEST_APPEND:
		naive_register(naive, naive_series_of(naive, request->handles[i]));
		row = naive_request_row(naive, request, i);
		put_sample(naive, row, request->target.retention, request->start_ms, stamp_us,
			   request->values + i * fields, fields);
		return 0;
	case REQUEST_DELETE_RANGE:
		row = naive_request_row(naive, request, i);
		if (row)
			delete_range(naive, row, request->start_ms, request->end_ms, stamp_us);
		return 0;
	case REQUEST_CELL:
		return apply_cell(naive, arena, &request->cell);
	case REQUEST_FORGET:
		forget(naive, request->handles[i]);
		return 0;
	case REQUEST_REKEY:
		row = naive_request_row(naive, request, i);
		if (row)
			rekey_row(naive, row, &request->rekeying);
		return 0;
	}
	return 0;
}

static int apply_request(struct naive *naive, struct store_write *write,
			 const struct naive_request *request, int64_t batch_us)
{
	int result = 0;
	if (request->kind == REQUEST_CELL)
		return naive_apply(naive, request, 0, 0, &write->arena);
	bool stamped = request->kind == REQUEST_APPEND || request->kind == REQUEST_DELETE_RANGE;
	for (size_t i = 0; i < request->n; i++) {
		struct naive_row *row = stamped ? naive_request_row(naive, request, i) : NULL;
		int64_t stamp_us = row ? naive_next_stamp_us(naive, row, batch_us) : batch_us;
		int err = naive_apply(naive, request, i, stamp_us, &write->arena);
		result = result ? result : err;
	}
	return result;
}

int naive_check_appends(struct naive *naive, const struct store_stage *stage)
{
	for (struct naive_request *r = stage->first; r; r = r->next) {
		for (size_t i = 0; r->kind == REQUEST_APPEND && i < r->n; i++) {
			if (!naive_series_of(naive, r->handles[i]))
				return ERR_NOT_FOUND;
		}
	}
	return 0;
}

static int64_t take_stamp(struct naive *naive)
{
	int64_t now_us = naive->clock->wall_us(naive->clock);
	naive->last_stamp_us = now_us > naive->last_stamp_us ? now_us : naive->last_stamp_us + 1;
	return naive->last_stamp_us;
}

/* ERR_LIMIT is that of a full set, and stops nothing. */
static int apply_stages(struct naive *naive, struct store_write *write)
{
	int result = 0;
	/* What stands between (tests/unit/slow_store.h) may go by the order of acceptance. */
	int64_t batch_us = write->stamp_us ? write->stamp_us : take_stamp(naive);
	naive->batch++;
	for (struct store_stage *stage = write->stages; stage; stage = stage->next) {
		int err = naive_check_appends(naive, stage);
		if (err)
			return errbuf_set(&write->error, err, "an append to an unknown series");
		/* Forgetting comes after all else. */
		for (int forgets = 0; forgets < 2; forgets++) {
			for (struct naive_request *r = stage->first; r; r = r->next) {
				if ((r->kind == REQUEST_FORGET) != forgets)
					continue;
				err = apply_request(naive, write, r, batch_us);
				result = result ? result : err;
			}
		}
		write->stages_kept++;
	}
	return result;
}

static void run_write_done(struct task *task)
{
	struct store_write *write = CONTAINER_OF(task, struct store_write, task);
	store_write_end(write);
}

static int naive_write_submit(struct store_write *write)
{
	struct naive *naive = naive_of(write->store);
	pthread_mutex_lock(&naive->lock);
	int refused = naive->refuse_writes ? naive->refuse_writes_err : 0;
	if (refused)
		naive->refuse_writes--;
	else if (naive->fail_writes && naive->good_writes-- == 0) {
		naive->good_writes = 0;
		naive->fail_writes--;
		if (naive->keep_failed)
			(void)apply_stages(naive, write);
		write->err = naive->fail_writes_err;
	} else
		write->err = apply_stages(naive, write);
	pthread_mutex_unlock(&naive->lock);
	if (refused)
		return refused;
	write->task.run = run_write_done;
	write->executor->post(write->executor, &write->task);
	return 0;
}

/* ---- Life ---------------------------------------------------------------------------------- */

static int64_t naive_stamp(struct store *store)
{
	struct naive *naive = naive_of(store);
	pthread_mutex_lock(&naive->lock);
	int64_t stamp_us = take_stamp(naive);
	pthread_mutex_unlock(&naive->lock);
	return stamp_us;
}

static uint64_t naive_generation(struct store *store)
{
	struct naive *naive = naive_of(store);
	pthread_mutex_lock(&naive->lock);
	uint64_t generation = naive->generation;
	pthread_mutex_unlock(&naive->lock);
	return generation;
}

static void free_series(struct naive_series *series)
{
	for (size_t r = 0; r < series->row_count; r++) {
		mem_free(series->rows[r].points);
		mem_free(series->rows[r].deletions);
	}
	mem_free(series->rows);
	free_slice(series->tenant);
	free_slice(series->metric);
	free_slice(series->tags_text);
}

static void free_table(struct naive_table *table)
{
	for (size_t r = 0; r < table->count; r++) {
		struct naive_cells *row = &table->rows[r];
		for (size_t c = 0; c < row->count; c++) {
			free_slice(row->cells[c].column);
			free_slice(row->cells[c].value);
		}
		mem_free(row->cells);
		free_slice(row->key);
	}
	mem_free(table->rows);
}

static void naive_close(struct store *store)
{
	struct naive *naive = naive_of(store);
	for (size_t i = 0; i < naive->series_count; i++)
		free_series(&naive->series[i]);
	mem_free(naive->series);
	for (size_t t = 0; t < TABLE_COUNT; t++)
		free_table(&naive->tables[t]);
	pthread_mutex_destroy(&naive->lock);
	mem_free(naive);
}

const struct store_engine naive_engine = {
	.name = "naive",
	.can = STORE_ATOMIC_STAGES | STORE_SNAPSHOTS | STORE_SAMPLE_STAMPS | STORE_SERIAL_WRITES |
	       STORE_EXACT_FORGETTING | STORE_EXACT_SETS | STORE_COUNTS | STORE_VERIFIES |
	       STORE_HAS_SHARES | STORE_REKEYS | STORE_NEWS,
	.append = naive_append,
	.add_delete_range = naive_add_delete_range,
	.add_cell = naive_add_cell,
	.add_forget = naive_add_forget,
	.add_rekey = naive_add_rekey,
	.next_stage = naive_next_stage,
	.write_submit = naive_write_submit,
	.read_submit = naive_read_submit,
	.stamp = naive_stamp,
	.series_generation = naive_generation,
	.close = naive_close,
};

struct store *naive_open(struct clock *clock)
{
	struct naive *naive = mem_zalloc(sizeof(*naive));
	naive->store.engine = &naive_engine;
	naive->clock = clock;
	naive->registrations = 1; /* as a since it is not 0 */
	pthread_mutex_init(&naive->lock, NULL);
	return &naive->store;
}

void naive_reopen(struct store *store)
{
	struct naive *naive = naive_of(store);
	pthread_mutex_lock(&naive->lock);
	naive->epoch++;
	naive->generation++;
	for (size_t s = 0; naive->bug == NAIVE_BUG_REOPEN_LOSES && s < naive->series_count; s++) {
		for (size_t r = 0; r < naive->series[s].row_count; r++)
			naive->series[s].rows[r].count -= naive->series[s].rows[r].count > 0;
	}
	pthread_mutex_unlock(&naive->lock);
}

void naive_refuse_writes(struct store *store, int err, unsigned times)
{
	naive_of(store)->refuse_writes_err = err;
	naive_of(store)->refuse_writes = times;
}

void naive_fail_writes(struct store *store, int err, unsigned times)
{
	naive_fail_writes_after(store, 0, err, times);
}

void naive_fail_writes_after(struct store *store, unsigned good, int err, unsigned times)
{
	naive_of(store)->keep_failed = false;
	naive_of(store)->good_writes = good;
	naive_of(store)->fail_writes_err = err;
	naive_of(store)->fail_writes = times;
}

void naive_lose_outcomes(struct store *store, unsigned good, unsigned times)
{
	naive_fail_writes_after(store, good, ERR_UNKNOWN, times);
	naive_of(store)->keep_failed = true;
}

void naive_refuse_reads(struct store *store, int err, unsigned times)
{
	naive_of(store)->refuse_reads_err = err;
	naive_of(store)->refuse_reads = times;
}

uint64_t naive_endless_reads(struct store *store)
{
	return naive_of(store)->endless_reads;
}

void naive_damage(struct store *store, uint64_t handle)
{
	naive_of(store)->damaged = handle;
}

void naive_plant(struct store *store, enum naive_bug bug)
{
	naive_of(store)->bug = bug;
}
