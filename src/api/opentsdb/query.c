/* POST /api/query and GET /api/query?m=...: the queries of the body, one after the other, in one
 * answer.
 *
 * What is wrong is answered before anything else. A short answer leaves whole, a long one as a
 * stream as fast as the client reads, made in turns between which other work of the loop is done.
 * The limits of a query hold for all of them together: points, and the time, in which the client
 * was to read does not count. Where the answer was cut, the header (or trailer) X-Granary-Cut says
 * by what; what is put together here of several series is never cut but refused, since a part of a
 * sum is no sum. */
#include "api/call.h"
#include "api/metrics/answered_by.h"
#include "api/metrics/interface_alias.h"
#include "api/opentsdb/answer.h"
#include "api/opentsdb/opentsdb.h"
#include "api/opentsdb/uri.h"
#include "api/params.h"
#include "base/stats.h"

enum {
	OUT_MAX_BYTES = 4 << 20, /* names and the query of a group come at once */
	BODY_TREE_BYTES = 64 << 20,
	TREE_FACTOR = 20, /* of JSON's bytes, what its tree may take */
	FLUSH_BYTES = 64 << 10,
	TURN_POINTS = 8192,
	GRANULARITIES_MAX_BYTES = 6 << 10, /* of a reply's headers */
};

enum phase {
	BEFORE_QUERY,   /* body.queries[at] is to be started */
	BETWEEN_GROUPS, /* of that query; its next chunk begins one */
	IN_GROUP,       /* its chunks are added, and what that completes is given */
	GROUP_ENDS,     /* there are no more of them; the rest of its points is given */
};

struct opentsdb_call {
	struct api_call call;
	struct slice tenant;
	struct buf uri; /* the body that the address stands for */
	struct opentsdb_body body;
	struct opentsdb_answer answer;
	bool held;            /* a thread looks at series with the filters of body.queries[at] */
	uint64_t filter_work; /* of the queries before it */
	struct buf granularities; /* which data answers each query */
	bool said;                /* that of the query at work */
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
	/* The group at work. */
	size_t group;
	bool group_said; /* its head is in out */
	/* Points of the chunk, and those that are encoded. From here on the call is not cleared at
	 * its beginning: clearing 100 KB takes 5 % of a short query's time. */
	int64_t ts_ms[COMBINE_CHUNK_MAX];
	uint64_t bits[COMBINE_CHUNK_MAX];
	uint8_t types[COMBINE_CHUNK_MAX];
	struct combine_point taken[COMBINE_CHUNK_MAX];
};

static const struct api_call_kind kind;

static struct opentsdb_call *opentsdb_call_of(struct api_call *call)
{
	ASSERT(call->kind == &kind);
	return CONTAINER_OF(call, struct opentsdb_call, call);
}

static void opentsdb_query_end_query(struct opentsdb_call *call)
{
	query_free(call->query);
	combine_free(call->combine);
	if (!call->held)
		device_names_release(&call->names);
	call->query = NULL;
	call->combine = NULL;
}

/* ---- Ends ---------------------------------------------------------------------------------- */

static void opentsdb_query_ended(struct api_call *base)
{
	opentsdb_query_end_query(opentsdb_call_of(base));
}

static void opentsdb_query_release(struct api_call *base)
{
	struct opentsdb_call *call = opentsdb_call_of(base);
	opentsdb_query_end_query(call);
	opentsdb_answer_release(&call->answer);
	buf_release(&call->uri);
	buf_release(&call->granularities);
}

static const struct api_call_kind kind = {.arena_max_bytes = BODY_TREE_BYTES,
					  .out_max_bytes = OUT_MAX_BYTES,
					  .flush_bytes = FLUSH_BYTES,
					  .ended = opentsdb_query_ended,
					  .release = opentsdb_query_release};

static void opentsdb_query_fail(struct opentsdb_call *call, int err, const char *sentence)
{
	stat_add(STAT_queries_refused, 1);
	api_call_fail_with(&call->call, err, sentence);
}

