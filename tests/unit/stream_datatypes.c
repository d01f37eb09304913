/* The section `datatypes`, and lines by its rules. What is expected is worked by hand from
 * doc/demux.md, and read from the lines by eye. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "conf/conf.h"
#include "model/series.h"
#include "stream/datatypes.h"
#include "wire/number.h"

static struct errbuf e;
static struct datatypes *made;
static struct datatype_reader reader;

static int stop(void **state)
{
	(void)state;
	if (reader.rule)
		datatype_reader_release(&reader);
	reader.rule = NULL;
	datatypes_free(made);
	made = NULL;
	return 0;
}

/* The configuration is gone before what was made of it is looked at. */
static int read_text(const char *text)
{
	struct conf *conf = conf_new();
	stop(NULL);
	e.text[0] = 0;
	int err = conf_read_yaml(conf, "g.yml", slice_of(text), &e);
	if (!err)
		err = datatypes_read(conf->sections[CONF_SECTION_DATATYPES], &made, &e);
	conf_free(conf);
	return err;
}

static const struct datatype *taken(const char *text, const char *name)
{
	int err = read_text(text);
	assert_string_equal(e.text, "");
	assert_int_equal(err, 0);
	return datatypes_find(made, slice_of(name));
}

/* A datatype `a` in one line. */
static const struct datatype *use(const char *inside)
{
	char text[2048];
	snprintf(text, sizeof(text), "datatypes: {a: %s}\n", inside);
	const struct datatype *rule = taken(text, "a");
	assert_non_null(rule);
	datatype_reader_init(&reader, rule);
	return rule;
}

static void refused(const char *inside, const char *sentence)
{
	char text[2048], whole[1024];
	snprintf(text, sizeof(text), "datatypes: {a: %s}\n", inside);
	snprintf(whole, sizeof(whole), "g.yml:1: datatypes.a%s", sentence);
	int err = read_text(text);
	assert_string_equal(e.text, whole);
	assert_int_equal(err, ERR_INVALID);
	assert_null(made);
}

/* The record as `key=tag ... metric=number[unit] ... !refused`; what is not there is left out. */
static void assert_record(const char *line, const char *expected)
{
	struct datatype_record record;
	struct buf got;
	char number[NUMBER_PRINT_MAX_BYTES];
	buf_init(&got, 64 << 10);
	assert_int_equal(datatype_read(&reader, slice_of(line), &record), DATATYPE_READ);
	for (size_t i = 0; i < reader.rule->tag_count; i++)
		if (record.tags[i].len)
			buf_printf(&got, "%s=%.*s ", reader.rule->tags[i].key.data,
				   (int)record.tags[i].len, record.tags[i].data);
	for (size_t i = 0; i < record.count; i++) {
		const struct datatype_number *n = &record.numbers[i];
		if (n->value.type != VALUE_NONE)
			buf_printf(&got, "%.*s=%.*s%s%.*s ", (int)n->metric.len, n->metric.data,
				   (int)number_print(number, n->value), number,
				   n->unit.len ? ":" : "", (int)n->unit.len, n->unit.data);
	}
	buf_printf(&got, "!%zu", record.refused);
	buf_append_char(&got, 0);
	assert_string_equal(got.data, expected);
	buf_release(&got);
}

