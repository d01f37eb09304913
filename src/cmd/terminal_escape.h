/* What the client commands print of elsewhere (base/visible.h). */
#ifndef CMD_TERMINAL_ESCAPE_H
#define CMD_TERMINAL_ESCAPE_H

#include "base/visible.h"

/* Text that has lines and tabs of its own, in pieces. Zeroed at the beginning. */
struct terminal_lines {
	size_t held; /* bytes of which the next piece tells what they are */
	char rest[4];
};
void terminal_append_lines(struct terminal_lines *lines, struct buf *out, struct slice piece);
/* After the last piece. */
void terminal_end_lines(struct terminal_lines *lines, struct buf *out);

/* A piece to standard output: visible if that is a terminal, else as it is. False: it did not go
 * out. An empty piece with `last` ends it. */
bool terminal_print(struct terminal_lines *lines, struct slice piece, bool last);
bool terminal_is_output(void);

/* A sentence and the end of its line to standard error: visible, and behind what is printed. */
void terminal_complain(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif
