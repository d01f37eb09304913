/* The server: puts the parts together, and takes them apart.
 *
 * Order of events. The configuration is read, the store opened (which replays its journal), the
 * catalog, ingest and HTTP put on it; then the address is bound and a line on standard output says
 * that the server is ready. Everything but the store's own threads and one worker runs on the loop.
 *
 * Stopping (stop_phases.h) is a list of phases (below): HTTP takes nothing new and finishes what it
 * has, then the other doors, the host metrics, ingest's writes and the catalog; at last the store
 * is closed. No answered write is lost by what is given up. A signal that comes a second or more
 * after the first gives up at once.
 *
 * A failed commit stops the server with status 74: the waiting requests are answered with an
 * error, and what the disk holds is known again after a restart. */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/admin/agent_book.h"
#include "api/admin/pollers.h"
#include "api/call.h"
#include "api/routes.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "board/boards.h"
#include "board/keys.h"
#include "board/rows.h"
#include "catalog/catalog.h"
#include "cmd/command.h"
#include "cmd/serve_agent.h"
#include "cmd/serve_faults.h"
#include "cmd/serve_listeners.h"
#include "cmd/serve_polling.h"
#include "cmd/serve_streams.h"
#include "cmd/stop_phases.h"
#include "cmd/terminal_escape.h"
#include "conf/conf.h"
#include "http/http.h"
#include "ingest/host.h"
#include "ingest/ingest.h"
#include "ingest/minute_sums.h"
#include "inventory/inventory.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "model/counter_key.h"
#include "query/query.h"
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

struct serve {
	struct conf *conf;
	struct inventory_conf *inventory_conf; /* OIDSets, queues, credentials */
	const struct command_args *args;       /* to read the configuration again */
	struct store *store;
	struct auth *auth;
	char own_token[TOKEN_TEXT_BYTES + 1]; /* for what in this process asks by HTTP */
	struct loop *loop;
	struct pool *pool, *filter_pool;
	struct catalog *catalog;
	struct ingest *ingest;
	struct minute_sums *sums;
	struct query_engine *queries;
	struct inventory_keeper *inventory;
	struct zones *zones;
	struct pollers *pollers;
	struct agent_book *agents;
	struct host *host;
	struct http_server *http;
	struct serve_listeners *doors;
	struct serve_polling *polling;
	struct rollup_site site;
	struct rollup *rollup; /* NULL: this process rolls nothing up */
	struct rollup_follower *follower;
	struct rollup_deletions *deletions;
	struct serve_faults *faults;
	struct serve_streams streams;
	struct board_keys *keys;
	struct row_site rows;
	struct boards *boards;
	struct serve_agent agent;
	struct http_route *routes;
	struct api api;
	struct loop_timer *sweep_timer, *ingest_timer;
	struct stop_phases stopping;
	int status;
};

/* ---- Stopping ------------------------------------------------------------------------------- */

static int64_t serve_grace_ms(const struct serve *s)
{
	return s->stopping.dead_err ? STOP_DEAD_MS : s->conf->stop_timeout_ms;
}

/* It delivers to this server, which still serves. */
static void serve_begin_agent(void *owner)
{
	struct serve *s = owner;
	serve_agent_stop(&s->agent, serve_grace_ms(s), stop_phases_end_phase, &s->stopping);
}

static void serve_begin_http(void *owner)
{
	struct serve *s = owner;
	s->api.ready = false;
	loop_timer_close(s->sweep_timer);
	http_server_stop(s->http, serve_grace_ms(s), stop_phases_end_phase, &s->stopping);
}

static void serve_begin_doors(void *owner)
{
	struct serve *s = owner;
	s->stopping.phase_over = s->doors == NULL;
	if (s->doors)
		serve_listeners_stop(s->doors, serve_grace_ms(s), stop_phases_end_phase,
				     &s->stopping);
}

/* What is left of a deletion is done after the next start. */
static void serve_begin_queries(void *owner)
{
	struct serve *s = owner;
	api_calls_stop(&s->api);
	if (s->deletions)
		rollup_deletions_stop(s->deletions);
}

