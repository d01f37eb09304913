#include "auth/caller.h"

bool caller_may(const struct caller *caller, enum http_role role)
{
	return !caller || caller->roles & (1u << role | 1u << ROLE_ADMIN);
}

bool caller_may_poll_as(const struct caller *caller, struct slice poller)
{
	if (!caller || caller->roles & 1u << ROLE_ADMIN)
		return true;
	return caller->poller &&
	       (strcmp(caller->poller, "*") == 0 || slice_equal(slice_of(caller->poller), poller));
}

bool caller_has_tenant(const struct caller *caller, struct slice tenant)
{
	if (!caller || caller->all_tenants)
		return true;
	for (size_t i = 0; i < caller->tenant_count; i++)
		if (slice_equal(caller->tenants[i], tenant))
			return true;
	return false;
}
