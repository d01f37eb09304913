#include "api/opentsdb/filter.h"

enum {
	KEEP_ARENA_BYTES = 16 * TAGS_TEXT_MAX_BYTES,
	WILDCARD_MAX_BYTES = 2 * TAG_VALUE_MAX_BYTES + 1, /* a star around each character */
};

/* ---- Reading ------------------------------------------------------------------------------- */

static int opentsdb_filter_too_large(struct errbuf *e)
{
	return errbuf_set(e, ERR_LIMIT, "the filters take too much room");
}

/* The parts of a text between `at`s, into an array; `h-1|h-2` has two. */
static int opentsdb_filter_split(struct slice text, char at, struct arena *arena,
				 struct slice **parts, size_t *count, struct errbuf *e)
{
	size_t room = 1;
	for (size_t i = 0; i < text.len; i++)
		room += text.data[i] == at;
	*parts = arena_alloc(arena, room * sizeof(**parts));
	if (!*parts)
		return opentsdb_filter_too_large(e);
	const char *from = text.data, *end = text.data + text.len;
	for (*count = 0; *count < room; ++*count) {
		const char *to = memchr(from, at, (size_t)(end - from));
		to = to ? to : end;
		(*parts)[*count] = (struct slice){from, (size_t)(to - from)};
		from = to + 1;
	}
	return 0;
}

/* The values of literal_or and not_literal_or. */
static int opentsdb_filter_read_values(struct slice text, struct arena *arena,
				       struct slice **values, size_t *count, struct errbuf *e)
{
	int err = opentsdb_filter_split(text, '|', arena, values, count, e);
	if (err)
		return err;
	if (*count > CATALOG_ALTERNATIVES_MAX)
		return errbuf_set(e, ERR_INVALID, "filter has more than %d values",
				  CATALOG_ALTERNATIVES_MAX);
	for (size_t i = 0; i < *count; i++) {
		if (!(*values)[i].len)
			return errbuf_set(e, ERR_INVALID, "filter \"" SHOWN "\" has an empty value",
					  SHOWN_OF(text));
	}
	return 0;
}

static int opentsdb_filter_read_literal(struct catalog_selector *selector, struct slice text,
					struct arena *arena, struct errbuf *e)
{
	struct slice *values;
	size_t count;
	int err = opentsdb_filter_read_values(text, arena, &values, &count, e);
	if (err)
		return err;
	struct catalog_pattern *patterns = arena_alloc(arena, count * sizeof(*patterns));
	if (!patterns)
		return opentsdb_filter_too_large(e);
	for (size_t i = 0; i < count; i++)
		patterns[i] = (struct catalog_pattern){&values[i], 1};
	selector->values = patterns;
	selector->value_count = count;
	return 0;
}

static int read_wildcard(struct catalog_selector *selector, struct slice text, struct arena *arena,
			 struct errbuf *e)
{
	struct slice *pieces;
	struct catalog_pattern *pattern = arena_alloc(arena, sizeof(*pattern));
	size_t count;
	int err = opentsdb_filter_split(text, '*', arena, &pieces, &count, e);
	if (err)
		return err;
	if (!pattern)
		return opentsdb_filter_too_large(e);
	if (!text.len)
		return errbuf_set(e, ERR_INVALID, "filter is empty");
	if (text.len > WILDCARD_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "filter \"" SHOWN "\" is longer than %d bytes",
				  SHOWN_OF(text), WILDCARD_MAX_BYTES);
	*pattern = (struct catalog_pattern){pieces, count};
	selector->values = pattern;
	selector->value_count = 1;
	return 0;
}

static int read_regex(struct opentsdb_filter *check, struct catalog_selector *selector,
		      struct slice text, struct arena *arena, struct errbuf *e)
{
	if (!text.len)
		return errbuf_set(e, ERR_INVALID, "filter is empty");
	check->is_regex = true;
	int err = regex_compile(text, false, arena, &check->regex, e);
	if (err)
		return errbuf_prefix(e, ERR_INVALID, "filter \"" SHOWN "\"", SHOWN_OF(text));
	return read_wildcard(selector, SLICE("*"), arena, e);
}

