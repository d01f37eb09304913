/* The agent within the server (agent_runner.h): what stands in the section `adaptors` is followed,
 * and delivered to the server's own address. The loop's thread. */
#ifndef CMD_SERVE_AGENT_H
#define CMD_SERVE_AGENT_H

#include "cmd/agent_runner.h"
#include "cmd/serve_addresses.h"

struct serve_agent {
	struct agent_runner *runner; /* NULL: nothing is to be followed */
	struct loop_timer *hurry;
	char collector[SERVE_URL_BYTES];
	void (*stopped)(void *owner);
	void *owner;
};

/* Lines of the log go to the file of the configuration from now on. The data directory exists. */
int serve_agent_open_log(const struct conf *conf, struct errbuf *e) MUST_CHECK;
/* Adds the logs of this machine, this server's among them, where the configuration wants them. With
 * a sentence. */
int serve_agent_add_local(const struct conf *conf, struct adaptors *adaptors,
			  struct errbuf *e) MUST_CHECK;
/* When the addresses are bound. Takes the adaptors, all that are to be followed. */
int serve_agent_open(struct serve_agent *agent, const struct conf *conf, struct adaptors **adaptors,
		     struct loop *loop, const struct serve_addresses *addresses, const char *token,
		     struct errbuf *e) MUST_CHECK;
/* What is on its way is waited for, at most so long; then `stopped` is called, at once where
 * nothing is followed. */
void serve_agent_stop(struct serve_agent *agent, int64_t grace_ms, void (*stopped)(void *owner),
		      void *owner);
void serve_agent_close(struct serve_agent *agent);

#endif
