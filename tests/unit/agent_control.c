/* The agent's control: lines in, lines out, on an agent that only notes what it is told. The
 * replies are Chukwa's (AgentControlSocketListener); the id without a name is Chukwa's own example.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/adaptors.h"
#include "agent/control.h"
#include "base/hash.h"
#include "base/log.h"

#define PACKAGE    "org.apache.hadoop.chukwa.datacollection.adaptor."
#define TAIL_CLASS "filetailer.FileTailingAdaptor"
#define FOO_BAR    "adaptor_2c1aee0061e5c97e0424269e09027d32"

enum { REPLY_MAX_BYTES = 1 << 20, SEEN_MAX = 16 };

/* ---- An agent that only notes ---------------------------------------------------------------- */

static struct {
	struct adaptors *adaptors;
	unsigned configured, tried, stopped;
	struct agent_progress seen[SEEN_MAX];
	size_t seen_count;
} told;

static void note_configure(struct control_agent *agent, struct adaptors **adaptors)
{
	(void)agent;
	adaptors_free(told.adaptors);
	told.adaptors = *adaptors;
	*adaptors = NULL;
	told.configured++;
}

static void note_look(struct control_agent *agent, struct buf *out)
{
	(void)agent;
	buf_append(out, told.seen, told.seen_count * sizeof(told.seen[0]));
}

static void note_try_again(struct control_agent *agent)
{
	(void)agent;
	told.tried++;
}

static void note_stop(struct control_agent *agent)
{
	(void)agent;
	told.stopped++;
}

static struct control_agent noting;

static void see(const char *name, uint64_t offset, uint64_t end)
{
	uint64_t hash = hash64(name, strlen(name), 0);
	size_t i = 0;
	while (i < told.seen_count && told.seen[i].name_hash != hash)
		i++;
	told.seen[i] = (struct agent_progress){hash, offset, end, true};
	told.seen_count = i < told.seen_count ? told.seen_count : i + 1;
}

static const struct adaptor *followed(const char *name)
{
	size_t at = adaptors_find_name(told.adaptors, slice_of(name));
	return at < told.adaptors->count ? &told.adaptors->list[at] : NULL;
}

/* ---- A file ---------------------------------------------------------------------------------- */

static struct buf on_disk;
static bool is_there, is_full, is_unreadable;

static int fake_read(struct files *files, const char *path, size_t max_bytes, struct buf *out)
{
	(void)files;
	(void)max_bytes;
	assert_string_equal(path, "/data/agent/control.adaptors");
	if (is_unreadable)
		return ERR_DAMAGED;
	return is_there ? buf_append(out, on_disk.data, on_disk.len) : ERR_NOT_FOUND;
}

static int fake_replace(struct files *files, const char *path, struct slice bytes, unsigned mode)
{
	(void)files;
	assert_string_equal(path, "/data/agent/control.adaptors");
	assert_int_equal(mode, 0600);
	if (is_full)
		return ERR_FULL;
	is_there = true;
	buf_clear(&on_disk);
	return buf_append(&on_disk, bytes.data, bytes.len);
}

static struct files fake_files = {.read = fake_read, .replace = fake_replace};

static void assert_on_disk(const char *lines)
{
	const char *first = on_disk.len ? memchr(on_disk.data, '\n', on_disk.len) : NULL;
	assert_non_null(first);
	assert_int_equal(on_disk.data[0], '#');
	size_t len = on_disk.len - (size_t)(first + 1 - on_disk.data);
	assert_int_equal(len, strlen(lines));
	assert_memory_equal(first + 1, lines, len);
}

/* ---- Talking --------------------------------------------------------------------------------- */

static struct control control;
static struct buf reply;

static bool say(const char *line)
{
	buf_clear(&reply);
	bool open = control_answer(&control, slice_of(line), &reply);
	buf_append_char(&reply, 0);
	return open;
}

static void expect(const char *line, const char *replies)
{
	assert_true(say(line));
	assert_string_equal(reply.data, replies);
}

