#include "fault/facts.h"

#include "base/utf8.h"

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

size_t fault_text_cut(char *to, struct slice text, size_t max_bytes)
{
	const uint8_t *p = (const uint8_t *)text.data;
	size_t len = 0;
	for (size_t at = 0; at < text.len;) {
		size_t n = utf8_length(p + at, text.len - at);
		struct slice character = {text.data + at, n};
		if (!n)
			character = SLICE("\xef\xbf\xbd"); /* U+FFFD */
		if (len + character.len > max_bytes)
			break;
		memcpy(to + len, character.data, character.len);
		len += character.len;
		at += n ? n : 1;
	}
	return len;
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
