/* Varints and texts, as our own formats have them: a text is a varint, its length, and its bytes.
 * Written to a buf, read from a cursor. */
#ifndef BASE_PUT_H
#define BASE_PUT_H

#include "base/buf.h"
#include "base/cursor.h"

static inline void buf_put_varint(struct buf *out, uint64_t value)
{
	uint8_t bytes[10];
	buf_append(out, bytes, varint_put(bytes, value));
}

static inline void buf_put_text(struct buf *out, struct slice text)
{
	buf_put_varint(out, text.len);
	buf_append(out, text.data, text.len);
}

/* Points into what is read; empty and bad where it is longer than max_bytes or than what is left.
 */
static inline struct slice cursor_text(struct cursor *c, size_t max_bytes)
{
	uint64_t len = cursor_varint(c);
	if (len > max_bytes)
		c->bad = true;
	const uint8_t *at = c->bad ? NULL : cursor_take(c, (size_t)len);
	return at ? (struct slice){(const char *)at, (size_t)len} : SLICE("");
}

#endif
