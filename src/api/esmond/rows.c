#include "api/esmond/rows.h"

#include <stdlib.h>

#include "base/owner.h"
#include "conf/conf.h"
#include "model/counter_key.h"

enum {
	ROWS_ARENA_BYTES = 64 << 20, /* of one device */
	ROWS_A_TURN = 50,
};

const char *const v2_interface_fields[] = {"device",  "device__name", "ifName",        "ifAlias",
					   "ifDescr", "ipAddr",       "ifPhysAddress", NULL};
const char *const v2_outlet_fields[] = {"device", "device__name", "outletID", "outletName", NULL};

static void v2_rows_step(struct api_call *base);

/* The walk that the answer works on; one at a time. */
static struct v2_rows *v2_rows_of(struct v2_answer *answer)
{
	ASSERT(answer->walk);
	ASSERT_IS(v2_rows, answer->walk);
	return answer->walk;
}

/* ---- One row --------------------------------------------------------------------------------- */

static size_t v2_rows_find_field(const struct v2_rows *rows, struct slice key)
{
	size_t field = 0;
	while (rows->fields[field] && !slice_equal(key, slice_of(rows->fields[field])))
		field++;
	return field;
}

/* Attributes that are texts or numbers, by field. */
static void read_attributes(const struct v2_rows *rows, struct arena *arena, struct v2_row *row)
{
	struct json_reader reader;
	enum json_event event;
	json_reader_init(&reader, row->row->attributes, arena);
	if (json_next(&reader) != JSON_OBJECT_BEGIN)
		return;
	while ((event = json_next(&reader)) == JSON_KEY) {
		size_t field = v2_rows_find_field(rows, reader.text);
		event = json_next(&reader);
		if (rows->fields[field] && (event == JSON_STRING || event == JSON_NUMBER))
			row->values[field] = reader.text;
		else if (!json_skip(&reader, event))
			return;
	}
}

