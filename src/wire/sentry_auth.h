/* How Sentry's clients say who they are (develop.sentry.dev/sdk/foundations/transport/
 * authentication/): by a key that is public by design, in one of
 *
 *     X-Sentry-Auth: Sentry sentry_version=7, sentry_key=a94ae32be2584e0bbd7a4cbb95971fee
 *     ?sentry_version=7&sentry_key=a94ae32be2584e0bbd7a4cbb95971fee
 *     {"dsn":"http://a94ae32be2584e0bbd7a4cbb95971fee@host:port/1"}   headers of an envelope
 *
 * Pure; texts point into what is read. */
#ifndef WIRE_SENTRY_AUTH_H
#define WIRE_SENTRY_AUTH_H

#include "base/base.h"

/* The key of a header; NULL data: it has none. Its items come in any order. */
struct slice sentry_auth_key(struct slice header);

struct sentry_dsn {
	struct slice key;
	uint64_t project;
};

/* SCHEME://KEY[:SECRET]@HOST[:PORT][/PATH]/NUMBER. False: it is none. */
bool sentry_dsn_parse(struct slice text, struct sentry_dsn *dsn) MUST_CHECK;

#endif
