/* Row keys: the text is the document's, or worked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/counter_key.h"

static struct counter_key key_of_document(void)
{
	return (struct counter_key){.ns = SLICE("snmp"),
				    .device = SLICE("router_a"),
				    .oidset = SLICE("FastPollHC"),
				    .oid = SLICE("ifHCInOctets"),
				    .path = {SLICE("xe-0/2/0")},
				    .path_count = 1,
				    .freq_ms = 30000,
				    .has_year = true,
				    .year = 2012};
}

static void assert_text(const struct counter_key *key, const char *expected)
{
	struct buf out;

	buf_init(&out, 8192);
	assert_int_equal(counter_key_encode(key, &out), 0);
	assert_int_equal(out.len, strlen(expected));
	assert_memory_equal(out.data, expected, out.len);
	buf_release(&out);
}

static void assert_slice(struct slice got, const char *expected)
{
	assert_true(slice_equal(got, slice_of(expected)));
}

static void keys_look_as_in_the_document(void **state)
{
	struct counter_key key = key_of_document();

	(void)state;
	assert_text(&key, "snmp:router_a:FastPollHC:ifHCInOctets:xe-0/2/0:30000:2012");
	key.has_year = false;
	assert_text(&key, "snmp:router_a:FastPollHC:ifHCInOctets:xe-0/2/0:30000");
	key.path_count = 0;
	key.oid = SLICE("sysUpTime");
	assert_text(&key, "snmp:router_a:FastPollHC:sysUpTime:30000");
}

static void separators_inside_parts_are_escaped(void **state)
{
	struct counter_key key = key_of_document();

	(void)state;
	key.device = SLICE("fe80::1");
	key.path[0] = SLICE("a\\b");
	key.path[1] = SLICE(":");
	key.path[2] = SLICE("");
	key.path_count = 3;
	assert_text(&key, "snmp:fe80\\:\\:1:FastPollHC:ifHCInOctets:a\\\\b:\\:::30000:2012");
}

static void assert_back(const char *text, bool has_year, struct counter_key *key)
{
	static struct arena arena;
	struct errbuf e = {{0}};

	arena_release(&arena);
	arena_init(&arena, 1 << 20);
	assert_int_equal(counter_key_decode(slice_of(text), has_year, &arena, key, &e), 0);
}

static void what_was_written_is_read_back(void **state)
{
	struct counter_key key;

	(void)state;
	assert_back("snmp:fe80\\:\\:1:FastPollHC:ifHCInOctets:a\\\\b:\\:::30000:2012", true, &key);
	assert_slice(key.ns, "snmp");
	assert_slice(key.device, "fe80::1");
	assert_slice(key.oidset, "FastPollHC");
	assert_slice(key.oid, "ifHCInOctets");
	assert_int_equal(key.path_count, 3);
	assert_slice(key.path[0], "a\\b");
	assert_slice(key.path[1], ":");
	assert_slice(key.path[2], "");
	assert_int_equal(key.freq_ms, 30000);
	assert_int_equal(key.year, 2012);

	/* An interface named 30000 and no year, or none and the year 2012: the reader must know. */
	assert_back("snmp:r:o:oid:30000:2012", false, &key);
	assert_int_equal(key.path_count, 1);
	assert_int_equal(key.freq_ms, 2012);
	assert_back("snmp:r:o:oid:30000:2012", true, &key);
	assert_int_equal(key.path_count, 0);
	assert_int_equal(key.freq_ms, 30000);
}

