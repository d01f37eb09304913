/* Tenants, names, tags, and the text form of a series. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/series.h"

#define TEXT(t) ((struct slice){(t), sizeof(t) - 1})

static void tenants(UNUSED void **state)
{
	char name[TENANT_MAX_BYTES + 2];
	assert_true(tenant_valid(TEXT("default")));
	assert_true(tenant_valid(TEXT("A-z_0.9")));
	assert_true(tenant_valid(TEXT(".")));
	assert_false(tenant_valid(TEXT("")));
	assert_false(tenant_valid(TEXT("a b")));
	assert_false(tenant_valid(TEXT("a/b")));
	assert_false(tenant_valid(TEXT("a\0")));
	assert_false(tenant_valid(TEXT("\xc3\xa9")));
	assert_false(tenant_valid(TEXT("a@"))); /* beside the letters */
	assert_false(tenant_valid(TEXT("a[")));
	assert_false(tenant_valid(TEXT("a`")));
	assert_false(tenant_valid(TEXT("a{")));
	assert_false(tenant_valid(TEXT("a:")));
	memset(name, 'x', sizeof(name));
	assert_true(tenant_valid((struct slice){name, TENANT_MAX_BYTES}));
	assert_false(tenant_valid((struct slice){name, TENANT_MAX_BYTES + 1}));
}

static const struct {
	const char *text;
	struct slice metric;
	struct tag tags[3];
	size_t count;
} vectors[] = {
	{"cpu", TEXT("cpu"), {{{0}}}, 0},
	{"cpu,host=h-1", TEXT("cpu"), {{TEXT("host"), TEXT("h-1")}}, 1},
	{"m,a=1,b=2,c=3",
	 TEXT("m"),
	 {{TEXT("a"), TEXT("1")}, {TEXT("b"), TEXT("2")}, {TEXT("c"), TEXT("3")}},
	 3},
	{"a\\,b\\=c\\\\d", TEXT("a,b=c\\d"), {{{0}}}, 0},
	{"m,k\\=1=v\\,2", TEXT("m"), {{TEXT("k=1"), TEXT("v,2")}}, 1},
	{"m,\\\\=\\\\\\,", TEXT("m"), {{TEXT("\\"), TEXT("\\,")}}, 1},
	{"\xc3\xa9 t,k=v w", TEXT("\xc3\xa9 t"), {{TEXT("k"), TEXT("v w")}}, 1},
};

static void series_sets_both_ways(UNUSED void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct arena arena;
		struct buf buf;
		struct slice metric;
		struct tags tags;
		buf_init(&buf, 1000);
		arena_init(&arena, 1 << 16);
		assert_int_equal(series_set_encode(vectors[i].metric,
						   (struct tags){vectors[i].tags, vectors[i].count},
						   &buf),
				 0);
		assert_true(slice_equal(buf_slice(&buf), slice_of(vectors[i].text)));
		assert_int_equal(series_set_decode(series_set_split(slice_of(vectors[i].text)),
						   &arena, &metric, &tags),
				 0);
		assert_true(slice_equal(metric, vectors[i].metric));
		assert_int_equal(tags.count, vectors[i].count);
		for (size_t t = 0; t < tags.count; t++) {
			assert_true(slice_equal(tags.list[t].key, vectors[i].tags[t].key));
			assert_true(slice_equal(tags.list[t].value, vectors[i].tags[t].value));
			assert_true(
				slice_equal(tags_find(tags, tags.list[t].key), tags.list[t].value));
		}
		assert_null(tags_find(tags, TEXT("nothing")).data);
		buf_release(&buf);
		arena_release(&arena);
	}
}

static void what_no_encoder_wrote_is_refused(UNUSED void **state)
{
	static const char *const wrong[] = {
		"",       ",",       "m,",      "m,k",       "m,k=",      "m,=v",
		"m,k=v,", "m,k=v,k", "m,,k=v",  "m=x",       "m,k=v=w",   "m\\",
		"m\\x",   "m,k=v\\", "m,k=\\x", "m,b=1,a=2", "m,a=1,a=2", "m,a=1,a=1",
		",a=1",   "=",       "m,k\\=v", "m,k\\,v"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct arena arena;
		struct slice metric;
		struct tags tags;
		arena_init(&arena, 1 << 16);
		assert_int_equal(series_set_decode(series_set_split(slice_of(wrong[i])), &arena,
						   &metric, &tags),
				 ERR_INVALID);
		arena_release(&arena);
	}
}

static void decoding_in_a_full_arena(UNUSED void **state)
{
	struct arena arena;
	struct slice metric;
	struct tags tags;
	for (size_t max = 0; max < 64; max += 16) {
		arena_init(&arena, max);
		assert_int_equal(
			series_set_decode(series_set_split(TEXT("m,k=v")), &arena, &metric, &tags),
			ERR_LIMIT);
		arena_release(&arena);
	}
}

