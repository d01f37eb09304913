#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "conf/conf.h"

static struct buf out;

static int start(void **state)
{
	(void)state;
	buf_init(&out, 1 << 20);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	buf_release(&out);
	return 0;
}

static bool holds(const char *text)
{
	return memmem(out.data, out.len, text, strlen(text)) != NULL;
}

static void help_names_every_option_once(void **state)
{
	(void)state;
	conf_help(&out);
	for (int id = 0; id < CONF_OPTIONS; id++) {
		char line[200];
		snprintf(line, sizeof(line), "\n  --%s (", conf_options[id].name);
		assert_true(holds(line));
	}
	assert_true(holds("  --store.map_size (size, default 64G, 1M to 64T)\n"
			  "        The largest the data file may become."));
	assert_true(holds("  --log.level (one of error warn info debug, default info, reloads)\n"));
	size_t column = 0;
	for (size_t i = 0; i < out.len; i++) {
		column = out.data[i] == '\n' ? 0 : column + 1;
		assert_true(column <= 110);
	}
}

static void manual_escapes_hyphens(void **state)
{
	(void)state;
	conf_manual(&out);
	assert_true(holds(".TP\n\\fBstore.map_size\\fR (size, default 64G, 1M to 64T)\n"));
	assert_true(holds("X\\-Tenant"));
}

static void a_dump_says_where_each_value_comes_from(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(conf_read_yaml(conf, "g.yml", SLICE("\ndata: 'a \"b\\'\n"), NULL), 0);
	conf_dump(conf, &out);
	assert_true(holds("data: \"a \\\"b\\\\\"  # g.yml:2\n"));
	assert_true(holds("\nstore:\n  map_size: 64G  # default\n"));
	assert_true(holds("  journal_max_age: 2h  # default\n"));
	conf_free(conf);
}

static void a_dump_reads_back_as_the_same_configuration(void **state)
{
	(void)state;
	struct conf *conf = conf_new(), *again = conf_new();
	struct errbuf e = {""};
	struct slice text = SLICE("data: 'yes: #no'\ningest: {tenant_tag: ''}\n"
				  "host: {ignore_disks: [], ignore_interfaces: [lo, 'a b']}\n"
				  "retention: {raw: 1d}\nquery: {timeout: 1500ms}\n");
	assert_int_equal(conf_read_yaml(conf, "g.yml", text, &e), 0);
	conf_dump(conf, &out);
	if (conf_read_yaml(again, "dump", buf_slice(&out), &e))
		fail_msg("%s", e.text);
	assert_string_equal(again->data, "yes: #no");
	assert_string_equal(again->ingest_tenant_tag, "");
	assert_int_equal(again->host_ignore_disks.count, 0);
	assert_int_equal(again->host_ignore_interfaces.count, 2);
	assert_string_equal(again->host_ignore_interfaces.items[1], "a b");
	assert_int_equal(again->retention_raw_ms, 86400000);
	assert_int_equal(again->query_timeout_ms, 1500);
	assert_int_equal(again->store_map_bytes, 68719476736);
	conf_free(conf);
	conf_free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(help_names_every_option_once, start, stop),
		cmocka_unit_test_setup_teardown(manual_escapes_hyphens, start, stop),
		cmocka_unit_test_setup_teardown(a_dump_says_where_each_value_comes_from, start,
						stop),
		cmocka_unit_test_setup_teardown(a_dump_reads_back_as_the_same_configuration, start,
						stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
