/* /api/suggest, /api/aggregators, /api/config/filters, /api/version: what can be written into a
 * query.
 *
 * Metrics of a tenant are one list of the catalog. Tag keys and values belong to metrics there, so
 * those of a tenant are put together: of one metric after the other, in the order of names, the
 * first `max` are kept. */
#include "api/call.h"
#include "api/json_reply.h"
#include "api/metrics/device_names.h"
#include "api/opentsdb/opentsdb.h"
#include "api/params.h"
#include "catalog/catalog.h"
#include "wire/number.h"

enum {
	MAX_PRESET = 25,
	MAX_MAX = 10000,
	METRICS_MAX = 1000, /* whose tags are looked through */
	DEVICES_MAX = 100000,
	KEYS_MAX = 10000, /* of one metric, more than it may have in practice */
	CALL_MAX_BYTES = 64 << 20,
	ANSWER_MAX_BYTES = 16 << 20,
};

/* ---- Constants ----------------------------------------------------------------------------- */

static void aggregators_end(struct http_request *request)
{
	if (params_none(request))
		http_reply(request, 200, "application/json",
			   SLICE("[\"avg\",\"count\",\"max\",\"mimmax\",\"mimmin\",\"min\","
				 "\"none\",\"sum\",\"zimsum\"]"));
}

static const struct {
	const char *type, *filter, *description;
} filters[] = {
	{"literal_or", "web01|web02",
	 "The tag has one of these values; `|` stands between them. Upper and lower case differ."},
	{"not_literal_or", "web01|web02",
	 "The tag has none of these values, or the series has no such tag."},
	{"regexp", "^web0[12]$",
	 "The expression is found in the tag's value; ^ and $ stand for its ends."},
	{"wildcard", "web*.example.net",
	 "The tag's value is this text, where each `*` stands for any characters, even none."},
};

static void write_filter(struct json_writer *writer, size_t i)
{
	struct buf examples;
	buf_init(&examples, 1024);
	buf_printf(&examples,
		   "host=%s(%s) {\"type\":\"%s\",\"tagk\":\"host\",\"filter\":\"%s\",\"groupBy\":"
		   "false}",
		   filters[i].type, filters[i].filter, filters[i].type, filters[i].filter);
	json_write_key(writer, filters[i].type);
	json_write_object_begin(writer);
	json_put_string(writer, "examples", buf_slice(&examples));
	json_put_text(writer, "description", filters[i].description);
	json_write_object_end(writer);
	buf_release(&examples);
}

static void filters_end(struct http_request *request)
{
	struct json_reply reply;
	if (!params_none(request))
		return;
	struct json_writer *json = json_reply_begin(&reply, ANSWER_MAX_BYTES);
	json_write_object_begin(json);
	for (size_t i = 0; i < ARRAY_LEN(filters); i++)
		write_filter(json, i);
	json_write_object_end(json);
	json_reply_send(&reply, request);
}

/* The version of OpenTSDB whose requests are understood; `full_revision` says which server this is.
 */
#define OPENTSDB_VERSION "2.4.0"

static void version_end(struct http_request *request)
{
	if (params_none(request))
		http_reply(request, 200, "application/json",
			   SLICE("{\"version\":\"" OPENTSDB_VERSION
				 "\",\"short_revision\":\"" GRANARY_VERSION
				 "\",\"full_revision\":\"granary-" GRANARY_VERSION
				 "\",\"repo_status\":\"MINT\",\"repo\":\"granary\","
				 "\"user\":\"granary\",\"host\":\"localhost\"}"));
}

/* ---- One request --------------------------------------------------------------------------- */

struct suggest_call {
	struct api_call call;
	struct arena list_arena;
	const struct json *asked; /* NULL: the question stands in the address */
	enum catalog_listing what;
	struct slice tenant, prefix;
	size_t max;
	bool listing;

	struct catalog_list list;
	struct device_names names;
	/* Of a tenant's tags: its metrics, the keys of one of them, and what was found so far. */
	struct slice *metrics, *keys, *found;
	size_t metric_count, metric, key_count, key, found_count;
};

static const struct api_call_kind suggest_kind;

static struct suggest_call *suggest_call_of(struct api_call *call)
{
	ASSERT(call->kind == &suggest_kind);
	return CONTAINER_OF(call, struct suggest_call, call);
}

static void suggest_ended(struct api_call *base)
{
	struct suggest_call *call = suggest_call_of(base);
	if (call->listing)
		catalog_list_cancel(&call->list);
}

static void suggest_release(struct api_call *base)
{
	struct suggest_call *call = suggest_call_of(base);
	device_names_release(&call->names);
	arena_release(&call->list_arena);
}

static const struct api_call_kind suggest_kind = {.arena_max_bytes = CALL_MAX_BYTES,
						  .out_max_bytes = ANSWER_MAX_BYTES,
						  .ended = suggest_ended,
						  .release = suggest_release};

static void suggest_reply(struct suggest_call *call, const struct slice *names, size_t count)
{
	struct json_writer *json = &call->call.json;
	json_write_array_begin(json);
	for (size_t i = 0; i < count; i++)
		json_write_string(json, names[i]);
	json_write_array_end(json);
	api_call_end(&call->call);
}

