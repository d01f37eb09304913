#include "api/esmond/params.h"

#include "wire/number.h"
#include "wire/timetext.h"

enum { HOUR_MS = 3600000 };

/* The longest period that anybody stores. */
#define PERIOD_MAX_S UINT64_C(3660 * 86400)

/* ---- Names ----------------------------------------------------------------------------------- */

static int v2_params_check_once(const struct http_request *request, size_t i, struct errbuf *e)
{
	for (size_t j = 0; j < i; j++) {
		if (slice_equal(request->params[i].name, request->params[j].name))
			return errbuf_set(e, ERR_INVALID, SHOWN " is given twice",
					  SHOWN_OF(request->params[i].name));
	}
	return 0;
}

static int v2_params_check_format(const struct http_param *param, struct errbuf *e)
{
	if (!slice_equal(param->name, SLICE("format")) || slice_equal(param->value, SLICE("json")))
		return 0;
	return errbuf_set(e, ERR_INVALID, "format \"" SHOWN "\" is not json",
			  SHOWN_OF(param->value));
}

int v2_params_lookups(const struct http_request *request, const struct param *params,
		      const char *const *fields, struct arena *arena, struct v2_lookups *lookups,
		      struct errbuf *e)
{
	static const struct param everywhere[] = {{"format"}, {"limit"}, {"offset"}, {NULL}};
	for (size_t i = 0; i < request->param_count; i++) {
		const struct http_param *param = &request->params[i];
		int err = v2_params_check_once(request, i, e);
		if (err)
			return err;
		if (params_find(params, param->name))
			continue;
		if (params_find(everywhere, param->name)) {
			err = v2_params_check_format(param, e);
		} else if (!fields || !v2_lookup_take(param->name, param->value, fields, arena,
						      lookups, &err, e)) {
			return errbuf_set(e, ERR_INVALID, "unknown parameter \"" SHOWN "\"",
					  SHOWN_OF(param->name));
		}
		if (err)
			return errbuf_prefix(e, err, SHOWN, SHOWN_OF(param->name));
	}
	return 0;
}

