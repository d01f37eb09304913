/* Who asks: the credential that a request shows, and whether its route and its tenant are among
 * what that one may have. */
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <strings.h>
#include <unistd.h>

#include "auth/auth_private.h"
#include "base/stats.h"

enum {
	GUARD_BASIC_MAX_BYTES = 1024,
	GUARD_REASON_BYTES = 300,
	GUARD_NAME_BYTES = CREDENTIAL_NAME_MAX_BYTES + 40
};

#define GUARD_BIT(role) (1u << ROLE_##role)

/* Those without a credential. */
static const struct caller guard_nobody = {.name = "nobody"};
static const struct caller guard_local = {
	.name = "this machine", .roles = GUARD_BIT(ADMIN), .all_tenants = true};
static const struct caller guard_owner = {
	.name = "admin of this machine", .roles = GUARD_BIT(ADMIN), .all_tenants = true};
static const struct caller guard_anonymous = {
	.name = "anonymous", .roles = GUARD_BIT(READ), .all_tenants = true};

/* ---- What is shown --------------------------------------------------------------------------- */

struct guard_shown {
	struct slice name; /* NULL data: none */
	struct slice
		secret; /* a token, or the password of that name; NULL data: nothing is shown */
	bool of_name;   /* a token counts only if its credential has that name */
	char decoded[GUARD_BASIC_MAX_BYTES]; /* of Basic */
};

/* Behind a colon, if there is one, and in front of it the name. */
static void guard_split(struct slice text, struct guard_shown *shown)
{
	const char *colon = text.len ? memchr(text.data, ':', text.len) : NULL;
	shown->secret = text;
	if (!colon)
		return;
	shown->name = (struct slice){text.data, (size_t)(colon - text.data)};
	shown->secret = (struct slice){colon + 1, text.len - shown->name.len - 1};
}

/* RFC 7617. */
static void guard_read_basic(struct slice text, struct guard_shown *shown)
{
	shown->secret = SLICE("");
	if (text.len % 4 || text.len / 4 * 3 > sizeof(shown->decoded))
		return;
	int len = EVP_DecodeBlock((unsigned char *)shown->decoded, (const unsigned char *)text.data,
				  (int)text.len);
	if (len < 0)
		return;
	for (size_t i = text.len; i > 0 && text.data[i - 1] == '='; i--)
		len--;
	if (len > 0)
		guard_split((struct slice){shown->decoded, (size_t)len}, shown);
}

/* `Bearer TOKEN` (RFC 6750), `Token TOKEN` and `Token USER:SECRET` (InfluxDB, esmond), `ApiKey
 * NAME:TOKEN` (esmond), `Basic`. */
static void guard_read_header(struct slice header, struct guard_shown *shown)
{
	static const char *const schemes[] = {"bearer", "token", "apikey", "basic"};
	const char *blank = header.len ? memchr(header.data, ' ', header.len) : NULL;
	size_t scheme_len = blank ? (size_t)(blank - header.data) : header.len, scheme = 0;
	struct slice rest = {header.data + scheme_len, header.len - scheme_len};
	while (rest.len && *rest.data == ' ')
		rest = (struct slice){rest.data + 1, rest.len - 1};
	shown->secret = SLICE(""); /* what is none of these is wrong */
	while (scheme < ARRAY_LEN(schemes) &&
	       (strlen(schemes[scheme]) != scheme_len ||
		strncasecmp(schemes[scheme], header.data, scheme_len) != 0))
		scheme++;
	switch (scheme) {
	case 0:
		shown->secret = rest;
		break;
	case 1:
		guard_split(rest, shown);
		break;
	case 2:
		guard_split(rest, shown);
		shown->of_name = true;
		break;
	case 3:
		guard_read_basic(rest, shown);
		break;
	default:
		break;
	}
}

