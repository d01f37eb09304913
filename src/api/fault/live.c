/* GET /oops/live: reports as they come, as server-sent events (HTML, 9.2).
 *
 * A client that does not read is told nothing until it has, and then how much that was; what was
 * received before it came is sent as fast as it reads. If it reads nothing for http.write_timeout
 * the stream ends. */
#include "api/fault/faults.h"

#include "api/events.h"
#include "api/fault/notation.h"
#include "api/fault/reports.h"
#include "base/stats.h"
#include "conf/conf.h"
#include "fault/fault.h"

enum {
	LIVE_ARENA_MAX_BYTES = 64 << 10,
	LIVE_OUT_MAX_BYTES = 64 << 10, /* one event */
};

struct live_question {
	struct slice tenant, token;
	struct slice texts[FAULT_TEXTS];
};

struct live_call {
	struct api_call call;
	struct events events;
	struct live_question question; /* its texts are in the call's arena */
	struct fault_viewer viewer;
	bool owes_ready;         /* that is to be said when the client has read */
	bool again;              /* it is to begin again then, behind `viewer.seen` */
	uint64_t held_back;      /* since then, with what was missed */
	struct fault_order last; /* that it was told of, or that is not for it */
};

static const struct api_call_kind live_kind;

static struct live_call *live_call_of(struct api_call *call)
{
	ASSERT(call->kind == &live_kind);
	return CONTAINER_OF(call, struct live_call, call);
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* count 0: nobody knows how many. */
static void live_send_missed(struct live_call *call, uint64_t count)
{
	if (count)
		buf_printf(&call->call.out, "event: missed\ndata: {\"reports\":%llu}\n\n",
			   (unsigned long long)count);
	else
		buf_append_text(&call->call.out, "event: missed\ndata: {}\n\n");
	events_send(&call->events);
}

/* Behind which the client goes on when it comes again. */
static void live_put_id(struct live_call *call)
{
	char token[NOTATION_TOKEN_BYTES];
	notation_put_token(&call->last, token);
	buf_printf(&call->call.out, "id: %s\n", token);
}

static void live_put_report(struct live_call *call, const struct fault_listed *report)
{
	struct buf *out = &call->call.out;
	live_put_id(call);
	buf_append_text(out, "event: report\ndata: ");
	json_writer_init(&call->call.json, out);
	reports_put_json(&call->call.json, report);
	buf_append_text(out, "\n\n");
}

/* The event is the same for all who are told of it. */
static void live_send_report(struct live_call *call, const struct fault_told *told, size_t i)
{
	struct slice *made = &told->made[i];
	call->last = told->reports[i].order;
	if (made->data) {
		buf_append(&call->call.out, made->data, made->len);
	} else {
		live_put_report(call, &told->reports[i]);
		*made = arena_copy(told->arena, buf_slice(&call->call.out));
	}
	events_send(&call->events);
}

static void live_hold_back(struct live_call *call)
{
	call->held_back++;
	stat_add(STAT_fault_news_held_back, 1);
}

static void live_show_missed(struct live_call *call, const struct fault_told *told)
{
	if (call->events.full)
		call->held_back += told->missed; /* the counter of missed news has them */
	else if (told->missed || told->cut)
		live_send_missed(call, told->missed);
}

static void live_send_ready(struct live_call *call)
{
	call->owes_ready = call->events.full;
	if (call->events.full)
		return;
	live_put_id(call);
	buf_append_text(&call->call.out, "event: ready\ndata: {}\n\n");
	events_send(&call->events);
}

/* What was received before it came. What finds no room is asked for again. */
static void live_show_before(struct live_call *call, const struct fault_told *told)
{
	for (size_t i = 0; i < told->count && !call->again; i++) {
		call->again = call->events.full;
		if (call->again)
			break;
		live_send_report(call, told, i);
		call->viewer.seen = told->reports[i].order;
	}
	if (call->again)
		return;
	call->last = told->newest;
	if (call->viewer.has_seen && fault_order_compare(&call->viewer.seen, &call->last) > 0)
		call->last = call->viewer.seen;
	live_send_ready(call);
}

static void live_show_new(struct live_call *call, const struct fault_told *told)
{
	for (size_t i = 0; i < told->count; i++) {
		bool fits = fault_merges_fit(told->merges, call->question.texts,
					     told->reports[i].facts.texts);
		if (fits && call->events.full)
			live_hold_back(call);
		else if (!fits && !call->events.full)
			call->last = told->reports[i].order;
		else if (fits)
			live_send_report(call, told, i);
	}
	if (!call->events.full && events_are_quiet(&call->events)) {
		live_put_id(call);
		buf_append_text(&call->call.out, "\n");
		events_send(&call->events);
	}
}

static void live_show(struct fault_viewer *viewer, const struct fault_told *told)
{
	struct live_call *call = CONTAINER_OF(viewer, struct live_call, viewer);
	if (call->again)
		return; /* it begins again behind all this */
	live_show_missed(call, told);
	if (told->begins)
		live_show_before(call, told);
	else
		live_show_new(call, told);
}

static void live_watch(struct live_call *call)
{
	call->again = false;
	fault_live_watch(fault_live_of(call->call.api->fault), &call->viewer,
			 call->question.tenant);
}

static void live_drained(struct http_request *request)
{
	struct live_call *call = live_call_of(api_call_from(request->owner));
	uint64_t held_back = call->held_back;
	call->events.full = false;
	call->held_back = 0;
	if (call->again) {
		fault_live_leave(&call->viewer);
		live_watch(call);
		return;
	}
	if (held_back)
		live_send_missed(call, held_back);
	if (call->owes_ready)
		live_send_ready(call);
}

/* ---- The call -------------------------------------------------------------------------------- */

static void live_ended(struct api_call *base)
{
	fault_live_leave(&live_call_of(base)->viewer);
}

static const struct api_call_kind live_kind = {.arena_max_bytes = LIVE_ARENA_MAX_BYTES,
					       .out_max_bytes = LIVE_OUT_MAX_BYTES,
					       .ended = live_ended};

#define LIVE_FIELD(field_) offsetof(struct live_question, field_)
#define LIVE_TEXT(text_)   PARAM_TEXT, LIVE_FIELD(texts) + (text_) * sizeof(struct slice)

const struct param faults_live_params[] = {
	{"tenant", PARAM_TENANT, LIVE_FIELD(tenant), .help = "Whose reports."},
	{"context", LIVE_TEXT(FAULT_CONTEXT), .help = "Only of this context."},
	{"exception", LIVE_TEXT(FAULT_EXCEPTION), .help = "Only of this exception."},
	{"host", LIVE_TEXT(FAULT_HOST), .help = "Only of this machine."},
	{"release", LIVE_TEXT(FAULT_RELEASE), .help = "Only of this release."},
	{"environment", LIVE_TEXT(FAULT_ENVIRONMENT), .help = "Only of this environment."},
	{"level", LIVE_TEXT(FAULT_LEVEL), .help = "Only of this level."},
	{"user", LIVE_TEXT(FAULT_USER), .help = "Only of this user."},
	{"group", LIVE_TEXT(FAULT_GROUP), .help = "Only of this group."},
	{"token", PARAM_TEXT, LIVE_FIELD(token),
	 .help = "Begins behind the event with this id, as the header Last-Event-ID does."},
	{NULL}};

static int live_keep_texts(struct live_call *call, struct errbuf *e)
{
	struct live_question *q = &call->question;
	struct arena *arena = &call->call.arena;
	int err = params_keep(arena, &q->tenant, "tenant", TENANT_MAX_BYTES, e);
	for (enum fault_text i = 0; i < FAULT_TEXTS && !err; i++)
		err = notation_keep_fact(arena, i, &q->texts[i], e);
	return err;
}

/* A browser that comes again sends the header beside the address that it was given. */
static int live_read(const struct http_request *request, struct live_call *call, struct errbuf *e)
{
	struct live_question *q = &call->question;
	struct slice last = http_header(request, "Last-Event-ID");
	int err = params_read_route(request, clock_wall_ms(call->call.api->clock), q, e);
	if (last.len)
		q->token = last;
	call->viewer.has_seen = q->token.data != NULL;
	if (!err && q->token.data)
		err = notation_token(q->token, &call->viewer.seen, e);
	return err ? err : live_keep_texts(call, e);
}

static void live_end(struct http_request *request)
{
	struct live_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &live_kind);
	events_init(&call->events, &call->call);
	call->viewer.show = live_show;
	call->viewer.texts = call->question.texts;
	int err = live_read(request, call, &e);
	if (err) {
		api_call_fail(&call->call, 400, "%s", e.text);
		return;
	}
	if (events_begin(&call->events))
		live_watch(call);
}

const struct http_handler faults_live = {
	.end = live_end, .drained = live_drained, .abort = api_call_aborted};
