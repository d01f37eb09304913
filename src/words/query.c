#include "words/query.h"

enum { QUERY_WORD_MAX_BYTES = 1 << 16 };

_Static_assert(WORDS_TERMS_MAX <= 32, "found has a bit for each");

/* ---- Parsing --------------------------------------------------------------------------------- */

struct query_parsing {
	struct slice rest;
	struct arena *arena;
	struct words_query *query;
	struct errbuf *e;
};

static bool query_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static void query_skip(struct slice *rest, size_t bytes)
{
	*rest = (struct slice){rest->data + bytes, rest->len - bytes};
}

/* After a quotation mark: the text up to the next one. `\` makes `"` and `\` ordinary. */
static int query_take_quoted(struct query_parsing *p, struct slice *text)
{
	char *to = arena_alloc(p->arena, p->rest.len + 1);
	size_t at = 0, len = 0;
	if (!to)
		return errbuf_set(p->e, ERR_LIMIT, "the search is too long");
	while (at < p->rest.len && p->rest.data[at] != '"') {
		char next = at + 1 < p->rest.len ? p->rest.data[at + 1] : 0;
		at += p->rest.data[at] == '\\' && (next == '"' || next == '\\');
		to[len++] = p->rest.data[at++];
	}
	if (at == p->rest.len)
		return errbuf_set(p->e, ERR_INVALID,
				  "the search has a quotation mark that is not closed");
	query_skip(&p->rest, at + 1);
	*text = (struct slice){to, len};
	return 0;
}

static int query_take_text(struct query_parsing *p, struct slice *text)
{
	size_t len = 0;
	if (p->rest.len && *p->rest.data == '"') {
		query_skip(&p->rest, 1);
		return query_take_quoted(p, text);
	}
	while (len < p->rest.len && !query_is_blank(p->rest.data[len]))
		len++;
	*text = arena_copy(p->arena, (struct slice){p->rest.data, len});
	query_skip(&p->rest, len);
	return text->data ? 0 : errbuf_set(p->e, ERR_LIMIT, "the search is too long");
}

