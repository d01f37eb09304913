/* The encoding of parts, and the schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/store.h"

#define TEXT(t) ((struct slice){(t), sizeof(t) - 1})

static void parts_both_ways(UNUSED void **state)
{
	const struct {
		struct store_parts parts;
		size_t count;
		struct slice bytes;
	} vectors[] = {
		{{{TEXT("a")}}, 1, TEXT("a")},
		{{{TEXT("")}}, 1, TEXT("")},
		{{{TEXT("a\0\x01")}}, 1, TEXT("a\0\x01")}, /* the last as it is */
		{{{TEXT("a"), TEXT("b")}},
		 2,
		 TEXT("a\0\x01"
		      "b")},
		{{{TEXT(""), TEXT("")}}, 2, TEXT("\0\x01")},
		{{{TEXT("a\0b"), TEXT("c")}},
		 2,
		 TEXT("a\0\xff"
		      "b\0\x01"
		      "c")},
		{{{TEXT("\0\x01"), TEXT("\0\x01")}}, 2, TEXT("\0\xff\x01\0\x01\0\x01")},
		{{{TEXT("\0\0"), TEXT("x"), TEXT("y")}}, 3, TEXT("\0\xff\0\xff\0\x01x\0\x01y")},
	};
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct buf buf;
		struct arena arena;
		struct store_parts parts;
		buf_init(&buf, 100);
		arena_init(&arena, 1000);
		assert_int_equal(store_parts_encode(&vectors[i].parts, vectors[i].count, &buf), 0);
		assert_true(slice_equal(buf_slice(&buf), vectors[i].bytes));
		assert_int_equal(store_parts_bytes(&vectors[i].parts, vectors[i].count),
				 vectors[i].bytes.len);
		assert_int_equal(
			store_parts_decode(vectors[i].bytes, vectors[i].count, &arena, &parts), 0);
		for (size_t p = 0; p < vectors[i].count; p++) {
			assert_non_null(parts.part[p].data);
			assert_true(slice_equal(parts.part[p], vectors[i].parts.part[p]));
		}
		buf_release(&buf);
		arena_release(&arena);
	}
}

static void bounds_end_at_the_first_part_that_is_missing(UNUSED void **state)
{
	const struct store_parts bound = {{TEXT("a"), {NULL, 0}, TEXT("ignored")}};
	struct buf buf;
	buf_init(&buf, 100);
	assert_int_equal(store_parts_encode(&bound, 3, &buf), 0);
	assert_true(slice_equal(buf_slice(&buf), TEXT("a\0\x01")));
	buf_release(&buf);
	buf_init(&buf, 2);
	assert_int_equal(store_parts_encode(&bound, 3, &buf), ERR_LIMIT);
	assert_int_equal(buf.len, 0);
	buf_release(&buf);
}

static void damaged_parts_are_refused(UNUSED void **state)
{
	static const struct slice wrong[] = {TEXT(""),
					     TEXT("a"),
					     TEXT("a\0"),
					     TEXT("a\0\x02"
						  "b"),
					     TEXT("a\0\xff"),
					     TEXT("\0\0\x01")};
	struct arena arena;
	struct store_parts parts;
	arena_init(&arena, 1000);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(store_parts_decode(wrong[i], 2, &arena, &parts), ERR_DAMAGED);
	assert_int_equal(store_parts_decode(TEXT("a\0\x01"
						 "b"),
					    3, &arena, &parts),
			 ERR_DAMAGED);
	arena_release(&arena);
	arena_init(&arena, 1);
	assert_int_equal(store_parts_decode(TEXT("a\0\xff"
						 "b\0\x01"
						 "c"),
					    2, &arena, &parts),
			 ERR_LIMIT);
	arena_release(&arena);
}

static void schema_is_whole(UNUSED void **state)
{
	for (int t = 0; t < TABLE_COUNT; t++) {
		assert_null(schema_fault(&schema[t]));
		assert_int_equal(schema_find(slice_of(schema[t].name)), t);
	}
	assert_int_equal(schema_find(TEXT("nothing")), -1);
	assert_int_equal(schema_find(TEXT("")), -1);
}

/* Of two processes on one store each would take what the other put for its own. */
static void only_queues_are_the_nodes_own(UNUSED void **state)
{
	for (int t = 0; t < TABLE_COUNT; t++) {
		bool own = t == TABLE_QUEUE || t == TABLE_QUEUE_ASIDE;
		assert_int_equal(schema[t].place, own ? PLACE_OWN : PLACE_SHARED);
		bool by_ranges = t == TABLE_MARKS || t == TABLE_CHUNK_TAIL ||
				 t == TABLE_CHUNK_SINK || t == TABLE_CHUNK_HEADS;
		assert_int_equal(schema[t].by_ranges, by_ranges);
	}
}

