#include "api/json_reply.h"
#include "api/query_params.h"
#include "api/rollups.h"
#include "api/routes.h"
#include "conf/conf.h"
#include "rollup/complete.h"
#include "rollup/grain.h"
#include "rollup/late.h"
#include "rollup/rebuild.h"
#include "wire/json.h"
#include "wire/timetext.h"

enum { ANSWER_MAX_BYTES = 64 << 10 };

/* request->owner; it lives until the rebuild is over. */
struct call {
	struct http_request *request; /* NULL: the client has gone */
	struct api *api;
	struct rollup_rebuild *rebuild;
	int64_t from_ms, to_ms; /* what is meant, whole slots */
	bool only_count;
	/* It makes anew all that was lost (rollup_track_state) when losses were so many. */
	bool restores;
	uint64_t losses;
	bool is_all; /* after it, nothing is without marks (rollup/complete.h) */
};

struct question {
	struct slice tenant, metric;
	int64_t from_ms, to_ms;
	bool only_count;
};

/* ---- Answering ------------------------------------------------------------------------------- */

static void answer(const struct call *call)
{
	struct rollup_rebuild_result result = rollup_rebuild_result(call->rebuild);
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
	json_put_bool(json, "dryRun", call->only_count);
	json_put_i64(json, "from", call->from_ms);
	json_put_i64(json, "to", call->to_ms);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	/* Without marks there are no such slots, but the ends of all time. */
	json_put_i64_or_null(json, "oldestSlot", result.marks,
			     result.marks ? result.oldest_slot_s * 1000 : 0);
	json_put_i64_or_null(json, "newestSlot", result.marks,
			     result.marks ? result.newest_slot_s * 1000 : 0);
	json_write_object_end(json);
	json_reply_send(&reply, call->request);
}

static void fail(const struct call *call, int err)
{
	bool later = err == ERR_BUSY || err == ERR_TIMEOUT || err == ERR_CANCELLED;
	http_reply_error(call->request,
			 later             ? 503
			 : err == ERR_FULL ? 507
					   : 500,
			 "%s; %llu marks were made and stay, and another run makes the rest",
			 err_text(err),
			 (unsigned long long)rollup_rebuild_result(call->rebuild).marks);
}

static void on_rebuilt(void *owner, int err)
{
	struct call *call = owner;
	if (call->request && err)
		fail(call, err);
	else if (call->request)
		answer(call);
	if (!err && call->restores)
		rollup_track_restored(call->api->rollup_track, call->losses);
	if (!err && call->is_all && !rollup_rebuild_result(call->rebuild).failed)
		rollup_complete_rebuilt(call->api->rollup_complete);
	rollup_rebuild_free(call->rebuild);
	call->api->rollup_calls--;
	call->api->rollup_rebuilding = false;
	mem_free(call);
}

/* ---- What is asked --------------------------------------------------------------------------- */

/* Of earlier ones all data has gone, or will have until they are rolled up. */
static int64_t first_slot_ms(const struct api *api, int64_t now_ms)
{
	const struct conf *conf = api->conf;
	int64_t slot_ms = conf->rollup_slot_ms, quiet_ms = conf->rollup_quiet_ms;
	int64_t raw_ms = retention_longest_whole_ms(api->retention, conf->retention_raw_ms, now_ms);
	int64_t first_ms = rollup_open_from_ms(now_ms, raw_ms, slot_ms, quiet_ms);
	int64_t first_late_ms = rollup_open_from_ms(now_ms, api->late->kept_ms, slot_ms, quiet_ms);
	return api->late->after_ms && first_late_ms < first_ms ? first_late_ms : first_ms;
}

/* Whole slots. */
static int choose_slots(const struct api *api, int64_t now_ms, struct question *q, struct errbuf *e)
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

static int read_params(const struct http_request *request, struct question *q, struct errbuf *e)
{
	static const char *const names[] = {"tenant", "metric", "from", "to", "dryRun", NULL};
	const struct api *api = api_of(request);
	int64_t now_ms = clock_wall_ms(api->clock);
	*q = (struct question){.from_ms = INT64_MIN, .to_ms = INT64_MAX};
	int err = params_check(request, names, e);
	err = err ? err : params_narrowing(request, &q->tenant, &q->metric, e);
	err = err ? err : params_time(request, "from", now_ms, &q->from_ms, e);
	err = err ? err : params_time(request, "to", now_ms, &q->to_ms, e);
	err = err ? err : params_flag(request, "dryRun", &q->only_count, e);
	return err ? err : choose_slots(api, now_ms, q, e);
}

/* Of everything, and begun when what was on its way at the loss is there (rollup/restore.h). */
static bool is_whole(const struct http_request *request, const struct api *api,
		     const struct rollup_track_state *state)
{
	bool narrowed = http_param(request, "tenant").data || http_param(request, "metric").data ||
			http_param(request, "from").data || http_param(request, "to").data;
	return !narrowed && state->incomplete && !state->degraded &&
	       clock_wall_ms(api->clock) >= state->lost_ms + api->conf->rollup_quiet_ms;
}

static bool is_all(const struct api *api, const struct question *q)
{
	return api->rollup_complete && !q->only_count && !q->tenant.data && !q->metric.data &&
	       rollup_complete_is_all(api->rollup_complete, q->from_ms, q->to_ms);
}

static void begin(struct http_request *request, const struct question *q)
{
	struct api *api = api_of(request);
	struct call *call = mem_zalloc(sizeof(*call));
	call->request = request;
	call->api = api;
	call->from_ms = q->from_ms;
	call->to_ms = q->to_ms;
	call->only_count = q->only_count;
	struct rollup_track_state state = rollup_track_state(api->rollup_track);
	call->restores = !q->only_count && is_whole(request, api, &state);
	call->losses = state.losses;
	call->is_all = is_all(api, q);
	request->owner = call;
	api->rollup_calls++;
	api->rollup_rebuilding = true;
	call->rebuild = rollup_rebuild_start(&(struct rollup_rebuild_options){
		.store = api->store,
		.track = api->rollup_track,
		.clock = api->clock,
		.executor = loop_executor(api->loop),
		.slot_ms = api->conf->rollup_slot_ms,
		.partitions = (uint32_t)api->conf->rollup_partitions,
		.tenant = q->tenant,
		.metric = q->metric,
		.from_ms = q->from_ms,
		.to_ms = q->to_ms,
		.quiet_ms = api->conf->rollup_quiet_ms,
		.raw_retention_ms = api->conf->retention_raw_ms,
		.retention_rules = api->retention,
		.with_late = api->late->after_ms != 0,
		.only_count = q->only_count,
		.done = on_rebuilt,
		.owner = call,
	});
}

static void on_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct errbuf e = {""};
	struct question q;
	if (read_params(request, &q, &e))
		http_reply_error(request, 400, "%s", e.text);
	else if (!api->grains->count)
		http_reply_error(request, 422,
				 "rollup.granularities has none: nothing is rolled up");
	else if (api->rollup_rebuilding)
		http_reply_error(request, 503, "marks are being made anew already");
	else
		begin(request, &q);
}

static void on_abort(struct http_request *request, UNUSED int err)
{
	struct call *call = request->owner;
	if (!call)
		return;
	call->request = NULL;
	rollup_rebuild_cancel(call->rebuild);
}

const struct http_handler rollups_rebuild_handler = {.end = on_end, .abort = on_abort};