/* Of one of several queries it says which. */
static void fail_query(struct opentsdb_call *call, int err, const struct errbuf *error)
{
	struct errbuf e = *error;
	if (call->body.count > 1)
		errbuf_prefix(&e, err, "queries[%zu]", call->at);
	opentsdb_query_fail(call, err, e.text);
}

/* Of several queries, in their order. What is too long for a header is left out. */
static void say_granularities(struct opentsdb_call *call)
{
	buf_append_char(&call->granularities, 0);
	if (call->body.count == 1 || call->granularities.failed)
		return;
	if (call->call.streaming)
		http_stream_trailer(call->call.request, GRANULARITY_HEADER,
				    call->granularities.data);
	else
		http_reply_header(call->call.request, GRANULARITY_HEADER, call->granularities.data);
}

static void opentsdb_query_finish(struct opentsdb_call *call)
{
	stat_add(STAT_query_points, (int64_t)call->points);
	say_granularities(call);
	api_call_end(&call->call);
}

/* ---- One query ----------------------------------------------------------------------------- */

static void opentsdb_query_ready(void *owner)
{
	struct opentsdb_call *call = opentsdb_call_of(api_call_from(owner));
	api_call_go_on(&call->call);
}

static bool opentsdb_query_keep(void *owner, struct slice tags_text)
{
	struct opentsdb_call *call = opentsdb_call_of(api_call_from(owner));
	return opentsdb_filters_keep(&call->body.queries[call->at].filters, tags_text);
}

static void opentsdb_query_hold(void *owner, bool held)
{
	struct opentsdb_call *call = opentsdb_call_of(api_call_from(owner));
	ASSERT(call->held != held);
	call->held = held;
	call->call.held += held;
	bool UNUSED goes_on = held || api_call_settle(&call->call);
}

static void opentsdb_query_fill_spec(struct opentsdb_call *call, struct opentsdb_query *asked)
{
	struct opentsdb_filters *filters = &asked->filters;
	filters->work = call->filter_work;
	call->query->spec = (struct query_spec){
		.tenant = call->tenant,
		.metric = asked->metric,
		.selectors = filters->selectors,
		.selector_count = filters->selector_count,
		.filter = opentsdb_filters_must_keep(filters) ? opentsdb_query_keep : NULL,
		.filter_owner = call,
		.filter_hold = opentsdb_query_hold,
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
		.deadline_us = call->call.deadline_us,
	};
}

/* Devices by their present names. */
static int opentsdb_query_select_devices(struct opentsdb_call *call,
					 struct opentsdb_filters *filters, struct errbuf *e)
{
	device_names_init(&call->names, call->call.api, call->tenant);
	int err = device_names_select(&call->names, filters->selectors, filters->selector_count,
				      &call->query->arena, &filters->strict);
	filters->names = call->names.inventory ? &call->names : NULL;
	return err ? errbuf_set(e, err, "too many devices were renamed") : 0;
}

