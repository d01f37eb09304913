/* syslog: where its messages end on a connection (RFC 6587), and what their first bytes say (RFC
 * 3164, RFC 5424). What else is in a message is not looked at.
 *
 * Pure, any thread. */
#ifndef WIRE_SYSLOG_H
#define WIRE_SYSLOG_H

#include "base/base.h"

enum {
	SYSLOG_FACILITIES = 24,
	SYSLOG_COUNT_DIGITS_MAX = 9, /* of the length in front of a message */
};

/* By number, in lower case: `kern`, `user`, ..., `local7`; ended by NULL. */
extern const char *const syslog_facility_words[SYSLOG_FACILITIES + 1];

/* In either case. False: there is none of this name. */
bool syslog_facility_find(struct slice word, unsigned *facility);

/* The number between < and > at the beginning of a message, at most 191: the facility times 8 and
 * the severity. False: it has none; it counts as one of `user` then, as RFC 3164, 4.3.3 has it. */
bool syslog_priority(struct slice message, unsigned *facility, unsigned *severity);

/* How far the bytes of a connection are taken apart; zeroed at its beginning but for the first
 * fields. */
struct syslog_framing {
	size_t max_bytes; /* a longer message is cut */
	bool lines;       /* there are no lengths: each line is a message */

	uint64_t skip_bytes; /* the rest of a message that was cut, by its length, */
	bool skip_line;      /* or up to its newline */
	uint64_t cut_bytes;  /* left out so far */
};

/* Takes the next message off the bytes that are there. There are two forms, each message for
 * itself: LENGTH SP MESSAGE, where the message begins with <; or a line, without its \n or \r\n. So
 * a false length ends at the next newline. One newline at the end of the first form is left out.
 * False: it is not there yet; what was looked at and is of use no more is taken off all the same.
 * If it is never there with max_bytes + SYSLOG_COUNT_DIGITS_MAX + 2 bytes, something is wrong
 * here. `end`: no more bytes will come, so the rest is a message. */
bool syslog_take(struct syslog_framing *framing, struct slice *bytes, bool end,
		 struct slice *message);

#endif