static struct adaptors *configuration(const char *lines)
{
	struct adaptors *adaptors = adaptors_new();
	struct errbuf e = {""};
	size_t skipped = 0;
	assert_int_equal(adaptors_add_chukwa(adaptors, "test", slice_of(lines), &skipped, &e), 0);
	assert_int_equal(skipped, 0);
	return adaptors;
}

static void configure(const char *lines)
{
	struct adaptors *base = configuration(lines);
	control_set_base(&control, &base);
	assert_null(base);
}

/* A start; what was there before has been killed. */
static int start(const char *lines)
{
	const struct control_options options = {
		.files = &fake_files,
		.agent = &noting,
		.path = "/data/agent/control.adaptors",
		.host = SLICE("host1"),
		.rates = true,
	};
	struct errbuf e = {""};
	control_release(&control);
	told.seen_count = 0;
	control_init(&control, &options);
	int err = control_load(&control, &e);
	if (!err)
		configure(lines);
	return err;
}

static int set_up(void **state)
{
	(void)state;
	noting = (struct control_agent){note_configure, note_look, note_try_again, note_stop};
	is_there = is_full = is_unreadable = false;
	buf_init(&on_disk, 16 << 20);
	buf_init(&reply, REPLY_MAX_BYTES);
	told.configured = told.tried = told.stopped = 0;
	log_set_level(LOG_ERROR);
	return start("");
}

static int tear_down(void **state)
{
	(void)state;
	control_release(&control);
	control = (struct control){.count = 0};
	adaptors_free(told.adaptors);
	told.adaptors = NULL;
	buf_release(&on_disk);
	buf_release(&reply);
	return 0;
}

/* ---- Chukwa's protocol ----------------------------------------------------------------------- */

static void test_status_line(void **state)
{
	(void)state;
	expect("", "host1: Chukwa Agent running, version " GRANARY_VERSION ", with 0 adaptors\n");
	assert_true(say("add " TAIL_CLASS " BarData /foo/bar 0"));
	expect(" \t",
	       "host1: Chukwa Agent running, version " GRANARY_VERSION ", with 1 adaptors\n");
}

static void test_add_makes_chukwas_id(void **state)
{
	(void)state;
	expect("add " TAIL_CLASS " BarData /foo/bar 0",
	       "OK add completed; new ID is " FOO_BAR "\n");
	assert_int_equal(followed(FOO_BAR)->kind, ADAPTOR_TAIL);
	assert_string_equal(followed(FOO_BAR)->path.data, "/foo/bar");
	assert_on_disk("add " FOO_BAR " = " TAIL_CLASS " BarData /foo/bar 0\n");
}

static void test_add_with_a_name_an_offset_and_a_first_byte(void **state)
{
	(void)state;
	expect("ADD seven =  " PACKAGE TAIL_CLASS " raw 100   /var/log/my file 114027",
	       "OK add completed; new ID is adaptor_seven\n");
	const struct adaptor *adaptor = followed("adaptor_seven");
	assert_string_equal(adaptor->path.data, "/var/log/my file");
	assert_int_equal(adaptor->rule.from, 114027);
	assert_int_equal(adaptor->rule.first, 100);
	assert_false(adaptor->rule.ends);
	expect("lIsT",
	       "adaptor_seven)  " PACKAGE TAIL_CLASS " raw 100   /var/log/my file 114027\n\n");
}

static void test_add_twice_is_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		expect("add " TAIL_CLASS " BarData /foo/bar 0",
		       "OK add completed; new ID is " FOO_BAR "\n");
		assert_int_equal(told.configured, 2); /* by the start, and once */
	}
	assert_int_equal(told.adaptors->count, 1);
}

