#include "api/opentsdb/body.h"

#include "wire/number.h"
#include "wire/timetext.h"

enum { SECOND_MS = 1000 };

/* ---- Members ------------------------------------------------------------------------------- */

/* How a member is treated: read here; passed over, since it changes nothing here; or taken only
 * where it asks for nothing. */
enum member_use { READ, IDLE, REFUSED };

struct opentsdb_body_member {
	const char *name;
	enum member_use use;
};

static const struct opentsdb_body_member body_members[] = {
	{"start", READ},
	{"end", READ},
	{"queries", READ},
	{"msResolution", READ},
	{"showQuery", READ},
	{"noAnnotations", IDLE},
	{"globalAnnotations", IDLE},
	{"showSummary", IDLE},
	{"showStats", IDLE},
	{"showTSUIDs", IDLE},
	{"delete", REFUSED},
	{"timezone", REFUSED},
	{"useCalendar", REFUSED},
	{NULL, READ},
};

static const struct opentsdb_body_member query_members[] = {
	{"metric", READ},         {"aggregator", READ},   {"downsample", READ},
	{"rate", READ},           {"rateOptions", READ},  {"filters", READ},
	{"tags", READ},           {"explicitTags", READ}, {"index", IDLE},
	{"refId", IDLE},          {"hide", IDLE},         {"tsuids", REFUSED},
	{"percentiles", REFUSED}, {"rollupUsage", IDLE},  {NULL, READ},
};

static const struct opentsdb_body_member rate_members[] = {
	{"counter", READ},    {"counterMax", READ}, {"resetValue", READ},
	{"dropResets", READ}, {NULL, READ},
};

static bool asks_nothing(const struct json *value)
{
	if (value->type == JSON_T_STRING)
		return !value->text.len || slice_equal(value->text, SLICE("UTC"));
	return value->type == JSON_T_NULL || (value->type == JSON_T_BOOL && !value->boolean) ||
	       (value->type == JSON_T_ARRAY && !value->count);
}

static int opentsdb_body_check_members(const struct json *object,
				       const struct opentsdb_body_member *known, struct errbuf *e)
{
	for (const struct json *member = object->first; member; member = member->next) {
		const struct opentsdb_body_member *k = known;
		while (k->name && !slice_equal(member->key, slice_of(k->name)))
			k++;
		if (!k->name)
			return errbuf_set(e, ERR_INVALID, "unknown member \"" SHOWN "\"",
					  SHOWN_OF(member->key));
		if (k->use == REFUSED && !asks_nothing(member))
			return errbuf_set(e, ERR_INVALID, "%s is not supported", k->name);
	}
	return 0;
}

/* NULL: it is not there, or null. */
static const struct json *given(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	return member && member->type != JSON_T_NULL ? member : NULL;
}

/* A boolean, also as a text; stays as it was where it is not given. */
static int read_flag(const struct json *object, const char *key, bool *flag, struct errbuf *e)
{
	const struct json *member = given(object, key);
	if (!member)
		return 0;
	bool yes = member->type == JSON_T_STRING && slice_equal(member->text, SLICE("true"));
	bool no = member->type == JSON_T_STRING && slice_equal(member->text, SLICE("false"));
	if (member->type != JSON_T_BOOL && !yes && !no)
		return errbuf_set(e, ERR_INVALID, "%s is neither true nor false", key);
	*flag = member->type == JSON_T_BOOL ? member->boolean : yes;
	return 0;
}

/* ---- Times --------------------------------------------------------------------------------- */