static void guard_read_shown(const struct http_request *request, struct guard_shown *shown)
{
	struct slice header = http_header(request, "Authorization");
	shown->name = shown->secret = (struct slice){NULL, 0};
	shown->of_name = false;
	if (header.data) {
		guard_read_header(header, shown);
	} else if (request->route->user_params) {
		shown->name = http_param(request, "u");
		shown->secret = http_param(request, "p");
	}
}

/* ---- Who it is ------------------------------------------------------------------------------- */

static int guard_refuse(struct auth *auth, const struct http_request *request, int status,
			enum stat_id counter, const char *reason)
{
	char from[LOOP_ADDRESS_TEXT_BYTES];
	bool known = request->caller || counter == STAT_auth_refused_expired;
	stat_add(counter, 1);
	log_rated(known ? &auth->refusals : &auth->unknown, clock_mono_ms(auth->options.clock),
		  LOG_WARN, "%s %.*s of %s is refused: %s", http_verb_text(request->verb),
		  slice_shown_len(request->path), request->path.data,
		  loop_address_text(request->peer, from), reason);
	return status;
}

/* An answer says neither whose credential it was nor why it is none. */
static int guard_refuse_unknown(struct auth *auth, const struct http_request *request,
				enum stat_id counter, const char *reason, struct errbuf *why)
{
	errbuf_set(why, ERR_INVALID,
		   "a valid credential is needed here: a token, as in the header "
		   "\"Authorization: Bearer gr_...\", or the name and the password of a user");
	return guard_refuse(auth, request, 401, counter, reason);
}

static int guard_refuse_expired(struct auth *auth, const struct http_request *request,
				const struct credential *credential, struct errbuf *why)
{
	char reason[CREDENTIAL_NAME_MAX_BYTES + 60];
	snprintf(reason, sizeof(reason), "the credential %s has expired", credential->caller.name);
	return guard_refuse_unknown(auth, request, STAT_auth_refused_expired, reason, why);
}

/* For the log: a name that nobody has may be a secret that was put in the wrong place. */
static void guard_name_user(struct auth *auth, struct slice name, char to[GUARD_NAME_BYTES])
{
	struct credential *user = auth_find_user(auth, name);
	snprintf(to, GUARD_NAME_BYTES, "%s%s", user ? "the user " : "a name that no user has",
		 user ? user->caller.name : "");
	credential_unref(user);
}

/* Says nothing of whether the name is there. */
static int guard_refuse_later(struct auth *auth, struct http_request *request, struct slice name,
			      const struct login *login, struct errbuf *why)
{
	char seconds[24], shown[GUARD_NAME_BYTES], reason[GUARD_REASON_BYTES];
	bool held_up = login->outcome == LOGIN_HELD_UP;
	snprintf(seconds, sizeof(seconds), "%" PRId64, (login->again_ms + 999) / 1000);
	http_reply_header(request, "Retry-After", seconds);
	errbuf_set(why, ERR_BUSY,
		   held_up ? "there were too many wrong passwords of this name, or from this "
			     "address: no other one is tried for %s seconds"
			   : "too many passwords wait to be compared: try again in %s seconds",
		   seconds);
	guard_name_user(auth, name, shown);
	snprintf(reason, sizeof(reason), "%s; it shows %s",
		 held_up ? "there were too many wrong passwords of its name or from its address"
			 : "too many passwords wait to be compared",
		 shown);
	return guard_refuse(auth, request, 429,
			    held_up ? STAT_auth_refused_held_up : STAT_auth_refused_busy, reason);
}

static int guard_refuse_wrong(struct auth *auth, const struct http_request *request,
			      struct slice name, struct errbuf *why)
{
	char shown[GUARD_NAME_BYTES], reason[GUARD_REASON_BYTES];
	guard_name_user(auth, name, shown);
	snprintf(reason, sizeof(reason), "no credential is known by what it shows%s%s",
		 name.data ? ": a secret, and " : "", name.data ? shown : "");
	return guard_refuse_unknown(auth, request, STAT_auth_refused_unknown, reason, why);
}

