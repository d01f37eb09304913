#include "api/admin/admin.h"

#include "api/call.h"
#include "api/params.h"
#include "conf/conf.h"
#include "model/counter_key.h"
#include "retention/granularity.h"
#include "rollup/deletions.h"

enum { ANSWER_MAX_BYTES = 64 << 10 };

struct delete_call {
	struct api_call call;
	bool at_work;
	struct rollup_deletion_spec spec; /* of the request's memory */
};

static const struct api_call_kind delete_kind;

static struct delete_call *delete_call_of(struct api_call *call)
{
	ASSERT(call->kind == &delete_kind);
	return CONTAINER_OF(call, struct delete_call, call);
}

/* A deletion goes on without its client. */
static void delete_ended(struct api_call *base)
{
	if (delete_call_of(base)->at_work)
		rollup_deletions_leave(base->api->deletions);
}

static const struct api_call_kind delete_kind = {.out_max_bytes = ANSWER_MAX_BYTES,
						 .ended = delete_ended};

/* ---- Answering ------------------------------------------------------------------------------- */

static void delete_write_text(struct json_writer *json, const char *key, struct slice text)
{
	json_write_key(json, key);
	if (text.len)
		json_write_string(json, text);
	else
		json_write_null(json);
}

/* `width` empty: null, of all granularities that are configured no more. */
static void delete_write_granularity(struct json_writer *json, struct slice width, uint64_t rows,
				     uint64_t kept)
{
	json_write_object_begin(json);
	delete_write_text(json, "granularity", width);
	json_put_u64(json, "rows", rows);
	json_put_u64(json, "kept", kept);
	json_write_object_end(json);
}

static void write_rollups(struct json_writer *json, const struct granularities *granularities,
			  const struct rollup_delete_result *result)
{
	json_write_key(json, "rollups");
	json_write_array_begin(json);
	for (size_t g = 0; g < granularities->count; g++) {
		char width[GRANULARITY_WIDTH_MAX_BYTES];
		size_t len = granularity_width_print(width, granularities->list[g].width_ms);
		delete_write_granularity(json, (struct slice){width, len}, result->rows[g],
					 result->kept[g]);
	}
	if (result->other_rows || result->other_kept)
		delete_write_granularity(json, SLICE(""), result->other_rows, result->other_kept);
	json_write_array_end(json);
}

static void delete_answer(struct delete_call *call, const struct rollup_delete_result *result)
{
	const struct rollup_deletion_spec *spec = &call->spec;
	struct json_writer *json = &call->call.json;
	json_write_object_begin(json);
	json_put_bool(json, "dryRun", spec->only_count);
	delete_write_text(json, "tenant", spec->tenant);
	delete_write_text(json, "metricName", spec->metric);
	json_put_bool(json, "all", spec->whole);
	json_put_i64_or_null(json, "start", !spec->whole, spec->from_ms);
	json_put_i64_or_null(json, "end", !spec->whole, spec->to_ms);
	json_put_u64(json, "series", result->series);
	json_put_u64(json, "samples", result->samples);
	json_put_u64(json, "late", result->late);
	write_rollups(json, &call->call.api->site->granularities, result);
	json_put_u64(json, "slots", result->marks);
	json_put_u64(json, "forgotten", result->forgotten);
	json_put_u64(json, "failed", result->failed);
	json_write_object_end(json);
	api_call_end(&call->call);
}

/* One that was broken off by the end of the server goes on by itself. */
static void delete_fail(struct delete_call *call, int err, const char *sentence,
			const struct rollup_delete_result *result)
{
	const char *rest = err == ERR_CANCELLED
				   ? "the rest is deleted when the server is started again"
				   : "the same request deletes the rest";
	if (call->spec.only_count)
		api_call_fail(&call->call, http_status_of(err), "%s", sentence);
	else
		api_call_fail(&call->call, http_status_of(err), "%s; %llu samples were deleted; %s",
			      sentence, (unsigned long long)result->samples, rest);
}

static void on_deleted(void *owner, int err, const char *sentence,
		       const struct rollup_delete_result *result)
{
	struct delete_call *call = delete_call_of(api_call_from(owner));
	ASSERT(call->at_work);
	call->at_work = false;
	if (err)
		delete_fail(call, err, sentence, result);
	else
		delete_answer(call, result);
}

/* ---- What is asked --------------------------------------------------------------------------- */

struct delete_question {
	struct rollup_deletion_spec spec;
	bool all_metrics;
};

#define DELETE_SPEC(member_) offsetof(struct delete_question, spec.member_)