static int add_by(struct opentsdb_filters *filters, struct slice key, struct errbuf *e)
{
	for (size_t i = 0; i < filters->by_count; i++) {
		if (slice_equal(filters->by[i], key))
			return 0;
	}
	if (filters->by_count == QUERY_BY_MAX)
		return errbuf_set(e, ERR_INVALID, "more than %d tags to group by", QUERY_BY_MAX);
	filters->by[filters->by_count++] = key;
	return 0;
}

static int add_filter(struct opentsdb_filters *filters, struct slice type, struct slice key,
		      struct slice text, struct arena *arena, struct errbuf *e)
{
	/* All are within bounds: neither list is longer than `count`. */
	if (filters->count == CATALOG_SELECTORS_MAX)
		return errbuf_set(e, ERR_INVALID, "more than %d filters", CATALOG_SELECTORS_MAX);
	struct catalog_selector *selector = &filters->selectors[filters->selector_count];
	struct opentsdb_filter *check = &filters->checks[filters->check_count];
	*selector = (struct catalog_selector){.key = key};
	*check = (struct opentsdb_filter){.key = key};
	int err = 0;
	if (key.len < 1 || key.len > TAG_KEY_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "a tag key has 1 to %d bytes", TAG_KEY_MAX_BYTES);
	if (slice_equal(type, SLICE("literal_or"))) {
		err = opentsdb_filter_read_literal(selector, text, arena, e);
	} else if (slice_equal(type, SLICE("wildcard"))) {
		err = read_wildcard(selector, text, arena, e);
	} else if (slice_equal(type, SLICE("regexp"))) {
		err = read_regex(check, selector, text, arena, e);
	} else if (slice_equal(type, SLICE("not_literal_or"))) {
		struct slice *values;
		check->is_not = true;
		err = opentsdb_filter_read_values(text, arena, &values, &check->value_count, e);
		check->values = values;
	} else {
		err = errbuf_set(e, ERR_INVALID,
				 "type \"" SHOWN
				 "\" is none of literal_or, not_literal_or, regexp, wildcard",
				 SHOWN_OF(type));
	}
	filters->count++;
	filters->selector_count += !check->is_not;
	filters->check_count += check->is_not || check->is_regex;
	ASSERT(filters->selector_count <= filters->count && filters->check_count <= filters->count);
	return err;
}

static int read_filter(struct opentsdb_filters *filters, const struct json *item,
		       struct arena *arena, struct errbuf *e)
{
	struct slice type, key, text;
	bool group_by = false;
	if (item->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "not an object");
	static const char *const names[] = {"type", "tagk", "filter", "groupBy", NULL};
	int err = json_check_members(item, names, e);
	if (!err)
		err = json_get_text(item, "type", &type, e);
	if (!err)
		err = json_get_text(item, "tagk", &key, e);
	if (!err)
		err = json_get_text(item, "filter", &text, e);
	if (!err && json_member(item, "groupBy"))
		err = json_get_bool(item, "groupBy", &group_by, e);
	if (!err)
		err = add_filter(filters, type, key, text, arena, e);
	return err || !group_by ? err : add_by(filters, key, e);
}

static int opentsdb_filter_read_list(struct opentsdb_filters *filters, const struct json *list,
				     struct arena *arena, struct errbuf *e)
{
	size_t i = 0;
	if (list->type != JSON_T_ARRAY)
		return errbuf_set(e, ERR_INVALID, "filters is no list");
	for (const struct json *item = list->first; item; item = item->next, i++) {
		int err = read_filter(filters, item, arena, e);
		if (err)
			return errbuf_prefix(e, err == ERR_NOT_FOUND ? ERR_INVALID : err,
					     "filters[%zu]", i);
	}
	return 0;
}

