/* GET /api/streams/lines: the lines around a place of a stream. */
#include "api/stream/streams.h"

#include "api/stream/lines.h"
#include "stream/line_context.h"
#include "stream/streams.h"

enum {
	CONTEXT_ARENA_MAX_BYTES = 1 << 20,
	CONTEXT_ANSWER_MAX_BYTES = 64 << 20,
	CONTEXT_PRESET = 10,
};

struct context_question {
	struct slice tenant, stream;
	uint64_t offset;
	size_t before, behind;
};

struct context_call {
	struct api_call call;
	struct context_question asked;
	struct line_query query;
	struct line_context_rules rules;
	struct line_context context;
	bool read; /* there is one */
};

static const struct api_call_kind context_kind;

static struct context_call *context_call_of(struct api_call *call)
{
	ASSERT(call->kind == &context_kind);
	return CONTAINER_OF(call, struct context_call, call);
}

static void context_run(struct api_call *base)
{
	struct context_call *call = context_call_of(base);
	struct json_writer *json = &base->json;
	call->read = true;
	base->err = line_context_read(&call->context, streams_site(base->api->streams),
				      job_queue(base->job), &call->rules, &base->error);
	if (base->err)
		return;
	json_write_object_begin(json);
	json_write_key(json, "lines");
	json_write_array_begin(json);
	for (size_t i = 0; i < call->context.count; i++)
		lines_put(json, &call->context.list[i]);
	json_write_array_end(json);
	json_put_bool(json, "held", call->context.held);
	lines_put_work(json, &call->context.scan.work);
	json_write_object_end(json);
}

static void context_release(struct api_call *base)
{
	struct context_call *call = context_call_of(base);
	if (call->read)
		line_context_release(&call->context);
	line_query_release(&call->query);
}

static const struct api_call_kind context_kind = {.arena_max_bytes = CONTEXT_ARENA_MAX_BYTES,
						  .out_max_bytes = CONTEXT_ANSWER_MAX_BYTES,
						  .job_name = "lines",
						  .run = context_run,
						  .release = context_release};

#define CONTEXT_FIELD(field_) offsetof(struct context_question, field_)

const struct param streams_lines_params[] = {
	{"tenant", PARAM_TENANT, CONTEXT_FIELD(tenant), .help = "Whose stream."},
	{"stream", PARAM_TEXT, CONTEXT_FIELD(stream), .missing = "GET /api/streams lists them",
	 .help = "Its address."},
	{"offset", PARAM_NUMBER, CONTEXT_FIELD(offset), 0, INT64_MAX,
	 .missing = "a search says it of each line", .help = "Of a byte of the line."},
	{"before", PARAM_NUMBER, CONTEXT_FIELD(before), 0, LINE_CONTEXT_MAX,
	 .help = "So many lines before it; 10 where it is left out."},
	{"behind", PARAM_NUMBER, CONTEXT_FIELD(behind), 0, LINE_CONTEXT_MAX,
	 .help = "So many lines behind it; 10 where it is left out."},
	{NULL}};

static int context_read(const struct http_request *request, struct context_call *call,
			struct errbuf *e)
{
	struct context_question *q = &call->asked;
	*q = (struct context_question){.before = CONTEXT_PRESET, .behind = CONTEXT_PRESET};
	int err = params_read_route(request, 0, q, e);
	struct lines_question lines = {.tenant = q->tenant,
				       .stream = q->stream,
				       .since_ms = INT64_MIN,
				       .until_ms = INT64_MAX};
	call->rules.offset = q->offset;
	call->rules.before = q->before;
	call->rules.behind = q->behind;
	return err ? err : lines_read(&call->call, &lines, &call->query, &call->rules.scan, e);
}

static void context_end(struct http_request *request)
{
	struct context_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &context_kind);
	api_call_set_deadline(&call->call);
	int err = context_read(request, call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_lines = API_CALL_HANDLER(context_end);
