/* JSON. What is taken, and as what, is from RFC 8259; tests/e2e/test_json_corpus.py sets the reader
 * beside another one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "wire/json.h"
#include "wire/number.h"

/* The events of a text as letters, with keys and scalars behind them. */
static void events_of(struct slice text, struct buf *out, size_t *offset)
{
	static const char letters[] = "!.0ft#'k[]{}";
	struct arena arena;
	struct json_reader reader;
	enum json_event event;
	arena_init(&arena, 1 << 20);
	json_reader_init(&reader, text, &arena);
	buf_clear(out);
	do {
		event = json_next(&reader);
		buf_append_char(out, letters[event]);
		if (event == JSON_STRING || event == JSON_KEY)
			buf_append(out, reader.text.data, reader.text.len);
		if (event == JSON_NUMBER)
			number_append(out, reader.number);
	} while (event != JSON_BAD && event != JSON_END);
	*offset = reader.offset;
	if (event == JSON_BAD) {
		buf_append_text(out, reader.reason);
		/* A fault stays. */
		assert_int_equal(json_next(&reader), JSON_BAD);
		assert_int_equal(reader.offset, *offset);
	}
	arena_release(&arena);
}

static void expect(const char *text, const char *events)
{
	struct buf out;
	size_t offset;
	buf_init(&out, 1 << 20);
	events_of(slice_of(text), &out, &offset);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, events);
	buf_release(&out);
}

static void expect_fault(const char *text, size_t offset_expected, const char *reason)
{
	struct buf out;
	size_t offset;
	buf_init(&out, 1 << 20);
	events_of(slice_of(text), &out, &offset);
	buf_append_char(&out, 0);
	char *found = strchr(out.data, '!');
	if (!found || strcmp(found + 1, reason) != 0 || offset != offset_expected)
		fail_msg("%s: %s at %zu", text, out.data, offset);
	buf_release(&out);
}

static void every_kind_of_value(void **state)
{
	(void)state;
	expect("null", "0.");
	expect(" \t\r\ntrue\n", "t.");
	expect("false", "f.");
	expect("12", "#12.0.");
	expect("\"\"", "'.");
	expect("[]", "[].");
	expect("{ }", "{}.");
	expect("[1,\"a\",null,[true],{\"k\":{}}]", "[#1.0'a0[t]{kk{}}].");
	expect("{\"a\":1,\"b\":[2]}", "{ka#1.0kb[#2.0]}.");
	expect("{\"\":0}", "{k#0.0}.");
}

static void wrong_structure_is_refused_where_it_goes_wrong(void **state)
{
	(void)state;
	expect_fault("", 0, "the text ends where a value should stand");
	expect_fault("  ", 2, "the text ends where a value should stand");
	expect_fault("[", 1, "the text ends where a value should stand");
	expect_fault("[1", 2, "the text ends within an array");
	expect_fault("[1,", 3, "the text ends where a value should stand");
	expect_fault("[1,]", 3, "not a value");
	expect_fault("[,1]", 1, "not a value");
	expect_fault("[1 2]", 3, "a comma or ] should stand here");
	expect_fault("[1}", 2, "a comma or ] should stand here");
	expect_fault("]", 0, "not a value");
	expect_fault("{", 1, "the text ends within an object");
	expect_fault("{\"a\"", 4, "a colon should stand here");
	expect_fault("{\"a\" 1}", 5, "a colon should stand here");
	expect_fault("{\"a\":", 5, "the text ends where a value should stand");
	expect_fault("{\"a\":}", 5, "not a value");
	expect_fault("{\"a\":1", 6, "the text ends within an object");
	expect_fault("{\"a\":1,}", 7, "a key in quotes should stand here");
	expect_fault("{\"a\":1 \"b\":2}", 7, "a comma or } should stand here");
	expect_fault("{\"a\":1]", 6, "a comma or } should stand here");
	expect_fault("{a:1}", 1, "a key in quotes should stand here");
	expect_fault("{1:1}", 1, "a key in quotes should stand here");
	expect_fault("{'a':1}", 1, "a key in quotes should stand here");
	expect_fault("1 2", 2, "more text after the value");
	expect_fault("{}{}", 2, "more text after the value");
	expect_fault("[]]", 2, "more text after the value");
	expect_fault("nul", 0, "not a value");
	expect_fault("True", 0, "not a value");
	expect_fault("nulll", 4, "more text after the value");
	expect_fault("NaN", 0, "not a value");
	expect_fault("[Infinity]", 1, "not a value");
	expect_fault("-Infinity", 0, "not a number");
	expect_fault("// c\n1", 0, "not a value");
	expect_fault("\xef\xbb\xbf"
		     "1",
		     0, "not a value");
	expect_fault("\f1", 0, "not a value");
	expect_fault("\xc2\xa0"
		     "1",
		     0, "not a value");
}

static void wrong_numbers_are_refused(void **state)
{
	(void)state;
	expect_fault("01", 0, "number with a zero in front");
	expect_fault("[-01]", 1, "number with a zero in front");
	expect_fault("1.", 0, "number with a point but no digit beside it");
	expect_fault("-.5", 0, "number with a point but no digit beside it");
	expect_fault("+1", 0, "not a value");
	expect_fault("1e", 0, "not a number");
	expect_fault("[1.5e+]", 1, "not a number");
	expect_fault("-", 0, "not a number");
	expect_fault("1a", 1, "more text after the value");
	expect_fault("0x1", 1, "more text after the value");
	expect_fault("1.2.3", 3, "more text after the value");
}