static bool query_is_key(char c, bool first)
{
	bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
	return letter || (!first && ((c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-'));
}

/* The bytes of `key:`; 0: a text begins here. Behind it stands a value: http://host and std::sort
 * are texts. */
static size_t query_key(struct slice rest)
{
	size_t len = 0;
	while (len < rest.len && query_is_key(rest.data[len], len == 0))
		len++;
	if (!len || len + 1 >= rest.len || rest.data[len] != ':')
		return 0;
	char next = rest.data[len + 1];
	bool address = next == '/' && len + 2 < rest.len && rest.data[len + 2] == '/';
	return query_is_blank(next) || next == ':' || address ? 0 : len + 1;
}

static int query_take_words(struct query_parsing *p, struct words_term *term, struct slice text)
{
	struct slice whole = text, word;
	struct buf folded;
	buf_init(&folded, QUERY_WORD_MAX_BYTES);
	while (term->word_count < WORDS_OF_TERM_MAX && words_next(&text, &word)) {
		buf_clear(&folded);
		words_fold(word, &folded);
		struct slice copy = arena_copy(p->arena, buf_slice(&folded));
		if (folded.failed || !copy.data) {
			buf_release(&folded);
			return errbuf_set(p->e, ERR_LIMIT, "the search is too long");
		}
		term->words[term->word_count++] = copy;
	}
	buf_release(&folded);
	if (words_next(&text, &word))
		return errbuf_set(p->e, ERR_INVALID, "the search has more than %d words in a row",
				  WORDS_OF_TERM_MAX);
	if (!term->word_count)
		return errbuf_set(p->e, ERR_INVALID,
				  "the search has no letter or digit in \"" SHOWN "\"",
				  SHOWN_OF(whole));
	return 0;
}

static int query_take_term(struct query_parsing *p)
{
	struct words_query *query = p->query;
	if (query->count == WORDS_TERMS_MAX)
		return errbuf_set(p->e, ERR_INVALID, "a search has up to %d terms",
				  WORDS_TERMS_MAX);
	struct words_term *term = &query->terms[query->count++];
	*term = (struct words_term){.negated = *p->rest.data == '-'};
	if (term->negated)
		query_skip(&p->rest, 1);
	size_t key = query_key(p->rest);
	struct slice text;
	if (key) {
		term->key = arena_copy(p->arena, (struct slice){p->rest.data, key - 1});
		if (!term->key.data)
			return errbuf_set(p->e, ERR_LIMIT, "the search is too long");
		query_skip(&p->rest, key);
		return query_take_text(p, &term->value);
	}
	int err = query_take_text(p, &text);
	return err ? err : query_take_words(p, term, text);
}

int words_query_parse(struct slice text, struct arena *arena, struct words_query *query,
		      struct errbuf *e)
{
	struct query_parsing p = {.rest = text, .arena = arena, .query = query, .e = e};
	*query = (struct words_query){
		.terms = arena_alloc(arena, WORDS_TERMS_MAX * sizeof(*query->terms))};
	int err = query->terms ? 0 : errbuf_set(e, ERR_LIMIT, "the search is too long");
	while (!err) {
		while (p.rest.len && query_is_blank(*p.rest.data))
			query_skip(&p.rest, 1);
		if (!p.rest.len)
			break;
		err = query_take_term(&p);
	}
	return err;
}

/* ---- Matching -------------------------------------------------------------------------------- */

static bool matcher_is_ascii(struct slice word)
{
	for (size_t i = 0; i < word.len; i++)
		if ((uint8_t)word.data[i] > 0x7f)
			return false;
	return true;
}

/* The longest word of a term that has to hold. */
static void matcher_add_needle(struct words_matcher *matcher, const struct words_term *term)
{
	struct words_needle *needle = &matcher->needles[matcher->needle_count];
	struct slice word = {NULL, 0};
	for (size_t i = 0; i < term->word_count && !term->negated; i++)
		if (term->words[i].len > word.len && matcher_is_ascii(term->words[i]))
			word = term->words[i];
	if (!word.len)
		return;
	matcher->needle_count++;
	needle->word = word;
	memset(needle->skip, (int)smaller_of(word.len, UINT8_MAX), sizeof(needle->skip));
	for (size_t i = 0; i + 1 < word.len; i++) {
		char c = word.data[i];
		uint8_t skip = (uint8_t)smaller_of(word.len - 1 - i, UINT8_MAX);
		needle->skip[(uint8_t)c] = skip;
		if (c >= 'a' && c <= 'z')
			needle->skip[(uint8_t)(c - 'a' + 'A')] = skip;
	}
}

void words_matcher_init(struct words_matcher *matcher, const struct words_query *query)
{
	*matcher = (struct words_matcher){.query = query};
	buf_init(&matcher->word, QUERY_WORD_MAX_BYTES);
	for (size_t i = 0; i < query->count; i++) {
		matcher->negated |= (uint32_t)query->terms[i].negated << i;
		matcher_add_needle(matcher, &query->terms[i]);
	}
}

static bool matcher_needle_is_in(const struct words_needle *needle, struct slice bytes)
{
	size_t last = needle->word.len - 1;
	for (size_t end = last; end < bytes.len; end += needle->skip[(uint8_t)bytes.data[end]]) {
		size_t i = 0;
		while (i <= last && ascii_lower(bytes.data[end - i]) == needle->word.data[last - i])
			i++;
		if (i > last)
			return true;
	}
	return false;
}

bool words_matcher_may_fit(const struct words_matcher *matcher, const struct slice *texts,
			   size_t count)
{
	for (size_t i = 0; i < matcher->needle_count; i++) {
		size_t at = 0;
		while (at < count && !matcher_needle_is_in(&matcher->needles[i], texts[at]))
			at++;
		if (at == count)
			return false;
	}
	return true;
}

void words_matcher_release(struct words_matcher *matcher)
{
	buf_release(&matcher->word);
}

void words_matcher_begin(struct words_matcher *matcher)
{
	matcher->found = 0;
}

static bool matcher_is(struct words_matcher *matcher, struct slice word, struct slice wanted)
{
	buf_clear(&matcher->word);
	words_fold(word, &matcher->word);
	return slice_equal(buf_slice(&matcher->word), wanted);
}

/* Whether the words behind the first of a term come next. */
static bool matcher_goes_on(struct words_matcher *matcher, const struct words_term *term,
			    struct slice text)
{
	struct slice word;
	for (size_t i = 1; i < term->word_count; i++)
		if (!words_next(&text, &word) || !matcher_is(matcher, word, term->words[i]))
			return false;
	return true;
}

/* A word as it is folded, and whether it is whole or a part. */
static void matcher_see(struct words_matcher *matcher, struct slice word, bool whole,
			struct slice behind)
{
	const struct words_query *query = matcher->query;
	buf_clear(&matcher->word);
	words_fold(word, &matcher->word);
	struct slice folded = buf_slice(&matcher->word);
	uint32_t begun = 0;
	for (size_t i = 0; i < query->count; i++) {
		const struct words_term *term = &query->terms[i];
		if (matcher->found >> i & 1 || !term->word_count ||
		    (!whole && term->word_count > 1) || !slice_equal(folded, term->words[0]))
			continue;
		begun |= 1u << i;
	}
	for (size_t i = 0; begun && i < query->count; i++)
		if (begun >> i & 1 && matcher_goes_on(matcher, &query->terms[i], behind))
			matcher->found |= 1u << i;
}

void words_match(struct words_matcher *matcher, struct slice text)
{
	struct slice word, part;
	while (words_next(&text, &word)) {
		struct slice rest = word;
		matcher_see(matcher, word, true, text);
		while (words_next_part(&rest, &part) && part.len < word.len)
			matcher_see(matcher, part, false, text);
	}
}

static bool matcher_has_value(const struct words_term *term, struct slice value)
{
	for (size_t i = 0; i < term->other_count; i++)
		if (slice_equal(term->others[i], value))
			return true;
	return slice_equal(term->value, value);
}

void words_match_value(struct words_matcher *matcher, struct slice name, struct slice value)
{
	const struct words_query *query = matcher->query;
	for (size_t i = 0; i < query->count; i++) {
		const struct words_term *term = &query->terms[i];
		if (term->key.len && slice_equal(term->key, name) && matcher_has_value(term, value))
			matcher->found |= 1u << i;
	}
}

bool words_matcher_fits(const struct words_matcher *matcher)
{
	uint32_t all = (uint32_t)((UINT64_C(1) << matcher->query->count) - 1);
	return (matcher->found ^ matcher->negated) == all;
}
