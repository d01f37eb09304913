/* DELETE /api/streams: all that is held of a stream goes. */
#include "api/stream/streams.h"

#include "api/call.h"
#include "stream/retain.h"
#include "stream/streams.h"

enum { DELETE_ARENA_MAX_BYTES = 64 << 10, DELETE_ANSWER_MAX_BYTES = 64 << 10 };

struct streams_delete_question {
	struct slice tenant, stream;
	bool dry_run;
};

struct streams_delete_call {
	struct api_call call;
	struct streams_delete_question asked; /* texts in the call's arena */
	struct stream_id id;
	uint64_t bytes;
};

static const struct api_call_kind streams_delete_kind;

static struct streams_delete_call *streams_delete_call_of(struct api_call *call)
{
	ASSERT(call->kind == &streams_delete_kind);
	return CONTAINER_OF(call, struct streams_delete_call, call);
}

static void streams_delete_run(struct api_call *base)
{
	struct streams_delete_call *call = streams_delete_call_of(base);
	base->err = stream_delete(streams_site(base->api->streams), job_queue(base->job), &call->id,
				  call->asked.dry_run, &call->bytes, &base->error);
}

static void streams_delete_over(struct api_call *base)
{
	struct streams_delete_call *call = streams_delete_call_of(base);
	struct json_writer *json = &base->json;
	if (!base->err && !call->asked.dry_run)
		streams_note_deleted(base->api->streams, &call->id);
	if (!base->request)
		return;
	if (base->err) {
		api_call_fail_with(base, base->err, base->error.text);
		return;
	}
	json_write_object_begin(json);
	json_put_string(json, "stream", call->asked.stream);
	json_put_u64(json, "bytes", call->bytes);
	json_put_bool(json, "dry_run", call->asked.dry_run);
	json_write_object_end(json);
	api_call_end(base);
}

static const struct api_call_kind streams_delete_kind = {.arena_max_bytes = DELETE_ARENA_MAX_BYTES,
							 .out_max_bytes = DELETE_ANSWER_MAX_BYTES,
							 .job_name = "delete",
							 .run = streams_delete_run,
							 .over = streams_delete_over};

#define DELETE_FIELD(field_) offsetof(struct streams_delete_question, field_)

const struct param streams_delete_params[] = {
	{"tenant", PARAM_TENANT, DELETE_FIELD(tenant), .help = "Whose stream."},
	{"stream", PARAM_TEXT, DELETE_FIELD(stream), .missing = "GET /api/streams lists them",
	 .help = "Its address."},
	{"dryRun", PARAM_FLAG, DELETE_FIELD(dry_run), .help = "Only says how many bytes would go."},
	{NULL}};

static int streams_delete_keep(struct streams_delete_call *call, struct errbuf *e)
{
	struct streams_delete_question *q = &call->asked;
	struct arena *arena = &call->call.arena;
	int err = params_keep(arena, &q->stream, "stream", 2 * STREAM_ADDRESS_MAX_BYTES, e);
	if (err)
		return err;
	q->tenant = arena_copy(arena, q->tenant);
	ASSERT(q->tenant.data); /* at most TENANT_MAX_BYTES */
	call->id.tenant = q->tenant;
	return stream_address_parse(q->stream, arena, &call->id.names, &call->id.incarnation, e);
}

static void streams_delete_end(struct http_request *request)
{
	struct streams_delete_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &streams_delete_kind);
	call->call.carried_through = true;
	int err = params_read_route(request, 0, &call->asked, &e);
	err = err ? err : streams_delete_keep(call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_delete = API_CALL_HANDLER(streams_delete_end);
