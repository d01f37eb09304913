#include "api/metrics/query_params.h"

#include "api/metrics/answered_by.h"
#include "wire/number.h"
#include "wire/timetext.h"

/* ---- Names --------------------------------------------------------------------------------- */

/* A name that may stand there several times has a plus before it. NULL: there is none. */
static const char *known(struct slice name, const char *const *names)
{
	for (; *names; names++) {
		if (slice_equal(name, slice_of(*names + (**names == '+'))))
			return *names;
	}
	return NULL;
}

/* A misspelt `tag` that was passed over would answer with everything: so nothing is passed over. */
int params_check(const struct http_request *request, const char *const *names, struct errbuf *e)
{
	for (size_t i = 0; i < request->param_count; i++) {
		struct slice name = request->params[i].name;
		const char *as = known(name, names);
		if (!as)
			return errbuf_set(e, ERR_INVALID, "unknown parameter \"" SHOWN "\"",
					  SHOWN_OF(name));
		for (size_t j = 0; j < i && *as != '+'; j++) {
			if (slice_equal(name, request->params[j].name))
				return errbuf_set(e, ERR_INVALID, SHOWN " is given twice",
						  SHOWN_OF(name));
		}
	}
	return 0;
}

static int check_tenant(struct slice tenant, struct errbuf *e)
{
	if (tenant_valid(tenant))
		return 0;
	return errbuf_set(e, ERR_INVALID, "tenant \"" SHOWN "\" is not 1 to %d of A-Za-z0-9_.-",
			  SHOWN_OF(tenant), TENANT_MAX_BYTES);
}

int params_tenant(const struct http_request *request, struct slice *tenant, struct errbuf *e)
{
	struct slice param = http_param(request, "tenant");
	struct slice header = http_header(request, "x-tenant");
	if (param.data && header.data && !slice_equal(param, header))
		return errbuf_set(e, ERR_INVALID,
				  "tenant is \"" SHOWN "\" but the header X-Tenant is \"" SHOWN
				  "\"",
				  SHOWN_OF(param), SHOWN_OF(header));
	*tenant = param.data ? param : header.data ? header : SLICE("default");
	return check_tenant(*tenant, e);
}

int params_metric(const struct http_request *request, struct slice *metric, struct errbuf *e)
{
	*metric = http_param(request, "metricName");
	if (!metric->data)
		return errbuf_set(e, ERR_INVALID, "metricName is missing");
	return metric_check(*metric, e);
}

int params_narrowing(const struct http_request *request, struct slice *tenant, struct slice *metric,
		     struct errbuf *e)
{
	*tenant = http_param(request, "tenant");
	*metric = http_param(request, "metric");
	int err = tenant->data ? check_tenant(*tenant, e) : 0;
	if (err)
		return err;
	return metric->data ? metric_check(*metric, e) : 0;
}

int params_flag(const struct http_request *request, const char *name, bool *flag, struct errbuf *e)
{
	struct slice text = http_param(request, name);
	*flag = slice_equal(text, SLICE("true"));
	if (text.data && !*flag && !slice_equal(text, SLICE("false")))
		return errbuf_set(e, ERR_INVALID, "%s is true or false, not \"" SHOWN "\"", name,
				  SHOWN_OF(text));
	return 0;
}

int params_time(const struct http_request *request, const char *name, int64_t now_ms, int64_t *ms,
		struct errbuf *e)
{
	struct slice text = http_param(request, name);
	int err = text.data ? time_parse(text, now_ms, ms, e) : 0;
	return err ? errbuf_prefix(e, err, "%s", name) : 0;
}

int params_selectors(const struct http_request *request, struct arena *arena,
		     const struct catalog_selector **list, size_t *count, struct errbuf *e)
{
	struct catalog_selector *selectors =
		arena_alloc(arena, CATALOG_SELECTORS_MAX * sizeof(*selectors));
	size_t at = 0;
	if (!selectors)
		return errbuf_set(e, ERR_LIMIT, "the tags take too much room");
	*list = selectors;
	*count = 0;
	for (;;) {
		struct slice text = http_param_next(request, "tag", &at);
		if (!text.data)
			return 0;
		int err = catalog_selectors_parse(text, arena, selectors, count, e);
		if (err)
			return errbuf_prefix(e, err, "tag");
	}
}

