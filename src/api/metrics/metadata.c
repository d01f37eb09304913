#include "api/metrics/metadata.h"

#include "api/metrics/device_names.h"
#include "api/json_reply.h"
#include "api/metrics/query.h"
#include "api/metrics/query_params.h"
#include "api/routes.h"
#include "catalog/catalog.h"
#include "loop/loop.h"
#include "wire/json.h"
#include "wire/timetext.h"

enum {
	NAMES_PRESET = 10000,
	NAMES_MAX = 100000,
	SERIES_MAX = 10000,
	CALL_MAX_BYTES = 256 << 20, /* names and descriptions of one answer */
	ANSWER_MAX_BYTES = 64 << 20,
};

/* One request at work: a list, or a find and then a description. */
struct call {
	struct http_request *request;
	struct arena arena;
	struct device_names names;
	bool strict;         /* of what is found, names tell what is meant */
	struct slice prefix; /* of a list of devices that names make */
	size_t limit;
	enum { DOING_NOTHING, DOING_LIST, DOING_FIND, DOING_DESCRIBE } doing;
	struct catalog_list list;
	struct catalog_find find;
	struct catalog_describe describe;
};

static struct call *call_new(struct http_request *request)
{
	struct call *call = mem_zalloc(sizeof(*call));
	call->request = request;
	arena_init(&call->arena, CALL_MAX_BYTES);
	request->owner = call;
	return call;
}

static void call_free(struct call *call)
{
	if (call->doing == DOING_LIST)
		catalog_list_cancel(&call->list);
	else if (call->doing == DOING_FIND)
		catalog_find_cancel(&call->find);
	else if (call->doing == DOING_DESCRIBE)
		catalog_describe_cancel(&call->describe);
	device_names_release(&call->names);
	arena_release(&call->arena);
	mem_free(call);
}

static void aborted(struct http_request *request, UNUSED int err)
{
	if (request->owner)
		call_free(request->owner);
}

static void fail(struct call *call, int err, const struct errbuf *e)
{
	http_reply_error(call->request, query_status(err), "%s", e->text);
	call_free(call);
}

static void reply(struct call *call, struct buf *body)
{
	struct errbuf e;
	if (body->failed) {
		errbuf_set(&e, ERR_LIMIT, "the answer is too long; ask for less");
		fail(call, ERR_LIMIT, &e);
	} else {
		http_reply(call->request, 200, "application/json", buf_slice(body));
		call_free(call);
	}
	buf_release(body);
}

/* ---- Lists --------------------------------------------------------------------------------- */

/* A list of the tag `device` as its values are called. */
static int say_names(struct call *call)
{
	struct catalog_list *list = &call->list;
	int err = device_names_list(&call->names, call->prefix, &call->arena, list->names,
				    &list->count);
	list->cut = list->cut || list->count > call->limit;
	list->count = list->count < call->limit ? list->count : call->limit;
	return err ? errbuf_set(&list->error, err, "the answer is too long; ask for less") : 0;
}

static void listed(struct catalog_list *list, int err)
{
	struct call *call = list->owner;
	struct json_writer writer;
	struct buf body;
	call->doing = DOING_NOTHING;
	if (!err && call->names.inventory)
		err = say_names(call);
	if (err) {
		fail(call, err, &list->error);
		return;
	}
	if (list->cut)
		http_reply_header(call->request, "X-Granary-Cut", "limit");
	buf_init(&body, ANSWER_MAX_BYTES);
	json_writer_init(&writer, &body);
	json_write_array_begin(&writer);
	for (size_t i = 0; i < list->count; i++)
		json_write_string(&writer, list->names[i]);
	json_write_array_end(&writer);
	reply(call, &body);
}

static int read_tag_key(const struct http_request *request, struct slice *key, struct errbuf *e)
{
	*key = http_param(request, "tagKey");
	return key->data ? 0 : errbuf_set(e, ERR_INVALID, "tagKey is missing");
}

