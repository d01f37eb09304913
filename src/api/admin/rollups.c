#include "api/admin/admin.h"

#include "api/call.h"
#include "api/params.h"
#include "conf/conf.h"
#include "marks/pending.h"
#include "marks/redis/url.h"
#include "rollup/rollup.h"
#include "wire/json.h"

enum {
	ANSWER_MAX_BYTES = 4 << 20,
	LIST_MAX_BYTES = 32 << 10, /* of partitions */
	SLOTS_PRESET = 100,
	MARKS_MAX = 1000000,
};

struct rollups_call {
	struct api_call call;
	struct marks_pending_options options;
	struct marks_pending pending;
	int err;
};

/* ---- Configuration --------------------------------------------------------------------------- */

static void write_partitions(struct json_writer *json, const char *key,
			     const struct partitions *set)
{
	struct buf list;
	buf_init(&list, LIST_MAX_BYTES);
	partitions_print(set, &list);
	json_put_string(json, key, list.len ? buf_slice(&list) : SLICE(""));
	buf_release(&list);
}

static void write_width(struct json_writer *json, const char *key, int64_t width_ms)
{
	char text[GRANULARITY_WIDTH_MAX_BYTES];
	size_t len = granularity_width_print(text, width_ms);
	json_put_string(json, key, (struct slice){text, len});
}

static void write_granularities(struct json_writer *json, const struct granularities *granularities)
{
	json_write_key(json, "granularities");
	json_write_array_begin(json);
	for (size_t i = 0; i < granularities->count; i++) {
		json_write_object_begin(json);
		write_width(json, "width", granularities->list[i].width_ms);
		json_put_i64(json, "widthMs", granularities->list[i].width_ms);
		json_put_i64(json, "retentionMs", granularities->list[i].retention_ms);
		json_write_object_end(json);
	}
	json_write_array_end(json);
}

/* Of raw samples that are kept for ever none is late. */
static void write_late(struct json_writer *json, const struct api *api)
{
	const struct retention_rules *rules = rollup_site_rules(api->site);
	bool any = retention_shortest_raw_ms(rules) != 0;
	json_put_text(json, "late", any ? api->conf->rollup_late : "none");
	json_put_i64(json, "lateRetentionMs", rules->late.kept_ms);
}

static void write_conf(struct json_writer *json, const struct api *api)
{
	const struct conf *conf = api->conf;
	write_granularities(json, &api->site->granularities);
	json_put_i64(json, "slotMs", conf->rollup_slot_ms);
	json_put_i64(json, "quietMs", conf->rollup_quiet_ms);
	json_put_i64(json, "everyMs", conf->rollup_every_ms);
	json_put_i64(json, "leaseMs", conf->rollup_lease_ms);
	write_late(json, api);
	json_write_key(json, "counterSuffixes");
	json_write_array_begin(json);
	for (size_t i = 0; i < conf->rollup_counter_suffixes.count; i++)
		json_write_text(json, conf->rollup_counter_suffixes.items[i]);
	json_write_array_end(json);
	json_put_text(json, "name", api->site->name);
	json_put_i64(json, "partitions", conf->partitions);
	write_partitions(json, "own", &api->site->own);
}

/* ---- The last pass --------------------------------------------------------------------------- */

static void write_error(struct json_writer *json, int err, const char *why)
{
	json_write_key(json, "error");
	if (err)
		json_write_text(json, why);
	else
		json_write_null(json);
}

static void write_pass(struct json_writer *json, const struct rollup_state *state)
{
	const struct rollup_pass *pass = &state->pass;
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = {
		{"slots", pass->slots},        {"series", pass->series}, {"waiting", pass->waiting},
		{"rolledUp", pass->rolled_up}, {"failed", pass->failed}, {"unread", pass->unread},
		{"rows", pass->rows},
	};
	json_write_key(json, "lastPass");
	if (!state->pass_ms) {
		json_write_null(json);
		return;
	}
	json_write_object_begin(json);
	json_put_i64(json, "at", state->pass_ms);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	json_put_i64_or_null(json, "nextReadyAt", pass->next_ready_ms != INT64_MAX,
			     pass->next_ready_ms);
	write_error(json, pass->err, state->why);
	json_write_object_end(json);
}

/* What keeps the marks, and whether it does. */
static void write_tracking(struct json_writer *json, const struct api *api)
{
	struct marks_state state = marks_state(api->site->marks);
	json_write_key(json, "tracking");
	json_write_object_begin(json);
	json_write_key(json, "in");
	json_write_text(json,
			redis_url_is(slice_of(api->conf->rollup_tracking)) ? "redis" : "store");
	json_write_key(json, "degraded");
	if (state.degraded)
		json_write_text(json, state.why);
	else
		json_write_null(json);
	json_put_bool(json, "incomplete", state.incomplete);
	json_write_object_end(json);
}

