/* /v2/report/sum: the counters of many interfaces as one, point by point.
 *
 * A point is the sum over the interfaces that have a value there, and says how many those are
 * (`of`); null where none has. Interfaces that have no such endpoint, or another frequency than is
 * asked for, are named. */
#include "api/esmond/data.h"
#include "api/esmond/esmond.h"
#include "api/esmond/report.h"
#include "wire/number.h"

enum { POINTS_MAX = 500000, POINTS_A_TURN = 4096, POINT_BYTES = 120 };

struct v2_report_sum_point {
	double rates;
	uint64_t growth;
	uint32_t of;
};

struct v2_report_sum_call {
	struct v2_report report;
	struct v2_data_params params;
	int64_t period_ms; /* 0: that of the first interface */
	struct v2_grid grid;
	struct v2_report_sum_point *points;
	size_t put; /* of them, into the answer */
	size_t summed;
};

static struct v2_report_sum_call *v2_report_sum_call_of(struct v2_report *report)
{
	return CONTAINER_OF(report, struct v2_report_sum_call, report);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void v2_report_sum_begin_report(struct v2_report *report)
{
	struct json_writer *json = &report->answer.call.json;
	json_write_object_begin(json);
	json_write_key(json, "interfaces");
	json_write_array_begin(json);
}

static int make_points(struct v2_report_sum_call *call, int64_t period_ms, struct errbuf *e)
{
	call->period_ms = period_ms;
	call->grid = v2_grid_of(&call->params.range, period_ms);
	if (call->grid.count > POINTS_MAX)
		return errbuf_set(e, ERR_INVALID,
				  "that are %llu points, and a sum has at most %d: ask for less "
				  "time or a longer agg",
				  (unsigned long long)call->grid.count, POINTS_MAX);
	size_t bytes = (size_t)(call->grid.count + 1) * sizeof(*call->points);
	call->points = arena_zalloc(&call->report.answer.call.arena, bytes);
	if (!call->points || http_request_charge(call->report.answer.call.request, bytes))
		return errbuf_set(e, ERR_BUSY, "there is no memory for so many points now");
	return 0;
}

static bool v2_report_sum_open_series(struct v2_report *report)
{
	struct v2_report_sum_call *call = v2_report_sum_call_of(report);
	struct v2_fetch *fetch = &report->fetch;
	struct v2_data_params params = call->params;
	struct v2_plan plan;
	struct errbuf e;
	params.has_agg = call->period_ms != 0;
	params.agg_ms = call->period_ms;
	if (v2_plan_make(&report->answer, &fetch->target, &params, &plan, &e) ||
	    (!call->points && make_points(call, plan.period_ms, &e))) {
		v2_report_refuse(report, e.text);
		return false;
	}
	fetch->period_ms = plan.period_ms;
	fetch->from_ms = call->grid.first_ms;
	fetch->to_ms = call->grid.count ? call->grid.last_ms + plan.period_ms : fetch->from_ms;
	call->summed++;
	json_write_object_begin(&report->answer.call.json);
	v2_report_put_selected(report);
	json_write_object_end(&report->answer.call.json);
	return true;
}

static void v2_report_sum_take_rows(struct v2_report *report)
{
	struct v2_report_sum_call *call = v2_report_sum_call_of(report);
	const struct v2_fetch *fetch = &report->fetch;
	int64_t base_ms = fetch->target.oidset->frequency_ms, m_ts_ms;
	for (size_t i = 0; i < fetch->count; i++) {
		const struct counter_row *row = &fetch->rows[i];
		struct value value = v2_value_of(call->params.cf, base_ms, row, &m_ts_ms);
		int64_t at = (row->start_ms - call->grid.first_ms) / call->grid.step_ms;
		if (value.type == VALUE_NONE || row->start_ms < call->grid.first_ms ||
		    (uint64_t)at >= call->grid.count)
			continue;
		struct v2_report_sum_point *point = &call->points[at];
		point->of++;
		if (value.type == VALUE_U64)
			point->growth = v2_sum_of(point->growth, value.bits);
		else
			point->rates += value_as_f64(value);
	}
}

static void v2_report_sum_close_series(struct v2_report *report)
{
	v2_report_refuse_unknown(report);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static char *v2_report_sum_put(char *to, const char *text)
{
	size_t len = strlen(text);
	memcpy(to, text, len);
	return to + len;
}

static char *v2_report_sum_put_point(const struct v2_report_sum_call *call, char *to, size_t i)
{
	const struct v2_report_sum_point *point = &call->points[i];
	int64_t ts_ms = call->grid.first_ms + (int64_t)i * call->grid.step_ms;
	bool rates = call->params.cf != CF_DELTA;
	to = v2_report_sum_put(to, i ? ",{\"ts\":" : "{\"ts\":");
	to += number_print_i64(to, v2_seconds(ts_ms));
	to = v2_report_sum_put(to, ",\"val\":");
	if (!point->of)
		to = v2_report_sum_put(to, "null");
	else
		to += number_print(to, rates ? value_f64(point->rates) : value_u64(point->growth));
	to = v2_report_sum_put(to, ",\"of\":");
	to += number_print_u64(to, point->of);
	*to++ = '}';
	return to;
}

static void put_points(struct api_call *base)
{
	struct v2_answer *answer = v2_answer_of(base);
	struct v2_report_sum_call *call =
		v2_report_sum_call_of(CONTAINER_OF(answer, struct v2_report, answer));
	size_t count = call->points ? (size_t)call->grid.count : 0, until;
	if (!api_call_room(&answer->call))
		return;
	until = count - call->put > POINTS_A_TURN ? call->put + POINTS_A_TURN : count;
	char *start = buf_reserve(&answer->call.out, (until - call->put) * POINT_BYTES),
	     *to = start;
	for (; start && call->put < until; call->put++)
		to = v2_report_sum_put_point(call, to, call->put);
	if (start)
		answer->call.out.len += (size_t)(to - start);
	if (call->put < count && start) {
		api_call_later(&answer->call);
		return;
	}
	buf_append_char(&answer->call.out, ']');
	json_write_object_end(&answer->call.json);
	api_call_end(&answer->call);
}

static void v2_report_sum_end_report(struct v2_report *report)
{
	struct v2_report_sum_call *call = v2_report_sum_call_of(report);
	struct v2_answer *answer = &report->answer;
	struct json_writer *json = &answer->call.json;
	json_write_array_end(json);
	v2_report_put_refused(report);
	json_put_string(json, "endpoint", report->endpoints[0]);
	v2_put_question(json, &call->params, call->period_ms);
	json_write_key(json, "data");
	json_write_raw(json, SLICE("["));
	answer->call.advance = put_points;
	api_call_later(&answer->call);
}

static const struct v2_report_kind kind = {
	.begin = v2_report_sum_begin_report,
	.open = v2_report_sum_open_series,
	.rows = v2_report_sum_take_rows,
	.close = v2_report_sum_close_series,
	.end = v2_report_sum_end_report,
};

const struct param v2_sum_params[] = {
	{V2_PARAM_INTERFACE}, {V2_PARAM_BEGIN}, {V2_PARAM_END}, {V2_PARAM_ENDPOINT},
	{V2_PARAM_AGG},       {V2_PARAM_CF},    {NULL}};

static void sum_end(struct http_request *request)
{
	struct v2_report_sum_call *call = mem_zalloc(sizeof(*call));
	struct v2_report *report = &call->report;
	struct v2_answer *answer = &report->answer;
	struct errbuf e;
	v2_answer_init(answer, request, NULL, v2_report_release);
	report->kind = &kind;
	if (v2_report_read(report, &e)) {
		api_call_fail(&answer->call, 400, "%s", e.text);
	} else if (v2_params_data(request, 1000, answer->now_ms, &call->params, &e)) {
		v2_answer_query_error(answer, e.text);
	} else if (call->params.cf == CF_MIN || call->params.cf == CF_MAX) {
		v2_answer_query_error(answer, "smallest and largest rates have no sum");
	} else if (call->params.cf == CF_RAW) {
		v2_answer_query_error(answer,
				      "raw samples have no sum; cf is average, exact or delta");
	} else {
		call->period_ms = call->params.has_agg ? call->params.agg_ms : 0;
		report->endpoint_count = report->span_count = 1;
		v2_report_set_range(report, &call->params.range);
		v2_report_start(report);
	}
}

const struct http_handler v2_report_sum = V2_HANDLER(sum_end);
