/* `granary poll`: the poller as a process of its own, near the devices (doc/remote-poller.md).
 *
 *   server --GET inventory--> poll_follow --> poller (snmp/) --> spool --> poll_handover --POST-->
 * server
 *
 * The spool is the durable queue of queue/local in a small store of its own. Polling waits for
 * nobody: what the spool does not take waits in the poller's ring, within its bound.
 *
 * Order of events. The configuration and the secrets are read, the store opened, the spool in it;
 * then the poller starts with the inventory of the last time, and the two threads that talk to the
 * server. On the main loop remain the signals, the completions of the spool, and the status page.
 * Stopping is the list `phases`: who gives work ends before who takes it, and the store last. */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "api/routes.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/command.h"
#include "cmd/poll_follow.h"
#include "cmd/poll_handover.h"
#include "cmd/poll_sink.h"
#include "cmd/visible.h"
#include "conf/conf.h"
#include "inventory/inventory.h"
#include "loop/loop.h"
#include "queue/local/local.h"
#include "snmp/poller.h"
#include "store/lmdb/lmdb.h"

enum {
	ARGS_MAX = 256,
	STOP_POLL_MS = 5,
	STOP_MS = 30000,
	STOP_DEAD_MS = 4000, /* after a failed commit */
	FILE_MAX_BYTES = 4096,
};

#define LISTEN_PRESET "127.0.0.1:8471" /* beside the server's own */

const char poll_help[] =
	"usage: granary poll --server URL --data DIR [--name NAME] [--OPTION VALUE]...\n"
	"\n"
	"Polls devices near them for a server elsewhere: those whose `poller` is NAME there\n"
	"(`granary device add ... --poller NAME`). Follows changes of the inventory without a\n"
	"restart. Results are kept in DIR until the server has them on disk, so nothing that was\n"
	"polled is lost while the server is away. SIGHUP reads the secrets again; SIGINT and\n"
	"SIGTERM stop cleanly.\n"
	"\n"
	"  --server URL                where the server is\n"
	"  --data DIR                  the spool, and the last known inventory; made if absent\n"
	"  --name NAME                 what devices call this poller (default: the host's name)\n"
	"  --snmp.secrets_file FILE    credentials, by the names that devices have\n"
	"  --listen ADDRESS            where /metrics and /api/queues are (default\n"
	"                              " LISTEN_PRESET ")\n"
	"  --queue.bytes_max SIZE      how much may wait in the spool (default 1G); beyond it and\n"
	"                              some memory the oldest polls in memory are dropped and "
	"counted\n"
	"  --queue.messages_max N      and how many polls (default 1000000)\n"
	"  --store.min_free SIZE       takes nothing more while the disk has less room (default "
	"128M)\n"
	"  --log.level LEVEL           error, warn, info or debug\n"
	"  --config FILE               a file with such options, as `granary help serve` lists "
	"them\n"
	"\n"
	"How it goes: `granary poller list` and `granary device list` at the server; here\n"
	"`granary queue --server http://" LISTEN_PRESET
	"`, with --aside spool for what the server\n"
	"refused, with --retry spool to send that once more.\n"
	"\n"
	"Exit status: 0 stopped, 1 could not start, 2 wrong use, 74 a commit failed.\n";

static const struct slice spool_name = SLICE("spool");

struct poll {
	struct conf *conf;
	const char *server;
	char name[INVENTORY_NAME_MAX_BYTES + 1], file[FILE_MAX_BYTES];
	struct store *store;
	struct loop *loop;
	struct queue *spool;
	struct poller *poller;
	struct poll_sink sink;
	struct poll_handover *handover;
	struct poll_follow *follow;
	struct http_server *http;
	/* What the status page's handlers want of a server. */
	struct api api;
	struct http_route routes[8];
	struct queue_def queue_def;
	const struct queue_def *queue_defs[1];
	struct inventory_conf queues_only;
	struct queue *queues[1];
	struct loop_signal *signals[3];
	struct loop_timer *stop_timer;
	atomic_bool cancelled;
	size_t phase; /* of stopping; 0: polling */
	int64_t give_up_ms;
	bool phase_over;
	struct task dead_task;
	_Atomic int dead_err;
	int status;
};

/* ---- Stopping -------------------------------------------------------------------------------- */

static void follow_stopped(void *owner)
{
	struct poll *p = owner;
	p->follow = NULL;
	p->phase_over = true;
}

static void begin_follow(struct poll *p)
{
	p->phase_over = p->follow == NULL;
	atomic_store(&p->cancelled, true);
	if (p->follow)
		poll_follow_stop(p->follow, follow_stopped, p);
}

