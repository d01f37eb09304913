/* PUT /hicc/v1/chart/preview/series: a list of series with their data.
 *
 * One series after the other is a query: by its `query`, the parameters of GET /api/query, or by
 * its `url`, which names a row as GET /hicc/v1/metrics/series does; of rows the numbers alone are
 * given. The limits of a query hold for all of them together. */
#include "api/hicc/asked.h"
#include "api/hicc/boards.h"
#include "api/hicc/numbers.h"
#include "api/metrics/interface_alias.h"
#include "api/metrics/query_params.h"
#include "base/stats.h"
#include "board/document.h"
#include "wire/percent.h"
#include "wire/timetext.h"

enum {
	PREVIEW_ARENA_MAX_BYTES = 64 << 20,
	PREVIEW_FLUSH_BYTES = 64 << 10,
	PREVIEW_OUT_MAX_BYTES = 4 << 20, /* what a series says, and a chunk of its data */
	PREVIEW_CHUNK_POINTS = 1024,
	PREVIEW_TURN_POINTS = 8192, /* encoded before other work of the loop gets its turn */
	PREVIEW_PARAMS_MAX = 256,   /* of a `query` */
};

struct preview_call {
	struct api_call call;
	struct hicc_asked asked;
	struct slice only_tenant;  /* of http_request */
	const struct json *series; /* at work; NULL: all are answered */
	size_t place;              /* of it */
	uint64_t points;           /* of those before it */
	struct query *query;       /* its; NULL: it is to be begun */
	bool is_row;               /* by its url */
	struct hicc_numbers numbers;
	size_t written; /* series that its query has found so far; the data of the last is open */
};

static const struct api_call_kind preview_kind;

static struct preview_call *preview_call_of(struct api_call *call)
{
	ASSERT(call->kind == &preview_kind);
	return CONTAINER_OF(call, struct preview_call, call);
}

static void preview_open(struct preview_call *call);

/* Where a part of the answer has left, the series says why there is no more. */
static void preview_fail(struct preview_call *call, int err, const struct errbuf *error)
{
	struct json_writer *json = &call->call.json;
	struct errbuf e = *error;
	errbuf_prefix(&e, err, "series[%zu]", call->place);
	stat_add(STAT_queries_refused, 1);
	if (!call->call.streaming) {
		api_call_fail_with(&call->call, err, e.text);
		return;
	}
	if (call->written)
		json_write_array_end(json);
	else
		preview_open(call);
	json_put_text(json, "error", e.text);
	json_write_object_end(json);
	json_write_array_end(json);
	call->call.cut = "error";
	api_call_end(&call->call);
}

/* ---- By url ---------------------------------------------------------------------------------- */

static int preview_read_url(struct preview_call *call, struct slice url, struct errbuf *e)
{
	static const struct slice start = {"/hicc/v1/metrics/series/", 24};
	struct slice metric = {NULL, 0}, source = {NULL, 0};
	const char *slash = NULL;
	if (slice_starts_with(url, start)) {
		const char *from = url.data + start.len, *end = url.data + url.len;
		const char *ask = memchr(from, '?', (size_t)(end - from));
		end = ask ? ask : end;
		slash = memchr(from, '/', (size_t)(end - from));
		metric = (struct slice){from, slash ? (size_t)(slash - from) : 0};
		source = (struct slice){slash ? slash + 1 : NULL,
					slash ? (size_t)(end - slash - 1) : 0};
	}
	if (!metric.len || !source.len || memchr(source.data, '/', source.len) ||
	    percent_decode(metric, false, &call->call.arena, &metric) ||
	    percent_decode(source, false, &call->call.arena, &source))
		return errbuf_set(
			e, ERR_INVALID,
			"url is not /hicc/v1/metrics/series/METRIC/SOURCE, and there is no "
			"query");
	return hicc_numbers_begin(&call->numbers, metric, source, e);
}

/* ---- By query -------------------------------------------------------------------------------- */

struct preview_params {
	struct http_param list[PREVIEW_PARAMS_MAX];
	size_t count;
};

/* One that has no room makes the list too long. */
static void preview_add_param(struct preview_params *params, struct slice name, struct slice value)
{
	if (params->count < PREVIEW_PARAMS_MAX)
		params->list[params->count] = (struct http_param){name, value};
	params->count++;
}

