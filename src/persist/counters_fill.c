/* Values of polls, into the write. */
#include "base/stats.h"
#include "model/counter_key.h"
#include "persist/counters.h"

/* ---- Numbers --------------------------------------------------------------------------------- */

/* What the column is made of; false: that is no such value. */
static bool fit(const struct layout *layout, size_t column, struct value *v)
{
	if (layout->columns[column] == COLUMN_GAUGE)
		return true;
	if (v->type == VALUE_I64 && (int64_t)v->bits >= 0)
		*v = value_u64(v->bits);
	if (v->type == VALUE_F64) {
		double d = value_as_f64(*v);
		if (d >= 0 && d < 0x1p64 && d == (double)(uint64_t)d)
			*v = value_u64((uint64_t)d);
	}
	return v->type == VALUE_U64 && v->bits <= layout->most[column];
}

/* Whether the value is to be written. */
static bool admit(const struct layout *layout, size_t row, size_t column, int64_t ts_ms,
		  struct value *v, struct tally *tally)
{
	struct newest newest = layout_newest(layout, row, column);
	if (layout->columns[column] >= COLUMN_TEXT) {
		tally->refused_name++;
		return false;
	}
	if (!layout_is_open(layout, row, column)) {
		tally->refused_series++;
		return false;
	}
	if (!fit(layout, column, v)) {
		tally->refused_value++;
		return false;
	}
	if (ts_ms == newest.ts_ms && value_equal(*v, newest.value)) {
		tally->repeated++;
		return false;
	}
	if (ts_ms <= newest.ts_ms) {
		tally->refused_order++;
		return false;
	}
	return true;
}

int64_t counters_ttl_ms(const struct counters *c, const struct layout *layout)
{
	return layout->oidset->ttl_ms ? layout->oidset->ttl_ms
				      : atomic_load(c->persister.base.retention_ms);
}

/* A row that is at work. */
struct filling {
	const struct value *values; /* by column */
	int64_t ts_ms;
	size_t count; /* of those that are accepted: */
	uint64_t handles[POLL_COLUMNS_MAX];
	struct value taken[POLL_COLUMNS_MAX];
	uint16_t columns[POLL_COLUMNS_MAX];
};

/* Nearly always all values of a row are numbers as they are stored, of open series, and later than
 * whatever is known of it: then nothing has to be looked up value by value. False: not so. */
static bool admit_whole(const struct layout *layout, size_t row, struct filling *f)
{
	size_t root = layout_root(layout, row), columns = layout->column_count, n = 0;
	const struct layout_row *r = &layout->rows[root];
	const uint8_t *offsets = layout->offsets + root * columns;
	unsigned others = 0;
	if (layout->handles || layout->ts_ms || f->ts_ms <= r->ts_ms)
		return false;
	for (size_t col = 0; col < columns; col++) { /* without a branch on any of it */
		struct value v = f->values[col];
		unsigned there = v.type != VALUE_NONE;
		others |= there & ((unsigned)(v.type != VALUE_U64) |
				   (unsigned)(v.bits > layout->most[col]) |
				   (unsigned)(offsets[col] == PLACE_CLOSED) |
				   (unsigned)(layout->columns[col] >= COLUMN_TEXT));
		f->columns[n] = (uint16_t)col;
		f->handles[n] = r->handles_base + offsets[col];
		f->taken[n] = v;
		n += there;
	}
	f->count = n;
	return !others;
}

static void admit_each(const struct layout *layout, size_t row, struct filling *f,
		       struct tally *tally)
{
	f->count = 0;
	for (size_t col = 0; col < layout->column_count; col++) {
		struct value v = f->values[col];
		if (v.type == VALUE_NONE || !admit(layout, row, col, f->ts_ms, &v, tally))
			continue;
		f->columns[f->count] = (uint16_t)col;
		f->handles[f->count] = layout_handle(layout, row, col);
		f->taken[f->count++] = v;
	}
}

