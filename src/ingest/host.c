#include "ingest/host.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/stats.h"
#include "board/keys.h"
#include "host/host_metrics.h"

enum {
	/* Rates need two rounds: the second follows soon, so that a fresh server has values. */
	SECOND_ROUND_MS = 1000,
	INFO_WRITE_MAX_BYTES = 1 << 20,
	HOSTNAME_MAX_BYTES = 256,
};

static const struct slice host_tenant = {"host", 4};

struct host {
	struct host_options options;
	struct host_rules rules;
	struct loop_timer *timer;
	char hostname[HOSTNAME_MAX_BYTES];
	struct host_snapshot snapshots[2];
	unsigned newest; /* index of the last one that is whole */
	size_t rounds;
	struct task read_task, compare_task, closed_task;
	unsigned busy; /* a round, the write of the infos */
	bool infos_stored;
	void (*closed)(void *owner);
	void *closed_owner;
};

static void host_run_closed(struct task *task)
{
	struct host *host = CONTAINER_OF(task, struct host, closed_task);
	void (*closed)(void *owner) = host->closed;
	void *owner = host->closed_owner;
	host_snapshot_release(&host->snapshots[0]);
	host_snapshot_release(&host->snapshots[1]);
	mem_free(host);
	closed(owner);
}

static void host_leave(struct host *host)
{
	ASSERT(host->busy > 0);
	if (--host->busy == 0 && host->closed)
		host->options.executor->post(host->options.executor, &host->closed_task);
}

/* ---- Kinds and units into the catalog, once -------------------------------------------------- */

static void host_infos_done(struct store_write *write, int err)
{
	struct host *host = write->owner;
	host->infos_stored = err == 0;
	if (err)
		log_warn("host metrics: units are not stored yet: %s", err_text(err));
	store_write_free(write);
	host_leave(host);
}

static int host_add_infos(struct host *host, struct store_write *write)
{
	for (size_t i = 0; i < HOST_METRICS; i++) {
		const struct catalog_info info = {
			.kind = host_metrics[i].kind,
			.unit = slice_of(host_metrics[i].unit),
			.home = TABLE_DATA_RAW,
			.base_frequency_ms = host->options.interval_ms,
		};
		int err = catalog_info_put(host->options.store, write, host_tenant,
					   slice_of(host_metrics[i].name), &info);
		if (err)
			return err;
	}
	return 0;
}

/* A store that has no room now is asked again after the next round. */
static void host_store_infos(struct host *host)
{
	struct store_write *write = store_write_new(host->options.store, INFO_WRITE_MAX_BYTES);
	write->executor = host->options.executor;
	write->done = host_infos_done;
	write->owner = host;
	int err = host_add_infos(host, write);
	host->busy++;
	err = err ? err : store_write_submit(write);
	if (err)
		host_infos_done(write, err);
}

/* ---- A round -------------------------------------------------------------------------------- */

struct host_emission {
	struct host *host;
	struct ingest_request *request;
	int64_t ts_ms;
	uint64_t groups;
};

/* Of the tags one at most is in the name, so their order does not matter. */
static void host_note_group(const struct host *host, const struct host_group *group,
			    const struct ingest_points *points)
{
	const struct tags tags = {points->tags, points->tag_count};
	for (size_t i = 0; i < group->count; i++) {
		const struct host_metric_def *def = &host_metrics[group->first + i];
		if (group->values[i].type != VALUE_NONE)
			board_keys_note_series(host->options.keys, host_tenant,
					       SLICE("SystemMetrics"), points->metrics[i], tags,
					       slice_of(catalog_kind_text(def->kind)),
					       slice_of(def->unit));
	}
}

static void host_emit_group(void *context, const struct host_group *group)
{
	struct host_emission *emission = context;
	struct slice metrics[HOST_METRICS];
	for (size_t i = 0; i < group->count; i++)
		metrics[i] = slice_of(host_metrics[group->first + i].name);
	struct tag tags[2] = {{SLICE("host"), slice_of(emission->host->hostname)}};
	if (group->tag_key)
		tags[1] = (struct tag){slice_of(group->tag_key), group->tag_value};
	struct ingest_points points = {
		.tenant = host_tenant,
		.tags = tags,
		.tag_count = group->tag_key ? 2 : 1,
		.metrics = metrics,
		.values = group->values,
		.count = group->count,
		.ts_ms = emission->ts_ms,
		.place = {.index = emission->groups++},
	};
	ingest_points(emission->request, &points);
	host_note_group(emission->host, group, &points);
}

