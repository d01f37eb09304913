/* `GET /api/metadata/...`: what exists, as JSON.
 *
 *     tenants                                         ["default","host"]
 *     metricNames  tenant, prefix                     ["cpu_idle","mem_free"]
 *     tagKeys      tenant, metricName, prefix         ["deployment","host","os"]
 *     tagValues    tenant, metricName, tagKey, prefix ["linux","windows"]
 *     series       tenant, metricName, tag...         what is known of each series, see metadata.c
 *     metric       tenant, metricName                 what is known of the metric; PUT sets kind,
 *                                                     unit and description of it
 *
 * Names are in byte order, at most `limit` (10,000 unless given; of series as many as a query
 * reads); where there are more, the header X-Granary-Cut is `limit`. */
#include "api/metrics/metrics.h"

#include "api/call.h"
#include "api/metrics/device_names.h"
#include "api/params.h"
#include "auth/caller.h"
#include "catalog/catalog.h"
#include "wire/timetext.h"

enum {
	NAMES_PRESET = 10000,
	NAMES_MAX = 100000,
	SERIES_MAX = 10000,
	CALL_MAX_BYTES = 256 << 20, /* names and descriptions of one answer */
	ANSWER_MAX_BYTES = 64 << 20,
};

/* One request at work: a list, or a find and then a description. */
struct metadata_call {
	struct api_call call;
	struct device_names names;
	bool strict;         /* of what is found, names tell what is meant */
	struct slice prefix; /* of a list of devices that names make */
	size_t limit;
	enum { DOING_NOTHING, DOING_LIST, DOING_FIND, DOING_DESCRIBE } doing;
	struct catalog_list list;
	struct catalog_find find;
	struct catalog_describe describe;
};

static const struct api_call_kind metadata_kind;

static struct metadata_call *metadata_call_of(struct api_call *call)
{
	ASSERT(call->kind == &metadata_kind);
	return CONTAINER_OF(call, struct metadata_call, call);
}

static void metadata_ended(struct api_call *base)
{
	struct metadata_call *call = metadata_call_of(base);
	if (call->doing == DOING_LIST)
		catalog_list_cancel(&call->list);
	else if (call->doing == DOING_FIND)
		catalog_find_cancel(&call->find);
	else if (call->doing == DOING_DESCRIBE)
		catalog_describe_cancel(&call->describe);
}

static void metadata_release(struct api_call *base)
{
	struct metadata_call *call = metadata_call_of(base);
	device_names_release(&call->names);
}

static const struct api_call_kind metadata_kind = {.arena_max_bytes = CALL_MAX_BYTES,
						   .out_max_bytes = ANSWER_MAX_BYTES,
						   .ended = metadata_ended,
						   .release = metadata_release};

static struct metadata_call *metadata_call_new(struct http_request *request)
{
	struct metadata_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &metadata_kind);
	return call;
}

static void metadata_fail(struct metadata_call *call, int err, const struct errbuf *error)
{
	struct errbuf e = *error; /* it may be the call's */
	api_call_fail_with(&call->call, err, e.text);
}

/* ---- Lists --------------------------------------------------------------------------------- */

/* A list of the tag `device` as its values are called. */
static int say_names(struct metadata_call *call)
{
	struct catalog_list *list = &call->list;
	int err = device_names_list(&call->names, call->prefix, &call->call.arena, list->names,
				    &list->count);
	list->cut = list->cut || list->count > call->limit;
	list->count = list->count < call->limit ? list->count : call->limit;
	return err ? errbuf_set(&list->error, err, "the answer is too long; ask for less") : 0;
}

static void metadata_listed(struct catalog_list *list, int err)
{
	struct metadata_call *call = metadata_call_of(api_call_from(list->owner));
	struct json_writer *json = &call->call.json;
	ASSERT(call->doing == DOING_LIST);
	call->doing = DOING_NOTHING;
	if (!err && call->names.inventory)
		err = say_names(call);
	if (err) {
		metadata_fail(call, err, &list->error);
		return;
	}
	call->call.cut = list->cut ? "limit" : NULL;
	json_write_array_begin(json);
	for (size_t i = 0; i < list->count; i++)
		json_write_string(json, list->names[i]);
	json_write_array_end(json);
	api_call_end(&call->call);
}

#define METADATA_TENANT                                                                            \
	"tenant", PARAM_TENANT, offsetof(struct catalog_list, tenant), .help = "Whose."
