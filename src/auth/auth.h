/* Who may ask what of this server.
 *
 * Credentials lie in the table `credentials` and, all of them, in memory: no request waits for the
 * store. They are changed by whoever may wait; each change is durable, and holds, when it returns.
 *
 * A request shows a token (token.h) in its header Authorization, as `Bearer`, `Token`, or
 * `ApiKey NAME:TOKEN`, or as the password of `Basic`, or to InfluxDB's routes as the parameter `p`.
 * Its route says what role it needs, and whose data it reaches (struct http_route). While there is
 * no credential, clients of this machine may do everything; from the first one on those without a
 * credential may do what `anonymous` says, but root and the server's own user, on the socket for
 * commands (http_path_use), everything.
 *
 * A caller who does not have all tenants has one for each request: the one that the request names,
 * if the caller has it, else the caller's first (http_request.tenant). So no handler, and no cache,
 * is asked for another.
 *
 * Threads: the guard is the loop's; all else may be called on any. */
#ifndef AUTH_AUTH_H
#define AUTH_AUTH_H

#include "auth/token.h"
#include "base/clock.h"
#include "base/exec.h"
#include "store/store.h"

enum { AUTH_CREDENTIALS_MAX = 10000 };

struct auth;

struct auth_options {
	struct store *store;
	struct clock *clock;
	struct slice polled_tenant; /* that of REACH_SNMP */
	bool anonymous_reads;       /* who shows nothing may read all, once there are credentials */
};

struct auth *auth_new(const struct auth_options *options);
/* No request may have a caller any more. */
void auth_free(struct auth *auth);
struct http_guard *auth_guard(struct auth *auth);

/* Reads all credentials; those that cannot be read are named in the log, and let nobody in. The
 * store's error with a sentence. */
int auth_load(struct auth *auth, struct task_queue *queue, struct errbuf *e) MUST_CHECK;
bool auth_is_open(struct auth *auth); /* there are no credentials */

/* A token for what runs within this process and asks by HTTP; nobody else knows it, and it is
 * stored nowhere. It may do what `roles` says, of all tenants. Once. */
void auth_make_own_token(struct auth *auth, unsigned roles, char text[TOKEN_TEXT_BYTES + 1]);

/* Makes a credential, and the token that only its holder has from now on. The first one must be
 * able to make others, since nobody else could. ERR_INVALID; ERR_EXISTS: the name is taken;
 * ERR_LIMIT; the store's error; with a sentence. One reference. */
int auth_create(struct auth *auth, struct task_queue *queue, struct slice name,
		const struct credential_wish *wish, char text[TOKEN_TEXT_BYTES + 1],
		struct credential **made, struct errbuf *e) MUST_CHECK;
/* ERR_NOT_FOUND, and as auth_create(). ERR_INVALID: nobody could make others any more. */
int auth_change(struct auth *auth, struct task_queue *queue, struct slice name,
		const struct credential_wish *wish, struct credential **made,
		struct errbuf *e) MUST_CHECK;
int auth_revoke(struct auth *auth, struct task_queue *queue, struct slice name,
		struct errbuf *e) MUST_CHECK;
/* All, by name; *count references, in memory to be freed by auth_list_free(). */
struct credential **auth_list(struct auth *auth, size_t *count);
void auth_list_free(struct credential **list, size_t count);

#endif
