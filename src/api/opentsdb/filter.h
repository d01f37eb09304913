/* Filters of tags as OpenTSDB's queries have them: {"type":"literal_or","tagk":"host","filter":
 * "h-1|h-2","groupBy":true} in a list, or a map of tags, {"host":"h-1|h-2","os":"*"}. All must
 * hold, also those of one key.
 *
 * What the catalog can look up becomes selectors; the rest is decided by opentsdb_filters_keep.
 * Pure; memory: the caller's arena. */
#ifndef API_OPENTSDB_FILTER_H
#define API_OPENTSDB_FILTER_H

#include "api/metrics/device_names.h"
#include "query/query.h"
#include "wire/json.h"
#include "wire/regex.h"

enum { OPENTSDB_FILTER_WORK_MAX = 50000000 }; /* of a request: about 0.2 s */

struct opentsdb_filter {
	struct slice key;
	bool is_not, is_regex;
	const struct slice *values; /* of is_not */
	size_t value_count;
	struct regex regex;
};

/* Zeroed at first. */
struct opentsdb_filters {
	struct catalog_selector selectors[CATALOG_SELECTORS_MAX];
	size_t selector_count;
	struct slice by[QUERY_BY_MAX]; /* tags to group by */
	size_t by_count;

	/* The caller's. */
	bool only_these;            /* a series has no other tags */
	struct device_names *names; /* of the tenant; NULL: none */
	bool strict;                /* device_names_keep is to be asked */

	/* What keep has cost, in steps of expressions and comparisons, on top of what the caller
	 * set; beyond OPENTSDB_FILTER_WORK_MAX nothing is kept, and the query is to be refused. */
	uint64_t work;

	/* private */
	struct opentsdb_filter checks[CATALOG_SELECTORS_MAX];
	size_t check_count, count;
};

/* How the value of a tag is meant that stands beside its key, `type(filter)`, `*` and other texts
 * with a star, or values: gives the type and leaves the filter. */
struct slice opentsdb_filter_type(struct slice *text);

/* Either may be NULL. ERR_INVALID or ERR_LIMIT with a sentence that says which one. */
int opentsdb_filters_read(struct opentsdb_filters *filters, const struct json *list,
			  const struct json *tags, struct arena *arena,
			  struct errbuf *e) MUST_CHECK;

/* Whether a query must ask. */
bool opentsdb_filters_must_keep(const struct opentsdb_filters *filters);
/* For struct query_spec; `owner`: the filters. */
bool opentsdb_filters_keep(void *owner, struct slice tags_text);

#endif
