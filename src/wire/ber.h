/* BER as SNMP uses it (RFC 3417 section 8): tag, definite length, content.
 *
 * Read with a cursor whose error sticks: take everything, look at `bad` once at the end. Accepted
 * beyond the shortest form, because agents send it: lengths in long form where the short one would
 * do, and integers with redundant bytes in front. Refused: indefinite lengths, tags of several
 * bytes, a length beyond what holds it.
 *
 * Written backwards, from the end of the caller's memory to its front, since the length of a thing
 * stands before it.
 *
 * No state, no allocation, any thread. */
#ifndef WIRE_BER_H
#define WIRE_BER_H

#include "base/base.h"

enum ber_tag {
	BER_INTEGER = 0x02,
	BER_OCTETS = 0x04,
	BER_NULL = 0x05,
	BER_OID = 0x06,
	BER_SEQUENCE = 0x30,
};

enum {
	BER_LENGTH_MAX_BYTES = 4,   /* of a length in long form */
	BER_INTEGER_MAX_BYTES = 16, /* with what is redundant */
};

/* ---- Reading --------------------------------------------------------------------------------- */

struct ber {
	const uint8_t *at, *end;
	const char *bad; /* a constant phrase: what is wrong; NULL: nothing so far */
};

struct ber_item {
	uint8_t tag; /* 0 when the cursor is bad */
	const uint8_t *bytes;
	size_t len;
};

static inline struct ber ber_of(struct slice bytes)
{
	const uint8_t *at = (const uint8_t *)bytes.data;
	/* Nothing may be added to NULL, not even 0. */
	return (struct ber){at, bytes.len ? at + bytes.len : at, NULL};
}

static inline bool ber_at_end(const struct ber *b)
{
	return b->at == b->end;
}

/* The first phrase stays; nothing is read any more. */
void ber_fail(struct ber *b, const char *phrase);

/* For ber_item: a header that is not of two bytes. False: bad. */
bool ber_long_header(struct ber *b, struct ber_item *item) MUST_CHECK;

/* The next item, whatever its tag. */
static inline struct ber_item ber_item(struct ber *b)
{
	struct ber_item item = {0};
	if (LIKELY(b->end - b->at >= 2 && (b->at[0] & 0x1f) != 0x1f && b->at[1] < 0x80)) {
		item.tag = b->at[0];
		item.len = b->at[1];
		b->at += 2;
	} else if (!ber_long_header(b, &item)) {
		return (struct ber_item){0};
	}
	if (UNLIKELY(item.len > (size_t)(b->end - b->at))) {
		ber_fail(b, "a length is beyond the end of what holds it");
		return (struct ber_item){0};
	}
	item.bytes = b->at;
	b->at += item.len;
	return item;
}

/* The next item, which must have that tag; empty when it has not. */
static inline struct slice ber_expect(struct ber *b, uint8_t tag)
{
	struct ber_item item = ber_item(b);
	if (LIKELY(item.tag == tag && !b->bad))
		return (struct slice){(const char *)item.bytes, item.len};
	ber_fail(b, "a tag is not the one that belongs here");
	return (struct slice){NULL, 0};
}

/* A cursor over the content of the next item; as bad as the outer one. */
static inline struct ber ber_enter(struct ber *b, uint8_t tag)
{
	struct ber inner = ber_of(ber_expect(b, tag));
	inner.bad = b->bad;
	return inner;
}

/* Two's complement of 1 to BER_INTEGER_MAX_BYTES bytes, what is redundant in front passed over.
 * False: nothing there, too long, or beyond 64 bits. */
bool ber_to_i64(const struct ber_item *item, int64_t *value) MUST_CHECK;
/* As unsigned of `bits` (32 or 64). An agent that kept the number in a signed variable sends it as
 * a negative one: it is read modulo 2^bits. */
bool ber_to_unsigned(const struct ber_item *item, unsigned bits, uint64_t *value) MUST_CHECK;

/* An INTEGER between the two; bad if it is not, or something else. */
int64_t ber_integer(struct ber *b, int64_t min, int64_t max);

/* ---- Writing --------------------------------------------------------------------------------- */

struct ber_writer {
	uint8_t *begin, *at; /* written: from `at` to the end */
	bool full;           /* sticky */
};

static inline struct ber_writer ber_writer_of(void *memory, size_t size_bytes)
{
	uint8_t *begin = memory;
	return (struct ber_writer){begin, begin + size_bytes, false};
}

void ber_put_bytes(struct ber_writer *w, const void *bytes, size_t len);
/* The header of something that ends at `end`, and begins where was written last. */
void ber_put_header(struct ber_writer *w, uint8_t tag, const uint8_t *end);
void ber_put_octets(struct ber_writer *w, uint8_t tag, struct slice bytes);
/* In the shortest form. */
void ber_put_integer(struct ber_writer *w, uint8_t tag, int64_t value);
void ber_put_unsigned(struct ber_writer *w, uint8_t tag, uint64_t value);

#endif
