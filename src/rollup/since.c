#include "rollup/since.h"

#include "base/exec.h"
#include "base/log.h"
#include "rollup/resize.h"
#include "wire/number.h"

enum {
	READ_MAX_BYTES = 1 << 20,
	WRITE_MAX_BYTES = 1 << 20,
	NUMBER_MAX_BYTES = 24,
};

static const struct store_parts row = {{SLICE("rollup-since")}};
static const struct slice slot_name = SLICE("slot"), late_name = SLICE("late");
static const struct slice late_kept_name = SLICE("late-kept");

struct asked {
	struct store *store;
	struct task_queue queue;
	struct store_read *read;
	struct store_write *write;
	bool done;
	int err;
};

static void read_done(struct store_read *read, int err)
{
	struct asked *asked = read->owner;
	asked->done = true;
	asked->err = err;
}

static void write_done(struct store_write *write, int err)
{
	struct asked *asked = write->owner;
	asked->done = true;
	asked->err = err;
}

static int wait_done(struct asked *asked)
{
	while (!asked->done)
		task_queue_wait(&asked->queue);
	asked->done = false;
	return asked->err;
}

/* ---- What is known --------------------------------------------------------------------------- */

/* The cells, and whether there is any series: without one nothing has been written. */
static int read_cells(struct asked *asked, int64_t now_ms, const struct store_cell_scan **cells,
		      bool *empty)
{
	asked->read->now_ms = now_ms;
	struct store_request *scan = store_read_add(asked->read, STORE_CELL_SCAN);
	struct store_request *list = store_read_add(asked->read, STORE_SERIES_LIST);
	ASSERT(scan && list); /* the first of an empty arena */
	scan->cell_scan.table = TABLE_LEASES;
	scan->cell_scan.key = row;
	list->series_list.limit = 1;
	int err = store_read_submit(asked->read);
	if (!err)
		err = wait_done(asked);
	*cells = &scan->cell_scan;
	*empty = list->series_list.count == 0;
	return err;
}

static struct slice name_of(const struct rollup_grain *grain, char to[ROLLUP_WIDTH_MAX_BYTES])
{
	return (struct slice){to, rollup_width_print(to, grain->width_ms)};
}

static const struct store_cell *cell_of(const struct store_cell_scan *cells, struct slice name)
{
	for (size_t i = 0; i < cells->count; i++) {
		if (slice_equal(cells->cells[i].column.part[0], name))
			return &cells->cells[i];
	}
	return NULL;
}

/* ---- What changes ---------------------------------------------------------------------------- */

/* In the place of `before`, NULL: there is none. */
static int put(struct asked *asked, struct slice name, const struct store_cell *before, int64_t ms)
{
	char number[NUMBER_MAX_BYTES];
	struct store_write_cond *outcome;
	struct store_parts column = {{name}};
	struct slice value = {number, number_print_u64(number, (uint64_t)ms)};
	return store_cell_put_if(asked->write, TABLE_LEASES, &row, &column,
				 before ? before->version : 0, value, 0, &outcome);
}

static int drop_others(struct asked *asked, const struct store_cell_scan *cells,
		       const struct rollup_grains *grains)
{
	for (size_t i = 0; i < cells->count; i++) {
		const struct store_cell *cell = &cells->cells[i];
		struct store_write_cond *outcome;
		char width[ROLLUP_WIDTH_MAX_BYTES];
		bool kept = slice_equal(cell->column.part[0], slot_name) ||
			    slice_equal(cell->column.part[0], late_name) ||
			    slice_equal(cell->column.part[0], late_kept_name);
		for (size_t g = 0; g < grains->count; g++)
			kept |= slice_equal(cell->column.part[0], name_of(&grains->list[g], width));
		int err = kept ? 0
			       : store_cell_delete_if(asked->write, TABLE_LEASES, &row,
						      &cell->column, cell->version, &outcome);
		if (err)
			return err;
	}
	return 0;
}

static int64_t number_of(struct slice text)
{
	uint64_t number = 0;
	const char *end = number_scan_digits(text.data, text.data + text.len, &number);
	return end == text.data + text.len && number <= INT64_MAX ? (int64_t)number : INT64_MAX;
}

/* A store without room serves what it has. What is not kept is told anew by the next start, as a
 * later time. */
static int keep(struct asked *asked)
{
	int err = store_write_submit(asked->write);
	if (!err)
		err = wait_done(asked);
	if (err != ERR_FULL && err != ERR_READ_ONLY)
		return err;
	log_warn("roll-ups: since when they are made is not kept: %s", err_text(err));
	return 0;
}

