/* The index of one metric: what it finds, against the worked example of the document and against
 * the plainest search; what it takes in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/random.h"
#include "catalog/selector.h"
#include "catalog/tag_index.h"

struct found {
	struct arena arena;
	struct catalog_find find;
	struct catalog_selector selectors[CATALOG_SELECTORS_MAX];
	int err;
};

/* All steps of a search. */
static int search_all(struct tag_index *index, struct catalog_find *find)
{
	struct tag_search *search = tag_search_new(index, find);
	int err;
	while (!tag_search_step(search, &err))
		;
	tag_search_free(search);
	return err;
}

static void look(struct found *f, struct tag_index *index, const char *selectors, size_t series_max)
{
	struct errbuf e;
	memset(f, 0, sizeof(*f));
	arena_init(&f->arena, 64 << 20);
	f->find.arena = &f->arena;
	f->find.series_max = series_max;
	f->find.selectors = f->selectors;
	if (selectors && catalog_selectors_parse(slice_of(selectors), &f->arena, f->selectors,
						 &f->find.selector_count, &e))
		fail_msg("%s", e.text);
	f->err = search_all(index, &f->find);
}

/* `wanted`: tags texts with blanks between. */
static void expect(struct tag_index *index, const char *selectors, const char *wanted)
{
	struct found f;
	char is[4096] = "";
	size_t n = 0;
	look(&f, index, selectors, 100);
	assert_int_equal(f.err, 0);
	for (size_t i = 0; i < f.find.count; i++)
		n += (size_t)snprintf(is + n, sizeof(is) - n, "%s%.*s", i ? " " : "",
				      (int)f.find.series[i].tags_text.len,
				      f.find.series[i].tags_text.data);
	assert_string_equal(is, wanted);
	arena_release(&f.arena);
}

static void add(struct tag_index *index, uint64_t handle, const char *text)
{
	assert_int_equal(tag_index_add(index, handle, slice_of(text)), 0);
}

#define H1 "deployment=prod,host=h-1,os=linux"
#define H2 "deployment=prod,host=h-2,os=windows"
#define H3 "deployment=dev,host=h-3,os=linux"
#define H4 "deployment=prod,host=h-4,os=linux"

static void test_document(void **state)
{
	(void)state;
	struct tag_index *index = tag_index_new();
	add(index, 11, H1);
	add(index, 12, H2);
	add(index, 13, H3);
	add(index, 14, H4);
	expect(index, "os=linux,deployment=prod", H1 " " H4);
	expect(index, "os=linux", H3 " " H1 " " H4);
	expect(index, "deployment=prod", H1 " " H2 " " H4);
	expect(index, NULL, H3 " " H1 " " H2 " " H4);
	expect(index, "host=h-*", H3 " " H1 " " H2 " " H4);
	expect(index, "host=h-1|h-3", H3 " " H1);
	expect(index, "host=h-1,h-3,os=linux", H3 " " H1);
	expect(index, "host=*-2", H2);
	expect(index, "host=*-2|h-4,os=*", H2 " " H4);
	expect(index, "host=h-1,host=h-2", "");
	expect(index, "host=h-5", "");
	expect(index, "region=*", "");
	expect(index, "os=linux,region=eu", "");
	expect(index, "os=lin", "");
	tag_index_release(index);
}

static void test_odd_names(void **state)
{
	(void)state;
	struct tag_index *index = tag_index_new();
	add(index, 1, "");
	add(index, 2, "a\\=b=c\\,d");
	add(index, 3, "k=a\\\\b");
	add(index, 4, "k=a*b");
	/* A series without tags belongs to the metric and to no tag. */
	expect(index, NULL, " a\\=b=c\\,d k=a*b k=a\\\\b");
	expect(index, "a\\=b=c\\,d", "a\\=b=c\\,d");
	expect(index, "a\\=b=c*d", "a\\=b=c\\,d");
	expect(index, "a\\=b=c?d", "");
	expect(index, "k=a\\\\b", "k=a\\\\b");
	expect(index, "k=a\\*b", "k=a*b");
	expect(index, "k=a*b", "k=a*b k=a\\\\b");
	assert_int_equal(tag_index_add(index, 9, SLICE("novalue")), ERR_DAMAGED);
	assert_int_equal(tag_index_add(index, 9, SLICE("a=b,=c")), ERR_DAMAGED);
	expect(index, "a=b", ""); /* nothing of the damaged one is left */
	assert_int_equal(tag_index_series(index), 4);
	tag_index_release(index);
}