#define METADATA_METRIC                                                                            \
	"metricName", PARAM_METRIC, offsetof(struct catalog_list, metric),                         \
		.missing = "", .help = "Of which metric."
#define METADATA_PREFIX                                                                            \
	"prefix", PARAM_TEXT, offsetof(struct catalog_list, prefix),                               \
		.help = "Only names that begin so."
#define METADATA_LIMIT                                                                             \
	"limit", PARAM_NUMBER, offsetof(struct catalog_list, limit), 1, NAMES_MAX,                 \
		.help = "At most so many names; 10000 where it is left out."

const struct param metadata_tenants_params[] = {{METADATA_LIMIT}, {METADATA_PREFIX}, {NULL}};
const struct param metadata_metric_names_params[] = {
	{METADATA_LIMIT}, {METADATA_TENANT}, {METADATA_PREFIX}, {NULL}};
const struct param metadata_tag_keys_params[] = {
	{METADATA_LIMIT}, {METADATA_TENANT}, {METADATA_METRIC}, {METADATA_PREFIX}, {NULL}};
const struct param metadata_tag_values_params[] = {{METADATA_LIMIT},
						   {METADATA_TENANT},
						   {METADATA_METRIC},
						   {"tagKey", PARAM_TEXT,
						    offsetof(struct catalog_list, tag_key),
						    .missing = "", .help = "Of which tag."},
						   {METADATA_PREFIX},
						   {NULL}};

static int metadata_read_list(const struct http_request *request, struct catalog_list *list,
			      struct errbuf *e)
{
	list->limit = NAMES_PRESET;
	int err = params_read_route(request, 0, list, e);
	if (!err && list->prefix.len > TAG_VALUE_MAX_BYTES)
		err = errbuf_set(e, ERR_INVALID, "prefix is longer than any name");
	return err;
}

/* All devices are asked for: what one is called may come before or after what it is stored under.
 */
static void ask_names(struct metadata_call *call)
{
	struct catalog_list *list = &call->list;
	if (list->what != CATALOG_TAG_VALUES || !slice_equal(list->tag_key, SLICE("device")))
		return;
	device_names_init(&call->names, call->call.api, list->tenant);
	if (!call->names.inventory)
		return;
	call->prefix = list->prefix.data ? list->prefix : SLICE("");
	call->limit = list->limit;
	list->prefix = SLICE("");
	list->limit = NAMES_MAX;
}

static void metadata_begin_list(struct http_request *request, enum catalog_listing what)
{
	struct metadata_call *call = metadata_call_new(request);
	struct errbuf e;
	call->list = (struct catalog_list){
		.catalog = api_of(request)->catalog,
		.what = what,
		.done = metadata_listed,
		.owner = call,
		.arena = &call->call.arena,
	};
	int err = metadata_read_list(request, &call->list, &e);
	if (err) {
		metadata_fail(call, err, &e);
		return;
	}
	ask_names(call);
	call->doing = DOING_LIST;
	catalog_list_start(&call->list);
}

/* Those that the caller has, in order, whether anything of them is stored or not. */
static void tenants_list_own(struct http_request *request)
{
	struct metadata_call *call = metadata_call_new(request);
	struct catalog_list list = {.limit = NAMES_MAX};
	struct errbuf e;
	const struct caller *caller = request->caller;
	int err = metadata_read_list(request, &list, &e);
	if (err) {
		metadata_fail(call, err, &e);
		return;
	}
	json_write_array_begin(&call->call.json);
	for (size_t i = 0, count = 0; i < caller->tenant_count && count < list.limit; i++) {
		if (!slice_starts_with(caller->tenants[i], list.prefix))
			continue;
		json_write_string(&call->call.json, caller->tenants[i]);
		count++;
	}
	json_write_array_end(&call->call.json);
	api_call_end(&call->call);
}

static void tenants_end(struct http_request *request)
{
	if (request->caller && !request->caller->all_tenants)
		tenants_list_own(request);
	else
		metadata_begin_list(request, CATALOG_TENANTS);
}

static void metric_names_end(struct http_request *request)
{
	metadata_begin_list(request, CATALOG_METRIC_NAMES);
}

static void tag_keys_end(struct http_request *request)
{
	metadata_begin_list(request, CATALOG_TAG_KEYS);
}

static void tag_values_end(struct http_request *request)
{
	metadata_begin_list(request, CATALOG_TAG_VALUES);
}

