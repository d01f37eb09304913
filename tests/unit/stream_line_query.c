/* What people search for in lines: what is refused, and that what is left out of a look before the
 * lines are compared changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/random.h"
#include "stream/line_query.h"

enum { ARENA_BYTES = 1 << 20 };

static struct arena arena;

static bool fits(const char *search, const char *line)
{
	struct line_query query;
	struct errbuf e = {""};
	arena_reset(&arena);
	if (line_query_parse(slice_of(search), &arena, &query, &e))
		fail_msg("%s: %s", search, e.text);
	bool found = line_query_fits(&query, slice_of(line));
	/* The first look excludes no line that fits. */
	if (found && line[0])
		assert_true(line_query_seek(&query, slice_of(line), 0) < strlen(line));
	line_query_release(&query);
	return found;
}

static void terms(void **state)
{
	static const struct {
		const char *search, *line;
		bool fits;
	} cases[] = {
		{"", "anything", true},
		{"  \t ", "", true},
		{"lock", "a lock b", true},
		{"lock wait", "wait for the lock", true},
		{"lock wait", "wait for it", false},
		{"\"lock wait\"", "wait for the lock", false},
		{"\"lock wait\"", "Lock wait", true},
		{"lock -wait", "lock", true},
		{"lock -wait", "lock wait", false},
		{"-wait", "", true},
		{"-\"lock wait\"", "lock  wait", true},
		{"*ock", "lock", true},
		{"*ock", "locks", false},
		{"loc*", "lock", true},
		{"loc*", "block", false},
		{"*oc*", "block", true},
		{"*\"k w\"*", "lock wait", true},
		{"\"k w\"*", "lock wait", false},
		{"-*oc*", "block", false},
		{"\"*\"", "a*b", true},
		{"\"*\"", "ab", false},
		{"\"-x\"", "a-x", true},
		{"a\"b", "a\"b",
		 true}, /* a quotation mark within a text is one of its characters */
		{"\"say \\\"hi\\\"\"", "say \"hi\"", true},
		{"\"a\\\\b\"", "a\\b", true},
		{"~^a.c$", "abc", true},
		{"~^a.c$", "abcd", false},
		{"~a.c", "ABC", false},
		{"~\"a b\"", "xa by", true},
		{"-~a.c", "abc", false},
		{"~lo+ck", "looock", true},
		{"~colou?r", "the color", true},
		{"~(GET|POST) /x", "POST /x", true},
		{"~ab*c", "ac", true},
		{"~ab{0,2}c", "ac", true},
		{"~[ab]c\\.d", "bc.d", true},
		/* These braces repeat nothing: they are characters, and the | divides. */
		{"~a{b|c}def", "a{b", true},
		{"~a{b|c}def", "c}def", true},
		{"~a{,}b", "a{,}b", true},
		{"~x|y", "y", true},
		{"~\xc3\xa4?b", "b", true},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (fits(cases[i].search, cases[i].line) != cases[i].fits)
			fail_msg("`%s` and `%s`", cases[i].search, cases[i].line);
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *search, *sentence;
	} cases[] = {
		{"\"lock", "the search has a quotation mark that is not closed"},
		{"a *", "the search has a term without a text"},
		{"\"\"", "the search has a term without a text"},
		{"-", "the search has a term without a text"},
		{"**", "the search has a term without a text"},
		{"\"a\"b", "behind a quotation mark of the search stands \"b\"; a blank stands "
			   "between terms"},
		{"\"a\nb\"", "the search has a text of more than one line"},
		{"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21",
		 "a search has up to 20 terms"},
	};
	struct line_query query;
	struct errbuf e;
	char longer[LINE_QUERY_MAX_BYTES + 2];
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		arena_reset(&arena);
		e.text[0] = 0;
		assert_int_equal(line_query_parse(slice_of(cases[i].search), &arena, &query, &e),
				 ERR_INVALID);
		assert_string_equal(e.text, cases[i].sentence);
		line_query_release(&query);
	}
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(line_query_parse(slice_of(longer), &arena, &query, &e), ERR_INVALID);
	assert_string_equal(e.text, "a search has up to 2048 bytes");
	line_query_release(&query);
	assert_int_equal(line_query_parse(SLICE("~("), &arena, &query, &e), ERR_INVALID);
	line_query_release(&query);
}

