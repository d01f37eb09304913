/* GET /api/streams/counts: how many lines of logs there are, by time. */
#include "api/stream/streams.h"

#include "api/stream/lines.h"
#include "stream/line_counts.h"
#include "stream/streams.h"
#include "wire/timetext.h"

enum { COUNTS_ARENA_MAX_BYTES = 1 << 20, COUNTS_ANSWER_MAX_BYTES = 64 << 20, COUNTS_STEPS = 100 };

#define COUNTS_FAR_MS (INT64_MAX / 4)

struct counts_question {
	struct lines_question lines;
	struct slice step, by;
};

struct counts_call {
	struct api_call call;
	struct counts_question asked; /* texts in the call's arena */
	struct line_query query;
	struct line_counts_rules rules;
	struct line_counts counts;
	bool counted; /* there are counts */
};

static const struct api_call_kind counts_kind;

static struct counts_call *counts_call_of(struct api_call *call)
{
	ASSERT(call->kind == &counts_kind);
	return CONTAINER_OF(call, struct counts_call, call);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void counts_put_series(struct json_writer *json, const struct counts_call *call,
			      const struct line_counts_series *series)
{
	json_write_object_begin(json);
	if (call->rules.by_source)
		json_put_string(json, "source", series->source);
	if (call->rules.by_datatype)
		json_put_string(json, "datatype", series->datatype);
	if (call->rules.by_severity)
		json_put_text(json, "severity", line_severity_text(series->severity));
	json_write_key(json, "counts");
	json_write_array_begin(json);
	for (size_t i = 0; i < call->counts.steps; i++)
		json_write_u64(json, series->counts[i]);
	json_write_array_end(json);
	json_write_object_end(json);
}

static void counts_put_all(struct counts_call *call)
{
	struct json_writer *json = &call->call.json;
	const struct line_counts *counts = &call->counts;
	json_write_object_begin(json);
	json_put_i64(json, "since", call->rules.scan.from_ms);
	json_put_i64(json, "step", call->rules.step_ms);
	json_put_u64(json, "steps", counts->steps);
	json_write_key(json, "series");
	json_write_array_begin(json);
	for (size_t i = 0; i < counts->count; i++)
		counts_put_series(json, call, &counts->list[i]);
	json_write_array_end(json);
	lines_put_work(json, &counts->work);
	json_write_object_end(json);
}

static void counts_run(struct api_call *base)
{
	struct counts_call *call = counts_call_of(base);
	call->counted = true;
	base->err = line_counts_read(&call->counts, streams_site(base->api->streams),
				     job_queue(base->job), &call->rules, &base->error);
	if (!base->err)
		counts_put_all(call);
}

static void counts_release(struct api_call *base)
{
	struct counts_call *call = counts_call_of(base);
	if (call->counted)
		line_counts_release(&call->counts);
	line_query_release(&call->query);
}

static const struct api_call_kind counts_kind = {.arena_max_bytes = COUNTS_ARENA_MAX_BYTES,
						 .out_max_bytes = COUNTS_ANSWER_MAX_BYTES,
						 .job_name = "counts",
						 .run = counts_run,
						 .release = counts_release};

/* ---- What is asked --------------------------------------------------------------------------- */

const struct param streams_counts_params[] = {
	LINES_PARAMS_OF_STREAMS(struct counts_question),
	LINES_PARAMS_OF_TIME(struct counts_question),
	{"step", PARAM_TEXT, offsetof(struct counts_question, step),
	 .help = "How long each count goes on, as 5m; a hundredth of the time that is asked for."},
	{"by", PARAM_TEXT, offsetof(struct counts_question, by),
	 .help = "What is counted apart, of source, datatype and severity, with commas between."},
	{NULL}};

static int counts_read_by(struct slice by, struct line_counts_rules *rules, struct errbuf *e)
{
	while (by.len) {
		const char *comma = memchr(by.data, ',', by.len);
		struct slice word = {by.data, comma ? (size_t)(comma - by.data) : by.len};
		size_t taken = word.len + (comma != NULL);
		if (slice_equal(word, SLICE("source")))
			rules->by_source = true;
		else if (slice_equal(word, SLICE("datatype")))
			rules->by_datatype = true;
		else if (slice_equal(word, SLICE("severity")))
			rules->by_severity = true;
		else
			return errbuf_set(e, ERR_INVALID,
					  "by: \"" SHOWN "\" is none of source, datatype and "
					  "severity",
					  SHOWN_OF(word));
		by = (struct slice){by.data + taken, by.len - taken};
	}
	return 0;
}

/* The time that is counted is a whole number of steps. No sum of these times is too large. */
static int counts_read_step(struct counts_call *call, struct errbuf *e)
{
	struct line_counts_rules *rules = &call->rules;
	struct line_scan_rules *scan = &rules->scan;
	if (scan->from_ms < -COUNTS_FAR_MS || scan->to_ms > COUNTS_FAR_MS)
		return errbuf_set(e, ERR_INVALID, "since or until lies too far from now");
	rules->step_ms = larger_of((scan->to_ms - scan->from_ms) / COUNTS_STEPS, 1);
	if (call->asked.step.data) {
		int err = duration_parse(call->asked.step, &rules->step_ms, e);
		if (err)
			return errbuf_prefix(e, err, "step");
	}
	if (rules->step_ms < 1)
		return errbuf_set(e, ERR_INVALID, "step: it is not longer than 0");
	if (rules->step_ms > COUNTS_FAR_MS)
		return errbuf_set(e, ERR_INVALID, "step: it is too long");
	scan->from_ms = floor_to(scan->from_ms, rules->step_ms);
	scan->to_ms = ceil_to(scan->to_ms, rules->step_ms);
	if ((scan->to_ms - scan->from_ms) / rules->step_ms > LINE_COUNTS_STEPS_MAX)
		return errbuf_set(e, ERR_INVALID,
				  "from since to until there are more than %d steps",
				  LINE_COUNTS_STEPS_MAX);
	return 0;
}

static int counts_read(const struct http_request *request, struct counts_call *call,
		       struct errbuf *e)
{
	struct counts_question *q = &call->asked;
	int64_t now_ms = clock_wall_ms(call->call.api->clock);
	q->lines.until_ms = now_ms;
	q->lines.since_ms = now_ms - 24 * 3600 * INT64_C(1000);
	int err = params_read_route(request, now_ms, q, e);
	err = err ? err : lines_read(&call->call, &q->lines, &call->query, &call->rules.scan, e);
	err = err ? err : counts_read_by(q->by, &call->rules, e);
	return err ? err : counts_read_step(call, e);
}

static void counts_end(struct http_request *request)
{
	struct counts_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &counts_kind);
	api_call_set_deadline(&call->call);
	int err = counts_read(request, call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_counts = API_CALL_HANDLER(counts_end);
