/* The names of a device's interfaces, as one walk of ifName found them, and how much they can be
 * relied on.
 *
 * A device may give its interfaces other indices at any time. What makes sure that no counter is
 * stored under the name of another interface:
 *
 *  - A value is stored under a name only if its index had that name before the value was read and
 *    after. The names before are those of an earlier walk; those after come from a walk made when
 *    the values are there, unless the device says that nothing has changed since.
 *  - What it says is ifTableLastChange and sysUpTime (the guard), read with the first of the values
 *    and once more with the last of them, or after. It is believed as long as it has never been
 *    seen to be wrong, and for NAMES_REFRESH_MS; a device without ifTableLastChange, or whose names
 *    changed without it, is asked for the names with every poll.
 *  - Where the guard did not move during poll and walk, the names of that walk hold for the whole
 *    of it, so that a new interface is stored at once.
 *
 * Names are immutable and counted; one thread. */
#ifndef SNMP_CORRELATE_NAMES_H
#define SNMP_CORRELATE_NAMES_H

#include "base/base.h"
#include "base/mem.h"
#include "snmp/correlate_set.h"

enum {
	NAMES_ARENA_MAX_BYTES = 16 << 20,
	IF_NAME_MAX_BYTES = 255, /* RFC 2863: a DisplayString */
};

/* How a device describes itself at one moment. */
struct correlate_guard {
	bool has_uptime, has_change;
	uint32_t uptime_ticks, last_change; /* of 10 ms */
	int64_t ts_ms;                      /* wall clock, of the reply */
};

/* The values of the plan's guard columns, which are read before the rest and after it. */
struct correlate_guard correlate_guard_before(const struct correlate_set *set);
struct correlate_guard correlate_guard_behind(const struct correlate_set *set);

/* Whether the device was started again between the two: its uptime did not grow as time passed.
 * Uptime begins again at 2^32 ticks (497 days), which is no start. */
bool correlate_guard_restarted(const struct correlate_guard *before,
			       const struct correlate_guard *after);
/* Whether the device vouches that no interface came, went or was renumbered between the two. */
bool correlate_guard_unchanged(const struct correlate_guard *before,
			       const struct correlate_guard *after);

struct if_name {
	uint32_t index;
	bool described;    /* it has an ifAlias */
	bool shared;       /* others have the same name */
	struct slice name; /* ifName, else ifDescr; empty: it has none */
};

struct if_names {
	size_t references;
	const struct if_name *list; /* ascending by index */
	size_t count;
	struct correlate_guard guard; /* when they were read */
	struct arena arena;
};

/* Out of a walk of correlate_plan_init_names. ERR_LIMIT with a sentence. One reference. */
int if_names_new(struct correlate_set *set, struct if_names **names, struct errbuf *e) MUST_CHECK;
void if_names_acquire(struct if_names *names);
void if_names_release(struct if_names *names); /* NULL is allowed */

/* NULL: the device has no such interface. */
const struct if_name *if_names_find(const struct if_names *names, uint32_t index);
/* The same; *near: where the next one is looked for first, 0 at the beginning. Rows come in the
 * order of names. */
static inline const struct if_name *if_names_find_near(const struct if_names *names, uint32_t index,
						       size_t *near)
{
	const struct if_name *name = names && *near < names->count ? &names->list[*near] : NULL;
	if (!name || name->index != index)
		name = if_names_find(names, index);
	if (name)
		*near = (size_t)(name - names->list) + 1;
	return name;
}
/* The same interfaces under the same indices with the same names and descriptions or not. */
bool if_names_equal(const struct if_names *a, const struct if_names *b);
/* Whether there are none, or some are empty. */
bool if_names_lack(const struct if_names *names);
/* Whether an index that both have means another name: what no guard may pass over. */
bool if_names_moved(const struct if_names *before, const struct if_names *after);

#endif
