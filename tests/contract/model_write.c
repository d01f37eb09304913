#include <math.h>

#include "model.h"

/* A batch as one side has it. Both sides build theirs from the same random numbers. */
struct batch {
	struct store_write *write;
	struct store_write_cond *outcomes[8];
	size_t leases[8]; /* the cell that each outcome is of */
	size_t outcome_count;
	int submit_err, err;
};

enum { PENDING = 1, MODEL_TIMES_MAX = 150 };

static void write_done(struct store_write *write, int err)
{
	((struct batch *)write->owner)->err = err;
}

/* ---- Values -------------------------------------------------------------------------------- */

static struct value special(struct model *model)
{
	static const uint64_t nans[] = {UINT64_C(0x7ff8000000000000), UINT64_C(0x7ff0000000000002),
					UINT64_C(0xfff8deadbeefcafe)};
	switch (pick(model, 9)) {
	case 0:
		return (struct value){nans[pick(model, ARRAY_LEN(nans))], VALUE_F64};
	case 1:
		return value_f64(chance(model, 50) ? INFINITY : -INFINITY);
	case 2:
		return value_f64(-0.0);
	case 3:
		return value_i64(INT64_C(9007199254740993) - (int64_t)pick(model, 3));
	case 4:
		return value_u64(UINT64_C(1) << 63);
	case 5:
		return value_u64(UINT64_MAX - pick(model, 2));
	case 6:
		return value_i64(INT64_MIN + (int64_t)pick(model, 2));
	case 7:
		return value_i64(INT64_MAX);
	default:
		return value_f64(0.1);
	}
}

static struct value pick_integer(struct model *model, size_t series, uint64_t r)
{
	int64_t n = (int64_t)r - 500;
	if (chance(model, 20))
		n = INT64_C(9007199254740993) - (int64_t)pick(model, 3);
	return series % 8 == 1 ? value_i64(n) : value_u64(n < 0 ? r : (uint64_t)n);
}

/* Each series has a manner, so that its blocks look like some kind of data; some have none. */
static struct value pick_value(struct model *model, size_t series, size_t field, int64_t ts_ms)
{
	uint64_t r = pick(model, 1000);
	if (model_integers_only(series))
		return pick_integer(model, series, r);
	if (pick(model, 100) < (series % 3 ? 1 : 20))
		return special(model);
	switch ((series + field) % 7) {
	case 0:
		return value_i64((int64_t)r - 500);
	case 1:
		return value_u64((uint64_t)ts_ms / 1000 * 125 + r % 3);
	case 2:
		return value_f64((double)((int64_t)r - 500) / 4);
	case 3:
		return value_i64(42);
	case 4:
		return value_f64(r % 2 ? 477.0 : 0.0);
	case 5:
		return value_f64((double)r / 100);
	default:
		return r % 2 ? value_i64((int64_t)r) : value_f64((double)r / 8);
	}
}

/* About the same number, of a type that the field takes. */
static struct value fit(struct value value, enum field_type type)
{
	if (field_takes(type, value.type))
		return value;
	return type == FIELD_REAL ? value_f64(value_as_f64(value)) : value_u64(value.bits);
}

static void pick_values(struct model *model, const size_t *series, size_t n, enum table table,
			int64_t ts_ms, struct value *values)
{
	size_t fields = schema[table].field_count;
	unsigned holes = chance(model, 50) ? 0 : (unsigned)pick(model, 60);
	for (size_t i = 0; i < n; i++) {
		for (size_t f = 0; f < fields; f++) {
			values[i * fields + f] = fit(pick_value(model, series[i], f, ts_ms),
						     schema[table].fields[f].type);
			if (chance(model, holes))
				values[i * fields + f] = (struct value){0, VALUE_NONE};
		}
	}
}

/* ---- Requests ------------------------------------------------------------------------------ */

/* Series that are registered: a whole group in its order, a part of it, or some of several groups
 * that have the same parity, for those share their retention. */
