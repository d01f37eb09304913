#include "cmd/serve_rollups.h"

#include <unistd.h>

#include "base/log.h"
#include "conf/conf.h"
#include "conf/tree.h"
#include "loop/loop.h"
#include "marks/watermark.h"
#include "lease/owners.h"
#include "marks/redis/redis.h"
#include "rollup/aggregate_row.h"
#include "rollup/stored_settings.h"
#include "marks/recent.h"
#include "marks/store.h"
#include "store/lmdb/lmdb.h"
#include "wire/timetext.h"

/* A client's write is given up after some times the time that it may wait for its turn. */
enum { WRITE_WAITS = 5 };

enum {
	LIST_MAX_BYTES = 32 << 10,
	OWNERS_FILE_MAX_BYTES = 1 << 20,
	OWNERS_ARENA_BYTES = 16 << 20,
};

static int serve_rollups_refuse(const struct conf *conf, enum conf_id id, struct errbuf *e)
{
	char where[512];
	return errbuf_prefix(e, ERR_INVALID, "%s", conf_where(conf, id, where, sizeof(where)));
}

static int serve_rollups_refuse_item(const struct conf *conf, enum conf_id id, size_t item,
				     struct errbuf *e)
{
	char where[512];
	return errbuf_prefix(e, ERR_INVALID, "%s",
			     conf_where_item(conf, id, item, where, sizeof(where)));
}

/* Of options that do not fit together: it is the first that somebody has set. */
static int serve_rollups_refuse_together(const struct conf *conf, const enum conf_id *ids,
					 size_t count, struct errbuf *e)
{
	size_t set = 0;
	while (set < count && !conf->origins[ids[set]].file)
		set++;
	return serve_rollups_refuse(conf, ids[set < count ? set : 0], e);
}

static void serve_rollups_warn_of_nobodys(uint32_t partitions, const struct partitions *all,
					  const char *path)
{
	struct partitions nobodys = {0};
	struct buf list;
	for (uint32_t p = 0; p < partitions; p++) {
		if (!partitions_has(all, p))
			partitions_add(&nobodys, p);
	}
	if (!nobodys.count)
		return;
	buf_init(&list, LIST_MAX_BYTES);
	partitions_print(&nobodys, &list);
	log_warn("%s: of the partitions of roll-ups no host has %.*s", path, (int)list.len,
		 list.data);
	buf_release(&list);
}

/* The sentence names the file's own line where there is one. */
static int serve_rollups_read_by_host(struct serve_rollups *rollups, const struct conf *conf,
				      struct files *files, struct errbuf *e)
{
	const char *path = conf->rollup_own_by_host;
	uint32_t partitions = (uint32_t)conf->partitions;
	struct partitions all;
	const struct conf_node *root;
	struct arena arena;
	arena_init(&arena, OWNERS_ARENA_BYTES);
	int err = conf_tree_read(files, path, OWNERS_FILE_MAX_BYTES, &arena, &root, e);
	if (err && err != ERR_INVALID)
		serve_rollups_refuse(conf, CONF_ID_rollup_own_by_host, e);
	if (!err)
		err = owners_read(root, partitions, slice_of(rollups->name), &rollups->own, &all,
				  e);
	if (!err)
		serve_rollups_warn_of_nobodys(partitions, &all, path);
	arena_release(&arena);
	return err;
}

/* `any` without a file: all, shared with others. */
static int serve_rollups_read_own(struct serve_rollups *rollups, const struct conf *conf,
				  struct files *files, struct errbuf *e)
{
	struct slice text = slice_of(conf->rollup_own);
	uint32_t partitions = (uint32_t)conf->partitions;
	bool any = slice_equal(text, SLICE("any"));
	if (any && conf->rollup_own_by_host[0])
		return serve_rollups_read_by_host(rollups, conf, files, e);
	if (!any && partitions_parse(text, partitions, &rollups->own, e))
		return serve_rollups_refuse(conf, CONF_ID_rollup_own, e);
	rollups->share = any;
	for (uint32_t p = 0; any && p < partitions; p++)
		partitions_add(&rollups->own, p);
	return 0;
}

/* For less time raw samples may not be kept. */
static int64_t serve_rollups_raw_least_ms(const struct conf *conf)
{
	return conf->rollup_slot_ms + 2 * conf->rollup_quiet_ms;
}

static int serve_rollups_check_raw(const struct conf *conf, struct errbuf *e)
{
	int64_t least_ms = serve_rollups_raw_least_ms(conf);
	if (!conf->retention_raw_ms || conf->retention_raw_ms >= least_ms)
		return 0;
	char least[DURATION_PRINT_MAX_BYTES];
	return errbuf_set(e, ERR_INVALID,
			  "raw samples have to be kept for %s at least: a slot and twice the "
			  "quiet time, or they are gone before they are rolled up",
			  duration_print(least, least_ms));
}

