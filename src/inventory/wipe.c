/* Forgetting what is stored of a device, in writes of some thousand deletions:
 *
 *  - all series of tenant snmp are listed; those with the device's tag are noted;
 *  - the rows of each table of counters are gone through; those of noted series are deleted,
 *    whatever their period;
 *  - the noted series leave the registry;
 *  - the versioned rows of each kind go, and then when they were last walked;
 *  - the rows of each other table of cells that has something of devices are gone through; those of
 *    this one are emptied.
 *
 * Whatever ends it half-way, it can be begun again. */
#include <stdlib.h>

#include "base/owner.h"
#include "inventory/private.h"
#include "model/counter_key.h"
#include "store/series_walk.h"
#include "store/wait.h"

enum {
	LIST_MAX_BYTES = 16 << 20,
	GROUP_MAX = 10000, /* series that are listed together */
	WRITE_MAX_BYTES = 16 << 20,
	DELETIONS_PER_WRITE = 10000,
	HANDLES_MAX_BYTES = 256 << 20,
	FORGET_PER_WRITE = 50000,
	NAMES_MAX_BYTES = 1 << 20,
};

static const enum table wipe_tables[] = {TABLE_RAW_DATA, TABLE_BASE_RATES, TABLE_RATE_AGGREGATIONS,
					 TABLE_STAT_AGGREGATIONS};

static const enum table wipe_cell_tables[] = {TABLE_RATE_CHECKPOINTS, TABLE_RAW_TEXT};

struct wipe {
	uint32_t magic;
	const struct device_wipe_options *options;
	struct errbuf *error;
	struct store_write *write;
	size_t deletions;   /* in it */
	struct buf handles; /* uint64_t each, of the device's series */
	struct arena names; /* of one row */
	/* The row of cells that is being emptied. */
	enum table table;
	const struct store_parts *key;
};

/* ---- Writing --------------------------------------------------------------------------------- */