static void handover_stopped(void *owner)
{
	struct poll *p = owner;
	p->handover = NULL;
	p->phase_over = true;
}

static void begin_handover(struct poll *p)
{
	p->phase_over = p->handover == NULL;
	if (p->handover)
		poll_handover_stop(p->handover, handover_stopped, p);
}

static void poller_closed(void *owner)
{
	struct poll *p = owner;
	p->poller = NULL;
}

static void begin_poller(struct poll *p)
{
	if (p->poller)
		poller_close(p->poller, poller_closed, p);
}

static bool poller_over(const struct poll *p)
{
	return !p->poller && !p->sink.on_their_way;
}

static void http_stopped(void *owner)
{
	struct poll *p = owner;
	p->phase_over = true;
}

static void begin_http(struct poll *p)
{
	p->api.ready = false;
	p->phase_over = p->http == NULL;
	if (p->http)
		http_server_stop(p->http, 0, http_stopped, p);
}

static bool http_over(const struct poll *p)
{
	return p->phase_over && !p->api.calls;
}

static void begin_end(struct poll *p)
{
	loop_timer_close(p->stop_timer);
	for (size_t i = 0; i < ARRAY_LEN(p->signals); i++)
		loop_signal_close(p->signals[i]);
	loop_stop(p->loop);
}

static const struct phase {
	const char *name;
	void (*begin)(struct poll *p);
	bool (*over)(const struct poll *p); /* NULL: p->phase_over */
} phases[] = {
	{"polling", NULL, NULL},
	{"inventory", begin_follow, NULL},
	{"hand-over", begin_handover, NULL},
	{"polls at hand", begin_poller, poller_over},
	{"status page", begin_http, http_over},
	{"end", begin_end, NULL},
};

static bool is_phase_over(const struct poll *p)
{
	const struct phase *phase = &phases[p->phase];
	return phase->over ? phase->over(p) : p->phase_over;
}

static void on_stop_timer(void *owner)
{
	struct poll *p = owner;
	while (p->phase + 1 < ARRAY_LEN(phases) && is_phase_over(p)) {
		p->phase++;
		p->phase_over = false;
		phases[p->phase].begin(p);
	}
	if (loop_now_ms(p->loop) > p->give_up_ms) {
		log_error("stop: gave up waiting for: %s", phases[p->phase].name);
		_exit(p->dead_err ? EXIT_IO : EXIT_FAILED);
	}
}

static void stop(struct poll *p)
{
	if (p->give_up_ms)
		return;
	int64_t bound_ms = p->dead_err ? STOP_DEAD_MS : STOP_MS;
	p->give_up_ms = loop_now_ms(p->loop) + bound_ms;
	/* The loop stands still while the store is closed; this bounds that, too. */
	alarm((unsigned)(2 * bound_ms / 1000));
	loop_timer_start(p->stop_timer, 0, STOP_POLL_MS);
	p->phase_over = true;
}

static void on_stop_signal(void *owner, int signum)
{
	struct poll *p = owner;
	if (!p->give_up_ms)
		log_info("signal %d: stopping", signum);
	stop(p);
}

static void on_reload_signal(void *owner, UNUSED int signum)
{
	struct poll *p = owner;
	log_info("the secrets are read again");
	if (p->follow)
		poll_follow_refresh(p->follow);
}

static void run_dead(struct task *task)
{
	struct poll *p = CONTAINER_OF(task, struct poll, dead_task);
	log_error("a commit failed: %s; stopping, since only a restart can tell what is on disk",
		  err_text(p->dead_err));
	stop(p);
}

/* On the store's writer thread. */
static void on_dead(void *context, int err)
{
	struct poll *p = context;
	p->dead_err = err;
	struct executor *executor = loop_executor(p->loop);
	executor->post(executor, &p->dead_task);
}

/* ---- Starting -------------------------------------------------------------------------------- */

static int open_spool(struct poll *p, struct errbuf *e)
{
	const struct conf *c = p->conf;
	const struct lmdb_options options = {
		.path = c->data,
		.map_bytes = (uint64_t)c->store_map_bytes,
		.queue_max_bytes = (uint64_t)c->store_queue_max_bytes,
		.min_free_bytes = (uint64_t)c->store_min_free_bytes,
		.on_dead = on_dead,
		.context = p,
	};
	/* Its sentences name the directory. */
	int err = lmdb_open(&options, &p->store, e);
	if (err)
		return err;
	const struct queue_local_options spool = {
		.name = spool_name,
		.workers = 1,
		.messages_max = (uint64_t)c->queue_messages_max,
		.bytes_max = (uint64_t)c->queue_bytes_max,
		.store = p->store,
		.clock = clock_real(),
	};
	return queue_local_open(&spool, &p->spool, e);
}

