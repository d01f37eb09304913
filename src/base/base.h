/* What every file may use: compiler attributes, errors, assertions, small integer helpers.
 *
 * Level 0 of the tree. Nothing here knows libuv, LMDB or a foreign byte format. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/banned.h"

#define MUST_CHECK             __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN               __attribute__((noreturn))
#define UNUSED                 __attribute__((unused))
#define LIKELY(x)              __builtin_expect(!!(x), 1)
#define UNLIKELY(x)            __builtin_expect(!!(x), 0)
#define ARRAY_LEN(a)           (sizeof(a) / sizeof((a)[0]))

/* The struct that holds `member` at `ptr`: for tasks and handles embedded in their owner. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A programming error, in release builds too: never reachable from input. Writes the place and the
 * condition to standard error, then aborts. */
#define ASSERT(cond)                                                                               \
	do {                                                                                       \
		if (UNLIKELY(!(cond)))                                                             \
			assert_fail(#cond, __FILE__, __LINE__);                                    \
	} while (0)

NORETURN void assert_fail(const char *cond, const char *file, int line);

/* What can fail returns 0 or a negative number: one of these, or -errno for a system call (all of
 * ours lie below -1000, so that the two cannot be mistaken for each other). */
enum err {
	ERR_BUSY = -1001,      /* a bounded queue is full; try again later */
	ERR_RETRY = -1002,     /* nothing happened; the same call may succeed now */
	ERR_UNKNOWN = -1003,   /* outcome unknown: it may or may not have happened; repeat it */
	ERR_FULL = -1004,      /* no room on disk or in the map; reads and deletes go on */
	ERR_READ_ONLY = -1005, /* the store takes no writes */
	ERR_DAMAGED = -1006,   /* stored bytes fail their checksum or their format */
	ERR_LIMIT = -1007,     /* a named limit was reached */
	ERR_INVALID = -1008,   /* the input is wrong; the errbuf says where and why */
	ERR_NOT_FOUND = -1009, /* no such thing */
	ERR_EXISTS = -1010,    /* somebody was first */
	ERR_TIMEOUT = -1011,   /* a deadline passed */
	ERR_CANCELLED = -1012, /* the caller or a shutdown ended it */
	ERR_VERSION = -1013,   /* written by a newer format */
	ERR_LOCKED = -1014,    /* another process holds it */
	ERR_FAULT = -1015,     /* ordered by a fault point of a test */
	ERR_DENIED = -1016,    /* whoever asks may not */
};

/* A constant phrase for any error number, ours or the system's. */
const char *err_text(int err);

/* The sentence that a person will see. Each caller on the way up puts its part in front. */
struct errbuf {
	char text[512];
};

/* Both return `err`, so that `return errbuf_set(e, ERR_INVALID, ...)` reads as one thought.
 * `e` may be NULL. errbuf_prefix puts "<prefix>: " before what is there. */
int errbuf_set(struct errbuf *e, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);
int errbuf_prefix(struct errbuf *e, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Bytes that somebody else owns. */
struct slice {
	const char *data;
	size_t len;
};

#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

static inline struct slice slice_of(const char *text)
{
	return (struct slice){text, strlen(text)};
}

/* What came in, in a sentence: `"..." SHOWN "...", SHOWN_OF(slice)`. A long one is cut, between
 * characters, and marked so. */
enum { SLICE_SHOWN_MAX_BYTES = 64 };
static inline int slice_shown_len(struct slice s)
{
	size_t n = s.len;
	if (n > SLICE_SHOWN_MAX_BYTES)
		for (n = SLICE_SHOWN_MAX_BYTES; n > SLICE_SHOWN_MAX_BYTES - 4; n--)
			if (((unsigned char)s.data[n] & 0xc0) != 0x80)
				break;
	return (int)n;
}
#define SHOWN "%.*s%s"
#define SHOWN_OF(s)                                                                                \
	slice_shown_len(s), (s).len ? (s).data : "", (s).len > SLICE_SHOWN_MAX_BYTES ? "..." : ""

static inline bool slice_equal(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Cuts the first line off from *rest, without its newline. False: there is no newline. */
static inline bool slice_take_line(struct slice *rest, struct slice *line)
{
	const char *end = rest->len ? (const char *)memchr(rest->data, '\n', rest->len) : NULL;
	if (!end)
		return false;
	*line = (struct slice){rest->data, (size_t)(end - rest->data)};
	*rest = (struct slice){end + 1, rest->len - line->len - 1};
	return true;
}

/* The same of a text that people write: its last line may have no newline, and a CR in front of a
 * newline is none of the line's. False: *rest is empty. */
static inline bool slice_take_text_line(struct slice *rest, struct slice *line)
{
	if (!rest->len)
		return false;
	if (!slice_take_line(rest, line)) {
		*line = *rest;
		*rest = (struct slice){rest->data + rest->len, 0};
	}
	line->len -= line->len && line->data[line->len - 1] == '\r';
	return true;
}

/* Capitals of ASCII as small letters; all else as it is. */
static inline char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Whether a text is another one, which has no capitals of ASCII, in any case. */
static inline bool slice_equal_lower(struct slice text, struct slice lower)
{
	size_t i = 0;
	while (i < text.len && i < lower.len && ascii_lower(text.data[i]) == lower.data[i])
		i++;
	return i == text.len && i == lower.len;
}

static inline bool slice_starts_with(struct slice text, struct slice start)
{
	return text.len >= start.len &&
	       (start.len == 0 || memcmp(text.data, start.data, start.len) == 0);
}

static inline bool slice_ends_with(struct slice text, struct slice end)
{
	return text.len >= end.len &&
	       (end.len == 0 || memcmp(text.data + text.len - end.len, end.data, end.len) == 0);
}

/* Byte order, a prefix before what it begins: <0, 0, >0. */
static inline int slice_compare(struct slice a, struct slice b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int order = n ? memcmp(a.data, b.data, n) : 0;
	if (order)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}

/* Rounds towards minus infinity, also for negative numbers: times before 1970 fall into the
 * interval that contains them. `unit` > 0. */
static inline int64_t floor_div(int64_t value, int64_t unit)
{
	int64_t quotient = value / unit;
	return quotient - (value % unit < 0);
}

static inline int64_t floor_to(int64_t value, int64_t unit)
{
	return floor_div(value, unit) * unit;
}

static inline int64_t ceil_to(int64_t value, int64_t unit)
{
	return floor_to(value + unit - 1, unit);
}

static inline int64_t larger_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The end of a noun behind a number, as of `%zu adaptor%s`. */
static inline const char *plural_end(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static inline int64_t smaller_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#endif