static void what_no_encoder_wrote_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"snmp",
		"snmp:r:o:oid",
		"snmp:r:o:oid:2012",
		"snmp:r:o:oid:x:2012",
		"snmp::o:oid:30000:2012",
		"snmp:r:o:oid:0:2012",
		"snmp:r:o:oid:-1:2012",
		"snmp:r:o:oid:030000:2012",
		"snmp:r:o:oid:30000:10000",
		"snmp:r:o:oid:30000:99999999999999999",
		"snmp:r:o:oid:9999999999999999999:2012",
		"snmp:r:o:oid:a:b:c:d:e:30000:2012",
		"snmp:r:o:oid:a:b:c:d:e:f:g:h:i:j:k:l:30000:2012",
		"snmp:r:o:oid:xe\\-0:30000:2012",
		"snmp:r:o:oid:30000:2012\\",
		"snmp:r:o:oid:30000:2012:",
	};
	struct counter_key key;
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct errbuf e = {{0}};
		assert_int_equal(counter_key_decode(slice_of(bad[i]), true, &arena, &key, &e),
				 ERR_INVALID);
		assert_true(e.text[0] != 0);
	}
	arena_release(&arena);
}

static void incomplete_and_overlong_keys_are_not_written(void **state)
{
	struct counter_key key = key_of_document();
	static char name[COUNTER_KEY_MAX_BYTES];
	struct buf out;

	(void)state;
	buf_init(&out, 8192);
	key.year = 10000;
	assert_int_equal(counter_key_encode(&key, &out), ERR_INVALID);
	key.year = 2012;
	key.oid = SLICE("");
	assert_int_equal(counter_key_encode(&key, &out), ERR_INVALID);
	memset(name, 'a', sizeof(name));
	key.oid = (struct slice){name, sizeof(name)};
	assert_int_equal(counter_key_encode(&key, &out), ERR_LIMIT);
	assert_int_equal(out.len, 0);
	buf_release(&out);
}

static void years_are_those_of_utc(void **state)
{
	static const struct {
		int64_t s;
		int year;
	} cases[] = {
		{0, 1970},          {-1, 1969},         {1325375999, 2011},   {1325376000, 2012},
		{1356998399, 2012}, {1356998400, 2013}, {951782400, 2000},    {978307199, 2000},
		{978307200, 2001},  {4102444799, 2099}, {4102444800, 2100},   {4133980799, 2100},
		{4133980800, 2101}, {-62167219200, 0},  {253402300799, 9999},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(counter_key_year(cases[i].s * 1000), cases[i].year);
	assert_int_equal(counter_key_year(1325375999999), 2011);
}

static void interfaces_are_found_by_the_documents_names(void **state)
{
	(void)state;
	assert_true(counter_key_part_matches(SLICE("xe-0/2/0"), SLICE("xe-0/2/0")));
	assert_true(counter_key_part_matches(SLICE("xe-0/2/0"), SLICE("xe-0_2_0")));
	assert_false(counter_key_part_matches(SLICE("xe-0/2/0"), SLICE("xe-0_2/0")));
	assert_false(counter_key_part_matches(SLICE("xe-0/2/0"), SLICE("xe-0_2_00")));
	assert_false(counter_key_part_matches(SLICE("xe-0_2_0"), SLICE("xe-0/2/0")));
	/* Blanks likewise, but all or none. */
	assert_true(counter_key_part_matches(SLICE("Port 1/2 A"), SLICE("Port_1_2_A")));
	assert_true(counter_key_part_matches(SLICE("Port 1/2 A"), SLICE("Port 1/2 A")));
	assert_false(counter_key_part_matches(SLICE("Port 1/2 A"), SLICE("Port 1_2 A")));
	assert_false(counter_key_part_matches(SLICE("Port\t1"), SLICE("Port_1")));
	assert_false(counter_key_part_matches(SLICE("Port_1"), SLICE("Port 1")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_look_as_in_the_document),
		cmocka_unit_test(separators_inside_parts_are_escaped),
		cmocka_unit_test(what_was_written_is_read_back),
		cmocka_unit_test(what_no_encoder_wrote_is_refused),
		cmocka_unit_test(incomplete_and_overlong_keys_are_not_written),
		cmocka_unit_test(years_are_those_of_utc),
		cmocka_unit_test(interfaces_are_found_by_the_documents_names),
	};
	return cmocka_run_group_tests_name("model_counter_key", tests, NULL, NULL);
}
