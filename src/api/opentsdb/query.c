/* POST /api/query and GET /api/query?m=...: the queries of the body, one after the other, in one
 * answer.
 *
 * What is wrong is answered before anything else. A short answer leaves whole, a long one as a
 * stream as fast as the client reads, made in turns between which other work of the loop is done.
 * The limits of a query hold for all of them together: points, and the time, in which the client
 * was to read does not count. Where the answer was cut, the header (or trailer) X-Granary-Cut says
 * by what; what is put together here of several series is never cut but refused, since a part of a
 * sum is no sum. */
#include "api/metrics/interface_alias.h"
#include "api/opentsdb/opentsdb.h"
#include "api/opentsdb/answer.h"
#include "api/opentsdb/uri.h"
#include "api/metrics/query.h"
#include "api/metrics/answered_by.h"
#include "api/metrics/query_params.h"
#include "api/routes.h"
#include "api/reply_stream.h"
#include "base/stats.h"
#include "conf/conf.h"

enum {
	OUT_MAX_BYTES = 4 << 20, /* names and the query of a group come at once */
	BODY_TREE_BYTES = 64 << 20,
	TREE_FACTOR = 20, /* of JSON's bytes, what its tree may take */
	TURN_POINTS = 8192,
	TIMEOUT_PRESET_MS = 60000,
	GRANULARITIES_MAX_BYTES = 6 << 10, /* of a reply's headers */
};

enum phase {
	BEFORE_QUERY,   /* body.queries[at] is to be started */
	BETWEEN_GROUPS, /* of that query; its next chunk begins one */
	IN_GROUP,       /* its chunks are added, and what that completes is given */
	GROUP_ENDS,     /* there are no more of them; the rest of its points is given */
	COMPLETE,       /* out holds the rest of the answer */
};

/* One request at work. */
struct call {
	/* NULL: it has ended; freed when the turn comes, and the filters are let go. */
	struct http_request *request;
	struct loop *loop;
	struct clock *clock;
	int64_t timeout_ms, deadline_us, stalled_us;
	struct arena arena;
	struct slice tenant;
	struct buf uri; /* the body that the address stands for */
	struct opentsdb_body body;
	struct opentsdb_answer answer;
	struct buf out;
	struct task turn;
	bool turn_posted;
	bool held;            /* a thread looks at series with the filters of body.queries[at] */
	uint64_t filter_work; /* of the queries before it */
	struct sending sending;
	struct buf granularities; /* which data answers each query */
	bool said;                /* that of the query at work */
	const char *cut;
	enum phase phase;

	/* The query at work, body.queries[at]. */
	size_t at;
	struct query *query;
	struct device_names names;
	struct combine *combine;
	uint64_t points; /* of those before it, and what gaps were filled with */
	uint64_t given;  /* of it */
	/* A chunk that was taken, but not yet added. */
	bool has_chunk;
	struct query_chunk chunk;
	int64_t ts_ms[COMBINE_CHUNK_MAX];
	uint64_t bits[COMBINE_CHUNK_MAX];
	uint8_t types[COMBINE_CHUNK_MAX];
	/* The group at work. */
	size_t group;
	bool group_said; /* its head is in out */
	struct combine_point taken[COMBINE_CHUNK_MAX];
};

static void advance(struct call *call);

static int64_t mono_us(const struct call *call)
{
	return call->clock->mono_us(call->clock);
}

static void end_query(struct call *call)
{
	query_free(call->query);
	combine_free(call->combine);
	if (!call->held)
		device_names_release(&call->names);
	call->query = NULL;
	call->combine = NULL;
}

static void call_free(struct call *call)
{
	end_query(call);
	call->request = NULL;
	if (call->turn_posted || call->held)
		return;
	opentsdb_answer_release(&call->answer);
	arena_release(&call->arena);
	buf_release(&call->uri);
	buf_release(&call->out);
	buf_release(&call->granularities);
	mem_free(call);
}

