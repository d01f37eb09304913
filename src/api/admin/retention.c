#include "api/admin/admin.h"

#include "api/call.h"
#include "api/params.h"
#include "base/log.h"
#include "conf/conf.h"
#include "lease/job_claim.h"
#include "retention/late.h"
#include "retention/rekey.h"
#include "retention/usage.h"
#include "rollup/site.h"
#include "wire/json.h"

enum {
	ANSWER_MAX_BYTES = 32 << 20,
	LINES_PRESET = 1000,
	NAMES_MAX_BYTES = 64 << 10,
	WAIT_EXTRA_MS = 1000,
};

struct retention_call {
	struct api_call call;
	struct slice tenant, metric; /* in the call's arena */
	struct retention_usage_options options;
	struct retention_usage survey;
	bool moves; /* what lies elsewhere: an apply that is no dry run */
	struct retention_rekey_options apply;
	uint64_t failed;
	int err;
	struct errbuf refusal; /* another process is at it */
	void (*answer)(const struct retention_call *call, struct json_writer *json);
};

/* ---- Words ----------------------------------------------------------------------------------- */

static const char *const class_names[RETENTION_CLASSES] = {"2d", "7d", "35d", "400d", "ever"};

static void write_class(struct json_writer *json, const char *key, enum retention_class retention)
{
	json_put_text(json, key, class_names[retention]);
}

static void retention_write_granularity(struct json_writer *json, const struct retention_call *call,
					int granularity)
{
	char text[GRANULARITY_WIDTH_MAX_BYTES];
	ASSERT(granularity >= RETENTION_RAW &&
	       granularity <= (int)call->call.api->site->granularities.count);
	json_write_key(json, "granularity");
	if (granularity == (int)call->call.api->site->granularities.count) {
		json_write_text(json, "late");
		return;
	}
	if (granularity == RETENTION_RAW) {
		json_write_text(json, "raw");
		return;
	}
	size_t len = granularity_width_print(
		text, call->call.api->site->granularities.list[granularity].width_ms);
	json_write_string(json, (struct slice){text, len});
}

static void write_amount(struct json_writer *json, const struct retention_amount *amount)
{
	json_put_u64(json, "series", amount->series);
	json_put_u64(json, "samples", amount->samples);
	json_put_u64(json, "bytes", amount->bytes);
	json_put_i64(json, "oldest", amount->oldest_ms);
}

/* ---- What is stored -------------------------------------------------------------------------- */

static void write_rule(struct json_writer *json, const struct retention_call *call, uint8_t rule)
{
	const struct retention_rules *rules = call->options.scope.rules;
	ASSERT(rule <= rules->count);
	json_write_key(json, "rule");
	if (rule)
		json_write_string(json, rules->list[rule - 1].text);
	else
		json_write_null(json);
}

static void write_stored(struct json_writer *json, const struct retention_line *line)
{
	json_write_key(json, "stored");
	json_write_array_begin(json);
	for (int c = 0; c < RETENTION_CLASSES; c++) {
		if (!line->amounts[c].series)
			continue;
		json_write_object_begin(json);
		write_class(json, "class", (enum retention_class)c);
		write_amount(json, &line->amounts[c]);
		json_write_object_end(json);
	}
	json_write_array_end(json);
}

static void write_line(struct json_writer *json, const struct retention_call *call,
		       const struct retention_line *line)
{
	json_write_object_begin(json);
	json_put_string(json, "tenant", line->tenant);
	json_put_string(json, "metric", line->metric);
	retention_write_granularity(json, call, line->granularity);
	write_rule(json, call, line->rule);
	json_put_i64(json, "retentionMs", line->keep_ms);
	write_class(json, "class", line->retention);
	write_stored(json, line);
	json_write_object_end(json);
}

