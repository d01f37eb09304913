#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "conf/conf.h"

static struct errbuf e;

static int read_text(struct conf *conf, const char *text)
{
	e.text[0] = 0;
	return conf_read_yaml(conf, "granary.yml", slice_of(text), &e);
}

static void assert_refused(const char *text, const char *sentence)
{
	struct conf *conf = conf_new();
	assert_int_equal(read_text(conf, text), ERR_INVALID);
	assert_string_equal(e.text, sentence);
	conf_free(conf);
}

static void levels_of_the_file_are_dots_of_the_name(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(read_text(conf, "# a comment\n"
					 "listen: 127.0.0.1:9000\n"
					 "store:\n"
					 "  map_size: 10G   # of bytes\n"
					 "  min_free: 0\n"
					 "http.idle_timeout: 5s\n"
					 "ingest: {tenant_tag: \"\", future_max: 2h}\n"
					 "host:\n"
					 "  enabled: no\n"
					 "  ignore_disks:\n"
					 "    - sda\n"
					 "    - md*\n"
					 "  ignore_interfaces: []\n"),
			 0);
	assert_string_equal(conf->listen.items[0], "127.0.0.1:9000");
	assert_int_equal(conf->store_map_bytes, 10737418240);
	assert_int_equal(conf->store_min_free_bytes, 0);
	assert_int_equal(conf->http_idle_timeout_ms, 5000);
	assert_string_equal(conf->ingest_tenant_tag, "");
	assert_int_equal(conf->ingest_future_max_ms, 7200000);
	assert_false(conf->host_enabled);
	assert_int_equal(conf->host_ignore_disks.count, 2);
	assert_string_equal(conf->host_ignore_disks.items[1], "md*");
	assert_int_equal(conf->host_ignore_interfaces.count, 0);
	char where[100];
	assert_int_equal(conf->host_ignore_disks.lines[1], conf->host_ignore_disks.lines[0] + 1);
	assert_string_equal(
		conf_where_item(conf, CONF_ID_host_ignore_disks, 1, where, sizeof(where)),
		"granary.yml:12: host.ignore_disks");
	assert_string_equal(conf_where(conf, CONF_ID_store_map_bytes, where, sizeof(where)),
			    "granary.yml:4: store.map_size");
	assert_string_equal(conf_where(conf, CONF_ID_data, where, sizeof(where)), "data");
	conf_free(conf);
}

static void empty_files_change_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = {"",      "\n\n", "# nothing\n",
					    "---\n", "{}\n", "store: {}\n"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct conf *conf = conf_new();
		int err = read_text(conf, texts[i]);
		/* An empty document is one null scalar. */
		assert_true(err == 0 || i == 3);
		conf_free(conf);
	}
}

static void unknown_keys_are_refused_with_their_line(void **state)
{
	(void)state;
	assert_refused(
		"data: /srv\nstore:\n  mapsize: 1G\n",
		"granary.yml:3: store.mapsize is not an option; did you mean store.map_size?");
	/* What is near only since it is short, or in the same section, is another word. */
	assert_refused("rollup:\n  foo: 1\n", "granary.yml:2: rollup.foo is not an option");
	assert_refused("rollup:\n  slut: 1h\n",
		       "granary.yml:2: rollup.slut is not an option; did you mean rollup.slot?");
	assert_refused("rolup:\n  slot: 1h\n",
		       "granary.yml:2: rolup.slot is not an option; did you mean rollup.slot?");
	assert_refused("colour: red\n", "granary.yml:1: colour is not an option");
	assert_refused("store: 5\n", "granary.yml:1: store is a section: it takes no value but a "
				     "mapping of options such as store.map_size");
	assert_refused("data: x\nhost:\n",
		       "granary.yml:2: host is a section: it takes no value but a "
		       "mapping of options such as host.enabled");
	assert_refused("stor: 5\n", "granary.yml:1: stor is not an option");
	assert_refused("store.: 5\n", "granary.yml:1: store. is not an option");
	assert_refused("host: [a]\n", "granary.yml:1: host is a section: it takes no value but a "
				      "mapping of options such as host.enabled");
	assert_refused("\n\nzzzzzzzz:\n  - 1\n", "granary.yml:3: zzzzzzzz is not an option");
	assert_refused("store:\n  map_size:\n    x: 1\n",
		       "granary.yml:2: store.map_size takes a value, not a mapping");
	assert_refused("a:\n  b:\n    c: 1\n", "granary.yml:3: a.b.c is not an option");
}

