#include "api/metrics/query.h"

#include "api/metrics/interface_alias.h"
#include "api/metrics/device_names.h"
#include "api/opentsdb/opentsdb.h"
#include "api/opentsdb/uri.h"
#include "api/metrics/query_encode.h"
#include "api/metrics/answered_by.h"
#include "api/metrics/query_params.h"
#include "api/routes.h"
#include "api/reply_stream.h"
#include "base/stats.h"

enum {
	TURN_POINTS = 8192, /* encoded before other work of the loop gets its turn: half a ms */
};

/* One request at work. */
struct call {
	struct http_request *request; /* NULL: it has ended; freed when the turn comes */
	struct loop *loop;
	struct clock *clock;
	const struct query_engine *queries;
	struct query *query;
	struct alias alias; /* goes first where one is asked for */
	struct device_names names;
	struct encoder encoder;
	struct buf out;
	struct task turn;
	bool turn_posted;
	struct sending sending;
	bool said;    /* which data answers */
	bool encoded; /* out holds the rest of the answer */
};

/* query.timeout is a limit of what was asked: the same question would take as long again. */
int query_status(int err)
{
	return err == ERR_TIMEOUT ? 422 : http_status_of(err);
}

static void call_free(struct call *call)
{
	query_free(call->query);
	alias_release(&call->alias);
	device_names_release(&call->names);
	call->query = NULL;
	call->request = NULL;
	if (call->turn_posted)
		return;
	encoder_release(&call->encoder);
	buf_release(&call->out);
	mem_free(call);
}

/* ---- Ends ---------------------------------------------------------------------------------- */

static void fail(struct call *call, int err, const char *sentence)
{
	stat_add(STAT_queries_refused, 1);
	sending_fail(&call->sending, call->request, "a query", query_status(err), sentence);
	call_free(call);
}

static void complete(struct call *call)
{
	const struct query *query = call->query;
	stat_add(STAT_query_points, (int64_t)query->points);
	sending_end(&call->sending, call->request, buf_slice(&call->out),
		    query->cut ? query->cut_why : NULL);
	call_free(call);
}

/* ---- Encoding ------------------------------------------------------------------------------ */

/* Sends what was gathered; false: the client is to read first, or the call is over. */
static bool send_gathered(struct call *call)
{
	int err = sending_send(&call->sending, call->request, &call->out);
	if (err && err != ERR_BUSY)
		fail(call, err, "the answer could not be sent");
	return !err;
}

static void post_turn(struct call *call)
{
	struct executor *executor = loop_executor(call->loop);
	call->turn_posted = true;
	executor->post(executor, &call->turn);
}

/* The query has ended and all its points are encoded. */
static void end_answer(struct call *call)
{
	const struct query *query = call->query;
	if (query->err) {
		struct errbuf e = query->error;
		fail(call, query->err, e.text);
		return;
	}
	if (!call->encoded)
		encoder_end(&call->encoder);
	call->encoded = true;
	if (call->out.failed) {
		fail(call, ERR_DAMAGED, "the names of a series could not be read");
		return;
	}
	if (!call->sending.streaming || !call->out.len || send_gathered(call))
		complete(call);
}

/* Takes and encodes until there is nothing, the client is full, or others want their turn. */
static void advance(struct call *call)
{
	size_t turn = 0;
	struct query_chunk chunk;
	if (!call->said)
		grain_reply_header(call->request, call->query, query_grains(call->queries));
	call->said = true;
	if (call->out.len >= SENDING_FLUSH_BYTES && !send_gathered(call))
		return;
	while (query_take(call->query, call->encoder.shape->chunk_points, &chunk)) {
		int64_t begun_us = call->clock->mono_us(call->clock);
		encoder_chunk(&call->encoder, &chunk);
		call->encoder.encode_us += call->clock->mono_us(call->clock) - begun_us;
		if (call->out.failed) {
			fail(call, ERR_DAMAGED, "the names of a series could not be read");
			return;
		}
		if (call->out.len >= SENDING_FLUSH_BYTES && !send_gathered(call))
			return;
		turn += chunk.count;
		if (turn >= TURN_POINTS) {
			post_turn(call);
			return;
		}
	}
	if (call->query->ended)
		end_answer(call);
}

