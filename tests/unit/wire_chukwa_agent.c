/* Lines of Chukwa's agents. What is expected is worked by hand from the grammar, but for ids: those
 * of adaptors without a name are Chukwa's own example, or by md5sum(1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/chukwa_agent.h"
#include "wire/md5.h"

#define PACKAGE "org.apache.hadoop.chukwa.datacollection.adaptor."

enum { ROOM_BYTES = 1 << 20 };

struct rig {
	struct arena arena;
	struct chukwa_add add;
	struct chukwa_adaptor adaptor;
	struct errbuf e;
};

static int rig_open(void **state)
{
	static struct rig rig;
	rig = (struct rig){.e = {""}};
	arena_init(&rig.arena, ROOM_BYTES);
	*state = &rig;
	return 0;
}

static int rig_close(void **state)
{
	arena_release(&((struct rig *)*state)->arena);
	return 0;
}

static void assert_text(struct slice text, const char *expected)
{
	if (!slice_equal(text, slice_of(expected)))
		fail_msg("\"%.*s\" is not \"%s\"", (int)text.len, text.data, expected);
}

static int parse(struct rig *rig, struct slice line)
{
	rig->e.text[0] = 0;
	return chukwa_add_parse(line, &rig->arena, &rig->add, &rig->e);
}

static void assert_refused(struct rig *rig, struct slice line, const char *sentence)
{
	assert_int_equal(parse(rig, line), ERR_INVALID);
	assert_string_equal(rig->e.text, sentence);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void lines_that_are_good(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *line, *id, *class, *datatype, *params;
		uint64_t offset;
	} cases[] = {
		/* Chukwa's own example of an id. */
		{"add filetailer.FileTailingAdaptor BarData /foo/bar 0",
		 "adaptor_2c1aee0061e5c97e0424269e09027d32", "filetailer.FileTailingAdaptor",
		 "BarData", "/foo/bar", 0},
		/* The same adaptor under another spelling has another id. */
		{"add " PACKAGE "filetailer.FileTailingAdaptor BarData /foo/bar 0",
		 "adaptor_2eb94fc204ecb10796b93c9b4e87e388",
		 PACKAGE "filetailer.FileTailingAdaptor", "BarData", "/foo/bar", 0},
		/* Neither blanks around words nor the offset are part of the id. */
		{" \taDd\t filetailer.FileTailingAdaptor \t BarData\t/foo/bar  114027 \t",
		 "adaptor_2c1aee0061e5c97e0424269e09027d32", "filetailer.FileTailingAdaptor",
		 "BarData", "/foo/bar", 114027},
		/* No parameters. */
		{"add UDPAdaptor raw 7", "adaptor_c01b2657e0dc13c0d8fe52150c8a14cd", "UDPAdaptor",
		 "raw", "", 7},
		/* Blanks within parameters stay. */
		{"add FileAdaptor raw /a  b 0", "adaptor_3fecbfc089fe72eef366c588c7db47f1",
		 "FileAdaptor", "raw", "/a  b", 0},
		/* Numbers within parameters; only the last one is the offset. */
		{"ADD a = X 1 2 /3 4 5", "adaptor_a", "X", "1", "2 /3 4", 5},
		{"ADD adaptor_7 = filetailer.LWFTAdaptor syslog 100 /var/log/x 4096", "adaptor_7",
		 "filetailer.LWFTAdaptor", "syslog", "100 /var/log/x", 4096},
		{"add a=X t 0", "adaptor_a", "X", "t", "", 0},
		{"add a =X t 0", "adaptor_a", "X", "t", "", 0},
		{"add\ta\t=\tX\tt\tp\t0", "adaptor_a", "X", "t", "p", 0},
		/* Not the first one, and so no name; a prefix of a prefix. */
		{"add a = X t=u =v w= 0", "adaptor_a", "X", "t=u", "=v w=", 0},
		{"add adaptor = X t 0", "adaptor_adaptor", "X", "t", "", 0},
		{"add adaptor_ = X t 0", "adaptor_", "X", "t", "", 0},
		{"add ADAPTOR_a = X t 0", "adaptor_ADAPTOR_a", "X", "t", "", 0},
		{"add #a = #X #t # 0", "adaptor_#a", "#X", "#t", "#", 0},
		{"add add = add add add 00009223372036854775807", "adaptor_add", "add", "add",
		 "add", INT64_MAX},
		{"add \xc3\xa4 = X t /\xe2\x82\xac 0", "adaptor_\xc3\xa4", "X", "t",
		 "/\xe2\x82\xac", 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse(rig, slice_of(cases[i].line)), 0);
		assert_text(rig->add.id, cases[i].id);
		assert_text(rig->add.class, cases[i].class);
		assert_text(rig->add.datatype, cases[i].datatype);
		assert_text(rig->add.params, cases[i].params);
		assert_true(rig->add.offset == cases[i].offset);
	}
}

