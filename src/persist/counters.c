/* The persister of counters (E: CassandraPollPersister): raw data value by value, and every few
 * minutes what follows from it.
 *
 * A batch goes through three steps. Series that are not known here are opened; their newest stored
 * values are read, so that the order can be tested; then the values are put into the write. Most
 * batches have only the last one.
 *
 * Order. A value is accepted if it is later than the newest accepted one of its series; what is
 * equal to that in time and value was written before and is passed over; all else is refused and
 * counted. So what is stored has one order, whoever reads it. Accepted means put into a write: if
 * that fails, everything remembered is dropped and read from the store again. */
#include "base/cursor.h"
#include "base/stats.h"
#include "model/counter_key.h"
#include "persist/derive.h"
#include "persist/layouts.h"
#include "persist/persister.h"
#include "rate/rate.h"
#include "wire/json.h"

enum {
	TAGS_IN_ALL = 2 + OIDSET_PATH_MAX, /* device, oidset, path */
	RESTORE_MAX_BYTES = 256 << 20,
	TEXT_JSON_MAX_BYTES = 8 * POLL_TEXT_MAX_BYTES,
	ASK_AGAIN_MS = 60000, /* after a limit of the catalog was reached */
};

#define TENANT SLICE("snmp")

struct item {
	struct layout *layout;
	struct poll_names names; /* `columns` NULL: not decoded */
	struct poll_values values;
	size_t first_group, group_count; /* of its rows that are opened */
};

struct restoring;

struct opened_row {
	struct item *item;
	size_t row;
	const uint16_t *columns; /* by metric of the group */
};

struct counters {
	struct persister persister;
	struct layouts layouts;
	struct persist_batch *batch; /* NULL: none is at work */
	struct item *items;
	size_t count; /* items of this batch that are taken on */
	/* Rows to open, and the groups that ask for them. */
	struct opened_row *rows;
	struct catalog_group *groups;
	size_t group_count;
	struct catalog_open open;
	bool open_begun; /* and not finished */
	struct store_read *restore;
	struct restoring *restorings;
	struct deriver *deriver;
	uint64_t generation; /* of the store's series, when it was last looked at */
	/* OIDs whose kind and home the catalog was told of by this process. */
	const struct oid_def **told;
	size_t told_count;
};

static struct counters *of(struct persister *persister)
{
	return CONTAINER_OF(persister, struct counters, persister);
}

static void finish(struct counters *c, int err)
{
	struct persist_batch *batch = c->batch;
	if (err && c->open_begun) {
		catalog_open_finish(&c->open, ERR_CANCELLED);
		c->open_begun = false;
	}
	c->batch = NULL;
	batch->done(batch, err);
}

/* Of a worker; it comes back from the store, by and by. */
static void forget_all(struct counters *c)
{
	layouts_clear(&c->layouts);
	c->told_count = 0;
}

/* Whose series were deleted has no newest values either. */
static void heed_deletions(struct counters *c)
{
	uint64_t generation = store_series_generation(c->persister.base.store);
	if (generation != c->generation)
		forget_all(c);
	c->generation = generation;
}

/* ---- Taking on ------------------------------------------------------------------------------- */

static void set_aside(struct counters *c, struct persist_item *item, const struct errbuf *e)
{
	const char *copy = arena_printf(&c->batch->arena, "%s", e->text);
	item->aside = copy && *copy ? copy : "it is damaged";
}

/* Scalars have no path, everything else all of it. */
static int check_paths(const struct persist_item *item, const struct poll_names *names,
		       struct errbuf *e)
{
	size_t parts = item->oidset->path_tag_count;
	for (size_t r = 0; r < item->poll.row_count; r++) {
		if (names->rows[r].part_count && names->rows[r].part_count != parts)
			return errbuf_set(e, ERR_INVALID,
					  "row %zu has a path of %zu parts, in OIDSet " SHOWN
					  " it has %zu",
					  r + 1, names->rows[r].part_count,
					  SHOWN_OF(item->oidset->name), parts);
	}
	return 0;
}

static int decode_names(struct counters *c, const struct persist_item *from, struct item *item,
			struct errbuf *e)
{
	if (item->names.columns)
		return 0;
	int err = poll_decode_names(&from->poll, &c->batch->arena, &item->names, e);
	return err ? err : check_paths(from, &item->names, e);
}