/* As it is, without marks around it. */
static void one_more_regular_expression(void **state)
{
	static const struct {
		const char *search, *pattern, *line;
		bool fits;
	} cases[] = {
		{"", "a \"b\" \\d", "xa \"b\" 7", true},
		{"", "a b", "a  b", false},
		{"lock", "w.it$", "a lock wait", true},
		{"lock", "w.it$", "a lock waits", false},
		{"lock", "w.it$", "wait", false},
		{"~x", "", "x", true},
		{"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19", "^1",
		 "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19", true},
	};
	struct line_query query;
	struct errbuf e = {""};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		arena_reset(&arena);
		assert_int_equal(line_query_parse(slice_of(cases[i].search), &arena, &query, &e),
				 0);
		assert_int_equal(
			line_query_add_regex(&query, slice_of(cases[i].pattern), &arena, &e), 0);
		struct slice line = slice_of(cases[i].line);
		bool found = line_query_fits(&query, line);
		if (found != cases[i].fits)
			fail_msg("`%s` and `%s`", cases[i].pattern, cases[i].line);
		if (found)
			assert_true(line_query_seek(&query, line, 0) < line.len);
		line_query_release(&query);
	}
	arena_reset(&arena);
	assert_int_equal(line_query_parse(SLICE("1 2 3 4 5 6 7 8 9 a b c d e f g h i j k"), &arena,
					  &query, &e),
			 0);
	assert_int_equal(line_query_add_regex(&query, SLICE("x"), &arena, &e), ERR_INVALID);
	assert_string_equal(e.text, "a search has up to 20 terms");
	line_query_release(&query);
	assert_int_equal(line_query_parse(SLICE("x"), &arena, &query, &e), 0);
	assert_int_equal(line_query_add_regex(&query, SLICE("("), &arena, &e), ERR_INVALID);
	line_query_release(&query);
}

static void make_pattern(struct random *random, struct buf *pattern)
{
	static const char *const pieces[] = {
		"a",     "b",    "c",      "ab",   "a+",       "b*",    "c?", ".",   "[ab]",
		"[^a]",  "(ab)", "(a|bc)", "a{2}", "b{0,1}",   "a{",    "}",  "\\.", "\\w",
		"(?:c)", "^",    "$",      "|",    "(a(b)c)*", "c{1,}", "\\d"};
	buf_append_char(pattern, '~');
	for (uint64_t n = 1 + random_below(random, 6); n; n--)
		buf_append_text(pattern, pieces[random_below(random, ARRAY_LEN(pieces))]);
}

/* Regular expressions with and without the look for what their lines must have. */
static void the_look_before_regular_expressions_excludes_nothing(void **state)
{
	struct random random;
	char line[20];
	unsigned found = 0;
	(void)state;
	random_init(&random, 3);
	for (int round = 0; round < 50000; round++) {
		struct line_query query;
		struct errbuf e;
		struct buf search;
		uint64_t work = 0;
		arena_reset(&arena);
		buf_init(&search, 1000);
		make_pattern(&random, &search);
		/* As `^*` is none. */
		if (line_query_parse(buf_slice(&search), &arena, &query, &e) == 0) {
			for (int i = 0; i < 10; i++) {
				struct slice text = {line, random_below(&random, sizeof(line))};
				for (size_t at = 0; at < text.len; at++)
					line[at] = "abcABC.1"[random_below(&random, 8)];
				bool expected = regex_search(&query.terms[0].regex, text, &work);
				if (line_query_fits(&query, text) != expected)
					fail_msg("%s and %.*s", search.data, (int)text.len, line);
				found += expected && query.first;
			}
		}
		line_query_release(&query);
		buf_release(&search);
	}
	assert_true(found > 10000); /* the look took place */
}

static int open_arena(void **state)
{
	(void)state;
	arena_init(&arena, ARENA_BYTES);
	return 0;
}

static int close_arena(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(one_more_regular_expression),
		cmocka_unit_test(the_look_before_regular_expressions_excludes_nothing),
	};
	return cmocka_run_group_tests(tests, open_arena, close_arena);
}
