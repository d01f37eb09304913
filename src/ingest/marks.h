/* Private to ingest/: marks for roll-ups, made of a round that has been opened (marks/marks.h).
 *
 * A point of a known series whose slot this process has not marked is taken for unknown: so it
 * goes through a round, where the names of its series are at hand. */
#ifndef INGEST_MARKS_H
#define INGEST_MARKS_H

#include "ingest/round.h"

/* Finds out what there is to mark. ERR_LIMIT: the round's memory is full. */
int marks_collect(struct round *round) MUST_CHECK;
/* Adds it to the write, from *at on. ERR_LIMIT: the write is full; go on with another. Nothing is
 * added where the track has another place for marks: see marks_begin. */
int marks_add(struct round *round, struct store_write *write, size_t *at) MUST_CHECK;
/* Whether the rounds of a flight have something to mark elsewhere. */
bool marks_wait(const struct flight *flight);
/* Marks it; `done` follows with the flight as its owner, never from within, or an error is
 * returned. */
int marks_begin(struct flight *flight, marks_marking_done *done) MUST_CHECK;
/* When the flight is over. */
void marks_end(struct flight *flight);
/* Once that is durable. */
void marks_remember(const struct round *round);

#endif
