/* Text of elsewhere for a terminal: names, descriptions and sentences are what others chose, and
 * what a terminal would take for a command, or that would turn text around, is to be seen and not
 * obeyed.
 *
 * Control characters (C0, DEL, C1), bytes that are no UTF-8, and the characters that end lines or
 * turn the direction of writing become `\n`, `\x1b`, `\u202e`; all else stays as it is. */
#ifndef CMD_VISIBLE_H
#define CMD_VISIBLE_H

#include "base/buf.h"

/* Appends one field of a table or line: nothing of it ends the line. */
void visible_append(struct buf *out, struct slice text);

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

#endif