/* On the poller's thread. Whose OIDSet it is the server will find out. */
static int put(void *owner, UNUSED const struct oidset *oidset, struct slice device,
	       struct slice message)
{
	struct poll *p = owner;
	return poll_sink_put(&p->sink, p->spool, device, message);
}

static int open_poller(struct poll *p, struct errbuf *e)
{
	const struct poller_options options = {
		.clock = clock_real(),
		.name = slice_of(p->name),
		.sink = {.put = put, .owner = p},
		.executor = loop_executor(p->loop),
	};
	p->sink.executor = options.executor;
	return poller_open(&options, &p->poller, e);
}

static void begin_talking(struct poll *p)
{
	const struct poll_handover_options handover = {
		.server = p->server,
		.spool = p->spool,
		.store = p->store,
		.clock = clock_real(),
		.cancelled = &p->cancelled,
		.executor = loop_executor(p->loop),
	};
	p->handover = poll_handover_new(&handover);
	const struct poll_follow_options follow = {
		.server = p->server,
		.name = p->name,
		.file = p->file,
		.conf = p->conf,
		.files = files_real(),
		.clock = clock_real(),
		.poller = p->poller,
		.handover = p->handover,
		.spool = p->spool,
		.cancelled = &p->cancelled,
		.executor = loop_executor(p->loop),
	};
	p->follow = poll_follow_new(&follow);
}

/* Of the server's routes those that say how this process does. */
static size_t pick_routes(struct poll *p)
{
	static const char *const paths[] = {"/metrics",    "/-/healthy",        "/-/ready",
					    "/api/queues", "/api/queues/aside", "/api/queues/retry",
					    "/api/clock",  "/api/clock/accept"};
	size_t count = 0;
	for (size_t i = 0; i < api_route_count; i++) {
		for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
			if (strcmp(api_routes[i].path, paths[k]) == 0)
				p->routes[count++] = api_routes[i];
		}
	}
	ASSERT(count == ARRAY_LEN(paths));
	return count;
}

static int open_http(struct poll *p, struct errbuf *e)
{
	const struct conf *c = p->conf;
	bool told = c->origins[CONF_ID_listen].file != NULL;
	struct loop_address address;
	p->queue_def =
		(struct queue_def){.name = spool_name, .persister = OIDSET_COUNTERS, .workers = 1};
	p->queue_defs[0] = &p->queue_def;
	p->queues_only.queues = p->queue_defs;
	p->queues_only.queue_count = 1;
	p->queues[0] = p->spool;
	p->api = (struct api){
		.loop = p->loop,
		.clock = lmdb_clock(p->store),
		.store = p->store,
		.inventory_conf = &p->queues_only,
		.queues = p->queues,
		.conf = c,
		.started_ms = clock_wall_ms(clock_real()),
		.program = command_program(),
	};
	p->http = http_server_new(p->loop, clock_real(), &http_limits_default, p->routes,
				  pick_routes(p), &p->api);
	int err = loop_address_parse(slice_of(told ? c->listen : LISTEN_PRESET), &address, e);
	err = err ? err : http_server_listen(p->http, &address, e);
	return err ? errbuf_prefix(e, err, "--listen") : 0;
}

static int open_signals(struct poll *p, struct errbuf *e)
{
	static const struct {
		int number;
		loop_signal_fn *fn;
	} rows[] = {
		{SIGINT, on_stop_signal}, {SIGTERM, on_stop_signal}, {SIGHUP, on_reload_signal}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int err = loop_signal_open(p->loop, rows[i].number, rows[i].fn, p, &p->signals[i]);
		if (err)
			return errbuf_set(e, err, "signal %d: %s", rows[i].number, err_text(err));
	}
	return 0;
}

static void print_ready(const struct poll *p)
{
	struct loop_address address = http_server_address(p->http);
	char text[LOOP_ADDRESS_TEXT_BYTES];
	loop_address_text(&address, text);
	printf("granary " GRANARY_VERSION " polls as %s for %s with the spool in %s; status at "
	       "http://%s/-/ready, http://%s/metrics\n",
	       p->name, p->server, p->conf->data, text, text);
	fflush(stdout);
}

static int start(struct poll *p, struct errbuf *e)
{
	p->stop_timer = loop_timer_new(p->loop, on_stop_timer, p);
	int err = open_signals(p, e);
	err = err ? err : open_http(p, e);
	err = err ? err : open_poller(p, e);
	if (err)
		return err;
	begin_talking(p);
	p->api.ready = true;
	print_ready(p);
	return 0;
}