static int read_list(const struct http_request *request, struct catalog_list *list,
		     const char *const *names, struct errbuf *e)
{
	int err = params_check(request, names, e);
	if (!err)
		err = params_limit(request, NAMES_PRESET, NAMES_MAX, &list->limit, e);
	if (!err && list->what != CATALOG_TENANTS)
		err = params_tenant(request, &list->tenant, e);
	if (!err && (list->what == CATALOG_TAG_KEYS || list->what == CATALOG_TAG_VALUES))
		err = params_metric(request, &list->metric, e);
	if (!err && list->what == CATALOG_TAG_VALUES)
		err = read_tag_key(request, &list->tag_key, e);
	list->prefix = http_param(request, "prefix");
	if (!err && list->prefix.len > TAG_VALUE_MAX_BYTES)
		err = errbuf_set(e, ERR_INVALID, "prefix is longer than any name");
	return err;
}

/* All devices are asked for: what one is called may come before or after what it is stored under.
 */
static void ask_names(struct call *call)
{
	struct catalog_list *list = &call->list;
	if (list->what != CATALOG_TAG_VALUES || !slice_equal(list->tag_key, SLICE("device")))
		return;
	device_names_init(&call->names, api_of(call->request), list->tenant);
	if (!call->names.inventory)
		return;
	call->prefix = list->prefix.data ? list->prefix : SLICE("");
	call->limit = list->limit;
	list->prefix = SLICE("");
	list->limit = NAMES_MAX;
}

static void begin_list(struct http_request *request, enum catalog_listing what,
		       const char *const *names)
{
	struct call *call = call_new(request);
	struct errbuf e;
	call->list = (struct catalog_list){
		.catalog = api_of(request)->catalog,
		.what = what,
		.done = listed,
		.owner = call,
		.arena = &call->arena,
	};
	int err = read_list(request, &call->list, names, &e);
	if (err) {
		fail(call, err, &e);
		return;
	}
	ask_names(call);
	call->doing = DOING_LIST;
	catalog_list_start(&call->list);
}

static void tenants_end(struct http_request *request)
{
	static const char *const names[] = {"prefix", "limit", NULL};
	begin_list(request, CATALOG_TENANTS, names);
}

static void metric_names_end(struct http_request *request)
{
	static const char *const names[] = {"tenant", "prefix", "limit", NULL};
	begin_list(request, CATALOG_METRIC_NAMES, names);
}

static void tag_keys_end(struct http_request *request)
{
	static const char *const names[] = {"tenant", "metricName", "prefix", "limit", NULL};
	begin_list(request, CATALOG_TAG_KEYS, names);
}

static void tag_values_end(struct http_request *request)
{
	static const char *const names[] = {"tenant", "metricName", "tagKey",
					    "prefix", "limit",      NULL};
	begin_list(request, CATALOG_TAG_VALUES, names);
}

/* ---- Series -------------------------------------------------------------------------------- */

static void write_time(struct json_writer *writer, const char *key, int64_t ms)
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
static void write_entry(struct json_writer *writer, struct call *call,
			const struct catalog_entry *entry)
{
	const struct catalog_describe *describe = &call->describe;
	struct slice tags_text =
		device_names_tags(&call->names, entry->series.tags_text, &call->arena);
	json_write_object_begin(writer);
	write_series_set(writer, describe->metric, tags_text);
	json_put_string(writer, "tenant", describe->tenant);
	json_put_string(writer, "metricName", describe->metric);
	write_tags(writer, tags_text);
	write_info(writer, describe);
	write_time(writer, "firstSeen", entry->first_seen_ms);
	write_time(writer, "lastSeen", entry->last_seen_ms);
	json_write_object_end(writer);
}

static void described(struct catalog_describe *describe, int err)
{
	struct call *call = describe->owner;
	struct json_writer writer;
	struct buf body;
	call->doing = DOING_NOTHING;
	if (err) {
		fail(call, err, &describe->error);
		return;
	}
	buf_init(&body, ANSWER_MAX_BYTES);
	json_writer_init(&writer, &body);
	json_write_array_begin(&writer);
	for (size_t i = 0; i < describe->count; i++)
		write_entry(&writer, call, &describe->entries[i]);
	json_write_array_end(&writer);
	reply(call, &body);
}