/* 2013/08/01, 2013/08/01-12:00, 2013/08/01 12:00:00 as ISO 8601, in UTC. */
static int parse_date(struct slice text, int64_t *ms, struct errbuf *e)
{
	char iso[TIME_TEXT_MAX_BYTES + 2];
	if (text.len < 10 || text.len > TIME_TEXT_MAX_BYTES - 8)
		return errbuf_set(e, ERR_INVALID, "\"" SHOWN "\" is no date", SHOWN_OF(text));
	memcpy(iso, text.data, text.len);
	size_t len = text.len;
	iso[4] = iso[7] = '-';
	if (len > 10) {
		iso[10] = 'T';
		iso[len++] = 'Z';
	}
	return time_parse_iso((struct slice){iso, len}, ms, e);
}

static int parse_time(const struct json *member, int64_t now_ms, int64_t *ms, struct errbuf *e)
{
	struct slice text = member->text;
	if (member->type == JSON_T_NUMBER)
		return time_parse_epoch(text, ms, e);
	if (member->type != JSON_T_STRING)
		return errbuf_set(e, ERR_INVALID, "neither a number nor a text");
	bool slashed = text.len >= 10 && text.data[4] == '/' && text.data[7] == '/';
	bool divided = slashed && (text.len == 10 || text.data[10] == '-' || text.data[10] == ' ');
	return divided ? parse_date(text, ms, e) : time_parse(text, now_ms, ms, e);
}

/* The end counts, as there. */
static int opentsdb_body_read_times(const struct json *root, int64_t now_ms,
				    struct opentsdb_body *body, struct errbuf *e)
{
	const struct json *start = given(root, "start"), *end = given(root, "end");
	int64_t last_ms = now_ms;
	if (!start)
		return errbuf_set(e, ERR_INVALID, "start is missing");
	int err = parse_time(start, now_ms, &body->start_ms, e);
	if (err)
		return errbuf_prefix(e, err, "start");
	if (end)
		err = parse_time(end, now_ms, &last_ms, e);
	if (err)
		return errbuf_prefix(e, err, "end");
	if (body->start_ms > last_ms)
		return errbuf_set(e, ERR_INVALID, "start \"" SHOWN "\" lies after end%s" SHOWN "%s",
				  SHOWN_OF(start->text), end ? " \"" : ", which is now",
				  SHOWN_OF(end ? end->text : SLICE("")), end ? "\"" : "");
	body->end_ms = last_ms < INT64_MAX ? last_ms + 1 : last_ms;
	return 0;
}

/* ---- Functions ----------------------------------------------------------------------------- */

/* Names that differ there by how gaps between points are filled, which are not filled here. */
static struct slice plain_name(struct slice name)
{
	if (slice_equal(name, SLICE("zimsum")))
		return SLICE("sum");
	if (slice_equal(name, SLICE("mimmin")))
		return SLICE("min");
	return slice_equal(name, SLICE("mimmax")) ? SLICE("max") : name;
}

static int read_aggregator(const struct json *asked, struct opentsdb_query *query, struct errbuf *e)
{
	struct slice name;
	int err = json_get_text(asked, "aggregator", &name, e);
	if (err)
		return err;
	if (slice_equal(name, SLICE("none")))
		return 0;
	if (query_agg_parse(plain_name(name), &query->agg))
		return errbuf_set(e, ERR_INVALID,
				  "aggregator \"" SHOWN "\" is none of avg, count, max, mimmax, "
				  "mimmin, min, none, sum, zimsum",
				  SHOWN_OF(name));
	return 0;
}

/* What stands before the next minus, which is passed. */
static struct slice opentsdb_body_next_part(struct slice *text)
{
	const char *minus = memchr(text->data, '-', text->len);
	size_t len = minus ? (size_t)(minus - text->data) : text->len;
	struct slice part = {text->data, len};
	size_t taken = minus ? len + 1 : len;
	*text = (struct slice){text->data + taken, text->len - taken};
	return part;
}

