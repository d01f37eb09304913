/* Versioned rows and the store: taking a poll's into it, reading them. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/owner.h"
#include "inventory/private.h"

enum { READ_MAX_BYTES = 64 << 20, CELLS_PER_READ = 100000 };

/* Asks for the rows that lived at the time of `from` or later. */
static struct store_request *add_scan(struct store_read *read, enum oidset_kind kind,
				      struct slice device, const struct row_column *from)
{
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	ASSERT(request); /* one of the first of an empty arena */
	request->cell_scan.table = TABLE_VERSIONED_ROWS;
	request->cell_scan.key = row_key(kind, device);
	request->cell_scan.from.part[0] = from->parts.part[0];
	return request;
}

/* The newest walk. */
static void add_walk(struct store_read *read, enum oidset_kind kind, struct slice device)
{
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request);
	request->cell_get = (struct store_cell_get){.table = TABLE_VERSIONED_ROWS,
						    .key = walk_key(kind, device),
						    .column = walk_column()};
}

/* ---- Taking a poll -------------------------------------------------------------------------- */

static int put_row(struct inventory_rows_update *u, const struct inventory_row *row, int64_t end_ms,
		   int64_t stamp_us)
{
	struct store_parts key = row_key(u->kind, u->device);
	struct row_column column;
	struct buf scratch;
	struct slice value;
	buf_init(&scratch, schema_value_max_bytes(TABLE_VERSIONED_ROWS));
	row_column(row->name, row->begin_ms, end_ms, &column);
	int err = row_cell_value(&column, row, &scratch, &value);
	if (!err)
		err = store_cell_put(u->write, TABLE_VERSIONED_ROWS, &key, &column.parts, value,
				     stamp_us, 0);
	buf_release(&scratch);
	return err;
}

/* Under whichever name it was put. */
static int delete_row(struct inventory_rows_update *u, const struct inventory_row *row,
		      int64_t stamp_us)
{
	struct store_parts key = row_key(u->kind, u->device);
	struct row_column column;
	row_column(row->name, row->begin_ms, row->end_ms, &column);
	int err = store_cell_delete(u->write, TABLE_VERSIONED_ROWS, &key, &column.parts, stamp_us);
	if (!err && row_column_of_before(row->name, row->begin_ms, row->end_ms, &column))
		err = store_cell_delete(u->write, TABLE_VERSIONED_ROWS, &key, &column.parts,
					stamp_us);
	return err;
}

/* One that an older version stored may have more attributes than a cell takes now, or a name that
 * is not UTF-8. */
static int put_closed(struct inventory_rows_update *u, const struct inventory_row *row,
		      int64_t stamp_us)
{
	struct inventory_row closed = *row;
	struct arena arena;
	arena_init_small(&arena, 4 * row->name.len + 64);
	if (row->name.len + 1 + row->attributes.len >
	    schema_value_max_bytes(TABLE_VERSIONED_ROWS)) {
		log_warn("row \"" SHOWN "\" of device \"" SHOWN "\" has ended; its attributes are "
			 "not kept: they are too long",
			 SHOWN_OF(row->name), SHOWN_OF(u->device));
		closed.attributes = SLICE("{}");
	}
	int err = row_name_clean(&closed.name, &arena);
	err = err ? err : put_row(u, &closed, u->ts_ms, stamp_us);
	arena_release(&arena);
	return err;
}

/* First it is put where it ends: if the write ends in between, it is closed again by the poll that
 * is repeated, and not lost. One that began at this very time has not lived. */
static int close_row(struct inventory_rows_update *u, const struct inventory_row *row,
		     int64_t stamp_us)
{
	int err = row->begin_ms < u->ts_ms ? put_closed(u, row, stamp_us) : 0;
	return err ? err : delete_row(u, row, stamp_us);
}

