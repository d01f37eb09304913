/* What the client commands print of elsewhere (base/visible.h). */
#ifndef CMD_VISIBLE_H
#define CMD_VISIBLE_H

#include "base/visible.h"

/* Text that has lines and tabs of its own, in pieces. Zeroed at the beginning. */
struct visible_lines {
	size_t held; /* bytes of which the next piece tells what they are */
	char rest[4];
};
void visible_append_lines(struct visible_lines *lines, struct buf *out, struct slice piece);
/* After the last piece. */
void visible_end_lines(struct visible_lines *lines, struct buf *out);

/* A piece to standard output: visible if that is a terminal, else as it is. False: it did not go
 * out. An empty piece with `last` ends it. */
bool visible_print(struct visible_lines *lines, struct slice piece, bool last);
bool visible_is_needed(void);

/* A sentence and the end of its line to standard error: visible, and behind what is printed. */
void visible_complain(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif
