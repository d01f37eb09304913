/* The half of the contract that every engine shares: batches and their memory, and each check that
 * follows from schema.h and the limits alone. An engine is called with what has passed. */
#include "store/store.h"

#include <math.h>

#include "base/owner.h"
#include "base/utf8.h"
#include "store/read_own.h"

/* ---- Sums ---------------------------------------------------------------------------------- */

void store_windows_spread(const struct store_windows *windows, size_t window_count,
			  struct store_summary *to)
{
	memset(to, 0, window_count * sizeof(*to));
	for (size_t i = 0; i < windows->count; i++) {
		ASSERT(windows->numbers[i] < window_count);
		to[windows->numbers[i]] = windows->list[i];
	}
}

double store_mean(double sum, double scaled, uint64_t count)
{
	if (isfinite(sum))
		return sum / (double)count;
	double mean = scaled / (double)count * 0x1p64;
	/* No mean is larger than the largest value; the sum may have been rounded up. */
	return isinf(mean) && isfinite(scaled) ? copysign(0x1.fffffffffffffp1023, mean) : mean;
}

/* ---- Writing ------------------------------------------------------------------------------- */

struct store_write *store_write_new(struct store *store, size_t max_bytes)
{
	ASSERT(max_bytes > 0 && max_bytes <= STORE_BATCH_MAX_BYTES);
	struct store_write *write = mem_zalloc(sizeof(*write));
	write->magic = MAGIC_OF(store_write);
	write->store = store;
	arena_init(&write->arena, max_bytes);
	return write;
}

void store_write_reset(struct store_write *write)
{
	ASSERT_IS(store_write, write);
	ASSERT(!write->in_flight);
	arena_reset(&write->arena);
	*write = (struct store_write){
		.magic = write->magic,
		.store = write->store,
		.executor = write->executor,
		.done = write->done,
		.owner = write->owner,
		.in_runs = write->in_runs,
		.can_wait = write->can_wait,
		.arena = write->arena,
	};
}

void store_write_free(struct store_write *write)
{
	if (!write)
		return;
	ASSERT_IS(store_write, write);
	if (write->in_flight) {
		ASSERT(!write->dropped);
		write->dropped = true;
		return;
	}
	write->magic = 0;
	arena_release(&write->arena);
	mem_free(write);
}

void store_write_end(struct store_write *write)
{
	ASSERT_IS(store_write, write);
	ASSERT(write->in_flight);
	write->in_flight = false;
	if (write->dropped)
		store_write_free(write);
	else
		write->done(write, write->err);
}

/* Called after an engine's adder: only what it took counts. */
static int added(struct store_write *write, int err)
{
	if (err) {
		if (err == ERR_LIMIT)
			errbuf_set(&write->error, err, "the batch is full");
		return err;
	}
	write->stage_count += write->stage_requests == 0;
	write->stage_requests++;
	return 0;
}

static bool is_kind(enum table table, enum table_kind kind)
{
	return (unsigned)table < TABLE_COUNT && schema[table].kind == kind;
}

static const char *table_name(enum table table)
{
	return (unsigned)table < TABLE_COUNT ? schema[table].name : "(no table)";
}

static int check_samples(enum table table, int64_t period_ms, struct errbuf *e)
{
	if (!is_kind(table, TABLE_SAMPLES))
		return errbuf_set(e, ERR_INVALID, "%s holds no samples", table_name(table));
	if (schema[table].has_period ? period_ms <= 0 : period_ms != 0)
		return errbuf_set(e, ERR_INVALID, "a period of %lld ms is not for table %s",
				  (long long)period_ms, table_name(table));
	return 0;
}

static int store_check_group(size_t n, struct errbuf *e)
{
	if (n == 0)
		return errbuf_set(e, ERR_INVALID, "no handles given");
	if (n > STORE_GROUP_MAX)
		return errbuf_set(e, ERR_LIMIT, "%zu handles in one call; at most %d", n,
				  STORE_GROUP_MAX);
	return 0;
}

/* How many of the values are there; -1 where a type is none of ours. */
static ptrdiff_t count_values(const struct value *values, size_t count)
{
	size_t there = 0;
	unsigned types = 0;
	for (size_t i = 0; i < count; i++) {
		there += values[i].type != VALUE_NONE;
		types |= (unsigned)values[i].type;
	}
	return types > VALUE_U64 ? -1 : (ptrdiff_t)there;
}

