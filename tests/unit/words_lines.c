/* Words and pairs of lines, and how a text is found in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/random.h"
#include "words/lines.h"

enum { ARENA_BYTES = 1 << 16 };

struct rig {
	struct arena arena;
	struct buf filter, room;
};

static struct rig rig;

static void filter_of(struct slice text)
{
	struct words_set set;
	words_set_init(&set, 0);
	words_set_add_lines(&set, text);
	buf_clear(&rig.filter);
	words_filter_put_alone(&set, &rig.filter);
	words_set_release(&set);
}

static struct lines_literal literal_of(struct slice text, bool open_left, bool open_right)
{
	struct lines_literal literal;
	arena_reset(&rig.arena);
	assert_int_equal(lines_literal_init(&literal, text, open_left, open_right, &rig.arena), 0);
	return literal;
}

static bool filter_has(struct slice text, bool open_left, bool open_right)
{
	struct lines_literal literal = literal_of(text, open_left, open_right);
	return words_filter_has(buf_slice(&rig.filter), literal.hashes, literal.hash_count);
}

static bool line_has(const char *line, const char *text, bool open_left, bool open_right)
{
	struct lines_literal literal = literal_of(slice_of(text), open_left, open_right);
	return lines_literal_is_in(&literal, slice_of(line), &rig.room);
}

/* ---- Filters --------------------------------------------------------------------------------- */

static void words_and_pairs_are_in_filters(void **state)
{
	static const char *const there[] = {
		"from",        "FROM",     "10.1.2.3",    "10.1.2.3:80", "1.2",   "80",
		"a_b",         "A_B",      "x/y",         "log/x",       "Größe", "GRÖSSE_2",
		"user@host-7", "host-7.b", "from 10.1.2", "7",
	};
	static const char *const missing[] = {
		"fro", "rom", "10.1.3", "2.10", "10.2", "a", "b_", "10:1", "x.y", "Größ", "7@host",
	};
	(void)state;
	filter_of(SLICE("From 10.1.2.3:80 a_b /var/log/x/y Größe größe grösse_2 user@host-7.b"));
	for (size_t i = 0; i < ARRAY_LEN(there); i++)
		if (!filter_has(slice_of(there[i]), false, false))
			fail_msg("%s is missing", there[i]);
	for (size_t i = 0; i < ARRAY_LEN(missing); i++)
		if (filter_has(slice_of(missing[i]), false, false))
			fail_msg("%s is there", missing[i]);
}

/* Bytes are looked at many at once: where a word stands in them is all the same. The text has 17
 * words (from 10 1 2 3 80 a_b var log x y grösse größe é z, the long one and w_1) and 8 pairs: 25
 * times 10 bits are 32 bytes, beside them two. */
static void words_are_the_same_wherever_they_stand(void **state)
{
	static const char text[] =
		"From 10.1.2.3:80 a_b /var/log/x/y GRÖSSE Größe\u2014größe é\xff z\t"
		"a123456789b123456789c123456789d123456789e123456789f123456789g123456789/W_1";
	char room[1024];
	struct buf first;
	(void)state;
	buf_init(&first, 1 << 10);
	for (size_t before = 0; before <= 130; before++) {
		int len = snprintf(room, sizeof(room), "%*s%s", (int)before, "", text);
		filter_of((struct slice){room, (size_t)len});
		if (!before)
			buf_append(&first, rig.filter.data, rig.filter.len);
		assert_int_equal(rig.filter.len, 34);
		assert_true(slice_equal(buf_slice(&rig.filter), buf_slice(&first)));
	}
	buf_release(&first);
}

/* 01T12, 03, 07, 5 and 168 and 5 pairs (12:03 has no 12 of its own: 01T12:03, 03:07; 5.168,
 * 168.07, 07:5) are in it, and neither 206Z nor 07.206Z: 10 times 10 bits are 13 bytes. */
static void fractions_of_seconds_do_not_count(void **state)
{
	(void)state;
	filter_of(SLICE("01T12:03:07.206Z 5.168.07:5"));
	assert_int_equal(rig.filter.len, 13 + 2);
	assert_true(filter_has(SLICE("03:07.206Z"), false, false));
	assert_true(filter_has(SLICE("999Z"), false, false));
	/* Less is no fraction; nor is what stands behind more than two digits. */
	assert_false(filter_has(SLICE("99Z"), false, false));
	assert_false(filter_has(SLICE("7.168"), false, false));
	assert_false(filter_has(SLICE("03.5"), false, false));
	assert_false(filter_has(SLICE("07:168"), false, false));
	/* Its words count also where the pair does not. */
	assert_false(filter_has(SLICE("07.206"), false, false));
	assert_true(filter_has(SLICE("03.168"), false, false));
	assert_true(filter_has(SLICE("5.168"), false, false));
}

/* What stands at an open end says nothing of words. */
static void open_ends_ask_for_less(void **state)
{
	(void)state;
	filter_of(SLICE("alpha.beta gamma"));
	assert_true(filter_has(SLICE("pha"), true, false));
	assert_true(filter_has(SLICE("alp"), false, true));
	assert_false(filter_has(SLICE("alph"), false, false));
	assert_true(filter_has(SLICE("pha.beta gam"), true, true));
	assert_false(filter_has(SLICE("pha.delta gam"), true, true));
	/* A pair is asked for where both of its words are whole. */
	assert_true(filter_has(SLICE("gamma"), true, true));
	assert_false(filter_has(SLICE("x beta.gamma y"), true, true));
}