int params_limit(const struct http_request *request, size_t preset, size_t max, size_t *limit,
		 struct errbuf *e)
{
	struct slice text = http_param(request, "limit");
	uint64_t number = 0;
	*limit = preset;
	if (!text.data)
		return 0;
	if (number_parse_u64(text.data, text.data + text.len, &number) || number < 1 ||
	    number > max)
		return errbuf_set(e, ERR_INVALID,
				  "limit \"" SHOWN "\" is not a number from 1 to %zu",
				  SHOWN_OF(text), max);
	*limit = (size_t)number;
	return 0;
}

/* ---- Times --------------------------------------------------------------------------------- */

/* Until now means with the millisecond that it is: what was acknowledged in it is answered. */
static int read_times(const struct http_request *request, int64_t now_ms, struct query_spec *spec,
		      struct errbuf *e)
{
	struct slice start = http_param(request, "start"), end = http_param(request, "end");
	if (!start.data)
		return errbuf_set(e, ERR_INVALID, "start is missing");
	spec->end_ms = now_ms;
	int err = params_time(request, "start", now_ms, &spec->start_ms, e);
	err = err ? err : params_time(request, "end", now_ms, &spec->end_ms, e);
	if (err)
		return err;
	if (spec->start_ms > spec->end_ms)
		return errbuf_set(e, ERR_INVALID, "start \"" SHOWN "\" lies after end%s" SHOWN "%s",
				  SHOWN_OF(start), end.data ? " \"" : ", which is now",
				  SHOWN_OF(end), end.data ? "\"" : "");
	if (!end.data)
		spec->end_ms++;
	return 0;
}

/* ---- Functions over time ------------------------------------------------------------------- */

static int read_window(const struct http_request *request, struct query_spec *spec,
		       struct errbuf *e)
{
	struct slice fn = http_param(request, "fn"), window = http_param(request, "window");
	if (spec->stored || (!fn.data && !window.data))
		return 0;
	if (!fn.data)
		return errbuf_set(e, ERR_INVALID, "window is given without fn");
	if (query_fn_parse(fn, &spec->fn))
		return errbuf_set(
			e, ERR_INVALID,
			"fn \"" SHOWN
			"\" is none of min, max, sum, avg, count, first, last, increase, rate",
			SHOWN_OF(fn));
	if (window.data && spec->points_wanted)
		return errbuf_set(e, ERR_INVALID,
				  "points chooses the window: give one or the other");
	if (spec->points_wanted)
		return 0;
	/* The newest point of each series. */
	if (!window.data && spec->fn == FN_LAST && !spec->agg)
		return 0;
	if (!window.data && spec->fn == FN_LAST)
		return errbuf_set(e, ERR_INVALID, "fn=last with agg needs a window");
	if (!window.data)
		return errbuf_set(e, ERR_INVALID, "fn is given without window or points");
	int err = duration_parse(window, &spec->window_ms, e);
	if (err)
		return errbuf_prefix(e, err, "window");
	if (spec->window_ms == 0)
		return errbuf_set(e, ERR_INVALID, "window is zero");
	return 0;
}

static int read_fill(const struct http_request *request, struct query_spec *spec, struct errbuf *e)
{
	struct slice fill = http_param(request, "fill");
	if (!fill.data)
		return 0;
	if (query_fill_parse(fill, &spec->fill))
		return errbuf_set(e, ERR_INVALID, "fill \"" SHOWN "\" is none of none, null, zero",
				  SHOWN_OF(fill));
	if (spec->fill && !spec->window_ms && !spec->points_wanted && !spec->stored)
		return errbuf_set(e, ERR_INVALID, "fill is of windows, and there are none");
	return 0;
}

/* ---- Several series in one ------------------------------------------------------------------- */

static bool has_slice(const struct slice *list, size_t count, struct slice wanted)
{
	for (size_t i = 0; i < count; i++) {
		if (slice_equal(list[i], wanted))
			return true;
	}
	return false;
}