static size_t pick_series(struct model *model, const struct side *side, size_t *series)
{
	size_t n = 0, g = pick(model, MODEL_GROUPS);
	const struct model_group *group = &model_groups[g];
	unsigned manner = (unsigned)pick(model, 4);
	unsigned kept = (unsigned)pick(model, 100);
	for (size_t i = 0; manner < 3 && i < group->count; i++) {
		bool wanted = manner < 2 || chance(model, kept);
		if (side->handles[group->first + i] && wanted)
			series[n++] = group->first + i;
	}
	for (size_t tries = pick(model, 8); manner == 3 && tries; tries--) {
		size_t s = pick(model, MODEL_SERIES);
		if (model_group_of(s) % 2 == g % 2 && side->handles[s])
			series[n++] = s;
	}
	return n;
}

static void handles_of(const struct side *side, const size_t *series, size_t n, uint64_t *handles)
{
	for (size_t i = 0; i < n; i++)
		handles[i] = side->handles[series[i]];
}

static int append(struct model *model, struct side *side, struct batch *batch, size_t place,
		  const size_t *series, size_t n, int64_t ts_ms)
{
	uint64_t handles[MODEL_SERIES];
	struct value values[MODEL_SERIES * TABLE_FIELDS_MAX];
	const struct store_target *p = &model_places[place];
	handles_of(side, series, n, handles);
	pick_values(model, series, n, p->table, ts_ms, values);
	for (size_t i = 0; i < n; i++)
		model->ever[series[i]][place] = true;
	return store_append(
		batch->write,
		&(struct store_target){p->table,
				       model->retention[model_group_of(series[0]) % 2][place],
				       p->period_ms},
		ts_ms, handles, n, values);
}

static unsigned fields_of(enum table table, enum value_type type)
{
	unsigned fields = 0;
	for (size_t f = 0; f < schema[table].field_count; f++)
		fields |= (unsigned)field_takes(schema[table].fields[f].type, type) << f;
	return fields;
}

/* One that suits all of the series and some field; false: there is none. */
static bool pick_type(struct model *model, enum table table, const size_t *series, size_t n,
		      enum value_type *type)
{
	unsigned wanted = 0;
	for (size_t i = 0; i < n; i++) {
		if (model_integers_only(series[i]))
			wanted |= series[i] % 8 == 1 ? 1u << VALUE_I64 : 1u << VALUE_U64;
	}
	*type = (enum value_type)(VALUE_F64 + pick(model, 3));
	if (wanted)
		*type = wanted & 1u << VALUE_I64 ? VALUE_I64 : VALUE_U64;
	return !(wanted & (wanted - 1)) && fields_of(table, *type);
}

static uint64_t pick_bits(struct model *model, enum value_type type)
{
	uint64_t r = pick(model, 1000);
	return type == VALUE_F64 ? value_f64((double)r / 8).bits : r;
}

/* All times at once, of some fields. */
static int append_columns(struct model *model, struct side *side, struct batch *batch, size_t place,
			  const size_t *series, size_t n, enum value_type type,
			  const int64_t *ts_ms, size_t times)
{
	static uint64_t bits[MODEL_SERIES * TABLE_FIELDS_MAX * MODEL_TIMES_MAX];
	uint64_t handles[MODEL_SERIES];
	const struct store_target *p = &model_places[place];
	unsigned fields = 1 + (unsigned)pick(model, (1u << schema[p->table].field_count) - 1);
	unsigned suitable = fields_of(p->table, type);
	fields = fields & suitable ? fields & suitable : suitable;
	handles_of(side, series, n, handles);
	for (size_t i = 0; i < n * fields_count(fields) * times; i++)
		bits[i] = pick_bits(model, type);
	for (size_t i = 0; i < n; i++)
		model->ever[series[i]][place] = true;
	struct store_columns columns = {ts_ms, times, fields, handles, n, type, bits};
	return store_append_columns(
		batch->write,
		&(struct store_target){p->table,
				       model->retention[model_group_of(series[0]) % 2][place],
				       p->period_ms},
		&columns);
}