static void assert_result(const char *line, enum datatype_result expected)
{
	struct datatype_record record;
	enum datatype_result result = datatype_read(&reader, slice_of(line), &record);
	if (result != expected)
		fail_msg("%d, not %d: %s", result, expected, line);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void the_documents_example(void **state)
{
	(void)state;
	const struct datatype *a = taken("datatypes:\n"
					 "  access: access\n"
					 "  app:\n"
					 "    format: json\n"
					 "    where: level=info\n"
					 "    samples:\n"
					 "      tags: {server: host, queue: queue.name}\n"
					 "      values: [took, depth]\n"
					 "    units: {took: ms}\n"
					 "    prefix: shop\n"
					 "    series_max: 50\n"
					 "  df: none\n",
					 "access");
	assert_int_equal(made->count, 5);
	assert_int_equal(a->kind, DATATYPE_EVENTS);
	assert_int_equal(a->format.pattern_count, 4);
	assert_int_equal(a->tag_count, 2);
	assert_string_equal(a->tags[0].key.data, "method");
	assert_string_equal(a->tags[1].key.data, "status");
	assert_int_equal(a->tags[1].field.place, 7);
	assert_int_equal(a->value_count, 1);
	assert_string_equal(a->values[0].sum.data, "access.bytes.sum");
	assert_string_equal(a->values[0].min.data, "access.bytes.min");
	assert_string_equal(a->values[0].max.data, "access.bytes.max");
	assert_string_equal(a->count.data, "access.count");
	assert_int_equal(a->series_max, 1000);
	a = datatypes_find(made, SLICE("app"));
	assert_int_equal(a->kind, DATATYPE_SAMPLES);
	assert_string_equal(a->tags[0].key.data, "server");
	assert_string_equal(a->tags[0].field.name.data, "host");
	assert_string_equal(a->tags[1].field.name.data, "queue.name");
	assert_string_equal(a->values[0].metric.data, "shop.took");
	assert_string_equal(a->values[0].unit.unit.data, "ms");
	assert_string_equal(a->values[1].metric.data, "shop.depth");
	assert_int_equal(a->values[1].unit.unit.len, 0);
	assert_int_equal(a->series_max, 50);
	assert_null(datatypes_find(made, SLICE("df")));
	assert_null(datatypes_find(made, SLICE("iostat")));
	assert_non_null(datatypes_find(made, SLICE("SystemMetrics")));
}

static void hosts_are_read_without_a_section(void **state)
{
	(void)state;
	assert_non_null(taken("", "SystemMetrics"));
	assert_int_equal(made->count, 3);
	assert_int_equal(made->list[0].series_max, 10000);
	datatype_reader_init(&reader, &made->list[0]);
	assert_record("{\"cpu\":[{\"user\":0.25,\"vendor\":\"x\"}],\"uptime\":7,\"timestamp\":17}",
		      "SystemMetrics.cpu.user.0=0.25 SystemMetrics.Uptime=7 "
		      "SystemMetrics.cpu.user=0.25 !0");
	assert_null(taken("datatypes: {SystemMetrics: none}\n", "SystemMetrics"));
	assert_int_equal(made->count, 3);
}

static void access_logs_are_read_without_a_section(void **state)
{
	(void)state;
	const struct datatype *access = taken("", "access");
	assert_non_null(access);
	assert_int_equal(access->kind, DATATYPE_EVENTS);
	assert_string_equal(access->count.data, "access.count");
	assert_null(datatypes_find(made, SLICE("df")));
	assert_null(taken("datatypes: {access: none}\n", "access"));
	access = taken("datatypes: {access: {as: access, prefix: web}}\n", "access");
	assert_string_equal(access->count.data, "web.count");
	assert_int_equal(made->count, 3);
}

/* They become the metrics that a server has of its own machine. */
static void hosts_of_our_agents(void **state)
{
	(void)state;
	const struct datatype *rule = taken("", "HostMetrics");
	assert_int_equal(rule->series_max, 10000);
	datatype_reader_init(&reader, rule);
	assert_record("{\"time\":\"2026-11-29T10:00:00Z\",\"core\":\"7\",\"cpu.user\":0.25}",
		      "core=7 SystemMetrics.cpu.user=0.25 !0");
	assert_record("{\"time\":\"2026-11-29T10:00:00Z\",\"mount\":\"/\",\"disk.Used\":5}",
		      "mount=/ SystemMetrics.disk.Used=5 !0");
	assert_record("{\"time\":\"2026-11-29T10:00:00Z\",\"LoadAverage.1\":0.5,\"Uptime\":7}",
		      "SystemMetrics.LoadAverage.1=0.5 SystemMetrics.Uptime=7 !0");
	assert_null(taken("datatypes: {HostMetrics: none}\n", "HostMetrics"));
}

static void what_is_shipped_may_be_changed(void **state)
{
	(void)state;
	const struct datatype *a = use("{as: access, prefix: web, events: {tags: [status]}}");
	assert_int_equal(a->format.pattern_count, 4);
	assert_int_equal(a->tag_count, 1);
	assert_int_equal(a->value_count, 0);
	assert_string_equal(a->count.data, "web.count");
	a = use("{as: access, pattern: '<method> <status> <bytes>', samples: {values: {b: "
		"bytes}}}");
	assert_int_equal(a->kind, DATATYPE_SAMPLES);
	assert_int_equal(a->format.pattern_count, 1);
	assert_int_equal(a->tag_count, 0);
	assert_string_equal(a->values[0].metric.data, "a.b");
	assert_string_equal(a->values[0].unit.unit.data, "bytes");
	a = use("{as: access, prefix: ''}");
	assert_string_equal(a->count.data, "count");
}

static uint64_t hash_of(const char *text)
{
	return taken(text, "a")->hash;
}

static void a_changed_rule_has_another_hash(void **state)
{
	(void)state;
	uint64_t hash = hash_of("datatypes: {a: {format: json, samples: {values: [b]}}}\n");
	assert_true(hash == hash_of("oids: {}\ndatatypes:\n  z: access\n  a:\n    # why\n"
				    "    format: json\n    samples: {values: [b]}\n"));
	assert_true(hash != hash_of("datatypes: {a: {format: json, samples: {values: [c]}}}\n"));
	assert_true(hash != hash_of("datatypes: {a: {format: logfmt, samples: {values: [b]}}}\n"));
	assert_true(hash_of("datatypes: {a: df}\n") != hash_of("datatypes: {a: vmstat}\n"));
}

static void rules_that_are_none(void **state)
{
	char text[2048], *at = text;
	(void)state;
	refused("acess", ": 'acess' is not a datatype that is shipped; did you mean access?");
	refused("{as: something, samples: {values: [b]}}",
		".as: 'something' is not a datatype that is shipped, which is one of access, df, "
		"iostat, "
		"sar, top, vmstat, SystemMetrics, HostMetrics");
	refused("[]", ": takes a mapping of as and others");
	refused("{}", ": needs one of pattern, columns, format and as");
	refused("{format: xml}",
		".format: 'xml' is not a format, which is one of json, logfmt, SystemMetrics");
	refused("{format: json}", ": needs samples or events");
	refused("{format: json, pattern: '<a>'}", ".format: does not go with pattern");
	refused("{format: json, samples: {values: [b]}, events: {}}",
		".events: does not go with samples");
	refused("{format: json, samples: {}}", ".samples: needs values or texts");
	refused("{format: json, samples: {values: []}}", ".samples: needs values or texts");
	refused("{format: json, events: {texts: [a]}}", ".events.texts: goes only with samples");
	refused("{format: json, samples: {values: [a], texts: {a: b}}}",
		".samples.texts.a: two values are called a");
	refused("{format: json, samples: {texts: [a, a]}}",
		".samples.texts[1]: two values are called a");
	refused("{pattern: '<a>', samples: {texts: [b]}}",
		".samples.texts[0]: the pattern has no field <b>");
	refused("{format: json, texts_max: 0, samples: {texts: [a]}}",
		".texts_max: '0' is not in the range of 1 to 100000");
	refused("{format: json, samples: {values: b}}",
		".samples.values: takes a list of fields, or a mapping of names to fields");
	refused("{format: json, events: {values: '*'}}", ".events.values: goes only with samples");
	refused("{format: json, samples: {values: [b], except: [c]}}",
		".samples.except: goes only with values: '*'");
	refused("{format: json, samples: {values: [b, b]}}",
		".samples.values[1]: two values are called b");
	refused("{format: json, samples: {values: [b], tags: {c: d, e: d, c2: d}, x: 1}}",
		".samples.x: is not a known key, which is one of values, tags, except, texts");
	refused("{format: json, events: {tags: [b, host]}}",
		".events.tags[1]: the tag host is that of the stream; {KEY: host} gives this one "
		"another key");
	refused("{format: json, events: {tags: [rest]}}",
		".events.tags[0]: the tag rest is that of the labels of which there are too many; "
		"{KEY: rest} gives this one another key");
	refused("{format: json, events: {tags: [b, b]}}",
		".events.tags[1]: two tags have the key b");
	refused("{pattern: '<b> <c', events: {tags: [c]}}",
		".events.tags[0]: the pattern has no field <c>");
	refused("{pattern: '<b><c>', events: {}}",
		".pattern: behind the field <b> the next one begins at once: a text between them "
		"says where the first one ends");
	refused("{pattern: ['<b>', '<c> <c>'], events: {}}",
		".pattern[1]: two fields are called <c>");
	refused("{pattern: [], events: {}}", ".pattern: needs a pattern");
	refused("{pattern: '<b>', events: {}, where: 'c>1'}",
		".where: the pattern has no field <c>");
	refused("{pattern: '<b>', events: {}, where: [b=1, 'b>x']}",
		".where[1]: 'x' is no number to compare with");
	refused("{pattern: '<b>', events: {}, where: b}",
		".where: 'b' is no condition, as status>=400 is one");
	refused("{format: json, events: {}, where: status==200}",
		".where: 'status==200' is no condition: the relations are = != < <= > >=");
	refused("{format: json, events: {}, where: status=>200}",
		".where: 'status=>200' is no condition: the relations are = != < <= > >=");
	refused("{columns: {head: x}, events: {}}",
		".columns.head: is not a known key; did you mean header?");
	refused("{columns: {header: {}}, events: {}}", ".columns.header: takes a list of words");
	refused("{format: json, events: {}, units: [b]}",
		".units: takes a mapping of fields to units");
	refused("{format: json, events: {}, series_max: 0}",
		".series_max: '0' is not in the range of 1 to 50000");
	at += snprintf(at, 100, "{format: json, events: {tags: [");
	for (int i = 0; i <= DATATYPE_TAGS_MAX; i++)
		at += snprintf(at, 10, "t%d,", i);
	snprintf(at, 10, "]}}");
	refused(text, ".events.tags: has more than 16 fields");
	assert_int_equal(read_text("datatypes: {chart_meta: access}\n"), ERR_INVALID);
	assert_int_equal(read_text("datatypes: access\n"), ERR_INVALID);
}

static void a_mistake_is_named_with_its_line(void **state)
{
	(void)state;
	assert_int_equal(read_text("datatypes:\n  a:\n    format: json\n    events:\n"
				   "      values:\n      - b\n      - b\n"),
			 ERR_INVALID);
	assert_string_equal(e.text,
			    "g.yml:7: datatypes.a.events.values[1]: two values are called b");
}

static void assert_text(const struct datatype_record *record, size_t at, const char *metric,
			const char *text)
{
	assert_true(at < record->text_count);
	assert_true(slice_equal(record->texts[at].metric, slice_of(metric)));
	assert_true(slice_equal(record->texts[at].text, slice_of(text)));
}

/* What is a number is a value, in its unit; what is none is a text. */
static void texts_beside_values(void **state)
{
	static const char *const rules[] = {
		"{format: json, units: {size: KiB}, "
		"samples: {values: [n], texts: {state: state, how: size}}}",
		"{format: json, units: {size: KiB}, "
		"samples: {values: '*', texts: {state: state, how: size}}}"};
	struct datatype_record record;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		assert_non_null(use(rules[i]));
		assert_record("{\"n\":1,\"state\":2,\"size\":\"3\"}",
			      "a.n=1 a.state=2 a.how=3072:bytes !0");
		assert_int_equal(datatype_read(&reader,
					       SLICE("{\"n\":1,\"state\":\"up\",\"size\":\"x K\"}"),
					       &record),
				 DATATYPE_READ);
		assert_int_equal(record.count, 1);
		assert_int_equal(record.text_count, 2);
		assert_text(&record, 0, "a.state", "up");
		assert_text(&record, 1, "a.how", "x K");
		assert_int_equal(record.refused, 0);
		assert_int_equal(datatype_read(&reader, SLICE("{\"state\":\"down\"}"), &record),
				 DATATYPE_READ);
		assert_text(&record, 0, "a.state", "down");
		assert_int_equal(record.text_count, 1);
		assert_result("{\"state\":\"-\",\"size\":\"\"}", DATATYPE_NOT);
	}
	assert_non_null(use("{format: json, samples: {texts: [state]}}"));
	assert_int_equal(datatype_read(&reader, SLICE("{\"state\":\"up\"}"), &record),
			 DATATYPE_READ);
	assert_text(&record, 0, "a.state", "up");
}

