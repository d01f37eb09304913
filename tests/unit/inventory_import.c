#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "inventory/inventory.h"

static struct arena arena;
static struct errbuf e;
static struct device_spec *specs;
static size_t count;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 16 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static void parse(const char *file, const char *text)
{
	e.text[0] = 0;
	int err = device_list_parse(file, slice_of(text), &arena, &specs, &count, &e);
	assert_string_equal(e.text, "");
	assert_int_equal(err, 0);
}

static void assert_refused(const char *file, const char *text, const char *sentence)
{
	assert_int_equal(device_list_parse(file, slice_of(text), &arena, &specs, &count, &e),
			 ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

/* Both formats say the same. */
static void check_two(size_t line_a, size_t line_b)
{
	assert_int_equal(count, 2);
	assert_true(slice_equal(specs[0].name, SLICE("rtr_a")));
	assert_true(slice_equal(specs[0].address, SLICE("[2001:db8::1]:1161")));
	assert_true(slice_equal(specs[0].credentials, SLICE("lab")));
	assert_int_equal(specs[0].oidset_count, 2);
	assert_true(slice_equal(specs[0].oidsets[0], SLICE("FastPollHC")));
	assert_true(slice_equal(specs[0].oidsets[1], SLICE("Errors")));
	assert_false(specs[0].active);
	/* 2020-01-01 is 1577836800. */
	assert_int_equal(specs[0].begin_ms, INT64_C(1577836800000));
	assert_int_equal(specs[0].end_ms, INT64_C(1577836801000));
	assert_int_equal(specs[0].line, line_a);
	assert_true(slice_equal(specs[1].name, SLICE("rtr_b")));
	assert_null(specs[1].oidsets);
	assert_true(specs[1].active);
	assert_int_equal(specs[1].begin_ms, DEVICE_BEGIN_NOW);
	assert_int_equal(specs[1].end_ms, INVENTORY_FOREVER_MS);
	assert_int_equal(specs[1].line, line_b);
}

static void lists_of_both_formats(void **state)
{
	(void)state;
	parse("d.csv", "name,address,credentials,oidsets,active,begin,end\r\n"
		       "rtr_a,[2001:db8::1]:1161,lab, FastPollHC  Errors ,false,2020-01-01,"
		       "1577836801\r\n"
		       "\r\n"
		       "\"rtr_b\", b.example ,lab,,,,");
	check_two(2, 4);
	parse("d.yml", "devices:\n"
		       "  - name: rtr_a\n"
		       "    address: '[2001:db8::1]:1161'\n"
		       "    credentials: lab\n"
		       "    oidsets: [FastPollHC, Errors]\n"
		       "    active: no\n"
		       "    begin: 2020-01-01\n"
		       "    end: 1577836801\n"
		       "  - {name: rtr_b, address: b.example, credentials: lab, begin: }\n");
	check_two(2, 9);
	parse("d.yaml", "devices: [{name: a, address: h, credentials: c, oidsets: A B}]");
	assert_int_equal(specs[0].oidset_count, 2);
	assert_int_equal(specs[0].poller.len, 0);
	parse("d.csv", "name,address,credentials,poller\na,h,c,site_b\n");
	assert_true(slice_equal(specs[0].poller, SLICE("site_b")));
	parse("d.CSV", "address,credentials,name\n\"a\",\"c\",\"n\"\"m\"\n");
	assert_true(slice_equal(specs[0].name, SLICE("n\"m")));
	parse("d.csv", "\xef\xbb\xbfname,address,credentials\na,h,c\n"); /* as spreadsheets begin */
	assert_true(slice_equal(specs[0].name, SLICE("a")));
	parse("d.csv", "name,address,credentials\n");
	assert_int_equal(count, 0);
	parse("d.yml", "devices: []\n");
	assert_int_equal(count, 0);
}

#define HEAD "name,address,credentials\n"

static void bad_csv_has_its_line(void **state)
{
	(void)state;
	static const char *const columns = "is not a column: they are name, address, credentials, "
					   "oidsets, active, begin, end, poller";
	char sentence[300];
	snprintf(sentence, sizeof(sentence), "d.csv:1: 'nam' %s", columns);
	assert_refused("d.csv", "nam,address\n", sentence);
	snprintf(sentence, sizeof(sentence), "d.csv:1: '' %s", columns);
	assert_refused("d.csv", "", sentence);
	assert_refused("d.csv", "name,name\n", "d.csv:1: name: stands twice");
	assert_refused("d.csv", HEAD "a,h\n", "d.csv:2: has fewer fields than the first line");
	assert_refused("d.csv", HEAD "a,h,c\nb,h,c,x\n",
		       "d.csv:3: has more fields than the first line");
	assert_refused("d.csv", HEAD "\"a,h,c\n",
		       "d.csv:2: a quote is not closed, or text stands behind one");
	assert_refused("d.csv", HEAD "\"a\"b,h,c\n",
		       "d.csv:2: a quote is not closed, or text stands behind one");
	assert_refused("d.csv", HEAD ",h,c\n", "d.csv:2: a device needs a name");
	assert_refused("d.csv", HEAD "a,,c\n", "d.csv:2: device a: needs an address");
	assert_refused("d.csv", HEAD "a,h:x,c\n",
		       "d.csv:2: device a: 'h:x' is not an address: HOST, HOST:PORT or "
		       "[IPV6]:PORT");
	assert_refused("d.csv", HEAD "a,h,\n",
		       "d.csv:2: device a: needs credentials: the name of an entry of the secrets "
		       "file");
	assert_refused("d.csv", "name,active\na,maybe\n", "d.csv:2: active: takes true or false");
	assert_int_equal(device_list_parse("d.csv", SLICE("name,begin\na,soon\n"), &arena, &specs,
					   &count, &e),
			 ERR_INVALID);
	assert_memory_equal(e.text, "d.csv:2: begin: ", 16);
}

static void bad_yaml_has_its_line(void **state)
{
	(void)state;
	assert_refused("d.yml", "device: []\n",
		       "d.yml:1: device: is not a known key; did you mean "
		       "devices?");
	assert_refused("d.yml", "", "d.yml: has no list `devices`");
	assert_refused("d.yml", "devices: {a: 1}\n", "d.yml:1: devices: takes a list");
	assert_refused("d.yml", "devices:\n  - a\n",
		       "d.yml:2: devices[0]: takes a mapping of name and others");
	assert_refused("d.yml", "devices:\n  - {nam: a}\n",
		       "d.yml:2: devices[0].nam: is not a known key; did you mean name?");
	assert_refused("d.yml", "devices:\n  - {}\n", "d.yml:2: a device needs a name");
	assert_refused("d.yml", "devices:\n  - {name: [a]}\n",
		       "d.yml:2: devices[0].name: takes one value");
	assert_refused("d.yml",
		       "devices:\n  - name: a\n    address: h\n    credentials: c\n    oidsets: "
		       "[[x]]\n",
		       "d.yml:5: devices[0].oidsets[0]: takes one value");
	assert_refused("d.yml",
		       "devices:\n  - {name: a, address: h, credentials: c, oidsets: [A, A]}\n",
		       "d.yml:2: device a: the OIDSet A stands twice");
	assert_refused("d.yml", "devices: &x []\n", "d.yml:1: anchors are not supported");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lists_of_both_formats),
		TEST(bad_csv_has_its_line),
		TEST(bad_yaml_has_its_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
