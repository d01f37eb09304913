/* Whether what is stored of rows and boards fits together: keys, times and hashes of texts and
 * notes, the sigs of metrics and sources, and documents. */
#ifndef BOARD_VERIFY_H
#define BOARD_VERIFY_H

#include "store/tables_verify.h"

/* ERR_CANCELLED; or the store's error. What is damaged is told, and is no error. */
int board_verify(struct tables_verify *v) MUST_CHECK;

#endif
