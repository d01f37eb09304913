/* BSON. The documents are those of bsonspec.org, or written out by its grammar; decimals are from
 * the specification of decimal128. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "wire/bson.h"

/* A document of one element "k": its type byte, then the value. */
static struct slice document_of(char *to, char type, struct slice value)
{
	uint32_t len = (uint32_t)(4 + 1 + 2 + value.len + 1);
	memcpy(to, &len, 4);
	memcpy(to + 4, (char[]){type, 'k', 0}, 3);
	memcpy(to + 7, value.data, value.len);
	to[7 + value.len] = 0;
	return (struct slice){to, len};
}

static void expect(struct slice bytes, const char *json)
{
	struct arena arena;
	struct buf out;
	struct json_writer writer;
	struct json *root;
	struct errbuf e;
	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 20);
	if (bson_parse(bytes, &arena, &root, &e))
		fail_msg("%s: %s", json, e.text);
	json_writer_init(&writer, &out);
	json_write_tree(&writer, root);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, json);
	buf_release(&out);
	arena_release(&arena);
}

/* What becomes of a value of this type. */
static void expect_element(char type, struct slice value, const char *json)
{
	char bytes[1000], whole[1000];
	snprintf(whole, sizeof(whole), "{\"k\":%s}", json);
	expect(document_of(bytes, type, value), whole);
}

static void expect_error(struct slice bytes, int err, const char *sentence)
{
	struct arena arena;
	struct json *root;
	struct errbuf e = {""};
	char *copy = mem_alloc(bytes.len); /* of just that size, so that a byte too far is seen */
	if (bytes.len)
		memcpy(copy, bytes.data, bytes.len);
	arena_init(&arena, 1 << 20);
	int found = bson_parse((struct slice){copy, bytes.len}, &arena, &root, &e);
	assert_string_equal(e.text, sentence);
	assert_int_equal(found, err);
	arena_release(&arena);
	mem_free(copy);
}

static void expect_fault(struct slice bytes, const char *sentence)
{
	expect_error(bytes, ERR_INVALID, sentence);
}

/* The fault of a value whose element begins at byte 4, itself at byte 7. */
static void expect_value_fault(char type, struct slice value, const char *sentence)
{
	char bytes[1000];
	expect_fault(document_of(bytes, type, value), sentence);
}

static void the_examples_of_the_specification(void **state)
{
	(void)state;
	expect(SLICE("\x16\0\0\0"
		     "\x02hello\0"
		     "\x06\0\0\0world\0"
		     "\0"),
	       "{\"hello\":\"world\"}");
	expect(SLICE("\x31\0\0\0"
		     "\x04"
		     "BSON\0"
		     "\x26\0\0\0"
		     "\x02\x30\0\x08\0\0\0awesome\0"
		     "\x01\x31\0\x33\x33\x33\x33\x33\x33\x14\x40"
		     "\x10\x32\0\xc2\x07\0\0"
		     "\0"
		     "\0"),
	       "{\"BSON\":[\"awesome\",5.05,1986]}");
	expect(SLICE("\x05\0\0\0\0"), "{}");
}

