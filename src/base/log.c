#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stats.h"
#include "base/visible.h"

enum {
	LINE_MAX_BYTES = 2048,
	LOG_TIME_BYTES = 64,
	LOG_AROUND_MAX_BYTES = 200, /* of what a format puts around time and message */
	RATE_MS = 60000,
	LOG_FILE_MODE = 0640,
};

static _Atomic int threshold = LOG_INFO, log_format = LOG_TEXT;
static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const int syslog_levels[] = {3, 4, 6, 7}; /* RFC 5424 */
static const char *const format_names[] = {"text", "json", "journal"};

void log_set_level(enum log_level level)
{
	threshold = (int)level;
}

bool log_level_parse(const char *text, enum log_level *level)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*level = (enum log_level)i;
			return true;
		}
	}
	return false;
}

void log_set_format(enum log_format format)
{
	log_format = (int)format;
}

bool log_format_parse(const char *text, enum log_format *format)
{
	for (size_t i = 0; i < ARRAY_LEN(format_names); i++) {
		if (strcmp(text, format_names[i]) == 0) {
			*format = (enum log_format)i;
			return true;
		}
	}
	return false;
}

/* The message as one line that is visible. */
static struct slice log_escape(char *to, size_t cap, const char *message)
{
	struct slice text = slice_of(message);
	size_t n = 0, taken;
	for (; text.len && n + VISIBLE_MAX_BYTES < cap; text.data += taken, text.len -= taken)
		n += visible_put(to + n, text, &taken);
	return (struct slice){to, n};
}

static struct {
	pthread_mutex_t lock;
	char path[PATH_MAX]; /* empty: there is none */
	int fd;
	bool cut; /* the last line is there in part */
	uint64_t bytes;
} log_file = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static int log_file_open(void)
{
	struct stat st;
	log_file.fd = open(log_file.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, LOG_FILE_MODE);
	if (log_file.fd < 0 || fstat(log_file.fd, &st))
		return -errno;
	log_file.bytes = (uint64_t)st.st_size;
	return 0;
}

int log_open(const char *path)
{
	pthread_mutex_lock(&log_file.lock);
	ASSERT(!log_file.path[0]);
	snprintf(log_file.path, sizeof(log_file.path), "%s", path);
	int err = log_file_open();
	pthread_mutex_unlock(&log_file.lock);
	return err;
}

static void log_file_rotate(void)
{
	char to[PATH_MAX + 2];
	snprintf(to, sizeof(to), "%s.1", log_file.path);
	if (log_file.fd >= 0)
		close(log_file.fd);
	log_file.fd = -1;
	bool renamed = rename(log_file.path, to) == 0;
	if (log_file_open() == 0 && !renamed)
		log_file.bytes = 0; /* it is tried again when as much has come */
}

static void log_file_put(const char *line, size_t len)
{
	pthread_mutex_lock(&log_file.lock);
	if (log_file.path[0]) {
		if (log_file.fd < 0)
			(void)log_file_open();
		if (log_file.fd >= 0 && log_file.bytes + len > LOG_FILE_MAX_BYTES)
			log_file_rotate();
		if (log_file.cut && log_file.fd >= 0) /* a part of a line is a line */
			log_file.cut = write(log_file.fd, "\n", 1) != 1;
		ssize_t put = log_file.fd < 0 ? -1 : write(log_file.fd, line, len);
		log_file.bytes += put > 0 ? (uint64_t)put : 0;
		log_file.cut |= put > 0 && put < (ssize_t)len;
		if (put < (ssize_t)len)
			stat_add(STAT_log_lost, 1);
	}
	pthread_mutex_unlock(&log_file.lock);
}

static size_t log_put_text(char *line, size_t cap, const char *time, enum log_level level,
			   struct slice text)
{
	return (size_t)snprintf(line, cap, "%s %-5s %.*s\n", time, level_names[level],
				(int)text.len, text.data);
}

/* Visible text has no control characters. */
static size_t log_put_json(char *line, size_t cap, const char *time, enum log_level level,
			   struct slice text)
{
	size_t n = (size_t)snprintf(line, cap, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"",
				    time, level_names[level]);
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"' || text.data[i] == '\\')
			line[n++] = '\\';
		line[n++] = text.data[i];
	}
	memcpy(line + n, "\"}\n", 3);
	return n + 3;
}

static size_t log_put(char *line, size_t cap, const char *time, enum log_level level,
		      struct slice text)
{
	if (log_format == LOG_JSON)
		return log_put_json(line, cap, time, level, text);
	if (log_format == LOG_TEXT)
		return log_put_text(line, cap, time, level, text);
	return (size_t)snprintf(line, cap, "<%d>%.*s\n", syslog_levels[level], (int)text.len,
				text.data);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	if ((int)level > threshold)
		return;
	char message[LINE_MAX_BYTES], visible[LINE_MAX_BYTES - LOG_TIME_BYTES];
	char line[2 * LINE_MAX_BYTES + LOG_AROUND_MAX_BYTES], time[LOG_TIME_BYTES];
	va_list args;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);

	int64_t now_ms = clock_wall_ms(clock_real());
	time_t seconds = (time_t)floor_div(now_ms, 1000);
	struct tm utc;
	gmtime_r(&seconds, &utc);
	size_t n = strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(time + n, sizeof(time) - n, ".%03dZ", (int)(now_ms - seconds * 1000));
	struct slice text = log_escape(visible, sizeof(visible), message);
	log_file_put(line, log_put_text(line, sizeof(line), time, level, text));
	n = log_put(line, sizeof(line), time, level, text);
	/* One write, so that lines of several threads do not mix; a full pipe loses log lines
	 * rather than stopping the server. */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

bool log_rate_take(struct log_rate *rate, int64_t now_ms, uint64_t *left_out)
{
	ASSERT(rate->lines_max);
	if (!rate->begun || now_ms - rate->minute_ms >= RATE_MS) {
		rate->minute_ms = now_ms;
		rate->lines = 0;
		rate->begun = true;
	}
	if (rate->lines == rate->lines_max) {
		rate->left_out++;
		return false;
	}
	rate->lines++;
	*left_out = rate->left_out;
	rate->left_out = 0;
	return true;
}

void log_rated(struct log_rate *rate, int64_t now_ms, enum log_level level, const char *fmt, ...)
{
	char message[LINE_MAX_BYTES];
	uint64_t left_out;
	va_list args;
	if (!log_rate_take(rate, now_ms, &left_out))
		return;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	if (left_out)
		log_line(level, "%s (%llu more lines like this were left out)", message,
			 (unsigned long long)left_out);
	else
		log_line(level, "%s", message);
}
