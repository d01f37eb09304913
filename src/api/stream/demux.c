/* /api/streams/demux: what is read of the lines of streams whose datatypes have rules. */
#include "api/stream/streams.h"

#include "api/call.h"
#include "api/stream/which.h"
#include "stream/known.h"
#include "stream/streams.h"

enum {
	DEMUX_ARENA_MAX_BYTES = 1 << 20,
	DEMUX_ANSWER_MAX_BYTES = 16 << 20,
	DEMUX_ENOUGH = 1, /* stops the walk, without an error */
};

/* ---- GET: how each does ---------------------------------------------------------------------- */

struct demux_list_question {
	struct which_streams which;
};

struct demux_list_call {
	struct api_call call;
	struct demux_list_question asked; /* texts in the call's arena */
	struct stream_id after;
	struct buf last; /* the address of the last one that is told */
	size_t count;
	bool more;
};

static const struct api_call_kind demux_list_kind;

static struct demux_list_call *demux_list_call_of(struct api_call *call)
{
	ASSERT(call->kind == &demux_list_kind);
	return CONTAINER_OF(call, struct demux_list_call, call);
}

static void demux_put_state(struct json_writer *json, const struct stream_names *names,
			    const struct demux_state *state)
{
	json_write_object_begin(json);
	json_put_string(json, "source", names->source);
	json_put_string(json, "cluster", names->cluster);
	json_put_string(json, "datatype", names->datatype);
	json_put_string(json, "name", names->name);
	json_put_bool(json, "named", state->named);
	json_put_u64(json, "lines", state->counts.lines);
	json_put_u64(json, "passed", state->counts.passed);
	json_put_u64(json, "unread", state->counts.unread);
	json_put_u64(json, "late", state->counts.late);
	json_put_u64(json, "rest", state->counts.rest);
	json_put_u64(json, "series", state->series.table.count);
	json_put_u64(json, "bins_waiting", state->late_count);
	if (state->has_last)
		json_put_i64(json, "last", state->last_ms);
	if (state->example_len)
		json_put_string(json, "example",
				(struct slice){state->example, state->example_len});
	json_write_object_end(json);
}

static int demux_list_see(const struct stream_names *names, const struct demux_state *state,
			  void *owner)
{
	struct demux_list_call *call = owner;
	if (!stream_names_fit(&call->asked.which.names, names))
		return 0;
	call->more = call->count == call->asked.which.limit;
	if (call->more)
		return DEMUX_ENOUGH;
	demux_put_state(&call->call.json, names, state);
	buf_clear(&call->last);
	stream_address_put(names, 0, &call->last);
	call->count++;
	return 0;
}

static void demux_list_run(struct api_call *base)
{
	struct demux_list_call *call = demux_list_call_of(base);
	struct json_writer *json = &base->json;
	json_write_object_begin(json);
	json_write_key(json, "streams");
	json_write_array_begin(json);
	int err = demux_each(streams_site(base->api->streams), job_queue(base->job),
			     call->asked.which.tenant,
			     call->asked.which.token.data ? &call->after.names : NULL,
			     demux_list_see, call, &base->error);
	base->err = err == DEMUX_ENOUGH ? 0 : err;
	json_write_array_end(json);
	if (call->more)
		json_put_string(json, "token", buf_slice(&call->last));
	json_write_object_end(json);
}

static void demux_list_release(struct api_call *base)
{
	buf_release(&demux_list_call_of(base)->last);
}

static const struct api_call_kind demux_list_kind = {.arena_max_bytes = DEMUX_ARENA_MAX_BYTES,
						     .out_max_bytes = DEMUX_ANSWER_MAX_BYTES,
						     .job_name = "demux",
						     .run = demux_list_run,
						     .release = demux_list_release};

const struct param streams_demux_params[] = {WHICH_STREAMS(struct demux_list_question), {NULL}};

static void demux_list_end(struct http_request *request)
{
	struct demux_list_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &demux_list_kind);
	api_call_set_deadline(&call->call);
	buf_init(&call->last, STREAM_ADDRESS_MAX_BYTES);
	call->asked.which.limit = WHICH_STREAMS_LIMIT;
	int err = params_read_route(request, 0, &call->asked, &e);
	err = err ? err
		  : which_streams_keep(&call->asked.which, &call->call.arena, &call->after, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_demux_list = API_CALL_HANDLER(demux_list_end);

/* ---- POST: from the beginning -----------------------------------------------------------------
 */

struct demux_again_question {
	struct which_stream which;
};

struct demux_again_call {
	struct api_call call;
	struct demux_again_question asked; /* texts in the call's arena */
	struct stream_id id;
	bool made;
};

static const struct api_call_kind demux_again_kind;

static struct demux_again_call *demux_again_call_of(struct api_call *call)
{
	ASSERT(call->kind == &demux_again_kind);
	return CONTAINER_OF(call, struct demux_again_call, call);
}

static void demux_again_run(struct api_call *base)
{
	struct demux_again_call *call = demux_again_call_of(base);
	struct stream_known known = {.made = false};
	base->err = stream_known_read_blocks(&known, streams_site(base->api->streams),
					     job_queue(base->job), &call->id, &base->error);
	call->made = known.made;
	stream_known_release(&known);
}

/* Why it cannot be; 0: it will be. */
static int demux_again_ask(struct demux_again_call *call, struct errbuf *e)
{
	struct demux *demux = streams_demux(call->call.api->streams);
	if (!call->made)
		return errbuf_set(e, ERR_NOT_FOUND, "there is no such stream");
	if (!demux)
		return errbuf_set(e, ERR_BUSY, "this process makes no samples, or not yet");
	int err = demux_again(demux, &call->id);
	if (err == ERR_NOT_FOUND)
		return errbuf_set(e, err, "the datatype \"" SHOWN "\" has no rule",
				  SHOWN_OF(call->id.names.datatype));
	return err ? errbuf_set(e, err, "too many streams wait to be read") : 0;
}

static void demux_again_over(struct api_call *base)
{
	struct demux_again_call *call = demux_again_call_of(base);
	struct json_writer *json = &base->json;
	int err = base->err ? base->err : demux_again_ask(call, &base->error);
	if (!base->request)
		return;
	if (err) {
		api_call_fail_with(base, err, base->error.text);
		return;
	}
	json_write_object_begin(json);
	json_put_string(json, "stream", call->asked.which.stream);
	json_put_bool(json, "again", true);
	json_write_object_end(json);
	api_call_end(base);
}

static const struct api_call_kind demux_again_kind = {.arena_max_bytes = DEMUX_ARENA_MAX_BYTES,
						      .out_max_bytes = DEMUX_ANSWER_MAX_BYTES,
						      .job_name = "demux",
						      .run = demux_again_run,
						      .over = demux_again_over};

const struct param streams_demux_again_params[] = {WHICH_STREAM(struct demux_again_question),
						   {NULL}};

static void demux_again_end(struct http_request *request)
{
	struct demux_again_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &demux_again_kind);
	api_call_set_deadline(&call->call);
	int err = params_read_route(request, 0, &call->asked, &e);
	err = err ? err : which_stream_keep(&call->asked.which, &call->call.arena, &call->id, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_demux_again = API_CALL_HANDLER(demux_again_end);
