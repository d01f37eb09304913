/* Files that say which host has which partitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "lease/owners.h"

static struct partitions own, all;

static int read_owners(const char *text, const char *host, struct errbuf *e)
{
	const struct conf_node *root;
	struct arena arena;
	arena_init(&arena, 1 << 20);
	int err = conf_tree_parse("owners.json", slice_of(text), &arena, &root, e);
	if (!err)
		err = owners_read(root, 64, slice_of(host), &own, &all, e);
	arena_release(&arena);
	return err;
}

static void check(const char *text, const char *host, const char *list, size_t in_all)
{
	struct errbuf e = {""};
	struct buf out;
	buf_init(&out, 1000);
	assert_int_equal(read_owners(text, host, &e), 0);
	partitions_print(&own, &out);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, list);
	assert_int_equal(all.count, in_all);
	buf_release(&out);
}

static void check_refused(const char *text, const char *sentence)
{
	struct errbuf e = {""};
	assert_int_equal(read_owners(text, "h1", &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void each_host_has_its_list(UNUSED void **state)
{
	const char *json = "{\"h1\": \"0,5-8,12\", \"h2\": \"1-4\"}";
	check(json, "h1", "0,5-8,12", 10);
	check(json, "h2", "1-4", 10);
	check(json, "h3", "", 10);
	check("h1: 0-31\nh2: [32-40, 50, 60-63]\nh3:\n", "h2", "32-40,50,60-63", 46);
	check("h1: 0-31\nh2: [32-40, 50, 60-63]\nh3:\n", "h3", "", 46);
	check("", "h1", "", 0);
}

static void lists_that_overlap_are_refused(UNUSED void **state)
{
	check_refused("{\"h1\": \"0-31\",\n \"h2\": \"32-40,31\"}",
		      "owners.json:2: h2: 31 belongs to h1 already, owners.json:1");
	check_refused("h1: 0\nh2: 1\nh3: [2, 0-1]\n",
		      "owners.json:3: h3: 0 belongs to h1 already, owners.json:1");
	check_refused("h2: 5\nh1: [5-7, 7]\n", "owners.json:2: h1: 7 stands twice");
}

static void what_is_no_list_is_refused(UNUSED void **state)
{
	check_refused("h1: 0-64\n", "owners.json:1: h1: 64 is no partition: there are 64, from 0");
	check_refused("h2: 1\nh1: all\n",
		      "owners.json:2: h1: \"all\" is no list of partitions such as 0,5-8,12");
	check_refused("h1: {a: 1}\n",
		      "owners.json:1: h1: is no list of partitions such as 0,5-8,12");
	check_refused("h1: [[1]]\n", "owners.json:1: h1[0]: is no range of partitions such as 5-8");
	check_refused("- h1\n", "owners.json:1: expected host names and lists of partitions");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_host_has_its_list),
		cmocka_unit_test(lists_that_overlap_are_refused),
		cmocka_unit_test(what_is_no_list_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
