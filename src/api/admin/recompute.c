#include "api/admin/recompute.h"

#include "api/metrics/query_params.h"
#include "api/routes.h"
#include "inventory/inventory.h"
#include "persist/recompute.h"
#include "wire/json.h"

enum { ANSWER_MAX_BYTES = 64 << 20, TAGS_ARENA_BYTES = 1 << 20 };

/* One request at work: one OIDSet after the other. */
struct call {
	struct http_request *request; /* NULL: the client has gone */
	struct api *api;
	struct recompute *recompute; /* at work; NULL: none */
	const struct inventory *inventory;
	struct slice device, stored_as; /* as the request and the inventory have it, while they are
					   there */
	const struct oidset *only;      /* NULL: all */
	int64_t from_ms, to_ms;
	bool only_report;
	size_t next;    /* in the configuration's OIDSets */
	size_t answers; /* OIDSets that are in the body */
	struct buf body;
	struct json_writer json;
};

static void begin_next(struct call *call);

static void call_free(struct call *call)
{
	call->api->recomputes--;
	inventory_release(call->inventory);
	buf_release(&call->body);
	mem_free(call);
}

/* ---- Answering ------------------------------------------------------------------------------- */

static void write_row(struct json_writer *json, const char *key, const struct counter_row *row,
		      bool there)
{
	json_write_key(json, key);
	if (!there) {
		json_write_null(json);
		return;
	}
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = {
		{"val", row->val},     {"isValid", row->count},     {"coveredMs", row->covered_ms},
		{"flags", row->flags}, {"unplaced", row->unplaced},
	};
	json_write_object_begin(json);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	if (row->has_rate) {
		json_put_f64(json, "min", row->min);
		json_put_f64(json, "max", row->max);
	}
	json_write_object_end(json);
}

static void write_tags(struct json_writer *json, struct slice tags_text)
{
	struct arena arena;
	struct tags tags = {NULL, 0};
	arena_init(&arena, TAGS_ARENA_BYTES);
	json_write_key(json, "tags");
	json_write_object_begin(json);
	if (tags_decode(tags_text, &arena, &tags) == 0) {
		for (size_t i = 0; i < tags.count; i++) {
			json_write_key_slice(json, tags.list[i].key);
			json_write_string(json, tags.list[i].value);
		}
	}
	json_write_object_end(json);
	arena_release(&arena);
}

static void write_difference(struct json_writer *json, const struct recompute *recompute,
			     const struct rate_difference *d)
{
	const struct oidset *set = recompute_oidset(recompute);
	const struct counter_row *row = d->was ? &d->stored : &d->computed;
	json_write_object_begin(json);
	json_put_string(json, "metric", recompute_metric(recompute, d));
	write_tags(json, recompute_tags_text(recompute, d));
	json_put_i64(json, "periodMs",
		     row->level ? set->aggregates_ms[row->level - 1] : set->frequency_ms);
	json_put_i64(json, "start", row->start_ms);
	write_row(json, "stored", &d->stored, d->was);
	write_row(json, "computed", &d->computed, d->is);
	json_write_object_end(json);
}

static void write_result(struct call *call, const struct recompute *recompute)
{
	const struct rate_recompute_result *result = recompute_result(recompute);
	struct json_writer *json = &call->json;
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = {
		{"compared", result->compared},
		{"differed", result->differed},
		{"missing", result->missing},
		{"extra", result->extra},
	};
	json_write_object_begin(json);
	json_put_string(json, "oidset", recompute_oidset(recompute)->name);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	json_write_key(json, "differences");
	json_write_array_begin(json);
	for (size_t i = 0; i < result->list_count; i++)
		write_difference(json, recompute, &result->list[i]);
	json_write_array_end(json);
	json_write_object_end(json);
	call->answers++;
}

static int status_of(int err)
{
	return err == ERR_BUSY || err == ERR_TIMEOUT || err == ERR_CANCELLED ? 503
	       : err == ERR_FULL                                             ? 507
	       : err == ERR_INVALID                                          ? 400
	       : err == ERR_LIMIT                                            ? 422
									     : 500;
}

static void fail(struct call *call, int err, struct slice oidset, const char *sentence)
{
	http_reply_error(call->request, status_of(err),
			 "OIDSet " SHOWN ": %s; what was corrected before stays", SHOWN_OF(oidset),
			 sentence[0] ? sentence : err_text(err));
	call_free(call);
}

static void answer(struct call *call)
{
	json_write_array_end(&call->json);
	json_write_object_end(&call->json);
	if (!call->answers)
		http_reply_error(call->request, 404,
				 "nothing is stored of device " SHOWN " that rates are made of",
				 SHOWN_OF(call->device));
	else if (call->body.failed)
		http_reply_error(call->request, 422, "the answer is too long");
	else
		http_reply(call->request, 200, "application/json", buf_slice(&call->body));
	call_free(call);
}