static bool v2_rows_contains(struct slice text, const char *part)
{
	return text.len && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static bool v2_rows_is_hidden(const struct v2_rows *rows, const struct v2_row *row)
{
	const struct conf *conf = rows->answer->call.api->conf;
	return rows->kind == OIDSET_INTERFACES && !(conf && conf->v2_show_hidden) &&
	       v2_rows_contains(row->values[FIELD_IF_ALIAS], ":hide:");
}

/* Whether the walk goes on. */
static bool v2_rows_take_row(struct v2_rows *rows, const struct inventory_row *stored,
			     uint64_t *work)
{
	ASSERT(rows->next < rows->answer->inventory->device_count);
	struct v2_row row = {.device = rows->answer->inventory->devices[rows->next], .row = stored};
	if (rows->name.data && !counter_key_part_matches(stored->name, rows->name))
		return true;
	row.values[FIELD_DEVICE] = row.values[FIELD_DEVICE_NAME] = row.device->name;
	read_attributes(rows, &rows->arena, &row);
	/* Where the poll gave no such attribute the row still has its name. */
	if (rows->kind == OIDSET_INTERFACES && !row.values[FIELD_IF_NAME].data)
		row.values[FIELD_IF_NAME] = stored->name;
	row.hidden = v2_rows_is_hidden(rows, &row);
	if ((row.hidden && !rows->with_hidden) ||
	    !v2_lookups_match(&rows->lookups, row.values, work))
		return true;
	return rows->take(rows, &row);
}

static int by_name_and_time(const void *a, const void *b)
{
	const struct inventory_row *left = a, *right = b;
	int order = slice_compare(left->name, right->name);
	return order ? order
		     : (left->begin_ms > right->begin_ms) - (left->begin_ms < right->begin_ms);
}

/* ---- Device by device ------------------------------------------------------------------------ */

static void v2_rows_end(struct v2_rows *rows, int err)
{
	ASSERT(rows->answer->walk == rows && !rows->reading);
	rows->answer->walk = NULL;
	rows->ended(rows, err);
}

static void v2_rows_read_done(struct inventory_rows_read *read, int err)
{
	struct v2_rows *rows = FROM_OWNER(v2_rows, read->owner);
	ASSERT(rows->reading && !rows->has_rows);
	rows->reading = false;
	if (!rows->answer->call.request)
		return; /* it is over, and freed when its turn has passed */
	if (err) {
		rows->error = read->error;
		v2_rows_end(rows, err);
		return;
	}
	if (read->count > 1)
		qsort(read->rows, read->count, sizeof(*read->rows), by_name_and_time);
	else if (!read->count && rows->bare)
		rows->bare(rows, rows->answer->inventory->devices[rows->next]);
	rows->row = 0;
	rows->has_rows = true;
	api_call_go_on(&rows->answer->call);
}

static void v2_rows_read_device(struct v2_rows *rows)
{
	struct v2_answer *answer = rows->answer;
	arena_reset(&rows->arena);
	rows->read = (struct inventory_rows_read){
		.store = answer->call.api->store,
		.executor = loop_executor(answer->call.api->loop),
		.clock = answer->call.api->clock,
		.arena = &rows->arena,
		.kind = rows->kind,
		.device = device_stored_as(answer->inventory->devices[rows->next]),
		.begin_ms = rows->begin_ms,
		.end_ms = rows->end_ms,
		.deadline_us = answer->call.deadline_us,
		.done = v2_rows_read_done,
		.owner = rows,
	};
	int err = inventory_rows_read_start(&rows->read);
	rows->reading = !err;
	if (err)
		v2_rows_end(rows, err);
}

/* Whether the look-ups on the device's name leave it in. */
static bool device_matches(const struct v2_rows *rows, const struct device *device, uint64_t *work)
{
	struct slice name[] = {device->name, device->name};
	struct v2_lookups only = {.count = 0};
	for (size_t i = 0; i < rows->lookups.count; i++) {
		if (rows->lookups.list[i].field <= FIELD_DEVICE_NAME)
			only.list[only.count++] = rows->lookups.list[i];
	}
	return v2_lookups_match(&only, name, work);
}

/* Some of the rows that were read; whether those were all. */
static bool v2_rows_take_rows(struct v2_rows *rows)
{
	size_t count = rows->read.count;
	uint64_t work = 0;
	bool go_on = true;
	for (size_t i = 0; i < ROWS_A_TURN && go_on && work < V2_TURN_WORK && rows->row < count;
	     i++)
		go_on = v2_rows_take_row(rows, &rows->read.rows[rows->row++], &work);
	if (go_on && rows->row < count)
		return false;
	rows->has_rows = false;
	rows->next =
		go_on && !rows->device ? rows->next + 1 : rows->answer->inventory->device_count;
	return true;
}

static void v2_rows_step(struct api_call *base)
{
	struct v2_answer *answer = v2_answer_of(base);
	struct v2_rows *rows = v2_rows_of(answer);
	const struct inventory *inventory = answer->inventory;
	uint64_t work = 0;
	if (rows->reading || !api_call_room(&answer->call))
		return;
	if (rows->has_rows && !v2_rows_take_rows(rows)) {
		api_call_later(&answer->call);
		return;
	}
	for (; rows->next < inventory->device_count; rows->next++) {
		const struct device *device = inventory->devices[rows->next];
		if (device_matches(rows, device, &work)) {
			v2_rows_read_device(rows);
			return;
		}
		work += 10;
		if (work > V2_TURN_WORK) {
			rows->next++;
			api_call_later(&answer->call);
			return;
		}
	}
	v2_rows_end(rows, 0);
}

void v2_rows_start(struct v2_rows *rows)
{
	const struct inventory *inventory = rows->answer->inventory;
	ASSERT(rows->take && rows->ended && !rows->answer->walk);
	ASSERT(v2_rows_find_field(rows, SLICE("")) <= V2_FIELDS_MAX);
	rows->magic = MAGIC_OF(v2_rows);
	/* One device needs no walk. */
	while (rows->device && rows->next < inventory->device_count &&
	       inventory->devices[rows->next] != rows->device)
		rows->next++;
	rows->answer->walk = rows;
	rows->answer->call.advance = v2_rows_step;
	arena_init(&rows->arena, ROWS_ARENA_BYTES);
	api_call_later(&rows->answer->call);
}

void v2_rows_release(struct v2_rows *rows)
{
	if (rows->reading)
		inventory_rows_read_cancel(&rows->read);
	rows->reading = false;
	rows->magic = 0;
	arena_release(&rows->arena);
}

/* ---- Attributes ------------------------------------------------------------------------------ */

void v2_put_attributes(struct v2_answer *answer, const struct inventory_row *row)
{
	struct json_reader reader;
	struct arena arena;
	arena_init(&arena, 1 << 20);
	json_reader_init(&reader, row->attributes, &arena);
	if (json_next(&reader) != JSON_OBJECT_BEGIN)
		goto out;
	while (json_next(&reader) == JSON_KEY) {
		struct slice key = reader.text;
		enum json_event event = json_next(&reader);
		size_t offset = reader.offset;
		if (!json_skip(&reader, event))
			break;
		json_write_key_slice(&answer->call.json, key);
		json_write_raw(&answer->call.json, json_text_from(&reader, offset));
	}
out:
	arena_release(&arena);
}
