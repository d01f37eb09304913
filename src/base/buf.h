/* A growing byte buffer. It cannot be made without a maximum. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/base.h"

struct buf {
	char *data;
	size_t len, cap, max;
	bool failed; /* sticky: an append did not fit; what is there stays */
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_release(struct buf *buf);
void buf_clear(struct buf *buf); /* keeps the memory, forgets `failed` */

/* Room for `extra_bytes` behind `len`; NULL (and failed) when the maximum would be passed.
 * The caller writes there and adds to `len`. */
char *buf_reserve(struct buf *buf, size_t extra_bytes) MUST_CHECK;

/* 0 or ERR_LIMIT; may be left unchecked by callers that test `failed` at the end. */
int buf_append(struct buf *buf, const void *bytes, size_t len);
int buf_append_text(struct buf *buf, const char *text);
int buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline int buf_append_char(struct buf *buf, char c)
{
	if (LIKELY(buf->len < buf->cap)) {
		buf->data[buf->len++] = c;
		return 0;
	}
	return buf_append(buf, &c, 1);
}

/* Drops the first `n` bytes. */
void buf_consume(struct buf *buf, size_t n);

static inline struct slice buf_slice(const struct buf *buf)
{
	return (struct slice){buf->data, buf->len};
}

#endif
