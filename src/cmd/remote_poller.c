/* `granary poll`: the poller as a process of its own, near the devices (doc/remote-poller.md).
 *
 *   server --GET inventory--> remote_follow --> poller (snmp/)
 *                                                  |
 *   server <--POST polls-- remote_handover <-- spool
 *
 * The spool is the durable queue of queue/local in a small store of its own. Polling waits for
 * nobody: what the spool does not take waits in the poller's ring, within its bound.
 *
 * Order of events. The configuration and the secrets are read, the store opened, the spool in it;
 * then the poller starts with the inventory of the last time, and the two threads that talk to the
 * server. On the main loop remain the signals, the completions of the spool, and the status page.
 * Stopping is the list `phases`: who gives work ends before who takes it, and the store last. */
#include <stdatomic.h>
#include <unistd.h>

#include "api/routes.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/client_private.h"
#include "cmd/command.h"
#include "cmd/queue_sink.h"
#include "cmd/remote_follow.h"
#include "cmd/remote_handover.h"
#include "cmd/serve_addresses.h"
#include "cmd/serve_conf.h"
#include "cmd/stop_phases.h"
#include "cmd/terminal_escape.h"
#include "conf/conf.h"
#include "inventory/inventory.h"
#include "loop/loop.h"
#include "queue/local/local.h"
#include "snmp/poller.h"
#include "store/lmdb/lmdb.h"

enum {
	STOP_MS = 30000,
	FILE_MAX_BYTES = 4096,
};

#define LISTEN_PRESET "127.0.0.1:8471" /* beside the server's own */

static const struct slice spool_name = SLICE("spool");

struct remote_poller {
	struct conf *conf;
	const char *server, *ca;          /* NULL: it is to be trusted as the system does */
	char token[TOKEN_TEXT_BYTES + 1]; /* empty: none */
	char name[INVENTORY_NAME_MAX_BYTES + 1], file[FILE_MAX_BYTES];
	struct store *store;
	struct loop *loop;
	struct queue *spool;
	struct poller *poller;
	struct queue_sink sink;
	struct remote_handover *handover;
	struct remote_follow *follow;
	struct http_server *http;
	struct serve_addresses addresses;
	/* What the status page's handlers want of a server. */
	struct api api;
	struct http_route routes[8];
	struct queue_def queue_def;
	const struct queue_def *queue_defs[1];
	struct inventory_conf queues_only;
	struct queue *queues[1];
	atomic_bool cancelled;
	struct stop_phases stopping;
	struct watched watched;
	int status;
};

/* ---- Stopping -------------------------------------------------------------------------------- */

static void remote_poller_follow_stopped(void *owner)
{
	struct remote_poller *p = owner;
	p->follow = NULL;
	p->stopping.phase_over = true;
}

static void remote_poller_begin_follow(void *owner)
{
	struct remote_poller *p = owner;
	p->stopping.phase_over = p->follow == NULL;
	atomic_store(&p->cancelled, true);
	if (p->follow)
		remote_follow_stop(p->follow, remote_poller_follow_stopped, p);
}

static void remote_poller_handover_stopped(void *owner)
{
	struct remote_poller *p = owner;
	p->handover = NULL;
	p->stopping.phase_over = true;
}

static void remote_poller_begin_handover(void *owner)
{
	struct remote_poller *p = owner;
	p->stopping.phase_over = p->handover == NULL;
	if (p->handover)
		remote_handover_stop(p->handover, remote_poller_handover_stopped, p);
}

static void remote_poller_poller_closed(void *owner)
{
	struct remote_poller *p = owner;
	p->poller = NULL;
}

static void remote_poller_begin_poller(void *owner)
{
	struct remote_poller *p = owner;
	if (p->poller)
		poller_close(p->poller, remote_poller_poller_closed, p);
}

static bool remote_poller_poller_over(const void *owner)
{
	const struct remote_poller *p = owner;
	return !p->poller && !p->sink.on_their_way;
}

static void remote_poller_begin_http(void *owner)
{
	struct remote_poller *p = owner;
	p->api.ready = false;
	p->stopping.phase_over = p->http == NULL;
	if (p->http)
		http_server_stop(p->http, 0, stop_phases_end_phase, &p->stopping);
}

static bool remote_poller_http_over(const void *owner)
{
	const struct remote_poller *p = owner;
	return p->stopping.phase_over && !p->api.calls;
}

static const struct stop_phase phases[] = {
	{"inventory", remote_poller_begin_follow, NULL},
	{"hand-over", remote_poller_begin_handover, NULL},
	{"polls under way", remote_poller_begin_poller, remote_poller_poller_over},
	{"status page", remote_poller_begin_http, remote_poller_http_over},
};

static void remote_poller_on_reload_signal(void *owner, UNUSED int signum)
{
	struct remote_poller *p = owner;
	log_info("the secrets are read again");
	if (p->follow)
		remote_follow_refresh(p->follow);
}

/* ---- Starting -------------------------------------------------------------------------------- */