static void run_turn(struct task *task)
{
	struct call *call = CONTAINER_OF(task, struct call, turn);
	call->turn_posted = false;
	if (!call->request)
		call_free(call);
	else if (!call->sending.stalled)
		advance(call);
}

static void ready(void *owner)
{
	struct call *call = owner;
	if (!call->sending.stalled && !call->turn_posted)
		advance(call);
}

/* ---- The handler --------------------------------------------------------------------------- */

static struct call *call_new(struct http_request *request)
{
	struct api *api = api_of(request);
	struct call *call = mem_zalloc(sizeof(*call));
	call->request = request;
	call->loop = api->loop;
	call->clock = api->clock;
	call->queries = api->queries;
	call->turn.run = run_turn;
	call->query = query_new(api->queries, ready, call);
	buf_init(&call->out, SENDING_FLUSH_BYTES + ENCODE_CHUNK_MAX_BYTES);
	request->owner = call;
	return call;
}

/* Devices by their present names; what was found by alias is found by device, too. */
static int select_devices(struct call *call)
{
	struct query_spec *spec = &call->query->spec;
	bool strict;
	device_names_init(&call->names, api_of(call->request), spec->tenant);
	int err = device_names_select(&call->names, (struct catalog_selector *)spec->selectors,
				      spec->selector_count, &call->query->arena, &strict);
	if (strict && !spec->keep) {
		spec->keep = device_names_keep;
		spec->keep_owner = &call->names;
	}
	if (call->names.inventory) {
		call->encoder.say_tags = device_names_tags;
		call->encoder.say_owner = &call->names;
	}
	return err ? errbuf_set(&call->query->error, err, "too many devices were renamed") : 0;
}

static void start_query(struct call *call)
{
	int err = select_devices(call);
	err = err ? err : query_start(call->query);
	struct errbuf e = call->query->error;
	if (err)
		fail(call, err, e.text);
}

static void alias_found(struct alias *alias, int err)
{
	struct call *call = alias->owner;
	struct errbuf e = alias->error;
	if (err) {
		fail(call, err, e.text);
		return;
	}
	alias_apply(alias, &call->query->spec);
	start_query(call);
}

static void begin(struct call *call)
{
	if (!alias_is_asked(&call->query->spec)) {
		start_query(call);
		return;
	}
	call->alias.api = api_of(call->request);
	call->alias.spec = &call->query->spec;
	call->alias.done = alias_found;
	call->alias.owner = call;
	alias_start(&call->alias);
}

static void end_metric(struct http_request *request)
{
	struct call *call = call_new(request);
	struct query *query = call->query;
	enum query_format format = QUERY_JSON;
	bool explain = false;
	struct errbuf e;
	stat_add(STAT_queries, 1);
	int err = params_query(request, clock_wall_ms(call->clock), query_grains(call->queries),
			       &query->arena, &query->spec, &format, &explain, &e);
	encoder_init(&call->encoder, format == QUERY_CSV ? &encoder_csv : &encoder_json, query,
		     &call->out);
	call->sending = (struct sending){call->encoder.shape->content_type, .status = 200};
	if (!err && http_reply_head(request, call->encoder.shape->content_type)) {
		call_free(call);
		return;
	}
	call->encoder.explain = explain;
	call->encoder.grains = query_grains(call->queries);
	if (err)
		fail(call, err, e.text);
	else
		begin(call);
}

static void drained_metric(struct http_request *request)
{
	struct call *call = request->owner;
	call->sending.stalled = false;
	if (!call->turn_posted)
		advance(call);
}

static void aborted_metric(struct http_request *request, UNUSED int err)
{
	if (request->owner)
		call_free(request->owner);
}

/* ---- Two forms ------------------------------------------------------------------------------- */

static const struct http_handler by_metric = {
	.end = end_metric, .drained = drained_metric, .abort = aborted_metric};

static const struct http_handler *form_of(const struct http_request *request)
{
	return opentsdb_uri_asked(request) ? &opentsdb_query_handler : &by_metric;
}

static void end(struct http_request *request)
{
	form_of(request)->end(request);
}

static void drained(struct http_request *request)
{
	form_of(request)->drained(request);
}

static void aborted(struct http_request *request, int err)
{
	form_of(request)->abort(request, err);
}

const struct http_handler query_handler = {.end = end, .drained = drained, .abort = aborted};