const struct param delete_params[] = {
	{"tenant", PARAM_TENANT, DELETE_SPEC(tenant), .help = "Whose series."},
	{"metricName", PARAM_METRIC, DELETE_SPEC(metric), .help = "Of which metric."},
	{"allMetrics", PARAM_FLAG, offsetof(struct delete_question, all_metrics),
	 .help = "Of every metric, instead of metricName."},
	{"tag", .repeated = true, .help = "Only series with such a tag, host=web-*."},
	{"start", PARAM_TIME, DELETE_SPEC(from_ms), .help = "Samples from then on."},
	{"end", PARAM_TIME, DELETE_SPEC(to_ms), .help = "Samples before then."},
	{"all", PARAM_FLAG, DELETE_SPEC(whole),
	 .help = "Samples of all time, instead of start and end; the series leave, too."},
	{"dryRun", PARAM_FLAG, DELETE_SPEC(only_count), .help = "Only counts them."},
	{"by", PARAM_TEXT, DELETE_SPEC(by), .help = "Whose wish it is, for the log."},
	{NULL}};

/* Nothing is taken for all by being left out. What is stored of devices is made of each other: that
 * of some time cannot be taken out. */
static int delete_check_series(const struct delete_question *q, struct errbuf *e)
{
	bool given = q->spec.metric.data != NULL;
	if (slice_equal(q->spec.tenant, COUNTER_TENANT))
		return errbuf_set(e, ERR_INVALID,
				  "tenant " SHOWN " has the counters of devices, which go with "
				  "their device: granary device remove NAME --with-data",
				  SHOWN_OF(q->spec.tenant));
	if (given && q->all_metrics)
		return errbuf_set(e, ERR_INVALID, "metricName and allMetrics are both given");
	if (!given && !q->all_metrics)
		return errbuf_set(e, ERR_INVALID,
				  "metricName is missing; allMetrics=true means every metric");
	return 0;
}

static int delete_read_tags(const struct http_request *request, struct rollup_deletion_spec *spec,
			    struct errbuf *e)
{
	size_t at = 0;
	for (;;) {
		struct slice text = http_param_next(request, "tag", &at);
		if (!text.data)
			return 0;
		if (spec->tag_count == ROLLUP_DELETION_TAGS_MAX)
			return errbuf_set(e, ERR_INVALID, "tag is given more than %d times",
					  ROLLUP_DELETION_TAGS_MAX);
		spec->tags[spec->tag_count++] = text;
	}
}

static int delete_check_times(const struct http_request *request,
			      const struct rollup_deletion_spec *spec, struct errbuf *e)
{
	struct slice start = http_param(request, "start"), end = http_param(request, "end");
	if (spec->whole)
		return start.data || end.data ? errbuf_set(e, ERR_INVALID, "all is given beside %s",
							   start.data ? "start" : "end")
					      : 0;
	if (!start.data || !end.data)
		return errbuf_set(e, ERR_INVALID, "%s is missing; all=true means all there is",
				  start.data ? "end" : "start");
	if (spec->from_ms >= spec->to_ms)
		return errbuf_set(e, ERR_INVALID,
				  "start \"" SHOWN "\" does not lie before end \"" SHOWN "\"",
				  SHOWN_OF(start), SHOWN_OF(end));
	if (spec->from_ms < ROLLUP_DELETE_EARLIEST_MS || spec->to_ms > ROLLUP_DELETE_LATEST_MS)
		return errbuf_set(e, ERR_INVALID,
				  "no sample has such times; all=true means all there is");
	return 0;
}

static int delete_read(const struct http_request *request, struct rollup_deletion_spec *spec,
		       struct errbuf *e)
{
	struct delete_question q = {0};
	int err = params_read_route(request, clock_age_ms(api_of(request)->clock), &q, e);
	err = err ? err : delete_check_series(&q, e);
	err = err ? err : delete_read_tags(request, &q.spec, e);
	err = err ? err : delete_check_times(request, &q.spec, e);
	*spec = q.spec;
	if (!err && spec->by.len > ROLLUP_DELETION_BY_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "by has more than %d bytes",
				  ROLLUP_DELETION_BY_MAX_BYTES);
	return err;
}

static void delete_end(struct http_request *request)
{
	struct delete_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &delete_kind);
	int err = delete_read(request, &call->spec, &e);
	if (!err)
		err = rollup_deletions_start(call->call.api->deletions, &call->spec, on_deleted,
					     call, &e);
	call->at_work = !err;
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
}

const struct http_handler delete_handler = API_CALL_HANDLER(delete_end);
