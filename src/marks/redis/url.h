/* Where a Redis is: `redis://[user@]host[:port][/database]`, as redis-cli -u takes it (the scheme
 * `redis` of the IANA registry), but without the password that may stand there: options are seen by
 * others. */
#ifndef MARKS_REDIS_URL_H
#define MARKS_REDIS_URL_H

#include "base/base.h"

enum { REDIS_URL_PART_MAX_BYTES = 255 };

struct redis_url {
	char host[REDIS_URL_PART_MAX_BYTES + 1];
	char user[REDIS_URL_PART_MAX_BYTES + 1];     /* empty: the default one */
	char password[REDIS_URL_PART_MAX_BYTES + 1]; /* of no URL; empty: none is asked for */
	int port, database;
};

bool redis_url_is(struct slice text); /* by its scheme */
/* ERR_INVALID with a sentence, in which nothing of a password stands. */
int redis_url_parse(struct slice text, struct redis_url *url, struct errbuf *e) MUST_CHECK;

#endif
