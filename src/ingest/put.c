#include "ingest/put.h"

#include "ingest/private.h"
#include "ingest/put_feed.h"

enum { ANSWER_MAX_BYTES = 4 << 20, SHOWN_ARENA_BYTES = 64 << 10 };

enum put_answer { ANSWER_PLAIN, ANSWER_SUMMARY, ANSWER_DETAILS };

/* http->owner. While its task is posted only the task may free it. */
struct put {
	struct http_request *http; /* NULL: the client has gone */
	struct ingest_request *r;
	struct buf body;
	struct put_feed feed;
	enum put_answer answer;
	struct task task;
	bool posted;
};

static void put_free(struct put *put)
{
	put_feed_release(&put->feed);
	buf_release(&put->body);
	mem_free(put);
}

/* ---- Answers -------------------------------------------------------------------------------- */

/* As it was written: digits that a double would lose are what somebody looks for here. A number
 * ends in a digit, NaN and Infinity do not. */
static void put_copy_number(const struct json_reader *reader, struct json_writer *json)
{
	char last = reader->text.data[reader->text.len - 1];
	if (last >= '0' && last <= '9')
		json_write_raw(json, reader->text);
	else
		json_write_null(json);
}

/* The value that begins here, as it was sent but for NaN and infinities, which become null. */
static void put_copy_value(struct json_reader *reader, struct json_writer *json)
{
	unsigned outside = reader->depth;
	do {
		switch (json_next(reader)) {
		case JSON_OBJECT_BEGIN:
			json_write_object_begin(json);
			break;
		case JSON_OBJECT_END:
			json_write_object_end(json);
			break;
		case JSON_ARRAY_BEGIN:
			json_write_array_begin(json);
			break;
		case JSON_ARRAY_END:
			json_write_array_end(json);
			break;
		case JSON_KEY:
			json_write_key_slice(json, reader->text);
			break;
		case JSON_STRING:
			json_write_string(json, reader->text);
			break;
		case JSON_NUMBER:
			put_copy_number(reader, json);
			break;
		case JSON_TRUE:
			json_write_bool(json, true);
			break;
		case JSON_FALSE:
			json_write_bool(json, false);
			break;
		default:
			json_write_null(json);
		}
	} while (reader->depth > outside);
}

static void put_begin_copy(struct json_reader *reader, struct slice text, struct arena *arena)
{
	json_reader_init(reader, text, arena);
	reader->allow_nan = true;
}

/* Left out if it is long, or if it is no JSON. */
static void put_write_datapoint(const struct put *put, uint64_t index, struct json_writer *json)
{
	struct slice rest = buf_slice(&put->body);
	struct json_reader reader;
	struct arena arena;
	size_t offset;
	if (!put_feed_offset(&put->feed, index, &offset))
		return;
	rest.data += offset;
	rest.len -= offset;
	if (rest.len > PUT_SHOWN_MAX_BYTES)
		rest.len = PUT_SHOWN_MAX_BYTES;
	arena_init(&arena, SHOWN_ARENA_BYTES);
	put_begin_copy(&reader, rest, &arena);
	if (json_skip(&reader, json_next(&reader))) {
		json_write_key(json, "datapoint");
		put_begin_copy(&reader, json_text_from(&reader, 0), &arena);
		put_copy_value(&reader, json);
	}
	arena_release(&arena);
}

static void put_write_errors(const struct put *put, struct json_writer *json)
{
	const struct ingest_request *r = put->r;
	json_write_key(json, "errors");
	json_write_array_begin(json);
	for (size_t i = 0; i < r->error_count; i++) {
		const struct ingest_error *error = &r->errors[i];
		json_write_object_begin(json);
		json_put_u64(json, "index", error->place.index);
		json_put_text(json, "error", error->sentence);
		if (put->answer == ANSWER_DETAILS)
			put_write_datapoint(put, error->place.index, json);
		json_write_object_end(json);
	}
	json_write_array_end(json);
	if (r->refused == r->error_count)
		return;
	json_put_u64(json, "omitted", r->refused - r->error_count);
}

