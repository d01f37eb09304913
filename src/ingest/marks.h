/* Private to ingest/: marks for roll-ups, made of a round that has been opened (marks/marks.h).
 *
 * A point of a known series whose slot this process has not marked is taken for unknown: so it
 * goes through a round, where the names of its series are at hand. */
#ifndef INGEST_MARKS_H
#define INGEST_MARKS_H

#include "ingest/resolving.h"

/* Finds out what there is to mark. ERR_LIMIT: the round's memory is full. */
int ingest_marks_collect(struct resolving *resolving) MUST_CHECK;
/* Adds it to the write, from *at on. ERR_LIMIT: the write is full; go on with another. Nothing is
 * added where the track has another place for marks: see ingest_marks_begin. */
int ingest_marks_add(struct resolving *resolving, struct store_write *write, size_t *at) MUST_CHECK;
/* Whether the rounds of a flight have something to mark elsewhere. */
bool ingest_marks_wait(const struct flight *flight);
/* Marks it; `done` follows with the flight as its owner, never from within, or an error is
 * returned. */
int ingest_marks_begin(struct flight *flight, marks_marking_done *done) MUST_CHECK;
/* When the flight is over. */
void ingest_marks_end(struct flight *flight);
/* Once that is durable. */
void ingest_marks_remember(const struct resolving *resolving);

#endif
