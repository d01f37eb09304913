#include "api/esmond/answer.h"

#include <stdio.h>

#include "api/metrics/query.h"
#include "conf/conf.h"
#include "query/query.h"

enum {
	FLUSH_BYTES = 192 << 10, /* gathered before it is sent; a day of 30 s leaves whole */
	OUT_MAX_BYTES = 8 << 20, /* between two flushes */
	URL_MAX_BYTES = 64 << 10,
	TREE_FACTOR = 20, /* of JSON's bytes, what its tree may take */
	TIMEOUT_PRESET_MS = 60000,
};

static void run_turn(struct task *task);

static int64_t mono_us(const struct v2_answer *answer)
{
	struct clock *clock = answer->api->clock;
	return clock->mono_us(clock);
}

void v2_answer_init(struct v2_answer *answer, struct http_request *request,
		    void (*advance)(struct v2_answer *answer),
		    void (*release)(struct v2_answer *answer))
{
	*answer = (struct v2_answer){
		.request = request,
		.api = api_of(request),
		.body = http_request_take_body(request),
		.inventory = inventory_keeper_take(api_of(request)->inventory),
		.now_ms = clock_wall_ms(api_of(request)->clock),
		.sending = {.status = 200, .content_type = "application/json"},
		.advance = advance,
		.release = release,
		.turn = {.run = run_turn},
	};
	arena_init(&answer->arena, V2_ANSWER_ARENA_BYTES);
	buf_init(&answer->out, OUT_MAX_BYTES);
	json_writer_init(&answer->json, &answer->out);
	const struct conf *conf = answer->api->conf;
	answer->timeout_ms = conf ? conf->query_timeout_ms : TIMEOUT_PRESET_MS;
	answer->deadline_us = mono_us(answer) + answer->timeout_ms * 1000;
	answer->api->v2_answers++;
	request->owner = answer;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void free_if_over(struct v2_answer *answer)
{
	if (answer->request || answer->turn_posted || answer->held)
		return;
	answer->api->v2_answers--;
	inventory_release(answer->inventory);
	buf_release(&answer->out);
	buf_release(&answer->body);
	arena_release(&answer->arena);
	answer->release(answer);
}

static void leave(struct v2_answer *answer)
{
	answer->request = NULL;
	free_if_over(answer);
}

bool v2_answer_settle(struct v2_answer *answer)
{
	ASSERT(answer->held);
	answer->held--;
	if (answer->request)
		return true;
	free_if_over(answer);
	return false;
}

void v2_error(struct buf *out, int status, struct slice message)
{
	buf_append_text(out, status == 400 ? "{\"error\":" : "{\"detail\":");
	json_append_string(out, message);
	buf_append_text(out, "}\n");
}

static void fail(struct v2_answer *answer, int status, const char *sentence)
{
	sending_fail(&answer->sending, answer->request, "an answer", status, sentence);
	leave(answer);
}

void v2_answer_fail(struct v2_answer *answer, int status, const char *fmt, ...)
{
	struct errbuf e;
	va_list args;
	va_start(args, fmt);
	vsnprintf(e.text, sizeof(e.text), fmt, args);
	va_end(args);
	fail(answer, status, e.text);
}

void v2_answer_fail_with(struct v2_answer *answer, int err, const char *sentence)
{
	struct errbuf late;
	if (err == ERR_TIMEOUT && v2_answer_check_time(answer, &late))
		sentence = late.text;
	v2_answer_fail(answer, query_status(err), "%s", sentence[0] ? sentence : err_text(err));
}

void v2_answer_query_error(struct v2_answer *answer, const char *sentence)
{
	struct buf body, quoted;
	if (answer->sending.streaming) {
		fail(answer, 400, sentence);
		return;
	}
	buf_init(&body, URL_MAX_BYTES);
	buf_init(&quoted, URL_MAX_BYTES);
	buf_printf(&quoted, "'%s'", sentence);
	buf_append_text(&body, "{\"query error\":");
	json_append_string(&body, buf_slice(&quoted));
	buf_append_text(&body, "}\n");
	http_reply(answer->request, 400, "application/json", buf_slice(&body));
	buf_release(&quoted);
	buf_release(&body);
	leave(answer);
}

void v2_no_such_path(struct http_request *request)
{
	http_reply_error(request, 404, "there is nothing at " SHOWN, SHOWN_OF(request->path));
}

void v2_no_device(struct v2_answer *answer, int status, struct slice name)
{
	v2_answer_fail(answer, status, "there is no device \"" SHOWN "\"", SHOWN_OF(name));
}

/* Sends what was gathered; false: the client is to read first, or it is over. */
static bool send_gathered(struct v2_answer *answer)
{
	int err = sending_send(&answer->sending, answer->request, &answer->out);
	if (err == ERR_BUSY)
		answer->stalled_us = mono_us(answer);
	else if (err)
		fail(answer, query_status(err), "the answer could not be sent");
	return !err;
}

bool v2_answer_room(struct v2_answer *answer)
{
	if (answer->out.failed) {
		v2_answer_fail(answer, 422, "the answer is too long; ask for less");
		return false;
	}
	return answer->out.len < FLUSH_BYTES || send_gathered(answer);
}

/* The end of a long answer may have to wait for the client, too: then this comes again. */
static void finish(struct v2_answer *answer)
{
	answer->advance = finish;
	if (answer->out.failed) {
		v2_answer_fail(answer, 422, "the answer is too long; ask for less");
		return;
	}
	bool whole = !answer->sending.streaming && answer->out.len < 2 * FLUSH_BYTES;
	if (!whole && !send_gathered(answer))
		return;
	sending_end(&answer->sending, answer->request, buf_slice(&answer->out), NULL);
	leave(answer);
}

void v2_answer_end(struct v2_answer *answer)
{
	finish(answer);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

int v2_answer_check_time(const struct v2_answer *answer, struct errbuf *e)
{
	return mono_us(answer) < answer->deadline_us ? 0 : query_late(answer->timeout_ms, e);
}

/* What is complete is only sent. */
static void advance_in_time(struct v2_answer *answer)
{
	struct errbuf e;
	int err = answer->advance == finish ? 0 : v2_answer_check_time(answer, &e);
	if (err)
		v2_answer_fail_with(answer, err, e.text);
	else
		answer->advance(answer);
}

static void run_turn(struct task *task)
{
	struct v2_answer *answer = CONTAINER_OF(task, struct v2_answer, turn);
	answer->turn_posted = false;
	if (!answer->request)
		free_if_over(answer);
	else if (!answer->sending.stalled)
		advance_in_time(answer);
}

void v2_answer_later(struct v2_answer *answer)
{
	struct executor *executor = loop_executor(answer->api->loop);
	if (answer->turn_posted)
		return;
	answer->turn_posted = true;
	executor->post(executor, &answer->turn);
}

void v2_answer_go_on(struct v2_answer *answer)
{
	if (answer->request && !answer->sending.stalled && !answer->turn_posted)
		advance_in_time(answer);
}

void v2_drained(struct http_request *request)
{
	struct v2_answer *answer = request->owner;
	answer->sending.stalled = false;
	answer->deadline_us += mono_us(answer) - answer->stalled_us;
	v2_answer_go_on(answer);
}

void v2_aborted(struct http_request *request, UNUSED int err)
{
	if (request->owner)
		leave(request->owner);
}

/* ---- Small parts ----------------------------------------------------------------------------- */

void v2_put_text(struct json_writer *json, const char *key, struct slice text)
{
	json_put_string(json, key, text);
}

void v2_put_number(struct json_writer *json, const char *key, int64_t number)
{
	json_put_i64(json, key, number);
}

void v2_put_null(struct json_writer *json, const char *key)
{
	json_put_null(json, key);
}

static void put_url(struct v2_answer *answer, struct slice uri)
{
	struct buf url;
	buf_init(&url, URL_MAX_BYTES);
	v2_host_write(answer->request, &url);
	buf_append(&url, uri.data, uri.len);
	v2_put_text(&answer->json, "url", buf_slice(&url));
	buf_release(&url);
}

void v2_put_links(struct v2_answer *answer, struct slice uri)
{
	put_url(answer, uri);
	v2_put_text(&answer->json, "uri", uri);
	v2_put_text(&answer->json, "resource_uri", uri);
}

void v2_put_address(struct v2_answer *answer, struct slice uri)
{
	put_url(answer, uri);
	v2_put_text(&answer->json, "resource_uri", uri);
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
	struct http_request *request = answer->request;
	int err = v2_check_json(request, e);
	if (!err && http_request_charge(request, TREE_FACTOR * answer->body.len))
		err = errbuf_set(e, ERR_BUSY, "the memory for requests is in use");
	return err ? err : json_parse(buf_slice(&answer->body), &answer->arena, body, e);
}

size_t v2_part_count(const struct http_request *request)
{
	size_t count = request->segment_count;
	while (count > 1 && !request->segments[count - 1].len)
		count--;
	return count ? count - 1 : 0;
}