/* One time, or a run of them as a poll or a backfill brings. */
static int add_append(struct model *model, struct side *side, struct batch *batch)
{
	size_t series[MODEL_SERIES], n = pick_series(model, side, series);
	size_t place = model_pick_place(model);
	int64_t ts_ms = model_pick_ts(model, place);
	size_t times = chance(model, 80) ? 1 : 1 + pick(model, MODEL_TIMES_MAX);
	int64_t every_ms = chance(model, 50) ? 10000 : 1 + (int64_t)pick(model, 3 * HOUR_MS);
	bool by_column = chance(model, 50);
	enum value_type type = VALUE_U64;
	int64_t all_ms[MODEL_TIMES_MAX];
	int err = 0;
	if (ts_ms > STORE_TS_MAX - (int64_t)MODEL_TIMES_MAX * 3 * HOUR_MS)
		times = 1;
	for (size_t i = 0; i < times; i++)
		all_ms[i] = ts_ms + (int64_t)i * every_ms;
	by_column = n && times > 1 && by_column &&
		    pick_type(model, model_places[place].table, series, n, &type);
	if (n)
		model_trace(
			model, "append %zu times from %lld, %zu series from %zu, %s %lld%s", times,
			(long long)ts_ms, n, series[0], schema[model_places[place].table].name,
			(long long)model_places[place].period_ms, by_column ? ", by column" : "");
	if (by_column)
		return append_columns(model, side, batch, place, series, n, type, all_ms, times);
	for (size_t i = 0; n && !err && i < times; i++)
		err = append(model, side, batch, place, series, n, all_ms[i]);
	return err;
}

static int add_delete_range(struct model *model, struct side *side, struct batch *batch)
{
	uint64_t handles[MODEL_SERIES];
	size_t series[MODEL_SERIES], n = pick_series(model, side, series);
	size_t place = model_pick_place(model);
	int64_t start_ms = model_pick_ts(model, place), end_ms = model_pick_ts(model, place);
	if (start_ms > end_ms) {
		int64_t other = start_ms;
		start_ms = end_ms;
		end_ms = other;
	}
	if (chance(model, 20)) {
		start_ms = INT64_MIN;
		end_ms = INT64_MAX;
	}
	if (n == 0)
		return 0;
	model_trace(model, "delete %lld to %lld, %zu series from %zu, %s %lld", (long long)start_ms,
		    (long long)end_ms, n, series[0], schema[model_places[place].table].name,
		    (long long)model_places[place].period_ms);
	handles_of(side, series, n, handles);
	return store_delete_range(
		batch->write,
		&(struct store_target){.table = model_places[place].table,
				       .period_ms = model_places[place].period_ms},
		handles, n, start_ms, end_ms);
}

/* Few stamps, so that many are equal; none older than the half of a tombstone's life. */
static int64_t pick_stamp(struct model *model)
{
	int64_t hour_us = INT64_C(3600000000);
	int64_t now_us = model->clock.wall_us;
	int64_t back = chance(model, 80) ? 0 : (int64_t)pick(model, 11);
	return floor_to(now_us, hour_us) - back * hour_us + (int64_t)pick(model, 4);
}

static int64_t pick_expiry(struct model *model)
{
	int64_t now_ms = clock_wall_ms(&model->clock.clock);
	if (chance(model, 60))
		return 0;
	if (chance(model, 20))
		return now_ms + (int64_t)pick(model, 2000) - 1000;
	return now_ms + (int64_t)pick(model, chance(model, 50) ? 10 * 60000 : 3 * DAY_MS);
}

static struct slice pick_bytes(struct model *model)
{
	static const char *const texts[] = {"", "a", "b", "ab", "value"};
	static char large[20000];
	if (chance(model, 90))
		return slice_of(texts[pick(model, ARRAY_LEN(texts))]);
	size_t len = pick(model, sizeof(large));
	memset(large, 'a' + (int)pick(model, 3), sizeof(large));
	return (struct slice){large, len};
}

static int add_stamped(struct model *model, struct batch *batch)
{
	enum table table = model_stamped[pick(model, ARRAY_LEN(model_stamped))];
	size_t k = pick(model, MODEL_KEYS), c = pick(model, MODEL_COLUMNS);
	struct store_parts key = model_key(table, k), column = model_column(table, c);
	int64_t stamp_us = pick_stamp(model), expires_ms = pick_expiry(model);
	struct slice value = pick_bytes(model);
	bool put = chance(model, 75), whole_row = !put && chance(model, 30);
	model->ever_cells[table][k] = true;
	if (whole_row) {
		model_trace(model, "delete row %s key %zu, stamp %lld", schema[table].name, k,
			    (long long)stamp_us);
		return store_row_delete(batch->write, table, &key, stamp_us);
	}
	model_trace(model, "%s %s key %zu column %zu, stamp %lld, expires %lld, %zu bytes",
		    put ? "put" : "delete", schema[table].name, k, c, (long long)stamp_us,
		    (long long)expires_ms, value.len);
	if (put)
		return store_cell_put(batch->write, table, &key, &column, value, stamp_us,
				      expires_ms);
	return store_cell_delete(batch->write, table, &key, &column, stamp_us);
}

