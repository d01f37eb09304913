/* Where records end. The expected ends are counted by hand. In random texts they are those that
 * another, slower way finds, and the same however a text is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/records.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"

static struct records_found found;
static struct arena arena;

static int make_arena(UNUSED void **state)
{
	arena_init(&arena, 1 << 20);
	return 0;
}

static int release_arena(UNUSED void **state)
{
	arena_release(&arena);
	return 0;
}

static struct records_rule rule_of(enum records_kind kind, const char *pattern)
{
	struct errbuf e = {""};
	struct records_rule rule = {.kind = kind};
	if (kind == RECORDS_BEGINNING)
		assert_int_equal(regex_compile(slice_of(pattern), false, &arena, &rule.begins, &e),
				 0);
	return rule;
}

static void find_in(const struct records_rule *rule, struct slice data)
{
	uint64_t work = 0;
	memset(&found, 0x5a, sizeof(found)); /* nothing of an earlier call counts */
	records_find(rule, data, &found, &work);
}

/* `expected` has a bar behind each record, which is no byte of the text; the records end there and
 * nowhere else. If the rule is lines, only the last bar counts. */
static void expect_records(enum records_kind kind, const char *pattern, struct slice expected)
{
	struct records_rule rule = rule_of(kind, pattern);
	uint32_t ends[64];
	size_t count = 0;
	struct buf text;
	buf_init(&text, 1 << 20);
	for (size_t i = 0; i < expected.len; i++) {
		if (expected.data[i] == '|')
			ends[count++] = (uint32_t)text.len;
		else
			buf_append_char(&text, expected.data[i]);
	}
	find_in(&rule, buf_slice(&text));
	assert_int_equal(found.whole_bytes, count ? ends[count - 1] : 0);
	assert_int_equal(found.end_count, kind == RECORDS_LINES ? 0 : count);
	for (size_t i = 0; i < found.end_count; i++)
		assert_int_equal(found.ends[i], ends[i]);
	buf_release(&text);
}

#define EXPECT(kind, text)   expect_records(RECORDS_##kind, NULL, SLICE(text))
#define BEGIN(pattern, text) expect_records(RECORDS_BEGINNING, pattern, SLICE(text))

static void of_raw_bytes_all_is_a_record(UNUSED void **state)
{
	EXPECT(RAW, "");
	EXPECT(RAW, "\n|");
	EXPECT(RAW, "a|");
	EXPECT(RAW, "a\nb|");
	EXPECT(RAW, "a\nb\n|");
	EXPECT(RAW, "\0|");
}

static void lines_end_with_the_last_newline(UNUSED void **state)
{
	EXPECT(LINES, "");
	EXPECT(LINES, "a");
	EXPECT(LINES, "\n|");
	EXPECT(LINES, "a\n|");
	EXPECT(LINES, "a\n|b");
	EXPECT(LINES, "a\nb\n|");
	EXPECT(LINES, "\n\n\n|");
	EXPECT(LINES, "a\r\n|b\r");
	EXPECT(LINES, "a\rb"); /* a carriage return alone ends nothing */
	EXPECT(LINES, "a\0b\0");
	EXPECT(LINES, "\0\n|\0");
	EXPECT(LINES, "a\x04\n|"); /* nobody escapes here */
	EXPECT(LINES, "a\v\f\xc2\x85\xe2\x80\xa8");
}

static void escaped_newlines_end_nothing(UNUSED void **state)
{
	EXPECT(ESCAPED, "");
	EXPECT(ESCAPED, "a");
	EXPECT(ESCAPED, "a\n|");
	EXPECT(ESCAPED, "a\n|b");
	EXPECT(ESCAPED, "a\n|b\n|");
	EXPECT(ESCAPED, "\n|\n|");
	EXPECT(ESCAPED, "a\x04\n");
	EXPECT(ESCAPED, "a\x04\nb\n|");
	EXPECT(ESCAPED, "a\x04\n\x04\n\n|b\x04\nc");
	EXPECT(ESCAPED, "\x04\n");
	EXPECT(ESCAPED, "\x04\n\n|");
	EXPECT(ESCAPED, "\x04");
	EXPECT(ESCAPED, "a\x04"); /* its newline comes later */
	EXPECT(ESCAPED, "a\x04 \n|");
	EXPECT(ESCAPED, "a\x04\r\n|"); /* the byte stands in front of the newline, or not at all */
	EXPECT(ESCAPED, "\x04"
			"a\n|");
	EXPECT(ESCAPED, "a\x04\x04\nb\n|");
	EXPECT(ESCAPED, "a\0\n|\0\x04\n\0\n|");
	/* The byte of the line in front is not this one's. */
	EXPECT(ESCAPED, "a\n|\n|b\x04\n\n|\n|");
}