/* Reads of queries whose clients are gone, and what such clients have sent, are still at work. */
static bool serve_queries_over(const void *owner)
{
	const struct serve *s = owner;
	return query_engine_idle(s->queries) && !s->api.calls &&
	       (!s->deletions || rollup_deletions_idle(s->deletions));
}

static void serve_begin_amqp(void *owner)
{
	serve_faults_stop_amqp(((struct serve *)owner)->faults);
}

static bool serve_is_amqp_over(const void *owner)
{
	return serve_faults_is_amqp_over(((const struct serve *)owner)->faults);
}

/* No request is at work any more, so that no report comes after the last that is counted. */
static void serve_begin_faults(void *owner)
{
	serve_faults_stop(((struct serve *)owner)->faults);
}

static bool serve_are_faults_over(const void *owner)
{
	return serve_faults_are_over(((const struct serve *)owner)->faults);
}

static void serve_begin_streams(void *owner)
{
	serve_streams_stop(&((struct serve *)owner)->streams);
}

static bool serve_are_streams_over(const void *owner)
{
	return serve_streams_are_over(&((const struct serve *)owner)->streams);
}

static void serve_begin_polling(void *owner)
{
	serve_polling_stop(((struct serve *)owner)->polling);
}

static bool serve_is_polling_over(const void *owner)
{
	return serve_polling_over(((const struct serve *)owner)->polling);
}

static void serve_begin_host(void *owner)
{
	struct serve *s = owner;
	s->stopping.phase_over = s->host == NULL;
	if (s->host)
		host_close(s->host, stop_phases_end_phase, &s->stopping);
	s->host = NULL;
}

/* Nobody notes names any more. */
static void serve_begin_keys(void *owner)
{
	struct serve *s = owner;
	if (s->keys)
		board_keys_stop(s->keys);
}

static bool serve_are_keys_over(const void *owner)
{
	const struct serve *s = owner;
	return !s->keys || board_keys_is_over(s->keys);
}

static void serve_begin_sums(void *owner)
{
	minute_sums_stop(((struct serve *)owner)->sums);
}

static bool serve_are_sums_over(const void *owner)
{
	return minute_sums_idle(((const struct serve *)owner)->sums);
}

static bool serve_writes_over(const void *owner)
{
	return ingest_idle(((const struct serve *)owner)->ingest);
}

static bool serve_inventory_over(const void *owner)
{
	const struct serve *s = owner;
	return !s->inventory || inventory_keeper_idle(s->inventory);
}

/* The log says which. */
static void serve_on_other_settings(void *owner)
{
	struct serve *s = owner;
	s->status = EXIT_FAILED;
	stop_phases_begin(&s->stopping);
}

static void serve_begin_rollups(void *owner)
{
	struct serve *s = owner;
	rollup_follower_stop(s->follower);
	if (s->rollup)
		rollup_stop(s->rollup);
}

static bool serve_are_rollups_over(const void *owner)
{
	const struct serve *s = owner;
	return rollup_follower_is_over(s->follower) && (!s->rollup || rollup_is_over(s->rollup));
}

static void serve_begin_catalog(void *owner)
{
	struct serve *s = owner;
	loop_timer_close(s->ingest_timer);
	query_engine_free(s->queries);
	catalog_close(s->catalog, stop_phases_end_phase, &s->stopping);
}

static const struct stop_phase phases[] = {
	{"followed files", serve_begin_agent, NULL},
	{"requests that are being answered", serve_begin_http, NULL},
	{"lines over TCP and UDP", serve_begin_doors, NULL},
	{"queries", serve_begin_queries, serve_queries_over},
	{"fault reports by AMQP", serve_begin_amqp, serve_is_amqp_over},
	{"fault reports", serve_begin_faults, serve_are_faults_over},
	{"streams", serve_begin_streams, serve_are_streams_over},
	{"polling", serve_begin_polling, serve_is_polling_over},
	{"host metrics", serve_begin_host, NULL},
	{"names of metrics", serve_begin_keys, serve_are_keys_over},
	{"sums of minutes", serve_begin_sums, serve_are_sums_over},
	{"writes", NULL, serve_writes_over},
	{"inventory", NULL, serve_inventory_over},
	{"roll-ups", serve_begin_rollups, serve_are_rollups_over},
	{"catalog", serve_begin_catalog, NULL},
};

