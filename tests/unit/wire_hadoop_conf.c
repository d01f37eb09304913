/* Hadoop's configuration files. What is expected is worked by hand, from XML 1.0 and from what
 * hadoop_conf.h says that we do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "wire/hadoop_conf.h"

#define CONF(inside)     "<configuration>" inside "</configuration>"
#define PROPERTY(inside) CONF("<property>" inside "</property>")
#define VALUE(value)     PROPERTY("<name>a</name><value>" value "</value>")

enum { ROOM_BYTES = 4 << 20 };

struct rig {
	struct arena arena;
	struct hadoop_conf conf;
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

/* Parses a copy of just that size, so that a sanitizer sees a byte too far. */
static int parse(struct rig *rig, struct slice text)
{
	struct slice copy = mem_copy_slice(text);
	rig->e.text[0] = 0;
	arena_reset(&rig->arena);
	int err = hadoop_conf_parse(copy, &rig->arena, &rig->conf, &rig->e);
	mem_free_slice(copy);
	return err;
}

static void assert_text(struct slice text, struct slice expected)
{
	if (!slice_equal(text, expected))
		fail_msg("\"%.*s\" is not \"%.*s\"", (int)text.len, text.data, (int)expected.len,
			 expected.data);
}

static void assert_refused(struct rig *rig, struct slice text, const char *sentence)
{
	assert_int_equal(parse(rig, text), ERR_INVALID);
	assert_string_equal(rig->e.text, sentence);
}

/* ---- What is good ---------------------------------------------------------------------------- */

static void a_whole_file(void **state)
{
	struct rig *rig = *state;
	assert_int_equal(
		parse(rig,
		      SLICE("<?xml version=\"1.0\" encoding='utf-8'?>\n"
			    "<!--\n a licence: <configuration> & -- so on\n-->\n"
			    "<?xml-stylesheet type=\"text/xsl\"  href=\"configuration.xsl\"?>\n"
			    "\n"
			    "<configuration>\n"
			    "  <property>\n"
			    "    <name>chukwaAgent.tags</name>\n"
			    "    <value>cluster=\"demo\"</value>\n"
			    "    <description>The cluster's\n    name</description>\n"
			    "  </property>\n"
			    "  <!-- none --><property><!-- a --><final>true</final><?php ?>\n"
			    "    <value>\n      9093\n    </value ><name > port </name\n>"
			    "</property>\n"
			    "</configuration>\n<!-- the end -->\n<?end?>\n")),
		0);
	assert_int_equal(rig->conf.count, 2);
	const struct hadoop_property *p = rig->conf.first;
	assert_text(p->name, SLICE("chukwaAgent.tags"));
	assert_text(p->value, SLICE("cluster=\"demo\""));
	assert_int_equal(p->line, 8);
	assert_false(p->final);
	p = p->next;
	assert_text(p->name, SLICE("port"));
	assert_text(p->value, SLICE("9093"));
	assert_int_equal(p->line, 14);
	assert_true(p->final);
	assert_null(p->next);
}

static void texts_of_values(void **state)
{
	struct rig *rig = *state;
	static const struct {
		struct slice text, value;
	} cases[] = {
		{SLICE(VALUE("")), SLICE("")},
		{SLICE(PROPERTY("<name>a</name><value/>")), SLICE("")},
		{SLICE(PROPERTY("<name>a</name><value\t/>")), SLICE("")},
		{SLICE(VALUE(" \t\r\n ")), SLICE("")},
		{SLICE(VALUE("&lt;&gt;&amp;&quot;&apos;")), SLICE("<>&\"'")},
		/* What a reference makes is text, and no other reference or tag. */
		{SLICE(VALUE("&amp;lt;")), SLICE("&lt;")},
		{SLICE(VALUE("&lt;/value&gt;")), SLICE("</value>")},
		{SLICE(VALUE("&#38;#60;")), SLICE("&#60;")},
		{SLICE(VALUE("&#65;&#x41;&#x0000041;&#00065;")), SLICE("AAAA")},
		{SLICE(VALUE("&#xe4;&#xE4;&#8364;&#x1F600;&#x10ffff;")),
		 SLICE("\xc3\xa4\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf")},
		{SLICE(VALUE("\xc3\xa4\xf0\x9f\x98\x80")), SLICE("\xc3\xa4\xf0\x9f\x98\x80")},
		{SLICE(VALUE("a&#10;b&#9;c&#13;d")), SLICE("a\nb\tc\rd")},
		{SLICE(VALUE("a\r\nb\rc\n\rd")), SLICE("a\nb\nc\n\nd")},
		{SLICE(VALUE("a <!-- </value> & --> b<?x </value>?>c")), SLICE("a  bc")},
		{SLICE(VALUE("a>b]]>\"'${X};")), SLICE("a>b]]>\"'${X};")},
		{SLICE("\xef\xbb\xbf" VALUE("x")), SLICE("x")},
		{SLICE("<?xml version='1.0' encoding = 'US-ASCII' standalone='yes'?>" VALUE("x")),
		 SLICE("x")},
		{SLICE("<?xml-more encoding='latin1'?>" VALUE("x")), SLICE("x")},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse(rig, cases[i].text), 0);
		assert_int_equal(rig->conf.count, 1);
		assert_text(rig->conf.first->value, cases[i].value);
	}
}

