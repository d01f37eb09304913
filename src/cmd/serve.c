/* The server: puts the parts together, and takes them apart.
 *
 * Order of events. The configuration is read, the store opened (which replays its journal), the
 * catalog, ingest and HTTP put on it; then the address is bound and a line on standard output says
 * that the server is ready. Everything but the store's own threads and one worker runs on the loop.
 *
 * Stopping (stop_phases.h) is a list of phases (serve_phases.c): HTTP takes nothing new and
 * finishes what it has, then the other doors, the host metrics, ingest's writes and the catalog; at
 * last the store is closed. No answered write is lost by what is given up. A signal that comes a
 * second or more after the first gives up at once.
 *
 * A failed commit stops the server with status 74: the waiting requests are answered with an
 * error, and what the disk holds is known again after a restart. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/admin/agent_book.h"
#include "api/admin/pollers.h"
#include "api/call.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "board/boards.h"
#include "board/keys.h"
#include "catalog/catalog.h"
#include "cmd/command.h"
#include "cmd/serve_faults.h"
#include "cmd/serve_listeners.h"
#include "cmd/serve_polling.h"
#include "cmd/serve_private.h"
#include "cmd/terminal_escape.h"
#include "conf/conf.h"
#include "http/client.h"
#include "http/http.h"
#include "ingest/host.h"
#include "ingest/ingest.h"
#include "ingest/minute_sums.h"
#include "inventory/inventory.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "model/counter_key.h"
#include "persist/persist.h"
#include "rollup/deletions.h"
#include "rollup/follower.h"
#include "rollup/rollup.h"
#include "store/lmdb/lmdb.h"
#include "wire/zones.h"

enum {
	/* On top of the configured time for requests: for the writes and the store. */
	STOP_EXTRA_MS = 30000,
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

/* ---- While serving -------------------------------------------------------------------------- */

/* The log says which. */
static void serve_on_other_settings(void *owner)
{
	struct serve *s = owner;
	s->status = EXIT_FAILED;
	stop_phases_begin(&s->stopping);
}

static void serve_on_sweep_timer(void *owner)
{
	struct serve *s = owner;
	catalog_sweep(s->catalog);
}

static void serve_on_ingest_timer(void *owner)
{
	struct serve *s = owner;
	ingest_tick(s->ingest);
	minute_sums_tick(s->sums);
	serve_faults_tick(s->faults);
	serve_streams_tick(&s->streams);
	api_calls_tick(&s->api);
}

/* ---- Starting ------------------------------------------------------------------------------- */

static int serve_open_store(struct serve *s, struct errbuf *e)
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
		.on_dead = stop_phases_on_dead,
		.on_replay = stop_phases_on_replay,
		.context = &s->stopping,
	};
	/* Its sentences name the directory. */
	return lmdb_open(&options, &s->store, e);
}

static int serve_open_auth(struct serve *s, struct errbuf *e)
{
	struct task_queue queue;
	const struct auth_options options = {
		.store = s->store,
		.clock = lmdb_clock(s->store),
		.polled_tenant = COUNTER_TENANT,
		.anonymous_reads = strcmp(s->conf->auth_anonymous, "read") == 0,
		.proxy_user_header = slice_of(s->conf->auth_proxy_user_header),
		.executor = loop_executor(s->loop),
	};
	s->auth = auth_new(&options);
	task_queue_init(&queue);
	int err = auth_load(s->auth, &queue, e);
	task_queue_release(&queue);
	return err;
}

static struct catalog *serve_new_catalog(struct serve *s)
{
	const struct conf *c = s->conf;
	struct catalog_options options = catalog_options_default();
	options.tags_max = (size_t)c->catalog_tags_max;
	options.name_max_bytes = (size_t)c->catalog_name_max_bytes;
	options.value_max_bytes = (size_t)c->catalog_value_max_bytes;
	options.series_per_tenant_max = (uint64_t)c->catalog_series_per_tenant;
	options.new_series_per_minute_max = (uint64_t)c->catalog_new_series_per_minute;
	options.index_max_bytes = (size_t)c->catalog_index_max_bytes;
	options.longest_retention_ms = retention_longest_raw_ms(&s->site.retention);
	return catalog_new(s->store, lmdb_clock(s->store), loop_executor(s->loop), &options);
}

