/* The log: one line an event, whatever the event holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stats.h"

static char logged[8192];

static int pipe_fds[2], saved;

/* What is written to standard error from here on goes into `logged`. */
static void capture_begin(void)
{
	saved = dup(STDERR_FILENO);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_true(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
}

static void capture_end(void)
{
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	close(pipe_fds[1]);
	size_t len = 0;
	ssize_t n;
	while ((n = read(pipe_fds[0], logged + len, sizeof(logged) - 1 - len)) > 0)
		len += (size_t)n;
	close(pipe_fds[0]);
	assert_int_equal(n, 0);
	logged[len] = 0;
}

static void capture(enum log_level level, const char *message)
{
	capture_begin();
	log_line(level, "%s", message);
	capture_end();
}

static void line_has_time_level_and_message(UNUSED void **state)
{
	capture(LOG_INFO, "store opened");
	/* 2026-11-21T10:23:49.648Z info  store opened */
	assert_int_equal(logged[10], 'T');
	assert_int_equal(logged[23], 'Z');
	assert_string_equal(logged + 24, " info  store opened\n");
}

/* Once in a process: this comes last. */
static void a_file_of_the_log(UNUSED void **state)
{
	char directory[] = "/tmp/granary-log-XXXXXX", path[64], old[64], missing[64];
	char message[2000];
	struct buf text;
	struct files *files = files_real();
	uint64_t bytes, old_bytes = 0;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/log", directory);
	snprintf(old, sizeof(old), "%s/log.1", directory);
	assert_int_equal(log_open(path), 0);
	capture(LOG_INFO, "first\nline");
	buf_init(&text, 1000);
	assert_int_equal(files->read(files, path, 1000, &text), 0);
	assert_int_equal(text.len, strlen(logged));
	assert_memory_equal(text.data, logged, text.len);
	buf_release(&text);
	/* A line is 31 bytes and the message: time, level, newline. 16 MiB and a line more. */
	memset(message, 'x', sizeof(message));
	message[1968] = 0;
	int saved_error = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
	assert_true(dup2(nowhere, STDERR_FILENO) >= 0);
	for (size_t i = 0; i < LOG_FILE_MAX_BYTES / 2000; i++)
		log_line(LOG_WARN, "%s", message);
	assert_int_equal(files->length(files, old, &old_bytes), ERR_NOT_FOUND);
	log_line(LOG_WARN, "%s", message);
	assert_int_equal(files->length(files, old, &old_bytes), 0);
	assert_int_equal(files->length(files, path, &bytes), 0);
	assert_int_equal(bytes, 2000);
	assert_int_equal(old_bytes, strlen(logged) + LOG_FILE_MAX_BYTES / 2000 * 2000);
	/* A line that cannot be written there is counted; the next one is there again. */
	for (size_t i = 0; i < LOG_FILE_MAX_BYTES / 2000 - 1; i++)
		log_line(LOG_WARN, "%s", message);
	snprintf(missing, sizeof(missing), "%s-moved", directory);
	assert_int_equal(rename(directory, missing), 0);
	int64_t lost = stat_get(STAT_log_lost);
	log_line(LOG_WARN, "%s", message);
	assert_int_equal(stat_get(STAT_log_lost), lost + 1);
	assert_int_equal(rename(missing, directory), 0);
	log_line(LOG_WARN, "%s", message);
	assert_int_equal(stat_get(STAT_log_lost), lost + 1);
	assert_true(dup2(saved_error, STDERR_FILENO) >= 0);
	close(saved_error);
	close(nowhere);
	assert_int_equal(unlink(path) | unlink(old) | rmdir(directory), 0);
}

static void control_characters_are_escaped(UNUSED void **state)
{
	capture(LOG_WARN, "a\nb\rc\td\x1b[31me\x7f\x01");
	assert_string_equal(logged + 24, " warn  a\\nb\\rc\\td\\x1b[31me\\x7f\\x01\n");
	/* A C1 control, an override of direction, its C1 byte alone, an end of line. */
	capture(LOG_WARN, "a\xc2\x9b"
			  "2Jb\xe2\x80\xae"
			  "c\x9b"
			  "d\xe2\x80\xa8"
			  "e");
	assert_string_equal(logged + 24, " warn  a\\u009b2Jb\\u202ec\\x9bd\\u2028e\n");
	capture(LOG_ERROR, "gr\xc3\xbc\xc3\x9f"); /* letters stay letters */
	assert_string_equal(logged + 24, " error gr\xc3\xbc\xc3\x9f\n");
}

static void long_messages_are_cut_to_one_line(UNUSED void **state)
{
	char message[6000];
	memset(message, '\n', sizeof(message) - 1);
	message[sizeof(message) - 1] = 0;
	capture(LOG_ERROR, message);
	size_t len = strlen(logged);
	assert_true(len <= 2048);
	assert_int_equal(logged[len - 1], '\n');
	assert_ptr_equal(strchr(logged, '\n'), logged + len - 1);
	memset(message, 'x', sizeof(message) - 1);
	capture(LOG_ERROR, message);
	len = strlen(logged);
	assert_true(len <= 2048 && logged[len - 1] == '\n');
}

static void levels_below_the_threshold_are_silent(UNUSED void **state)
{
	enum log_level level;
	log_set_level(LOG_WARN);
	capture(LOG_INFO, "quiet");
	assert_string_equal(logged, "");
	capture(LOG_WARN, "loud");
	assert_non_null(strstr(logged, "loud"));
	assert_true(log_level_parse("debug", &level));
	assert_int_equal(level, LOG_DEBUG);
	assert_true(log_level_parse("error", &level));
	assert_int_equal(level, LOG_ERROR);
	assert_false(log_level_parse("Debug", &level));
	assert_false(log_level_parse("", &level));
	log_set_level(LOG_INFO);
}

/* RFC 8259 (quotation marks and reverse solidi are escaped); sd-daemon(3) (levels of syslog). */
static void a_line_may_be_json_or_for_the_journal(UNUSED void **state)
{
	enum log_format format;
	char message[6000];
	log_set_format(LOG_JSON);
	capture(LOG_WARN, "a \"b\" c\\d\n");
	assert_memory_equal(logged, "{\"time\":\"2", 10);
	assert_string_equal(logged + 34, ",\"level\":\"warn\",\"message\":\"a \\\"b\\\" c\\\\d"
					 "\\\\n\"}\n");
	memset(message, '"', sizeof(message) - 1);
	message[sizeof(message) - 1] = 0;
	capture(LOG_ERROR, message);
	size_t len = strlen(logged);
	assert_string_equal(logged + len - 5, "\\\"\"}\n");
	log_set_format(LOG_JOURNAL);
	static const struct {
		enum log_level level;
		const char *line;
	} lines[] = {{LOG_ERROR, "<3>m\n"}, {LOG_WARN, "<4>m\n"}, {LOG_INFO, "<6>m\n"}};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		capture(lines[i].level, "m");
		assert_string_equal(logged, lines[i].line);
	}
	log_set_format(LOG_TEXT);
	assert_true(log_format_parse("json", &format) && format == LOG_JSON);
	assert_true(log_format_parse("journal", &format) && format == LOG_JOURNAL);
	assert_false(log_format_parse("JSON", &format));
}

