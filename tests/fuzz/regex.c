/* Any bytes as an expression, a newline and a text: no more work than the program, and the ranges
 * of its classes, for each character. */
#include "base/mem.h"
#include "wire/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	const char *newline = size ? memchr(bytes, '\n', size) : NULL;
	struct slice pattern = {bytes, newline ? (size_t)(newline - bytes) : size};
	struct slice text = {newline ? newline + 1 : bytes, 0};
	struct arena arena;
	struct regex regex;
	struct errbuf e = {""};
	uint64_t work = 0;
	if (newline)
		text.len = size - pattern.len - 1;
	arena_init(&arena, 1 << 20);
	if (regex_compile(pattern, size & 1, &arena, &regex, &e) == 0) {
		(void)regex_search(&regex, text, &work);
		/* A step, and the ranges of its class, for each character. */
		ASSERT(work <= regex.step_count * (1 + REGEX_RANGES_MAX) * (text.len + 1));
	} else {
		ASSERT(e.text[0]);
	}
	arena_release(&arena);
	return 0;
}
