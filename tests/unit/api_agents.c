/* What the book of agents keeps: reports of all and of changes, its bounds, and who is forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "api/admin/agent_book.h"
#include "base/stats.h"

#define NOW_MS INT64_C(1600000000000)

static const struct adaptor_seen plain = {
	.kind = {"tail", 4}, .datatype = {"log", 3}, .path = {"/l", 2}, .error = {"", 0}};

/* Adaptors of these names, which are one letter each; of capital ones the state is `stopped`. */
static int say(struct agent_book *book, const char *agent, uint64_t boot, bool all,
	       const char *names, const char *gone)
{
	struct adaptor_seen adaptors[26];
	struct slice gone_names[26];
	struct agent_said said = {.boot = boot,
				  .all = all,
				  .version = SLICE("1"),
				  .collector = SLICE("c"),
				  .problem = SLICE(""),
				  .adaptors = adaptors,
				  .adaptor_count = strlen(names),
				  .gone = gone_names,
				  .gone_count = strlen(gone)};
	struct arena arena;
	struct errbuf e = {""};
	for (size_t i = 0; names[i]; i++) {
		adaptors[i] = plain;
		adaptors[i].name = (struct slice){&names[i], 1};
		adaptors[i].state = names[i] < 'a' ? ADAPTOR_STOPPED : ADAPTOR_FOLLOWING;
		adaptors[i].behind_bytes = 10;
	}
	for (size_t i = 0; gone[i]; i++)
		gone_names[i] = (struct slice){&gone[i], 1};
	arena_init(&arena, 1 << 20);
	int err = agent_book_take(book, slice_of(agent), &said, &arena, NOW_MS, &e);
	assert_true(!err == !e.text[0]);
	arena_release(&arena);
	return err;
}

static void assert_adaptors(const struct agent_book *book, const char *agent, const char *names)
{
	const struct agent_seen *seen = agent_book_find(book, slice_of(agent));
	char found[27] = "";
	assert_non_null(seen);
	assert_int_equal(seen->count, strlen(names));
	for (size_t i = 0; i < seen->count; i++)
		found[i] = seen->adaptors[i]->name.data[0];
	assert_string_equal(found, names);
	assert_int_equal(seen->behind_bytes, 10 * strlen(names));
}

static void reports_change_what_they_name(UNUSED void **state)
{
	struct agent_book *book = agent_book_new();
	assert_int_equal(say(book, "web", 1, false, "a", ""), ERR_RETRY);
	assert_null(agent_book_find(book, SLICE("web")));
	assert_int_equal(say(book, "web", 1, true, "dba", ""), 0);
	assert_adaptors(book, "web", "abd");
	assert_int_equal(say(book, "web", 1, false, "zcA", "bx"), 0);
	assert_adaptors(book, "web", "Aacdz");
	assert_int_equal(agent_book_find(book, SLICE("web"))->states[ADAPTOR_STOPPED], 1);
	assert_int_equal(agent_book_find(book, SLICE("web"))->states[ADAPTOR_FOLLOWING], 4);
	/* One that is named is not gone; all that are left may be. */
	assert_int_equal(say(book, "web", 1, false, "c", "Aacdz"), 0);
	assert_adaptors(book, "web", "c");
	assert_int_equal(say(book, "web", 1, false, "", "c"), 0);
	assert_adaptors(book, "web", "");
	assert_int_equal(say(book, "web", 1, false, "q", ""), 0);
	/* Another start of the agent says all, or nothing. */
	assert_int_equal(say(book, "web", 2, false, "r", ""), ERR_RETRY);
	assert_adaptors(book, "web", "q");
	assert_int_equal(say(book, "web", 2, true, "r", "q"), 0);
	assert_adaptors(book, "web", "r");
	assert_int_equal(say(book, "web", 1, false, "s", ""), ERR_RETRY);
	assert_int_equal(say(book, "web", 2, false, "sts", ""), ERR_INVALID);
	assert_adaptors(book, "web", "r");
	agent_book_free(book);
}

static bool is_told(struct agent_book *book, int64_t now_ms)
{
	return agent_book_tells_shared(book, SLICE("web"), now_ms);
}

