/* For each OID of the OIDSet, and for what is polled beside them, the catalog says which series
 * there are; of these series rows are made; the newest samples say up to when there is raw data.
 * Then rates are made up to there, and what is stored of them is compared with raw data. */
#include "persist/recompute.h"

#include <stdlib.h>

#include "loop/job.h"
#include "model/counter_key.h"
#include "persist/private.h"
#include "rate/job.h"
#include "rate/oidset.h"
#include "store/wait.h"

enum {
	ARENA_MAX_BYTES = 512 << 20,
	READ_MAX_BYTES = 64 << 20,
	SERIES_MAX = 100000, /* of one OID of a device */
	CLAIM_LOOK_MS = 20,  /* whether what another has claimed is free */
};

/* A series that was found. */
struct recompute_found_series {
	struct slice tags_text;
	uint64_t handle;
	size_t metric; /* place in `metrics` */
};

/* A row of the table, with its name. */
struct recompute_named_row {
	struct slice tags_text;
	uint64_t handles[]; /* by column */
};

/* A find that a job waits for; carried out on the catalog's thread. */
struct recompute_find {
	struct catalog_find find;
	struct task begin, found;
	struct executor *back;
	struct task_answer answer;
};

struct recompute {
	struct recompute_options options;
	struct job *job; /* that runs it */
	struct errbuf *error;
	struct arena arena;
	const struct oidset *oidset;

	/* The OIDs that rates are made of, then these. */
	struct slice metrics[RATE_COLUMNS_MAX + 3];
	size_t metric_count, discontinuity, speed, uptime;
	struct slice device_text; /* the tags of what belongs to the device itself */
	struct recompute_found_series *found;
	size_t found_count, found_room;

	struct rate_table table;
	struct rate_row *rows;
	uint64_t *counters; /* the handles of all rows */
	size_t counter_count;
	int64_t newest_ms, oldest_ms; /* samples of these */

	struct rate_recompute_result result;
};

static int recompute_nothing_stored(struct recompute *r)
{
	return errbuf_set(r->error, ERR_NOT_FOUND,
			  "nothing is stored of device " SHOWN ", OIDSet " SHOWN,
			  SHOWN_OF(r->options.device), SHOWN_OF(r->oidset->name));
}

/* ---- The newest samples, and the oldest ------------------------------------------------------ */

static void recompute_take_samples(struct recompute *r, const struct store_points *newest,
				   const struct store_points *oldest)
{
	for (size_t i = 0; i < r->counter_count; i++) {
		if (newest[i].count && newest[i].ts_ms[0] > r->newest_ms)
			r->newest_ms = newest[i].ts_ms[0];
		if (oldest[i].count && oldest[i].ts_ms[0] < r->oldest_ms)
			r->oldest_ms = oldest[i].ts_ms[0];
	}
}

static struct store_read *recompute_ask_samples(const struct recompute *r)
{
	struct store_read *read = store_read_new(r->options.persist->options.store, READ_MAX_BYTES);
	struct store_request *newest = store_read_add(read, STORE_LAST_BEFORE);
	struct store_request *oldest = store_read_add(read, STORE_RANGE);
	ASSERT(newest && oldest); /* the first of an empty read */
	read->now_ms = clock_age_ms(r->options.persist->options.clock);
	newest->last_before = (struct store_last_before){
		.table = TABLE_RAW_DATA,
		.period_ms = r->table.config.base_ms,
		.handles = r->counters,
		.handle_count = r->counter_count,
		.before_ms = STORE_TS_MAX,
	};
	oldest->range = (struct store_range){
		.table = TABLE_RAW_DATA,
		.period_ms = r->table.config.base_ms,
		.handles = r->counters,
		.handle_count = r->counter_count,
		.start_ms = STORE_TS_MIN,
		.end_ms = STORE_TS_MAX,
		.limit = 1,
	};
	return read;
}