/* ---- Access logs ----------------------------------------------------------------------------- */

static void access_logs(void **state)
{
	(void)state;
	use("access");
	/* Of nginx, of Apache, in the common form, and of who speaks no HTTP. */
	assert_record("127.0.0.1 - - [29/Nov/2026:14:49:30 +0000] \"GET /a HTTP/1.1\" 200 615 "
		      "\"-\" \"curl/7.88.1\"",
		      "method=GET status=200 a.bytes=615:bytes !0");
	assert_record("::1 - frank [29/Nov/2026:14:49:30 +0000] \"POST /\\\"x HTTP/1.0\" 404 - "
		      "\"http://a/\\\"b\" \"M \\\"5\\\"\"",
		      "method=POST status=404 !0");
	assert_record("127.0.0.1 - - [29/Nov/2026:14:49:30 +0000] \"HEAD / HTTP/1.1\" 304 0",
		      "method=HEAD status=304 a.bytes=0:bytes !0");
	assert_record("1.2.3.4 - - [29/Nov/2026:14:49:30 +0000] \"\\x16\\x03\\x01\" 400 157 \"-\" "
		      "\"-\"",
		      "status=400 a.bytes=157:bytes !0");
	assert_record("1.2.3.4 - - [29/Nov/2026:14:49:30 +0000] \"-\" 408 -", "status=408 !0");
	assert_record("1.2.3.4 - - [29/Nov/2026:14:49:30 +0000] \"GET /a HTTP/1.1\" 200 1x5",
		      "method=GET status=200 !1");
	assert_result("", DATATYPE_PASSED);
	assert_result("2026/11/29 14:49:30 [error] 12#0: *1 open() failed", DATATYPE_NOT);
}