static void test_what_cannot_be_added(void **state)
{
	static const char *const lines[] = {
		"add",
		"add x",
		"add " TAIL_CLASS " raw /foo",            /* no offset */
		"add " TAIL_CLASS " raw relative/path 0", /* of no directory */
		"add NoSuchAdaptor raw /foo 0",
		"add jms.JMSAdaptor raw tcp://broker -t topic 0",
		"add " TAIL_CLASS " raw /foo -1",
		"add " TAIL_CLASS " raw /foo\x01 0",
		"add one = " TAIL_CLASS " raw /other 0", /* the id is another's */
		"add two = " TAIL_CLASS " raw /one 0",   /* the file is another's */
		"add a =b" TAIL_CLASS " raw relative 0",
	};
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw /one 0"));
	unsigned before = told.configured;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		expect(lines[i], "failed to start adaptor...check logs for details\n");
	assert_int_equal(told.configured, before);
	assert_on_disk("add adaptor_one = " TAIL_CLASS " raw /one 0\n");
}

static void test_stop(void **state)
{
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw /one 0"));
	assert_true(say("add two = " TAIL_CLASS " raw /two 0"));
	expect("stop adaptor_one", "OK adaptor adaptor_one stopped\n");
	assert_null(followed("adaptor_one"));
	assert_non_null(followed("adaptor_two"));
	assert_on_disk("add adaptor_two = " TAIL_CLASS " raw /two 0\n");
	/* Chukwa says so of what was never there, too. */
	expect("stop adaptor_one", "OK adaptor adaptor_one stopped\n");
}

static void test_an_id_without_its_prefix(void **state)
{
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw /one 0"));
	expect("STOP one", "adaptor names should start with adaptor_; assuming you meant "
			   "adaptor_one\n"
			   "OK adaptor adaptor_one stopped\n");
	assert_int_equal(told.adaptors->count, 0);
	expect("shutdown two", "adaptor names should start with adaptor_; assuming you meant "
			       "adaptor_two\n"
			       "FAIL: perhaps adaptor adaptor_two does not exist\n");
	expect("stop", "need to specify an adaptor to shut down, by number\n");
	expect("shutdown ", "need to specify an adaptor to shut down, by number\n");
}

static void test_stopall(void **state)
{
	(void)state;
	expect("stopall", "stopped 0 adaptors\n");
	configure("add conf = " TAIL_CLASS " raw /conf 0");
	assert_true(say("add one = " TAIL_CLASS " raw /one 0"));
	assert_true(say("add two = " TAIL_CLASS " raw /two 0"));
	expect("StopAll", "stopped 3 adaptors\n");
	expect("list", "\n");
	assert_int_equal(told.adaptors->count, 0);
	assert_on_disk("");
	expect("stopall", "stopped 0 adaptors\n");
	/* One that waits for its file does not begin then. */
	assert_true(say("add one = " TAIL_CLASS " raw /conf 0"));
	configure("add conf = " TAIL_CLASS " raw /conf 0");
	expect("stopall", "stopped 1 adaptors\n");
	expect("list", "\n");
	assert_on_disk("");
}

static void test_other_commands(void **state)
{
	(void)state;
	expect("reloadCollectors", "OK reloadCollectors done\n");
	assert_int_equal(told.tried, 1);
	expect("frobnicate now", "unknown command frobnicate\n"
				 "say 'help' for a list of legal commands\n");
	expect("addx", "unknown command addx\nsay 'help' for a list of legal commands\n");
	expect("x\x1b[2J", "unknown command x\\x1b[2J\n"
			   "say 'help' for a list of legal commands\n");
	assert_true(say("HELP"));
	assert_true(slice_starts_with(buf_slice(&reply),
				      SLICE("you're talking to the Chukwa agent.  Commands "
					    "available: \n")));
	assert_false(say("close"));
	assert_string_equal(reply.data, "");
}

static void test_stopagent(void **state)
{
	(void)state;
	assert_false(say("stopagent"));
	assert_string_equal(reply.data, "stopping agent process.\n");
	assert_int_equal(told.stopped, 1);
	noting.stop = NULL;
	expect("stopagent", "FAIL: the agent is part of granary serve; stop that\n");
}

/* ---- What is remembered ---------------------------------------------------------------------- */

