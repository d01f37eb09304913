#include "api/metrics/query_params.h"

#include "api/metrics/answered_by.h"
#include "api/metrics/metrics.h"
#include "wire/timetext.h"

/* ---- Times --------------------------------------------------------------------------------- */

/* Until now means with the millisecond that it is: what was acknowledged in it is answered. */
static int check_times(const struct http_request *request, struct query_spec *spec,
		       struct errbuf *e)
{
	struct slice start = http_param(request, "start"), end = http_param(request, "end");
	if (spec->start_ms > spec->end_ms)
		return errbuf_set(e, ERR_INVALID, "start \"" SHOWN "\" lies after end%s" SHOWN "%s",
				  SHOWN_OF(start), end.data ? " \"" : ", which is now",
				  SHOWN_OF(end), end.data ? "\"" : "");
	if (!end.data)
		spec->end_ms++;
	return 0;
}

/* ---- Functions over time ------------------------------------------------------------------- */

static int query_params_read_window(const struct http_request *request, struct query_spec *spec,
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

static int query_params_read_fill(const struct http_request *request, struct query_spec *spec,
				  struct errbuf *e)
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
		return spec->by_count ? errbuf_set(e, ERR_INVALID,
						   "by goes only with agg, which says how the "
						   "series of a group become one")
				      : 0;
	if (query_agg_parse(agg, &spec->agg))
		return errbuf_set(e, ERR_INVALID,
				  "agg \"" SHOWN "\" is none of min, max, sum, avg, count",
				  SHOWN_OF(agg));
	return 0;
}

static const char *const query_formats[] = {
	[QUERY_JSON] = "json", [QUERY_CSV] = "csv", [QUERY_CSV + 1] = NULL};
static const char *const query_explains[] = {"0", "1", NULL};

#define QUERY_SPEC(member_) offsetof(struct query_question, spec.member_)

const struct param query_params[] = {
	{"tenant", PARAM_TENANT, QUERY_SPEC(tenant), .help = "Whose series."},
	{"metricName", PARAM_METRIC, QUERY_SPEC(metric), .missing = "", .help = "Of which metric."},
	{"tag", .repeated = true, .help = "Only series with such a tag, host=web-*."},
	{"start", PARAM_TIME, QUERY_SPEC(start_ms), .missing = "", .help = "Points from then on."},
	{"end", PARAM_TIME, QUERY_SPEC(end_ms),
	 .help = "Points before then; up to now where it is left out."},
	{"format", PARAM_WORD, offsetof(struct query_question, format), .words = query_formats,
	 .help = "The shape of the answer; json where it is left out."},
	{"explain", PARAM_WORD, offsetof(struct query_question, explain), .words = query_explains,
	 .help = "1: the answer says which data it was made from."},
	{"points", PARAM_NUMBER, QUERY_SPEC(points_wanted), 2, GRANULARITY_POINTS_MAX,
	 .help = "About so many points of each series: chooses the window or the granularity."},
	{"aggregator",
	 .help = "Stored roll-ups: min, max, sum, avg, count, increase; or raw, samples."},
	{"granularity", .help = "Of the stored roll-ups; else one is chosen by age."},
	{"agg", .help = "Several series in one: min, max, sum, avg, count."},
	{"by", .repeated = true, .help = "With agg: one for each value of this tag."},
	{"fn",
	 .help = "A function over each window: min, max, sum, avg, count, first, last, increase, "
		 "rate."},
	{"window", .help = "How long the windows of fn are: 5m."},
	{"fill", .help = "What windows without points have: none, null, zero."},
	{NULL}};

int params_query(const struct http_request *request, int64_t now_ms,
		 const struct granularities *granularities, struct arena *arena,
		 struct query_question *q, struct errbuf *e)
{
	struct query_spec *spec = &q->spec;
	*q = (struct query_question){.spec = {.fn = FN_NONE, .end_ms = now_ms}};
	int err = params_read(request, query_params, now_ms, q, e);
	if (!err)
		err = params_selectors(request, arena, &spec->selectors, &spec->selector_count, e);
	if (!err)
		err = check_times(request, spec, e);
	if (!err)
		err = granularity_params(request, granularities, spec, e);
	if (!err)
		err = read_agg(request, arena, spec, e);
	if (!err)
		err = query_params_read_window(request, spec, e);
	if (!err)
		err = query_params_read_fill(request, spec, e);
	return err;
}
