/* Which interfaces a report is about: those whose rows match and lived at some time of it.
 *
 * Of a device that has no rows of that time only its counters say which interfaces it had: then
 * those count that had data. Nothing but their names is known of them; what rows of other times say
 * is not of that time, but one that they hide stays hidden. Order of events: the rows of all
 * devices; then one after the other each device that had none, its rows of all times, its series.
 */
#include <stdlib.h>

#include "api/esmond/report.h"
#include "conf/conf.h"
#include "model/counter_key.h"

enum {
	INTERFACES_MAX = 10000,
	HIDDEN_ARENA_BYTES = 64 << 20,
	NAMES_WORK_MAX = 10000000, /* of look-ups, over the names of one device: some 50 ms */
};

static void v2_select_step(struct api_call *base);

/* ---- The list -------------------------------------------------------------------------------- */

static size_t interfaces_max(const struct v2_report *report)
{
	const struct conf *conf = report->answer.call.api->conf;
	return conf ? (size_t)conf->query_series_max : INTERFACES_MAX;
}

/* ERR_LIMIT: there are too many. */
static int add_selected(struct v2_report *report, const struct device *device, struct slice name,
			struct slice alias)
{
	struct arena *arena = &report->answer.call.arena;
	if (report->count == interfaces_max(report))
		return ERR_LIMIT;
	if (report->count == report->room) {
		size_t room = report->room ? report->room * 2 : 64;
		struct v2_selected *more = arena_alloc(arena, room * sizeof(*more));
		if (!more)
			return ERR_LIMIT;
		if (report->count)
			memcpy(more, report->list, report->count * sizeof(*more));
		report->list = more;
		report->room = room;
	}
	struct v2_selected selected = {device, arena_copy(arena, name), arena_copy(arena, alias)};
	if (!selected.name.data || !selected.alias.data)
		return ERR_LIMIT;
	report->list[report->count++] = selected;
	return 0;
}

static struct slice v2_select_alias_of(const struct v2_row *row)
{
	struct slice alias = row->values[FIELD_IF_ALIAS];
	return alias.data ? alias : SLICE("");
}

/* Versions of one interface follow each other; the last has its name of today. */
static bool v2_select_take_row(struct v2_rows *rows, const struct v2_row *row)
{
	struct v2_report *report = CONTAINER_OF(rows, struct v2_report, rows);
	struct v2_selected *last = report->count ? &report->list[report->count - 1] : NULL;
	if (row->hidden)
		return true;
	if (last && last->device == row->device && slice_equal(last->name, row->row->name))
		report->count--;
	if (!add_selected(report, row->device, row->row->name, v2_select_alias_of(row)))
		return true;
	report->select.too_many = true;
	return false;
}

/* As the rows of all devices come. */
static int by_names(const void *a, const void *b)
{
	const struct v2_selected *left = a, *right = b;
	int order = slice_compare(left->device->name, right->device->name);
	return order ? order : slice_compare(left->name, right->name);
}

static void v2_select_finish(struct v2_report *report)
{
	if (report->select.too_many) {
		api_call_fail(&report->answer.call, 422,
			      "more than %zu interfaces match (query.series_max): ask for fewer",
			      interfaces_max(report));
		return;
	}
	if (report->select.bare_count && report->count)
		qsort(report->list, report->count, sizeof(*report->list), by_names);
	report->select.done(report);
}

/* ---- Devices without rows -------------------------------------------------------------------- */

static struct v2_report *v2_select_report_of(struct v2_select *select)
{
	return CONTAINER_OF(select, struct v2_report, select);
}

static void note_bare(struct v2_rows *rows, const struct device *device)
{
	struct v2_select *select = &CONTAINER_OF(rows, struct v2_report, rows)->select;
	select->bare[select->bare_count++] = device;
}

static void v2_select_go_on(struct v2_report *report)
{
	report->answer.call.advance = v2_select_step;
	api_call_later(&report->answer.call);
}

