/* What /v2 is asked, read from the parameters of a request. Pure.
 *
 * Times are seconds since 1970 (of /v2/timeseries: milliseconds), fractions are cut, or dates and
 * durations before now as wire/timetext.h reads them; both ends belong to what is asked. What is
 * given neither way is the hour before now.
 *
 * A parameter that nobody knows is refused: a misspelt one would answer with something else.
 * `format=json`, `limit` and `offset` are taken everywhere, since clients send them with every
 * request; the last two say nothing where there are no pages. */
#ifndef API_V2_PARAMS_H
#define API_V2_PARAMS_H

#include "api/esmond/lookup.h"
#include "api/params.h"
#include "http/http.h"

/* The years 0000 to 9999. */
#define V2_TIME_MIN_S INT64_C(-62167219200)
#define V2_TIME_MAX_S INT64_C(253402300799)

/* Times in the unit that they were given in. */
struct v2_range {
	int64_t begin, end;
	bool has_begin, has_end;
	int64_t unit_ms; /* 1000 or 1 */
};

static inline int64_t v2_range_begin_ms(const struct v2_range *range)
{
	return range->begin * range->unit_ms;
}

/* Inclusive: the whole of the last second. */
static inline int64_t v2_range_end_ms(const struct v2_range *range)
{
	return (range->end + 1) * range->unit_ms - 1;
}

/* How the rows of a counter become values. */
enum v2_cf {
	CF_AVERAGE, /* per second, as document E: by the count of deltas and the base frequency */
	CF_EXACT,   /* per second of the time really covered */
	CF_MIN,     /* rates of single deltas, of aggregates */
	CF_MAX,
	CF_RAW,   /* samples as they came; of aggregates the growth */
	CF_DELTA, /* growth */
};

const char *v2_cf_text(enum v2_cf cf);
/* ERR_INVALID, no sentence. */
int v2_cf_parse(struct slice text, enum v2_cf *cf) MUST_CHECK;

/* Several points put into one, as the service before E's had it. */
enum v2_calc_func { CALC_NONE, CALC_AVERAGE, CALC_MIN, CALC_MAX };

const char *v2_calc_text(enum v2_calc_func func);

struct v2_data_params {
	struct v2_range range;
	bool has_agg, has_cf;
	int64_t agg_ms;
	enum v2_cf cf;
	enum v2_calc_func calc; /* CALC_NONE: as they are */
	int64_t calc_ms;
	bool nulls_are_zero; /* in an average of calc: a missing point counts as one of 0 */
};

/* A time of such a unit as text or number; ERR_INVALID: none, or outside the years above. */
int v2_time_parse(struct slice text, int64_t unit_ms, int64_t now_ms, int64_t *time) MUST_CHECK;
int v2_time_of(double number, int64_t unit_ms, int64_t *time) MUST_CHECK;

/* Reads `begin` and `end`; what is missing is the last hour. ERR_INVALID with a sentence. */
int v2_params_range(const struct http_request *request, int64_t unit_ms, int64_t now_ms,
		    struct v2_range *range, struct errbuf *e) MUST_CHECK;
/* What to say of a text that is none. */
int v2_time_refuse(struct errbuf *e, const char *name, struct slice text, int64_t unit_ms);
/* Puts in what was not said, and checks the order. */
int v2_range_settle(struct v2_range *range, int64_t now_ms, struct errbuf *e) MUST_CHECK;

/* When something must have lived to be meant: in part, between both. An end that was not given is
 * now, as document E's service has it. */
struct v2_life {
	bool given; /* either end */
	int64_t begin_ms, end_ms;
};

static inline bool v2_life_has(const struct v2_life *life, int64_t begin_ms, int64_t end_ms)
{
	return end_ms >= life->begin_ms && begin_ms <= life->end_ms;
}

/* Reads `begin` and `end`, in seconds. ERR_INVALID with a sentence. */
int v2_params_life(const struct http_request *request, int64_t now_ms, struct v2_life *life,
		   struct errbuf *e) MUST_CHECK;

/* agg, cf, calc, calc_func, nulls besides the range. */
int v2_params_data(const struct http_request *request, int64_t unit_ms, int64_t now_ms,
		   struct v2_data_params *params, struct errbuf *e) MUST_CHECK;

/* Seconds of a period, from 1 on, as ms. */
int v2_period_parse(struct slice text, int64_t *ms) MUST_CHECK;

/* Every parameter is one of `params`, or of those that are taken everywhere, and stands once. No
 * value is read. */
int v2_params_check(const struct http_request *request, const struct param *params,
		    struct errbuf *e) MUST_CHECK;
/* The same, but look-ups on `fields` are taken too, into `lookups`. */
int v2_params_lookups(const struct http_request *request, const struct param *params,
		      const char *const *fields, struct arena *arena, struct v2_lookups *lookups,
		      struct errbuf *e) MUST_CHECK;

/* Rows that stand in several tables; the functions above read them. */
#define V2_PARAM_BEGIN     "begin", .help = "From then on: seconds since 1970, a date, or 1h-ago."
#define V2_PARAM_END       "end", .help = "Until then; now where it is left out."
#define V2_PARAM_AGG       "agg", .help = "Stored aggregates of so many seconds."
#define V2_PARAM_CF        "cf", .help = "Values: average, exact, min, max, raw, delta."
#define V2_PARAM_CALC      "calc", .help = "Points of so many seconds in one."
#define V2_PARAM_CALC_FUNC "calc_func", .help = "Their average, min or max."
#define V2_PARAM_NULLS     "nulls", .help = "A missing point in them: skip or zero."

#endif
