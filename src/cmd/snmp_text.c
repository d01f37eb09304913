#include "cmd/snmp_text.h"

#include <ctype.h>

static const struct {
	const char *name, *oid;
} names[] = {
	{"sysDescr", "1.3.6.1.2.1.1.1"},
	{"sysObjectID", "1.3.6.1.2.1.1.2"},
	{"sysUpTime", "1.3.6.1.2.1.1.3"},
	{"sysContact", "1.3.6.1.2.1.1.4"},
	{"sysName", "1.3.6.1.2.1.1.5"},
	{"sysLocation", "1.3.6.1.2.1.1.6"},
	{"sysServices", "1.3.6.1.2.1.1.7"},
	{"ifNumber", "1.3.6.1.2.1.2.1"},
	{"ifIndex", "1.3.6.1.2.1.2.2.1.1"},
	{"ifDescr", "1.3.6.1.2.1.2.2.1.2"},
	{"ifType", "1.3.6.1.2.1.2.2.1.3"},
	{"ifMtu", "1.3.6.1.2.1.2.2.1.4"},
	{"ifSpeed", "1.3.6.1.2.1.2.2.1.5"},
	{"ifPhysAddress", "1.3.6.1.2.1.2.2.1.6"},
	{"ifAdminStatus", "1.3.6.1.2.1.2.2.1.7"},
	{"ifOperStatus", "1.3.6.1.2.1.2.2.1.8"},
	{"ifLastChange", "1.3.6.1.2.1.2.2.1.9"},
	{"ifInOctets", "1.3.6.1.2.1.2.2.1.10"},
	{"ifInUcastPkts", "1.3.6.1.2.1.2.2.1.11"},
	{"ifInNUcastPkts", "1.3.6.1.2.1.2.2.1.12"},
	{"ifInDiscards", "1.3.6.1.2.1.2.2.1.13"},
	{"ifInErrors", "1.3.6.1.2.1.2.2.1.14"},
	{"ifInUnknownProtos", "1.3.6.1.2.1.2.2.1.15"},
	{"ifOutOctets", "1.3.6.1.2.1.2.2.1.16"},
	{"ifOutUcastPkts", "1.3.6.1.2.1.2.2.1.17"},
	{"ifOutNUcastPkts", "1.3.6.1.2.1.2.2.1.18"},
	{"ifOutDiscards", "1.3.6.1.2.1.2.2.1.19"},
	{"ifOutErrors", "1.3.6.1.2.1.2.2.1.20"},
	{"ifOutQLen", "1.3.6.1.2.1.2.2.1.21"},
	{"ipAdEntAddr", "1.3.6.1.2.1.4.20.1.1"},
	{"ipAdEntIfIndex", "1.3.6.1.2.1.4.20.1.2"},
	{"hrSystemUptime", "1.3.6.1.2.1.25.1.1"},
	{"ifName", "1.3.6.1.2.1.31.1.1.1.1"},
	{"ifInMulticastPkts", "1.3.6.1.2.1.31.1.1.1.2"},
	{"ifInBroadcastPkts", "1.3.6.1.2.1.31.1.1.1.3"},
	{"ifOutMulticastPkts", "1.3.6.1.2.1.31.1.1.1.4"},
	{"ifOutBroadcastPkts", "1.3.6.1.2.1.31.1.1.1.5"},
	{"ifHCInOctets", "1.3.6.1.2.1.31.1.1.1.6"},
	{"ifHCInUcastPkts", "1.3.6.1.2.1.31.1.1.1.7"},
	{"ifHCInMulticastPkts", "1.3.6.1.2.1.31.1.1.1.8"},
	{"ifHCInBroadcastPkts", "1.3.6.1.2.1.31.1.1.1.9"},
	{"ifHCOutOctets", "1.3.6.1.2.1.31.1.1.1.10"},
	{"ifHCOutUcastPkts", "1.3.6.1.2.1.31.1.1.1.11"},
	{"ifHCOutMulticastPkts", "1.3.6.1.2.1.31.1.1.1.12"},
	{"ifHCOutBroadcastPkts", "1.3.6.1.2.1.31.1.1.1.13"},
	{"ifLinkUpDownTrapEnable", "1.3.6.1.2.1.31.1.1.1.14"},
	{"ifHighSpeed", "1.3.6.1.2.1.31.1.1.1.15"},
	{"ifPromiscuousMode", "1.3.6.1.2.1.31.1.1.1.16"},
	{"ifConnectorPresent", "1.3.6.1.2.1.31.1.1.1.17"},
	{"ifAlias", "1.3.6.1.2.1.31.1.1.1.18"},
	{"ifCounterDiscontinuityTime", "1.3.6.1.2.1.31.1.1.1.19"},
	{"ifTableLastChange", "1.3.6.1.2.1.31.1.5"},
	{"usmStatsUnsupportedSecLevels", "1.3.6.1.6.3.15.1.1.1"},
	{"usmStatsNotInTimeWindows", "1.3.6.1.6.3.15.1.1.2"},
	{"usmStatsUnknownUserNames", "1.3.6.1.6.3.15.1.1.3"},
	{"usmStatsUnknownEngineIDs", "1.3.6.1.6.3.15.1.1.4"},
	{"usmStatsWrongDigests", "1.3.6.1.6.3.15.1.1.5"},
	{"usmStatsDecryptionErrors", "1.3.6.1.6.3.15.1.1.6"},
	{"snmpEngineID", "1.3.6.1.6.3.10.2.1.1"},
	{"snmpEngineBoots", "1.3.6.1.6.3.10.2.1.2"},
	{"snmpEngineTime", "1.3.6.1.6.3.10.2.1.3"},
};