static int add_set(struct model *model, struct batch *batch)
{
	static const char *const elements[] = {"raw", "max", "min", "avg-1h", "ra", "rawx"};
	size_t k = pick(model, MODEL_KEYS), c = pick(model, MODEL_COLUMNS);
	struct store_parts key = model_key(TABLE_METRIC_NAMES, k);
	struct store_parts column = model_column(TABLE_METRIC_NAMES, c);
	const char *element = elements[pick(model, ARRAY_LEN(elements))];
	model->ever_cells[TABLE_METRIC_NAMES][k] = true;
	model_trace(model, "add %s to key %zu column %zu", element, k, c);
	return store_set_add(batch->write, TABLE_METRIC_NAMES, &key, &column, slice_of(element));
}

/* With the version that it has, with one that it had, or as if it were not there. */
static int add_conditional(struct model *model, struct side *side, struct batch *batch)
{
	size_t lease = pick(model, MODEL_LEASES);
	struct store_parts key = model_key(TABLE_LEASES, 0);
	struct store_parts column = model_column(TABLE_LEASES, lease);
	uint64_t versions[] = {side->leases[lease].version, side->leases[lease].stale, 0};
	size_t which = pick(model, 3);
	uint64_t version = versions[which];
	struct slice value = pick_bytes(model);
	int64_t expires_ms = pick_expiry(model);
	struct store_write_cond **outcome = &batch->outcomes[batch->outcome_count];
	bool put = chance(model, 70) || version == 0;
	if (batch->outcome_count == ARRAY_LEN(batch->outcomes))
		return 0;
	model->ever_cells[TABLE_LEASES][0] = true;
	model_trace(model, "%s lease %zu if version %llu (%zu), expires %lld",
		    put ? "put" : "delete", lease, (unsigned long long)version, which,
		    (long long)expires_ms);
	batch->leases[batch->outcome_count++] = lease;
	if (put)
		return store_cell_put_if(batch->write, TABLE_LEASES, &key, &column, version, value,
					 expires_ms, outcome);
	return store_cell_delete_if(batch->write, TABLE_LEASES, &key, &column, version, outcome);
}

/* A bound of a removal, of all parts or none. */
static struct store_parts pick_end(struct model *model)
{
	if (chance(model, 20))
		return (struct store_parts){0};
	return model_column(TABLE_QUEUE, pick(model, MODEL_COLUMNS));
}

static int add_log(struct model *model, struct batch *batch)
{
	size_t k = pick(model, MODEL_KEYS), c = pick(model, MODEL_COLUMNS);
	struct store_parts key = model_key(TABLE_QUEUE, k);
	struct store_parts column = model_column(TABLE_QUEUE, c);
	struct store_parts from = pick_end(model), to = pick_end(model);
	struct slice value = pick_bytes(model);
	bool put = chance(model, 75);
	model->ever_cells[TABLE_QUEUE][k] = true;
	model_trace(model, "%s of the log, key %zu column %zu, %zu bytes", put ? "put" : "removal",
		    k, c, value.len);
	if (put)
		return store_log_put(batch->write, TABLE_QUEUE, &key, &column, value);
	return store_log_remove(batch->write, TABLE_QUEUE, &key, &from, &to);
}

static int add_request(struct model *model, struct side *side, struct batch *batch)
{
	unsigned kind = (unsigned)pick(model, 100);
	if (chance(model, 10))
		store_write_next_stage(batch->write);
	if (kind < 55)
		return add_append(model, side, batch);
	if (kind < 63)
		return add_delete_range(model, side, batch);
	if (kind < 77)
		return add_stamped(model, batch);
	if (kind < 83)
		return add_log(model, batch);
	if (kind < 90)
		return add_set(model, batch);
	return add_conditional(model, side, batch);
}

/* ---- Both sides ---------------------------------------------------------------------------- */