void auth_log_in(struct auth *auth, struct slice name, struct slice secret,
		 const struct loop_address *from, struct login *login)
{
	uint64_t id;
	login->check = NULL;
	login->credential = NULL;
	login->outcome = LOGIN_WRONG;
	if (token_read_id(secret, &id)) {
		login->credential = auth_find_id(auth, id);
		if (login->credential && token_is(login->credential, secret))
			login->outcome = LOGIN_GOOD;
	} else if (name.data && auth->logins) {
		login_begin(auth->logins, name, secret, from, login);
	}
}

int auth_take_login(struct auth *auth, struct http_request *request, struct slice name,
		    struct login *login, struct credential **credential, struct errbuf *why)
{
	int64_t now_ms = clock_wall_ms(auth->options.clock);
	int status = 0;
	*credential = NULL;
	switch (login->outcome) {
	case LOGIN_GOOD:
		if (credential_has_expired(login->credential, now_ms)) {
			status = guard_refuse_expired(auth, request, login->credential, why);
			break;
		}
		*credential = login->credential;
		login->credential = NULL;
		break;
	case LOGIN_HELD_UP:
	case LOGIN_BUSY:
		status = guard_refuse_later(auth, request, name, login, why);
		break;
	case LOGIN_FAILED:
		errbuf_set(why, ERR_BUSY, "there is no memory to compare a password");
		status = guard_refuse(auth, request, 503, STAT_auth_refused_busy, why->text);
		break;
	case LOGIN_WAITS:
	case LOGIN_WRONG:
		status = guard_refuse_wrong(auth, request, name, why);
		break;
	}
	login_end(login);
	return status;
}

/* A request that waits for its password to be compared; in request->waiting. */
struct guard_waiting {
	struct login login;
	struct http_request *request;
};

static void guard_waiting_done(struct login *login)
{
	http_unpark(CONTAINER_OF(login, struct guard_waiting, login)->request);
}

static void guard_gone(UNUSED struct http_guard *guard, struct http_request *request)
{
	struct guard_waiting *waiting = request->waiting;
	login_end(&waiting->login);
	mem_free(waiting);
	request->waiting = NULL;
}

static const char *const guard_kinds[] = {
	[CREDENTIAL_TOKEN] = "token", [CREDENTIAL_USER] = "password"};

/* NULL: nobody is known. Takes the reference. */
static void guard_know(struct http_request *request, const struct credential *credential,
		       const char *how)
{
	request->caller = credential ? &credential->caller : NULL;
	request->known_by = credential ? how : NULL;
}

/* The password of a request that waited has been compared. */
static int guard_take_waiting(struct auth *auth, struct http_request *request, struct errbuf *why)
{
	struct guard_waiting *waiting = request->waiting;
	struct credential *credential;
	struct guard_shown shown;
	guard_read_shown(request, &shown);
	int status = auth_take_login(auth, request, shown.name, &waiting->login, &credential, why);
	OPENSSL_cleanse(shown.decoded, sizeof(shown.decoded));
	guard_gone(&auth->guard, request);
	guard_know(request, credential, guard_kinds[credential ? credential->kind : 0]);
	return status;
}

static int guard_take_secret(struct auth *auth, struct http_request *request,
			     const struct guard_shown *shown, struct errbuf *why)
{
	struct credential *credential;
	struct login login = {.done = guard_waiting_done};
	auth_log_in(auth, shown->name, shown->secret, request->peer, &login);
	if (shown->of_name && login.outcome == LOGIN_GOOD &&
	    !slice_equal(shown->name, slice_of(login.credential->caller.name)))
		login.outcome = LOGIN_WRONG;
	if (login.outcome == LOGIN_WAITS) {
		struct guard_waiting *waiting = mem_zalloc(sizeof(*waiting));
		waiting->request = request;
		request->waiting = waiting;
		login_move(&login, &waiting->login);
		return HTTP_GUARD_WAITS;
	}
	int status = auth_take_login(auth, request, shown->name, &login, &credential, why);
	guard_know(request, credential, guard_kinds[credential ? credential->kind : 0]);
	return status;
}