/* What opens may stand where something is closed, so its stamp is the higher one. */
static int apply(struct inventory_rows_update *u, const struct inventory_row_change *change,
		 int64_t close_us, int64_t open_us)
{
	int err = change->closes ? close_row(u, change->closes, close_us) : 0;
	if (!err && change->opens)
		err = put_row(u, change->opens, INVENTORY_FOREVER_MS, open_us);
	u->closed += !err && change->closes;
	u->opened += !err && change->opens;
	return err;
}

static int rows_store_by_name(const void *left, const void *right)
{
	const struct inventory_row *a = left, *b = right;
	return slice_compare(a->name, b->name);
}

static int apply_all(struct inventory_rows_update *u, const struct store_cell_scan *scan)
{
	struct inventory_row *open = mem_alloc_array(scan->count + 1, sizeof(*open));
	struct inventory_row_change *changes =
		mem_alloc_array(scan->count + u->count + 1, sizeof(*changes));
	size_t open_count = 0;
	int err = 0;
	for (size_t i = 0; i < scan->count; i++)
		open_count += row_of_cell(&scan->cells[i], &open[open_count]);
	/* Names that are cut lie in the order of their hashes. */
	qsort(open, open_count, sizeof(*open), rows_store_by_name);
	size_t count = inventory_rows_diff(open, open_count, u->rows, u->count, u->complete,
					   u->ts_ms, changes);
	int64_t close_us = store_stamp(u->store), open_us = store_stamp(u->store);
	for (size_t i = 0; i < count && !err; i++)
		err = apply(u, &changes[i], close_us, open_us);
	mem_free(open);
	mem_free(changes);
	return err;
}

static int64_t newest_walk(const struct store_cell_get *get)
{
	int64_t ts_ms = INT64_MIN;
	if (get->found && get->cell.value.len == sizeof(ts_ms))
		memcpy(&ts_ms, get->cell.value.data, sizeof(ts_ms));
	return ts_ms;
}

static int put_walk(struct inventory_rows_update *u)
{
	struct store_parts key = walk_key(u->kind, u->device), column = walk_column();
	struct slice value = {(const char *)&u->ts_ms, sizeof(u->ts_ms)};
	return store_cell_put(u->write, TABLE_VERSIONED_ROWS, &key, &column, value,
			      store_stamp(u->store), 0);
}

/* What is older than the newest walk says nothing of what there is now, nor of what there was: that
 * one may have closed rows that this one saw, or seen what this one did not. */
static int apply_walk(struct inventory_rows_update *u, const struct store_cell_scan *open,
		      int64_t newest_ms)
{
	u->late = u->ts_ms < newest_ms;
	if (u->late)
		return 0;
	int err = apply_all(u, open);
	return err || u->ts_ms == newest_ms ? err : put_walk(u);
}

static void open_rows_read(struct store_read *read, int err)
{
	struct inventory_rows_update *u = FROM_OWNER(inventory_rows_update, read->owner);
	const struct store_request *walk = read->requests, *rows = walk->next;
	ASSERT(u->read == read);
	if (!err && rows->more)
		err = ERR_LIMIT;
	err = err ? err : apply_walk(u, &rows->cell_scan, newest_walk(&walk->cell_get));
	u->magic = 0;
	u->read = NULL;
	store_read_free(read);
	u->done(u, err);
}