/* ---- While serving -------------------------------------------------------------------------- */

static void serve_set_log_level(const struct conf *conf)
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
} reloads[] = {{CONF_ID_log_level, serve_set_log_level}};

static void serve_check_reloads(void)
{
	size_t count = 0;
	for (int id = 0; id < CONF_OPTIONS; id++)
		count += conf_options[id].reloads;
	ASSERT(count == ARRAY_LEN(reloads));
	for (size_t i = 0; i < count; i++)
		ASSERT(conf_options[reloads[i].option].reloads);
}

static void serve_take_over(struct serve *s, struct conf *conf,
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
	serve_agent_reload(&s->agent, conf);
	serve_streams_reload(&s->streams, conf);
	log_info("reload: done%s", fixed.len ? ", but for these" : "");
	buf_release(&fixed);
}

/* Only options that reload are taken over; the rest is named. The new struct is not kept: others
 * hold pointers into the first. */
static void serve_on_reload_signal(void *owner, UNUSED int signum)
{
	struct serve *s = owner;
	struct errbuf e = {""};
	struct conf *conf = conf_new();
	struct inventory_conf *inventory_conf = NULL;
	if (conf_read(conf, files_real(), s->args->conf_argc, s->args->conf_argv, &e) ||
	    inventory_conf_read(conf, files_real(), &inventory_conf, &e))
		log_error("reload: nothing is changed: %s", e.text);
	else
		serve_take_over(s, conf, inventory_conf);
	inventory_conf_release(inventory_conf);
	conf_free(conf);
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

static struct ingest *serve_new_ingest(struct serve *s)
{
	const struct ingest_options options = {
		.store = s->store,
		.catalog = s->catalog,
		.clock = lmdb_clock(s->store),
		.executor = loop_executor(s->loop),
		.tenant_tag = slice_of(s->conf->ingest_tenant_tag),
		.retention = &s->site.retention,
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
		.late_keep = s->site.keeps_late,
		.late_retention_ms = s->site.late.kept_ms,
		.granularities = &s->site.granularities,
	};
	return ingest_new(&options);
}

static struct query_engine *serve_new_queries(struct serve *s)
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
		.retention = &s->site.retention,
		.home_of = serve_polling_home_of,
		.home_owner = s->polling,
		.granularities = &s->site.granularities,
		.rolled_ask = store_is_shared(s->site.store) ? rollup_site_ask : NULL,
		.rolled_before_ms = rollup_site_before_ms,
		.rolled_since_ms = rollup_site_since_ms,
		.late_after_ms = s->site.late.after_ms,
		.late_quiet_ms = s->site.keeps_late ? c->rollup_quiet_ms : 0,
		.is_counter = rollup_site_is_counter,
		.rollup_owner = &s->site,
	};
	return query_engine_new(&options);
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

static void serve_open_rows(struct serve *s)
{
	const struct retention_rules *rules = &s->site.retention;
	const struct board_keys_options options = {
		.store = s->store,
		.clock = lmdb_clock(s->store),
		.executor = loop_executor(s->loop),
		.keep_ms = retention_longer(retention_longest_raw_ms(rules),
					    retention_longest_ms(rules, &s->site.granularities)),
	};
	s->rows = (struct row_site){.store = s->store,
				    .clock = lmdb_clock(s->store),
				    .retention = rules,
				    .granularities = &s->site.granularities};
	s->keys = board_keys_new(&options);
	board_keys_start(s->keys);
}

static void serve_open_boards(struct serve *s)
{
	const struct boards_limits limits = {.each_max = (size_t)s->conf->boards_each_max};
	s->boards = boards_new(s->store, lmdb_clock(s->store), &limits);
}

static struct http_server *serve_new_http(struct serve *s)
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
		.started_ms = clock_wall_ms(clock_real()),
		.program = command_program(),
	};
	s->routes = serve_configured_routes(c);
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

static int serve_check_hosts(const struct conf *conf, struct errbuf *e)
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

static int serve_check_hicc(const struct conf *conf, struct errbuf *e)
{
	if (tenant_valid(slice_of(conf->hicc_tenant)))
		return 0;
	errbuf_set(e, ERR_INVALID, "\"%s\" cannot be the name of a tenant", conf->hicc_tenant);
	return conf_refuse(conf, CONF_ID_hicc_tenant, e);
}