static int remote_poller_open_spool(struct remote_poller *p, struct errbuf *e)
{
	const struct conf *c = p->conf;
	const struct lmdb_options options = {
		.path = c->data,
		.map_bytes = (uint64_t)c->store_map_bytes,
		.queue_max_bytes = (uint64_t)c->store_queue_max_bytes,
		.min_free_bytes = (uint64_t)c->store_min_free_bytes,
		.on_dead = stop_phases_on_dead,
		.on_replay = stop_phases_on_replay,
		.context = &p->stopping,
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
static int remote_poller_put(void *owner, UNUSED const struct oidset *oidset, struct slice device,
			     struct slice message)
{
	struct remote_poller *p = owner;
	return queue_sink_put(&p->sink, p->spool, device, message);
}

static int remote_poller_open_poller(struct remote_poller *p, struct errbuf *e)
{
	const struct poller_options options = {
		.clock = clock_real(),
		.name = slice_of(p->name),
		.sink = {.put = remote_poller_put, .owner = p},
		.executor = loop_executor(p->loop),
	};
	p->sink.executor = options.executor;
	return poller_open(&options, &p->poller, e);
}

static void remote_poller_begin_talking(struct remote_poller *p)
{
	const char *token = p->token[0] ? p->token : NULL;
	const struct remote_handover_options handover = {
		.server = p->server,
		.token = token,
		.ca = p->ca,
		.spool = p->spool,
		.store = p->store,
		.clock = clock_real(),
		.cancelled = &p->cancelled,
		.executor = loop_executor(p->loop),
	};
	p->handover = remote_handover_new(&handover);
	const struct remote_follow_options follow = {
		.server = p->server,
		.token = token,
		.ca = p->ca,
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
	p->follow = remote_follow_new(&follow);
}

/* Of the server's routes those that say how this process does. */
static size_t remote_poller_pick_routes(struct remote_poller *p)
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

static int remote_poller_open_http(struct remote_poller *p, struct errbuf *e)
{
	const struct conf *c = p->conf;
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
		.slow_lines = {.lines_max = API_SLOW_LINES_MAX},
		.started_ms = clock_wall_ms(clock_real()),
		.program = command_program(),
	};
	p->http = http_server_new(p->loop, clock_real(), &http_limits_default, p->routes,
				  remote_poller_pick_routes(p), &p->api);
	int err = serve_addresses_check_reach(&p->addresses, c,
					      "the status page asks nobody for a credential", e);
	return err ? err : serve_addresses_listen(&p->addresses, c, p->http, e);
}

static void remote_poller_print_ready(const struct remote_poller *p)
{
	struct buf text;
	buf_init(&text, SERVE_ADDRESSES_TEXT_BYTES);
	serve_addresses_print(&p->addresses, &text);
	printf("granary " GRANARY_VERSION " polls as %s for %s with the spool in %s; status at "
	       "%.*s (/-/ready, /metrics)\n",
	       p->name, p->server, p->conf->data, (int)text.len, text.data);
	fflush(stdout);
	buf_release(&text);
}

static int64_t remote_poller_spool_moved_ms(void *owner)
{
	return lmdb_moved_ms(((const struct remote_poller *)owner)->store);
}

static int remote_poller_start(struct remote_poller *p, struct errbuf *e)
{
	int err = stop_phases_open_signals(&p->stopping, remote_poller_on_reload_signal, e);
	err = err ? err : remote_poller_open_http(p, e);
	err = err ? err : remote_poller_open_poller(p, e);
	if (err)
		return err;
	remote_poller_begin_talking(p);
	p->api.ready = true;
	remote_poller_print_ready(p);
	p->watched = (struct watched){"the writer of the spool", remote_poller_spool_moved_ms, p};
	stop_phases_ready(&p->stopping, &p->watched, 1);
	return 0;
}

static int remote_poller_loop(struct remote_poller *p)
{
	struct errbuf e = {""};
	/* The loop first: the store's writer may report to it as soon as it runs. */
	p->loop = loop_new();
	loop_set_kind(p->loop, LOOP_MAIN);
	p->stopping = (struct stop_phases){.loop = p->loop,
					   .phases = phases,
					   .phase_count = ARRAY_LEN(phases),
					   .owner = p,
					   .bound_ms = STOP_MS};
	bool is_open = !remote_poller_open_spool(p, &e);
	p->status = is_open && !remote_poller_start(p, &e) ? EXIT_OK : EXIT_FAILED;
	if (p->status)
		terminal_complain("granary poll: %s", e.text);
	if (p->status && is_open)
		stop_phases_begin(&p->stopping);
	if (is_open)
		loop_run(p->loop);
	if (p->http)
		http_server_free(p->http);
	queue_close(p->spool);
	store_close(p->store);
	loop_free(p->loop);
	if (!p->status && !p->stopping.dead_err)
		log_info("stopped");
	return p->stopping.dead_err ? EXIT_IO : p->status;
}

/* ---- The command line ------------------------------------------------------------------------ */

struct remote_poller_args {
	struct command_args line;
	const char *name;
};

static int remote_poller_check_words(struct remote_poller *p, const struct remote_poller_args *args,
				     struct errbuf *e)
{
	const char *server = args->line.server, *name = args->name;
	if (!server)
		return errbuf_set(e, ERR_INVALID, "--server is missing: the URL of the server");
	if (strchr(server, '@'))
		return errbuf_set(
			e, ERR_INVALID,
			"--server with a password in it is shown to everybody by ps and the "
			"log");
	if (!p->conf->origins[CONF_ID_data].file)
		return errbuf_set(e, ERR_INVALID, "--data is missing: the directory of the spool");
	if (name && (!*name || strlen(name) > INVENTORY_NAME_MAX_BYTES))
		return errbuf_set(e, ERR_INVALID, "--name has 1 to %d bytes",
				  INVENTORY_NAME_MAX_BYTES);
	p->server = server;
	p->ca = client_ca_file(&args->line);
	int err = client_read_token(&args->line, p->token, e);
	if (err)
		return err;
	if (name)
		snprintf(p->name, sizeof(p->name), "%s", name);
	else if (gethostname(p->name, sizeof(p->name) - 1) || !p->name[0])
		snprintf(p->name, sizeof(p->name), "localhost");
	snprintf(p->file, sizeof(p->file), "%s/inventory.json", p->conf->data);
	return 0;
}

/* What is wrong with the secrets is said before anything is begun. */
static int remote_poller_check_secrets(const struct remote_poller *p, struct errbuf *e)
{
	struct inventory_conf *made;
	int err = inventory_conf_read(p->conf, files_real(), &made, e);
	if (!err)
		inventory_conf_release(made);
	return err;
}

static int remote_poller_read_words(struct remote_poller *p, const struct remote_poller_args *args,
				    struct errbuf *e)
{
	int err = conf_read(p->conf, files_real(), args->line.conf_argc, args->line.conf_argv, e);
	err = err ? err : remote_poller_check_words(p, args, e);
	err = err ? err : remote_poller_check_secrets(p, e);
	err = err ? err : serve_addresses_read(p->conf, LISTEN_PRESET, &p->addresses, e);
	if (!err)
		serve_conf_set_log(p->conf);
	return err ? err : fault_arm_from_env(e);
}

static int remote_poller_run(const struct command_args *args)
{
	struct errbuf e = {""};
	struct remote_poller p = {.conf = conf_new()};
	stop_phases_begin_process();
	int status = EXIT_WRONG_USE;
	if (remote_poller_read_words(&p, CONTAINER_OF(args, const struct remote_poller_args, line),
				     &e))
		(void)command_usage(args, "%s", e.text);
	else
		status = remote_poller_loop(&p);
	serve_addresses_release(&p.addresses);
	conf_free(p.conf);
	return status;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, remote_poller_args, field, __VA_ARGS__)
static const struct command_option remote_poller_options[] = {
	COMMAND_ROW(command_text, command_args, server, "--server", "URL",
		    "where the server is: http://, https:// or unix:PATH", .required = true),
	CLIENT_TOKEN_FILE,
	CLIENT_CA_FILE,
	ROW(conf, line, "--data", "DIR", "the spool, and the last known inventory; made if absent",
	    .required = true),
	ROW(text, name, "--name", "NAME", "what devices call this poller",
	    .otherwise = "the host's name"),
	ROW(conf, line, "--snmp.secrets_file", "FILE",
	    "credentials, by the names that devices have"),
	ROW(conf, line, "--listen", "ADDRESS", "where /metrics and /api/queues are",
	    .otherwise = LISTEN_PRESET),
	ROW(conf, line, "--queue.bytes_max", "SIZE",
	    "how much may wait in the spool; beyond it and some memory the oldest polls in memory "
	    "are dropped and counted"),
	ROW(conf, line, "--queue.messages_max", "N", "and how many polls"),
	ROW(conf, line, "--store.min_free", "SIZE",
	    "takes nothing more while the disk has less room"),
	ROW(conf, line, "--log.level", "LEVEL", "what is logged"),
	ROW(conf, line, "--log.format", "FORMAT", "how a line looks: text, json or journal"),
	ROW(conf, line, "--config", "FILE",
	    "a file with such options, as `granary help serve` lists them"),
};

const struct command command_poll = {
	.name = "poll",
	.summary = "poll devices near them, for a server elsewhere",
	.about = "Polls devices near them for a server elsewhere: those whose `poller` is NAME "
		 "there "
		 "(`granary device add ... --poller NAME`). Follows changes of the inventory "
		 "without a restart. Results are kept in DIR until the server has them on disk, so "
		 "nothing that was polled is lost while the server is away. SIGHUP reads the "
		 "secrets again; SIGINT and SIGTERM stop cleanly.\n"
		 "How it goes: `granary poller list` and `granary device list` at the server; here "
		 "`granary queue --server http://" LISTEN_PRESET
		 "`, with --aside spool for what the server refused, with --retry spool to send "
		 "that once more.\n"
		 "Exit status: 0 stopped, 1 could not start, 2 wrong use, 74 a commit failed.\n",
	COMMAND_TAKES(remote_poller_options, remote_poller_args),
	.run = remote_poller_run,
	.takes_conf = true,
};