static void a_number_too_long_is_refused(void **state)
{
	(void)state;
	char text[NUMBER_TEXT_MAX_BYTES + 2];
	memset(text, '1', sizeof(text));
	text[NUMBER_TEXT_MAX_BYTES] = 0;
	expect(text, "#+Inf."); /* 1,024 digits: passes every double */
	text[NUMBER_TEXT_MAX_BYTES] = '1';
	text[NUMBER_TEXT_MAX_BYTES + 1] = 0;
	expect_fault(text, 0, "number is too long");
}

/* ---- Strings -------------------------------------------------------------------------------- */

static void escapes_are_decoded(void **state)
{
	(void)state;
	expect("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "'\"\\/\b\f\n\r\t.");
	expect("\"\\u0041\\u00e9\\u20AC\\uffff\"", "'A\xc3\xa9\xe2\x82\xac\xef\xbf\xbf.");
	expect("\"\\ud83d\\ude00\"", "'\xf0\x9f\x98\x80.");
	expect("\"\\uDBFF\\uDFFF\"", "'\xf4\x8f\xbf\xbf.");
	expect("\"a\\\\u0041\"", "'a\\u0041.");
	expect("\"\\\\\\\"\"", "'\\\".");
	expect("{\"\\u0061\":\"b\\u0063d\"}", "{ka'bcd}.");
}

static void a_zero_within_a_string_is_kept(void **state)
{
	(void)state;
	struct arena arena;
	struct json_reader reader;
	arena_init(&arena, 4096);
	json_reader_init(&reader, SLICE("\"a\\u0000b\""), &arena);
	assert_int_equal(json_next(&reader), JSON_STRING);
	assert_int_equal(reader.text.len, 3);
	assert_memory_equal(reader.text.data, "a\0b", 3);
	arena_release(&arena);
}

static void wrong_strings_are_refused(void **state)
{
	(void)state;
	expect_fault("\"", 0, "string without its end");
	expect_fault("[\"abc", 1, "string without its end");
	expect_fault("\"abc\\", 0, "string without its end");
	expect_fault("\"abc\\\"", 0, "string without its end");
	expect_fault("\"12345678\n\"", 9, "control character in a string");
	expect_fault("\"\x1f\"", 1, "control character in a string");
	expect_fault("\"a\\\n\"", 3, "control character in a string");
	expect_fault("\"ab\\x41\"", 3, "unknown escape");
	expect_fault("\"\\a\"", 1, "unknown escape");
	expect_fault("\"\\'\"", 1, "unknown escape");
	expect_fault("\"\\U0041\"", 1, "unknown escape");
	expect_fault("\"\\u004\"", 1, "\\u without four hexadecimal digits");
	expect_fault("\"\\u00g1\"", 1, "\\u without four hexadecimal digits");
	expect_fault("\"\\u+041\"", 1, "\\u without four hexadecimal digits");
	expect_fault("\"\\u", 0, "string without its end");
}

static void half_a_surrogate_pair_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"\"\\ud800\"",        "\"\\udc00\"",        "\"\\ud800x\"",       "\"\\ud800\\n\"",
		"\"\\ud800\\ud800\"", "\"\\ude00\\ud83d\"", "\"\\ud800\\u0041\"", "\"\\ud800\\\"",
		"\"\\udbff\\udbff\"", "\"\\udc00\\udc00\"", "\"\\ud800\\u\"",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (i == 7)
			expect_fault(bad[i], 0, "string without its end");
		else
			expect_fault(bad[i], 1, "half of a surrogate pair");
	}
}

/* Each wrong sequence of RFC 3629's table, at each place of a block of eight. */
static void text_that_is_not_utf8_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"\x80",
					  "\xbf",
					  "\xc0\x80",
					  "\xc1\xbf",
					  "\xc2",
					  "\xc2\x41",
					  "\xe0\x80\x80",
					  "\xe0\x9f\xbf",
					  "\xe2\x82",
					  "\xed\xa0\x80",
					  "\xed\xbf\xbf",
					  "\xf0\x80\x80\x80",
					  "\xf0\x8f\xbf\xbf",
					  "\xf0\x9f\x98",
					  "\xf4\x90\x80\x80",
					  "\xf5\x80\x80\x80",
					  "\xff",
					  "\xfe",
					  "\xf8\x88\x80\x80\x80"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		for (size_t before = 0; before < 10; before++) {
			char text[64];
			snprintf(text, sizeof(text), "\"%.*s%s\"", (int)before, "abcdefghij",
				 bad[i]);
			expect_fault(text, before + 1, "text that is not UTF-8");
		}
	}
	expect("\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf"
	       "\xbf\"",
	       "'\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf"
	       "\xbf.");
}

