/* SNMP messages of versions 1 and 2c, and the PDUs of all versions (RFC 1157, 1901, 3416): bytes
 * in, struct out. Version 3 wraps a PDU by wire/usm.h.
 *
 * A reply is read in place: slices point into the datagram, and the varbinds are walked by an
 * iterator. No state, no allocation, any thread. */
#ifndef WIRE_SNMP_H
#define WIRE_SNMP_H

#include "base/base.h"
#include "wire/ber.h"
#include "wire/oid.h"

enum snmp_version { SNMP_V1 = 0, SNMP_V2C = 1, SNMP_V3 = 3 };

enum {
	SNMP_MESSAGE_MAX_BYTES = 65507, /* what a datagram holds */
	SNMP_COMMUNITY_MAX_BYTES = 255,
	SNMP_REPETITIONS_MAX = 10000,
};

enum snmp_pdu_type {
	SNMP_GET = 0xa0,
	SNMP_GETNEXT = 0xa1,
	SNMP_RESPONSE = 0xa2,
	SNMP_GETBULK = 0xa5,
	SNMP_REPORT = 0xa8,
};

/* RFC 3416 section 3; the first six are those of version 1. */
enum snmp_error {
	SNMP_NO_ERROR = 0,
	SNMP_TOO_BIG = 1,
	SNMP_NO_SUCH_NAME = 2,
	SNMP_BAD_VALUE = 3,
	SNMP_READ_ONLY = 4,
	SNMP_GEN_ERR = 5,
	SNMP_AUTHORIZATION_ERROR = 16,
};

/* `tooBig`, or `error 99`. Static. */
const char *snmp_error_text(int error);

/* The tags of values. A tag that is not here is kept with its bytes. */
enum snmp_type {
	SNMP_UNREADABLE = 0,   /* bytes: a number without any, or beyond what its type may be */
	SNMP_INTEGER = 0x02,   /* i64 */
	SNMP_OCTETS = 0x04,    /* bytes */
	SNMP_NULL = 0x05,      /* of a request, or an error of version 1 */
	SNMP_OID = 0x06,       /* bytes, valid; 0.0 where an agent sends none */
	SNMP_IPADDRESS = 0x40, /* bytes, as a rule 4 of them */
	SNMP_COUNTER32 = 0x41, /* u64, also those below */
	SNMP_GAUGE32 = 0x42,
	SNMP_TIMETICKS = 0x43, /* of 10 ms */
	SNMP_OPAQUE = 0x44,    /* bytes, if it is none of the two below */
	SNMP_COUNTER64 = 0x46,
	SNMP_UINTEGER32 = 0x47,
	SNMP_FLOAT = 0x78, /* f64; these two travel within an Opaque */
	SNMP_DOUBLE = 0x79,
	SNMP_NO_SUCH_OBJECT = 0x80, /* without a value, also those below */
	SNMP_NO_SUCH_INSTANCE = 0x81,
	SNMP_END_OF_MIB_VIEW = 0x82,
};

struct snmp_value {
	uint8_t type; /* enum snmp_type, or another tag with `bytes` */
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		struct slice bytes;
	};
};

struct snmp_varbind {
	struct slice oid; /* valid */
	struct snmp_value value;
};

struct snmp_pdu {
	enum snmp_pdu_type type;
	int32_t request_id;
	int32_t error_status; /* GETBULK: non-repeaters */
	int32_t error_index;  /* from 1; GETBULK: max-repetitions */
	struct ber varbinds;  /* for snmp_next */
};

struct snmp_message {
	enum snmp_version version;
	struct slice community;
	struct snmp_pdu pdu;
};

/* ERR_VERSION for version 3 and unknown ones; ERR_INVALID with a constant phrase: what is wrong.
 * Bytes after the message are passed over. The varbinds are not looked at yet. */
int snmp_decode(struct slice bytes, struct snmp_message *message, const char **why) MUST_CHECK;
/* For wire/usm: one PDU out of `b`, whose error sticks. */
void snmp_decode_pdu(struct ber *b, struct snmp_pdu *pdu);
/* The next varbind; false at the end and where `varbinds->bad` says what is wrong. A value that
 * cannot be read costs that varbind alone: its type says so. */
bool snmp_next(struct ber *varbinds, struct snmp_varbind *varbind) MUST_CHECK;
/* The same for what nearly all varbinds of a walk are: its name is `root` and after it `index`,
 * byte for byte, and its value a number, all lengths in their short form. False: it is not, nothing
 * was taken, and snmp_next says what there is. `root` is a valid identifier, `index` whole arcs.
 * Name and value are written to where they stay: a copy of what was written a moment ago waits for
 * it. */
bool snmp_next_number(struct ber *varbinds, struct slice root, struct slice index,
		      struct slice *oid, struct snmp_value *number) MUST_CHECK;

/* ---- Writing --------------------------------------------------------------------------------- */

/* Backwards: varbinds from the last to the first, then the PDU, then the message around it. `end`
 * is where the writer was before. */
void snmp_put_varbind(struct ber_writer *w, const struct snmp_varbind *varbind);
/* With NULL for a value, as a request has it. */
void snmp_put_name(struct ber_writer *w, struct slice oid);
/* `pdu->varbinds` is not looked at. */
void snmp_put_pdu(struct ber_writer *w, const struct snmp_pdu *pdu, const uint8_t *end);
void snmp_put_message(struct ber_writer *w, enum snmp_version version, struct slice community,
		      const uint8_t *end);

#endif
