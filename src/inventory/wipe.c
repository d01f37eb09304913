/* Forgetting what is stored of a device: one step after the other, each in slices of a read and the
 * write that follows from it.
 *
 *  - list: all series of tenant snmp; those with the device's tag are noted.
 *  - tables: the rows of each table of counters; those of noted series are deleted, whatever their
 *    period.
 *  - forget: the noted series leave the registry.
 *  - rows: the versioned rows of each kind, and then when they were last walked.
 *  - keys: the rows of each other table of cells that has something of devices; those of this one
 *    are noted.
 *  - cells: what these rows have.
 *
 * Whatever ends it half-way, it can be begun again. */
#include <stdlib.h>

#include "inventory/private.h"
#include "model/counter_key.h"

enum {
	SLICE_MAX_BYTES = 16 << 20,
	SLICE_ROWS_MAX = 10000,
	WRITE_MAX_BYTES = 16 << 20,
	HANDLES_MAX_BYTES = 256 << 20,
	FORGET_PER_WRITE = 50000,
	KEYS_MAX_BYTES = 256 << 20,
};

static const enum table tables[] = {TABLE_RAW_DATA, TABLE_BASE_RATES, TABLE_RATE_AGGREGATIONS,
				    TABLE_STAT_AGGREGATIONS};

static const enum table cell_tables[] = {TABLE_RATE_CHECKPOINTS, TABLE_RAW_TEXT};

/* Steps by number: the list, one of each table, forgetting, two of each kind of rows, one of each
 * table of cells, the cells. */
enum {
	STEP_LIST = 0,
	STEP_TABLES = 1,
	STEP_FORGET = STEP_TABLES + ARRAY_LEN(tables),
	STEP_ROWS,
	STEP_WALKS = STEP_ROWS + OIDSET_KINDS,
	STEP_KEYS = STEP_WALKS + OIDSET_KINDS,
	STEP_CELLS = STEP_KEYS + ARRAY_LEN(cell_tables),
	STEP_END,
};

/* A row of cells that is to be emptied. */
struct wiped_row {
	enum table table;
	struct store_parts key;
};

static void next_slice(struct device_wipe *wipe);

static const uint64_t *handles_of(const struct device_wipe *wipe, size_t *count)
{
	*count = wipe->handles.len / sizeof(uint64_t);
	return (const uint64_t *)wipe->handles.data;
}

static void finish(struct device_wipe *wipe, int err)
{
	if (err && !wipe->error.text[0])
		errbuf_set(&wipe->error, err, "the data of " SHOWN " could not be deleted: %s",
			   SHOWN_OF(wipe->device), store_read_sentence(wipe->read, err));
	store_read_free(wipe->read);
	store_write_free(wipe->write);
	buf_release(&wipe->handles);
	buf_release(&wipe->rows);
	arena_release(&wipe->keys);
	wipe->done(wipe, err);
}

/* ---- What a slice says ----------------------------------------------------------------------- */

/* Whether a tag begins at `at`: behind a comma that is not part of a value, where it would have an
 * odd number of backslashes before it. */
static bool tag_begins(const char *tags, const char *at)
{
	size_t slashes = 0;
	if (at == tags)
		return true;
	for (const char *before = at - 1; before > tags && before[-1] == '\\'; before--)
		slashes++;
	return at[-1] == ',' && slashes % 2 == 0;
}

/* Whether `device=NAME`, escaped as in a series set, is one of these tags. */
static bool has_tag(struct slice tags, struct slice tag)
{
	const char *end = tags.data + tags.len;
	for (const char *at = tags.data; at && at < end; at++) {
		at = memmem(at, (size_t)(end - at), tag.data, tag.len);
		if (!at)
			return false;
		const char *behind = at + tag.len;
		if (tag_begins(tags.data, at) && (behind == end || *behind == ','))
			return true;
	}
	return false;
}

static int note_series(struct device_wipe *wipe, const struct store_series_list *list)
{
	const struct tag tag = {SLICE("device"), wipe->device};
	struct buf text;
	int err = 0;
	buf_init(&text, 4096);
	err = tags_encode((struct tags){&tag, 1}, &text);
	for (size_t i = 0; i < list->count && !err; i++) {
		const struct store_series *series = &list->series[i];
		if (!has_tag(series->tags_text, buf_slice(&text)))
			continue;
		wipe->series++;
		err = buf_append(&wipe->handles, &series->handle, sizeof(series->handle));
	}
	buf_release(&text);
	return err;
}