static void what_contradicts_itself_in_the_schema_is_found(UNUSED void **state)
{
	struct table_def def = schema[TABLE_QUEUE];
	def.place = PLACE_SHARED;
	assert_string_equal(schema_fault(&def),
			    "a log that is shared though its readers do not go by ranges");
	def.by_ranges = true;
	assert_null(schema_fault(&def));
	def = schema[TABLE_OOPS];
	def.by_ranges = true;
	assert_string_equal(schema_fault(&def), "by_ranges of a table that is no log");
	def = schema[TABLE_LEASES];
	def.place = PLACE_OWN;
	assert_string_equal(schema_fault(&def), "a table that is no log and not shared");
	def.key_count = 0;
	assert_non_null(schema_fault(&def));
	def = schema[TABLE_DATA_RAW];
	def.place = PLACE_OWN;
	assert_string_equal(schema_fault(&def), "a table of samples that is not shared");
	def.field_count = TABLE_FIELDS_MAX + 1;
	assert_non_null(schema_fault(&def));
	def.help = NULL;
	assert_string_equal(schema_fault(&def), "a table without a name or a help text");
}

/* The table of widths for partitions of ten series, whose rows a partition must come out. */
static void buckets_have_some_ten_thousands_of_rows(UNUSED void **state)
{
	static const struct {
		enum table table;
		int64_t period_ms, every_ms, days, rows;
	} widths[] = {
		{TABLE_DATA_RAW, 0, 10000, 1, 86400},
		{TABLE_DATA_LATE, 0, 10000, 1, 86400},
		{TABLE_RAW_DATA, 30000, 30000, 1, 28800},
		{TABLE_BASE_RATES, 30000, 30000, 7, 201600},
		{TABLE_RATE_AGGREGATIONS, 3600000, 3600000, 364, 87360},
		{TABLE_STAT_AGGREGATIONS, 3600000, 3600000, 364, 87360},
		{TABLE_DATA_DOWNSAMPLED, 300000, 300000, 28, 80640},
		{TABLE_DATA_DOWNSAMPLED, 3600000, 3600000, 364, 87360},
		/* Not in that table: on either side of the edges. */
		{TABLE_RAW_DATA, 300000, 300000, 1, 2880},
		{TABLE_BASE_RATES, 10000, 10000, 1, 86400},
		{TABLE_BASE_RATES, 29999, 30000, 1, 28800},
		{TABLE_BASE_RATES, 60000, 60000, 7, 100800},
		{TABLE_DATA_DOWNSAMPLED, 299999, 300000, 7, 20160},
		{TABLE_DATA_DOWNSAMPLED, 900000, 900000, 28, 26880},
		{TABLE_DATA_DOWNSAMPLED, 3599999, 3600000, 28, 6720},
		{TABLE_DATA_DOWNSAMPLED, 86400000, 86400000, 364, 3640},
	};
	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		int64_t width_ms = schema_bucket_ms(widths[i].table, widths[i].period_ms);
		assert_int_equal(width_ms, widths[i].days * 86400000);
		assert_int_equal(width_ms / widths[i].every_ms * 10, widths[i].rows);
	}
}

static void retention_takes_the_shortest_class_that_keeps(UNUSED void **state)
{
	const int64_t day = 86400000;
	assert_int_equal(retention_class_for(0), RETENTION_EVER);
	assert_int_equal(retention_class_for(1), RETENTION_2_DAYS);
	assert_int_equal(retention_class_for(2 * day), RETENTION_2_DAYS);
	assert_int_equal(retention_class_for(2 * day + 1), RETENTION_7_DAYS);
	assert_int_equal(retention_class_for(35 * day), RETENTION_35_DAYS);
	assert_int_equal(retention_class_for(400 * day), RETENTION_400_DAYS);
	assert_int_equal(retention_class_for(400 * day + 1), RETENTION_EVER);
	assert_int_equal(retention_class_ms(RETENTION_7_DAYS), 7 * day);
	assert_int_equal(retention_class_ms(RETENTION_EVER), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_both_ways),
		cmocka_unit_test(bounds_end_at_the_first_part_that_is_missing),
		cmocka_unit_test(damaged_parts_are_refused),
		cmocka_unit_test(schema_is_whole),
		cmocka_unit_test(only_queues_are_the_nodes_own),
		cmocka_unit_test(what_contradicts_itself_in_the_schema_is_found),
		cmocka_unit_test(buckets_have_some_ten_thousands_of_rows),
		cmocka_unit_test(retention_takes_the_shortest_class_that_keeps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
