#include "base/buf.h"

#include "base/mem.h"

void buf_init(struct buf *buf, size_t max_bytes)
{
	*buf = (struct buf){.max = max_bytes};
}

void buf_release(struct buf *buf)
{
	mem_free(buf->data);
	*buf = (struct buf){.max = buf->max};
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	buf->failed = false;
}

static char *buf_grow(struct buf *buf, size_t extra_bytes)
{
	if (extra_bytes > buf->max - buf->len) {
		buf->failed = true;
		return NULL;
	}
	size_t cap = buf->cap ? buf->cap * 2 : 256;
	if (cap < buf->len + extra_bytes)
		cap = buf->len + extra_bytes;
	if (cap > buf->max)
		cap = buf->max;
	buf->data = mem_resize(buf->data, cap);
	buf->cap = cap;
	return buf->data + buf->len;
}

char *buf_reserve(struct buf *buf, size_t extra_bytes)
{
	if (LIKELY(buf->data && extra_bytes <= buf->cap - buf->len))
		return buf->data + buf->len;
	return buf_grow(buf, extra_bytes);
}

int buf_append(struct buf *buf, const void *bytes, size_t len)
{
	char *room = buf_reserve(buf, len);
	if (!room)
		return ERR_LIMIT;
	if (len)
		memcpy(room, bytes, len);
	buf->len += len;
	return 0;
}

int buf_append_text(struct buf *buf, const char *text)
{
	return buf_append(buf, text, strlen(text));
}

int buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	ASSERT(len >= 0);
	char *room = buf_reserve(buf, (size_t)len + 1);
	if (room) {
		vsnprintf(room, (size_t)len + 1, fmt, again);
		buf->len += (size_t)len;
	}
	va_end(again);
	return room ? 0 : ERR_LIMIT;
}

void buf_consume(struct buf *buf, size_t n)
{
	ASSERT(n <= buf->len);
	buf->len -= n;
	if (buf->len)
		memmove(buf->data, buf->data + n, buf->len);
}