/* Every byte that ends a plain run, at every place of it, against a loop over single bytes. */
static void each_byte_of_a_string_is_looked_at(void **state)
{
	(void)state;
	struct buf out;
	size_t offset;
	buf_init(&out, 1 << 12);
	for (int c = 0; c < 128; c++) {
		for (size_t at = 1; at < 27; at++) {
			char text[32];
			memset(text, 'z', sizeof(text));
			text[0] = '"';
			text[28] = '"';
			text[at] = (char)c;
			events_of((struct slice){text, 29}, &out, &offset);
			if (c < 0x20)
				assert_true(out.data[0] == '!' && offset == at);
			else if (c == '"')
				assert_true(out.data[0] == '\'' && out.len > at);
			else if (c == '\\')
				assert_true(out.data[0] == '!' && offset == at); /* \z */
			else
				assert_true(out.len == 29 && out.data[at] == c);
		}
	}
	buf_release(&out);
}

static void the_arena_bounds_decoded_text(void **state)
{
	(void)state;
	char text[2000];
	struct arena arena;
	struct json_reader reader;
	struct errbuf e;
	memset(text, 'x', sizeof(text));
	memcpy(text, "[\"\\n", 4);
	memcpy(text + sizeof(text) - 2, "\"]", 2);
	arena_init(&arena, 1000);
	json_reader_init(&reader, (struct slice){text, sizeof(text)}, &arena);
	assert_int_equal(json_next(&reader), JSON_ARRAY_BEGIN);
	assert_int_equal(json_next(&reader), JSON_BAD);
	assert_true(reader.arena_full);
	assert_int_equal(json_error(&reader, &e), ERR_LIMIT);
	/* Without an escape nothing is copied. */
	text[2] = 'x';
	json_reader_init(&reader, (struct slice){text, sizeof(text)}, &arena);
	assert_int_equal(json_next(&reader), JSON_ARRAY_BEGIN);
	assert_int_equal(json_next(&reader), JSON_STRING);
	assert_int_equal(arena.used_bytes, 0);
	struct json *root;
	assert_int_equal(json_parse(SLICE("[1,2,3,4,5,6,7,8,9,10,11,12]"), &arena, &root, &e),
			 ERR_LIMIT);
	arena_release(&arena);
}

/* ---- Nesting -------------------------------------------------------------------------------- */

static void nesting_ends_at_the_limit(void **state)
{
	(void)state;
	char text[4 * JSON_DEPTH_MAX];
	struct buf out;
	size_t offset;
	buf_init(&out, 1 << 12);
	memset(text, '[', JSON_DEPTH_MAX);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	events_of((struct slice){text, 2 * JSON_DEPTH_MAX}, &out, &offset);
	assert_int_equal(out.data[out.len - 1], '.');
	memset(text, '[', JSON_DEPTH_MAX + 1);
	events_of((struct slice){text, sizeof(text)}, &out, &offset);
	assert_int_equal(offset, JSON_DEPTH_MAX);
	assert_memory_equal(out.data + JSON_DEPTH_MAX, "!nested too deep", 16);
	buf_release(&out);
}

/* Arrays and objects in turn to the limit, closed by the wrong bracket at each level once. */
static void each_level_remembers_what_it_is(void **state)
{
	(void)state;
	for (unsigned wrong = 0; wrong <= JSON_DEPTH_MAX; wrong++) {
		struct buf text, out;
		size_t offset;
		buf_init(&text, 1 << 12);
		buf_init(&out, 1 << 12);
		for (unsigned i = 0; i < JSON_DEPTH_MAX; i++)
			buf_append_text(&text, i % 3 ? "{\"k\":" : "[");
		buf_append_text(&text, "0");
		size_t close = text.len;
		for (unsigned i = JSON_DEPTH_MAX; i-- > 0;)
			buf_append_char(&text, (i % 3 != 0) != (i == wrong) ? '}' : ']');
		events_of(buf_slice(&text), &out, &offset);
		bool good = wrong == JSON_DEPTH_MAX;
		assert_true((out.data[out.len - 1] == '.') == good);
		if (!good)
			assert_int_equal(offset, close + JSON_DEPTH_MAX - 1 - wrong);
		buf_release(&text);
		buf_release(&out);
	}
}

static void a_value_can_be_skipped(void **state)
{
	(void)state;
	struct arena arena;
	struct json_reader r;
	arena_init(&arena, 4096);
	json_reader_init(&r, SLICE("{\"a\":{\"b\":[1,{}]},\"c\":2,\"d\":[3}"), &arena);
	assert_int_equal(json_next(&r), JSON_OBJECT_BEGIN);
	assert_int_equal(json_next(&r), JSON_KEY);
	assert_true(json_skip(&r, JSON_KEY));
	assert_int_equal(json_next(&r), JSON_KEY);
	assert_true(slice_equal(r.text, SLICE("c")));
	enum json_event event = json_next(&r);
	assert_true(json_skip(&r, event));
	assert_int_equal(json_next(&r), JSON_KEY);
	assert_true(slice_equal(r.text, SLICE("d")));
	event = json_next(&r);
	assert_false(json_skip(&r, event));
	assert_int_equal(r.offset, 30);
	arena_release(&arena);
}