/* The last one is not whole: its end is not known before the next one has begun, with its whole
 * first line. */
/* What stands in memory in front of the text is none of it. */
static void bytes_in_front_do_not_count(UNUSED void **state)
{
	static const char text[] = "\x04\na\n";
	struct records_rule rule = rule_of(RECORDS_ESCAPED, NULL);
	find_in(&rule, (struct slice){text + 1, 1});
	assert_int_equal(found.whole_bytes, 1);
	assert_int_equal(found.end_count, 1);
	find_in(&rule, (struct slice){text + 1, 3});
	assert_int_equal(found.end_count, 2);
}

static void a_record_ends_where_the_next_one_begins(UNUSED void **state)
{
	BEGIN("^[0-9]", "");
	BEGIN("^[0-9]", "1 a");
	BEGIN("^[0-9]", "1 a\n");
	BEGIN("^[0-9]", "1 a\n  at b\n  at c\n");
	BEGIN("^[0-9]", "1 a\n  at b\n|2 c\n");
	BEGIN("^[0-9]", "1 a\n  at b\n2 c");
	BEGIN("^[0-9]", "1 a\n|2 b\n|3 c\n");
	BEGIN("^[0-9]", "1 a\n|2 b\n3");
	/* On none; in the middle of a record of which the front was sent. */
	BEGIN("^[0-9]", "  at b\n  at c\n  at d\n");
	BEGIN("^[0-9]", "  at b\n|1 c\n  at d\n");
	/* Blank ones. */
	BEGIN("^[0-9]", "\n\n\n");
	BEGIN("^[0-9]", "\n|1\n\n\n|2\n");
	BEGIN("^$", "\n|\n|\n");
	BEGIN("^$", "a\n|\nb\n|\n");
	/* The newline is no part of the text, the carriage return is. */
	BEGIN("^a$", "a\n|a\nb\n|a\n");
	BEGIN("^a$", "a\r\na\r\n");
	BEGIN("^a\\s$", "a\r\n|a\r\n");
	BEGIN("b", "a\n|xbx\nb");
	BEGIN("^$", "a\n|\n");
	BEGIN("x*", "a\n|b\n|c\n"); /* it is in every line */
	BEGIN("^1", "0\n|1\0\n|1\n");
	BEGIN("a.b", "a\nb\na\nb\n"); /* never over the end of a line */
}

#define DOCKER(text) "{\"log\":\"" text "\",\"stream\":\"stdout\",\"time\":\"2026-11-29T10:00Z\"}\n"

static void docker_lines_without_a_newline_go_on(UNUSED void **state)
{
	EXPECT(DOCKER, DOCKER("whole\\n") "|");
	EXPECT(DOCKER, DOCKER("part"));
	EXPECT(DOCKER, DOCKER("part") DOCKER("part") DOCKER("end\\n") "|" DOCKER("part"));
	EXPECT(DOCKER, DOCKER("\\n") "|");
	EXPECT(DOCKER, DOCKER(""));
	EXPECT(DOCKER, DOCKER("") DOCKER("\\n") "|");
	/* Newlines inside are none at the end. */
	EXPECT(DOCKER, DOCKER("a\\nb"));
	EXPECT(DOCKER, DOCKER("a\\n "));
	EXPECT(DOCKER, DOCKER("a\\n\\n") "|");
	EXPECT(DOCKER, DOCKER("a\\n\\t"));
	EXPECT(DOCKER, DOCKER("a\\r\\n") "|");
	/* A backslash and an n are none at all. */
	EXPECT(DOCKER, DOCKER("C:\\\\n"));
	EXPECT(DOCKER, DOCKER("C:\\\\\\n") "|");
	EXPECT(DOCKER, DOCKER("\\\\\\\\n"));
	EXPECT(DOCKER, DOCKER("n"));
	/* Quotes inside end nothing. */
	EXPECT(DOCKER, DOCKER("say \\\"a\\n\\\""));
	EXPECT(DOCKER, DOCKER("say \\\"a\\\"\\n") "|");
	EXPECT(DOCKER, DOCKER("\\\\") DOCKER("\\\\\\n") "|");
	EXPECT(DOCKER, DOCKER("\\u000a\\u001b[0m"));
	/* A line that is not whole yet. */
	EXPECT(DOCKER, "{\"log\":\"a\\n\"");
	EXPECT(DOCKER, DOCKER("a\\n") "|{\"log\":\"b\\n\"}");
}

