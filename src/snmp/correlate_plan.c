#include "snmp/correlate_plan.h"

#include "wire/oid.h"
#include "wire/snmp.h"

/* RFC 1213 and 2863. An OIDSet may have some of them as its own; these stand for the others. */
#define BER(...)                                                                                   \
	{                                                                                          \
		(const char *)(const uint8_t[]){__VA_ARGS__},                                      \
			sizeof((const uint8_t[]){__VA_ARGS__})                                     \
	}
#define MIB_2 0x2b, 6, 1, 2, 1
#define TEXT(literal)                                                                              \
	{                                                                                          \
		literal, sizeof(literal) - 1                                                       \
	}

static const struct oid_def if_table_last_change = {
	.name = TEXT("ifTableLastChange"),
	.oid = TEXT("1.3.6.1.2.1.31.1.5"),
	.ber = BER(MIB_2, 31, 1, 5),
	.type = OID_TIMETICKS,
	.scalar = true,
};

static const struct oid_def if_descr = {
	.name = TEXT("ifDescr"),
	.oid = TEXT("1.3.6.1.2.1.2.2.1.2"),
	.ber = BER(MIB_2, 2, 2, 1, 2),
	.type = OID_TEXT,
};

static const struct oid_def if_name = {
	.name = TEXT("ifName"),
	.oid = TEXT("1.3.6.1.2.1.31.1.1.1.1"),
	.ber = BER(MIB_2, 31, 1, 1, 1, 1),
	.type = OID_TEXT,
};

static const struct oid_def if_alias = {
	.name = TEXT("ifAlias"),
	.oid = TEXT("1.3.6.1.2.1.31.1.1.1.18"),
	.ber = BER(MIB_2, 31, 1, 1, 1, 18),
	.type = OID_TEXT,
};

bool correlate_needs_names(enum correlator_kind kind)
{
	return kind == CORRELATOR_IF_NAME || kind == CORRELATOR_INF_IF_NAME ||
	       kind == CORRELATOR_JNX_COS;
}

static int plain_tag(enum oid_type type)
{
	switch (type) {
	case OID_COUNTER32:
		return SNMP_COUNTER32;
	case OID_TIMETICKS:
		return SNMP_TIMETICKS;
	case OID_COUNTER64:
		return SNMP_COUNTER64;
	default:
		return -1;
	}
}

static size_t plan_put(struct correlate_plan *plan, const struct oid_def *def,
		       enum correlate_role role)
{
	ASSERT(plan->count < CORRELATE_COLUMNS_MAX);
	plan->columns[plan->count] = (struct correlate_column){
		.def = def,
		.role = role,
		.scalar = def->scalar || plan->kind == CORRELATOR_OID,
		.plain_tag = plain_tag(def->type),
		.plain_max = def->type == OID_COUNTER64 ? UINT64_MAX : UINT32_MAX,
	};
	plan->value_count += role == CORRELATE_VALUE;
	return plan->count++;
}

/* The place of a column with that OID, added where there is none. */
static size_t find_or_add(struct correlate_plan *plan, const struct oid_def *def,
			  enum correlate_role role)
{
	for (size_t i = 0; i < plan->count; i++)
		if (slice_equal(plan->columns[i].def->ber, def->ber))
			return i;
	return plan_put(plan, def, role);
}

static void plan_clear(struct correlate_plan *plan)
{
	const size_t none = SIZE_MAX;
	*plan = (struct correlate_plan){
		.uptime = none,
		.last_change = none,
		.closing_uptime = none,
		.closing_last_change = none,
		.if_name = none,
		.if_descr = none,
		.if_alias = none,
	};
}

static void add_guards(struct correlate_plan *plan)
{
	const struct oid_def *uptime = oid_companion(SLICE("sysUpTime"));
	plan->uptime = find_or_add(plan, uptime, CORRELATE_GUARD);
	plan->last_change = find_or_add(plan, &if_table_last_change, CORRELATE_GUARD);
	plan->closing_uptime = plan_put(plan, uptime, CORRELATE_GUARD);
	plan->closing_last_change = plan_put(plan, &if_table_last_change, CORRELATE_GUARD);
	plan->columns[plan->closing_uptime].closing = true;
	plan->columns[plan->closing_last_change].closing = true;
}

/* Rows of ifTable and ifXTable, whose index is an ifIndex alone. */
static bool is_of_interfaces(const struct oidset *oidset)
{
	static const uint8_t entry[] = {MIB_2, 2, 2, 1}, x_entry[] = {MIB_2, 31, 1, 1, 1};
	for (size_t i = 0; i < oidset->oid_count; i++) {
		struct slice ber = oidset->oids[i]->ber;
		if (oid_has_prefix(ber, (struct slice){(const char *)entry, sizeof(entry)}) ||
		    oid_has_prefix(ber, (struct slice){(const char *)x_entry, sizeof(x_entry)}))
			return true;
	}
	return false;
}

static bool has_aggregates(const struct oidset *oidset)
{
	for (size_t i = 0; i < oidset->oid_count; i++)
		if (oidset->oids[i]->aggregate)
			return true;
	return false;
}

void correlate_plan_init(struct correlate_plan *plan, const struct oidset *oidset)
{
	plan_clear(plan);
	plan->oidset = oidset;
	plan->kind = oidset->correlator->kind;
	plan->skip_undescribed = oidset->skip_undescribed;
	for (size_t i = 0; i < oidset->oid_count; i++)
		plan_put(plan, oidset->oids[i], CORRELATE_VALUE);
	if (oidset->kind == OIDSET_COUNTERS && has_aggregates(oidset)) {
		plan->uptime =
			find_or_add(plan, oid_companion(SLICE("sysUpTime")), CORRELATE_VALUE);
		if (plan->kind == CORRELATOR_IF_NAME && is_of_interfaces(oidset))
			find_or_add(plan, oid_companion(SLICE("ifCounterDiscontinuityTime")),
				    CORRELATE_VALUE);
	}
	if (correlate_needs_names(plan->kind)) {
		add_guards(plan);
		return;
	}
	for (size_t i = 0; i < oidset->name_oid_count; i++)
		plan_put(plan, oidset->name_oids[i], CORRELATE_NAME);
}

void correlate_plan_init_names(struct correlate_plan *plan, bool with_descr, bool with_alias)
{
	plan_clear(plan);
	add_guards(plan);
	plan->if_name = plan_put(plan, &if_name, CORRELATE_NAME);
	if (with_descr)
		plan->if_descr = plan_put(plan, &if_descr, CORRELATE_NAME);
	if (with_alias)
		plan->if_alias = plan_put(plan, &if_alias, CORRELATE_NAME);
}

void correlate_plan_init_probe(struct correlate_plan *plan)
{
	plan_clear(plan);
	plan->uptime = plan_put(plan, oid_companion(SLICE("sysUpTime")), CORRELATE_GUARD);
}

size_t correlate_plan_find_name(const struct correlate_plan *plan, struct slice name)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->columns[i].role == CORRELATE_NAME &&
		    slice_equal(plan->columns[i].def->name, name))
			return i;
	return SIZE_MAX;
}