static int guard_refuse_stranger(struct auth *auth, const struct http_request *request,
				 struct errbuf *why)
{
	errbuf_set(why, ERR_INVALID,
		   "a session is not enough here: nothing says that a page of this server asks");
	return guard_refuse(auth, request, 403, STAT_auth_refused_page,
			    "it has a session, and no page of this server asks");
}

/* A cookie goes along with whatever a browser is made to send: a page has to be ours. */
static int guard_take_session(struct auth *auth, struct http_request *request, struct errbuf *why)
{
	struct credential *credential;
	int err = auth_take_session(auth, request, &credential);
	if (err == ERR_INVALID) {
		auth_drop_session(request);
		return guard_refuse_unknown(auth, request, STAT_auth_refused_unknown,
					    "its session is over, or is none", why);
	}
	if (err || request->verb == VERB_GET || request->verb == VERB_HEAD || request->own_page) {
		guard_know(request, credential, "session");
		return 0;
	}
	credential_unref(credential);
	return guard_refuse_stranger(auth, request, why);
}

/* The only header of that name; ERR_NOT_FOUND: there is none; ERR_INVALID: there are more, of which
 * the client may have sent some. */
static int guard_find_proxy_user(const struct auth *auth, const struct http_request *request,
				 struct slice *name)
{
	size_t count = 0;
	if (!auth->options.proxy_user_header.len || !request->from_proxy)
		return ERR_NOT_FOUND;
	for (size_t i = 0; i < request->header_count; i++) {
		const struct http_header *header = &request->headers[i];
		if (header->name.len != auth->options.proxy_user_header.len ||
		    strncasecmp(header->name.data, auth->options.proxy_user_header.data,
				header->name.len) != 0)
			continue;
		*name = header->value;
		count++;
	}
	if (!count || (count == 1 && !name->len))
		return ERR_NOT_FOUND;
	return count == 1 ? 0 : ERR_INVALID;
}

/* Browsers show a proxy who they are with whatever they are made to send: a page has to be ours, as
 * with a session. */
static int guard_take_proxy_user(struct auth *auth, struct http_request *request, struct slice name,
				 struct errbuf *why)
{
	struct credential *user = auth_find_user(auth, name);
	char reason[CREDENTIAL_NAME_MAX_BYTES + 60];
	int status = 0;
	bool reads = request->verb == VERB_GET || request->verb == VERB_HEAD;
	if (!user) {
		snprintf(reason, sizeof(reason), "its proxy says " SHOWN ", who is no user",
			 SHOWN_OF(name));
		return guard_refuse_unknown(auth, request, STAT_auth_refused_unknown, reason, why);
	}
	if (credential_has_expired(user, clock_wall_ms(auth->options.clock)))
		status = guard_refuse_expired(auth, request, user, why);
	else if (!reads && !request->own_page)
		status = guard_refuse_stranger(auth, request, why);
	else
		guard_know(request, user, "proxy");
	if (status)
		credential_unref(user);
	return status;
}

