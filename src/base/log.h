/* The log: one line an event to standard error. Control characters in the message are escaped, so
 * that no input can forge a line. Thread-safe. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/base.h"

enum { LOG_FILE_MAX_BYTES = 16 << 20 };

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

enum log_format {
	LOG_TEXT,    /* `time level message` */
	LOG_JSON,    /* an object: time (RFC 3339, UTC, ms), level, message */
	LOG_JOURNAL, /* `<6>message`: the journal has the time, and takes the level (sd-daemon(3))
		      */
};

void log_set_level(enum log_level level);
/* The format of standard error; the file of log_open() always has text. */
void log_set_format(enum log_format format);
/* "text", "json" or "journal"; false for anything else. */
bool log_format_parse(const char *text, enum log_format *format) MUST_CHECK;
/* "error", "warn", "info" or "debug"; false for anything else. */
bool log_level_parse(const char *text, enum log_level *level) MUST_CHECK;

/* From now on lines go to this file, too. May be called once. A file of LOG_FILE_MAX_BYTES is
 * renamed to PATH.1, in place of the one before. A line that cannot be written there is counted.
 * -errno. */
int log_open(const char *path) MUST_CHECK;

void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Lines of an event that may come in any number: at most `lines_max` begin in a minute, and the
 * first one after that says how many were left out. Zeroed but for lines_max; its owner's thread
 * only. */
struct log_rate {
	unsigned lines_max;
	unsigned lines;    /* of this minute */
	int64_t minute_ms; /* its begin, on the owner's clock */
	bool begun;
	uint64_t left_out; /* since the last line */
};

/* Whether this event may be logged; *left_out: how many before it were not. */
bool log_rate_take(struct log_rate *rate, int64_t now_ms, uint64_t *left_out) MUST_CHECK;

/* Such a line, if it may be logged; its end says how many before it were left out, where any were.
 */
void log_rated(struct log_rate *rate, int64_t now_ms, enum log_level level, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
