#include "api/retention.h"

#include "api/json_reply.h"
#include "api/query_params.h"
#include "api/routes.h"
#include "conf/conf.h"
#include "rollup/apply.h"
#include "rollup/late.h"
#include "rollup/survey.h"
#include "wire/json.h"

enum {
	ANSWER_MAX_BYTES = 32 << 20,
	LINES_PRESET = 1000,
	NAMES_MAX_BYTES = 64 << 10,
	WAIT_EXTRA_MS = 1000,
};

/* request->owner; it lives until the survey is over, and what it finds elsewhere has been moved:
 *
 *     SURVEYS ----> COPIES ----> WAITS until reads from before are over ----> CLEARS ----> answers
 */
struct call {
	struct http_request *request; /* NULL: the client has gone */
	struct api *api;
	struct retention_survey *survey;
	void (*answer)(const struct call *call, struct json_writer *json);
	/* Of an apply that is no dry run. */
	bool moves;
	enum store_rekey_step step;
	struct retention_apply *apply; /* NULL: none is at work */
	struct loop_timer *timer;      /* NULL: it does not wait */
	struct slice tenant, metric;   /* in the arena */
	struct arena arena;
	int64_t asof_ms;
	uint64_t failed;
};

/* ---- Words ----------------------------------------------------------------------------------- */

static const char *const class_names[RETENTION_CLASSES] = {"2d", "7d", "35d", "400d", "ever"};

static void write_class(struct json_writer *json, const char *key, enum retention_class retention)
{
	json_put_text(json, key, class_names[retention]);
}

