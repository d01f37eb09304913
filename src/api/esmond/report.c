#include "api/esmond/report.h"

#include <math.h>

#include "wire/calendar.h"
#include "wire/number.h"

enum { REFUSED_MAX_BYTES = 4 << 20 };

static void v2_report_advance(struct api_call *base);

/* ---- The question ---------------------------------------------------------------------------- */

int v2_report_read(struct v2_report *report, struct errbuf *e)
{
	struct api_call *call = &report->answer.call;
	const struct param *params = call->request->route->params;
	struct v2_lookups *lookups = &report->rows.lookups;
	int err = v2_params_lookups(call->request, params, v2_interface_fields, &call->arena,
				    lookups, e);
	err = err ? err : params_read_values(call->request, params, 0, report, e);
	report->device = v2_lookups_exact(lookups, FIELD_DEVICE);
	if (!report->device.data)
		report->device = v2_lookups_exact(lookups, FIELD_DEVICE_NAME);
	report->rows.name = report->interface;
	return err;
}

void v2_report_set_range(struct v2_report *report, const struct v2_range *range)
{
	report->rows.begin_ms = v2_range_begin_ms(range);
	report->rows.end_ms = v2_range_end_ms(range);
}

static void v2_report_begin(struct v2_report *report)
{
	if (report->kind->begin)
		report->kind->begin(report);
	report->answer.call.advance = v2_report_advance;
	api_call_later(&report->answer.call);
}

void v2_report_start(struct v2_report *report)
{
	const struct v2_report_kind *kind = report->kind;
	ASSERT(kind->open && kind->rows && kind->close && kind->end);
	ASSERT(report->endpoint_count >= 1 && report->endpoint_count <= REPORT_ENDPOINTS_MAX);
	buf_init(&report->refused, REFUSED_MAX_BYTES);
	report->select.done = v2_report_begin;
	v2_report_select(report);
}

/* ---- Series after series --------------------------------------------------------------------- */

/* Goes on to the next endpoint, span, interface. */
static void v2_report_pass(struct v2_report *report)
{
	ASSERT(report->at < report->count && !report->fetching);
	if (++report->endpoint == report->endpoint_count) {
		report->kind->close(report);
		report->endpoint = 0;
		if (++report->span == report->span_count) {
			report->span = 0;
			report->at++;
		}
	}
	report->answer.call.advance = v2_report_advance;
	api_call_later(&report->answer.call);
}

static void v2_report_got(struct v2_fetch *fetch)
{
	struct v2_report *report = CONTAINER_OF(fetch, struct v2_report, fetch);
	ASSERT(report->fetching);
	report->fetching = false;
	if (fetch->err) {
		api_call_fail_with(&report->answer.call, fetch->err, fetch->error.text);
		return;
	}
	report->found[report->endpoint] = fetch->found;
	report->kind->rows(report);
	if (fetch->more) {
		report->fetching = true;
		v2_fetch_next(fetch);
	} else {
		v2_report_pass(report);
	}
}

static bool v2_report_open_series(struct v2_report *report)
{
	const struct v2_selected *selected = v2_report_selected(report);
	struct v2_fetch *fetch = &report->fetch;
	struct v2_endpoint endpoint;
	report->found[report->endpoint] = false;
	if (report->endpoint == 0 && report->kind->span)
		report->kind->span(report);
	if (!v2_find_endpoint(selected->device, report->endpoints[report->endpoint], SLICE(""),
			      &endpoint) ||
	    !endpoint.oid->aggregate)
		return false;
	v2_fetch_release(fetch);
	*fetch = (struct v2_fetch){
		.answer = &report->answer,
		.target = {.device = device_stored_as(selected->device),
			   .oidset = endpoint.oidset,
			   .oid = endpoint.oid,
			   .path = {selected->name},
			   .path_count = 1},
		.got = v2_report_got,
	};
	return report->kind->open(report);
}

static void v2_report_advance(struct api_call *base)
{
	struct v2_answer *answer = v2_answer_of(base);
	struct v2_report *report = CONTAINER_OF(answer, struct v2_report, answer);
	if (report->fetching || !api_call_room(&answer->call))
		return;
	if (report->at == report->count) {
		report->kind->end(report);
	} else if (v2_report_open_series(report)) {
		report->fetching = true;
		v2_fetch_start(&report->fetch);
	} else {
		v2_report_pass(report);
	}
}

void v2_report_release(struct v2_answer *answer)
{
	struct v2_report *report = CONTAINER_OF(answer, struct v2_report, answer);
	v2_report_select_release(report);
	v2_fetch_release(&report->fetch);
	buf_release(&report->refused);
}

void v2_report_put_selected(struct v2_report *report)
{
	const struct v2_selected *selected = v2_report_selected(report);
	struct json_writer *json = &report->answer.call.json;
	json_put_string(json, "device", selected->device->name);
	json_put_string(json, "interface", selected->name);
	json_put_string(json, "ifAlias", selected->alias);
}

