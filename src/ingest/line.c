#include "ingest/line.h"

#include <strings.h>

#include "ingest/line_feed.h"
#include "wire/json.h"

enum { ANSWER_MAX_BYTES = 1 << 20, SENTENCE_ERRORS_MAX = 3 };

#define JSON_TYPE "application/json"
/* Clients look at the first numbers only: this is the protocol of that version. */
#define INFLUX_VERSION "1.8.0+granary." GRANARY_VERSION

/* http->owner; its own owner until the answer is given or the request aborted. */
struct line_post {
	struct http_request *http;
	struct ingest_request *r;
	struct line_feed feed;
	bool ended; /* nothing more is read */
};

static void post_free(struct line_post *post)
{
	line_feed_release(&post->feed);
	mem_free(post);
}

/* ---- Answers -------------------------------------------------------------------------------- */

/* The shape of an error that senders of line protocol look for. */
static void reply_error(struct http_request *http, int status, const char *sentence)
{
	struct buf out;
	struct json_writer json;
	buf_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_write_object_begin(&json);
	json_write_key(&json, "error");
	json_write_text(&json, sentence);
	json_write_object_end(&json);
	http_reply(http, status, JSON_TYPE, buf_slice(&out));
	buf_release(&out);
}

static void put_sentence(const struct ingest_request *r, struct buf *out)
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

static void put_errors(const struct ingest_request *r, struct json_writer *json)
{
	json_write_array_begin(json);
	for (size_t i = 0; i < r->error_count; i++) {
		const struct ingest_error *error = &r->errors[i];
		json_write_object_begin(json);
		json_write_key(json, "line");
		json_write_u64(json, error->place.index);
		json_write_key(json, "column");
		json_write_u64(json, error->place.column);
		json_write_key(json, "reason");
		json_write_text(json, ingest_reason_text(error->reason));
		json_write_key(json, "message");
		json_write_text(json, error->sentence);
		json_write_object_end(json);
	}
	json_write_array_end(json);
}

static void reply_partial(struct http_request *http, const struct ingest_request *r)
{
	struct buf sentence, out;
	struct json_writer json;
	buf_init(&sentence, ANSWER_MAX_BYTES);
	buf_init(&out, ANSWER_MAX_BYTES);
	put_sentence(r, &sentence);
	json_writer_init(&json, &out);
	json_write_object_begin(&json);
	json_write_key(&json, "error");
	json_write_string(&json, buf_slice(&sentence));
	json_write_key(&json, "dropped");
	json_write_u64(&json, r->refused);
	json_write_key(&json, "errors");
	put_errors(r, &json);
	json_write_object_end(&json);
	http_reply(http, 400, JSON_TYPE, buf_slice(&out));
	buf_release(&sentence);
	buf_release(&out);
}

static void on_done(struct ingest_request *r)
{
	struct line_post *post = ingest_owner(r);
	struct http_request *http = post->http;
	int status = ingest_status(r);
	if (status == 503)
		http_reply_header(http, "Retry-After", INGEST_RETRY_AFTER);
	if (status == 204)
		http_reply(http, 204, NULL, (struct slice){0});
	else if (status == 400)
		reply_partial(http, r);
	else
		reply_error(http, status, r->error.text);
	post_free(post);
	ingest_request_free(r);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void on_resume(struct ingest_request *r)
{
	struct line_post *post = ingest_owner(r);
	http_request_resume(post->http);
}

static void write_begin(struct http_request *http)
{
	const struct ingest_context *context = http->context;
	enum line_precision precision = LINE_NS;
	struct slice text = http_param(http, "precision");
	if (text.data && line_precision_parse(text, &precision)) {
		reply_error(http, 400, "precision is none of ns, us, ms, s, m and h");
		return;
	}
	struct slice tenant = http_header(http, "X-Tenant");
	if (tenant.data && !tenant_valid(tenant)) {
		reply_error(http, 400, "X-Tenant is not 1 to 64 of A-Z a-z 0-9 _ . and -");
		return;
	}
	struct line_post *post = mem_zalloc(sizeof(*post));
	post->http = http;
	http->owner = post;
	post->r = ingest_request_new(
		context->ingest,
		&(struct ingest_door){.done = on_done, .resume = on_resume, .owner = post});
	line_feed_init(&post->feed, post->r, tenant, precision);
}

static void end_once(struct line_post *post)
{
	if (post->ended)
		return;
	post->ended = true;
	ingest_request_end(post->r);
}

/* When the store takes no more, the sender need not send the rest. */
static void write_body(struct http_request *http, struct slice piece)
{
	struct line_post *post = http->owner;
	if (post->ended)
		return;
	line_feed_piece(&post->feed, piece);
	if (post->r->err)
		end_once(post);
	else if (ingest_request_must_pause(post->r))
		http_request_pause(http);
}

static void write_end(struct http_request *http)
{
	struct line_post *post = http->owner;
	if (!post->ended)
		line_feed_end(&post->feed);
	end_once(post);
}

static void write_abort(struct http_request *http, int err)
{
	struct line_post *post = http->owner;
	(void)err;
	if (!post)
		return;
	ingest_request_abandon(post->r);
	post_free(post);
}

const struct http_handler line_write_handler = {
	.begin = write_begin,
	.body = write_body,
	.end = write_end,
	.abort = write_abort,
};

/* ---- Hand-shakes ---------------------------------------------------------------------------- */

static void ping_end(struct http_request *http)
{
	http_reply_header(http, "X-Influxdb-Version", INFLUX_VERSION);
	http_reply_header(http, "X-Influxdb-Build", "Granary");
	if (http_param(http, "verbose").data)
		http_reply(http, 200, JSON_TYPE, SLICE("{\"version\":\"" INFLUX_VERSION "\"}"));
	else
		http_reply(http, 204, NULL, (struct slice){0});
}

static void health_end(struct http_request *http)
{
	http_reply(
		http, 200, JSON_TYPE,
		SLICE("{\"name\":\"granary\",\"message\":\"ready for writes\",\"status\":\"pass\","
		      "\"checks\":[],\"version\":\"" GRANARY_VERSION "\"}"));
}

/* Databases need no creating here: every tenant is there. Telegraf puts `q` into a form, others
 * into the URL. */
static void query_end(struct http_request *http)
{
	static const struct slice create = {"CREATE DATABASE", 15};
	struct slice q;
	if (http_form_field(http, "q", &q)) {
		reply_error(http, 400, "the form is not properly percent-encoded");
		return;
	}
	if (!q.data)
		q = http_param(http, "q");
	if (q.data && q.len >= create.len && strncasecmp(q.data, create.data, create.len) == 0)
		http_reply(http, 200, JSON_TYPE, SLICE("{\"results\":[{\"statement_id\":0}]}"));
	else
		reply_error(http, 400,
			    "only CREATE DATABASE is answered here; see /api/query for queries");
}

const struct http_handler line_ping_handler = {.end = ping_end};
const struct http_handler line_health_handler = {.end = health_end};
const struct http_handler line_query_handler = {.end = query_end};
