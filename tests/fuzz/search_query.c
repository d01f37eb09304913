/* Searches: any text is read or refused with a sentence; a search of words alone finds itself. */
#include "words/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct words_query query;
	struct words_matcher matcher;
	struct errbuf e = {""};
	struct arena arena;
	bool keys = false, negated = false;
	arena_init(&arena, 1 << 20);
	int err = words_query_parse(text, &arena, &query, &e);
	ASSERT((err != 0) == (e.text[0] != 0));
	for (size_t i = 0; !err && i < query.count; i++) {
		const struct words_term *term = &query.terms[i];
		ASSERT((term->key.len > 0) != (term->word_count > 0));
		keys |= term->key.len > 0;
		negated |= term->negated;
	}
	if (!err) {
		words_matcher_init(&matcher, &query);
		words_matcher_begin(&matcher);
		words_match(&matcher, text);
		if (!keys)
			ASSERT(words_matcher_fits(&matcher) == !negated);
		words_matcher_release(&matcher);
	}
	arena_release(&arena);
	return 0;
}