/* As many tags as there may be take some times their text, and no more: thousands of series are
 * decoded together. */
static void decoding_takes_some_times_the_text(UNUSED void **state)
{
	struct buf text;
	struct arena arena;
	struct tags tags;
	buf_init(&text, TAGS_TEXT_MAX_BYTES);
	for (int i = 10; i < 10 + TAGS_MAX; i++)
		buf_printf(&text, "%sk%d=%040d", i > 10 ? "," : "", i, i);
	arena_init(&arena, TAGS_MAX * sizeof(struct tag) + text.len + 64);
	assert_int_equal(tags_decode(buf_slice(&text), &arena, &tags), 0);
	assert_int_equal(tags.count, TAGS_MAX);
	assert_int_equal(tags.list[TAGS_MAX - 1].value.len, 40);
	arena_release(&arena);
	buf_release(&text);
}

static void encoding_into_a_full_buffer(UNUSED void **state)
{
	struct buf buf;
	struct tag tag = {TEXT("k"), TEXT("v,w")};
	buf_init(&buf, 7); /* m,k=v\,w takes 8 */
	assert_int_equal(series_set_encode(TEXT("m"), (struct tags){&tag, 1}, &buf), ERR_LIMIT);
	buf_release(&buf);
}

static void tags_are_sorted_and_checked(UNUSED void **state)
{
	struct errbuf e = {""};
	struct tag tags[4] = {{TEXT("b"), TEXT("2")},
			      {TEXT("a"), TEXT("1")},
			      {TEXT("ab"), TEXT("3")},
			      {TEXT("B"), TEXT("4")}};
	static const char *const order[] = {"B", "a", "ab", "b"};
	assert_int_equal(tags_sort_and_check(tags, 4, &e), 0);
	for (size_t i = 0; i < 4; i++)
		assert_true(slice_equal(tags[i].key, slice_of(order[i])));
	assert_int_equal(tags_sort_and_check(tags, 0, &e), 0);
}

static void bad_tags_get_a_sentence(UNUSED void **state)
{
	const struct {
		struct tag tag;
		const char *part;
	} wrong[] = {
		{{TEXT(""), TEXT("v")}, "empty"},
		{{TEXT("k"), TEXT("")}, "empty"},
		{{TEXT("a"), TEXT("v")}, "twice"}, /* beside another a */
		{{TEXT("k\n"), TEXT("v")}, "control"},
		{{TEXT("k"), TEXT("v\x7f")}, "control"},
		{{TEXT("k"), TEXT("\0")}, "control"},
		{{TEXT("k"), TEXT("\xff")}, "UTF-8"},
		{{TEXT("k"), TEXT("\xc0\x80")}, "UTF-8"},         /* overlong */
		{{TEXT("k"), TEXT("\xed\xa0\x80")}, "UTF-8"},     /* a surrogate */
		{{TEXT("k"), TEXT("\xf4\x90\x80\x80")}, "UTF-8"}, /* above 10ffff */
		{{TEXT("k"), TEXT("\xe2\x82")}, "UTF-8"},         /* cut */
	};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct errbuf e = {""};
		struct tag tags[2] = {{TEXT("a"), TEXT("1")}, wrong[i].tag};
		assert_int_equal(tags_sort_and_check(tags, 2, &e), ERR_INVALID);
		assert_non_null(strstr(e.text, wrong[i].part));
	}
	struct tag good = {TEXT("k"), TEXT("\xf4\x8f\xbf\xbf \xe2\x82\xac")};
	assert_int_equal(tags_sort_and_check(&good, 1, NULL), 0);
}

static struct slice long_name(char *to, size_t len)
{
	memset(to, 'x', len);
	return (struct slice){to, len};
}

