/* Files of Chukwa's agent become adaptors. What is expected is worked by hand from what Chukwa's
 * document and sources say of its classes, its checkpoints and its configuration; the id of an
 * adaptor without a name is Chukwa's own example. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/chukwa_import.h"
#include "base/buf.h"
#include "wire/chukwa_agent.h"

#define PACKAGE   "org.apache.hadoop.chukwa.datacollection.adaptor."
#define CONF_FILE "/etc/chukwa/chukwa-agent-conf.xml"
#define INITIAL   "/etc/chukwa/initial_adaptors"

enum { FAKE_FILES_MAX = 24 };

/* ---- Files that are only texts --------------------------------------------------------------- */

static struct {
	const char *path, *text; /* NULL text: it cannot be read */
} fakes[FAKE_FILES_MAX];
static size_t fake_count;
static bool directories_fail;

static void put_file(const char *path, const char *text)
{
	assert_true(fake_count < FAKE_FILES_MAX);
	fakes[fake_count].path = path;
	fakes[fake_count++].text = text;
}

static int fake_read(struct files *files, const char *path, size_t max_bytes, struct buf *out)
{
	(void)files;
	(void)max_bytes;
	for (size_t i = 0; i < fake_count; i++)
		if (strcmp(fakes[i].path, path) == 0)
			return fakes[i].text ? buf_append_text(out, fakes[i].text) : ERR_LIMIT;
	return ERR_NOT_FOUND;
}

static int fake_list(struct files *files, const char *path, file_name_fn *each, void *owner)
{
	(void)files;
	size_t len = strlen(path);
	bool found = false;
	if (directories_fail)
		return ERR_DAMAGED;
	for (size_t i = 0; i < fake_count; i++) {
		const char *name = fakes[i].path;
		if (strncmp(name, path, len) != 0 || name[len] != '/' ||
		    strchr(name + len + 1, '/'))
			continue;
		each(owner, name + len + 1);
		found = true;
	}
	return found ? 0 : ERR_NOT_FOUND;
}

static struct files fake = {.read = fake_read, .list = fake_list};

/* ---- The rig --------------------------------------------------------------------------------- */

static struct errbuf e;
static struct adaptors *made;
static struct chukwa_import import;
static size_t skipped;
static int log_file, standard_error;
static char logged[1 << 16];

static void log_begin(void)
{
	assert_int_equal(ftruncate(log_file, 0), 0);
	assert_int_equal(lseek(log_file, 0, SEEK_SET), 0);
	dup2(log_file, 2);
}

static void log_end(void)
{
	dup2(standard_error, 2);
	ssize_t n = pread(log_file, logged, sizeof(logged) - 1, 0);
	assert_true(n >= 0);
	logged[n] = 0;
}

static bool has_logged(const char *text)
{
	return strstr(logged, text) != NULL;
}

static size_t lines_logged(void)
{
	size_t count = 0;
	for (const char *c = logged; *c; c++)
		count += *c == '\n';
	return count;
}

static int start(void **state)
{
	(void)state;
	made = adaptors_new();
	chukwa_import_init(&import);
	skipped = fake_count = 0;
	directories_fail = false;
	e.text[0] = logged[0] = 0;
	log_file = memfd_create("log", 0);
	standard_error = dup(2);
	return log_file < 0 || standard_error < 0;
}

static int stop(void **state)
{
	(void)state;
	dup2(standard_error, 2);
	close(standard_error);
	close(log_file);
	adaptors_free(made);
	chukwa_import_release(&import);
	return 0;
}

static int add(const char *text)
{
	struct slice copy = mem_copy_slice(slice_of(text));
	log_begin();
	int err = adaptors_add_chukwa(made, "initial", copy, &skipped, &e);
	log_end();
	/* What is made holds nothing of the text. */
	memset((char *)copy.data, '!', copy.len);
	mem_free_slice(copy);
	return err;
}

