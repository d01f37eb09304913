/* Where there is something next: the time of the first sample, or row, that any of some series has
 * in a time. So stretches without data cost nothing.
 *
 * The walk is the caller's, and stays for as long as this does. The thread of its executor. */
#ifndef ROLLUP_NEXT_SAMPLE_H
#define ROLLUP_NEXT_SAMPLE_H

#include "rollup/series_walk.h"

struct next_sample;

/* `err`: of the store. `ts_ms`: INT64_MAX when there is none. */
typedef void next_sample_done(void *owner, int err, int64_t ts_ms);

struct next_sample *next_sample_new(struct series_walk *walk, next_sample_done *done, void *owner);
/* Not while it looks. */
void next_sample_free(struct next_sample *next);
/* Looks in a table from start_ms to before end_ms, at those points that have a field of `fields`.
 * The handles stay the caller's, until `done`. Where the read cannot even be submitted, the walk is
 * over instead, from within. */
void next_sample_find(struct next_sample *next, const struct store_range *where);

#endif