struct ingest_retention serve_ingest_retention(const struct serve *s)
{
	const struct retention_rules *rules = rollup_site_rules(&s->site);
	return (struct ingest_retention){
		.rules = rules, .late_keep = rules->keeps_late, .late_ms = rules->late.kept_ms};
}

static struct ingest *serve_new_ingest(struct serve *s)
{
	const struct ingest_options options = {
		.store = s->store,
		.catalog = s->catalog,
		.clock = lmdb_clock(s->store),
		.executor = loop_executor(s->loop),
		.tenant_tag = slice_of(s->conf->ingest_tenant_tag),
		.retention = serve_ingest_retention(s),
		/* Here 0 is none, there it is the default. */
		.ahead_ms = s->conf->ingest_future_max_ms ? s->conf->ingest_future_max_ms : -1,
		.in_flight_max_bytes = (size_t)s->conf->ingest_in_flight_max_bytes,
		.cache_max_bytes = (size_t)s->conf->ingest_cache_max_bytes,
		.wait_max_ms = s->conf->ingest_wait_max_ms,
		.texts_left_out = strcmp(s->conf->line_text_fields, "skip") == 0,
		.partitions = s->site.granularities.count ? (uint32_t)s->conf->partitions : 0,
		.rollup_slot_ms = s->conf->rollup_slot_ms,
		.rollup_quiet_ms = s->conf->rollup_quiet_ms,
		.rollup_skew_max_ms = s->conf->rollup_skew_max_ms,
		.marks = s->site.marks,
		.granularities = &s->site.granularities,
	};
	return ingest_new(&options);
}

struct query_options serve_query_options(struct serve *s)
{
	const struct conf *c = s->conf;
	const struct retention_rules *rules = rollup_site_rules(&s->site);
	return (struct query_options){
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
		.retention = rules,
		.home_of = serve_polling_home_of,
		.home_owner = s->polling,
		.granularities = &s->site.granularities,
		.rolled_ask = store_is_shared(s->site.store) ? rollup_site_ask : NULL,
		.rolled_before_ms = rollup_site_before_ms,
		.rolled_since_ms = rollup_site_since_ms,
		.late_after_ms = rules->late.after_ms,
		.late_quiet_ms = rules->keeps_late ? c->rollup_quiet_ms : 0,
		.is_counter = rollup_site_is_counter,
		.rollup_owner = &s->site,
	};
}

/* The rows of the API, with the configured bounds for bodies of samples: those may be compressed,
 * so their rows have two. A body that is gathered (its handler takes no pieces) may be a quarter of
 * the memory for bodies. */