static void build(struct model *model, struct side *side, struct batch *batch)
{
	*batch = (struct batch){.err = PENDING};
	batch->write = store_write_new(side->store, 32 << 20);
	batch->write->executor = &side->queue.executor;
	batch->write->done = write_done;
	batch->write->in_runs = chance(model, 40);
	for (size_t n = 1 + pick(model, 5); n; n--) {
		int err = add_request(model, side, batch);
		if (err)
			model_differ(model, "%s refuses a request: %s", side->name,
				     batch->write->error.text);
	}
}

/* All are submitted before the first is waited for; a queue that is full is waited for. */
static void submit_all(struct side *side, struct batch *batches, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		batches[i].write->owner = &batches[i];
		while ((batches[i].submit_err = store_write_submit(batches[i].write)) == ERR_BUSY)
			task_queue_wait(&side->queue);
	}
	for (size_t i = 0; i < count; i++) {
		while (!batches[i].submit_err && batches[i].err == PENDING)
			task_queue_wait(&side->queue);
	}
}

static bool same_outcomes(struct model *model, const struct batch *a, const struct batch *b)
{
	for (size_t i = 0; i < a->outcome_count; i++) {
		const struct store_write_cond *x = a->outcomes[i], *y = b->outcomes[i];
		if (x->applied != y->applied || !x->version != !y->version)
			return model_differ(
				model, "lease %zu: applied %d, version %llu; expected %d, %llu",
				a->leases[i], x->applied, (unsigned long long)x->version,
				y->applied, (unsigned long long)y->version);
		if (!slice_equal(x->value, y->value))
			return model_differ(model, "lease %zu: another value", a->leases[i]);
	}
	return true;
}

static void learn_versions(struct side *side, const struct batch *batch)
{
	for (size_t i = 0; i < batch->outcome_count; i++) {
		struct model_lease *lease = &side->leases[batch->leases[i]];
		if (lease->version && lease->version != batch->outcomes[i]->version)
			lease->stale = lease->version;
		lease->version = batch->outcomes[i]->version;
	}
}

static bool same_batch(struct model *model, const struct batch *a, const struct batch *b)
{
	if (a->submit_err || a->err || a->write->stages_kept != b->write->stages_kept)
		return model_differ(model, "a batch: %s, %s (%s), %zu stages; expected %zu",
				    err_text(a->submit_err), err_text(a->err), a->write->error.text,
				    a->write->stages_kept, b->write->stages_kept);
	return same_outcomes(model, a, b);
}

static bool write_batches(struct model *model)
{
	struct batch subject[MODEL_IN_FLIGHT_MAX], reference[MODEL_IN_FLIGHT_MAX];
	size_t count = chance(model, 70) ? 1 : 1 + pick(model, MODEL_IN_FLIGHT_MAX);
	struct random start = model->random;
	bool trace = model->trace;
	for (size_t i = 0; i < count; i++)
		build(model, &model->subject, &subject[i]);
	model->random = start;
	model->trace = false;
	for (size_t i = 0; i < count; i++)
		build(model, &model->reference, &reference[i]);
	model->trace = trace;
	submit_all(&model->subject, subject, count);
	submit_all(&model->reference, reference, count);
	bool same = !model->failure[0];
	for (size_t i = 0; i < count; i++) {
		same = same && same_batch(model, &subject[i], &reference[i]);
		learn_versions(&model->subject, &subject[i]);
		learn_versions(&model->reference, &reference[i]);
		store_write_free(subject[i].write);
		store_write_free(reference[i].write);
	}
	return same;
}

/* ---- Forgetting ---------------------------------------------------------------------------- */

/* Whether a series whose data has expired but is not yet removed can be forgotten is the engine's
 * business, so those are left alone. */
static bool may_forget(struct model *model, size_t series)
{
	int64_t now_ms = clock_wall_ms(&model->clock.clock);
	return model->reference.handles[series] &&
	       (model_count_samples(model, series, now_ms) > 0 ||
		model_count_samples(model, series, INT64_MIN / 2) == 0);
}

