/* Any bytes as a report, and as its trace and message: it gets a group, the same each time, and
 * words within their limits. */
#include "base/mem.h"
#include "fault/group.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX_BYTES = 16 << 20 };

static void check_group(const struct fault_group *group)
{
	ASSERT(group->name.len == FAULT_GROUP_NAME_BYTES);
	ASSERT(group->all.len == FAULT_GROUP_NAME_BYTES);
	ASSERT(group->count <= FAULT_GROUP_WORDS_MAX);
	ASSERT(group->title.len <= FAULT_GROUP_TITLE_MAX_BYTES);
	for (size_t i = 0; i < group->count; i++)
		ASSERT(group->words[i].text.len <= FAULT_GROUP_WORD_MAX_BYTES);
}

static void group_twice(const struct json *report, struct arena *arena)
{
	struct fault_group group, again;
	ASSERT(!fault_group_make(report, arena, &group));
	ASSERT(!fault_group_make(report, arena, &again));
	check_group(&group);
	ASSERT(slice_equal(group.name, again.name) && slice_equal(group.all, again.all));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {size ? (const char *)data : "", size};
	struct json value = {.type = JSON_T_STRING, .text = text, .key = SLICE("value")};
	struct json trace = {
		.type = JSON_T_STRING, .text = text, .key = SLICE("tb_text"), .next = &value};
	struct json report = {.type = JSON_T_OBJECT, .first = &trace, .count = 2};
	struct json *document;
	struct arena arena;
	arena_init(&arena, MEMORY_MAX_BYTES);
	group_twice(&report, &arena);
	trace.key = SLICE("exception");
	group_twice(&report, &arena);
	if (!json_parse(text, &arena, &document, NULL))
		group_twice(document, &arena);
	arena_release(&arena);
	return 0;
}
