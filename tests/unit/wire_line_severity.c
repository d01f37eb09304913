/* How bad lines say that they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/line_severity.h"

static void severities(void **state)
{
	static const struct {
		const char *line;
		enum line_severity severity;
	} cases[] = {
		{"", LINE_UNKNOWN},
		{"nothing to see", LINE_UNKNOWN},
		{"2026-11-29 14:49:30,123 ERROR [main] failed", LINE_ERROR},
		{"2026-11-29T14:49:30Z level=warn msg=\"an error\"", LINE_WARNING},
		{"{\"level\":\"debug\",\"msg\":\"fatal\"}", LINE_DEBUG},
		{"[error] 12#0: x", LINE_ERROR},
		{"terror errors error_count", LINE_UNKNOWN},
		{"an err here", LINE_ERROR},
		{"Severe: x", LINE_ERROR},
		{"kernel: PANIC", LINE_CRITICAL},
		{"TRACE a", LINE_TRACE},
		{"Notice: b", LINE_NOTICE},
		{"INFORMATIONAL c", LINE_INFO},
		/* RFC 5424: 8 * facility + severity; 3 is an error, 6 informational, 2 critical. */
		{"<3>x", LINE_ERROR},
		{"<134>1 - error", LINE_INFO},
		{"<10>Nov 29 x", LINE_CRITICAL},
		{"<191>x", LINE_DEBUG},
		{"<192>a warning", LINE_WARNING},
		{"<>a warning", LINE_WARNING},
		{"<13", LINE_UNKNOWN},
		{"I1129 14:49:30.1 1 a.go:1] error", LINE_INFO},
		{"E1129 14:49:30.1 1 a.go:1] x", LINE_ERROR},
		{"F1129 x", LINE_CRITICAL},
		{"I20261129 14:49:30.1 1 a.go:1] error", LINE_INFO},
		{"I202611 an error", LINE_ERROR},
		{"W1129", LINE_UNKNOWN},
		{"W20261129", LINE_UNKNOWN},
		{"E112 14 x", LINE_UNKNOWN},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (line_severity_of(slice_of(cases[i].line)) != cases[i].severity)
			fail_msg("%s", cases[i].line);
}

/* What stands behind the beginning of a line is not looked at. */
static void only_the_beginning_counts(void **state)
{
	char line[LINE_SEVERITY_BYTES + 10];
	(void)state;
	memset(line, ' ', sizeof(line));
	memcpy(line + LINE_SEVERITY_BYTES, "error", 5);
	assert_int_equal(line_severity_of((struct slice){line, sizeof(line)}), LINE_UNKNOWN);
	memset(line, ' ', sizeof(line));
	memcpy(line + LINE_SEVERITY_BYTES - 1, "error", 5);
	assert_int_equal(line_severity_of((struct slice){line, sizeof(line)}), LINE_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(severities),
		cmocka_unit_test(only_the_beginning_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