/* A start of an agent that comes back when another one has come is that of a second agent. */
static void two_agents_of_one_name(UNUSED void **state)
{
	struct agent_book *book = agent_book_new();
	assert_false(is_told(book, NOW_MS));
	assert_int_equal(say(book, "web", 1, true, "a", ""), 0);
	assert_int_equal(say(book, "web", 0, true, "a", ""), 0);
	assert_int_equal(agent_book_find(book, SLICE("web"))->shared_ms, 0);
	/* However often one is started. */
	for (uint64_t boot = 2; boot < 20; boot++) {
		assert_int_equal(say(book, "web", boot, true, "a", ""), 0);
		assert_int_equal(say(book, "web", boot, false, "b", ""), 0);
		assert_int_equal(agent_book_find(book, SLICE("web"))->shared_ms, 0);
	}
	assert_int_equal(say(book, "web", 25, false, "a", ""), ERR_RETRY);
	assert_false(is_told(book, NOW_MS));
	assert_int_equal(say(book, "web", 18, false, "a", ""), ERR_RETRY);
	assert_int_equal(agent_book_find(book, SLICE("web"))->shared_ms, NOW_MS);
	assert_true(is_told(book, NOW_MS));
	assert_false(is_told(book, NOW_MS));
	assert_int_equal(say(book, "web", 18, true, "a", ""), 0);
	assert_false(is_told(book, NOW_MS));
	agent_book_free(book);
}

/* Four take turns. A fifth is found by none of them. */
static void some_agents_of_one_name(UNUSED void **state)
{
	for (uint64_t agents = 2; agents <= 4; agents++) {
		struct agent_book *book = agent_book_new();
		for (uint64_t boot = 1; boot <= agents; boot++) {
			assert_int_equal(say(book, "web", boot, true, "a", ""), 0);
			assert_int_equal(say(book, "web", boot, false, "b", ""), 0);
		}
		assert_int_equal(agent_book_find(book, SLICE("web"))->shared_ms, 0);
		assert_int_equal(say(book, "web", 1, true, "a", ""), 0);
		assert_int_equal(agent_book_find(book, SLICE("web"))->shared_ms, NOW_MS);
		assert_int_equal(say(book, "web", 2, true, "a", ""), 0);
		assert_true(is_told(book, NOW_MS));
		agent_book_free(book);
	}
}

static void agents_are_in_order_and_can_be_forgotten(UNUSED void **state)
{
	struct agent_book *book = agent_book_new();
	static const char *const names[] = {"c", "a", "ab", "b"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(say(book, names[i], 1, true, "x", ""), 0);
	static const char *const sorted[] = {"a", "ab", "b", "c"};
	for (size_t i = 0; i < ARRAY_LEN(sorted); i++) {
		assert_true(slice_equal(book->agents[i]->name, slice_of(sorted[i])));
		assert_int_equal(agent_book_behind(book, slice_of(sorted[i])), i + 1);
	}
	assert_int_equal(agent_book_behind(book, SLICE("aa")), 1);
	assert_false(agent_book_forget(book, SLICE("aa")));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_true(agent_book_forget(book, slice_of(names[i])));
		assert_false(agent_book_forget(book, slice_of(names[i])));
	}
	assert_int_equal(book->count, 0);
	assert_int_equal(book->held_bytes, 0);
	assert_int_equal(stat_get(STAT_agents_bytes), 0);
	agent_book_free(book);
}

/* `count` adaptors with errors of so many bytes. */
static int say_many(struct agent_book *book, const char *agent, size_t count, size_t error_bytes,
		    int64_t now_ms)
{
	struct adaptor_seen *adaptors = mem_alloc_array(count, sizeof(*adaptors));
	char(*names)[8] = mem_alloc_array(count, sizeof(*names));
	char *error = mem_zalloc(error_bytes);
	struct agent_said said = {
		.boot = 1, .all = true, .adaptors = adaptors, .adaptor_count = count};
	struct arena arena;
	struct errbuf e = {""};
	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "%06u", (unsigned)i);
		adaptors[i] = plain;
		adaptors[i].name = slice_of(names[i]);
		adaptors[i].error = (struct slice){error, error_bytes};
		adaptors[i].behind_bytes = INT64_MAX / 2;
	}
	arena_init(&arena, 16 << 20);
	int err = agent_book_take(book, slice_of(agent), &said, &arena, now_ms, &e);
	assert_true(!err == !e.text[0]);
	arena_release(&arena);
	mem_free(error);
	mem_free(names);
	mem_free(adaptors);
	return err;
}

