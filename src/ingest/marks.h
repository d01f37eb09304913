/* Private to ingest/: makes the marks for roll-ups (marks/marks.h) of a round that has been opened.
 *
 * A point of a known series whose slot this process has not marked is treated as unknown: it goes
 * through a round, which has the names of the series. */
#ifndef INGEST_MARKS_H
#define INGEST_MARKS_H

#include "ingest/resolving.h"

/* Finds out what there is to mark. ERR_LIMIT: the round's memory is full. */
int ingest_marks_collect(struct resolving *resolving) MUST_CHECK;
/* Adds the marks to the write, from *at on. ERR_LIMIT: the write is full, add the rest to another.
 * Adds nothing where marks are not kept in the store: see ingest_marks_begin. */
int ingest_marks_add(struct resolving *resolving, struct store_write *write, size_t *at) MUST_CHECK;
/* Whether the write's rounds have marks that are not kept in the store. */
bool ingest_marks_wait(const struct pending_write *pending);
/* Makes these marks; `done` follows with the pending write as its owner, never from within, or an
 * error is returned. */
int ingest_marks_begin(struct pending_write *pending,
		       void (*done)(void *owner, int err)) MUST_CHECK;
/* The round's marks are durable. */
void ingest_marks_remember(const struct resolving *resolving);

#endif