static void a_tag_that_the_catalog_refuses_is_not_read(void **state)
{
	char line[TAG_VALUE_MAX_BYTES + 3];
	(void)state;
	use("{pattern: '<k> <n>', samples: {tags: [k], values: [n]}}");
	assert_record("\xc3\xa9 1", "k=\xc3\xa9 a.n=1 !0");
	assert_record(" 1", "a.n=1 !0");
	assert_result("\xc3 1", DATATYPE_NOT);
	assert_result("a\x01 1", DATATYPE_NOT);
	assert_result("a\x7f 1", DATATYPE_NOT);
	memset(line, 'x', sizeof(line));
	memcpy(line + TAG_VALUE_MAX_BYTES, " 1", 3);
	assert_int_equal(datatype_read(&reader, slice_of(line), &(struct datatype_record){0}),
			 DATATYPE_READ);
	memcpy(line + TAG_VALUE_MAX_BYTES - 1, "xx 1", 4);
	line[TAG_VALUE_MAX_BYTES + 2] = '1';
	assert_int_equal(datatype_read(&reader, (struct slice){line, sizeof(line)},
				       &(struct datatype_record){0}),
			 DATATYPE_NOT);
}

static void conditions(void **state)
{
	static const struct {
		const char *where, *fits, *does_not;
	} cases[] = {
		{"n>=400", "400", "399.9"}, {"n > 400", "401", "400"}, {"n<4", "-1", "4"},
		{"n<=4", "4.0", "5"},       {"n=4", "4.0", "04x"},     {"n!=4", "x", "4"},
		{"n=a b", "a b", "a"},      {"n!=a", "b", "a"},        {"n>=1", "1", "x"},
	};
	char inside[200], line[100];
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(inside, sizeof(inside), "{pattern: '<n>;', events: {}, where: '%s'}",
			 cases[i].where);
		use(inside);
		snprintf(line, sizeof(line), "%s;", cases[i].fits);
		assert_result(line, DATATYPE_READ);
		snprintf(line, sizeof(line), "%s;", cases[i].does_not);
		assert_result(line, DATATYPE_PASSED);
	}
	use("{format: json, events: {}, where: [a=1, b!=2]}");
	assert_result("{\"a\":1,\"b\":3}", DATATYPE_READ);
	assert_result("{\"a\":1,\"b\":2}", DATATYPE_PASSED);
	assert_result("{\"a\":1}", DATATYPE_PASSED);
	assert_result("{", DATATYPE_NOT);
}

