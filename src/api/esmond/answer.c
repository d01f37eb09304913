#include "api/esmond/answer.h"

enum {
	FLUSH_BYTES = 192 << 10, /* gathered before it is sent; a day of 30 s leaves whole */
	OUT_MAX_BYTES = 8 << 20, /* between two flushes */
	URL_MAX_BYTES = 64 << 10,
	TREE_FACTOR = 20, /* of JSON's bytes, what its tree may take */
};

static const struct api_call_kind v2_answer_kind;

struct v2_answer *v2_answer_of(struct api_call *call)
{
	ASSERT(call->kind == &v2_answer_kind);
	return CONTAINER_OF(call, struct v2_answer, call);
}

static void v2_answer_release(struct api_call *call)
{
	struct v2_answer *answer = v2_answer_of(call);
	inventory_release(answer->inventory);
	if (answer->release)
		answer->release(answer);
}

static const struct api_call_kind v2_answer_kind = {.arena_max_bytes = V2_ANSWER_ARENA_BYTES,
						    .out_max_bytes = OUT_MAX_BYTES,
						    .flush_bytes = FLUSH_BYTES,
						    .timed = true,
						    .release = v2_answer_release};

void v2_answer_init(struct v2_answer *answer, struct http_request *request,
		    void (*advance)(struct api_call *call),
		    void (*release)(struct v2_answer *answer))
{
	const struct api *api = api_of(request);
	*answer = (struct v2_answer){.inventory = inventory_keeper_take(api->inventory),
				     .now_ms = clock_wall_ms(api->clock),
				     .release = release};
	api_call_init(&answer->call, request, &v2_answer_kind);
	answer->call.advance = advance;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

void v2_error(struct buf *out, int status, struct slice message)
{
	buf_append_text(out, status == 400 ? "{\"error\":" : "{\"detail\":");
	json_append_string(out, message);
	buf_append_text(out, "}\n");
}

void v2_answer_query_error(struct v2_answer *answer, const char *sentence)
{
	struct api_call *call = &answer->call;
	struct buf quoted;
	if (call->streaming) {
		api_call_fail(call, 400, "%s", sentence);
		return;
	}
	buf_init(&quoted, URL_MAX_BYTES);
	buf_printf(&quoted, "'%s'", sentence);
	buf_clear(&call->out);
	buf_append_text(&call->out, "{\"query error\":");
	json_append_string(&call->out, buf_slice(&quoted));
	buf_append_text(&call->out, "}\n");
	buf_release(&quoted);
	call->content_type = "application/json";
	call->status = 400;
	api_call_end(call);
}

void v2_no_such_path(struct http_request *request)
{
	http_reply_error(request, 404, "there is nothing at " SHOWN, SHOWN_OF(request->path));
}

void v2_no_device(struct v2_answer *answer, int status, struct slice name)
{
	api_call_fail(&answer->call, status, "there is no device \"" SHOWN "\"", SHOWN_OF(name));
}

/* ---- Small parts ----------------------------------------------------------------------------- */

static void put_url(struct v2_answer *answer, struct slice uri)
{
	struct buf url;
	buf_init(&url, URL_MAX_BYTES);
	v2_host_write(answer->call.request, &url);
	buf_append(&url, uri.data, uri.len);
	json_put_string(&answer->call.json, "url", buf_slice(&url));
	buf_release(&url);
}

void v2_put_links(struct v2_answer *answer, struct slice uri)
{
	put_url(answer, uri);
	json_put_string(&answer->call.json, "uri", uri);
	json_put_string(&answer->call.json, "resource_uri", uri);
}

void v2_put_address(struct v2_answer *answer, struct slice uri)
{
	put_url(answer, uri);
	json_put_string(&answer->call.json, "resource_uri", uri);
}

int v2_check_json(const struct http_request *request, struct errbuf *e)
{
	struct slice type = http_header(request, "Content-Type");
	struct slice wanted = SLICE("application/json");
	if (type.len >= wanted.len && memcmp(type.data, wanted.data, wanted.len) == 0 &&
	    (type.len == wanted.len || strchr("; \t", type.data[wanted.len])))
		return 0;
	return errbuf_set(e, ERR_INVALID, "the body must have the type application/json");
}

int v2_read_json(struct v2_answer *answer, struct json **body, struct errbuf *e)
{
	struct http_request *request = answer->call.request;
	int err = v2_check_json(request, e);
	if (!err && http_request_charge(request, TREE_FACTOR * answer->call.body.len))
		err = errbuf_set(e, ERR_BUSY, "the memory for requests is in use");
	return err ? err : json_parse(buf_slice(&answer->call.body), &answer->call.arena, body, e);
}

size_t v2_part_count(const struct http_request *request)
{
	size_t count = request->segment_count;
	while (count > 1 && !request->segments[count - 1].len)
		count--;
	return count ? count - 1 : 0;
}
