/* The server: puts the parts together, and takes them apart.
 *
 * Order of events. The configuration is read, the store opened (which replays its journal), the
 * catalog, ingest and HTTP put on it; then the address is bound and a line on standard output says
 * that the server is ready. Everything but the store's own threads and one worker runs on the loop.
 *
 * Stopping is a list of phases (below), each begun when the one before has finished: HTTP takes
 * nothing new and finishes what it has, then the other doors, the host metrics, ingest's writes and
 * the catalog; at last the store is closed. The whole has a bound: what has not finished by then is
 * given up, which is no worse than a crash, and no answered write is lost by one. A signal that
 * comes a second or more after the first gives up at once.
 *
 * A failed commit stops the server the same way, with a short bound and status 74: the waiting
 * requests are answered with an error, and what the disk holds is known again after a restart. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/call.h"
#include "api/admin/pollers.h"
#include "api/routes.h"
#include "api/esmond/zone.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "cmd/command.h"
#include "cmd/doors.h"
#include "cmd/polling.h"
#include "cmd/rollups.h"
#include "cmd/visible.h"
#include "conf/conf.h"
#include "http/http.h"
#include "ingest/host.h"
#include "ingest/ingest.h"
#include "inventory/inventory.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "query/query.h"
#include "store/lmdb/lmdb.h"

enum {
	STOP_POLL_MS = 5,
	/* On top of the configured time for requests: for the writes and the store. */
	STOP_EXTRA_MS = 30000,
	STOP_DEAD_MS = 2000, /* after a failed commit */
	/* Signals that come together are one wish: a supervisor's goes to the process and to its
	 * group. */
	STOP_AGAIN_MS = 1000,
	SWEEP_INTERVAL_MS = 3600 * 1000,
	INGEST_TICK_MS = 200,
	HOSTNAME_MAX_BYTES = 256,
	/* Descriptors that are left to what is opened later: files, a worker that takes the place
	 * of one that hangs, the spare places of HTTP; and connections to be of any use. */
	DESCRIPTORS_LATER = 32,
	DESCRIPTORS_SERVED_MIN = 8,
};

struct serve {
	struct conf *conf;
	struct inventory_conf *inventory_conf; /* OIDSets, queues, credentials */
	int argc;                              /* to read the configuration again */
	char *const *argv;
	struct store *store;
	struct loop *loop;
	struct pool *pool, *filter_pool;
	struct catalog *catalog;
	struct ingest *ingest;
	struct query_engine *queries;
	struct inventory_keeper *inventory;
	struct v2_zones *zones;
	struct pollers *pollers;
	struct host *host;
	struct http_server *http;
	struct doors *doors;
	struct polling *polling;
	struct rollups rollups;
	struct rollup_deletions *deletions;
	struct http_route *routes;
	struct api api;
	struct loop_signal *signals[3];
	struct loop_timer *sweep_timer, *stop_timer, *ingest_timer;
	size_t phase; /* of stopping; 0: serving */
	int64_t stop_ms, give_up_ms;
	bool phase_over;
	struct task dead_task;
	_Atomic int dead_err; /* set by the store's writer */
	int status;
};

/* ---- Stopping ------------------------------------------------------------------------------- */

static void phase_over(void *owner)
{
	struct serve *s = owner;
	s->phase_over = true;
}

static void begin_http(struct serve *s)
{
	s->api.ready = false;
	int64_t grace_ms = s->dead_err ? STOP_DEAD_MS : s->conf->stop_timeout_ms;
	http_server_stop(s->http, grace_ms, phase_over, s);
}

static void begin_doors(struct serve *s)
{
	s->phase_over = s->doors == NULL;
	if (s->doors)
		doors_stop(s->doors, s->dead_err ? STOP_DEAD_MS : s->conf->stop_timeout_ms,
			   phase_over, s);
}

static void begin_polling(struct serve *s)
{
	polling_stop(s->polling);
}

static bool is_polling_over(const struct serve *s)
{
	return polling_over(s->polling);
}

static void begin_host(struct serve *s)
{
	s->phase_over = s->host == NULL;
	if (s->host)
		host_close(s->host, phase_over, s);
	s->host = NULL;
}

