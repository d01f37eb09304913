/* /v2/report/percentile: what is billed by the 95th percentile.
 *
 * A month's (or day's) intervals of five minutes, aligned to the epoch, each with the rate at which
 * octets were counted in it: the growth in its bins by the time that was really covered. An
 * interval of which less than half was covered is missing. Growth over gaps that lies in no bin is
 * in no interval; it is shown as unplaced. The percentile is that of nearest rank (sums.h) over
 * the intervals that are there, or with missing=zero over all that are past, the missing ones as 0.
 *
 * in, out: of each direction. larger: the larger of these two. larger_of_bins: of the larger
 * direction of each interval. sum: of both directions together in each interval; the last two are
 * over the intervals in which both directions are there. */
#include <math.h>

#include "api/esmond/esmond.h"
#include "api/esmond/report.h"
#include "wire/number.h"

enum {
	BIN_MS = 300000,
	COVERED_LEAST_MS = BIN_MS / 2,
	/* 31 days and two hours; a zone that has more is none. */
	BINS_MAX = 33 * 288,
};

enum { IN, OUT, DIRECTIONS };

struct v2_percentile_call {
	struct v2_report report;
	struct v2_calendar calendar;
	struct slice percentile;
	uint32_t milli;
	int missing_is_zero; /* 0 or 1: in v2_missing_words */

	/* The numbers of the span at work. */
	size_t bins, past; /* of them, how many are over */
	int64_t edges_ms[BINS_MAX + 1];
	struct v2_sum sums[DIRECTIONS][BINS_MAX];
	struct v2_sums all[DIRECTIONS];
	double values[BINS_MAX];
};

struct figures {
	double in, out, larger, larger_of_bins, sum;
	uint64_t bins, bins_in, bins_out, bins_both;
	uint64_t unplaced[DIRECTIONS];
};

