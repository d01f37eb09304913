/* The head of a request: bytes in, struct out. Private to http/.
 *
 * Two judges must agree. The raw bytes are looked at here, line by line, for everything that two
 * readers could understand differently; then http-parser reads the same head and its findings
 * (length, coding, keep-alive) must be ours. http-parser alone would let a bare LF, a folded
 * header, a blank before the colon and two blanks in the request line through. */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include "http/http.h"

enum head_result { HEAD_MORE, HEAD_DONE, HEAD_BAD };

/* Looks for the end of the head at the beginning of `bytes`. `*seen` is what earlier calls have
 * looked at (0 at first). DONE: `*len` bytes belong to it. BAD: `*reason`. One empty line before
 * the request line is part of the head (RFC 9112 2.2). */
enum head_result head_find(struct slice bytes, size_t *seen, size_t *len, const char **reason);

struct http_head {
	enum http_verb verb;
	struct slice target;
	bool minor_1; /* HTTP/1.1, else 1.0 */
	bool keep_alive;
	bool chunked;
	bool has_length;
	bool expects_continue;
	uint64_t length;
	struct http_header *headers; /* slices of the head */
	size_t header_count;
	/* Of a refusal. */
	int status;
	const char *reason;
};

/* http-parser has a limit of its own for all heads of the process, 80 KB; ours is checked before.
 * Once, at the start. */
void head_use_our_limit(void);

/* Parses a head that head_find has found; `bytes` must live as long as the result. ERR_INVALID with
 * status and reason. */
int head_parse(struct slice bytes, struct arena *arena, unsigned headers_max,
	       struct http_head *head) MUST_CHECK;

/* VERB_OTHER: none of those that have a name. */
enum http_verb head_verb(struct slice method);
/* a == b, where b is in lower case and a in any. */
bool head_name_is(struct slice a, const char *b);
/* Whether a comma-separated list of tokens (`gzip;q=0.5, br`) holds `token` (lower case) with a
 * weight above zero. */
bool head_list_accepts(struct slice list, const char *token);

#endif