static void write_granularity(struct json_writer *json, const struct call *call, int grain)
{
	char text[ROLLUP_WIDTH_MAX_BYTES];
	json_write_key(json, "granularity");
	if (grain == (int)call->api->grains->count) {
		json_write_text(json, "late");
		return;
	}
	if (grain == RETENTION_RAW) {
		json_write_text(json, "raw");
		return;
	}
	size_t len = rollup_width_print(text, call->api->grains->list[grain].width_ms);
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

static void write_rule(struct json_writer *json, const struct call *call, uint8_t rule)
{
	json_write_key(json, "rule");
	if (rule)
		json_write_string(json, call->api->retention->list[rule - 1].text);
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

static void write_line(struct json_writer *json, const struct call *call,
		       const struct retention_line *line)
{
	json_write_object_begin(json);
	json_put_string(json, "tenant", line->tenant);
	json_put_string(json, "metric", line->metric);
	write_granularity(json, call, line->grain);
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

static void answer_kept(const struct call *call, struct json_writer *json)
{
	const struct retention_survey_result *result = retention_survey_result(call->survey);
	write_rules(json, call->api->retention);
	json_put_u64(json, "series", result->series);
	json_write_key(json, "kept");
	json_write_array_begin(json);
	for (size_t i = 0; i < result->line_count; i++)
		write_line(json, call, &result->lines[i]);
	json_write_array_end(json);
	json_put_bool(json, "cut", result->cut);
}

/* ---- What is elsewhere ----------------------------------------------------------------------- */

static void write_move(struct json_writer *json, const struct call *call, int grain, int from,
		       int to, const struct retention_amount *amount)
{
	if (!amount->series)
		return;
	json_write_object_begin(json);
	write_granularity(json, call, grain);
	write_class(json, "from", (enum retention_class)from);
	write_class(json, "to", (enum retention_class)to);
	write_amount(json, amount);
	json_write_object_end(json);
}

static void answer_moves(const struct call *call, struct json_writer *json)
{
	const struct retention_survey_result *result = retention_survey_result(call->survey);
	json_put_bool(json, "dryRun", !call->moves);
	json_put_u64(json, "series", result->series);
	json_put_u64(json, "failed", call->failed);
	json_write_key(json, "moves");
	json_write_array_begin(json);
	for (int grain = RETENTION_RAW; grain <= (int)call->api->grains->count; grain++) {
		for (int from = 0; from < RETENTION_CLASSES; from++) {
			for (int to = 0; to < RETENTION_CLASSES; to++)
				write_move(json, call, grain, from, to,
					   &result->moves[grain + 1][from][to]);
		}
	}
	json_write_array_end(json);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void answer(const struct call *call)
{
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, ANSWER_MAX_BYTES);
	json_write_object_begin(json);
	call->answer(call, json);
	json_write_object_end(json);
	json_reply_send(&reply, call->request);
}

static void finish(struct call *call, int err)
{
	bool later =
		err == ERR_BUSY || err == ERR_TIMEOUT || err == ERR_CANCELLED || err == ERR_RETRY;
	const char *what = call->moves ? "not all could be moved, and another run moves the rest"
				       : "what is stored could not be read";
	int status = later ? 503 : err == ERR_FULL ? 507 : 500;
	if (call->request && err)
		http_reply_error(call->request, status, "%s: %s", what, err_text(err));
	else if (call->request)
		answer(call);
	if (call->apply)
		retention_apply_free(call->apply);
	retention_survey_free(call->survey);
	loop_timer_close(call->timer);
	call->api->rollup_calls--;
	call->api->retention_surveying = false;
	arena_release(&call->arena);
	mem_free(call);
}

static void on_moved(void *owner, int err);

static struct retention_scope scope_of(const struct call *call)
{
	const struct api *api = call->api;
	return (struct retention_scope){.store = api->store,
					.clock = api->clock,
					.executor = loop_executor(api->loop),
					.grains = api->grains,
					.raw_retention_ms = api->conf->retention_raw_ms,
					.late_retention_ms = api->late->kept_ms,
					.rules = api->retention,
					.tenant = call->tenant,
					.metric = call->metric};
}

static void move(struct call *call, enum store_rekey_step step)
{
	call->step = step;
	call->apply = retention_apply_start(&(struct retention_apply_options){
		.scope = scope_of(call),
		.step = step,
		.asof_ms = call->asof_ms,
		.done = on_moved,
		.owner = call,
	});
}

static void on_waited(void *owner)
{
	struct call *call = owner;
	loop_timer_close(call->timer);
	call->timer = NULL;
	move(call, STORE_REKEY_CLEAR);
}

/* A read ends by its deadline, which is that of queries or the store's own. */
static void wait_for_reads(struct call *call)
{
	int64_t wait_ms = call->api->conf->query_timeout_ms;
	if (wait_ms < STORE_DEADLINE_PRESET_MS)
		wait_ms = STORE_DEADLINE_PRESET_MS;
	call->timer = loop_timer_new(call->api->loop, on_waited, call);
	loop_timer_start(call->timer, (uint64_t)wait_ms + WAIT_EXTRA_MS, 0);
}

static void on_moved(void *owner, int err)
{
	struct call *call = owner;
	call->failed += retention_apply_failed(call->apply);
	retention_apply_free(call->apply);
	call->apply = NULL;
	if (!err && call->step == STORE_REKEY_COPY)
		wait_for_reads(call);
	else
		finish(call, err);
}

static bool any_moves(const struct retention_survey_result *result)
{
	for (size_t g = 0; g < ARRAY_LEN(result->moves); g++) {
		for (size_t from = 0; from < RETENTION_CLASSES; from++) {
			for (size_t to = 0; to < RETENTION_CLASSES; to++) {
				if (result->moves[g][from][to].series)
					return true;
			}
		}
	}
	return false;
}

static void on_surveyed(void *owner, int err)
{
	struct call *call = owner;
	if (!err && call->request && call->moves &&
	    any_moves(retention_survey_result(call->survey)))
		move(call, STORE_REKEY_COPY);
	else
		finish(call, err);
}

struct question {
	struct slice tenant, metric;
	size_t limit;
	bool moves; /* it is no dry run of an apply */
};

/* One at a time: each looks at all that is stored. */
static void begin(struct http_request *request, const struct question *q,
		  void (*answer_with)(const struct call *call, struct json_writer *json))
{
	struct api *api = api_of(request);
	if (api->retention_surveying) {
		http_reply_error(request, 503, "what is stored is being looked at already");
		return;
	}
	struct call *call = mem_zalloc(sizeof(*call));
	call->request = request;
	call->api = api;
	call->answer = answer_with;
	call->moves = q->moves;
	call->asof_ms = q->moves ? clock_age_ms(api->clock) : clock_wall_ms(api->clock);
	arena_init(&call->arena, NAMES_MAX_BYTES);
	call->tenant = arena_copy(&call->arena, q->tenant.data ? q->tenant : SLICE(""));
	call->metric = arena_copy(&call->arena, q->metric.data ? q->metric : SLICE(""));
	request->owner = call;
	api->rollup_calls++;
	api->retention_surveying = true;
	call->survey = retention_survey_start(&(struct retention_survey_options){
		.scope = scope_of(call),
		.lines_max = q->limit,
		.done = on_surveyed,
		.owner = call,
	});
}

static void on_show(struct http_request *request)
{
	static const char *const names[] = {"tenant", "metric", "limit", NULL};
	struct errbuf e = {""};
	struct question q = {.limit = LINES_PRESET};
	int err = params_check(request, names, &e);
	err = err ? err : params_narrowing(request, &q.tenant, &q.metric, &e);
	err = err ? err
		  : params_limit(request, LINES_PRESET, RETENTION_SURVEY_LINES_MAX, &q.limit, &e);
	if (err)
		http_reply_error(request, 400, "%s", e.text);
	else
		begin(request, &q, answer_kept);
}

static void on_apply(struct http_request *request)
{
	static const char *const names[] = {"tenant", "metric", "dryRun", NULL};
	struct errbuf e = {""};
	struct question q = {0};
	bool only_count = false;
	int err = params_check(request, names, &e);
	err = err ? err : params_narrowing(request, &q.tenant, &q.metric, &e);
	err = err ? err : params_flag(request, "dryRun", &only_count, &e);
	q.moves = !only_count;
	if (err)
		http_reply_error(request, 400, "%s", e.text);
	else
		begin(request, &q, answer_moves);
}

static void on_abort(struct http_request *request, UNUSED int err)
{
	struct call *call = request->owner;
	if (!call)
		return;
	call->request = NULL;
	retention_survey_cancel(call->survey);
	if (call->apply)
		retention_apply_cancel(call->apply);
	if (call->timer)
		finish(call, ERR_CANCELLED);
}

const struct http_handler retention_handler = {.end = on_show, .abort = on_abort};
const struct http_handler retention_apply_handler = {.end = on_apply, .abort = on_abort};
