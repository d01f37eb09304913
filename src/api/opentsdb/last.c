/* /api/query/last: the newest value of each series, as OpenTSDB has it:
 *
 *     {"queries":[{"metric":"cpu","tags":{"host":"a"}}],"resolveNames":true,"backScan":24}
 *
 * One query runs after the other; the answer leaves when the last has ended. Names are always said,
 * since series have no ids that could stand for them. */
#include "api/call.h"
#include "api/metrics/device_names.h"
#include "api/metrics/interface_alias.h"
#include "api/opentsdb/filter.h"
#include "api/opentsdb/opentsdb.h"
#include "api/opentsdb/uri.h"
#include "api/params.h"
#include "base/stats.h"
#include "conf/conf.h"
#include "query/plan.h"
#include "wire/number.h"

enum {
	QUERIES_MAX = 32,
	POINTS_EACH = 1024, /* of one chunk */
	TREE_BYTES = 64 << 20,
	TAGS_MAX_BYTES = 256 << 10, /* of one series */
	ANSWER_MAX_BYTES = 64 << 20,
	VALUE_MAX_BYTES = 64,
};

#define HOUR_MS INT64_C(3600000)

struct last_call {
	struct api_call call;
	struct arena tags_arena;
	struct slice tenant;
	struct buf uri; /* the body that the address stands for */
	int64_t start_ms, end_ms;
	const struct json *asked; /* the query at work, in its list */
	struct query *query;
	struct opentsdb_filters filters;
	struct device_names names;
	bool held; /* a thread of the pool looks at filters and names */
	uint64_t points;
	size_t charged_bytes; /* of `out` */
};

static void last_end_query(struct last_call *call)
{
	query_free(call->query);
	if (!call->held)
		device_names_release(&call->names);
	call->query = NULL;
}

static const struct api_call_kind last_kind;

static struct last_call *last_call_of(struct api_call *call)
{
	ASSERT(call->kind == &last_kind);
	return CONTAINER_OF(call, struct last_call, call);
}

static void last_ended(struct api_call *base)
{
	last_end_query(last_call_of(base));
}

static void last_release(struct api_call *base)
{
	struct last_call *call = last_call_of(base);
	last_end_query(call);
	arena_release(&call->tags_arena);
	buf_release(&call->uri);
}

/* Names and filters point into the body, or what the address stands for. */
static const struct api_call_kind last_kind = {.arena_max_bytes = TREE_BYTES,
					       .out_max_bytes = ANSWER_MAX_BYTES,
					       .ended = last_ended,
					       .release = last_release};

static void last_fail(struct last_call *call, int err, const struct errbuf *error)
{
	struct errbuf e = *error; /* it may be the query's */
	stat_add(STAT_queries_refused, 1);
	api_call_fail_with(&call->call, err, e.text);
}

/* ---- The answer ------------------------------------------------------------------------------ */

/* A value is a text there. */
static void last_write_value(struct json_writer *writer, struct value value)
{
	char text[VALUE_MAX_BYTES];
	json_put_string(writer, "value", (struct slice){text, number_print(text, value)});
}

static int last_write_point(struct last_call *call, const struct query_chunk *chunk, size_t i)
{
	struct json_writer *writer = &call->call.json;
	size_t count;
	struct tags tags;
	arena_reset(&call->tags_arena);
	const struct catalog_series *series = query_series(call->query, &count);
	struct slice text = device_names_tags(&call->names, series[chunk->series_index].tags_text,
					      &call->tags_arena);
	if (tags_decode(text, &call->tags_arena, &tags))
		return ERR_DAMAGED;
	json_write_object_begin(writer);
	json_put_string(writer, "metric", call->query->spec.metric);
	json_put_i64(writer, "timestamp", chunk->ts_ms[i]);
	last_write_value(writer, (struct value){chunk->bits[i], (enum value_type)chunk->types[i]});
	json_write_key(writer, "tags");
	json_write_object_begin(writer);
	for (size_t t = 0; t < tags.count; t++) {
		json_write_key_slice(writer, tags.list[t].key);
		json_write_string(writer, tags.list[t].value);
	}
	json_write_object_end(writer);
	json_write_object_end(writer);
	return 0;
}