static bool used_before(const struct counters *c, const struct layout *layout, size_t before)
{
	for (size_t i = 0; i < before; i++) {
		if (c->items[i].layout == layout)
			return true;
	}
	return false;
}

/* Whether a value waits for its series to be opened. */
static bool row_is_closed(const struct layout *layout, const struct poll_values *values, size_t row)
{
	const struct place *places = layout->places + row * layout->column_count;
	const struct value *v = values->values + row * layout->column_count;
	for (size_t col = 0; col < layout->column_count; col++) {
		if (!places[col].handle && v[col].type != VALUE_NONE &&
		    layout->columns[col] < COLUMN_TEXT)
			return !layout->refused[row];
	}
	return false;
}

static size_t closed_rows(const struct layout *layout, const struct poll_values *values)
{
	size_t closed = 0;
	for (size_t r = 0; r < layout->row_count; r++)
		closed += row_is_closed(layout, values, r);
	return closed;
}

static void ask_again(struct counters *c, struct layout *layout)
{
	int64_t now_ms = clock_wall_ms(c->persister.base.clock);
	if (!layout->ask_again_ms || now_ms < layout->ask_again_ms)
		return;
	memset(layout->refused, 0, layout->row_count * sizeof(*layout->refused));
	layout->ask_again_ms = 0;
}

/* ERR_RETRY: not in this batch, since a layout that it would change is in use; ERR_LIMIT: there is
 * no more room in it. Else an item is set aside, or taken on. */
static int take_on(struct counters *c, size_t i)
{
	struct persist_item *from = &c->batch->items[i];
	struct item *item = &c->items[i];
	struct errbuf e = {""};
	*item = (struct item){.layout = layouts_find(&c->layouts, &from->poll)};
	bool used = used_before(c, item->layout, i), known = item->layout;
	int err = known ? 0 : decode_names(c, from, item, &e);
	if (!err && !known &&
	    layouts_occupied(&c->layouts, &from->poll, from->oidset, &item->names))
		return ERR_RETRY;
	if (!err)
		err = poll_decode_values(&from->poll, &c->batch->arena, &item->values, &e);
	if (err == ERR_LIMIT)
		return err;
	if (err) {
		set_aside(c, from, &e);
		item->layout = NULL;
		return 0;
	}
	if (!known)
		item->layout = layouts_add(&c->layouts, &from->poll, from->oidset, &item->names);
	ask_again(c, item->layout);
	item->group_count = closed_rows(item->layout, &item->values);
	if (item->group_count && used)
		return ERR_RETRY;
	bool named = item->group_count || item->values.text_count;
	err = named ? decode_names(c, from, item, &e) : 0;
	ASSERT(err != ERR_INVALID); /* the block is one that was decoded before */
	return err;
}

/* ---- Filling --------------------------------------------------------------------------------- */

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
	if (v->type != VALUE_U64)
		return false;
	return layout->oids[column]->type == OID_COUNTER64 || v->bits <= UINT32_MAX;
}

/* What has become of a batch's values. */
struct tally {
	int64_t stored, repeated, refused_order, refused_value, refused_series, refused_name,
		refused_time;
};

/* Whether the value is to be written. */
static bool admit(const struct layout *layout, size_t column, struct place *place, int64_t ts_ms,
		  struct value *v, struct tally *tally)
{
	if (layout->columns[column] >= COLUMN_TEXT) {
		tally->refused_name++;
		return false;
	}
	if (!place->handle) {
		tally->refused_series++;
		return false;
	}
	if (!fit(layout, column, v)) {
		tally->refused_value++;
		return false;
	}
	if (ts_ms == place->ts_ms && value_equal(*v, place->value)) {
		tally->repeated++;
		return false;
	}
	if (ts_ms <= place->ts_ms) {
		tally->refused_order++;
		return false;
	}
	return true;
}

static int64_t ttl_of(const struct counters *c, const struct layout *layout)
{
	return layout->oidset->ttl_ms ? layout->oidset->ttl_ms : c->persister.base.retention_ms;
}