static void numbers_stay_exact(void **state)
{
	(void)state;
	expect_element(0x10, SLICE("\xff\xff\xff\x7f"), "2147483647");
	expect_element(0x10, SLICE("\0\0\0\x80"), "-2147483648");
	expect_element(0x12, SLICE("\x01\0\0\0\0\0\x20\0"), "9007199254740993");
	expect_element(0x12, SLICE("\0\0\0\0\0\0\0\x80"), "-9223372036854775808");
	expect_element(0x11, SLICE("\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615");
	expect_element(0x01, SLICE("\0\0\0\0\0\0\x45\x40"), "42.0");
	expect_element(0x01, SLICE("\0\0\0\0\0\0\0\x80"), "-0.0");
	expect_element(0x01, SLICE("\0\0\0\0\0\0\xf8\x7f"), "\"NaN\"");
	expect_element(0x01, SLICE("\0\0\0\0\0\0\xf0\x7f"), "\"Infinity\"");
	expect_element(0x01, SLICE("\0\0\0\0\0\0\xf0\xff"), "\"-Infinity\"");
}

static void a_number_has_its_literal(void **state)
{
	struct arena arena;
	struct json *root;
	char bytes[100];
	(void)state;
	arena_init(&arena, 1 << 20);
	struct slice document = document_of(bytes, 0x10, SLICE("\xc2\x07\0\0"));
	assert_int_equal(bson_parse(document, &arena, &root, NULL), 0);
	const struct json *member = json_member(root, "k");
	assert_true(slice_equal(member->text, SLICE("1986")));
	assert_true(value_identical(member->number, value_i64(1986)));
	assert_int_equal(member->offset, 4);
	assert_int_equal(root->count, 1);
	arena_release(&arena);
}

static void text_is_kept_as_far_as_it_is_utf8(void **state)
{
	(void)state;
	expect_element(0x02, SLICE("\x01\0\0\0\0"), "\"\"");
	expect_element(0x02, SLICE("\x04\0\0\0a\0b\0"), "\"a\\u0000b\"");
	expect_element(0x02, SLICE("\x03\0\0\0\xc3\xa9\0"), "\"\xc3\xa9\"");
	expect_element(0x02, SLICE("\x04\0\0\0a\xe9z\0"), "\"a\xef\xbf\xbdz\"");
	expect_element(0x02, SLICE("\x04\0\0\0\xed\xa0\x80\0"),
		       "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	expect_element(0x0d, SLICE("\x03\0\0\0f;\0"), "\"f;\"");
	expect_element(0x0e, SLICE("\x03\0\0\0ab\0"), "\"ab\"");
	expect(SLICE("\x0a\0\0\0\x0a\xff"
		     "ab\0\0"),
	       "{\"\xef\xbf\xbd"
	       "ab\":null}");
}

/* The writer of JSON replaces wrong bytes too, so the tree itself is looked at. */
static void the_tree_is_utf8(void **state)
{
	struct arena arena;
	struct json *root;
	(void)state;
	arena_init(&arena, 1 << 20);
	assert_int_equal(bson_parse(SLICE("\x11\0\0\0"
					  "\x02\xff"
					  "k\0"
					  "\x04\0\0\0a\xe9z\0"
					  "\0"),
				    &arena, &root, NULL),
			 0);
	assert_true(slice_equal(root->first->key, SLICE("\xef\xbf\xbdk")));
	assert_true(slice_equal(root->first->text, SLICE("a\xef\xbf\xbdz")));
	assert_int_equal(bson_parse(SLICE("\x0c\0\0\0"
					  "\x0br\0"
					  "\xe9\0i\0"
					  "\0"),
				    &arena, &root, NULL),
			 0);
	assert_true(slice_equal(root->first->text, SLICE("/\xef\xbf\xbd/i")));
	arena_release(&arena);
}

static void binary_is_text_or_base64(void **state)
{
	(void)state;
	expect_element(0x05, SLICE("\x03\0\0\0\0abc"), "\"abc\"");
	expect_element(0x05, SLICE("\0\0\0\0\0"), "\"\"");
	/* Those of RFC 4648, section 10, moved beyond ASCII: 0xe6 is 'f' | 0x80. */
	expect_element(0x05, SLICE("\x01\0\0\0\0\xe6"), "\"5g==\"");
	expect_element(0x05, SLICE("\x02\0\0\0\0\xe6\xef"), "\"5u8=\"");
	expect_element(0x05, SLICE("\x03\0\0\0\0\xe6\xef\xef"), "\"5u/v\"");
	expect_element(0x05, SLICE("\x04\0\0\0\0\xfb\xff\xbf\xff"), "\"+/+//w==\"");
	/* The old subtype has a length of its own within. */
	expect_element(0x05,
		       SLICE("\x07\0\0\0\x02"
			     "\x03\0\0\0abc"),
		       "\"abc\"");
	expect_element(0x05,
		       SLICE("\x07\0\0\0\x02"
			     "\x02\0\0\0abc"),
		       "\"\\u0002\\u0000\\u0000\\u0000abc\"");
	expect_element(0x05,
		       SLICE("\x03\0\0\0\x02"
			     "abc"),
		       "\"abc\"");
	expect_element(0x05,
		       SLICE("\x10\0\0\0\x04"
			     "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"),
		       "\"00112233-4455-6677-8899-aabbccddeeff\"");
	expect_element(0x05,
		       SLICE("\x10\0\0\0\x03"
			     "0123456789abcdef"),
		       "\"30313233-3435-3637-3839-616263646566\"");
	expect_element(0x05,
		       SLICE("\x03\0\0\0\x04"
			     "abc"),
		       "\"abc\"");
}

static void other_types(void **state)
{
	(void)state;
	expect_element(0x06, SLICE(""), "null");
	expect_element(0x0a, SLICE(""), "null");
	expect_element(0x08, SLICE("\0"), "false");
	expect_element(0x08, SLICE("\x01"), "true");
	expect_element(0x08, SLICE("\x02"), "true");
	expect_element(0x07, SLICE("\x4d\x6a\x3d\x40\xff\0\x01\x23\x45\x67\x89\xab"),
		       "\"4d6a3d40ff000123456789ab\"");
	/* `date -d 2011-02-27T12:00:00Z +%s` is 1298808000. */
	expect_element(0x09, SLICE("\x7b\x4e\xfd\x66\x2e\x01\0\0"), "\"2011-02-27T12:00:00.123Z\"");
	expect_element(0x09, SLICE("\0\0\0\0\0\0\0\0"), "\"1970-01-01T00:00:00Z\"");
	expect_element(0x09, SLICE("\xff\xff\xff\xff\xff\xff\xff\xff"),
		       "\"1969-12-31T23:59:59.999Z\"");
	expect_element(0x0b, SLICE("a.b\0im\0"), "\"/a.b/im\"");
	expect_element(0x0b, SLICE("\0\0"), "\"//\"");
	expect_element(0x0c,
		       SLICE("\x03\0\0\0db\0"
			     "\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b"),
		       "\"db:000102030405060708090a0b\"");
	expect_element('\xff', SLICE(""), "\"MinKey\"");
	expect_element(0x7f, SLICE(""), "\"MaxKey\"");
}

static void code_with_scope_is_an_object(void **state)
{
	(void)state;
	expect_element(0x0f,
		       SLICE("\x17\0\0\0"
			     "\x03\0\0\0f;\0"
			     "\x0c\0\0\0\x10x\0\x01\0\0\0\0"),
		       "{\"code\":\"f;\",\"scope\":{\"x\":1}}");
	/* The key of what comes after it is its own. */
	expect(SLICE("\x1d\0\0\0"
		     "\x0fk\0\x0e\0\0\0"
		     "\x01\0\0\0\0"
		     "\x05\0\0\0\0"
		     "\x10z\0\x07\0\0\0\0"),
	       "{\"k\":{\"code\":\"\",\"scope\":{}},\"z\":7}");
	expect_value_fault(0x0f,
			   SLICE("\x0f\0\0\0"
				 "\x01\0\0\0\0"
				 "\x05\0\0\0\0"
				 "\0"),
			   "BSON, byte 21: more bytes after the scope of code");
	expect_value_fault(0x0f, SLICE("\x0d\0\0\0\x01\0\0\0\0\x05\0\0\0\0"),
			   "BSON, byte 7: code with scope whose length does not fit");
	expect_value_fault(0x0f, SLICE("\x0f\0\0\0\x01\0\0\0\0\x05\0\0\0\0"),
			   "BSON, byte 7: code with scope whose length does not fit");
	expect_value_fault(0x0f, SLICE("\x0e\0\0\0\x02\0\0\0a\0\x05\0\0\0\0"),
			   "BSON, byte 17: a document whose length does not fit");
}

static void decimals_as_their_specification_writes_them(void **state)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x40\x30", "1"},
		{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x40\x30", "0"},
		{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x40\xb0", "-0"},
		{"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x3e\x30", "0.1"},
		{"\x0c\0\0\0\0\0\0\0\0\0\0\0\0\0\x3e\xb0", "-1.2"},
		{"\xd2\x04\0\0\0\0\0\0\0\0\0\0\0\0\x34\x30", "0.001234"},
		{"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x34\x30", "0.000001"},
		{"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x32\x30", "1E-7"},
		{"\x64\0\0\0\0\0\0\0\0\0\0\0\0\0\x2c\xb0", "-1.00E-8"},
		{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x46\x30", "0E+3"},
		{"\x14\x1a\x99\xbe\x1c\0\0\0\0\0\0\0\0\0\x40\x30", "123456789012"},
		{"\xff\xff\xff\xff\x63\x8e\x8d\x37\xc0\x87\xad\xbe\x09\xed\xff\x5f",
		 "9.999999999999999999999999999999999E+6144"},
		{"\xff\xff\xff\xff\x63\x8e\x8d\x37\xc0\x87\xad\xbe\x09\xed\x41\x30",
		 "9999999999999999999999999999999999"},
		{"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "1E-6176"},
		/* 10^34 has a digit too many: it is no integer of decimal128, and counts as 0. */
		{"\0\0\0\0\x64\x8e\x8d\x37\xc0\x87\xad\xbe\x09\xed\x41\x30", "0"},
		{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\x6c", "0"},
		{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x7c", "NaN"},
		{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x78", "Infinity"},
		{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xf8", "-Infinity"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char json[64];
		snprintf(json, sizeof(json), "\"%s\"", cases[i].text);
		expect_element(0x13, (struct slice){cases[i].bytes, 16}, json);
	}
}

static void doubled_keys_are_kept_and_the_last_counts(void **state)
{
	static const struct slice document =
		SLICE("\x13\0\0\0\x10k\0\x01\0\0\0\x10k\0\x02\0\0\0\0");
	struct arena arena;
	struct json *root;
	(void)state;
	expect(document, "{\"k\":1,\"k\":2}");
	arena_init(&arena, 1 << 20);
	assert_int_equal(bson_parse(document, &arena, &root, NULL), 0);
	assert_true(value_identical(json_member(root, "k")->number, value_i64(2)));
	arena_release(&arena);
}

static void keys_of_arrays_are_not_looked_at(void **state)
{
	(void)state;
	expect_element(0x04,
		       SLICE("\x0e\0\0\0\x08"
			     "9\0\x01\x08zz\0\0\0"),
		       "[true,false]");
	expect_element(0x04, SLICE("\x07\0\0\0\x0a\0\0"), "[null]"); /* none at all */
}

static void what_follows_the_document_is_not_looked_at(void **state)
{
	(void)state;
	expect(SLICE("\x05\0\0\0\0\n"), "{}");
	expect(SLICE("\x05\0\0\0\0\x05\0\0\0\0"), "{}");
}

static void lengths_that_do_not_fit_are_refused_where_they_stand(void **state)
{
	(void)state;
	expect_fault((struct slice){NULL, 0}, "BSON, byte 0: a document whose length does not fit");
	expect_fault(SLICE("\x05\0\0"), "BSON, byte 0: a document whose length does not fit");
	expect_fault(SLICE("\x05\0\0\0"), "BSON, byte 0: a document whose length does not fit");
	expect_fault(SLICE("\x04\0\0\0\0"), "BSON, byte 0: a document whose length does not fit");
	expect_fault(SLICE("\x06\0\0\0\0"), "BSON, byte 0: a document whose length does not fit");
	expect_fault(SLICE("\xff\xff\xff\xff\0"),
		     "BSON, byte 0: a document whose length does not fit");
	expect_fault(SLICE("\x05\0\0\0\x01"),
		     "BSON, byte 0: a document that does not end with a zero byte");
	expect_fault(SLICE("\x06\0\0\0\x01\0"), "BSON, byte 5: a key without its end");
	expect_fault(SLICE("\x07\0\0\0\x10k\0"), "BSON, byte 5: a key without its end");
	expect_value_fault(0x02, SLICE("\0\0\0\0"),
			   "BSON, byte 7: a string without room for its zero byte");
	expect_value_fault(0x02, SLICE("\x03\0\0\0a\0"),
			   "BSON, byte 7: a string that is longer than its document");
	expect_value_fault(0x02,
			   SLICE("\xff\xff\xff\xff"
				 "a\0"),
			   "BSON, byte 7: a string that is longer than its document");
	expect_value_fault(0x02, SLICE("\x02\0\0"),
			   "BSON, byte 7: a string that is longer than its document");
	expect_value_fault(0x02, SLICE("\x02\0\0\0ab"),
			   "BSON, byte 7: a string that does not end with a zero byte");
	expect_value_fault(0x05, SLICE("\x02\0\0\0\0a"),
			   "BSON, byte 7: binary data that is longer than its document");
	expect_value_fault(0x05, SLICE("\xff\xff\xff\xff\0a"),
			   "BSON, byte 7: binary data that is longer than its document");
	expect_value_fault(0x03, SLICE("\x06\0\0\0\0"),
			   "BSON, byte 7: a document whose length does not fit");
	expect_value_fault(0x04, SLICE("\x06\0\0\0\0\x01"),
			   "BSON, byte 7: a document that does not end with a zero byte");
	expect_value_fault(0x0b, SLICE("ab\0im"),
			   "BSON, byte 10: a regular expression without its end");
	expect_value_fault(0x0c, SLICE("\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
			   "BSON, byte 4: a value that is longer than its document");
	expect_value_fault(0x08, SLICE(""),
			   "BSON, byte 4: a value that is longer than its document");
	expect_value_fault(0x10, SLICE("\x01\0\0"),
			   "BSON, byte 4: a value that is longer than its document");
	expect_value_fault(0x13, SLICE("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
			   "BSON, byte 4: a value that is longer than its document");
	expect_value_fault(0x14, SLICE(""), "BSON, byte 4: an element of an unknown type");
	expect_value_fault(0, SLICE(""), "BSON, byte 4: an element of an unknown type");
	expect_value_fault('\x80', SLICE(""), "BSON, byte 4: an element of an unknown type");
}

/* `depth` documents in one another: each has its length, a type and an empty key around the next.
 */
static struct slice nested(char *to, unsigned depth)
{
	uint32_t len = depth * 7 - 2;
	for (unsigned i = 0; i < depth; i++) {
		uint32_t own = len - 7 * i;
		memcpy(to + 6 * i, &own, 4);
		memcpy(to + 6 * i + 4, "\x03", 2);
	}
	memset(to + 6 * depth - 2, 0, depth);
	return (struct slice){to, len};
}

static void nesting_ends_at_the_limit(void **state)
{
	char bytes[1000], json[1000] = "";
	(void)state;
	expect(nested(bytes, 1), "{}");
	expect(nested(bytes, 2), "{\"\":{}}");
	size_t len = 0;
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		len += (size_t)snprintf(json + len, sizeof(json) - len, i ? "\"\":{" : "{");
	memset(json + len, '}', JSON_DEPTH_MAX);
	expect(nested(bytes, JSON_DEPTH_MAX), json);
	memcpy(json + len, "\"\":null", 7);
	memset(json + len + 7, '}', JSON_DEPTH_MAX);
	for (int levels = JSON_DEPTH_MAX + 1; levels < JSON_DEPTH_MAX + 4; levels++)
		expect(nested(bytes, levels), json);
}

static void the_arena_bounds_the_tree(void **state)
{
	struct arena arena;
	struct json *root;
	struct errbuf e;
	char bytes[1000];
	(void)state;
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, (uint32_t[]){1000}, 4);
	for (size_t i = 4; i + 2 < sizeof(bytes); i += 2)
		bytes[i] = 0x0a;
	bytes[998] = 0; /* 497 nulls without keys are 994 bytes */
	memcpy(bytes, (uint32_t[]){999}, 4);
	arena_init(&arena, 4096);
	assert_int_equal(bson_parse((struct slice){bytes, 999}, &arena, &root, &e), ERR_LIMIT);
	assert_non_null(strstr(e.text, "more values than memory is allowed for"));
	arena_release(&arena);
}

/* The tree has each element that ends before the cut. */
static void a_cut_document_has_what_is_whole(void **state)
{
	static const char whole[] = "\x29\0\0\0"
				    "\x02s\0\x03\0\0\0ab\0"
				    "\x03l\0\x13\0\0\0\x12n\0\x07\0\0\0\0\0\0\0\x0az\0\0"
				    "\x08t\0\x01\0";
	/* The first cut, from which on this is there. */
	static const struct {
		size_t from;
		const char *json;
	} parts[] = {{5, NULL},
		     {14, "{\"s\":\"ab\"}"},
		     {21, "{\"s\":\"ab\",\"l\":{}}"},
		     {32, "{\"s\":\"ab\",\"l\":{\"n\":7}}"},
		     {35, "{\"s\":\"ab\",\"l\":{\"n\":7,\"z\":null}}"},
		     {40, "{\"s\":\"ab\",\"l\":{\"n\":7,\"z\":null},\"t\":true}"},
		     {41, NULL}};
	struct arena arena;
	struct json *root;
	struct errbuf e;
	(void)state;
	assert_int_equal(sizeof(whole) - 1, 41);
	arena_init(&arena, 1 << 20);
	for (size_t i = 0; i + 1 < ARRAY_LEN(parts); i++) {
		for (size_t cut = parts[i].from; cut < parts[i + 1].from; cut++) {
			char *copy = mem_alloc(cut);
			memcpy(copy, whole, cut);
			int err = bson_parse((struct slice){copy, cut}, &arena, &root, &e);
			assert_int_equal(err, parts[i].json ? 0 : ERR_INVALID);
			if (err)
				assert_string_equal(e.text, "BSON, byte 0: a document whose length "
							    "does not fit");
			else
				assert_int_equal(root->mended, JSON_CUT);
			if (!err)
				expect((struct slice){copy, cut}, parts[i].json);
			mem_free(copy);
		}
	}
	arena_release(&arena);
}

static void text_that_is_not_utf8_is_marked(void **state)
{
	struct arena arena;
	struct json *root;
	struct errbuf e;
	(void)state;
	arena_init(&arena, 1 << 20);
	assert_int_equal(bson_parse(SLICE("\x0f\0\0\0\x02s\0\x03\0\0\0\xff"
					  "b\0\0"),
				    &arena, &root, &e),
			 0);
	assert_int_equal(root->mended, JSON_MENDED_WITHIN);
	assert_int_equal(root->first->mended, JSON_NOT_UTF8);
	arena_release(&arena);
}

/* No damage leads beyond the bytes, and neither does a cut. */
static void damaged_documents_end(void **state)
{
	static const char whole[] = "\x5a\0\0\0"
				    "\x02s\0\x03\0\0\0ab\0"
				    "\x04l\0\x0f\0\0\0\x10"
				    "0\0\x01\0\0\0\x0a"
				    "1\0\0"
				    "\x05"
				    "b\0\x02\0\0\0\0\xff\xfe"
				    "\x0fw\0\x12\0\0\0\x02\0\0\0;\0\x08\0\0\0\x0ax\0\0"
				    "\x13"
				    "d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x40\x30"
				    "\x0br\0a\0i\0\0";
	size_t len = sizeof(whole) - 1;
	struct random random;
	struct arena arena;
	struct json *root;
	(void)state;
	random_init(&random, 11);
	arena_init(&arena, 1 << 20);
	for (size_t cut = 0; cut < len; cut++) {
		char *copy = mem_alloc(cut);
		memcpy(copy, whole, cut);
		int err = bson_parse((struct slice){copy, cut}, &arena, &root, NULL);
		/* The first element ends after 14 bytes. */
		assert_int_equal(err, cut < 14 ? ERR_INVALID : 0);
		mem_free(copy);
	}
	for (int i = 0; i < 50000; i++) {
		char *copy = mem_alloc(len);
		memcpy(copy, whole, len);
		for (uint64_t n = random_below(&random, 3) + 1; n > 0; n--)
			copy[random_below(&random, len)] = (char)random_below(&random, 256);
		struct errbuf e = {""};
		int err = bson_parse((struct slice){copy, len}, &arena, &root, &e);
		assert_true((err == 0) == (e.text[0] == 0));
		arena_reset(&arena);
		mem_free(copy);
	}
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_the_specification),
		cmocka_unit_test(numbers_stay_exact),
		cmocka_unit_test(a_number_has_its_literal),
		cmocka_unit_test(text_is_kept_as_far_as_it_is_utf8),
		cmocka_unit_test(the_tree_is_utf8),
		cmocka_unit_test(binary_is_text_or_base64),
		cmocka_unit_test(other_types),
		cmocka_unit_test(code_with_scope_is_an_object),
		cmocka_unit_test(decimals_as_their_specification_writes_them),
		cmocka_unit_test(doubled_keys_are_kept_and_the_last_counts),
		cmocka_unit_test(keys_of_arrays_are_not_looked_at),
		cmocka_unit_test(what_follows_the_document_is_not_looked_at),
		cmocka_unit_test(lengths_that_do_not_fit_are_refused_where_they_stand),
		cmocka_unit_test(nesting_ends_at_the_limit),
		cmocka_unit_test(the_arena_bounds_the_tree),
		cmocka_unit_test(a_cut_document_has_what_is_whole),
		cmocka_unit_test(text_that_is_not_utf8_is_marked),
		cmocka_unit_test(damaged_documents_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