/* Against the server's bound. */
static int charge_answer(struct last_call *call)
{
	size_t more = call->call.out.len - call->charged_bytes;
	int err = http_request_charge(call->call.request, more);
	if (!err)
		call->charged_bytes += more;
	return err;
}

static int last_take_points(struct last_call *call, struct errbuf *e)
{
	struct query_chunk chunk;
	while (query_next(call->query, POINTS_EACH, &chunk)) {
		for (size_t i = 0; i < chunk.count; i++) {
			if (last_write_point(call, &chunk, i))
				return errbuf_set(e, ERR_DAMAGED,
						  "the names of a series could not be read");
		}
		if (call->call.out.failed)
			return errbuf_set(e, ERR_LIMIT, "the answer is too long; ask for less");
		if (charge_answer(call))
			return errbuf_set(e, ERR_BUSY, "the memory for answers is in use");
	}
	*e = call->query->error;
	return call->query->ended ? call->query->err : 0;
}

/* ---- One query ------------------------------------------------------------------------------- */

static void last_ready(void *owner);

static bool last_keep(void *owner, struct slice tags_text)
{
	struct last_call *call = last_call_of(api_call_from(owner));
	return opentsdb_filters_keep(&call->filters, tags_text);
}

static void last_hold(void *owner, bool held)
{
	struct last_call *call = last_call_of(api_call_from(owner));
	ASSERT(call->held != held);
	call->held = held;
	call->call.held += held;
	bool UNUSED goes_on = held || api_call_settle(&call->call);
}

static int last_fill_spec(struct last_call *call, struct errbuf *e)
{
	struct query_spec *spec = &call->query->spec;
	struct opentsdb_filters *filters = &call->filters;
	spec->tenant = call->tenant;
	spec->fn = FN_LAST;
	spec->start_ms = call->start_ms;
	spec->end_ms = call->end_ms;
	spec->points_spent = call->points;
	if (json_member(call->asked, "tsuids"))
		return errbuf_set(
			e, ERR_INVALID,
			"tsuids is not supported: series have no such ids, a metric and its "
			"tags name them");
	int err = json_get_text(call->asked, "metric", &spec->metric, e);
	if (!err)
		err = metric_check(spec->metric, e);
	if (!err)
		err = opentsdb_filters_read(filters, NULL, json_member(call->asked, "tags"),
					    &call->call.arena, e);
	if (err)
		return err == ERR_NOT_FOUND ? ERR_INVALID : err;
	spec->selectors = filters->selectors;
	spec->selector_count = filters->selector_count;
	device_names_init(&call->names, call->call.api, call->tenant);
	err = device_names_select(&call->names, filters->selectors, filters->selector_count,
				  &call->call.arena, &filters->strict);
	filters->names = call->names.inventory ? &call->names : NULL;
	spec->filter = opentsdb_filters_must_keep(filters) ? last_keep : NULL;
	spec->filter_owner = call;
	spec->filter_hold = last_hold;
	if (alias_is_asked(spec))
		return errbuf_set(e, ERR_INVALID, "counters have no tag alias");
	return err ? errbuf_set(e, err, "too many devices were renamed") : 0;
}

static int last_start_query(struct last_call *call, struct errbuf *e)
{
	ASSERT(call->asked && !call->query);
	stat_add(STAT_queries, 1);
	call->filters = (struct opentsdb_filters){.work = call->filters.work};
	call->query = query_new(call->call.api->queries, last_ready, call);
	int err = last_fill_spec(call, e);
	if (err)
		return errbuf_prefix(e, err, "queries");
	err = query_start(call->query);
	*e = call->query->error;
	return err;
}

static void last_finish(struct last_call *call)
{
	stat_add(STAT_query_points, (int64_t)call->points);
	json_write_array_end(&call->call.json);
	api_call_end(&call->call);
}