static unsigned all_fields(enum table table)
{
	return (1u << schema[table].field_count) - 1;
}

static int store_check_time(int64_t ts_ms, struct errbuf *e)
{
	if (ts_ms < STORE_TS_MIN || ts_ms > STORE_TS_MAX)
		return errbuf_set(e, ERR_INVALID, "time %lld is out of range", (long long)ts_ms);
	return 0;
}

static int check_retention(enum retention_class retention, struct errbuf *e)
{
	return (unsigned)retention < RETENTION_CLASSES
		       ? 0
		       : errbuf_set(e, ERR_INVALID, "no retention class %d", (int)retention);
}

/* All of an append but its times and values. */
static inline int check_append(const struct store_target *target, unsigned fields, size_t n,
			       struct errbuf *e)
{
	int err = check_samples(target->table, target->period_ms, e);
	if (!err)
		err = store_check_group(n, e);
	if (err)
		return err;
	if (!fields || fields & ~all_fields(target->table))
		return errbuf_set(e, ERR_INVALID, "fields that the table does not have");
	return check_retention(target->retention, e);
}

static int refuse_type(const struct table_def *def, const struct field_def *field, struct errbuf *e)
{
	return errbuf_set(e, ERR_INVALID, "%s in %s of %s, which holds %s",
			  field->type == FIELD_REAL ? "an integer" : "a real number", field->name,
			  def->name, field->type == FIELD_REAL ? "real numbers" : "integers");
}

/* Whether each field takes its values; those of a table of one field that takes any, as most are,
 * are not looked at. */
static int check_field_types(enum table table, unsigned fields, size_t n,
			     const struct value *values, struct errbuf *e)
{
	const struct table_def *def = &schema[table];
	size_t step = fields_count(fields), place = 0;
	for (size_t f = 0; f < def->field_count; f++) {
		if (!(fields >> f & 1))
			continue;
		enum field_type type = def->fields[f].type;
		for (size_t i = 0; i < n && type != FIELD_ANY; i++)
			if (!field_takes(type, values[i * step + place].type))
				return refuse_type(def, &def->fields[f], e);
		place++;
	}
	return 0;
}

int store_append_fields(struct store_write *write, const struct store_target *target, int64_t ts_ms,
			unsigned fields, const uint64_t *handles, size_t n,
			const struct value *values)
{
	int err = check_append(target, fields, n, &write->error);
	if (!err)
		err = store_check_time(ts_ms, &write->error);
	if (err)
		return err;
	ptrdiff_t there = count_values(values, n * fields_count(fields));
	if (there < 0)
		return errbuf_set(&write->error, ERR_INVALID, "a value of unknown type");
	err = check_field_types(target->table, fields, n, values, &write->error);
	if (err)
		return err;
	err = write->store->engine->append(write, target, ts_ms, fields, handles, n, values);
	if (!err)
		write->samples += (size_t)there;
	return added(write, err);
}

int store_append(struct store_write *write, const struct store_target *target, int64_t ts_ms,
		 const uint64_t *handles, size_t n, const struct value *values)
{
	/* A table that holds no samples is refused there. */
	unsigned fields = is_kind(target->table, TABLE_SAMPLES) ? all_fields(target->table) : 1;
	return store_append_fields(write, target, ts_ms, fields, handles, n, values);
}

static int check_columns(enum table table, const struct store_columns *columns, struct errbuf *e)
{
	const struct table_def *def = &schema[table];
	if (!columns->count)
		return errbuf_set(e, ERR_INVALID, "no times given");
	if (columns->type == VALUE_NONE || (unsigned)columns->type > VALUE_U64)
		return errbuf_set(e, ERR_INVALID, "a value of unknown type");
	for (size_t t = 1; t < columns->count; t++)
		if (columns->ts_ms[t] <= columns->ts_ms[t - 1])
			return errbuf_set(e, ERR_INVALID, "times that do not ascend");
	for (size_t f = 0; f < def->field_count; f++)
		if (columns->fields >> f & 1 && !field_takes(def->fields[f].type, columns->type))
			return refuse_type(def, &def->fields[f], e);
	int err = store_check_time(columns->ts_ms[0], e);
	return err ? err : store_check_time(columns->ts_ms[columns->count - 1], e);
}