static int opentsdb_body_read_fill(struct slice name, enum query_fill *fill, struct errbuf *e)
{
	*fill = FILL_NONE;
	if (!name.len || slice_equal(name, SLICE("none")))
		return 0;
	*fill = slice_equal(name, SLICE("zero")) ? FILL_ZERO : FILL_NULL;
	if (*fill == FILL_ZERO || slice_equal(name, SLICE("null")) ||
	    slice_equal(name, SLICE("nan")))
		return 0;
	return errbuf_set(e, ERR_INVALID,
			  "fill policy \"" SHOWN "\" is none of none, nan, null, zero",
			  SHOWN_OF(name));
}

/* `5m-avg`, `5m-avg-zero` */
static int read_downsample(const struct json *asked, struct opentsdb_query *query, struct errbuf *e)
{
	struct slice text, rest;
	if (!given(asked, "downsample"))
		return 0;
	int err = json_get_text(asked, "downsample", &text, e);
	if (err || !text.len)
		return err;
	rest = text;
	struct slice interval = opentsdb_body_next_part(&rest), fn = opentsdb_body_next_part(&rest),
		     fill = opentsdb_body_next_part(&rest);
	err = interval.len ? duration_parse(interval, &query->window_ms, e)
			   : errbuf_set(e, ERR_INVALID, "it does not begin with an interval");
	if (!err && query->window_ms == 0)
		err = errbuf_set(e, ERR_INVALID, "the interval is zero");
	if (!err && (query_fn_parse(plain_name(fn), &query->fn) || query->fn > FN_LAST))
		err = errbuf_set(e, ERR_INVALID,
				 "\"" SHOWN "\" is none of min, max, sum, avg, count, first, last",
				 SHOWN_OF(fn));
	if (!err)
		err = opentsdb_body_read_fill(fill, &query->combine.fill, e);
	if (!err && rest.len)
		err = errbuf_set(e, ERR_INVALID, "it has more than three parts");
	return err ? errbuf_prefix(e, err, "downsample \"" SHOWN "\"", SHOWN_OF(text)) : 0;
}

/* ---- Rates --------------------------------------------------------------------------------- */

/* 0 is what clients send who have none. */
static int read_counter_max(const struct json *options, struct combine_spec *spec, struct errbuf *e)
{
	const struct json *max = given(options, "counterMax");
	if (!max)
		return 0;
	if (max->type != JSON_T_NUMBER || value_compare(max->number, value_i64(0)) < 0)
		return errbuf_set(e, ERR_INVALID, "counterMax is no number, or below 0");
	spec->has_max = value_compare(max->number, value_i64(0)) > 0;
	spec->counter_max = max->number;
	return 0;
}

static int read_reset_value(const struct json *options, struct combine_spec *spec, struct errbuf *e)
{
	if (!given(options, "resetValue"))
		return 0;
	int err = json_get_f64(options, "resetValue", &spec->reset_value, e);
	if (!err && spec->reset_value < 0)
		err = errbuf_set(e, ERR_INVALID, "resetValue is below 0");
	return err;
}

static int read_rate(const struct json *asked, struct combine_spec *spec, struct errbuf *e)
{
	const struct json *options = given(asked, "rateOptions");
	int err = read_flag(asked, "rate", &spec->rate, e);
	if (err || !options)
		return err;
	if (options->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "rateOptions is no object");
	err = opentsdb_body_check_members(options, rate_members, e);
	if (!err)
		err = read_flag(options, "counter", &spec->counter, e);
	if (!err)
		err = read_flag(options, "dropResets", &spec->drop_resets, e);
	if (!err)
		err = read_counter_max(options, spec, e);
	if (!err)
		err = read_reset_value(options, spec, e);
	return err ? errbuf_prefix(e, err, "rateOptions") : 0;
}

/* ---- Queries ------------------------------------------------------------------------------- */

/* An average of averages is none: of windows within a second the values of each series are put
 * together, or the samples where those windows are parts of the second. */
static void widen_average(struct opentsdb_query *query)
{
	const struct combine_spec *spec = &query->combine;
	bool within = query->window_ms && query->window_ms < spec->tick_ms;
	if (query->agg != AGG_AVG || query->combined || !within)
		return;
	if (query->fn == FN_AVG && spec->tick_ms % query->window_ms == 0)
		query->window_ms = spec->tick_ms;
	else
		query->combined = true;
}