static void preview_add_time(struct preview_params *params, const char *name, int64_t ms,
			     char to[TIME_PRINT_MAX_BYTES])
{
	preview_add_param(params, slice_of(name), (struct slice){to, time_print(to, ms)});
}

/* As if it had been asked by GET /api/query. */
static int preview_read_query(struct preview_call *call, const struct json *asked, struct errbuf *e)
{
	char start[TIME_PRINT_MAX_BYTES], end[TIME_PRINT_MAX_BYTES];
	const struct api *api = call->call.api;
	struct preview_params params = {.count = 0};
	struct query_question question;
	for (const struct json *one = asked->first; one; one = one->next) {
		const struct json *value = one->type == JSON_T_ARRAY ? one->first : one;
		for (; value; value = one->type == JSON_T_ARRAY ? value->next : NULL)
			preview_add_param(&params, one->key, value->text);
	}
	if (!json_member(asked, "tenant"))
		preview_add_param(&params, SLICE("tenant"), call->asked.tenant);
	preview_add_time(&params, "start", call->asked.start_ms, start);
	preview_add_time(&params, "end", call->asked.end_ms, end);
	if (params.count > PREVIEW_PARAMS_MAX)
		return errbuf_set(e, ERR_INVALID, "query has more than %d parameters",
				  PREVIEW_PARAMS_MAX - 3);
	const struct http_request request = {
		.tenant = call->only_tenant, .params = params.list, .param_count = params.count};
	int err =
		params_query(&request, clock_wall_ms(api->clock), query_granularities(api->queries),
			     &call->query->arena, &question, e);
	call->query->spec = question.spec;
	if (err)
		return errbuf_prefix(e, err, "query");
	if (alias_is_asked(&question.spec))
		return errbuf_set(e, ERR_INVALID, "query: alias is found by GET /api/query only");
	return 0;
}

/* ---- One series ------------------------------------------------------------------------------ */

static void preview_ready(void *owner)
{
	struct preview_call *call = preview_call_of(api_call_from(owner));
	api_call_go_on(&call->call);
}

static int preview_read(struct preview_call *call, struct errbuf *e)
{
	const struct json *query = json_member(call->series, "query");
	const struct json *url = json_member(call->series, "url");
	call->is_row = !query;
	return query ? preview_read_query(call, query, e)
		     : preview_read_url(call, url ? url->text : SLICE(""), e);
}