/* Two lines a minute: the third event of a minute waits to be counted by the next line. */
static void a_flood_is_counted(UNUSED void **state)
{
	struct log_rate rate = {.lines_max = 2};
	uint64_t left_out = 99;
	assert_true(log_rate_take(&rate, -5, &left_out));
	assert_int_equal(left_out, 0);
	assert_true(log_rate_take(&rate, 100, &left_out));
	assert_int_equal(left_out, 0);
	assert_false(log_rate_take(&rate, 100, &left_out));
	assert_false(log_rate_take(&rate, 59994, &left_out));
	assert_true(log_rate_take(&rate, 59995, &left_out));
	assert_int_equal(left_out, 2);
	assert_true(log_rate_take(&rate, 59995, &left_out));
	assert_int_equal(left_out, 0);
	assert_false(log_rate_take(&rate, 119994, &left_out));
	assert_true(log_rate_take(&rate, 500000, &left_out));
	assert_int_equal(left_out, 1);
}

/* A line that may be logged says how many before it were not, and nothing where none was. */
static void a_line_says_what_was_left_out_before_it(UNUSED void **state)
{
	struct log_rate rate = {.lines_max = 1};
	capture_begin();
	log_rated(&rate, 0, LOG_WARN, "%s %d", "full", 1);
	log_rated(&rate, 1, LOG_WARN, "full 2");
	log_rated(&rate, 2, LOG_WARN, "full 3");
	log_rated(&rate, 60000, LOG_WARN, "full 4");
	capture_end();
	assert_non_null(strstr(logged, "full 1\n"));
	assert_null(strstr(logged, "full 2"));
	assert_null(strstr(logged, "full 3"));
	assert_non_null(strstr(logged, "full 4 (2 more lines like this were left out)\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_has_time_level_and_message),
		cmocka_unit_test(control_characters_are_escaped),
		cmocka_unit_test(long_messages_are_cut_to_one_line),
		cmocka_unit_test(levels_below_the_threshold_are_silent),
		cmocka_unit_test(a_line_may_be_json_or_for_the_journal),
		cmocka_unit_test(a_flood_is_counted),
		cmocka_unit_test(a_line_says_what_was_left_out_before_it),
		cmocka_unit_test(a_file_of_the_log),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
