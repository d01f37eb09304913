/* The names of functions. */
#include "query/query.h"

/* The place of a name in a list, or the length of the list. */
static size_t name_index(struct slice text, const char *const *names, size_t count)
{
	size_t i = 0;
	while (i < count && !slice_equal(text, slice_of(names[i])))
		i++;
	return i;
}

static const char *const fn_names[] = {"min",   "max",  "sum",      "avg", "count",
				       "first", "last", "increase", "rate"};

const char *query_fn_name(enum query_fn fn)
{
	return fn == FN_NONE ? "" : fn_names[fn - FN_MIN];
}

int query_fn_parse(struct slice text, enum query_fn *fn)
{
	size_t i = name_index(text, fn_names, ARRAY_LEN(fn_names));
	if (i == ARRAY_LEN(fn_names))
		return ERR_INVALID;
	*fn = (enum query_fn)(FN_MIN + (int)i);
	return 0;
}

int query_agg_parse(struct slice text, enum query_agg *agg)
{
	static const char *const names[] = {"min", "max", "sum", "avg", "count"};
	size_t i = name_index(text, names, ARRAY_LEN(names));
	if (i == ARRAY_LEN(names))
		return ERR_INVALID;
	*agg = (enum query_agg)(AGG_MIN + (int)i);
	return 0;
}

int query_fill_parse(struct slice text, enum query_fill *fill)
{
	static const char *const names[] = {"none", "null", "zero"};
	size_t i = name_index(text, names, ARRAY_LEN(names));
	if (i == ARRAY_LEN(names))
		return ERR_INVALID;
	*fill = (enum query_fill)(FILL_NONE + (int)i);
	return 0;
}
