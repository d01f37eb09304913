#include "cmd/rollups.h"

#include <unistd.h>

#include "conf/conf.h"
#include "rollup/since.h"
#include "rollup/touches.h"

/* A client's write is given up after some times the time that it may wait for its turn. */
enum { WRITE_WAITS = 5 };

static int refuse(const struct conf *conf, enum conf_id id, struct errbuf *e)
{
	char where[512];
	return errbuf_prefix(e, ERR_INVALID, "%s", conf_where(conf, id, where, sizeof(where)));
}

static int read_own(struct rollups *rollups, const struct conf *conf, struct errbuf *e)
{
	struct slice text = slice_of(conf->rollup_own);
	uint32_t partitions = (uint32_t)conf->rollup_partitions;
	char all[32];
	if (slice_equal(text, SLICE("any"))) {
		snprintf(all, sizeof(all), "0-%u", partitions - 1);
		text = slice_of(all);
	}
	return rollup_partitions_parse(text, partitions, &rollups->own, e);
}

static int check_raw(const struct conf *conf, struct errbuf *e)
{
	int64_t least_ms = conf->rollup_slot_ms + 2 * conf->rollup_quiet_ms;
	if (!conf->retention_raw_ms || conf->retention_raw_ms >= least_ms)
		return 0;
	return errbuf_set(e, ERR_INVALID,
			  "raw samples have to be kept for %lld s at least: a slot and twice the "
			  "quiet time, or they are gone before they are rolled up",
			  (long long)least_ms / 1000);
}

int rollups_read(struct rollups *rollups, const struct conf *conf, struct errbuf *e)
{
	const struct conf_list *items = &conf->rollup_granularities;
	*rollups = (struct rollups){.conf = conf};
	if (rollup_grains_parse(items->items, items->count, conf->rollup_slot_ms, &rollups->grains,
				e))
		return refuse(conf, CONF_ID_rollup_granularities, e);
	if (!rollups->grains.count)
		return 0;
	if (read_own(rollups, conf, e))
		return refuse(conf, CONF_ID_rollup_own, e);
	if (rollup_quiet_check(conf->rollup_quiet_ms, WRITE_WAITS * conf->ingest_wait_max_ms,
			       conf->rollup_skew_max_ms, e))
		return refuse(conf, CONF_ID_rollup_quiet_ms, e);
	if (check_raw(conf, e))
		return refuse(conf, CONF_ID_retention_raw_ms, e);
	snprintf(rollups->name, sizeof(rollups->name), "%s", conf->rollup_name);
	if (!rollups->name[0] && gethostname(rollups->name, sizeof(rollups->name) - 1))
		snprintf(rollups->name, sizeof(rollups->name), "granary");
	return 0;
}

static void run_stopped(struct task *task)
{
	struct rollups *rollups = CONTAINER_OF(task, struct rollups, stopped);
	rollups->over = true;
}

int rollups_open(struct rollups *rollups, struct store *store, struct errbuf *e)
{
	return rollup_since_open(store, &rollups->grains, clock_wall_ms(clock_real()),
				 rollups->since_ms, e);
}

void rollups_start(struct rollups *rollups, struct store *store)
{
	const struct conf *conf = rollups->conf;
	const struct rollup_options options = {
		.store = store,
		.clock = clock_real(),
		.grains = rollups->grains,
		.partitions = (uint32_t)conf->rollup_partitions,
		.own = rollups->own,
		.quiet_ms = conf->rollup_quiet_ms,
		.skew_max_ms = conf->rollup_skew_max_ms,
		.every_ms = conf->rollup_every_ms,
		.lease_ms = conf->rollup_lease_ms,
		.counter_suffixes = conf->rollup_counter_suffixes.items,
		.counter_suffix_count = conf->rollup_counter_suffixes.count,
		.name = slice_of(rollups->name),
	};
	rollups->stopped.run = run_stopped;
	if (rollups->grains.count && rollups->own.count)
		rollups->rollup = rollup_new(&options);
}

void rollups_stop(struct rollups *rollups, struct executor *executor)
{
	if (rollups->rollup)
		rollup_stop(rollups->rollup, executor, &rollups->stopped);
	else
		rollups->over = true;
}

void rollups_free(struct rollups *rollups)
{
	if (rollups->rollup)
		rollup_free(rollups->rollup);
}

int64_t rollups_before_ms(void *owner)
{
	struct rollups *rollups = owner;
	return rollups->rollup ? rollup_before_ms(rollups->rollup) : 0;
}

int64_t rollups_since_ms(void *owner, size_t grain)
{
	const struct rollups *rollups = owner;
	return rollups->since_ms[grain];
}

bool rollups_is_counter(void *owner, struct slice metric)
{
	const struct rollups *rollups = owner;
	const struct conf_list *suffixes = &rollups->conf->rollup_counter_suffixes;
	return rollup_is_counter(suffixes->items, suffixes->count, metric);
}