static int append_one_by_one(struct store_write *write, const struct store_target *target,
			     const struct store_columns *columns)
{
	struct value values[STORE_GROUP_MAX * TABLE_FIELDS_MAX];
	size_t given = columns->n * fields_count(columns->fields);
	int err = 0;
	for (size_t t = 0; t < columns->count && !err; t++) {
		for (size_t c = 0; c < given; c++)
			values[c] = (struct value){columns->bits[c * columns->count + t],
						   columns->type};
		err = store_append_fields(write, target, columns->ts_ms[t], columns->fields,
					  columns->handles, columns->n, values);
	}
	return err;
}

int store_append_columns(struct store_write *write, const struct store_target *target,
			 const struct store_columns *columns)
{
	const struct store_engine *engine = write->store->engine;
	int err = check_append(target, columns->fields, columns->n, &write->error);
	if (!err)
		err = check_columns(target->table, columns, &write->error);
	if (err)
		return err;
	if (!engine->append_columns || !write->in_runs)
		return append_one_by_one(write, target, columns);
	err = engine->append_columns(write, target, columns);
	if (!err)
		write->samples += columns->n * fields_count(columns->fields) * columns->count;
	return added(write, err);
}

/* What is deleted or re-keyed. */
static int check_span(const struct store_target *target, size_t n, int64_t start_ms, int64_t end_ms,
		      struct errbuf *e)
{
	int err = check_samples(target->table, target->period_ms, e);
	if (!err)
		err = store_check_group(n, e);
	if (!err && start_ms > end_ms)
		err = errbuf_set(e, ERR_INVALID, "a range that ends before it starts");
	return err;
}

int store_delete_range(struct store_write *write, const struct store_target *target,
		       const uint64_t *handles, size_t n, int64_t start_ms, int64_t end_ms)
{
	int err = check_span(target, n, start_ms, end_ms, &write->error);
	if (err || start_ms == end_ms)
		return err;
	return added(write, write->store->engine->add_delete_range(write, target, handles, n,
								   start_ms, end_ms));
}

/* Refuses what the engine did not declare. */
static int check_offered(const struct store *store, enum store_capability needed, const char *what,
			 struct errbuf *e)
{
	return store->engine->can & needed
		       ? 0
		       : errbuf_set(e, ERR_INVALID, "the engine %s %s", store->engine->name, what);
}

int store_rekey(struct store_write *write, const struct store_rekeying *rekeying)
{
	int err = check_offered(write->store, STORE_REKEYS, "re-keys no samples", &write->error);
	if (!err)
		err = check_span(&rekeying->target, rekeying->n, rekeying->start_ms,
				 rekeying->end_ms, &write->error);
	if (!err)
		err = check_retention(rekeying->target.retention, &write->error);
	if (err)
		return err;
	err = added(write, write->store->engine->add_rekey(write, rekeying));
	write->rekeys |= !err;
	return err;
}

/* The first `given` of the parts must be there and of their type. */
static int check_parts(const struct store_parts *parts, const struct part_def *defs, size_t given,
		       struct errbuf *e)
{
	for (size_t i = 0; i < given; i++) {
		if (!parts->part[i].data)
			return errbuf_set(e, ERR_INVALID, "%s is missing", defs[i].name);
		if (defs[i].type == PART_U64 && parts->part[i].len != 8)
			return errbuf_set(e, ERR_INVALID, "%s is not 8 bytes", defs[i].name);
	}
	return 0;
}

static int store_check_key(enum table table, const struct store_parts *key, struct errbuf *e)
{
	const struct table_def *def = &schema[table];
	int err = check_parts(key, def->key, def->key_count, e);
	if (err)
		return err;
	size_t bytes = store_parts_bytes(key, def->key_count);
	if (bytes == 0)
		return errbuf_set(e, ERR_INVALID, "an empty row key in %s", def->name);
	if (bytes > STORE_KEY_MAX_BYTES)
		return errbuf_set(e, ERR_LIMIT, "a row key of %zu bytes in %s; at most %d", bytes,
				  def->name, STORE_KEY_MAX_BYTES);
	return 0;
}

static int check_texts(const struct table_def *table, const struct store_parts *parts,
		       const struct part_def *defs, size_t count, struct errbuf *e)
{
	for (size_t i = 0; i < count; i++)
		if (defs[i].type == PART_TEXT && !utf8_is_valid(parts->part[i]))
			return errbuf_set(e, ERR_INVALID, "%s of %s is not UTF-8", defs[i].name,
					  table->name);
	return 0;
}

