/* /api/streams/demux: what is read of the lines of streams whose datatypes have rules. */
#include "api/stream/streams.h"

#include "api/call.h"
#include "stream/known.h"
#include "stream/streams.h"

enum {
	DEMUX_LIMIT = 100,
	DEMUX_LIMIT_MAX = 1000,
	DEMUX_TEXT_MAX_BYTES = 2 * STREAM_ADDRESS_MAX_BYTES,
	DEMUX_ARENA_MAX_BYTES = 1 << 20,
	DEMUX_ANSWER_MAX_BYTES = 16 << 20,
	DEMUX_ENOUGH = 1, /* stops the walk, without an error */
};

/* ---- GET: how each does ---------------------------------------------------------------------- */

struct demux_list_question {
	struct slice tenant, token;
	struct stream_names names; /* NULL data: any */
	size_t limit;
};

struct demux_list_call {
	struct api_call call;
	struct demux_list_question asked; /* texts in the call's arena */
	struct stream_names after;
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
	if (!stream_names_fit(&call->asked.names, names))
		return 0;
	call->more = call->count == call->asked.limit;
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
			     call->asked.tenant, call->asked.token.data ? &call->after : NULL,
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

#define DEMUX_FIELD(field_) offsetof(struct demux_list_question, field_)

const struct param streams_demux_params[] = {
	{"tenant", PARAM_TENANT, DEMUX_FIELD(tenant), .help = "Whose streams."},
	{"source", PARAM_TEXT, DEMUX_FIELD(names.source), .help = "Only those of this host."},
	{"cluster", PARAM_TEXT, DEMUX_FIELD(names.cluster), .help = "Only those of this cluster."},
	{"datatype", PARAM_TEXT, DEMUX_FIELD(names.datatype),
	 .help = "Only those of this datatype."},
	{"name", PARAM_TEXT, DEMUX_FIELD(names.name), .help = "Only those of this name."},
	{"limit", PARAM_NUMBER, DEMUX_FIELD(limit), 1, DEMUX_LIMIT_MAX,
	 .help = "At most so many; 100."},
	{"token", PARAM_TEXT, DEMUX_FIELD(token), .help = "Goes on where the last answer ended."},
	{NULL}};

static int demux_list_keep(struct demux_list_call *call, struct errbuf *e)
{
	struct demux_list_question *q = &call->asked;
	struct arena *arena = &call->call.arena;
	uint64_t incarnation;
	int err = params_keep(arena, &q->names.source, "source", DEMUX_TEXT_MAX_BYTES, e);
	if (!err)
		err = params_keep(arena, &q->names.cluster, "cluster", DEMUX_TEXT_MAX_BYTES, e);
	if (!err)
		err = params_keep(arena, &q->names.datatype, "datatype", DEMUX_TEXT_MAX_BYTES, e);
	if (!err)
		err = params_keep(arena, &q->names.name, "name", DEMUX_TEXT_MAX_BYTES, e);
	if (!err)
		err = params_keep(arena, &q->token, "token", DEMUX_TEXT_MAX_BYTES, e);
	if (err)
		return err;
	q->tenant = arena_copy(arena, q->tenant);
	ASSERT(q->tenant.data); /* at most TENANT_MAX_BYTES */
	if (!q->token.data)
		return 0;
	err = stream_address_parse(q->token, arena, &call->after, &incarnation, e);
	return err ? errbuf_prefix(e, err, "token") : 0;
}

static void demux_list_end(struct http_request *request)
{
	struct demux_list_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &demux_list_kind);
	api_call_set_deadline(&call->call);
	buf_init(&call->last, STREAM_ADDRESS_MAX_BYTES);
	call->asked.limit = DEMUX_LIMIT;
	int err = params_read_route(request, 0, &call->asked, &e);
	err = err ? err : demux_list_keep(call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_demux_list = API_CALL_HANDLER(demux_list_end);

/* ---- POST: from the beginning -----------------------------------------------------------------
 */

struct demux_again_question {
	struct slice tenant, stream;
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
	int err = demux ? demux_again(demux, &call->id) : ERR_BUSY;
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
	json_put_string(json, "stream", call->asked.stream);
	json_put_bool(json, "again", true);
	json_write_object_end(json);
	api_call_end(base);
}

static const struct api_call_kind demux_again_kind = {.arena_max_bytes = DEMUX_ARENA_MAX_BYTES,
						      .out_max_bytes = DEMUX_ANSWER_MAX_BYTES,
						      .job_name = "demux",
						      .run = demux_again_run,
						      .over = demux_again_over};

const struct param streams_demux_again_params[] = {
	{"tenant", PARAM_TENANT, offsetof(struct demux_again_question, tenant),
	 .help = "Whose stream."},
	{"stream", PARAM_TEXT, offsetof(struct demux_again_question, stream),
	 .missing = "GET /api/streams lists them",
	 .help = "Its address; all incarnations of its names are read."},
	{NULL}};

static int demux_again_keep(struct demux_again_call *call, struct errbuf *e)
{
	struct demux_again_question *q = &call->asked;
	struct arena *arena = &call->call.arena;
	int err = params_keep(arena, &q->stream, "stream", DEMUX_TEXT_MAX_BYTES, e);
	if (err)
		return err;
	q->tenant = arena_copy(arena, q->tenant);
	ASSERT(q->tenant.data); /* at most TENANT_MAX_BYTES */
	call->id.tenant = q->tenant;
	return stream_address_parse(q->stream, arena, &call->id.names, &call->id.incarnation, e);
}

static void demux_again_end(struct http_request *request)
{
	struct demux_again_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &demux_again_kind);
	api_call_set_deadline(&call->call);
	int err = params_read_route(request, 0, &call->asked, &e);
	err = err ? err : demux_again_keep(call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_demux_again = API_CALL_HANDLER(demux_again_end);