static int by_handle(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return (a > b) - (a < b);
}

static int delete_rows(struct device_wipe *wipe, const struct store_enumerate *rows)
{
	size_t count;
	const uint64_t *handles = handles_of(wipe, &count);
	int err = 0;
	for (size_t i = 0; i < rows->count && !err; i++) {
		const struct store_row *row = &rows->rows[i];
		struct store_target target = {.table = rows->table, .period_ms = row->period_ms};
		if (bsearch(&row->handle, handles, count, sizeof(*handles), by_handle))
			err = store_delete_range(wipe->write, &target, &row->handle, 1,
						 STORE_TS_MIN, STORE_TS_MAX);
	}
	return err;
}

static struct wiped_row *rows_of(const struct device_wipe *wipe, size_t *count)
{
	*count = wipe->rows.len / sizeof(struct wiped_row);
	return (struct wiped_row *)(void *)wipe->rows.data;
}

static bool is_of_device(struct device_wipe *wipe, enum table table, const struct store_parts *key)
{
	struct counter_key row;
	struct errbuf e;
	if (table != TABLE_RAW_TEXT)
		return slice_equal(key->part[0], wipe->device);
	return counter_key_decode(key->part[0], false, &wipe->read->arena, &row, &e) == 0 &&
	       slice_equal(row.device, wipe->device);
}

static int note_keys(struct device_wipe *wipe, const struct store_enumerate *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct wiped_row row = {.table = rows->table};
		if (!is_of_device(wipe, rows->table, &rows->rows[i].key))
			continue;
		for (size_t p = 0; p < schema[rows->table].key_count; p++) {
			row.key.part[p] = arena_copy(&wipe->keys, rows->rows[i].key.part[p]);
			if (!row.key.part[p].data)
				return ERR_LIMIT;
		}
		int err = buf_append(&wipe->rows, &row, sizeof(row));
		if (err)
			return err;
	}
	return 0;
}

static int delete_cells(struct device_wipe *wipe, const struct store_cell_scan *scan)
{
	int64_t stamp_us = store_stamp(wipe->store);
	int err = 0;
	for (size_t i = 0; i < scan->count && !err; i++)
		err = store_cell_delete(wipe->write, scan->table, &scan->key,
					&scan->cells[i].column, stamp_us);
	return err;
}

static int take_slice(struct device_wipe *wipe, const struct store_request *request)
{
	if (wipe->step == STEP_LIST)
		return note_series(wipe, &request->series_list);
	if (wipe->step < STEP_FORGET)
		return delete_rows(wipe, &request->enumerate);
	if (wipe->step >= STEP_KEYS && wipe->step < STEP_CELLS)
		return note_keys(wipe, &request->enumerate);
	return delete_cells(wipe, &request->cell_scan);
}

/* ---- Slices ---------------------------------------------------------------------------------- */

static enum store_op op_of(size_t step)
{
	if (step == STEP_LIST)
		return STORE_SERIES_LIST;
	bool rows = step < STEP_FORGET || (step >= STEP_KEYS && step < STEP_CELLS);
	return rows ? STORE_ENUMERATE : STORE_CELL_SCAN;
}

static int add_request(struct device_wipe *wipe)
{
	enum store_op op = op_of(wipe->step);
	struct store_request *request = store_read_add(wipe->read, op);
	if (!request)
		return ERR_LIMIT;
	request->token = wipe->token;
	if (op == STORE_SERIES_LIST) {
		request->series_list.tenant = COUNTER_TENANT;
		request->series_list.limit = SLICE_ROWS_MAX;
	} else if (op == STORE_ENUMERATE) {
		request->enumerate.table = wipe->step < STEP_FORGET
						   ? tables[wipe->step - STEP_TABLES]
						   : cell_tables[wipe->step - STEP_KEYS];
		request->enumerate.limit = SLICE_ROWS_MAX;
	} else if (wipe->step == STEP_CELLS) {
		size_t count;
		const struct wiped_row *row = &rows_of(wipe, &count)[wipe->row_next];
		request->cell_scan.table = row->table;
		request->cell_scan.key = row->key;
	} else {
		enum oidset_kind kind = (enum oidset_kind)((wipe->step - STEP_ROWS) % OIDSET_KINDS);
		request->cell_scan.table = TABLE_VERSIONED_ROWS;
		request->cell_scan.key = wipe->step < STEP_WALKS ? row_key(kind, wipe->device)
								 : walk_key(kind, wipe->device);
	}
	return 0;
}

