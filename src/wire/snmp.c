/* The layout, each line one item; `{` encloses what is inside one (RFC 3416 section 3, RFC 1901):
 *
 *     30 SEQUENCE {                 the message
 *       02 INTEGER                  version: 0 = 1, 1 = 2c, 3 = 3
 *       04 OCTET STRING             community
 *       a0..a8 {                    the PDU, by its kind
 *         02 INTEGER                request id
 *         02 INTEGER                error status; GETBULK: non-repeaters
 *         02 INTEGER                error index; GETBULK: max-repetitions
 *         30 SEQUENCE {             the varbinds
 *           30 SEQUENCE {
 *             06 OBJECT IDENTIFIER
 *             any                   the value, by its tag
 *           } ...
 *         }
 *       }
 *     }
 *
 * An Opaque (44) may hold a number, itself in BER: 9f 78 04 and a float, 9f 79 08 and a double,
 * both IEEE 754, big endian (draft-perkins-opaque-01). */
#include "wire/snmp.h"

#include "base/cursor.h"

enum { OPAQUE_HEADER_BYTES = 3 };

static const uint8_t float_header[OPAQUE_HEADER_BYTES] = {0x9f, 0x78, 4};
static const uint8_t double_header[OPAQUE_HEADER_BYTES] = {0x9f, 0x79, 8};

const char *snmp_error_text(int error)
{
	static const char *const texts[] = {
		"noError",
		"tooBig",
		"noSuchName",
		"badValue",
		"readOnly",
		"genErr",
		"noAccess",
		"wrongType",
		"wrongLength",
		"wrongEncoding",
		"wrongValue",
		"noCreation",
		"inconsistentValue",
		"resourceUnavailable",
		"commitFailed",
		"undoFailed",
		"authorizationError",
		"notWritable",
		"inconsistentName",
	};
	return error >= 0 && (size_t)error < ARRAY_LEN(texts) ? texts[error] : "an unknown error";
}

/* ---- Reading --------------------------------------------------------------------------------- */

void snmp_decode_pdu(struct ber *b, struct snmp_pdu *pdu)
{
	struct ber_item item = ber_item(b);
	switch (item.tag) {
	case SNMP_GET:
	case SNMP_GETNEXT:
	case SNMP_RESPONSE:
	case SNMP_GETBULK:
	case SNMP_REPORT:
		break;
	default:
		ber_fail(b, "a PDU is of a kind that is not spoken here");
	}
	struct ber inner = ber_of((struct slice){(const char *)item.bytes, item.len});
	inner.bad = b->bad;
	pdu->type = item.tag;
	pdu->request_id = (int32_t)ber_integer(&inner, INT32_MIN, INT32_MAX);
	pdu->error_status = (int32_t)ber_integer(&inner, 0, INT32_MAX);
	pdu->error_index = (int32_t)ber_integer(&inner, 0, INT32_MAX);
	pdu->varbinds = ber_enter(&inner, BER_SEQUENCE);
	if (inner.bad)
		ber_fail(b, inner.bad);
}

int snmp_decode(struct slice bytes, struct snmp_message *message, const char **why)
{
	struct ber whole = ber_of(bytes), b = ber_enter(&whole, BER_SEQUENCE);
	int64_t version = ber_integer(&b, 0, INT32_MAX);
	if (!b.bad && version != SNMP_V1 && version != SNMP_V2C) {
		*why = "the version is not 1 or 2c";
		return ERR_VERSION;
	}
	message->version = (enum snmp_version)version;
	message->community = ber_expect(&b, BER_OCTETS);
	if (message->community.len > SNMP_COMMUNITY_MAX_BYTES)
		ber_fail(&b, "a community is too long");
	snmp_decode_pdu(&b, &message->pdu);
	*why = b.bad;
	return b.bad ? ERR_INVALID : 0;
}

static bool opaque_holds(const struct ber_item *item, const uint8_t header[OPAQUE_HEADER_BYTES])
{
	return item->len == (size_t)OPAQUE_HEADER_BYTES + header[2] &&
	       memcmp(item->bytes, header, OPAQUE_HEADER_BYTES) == 0;
}

static void read_opaque(const struct ber_item *item, struct snmp_value *value)
{
	if (opaque_holds(item, float_header)) {
		uint32_t bits = be32_get(item->bytes + OPAQUE_HEADER_BYTES);
		float number;
		memcpy(&number, &bits, sizeof(number));
		value->type = SNMP_FLOAT;
		value->f64 = (double)number;
	} else if (opaque_holds(item, double_header)) {
		uint64_t bits = be64_get(item->bytes + OPAQUE_HEADER_BYTES);
		value->type = SNMP_DOUBLE;
		memcpy(&value->f64, &bits, sizeof(value->f64));
	}
}

