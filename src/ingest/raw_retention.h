/* Private to ingest/: how long samples are kept, where rules say different things of different
 * series (retention/retention.h).
 *
 * Of raw samples there are a few retentions, the levels, level 0 that of whom no rule names. The
 * cache keeps the level of each series; one whose samples are of several is rare. Each level has a
 * time before which it takes nothing; before the earliest of these nobody takes anything, from the
 * latest on all do, so that a sample of now is not looked at any closer. */
#ifndef INGEST_RAW_RETENTION_H
#define INGEST_RAW_RETENTION_H

#include "ingest/private.h"

/* The levels, as the options say. */
void raw_retention_init(struct ingest *ingest);
void raw_retention_release(struct ingest *ingest);
/* For how long samples of a level count as kept: after a raise for less than they will be. */
int64_t raw_retention_whole_ms(const struct ingest *ingest, uint8_t level, int64_t now_ms);
/* From when on each level takes samples, by age_ms. */
void raw_retention_begin(struct request *q);

/* The levels of some metrics of a tenant. False: all are of level 0, and nothing is written. */
bool raw_retention_levels(struct ingest *ingest, struct slice tenant, const struct slice *metrics,
			  size_t count, uint8_t *levels);

/* Values of one time whose handles are known. */
struct known {
	uint8_t level;         /* of all of them, unless there are: */
	const uint8_t *levels; /* by value */
	int64_t ts_ms;
	const uint64_t *handles;
	const struct value *values;
	size_t count;
	struct ingest_place place;
	bool one_by_one; /* see struct ingest_points */
	struct slice source;
};

/* Adds those whose level takes them; the others are refused. */
void raw_retention_add(struct request *q, const struct known *known);
/* Appends them at once, each to its level: all are taken. */
void raw_retention_append(struct request *q, const struct known *known);

/* Values whose series are not known: those that their level accepts go into the round. The others
 * are refused, and their series not registered. */
void raw_retention_add_unknown(struct request *q, const struct unknown *u);

#endif
