#include "base/log.h"

#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/visible.h"

enum { LINE_MAX_BYTES = 2048, RATE_MS = 60000 };

static _Atomic int threshold = LOG_INFO;
static const char *const level_names[] = {"error", "warn", "info", "debug"};

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

/* The message as one line that is visible. */
static size_t escape(char *to, size_t cap, const char *message)
{
	struct slice text = slice_of(message);
	size_t n = 0, taken;
	for (; text.len && n + VISIBLE_MAX_BYTES < cap; text.data += taken, text.len -= taken)
		n += visible_put(to + n, text, &taken);
	return n;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	if ((int)level > threshold)
		return;
	char message[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
	va_list args;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);

	int64_t now_ms = clock_wall_ms(clock_real());
	time_t seconds = (time_t)floor_div(now_ms, 1000);
	struct tm utc;
	gmtime_r(&seconds, &utc);
	size_t n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &utc);
	n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03dZ %-5s ",
			      (int)(now_ms - seconds * 1000), level_names[level]);
	n += escape(line + n, sizeof(line) - n - 1, message);
	line[n++] = '\n';
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