/* ---- Series -------------------------------------------------------------------------------- */

static void metadata_write_time(struct json_writer *writer, const char *key, int64_t ms)
{
	char text[TIME_PRINT_MAX_BYTES];
	json_write_key(writer, key);
	if (ms == STORE_TS_MIN)
		json_write_null(writer);
	else
		json_write_string(writer, (struct slice){text, time_print(text, ms)});
}

/* The text of the document: metric, then the tags as they are stored, which is escaped. */
static void write_series_set(struct json_writer *writer, struct slice metric,
			     struct slice tags_text)
{
	struct buf text;
	buf_init(&text, 2 * METRIC_MAX_BYTES + 1 + TAGS_TEXT_MAX_BYTES);
	series_set_encode(metric, (struct tags){NULL, 0}, &text);
	if (tags_text.len)
		buf_append_char(&text, ',');
	buf_append(&text, tags_text.data, tags_text.len);
	json_put_string(writer, "seriesSet", buf_slice(&text));
	buf_release(&text);
}

static void write_tags(struct json_writer *writer, struct slice tags_text)
{
	struct arena arena;
	struct tags tags = {NULL, 0};
	arena_init(&arena, 256 << 10);
	json_write_key(writer, "tags");
	json_write_object_begin(writer);
	int err = tags_decode(tags_text, &arena, &tags);
	for (size_t i = 0; !err && i < tags.count; i++) {
		json_write_key_slice(writer, tags.list[i].key);
		json_write_string(writer, tags.list[i].value);
	}
	json_write_object_end(writer);
	arena_release(&arena);
}

/* "kind":"gauge","unit":"%","description":"time without work","aggregators":["avg","raw"],
 * "table":"data_raw","baseFrequencyMs":10000 */
static void write_info(struct json_writer *writer, const struct catalog_describe *describe)
{
	const struct catalog_info *info = &describe->info;
	json_put_text(writer, "kind", catalog_kind_text(info->kind));
	json_put_string(writer, "unit", info->unit);
	json_put_string(writer, "description", describe->description);
	json_write_key(writer, "aggregators");
	json_write_array_begin(writer);
	for (size_t i = 0; i < describe->aggregator_count; i++)
		json_write_string(writer, describe->aggregators[i]);
	json_write_array_end(writer);
	json_put_text(writer, "table", schema[info->home].name);
	json_put_i64(writer, "baseFrequencyMs", info->base_frequency_ms);
}

/* {"seriesSet":"cpu_idle,host=h-1","tenant":"t-1","metricName":"cpu_idle","tags":{"host":"h-1"},
 *  what write_info writes,
 *  "firstSeen":"2020-08-24T15:51:15Z","lastSeen":"2020-08-24T16:34:05Z"}; lastSeen is null where no
 * sample is left, baseFrequencyMs 0 where it is not known. */
static void write_entry(struct json_writer *writer, struct metadata_call *call,
			const struct catalog_entry *entry)
{
	const struct catalog_describe *describe = &call->describe;
	struct slice tags_text =
		device_names_tags(&call->names, entry->series.tags_text, &call->call.arena);
	json_write_object_begin(writer);
	write_series_set(writer, describe->metric, tags_text);
	json_put_string(writer, "tenant", describe->tenant);
	json_put_string(writer, "metricName", describe->metric);
	write_tags(writer, tags_text);
	write_info(writer, describe);
	metadata_write_time(writer, "firstSeen", entry->first_seen_ms);
	metadata_write_time(writer, "lastSeen", entry->last_seen_ms);
	json_write_object_end(writer);
}

static void described(struct catalog_describe *describe, int err)
{
	struct metadata_call *call = metadata_call_of(api_call_from(describe->owner));
	struct json_writer *json = &call->call.json;
	ASSERT(call->doing == DOING_DESCRIBE);
	call->doing = DOING_NOTHING;
	if (err) {
		metadata_fail(call, err, &describe->error);
		return;
	}
	json_write_array_begin(json);
	for (size_t i = 0; i < describe->count; i++)
		write_entry(json, call, &describe->entries[i]);
	json_write_array_end(json);
	api_call_end(&call->call);
}

static void keep_found(struct metadata_call *call)
{
	struct catalog_find *find = &call->find;
	size_t count = 0;
	for (size_t i = 0; i < find->count && call->strict; i++) {
		if (device_names_keep(&call->names, find->series[i].tags_text))
			find->series[count++] = find->series[i];
	}
	find->count = call->strict ? count : find->count;
}

