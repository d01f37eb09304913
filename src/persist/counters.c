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
#include "persist/counters.h"

#include "persist/derive.h"

static struct counters *counters_of(struct persister *persister)
{
	return CONTAINER_OF(persister, struct counters, persister);
}

void counters_finish(struct counters *counters, int err)
{
	struct persist_batch *batch = counters->batch;
	if (err && counters->open_begun) {
		catalog_open_finish(&counters->open, ERR_CANCELLED);
		counters->open_begun = false;
	}
	counters->batch = NULL;
	batch->done(batch, err);
}

void counters_forget(struct counters *counters)
{
	layouts_clear(&counters->layouts);
	counters->told_count = 0;
}

/* Whose series were deleted has no newest values either. */
static void counters_heed_deletions(struct counters *c)
{
	uint64_t generation = store_series_generation(c->persister.base.store);
	if (generation != c->generation)
		counters_forget(c);
	c->generation = generation;
}

/* ---- Taking on ------------------------------------------------------------------------------- */

static void counters_set_aside(struct counters *c, struct persist_item *item,
			       const struct errbuf *e)
{
	const char *copy = arena_printf(&c->batch->arena, "%s", e->text);
	item->aside = copy && *copy ? copy : "it is damaged";
}

/* Scalars have no path, everything else all of it. */
static int counters_check_paths(const struct persist_item *item, const struct poll_names *names,
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

static int counters_decode_names(struct counters *c, const struct persist_item *from,
				 struct item *item, struct errbuf *e)
{
	if (item->names.columns)
		return 0;
	int err = poll_decode_names(&from->poll, &c->batch->arena, &item->names, e);
	return err ? err : counters_check_paths(from, &item->names, e);
}

static bool counters_used_before(const struct counters *c, const struct layout *layout,
				 size_t before)
{
	for (size_t i = 0; i < before; i++) {
		if (c->items[i].layout == layout)
			return true;
	}
	return false;
}

bool counters_row_is_closed(const struct layout *layout, const struct poll_values *values,
			    size_t row)
{
	size_t first = row * layout->column_count;
	const struct value *v = values->values + first;
	for (size_t col = 0; col < layout->column_count; col++) {
		if (!layout_is_open(layout, row, col) && v[col].type != VALUE_NONE &&
		    layout->columns[col] < COLUMN_TEXT)
			return !layout->refused[row];
	}
	return false;
}

static size_t counters_closed_rows(const struct layout *layout, const struct poll_values *values)
{
	size_t closed = 0;
	for (size_t r = 0; r < layout->row_count; r++)
		closed += counters_row_is_closed(layout, values, r);
	return closed;
}

static void counters_ask_again(struct counters *c, struct layout *layout)
{
	int64_t now_ms = clock_wall_ms(c->persister.base.clock);
	if (!layout->ask_again_ms || now_ms < layout->ask_again_ms)
		return;
	memset(layout->refused, 0, layout->row_count * sizeof(*layout->refused));
	layout->ask_again_ms = 0;
}

/* ERR_RETRY: not in this batch, since a layout that it would change is in use; ERR_LIMIT: there is
 * no more room in it. Else an item is set aside, or taken on. */
static int counters_take_on(struct counters *c, size_t i)
{
	struct persist_item *from = &c->batch->items[i];
	struct item *item = &c->items[i];
	struct errbuf e = {""};
	*item = (struct item){.layout = layouts_find(&c->layouts, &from->poll)};
	bool used = counters_used_before(c, item->layout, i), known = item->layout;
	int err = known ? 0 : counters_decode_names(c, from, item, &e);
	if (!err && !known &&
	    layouts_occupied(&c->layouts, &from->poll, from->oidset, &item->names))
		return ERR_RETRY;
	if (!err)
		err = poll_decode_values(&from->poll, &c->batch->arena, &item->values, &e);
	if (err == ERR_LIMIT)
		return err;
	if (err) {
		counters_set_aside(c, from, &e);
		item->layout = NULL;
		return 0;
	}
	if (!known)
		item->layout = layouts_add(&c->layouts, &from->poll, from->oidset, &item->names);
	counters_ask_again(c, item->layout);
	item->group_count = counters_closed_rows(item->layout, &item->values);
	if (item->group_count && used)
		return ERR_RETRY;
	bool named = item->group_count || item->values.text_count;
	err = named ? counters_decode_names(c, from, item, &e) : 0;
	ASSERT(err != ERR_INVALID); /* the block is one that was decoded before */
	return err;
}

/* ---- A batch --------------------------------------------------------------------------------- */

static void counters_store(struct persister *persister, struct persist_batch *batch)
{
	struct counters *c = counters_of(persister);
	size_t rows = 0;
	int err = 0;
	ASSERT(!c->batch && batch->count);
	c->batch = batch;
	c->count = c->group_count = 0;
	c->items = arena_alloc(&batch->arena, batch->count * sizeof(*c->items));
	ASSERT(c->items); /* the arena takes what any one message decodes to */
	counters_heed_deletions(c);
	layouts_turn(&c->layouts);
	while (c->count < batch->count && !err) {
		err = counters_take_on(c, c->count);
		if (!err)
			rows += c->items[c->count++].group_count;
	}
	if (!c->count)
		counters_finish(c, err);
	else if (rows)
		counters_open_series(c, rows);
	else
		counters_look_up_texts(c);
}

static void counters_stored(struct persister *persister, struct persist_batch *batch, int err)
{
	struct counters *c = counters_of(persister);
	(void)batch;
	if (c->open_begun)
		catalog_open_finish(&c->open, err);
	c->open_begun = false;
	if (err) {
		counters_forget(c);
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
	deriver_tick(counters_of(persister)->deriver);
}

static bool counters_idle(const struct persister *persister)
{
	return deriver_idle(CONTAINER_OF(persister, const struct counters, persister)->deriver);
}

static void counters_stop(struct persister *persister)
{
	deriver_stop(counters_of(persister)->deriver);
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
	struct counters *c = counters_of(persister);
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