static void snmp_message_read_oid(struct snmp_value *value)
{
	static const char zero_dot_zero[] = {0};
	if (value->bytes.len == 0)
		value->bytes = (struct slice){zero_dot_zero, sizeof(zero_dot_zero)};
	else if (!oid_valid(value->bytes))
		value->type = SNMP_UNREADABLE;
}

static bool snmp_message_read_number(const struct ber_item *item, struct snmp_value *value)
{
	switch (item->tag) {
	case SNMP_COUNTER64:
		return ber_to_unsigned(item, 64, &value->u64);
	case SNMP_INTEGER:
		return ber_to_i64(item, &value->i64);
	default:
		return ber_to_unsigned(item, 32, &value->u64);
	}
}

static void snmp_message_read_value(const struct ber_item *item, struct snmp_value *value)
{
	value->type = item->tag;
	switch (item->tag) {
	case SNMP_COUNTER64:
	case SNMP_COUNTER32:
	case SNMP_GAUGE32:
	case SNMP_TIMETICKS:
	case SNMP_UINTEGER32:
	case SNMP_INTEGER:
		if (LIKELY(snmp_message_read_number(item, value)))
			return;
		value->type = SNMP_UNREADABLE;
		break;
	default:
		break;
	}
	/* A tag without a value is an item of length zero; what else it holds says nothing. */
	value->bytes = (struct slice){(const char *)item->bytes, item->len};
	if (value->type == SNMP_OID)
		snmp_message_read_oid(value);
	else if (value->type == SNMP_OPAQUE)
		read_opaque(item, value);
}

bool snmp_next(struct ber *varbinds, struct snmp_varbind *varbind)
{
	if (ber_at_end(varbinds))
		return false;
	struct ber b = ber_enter(varbinds, BER_SEQUENCE);
	varbind->oid = ber_expect(&b, BER_OID);
	struct ber_item item = ber_item(&b);
	if (UNLIKELY(b.bad || !oid_valid(varbind->oid))) {
		ber_fail(varbinds, b.bad ? b.bad : "a name is not an object identifier");
		return false;
	}
	snmp_message_read_value(&item, &varbind->value);
	return true;
}

/* Names are short: a call would take longer than the comparison. */
static inline bool same_bytes(const uint8_t *a, const uint8_t *b, size_t len)
{
	uint64_t x[2], y[2];
	if (len >= sizeof(x[0]) && len <= sizeof(x)) {
		memcpy(&x[0], a, sizeof(x[0]));
		memcpy(&y[0], b, sizeof(y[0]));
		memcpy(&x[1], a + len - sizeof(x[1]), sizeof(x[1]));
		memcpy(&y[1], b + len - sizeof(y[1]), sizeof(y[1]));
		return x[0] == y[0] && x[1] == y[1];
	}
	if (len > sizeof(x))
		return memcmp(a, b, len) == 0;
	while (len && *a == *b) {
		len--;
		a++;
		b++;
	}
	return len == 0;
}

enum {
	NAME_AT = 4, /* after the headers of varbind and name */
	/* Together with the value's the length fits into one byte; then these are not too many arcs
	 * either, since each has a byte. */
	SHORT_NAME_MAX_BYTES = 100,
};

/* The value of `len` bytes that end at `end`, at least 8 bytes after the datagram's begin. */
static inline int64_t short_integer(const uint8_t *end, size_t len)
{
	unsigned shift = 64 - 8 * (unsigned)len;
	return (int64_t)(be64_get(end - 8) << shift) >> shift;
}

/* As snmp_message_read_number does; false where it would not be the value's type. */
static inline bool read_short_number(uint8_t tag, int64_t number, struct snmp_value *value)
{
	value->type = tag;
	value->i64 = number; /* of 64 bits also where it is unsigned: modulo 2^64 */
	switch (tag) {
	case SNMP_COUNTER64:
	case SNMP_INTEGER:
		return true;
	case SNMP_COUNTER32:
	case SNMP_GAUGE32:
	case SNMP_TIMETICKS:
	case SNMP_UINTEGER32:
		value->u64 = (uint32_t)number;
		return number >= INT32_MIN && number <= UINT32_MAX;
	default:
		return false;
	}
}

