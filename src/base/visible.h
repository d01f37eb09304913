/* Text of elsewhere where people read it: on a terminal, in the log, on a page. Names, descriptions
 * and sentences are what others chose, and what a terminal would take for a command, or that would
 * turn text around, is to be seen and not obeyed.
 *
 * Control characters (C0, DEL, C1), bytes that are no UTF-8, and the characters that end lines or
 * turn the direction of writing become `\n`, `\x1b`, `\u202e`; all else stays as it is. */
#ifndef BASE_VISIBLE_H
#define BASE_VISIBLE_H

#include "base/buf.h"

enum { VISIBLE_MAX_BYTES = 8 };

/* C1; ends of lines; marks, embeddings, overrides and isolates of direction: what of two and more
 * bytes is not shown as it is. */
static inline bool visible_is_command(uint32_t code)
{
	return (0x80 <= code && code <= 0x9f) || code == 0x61c || code == 0x200e ||
	       code == 0x200f || (0x2028 <= code && code <= 0x202e) ||
	       (0x2066 <= code && code <= 0x2069);
}

/* The first character of `text`, which is not empty, as it is to be seen: how many bytes stand at
 * `to`, and in *taken how many were taken. */
size_t visible_put(char to[VISIBLE_MAX_BYTES], struct slice text, size_t *taken);

/* Appends one field of a table or line: nothing of it ends the line. */
void visible_append(struct buf *out, struct slice text);

#endif
