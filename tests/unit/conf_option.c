#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "conf/option.h"

static struct errbuf e;

static int set(struct conf *conf, const char *name, const char *value)
{
	int id = conf_find(slice_of(name));
	assert_true(id >= 0);
	e.text[0] = 0;
	return conf_set(conf, id, slice_of(value), (struct conf_origin){"command line", 0}, &e);
}

static void assert_refused(struct conf *conf, const char *name, const char *value,
			   const char *sentence)
{
	assert_int_equal(set(conf, name, value), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void defaults_are_those_of_the_table(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(conf->listen.count, 1);
	assert_string_equal(conf->listen.items[0], "127.0.0.1:8470");
	assert_string_equal(conf->data, "./var");
	assert_string_equal(conf->ingest_tenant_tag, "tenant");
	assert_true(conf->host_enabled);
	assert_false(conf->welcome);
	assert_int_equal(conf->store_map_bytes, 68719476736);
	assert_int_equal(conf->store_journal_max_age_ms, 7200000);
	assert_int_equal(conf->ingest_future_max_ms, 86400000);
	assert_int_equal(conf->retention_raw_ms, 0);
	assert_int_equal(conf->host_ignore_disks.count, 3);
	assert_string_equal(conf->host_ignore_disks.items[1], "ram*");
	conf_free(conf);
}

/* A default outside its own bounds would be refused when its dump is read back. */
static void no_two_options_share_a_name_and_groups_stand_together(void **state)
{
	(void)state;
	for (int a = 0; a < CONF_OPTIONS; a++) {
		assert_int_equal(conf_find(slice_of(conf_options[a].name)), a);
		const char *help = conf_options[a].help;
		assert_int_equal(help[strlen(help) - 1], '.');
		const char *dot = strchr(conf_options[a].name, '.');
		size_t group = dot ? (size_t)(dot - conf_options[a].name) + 1 : 0;
		for (int b = a + 2; group && b < CONF_OPTIONS; b++) {
			bool same = strncmp(conf_options[b].name, conf_options[a].name, group) == 0;
			bool before =
				strncmp(conf_options[b - 1].name, conf_options[a].name, group) == 0;
			assert_true(!same || before);
		}
	}
}

static void sizes_are_powers_of_1024(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(set(conf, "store.map_size", "1048576"), 0);
	assert_int_equal(conf->store_map_bytes, 1048576);
	assert_int_equal(set(conf, "store.map_size", "1024K"), 0);
	assert_int_equal(conf->store_map_bytes, 1048576);
	assert_int_equal(set(conf, "store.map_size", "3M"), 0);
	assert_int_equal(conf->store_map_bytes, 3145728);
	assert_int_equal(set(conf, "store.map_size", "2T"), 0);
	assert_int_equal(conf->store_map_bytes, 2199023255552);
	assert_int_equal(set(conf, "store.min_free", "0"), 0);
	assert_int_equal(conf->store_min_free_bytes, 0);
	conf_free(conf);
}

static void durations_have_units(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {{"1500ms", 1500}, {"90s", 90000},      {"5m", 300000},
		    {"2h", 7200000},  {"35d", 3024000000}, {"2w", 1209600000}};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(set(conf, "retention.raw", good[i].text), 0);
		assert_int_equal(conf->retention_raw_ms, good[i].ms);
	}
	static const char *const bad[] = {"10",  "s",     "10 s", "-1s", "1.5s",
					  "10S", "1h30m", "",     " "};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(set(conf, "retention.raw", bad[i]), ERR_INVALID);
	assert_refused(conf, "retention.raw", "10",
		       "\"10\" is not a duration such as 500ms, 10s, 5m, 2h or 7d");
	assert_int_equal(conf->retention_raw_ms, 1209600000);
	conf_free(conf);
}

static void one_past_each_bound_is_refused(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(set(conf, "catalog.tags_max", "64"), 0);
	assert_refused(conf, "catalog.tags_max", "65", "65 is above the maximum of 64");
	assert_int_equal(set(conf, "catalog.tags_max", "1"), 0);
	assert_refused(conf, "catalog.tags_max", "0", "0 is below the minimum of 1");
	assert_int_equal(conf->catalog_tags_max, 1);
	assert_refused(conf, "store.map_size", "1048575", "1048575 is below the minimum of 1M");
	assert_refused(conf, "store.map_size", "65T", "65T is above the maximum of 64T");
	assert_refused(conf, "query.timeout", "301s", "301s is above the maximum of 5m");
	conf_free(conf);
}

/* 2^63 and 2^64 + 1, with and without a unit that overflows. */
static void numbers_beyond_64_bits_do_not_wrap(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	static const char *const bad[] = {"9223372036854775808", "18446744073709551617", "8388608T",
					  "99999999999999999999999999999999K"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(set(conf, "store.min_free", bad[i]), ERR_INVALID);
	assert_int_equal(conf->store_min_free_bytes, 134217728);
	conf_free(conf);
}

static void booleans_and_choices_are_exact_words(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(set(conf, "host.enabled", "off"), 0);
	assert_false(conf->host_enabled);
	assert_int_equal(set(conf, "host.enabled", "yes"), 0);
	assert_true(conf->host_enabled);
	assert_refused(conf, "host.enabled", "1", "\"1\" is not true or false");
	assert_refused(conf, "host.enabled", "TRUE", "\"TRUE\" is not true or false");
	assert_int_equal(set(conf, "log.level", "debug"), 0);
	assert_string_equal(conf->log_level, "debug");
	assert_refused(conf, "log.level", "debu", "\"debu\" is not one of: error warn info debug");
	assert_refused(conf, "log.level", "warn info",
		       "\"warn info\" is not one of: error warn info debug");
	assert_refused(conf, "log.level", "", "\"\" is not one of: error warn info debug");
	conf_free(conf);
}

static void addresses_have_a_port(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	static const char *const good[] = {"127.0.0.1:0", "[::1]:65535", "localhost:1"};
	static const char *const bad[] = {
		"127.0.0.1",     ":8470",        "127.0.0.1:65536", "127.0.0.1:", "::1:8470",
		"127.0.0.1:84a", "127.0.0.1:-1", "127.0.0.1 :80",   "[]:80",      "a\n:80"};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(set(conf, "line_tcp.listen", good[i]), 0);
		assert_string_equal(conf->line_tcp_listen, good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(set(conf, "line_tcp.listen", bad[i]), ERR_INVALID);
	assert_string_equal(conf->line_tcp_listen, "localhost:1");
	conf_free(conf);
}

static void texts_have_lengths_and_no_control_characters(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	char text[3002];
	memset(text, 'a', sizeof(text));
	text[3001] = 0;
	assert_refused(conf, "data", text, "3001 bytes are longer than the maximum of 3000");
	text[3000] = 0;
	assert_int_equal(set(conf, "data", text), 0);
	assert_refused(conf, "data", "", "must not be empty");
	assert_refused(conf, "data", "a\tb", "holds a control character");
	assert_int_equal(set(conf, "ingest.tenant_tag", ""), 0);
	assert_string_equal(conf->ingest_tenant_tag, "");
	conf_free(conf);
}

static void the_tenants_tag_is_the_name_of_one(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	static const char *const good[] = {"",          "tenant", "org-id", "kunde.nr",
					   "h\u00f6st", "a/b",    "'"};
	static const struct {
		const char *name, *sentence;
	} bad[] = {
		{"tenant,org", "'tenant,org' is not the name of one tag: it holds ','"},
		{"tenant=", "'tenant=' is not the name of one tag: it holds '='"},
		{" tenant", "' tenant' is not the name of one tag: it holds ' '"},
		{"a b", "'a b' is not the name of one tag: it holds ' '"},
		{"a\\", "'a\\' is not the name of one tag: it holds '\\'"},
		{"\"tenant\"", "'\"tenant\"' is not the name of one tag: it holds '\"'"},
		{"a\nb", "holds a control character"},
		{"a\x7f", "holds a control character"},
		{"a\xff", "tag key \"a\\xff\" is not UTF-8"},
	};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(set(conf, "ingest.tenant_tag", good[i]), 0);
		assert_string_equal(conf->ingest_tenant_tag, good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_refused(conf, "ingest.tenant_tag", bad[i].name, bad[i].sentence);
	char longest[258];
	memset(longest, 'a', sizeof(longest));
	longest[257] = 0;
	assert_refused(conf, "ingest.tenant_tag", longest,
		       "257 bytes are longer than the maximum of 256");
	longest[256] = 0;
	assert_int_equal(set(conf, "ingest.tenant_tag", longest), 0);
	conf_free(conf);
}

static void lists_are_cut_at_commas(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(set(conf, "host.ignore_disks", " sda , sdb*"), 0);
	assert_int_equal(conf->host_ignore_disks.count, 2);
	assert_string_equal(conf->host_ignore_disks.items[0], "sda");
	assert_string_equal(conf->host_ignore_disks.items[1], "sdb*");
	assert_int_equal(set(conf, "host.ignore_disks", ""), 0);
	assert_int_equal(conf->host_ignore_disks.count, 0);
	assert_refused(conf, "host.ignore_disks", "a,,b", "holds an empty item");
	assert_refused(conf, "host.ignore_disks", ",a", "holds an empty item");
	char many[200] = "";
	for (size_t i = 0; i < CONF_LIST_MAX; i++)
		memcpy(many + 2 * i, "a,", 2);
	many[2 * CONF_LIST_MAX - 1] = 0;
	assert_int_equal(set(conf, "host.ignore_disks", many), 0);
	assert_int_equal(conf->host_ignore_disks.count, CONF_LIST_MAX);
	memcpy(many + 2 * CONF_LIST_MAX - 1, ",a", 3);
	assert_refused(conf, "host.ignore_disks", many, "more than 64 items");
	conf_free(conf);
}

static void a_slip_of_the_pen_finds_its_option(void **state)
{
	(void)state;
	assert_string_equal(conf_nearest(SLICE("store.mapsize")), "store.map_size");
	assert_string_equal(conf_nearest(SLICE("lisetn")), "listen");
	assert_string_equal(conf_nearest(SLICE("http.idle_timeout")), "http.idle_timeout");
	assert_null(conf_nearest(SLICE("cassandra.contact_points")));
	char longest[5000];
	memset(longest, 'x', sizeof(longest));
	assert_null(conf_nearest((struct slice){longest, sizeof(longest)}));
}

static void changes_of_what_does_not_reload_are_named(void **state)
{
	(void)state;
	struct conf *before = conf_new(), *after = conf_new();
	struct buf names;
	buf_init(&names, 1000);
	conf_fixed_changes(before, after, &names);
	assert_int_equal(names.len, 0);
	assert_int_equal(set(after, "log.level", "debug"), 0);
	conf_fixed_changes(before, after, &names);
	assert_int_equal(names.len, 0);
	assert_int_equal(set(after, "data", "/srv"), 0);
	assert_int_equal(set(after, "host.enabled", "no"), 0);
	conf_fixed_changes(before, after, &names);
	assert_true(slice_equal(buf_slice(&names), SLICE("data host.enabled")));
	buf_release(&names);
	conf_free(before);
	conf_free(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_of_the_table),
		cmocka_unit_test(no_two_options_share_a_name_and_groups_stand_together),
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(durations_have_units),
		cmocka_unit_test(one_past_each_bound_is_refused),
		cmocka_unit_test(numbers_beyond_64_bits_do_not_wrap),
		cmocka_unit_test(booleans_and_choices_are_exact_words),
		cmocka_unit_test(addresses_have_a_port),
		cmocka_unit_test(texts_have_lengths_and_no_control_characters),
		cmocka_unit_test(the_tenants_tag_is_the_name_of_one),
		cmocka_unit_test(lists_are_cut_at_commas),
		cmocka_unit_test(a_slip_of_the_pen_finds_its_option),
		cmocka_unit_test(changes_of_what_does_not_reload_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