/* False: the call is over. */
static bool preview_start(struct preview_call *call)
{
	struct errbuf e = {""};
	int err = 0;
	bool is_next_split = call->query;
	query_free(call->query);
	call->query = query_new(call->call.api->queries, preview_ready, call);
	if (!is_next_split)
		err = preview_read(call, &e);
	if (!err && call->is_row)
		call->query->spec = hicc_numbers_spec(&call->numbers, call->asked.tenant,
						      call->asked.start_ms, call->asked.end_ms);
	call->query->spec.points_spent = call->points;
	call->query->spec.deadline_us = call->call.deadline_us;
	stat_add(STAT_queries, 1);
	if (!err && (err = query_start(call->query)) != 0)
		e = call->query->error;
	if (err)
		preview_fail(call, err, &e);
	return !err;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void preview_write_tags(struct preview_call *call, size_t index)
{
	struct json_writer *json = &call->call.json;
	struct tags tags;
	size_t count;
	const struct catalog_series *series = query_series(call->query, &count);
	ASSERT(index < count);
	if (tags_decode(series[index].tags_text, &call->query->arena, &tags))
		return;
	json_write_key(json, "tags");
	json_write_object_begin(json);
	for (size_t i = 0; i < tags.count; i++) {
		json_write_key_slice(json, tags.list[i].key);
		json_write_string(json, tags.list[i].value);
	}
	json_write_object_end(json);
}

/* All that the series says but its data; and the beginning of that. */
static void preview_open(struct preview_call *call)
{
	struct json_writer *json = &call->call.json;
	call->written++;
	json_write_object_begin(json);
	for (const struct json *one = call->series->first; one; one = one->next) {
		if (slice_equal(one->key, SLICE("data")) || slice_equal(one->key, SLICE("tags")) ||
		    slice_equal(one->key, SLICE("error")))
			continue;
		json_write_key_slice(json, one->key);
		json_write_literally(json, one);
	}
}

static void preview_open_data(struct preview_call *call)
{
	json_write_key(&call->call.json, "data");
	json_write_array_begin(&call->call.json);
}

static void preview_close(struct preview_call *call)
{
	json_write_array_end(&call->call.json);
	json_write_object_end(&call->call.json);
}

static void preview_put_chunk(struct preview_call *call, const struct query_chunk *chunk)
{
	int64_t start_ms = call->is_row ? call->asked.start_ms : STORE_TS_MIN;
	if (chunk->first || !call->written) {
		if (call->written)
			preview_close(call);
		preview_open(call);
		if (!call->is_row)
			preview_write_tags(call, chunk->series_index);
		preview_open_data(call);
	}
	for (size_t i = 0; i < chunk->count; i++)
		hicc_numbers_put(&call->call.json, chunk, i, start_ms);
}

/* The query has ended. False: the call is over, or waits for the next one. */
static bool preview_next(struct preview_call *call)
{
	struct query *query = call->query;
	struct errbuf e = query->error;
	if (query->err) {
		preview_fail(call, query->err, &e);
		return false;
	}
	if (call->is_row && hicc_numbers_go_on(&call->numbers, query))
		return preview_start(call);
	if (!call->written) {
		preview_open(call);
		preview_open_data(call);
	}
	preview_close(call);
	stat_add(STAT_query_points, (int64_t)query->points);
	call->points += query->points;
	if (query->cut)
		call->call.cut = query->cut_why;
	query_free(query);
	call->query = NULL;
	call->written = 0;
	call->series = call->series->next;
	call->place++;
	return true;
}

/* Takes and encodes until there is nothing, the client is full, or others want their turn. */
static void preview_advance(struct api_call *base)
{
	struct preview_call *call = preview_call_of(base);
	struct query_chunk chunk;
	struct errbuf e;
	size_t turn = 0;
	if (call->series && api_call_check_time(base, &e)) {
		preview_fail(call, ERR_TIMEOUT, &e);
		return;
	}
	while (call->series) {
		if (!api_call_room(base) || (!call->query && !preview_start(call)))
			return;
		if (query_next(call->query, PREVIEW_CHUNK_POINTS, &chunk)) {
			preview_put_chunk(call, &chunk);
			turn += chunk.count;
		} else if (!call->query->ended || !preview_next(call)) {
			return;
		}
		if (turn >= PREVIEW_TURN_POINTS) {
			api_call_later(base);
			return;
		}
	}
	json_write_array_end(&base->json);
	api_call_end(base);
}

static void preview_ended(struct api_call *base)
{
	struct preview_call *call = preview_call_of(base);
	query_free(call->query);
	call->query = NULL;
}

static void preview_release(struct api_call *base)
{
	hicc_numbers_release(&preview_call_of(base)->numbers);
}

static const struct api_call_kind preview_kind = {.arena_max_bytes = PREVIEW_ARENA_MAX_BYTES,
						  .out_max_bytes = PREVIEW_OUT_MAX_BYTES,
						  .flush_bytes = PREVIEW_FLUSH_BYTES,
						  .ended = preview_ended,
						  .release = preview_release};

/* ---- What is asked --------------------------------------------------------------------------- */

const struct param hicc_preview_params[] = {HICC_TENANT, HICC_START, HICC_END, {NULL}};

static void preview_end(struct http_request *request)
{
	struct preview_call *call = mem_zalloc(sizeof(*call));
	struct json *root = NULL;
	struct errbuf e = {""};
	api_call_init(&call->call, request, &preview_kind);
	api_call_set_deadline(&call->call);
	call->call.advance = preview_advance;
	hicc_numbers_init(&call->numbers);
	int err = hicc_read(request, &call->call, &call->asked, &e);
	if (request->tenant.data)
		call->only_tenant = call->asked.tenant;
	err = err ? err : json_parse(buf_slice(&call->call.body), &call->call.arena, &root, &e);
	err = err ? err : board_series_check(root, &e);
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
		return;
	}
	call->series = root->first;
	json_write_array_begin(&call->call.json);
	preview_advance(&call->call);
}

const struct http_handler hicc_preview = API_CALL_HANDLER(preview_end);
