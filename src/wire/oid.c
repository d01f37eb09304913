#include "wire/oid.h"

enum { ARC_MAX_BYTES = 5 };

/* The length of the arc at `at`, 0 if it is none. `left` > 0. */
static size_t arc_len(const uint8_t *at, size_t left)
{
	size_t n = 0;
	/* X.690 8.19.2: the leading octet of a subidentifier is not 0x80. */
	if (at[0] == 0x80)
		return 0;
	while (n < left && n < ARC_MAX_BYTES && (at[n] & 0x80))
		n++;
	if (n == left || n == ARC_MAX_BYTES)
		return 0;
	return n == ARC_MAX_BYTES - 1 && at[0] > 0x8f ? 0 : n + 1;
}

bool oid_valid(struct slice oid)
{
	const uint8_t *bytes = (const uint8_t *)oid.data;
	size_t at = 0, arcs = 1;
	if (oid.len == 0 || oid.len > OID_MAX_BYTES)
		return false;
	while (at < oid.len) {
		uint64_t eight;
		if (oid.len - at >= sizeof(eight)) {
			memcpy(&eight, bytes + at, sizeof(eight));
			if (LIKELY(!(eight & UINT64_C(0x8080808080808080)))) {
				at += sizeof(eight);
				arcs += sizeof(eight);
				continue;
			}
		}
		if (LIKELY(bytes[at] < 0x80)) {
			at++;
		} else {
			size_t n = arc_len(bytes + at, oid.len - at);
			if (!n)
				return false;
			at += n;
		}
		arcs++;
	}
	return arcs <= OID_ARCS_MAX;
}

/* ---- Arcs ------------------------------------------------------------------------------------ */

size_t oid_put_arc(uint8_t *to, uint32_t arc)
{
	size_t n = 1;
	for (uint32_t rest = arc >> 7; rest; rest >>= 7)
		n++;
	for (size_t i = n; i-- > 0; arc >>= 7)
		to[i] = (uint8_t)((arc & 0x7f) | (i + 1 < n ? 0x80 : 0));
	return n;
}

bool oid_next_arc(struct slice *rest, uint32_t *arc)
{
	uint32_t value = 0;
	for (size_t i = 0; i < rest->len; i++) {
		uint8_t byte = (uint8_t)rest->data[i];
		value = value << 7 | (byte & 0x7f);
		if (byte & 0x80)
			continue;
		*arc = value;
		*rest = (struct slice){rest->data + i + 1, rest->len - i - 1};
		return true;
	}
	return false;
}

/* ---- Text ------------------------------------------------------------------------------------ */

/* Decimal digits up to a dot or the end; false for none, or beyond 32 bits. */
static bool oid_parse_number(struct slice *text, uint32_t *arc)
{
	uint64_t value = 0;
	size_t i = 0;
	for (; i < text->len && text->data[i] >= '0' && text->data[i] <= '9'; i++) {
		value = value * 10 + (uint64_t)(text->data[i] - '0');
		if (value > UINT32_MAX)
			return false;
	}
	bool dot = i < text->len && text->data[i] == '.';
	if (i == 0 || (i < text->len && !dot) || (dot && i + 1 == text->len))
		return false;
	size_t taken = i + dot;
	*text = (struct slice){text->data + taken, text->len - taken};
	*arc = (uint32_t)value;
	return true;
}

/* The first two arcs make one number: X.690 8.19.4. */
static bool join_first(uint32_t first, uint32_t second, uint32_t *joined)
{
	if (first > 2 || (first < 2 && second > 39) || second > UINT32_MAX - 80)
		return false;
	*joined = first * 40 + second;
	return true;
}

int oid_parse(struct slice text, uint8_t memory[OID_MAX_BYTES], struct slice *oid, struct errbuf *e)
{
	struct slice rest = text;
	uint32_t first = 0, arc;
	size_t len = 0, arcs = 0;
	if (rest.len && rest.data[0] == '.')
		rest = (struct slice){rest.data + 1, rest.len - 1};
	for (; rest.len && arcs < OID_ARCS_MAX && oid_parse_number(&rest, &arc); arcs++) {
		if (arcs == 0) {
			first = arc;
			continue;
		}
		if (arcs == 1 && !join_first(first, arc, &arc))
			break;
		len += oid_put_arc(memory + len, arc);
	}
	if (rest.len || arcs < 2)
		return errbuf_set(e, ERR_INVALID,
				  "\"" SHOWN "\" is not an object identifier such as "
				  "1.3.6.1.2.1.1.3.0 (2 to %d numbers)",
				  SHOWN_OF(text), OID_ARCS_MAX);
	*oid = (struct slice){(const char *)memory, len};
	return 0;
}

void oid_print(struct slice oid, struct buf *out)
{
	uint32_t arc;
	if (oid_next_arc(&oid, &arc)) {
		uint32_t first = arc < 80 ? arc / 40 : 2;
		buf_printf(out, ".%u.%u", first, arc - first * 40);
	}
	while (oid_next_arc(&oid, &arc))
		buf_printf(out, ".%u", arc);
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* Where the arc that holds byte `at` begins. */
static size_t arc_begin(const uint8_t *bytes, size_t at)
{
	while (at > 0 && (bytes[at - 1] & 0x80))
		at--;
	return at;
}

int oid_compare(struct slice a, struct slice b)
{
	const uint8_t *x = (const uint8_t *)a.data, *y = (const uint8_t *)b.data;
	size_t shorter = a.len < b.len ? a.len : b.len, at = 0;
	while (at < shorter && x[at] == y[at])
		at++;
	if (at == shorter)
		return (a.len > b.len) - (a.len < b.len);
	if (((x[at] | y[at]) & 0x80) == 0 && (at == 0 || !(x[at - 1] & 0x80)))
		return x[at] < y[at] ? -1 : 1;
	/* Both arcs begin at the same place; the one of more bytes is the larger number. */
	size_t begin = arc_begin(x, at);
	size_t x_len = arc_len(x + begin, a.len - begin), y_len = arc_len(y + begin, b.len - begin);
	if (x_len != y_len)
		return x_len < y_len ? -1 : 1;
	return x[at] < y[at] ? -1 : 1;
}
