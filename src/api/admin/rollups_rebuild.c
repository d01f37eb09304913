#include "api/job_call.h"
#include "api/json_reply.h"
#include "api/metrics/query_params.h"
#include "api/admin/rollups.h"
#include "api/routes.h"
#include "rollup/rebuild.h"
#include "wire/json.h"

enum { ANSWER_MAX_BYTES = 64 << 10 };

struct rebuild_call {
	struct job_call call; /* first */
	struct rollup_rebuild rebuild;
	struct remark_result result;
	int err;
	char tenant[TENANT_MAX_BYTES], metric[METRIC_MAX_BYTES]; /* what `rebuild` points to */
};

/* ---- Answering ------------------------------------------------------------------------------- */

static void rebuild_answer(const struct rebuild_call *call)
{
	struct remark_result result = call->result;
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = {
		{"series", result.series}, {"marked", result.marked}, {"slots", result.slots},
		{"marks", result.marks},   {"failed", result.failed},
	};
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, ANSWER_MAX_BYTES);
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
	json_reply_send(&reply, call->call.request);
}

static void rebuild_fail(const struct rebuild_call *call)
{
	int err = call->err;
	bool later = err == ERR_BUSY || err == ERR_TIMEOUT || err == ERR_CANCELLED;
	http_reply_error(call->call.request,
			 later             ? 503
			 : err == ERR_FULL ? 507
					   : 500,
			 "%s; %llu marks were made and stay, and another run makes the rest",
			 err_text(err), (unsigned long long)call->result.marks);
}

static void rebuild_run(struct job_call *job_call)
{
	struct rebuild_call *call = (struct rebuild_call *)job_call;
	const struct api *api = job_call->api;
	call->err = rollup_rebuild_run(api->site, api->backfill, job_queue(job_call->job),
				       &call->rebuild, &call->result);
}

static void rebuild_over(struct job_call *job_call)
{
	struct rebuild_call *call = (struct rebuild_call *)job_call;
	if (job_call->request && call->err)
		rebuild_fail(call);
	else if (job_call->request)
		rebuild_answer(call);
	mem_free(call);
}

/* ---- What is asked --------------------------------------------------------------------------- */

static int rebuild_read_params(const struct http_request *request, struct rollup_rebuild *rebuild,
			       struct errbuf *e)
{
	static const char *const names[] = {"tenant", "metric", "from", "to", "dryRun", NULL};
	const struct api *api = api_of(request);
	int64_t now_ms = clock_wall_ms(api->clock);
	*rebuild = (struct rollup_rebuild){.from_ms = INT64_MIN, .to_ms = INT64_MAX};
	int err = params_check(request, names, e);
	err = err ? err : params_narrowing(request, &rebuild->tenant, &rebuild->metric, e);
	err = err ? err : params_time(request, "from", now_ms, &rebuild->from_ms, e);
	err = err ? err : params_time(request, "to", now_ms, &rebuild->to_ms, e);
	err = err ? err : params_flag(request, "dryRun", &rebuild->only_count, e);
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
	call->call.run = rebuild_run;
	call->call.over = rebuild_over;
	call->rebuild = *rebuild;
	call->rebuild.tenant = rebuild_keep(call->tenant, rebuild->tenant);
	call->rebuild.metric = rebuild_keep(call->metric, rebuild->metric);
	call->err = ERR_CANCELLED; /* until it has run */
	job_call_start(&call->call, "rebuild", request);
}

static void rebuild_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct errbuf e = {""};
	struct rollup_rebuild rebuild;
	if (rebuild_read_params(request, &rebuild, &e))
		http_reply_error(request, 400, "%s", e.text);
	else if (!api->granularities->count)
		http_reply_error(request, 422,
				 "rollup.granularities has none: nothing is rolled up");
	else if (job_call_runs(api, rebuild_run))
		http_reply_error(request, 503, "a rebuild of marks is at work already");
	else
		rebuild_begin(request, &rebuild);
}

const struct http_handler rollups_rebuild_handler = {.end = rebuild_end, .abort = job_call_abort};
