#include "wire/syslog.h"

#include <strings.h>

#include "wire/number.h"

enum { SYSLOG_PRIORITY_MAX = 191, SYSLOG_USER = 1, SYSLOG_NOTICE = 5 };

/* RFC 5424, table 1; the words are those of syslog.conf where it has one. */
const char *const syslog_facility_words[SYSLOG_FACILITIES + 1] = {
	"kern",   "user",   "mail",     "daemon", "auth",   "syslog", "lpr",    "news",
	"uucp",   "cron",   "authpriv", "ftp",    "ntp",    "audit",  "alert",  "clock",
	"local0", "local1", "local2",   "local3", "local4", "local5", "local6", "local7",
};

bool syslog_facility_find(struct slice word, unsigned *facility)
{
	for (*facility = 0; *facility < SYSLOG_FACILITIES; ++*facility) {
		const char *known = syslog_facility_words[*facility];
		if (word.len == strlen(known) && strncasecmp(word.data, known, word.len) == 0)
			return true;
	}
	return false;
}

/* "The PRI part MUST have three, four, or five characters and will be bound with angle brackets"
 * (RFC 3164, 4.1.1); a zero in front of other digits makes none. */
bool syslog_priority(struct slice message, unsigned *facility, unsigned *severity)
{
	unsigned value = 0;
	size_t at = 1;
	*facility = SYSLOG_USER;
	*severity = SYSLOG_NOTICE;
	if (!message.len || message.data[0] != '<')
		return false;
	while (at < message.len && at <= 3 && number_is_digit(message.data[at]))
		value = value * 10 + (unsigned)(message.data[at++] - '0');
	if (at == 1 || at == message.len || message.data[at] != '>' ||
	    value > SYSLOG_PRIORITY_MAX || (message.data[1] == '0' && at > 2))
		return false;
	*facility = value / 8;
	*severity = value % 8;
	return true;
}

/* ---- Framing --------------------------------------------------------------------------------- */

static void syslog_drop(struct slice *bytes, size_t len)
{
	*bytes = (struct slice){bytes->data + len, bytes->len - len};
}

/* The rest of a message that was cut. False: there is more of it. */
static bool syslog_skip(struct syslog_framing *f, struct slice *bytes)
{
	if (f->skip_bytes) {
		size_t len = f->skip_bytes < bytes->len ? (size_t)f->skip_bytes : bytes->len;
		f->skip_bytes -= len;
		f->cut_bytes += len;
		syslog_drop(bytes, len);
	}
	if (f->skip_line && bytes->len) {
		const char *newline = memchr(bytes->data, '\n', bytes->len);
		f->skip_line = !newline;
		size_t len = newline ? (size_t)(newline - bytes->data) : bytes->len;
		f->cut_bytes += len;
		syslog_drop(bytes, len + (newline != NULL));
	}
	return !f->skip_bytes && !f->skip_line;
}

enum syslog_form { SYSLOG_LINE, SYSLOG_COUNTED, SYSLOG_UNKNOWN };

/* "MSG-LEN = NONZERO-DIGIT *DIGIT" (RFC 6587, 3.4.1). *head: how long it is with its blank. */
static enum syslog_form syslog_form(struct slice bytes, size_t *head, uint64_t *len)
{
	size_t at = 0;
	*len = 0;
	while (at < bytes.len && at < SYSLOG_COUNT_DIGITS_MAX && number_is_digit(bytes.data[at]))
		*len = *len * 10 + (uint64_t)(bytes.data[at++] - '0');
	if (at && bytes.data[0] == '0')
		return SYSLOG_LINE;
	*head = at + 1;
	if (at == bytes.len || (at && bytes.data[at] == ' ' && at + 1 == bytes.len))
		return SYSLOG_UNKNOWN;
	return at && bytes.data[at] == ' ' && bytes.data[at + 1] == '<' ? SYSLOG_COUNTED
									: SYSLOG_LINE;
}

static bool syslog_take_counted(struct syslog_framing *f, struct slice *bytes, size_t head,
				uint64_t len, bool end, struct slice *message)
{
	size_t kept = len < f->max_bytes ? (size_t)len : f->max_bytes;
	if (bytes->len - head < kept && !end)
		return false;
	f->skip_bytes = len - kept;
	if (bytes->len - head < kept)
		kept = bytes->len - head;
	*message = (struct slice){bytes->data + head, kept};
	syslog_drop(bytes, head + kept);
	if (message->len && message->data[message->len - 1] == '\n')
		message->len--;
	return true;
}

static bool syslog_take_line(struct syslog_framing *f, struct slice *bytes, bool end,
			     struct slice *message)
{
	size_t seen = bytes->len < f->max_bytes + 1 ? bytes->len : f->max_bytes + 1;
	const char *newline = memchr(bytes->data, '\n', seen);
	size_t len = newline ? (size_t)(newline - bytes->data) : seen;
	if (!newline && seen <= f->max_bytes && !end)
		return false;
	f->skip_line = !newline && seen > f->max_bytes;
	len -= f->skip_line;
	*message = (struct slice){bytes->data, len};
	syslog_drop(bytes, len + (newline != NULL));
	if (newline && len && message->data[len - 1] == '\r')
		message->len--;
	return true;
}

bool syslog_take(struct syslog_framing *f, struct slice *bytes, bool end, struct slice *message)
{
	uint64_t len = 0;
	size_t head = 0;
	if (!syslog_skip(f, bytes) || !bytes->len)
		return false;
	enum syslog_form form = f->lines ? SYSLOG_LINE : syslog_form(*bytes, &head, &len);
	if (form == SYSLOG_UNKNOWN && !end)
		return false;
	return form == SYSLOG_COUNTED ? syslog_take_counted(f, bytes, head, len, end, message)
				      : syslog_take_line(f, bytes, end, message);
}