/* What is left of a deletion is done after the next start. */
static void begin_queries(struct serve *s)
{
	api_calls_stop(&s->api);
	if (s->deletions)
		rollup_deletions_stop(s->deletions);
}

/* Reads of queries whose clients are gone, and what such clients have sent, are still at work.
 * Nothing tells of their end, so the stop timer looks. */
static bool queries_over(const struct serve *s)
{
	return query_engine_idle(s->queries) && !s->api.calls &&
	       (!s->deletions || rollup_deletions_idle(s->deletions));
}

static bool writes_over(const struct serve *s)
{
	return ingest_idle(s->ingest);
}

static bool inventory_over(const struct serve *s)
{
	return !s->inventory || inventory_keeper_idle(s->inventory);
}

static void begin_rollups(struct serve *s)
{
	rollups_stop(&s->rollups);
}

static bool are_rollups_over(const struct serve *s)
{
	return rollups_over(&s->rollups);
}

static void begin_catalog(struct serve *s)
{
	query_engine_free(s->queries);
	catalog_close(s->catalog, phase_over, s);
}

static void begin_end(struct serve *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->signals); i++)
		loop_signal_close(s->signals[i]);
	loop_timer_close(s->sweep_timer);
	loop_timer_close(s->stop_timer);
	loop_timer_close(s->ingest_timer);
	loop_stop(s->loop);
}

/* A phase is over when `over` says so, or else when phase_over() was called. */
static const struct phase {
	const char *name;
	void (*begin)(struct serve *s);
	bool (*over)(const struct serve *s);
} phases[] = {
	{"serving", NULL, NULL},
	{"requests at hand", begin_http, NULL},
	{"streams", begin_doors, NULL},
	{"queries", begin_queries, queries_over},
	{"polling", begin_polling, is_polling_over},
	{"host metrics", begin_host, NULL},
	{"writes", NULL, writes_over},
	{"inventory", NULL, inventory_over},
	{"roll-ups", begin_rollups, are_rollups_over},
	{"catalog", begin_catalog, NULL},
	{"end", begin_end, NULL},
};

static bool is_phase_over(const struct serve *s)
{
	const struct phase *phase = &phases[s->phase];
	return phase->over ? phase->over(s) : s->phase_over;
}

static void stop_step(struct serve *s)
{
	while (s->phase + 1 < ARRAY_LEN(phases) && is_phase_over(s)) {
		s->phase++;
		s->phase_over = false;
		if (phases[s->phase].begin)
			phases[s->phase].begin(s);
	}
}

static void on_stop_timer(void *owner)
{
	struct serve *s = owner;
	stop_step(s);
	if (loop_now_ms(s->loop) > s->give_up_ms) {
		log_error("stop: gave up waiting for: %s", phases[s->phase].name);
		_exit(s->dead_err ? EXIT_IO : EXIT_FAILED);
	}
}

static void stop(struct serve *s)
{
	if (s->stop_ms)
		return;
	int64_t bound_ms =
		s->dead_err ? 2 * STOP_DEAD_MS : s->conf->stop_timeout_ms + STOP_EXTRA_MS;
	s->stop_ms = loop_now_ms(s->loop);
	s->give_up_ms = s->stop_ms + bound_ms;
	/* The loop stands still while the store is closed; this bounds that, too. */
	alarm((unsigned)(bound_ms / 1000) + STOP_EXTRA_MS / 1000);
	loop_timer_stop(s->sweep_timer);
	loop_timer_start(s->stop_timer, 0, STOP_POLL_MS);
	s->phase_over = true;
}

static void on_stop_signal(void *owner, int signum)
{
	struct serve *s = owner;
	if (s->stop_ms == 0) {
		log_info("signal %d: stopping", signum);
		stop(s);
	} else if (loop_now_ms(s->loop) - s->stop_ms >= STOP_AGAIN_MS) {
		log_warn("signal %d again: giving up what is at hand", signum);
		_exit(EXIT_FAILED);
	}
}

static void run_dead(struct task *task)
{
	struct serve *s = CONTAINER_OF(task, struct serve, dead_task);
	log_error("a commit failed: %s; stopping, since only a restart can tell what is on disk",
		  err_text(s->dead_err));
	stop(s);
}

