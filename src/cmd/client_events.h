/* Reading a server's stream of events (HTML, 9.2), for commands that print what comes as it comes.
 * Where the connection ends it is opened again, and goes on behind the last event that had an id.
 *
 * One thread; blocking. */
#ifndef CMD_CLIENT_EVENTS_H
#define CMD_CLIENT_EVENTS_H

#include "cmd/client_private.h"

struct client_events {
	const struct command_args *args;
	const char *path; /* with the query */
	/* An event came; what it prints goes out with what came together with it. */
	void (*take)(void *owner, const char *event, struct slice data);
	void *owner;
	const char *left_out; /* what is said of what comes between two connections; may be NULL */
};

/* Until the server refuses it, or what is printed cannot be written. The exit status. */
int client_events_follow(const struct client_events *events);

#endif
