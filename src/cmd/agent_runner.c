#include "cmd/agent_runner.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/adaptors.h"
#include "agent/agent.h"
#include "agent/chukwa_import.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/watch.h"
#include "cmd/agent_control.h"
#include "loop/job.h"

enum {
	AGENT_RUNNER_REQUEST_MS = 60000,
	/* After a turn that events brought: what is written meanwhile goes in one post. */
	AGENT_RUNNER_REST_MS = 100,
	AGENT_RUNNER_SOURCE_MAX_BYTES = 256,
	AGENT_RUNNER_DIRECTORY_MODE = 0700,
	AGENT_RUNNER_LOOK_MS = 300, /* the agent is waited for; then what it said last counts */
	AGENT_RUNNER_SEEN_MAX_BYTES = 4 << 20,
};

struct agent_runner {
	struct agent_runner_options options;
	struct agent *agent;
	struct spool *spool;
	struct inlets *inlets;
	struct watch *watch;
	struct agent_net net;
	struct agent_watch watching;
	const char *const *collectors;
	size_t collector_count;
	struct http_client **clients; /* one for each */
	struct job *job;
	int lock_fd;
	char directory[PATH_MAX], zone[PATH_MAX], source[AGENT_RUNNER_SOURCE_MAX_BYTES];
	atomic_bool cancelled, stopping;
	bool told;       /* events came since the last turn */
	bool no_watches; /* it was said that the system gives no more */
	struct agent_control *control;
	struct control_agent controlled;
	struct task stop_task; /* a command stops the process */
	atomic_bool stop_asked;
	pthread_mutex_t lock; /* guards all that follows */
	struct adaptors *next;
	bool try_again;
	/* How far the adaptors are, for the control: what the agent said last, and whether it was
	 * asked since. A turn answers that began after it was asked, and after a look at what has
	 * changed in files. */
	bool look_asked, look_taken;
	struct buf seen;
	pthread_cond_t looked;
};

/* ---- What the configuration says ------------------------------------------------------------- */

static int agent_runner_read_chukwa(struct conf *conf, struct adaptors *adaptors, struct errbuf *e)
{
	struct chukwa_import import;
	if (!conf->agent_chukwa[0])
		return 0;
	chukwa_import_init(&import);
	int err = chukwa_import(files_real(), conf->agent_chukwa, adaptors, &import, e);
	if (!err)
		log_info("%s: %zu adaptor%s followed, %zu line%s passed over", conf->agent_chukwa,
			 import.added, plural_end(import.added), import.skipped,
			 plural_end(import.skipped));
	if (!err && import.cluster.data && !conf->origins[CONF_ID_agent_cluster].file)
		err = conf_set(conf, CONF_ID_agent_cluster, import.cluster,
			       (struct conf_origin){"chukwa-agent-conf.xml", 0}, e);
	chukwa_import_release(&import);
	return err;
}

int agent_runner_read(struct conf *conf, struct adaptors **adaptors, struct errbuf *e)
{
	int err = adaptors_read(conf->sections[CONF_SECTION_ADAPTORS], adaptors, e);
	if (err)
		return err;
	err = agent_runner_read_chukwa(conf, *adaptors, e);
	if (err) {
		adaptors_free(*adaptors);
		*adaptors = NULL;
	}
	return err;
}

int agent_runner_add_local(const struct conf *conf, struct slice own_log, struct adaptors *adaptors,
			   struct errbuf *e)
{
	return conf->agent_local_logs
		       ? adaptors_add_local(adaptors, inlet_journal_is_there(), own_log, e)
		       : 0;
}

static void agent_runner_find_source(struct agent_runner *runner)
{
	const char *told = runner->options.conf->agent_source;
	if (*told)
		snprintf(runner->source, sizeof(runner->source), "%s", told);
	else if (gethostname(runner->source, sizeof(runner->source) - 1) || !runner->source[0])
		snprintf(runner->source, sizeof(runner->source), "localhost");
	for (char *c = runner->source; *c && !*told; c++)
		*c = (char)tolower((unsigned char)*c);
}

