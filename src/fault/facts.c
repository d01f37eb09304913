#include "fault/facts.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/utf8.h"

enum { FACTS_HASH_BYTES = 17 };

static const char *const facts_names[FAULT_TEXTS] = {
	[FAULT_CONTEXT] = "context",
	[FAULT_EXCEPTION] = "exception",
	[FAULT_LEVEL] = "level",
	[FAULT_RELEASE] = "release",
	[FAULT_ENVIRONMENT] = "environment",
	[FAULT_HOST] = "host",
	[FAULT_USER] = "user",
	[FAULT_GROUP] = "group",
	[FAULT_GROUP_ALL] = "group_all",
	[FAULT_TITLE] = "title",
	[FAULT_TAGS] = "tags",
};

const char *fault_text_name(enum fault_text text)
{
	return facts_names[text];
}

size_t fault_text_max_bytes(uint64_t number)
{
	return number == FAULT_TAGS ? (size_t)FAULT_TAGS_MAX_BYTES : FAULT_CONTEXT_MAX_BYTES;
}

/* *taken: so many bytes of the text have room. */
static size_t facts_copy(char *to, struct slice text, size_t max_bytes, size_t *taken)
{
	const uint8_t *p = (const uint8_t *)text.data;
	size_t len = 0, at = 0;
	while (at < text.len) {
		size_t n = utf8_length(p + at, text.len - at);
		struct slice character = {text.data + at, n};
		if (!n || !p[at])
			character = SLICE("\xef\xbf\xbd"); /* U+FFFD */
		if (len + character.len > max_bytes)
			break;
		memcpy(to + len, character.data, character.len);
		len += character.len;
		at += n ? n : 1;
	}
	*taken = at;
	return len;
}

size_t fault_text_cut(char *to, struct slice text, size_t max_bytes)
{
	size_t taken;
	return facts_copy(to, text, max_bytes, &taken);
}

static size_t facts_max_bytes(enum fault_text fact)
{
	if (fact == FAULT_CONTEXT || fact == FAULT_EXCEPTION)
		return FAULT_CONTEXT_MAX_BYTES;
	return FAULT_LABEL_MAX_BYTES;
}

size_t fault_fact_cut(char to[FAULT_CONTEXT_MAX_BYTES], enum fault_text fact, struct slice text)
{
	_Static_assert((int)FAULT_CONTEXT_MAX_BYTES == (int)FAULT_EXCEPTION_MAX_BYTES, "one limit");
	char hash[FACTS_HASH_BYTES + 1];
	size_t max_bytes = facts_max_bytes(fact), taken;
	size_t len = facts_copy(to, text, max_bytes, &taken);
	if (taken == text.len)
		return len;
	len = facts_copy(to, text, max_bytes - FACTS_HASH_BYTES, &taken);
	snprintf(hash, sizeof(hash), "~%016" PRIx64, hash64(text.data, text.len, 0));
	memcpy(to + len, hash, FACTS_HASH_BYTES);
	return len + FACTS_HASH_BYTES;
}

int fault_facts_keep(struct fault_facts *facts, struct arena *arena)
{
	for (size_t i = 0; i < FAULT_TEXTS; i++) {
		facts->texts[i] = arena_copy(arena, facts->texts[i]);
		if (!facts->texts[i].data)
			return ERR_LIMIT;
	}
	return 0;
}
