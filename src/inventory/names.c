/* Tables of what configurations can name: types of OIDs, kinds of OIDSets, correlators. */
#include "inventory/private.h"

static const char *const type_names[OID_TYPES] = {
	[OID_COUNTER32] = "Counter32",  [OID_COUNTER64] = "Counter64",
	[OID_GAUGE32] = "Gauge32",      [OID_INTEGER] = "Integer32",
	[OID_TIMETICKS] = "TimeTicks",  [OID_TEXT] = "DisplayString",
	[OID_OCTETS] = "OCTET STRING",  [OID_PHYS_ADDRESS] = "PhysAddress",
	[OID_IP_ADDRESS] = "IpAddress", [OID_OBJECT_ID] = "OBJECT IDENTIFIER",
};

const char *oid_type_text(enum oid_type type)
{
	ASSERT((unsigned)type < OID_TYPES);
	return type_names[type];
}

const char *const oidset_kind_words[] = {
	[OIDSET_COUNTERS] = "counters", [OIDSET_INTERFACES] = "interfaces", [OIDSET_SAPS] = "saps",
	[OIDSET_LSPS] = "lsps",         [OIDSET_OUTLETS] = "outlets",       [OIDSET_KINDS] = NULL,
};

const char *oidset_kind_text(enum oidset_kind kind)
{
	ASSERT((unsigned)kind < OIDSET_KINDS);
	return oidset_kind_words[kind];
}

const struct correlator correlators[] = {
	{"none", CORRELATOR_NONE, "rows by their index, for kinds other than counters"},
	{"Oid", CORRELATOR_OID, "scalars: one value of the device"},
	{"Index", CORRELATOR_INDEX, "the index as it is", {"index"}},
	{"IfName", CORRELATOR_IF_NAME, "the ifName of the interface", {"interface"}, {"ifName"}},
	{"InfIfName",
	 CORRELATOR_INF_IF_NAME,
	 "the ifName, of it what stands behind a =",
	 {"interface"},
	 {"ifName"}},
	{"JnxFirewall",
	 CORRELATOR_JNX_FIREWALL,
	 "type of the filter, filter and counter, from the index",
	 {"filter_type", "filter", "counter"}},
	{"JnxCOS",
	 CORRELATOR_JNX_COS,
	 "the ifName of the interface and the queue",
	 {"interface", "queue"},
	 {"ifName"}},
	{"Sentry",
	 CORRELATOR_SENTRY,
	 "the outletID or tempHumidSensorID",
	 {"id"},
	 {"outletID", "tempHumidSensorID"}},
	{"ALUSAP", CORRELATOR_ALU_SAP, "service-port-vlan, from the index", {"sap"}},
	{"CiscoCPU",
	 CORRELATOR_CISCO_CPU,
	 "the entPhysicalName of the processor",
	 {"cpu"},
	 {"cpmCPUTotalPhysicalIndex", "entPhysicalName"}},
	{"GenericOid",
	 CORRELATOR_GENERIC,
	 "the value of correlate_oid at the same index",
	 {"name"}},
	{NULL},
};

const struct oid_def *oid_companion(struct slice name)
{
	static const struct oid_def companions[] = {
		{.name = SLICE("sysUpTime"),
		 .oid = SLICE("1.3.6.1.2.1.1.3"),
		 .ber = SLICE("\x2b\6\1\2\1\1\3"),
		 .type = OID_TIMETICKS,
		 .scalar = true},
		{.name = SLICE("ifCounterDiscontinuityTime"),
		 .oid = SLICE("1.3.6.1.2.1.31.1.1.1.19"),
		 .ber = SLICE("\x2b\6\1\2\1\x1f\1\1\1\x13"),
		 .type = OID_TIMETICKS},
	};
	for (size_t i = 0; i < ARRAY_LEN(companions); i++)
		if (slice_equal(companions[i].name, name))
			return &companions[i];
	return NULL;
}
