/* Passwords of users: what may be one, and what it is known by, which is yescrypt's hash of it
 * (crypt(5)). A hash takes tens of milliseconds and some MiB of memory by design: never on a loop's
 * thread. Pure, but for the random bytes of a salt. */
#ifndef AUTH_PASSWORD_H
#define AUTH_PASSWORD_H

#include "base/base.h"

enum {
	PASSWORD_MIN_BYTES = 8,
	PASSWORD_MAX_BYTES = 512,
	PASSWORD_HASH_BYTES = 384, /* with its zero */
};

/* Whether a user may have it; ERR_INVALID with a sentence, which does not contain it. */
int password_check(struct slice password, struct errbuf *e) MUST_CHECK;
/* With a new salt. -ENOMEM. */
int password_hash(struct slice password, char hash[PASSWORD_HASH_BYTES]) MUST_CHECK;
/* Something that takes as long to be compared with as a hash, and that no password has. */
void password_hash_of_nobody(char hash[PASSWORD_HASH_BYTES]);
/* By its form. */
bool password_is_hash(struct slice text) MUST_CHECK;
/* Whether it is the one that the hash is of. -ENOMEM. Any thread. */
int password_compare(struct slice password, const char *hash, bool *is) MUST_CHECK;

#endif