bool snmp_next_number(struct ber *varbinds, struct slice root, struct slice index,
		      struct slice *oid, struct snmp_value *number)
{
	const uint8_t *at = varbinds->at;
	size_t name_len = root.len + index.len, left = (size_t)(varbinds->end - at);
	if (name_len > SHORT_NAME_MAX_BYTES || left < NAME_AT + name_len + 2 ||
	    at[0] != BER_SEQUENCE || at[2] != BER_OID || at[3] != name_len)
		return false;
	const uint8_t *name = at + NAME_AT, *value = name + name_len;
	size_t value_len = value[1], len = NAME_AT + name_len + 2 + value_len;
	if (at[1] != len - 2 || value_len - 1 >= sizeof(uint64_t) || left < len)
		return false;
	if (!same_bytes(name + root.len, (const uint8_t *)index.data, index.len) ||
	    !same_bytes(name, (const uint8_t *)root.data, root.len) ||
	    !read_short_number(value[0], short_integer(at + len, value_len), number))
		return false;
	*oid = (struct slice){(const char *)name, name_len};
	varbinds->at = at + len;
	return true;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_opaque(struct ber_writer *w, const struct snmp_value *value)
{
	uint8_t bytes[8];
	const uint8_t *end = w->at;
	if (value->type == SNMP_FLOAT) {
		float number = (float)value->f64;
		uint32_t bits;
		memcpy(&bits, &number, sizeof(bits));
		be32_put(bytes, bits);
		ber_put_bytes(w, bytes, 4);
		ber_put_bytes(w, float_header, sizeof(float_header));
	} else {
		uint64_t bits;
		memcpy(&bits, &value->f64, sizeof(bits));
		be64_put(bytes, bits);
		ber_put_bytes(w, bytes, 8);
		ber_put_bytes(w, double_header, sizeof(double_header));
	}
	ber_put_header(w, SNMP_OPAQUE, end);
}

static void snmp_message_put_value(struct ber_writer *w, const struct snmp_value *value)
{
	switch (value->type) {
	case SNMP_INTEGER:
		ber_put_integer(w, value->type, value->i64);
		break;
	case SNMP_COUNTER32:
	case SNMP_GAUGE32:
	case SNMP_TIMETICKS:
	case SNMP_COUNTER64:
	case SNMP_UINTEGER32:
		ber_put_unsigned(w, value->type, value->u64);
		break;
	case SNMP_FLOAT:
	case SNMP_DOUBLE:
		put_opaque(w, value);
		break;
	case SNMP_NULL:
	case SNMP_NO_SUCH_OBJECT:
	case SNMP_NO_SUCH_INSTANCE:
	case SNMP_END_OF_MIB_VIEW:
		ber_put_header(w, value->type, w->at);
		break;
	default:
		ber_put_octets(w, value->type, value->bytes);
	}
}

void snmp_put_varbind(struct ber_writer *w, const struct snmp_varbind *varbind)
{
	const uint8_t *end = w->at;
	snmp_message_put_value(w, &varbind->value);
	ber_put_octets(w, BER_OID, varbind->oid);
	ber_put_header(w, BER_SEQUENCE, end);
}

/* All lengths in their short form. False: they are not, or there is no room, and nothing was
 * written. */
static bool put_short_name(struct ber_writer *w, struct slice oid)
{
	size_t len = oid.len + 6;
	if (!oid.len || len - 2 >= 0x80 || w->full || len > (size_t)(w->at - w->begin))
		return false;
	uint8_t *at = w->at -= len;
	at[0] = BER_SEQUENCE;
	at[1] = (uint8_t)(len - 2);
	at[2] = BER_OID;
	at[3] = (uint8_t)oid.len;
	memcpy(at + 4, oid.data, oid.len);
	at[len - 2] = SNMP_NULL;
	at[len - 1] = 0;
	return true;
}

void snmp_put_name(struct ber_writer *w, struct slice oid)
{
	if (put_short_name(w, oid))
		return;
	struct snmp_varbind varbind = {oid, {.type = SNMP_NULL}};
	snmp_put_varbind(w, &varbind);
}

void snmp_put_pdu(struct ber_writer *w, const struct snmp_pdu *pdu, const uint8_t *end)
{
	ber_put_header(w, BER_SEQUENCE, end);
	ber_put_integer(w, BER_INTEGER, pdu->error_index);
	ber_put_integer(w, BER_INTEGER, pdu->error_status);
	ber_put_integer(w, BER_INTEGER, pdu->request_id);
	ber_put_header(w, (uint8_t)pdu->type, end);
}

void snmp_put_message(struct ber_writer *w, enum snmp_version version, struct slice community,
		      const uint8_t *end)
{
	ber_put_octets(w, BER_OCTETS, community);
	ber_put_integer(w, BER_INTEGER, version);
	ber_put_header(w, BER_SEQUENCE, end);
}