/* Of what is put: what older versions stored can be removed, whatever it is called. */
static int check_put(const struct table_def *def, const struct store_parts *key,
		     const struct store_parts *column, struct errbuf *e)
{
	int err = check_texts(def, key, def->key, def->key_count, e);
	return err ? err : check_texts(def, column, def->column, def->column_count, e);
}

/* Columns of series_sets hold whole series-sets, bounded by model/series.h. */
static size_t column_max_bytes(enum table table)
{
	if (schema[table].cell_kind != CELL_SERIES)
		return STORE_COLUMN_MAX_BYTES;
	return 2 * (TAGS_TEXT_MAX_BYTES + METRIC_MAX_BYTES) + TAG_KEY_MAX_BYTES +
	       TAG_VALUE_MAX_BYTES + 8;
}

static int check_column(enum table table, const struct store_parts *column, size_t given,
			struct errbuf *e)
{
	const struct table_def *def = &schema[table];
	int err = check_parts(column, def->column, given, e);
	if (err)
		return err;
	size_t bytes = store_parts_bytes(column, def->column_count);
	if (bytes > column_max_bytes(table))
		return errbuf_set(e, ERR_LIMIT, "a column of %zu bytes in %s; at most %zu", bytes,
				  def->name, column_max_bytes(table));
	return 0;
}

static int check_cell_kind(enum table table, enum cell_kind kind, struct errbuf *e)
{
	if (is_kind(table, TABLE_CELLS) && schema[table].cell_kind == kind)
		return 0;
	return errbuf_set(e, ERR_INVALID, "%s has no cells of this kind", table_name(table));
}

static int check_stamp(int64_t stamp_us, struct errbuf *e)
{
	return stamp_us == INT64_MIN ? errbuf_set(e, ERR_INVALID, "a stamp of INT64_MIN") : 0;
}

static int add_checked_cell(struct store_write *write, const struct store_cell_write *cell)
{
	int err = write->store->engine->add_cell(write, cell);
	write->cells += !err;
	return added(write, err);
}

/* Checks what all cell writes share, flattens the parts and hands the cell to the engine. */
static int add_cell(struct store_write *write, enum cell_kind kind, const struct store_parts *key,
		    const struct store_parts *column, struct store_cell_write *cell)
{
	char key_bytes[STORE_KEY_MAX_BYTES], column_bytes[STORE_COLUMN_MAX_BYTES];
	struct errbuf *e = &write->error;
	int err = check_cell_kind(cell->table, kind, e);
	if (err)
		return err;
	const struct table_def *def = &schema[cell->table];
	err = store_check_key(cell->table, key, e);
	if (!err)
		err = check_column(cell->table, column, def->column_count, e);
	if (!err && cell->action != CELL_DELETE && cell->action != CELL_DELETE_IF)
		err = check_put(def, key, column, e);
	if (err)
		return err;
	size_t value_max_bytes = schema_value_max_bytes(cell->table);
	if (cell->value.len > value_max_bytes)
		return errbuf_set(e, ERR_LIMIT, "a value of %zu bytes in %s; at most %zu",
				  cell->value.len, def->name, value_max_bytes);
	if (cell->expires_ms < 0)
		return errbuf_set(e, ERR_INVALID, "an expiry before 1970");
	err = check_stamp(cell->stamp_us, e);
	if (err)
		return err;
	cell->key = store_parts_put(key_bytes, key, def->key_count);
	cell->column = store_parts_put(column_bytes, column, def->column_count);
	return add_checked_cell(write, cell);
}

int store_cell_put(struct store_write *write, enum table table, const struct store_parts *key,
		   const struct store_parts *column, struct slice value, int64_t stamp_us,
		   int64_t expires_ms)
{
	struct store_cell_write cell = {
		.action = CELL_PUT,
		.table = table,
		.value = value,
		.stamp_us = stamp_us,
		.expires_ms = expires_ms,
	};
	return add_cell(write, CELL_STAMPED, key, column, &cell);
}

int store_cell_delete(struct store_write *write, enum table table, const struct store_parts *key,
		      const struct store_parts *column, int64_t stamp_us)
{
	struct store_cell_write cell = {
		.action = CELL_DELETE,
		.table = table,
		.stamp_us = stamp_us,
	};
	return add_cell(write, CELL_STAMPED, key, column, &cell);
}