static int run(struct poll *p)
{
	struct errbuf e = {""};
	/* The loop first: the store's writer may report to it as soon as it runs. */
	p->loop = loop_new();
	loop_set_kind(p->loop, LOOP_MAIN);
	p->status = open_spool(p, &e) ? EXIT_FAILED : EXIT_OK;
	if (!p->status && start(p, &e)) {
		p->status = EXIT_FAILED;
		stop(p);
	}
	if (p->status)
		visible_complain("granary poll: %s", e.text);
	if (p->stop_timer)
		loop_run(p->loop);
	if (p->http)
		http_server_free(p->http);
	queue_close(p->spool);
	store_close(p->store);
	loop_free(p->loop);
	if (!p->status && !p->dead_err)
		log_info("stopped");
	return p->dead_err ? EXIT_IO : p->status;
}

/* ---- The command line ------------------------------------------------------------------------ */

struct words {
	char *conf[ARGS_MAX]; /* arguments of the configuration */
	int conf_count;
	const char *server, *name;
};

static const char *take_value(const char *option, int argc, char *const *argv, int *at)
{
	size_t len = strlen(option);
	if (strncmp(argv[*at], option, len) != 0)
		return NULL;
	if (argv[*at][len] == '=')
		return argv[*at] + len + 1;
	if (argv[*at][len] || *at + 1 >= argc)
		return NULL;
	return argv[++*at];
}

static int divide(int argc, char *const *argv, struct words *words, struct errbuf *e)
{
	if (argc > ARGS_MAX)
		return errbuf_set(e, ERR_LIMIT, "more than %d words", ARGS_MAX);
	for (int i = 0; i < argc; i++) {
		const char *server = take_value("--server", argc, argv, &i);
		const char *name = server ? NULL : take_value("--name", argc, argv, &i);
		if (!server && !name)
			words->conf[words->conf_count++] = argv[i];
		words->server = server ? server : words->server;
		words->name = name ? name : words->name;
	}
	return 0;
}

static int check_words(struct poll *p, const struct words *words, struct errbuf *e)
{
	if (!words->server)
		return errbuf_set(e, ERR_INVALID, "--server is missing: the URL of the server");
	if (strchr(words->server, '@'))
		return errbuf_set(
			e, ERR_INVALID,
			"--server with a password in it is shown to everybody by ps and the "
			"log");
	if (!p->conf->origins[CONF_ID_data].file)
		return errbuf_set(e, ERR_INVALID, "--data is missing: the directory of the spool");
	if (words->name && (!*words->name || strlen(words->name) > INVENTORY_NAME_MAX_BYTES))
		return errbuf_set(e, ERR_INVALID, "--name has 1 to %d bytes",
				  INVENTORY_NAME_MAX_BYTES);
	p->server = words->server;
	if (words->name)
		snprintf(p->name, sizeof(p->name), "%s", words->name);
	else if (gethostname(p->name, sizeof(p->name) - 1) || !p->name[0])
		snprintf(p->name, sizeof(p->name), "localhost");
	snprintf(p->file, sizeof(p->file), "%s/inventory.json", p->conf->data);
	return 0;
}

/* What is wrong with the secrets is said before anything is begun. */
static int check_secrets(const struct poll *p, struct errbuf *e)
{
	struct inventory_conf *made;
	int err = inventory_conf_read(p->conf, files_real(), &made, e);
	if (!err)
		inventory_conf_release(made);
	return err;
}

static int read_words(struct poll *p, int argc, char *const *argv, struct errbuf *e)
{
	static struct words words;
	enum log_level level;
	int err = divide(argc, argv, &words, e);
	err = err ? err : conf_read(p->conf, files_real(), words.conf_count, words.conf, e);
	err = err ? err : check_words(p, &words, e);
	err = err ? err : check_secrets(p, e);
	if (!err && log_level_parse(p->conf->log_level, &level))
		log_set_level(level);
	return err ? err : fault_arm_from_env(e);
}

int command_poll(int argc, char *const *argv)
{
	struct errbuf e = {""};
	struct poll p = {.conf = conf_new(), .dead_task.run = run_dead};
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	int status = EXIT_WRONG_USE;
	if (read_words(&p, argc, argv, &e))
		visible_complain("granary poll: %s; `granary help poll` shows how it is used",
				 e.text);
	else
		status = run(&p);
	conf_free(p.conf);
	return status;
}
