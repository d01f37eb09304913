#include "cmd/serve_agent.h"

#include <limits.h>
#include <stdio.h>

#include "agent/adaptors.h"
#include "base/log.h"
#include "cmd/agent_control.h"

static void serve_agent_hurry(void *owner)
{
	struct serve_agent *agent = owner;
	agent_runner_hurry(agent->runner);
}

static void serve_agent_stopped(void *owner)
{
	struct serve_agent *agent = owner;
	loop_timer_close(agent->hurry);
	agent->hurry = NULL;
	agent->stopped(agent->owner);
}

/* False: there is none. */
static bool serve_agent_log_path(const struct conf *conf, char path[PATH_MAX])
{
	bool absolute = conf->log_file[0] == '/';
	snprintf(path, PATH_MAX, "%s%s%s", absolute ? "" : conf->data, absolute ? "" : "/",
		 conf->log_file);
	return conf->log_file[0] != 0;
}

int serve_agent_open_log(const struct conf *conf, struct errbuf *e)
{
	char path[PATH_MAX];
	int err = serve_agent_log_path(conf, path) ? log_open(path) : 0;
	if (!err)
		return 0;
	errbuf_set(e, err, "%s cannot be opened: %s", path, err_text(err));
	return conf_refuse(conf, CONF_ID_log_file, e);
}

int serve_agent_add_local(const struct conf *conf, struct adaptors *adaptors, struct errbuf *e)
{
	struct files *files = files_real();
	char path[PATH_MAX], resolved[PATH_MAX];
	bool has_log = serve_agent_log_path(conf, path);
	char *base = has_log ? strrchr(path, '/') : NULL;
	/* The file may be a link, in whose place another file comes. */
	if (base)
		*base = 0;
	has_log = base &&
		  !files->resolve(files, path[0] ? path : "/", resolved, sizeof(resolved)) &&
		  strlen(resolved) + strlen(base + 1) + 2 <= sizeof(resolved);
	if (has_log)
		snprintf(resolved + strlen(resolved), sizeof(resolved) - strlen(resolved), "/%s",
			 base + 1);
	return agent_runner_add_local(conf, has_log ? slice_of(resolved) : SLICE(""), adaptors, e);
}

int serve_agent_open(struct serve_agent *agent, const struct conf *conf, struct adaptors **adaptors,
		     struct loop *loop, const struct serve_addresses *addresses, const char *token,
		     struct errbuf *e)
{
	if (!(*adaptors)->count && !agent_control_is_wanted(conf))
		return 0;
	if (!serve_addresses_own(addresses, agent->collector))
		return errbuf_set(e, ERR_INVALID,
				  "what the server follows it sends to itself, but there is "
				  "neither an address without TLS in listen, nor a socket");
	const struct agent_runner_options options = {
		.conf = conf,
		.token = token,
		.collector = agent->collector,
		.executor = loop_executor(loop),
		.stopped = serve_agent_stopped,
		.owner = agent,
	};
	agent->hurry = loop_timer_new(loop, serve_agent_hurry, agent);
	return agent_runner_open(&options, adaptors, &agent->runner, e);
}

void serve_agent_stop(struct serve_agent *agent, int64_t grace_ms, void (*stopped)(void *owner),
		      void *owner)
{
	agent->stopped = stopped;
	agent->owner = owner;
	if (!agent->runner) {
		serve_agent_stopped(agent);
		return;
	}
	loop_timer_start(agent->hurry, (uint64_t)grace_ms, 0);
	agent_runner_stop(agent->runner);
}

void serve_agent_close(struct serve_agent *agent)
{
	agent_runner_close(agent->runner);
	agent->runner = NULL;
}