static void lines_that_say_nothing(void **state)
{
	struct rig *rig = *state;
	static const char *const lines[] = {"", " ", "\t \t", "#", "# add X t 0", " \t# \xff\x01"};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		assert_int_equal(parse(rig, slice_of(lines[i])), ERR_NOT_FOUND);
}

static void lines_that_are_refused(void **state)
{
	struct rig *rig = *state;
	static const struct {
		struct slice line;
		const char *sentence;
	} cases[] = {
		{SLICE("add"), "it has no class"},
		{SLICE("add \t"), "it has no class"},
		{SLICE("add X"), "it has no datatype behind its class X"},
		{SLICE("add 0"), "it has no datatype behind its class 0"},
		{SLICE("add X t"), "it has no offset behind its datatype t"},
		{SLICE("add X 0"), "it has no offset behind its datatype 0"},
		{SLICE("add a = X 0"), "it has no offset behind its datatype 0"},
		{SLICE("add a ="), "it has no class"},
		{SLICE("add = X t 0"), "it has no name before its ="},
		{SLICE("add =X t 0"), "it has no name before its ="},
		{SLICE("add a = = X t 0"), "its class = has a ="},
		{SLICE("add a=b=c t 0"), "its class b=c has a ="},
		{SLICE("addX t 0"), "it begins with addX, not with add"},
		{SLICE("ad X t 0"), "it begins with ad, not with add"},
		{SLICE("list"), "it begins with list, not with add"},
		{SLICE("\xc2\xa0"
		       "add X t 0"),
		 "it begins with \xc2\xa0"
		 "add, not with add"},
		{SLICE("add X t /foo"),
		 "its last word has to be the offset, a number, and is /foo"},
		{SLICE("add X t /foo 0 x"),
		 "its last word has to be the offset, a number, and is x"},
		{SLICE("add X t /foo -1"),
		 "its last word has to be the offset, a number, and is -1"},
		{SLICE("add X t /foo +1"),
		 "its last word has to be the offset, a number, and is +1"},
		{SLICE("add X t /foo 1.0"),
		 "its last word has to be the offset, a number, and is 1.0"},
		{SLICE("add X t /foo 0x10"),
		 "its last word has to be the offset, a number, and is 0x10"},
		{SLICE("add X t /foo \xd9\xa3"),
		 "its last word has to be the offset, a number, and is \xd9\xa3"},
		{SLICE("add X t 9223372036854775808"),
		 "its offset 9223372036854775808 is above 9223372036854775807"},
		{SLICE("add X t 18446744073709551616"),
		 "its offset 18446744073709551616 is above 9223372036854775807"},
		{SLICE("add X t 99999999999999999999999999"),
		 "its offset 99999999999999999999999999 is above 9223372036854775807"},
		{SLICE("add X t /a\0b 0"), "its byte 11 is a control character, 0x00"},
		{SLICE("add X t 0\0"), "its byte 10 is a control character, 0x00"},
		{SLICE("add X t 0\r"), "its byte 10 is a control character, 0x0d"},
		{SLICE("add X t 0\nadd Y t 0"), "its byte 10 is a control character, 0x0a"},
		{SLICE("\0add X t 0"), "its byte 1 is a control character, 0x00"},
		{SLICE("add X t /\x7f 0"), "its byte 10 is a control character, 0x7f"},
		{SLICE("add X t /\xff 0"), "its byte 10 is not UTF-8"},
		{SLICE("add X t /\xc0\xaf 0"), "its byte 10 is not UTF-8"},
		{SLICE("add X t 0\xe2\x82"), "its byte 10 is not UTF-8"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(rig, cases[i].line, cases[i].sentence);
}

/* One byte less is good, and one more is not. */
static void long_lines(void **state)
{
	struct rig *rig = *state;
	enum { HUGE_BYTES = 1000000 };
	char *line = mem_alloc(HUGE_BYTES);
	memset(line, 'x', HUGE_BYTES);
	memcpy(line, "add X t ", 8);
	assert_refused(rig, (struct slice){line, HUGE_BYTES},
		       "it has 1000000 bytes, and 8192 are allowed");
	memcpy(line + 8190, " 0", 2);
	assert_int_equal(parse(rig, (struct slice){line, 8192}), 0);
	assert_int_equal(rig->add.params.len, 8182);
	memcpy(line + 8190, "x 0", 3);
	assert_refused(rig, (struct slice){line, 8193}, "it has 8193 bytes, and 8192 are allowed");
	/* Blanks are bytes, too; nor do zeros before an offset count. */
	memset(line, ' ', HUGE_BYTES);
	assert_int_equal(parse(rig, (struct slice){line, HUGE_BYTES}), ERR_NOT_FOUND);
	memset(line, '0', HUGE_BYTES);
	memcpy(line, "add X t ", 8);
	assert_int_equal(parse(rig, (struct slice){line, 1000}), 0);
	assert_true(rig->add.offset == 0);
	/* A name: 247 bytes and the prefix of 8 are 255. */
	memset(line, 'n', HUGE_BYTES);
	memcpy(line, "add ", 4);
	memcpy(line + 4 + 247, "=X t 0", 6);
	assert_int_equal(parse(rig, (struct slice){line, 4 + 247 + 6}), 0);
	assert_int_equal(rig->add.id.len, 255);
	memcpy(line + 4 + 247, "n=X t 0", 7);
	assert_refused(rig, (struct slice){line, 4 + 248 + 6},
		       "its name has 248 bytes, and 247 are allowed");
	memset(line + 4, 'n', 256);
	memcpy(line + 4, "adaptor_", 8);
	memcpy(line + 4 + 255, "=X t 0", 6);
	assert_int_equal(parse(rig, (struct slice){line, 4 + 255 + 6}), 0);
	memcpy(line + 4 + 255, "n", 1);
	memcpy(line + 4 + 256, "=X t 0", 6);
	assert_refused(rig, (struct slice){line, 4 + 256 + 6},
		       "its name has 256 bytes, and 255 are allowed");
	mem_free(line);
}

static void an_arena_that_is_full(void **state)
{
	struct rig *rig = *state;
	struct arena small;
	arena_init(&small, 8);
	assert_int_equal(chukwa_add_parse(SLICE("add X t 0"), &small, &rig->add, &rig->e),
			 ERR_LIMIT);
	arena_release(&small);
}

static void ends_of_lines(void **state)
{
	(void)state;
	static const char *const expected[] = {"add a", "", "#b", "\rc", "d\r", "e"};
	struct slice text = SLICE("add a\r\n\n#b\n\rc\nd\r\r\ne"), line;
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		assert_true(slice_take_text_line(&text, &line));
		assert_text(line, expected[i]);
	}
	assert_false(slice_take_text_line(&text, &line));
	/* A line that has an end is the last one; one that has none may have its \r. */
	text = SLICE("a\n");
	assert_true(slice_take_text_line(&text, &line));
	assert_false(slice_take_text_line(&text, &line));
	text = SLICE("a\r");
	assert_true(slice_take_text_line(&text, &line));
	assert_text(line, "a");
	assert_false(slice_take_text_line(&text, &line));
	text = (struct slice){NULL, 0};
	assert_false(slice_take_text_line(&text, &line));
}

/* RFC 1321, A.5. */
static void md5_of_pieces(void **state)
{
	(void)state;
	char hex[MD5_HEX_BYTES];
	const struct slice abc[] = {SLICE("a"), {NULL, 0}, SLICE("bc")};
	assert_int_equal(md5_hex(NULL, 0, hex), 0);
	assert_memory_equal(hex, "d41d8cd98f00b204e9800998ecf8427e", MD5_HEX_BYTES);
	assert_int_equal(md5_hex(abc, ARRAY_LEN(abc), hex), 0);
	assert_memory_equal(hex, "900150983cd24fb0d6963f7d28e17f72", MD5_HEX_BYTES);
}

/* ---- Classes --------------------------------------------------------------------------------- */

static void classes(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum chukwa_kind kind;
		enum chukwa_records records;
	} cases[] = {
		{"filetailer.LWFTAdaptor", CHUKWA_TAIL, CHUKWA_RAW},
		{"filetailer.FileTailingAdaptor", CHUKWA_TAIL, CHUKWA_RAW},
		{"filetailer.CharFileTailingAdaptorUTF8", CHUKWA_TAIL, CHUKWA_LINES},
		{"filetailer.CharFileTailingAdaptorUTF8NewLineEscaped", CHUKWA_TAIL,
		 CHUKWA_ESCAPED},
		{"filetailer.FileTailingAdaptorPreserveLines", CHUKWA_TAIL, CHUKWA_WHOLE_LINES},
		{"filetailer.RCheckFTAdaptor", CHUKWA_TAIL, CHUKWA_RAW},
		{"FileAdaptor", CHUKWA_FILE, CHUKWA_RAW},
		{"DirTailingAdaptor", CHUKWA_DIRECTORY, CHUKWA_RAW},
		{"RegExDirTailingAdaptor", CHUKWA_DIRECTORY, CHUKWA_RAW},
		{"ExecAdaptor", CHUKWA_EXEC, CHUKWA_RAW},
		{"UDPAdaptor", CHUKWA_UDP, CHUKWA_RAW},
		{"SyslogAdaptor", CHUKWA_SYSLOG, CHUKWA_RAW},
		{"SocketAdaptor", CHUKWA_NEEDS_JAVA, CHUKWA_RAW},
		{"JMXAdaptor", CHUKWA_NEEDS_JAVA, CHUKWA_RAW},
		{"jms.JMSAdaptor", CHUKWA_NEEDS_JAVA, CHUKWA_RAW},
		{"OozieAdaptor", CHUKWA_NEEDS_JAVA, CHUKWA_RAW},
		{"sigar.SystemMetrics", CHUKWA_HOST_METRICS, CHUKWA_RAW},
		{"MemBuffered", CHUKWA_BUFFERED, CHUKWA_RAW},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char full[256];
		int len = snprintf(full, sizeof(full), PACKAGE "%s", cases[i].name);
		const struct chukwa_class *class = chukwa_class_find(slice_of(cases[i].name));
		assert_non_null(class);
		assert_int_equal(class->kind, cases[i].kind);
		assert_int_equal(class->records, cases[i].records);
		assert_ptr_equal(chukwa_class_find((struct slice){full, (size_t)len}), class);
	}
}

