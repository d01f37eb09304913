/* What people search for in lines: what is refused, and that what is left out of a look before the
 * lines are compared changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/random.h"
#include "conf/conf.h"
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
		{"a ~", "the search has a ~ without an expression"},
		{"-~\"\" a", "the search has a ~ without an expression"},
		{"path=~ a", "the search has a ~ without an expression"},
		{"~[[:digit:]]",
		 "the expression \"[[:digit:]]\" is not understood: classes such as [:digit:] are "
		 "not known, but \\d \\w \\s \\D \\W \\S are; the characters themselves are \\[:"},
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

/* ---- Fields ---------------------------------------------------------------------------------- */

static struct datatypes *datatypes;

static const char rules[] = "datatypes:\n"
			    "  access: access\n"
			    "  took: {pattern: 'took <ms>ms by <who>', events: {}}\n"
			    "  app: {format: json, events: {}}\n"
			    "  kv: {format: logfmt, events: {}}\n"
			    "  df: df\n";

static int read_rules(void **state)
{
	struct conf *conf = conf_new();
	struct errbuf e = {""};
	(void)state;
	arena_init(&arena, ARENA_BYTES);
	if (conf_read_yaml(conf, "g.yml", slice_of(rules), &e) ||
	    datatypes_read(conf->sections[CONF_SECTION_DATATYPES], &datatypes, &e))
		fail_msg("%s", e.text);
	conf_free(conf);
	return 0;
}

static int let_rules_go(void **state)
{
	(void)state;
	datatypes_free(datatypes);
	arena_release(&arena);
	return 0;
}

/* Whatever excludes a line before its fields are read excludes none that fits. */
static void check_looks(struct line_query *query, struct slice line)
{
	struct words_set set;
	struct buf filter;
	buf_init(&filter, 1 << 16);
	words_set_init(&set, 0);
	words_set_add_lines(&set, line);
	words_filter_put_alone(&set, &filter);
	assert_true(line_query_may_fit(query, buf_slice(&filter)));
	assert_true(line_query_seek(query, line, 0) < line.len);
	words_set_release(&set);
	buf_release(&filter);
}

static bool fits_by(const char *datatype, const char *search, const char *line)
{
	struct line_query query;
	struct errbuf e = {""};
	arena_reset(&arena);
	if (line_query_parse(slice_of(search), &arena, &query, &e))
		fail_msg("%s: %s", search, e.text);
	query.datatypes = datatypes_share(datatypes);
	line_query_begin(&query, datatypes_find(datatypes, slice_of(datatype)));
	bool found = line_query_fits(&query, slice_of(line));
	if (found)
		check_looks(&query, slice_of(line));
	line_query_release(&query);
	return found;
}

#define GET                                                                                        \
	"10.0.0.1 - bob [29/Nov/2026:14:00:00 +0000] \"GET /items/5?a=1 HTTP/1.1\" 404 512 "       \
	"\"-\" \"curl/8\""
#define OWN "10.0.0.1 - - [29/Nov/2026:14:00:00 +0000] \"-\" 408 0 \"-\" \"-\""
#define APP                                                                                        \
	"{\"level\":\"Warn\",\"took\":500.0,\"status\":500,\"rate\":5e2,\"deep\":{\"n\":[7,8]},"   \
	"\"url\":\"\\/a\\/b\",\"who\":\"x\\ny\",\"name\":\"gr\\u00f6\xc3\x9f\"}"

