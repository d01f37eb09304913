/* Bytes written as hexadecimal text, blanks between them as one likes. */
#ifndef TESTS_UNIT_HEX_H
#define TESTS_UNIT_HEX_H

#include "base/base.h"
#include "base/mem.h"

static inline int hex_digit(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* Into `memory`, which has room. */
static inline struct slice hex_to(const char *text, void *memory)
{
	char *out = memory;
	size_t len = 0, digits = 0;
	for (int value = 0; *text; text++) {
		if (*text == ' ')
			continue;
		value = value * 16 + hex_digit(*text);
		if (++digits % 2 == 0) {
			out[len++] = (char)value;
			value = 0;
		}
	}
	return (struct slice){out, len};
}

/* Of just that size, so that a byte too far is seen by sanitizers. The caller frees `data`. */
static inline struct slice hex_new(const char *text)
{
	char *memory = mem_alloc(strlen(text));
	struct slice bytes = hex_to(text, memory);
	bytes.data = memory = mem_resize(memory, bytes.len ? bytes.len : 1);
	return bytes;
}

static inline void hex_free(struct slice bytes)
{
	mem_free((void *)(uintptr_t)bytes.data);
}

#endif