static void bad_values_are_refused_with_their_line(void **state)
{
	(void)state;
	assert_refused("\nquery:\n\n  timeout: 1\n",
		       "granary.yml:4: query.timeout: \"1\" is not a duration such as 500ms, 10s, "
		       "5m, 2h or 7d");
	assert_refused("store:\n  read_threads: 65\n",
		       "granary.yml:2: store.read_threads: 65 is above the maximum of 64");
	assert_refused("data:\n", "granary.yml:1: data has no value");
	assert_refused("data: ~\n", "granary.yml:1: data has no value");
	assert_refused("data: [a, b]\n", "granary.yml:1: data takes one value, not a list");
	assert_refused("host:\n  ignore_disks: [a, [b]]\n",
		       "granary.yml:2: a list cannot stand here");
	assert_refused("host:\n  ignore_disks: [a, {b: c}]\n",
		       "granary.yml:2: a mapping cannot stand here");
	assert_refused("host:\n  ignore_disks: [a, \"b,c\"]\n",
		       "granary.yml:2: an item of a list is empty or holds a comma");
	assert_refused("data: \"a\\0b\"\n", "granary.yml:1: data: holds a control character");
	assert_refused("host:\n  ignore_disks: [a, \"b\\tc\", d]\n",
		       "granary.yml:2: host.ignore_disks: holds a control character");
}

static void nothing_is_given_twice(void **state)
{
	(void)state;
	assert_refused("data: a\nlisten: 127.0.0.1:1\ndata: b\n",
		       "granary.yml:3: data is given twice, first in line 1");
	assert_refused("store.map_size: 1G\nstore: {map_size: 1G}\n",
		       "granary.yml:2: store.map_size is given twice, first in line 1");
}

static void what_is_not_a_mapping_is_refused(void **state)
{
	(void)state;
	assert_refused("just text\n", "granary.yml:1: expected `name: value`");
	assert_refused("- a\n- b\n", "granary.yml:1: a list cannot stand here");
	assert_refused("? [a]\n: b\n", "granary.yml:1: a list cannot stand here");
	assert_refused("? {a: b}\n: c\n", "granary.yml:1: a mapping cannot stand here");
	assert_refused("data: a\n---\ndata: b\n", "granary.yml:2: a second document begins");
	assert_refused("data: &x a\n", "granary.yml:1: anchors are not supported");
	assert_refused("data: *x\n", "granary.yml:1: aliases are not supported");
	assert_refused("store: &x {map_size: 1G}\n", "granary.yml:1: anchors are not supported");
	struct conf *conf = conf_new();
	assert_int_equal(read_text(conf, "data: [\n"), ERR_INVALID);
	assert_int_equal(read_text(conf, "data: \"a\n"), ERR_INVALID);
	assert_int_equal(read_text(conf, "\xff\xfe\xfd"), ERR_INVALID);
	assert_int_equal(read_text(conf, "a: b: c\n"), ERR_INVALID);
	conf_free(conf);
	assert_refused("\n\ndata: a: b\n",
		       "granary.yml:3: mapping values are not allowed in this context");
}

static void depth_and_length_have_limits(void **state)
{
	(void)state;
	char text[20000] = "";
	size_t n = 0;
	for (int i = 0; i < 9; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "{a: ");
	assert_refused(text, "granary.yml:1: nested too deeply");
	memset(text, 'k', sizeof(text) - 1);
	text[201] = 0;
	memcpy(text + 201, ": 1\n", 5);
	assert_refused(text, "granary.yml:1: a key is empty or too long");
	/* 10,000 brackets: the parser itself stops, without recursion of ours. */
	memset(text, '[', 10000);
	text[10000] = 0;
	struct conf *conf = conf_new();
	assert_int_equal(read_text(conf, text), ERR_INVALID);
	conf_free(conf);
}