/* One row: its accepted values in one piece. ERR_LIMIT: the write is full, nothing is changed. */
static int fill_row(struct counters *c, const struct item *item, size_t row, struct tally *tally)
{
	const struct layout *layout = item->layout;
	size_t first = row * layout->column_count, n = 0;
	uint64_t handles[POLL_COLUMNS_MAX];
	struct value values[POLL_COLUMNS_MAX];
	uint16_t taken[POLL_COLUMNS_MAX];
	int64_t ts_ms = item->values.row_ts_ms[row];
	struct tally before = *tally;
	for (size_t col = 0; col < layout->column_count; col++) {
		struct place *place = &layout->places[first + col];
		struct value v = item->values.values[first + col];
		if (v.type == VALUE_NONE || !admit(layout, col, place, ts_ms, &v, tally))
			continue;
		taken[n] = (uint16_t)col;
		handles[n] = place->handle;
		values[n++] = v;
	}
	int err =
		n ? store_append(c->batch->write, TABLE_RAW_DATA, layout->oidset->frequency_ms,
				 retention_class_for(ttl_of(c, layout)), ts_ms, handles, n, values)
		  : 0;
	if (err) {
		*tally = before;
		return err;
	}
	for (size_t i = 0; i < n; i++) {
		struct place *place = &layout->places[first + taken[i]];
		place->ts_ms = ts_ms;
		place->value = values[i];
	}
	if (n && ts_ms > layout->source->writing_ms)
		layout->source->writing_ms = ts_ms;
	tally->stored += (int64_t)n;
	return 0;
}

/* Of a row at an impossible time nothing is taken. */
static bool is_time(const struct counters *c, int64_t ts_ms, int64_t now_ms)
{
	return ts_ms > 0 && ts_ms - c->persister.base.future_max_ms <= now_ms;
}

static size_t values_in_row(const struct item *item, size_t row)
{
	size_t count = 0, columns = item->layout->column_count;
	for (size_t col = 0; col < columns; col++)
		count += item->values.values[row * columns + col].type != VALUE_NONE;
	return count;
}

/* The document's row key, in the batch's arena, as a part of the cell's. */
static int text_row_key(struct counters *c, const struct item *item, const struct poll_text *text,
			struct slice *made)
{
	const struct oidset *set = item->layout->oidset;
	const struct poll_row *row = &item->names.rows[text->row];
	struct counter_key key = {
		.ns = TENANT,
		.device = item->layout->device,
		.oidset = set->set_name,
		.oid = item->layout->oids[text->column]->name,
		.path_count = row->part_count,
		.freq_ms = set->frequency_ms,
	};
	struct buf out;
	memcpy(key.path, row->parts, sizeof(key.path));
	buf_init(&out, COUNTER_KEY_MAX_BYTES);
	int err = counter_key_encode(&key, &out);
	if (!err)
		*made = arena_copy(&c->batch->arena, buf_slice(&out));
	buf_release(&out);
	return err ? err : made->data ? 0 : ERR_LIMIT;
}

static int text_json(struct counters *c, const struct poll_text *text, struct slice *json)
{
	struct buf out;
	*json = text->text;
	if (text->json)
		return 0;
	buf_init(&out, TEXT_JSON_MAX_BYTES);
	json_append_string(&out, text->text);
	*json = arena_copy(&c->batch->arena, buf_slice(&out));
	buf_release(&out);
	return json->data ? 0 : ERR_LIMIT;
}

/* Whatever its OID's type: a device that says "n/a" has said something. */
static int fill_text(struct counters *c, const struct item *item, const struct poll_text *text,
		     int64_t now_ms, struct tally *tally)
{
	const struct layout *layout = item->layout;
	int64_t ts_ms = item->values.row_ts_ms[text->row];
	struct slice row_key, json;
	uint8_t column[8];
	if (layout->columns[text->column] == COLUMN_UNKNOWN) {
		tally->refused_name++;
		return 0;
	}
	if (!is_time(c, ts_ms, now_ms)) {
		tally->refused_time++;
		return 0;
	}
	int err = text_row_key(c, item, text, &row_key);
	if (err == ERR_INVALID) {
		tally->refused_series++;
		return 0;
	}
	err = err ? err : text_json(c, text, &json);
	if (err)
		return err;
	be64_put(column, (uint64_t)ts_ms);
	struct store_parts key = {.part = {row_key}};
	struct store_parts at = {.part = {{(const char *)column, sizeof(column)}}};
	int64_t ttl_ms = ttl_of(c, layout);
	err = store_cell_put(c->batch->write, TABLE_RAW_TEXT, &key, &at, json,
			     store_stamp(c->persister.base.store), ttl_ms ? ts_ms + ttl_ms : 0);
	tally->stored += !err;
	return err;
}