/* ---- Ends ---------------------------------------------------------------------------------- */

static void fail(struct call *call, int err, const char *sentence)
{
	stat_add(STAT_queries_refused, 1);
	sending_fail(&call->sending, call->request, "a query", query_status(err), sentence);
	call_free(call);
}

/* Of one of several queries it says which. */
static void fail_query(struct call *call, int err, const struct errbuf *error)
{
	struct errbuf e = *error;
	if (call->body.count > 1)
		errbuf_prefix(&e, err, "queries[%zu]", call->at);
	fail(call, err, e.text);
}

/* Of several queries, in their order. What is too long for a header is left out. */
static void say_granularities(struct call *call)
{
	buf_append_char(&call->granularities, 0);
	if (call->body.count == 1 || call->granularities.failed)
		return;
	if (call->sending.streaming)
		http_stream_trailer(call->request, GRANULARITY_HEADER, call->granularities.data);
	else
		http_reply_header(call->request, GRANULARITY_HEADER, call->granularities.data);
}

static void finish(struct call *call)
{
	stat_add(STAT_query_points, (int64_t)call->points);
	say_granularities(call);
	sending_end(&call->sending, call->request, buf_slice(&call->out), call->cut);
	call_free(call);
}

/* ---- Sending ------------------------------------------------------------------------------- */

/* Sends what was gathered; false: the client is to read first, or the call is over. */
static bool send_gathered(struct call *call)
{
	int err = sending_send(&call->sending, call->request, &call->out);
	if (err == ERR_BUSY)
		call->stalled_us = mono_us(call);
	else if (err)
		fail(call, err, "the answer could not be sent");
	return !err;
}

/* Also where what was gathered is short of something: that would be a wrong answer. */
static bool has_room(struct call *call)
{
	if (call->out.failed) {
		fail(call, ERR_LIMIT, "the names of a group are too long; ask for less");
		return false;
	}
	return call->out.len < SENDING_FLUSH_BYTES || send_gathered(call);
}

static void post_turn(struct call *call)
{
	struct executor *executor = loop_executor(call->loop);
	call->turn_posted = true;
	executor->post(executor, &call->turn);
}

/* ---- One query ----------------------------------------------------------------------------- */

static void ready(void *owner)
{
	struct call *call = owner;
	if (!call->sending.stalled && !call->turn_posted)
		advance(call);
}

static bool keep(void *owner, struct slice tags_text)
{
	struct call *call = owner;
	return opentsdb_filters_keep(&call->body.queries[call->at].filters, tags_text);
}

static void hold(void *owner, bool held)
{
	struct call *call = owner;
	call->held = held;
	if (!held && !call->request)
		call_free(call);
}

static void fill_spec(struct call *call, struct opentsdb_query *asked)
{
	struct opentsdb_filters *filters = &asked->filters;
	filters->work = call->filter_work;
	call->query->spec = (struct query_spec){
		.tenant = call->tenant,
		.metric = asked->metric,
		.selectors = filters->selectors,
		.selector_count = filters->selector_count,
		.keep = opentsdb_filters_must_keep(filters) ? keep : NULL,
		.keep_owner = call,
		.keep_hold = hold,
		.start_ms = call->body.start_ms,
		.end_ms = call->body.end_ms,
		.fn = asked->fn,
		.window_ms = asked->window_ms,
		.agg = asked->combined ? AGG_NONE : asked->agg,
		.tick_ms = asked->combined || asked->fn ? 0 : asked->combine.tick_ms,
		.by = filters->by,
		.by_count = asked->agg ? filters->by_count : 0,
		.by_order = asked->combined,
		.points_spent = call->points,
		.deadline_us = call->deadline_us,
	};
}

