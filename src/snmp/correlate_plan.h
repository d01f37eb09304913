/* The columns to walk for an OIDSet: its own columns, what names their rows, and what tells
 * whether the device has renumbered its interfaces. Immutable once made; any thread. */
#ifndef SNMP_CORRELATE_PLAN_H
#define SNMP_CORRELATE_PLAN_H

#include "base/base.h"
#include "inventory/inventory.h"

enum {
	/* The OIDSet's, two companions, the correlator's, the guards before and after. */
	CORRELATE_COLUMNS_MAX = OIDSET_OIDS_MAX + 2 + OIDSET_NAME_OIDS_MAX + 1 + 4,
};

enum correlate_role {
	CORRELATE_VALUE, /* a column of the poll, in the same order */
	CORRELATE_NAME,  /* names rows; not stored */
	CORRELATE_GUARD, /* ifTableLastChange, and sysUpTime where it is not stored; not stored */
};

struct correlate_column {
	const struct oid_def *def;
	enum correlate_role role;
	bool scalar;  /* one value, without a path */
	bool closing; /* the guard after the values: read when the others are */
	/* Numbers of this tag up to plain_max are what the column is made of, and need not be
	 * looked at otherwise; -1: none are. */
	int plain_tag;
	uint64_t plain_max;
};

struct correlate_plan {
	const struct oidset *oidset; /* NULL: the walk of the interfaces' names */
	enum correlator_kind kind;
	bool skip_undescribed;
	/* Values first. Scalars are walked like columns; they end after one row. */
	struct correlate_column columns[CORRELATE_COLUMNS_MAX];
	size_t count, value_count;
	/* Places in `columns`; SIZE_MAX where there is none. */
	size_t uptime, last_change, if_name, if_descr, if_alias;
	size_t closing_uptime, closing_last_change;
};

/* Companions are added to OIDSets that make counters: sysUpTime, and of interfaces
 * ifCounterDiscontinuityTime, so that rates can be computed again as they were the first time. */
void correlate_plan_init(struct correlate_plan *plan, const struct oidset *oidset);

/* The walk of ifName with its guards, before and after; where wanted ifDescr, for interfaces
 * without an ifName, and ifAlias. */
void correlate_plan_init_names(struct correlate_plan *plan, bool with_descr, bool with_alias);

/* Only sysUpTime: whether the device is there. */
void correlate_plan_init_probe(struct correlate_plan *plan);

/* Whether rows are named through the device's interfaces (correlate_names.h). */
bool correlate_needs_names(enum correlator_kind kind);

/* The place of the CORRELATE_NAME column of that name, or SIZE_MAX. */
size_t correlate_plan_find_name(const struct correlate_plan *plan, struct slice name);

#endif