/* ---- Tags of a tenant ---------------------------------------------------------------------- */

static void suggest_listed(struct catalog_list *list, int err);

static void list_names(struct suggest_call *call, enum catalog_listing what, struct slice prefix,
		       size_t limit, struct arena *arena)
{
	struct slice metric = {NULL, 0}, key = {NULL, 0};
	ASSERT(!call->listing);
	if (what != CATALOG_METRIC_NAMES)
		metric = call->metrics[call->metric];
	if (what == CATALOG_TAG_VALUES)
		key = call->keys[call->key];
	call->list = (struct catalog_list){
		.catalog = call->call.api->catalog,
		.what = what,
		.tenant = call->tenant,
		.metric = metric,
		.tag_key = key,
		.prefix = prefix,
		.limit = limit,
		.done = suggest_listed,
		.owner = call,
		.arena = arena,
	};
	call->listing = true;
	catalog_list_start(&call->list);
}

/* Both are ascending; of equal names one is kept, and of all the first `max`. */
static int add_found(struct suggest_call *call, const struct slice *names, size_t count)
{
	size_t room = call->found_count + count, kept = 0, a = 0, b = 0;
	struct slice *both = mem_alloc_array(room + 1, sizeof(*both));
	int err = 0;
	while ((a < call->found_count || b < count) && kept < call->max && !err) {
		int order = a == call->found_count ? 1
			    : b == count           ? -1
						   : slice_compare(call->found[a], names[b]);
		if (order <= 0)
			both[kept] = call->found[a++];
		else
			both[kept] = arena_copy(&call->call.arena, names[b]);
		b += order >= 0;
		err = both[kept++].data ? 0 : ERR_LIMIT;
	}
	if (a < call->found_count || b < count)
		call->call.cut = "limit";
	ASSERT(kept <= call->max);
	memcpy(call->found, both, kept * sizeof(*both));
	call->found_count = kept;
	mem_free(both);
	return err;
}

/* Values that stand for devices which may be called otherwise now. */
static bool are_devices(const struct suggest_call *call)
{
	return call->names.inventory && slice_equal(call->list.tag_key, SLICE("device"));
}

/* Of devices all are asked for: what one is called may come before or after what it is stored
 * under. */
static void list_values(struct suggest_call *call)
{
	bool devices = call->names.inventory && slice_equal(call->keys[call->key], SLICE("device"));
	list_names(call, CATALOG_TAG_VALUES, devices ? SLICE("") : call->prefix,
		   devices ? DEVICES_MAX : call->max, &call->list_arena);
}

/* The next list of one metric, or the answer. */
static void suggest_go_on(struct suggest_call *call)
{
	arena_reset(&call->list_arena);
	if (call->what == CATALOG_TAG_VALUES && call->key < call->key_count) {
		list_values(call);
		return;
	}
	if (call->keys) { /* all of this metric have been asked for */
		call->keys = NULL;
		call->metric++;
	}
	struct errbuf e;
	int err = api_call_check_time(&call->call, &e);
	if (call->metric == call->metric_count)
		suggest_reply(call, call->found, call->found_count);
	else if (err)
		api_call_fail_with(&call->call, err, e.text);
	else if (call->what == CATALOG_TAG_VALUES)
		list_names(call, CATALOG_TAG_KEYS, SLICE(""), KEYS_MAX, &call->call.arena);
	else
		list_names(call, CATALOG_TAG_KEYS, call->prefix, call->max, &call->list_arena);
}

static int take_metrics(struct suggest_call *call)
{
	call->metrics = call->list.names;
	call->metric_count = call->list.count;
	if (call->list.cut)
		call->call.cut = "metrics";
	call->found = arena_alloc(&call->call.arena, call->max * sizeof(*call->found));
	return call->found ? 0 : ERR_LIMIT;
}

static int suggest_take_list(struct suggest_call *call)
{
	struct catalog_list *list = &call->list;
	if (list->what == CATALOG_METRIC_NAMES)
		return take_metrics(call);
	if (list->what != call->what) {
		call->keys = list->names;
		call->key_count = list->count;
		call->key = 0;
		return 0;
	}
	call->key++;
	call->metric += call->what == CATALOG_TAG_KEYS;
	if (list->cut)
		call->call.cut = "limit";
	int err = are_devices(call)
			  ? device_names_list(&call->names, call->prefix, &call->list_arena,
					      list->names, &list->count)
			  : 0;
	return err ? err : add_found(call, list->names, list->count);
}

static void suggest_listed(struct catalog_list *list, int err)
{
	struct suggest_call *call = suggest_call_of(api_call_from(list->owner));
	ASSERT(call->listing);
	call->listing = false;
	if (err) {
		struct errbuf e = list->error;
		api_call_fail_with(&call->call, err, e.text);
		return;
	}
	if (call->what == CATALOG_METRIC_NAMES) {
		call->call.cut = list->cut ? "limit" : NULL;
		suggest_reply(call, list->names, list->count);
		return;
	}
	if (suggest_take_list(call))
		api_call_fail_with(&call->call, ERR_LIMIT, "the answer is too long; ask for less");
	else
		suggest_go_on(call);
}