static void what_docker_does_not_write_is_a_line(UNUSED void **state)
{
	EXPECT(DOCKER, "");
	EXPECT(DOCKER, "\n|");
	EXPECT(DOCKER, "text\n|");
	EXPECT(DOCKER, "{\n|");
	EXPECT(DOCKER, "{}\n|");
	EXPECT(DOCKER, "{\"log\":\n|");
	EXPECT(DOCKER, "{\"log\":\"\n|"); /* without the quote at the end it is no text */
	EXPECT(DOCKER, "{\"log\":\"a\n|b\n|");
	EXPECT(DOCKER, "{\"log\":\"a\\\n|");
	EXPECT(DOCKER, "{\"log\":\"a\\\"\n|");
	EXPECT(DOCKER, "{\"log\":\"a\\\"}\n|");
	EXPECT(DOCKER, " {\"log\":\"a\"}\n|");
	EXPECT(DOCKER, "{\"stream\":\"a\"}\n|");
	EXPECT(DOCKER, "\0{\"log\":\"a\"}\n|");
	EXPECT(DOCKER, DOCKER("part") "text\n|" DOCKER("part"));
}

#define CRI "2026-11-29T10:00:00.000000001+01:00 stdout "

static void cri_parts_go_on(UNUSED void **state)
{
	EXPECT(CRI, CRI "F whole\n|");
	EXPECT(CRI, CRI "P part\n");
	EXPECT(CRI, CRI "P part\n" CRI "P part\n" CRI "F end\n|" CRI "P part\n");
	EXPECT(CRI, CRI "P \n" CRI "F \n|");
	EXPECT(CRI, CRI "P:more F\n"); /* tags are separated by colons */
	EXPECT(CRI, CRI "F:P x\n|");
	EXPECT(CRI, CRI "P  x\r\n");
	EXPECT(CRI, CRI "F P P P\n|");
	EXPECT(CRI, CRI "P \0\n" CRI "F x\n|");
	EXPECT(CRI, CRI "F a\n|" CRI "P b");
}

static void what_cri_does_not_write_is_a_line(UNUSED void **state)
{
	EXPECT(CRI, "");
	EXPECT(CRI, "\n|");
	EXPECT(CRI, " \n|");
	EXPECT(CRI, "  \n|");
	EXPECT(CRI, "   \n|");
	EXPECT(CRI, "P\n|");
	EXPECT(CRI, "P x\n|");
	EXPECT(CRI, "a P x\n|");
	EXPECT(CRI, "a b\n|");
	EXPECT(CRI, "a b P\n|");
	EXPECT(CRI, "a b Px\n|");
	EXPECT(CRI, "a b PF x\n|");
	EXPECT(CRI, "a b p x\n|");
	EXPECT(CRI, "a b x P y\n|");
	EXPECT(CRI, "a\tb\tP\tx\n|");
	/* The tag of the next line is not this one's. */
	EXPECT(CRI, "a b\n|P x\n|");
	EXPECT(CRI, "a \n|b P x\n|");
}

static void long_lines(UNUSED void **state)
{
	enum { LONG = 1 << 20 };
	char *text = mem_alloc(2 * LONG);
	memset(text, 'x', 2 * LONG);
	text[LONG - 1] = '\n';
	for (int kind = RECORDS_LINES; kind < RECORDS_KINDS; kind++) {
		struct records_rule rule = rule_of((enum records_kind)kind, "^y");
		bool begins = kind == RECORDS_BEGINNING;
		find_in(&rule, (struct slice){text, LONG - 1});
		assert_int_equal(found.whole_bytes, 0);
		assert_int_equal(found.end_count, 0);
		find_in(&rule, (struct slice){text, LONG});
		assert_int_equal(found.whole_bytes, begins ? 0 : LONG);
		find_in(&rule, (struct slice){text, 2 * LONG});
		assert_int_equal(found.whole_bytes, begins ? 0 : LONG);
		assert_int_equal(found.end_count, !begins && kind != RECORDS_LINES);
	}
	text[LONG] = 'y';
	text[2 * LONG - 1] = '\n';
	struct records_rule rule = rule_of(RECORDS_BEGINNING, "^y");
	find_in(&rule, (struct slice){text, 2 * LONG});
	assert_int_equal(found.whole_bytes, LONG);
	assert_int_equal(found.end_count, 1);
	mem_free(text);
}

