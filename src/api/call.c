#include "api/call.h"

#include <stdio.h>

#include "auth/auth.h"
#include "auth/caller.h"
#include "base/log.h"
#include "conf/conf.h"
#include "query/query.h"

enum {
	PIECE_MAX_BYTES = 128 << 10,
	TIMEOUT_PRESET_MS = 60000,
	QUESTION_SHOWN_MAX_BYTES = 16 << 10, /* the log cuts it sooner */
};

static void api_call_turn(struct task *task);

static int64_t api_call_now_us(const struct api_call *call)
{
	struct clock *clock = call->api->clock;
	return clock->mono_us(clock);
}

static void api_call_enlist(struct api_call *call)
{
	call->next = call->api->calls;
	call->place = &call->api->calls;
	if (call->next)
		call->next->place = &call->next;
	*call->place = call;
}

/* A text of the client's is cut, so that the line stays readable. */
static void api_call_put_shown(struct buf *out, struct slice text)
{
	buf_printf(out, SHOWN, SHOWN_OF(text));
}

/* A question as it was asked; InfluxDB's clients send passwords as `p`. */
static void api_call_put_question(const struct api_call *call, struct buf *out)
{
	const struct http_request *request = call->request;
	buf_printf(out, "%s ", http_verb_text(request->verb));
	api_call_put_shown(out, request->path);
	for (size_t i = 0; i < request->param_count; i++) {
		const struct http_param *param = &request->params[i];
		buf_append_char(out, i ? '&' : '?');
		api_call_put_shown(out, param->name);
		buf_append_char(out, '=');
		api_call_put_shown(out, slice_equal(param->name, SLICE("p")) ? SLICE("...")
									     : param->value);
	}
	if (call->body.len) {
		buf_append_char(out, ' ');
		api_call_put_shown(out, buf_slice(&call->body));
	}
}

/* Before the request ends. The time in which the client was to read does not count. */
static void api_call_log_if_slow(const struct api_call *call, const char *outcome)
{
	const struct conf *conf = call->api->conf;
	const struct http_request *request = call->request;
	char from[LOOP_ADDRESS_TEXT_BYTES];
	struct buf question;
	if (!conf || !conf->log_slow_query_ms || call->endless || request->route->role != ROLE_READ)
		return;
	int64_t now_us = call->stalled ? call->stalled_us : api_call_now_us(call);
	int64_t took_ms = (now_us - call->begun_us) / 1000;
	if (took_ms < conf->log_slow_query_ms)
		return;
	buf_init(&question, QUESTION_SHOWN_MAX_BYTES);
	api_call_put_question(call, &question);
	log_rated(&call->api->slow_lines, api_call_now_us(call) / 1000, LOG_WARN,
		  "slow query: %.*s of %s at %s took %lld.%03lld s, and %s", (int)question.len,
		  question.data, request->caller ? request->caller->name : "somebody",
		  loop_address_text(request->peer, from), (long long)took_ms / 1000,
		  (long long)took_ms % 1000, outcome);
	buf_release(&question);
}

static void api_call_delist(struct api_call *call)
{
	ASSERT(*call->place == call);
	*call->place = call->next;
	if (call->next)
		call->next->place = call->place;
}

void api_call_init(struct api_call *call, struct http_request *request,
		   const struct api_call_kind *kind)
{
	ASSERT(kind->flush_bytes <= kind->out_max_bytes);
	ASSERT(!kind->run == !kind->job_name && (kind->run || !kind->over));
	*call = (struct api_call){.magic = MAGIC_OF(api_call),
				  .request = request,
				  .api = api_of(request),
				  .kind = kind,
				  .body = http_request_take_body(request),
				  .content_type = "application/json",
				  .status = 200,
				  .turn = {.run = api_call_turn}};
	arena_init(&call->arena, kind->arena_max_bytes);
	buf_init(&call->out, kind->out_max_bytes);
	json_writer_init(&call->json, &call->out);
	if (kind->timed)
		api_call_set_deadline(call);
	call->begun_us = api_call_now_us(call);
	api_call_enlist(call);
	request->owner = call;
}

