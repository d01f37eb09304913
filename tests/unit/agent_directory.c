/* Which files of a directory are followed, from the configuration to the agent's list, on a real
 * file system. Worked by hand from doc/agent.md, chapter Adaptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/adaptors.h"
#include "agent/agent_private.h"
#include "base/buf.h"
#include "conf/conf.h"

static char dir[64];
static const char *const directories[] = {"sub", "sub/deep", ".dot"};
static const char *const names[] = {"a.log",     "a.log.1",    "b.log.1",       "c.log.gz",
				    ".h.log",    "x[1].log",   "abc",           "sub/d.log",
				    "sub/a.txt", ".dot/f.log", "sub/deep/e.log"};

static void path_of(const char *name, char path[static 128])
{
	snprintf(path, 128, "%s/%s", dir, name);
}

static int make_files(UNUSED void **state)
{
	char path[128];
	memcpy(dir, "/tmp/granary-tree-XXXXXX", 25);
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		path_of(directories[i], path);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		path_of(names[i], path);
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fclose(file);
	}
	return 0;
}

static int remove_files(UNUSED void **state)
{
	char path[128];
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		path_of(names[i], path);
		unlink(path);
	}
	for (size_t i = ARRAY_LEN(directories); i-- > 0;) {
		path_of(directories[i], path);
		rmdir(path);
	}
	return rmdir(dir);
}

static int never_called(UNUSED struct agent_net *net, UNUSED const char *collector,
			UNUSED struct http_call *call, UNUSED struct errbuf *e)
{
	fail();
	return ERR_FAULT;
}

static int compare(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* What an agent with these adaptors follows, below the directory, in order. */
static void assert_followed(struct adaptors *adaptors, const char *expected)
{
	static const char *const collectors[] = {"nobody"};
	struct agent_net net = {.call = never_called};
	const char *found[ARRAY_LEN(names)];
	struct buf list;
	struct agent *agent = agent_new(&(struct agent_options){
		.files = files_real(),
		.clock = clock_real(),
		.net = &net,
		.directory = dir,
		.source = SLICE("host1"),
		.cluster = SLICE("demo"),
		.collectors = collectors,
		.collector_count = 1,
		.open_max = 20,
	});
	agent_configure(agent, &adaptors);
	assert_null(adaptors);
	assert_true(agent->count <= ARRAY_LEN(names));
	for (size_t i = 0; i < agent->count; i++)
		found[i] = agent->list[i]->path + strlen(dir) + 1;
	qsort(found, agent->count, sizeof(*found), compare);
	buf_init(&list, 4096);
	for (size_t i = 0; i < agent->count; i++)
		buf_printf(&list, "%s%s", i ? " " : "", found[i]);
	buf_append_char(&list, 0);
	assert_string_equal(list.data, expected);
	buf_release(&list);
	agent_free(agent);
}

/* `inside` is what stands behind the path of the directory. */
static void follows(const char *key, const char *inside, const char *expected)
{
	char text[512];
	struct errbuf e = {""};
	struct conf *conf = conf_new();
	struct adaptors *adaptors = NULL;
	snprintf(text, sizeof(text), "adaptors: {a: {datatype: t, %s: '%s%s}}\n", key, dir, inside);
	int err = conf_read_yaml(conf, "g.yml", slice_of(text), &e);
	err = err ? err : adaptors_read(conf->sections[CONF_SECTION_ADAPTORS], &adaptors, &e);
	assert_string_equal(e.text, "");
	assert_int_equal(err, 0);
	conf_free(conf);
	assert_followed(adaptors, expected);
}

static void names_below_a_directory(UNUSED void **state)
{
	follows("directory", "', files: '*.log'",
		".dot/f.log a.log sub/d.log sub/deep/e.log x[1].log");
}

static void wildcards_of_a_path(UNUSED void **state)
{
	follows("tail", "/*.log'", "a.log x[1].log");
	follows("tail", "/*/*.log'", "sub/d.log");
	follows("tail", "/sub/*'", "sub/a.txt sub/d.log");
	follows("tail", "/*/*/?.log'", "sub/deep/e.log");
	follows("tail", "/.*/*.log'", ".dot/f.log");
	follows("tail", "/[a-b].log*'", "a.log b.log.1");
	follows("tail", "/*/nothing'", "");
	/* One without wildcards need not be there. */
	follows("tail", "/none.log'", "none.log");
}

static void patterns_of_names(UNUSED void **state)
{
	follows("directory", "', files: 'x\\[1\\].log'", "x[1].log");
	follows("directory", "', files: 'x[1].log'", "");
	follows("directory", "/sub', files: '?.log'", "sub/d.log sub/deep/e.log");
	follows("directory", "', files: '.*'", ".h.log");
}

static void regular_expressions_see_the_path(UNUSED void **state)
{
	follows("directory", "', regex: '^/sub/[^/]*$'", "sub/a.txt sub/d.log");
	follows("directory", "/sub', regex: '^/[^/]*$'", "sub/a.txt sub/d.log");
	follows("directory", "', regex: 'sub'", "sub/a.txt sub/d.log sub/deep/e.log");
}

static void regular_expressions_of_chukwa_see_the_name(UNUSED void **state)
{
	char text[256];
	size_t skipped = 0;
	struct errbuf e = {""};
	static const struct {
		const char *regex, *expected;
	} rows[] = {{"[a-d].*", "a.log abc b.log.1 sub/a.txt sub/d.log"},
		    {"sub.*", ""},
		    {"a", ""},
		    {"x|ab.", "abc"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct adaptors *adaptors = adaptors_new();
		snprintf(text, sizeof(text),
			 "add RegExDirTailingAdaptor t %s %s filetailer.LWFTAdaptor 0\n", dir,
			 rows[i].regex);
		assert_int_equal(
			adaptors_add_chukwa(adaptors, "initial", slice_of(text), &skipped, &e), 0);
		assert_int_equal(skipped, 0);
		assert_followed(adaptors, rows[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_below_a_directory),
		cmocka_unit_test(wildcards_of_a_path),
		cmocka_unit_test(patterns_of_names),
		cmocka_unit_test(regular_expressions_see_the_path),
		cmocka_unit_test(regular_expressions_of_chukwa_see_the_name),
	};
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