static struct v2_percentile_call *v2_percentile_call_of(struct v2_report *report)
{
	return CONTAINER_OF(report, struct v2_percentile_call, report);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int64_t up_to_bin(int64_t ms)
{
	return -floor_to(-ms, BIN_MS);
}

/* An interval belongs to the span in which it begins. */
static void open_span(struct v2_report *report)
{
	struct v2_percentile_call *call = v2_percentile_call_of(report);
	const int64_t *edges_s = &call->calendar.edges_s[call->report.span];
	int64_t from_ms = up_to_bin(edges_s[0] * 1000), to_ms = up_to_bin(edges_s[1] * 1000);
	int64_t now_ms = call->report.answer.now_ms;
	call->bins = (size_t)((to_ms - from_ms) / BIN_MS);
	if (call->bins > BINS_MAX)
		call->bins = BINS_MAX;
	call->past = 0;
	for (size_t i = 0; i <= call->bins; i++) {
		call->edges_ms[i] = from_ms + (int64_t)i * BIN_MS;
		call->past += i && call->edges_ms[i] <= now_ms;
	}
	for (size_t d = 0; d < DIRECTIONS; d++) {
		memset(call->sums[d], 0, call->bins * sizeof(call->sums[d][0]));
		call->all[d] = (struct v2_sums){
			.edges_ms = call->edges_ms, .count = call->bins, .sums = call->sums[d]};
	}
}

static bool v2_percentile_open_series(struct v2_report *report)
{
	struct v2_percentile_call *call = v2_percentile_call_of(report);
	struct v2_fetch *fetch = &report->fetch;
	int64_t base_ms = fetch->target.oidset->frequency_ms;
	fetch->period_ms = base_ms;
	fetch->from_ms = floor_to(call->edges_ms[0], base_ms);
	fetch->to_ms = call->edges_ms[call->bins];
	return base_ms <= BIN_MS;
}

static void v2_percentile_take_rows(struct v2_report *report)
{
	v2_report_sum_rows(report, &v2_percentile_call_of(report)->all[report->endpoint]);
}

/* ---- Figures --------------------------------------------------------------------------------- */

static bool is_there(const struct v2_sum *sum)
{
	return sum->covered_ms >= COVERED_LEAST_MS;
}

/* Bits a second. */
static double v2_percentile_rate_of(const struct v2_sum *sum)
{
	return (double)sum->val * 8.0 * 1000.0 / (double)sum->covered_ms;
}

static double of_values(struct v2_percentile_call *call, size_t count)
{
	return v2_percentile(call->values, count, call->milli);
}

static double of_direction(struct v2_percentile_call *call, size_t d, size_t *there)
{
	size_t count = 0;
	*there = 0;
	for (size_t i = 0; i < call->past; i++) {
		bool is = is_there(&call->sums[d][i]);
		*there += is;
		if (is || call->missing_is_zero)
			call->values[count++] = is ? v2_percentile_rate_of(&call->sums[d][i]) : 0;
	}
	return of_values(call, count);
}

static double of_both(struct v2_percentile_call *call, bool sum, size_t *there)
{
	size_t count = 0;
	*there = 0;
	for (size_t i = 0; i < call->past; i++) {
		bool in = is_there(&call->sums[IN][i]), out = is_there(&call->sums[OUT][i]);
		double rate_in = in ? v2_percentile_rate_of(&call->sums[IN][i]) : 0;
		double rate_out = out ? v2_percentile_rate_of(&call->sums[OUT][i]) : 0;
		*there += in && out;
		if ((in && out) || call->missing_is_zero)
			call->values[count++] = sum ? rate_in + rate_out : fmax(rate_in, rate_out);
	}
	return of_values(call, count);
}

static struct figures figures_of(struct v2_percentile_call *call)
{
	struct figures f = {.bins = call->past};
	f.in = of_direction(call, IN, &f.bins_in);
	f.out = of_direction(call, OUT, &f.bins_out);
	f.larger = fmax(f.in, f.out); /* the other, where one is NaN */
	f.larger_of_bins = of_both(call, false, &f.bins_both);
	f.sum = of_both(call, true, &f.bins_both);
	for (size_t d = 0; d < DIRECTIONS; d++) {
		for (size_t i = 0; i < call->bins; i++)
			f.unplaced[d] = v2_sum_of(f.unplaced[d], call->sums[d][i].unplaced);
	}
	return f;
}

static bool v2_percentile_is_measured(const struct v2_percentile_call *call,
				      const struct figures *f)
{
	const int64_t there[] = {(int64_t)f->bins_in, (int64_t)f->bins_out};
	return v2_report_is_measured(&call->report, there);
}

/* ---- The report ------------------------------------------------------------------------------ */

static const char *const v2_missing_words[] = {"skip", "zero", NULL};

#define V2_FIGURE(member_) offsetof(struct figures, member_)

static const struct v2_column v2_percentile_columns[] = {
	{"in", "bit/s", VALUE_F64, V2_FIGURE(in)},
	{"out", "bit/s", VALUE_F64, V2_FIGURE(out)},
	{"larger", "bit/s", VALUE_F64, V2_FIGURE(larger)},
	{"larger_of_bins", "bit/s", VALUE_F64, V2_FIGURE(larger_of_bins)},
	{"sum", "bit/s", VALUE_F64, V2_FIGURE(sum)},
	{"bins", NULL, VALUE_U64, V2_FIGURE(bins)},
	{"bins_in", NULL, VALUE_U64, V2_FIGURE(bins_in)},
	{"bins_out", NULL, VALUE_U64, V2_FIGURE(bins_out)},
	{"bins_both", NULL, VALUE_U64, V2_FIGURE(bins_both)},
	{"unplaced_in", "octets", VALUE_U64, V2_FIGURE(unplaced[IN])},
	{"unplaced_out", "octets", VALUE_U64, V2_FIGURE(unplaced[OUT])},
	{NULL}};

static void begin_json(struct v2_percentile_call *call)
{
	struct json_writer *json = &call->report.answer.call.json;
	json_write_object_begin(json);
	json_put_string(json, "zone", call->calendar.zone_name);
	json_write_key(json, "percentile");
	json_write_raw(json, call->percentile);
	json_put_string(json, "definition", SLICE("nearest rank of averages over 300 s"));
	json_put_string(json, "missing", slice_of(v2_missing_words[call->missing_is_zero]));
	json_put_string(json, "unit", slice_of(v2_percentile_columns[0].unit));
	json_write_key(json, "children");
	json_write_array_begin(json);
}

static void v2_percentile_begin_report(struct v2_report *report)
{
	struct v2_percentile_call *call = v2_percentile_call_of(report);
	if (call->calendar.csv)
		v2_report_begin_csv(report, v2_percentile_columns);
	else
		begin_json(call);
}

static void close_span(struct v2_report *report)
{
	struct v2_percentile_call *call = v2_percentile_call_of(report);
	struct figures figures = figures_of(call);
	if (report->span == 0)
		v2_report_begin_rows(report, &call->calendar);
	v2_report_put_row(report, &call->calendar, report->span,
			  v2_percentile_is_measured(call, &figures), v2_percentile_columns,
			  &figures);
	if (report->span + 1 == report->span_count)
		v2_report_end_rows(report, &call->calendar);
}

static void v2_percentile_end_report(struct v2_report *report)
{
	v2_report_end(report, &v2_percentile_call_of(report)->calendar);
}

static const struct v2_report_kind kind = {
	.begin = v2_percentile_begin_report,
	.span = open_span,
	.open = v2_percentile_open_series,
	.rows = v2_percentile_take_rows,
	.close = close_span,
	.end = v2_percentile_end_report,
};

const struct param v2_percentile_params[] = {
	{V2_PARAM_INTERFACE},
	{V2_PARAM_BEGIN},
	{V2_PARAM_END},
	{V2_PARAM_ZONE(v2_percentile_call)},
	{V2_PARAM_SPAN(v2_percentile_call)},
	{V2_PARAM_MONTH(v2_percentile_call)},
	{V2_PARAM_FORMAT(v2_percentile_call)},
	{"percentile", PARAM_TEXT, offsetof(struct v2_percentile_call, percentile),
	 .help = "Which; 95 where it is left out."},
	{"missing", PARAM_WORD, offsetof(struct v2_percentile_call, missing_is_zero),
	 .words = v2_missing_words, .help = "How an interval counts that nobody measured."},
	{NULL}};

static int v2_percentile_read_question(struct v2_percentile_call *call, struct errbuf *e)
{
	call->calendar.span = SPAN_MONTH;
	call->percentile = SLICE("95");
	int err = v2_report_read(&call->report, e);
	err = err ? err : v2_calendar_read(&call->report.answer, &call->calendar, e);
	if (!err && v2_percentile_parse(call->percentile, &call->milli))
		return errbuf_set(e, ERR_INVALID,
				  "percentile \"" SHOWN "\" is not a number like 95 or 99.9",
				  SHOWN_OF(call->percentile));
	return err;
}

static void percentile_end(struct http_request *request)
{
	struct v2_percentile_call *call = mem_zalloc(sizeof(*call));
	struct v2_report *report = &call->report;
	struct errbuf e;
	v2_answer_init(&report->answer, request, NULL, v2_report_release);
	report->kind = &kind;
	if (v2_percentile_read_question(call, &e)) {
		api_call_fail(&report->answer.call, 400, "%s", e.text);
		return;
	}
	if (http_request_charge(request, sizeof(*call))) {
		api_call_fail(&report->answer.call, 503, "the memory for answers is in use");
		return;
	}
	report->endpoints[IN] = SLICE("in");
	report->endpoints[OUT] = SLICE("out");
	report->endpoint_count = DIRECTIONS;
	report->span_count = call->calendar.count;
	v2_report_set_days(report, &call->calendar);
	v2_report_start(report);
}

const struct http_handler v2_report_percentile = V2_HANDLER(percentile_end);