/* What the engine can do it does; it knows neither rates nor what is missing. Zeros add nothing to
 * a sum, and are nothing to be counted. */
static void divide_work(const struct opentsdb_body *body, struct opentsdb_query *query)
{
	struct combine_spec *spec = &query->combine;
	bool zeros = spec->fill == FILL_ZERO && query->agg != AGG_SUM && query->agg != AGG_COUNT;
	query->combined = query->agg && (spec->rate || zeros);
	if (!body->ms)
		spec->tick_ms = SECOND_MS;
	widen_average(query);
	spec->agg = query->combined ? query->agg : AGG_NONE;
	spec->window_ms = query->window_ms;
	spec->same = query->agg == AGG_COUNT ? AGG_SUM : query->agg;
}

static int read_query(const struct json *asked, const struct opentsdb_body *body,
		      struct opentsdb_query *query, struct arena *arena, struct errbuf *e)
{
	if (asked->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "not an object");
	query->asked = asked;
	int err = opentsdb_body_check_members(asked, query_members, e);
	if (!err)
		err = json_get_text(asked, "metric", &query->metric, e);
	if (!err)
		err = metric_check(query->metric, e);
	if (!err)
		err = read_aggregator(asked, query, e);
	if (!err)
		err = read_downsample(asked, query, e);
	if (!err)
		err = read_rate(asked, &query->combine, e);
	if (!err)
		err = read_flag(asked, "explicitTags", &query->filters.only_these, e);
	if (!err)
		err = opentsdb_filters_read(&query->filters, json_member(asked, "filters"),
					    json_member(asked, "tags"), arena, e);
	divide_work(body, query);
	return err;
}

static int read_queries(const struct json *root, struct arena *arena, struct opentsdb_body *body,
			struct errbuf *e)
{
	const struct json *list;
	int err = json_get_array(root, "queries", &list, e);
	if (err)
		return err;
	if (list->count < 1 || list->count > OPENTSDB_QUERIES_MAX)
		return errbuf_set(e, ERR_INVALID, "queries has %zu of 1 to %d queries", list->count,
				  OPENTSDB_QUERIES_MAX);
	body->queries = arena_zalloc(arena, list->count * sizeof(*body->queries));
	if (!body->queries)
		return errbuf_set(e, ERR_LIMIT, "the body takes too much room");
	for (const struct json *asked = list->first; asked; asked = asked->next) {
		err = read_query(asked, body, &body->queries[body->count], arena, e);
		if (err)
			return errbuf_prefix(e, err, "queries[%zu]", body->count);
		body->count++;
	}
	return 0;
}

static int opentsdb_body_read_root(const struct json *root, int64_t now_ms, struct arena *arena,
				   struct opentsdb_body *body, struct errbuf *e)
{
	if (root->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "the body is no object");
	int err = opentsdb_body_check_members(root, body_members, e);
	if (!err)
		err = read_flag(root, "msResolution", &body->ms, e);
	if (!err)
		err = read_flag(root, "showQuery", &body->show_query, e);
	if (!err)
		err = opentsdb_body_read_times(root, now_ms, body, e);
	return err ? err : read_queries(root, arena, body, e);
}

int opentsdb_body_read(struct slice text, int64_t now_ms, struct arena *arena,
		       struct opentsdb_body *body, struct errbuf *e)
{
	struct json *root;
	*body = (struct opentsdb_body){.start_ms = 0};
	int err = json_parse(text, arena, &root, e);
	if (!err)
		err = opentsdb_body_read_root(root, now_ms, arena, body, e);
	/* A member that is missing is a wrong request as any other. */
	return err == ERR_NOT_FOUND ? ERR_INVALID : err;
}