int store_row_delete(struct store_write *write, enum table table, const struct store_parts *key,
		     int64_t stamp_us)
{
	char key_bytes[STORE_KEY_MAX_BYTES];
	struct store_cell_write cell = {
		.action = CELL_ROW_DELETE,
		.table = table,
		.stamp_us = stamp_us,
	};
	int err = check_cell_kind(table, CELL_STAMPED, &write->error);
	if (!err)
		err = store_check_key(table, key, &write->error);
	if (!err)
		err = check_stamp(stamp_us, &write->error);
	if (err)
		return err;
	cell.key = store_parts_put(key_bytes, key, schema[table].key_count);
	return add_checked_cell(write, &cell);
}

int store_set_add(struct store_write *write, enum table table, const struct store_parts *key,
		  const struct store_parts *column, struct slice element)
{
	struct store_cell_write cell = {.action = CELL_ADD, .table = table, .value = element};
	if (element.len == 0)
		return errbuf_set(&write->error, ERR_INVALID, "an empty element of a set");
	if (element.len > STORE_SET_ELEMENT_MAX_BYTES)
		return errbuf_set(&write->error, ERR_LIMIT, "an element of %zu bytes; at most %d",
				  element.len, STORE_SET_ELEMENT_MAX_BYTES);
	return add_cell(write, CELL_SET, key, column, &cell);
}

static int add_conditional(struct store_write *write, const struct store_parts *key,
			   const struct store_parts *column, struct store_cell_write *cell,
			   struct store_write_cond **outcome)
{
	cell->outcome = arena_zalloc(&write->arena, sizeof(*cell->outcome));
	if (!cell->outcome)
		return errbuf_set(&write->error, ERR_LIMIT, "the batch is full");
	int err = add_cell(write, CELL_CONDITIONAL, key, column, cell);
	if (!err)
		*outcome = cell->outcome;
	return err;
}

int store_cell_put_if(struct store_write *write, enum table table, const struct store_parts *key,
		      const struct store_parts *column, uint64_t version, struct slice value,
		      int64_t expires_ms, struct store_write_cond **outcome)
{
	struct store_cell_write cell = {
		.action = CELL_PUT_IF,
		.table = table,
		.value = value,
		.version = version,
		.expires_ms = expires_ms,
	};
	return add_conditional(write, key, column, &cell, outcome);
}

int store_cell_delete_if(struct store_write *write, enum table table, const struct store_parts *key,
			 const struct store_parts *column, uint64_t version,
			 struct store_write_cond **outcome)
{
	struct store_cell_write cell = {
		.action = CELL_DELETE_IF,
		.table = table,
		.version = version,
	};
	if (version == 0)
		return errbuf_set(&write->error, ERR_INVALID, "a deletion of version 0");
	return add_conditional(write, key, column, &cell, outcome);
}

int store_log_put(struct store_write *write, enum table table, const struct store_parts *key,
		  const struct store_parts *column, struct slice value)
{
	struct store_cell_write cell = {.action = CELL_LOG_PUT, .table = table, .value = value};
	return add_cell(write, CELL_LOG, key, column, &cell);
}

/* How many parts a bound gives. */
static size_t bound_parts(const struct store_parts *bound, size_t count)
{
	size_t given = 0;
	while (given < count && bound->part[given].data)
		given++;
	return given;
}

static int check_bound(enum table table, const struct store_parts *bound, struct errbuf *e)
{
	return check_column(table, bound, bound_parts(bound, schema[table].column_count), e);
}

int store_log_remove(struct store_write *write, enum table table, const struct store_parts *key,
		     const struct store_parts *from, const struct store_parts *to)
{
	char key_bytes[STORE_KEY_MAX_BYTES], from_bytes[STORE_COLUMN_MAX_BYTES];
	char to_bytes[STORE_COLUMN_MAX_BYTES];
	struct errbuf *e = &write->error;
	struct store_cell_write cell = {.action = CELL_LOG_REMOVE, .table = table};
	int err = check_cell_kind(table, CELL_LOG, e);
	if (err)
		return err;
	const struct table_def *def = &schema[table];
	err = store_check_key(table, key, e);
	if (!err)
		err = check_bound(table, from, e);
	if (!err)
		err = check_bound(table, to, e);
	if (err)
		return err;
	cell.key = store_parts_put(key_bytes, key, def->key_count);
	cell.column = store_parts_put(from_bytes, from, def->column_count);
	cell.to = store_parts_put(to_bytes, to, def->column_count);
	cell.to_end = !to->part[0].data;
	return add_checked_cell(write, &cell);
}