static int v2_select_by_name(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Rows come in the order of names. */
static bool v2_select_is_hidden(const struct v2_select *select, struct slice name)
{
	return select->hidden_count && bsearch(&name, select->hidden, select->hidden_count,
					       sizeof(*select->hidden), v2_select_by_name);
}

/* Nothing but its names is known of the interface: other look-ups leave it out. */
static int take_name(struct v2_report *report, const struct device *device, struct slice name,
		     uint64_t *work)
{
	const struct slice values[V2_FIELDS_MAX] = {
		[FIELD_DEVICE] = device->name,
		[FIELD_DEVICE_NAME] = device->name,
		[FIELD_IF_NAME] = name,
	};
	if ((report->interface.data && !counter_key_part_matches(name, report->interface)) ||
	    v2_select_is_hidden(&report->select, name) ||
	    !v2_lookups_match(&report->rows.lookups, values, work))
		return 0;
	return add_selected(report, device, name, SLICE(""));
}

static void polled_ended(struct v2_polled *polled, int err)
{
	struct v2_select *select = CONTAINER_OF(polled, struct v2_select, polled);
	struct v2_report *report = v2_select_report_of(select);
	if (err) {
		api_call_fail_with(&report->answer.call, err, polled->error.text);
		return;
	}
	uint64_t work = 0;
	for (size_t i = 0; i < polled->count && !select->too_many && work < NAMES_WORK_MAX; i++)
		select->too_many = take_name(report, polled->device, polled->names[i], &work) != 0;
	if (work >= NAMES_WORK_MAX) {
		api_call_fail_with(&report->answer.call, ERR_LIMIT,
				   "the look-ups take too long over so many interfaces; use fewer "
				   "and shorter expressions");
		return;
	}
	select->bare_at++;
	v2_select_go_on(report);
}

static int add_hidden(struct v2_select *select, struct slice name)
{
	struct slice copy = arena_copy(&select->arena, name);
	if (select->hidden_count == select->hidden_room) {
		size_t room = select->hidden_room ? select->hidden_room * 2 : 64;
		struct slice *more = arena_alloc(&select->arena, room * sizeof(*more));
		if (!more)
			return ERR_LIMIT;
		if (select->hidden_count)
			memcpy(more, select->hidden, select->hidden_count * sizeof(*more));
		select->hidden = more;
		select->hidden_room = room;
	}
	select->hidden[select->hidden_count++] = copy;
	return copy.data ? 0 : ERR_LIMIT;
}

/* The versions of a name follow each other: the last one holds. */
static bool take_hidden(struct v2_rows *rows, const struct v2_row *row)
{
	struct v2_select *select = CONTAINER_OF(rows, struct v2_select, ever);
	size_t count = select->hidden_count;
	bool is_last = count && slice_equal(select->hidden[count - 1], row->row->name);
	if (is_last && !row->hidden)
		select->hidden_count--;
	else if (!is_last && row->hidden)
		select->too_many = add_hidden(select, row->row->name) != 0;
	return !select->too_many;
}

static void hidden_ended(struct v2_rows *rows, int err)
{
	struct v2_select *select = CONTAINER_OF(rows, struct v2_select, ever);
	struct v2_report *report = v2_select_report_of(select);
	if (err) {
		api_call_fail_with(&report->answer.call, err, rows->error.text);
		return;
	}
	select->polled = (struct v2_polled){
		.answer = &report->answer,
		.device = rows->device,
		.endpoints = report->endpoints,
		.endpoint_count = report->endpoint_count,
		.begin_ms = report->rows.begin_ms,
		.end_ms = report->rows.end_ms,
		.ended = polled_ended,
	};
	if (select->too_many || !v2_polled_start(&select->polled)) {
		select->bare_at++;
		v2_select_go_on(report);
	}
}

static void start_device(struct v2_select *select)
{
	v2_rows_release(&select->ever);
	v2_polled_release(&select->polled);
	arena_reset(&select->arena);
	select->hidden = NULL;
	select->hidden_count = select->hidden_room = 0;
	select->ever = (struct v2_rows){
		.answer = &v2_select_report_of(select)->answer,
		.kind = OIDSET_INTERFACES,
		.fields = v2_interface_fields,
		.end_ms = INVENTORY_FOREVER_MS,
		.device = select->bare[select->bare_at],
		.with_hidden = true,
		.take = take_hidden,
		.ended = hidden_ended,
	};
	v2_rows_start(&select->ever);
}

static void v2_select_step(struct api_call *base)
{
	struct v2_answer *answer = v2_answer_of(base);
	struct v2_report *report = CONTAINER_OF(answer, struct v2_report, answer);
	struct v2_select *select = &report->select;
	if (!select->too_many && select->bare_at < select->bare_count)
		start_device(select);
	else
		v2_select_finish(report);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void v2_select_rows_ended(struct v2_rows *rows, int err)
{
	struct v2_report *report = CONTAINER_OF(rows, struct v2_report, rows);
	if (err)
		api_call_fail_with(&report->answer.call, err, rows->error.text);
	else
		v2_select_go_on(report);
}

void v2_report_select(struct v2_report *report)
{
	struct v2_rows *rows = &report->rows;
	struct v2_select *select = &report->select;
	size_t devices = report->answer.inventory->device_count;
	select->bare =
		arena_alloc(&report->answer.call.arena, (devices + 1) * sizeof(*select->bare));
	if (!select->bare) {
		api_call_fail_with(&report->answer.call, ERR_LIMIT, "there are too many devices");
		return;
	}
	arena_init(&select->arena, HIDDEN_ARENA_BYTES);
	rows->answer = &report->answer;
	rows->kind = OIDSET_INTERFACES;
	rows->fields = v2_interface_fields;
	rows->with_hidden = true;
	rows->take = v2_select_take_row;
	rows->bare = note_bare;
	rows->ended = v2_select_rows_ended;
	if (report->device.data)
		rows->device = inventory_device(report->answer.inventory, report->device);
	v2_rows_start(rows);
}

void v2_report_select_release(struct v2_report *report)
{
	v2_rows_release(&report->rows);
	v2_rows_release(&report->select.ever);
	v2_polled_release(&report->select.polled);
	arena_release(&report->select.arena);
}
