/* Words of texts, and what people search for in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "words/filter.h"

enum { WORDS_MAX = 12 };

static void check_list(struct slice text, bool (*next)(struct slice *, struct slice *),
		       const char *const wanted[WORDS_MAX])
{
	struct slice word, rest = text;
	size_t count = 0;
	while (next(&rest, &word)) {
		if (!wanted[count] || !slice_equal(word, slice_of(wanted[count])))
			fail_msg("%s: word %zu is %.*s", text.data, count, (int)word.len,
				 word.data);
		count++;
	}
	assert_null(wanted[count]);
}

static void words_are_runs_of_letters_and_digits(void **state)
{
	static const struct {
		const char *text, *words[WORDS_MAX];
	} cases[] = {
		{"", {0}},
		{" .,-_/\n", {0}},
		{"lock wait timeout; 1205", {"lock", "wait", "timeout", "1205"}},
		{"x.y_z-w/v:u", {"x", "y", "z", "w", "v", "u"}},
		{"<p>a&amp;b</p>", {"p", "a", "amp", "b", "p"}},
		{"Größe Ärger naïve", {"Größe", "Ärger", "naïve"}},
		{"привет, МИР! 東京", {"привет", "МИР", "東京"}},
		{"em\xe2\x80\x94"
		 "dash \xe2\x80\x9cquoted\xe2\x80\x9d",
		 {"em", "dash", "quoted"}},
		{"a\xff"
		 "b \xc3",
		 {"a", "b"}},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_list(slice_of(cases[i].text), words_next, cases[i].words);
}

static void parts_of_camel_case(void **state)
{
	static const struct {
		const char *word, *parts[WORDS_MAX];
	} cases[] = {
		{"error", {"error"}},
		{"KeyError", {"Key", "Error"}},
		{"keyErrorHere", {"key", "Error", "Here"}},
		{"HTTPError", {"HTTP", "Error"}},
		{"HTTP", {"HTTP"}},
		{"HTTPErrorAGAIN", {"HTTP", "Error", "AGAIN"}},
		{"utf8Error", {"utf8", "Error"}},
		{"UTF8Error", {"UTF8", "Error"}},
		{"HTML5Tree", {"HTML5", "Tree"}},
		{"MD5Sum", {"MD5", "Sum"}},
		{"SHA256", {"SHA256"}},
		{"MD5sum", {"MD5sum"}},
		{"IPv6Address", {"I", "Pv6", "Address"}},
		{"ÄrgerÜber", {"Ärger", "Über"}},
		{"aB", {"a", "B"}},
		{"Ab", {"Ab"}},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_list(slice_of(cases[i].word), words_next_part, cases[i].parts);
}

struct look {
	const char *query, *text;
	bool fits;
};

static bool look(const struct look *look, int *err, struct errbuf *e)
{
	struct arena arena;
	struct words_query query;
	struct words_matcher matcher;
	bool fits = false;
	arena_init(&arena, 1 << 20);
	*err = words_query_parse(slice_of(look->query), &arena, &query, e);
	if (!*err) {
		words_matcher_init(&matcher, &query);
		words_matcher_begin(&matcher);
		words_match(&matcher, slice_of(look->text));
		words_match(&matcher, SLICE("another text"));
		words_match_value(&matcher, SLICE("host"), SLICE("db 1"));
		words_match_value(&matcher, SLICE("code"), SLICE("12:30"));
		words_match_value(&matcher, SLICE("level"), SLICE(""));
		fits = words_matcher_fits(&matcher);
		words_matcher_release(&matcher);
	}
	arena_release(&arena);
	return fits;
}

static void all_terms_have_to_hold(void **state)
{
	static const struct look looks[] = {
		{"", "x", true},
		{"error", "an ERROR", true},
		{"Error", "KeyError: 7", true},
		{"keyerror", "KeyError: 7", true},
		{"erro", "KeyError", false},
		{"key error", "KeyError", true},
		{"\"key error\"", "KeyError", false}, /* one word */
		{"\"key error\"", "a key, error", true},
		{"\"key error\"", "error key", false},
		{"\"a a b\"", "a a a b", true},
		{"\"a b\"", "b a", false},
		{"\"x another\"", "x", false}, /* in two texts */
		{"x another", "x", true},
		{"lock-wait", "LOCK wait", true},
		{"lock-wait", "wait lock", false},
		{"-x", "x", false},
		{"-x", "y", true},
		{"y -\"x y\"", "y x", true},
		{"y -\"x y\"", "x y", false},
		{"größe", "GRÖSSE GRÖßE", true}, /* code point by code point: ẞ is none here */
		{"ärger", "ÄRGER", true},
		{"host:\"db 1\"", "x", true},
		{"host:db", "db", false},
		{"-host:\"db 1\"", "x", false},
		{"code:12:30", "x", true},
		{"12:30", "at 12:30", true}, /* no name begins with a digit */
		{"http://a.b/c", "see http://a.b/c", true},
		{"std::sort", "std::sort", true},
		{"error:", "error", true}, /* no value */
		{"level:\"\"", "x", true},
		{"level:error", "error", false},
		{"\"a \\\"b\\\" \\\\ c\"", "a b c", true},
		{"x\"y", "x y", true},
		{"\t x \n", "x", true},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
		int err;
		struct errbuf e = {""};
		if (look(&looks[i], &err, &e) != looks[i].fits || err)
			fail_msg("%s in %s: %s", looks[i].query, looks[i].text, e.text);
	}
}