int store_series_forget(struct store_write *write, const uint64_t *handles, size_t n)
{
	int err = store_check_group(n, &write->error);
	if (err)
		return err;
	return added(write, write->store->engine->add_forget(write, handles, n));
}

void store_write_next_stage(struct store_write *write)
{
	if (!write->stage_requests)
		return;
	write->stage_requests = 0;
	write->store->engine->next_stage(write);
}

static void run_empty_write(struct task *task)
{
	store_write_end(CONTAINER_OF(task, struct store_write, task));
}

int store_write_submit(struct store_write *write)
{
	ASSERT_IS(store_write, write);
	ASSERT(write->executor && write->done && !write->in_flight);
	write->stages_kept = 0;
	write->err = 0;
	if (write->rekeys && (write->stage_count > 1 || write->stage_requests > 1))
		return errbuf_set(&write->error, ERR_INVALID,
				  "what re-keys samples is alone in its batch");
	write->in_flight = true;
	if (!write->stamp_us && write->store->engine->can & STORE_SAMPLE_STAMPS)
		write->stamp_us = store_stamp(write->store);
	if (write->stage_count) {
		int err = write->store->engine->write_submit(write);
		if (err)
			write->in_flight = false;
		return err;
	}
	write->task.run = run_empty_write;
	write->executor->post(write->executor, &write->task);
	return 0;
}

bool store_is_shared(const struct store *store)
{
	return store->engine->can & STORE_SHARED;
}

int64_t store_stamp(struct store *store)
{
	return store->engine->stamp(store);
}

/* ---- Reading ------------------------------------------------------------------------------- */

struct store_read *store_read_new(struct store *store, size_t max_bytes)
{
	ASSERT(max_bytes > 0);
	struct store_read *read = mem_zalloc(sizeof(*read));
	read->magic = MAGIC_OF(store_read);
	read->store = store;
	arena_init(&read->arena, max_bytes);
	return read;
}

void store_read_reset(struct store_read *read)
{
	ASSERT_IS(store_read, read);
	ASSERT(!read->in_flight);
	read->error.text[0] = 0;
	arena_reset(&read->arena);
	read->requests = read->last_request = NULL;
	read->work = (struct store_read_work){0};
	read->cancelled = false;
	read->err = 0;
}

const char *store_read_sentence(const struct store_read *read, int err)
{
	return read->error.text[0] ? read->error.text : err_text(err);
}

void store_read_free(struct store_read *read)
{
	if (!read)
		return;
	ASSERT_IS(store_read, read);
	if (read->in_flight) {
		ASSERT(!read->dropped);
		read->dropped = true;
		store_read_cancel(read);
		return;
	}
	read->magic = 0;
	arena_release(&read->arena);
	mem_free(read);
}

void store_read_end(struct store_read *read)
{
	ASSERT_IS(store_read, read);
	ASSERT(read->in_flight);
	read->in_flight = false;
	if (read->dropped)
		store_read_free(read);
	else
		read->done(read, read->err);
}

struct store_request *store_read_add(struct store_read *read, enum store_op op)
{
	ASSERT(!read->in_flight);
	struct store_request *request = arena_zalloc(&read->arena, sizeof(*request));
	if (!request)
		return NULL;
	request->op = op;
	if (op == STORE_STATS) {
		request->stats = arena_zalloc(&read->arena, sizeof(*request->stats));
		if (!request->stats)
			return NULL;
	}
	if (read->last_request)
		read->last_request->next = request;
	else
		read->requests = request;
	read->last_request = request;
	return request;
}

static int check_handles(size_t count)
{
	return count > STORE_HANDLES_MAX ? ERR_LIMIT : 0;
}

static int check_range(const struct store_range *range)
{
	int err = check_samples(range->table, range->period_ms, NULL);
	if (err)
		return err;
	if (range->start_ms > range->end_ms ||
	    range->fields >= 1u << schema[range->table].field_count)
		return ERR_INVALID;
	return check_handles(range->handle_count);
}

static int check_last_before(const struct store_last_before *last)
{
	int err = check_samples(last->table, last->period_ms, NULL);
	if (err)
		return err;
	return last->look_back_ms < 0 ? ERR_INVALID : check_handles(last->handle_count);
}

