/* DELETE /api/streams: all that is held of a stream goes. */
#include "api/stream/streams.h"

#include "api/call.h"
#include "api/stream/which.h"
#include "stream/retain.h"
#include "stream/streams.h"

enum { DELETE_ARENA_MAX_BYTES = 64 << 10, DELETE_ANSWER_MAX_BYTES = 64 << 10 };

struct streams_delete_question {
	struct which_stream which;
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
	json_put_string(json, "stream", call->asked.which.stream);
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

const struct param streams_delete_params[] = {WHICH_STREAM(struct streams_delete_question),
					      {"dryRun", PARAM_FLAG,
					       offsetof(struct streams_delete_question, dry_run),
					       .help = "Only says how many bytes would go."},
					      {NULL}};

static void streams_delete_end(struct http_request *request)
{
	struct streams_delete_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &streams_delete_kind);
	call->call.carried_through = true;
	int err = params_read_route(request, 0, &call->asked, &e);
	err = err ? err : which_stream_keep(&call->asked.which, &call->call.arena, &call->id, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_delete = API_CALL_HANDLER(streams_delete_end);
