#include "api/call.h"
#include "api/params.h"
#include "api/admin/admin.h"
#include "conf/conf.h"
#include "rollup/backfill.h"
#include "retention/granularity.h"
#include "retention/late.h"
#include "rollup/remark.h"
#include "wire/json.h"
#include "wire/timetext.h"

enum { ANSWER_MAX_BYTES = 64 << 10 };

struct rebuild_call {
	struct api_call call;
	struct remark_options options;
	struct remark_result result;
	int err;
	char tenant[TENANT_MAX_BYTES], metric[METRIC_MAX_BYTES]; /* what the options point to */
	/* It makes anew all that was lost (marks_state) when losses were so many. */
	bool restores;
	uint64_t losses;
	bool is_all; /* after it, nothing is without marks (rollup/backfill.h) */
};

struct rebuild_question {
	struct slice tenant, metric;
	int64_t from_ms, to_ms;
	bool only_count;
};

/* ---- Answering ------------------------------------------------------------------------------- */

static struct rebuild_call *rebuild_call_of(struct api_call *call)
{
	return CONTAINER_OF(call, struct rebuild_call, call);
}

static void rebuild_answer(struct rebuild_call *call)
{
	struct remark_result result = call->result;
	struct json_writer *json = &call->call.json;
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = {
		{"series", result.series}, {"marked", result.marked}, {"slots", result.slots},
		{"marks", result.marks},   {"failed", result.failed},
	};
	json_write_object_begin(json);
	json_put_bool(json, "dryRun", call->options.only_count);
	json_put_i64(json, "from", call->options.from_ms);
	json_put_i64(json, "to", call->options.to_ms);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	/* Without marks there are no such slots, but the ends of all time. */
	json_put_i64_or_null(json, "oldestSlot", result.marks,
			     result.marks ? result.oldest_slot_s * 1000 : 0);
	json_put_i64_or_null(json, "newestSlot", result.marks,
			     result.marks ? result.newest_slot_s * 1000 : 0);
	json_write_object_end(json);
	api_call_end(&call->call);
}

static void rebuild_run(struct api_call *base)
{
	struct rebuild_call *call = rebuild_call_of(base);
	call->options.queue = job_queue(base->job);
	call->err = remark(&call->options, &call->result);
}

static void rebuild_over(struct api_call *base)
{
	struct rebuild_call *call = rebuild_call_of(base);
	const struct api *api = base->api;
	if (base->request && call->err)
		api_call_fail(base, http_status_of(call->err),
			      "%s; %llu marks were made and stay, and another run makes the rest",
			      err_text(call->err), (unsigned long long)call->result.marks);
	else if (base->request)
		rebuild_answer(call);
	if (!call->err && call->restores)
		marks_restored(api->marks, call->losses);
	if (!call->err && call->is_all && !call->result.failed)
		backfill_rebuilt(api->backfill);
}

static const struct api_call_kind rebuild_kind = {.out_max_bytes = ANSWER_MAX_BYTES,
						  .job_name = "rebuild",
						  .run = rebuild_run,
						  .over = rebuild_over};

/* ---- What is asked --------------------------------------------------------------------------- */

/* Of earlier ones all data has gone, or will have until they are rolled up. */
static int64_t first_slot_ms(const struct api *api, int64_t now_ms)
{
	const struct conf *conf = api->conf;
	int64_t slot_ms = conf->rollup_slot_ms, quiet_ms = conf->rollup_quiet_ms;
	int64_t raw_ms = retention_longest_whole_ms(api->retention, conf->retention_raw_ms, now_ms);
	int64_t first_ms = slot_open_from_ms(now_ms, raw_ms, slot_ms, quiet_ms);
	int64_t first_late_ms = slot_open_from_ms(now_ms, api->late->kept_ms, slot_ms, quiet_ms);
	return api->late->after_ms && first_late_ms < first_ms ? first_late_ms : first_ms;
}

/* Whole slots. */
static int choose_slots(const struct api *api, int64_t now_ms, struct rebuild_question *q,
			struct errbuf *e)
{
	const struct conf *conf = api->conf;
	int64_t slot_ms = conf->rollup_slot_ms;
	int64_t first_ms = first_slot_ms(api, now_ms);
	int64_t last_ms = (now_ms + conf->ingest_future_max_ms) / slot_ms * slot_ms + slot_ms;
	if (q->from_ms >= q->to_ms)
		return errbuf_set(e, ERR_INVALID, "from is not before to");
	q->from_ms = q->from_ms > first_ms ? q->from_ms / slot_ms * slot_ms : first_ms;
	q->to_ms = q->to_ms < last_ms ? (q->to_ms + slot_ms - 1) / slot_ms * slot_ms : last_ms;
	if (q->from_ms < q->to_ms)
		return 0;
	char text[TIME_PRINT_MAX_BYTES];
	int len = (int)time_print(text, first_ms);
	return errbuf_set(e, ERR_INVALID,
			  "no slot in that time has all of its raw data: the first that has begins "
			  "at %.*s",
			  len, text);
}

