/* The persister of versioned rows: interfaces, SAPs, LSPs, outlets (E: IfRefPollPersister and its
 * kin). Each poll is compared with the rows of its device that are open. */
#include "base/stats.h"
#include "base/utf8.h"
#include "persist/persister.h"

struct rows {
	struct persister persister;
	struct persist_batch *batch; /* NULL: none is at work */
	size_t next;                 /* of its items */
	struct inventory_rows_update update;
};

static struct rows *of(struct persister *persister)
{
	return CONTAINER_OF(persister, struct rows, persister);
}

static void inventory_rows_finish(struct rows *r, int err)
{
	struct persist_batch *batch = r->batch;
	r->batch = NULL;
	batch->filled = r->next;
	batch->done(batch, err);
}

/* What is open of a device is known when the poll before is stored. */
static bool came_before(const struct rows *r, size_t i)
{
	for (size_t before = 0; before < i; before++) {
		const struct poll *poll = &r->batch->items[before].poll;
		if (slice_equal(poll->device, r->batch->items[i].poll.device))
			return true;
	}
	return false;
}

static int read_rows(struct rows *r, struct persist_item *item, struct errbuf *e)
{
	struct arena *arena = &r->batch->arena;
	struct poll_names names;
	struct poll_values values;
	struct inventory_row *rows = NULL;
	struct inventory_rows_update *update = &r->update;
	if (!utf8_is_valid(item->poll.device))
		return errbuf_set(e, ERR_INVALID, "the name of its device is not UTF-8");
	int err = poll_decode_names(&item->poll, arena, &names, e);
	err = err ? err : poll_decode_values(&item->poll, arena, &values, e);
	if (!err)
		err = inventory_rows_from_poll(item->oidset->kind, &item->poll, &names, &values,
					       arena, &rows, &update->count);
	if (err == ERR_INVALID && !e->text[0])
		errbuf_set(e, err, "the attributes of a row are too long");
	update->rows = rows;
	return err;
}

static void updated(struct inventory_rows_update *update, int err);

/* Those in a row that are set aside are passed over. ERR_RETRY: the next one has to wait. */
static int begin_next(struct rows *r)
{
	const struct persist_base *base = &r->persister.base;
	for (; r->next < r->batch->count; r->next++) {
		struct persist_item *item = &r->batch->items[r->next];
		struct errbuf e = {""};
		if (came_before(r, r->next))
			return ERR_RETRY;
		if (!persist_is_time(item->poll.ts_ms, clock_wall_ms(base->clock),
				     base->future_max_ms)) {
			item->aside = "its time lies far ahead of the clock";
			continue;
		}
		int err = read_rows(r, item, &e);
		if (err == ERR_INVALID) {
			const char *copy = arena_printf(&r->batch->arena, "%s", e.text);
			item->aside = copy && *copy ? copy : "it is damaged";
			continue;
		}
		if (err)
			return err;
		r->update.kind = item->oidset->kind;
		r->update.device = item->poll.device;
		r->update.complete = item->poll.part == 0 && item->poll.last;
		r->update.ts_ms = item->poll.ts_ms;
		return inventory_rows_update_start(&r->update);
	}
	return ERR_RETRY;
}

static void go_on(struct rows *r)
{
	int err = begin_next(r);
	/* Those before the one that could not be decoded for want of room are in the write. */
	bool enough = err == ERR_RETRY || (err == ERR_LIMIT && r->next);
	if (err)
		inventory_rows_finish(r, enough ? 0 : err);
}

static void updated(struct inventory_rows_update *update, int err)
{
	struct rows *r = update->owner;
	/* Also when the write is full: then a part of this poll is in it, and it must not be
	 * submitted. */
	if (err) {
		inventory_rows_finish(r, err);
		return;
	}
	stat_add(STAT_persist_row_polls_late, update->late);
	r->next++;
	go_on(r);
}

static void rows_store(struct persister *persister, struct persist_batch *batch)
{
	struct rows *r = of(persister);
	ASSERT(!r->batch && batch->count);
	r->batch = batch;
	r->next = 0;
	r->update = (struct inventory_rows_update){
		.store = persister->base.store,
		.executor = persister->base.executor,
		.clock = persister->base.clock,
		.write = batch->write,
		.done = updated,
		.owner = r,
	};
	go_on(r);
}

static void rows_stored(UNUSED struct persister *persister, struct persist_batch *batch, int err)
{
	if (!err)
		stat_add(STAT_persist_row_polls, (int64_t)batch->filled);
}

static void rows_tick(UNUSED struct persister *persister)
{
}

static bool rows_idle(UNUSED const struct persister *persister)
{
	return true;
}

static void rows_free(struct persister *persister)
{
	mem_free(of(persister));
}

static struct persister *rows_make(const struct persist_base *base)
{
	struct rows *r = mem_zalloc(sizeof(*r));
	r->persister = (struct persister){&persister_of_rows, *base};
	return &r->persister;
}

const struct persister_ops persister_of_rows = {
	.make = rows_make,
	.store = rows_store,
	.stored = rows_stored,
	.tick = rows_tick,
	.idle = rows_idle,
	.stop = rows_tick,
	.free = rows_free,
};
