/* Look-ups on names, as Django has them: `ifAlias__icontains=transit`, `device__name=rtr_a`.
 *
 * exact (also without a suffix), iexact, contains, icontains, startswith, istartswith, endswith,
 * iendswith, regex, iregex. The `i` forms take ASCII letters in either case. All that are given
 * must hold. Pure; the time of each is bounded (wire/regex.h). */
#ifndef API_ESMOND_LOOKUP_H
#define API_ESMOND_LOOKUP_H

#include "base/base.h"
#include "wire/regex.h"

struct arena;
struct http_request;

enum {
	V2_LOOKUPS_MAX = 16,
	V2_TURN_WORK = 200000, /* after which other work of the loop is done: about a millisecond */
};

enum v2_lookup_how {
	LOOKUP_EXACT,
	LOOKUP_CONTAINS,
	LOOKUP_STARTS,
	LOOKUP_ENDS,
	LOOKUP_REGEX,
};

struct v2_lookup {
	size_t field; /* into the names that were asked for */
	enum v2_lookup_how how;
	bool fold_case;
	struct slice text;
	struct regex regex; /* LOOKUP_REGEX */
};

struct v2_lookups {
	size_t count;
	struct v2_lookup list[V2_LOOKUPS_MAX];
};

/* Whether a parameter is a look-up on one of `fields` (NULL-terminated). Then it is appended, or
 * *err says why it is wrong (ERR_INVALID, ERR_LIMIT, with a sentence). */
bool v2_lookup_take(struct slice name, struct slice value, const char *const *fields,
		    struct arena *arena, struct v2_lookups *lookups, int *err, struct errbuf *e);

/* `values` by field; an absent one is empty. Adds what it cost to *work. */
bool v2_lookups_match(const struct v2_lookups *lookups, const struct slice *values, uint64_t *work);

/* The one value that `field` must have exactly, or a NULL slice. */
struct slice v2_lookups_exact(const struct v2_lookups *lookups, size_t field);

#endif
