/* The credentials in memory (auth.c), and who asks (guard.c). */
#ifndef AUTH_AUTH_PRIVATE_H
#define AUTH_AUTH_PRIVATE_H

#include <pthread.h>

#include "auth/auth.h"
#include "auth/login.h"
#include "auth/session.h"
#include "base/log.h"

struct auth {
	struct http_guard guard;
	struct auth_options options;
	/* Lines of refused requests, the loop's: of strangers, who may cause any number of them,
	 * and of known callers, whose lines must not drown in those. */
	struct log_rate unknown, refusals;
	struct credential *own; /* of this process; NULL: none was made */
	struct logins *logins;  /* the loop's; NULL: nobody has a password here */

	pthread_mutex_t changing;     /* held by who changes them, before `lock`; guards: */
	uint64_t session_key_version; /* of its cell; 0: there is none */
	pthread_mutex_t lock;         /* guards what follows */
	struct credential **list;     /* by id ascending; the references are this one's */
	struct credential **names;    /* the same, by name */
	size_t count, room, names_room;
	bool some_unread; /* there are credentials that could not be read */
	uint8_t session_key[SESSION_KEY_BYTES];
};

/* With a reference of the caller's. NULL: there is none. */
struct credential *auth_find_id(struct auth *auth, uint64_t id);
/* NULL as well where it has changed since. */
struct credential *auth_find_generation(struct auth *auth, uint64_t id, uint64_t generation);
struct credential *auth_find_user(struct auth *auth, struct slice name);
void auth_session_key(struct auth *auth, uint8_t key[SESSION_KEY_BYTES]);

/* cookie.c. The session of a request: 0 and a reference; ERR_NOT_FOUND: it has no cookie of ours;
 * ERR_INVALID: the cookie is none, or its session is over. Renews it. */
int auth_take_session(struct auth *auth, struct http_request *request,
		      struct credential **credential) MUST_CHECK;

void auth_guard_init(struct http_guard *guard);

#endif