static void write_rules(struct json_writer *json, const struct retention_rules *rules)
{
	json_write_key(json, "rules");
	json_write_array_begin(json);
	for (size_t i = 0; i < rules->count; i++)
		json_write_string(json, rules->list[i].text);
	json_write_array_end(json);
}

static void answer_kept(const struct retention_call *call, struct json_writer *json)
{
	const struct retention_usage *result = &call->survey;
	json_put_i64(json, "rawMs", call->options.scope.rules->levels_ms[0]);
	write_rules(json, call->options.scope.rules);
	json_put_u64(json, "series", result->series);
	json_write_key(json, "kept");
	json_write_array_begin(json);
	for (size_t i = 0; i < result->line_count; i++)
		write_line(json, call, &result->lines[i]);
	json_write_array_end(json);
	json_put_bool(json, "cut", result->cut);
}

/* ---- What is elsewhere ----------------------------------------------------------------------- */

static void write_move(struct json_writer *json, const struct retention_call *call, int granularity,
		       int from, int to, const struct retention_amount *amount)
{
	if (!amount->series)
		return;
	json_write_object_begin(json);
	retention_write_granularity(json, call, granularity);
	write_class(json, "from", (enum retention_class)from);
	write_class(json, "to", (enum retention_class)to);
	write_amount(json, amount);
	json_write_object_end(json);
}