/* On the store's writer thread. */
static void on_dead(void *context, int err)
{
	struct serve *s = context;
	s->dead_err = err;
	struct executor *executor = loop_executor(s->loop);
	executor->post(executor, &s->dead_task);
}

/* ---- While serving -------------------------------------------------------------------------- */

static void set_log_level(const struct conf *conf)
{
	enum log_level level;
	bool known = log_level_parse(conf->log_level, &level);
	ASSERT(known); /* the option's words are the log's */
	log_set_level(level);
}

/* Each option that reloads, and how its new value is taken over. */
static const struct {
	int option;
	void (*take_over)(const struct conf *conf);
} reloads[] = {{CONF_ID_log_level, set_log_level}};

static void check_reloads(void)
{
	size_t count = 0;
	for (int id = 0; id < CONF_OPTIONS; id++)
		count += conf_options[id].reloads;
	ASSERT(count == ARRAY_LEN(reloads));
	for (size_t i = 0; i < count; i++)
		ASSERT(conf_options[reloads[i].option].reloads);
}

static void take_over(struct serve *s, const struct conf *conf,
		      const struct inventory_conf *inventory_conf)
{
	const struct inventory_conf *mine = s->inventory_conf;
	struct buf fixed;
	buf_init(&fixed, 64 << 10);
	conf_fixed_changes(s->conf, conf, &fixed);
	if (inventory_conf->oidset_files_hash != mine->oidset_files_hash)
		buf_printf(&fixed, "%sthe files of snmp.oidset_files", fixed.len ? ", " : "");
	if (inventory_conf->secrets_hash != mine->secrets_hash)
		buf_printf(&fixed, "%sthe file of snmp.secrets_file", fixed.len ? ", " : "");
	if (fixed.len)
		log_warn("reload: these take effect at the next start only: %.*s", (int)fixed.len,
			 fixed.data);
	for (size_t i = 0; i < ARRAY_LEN(reloads); i++)
		reloads[i].take_over(conf);
	log_info("reload: done%s", fixed.len ? ", but for these" : "");
	buf_release(&fixed);
}

/* Only options that reload are taken over; the rest is named. The new struct is not kept: others
 * hold pointers into the first. */
static void on_reload_signal(void *owner, UNUSED int signum)
{
	struct serve *s = owner;
	struct errbuf e = {""};
	struct conf *conf = conf_new();
	struct inventory_conf *inventory_conf = NULL;
	if (conf_read(conf, files_real(), s->argc, s->argv, &e) ||
	    inventory_conf_read(conf, files_real(), &inventory_conf, &e))
		log_error("reload: nothing is changed: %s", e.text);
	else
		take_over(s, conf, inventory_conf);
	inventory_conf_release(inventory_conf);
	conf_free(conf);
}

static void on_sweep_timer(void *owner)
{
	struct serve *s = owner;
	catalog_sweep(s->catalog);
}

static void on_ingest_timer(void *owner)
{
	struct serve *s = owner;
	ingest_tick(s->ingest);
	rollups_tick(&s->rollups);
}

/* ---- Starting ------------------------------------------------------------------------------- */

static int open_store(struct serve *s, struct errbuf *e)
{
	const struct conf *c = s->conf;
	const struct lmdb_options options = {
		.path = c->data,
		.map_bytes = (uint64_t)c->store_map_bytes,
		.journal_max_bytes = (uint64_t)c->store_journal_max_bytes,
		.journal_max_age_ms = c->store_journal_max_age_ms,
		.head_max_bytes = (uint64_t)c->store_head_max_bytes,
		.queue_max_bytes = (uint64_t)c->store_queue_max_bytes,
		.min_free_bytes = (uint64_t)c->store_min_free_bytes,
		.read_threads = (unsigned)c->store_read_threads,
		.on_dead = on_dead,
		.context = s,
	};
	/* Its sentences name the directory. */
	return lmdb_open(&options, &s->store, e);
}

