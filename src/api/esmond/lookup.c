#include "api/esmond/lookup.h"

static const struct {
	const char *name;
	enum v2_lookup_how how;
	bool fold_case;
} suffixes[] = {
	{"exact", LOOKUP_EXACT, false},       {"iexact", LOOKUP_EXACT, true},
	{"contains", LOOKUP_CONTAINS, false}, {"icontains", LOOKUP_CONTAINS, true},
	{"startswith", LOOKUP_STARTS, false}, {"istartswith", LOOKUP_STARTS, true},
	{"endswith", LOOKUP_ENDS, false},     {"iendswith", LOOKUP_ENDS, true},
	{"regex", LOOKUP_REGEX, false},       {"iregex", LOOKUP_REGEX, true},
};

/* The suffix behind `__`; none is `exact`. ERR_INVALID: there is no such one. */
static int read_suffix(struct slice rest, struct v2_lookup *lookup, struct errbuf *e)
{
	lookup->how = LOOKUP_EXACT;
	lookup->fold_case = false;
	if (!rest.len)
		return 0;
	struct slice suffix = {rest.data + 2, rest.len - 2};
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		if (slice_equal(suffix, slice_of(suffixes[i].name))) {
			lookup->how = suffixes[i].how;
			lookup->fold_case = suffixes[i].fold_case;
			return 0;
		}
	}
	return errbuf_set(e, ERR_INVALID,
			  "unknown look-up \"" SHOWN "\": there are exact, contains, startswith, "
			  "endswith, regex, and each with an i before it",
			  SHOWN_OF(suffix));
}

/* What stands behind the field's name: nothing, or from `__` on. NULL data: another name. The
 * longest field counts: `device__name` is one, though `device` may be, too. */
static struct slice v2_lookup_find_field(struct slice name, const char *const *fields,
					 size_t *field)
{
	struct slice found = {NULL, 0};
	for (size_t i = 0; fields[i]; i++) {
		struct slice known = slice_of(fields[i]);
		if (!slice_starts_with(name, known))
			continue;
		struct slice rest = {name.data + known.len, name.len - known.len};
		if (rest.len && !slice_starts_with(rest, SLICE("__")))
			continue;
		if (!found.data || rest.len < found.len) {
			found = rest;
			*field = i;
		}
	}
	return found;
}

bool v2_lookup_take(struct slice name, struct slice value, const char *const *fields,
		    struct arena *arena, struct v2_lookups *lookups, int *err, struct errbuf *e)
{
	struct v2_lookup lookup = {.text = value};
	struct slice rest = v2_lookup_find_field(name, fields, &lookup.field);
	if (!rest.data)
		return false;
	*err = read_suffix(rest, &lookup, e);
	if (!*err && lookups->count == V2_LOOKUPS_MAX)
		*err = errbuf_set(e, ERR_LIMIT, "more than %d look-ups", V2_LOOKUPS_MAX);
	if (!*err && lookup.how == LOOKUP_REGEX)
		*err = regex_compile(value, lookup.fold_case, arena, &lookup.regex, e);
	if (!*err)
		lookups->list[lookups->count++] = lookup;
	return true;
}

/* ---- Matching -------------------------------------------------------------------------------- */

static bool same_at(const char *a, const char *b, size_t len, bool fold_case)
{
	if (!fold_case)
		return len == 0 || memcmp(a, b, len) == 0;
	for (size_t i = 0; i < len; i++) {
		if (ascii_lower(a[i]) != ascii_lower(b[i]))
			return false;
	}
	return true;
}

static bool v2_lookup_contains(struct slice value, struct slice text, bool fold_case)
{
	for (size_t at = 0; at + text.len <= value.len; at++) {
		if (same_at(value.data + at, text.data, text.len, fold_case))
			return true;
	}
	return false;
}

static bool v2_lookup_matches(const struct v2_lookup *lookup, struct slice value, uint64_t *work)
{
	struct slice text = lookup->text;
	*work += value.len + 1;
	if (lookup->how == LOOKUP_REGEX)
		return regex_search(&lookup->regex, value, work);
	if (text.len > value.len)
		return false;
	size_t rest = value.len - text.len;
	switch (lookup->how) {
	case LOOKUP_STARTS:
		return same_at(value.data, text.data, text.len, lookup->fold_case);
	case LOOKUP_ENDS:
		return same_at(value.data + rest, text.data, text.len, lookup->fold_case);
	case LOOKUP_CONTAINS:
		*work += value.len * text.len;
		return v2_lookup_contains(value, text, lookup->fold_case);
	default:
		return !rest && same_at(value.data, text.data, text.len, lookup->fold_case);
	}
}

bool v2_lookups_match(const struct v2_lookups *lookups, const struct slice *values, uint64_t *work)
{
	for (size_t i = 0; i < lookups->count; i++) {
		struct slice value = values[lookups->list[i].field];
		if (!value.data)
			value = SLICE("");
		if (!v2_lookup_matches(&lookups->list[i], value, work))
			return false;
	}
	return true;
}

struct slice v2_lookups_exact(const struct v2_lookups *lookups, size_t field)
{
	for (size_t i = 0; i < lookups->count; i++) {
		const struct v2_lookup *lookup = &lookups->list[i];
		if (lookup->field == field && lookup->how == LOOKUP_EXACT && !lookup->fold_case)
			return lookup->text;
	}
	return (struct slice){NULL, 0};
}