static void what_was_read_before_is_skipped_by_comparing(void **state)
{
	(void)state;
	static const char text[] =
		"[{\"a\":[1,\"}\"]},{\"a\":[1,\"}\"]} ,{\"a\":[1,\"}\"],\"b\":2},"
		"{\"a\":[1,\"}\"]";
	struct arena arena;
	struct json_reader r;
	arena_init(&arena, 4096);
	json_reader_init(&r, slice_of(text), &arena);
	assert_int_equal(json_next(&r), JSON_ARRAY_BEGIN);
	assert_int_equal(json_next(&r), JSON_OBJECT_BEGIN);
	size_t begin = r.offset;
	assert_true(json_skip(&r, JSON_OBJECT_BEGIN));
	struct slice same = json_text_from(&r, begin);
	assert_int_equal(same.len, 13);
	assert_memory_equal(same.data, text + 1, 13);
	assert_int_equal(json_next(&r), JSON_OBJECT_BEGIN);
	assert_true(json_skip_same(&r, same));
	/* It begins alike but goes on. */
	assert_int_equal(json_next(&r), JSON_OBJECT_BEGIN);
	assert_false(json_skip_same(&r, same));
	assert_true(json_skip(&r, JSON_OBJECT_BEGIN));
	/* It begins alike but the text ends. */
	assert_int_equal(json_next(&r), JSON_OBJECT_BEGIN);
	assert_false(json_skip_same(&r, same));
	assert_false(json_skip(&r, JSON_OBJECT_BEGIN));
	arena_release(&arena);
}

static void nan_is_a_number_only_where_it_is_allowed(void **state)
{
	(void)state;
	struct arena arena;
	struct json_reader r;
	arena_init(&arena, 4096);
	json_reader_init(&r, SLICE("[NaN,-Infinity,Infinity,-1,NaNa]"), &arena);
	r.allow_nan = true;
	assert_int_equal(json_next(&r), JSON_ARRAY_BEGIN);
	assert_int_equal(json_next(&r), JSON_NUMBER);
	assert_true(isnan(value_as_f64(r.number)));
	assert_true(slice_equal(r.text, SLICE("NaN")));
	assert_int_equal(json_next(&r), JSON_NUMBER);
	assert_true(value_as_f64(r.number) == -INFINITY);
	assert_int_equal(json_next(&r), JSON_NUMBER);
	assert_true(value_as_f64(r.number) == INFINITY);
	assert_int_equal(json_next(&r), JSON_NUMBER);
	assert_true(value_as_f64(r.number) == -1);
	assert_int_equal(json_next(&r), JSON_NUMBER);
	assert_int_equal(json_next(&r), JSON_BAD);
	assert_int_equal(r.offset, 30);
	json_reader_init(&r, SLICE("\"NaN\""), &arena);
	r.allow_nan = true;
	assert_int_equal(json_next(&r), JSON_STRING);
	json_reader_init(&r, SLICE("-Infinit"), &arena);
	r.allow_nan = true;
	assert_int_equal(json_next(&r), JSON_BAD);
	arena_release(&arena);
}

/* The texts of half_a_surrogate_pair_is_refused, and what is kept of them; "R" stands for U+FFFD.
 */
static void half_a_surrogate_pair_is_replaced_where_it_may_be(void **state)
{
	static const struct {
		const char *json, *text;
	} cases[] = {
		{"\"\\ud800\"", "R"},
		{"\"\\udc00\"", "R"},
		{"\"a\\ud800x\"", "aRx"},
		{"\"\\ud800\\n\"", "R\n"},
		{"\"\\ud800\\ud800\"", "RR"},
		{"\"\\ude00\\ud83d\"", "RR"},
		{"\"\\ud800\\u0041\"", "RA"},
		{"\"\\ud83d\\ud83d\\ude00\"", "R\xf0\x9f\x98\x80"},
		{"\"\\ud83d\\ude00\\ude00\"", "\xf0\x9f\x98\x80R"},
		{"\"\\udbff\\\\\"", "R\\"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct arena arena;
		struct json_reader r;
		struct buf shown;
		arena_init(&arena, 4096);
		buf_init(&shown, 4096);
		json_reader_init(&r, slice_of(cases[i].json), &arena);
		r.lax = true;
		assert_int_equal(json_next(&r), JSON_STRING);
		for (size_t at = 0; at < r.text.len; at++) {
			bool replaced = r.text.len - at >= 3 &&
					memcmp(r.text.data + at, "\xef\xbf\xbd", 3) == 0;
			buf_append_char(&shown, replaced ? 'R' : r.text.data[at]);
			at += replaced ? 2 : 0;
		}
		assert_true(slice_equal(buf_slice(&shown), slice_of(cases[i].text)));
		assert_int_equal(json_next(&r), JSON_END);
		buf_release(&shown);
		arena_release(&arena);
	}
	struct arena arena;
	struct json_reader r;
	arena_init(&arena, 4096);
	json_reader_init(&r, SLICE("\"\\ud800\\u12\""), &arena);
	r.lax = true;
	assert_int_equal(json_next(&r), JSON_BAD);
	assert_string_equal(r.reason, "\\u without four hexadecimal digits");
	assert_int_equal(r.offset, 7);
	arena_release(&arena);
}

/* ---- Places --------------------------------------------------------------------------------- */

static void faults_have_line_and_column(void **state)
{
	(void)state;
	struct arena arena;
	struct json *root;
	struct errbuf e;
	arena_init(&arena, 4096);
	assert_int_equal(json_parse(SLICE("{\n \"a\": 1,\n \"\xc3\xa9\xe2\x82\xac\": x\n}"), &arena,
				    &root, &e),
			 ERR_INVALID);
	assert_string_equal(e.text, "line 3, column 8: not a value");
	assert_int_equal(json_parse(SLICE("[1,\n\n"), &arena, &root, &e), ERR_INVALID);
	assert_string_equal(e.text, "line 3, column 1: the text ends where a value should stand");
	assert_int_equal(json_parse((struct slice){NULL, 0}, &arena, &root, &e), ERR_INVALID);
	assert_string_equal(e.text, "line 1, column 1: the text ends where a value should stand");
	arena_release(&arena);
}

/* ---- Tree ----------------------------------------------------------------------------------- */

static struct json *tree(const char *text, struct arena *arena)
{
	struct json *root;
	struct errbuf e;
	if (json_parse(slice_of(text), arena, &root, &e) != 0)
		fail_msg("%s", e.text);
	return root;
}

static void members_are_found_and_the_last_of_equals_counts(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 1 << 16);
	struct json *root = tree("{\"a\":1,\"b\":[1,[2,3],{}],\"a\":\"x\",\"\":null}", &arena);
	assert_int_equal(root->type, JSON_T_OBJECT);
	assert_int_equal(root->count, 4);
	assert_int_equal(json_member(root, "a")->type, JSON_T_STRING);
	assert_int_equal(json_member(root, "")->type, JSON_T_NULL);
	assert_null(json_member(root, "c"));
	assert_null(json_member(json_member(root, "a"), "a"));
	assert_null(json_member(NULL, "a"));
	const struct json *b = json_member(root, "b");
	assert_int_equal(b->count, 3);
	assert_int_equal(b->first->next->count, 2);
	assert_true(value_identical(b->first->next->first->next->number, value_f64(3)));
	assert_null(b->first->next->next->next);
	assert_int_equal(b->first->next->offset, 14);
	arena_release(&arena);
}

