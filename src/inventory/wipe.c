/* Forgetting what is stored of a device: one step after the other, each in slices of a read and the
 * write that follows from it.
 *
 *  - list: all series of tenant snmp; those with the device's tag are noted.
 *  - tables: the rows of each table of counters; those of noted series are deleted, whatever their
 *    period.
 *  - forget: the noted series leave the registry.
 *  - rows: the versioned rows of each kind.
 *
 * Whatever ends it half-way, it can be begun again. */
#include <stdlib.h>

#include "inventory/private.h"

enum {
	SLICE_MAX_BYTES = 16 << 20,
	SLICE_ROWS_MAX = 10000,
	WRITE_MAX_BYTES = 16 << 20,
	HANDLES_MAX_BYTES = 256 << 20,
	FORGET_PER_WRITE = 50000,
};

static const enum table tables[] = {TABLE_RAW_DATA, TABLE_BASE_RATES, TABLE_RATE_AGGREGATIONS,
				    TABLE_STAT_AGGREGATIONS};

/* Steps by number: the list, one of each table, forgetting, one of each kind of rows. */
enum {
	STEP_LIST = 0,
	STEP_TABLES = 1,
	STEP_FORGET = STEP_TABLES + ARRAY_LEN(tables),
	STEP_ROWS,
	STEP_END = STEP_ROWS + OIDSET_KINDS,
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
		if (bsearch(&row->handle, handles, count, sizeof(*handles), by_handle))
			err = store_delete_range(wipe->write, rows->table, row->period_ms,
						 &row->handle, 1, STORE_TS_MIN, STORE_TS_MAX);
	}
	return err;
}

static int delete_cells(struct device_wipe *wipe, const struct store_cell_scan *scan)
{
	int64_t stamp_us = store_stamp(wipe->store);
	int err = 0;
	for (size_t i = 0; i < scan->count && !err; i++)
		err = store_cell_delete(wipe->write, TABLE_VERSIONED_ROWS, &scan->key,
					&scan->cells[i].column, stamp_us);
	return err;
}

static int take_slice(struct device_wipe *wipe, const struct store_request *request)
{
	if (wipe->step == STEP_LIST)
		return note_series(wipe, &request->series_list);
	if (wipe->step < STEP_FORGET)
		return delete_rows(wipe, &request->enumerate);
	return delete_cells(wipe, &request->cell_scan);
}

/* ---- Slices ---------------------------------------------------------------------------------- */

static int add_request(struct device_wipe *wipe)
{
	enum store_op op = wipe->step == STEP_LIST    ? STORE_SERIES_LIST
			   : wipe->step < STEP_FORGET ? STORE_ENUMERATE
						      : STORE_CELL_SCAN;
	struct store_request *request = store_read_add(wipe->read, op);
	if (!request)
		return ERR_LIMIT;
	request->token = wipe->token;
	if (op == STORE_SERIES_LIST) {
		request->series_list.tenant = SLICE("snmp");
		request->series_list.limit = SLICE_ROWS_MAX;
	} else if (op == STORE_ENUMERATE) {
		request->enumerate.table = tables[wipe->step - STEP_TABLES];
		request->enumerate.limit = SLICE_ROWS_MAX;
	} else {
		enum oidset_kind kind = (enum oidset_kind)(wipe->step - STEP_ROWS);
		request->cell_scan.table = TABLE_VERSIONED_ROWS;
		request->cell_scan.key = row_key(kind, wipe->device);
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

/* To the next slice of this step (token.len is not 0), or to the next step. */
static void go_on(struct device_wipe *wipe)
{
	if (wipe->token.len == 0)
		wipe->step = wipe->step == STEP_LIST ? after_list(wipe) : wipe->step + 1;
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
	buf_init(&wipe->handles, HANDLES_MAX_BYTES);
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