static struct catalog *new_catalog(struct serve *s)
{
	const struct conf *c = s->conf;
	struct catalog_options options = catalog_options_default();
	options.tags_max = (size_t)c->catalog_tags_max;
	options.name_max_bytes = (size_t)c->catalog_name_max_bytes;
	options.value_max_bytes = (size_t)c->catalog_value_max_bytes;
	options.series_per_tenant_max = (uint64_t)c->catalog_series_per_tenant;
	options.new_series_per_minute_max = (uint64_t)c->catalog_new_series_per_minute;
	options.index_max_bytes = (size_t)c->catalog_index_max_bytes;
	options.longest_retention_ms =
		retention_longest_raw_ms(&s->rollups.retention, c->retention_raw_ms);
	return catalog_new(s->store, lmdb_clock(s->store), loop_executor(s->loop), &options);
}

static struct ingest *new_ingest(struct serve *s)
{
	const struct ingest_options options = {
		.store = s->store,
		.catalog = s->catalog,
		.clock = lmdb_clock(s->store),
		.executor = loop_executor(s->loop),
		.tenant_tag = slice_of(s->conf->ingest_tenant_tag),
		.retention_ms = s->conf->retention_raw_ms,
		.retention_rules = &s->rollups.retention,
		/* Here 0 is none, there it is the default. */
		.ahead_ms = s->conf->ingest_future_max_ms ? s->conf->ingest_future_max_ms : -1,
		.in_flight_max_bytes = (size_t)s->conf->ingest_in_flight_max_bytes,
		.cache_max_bytes = (size_t)s->conf->ingest_cache_max_bytes,
		.wait_max_ms = s->conf->ingest_wait_max_ms,
		.texts_left_out = strcmp(s->conf->line_text_fields, "skip") == 0,
		.rollup_partitions =
			s->rollups.grains.count ? (uint32_t)s->conf->rollup_partitions : 0,
		.rollup_slot_ms = s->conf->rollup_slot_ms,
		.rollup_quiet_ms = s->conf->rollup_quiet_ms,
		.rollup_skew_max_ms = s->conf->rollup_skew_max_ms,
		.rollup_track = s->rollups.track,
		.late_keep = s->rollups.keeps_late,
		.late_retention_ms = s->rollups.late.kept_ms,
		.rollup_grains = &s->rollups.grains,
	};
	return ingest_new(&options);
}

static struct query_engine *new_queries(struct serve *s)
{
	const struct conf *c = s->conf;
	const struct query_options options = {
		.store = s->store,
		.catalog = s->catalog,
		.clock = lmdb_clock(s->store),
		.executor = loop_executor(s->loop),
		.loop = s->loop,
		.pool = s->filter_pool,
		.series_max = (size_t)c->query_series_max,
		.points_max = (uint64_t)c->query_points_max,
		.samples_max = (uint64_t)c->query_samples_max,
		.parallel_max = (size_t)c->store_read_threads,
		.range_max_ms = c->query_range_max_ms,
		.timeout_ms = c->query_timeout_ms,
		.concurrent_max = (size_t)c->query_concurrent_max,
		.retention_ms = c->retention_raw_ms,
		.retention_rules = &s->rollups.retention,
		.home_of = polling_home_of,
		.home_owner = s->polling,
		.grains = &s->rollups.grains,
		.rolled_before_ms = rollups_before_ms,
		.rolled_since_ms = rollups_since_ms,
		.late_after_ms = s->rollups.late.after_ms,
		.late_quiet_ms = s->rollups.keeps_late ? c->rollup_quiet_ms : 0,
		.is_counter = rollups_is_counter,
		.rollup_owner = &s->rollups,
	};
	return query_engine_new(&options);
}

static struct polling *new_polling(struct serve *s)
{
	const struct polling_options options = {
		.conf = s->conf,
		.inventory_conf = s->inventory_conf,
		.store = s->store,
		.catalog = s->catalog,
		.loop = s->loop,
	};
	return polling_new(&options);
}

/* The rows of the API, with the configured bounds for bodies of samples: those may be compressed,
 * so their rows have two. A body that is gathered (its handler takes no pieces) may be a quarter of
 * the memory for bodies. */