static int recompute_read_samples(struct recompute *r)
{
	struct store_read *read = recompute_ask_samples(r);
	const struct store_request *newest = read->requests, *oldest = newest->next;
	int err = 0;
	r->newest_ms = INT64_MIN;
	r->oldest_ms = INT64_MAX;
	for (bool more = true; more && !err; more = newest->more || oldest->more) {
		err = store_read_wait(read, job_queue(r->job));
		if (err)
			errbuf_set(r->error, err, "%s", store_read_sentence(read, err));
		else
			recompute_take_samples(r, newest->last_before.points, oldest->range.points);
	}
	store_read_free(read);
	return !err && r->newest_ms == INT64_MIN ? recompute_nothing_stored(r) : err;
}

/* ---- The table ------------------------------------------------------------------------------- */

static int recompute_by_tags_text(const void *a, const void *b)
{
	return slice_compare(((const struct recompute_found_series *)a)->tags_text,
			     ((const struct recompute_found_series *)b)->tags_text);
}

static struct rate_row *recompute_begin_row(struct recompute *r, struct slice tags_text)
{
	struct rate_row *row = &r->rows[r->table.row_count];
	struct recompute_named_row *named = arena_zalloc(
		&r->arena, sizeof(*named) + r->table.column_count * sizeof(named->handles[0]));
	if (!named)
		return NULL;
	named->tags_text = tags_text;
	*row = (struct rate_row){.id = rate_row_id(tags_text), .handles = named->handles};
	return row;
}

static struct recompute_named_row *recompute_named(const struct rate_row *row)
{
	return (struct recompute_named_row *)((char *)row->handles -
					      offsetof(struct recompute_named_row, handles));
}

static void recompute_put_into_row(struct recompute *r, struct rate_row *row,
				   const struct recompute_found_series *found)
{
	if (found->metric < r->table.column_count)
		recompute_named(row)->handles[found->metric] = found->handle;
	else if (found->metric == r->discontinuity)
		row->discontinuity = found->handle;
	else if (found->metric == r->speed)
		row->speed = found->handle;
}

static bool recompute_has_counters(const struct recompute *r, const struct rate_row *row)
{
	for (size_t c = 0; c < r->table.column_count; c++) {
		if (row->handles[c])
			return true;
	}
	return false;
}

/* Rows of what was found, one for each text. */
static int recompute_make_rows(struct recompute *r)
{
	if (r->found_count)
		qsort(r->found, r->found_count, sizeof(*r->found), recompute_by_tags_text);
	for (size_t i = 0; i < r->found_count;) {
		struct slice text = r->found[i].tags_text;
		struct rate_row *row = recompute_begin_row(r, text);
		if (!row)
			return ERR_LIMIT;
		for (; i < r->found_count && slice_equal(r->found[i].tags_text, text); i++) {
			if (r->found[i].metric == r->uptime)
				r->table.uptime = r->found[i].handle;
			recompute_put_into_row(r, row, &r->found[i]);
		}
		r->table.row_count += recompute_has_counters(r, row);
	}
	rate_rows_sort(r->rows, r->table.row_count);
	return 0;
}

static void recompute_list_counters(struct recompute *r)
{
	for (size_t i = 0; i < r->table.row_count; i++) {
		for (size_t c = 0; c < r->table.column_count; c++) {
			if (r->rows[i].handles[c])
				r->counters[r->counter_count++] = r->rows[i].handles[c];
		}
	}
}