static bool forget_on(struct model *model, struct side *side, size_t series)
{
	struct batch batch = {.err = PENDING};
	batch.write = store_write_new(side->store, 65536);
	batch.write->executor = &side->queue.executor;
	batch.write->done = write_done;
	int err = store_series_forget(batch.write, &side->handles[series], 1);
	if (!err)
		submit_all(side, &batch, 1);
	store_write_free(batch.write);
	if (err || batch.submit_err || batch.err)
		return model_differ(model, "%s: forget: %s", side->name, err_text(batch.err));
	return true;
}

/* Every second time its data is deleted first. */
static bool delete_everything(struct model *model, struct side *side, size_t series)
{
	struct batch batch = {.err = PENDING};
	batch.write = store_write_new(side->store, 65536);
	batch.write->executor = &side->queue.executor;
	batch.write->done = write_done;
	int err = 0;
	for (size_t p = 0; !err && p < MODEL_PLACES; p++)
		err = store_delete_range(
			batch.write,
			&(struct store_target){.table = model_places[p].table,
					       .period_ms = model_places[p].period_ms},
			&side->handles[series], 1, INT64_MIN, INT64_MAX);
	if (!err)
		submit_all(side, &batch, 1);
	store_write_free(batch.write);
	if (err || batch.submit_err || batch.err)
		return model_differ(model, "%s: deletion: %s", side->name, err_text(batch.err));
	return true;
}

static bool forget_series(struct model *model)
{
	size_t series = pick(model, MODEL_SERIES);
	bool first_delete = chance(model, 50);
	if (!model->reference.handles[series])
		return true;
	if (first_delete && (!delete_everything(model, &model->subject, series) ||
			     !delete_everything(model, &model->reference, series)))
		return false;
	if (!may_forget(model, series))
		return true;
	model_trace(model, "forget series %zu%s", series, first_delete ? " and its data" : "");
	if (!forget_on(model, &model->subject, series) ||
	    !forget_on(model, &model->reference, series))
		return false;
	/* Finding the group shows whether both agree. */
	return model_open_group(model, model_group_of(series), true);
}

/* ---- Re-keying ----------------------------------------------------------------------------- */

static bool rekey_on(struct model *model, struct side *side, size_t place, size_t parity,
		     enum store_rekey_step step)
{
	const struct store_target *p = &model_places[place];
	struct batch batch = {.err = PENDING};
	uint64_t handles[MODEL_SERIES];
	size_t n = 0;
	for (size_t s = 0; s < MODEL_SERIES; s++) {
		if (side->handles[s] && model_group_of(s) % 2 == parity)
			handles[n++] = side->handles[s];
	}
	batch.write = store_write_new(side->store, 1 << 20);
	batch.write->executor = &side->queue.executor;
	batch.write->done = write_done;
	int err = store_rekey(
		batch.write,
		&(struct store_rekeying){
			.target = {p->table, model->retention[parity][place], p->period_ms},
			.step = step,
			.handles = handles,
			.n = n,
			.start_ms = INT64_MIN,
			.end_ms = INT64_MAX,
			.now_ms = clock_wall_ms(&model->clock.clock)});
	do {
		batch.err = PENDING;
		if (!err && n)
			submit_all(side, &batch, 1);
	} while (batch.err == ERR_RETRY);
	store_write_free(batch.write);
	if (n && (err || batch.submit_err || batch.err))
		return model_differ(model, "%s: re-keying: %s", side->name, err_text(batch.err));
	return true;
}

/* All of a place and parity, which share their class. Nothing is read between the steps: what has
 * been copied lives as long as one of its classes, which the reference does not know. */
static bool rekey(struct model *model)
{
	size_t parity = pick(model, 2), place = model_pick_place(model);
	model->retention[parity][place] = (enum retention_class)pick(model, RETENTION_CLASSES);
	model_trace(model, "re-key what is odd by %zu in %s %lld to class %d", parity,
		    schema[model_places[place].table].name,
		    (long long)model_places[place].period_ms, (int)model->retention[parity][place]);
	for (int step = STORE_REKEY_COPY; step <= STORE_REKEY_CLEAR; step++) {
		if (!rekey_on(model, &model->subject, place, parity, (enum store_rekey_step)step) ||
		    !rekey_on(model, &model->reference, place, parity, (enum store_rekey_step)step))
			return false;
	}
	return true;
}

bool model_write_step(struct model *model)
{
	if (chance(model, 5))
		return forget_series(model);
	return chance(model, 4) ? rekey(model) : write_batches(model);
}
