/* A credential: a name, what its holder may do, and what its secret is known by. The table
 * `credentials` has a cell of each (doc/format-auth.md). A credential never changes: a change makes
 * another one. References are counted, since a request keeps its credential until it is answered.
 */
#ifndef AUTH_CREDENTIAL_H
#define AUTH_CREDENTIAL_H

#include <stdatomic.h>

#include "auth/caller.h"
#include "base/buf.h"

struct json_writer;

enum {
	CREDENTIAL_NAME_MAX_BYTES = 64,
	CREDENTIAL_POLLER_MAX_BYTES = 64,
	CREDENTIAL_TENANTS_MAX = 64,
	CREDENTIAL_HASH_BYTES = 32, /* SHA-256 */
	CREDENTIAL_VALUE_MAX_BYTES = 16 << 10,
	CREDENTIAL_ROLES_TEXT_BYTES = 128,
};

enum credential_kind { CREDENTIAL_TOKEN = 1, CREDENTIAL_USER };
extern const char
	*const credential_kinds[]; /* `token`, `user`, NULL; the first is the first kind */

struct credential {
	struct caller caller; /* its name and texts are in `memory` */
	enum credential_kind kind;
	uint64_t id;                         /* random; stands in the token */
	uint8_t hash[CREDENTIAL_HASH_BYTES]; /* of the token */
	const char *password;                /* of a user: its hash (password.h); else NULL */
	int64_t made_ms, expires_ms;         /* 0: never */
	uint64_t generation;                 /* how often it was changed */
	uint64_t version;                    /* of its cell */
	struct arena memory;
	atomic_uint refs;
};

/* What a credential is to be, as people write it: NULL data: as it was. */
struct credential_wish {
	struct slice roles;        /* `read,write,poll:NAME,admin` */
	struct slice tenants;      /* `a,b`, or `*` */
	enum credential_kind kind; /* of a new one; 0: a token */
	struct slice password;     /* of a user */
	bool expires;
	int64_t expires_ms; /* 0: never */
};

/* One reference. Roles and tenants are read, and none of them may be missing, nor a user's
 * password, which takes its time (password.h). ERR_INVALID, or no memory, with a sentence. */
int credential_make(struct slice name, const struct credential_wish *wish, int64_t now_ms,
		    struct credential **made, struct errbuf *e) MUST_CHECK;
/* Another one that is as this one, but for what is wished. */
int credential_change(const struct credential *credential, const struct credential_wish *wish,
		      struct credential **made, struct errbuf *e) MUST_CHECK;
void credential_ref(struct credential *credential);
void credential_unref(struct credential *credential); /* NULL is allowed */

/* When it is to be valid no more: a time, a duration from now on, or `never`; NULL data: as it was.
 * ERR_INVALID with a sentence. */
int credential_read_expiry(struct slice text, int64_t now_ms, struct credential_wish *wish,
			   struct errbuf *e) MUST_CHECK;

/* 1 to 64 of A-Z a-z 0-9 _ . @ and -. */
bool credential_name_valid(struct slice name);
/* Whether its holder may make others: an admin of all tenants whose time has not passed. */
bool credential_makes_others(const struct credential *credential, int64_t now_ms);
bool credential_has_expired(const struct credential *credential, int64_t now_ms);
/* {"name":"site_b","kind":"token" or
 * "user","roles":["poll:site_b"],"tenants":["snmp"],"made":MS,"expires":MS or
 * null,"expired":false,"changes":0}, and its token where one is given. */
void credential_write(struct json_writer *json, const struct credential *credential, int64_t now_ms,
		      const char *token);

/* {"roles":[...],"tenants":[...]} without the braces. */
void credential_write_caller(struct json_writer *json, const struct caller *caller);

/* The value of its cell. ERR_VERSION; ERR_DAMAGED. */
void credential_encode(const struct credential *credential, struct buf *out);
int credential_decode(struct slice name, struct slice value, struct credential **made) MUST_CHECK;

#endif