/* ---- The request --------------------------------------------------------------------------- */

static const char *const asked_names[] = {"type", "q", "max", NULL};

/* A member of the body, or a parameter; numbers as they are written. */
static struct slice asked(const struct suggest_call *call, const char *name)
{
	const struct json *member = call->asked ? json_member(call->asked, name) : NULL;
	return call->asked ? member ? member->text : (struct slice){NULL, 0}
			   : http_param(call->call.request, name);
}

static int suggest_check_member(const struct json *member, struct errbuf *e)
{
	for (const char *const *name = asked_names; *name; name++) {
		if (!slice_equal(member->key, slice_of(*name)))
			continue;
		if (member->type == JSON_T_STRING || member->type == JSON_T_NUMBER)
			return 0;
		return errbuf_set(e, ERR_INVALID, "%s is neither a text nor a number", *name);
	}
	return errbuf_set(e, ERR_INVALID, "unknown member \"" SHOWN "\"", SHOWN_OF(member->key));
}

static int suggest_read_body(struct suggest_call *call, struct errbuf *e)
{
	struct json *root;
	int err = json_parse(buf_slice(&call->call.body), &call->call.arena, &root, e);
	if (err)
		return err;
	if (root->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "the body is no object");
	call->asked = root;
	for (const struct json *member = root->first; member && !err; member = member->next)
		err = suggest_check_member(member, e);
	return err;
}

static int suggest_read_type(struct suggest_call *call, struct errbuf *e)
{
	struct slice type = asked(call, "type");
	if (!type.data)
		return errbuf_set(e, ERR_INVALID, "type is missing: metrics, tagk or tagv");
	if (slice_equal(type, SLICE("metrics")))
		call->what = CATALOG_METRIC_NAMES;
	else if (slice_equal(type, SLICE("tagk")))
		call->what = CATALOG_TAG_KEYS;
	else if (slice_equal(type, SLICE("tagv")))
		call->what = CATALOG_TAG_VALUES;
	else
		return errbuf_set(e, ERR_INVALID,
				  "type \"" SHOWN "\" is none of metrics, tagk, tagv",
				  SHOWN_OF(type));
	return 0;
}

static int read_max(struct suggest_call *call, struct errbuf *e)
{
	struct slice text = asked(call, "max");
	uint64_t number = MAX_PRESET;
	if (text.data && (number_parse_u64(text.data, text.data + text.len, &number) || number < 1))
		return errbuf_set(e, ERR_INVALID, "max \"" SHOWN "\" is not a number from 1 on",
				  SHOWN_OF(text));
	call->max = number < MAX_MAX ? (size_t)number : MAX_MAX;
	return 0;
}

#define SUGGEST_TENANT                                                                             \
	"tenant", PARAM_TENANT, offsetof(struct suggest_call, tenant), .help = "Whose names."

const struct param opentsdb_suggest_params[] = {
	{SUGGEST_TENANT},
	{"type", .help = "metrics, tagk or tagv."},
	{"q", .help = "What the names begin with."},
	{"max", .help = "At most so many names; 25 where it is left out."},
	{NULL}};

const struct param opentsdb_suggest_post_params[] = {{SUGGEST_TENANT}, {NULL}};

static int suggest_read_call(struct suggest_call *call, struct errbuf *e)
{
	int err = params_read_route(call->call.request, 0, call, e);
	if (!err && call->call.request->verb == VERB_POST)
		err = suggest_read_body(call, e);
	struct slice q = err ? SLICE("") : asked(call, "q");
	if (!err)
		err = suggest_read_type(call, e);
	if (!err)
		err = read_max(call, e);
	if (!err && q.len > TAG_VALUE_MAX_BYTES)
		err = errbuf_set(e, ERR_INVALID, "q is longer than any name");
	call->prefix = q.data ? q : SLICE("");
	return err;
}

static void suggest_end(struct http_request *request)
{
	struct suggest_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e;
	api_call_init(&call->call, request, &suggest_kind);
	api_call_set_deadline(&call->call);
	arena_init(&call->list_arena, CALL_MAX_BYTES);
	int err = suggest_read_call(call, &e);
	if (!err && call->what == CATALOG_TAG_VALUES)
		device_names_init(&call->names, call->call.api, call->tenant);
	if (err)
		api_call_fail_with(&call->call, err, e.text);
	else if (call->what == CATALOG_METRIC_NAMES)
		list_names(call, CATALOG_METRIC_NAMES, call->prefix, call->max, &call->call.arena);
	else
		list_names(call, CATALOG_METRIC_NAMES, SLICE(""), METRICS_MAX, &call->call.arena);
}

const struct http_handler opentsdb_aggregators = {.end = aggregators_end};
const struct http_handler opentsdb_filters = {.end = filters_end};
const struct http_handler opentsdb_version = {.end = version_end};
const struct http_handler opentsdb_suggest = API_CALL_HANDLER(suggest_end);
