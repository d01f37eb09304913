/* Messages of syslog: where they end, and what is in front of them. Expected texts are written by
 * hand; the examples of RFC 6587 and RFC 3164 are theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "wire/syslog.h"

/* ---- Priorities ------------------------------------------------------------------------------ */

static void priorities(void **state)
{
	(void)state;
	static const struct {
		const char *message, *facility;
		unsigned severity;
		bool found;
	} cases[] = {
		{"<0>x", "kern", 0, true},
		{"<34>Oct 11 22:14:15 mymachine su: 'su root' failed", "auth", 2, true},
		{"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1", "local4", 5, true},
		{"<142>Syslog formatted message.", "local1", 6, true},
		{"<191>", "local7", 7, true},
		{"<13>x", "user", 5, true},
		/* What has none counts as 13. */
		{"", "user", 5, false},
		{"<", "user", 5, false},
		{"<>x", "user", 5, false},
		{"<1", "user", 5, false},
		{"<191", "user", 5, false},
		{"<192>x", "user", 5, false},
		{"<0191>x", "user", 5, false},
		{"<00>x", "user", 5, false},
		{"<01>x", "user", 5, false},
		{"< 1>x", "user", 5, false},
		{"<-1>x", "user", 5, false},
		{"<1a>x", "user", 5, false},
		{"x<1>", "user", 5, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned facility, severity;
		bool found = syslog_priority(slice_of(cases[i].message), &facility, &severity);
		assert_int_equal(found, cases[i].found);
		assert_string_equal(syslog_facility_words[facility], cases[i].facility);
		assert_int_equal(severity, cases[i].severity);
	}
}

/* ---- Framing --------------------------------------------------------------------------------- */

struct rig {
	struct syslog_framing framing;
	struct buf in;
	struct buf out; /* messages, each behind a | */
	size_t most;    /* bytes that waited after a turn */
};

static void take_all(struct rig *rig, bool end)
{
	struct slice left = buf_slice(&rig->in), message;
	while (syslog_take(&rig->framing, &left, end, &message)) {
		buf_append_char(&rig->out, '|');
		buf_append(&rig->out, message.data, message.len);
		assert_true(message.len <= rig->framing.max_bytes);
	}
	buf_consume(&rig->in, rig->in.len - left.len);
	rig->most = left.len > rig->most ? left.len : rig->most;
}

/* However the bytes are cut, the same comes out of them. */
static void assert_taken(struct slice sent, size_t max_bytes, bool lines, bool end,
			 const char *expected, uint64_t cut_bytes)
{
	for (size_t step = 1; step <= sent.len; step++) {
		struct rig rig = {.framing = {.max_bytes = max_bytes, .lines = lines}};
		buf_init(&rig.in, 1 << 20);
		buf_init(&rig.out, 1 << 20);
		for (size_t at = 0; at < sent.len; at += step) {
			size_t len = sent.len - at < step ? sent.len - at : step;
			buf_append(&rig.in, sent.data + at, len);
			take_all(&rig, false);
		}
		assert_true(rig.most < max_bytes + SYSLOG_COUNT_DIGITS_MAX + 2);
		if (end)
			take_all(&rig, true);
		buf_append_char(&rig.out, 0);
		assert_string_equal(rig.out.data, expected);
		assert_int_equal(rig.framing.cut_bytes, cut_bytes);
		if (end)
			assert_int_equal(rig.in.len, 0);
		buf_release(&rig.in);
		buf_release(&rig.out);
	}
}

static void messages_with_a_length(void **state)
{
	(void)state;
	assert_taken(SLICE("4 <1>a7 <2>b\nc\n6 <3>\n\n\n"), 100, false, false,
		     "|<1>a|<2>b\nc|<3>\n\n", 0);
	assert_taken(SLICE("13 <165>1 short"), 100, false, false, "", 0);
	assert_taken(SLICE("13 <165>1 short"), 100, false, true, "|<165>1 short", 0);
	assert_taken(SLICE("1 <5 <1>xx"), 100, false, false, "|<|<1>xx", 0);
}

static void messages_that_are_lines(void **state)
{
	(void)state;
	assert_taken(SLICE("<1>a\n<2>b c\r\n\n<3>d"), 100, false, false, "|<1>a|<2>b c|", 0);
	assert_taken(SLICE("<1>a\n<3>d"), 100, false, true, "|<1>a|<3>d", 0);
	assert_taken(SLICE("2026-11-29 x\n12 monkeys\n"), 100, false, false,
		     "|2026-11-29 x|12 monkeys", 0);
	assert_taken(SLICE("0 <1>x\n"), 100, false, false, "|0 <1>x", 0);
	assert_taken(SLICE("12\n12 \n"), 100, false, false, "|12|12 ", 0);
	assert_taken(SLICE("123"), 100, false, true, "|123", 0);
	assert_taken(SLICE("1234567890 <1>x\n"), 100, false, false, "|1234567890 <1>x", 0);
}

static void both_forms_in_one_connection(void **state)
{
	(void)state;
	assert_taken(SLICE("<1>line\n4 <2>x<3>line\n5 <4>yy"), 100, false, false,
		     "|<1>line|<2>x|<3>line|<4>yy", 0);
}

/* A false length: what is left of the message is a line, and the next one is whole. */
static void a_false_length_ends_at_a_newline(void **state)
{
	(void)state;
	assert_taken(SLICE("6 <1>abcdef\n5 <2>gh"), 100, false, false, "|<1>abc|def|<2>gh", 0);
}

static void lines_alone(void **state)
{
	(void)state;
	assert_taken(SLICE("4 <1>a\nb\n"), 100, true, false, "|4 <1>a|b", 0);
}

static void long_messages_are_cut(void **state)
{
	(void)state;
	/* Each has one byte too many, or just not. */
	assert_taken(SLICE("10 <1>4567890<2>next\n"), 10, false, false, "|<1>4567890|<2>next", 0);
	assert_taken(SLICE("11 <1>45678901<2>next\n"), 10, false, false, "|<1>4567890|<2>next", 1);
	assert_taken(SLICE("<1>4567890\n<2>next\n"), 10, false, false, "|<1>4567890|<2>next", 0);
	assert_taken(SLICE("<1>45678901\n<2>next\n"), 10, false, false, "|<1>4567890|<2>next", 1);
	assert_taken(SLICE("<1>4567890123456\n4 <2>x"), 10, false, false, "|<1>4567890|<2>x", 6);
	assert_taken(SLICE("15 <1>456789012345<2>x"), 10, false, true, "|<1>4567890|<2>x", 5);
	assert_taken(SLICE("999999999 <1>456789012345"), 10, false, true, "|<1>4567890", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(priorities),
		cmocka_unit_test(messages_with_a_length),
		cmocka_unit_test(messages_that_are_lines),
		cmocka_unit_test(both_forms_in_one_connection),
		cmocka_unit_test(a_false_length_ends_at_a_newline),
		cmocka_unit_test(lines_alone),
		cmocka_unit_test(long_messages_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
