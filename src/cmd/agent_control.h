/* The control of an agent (agent/control.h) on a thread of its own, with its socket and ports. It
 * writes to the disk and waits a little for the agent, which neither the loop of a server nor the
 * agent, who waits for collectors, may be asked to do.
 *
 * Threads: one of its own; the functions here are the owner's. */
#ifndef CMD_AGENT_CONTROL_H
#define CMD_AGENT_CONTROL_H

#include "agent/control.h"
#include "conf/conf.h"

struct agent_control;

struct agent_control_options {
	const struct conf *conf;
	const char *directory; /* for the file and the socket; locked */
	struct slice host;
	struct control_agent *agent; /* called on the control's thread, and in the opening */
};

/* Whether something may be followed though nothing is configured: what was added before, or what
 * is going to be. */
bool agent_control_is_wanted(const struct conf *conf);

/* The texts of the options outlive it. Takes the adaptors, and gives the agent those that are to be
 * followed. With a sentence. */
int agent_control_open(const struct agent_control_options *options, struct adaptors **base,
		       struct agent_control **control, struct errbuf *e) MUST_CHECK;
/* This is configured from now on. */
void agent_control_reload(struct agent_control *control, struct adaptors **base);
/* Waits until all connections are closed. NULL is allowed. */
void agent_control_close(struct agent_control *control);

#endif
