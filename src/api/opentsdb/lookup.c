/* GET /api/search/lookup?m=cpu_idle{host=*,*=linux}&limit=25: which series a metric has. */
#include "api/call.h"
#include "api/metrics/device_names.h"
#include "api/opentsdb/opentsdb.h"
#include "api/params.h"
#include "catalog/selector.h"

enum {
	LIMIT_PRESET = 25,
	SERIES_MAX = 10000,
	CALL_MAX_BYTES = 64 << 20,
	TAGS_MAX_BYTES = 256 << 10, /* of one series */
	ANSWER_MAX_BYTES = 64 << 20,
};

struct lookup_call {
	struct api_call call;
	int64_t begun_us;
	struct arena tags_arena;
	struct device_names names;
	struct catalog_selector *asked; /* as they were asked for */
	size_t asked_count;
	size_t limit;
	bool finding;
	struct catalog_find find;
};

static const struct api_call_kind lookup_kind;

static struct lookup_call *lookup_call_of(struct api_call *call)
{
	ASSERT(call->kind == &lookup_kind);
	return CONTAINER_OF(call, struct lookup_call, call);
}

static void lookup_ended(struct api_call *base)
{
	struct lookup_call *call = lookup_call_of(base);
	if (call->finding)
		catalog_find_cancel(&call->find);
}

static void lookup_release(struct api_call *base)
{
	struct lookup_call *call = lookup_call_of(base);
	device_names_release(&call->names);
	arena_release(&call->tags_arena);
}

static const struct api_call_kind lookup_kind = {.arena_max_bytes = CALL_MAX_BYTES,
						 .out_max_bytes = ANSWER_MAX_BYTES,
						 .ended = lookup_ended,
						 .release = lookup_release};

/* ---- What is meant ------------------------------------------------------------------------- */

static bool is_any_key(const struct catalog_selector *selector)
{
	return slice_equal(selector->key, SLICE("*"));
}

static bool lookup_has_value(const struct catalog_selector *selector, struct tags tags)
{
	for (size_t i = 0; i < tags.count; i++) {
		if (selector_match(selector, tags.list[i].value))
			return true;
	}
	return false;
}

/* All that was asked, of the tags as they are said; what has a key was looked up, too. */
static bool is_meant(const struct lookup_call *call, struct tags tags)
{
	for (size_t i = 0; i < call->asked_count; i++) {
		const struct catalog_selector *selector = &call->asked[i];
		struct slice value = tags_find(tags, selector->key);
		bool meant = is_any_key(selector) ? lookup_has_value(selector, tags)
						  : value.data && selector_match(selector, value);
		if (!meant)
			return false;
	}
	return true;
}

static int read_selectors(struct lookup_call *call, struct slice text, struct errbuf *e)
{
	size_t room = CATALOG_SELECTORS_MAX * sizeof(*call->asked);
	struct catalog_selector *list = arena_alloc(&call->call.arena, room);
	call->asked = arena_alloc(&call->call.arena, room);
	if (!list || !call->asked)
		return errbuf_set(e, ERR_LIMIT, "the tags take too much room");
	int err = text.len ? catalog_selectors_parse(text, &call->call.arena, call->asked,
						     &call->asked_count, e)
			   : 0;
	if (err)
		return errbuf_prefix(e, err, "m");
	for (size_t i = 0; i < call->asked_count; i++) {
		if (!is_any_key(&call->asked[i]))
			list[call->find.selector_count++] = call->asked[i];
	}
	call->find.selectors = list;
	return 0;
}

/* `metric` or `metric{k=v,...}`. */
static int read_m(struct lookup_call *call, struct errbuf *e)
{
	struct slice m = http_param(call->call.request, "m"), tags = {NULL, 0};
	if (!m.data)
		return errbuf_set(e, ERR_INVALID, "m is missing: a metric, or metric{tag=value}");
	const char *brace = memchr(m.data, '{', m.len);
	if (brace && m.data[m.len - 1] != '}')
		return errbuf_set(e, ERR_INVALID, "m \"" SHOWN "\" does not end with }",
				  SHOWN_OF(m));
	if (brace) {
		tags = (struct slice){brace + 1, (size_t)(m.data + m.len - 2 - brace)};
		m.len = (size_t)(brace - m.data);
	}
	if (!m.len)
		return errbuf_set(e, ERR_INVALID, "m names no metric");
	int err = metric_check(m, e);
	call->find.metric = m;
	return err ? errbuf_prefix(e, err, "m") : read_selectors(call, tags, e);
}

const struct param opentsdb_lookup_params[] = {
	{"tenant", PARAM_TENANT, offsetof(struct lookup_call, find.tenant),
	 .help = "Whose series."},
	{"limit", PARAM_NUMBER, offsetof(struct lookup_call, limit), 1, UINT64_MAX,
	 .help = "At most so many series; 25 where it is left out, and never more than 10000."},
	{"m", .help = "A metric, or metric{tag=value}."},
	{"use_meta"},
	{"useMeta"},
	{NULL}};