const struct param rollups_rebuild_params[] = {
	{"tenant", PARAM_TENANT_OR_ALL, offsetof(struct rebuild_question, tenant),
	 .help = "Only of this tenant."},
	{"metric", PARAM_METRIC, offsetof(struct rebuild_question, metric),
	 .help = "Only of this metric."},
	{"from", PARAM_TIME, offsetof(struct rebuild_question, from_ms),
	 .help = "From that slot on; where it is left out, from the first with raw data."},
	{"to", PARAM_TIME, offsetof(struct rebuild_question, to_ms),
	 .help = "Up to that slot; where it is left out, all."},
	{"dryRun", PARAM_FLAG, offsetof(struct rebuild_question, only_count),
	 .help = "Only counts the marks."},
	{NULL}};

static int rebuild_read(const struct http_request *request, struct rebuild_question *q,
			struct errbuf *e)
{
	const struct api *api = api_of(request);
	int64_t now_ms = clock_wall_ms(api->clock);
	*q = (struct rebuild_question){.from_ms = INT64_MIN, .to_ms = INT64_MAX};
	int err = params_read_route(request, now_ms, q, e);
	return err ? err : choose_slots(api, now_ms, q, e);
}

/* Of everything, and begun when what was on its way at the loss is there
 * (rollup/remark_after_loss.h). */
static bool rebuild_is_whole(const struct http_request *request, const struct api *api,
			     const struct marks_state *state)
{
	bool narrowed = http_param(request, "tenant").data || http_param(request, "metric").data ||
			http_param(request, "from").data || http_param(request, "to").data;
	return !narrowed && state->incomplete && !state->degraded &&
	       clock_wall_ms(api->clock) >= state->lost_ms + api->conf->rollup_quiet_ms;
}

static bool is_all(const struct api *api, const struct rebuild_question *q)
{
	return api->backfill && !q->only_count && !q->tenant.data && !q->metric.data &&
	       backfill_is_all(api->backfill, q->from_ms, q->to_ms);
}

static struct slice rebuild_keep(char *to, struct slice text)
{
	if (text.len)
		memcpy(to, text.data, text.len);
	return (struct slice){to, text.len};
}

static void rebuild_begin(struct http_request *request, const struct rebuild_question *q)
{
	const struct api *api = api_of(request);
	struct rebuild_call *call = mem_zalloc(sizeof(*call));
	struct marks_state state = marks_state(api->marks);
	ASSERT(q->tenant.len <= sizeof(call->tenant) && q->metric.len <= sizeof(call->metric));
	api_call_init(&call->call, request, &rebuild_kind);
	call->restores = !q->only_count && rebuild_is_whole(request, api, &state);
	call->losses = state.losses;
	call->is_all = is_all(api, q);
	call->options = (struct remark_options){
		.store = api->store,
		.track = api->marks,
		.clock = api->clock,
		.slot_ms = api->conf->rollup_slot_ms,
		.partitions = (uint32_t)api->conf->partitions,
		.tenant = rebuild_keep(call->tenant, q->tenant),
		.metric = rebuild_keep(call->metric, q->metric),
		.from_ms = q->from_ms,
		.to_ms = q->to_ms,
		.quiet_ms = api->conf->rollup_quiet_ms,
		.raw_retention_ms = api->conf->retention_raw_ms,
		.retention_rules = api->retention,
		.with_late = api->late->after_ms != 0,
		.only_count = q->only_count,
	};
	call->err = ERR_CANCELLED; /* until it has run */
	api_call_start_job(&call->call);
}

static void rebuild_on_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct errbuf e = {""};
	struct rebuild_question q;
	if (rebuild_read(request, &q, &e))
		http_reply_error(request, 400, "%s", e.text);
	else if (!api->granularities->count)
		http_reply_error(request, 422,
				 "rollup.granularities has none: nothing is rolled up");
	else if (api_calls_have(api, &rebuild_kind))
		http_reply_error(request, 503, "marks are being made anew already");
	else
		rebuild_begin(request, &q);
}

const struct http_handler rollups_rebuild_handler = API_CALL_HANDLER(rebuild_on_end);
