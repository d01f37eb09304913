/* Bounded regular expressions. What each case should give is Python's re.search, but where the
 * header says that less is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "wire/regex.h"

static bool search(const char *pattern, const char *text, bool fold_case)
{
	struct arena arena;
	struct regex regex;
	struct errbuf e;
	uint64_t work = 0;
	arena_init(&arena, 1 << 20);
	int err = regex_compile(slice_of(pattern), fold_case, &arena, &regex, &e);
	if (err)
		fail_msg("%s: %s", pattern, e.text);
	bool found = regex_search(&regex, slice_of(text), &work);
	arena_release(&arena);
	return found;
}

static void test_matches(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *text;
		bool found;
	} cases[] = {
		{"", "", true},
		{"", "x", true},
		{"b", "abc", true},
		{"^b", "abc", false},
		{"c$", "abc", true},
		{"b$", "abc", false},
		{"^$", "", true},
		{"^$", "a", false},
		{"a.c", "abc", true},
		{"a.c", "ac", false},
		{"a.c", "a\nc", false},
		{"^a*$", "", true},
		{"^a*$", "aaa", true},
		{"^a*$", "aab", false},
		{"^a+$", "", false},
		{"^ab?c$", "ac", true},
		{"^ab?c$", "abbc", false},
		{"^(ab)+$", "ababab", true},
		{"^(ab)+$", "aba", false},
		{"^(?:a|bc|d)$", "bc", true},
		{"^(?:a|bc|d)$", "d", true},
		{"^(?:a|bc|d)$", "bd", false},
		{"^a|b$", "xb", true},
		{"^a|b$", "bx", false},
		{"(|a)b", "b", true},
		{"^a{3}$", "aaa", true},
		{"^a{3}$", "aaaa", false},
		{"^a{2,3}$", "a", false},
		{"^a{2,3}$", "aaa", true},
		{"^a{2,3}$", "aaaa", false},
		{"^a{2,}$", "aaaaaa", true},
		{"^a{,2}$", "aaa", false},
		{"^a{,2}$", "", true},
		{"^a{0}$", "", true},
		{"^a{0}$", "a", false},
		{"^a{x}$", "a{x}", true},
		{"^(a{2}|b){2}$", "aab", true},
		{"^(a{2}|b){2}$", "aaa", false},
		{"^a*?b$", "aab", true},
		{"^(a*)*$", "aaa", true},
		{"^(a*)*$", "aab", false},
		{"^()*$", "", true},
		{"[abc]", "xbx", true},
		{"[^abc]", "abc", false},
		{"[^abc]", "abcd", true},
		{"^[a-c]+$", "abcabc", true},
		{"^[a-c]+$", "abd", false},
		{"[]]", "]", true},
		{"^[\\[:]$", "[", true},
		{"^[[a:]$", "[", true},
		{"[^]]", "]", false},
		{"^[a-]+$", "a-a", true},
		{"^[\\]\\-]+$", "-]", true},
		{"^\\d+$", "0129", true},
		{"^\\d+$", "01a", false},
		{"^\\w+$", "aZ_9", true},
		{"^\\w+$", "a-b", false},
		{"^\\s$", "\t", true},
		{"^\\S$", " ", false},
		{"^\\S$", "x", true},
		{"^\\D$", "5", false},
		{"^[\\W]$", "-", true},
		{"^[\\d.]+$", "1.5", true},
		{"\\bxe\\b", "et xe ge", true},
		{"\\bxe\\b", "axe", false},
		{"\\Bxe", "axe", true},
		{"\\Aab\\Z", "ab", true},
		{"\\Aab\\Z", "abc", false},
		{"^xe-\\d+/\\d+/\\d+$", "xe-0/2/0", true},
		{"^xe-\\d+/\\d+/\\d+$", "xe-0/2/0.1", false},
		{"^\\.\\*$", ".*", true},
		{"\\(x\\)", "a(x)", true},
		/* a surrogate, what is overlong and what is beyond U+10FFFF are bytes */
		{"^.$", "\xed\xa0\x80", false},
		{"^.{3}$", "\xed\xa0\x80", true},
		{"^.{3}$", "\xe0\x80\x80", true},
		{"^.{4}$", "\xf4\x90\x80\x80", true},
		/* a character is one, however many bytes it has */
		{"^.$", "\xc3\xa9", true},
		{"^..$", "\xc3\xa9", false},
		{"^\xc3\xa9?$", "", true},
		{"^[\xc3\xa0-\xc3\xbf]$", "\xc3\xa9", true},
		{"^[\xc3\xa0-\xc3\xbf]$", "\xc3\x80", false},
		/* and a byte that is none is one by itself */
		{"^..$", "\xc3\x28", true},
		{"^...$",
		 "a\xff"
		 "b",
		 true},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (search(cases[i].pattern, cases[i].text, false) != cases[i].found)
			fail_msg("%s in %s", cases[i].pattern, cases[i].text);
	}
}

static void test_folding(void **state)
{
	(void)state;
	assert_true(search("^INTERcloud$", "interCLOUD", true));
	assert_false(search("^INTERcloud$", "interCLOUD", false));
	assert_true(search("^[a-f]+$", "ABCDEF", true));
	assert_false(search("^[^a]$", "A", true));
	assert_true(search("^\\[$", "[", true));
	assert_false(search("^\\[$", "{", true)); /* which differ by the same bit as letters */
}

static void refuse(const char *pattern, int err, const char *part)
{
	struct arena arena;
	struct regex regex;
	struct errbuf e;
	arena_init(&arena, 1 << 20);
	if (regex_compile(slice_of(pattern), false, &arena, &regex, &e) != err)
		fail_msg("%s was not refused", pattern);
	if (!strstr(e.text, part))
		fail_msg("%s: %s", pattern, e.text);
	arena_release(&arena);
}

