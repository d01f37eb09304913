#include "fault/facts.h"

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
};

const char *fault_text_name(enum fault_text text)
{
	return facts_names[text];
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
