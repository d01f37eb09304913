/* Whether what is stored of streams fits together: which streams there are, that the bytes which
 * are said to be in blocks are there, that chunks and blocks unpack, that what is known of a block
 * is what its lines say, and how far lines are read.
 *
 * A server may write meanwhile: what was removed since is no fault. */
#ifndef STREAM_VERIFY_H
#define STREAM_VERIFY_H

#include "store/tables_verify.h"

/* ERR_CANCELLED; or the store's error. What is damaged is told, and is no error. */
int stream_verify(struct tables_verify *v) MUST_CHECK;

#endif