static void host_round_done(struct ingest_request *r)
{
	struct host *host = ingest_owner(r);
	stat_add(STAT_host_rounds, 1);
	if (r->err || r->refused) {
		stat_add(STAT_host_lost, 1);
		log_warn("host metrics: a round was lost: %s",
			 r->err ? r->error.text : r->errors[0].sentence);
	}
	ingest_request_free(r);
	if (!host->infos_stored && !host->closed)
		host_store_infos(host);
	host_leave(host);
}

static void host_ingest_round(struct host *host, const struct host_snapshot *before,
			      const struct host_snapshot *after)
{
	const struct ingest_door door = {.done = host_round_done, .owner = host};
	struct host_emission emission = {
		.host = host,
		.request = ingest_request_new(host->options.ingest, &door),
		.ts_ms = after->wall_ms,
	};
	ingest_piece_begin(emission.request);
	host_compare(before, after, &host->rules, host_emit_group, &emission);
	ingest_piece_end(emission.request);
	ingest_request_end(emission.request);
}

static void host_compare_round(struct task *task)
{
	struct host *host = CONTAINER_OF(task, struct host, compare_task);
	const struct host_snapshot *before = &host->snapshots[host->newest];
	host->newest = 1 - host->newest;
	if (host->rounds++ == 0 || host->closed)
		host_leave(host);
	else
		host_ingest_round(host, before, &host->snapshots[host->newest]);
}

static void host_read_round(struct task *task)
{
	struct host *host = CONTAINER_OF(task, struct host, read_task);
	struct host_snapshot *next = &host->snapshots[1 - host->newest];
	host_snapshot_read(next, host->options.files, host->options.clock);
	host->options.executor->post(host->options.executor, &host->compare_task);
}

void host_collect(struct host *host)
{
	if (host->busy || host->closed) {
		stat_add(STAT_host_skipped, 1);
		return;
	}
	host->busy = 1;
	if (!host->options.pool)
		host_read_round(&host->read_task);
	else if (pool_submit(host->options.pool, &host->read_task)) {
		stat_add(STAT_host_skipped, 1);
		host_leave(host);
	}
}

/* ---- Life ----------------------------------------------------------------------------------- */

static void host_on_timer(void *owner)
{
	struct host *host = owner;
	host_collect(host);
	uint64_t interval = (uint64_t)host->options.interval_ms;
	if (host->rounds == 0 && interval > SECOND_ROUND_MS)
		loop_timer_start(host->timer, SECOND_ROUND_MS, interval);
}

static int host_check_proc(struct files *files, struct errbuf *e)
{
	struct buf text;
	buf_init(&text, 64 << 10);
	int err = files->read(files, "/proc/loadavg", 64 << 10, &text);
	buf_release(&text);
	if (!err)
		return 0;
	return errbuf_set(e, ERR_NOT_FOUND,
			  "host metrics are read from Linux's /proc, and /proc/loadavg cannot be "
			  "read here: %s",
			  err_text(err));
}

int host_open(const struct host_options *options, struct host **out, struct errbuf *e)
{
	int err = host_check_proc(options->files, e);
	if (err)
		return err;
	struct host *host = mem_zalloc(sizeof(*host));
	host->options = *options;
	snprintf(host->hostname, sizeof(host->hostname), "%s", options->hostname);
	host->rules = (struct host_rules){
		.interfaces = {options->ignore_interfaces, options->ignore_interface_count},
		.disks = {options->ignore_disks, options->ignore_disk_count},
		.ticks_per_second = (double)sysconf(_SC_CLK_TCK),
		.process = SLICE("granary"),
	};
	host->read_task.run = host_read_round;
	host->compare_task.run = host_compare_round;
	host->closed_task.run = host_run_closed;
	host_snapshot_init(&host->snapshots[0]);
	host_snapshot_init(&host->snapshots[1]);
	if (options->loop) {
		host->timer = loop_timer_new(options->loop, host_on_timer, host);
		loop_timer_start(host->timer, 0, (uint64_t)options->interval_ms);
	}
	*out = host;
	return 0;
}

void host_close(struct host *host, void (*closed)(void *owner), void *owner)
{
	ASSERT(!host->closed);
	loop_timer_close(host->timer);
	host->closed = closed;
	host->closed_owner = owner;
	if (host->busy == 0)
		host->options.executor->post(host->options.executor, &host->closed_task);
}