static int lookup_read_call(struct lookup_call *call, struct errbuf *e)
{
	bool strict;
	call->limit = LIMIT_PRESET;
	int err = params_read_route(call->call.request, 0, call, e);
	if (call->limit > SERIES_MAX)
		call->limit = SERIES_MAX;
	if (!err)
		err = read_m(call, e);
	if (err)
		return err;
	device_names_init(&call->names, call->call.api, call->find.tenant);
	err = device_names_select(&call->names, call->find.selectors, call->find.selector_count,
				  &call->call.arena, &strict);
	return err ? errbuf_set(e, err, "too many devices were renamed") : 0;
}

/* ---- The answer ---------------------------------------------------------------------------- */

static void write_pattern(struct buf *text, const struct catalog_pattern *pattern)
{
	for (size_t i = 0; i < pattern->piece_count; i++) {
		if (i)
			buf_append_char(text, '*');
		buf_append(text, pattern->pieces[i].data, pattern->pieces[i].len);
	}
}

static void write_asked(struct json_writer *writer, const struct lookup_call *call)
{
	struct buf text;
	buf_init(&text, ANSWER_MAX_BYTES);
	json_write_key(writer, "tags");
	json_write_array_begin(writer);
	for (size_t i = 0; i < call->asked_count; i++) {
		const struct catalog_selector *selector = &call->asked[i];
		buf_clear(&text);
		for (size_t v = 0; v < selector->value_count; v++) {
			if (v)
				buf_append_char(&text, '|');
			write_pattern(&text, &selector->values[v]);
		}
		json_write_object_begin(writer);
		json_put_string(writer, "key", selector->key);
		json_put_string(writer, "value", buf_slice(&text));
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
	buf_release(&text);
}

static void write_result(struct json_writer *writer, const struct lookup_call *call,
			 struct tags tags)
{
	json_write_object_begin(writer);
	json_put_string(writer, "metric", call->find.metric);
	json_write_key(writer, "tags");
	json_write_object_begin(writer);
	for (size_t i = 0; i < tags.count; i++) {
		json_write_key_slice(writer, tags.list[i].key);
		json_write_string(writer, tags.list[i].value);
	}
	json_write_object_end(writer);
	json_write_object_end(writer);
}

/* Gives how many series are meant, the first `limit` of which are written. */
static int write_results(struct json_writer *writer, struct lookup_call *call, size_t *total)
{
	const struct catalog_find *find = &call->find;
	*total = 0;
	json_write_key(writer, "results");
	json_write_array_begin(writer);
	for (size_t i = 0; i < find->count; i++) {
		struct tags tags;
		arena_reset(&call->tags_arena);
		struct slice text = device_names_tags(&call->names, find->series[i].tags_text,
						      &call->tags_arena);
		if (tags_decode(text, &call->tags_arena, &tags))
			return ERR_DAMAGED;
		if (!is_meant(call, tags))
			continue;
		if (++*total <= call->limit)
			write_result(writer, call, tags);
	}
	json_write_array_end(writer);
	return 0;
}

static int64_t lookup_now_us(const struct lookup_call *call)
{
	struct clock *clock = call->call.api->clock;
	return clock->mono_us(clock);
}

static void lookup_answer(struct lookup_call *call)
{
	struct json_writer *writer = &call->call.json;
	size_t total;
	json_write_object_begin(writer);
	json_put_text(writer, "type", "LOOKUP");
	json_put_string(writer, "metric", call->find.metric);
	write_asked(writer, call);
	json_put_u64(writer, "limit", call->limit);
	int err = write_results(writer, call, &total);
	if (err) {
		api_call_fail_with(&call->call, err, "the names of a series could not be read");
		return;
	}
	json_put_i64(writer, "time", (lookup_now_us(call) - call->begun_us) / 1000);
	json_put_i64(writer, "startIndex", 0);
	json_put_u64(writer, "totalResults", total);
	json_write_object_end(writer);
	call->call.cut = total > call->limit ? "limit" : NULL;
	api_call_end(&call->call);
}

static void lookup_found(struct catalog_find *find, int err)
{
	struct lookup_call *call = lookup_call_of(api_call_from(find->owner));
	struct errbuf e = find->error;
	ASSERT(call->finding);
	call->finding = false;
	if (err)
		api_call_fail_with(&call->call, err, e.text);
	else
		lookup_answer(call);
}

static void lookup_end(struct http_request *request)
{
	struct lookup_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e;
	api_call_init(&call->call, request, &lookup_kind);
	call->begun_us = lookup_now_us(call);
	arena_init(&call->tags_arena, TAGS_MAX_BYTES);
	call->find = (struct catalog_find){
		.catalog = api_of(request)->catalog,
		.series_max = SERIES_MAX,
		.done = lookup_found,
		.owner = call,
		.arena = &call->call.arena,
	};
	int err = lookup_read_call(call, &e);
	if (err) {
		api_call_fail_with(&call->call, err, e.text);
		return;
	}
	call->finding = true;
	catalog_find_start(&call->find);
}

const struct http_handler opentsdb_lookup = API_CALL_HANDLER(lookup_end);