/* The only adaptor of a line. */
static const struct adaptor *taken(const char *line)
{
	adaptors_free(made);
	made = adaptors_new();
	skipped = 0;
	assert_int_equal(add(line), 0);
	assert_string_equal(logged, "");
	assert_int_equal(skipped, 0);
	assert_int_equal(made->count, 1);
	return &made->list[0];
}

/* A line that is passed over, with others around it. */
static void passed_over(const char *line, const char *sentence)
{
	char text[2 * CHUKWA_LINE_MAX_BYTES], expected[700];
	adaptors_free(made);
	made = adaptors_new();
	skipped = 0;
	snprintf(
		text, sizeof(text),
		"add filetailer.LWFTAdaptor t /first 0\n%s\nadd filetailer.LWFTAdaptor t /last 0\n",
		line);
	assert_int_equal(add(text), 0);
	snprintf(expected, sizeof(expected),
		 "initial:2 is passed over, and other lines are kept: %s\n", sentence);
	if (!has_logged(expected))
		fail_msg("logged: %s; expected: %s", logged, expected);
	assert_int_equal(lines_logged(), 1);
	assert_int_equal(skipped, 1);
	assert_int_equal(made->count, 2);
	assert_string_equal(made->list[1].path.data, "/last");
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void a_line_is_a_tail(void **state)
{
	(void)state;
	const struct adaptor *a = taken("add filetailer.FileTailingAdaptor BarData /foo/bar 0");
	assert_string_equal(a->name.data, "adaptor_2c1aee0061e5c97e0424269e09027d32");
	assert_string_equal(a->datatype.data, "BarData");
	assert_string_equal(a->path.data, "/foo/bar");
	assert_int_equal(a->kind, ADAPTOR_TAIL);
	assert_int_equal(a->rule.records.kind, RECORDS_RAW);
	assert_int_equal(a->rule.rest_ms, 1000);
	assert_false(a->rule.from_end || a->rule.whole || a->rule.passes);
	/* The committed offset is the stream's, and the file's first byte is at 500. */
	a = taken("ADD adaptor_x = " PACKAGE "filetailer.LWFTAdaptor t 500 /foo/my bar 1234\n");
	assert_string_equal(a->name.data, "adaptor_x");
	assert_string_equal(a->path.data, "/foo/my bar");
	assert_true(a->rule.from == 1234 && a->rule.first == 500);
	/* Wildcards stand for themselves. */
	a = taken("add filetailer.LWFTAdaptor t /foo/*.log 0");
	assert_int_equal(a->kind, ADAPTOR_TAIL);
	assert_string_equal(a->path.data, "/foo/*.log");
}

static void classes_say_where_records_end(void **state)
{
	(void)state;
	static const struct {
		const char *class;
		enum records_kind kind;
	} rows[] = {
		{"LWFTAdaptor", RECORDS_RAW},
		{"FileTailingAdaptor", RECORDS_RAW},
		{"RCheckFTAdaptor", RECORDS_RAW},
		{"CharFileTailingAdaptorUTF8", RECORDS_LINES},
		{"FileTailingAdaptorPreserveLines", RECORDS_LINES},
		{"CharFileTailingAdaptorUTF8NewLineEscaped", RECORDS_ESCAPED},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char line[200];
		snprintf(line, sizeof(line), "add filetailer.%s t /x 0", rows[i].class);
		assert_int_equal(taken(line)->rule.records.kind, rows[i].kind);
		snprintf(line, sizeof(line), "add DirTailingAdaptor t /x filetailer.%s 0",
			 rows[i].class);
		assert_int_equal(taken(line)->rule.records.kind, rows[i].kind);
	}
}

static void a_file_is_sent_whole(void **state)
{
	(void)state;
	const struct adaptor *a = taken("add FileAdaptor t 7 /x 0");
	assert_int_equal(a->kind, ADAPTOR_FILE);
	assert_true(a->rule.whole && !a->rule.passes && a->rule.first == 7);
	a = taken("add DirTailingAdaptor t /x FileAdaptor 0");
	assert_int_equal(a->kind, ADAPTOR_DIRECTORY);
	assert_true(a->rule.whole && a->rule.passes);
}

static void a_directory_has_a_pattern_of_names(void **state)
{
	(void)state;
	const struct adaptor *a = taken(
		"add DirTailingAdaptor t /var/log/ *.log filetailer.LWFTAdaptor 1600000000000");
	assert_int_equal(a->kind, ADAPTOR_DIRECTORY);
	assert_int_equal(a->pattern, ADAPTOR_NAMES);
	assert_string_equal(a->path.data, "/var/log");
	assert_string_equal(a->glob, "*.log");
	/* Its offset is a time. */
	assert_true(a->rule.from == 0 && a->rule.first == 0 && a->rule.passes);
	assert_string_equal(taken("add DirTailingAdaptor t /x filetailer.LWFTAdaptor 0")->glob,
			    "*");
	/* Only * and ? are wildcards. */
	a = taken("add DirTailingAdaptor t /x a[1]\\?* filetailer.LWFTAdaptor 0");
	assert_string_equal(a->glob, "a\\[1]\\\\?*");
}

static void a_regular_expression_matches_whole_names(void **state)
{
	(void)state;
	uint64_t work = 0;
	const struct adaptor *a =
		taken("add RegExDirTailingAdaptor t /x a.*|b\\d filetailer.LWFTAdaptor 5");
	assert_int_equal(a->pattern, ADAPTOR_NAME_REGEX);
	assert_true(regex_search(&a->regex, SLICE("abc"), &work));
	assert_true(regex_search(&a->regex, SLICE("b1"), &work));
	assert_false(regex_search(&a->regex, SLICE("b12"), &work));
	assert_false(regex_search(&a->regex, SLICE("xa"), &work));
	assert_false(regex_search(&a->regex, SLICE(""), &work));
}

static void a_command_is_run(void **state)
{
	(void)state;
	const struct adaptor *a = taken("add ExecAdaptor Df 60 df -k /home 0");
	assert_int_equal(a->kind, ADAPTOR_EXEC);
	assert_string_equal(a->path.data, "df -k /home");
	assert_int_equal(a->every_ms, 60000);
	assert_int_equal(a->rule.records.kind, RECORDS_LINES);
	a = taken("add ExecAdaptor Top top -b -n 1 0");
	assert_string_equal(a->path.data, "top -b -n 1");
	assert_int_equal(a->every_ms, 5000);
}

static void packets_are_taken(void **state)
{
	(void)state;
	const struct adaptor *a = taken("add UDPAdaptor Raw 9095 0");
	assert_int_equal(a->kind, ADAPTOR_UDP);
	assert_string_equal(a->path.data, "127.0.0.1:9095");
	a = taken("add SyslogAdaptor Syslog 514 0");
	assert_int_equal(a->kind, ADAPTOR_SYSLOG);
	assert_true(a->datagrams && !a->connections);
}

static void servers_are_asked(void **state)
{
	(void)state;
	const struct adaptor *a = taken("add RestAdaptor Rest http://h:8080/jmx?q=a 30 0");
	assert_int_equal(a->kind, ADAPTOR_HTTP);
	assert_string_equal(a->path.data, "http://h:8080/jmx?q=a");
	assert_string_equal(a->datatype.data, "Rest");
	assert_true(a->every_ms == 30000 && a->timeout_ms == 30000);
	a = taken("add HeartbeatAdaptor Beat (ChukwaStatusChecker, HttpStatusChecker Invoker "
		  "http://h/x) 20 0");
	assert_int_equal(a->kind, ADAPTOR_HEARTBEAT);
	assert_string_equal(a->path.data, "agent http://h/x");
	assert_int_equal(a->every_ms, 20000);
	passed_over("add RestAdaptor t ftp://h 30 0",
		    "'ftp://h' is no http://HOST or https://HOST");
	passed_over("add RestAdaptor t http://h 0",
		    "it needs a URI, and how often it is asked for");
	passed_over(
		"add HeartbeatAdaptor t (x) 20 0",
		"its checker 'x' is neither ChukwaStatusChecker nor HttpStatusChecker NAME URI");
}

/* What is sent is not Sigar's, so that its datatype is another one, too. */
static void metrics_of_a_machine(void **state)
{
	(void)state;
	const struct adaptor *a = taken("add sigar.SystemMetrics SystemMetrics 60 0");
	assert_int_equal(a->kind, ADAPTOR_SYSTEM);
	assert_string_equal(a->path.data, "host");
	assert_string_equal(a->datatype.data, "HostMetrics");
	assert_int_equal(a->every_ms, 60000);
	assert_int_equal(taken("add sigar.SystemMetrics SystemMetrics 0")->every_ms, 5000);
}

static void what_is_not_taken_is_passed_over(void **state)
{
	(void)state;
	passed_over("add SocketAdaptor t 9095 0", "SocketAdaptor: what it reads needs Java");
	passed_over("add jms.JMSAdaptor t x -t y 0", "jms.JMSAdaptor: what it reads needs Java");
	passed_over("add ExecAdaptor t 0", "it has no command");
	passed_over("add UDPAdaptor t 65536 0", "its port '65536' is not 1 to 65535");
	passed_over("add SyslogAdaptor t 0", "its port '' is not 1 to 65535");
	passed_over("add MemBuffered t UDPAdaptor raw 9 0",
		    "MemBuffered: this agent keeps nothing for sending again but files, which are "
		    "there");
	passed_over("add FileAdaptor t /x delete 0",
		    "its file is to be deleted when it was sent, and this agent deletes none");
	passed_over("add filetailer.LWFTAdaptor t var/log 0", "'var/log' is not an absolute path");
	passed_over("add filetailer.LWFTAdaptor t /a/../b 0",
		    "'/a/../b' has a part that is . or ..; write the path without");
	passed_over("add filetailer.LWFTAdaptor t / 0", "its path / is a directory");
	passed_over("add DirTailingAdaptor t / filetailer.LWFTAdaptor 0",
		    "its directory / is everything");
	passed_over("add filetailer.LWFTAdaptor chart_meta /x 0",
		    "the datatype cannot be called chart_meta: that row of chukwa_metadata has "
		    "boards");
	passed_over("add LWFTAdaptor t /x 0",
		    "there is no class LWFTAdaptor, but there is filetailer.LWFTAdaptor");
	passed_over("add filetailer.LWFTAdaptor t /x", "its last word has to be the offset, a "
						       "number, and is /x");
	passed_over("add filetailer.LWFTAdaptor t 9 /x 8",
		    "its offset 8 is in front of the first byte of the file, which is at 9");
	passed_over("add filetailer.LWFTAdaptor t /x 9223372036854775808",
		    "its offset 9223372036854775808 is above 9223372036854775807");
	passed_over("stopall", "it begins with stopall, not with add");
	passed_over("add DirTailingAdaptor t /x UDPAdaptor 0",
		    "its files: UDPAdaptor reads no file");
	assert_int_equal(add("add RegExDirTailingAdaptor t /x ( filetailer.LWFTAdaptor 0"), 0);
	assert_true(has_logged("kept: its regular expression (: "));
}

static void comments_and_empty_lines_are_nothing(void **state)
{
	(void)state;
	assert_int_equal(add(""), 0);
	assert_int_equal(add("\n# add UDPAdaptor t 5 0\n  \r\n\t#\n"), 0);
	assert_int_equal(made->count, 0);
	assert_int_equal(skipped, 0);
	assert_string_equal(logged, "");
}

static void one_file_is_followed_once(void **state)
{
	(void)state;
	/* As at every start: of one id the first one counts, and nothing is said. */
	assert_int_equal(add("add x = filetailer.LWFTAdaptor t /x 5\n"
			     "add x = filetailer.LWFTAdaptor t /x 9\n"),
			 0);
	assert_true(made->count == 1 && skipped == 0 && made->list[0].rule.from == 5);
	assert_string_equal(logged, "");
	assert_int_equal(add("add x = filetailer.LWFTAdaptor t /y 5\n"), 0);
	assert_true(has_logged("there is an adaptor adaptor_x already, which follows /x\n"));
	/* Two spellings of a class are two ids. */
	assert_int_equal(add("add " PACKAGE "filetailer.LWFTAdaptor t /x 0\n"), 0);
	assert_true(has_logged("the adaptor adaptor_x follows the same with the same datatype\n"));
	assert_true(made->count == 1 && skipped == 2);
	assert_int_equal(add("add filetailer.LWFTAdaptor u /x 0\n"), 0);
	assert_true(made->count == 2 && skipped == 2);
}

static void a_file_of_faults_does_not_fill_the_log(void **state)
{
	(void)state;
	struct buf text;
	buf_init(&text, 1 << 20);
	for (int i = 0; i < 150; i++)
		buf_append_text(&text, "oops\n");
	buf_append_char(&text, 0);
	assert_int_equal(add(text.data), 0);
	assert_int_equal(skipped, 150);
	assert_int_equal(lines_logged(), 101);
	assert_true(has_logged("initial: 50 more lines are passed over\n"));
	buf_release(&text);
}

/* ---- chukwa-agent-conf.xml ------------------------------------------------------------------- */

#define P(name, value) "<property><name>" name "</name><value>" value "</value></property>\n"
#define XML(inside)    "<configuration>\n" inside "</configuration>\n"

static int read_conf(const char *text)
{
	chukwa_import_release(&import);
	chukwa_import_init(&import);
	e.text[0] = 0;
	log_begin();
	int err = chukwa_import_conf(&import, "c.xml", slice_of(text), &e);
	log_end();
	return err;
}

static void assert_conf_refused(const char *text, const char *sentence)
{
	assert_int_equal(read_conf(text), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void the_configuration_that_is_known(void **state)
{
	(void)state;
	assert_int_equal(read_conf(XML(P("chukwaAgent.tags", "cluster=\"demo\" x=\"y\"")
					       P("chukwaAgent.checkpoint.dir", "/var/chukwa//")
						       P("chukwaAgent.checkpoint.name", "cp_")
							       P("fs.default.name", "${x}"))),
			 0);
	assert_string_equal(import.cluster.data, "demo");
	assert_string_equal(import.checkpoint_directory, "/var/chukwa");
	assert_string_equal(import.checkpoint_name, "cp_");
	assert_null(import.initial_adaptors);
	assert_true(has_logged("change nothing here: fs.default.name\n"));
	assert_int_equal(read_conf(XML("")), 0);
	assert_string_equal(logged, "");
	assert_null(import.cluster.data);
	/* Tags without a cluster are of Chukwa's default. */
	assert_int_equal(read_conf(XML(P("chukwaAgent.tags", "x=\"y\""))), 0);
	assert_string_equal(import.cluster.data, "unknown_cluster");
}

static void all_properties_that_are_not_known_are_named(void **state)
{
	(void)state;
	assert_int_equal(read_conf(XML(P("chukwaAgent.control.port", "9093") P("made.up", "1")
					       P("adaptor.dirscan.intervalMs", "1")
						       P("chukwaAgent.tags", "x=\"y\""))),
			 0);
	assert_int_equal(lines_logged(), 1);
	assert_true(has_logged("c.xml: these properties change nothing here: "
			       "chukwaAgent.control.port, made.up, adaptor.dirscan.intervalMs\n"));
	assert_int_equal(read_conf(XML(P("syslog.adaptor.port.9095.facility.LOCAL1", "x"))), 0);
	assert_int_equal(lines_logged(), 0);
	assert_int_equal(
		read_conf(XML(P("chukwa.1", "") P("chukwa.2", "") P("chukwa.3", "") P(
			"chukwa.4", "") P("chukwa.5", "") P("chukwa.6", "") P("chukwa.7", "")
				      P("chukwa.8", "") P("chukwa.9", "") P("chukwa.10", "")
					      P("chukwa.11", "") P("chukwa.12", ""))),
		0);
	assert_int_equal(lines_logged(), 2);
	assert_true(has_logged("chukwa.9, chukwa.10\n"));
	assert_true(has_logged("here: chukwa.11, chukwa.12\n"));
}

static void a_configuration_that_is_wrong(void **state)
{
	(void)state;
	assert_conf_refused(XML(P("x", "") P("chukwaAgent.checkpoint.dir", "${CHUKWA_LOG_DIR}/")),
			    "c.xml:3: chukwaAgent.checkpoint.dir: '${CHUKWA_LOG_DIR}/' has a "
			    "${...}, which only Chukwa's scripts can replace; write what it stands "
			    "for");
	assert_conf_refused(
		XML(P("chukwaAgent.tags", "cluster=\"${C}\"")),
		"c.xml:2: chukwaAgent.tags: 'cluster=\"${C}\"' has a ${...}, which only "
		"Chukwa's scripts can replace; write what it stands for");
	assert_conf_refused(XML(P("chukwaAgent.checkpoint.dir", "var")),
			    "c.xml:2: chukwaAgent.checkpoint.dir: 'var' is not an absolute path");
	assert_conf_refused(XML(P("chukwaAgent.initial_adaptors", "")),
			    "c.xml:2: chukwaAgent.initial_adaptors: '' is not an absolute path");
	assert_conf_refused(XML(P("chukwaAgent.checkpoint.name", "a/b")),
			    "c.xml:2: chukwaAgent.checkpoint.name: 'a/b' is not the beginning of a "
			    "name");
	assert_conf_refused(XML(P("chukwaAgent.checkpoint.name", "")),
			    "c.xml:2: chukwaAgent.checkpoint.name: '' is not the beginning of a "
			    "name");
	assert_int_equal(read_conf("<configuration>"), ERR_INVALID);
	assert_memory_equal(e.text, "c.xml: ", 7);
	/* 65 bytes, one more than a cluster has. */
	assert_int_equal(
		read_conf(XML(P("chukwaAgent.tags",
				"cluster=\"12345678901234567890123456789012345678901234567890123456"
				"789012345\""))),
		ERR_INVALID);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static int take_all(void)
{
	log_begin();
	int err = chukwa_import(&fake, "/etc/chukwa", made, &import, &e);
	log_end();
	return err;
}

static void assert_all_refused(int expected, const char *sentence)
{
	int err = take_all();
	assert_string_equal(e.text, sentence);
	assert_int_equal(err, expected);
}

static void the_checkpoint_goes_before_initial_adaptors(void **state)
{
	(void)state;
	put_file(CONF_FILE, XML(P("chukwaAgent.checkpoint.dir", "/var/c/")
					P("chukwaAgent.checkpoint.name", "cp")));
	put_file(INITIAL, "add a = filetailer.LWFTAdaptor t /a 0\n"
			  "add b = filetailer.LWFTAdaptor t /b 0"); /* people leave the end off */
	put_file("/var/c/cp7", "ADD adaptor_a = filetailer.LWFTAdaptor t /a 77\n");
	put_file("/var/c/cp8", "ADD adaptor_a = filetailer.LWFTAdaptor t /a 88\n");
	put_file("/var/c/cp10", "ADD adaptor_a = filetailer.LWFTAdaptor t /a 99\n");
	assert_int_equal(take_all(), 0);
	assert_string_equal(logged, "");
	assert_string_equal(import.checkpoint, "/var/c/cp7");
	assert_true(import.added == 2 && import.skipped == 0 && made->count == 2);
	assert_string_equal(made->list[0].name.data, "adaptor_a");
	assert_int_equal(made->list[0].rule.from, 77);
	assert_string_equal(made->list[1].path.data, "/b");
}

static void names_that_are_no_checkpoints(void **state)
{
	(void)state;
	static const char *const names[] = {"chukwa_checkpoint_",
					    "chukwa_checkpoint_-1",
					    "chukwa_checkpoint_+1",
					    "chukwa_checkpoint_1.bak",
					    "chukwa_checkpoint_01",
					    "chukwa_checkpoint_1e0",
					    "xchukwa_checkpoint_1",
					    "Chukwa_checkpoint_1",
					    "chukwa_checkpoint_ 1",
					    "chukwa_checkpoint_9223372036854775808",
					    "chukwa_checkpoint_18446744073709551617"};
	static char paths[ARRAY_LEN(names)][100];
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(paths[i], sizeof(paths[i]), "/etc/chukwa/%s", names[i]);
		put_file(paths[i], "add filetailer.LWFTAdaptor t /wrong 0\n");
	}
	assert_all_refused(ERR_NOT_FOUND,
			   "/etc/chukwa has no file of Chukwa's agent: no "
			   "chukwa-agent-conf.xml, no initial_adaptors, no checkpoint");
	put_file("/etc/chukwa/chukwa_checkpoint_9223372036854775807",
		 "add filetailer.LWFTAdaptor t /right 0\n");
	assert_int_equal(take_all(), 0);
	assert_int_equal(made->count, 1);
	assert_string_equal(made->list[0].path.data, "/right");
}

static void a_line_that_was_cut_off_does_not_count(void **state)
{
	(void)state;
	put_file("/etc/chukwa/chukwa_checkpoint_0",
		 "ADD adaptor_a = filetailer.LWFTAdaptor t /a 5\n"
		 "ADD adaptor_b = filetailer.LWFTAdaptor t /b 1");
	assert_int_equal(take_all(), 0);
	assert_true(made->count == 1 && import.added == 1 && import.skipped == 1);
	assert_true(has_logged(
		"/etc/chukwa/chukwa_checkpoint_0: its last line has no end, and is passed over\n"));
}

static void one_that_cannot_be_read_gives_way_to_the_next(void **state)
{
	(void)state;
	put_file("/etc/chukwa/chukwa_checkpoint_3", NULL);
	put_file("/etc/chukwa/chukwa_checkpoint_4", "add filetailer.LWFTAdaptor t /a 5\n");
	put_file("/etc/chukwa/chukwa_checkpoint_5", "add filetailer.LWFTAdaptor t /b 5\n");
	assert_int_equal(take_all(), 0);
	assert_string_equal(import.checkpoint, "/etc/chukwa/chukwa_checkpoint_4");
	assert_true(has_logged("/etc/chukwa/chukwa_checkpoint_3 has more than 16 MiB; the next "
			       "checkpoint is tried\n"));
	assert_int_equal(made->count, 1);
}

static void checkpoints_of_which_none_can_be_read(void **state)
{
	(void)state;
	put_file(INITIAL, "add filetailer.LWFTAdaptor t /a 0\n");
	put_file("/etc/chukwa/chukwa_checkpoint_3", NULL);
	assert_all_refused(ERR_INVALID, "none of the checkpoints in /etc/chukwa can be read");
}

static void a_directory_that_is_wrong(void **state)
{
	(void)state;
	assert_all_refused(ERR_NOT_FOUND,
			   "/etc/chukwa has no file of Chukwa's agent: no "
			   "chukwa-agent-conf.xml, no initial_adaptors, no checkpoint");
	put_file(CONF_FILE, XML(P("chukwaAgent.checkpoint.dir", "/var/c")));
	assert_int_equal(take_all(), 0);
	assert_true(has_logged("there is no checkpoint /var/c/chukwa_checkpoint_<number>: files "
			       "are followed from where initial_adaptors says\n"));
	directories_fail = true;
	assert_all_refused(ERR_DAMAGED, "/var/c cannot be read: damaged data");
}

static void files_that_are_wrong(void **state)
{
	(void)state;
	put_file(CONF_FILE, XML(P("chukwaAgent.initial_adaptors", "/opt/initial")));
	put_file(INITIAL, "add filetailer.LWFTAdaptor t /a 0\n");
	assert_all_refused(ERR_NOT_FOUND, "/opt/initial cannot be read: not found");
	put_file("/opt/initial", "add filetailer.LWFTAdaptor t /b 0\n");
	assert_int_equal(take_all(), 0);
	assert_int_equal(made->count, 1);
	assert_string_equal(made->list[0].path.data, "/b");
	fakes[0].text = NULL;
	assert_all_refused(ERR_LIMIT, CONF_FILE " has more than 16 MiB");
	fakes[0].text = "<configuration>";
	assert_int_equal(take_all(), ERR_INVALID);
	assert_memory_equal(e.text, CONF_FILE ": ", sizeof(CONF_FILE) + 1);
}

static void an_adaptor_of_the_section_stays(void **state)
{
	(void)state;
	struct adaptor own = {.name = SLICE("own"),
			      .datatype = SLICE("t"),
			      .path = SLICE("/a"),
			      .rule.rest_ms = 7};
	assert_int_equal(adaptors_add(made, &own, &e), 0);
	put_file(INITIAL, "add filetailer.LWFTAdaptor t /a 5\nadd filetailer.LWFTAdaptor t /b 5\n");
	assert_int_equal(take_all(), 0);
	assert_true(made->count == 2 && import.added == 1 && import.skipped == 1);
	assert_int_equal(made->list[0].rule.rest_ms, 7);
}

/* Chukwa's own test has HADOOP for messages of local1. */
static void facilities_have_datatypes(void **state)
{
	(void)state;
	struct adaptor own = {.kind = ADAPTOR_SYSLOG,
			      .name = SLICE("own"),
			      .datatype = SLICE("u"),
			      .path = SLICE("[::1]:9095")};
	assert_int_equal(adaptors_add(made, &own, &e), 0);
	put_file(CONF_FILE, "<configuration>"
			    "<property><name>syslog.adaptor.port.9095.facility.LOCAL1</name>"
			    "<value>HADOOP</value></property>"
			    "<property><name>syslog.adaptor.port.9095.facility.KERN</name>"
			    "<value>kernel</value></property>"
			    "<property><name>syslog.adaptor.port.9096.facility.MAIL</name>"
			    "<value>other</value></property>"
			    "<property><name>syslog.adaptor.port.9095.facility.LOCAL8</name>"
			    "<value>none</value></property></configuration>");
	put_file(INITIAL, "add SyslogAdaptor t 9095 0\nadd UDPAdaptor t 9096 0\n");
	assert_int_equal(take_all(), 0);
	assert_int_equal(made->count, 3);
	assert_null(made->list[0].datatypes);
	assert_null(made->list[2].datatypes);
	const struct slice *datatypes = made->list[1].datatypes;
	assert_non_null(datatypes);
	for (int i = 0; i < 24; i++)
		assert_int_equal(datatypes[i].len, i == 0 || i == 17 ? 6 : 0);
	assert_string_equal(datatypes[0].data, "kernel");
	assert_string_equal(datatypes[17].data, "HADOOP");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_line_is_a_tail),
		TEST(classes_say_where_records_end),
		TEST(a_file_is_sent_whole),
		TEST(a_directory_has_a_pattern_of_names),
		TEST(a_regular_expression_matches_whole_names),
		TEST(a_command_is_run),
		TEST(packets_are_taken),
		TEST(servers_are_asked),
		TEST(metrics_of_a_machine),
		TEST(what_is_not_taken_is_passed_over),
		TEST(comments_and_empty_lines_are_nothing),
		TEST(one_file_is_followed_once),
		TEST(a_file_of_faults_does_not_fill_the_log),
		TEST(the_configuration_that_is_known),
		TEST(all_properties_that_are_not_known_are_named),
		TEST(a_configuration_that_is_wrong),
		TEST(the_checkpoint_goes_before_initial_adaptors),
		TEST(names_that_are_no_checkpoints),
		TEST(a_line_that_was_cut_off_does_not_count),
		TEST(one_that_cannot_be_read_gives_way_to_the_next),
		TEST(checkpoints_of_which_none_can_be_read),
		TEST(a_directory_that_is_wrong),
		TEST(files_that_are_wrong),
		TEST(an_adaptor_of_the_section_stays),
		TEST(facilities_have_datatypes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