static void a_lax_tree_keeps_what_can_be_understood(void **state)
{
	static const char text[] =
		"[NaN,-Infinity,Infinity,1e999,-1e999,1.5,\"\\udfff\",{\"\\ud800\":0}]";
	static const char *const kept[] = {"NaN", "-Infinity", "Infinity", "1e999", "-1e999"};
	struct arena arena;
	struct json *root;
	struct errbuf e;
	(void)state;
	arena_init(&arena, 1 << 16);
	assert_int_equal(json_parse(slice_of(text), &arena, &root, &e), ERR_INVALID);
	assert_int_equal(json_parse_lax(slice_of(text), &arena, &root, &e), 0);
	const struct json *node = root->first;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++, node = node->next) {
		assert_int_equal(node->type, JSON_T_STRING);
		assert_true(slice_equal(node->text, slice_of(kept[i])));
	}
	assert_int_equal(node->type, JSON_T_NUMBER);
	assert_true(slice_equal(node->next->text, SLICE("\xef\xbf\xbd")));
	assert_true(slice_equal(node->next->next->first->key, SLICE("\xef\xbf\xbd")));
	/* The strict one leaves an infinity a number. */
	assert_int_equal(json_parse(SLICE("1e999"), &arena, &root, &e), 0);
	assert_int_equal(root->type, JSON_T_NUMBER);
	/* All else is as strict. */
	assert_int_equal(json_parse_lax(SLICE("[1,]"), &arena, &root, &e), ERR_INVALID);
	assert_string_equal(e.text, "line 1, column 4: not a value");
	arena_release(&arena);
}

/* ---- What is mended -------------------------------------------------------------------------- */

static void expect_mended(struct slice text, const char *as, enum json_mended how)
{
	struct arena arena;
	struct json *root;
	struct errbuf e;
	struct json_writer writer;
	struct buf out;
	arena_init(&arena, 1 << 16);
	buf_init(&out, 1 << 16);
	if (json_parse_lax(text, &arena, &root, &e))
		fail_msg("%.*s: %s", (int)text.len, text.data, e.text);
	json_writer_init(&writer, &out);
	json_write_tree(&writer, root);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, as);
	assert_int_equal(root->mended, how);
	assert_int_not_equal(json_parse(text, &arena, &root, &e), 0);
	buf_release(&out);
	arena_release(&arena);
}

/* A number or word at the end may have gone on. A text has what is there, up to an escape or a
 * character that is not whole. */
