/* GET /oops/messages/live: messages as they are made, as server-sent events (HTML, 9.2).
 *
 * A client that does not read is told nothing until it has; then it goes on behind the last message
 * that it was told of, so none is left out. */
#include "api/fault/faults.h"

#include <inttypes.h>

#include "api/events.h"
#include "api/fault/notation.h"
#include "fault/message.h"
#include "fault/fault.h"
#include "wire/number.h"

enum {
	MESSAGES_LIVE_ARENA_MAX_BYTES = 64 << 10,
	MESSAGES_LIVE_OUT_MAX_BYTES = 64 << 10, /* one event */
};

struct messages_live_question {
	struct slice tenant, token, environment, level;
	int kind; /* its place in fault_message_kinds; -1: it was not given */
};

struct messages_live_call {
	struct api_call call;
	struct events events;
	struct messages_live_question question; /* its texts are in the call's arena */
	struct fault_message_viewer viewer;
	bool ready; /* the client was told so */
};

static const struct api_call_kind messages_live_kind;

static struct messages_live_call *messages_live_call_of(struct api_call *call)
{
	ASSERT(call->kind == &messages_live_kind);
	return CONTAINER_OF(call, struct messages_live_call, call);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void messages_live_put_id(struct messages_live_call *call)
{
	buf_printf(&call->call.out, "id: %" PRId64 "\n", call->viewer.seen_us);
}

static bool messages_live_fits(const struct messages_live_question *q,
			       const struct fault_message *message)
{
	return (q->kind < 0 || q->kind == (int)message->kind) &&
	       (!q->environment.data || slice_equal(q->environment, message->environment)) &&
	       (!q->level.data || slice_equal(q->level, message->level));
}

static void messages_live_tell(struct messages_live_call *call, const struct fault_message *message)
{
	struct buf *out = &call->call.out;
	call->viewer.seen_us = message->date_us;
	if (!messages_live_fits(&call->question, message))
		return;
	messages_live_put_id(call);
	buf_append_text(out, "event: message\ndata: ");
	json_writer_init(&call->call.json, out);
	json_write_object_begin(&call->call.json);
	fault_message_put_json(&call->call.json, message);
	json_write_object_end(&call->call.json);
	buf_append_text(out, "\n\n");
	events_send(&call->events);
}

static void messages_live_show(struct fault_message_viewer *viewer,
			       const struct fault_messages_told *told)
{
	struct messages_live_call *call = CONTAINER_OF(viewer, struct messages_live_call, viewer);
	if (call->events.full)
		return; /* it begins again behind all this */
	for (size_t i = told->count; i-- > 0 && !call->events.full;)
		messages_live_tell(call, &told->list[i]);
	if (call->events.full)
		return;
	if (told->begins && !call->ready) {
		call->ready = true;
		messages_live_put_id(call);
		buf_append_text(&call->call.out, "event: ready\ndata: {}\n\n");
		events_send(&call->events);
	} else if (events_are_quiet(&call->events)) {
		messages_live_put_id(call);
		buf_append_text(&call->call.out, "\n");
		events_send(&call->events);
	}
}

static void messages_live_watch(struct messages_live_call *call)
{
	struct fault_live *live = fault_live_of(call->call.api->fault);
	message_live_watch(fault_live_messages(live), &call->viewer, call->question.tenant);
	fault_live_wake(live);
}

static void messages_live_drained(struct http_request *request)
{
	struct messages_live_call *call = messages_live_call_of(api_call_from(request->owner));
	if (!call->events.full)
		return;
	call->events.full = false;
	message_live_leave(&call->viewer);
	messages_live_watch(call);
}

/* ---- The call -------------------------------------------------------------------------------- */

static void messages_live_ended(struct api_call *base)
{
	message_live_leave(&messages_live_call_of(base)->viewer);
}

static const struct api_call_kind messages_live_kind = {
	.arena_max_bytes = MESSAGES_LIVE_ARENA_MAX_BYTES,
	.out_max_bytes = MESSAGES_LIVE_OUT_MAX_BYTES,
	.ended = messages_live_ended};

#define MESSAGES_LIVE_FIELD(field_) offsetof(struct messages_live_question, field_)

const struct param faults_messages_live_params[] = {
	{"tenant", PARAM_TENANT, MESSAGES_LIVE_FIELD(tenant), .help = "Whose messages."},
	{"kind", PARAM_WORD, MESSAGES_LIVE_FIELD(kind), .words = fault_message_kinds,
	 .help = "Only of this kind."},
	{"environment", PARAM_TEXT, MESSAGES_LIVE_FIELD(environment),
	 .help = "Only of this environment."},
	{"level", PARAM_TEXT, MESSAGES_LIVE_FIELD(level), .help = "Only of this level."},
	{"token", PARAM_TEXT, MESSAGES_LIVE_FIELD(token),
	 .help = "Begins behind the event with this id, as the header Last-Event-ID does."},
	{NULL}};

static int messages_live_keep(struct messages_live_call *call, struct errbuf *e)
{
	struct messages_live_question *q = &call->question;
	struct arena *arena = &call->call.arena;
	int err = params_keep(arena, &q->tenant, "tenant", TENANT_MAX_BYTES, e);
	err = err ? err : notation_keep_fact(arena, FAULT_ENVIRONMENT, &q->environment, e);
	return err ? err : notation_keep_fact(arena, FAULT_LEVEL, &q->level, e);
}

/* A browser that comes again sends the header beside the address that it was given. */
static int messages_live_read(const struct http_request *request, struct messages_live_call *call,
			      struct errbuf *e)
{
	struct messages_live_question *q = &call->question;
	struct slice last = http_header(request, "Last-Event-ID");
	q->kind = -1;
	int err = params_read_route(request, clock_wall_ms(call->call.api->clock), q, e);
	if (last.len)
		q->token = last;
	call->viewer.has_seen = q->token.data != NULL;
	if (!err && q->token.data &&
	    number_parse_i64(q->token.data, q->token.data + q->token.len, &call->viewer.seen_us))
		err = errbuf_set(e, ERR_INVALID, "no message has the token " SHOWN,
				 SHOWN_OF(q->token));
	return err ? err : messages_live_keep(call, e);
}

static void messages_live_end(struct http_request *request)
{
	struct messages_live_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &messages_live_kind);
	events_init(&call->events, &call->call);
	call->viewer.show = messages_live_show;
	int err = messages_live_read(request, call, &e);
	if (err) {
		api_call_fail(&call->call, 400, "%s", e.text);
		return;
	}
	if (events_begin(&call->events))
		messages_live_watch(call);
}

const struct http_handler faults_messages_live = {
	.end = messages_live_end, .drained = messages_live_drained, .abort = api_call_aborted};