static int check_aggregate(struct store_aggregate *aggregate)
{
	int err = check_samples(aggregate->table, aggregate->period_ms, NULL);
	if (err)
		return err;
	if (aggregate->start_ms > aggregate->end_ms || aggregate->window_ms <= 0 ||
	    aggregate->field >= schema[aggregate->table].field_count)
		return ERR_INVALID;
	uint64_t span = (uint64_t)aggregate->end_ms - (uint64_t)aggregate->start_ms;
	uint64_t window = (uint64_t)aggregate->window_ms;
	uint64_t count = span / window + (span % window != 0);
	if (count > STORE_WINDOWS_MAX || aggregate->handle_count > STORE_WINDOWS_MAX ||
	    count * aggregate->handle_count > STORE_WINDOWS_MAX)
		return ERR_LIMIT;
	aggregate->window_count = (size_t)count;
	return check_handles(aggregate->handle_count);
}

static int check_shares(const struct store_shares *shares)
{
	int err = check_samples(shares->table, shares->period_ms, NULL);
	return err ? err : check_handles(shares->handle_count);
}

static int check_cell_get(const struct store_cell_get *get)
{
	if (!is_kind(get->table, TABLE_CELLS))
		return ERR_INVALID;
	int err = store_check_key(get->table, &get->key, NULL);
	if (err)
		return err;
	return check_column(get->table, &get->column, schema[get->table].column_count, NULL);
}

static int check_cell_scan(const struct store_cell_scan *scan)
{
	if (!is_kind(scan->table, TABLE_CELLS))
		return ERR_INVALID;
	int err = store_check_key(scan->table, &scan->key, NULL);
	if (!err)
		err = check_bound(scan->table, &scan->from, NULL);
	if (!err)
		err = check_bound(scan->table, &scan->to, NULL);
	return err;
}

static bool length_valid(struct slice name, size_t max_bytes)
{
	return name.len >= 1 && name.len <= max_bytes;
}

/* As tags_encode writes it. */
static size_t store_escaped_bytes(struct slice name)
{
	size_t bytes = name.len;
	for (size_t i = 0; i < name.len; i++)
		bytes += name.data[i] == ',' || name.data[i] == '=' || name.data[i] == '\\';
	return bytes;
}

/* What tags_sort_and_check promises, but for the characters. */
static int store_check_tags(struct tags tags)
{
	if (tags.count > TAGS_MAX)
		return ERR_LIMIT;
	size_t text_bytes = 0;
	for (size_t i = 0; i < tags.count; i++) {
		const struct tag *tag = &tags.list[i];
		if (!length_valid(tag->key, TAG_KEY_MAX_BYTES) ||
		    !length_valid(tag->value, TAG_VALUE_MAX_BYTES))
			return ERR_INVALID;
		if (i && slice_compare(tags.list[i - 1].key, tag->key) >= 0)
			return ERR_INVALID;
		text_bytes += store_escaped_bytes(tag->key) + store_escaped_bytes(tag->value) + 2;
	}
	return text_bytes > TAGS_TEXT_MAX_BYTES ? ERR_LIMIT : 0;
}

static int check_series_open(const struct store_series_open *open)
{
	if (!tenant_valid(open->tenant) || open->count == 0)
		return ERR_INVALID;
	if (open->count > STORE_GROUP_MAX)
		return ERR_LIMIT;
	for (size_t i = 0; i < open->count; i++) {
		if (!length_valid(open->metrics[i], METRIC_MAX_BYTES))
			return ERR_INVALID;
	}
	return store_check_tags(open->tags);
}

static int check_series_news(const struct store_series_news *news)
{
	return news->tenant.len && news->metric.len ? 0 : ERR_INVALID;
}

static int check_op_offered(struct store_read *read, enum store_op op)
{
	switch (op) {
	case STORE_SERIES_NEWS:
		return check_offered(read->store, STORE_NEWS, "has no news of series",
				     &read->error);
	case STORE_SHARES:
		return check_offered(read->store, STORE_HAS_SHARES, "does not know shares",
				     &read->error);
	case STORE_STATS:
		return check_offered(read->store, STORE_COUNTS, "does not count what it has",
				     &read->error);
	case STORE_VERIFY:
		return check_offered(read->store, STORE_VERIFIES, "does not verify what it has",
				     &read->error);
	default:
		return 0;
	}
}

