#include "ingest/line.h"

#include "ingest/line_feed.h"
#include "wire/json.h"

enum { ANSWER_MAX_BYTES = 1 << 20, SENTENCE_ERRORS_MAX = 3 };

#define JSON_TYPE "application/json"

/* http->owner; its own owner until the answer is given or the request aborted. */
struct line_post {
	struct http_request *http;
	struct ingest_request *r;
	struct line_feed feed;
	bool ended; /* nothing more is read */
};

static void line_post_free(struct line_post *post)
{
	line_feed_release(&post->feed);
	mem_free(post);
}

/* ---- Answers -------------------------------------------------------------------------------- */

/* Errors of the first version are {"error":"..."}, those of the second
 * {"code":"invalid","message":"..."} with a word out of a list. */
static const char *line_code_of(int status)
{
	switch (status) {
	case 400:
		return "invalid";
	case 413:
		return "request too large";
	case 415:
		return "unsupported media type";
	case 503:
		return "unavailable";
	default:
		return "internal error";
	}
}

static void line_put_v1(struct json_writer *json, UNUSED int status, struct slice message)
{
	json_put_string(json, "error", message);
}

static void line_put_v2(struct json_writer *json, int status, struct slice message)
{
	json_put_text(json, "code", line_code_of(status));
	json_put_string(json, "message", message);
}

typedef void put_error_fn(struct json_writer *json, int status, struct slice message);

static void line_put_error(struct buf *out, int status, struct slice message, put_error_fn *put)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	put(&json, status, message);
	json_write_object_end(&json);
}

void line_error_v1(struct buf *out, int status, struct slice message)
{
	line_put_error(out, status, message, line_put_v1);
}

void line_error_v2(struct buf *out, int status, struct slice message)
{
	line_put_error(out, status, message, line_put_v2);
}

static void line_put_sentence(const struct ingest_request *r, struct buf *out)
{
	size_t shown = r->error_count < SENTENCE_ERRORS_MAX ? r->error_count : SENTENCE_ERRORS_MAX;
	buf_append_text(out, "partial write: ");
	for (size_t i = 0; i < shown; i++) {
		const struct ingest_error *error = &r->errors[i];
		buf_printf(out, "line %llu, column %u: %s; ",
			   (unsigned long long)error->place.index, error->place.column,
			   error->sentence);
	}
	if (r->refused > shown)
		buf_printf(out, "and %llu more; ", (unsigned long long)(r->refused - shown));
	buf_printf(out, "dropped=%llu", (unsigned long long)r->refused);
}

static void line_put_errors(const struct ingest_request *r, struct json_writer *json)
{
	json_write_array_begin(json);
	for (size_t i = 0; i < r->error_count; i++) {
		const struct ingest_error *error = &r->errors[i];
		json_write_object_begin(json);
		json_put_u64(json, "line", error->place.index);
		json_put_u64(json, "column", error->place.column);
		json_put_text(json, "reason", ingest_reason_text(error->reason));
		json_put_text(json, "message", error->sentence);
		json_write_object_end(json);
	}
	json_write_array_end(json);
}

static void line_reply_partial(struct http_request *http, const struct ingest_request *r)
{
	struct buf sentence, out;
	struct json_writer json;
	buf_init(&sentence, ANSWER_MAX_BYTES);
	buf_init(&out, ANSWER_MAX_BYTES);
	line_put_sentence(r, &sentence);
	json_writer_init(&json, &out);
	json_write_object_begin(&json);
	bool v2 = http->route->handler == &line_v2_write_handler;
	(v2 ? line_put_v2 : line_put_v1)(&json, 400, buf_slice(&sentence));
	json_put_u64(&json, "stored", r->accepted);
	json_put_u64(&json, "dropped", r->refused);
	json_write_key(&json, "errors");
	line_put_errors(r, &json);
	json_write_object_end(&json);
	http_reply(http, 400, JSON_TYPE, buf_slice(&out));
	buf_release(&sentence);
	buf_release(&out);
}

static void line_on_done(struct ingest_request *r)
{
	struct line_post *post = ingest_owner(r);
	struct http_request *http = post->http;
	int status = ingest_status(r);
	char left_out[24];
	snprintf(left_out, sizeof(left_out), "%llu", (unsigned long long)post->feed.texts_left_out);
	if (post->feed.texts_left_out)
		http_reply_header(http, "X-Granary-Left-Out", left_out);
	if (status == 204)
		http_reply(http, 204, NULL, (struct slice){0});
	else if (status == 400)
		line_reply_partial(http, r);
	else
		http_reply_error(http, status, "%s", r->error.text);
	line_post_free(post);
	ingest_request_free(r);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void line_end_once(struct line_post *post)
{
	if (post->ended)
		return;
	post->ended = true;
	ingest_request_end(post->r);
}

static void line_on_resume(struct ingest_request *r)
{
	struct line_post *post = ingest_owner(r);
	http_request_resume(post->http);
	if (r->err)
		line_end_once(post);
}

static void line_write_begin(struct http_request *http)
{
	const struct ingest_context *context = http->context;
	enum line_precision precision = LINE_NS;
	const char *sentence;
	if (ingest_turns_away(context->ingest, &sentence)) {
		http_reply_error(http, 503, "%s", sentence);
		return;
	}
	struct slice text = http_param(http, "precision");
	if (text.data && line_precision_parse(text, &precision)) {
		http_reply_error(http, 400,
				 "precision \"" SHOWN "\" is none of ns, us, ms, s, m and h",
				 SHOWN_OF(text));
		return;
	}
	struct slice tenant = http_tenant(http);
	if (tenant.data && !tenant_valid(tenant)) {
		http_reply_error(http, 400, "X-Tenant is not 1 to 64 of A-Z a-z 0-9 _ . and -");
		return;
	}
	struct line_post *post = mem_zalloc(sizeof(*post));
	post->http = http;
	http->owner = post;
	post->r =
		ingest_request_new(context->ingest, &(struct ingest_door){.done = line_on_done,
									  .resume = line_on_resume,
									  .owner = post});
	line_feed_init(&post->feed, post->r, tenant, precision);
	/* A request that has to wait had better wait before it has cost anything. */
	if (ingest_request_must_pause(post->r))
		http_request_pause_body(http);
}

/* When the store takes no more, the sender need not send the rest. */
static void line_write_body(struct http_request *http, struct slice piece)
{
	struct line_post *post = http->owner;
	if (post->ended)
		return;
	line_feed_piece(&post->feed, piece);
	if (post->r->err)
		line_end_once(post);
	else if (ingest_request_must_pause(post->r))
		http_request_pause_body(http);
}

static void line_write_end(struct http_request *http)
{
	struct line_post *post = http->owner;
	if (!post->ended)
		line_feed_end(&post->feed);
	line_end_once(post);
}

static void line_write_abort(struct http_request *http, int err)
{
	struct line_post *post = http->owner;
	(void)err;
	if (!post)
		return;
	ingest_request_abandon(post->r);
	line_post_free(post);
}

const struct http_handler line_write_handler = {
	.begin = line_write_begin,
	.body = line_write_body,
	.end = line_write_end,
	.abort = line_write_abort,
	.error = line_error_v1,
};

const struct http_handler line_v2_write_handler = {
	.begin = line_write_begin,
	.body = line_write_body,
	.end = line_write_end,
	.abort = line_write_abort,
	.error = line_error_v2,
};