/* ---- Working --------------------------------------------------------------------------------- */

static void recomputed(struct recompute *recompute, int err)
{
	struct call *call = recompute_owner(recompute);
	struct slice oidset = recompute_oidset(recompute)->name;
	char sentence[sizeof(((struct errbuf *)NULL)->text)];
	snprintf(sentence, sizeof(sentence), "%s", recompute_error(recompute));
	call->recompute = NULL;
	if (!err)
		write_result(call, recompute);
	recompute_free(recompute);
	if (!call->request)
		call_free(call);
	else if (err && err != ERR_NOT_FOUND)
		fail(call, err, oidset, sentence);
	else
		begin_next(call);
}

static bool has_rates(const struct oidset *set)
{
	for (size_t i = 0; i < set->oid_count; i++) {
		if (set->oids[i]->aggregate)
			return true;
	}
	return false;
}

/* Those whose name is that of what they store, so that nothing is done twice. */
static const struct oidset *next_set(struct call *call)
{
	const struct inventory_conf *conf = call->api->inventory_conf;
	while (call->next < conf->oidset_count) {
		const struct oidset *set = conf->oidsets[call->next++];
		bool wanted = call->only ? set == call->only : set->stored_as == set;
		if (wanted && has_rates(set))
			return set;
	}
	return NULL;
}

static void begin_next(struct call *call)
{
	const struct oidset *set = next_set(call);
	if (!set) {
		answer(call);
		return;
	}
	const struct recompute_options options = {
		.device = call->stored_as,
		.oidset = set,
		.from_ms = call->from_ms,
		.to_ms = call->to_ms,
		.only_report = call->only_report,
		.done = recomputed,
		.owner = call,
	};
	struct errbuf e = {""};
	int err = recompute_start(call->api->persist, &options, &call->recompute, &e);
	if (err)
		fail(call, err, set->name, e.text);
}

static void aborted(struct http_request *request, UNUSED int err)
{
	struct call *call = request->owner;
	if (!call)
		return;
	call->request = NULL;
	if (call->recompute)
		recompute_cancel(call->recompute);
}

/* ---- What is asked --------------------------------------------------------------------------- */

static int read_time(const struct http_request *request, const char *name, int64_t now_ms,
		     int64_t *ms, struct errbuf *e)
{
	if (!http_param(request, name).data)
		return errbuf_set(e, ERR_INVALID, "%s is missing", name);
	return params_time(request, name, now_ms, ms, e);
}

static int read_oidset(const struct http_request *request, struct call *call, struct errbuf *e)
{
	struct slice name = http_param(request, "oidset");
	if (!name.data)
		return 0;
	call->only = inventory_conf_oidset(call->api->inventory_conf, name);
	if (!call->only)
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' is not an OIDSet", SHOWN_OF(name));
	if (!has_rates(call->only))
		return errbuf_set(e, ERR_INVALID, "OIDSet " SHOWN " has no counters",
				  SHOWN_OF(name));
	return 0;
}

static int read_params(const struct http_request *request, struct call *call, struct errbuf *e)
{
	static const char *const names[] = {"device", "oidset", "from", "to", "dryRun", NULL};
	int64_t now_ms = clock_wall_ms(call->api->clock);
	int err = params_check(request, names, e);
	call->device = http_param(request, "device");
	if (!err && !call->device.len)
		return errbuf_set(e, ERR_INVALID, "device is missing");
	call->stored_as = inventory_stored_as(call->inventory, call->device);
	err = err ? err : read_time(request, "from", now_ms, &call->from_ms, e);
	err = err ? err : read_time(request, "to", now_ms, &call->to_ms, e);
	if (!err && call->from_ms >= call->to_ms)
		return errbuf_set(e, ERR_INVALID, "from is not before to");
	if (!err && (call->from_ms < -COUNTER_TS_MAX || call->to_ms > COUNTER_TS_MAX))
		return errbuf_set(e, ERR_INVALID, "no counter has such times");
	err = err ? err : read_oidset(request, call, e);
	return err ? err : params_flag(request, "dryRun", &call->only_report, e);
}

static void on_end(struct http_request *request)
{
	struct call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	call->request = request;
	call->api = api_of(request);
	call->api->recomputes++;
	call->inventory = inventory_keeper_take(call->api->inventory);
	buf_init(&call->body, ANSWER_MAX_BYTES);
	json_writer_init(&call->json, &call->body);
	int err = read_params(request, call, &e);
	if (err) {
		http_reply_error(request, 400, "%s", e.text);
		call_free(call);
		return;
	}
	request->owner = call;
	json_write_object_begin(&call->json);
	json_put_string(&call->json, "device", call->device);
	json_write_key(&call->json, "oidsets");
	json_write_array_begin(&call->json);
	begin_next(call);
}

const struct http_handler recompute_handler = {.end = on_end, .abort = aborted};
