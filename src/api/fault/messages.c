/* GET /oops/messages: what reports have brought about (fault/message.h). */
#include "api/fault/faults.h"

#include "api/call.h"
#include "api/fault/notation.h"
#include "fault/fault.h"

enum {
	MESSAGES_LIMIT = 100,
	MESSAGES_LIMIT_MAX = 1000,
	MESSAGES_ARENA_MAX_BYTES = 64 << 10,
	MESSAGES_ANSWER_MAX_BYTES = 16 << 20,
};

struct messages_question {
	struct slice tenant;
	int64_t since_ms, until_ms;
	int kind; /* its place in fault_message_kinds; -1: it was not given */
	bool held_back;
	size_t limit;
};

struct messages_call {
	struct api_call call;
	struct slice tenant; /* in the call's arena */
	struct fault_message_filter filter;
};

static const struct api_call_kind messages_kind;

static struct messages_call *messages_call_of(struct api_call *call)
{
	ASSERT(call->kind == &messages_kind);
	return CONTAINER_OF(call, struct messages_call, call);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void messages_put(struct messages_call *call, const struct fault_message_list *list)
{
	struct json_writer *json = &call->call.json;
	json_write_object_begin(json);
	json_write_key(json, "messages");
	json_write_array_begin(json);
	for (size_t i = 0; i < list->count; i++) {
		json_write_object_begin(json);
		fault_message_put_json(json, &list->list[i]);
		json_write_object_end(json);
	}
	json_write_array_end(json);
	json_put_bool(json, "more", list->cut);
	json_write_object_end(json);
}

/* ---- The call -------------------------------------------------------------------------------- */

static void messages_run(struct api_call *base)
{
	struct messages_call *call = messages_call_of(base);
	struct fault_message_list list;
	base->err = fault_messages_list(fault_site_of(base->api->fault), job_queue(base->job),
					call->tenant, &call->filter, &list, &base->error);
	if (!base->err)
		messages_put(call, &list);
	fault_message_list_release(&list);
}

static const struct api_call_kind messages_kind = {.arena_max_bytes = MESSAGES_ARENA_MAX_BYTES,
						   .out_max_bytes = MESSAGES_ANSWER_MAX_BYTES,
						   .job_name = "messages",
						   .run = messages_run};

#define MESSAGES_FIELD(field_) offsetof(struct messages_question, field_)

const struct param faults_messages_params[] = {
	{"tenant", PARAM_TENANT, MESSAGES_FIELD(tenant), .help = "Whose messages."},
	{"since", PARAM_TIME, MESSAGES_FIELD(since_ms), .help = "Made then or later."},
	{"until", PARAM_TIME, MESSAGES_FIELD(until_ms), .help = "Made before then."},
	{"kind", PARAM_WORD, MESSAGES_FIELD(kind), .words = fault_message_kinds,
	 .help = "Only new groups; groups that were resolved and have a report (regressed), or "
		 "were muted until now (unmuted), that have more than "
		 "usual (risen); days that are over; sums of messages that were "
		 "held back."},
	{"heldBack", PARAM_FLAG, MESSAGES_FIELD(held_back),
	 .help = "Also those that were held back, since there were so many."},
	{"limit", PARAM_NUMBER, MESSAGES_FIELD(limit), 1, MESSAGES_LIMIT_MAX,
	 .help = "At most so many; 100."},
	{NULL}};

static int messages_read(const struct http_request *request, struct messages_call *call,
			 struct errbuf *e)
{
	struct messages_question q = {
		.since_ms = INT64_MIN, .until_ms = INT64_MAX, .kind = -1, .limit = MESSAGES_LIMIT};
	int err = params_read_route(request, clock_wall_ms(call->call.api->clock), &q, e);
	if (err)
		return err;
	call->filter = (struct fault_message_filter){.after_us = INT64_MIN,
						     .from_us = notation_us(q.since_ms),
						     .to_us = notation_us(q.until_ms),
						     .kind = q.kind,
						     .held_back = q.held_back,
						     .limit = q.limit};
	call->tenant = arena_copy(&call->call.arena, q.tenant);
	ASSERT(call->tenant.data); /* at most TENANT_MAX_BYTES */
	return 0;
}

static void messages_end(struct http_request *request)
{
	struct messages_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &messages_kind);
	api_call_set_deadline(&call->call);
	int err = messages_read(request, call, &e);
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
		return;
	}
	api_call_start_job(&call->call);
}

const struct http_handler faults_messages = API_CALL_HANDLER(messages_end);