/* So many of a chunk; those behind it are for the next one. */
static void more_records_than_a_chunk_lists(UNUSED void **state)
{
	enum { RECORDS = RECORDS_ENDS_MAX + 3, RECORD_BYTES = 3 };
	char *text = mem_alloc(RECORDS * RECORD_BYTES);
	for (size_t i = 0; i < RECORDS; i++)
		memcpy(text + i * RECORD_BYTES, "ab\n", RECORD_BYTES);
	for (int kind = RECORDS_ESCAPED; kind < RECORDS_KINDS; kind++) {
		struct records_rule rule = rule_of((enum records_kind)kind, "^a");
		for (size_t records = RECORDS_ENDS_MAX - 2; records <= RECORDS; records++) {
			size_t whole = kind == RECORDS_BEGINNING ? records - 1 : records;
			whole = whole < RECORDS_ENDS_MAX ? whole : RECORDS_ENDS_MAX;
			find_in(&rule, (struct slice){text, records * RECORD_BYTES});
			assert_int_equal(found.end_count, whole);
			for (size_t i = 0; i < whole; i++)
				assert_int_equal(found.ends[i], (i + 1) * RECORD_BYTES);
			assert_int_equal(found.whole_bytes, whole * RECORD_BYTES);
		}
	}
	/* Lines are not listed, and have no such limit. */
	struct records_rule lines = rule_of(RECORDS_LINES, NULL);
	find_in(&lines, (struct slice){text, RECORDS * RECORD_BYTES});
	assert_int_equal(found.whole_bytes, RECORDS * RECORD_BYTES);
	mem_free(text);
}

/* ---- However it is cut ----------------------------------------------------------------------- */

static void random_text(struct random *random, struct buf *text)
{
	static const char *const parts[] = {
		"\n",    "\n",       "\x04\n", "\x04",        "a",   "1",  "\r\n",
		" ",     "t s P ",   "t s F ", "{\"log\":\"", "\\n", "\\", "\"",
		"\"}\n", "\\n\"}\n", "\\\"",   "P:",          "\n1",
	};
	buf_clear(text);
	for (uint64_t n = random_below(random, 60); n--;)
		buf_append_text(text, parts[random_below(random, ARRAY_LEN(parts))]);
	if (random_below(random, 3) == 0)
		buf_append_char(text, 0);
}

/* What is read goes up to a random place; the next time it goes on behind the whole records. */
static size_t take_in_pieces(const struct records_rule *rule, struct slice text,
			     struct random *random, uint32_t *ends, size_t *count)
{
	size_t done = 0, cut = 0;
	*count = 0;
	while (cut < text.len) {
		cut += 1 + random_below(random, text.len - cut);
		find_in(rule, (struct slice){text.data + done, cut - done});
		assert_true(found.whole_bytes <= cut - done);
		for (size_t i = 0; i < found.end_count; i++)
			ends[(*count)++] = (uint32_t)done + found.ends[i];
		done += found.whole_bytes;
	}
	return done;
}

static void cuts_make_no_other_records(UNUSED void **state)
{
	static const char *const patterns[] = {"^1", "^a|^$", "a$", "[0-9]"};
	struct random random;
	size_t records = 0;
	struct buf text;
	random_init(&random, 17);
	buf_init(&text, 4096);
	for (int round = 0; round < 60000; round++) {
		uint32_t ends[600];
		size_t count;
		int kind = RECORDS_LINES + round % (RECORDS_KINDS - RECORDS_LINES);
		struct records_rule rule =
			rule_of((enum records_kind)kind,
				patterns[random_below(&random, ARRAY_LEN(patterns))]);
		random_text(&random, &text);
		size_t done = take_in_pieces(&rule, buf_slice(&text), &random, ends, &count);
		find_in(&rule, buf_slice(&text));
		assert_int_equal(found.whole_bytes, done);
		assert_int_equal(found.end_count, count);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(found.ends[i], ends[i]);
			assert_true(ends[i] > (i ? ends[i - 1] : 0));
			/* Each ends with a line. */
			assert_int_equal(text.data[ends[i] - 1], '\n');
		}
		assert_true(!count || ends[count - 1] == done);
		records += count;
		arena_reset(&arena);
	}
	assert_true(records > 50000);
	buf_release(&text);
}

static void words_are_those_of_the_configuration(UNUSED void **state)
{
	static const char *const words[] = {"raw",       "lines",  "escaped",
					    "beginning", "docker", "cri"};
	assert_int_equal(ARRAY_LEN(words), RECORDS_KINDS);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		assert_string_equal(records_words[i], words[i]);
	assert_null(records_words[RECORDS_KINDS]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_raw_bytes_all_is_a_record),
		cmocka_unit_test(lines_end_with_the_last_newline),
		cmocka_unit_test(escaped_newlines_end_nothing),
		cmocka_unit_test(bytes_in_front_do_not_count),
		cmocka_unit_test(a_record_ends_where_the_next_one_begins),
		cmocka_unit_test(docker_lines_without_a_newline_go_on),
		cmocka_unit_test(what_docker_does_not_write_is_a_line),
		cmocka_unit_test(cri_parts_go_on),
		cmocka_unit_test(what_cri_does_not_write_is_a_line),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(more_records_than_a_chunk_lists),
		cmocka_unit_test(cuts_make_no_other_records),
		cmocka_unit_test(words_are_those_of_the_configuration),
	};
	return cmocka_run_group_tests(tests, make_arena, release_arena);
}
