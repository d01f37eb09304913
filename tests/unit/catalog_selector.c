/* Selectors of tags: what is read, what is refused, what matches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "catalog/selector.h"

struct parsed {
	struct arena arena;
	struct catalog_selector list[CATALOG_SELECTORS_MAX];
	size_t count;
	struct errbuf e;
	int err;
};

static void parse(struct parsed *p, const char *text)
{
	memset(p, 0, sizeof(*p));
	arena_init(&p->arena, 1 << 20);
	p->err = catalog_selectors_parse(slice_of(text), &p->arena, p->list, &p->count, &p->e);
}

/* Selectors as `key:value/value;key:...`, pieces of a value joined by `*`. */
static void shown(const struct parsed *p, char *to, size_t size)
{
	struct buf out;
	buf_init(&out, size - 1);
	for (size_t s = 0; s < p->count; s++) {
		const struct catalog_selector *sel = &p->list[s];
		buf_printf(&out, "%s%.*s:", s ? ";" : "", (int)sel->key.len, sel->key.data);
		for (size_t v = 0; v < sel->value_count; v++) {
			buf_append_text(&out, v ? "/" : "");
			for (size_t i = 0; i < sel->values[v].piece_count; i++)
				buf_printf(&out, "%s%.*s", i ? "*" : "",
					   (int)sel->values[v].pieces[i].len,
					   sel->values[v].pieces[i].data);
		}
	}
	memcpy(to, out.data ? out.data : "", out.len);
	to[out.len] = 0;
	buf_release(&out);
}

static void expect(const char *text, const char *wanted)
{
	struct parsed p;
	char is[512];
	parse(&p, text);
	if (p.err)
		fail_msg("%s: %s", text, p.e.text);
	shown(&p, is, sizeof(is));
	assert_string_equal(is, wanted);
	arena_release(&p.arena);
}

static void refuse(const char *text, const char *part)
{
	struct parsed p;
	parse(&p, text);
	assert_int_equal(p.err, ERR_INVALID);
	if (!strstr(p.e.text, part))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, p.e.text, part);
	arena_release(&p.arena);
}

static void test_parse(void **state)
{
	(void)state;
	expect("host=h-1", "host:h-1");
	expect("host=h-1,os=linux", "host:h-1;os:linux");
	expect("host=h-1,h-2,os=linux", "host:h-1/h-2;os:linux");
	expect("host=h-1|h-2", "host:h-1/h-2");
	expect("host=h-*", "host:h-*");
	expect("host=*", "host:*");
	expect("host=a**b", "host:a*b");
	expect("host=***", "host:*");
	expect("host=*a*b*", "host:*a*b*");
	/* A `=` after the first is part of the value, unless a comma began a new tag. */
	expect("q=a=b", "q:a=b");
	expect("q=a|b=c", "q:a/b=c");
	expect("q=a,b=c", "q:a;b:c");
	expect("host=h-1,h-*|x", "host:h-1/h-*/x");
	expect("host=a,host=b", "host:a;host:b");
	expect("k=\xc3\xa4*", "k:\xc3\xa4*");
}

static void test_escapes(void **state)
{
	(void)state;
	struct parsed p;
	parse(&p, "a\\=b=c\\,d\\|e\\*f\\\\g");
	assert_int_equal(p.err, 0);
	assert_int_equal(p.count, 1);
	assert_true(slice_equal(p.list[0].key, SLICE("a=b")));
	assert_int_equal(p.list[0].value_count, 1);
	assert_int_equal(p.list[0].values[0].piece_count, 1);
	assert_true(slice_equal(p.list[0].values[0].pieces[0], SLICE("c,d|e*f\\g")));
	arena_release(&p.arena);
	/* An escaped `=` begins no tag. */
	expect("a=b,c\\=d", "a:b/c=d");
}

static void test_refused(void **state)
{
	(void)state;
	refuse("", "key=value");
	refuse("host", "key=value");
	refuse("h-1,host=a", "key=value");
	refuse("=a", "key is empty");
	refuse("host=", "value is empty");
	refuse("host=a,", "value is empty");
	refuse("host=a||b", "value is empty");
	refuse("host=|a", "value is empty");
	refuse("host=a,,b", "value is empty");
	refuse("host=,os=linux", "value is empty");
	refuse("host=a\\", "backslash");
	refuse("host=a\\n", "backslash");
	refuse("a=b,=c", "key is empty");
}

static void test_limits(void **state)
{
	(void)state;
	static char text[8192];
	struct parsed p;
	size_t n = 0;
	for (int i = 0; i < CATALOG_SELECTORS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%sk%d=v", i ? "," : "", i);
	parse(&p, text);
	assert_int_equal(p.err, 0);
	assert_int_equal(p.count, CATALOG_SELECTORS_MAX);
	arena_release(&p.arena);
	memcpy(text + n, ",x=v", 5);
	refuse(text, "more than 64 tags");

	n = (size_t)snprintf(text, sizeof(text), "k=");
	for (int i = 0; i < CATALOG_ALTERNATIVES_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d", i ? "|" : "", i);
	parse(&p, text);
	assert_int_equal(p.err, 0);
	assert_int_equal(p.list[0].value_count, CATALOG_ALTERNATIVES_MAX);
	arena_release(&p.arena);
	memcpy(text + n, "|x", 3);
	refuse(text, "more than 256 values");
}

static void test_full_arena(void **state)
{
	(void)state;
	struct catalog_selector list[CATALOG_SELECTORS_MAX];
	for (size_t max = 0; max < 200; max++) {
		struct arena arena;
		struct errbuf e;
		size_t count = 0;
		arena_init(&arena, max);
		int err = catalog_selectors_parse(SLICE("host=a|b*|c,os=x"), &arena, list, &count,
						  &e);
		assert_true(err == ERR_LIMIT || (err == 0 && count == 2));
		arena_release(&arena);
	}
}

static bool matches(const char *selector, const char *value)
{
	struct parsed p;
	parse(&p, selector);
	assert_int_equal(p.err, 0);
	bool is = selector_match(&p.list[0], slice_of(value));
	arena_release(&p.arena);
	return is;
}

static void test_match(void **state)
{
	(void)state;
	assert_true(matches("k=abc", "abc"));
	assert_false(matches("k=abc", "abcd"));
	assert_false(matches("k=abc", "ab"));
	assert_true(matches("k=*", "x"));
	assert_true(matches("k=a*", "a"));
	assert_true(matches("k=a*", "ab"));
	assert_false(matches("k=a*", "ba"));
	assert_true(matches("k=*a", "ba"));
	assert_false(matches("k=*a", "ab"));
	assert_true(matches("k=a*a", "aa"));
	assert_false(matches("k=a*a", "a")); /* one a is not two */
	assert_true(matches("k=a*b*c", "axbxc"));
	assert_true(matches("k=a*b*c", "abc"));
	assert_false(matches("k=a*b*c", "acb"));
	assert_false(matches("k=a*b*bc", "abc")); /* the b of the end is not free */
	assert_true(matches("k=*ab*ab*", "abab"));
	assert_false(matches("k=*ab*ab*", "abxb"));
	assert_true(matches("k=x|a*|y", "abc"));
	assert_false(matches("k=x|a*|y", "z"));
	/* Where matching by trying everything would never end. */
	static char long_value[1001];
	memset(long_value, 'a', 1000);
	assert_false(matches("k=*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b*", long_value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),      cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_refused),    cmocka_unit_test(test_limits),
		cmocka_unit_test(test_full_arena), cmocka_unit_test(test_match),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
