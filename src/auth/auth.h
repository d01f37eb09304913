/* Who may ask what of this server.
 *
 * Credentials lie in the table `credentials` and, all of them, in memory: no request waits for the
 * store. They are changed by whoever may wait; each change is durable, and holds, when it returns.
 *
 * A request shows a token (token.h) in its header Authorization, as `Bearer`, `Token`, or
 * `ApiKey NAME:TOKEN`, or as the password of `Basic`, or to InfluxDB's routes as the parameter `p`;
 * or the name of a user and its password, by `Basic`, `Token` or these parameters; or, if it has
 * none of these, a session (session.h) in a cookie. A password is compared on another thread
 * (login.h), meanwhile the request is parked.
 *
 * With a cookie alone whatever is no GET and no HEAD needs a browser's word that it comes from our
 * own page (http_request.own_page): a cookie goes along by itself.
 *
 * The route says what role it needs, and whose data it reaches (struct http_route). While there is
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
	/* In which a trusted proxy names the user that it knows; empty, or NULL data: in none. */
	struct slice proxy_user_header;
	struct executor *executor; /* of the guard's thread; NULL: passwords let nobody in */
};

struct auth *auth_new(const struct auth_options *options);
/* No request may have a caller any more, or wait. */
void auth_free(struct auth *auth);
struct http_guard *auth_guard(struct auth *auth);

/* Reads all credentials; those that cannot be read are named in the log, and let nobody in. Makes
 * the key of sessions where there is none, as auth_create() does. The store's error with a
 * sentence. */
int auth_load(struct auth *auth, struct task_queue *queue, struct errbuf *e) MUST_CHECK;
bool auth_is_open(struct auth *auth); /* there are no credentials */

/* A token for what runs within this process and asks by HTTP; nobody else knows it, and it is
 * stored nowhere. It may do what `roles` says, of all tenants. Once. */
void auth_make_own_token(struct auth *auth, unsigned roles, char text[TOKEN_TEXT_BYTES + 1]);

/* Makes a credential, and the token that only its holder has from now on; for a user `text` is
 * empty. The first one must be able to make others, since nobody else could. ERR_INVALID;
 * ERR_EXISTS: the name is taken; ERR_LIMIT: nothing is stored; the store's error; with a sentence.
 * One reference. */
int auth_create(struct auth *auth, struct task_queue *queue, struct slice name,
		const struct credential_wish *wish, char text[TOKEN_TEXT_BYTES + 1],
		struct credential **made, struct errbuf *e) MUST_CHECK;
/* ERR_NOT_FOUND, and as auth_create(). ERR_INVALID: nobody could make others any more. One that
 * cannot be read can be revoked only. */
int auth_change(struct auth *auth, struct task_queue *queue, struct slice name,
		const struct credential_wish *wish, struct credential **made,
		struct errbuf *e) MUST_CHECK;
int auth_revoke(struct auth *auth, struct task_queue *queue, struct slice name,
		struct errbuf *e) MUST_CHECK;
/* All, by name; *count references, in memory to be freed by auth_list_free(). */
struct credential **auth_list(struct auth *auth, size_t *count);
void auth_list_free(struct credential **list, size_t count);

/* ---- Sessions -------------------------------------------------------------------------------- */

/* Ends all by a new key. The store's error with a sentence. */
int auth_reset_sessions(struct auth *auth, struct task_queue *queue, struct errbuf *e) MUST_CHECK;
/* Has the answer of a request set the cookie of a new session; take it away. The guard's thread. */
void auth_begin_session(struct auth *auth, struct http_request *request,
			const struct credential *credential);
void auth_drop_session(struct http_request *request);

/* Who shows a token, or a name and a password (login.h); name.data NULL: none is shown. The guard's
 * thread, as all here. */
struct login;
void auth_log_in(struct auth *auth, struct slice name, struct slice secret,
		 const struct loop_address *from, struct login *login);
/* When its outcome is there: 0 and a reference; or the status of the answer, with a sentence and,
 * where that helps, Retry-After. Counts and logs what is refused; `name` is what was shown. */
int auth_take_login(struct auth *auth, struct http_request *request, struct slice name,
		    struct login *login, struct credential **credential,
		    struct errbuf *why) MUST_CHECK;

/* For a body that names a tenant, which the guard has not seen. ERR_DENIED: the caller does not
 * have it, with the sentence that the guard has for that; it is counted and logged. The guard's
 * thread. */
int auth_check_tenant(struct auth *auth, const struct http_request *request, struct slice tenant,
		      struct errbuf *why) MUST_CHECK;

/* Whether the caller of a request that has been let in would be let in now as the same: its
 * credential has not expired, and is neither changed nor revoked. The guard's thread. */
bool auth_still_may(struct auth *auth, const struct http_request *request) MUST_CHECK;

/* NULL: the caller has none. */
const struct credential *auth_credential(const struct caller *caller);

#endif
