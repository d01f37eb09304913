/* The agent (agent/agent.h) on a thread of its own, with what it needs of the machine: files,
 * inotify, an HTTP client for each collector, and a directory for its checkpoint, which is locked;
 * and its control (agent_control.h), through which all that is to be followed comes.
 *
 * Threads: one of its own; the functions here are the owner's. */
#ifndef CMD_AGENT_RUNNER_H
#define CMD_AGENT_RUNNER_H

#include "base/exec.h"
#include "conf/conf.h"

struct adaptors;
struct agent_runner;

struct agent_runner_options {
	const struct conf *conf; /* outlives it */
	const char *token;       /* shown to collectors; NULL: none */
	const char *ca;        /* the file of whom to trust among them; NULL: as the system does */
	const char *collector; /* in place of those that the configuration names; or NULL */
	struct executor *executor;
	void (*stopped)(void *owner); /* follows agent_runner_stop() on the executor */
	bool owns_process;            /* a command may end it, as SIGTERM does */
	void *owner;
};

/* What the configuration says is to be followed: the section, and Chukwa's files. Their
 * cluster counts, too, where the configuration has its preset. With a sentence. */
int agent_runner_read(struct conf *conf, struct adaptors **adaptors, struct errbuf *e) MUST_CHECK;

/* Adds the logs of this machine, where the configuration wants them; own_log: this program's, an
 * absolute path, or empty. With a sentence. */
int agent_runner_add_local(const struct conf *conf, struct slice own_log, struct adaptors *adaptors,
			   struct errbuf *e) MUST_CHECK;

/* Begins to follow; takes the adaptors. ERR_LOCKED: another agent has the directory; with a
 * sentence. */
int agent_runner_open(const struct agent_runner_options *options, struct adaptors **adaptors,
		      struct agent_runner **runner, struct errbuf *e) MUST_CHECK;
/* From now on this is followed. */
void agent_runner_reload(struct agent_runner *runner, struct adaptors **adaptors);
/* What is on its way is waited for, and the checkpoint written; then `stopped` is called. */
void agent_runner_stop(struct agent_runner *runner);
/* What is on its way is not waited for any more. */
void agent_runner_hurry(struct agent_runner *runner);
/* After `stopped`. NULL is allowed. */
void agent_runner_close(struct agent_runner *runner);

#endif