/* ---- Ten thousand lines, and awk ----------------------------------------------------------------
 */

enum { GENERATED_LINES = 10000, GENERATED_KINDS = 12 };

static const char *const generated_methods[] = {"GET", "POST", "HEAD"};
static const char *const generated_statuses[] = {"200", "304", "404", "500"};

/* What awk sees as $6 to $10 is where the columns of an access log are. */
static void generate(const char *path)
{
	uint64_t lot = 88172645463325252u;
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i < GENERATED_LINES; i++) {
		lot ^= lot << 13;
		lot ^= lot >> 7;
		lot ^= lot << 17;
		fprintf(file,
			"10.0.%u.%u - - [29/Nov/2026:14:%02u:%02u +0000] \"%s /%x%s HTTP/1.1\" %s ",
			(unsigned)(lot & 255), (unsigned)(lot >> 8 & 255), i / 60 % 60, i % 60,
			generated_methods[lot % 3], (unsigned)(lot >> 16 & 0xffff),
			lot & 64 ? "?a=\\\"b" : "", generated_statuses[lot >> 32 & 3]);
		if (lot >> 40 & 7)
			fprintf(file, "%u", (unsigned)(lot >> 40 & 0xfffff));
		else
			fprintf(file, "-");
		fprintf(file,
			lot & 1 << 20 ? " \"http://a/b c\" \"M/5.0 (X11; \\\"%x\\\")\"\n" : "\n",
			(unsigned)(lot >> 33));
	}
	assert_int_equal(fclose(file), 0);
}

