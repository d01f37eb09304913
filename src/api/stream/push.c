/* POST /loki/api/v1/push: lines of others' shippers, as clients of Grafana Loki push them. All
 * bodies are read and packed by a worker. Answers are texts, as Loki's are. */
#include "api/stream/post.h"
#include "api/stream/streams.h"

#include <strings.h>

#include "base/stats.h"
#include "ingest/loki.h"
#include "model/series.h"
#include "stream/streams.h"

enum { STREAMS_PUSH_ANSWER_MAX_BYTES = 64 << 10 };

static const char streams_push_text[] = "text/plain; charset=utf-8";

/* ---- The answer ------------------------------------------------------------------------------ */

/* 0: it is stored. Loki's clients send again what is answered with 429 or 5xx, and nothing else. */
static int streams_push_status(const struct stream_chunk *chunk)
{
	switch (chunk->outcome) {
	case STREAM_TAKEN:
	case STREAM_HELD:
		return 0;
	case STREAM_MANY:
	case STREAM_MANY_NEW:
	case STREAM_MANY_TENANTS:
	case STREAM_TOO_FAST:
		return 429;
	case STREAM_WAITS:
	case STREAM_OTHER:
	case STREAM_MANY_HOLES:
	case STREAM_TAIL_FULL:
	case STREAM_UNREADABLE:
	case STREAM_FAILED:
		break;
	}
	return 503;
}

/* Counts what became of each record. No chunk of a body that was turned away is stored. */
static void streams_push_count(const struct streams_post *call)
{
	stat_add(STAT_chunks_damaged, call->err == ERR_INVALID);
	for (size_t i = 0; i < call->batch.chunk_count; i++) {
		const struct stream_chunk *chunk = &call->batch.chunks[i];
		bool stored = !streams_push_status(chunk);
		stat_add(stored ? STAT_loki_taken : STAT_loki_failed,
			 (int64_t)chunk->append->count);
		stat_add(STAT_loki_repeated, (int64_t)chunk->append->repeated);
	}
}

/* Names what cannot be taken, and the first stream that is to be sent again. Returns the status; 0:
 * all is stored. */
static int streams_push_say_all(struct streams_post *call)
{
	struct buf *out = &call->call.out;
	int worst = 0;
	for (size_t i = 0; i < call->batch.item_count; i++)
		if (call->batch.items[i].sentence)
			buf_printf(out, "%s\n", call->batch.items[i].sentence);
	if (call->batch.unnamed)
		buf_printf(out, "and %zu more\n", call->batch.unnamed);
	if (out->len)
		worst = 400;
	for (size_t i = 0; i < call->batch.chunk_count; i++) {
		const struct stream_chunk *chunk = &call->batch.chunks[i];
		int status = streams_push_status(chunk);
		if (status <= worst)
			continue;
		worst = status;
		buf_printf(out, "stream `" SHOWN "` of " SHOWN " is to be sent again: ",
			   SHOWN_OF(chunk->id.names.name), SHOWN_OF(chunk->id.names.source));
		streams_post_say_outcome(call, chunk, out);
		buf_append_char(out, '\n');
	}
	return worst;
}

static void streams_push_answer(struct streams_post *call)
{
	int status = call->err == ERR_LIMIT ? 413 : call->err ? http_status_of(call->err) : 204;
	if (call->err)
		buf_printf(&call->call.out, "%s\n", call->error.text);
	int worst = call->err ? 0 : streams_push_say_all(call);
	if (worst)
		status = worst;
	if (status == 429 || status == 503)
		http_reply_header(call->call.request, "Retry-After", "1");
	call->call.status = status;
	call->call.content_type = status == 204 ? NULL : streams_push_text;
	api_call_end(&call->call);
}

/* ---- The route ------------------------------------------------------------------------------- */

static const struct api_call_kind streams_push_kind = {
	.arena_max_bytes = STREAMS_POST_ARENA_MAX_BYTES,
	.out_max_bytes = STREAMS_PUSH_ANSWER_MAX_BYTES,
	.release = streams_post_release,
	.late = streams_post_late};

static int streams_push_read(struct streams_post *call)
{
	return loki_batch_read(&call->batch, buf_slice(&call->call.body), call->tenant,
			       streams_collector(call->call.api->streams), &call->error);
}

static const struct streams_post_door streams_push_door = {
	.read = streams_push_read, .count = streams_push_count, .answer = streams_push_answer};

const struct param streams_push_params[] = {
	{"tenant", PARAM_TENANT, 0,
	 .help = "Whose streams they are, where the header X-Scope-OrgID does not say it."},
	{NULL}};

/* The header of Loki names the tenant; without it, what names it at all doors. */
static int streams_push_tenant(const struct http_request *request, struct slice *tenant,
			       struct errbuf *e)
{
	struct slice scope = http_header(request, "X-Scope-OrgID");
	int err = params_read_route(request, 0, tenant, e);
	if (err || !scope.data)
		return err;
	bool said = http_tenant(request).data || http_param(request, "tenant").data;
	if (said && !slice_equal(scope, *tenant))
		return errbuf_set(e, ERR_INVALID,
				  "the header X-Scope-OrgID is \"" SHOWN
				  "\" but the tenant is \"" SHOWN "\"",
				  SHOWN_OF(scope), SHOWN_OF(*tenant));
	if (!tenant_valid(scope))
		return errbuf_set(e, ERR_INVALID,
				  "the header X-Scope-OrgID is \"" SHOWN
				  "\", not 1 to %d of A-Za-z0-9_.-",
				  SHOWN_OF(scope), TENANT_MAX_BYTES);
	*tenant = scope;
	return 0;
}

static bool streams_push_is_protobuf(const struct http_request *request)
{
	struct slice type = http_header(request, "Content-Type");
	static const char protobuf[] = "application/x-protobuf";
	return type.len >= sizeof(protobuf) - 1 &&
	       strncasecmp(type.data, protobuf, sizeof(protobuf) - 1) == 0;
}

static void streams_push_end(struct http_request *request)
{
	struct slice tenant;
	struct errbuf e = {""};
	int status = 0;
	if (streams_push_is_protobuf(request)) {
		status = 415;
		(void)errbuf_set(&e, ERR_INVALID,
				 "bodies of protobuf are not taken: have the client push JSON "
				 "(Content-Type: application/json)\n");
	} else if (streams_push_tenant(request, &tenant, &e)) {
		status = 400;
	}
	if (status)
		http_reply(request, status, streams_push_text, slice_of(e.text));
	else
		streams_post_begin(request, &streams_push_kind, &streams_push_door, tenant);
}

const struct http_handler streams_push = API_CALL_HANDLER(streams_push_end);
