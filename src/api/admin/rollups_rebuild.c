#include "api/admin/admin.h"
#include "api/call.h"
#include "api/params.h"
#include "lease/job_claim.h"
#include "rollup/rebuild.h"
#include "wire/json.h"

enum { ANSWER_MAX_BYTES = 64 << 10 };

struct rebuild_call {
	struct api_call call;
	struct rollup_rebuild rebuild;
	struct remark_result result;
	int err;
	struct errbuf refusal;                                   /* another one is at work */
	char tenant[TENANT_MAX_BYTES], metric[METRIC_MAX_BYTES]; /* what `rebuild` points to */
};

/* ---- Answering ------------------------------------------------------------------------------- */

static const struct api_call_kind rebuild_kind;

static struct rebuild_call *rebuild_call_of(struct api_call *call)
{
	ASSERT(call->kind == &rebuild_kind);
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
	json_put_bool(json, "dryRun", call->rebuild.only_count);
	json_put_i64(json, "from", call->rebuild.from_ms);
	json_put_i64(json, "to", call->rebuild.to_ms);
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
	const struct rollup_site *site = base->api->site;
	struct task_queue *queue = job_queue(base->job);
	call->err = job_claims_take(site->claims, queue, JOB_CLAIM_REBUILD, &call->refusal);
	if (call->err)
		return;
	call->err = rollup_rebuild_run(site, queue, &call->rebuild, &call->result);
	job_claims_give(site->claims, JOB_CLAIM_REBUILD);
}

static void rebuild_over(struct api_call *base)
{
	struct rebuild_call *call = rebuild_call_of(base);
	if (base->request && call->refusal.text[0])
		api_call_fail(base, http_status_of(call->err), "%s", call->refusal.text);
	else if (base->request && call->err)
		api_call_fail(base, http_status_of(call->err),
			      "%s; %llu marks were made and stay, and another run makes the rest",
			      err_text(call->err), (unsigned long long)call->result.marks);
	else if (base->request)
		rebuild_answer(call);
}

static const struct api_call_kind rebuild_kind = {.out_max_bytes = ANSWER_MAX_BYTES,
						  .job_name = "rebuild",
						  .run = rebuild_run,
						  .over = rebuild_over};

/* ---- What is asked --------------------------------------------------------------------------- */

const struct param rollups_rebuild_params[] = {
	{"tenant", PARAM_TENANT_OR_ALL, offsetof(struct rollup_rebuild, tenant),
	 .help = "Only of this tenant."},
	{"metric", PARAM_METRIC, offsetof(struct rollup_rebuild, metric),
	 .help = "Only of this metric."},
	{"from", PARAM_TIME, offsetof(struct rollup_rebuild, from_ms),
	 .help = "From that slot on; where it is left out, from the first with raw data."},
	{"to", PARAM_TIME, offsetof(struct rollup_rebuild, to_ms),
	 .help = "Up to that slot; where it is left out, all."},
	{"dryRun", PARAM_FLAG, offsetof(struct rollup_rebuild, only_count),
	 .help = "Only counts the marks."},
	{NULL}};

static int rebuild_read(const struct http_request *request, struct rollup_rebuild *rebuild,
			struct errbuf *e)
{
	const struct api *api = api_of(request);
	*rebuild = (struct rollup_rebuild){.from_ms = INT64_MIN, .to_ms = INT64_MAX};
	int err = params_read_route(request, clock_wall_ms(api->clock), rebuild, e);
	return err ? err : rollup_rebuild_check(api->site, rebuild, e);
}

static struct slice rebuild_keep(char *to, struct slice text)
{
	if (text.len)
		memcpy(to, text.data, text.len);
	return (struct slice){to, text.len};
}

static void rebuild_begin(struct http_request *request, const struct rollup_rebuild *rebuild)
{
	struct rebuild_call *call = mem_zalloc(sizeof(*call));
	ASSERT(rebuild->tenant.len <= sizeof(call->tenant));
	ASSERT(rebuild->metric.len <= sizeof(call->metric));
	api_call_init(&call->call, request, &rebuild_kind);
	call->rebuild = *rebuild;
	call->rebuild.tenant = rebuild_keep(call->tenant, rebuild->tenant);
	call->rebuild.metric = rebuild_keep(call->metric, rebuild->metric);
	call->err = ERR_CANCELLED; /* until it has run */
	api_call_start_job(&call->call);
}

static void rebuild_on_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct errbuf e = {""};
	struct rollup_rebuild rebuild;
	if (rebuild_read(request, &rebuild, &e))
		http_reply_error(request, 400, "%s", e.text);
	else if (!api->site->granularities.count)
		http_reply_error(request, 422,
				 "rollup.granularities has none: nothing is rolled up");
	else
		rebuild_begin(request, &rebuild);
}

const struct http_handler rollups_rebuild_handler = API_CALL_HANDLER(rebuild_on_end);