void v2_report_refuse(struct v2_report *report, const char *sentence)
{
	struct json_writer json;
	json_writer_init(&json, &report->refused);
	if (report->refused.len)
		buf_append_char(&report->refused, ',');
	json_write_object_begin(&json);
	json_put_string(&json, "device", v2_report_selected(report)->device->name);
	json_put_string(&json, "interface", v2_report_selected(report)->name);
	json_put_string(&json, "error", slice_of(sentence));
	json_write_object_end(&json);
	if (report->refused.failed)
		report->answer.call.out.failed = true; /* the answer ends with that */
}

void v2_report_refuse_unknown(struct v2_report *report)
{
	struct v2_endpoint endpoint;
	if (!v2_find_endpoint(v2_report_selected(report)->device, report->endpoints[0], SLICE(""),
			      &endpoint))
		v2_report_refuse(report, "no OIDSet of the device has such an endpoint");
}

void v2_report_put_refused(struct v2_report *report)
{
	struct buf *out = &report->answer.call.out;
	json_write_key(&report->answer.call.json, "errors");
	json_write_raw(&report->answer.call.json, SLICE("["));
	buf_append(out, report->refused.data, report->refused.len);
	buf_append_char(out, ']');
}

void v2_report_sum_rows(const struct v2_report *report, struct v2_sums *sums)
{
	const struct v2_fetch *fetch = &report->fetch;
	for (size_t i = 0; i < fetch->count; i++) {
		const struct counter_row *row = &fetch->rows[i];
		struct v2_bin bin = {row->start_ms, fetch->period_ms, row->val,
				     row->unplaced, row->covered_ms,  row->flags};
		v2_sums_add(sums, &bin);
	}
}

bool v2_report_is_measured(const struct v2_report *report, const int64_t *covered)
{
	bool any = false;
	for (size_t i = 0; i < report->endpoint_count; i++) {
		if (report->found[i] && !covered[i])
			return false;
		any |= report->found[i];
	}
	return any;
}

/* ---- Days and months ------------------------------------------------------------------------- */

void v2_report_set_days(struct v2_report *report, const struct v2_calendar *calendar)
{
	report->rows.begin_ms = calendar->edges_s[0] * 1000;
	report->rows.end_ms = calendar->edges_s[calendar->count] * 1000 - 1;
}

const char *const v2_span_words[] = {"day", "month", NULL};
const char *const v2_format_words[] = {"json", "csv", NULL};

/* What is asked: a month, or begin and end, or the month until now. In seconds. */
static int v2_report_read_time(struct v2_answer *answer, const struct zone *zone,
			       struct slice month, int64_t *begin_s, int64_t *end_s,
			       struct errbuf *e)
{
	const struct http_request *request = answer->call.request;
	struct v2_range range;
	int64_t day;
	int err = v2_params_range(request, 1000, answer->now_ms, &range, e);
	if (err)
		return err;
	*begin_s = range.begin;
	*end_s = range.end;
	if (range.has_begin || range.has_end)
		return month.data
			       ? errbuf_set(e, ERR_INVALID, "month is given beside begin and end")
			       : 0;
	day = zone_day_of(zone, v2_seconds(answer->now_ms));
	if (month.data && v2_month_parse(month, &day))
		return errbuf_set(e, ERR_INVALID, "month \"" SHOWN "\" is not like 2026-10",
				  SHOWN_OF(month));
	day -= date_of_days(day).day - 1;
	*begin_s = zone_day_begin(zone, day);
	*end_s = v2_seconds(answer->now_ms);
	if (month.data)
		*end_s = zone_day_begin(zone, v2_next_month(day)) - 1;
	return 0;
}

int v2_calendar_read(struct v2_answer *answer, struct v2_calendar *calendar, struct errbuf *e)
{
	size_t bytes = (V2_SPANS_MAX + 1) * sizeof(int64_t);
	const struct zone *zone;
	int64_t begin_s, end_s;
	if (!calendar->zone_name.data)
		calendar->zone_name = SLICE("UTC");
	calendar->edges_s = arena_alloc(&answer->call.arena, bytes);
	calendar->days = arena_alloc(&answer->call.arena, bytes);
	ASSERT(calendar->edges_s && calendar->days); /* the arena was empty */
	int err = zones_get(answer->call.api->zones, calendar->zone_name, &zone, e);
	err = err ? err : v2_report_read_time(answer, zone, calendar->month, &begin_s, &end_s, e);
	if (err)
		return err;
	if (v2_spans(zone, calendar->span, begin_s, end_s, calendar->edges_s, calendar->days,
		     &calendar->count))
		return errbuf_set(e, ERR_INVALID,
				  "more than %d days or months are asked for: ask for less time",
				  V2_SPANS_MAX);
	return 0;
}

static bool v2_report_is_over(const struct v2_answer *answer, const struct v2_calendar *calendar,
			      size_t i)
{
	return calendar->edges_s[i + 1] * 1000 <= answer->now_ms;
}