static void classes_that_are_none(void **state)
{
	(void)state;
	static const char *const names[] = {
		"",
		".",
		"LWFTAdaptor",
		"filetailer.",
		"filetailer.LWFTAdaptor.",
		"filetailer.lwftadaptor",
		".filetailer.LWFTAdaptor",
		"adaptor.filetailer.LWFTAdaptor",
		PACKAGE,
		PACKAGE PACKAGE "FileAdaptor",
		PACKAGE "LWFTAdaptor",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_null(chukwa_class_find(slice_of(names[i])));
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static int read_adaptor(struct rig *rig, const char *class, const char *params, uint64_t offset)
{
	rig->add = (struct chukwa_add){
		.class = slice_of(class), .params = slice_of(params), .offset = offset};
	rig->e.text[0] = 0;
	return chukwa_adaptor_read(&rig->add, &rig->adaptor, &rig->e);
}

static void params_of_tails_and_files(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *class, *params, *path;
		uint64_t first;
		bool delete;
	} cases[] = {
		{"filetailer.LWFTAdaptor", "/var/log/x", "/var/log/x", 0, false},
		{"filetailer.LWFTAdaptor", "1000 /var/log/x", "/var/log/x", 1000, false},
		{"filetailer.LWFTAdaptor", "0 /my  own\tfile 7", "/my  own\tfile 7", 0, false},
		{"filetailer.LWFTAdaptor", "1 2 3", "2 3", 1, false},
		/* A number alone is a path, and so is what only begins with one. */
		{"filetailer.LWFTAdaptor", "12", "12", 0, false},
		{"filetailer.LWFTAdaptor", "99999999999999999999", "99999999999999999999", 0,
		 false},
		{"filetailer.LWFTAdaptor", "1/x y", "1/x y", 0, false},
		{"filetailer.LWFTAdaptor", "-1 /x", "-1 /x", 0, false},
		{"filetailer.LWFTAdaptor", "d:5 7 /x", "d:5 7 /x", 0, false},
		{"filetailer.LWFTAdaptor", "/x delete", "/x delete", 0, false},
		{"filetailer.RCheckFTAdaptor", "/x", "/x", 0, false},
		{"filetailer.RCheckFTAdaptor", "d:1300000000000 7 /x y", "/x y", 7, false},
		{"filetailer.RCheckFTAdaptor", "d:1300000000000\t/x", "/x", 0, false},
		{"filetailer.RCheckFTAdaptor", "7 /x", "/x", 7, false},
		{"filetailer.RCheckFTAdaptor", "7 d:5 /x", "d:5 /x", 7, false},
		{"filetailer.RCheckFTAdaptor", "d:5", "d:5", 0, false},
		{"filetailer.RCheckFTAdaptor", "d: /x", "d: /x", 0, false},
		{"filetailer.RCheckFTAdaptor", "d:5a /x", "d:5a /x", 0, false},
		{"filetailer.RCheckFTAdaptor", "d:5 d:6 /x", "d:6 /x", 0, false},
		{"FileAdaptor", "/x", "/x", 0, false},
		{"FileAdaptor", "/x delete", "/x", 0, true},
		{"FileAdaptor", "5 /x", "/x", 5, false},
		{"FileAdaptor", "5 /x y \t delete", "/x y", 5, true},
		{"FileAdaptor", "delete", "delete", 0, false},
		{"FileAdaptor", "5 delete", "5", 0, true},
		{"FileAdaptor", "delete delete", "delete", 0, true},
		{"FileAdaptor", "/x Delete", "/x Delete", 0, false},
		{"FileAdaptor", "/xdelete", "/xdelete", 0, false},
		{"FileAdaptor", "delete /x", "delete /x", 0, false},
		{"FileAdaptor", "9223372036854775807 /x", "/x", INT64_MAX, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(read_adaptor(rig, cases[i].class, cases[i].params, 1000), 0);
		assert_text(rig->adaptor.path, cases[i].path);
		assert_true(rig->adaptor.first == cases[i].first);
		assert_int_equal(rig->adaptor.delete, cases[i].delete);
		assert_int_equal(rig->adaptor.pattern.len, 0);
		assert_null(rig->adaptor.child);
	}
}

static void params_of_directories(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *class, *params, *path, *pattern, *child;
	} cases[] = {
		{"DirTailingAdaptor", "/var/log filetailer.LWFTAdaptor", "/var/log", "",
		 "filetailer.LWFTAdaptor"},
		{"DirTailingAdaptor", "/var/log *.log\tfiletailer.LWFTAdaptor", "/var/log", "*.log",
		 "filetailer.LWFTAdaptor"},
		{"DirTailingAdaptor", "/my own logs  * " PACKAGE "FileAdaptor", "/my own logs", "*",
		 PACKAGE "FileAdaptor"},
		/* The second of three words is the pattern, whatever it looks like. */
		{"DirTailingAdaptor", "/my logs FileAdaptor", "/my", "logs", "FileAdaptor"},
		{"DirTailingAdaptor", "FileAdaptor FileAdaptor", "FileAdaptor", "", "FileAdaptor"},
		{"RegExDirTailingAdaptor", "/var/log .*\\.log[0-9]? filetailer.RCheckFTAdaptor",
		 "/var/log", ".*\\.log[0-9]?", "filetailer.RCheckFTAdaptor"},
		{"RegExDirTailingAdaptor", "/my own x+ FileAdaptor", "/my own", "x+",
		 "FileAdaptor"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(read_adaptor(rig, cases[i].class, cases[i].params, 0), 0);
		assert_text(rig->adaptor.path, cases[i].path);
		assert_text(rig->adaptor.pattern, cases[i].pattern);
		assert_text(rig->adaptor.child_name, cases[i].child);
		assert_ptr_equal(rig->adaptor.child, chukwa_class_find(rig->adaptor.child_name));
		assert_int_equal(rig->adaptor.class->regex, cases[i].class[0] == 'R');
	}
}

static void params_that_are_refused(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *class, *params, *sentence;
		uint64_t offset;
	} cases[] = {
		{"LWFTAdaptor", "/x",
		 "there is no class LWFTAdaptor, but there is "
		 "filetailer.LWFTAdaptor"},
		{"Adaptor", "/x", "there is no class Adaptor"},
		{"com.example.X", "/x", "there is no class com.example.X"},
		{"", "/x", "there is no class "},
		{"filetailer.LWFTAdaptor", "", "it has no path"},
		{"filetailer.RCheckFTAdaptor", "", "it has no path"},
		{"FileAdaptor", "", "it has no path"},
		{"filetailer.LWFTAdaptor", "9223372036854775808 /x",
		 "its offset of the first byte 9223372036854775808 is above 9223372036854775807"},
		{"FileAdaptor", "18446744073709551617 /x",
		 "its offset of the first byte 18446744073709551617 is above "
		 "9223372036854775807"},
		{"filetailer.LWFTAdaptor", "100 /x",
		 "its offset 99 is in front of the first byte of the file, which is at 100", 99},
		{"filetailer.RCheckFTAdaptor", "d:5 1 /x",
		 "its offset 0 is in front of the first byte of the file, which is at 1", 0},
		{"DirTailingAdaptor", "",
		 "it needs a directory, and the class of its files' adaptors"},
		{"DirTailingAdaptor", "FileAdaptor",
		 "it needs a directory, and the class of its files' adaptors"},
		{"DirTailingAdaptor", "/var/log",
		 "it needs a directory, and the class of its files' "
		 "adaptors"},
		{"DirTailingAdaptor", "FileAdaptor /var/log",
		 "its files: there is no class /var/log"},
		{"DirTailingAdaptor", "/var/log *.log LWFTAdaptor",
		 "its files: there is no class LWFTAdaptor, but there is filetailer.LWFTAdaptor"},
		{"DirTailingAdaptor", "/var/log UDPAdaptor", "its files: UDPAdaptor reads no file"},
		{"DirTailingAdaptor", "/var/log DirTailingAdaptor",
		 "its files: DirTailingAdaptor reads no file"},
		{"RegExDirTailingAdaptor", "/var/log FileAdaptor",
		 "it needs a regular expression behind its directory /var/log"},
		{"RegExDirTailingAdaptor", "FileAdaptor",
		 "it needs a directory, and the class of its files' adaptors"},
		{"UDPAdaptor", "", "its port '' is not 1 to 65535"},
		{"UDPAdaptor", "0", "its port '0' is not 1 to 65535"},
		{"SyslogAdaptor", "5 6", "its port '5 6' is not 1 to 65535"},
		{"ExecAdaptor", "", "it has no command"},
		{"ExecAdaptor", "0 df", "it is to be run each 0 seconds, which is not 1 to 604800"},
		{"ExecAdaptor", "604801 df",
		 "it is to be run each 604801 seconds, which is not 1 to 604800"},
		{"RestAdaptor", "", "it needs a URI, and how often it is asked for"},
		{"RestAdaptor", "60", "it needs a URI, and how often it is asked for"},
		{"RestAdaptor", "http://h x",
		 "it is to be run each x seconds, which is not 1 to 604800"},
		{"sigar.SystemMetrics", "0",
		 "it is to be run each 0 seconds, which is not 1 to 604800"},
		{"sigar.SystemMetrics", "1 2",
		 "it is to be run each 1 2 seconds, which is not 1 to 604800"},
		{"HeartbeatAdaptor", "60",
		 "it needs checkers in brackets, and how often they are asked"},
		{"HeartbeatAdaptor", "() 60",
		 "it needs checkers in brackets, and how often they are asked"},
		{"HeartbeatAdaptor", "(a)",
		 "it needs checkers in brackets, and how often they are asked"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(
			read_adaptor(rig, cases[i].class, cases[i].params, cases[i].offset),
			ERR_INVALID);
		assert_string_equal(rig->e.text, cases[i].sentence);
	}
}

/* An adaptor may begin at its file's first byte; if it reads no file, only its class is told. */
static void params_at_the_edge(void **state)
{
	struct rig *rig = *state;
	assert_int_equal(read_adaptor(rig, "filetailer.LWFTAdaptor", "100 /x", 100), 0);
	assert_int_equal(read_adaptor(rig, "FileAdaptor", "100 /x", 0), 0);
	assert_int_equal(read_adaptor(rig, "ExecAdaptor", "604800 df -k", 0), 0);
	assert_int_equal(rig->adaptor.seconds, 604800);
	assert_true(slice_equal(rig->adaptor.command, SLICE("df -k")));
	assert_int_equal(read_adaptor(rig, "ExecAdaptor", "7", 0), 0);
	assert_int_equal(rig->adaptor.seconds, 5);
	assert_true(slice_equal(rig->adaptor.command, SLICE("7")));
	assert_int_equal(read_adaptor(rig, "UDPAdaptor", "65535", 0), 0);
	assert_true(slice_equal(rig->adaptor.port, SLICE("65535")));
	assert_int_equal(read_adaptor(rig, "RestAdaptor", "http://h/a 604800", 0), 0);
	assert_int_equal(rig->adaptor.seconds, 604800);
	assert_true(slice_equal(rig->adaptor.uri, SLICE("http://h/a")));
	assert_int_equal(read_adaptor(rig, "sigar.SystemMetrics", "", 0), 0);
	assert_int_equal(rig->adaptor.seconds, 5);
	assert_int_equal(read_adaptor(rig, "sigar.SystemMetrics", "1", 0), 0);
	assert_int_equal(rig->adaptor.seconds, 1);
	assert_int_equal(read_adaptor(rig, "JMXAdaptor", "localhost 9 60 *", 0), 0);
	assert_int_equal(rig->adaptor.path.len, 0);
	assert_int_equal(rig->adaptor.class->kind, CHUKWA_NEEDS_JAVA);
}

static void heartbeats(void **state)
{
	struct rig *rig = *state;
	struct slice left, uri;
	assert_int_equal(read_adaptor(rig, "HeartbeatAdaptor",
				      "(ChukwaStatusChecker ,a.b.HttpStatusChecker n http://h/) 60",
				      0),
			 0);
	assert_int_equal(rig->adaptor.seconds, 60);
	left = rig->adaptor.checkers;
	assert_int_equal(chukwa_take_checker(&left, &uri, NULL), 0);
	assert_int_equal(uri.len, 0);
	assert_int_equal(chukwa_take_checker(&left, &uri, NULL), 0);
	assert_true(slice_equal(uri, SLICE("http://h/")));
	assert_int_equal(chukwa_take_checker(&left, &uri, NULL), ERR_NOT_FOUND);
	static const char *const bad[] = {"x", "HttpStatusChecker http://h/", "a http://h/",
					  "ChukwaStatusChecker x", ",ChukwaStatusChecker"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		left = slice_of(bad[i]);
		assert_int_equal(chukwa_take_checker(&left, &uri, NULL), ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_that_are_good),
		cmocka_unit_test(lines_that_say_nothing),
		cmocka_unit_test(lines_that_are_refused),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(an_arena_that_is_full),
		cmocka_unit_test(ends_of_lines),
		cmocka_unit_test(md5_of_pieces),
		cmocka_unit_test(classes),
		cmocka_unit_test(classes_that_are_none),
		cmocka_unit_test(params_of_tails_and_files),
		cmocka_unit_test(params_of_directories),
		cmocka_unit_test(params_that_are_refused),
		cmocka_unit_test(params_at_the_edge),
		cmocka_unit_test(heartbeats),
	};
	return cmocka_run_group_tests(tests, rig_open, rig_close);
}
