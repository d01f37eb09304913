/* Partitions against document C, Guava's own test values, and the grammar of lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "lease/partition.h"

/* Of Guava's HashingTest, so that a partition is the same wherever it is computed. */
static void guava(UNUSED void **state)
{
	static const uint32_t of_100[] = {0,  55, 62, 8,  45, 59, 86, 97, 82, 59,
					  73, 37, 17, 56, 86, 21, 90, 37, 38, 83};
	for (uint32_t i = 0; i < ARRAY_LEN(of_100); i++)
		assert_int_equal(consistent_hash(i, 100), of_100[i]);
	assert_int_equal(consistent_hash(UINT64_C(10863919174838991), 11), 6);
	assert_int_equal(consistent_hash(UINT64_C(2016238256797177309), 11), 3);
	assert_int_equal(consistent_hash(UINT64_C(1673758223894951030), 11), 5);
	assert_int_equal(consistent_hash(2, 100001), 80343);
}

/* The program of document C put this series into this partition. */
static void the_documents(UNUSED void **state)
{
	struct series_set series =
		series_set_split(SLICE("some_metric,deployment=prod,host=h-1,os=linux"));
	assert_int_equal(partition_of(SLICE("tenant-1"), series, 64), 50);
	assert_int_equal(partition_of(SLICE("tenant-1"), series, 1), 0);
}

static void check_list(const char *text, const char *expected, const char *shown)
{
	struct partitions set;
	struct errbuf e;
	char bits[17] = "";
	size_t count = 0;
	assert_int_equal(partitions_parse(slice_of(text), 16, &set, &e), 0);
	for (uint32_t p = 0; p < 16; p++) {
		bits[p] = partitions_has(&set, p) ? 'x' : '.';
		count += partitions_has(&set, p);
	}
	assert_string_equal(bits, expected);
	assert_int_equal(set.count, count);
	struct buf printed;
	buf_init(&printed, 100);
	partitions_print(&set, &printed);
	buf_append_char(&printed, 0);
	assert_string_equal(printed.data, shown);
	buf_release(&printed);
}

static void check_refused(const char *text, const char *sentence)
{
	struct partitions set;
	struct errbuf e = {""};
	assert_int_equal(partitions_parse(slice_of(text), 16, &set, &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void lists(UNUSED void **state)
{
	check_list("", "................", "");
	check_list("0,5-8,12", "x....xxxx...x...", "0,5-8,12");
	check_list("0-15", "xxxxxxxxxxxxxxxx", "0-15");
	check_list("15,3,2", "..xx...........x", "2-3,15");
	check_list("7-7", ".......x........", "7");
	check_refused("16", "16 is no partition: there are 16, from 0");
	check_refused("3-99999", "99999 is no partition: there are 16, from 0");
	check_refused("8-5", "8-5: the first is above the last");
	check_refused("1,5-8,7", "7 stands twice");
	check_refused("1,", "\"1,\" is no list of partitions such as 0,5-8,12");
	check_refused("1-", "\"1-\" is no list of partitions such as 0,5-8,12");
	check_refused("-1", "\"-1\" is no list of partitions such as 0,5-8,12");
	check_refused("1 2", "\"1 2\" is no list of partitions such as 0,5-8,12");
	check_refused("any", "\"any\" is no list of partitions such as 0,5-8,12");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guava),
		cmocka_unit_test(the_documents),
		cmocka_unit_test(lists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
