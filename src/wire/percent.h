/* Percent-encoding, as URIs have it (RFC 3986, 2.1). Pure. */
#ifndef WIRE_PERCENT_H
#define WIRE_PERCENT_H

#include "base/buf.h"
#include "base/mem.h"

/* Decodes %XX, and `+` as a blank if `plus`. ERR_INVALID for a % without two hex digits and for an
 * encoded NUL, ERR_LIMIT when the arena is full. What has nothing to decode stays where it is. */
int percent_decode(struct slice text, bool plus, struct arena *arena, struct slice *out) MUST_CHECK;

/* Appends the text, all but A-Z a-z 0-9 - . _ ~ as %XX. */
void percent_encode(struct slice text, struct buf *out);

#endif