/* What is kept late has to be kept longer than what was in time. */
static int serve_rollups_check_late(struct serve_rollups *rollups, const struct conf *conf,
				    struct errbuf *e)
{
	int64_t raw_ms = retention_shortest_raw_ms(&rollups->retention, conf->retention_raw_ms);
	int64_t longest_ms =
		retention_longest_ms(&rollups->retention, &rollups->site.granularities);
	rollups->keeps_late = raw_ms && strcmp(conf->rollup_late, "keep") == 0;
	if (!rollups->keeps_late || !longest_ms || longest_ms > raw_ms)
		return 0;
	char longest[DURATION_PRINT_MAX_BYTES], raw[DURATION_PRINT_MAX_BYTES];
	return errbuf_set(e, ERR_INVALID,
			  "late samples would be kept for %s, as long as the longest "
			  "granularity, and raw samples are kept for %s",
			  duration_print(longest, longest_ms), duration_print(raw, raw_ms));
}

static void serve_rollups_read_name(struct serve_rollups *rollups, const struct conf *conf)
{
	snprintf(rollups->name, sizeof(rollups->name), "%s", conf->rollup_name);
	if (!rollups->name[0] && gethostname(rollups->name, sizeof(rollups->name) - 1))
		snprintf(rollups->name, sizeof(rollups->name), "granary");
}

static int serve_rollups_read_tracking(struct serve_rollups *rollups, const struct conf *conf,
				       struct errbuf *e)
{
	struct slice text = slice_of(conf->rollup_tracking);
	if (slice_equal(text, SLICE("store")))
		return 0;
	if (!redis_url_is(text))
		return errbuf_set(
			e, ERR_INVALID,
			"it is store, or redis://[[user]:password@]host[:port][/database]");
	return redis_url_parse(text, &rollups->redis, e);
}

/* Granularities that nobody has set fit together: if they do not, it is the slot. */
static int serve_rollups_read_granularities(struct serve_rollups *rollups, const struct conf *conf,
					    struct errbuf *e)
{
	const struct conf_list *items = &conf->rollup_granularities;
	if (slot_width_check(conf->rollup_slot_ms, e))
		return serve_rollups_refuse(conf, CONF_ID_rollup_slot_ms, e);
	if (granularities_parse(items->items, items->count, conf->rollup_slot_ms,
				&rollups->site.granularities, e))
		return conf->origins[CONF_ID_rollup_granularities].file
			       ? serve_rollups_refuse_item(conf, CONF_ID_rollup_granularities,
							   rollups->site.granularities.count, e)
			       : serve_rollups_refuse(conf, CONF_ID_rollup_slot_ms, e);
	return 0;
}

static int serve_rollups_check_quiet(const struct conf *conf, struct errbuf *e)
{
	static const enum conf_id ids[] = {CONF_ID_rollup_quiet_ms, CONF_ID_ingest_wait_max_ms,
					   CONF_ID_rollup_skew_max_ms};
	int err = quiet_time_check(conf->rollup_quiet_ms, WRITE_WAITS * conf->ingest_wait_max_ms,
				   conf->rollup_skew_max_ms, e);
	return err ? serve_rollups_refuse_together(conf, ids, ARRAY_LEN(ids), e) : 0;
}

int serve_rollups_read(struct serve_rollups *rollups, const struct conf *conf, struct files *files,
		       struct errbuf *e)
{
	*rollups = (struct serve_rollups){.conf = conf};
	int err = serve_rollups_read_granularities(rollups, conf, e);
	if (err)
		return err;
	if (retention_parse(conf->retention_rules.items, conf->retention_rules.count,
			    &rollups->site.granularities,
			    rollups->site.granularities.count ? serve_rollups_raw_least_ms(conf)
							      : 0,
			    &rollups->retention, e))
		return serve_rollups_refuse_item(conf, CONF_ID_retention_rules,
						 rollups->retention.count, e);
	serve_rollups_read_name(rollups, conf);
	if (!rollups->site.granularities.count)
		return 0;
	err = serve_rollups_read_own(rollups, conf, files, e);
	if (err)
		return err;
	if (serve_rollups_read_tracking(rollups, conf, e))
		return serve_rollups_refuse(conf, CONF_ID_rollup_tracking, e);
	err = serve_rollups_check_quiet(conf, e);
	if (err)
		return err;
	if (serve_rollups_check_raw(conf, e))
		return serve_rollups_refuse(conf, CONF_ID_retention_raw_ms, e);
	if (serve_rollups_check_late(rollups, conf, e))
		return serve_rollups_refuse(conf, CONF_ID_rollup_late, e);
	return 0;
}

static struct rollup_site serve_rollups_site_of(const struct serve_rollups *rollups,
						struct store *store)
{
	const struct conf *conf = rollups->conf;
	return (struct rollup_site){
		.store = store,
		.clock = lmdb_clock(store),
		.granularities = rollups->site.granularities,
		.partitions = (uint32_t)conf->partitions,
		.quiet_ms = conf->rollup_quiet_ms,
		.skew_max_ms = conf->rollup_skew_max_ms,
		.ahead_ms = conf->ingest_future_max_ms,
		.raw_retention_ms = conf->retention_raw_ms,
		.retention_rules = &rollups->retention,
		.counter_suffixes = conf->rollup_counter_suffixes.items,
		.counter_suffix_count = conf->rollup_counter_suffixes.count,
	};
}