/* False: the call is over. */
static bool opentsdb_query_start_query(struct opentsdb_call *call)
{
	ASSERT(call->at < call->body.count && !call->query && !call->combine);
	struct opentsdb_query *asked = &call->body.queries[call->at];
	struct errbuf e;
	int err = api_call_check_time(&call->call, &e);
	if (err) {
		opentsdb_query_fail(call, err, e.text);
		return false;
	}
	stat_add(STAT_queries, 1);
	call->query = query_new(call->call.api->queries, opentsdb_query_ready, call);
	call->phase = BETWEEN_GROUPS;
	err = opentsdb_query_select_devices(call, &asked->filters, &e);
	opentsdb_query_fill_spec(call, asked);
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
static void say_granularity(struct opentsdb_call *call)
{
	const struct granularities *granularities = query_granularities(call->call.api->queries);
	if (call->said)
		return;
	call->said = true;
	if (call->body.count == 1) {
		granularity_reply_header(call->call.request, call->query, granularities);
		return;
	}
	if (call->at)
		buf_append_text(&call->granularities, "; ");
	granularity_list(&call->granularities, call->query, granularities);
}

/* The series are known, and with them the time that is looked at. */
static void start_combining(struct opentsdb_call *call)
{
	struct combine_spec *spec = &call->body.queries[call->at].combine;
	query_range(call->query, &spec->start_ms, &spec->end_ms);
	call->combine = combine_new(spec);
}

static void opentsdb_query_begin_group(struct opentsdb_call *call)
{
	ASSERT(call->has_chunk);
	if (!call->combine)
		start_combining(call);
	combine_begin(call->combine);
	call->group = query_group_of(call->query, call->chunk.series_index);
	call->group_said = false;
	call->phase = IN_GROUP;
}

static void end_group(struct opentsdb_call *call)
{
	ASSERT(call->phase == IN_GROUP);
	combine_end(call->combine);
	call->phase = GROUP_ENDS;
}

/* The group that has ended has given all its points. False: the call is over. */
static bool leave_group(struct opentsdb_call *call)
{
	call->phase = BETWEEN_GROUPS;
	if (!call->group_said ||
	    opentsdb_answer_group_end(&call->answer, &call->body.queries[call->at], call->query,
				      call->group, call->call.cut != NULL) == 0)
		return true;
	opentsdb_query_fail(call, ERR_DAMAGED, "the names of a series could not be read");
	return false;
}

/* Chunks are the engine's only until it is asked again, or ends for its deadline. */
static bool take_chunk(struct opentsdb_call *call)
{
	struct query_chunk chunk;
	if (!query_next(call->query, COMBINE_CHUNK_MAX, &chunk))
		return false;
	ASSERT(chunk.count <= COMBINE_CHUNK_MAX);
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
static bool opentsdb_query_add_chunk(struct opentsdb_call *call, size_t *turn)
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
static bool opentsdb_query_encode(struct opentsdb_call *call, size_t *turn)
{
	size_t count = combine_next(call->combine, call->taken, COMBINE_CHUNK_MAX);
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
static int check_ended(struct opentsdb_call *call, struct errbuf *e)
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

/* All points of the query are encoded. False: of the last one, too. */
static bool next_query(struct opentsdb_call *call)
{
	const struct query *query = call->query;
	call->points += call->given > query->points ? call->given : query->points;
	call->given = 0;
	call->said = false;
	call->filter_work = call->body.queries[call->at].filters.work;
	opentsdb_query_end_query(call);
	call->at++;
	call->phase = BEFORE_QUERY;
	if (call->at < call->body.count && !call->call.cut)
		return true;
	buf_append_char(&call->call.out, ']');
	opentsdb_query_finish(call);
	return false;
}

/* The query gives nothing now. False: nothing more can be done now, or ever. */
static bool at_end(struct opentsdb_call *call)
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
	call->call.cut = call->query->cut ? call->query->cut_why : NULL;
	if (call->phase != IN_GROUP)
		return next_query(call);
	end_group(call);
	return true;
}

/* What its filters kept is not all: known when the series are found, before the first point. */
static bool filters_gave_up(struct opentsdb_call *call)
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
static bool opentsdb_query_gather(struct opentsdb_call *call, size_t *turn)
{
	if (!call->has_chunk)
		return take_chunk(call) || at_end(call);
	if (call->phase == BETWEEN_GROUPS)
		opentsdb_query_begin_group(call);
	if (query_group_of(call->query, call->chunk.series_index) == call->group)
		return opentsdb_query_add_chunk(call, turn);
	end_group(call);
	return true;
}

/* One step. False: nothing more can be done now, or ever. */
static bool opentsdb_query_step(struct opentsdb_call *call, size_t *turn)
{
	switch (call->phase) {
	case BEFORE_QUERY:
		return opentsdb_query_start_query(call);
	case BETWEEN_GROUPS:
		return !filters_gave_up(call) && opentsdb_query_gather(call, turn);
	case IN_GROUP:
		return opentsdb_query_encode(call, turn) || opentsdb_query_gather(call, turn);
	case GROUP_ENDS:
		return opentsdb_query_encode(call, turn) || leave_group(call);
	}
	ASSERT(false);
	return false;
}

static void opentsdb_query_advance(struct api_call *base)
{
	struct opentsdb_call *call = opentsdb_call_of(base);
	size_t turn = 0;
	while (turn < TURN_POINTS) {
		/* What was gathered is short of something: that would be a wrong answer. */
		if (base->out.failed) {
			opentsdb_query_fail(call, ERR_LIMIT,
					    "the names of a group are too long; ask for less");
			return;
		}
		if (!api_call_room(base) || !opentsdb_query_step(call, &turn))
			return;
	}
	api_call_later(base);
}

/* ---- The handler --------------------------------------------------------------------------- */

const struct param opentsdb_query_params[] = {
	{"tenant", PARAM_TENANT, offsetof(struct opentsdb_call, tenant), .help = "Whose series."},
	{"arrays", .help = "true: points as pairs in an array."},
	{NULL}};

/* Parameters of the form with m= that opentsdb_uri_query does not read. */
static const struct param uri_params[] = {
	{"tenant", PARAM_TENANT, offsetof(struct opentsdb_call, tenant)},
	{"arrays"},
	{"start"},
	{"end"},
	{"m", .repeated = true},
	{"ms"},
	{"msResolution"},
	{"show_query"},
	{"show_summary"},
	{"show_stats"},
	{"show_tsuids"},
	{"no_annotations"},
	{"delete"},
	{"use_calendar"},
	{"timezone"},
	{"tz"},
	{"padding"},
	{"global_annotations"},
	{NULL}};

/* `arrays` by itself is yes, as there. */
static int read_arrays(struct opentsdb_call *call, struct errbuf *e)
{
	struct slice text = http_param(call->call.request, "arrays");
	call->answer.arrays = text.data && !slice_equal(text, SLICE("false"));
	if (!text.len || slice_equal(text, SLICE("true")) || slice_equal(text, SLICE("false")))
		return 0;
	return errbuf_set(e, ERR_INVALID, "arrays \"" SHOWN "\" is neither true nor false",
			  SHOWN_OF(text));
}

/* The body, or the one that the address stands for. */
static int find_body(struct opentsdb_call *call, struct slice *text, struct errbuf *e)
{
	const struct http_request *request = call->call.request;
	*text = buf_slice(&call->call.body);
	if (request->verb == VERB_POST)
		return params_read_route(request, 0, call, e);
	int err = opentsdb_uri_check(request, e);
	err = err ? err : params_read(request, uri_params, 0, call, e);
	err = err ? err : opentsdb_uri_query(request, &call->uri, e);
	*text = buf_slice(&call->uri);
	return err;
}

static int opentsdb_query_read_request(struct opentsdb_call *call, struct errbuf *e)
{
	struct api_call *base = &call->call;
	struct slice text;
	int err = find_body(call, &text, e);
	if (!err && http_request_charge(base->request, TREE_FACTOR * text.len))
		err = errbuf_set(e, ERR_BUSY, "the memory for requests is in use");
	if (!err)
		err = read_arrays(call, e);
	if (!err)
		err = opentsdb_body_read(text, clock_wall_ms(base->api->clock), &base->arena,
					 &call->body, e);
	call->answer.ms = call->body.ms;
	call->answer.show_query = call->body.show_query;
	return err;
}

static void opentsdb_query_end(struct http_request *request)
{
	struct opentsdb_call *call = mem_alloc(sizeof(*call));
	struct errbuf e;
	memset(call, 0, offsetof(struct opentsdb_call, ts_ms));
	api_call_init(&call->call, request, &kind);
	call->call.advance = opentsdb_query_advance;
	api_call_set_deadline(&call->call);
	buf_init(&call->uri, OPENTSDB_URI_MAX_BYTES);
	buf_init(&call->granularities, GRANULARITIES_MAX_BYTES);
	opentsdb_answer_init(&call->answer, &call->call.out);
	int err = opentsdb_query_read_request(call, &e);
	if (err) {
		opentsdb_query_fail(call, err, e.text);
		return;
	}
	buf_append_char(&call->call.out, '[');
	opentsdb_query_advance(&call->call);
}

const struct http_handler opentsdb_query_handler = API_CALL_HANDLER(opentsdb_query_end);