/* Devices by their present names. */
static int select_devices(struct call *call, struct opentsdb_filters *filters, struct errbuf *e)
{
	device_names_init(&call->names, api_of(call->request), call->tenant);
	int err = device_names_select(&call->names, filters->selectors, filters->selector_count,
				      &call->query->arena, &filters->strict);
	filters->names = call->names.inventory ? &call->names : NULL;
	return err ? errbuf_set(e, err, "too many devices were renamed") : 0;
}

/* False: the call is over. */
static bool start_query(struct call *call)
{
	struct opentsdb_query *asked = &call->body.queries[call->at];
	struct errbuf e;
	if (mono_us(call) >= call->deadline_us) {
		fail(call, query_late(call->timeout_ms, &e), e.text);
		return false;
	}
	stat_add(STAT_queries, 1);
	call->query = query_new(api_of(call->request)->queries, ready, call);
	call->phase = BETWEEN_GROUPS;
	int err = select_devices(call, &asked->filters, &e);
	fill_spec(call, asked);
	if (!err && alias_is_asked(&call->query->spec))
		err = errbuf_set(&e, ERR_INVALID,
				 "alias is no tag of counters; GET /api/query finds them by it");
	if (!err && (err = query_start(call->query)) != 0)
		e = call->query->error;
	if (err)
		fail_query(call, err, &e);
	return !err;
}

/* Of a single query before the answer is on its way. */
static void say_granularity(struct call *call)
{
	const struct granularities *granularities =
		query_granularities(api_of(call->request)->queries);
	if (call->said)
		return;
	call->said = true;
	if (call->body.count == 1) {
		granularity_reply_header(call->request, call->query, granularities);
		return;
	}
	if (call->at)
		buf_append_text(&call->granularities, "; ");
	granularity_list(&call->granularities, call->query, granularities);
}

/* The series are known, and with them the time that is looked at. */
static void start_combining(struct call *call)
{
	struct combine_spec *spec = &call->body.queries[call->at].combine;
	query_range(call->query, &spec->start_ms, &spec->end_ms);
	call->combine = combine_new(spec);
}

static void begin_group(struct call *call)
{
	if (!call->combine)
		start_combining(call);
	combine_begin(call->combine);
	call->group = query_group_of(call->query, call->chunk.series_index);
	call->group_said = false;
	call->phase = IN_GROUP;
}

static void end_group(struct call *call)
{
	combine_end(call->combine);
	call->phase = GROUP_ENDS;
}

/* The group that has ended has given all its points. False: the call is over. */
static bool leave_group(struct call *call)
{
	call->phase = BETWEEN_GROUPS;
	if (!call->group_said ||
	    opentsdb_answer_group_end(&call->answer, &call->body.queries[call->at], call->query,
				      call->group, call->cut != NULL) == 0)
		return true;
	fail(call, ERR_DAMAGED, "the names of a series could not be read");
	return false;
}

/* Chunks are the engine's only until it is asked again, or ends for its deadline. */
static bool take_chunk(struct call *call)
{
	struct query_chunk chunk;
	if (!query_take(call->query, COMBINE_CHUNK_MAX, &chunk))
		return false;
	say_granularity(call);
	memcpy(call->ts_ms, chunk.ts_ms, chunk.count * sizeof(*chunk.ts_ms));
	memcpy(call->bits, chunk.bits, chunk.count * sizeof(*chunk.bits));
	memcpy(call->types, chunk.types, chunk.count * sizeof(*chunk.types));
	call->chunk = chunk;
	call->chunk.ts_ms = call->ts_ms;
	call->chunk.bits = call->bits;
	call->chunk.types = call->types;
	call->has_chunk = true;
	return true;
}

/* False: the call is over. */
static bool add_chunk(struct call *call, size_t *turn)
{
	if (call->chunk.first)
		combine_series(call->combine);
	call->has_chunk = false;
	if (combine_add(call->combine, &call->chunk, turn) == 0)
		return true;
	struct errbuf e;
	int err = errbuf_set(&e, ERR_LIMIT,
			     "the series of a group have more than %d different times; take "
			     "a downsample, less time or fewer series",
			     COMBINE_TIMES_MAX);
	fail_query(call, err, &e);
	return false;
}

