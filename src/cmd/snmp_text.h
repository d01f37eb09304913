/* SNMP for people: names of the objects that Granary knows, and varbinds as lines of text, in the
 * manner of net-snmp's tools (`-On`). There is no MIB to parse: a name that is not in the table is
 * a number. */
#ifndef CMD_SNMP_TEXT_H
#define CMD_SNMP_TEXT_H

#include "base/buf.h"
#include "wire/snmp.h"

/* `1.3.6.1.2.1.1.5.0`, or a name of the table with or without an index: `sysName.0`,
 * `ifHCInOctets`. *oid lies in `memory`. ERR_INVALID with a sentence. */
int snmp_text_parse_oid(struct slice text, uint8_t memory[OID_MAX_BYTES], struct slice *oid,
			struct errbuf *e) MUST_CHECK;

/* Appends `sysName.0`; nothing, and false, for what is not in the table. */
bool snmp_text_name(struct slice oid, struct buf *out);

/* Appends `STRING: "a router"`, `Counter64: 5`. */
void snmp_text_value(const struct snmp_value *value, struct buf *out);

/* `.1.3.6.1.2.1.1.5.0 (sysName.0) = STRING: "a router"`; the name only if asked for. No newline. */
void snmp_text_line(struct slice oid, const struct snmp_value *value, bool names, struct buf *out);

#endif