static void fields(void **state)
{
	static const struct {
		const char *datatype, *search, *line;
		bool fits;
	} cases[] = {
		{"access", "status=404", GET, true},
		{"access", "status=404.0", GET, true},
		{"access", "status=40", GET, false},
		{"access", "status!=404", GET, false},
		{"access", "status!=500", GET, true},
		{"access", "status>=404", GET, true},
		{"access", "status>404", GET, false},
		{"access", "status<500 bytes>511", GET, true},
		{"access", "status<500 bytes>512", GET, false},
		{"access", "status<=403.9", GET, false},
		{"access", "-status=404", GET, false},
		{"access", "-status>404", GET, true},
		{"access", "method=get", GET, true},
		{"access", "method=GE", GET, false},
		{"access", "method=GE*", GET, true},
		{"access", "method=*E*", GET, true},
		{"access", "method=*T", GET, true},
		{"access", "method=*E", GET, false},
		{"access", "method=*", GET, true},
		{"access", "method=*", OWN, false},
		{"access", "method!=GET", OWN, false}, /* it has none */
		{"access", "-method=GET", OWN, true},
		{"access", "path=/items/5?a=1", GET, true},
		{"access", "path=/items/*", GET, true},
		{"access", "path=\"/items/5?a=1\"", GET, true},
		{"access", "path=~^/items/\\d", GET, true},
		{"access", "path=~\"^/items\"", GET, true},
		{"access", "path=~^items", GET, false},
		{"access", "path!=~^items", GET, true},
		{"access", "path!=~^/items", GET, false},
		{"access", "path!=~^/items", OWN, false},
		{"access", "status>=400 bob", GET, true},
		{"access", "status>=400 -bob", GET, false},
		{"access", "status>=400 alice", GET, false},
		{"access", "status>=400", "no line of the rule", false},
		{"access", "-status>=400", "no line of the rule", true},
		/* Its pattern has no such field: the term is a text. */
		{"access", "a=1", GET, true},
		{"access", "a=2", GET, false},
		{"access", "a>0", GET, false},
		{"access", "-a>0", GET, true},
		{"access", "\"status=404\"", GET, false},
		/* Letters stand beside the field. */
		{"took", "ms=15", "took 15ms by x", true},
		{"took", "ms=5", "took 15ms by x", false},
		{"took", "ms>14", "took 15ms by x", true},
		{"took", "who=x", "took 15ms by x", true},
		{"app", "status=500", APP, true},
		{"app", "took=500", APP, true},
		{"app", "rate=500", APP, true}, /* another field has the word */
		{"app", "rate=500", "{\"rate\":5e2}", false},
		{"app", "rate>=500", "{\"rate\":5e2}", true},
		{"app", "rate!=500", "{\"rate\":5e2}", false},
		{"app", "level=warn", APP, true},
		{"app", "level>=3", APP, false}, /* it is no number */
		{"app", "level!=3", APP, true},
		{"app", "deep.n.1=8", APP, true},
		{"app", "url=/a/b", APP, true},
		{"app", "url=*/b", APP, true},
		{"app", "who=~y$", APP, true},
		{"app", "who=*y", APP, true},
		{"app", "name=GR\xc3\x96\xc3\x9f", APP, true},
		{"app", "name=gr*", APP, true},
		{"app", "name=*\xc3\xb6*", APP, true},
		{"app", "missing=1", "{\"a\":\"missing=1\"}", false},
		{"app", "a=1", "{\"a\":2,\"a\":1}", true}, /* the last counts */
		{"app", "a=1", "{\"a\":1", false},
		{"kv", "level=info took>3", "level=info took=4", true},
		{"kv", "msg=\"a b\"", "msg=\"a b\" x=1", true},
		{"kv", "msg=\"a\"", "msg=\"a b\" x=1", false},
		{"kv", "x=-5", "x=-5", true},
		{"kv", "x=-5", "x=5", false},
		{"kv", "x=0.5", "x=.50", true},
		/* A word of the text is none of the line. */
		{"app", "t=a<bb", "{\"t\":\"a\\u003cbb\"}", true},
		{"app", "t=gr\xc3\xb6_long", "{\"t\":\"gr\\u00f6_long\"}", true},
		{"app", "t=*ab", "{\"t\":\"xab\"}", true},
		{"SystemMetrics", "disk.Total=30", "{\"disk\":[{\"Total\":10},{\"Total\":20}]}",
		 true},
		/* No rule reads these lines, and what stands below a line of names is not known. */
		{"syslog", "uid=0", "su: uid=0 tty", true},
		{"syslog", "uid=0", "su: uid=01", false},
		{"syslog", "uid=0*", "su: uid=01", true},
		{"syslog", "uid=*", "su: uid=01", true},
		{"syslog", "-uid=0", "su: uid=0 tty", false},
		{"syslog", "user=\"a b\"", "user=\"a b\"", true},
		{"syslog", "uid>=0", "su: uid=0 tty", false},
		{"syslog", "-uid>=0", "su: uid=0 tty", true},
		{"syslog", "uid=~0", "uid=~0", false},
		{"df", "Available>1", "/dev/sda1 100 50 50 50% /", false},
		/* These are texts. */
		{"kv", "a->b", "a->b x=1", true},
		{"kv", "a==b", "a==b", true},
		{"kv", "a=>b", "a=>b", true},
		{"kv", "a=", "a= b=1", true},
		{"kv", "/x?a=1", "path=/x?a=1", true},
		{"kv", "=1", "a=1", true},
		{"kv", "5>4", "5>4", true},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (fits_by(cases[i].datatype, cases[i].search, cases[i].line) != cases[i].fits)
			fail_msg("%s: `%s` and `%s`", cases[i].datatype, cases[i].search,
				 cases[i].line);
}

static void fields_that_are_refused(void **state)
{
	static const char sentence[] =
		"the search has \"high\", which is no number to compare the field status with; a "
		"text stands in quotation marks";
	struct line_query query;
	struct errbuf e = {""};
	(void)state;
	arena_reset(&arena);
	assert_int_equal(line_query_parse(SLICE("status>=high"), &arena, &query, &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
	line_query_release(&query);
	assert_int_equal(line_query_parse(SLICE("path=~("), &arena, &query, &e), ERR_INVALID);
	line_query_release(&query);
	assert_int_equal(line_query_parse(SLICE("a=\"b"), &arena, &query, &e), ERR_INVALID);
	assert_string_equal(e.text, "the search has a quotation mark that is not closed");
	line_query_release(&query);
}

/* A block is left out where the word is not, and lines of a rule that does not know the field. */
static void what_fields_exclude(void **state)
{
	struct line_query query;
	struct errbuf e = {""};
	struct words_set set;
	struct buf filter;
	(void)state;
	arena_reset(&arena);
	buf_init(&filter, 1 << 16);
	words_set_init(&set, 0);
	words_set_add_lines(&set, SLICE("404 GET took"));
	words_filter_put_alone(&set, &filter);
	assert_int_equal(
		line_query_parse(SLICE("status=500 -method=PUT bytes<7"), &arena, &query, &e), 0);
	line_query_begin(&query, datatypes_find(datatypes, SLICE("access")));
	assert_false(line_query_may_fit(&query, buf_slice(&filter)));
	assert_true(query.has_words);
	assert_false(query.never);
	assert_false(query.without_rule);
	line_query_begin(&query, datatypes_find(datatypes, SLICE("df")));
	assert_true(query.never && query.without_rule);
	line_query_begin(&query, datatypes_find(datatypes, SLICE("kv")));
	assert_false(query.never || query.without_rule);
	line_query_release(&query);
	assert_int_equal(line_query_parse(SLICE("-x>5"), &arena, &query, &e), 0);
	line_query_begin(&query, datatypes_find(datatypes, SLICE("took")));
	assert_true(!query.never && query.without_rule);
	line_query_release(&query);
	words_set_release(&set);
	buf_release(&filter);
}

/* ---- Long lines ------------------------------------------------------------------------------ */

static int stop_at_third(void *owner)
{
	return ++*(unsigned *)owner == 3 ? ERR_TIMEOUT : 0;
}

/* Each of the 960 steps of this expression is looked at for each character. */
static void a_look_at_a_long_line_may_end(void **state)
{
	enum { LINE_BYTES = 1 << 20 };
	char *line = mem_alloc(LINE_BYTES);
	unsigned asked = 0;
	struct line_query query;
	struct errbuf e = {""};
	(void)state;
	memset(line, 'a', LINE_BYTES);
	arena_reset(&arena);
	assert_int_equal(line_query_parse(SLICE("~(a?){200}(a?){200}b"), &arena, &query, &e), 0);
	query.terms[0].literal.needle = SLICE(""); /* so that the regular expression is tried */
	query.may_go_on = stop_at_third;
	query.owner = &asked;
	assert_false(line_query_fits(&query, (struct slice){line, LINE_BYTES}));
	assert_int_equal(query.stopped, ERR_TIMEOUT);
	assert_int_equal(asked, 3);
	assert_in_range(query.work, 3 * REGEX_PAUSE_WORK, 4 * REGEX_PAUSE_WORK);
	/* Nothing is looked at any more. */
	assert_false(line_query_fits(&query, SLICE("ab")));
	assert_int_equal(asked, 3);
	line_query_release(&query);
	mem_free(line);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(one_more_regular_expression),
		cmocka_unit_test(the_look_before_regular_expressions_excludes_nothing),
		cmocka_unit_test(fields),
		cmocka_unit_test(fields_that_are_refused),
		cmocka_unit_test(what_fields_exclude),
		cmocka_unit_test(a_look_at_a_long_line_may_end),
	};
	return cmocka_run_group_tests(tests, read_rules, let_rules_go);
}