static bool is_slot_width(int64_t ms)
{
	return ms >= 1000 && ms % 1000 == 0 && ms <= ROLLUP_SLOT_MAX_MS;
}

/* Marks that were left when nothing was rolled up for a while are of that width still. */
static int keep_slot(struct asked *asked, const struct store_cell *cell,
		     const struct rollup_grains *grains, int64_t now_ms)
{
	int64_t before_ms = cell ? number_of(cell->value) : 0;
	if (!grains->count || before_ms == grains->slot_ms)
		return 0;
	if (cell && !is_slot_width(before_ms))
		return ERR_DAMAGED;
	int err = cell ? rollup_resize(asked->store, before_ms, grains->slot_ms, now_ms,
				       SLICE("resize"))
		       : 0;
	return err ? err : put(asked, slot_name, cell, grains->slot_ms);
}

/* The least that was ever configured stays; of 0 there is nothing to say. */
static int keep_least(struct asked *asked, struct slice name, const struct store_cell *cell,
		      int64_t *ms)
{
	int64_t before_ms = cell ? number_of(cell->value) : 0;
	if (cell && (before_ms < 1 || before_ms == INT64_MAX))
		return ERR_DAMAGED;
	if (cell && (!*ms || before_ms <= *ms)) {
		*ms = before_ms;
		return 0;
	}
	return *ms ? put(asked, name, cell, *ms) : 0;
}

/* Late points that were kept by another configuration may be younger than those of this one, or go
 * earlier: with their class, which may be longer than what was configured. */
static int keep_late(struct asked *asked, const struct store_cell_scan *cells,
		     struct rollup_late *late)
{
	int64_t lives_ms = 0;
	if (late->after_ms && late->kept_ms)
		lives_ms = retention_class_ms(retention_class_for(late->kept_ms));
	int err = keep_least(asked, late_name, cell_of(cells, late_name), &late->after_ms);
	if (!err)
		err = keep_least(asked, late_kept_name, cell_of(cells, late_kept_name), &lives_ms);
	if (lives_ms && (!late->kept_ms || lives_ms < late->kept_ms))
		late->kept_ms = lives_ms;
	return err;
}

/* A slot of which something was written before is not whole. */
static int make_all(struct asked *asked, const struct rollup_grains *grains, int64_t now_ms,
		    int64_t since_ms[ROLLUP_GRAINS_MAX], struct rollup_late *late)
{
	const struct store_cell_scan *cells;
	char width[ROLLUP_WIDTH_MAX_BYTES];
	bool empty;
	int err = read_cells(asked, now_ms, &cells, &empty);
	if (!err)
		err = drop_others(asked, cells, grains);
	if (!err)
		err = keep_slot(asked, cell_of(cells, slot_name), grains, now_ms);
	if (!err)
		err = keep_late(asked, cells, late);
	for (size_t g = 0; g < grains->count && !err; g++) {
		struct slice name = name_of(&grains->list[g], width);
		const struct store_cell *cell = cell_of(cells, name);
		if (cell) {
			since_ms[g] = number_of(cell->value);
			continue;
		}
		since_ms[g] = empty ? 0 : (now_ms / grains->slot_ms + 1) * grains->slot_ms;
		err = put(asked, name, NULL, since_ms[g]);
	}
	return err || !asked->write->cells ? err : keep(asked);
}

int rollup_since_open(struct store *store, const struct rollup_grains *grains, int64_t now_ms,
		      int64_t since_ms[ROLLUP_GRAINS_MAX], struct rollup_late *late,
		      struct errbuf *e)
{
	struct asked asked = {.store = store};
	task_queue_init(&asked.queue);
	asked.read = store_read_new(store, READ_MAX_BYTES);
	asked.read->executor = &asked.queue.executor;
	asked.read->done = read_done;
	asked.read->owner = &asked;
	asked.write = store_write_new(store, WRITE_MAX_BYTES);
	asked.write->executor = &asked.queue.executor;
	asked.write->done = write_done;
	asked.write->owner = &asked;
	int err = make_all(&asked, grains, now_ms, since_ms, late);
	store_write_free(asked.write);
	store_read_free(asked.read);
	task_queue_release(&asked.queue);
	return err ? errbuf_set(e, err, "since when roll-ups are made cannot be told: %s",
				err_text(err))
		   : 0;
}
