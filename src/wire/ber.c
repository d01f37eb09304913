#include "wire/ber.h"

#include "base/cursor.h"

/* ---- Reading --------------------------------------------------------------------------------- */

void ber_fail(struct ber *b, const char *phrase)
{
	if (!b->bad)
		b->bad = phrase;
	b->at = b->end;
}

static bool header_fails(struct ber *b, const char *phrase)
{
	ber_fail(b, phrase);
	return false;
}

bool ber_long_header(struct ber *b, struct ber_item *item)
{
	if (b->end - b->at < 2)
		return header_fails(b, "the end comes too early");
	if ((b->at[0] & 0x1f) == 0x1f)
		return header_fails(b, "a tag has several bytes");
	item->tag = *b->at++;
	unsigned count = *b->at++ & 0x7f;
	/* RFC 3417 section 8 (1): only the definite form; 0x80 alone is the indefinite one. */
	if (count == 0)
		return header_fails(b, "a length is indefinite");
	if (count > BER_LENGTH_MAX_BYTES)
		return header_fails(b, "a length has too many bytes");
	if ((size_t)(b->end - b->at) < count)
		return header_fails(b, "the end comes too early");
	item->len = 0;
	while (count--)
		item->len = item->len << 8 | *b->at++;
	return true;
}

/* Without the bytes that only repeat the sign. */
static struct ber_item shortest(struct ber_item item)
{
	while (item.len > 1 && ((item.bytes[0] == 0x00 && !(item.bytes[1] & 0x80)) ||
				(item.bytes[0] == 0xff && (item.bytes[1] & 0x80)))) {
		item.bytes++;
		item.len--;
	}
	return item;
}

static int64_t signed_of(const uint8_t *bytes, size_t len)
{
	uint64_t value = bytes[0] & 0x80 ? UINT64_MAX : 0;
	for (size_t i = 0; i < len; i++)
		value = value << 8 | bytes[i];
	return (int64_t)value;
}

bool ber_to_i64(const struct ber_item *item, int64_t *value)
{
	struct ber_item i = *item;
	if (i.len == 0 || i.len > BER_INTEGER_MAX_BYTES)
		return false;
	if (i.len > 8)
		i = shortest(i);
	if (i.len > 8)
		return false;
	*value = signed_of(i.bytes, i.len);
	return true;
}

bool ber_to_unsigned(const struct ber_item *item, unsigned bits, uint64_t *value)
{
	int64_t as_signed;
	if (bits == 64 && item->len > 8 && item->len <= BER_INTEGER_MAX_BYTES) {
		/* 2^63 and above need a byte of zero in front. */
		struct ber_item i = shortest(*item);
		if (i.len == 9 && i.bytes[0] == 0) {
			*value = be64_get(i.bytes + 1);
			return true;
		}
	}
	if (!ber_to_i64(item, &as_signed))
		return false;
	*value = (uint64_t)as_signed;
	if (bits == 32) {
		*value = (uint32_t)as_signed;
		return as_signed >= INT32_MIN && as_signed <= UINT32_MAX;
	}
	return true;
}

int64_t ber_integer(struct ber *b, int64_t min, int64_t max)
{
	int64_t value = 0;
	struct ber_item item = ber_item(b);
	if (item.tag != BER_INTEGER || !ber_to_i64(&item, &value))
		ber_fail(b, "an integer is missing or too long");
	else if (value < min || value > max)
		ber_fail(b, "an integer is out of its range");
	return b->bad ? min : value;
}

/* ---- Writing --------------------------------------------------------------------------------- */

void ber_put_bytes(struct ber_writer *w, const void *bytes, size_t len)
{
	if (w->full || len > (size_t)(w->at - w->begin)) {
		w->full = true;
		return;
	}
	w->at -= len;
	if (len)
		memcpy(w->at, bytes, len);
}

void ber_put_header(struct ber_writer *w, uint8_t tag, const uint8_t *end)
{
	uint8_t header[2 + sizeof(uint32_t)];
	size_t len = (size_t)(end - w->at), n = sizeof(header);
	ASSERT(end >= w->at && len <= UINT32_MAX);
	if (len < 0x80) {
		header[--n] = (uint8_t)len;
	} else {
		size_t last = n;
		for (size_t rest = len; rest; rest >>= 8)
			header[--n] = (uint8_t)rest;
		uint8_t count = (uint8_t)(last - n);
		header[--n] = 0x80 | count;
	}
	header[--n] = tag;
	ber_put_bytes(w, header + n, sizeof(header) - n);
}

void ber_put_octets(struct ber_writer *w, uint8_t tag, struct slice bytes)
{
	const uint8_t *end = w->at;
	ber_put_bytes(w, bytes.data, bytes.len);
	ber_put_header(w, tag, end);
}

/* `bytes`: 9 of them, two's complement. */
static void put_shortest(struct ber_writer *w, uint8_t tag, const uint8_t *bytes)
{
	struct ber_item item = shortest((struct ber_item){tag, bytes, 9});
	ber_put_octets(w, tag, (struct slice){(const char *)item.bytes, item.len});
}

void ber_put_integer(struct ber_writer *w, uint8_t tag, int64_t value)
{
	uint8_t bytes[9] = {value < 0 ? 0xff : 0};
	be64_put(bytes + 1, (uint64_t)value);
	put_shortest(w, tag, bytes);
}

void ber_put_unsigned(struct ber_writer *w, uint8_t tag, uint64_t value)
{
	uint8_t bytes[9] = {0};
	be64_put(bytes + 1, value);
	put_shortest(w, tag, bytes);
}