static void answer_moves(const struct retention_call *call, struct json_writer *json)
{
	const struct retention_usage *result = &call->survey;
	json_put_bool(json, "dryRun", !call->moves);
	json_put_u64(json, "series", result->series);
	json_put_u64(json, "failed", call->failed);
	json_write_key(json, "moves");
	json_write_array_begin(json);
	for (int granularity = RETENTION_RAW;
	     granularity <= (int)call->call.api->site->granularities.count; granularity++) {
		for (int from = 0; from < RETENTION_CLASSES; from++) {
			for (int to = 0; to < RETENTION_CLASSES; to++)
				write_move(json, call, granularity, from, to,
					   &result->moves[granularity + 1][from][to]);
		}
	}
	json_write_array_end(json);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static const struct api_call_kind retention_kind;

static struct retention_call *retention_call_of(struct api_call *call)
{
	ASSERT(call->kind == &retention_kind);
	return CONTAINER_OF(call, struct retention_call, call);
}

static void retention_run(struct api_call *base)
{
	struct retention_call *call = retention_call_of(base);
	call->options.scope.queue = job_queue(base->job);
	call->apply.scope = call->options.scope;
	struct job_claims *claims = base->api->site->claims;
	if (call->moves)
		call->err = job_claims_take(claims, call->options.scope.queue, JOB_CLAIM_APPLY,
					    &call->refusal);
	if (call->refusal.text[0])
		return;
	call->err = retention_usage(&call->options, &call->survey);
	if (!call->err && call->moves)
		call->err = retention_rekey(&call->apply, &call->survey, &call->failed);
	if (call->moves)
		job_claims_give(claims, JOB_CLAIM_APPLY);
}

static void retention_answer(struct retention_call *call)
{
	struct json_writer *json = &call->call.json;
	json_write_object_begin(json);
	call->answer(call, json);
	json_write_object_end(json);
	api_call_end(&call->call);
}

static void retention_over(struct api_call *base)
{
	struct retention_call *call = retention_call_of(base);
	const char *what = call->moves ? "not all could be moved, and another run moves the rest"
				       : "what is stored could not be read";
	if (base->request && call->refusal.text[0])
		api_call_fail(base, http_status_of(call->err), "%s", call->refusal.text);
	else if (base->request && call->err)
		api_call_fail(base, http_status_of(call->err), "%s: %s", what, err_text(call->err));
	else if (base->request)
		retention_answer(call);
	else if (call->moves && call->err)
		log_warn("retention apply: %s: %s", what, err_text(call->err));
}

static void retention_release(struct api_call *base)
{
	struct retention_call *call = retention_call_of(base);
	retention_usage_release(&call->survey);
}

static const struct api_call_kind retention_kind = {.arena_max_bytes = NAMES_MAX_BYTES,
						    .out_max_bytes = ANSWER_MAX_BYTES,
						    .release = retention_release,
						    .job_name = "retention",
						    .run = retention_run,
						    .over = retention_over};

static struct retention_scope retention_scope_of(const struct retention_call *call,
						 const struct api *api)
{
	const struct retention_rules *rules = rollup_site_rules(api->site);
	return (struct retention_scope){.store = api->store,
					.clock = api->clock,
					.granularities = &api->site->granularities,
					.late_retention_ms = rules->late.kept_ms,
					.rules = rules,
					.tenant = call->tenant,
					.metric = call->metric};
}

/* A read ends by its deadline, which is that of queries or the store's own. */
static int64_t retention_reads_ms(const struct conf *conf)
{
	int64_t deadline_ms = conf->query_timeout_ms;
	if (deadline_ms < STORE_DEADLINE_PRESET_MS)
		deadline_ms = STORE_DEADLINE_PRESET_MS;
	return deadline_ms + WAIT_EXTRA_MS;
}

struct retention_question {
	struct slice tenant, metric;
	size_t limit;
	bool only_count;
};

#define RETENTION_TENANT                                                                           \
	"tenant", PARAM_TENANT_OR_ALL, offsetof(struct retention_question, tenant),                \
		.help = "Only of this tenant."
#define RETENTION_METRIC                                                                           \
	"metric", PARAM_METRIC, offsetof(struct retention_question, metric),                       \
		.help = "Only of this metric."

const struct param retention_params[] = {
	{RETENTION_TENANT},
	{RETENTION_METRIC},
	{"limit", PARAM_NUMBER, offsetof(struct retention_question, limit), 1,
	 RETENTION_USAGE_LINES_MAX, .help = "At most so many lines; 1000 where it is left out."},
	{NULL}};

const struct param retention_apply_params[] = {{RETENTION_TENANT},
					       {RETENTION_METRIC},
					       {"dryRun", PARAM_FLAG,
						offsetof(struct retention_question, only_count),
						.help = "Only counts what would be moved."},
					       {NULL}};

/* One at a time: each looks at all that is stored. */
static void retention_begin(struct http_request *request, bool applies,
			    void (*answer)(const struct retention_call *call,
					   struct json_writer *json))
{
	const struct api *api = api_of(request);
	struct retention_question q = {.limit = LINES_PRESET};
	struct errbuf e = {""};
	if (params_read_route(request, 0, &q, &e)) {
		http_reply_error(request, 400, "%s", e.text);
		return;
	}
	if (api_calls_have(api, &retention_kind)) {
		http_reply_error(request, 503, "what is stored is being looked at already");
		return;
	}
	struct retention_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &retention_kind);
	call->answer = answer;
	call->moves = call->call.carried_through = applies && !q.only_count;
	call->tenant = arena_copy(&call->call.arena, q.tenant.data ? q.tenant : SLICE(""));
	call->metric = arena_copy(&call->call.arena, q.metric.data ? q.metric : SLICE(""));
	call->options = (struct retention_usage_options){.scope = retention_scope_of(call, api),
							 .lines_max = q.limit};
	call->apply = (struct retention_rekey_options){.asof_ms = clock_age_ms(api->clock),
						       .reads_ms = retention_reads_ms(api->conf)};
	call->err = ERR_CANCELLED; /* until it has run */
	api_call_start_job(&call->call);
}

static void retention_show_end(struct http_request *request)
{
	retention_begin(request, false, answer_kept);
}

static void retention_apply_end(struct http_request *request)
{
	retention_begin(request, true, answer_moves);
}

const struct http_handler retention_handler = API_CALL_HANDLER(retention_show_end);
const struct http_handler retention_apply_handler = API_CALL_HANDLER(retention_apply_end);
