/* Granularities: the widths of the roll-ups that are stored, and for how long each is kept.
 *
 * The finest is made from raw data, each other one from the one before it, all of a slot at once;
 * so each width divides the next and the slot's width is a multiple of all of them. Widths lie on
 * multiples of themselves since 1970 UTC.
 *
 * Any thread; no state. */
#ifndef RETENTION_GRANULARITY_H
#define RETENTION_GRANULARITY_H

#include "base/base.h"

struct conf;

enum {
	GRANULARITIES_MAX = 8,
	GRANULARITY_BUCKETS_MAX = 10000,  /* of one granularity in a slot */
	GRANULARITY_WIDTH_MAX_BYTES = 32, /* of a width as it is printed */
};

#define SLOT_WIDTH_MAX_MS (400 * INT64_C(86400000))
/* The longest retention but for ever. */
#define GRANULARITY_KEPT_MAX_MS (36500 * INT64_C(86400000))

struct granularity {
	int64_t width_ms, retention_ms; /* retention 0: for ever */
};

struct granularities {
	int64_t slot_ms;                            /* the width of a slot */
	size_t count;                               /* 0: nothing is rolled up */
	struct granularity list[GRANULARITIES_MAX]; /* finest first */
};

/* `5m`, `1h`, `12h30m` as Cassandra writes durations (quantities and units w, d, h, m, s, ms; no
 * months and years, which have no one length), or ISO 8601, `PT5M`. Above 0, and a multiple of a
 * second, since the document's slots are counted in seconds. */
int granularity_width_parse(struct slice text, int64_t *width_ms, struct errbuf *e) MUST_CHECK;
/* The inverse, in Cassandra's way and the largest units: `1h30m`. Returns the bytes written; no
 * closing zero. */
size_t granularity_width_print(char to[GRANULARITY_WIDTH_MAX_BYTES], int64_t width_ms);

/* Items `width:retention`, such as `5m:14d`; without a retention, or with 0, for ever. Checks what
 * the head of this file says, that nothing is kept for less than a slot, and that a slot has no
 * more than GRANULARITY_BUCKETS_MAX buckets; a slot is whole seconds wide, one at least. After a
 * refusal granularities->count is the place of the item at fault. */
int granularities_parse(const char *const *items, size_t count, int64_t slot_ms,
			struct granularities *granularities, struct errbuf *e) MUST_CHECK;
/* The configured ones. The sentence names the option at fault. */
int granularities_read(const struct conf *conf, struct granularities *granularities,
		       struct errbuf *e) MUST_CHECK;

/* The granularity of that width, or NULL. */
const struct granularity *granularity_find(const struct granularities *granularities,
					   int64_t width_ms);

#endif
