/* The section `adaptors`. What is expected is worked by hand from doc/agent.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "agent/adaptors.h"
#include "agent/inlet.h"
#include "base/buf.h"
#include "conf/conf.h"

static struct errbuf e;
static struct adaptors *made;

static int stop(void **state)
{
	(void)state;
	adaptors_free(made);
	made = NULL;
	return 0;
}

/* The configuration is gone before what was made of it is looked at. */
static int read_text(const char *text)
{
	struct conf *conf = conf_new();
	adaptors_free(made);
	made = NULL;
	e.text[0] = 0;
	int err = conf_read_yaml(conf, "g.yml", slice_of(text), &e);
	if (!err)
		err = adaptors_read(conf->sections[CONF_SECTION_ADAPTORS], &made, &e);
	conf_free(conf);
	return err;
}

static void assert_taken(const char *text)
{
	int err = read_text(text);
	assert_string_equal(e.text, "");
	assert_int_equal(err, 0);
}

/* An adaptor `a` in one line. */
static const struct adaptor *taken(const char *inside)
{
	char text[4096];
	snprintf(text, sizeof(text), "adaptors: {a: {%s}}\n", inside);
	assert_taken(text);
	assert_int_equal(made->count, 1);
	assert_string_equal(made->list[0].name.data, "a");
	return &made->list[0];
}

static void assert_refused(const char *text, const char *sentence)
{
	int err = read_text(text);
	assert_string_equal(e.text, sentence);
	assert_int_equal(err, ERR_INVALID);
	assert_null(made);
}

static void refused(const char *inside, const char *sentence)
{
	char text[4096], whole[1024];
	snprintf(text, sizeof(text), "adaptors: {a: {%s}}\n", inside);
	snprintf(whole, sizeof(whole), "g.yml:1: adaptors.a%s", sentence);
	assert_refused(text, whole);
}

/* ---- What is good ---------------------------------------------------------------------------- */

static void the_documents_example(void **state)
{
	(void)state;
	assert_taken("adaptors:\n"
		     "  messages:\n"
		     "    tail: /var/log/messages\n"
		     "    datatype: syslog\n"
		     "  web:\n"
		     "    directory: /var/log/nginx/\n"
		     "    files: '*.log'\n"
		     "    datatype: access\n"
		     "    records: beginning\n"
		     "    begins: '^\\d{4}-'\n"
		     "    wait: 250ms\n"
		     "    from: end\n"
		     "  dump:\n"
		     "    file: /srv/dump.txt\n"
		     "    datatype: dump\n");
	assert_int_equal(made->count, 3);
	const struct adaptor *a = &made->list[0];
	assert_string_equal(a->name.data, "messages");
	assert_int_equal(a->kind, ADAPTOR_TAIL);
	assert_string_equal(a->path.data, "/var/log/messages");
	assert_string_equal(a->datatype.data, "syslog");
	assert_int_equal(a->rule.records.kind, RECORDS_LINES);
	assert_int_equal(a->rule.rest_ms, 1000);
	assert_false(a->rule.from_end || a->rule.whole || a->rule.passes);
	assert_true(a->rule.from == 0 && a->rule.first == 0);
	a = &made->list[1];
	uint64_t work = 0;
	assert_int_equal(a->kind, ADAPTOR_DIRECTORY);
	assert_string_equal(a->path.data, "/var/log/nginx");
	assert_int_equal(a->path.len, 14);
	assert_int_equal(a->pattern, ADAPTOR_NAMES);
	assert_string_equal(a->glob, "*.log");
	assert_int_equal(a->rule.records.kind, RECORDS_BEGINNING);
	assert_true(regex_search(&a->rule.records.begins, SLICE("2026-11-29 x"), &work));
	assert_false(regex_search(&a->rule.records.begins, SLICE(" 2026-11-29 x"), &work));
	assert_int_equal(a->rule.rest_ms, 250);
	assert_true(a->rule.from_end && a->rule.passes && !a->rule.whole);
	a = &made->list[2];
	assert_int_equal(a->kind, ADAPTOR_FILE);
	assert_true(a->rule.whole && !a->rule.passes);
}