static void test_what_was_added_is_there_after_a_start(void **state)
{
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw 5 /one 7"));
	assert_true(say("add DirTailingAdaptor raw /var/log *.log filetailer.LWFTAdaptor 0"));
	assert_true(say("stop one"));
	assert_true(say("add two = " TAIL_CLASS " raw 5 /two 7"));
	assert_int_equal(start("add conf = " TAIL_CLASS " raw /conf 0"), 0);
	assert_int_equal(told.adaptors->count, 3);
	assert_null(followed("adaptor_one"));
	assert_int_equal(followed("adaptor_two")->rule.first, 5);
	assert_int_equal(followed("adaptor_two")->rule.from, 7);
	assert_non_null(followed("adaptor_conf"));
}

static void test_what_cannot_be_written_is_not_said_to_be_done(void **state)
{
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw /one 0"));
	see("adaptor_one", 10, 20);
	unsigned before = told.configured;
	is_full = true;
	expect("add two = " TAIL_CLASS " raw /two 0",
	       "failed to start adaptor...check logs for details\n");
	assert_true(say("stop adaptor_one"));
	assert_true(slice_starts_with(buf_slice(&reply), SLICE("FAIL: ")));
	assert_true(say("shutdown adaptor_one"));
	assert_true(slice_starts_with(buf_slice(&reply), SLICE("FAIL: ")));
	assert_true(say("stopall"));
	assert_true(slice_starts_with(buf_slice(&reply), SLICE("FAIL: ")));
	expect("list", "adaptor_one)  " PACKAGE TAIL_CLASS " raw /one 10\n\n");
	assert_int_equal(told.configured, before);
	assert_false(followed("adaptor_one")->rule.ends);
	is_full = false;
	expect("stop adaptor_one", "OK adaptor adaptor_one stopped\n");
}

static void test_a_file_that_cannot_be_read_is_not_written_over(void **state)
{
	(void)state;
	is_unreadable = true;
	assert_int_equal(start(""), ERR_DAMAGED);
}

static void test_lines_of_the_file_that_are_wrong_leave_the_others(void **state)
{
	(void)state;
	is_there = true;
	buf_append_text(&on_disk, "# A comment\n\nadd one = " TAIL_CLASS " raw /one 0\nnonsense\n"
				  "shutdown adaptor_none 5\nadd two = " TAIL_CLASS " raw /two 0\n"
				  "shutdown adaptor_two x\nadd half = " TAIL_CLASS " raw /ha");
	assert_int_equal(start(""), 0);
	assert_int_equal(told.adaptors->count, 2);
	assert_false(followed("adaptor_two")->rule.ends);
}

static void test_at_most_so_many_are_added(void **state)
{
	(void)state;
	char line[100];
	for (unsigned i = 0; i < CONTROL_ADDED_MAX; i++) {
		snprintf(line, sizeof(line), "add n%u = " TAIL_CLASS " raw /%u 0", i, i);
		assert_true(say(line));
		assert_true(slice_starts_with(buf_slice(&reply), SLICE("OK ")));
	}
	expect("add one = " TAIL_CLASS " raw /one 0",
	       "failed to start adaptor...check logs for details\n");
	expect("stop adaptor_n7", "OK adaptor adaptor_n7 stopped\n");
	expect("add one = " TAIL_CLASS " raw /one 0", "OK add completed; new ID is adaptor_one\n");
	assert_int_equal(start(""), 0);
	assert_int_equal(told.adaptors->count, CONTROL_ADDED_MAX);
}

/* ---- What is configured ---------------------------------------------------------------------- */

static void test_what_is_configured_comes_back_with_a_reload(void **state)
{
	static const char conf[] = "add conf = " TAIL_CLASS " raw /conf 0";
	(void)state;
	configure(conf);
	expect("stop adaptor_conf", "OK adaptor adaptor_conf stopped\n");
	expect("list", "\n");
	assert_int_equal(told.adaptors->count, 0);
	/* Its file is free now. */
	expect("add mine = " TAIL_CLASS " raw /conf 0",
	       "OK add completed; new ID is adaptor_mine\n");
	configure(conf);
	assert_non_null(followed("adaptor_conf"));
	assert_null(followed("adaptor_mine")); /* two may not follow the same */
	expect("list", "adaptor_conf)  " PACKAGE TAIL_CLASS " raw /conf 0\n\n");
	/* What was added is kept, and followed when that is possible again. */
	configure("");
	assert_non_null(followed("adaptor_mine"));
	expect("stop mine", "adaptor names should start with adaptor_; assuming you meant "
			    "adaptor_mine\nOK adaptor adaptor_mine stopped\n");
	assert_int_equal(start(""), 0);
	assert_int_equal(told.adaptors->count, 0);
}