static int fill_texts(struct counters *c, const struct item *item, int64_t now_ms,
		      struct tally *tally)
{
	int err = 0;
	for (size_t i = 0; i < item->values.text_count && !err; i++)
		err = fill_text(c, item, &item->values.texts[i], now_ms, tally);
	return err;
}

static int fill_item(struct counters *c, const struct item *item, struct tally *tally)
{
	int64_t now_ms = clock_wall_ms(c->persister.base.clock);
	int err = 0;
	for (size_t r = 0; r < item->layout->row_count && !err; r++) {
		if (is_time(c, item->values.row_ts_ms[r], now_ms))
			err = fill_row(c, item, r, tally);
		else
			tally->refused_time += (int64_t)values_in_row(item, r);
	}
	return err ? err : fill_texts(c, item, now_ms, tally);
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
	int err = catalog_info_put(c->persister.base.store, c->batch->write, TENANT, oid->name,
				   &info);
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
static void fill(struct counters *c)
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
	/* Above all ERR_NOT_FOUND: series that were deleted meanwhile are opened anew. */
	if (err)
		forget_all(c);
	finish(c, err);
}

/* ---- Restoring ------------------------------------------------------------------------------- */

/* The newest stored values of the places that an item opened. */
struct restoring {
	struct restoring *next;
	struct store_request *request;
	struct layout *layout;
	size_t *places; /* by handle of the request */
	uint64_t *handles;
	size_t count;
};

static void take_restored(const struct restoring *restoring)
{
	for (size_t i = 0; i < restoring->count; i++) {
		const struct store_points *points = &restoring->request->last_before.points[i];
		struct place *place = &restoring->layout->places[restoring->places[i]];
		if (!points->count)
			continue;
		place->ts_ms = points->ts_ms[0];
		place->value =
			(struct value){points->bits[0][0], (enum value_type)points->types[0][0]};
	}
}

static void restore_end(struct counters *c, int err)
{
	store_read_free(c->restore);
	c->restore = NULL;
	c->restorings = NULL;
	if (err) {
		/* What was opened would look as if it had no values. */
		forget_all(c);
		finish(c, err);
	} else {
		fill(c);
	}
}

/* Each slice gives what the ones before did not. */
static void restored(struct store_read *read, int err)
{
	struct counters *c = read->owner;
	bool more = false;
	for (struct restoring *r = c->restorings; r && !err; r = r->next) {
		take_restored(r);
		more = more || r->request->more;
	}
	if (!err && more)
		err = store_read_submit(read);
	if (err || !more)
		restore_end(c, err);
}

/* ERR_LIMIT: no room. */
static int restore_item(struct counters *c, const struct item *item)
{
	struct arena *arena = &c->batch->arena;
	struct restoring *r = arena_zalloc(arena, sizeof(*r));
	size_t most = 0;
	for (size_t g = 0; g < item->group_count; g++)
		most += c->groups[item->first_group + g].count;
	if (!r)
		return ERR_LIMIT;
	r->layout = item->layout;
	r->places = arena_alloc(arena, most * sizeof(*r->places));
	r->handles = arena_alloc(arena, most * sizeof(*r->handles));
	r->request = r->places && r->handles ? store_read_add(c->restore, STORE_LAST_BEFORE) : NULL;
	if (!r->request)
		return ERR_LIMIT;
	for (size_t g = 0; g < item->group_count; g++) {
		const struct opened_row *row = &c->rows[item->first_group + g];
		for (size_t m = 0; m < c->groups[item->first_group + g].count; m++) {
			size_t place = row->row * item->layout->column_count + row->columns[m];
			if (!item->layout->places[place].handle)
				continue;
			r->places[r->count] = place;
			r->handles[r->count++] = item->layout->places[place].handle;
		}
	}
	r->request->last_before = (struct store_last_before){
		.table = TABLE_RAW_DATA,
		.period_ms = item->layout->oidset->frequency_ms,
		.handles = r->handles,
		.handle_count = r->count,
		.before_ms = STORE_TS_MAX,
	};
	r->next = c->restorings;
	c->restorings = r;
	return 0;
}