void api_call_set_deadline(struct api_call *call)
{
	const struct conf *conf = call->api->conf;
	call->timeout_ms = conf ? conf->query_timeout_ms : TIMEOUT_PRESET_MS;
	call->deadline_us = api_call_now_us(call) + call->timeout_ms * 1000;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void api_call_free_if_over(struct api_call *call)
{
	if (call->request || call->turn_posted || call->held)
		return;
	ASSERT_IS(api_call, call);
	ASSERT(!call->job);
	api_call_delist(call);
	buf_release(&call->out);
	buf_release(&call->body);
	arena_release(&call->arena);
	if (call->kind->release)
		call->kind->release(call);
	call->magic = 0;
	mem_free(call);
}

/* What `ended` cancels may settle at once: the owner stays until then. */
static void api_call_leave(struct api_call *call)
{
	ASSERT(call->request);
	call->request = NULL;
	call->held++;
	if (call->kind->ended)
		call->kind->ended(call);
	call->held--;
	api_call_free_if_over(call);
}

bool api_call_settle(struct api_call *call)
{
	ASSERT(call->held);
	call->held--;
	if (call->request)
		return true;
	api_call_free_if_over(call);
	return false;
}

bool api_call_answers_head(struct api_call *call)
{
	if (!http_reply_head(call->request, call->content_type))
		return false;
	api_call_leave(call);
	return true;
}

void api_call_fail(struct api_call *call, int status, const char *fmt, ...)
{
	struct http_request *request = call->request;
	struct errbuf e;
	ASSERT(request && status >= 400);
	api_call_log_if_slow(call, "failed");
	va_list args;
	va_start(args, fmt);
	vsnprintf(e.text, sizeof(e.text), fmt, args);
	va_end(args);
	if (call->streaming) {
		log_warn("the answer to %s %s was broken off: %s", http_verb_text(request->verb),
			 request->route->path, e.text);
		http_stream_break(request);
	} else {
		http_reply_error(request, status, "%s", e.text);
	}
	api_call_leave(call);
}

/* query.timeout is a limit of what was asked: the same question would take as long again. */
void api_call_fail_with(struct api_call *call, int err, const char *sentence)
{
	struct errbuf late;
	ASSERT(err);
	if (err == ERR_TIMEOUT && api_call_check_time(call, &late))
		sentence = late.text;
	api_call_fail(call, err == ERR_TIMEOUT ? 422 : http_status_of(err), "%s",
		      sentence[0] ? sentence : err_text(err));
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* Sends what was gathered; false: the client is to read first, or it is over. */
static bool api_call_send(struct api_call *call)
{
	int err = 0;
	size_t sent = 0;
	ASSERT(call->request);
	if (!call->streaming)
		http_stream_begin(call->request, call->status, call->content_type);
	call->streaming = true;
	while (sent < call->out.len && !err) {
		struct slice piece = {call->out.data + sent, call->out.len - sent};
		if (piece.len > PIECE_MAX_BYTES)
			piece.len = PIECE_MAX_BYTES;
		err = http_stream_write(call->request, piece);
		if (!err || err == ERR_BUSY)
			sent += piece.len;
	}
	buf_consume(&call->out, sent);
	call->stalled = err == ERR_BUSY;
	if (call->stalled)
		call->stalled_us = api_call_now_us(call);
	else if (err)
		api_call_fail_with(call, err, "the answer could not be sent");
	return !err;
}

bool api_call_begin_endless(struct api_call *call)
{
	bool begun = http_stream_begin_endless(call->request, call->content_type) == 0;
	call->streaming = call->endless = begun;
	if (!begun)
		api_call_leave(call);
	return begun;
}

bool api_call_room(struct api_call *call)
{
	if (call->out.failed) {
		api_call_fail(call, 422, "the answer is too long; ask for less");
		return false;
	}
	return call->out.len < call->kind->flush_bytes || api_call_send(call);
}

/* The end of a long answer may have to wait for the client, too: then this comes again. */
void api_call_end(struct api_call *call)
{
	size_t flush_bytes = call->kind->flush_bytes;
	ASSERT(call->request);
	call->advance = api_call_end;
	if (call->out.failed) {
		api_call_fail(call, 422, "the answer is too long; ask for less");
		return;
	}
	if (!call->streaming && (!flush_bytes || call->out.len < 2 * flush_bytes)) {
		api_call_log_if_slow(call, "was answered");
		if (call->cut)
			http_reply_header(call->request, "X-Granary-Cut", call->cut);
		http_reply(call->request, call->status, call->content_type, buf_slice(&call->out));
	} else if (api_call_send(call)) {
		api_call_log_if_slow(call, "was answered");
		if (call->cut)
			http_stream_trailer(call->request, "X-Granary-Cut", call->cut);
		http_stream_end(call->request);
	} else {
		return;
	}
	api_call_leave(call);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

int api_call_check_time(const struct api_call *call, struct errbuf *e)
{
	bool late = call->deadline_us && api_call_now_us(call) >= call->deadline_us;
	return late ? query_late(call->timeout_ms, e) : 0;
}

/* What is complete is only sent, whatever the time. */
static void api_call_advance(struct api_call *call)
{
	struct errbuf e;
	ASSERT(call->advance);
	bool untimed = call->advance == api_call_end || !call->kind->timed;
	int err = untimed ? 0 : api_call_check_time(call, &e);
	if (err)
		api_call_fail_with(call, err, e.text);
	else
		call->advance(call);
}

static void api_call_turn(struct task *task)
{
	struct api_call *call = CONTAINER_OF(task, struct api_call, turn);
	ASSERT_IS(api_call, call);
	ASSERT(call->turn_posted);
	call->turn_posted = false;
	if (!call->request)
		api_call_free_if_over(call);
	else if (!call->stalled)
		api_call_advance(call);
}

void api_call_later(struct api_call *call)
{
	struct executor *executor = loop_executor(call->api->loop);
	if (call->turn_posted)
		return;
	call->turn_posted = true;
	executor->post(executor, &call->turn);
}

void api_call_go_on(struct api_call *call)
{
	if (call->request && !call->stalled && !call->turn_posted)
		api_call_advance(call);
}

void api_call_drained(struct http_request *request)
{
	struct api_call *call = api_call_from(request->owner);
	ASSERT(call->request == request);
	int64_t stalled_us = api_call_now_us(call) - call->stalled_us;
	call->stalled = false;
	call->begun_us += stalled_us;
	if (call->deadline_us)
		call->deadline_us += stalled_us;
	api_call_go_on(call);
}

void api_call_aborted(struct http_request *request, UNUSED int err)
{
	if (!request->owner)
		return;
	struct api_call *call = api_call_from(request->owner);
	ASSERT(call->request == request);
	if (call->job && !call->carried_through)
		job_stop(call->job);
	api_call_log_if_slow(call, "its client did not wait");
	api_call_leave(call);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static void api_call_job_run(UNUSED struct job *job, void *owner)
{
	struct api_call *call = api_call_from(owner);
	call->kind->run(call);
}

static void api_call_over(struct api_call *call)
{
	if (call->kind->over)
		call->kind->over(call);
	else if (call->request && call->err)
		api_call_fail_with(call, call->err, call->error.text);
	else if (call->request)
		api_call_end(call);
}

static void api_call_job_done(void *owner)
{
	struct api_call *call = api_call_from(owner);
	ASSERT(call->held > 0);
	job_free(call->job);
	call->job = NULL;
	api_call_over(call);
	call->held--;
	api_call_free_if_over(call);
}

void api_call_start_job(struct api_call *call)
{
	ASSERT(call->kind->run && !call->job);
	call->err = ERR_CANCELLED;
	call->held++;
	if (job_start(call->kind->job_name, api_call_job_run, api_call_job_done, call,
		      loop_executor(call->api->loop), &call->job) == 0)
		return;
	call->held--;
	api_call_fail(call, 503, "%d background jobs run, which is the most; try again later",
		      JOBS_MAX);
}

bool api_call_may_go_on(const struct api_call *call)
{
	return auth_still_may(call->api->auth, call->request);
}

/* Streams without an end, whose callers' credentials have changed or are no more. */
static void api_calls_end_endless(const struct api *api)
{
	for (struct api_call *call = api->calls, *next; call; call = next) {
		next = call->next;
		if (!call->endless || !call->request || api_call_may_go_on(call))
			continue;
		http_stream_end(call->request);
		api_call_leave(call);
	}
}

/* Who answers stays in the list, since something of it is held. */
void api_calls_tick(const struct api *api)
{
	struct errbuf e;
	api_calls_end_endless(api);
	for (struct api_call *call = api->calls; call; call = call->next) {
		if (!call->kind->late || !call->request || !api_call_check_time(call, &e))
			continue;
		ASSERT(call->held);
		call->kind->late(call);
	}
}

bool api_calls_have(const struct api *api, const struct api_call_kind *kind)
{
	const struct api_call *call = api->calls;
	while (call && call->kind != kind)
		call = call->next;
	return call != NULL;
}

void api_calls_stop(const struct api *api)
{
	for (const struct api_call *call = api->calls; call; call = call->next) {
		if (call->job)
			job_stop(call->job);
	}
}
