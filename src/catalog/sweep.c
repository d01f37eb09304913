/* The sweep: series whose longest retention has passed leave.
 *
 * A group of the registry, then those of it that are old enough and have no sample within the
 * retention are offered to the store, which forgets them if no table has data of theirs. Who holds
 * the handle of a forgotten series gets ERR_NOT_FOUND with his next sample and opens it again, so a
 * series that wakes up at that moment loses nothing. */
#include "catalog/private.h"
#include "loop/job.h"
#include "store/series_walk.h"
#include "store/wait.h"

enum { GROUP_SERIES = 1024, FORGET_MAX_BYTES = 1 << 20 };

struct sweep {
	struct catalog *catalog;
	struct job *job;
	int64_t before_ms; /* first seen and last seen earlier than this: to be forgotten */
	struct store_read *last;
	struct store_write *write;
	/* Those of a group that are old. */
	uint64_t handles[GROUP_SERIES];
	const struct store_series *series[GROUP_SERIES];
	size_t count;
};

void catalog_forgotten(struct catalog *catalog, struct slice tenant, struct slice metric)
{
	indexes_drop(catalog, tenant, metric);
	pthread_mutex_lock(&catalog->lock);
	tenant_forget_count(catalog, tenant);
	pthread_mutex_unlock(&catalog->lock);
	stat_add(STAT_catalog_forget_tried, 1);
}

static void sweep_choose_old(struct sweep *sweep, const struct series_group *group)
{
	sweep->count = 0;
	for (size_t i = 0; i < group->count; i++) {
		if (group->series[i].first_seen_ms >= sweep->before_ms)
			continue;
		sweep->handles[sweep->count] = group->handles[i];
		sweep->series[sweep->count++] = &group->series[i];
	}
}

/* Keeps those of the old series that have no sample within the retention. */
static int sweep_choose_silent(struct sweep *sweep, const struct series_walk *walk)
{
	store_read_reset(sweep->last);
	struct store_request *request = store_read_add(sweep->last, STORE_LAST_BEFORE);
	ASSERT(request); /* the first of an empty read */
	request->last_before = (struct store_last_before){
		.table = TABLE_DATA_RAW,
		.handles = sweep->handles,
		.handle_count = sweep->count,
		.before_ms = STORE_TS_MAX,
		.look_back_ms = STORE_TS_MAX - sweep->before_ms,
	};
	int err = series_walk_read(walk, sweep->last);
	size_t count = err || request->more ? 0 : sweep->count; /* cut short: a later sweep's */
	sweep->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (request->last_before.points[i].count)
			continue;
		sweep->handles[sweep->count] = sweep->handles[i];
		sweep->series[sweep->count++] = sweep->series[i];
	}
	return err;
}

/* On the catalog's thread. */
static void sweep_tell(void *argument)
{
	const struct sweep *sweep = argument;
	for (size_t i = 0; i < sweep->count; i++)
		catalog_forgotten(sweep->catalog, sweep->series[i]->tenant,
				  sweep->series[i]->metric);
}

static int sweep_forget(struct sweep *sweep)
{
	int err = 0;
	store_write_reset(sweep->write);
	for (size_t at = 0; at < sweep->count && !err; at += STORE_GROUP_MAX) {
		size_t n = sweep->count - at;
		n = n < STORE_GROUP_MAX ? n : STORE_GROUP_MAX;
		err = store_series_forget(sweep->write, sweep->handles + at, n);
	}
	err = err ? err : store_write_wait(sweep->write, job_queue(sweep->job));
	job_call(sweep->job, sweep->catalog->executor, sweep_tell, sweep);
	return err;
}

/* What ends it is left for the next sweep. */
static void sweep_run(struct job *job, void *owner)
{
	struct sweep *sweep = owner;
	const struct series_walk_options options = {
		.store = sweep->catalog->store,
		.clock = sweep->catalog->clock,
		.queue = job_queue(job),
		.group_max = GROUP_SERIES,
		.list_max_bytes = ASK_MAX_BYTES,
	};
	struct series_walk *walk = series_walk_new(&options);
	struct series_group group = {.count = 1};
	int err = 0;
	while (!err && group.count) {
		err = series_walk_next(walk, &group);
		if (err)
			break;
		sweep_choose_old(sweep, &group);
		if (sweep->count)
			err = sweep_choose_silent(sweep, walk);
		if (!err && sweep->count)
			err = sweep_forget(sweep);
	}
	series_walk_free(walk);
}

static void sweep_over(void *owner)
{
	struct sweep *sweep = owner;
	struct catalog *catalog = sweep->catalog;
	job_free(sweep->job);
	store_read_free(sweep->last);
	store_write_free(sweep->write);
	mem_free(sweep);
	catalog->sweep = NULL;
	catalog_leave(catalog);
}

void catalog_set_longest_retention(struct catalog *catalog, int64_t retention_ms)
{
	catalog->options.longest_retention_ms = retention_ms;
}

void catalog_sweep(struct catalog *catalog)
{
	int64_t retention_ms = catalog->options.longest_retention_ms;
	if (retention_ms <= 0 || catalog->sweep || catalog->closing)
		return;
	struct sweep *sweep = mem_zalloc(sizeof(*sweep));
	sweep->catalog = catalog;
	sweep->before_ms = clock_age_ms(catalog->clock) - retention_ms;
	sweep->last = store_read_new(catalog->store, ASK_MAX_BYTES);
	sweep->write = store_write_new(catalog->store, FORGET_MAX_BYTES);
	catalog->sweep = sweep;
	catalog_enter(catalog);
	stat_add(STAT_catalog_sweeps, 1);
	if (job_start("sweep", sweep_run, sweep_over, sweep, catalog->executor, &sweep->job))
		sweep_over(sweep);
}

void sweep_cancel(struct catalog *catalog)
{
	if (catalog->sweep)
		job_stop(catalog->sweep->job);
}