static size_t place_of(struct slice text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (slice_equal(text, slice_of(words[i])))
			return i;
	fail_msg("neither: %.*s", (int)text.len, text.data);
	return 0;
}

static void count_lines(const char *path, uint64_t counts[GENERATED_KINDS][2])
{
	char line[1024];
	struct datatype_record record;
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		struct slice text = {line, strlen(line) - 1};
		assert_int_equal(datatype_read(&reader, text, &record), DATATYPE_READ);
		uint64_t *count = counts[place_of(record.tags[0], generated_methods, 3) * 4 +
					 place_of(record.tags[1], generated_statuses, 4)];
		assert_int_equal(record.refused, 0);
		count[0]++;
		count[1] += record.numbers[0].value.bits; /* none is 0 */
	}
	fclose(file);
}

static void counts_and_sums_are_those_of_awk(void **state)
{
	char path[] = "/tmp/granary-datatypes-XXXXXX", command[300], said[1000], line[100];
	uint64_t counts[GENERATED_KINDS][2] = {0}, lines = 0;
	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	generate(path);
	use("access");
	count_lines(path, counts);
	snprintf(command, sizeof(command),
		 "awk '{k=substr($6,2)\" \"$9; n[k]++; s[k]+=$10} "
		 "END{for(k in n) printf(\"%%s %%d %%d\\n\", k, n[k], s[k])}' %s",
		 path);
	FILE *awk = popen(command, "r");
	assert_non_null(awk);
	said[fread(said, 1, sizeof(said) - 1, awk)] = 0;
	assert_int_equal(pclose(awk), 0);
	unlink(path);
	for (size_t i = 0; i < GENERATED_KINDS; i++) {
		snprintf(line, sizeof(line), "%s %s %llu %llu\n", generated_methods[i / 4],
			 generated_statuses[i % 4], (unsigned long long)counts[i][0],
			 (unsigned long long)counts[i][1]);
		if (!strstr(said, line))
			fail_msg("%snot among\n%s", line, said);
		lines += counts[i][0];
	}
	assert_int_equal(lines, GENERATED_LINES);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static void samples_of_json(void **state)
{
	(void)state;
	use("{format: json, samples: {tags: {q: queue.name}, values: [took, depth]}, "
	    "units: {took: ms}}");
	assert_record("{\"queue\":{\"name\":\"in\"},\"took\":1.5,\"depth\":\"7\"}",
		      "q=in a.took=1.5:ms a.depth=7 !0");
	assert_record("{\"took\":1,\"depth\":\"x\"}", "a.took=1:ms !1");
	assert_result("{\"depth\":\"x\"}", DATATYPE_NOT);
	assert_result("{\"other\":1}", DATATYPE_NOT);
}

static void all_values(void **state)
{
	(void)state;
	use("{format: logfmt, samples: {tags: [id], values: '*', except: [ts]}, "
	    "units: {mem: KiB}, prefix: p}");
	assert_record("id=7 ts=1700000000 mem=2 mem2=2 name=x load=0.5 share=7%",
		      "id=7 p.mem=2048:bytes p.mem2=2 p.load=0.5 p.share=7 !0");
	assert_result("id=7 ts=1 name=x", DATATYPE_NOT);
	/* A metric may not be called so. */
	assert_record("a=1 b\x7f=2 c=3", "p.a=1 p.c=3 !1");
}

static void df(void **state)
{
	(void)state;
	use("df");
	assert_result("Filesystem              1K-blocks     Used Available Use% Mounted on",
		      DATATYPE_PASSED);
	assert_record("/dev/vda                264212084 22621100  72880164  24% /my disk",
		      "filesystem=/dev/vda mount=/my disk a.1K-blocks=270553174016:bytes "
		      "a.Used=23164006400:bytes a.Available=74629287936:bytes a.Use%=24:percent "
		      "!0");
	assert_result("Filesystem               Size  Used Avail Use% Mounted on", DATATYPE_PASSED);
	assert_record("model_tools              4.0K     0  1.5G   0% /mnt",
		      "filesystem=model_tools mount=/mnt a.Size=4096.0:bytes a.Used=0:bytes "
		      "a.Avail=1610612736.0:bytes a.Use%=0:percent !0");
	assert_result("tmpfs 1", DATATYPE_NOT);
}

static void iostat(void **state)
{
	(void)state;
	use("iostat");
	assert_result("Linux 6.1.0 (host1) \t11/29/26 \t_x86_64_\t(2 CPU)", DATATYPE_PASSED);
	assert_result("", DATATYPE_PASSED);
	assert_result("avg-cpu:  %user   %nice %system %iowait  %steal   %idle", DATATYPE_PASSED);
	assert_record("          38.16   30.34   15.66    0.26    0.67   14.91",
		      "a.%user=38.16 a.%nice=30.34 a.%system=15.66 a.%iowait=0.26 a.%steal=0.67 "
		      "a.%idle=14.91 !0");
	assert_result("", DATATYPE_PASSED);
	assert_result("Device            r/s     rkB/s  %util", DATATYPE_PASSED);
	assert_record("vda             46.47    808,17   2.81",
		      "device=vda a.r/s=46.47 a.rkB/s=808.17 a.%util=2.81 !0");
}

static void sar(void **state)
{
	(void)state;
	use("sar");
	assert_result("Linux 6.1.0 (host1) \t11/29/26 \t_x86_64_\t(2 CPU)", DATATYPE_PASSED);
	assert_result("", DATATYPE_PASSED);
	assert_result("19:14:25        CPU     %user     %idle", DATATYPE_PASSED);
	assert_record("19:14:26          0     31.03      0.00",
		      "cpu=0 a.%user=31.03 a.%idle=0.0 !0");
	assert_result("Average:          0     31.03      0.00", DATATYPE_PASSED);
	assert_result("", DATATYPE_PASSED);
	assert_result("07:14:25 PM        IFACE   rxpck/s", DATATYPE_PASSED);
	assert_record("07:14:26 PM         eth0      4.00", "interface=eth0 a.rxpck/s=4.0 !0");
}

static void top(void **state)
{
	(void)state;
	const struct datatype *rule = use("top");
	assert_int_equal(rule->kind, DATATYPE_EVENTS);
	assert_result("top - 19:14:25 up  4:26,  0 user,  load average: 9.00, 9.86, 6.77",
		      DATATYPE_PASSED);
	assert_result("MiB Mem :  24105.1 total,  18799.6 free", DATATYPE_PASSED);
	assert_result("", DATATYPE_PASSED);
	assert_result(
		"  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND",
		DATATYPE_PASSED);
	assert_record(" 2378 root      30  10   24532  12456   6892 R  70.6   0.1   0:27.29 m1 -x",
		      "user=root command=m1 -x a.%CPU=70.6:percent a.%MEM=0.1:percent "
		      "a.RES=12754944:bytes !0");
	assert_record("    1 root      10 -10   1.5t   2.5g   5960 S   0.0   0.1   0:07.52 init",
		      "user=root command=init a.%CPU=0.0:percent a.%MEM=0.1:percent "
		      "a.RES=2684354560.0:bytes !0");
}

static void vmstat(void **state)
{
	(void)state;
	use("vmstat");
	assert_result("procs -----------memory---------- ---swap--", DATATYPE_PASSED);
	assert_result(" r  b   swpd   free   buff  cache   si   so", DATATYPE_PASSED);
	assert_record(" 6  0      0 19267912  70268 5075436    0    0",
		      "a.r=6 a.b=0 a.swpd=0 a.free=19267912 a.buff=70268 a.cache=5075436 a.si=0 "
		      "a.so=0 !0");
}

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_documents_example),
		TEST(hosts_are_read_without_a_section),
		TEST(access_logs_are_read_without_a_section),
		TEST(hosts_of_our_agents),
		TEST(what_is_shipped_may_be_changed),
		TEST(a_changed_rule_has_another_hash),
		TEST(rules_that_are_none),
		TEST(a_mistake_is_named_with_its_line),
		TEST(texts_beside_values),
		TEST(access_logs),
		TEST(a_tag_that_the_catalog_refuses_is_not_read),
		TEST(conditions),
		TEST(counts_and_sums_are_those_of_awk),
		TEST(samples_of_json),
		TEST(all_values),
		TEST(df),
		TEST(iostat),
		TEST(sar),
		TEST(top),
		TEST(vmstat),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