static void test_what_is_configured_as_chukwa_names_it(void **state)
{
	struct adaptors *base = configuration("add FileAdaptor dump /srv/dump 0\n"
					      "add d = DirTailingAdaptor raw /var/log *.log "
					      "filetailer.LWFTAdaptor 0\n"
					      "add r = RegExDirTailingAdaptor raw /srv a|b "
					      "filetailer.CharFileTailingAdaptorUTF8NewLineEscaped "
					      "0\n");
	const struct adaptor web = {
		.kind = ADAPTOR_TAIL,
		.name = SLICE("my web"),
		.datatype = SLICE("access"),
		.path = SLICE("/var/log/web"),
		.rule = {.records.kind = RECORDS_LINES, .first = 9, .from = 12},
	};
	struct errbuf e = {""};
	(void)state;
	assert_int_equal(adaptors_add(base, &web, &e), 0);
	base->list[0].name = SLICE("adaptor_f");
	control_set_base(&control, &base);
	expect("list",
	       "adaptor_f)  " PACKAGE "FileAdaptor dump /srv/dump 0\n"
	       "adaptor_d)  " PACKAGE "DirTailingAdaptor raw /var/log *.log " TAIL_CLASS " 0\n"
	       "adaptor_r)  " PACKAGE "RegExDirTailingAdaptor raw /srv a|b "
	       "filetailer.CharFileTailingAdaptorUTF8NewLineEscaped 0\n"
	       "adaptor_my_web)  " PACKAGE
	       "filetailer.CharFileTailingAdaptorUTF8 access 9 /var/log/web 12\n\n");
	see("my web", 100, 100);
	assert_true(say("list"));
	assert_non_null(strstr(reply.data, "/var/log/web 100\n"));
	expect("stop my_web", "adaptor names should start with adaptor_; assuming you meant "
			      "adaptor_my_web\nOK adaptor adaptor_my_web stopped\n");
	assert_null(followed("my web"));
}

/* ---- How far they are ------------------------------------------------------------------------ */

static void test_list_says_up_to_where_it_is_delivered(void **state)
{
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw /one 3"));
	assert_true(say("add two = " TAIL_CLASS " raw /two 4"));
	see("adaptor_two", 200, 300);
	see("adaptor_gone", 1, 1);
	see("adaptor_one", 100, 100);
	expect("list", "adaptor_one)  " PACKAGE TAIL_CLASS " raw /one 100\n"
		       "adaptor_two)  " PACKAGE TAIL_CLASS " raw /two 200\n\n");
}

static void test_shutdown_ends_where_it_says(void **state)
{
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw /one 0"));
	see("adaptor_one", 100, 250);
	expect("shutdown adaptor_one", "OK adaptor adaptor_one stopping gracefully at 250\n");
	assert_true(followed("adaptor_one")->rule.ends);
	assert_int_equal(followed("adaptor_one")->rule.until, 250);
	/* What comes meanwhile does not count. */
	see("adaptor_one", 200, 400);
	expect("shutdown adaptor_one", "OK adaptor adaptor_one stopping gracefully at 250\n");
	/* A kill is in between. */
	assert_int_equal(start(""), 0);
	assert_int_equal(followed("adaptor_one")->rule.until, 250);
	see("adaptor_one", 249, 400);
	control_tick(&control);
	assert_non_null(followed("adaptor_one"));
	see("adaptor_one", 250, 400);
	control_tick(&control);
	assert_null(followed("adaptor_one"));
	assert_on_disk("");
	expect("shutdown adaptor_one", "FAIL: perhaps adaptor adaptor_one does not exist\n");
}