static int recompute_make_table(struct recompute *r)
{
	r->rows = arena_alloc(&r->arena, (r->found_count + 1) * sizeof(*r->rows));
	r->counters = arena_alloc(&r->arena, (r->found_count + 1) * sizeof(*r->counters));
	int err = r->rows && r->counters ? recompute_make_rows(r) : ERR_LIMIT;
	if (err)
		return errbuf_set(r->error, err, "the device has too many counters");
	if (!r->table.row_count)
		return recompute_nothing_stored(r);
	r->table.rows = r->rows;
	recompute_list_counters(r);
	return 0;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static void recompute_keep_found(struct recompute *r, size_t metric,
				 const struct catalog_series *series)
{
	if (metric == r->uptime && !slice_equal(series->tags_text, r->device_text))
		return;
	if (r->found_count == r->found_room) {
		r->found_room = 2 * r->found_room + 64;
		r->found = mem_resize_array(r->found, r->found_room, sizeof(*r->found));
	}
	r->found[r->found_count++] =
		(struct recompute_found_series){series->tags_text, series->handle, metric};
}

static void recompute_begin_find(struct task *task)
{
	catalog_find_start(&CONTAINER_OF(task, struct recompute_find, begin)->find);
}

static void recompute_found(struct catalog_find *find, int err)
{
	struct recompute_find *f = CONTAINER_OF(find, struct recompute_find, find);
	f->answer.err = err;
	f->back->post(f->back, &f->found);
}

static void recompute_find_over(struct task *task)
{
	CONTAINER_OF(task, struct recompute_find, found)->answer.there = true;
}

/* The series of a metric that the device has of the OIDSet. */
static int recompute_find_series(struct recompute *r, size_t metric)
{
	const struct persist_options *o = &r->options.persist->options;
	const struct slice values[] = {r->options.device, r->oidset->name};
	const struct catalog_pattern patterns[] = {{&values[0], 1}, {&values[1], 1}};
	struct catalog_selector selectors[] = {{SLICE("device"), &patterns[0], 1},
					       {SLICE("oidset"), &patterns[1], 1}};
	struct recompute_find f = {
		.find =
			{
				.catalog = o->catalog,
				.tenant = COUNTER_TENANT,
				.metric = r->metrics[metric],
				.selectors = selectors,
				.selector_count = ARRAY_LEN(selectors),
				.series_max = SERIES_MAX,
				.done = recompute_found,
				.arena = &r->arena,
			},
		.begin = {.run = recompute_begin_find},
		.found = {.run = recompute_find_over},
		.back = &job_queue(r->job)->executor,
	};
	struct executor *catalog_thread = loop_executor(o->loop);
	catalog_thread->post(catalog_thread, &f.begin);
	int err = task_queue_wait_for(job_queue(r->job), &f.answer);
	if (err)
		return errbuf_set(r->error, err, "%s", f.find.error.text);
	for (size_t i = 0; i < f.find.count; i++)
		recompute_keep_found(r, metric, &f.find.series[i]);
	return job_is_stopping(r->job) ? ERR_CANCELLED : 0;
}

/* What is looked for: the columns, which are the first metrics, and what is polled beside them. */
static void recompute_name_metrics(struct recompute *r)
{
	struct rate_column *columns =
		arena_zalloc(&r->arena, (r->oidset->oid_count + 1) * sizeof(*columns));
	ASSERT(columns); /* the first of the arena */
	for (size_t i = 0; i < r->oidset->oid_count; i++) {
		size_t at = r->table.column_count;
		if (!rate_column_of(r->oidset->oids[i], &columns[at]))
			continue;
		r->metrics[at] = columns[at].name;
		r->table.column_count++;
	}
	r->table.columns = columns;
	r->metric_count = r->table.column_count;
	r->metrics[r->discontinuity = r->metric_count++] = SLICE("ifCounterDiscontinuityTime");
	r->metrics[r->speed = r->metric_count++] = SLICE("ifHighSpeed");
	r->metrics[r->uptime = r->metric_count++] = SLICE("sysUpTime");
}

static int recompute_name_device(struct recompute *r)
{
	struct tag tags[] = {{SLICE("device"), r->options.device},
			     {SLICE("oidset"), r->oidset->name}};
	struct buf text;
	int err = tags_sort_and_check(tags, ARRAY_LEN(tags), r->error);
	if (err)
		return err;
	buf_init(&text, TAGS_TEXT_MAX_BYTES);
	err = tags_encode((struct tags){tags, ARRAY_LEN(tags)}, &text);
	r->device_text = arena_copy(&r->arena, buf_slice(&text));
	buf_release(&text);
	return err;
}

static int recompute_find_all(struct recompute *r)
{
	int err = recompute_name_device(r);
	recompute_name_metrics(r);
	for (size_t i = 0; i < r->metric_count && !err; i++)
		err = recompute_find_series(r, i);
	return err ? err : recompute_make_table(r);
}

/* ---- Rates ----------------------------------------------------------------------------------- */

static void recompute_derived(struct rate_job *job, int err)
{
	*(struct task_answer *)rate_job_owner(job) = (struct task_answer){true, err};
}

/* Up to the newest raw data. */
static int recompute_derive(struct recompute *r)
{
	const struct persist_options *o = &r->options.persist->options;
	struct task_queue *queue = job_queue(r->job);
	struct rate_job *job = rate_job_new(o->store, &queue->executor);
	struct task_answer answer = {false, 0};
	const struct rate_job_options options = {
		.table = &r->table,
		.until_ms = r->newest_ms,
		.now_ms = clock_age_ms(o->clock),
		.retention = {[0 ... COUNTER_LEVELS_MAX - 1] = RETENTION_EVER},
		.awaited = true,
		.done = recompute_derived,
		.owner = &answer,
	};
	int err = rate_job_start(job, &options);
	err = err ? err : task_queue_wait_for(queue, &answer);
	if (err)
		errbuf_set(r->error, err, "%s", rate_job_error(job));
	rate_job_free(job);
	return err;
}

/* Older than raw data there is nothing to compute, nor later than it. */
static int recompute_compare(struct recompute *r)
{
	const struct persist_options *o = &r->options.persist->options;
	int64_t oldest_ms = r->oldest_ms - counter_widest_ms(&r->table.config);
	const struct rate_recompute_options options = {
		.store = o->store,
		.queue = job_queue(r->job),
		.table = &r->table,
		.from_ms = r->options.from_ms > oldest_ms ? r->options.from_ms : oldest_ms,
		.to_ms = r->options.to_ms < r->newest_ms ? r->options.to_ms : r->newest_ms,
		.until_ms = r->newest_ms,
		.now_ms = clock_age_ms(o->clock),
		.retention = {[0 ... COUNTER_LEVELS_MAX - 1] = RETENTION_EVER},
		.only_report = r->options.only_report,
	};
	return options.from_ms < options.to_ms ? rate_recompute(&options, &r->result, r->error) : 0;
}

static int recompute_claimed(struct recompute *r)
{
	int err = recompute_read_samples(r);
	err = err ? err : recompute_derive(r);
	return err || r->options.only_derive ? err : recompute_compare(r);
}

int recompute_run(struct recompute *r, struct job *job, struct errbuf *e)
{
	struct claims *claims = &r->options.persist->claims;
	struct claim claim = {claims_source(r->options.device, r->oidset->name), NULL, NULL};
	r->job = job;
	r->error = e;
	e->text[0] = 0;
	int err = recompute_find_all(r);
	while (!err && !claims_take(claims, &claim))
		err = job_sleep(job, CLAIM_LOOK_MS);
	if (!err) {
		err = recompute_claimed(r);
		claims_give_back(claims, &claim);
	}
	return err && !e->text[0] ? errbuf_set(e, err, "%s", err_text(err)) : err;
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct recompute *recompute_new(const struct recompute_options *options)
{
	struct recompute *r = mem_zalloc(sizeof(*r));
	arena_init(&r->arena, ARENA_MAX_BYTES);
	r->options = *options;
	r->oidset = options->oidset->stored_as;
	r->table.device = options->device;
	r->table.oidset = r->oidset->name;
	r->table.config = rate_config_of(r->oidset);
	return r;
}

void recompute_free(struct recompute *r)
{
	mem_free(r->found);
	arena_release(&r->arena);
	mem_free(r);
}

/* ---- Looking --------------------------------------------------------------------------------- */

const struct rate_recompute_result *recompute_result(const struct recompute *r)
{
	return &r->result;
}

struct slice recompute_tags_text(const struct recompute *r,
				 const struct rate_difference *difference)
{
	return recompute_named(&r->rows[difference->row])->tags_text;
}

struct slice recompute_metric(const struct recompute *r, const struct rate_difference *difference)
{
	return r->table.columns[difference->column].name;
}