static void keep_found(struct call *call)
{
	struct catalog_find *find = &call->find;
	size_t count = 0;
	for (size_t i = 0; i < find->count && call->strict; i++) {
		if (device_names_keep(&call->names, find->series[i].tags_text))
			find->series[count++] = find->series[i];
	}
	find->count = call->strict ? count : find->count;
}

static void found(struct catalog_find *find, int err)
{
	struct call *call = find->owner;
	call->doing = DOING_NOTHING;
	if (err) {
		fail(call, err, &find->error);
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
		.arena = &call->arena,
	};
	call->doing = DOING_DESCRIBE;
	catalog_describe_start(&call->describe);
}

static int read_find(const struct http_request *request, struct catalog_find *find,
		     struct errbuf *e)
{
	static const char *const names[] = {"tenant", "metricName", "+tag", NULL};
	int err = params_check(request, names, e);
	if (!err)
		err = params_tenant(request, &find->tenant, e);
	if (!err)
		err = params_metric(request, &find->metric, e);
	if (!err)
		err = params_selectors(request, find->arena, &find->selectors,
				       &find->selector_count, e);
	return err;
}

static int select_devices(struct call *call, struct errbuf *e)
{
	struct catalog_find *find = &call->find;
	device_names_init(&call->names, api_of(call->request), find->tenant);
	int err = device_names_select(&call->names, (struct catalog_selector *)find->selectors,
				      find->selector_count, find->arena, &call->strict);
	return err ? errbuf_set(e, err, "too many devices were renamed") : 0;
}

static void series_end(struct http_request *request)
{
	struct call *call = call_new(request);
	struct errbuf e;
	call->find = (struct catalog_find){
		.catalog = api_of(request)->catalog,
		.series_max = SERIES_MAX,
		.done = found,
		.owner = call,
		.arena = &call->arena,
	};
	int err = read_find(request, &call->find, &e);
	err = err ? err : select_devices(call, &e);
	if (err) {
		fail(call, err, &e);
		return;
	}
	call->doing = DOING_FIND;
	catalog_find_start(&call->find);
}

/* ---- One metric ---------------------------------------------------------------------------- */

enum { SAID_MAX_BYTES = 64 << 10 };

/* It is described; where something is to be said of it that is written then, and it is described
 * once more. A write goes on when its client has gone. */
struct metric_call {
	struct http_request *request; /* NULL: gone */
	struct api *api;
	struct arena arena;
	struct buf body;
	struct catalog_describe describe;
	bool describing;
	struct store_write *write; /* NULL: nothing is said, or it is written */
};

static void metric_free(struct metric_call *call)
{
	call->api->metadata_writes -= call->write != NULL;
	if (call->describing)
		catalog_describe_cancel(&call->describe);
	if (call->write)
		store_write_free(call->write);
	buf_release(&call->body);
	arena_release(&call->arena);
	mem_free(call);
}

static void metric_aborted(struct http_request *request, UNUSED int err)
{
	struct metric_call *call = request->owner;
	if (!call)
		return;
	call->request = NULL;
	if (call->describing)
		metric_free(call);
}

static void metric_fail(struct metric_call *call, int err, const struct errbuf *e)
{
	if (call->request)
		http_reply_error(call->request, query_status(err), "%s", e->text);
	metric_free(call);
}

static void metric_describe(struct metric_call *call)
{
	call->describing = true;
	catalog_describe_start(&call->describe);
}

static void metric_written(struct store_write *write, int err)
{
	struct metric_call *call = write->owner;
	struct errbuf e;
	if (err) {
		errbuf_set(&e, err, "what was said of the metric could not be stored: %s",
			   write->error.text[0] ? write->error.text : err_text(err));
		metric_fail(call, err, &e);
		return;
	}
	store_write_free(write);
	call->write = NULL;
	call->api->metadata_writes--;
	if (call->request)
		metric_describe(call);
	else
		metric_free(call);
}