static void test_twice(void **state)
{
	(void)state;
	struct tag_index *index = tag_index_new();
	add(index, 7, H1);
	add(index, 7, H1);
	assert_int_equal(tag_index_series(index), 1);
	expect(index, "host=h-1", H1);
	tag_index_release(index);
}

static void test_limits(void **state)
{
	(void)state;
	struct tag_index *index = tag_index_new();
	struct found f;
	char text[32];
	for (int i = 0; i < 50; i++) {
		snprintf(text, sizeof(text), "h=%d", i);
		add(index, (uint64_t)i + 1, text);
	}
	look(&f, index, NULL, 50);
	assert_int_equal(f.err, 0);
	assert_int_equal(f.find.count, 50);
	arena_release(&f.arena);
	look(&f, index, NULL, 49);
	assert_int_equal(f.err, ERR_LIMIT);
	assert_string_equal(f.find.error.text, "50 series match; at most 49 are read at once");
	arena_release(&f.arena);
	for (size_t max = 0; max < 4000; max += 16) { /* any arena: an answer or a limit */
		struct catalog_find find = {.series_max = 50};
		struct arena arena;
		arena_init(&arena, max);
		find.arena = &arena;
		int err = search_all(index, &find);
		assert_true(err == 0 || err == ERR_LIMIT);
		arena_release(&arena);
	}
	tag_index_release(index);
}

enum { MANY = 30000 };

static struct tag_index *many_series(void)
{
	struct tag_index *index = tag_index_new();
	for (unsigned i = 0; i < MANY; i++) {
		char text[32];
		snprintf(text, sizeof(text), "host=h-%u,odd=%u", i, i % 2);
		assert_int_equal(tag_index_add(index, i + 1, slice_of(text)), 0);
	}
	return index;
}

/* Other work is done between two steps: series come, and whoever had the index gives it up. */
static void test_a_search_goes_on_beside_other_work(void **state)
{
	/* A value costs the pieces of its patterns and one: the last pattern is there to cost. */
	static const char *const selectors[] = {"host=*7*|*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~",
						"odd=1,host=*7*|*~*~*~*~*~*~*~*~*~*~*~",
						"host=*7*|*-7|*~*~*~*~*~*~*~*~*~*~*~*~"};
	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(selectors); s++) {
		struct tag_index *index = many_series();
		struct catalog_selector list[CATALOG_SELECTORS_MAX];
		struct catalog_find find = {.series_max = MANY, .selectors = list};
		struct arena arena;
		struct errbuf e;
		size_t steps = 1, wanted = 0;
		int err;
		arena_init(&arena, 64 << 20);
		find.arena = &arena;
		assert_int_equal(catalog_selectors_parse(slice_of(selectors[s]), &arena, list,
							 &find.selector_count, &e),
				 0);
		struct tag_search *search = tag_search_new(index, &find);
		for (; !tag_search_step(search, &err); steps++) {
			char text[32];
			snprintf(text, sizeof(text), "host=new-%zu,odd=1", steps);
			if (steps == 1)
				assert_int_equal(tag_index_add(index, MANY + 1, slice_of(text)), 0);
			if (steps == 2)
				tag_index_release(index);
		}
		for (unsigned i = 0; i < MANY; i++) {
			char text[32];
			snprintf(text, sizeof(text), "%u", i);
			wanted += strchr(text, '7') && (s != 1 || i % 2);
		}
		assert_int_equal(err, 0);
		assert_in_range(steps, 3, 20);
		assert_int_equal(find.count, wanted);
		tag_search_free(search);
		arena_release(&arena);
	}
}

/* One that is given up half-way leaves nothing behind. */
static void test_a_search_is_given_up(void **state)
{
	struct tag_index *index = many_series();
	struct catalog_selector list[CATALOG_SELECTORS_MAX];
	struct catalog_find find = {.series_max = MANY, .selectors = list};
	struct arena arena;
	struct errbuf e;
	int err;
	(void)state;
	arena_init(&arena, 1 << 20);
	find.arena = &arena;
	assert_int_equal(catalog_selectors_parse(SLICE("odd=*,host=*7*|*~*~*~*~*~*~"), &arena, list,
						 &find.selector_count, &e),
			 0);
	struct tag_search *search = tag_search_new(index, &find);
	assert_false(tag_search_step(search, &err));
	tag_index_release(index);
	tag_search_free(search);
	arena_release(&arena);
}

/* ---- Against the plainest search ----------------------------------------------------------- */

enum { SERIES = 3000, QUERIES = 400 };

