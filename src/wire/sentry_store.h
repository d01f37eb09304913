/* The body of /store/, the door of Sentry's old clients: one event in JSON, as it is or packed.
 * What it is its first byte says, since no header of these clients does:
 *
 *     x    zlib (RFC 1950: a window of 32 KB, which all clients have) of JSON
 *     e    base64 (RFC 4648), with line breaks or without, of JSON or of zlib of JSON: both `{` and
 *          `x` are `e` there, and no JSON begins so
 *     else JSON
 *
 * Bytes in, bytes out: no I/O, no globals. Threads: any. */
#ifndef WIRE_SENTRY_STORE_H
#define WIRE_SENTRY_STORE_H

#include "base/buf.h"

struct sentry_store {
	struct slice event;           /* JSON, or what else was sent: in the body, or below */
	struct buf decoded, unpacked; /* of base64, of zlib */
};

/* Each step gives at most max_bytes. The body must outlive it. */
void sentry_store_init(struct sentry_store *store, size_t max_bytes);
void sentry_store_release(struct sentry_store *store);

/* Once for each store. ERR_INVALID: cut or damaged, ERR_LIMIT: too large; both with a sentence. */
int sentry_store_unpack(struct sentry_store *store, struct slice body, struct errbuf *e) MUST_CHECK;

#endif
