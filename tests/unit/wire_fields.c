/* Fields of lines of logs. What is expected was read from the lines by eye. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "wire/fields.h"

#define COMBINED                                                                                   \
	"<ip> <ident> <user> [<time>] \"<method> <path> <protocol>\" <status> <bytes> "            \
	"\"<referer>\" \"<agent>\""

static struct arena arena;
static struct fields_format format;
static struct fields_reader reader;
static struct errbuf e;

static int start(void **state)
{
	(void)state;
	arena_init(&arena, 1 << 20);
	format = (struct fields_format){.kind = FIELDS_PATTERN};
	e.text[0] = 0;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	if (reader.format)
		fields_reader_release(&reader);
	reader.format = NULL;
	arena_release(&arena);
	return 0;
}

static void use(void)
{
	if (reader.format)
		fields_reader_release(&reader);
	fields_reader_init(&reader, &format);
}

static void use_pattern(const char *pattern)
{
	format = (struct fields_format){.kind = FIELDS_PATTERN};
	assert_int_equal(fields_format_add(&format, slice_of(pattern), &arena, &e), 0);
	use();
}

static void use_kind(enum fields_kind kind)
{
	format.kind = kind;
	use();
}

/* The fields as `name=text|name=text`. */
static void assert_fields(const char *line, const char *expected)
{
	struct buf got;
	buf_init(&got, 64 << 10);
	/* Of just that size, so that a byte too far is seen. */
	struct slice copy = mem_copy_slice(slice_of(line));
	assert_int_equal(fields_read(&reader, copy), FIELDS_READ);
	for (size_t i = 0; i < reader.count; i++) {
		const struct fields_field *field = &reader.list[i];
		if (field->text.data)
			buf_printf(&got, "%s%.*s=%.*s", got.len ? "|" : "", (int)field->name.len,
				   field->name.data, (int)field->text.len, field->text.data);
	}
	buf_append_char(&got, 0);
	assert_string_equal(got.data, expected);
	mem_free_slice(copy);
	buf_release(&got);
}

static void assert_result(const char *line, enum fields_result expected)
{
	enum fields_result result = fields_read(&reader, slice_of(line));
	if (result != expected)
		fail_msg("%d, not %d: %s", result, expected, line);
	assert_int_equal(reader.count, 0);
}

/* ---- Patterns -------------------------------------------------------------------------------- */

static void a_common_line(void **state)
{
	(void)state;
	use_pattern("<ip> - - [<time>] \"<method> <path> <_>\" <status> <bytes>");
	assert_fields("127.0.0.1 - - [29/Nov/2026:14:49:30 +0000] \"GET /a?b=c HTTP/1.1\" 200 512",
		      "ip=127.0.0.1|time=29/Nov/2026:14:49:30 +0000|method=GET|path=/a?b=c|"
		      "status=200|bytes=512");
	assert_fields("::1 - - [] \"  \" 404 -", "ip=::1|time=|method=|path=|status=404|bytes=-");
}

static void the_last_field_goes_to_the_end(void **state)
{
	(void)state;
	use_pattern("<a>: <b>");
	assert_fields("x: y z: w", "a=x|b=y z: w");
	assert_fields("x: ", "a=x|b=");
	assert_fields("x: y\r", "a=x|b=y");
	assert_result("\r", FIELDS_NONE);
	assert_result("x:", FIELDS_NOT);
}

static void behind_a_last_literal_anything_may_stand(void **state)
{
	(void)state;
	use_pattern("took <ms> ms");
	assert_fields("took 12 ms, and more", "ms=12");
	assert_result("it took 12 ms", FIELDS_NOT);
	assert_result("took 12 s", FIELDS_NOT);
	assert_result("", FIELDS_NONE);
}

