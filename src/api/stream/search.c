/* GET /api/streams/search: lines of logs, in the order of their times. */
#include "api/stream/streams.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/stream/lines.h"
#include "stream/line_search.h"
#include "stream/streams.h"
#include "wire/number.h"

enum {
	SEARCH_PRESET = 100,
	SEARCH_ARENA_MAX_BYTES = 1 << 20,
	/* A byte of a text is six where JSON escapes it. */
	SEARCH_ANSWER_MAX_BYTES = 64 << 20,
	SEARCH_TOKEN_MAX_BYTES = 2 * STREAM_ADDRESS_MAX_BYTES,
};

enum search_order { SEARCH_NEWEST, SEARCH_OLDEST };

struct search_question {
	struct lines_question lines;
	struct slice token;
	enum search_order order;
	size_t limit;
};

struct search_call {
	struct api_call call;
	struct search_question asked; /* texts in the call's arena */
	struct line_query query;
	struct line_search_rules rules;
	struct line_search_result result;
	bool searched; /* there is a result */
};

static const struct api_call_kind search_kind;

static struct search_call *search_call_of(struct api_call *call)
{
	ASSERT(call->kind == &search_kind);
	return CONTAINER_OF(call, struct search_call, call);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* `TIME/OFFSET/ADDRESS` of the last line: the time in ms. */
static void search_put_token(struct json_writer *json, const struct line_place *place)
{
	struct buf token;
	buf_init(&token, SEARCH_TOKEN_MAX_BYTES);
	buf_printf(&token, "%" PRId64 "/%" PRIu64 "/", place->ms, place->offset);
	buf_append(&token, place->stream.data, place->stream.len);
	json_put_string(json, "token", buf_slice(&token));
	buf_release(&token);
}

static bool search_take_part(struct slice *rest, struct slice *part)
{
	const char *slash = rest->len ? memchr(rest->data, '/', rest->len) : NULL;
	if (!slash)
		return false;
	*part = (struct slice){rest->data, (size_t)(slash - rest->data)};
	*rest = (struct slice){slash + 1, rest->len - part->len - 1};
	return true;
}

static int search_read_token(struct slice token, struct line_place *place, struct errbuf *e)
{
	struct slice ms, offset, rest = token;
	if (!search_take_part(&rest, &ms) || !search_take_part(&rest, &offset) ||
	    number_parse_i64(ms.data, ms.data + ms.len, &place->ms) ||
	    number_parse_u64(offset.data, offset.data + offset.len, &place->offset) || !rest.len)
		return errbuf_set(e, ERR_INVALID, "token: \"" SHOWN "\" is none of a search",
				  SHOWN_OF(token));
	place->stream = rest;
	return 0;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void search_put_all(struct search_call *call)
{
	struct json_writer *json = &call->call.json;
	const struct line_search_result *result = &call->result;
	json_write_object_begin(json);
	json_write_key(json, "lines");
	json_write_array_begin(json);
	for (size_t i = 0; i < result->count; i++)
		lines_put(json, &result->found[i]);
	json_write_array_end(json);
	lines_put_work(json, &result->work);
	if (result->more)
		search_put_token(json, &result->found[result->count - 1].place);
	json_write_object_end(json);
}

static void search_run(struct api_call *base)
{
	struct search_call *call = search_call_of(base);
	call->searched = true;
	base->err = line_search(streams_site(base->api->streams), job_queue(base->job),
				&call->rules, &call->result, &base->error);
	if (!base->err)
		search_put_all(call);
}

static void search_release(struct api_call *base)
{
	struct search_call *call = search_call_of(base);
	if (call->searched)
		line_search_release(&call->result);
	line_query_release(&call->query);
}

static const struct api_call_kind search_kind = {.arena_max_bytes = SEARCH_ARENA_MAX_BYTES,
						 .out_max_bytes = SEARCH_ANSWER_MAX_BYTES,
						 .job_name = "search",
						 .run = search_run,
						 .release = search_release};

/* ---- What is asked --------------------------------------------------------------------------- */

static const char *const search_orders[] = {"newest", "oldest", NULL};

#define SEARCH_FIELD(field_) offsetof(struct search_question, field_)

const struct param streams_search_params[] = {
	LINES_PARAMS_OF_STREAMS(struct search_question),
	LINES_PARAMS_OF_TIME(struct search_question),
	{"order", PARAM_WORD, SEARCH_FIELD(order), .words = search_orders,
	 .help = "Which lines come first; newest where it is left out."},
	{"limit", PARAM_NUMBER, SEARCH_FIELD(limit), 1, LINE_SEARCH_LIMIT_MAX,
	 .help = "At most so many lines; 100 where it is left out."},
	{"token", PARAM_TEXT, SEARCH_FIELD(token),
	 .help = "Goes on behind the answer that gave it."},
	{NULL}};

static int search_read(const struct http_request *request, struct search_call *call,
		       struct errbuf *e)
{
	struct search_question *q = &call->asked;
	struct line_search_rules *rules = &call->rules;
	*q = (struct search_question){.lines = {.since_ms = INT64_MIN, .until_ms = INT64_MAX},
				      .limit = SEARCH_PRESET};
	int err = params_read_route(request, clock_wall_ms(call->call.api->clock), q, e);
	err = err ? err : lines_read(&call->call, &q->lines, &call->query, &rules->scan, e);
	err = err ? err
		  : params_keep(&call->call.arena, &q->token, "token", SEARCH_TOKEN_MAX_BYTES, e);
	if (!err && q->token.data)
		err = search_read_token(q->token, &rules->after, e);
	rules->goes_on = q->token.data != NULL;
	rules->oldest_first = q->order == SEARCH_OLDEST;
	rules->limit = q->limit;
	return err;
}

static void search_end(struct http_request *request)
{
	struct search_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &search_kind);
	api_call_set_deadline(&call->call);
	int err = search_read(request, call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_search = API_CALL_HANDLER(search_end);