/* The name of the machine's time zone; empty: it is not known. */
static void agent_runner_find_zone(struct agent_runner *runner)
{
	static const char mark[] = "/zoneinfo/";
	struct files *files = files_real();
	const char *told = getenv("TZ");
	char path[PATH_MAX];
	told += told && *told == ':';
	if (told && *told && *told != '/') {
		if (strlen(told) < CHUNK_ZONE_MAX_BYTES)
			snprintf(runner->zone, sizeof(runner->zone), "%s", told);
		return;
	}
	if (files->resolve(files, "/etc/localtime", path, sizeof(path)))
		return;
	const char *name = strstr(path, mark);
	if (name && strlen(name + sizeof(mark) - 1) < CHUNK_ZONE_MAX_BYTES)
		snprintf(runner->zone, sizeof(runner->zone), "%s", name + sizeof(mark) - 1);
}

/* ---- What the agent needs -------------------------------------------------------------------- */

static int agent_runner_call(struct agent_net *net, const char *collector, struct http_call *call,
			     struct errbuf *e)
{
	struct agent_runner *runner = CONTAINER_OF(net, struct agent_runner, net);
	for (size_t i = 0; i < runner->collector_count; i++)
		if (runner->collectors[i] == collector)
			return http_client_call(runner->clients[i], call, e);
	return errbuf_set(e, ERR_INVALID, "%s is no collector", collector);
}

static void agent_runner_watch(struct agent_watch *watching, const char *directory)
{
	struct agent_runner *runner = CONTAINER_OF(watching, struct agent_runner, watching);
	if (!runner->watch)
		return;
	int err = watch_add(runner->watch, directory);
	if (err && err != ERR_NOT_FOUND && !runner->no_watches) {
		log_warn("changes in %s are seen by looking from time to time only: %s", directory,
			 err == ERR_LIMIT ? "the system gives no more watches "
					    "(fs.inotify.max_user_watches)"
					  : err_text(err));
		runner->no_watches = true;
	}
}

static void agent_runner_unwatch(struct agent_watch *watching, const char *directory)
{
	struct agent_runner *runner = CONTAINER_OF(watching, struct agent_runner, watching);
	if (runner->watch)
		watch_remove(runner->watch, directory);
}