static void rollups_write_state(struct json_writer *json, const struct api *api)
{
	struct rollup_state state = {0};
	write_tracking(json, api);
	if (api->rollup)
		state = rollup_state(api->rollup);
	write_partitions(json, "held", &state.held);
	json_put_bool(json, "running", state.running);
	write_error(json, state.err, err_text(state.err));
	write_pass(json, &state);
}

/* ---- What waits ------------------------------------------------------------------------------ */

static void write_slot(struct json_writer *json, const struct marks_pending_slot *slot)
{
	json_write_object_begin(json);
	json_put_i64(json, "slot", slot->slot_s * 1000);
	json_put_i64(json, "partitions", (int64_t)slot->partitions);
	json_put_i64(json, "series", (int64_t)slot->series);
	json_put_i64(json, "ready", (int64_t)slot->ready);
	json_put_i64(json, "unread", (int64_t)slot->unread);
	json_put_i64_or_null(json, "readyAt", slot->ready_ms, slot->ready_ms);
	json_put_i64_or_null(json, "readySince", slot->ready, slot->since_ms);
	json_put_bool(json, "counted", slot->counted);
	json_write_object_end(json);
}

/* How long the first that is ready has been so. */
static int64_t rollups_behind_ms(const struct marks_pending_slot *slots, size_t count,
				 int64_t now_ms)
{
	int64_t since_ms = now_ms;
	for (size_t i = 0; i < count; i++) {
		if (slots[i].ready && slots[i].since_ms < since_ms)
			since_ms = slots[i].since_ms;
	}
	return now_ms - since_ms;
}

/* While Redis is not reached, or was emptied just now, what the store has is shown. */
static bool rollups_is_partial(const struct rollups_call *call)
{
	return call->err == ERR_RETRY && !marks_in_writes(call->call.api->site->marks);
}

static void write_pending(struct json_writer *json, const struct rollups_call *call)
{
	const struct marks_pending *pending = &call->pending;
	const struct marks_pending_slot *slots = pending->slots;
	int64_t now_ms = clock_wall_ms(call->call.api->clock);
	json_put_i64(json, "now", now_ms);
	json_put_i64(json, "behindMs", rollups_behind_ms(slots, pending->count, now_ms));
	json_put_i64_or_null(json, "oldestSlot", pending->count,
			     pending->count ? slots[0].slot_s * 1000 : 0);
	json_write_key(json, "pending");
	json_write_array_begin(json);
	for (size_t i = 0; i < pending->count; i++)
		write_slot(json, &slots[i]);
	json_write_array_end(json);
	json_put_bool(json, "cut", pending->cut || rollups_is_partial(call));
}

static const struct api_call_kind rollups_kind;

static struct rollups_call *rollups_call_of(struct api_call *call)
{
	ASSERT(call->kind == &rollups_kind);
	return CONTAINER_OF(call, struct rollups_call, call);
}

static void rollups_run(struct api_call *base)
{
	struct rollups_call *call = rollups_call_of(base);
	call->options.queue = job_queue(base->job);
	call->err = marks_pending_list(&call->options, &call->pending);
}

static void rollups_answer(struct api_call *base)
{
	struct rollups_call *call = rollups_call_of(base);
	if (!base->request)
		return;
	if (call->err && !rollups_is_partial(call)) {
		api_call_fail(base, http_status_of(call->err),
			      "what waits to be rolled up could not be read: %s",
			      err_text(call->err));
		return;
	}
	json_write_object_begin(&base->json);
	write_conf(&base->json, base->api);
	rollups_write_state(&base->json, base->api);
	write_pending(&base->json, call);
	json_write_object_end(&base->json);
	api_call_end(base);
}

static void rollups_release(struct api_call *base)
{
	struct rollups_call *call = rollups_call_of(base);
	marks_pending_release(&call->pending);
}

static const struct api_call_kind rollups_kind = {.out_max_bytes = ANSWER_MAX_BYTES,
						  .release = rollups_release,
						  .job_name = "pending",
						  .run = rollups_run,
						  .over = rollups_answer};

const struct param rollups_params[] = {
	{"limit", PARAM_NUMBER, 0, 1, MARKS_PENDING_SLOTS_MAX,
	 .help = "At most so many slots that wait; 100 where it is left out."},
	{NULL}};

static void rollups_on_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct errbuf e = {""};
	size_t limit = SLOTS_PRESET;
	if (params_read_route(request, 0, &limit, &e)) {
		http_reply_error(request, 400, "%s", e.text);
		return;
	}
	struct rollups_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &rollups_kind);
	call->options = (struct marks_pending_options){.marks = api->site->marks,
						       .clock = api->clock,
						       .slot_ms = api->conf->rollup_slot_ms,
						       .quiet_ms = api->conf->rollup_quiet_ms,
						       .slots_max = limit,
						       .marks_max = MARKS_MAX};
	call->err = ERR_CANCELLED; /* until it has run */
	api_call_start_job(&call->call);
}

const struct http_handler rollups_handler = API_CALL_HANDLER(rollups_on_end);
