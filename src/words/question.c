#include "words/question.h"

enum { QUESTION_WORD_MAX_BYTES = 1 << 16 };

_Static_assert(WORDS_TERMS_MAX <= 32, "found has a bit for each");

/* ---- Parsing --------------------------------------------------------------------------------- */

struct question_parsing {
	struct slice rest;
	struct arena *arena;
	struct words_question *question;
	struct errbuf *e;
};

static bool question_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static void question_skip(struct slice *rest, size_t bytes)
{
	*rest = (struct slice){rest->data + bytes, rest->len - bytes};
}

/* After a quotation mark: the text up to the next one. `\` makes `"` and `\` ordinary. */
static int question_take_quoted(struct question_parsing *p, struct slice *text)
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
	question_skip(&p->rest, at + 1);
	*text = (struct slice){to, len};
	return 0;
}

static int question_take_text(struct question_parsing *p, struct slice *text)
{
	size_t len = 0;
	if (p->rest.len && *p->rest.data == '"') {
		question_skip(&p->rest, 1);
		return question_take_quoted(p, text);
	}
	while (len < p->rest.len && !question_is_blank(p->rest.data[len]))
		len++;
	*text = arena_copy(p->arena, (struct slice){p->rest.data, len});
	question_skip(&p->rest, len);
	return text->data ? 0 : errbuf_set(p->e, ERR_LIMIT, "the search is too long");
}