static void metadata_found(struct catalog_find *find, int err)
{
	struct metadata_call *call = metadata_call_of(api_call_from(find->owner));
	ASSERT(call->doing == DOING_FIND);
	call->doing = DOING_NOTHING;
	if (err) {
		metadata_fail(call, err, &find->error);
		return;
	}
	keep_found(call);
	call->describe = (struct catalog_describe){
		.catalog = find->catalog,
		.tenant = find->tenant,
		.metric = find->metric,
		.series = find->series,
		.count = find->count,
		.done = described,
		.owner = call,
		.arena = &call->call.arena,
	};
	call->doing = DOING_DESCRIBE;
	catalog_describe_start(&call->describe);
}

const struct param metadata_series_params[] = {
	{"tenant", PARAM_TENANT, offsetof(struct catalog_find, tenant), .help = "Whose series."},
	{"metricName", PARAM_METRIC, offsetof(struct catalog_find, metric), .missing = "",
	 .help = "Of which metric."},
	{"tag", .repeated = true, .help = "Only series with such a tag, host=web-*."},
	{NULL}};

static int read_find(const struct http_request *request, struct catalog_find *find,
		     struct errbuf *e)
{
	int err = params_read_route(request, 0, find, e);
	return err ? err
		   : params_selectors(request, find->arena, &find->selectors, &find->selector_count,
				      e);
}

static int metadata_select_devices(struct metadata_call *call, struct errbuf *e)
{
	struct catalog_find *find = &call->find;
	device_names_init(&call->names, call->call.api, find->tenant);
	int err = device_names_select(&call->names, find->selectors, find->selector_count,
				      find->arena, &call->strict);
	return err ? errbuf_set(e, err, "too many devices were renamed") : 0;
}

static void series_end(struct http_request *request)
{
	struct metadata_call *call = metadata_call_new(request);
	struct errbuf e;
	call->find = (struct catalog_find){
		.catalog = api_of(request)->catalog,
		.series_max = SERIES_MAX,
		.done = metadata_found,
		.owner = call,
		.arena = &call->call.arena,
	};
	int err = read_find(request, &call->find, &e);
	err = err ? err : metadata_select_devices(call, &e);
	if (err) {
		metadata_fail(call, err, &e);
		return;
	}
	call->doing = DOING_FIND;
	catalog_find_start(&call->find);
}

/* ---- One metric ---------------------------------------------------------------------------- */

enum { SAID_MAX_BYTES = 64 << 10 };

/* It is described; where something is to be said of it that is written then, and it is described
 * once more. A write goes on when its client has gone. */
struct metadata_metric_call {
	struct api_call call;
	struct catalog_describe describe;
	bool describing;
	struct store_write *write; /* NULL: nothing is said, or it is written */
};

static const struct api_call_kind metric_kind;

static struct metadata_metric_call *metadata_metric_call_of(struct api_call *call)
{
	ASSERT(call->kind == &metric_kind);
	return CONTAINER_OF(call, struct metadata_metric_call, call);
}

static void metadata_metric_ended(struct api_call *base)
{
	struct metadata_metric_call *call = metadata_metric_call_of(base);
	if (call->describing)
		catalog_describe_cancel(&call->describe);
}

static void metadata_metric_release(struct api_call *base)
{
	struct metadata_metric_call *call = metadata_metric_call_of(base);
	if (call->write)
		store_write_free(call->write);
}

static const struct api_call_kind metric_kind = {.arena_max_bytes = CALL_MAX_BYTES,
						 .out_max_bytes = ANSWER_MAX_BYTES,
						 .ended = metadata_metric_ended,
						 .release = metadata_metric_release};

static void metric_describe(struct metadata_metric_call *call)
{
	ASSERT(!call->describing);
	call->describing = true;
	catalog_describe_start(&call->describe);
}

static void metric_written(struct store_write *write, int err)
{
	struct metadata_metric_call *call = metadata_metric_call_of(api_call_from(write->owner));
	if (!api_call_settle(&call->call))
		return;
	if (err) {
		api_call_fail(&call->call, http_status_of(err),
			      "what was said of the metric could not be stored: %s",
			      write->error.text[0] ? write->error.text : err_text(err));
		return;
	}
	store_write_free(write);
	call->write = NULL;
	metric_describe(call);
}