/* ---- Names ----------------------------------------------------------------------------------- */

int snmp_text_parse_oid(struct slice text, uint8_t memory[OID_MAX_BYTES], struct slice *oid,
			struct errbuf *e)
{
	struct buf numbers;
	size_t name_len = 0;
	while (name_len < text.len && text.data[name_len] != '.')
		name_len++;
	if (name_len == 0 || !isalpha((unsigned char)text.data[0]))
		return oid_parse(text, memory, oid, e);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!slice_equal(slice_of(names[i].name), (struct slice){text.data, name_len}))
			continue;
		buf_init(&numbers, 4096);
		buf_append_text(&numbers, names[i].oid);
		buf_append(&numbers, text.data + name_len, text.len - name_len);
		int err = numbers.failed ? ERR_INVALID
					 : oid_parse(buf_slice(&numbers), memory, oid, e);
		buf_release(&numbers);
		return err;
	}
	return errbuf_set(e, ERR_INVALID,
			  "\"" SHOWN "\" is no name that is known here; write it as numbers",
			  SHOWN_OF(text));
}

/* The encoded names, made at first use: a client command has one thread. */
static struct slice snmp_text_oid_of(size_t i)
{
	static uint8_t memory[ARRAY_LEN(names)][OID_MAX_BYTES];
	static struct slice oids[ARRAY_LEN(names)];
	if (!oids[i].len)
		ASSERT(oid_parse(slice_of(names[i].oid), memory[i], &oids[i], NULL) == 0);
	return oids[i];
}

bool snmp_text_name(struct slice oid, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct slice prefix = snmp_text_oid_of(i);
		uint32_t arc;
		if (!oid_has_prefix(oid, prefix))
			continue;
		struct slice rest = {oid.data + prefix.len, oid.len - prefix.len};
		buf_append_text(out, names[i].name);
		while (oid_next_arc(&rest, &arc))
			buf_printf(out, ".%u", arc);
		return true;
	}
	return false;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool snmp_text_is_text(struct slice bytes)
{
	for (size_t i = 0; i < bytes.len; i++) {
		unsigned char c = (unsigned char)bytes.data[i];
		if (c >= 0x7f || (c < ' ' && !(c >= '\t' && c <= '\r')))
			return false;
	}
	return true;
}

static void snmp_text_write_hex(struct slice bytes, const char *name, struct buf *out)
{
	buf_append_text(out, name);
	for (size_t i = 0; i < bytes.len; i++)
		buf_printf(out, " %02X", (unsigned char)bytes.data[i]);
}