static void a_quoted_field_ends_at_its_quote(void **state)
{
	(void)state;
	use_pattern(COMBINED);
	assert_fields(
		"1.2.3.4 - frank smith [t] \"GET /a\\\"b c HTTP/1.0\" 200 5 \"-\" \"M \\\"x\\\\\"",
		"ip=1.2.3.4|ident=-|user=frank smith|time=t|method=GET|path=/a\\\"b|"
		"protocol=c HTTP/1.0|status=200|bytes=5|referer=-|agent=M \\\"x\\\\");
	assert_fields("1.2.3.4 - - [t] \"GET /a HTTP/1.0\" 200 5 \"\" \"\" \"10.0.0.1\" 0.002",
		      "ip=1.2.3.4|ident=-|user=-|time=t|method=GET|path=/a|protocol=HTTP/1.0|"
		      "status=200|bytes=5|referer=|agent=");
	/* Requests that are none: what stands behind them is no path. */
	assert_result("1.2.3.4 - - [t] \"-\" 400 0 \"-\" \"-\"", FIELDS_NOT);
	assert_result("1.2.3.4 - - [t] \"\\x16\\x03\" 400 0 \"a b c\" \"-\"", FIELDS_NOT);
	assert_result("1.2.3.4 - - [t] \"GET /a HTTP/1.0 200 5", FIELDS_NOT);
	assert_result("1.2.3.4 - - [t] \"GET /a HTTP/1.0\"x200 5 \"-\" \"-\"", FIELDS_NOT);
	/* The quote that ends the agent is behind a backslash. */
	assert_result("1.2.3.4 - - [t] \"GET / HTTP/1.0\" 200 5 \"-\" \"x\\\"", FIELDS_NOT);
}

static void a_literal_behind_the_quote_ends_no_quoted_field(void **state)
{
	(void)state;
	use_pattern("\"<a>;<b>\" <c>");
	assert_fields("\"x;y;z\" w", "a=x|b=y;z|c=w");
	assert_result("\"x\" y;z\" w", FIELDS_NOT);
}

static void the_first_pattern_that_fits_counts(void **state)
{
	(void)state;
	use_pattern(COMBINED);
	assert_int_equal(fields_format_add(&format,
					   SLICE("<ip> <_> <_> [<time>] \"<request>\" "
						 "<status> <bytes>"),
					   &arena, &e),
			 0);
	use();
	assert_int_equal(format.names.count, 12);
	assert_int_equal(fields_format_find(&format, SLICE("status")), 7);
	assert_int_equal(fields_format_find(&format, SLICE("request")), 11);
	assert_int_equal(fields_format_find(&format, SLICE("none")), 12);
	assert_fields("1.2.3.4 - - [t] \"GET /a HTTP/1.0\" 200 5 \"r\" \"m\"",
		      "ip=1.2.3.4|ident=-|user=-|time=t|method=GET|path=/a|protocol=HTTP/1.0|"
		      "status=200|bytes=5|referer=r|agent=m");
	/* Nothing of the line before, nor of the pattern that did not fit. */
	assert_fields("1.2.3.5 - - [u] \"-\" 400 0",
		      "ip=1.2.3.5|time=u|status=400|bytes=0|request=-");
	assert_int_equal(fields_find(&reader, SLICE("status")).len, 3);
	assert_null(fields_find(&reader, SLICE("agent")).data);
}

static void a_bracket_that_begins_no_field_is_a_literal(void **state)
{
	(void)state;
	use_pattern("<<pri>>1 <a.b-c@2> <> < x> <1> <last");
	assert_fields("<13>1 y <> < x> <1> <last", "pri=13|a.b-c@2=y");
}