struct slice opentsdb_filter_type(struct slice *text)
{
	const char *open = memchr(text->data, '(', text->len);
	if (open && text->data[text->len - 1] == ')') {
		struct slice type = {text->data, (size_t)(open - text->data)};
		*text = (struct slice){open + 1, text->len - type.len - 2};
		return type;
	}
	return memchr(text->data, '*', text->len) ? SLICE("wildcard") : SLICE("literal_or");
}

static int opentsdb_filter_read_tag(struct opentsdb_filters *filters, const struct json *tag,
				    struct arena *arena, struct errbuf *e)
{
	struct slice text = tag->text;
	if (tag->type != JSON_T_STRING)
		return errbuf_set(e, ERR_INVALID, "not a text");
	struct slice type = opentsdb_filter_type(&text);
	int err = add_filter(filters, type, tag->key, text, arena, e);
	return err ? err : add_by(filters, tag->key, e);
}

static int opentsdb_filter_read_tags(struct opentsdb_filters *filters, const struct json *tags,
				     struct arena *arena, struct errbuf *e)
{
	if (tags->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "tags is no object");
	for (const struct json *tag = tags->first; tag; tag = tag->next) {
		int err = opentsdb_filter_read_tag(filters, tag, arena, e);
		if (err)
			return errbuf_prefix(e, err, "tags \"" SHOWN "\"", SHOWN_OF(tag->key));
	}
	return 0;
}

int opentsdb_filters_read(struct opentsdb_filters *filters, const struct json *list,
			  const struct json *tags, struct arena *arena, struct errbuf *e)
{
	int err = 0;
	if (list && list->type != JSON_T_NULL)
		err = opentsdb_filter_read_list(filters, list, arena, e);
	if (!err && tags && tags->type != JSON_T_NULL)
		err = opentsdb_filter_read_tags(filters, tags, arena, e);
	return err;
}

/* ---- Matching ------------------------------------------------------------------------------ */

bool opentsdb_filters_must_keep(const struct opentsdb_filters *filters)
{
	return filters->check_count || filters->only_these || filters->strict;
}

static bool check_holds(const struct opentsdb_filter *check, struct tags tags, uint64_t *work)
{
	struct slice value = tags_find(tags, check->key);
	*work += 1 + check->value_count;
	if (check->is_regex)
		return value.data && regex_search(&check->regex, value, work);
	for (size_t i = 0; i < check->value_count && value.data; i++) {
		if (slice_equal(check->values[i], value))
			return false;
	}
	return true;
}

static bool is_named(const struct opentsdb_filters *filters, struct slice key)
{
	for (size_t i = 0; i < filters->selector_count; i++) {
		if (slice_equal(filters->selectors[i].key, key))
			return true;
	}
	for (size_t i = 0; i < filters->check_count; i++) {
		if (slice_equal(filters->checks[i].key, key))
			return true;
	}
	return false;
}

static bool all_hold(struct opentsdb_filters *filters, struct tags tags)
{
	for (size_t i = 0; i < filters->check_count; i++) {
		if (filters->work > OPENTSDB_FILTER_WORK_MAX ||
		    !check_holds(&filters->checks[i], tags, &filters->work))
			return false;
	}
	for (size_t i = 0; i < tags.count && filters->only_these; i++) {
		if (!is_named(filters, tags.list[i].key))
			return false;
	}
	return true;
}

bool opentsdb_filters_keep(void *owner, struct slice tags_text)
{
	struct opentsdb_filters *filters = owner;
	struct arena arena;
	struct tags tags;
	ASSERT(!filters->strict || filters->names);
	if (filters->work > OPENTSDB_FILTER_WORK_MAX)
		return false;
	if (filters->strict && !device_names_keep(filters->names, tags_text))
		return false;
	arena_init(&arena, KEEP_ARENA_BYTES);
	if (filters->names)
		tags_text = device_names_tags(filters->names, tags_text, &arena);
	bool kept = tags_decode(tags_text, &arena, &tags) == 0 && all_hold(filters, tags);
	arena_release(&arena);
	return kept;
}