static void metric_answer(struct metadata_metric_call *call)
{
	const struct catalog_describe *describe = &call->describe;
	struct json_writer *json = &call->call.json;
	json_write_object_begin(json);
	json_put_string(json, "tenant", describe->tenant);
	json_put_string(json, "metricName", describe->metric);
	write_info(json, describe);
	json_write_object_end(json);
	api_call_end(&call->call);
}

static void metric_described(struct catalog_describe *describe, int err)
{
	struct metadata_metric_call *call = metadata_metric_call_of(api_call_from(describe->owner));
	struct errbuf e = describe->error;
	call->describing = false;
	if (!err && !describe->exists)
		err = errbuf_set(&e, ERR_NOT_FOUND,
				 "metric \"" SHOWN "\" of tenant \"" SHOWN "\" does not exist",
				 SHOWN_OF(describe->metric), SHOWN_OF(describe->tenant));
	if (!err && !call->write) {
		metric_answer(call);
		return;
	}
	if (!err) {
		err = store_write_submit(call->write);
		call->call.held += !err;
		if (!err)
			return;
		errbuf_set(&e, err, "the store takes no writes now: %s", err_text(err));
	}
	api_call_fail_with(&call->call, err, e.text);
}

static int say_member(struct metadata_metric_call *call, const struct json *member,
		      struct errbuf *e)
{
	bool text = member->type == JSON_T_STRING;
	for (int i = 0; i < CATALOG_SAYINGS; i++) {
		if (!slice_equal(member->key, slice_of(catalog_saying_name(i))))
			continue;
		if (!text && member->type != JSON_T_NULL)
			return errbuf_set(e, ERR_INVALID, "%s is a text, or null",
					  catalog_saying_name(i));
		return catalog_say(call->call.api->store, call->write, call->describe.tenant,
				   call->describe.metric, i, text ? member->text : SLICE(""), e);
	}
	return errbuf_set(e, ERR_INVALID,
			  "\"" SHOWN "\" cannot be set; kind, unit and description can",
			  SHOWN_OF(member->key));
}

static int read_said(struct metadata_metric_call *call, struct errbuf *e)
{
	struct json *root;
	int err = json_parse(buf_slice(&call->call.body), &call->call.arena, &root, e);
	if (!err && (root->type != JSON_T_OBJECT || !root->count))
		err = errbuf_set(e, ERR_INVALID,
				 "the body is to be an object with kind, unit or description");
	if (err)
		return err;
	call->write = store_write_new(call->call.api->store, SAID_MAX_BYTES);
	call->write->executor = loop_executor(call->call.api->loop);
	call->write->done = metric_written;
	call->write->owner = call;
	for (const struct json *member = root->first; member && !err; member = member->next)
		err = say_member(call, member, e);
	return err;
}

const struct param metadata_metric_params[] = {
	{"tenant", PARAM_TENANT, offsetof(struct catalog_describe, tenant), .help = "Whose."},
	{"metricName", PARAM_METRIC, offsetof(struct catalog_describe, metric), .missing = "",
	 .help = "Which metric."},
	{NULL}};

static void metadata_metric_begin(struct http_request *request, bool says)
{
	struct metadata_metric_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e;
	api_call_init(&call->call, request, &metric_kind);
	call->describe = (struct catalog_describe){
		.catalog = call->call.api->catalog,
		.done = metric_described,
		.owner = call,
		.arena = &call->call.arena,
	};
	int err = params_read_route(request, 0, &call->describe, &e);
	err = err || !says ? err : read_said(call, &e);
	if (err)
		api_call_fail_with(&call->call, err, e.text);
	else
		metric_describe(call);
}

static void metadata_metric_end(struct http_request *request)
{
	metadata_metric_begin(request, false);
}

static void metric_put_end(struct http_request *request)
{
	metadata_metric_begin(request, true);
}

const struct http_handler metadata_tenants = API_CALL_HANDLER(tenants_end);
const struct http_handler metadata_metric_names = API_CALL_HANDLER(metric_names_end);
const struct http_handler metadata_tag_keys = API_CALL_HANDLER(tag_keys_end);
const struct http_handler metadata_tag_values = API_CALL_HANDLER(tag_values_end);
const struct http_handler metadata_series = API_CALL_HANDLER(series_end);
const struct http_handler metadata_metric = API_CALL_HANDLER(metadata_metric_end);
const struct http_handler metadata_metric_put = API_CALL_HANDLER(metric_put_end);