static void snmp_text_write_octets(struct slice bytes, struct buf *out)
{
	if (!snmp_text_is_text(bytes)) {
		snmp_text_write_hex(bytes, "Hex-STRING:", out);
		return;
	}
	buf_append_text(out, bytes.len ? "STRING: \"" : "\"");
	for (size_t i = 0; i < bytes.len; i++) {
		if (bytes.data[i] == '"' || bytes.data[i] == '\\')
			buf_append_char(out, '\\');
		buf_append_char(out, bytes.data[i]);
	}
	buf_append_char(out, '"');
}

static void snmp_text_write_ticks(uint64_t ticks, struct buf *out)
{
	uint64_t s = ticks / 100, days = s / 86400;
	buf_printf(out, "Timeticks: (%llu) ", (unsigned long long)ticks);
	if (days)
		buf_printf(out, "%llu %s, ", (unsigned long long)days, days == 1 ? "day" : "days");
	buf_printf(out, "%u:%02u:%02u.%02u", (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60),
		   (unsigned)(s % 60), (unsigned)(ticks % 100));
}

static void snmp_text_write_address(struct slice bytes, struct buf *out)
{
	const uint8_t *b = (const uint8_t *)bytes.data;
	if (bytes.len == 4)
		buf_printf(out, "IpAddress: %u.%u.%u.%u", b[0], b[1], b[2], b[3]);
	else
		snmp_text_write_hex(bytes, "IpAddress:", out);
}

static const char *snmp_text_number_name(uint8_t type)
{
	switch (type) {
	case SNMP_COUNTER32:
		return "Counter32";
	case SNMP_GAUGE32:
		return "Gauge32";
	case SNMP_COUNTER64:
		return "Counter64";
	default:
		return "UInteger32";
	}
}

void snmp_text_value(const struct snmp_value *value, struct buf *out)
{
	switch (value->type) {
	case SNMP_INTEGER:
		buf_printf(out, "INTEGER: %lld", (long long)value->i64);
		break;
	case SNMP_OCTETS:
		snmp_text_write_octets(value->bytes, out);
		break;
	case SNMP_NULL:
		buf_append_text(out, "NULL");
		break;
	case SNMP_OID:
		buf_append_text(out, "OID: ");
		oid_print(value->bytes, out);
		break;
	case SNMP_IPADDRESS:
		snmp_text_write_address(value->bytes, out);
		break;
	case SNMP_COUNTER32:
	case SNMP_GAUGE32:
	case SNMP_COUNTER64:
	case SNMP_UINTEGER32:
		buf_printf(out, "%s: %llu", snmp_text_number_name(value->type),
			   (unsigned long long)value->u64);
		break;
	case SNMP_TIMETICKS:
		snmp_text_write_ticks(value->u64, out);
		break;
	case SNMP_FLOAT:
	case SNMP_DOUBLE:
		buf_printf(out, "Opaque: %s: %f", value->type == SNMP_FLOAT ? "Float" : "Double",
			   value->f64);
		break;
	case SNMP_NO_SUCH_OBJECT:
		buf_append_text(out, "No Such Object available on this agent at this OID");
		break;
	case SNMP_NO_SUCH_INSTANCE:
		buf_append_text(out, "No Such Instance currently exists at this OID");
		break;
	case SNMP_END_OF_MIB_VIEW:
		buf_append_text(out, "No more variables left in this MIB View");
		break;
	case SNMP_OPAQUE:
		snmp_text_write_hex(value->bytes, "OPAQUE:", out);
		break;
	default:
		snmp_text_write_hex(value->bytes, "unreadable:", out);
	}
}

void snmp_text_line(struct slice oid, const struct snmp_value *value, bool with_names,
		    struct buf *out)
{
	oid_print(oid, out);
	if (with_names) {
		size_t before = out->len;
		buf_append_text(out, " (");
		if (snmp_text_name(oid, out))
			buf_append_char(out, ')');
		else
			out->len = before;
	}
	buf_append_text(out, " = ");
	snmp_text_value(value, out);
}
