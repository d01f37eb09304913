/* bzip2: packed bytes in, bytes out, all at once. libbz2 is known to bunzip2.c alone.
 *
 * Bytes in, bytes out: no I/O, no globals. While it runs it has up to 4 MB of its own. A byte out
 * costs some 30 ns, so it is for threads that may take their time. Threads: any. */
#ifndef WIRE_BUNZIP2_H
#define WIRE_BUNZIP2_H

#include "base/buf.h"

enum { BUNZIP2_STREAMS_MAX = 1000 }; /* each costs some time, however short it is */

/* Whether the bytes begin as bzip2 does. */
static inline bool bunzip2_begins(struct slice packed)
{
	return packed.len >= 3 && memcmp(packed.data, "BZh", 3) == 0;
}

/* Appends at most max_bytes to `out`. Streams may stand one after the other, as bzip2 allows; what
 * follows the last one and does not begin as one is not looked at, as bzip2 does. ERR_INVALID: cut,
 * damaged or not bzip2 at all; ERR_LIMIT: more than max_bytes (whatever was read is in `out`), more
 * than `out` may hold, or too many streams. Both with a sentence. */
int bunzip2_whole(struct slice packed, size_t max_bytes, struct buf *out,
		  struct errbuf *e) MUST_CHECK;

#endif
