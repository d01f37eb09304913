/* Series that are not known: opened by the catalog, then their newest stored values. */
#include "model/counter_key.h"
#include "persist/counters.h"
#include "rate/rate.h"

enum {
	TAGS_IN_ALL = 2 + OIDSET_PATH_MAX, /* device, oidset, path */
	RESTORE_MAX_BYTES = 256 << 20,
	ASK_AGAIN_MS = 60000, /* after a limit of the catalog was reached */
};

/* ---- Restoring ------------------------------------------------------------------------------- */

struct opened_place {
	uint32_t row;
	uint16_t column;
};

/* The newest stored values of the places that an item opened. */
struct restoring {
	struct restoring *next;
	struct store_request *request;
	struct layout *layout;
	struct opened_place *places; /* by handle of the request */
	uint64_t *handles;
	size_t count;
};

static void take_restored(const struct restoring *restoring)
{
	for (size_t i = 0; i < restoring->count; i++) {
		const struct store_points *points = &restoring->request->last_before.points[i];
		const struct opened_place *place = &restoring->places[i];
		if (!points->count)
			continue;
		struct value value = {points->bits[0][0], (enum value_type)points->types[0][0]};
		layout_keep(restoring->layout, place->row, points->ts_ms[0], &place->column, 1,
			    &value);
	}
}

static void restore_end(struct counters *c, int err)
{
	store_read_free(c->restore);
	c->restore = NULL;
	c->restorings = NULL;
	if (err) {
		/* What was opened would look as if it had no values. */
		counters_forget(c);
		counters_finish(c, err);
	} else {
		counters_look_up_texts(c);
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
			uint64_t handle = layout_handle(item->layout, row->row, row->columns[m]);
			if (!handle)
				continue;
			r->places[r->count] =
				(struct opened_place){(uint32_t)row->row, row->columns[m]};
			r->handles[r->count++] = handle;
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
	c->restore->now_ms = clock_age_ms(c->persister.base.clock);
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
		layout_open(layout, row->row, row->columns[m], group->handles[m]);
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
	counters_forget(c);
	counters_finish(c, err);
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
		layout->rows[layout_root(layout, row)].id = rate_row_id(buf_slice(&text));
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
		if (layout->columns[col] >= COLUMN_TEXT || layout_is_open(layout, row, col) ||
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
	*group = (struct catalog_group){.tenant = COUNTER_TENANT};
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
		if (counters_row_is_closed(item->layout, &item->values, r))
			err = add_row(c, item, r);
	}
	return err;
}

void counters_open_series(struct counters *c, size_t rows)
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
		counters_look_up_texts(c);
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
		counters_finish(c, err);
}
