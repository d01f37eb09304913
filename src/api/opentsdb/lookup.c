/* GET /api/search/lookup?m=cpu_idle{host=*,*=linux}&limit=25: which series a metric has. */
#include "api/metrics/device_names.h"
#include "api/opentsdb/opentsdb.h"
#include "api/metrics/query.h"
#include "api/metrics/query_params.h"
#include "api/routes.h"
#include "catalog/selector.h"
#include "wire/json.h"
#include "wire/number.h"

enum {
	LIMIT_PRESET = 25,
	SERIES_MAX = 10000,
	CALL_MAX_BYTES = 64 << 20,
	TAGS_MAX_BYTES = 256 << 10, /* of one series */
	ANSWER_MAX_BYTES = 64 << 20,
};

struct call {
	struct http_request *request;
	struct clock *clock;
	int64_t begun_us;
	struct arena arena, tags_arena;
	struct device_names names;
	struct catalog_selector *asked; /* as they were asked for */
	size_t asked_count;
	size_t limit;
	bool finding;
	struct catalog_find find;
};

static void call_free(struct call *call)
{
	if (call->finding)
		catalog_find_cancel(&call->find);
	device_names_release(&call->names);
	arena_release(&call->tags_arena);
	arena_release(&call->arena);
	mem_free(call);
}

static void aborted(struct http_request *request, UNUSED int err)
{
	if (request->owner)
		call_free(request->owner);
}

static void fail(struct call *call, int err, const char *sentence)
{
	http_reply_error(call->request, query_status(err), "%s", sentence);
	call_free(call);
}

/* ---- What is meant ------------------------------------------------------------------------- */

static bool is_any_key(const struct catalog_selector *selector)
{
	return slice_equal(selector->key, SLICE("*"));
}

static bool has_value(const struct catalog_selector *selector, struct tags tags)
{
	for (size_t i = 0; i < tags.count; i++) {
		if (selector_match(selector, tags.list[i].value))
			return true;
	}
	return false;
}

/* All that was asked, of the tags as they are said; what has a key was looked up, too. */
static bool is_meant(const struct call *call, struct tags tags)
{
	for (size_t i = 0; i < call->asked_count; i++) {
		const struct catalog_selector *selector = &call->asked[i];
		struct slice value = tags_find(tags, selector->key);
		bool meant = is_any_key(selector) ? has_value(selector, tags)
						  : value.data && selector_match(selector, value);
		if (!meant)
			return false;
	}
	return true;
}

static int read_selectors(struct call *call, struct slice text, struct errbuf *e)
{
	size_t room = CATALOG_SELECTORS_MAX * sizeof(*call->asked);
	struct catalog_selector *list = arena_alloc(&call->arena, room);
	call->asked = arena_alloc(&call->arena, room);
	if (!list || !call->asked)
		return errbuf_set(e, ERR_LIMIT, "the tags take too much room");
	int err = text.len ? catalog_selectors_parse(text, &call->arena, call->asked,
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
static int read_m(struct call *call, struct errbuf *e)
{
	struct slice m = http_param(call->request, "m"), tags = {NULL, 0};
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

/* A client that asks for more than the bound gets as many as the bound. */
static int read_limit(struct call *call, struct errbuf *e)
{
	struct slice text = http_param(call->request, "limit");
	uint64_t number = LIMIT_PRESET;
	if (text.data && (number_parse_u64(text.data, text.data + text.len, &number) || number < 1))
		return errbuf_set(e, ERR_INVALID, "limit \"" SHOWN "\" is not a number from 1 on",
				  SHOWN_OF(text));
	call->limit = number < SERIES_MAX ? (size_t)number : SERIES_MAX;
	return 0;
}

static int read_call(struct call *call, struct errbuf *e)
{
	static const char *const names[] = {"m", "limit", "use_meta", "useMeta", "tenant", NULL};
	bool strict;
	int err = params_check(call->request, names, e);
	if (!err)
		err = params_tenant(call->request, &call->find.tenant, e);
	if (!err)
		err = read_limit(call, e);
	if (!err)
		err = read_m(call, e);
	if (err)
		return err;
	device_names_init(&call->names, api_of(call->request), call->find.tenant);
	err = device_names_select(&call->names, (struct catalog_selector *)call->find.selectors,
				  call->find.selector_count, &call->arena, &strict);
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

static void write_asked(struct json_writer *writer, const struct call *call)
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

static void write_result(struct json_writer *writer, const struct call *call, struct tags tags)
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
static int write_results(struct json_writer *writer, struct call *call, size_t *total)
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

static int write_answer(struct call *call, struct buf *body, size_t *total)
{
	struct json_writer writer;
	json_writer_init(&writer, body);
	json_write_object_begin(&writer);
	json_put_text(&writer, "type", "LOOKUP");
	json_put_string(&writer, "metric", call->find.metric);
	write_asked(&writer, call);
	json_put_u64(&writer, "limit", call->limit);
	int err = write_results(&writer, call, total);
	if (err)
		return err;
	json_put_i64(&writer, "time", (call->clock->mono_us(call->clock) - call->begun_us) / 1000);
	json_put_i64(&writer, "startIndex", 0);
	json_put_u64(&writer, "totalResults", *total);
	json_write_object_end(&writer);
	return body->failed ? ERR_LIMIT : 0;
}

static void found(struct catalog_find *find, int err)
{
	struct call *call = find->owner;
	struct errbuf e = find->error;
	struct buf body;
	size_t total;
	call->finding = false;
	buf_init(&body, ANSWER_MAX_BYTES);
	if (!err && (err = write_answer(call, &body, &total)) != 0)
		errbuf_set(&e, err, "%s",
			   err == ERR_LIMIT ? "the answer is too long; ask for less"
					    : "the names of a series could not be read");
	if (err) {
		fail(call, err, e.text);
	} else {
		if (total > call->limit)
			http_reply_header(call->request, "X-Granary-Cut", "limit");
		http_reply(call->request, 200, "application/json", buf_slice(&body));
		call_free(call);
	}
	buf_release(&body);
}

static void lookup_end(struct http_request *request)
{
	struct call *call = mem_zalloc(sizeof(*call));
	struct errbuf e;
	call->request = request;
	call->clock = api_of(request)->clock;
	call->begun_us = call->clock->mono_us(call->clock);
	arena_init(&call->arena, CALL_MAX_BYTES);
	arena_init(&call->tags_arena, TAGS_MAX_BYTES);
	call->find = (struct catalog_find){
		.catalog = api_of(request)->catalog,
		.series_max = SERIES_MAX,
		.done = found,
		.owner = call,
		.arena = &call->arena,
	};
	request->owner = call;
	int err = read_call(call, &e);
	if (err) {
		fail(call, err, e.text);
		return;
	}
	call->finding = true;
	catalog_find_start(&call->find);
}

const struct http_handler opentsdb_lookup = {.end = lookup_end, .abort = aborted};