/* Encodes points of the group; gives whether there were some, and may be more. */
static bool encode(struct call *call, size_t *turn)
{
	size_t count = combine_take(call->combine, call->taken, COMBINE_CHUNK_MAX);
	*turn += count;
	call->given += count;
	if (!count)
		return false;
	if (!call->group_said)
		opentsdb_answer_group(&call->answer, &call->body.queries[call->at], call->at);
	call->group_said = true;
	opentsdb_answer_points(&call->answer, call->taken, count);
	return true;
}

/* ---- What it comes to ---------------------------------------------------------------------- */

/* An error of the query, or one that makes its answer wrong. */
static int check_ended(struct call *call, struct errbuf *e)
{
	const struct opentsdb_query *asked = &call->body.queries[call->at];
	const struct query *query = call->query;
	*e = query->error;
	if (!query->err && query->cut && asked->combined)
		return errbuf_set(
			e, ERR_LIMIT,
			"the query reached its limit of %s (%s) in the middle of a group; take "
			"a wider downsample, less time or fewer series",
			query->cut_why, query->cut_option);
	return query->err;
}

/* All points of the query are encoded. */
static void next_query(struct call *call)
{
	const struct query *query = call->query;
	call->points += call->given > query->points ? call->given : query->points;
	call->given = 0;
	call->said = false;
	call->filter_work = call->body.queries[call->at].filters.work;
	end_query(call);
	call->at++;
	call->phase = BEFORE_QUERY;
	if (call->at < call->body.count && !call->cut)
		return;
	buf_append_char(&call->out, ']');
	call->phase = COMPLETE;
}

/* The query gives nothing now. False: nothing more can be done now, or ever. */
static bool at_end(struct call *call)
{
	struct errbuf e;
	if (!call->query->ended)
		return false;
	say_granularity(call);
	int err = check_ended(call, &e);
	if (err) {
		fail_query(call, err, &e);
		return false;
	}
	call->cut = call->query->cut ? call->query->cut_why : NULL;
	if (call->phase == IN_GROUP)
		end_group(call);
	else
		next_query(call);
	return true;
}

/* What its filters kept is not all: known when the series are found, before the first point. */
static bool filters_gave_up(struct call *call)
{
	struct errbuf e;
	if (call->body.queries[call->at].filters.work <= OPENTSDB_FILTER_WORK_MAX)
		return false;
	int err = errbuf_set(&e, ERR_LIMIT,
			     "the filters take too long over so many series; name more tags by "
			     "literal_or, or use fewer and shorter expressions");
	fail_query(call, err, &e);
	return true;
}

/* The next chunk begins the group, belongs to it, or is behind it. False: nothing more can be done
 * now, or ever. */
static bool gather(struct call *call, size_t *turn)
{
	if (!call->has_chunk)
		return take_chunk(call) || at_end(call);
	if (call->phase == BETWEEN_GROUPS)
		begin_group(call);
	if (query_group_of(call->query, call->chunk.series_index) == call->group)
		return add_chunk(call, turn);
	end_group(call);
	return true;
}

/* One step. False: nothing more can be done now, or ever. */
static bool step(struct call *call, size_t *turn)
{
	switch (call->phase) {
	case BEFORE_QUERY:
		return start_query(call);
	case BETWEEN_GROUPS:
		return !filters_gave_up(call) && gather(call, turn);
	case IN_GROUP:
		return encode(call, turn) || gather(call, turn);
	case GROUP_ENDS:
		return encode(call, turn) || leave_group(call);
	case COMPLETE:
		break;
	}
	return false;
}

