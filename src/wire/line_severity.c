#include "wire/line_severity.h"

enum {
	SEVERITY_WORD_MIN = 3,
	SEVERITY_WORD_MAX = 13,
	/* glog writes the month and the day, and may write the year before them. */
	SEVERITY_GLOG_DIGITS = 4,
	SEVERITY_GLOG_YEAR_DIGITS = 8,
};

static const char *const severity_texts[LINE_SEVERITIES] = {
	[LINE_UNKNOWN] = "unknown", [LINE_TRACE] = "trace",      [LINE_DEBUG] = "debug",
	[LINE_INFO] = "info",       [LINE_NOTICE] = "notice",    [LINE_WARNING] = "warning",
	[LINE_ERROR] = "error",     [LINE_CRITICAL] = "critical"};

const char *line_severity_text(enum line_severity severity)
{
	return severity_texts[severity];
}

static const struct severity_word {
	const char *word;
	enum line_severity severity;
} severity_words[] = {
	{"trace", LINE_TRACE},       {"debug", LINE_DEBUG},        {"info", LINE_INFO},
	{"information", LINE_INFO},  {"informational", LINE_INFO}, {"notice", LINE_NOTICE},
	{"warn", LINE_WARNING},      {"warning", LINE_WARNING},    {"err", LINE_ERROR},
	{"error", LINE_ERROR},       {"severe", LINE_ERROR},       {"crit", LINE_CRITICAL},
	{"critical", LINE_CRITICAL}, {"fatal", LINE_CRITICAL},     {"alert", LINE_CRITICAL},
	{"emerg", LINE_CRITICAL},    {"emergency", LINE_CRITICAL}, {"panic", LINE_CRITICAL},
};

static bool severity_is_letter(char c)
{
	return (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || c == '_' ||
	       (c >= '0' && c <= '9') || (uint8_t)c > 0x7f;
}

static enum line_severity severity_of_word(struct slice word)
{
	if (word.len < SEVERITY_WORD_MIN || word.len > SEVERITY_WORD_MAX)
		return LINE_UNKNOWN;
	for (size_t i = 0; i < ARRAY_LEN(severity_words); i++)
		if (slice_equal_lower(word, slice_of(severity_words[i].word)))
			return severity_words[i].severity;
	return LINE_UNKNOWN;
}

/* `<13>`: the low three bits, from 0, the system is unusable, to 7, debugging (RFC 5424). */
static enum line_severity severity_of_priority(struct slice line)
{
	static const enum line_severity of[] = {LINE_CRITICAL, LINE_CRITICAL, LINE_CRITICAL,
						LINE_ERROR,    LINE_WARNING,  LINE_NOTICE,
						LINE_INFO,     LINE_DEBUG};
	unsigned priority = 0;
	size_t at = 1;
	for (; at < line.len && at < 4 && line.data[at] >= '0' && line.data[at] <= '9'; at++)
		priority = 10 * priority + (unsigned)(line.data[at] - '0');
	bool good = at > 1 && at < line.len && line.data[at] == '>' && priority <= 191;
	return good ? of[priority & 7] : LINE_UNKNOWN;
}

/* `I1129 14:49:30`, `I20261129 14:49:30` */
static enum line_severity severity_of_letter(struct slice line)
{
	size_t at = 1;
	while (at < line.len && line.data[at] >= '0' && line.data[at] <= '9')
		at++;
	if ((at != 1 + SEVERITY_GLOG_DIGITS && at != 1 + SEVERITY_GLOG_YEAR_DIGITS) ||
	    at == line.len || line.data[at] != ' ')
		return LINE_UNKNOWN;
	switch (line.data[0]) {
	case 'I':
		return LINE_INFO;
	case 'W':
		return LINE_WARNING;
	case 'E':
		return LINE_ERROR;
	case 'F':
		return LINE_CRITICAL;
	default:
		return LINE_UNKNOWN;
	}
}

enum line_severity line_severity_of(struct slice line)
{
	enum line_severity severity = LINE_UNKNOWN;
	size_t len = line.len < LINE_SEVERITY_BYTES ? line.len : LINE_SEVERITY_BYTES;
	if (len && line.data[0] == '<')
		severity = severity_of_priority(line);
	else if (len)
		severity = severity_of_letter(line);
	for (size_t at = 0; at < len && !severity;) {
		size_t begin = at;
		while (at < line.len && severity_is_letter(line.data[at]))
			at++;
		severity = severity_of_word((struct slice){line.data + begin, at - begin});
		at += at == begin;
	}
	return severity;
}