static int serve_rollups_open_settings(struct serve_rollups *rollups, struct errbuf *e)
{
	struct rollup_site *site = &rollups->site;
	int err = stored_settings_open(
		&(struct stored_settings_config){
			.store = site->store,
			.now_ms = clock_sure_ms(site->clock),
			.granularities = &site->granularities,
			.rules = &rollups->retention,
			.raw_retention_ms = site->raw_retention_ms,
			.quiet_ms = site->quiet_ms,
			.ahead_ms = site->ahead_ms,
			.late_kept_ms =
				retention_longest_ms(&rollups->retention, &site->granularities),
			.keeps_late = rollups->keeps_late,
			.counter_suffixes = site->counter_suffixes,
			.counter_suffix_count = site->counter_suffix_count,
		},
		&rollups->settings, e);
	site->late = rollups->settings.late;
	return err;
}

static int serve_rollups_open_marks(struct serve_rollups *rollups, struct errbuf *e)
{
	struct rollup_site *site = &rollups->site;
	if (rollups->redis.host[0])
		return marks_redis_open(
			&(struct marks_redis_options){
				.store = site->store,
				.clock = site->clock,
				.url = rollups->redis,
				.separator = rollups->conf->rollup_redis_separator[0],
				.writer = slice_of(rollups->name),
				.slot_ms = site->granularities.slot_ms,
				.quiet_ms = site->quiet_ms,
				.late_after_ms = site->late.after_ms,
			},
			&site->marks, e);
	site->marks = marks_store_open(&(struct marks_store_options){
		.store = site->store, .writer = slice_of(rollups->name)});
	return 0;
}

int serve_rollups_open(struct serve_rollups *rollups, struct store *store, struct errbuf *e)
{
	rollups->site = serve_rollups_site_of(rollups, store);
	int err = serve_rollups_open_settings(rollups, e);
	err = err ? err : serve_rollups_open_marks(rollups, e);
	if (err || !rollups->site.granularities.count || !rollups->own.count)
		return err;
	rollups->site.watermark =
		watermark_new(rollups->site.granularities.slot_ms, rollups->site.quiet_ms);
	marks_tell(rollups->site.marks, rollups->site.watermark);
	return 0;
}

void serve_rollups_start(struct serve_rollups *rollups, struct loop *loop)
{
	const struct conf *conf = rollups->conf;
	if (!rollups->site.granularities.count || !rollups->own.count)
		return;
	rollups->backfill = backfill_new(&rollups->site, &rollups->settings);
	rollups->rollup = rollup_new(&(struct rollup_options){
		.site = &rollups->site,
		.backfill = rollups->backfill,
		.executor = loop_executor(loop),
		.own = rollups->own,
		.share = rollups->share,
		.every_ms = conf->rollup_every_ms,
		.lease_ms = conf->rollup_lease_ms,
		.name = slice_of(rollups->name),
	});
}

struct rollup_deletions *serve_rollups_deletions(struct serve_rollups *rollups,
						 struct catalog *catalog, struct loop *loop)
{
	return rollup_deletions_new(&(struct rollup_deletions_options){
		.site = &rollups->site,
		.executor = loop_executor(loop),
		.catalog = catalog,
	});
}

void serve_rollups_stop(struct serve_rollups *rollups)
{
	if (rollups->rollup)
		rollup_stop(rollups->rollup);
}

bool serve_rollups_over(const struct serve_rollups *rollups)
{
	return !rollups->rollup || rollup_is_over(rollups->rollup);
}

void serve_rollups_free(struct serve_rollups *rollups)
{
	if (rollups->rollup)
		rollup_free(rollups->rollup);
	if (rollups->backfill)
		backfill_free(rollups->backfill);
	if (rollups->site.marks)
		marks_close(rollups->site.marks);
	if (rollups->site.watermark)
		watermark_free(rollups->site.watermark);
	stored_settings_release(&rollups->settings);
}

int64_t serve_rollups_before_ms(void *owner, struct slice tenant, struct slice metric)
{
	struct serve_rollups *rollups = owner;
	return rollups->rollup ? rollup_before_ms(rollups->rollup, tenant, metric) : 0;
}

int64_t serve_rollups_since_ms(void *owner, struct slice metric, size_t granularity)
{
	const struct serve_rollups *rollups = owner;
	return stored_settings_since_ms(&rollups->settings, metric, granularity);
}

bool serve_rollups_is_counter(void *owner, struct slice metric)
{
	const struct serve_rollups *rollups = owner;
	const struct conf_list *suffixes = &rollups->conf->rollup_counter_suffixes;
	return rollup_is_counter(suffixes->items, suffixes->count, metric);
}