static void refuse(const char *pattern, const char *sentence)
{
	struct fields_format none = {.kind = FIELDS_PATTERN};
	assert_int_equal(fields_format_add(&none, slice_of(pattern), &arena, &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
	assert_int_equal(none.pattern_count, 0);
}

static void patterns_that_are_none(void **state)
{
	char pattern[FIELDS_PATTERN_MAX_BYTES + 2], *at = pattern;
	(void)state;
	refuse("", "there is no field, as <status>");
	refuse("text <", "there is no field, as <status>");
	refuse("<a> <b><c>", "behind the field <b> the next one begins at once: a text between "
			     "them says where the first one ends");
	refuse("<_><a>", "behind the field <_> the next one begins at once: a text between them "
			 "says where the first one ends");
	refuse("<a> <b> <a>", "two fields are called <a>");
	refuse("\"<a> <b>", "a quotation mark is opened that no other one closes");
	memset(pattern, 'x', sizeof(pattern));
	memcpy(pattern, "<a>", 3);
	pattern[FIELDS_PATTERN_MAX_BYTES + 1] = 0;
	refuse(pattern, "the pattern has 4097 bytes, which is longer than the maximum of 4096");
	pattern[FIELDS_PATTERN_MAX_BYTES] = 0;
	assert_int_equal(fields_format_add(&format, slice_of(pattern), &arena, &e), 0);
	pattern[1 + FIELDS_NAME_MAX_BYTES + 1] = '>';
	memset(pattern + 1, 'n', FIELDS_NAME_MAX_BYTES + 1);
	pattern[0] = '<';
	pattern[FIELDS_NAME_MAX_BYTES + 3] = 0;
	assert_int_equal(fields_format_add(&format, slice_of(pattern), &arena, &e), ERR_INVALID);
	for (int i = 0; i < FIELDS_PATTERN_MAX; i++)
		at += snprintf(at, 8, "<f%d> ", i);
	assert_int_equal(fields_format_add(&(struct fields_format){.kind = FIELDS_PATTERN},
					   slice_of(pattern), &arena, &e),
			 0);
	snprintf(at, 8, "<f%d>", FIELDS_PATTERN_MAX);
	refuse(pattern, "there are more than 64 fields");
}

static void patterns_of_one_format_are_bounded(void **state)
{
	char text[32];
	(void)state;
	for (int i = 0; i < FIELDS_PATTERNS_MAX; i++) {
		snprintf(text, sizeof(text), "%d <a>", i);
		assert_int_equal(fields_format_add(&format, slice_of(text), &arena, &e), 0);
	}
	assert_int_equal(fields_format_add(&format, SLICE("<a>"), &arena, &e), ERR_INVALID);
	assert_string_equal(e.text, "there are more than 8 patterns");
	use();
	assert_fields("7 x", "a=x");
	assert_result("8 x", FIELDS_NOT);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void members_of_objects_and_arrays(void **state)
{
	(void)state;
	use_kind(FIELDS_JSON);
	assert_fields("{\"a\":1,\"b\":{\"c\":\"x\\ty\",\"d\":{}},\"e\":[1,null,{\"f\":true}],"
		      "\"g\":[[1.50,2],[3]],\"h\":null,\"i\":18446744073709551615}",
		      "a=1|b.c=x\ty|e.0=1|e.f.2=true|g.0.0=1.50|g.0.1=2|g.1.0=3|"
		      "i=18446744073709551615");
	assert_fields(" {\"a\":\"\"} ", "a=");
	assert_fields("{\"\":{\"b\":false}}", "b=false");
	assert_int_equal(fields_read(&reader, SLICE("{}")), FIELDS_READ);
	assert_int_equal(reader.count, 0);
	assert_int_equal(fields_read(&reader, SLICE("{\"a\":1,\"a\":2}")), FIELDS_READ);
	assert_memory_equal(fields_find(&reader, SLICE("a")).data, "2", 1);
}

static void what_is_no_object_of_json(void **state)
{
	static const char *const lines[] = {"[1]",
					    "1",
					    "{",
					    "{\"a\":1",
					    "{\"a\":1}x",
					    "{'a':1}",
					    "2026-11-29 {\"a\":1}",
					    "{\"a\":\"\xff\"}"};
	(void)state;
	use_kind(FIELDS_JSON);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		assert_result(lines[i], FIELDS_NOT);
	assert_result(" \t", FIELDS_NONE);
}

static void fields_that_are_too_many_or_too_long_are_left_out(void **state)
{
	struct buf line;
	(void)state;
	use_kind(FIELDS_JSON);
	buf_init(&line, 1 << 20);
	buf_append_text(&line, "{\"a\":[");
	for (int i = 0; i < FIELDS_MAX + 1; i++)
		buf_printf(&line, "%s%d", i ? "," : "", i);
	buf_append_text(&line, "]}");
	assert_int_equal(fields_read(&reader, buf_slice(&line)), FIELDS_READ);
	assert_int_equal(reader.count, FIELDS_MAX);
	assert_true(reader.cut);
	buf_clear(&line);
	buf_printf(&line, "{\"%0*d\":1,\"%0*d\":{\"b\":[2]},\"%0*d\":3}", FIELDS_NAME_MAX_BYTES, 0,
		   FIELDS_NAME_MAX_BYTES - 3, 0, FIELDS_NAME_MAX_BYTES + 1, 0);
	assert_int_equal(fields_read(&reader, buf_slice(&line)), FIELDS_READ);
	assert_int_equal(reader.count, 1);
	assert_true(reader.cut);
	assert_fields("{\"b\":1}", "b=1");
	assert_false(reader.cut);
	buf_release(&line);
}

/* As Chukwa's SystemMetrics makes them; the totals are worked by hand. */
static void system_metrics(void **state)
{
	(void)state;
	use_kind(FIELDS_SYSTEM_METRICS);
	assert_fields(
		"{\"cpu\":[{\"combined\":0.5,\"user\":0.25,\"mhz\":\"2400\"},"
		"{\"combined\":0.25,\"user\":null}],\"uptime\":4567.5,\"loadavg\":[1.5,1,0.5],"
		"\"memory\":{\"Total\":\"1000\"},\"swap\":{\"Used\":\"7\"},"
		"\"network\":[{\"RxBytes\":7,\"TxErrors\":1},{\"RxBytes\":10},{\"RxBytes\":5}],"
		"\"disk\":[{\"Total\":100,\"Used\":20},{\"Total\":300,\"Used\":80,\"Reads\":4}],"
		"\"timestamp\":1700000000000}",
		"cpu.combined.0=0.5|cpu.user.0=0.25|cpu.mhz.0=2400|cpu.combined.1=0.25|"
		"Uptime=4567.5|LoadAverage.1=1.5|LoadAverage.5=1|LoadAverage.15=0.5|"
		"memory.Total=1000|swap.Used=7|timestamp=1700000000000|cpu.combined=0.375|"
		"cpu.user=0.25|network.RxBytes=15.0|disk.Reads=4.0|disk.Total=400.0|"
		"disk.Used=100.0|disk.PercentUsed=0.25");
	assert_fields("{\"disk\":[{\"Total\":0,\"Used\":0}]}", "disk.Total=0.0|disk.Used=0.0");
	assert_result("[]", FIELDS_NOT);
}

/* ---- key=value ------------------------------------------------------------------------------- */

static void pairs(void **state)
{
	(void)state;
	use_kind(FIELDS_LOGFMT);
	assert_fields("level=info msg=\"a \\\"b\\\" \\\\ c\\nd\" took=1.5 done empty= q=\"\" a=b=c",
		      "level=info|msg=a \"b\" \\ c\nd|took=1.5|done=|empty=|q=|a=b=c");
	assert_result("no pair here", FIELDS_NOT);
	assert_result("a=\"open", FIELDS_NOT);
	assert_result("a=\"open\\\"", FIELDS_NOT);
	assert_result("a=\"x\\", FIELDS_NOT);
	assert_result("=x a=b", FIELDS_NOT);
	assert_result("  ", FIELDS_NONE);
}

/* ---- Columns --------------------------------------------------------------------------------- */

static struct fields_words words(const char *a, const char *b)
{
	struct slice *list = arena_alloc(&arena, 2 * sizeof(*list));
	list[0] = slice_of(a);
	list[1] = b ? slice_of(b) : SLICE("");
	return (struct fields_words){list, b ? 2 : 1};
}

static void df(void **state)
{
	(void)state;
	format.columns.headers = words("Filesystem", NULL);
	format.columns.names = words("Mounted on", NULL);
	use_kind(FIELDS_COLUMNS);
	assert_result("/dev/vda 1 2 3 4% /", FIELDS_NONE);
	assert_result("Filesystem     1K-blocks     Used Available Use% Mounted on", FIELDS_NONE);
	assert_fields("/dev/vda       264212084 22621100  72880164  24% /",
		      "Filesystem=/dev/vda|1K-blocks=264212084|Used=22621100|Available=72880164|"
		      "Use%=24%|Mounted on=/");
	assert_fields("tmpfs 1 0 1 0% /my disk ",
		      "Filesystem=tmpfs|1K-blocks=1|Used=0|Available=1|Use%=0%|"
		      "Mounted on=/my disk");
	assert_result("tmpfs 1 0 1 0%", FIELDS_NOT);
	assert_result("2026-11-29T14:49:30Z exec 0 df and some more words", FIELDS_NONE);
	assert_result("tmpfs 1 0 1 0% /tmp", FIELDS_NONE);
	assert_result("Filesystem Size Mounted", FIELDS_NONE);
	assert_fields("tmpfs 1G /x", "Filesystem=tmpfs|Size=1G|Mounted=/x");
}

static void iostat(void **state)
{
	(void)state;
	use_kind(FIELDS_COLUMNS);
	assert_result("Linux 6.18.44 (vm) \t11/29/26 \t_x86_64_\t(2 CPU)", FIELDS_NONE);
	assert_result("", FIELDS_NONE);
	assert_result("avg-cpu:  %user   %nice %system %iowait  %steal   %idle", FIELDS_NONE);
	assert_fields("          38.16   30.34   15.66    0.26    0.67   14.91",
		      "%user=38.16|%nice=30.34|%system=15.66|%iowait=0.26|%steal=0.67|%idle=14.91");
	assert_result("", FIELDS_NONE);
	assert_result("loop0 6.12 27.48 6", FIELDS_NONE);
	assert_result("Device            r/s     rkB/s  %util", FIELDS_NONE);
	assert_fields("loop0            6.12     27.48   0.17",
		      "Device=loop0|r/s=6.12|rkB/s=27.48|%util=0.17");
	assert_result("vda 1 2", FIELDS_NOT);
	assert_result("  \t", FIELDS_NONE);
	/* As sysstat wrote it up to 11: this label is that of a column. */
	assert_result("Device:  tps  kB_read", FIELDS_NONE);
	assert_fields("sda     1.00   2", "Device=sda|tps=1.00|kB_read=2");
	assert_fields("  sdb     1.00   2", "Device=sdb|tps=1.00|kB_read=2");
	assert_result("sda 1.00", FIELDS_NOT);
}

static void sar(void **state)
{
	(void)state;
	format.columns.skips = words("Average:", NULL);
	use_kind(FIELDS_COLUMNS);
	assert_result("Linux 6.18.44 (vm) \t11/29/26 \t_x86_64_\t(2 CPU)", FIELDS_NONE);
	assert_result("", FIELDS_NONE);
	assert_result("19:14:25        CPU     %user     %idle", FIELDS_NONE);
	assert_fields("19:14:26        all     31.03      0.00",
		      "time=19:14:26|CPU=all|%user=31.03|%idle=0.00");
	assert_result("Average:        all     31.03      0.00", FIELDS_NONE);
	assert_result("", FIELDS_NONE);
	assert_result("07:14:25 PM  kbmemfree   kbavail", FIELDS_NONE);
	assert_fields("07:14:26 PM   19217796  24028176",
		      "time=07:14:26 PM|kbmemfree=19217796|kbavail=24028176");
}

static void top_and_vmstat(void **state)
{
	(void)state;
	format.columns.headers = words("PID", "r");
	format.columns.skips = words("procs", NULL);
	use_kind(FIELDS_COLUMNS);
	assert_result("top - 19:14:25 up  4:26,  0 user,  load average: 9.00", FIELDS_NONE);
	assert_result("MiB Swap:      0.0 total,      0.0 free,      0.0 used.", FIELDS_NONE);
	assert_result("", FIELDS_NONE);
	assert_result("  PID USER  RES S  %CPU     TIME+ COMMAND", FIELDS_NONE);
	assert_fields(" 3538 root 1.5g R  23.5   0:00.65 cc1 -o x",
		      "PID=3538|USER=root|RES=1.5g|S=R|%CPU=23.5|TIME+=0:00.65|"
		      "COMMAND=cc1 -o x");
	assert_result("procs -----------memory---------- ---swap-- --io-- -system- -cpu-",
		      FIELDS_NONE);
	assert_result(" r  b   swpd", FIELDS_NONE);
	assert_fields(" 6  0      7", "r=6|b=0|swpd=7");
}

static void another_reader_goes_on(void **state)
{
	struct buf at;
	(void)state;
	buf_init(&at, FIELDS_STATE_MAX_BYTES);
	use_kind(FIELDS_COLUMNS);
	fields_state_put(&reader, &at);
	assert_int_equal(at.len, 0);
	assert_result("avg-cpu:  %user   %idle", FIELDS_NONE);
	fields_state_put(&reader, &at);
	use();
	assert_result("          38.16   14.91", FIELDS_NONE);
	assert_int_equal(fields_state_take(&reader, buf_slice(&at)), 0);
	assert_fields("          38.16   14.91", "%user=38.16|%idle=14.91");
	for (size_t len = 1; len < at.len; len++) {
		assert_int_equal(fields_state_take(&reader, (struct slice){at.data, len}),
				 ERR_DAMAGED);
		assert_result("          38.16   14.91", FIELDS_NONE);
	}
	buf_append_char(&at, 0);
	assert_int_equal(fields_state_take(&reader, buf_slice(&at)), ERR_DAMAGED);
	at.len--;
	at.data[0] = 8;
	assert_int_equal(fields_state_take(&reader, buf_slice(&at)), ERR_DAMAGED);
	buf_release(&at);
}

static void names_that_are_too_many_are_none(void **state)
{
	char line[3 * (FIELDS_COLUMNS_MAX + 1) + 1];
	struct buf at;
	(void)state;
	for (size_t i = 0; i <= FIELDS_COLUMNS_MAX; i++)
		memcpy(line + 3 * i, "ab ", 4);
	buf_init(&at, FIELDS_STATE_MAX_BYTES);
	use_kind(FIELDS_COLUMNS);
	assert_result(line, FIELDS_NOT);
	assert_result("1 2 3", FIELDS_NONE);
	assert_result("", FIELDS_NONE);
	line[3 * FIELDS_COLUMNS_MAX] = 0;
	assert_result(line, FIELDS_NONE);
	fields_state_put(&reader, &at);
	assert_false(at.failed);
	use();
	assert_int_equal(fields_state_take(&reader, buf_slice(&at)), 0);
	for (char *p = line; *p; p++)
		*p = *p == 'a' ? '1' : *p;
	assert_int_equal(fields_read(&reader, slice_of(line)), FIELDS_READ);
	assert_int_equal(reader.count, FIELDS_COLUMNS_MAX);
	assert_memory_equal(reader.list[255].text.data, "1b", 2);
	assert_memory_equal(reader.list[255].name.data, "ab", 2);
	buf_release(&at);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static void numbers(void **state)
{
	static const struct {
		const char *text;
		uint64_t scale;
		enum value_type type;
		double f64;
		uint64_t bits;
	} cases[] = {
		{"0", 0, VALUE_I64, 0, 0},
		{"-5", 0, VALUE_I64, 0, (uint64_t)-5},
		{"9007199254740993", 0, VALUE_I64, 0, 9007199254740993},
		{"9223372036854775807", 0, VALUE_I64, 0, INT64_MAX},
		{"9223372036854775808", 0, VALUE_U64, 0, (uint64_t)INT64_MAX + 1},
		{"18446744073709551615", 0, VALUE_U64, 0, UINT64_MAX},
		{"18446744073709551616", 0, VALUE_F64, 18446744073709551616.0, 0},
		{"12%", 0, VALUE_I64, 0, 12},
		{"1.5%", 0, VALUE_F64, 1.5, 0},
		{"3,4", 0, VALUE_F64, 3.4, 0},
		{"0,17%", 0, VALUE_F64, 0.17, 0},
		{"1e3", 0, VALUE_F64, 1000, 0},
		{"7", 1, VALUE_I64, 0, 7},
		{"192K", 1, VALUE_I64, 0, 192 * 1024},
		{"4.0K", 1, VALUE_F64, 4096, 0},
		{"1.5g", 1024, VALUE_F64, 1610612736, 0},
		{"24532", 1024, VALUE_I64, 0, 25120768},
		{"2KiB", 1, VALUE_I64, 0, 2048},
		{"2kB", 1024, VALUE_I64, 0, 2000},
		{"3MB", 1, VALUE_I64, 0, 3000000},
		{"10B", 1024, VALUE_I64, 0, 10},
		{"7T", 1, VALUE_I64, 0, 7696581394432},
		{"15E", 1, VALUE_U64, 0, 17293822569102704640u},
		{"16E", 1, VALUE_F64, 18446744073709551616.0, 0},
		{"-16E", 1, VALUE_F64, -18446744073709551616.0, 0},
		{"-1K", 1, VALUE_I64, 0, (uint64_t)-1024},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct value got = {0},
			     expected = cases[i].type == VALUE_F64
						? value_f64(cases[i].f64)
						: (struct value){cases[i].bits, cases[i].type};
		if (fields_number(slice_of(cases[i].text), cases[i].scale, &got) ||
		    !value_identical(got, expected))
			fail_msg("%s: type %d, %llx", cases[i].text, got.type,
				 (unsigned long long)got.bits);
	}
}

static void what_is_no_number(void **state)
{
	static const char *const texts[] = {"",      "-",    "%",    "1.5G",  "12ms", "1,2,3",
					    "1,2.3", "0x10", "nan",  "inf",   "all",  "1 2",
					    "12%%",  "--1",  "0:01", "1.2.3", ",",    "1K%"};
	static const char *const bytes[] = {"",   "K",   "B",  "KB", "iB",
					    "5i", "5iB", "5Q", "K5", "5KK"};
	struct value value;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (fields_number(slice_of(texts[i]), 0, &value) != ERR_INVALID)
			fail_msg("%s", texts[i]);
	for (size_t i = 0; i < ARRAY_LEN(bytes); i++)
		if (fields_number(slice_of(bytes[i]), 1, &value) != ERR_INVALID)
			fail_msg("%s", bytes[i]);
	assert_int_equal(fields_number(SLICE("1e999"), 0, &value), ERR_LIMIT);
	assert_int_equal(fields_number(SLICE("1e306K"), 1, &value), ERR_LIMIT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_common_line),
		TEST(the_last_field_goes_to_the_end),
		TEST(behind_a_last_literal_anything_may_stand),
		TEST(a_quoted_field_ends_at_its_quote),
		TEST(a_literal_behind_the_quote_ends_no_quoted_field),
		TEST(the_first_pattern_that_fits_counts),
		TEST(a_bracket_that_begins_no_field_is_a_literal),
		TEST(patterns_that_are_none),
		TEST(patterns_of_one_format_are_bounded),
		TEST(members_of_objects_and_arrays),
		TEST(what_is_no_object_of_json),
		TEST(fields_that_are_too_many_or_too_long_are_left_out),
		TEST(system_metrics),
		TEST(pairs),
		TEST(df),
		TEST(iostat),
		TEST(sar),
		TEST(top_and_vmstat),
		TEST(another_reader_goes_on),
		TEST(names_that_are_too_many_are_none),
		TEST(numbers),
		TEST(what_is_no_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