static struct http_route *configured_routes(const struct conf *conf)
{
	struct http_route *routes = mem_alloc_array(api_route_count, sizeof(*routes));
	memcpy(routes, api_routes, api_route_count * sizeof(*routes));
	for (size_t i = 0; i < api_route_count; i++) {
		if (routes[i].role != ROLE_WRITE || routes[i].decoded_max_bytes == 0)
			continue;
		routes[i].body_max_bytes = (size_t)conf->ingest_body_max_bytes;
		int64_t gathered_max_bytes = conf->http_memory_max_bytes / 4;
		int64_t decoded_max_bytes = conf->ingest_decoded_max_bytes;
		routes[i].body_option = "ingest.body_max";
		routes[i].decoded_option = "ingest.decoded_max";
		if (!routes[i].handler->body && decoded_max_bytes > gathered_max_bytes) {
			decoded_max_bytes = gathered_max_bytes;
			routes[i].decoded_option = "a quarter of http.memory_max";
		}
		routes[i].decoded_max_bytes = (size_t)decoded_max_bytes;
		/* What is not compressed is as long decoded. */
		if (routes[i].body_max_bytes > routes[i].decoded_max_bytes) {
			routes[i].body_max_bytes = routes[i].decoded_max_bytes;
			routes[i].body_option = routes[i].decoded_option;
		}
	}
	return routes;
}

static struct http_server *new_http(struct serve *s)
{
	const struct conf *c = s->conf;
	struct http_limits limits = http_limits_default;
	limits.hosts = c->http_hosts.items;
	limits.host_count = c->http_hosts.count;
	limits.hosts_option = "http.hosts";
	limits.connections_max = (unsigned)c->http_connections_max;
	limits.per_address_max = (unsigned)c->http_per_address_max;
	limits.head_max_bytes = (size_t)c->http_head_max_bytes;
	limits.memory_max_bytes = (size_t)c->http_memory_max_bytes;
	limits.packed_option = "a quarter of http.memory_max";
	limits.header_timeout_ms = c->http_header_timeout_ms;
	limits.idle_timeout_ms = c->http_idle_timeout_ms;
	limits.body_timeout_ms = c->http_body_timeout_ms;
	limits.write_timeout_ms = c->http_write_timeout_ms;
	s->api = (struct api){
		.loop = s->loop,
		.clock = lmdb_clock(s->store),
		.store = s->store,
		.catalog = s->catalog,
		.ingest = s->ingest,
		.queries = s->queries,
		.inventory = s->inventory,
		.inventory_conf = s->inventory_conf,
		.pollers = s->pollers,
		.zones = s->zones,
		.grains = &s->rollups.grains,
		.retention = &s->rollups.retention,
		.late = &s->rollups.late,
		.owned = &s->rollups.own,
		.rollup_track = s->rollups.track,
		.rollup_name = s->rollups.name,
		.deletions = s->deletions,
		.conf = s->conf,
		.started_ms = clock_wall_ms(clock_real()),
		.program = command_program(),
	};
	s->routes = configured_routes(c);
	return http_server_new(s->loop, clock_real(), &limits, s->routes, api_route_count, &s->api);
}

static int open_inventory(struct serve *s, struct errbuf *e)
{
	const struct inventory_options options = {
		.store = s->store,
		.clock = lmdb_clock(s->store),
		.executor = loop_executor(s->loop),
		.conf = s->inventory_conf,
	};
	return inventory_keeper_open(&options, &s->inventory, e);
}

/* A machine without /proc is served all the same, and says what it does not have. */
static void open_host(struct serve *s)
{
	const struct conf *c = s->conf;
	struct errbuf e = {""};
	char hostname[HOSTNAME_MAX_BYTES] = "";
	if (!c->host_enabled)
		return;
	if (gethostname(hostname, sizeof(hostname) - 1) || !hostname[0])
		snprintf(hostname, sizeof(hostname), "localhost");
	const struct host_options options = {
		.ingest = s->ingest,
		.store = s->store,
		.clock = clock_real(),
		.files = files_real(),
		.loop = s->loop,
		.executor = loop_executor(s->loop),
		.pool = s->pool,
		.interval_ms = c->host_interval_ms,
		.hostname = hostname,
		.ignore_interfaces = c->host_ignore_interfaces.items,
		.ignore_interface_count = c->host_ignore_interfaces.count,
		.ignore_disks = c->host_ignore_disks.items,
		.ignore_disk_count = c->host_ignore_disks.count,
	};
	if (host_open(&options, &s->host, &e))
		log_warn("%s", e.text);
}