static void metric_answer(struct metric_call *call)
{
	const struct catalog_describe *describe = &call->describe;
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, ANSWER_MAX_BYTES);
	json_write_object_begin(json);
	json_put_string(json, "tenant", describe->tenant);
	json_put_string(json, "metricName", describe->metric);
	write_info(json, describe);
	json_write_object_end(json);
	json_reply_send(&reply, call->request);
	metric_free(call);
}

static void metric_described(struct catalog_describe *describe, int err)
{
	struct metric_call *call = describe->owner;
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
		if (!err)
			return;
		errbuf_set(&e, err, "the store takes no writes now: %s", err_text(err));
	}
	metric_fail(call, err, &e);
}

static int say_member(struct metric_call *call, const struct json *member, struct errbuf *e)
{
	bool text = member->type == JSON_T_STRING;
	for (int i = 0; i < CATALOG_SAYINGS; i++) {
		if (!slice_equal(member->key, slice_of(catalog_saying_name(i))))
			continue;
		if (!text && member->type != JSON_T_NULL)
			return errbuf_set(e, ERR_INVALID, "%s is a text, or null",
					  catalog_saying_name(i));
		return catalog_say(call->api->store, call->write, call->describe.tenant,
				   call->describe.metric, i, text ? member->text : SLICE(""), e);
	}
	return errbuf_set(e, ERR_INVALID,
			  "\"" SHOWN "\" cannot be set; kind, unit and description can",
			  SHOWN_OF(member->key));
}

static int read_said(struct metric_call *call, struct errbuf *e)
{
	struct json *root;
	int err = json_parse(buf_slice(&call->body), &call->arena, &root, e);
	if (!err && (root->type != JSON_T_OBJECT || !root->count))
		err = errbuf_set(e, ERR_INVALID,
				 "the body is to be an object with kind, unit or description");
	if (err)
		return err;
	call->write = store_write_new(call->api->store, SAID_MAX_BYTES);
	call->write->executor = loop_executor(call->api->loop);
	call->write->done = metric_written;
	call->write->owner = call;
	call->api->metadata_writes++;
	for (const struct json *member = root->first; member && !err; member = member->next)
		err = say_member(call, member, e);
	return err;
}

static void metric_begin(struct http_request *request, bool says)
{
	static const char *const names[] = {"tenant", "metricName", NULL};
	struct metric_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e;
	call->request = request;
	call->api = api_of(request);
	arena_init(&call->arena, CALL_MAX_BYTES);
	call->body = http_request_take_body(request);
	call->describe = (struct catalog_describe){
		.catalog = call->api->catalog,
		.done = metric_described,
		.owner = call,
		.arena = &call->arena,
	};
	request->owner = call;
	int err = params_check(request, names, &e);
	err = err ? err : params_tenant(request, &call->describe.tenant, &e);
	err = err ? err : params_metric(request, &call->describe.metric, &e);
	err = err || !says ? err : read_said(call, &e);
	if (err)
		metric_fail(call, err, &e);
	else
		metric_describe(call);
}

static void metric_end(struct http_request *request)
{
	metric_begin(request, false);
}

static void metric_put_end(struct http_request *request)
{
	metric_begin(request, true);
}

const struct http_handler metadata_tenants = {.end = tenants_end, .abort = aborted};
const struct http_handler metadata_metric_names = {.end = metric_names_end, .abort = aborted};
const struct http_handler metadata_tag_keys = {.end = tag_keys_end, .abort = aborted};
const struct http_handler metadata_tag_values = {.end = tag_values_end, .abort = aborted};
const struct http_handler metadata_series = {.end = series_end, .abort = aborted};
const struct http_handler metadata_metric = {.end = metric_end, .abort = metric_aborted};
const struct http_handler metadata_metric_put = {.end = metric_put_end, .abort = metric_aborted};
