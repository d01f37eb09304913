/* Asking servers of others for what is behind a URL, again and again, on a connection that is kept.
 *
 * Blocking; one thread at a time. */
#ifndef AGENT_PULL_H
#define AGENT_PULL_H

#include <stdatomic.h>

#include "base/buf.h"

enum { PULL_BODY_MAX_BYTES = 1 << 20 };

struct pull;

/* http:// or https://; what is asked for ends within the timeout, and when `cancelled` is set. */
struct pull *pull_new(struct slice url, int64_t timeout_ms, const atomic_bool *cancelled);
void pull_free(struct pull *pull);

/* The body of an answer with a status of 200 to 299, valid until the next call. Else a sentence.
 * ERR_LIMIT: the body is longer than PULL_BODY_MAX_BYTES; ERR_CANCELLED. Redirections are not
 * followed. */
int pull_get(struct pull *pull, struct slice *body, struct errbuf *e) MUST_CHECK;

#endif
