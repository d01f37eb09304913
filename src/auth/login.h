/* Names with passwords: whether somebody has both.
 *
 * A password is compared on a thread of its own, in the order in which they come, each when it is
 * known what became of those before it; LOGINS_WAITING_MAX wait at most. Who shows the same as one
 * that is being compared waits for the same comparison. A good one is remembered for a while, by a
 * MAC with a key of this process, for its credential as it is: then it is known at once, and no
 * throttle (throttle.h) holds it up. A name that nobody has is compared with a hash that nobody
 * has, which takes as long.
 *
 * One thread, that of the executor. */
#ifndef AUTH_LOGIN_H
#define AUTH_LOGIN_H

#include "auth/auth.h"

enum {
	LOGINS_WAITING_MAX = 16,
	LOGINS_REMEMBERED = 1024,
	LOGIN_REMEMBER_MS = 10 * 60 * 1000,
};

enum login_outcome {
	LOGIN_WAITS,
	LOGIN_GOOD,
	LOGIN_WRONG,
	LOGIN_HELD_UP, /* by the throttle */
	LOGIN_BUSY,    /* too many wait */
	LOGIN_FAILED,  /* it cannot be compared for want of memory */
};

struct logins;
struct login_check;

/* Somebody who shows a name and a password. */
struct login {
	void (*done)(struct login *login); /* the outcome is there */
	enum login_outcome outcome;
	struct credential *credential; /* LOGIN_GOOD: a reference; it may have expired */
	int64_t again_ms;              /* LOGIN_HELD_UP, LOGIN_BUSY: when to try again */

	/* Private. */
	struct login_check *check; /* LOGIN_WAITS */
	struct login *next;
};

struct logins *logins_new(struct auth *auth, struct executor *executor);
/* Nobody waits any more. Comparisons that are under way end, and are of no consequence. */
void logins_free(struct logins *logins);
/* Sets the outcome. LOGIN_WAITS: `done` comes later, unless login_end() is called before. */
void login_begin(struct logins *logins, struct slice name, struct slice password,
		 const struct loop_address *from, struct login *login);
/* From a LOGIN_WAITS that was begun to where it is waited for. */
void login_move(struct login *from, struct login *to);
/* Gives a credential back that is not NULL, and waits no more. */
void login_end(struct login *login);

#endif
