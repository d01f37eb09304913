/* Projects of Sentry's clients: listed from memory, changed by jobs. */
#include "api/fault/faults.h"

#include <inttypes.h>

#include "api/call.h"
#include "fault/fault.h"
#include "wire/number.h"

enum {
	PROJECTS_ARENA_MAX_BYTES = 64 << 10,
	PROJECTS_ANSWER_MAX_BYTES = 64 << 20,
};

enum projects_act { PROJECTS_ADD, PROJECTS_KEY_ADD, PROJECTS_KEY_REMOVE };

struct projects_call {
	struct api_call call;
	enum projects_act act;
	uint64_t number;
	struct slice text; /* name or key; in the call's arena, as what `base` points to */
	struct http_base base;
	struct fault_project project;
};

static const struct api_call_kind projects_kind;

static struct projects_call *projects_call_of(struct api_call *call)
{
	ASSERT(call->kind == &projects_kind);
	return CONTAINER_OF(call, struct projects_call, call);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* So that whoever asked can send there. */
static struct http_base projects_base(const struct http_request *request)
{
	struct http_base base = http_base_of(request);
	if (!base.host.len)
		base.host = SLICE("localhost");
	return base;
}

static void projects_put(struct json_writer *json, const struct fault_project *project,
			 const struct http_base *at)
{
	struct buf dsn;
	buf_init(&dsn, 64 << 10);
	json_write_object_begin(json);
	json_put_u64(json, "number", project->number);
	json_put_text(json, "tenant", project->tenant);
	json_write_key(json, "keys");
	json_write_array_begin(json);
	for (size_t i = 0; i < project->key_count; i++)
		json_write_text(json, project->keys[i]);
	json_write_array_end(json);
	json_write_key(json, "dsn");
	json_write_array_begin(json);
	for (size_t i = 0; i < project->key_count; i++) {
		buf_clear(&dsn);
		buf_printf(&dsn, "%s://%s@%.*s%.*s/%" PRIu64, at->scheme, project->keys[i],
			   (int)at->host.len, at->host.data, (int)at->prefix.len,
			   at->prefix.len ? at->prefix.data : "", project->number);
		json_write_string(json, buf_slice(&dsn));
	}
	json_write_array_end(json);
	json_write_object_end(json);
	buf_release(&dsn);
}

static void projects_list_end(struct http_request *request)
{
	struct json_writer json;
	struct buf out;
	size_t count;
	const struct http_base at = projects_base(request);
	if (!params_none(request))
		return;
	struct fault_project *list =
		fault_projects_copy(fault_projects_of(api_of(request)->fault), &count);
	buf_init(&out, PROJECTS_ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_write_object_begin(&json);
	json_write_key(&json, "projects");
	json_write_array_begin(&json);
	for (size_t i = 0; i < count; i++)
		projects_put(&json, &list[i], &at);
	json_write_array_end(&json);
	json_write_object_end(&json);
	http_reply(request, 200, "application/json", buf_slice(&out));
	buf_release(&out);
	mem_free(list);
}

/* ---- Changes --------------------------------------------------------------------------------- */

static void projects_run(struct api_call *base)
{
	struct projects_call *call = projects_call_of(base);
	struct fault_projects *projects = fault_projects_of(base->api->fault);
	struct task_queue *queue = job_queue(base->job);
	switch (call->act) {
	case PROJECTS_ADD:
		call->call.err = fault_projects_add(projects, queue, call->text, &call->project,
						    &call->call.error);
		return;
	case PROJECTS_KEY_ADD:
		call->call.err = fault_projects_add_key(projects, queue, call->number,
							&call->project, &call->call.error);
		return;
	case PROJECTS_KEY_REMOVE:
		call->call.err =
			fault_projects_remove_key(projects, queue, call->number, call->text,
						  &call->project, &call->call.error);
		return;
	}
}

static void projects_over(struct api_call *base)
{
	struct projects_call *call = projects_call_of(base);
	if (!base->request)
		return;
	if (call->call.err) {
		api_call_fail_with(base, call->call.err, call->call.error.text);
		return;
	}
	base->status = call->act == PROJECTS_KEY_REMOVE ? 200 : 201;
	projects_put(&base->json, &call->project, &call->base);
	api_call_end(base);
}

static const struct api_call_kind projects_kind = {.arena_max_bytes = PROJECTS_ARENA_MAX_BYTES,
						   .out_max_bytes = PROJECTS_ANSWER_MAX_BYTES,
						   .job_name = "projects",
						   .run = projects_run,
						   .over = projects_over};

static void projects_begin(struct http_request *request, enum projects_act act, uint64_t number,
			   struct slice text)
{
	struct projects_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &projects_kind);
	call->call.carried_through = true;
	call->act = act;
	call->number = number;
	call->text = arena_copy(&call->call.arena, text.data ? text : SLICE(""));
	call->base = projects_base(request);
	call->base.host = arena_copy(&call->call.arena, call->base.host);
	ASSERT(call->text.data && call->base.host.data); /* parts of a head */
	call->call.err = ERR_CANCELLED;                  /* until it has run */
	api_call_start_job(&call->call);
}

const struct param projects_add_params[] = {
	{"name", PARAM_TEXT, 0, .missing = "", .help = "The tenant that it is for."}, {NULL}};

static void projects_add_end(struct http_request *request)
{
	struct slice name;
	struct errbuf e = {""};
	if (params_read_route(request, 0, &name, &e))
		http_reply_error(request, 400, "%s", e.text);
	else
		projects_begin(request, PROJECTS_ADD, 0, name);
}

/* /oops/projects/NUMBER/keys */
static uint64_t projects_number(const struct http_request *request)
{
	uint64_t number = 0;
	ASSERT(request->segment_count >= 4);
	struct slice digits = request->segments[2];
	int err = number_parse_u64(digits.data, digits.data + digits.len, &number);
	return err ? 0 : number;
}

static void projects_key_add_end(struct http_request *request)
{
	if (params_none(request))
		projects_begin(request, PROJECTS_KEY_ADD, projects_number(request), SLICE(""));
}

static void projects_key_remove_end(struct http_request *request)
{
	struct slice key = request->segment_count > 4 ? request->segments[4] : SLICE("");
	if (params_none(request))
		projects_begin(request, PROJECTS_KEY_REMOVE, projects_number(request), key);
}

const struct http_handler projects_list = {.end = projects_list_end};
const struct http_handler projects_add = API_CALL_HANDLER(projects_add_end);
const struct http_handler projects_key_add = API_CALL_HANDLER(projects_key_add_end);
const struct http_handler projects_key_remove = API_CALL_HANDLER(projects_key_remove_end);
