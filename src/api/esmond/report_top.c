/* /v2/report/top: the interfaces with the largest figures.
 *
 * by=average: growth by the time really covered; max: the largest rate of a row (of an aggregate
 * the largest of a single delta); volume: growth, with what is unplaced. Those without any data are
 * left out; of equal figures the one that comes first by name is before the other. Interfaces that
 * have no such endpoint, or another frequency than is asked for, are named. */
#include "api/esmond/data.h"
#include "api/esmond/esmond.h"
#include "api/esmond/report.h"

enum { TOP_PRESET = 10, TOP_MAX = 1000 };

enum order { BY_AVERAGE, BY_MAX, BY_VOLUME };

static const char *const v2_top_orders[] = {"average", "max", "volume", NULL};

struct v2_top_place {
	size_t at; /* in report->list */
	double figure;
	uint64_t volume;
	int64_t ts_ms; /* BY_MAX: of the row or delta */
};

struct v2_top_call {
	struct v2_report report;
	struct v2_data_params params;
	enum order order;
	uint64_t wanted;
	struct v2_top_place *places; /* descending */
	size_t place_count;
	struct v2_top_place now; /* of the interface at work */
	int64_t covered_ms;
	bool any;
};

static struct v2_top_call *v2_top_call_of(struct v2_report *report)
{
	return CONTAINER_OF(report, struct v2_top_call, report);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void v2_top_begin_interface(struct v2_report *report)
{
	struct v2_top_call *call = v2_top_call_of(report);
	call->now = (struct v2_top_place){.at = report->at};
	call->covered_ms = 0;
	call->any = false;
}

static bool v2_top_open_series(struct v2_report *report)
{
	struct v2_top_call *call = v2_top_call_of(report);
	struct v2_fetch *fetch = &report->fetch;
	struct v2_plan plan;
	struct errbuf e;
	if (v2_plan_make(&report->answer, &fetch->target, &call->params, &plan, &e)) {
		v2_report_refuse(report, e.text);
		return false;
	}
	struct v2_grid grid = v2_grid_of(&call->params.range, plan.period_ms);
	fetch->period_ms = plan.period_ms;
	fetch->from_ms = grid.first_ms;
	fetch->to_ms = grid.count ? grid.last_ms + plan.period_ms : grid.first_ms;
	return true;
}

static void take_largest(struct v2_top_call *call, const struct counter_row *row)
{
	int64_t base_ms = call->report.fetch.target.oidset->frequency_ms, m_ts_ms;
	enum v2_cf cf = row->level ? CF_MAX : CF_AVERAGE;
	struct value value = v2_value_of(cf, base_ms, row, &m_ts_ms);
	if (value.type == VALUE_NONE || (call->any && value_as_f64(value) <= call->now.figure))
		return;
	call->any = true;
	call->now.figure = value_as_f64(value);
	call->now.ts_ms = row->level ? m_ts_ms : row->start_ms;
}

static void v2_top_take_rows(struct v2_report *report)
{
	struct v2_top_call *call = v2_top_call_of(report);
	for (size_t i = 0; i < report->fetch.count; i++) {
		const struct counter_row *row = &report->fetch.rows[i];
		call->now.volume = v2_sum_of(call->now.volume, row->val);
		if (call->order == BY_VOLUME)
			call->now.volume = v2_sum_of(call->now.volume, row->unplaced);
		call->covered_ms += row->covered_ms;
		if (call->order == BY_MAX)
			take_largest(call, row);
		else
			call->any |= row->count || row->unplaced;
	}
}

/* ---- The best -------------------------------------------------------------------------------- */

static bool is_above(const struct v2_top_call *call, const struct v2_top_place *a,
		     const struct v2_top_place *b)
{
	return call->order == BY_VOLUME ? a->volume > b->volume : a->figure > b->figure;
}

static void v2_top_close_interface(struct v2_report *report)
{
	struct v2_top_call *call = v2_top_call_of(report);
	size_t at = call->place_count;
	v2_report_refuse_unknown(report);
	if (call->order == BY_AVERAGE) {
		call->any = call->covered_ms > 0;
		call->now.figure =
			(double)call->now.volume * 1000.0 / (double)(call->covered_ms + !call->any);
	}
	if (!call->any)
		return;
	while (at && is_above(call, &call->now, &call->places[at - 1]))
		at--;
	if (at == call->wanted)
		return;
	if (call->place_count < call->wanted)
		call->place_count++;
	memmove(&call->places[at + 1], &call->places[at],
		(call->place_count - 1 - at) * sizeof(*call->places));
	call->places[at] = call->now;
}

static void v2_top_put_place(struct v2_top_call *call, const struct v2_top_place *place)
{
	struct v2_report *report = &call->report;
	struct json_writer *json = &report->answer.call.json;
	report->at = place->at;
	json_write_object_begin(json);
	v2_report_put_selected(report);
	json_write_key(json, "val");
	if (call->order == BY_VOLUME)
		json_write_u64(json, place->volume);
	else
		json_write_f64(json, place->figure);
	if (call->order == BY_MAX)
		json_put_i64(json, "ts", v2_seconds(place->ts_ms));
	json_write_object_end(json);
}

static void v2_top_end_report(struct v2_report *report)
{
	struct v2_top_call *call = v2_top_call_of(report);
	struct json_writer *json = &report->answer.call.json;
	size_t count = report->count;
	json_write_object_begin(json);
	json_put_string(json, "endpoint", report->endpoints[0]);
	json_put_string(json, "by", slice_of(v2_top_orders[call->order]));
	json_put_i64(json, "begin_time", call->params.range.begin);
	json_put_i64(json, "end_time", call->params.range.end);
	json_put_i64(json, "interfaces", (int64_t)count);
	v2_report_put_refused(report);
	json_write_key(json, "children");
	json_write_array_begin(json);
	for (size_t i = 0; i < call->place_count; i++)
		v2_top_put_place(call, &call->places[i]);
	json_write_array_end(json);
	json_write_object_end(json);
	api_call_end(&report->answer.call);
}

static const struct v2_report_kind kind = {
	.span = v2_top_begin_interface,
	.open = v2_top_open_series,
	.rows = v2_top_take_rows,
	.close = v2_top_close_interface,
	.end = v2_top_end_report,
};

const struct param v2_top_params[] = {{V2_PARAM_INTERFACE},
				      {V2_PARAM_BEGIN},
				      {V2_PARAM_END},
				      {V2_PARAM_ENDPOINT},
				      {V2_PARAM_AGG},
				      {"by", PARAM_WORD, offsetof(struct v2_top_call, order),
				       .words = v2_top_orders,
				       .help = "Which figure; average where it is left out."},
				      {"n", PARAM_NUMBER, offsetof(struct v2_top_call, wanted), 1,
				       TOP_MAX, .help = "How many; 10 where it is left out."},
				      {NULL}};

static int v2_top_read_question(struct v2_top_call *call, struct errbuf *e)
{
	struct v2_answer *answer = &call->report.answer;
	call->wanted = TOP_PRESET;
	int err = v2_report_read(&call->report, e);
	if (!err)
		err = v2_params_data(answer->call.request, 1000, answer->now_ms, &call->params, e);
	if (err)
		return err;
	call->places = arena_alloc(&answer->call.arena, (TOP_MAX + 1) * sizeof(*call->places));
	return call->places ? 0 : errbuf_set(e, ERR_INVALID, "the look-ups are too long");
}

static void top_end(struct http_request *request)
{
	struct v2_top_call *call = mem_zalloc(sizeof(*call));
	struct v2_report *report = &call->report;
	struct errbuf e;
	v2_answer_init(&report->answer, request, NULL, v2_report_release);
	report->kind = &kind;
	if (v2_top_read_question(call, &e)) {
		api_call_fail(&report->answer.call, 400, "%s", e.text);
		return;
	}
	report->endpoint_count = report->span_count = 1;
	v2_report_set_range(report, &call->params.range);
	v2_report_start(report);
}

const struct http_handler v2_report_top = V2_HANDLER(top_end);