static void agent_runner_on_event(void *owner, const char *directory, const char *name)
{
	struct agent_runner *runner = owner;
	runner->told = true;
	agent_notice(runner->agent, directory, name);
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* What the control wants. */
static void agent_runner_take_wishes(struct agent_runner *runner)
{
	pthread_mutex_lock(&runner->lock);
	struct adaptors *next = runner->next;
	bool try_again = runner->try_again;
	runner->next = NULL;
	runner->try_again = false;
	pthread_mutex_unlock(&runner->lock);
	if (next) {
		inlets_configure(runner->inlets, next);
		agent_configure(runner->agent, &next);
	}
	if (try_again)
		agent_try_again(runner->agent);
}

/* Tells how far the adaptors are, where that was asked before the turn. True: it is asked now. */
static bool agent_runner_tell(struct agent_runner *runner)
{
	pthread_mutex_lock(&runner->lock);
	if (runner->look_taken) {
		buf_clear(&runner->seen);
		agent_put_progress(runner->agent, &runner->seen);
		runner->look_asked = false;
		pthread_cond_signal(&runner->looked);
	}
	bool taken = runner->look_taken = runner->look_asked;
	pthread_mutex_unlock(&runner->lock);
	return taken;
}

static void agent_runner_wait(struct agent_runner *runner, int64_t wait_ms)
{
	if (runner->told && wait_ms > 0 && !atomic_load(&runner->stopping))
		watch_rest(runner->watch, smaller_of(wait_ms, AGENT_RUNNER_REST_MS));
	runner->told = false;
	watch_wait(runner->watch, wait_ms, agent_runner_on_event, runner);
}

static void agent_runner_run(UNUSED struct job *job, void *owner)
{
	struct agent_runner *runner = owner;
	struct errbuf e = {""};
	while (!atomic_load(&runner->stopping)) {
		agent_runner_take_wishes(runner);
		int64_t wait_ms = agent_turn(runner->agent);
		agent_runner_wait(runner, agent_runner_tell(runner) ? 0 : wait_ms);
	}
	/* The checkpoint waits for no inlet, whose command may take seconds to end. */
	if (agent_save(runner->agent, &e))
		log_error("the agent stops without its last checkpoint, and will send again what "
			  "it has delivered since the one before: %s",
			  e.text);
	/* The spool keeps what it has for the next start. */
	inlets_free(runner->inlets);
	runner->inlets = NULL;
}

static void agent_runner_done(void *owner)
{
	struct agent_runner *runner = owner;
	runner->options.stopped(runner->options.owner);
}

/* ---- For the control, on its thread ---------------------------------------------------------- */

static void agent_runner_configure(struct control_agent *controlled, struct adaptors **adaptors)
{
	struct agent_runner *runner = CONTAINER_OF(controlled, struct agent_runner, controlled);
	pthread_mutex_lock(&runner->lock);
	struct adaptors *before = runner->next;
	runner->next = *adaptors;
	*adaptors = NULL;
	pthread_mutex_unlock(&runner->lock);
	adaptors_free(before);
	watch_wake(runner->watch);
}

static void agent_runner_look(struct control_agent *controlled, struct buf *out)
{
	struct agent_runner *runner = CONTAINER_OF(controlled, struct agent_runner, controlled);
	int64_t until_ms = clock_mono_ms(clock_real()) + AGENT_RUNNER_LOOK_MS, left_ms;
	pthread_mutex_lock(&runner->lock);
	/* An agent that was asked before, and has not answered yet, waits for a collector. */
	if (!runner->look_asked) {
		runner->look_asked = true;
		watch_wake(runner->watch);
		while (runner->look_asked && (left_ms = until_ms - clock_mono_ms(clock_real())) > 0)
			cond_wait_ms(&runner->looked, &runner->lock, (int)left_ms);
	}
	buf_append(out, runner->seen.data, runner->seen.len);
	pthread_mutex_unlock(&runner->lock);
}

static void agent_runner_try_again(struct control_agent *controlled)
{
	struct agent_runner *runner = CONTAINER_OF(controlled, struct agent_runner, controlled);
	pthread_mutex_lock(&runner->lock);
	runner->try_again = true;
	pthread_mutex_unlock(&runner->lock);
	watch_wake(runner->watch);
}

/* As whoever stops it from outside. */
static void agent_runner_stop_process(UNUSED struct control_agent *controlled)
{
	kill(getpid(), SIGTERM);
}

static int agent_runner_open_control(struct agent_runner *runner, struct adaptors **adaptors,
				     struct errbuf *e)
{
	runner->controlled = (struct control_agent){
		.configure = agent_runner_configure,
		.look = agent_runner_look,
		.try_again = agent_runner_try_again,
		.stop = runner->options.owns_process ? agent_runner_stop_process : NULL,
	};
	const struct agent_control_options options = {
		.conf = runner->options.conf,
		.directory = runner->directory,
		.host = slice_of(runner->source),
		.agent = &runner->controlled,
	};
	return agent_control_open(&options, adaptors, &runner->control, e);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int agent_runner_take_directory(struct agent_runner *runner, struct errbuf *e)
{
	char lock[PATH_MAX + 8];
	const char *data = runner->options.conf->data;
	snprintf(runner->directory, sizeof(runner->directory), "%s/agent", data);
	if ((mkdir(data, AGENT_RUNNER_DIRECTORY_MODE) && errno != EEXIST) ||
	    (mkdir(runner->directory, AGENT_RUNNER_DIRECTORY_MODE) && errno != EEXIST))
		return errbuf_set(e, -errno, "%s cannot be made: %s", runner->directory,
				  strerror(errno));
	snprintf(lock, sizeof(lock), "%s/lock", runner->directory);
	int err = file_lock(lock, &runner->lock_fd, e);
	return err == ERR_LOCKED ? errbuf_prefix(e, err, "another agent follows files here") : err;
}

static size_t agent_runner_open_max(const struct conf *conf)
{
	struct rlimit limit;
	size_t most = (size_t)conf->agent_files_open;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && most > limit.rlim_cur / 2)
		most = (size_t)(limit.rlim_cur / 2);
	return most;
}

static void agent_runner_open_clients(struct agent_runner *runner)
{
	runner->clients = mem_alloc_array(runner->collector_count, sizeof(*runner->clients));
	for (size_t i = 0; i < runner->collector_count; i++)
		runner->clients[i] = http_client_new(&(struct http_client_options){
			.server = runner->collectors[i],
			.token = runner->options.token,
			.ca = runner->options.ca,
			.timeout_ms = AGENT_RUNNER_REQUEST_MS,
			.cancelled = &runner->cancelled,
		});
}

static int agent_runner_open_spool(struct agent_runner *runner, struct errbuf *e)
{
	const struct conf *conf = runner->options.conf;
	char directory[PATH_MAX + 8];
	snprintf(directory, sizeof(directory), "%s/spool", runner->directory);
	int err = spool_open(
		&(struct spool_options){.files = files_real(),
					.clock = clock_real(),
					.directory = directory,
					.max_bytes = (uint64_t)conf->agent_spool_max_bytes},
		&runner->spool, e);
	if (!err)
		runner->inlets = inlets_new(&(struct inlets_options){
			.spool = runner->spool,
			.clock = clock_real(),
			.host = {.interfaces = {conf->host_ignore_interfaces.items,
						conf->host_ignore_interfaces.count},
				 .disks = {conf->host_ignore_disks.items,
					   conf->host_ignore_disks.count},
				 .ticks_per_second = (double)sysconf(_SC_CLK_TCK),
				 .process = SLICE("granary-agent")}});
	return err;
}

static int agent_runner_open_agent(struct agent_runner *runner, struct errbuf *e)
{
	const struct conf *conf = runner->options.conf;
	const char *name = conf->agent_name[0] ? conf->agent_name : runner->source;
	runner->agent = agent_new(&(struct agent_options){
		.files = files_real(),
		.clock = clock_real(),
		.net = &runner->net,
		.watch = &runner->watching,
		.spool = runner->spool,
		.inlets = runner->inlets,
		.directory = runner->directory,
		.source = slice_of(runner->source),
		.cluster = slice_of(conf->agent_cluster),
		.tenant = slice_of(conf->agent_tenant),
		.zone = slice_of(runner->zone),
		.name = slice_of(name),
		.collectors = runner->collectors,
		.collector_count = runner->collector_count,
		.open_max = agent_runner_open_max(conf),
		.level = (int)conf->agent_level,
		.seed = random_system_seed(),
	});
	return agent_start(runner->agent, e);
}

int agent_runner_open(const struct agent_runner_options *options, struct adaptors **adaptors,
		      struct agent_runner **opened, struct errbuf *e)
{
	const struct conf *conf = options->conf;
	struct agent_runner *runner = mem_zalloc(sizeof(*runner));
	runner->options = *options;
	runner->lock_fd = -1;
	runner->net.call = agent_runner_call;
	runner->watching.add = agent_runner_watch;
	runner->watching.remove = agent_runner_unwatch;
	runner->collectors =
		options->collector ? &runner->options.collector : conf->agent_collectors.items;
	runner->collector_count = options->collector ? 1 : conf->agent_collectors.count;
	pthread_mutex_init(&runner->lock, NULL);
	pthread_cond_init(&runner->looked, NULL);
	buf_init(&runner->seen, AGENT_RUNNER_SEEN_MAX_BYTES);
	agent_runner_find_source(runner);
	agent_runner_find_zone(runner);
	agent_runner_open_clients(runner);
	int err = agent_runner_take_directory(runner, e);
	err = err ? err : watch_open(&runner->watch, e);
	err = err ? err : agent_runner_open_spool(runner, e);
	err = err ? err : agent_runner_open_agent(runner, e);
	err = err ? err : agent_runner_open_control(runner, adaptors, e);
	if (!err) {
		err = job_start("agent", agent_runner_run, agent_runner_done, runner,
				options->executor, &runner->job);
		if (err)
			errbuf_set(e, err, "there are too many threads for the agent");
	}
	if (err)
		agent_runner_close(runner);
	else
		*opened = runner;
	return err;
}

void agent_runner_reload(struct agent_runner *runner, struct adaptors **adaptors)
{
	agent_control_reload(runner->control, adaptors);
}

void agent_runner_stop(struct agent_runner *runner)
{
	atomic_store(&runner->stopping, true);
	watch_wake(runner->watch);
}

void agent_runner_hurry(struct agent_runner *runner)
{
	atomic_store(&runner->cancelled, true);
}

void agent_runner_close(struct agent_runner *runner)
{
	if (!runner)
		return;
	agent_control_close(runner->control);
	job_free(runner->job);
	inlets_free(runner->inlets);
	agent_free(runner->agent);
	spool_close(runner->spool);
	adaptors_free(runner->next);
	watch_close(runner->watch);
	for (size_t i = 0; i < runner->collector_count; i++)
		http_client_free(runner->clients[i]);
	mem_free(runner->clients);
	if (runner->lock_fd >= 0)
		file_unlock(runner->lock_fd);
	pthread_mutex_destroy(&runner->lock);
	pthread_cond_destroy(&runner->looked);
	buf_release(&runner->seen);
	mem_free(runner);
}