/* One row: its accepted values in one piece. ERR_LIMIT: the write is full, nothing is changed. */
static int fill_row(struct counters *c, const struct item *item, size_t row, struct tally *tally)
{
	struct layout *layout = item->layout;
	struct filling f;
	struct tally before = *tally;
	f.values = item->values.values + row * layout->column_count;
	f.ts_ms = item->values.row_ts_ms[row];
	if (!admit_whole(layout, row, &f))
		admit_each(layout, row, &f, tally);
	if (!f.count)
		return 0;
	struct store_target target = {TABLE_RAW_DATA,
				      retention_class_for(counters_ttl_ms(c, layout)),
				      layout->oidset->frequency_ms};
	int err = store_append(c->batch->write, &target, f.ts_ms, f.handles, f.count, f.taken);
	if (err) {
		*tally = before;
		return err;
	}
	layout_keep(layout, row, f.ts_ms, f.columns, f.count, f.taken);
	if (f.ts_ms > layout->source->writing_ms)
		layout->source->writing_ms = f.ts_ms;
	tally->stored += (int64_t)f.count;
	return 0;
}

bool counters_is_time(const struct counters *c, int64_t ts_ms, int64_t now_ms)
{
	return persist_is_time(ts_ms, now_ms, c->persister.base.future_max_ms);
}

static size_t values_in_row(const struct item *item, size_t row)
{
	size_t count = 0, columns = item->layout->column_count;
	for (size_t col = 0; col < columns; col++)
		count += item->values.values[row * columns + col].type != VALUE_NONE;
	return count;
}

/* ---- A batch --------------------------------------------------------------------------------- */

static int fill_item(struct counters *c, const struct item *item, struct tally *tally)
{
	int64_t now_ms = clock_wall_ms(c->persister.base.clock);
	int err = 0;
	for (size_t r = 0; r < item->layout->row_count && !err; r++) {
		if (counters_is_time(c, item->values.row_ts_ms[r], now_ms))
			err = fill_row(c, item, r, tally);
		else
			tally->refused_time += (int64_t)values_in_row(item, r);
	}
	return err ? err : counters_fill_texts(c, item, now_ms, tally);
}

static void count(const struct tally *tally)
{
	stat_add(STAT_persist_stored, tally->stored);
	stat_add(STAT_persist_repeated, tally->repeated);
	stat_add(STAT_persist_refused_order, tally->refused_order);
	stat_add(STAT_persist_refused_value, tally->refused_value);
	stat_add(STAT_persist_refused_series, tally->refused_series);
	stat_add(STAT_persist_refused_name, tally->refused_name);
	stat_add(STAT_persist_refused_time, tally->refused_time);
}

static bool was_told(const struct counters *c, const struct oid_def *oid)
{
	for (size_t i = 0; i < c->told_count; i++) {
		if (c->told[i] == oid)
			return true;
	}
	return false;
}

/* What the metric is, for those who list what there is. Told again by every process, since it may
 * have changed with the configuration. */
static int tell(struct counters *c, const struct oid_def *oid, const struct oidset *set)
{
	bool counts = oid->type == OID_COUNTER32 || oid->type == OID_COUNTER64;
	const struct catalog_info info = {
		.kind = counts ? KIND_COUNTER : KIND_GAUGE,
		.home = TABLE_RAW_DATA,
		.base_frequency_ms = set->frequency_ms,
	};
	int err = catalog_info_put(c->persister.base.store, c->batch->write, COUNTER_TENANT,
				   oid->name, &info);
	if (err)
		return err;
	c->told = mem_resize_array(c->told, c->told_count + 1, sizeof(*c->told));
	c->told[c->told_count++] = oid;
	return 0;
}

static int tell_opened(struct counters *c)
{
	int err = 0;
	for (size_t g = 0; g < c->group_count && !err; g++) {
		const struct opened_row *row = &c->rows[g];
		const struct layout *layout = row->item->layout;
		for (size_t m = 0; m < c->groups[g].count && !err; m++) {
			const struct oid_def *oid = layout->oids[row->columns[m]];
			if (!was_told(c, oid))
				err = tell(c, oid, layout->oidset);
		}
	}
	return err;
}

/* What has no room is left for the next write, beginning with its first row: those rows that are in
 * this one are passed over then, as repeated. */
void counters_fill(struct counters *c)
{
	struct tally tally = {0};
	int err = c->open_begun ? catalog_open_add_names(&c->open, c->batch->write) : 0;
	err = err ? err : tell_opened(c);
	size_t i = 0;
	while (!err && i < c->count) {
		if (c->items[i].layout)
			err = fill_item(c, &c->items[i], &tally);
		i += !err;
	}
	if (err == ERR_LIMIT)
		err = 0;
	count(&tally);
	c->batch->filled = i;
	/* Above all ERR_NOT_FOUND: series that were deleted meanwhile are opened again. */
	if (err)
		counters_forget(c);
	counters_finish(c, err);
}
