#include "api/admin/admin.h"

#include "api/call.h"
#include "api/params.h"
#include "inventory/inventory.h"
#include "persist/recompute.h"

enum { ANSWER_MAX_BYTES = 64 << 20, ARENA_MAX_BYTES = 1 << 20 };

/* One request at work: one OIDSet after the other. */
struct recompute_call {
	struct api_call call;
	struct slice device, stored_as; /* as the request and the inventory have it */
	const struct oidset *only;      /* NULL: all */
	int64_t from_ms, to_ms;
	bool only_report;
	size_t answers;      /* OIDSets that are in the body */
	struct slice failed; /* the OIDSet */
	struct errbuf error;
	int err;
};

static const struct api_call_kind recompute_kind;

static struct recompute_call *recompute_call_of(struct api_call *call)
{
	ASSERT(call->kind == &recompute_kind);
	return CONTAINER_OF(call, struct recompute_call, call);
}

/* ---- Answering ------------------------------------------------------------------------------- */

static void recompute_write_row(struct json_writer *json, const char *key,
				const struct counter_row *row, bool there)
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

static void recompute_write_tags(struct json_writer *json, struct slice tags_text)
{
	struct arena arena;
	struct tags tags = {NULL, 0};
	arena_init(&arena, ARENA_MAX_BYTES);
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

static void recompute_write_difference(struct json_writer *json, const struct oidset *set,
				       const struct recompute *recompute,
				       const struct rate_difference *d)
{
	const struct counter_row *row = d->was ? &d->stored : &d->computed;
	ASSERT((d->was || d->is) && row->level <= set->aggregate_count);
	json_write_object_begin(json);
	json_put_string(json, "metric", recompute_metric(recompute, d));
	recompute_write_tags(json, recompute_tags_text(recompute, d));
	json_put_i64(json, "periodMs",
		     row->level ? set->aggregates_ms[row->level - 1] : set->frequency_ms);
	json_put_i64(json, "start", row->start_ms);
	recompute_write_row(json, "stored", &d->stored, d->was);
	recompute_write_row(json, "computed", &d->computed, d->is);
	json_write_object_end(json);
}

static void recompute_write_result(struct recompute_call *call, const struct oidset *set,
				   const struct recompute *recompute)
{
	const struct rate_recompute_result *result = recompute_result(recompute);
	struct json_writer *json = &call->call.json;
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
	json_put_string(json, "oidset", set->name);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	json_write_key(json, "differences");
	json_write_array_begin(json);
	for (size_t i = 0; i < result->list_count; i++)
		recompute_write_difference(json, set, recompute, &result->list[i]);
	json_write_array_end(json);
	json_write_object_end(json);
	call->answers++;
}

static void recompute_over(struct api_call *base)
{
	struct recompute_call *call = recompute_call_of(base);
	if (!base->request)
		return;
	json_write_array_end(&base->json);
	json_write_object_end(&base->json);
	if (call->err)
		api_call_fail(base, http_status_of(call->err),
			      "OIDSet " SHOWN ": %s; what was corrected before stays",
			      SHOWN_OF(call->failed), call->error.text);
	else if (!call->answers)
		api_call_fail(base, 404,
			      "nothing is stored of device " SHOWN " that rates are made of",
			      SHOWN_OF(call->device));
	else
		api_call_end(base);
}

/* ---- Working --------------------------------------------------------------------------------- */

static bool recompute_has_rates(const struct oidset *set)
{
	for (size_t i = 0; i < set->oid_count; i++) {
		if (set->oids[i]->aggregate)
			return true;
	}
	return false;
}

/* Those whose name is that of what they store, so that nothing is done twice. */
static bool recompute_is_wanted(const struct recompute_call *call, const struct oidset *set)
{
	return recompute_has_rates(set) && (call->only ? set == call->only : set->stored_as == set);
}

static int recompute_set(struct recompute_call *call, const struct oidset *set)
{
	const struct recompute_options options = {
		.persist = call->call.api->persist,
		.device = call->stored_as,
		.oidset = set,
		.from_ms = call->from_ms,
		.to_ms = call->to_ms,
		.only_report = call->only_report,
	};
	struct recompute *recompute = recompute_new(&options);
	int err = recompute_run(recompute, call->call.job, &call->error);
	if (!err)
		recompute_write_result(call, set->stored_as, recompute);
	recompute_free(recompute);
	return err == ERR_NOT_FOUND ? 0 : err;
}

static void recompute_sets(struct api_call *base)
{
	struct recompute_call *call = recompute_call_of(base);
	const struct inventory_conf *conf = base->api->inventory_conf;
	for (size_t i = 0; i < conf->oidset_count && !call->err; i++) {
		const struct oidset *set = conf->oidsets[i];
		if (!recompute_is_wanted(call, set))
			continue;
		call->err = recompute_set(call, set);
		call->failed = set->stored_as->name;
	}
}

/* ---- What is asked --------------------------------------------------------------------------- */

const struct param recompute_params[] = {
	{"device", PARAM_TEXT, offsetof(struct recompute_call, device), .help = "Of this device."},
	{"oidset", .help = "Of this OIDSet; of all where it is left out."},
	{"from", PARAM_TIME, offsetof(struct recompute_call, from_ms), .missing = "",
	 .help = "Bins from then on."},
	{"to", PARAM_TIME, offsetof(struct recompute_call, to_ms), .missing = "",
	 .help = "Bins before then."},
	{"dryRun", PARAM_FLAG, offsetof(struct recompute_call, only_report),
	 .help = "Only says what differs."},
	{NULL}};

static int recompute_read_oidset(const struct http_request *request, struct recompute_call *call,
				 struct errbuf *e)
{
	const struct inventory_conf *conf = api_of(request)->inventory_conf;
	struct slice name = http_param(request, "oidset");
	if (!name.data)
		return 0;
	call->only = inventory_conf_oidset(conf, name);
	if (!call->only)
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' is not an OIDSet", SHOWN_OF(name));
	if (!recompute_has_rates(call->only))
		return errbuf_set(e, ERR_INVALID, "OIDSet " SHOWN " has no counters",
				  SHOWN_OF(name));
	return 0;
}

/* The job reads them when the request may be gone. */
static int recompute_find_device(struct recompute_call *call, struct errbuf *e)
{
	struct arena *arena = &call->call.arena;
	if (!call->device.len)
		return errbuf_set(e, ERR_INVALID, "device is missing");
	const struct inventory *inventory = inventory_keeper_take(call->call.api->inventory);
	call->stored_as = arena_copy(arena, inventory_stored_as(inventory, call->device));
	call->device = arena_copy(arena, call->device);
	inventory_release(inventory);
	return call->device.data && call->stored_as.data
		       ? 0
		       : errbuf_set(e, ERR_INVALID, "the device's name is too long");
}

static int recompute_read_params(const struct http_request *request, struct recompute_call *call,
				 struct errbuf *e)
{
	int err = params_read_route(request, clock_wall_ms(call->call.api->clock), call, e);
	err = err ? err : recompute_find_device(call, e);
	if (!err && call->from_ms >= call->to_ms)
		return errbuf_set(e, ERR_INVALID, "from is not before to");
	if (!err && (call->from_ms < -COUNTER_TS_MAX || call->to_ms > COUNTER_TS_MAX))
		return errbuf_set(e, ERR_INVALID, "no counter has such times");
	return err ? err : recompute_read_oidset(request, call, e);
}

static const struct api_call_kind recompute_kind = {.arena_max_bytes = ARENA_MAX_BYTES,
						    .out_max_bytes = ANSWER_MAX_BYTES,
						    .job_name = "recompute",
						    .run = recompute_sets,
						    .over = recompute_over};

static void recompute_end(struct http_request *request)
{
	struct recompute_call *call = mem_zalloc(sizeof(*call));
	struct json_writer *json = &call->call.json;
	struct errbuf e = {""};
	api_call_init(&call->call, request, &recompute_kind);
	if (recompute_read_params(request, call, &e)) {
		api_call_fail(&call->call, 400, "%s", e.text);
		return;
	}
	json_write_object_begin(json);
	json_put_string(json, "device", call->device);
	json_write_key(json, "oidsets");
	json_write_array_begin(json);
	api_call_start_job(&call->call);
}

const struct http_handler recompute_handler = API_CALL_HANDLER(recompute_end);
