/* Private: when rates are made of the raw data that a worker has stored, a few sources at a time.
 */
#ifndef PERSIST_DERIVE_H
#define PERSIST_DERIVE_H

#include "persist/layouts.h"
#include "persist/persister.h"

struct deriver;

struct deriver *deriver_new(const struct persist_base *base, struct layouts *layouts);
void deriver_free(struct deriver *deriver); /* idle */
/* Begins with the sources that are due. About once a second. */
void deriver_tick(struct deriver *deriver);
/* Begins nothing new. */
void deriver_stop(struct deriver *deriver);
bool deriver_idle(const struct deriver *deriver);

#endif