static struct http_route *serve_configured_routes(const struct conf *conf)
{
	struct http_route *routes = mem_alloc_array(api_route_count, sizeof(*routes));
	memcpy(routes, api_routes, api_route_count * sizeof(*routes));
	for (size_t i = 0; i < api_route_count; i++) {
		bool takes = routes[i].role == ROLE_WRITE || routes[i].role == ROLE_POLL;
		if (!takes || routes[i].decoded_max_bytes == 0)
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

static int serve_open_faults(struct serve *s, struct errbuf *e)
{
	const struct serve_faults_options options = {
		.conf = s->conf,
		.store = s->store,
		.clock = lmdb_clock(s->store),
		.loop = s->loop,
		.session = s->site.session,
	};
	return serve_faults_open(&options, &s->faults, e);
}

static void serve_open_streams(struct serve *s)
{
	const struct serve_streams_options options = {
		.conf = s->conf,
		.store = s->store,
		.clock = lmdb_clock(s->store),
		.loop = s->loop,
		.session = s->site.session,
	};
	serve_streams_open(&s->streams, &options);
}

int64_t serve_longest_ms(const struct serve *s)
{
	const struct retention_rules *rules = rollup_site_rules(&s->site);
	return retention_longer(retention_longest_raw_ms(rules),
				retention_longest_ms(rules, &s->site.granularities));
}

static void serve_open_rows(struct serve *s)
{
	const struct board_keys_options options = {
		.store = s->store,
		.clock = lmdb_clock(s->store),
		.executor = loop_executor(s->loop),
		.keep_ms = serve_longest_ms(s),
	};
	s->rows = (struct row_site){.store = s->store,
				    .clock = lmdb_clock(s->store),
				    .retention = rollup_site_rules(&s->site),
				    .granularities = &s->site.granularities};
	s->keys = board_keys_new(&options);
	board_keys_start(s->keys);
}

static void serve_open_boards(struct serve *s)
{
	const struct boards_limits limits = {.each_max = (size_t)s->conf->boards_each_max};
	s->boards = boards_new(s->store, lmdb_clock(s->store), &limits);
}

static struct http_limits serve_http_limits(const struct serve *s)
{
	const struct conf *c = s->conf;
	struct http_limits limits = http_limits_default;
	limits.outside = &s->first.addresses.outside;
	limits.hosts = c->http_names.items;
	limits.host_count = c->http_names.count;
	limits.hosts_option = "http.names";
	limits.connections_max = (unsigned)c->http_connections_max;
	if (limits.connections_max > s->connections_max)
		limits.connections_max = s->connections_max;
	limits.per_address_max = (unsigned)c->http_per_address_max;
	limits.head_max_bytes = (size_t)c->http_head_max_bytes;
	limits.memory_max_bytes = (size_t)c->http_memory_max_bytes;
	limits.packed_option = "a quarter of http.memory_max";
	limits.header_timeout_ms = c->http_header_timeout_ms;
	limits.idle_timeout_ms = c->http_idle_timeout_ms;
	limits.body_timeout_ms = c->http_body_timeout_ms;
	limits.write_timeout_ms = c->http_write_timeout_ms;
	return limits;
}

static struct http_server *serve_new_http(struct serve *s)
{
	const struct http_limits limits = serve_http_limits(s);
	s->api = (struct api){
		.loop = s->loop,
		.clock = lmdb_clock(s->store),
		.store = s->store,
		.auth = s->auth,
		.catalog = s->catalog,
		.ingest = s->ingest,
		.sums = s->sums,
		.queries = s->queries,
		.inventory = s->inventory,
		.inventory_conf = s->inventory_conf,
		.pollers = s->pollers,
		.agents = s->agents,
		.zones = s->zones,
		.site = &s->site,
		.deletions = s->deletions,
		.fault = serve_faults_fault(s->faults),
		.fault_pool = serve_faults_pool(s->faults),
		.amqp = serve_faults_amqp(s->faults),
		.streams = s->streams.streams,
		.stream_pool = s->streams.pool,
		.chunks_door = &s->streams.door,
		.rows = &s->rows,
		.boards = s->boards,
		.conf = s->conf,
		.slow_lines = {.lines_max = API_SLOW_LINES_MAX},
		.started_ms = clock_wall_ms(clock_real()),
		.program = command_program(),
	};
	s->routes = serve_configured_routes(s->conf);
	struct http_server *http = http_server_new(s->loop, clock_real(), &limits, s->routes,
						   api_route_count, &s->api);
	http_server_set_guard(http, auth_guard(s->auth));
	return http;
}

static int serve_open_inventory(struct serve *s, struct errbuf *e)
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
static void serve_open_host(struct serve *s)
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
		.keys = s->keys,
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

/* A connection, the database and a few more need descriptors: takes as many as are allowed. */
static void serve_raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Says so where they are fewer than configured. */
void serve_set_http_limits(struct serve *s)
{
	const struct http_limits limits = serve_http_limits(s);
	if (limits.connections_max < s->conf->http_connections_max)
		log_warn("http.connections_max is %lld, but the process may have so few "
			 "descriptors (`ulimit -n`) that at most %u connections are served at once",
			 (long long)s->conf->http_connections_max, limits.connections_max);
	http_server_set_limits(s->http, &limits);
}

/* Connections are not to take the descriptors that the rest of the server needs: the kernel would
 * let all clients wait, those who ask how the server is among them. */
static int serve_bound_connections(struct serve *s, struct errbuf *e)
{
	struct rlimit limit;
	int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0); /* all below it are in use */
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		limit.rlim_cur = SIZE_MAX / 2;
	size_t used = lowest < 0 ? (size_t)limit.rlim_cur : (size_t)lowest;
	size_t later = DESCRIPTORS_LATER + serve_listeners_connections_max(s->conf);
	if (lowest >= 0)
		close(lowest);
	if (limit.rlim_cur < used + later + DESCRIPTORS_SERVED_MIN)
		return errbuf_set(e, ERR_LIMIT,
				  "the process may have %llu descriptors (`ulimit -n`), but needs "
				  "%zu at least",
				  (unsigned long long)limit.rlim_cur,
				  used + later + DESCRIPTORS_SERVED_MIN);
	size_t left = (size_t)limit.rlim_cur - used - later;
	s->connections_max = left < UINT_MAX ? (unsigned)left : UINT_MAX;
	serve_set_http_limits(s);
	return 0;
}

/* ---- Start and end ----------------------------------------------------------------------------
 */

/* Without a credential nobody from other machines is let in. */
static int serve_check_reach(const struct serve *s, struct errbuf *e)
{
	char why[1024];
	snprintf(why, sizeof(why),
		 "there is no credential, so that everybody there could do everything: `%s token "
		 "create me --roles admin --tenants '*' --data %.400s` makes the first one",
		 command_program(), s->conf->data);
	return serve_addresses_check_reach(&s->first.addresses, s->conf, why, e);
}

static int serve_listen(struct serve *s, struct errbuf *e)
{
	int err = auth_is_open(s->auth) ? serve_check_reach(s, e) : 0;
	err = err ? err : serve_addresses_listen(&s->first.addresses, s->conf, s->http, e);
	if (!err)
		serve_addresses_listen_for_commands(&s->first.addresses, s->conf->data, s->http);
	return err;
}

/* By the socket of the data directory where there is one: the commands go on working when there is
 * a credential, and from any folder. */
static void serve_welcome_try(struct serve *s, const char *url)
{
	char path[PATH_MAX], socket[PATH_MAX + 64] = "";
	/* No socket: no path. Of one that is too long nobody can call the whole path. */
	if (realpath(s->first.addresses.socket, path) && strlen(path) < LOOP_PATH_MAX_BYTES)
		command_quote(path, socket, sizeof(socket));
	const char *scheme = socket[0] ? HTTP_CLIENT_UNIX : "";
	const char *server = socket[0] ? socket : url;
	printf("\n"
	       "Try, in another terminal:\n"
	       "  %s query SystemMetrics.cpu.combined --tenant host --server %s%s\n",
	       command_program(), scheme, server);
	if (socket[0] || strncmp(url, "http://", 7) == 0)
		printf("  curl -s %s%s '%s/api/query?tenant=host&"
		       "metricName=SystemMetrics.LoadAverage.1&start=1h-ago'\n",
		       socket[0] ? "--unix-socket " : "", socket,
		       socket[0] ? "http://localhost" : url);
	printf("  %s stats --server %s%s\n", command_program(), scheme, server);
}

static void serve_welcome(struct serve *s)
{
	char url[SERVE_URL_BYTES];
	bool reached = serve_addresses_own(&s->first.addresses, url);
	if (reached)
		serve_welcome_try(s, url);
	if (reached && strncmp(url, "http://", 7) == 0)
		serve_faults_print_dsn(s->faults, url + 7);
	printf("\nCtrl-C stops the server.\n");
}

static void serve_print_ready(struct serve *s)
{
	struct buf text;
	buf_init(&text, SERVE_ADDRESSES_TEXT_BYTES);
	serve_addresses_print(&s->first.addresses, &text);
	printf("granary " GRANARY_VERSION " is ready at %.*s with the data in %s\n", (int)text.len,
	       text.data, s->conf->data);
	if (s->conf->log_file[0]) /* which has nothing of standard output */
		log_info("granary " GRANARY_VERSION " is ready at %.*s", (int)text.len, text.data);
	buf_release(&text);
	if (s->conf->welcome)
		serve_welcome(s);
	fflush(stdout);
}

static int64_t serve_store_moved_ms(void *owner)
{
	return lmdb_moved_ms(((const struct serve *)owner)->store);
}

static int64_t serve_persist_moved_ms(void *owner)
{
	return persist_moved_ms(serve_polling_persist(((const struct serve *)owner)->polling));
}

/* A persister that hangs is replaced first. */
static void serve_tell_ready(struct serve *s)
{
	s->watched[0] = (struct watched){"the writer of the store", serve_store_moved_ms, s, 0};
	s->watched[1] = (struct watched){"a persister", serve_persist_moved_ms, s,
					 s->conf->persist_hang_timeout_ms};
	serve_print_ready(s);
	stop_phases_ready(&s->stopping, s->watched, ARRAY_LEN(s->watched));
}

/* Everything that lives on the loop, in the order in which it needs each other. */
static int serve_start(struct serve *s, struct errbuf *e)
{
	int err = rollup_site_open(&s->site, s->store, lmdb_clock(s->store), e);
	err = err ? err : serve_open_auth(s, e);
	err = err ? err : serve_open_faults(s, e);
	if (!err)
		serve_open_streams(s);
	serve_open_rows(s);
	serve_open_boards(s);
	s->pool = pool_new(1, 16, "host");
	size_t filters_max = (size_t)conf_options[CONF_ID_query_concurrent_max].max;
	s->filter_pool = pool_new(1, filters_max, "filter");
	s->catalog = serve_new_catalog(s);
	s->ingest = serve_new_ingest(s);
	s->sums = minute_sums_new(
		&(struct minute_sums_options){.ingest = s->ingest, .clock = lmdb_clock(s->store)});
	s->polling = serve_polling_new(
		&(struct serve_polling_options){.conf = s->conf,
						.inventory_conf = s->inventory_conf,
						.store = s->store,
						.catalog = s->catalog,
						.loop = s->loop});
	struct query_options queries = serve_query_options(s);
	s->queries = query_engine_new(&queries);
	s->zones = zones_new(files_real(), ZONES_FOLDER);
	s->pollers = pollers_new();
	s->agents = agent_book_new();
	err = err ? err : serve_open_inventory(s, e);
	if (!err)
		s->deletions = rollup_deletions_new(&s->site, loop_executor(s->loop), s->catalog);
	s->http = serve_new_http(s);
	s->sweep_timer = loop_timer_new(s->loop, serve_on_sweep_timer, s);
	loop_timer_start(s->sweep_timer, SWEEP_INTERVAL_MS, SWEEP_INTERVAL_MS);
	s->ingest_timer = loop_timer_new(s->loop, serve_on_ingest_timer, s);
	loop_timer_start(s->ingest_timer, INGEST_TICK_MS, INGEST_TICK_MS);
	err = err ? err : stop_phases_open_signals(&s->stopping, serve_on_reload_signal, e);
	err = err ? err : serve_listen(s, e);
	err = err ? err : serve_listeners_open(s->conf, s->loop, s->ingest, &s->doors, e);
	err = err ? err : serve_polling_open(s->polling, s->inventory, e);
	if (err)
		return err;
	s->api.queues = serve_polling_queues(s->polling);
	s->api.persist = serve_polling_persist(s->polling);
	s->api.poller = serve_polling_poller(s->polling);
	serve_open_host(s);
	if (rollup_is_wanted(&s->site))
		s->rollup = rollup_new(&s->site, loop_executor(s->loop));
	s->follower =
		rollup_follower_new(&s->site, loop_executor(s->loop), serve_on_other_settings, s);
	s->api.rollup = s->rollup;
	err = serve_bound_connections(s, e);
	if (!err)
		auth_make_own_token(s->auth, 1u << ROLE_WRITE | 1u << ROLE_READ, s->own_token);
	err = err ? err : serve_agent_add_local(s->conf, s->first.adaptors, e);
	err = err ? err
		  : serve_agent_open(&s->agent, s->conf, &s->first.adaptors, s->loop,
				     &s->first.addresses, s->own_token, e);
	if (err)
		return err;
	s->api.ready = true;
	serve_faults_start(s->faults, s->ingest, s->catalog);
	serve_streams_start_demux(&s->streams, &s->first.datatypes, s->ingest, s->keys, &s->rows);
	serve_tell_ready(s);
	if (auth_is_open(s->auth))
		log_info("there is no credential: clients of this machine may do everything; "
			 "`%s token create` makes the first one",
			 command_program());
	return 0;
}

static void serve_release(struct serve *s)
{
	http_server_free(s->http);
	serve_agent_close(&s->agent);
	serve_listeners_free(s->doors);
	serve_polling_free(s->polling);
	if (s->deletions)
		rollup_deletions_free(s->deletions);
	minute_sums_free(s->sums);
	ingest_free(s->ingest);
	rollup_follower_free(s->follower);
	if (s->rollup)
		rollup_free(s->rollup);
	serve_faults_free(s->faults);
	serve_streams_close(&s->streams);
	board_keys_free(s->keys);
	boards_free(s->boards);
	auth_free(s->auth);
	rollup_site_close(&s->site);
	inventory_keeper_free(s->inventory);
	zones_free(s->zones);
	pollers_free(s->pollers);
	agent_book_free(s->agents);
	pool_close(s->pool);
	pool_close(s->filter_pool);
	store_close(s->store);
	loop_free(s->loop);
	mem_free(s->routes);
}

static int serve_until_stopped(struct serve *s)
{
	struct errbuf e = {""};
	/* The loop first: the store's writer may report to it as soon as it runs. */
	s->loop = loop_new();
	loop_set_kind(s->loop, LOOP_MAIN);
	s->stopping = (struct stop_phases){.loop = s->loop,
					   .phases = serve_phases,
					   .phase_count = serve_phase_count,
					   .owner = s,
					   .bound_ms = s->conf->stop_timeout_ms + STOP_EXTRA_MS,
					   .again_ms = STOP_AGAIN_MS};
	if (serve_open_store(s, &e)) {
		terminal_complain("granary serve: %s", e.text);
		loop_free(s->loop);
		return EXIT_FAILED;
	}
	s->status = EXIT_OK;
	if (serve_agent_open_log(s->conf, &e) || serve_start(s, &e)) {
		terminal_complain("granary serve: %s", e.text);
		s->status = EXIT_FAILED;
		stop_phases_begin(&s->stopping);
	}
	loop_run(s->loop);
	serve_release(s);
	if (s->status == EXIT_OK)
		log_info("stopped");
	return s->stopping.dead_err ? EXIT_IO : s->status;
}

static int serve_run(const struct command_args *args)
{
	struct errbuf e = {""};
	struct serve s = {.args = args, .connections_max = UINT_MAX};
	stop_phases_begin_process();
	int status = EXIT_WRONG_USE;
	int err = serve_conf_read(&s.first, args, &e);
	s.conf = s.first.conf;
	s.inventory_conf = s.first.inventory;
	err = err ? err : rollup_site_read(&s.site, s.conf, files_real(), &e);
	err = err ? err : fault_arm_from_env(&e);
	if (err) {
		terminal_complain("granary serve: %s", e.text);
	} else if (access(s.conf->data, F_OK) && errno == ENOENT && serve_check_reach(&s, &e)) {
		/* No credential is in a directory that is not there, and none is made of it. */
		terminal_complain("granary serve: %s", e.text);
		status = EXIT_FAILED;
	} else {
		serve_conf_set_log(s.conf);
		serve_raise_descriptor_limit();
		status = serve_until_stopped(&s);
	}
	serve_conf_release(&s.latest);
	serve_conf_release(&s.first);
	return status;
}

const struct command command_serve = {
	.name = "serve",
	.summary = "run the server",
	.about = "Serves until SIGINT or SIGTERM, then stops cleanly: requests that have begun are "
		 "answered, and accepted samples are on disk. When the server is ready it prints a "
		 "line with its address. SIGHUP reads the configuration again; options that reload "
		 "take "
		 "effect.\n"
		 "Exit status: 0 stopped, 1 could not start, 2 wrong configuration, 74 a commit "
		 "failed.\n",
	.args_bytes = sizeof(struct command_args),
	.run = serve_run,
	.takes_conf = true,
	.lists_conf = true,
};
