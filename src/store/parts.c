/* Parts of a row key or of a column as one byte string, and back (store.h). */
#include "store/store.h"

/* How many bytes an inner part takes: its own, one more for each 00, and the two that close it. */
static size_t inner_bytes(struct slice part)
{
	size_t zeros = 0;
	for (size_t i = 0; i < part.len; i++)
		zeros += part.data[i] == 0;
	return part.len + zeros + 2;
}

size_t store_parts_bytes(const struct store_parts *parts, size_t count)
{
	size_t total = 0;
	for (size_t i = 0; i < count && parts->part[i].data; i++)
		total += i + 1 < count ? inner_bytes(parts->part[i]) : parts->part[i].len;
	return total;
}

static char *put_inner(char *to, struct slice part)
{
	for (size_t i = 0; i < part.len; i++) {
		*to++ = part.data[i];
		if (part.data[i] == 0)
			*to++ = (char)0xff;
	}
	*to++ = 0;
	*to++ = 1;
	return to;
}

struct slice store_parts_put(char *to, const struct store_parts *parts, size_t count)
{
	char *at = to;
	for (size_t i = 0; i < count && parts->part[i].data; i++) {
		struct slice part = parts->part[i];
		if (i + 1 < count) {
			at = put_inner(at, part);
			continue;
		}
		if (part.len)
			memcpy(at, part.data, part.len);
		at += part.len;
	}
	return (struct slice){to, (size_t)(at - to)};
}

int store_parts_encode(const struct store_parts *parts, size_t count, struct buf *out)
{
	char *room = buf_reserve(out, store_parts_bytes(parts, count));
	if (!room)
		return ERR_LIMIT;
	out->len += store_parts_put(room, parts, count).len;
	return 0;
}

/* Where the inner part at `from` is closed: the index of its 00 01; -1 if it is not. */
static ptrdiff_t find_close(struct slice bytes, size_t from, size_t *escapes)
{
	*escapes = 0;
	for (size_t i = from; i + 1 < bytes.len; i++) {
		if (bytes.data[i] != 0)
			continue;
		if (bytes.data[i + 1] == 1)
			return (ptrdiff_t)i;
		if ((uint8_t)bytes.data[i + 1] != 0xff)
			return -1;
		++*escapes;
		i++;
	}
	return -1;
}

/* Without an escape the part lies in the encoding as it is. */
static int decode_inner(struct slice escaped, size_t escapes, struct arena *arena,
			struct slice *part)
{
	*part = escaped;
	if (!escapes)
		return 0;
	char *copy = arena_alloc(arena, escaped.len - escapes);
	if (!copy)
		return ERR_LIMIT;
	size_t n = 0;
	for (size_t i = 0; i < escaped.len; i++) {
		copy[n++] = escaped.data[i];
		i += escaped.data[i] == 0;
	}
	*part = (struct slice){copy, n};
	return 0;
}

int store_parts_decode(struct slice bytes, size_t count, struct arena *arena,
		       struct store_parts *parts)
{
	size_t at = 0;
	*parts = (struct store_parts){0};
	ASSERT(count >= 1 && count <= TABLE_PARTS_MAX);
	if (!bytes.data)
		bytes = SLICE("");
	for (size_t i = 0; i + 1 < count; i++) {
		size_t escapes;
		ptrdiff_t close = find_close(bytes, at, &escapes);
		if (close < 0)
			return ERR_DAMAGED;
		struct slice escaped = {bytes.data + at, (size_t)close - at};
		int err = decode_inner(escaped, escapes, arena, &parts->part[i]);
		if (err)
			return err;
		at = (size_t)close + 2;
	}
	parts->part[count - 1] = (struct slice){bytes.data + at, bytes.len - at};
	return 0;
}