static void last_ready(void *owner)
{
	struct last_call *call = last_call_of(api_call_from(owner));
	struct errbuf e;
	int err = last_take_points(call, &e);
	if (!err && call->filters.work > OPENTSDB_FILTER_WORK_MAX)
		err = errbuf_set(&e, ERR_LIMIT, "the filters take too long over so many series");
	if (!err && !call->query->ended)
		return;
	if (!err && call->query->cut)
		err = errbuf_set(&e, ERR_LIMIT, "the queries reached their limit of %s (%s)",
				 call->query->cut_why, call->query->cut_option);
	if (!err) {
		call->points += call->query->points;
		last_end_query(call);
		call->asked = call->asked->next;
		if (!call->asked) {
			last_finish(call);
			return;
		}
		err = last_start_query(call, &e);
	}
	if (err)
		last_fail(call, err, &e);
}

/* ---- The request ----------------------------------------------------------------------------- */

/* Without backScan since ever, or as long ago as a query may ask. */
static int last_read_times(struct last_call *call, const struct json *root, struct errbuf *e)
{
	struct api *api = call->call.api;
	const struct json *scan = json_member(root, "backScan");
	int64_t range_max_ms = api->conf ? api->conf->query_range_max_ms : 0, hours = 0;
	call->end_ms = clock_wall_ms(api->clock) + 1;
	call->start_ms = range_max_ms ? call->end_ms - range_max_ms : -PLAN_TIME_MAX_MS;
	int err = scan ? json_get_i64(root, "backScan", &hours, e) : 0;
	if (!err && (hours < 0 || hours > PLAN_TIME_MAX_MS / HOUR_MS))
		err = errbuf_set(e, ERR_INVALID, "backScan is not a number of hours");
	if (!err && hours)
		call->start_ms = larger_of(call->start_ms, call->end_ms - 1 - hours * HOUR_MS);
	return err;
}

static int last_read_body(struct last_call *call, struct slice text, struct errbuf *e)
{
	static const char *const names[] = {"queries", "resolveNames", "backScan", NULL};
	const struct json *list;
	struct json *root;
	int err = json_parse(text, &call->call.arena, &root, e);
	if (err)
		return err;
	if (root->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "the body is no object");
	err = json_check_members(root, names, e);
	if (err)
		return err;
	err = json_get_array(root, "queries", &list, e);
	if (err)
		return ERR_INVALID;
	if (list->count < 1 || list->count > QUERIES_MAX)
		return errbuf_set(e, ERR_INVALID, "%zu queries of 1 to %d", list->count,
				  QUERIES_MAX);
	call->asked = list->first;
	return last_read_times(call, root, e);
}

#define LAST_TENANT                                                                                \
	"tenant", PARAM_TENANT, offsetof(struct last_call, tenant), .help = "Whose series."

const struct param opentsdb_last_params[] = {
	{LAST_TENANT},
	{"timeseries", .repeated = true, .help = "A metric, or metric{tag=value}."},
	{"resolve"},
	{"back_scan", .help = "Only values of so many hours before now."},
	{NULL}};

const struct param opentsdb_last_post_params[] = {{LAST_TENANT}, {NULL}};

static int last_read_request(struct last_call *call, struct errbuf *e)
{
	const struct http_request *request = call->call.request;
	bool has_body = request->verb == VERB_POST;
	int err = has_body ? 0 : opentsdb_uri_check(request, e);
	err = err ? err : params_read_route(request, 0, call, e);
	if (!err && !has_body)
		err = opentsdb_uri_last(request, &call->uri, e);
	return err ? err
		   : last_read_body(call, buf_slice(has_body ? &call->call.body : &call->uri), e);
}

static void last_end(struct http_request *request)
{
	struct last_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e;
	api_call_init(&call->call, request, &last_kind);
	arena_init(&call->tags_arena, TAGS_MAX_BYTES);
	buf_init(&call->uri, OPENTSDB_URI_MAX_BYTES);
	int err = last_read_request(call, &e);
	if (!err) {
		json_write_array_begin(&call->call.json);
		err = last_start_query(call, &e);
	}
	if (err)
		last_fail(call, err, &e);
}

const struct http_handler opentsdb_last_handler = API_CALL_HANDLER(last_end);