static void test_refusals(void **state)
{
	(void)state;
	char deep[] = "((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))";
	char longer[REGEX_MAX_BYTES + 2];
	refuse("(", ERR_INVALID, "a ( has no )");
	refuse("a)", ERR_INVALID, "a ) has no (");
	refuse("[a", ERR_INVALID, "a [ has no ]");
	refuse("[]", ERR_INVALID, "a [ has no ]");
	refuse("[z-a]", ERR_INVALID, "upside down");
	refuse("[a-\\d]", ERR_INVALID, "ends with a class");
	refuse("[[:digit:]]", ERR_INVALID, "\\d");
	refuse("^x[^a[:space:]]+", ERR_INVALID, "classes such as [:digit:] are not known");
	refuse("*a", ERR_INVALID, "nothing to repeat");
	refuse("a|+", ERR_INVALID, "nothing to repeat");
	refuse("a**", ERR_INVALID, "a repetition is repeated");
	refuse("a*{2}", ERR_INVALID, "a repetition is repeated");
	refuse("a{3,2}", ERR_INVALID, "more at least than at most");
	refuse("a{256}", ERR_LIMIT, "more than 255 times");
	refuse("a{99999999999999999999}", ERR_LIMIT, "more than 255 times");
	refuse("(a{100}){100}", ERR_LIMIT, "written out");
	refuse("((((a{9}){9}){9}){9}){9}", ERR_LIMIT, "written out");
	refuse("a\\", ERR_INVALID, "ends with a backslash");
	refuse("(a)\\1", ERR_INVALID, "only \\d");
	refuse("(?=a)", ERR_INVALID, "only (?:");
	refuse(deep, ERR_LIMIT, "too deep");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	refuse(longer, ERR_LIMIT, "longer than 256 bytes");
}

/* What takes others time beyond all bounds takes at most the program once for each character. */
static void test_work_is_bounded(void **state)
{
	(void)state;
	static const char *const patterns[] = {"(a+)+$", "(a|aa)+$", "(a*)*b", "^(a?){25}a{25}$",
					       "(.*.*.*.*.*.*x)*y"};
	char text[5001];
	memset(text, 'a', 5000);
	text[5000] = 0;
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		struct arena arena;
		struct regex regex;
		struct errbuf e;
		uint64_t work = 0;
		arena_init(&arena, 1 << 20);
		assert_int_equal(regex_compile(slice_of(patterns[i]), false, &arena, &regex, &e),
				 0);
		(void)regex_search(&regex, slice_of(text), &work);
		assert_true(work <= regex.step_count * 5001);
		arena_release(&arena);
	}
}

/* Each of 60 characters beyond U+00FF that a class names is looked at for each such character of
 * the text, and that is counted; those below are in a map, and cost a step each. */
static void test_ranges_of_a_class_are_work(void **state)
{
	char pattern[200] = "[", snowmen[301] = "", letters[101];
	struct arena arena;
	struct regex regex;
	struct errbuf e;
	uint64_t work = 0;
	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		char two[3] = {(char)0xc5, (char)(0x80 + i), 0}; /* U+0140 and on */
		memcpy(pattern + 1 + 2 * i, two, 3);
	}
	memcpy(pattern + 121, "]~", 3);
	for (unsigned i = 0; i < 100; i++)
		memcpy(snowmen + 3 * i, "\xe2\x98\x83", 4);
	memset(letters, 'a', 100);
	letters[100] = 0;
	arena_init(&arena, 1 << 20);
	assert_int_equal(regex_compile(slice_of(pattern), false, &arena, &regex, &e), 0);
	assert_false(regex_search(&regex, slice_of(snowmen), &work));
	assert_int_equal(work, 100 * 60 + 101);
	work = 0;
	assert_false(regex_search(&regex, slice_of(letters), &work));
	assert_int_equal(work, 101);
	arena_release(&arena);
}

static bool finds(const char *pattern, bool fold_case, const char *text)
{
	struct arena arena;
	struct regex regex;
	struct errbuf e;
	uint64_t work = 0;
	arena_init(&arena, 1 << 20);
	assert_int_equal(regex_compile(slice_of(pattern), fold_case, &arena, &regex, &e), 0);
	bool found = regex_search(&regex, slice_of(text), &work);
	arena_release(&arena);
	return found;
}

/* On both sides of the end of the map, U+00FF, and of each of its words. */
static void test_classes_around_the_end_of_their_map(void **state)
{
	(void)state;
	assert_true(finds("^[\u00fe-\u0101]+$", false, "\u00fe\u00ff\u0100\u0101"));
	assert_false(finds("[\u00fe-\u0101]", false, "\u00fd\u0102"));
	assert_true(finds("^[^\u00ff]$", false, "\u0100"));
	assert_false(finds("^[^\u00ff\u0100]$", false, "\u0100"));
	assert_false(finds("^[^\u00ff\u0100]$", false, "\u00ff"));
	assert_true(finds("^[?-@]+$", false, "?@"));
	assert_true(finds("^[k-m]+$", true, "KLMklm"));
	assert_false(finds("[k-m]", true, "JNjn"));
	assert_false(finds("[^k]", true, "Kk"));
	assert_true(finds("^\\D\\W\\S$", false, "a\u0100\u0100"));
	assert_false(finds("[\\D]", false, "0123456789"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_folding),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_work_is_bounded),
		cmocka_unit_test(test_ranges_of_a_class_are_work),
		cmocka_unit_test(test_classes_around_the_end_of_their_map),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
