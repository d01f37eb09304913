/* Names in paths of /v2, as document E's service writes them: every byte but letters, digits, `_`,
 * `.` and `-` becomes `@` and two hex digits: `xe-0/2/0` is `xe-0@2F2@2F0`. A capital Y becomes
 * `@59`, by a slip of that service which clients have stored. Pure. */
#ifndef API_ESMOND_NAME_H
#define API_ESMOND_NAME_H

#include "base/base.h"

struct arena;
struct buf;

void v2_name_encode(struct slice name, struct buf *out);

/* The inverse; hex digits in either case, and what needed no encoding may have been. An `@` without
 * two hex digits stands for itself. ERR_LIMIT: the arena is full. */
int v2_name_decode(struct slice text, struct arena *arena, struct slice *name) MUST_CHECK;

#endif