static int wipe_write(struct wipe *w)
{
	int err = store_write_wait(w->write, w->options->queue);
	store_write_reset(w->write);
	w->deletions = 0;
	/* A series that is gone has been forgotten before. */
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* `err`: of one more deletion that was added. */
static int wipe_added(struct wipe *w, int err)
{
	ASSERT(w->deletions < DELETIONS_PER_WRITE);
	return !err && ++w->deletions == DELETIONS_PER_WRITE ? wipe_write(w) : err;
}

/* ---- Series ---------------------------------------------------------------------------------- */

/* Whether a tag begins at `at`: behind a comma that is not part of a value, where it would have an
 * odd number of backslashes before it. */
static bool wipe_tag_begins(const char *tags, const char *at)
{
	size_t slashes = 0;
	if (at == tags)
		return true;
	for (const char *before = at - 1; before > tags && before[-1] == '\\'; before--)
		slashes++;
	return at[-1] == ',' && slashes % 2 == 0;
}

/* Whether `device=NAME`, escaped as in a series set, is one of these tags. */
static bool wipe_has_tag(struct slice tags, struct slice tag)
{
	const char *end = tags.data + tags.len;
	for (const char *at = tags.data; at && at < end; at++) {
		at = memmem(at, (size_t)(end - at), tag.data, tag.len);
		if (!at)
			return false;
		const char *behind = at + tag.len;
		if (wipe_tag_begins(tags.data, at) && (behind == end || *behind == ','))
			return true;
	}
	return false;
}

static int wipe_by_handle(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return (a > b) - (a < b);
}

static size_t wipe_series_count(const struct wipe *w)
{
	return w->handles.len / sizeof(uint64_t);
}

static int wipe_walk(struct wipe *w, struct series_walk *walk, struct slice tag)
{
	struct series_group group = {.count = 1};
	int err = 0;
	while (!err && group.count) {
		err = series_walk_next(walk, &group);
		for (size_t i = 0; !err && i < group.count; i++)
			if (wipe_has_tag(group.series[i].tags_text, tag))
				err = buf_append(&w->handles, &group.handles[i], sizeof(uint64_t));
	}
	return err;
}

static int wipe_list(struct wipe *w)
{
	const struct device_wipe_options *o = w->options;
	const struct series_walk_options options = {
		.store = o->store,
		.clock = o->clock,
		.queue = o->queue,
		.tenant = COUNTER_TENANT,
		.group_max = GROUP_MAX,
		.list_max_bytes = LIST_MAX_BYTES,
	};
	const struct tag tag = {SLICE("device"), o->device};
	struct series_walk *walk = series_walk_new(&options);
	struct buf text;
	buf_init(&text, TAGS_TEXT_MAX_BYTES);
	int err = tags_encode((struct tags){&tag, 1}, &text);
	err = err ? err : wipe_walk(w, walk, buf_slice(&text));
	if (wipe_series_count(w))
		qsort(w->handles.data, wipe_series_count(w), sizeof(uint64_t), wipe_by_handle);
	buf_release(&text);
	series_walk_free(walk);
	return err;
}

/* A row of a table of counters. */
static int wipe_row(const struct store_row *row, void *owner)
{
	struct wipe *w = FROM_OWNER(wipe, owner);
	if (!bsearch(&row->handle, w->handles.data, wipe_series_count(w), sizeof(row->handle),
		     wipe_by_handle))
		return 0;
	struct store_target target = {.table = w->table, .period_ms = row->period_ms};
	return wipe_added(w, store_delete_range(w->write, &target, &row->handle, 1, STORE_TS_MIN,
						STORE_TS_MAX));
}

static int wipe_forget(struct wipe *w)
{
	const uint64_t *handles = (const uint64_t *)(const void *)w->handles.data;
	size_t count = wipe_series_count(w), unwritten = 0;
	int err = 0;
	for (size_t at = 0, n; at < count && !err; at += n) {
		n = count - at < STORE_GROUP_MAX ? count - at : STORE_GROUP_MAX;
		err = store_series_forget(w->write, handles + at, n);
		unwritten += n;
		if (err || (unwritten < FORGET_PER_WRITE && at + n < count))
			continue;
		err = wipe_write(w);
		unwritten = 0;
	}
	return err;
}

/* Without series only cells are left to look for. */
static int wipe_series(struct wipe *w)
{
	const struct device_wipe_options *o = w->options;
	int err = wipe_list(w);
	for (size_t i = 0; i < ARRAY_LEN(wipe_tables) && !err && wipe_series_count(w); i++) {
		w->table = wipe_tables[i];
		err = store_rows_wait(o->store, o->queue, clock_wall_ms(o->clock), w->table,
				      wipe_row, w, w->error);
		err = err ? err : wipe_write(w);
	}
	return err ? err : wipe_forget(w);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static int wipe_cell(const struct store_cell *cell, void *owner)
{
	struct wipe *w = FROM_OWNER(wipe, owner);
	return wipe_added(w, store_cell_delete(w->write, w->table, w->key, &cell->column,
					       store_stamp(w->options->store)));
}

static int wipe_cells(struct wipe *w, enum table table, const struct store_parts *key)
{
	const struct device_wipe_options *o = w->options;
	w->table = table;
	w->key = key;
	return store_row_wait(o->store, o->queue, clock_wall_ms(o->clock), table, key, wipe_cell, w,
			      w->error);
}

static bool wipe_is_of_device(struct wipe *w, const struct store_parts *key)
{
	struct counter_key row;
	struct errbuf e;
	if (w->table != TABLE_RAW_TEXT)
		return slice_equal(key->part[0], w->options->device);
	arena_reset(&w->names);
	return counter_key_decode(key->part[0], false, &w->names, &row, &e) == 0 &&
	       slice_equal(row.device, w->options->device);
}

static int wipe_row_of_cells(const struct store_row *row, void *owner)
{
	struct wipe *w = FROM_OWNER(wipe, owner);
	return wipe_is_of_device(w, &row->key) ? wipe_cells(w, w->table, &row->key) : 0;
}

static int wipe_all_cells(struct wipe *w)
{
	const struct device_wipe_options *o = w->options;
	int err = 0;
	for (unsigned kind = 0; kind < OIDSET_KINDS && !err; kind++) {
		struct store_parts key = row_key((enum oidset_kind)kind, o->device);
		err = wipe_cells(w, TABLE_VERSIONED_ROWS, &key);
		err = err ? err : wipe_write(w);
	}
	for (unsigned kind = 0; kind < OIDSET_KINDS && !err; kind++) {
		struct store_parts key = walk_key((enum oidset_kind)kind, o->device);
		err = wipe_cells(w, TABLE_VERSIONED_ROWS, &key);
	}
	for (size_t i = 0; i < ARRAY_LEN(wipe_cell_tables) && !err; i++) {
		w->table = wipe_cell_tables[i];
		err = store_rows_wait(o->store, o->queue, clock_wall_ms(o->clock), w->table,
				      wipe_row_of_cells, w, w->error);
	}
	return err ? err : wipe_write(w);
}

int device_wipe(const struct device_wipe_options *options, uint64_t *series, struct errbuf *e)
{
	ASSERT(options->device.len);
	struct wipe w = {.magic = MAGIC_OF(wipe), .options = options, .error = e};
	buf_init(&w.handles, HANDLES_MAX_BYTES);
	arena_init(&w.names, NAMES_MAX_BYTES);
	w.write = store_write_new(options->store, WRITE_MAX_BYTES);
	e->text[0] = 0;
	int err = wipe_series(&w);
	err = err ? err : wipe_all_cells(&w);
	if (err && !e->text[0])
		errbuf_set(e, err, "%s", err_text(err));
	if (err)
		errbuf_prefix(e, err, "the data of " SHOWN " could not be deleted",
			      SHOWN_OF(options->device));
	*series = wipe_series_count(&w);
	store_write_free(w.write);
	arena_release(&w.names);
	buf_release(&w.handles);
	return err;
}