static void an_agent_has_so_many_adaptors_at_most(UNUSED void **state)
{
	struct agent_book *book = agent_book_new();
	assert_int_equal(say_many(book, "web", 20001, 0, NOW_MS), ERR_LIMIT);
	assert_int_equal(book->count, 0);
	assert_int_equal(say_many(book, "web", 20000, 0, NOW_MS), 0);
	assert_int_equal(say(book, "web", 1, false, "a", ""), ERR_LIMIT);
	assert_int_equal(book->agents[0]->count, 20000);
	assert_true(book->agents[0]->behind_bytes == INT64_MAX);
	agent_book_free(book);
}

static void agents_not_heard_of_make_room_for_others(UNUSED void **state)
{
	const int64_t week_ms = INT64_C(7) * 86400 * 1000;
	struct agent_book *book = agent_book_new();
	char name[8];
	for (unsigned i = 0; i < AGENTS_MAX; i++) {
		snprintf(name, sizeof(name), "%05u", i);
		assert_int_equal(say_many(book, name, 1, 0, NOW_MS + (i >= 3)), 0);
	}
	assert_int_equal(say_many(book, "new", 1, 0, NOW_MS + week_ms), ERR_FULL);
	assert_int_equal(book->count, AGENTS_MAX);
	/* Who is there already needs no room, and is the last to be forgotten. */
	assert_int_equal(say_many(book, "00001", 2, 0, NOW_MS + week_ms + 1), 0);
	assert_int_equal(book->count, AGENTS_MAX);
	assert_int_equal(say_many(book, "new", 1, 0, NOW_MS + week_ms + 1), 0);
	assert_int_equal(book->count, AGENTS_MAX - 1);
	assert_null(agent_book_find(book, SLICE("00000")));
	assert_non_null(agent_book_find(book, SLICE("00001")));
	assert_null(agent_book_find(book, SLICE("00002")));
	assert_int_equal(stat_get(STAT_agents_forgotten), 2);
	agent_book_free(book);
}

static void there_are_so_many_bytes_altogether(UNUSED void **state)
{
	struct agent_book *book = agent_book_new();
	char name[8];
	/* 15 agents have 60 MB and a little; the sixteenth has no room, and finds it a week later.
	 */
	for (unsigned i = 0; i < 15; i++) {
		snprintf(name, sizeof(name), "a%u", i);
		assert_int_equal(say_many(book, name, 1000, 4 << 10, NOW_MS), 0);
	}
	assert_in_range(book->held_bytes, 15 * 1000 * (4 << 10), AGENT_BOOK_MAX_BYTES);
	assert_int_equal(say_many(book, "b", 2000, 4 << 10, NOW_MS), ERR_FULL);
	assert_int_equal(say_many(book, "a0", 3000, 4 << 10, NOW_MS), ERR_FULL);
	assert_int_equal(agent_book_find(book, SLICE("a0"))->count, 1000);
	assert_int_equal(say_many(book, "a0", 3000, 4 << 10, NOW_MS + AGENT_KEEP_MS + 1), 0);
	assert_int_equal(book->count, 1);
	assert_int_equal(book->held_bytes, book->agents[0]->held_bytes);
	assert_int_equal(stat_get(STAT_agents_bytes), book->held_bytes);
	agent_book_free(book);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_change_what_they_name),
		cmocka_unit_test(two_agents_of_one_name),
		cmocka_unit_test(some_agents_of_one_name),
		cmocka_unit_test(agents_are_in_order_and_can_be_forgotten),
		cmocka_unit_test(an_agent_has_so_many_adaptors_at_most),
		cmocka_unit_test(agents_not_heard_of_make_room_for_others),
		cmocka_unit_test(there_are_so_many_bytes_altogether),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