static void names_at_their_limits(UNUSED void **state)
{
	static char name[4096];
	struct errbuf e;
	assert_int_equal(metric_check(long_name(name, METRIC_MAX_BYTES), &e), 0);
	assert_int_equal(metric_check(long_name(name, METRIC_MAX_BYTES + 1), &e), ERR_INVALID);
	assert_int_equal(metric_check(TEXT(""), &e), ERR_INVALID);
	struct tag tag = {long_name(name, TAG_KEY_MAX_BYTES), TEXT("v")};
	assert_int_equal(tags_sort_and_check(&tag, 1, &e), 0);
	tag.key.len++;
	assert_int_equal(tags_sort_and_check(&tag, 1, &e), ERR_INVALID);
	tag = (struct tag){TEXT("k"), long_name(name, TAG_VALUE_MAX_BYTES)};
	assert_int_equal(tags_sort_and_check(&tag, 1, &e), 0);
	tag.value.len++;
	assert_int_equal(tags_sort_and_check(&tag, 1, &e), ERR_INVALID);
	struct tag many[TAGS_MAX + 1];
	char keys[TAGS_MAX + 1][8];
	for (size_t i = 0; i <= TAGS_MAX; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
		many[i] = (struct tag){slice_of(keys[i]), TEXT("v")};
	}
	assert_int_equal(tags_sort_and_check(many, TAGS_MAX, &e), 0);
	assert_int_equal(tags_sort_and_check(many, TAGS_MAX + 1, &e), ERR_INVALID);
	/* Each escaped character counts twice: 3 x (1 + 2 x 500 + 2) = 3009. */
	memset(name, ',', 500);
	struct tag escaped[3] = {
		{TEXT("a"), {name, 500}}, {TEXT("b"), {name, 500}}, {TEXT("c"), {name, 500}}};
	assert_int_equal(tags_sort_and_check(escaped, 3, &e), ERR_INVALID);
	escaped[2].value.len = 495; /* 2999 */
	assert_int_equal(tags_sort_and_check(escaped, 3, &e), 0);
}

static void expect_metric(struct slice metric, const char *sentence)
{
	struct errbuf e = {""};
	assert_int_equal(metric_check(metric, &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

/* Bounds stand only where a length is at fault; names are cut between characters. */
static void sentences_of_names(UNUSED void **state)
{
	static char name[4096], sentence[200];
	char sixty_four[65] = "";
	struct errbuf e = {""};
	expect_metric(TEXT(""), "metric \"\" is empty (1 to 256 bytes)");
	expect_metric(TEXT("a\nb"), "metric \"a\\nb\" holds a control character");
	expect_metric(TEXT("a\xff"), "metric \"a\\xff\" is not UTF-8");
	/* These cut the sentence off, or broke its line. */
	expect_metric(TEXT("\0a"), "metric \"\\x00a\" holds a control character");
	expect_metric(TEXT("\x7f\xc3\xa9\t"),
		      "metric \"\\x7f\xc3\xa9\\x09\" holds a control character");
	memset(sixty_four, 'x', 64);
	snprintf(sentence, sizeof(sentence), "metric \"%s...\" is too long (1 to 256 bytes)",
		 sixty_four);
	expect_metric(long_name(name, 257), sentence);
	/* 63 x, then two bytes of one letter: the second is the 65th. */
	memcpy(name + 63, "\xc3\xa9", 2);
	snprintf(sentence, sizeof(sentence), "metric \"%.63s...\" is too long (1 to 256 bytes)",
		 sixty_four);
	expect_metric((struct slice){name, 257}, sentence);
	struct tag tag = {TEXT("k"), long_name(name, 1025)};
	assert_int_equal(tags_sort_and_check(&tag, 1, &e), ERR_INVALID);
	assert_string_equal(e.text, "value of tag \"k\" is too long (1 to 1024 bytes)");
	tag.value = TEXT("\t");
	assert_int_equal(tags_sort_and_check(&tag, 1, &e), ERR_INVALID);
	assert_string_equal(e.text, "value of tag \"k\" holds a control character");
	tag = (struct tag){TEXT("\xff"), TEXT("v")};
	assert_int_equal(tags_sort_and_check(&tag, 1, &e), ERR_INVALID);
	assert_string_equal(e.text, "tag key \"\\xff\" is not UTF-8");
	assert_int_equal(tags_sort_and_check(&tag, 65, &e), ERR_INVALID); /* is not looked into */
	assert_string_equal(e.text, "there are more than 64 tags");
	/* As above: 3 x (1 + 2 x 500 + 2), of which 3000 are allowed. */
	memset(name, ',', 500);
	struct tag escaped[3] = {
		{TEXT("a"), {name, 500}}, {TEXT("b"), {name, 500}}, {TEXT("c"), {name, 500}}};
	assert_int_equal(tags_sort_and_check(escaped, 3, &e), ERR_INVALID);
	assert_string_equal(e.text, "the tags take 3009 bytes as text, more than the 3000 allowed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tenants),
		cmocka_unit_test(series_sets_both_ways),
		cmocka_unit_test(what_no_encoder_wrote_is_refused),
		cmocka_unit_test(decoding_in_a_full_arena),
		cmocka_unit_test(decoding_takes_some_times_the_text),
		cmocka_unit_test(encoding_into_a_full_buffer),
		cmocka_unit_test(tags_are_sorted_and_checked),
		cmocka_unit_test(bad_tags_get_a_sentence),
		cmocka_unit_test(names_at_their_limits),
		cmocka_unit_test(sentences_of_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