static void restore(struct counters *c)
{
	int err = 0;
	c->restore = store_read_new(c->persister.base.store, RESTORE_MAX_BYTES);
	c->restore->executor = c->persister.base.executor;
	c->restore->done = restored;
	c->restore->owner = c;
	c->restore->now_ms = clock_wall_ms(c->persister.base.clock);
	for (size_t i = 0; i < c->count && !err; i++) {
		if (c->items[i].group_count)
			err = restore_item(c, &c->items[i]);
	}
	if (!err)
		err = store_read_submit(c->restore);
	if (err)
		restore_end(c, err);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void refuse_row(struct counters *c, const struct opened_row *row, int err)
{
	struct layout *layout = row->item->layout;
	layout->refused[row->row] = true;
	if (err == ERR_LIMIT && !layout->ask_again_ms)
		layout->ask_again_ms = clock_wall_ms(c->persister.base.clock) + ASK_AGAIN_MS;
}

/* 0, or an error that has nothing to do with the row. */
static int take_opened(struct counters *c, size_t g)
{
	const struct catalog_group *group = &c->groups[g];
	const struct opened_row *row = &c->rows[g];
	struct layout *layout = row->item->layout;
	if (group->err && group->err != ERR_LIMIT && group->err != ERR_INVALID)
		return group->err;
	if (group->err)
		refuse_row(c, row, group->err);
	for (size_t m = 0; m < group->count; m++)
		layout->places[row->row * layout->column_count + row->columns[m]].handle =
			group->handles[m];
	return 0;
}

static void opened(struct catalog_open *open)
{
	struct counters *c = open->owner;
	int err = 0;
	for (size_t g = 0; g < c->group_count && !err; g++)
		err = take_opened(c, g);
	if (!err) {
		restore(c);
		return;
	}
	forget_all(c);
	finish(c, err);
}

/* The tags of a row, in the batch's arena; ERR_INVALID: a part is no value of a tag. */
static int make_tags(struct counters *c, const struct item *item, size_t row, struct tags *tags)
{
	const struct oidset *set = item->layout->oidset;
	const struct poll_row *path = &item->names.rows[row];
	struct tag *list = arena_alloc(&c->batch->arena, TAGS_IN_ALL * sizeof(*list));
	struct errbuf e;
	if (!list)
		return ERR_LIMIT;
	list[0] = (struct tag){SLICE("device"), item->layout->device};
	list[1] = (struct tag){SLICE("oidset"), set->set_name};
	for (size_t p = 0; p < path->part_count; p++)
		list[2 + p] = (struct tag){set->path_tags[p], path->parts[p]};
	*tags = (struct tags){list, 2 + path->part_count};
	return tags_sort_and_check(list, tags->count, &e);
}

static void name_row(struct layout *layout, size_t row, struct tags tags)
{
	struct buf text;
	buf_init(&text, TAGS_TEXT_MAX_BYTES);
	if (tags_encode(tags, &text) == 0)
		layout->row_ids[row] = rate_row_id(buf_slice(&text));
	buf_release(&text);
}

/* The metrics of a row that have a value and no handle. */
static int make_metrics(struct counters *c, struct item *item, size_t row,
			struct catalog_group *group, struct opened_row *opened_row)
{
	const struct layout *layout = item->layout;
	struct arena *arena = &c->batch->arena;
	struct slice *metrics = arena_alloc(arena, layout->column_count * sizeof(*metrics));
	uint16_t *columns = arena_alloc(arena, layout->column_count * sizeof(*columns));
	group->handles = arena_zalloc(arena, layout->column_count * sizeof(*group->handles));
	if (!metrics || !columns || !group->handles)
		return ERR_LIMIT;
	for (size_t col = 0; col < layout->column_count; col++) {
		size_t at = row * layout->column_count + col;
		if (layout->columns[col] >= COLUMN_TEXT || layout->places[at].handle ||
		    item->values.values[at].type == VALUE_NONE)
			continue;
		columns[group->count] = (uint16_t)col;
		metrics[group->count++] = layout->oids[col]->name;
	}
	group->metrics = metrics;
	*opened_row = (struct opened_row){item, row, columns};
	return 0;
}

static int add_row(struct counters *c, struct item *item, size_t row)
{
	struct catalog_group *group = &c->groups[c->group_count];
	struct opened_row *opened_row = &c->rows[c->group_count];
	*group = (struct catalog_group){.tenant = TENANT};
	int err = make_metrics(c, item, row, group, opened_row);
	if (!err)
		err = make_tags(c, item, row, &group->tags);
	if (err == ERR_INVALID) {
		refuse_row(c, opened_row, err);
		item->group_count--;
		return 0;
	}
	if (!err)
		name_row(item->layout, row, group->tags);
	c->group_count += !err;
	return err;
}

static int add_rows(struct counters *c, struct item *item)
{
	int err = 0;
	item->first_group = c->group_count;
	for (size_t r = 0; r < item->layout->row_count && !err; r++) {
		if (row_is_closed(item->layout, &item->values, r))
			err = add_row(c, item, r);
	}
	return err;
}

static void open_series(struct counters *c, size_t rows)
{
	struct arena *arena = &c->batch->arena;
	c->groups = arena_alloc(arena, rows * sizeof(*c->groups));
	c->rows = arena_alloc(arena, rows * sizeof(*c->rows));
	int err = c->groups && c->rows ? 0 : ERR_LIMIT;
	for (size_t i = 0; i < c->count && !err; i++) {
		if (c->items[i].group_count)
			err = add_rows(c, &c->items[i]);
	}
	if (!err && !c->group_count) {
		fill(c);
		return;
	}
	c->open = (struct catalog_open){
		.catalog = c->persister.base.catalog,
		.executor = c->persister.base.executor,
		.done = opened,
		.owner = c,
		.groups = c->groups,
		.count = c->group_count,
	};
	if (!err)
		err = catalog_open_start(&c->open);
	c->open_begun = !err;
	if (err)
		finish(c, err);
}

/* ---- A batch --------------------------------------------------------------------------------- */

static void counters_store(struct persister *persister, struct persist_batch *batch)
{
	struct counters *c = of(persister);
	size_t rows = 0;
	int err = 0;
	ASSERT(!c->batch && batch->count);
	c->batch = batch;
	c->count = c->group_count = 0;
	c->items = arena_alloc(&batch->arena, batch->count * sizeof(*c->items));
	ASSERT(c->items); /* the arena takes what any one message decodes to */
	heed_deletions(c);
	layouts_turn(&c->layouts);
	while (c->count < batch->count && !err) {
		err = take_on(c, c->count);
		if (!err)
			rows += c->items[c->count++].group_count;
	}
	if (!c->count)
		finish(c, err);
	else if (rows)
		open_series(c, rows);
	else
		fill(c);
}

static void counters_stored(struct persister *persister, struct persist_batch *batch, int err)
{
	struct counters *c = of(persister);
	(void)batch;
	if (c->open_begun)
		catalog_open_finish(&c->open, err);
	c->open_begun = false;
	if (err) {
		forget_all(c);
		return;
	}
	for (size_t i = 0; i < c->count; i++) {
		struct source *source = c->items[i].layout ? c->items[i].layout->source : NULL;
		if (source && source->writing_ms > source->newest_ms)
			source->newest_ms = source->writing_ms;
	}
}

static void counters_tick(struct persister *persister)
{
	deriver_tick(of(persister)->deriver);
}

static bool counters_idle(const struct persister *persister)
{
	return deriver_idle(CONTAINER_OF(persister, const struct counters, persister)->deriver);
}

static void counters_stop(struct persister *persister)
{
	deriver_stop(of(persister)->deriver);
}

static struct persister *counters_make(const struct persist_base *base)
{
	struct counters *c = mem_zalloc(sizeof(*c));
	c->generation = store_series_generation(base->store);
	c->persister = (struct persister){&persister_of_counters, *base};
	layouts_init(&c->layouts, base->counters_max);
	c->deriver = deriver_new(&c->persister.base, &c->layouts);
	return &c->persister;
}

static void counters_free(struct persister *persister)
{
	struct counters *c = of(persister);
	deriver_free(c->deriver);
	layouts_release(&c->layouts);
	mem_free(c->told);
	mem_free(c);
}

const struct persister_ops persister_of_counters = {
	.make = counters_make,
	.store = counters_store,
	.stored = counters_stored,
	.tick = counters_tick,
	.idle = counters_idle,
	.stop = counters_stop,
	.free = counters_free,
};