int v2_params_check(const struct http_request *request, const struct param *params,
		    struct errbuf *e)
{
	return v2_params_lookups(request, params, NULL, NULL, NULL, e);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

int v2_period_parse(struct slice text, int64_t *ms)
{
	uint64_t seconds;
	if (number_parse_u64(text.data, text.data + text.len, &seconds) || seconds < 1 ||
	    seconds > PERIOD_MAX_S)
		return ERR_INVALID;
	*ms = (int64_t)seconds * 1000;
	return 0;
}

/* ---- Times ----------------------------------------------------------------------------------- */

int v2_time_of(double number, int64_t unit_ms, int64_t *time)
{
	double per_second = 1000.0 / (double)unit_ms;
	/* Also NaN is not within. */
	if (!(number >= (double)V2_TIME_MIN_S * per_second &&
	      number <= (double)V2_TIME_MAX_S * per_second))
		return ERR_INVALID;
	*time = (int64_t)number;
	return 0;
}

int v2_time_parse(struct slice text, int64_t unit_ms, int64_t now_ms, int64_t *time)
{
	double number;
	int64_t ms;
	if (!number_parse_f64(text.data, text.data + text.len, &number))
		return v2_time_of(number, unit_ms, time);
	if (time_parse(text, now_ms, &ms, NULL) || ms < V2_TIME_MIN_S * 1000 ||
	    ms >= (V2_TIME_MAX_S + 1) * 1000)
		return ERR_INVALID;
	*time = floor_div(ms, unit_ms);
	return 0;
}

int v2_time_refuse(struct errbuf *e, const char *name, struct slice text, int64_t unit_ms)
{
	return errbuf_set(e, ERR_INVALID,
			  "%s \"" SHOWN "\" is not a time: %s since 1970, 2020-08-24T16:34:05Z, or "
			  "1h-ago",
			  name, SHOWN_OF(text), unit_ms == 1 ? "milliseconds" : "seconds");
}

int v2_range_settle(struct v2_range *range, int64_t now_ms, struct errbuf *e)
{
	int64_t now = floor_div(now_ms, range->unit_ms), hour = HOUR_MS / range->unit_ms;
	if (!range->has_end)
		range->end = now;
	if (!range->has_begin)
		range->begin = range->end - hour;
	if (range->begin <= range->end)
		return 0;
	return errbuf_set(e, ERR_INVALID, "begin %lld lies after end%s %lld",
			  (long long)range->begin, range->has_end ? "" : ", which is now,",
			  (long long)range->end);
}

static int v2_params_read_time(const struct http_request *request, const char *name,
			       int64_t unit_ms, int64_t now_ms, int64_t *time, bool *given,
			       struct errbuf *e)
{
	struct slice text = http_param(request, name);
	*given = text.data != NULL;
	if (!text.data || !v2_time_parse(text, unit_ms, now_ms, time))
		return 0;
	return v2_time_refuse(e, name, text, unit_ms);
}

static int v2_params_read_range(const struct http_request *request, int64_t now_ms,
				struct v2_range *range, struct errbuf *e)
{
	int err = v2_params_read_time(request, "begin", range->unit_ms, now_ms, &range->begin,
				      &range->has_begin, e);
	return err ? err
		   : v2_params_read_time(request, "end", range->unit_ms, now_ms, &range->end,
					 &range->has_end, e);
}

int v2_params_range(const struct http_request *request, int64_t unit_ms, int64_t now_ms,
		    struct v2_range *range, struct errbuf *e)
{
	*range = (struct v2_range){.unit_ms = unit_ms};
	int err = v2_params_read_range(request, now_ms, range, e);
	return err ? err : v2_range_settle(range, now_ms, e);
}

int v2_params_life(const struct http_request *request, int64_t now_ms, struct v2_life *life,
		   struct errbuf *e)
{
	struct v2_range range = {.unit_ms = 1000};
	int err = v2_params_read_range(request, now_ms, &range, e);
	if (!err && range.has_begin && range.has_end)
		err = v2_range_settle(&range, now_ms, e);
	life->given = range.has_begin || range.has_end;
	life->begin_ms = range.has_begin ? v2_range_begin_ms(&range) : now_ms;
	life->end_ms = range.has_end ? v2_range_end_ms(&range) : now_ms;
	return err;
}

/* ---- Data ------------------------------------------------------------------------------------ */

static const char *const cf_texts[] = {
	[CF_AVERAGE] = "average", [CF_EXACT] = "exact", [CF_MIN] = "min",
	[CF_MAX] = "max",         [CF_RAW] = "raw",     [CF_DELTA] = "delta",
};

const char *v2_cf_text(enum v2_cf cf)
{
	return cf_texts[cf];
}

int v2_cf_parse(struct slice text, enum v2_cf *cf)
{
	for (size_t i = 0; i < ARRAY_LEN(cf_texts); i++) {
		if (slice_equal(text, slice_of(cf_texts[i]))) {
			*cf = (enum v2_cf)i;
			return 0;
		}
	}
	return ERR_INVALID;
}

static const char *const calc_texts[] = {
	[CALC_AVERAGE] = "average", [CALC_MIN] = "min", [CALC_MAX] = "max"};

const char *v2_calc_text(enum v2_calc_func func)
{
	return calc_texts[func];
}

static int read_calc_func(struct slice text, struct v2_data_params *params, struct errbuf *e)
{
	params->calc = CALC_AVERAGE;
	if (!text.data)
		return 0;
	for (int i = CALC_AVERAGE; i <= CALC_MAX; i++) {
		params->calc = (enum v2_calc_func)i;
		if (slice_equal(text, slice_of(calc_texts[i])))
			return 0;
	}
	return errbuf_set(e, ERR_INVALID, "calc_func \"" SHOWN "\" is none of average, min, max",
			  SHOWN_OF(text));
}

static int read_calc(const struct http_request *request, struct v2_data_params *params,
		     struct errbuf *e)
{
	struct slice calc = http_param(request, "calc"), func = http_param(request, "calc_func");
	struct slice nulls = http_param(request, "nulls");
	if (!calc.data)
		return func.data || nulls.data
			       ? errbuf_set(e, ERR_INVALID, "%s is given without calc",
					    func.data ? "calc_func" : "nulls")
			       : 0;
	if (v2_period_parse(calc, &params->calc_ms))
		return errbuf_set(e, ERR_INVALID, "calc \"" SHOWN "\" is not a number of seconds",
				  SHOWN_OF(calc));
	if (nulls.data && !slice_equal(nulls, SLICE("zero")) && !slice_equal(nulls, SLICE("skip")))
		return errbuf_set(e, ERR_INVALID, "nulls \"" SHOWN "\" is neither skip nor zero",
				  SHOWN_OF(nulls));
	params->nulls_are_zero = slice_equal(nulls, SLICE("zero"));
	return read_calc_func(func, params, e);
}

int v2_params_data(const struct http_request *request, int64_t unit_ms, int64_t now_ms,
		   struct v2_data_params *params, struct errbuf *e)
{
	struct slice agg = http_param(request, "agg"), cf = http_param(request, "cf");
	*params = (struct v2_data_params){.has_agg = agg.data, .has_cf = cf.data};
	int err = v2_params_range(request, unit_ms, now_ms, &params->range, e);
	if (!err && agg.data && v2_period_parse(agg, &params->agg_ms))
		err = errbuf_set(e, ERR_INVALID, "agg \"" SHOWN "\" is not a number of seconds",
				 SHOWN_OF(agg));
	if (!err && cf.data && v2_cf_parse(cf, &params->cf))
		err = errbuf_set(e, ERR_INVALID,
				 "cf \"" SHOWN "\" is none of average, exact, min, max, raw, delta",
				 SHOWN_OF(cf));
	return err ? err : read_calc(request, params, e);
}