static int open_signals(struct serve *s, struct errbuf *e)
{
	static const int stops[] = {SIGINT, SIGTERM};
	for (size_t i = 0; i < ARRAY_LEN(stops); i++) {
		int err = loop_signal_open(s->loop, stops[i], on_stop_signal, s, &s->signals[i]);
		if (err)
			return errbuf_set(e, err, "signal %d: %s", stops[i], err_text(err));
	}
	int err = loop_signal_open(s->loop, SIGHUP, on_reload_signal, s, &s->signals[2]);
	return err ? errbuf_set(e, err, "signal %d: %s", SIGHUP, err_text(err)) : 0;
}

/* A connection, the database and a few more need descriptors: takes as many as are allowed. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int check_hosts(const struct conf *conf, struct errbuf *e)
{
	const struct conf_list *hosts = &conf->http_hosts;
	char where[512];
	for (size_t i = 0; i < hosts->count; i++) {
		if (!http_host_valid(slice_of(hosts->items[i])))
			return errbuf_set(
				e, ERR_INVALID,
				"%s: '%s' is neither a name nor an address, perhaps with "
				"a port, such as granary.example:8443",
				conf_where_item(conf, CONF_ID_http_hosts, i, where, sizeof(where)),
				hosts->items[i]);
	}
	return 0;
}

static int listen_http(struct serve *s, struct errbuf *e)
{
	struct loop_address address;
	int err = loop_address_parse(slice_of(s->conf->listen), &address, e);
	err = err ? err : http_server_listen(s->http, &address, e);
	char where[512];
	return err ? errbuf_prefix(e, err, "%s",
				   conf_where(s->conf, CONF_ID_listen, where, sizeof(where)))
		   : 0;
}

static size_t door_connections(const struct conf *c)
{
	size_t doors = (*c->line_tcp_listen != 0) + (size_t)(*c->opentsdb_listen != 0);
	return doors * (size_t)c->streams_connections_max;
}

/* Connections are not to take the descriptors that the rest of the server needs: the kernel would
 * let all clients wait, those who ask how the server is among them. */
static int bound_connections(struct serve *s, struct errbuf *e)
{
	struct rlimit limit;
	size_t most = (size_t)s->conf->http_connections_max;
	int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0); /* all below it are in use */
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		limit.rlim_cur = SIZE_MAX / 2;
	size_t used = lowest < 0 ? (size_t)limit.rlim_cur : (size_t)lowest;
	size_t later = DESCRIPTORS_LATER + door_connections(s->conf);
	if (lowest >= 0)
		close(lowest);
	if (limit.rlim_cur < used + later + DESCRIPTORS_SERVED_MIN)
		return errbuf_set(e, ERR_LIMIT,
				  "the process may have %llu descriptors (`ulimit -n`), but needs "
				  "%zu at least",
				  (unsigned long long)limit.rlim_cur,
				  used + later + DESCRIPTORS_SERVED_MIN);
	size_t left = (size_t)limit.rlim_cur - used - later;
	if (left < most) {
		log_warn("http.connections_max is %zu, but the process may have %llu descriptors "
			 "(`ulimit -n`): at most %zu connections are served at once",
			 most, (unsigned long long)limit.rlim_cur, left);
		http_server_bound(s->http, (unsigned)left);
	}
	return 0;
}

static void print_ready(struct serve *s)
{
	struct loop_address address = http_server_address(s->http);
	char text[LOOP_ADDRESS_TEXT_BYTES];
	loop_address_text(&address, text);
	printf("granary " GRANARY_VERSION " is ready at http://%s/ with the data in %s\n", text,
	       s->conf->data);
	if (s->conf->welcome)
		printf("\n"
		       "Try, in another terminal:\n"
		       "  %s query SystemMetrics.cpu.combined --tenant host "
		       "--server http://%s\n"
		       "  curl -s 'http://%s/api/query?tenant=host&"
		       "metricName=SystemMetrics.LoadAverage.1&start=1h-ago'\n"
		       "  %s stats --server http://%s\n"
		       "\n"
		       "Ctrl-C stops the server.\n",
		       command_program(), text, text, command_program(), text);
	fflush(stdout);
}

