/* `GET /api/query`: the points of a metric's series. Parameters in query_params.h, shapes in
 * query_encode.h.
 *
 * What is wrong is answered before anything else: 400 names the parameter, 422 a limit. A short
 * answer leaves whole, a long one as a stream as fast as the client reads, encoded in pieces with
 * other work of the loop between them. Where it was cut, the header (or trailer) X-Granary-Cut says
 * by what: `points` or `time`. If the store fails half-way, the connection is closed without the
 * end. */
#include "api/metrics/metrics.h"

#include "api/call.h"
#include "api/metrics/answered_by.h"
#include "api/metrics/device_names.h"
#include "api/metrics/interface_alias.h"
#include "api/metrics/query_encode.h"
#include "api/metrics/query_params.h"
#include "api/opentsdb/opentsdb.h"
#include "api/opentsdb/uri.h"
#include "base/stats.h"

enum {
	TURN_POINTS = 8192, /* encoded before other work of the loop gets its turn: half a ms */
	FLUSH_BYTES = 64 << 10,
};

struct query_http_call {
	struct api_call call;
	struct query *query;
	struct alias alias; /* goes first where one is asked for */
	struct device_names names;
	struct encoder encoder;
	bool said; /* which data answers */
};

/* ---- Ends ---------------------------------------------------------------------------------- */

static const struct api_call_kind query_http_kind;

static struct query_http_call *query_http_call_of(struct api_call *call)
{
	ASSERT(call->kind == &query_http_kind);
	return CONTAINER_OF(call, struct query_http_call, call);
}

static void query_http_ended(struct api_call *base)
{
	struct query_http_call *call = query_http_call_of(base);
	query_free(call->query);
	alias_release(&call->alias);
	device_names_release(&call->names);
}

static void query_http_release(struct api_call *base)
{
	struct query_http_call *call = query_http_call_of(base);
	encoder_release(&call->encoder);
}

/* The engine looks after a query's time. */
static const struct api_call_kind query_http_kind = {.out_max_bytes =
							     FLUSH_BYTES + ENCODE_CHUNK_MAX_BYTES,
						     .flush_bytes = FLUSH_BYTES,
						     .ended = query_http_ended,
						     .release = query_http_release};

static void query_http_fail(struct query_http_call *call, int err, const char *sentence)
{
	stat_add(STAT_queries_refused, 1);
	api_call_fail_with(&call->call, err, sentence);
}

/* ---- Encoding ------------------------------------------------------------------------------ */

/* The query has ended and all its points are encoded. */
static void query_http_end(struct query_http_call *call)
{
	const struct query *query = call->query;
	if (query->err) {
		struct errbuf e = query->error;
		query_http_fail(call, query->err, e.text);
		return;
	}
	encoder_end(&call->encoder);
	if (call->call.out.failed) {
		query_http_fail(call, ERR_DAMAGED, "the names of a series could not be read");
		return;
	}
	stat_add(STAT_query_points, (int64_t)query->points);
	call->call.cut = query->cut ? query->cut_why : NULL;
	api_call_end(&call->call);
}

/* Takes and encodes until there is nothing, the client is full, or others want their turn. */
static void query_http_advance(struct api_call *base)
{
	struct query_http_call *call = query_http_call_of(base);
	struct clock *clock = base->api->clock;
	size_t turn = 0;
	struct query_chunk chunk;
	if (!call->said)
		granularity_reply_header(base->request, call->query, call->encoder.granularities);
	call->said = true;
	if (!api_call_room(base))
		return;
	while (query_next(call->query, call->encoder.shape->chunk_points, &chunk)) {
		int64_t begun_us = clock->mono_us(clock);
		encoder_chunk(&call->encoder, &chunk);
		call->encoder.encode_us += clock->mono_us(clock) - begun_us;
		if (base->out.failed) {
			query_http_fail(call, ERR_DAMAGED,
					"the names of a series could not be read");
			return;
		}
		if (!api_call_room(base))
			return;
		turn += chunk.count;
		if (turn >= TURN_POINTS) {
			api_call_later(base);
			return;
		}
	}
	if (call->query->ended)
		query_http_end(call);
}

static void query_http_ready(void *owner)
{
	struct query_http_call *call = query_http_call_of(api_call_from(owner));
	api_call_go_on(&call->call);
}

/* ---- The handler --------------------------------------------------------------------------- */

/* Devices by their present names; what was found by alias is found by device, too. */
static int query_http_select_devices(struct query_http_call *call)
{
	struct query_spec *spec = &call->query->spec;
	bool strict;
	device_names_init(&call->names, call->call.api, spec->tenant);
	int err = device_names_select(&call->names, spec->selectors, spec->selector_count,
				      &call->query->arena, &strict);
	if (strict && !spec->filter) {
		spec->filter = device_names_keep;
		spec->filter_owner = &call->names;
	}
	if (call->names.inventory) {
		call->encoder.say_tags = device_names_tags;
		call->encoder.say_owner = &call->names;
	}
	return err ? errbuf_set(&call->query->error, err, "too many devices were renamed") : 0;
}

static void query_http_start(struct query_http_call *call)
{
	int err = query_http_select_devices(call);
	err = err ? err : query_start(call->query);
	struct errbuf e = call->query->error;
	if (err)
		query_http_fail(call, err, e.text);
}

static void query_http_alias_found(struct alias *alias, int err)
{
	struct query_http_call *call = query_http_call_of(api_call_from(alias->owner));
	struct errbuf e = alias->error;
	if (err) {
		query_http_fail(call, err, e.text);
		return;
	}
	alias_apply(alias, &call->query->spec);
	query_http_start(call);
}

static void query_http_begin(struct query_http_call *call)
{
	if (!alias_is_asked(&call->query->spec)) {
		query_http_start(call);
		return;
	}
	call->alias.api = call->call.api;
	call->alias.spec = &call->query->spec;
	call->alias.done = query_http_alias_found;
	call->alias.owner = call;
	alias_start(&call->alias);
}

static void query_http_request_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct query_http_call *call = mem_zalloc(sizeof(*call));
	struct query *query = query_new(api->queries, query_http_ready, call);
	struct query_question q;
	struct errbuf e;
	stat_add(STAT_queries, 1);
	api_call_init(&call->call, request, &query_http_kind);
	call->call.advance = query_http_advance;
	call->query = query;
	int err = params_query(request, clock_wall_ms(api->clock),
			       query_granularities(api->queries), &query->arena, &q, &e);
	query->spec = q.spec;
	encoder_init(&call->encoder, q.format == QUERY_CSV ? &encoder_csv : &encoder_json, query,
		     &call->call.out);
	call->call.content_type = call->encoder.shape->content_type;
	call->encoder.explain = q.explain;
	call->encoder.granularities = query_granularities(api->queries);
	if (err)
		query_http_fail(call, err, e.text);
	else if (!api_call_answers_head(&call->call))
		query_http_begin(call);
}

/* ---- Two forms ------------------------------------------------------------------------------- */

static void query_http_query_end(struct http_request *request)
{
	if (opentsdb_uri_asked(request))
		opentsdb_query_handler.end(request);
	else
		query_http_request_end(request);
}

const struct http_handler query_handler = API_CALL_HANDLER(query_http_query_end);
