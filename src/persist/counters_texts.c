/* Texts of polls: they have the order that numbers have. What is the newest stored text of a place
 * is looked up before the first one of it is filled in, and remembered from then on. */
#include "base/cursor.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "model/counter_key.h"
#include "persist/counters.h"
#include "wire/json.h"

enum {
	TEXT_JSON_MAX_BYTES = 8 * POLL_TEXT_MAX_BYTES,
	LOOK_UP_MAX_BYTES = 64 << 20,
	LOOK_UP_AT_ONCE = 200, /* each has room for the longest text */
};

/* ---- As they are stored ---------------------------------------------------------------------- */

static int text_row_key(struct counters *c, const struct item *item, const struct poll_text *text,
			struct slice *made)
{
	const struct oidset *set = item->layout->oidset;
	const struct poll_row *row = &item->names.rows[text->row];
	struct counter_key key = {
		.ns = COUNTER_TENANT,
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
	if (!err && !utf8_is_valid(buf_slice(&out)))
		err = ERR_INVALID;
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

static uint64_t hash_of_json(struct slice json)
{
	return hash64(json.data, json.len, 0);
}

/* ---- Looking up ------------------------------------------------------------------------------ */

/* One place whose newest stored text is asked for. */
struct looked_up {
	struct layout *layout;
	const struct poll_text *text;
	struct store_request *request;
	bool taken;
};

struct looking_up {
	struct store_read *read;
	size_t count;
	struct looked_up list[LOOK_UP_AT_ONCE];
};

static void look_up(struct counters *c);

static void end_look_up(struct counters *c, int err)
{
	store_read_free(c->looking_up->read);
	mem_free(c->looking_up);
	c->looking_up = NULL;
	if (err) {
		counters_forget(c);
		counters_finish(c, err);
	}
}

/* False: the read has to go on. */
static bool take_newest(struct looked_up *one)
{
	const struct store_cell_scan *scan = &one->request->cell_scan;
	struct newest_text newest = {.ts_ms = INT64_MIN};
	if (one->taken || (!scan->count && one->request->more))
		return one->taken;
	if (scan->count && scan->cells[0].column.part[0].len == 8) {
		const uint8_t *column = (const uint8_t *)scan->cells[0].column.part[0].data;
		newest.ts_ms = (int64_t)be64_get(column);
		newest.hash = hash_of_json(scan->cells[0].value);
	}
	layout_keep_text(one->layout, one->text->row, one->text->column, newest);
	one->taken = true;
	return true;
}

static void looked_up(struct store_read *read, int err)
{
	struct counters *c = read->owner;
	struct looking_up *l = c->looking_up;
	bool all = true;
	for (size_t i = 0; i < l->count && !err; i++)
		all = take_newest(&l->list[i]) && all;
	if (!err && !all)
		err = store_read_submit(read);
	if (err)
		end_look_up(c, err);
	else if (all)
		look_up(c);
}

/* Places of which something is asked in this round; a few at a time. */
static bool is_asked(const struct looking_up *l, const struct layout *layout,
		     const struct poll_text *text)
{
	size_t place = layout_place(layout, text->row, text->column);
	for (size_t i = 0; i < l->count; i++) {
		const struct looked_up *one = &l->list[i];
		if (one->layout == layout &&
		    layout_place(layout, one->text->row, one->text->column) == place)
			return true;
	}
	return false;
}

/* ERR_LIMIT: no room. A name that cannot be is refused later. */
static int ask(struct counters *c, const struct item *item, const struct poll_text *text)
{
	struct looking_up *l = c->looking_up;
	struct slice row_key;
	int err = text_row_key(c, item, text, &row_key);
	if (err)
		return err == ERR_INVALID ? 0 : err;
	struct store_request *request = store_read_add(l->read, STORE_CELL_SCAN);
	if (!request)
		return ERR_LIMIT;
	request->cell_scan = (struct store_cell_scan){
		.table = TABLE_RAW_TEXT,
		.key = {.part = {row_key}},
		.backward = true,
		.limit = 1,
	};
	l->list[l->count++] = (struct looked_up){item->layout, text, request, false};
	return 0;
}

static int ask_of_item(struct counters *c, const struct item *item)
{
	struct looking_up *l = c->looking_up;
	int err = 0;
	for (size_t i = 0; i < item->values.text_count && !err; i++) {
		const struct poll_text *text = &item->values.texts[i];
		struct newest_text newest;
		if (l->count == LOOK_UP_AT_ONCE)
			break;
		if (item->layout->columns[text->column] != COLUMN_UNKNOWN &&
		    !layout_newest_text(item->layout, text->row, text->column, &newest) &&
		    !is_asked(l, item->layout, text))
			err = ask(c, item, text);
	}
	return err;
}

/* Asks for what is not known yet, or goes on. */
static void look_up(struct counters *c)
{
	struct looking_up *l = c->looking_up;
	int err = 0;
	store_read_reset(l->read);
	l->count = 0;
	for (size_t i = 0; i < c->count && !err; i++) {
		if (c->items[i].layout)
			err = ask_of_item(c, &c->items[i]);
	}
	if (!err && l->count)
		err = store_read_submit(l->read);
	if (err || !l->count)
		end_look_up(c, err);
	if (!err && !c->looking_up)
		counters_fill(c);
}

void counters_look_up_texts(struct counters *c)
{
	bool any = false;
	for (size_t i = 0; i < c->count; i++)
		any = any || (c->items[i].layout && c->items[i].values.text_count);
	if (!any) {
		counters_fill(c);
		return;
	}
	c->looking_up = mem_zalloc(sizeof(*c->looking_up));
	c->looking_up->read = store_read_new(c->persister.base.store, LOOK_UP_MAX_BYTES);
	c->looking_up->read->executor = c->persister.base.executor;
	c->looking_up->read->done = looked_up;
	c->looking_up->read->owner = c;
	c->looking_up->read->now_ms = clock_age_ms(c->persister.base.clock);
	look_up(c);
}

/* ---- Filling in ------------------------------------------------------------------------------ */

static bool admit_text(const struct layout *layout, const struct poll_text *text, int64_t ts_ms,
		       struct slice json, struct tally *tally)
{
	struct newest_text newest;
	bool known = layout_newest_text(layout, text->row, text->column, &newest);
	ASSERT(known); /* what can be stored was looked up */
	if (ts_ms == newest.ts_ms && hash_of_json(json) == newest.hash) {
		tally->repeated++;
		return false;
	}
	if (ts_ms <= newest.ts_ms) {
		tally->refused_order++;
		return false;
	}
	return true;
}

/* Whatever its OID's type: a device that says "n/a" has said something. */
static int fill_text(struct counters *c, const struct item *item, const struct poll_text *text,
		     int64_t now_ms, struct tally *tally)
{
	struct layout *layout = item->layout;
	int64_t ts_ms = item->values.row_ts_ms[text->row];
	struct slice row_key, json;
	uint8_t column[8];
	if (layout->columns[text->column] == COLUMN_UNKNOWN) {
		tally->refused_name++;
		return 0;
	}
	if (!counters_is_time(c, ts_ms, now_ms)) {
		tally->refused_time++;
		return 0;
	}
	int err = text_row_key(c, item, text, &row_key);
	if (err == ERR_INVALID) {
		tally->refused_series++;
		return 0;
	}
	err = err ? err : text_json(c, text, &json);
	if (err || !admit_text(layout, text, ts_ms, json, tally))
		return err;
	be64_put(column, (uint64_t)ts_ms);
	struct store_parts key = {.part = {row_key}};
	struct store_parts at = {.part = {{(const char *)column, sizeof(column)}}};
	int64_t ttl_ms = counters_ttl_ms(c, layout);
	err = store_cell_put(c->batch->write, TABLE_RAW_TEXT, &key, &at, json,
			     store_stamp(c->persister.base.store), ttl_ms ? ts_ms + ttl_ms : 0);
	if (err)
		return err;
	layout_keep_text(layout, text->row, text->column,
			 (struct newest_text){ts_ms, hash_of_json(json)});
	tally->stored++;
	return 0;
}

int counters_fill_texts(struct counters *c, const struct item *item, int64_t now_ms,
			struct tally *tally)
{
	int err = 0;
	for (size_t i = 0; i < item->values.text_count && !err; i++)
		err = fill_text(c, item, &item->values.texts[i], now_ms, tally);
	return err;
}