static void nothing_is_no_adaptor(void **state)
{
	(void)state;
	assert_taken("");
	assert_int_equal(made->count, 0);
	assert_taken("adaptors:\n#  a: {}\n");
	assert_int_equal(made->count, 0);
	adaptors_free(NULL);
}

static void wildcards_make_a_directory(void **state)
{
	(void)state;
	static const struct {
		const char *tail, *path;
	} rows[] = {
		{"/var/log/app/*.log", "/var/log/app"},
		{"/var/log/app-?/x.log", "/var/log"},
		{"/*/log", "/"},
		{"/x*", "/"},
		{"/var/l[io]g/x", "/var"},
		{"/var/[]]x", "/var"},
		{"/var/[!]]", "/var"},
		{"/srv/a b/*", "/srv/a b"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char inside[200];
		snprintf(inside, sizeof(inside), "tail: '%s', datatype: t", rows[i].tail);
		const struct adaptor *a = taken(inside);
		assert_int_equal(a->kind, ADAPTOR_DIRECTORY);
		assert_int_equal(a->pattern, ADAPTOR_GLOB);
		assert_string_equal(a->glob, rows[i].tail);
		assert_string_equal(a->path.data, rows[i].path);
		assert_int_equal(a->path.len, strlen(rows[i].path));
		assert_true(a->rule.passes);
	}
	/* The other kinds have no patterns. */
	assert_string_equal(taken("file: '/a/*', datatype: t")->path.data, "/a/*");
	assert_string_equal(taken("directory: '/a/[x', datatype: t")->path.data, "/a/[x");
}

static void patterns_of_directories(void **state)
{
	(void)state;
	uint64_t work = 0;
	const struct adaptor *a = taken("directory: /d, datatype: t");
	assert_int_equal(a->pattern, ADAPTOR_NAMES);
	assert_string_equal(a->glob, "*");
	a = taken("directory: /d, datatype: t, regex: '^/sub/.*[.]log$'");
	assert_int_equal(a->pattern, ADAPTOR_REGEX);
	assert_true(regex_search(&a->regex, SLICE("/sub/x.log"), &work));
	assert_false(regex_search(&a->regex, SLICE("/x.log"), &work));
	assert_string_equal(taken("directory: /d, datatype: t, files: 'a\\[1'")->glob, "a\\[1");
}

static void every_form_of_records(void **state)
{
	(void)state;
	static const struct {
		const char *word;
		enum records_kind kind;
	} rows[] = {{"raw", RECORDS_RAW},
		    {"lines", RECORDS_LINES},
		    {"escaped", RECORDS_ESCAPED},
		    {"docker", RECORDS_DOCKER},
		    {"cri", RECORDS_CRI}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char inside[200];
		snprintf(inside, sizeof(inside), "tail: /x, datatype: t, records: %s",
			 rows[i].word);
		assert_int_equal(taken(inside)->rule.records.kind, rows[i].kind);
	}
}

static void commands(void **state)
{
	(void)state;
	const struct adaptor *a = taken("exec: 'df -k | tail -n +2', datatype: df");
	assert_int_equal(a->kind, ADAPTOR_EXEC);
	assert_string_equal(a->path.data, "df -k | tail -n +2");
	assert_int_equal(a->rule.records.kind, RECORDS_LINES);
	assert_true(a->every_ms == 60000 && a->timeout_ms == 30000);
	a = taken("exec: x, datatype: t, every: 1s, timeout: 7d, records: escaped");
	assert_int_equal(a->rule.records.kind, RECORDS_ESCAPED);
	assert_true(a->every_ms == 1000 && a->timeout_ms == 7 * 86400000);
	assert_taken("adaptors: {a: {exec: /x, datatype: t}, b: {exec: /x, datatype: u}, "
		     "c: {tail: /x, datatype: t}}\n");
	refused("exec: '', datatype: t", ".exec: must not be empty");
	assert_int_equal(read_text("adaptors: {\"a\\n\": {udp: 1, datatype: t}}\n"), ERR_INVALID);
	refused("exec: x", ": needs a datatype");
	refused("exec: x, datatype: t, files: '*'", ".files: does not go with exec");
	refused("exec: x, datatype: t, from: 1", ".from: does not go with exec");
	refused("tail: /x, datatype: t, every: 5s", ".every: does not go with tail");
	refused("exec: x, datatype: t, records: raw",
		".records: 'raw' is not a kind of records, which is one of lines, escaped");
}

static void addresses(void **state)
{
	(void)state;
	const struct adaptor *a = taken("udp: 9095, datatype: t");
	assert_int_equal(a->kind, ADAPTOR_UDP);
	assert_string_equal(a->path.data, "127.0.0.1:9095");
	assert_true(a->datagrams && !a->connections);
	a = taken("tcp: '[::1]:65535', datatype: t");
	assert_string_equal(a->path.data, "[::1]:65535");
	assert_true(!a->datagrams && a->connections);
	a = taken("syslog: 'localhost:5140', datatype: t");
	assert_string_equal(a->path.data, "127.0.0.1:5140");
	assert_true(a->datagrams && a->connections && !a->datatypes);
	a = taken("syslog: 1, datatype: t, transport: tcp");
	assert_true(!a->datagrams && a->connections);
	a = taken("syslog: 1, datatype: t, transport: udp, datatypes: {kern: kernel, LOCAL1: "
		  "HADOOP}");
	assert_true(a->datagrams && !a->connections);
	/* RFC 5424, table 1: kern is 0, mail is 2, local1 is 17. */
	assert_string_equal(a->datatypes[0].data, "kernel");
	assert_string_equal(a->datatypes[17].data, "HADOOP");
	assert_int_equal(a->datatypes[2].len, 0);
	refused("udp: 0, datatype: t", ".udp: '0' has no port");
	refused("udp: 65536, datatype: t",
		".udp: address '65536' has no port: write it as 127.0.0.1:8470");
	refused("tcp: '0.0.0.0:514', datatype: t",
		".tcp: '0.0.0.0:514' is no loopback address, as 127.0.0.1 and [::1] are; at others "
		"nothing is taken, since senders do not say who they are");
	refused("syslog: 1, datatype: t, datatypes: {local8: x}",
		".datatypes.local8: is not the name of a syslog facility; such names are kern, "
		"mail "
		"and local0");
	refused("syslog: 1, datatype: t, datatypes: kern",
		".datatypes: takes a mapping of datatypes by facility");
	refused("syslog: 1, datatype: t, datatypes: {kern: chart_meta}",
		".datatypes.kern: the datatype cannot be called chart_meta: that row of "
		"chukwa_metadata has boards");
	refused("syslog: 1, datatype: t, transport: tls",
		".transport: 'tls' is not a transport; did you mean tcp?");
	refused("udp: 1, datatype: t, transport: udp", ".transport: does not go with udp");
	refused("tcp: 1, datatype: t, records: lines", ".records: does not go with tcp");
}

static void limits_that_are_just_kept(void **state)
{
	(void)state;
	char inside[2048], name[1025];
	assert_int_equal(taken("tail: /x, datatype: t, wait: 1ms")->rule.rest_ms, 1);
	assert_int_equal(taken("tail: /x, datatype: t, wait: 10m")->rule.rest_ms, 600000);
	const struct adaptor *a = taken("tail: /x, datatype: t, from: 9223372036854775807, first: "
					"9223372036854775807");
	assert_true(a->rule.from == INT64_MAX && a->rule.first == INT64_MAX);
	a = taken("tail: /x, datatype: t, from: begin, first: 7");
	assert_true(a->rule.from == 0 && a->rule.first == 7 && !a->rule.from_end);
	memset(name, 'x', sizeof(name));
	snprintf(inside, sizeof(inside), "tail: /%.1023s, datatype: %.64s", name, name);
	assert_int_equal(taken(inside)->path.len, 1024);
}

static void servers(void **state)
{
	(void)state;
	const struct adaptor *a = taken("http: 'https://[::1]:8443/a?b=@c', datatype: t");
	char name[INLET_STREAM_NAME_MAX_BYTES], inside[3000], url[ADAPTOR_URL_MAX_BYTES + 2] = "";
	assert_int_equal(a->kind, ADAPTOR_HTTP);
	assert_string_equal(a->path.data, "https://[::1]:8443/a?b=@c");
	assert_true(a->every_ms == 60000 && a->timeout_ms == 30000);
	assert_string_equal(inlet_stream_name(a, name).data, "http:a");
	a = taken("http: 'http://h', datatype: t, every: 1s, timeout: 100ms");
	assert_true(a->every_ms == 1000 && a->timeout_ms == 100);
	refused("http: h, datatype: t", ".http: 'h' is no http://HOST or https://HOST");
	refused("http: 'ftp://h/', datatype: t",
		".http: 'ftp://h/' is no http://HOST or https://HOST");
	refused("http: 'file:///etc/passwd', datatype: t",
		".http: 'file:///etc/passwd' is no http://HOST or https://HOST");
	refused("http: 'http://', datatype: t",
		".http: 'http://' is no http://HOST or https://HOST");
	refused("http: 'http:///a', datatype: t", ".http: 'http:///a' names no host");
	refused("http: 'http://?a', datatype: t", ".http: 'http://?a' names no host");
	refused("http: 'http://h/a b', datatype: t",
		".http: 'http://h/a b' has a character that no URL has; write %XX for it");
	refused("http: 'http://h/a#b', datatype: t",
		".http: 'http://h/a#b' has a character that no URL has; write %XX for it");
	refused("http: 'http://u:p@h/', datatype: t", ".http: the URL has a user's name in front "
						      "of its host, which would be shown to all "
						      "who see the adaptor");
	refused("http: 'http://h', datatype: t, records: lines", ".records: does not go with http");
	refused("http: 'http://h'", ": needs a datatype");
	snprintf(url, sizeof(url), "http://h/%0*d", ADAPTOR_URL_MAX_BYTES - 9, 0);
	snprintf(inside, sizeof(inside), "http: '%s', datatype: t", url);
	assert_int_equal(taken(inside)->path.len, 2048);
	snprintf(inside, sizeof(inside), "http: '%s0', datatype: t", url);
	refused(inside, ".http: the URL has 2049 bytes, and at most 2048 may be");
}

static void this_machine(void **state)
{
	(void)state;
	char name[INLET_STREAM_NAME_MAX_BYTES];
	const struct adaptor *a = taken("system: host");
	assert_int_equal(a->kind, ADAPTOR_SYSTEM);
	assert_string_equal(a->datatype.data, "HostMetrics");
	assert_int_equal(a->every_ms, 10000);
	assert_string_equal(inlet_stream_name(a, name).data, "system:host");
	assert_true(slice_equal(inlet_stream_tenant(slice_of(name)), SLICE("host")));
	assert_int_equal(inlet_stream_tenant(SLICE("exec:host")).len, 0);
	assert_int_equal(inlet_stream_tenant(SLICE("/system:host")).len, 0);
	a = taken("system: other, datatype: t, every: 5s");
	assert_string_equal(a->datatype.data, "t");
	assert_int_equal(a->every_ms, 5000);
	refused("system: 'a b'", ".system: 'a b' cannot be the name of a tenant");
	refused("system: host, timeout: 1s", ".timeout: does not go with system");
	assert_refused("adaptors: {a: {system: host}, b: {system: host}}\n",
		       "g.yml:1: adaptors.b.system: the adaptor a follows the same with the same "
		       "datatype, in g.yml:1");
}

static void heartbeats(void **state)
{
	(void)state;
	char many[4096] = "heartbeat: [agent", name[INLET_STREAM_NAME_MAX_BYTES];
	const struct adaptor *a = taken("heartbeat: agent, datatype: t");
	assert_int_equal(a->kind, ADAPTOR_HEARTBEAT);
	assert_string_equal(a->path.data, "agent");
	assert_string_equal(inlet_stream_name(a, name).data, "heartbeat:a");
	a = taken("heartbeat: ['http://h/a', agent], datatype: t, every: 5s, timeout: 1s");
	struct slice left = a->path, component;
	assert_true(a->every_ms == 5000 && a->timeout_ms == 1000);
	assert_true(adaptors_take_component(&left, &component));
	assert_true(slice_equal(component, SLICE("http://h/a")));
	assert_true(adaptors_take_component(&left, &component));
	assert_true(slice_equal(component, SLICE("agent")));
	assert_false(adaptors_take_component(&left, &component));
	refused("heartbeat: [], datatype: t", ".heartbeat: needs a component: a URL, or agent");
	refused("heartbeat: [agent, agent], datatype: t", ".heartbeat[1]: 'agent' is there twice");
	refused("heartbeat: [h], datatype: t",
		".heartbeat[0]: 'h' is no http://HOST or https://HOST");
	size_t len = strlen(many);
	for (int i = 1; i < ADAPTOR_COMPONENTS_MAX; i++)
		len += (size_t)snprintf(many + len, sizeof(many) - len, ", 'http://h/%d'", i);
	snprintf(many + len, sizeof(many) - len, "], datatype: t");
	assert_non_null(taken(many));
	snprintf(many + len, sizeof(many) - len, ", 'http://h'], datatype: t");
	refused(many, ".heartbeat[32]: a heartbeat has at most 32 components");
}

static void journals(void **state)
{
	(void)state;
	char name[INLET_STREAM_NAME_MAX_BYTES];
	const struct adaptor *a = taken("journal: local, datatype: t");
	assert_int_equal(a->kind, ADAPTOR_JOURNAL);
	assert_string_equal(a->path.data, "local");
	assert_false(a->rule.from_end);
	assert_string_equal(inlet_stream_name(a, name).data, "journal:a");
	a = taken("journal: /var/log/journal/, datatype: t, from: end");
	assert_string_equal(a->path.data, "/var/log/journal");
	assert_true(a->rule.from_end);
	assert_false(taken("journal: local, datatype: t, from: begin")->rule.from_end);
	refused("journal: local", ": needs a datatype");
	refused("journal: locl, datatype: t",
		".journal: is neither local nor a path: 'locl' is not an absolute path");
	refused("journal: local, datatype: t, from: 5",
		".from: '5' is not a place where reading begins, which is one of begin, end");
	refused("journal: local, datatype: t, first: 5", ".first: does not go with journal");
	refused("journal: local, datatype: t, every: 5s", ".every: does not go with journal");
}

/* What is configured takes the place of one that has its name or its files. */
static void logs_of_this_machine(void **state)
{
	(void)state;
	taken("journal: local, datatype: journal");
	assert_int_equal(adaptors_add_local(made, true, SLICE("/d/granary.log"), &e), 0);
	static const char *const names[] = {"a", "system", "access", "servers", "granary"};
	assert_int_equal(made->count, ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_string_equal(made->list[i].name.data, names[i]);
	static const struct {
		const char *path, *adaptor;
	} cases[] = {
		{"/dpkg.log", "system"},
		{"/syslog", "system"},
		{"/syslog.1", NULL},
		{"/wtmp", NULL},
		{"/lastlog", NULL},
		{"/nginx/access.log", "access"},
		{"/nginx/error.log", "servers"},
		{"/httpd/access_log", "access"},
		{"/apt/term.log", "servers"},
		{"/redis/redis-server.log", "servers"},
		{"/journal/x.log", NULL},
		{"/apache2/other_vhosts_access.log", "access"},
		{"/debugger", NULL},
		{"/a/nginx/access.log", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *found = NULL;
		uint64_t work = 0;
		for (size_t at = 1; at < 4; at++)
			if (regex_search(&made->list[at].regex, slice_of(cases[i].path), &work)) {
				assert_null(found);
				found = made->list[at].name.data;
			}
		assert_true(found ? cases[i].adaptor && strcmp(found, cases[i].adaptor) == 0
				  : !cases[i].adaptor);
	}
	taken("journal: /x, datatype: journal");
	assert_int_equal(adaptors_add_local(made, false, SLICE(""), &e), 0);
	assert_int_equal(made->count, 4); /* no journal, no own log */
}

/* ---- What is wrong --------------------------------------------------------------------------- */

static void keys_that_are_wrong(void **state)
{
	(void)state;
	refused("tial: /x, datatype: t", ".tial: is not a known key; did you mean tail?");
	refused("datatype: t", ": needs one of tail, directory, file, exec, udp, tcp, syslog, "
			       "http, system, heartbeat and journal");
	refused("tail: /x", ": needs a datatype");
	refused("tail: /x, file: /y, datatype: t",
		".file: does not go with tail: an adaptor has "
		"one of tail, directory, file, exec, udp, tcp, syslog, http, system, heartbeat "
		"and journal");
	refused("directory: /x, tail: /y, datatype: t",
		".directory: does not go with tail: an adaptor has one of tail, directory, file, "
		"exec, udp, tcp, syslog, http, system, heartbeat and journal");
	refused("tail: /x, files: '*', datatype: t", ".files: does not go with tail");
	refused("tail: '/x*', regex: x, datatype: t", ".regex: does not go with tail");
	refused("file: /x, records: lines, datatype: t", ".records: does not go with file");
	refused("file: /x, wait: 1s, datatype: t", ".wait: does not go with file");
	refused("file: /x, from: 5, datatype: t", ".from: does not go with file");
	refused("file: /x, first: 5, datatype: t", ".first: does not go with file");
	refused("directory: /x, first: 5, datatype: t", ".first: does not go with directory");
	refused("directory: /x, files: a, regex: b, datatype: t", ".regex: does not go with files");
	assert_refused("adaptors: {a: /x}\n",
		       "g.yml:1: adaptors.a: takes a mapping of tail and others");
	assert_refused("adaptors:\n  a:\n", "g.yml:2: adaptors.a: takes a mapping of tail and "
					    "others");
	assert_refused("adaptors: [a]\n",
		       "g.yml:1: adaptors: takes a mapping: a name, and what it is");
}

static void a_name_has_a_limit(void **state)
{
	(void)state;
	char name[257], text[512];
	memset(name, 'n', sizeof(name));
	snprintf(text, sizeof(text), "adaptors: {%.255s: {tail: /x, datatype: t}}\n", name);
	assert_taken(text);
	snprintf(text, sizeof(text), "adaptors: {? %.256s : {tail: /x, datatype: t}}\n", name);
	assert_int_equal(read_text(text), ERR_INVALID);
	assert_non_null(strstr(e.text, "a name has 1 to 255 bytes"));
}

static void paths_that_are_wrong(void **state)
{
	(void)state;
	char inside[2048], name[1025], sentence[200];
	refused("tail: var/log, datatype: t", ".tail: 'var/log' is not an absolute path");
	refused("tail: ../x, datatype: t", ".tail: '../x' is not an absolute path");
	refused("tail: '', datatype: t", ".tail: must not be empty");
	refused("tail: , datatype: t", ".tail: has no value");
	refused("tail: [/x], datatype: t", ".tail: takes one value");
	refused("tail: /a//b, datatype: t", ".tail: '/a//b' has a //");
	refused("tail: //a, datatype: t", ".tail: '//a' has a //");
	refused("directory: /a//, datatype: t", ".directory: '/a//' has a //");
	static const char *const dots[] = {"/a/../b", "/a/..", "/..", "/a/./b",
					   "/a/.",    "/../",  "/./"};
	for (size_t i = 0; i < ARRAY_LEN(dots); i++) {
		snprintf(inside, sizeof(inside), "file: %s, datatype: t", dots[i]);
		snprintf(sentence, sizeof(sentence),
			 ".file: '%s' has a part that is . or ..; write the path without", dots[i]);
		refused(inside, sentence);
	}
	assert_string_equal(taken("tail: /a/..b/.c/d.., datatype: t")->path.data, "/a/..b/.c/d..");
	refused("directory: /, datatype: t",
		".directory: '/' is everything: name a file or directory below it");
	memset(name, 'x', sizeof(name));
	snprintf(inside, sizeof(inside), "tail: /%.1024s, datatype: t", name);
	refused(inside, ".tail: 1025 bytes are longer than the maximum of 1024");
}

static void patterns_that_are_wrong(void **state)
{
	(void)state;
	refused("tail: '/a/[x', datatype: t", ".tail: '/a/[x' has a [ that no ] ends");
	refused("tail: '/a/[x/b]*', datatype: t", ".tail: '/a/[x/b]*' has a [ that no ] ends");
	refused("tail: '/a/[]', datatype: t", ".tail: '/a/[]' has a [ that no ] ends");
	refused("tail: '/a/[!]', datatype: t", ".tail: '/a/[!]' has a [ that no ] ends");
	refused("tail: '/a/[', datatype: t", ".tail: '/a/[' has a [ that no ] ends");
	refused("tail: '/a/\\**', datatype: t",
		".tail: '/a/\\**' has a \\: where there are wildcards, it is of no use");
	refused("directory: /a, files: 'x\\', datatype: t",
		".files: 'x\\' ends with a \\, behind which a character is missing");
	refused("directory: /a, files: '\\\\[', datatype: t",
		".files: '\\\\[' has a [ that no ] ends");
	refused("directory: /a, files: 'b/*', datatype: t",
		".files: 'b/*' has a /: it is a pattern of names; tail takes one of paths");
	refused("directory: /a, files: '', datatype: t", ".files: must not be empty");
	refused("directory: /a, regex: '', datatype: t", ".regex: must not be empty");
	assert_int_equal(read_text("adaptors: {a: {directory: /a, regex: '(', datatype: t}}\n"),
			 ERR_INVALID);
	assert_memory_equal(e.text, "g.yml:1: adaptors.a.regex: ", 27);
	refused("tail: '/a/*', first: 1, datatype: t",
		".first: needs one file, and these are many");
	refused("tail: '/a/*', from: 1, datatype: t",
		".from: an offset needs one file, and these are many");
}

static void records_that_are_wrong(void **state)
{
	(void)state;
	refused("tail: /x, datatype: t, records: line",
		".records: 'line' is not a kind of records; did you mean lines?");
	refused("tail: /x, datatype: t, records: beginning",
		".records: beginning needs begins, the pattern of a record's first line");
	refused("tail: /x, datatype: t, begins: x", ".begins: goes only with records: beginning");
	refused("tail: /x, datatype: t, records: cri, begins: x",
		".begins: goes only with records: beginning");
	assert_int_equal(read_text("adaptors: {a: {tail: /a, datatype: t, records: beginning, "
				   "begins: '(?=x)'}}\n"),
			 ERR_INVALID);
	assert_memory_equal(e.text, "g.yml:1: adaptors.a.begins: ", 28);
	refused("tail: /x, datatype: t, records: raw, wait: 1s",
		".wait: does not go with records: raw, which are always whole");
	refused("tail: /x, datatype: t, wait: 0", ".wait: '0' is not in the range of 1ms to 10m");
	refused("tail: /x, datatype: t, wait: 600001ms",
		".wait: '600001ms' is not in the range of 1ms to 10m");
}

static void offsets_that_are_wrong(void **state)
{
	(void)state;
	refused("tail: /x, datatype: t, from: start",
		".from: 'start' is not begin, end or an offset");
	refused("tail: /x, datatype: t, from: -1", ".from: '-1' is not begin, end or an offset");
	refused("tail: /x, datatype: t, from: 4, first: 5",
		".from: 4 is in front of the first byte of the file, which is at 5");
	assert_int_equal(taken("tail: /x, datatype: t, from: 5, first: 5")->rule.from, 5);
	static const char *const numbers[] = {"from: 9223372036854775808", "from: 5x", "first: -1",
					      "first: end", "first: 9223372036854775808"};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		char text[200];
		snprintf(text, sizeof(text), "adaptors: {a: {tail: /x, datatype: t, %s}}\n",
			 numbers[i]);
		assert_int_equal(read_text(text), ERR_INVALID);
		assert_null(made);
	}
}

static void datatypes_that_are_wrong(void **state)
{
	(void)state;
	char inside[256], name[66];
	refused("tail: /x, datatype: ''", ".datatype: must not be empty");
	refused("tail: /x, datatype: chart_meta",
		".datatype: the datatype cannot be called chart_meta: that row of chukwa_metadata "
		"has boards");
	memset(name, 'x', sizeof(name));
	snprintf(inside, sizeof(inside), "tail: /x, datatype: %.65s", name);
	refused(inside, ".datatype: 65 bytes are longer than the maximum of 64");
}

static void the_same_twice(void **state)
{
	(void)state;
	assert_refused("adaptors:\n"
		       "  a: {tail: /x, datatype: t}\n"
		       "  b: {tail: /y, datatype: t}\n"
		       "  c: {file: /y/, datatype: t}\n",
		       "g.yml:4: adaptors.c.file: the adaptor b follows the same with the same "
		       "datatype, in g.yml:3");
	assert_refused("adaptors:\n"
		       "  a: {tail: '/x/*', datatype: t}\n"
		       "  b: {tail: '/x/*', datatype: t, records: raw}\n",
		       "g.yml:3: adaptors.b.tail: the adaptor a follows the same with the same "
		       "datatype, in g.yml:2");
	assert_refused("adaptors:\n"
		       "  a: {directory: /x, datatype: t, regex: a}\n"
		       "  b: {directory: /x, datatype: t, regex: a}\n",
		       "g.yml:3: adaptors.b.directory: the adaptor a follows the same with the "
		       "same datatype, in g.yml:2");
	assert_taken("adaptors:\n"
		     "  a: {tail: /x, datatype: t}\n"
		     "  b: {tail: /x, datatype: u}\n"
		     "  c: {directory: /x, datatype: t}\n"
		     "  d: {directory: /x, datatype: t, files: '*.log'}\n"
		     "  e: {directory: /x, datatype: t, regex: '[.]log$'}\n"
		     "  f: {tail: '/x/*.log', datatype: t}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_documents_example, stop),
		cmocka_unit_test_teardown(nothing_is_no_adaptor, stop),
		cmocka_unit_test_teardown(wildcards_make_a_directory, stop),
		cmocka_unit_test_teardown(patterns_of_directories, stop),
		cmocka_unit_test_teardown(every_form_of_records, stop),
		cmocka_unit_test_teardown(commands, stop),
		cmocka_unit_test_teardown(servers, stop),
		cmocka_unit_test_teardown(this_machine, stop),
		cmocka_unit_test_teardown(heartbeats, stop),
		cmocka_unit_test_teardown(journals, stop),
		cmocka_unit_test_teardown(logs_of_this_machine, stop),
		cmocka_unit_test_teardown(addresses, stop),
		cmocka_unit_test_teardown(limits_that_are_just_kept, stop),
		cmocka_unit_test_teardown(keys_that_are_wrong, stop),
		cmocka_unit_test_teardown(a_name_has_a_limit, stop),
		cmocka_unit_test_teardown(paths_that_are_wrong, stop),
		cmocka_unit_test_teardown(patterns_that_are_wrong, stop),
		cmocka_unit_test_teardown(records_that_are_wrong, stop),
		cmocka_unit_test_teardown(offsets_that_are_wrong, stop),
		cmocka_unit_test_teardown(datatypes_that_are_wrong, stop),
		cmocka_unit_test_teardown(the_same_twice, stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