static void test_what_was_to_end_and_is_added_again_goes_on(void **state)
{
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw /one 0"));
	see("adaptor_one", 100, 250);
	expect("shutdown adaptor_one", "OK adaptor adaptor_one stopping gracefully at 250\n");
	expect("add one = " TAIL_CLASS " raw /one 0", "OK add completed; new ID is adaptor_one\n");
	assert_false(followed("adaptor_one")->rule.ends);
	assert_on_disk("add adaptor_one = " TAIL_CLASS " raw /one 0\n");
	see("adaptor_one", 300, 300);
	control_tick(&control);
	assert_non_null(followed("adaptor_one"));
}

static void test_shutdown_of_what_has_nothing_to_deliver(void **state)
{
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw /one 5"));
	expect("shutdown adaptor_one", "OK adaptor adaptor_one stopping gracefully at 5\n");
	assert_int_equal(told.adaptors->count, 0);
	assert_true(say("add two = " TAIL_CLASS " raw /two 0"));
	see("adaptor_two", 70, 70);
	expect("shutdown adaptor_two", "OK adaptor adaptor_two stopping gracefully at 70\n");
	assert_int_equal(told.adaptors->count, 0);
	assert_true(say("add d = DirTailingAdaptor raw /var/log filetailer.LWFTAdaptor 0"));
	see("adaptor_d", 70, 90);
	expect("shutdown adaptor_d", "OK adaptor adaptor_d stopping gracefully at 70\n");
	assert_int_equal(told.adaptors->count, 0);
	assert_on_disk("");
}

static void test_rates(void **state)
{
	(void)state;
	assert_true(say("add one = " TAIL_CLASS " raw /one 0"));
	struct control_item *one = control_find(&control, SLICE("adaptor_one"));
	control_tick(&control); /* nothing is known of it yet */
	for (unsigned i = 0; i <= 100; i++) {
		/* 50 bytes in each 10 s, and after 40 of them 200. */
		see("adaptor_one", i <= 40 ? 50 * i : 2000 + 200 * (i - 40), 1000000);
		control_tick(&control);
		if (i == 5)
			assert_true(control_rate(one, 60) == -1);
		if (i == 6)
			assert_true(control_rate(one, 60) == 5);
		if (i == 29)
			assert_true(control_rate(one, 300) == -1);
		if (i == 43)
			assert_true(control_rate(one, 60) == 12.5); /* (3 * 50 + 3 * 200) / 60 */
		if (i == 59)
			assert_true(control_rate(one, 600) == -1);
		if (i == 60) /* (40 * 50 + 20 * 200) / 600 */
			assert_true(control_rate(one, 600) == 10);
	}
	assert_true(control_rate(one, 60) == 20);
	assert_true(control_rate(one, 300) == 20);
	assert_true(control_rate(one, 600) == 20);
}

/* Every user of the machine reaches a port; a command would be run as the agent's user. */
static void test_no_command_is_taken_by_a_port(void **state)
{
	(void)state;
	control.by_port = true;
	expect("add ExecAdaptor df 60 df 0", "failed to start adaptor...check logs for details\n");
	assert_int_equal(control_count(&control), 0);
	control.by_port = false;
	assert_true(say("add ExecAdaptor df 60 df 0"));
	assert_int_equal(strncmp(reply.data, "OK add completed", 16), 0);
	assert_int_equal(control_count(&control), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_status_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_add_makes_chukwas_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_add_with_a_name_an_offset_and_a_first_byte,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_add_twice_is_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_added, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_id_without_its_prefix, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stopall, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_commands, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stopagent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_added_is_there_after_a_start, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_written_is_not_said_to_be_done,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_read_is_not_written_over,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_lines_of_the_file_that_are_wrong_leave_the_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_at_most_so_many_are_added, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_configured_comes_back_with_a_reload,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_configured_as_chukwa_names_it, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_list_says_up_to_where_it_is_delivered, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_shutdown_ends_where_it_says, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_to_end_and_is_added_again_goes_on,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_shutdown_of_what_has_nothing_to_deliver,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rates, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_command_is_taken_by_a_port, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
