/* How often passwords may be guessed. Five wrong ones of an account, or from an address, and
 * neither may try another for some time, which doubles with each further one; a good one, or an
 * hour without a wrong one, and it begins anew. An account has a name that somebody says, whether
 * it is there or not.
 *
 * Whoever guesses for an account is not to shut its owner out: an address from which the account
 * has shown its password since the start is not held up by what others do in its name, but only by
 * what comes from itself.
 *
 * Both tables have an end; the oldest rows go. Tokens need none of this: nobody guesses 256 bits.
 * One thread. */
#ifndef AUTH_THROTTLE_H
#define AUTH_THROTTLE_H

#include "loop/loop.h"

enum {
	THROTTLE_WRONG_MAX = 5,
	THROTTLE_ROWS = 1024,
	THROTTLE_FIRST_MS = 10 * 1000,
	THROTTLE_MOST_MS = 15 * 60 * 1000,
	THROTTLE_FORGET_MS = 60 * 60 * 1000,
};

struct throttle_row {
	uint64_t of; /* hash; 0: the row is free */
	unsigned wrong;
	int64_t until_ms, seen_ms;
};

struct throttle {
	uint64_t seed;
	struct throttle_row wrong[THROTTLE_ROWS]; /* accounts and addresses */
	struct throttle_row known[THROTTLE_ROWS]; /* accounts with addresses */
};

void throttle_init(struct throttle *throttle);
/* For how long a password may not be tried; 0: it may. Times are monotonic. */
int64_t throttle_held_up_ms(struct throttle *throttle, struct slice account,
			    const struct loop_address *from, int64_t now_ms) MUST_CHECK;
/* The same; if it may, it is tried, and counts as wrong until throttle_good() is called. */
int64_t throttle_try(struct throttle *throttle, struct slice account,
		     const struct loop_address *from, int64_t now_ms) MUST_CHECK;
void throttle_good(struct throttle *throttle, struct slice account, const struct loop_address *from,
		   int64_t now_ms);

#endif
