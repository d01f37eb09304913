/* The index of a table's row: the arcs after a column's OID, kept as the bytes of BER; and what
 * vendors put into them. Bytes in, words out: no state, any thread. */
#ifndef WIRE_SNMP_INDEX_H
#define WIRE_SNMP_INDEX_H

#include "base/base.h"
#include "wire/oid.h"

struct arena;

struct index_arcs {
	size_t count;
	uint32_t list[OID_ARCS_MAX];
};

/* ERR_INVALID: no whole arcs, more than OID_ARCS_MAX of them, or none. */
int index_read(struct slice index, struct index_arcs *arcs) MUST_CHECK;

/* The same of an index as esmond's messages have it, `1.270565376.100`; what stands between quotes
 * is a string (`'to-lab'`): its length and its bytes. */
int index_parse(struct slice text, struct index_arcs *arcs) MUST_CHECK;

/* `1.270565376.100`; data is NULL when the arena is full. */
struct slice index_dotted(const struct index_arcs *arcs, struct arena *arena) MUST_CHECK;

/* A string at *at, as SMIv2 writes it into an index (RFC 2578 section 7.7): its length, then a
 * byte an arc. The bytes go to `arena`; *at moves after it. ERR_INVALID: there is none; ERR_LIMIT:
 * the arena is full. */
int index_string(const struct index_arcs *arcs, size_t *at, struct arena *arena,
		 struct slice *text) MUST_CHECK;
/* The same for the last part of an index, which an IMPLIED one writes without its length. */
int index_last_string(const struct index_arcs *arcs, size_t at, struct arena *arena,
		      struct slice *text) MUST_CHECK;

enum { PORT_TEXT_BYTES = 40 };

/* A TmnxPortID (TIMETRA-TC-MIB): `8/1/1`, `8/1/1.3`, `lag-5`, `virtual-2`, `invalid-portid`; the
 * number itself for a scheme that we do not know. */
void index_port_text(uint32_t port, char text[PORT_TEXT_BYTES]);

/* What rows are called by their index alone, whoever read it, so that a row that is polled and one
 * that came in a message are the same. ERR_INVALID: it is no index of such a row.
 * A SAP: service, port and encapsulation, `1-8/1/1-100`. */
int index_sap_name(const struct index_arcs *arcs, struct arena *arena,
		   struct slice *name) MUST_CHECK;
/* An LSP: the string that its index is. */
int index_lsp_name(const struct index_arcs *arcs, struct arena *arena,
		   struct slice *name) MUST_CHECK;

/* What an agent sent as text, as valid UTF-8 without control characters: zeros at the end are cut
 * off, other bytes become `\xHH`. data is NULL when the arena is full. */
struct slice octets_text(struct slice bytes, struct arena *arena) MUST_CHECK;

/* `aa:bb:cc:dd:ee:ff`; nothing for no bytes. data is NULL when the arena is full. */
struct slice octets_colons(struct slice bytes, struct arena *arena) MUST_CHECK;

#endif