/* Sets the caller. */
static int guard_identify(struct auth *auth, struct http_request *request, struct errbuf *why)
{
	struct guard_shown shown;
	struct slice name = {NULL, 0};
	uint64_t id;
	int status;
	if (request->waiting)
		return guard_take_waiting(auth, request, why);
	if (auth_is_open(auth) && loop_address_is_loopback(request->peer)) {
		request->caller = &guard_local;
		return 0;
	}
	guard_read_shown(request, &shown);
	/* What a browser shows the proxy may come along; a token is meant for us. */
	bool is_token = shown.secret.data && token_read_id(shown.secret, &id);
	int proxy = is_token ? ERR_NOT_FOUND : guard_find_proxy_user(auth, request, &name);
	if (proxy == ERR_INVALID)
		return guard_refuse_unknown(auth, request, STAT_auth_refused_unknown,
					    "its proxy names several users", why);
	if (!proxy) {
		OPENSSL_cleanse(shown.decoded, sizeof(shown.decoded));
		return guard_take_proxy_user(auth, request, name, why);
	}
	if (shown.secret.data) {
		status = guard_take_secret(auth, request, &shown, why);
		OPENSSL_cleanse(shown.decoded, sizeof(shown.decoded));
		return status;
	}
	/* Who may read the data's files needs nobody's leave to ask for what is in them. */
	const uid_t *uid = request->peer_uid;
	if (uid && (*uid == 0 || *uid == geteuid())) {
		request->caller = &guard_owner;
		request->known_by = "socket";
		return 0;
	}
	status = guard_take_session(auth, request, why);
	if (status || request->caller)
		return status;
	if (!auth->options.anonymous_reads)
		return guard_refuse_unknown(auth, request, STAT_auth_refused_none,
					    "it shows no credential", why);
	request->caller = &guard_anonymous;
	return 0;
}

/* ---- What that one may ------------------------------------------------------------------------
 */

static int guard_refuse_tenant(struct auth *auth, const struct http_request *request,
			       struct slice tenant, struct errbuf *why)
{
	char reason[CREDENTIAL_NAME_MAX_BYTES + 60];
	errbuf_set(why, ERR_INVALID, "this credential does not have tenant " SHOWN,
		   SHOWN_OF(tenant));
	snprintf(reason, sizeof(reason), "the credential %s does not have that tenant",
		 request->caller->name);
	return guard_refuse(auth, request, 403, STAT_auth_refused_tenant, reason);
}

int auth_check_tenant(struct auth *auth, const struct http_request *request, struct slice tenant,
		      struct errbuf *why)
{
	if (!request->caller || caller_has_tenant(request->caller, tenant))
		return 0;
	(void)guard_refuse_tenant(auth, request, tenant, why);
	return ERR_DENIED;
}

/* All that say whose data is meant must say one of the caller's. */
static int guard_choose_tenant(struct auth *auth, struct http_request *request, struct errbuf *why)
{
	const struct slice said[] = {http_param(request, "tenant"),
				     http_header(request, "X-Tenant"),
				     http_header(request, "X-Scope-OrgID")};
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		if (!said[i].data)
			continue;
		if (!caller_has_tenant(request->caller, said[i]))
			return guard_refuse_tenant(auth, request, said[i], why);
		if (!request->tenant.data)
			request->tenant = said[i];
	}
	if (!request->tenant.data)
		request->tenant = request->caller->tenants[0];
	return 0;
}

static int guard_check_reach(struct auth *auth, struct http_request *request, struct errbuf *why)
{
	if (request->caller->all_tenants)
		return 0;
	switch (request->route->reach) {
	case REACH_NOBODY:
		return 0;
	case REACH_TENANT:
		return guard_choose_tenant(auth, request, why);
	case REACH_SNMP:
		return caller_has_tenant(request->caller, auth->options.polled_tenant)
			       ? 0
			       : guard_refuse_tenant(auth, request, auth->options.polled_tenant,
						     why);
	case REACH_ALL:
		break;
	}
	errbuf_set(why, ERR_INVALID, "this needs a credential of all tenants");
	return guard_refuse(auth, request, 403, STAT_auth_refused_tenant,
			    "its credential does not have all tenants");
}

static const char *const guard_role_names[] = {
	[ROLE_READ] = "read", [ROLE_WRITE] = "write", [ROLE_POLL] = "poll", [ROLE_ADMIN] = "admin"};

