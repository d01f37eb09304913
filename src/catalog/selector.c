#include "catalog/selector.h"

/* ---- Matching ------------------------------------------------------------------------------ */

/* Takes the pieces between first and last where they first occur: what is left for the later ones
 * is then longest, so nothing is ever taken back and the work is linear in value times pieces. */
bool pattern_match(const struct catalog_pattern *pattern, struct slice value)
{
	const struct slice *pieces = pattern->pieces;
	size_t last = pattern->piece_count - 1;
	if (last == 0)
		return slice_equal(pieces[0], value);
	if (pieces[0].len + pieces[last].len > value.len)
		return false;
	if (memcmp(value.data, pieces[0].data, pieces[0].len) != 0)
		return false;
	const char *at = value.data + pieces[0].len;
	const char *end = value.data + value.len - pieces[last].len;
	if (memcmp(end, pieces[last].data, pieces[last].len) != 0)
		return false;
	for (size_t i = 1; i < last; i++) {
		at = memmem(at, (size_t)(end - at), pieces[i].data, pieces[i].len);
		if (!at)
			return false;
		at += pieces[i].len;
	}
	return true;
}

bool selector_match(const struct catalog_selector *selector, struct slice value)
{
	for (size_t i = 0; i < selector->value_count; i++) {
		if (pattern_match(&selector->values[i], value))
			return true;
	}
	return false;
}

bool catalog_selectors_match(const struct catalog_selector *list, size_t count, struct tags tags)
{
	for (size_t i = 0; i < count; i++) {
		struct slice value = tags_find(tags, list[i].key);
		if (!value.data || !selector_match(&list[i], value))
			return false;
	}
	return true;
}

bool selector_exact(const struct catalog_selector *selector)
{
	for (size_t i = 0; i < selector->value_count; i++) {
		if (selector->values[i].piece_count > 1)
			return false;
	}
	return true;
}

/* ---- Reading ------------------------------------------------------------------------------- */

struct selector_reader {
	struct slice text;
	size_t at;
	char *copy; /* room for all literals: together they are no longer than the text */
	struct arena *arena;
	struct errbuf *e;
};

static int selector_too_large(struct selector_reader *r)
{
	return errbuf_set(r->e, ERR_LIMIT, "the tags take too much room");
}

/* Whether an unescaped `=` stands before the next unescaped comma: then a key begins here. */
static bool key_ahead(const struct selector_reader *r)
{
	for (size_t i = r->at; i < r->text.len; i++) {
		char c = r->text.data[i];
		if (c == '=')
			return true;
		if (c == ',')
			return false;
		if (c == '\\')
			i++;
	}
	return false;
}

/* The text before an unescaped character of `stops`, which is left at r->at. */
static int selector_read_literal(struct selector_reader *r, const char *stops,
				 struct slice *literal)
{
	char *start = r->copy;
	for (; r->at < r->text.len; r->at++) {
		char c = r->text.data[r->at];
		if (c != '\\') {
			if (c && strchr(stops, c))
				break;
			*r->copy++ = c;
			continue;
		}
		if (++r->at == r->text.len || !strchr(",=|*\\", r->text.data[r->at]))
			return errbuf_set(
				r->e, ERR_INVALID,
				"a backslash stands before one of , = | * or a backslash");
		*r->copy++ = r->text.data[r->at];
	}
	*literal = (struct slice){start, (size_t)(r->copy - start)};
	return 0;
}

static int selector_read_key(struct selector_reader *r, struct slice *key)
{
	int err = selector_read_literal(r, "=", key);
	if (err)
		return err;
	r->at++; /* the `=` */
	return key->len ? 0 : errbuf_set(r->e, ERR_INVALID, "a tag's key is empty");
}

static size_t count_pieces(const struct selector_reader *r)
{
	size_t pieces = 1;
	for (size_t i = r->at; i < r->text.len; i++) {
		char c = r->text.data[i];
		if (c == ',' || c == '|')
			break;
		if (c == '\\')
			i++;
		else
			pieces += c == '*';
	}
	return pieces;
}

/* One value, up to a `|`, a comma or the end. */
static int read_pattern(struct selector_reader *r, struct catalog_pattern *pattern)
{
	struct slice *pieces = arena_alloc(r->arena, count_pieces(r) * sizeof(*pieces));
	if (!pieces)
		return selector_too_large(r);
	size_t count = 0, total = 0;
	for (;; r->at++) {
		struct slice literal;
		int err = selector_read_literal(r, "*|,", &literal);
		if (err)
			return err;
		bool star = r->at < r->text.len && r->text.data[r->at] == '*';
		/* Two stars in a row are one. */
		if (literal.len || count == 0 || !star)
			pieces[count++] = literal;
		total += literal.len;
		if (!star)
			break;
	}
	*pattern = (struct catalog_pattern){pieces, count};
	if (count == 1 && total == 0)
		return errbuf_set(r->e, ERR_INVALID, "a tag's value is empty");
	return 0;
}

/* The values of one key: separated by `|`, or by a comma where no new key follows it. */
static int selector_read_values(struct selector_reader *r, struct catalog_selector *selector)
{
	struct catalog_pattern *values = NULL;
	size_t count = 0, capacity = 0;
	for (;;) {
		if (count == CATALOG_ALTERNATIVES_MAX)
			return errbuf_set(r->e, ERR_INVALID,
					  "tag \"" SHOWN "\" has more than %d values",
					  SHOWN_OF(selector->key), CATALOG_ALTERNATIVES_MAX);
		if (count == capacity) {
			struct catalog_pattern *more;
			capacity = capacity ? capacity * 4 : 2;
			more = arena_alloc(r->arena, capacity * sizeof(*more));
			if (!more)
				return selector_too_large(r);
			if (count)
				memcpy(more, values, count * sizeof(*more));
			values = more;
		}
		int err = read_pattern(r, &values[count++]);
		if (err)
			return err;
		if (r->at == r->text.len)
			break;
		bool comma = r->text.data[r->at++] == ',';
		if (comma && key_ahead(r))
			break;
	}
	selector->values = values;
	selector->value_count = count;
	return 0;
}

static int read_selector(struct selector_reader *r, struct catalog_selector *selector)
{
	if (!key_ahead(r))
		return errbuf_set(r->e, ERR_INVALID, "\"" SHOWN "\" is not of the form key=value",
				  SHOWN_OF(r->text));
	int err = selector_read_key(r, &selector->key);
	return err ? err : selector_read_values(r, selector);
}

int catalog_selectors_parse(struct slice text, struct arena *arena, struct catalog_selector *list,
			    size_t *count, struct errbuf *e)
{
	struct selector_reader r = {.text = text, .arena = arena, .e = e};
	r.copy = arena_alloc(arena, text.len + 1);
	if (!r.copy)
		return selector_too_large(&r);
	do {
		if (*count == CATALOG_SELECTORS_MAX)
			return errbuf_set(e, ERR_INVALID, "more than %d tags",
					  CATALOG_SELECTORS_MAX);
		int err = read_selector(&r, &list[*count]);
		if (err)
			return err;
		++*count;
	} while (r.at < text.len);
	return 0;
}
