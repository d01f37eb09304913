/* The site: what everybody works on who makes, marks or deletes roll-ups. It is read from the
 * configuration and opened once, before anything is written, and only read after that; what changes
 * in it has locks of its own, or is atomic. The loop's thread opens and closes it.
 *
 * Rules of retention change while others read them. So they are asked for by rollup_site_rules(),
 * once for what belongs together, and all that there have been since the start stay as they were
 * until the site is closed. */
#ifndef ROLLUP_SITE_H
#define ROLLUP_SITE_H

#include "base/clock.h"
#include "lease/partition.h"
#include "marks/marks.h"
#include "marks/redis/redis.h"
#include "retention/granularity.h"
#include "retention/late.h"
#include "retention/retention.h"
#include "rollup/stored_settings.h"
#include "store/store.h"

struct backfill;
struct conf;
struct files;
struct job_claims;
struct lease_session;
struct watermark;
struct watermark_asked;

enum { SITE_RULES_MAX = 1000 }; /* how often the rules may change while a site is open */

/* Rules that hold since a change, and those before them. */
struct site_rules {
	struct retention_rules *rules;
	struct site_rules *before;
	unsigned number;
};

struct rollup_site {
	struct store *store;
	struct marks *marks;
	/* Is told what stays marked. NULL: this process rolls nothing up, and no other process
	 * writes the store. */
	struct watermark *watermark;
	struct backfill *backfill; /* NULL likewise */
	struct clock *clock;
	struct granularities granularities; /* none in it: nothing is marked or rolled up */
	/* A mark of a partition beyond them is taken for one of them; 0: it is left. */
	uint32_t partitions;
	int64_t quiet_ms;
	int64_t skew_max_ms; /* by how much the clocks of processes may differ */
	int64_t ahead_ms;    /* how far after now samples are taken */
	/* A slot whose raw samples have begun to expire gets no rows of them: the rows that are
	 * there were made of more samples. These are the rules of the start. */
	struct retention_rules retention;
	struct site_rules *_Atomic changed; /* the rules of now; NULL: still those of the start */
	struct stored_settings settings;
	/* Ends of names of metrics that are counters. */
	const char *const *counter_suffixes;
	size_t counter_suffix_count;
	size_t slice_points; /* of one read; 0: as many as the store gives; fewer are for tests */
	/* Who rolls up, and when. */
	/* The name of this process among those that roll up; in a store that several processes
	 * share, with a number that no other process has. */
	char name[256];
	size_t name_given_len; /* so much of it is configured */
	const char *address;   /* where this process is reached */
	/* What this process has a right to. The session is renewed by the job (rollup.h), and by
	 * whoever takes a claim. */
	struct lease_session *session;
	struct job_claims *claims;
	struct partitions own; /* by configuration, or all that may be taken */
	bool share;            /* these are shared with others that share */
	bool owns_streams;     /* the session says so */
	int64_t every_ms, lease_ms;
	struct errbuf unshared; /* why it may not share its store; empty: it may */
	struct redis_url redis; /* that has the marks; no host: the store has them */
	char redis_separator;
};

/* The configuration, whose texts it points to. What belongs together is checked; the sentence names
 * the option, its file and line. */
int rollup_site_read(struct rollup_site *site, const struct conf *conf, struct files *files,
		     struct errbuf *e) MUST_CHECK;
/* The same of nothing but rules of retention: for a site that was read from a configuration with
 * the same roll-ups. */
int rollup_site_read_rules(const struct rollup_site *site, const struct conf *conf,
			   struct retention_rules *rules, struct errbuf *e) MUST_CHECK;
/* Before anything is written; blocks for a moment. It is to be closed in any case. */
int rollup_site_open(struct rollup_site *site, struct store *store, struct clock *clock,
		     struct errbuf *e) MUST_CHECK;
void rollup_site_close(struct rollup_site *site);

/* The rules that hold now; they stay as they are until the site is closed. Any thread. */
static inline const struct retention_rules *rollup_site_rules(const struct rollup_site *site)
{
	const struct site_rules *changed =
		atomic_load_explicit(&site->changed, memory_order_acquire);
	return changed ? changed->rules : &site->retention;
}

/* How often they may still change. */
static inline unsigned rollup_site_changes_left(const struct rollup_site *site)
{
	const struct site_rules *changed =
		atomic_load_explicit(&site->changed, memory_order_acquire);
	return SITE_RULES_MAX - (changed ? changed->number : 0);
}

/* From now on a copy of these holds, which stored_settings_change() has prepared. The loop's
 * thread. */
void rollup_site_change_rules(struct rollup_site *site, const struct retention_rules *rules);

/* For queries (query/query.h), on any thread; the owner is the site. Adds to a read what has to be
 * asked before it is known how far a metric is rolled up; *asked is NULL if nothing has to.
 * ERR_LIMIT: the read has no room. The metric's plain name. */
int rollup_site_ask(void *owner, struct slice tenant, struct slice metric, struct store_read *read,
		    struct watermark_asked **asked) MUST_CHECK;
/* All samples of the metric of earlier times are rolled up in all granularities, as far as is
 * known: in a store that is shared by what the read says, else by what this process has written and
 * the last pass has seen. 0: before the first pass, while marks are lost, and where Redis has the
 * marks of several processes. */
int64_t rollup_site_before_ms(void *owner, struct slice tenant, struct slice metric,
			      const struct watermark_asked *asked);
/* As stored_settings_since_ms, and as rollup_is_counter. */
int64_t rollup_site_since_ms(void *owner, struct slice metric, size_t granularity);
bool rollup_site_is_counter(void *owner, struct slice metric);

/* How old raw samples may be now so that none of that time has gone: of series that `fit` is of, of
 * those that are kept for longest, and for the shortest time. 0: of any age. */
static inline int64_t rollup_site_whole_ms(const struct rollup_site *site,
					   const struct retention_rules *rules,
					   struct retention_fit fit)
{
	return retention_whole_ms(rules, retention_level(rules, fit.raw),
				  clock_age_ms(site->clock));
}

static inline int64_t rollup_site_longest_ms(const struct rollup_site *site)
{
	return retention_longest_whole_ms(rollup_site_rules(site), clock_age_ms(site->clock));
}

static inline int64_t rollup_site_shortest_ms(const struct rollup_site *site)
{
	return retention_shortest_whole_ms(rollup_site_rules(site), clock_age_ms(site->clock));
}

/* Where the first open slot begins (slot_open_from_ms) of series whose raw samples count as kept
 * for whole_ms. */
static inline int64_t rollup_site_open_from_ms(const struct rollup_site *site, int64_t whole_ms)
{
	return slot_open_from_ms(clock_age_ms(site->clock), whole_ms, site->granularities.slot_ms,
				 site->quiet_ms);
}

#endif