static bool question_is_key(char c, bool first)
{
	bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
	return letter || (!first && ((c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-'));
}

/* The bytes of `key:`; 0: a text begins here. Behind it stands a value: http://host and std::sort
 * are texts. */
static size_t question_key(struct slice rest)
{
	size_t len = 0;
	while (len < rest.len && question_is_key(rest.data[len], len == 0))
		len++;
	if (!len || len + 1 >= rest.len || rest.data[len] != ':')
		return 0;
	char next = rest.data[len + 1];
	bool address = next == '/' && len + 2 < rest.len && rest.data[len + 2] == '/';
	return question_is_blank(next) || next == ':' || address ? 0 : len + 1;
}

static int question_take_words(struct question_parsing *p, struct words_term *term,
			       struct slice text)
{
	struct slice whole = text, word;
	struct buf folded;
	buf_init(&folded, QUESTION_WORD_MAX_BYTES);
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

static int question_take_term(struct question_parsing *p)
{
	struct words_question *question = p->question;
	if (question->count == WORDS_TERMS_MAX)
		return errbuf_set(p->e, ERR_INVALID, "a search has up to %d terms",
				  WORDS_TERMS_MAX);
	struct words_term *term = &question->terms[question->count++];
	*term = (struct words_term){.negated = *p->rest.data == '-'};
	if (term->negated)
		question_skip(&p->rest, 1);
	size_t key = question_key(p->rest);
	struct slice text;
	if (key) {
		term->key = arena_copy(p->arena, (struct slice){p->rest.data, key - 1});
		if (!term->key.data)
			return errbuf_set(p->e, ERR_LIMIT, "the search is too long");
		question_skip(&p->rest, key);
		return question_take_text(p, &term->value);
	}
	int err = question_take_text(p, &text);
	return err ? err : question_take_words(p, term, text);
}

int words_question_parse(struct slice text, struct arena *arena, struct words_question *question,
			 struct errbuf *e)
{
	struct question_parsing p = {.rest = text, .arena = arena, .question = question, .e = e};
	*question = (struct words_question){
		.terms = arena_alloc(arena, WORDS_TERMS_MAX * sizeof(*question->terms))};
	int err = question->terms ? 0 : errbuf_set(e, ERR_LIMIT, "the search is too long");
	while (!err) {
		while (p.rest.len && question_is_blank(*p.rest.data))
			question_skip(&p.rest, 1);
		if (!p.rest.len)
			break;
		err = question_take_term(&p);
	}
	return err;
}

/* ---- Looking --------------------------------------------------------------------------------- */

static char looker_small(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static bool looker_is_ascii(struct slice word)
{
	for (size_t i = 0; i < word.len; i++)
		if ((uint8_t)word.data[i] > 0x7f)
			return false;
	return true;
}

/* The longest word of a term that has to hold. */
static void looker_add_needle(struct words_looker *looker, const struct words_term *term)
{
	struct words_needle *needle = &looker->needles[looker->needle_count];
	struct slice word = {NULL, 0};
	for (size_t i = 0; i < term->word_count && !term->negated; i++)
		if (term->words[i].len > word.len && looker_is_ascii(term->words[i]))
			word = term->words[i];
	if (!word.len)
		return;
	looker->needle_count++;
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

void words_looker_init(struct words_looker *looker, const struct words_question *question)
{
	*looker = (struct words_looker){.question = question};
	buf_init(&looker->word, QUESTION_WORD_MAX_BYTES);
	for (size_t i = 0; i < question->count; i++) {
		looker->negated |= (uint32_t)question->terms[i].negated << i;
		looker_add_needle(looker, &question->terms[i]);
	}
}

static bool looker_needle_is_in(const struct words_needle *needle, struct slice bytes)
{
	size_t last = needle->word.len - 1;
	for (size_t end = last; end < bytes.len; end += needle->skip[(uint8_t)bytes.data[end]]) {
		size_t i = 0;
		while (i <= last &&
		       looker_small(bytes.data[end - i]) == needle->word.data[last - i])
			i++;
		if (i > last)
			return true;
	}
	return false;
}

bool words_looker_may_fit(const struct words_looker *looker, struct slice bytes)
{
	for (size_t i = 0; i < looker->needle_count; i++)
		if (!looker_needle_is_in(&looker->needles[i], bytes))
			return false;
	return true;
}

void words_looker_release(struct words_looker *looker)
{
	buf_release(&looker->word);
}

void words_looker_begin(struct words_looker *looker)
{
	looker->found = 0;
}

static bool looker_is(struct words_looker *looker, struct slice word, struct slice wanted)
{
	buf_clear(&looker->word);
	words_fold(word, &looker->word);
	return slice_equal(buf_slice(&looker->word), wanted);
}

/* Whether the words behind the first of a term come next. */
static bool looker_goes_on(struct words_looker *looker, const struct words_term *term,
			   struct slice text)
{
	struct slice word;
	for (size_t i = 1; i < term->word_count; i++)
		if (!words_next(&text, &word) || !looker_is(looker, word, term->words[i]))
			return false;
	return true;
}

/* A word as it is folded, and whether it is whole or a part. */
static void looker_see(struct words_looker *looker, struct slice word, bool whole,
		       struct slice behind)
{
	const struct words_question *question = looker->question;
	buf_clear(&looker->word);
	words_fold(word, &looker->word);
	struct slice folded = buf_slice(&looker->word);
	uint32_t begun = 0;
	for (size_t i = 0; i < question->count; i++) {
		const struct words_term *term = &question->terms[i];
		if (looker->found >> i & 1 || !term->word_count ||
		    (!whole && term->word_count > 1) || !slice_equal(folded, term->words[0]))
			continue;
		begun |= 1u << i;
	}
	for (size_t i = 0; begun && i < question->count; i++)
		if (begun >> i & 1 && looker_goes_on(looker, &question->terms[i], behind))
			looker->found |= 1u << i;
}

void words_look(struct words_looker *looker, struct slice text)
{
	struct slice word, part;
	while (words_next(&text, &word)) {
		struct slice rest = word;
		looker_see(looker, word, true, text);
		while (words_next_part(&rest, &part) && part.len < word.len)
			looker_see(looker, part, false, text);
	}
}

void words_look_at_value(struct words_looker *looker, struct slice name, struct slice value)
{
	const struct words_question *question = looker->question;
	for (size_t i = 0; i < question->count; i++) {
		const struct words_term *term = &question->terms[i];
		if (term->key.len && slice_equal(term->key, name) &&
		    slice_equal(term->value, value))
			looker->found |= 1u << i;
	}
}

bool words_looker_fits(const struct words_looker *looker)
{
	uint32_t all = (uint32_t)((UINT64_C(1) << looker->question->count) - 1);
	return (looker->found ^ looker->negated) == all;
}
