/* Cells of marks, byte by byte as marks/cell.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "marks/cell.h"

#define BYTES(text) ((struct slice){text, sizeof(text) - 1})
#define AT_258      "\2\1\0\0\0\0\0\0"

static void put(struct mark_cell_writer *writer, const char *tenant, const char *metric,
		const char *tags)
{
	struct series_set set = {slice_of(metric), slice_of(tags)};
	size_t before = writer->value->len;
	size_t most = mark_cell_bytes(slice_of(tenant), set);
	mark_cell_put(writer, slice_of(tenant), set);
	assert_true(writer->value->len - before <= most);
}

/* Tags that are the same have texts of their own here. */
static void series_of_the_same_tags_share_their_text(UNUSED void **state)
{
	static const char want[] = "\3" AT_258 "\1t\4\0,h=1\2\0\1\0a\3\0abc"
				   "\1u\4\0,h=1\1\0\1\0a"
				   "\1u\0\0\1\0\1\0b";
	struct mark_cell_writer writer;
	struct buf value;
	char other[] = ",h=1";
	buf_init(&value, 1000);
	mark_cell_begin(&writer, &value, false, 258);
	put(&writer, "t", "a", ",h=1");
	put(&writer, "t", "abc", other);
	put(&writer, "u", "a", other);
	put(&writer, "u", "b", "");
	assert_int_equal(value.len, sizeof(want) - 1);
	assert_memory_equal(value.data, want, sizeof(want) - 1);
	mark_cell_begin(&writer, &value, true, 258);
	assert_memory_equal(value.data, "\4" AT_258, value.len);
	buf_release(&value);
}

static void expect_series(struct slice cell, bool deleted, const char *want)
{
	struct mark_cell_reader reader;
	struct slice tenant;
	struct series_set set;
	char text[200] = "";
	size_t len = 0;
	assert_true(mark_cell_open(&reader, cell));
	assert_int_equal(reader.touched_ms, 258);
	assert_int_equal(reader.deleted, deleted);
	while (mark_cell_next(&reader, &tenant, &set))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s|%.*s|%.*s ",
					(int)tenant.len, tenant.data, (int)set.metric.len,
					set.metric.data, (int)set.tags.len, set.tags.data);
	assert_string_equal(text, want);
}

static void each_version_is_read(UNUSED void **state)
{
	expect_series(BYTES("\1" AT_258 "\1t\5\0a,h=1\2uv\1\0b"), false, "t|a|,h=1 uv|b| ");
	expect_series(BYTES("\2" AT_258 "\1t\1\0a"), true, "t|a| ");
	expect_series(BYTES("\3" AT_258 "\1t\4\0,h=1\2\0\1\0a\3\0abc\1u\0\0\1\0\1\0b"), false,
		      "t|a|,h=1 t|abc|,h=1 u|b| ");
	expect_series(BYTES("\4" AT_258 "\1t\0\0\1\0\1\0a"), true, "t|a| ");
	expect_series(BYTES("\3" AT_258), false, "");
}

static void what_is_cut_or_of_a_later_version_is_not(UNUSED void **state)
{
	static const char whole[] = "\3" AT_258 "\1t\4\0,h=1\2\0\1\0a\3\0abc";
	struct mark_cell_reader reader;
	for (size_t len = 0; len < sizeof(whole) - 1; len++)
		assert_int_equal(mark_cell_open(&reader, (struct slice){whole, len}), len == 9);
	assert_false(mark_cell_open(&reader, BYTES("\0" AT_258)));
	assert_false(mark_cell_open(&reader, BYTES("\5" AT_258)));
	assert_false(mark_cell_open(&reader, BYTES("\3" AT_258 "\1t\0\0\0\0")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(series_of_the_same_tags_share_their_text),
		cmocka_unit_test(each_version_is_read),
		cmocka_unit_test(what_is_cut_or_of_a_later_version_is_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
