/* What the requests of a read point to: names, keys, columns, handles. Whoever asks may go away
 * while the engine reads, so all of it is copied into the read's arena when it is submitted.
 * Private to store/. */
#ifndef STORE_READ_OWN_H
#define STORE_READ_OWN_H

#include "store/store.h"

/* Copies what is not the read's yet: a request that is submitted for its next slice is the one that
 * began. ERR_LIMIT with a sentence: the read's arena is full. */
int read_own(struct store_read *read) MUST_CHECK;

#endif
