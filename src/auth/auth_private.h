/* The credentials in memory (auth.c), and who asks (guard.c). */
#ifndef AUTH_AUTH_PRIVATE_H
#define AUTH_AUTH_PRIVATE_H

#include <pthread.h>

#include "auth/auth.h"
#include "base/log.h"

struct auth {
	struct http_guard guard;
	struct auth_options options;
	struct log_rate refusals; /* the loop's */
	struct credential *own;   /* of this process; NULL: none was made */

	pthread_mutex_t changing; /* held by who changes them, before `lock` */
	pthread_mutex_t lock;     /* guards what follows */
	struct credential **list; /* by id ascending */
	size_t count, room;
	bool some_unread; /* there are credentials that could not be read */
};

/* With a reference of the caller's. NULL: there is none. */
struct credential *auth_find_id(struct auth *auth, uint64_t id);
void auth_guard_init(struct http_guard *guard);

#endif