static void advance(struct call *call)
{
	size_t turn = 0;
	for (;;) {
		if (!has_room(call))
			return;
		if (call->phase == COMPLETE) {
			if (!call->sending.streaming || !call->out.len || send_gathered(call))
				finish(call);
			return;
		}
		if (!step(call, &turn))
			return;
		if (turn >= TURN_POINTS) {
			post_turn(call);
			return;
		}
	}
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

/* ---- The handler --------------------------------------------------------------------------- */

static struct call *call_new(struct http_request *request)
{
	struct api *api = api_of(request);
	struct call *call = mem_zalloc(sizeof(*call));
	call->request = request;
	call->loop = api->loop;
	call->clock = api->clock;
	call->timeout_ms = api->conf ? api->conf->query_timeout_ms : TIMEOUT_PRESET_MS;
	call->deadline_us = mono_us(call) + call->timeout_ms * 1000;
	call->turn.run = run_turn;
	arena_init(&call->arena, BODY_TREE_BYTES);
	call->sending = (struct sending){"application/json", .status = 200};
	buf_init(&call->uri, OPENTSDB_URI_MAX_BYTES);
	buf_init(&call->out, OUT_MAX_BYTES);
	buf_init(&call->granularities, GRANULARITIES_MAX_BYTES);
	opentsdb_answer_init(&call->answer, &call->out);
	request->owner = call;
	return call;
}

/* `arrays` by itself is yes, as there. */
static int read_arrays(struct call *call, struct errbuf *e)
{
	struct slice text = http_param(call->request, "arrays");
	call->answer.arrays = text.data && !slice_equal(text, SLICE("false"));
	if (!text.len || slice_equal(text, SLICE("true")) || slice_equal(text, SLICE("false")))
		return 0;
	return errbuf_set(e, ERR_INVALID, "arrays \"" SHOWN "\" is neither true nor false",
			  SHOWN_OF(text));
}

/* The body, or the one that the address stands for. */
static int find_body(struct call *call, struct slice *text, struct errbuf *e)
{
	static const char *const names[] = {"tenant", "arrays", NULL};
	*text = buf_slice(&call->request->body);
	if (call->request->verb == VERB_POST)
		return params_check(call->request, names, e);
	int err = opentsdb_uri_query(call->request, &call->uri, e);
	*text = buf_slice(&call->uri);
	return err;
}

static int read_request(struct call *call, struct errbuf *e)
{
	struct slice text;
	int err = find_body(call, &text, e);
	if (!err && http_request_charge(call->request, TREE_FACTOR * text.len))
		err = errbuf_set(e, ERR_BUSY, "the memory for requests is in use");
	if (!err)
		err = params_tenant(call->request, &call->tenant, e);
	if (!err)
		err = read_arrays(call, e);
	/* What is read points into the text, and a thread may look at it when the request is gone.
	 */
	text = arena_copy(&call->arena, text);
	if (!err && !text.data)
		err = errbuf_set(e, ERR_LIMIT, "the body takes too much room");
	if (!err)
		err = opentsdb_body_read(text, clock_wall_ms(call->clock), &call->arena,
					 &call->body, e);
	call->answer.ms = call->body.ms;
	call->answer.show_query = call->body.show_query;
	return err;
}

static void end(struct http_request *request)
{
	struct call *call = call_new(request);
	struct errbuf e;
	int err = read_request(call, &e);
	if (err) {
		fail(call, err, e.text);
		return;
	}
	buf_append_char(&call->out, '[');
	advance(call);
}

static void drained(struct http_request *request)
{
	struct call *call = request->owner;
	call->sending.stalled = false;
	call->deadline_us += mono_us(call) - call->stalled_us;
	if (!call->turn_posted)
		advance(call);
}

static void aborted(struct http_request *request, UNUSED int err)
{
	if (request->owner)
		call_free(request->owner);
}

const struct http_handler opentsdb_query_handler = {
	.end = end, .drained = drained, .abort = aborted};
