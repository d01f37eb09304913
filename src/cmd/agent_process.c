#include "cmd/agent_process.h"

#include <unistd.h>

#include "agent/adaptors.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/supervisor.h"
#include "cmd/agent_control.h"
#include "cmd/agent_runner.h"
#include "cmd/client_private.h"
#include "cmd/command.h"
#include "cmd/serve_conf.h"
#include "cmd/stop_phases.h"
#include "cmd/terminal_escape.h"
#include "loop/loop.h"

enum { AGENT_PROCESS_STOP_MS = 30000 };

struct agent_process {
	struct conf *conf;
	char token[TOKEN_TEXT_BYTES + 1]; /* empty: it shows none */
	struct loop *loop;
	struct agent_runner *runner;
	struct loop_timer *hurry;
	struct stop_phases stopping;
	char *const *argv; /* of the configuration, which is read again */
	int argc;
	int status;
};

static void agent_process_stopped(void *owner)
{
	struct agent_process *p = owner;
	stop_phases_end_phase(&p->stopping);
}

static void agent_process_hurry(void *owner)
{
	struct agent_process *p = owner;
	agent_runner_hurry(p->runner);
}

static void agent_process_begin_stop(void *owner)
{
	struct agent_process *p = owner;
	p->stopping.phase_over = p->runner == NULL;
	if (!p->runner)
		return;
	agent_runner_stop(p->runner);
	loop_timer_start(p->hurry, (uint64_t)p->conf->stop_timeout_ms, 0);
}

static const struct stop_phase agent_process_phases[] = {{"agent", agent_process_begin_stop, NULL}};

/* ---- Configuration --------------------------------------------------------------------------- */

static int agent_process_read(struct conf *conf, int argc, char *const *argv,
			      struct adaptors **adaptors, struct errbuf *e)
{
	int err = conf_read(conf, files_real(), argc, argv, e);
	err = err ? err : agent_runner_read(conf, adaptors, e);
	if (!err) {
		err = agent_runner_add_local(conf, SLICE(""), *adaptors, e);
		if (err) {
			adaptors_free(*adaptors);
			*adaptors = NULL;
		}
	}
	if (!err)
		serve_conf_set_log(conf);
	return err;
}

static void agent_process_on_reload_signal(void *owner, UNUSED int signum)
{
	struct agent_process *p = owner;
	struct errbuf e = {""};
	struct conf *conf = conf_new();
	struct adaptors *adaptors = NULL;
	if (!p->runner) {
		conf_free(conf);
		return; /* it stops, or has not begun */
	}
	supervisor_tell_reload(clock_real());
	if (agent_process_read(conf, p->argc, p->argv, &adaptors, &e)) {
		log_error("reload: nothing is changed: %s", e.text);
	} else {
		log_info("reload: %zu adaptor%s", adaptors->count, plural_end(adaptors->count));
		agent_runner_reload(p->runner, &adaptors);
	}
	supervisor_tell_reloaded(!e.text[0]);
	conf_free(conf);
}

/* ---- Running --------------------------------------------------------------------------------- */

static int agent_process_start(struct agent_process *p, struct adaptors **adaptors,
			       const struct command_args *args, struct errbuf *e)
{
	const char *server = args->server;
	int err = client_read_token(args, p->token, e);
	if (err)
		return err;
	const struct agent_runner_options options = {
		.conf = p->conf,
		.token = p->token[0] ? p->token : NULL,
		.ca = client_ca_file(args),
		.collector = server,
		.executor = loop_executor(p->loop),
		.stopped = agent_process_stopped,
		.owns_process = true,
		.owner = p,
	};
	size_t count = (*adaptors)->count;
	err = stop_phases_open_signals(&p->stopping, agent_process_on_reload_signal, e);
	err = err ? err : agent_runner_open(&options, adaptors, &p->runner, e);
	if (err)
		return err;
	printf("granary " GRANARY_VERSION
	       " follows %zu adaptor%s for %s, with its checkpoint in %s/agent\n",
	       count, plural_end(count), server ? server : p->conf->agent_collectors.items[0],
	       p->conf->data);
	fflush(stdout);
	stop_phases_ready(&p->stopping, NULL, 0);
	return 0;
}

static int agent_process_loop(struct agent_process *p, struct adaptors **adaptors,
			      const struct command_args *args)
{
	struct errbuf e = {""};
	p->loop = loop_new();
	loop_set_kind(p->loop, LOOP_MAIN);
	p->hurry = loop_timer_new(p->loop, agent_process_hurry, p);
	p->stopping =
		(struct stop_phases){.loop = p->loop,
				     .phases = agent_process_phases,
				     .phase_count = ARRAY_LEN(agent_process_phases),
				     .owner = p,
				     .bound_ms = p->conf->stop_timeout_ms + AGENT_PROCESS_STOP_MS};
	p->status = agent_process_start(p, adaptors, args, &e) ? EXIT_FAILED : EXIT_OK;
	if (p->status) {
		terminal_complain("granary agent: %s", e.text);
		stop_phases_begin(&p->stopping);
	}
	loop_run(p->loop);
	loop_timer_close(p->hurry);
	agent_runner_close(p->runner);
	loop_free(p->loop);
	if (!p->status)
		log_info("stopped");
	return p->status;
}

int agent_process_run(const struct command_args *args)
{
	struct errbuf e = {""};
	struct adaptors *adaptors = NULL;
	struct agent_process p = {
		.conf = conf_new(), .argv = args->conf_argv, .argc = args->conf_argc};
	int status = EXIT_WRONG_USE;
	stop_phases_begin_process();
	int err = agent_process_read(p.conf, p.argc, p.argv, &adaptors, &e);
	if (!err && !adaptors->count && !agent_control_is_wanted(p.conf))
		err = errbuf_set(&e, ERR_INVALID,
				 "there is nothing to follow: --config names a file with a section "
				 "`adaptors`, --agent.chukwa a directory, "
				 "--agent.local_logs=true the logs of this machine, or "
				 "--agent.control_port a port that takes commands");
	err = err ? err : fault_arm_from_env(&e);
	if (err)
		(void)command_usage(args, "%s", e.text);
	else
		status = agent_process_loop(&p, &adaptors, args);
	adaptors_free(adaptors);
	conf_free(p.conf);
	return status;
}
