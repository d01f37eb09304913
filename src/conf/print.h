/* Words of help and manual page, for whoever makes more of them. */
#ifndef CONF_PRINT_H
#define CONF_PRINT_H

#include "base/base.h"

struct buf;

/* Words of `text` in lines of at most 92 columns, each behind `indent` blanks; `column` of the
 * first line are filled already. */
void conf_print_wrapped(struct slice text, int column, int indent, struct buf *out);
/* Roff takes a leading dot or quote for a request, and a backslash for an escape. */
void conf_print_roff(struct slice text, struct buf *out);

#endif
