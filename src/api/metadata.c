#include "api/metadata.h"

#include "api/device_names.h"
#include "api/query.h"
#include "api/query_params.h"
#include "api/routes.h"
#include "catalog/catalog.h"
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

/* {"seriesSet":"cpu_idle,host=h-1","tenant":"t-1","metricName":"cpu_idle","tags":{"host":"h-1"},
 *  "kind":"gauge","unit":"%","table":"data_raw","baseFrequencyMs":10000,
 *  "firstSeen":"2020-08-24T15:51:15Z","lastSeen":"2020-08-24T16:34:05Z"}; lastSeen is null where no
 * sample is left, baseFrequencyMs 0 where it is not known. */
static void write_entry(struct json_writer *writer, struct call *call,
			const struct catalog_entry *entry)
{
	const struct catalog_describe *describe = &call->describe;
	const struct catalog_info *info = &describe->info;
	struct slice tags_text =
		device_names_tags(&call->names, entry->series.tags_text, &call->arena);
	json_write_object_begin(writer);
	write_series_set(writer, describe->metric, tags_text);
	json_put_string(writer, "tenant", describe->tenant);
	json_put_string(writer, "metricName", describe->metric);
	write_tags(writer, tags_text);
	json_put_text(writer, "kind", catalog_kind_text(info->kind));
	json_put_string(writer, "unit", info->unit);
	json_put_text(writer, "table", schema[info->home].name);
	json_put_i64(writer, "baseFrequencyMs", info->base_frequency_ms);
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
	static const char *const names[] = {"tenant", "metricName", "tag", NULL};
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

const struct http_handler metadata_tenants = {.end = tenants_end, .abort = aborted};
const struct http_handler metadata_metric_names = {.end = metric_names_end, .abort = aborted};
const struct http_handler metadata_tag_keys = {.end = tag_keys_end, .abort = aborted};
const struct http_handler metadata_tag_values = {.end = tag_values_end, .abort = aborted};
const struct http_handler metadata_series = {.end = series_end, .abort = aborted};
