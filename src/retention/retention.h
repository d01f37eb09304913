/* Retention: how long samples and roll-ups are kept, by tenant, metric and granularity.
 *
 * A rule is TENANT/METRIC/GRANULARITY:DURATION, such as `acme/debug/raw:2d`. In tenant and metric
 * a `*` stands for any text, also for none. The granularity is `raw`, a configured width, or `*`
 * for all of these. The duration 0 is for ever. The first rule that fits holds. If none fits, the
 * preset holds: of raw samples retention.raw, which stands with the rules, of rows what
 * rollup.granularities says.
 *
 * Rules are for the tables data_raw and data_downsampled. They are matched once for each series,
 * never for a sample, and the result is remembered. Raw samples have few different retentions; each
 * is a level, a small number that is kept beside the series' handle.
 *
 * Rules are only read once they are made: any thread. A memo belongs to one. Zeroed rules keep
 * everything for ever. A change of the configuration makes other rules, whose levels are others. */
#ifndef RETENTION_RETENTION_H
#define RETENTION_RETENTION_H

#include "retention/granularity.h"
#include "retention/late.h"

enum {
	RETENTION_RULES_MAX = 64,
	RETENTION_LEVELS_MAX = 15,
	RETENTION_RAW = -1, /* in the place of a granularity */
	RETENTION_ALL = -2, /* raw, and each granularity */
};

/* What the store takes, and retention.raw. */
#define RETENTION_MAX_MS GRANULARITY_KEPT_MAX_MS

struct retention_rule {
	struct slice text;           /* as it was written; the caller's, and so are: */
	struct slice tenant, metric; /* patterns */
	int granularity;             /* a place in the granularities, or one of the above */
	int64_t keep_ms;             /* 0: for ever */
	uint8_t level;               /* of raw samples, where it is about these */
};

/* Raw samples of some levels are kept for longer now than once (lengthened.h): samples from before
 * until_ms (0: there are none) still leave when they are older than kept_ms. */
struct retention_lengthened {
	int64_t until_ms, kept_ms;
	uint32_t levels; /* bit by level */
};

struct retention_rules {
	size_t count;
	struct retention_rule list[RETENTION_RULES_MAX];
	/* How long raw samples of each level are kept. Level 0 is the preset, retention.raw. */
	uint8_t last_level;
	int64_t levels_ms[RETENTION_LEVELS_MAX];
	struct retention_lengthened raise;
	struct late_samples late; /* which slots may have late samples */
	bool keeps_late;          /* samples that are late now; else they are refused */
};

extern const struct retention_rules retention_for_ever;

/* The texts stay the caller's, and the preset is for the caller to set. `raw_least_ms`: the
 * shortest retention of raw samples. ERR_INVALID with a sentence that names the rule: it is not a
 * rule, its granularity is not configured, it is shorter than a slot or longer than the store
 * takes, there are too many levels, or no series ever reaches the rule because rules before it take
 * them all. Then rules->count is the place of that rule. */
int retention_parse(const char *const *items, size_t count,
		    const struct granularities *granularities, int64_t raw_least_ms,
		    struct retention_rules *rules, struct errbuf *e) MUST_CHECK;

/* The configured rules and their preset. The sentence names the option at fault. */
int retention_read(const struct conf *conf, const struct granularities *granularities,
		   struct retention_rules *rules, struct errbuf *e) MUST_CHECK;

/* A copy, with the texts, that mem_free() frees. */
struct retention_rules *retention_copy(const struct retention_rules *rules);

/* Which rules hold for a metric of a tenant: 0 is the preset, else one more than the rule's place
 * in the list. */
struct retention_fit {
	uint8_t raw;
	uint8_t granularities[GRANULARITIES_MAX];
};

/* Looks through all rules. */
struct retention_fit retention_match(const struct retention_rules *rules, struct slice tenant,
				     struct slice metric);

/* How long, and which level of raw samples; `fit` is a place of a retention_fit. */
static inline int64_t retention_keep_ms(const struct retention_rules *rules, uint8_t fit,
					int64_t preset_ms)
{
	return fit ? rules->list[fit - 1].keep_ms : preset_ms;
}

static inline uint8_t retention_level(const struct retention_rules *rules, uint8_t fit)
{
	return fit ? rules->list[fit - 1].level : 0;
}

/* Compares two retentions, where 0 is for ever. */
static inline bool retention_is_longer(int64_t ms, int64_t than_ms)
{
	return than_ms && (!ms || ms > than_ms);
}

static inline int64_t retention_longer(int64_t a_ms, int64_t b_ms)
{
	return retention_is_longer(a_ms, b_ms) ? a_ms : b_ms;
}

static inline int64_t retention_shorter(int64_t a_ms, int64_t b_ms)
{
	return retention_is_longer(a_ms, b_ms) ? b_ms : a_ms;
}

/* The longest and the shortest that raw samples of anything are kept; 0: for ever. */
int64_t retention_longest_raw_ms(const struct retention_rules *rules);
int64_t retention_shortest_raw_ms(const struct retention_rules *rules);

/* How old raw samples of the level may be now so that none of their age has gone: for how long they
 * are kept, or less after that was lengthened. 0: any age. */
int64_t retention_whole_ms(const struct retention_rules *rules, uint8_t level, int64_t now_ms);
/* The longest and the shortest of all levels. */
int64_t retention_longest_whole_ms(const struct retention_rules *rules, int64_t now_ms);
int64_t retention_shortest_whole_ms(const struct retention_rules *rules, int64_t now_ms);

/* The longest that rows of any granularity are kept, of all series; 0: for ever. */
int64_t retention_longest_ms(const struct retention_rules *rules,
			     const struct granularities *granularities);

/* The same of what `fit` was found for. */
int64_t retention_longest_of_ms(const struct retention_rules *rules,
				const struct retention_fit *fit,
				const struct granularities *granularities);

/* Remembers what has been matched lately. Zeroed, it is empty. */
struct retention_memo {
	const struct retention_rules *rules; /* that were asked */
	struct retention_known *known;
};

void retention_memo_release(struct retention_memo *memo);
/* As retention_match, and mostly without. */
struct retention_fit retention_find(const struct retention_rules *rules,
				    struct retention_memo *memo, struct slice tenant,
				    struct slice metric);
/* The same for a metric that is escaped, as in a series-set. A text that is no metric gets the
 * preset.
 */
struct retention_fit retention_find_encoded(const struct retention_rules *rules,
					    struct retention_memo *memo, struct slice tenant,
					    struct slice metric);

#endif
