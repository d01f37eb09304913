/* The site: what everybody works on who makes, marks or deletes roll-ups. It is filled in once,
 * before anything is written, and only read after that. */
#ifndef ROLLUP_SITE_H
#define ROLLUP_SITE_H

#include "base/clock.h"
#include "marks/marks.h"
#include "retention/granularity.h"
#include "retention/late.h"
#include "retention/retention.h"
#include "store/store.h"

struct watermark;

struct rollup_site {
	struct store *store;
	struct marks *marks;
	struct watermark *watermark; /* is told what stays marked; NULL: nobody asks */
	struct clock *clock;
	struct granularities granularities; /* none in it: nothing is marked or rolled up */
	/* A mark of a partition beyond them is taken for one of them; 0: it is left. */
	uint32_t partitions;
	int64_t quiet_ms;
	int64_t skew_max_ms; /* by how much the clocks of processes may differ */
	int64_t ahead_ms;    /* how far after now samples are taken */
	/* How long raw samples are kept, 0: for ever. A slot whose raw samples have begun to expire
	 * gets no rows of them: the rows that are there were made of more samples. */
	int64_t raw_retention_ms;
	const struct retention_rules *retention_rules; /* where they say else; NULL: nowhere */
	struct late_samples late;                      /* which slots may have late samples */
	/* Ends of names of metrics that are counters. */
	const char *const *counter_suffixes;
	size_t counter_suffix_count;
	size_t slice_points; /* of one read; 0: as many as the store gives; fewer are for tests */
};

/* How old raw samples may be now so that none of that time has gone: of series whose rule is
 * `raw_fit` (a place of a retention_fit), of those that are kept for longest, and for the shortest
 * time. 0: of any age. */
static inline int64_t rollup_site_whole_ms(const struct rollup_site *site, uint8_t raw_fit)
{
	return retention_whole_ms(site->retention_rules, raw_fit, site->raw_retention_ms,
				  clock_age_ms(site->clock));
}

static inline int64_t rollup_site_longest_ms(const struct rollup_site *site)
{
	return retention_longest_whole_ms(site->retention_rules, site->raw_retention_ms,
					  clock_age_ms(site->clock));
}

static inline int64_t rollup_site_shortest_ms(const struct rollup_site *site)
{
	return retention_shortest_whole_ms(site->retention_rules, site->raw_retention_ms,
					   clock_age_ms(site->clock));
}

/* Where the first open slot begins (slot_open_from_ms) of series whose raw samples count as kept
 * for whole_ms. */
static inline int64_t rollup_site_open_from_ms(const struct rollup_site *site, int64_t whole_ms)
{
	return slot_open_from_ms(clock_age_ms(site->clock), whole_ms, site->granularities.slot_ms,
				 site->quiet_ms);
}

#endif
