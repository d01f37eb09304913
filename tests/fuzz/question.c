/* Searches: any text is read or refused with a sentence; a search of words alone finds itself. */
#include "words/question.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct words_question question;
	struct words_looker looker;
	struct errbuf e = {""};
	struct arena arena;
	bool keys = false, negated = false;
	arena_init(&arena, 1 << 20);
	int err = words_question_parse(text, &arena, &question, &e);
	ASSERT((err != 0) == (e.text[0] != 0));
	for (size_t i = 0; !err && i < question.count; i++) {
		const struct words_term *term = &question.terms[i];
		ASSERT((term->key.len > 0) != (term->word_count > 0));
		keys |= term->key.len > 0;
		negated |= term->negated;
	}
	if (!err) {
		words_looker_init(&looker, &question);
		words_looker_begin(&looker);
		words_look(&looker, text);
		if (!keys)
			ASSERT(words_looker_fits(&looker) == !negated);
		words_looker_release(&looker);
	}
	arena_release(&arena);
	return 0;
}
