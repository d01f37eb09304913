/* The server's own counters and gauges, shown at /metrics. Each is one row of base/stats.def; help
 * text and tests are made from the rows. Adding is one relaxed atomic addition, from any thread;
 * hot paths add once a batch. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <stdatomic.h>

#include "base/base.h"

enum stat_id {
#define STAT(id, kind, name, label, help) STAT_##id,
#include "base/stats.def"
#undef STAT
	STAT_COUNT
};

/* Values of STAT_GAUGE_US are microseconds, and are shown as seconds. */
enum stat_kind { STAT_COUNTER, STAT_GAUGE, STAT_GAUGE_US };

struct stat_def {
	enum stat_kind kind;
	const char *name;  /* as Prometheus wants it; rows of one name stand together */
	const char *label; /* `reason="late"`, or "" */
	const char *help;
};

extern const struct stat_def stat_defs[STAT_COUNT];
extern _Atomic int64_t stat_values[STAT_COUNT];

static inline void stat_add(enum stat_id stat, int64_t by)
{
	atomic_fetch_add_explicit(&stat_values[stat], by, memory_order_relaxed);
}

static inline void stat_set(enum stat_id gauge, int64_t value)
{
	atomic_store_explicit(&stat_values[gauge], value, memory_order_relaxed);
}

/* Raises it to the value, if that is larger; true if it was. */
static inline bool stat_raise(enum stat_id gauge, int64_t value)
{
	int64_t now = atomic_load_explicit(&stat_values[gauge], memory_order_relaxed);
	while (value > now) {
		if (atomic_compare_exchange_weak_explicit(&stat_values[gauge], &now, value,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	}
	return false;
}

/* As /metrics shows it. */
enum { STAT_TEXT_BYTES = 32 };
const char *stat_text(enum stat_id stat, char text[STAT_TEXT_BYTES]);

static inline int64_t stat_get(enum stat_id stat)
{
	return atomic_load_explicit(&stat_values[stat], memory_order_relaxed);
}

#endif
