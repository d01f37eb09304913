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
#include "agent_files.h"
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

static void link_to(const char *to, const char *name, char path[static 128])
{
	path_of(name, path);
	assert_int_equal(symlink(to, path), 0);
}

/* Each of their files would be followed twice, under two names. */
static void links_to_the_directories_that_they_are_in(UNUSED void **state)
{
	static const char *const links[][2] = {
		{".", "current"}, {"..", "sub/up"}, {"..", "sub/deep/up"}};
	char paths[ARRAY_LEN(links)][128];
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		link_to(links[i][0], links[i][1], paths[i]);
	follows("directory", "', files: '*.log'",
		".dot/f.log a.log sub/d.log sub/deep/e.log x[1].log");
	follows("tail", "/*/?.log'", "sub/d.log");
	/* The link to what is above the adaptor's own directory leads to other files. */
	follows("directory", "/sub/deep', files: 'd.log'", "sub/deep/up/d.log");
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		assert_int_equal(unlink(paths[i]), 0);
}

/* A path with wildcards may go deeper than a directory is looked at. */
static void wildcards_far_below(UNUSED void **state)
{
	enum { LEVELS = 24 };
	char path[128], pattern[128], expected[128];
	int below = 0, in = 0;
	for (int level = 0; level < LEVELS; level++) {
		below += snprintf(expected + below, sizeof(expected) - (size_t)below, "d/");
		in += snprintf(pattern + in, sizeof(pattern) - (size_t)in, "/*");
		path_of(expected, path);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	snprintf(expected + below, sizeof(expected) - (size_t)below, "z");
	snprintf(pattern + in, sizeof(pattern) - (size_t)in, "/z'");
	path_of(expected, path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	follows("tail", pattern, expected);
	assert_int_equal(unlink(path), 0);
	for (int level = 0; level < LEVELS; level++) {
		*strrchr(path, '/') = 0;
		assert_int_equal(rmdir(path), 0);
	}
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

/* ---- Directories come and go ----------------------------------------------------------------- */

struct watched {
	struct agent_watch watch;
	size_t added, removed; /* how often the directory of the test was */
};

static bool is_new_directory(const char *directory)
{
	size_t len = strlen(dir);
	return strncmp(directory, dir, len) == 0 && strcmp(directory + len, "/new") == 0;
}

static void note_added(struct agent_watch *watch, const char *directory)
{
	CONTAINER_OF(watch, struct watched, watch)->added += is_new_directory(directory);
}

static void note_removed(struct agent_watch *watch, const char *directory)
{
	assert_true(is_new_directory(directory)); /* no other one is gone */
	CONTAINER_OF(watch, struct watched, watch)->removed++;
}

static int nobody_answers(UNUSED struct agent_net *net, UNUSED const char *collector,
			  UNUSED struct http_call *call, struct errbuf *e)
{
	return errbuf_set(e, ERR_TIMEOUT, "no answer");
}

static void a_directory_that_is_gone_is_forgotten(UNUSED void **state)
{
	static const char *const collectors[] = {"nobody"};
	struct agent_net net = {.call = nobody_answers};
	struct watched watched = {.watch = {.add = note_added, .remove = note_removed}};
	struct clock_virtual clock;
	struct errbuf e = {""};
	char text[256], path[128], state_dir[] = "/tmp/granary-tree-XXXXXX";
	struct conf *conf = conf_new();
	struct adaptors *adaptors = NULL;
	assert_non_null(mkdtemp(state_dir));
	/* No directory leads to the one of a single file, which is wanted all the same. */
	snprintf(text, sizeof(text),
		 "adaptors: {a: {datatype: t, directory: '%s'}, b: {datatype: t, tail: '%s/x'}}\n",
		 dir, state_dir);
	assert_int_equal(conf_read_yaml(conf, "g.yml", slice_of(text), &e), 0);
	assert_int_equal(adaptors_read(conf->sections[CONF_SECTION_ADAPTORS], &adaptors, &e), 0);
	conf_free(conf);
	clock_virtual_init(&clock, 1795953600000000);
	struct agent *agent = agent_new(&(struct agent_options){
		.files = files_real(),
		.clock = &clock.clock,
		.net = &net,
		.watch = &watched.watch,
		.directory = state_dir,
		.source = SLICE("host1"),
		.cluster = SLICE("demo"),
		.collectors = collectors,
		.collector_count = 1,
		.open_max = 20,
	});
	log_set_level(LOG_ERROR);
	agent_configure(agent, &adaptors);
	size_t before = agent->directory_count;
	path_of("new", path);
	assert_int_equal(mkdir(path, 0700), 0);
	agent_turn(agent);
	assert_int_equal(agent->directory_count, before + 1);
	clock_virtual_advance(&clock, AGENT_SCAN_MS * INT64_C(1000));
	agent_turn(agent);
	assert_true(watched.added > 0 && !watched.removed);
	assert_int_equal(rmdir(path), 0);
	clock_virtual_advance(&clock, AGENT_SCAN_MS * INT64_C(1000));
	agent_turn(agent);
	assert_int_equal(agent->directory_count, before);
	assert_int_equal(watched.removed, 1);
	agent_notice(agent, path, NULL); /* is of none by now */
	agent_free(agent);
	for (char name = '0'; name <= '1'; name++) {
		snprintf(path, sizeof(path), "%s/checkpoint.%c", state_dir, name);
		unlink(path);
	}
	assert_int_equal(rmdir(state_dir), 0);
}

/* ---- Where files begin ------------------------------------------------------------------------
 */

/* What an agent has around it, and outlives it. */
struct machine {
	struct agent_net net;
	struct clock_virtual clock;
	struct sim_files sim;
};

static struct sim_files *machine_begin(struct machine *machine)
{
	log_set_level(LOG_ERROR);
	machine->net = (struct agent_net){.call = nobody_answers};
	clock_virtual_init(&machine->clock, 1795953600000000);
	sim_files_init(&machine->sim, &machine->clock.clock);
	return &machine->sim;
}

static struct agent *begin_on(struct machine *machine)
{
	struct sim_files *sim = &machine->sim;
	static const char *const collectors[] = {"nobody"};
	struct errbuf e = {""};
	struct adaptors *adaptors = NULL;
	struct conf *conf = conf_new();
	const char *text = "adaptors: {a: {datatype: t, directory: /log, from: end}}\n";
	assert_int_equal(conf_read_yaml(conf, "g.yml", slice_of(text), &e), 0);
	assert_int_equal(adaptors_read(conf->sections[CONF_SECTION_ADAPTORS], &adaptors, &e), 0);
	conf_free(conf);
	struct agent *agent = agent_new(&(struct agent_options){
		.files = &sim->files,
		.clock = sim->clock,
		.net = &machine->net,
		.directory = "/state",
		.source = SLICE("host1"),
		.cluster = SLICE("demo"),
		.collectors = collectors,
		.collector_count = 1,
		.open_max = 20,
	});
	assert_int_equal(agent_start(agent, &e), 0);
	agent->had_checkpoint = true; /* nobody is asked what he holds */
	agent_configure(agent, &adaptors);
	agent_turn(agent);
	return agent;
}

static void end_agent(struct agent *agent)
{
	struct errbuf e = {""};
	assert_int_equal(agent_save(agent, &e), 0);
	agent_free(agent);
}

static void assert_behind(struct agent *agent, const char *path, uint64_t bytes)
{
	const struct followed *f = agent_find(agent, SLICE("t"), slice_of(path));
	assert_non_null(f);
	assert_true(f->begun);
	assert_int_equal(followed_behind_bytes(f), bytes);
}

/* A file was there at the first look, and could not be read before the agent ended: it is not one
 * that came later. */
static void what_was_there_at_first_is_known_by_the_checkpoint(UNUSED void **state)
{
	struct machine machine;
	struct sim_files *sim = machine_begin(&machine);
	sim_append(sim, sim_make(sim, "/log/first"), "of before\n", 10);
	sim_append(sim, sim_make(sim, "/log/closed"), "of before\n", 10);
	sim_find(sim, "/log/closed")->unreadable = true;
	struct agent *agent = begin_on(&machine);
	assert_behind(agent, "/log/first", 0);
	clock_virtual_advance(&machine.clock, AGENT_SCAN_MS * INT64_C(1000));
	sim_append(sim, sim_make(sim, "/log/second"), "new\n", 4);
	agent_turn(agent);
	agent_turn(agent);
	assert_behind(agent, "/log/second", 4);
	end_agent(agent);
	sim_find(sim, "/log/closed")->unreadable = false;
	sim_append(sim, sim_make(sim, "/log/third"), "newer\n", 6);
	agent = begin_on(&machine);
	assert_behind(agent, "/log/first", 0);
	assert_behind(agent, "/log/closed", 0);
	assert_behind(agent, "/log/second", 4);
	assert_behind(agent, "/log/third", 6);
	end_agent(agent);
	sim_files_release(sim);
}

static void write_and_rotate(struct machine *machine, const char *path)
{
	struct sim_files *sim = &machine->sim;
	static const char *const texts[] = {"one\n", "two\n", "three\n"};
	char from[64], to[64];
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		for (int n = (int)i; n > 0; n--) {
			snprintf(from, sizeof(from), n > 1 ? "%s.%d" : "%s", path, n - 1);
			snprintf(to, sizeof(to), "%s.%d", path, n);
			sim_rename(sim, from, to);
		}
		clock_virtual_advance(&machine->clock, 1000000);
		sim_append(sim, sim_make(sim, path), texts[i], strlen(texts[i]));
	}
}

/* A log comes to a directory, and is rotated before the agent has looked at it: all of it came
 * later. What was rotated before the directory was looked at first is not sent. */
static void a_log_is_rotated_before_it_is_looked_at(UNUSED void **state)
{
	struct machine machine;
	struct sim_files *sim = machine_begin(&machine);
	sim_append(sim, sim_make(sim, "/log/old.1"), "of before\n", 10);
	sim_append(sim, sim_make(sim, "/log/gone.1.gz"), "of before\n", 10);
	clock_virtual_advance(&machine.clock, 1000000);
	struct agent *agent = begin_on(&machine);
	clock_virtual_advance(&machine.clock, AGENT_SCAN_MS * INT64_C(1000));
	write_and_rotate(&machine, "/log/new");
	agent_turn(agent);
	agent_turn(agent);
	assert_behind(agent, "/log/new", 4 + 4 + 6);
	end_agent(agent);
	write_and_rotate(&machine, "/log/newer");
	sim_append(sim, sim_make(sim, "/log/old"), "new\n", 4);
	sim_append(sim, sim_make(sim, "/log/gone"), "new\n", 4);
	agent = begin_on(&machine);
	agent_turn(agent);
	assert_behind(agent, "/log/newer", 4 + 4 + 6);
	assert_behind(agent, "/log/old", 4);
	assert_behind(agent, "/log/gone", 4);
	end_agent(agent);
	sim_files_release(sim);
}

/* A former program did not write since when a directory was followed. The checksum and the length
 * in the first line are those of the other lines (doc/format-checkpoint.md). */
static void take_since_from(struct sim_file *checkpoint)
{
	struct buf *bytes = &checkpoint->bytes;
	buf_append_char(bytes, 0);
	char *lines = strchr(bytes->data, '\n') + 1, *since = strstr(lines, ",\"since\":");
	assert_non_null(since);
	char *end = strchr(since, '}');
	memmove(since, end, strlen(end) + 1);
	size_t len = strlen(lines);
	char head[64];
	snprintf(head, sizeof(head), "%012zu %08x\n", len, crc32c(0, lines, len));
	memcpy(lines - strlen(head), head, strlen(head));
	bytes->len = (size_t)(lines - bytes->data) + len;
}

/* What comes to the directory while another program takes the place of the former one came later.
 */
static void a_checkpoint_may_not_say_since_when(UNUSED void **state)
{
	struct machine machine;
	struct sim_files *sim = machine_begin(&machine);
	sim_append(sim, sim_make(sim, "/log/first"), "of before\n", 10);
	end_agent(begin_on(&machine));
	for (char n = '0'; n <= '1'; n++) {
		char name[] = "/state/checkpoint.?";
		name[sizeof(name) - 2] = n;
		if (sim_find(sim, name))
			take_since_from(sim_find(sim, name));
	}
	sim_append(sim, sim_make(sim, "/log/second"), "new\n", 4);
	struct agent *agent = begin_on(&machine);
	assert_behind(agent, "/log/first", 0);
	assert_behind(agent, "/log/second", 4);
	end_agent(agent);
	sim_files_release(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_below_a_directory),
		cmocka_unit_test(wildcards_of_a_path),
		cmocka_unit_test(patterns_of_names),
		cmocka_unit_test(links_to_the_directories_that_they_are_in),
		cmocka_unit_test(wildcards_far_below),
		cmocka_unit_test(regular_expressions_see_the_path),
		cmocka_unit_test(regular_expressions_of_chukwa_see_the_name),
		cmocka_unit_test(a_directory_that_is_gone_is_forgotten),
		cmocka_unit_test(what_was_there_at_first_is_known_by_the_checkpoint),
		cmocka_unit_test(a_log_is_rotated_before_it_is_looked_at),
		cmocka_unit_test(a_checkpoint_may_not_say_since_when),
	};
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
