#include "cmd/serve_polling.h"

#include <unistd.h>

#include "base/mem.h"
#include "cmd/local_agent.h"
#include "cmd/queue_sink.h"
#include "conf/conf.h"
#include "inventory/inventory.h"
#include "loop/loop.h"
#include "model/counter_key.h"
#include "model/series.h"
#include "persist/persist.h"
#include "query/query.h"
#include "queue/local/local.h"
#include "queue/local/unread.h"
#include "queue/memcached/memcached.h"
#include "snmp/poller.h"
#include "store/lmdb/lmdb.h"

enum { TAGS_ARENA_BYTES = 64 << 10 };

struct serve_polling {
	struct serve_polling_options options;
	struct inventory_conf *conf;
	struct inventory_keeper *keeper;
	struct queue **queues; /* by place in conf->queues */
	struct persist *persist;
	struct poller *poller;
	struct local_agent *agent; /* NULL: nobody asked for it */
	struct inventory_listener listener;
	struct queue_sink sink;
	struct arena arena; /* of one set of tags */
};

struct persist *serve_polling_persist(const struct serve_polling *polling)
{
	return polling->persist;
}

struct poller *serve_polling_poller(const struct serve_polling *polling)
{
	return polling->poller;
}

struct queue *const *serve_polling_queues(const struct serve_polling *polling)
{
	return polling->queues;
}

void serve_polling_home_of(void *owner, struct slice tenant, struct slice tags_text,
			   struct query_home *home)
{
	struct serve_polling *p = owner;
	struct tags tags;
	if (!slice_equal(tenant, COUNTER_TENANT))
		return;
	arena_reset(&p->arena);
	if (tags_decode(tags_text, &p->arena, &tags))
		return;
	const struct oidset *set = inventory_conf_oidset(p->conf, tags_find(tags, SLICE("oidset")));
	if (set)
		*home = (struct query_home){TABLE_RAW_DATA, set->frequency_ms};
}

/* ---- From the poller to the queues ----------------------------------------------------------- */

/* On the poller's thread. */
static int serve_polling_hand_over(void *owner, const struct oidset *set, struct slice device,
				   struct slice message)
{
	struct serve_polling *p = owner;
	return queue_sink_put(&p->sink, p->queues[set->queue->place], device, message);
}

/* On the poller's thread. */
static void serve_polling_offer(void *owner)
{
	struct serve_polling *p = owner;
	for (size_t i = 0; i < p->conf->queue_count; i++)
		queue_offer(p->queues[i]);
}

static void serve_polling_inventory_changed(struct inventory_listener *listener)
{
	struct serve_polling *p = CONTAINER_OF(listener, struct serve_polling, listener);
	const struct inventory *picture = inventory_keeper_take(p->keeper);
	poller_set_inventory(p->poller, picture);
	inventory_release(picture);
}

