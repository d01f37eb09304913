/* Private to ingest/: marks for roll-ups, made of a round that has been opened (rollup/track.h).
 *
 * A point of a known series whose slot this process has not marked is taken for unknown: so it
 * goes through a round, where the names of its series are at hand. */
#ifndef INGEST_MARKS_H
#define INGEST_MARKS_H

#include "ingest/round.h"

/* Finds out what there is to mark. ERR_LIMIT: the round's memory is full. */
int marks_collect(struct round *round) MUST_CHECK;
/* Adds it to the write, from *at on. ERR_LIMIT: the write is full; go on with another. */
int marks_add(struct round *round, struct store_write *write, size_t *at) MUST_CHECK;
/* Once that is durable. */
void marks_remember(const struct round *round);

#endif