/* A word of a filter of 10 bits and 8 probes is there by chance in 0.85 of 100 (Bloom). */
static void few_words_are_there_by_chance(void **state)
{
	struct buf text;
	char word[32];
	unsigned found = 0;
	(void)state;
	buf_init(&text, 1 << 20);
	for (int i = 0; i < 20000; i++)
		buf_printf(&text, "in%d ", i);
	filter_of(buf_slice(&text));
	/* 20,000 words of 10 bits; beside them a byte and a varint. */
	assert_int_equal(rig.filter.len, 25000 + 1 + 3);
	for (int i = 0; i < 20000; i++) {
		snprintf(word, sizeof(word), "out%d", i);
		found += filter_has(slice_of(word), false, false);
	}
	assert_in_range(found, 100, 260);
	buf_release(&text);
}

static void an_empty_text_has_no_words(void **state)
{
	(void)state;
	filter_of(SLICE(""));
	assert_false(filter_has(SLICE("a"), false, false));
	assert_true(filter_has(SLICE("..."), false, false));
}

/* ---- Finding --------------------------------------------------------------------------------- */

static void texts_are_found_between_words(void **state)
{
	static const struct {
		const char *line, *text;
		bool open_left, open_right, found;
	} cases[] = {
		{"lock wait timeout", "wait", false, false, true},
		{"lock wait timeout", "WAIT", false, false, true},
		{"LOCK WAIT", "lock wait", false, false, true},
		{"lock  wait", "lock wait", false, false, false},
		{"lock waiting", "lock wait", false, false, false},
		{"lock waiting", "lock wait", false, true, true},
		{"unlock wait", "lock wait", true, false, true},
		{"unlock wait", "lock wait", false, false, false},
		/* The first place is a part of a word, the second is not. */
		{"unlock lock", "lock", false, false, true},
		{"lock_1", "lock", false, false, false},
		{"lock-1", "lock", false, false, true},
		{"lock", "lock", false, false, true},
		{"", "lock", false, false, false},
		{"loc", "lock", false, false, false},
		{"110.1.2.3", "10.1.2.3", false, false, false},
		{"10.1.2.34", "10.1.2.3", false, false, false},
		{"x=10.1.2.3:80", "10.1.2.3", false, false, true},
		/* At an end that is no word character anything may stand. */
		{"a[error]b", "[error]", false, false, true},
		{"@`{", "`", false, false, true},
		/* 0x20 makes one of these of the other, but they are no letters. */
		{"@", "`", false, false, false},
		{"[", "{", false, false, false},
		{"Größe", "größe", false, false, true},
		{"GRÖßE", "größe", false, false, true},
		{"größer", "größe", false, false, false},
		{"ärger", "rger", false, false, false},
		{"\xe2\x80\x9c"
		 "foo\xe2\x80\x9d",
		 "foo", false, false, true},
		{"\xffoo\xff", "oo", false, false, true},
		{"\xff", "\xc3\xbf", false, false, false},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (line_has(cases[i].line, cases[i].text, cases[i].open_left,
			     cases[i].open_right) != cases[i].found)
			fail_msg("%zu: \"%s\" in \"%s\"", i, cases[i].text, cases[i].line);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool naive_at(struct slice line, size_t at, struct slice text, bool open_left,
		     bool open_right)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = line.data[at + i];
		if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != text.data[i])
			return false;
	}
	size_t end = at + text.len;
	bool left = at && is_word(line.data[at - 1]) && is_word(line.data[at]);
	bool right = end < line.len && is_word(line.data[end]) && is_word(line.data[end - 1]);
	return (open_left || !left) && (open_right || !right);
}

/* Texts of few characters, so that all of it occurs: compared with one place after the other. A
 * line that has a text is never excluded by its filter. */
static void finding_is_the_same_as_looking_everywhere(void **state)
{
	static const char characters[] = "aAbB_1 .-";
	struct random random;
	char line[80], text[8];
	(void)state;
	random_init(&random, 7);
	for (int round = 0; round < 200000; round++) {
		struct slice l = {line, random_below(&random, sizeof(line))};
		struct slice t = {text, 1 + random_below(&random, 5)};
		for (size_t i = 0; i < l.len; i++)
			line[i] = characters[random_below(&random, sizeof(characters) - 1)];
		for (size_t i = 0; i < t.len; i++)
			text[i] = "ab_1 .-"[random_below(&random, 7)];
		bool left = random_below(&random, 2), right = random_below(&random, 2);
		bool expected = false;
		for (size_t at = 0; at + t.len <= l.len && !expected; at++)
			expected = naive_at(l, at, t, left, right);
		struct lines_literal literal = literal_of(t, left, right);
		if (lines_literal_is_in(&literal, l, &rig.room) != expected)
			fail_msg("\"%.*s\" in \"%.*s\", open %d %d", (int)t.len, text, (int)l.len,
				 line, left, right);
		if (round % 8)
			continue;
		filter_of(l);
		if (expected && !filter_has(t, left, right))
			fail_msg("the filter of \"%.*s\" excludes \"%.*s\", open %d %d", (int)l.len,
				 line, (int)t.len, text, left, right);
	}
}

static int open_rig(void **state)
{
	(void)state;
	arena_init(&rig.arena, ARENA_BYTES);
	buf_init(&rig.filter, 1 << 20);
	buf_init(&rig.room, 1 << 16);
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	arena_release(&rig.arena);
	buf_release(&rig.filter);
	buf_release(&rig.room);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_and_pairs_are_in_filters),
		cmocka_unit_test(words_are_the_same_wherever_they_stand),
		cmocka_unit_test(fractions_of_seconds_do_not_count),
		cmocka_unit_test(open_ends_ask_for_less),
		cmocka_unit_test(few_words_are_there_by_chance),
		cmocka_unit_test(an_empty_text_has_no_words),
		cmocka_unit_test(texts_are_found_between_words),
		cmocka_unit_test(finding_is_the_same_as_looking_everywhere),
	};
	return cmocka_run_group_tests(tests, open_rig, close_rig);
}