static void what_is_no_query(void **state)
{
	static const struct {
		const char *query, *sentence;
	} cases[] = {
		{"\"a b", "not closed"},
		{"host:\"a", "not closed"},
		{"-", "no letter or digit in \"\""},
		{"a ... b", "no letter or digit in \"...\""},
		{"\"\"", "no letter or digit in \"\""},
		{"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21", "up to 20 terms"},
		{"1-2-3-4-5-6-7-8-9-10-1-2-3-4-5-6-7-8-9-20-1-2-3-4-5-6-7-8-9-30-"
		 "1-2-3-4-5-6-7-8-9-40-1-2-3-4-5-6-7-8-9-50-1",
		 "more than 50 words"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct errbuf e = {""};
		int err;
		look(&(struct look){cases[i].query, "x", false}, &err, &e);
		assert_int_equal(err, ERR_INVALID);
		if (!strstr(e.text, cases[i].sentence))
			fail_msg("%s: %s", cases[i].query, e.text);
	}
}

static struct words_query parse(const char *text, struct arena *arena)
{
	struct words_query query;
	struct errbuf e;
	assert_int_equal(words_query_parse(slice_of(text), arena, &query, &e), 0);
	return query;
}

static unsigned parts_of(struct slice filter, const char *text)
{
	struct arena arena;
	arena_init(&arena, 1 << 20);
	struct words_query query = parse(text, &arena);
	unsigned parts = words_filter_parts(filter, &query);
	arena_release(&arena);
	return parts;
}

/* Of a term with other values that will do: these, and its own. */
static void other_values_will_do(UNUSED void **state)
{
	static const struct slice others[] = {SLICE("db2"), SLICE("db3 x")};
	static const struct {
		const char *query, *value;
		bool fits;
	} cases[] = {{"host:db1", "db1", true},   {"host:db1", "db2", true},
		     {"host:db1", "db3 x", true}, {"host:db1", "db3", false},
		     {"host:db1", "db4", false},  {"-host:db1", "db2", false},
		     {"-host:db1", "db4", true}};
	struct words_set set;
	struct arena arena;
	struct buf bytes;
	arena_init(&arena, 1 << 20);
	buf_init(&bytes, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct words_query query = parse(cases[i].query, &arena);
		struct words_matcher matcher;
		query.terms[0].others = others;
		query.terms[0].other_count = ARRAY_LEN(others);
		words_matcher_init(&matcher, &query);
		words_matcher_begin(&matcher);
		words_match_value(&matcher, SLICE("host"), slice_of(cases[i].value));
		words_match_value(&matcher, SLICE("level"), SLICE("db1"));
		assert_int_equal(words_matcher_fits(&matcher), cases[i].fits);
		words_matcher_release(&matcher);
		words_set_init(&set, 7);
		words_set_add(&set, (unsigned)i, slice_of(cases[i].value));
		words_filter_put(&set, &bytes);
		if (cases[i].fits)
			assert_true(words_filter_parts(buf_slice(&bytes), &query) >> i & 1);
		buf_clear(&bytes);
		words_set_release(&set);
	}
	buf_release(&bytes);
	arena_release(&arena);
}

/* A part for each value; none has all of a value that is none of them. */
static void a_filter_knows_other_values(UNUSED void **state)
{
	static const struct slice others[] = {SLICE("db2"), SLICE("db3 x")};
	struct words_set set;
	struct arena arena;
	struct buf bytes;
	arena_init(&arena, 1 << 20);
	buf_init(&bytes, 1 << 20);
	words_set_init(&set, 7);
	words_set_add(&set, 0, SLICE("db1"));
	words_set_add(&set, 2, SLICE("db2"));
	words_set_add(&set, 4, SLICE("db3 x"));
	words_set_add(&set, 5, SLICE("x"));
	words_filter_put(&set, &bytes);
	struct words_query query = parse("host:db1", &arena);
	assert_int_equal(words_filter_parts(buf_slice(&bytes), &query), 1);
	query.terms[0].others = others;
	query.terms[0].other_count = ARRAY_LEN(others);
	assert_int_equal(words_filter_parts(buf_slice(&bytes), &query), 1 | 1 << 2 | 1 << 4);
	words_set_release(&set);
	buf_release(&bytes);
	arena_release(&arena);
}

static bool may_fit(struct slice filter, const char *text)
{
	return parts_of(filter, text) != 0;
}

static struct slice filter_of(const char *const *texts, size_t count, struct buf *to)
{
	struct words_set set;
	words_set_init(&set, 7);
	for (size_t i = 0; i < count; i++)
		words_set_add(&set, 0, slice_of(texts[i]));
	words_filter_put(&set, to);
	words_set_release(&set);
	return buf_slice(to);
}

/* Bits by an XXH3 of another's (Python's xxhash) and the page's two formulas. */
static void a_filter_is_as_the_page_has_it(void **state)
{
	static const char *const lock[] = {"Lock"}, *const key[] = {"KeyError"};
	struct buf bytes;
	(void)state;
	buf_init(&bytes, 100);
	/* One part; of all words, of those of many parts, none, and of the part. */
	assert_memory_equal(filter_of(lock, 1, &bytes).data, "\1\2\x55\x0a\0\2\x0a\xaa", 8);
	assert_int_equal(bytes.len, 8);
	buf_clear(&bytes);
	assert_memory_equal(filter_of(key, 1, &bytes).data,
			    "\1\4\x52\xb1\xad\x52\0\4\x28\x48\xca\x3d", 12);
	assert_int_equal(bytes.len, 12);
	buf_release(&bytes);
}

/* 2 bytes of 16 bits a word and 8 probes, behind the byte that says that there are no parts. */
static void a_filter_of_earlier_versions_is_read(void **state)
{
	static const char old[] = "\0\2\x55\xaa";
	const struct slice filter = {old, 4};
	(void)state;
	assert_int_equal(parts_of(filter, "lock"), WORDS_PARTS_ALL);
	assert_int_equal(parts_of(filter, "-nothing lock"), WORDS_PARTS_ALL);
	assert_int_equal(parts_of(filter, "nothing"), 0);
	assert_int_equal(parts_of(filter, "lock nothing"), 0);
}

static void a_filter_excludes_what_lacks_a_word(void **state)
{
	static const char *const texts[] = {"Lock wait timeout; 1205", "DeadlockError in db-1"};
	struct buf bytes;
	(void)state;
	buf_init(&bytes, 1000);
	struct slice filter = filter_of(texts, ARRAY_LEN(texts), &bytes);
	assert_true(may_fit(filter, "lock"));
	assert_true(may_fit(filter, "deadlock \"db 1\" -nothing"));
	assert_true(may_fit(filter, "host:\"wait 1205\" tag:true"));
	assert_true(may_fit(filter, ""));
	assert_true(may_fit(SLICE(""), "nothing"));
	/* None of these is one of the few that are answered with maybe. */
	assert_false(may_fit(filter, "nothing"));
	assert_false(may_fit(filter, "lock nothing"));
	assert_false(may_fit(filter, "\"lock nothing\""));
	assert_false(may_fit(filter, "host:nothing"));
	buf_release(&bytes);
}

/* Two words have to be in one part; a word that four parts have is as if all had it. */
static void a_filter_knows_in_which_parts_words_are(void **state)
{
	struct words_set set;
	struct buf bytes;
	(void)state;
	words_set_init(&set, 7);
	buf_init(&bytes, 1000);
	for (unsigned part = 0; part < WORDS_PARTS_MAX; part++)
		words_set_add(&set, part, SLICE("everywhere"));
	for (unsigned part = 2; part < 6; part++)
		words_set_add(&set, part, SLICE("four"));
	words_set_add(&set, 1, SLICE("one three"));
	words_set_add(&set, 4, SLICE("three"));
	words_set_add(&set, 7, SLICE("three seven"));
	words_filter_put(&set, &bytes);
	struct slice filter = buf_slice(&bytes);
	assert_int_equal(parts_of(filter, "everywhere"), 0xff);
	assert_int_equal(parts_of(filter, "four"), 0xff);
	assert_int_equal(parts_of(filter, "one"), 1 << 1);
	assert_int_equal(parts_of(filter, "three"), 1 << 1 | 1 << 4 | 1 << 7);
	assert_int_equal(parts_of(filter, "three seven everywhere"), 1 << 7);
	assert_int_equal(parts_of(filter, "host:one three"), 1 << 1);
	assert_int_equal(parts_of(filter, "one seven"), 0);
	assert_int_equal(parts_of(filter, "one -seven"), 1 << 1);
	assert_int_equal(parts_of(filter, "nothing"), 0);
	/* A damaged one knows nothing. */
	assert_int_equal(parts_of((struct slice){filter.data, filter.len - 1}, "one seven"), 0xff);
	assert_int_equal(parts_of(SLICE("\11"), "one"), 0xff);
	buf_release(&bytes);
	words_set_release(&set);
}

/* 6 probes of 9 bits a word: (1 - exp(-6/9))^6 = 1.3 % of the filter of all, and as many of each of
 * three parts: 0.052 %, so 3 of 5,000. */
static void a_filter_seldom_says_maybe(void **state)
{
	struct words_set set;
	struct buf bytes;
	char text[24];
	size_t maybes = 0;
	(void)state;
	words_set_init(&set, 7);
	buf_init(&bytes, 1 << 20);
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "word%u", i);
		words_set_add(&set, i % 3, slice_of(text)); /* so no two parts have one word */
	}
	words_filter_put(&set, &bytes);
	/* 5,000 words; then 1,667 twice, and 1,666; varints of 2, 1 and 2 bytes, and the parts. */
	assert_int_equal(bytes.len, 5625 + 2 * 1876 + 1875 + 2 + 1 + 3 * 2 + 1);
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(text, sizeof(text), "word%u", i);
		bool may = may_fit(buf_slice(&bytes), text);
		assert_true(i >= 5000 || parts_of(buf_slice(&bytes), text) >> i % 3 & 1);
		maybes += may && i >= 5000;
	}
	assert_in_range(maybes, 0, 12);
	buf_release(&bytes);
	words_set_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_runs_of_letters_and_digits),
		cmocka_unit_test(parts_of_camel_case),
		cmocka_unit_test(all_terms_have_to_hold),
		cmocka_unit_test(what_is_no_query),
		cmocka_unit_test(a_filter_is_as_the_page_has_it),
		cmocka_unit_test(a_filter_excludes_what_lacks_a_word),
		cmocka_unit_test(a_filter_of_earlier_versions_is_read),
		cmocka_unit_test(a_filter_knows_in_which_parts_words_are),
		cmocka_unit_test(a_filter_seldom_says_maybe),
		cmocka_unit_test(other_values_will_do),
		cmocka_unit_test(a_filter_knows_other_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