/* All `by`s, into an array in `arena`. */
static int read_by(const struct http_request *request, struct arena *arena, struct query_spec *spec,
		   struct errbuf *e)
{
	struct slice *by = arena_alloc(arena, QUERY_BY_MAX * sizeof(*by));
	size_t at = 0;
	if (!by)
		return errbuf_set(e, ERR_LIMIT, "the tags take too much room");
	spec->by = by;
	for (;;) {
		struct slice key = http_param_next(request, "by", &at);
		if (!key.data)
			return 0;
		if (key.len < 1 || key.len > TAG_KEY_MAX_BYTES)
			return errbuf_set(e, ERR_INVALID, "by: a tag key has 1 to %d bytes",
					  TAG_KEY_MAX_BYTES);
		if (has_slice(by, spec->by_count, key))
			return errbuf_set(e, ERR_INVALID, "by \"" SHOWN "\" is given twice",
					  SHOWN_OF(key));
		if (spec->by_count == QUERY_BY_MAX)
			return errbuf_set(e, ERR_INVALID, "by is given more than %d times",
					  QUERY_BY_MAX);
		by[spec->by_count++] = key;
	}
}

static int read_agg(const struct http_request *request, struct arena *arena,
		    struct query_spec *spec, struct errbuf *e)
{
	struct slice agg = http_param(request, "agg");
	int err = read_by(request, arena, spec, e);
	if (err)
		return err;
	if (!agg.data)
		return spec->by_count ? errbuf_set(e, ERR_INVALID, "by is given without agg") : 0;
	if (query_agg_parse(agg, &spec->agg))
		return errbuf_set(e, ERR_INVALID,
				  "agg \"" SHOWN "\" is none of min, max, sum, avg, count",
				  SHOWN_OF(agg));
	return 0;
}

static int read_format(const struct http_request *request, enum query_format *format,
		       struct errbuf *e)
{
	struct slice text = http_param(request, "format");
	*format = QUERY_JSON;
	if (!text.data || slice_equal(text, SLICE("json")))
		return 0;
	*format = QUERY_CSV;
	if (slice_equal(text, SLICE("csv")))
		return 0;
	return errbuf_set(e, ERR_INVALID, "format \"" SHOWN "\" is neither json nor csv",
			  SHOWN_OF(text));
}

static int read_explain(const struct http_request *request, bool *explain, struct errbuf *e)
{
	struct slice text = http_param(request, "explain");
	*explain = text.data && slice_equal(text, SLICE("1"));
	if (!text.data || *explain || slice_equal(text, SLICE("0")))
		return 0;
	return errbuf_set(e, ERR_INVALID, "explain \"" SHOWN "\" is neither 0 nor 1",
			  SHOWN_OF(text));
}

int params_query(const struct http_request *request, int64_t now_ms,
		 const struct granularities *granularities, struct arena *arena,
		 struct query_spec *spec, enum query_format *format, bool *explain,
		 struct errbuf *e)
{
	static const char *const names[] = {"tenant",      "metricName", "+tag",    "start",
					    "end",         "fn",         "window",  "fill",
					    "agg",         "+by",        "format",  "aggregator",
					    "granularity", "points",     "explain", NULL};
	*spec = (struct query_spec){.fn = FN_NONE};
	int err = params_check(request, names, e);
	if (!err)
		err = params_tenant(request, &spec->tenant, e);
	if (!err)
		err = params_metric(request, &spec->metric, e);
	if (!err)
		err = params_selectors(request, arena, &spec->selectors, &spec->selector_count, e);
	if (!err)
		err = read_times(request, now_ms, spec, e);
	if (!err)
		err = read_format(request, format, e);
	if (!err)
		err = read_explain(request, explain, e);
	if (!err)
		err = granularity_params(request, granularities, spec, e);
	if (!err)
		err = read_agg(request, arena, spec, e);
	if (!err)
		err = read_window(request, spec, e);
	if (!err)
		err = read_fill(request, spec, e);
	return err;
}