static void append_tag(char *text, char key, char value, int number)
{
	size_t n = strlen(text);
	snprintf(text + n, 64 - n, "%s%c=%c%d", n ? "," : "", key, value, number);
}

/* a: 3 values, b: 40, c: one each; each may be absent. */
static void random_text(struct random *random, int i, char *text)
{
	text[0] = 0;
	if (random_below(random, 10))
		append_tag(text, 'a', 'x', (int)random_below(random, 3));
	if (random_below(random, 10))
		append_tag(text, 'b', 'y', (int)random_below(random, 40));
	if (random_below(random, 10))
		append_tag(text, 'c', 'z', i);
}

/* Whether the tags of `text`, which has no escapes, hold the selectors. */
static bool plain_match(const char *text, const struct found *f)
{
	for (size_t s = 0; s < f->find.selector_count; s++) {
		const struct catalog_selector *sel = &f->selectors[s];
		bool holds = false;
		for (const char *p = text; *p;) {
			size_t len = strcspn(p, ",");
			struct slice value = {p + 2, len - 2};
			if (*p == sel->key.data[0] && selector_match(sel, value))
				holds = true;
			p += len + (p[len] == ',');
		}
		if (!holds)
			return false;
	}
	return true;
}

static void test_random(void **state)
{
	(void)state;
	static char texts[SERIES][64];
	static const char *const shapes[] = {
		"a=x%d",       "b=y%d",       "c=z%d",         "b=y%d*",    "c=z%d*",     "c=*%d",
		"a=x%d,b=y1*", "a=x1,c=z%d*", "a=x0|x2,b=y%d", "b=*%d,c=*", "b=y3,c=*%d*"};
	struct random random;
	struct tag_index *index = tag_index_new();
	random_init(&random, 4);
	for (int i = 0; i < SERIES; i++) {
		random_text(&random, i, texts[i]);
		add(index, (uint64_t)i * 3 + 1, texts[i]);
		if (i == SERIES / 2)
			tag_index_optimize(index);
	}
	for (int q = 0; q < QUERIES; q++) {
		struct found f;
		char selectors[64];
		snprintf(selectors, sizeof(selectors), shapes[(size_t)q % ARRAY_LEN(shapes)],
			 (int)random_below(&random, 50));
		look(&f, index, selectors, SERIES);
		assert_int_equal(f.err, 0);
		size_t wanted = 0;
		for (int i = 0; i < SERIES; i++)
			wanted += plain_match(texts[i], &f);
		assert_int_equal(f.find.count, wanted);
		for (size_t i = 0; i < f.find.count; i++) {
			uint64_t id = (f.find.series[i].handle - 1) / 3;
			assert_true(plain_match(texts[id], &f));
			assert_true(slice_equal(f.find.series[i].tags_text, slice_of(texts[id])));
			assert_true(!i || slice_compare(f.find.series[i - 1].tags_text,
							f.find.series[i].tags_text) <= 0);
		}
		arena_release(&f.arena);
	}
	tag_index_release(index);
}

/* ---- Memory -------------------------------------------------------------------------------- */

/* 100,000 hosts as the TSBS generator names them: at most 200 bytes a series, and what the index
 * says of itself is what it takes. */
static void test_memory(void **state)
{
	(void)state;
	struct tag_index *index = tag_index_new();
	char text[300];
	for (int i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text),
			 "arch=x%d,datacenter=eu-central-1%c,hostname=host_%d,os=Ubuntu%d,rack=%d,"
			 "region=eu-central-%d,service=%d,service_environment=test,"
			 "service_version=%d,team=NYC%d",
			 i % 2 ? 64 : 86, 'a' + i % 3, i, 15 + i % 4, i * 7 % 100, i % 9,
			 i * 13 % 20, i % 2, i % 5);
		assert_int_equal(tag_index_add(index, (uint64_t)i + 1, slice_of(text)), 0);
	}
	tag_index_optimize(index);
	size_t each = tag_index_bytes(index) / 100000;
	print_message("index: %zu bytes a series\n", each);
	assert_true(each < 200);
	struct found f;
	look(&f, index, "hostname=host_777*,service=1", 1000);
	assert_int_equal(f.err, 0);
	/* i in {777, 7770..7779, 77700..77799} with 13 i = 1 (mod 20), that is i = 17 (mod 20):
	 * 777, 7777, and 77717 37 57 77 97. */
	assert_int_equal(f.find.count, 7);
	arena_release(&f.arena);
	tag_index_release(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_odd_names),
		cmocka_unit_test(test_a_search_goes_on_beside_other_work),
		cmocka_unit_test(test_a_search_is_given_up),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
