#include "cmd/polling.h"

#include "base/clock.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "inventory/inventory.h"
#include "loop/loop.h"
#include "model/series.h"
#include "persist/persist.h"
#include "query/query.h"
#include "queue/local/local.h"
#include "queue/memcached/memcached.h"

enum { TAGS_ARENA_BYTES = 64 << 10 };

struct polling {
	struct polling_options options;
	struct inventory_conf *conf;
	struct inventory_keeper *keeper;
	struct queue **queues; /* by place in conf->queues */
	struct persist *persist;
	struct arena arena; /* of one set of tags */
};

struct inventory_keeper *polling_keeper(const struct polling *polling)
{
	return polling->keeper;
}

struct queue *const *polling_queues(const struct polling *polling)
{
	return polling->queues;
}

void polling_home_of(void *owner, struct slice tenant, struct slice tags_text,
		     struct query_home *home)
{
	struct polling *p = owner;
	struct tags tags;
	if (!slice_equal(tenant, SLICE("snmp")))
		return;
	arena_reset(&p->arena);
	if (tags_decode(tags_text, &p->arena, &tags))
		return;
	const struct oidset *set = inventory_conf_oidset(p->conf, tags_find(tags, SLICE("oidset")));
	if (set)
		*home = (struct query_home){TABLE_RAW_DATA, set->frequency_ms};
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* Rows of versions come from polls of many OIDs, which esmond has in one message. */
static int open_memcached(struct polling *p, const struct queue_def *def, struct queue **queue,
			  struct errbuf *e)
{
	struct slice *names = mem_alloc_array(def->oidset_count + 1, sizeof(*names));
	struct queue_memcached_options options = {
		.name = def->name,
		.server = def->server,
		.workers = def->workers,
		.uncorrelated = names,
		.store = p->options.store,
		.clock = clock_real(),
	};
	for (size_t i = 0; i < def->oidset_count; i++) {
		if (def->oidsets[i]->kind != OIDSET_COUNTERS)
			names[options.uncorrelated_count++] = def->oidsets[i]->name;
	}
	int err = queue_memcached_open(&options, queue, e);
	mem_free(names);
	return err;
}

static int open_local(struct polling *p, const struct queue_def *def, struct queue **queue,
		      struct errbuf *e)
{
	const struct conf *c = p->options.conf;
	const struct queue_local_options options = {
		.name = def->name,
		.workers = def->workers,
		.messages_max = (uint64_t)c->queue_messages_max,
		.bytes_max = (uint64_t)c->queue_bytes_max,
		.store = p->options.store,
		.clock = clock_real(),
	};
	return queue_local_open(&options, queue, e);
}

static int open_queues(struct polling *p, struct errbuf *e)
{
	p->queues = mem_zalloc((p->conf->queue_count + 1) * sizeof(*p->queues));
	for (size_t i = 0; i < p->conf->queue_count; i++) {
		const struct queue_def *def = p->conf->queues[i];
		int err = def->driver == QUEUE_MEMCACHED ? open_memcached(p, def, &p->queues[i], e)
							 : open_local(p, def, &p->queues[i], e);
		if (err)
			return errbuf_prefix(e, err, "queue " SHOWN, SHOWN_OF(def->name));
	}
	return 0;
}

static void close_queues(struct polling *p)
{
	for (size_t i = 0; p->queues && i < p->conf->queue_count; i++) {
		if (p->queues[i])
			queue_close(p->queues[i]);
	}
	mem_free(p->queues);
	p->queues = NULL;
}

static int open_keeper(struct polling *p, struct errbuf *e)
{
	const struct inventory_options options = {
		.store = p->options.store,
		.clock = clock_real(),
		.executor = loop_executor(p->options.loop),
		.conf = p->conf,
	};
	return inventory_keeper_open(&options, &p->keeper, e);
}

static void open_persist(struct polling *p)
{
	const struct conf *c = p->options.conf;
	const struct persist_options options = {
		.store = p->options.store,
		.catalog = p->options.catalog,
		.clock = clock_real(),
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

struct polling *polling_new(const struct polling_options *options)
{
	struct polling *p = mem_zalloc(sizeof(*p));
	p->options = *options;
	p->conf = options->inventory_conf;
	arena_init(&p->arena, TAGS_ARENA_BYTES);
	return p;
}

static void close_all(struct polling *p)
{
	close_queues(p);
	inventory_keeper_free(p->keeper);
	p->keeper = NULL;
}

int polling_open(struct polling *polling, struct errbuf *e)
{
	int err = open_keeper(polling, e);
	err = err ? err : open_queues(polling, e);
	if (err) {
		close_all(polling);
		return err;
	}
	open_persist(polling);
	return 0;
}

static void persist_stopped(void *owner)
{
	struct polling *p = owner;
	persist_free(p->persist);
	p->persist = NULL;
}

void polling_stop(struct polling *polling)
{
	if (polling->persist)
		persist_stop(polling->persist, persist_stopped, polling);
}

bool polling_over(const struct polling *polling)
{
	return !polling->persist && (!polling->keeper || inventory_keeper_idle(polling->keeper));
}

void polling_free(struct polling *polling)
{
	close_all(polling);
	arena_release(&polling->arena);
	mem_free(polling);
}