static int serve_listen_http(struct serve *s, struct errbuf *e)
{
	struct loop_address address;
	int err = loop_address_parse(slice_of(s->conf->listen), &address, e);
	err = err ? err : http_server_listen(s->http, &address, e);
	return err ? conf_refuse(s->conf, CONF_ID_listen, e) : 0;
}

/* Connections are not to take the descriptors that the rest of the server needs: the kernel would
 * let all clients wait, those who ask how the server is among them. */
static int serve_bound_connections(struct serve *s, struct errbuf *e)
{
	struct rlimit limit;
	size_t most = (size_t)s->conf->http_connections_max;
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
	if (left < most) {
		log_warn("http.connections_max is %zu, but the process may have %llu descriptors "
			 "(`ulimit -n`): at most %zu connections are served at once",
			 most, (unsigned long long)limit.rlim_cur, left);
		http_server_bound(s->http, (unsigned)left);
	}
	return 0;
}

static void serve_print_ready(struct serve *s)
{
	struct loop_address address = http_server_address(s->http);
	char text[LOOP_ADDRESS_TEXT_BYTES];
	loop_address_text(&address, text);
	printf("granary " GRANARY_VERSION " is ready at http://%s/ with the data in %s\n", text,
	       s->conf->data);
	if (s->conf->log_file[0]) /* which has nothing of standard output */
		log_info("granary " GRANARY_VERSION " is ready at http://%s/", text);
	if (s->conf->welcome)
		printf("\n"
		       "Try, in another terminal:\n"
		       "  %s query SystemMetrics.cpu.combined --tenant host "
		       "--server http://%s\n"
		       "  curl -s 'http://%s/api/query?tenant=host&"
		       "metricName=SystemMetrics.LoadAverage.1&start=1h-ago'\n"
		       "  %s stats --server http://%s\n",
		       command_program(), text, text, command_program(), text);
	if (s->conf->welcome) {
		serve_faults_print_dsn(s->faults, text);
		printf("\nCtrl-C stops the server.\n");
	}
	fflush(stdout);
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
	s->filter_pool = pool_new(1, (size_t)s->conf->query_concurrent_max, "filter");
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
	s->queries = serve_new_queries(s);
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
	err = err ? err : serve_listen_http(s, e);
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
	struct loop_address address = http_server_address(s->http);
	if (!err)
		auth_make_own_token(s->auth, 1u << ROLE_WRITE | 1u << ROLE_READ, s->own_token);
	err = err ? err : serve_agent_open(&s->agent, s->conf, s->loop, &address, s->own_token, e);
	if (err)
		return err;
	s->api.ready = true;
	serve_faults_start(s->faults, s->ingest, s->catalog);
	serve_streams_start_demux(&s->streams, s->ingest, s->keys, &s->rows);
	serve_print_ready(s);
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
					   .phases = phases,
					   .phase_count = ARRAY_LEN(phases),
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
	struct serve s = {.conf = conf_new(), .args = args};
	stop_phases_begin_process();
	int status = EXIT_WRONG_USE;
	if (conf_read(s.conf, files_real(), args->conf_argc, args->conf_argv, &e) ||
	    inventory_conf_read(s.conf, files_real(), &s.inventory_conf, &e) ||
	    serve_check_hosts(s.conf, &e) || serve_faults_check(s.conf, &e) ||
	    serve_streams_read(&s.streams, s.conf, &e) || serve_check_hicc(s.conf, &e) ||
	    serve_agent_read(&s.agent, s.conf, &e) ||
	    rollup_site_read(&s.site, s.conf, files_real(), &e) || fault_arm_from_env(&e)) {
		terminal_complain("granary serve: %s", e.text);
	} else {
		serve_check_reloads();
		serve_set_log_level(s.conf);
		serve_raise_descriptor_limit();
		status = serve_until_stopped(&s);
	}
	serve_agent_close(&s.agent);
	serve_streams_close(&s.streams);
	inventory_conf_release(s.inventory_conf);
	conf_free(s.conf);
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