static int guard_check_role(struct auth *auth, const struct http_request *request,
			    struct errbuf *why)
{
	char reason[CREDENTIAL_NAME_MAX_BYTES + 60];
	const struct http_route *route = request->route;
	bool may = route->role == ROLE_ANY || caller_may(request->caller, route->role);
	size_t poller = route->poller_segment;
	if (may && poller && request->segment_count > poller &&
	    !caller_may_poll_as(request->caller, request->segments[poller])) {
		may = false;
		errbuf_set(why, ERR_INVALID, "this credential is that of another poller");
	} else if (!may) {
		errbuf_set(why, ERR_INVALID, "this credential does not have the role %s",
			   guard_role_names[route->role]);
	}
	if (may)
		return 0;
	snprintf(reason, sizeof(reason), "the credential %s does not have the role",
		 request->caller->name);
	return guard_refuse(auth, request, 403, STAT_auth_refused_role, reason);
}

/* Whether somebody who shows nothing is answered: then the name in Host counts, since a page that
 * has given its own name to our address may be the one who asks. */
static bool guard_answers_nobody(struct auth *auth)
{
	return auth->options.anonymous_reads || auth_is_open(auth);
}

static int guard_admit(struct http_guard *guard, struct http_request *request, bool *shown,
		       struct errbuf *why)
{
	struct auth *auth = CONTAINER_OF(guard, struct auth, guard);
	/* No page has a browser send anything to a socket. */
	*shown = request->peer_uid || !guard_answers_nobody(auth);
	if (request->route->role == ROLE_NONE) {
		request->caller = &guard_nobody;
		return 0;
	}
	int status = guard_identify(auth, request, why);
	if (status)
		return status;
	*shown |= auth_credential(request->caller) != NULL;
	status = guard_check_role(auth, request, why);
	return status ? status : guard_check_reach(auth, request, why);
}

bool auth_still_may(struct auth *auth, const struct http_request *request)
{
	const struct caller *caller = request->caller;
	const struct credential *credential = auth_credential(caller);
	if (caller == &guard_local)
		return auth_is_open(auth);
	if (!credential)
		return true; /* what the configuration lets in */
	struct credential *now = auth_find_generation(auth, credential->id, credential->generation);
	bool may = now && !credential_has_expired(now, clock_wall_ms(auth->options.clock));
	credential_unref(now);
	return may;
}

const struct credential *auth_credential(const struct caller *caller)
{
	if (!caller || caller == &guard_nobody || caller == &guard_local ||
	    caller == &guard_owner || caller == &guard_anonymous)
		return NULL;
	return CONTAINER_OF(caller, struct credential, caller);
}

/* A line for each change that only an admin may make; a refusal has its own. */
static void guard_log_change(const struct http_request *request, int status)
{
	char from[LOOP_ADDRESS_TEXT_BYTES], outcome[12];
	bool reads = request->verb == VERB_GET || request->verb == VERB_HEAD;
	if (!request->route || request->route->role != ROLE_ADMIN || reads || status == 401 ||
	    status == 403)
		return;
	snprintf(outcome, sizeof(outcome), "%d", status);
	log_info("%s at %s: %s " SHOWN "%s%.*s: %s", request->caller->name,
		 loop_address_text(request->peer, from), http_verb_text(request->verb),
		 SHOWN_OF(request->target), request->note.len ? " " : "", (int)request->note.len,
		 request->note.len ? request->note.data : "",
		 status ? outcome : "the client has gone before the answer");
}

static void guard_leave(UNUSED struct http_guard *guard, const struct http_request *request,
			int status)
{
	guard_log_change(request, status);
	credential_unref((struct credential *)auth_credential(request->caller));
}

void auth_guard_init(struct http_guard *guard)
{
	*guard =
		(struct http_guard){.admit = guard_admit, .leave = guard_leave, .gone = guard_gone};
}

struct http_guard *auth_guard(struct auth *auth)
{
	return &auth->guard;
}