static int arguments(struct conf *conf, int argc, const char *const *argv)
{
	char *copy[16];
	for (int i = 0; i < argc; i++)
		copy[i] = mem_copy_text(slice_of(argv[i]));
	e.text[0] = 0;
	int err = conf_read(conf, files_real(), argc, copy, &e);
	for (int i = 0; i < argc; i++)
		mem_free(copy[i]);
	return err;
}

#define ARGUMENTS(conf, ...)                                                                       \
	arguments(conf, ARRAY_LEN(((const char *[]){__VA_ARGS__})), (const char *[]){__VA_ARGS__})

static void arguments_come_in_two_forms_and_the_last_wins(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(ARGUMENTS(conf, "--listen", "127.0.0.1:1", "--store.map_size=10G",
				   "--data", "a", "--data=b=c"),
			 0);
	assert_string_equal(conf->listen.items[0], "127.0.0.1:1");
	assert_int_equal(conf->store_map_bytes, 10737418240);
	assert_string_equal(conf->data, "b=c");
	char where[100];
	assert_string_equal(conf_where(conf, CONF_ID_data, where, sizeof(where)), "--data");
	conf_free(conf);
}

static void bad_arguments_are_refused(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(ARGUMENTS(conf, "--data"), ERR_INVALID);
	assert_string_equal(e.text, "--data needs a value");
	assert_int_equal(ARGUMENTS(conf, "data", "x"), ERR_INVALID);
	assert_string_equal(e.text, "\"data\" is not an option: they begin with --");
	assert_int_equal(ARGUMENTS(conf, "--"), ERR_INVALID);
	assert_int_equal(ARGUMENTS(conf, "--=x"), ERR_INVALID);
	assert_int_equal(ARGUMENTS(conf, "--datum=x"), ERR_INVALID);
	assert_string_equal(e.text, "--datum is not an option; did you mean data?");
	assert_int_equal(ARGUMENTS(conf, "--host", "false"), ERR_INVALID);
	assert_string_equal(e.text, "--host is a section: give its options, as in --host.enabled");
	assert_int_equal(ARGUMENTS(conf, "--host.enabled", "maybe"), ERR_INVALID);
	assert_string_equal(e.text, "--host.enabled: \"maybe\" is not true or false");
	assert_int_equal(ARGUMENTS(conf, "--config", "/nonexistent/granary.yml"), ERR_NOT_FOUND);
	conf_free(conf);
}

static void arguments_win_over_the_file_wherever_it_is_named(void **state)
{
	(void)state;
	char path[64];
	snprintf(path, sizeof(path), "/tmp/granary-conf-%d.yml", (int)getpid());
	struct files *files = files_real();
	struct slice text = SLICE("data: from-file\nlisten: 127.0.0.1:5\n");
	assert_int_equal(files->replace(files, path, text, 0600), 0);
	struct conf *conf = conf_new();
	assert_int_equal(ARGUMENTS(conf, "--data", "from-arguments", "--config", path), 0);
	assert_string_equal(conf->data, "from-arguments");
	assert_string_equal(conf->listen.items[0], "127.0.0.1:5");
	assert_int_equal(files->remove(files, path), 0);
	conf_free(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_of_the_file_are_dots_of_the_name),
		cmocka_unit_test(empty_files_change_nothing),
		cmocka_unit_test(unknown_keys_are_refused_with_their_line),
		cmocka_unit_test(bad_values_are_refused_with_their_line),
		cmocka_unit_test(nothing_is_given_twice),
		cmocka_unit_test(what_is_not_a_mapping_is_refused),
		cmocka_unit_test(depth_and_length_have_limits),
		cmocka_unit_test(arguments_come_in_two_forms_and_the_last_wins),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(arguments_win_over_the_file_wherever_it_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