static struct value v2_column_value(const struct v2_column *column, const void *row)
{
	struct value value = {.type = column->type};
	memcpy(&value.bits, (const char *)row + column->offset, sizeof(value.bits));
	return value;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool v2_column_is_grouped(const struct v2_column *a, const struct v2_column *b)
{
	return a->group && b->name && b->group && strcmp(a->group, b->group) == 0;
}

void v2_report_begin_rows(struct v2_report *report, const struct v2_calendar *calendar)
{
	struct json_writer *json = &report->answer.call.json;
	if (calendar->csv)
		return;
	json_write_object_begin(json);
	v2_report_put_selected(report);
	json_write_key(json, "spans");
	json_write_array_begin(json);
}

void v2_report_end_rows(struct v2_report *report, const struct v2_calendar *calendar)
{
	struct json_writer *json = &report->answer.call.json;
	if (calendar->csv)
		return;
	json_write_array_end(json);
	json_write_object_end(json);
}

static void v2_report_put_json(struct v2_report *report, const struct v2_calendar *calendar,
			       size_t i, bool is_complete, const struct v2_column *columns,
			       const void *row)
{
	struct json_writer *json = &report->answer.call.json;
	char text[V2_SPAN_TEXT_BYTES];
	v2_span_text(calendar->span, calendar->days[i], text);
	json_write_object_begin(json);
	json_put_string(json, calendar->span == SPAN_DAY ? "day" : "month", slice_of(text));
	json_put_i64(json, "begin", calendar->edges_s[i]);
	json_put_i64(json, "end", calendar->edges_s[i + 1]);
	json_put_bool(json, "complete", is_complete);
	for (const struct v2_column *column = columns; column->name; column++) {
		if (column->group &&
		    (column == columns || !v2_column_is_grouped(column - 1, column))) {
			json_write_key(json, column->group);
			json_write_object_begin(json);
		}
		json_write_key(json, column->group ? column->member : column->name);
		json_write_number(json, v2_column_value(column, row));
		if (column->group && !v2_column_is_grouped(column, column + 1))
			json_write_object_end(json);
	}
	json_write_object_end(json);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* In quotes where it must be. */
static void v2_report_put_field(struct buf *out, struct slice field)
{
	bool plain = true;
	for (size_t i = 0; i < field.len; i++)
		plain = plain && !(field.data[i] && strchr(",\"\r\n", field.data[i]));
	if (plain) {
		buf_append(out, field.data, field.len);
		return;
	}
	buf_append_char(out, '"');
	for (size_t i = 0; i < field.len; i++) {
		if (field.data[i] == '"')
			buf_append_char(out, '"');
		buf_append_char(out, field.data[i]);
	}
	buf_append_char(out, '"');
}

void v2_report_begin_csv(struct v2_report *report, const struct v2_column *columns)
{
	struct api_call *call = &report->answer.call;
	call->content_type = "text/csv";
	buf_append_text(&call->out, "device,interface,ifAlias,span,begin,end,complete");
	for (; columns->name; columns++)
		buf_printf(&call->out, ",%s", columns->name);
	buf_append_char(&call->out, '\n');
}

static void v2_report_put_csv(struct v2_report *report, const struct v2_calendar *calendar,
			      size_t i, bool is_complete, const struct v2_column *columns,
			      const void *row)
{
	struct buf *out = &report->answer.call.out;
	const struct v2_selected *selected = v2_report_selected(report);
	const struct slice fields[] = {selected->device->name, selected->name, selected->alias};
	char text[V2_SPAN_TEXT_BYTES];
	for (size_t f = 0; f < ARRAY_LEN(fields); f++) {
		v2_report_put_field(out, fields[f]);
		buf_append_char(out, ',');
	}
	v2_span_text(calendar->span, calendar->days[i], text);
	buf_printf(out, "%s,%lld,%lld,%s", text, (long long)calendar->edges_s[i],
		   (long long)calendar->edges_s[i + 1], is_complete ? "true" : "false");
	for (; columns->name; columns++) {
		struct value value = v2_column_value(columns, row);
		buf_append_char(out, ',');
		if (value.type != VALUE_F64 || isfinite(value_as_f64(value)))
			number_append(out, value);
	}
	buf_append_char(out, '\n');
}

void v2_report_put_row(struct v2_report *report, const struct v2_calendar *calendar, size_t i,
		       bool is_measured, const struct v2_column *columns, const void *row)
{
	bool is_complete = is_measured && v2_report_is_over(&report->answer, calendar, i);
	(calendar->csv ? v2_report_put_csv : v2_report_put_json)(report, calendar, i, is_complete,
								 columns, row);
}

void v2_report_end(struct v2_report *report, const struct v2_calendar *calendar)
{
	struct v2_answer *answer = &report->answer;
	if (!calendar->csv) {
		json_write_array_end(&answer->call.json);
		json_write_object_end(&answer->call.json);
	}
	api_call_end(&answer->call);
}