/* Without series only rows are left to look for. */
static size_t after_list(struct device_wipe *wipe)
{
	size_t count;
	handles_of(wipe, &count);
	if (!count)
		return STEP_ROWS;
	qsort(wipe->handles.data, count, sizeof(uint64_t), by_handle);
	return STEP_TABLES;
}

static size_t next_step(struct device_wipe *wipe)
{
	size_t count;
	rows_of(wipe, &count);
	if (wipe->step == STEP_LIST)
		return after_list(wipe);
	if (wipe->step == STEP_CELLS && ++wipe->row_next < count)
		return STEP_CELLS;
	return wipe->step + 1 == STEP_CELLS && !count ? STEP_END : wipe->step + 1;
}

/* To the next slice of this step (token.len is not 0), or to the next step. */
static void go_on(struct device_wipe *wipe)
{
	if (wipe->token.len == 0)
		wipe->step = next_step(wipe);
	if (wipe->step == STEP_END)
		finish(wipe, 0);
	else
		next_slice(wipe);
}

static void written(struct store_write *write, int err)
{
	struct device_wipe *wipe = write->owner;
	/* A series that is gone has been forgotten before. */
	if (err && err != ERR_NOT_FOUND)
		finish(wipe, err);
	else
		go_on(wipe);
}

static void slice_read(struct store_read *read, int err)
{
	struct device_wipe *wipe = read->owner;
	const struct store_request *request = read->requests;
	store_write_reset(wipe->write);
	err = err ? err : take_slice(wipe, request);
	if (err) {
		finish(wipe, err);
		return;
	}
	wipe->token = request->token;
	if (!request->more)
		wipe->token.len = 0;
	err = store_write_submit(wipe->write);
	if (err)
		finish(wipe, err);
}

/* Handles from token.bytes on; the token counts those that are done. */
static int forget_some(struct device_wipe *wipe)
{
	size_t count, from = 0;
	const uint64_t *handles = handles_of(wipe, &count);
	int err = 0;
	memcpy(&from, wipe->token.bytes, wipe->token.len);
	size_t end = count - from > FORGET_PER_WRITE ? from + FORGET_PER_WRITE : count;
	store_write_reset(wipe->write);
	while (from < end && !err) {
		size_t n = end - from > STORE_GROUP_MAX ? STORE_GROUP_MAX : end - from;
		err = store_series_forget(wipe->write, handles + from, n);
		from += n;
	}
	wipe->token.len = from < count ? sizeof(from) : 0;
	memcpy(wipe->token.bytes, &from, sizeof(from));
	return err ? err : store_write_submit(wipe->write);
}

static void next_slice(struct device_wipe *wipe)
{
	int err;
	if (wipe->step == STEP_FORGET) {
		err = forget_some(wipe);
	} else {
		store_read_reset(wipe->read);
		err = add_request(wipe);
		wipe->read->now_ms = clock_wall_ms(wipe->clock);
		err = err ? err : store_read_submit(wipe->read);
	}
	if (err)
		finish(wipe, err);
}

void device_wipe_start(struct device_wipe *wipe)
{
	wipe->series = 0;
	wipe->step = STEP_LIST;
	wipe->token.len = 0;
	wipe->error.text[0] = 0;
	wipe->row_next = 0;
	buf_init(&wipe->handles, HANDLES_MAX_BYTES);
	buf_init(&wipe->rows, KEYS_MAX_BYTES);
	arena_init(&wipe->keys, KEYS_MAX_BYTES);
	wipe->read = store_read_new(wipe->store, SLICE_MAX_BYTES);
	wipe->read->executor = wipe->executor;
	wipe->read->done = slice_read;
	wipe->read->owner = wipe;
	wipe->write = store_write_new(wipe->store, WRITE_MAX_BYTES);
	wipe->write->executor = wipe->executor;
	wipe->write->done = written;
	wipe->write->owner = wipe;
	next_slice(wipe);
}
