/* GET /api/streams/tail: lines of logs as they come, as server-sent events (HTML, 9.2).
 *
 * What a client has not read waits with its reader (stream/tail.h), which tells it how much was
 * missed. If it reads nothing for http.write_timeout the stream ends. */
#include "api/stream/streams.h"

#include "api/events.h"
#include "api/stream/lines.h"
#include "stream/streams.h"

enum {
	TAIL_ARENA_MAX_BYTES = 64 << 10,
	/* One event: a byte of a text is six where JSON escapes it. It finds room in what may wait
	 * for a client that was not told to wait (http_limits.unsent_max_bytes). */
	TAIL_OUT_MAX_BYTES = 6 * (LINE_FOUND_TEXT_MAX_BYTES + STREAM_ADDRESS_MAX_BYTES) + 1024,
};

struct tail_question {
	struct lines_question lines;
	struct slice content;
};

struct tail_call {
	struct api_call call;
	struct events events;
	struct tail_question asked; /* texts in the call's arena */
	struct tail_reader *reader;
};

static const struct api_call_kind tail_kind;

static struct tail_call *tail_call_of(struct api_call *call)
{
	ASSERT(call->kind == &tail_kind);
	return CONTAINER_OF(call, struct tail_call, call);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void tail_send(struct tail_call *call, const struct stream_news *news)
{
	struct buf *out = &call->call.out;
	if (news->line) {
		buf_append_text(out, "event: line\ndata: ");
		json_writer_init(&call->call.json, out);
		lines_put(&call->call.json, news->line);
		buf_append_text(out, "\n\n");
	} else if (news->without_rule.streams) {
		struct json_writer *json = &call->call.json;
		buf_append_text(out, "event: without_rule\ndata: ");
		json_writer_init(json, out);
		json_write_object_begin(json);
		json_put_u64(json, "streams", news->without_rule.streams);
		lines_put_unknown(json, &news->without_rule);
		json_write_object_end(json);
		buf_append_text(out, "\n\n");
	} else {
		buf_printf(out, "event: missed\ndata: {\"bytes\":%llu}\n\n",
			   (unsigned long long)news->missed_bytes);
	}
	events_send(&call->events);
}

/* What has come, as far as the client reads it; and that the server is there, where nothing has. */
static void tail_tell(struct tail_call *call)
{
	struct stream_news news;
	while (!call->events.full && stream_tail_next(call->reader, &news))
		tail_send(call, &news);
	if (call->events.full || !events_are_quiet(&call->events))
		return;
	buf_append_text(&call->call.out, ":\n\n");
	events_send(&call->events);
}

static void tail_ready(void *owner)
{
	tail_tell(tail_call_of(api_call_from(owner)));
}

static void tail_drained(struct http_request *request)
{
	struct tail_call *call = tail_call_of(api_call_from(request->owner));
	call->events.full = false;
	tail_tell(call);
}

/* ---- The call -------------------------------------------------------------------------------- */

static void tail_ended(struct api_call *base)
{
	stream_tail_close(&tail_call_of(base)->reader);
}

static const struct api_call_kind tail_kind = {.arena_max_bytes = TAIL_ARENA_MAX_BYTES,
					       .out_max_bytes = TAIL_OUT_MAX_BYTES,
					       .ended = tail_ended};

const struct param streams_tail_params[] = {
	LINES_PARAMS_OF_STREAMS(struct tail_question),
	{"content", PARAM_TEXT, offsetof(struct tail_question, content),
	 .help = "Only lines that have a text which this regular expression fits, as Chukwa has "
		 "it."},
	{NULL}};

static int tail_read(const struct http_request *request, struct tail_call *call, struct errbuf *e)
{
	struct tail_question *q = &call->asked;
	struct lines_question *lines = &q->lines;
	struct arena *arena = &call->call.arena;
	uint64_t incarnation = 0;
	int err = params_read_route(request, clock_wall_ms(call->call.api->clock), q, e);
	err = err ? err : lines_keep(arena, lines, &incarnation, e);
	if (!err)
		err = params_keep(arena, &q->content, "content", LINES_TEXT_MAX_BYTES, e);
	if (err)
		return err;
	struct datatypes *datatypes = streams_datatypes(call->call.api->streams);
	const struct stream_tail_rules rules = {.tenant = lines->tenant,
						.names = lines->names,
						.incarnation = incarnation,
						.q = lines->q,
						.content = q->content,
						.datatypes = datatypes,
						.ready = tail_ready,
						.owner = &call->call};
	err = stream_tail_open(streams_tail(call->call.api->streams), &rules, &call->reader, e);
	datatypes_free(datatypes);
	return err;
}

static void tail_end(struct http_request *request)
{
	struct tail_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &tail_kind);
	events_init(&call->events, &call->call);
	int err = tail_read(request, call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else if (events_begin(&call->events))
		tail_tell(call);
}

const struct http_handler streams_tail_handler = {
	.end = tail_end, .drained = tail_drained, .abort = api_call_aborted};