static int serve_polling_open_poller(struct serve_polling *p, struct errbuf *e)
{
	const struct poller_options options = {
		.clock = lmdb_clock(p->options.store),
		.sink = {.put = serve_polling_hand_over, .end = serve_polling_offer, .owner = p},
		.executor = loop_executor(p->options.loop),
	};
	int err = poller_open(&options, &p->poller, e);
	if (err)
		return err;
	p->listener.changed = serve_polling_inventory_changed;
	inventory_keeper_listen(p->keeper, &p->listener);
	serve_polling_inventory_changed(&p->listener);
	return 0;
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* Rows of versions come from polls of many OIDs, which esmond has in one message. */
static int serve_polling_open_memcached(struct serve_polling *p, const struct queue_def *def,
					struct queue **queue, struct errbuf *e)
{
	struct slice *names = mem_alloc_array(def->oidset_count + 1, sizeof(*names));
	struct queue_memcached_options options = {
		.name = def->name,
		.server = def->server,
		.workers = def->workers,
		.uncorrelated = names,
		.store = p->options.store,
		.clock = lmdb_clock(p->options.store),
	};
	for (size_t i = 0; i < def->oidset_count; i++) {
		if (def->oidsets[i]->kind != OIDSET_COUNTERS)
			names[options.uncorrelated_count++] = def->oidsets[i]->name;
	}
	int err = queue_memcached_open(&options, queue, e);
	mem_free(names);
	return err;
}

static int serve_polling_open_local(struct serve_polling *p, const struct queue_def *def,
				    struct queue **queue, struct errbuf *e)
{
	const struct conf *c = p->options.conf;
	const struct queue_local_options options = {
		.name = def->name,
		.workers = def->workers,
		.messages_max = (uint64_t)c->queue_messages_max,
		.bytes_max = (uint64_t)c->queue_bytes_max,
		.store = p->options.store,
		.clock = lmdb_clock(p->options.store),
	};
	return queue_local_open(&options, queue, e);
}

static int serve_polling_open_queues(struct serve_polling *p, struct errbuf *e)
{
	p->queues = mem_zalloc((p->conf->queue_count + 1) * sizeof(*p->queues));
	for (size_t i = 0; i < p->conf->queue_count; i++) {
		const struct queue_def *def = p->conf->queues[i];
		int err = def->driver == QUEUE_MEMCACHED
				  ? serve_polling_open_memcached(p, def, &p->queues[i], e)
				  : serve_polling_open_local(p, def, &p->queues[i], e);
		if (err)
			return errbuf_prefix(e, err, "queue " SHOWN, SHOWN_OF(def->name));
	}
	return 0;
}

static void serve_polling_close_queues(struct serve_polling *p)
{
	for (size_t i = 0; p->queues && i < p->conf->queue_count; i++) {
		if (p->queues[i])
			queue_close(p->queues[i]);
	}
	mem_free(p->queues);
	p->queues = NULL;
}

static void serve_polling_open_persist(struct serve_polling *p)
{
	const struct conf *c = p->options.conf;
	const struct persist_options options = {
		.store = p->options.store,
		.catalog = p->options.catalog,
		.clock = lmdb_clock(p->options.store),
		.loop = p->options.loop,
		.conf = p->conf,
		.queues = p->queues,
		.retention_ms = c->retention_raw_ms,
		.future_max_ms = c->ingest_future_max_ms,
		.derive_every_ms = c->persist_derive_every_ms,
		.hang_timeout_ms = c->persist_hang_timeout_ms,
		.counters_max = (size_t)c->persist_counters_max,
	};
	p->persist = persist_new(&options);
}

struct serve_polling *serve_polling_new(const struct serve_polling_options *options)
{
	struct serve_polling *p = mem_zalloc(sizeof(*p));
	p->options = *options;
	p->conf = options->inventory_conf;
	p->sink.executor = loop_executor(options->loop);
	p->sink.held = true;
	arena_init(&p->arena, TAGS_ARENA_BYTES);
	return p;
}

static int serve_polling_open_local_agent(struct serve_polling *p, struct errbuf *e)
{
	const char *address = p->options.conf->snmp_local_agent;
	char name[INVENTORY_NAME_MAX_BYTES + 1] = "";
	if (!*address)
		return 0;
	if (gethostname(name, sizeof(name) - 1) || !name[0])
		snprintf(name, sizeof(name), "localhost");
	int err = local_agent_open(p->options.loop, p->keeper, address, name, &p->agent, e);
	return err ? conf_refuse(p->options.conf, CONF_ID_snmp_local_agent, e) : 0;
}

static bool serve_polling_is_read(void *owner, struct slice name)
{
	const struct serve_polling *p = owner;
	const struct queue_def *def = inventory_conf_queue(p->conf, name);
	return def && def->driver == QUEUE_LOCAL;
}

int serve_polling_open(struct serve_polling *polling, struct inventory_keeper *keeper,
		       struct errbuf *e)
{
	polling->keeper = keeper;
	int err = serve_polling_open_queues(polling, e);
	err = err ? err : serve_polling_open_local_agent(polling, e);
	err = err ? err : serve_polling_open_poller(polling, e);
	if (err) {
		local_agent_close(polling->agent);
		polling->agent = NULL;
		serve_polling_close_queues(polling);
		return err;
	}
	serve_polling_open_persist(polling);
	queue_unread_report(polling->options.store, lmdb_clock(polling->options.store),
			    serve_polling_is_read, polling);
	return 0;
}

static void serve_polling_persist_stopped(void *owner)
{
	struct serve_polling *p = owner;
	persist_free(p->persist);
	p->persist = NULL;
}

/* What it still had is in the queues, or on its way. */
static void serve_polling_poller_closed(void *owner)
{
	struct serve_polling *p = owner;
	p->poller = NULL;
	persist_stop(p->persist, serve_polling_persist_stopped, p);
}

void serve_polling_stop(struct serve_polling *polling)
{
	if (!polling->poller)
		return;
	inventory_keeper_unlisten(polling->keeper, &polling->listener);
	poller_close(polling->poller, serve_polling_poller_closed, polling);
}

bool serve_polling_over(const struct serve_polling *polling)
{
	return !polling->poller && !polling->persist && !polling->sink.on_their_way &&
	       !local_agent_busy(polling->agent);
}

void serve_polling_free(struct serve_polling *polling)
{
	local_agent_close(polling->agent);
	serve_polling_close_queues(polling);
	arena_release(&polling->arena);
	mem_free(polling);
}

void serve_polling_set_retention(struct serve_polling *polling, int64_t retention_ms)
{
	persist_set_retention(polling->persist, retention_ms);
}
