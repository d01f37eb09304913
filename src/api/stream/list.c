/* GET /api/streams: which streams a tenant has, and what of each is held. */
#include "api/stream/streams.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/call.h"
#include "api/stream/which.h"
#include "stream/known.h"
#include "stream/streams.h"

enum {
	STREAMS_RANGES_MAX = 100, /* of one stream that are listed */
	STREAMS_ARENA_MAX_BYTES = 16 << 20,
	STREAMS_ANSWER_MAX_BYTES = 16 << 20,
	STREAMS_ENOUGH = 1, /* stops the walk, without an error */
};

struct streams_list_question {
	struct which_streams which;
};

struct streams_list_call {
	struct api_call call;
	struct streams_list_question asked; /* texts in the call's arena */
	struct stream_id after;
	bool begins_after;
	struct stream_made *found; /* in the call's arena */
	size_t count;
	bool more;
};

static const struct api_call_kind streams_list_kind;

static struct streams_list_call *streams_list_call_of(struct api_call *call)
{
	ASSERT(call->kind == &streams_list_kind);
	return CONTAINER_OF(call, struct streams_list_call, call);
}

/* ---- Finding --------------------------------------------------------------------------------- */

static int streams_list_see(const struct stream_made *made, void *owner)
{
	struct streams_list_call *call = owner;
	struct arena *arena = &call->call.arena;
	if (!stream_names_fit(&call->asked.which.names, &made->id.names))
		return 0;
	call->more = call->count == call->asked.which.limit;
	if (call->more)
		return STREAMS_ENOUGH;
	struct stream_made *kept = &call->found[call->count];
	*kept = *made;
	kept->id.tenant = call->asked.which.tenant;
	int err = stream_id_keep(&kept->id, arena);
	call->count += !err;
	return err;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void streams_list_put_ranges(struct json_writer *json, const char *key,
				    const struct offsets *offsets)
{
	json_write_key(json, key);
	json_write_array_begin(json);
	for (size_t i = 0; i < offsets->count && i < STREAMS_RANGES_MAX; i++) {
		json_write_array_begin(json);
		json_write_u64(json, offsets->list[i].begin);
		json_write_u64(json, offsets->list[i].end);
		json_write_array_end(json);
	}
	json_write_array_end(json);
}

static void streams_list_put_held(struct json_writer *json, const struct stream_known *known)
{
	const struct offsets *held = &known->held;
	streams_list_put_ranges(json, "held", held);
	streams_list_put_ranges(json, "sealed", &known->sealed);
	if (held->count > STREAMS_RANGES_MAX || known->sealed.count > STREAMS_RANGES_MAX)
		json_put_bool(json, "more_ranges", true);
	json_put_u64(json, "held_to", held->count ? held->list[held->count - 1].end : 0);
}

static void streams_list_put_address(struct json_writer *json, const char *key,
				     const struct stream_id *id)
{
	struct buf address;
	buf_init(&address, STREAM_ADDRESS_MAX_BYTES);
	stream_address_put(&id->names, id->incarnation, &address);
	json_put_string(json, key, buf_slice(&address));
	buf_release(&address);
}

static void streams_list_put(struct json_writer *json, const struct stream_made *made,
			     const struct stream_known *known)
{
	char digits[STREAM_INCARNATION_DIGITS + 1];
	snprintf(digits, sizeof(digits), "%016" PRIx64, made->id.incarnation);
	json_write_object_begin(json);
	streams_list_put_address(json, "stream", &made->id);
	json_put_string(json, "source", made->id.names.source);
	json_put_string(json, "cluster", made->id.names.cluster);
	json_put_string(json, "datatype", made->id.names.datatype);
	json_put_string(json, "name", made->id.names.name);
	json_put_text(json, "incarnation", digits);
	json_put_i64(json, "made", made->made_ms);
	streams_list_put_held(json, known);
	if (known->kept_from)
		json_put_u64(json, "kept_from", known->kept_from);
	if (known->tail_data_bytes) {
		json_write_key(json, "waiting");
		json_write_object_begin(json);
		json_put_u64(json, "bytes", known->tail_data_bytes);
		json_put_u64(json, "stored", known->tail_stored_bytes);
		json_put_i64(json, "oldest", known->oldest_ms);
		json_write_object_end(json);
	}
	json_write_object_end(json);
}

static int streams_list_put_all(struct streams_list_call *call)
{
	struct json_writer *json = &call->call.json;
	const struct stream_site *site = streams_site(call->call.api->streams);
	struct stream_known known = {.made = false};
	int err = 0;
	json_write_object_begin(json);
	json_write_key(json, "streams");
	json_write_array_begin(json);
	for (size_t i = 0; i < call->count && !err; i++) {
		err = stream_known_list(&known, site, job_queue(call->call.job), &call->found[i].id,
					&call->call.error);
		if (!err)
			streams_list_put(json, &call->found[i], &known);
	}
	json_write_array_end(json);
	if (call->more && call->count)
		streams_list_put_address(json, "token", &call->found[call->count - 1].id);
	json_write_object_end(json);
	stream_known_release(&known);
	return err;
}

static void streams_list_run(struct api_call *base)
{
	struct streams_list_call *call = streams_list_call_of(base);
	int err = stream_each(streams_site(base->api->streams), job_queue(base->job),
			      call->asked.which.tenant, call->begins_after ? &call->after : NULL,
			      streams_list_see, call, &base->error);
	base->err = err && err != STREAMS_ENOUGH ? err : streams_list_put_all(call);
}

static const struct api_call_kind streams_list_kind = {.arena_max_bytes = STREAMS_ARENA_MAX_BYTES,
						       .out_max_bytes = STREAMS_ANSWER_MAX_BYTES,
						       .job_name = "streams",
						       .run = streams_list_run};

/* ---- What is asked --------------------------------------------------------------------------- */

const struct param streams_list_params[] = {WHICH_STREAMS(struct streams_list_question), {NULL}};

static int streams_list_keep(struct streams_list_call *call, struct errbuf *e)
{
	struct which_streams *which = &call->asked.which;
	struct arena *arena = &call->call.arena;
	int err = which_streams_keep(which, arena, &call->after, e);
	if (err)
		return err;
	call->begins_after = which->token.data != NULL;
	call->found = arena_alloc(arena, which->limit * sizeof(*call->found));
	ASSERT(call->found); /* some of MB */
	return 0;
}

static void streams_list_end(struct http_request *request)
{
	struct streams_list_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &streams_list_kind);
	api_call_set_deadline(&call->call);
	call->asked.which.limit = WHICH_STREAMS_LIMIT;
	int err = params_read_route(request, 0, &call->asked, &e);
	err = err ? err : streams_list_keep(call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_list = API_CALL_HANDLER(streams_list_end);