int inventory_rows_update_start(struct inventory_rows_update *u)
{
	struct row_column from;
	ASSERT(u->done && u->write && u->kind != OIDSET_COUNTERS);
	u->magic = MAGIC_OF(inventory_rows_update);
	u->opened = u->closed = 0;
	u->late = false;
	row_column(SLICE(""), 0, INVENTORY_FOREVER_MS, &from);
	u->read = store_read_new(u->store, READ_MAX_BYTES);
	u->read->executor = u->executor;
	u->read->done = open_rows_read;
	u->read->owner = u;
	u->read->now_ms = clock_wall_ms(u->clock);
	u->read->points_max = CELLS_PER_READ;
	add_walk(u->read, u->kind, u->device);
	add_scan(u->read, u->kind, u->device, &from);
	int err = store_read_submit(u->read);
	if (err) {
		store_read_free(u->read);
		u->read = NULL;
	}
	return err;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static void rows_store_finish(struct inventory_rows_read *r, int err)
{
	struct store_read *read = r->read;
	if (err)
		errbuf_set(&r->error, err, "%s", store_read_sentence(read, err));
	r->count = r->gathered.len / sizeof(*r->rows);
	r->rows = arena_alloc(r->arena, r->gathered.len + 1);
	if (!r->rows && !err)
		err = errbuf_set(&r->error, ERR_LIMIT, "the rows do not fit into memory");
	if (r->rows && r->count)
		memcpy(r->rows, r->gathered.data, r->gathered.len);
	buf_release(&r->gathered);
	store_read_free(read);
	r->magic = 0;
	r->read = NULL;
	r->done(r, err);
}

static int keep(struct inventory_rows_read *r, const struct inventory_row *row)
{
	struct inventory_row copy = *row;
	copy.name = arena_copy(r->arena, row->name);
	copy.attributes = arena_copy(r->arena, row->attributes);
	if (!copy.name.data || !copy.attributes.data ||
	    buf_append(&r->gathered, &copy, sizeof(copy)))
		return ERR_LIMIT;
	return 0;
}

/* Of a scan from `begin_ms` on: those that had begun by `end_ms`. */
static int rows_store_take(struct inventory_rows_read *r, const struct store_cell_scan *scan)
{
	struct inventory_row row;
	for (size_t i = 0; i < scan->count && !r->more; i++) {
		if (!row_of_cell(&scan->cells[i], &row) || row.begin_ms > r->end_ms)
			continue;
		r->more = r->limit && r->gathered.len / sizeof(row) == r->limit;
		if (!r->more && keep(r, &row))
			return ERR_LIMIT;
	}
	return 0;
}

static int submit(struct inventory_rows_read *r, const struct store_token *token)
{
	struct row_column from;
	row_column(SLICE(""), 0, r->begin_ms, &from);
	struct store_request *request = add_scan(r->read, r->kind, r->device, &from);
	request->token = *token;
	r->read->now_ms = clock_wall_ms(r->clock);
	r->read->deadline_us = r->deadline_us;
	return store_read_submit(r->read);
}

static void rows_read(struct store_read *read, int err)
{
	struct inventory_rows_read *r = FROM_OWNER(inventory_rows_read, read->owner);
	ASSERT(r->read == read);
	struct store_token token = {.len = 0};
	bool on = false;
	if (!err) {
		err = rows_store_take(r, &read->requests->cell_scan);
		on = !err && !r->more && read->requests->more;
		token = read->requests->token;
	}
	if (on) {
		store_read_reset(read);
		err = submit(r, &token);
		on = !err;
	}
	if (!on)
		rows_store_finish(r, err);
}

int inventory_rows_read_start(struct inventory_rows_read *r)
{
	const struct store_token beginning = {.len = 0};
	ASSERT(r->done && r->arena && r->kind != OIDSET_COUNTERS);
	r->magic = MAGIC_OF(inventory_rows_read);
	r->more = false;
	r->rows = NULL;
	r->count = 0;
	r->read = store_read_new(r->store, READ_MAX_BYTES);
	r->read->executor = r->executor;
	r->read->done = rows_read;
	r->read->owner = r;
	buf_init(&r->gathered, r->arena->max_bytes);
	int err = submit(r, &beginning);
	if (err) {
		buf_release(&r->gathered);
		store_read_free(r->read);
		r->read = NULL;
	}
	return err;
}

void inventory_rows_read_cancel(struct inventory_rows_read *r)
{
	if (!r->read)
		return;
	ASSERT_IS(inventory_rows_read, r);
	r->magic = 0;
	store_read_free(r->read);
	r->read = NULL;
	buf_release(&r->gathered);
}