/* Everything that lives on the loop, in the order in which it needs each other. */
static int start(struct serve *s, struct errbuf *e)
{
	int err = rollups_open(&s->rollups, s->store, e);
	s->pool = pool_new(1, 16, "host");
	s->filter_pool = pool_new(1, (size_t)s->conf->query_concurrent_max, "filter");
	s->catalog = new_catalog(s);
	s->ingest = new_ingest(s);
	s->polling = new_polling(s);
	s->queries = new_queries(s);
	s->zones = v2_zones_new(files_real(), "/usr/share/zoneinfo");
	s->pollers = pollers_new();
	err = err ? err : open_inventory(s, e);
	if (!err)
		s->deletions = rollups_deletions(&s->rollups, s->store, s->catalog, s->loop);
	s->http = new_http(s);
	s->stop_timer = loop_timer_new(s->loop, on_stop_timer, s);
	s->sweep_timer = loop_timer_new(s->loop, on_sweep_timer, s);
	loop_timer_start(s->sweep_timer, SWEEP_INTERVAL_MS, SWEEP_INTERVAL_MS);
	s->ingest_timer = loop_timer_new(s->loop, on_ingest_timer, s);
	loop_timer_start(s->ingest_timer, INGEST_TICK_MS, INGEST_TICK_MS);
	err = err ? err : open_signals(s, e);
	err = err ? err : listen_http(s, e);
	err = err ? err : doors_open(s->conf, s->loop, s->ingest, &s->doors, e);
	err = err ? err : polling_open(s->polling, s->inventory, e);
	if (err)
		return err;
	s->api.queues = polling_queues(s->polling);
	s->api.persist = polling_persist(s->polling);
	s->api.poller = polling_poller(s->polling);
	open_host(s);
	rollups_start(&s->rollups, s->store, s->loop);
	s->api.rollup = s->rollups.rollup;
	s->api.rollup_complete = s->rollups.complete;
	err = bound_connections(s, e);
	if (err)
		return err;
	s->api.ready = true;
	print_ready(s);
	return 0;
}

static void release(struct serve *s)
{
	http_server_free(s->http);
	doors_free(s->doors);
	polling_free(s->polling);
	if (s->deletions)
		rollup_deletions_free(s->deletions);
	ingest_free(s->ingest);
	rollups_free(&s->rollups);
	inventory_keeper_free(s->inventory);
	v2_zones_free(s->zones);
	pollers_free(s->pollers);
	pool_close(s->pool);
	pool_close(s->filter_pool);
	store_close(s->store);
	loop_free(s->loop);
	mem_free(s->routes);
}

static int serve(struct serve *s)
{
	struct errbuf e = {""};
	/* The loop first: the store's writer may report to it as soon as it runs. */
	s->loop = loop_new();
	loop_set_kind(s->loop, LOOP_MAIN);
	if (open_store(s, &e)) {
		visible_complain("granary serve: %s", e.text);
		loop_free(s->loop);
		return EXIT_FAILED;
	}
	s->status = EXIT_OK;
	if (start(s, &e)) {
		visible_complain("granary serve: %s", e.text);
		s->status = EXIT_FAILED;
		stop(s);
	}
	loop_run(s->loop);
	release(s);
	if (s->status == EXIT_OK)
		log_info("stopped");
	return s->dead_err ? EXIT_IO : s->status;
}

int command_serve(int argc, char *const *argv)
{
	struct errbuf e = {""};
	struct serve s = {
		.conf = conf_new(), .argc = argc, .argv = argv, .dead_task.run = run_dead};
	/* A client that has gone is an error of a write, not the end; so is a file that may not
	 * grow. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	int status = EXIT_WRONG_USE;
	if (conf_read(s.conf, files_real(), argc, argv, &e) ||
	    inventory_conf_read(s.conf, files_real(), &s.inventory_conf, &e) ||
	    check_hosts(s.conf, &e) || rollups_read(&s.rollups, s.conf, files_real(), &e) ||
	    fault_arm_from_env(&e)) {
		visible_complain("granary serve: %s", e.text);
	} else {
		check_reloads();
		set_log_level(s.conf);
		raise_descriptor_limit();
		status = serve(&s);
	}
	inventory_conf_release(s.inventory_conf);
	conf_free(s.conf);
	return status;
}