static int check_request(struct store_read *read, struct store_request *request)
{
	int err = check_op_offered(read, request->op);
	if (err)
		return err;
	if (request->token.len > STORE_TOKEN_MAX_BYTES)
		return ERR_INVALID;
	switch (request->op) {
	case STORE_RANGE:
		return check_range(&request->range);
	case STORE_LAST_BEFORE:
		return check_last_before(&request->last_before);
	case STORE_AGGREGATE:
		return check_aggregate(&request->aggregate);
	case STORE_CELL_GET:
		return check_cell_get(&request->cell_get);
	case STORE_CELL_SCAN:
		return check_cell_scan(&request->cell_scan);
	case STORE_ENUMERATE:
		return (unsigned)request->enumerate.table < TABLE_COUNT ? 0 : ERR_INVALID;
	case STORE_SERIES_OPEN:
		return check_series_open(&request->series_open);
	case STORE_SERIES_NEWS:
		return check_series_news(&request->series_news);
	case STORE_SERIES_DESCRIBE:
		return check_handles(request->series_describe.count);
	case STORE_SHARES:
		return check_shares(&request->shares);
	case STORE_PERIODS:
		return is_kind(request->periods.table, TABLE_SAMPLES) ? 0 : ERR_INVALID;
	case STORE_SERIES_LIST:
	case STORE_STATS:
	case STORE_VERIFY:
		return 0;
	}
	return ERR_INVALID;
}

/* What an earlier submission finished leaves the list; the caller still has its pointer. */
static void unlink_finished(struct store_read *read)
{
	struct store_request **link = &read->requests;
	read->last_request = NULL;
	while (*link) {
		if ((*link)->ran && !(*link)->more) {
			*link = (*link)->next;
			continue;
		}
		read->last_request = *link;
		link = &(*link)->next;
	}
}

static int check_requests(struct store_read *read)
{
	for (struct store_request *r = read->requests; r; r = r->next) {
		r->err = check_request(read, r);
		if (r->err)
			return r->err;
	}
	return 0;
}

static void run_empty_read(struct task *task)
{
	store_read_end(CONTAINER_OF(task, struct store_read, task));
}

/* Once the engine has taken a read, it is no longer ours to look at: so `ran` is set before, and a
 * refusal takes it back. `more` of a request that goes on is restored from it having run. */
int store_read_submit(struct store_read *read)
{
	ASSERT_IS(store_read, read);
	ASSERT(read->executor && read->done && !read->in_flight);
	unlink_finished(read);
	int err = check_requests(read);
	if (err)
		return err;
	err = read_own(read);
	if (err)
		return err;
	read->err = 0;
	read->in_flight = true;
	if (!read->requests) {
		read->task.run = run_empty_read;
		read->executor->post(read->executor, &read->task);
		return 0;
	}
	for (struct store_request *r = read->requests; r; r = r->next) {
		r->resumed = r->ran;
		r->ran = true;
		r->more = false;
	}
	err = read->store->engine->read_submit(read);
	if (!err)
		return 0;
	read->in_flight = false;
	for (struct store_request *r = read->requests; r; r = r->next)
		r->ran = r->more = r->resumed;
	return err;
}

void store_read_cancel(struct store_read *read)
{
	read->cancelled = true;
}

/* ---- Backup --------------------------------------------------------------------------------- */

int store_backup_begin(struct store *store, uint64_t growth_max_bytes, struct store_backup **backup,
		       struct errbuf *e)
{
	int err = check_offered(store, STORE_BACKS_UP, "backs nothing up", e);
	return err ? err : store->engine->backup_begin(store, growth_max_bytes, backup, e);
}

int store_backup_read(struct store_backup *backup, void *to, size_t max_bytes, size_t *bytes,
		      struct errbuf *e)
{
	ASSERT(max_bytes > 0);
	return backup->store->engine->backup_read(backup, to, max_bytes, bytes, e);
}

int store_backup_look(struct store_backup *backup, struct store_backup_cost *cost, struct errbuf *e)
{
	return backup->store->engine->backup_look(backup, cost, e);
}

void store_backup_end(struct store_backup *backup)
{
	if (backup)
		backup->store->engine->backup_end(backup);
}

/* ---- Life ---------------------------------------------------------------------------------- */

void store_close(struct store *store)
{
	if (store)
		store->engine->close(store);
}

uint64_t store_series_generation(struct store *store)
{
	return store->engine->series_generation(store);
}
