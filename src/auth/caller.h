/* Who asks, and what that one may do. Immutable; of a credential (credential.h), or what stands in
 * for one (auth.h). NULL: nobody guards the server, and everything may be done. */
#ifndef AUTH_CALLER_H
#define AUTH_CALLER_H

#include "http/http.h"

struct caller {
	const char *name;
	unsigned roles;     /* bits: 1 << enum http_role */
	const char *poller; /* the poller that it may be; `*`: any poller, NULL: none */
	bool all_tenants;
	const struct slice *tenants; /* else these, in order */
	size_t tenant_count;
};

/* An admin may do what all others may. */
bool caller_may(const struct caller *caller, enum http_role role) MUST_CHECK;
bool caller_may_poll_as(const struct caller *caller, struct slice poller) MUST_CHECK;
bool caller_has_tenant(const struct caller *caller, struct slice tenant) MUST_CHECK;

#endif
