/* Makes a device of this machine where an SNMP agent of it answers, so that somebody who has just
 * started sees interfaces. The loop's thread. */
#ifndef CMD_LOCAL_AGENT_H
#define CMD_LOCAL_AGENT_H

#include "base/base.h"

struct inventory_keeper;
struct loop;
struct local_agent;

/* Asks the agent at `address` (HOST:PORT) for its name, with the community `public`; if it answers,
 * adds the device `name` with that address, unless there is one of that name. ERR_INVALID: the
 * address. */
int local_agent_open(struct loop *loop, struct inventory_keeper *keeper, const char *address,
		     const char *name, struct local_agent **agent, struct errbuf *e) MUST_CHECK;
/* Whether it still waits for the inventory; asking ends with local_agent_close. */
bool local_agent_busy(const struct local_agent *agent); /* NULL: no */
void local_agent_close(struct local_agent *agent);      /* not busy; NULL is allowed */

#endif
