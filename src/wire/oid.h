/* Object identifiers, kept as the bytes that BER gives them: a name that came in a datagram is
 * compared, stored and sent again without being taken apart.
 *
 *     first two arcs as one number (40 * first + second), then each arc: seven bits a byte, high
 *     ones first, 0x80 set in all but the last byte of an arc; an arc has at most 32 bits
 *
 * A valid one (oid_valid) begins no arc with 0x80, so that each identifier has one form and equal
 * bytes mean equal names. All functions but oid_valid and oid_parse want valid ones.
 *
 * No state, no allocation, any thread. */
#ifndef WIRE_OID_H
#define WIRE_OID_H

#include "base/base.h"
#include "base/buf.h"

enum {
	OID_ARCS_MAX = 128, /* RFC 3416 section 4.1 of a name; RFC 2578 section 3.5 */
	OID_MAX_BYTES = OID_ARCS_MAX * 5,
};

/* Whether these bytes are one. */
bool oid_valid(struct slice oid);

/* `1.3.6.1.2.1`, also with a dot in front; at least two arcs. *oid lies in `memory`. ERR_INVALID
 * with a sentence. */
int oid_parse(struct slice text, uint8_t memory[OID_MAX_BYTES], struct slice *oid,
	      struct errbuf *e) MUST_CHECK;
/* `.1.3.6.1.2.1`, appended. */
void oid_print(struct slice oid, struct buf *out);

/* The order of a walk, arc by arc: <0, 0, >0. Not the order of the bytes. */
int oid_compare(struct slice a, struct slice b);

/* Whether `oid` is `prefix` or lies below it. */
static inline bool oid_has_prefix(struct slice oid, struct slice prefix)
{
	return oid.len >= prefix.len && memcmp(oid.data, prefix.data, prefix.len) == 0;
}

/* Takes the next arc off the front; false at the end. Not for the first byte of an identifier,
 * which stands for two arcs: for the index after a prefix. */
bool oid_next_arc(struct slice *rest, uint32_t *arc) MUST_CHECK;
/* Appends an arc at `to` (5 bytes of room); how many bytes it took. */
size_t oid_put_arc(uint8_t *to, uint32_t arc);

#endif