static void files_without_properties(void **state)
{
	struct rig *rig = *state;
	static const char *const texts[] = {"<configuration/>", CONF(""), CONF(" <!-- x --> \n"),
					    "\n<configuration />\n"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(parse(rig, slice_of(texts[i])), 0);
		assert_int_equal(rig->conf.count, 0);
		assert_null(rig->conf.first);
	}
}

static void which_property_counts(void **state)
{
	struct rig *rig = *state;
#define SET(name, value, more)                                                                     \
	"<property><name>" name "</name><value>" value "</value>" more "</property>"
	assert_int_equal(
		parse(rig, SLICE(CONF(SET("a", "1", "") SET("b", "1", "<final>true</final>") SET(
				   "a", "2", "<final>false</final>") SET("b", "2", "")))),
		0);
#undef SET
	assert_int_equal(rig->conf.count, 4);
	assert_text(hadoop_conf_find(&rig->conf, SLICE("a"))->value, SLICE("2"));
	assert_text(hadoop_conf_find(&rig->conf, SLICE("b"))->value, SLICE("1"));
	assert_null(hadoop_conf_find(&rig->conf, SLICE("A")));
	assert_null(hadoop_conf_find(&rig->conf, SLICE("")));
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void what_is_no_file(void **state)
{
	struct rig *rig = *state;
	static const struct {
		struct slice text;
		const char *sentence;
	} cases[] = {
		{{NULL, 0}, "line 1: the file ends without a configuration"},
		{SLICE(" \n\n"), "line 3: the file ends without a configuration"},
		{SLICE("<?xml version=\"1.0\"?>"), "line 1: the file ends without a configuration"},
		{SLICE("cluster=x"),
		 "line 1: a text stands without a configuration, where a tag has to be"},
		{SLICE("<"), "line 1: < begins no tag: in a text it is &lt;"},
		{SLICE("<>"), "line 1: < begins no tag: in a text it is &lt;"},
		{SLICE("< configuration/>"), "line 1: < begins no tag: in a text it is &lt;"},
		{SLICE("<configuration"), "line 1: the file ends within the tag configuration"},
		{SLICE("<configuration/"), "line 1: the file ends within the tag configuration"},
		{SLICE("<configuration>"), "line 1: the file ends within the configuration"},
		{SLICE("\n<html></html>"),
		 "line 2: the file begins with the tag html, not configuration"},
		{SLICE("<Configuration/>"),
		 "line 1: the file begins with the tag Configuration, not configuration"},
		{SLICE("</configuration>"),
		 "line 1: the file begins with the tag /configuration, not configuration"},
		{SLICE("<configuration xmlns:xi=\"x\"/>"),
		 "line 1: the tag configuration has more than its name; attributes are not read"},
		{SLICE("<configuration/ >"),
		 "line 1: the tag configuration has more than its name; attributes are not read"},
		{SLICE("<configuration></configuration/>"),
		 "line 1: the tag configuration has more than its name; attributes are not read"},
		{SLICE("<configuration/>\n<configuration/>"),
		 "line 2: something stands behind the configuration"},
		{SLICE(CONF("") "\nx"), "line 2: something stands behind the configuration"},
		{SLICE(CONF("") "\0"), "line 1: the character U+0000 is not allowed"},
		{SLICE("<!-- \n --"), "line 1: the comment that begins here has no -->"},
		{SLICE("<!-->"), "line 1: the comment that begins here has no -->"},
		{SLICE("\n<?xml >"),
		 "line 2: the processing instruction that begins here has no ?>"},
		{SLICE("<?xml encoding=\"ISO-8859-1\"\n?>" CONF("")),
		 "line 1: its encoding is ISO-8859-1, and only UTF-8 is read"},
		{SLICE("<?xml encoding=UTF-8?>"), "line 1: its encoding is not in quotes"},
		{SLICE("<?xml encoding?>"), "line 1: its encoding is not in quotes"},
		{SLICE("<?xml encoding=\"?>"), "line 1: its encoding is not in quotes"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(rig, cases[i].text, cases[i].sentence);
}

/* Entities of its own can make a file of a kilobyte into gigabytes, or have another file read. */
static void a_doctype(void **state)
{
	struct rig *rig = *state;
	static const char *const texts[] = {
		"<!DOCTYPE configuration>" CONF(""),
		"<!DOCTYPE c [<!ENTITY a \"aaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]>" VALUE("&b;"),
		"<!DOCTYPE c [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>" VALUE("&a;"),
		"<!DOCTYPE",
		CONF("<!DOCTYPE x>"),
		VALUE("a<!DOCTYPE x>"),
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_refused(rig, slice_of(texts[i]),
			       "line 1: a DOCTYPE is not read: take it out");
	assert_refused(rig, SLICE("<!doctype x>"), "line 1: <! begins nothing that is read");
	assert_refused(rig, SLICE(CONF("\n<!ENTITY a \"b\">")),
		       "line 2: <! begins nothing that is read");
	assert_refused(rig, SLICE(VALUE("\n<![CDATA[x]]>")),
		       "line 2: CDATA is not read: write &lt; for < and &amp; for &");
}

static void properties_that_are_none(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{CONF("\n<property/>"), "line 2: the property has no name"},
		{CONF("\n<property>\n</property>"), "line 2: the property has no name"},
		{PROPERTY("\n<value>x</value>"), "line 1: the property has no name"},
		{PROPERTY("<name> </name><value>x</value>"), "line 1: the property has no name"},
		{PROPERTY("\n<name>a</name>"), "line 1: the property a has no value"},
		{PROPERTY("<name>a</name><value>1</value>\n<value>2</value>"),
		 "line 2: the property has a second value"},
		{PROPERTY("<name>a</name>\n<name/>"), "line 2: the property has a second name"},
		{PROPERTY("<description/>\n<description/>"),
		 "line 2: the property has a second description"},
		{PROPERTY("<name>a</name><value/><final>yes</final>"),
		 "line 1: final of the property a is yes, and has to be true or false"},
		{PROPERTY("<name>a</name><value/><final/>"),
		 "line 1: final of the property a is , and has to be true or false"},
		{PROPERTY("\n<source>x</source>"),
		 "line 2: the tag source stands in a property, which has name, value, description "
		 "and final"},
		{PROPERTY("\n<Name>x</Name>"),
		 "line 2: the tag Name stands in a property, which has name, value, description "
		 "and final"},
		{PROPERTY("<property>\n"),
		 "line 1: the tag property stands in a property, which has name, value, "
		 "description and final"},
		{PROPERTY("<name>a</name>\n</name>"),
		 "line 2: the tag /name stands in a property, which has name, value, description "
		 "and final"},
		{PROPERTY("<name>a</name>\n x"),
		 "line 2: a text stands within a property, where a tag has to be"},
		{PROPERTY("<name>a</name>\n&#32;"),
		 "line 2: a text stands within a property, where a tag has to be"},
		{PROPERTY("<name lang=\"x\">a</name>"),
		 "line 1: the tag name has more than its name; attributes are not read"},
		{CONF("<property>\n<name>a</name>"),
		 "line 2: the tag /configuration stands in a property, which has name, value, "
		 "description and final"},
		{"<configuration><property>\n", "line 2: the file ends within a property"},
		{CONF("\n<name>a</name>"),
		 "line 2: the tag name stands in the configuration, which has properties"},
		{CONF("\n<configuration></configuration>"),
		 "line 2: the tag configuration stands in the configuration, which has properties"},
		{CONF("\n</property>"),
		 "line 2: the tag /property stands in the configuration, which has properties"},
		{CONF("\n x"),
		 "line 2: a text stands within the configuration, where a tag has to be"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(rig, slice_of(cases[i].text), cases[i].sentence);
}

static void texts_that_are_refused(void **state)
{
	struct rig *rig = *state;
	static const struct {
		struct slice text;
		const char *sentence;
	} cases[] = {
		{SLICE("<configuration>\n<property><value>\nx"),
		 "line 3: the file ends within a text"},
		{SLICE(VALUE("\n<b>x</b>")),
		 "line 2: the tag b stands in the text of value, of line 1"},
		{SLICE(PROPERTY("<value>\n<value/></value>")),
		 "line 2: the tag value stands in the text of value, of line 1"},
		{SLICE(PROPERTY("<value>x\n</name>")),
		 "line 2: the tag /name stands in the text of value, of line 1"},
		{SLICE(PROPERTY("<description>a <p>b</p></description>")),
		 "line 1: the tag p stands in the text of description, of line 1"},
		{SLICE(VALUE("x < 5")), "line 1: < begins no tag: in a text it is &lt;"},
		{SLICE(VALUE("x & y")), "line 1: & begins no reference: in a text it is &amp;"},
		{SLICE(VALUE("\nhttp://x/?a=1&b=2")),
		 "line 2: & begins no reference: in a text it is &amp;"},
		{SLICE("<configuration><property><value>&"),
		 "line 1: & begins no reference: in a text it is &amp;"},
		{SLICE(VALUE("&nbsp;")),
		 "line 1: &nbsp; is not known: amp, lt, gt, quot and apos are"},
		{SLICE(VALUE("&AMP;")),
		 "line 1: &AMP; is not known: amp, lt, gt, quot and apos are"},
		{SLICE(VALUE("&;")), "line 1: &; is not known: amp, lt, gt, quot and apos are"},
		{SLICE(VALUE("&#;")), "line 1: &#; is no character"},
		{SLICE(VALUE("&#x;")), "line 1: &#x; is no character"},
		{SLICE(VALUE("&#X41;")), "line 1: &#X41; is no character"},
		{SLICE(VALUE("&#4a;")), "line 1: &#4a; is no character"},
		{SLICE(VALUE("&#-1;")), "line 1: &#-1; is no character"},
		{SLICE(VALUE("&# 65;")), "line 1: &# 65; is no character"},
		{SLICE(VALUE("&#0;")), "line 1: &#0; is no character"},
		{SLICE(VALUE("&#x1b;")), "line 1: &#x1b; is no character"},
		{SLICE(VALUE("&#127;")), "line 1: &#127; is no character"},
		{SLICE(VALUE("&#xd800;")), "line 1: &#xd800; is no character"},
		{SLICE(VALUE("&#xDFFF;")), "line 1: &#xDFFF; is no character"},
		{SLICE(VALUE("&#xfffe;")), "line 1: &#xfffe; is no character"},
		{SLICE(VALUE("&#x110000;")), "line 1: &#x110000; is no character"},
		{SLICE(VALUE("&#4294967361;")), "line 1: &#4294967361; is no character"},
		{SLICE(VALUE("&#x1000000000000041;")),
		 "line 1: &#x1000000000000041; is no character"},
		{SLICE(VALUE("&#00000000000000000000000000000065;")),
		 "line 1: & begins no reference: in a text it is &amp;"},
		{SLICE(VALUE("a\0b")), "line 1: the character U+0000 is not allowed"},
		{SLICE(VALUE("\n\x1b[2J")), "line 2: the character U+001B is not allowed"},
		{SLICE(VALUE("\x7f")), "line 1: the character U+007F is not allowed"},
		{SLICE(VALUE("\xef\xbf\xbe")), "line 1: the character U+FFFE is not allowed"},
		{SLICE(VALUE("\n\n\xe4")), "line 3: the byte 0xe4 is not UTF-8 there"},
		{SLICE(VALUE("\xc0\xbc/value>")), "line 1: the byte 0xc0 is not UTF-8 there"},
		{SLICE(VALUE("\xed\xa0\x80")), "line 1: the byte 0xed is not UTF-8 there"},
		{SLICE("<!-- \xff -->" VALUE("")), "line 1: the byte 0xff is not UTF-8 there"},
		{SLICE("\xff\xfe<\0c\0"), "line 1: the byte 0xff is not UTF-8 there"},
		{SLICE(VALUE("") "\xe2\x82"), "line 1: the byte 0xe2 is not UTF-8 there"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(rig, cases[i].text, cases[i].sentence);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void put_repeated(struct buf *out, const char *text, size_t times)
{
	for (size_t i = 0; i < times; i++)
		buf_append_text(out, text);
}

static void put_sized(struct buf *out, size_t name_bytes, size_t value_bytes)
{
	buf_clear(out);
	buf_append_text(out, "<configuration>\n<property>\n<name>");
	put_repeated(out, "n", name_bytes);
	buf_append_text(out, "</name>\n<value>");
	put_repeated(out, "v", value_bytes);
	buf_append_text(out, "</value></property></configuration>");
}

static void long_texts(void **state)
{
	struct rig *rig = *state;
	struct buf out;
	buf_init(&out, ROOM_BYTES);
	put_sized(&out, 255, 65536);
	assert_int_equal(parse(rig, buf_slice(&out)), 0);
	assert_int_equal(rig->conf.first->name.len, 255);
	assert_int_equal(rig->conf.first->value.len, 65536);
	put_sized(&out, 256, 1);
	assert_refused(rig, buf_slice(&out), "line 3: the text of name has more than 255 bytes");
	put_sized(&out, 1, 65537);
	assert_refused(rig, buf_slice(&out), "line 4: the text of value has more than 65536 bytes");
	put_sized(&out, 1, 1000000);
	assert_refused(rig, buf_slice(&out), "line 4: the text of value has more than 65536 bytes");
	put_sized(&out, 1000000, 1);
	assert_refused(rig, buf_slice(&out), "line 3: the text of name has more than 255 bytes");
	buf_release(&out);
}

static void long_files(void **state)
{
	struct rig *rig = *state;
	struct buf out;
	buf_init(&out, ROOM_BYTES);
	buf_append_text(&out, CONF(""));
	put_repeated(&out, "\n", (1 << 20) - out.len);
	assert_int_equal(parse(rig, buf_slice(&out)), 0);
	buf_append_char(&out, '\n');
	assert_refused(rig, buf_slice(&out), "it has 1048577 bytes, and 1048576 are allowed");
	/* A million characters of each kind that could be looked at more than once. */
	static const struct {
		const char *piece, *sentence;
	} cases[] = {
		{"<", "line 1: < begins no tag: in a text it is &lt;"},
		{"&", "line 1: a text stands without a configuration, where a tag has to be"},
		{"<!--", "line 1: the comment that begins here has no -->"},
		{"<?x?>", "line 1: the file ends without a configuration"},
		{"<a>", "line 1: the file begins with the tag a, not configuration"},
		{"<!---->", "line 1: the file ends without a configuration"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		buf_clear(&out);
		put_repeated(&out, cases[i].piece, 1000000 / strlen(cases[i].piece));
		assert_refused(rig, buf_slice(&out), cases[i].sentence);
	}
	buf_release(&out);
}

static void many_properties(void **state)
{
	struct rig *rig = *state;
	struct buf out;
	buf_init(&out, ROOM_BYTES);
	buf_append_text(&out, "<configuration>");
	put_repeated(&out, "\n<property><name>a</name><value/></property>", 4096);
	size_t len = out.len;
	buf_append_text(&out, "</configuration>");
	assert_int_equal(parse(rig, buf_slice(&out)), 0);
	assert_int_equal(rig->conf.count, 4096);
	out.len = len;
	buf_append_text(&out, "\n<property><name>a</name><value/></property></configuration>");
	assert_refused(rig, buf_slice(&out), "line 4098: there are more than 4096 properties");
	buf_clear(&out);
	buf_append_text(&out, "<configuration>");
	put_repeated(&out, "<property>", 100000);
	assert_refused(rig, buf_slice(&out),
		       "line 1: the tag property stands in a property, which has name, value, "
		       "description and final");
	buf_release(&out);
}

static void an_arena_that_is_full(void **state)
{
	struct rig *rig = *state;
	struct arena small;
	arena_init(&small, 128);
	assert_int_equal(hadoop_conf_parse(SLICE(VALUE("x")), &small, &rig->conf, &rig->e), 0);
	arena_reset(&small);
	assert_int_equal(hadoop_conf_parse(SLICE(VALUE("0123456789012345678901234567890123456789"
						       "0123456789012345678901234567890123456789")),
					   &small, &rig->conf, &rig->e),
			 ERR_LIMIT);
	assert_string_equal(rig->e.text, "line 1: its texts take too much memory");
	arena_release(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_file),
		cmocka_unit_test(texts_of_values),
		cmocka_unit_test(files_without_properties),
		cmocka_unit_test(which_property_counts),
		cmocka_unit_test(what_is_no_file),
		cmocka_unit_test(a_doctype),
		cmocka_unit_test(properties_that_are_none),
		cmocka_unit_test(texts_that_are_refused),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(long_files),
		cmocka_unit_test(many_properties),
		cmocka_unit_test(an_arena_that_is_full),
	};
	return cmocka_run_group_tests(tests, rig_open, rig_close);
}
