/* /v2/report/volume: how many octets were counted in each day or month, exactly.
 *
 * What lies in bins, and what was counted over gaps and could be put into no bin (unplaced, booked
 * where the gap begins): both are shown, and their total is what the counter grew by, as long as it
 * was polled. A day of which nobody measured anything is not complete, however long it is over. */
#include "api/esmond/esmond.h"
#include "api/esmond/report.h"

enum { IN, OUT, DIRECTIONS };

struct v2_volume_call {
	struct v2_report report;
	struct v2_calendar calendar;
	int64_t *edges_ms;
	struct v2_sum *sums[DIRECTIONS]; /* by span */
	struct v2_sums all[DIRECTIONS];
};

static struct v2_volume_call *v2_volume_call_of(struct v2_report *report)
{
	return CONTAINER_OF(report, struct v2_volume_call, report);
}

/* ---- Reading: all spans of a series at once ---------------------------------------------------
 */

static bool v2_volume_open_series(struct v2_report *report)
{
	struct v2_volume_call *call = v2_volume_call_of(report);
	struct v2_fetch *fetch = &report->fetch;
	size_t count = call->calendar.count;
	int64_t base_ms = fetch->target.oidset->frequency_ms;
	fetch->period_ms = base_ms;
	fetch->from_ms = floor_to(call->edges_ms[0], base_ms);
	fetch->to_ms = call->edges_ms[count];
	return true;
}

static void v2_volume_take_rows(struct v2_report *report)
{
	v2_report_sum_rows(report, &v2_volume_call_of(report)->all[report->endpoint]);
}

static void v2_volume_clear(struct v2_volume_call *call)
{
	for (size_t d = 0; d < DIRECTIONS; d++) {
		memset(call->sums[d], 0, call->calendar.count * sizeof(*call->sums[d]));
		call->all[d] = (struct v2_sums){.edges_ms = call->edges_ms,
						.count = call->calendar.count,
						.sums = call->sums[d]};
	}
}

/* ---- Text ------------------------------------------------------------------------------------ */

struct v2_volume_row {
	uint64_t total[DIRECTIONS], bins[DIRECTIONS], unplaced[DIRECTIONS];
	int64_t covered_s[DIRECTIONS];
};

#define V2_VOLUME(member_) offsetof(struct v2_volume_row, member_)

static const struct v2_column v2_volume_columns[] = {
	{"in", "octets", VALUE_U64, V2_VOLUME(total[IN]), "in", "total"},
	{"in_bins", "octets", VALUE_U64, V2_VOLUME(bins[IN]), "in", "bins"},
	{"in_unplaced", "octets", VALUE_U64, V2_VOLUME(unplaced[IN]), "in", "unplaced"},
	{"in_covered_s", "s", VALUE_I64, V2_VOLUME(covered_s[IN]), "in", "covered_s"},
	{"out", "octets", VALUE_U64, V2_VOLUME(total[OUT]), "out", "total"},
	{"out_bins", "octets", VALUE_U64, V2_VOLUME(bins[OUT]), "out", "bins"},
	{"out_unplaced", "octets", VALUE_U64, V2_VOLUME(unplaced[OUT]), "out", "unplaced"},
	{"out_covered_s", "s", VALUE_I64, V2_VOLUME(covered_s[OUT]), "out", "covered_s"},
	{NULL}};

static bool v2_volume_is_measured(const struct v2_volume_call *call, size_t i)
{
	const int64_t covered[] = {call->sums[IN][i].covered_ms, call->sums[OUT][i].covered_ms};
	return v2_report_is_measured(&call->report, covered);
}

static void v2_volume_put_span(struct v2_volume_call *call, size_t i)
{
	struct v2_volume_row row;
	for (size_t d = 0; d < DIRECTIONS; d++) {
		const struct v2_sum *sum = &call->sums[d][i];
		row.total[d] = v2_sum_of(sum->val, sum->unplaced);
		row.bins[d] = sum->val;
		row.unplaced[d] = sum->unplaced;
		row.covered_s[d] = sum->covered_ms / 1000;
	}
	v2_report_put_row(&call->report, &call->calendar, i, v2_volume_is_measured(call, i),
			  v2_volume_columns, &row);
}

/* ---- The report ------------------------------------------------------------------------------ */

static void v2_volume_begin_report(struct v2_report *report)
{
	struct v2_volume_call *call = v2_volume_call_of(report);
	struct json_writer *json = &report->answer.call.json;
	v2_volume_clear(call);
	if (call->calendar.csv) {
		v2_report_begin_csv(report, v2_volume_columns);
		return;
	}
	json_write_object_begin(json);
	json_put_string(json, "zone", call->calendar.zone_name);
	json_put_string(json, "unit", slice_of(v2_volume_columns[0].unit));
	json_write_key(json, "children");
	json_write_array_begin(json);
}

static void v2_volume_close_interface(struct v2_report *report)
{
	struct v2_volume_call *call = v2_volume_call_of(report);
	v2_report_begin_rows(report, &call->calendar);
	for (size_t i = 0; i < call->calendar.count; i++)
		v2_volume_put_span(call, i);
	v2_report_end_rows(report, &call->calendar);
	v2_volume_clear(call);
}

static void v2_volume_end_report(struct v2_report *report)
{
	v2_report_end(report, &v2_volume_call_of(report)->calendar);
}

static const struct v2_report_kind kind = {
	.begin = v2_volume_begin_report,
	.open = v2_volume_open_series,
	.rows = v2_volume_take_rows,
	.close = v2_volume_close_interface,
	.end = v2_volume_end_report,
};

static void v2_volume_make_room(struct v2_volume_call *call)
{
	struct arena *arena = &call->report.answer.call.arena;
	size_t count = call->calendar.count;
	call->edges_ms = arena_alloc(arena, (count + 1) * sizeof(*call->edges_ms));
	ASSERT(call->edges_ms); /* at most V2_SPANS_MAX, in an arena that was empty */
	for (size_t i = 0; i <= count; i++)
		call->edges_ms[i] = call->calendar.edges_s[i] * 1000;
	for (size_t d = 0; d < DIRECTIONS; d++) {
		call->sums[d] = arena_alloc(arena, (count + 1) * sizeof(*call->sums[d]));
		ASSERT(call->sums[d]);
	}
}

const struct param v2_volume_params[] = {{V2_PARAM_INTERFACE},
					 {V2_PARAM_BEGIN},
					 {V2_PARAM_END},
					 {V2_PARAM_ZONE(v2_volume_call)},
					 {V2_PARAM_SPAN(v2_volume_call)},
					 {V2_PARAM_MONTH(v2_volume_call)},
					 {V2_PARAM_FORMAT(v2_volume_call)},
					 {NULL}};

static void volume_end(struct http_request *request)
{
	struct v2_volume_call *call = mem_zalloc(sizeof(*call));
	struct v2_report *report = &call->report;
	struct errbuf e;
	v2_answer_init(&report->answer, request, NULL, v2_report_release);
	report->kind = &kind;
	call->calendar.span = SPAN_DAY;
	if (v2_report_read(report, &e) || v2_calendar_read(&report->answer, &call->calendar, &e)) {
		api_call_fail(&report->answer.call, 400, "%s", e.text);
		return;
	}
	report->endpoints[IN] = SLICE("in");
	report->endpoints[OUT] = SLICE("out");
	report->endpoint_count = DIRECTIONS;
	report->span_count = 1;
	v2_volume_make_room(call);
	v2_report_set_days(report, &call->calendar);
	v2_report_start(report);
}

const struct http_handler v2_report_volume = V2_HANDLER(volume_end);