static void put_write_message(const struct put *put, struct json_writer *json)
{
	const struct ingest_request *r = put->r;
	struct errbuf e;
	struct buf object;
	errbuf_set(&e, 0, "%llu of %llu points refused; point %llu: %s",
		   (unsigned long long)r->refused, (unsigned long long)put->feed.index,
		   (unsigned long long)r->errors[0].place.index, r->errors[0].sentence);
	buf_init(&object, ANSWER_MAX_BYTES);
	http_error_json(&object, 400, slice_of(e.text));
	json_write_key(json, "error");
	json_write_raw(json, buf_slice(&object));
	buf_release(&object);
}

static void put_reply_counts(const struct put *put, int status)
{
	struct buf out;
	struct json_writer json;
	buf_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_write_object_begin(&json);
	if (put->answer == ANSWER_PLAIN)
		put_write_message(put, &json);
	json_put_u64(&json, "success", put->r->accepted);
	json_put_u64(&json, "failed", put->r->refused);
	if (put->answer != ANSWER_SUMMARY)
		put_write_errors(put, &json);
	json_write_object_end(&json);
	http_reply(put->http, status, "application/json", buf_slice(&out));
	buf_release(&out);
}

static void put_reply(const struct put *put)
{
	int status = ingest_status(put->r);
	if (status == 204 && put->answer == ANSWER_PLAIN)
		http_reply(put->http, 204, NULL, (struct slice){NULL, 0});
	else if (status == 204 || status == 400)
		put_reply_counts(put, status == 204 ? 200 : 400);
	else
		http_reply_error(put->http, status, "%s", put->r->error.text);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static void put_on_done(struct ingest_request *r)
{
	struct put *put = ingest_owner(r);
	put_reply(put);
	put_free(put);
	ingest_request_free(r);
}

static void put_post(struct put *put)
{
	struct executor *executor = put->r->ingest->options.executor;
	put->posted = true;
	executor->post(executor, &put->task);
}

static void put_run(struct task *task)
{
	struct put *put = CONTAINER_OF(task, struct put, task);
	put->posted = false;
	if (!put->http)
		put_free(put);
	else if (!put_feed_slice(&put->feed))
		ingest_request_end(put->r);
	else if (!ingest_request_must_pause(put->r))
		put_post(put);
}

/* `resume` never comes from within a call of ours, but may come from within another's. */
static void put_on_resume(struct ingest_request *r)
{
	put_post(ingest_owner(r));
}

/* `?details` and `?details=true`. */
static bool put_asked_for(const struct http_request *http, const char *name)
{
	struct slice value = http_param(http, name);
	return value.data && !slice_equal(value, SLICE("false"));
}

static enum put_answer put_answer_for(const struct http_request *http)
{
	if (put_asked_for(http, "details"))
		return ANSWER_DETAILS;
	return put_asked_for(http, "summary") ? ANSWER_SUMMARY : ANSWER_PLAIN;
}

/* An answer now spares the client the body. */
static void put_on_begin(struct http_request *http)
{
	const struct ingest_context *context = http->context;
	struct slice tenant = http_tenant(http);
	const char *sentence;
	if (ingest_turns_away(context->ingest, &sentence))
		http_reply_error(http, 503, "%s", sentence);
	else if (tenant.data && !tenant_valid(tenant))
		http_reply_error(http, 400, "X-Tenant is not 1 to %d of A-Z a-z 0-9 _ . and -",
				 TENANT_MAX_BYTES);
}

static void put_on_end(struct http_request *http)
{
	const struct ingest_context *context = http->context;
	const struct ingest_door door = {.done = put_on_done, .resume = put_on_resume};
	struct put *put = mem_alloc(sizeof(*put));
	put->http = http;
	put->body = http_request_take_body(http);
	put->answer = put_answer_for(http);
	put->task.run = put_run;
	put->r = ingest_request_new(context->ingest, &door);
	put->r->door.owner = put;
	put_feed_init(&put->feed, put->r, http_tenant(http), buf_slice(&put->body));
	put->feed.keep_offsets = put->answer == ANSWER_DETAILS;
	http->owner = put;
	put_run(&put->task);
}

static void put_on_abort(struct http_request *http, int err)
{
	struct put *put = http->owner;
	(void)err;
	if (!put)
		return;
	ingest_request_abandon(put->r);
	put->http = NULL;
	if (!put->posted)
		put_free(put);
}

const struct http_handler put_handler = {
	.begin = put_on_begin, .end = put_on_end, .abort = put_on_abort};