static void a_cut_text_ends_where_it_is_cut(void **state)
{
	static const char *const cases[][2] = {
		{"{\"a\":true,\"b\":\"xy", "{\"a\":true,\"b\":\"xy\"}"},
		{"{\"a\":true,\"b\":\"x\\", "{\"a\":true,\"b\":\"x\"}"},
		{"{\"a\":\"x\\ny\\u00e", "{\"a\":\"x\\ny\"}"},
		{"{\"a\":\"x\xe2\x82", "{\"a\":\"x\xef\xbf\xbd\xef\xbf\xbd\"}"},
		{"{\"a\":true,\"b\":tr", "{\"a\":true,\"b\":null}"},
		{"{\"a\":true,\"b\":-", "{\"a\":true,\"b\":null}"},
		{"{\"a\":true,\"b\":1.5e", "{\"a\":true,\"b\":null}"},
		{"{\"a\":true,\"b\":12", "{\"a\":true,\"b\":null}"},
		{"{\"a\":true,\"b\":Na", "{\"a\":true,\"b\":null}"},
		{"{\"a\":true,\"b\":12 ", "{\"a\":true,\"b\":12.0}"},
		{"{\"a\":true,\"b\": ", "{\"a\":true,\"b\":null}"},
		{"{\"a\":true,\"b\"", "{\"a\":true}"},
		{"{\"a\":true,\"b", "{\"a\":true}"},
		{"{\"a\":true, ", "{\"a\":true}"},
		{"[true,{\"a\":[true,{\"b\":[", "[true,{\"a\":[true,{\"b\":[]}]}]"},
		{"[true,{\"a\":true},", "[true,{\"a\":true}]"},
		{"[true,{\"a\":true}", "[true,{\"a\":true}]"},
		{"[tru", "[null]"},
		{"{", "{}"},
		{"[", "[]"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		expect_mended(slice_of(cases[i][0]), cases[i][1], JSON_CUT);
	/* Nothing is open, or it is no JSON whatever follows. */
	static const char *const no_json[] = {
		"",     "\"a",           "tru", "-", "[1 2", "{\"a\" 1", "{\"a\":trx,",
		"[1,}", "{\"a\":true,]", "[x y"};
	for (size_t i = 0; i < ARRAY_LEN(no_json); i++) {
		struct arena arena;
		struct json *root;
		struct errbuf e = {""};
		arena_init(&arena, 1 << 16);
		assert_int_equal(json_parse_lax(slice_of(no_json[i]), &arena, &root, &e),
				 ERR_INVALID);
		assert_true(e.text[0]);
		arena_release(&arena);
	}
}

static void a_text_that_is_not_utf8_is_repaired(void **state)
{
	(void)state;
	expect_mended(SLICE("{\"a\":[\"b\xff\\n\xc3\xa9\"]}"),
		      "{\"a\":[\"b\xef\xbf\xbd\\n\xc3\xa9\"]}", JSON_MENDED_WITHIN);
	expect_mended(SLICE("{\"\xc3\":{\"a\":true}}"), "{\"\xef\xbf\xbd\":{\"a\":true}}",
		      JSON_MENDED_WITHIN);
	expect_mended(SLICE("\"\xe2\x82\""), "\"\xef\xbf\xbd\xef\xbf\xbd\"", JSON_NOT_UTF8);
	struct arena arena;
	struct json *root;
	struct errbuf e;
	arena_init(&arena, 1 << 16);
	assert_int_equal(json_parse_lax(SLICE("[1, \"\xff\\x\"]"), &arena, &root, &e), ERR_INVALID);
	assert_string_equal(e.text, "line 1, column 5: unknown escape");
	arena_release(&arena);
	expect_mended(SLICE("[\"a\tb\nc\"]"), "[\"a\\tb\\nc\"]", JSON_AS_IS);
}

static void null_stands_for_what_is_nested_too_deep(void **state)
{
	(void)state;
	static const char *const deep[] = {"[]", "{}", "[[{\"}]\":\"]\\\"}\"}],[]]",
					   "{\"a\":[true,{\"b\":2}]}"};
	char open[JSON_DEPTH_MAX + 1] = "", close[JSON_DEPTH_MAX + 1] = "";
	memset(open, '[', JSON_DEPTH_MAX);
	memset(close, ']', JSON_DEPTH_MAX);
	for (size_t i = 0; i < ARRAY_LEN(deep); i++) {
		char text[400], as[400];
		snprintf(text, sizeof(text), "%s%s,true%s", open, deep[i], close);
		snprintf(as, sizeof(as), "%snull,true%s", open, close);
		expect_mended(slice_of(text), as, JSON_MENDED_WITHIN);
		/* And cut within. */
		snprintf(as, sizeof(as), "%snull%s", open, close);
		expect_mended((struct slice){text, JSON_DEPTH_MAX + strlen(deep[i]) - 1}, as,
			      JSON_CUT);
	}
}

static void getters_fail_closed(void **state)
{
	(void)state;
	struct arena arena;
	struct errbuf e;
	arena_init(&arena, 1 << 16);
	struct json *root =
		tree("{\"t\":\"x\",\"n\":3,\"half\":1.5,\"inf\":1e999,\"yes\":true,"
		     "\"big\":9007199254740993,\"top\":9223372036854775808,"
		     "\"low\":-9223372036854775808,\"l\":[],\"o\":{},\"z\":null,\"q\":\"3\"}",
		     &arena);
	struct slice text = SLICE("old");
	int64_t i = -1;
	double d = -1;
	bool b = false;
	const struct json *node = NULL;
	assert_int_equal(json_get_text(root, "t", &text, &e), 0);
	assert_true(slice_equal(text, SLICE("x")));
	assert_int_equal(json_get_i64(root, "n", &i, &e), 0);
	assert_int_equal(i, 3);
	assert_int_equal(json_get_i64(root, "big", &i, &e), 0);
	assert_true(i == INT64_C(9007199254740993));
	assert_int_equal(json_get_i64(root, "low", &i, &e), 0);
	assert_true(i == INT64_MIN);
	assert_int_equal(json_get_f64(root, "half", &d, &e), 0);
	assert_true(d == 1.5);
	assert_int_equal(json_get_bool(root, "yes", &b, &e), 0);
	assert_true(b);
	assert_int_equal(json_get_array(root, "l", &node, &e), 0);
	assert_int_equal(json_get_object(root, "o", &node, &e), 0);

	assert_int_equal(json_get_text(root, "none", &text, &e), ERR_NOT_FOUND);
	assert_string_equal(e.text, "\"none\" is missing");
	assert_int_equal(json_get_text(root, "n", &text, &e), ERR_INVALID);
	assert_string_equal(e.text, "\"n\" is not a text");
	assert_true(slice_equal(text, SLICE("x")));
	assert_int_equal(json_get_text(root, "z", &text, &e), ERR_INVALID);
	assert_int_equal(json_get_i64(root, "half", &i, &e), ERR_INVALID);
	assert_int_equal(json_get_i64(root, "top", &i, &e), ERR_INVALID);
	assert_int_equal(json_get_i64(root, "inf", &i, &e), ERR_INVALID);
	assert_int_equal(json_get_i64(root, "q", &i, &e), ERR_INVALID);
	assert_true(i == INT64_MIN);
	assert_int_equal(json_get_f64(root, "inf", &d, &e), ERR_INVALID);
	assert_true(d == 1.5);
	assert_int_equal(json_get_bool(root, "n", &b, &e), ERR_INVALID);
	assert_int_equal(json_get_array(root, "o", &node, &e), ERR_INVALID);
	assert_int_equal(json_get_object(root, "l", &node, &e), ERR_INVALID);
	arena_release(&arena);
}

/* ---- Writer --------------------------------------------------------------------------------- */

static void the_writer_sets_commas_and_escapes(void **state)
{
	(void)state;
	struct buf out;
	struct json_writer w;
	buf_init(&out, 1 << 12);
	json_writer_init(&w, &out);
	json_write_array_begin(&w);
	json_write_object_begin(&w);
	json_write_key(&w, "a\"");
	json_write_i64(&w, -1);
	json_write_key_slice(&w, SLICE("b"));
	json_write_array_begin(&w);
	json_write_array_end(&w);
	json_write_key(&w, "c");
	json_write_object_begin(&w);
	json_write_object_end(&w);
	json_write_key(&w, "d");
	json_write_raw(&w, SLICE("[1]"));
	json_write_object_end(&w);
	json_write_null(&w);
	json_write_bool(&w, true);
	json_write_bool(&w, false);
	json_write_u64(&w, UINT64_MAX);
	json_write_f64(&w, 477);
	json_write_f64(&w, NAN);
	json_write_f64(&w, -INFINITY);
	json_write_number(&w, (struct value){0});
	json_write_string(&w, (struct slice){NULL, 0});
	json_write_text(&w, "\\/\"\b\f\n\r\t\v\x01\x1f\x7f\xc3\xa9\x7f");
	json_write_text(&w, "\xc2\x80\xc2\x9f\xc2\xa0\xe2\x80\xad\xe2\x80\xaf\xe2\x81\xa9\xd8\x9c"
			    "\xf0\x9f\x98\x80");
	json_write_string(&w, SLICE("a\0b"));
	json_write_array_end(&w);
	static const char expected[] =
		"[{\"a\\\"\":-1,\"b\":[],\"c\":{},\"d\":[1]},null,true,false,18446744073709551615,"
		"477.0,null,null,null,\"\","
		"\"\\\\/\\\"\\b\\f\\n\\r\\t\\u000b\\u0001\\u001f\\u007f\xc3\xa9\\u007f\","
		"\"\\u0080\\u009f\xc2\xa0\\u202d\xe2\x80\xaf\\u2069\\u061c\xf0\x9f\x98\x80\","
		"\"a\\u0000b\"]";
	assert_int_equal(out.len, sizeof(expected) - 1);
	assert_memory_equal(out.data, expected, out.len);
	buf_release(&out);
}

static void members_are_written_with_their_keys(void **state)
{
	(void)state;
	static const char want[] =
		"{\"s\":\"a\\n\",\"t\":\"b\",\"y\":true,\"z\":null,\"i\":-1,"
		"\"u\":18446744073709551615,"
		"\"f\":1.5,\"n\":null,\"o\":7,\"p\":null,\"l\":[\"a\",\"b\"],\"e\":[]}";
	static const struct slice texts[] = {SLICE("a"), SLICE("b")};
	struct buf out;
	struct json_writer w;
	buf_init(&out, 1 << 12);
	json_writer_init(&w, &out);
	json_write_object_begin(&w);
	json_put_string(&w, "s", SLICE("a\n"));
	json_put_text(&w, "t", "b");
	json_put_bool(&w, "y", true);
	json_put_null(&w, "z");
	json_put_i64(&w, "i", -1);
	json_put_u64(&w, "u", UINT64_MAX);
	json_put_f64(&w, "f", 1.5);
	json_put_number(&w, "n", (struct value){0});
	json_put_i64_or_null(&w, "o", true, 7);
	json_put_i64_or_null(&w, "p", false, 7);
	json_put_strings(&w, "l", texts, 2);
	json_put_strings(&w, "e", texts, 0);
	json_write_object_end(&w);
	assert_int_equal(out.len, strlen(want));
	assert_memory_equal(out.data, want, out.len);
	buf_release(&out);
}

static void what_is_not_utf8_is_replaced(void **state)
{
	(void)state;
	struct buf out;
	buf_init(&out, 1 << 12);
	json_append_string(&out, SLICE("a\xff\xc3\xa9\xc3\xed\xa0\x80z\xe2\x82"));
	static const char expected[] = "\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
				       "\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\"";
	assert_int_equal(out.len, sizeof(expected) - 1);
	assert_memory_equal(out.data, expected, out.len);
	buf_release(&out);
}

static void trees_are_written_as_they_were(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"null",
		"[]",
		"{}",
		"[[],[[]],{}]",
		"{\"a\":{\"b\":[1.0,{\"c\":[]}],\"d\":\"\\n\"},\"a\":true}",
		"[[[[[[1.5]]]]],9007199254740993]",
		"\"\xf0\x9f\x98\x80\"",
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct arena arena;
		struct buf out;
		struct json_writer w;
		arena_init(&arena, 1 << 16);
		buf_init(&out, 1 << 12);
		json_writer_init(&w, &out);
		json_write_tree(&w, tree(texts[i], &arena));
		assert_int_equal(out.len, strlen(texts[i]));
		assert_memory_equal(out.data, texts[i], out.len);
		buf_release(&out);
		arena_release(&arena);
	}
}

static void the_writer_stops_at_the_buffers_maximum(void **state)
{
	(void)state;
	struct buf out;
	struct json_writer w;
	buf_init(&out, 300);
	json_writer_init(&w, &out);
	json_write_array_begin(&w);
	for (int i = 0; i < 1000; i++)
		json_write_text(&w, "0123456789");
	json_write_array_end(&w);
	assert_true(out.failed && out.len <= 300);
	buf_release(&out);
}

/* Cut anywhere or with any byte changed, a text gives an end and no more events than bytes. */
static void damaged_texts_end(void **state)
{
	(void)state;
	static const char whole[] =
		"{\"metric\":\"cpu_idle\",\"timestamp\":1600000000,\"value\":12.5e-1,\"tags\":"
		"{\"os\":\"li\\u006eux\",\"h\\\\\":\"\xc3\xa9\\ud83d\\ude00\"},\"x\":[true,null,-0]"
		"}";
	struct random random;
	struct buf out;
	size_t offset;
	random_init(&random, 8259);
	buf_init(&out, 1 << 12);
	for (size_t len = 0; len < sizeof(whole) - 1; len++) {
		events_of((struct slice){whole, len}, &out, &offset);
		assert_non_null(memchr(out.data, '!', out.len));
		assert_true(offset <= len);
	}
	for (int i = 0; i < 50000; i++) {
		char text[sizeof(whole)];
		memcpy(text, whole, sizeof(whole));
		for (uint64_t n = random_below(&random, 3) + 1; n > 0; n--)
			text[random_below(&random, sizeof(whole) - 1)] =
				(char)random_below(&random, 256);
		events_of((struct slice){text, sizeof(whole) - 1}, &out, &offset);
		assert_true(offset <= sizeof(whole));
	}
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_value),
		cmocka_unit_test(wrong_structure_is_refused_where_it_goes_wrong),
		cmocka_unit_test(wrong_numbers_are_refused),
		cmocka_unit_test(a_number_too_long_is_refused),
		cmocka_unit_test(escapes_are_decoded),
		cmocka_unit_test(a_zero_within_a_string_is_kept),
		cmocka_unit_test(wrong_strings_are_refused),
		cmocka_unit_test(half_a_surrogate_pair_is_refused),
		cmocka_unit_test(text_that_is_not_utf8_is_refused),
		cmocka_unit_test(each_byte_of_a_string_is_looked_at),
		cmocka_unit_test(the_arena_bounds_decoded_text),
		cmocka_unit_test(nesting_ends_at_the_limit),
		cmocka_unit_test(each_level_remembers_what_it_is),
		cmocka_unit_test(a_value_can_be_skipped),
		cmocka_unit_test(what_was_read_before_is_skipped_by_comparing),
		cmocka_unit_test(nan_is_a_number_only_where_it_is_allowed),
		cmocka_unit_test(half_a_surrogate_pair_is_replaced_where_it_may_be),
		cmocka_unit_test(faults_have_line_and_column),
		cmocka_unit_test(members_are_found_and_the_last_of_equals_counts),
		cmocka_unit_test(a_lax_tree_keeps_what_can_be_understood),
		cmocka_unit_test(a_cut_text_ends_where_it_is_cut),
		cmocka_unit_test(a_text_that_is_not_utf8_is_repaired),
		cmocka_unit_test(null_stands_for_what_is_nested_too_deep),
		cmocka_unit_test(getters_fail_closed),
		cmocka_unit_test(the_writer_sets_commas_and_escapes),
		cmocka_unit_test(members_are_written_with_their_keys),
		cmocka_unit_test(what_is_not_utf8_is_replaced),
		cmocka_unit_test(trees_are_written_as_they_were),
		cmocka_unit_test(the_writer_stops_at_the_buffers_maximum),
		cmocka_unit_test(damaged_texts_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
