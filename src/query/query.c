/* The life of a query: it waits for a place, finds its series in the catalog, and reads stage after
 * stage (private.h has the states). Which points a stage has is the reader's: raw.c, windows.c,
 * last.c, merge.c. All of it runs on one loop; what is read runs on the store's readers, and comes
 * back through job_done. */
#include "query/private.h"

#include "base/stats.h"
#include "loop/pool.h"
#include "retention/retention.h"

enum {
	TICK_MS = 1000,
	ASKING_MAX_BYTES = 8 << 20,
	FILTER_FACTOR =
		5, /* times as many series as may be read are looked at where some are not kept */
};

/* ---- The engine ---------------------------------------------------------------------------- */

static void tick(void *owner)
{
	query_engine_tick(owner);
}

void query_engine_set_limits(struct query_engine *engine, const struct query_options *options)
{
	struct query_options *o = &engine->options;
	o->series_max = options->series_max ? options->series_max : 10000;
	o->points_max = options->points_max ? options->points_max : 10000000;
	o->samples_max = options->samples_max ? options->samples_max : 1000000000;
	o->range_max_ms = options->range_max_ms;
	o->concurrent_max = options->concurrent_max ? options->concurrent_max : 32;
	o->retention = options->retention ? options->retention : &retention_for_ever;
	o->late_after_ms = options->late_after_ms;
	o->late_quiet_ms = options->late_quiet_ms;
}

struct query_engine *query_engine_new(const struct query_options *options)
{
	struct query_engine *engine = mem_zalloc(sizeof(*engine));
	struct query_options *o = &engine->options;
	*o = *options;
	query_engine_set_limits(engine, options);
	o->timeout_ms = o->timeout_ms ? o->timeout_ms : 60000;
	o->waiting_max = o->waiting_max ? o->waiting_max : 1000;
	o->parallel_max = o->parallel_max ? o->parallel_max : 2;
	if (o->parallel_max > JOBS_MAX)
		o->parallel_max = JOBS_MAX;
	o->slice_points = o->slice_points ? o->slice_points : 65536;
	if (o->timeout_ms > STORE_QUERY_DEADLINE_MAX_MS)
		o->timeout_ms = STORE_QUERY_DEADLINE_MAX_MS;
	engine->last = &engine->first;
	if (o->loop) {
		engine->timer = loop_timer_new(o->loop, tick, engine);
		loop_timer_start(engine->timer, TICK_MS, TICK_MS);
	}
	return engine;
}

void query_engine_free(struct query_engine *engine)
{
	ASSERT(query_engine_idle(engine));
	loop_timer_close(engine->timer);
	mem_free(engine);
}

bool query_engine_idle(const struct query_engine *engine)
{
	return !engine->runs;
}

static int64_t query_mono_us(const struct query_engine *engine)
{
	return engine->options.clock->mono_us(engine->options.clock);
}

int64_t run_mono_us(const struct query_run *run)
{
	return query_mono_us(run->engine);
}

/* ---- Ends ---------------------------------------------------------------------------------- */

static void query_finish(struct query_run *run, int err)
{
	struct query *query = &run->query;
	place_leave(run);
	query->ended = true;
	query->err = err;
	if (err && !query->error.text[0])
		errbuf_set(&query->error, err, "%s", err_text(err));
}

static void end_cut(struct query_run *run, const char *why, const char *option)
{
	run->query.cut = true;
	run->query.cut_why = why;
	run->query.cut_option = option;
	stat_add(STAT_queries_cut, 1);
	query_finish(run, 0);
}

/* The estimate is made of some series and some time: where the others hold more, this is the end.
 */
static void end_too_much(struct query_run *run)
{
	unsigned long long max = run->engine->options.samples_max;
	if (run->query.points) {
		end_cut(run, "samples", "query.samples_max");
		return;
	}
	errbuf_set(&run->query.error, ERR_LIMIT,
		   "the query has looked at more than %llu samples (query.samples_max; about %llu "
		   "were expected, from some of its series and time): ask for fewer series, less "
		   "time or wider windows",
		   max, (unsigned long long)run->query.estimate);
	query_finish(run, ERR_LIMIT);
}

int query_late(int64_t timeout_ms, struct errbuf *e)
{
	return errbuf_set(
		e, ERR_TIMEOUT,
		"the query took longer than %lld ms (query.timeout); ask for less: less time, or "
		"fewer series",
		(long long)timeout_ms);
}

/* Before the first chunk it can still be refused, afterwards only be cut. */
static void end_late(struct query_run *run)
{
	if (run->query.points) {
		end_cut(run, "time", "query.timeout");
		return;
	}
	query_finish(run, query_late(run->engine->options.timeout_ms, &run->query.error));
}

/* ---- Reading ------------------------------------------------------------------------------- */

static void query_run_free(struct query_run *run);
static void run_begin_reader(struct query_run *run);
static void stage_read(struct query_run *run);
static void parts_ask(struct query_run *run);

static void job_started(struct query_job *job)
{
	struct query_run *run = job->run;
	job->in_flight = true;
	if (run->in_flight++ == 0)
		run->asked_us = run_mono_us(run);
	run->engine->reading++;
	run->query.reads++;
	stat_set(STAT_query_reads_running, (int64_t)run->engine->reading);
}

static void job_ended(struct query_job *job)
{
	struct query_run *run = job->run;
	ASSERT(job->in_flight && run->in_flight && run->engine->reading);
	job->in_flight = false;
	if (--run->in_flight == 0)
		run->query.store_us += run_mono_us(run) - run->asked_us;
	run->engine->reading--;
	stat_set(STAT_query_reads_running, (int64_t)run->engine->reading);
}

static int query_submit(struct query_job *job)
{
	job_started(job);
	int err = store_read_submit(job->read);
	if (err)
		job_ended(job);
	return err;
}

/* What still runs ends soon and is not looked at. */
static void cancel_jobs(struct query_run *run)
{
	for (size_t i = 0; i < JOBS_MAX; i++) {
		if (run->jobs[i] && run->jobs[i]->in_flight) {
			store_read_cancel(run->jobs[i]->read);
			stat_add(STAT_query_reads_cancelled, 1);
		}
	}
}

static void add_work(struct query_run *run, const struct query_job *job)
{
	const struct store_read_work *work = &job->read->work;
	struct store_read_work *all = &run->query.work;
	all->extents += work->extents;
	all->blocks_decoded += work->blocks_decoded;
	all->blocks_summarised += work->blocks_summarised;
	all->blocks_skipped += work->blocks_skipped;
	all->points += work->points;
	all->rows_decoded += work->rows_decoded;
	all->took_us += work->took_us;
	run->parts_rows += work->rows_decoded;
}

/* True if a point of the stage is left. It is not consumed. */
static bool stage_has_points(struct query_run *run)
{
	struct query_chunk chunk;
	size_t row = run->next_row, offset = run->offset, done = run->windows_done;
	size_t ask = run->next_ask;
	bool row_has_points = run->row_has_points;
	bool has = run->reader->next(run, 1, &chunk);
	run->next_row = row;
	run->offset = offset;
	run->next_ask = ask;
	run->windows_done = done;
	run->row_has_points = row_has_points;
	return has;
}

static void end_reading(struct query_run *run, int err)
{
	cancel_jobs(run);
	if (err == ERR_TIMEOUT)
		end_late(run);
	else
		query_finish(run, err);
}

/* All parts of the stage are there. */
static void stage_arrived(struct query_run *run)
{
	if (run->reader == &reader_estimate) {
		int err = estimate_check(run);
		if (err) {
			query_finish(run, err);
			return;
		}
		run_begin_reader(run);
		stage_read(run);
		return;
	}
	run->state = RUN_ANSWERING;
	run->called = true;
	run->next_row = run->offset = run->next_ask = 0;
	if (!stage_has_points(run))
		stage_read(run);
}

static void query_job_done(struct store_read *read, int err)
{
	struct query_job *job = FROM_OWNER(query_job, read->owner);
	struct query_run *run = job->run;
	job_ended(job);
	if (run->dropped) {
		if (!run->in_flight)
			query_run_free(run);
		return;
	}
	if (run->state == RUN_ENDED)
		return;
	add_work(run, job);
	bool too_much = run->reader != &reader_estimate &&
			run->parts_rows > run->engine->options.samples_max;
	if (!err && !too_much && run->reader->arrived(run, job))
		err = query_submit(job);
	else if (!err)
		run->parts_series += job->count;
	if (err == ERR_DAMAGED)
		errbuf_set(&run->query.error, err, "%s", store_read_sentence(read, err));
	if (err) {
		end_reading(run, err);
	} else if (too_much) {
		cancel_jobs(run);
		end_too_much(run);
	} else {
		parts_ask(run);
	}
	if (run->state != RUN_READING)
		run->ready(run->owner);
}

static struct query_job *job_new(struct query_run *run)
{
	struct query_job *job = mem_zalloc(sizeof(*job));
	const struct query_options *options = &run->engine->options;
	job->magic = MAGIC_OF(query_job);
	job->run = run;
	job->read = store_read_new(options->store, READ_MAX_BYTES);
	job->read->executor = options->executor;
	job->read->done = query_job_done;
	job->read->owner = job;
	job->read->now_ms = run->now_ms;
	job->read->deadline_us = run->deadline_us;
	if (run_reads_points(run))
		job->read->points_max = options->slice_points;
	return job;
}

/* Whether one more job may read: the first of a run always. */
static bool query_may_read(const struct query_run *run)
{
	size_t parallel = run->engine->options.parallel_max;
	return !run->in_flight || (run->in_flight < parallel && run->engine->reading < parallel);
}

static struct query_job *free_job(struct query_run *run)
{
	for (size_t i = 0; i < JOBS_MAX; i++) {
		if (!run->jobs[i])
			run->jobs[i] = job_new(run);
		if (!run->jobs[i]->in_flight)
			return run->jobs[i];
	}
	return NULL;
}

/* Asks for parts of the stage, as many as may be read at once. When none is left and all have
 * arrived, the stage is there. */
static void parts_ask(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	while (stage->series_next < stage->series_count && query_may_read(run)) {
		struct query_job *job = free_job(run);
		ASSERT(job);
		store_read_reset(job->read);
		run->reader->part(run, job);
		int err = query_submit(job);
		if (err == ERR_BUSY && run->in_flight) {
			stage->series_next -= job->count;
			return;
		}
		if (err) {
			errbuf_set(&run->query.error, err, "%s",
				   store_read_sentence(job->read, err));
			end_reading(run, err);
			return;
		}
	}
	if (!run->in_flight)
		stage_arrived(run);
}

/* Begins the next stage; afterwards the run reads, gives or has ended. */
static void stage_read(struct query_run *run)
{
	if (run_mono_us(run) >= run->deadline_us) {
		end_late(run);
	} else if (!run->reader->stage(run)) {
		query_finish(run, 0);
	} else {
		run->state = RUN_READING;
		parts_ask(run);
	}
}

/* ---- Finding ------------------------------------------------------------------------------- */

static void make_windows(struct query_run *run)
{
	if (run->query.spec.agg)
		run->cells = mem_alloc_array(STAGE_CELLS, sizeof(*run->cells));
	else
		run->values = mem_alloc_array(STAGE_POINTS, sizeof(*run->values));
}

bool run_reads_points(const struct query_run *run)
{
	const struct query_spec *spec = &run->query.spec;
	bool growth = spec->fn == FN_INCREASE || spec->fn == FN_RATE;
	return spec->fn == FN_NONE || (growth && !spec->stored);
}

static const struct query_reader *reader_of(const struct query_run *run)
{
	const struct query_spec *spec = &run->query.spec;
	if (spec->fn == FN_NONE && spec->agg)
		return &reader_merge;
	if (spec->fn == FN_NONE)
		return run_is_raw(run) ? &reader_raw : &reader_stitch;
	if (spec->window_ms == 0)
		return &reader_last;
	return run_reads_points(run) ? &reader_growth : &reader_windows;
}

/* Memory for the query's own reader, which then begins at its first stage. */
static void run_begin_reader(struct query_run *run)
{
	const struct query_spec *spec = &run->query.spec;
	run->stage = (struct query_stage){0};
	run->parts_rows = run->parts_series = 0;
	run->reader = reader_of(run);
	if (run->reader == &reader_raw)
		return;
	if (run->reader == &reader_last) {
		run->values = mem_alloc_array(STAGE_POINTS, sizeof(*run->values));
		run->times = mem_alloc_array(STAGE_POINTS, sizeof(*run->times));
	} else if (spec->fn != FN_NONE) {
		make_windows(run);
	}
	if (run->reader == &reader_windows)
		run->shared = mem_alloc_array(STAGE_POINTS, sizeof(*run->shared));
	if (run->reader == &reader_growth)
		run->before = mem_zalloc(run->find.count * sizeof(*run->before));
	run->order = mem_alloc_array(run->find.count, sizeof(*run->order));
	run->ts_ms = mem_alloc_array(CHUNK_POINTS, sizeof(*run->ts_ms));
	run->bits = mem_alloc_array(CHUNK_POINTS, sizeof(*run->bits));
	run->types = mem_alloc_array(CHUNK_POINTS, sizeof(*run->types));
}

/* The series that are meant are known. */
static void go_on_found(struct query_run *run)
{
	int err = found_check(run);
	if (err) {
		query_finish(run, err);
	} else if (run->find.count == 0 || run->start_ms >= run->end_ms) {
		query_finish(run, 0);
	} else {
		if (estimate_needed(run))
			run->reader = &reader_estimate;
		else
			run_begin_reader(run);
		stage_read(run);
		if (run->state == RUN_READING)
			return;
	}
	run->ready(run->owner);
}

static void query_asked(struct store_read *read, int err)
{
	struct query_run *run = FROM_OWNER(query_run, read->owner);
	if (!err) {
		go_on_found(run);
		return;
	}
	errbuf_set(&run->query.error, err, "how far the metric is rolled up cannot be read: %s",
		   err_text(err));
	query_finish(run, err);
	run->ready(run->owner);
}

/* The series that are meant are known; how far their metric is rolled up may have to be asked. */
static void query_ask_rolled(struct query_run *run)
{
	const struct query_options *options = &run->engine->options;
	const struct query_spec *spec = &run->query.spec;
	int err = 0;
	if (options->rolled_ask && run->find.count) {
		run->asking = store_read_new(options->store, ASKING_MAX_BYTES);
		err = options->rolled_ask(options->rollup_owner, spec->tenant, spec->metric,
					  run->asking, &run->asked);
	}
	if (!err && !run->asked) {
		go_on_found(run);
		return;
	}
	run->state = RUN_ASKING;
	run->asking->executor = options->executor;
	run->asking->done = query_asked;
	run->asking->owner = run;
	run->asking->now_ms = run->now_ms;
	run->asking->deadline_us = run->deadline_us;
	err = err ? err : store_read_submit(run->asking);
	if (err)
		query_asked(run->asking, err);
}

static void filter_done(struct task *task)
{
	struct query_run *run = CONTAINER_OF(task, struct query_run, filter_task);
	run->filter_in_flight = false;
	run->query.spec.filter_hold(run->query.spec.filter_owner, false);
	if (run->dropped)
		query_run_free(run);
	else if (run->state == RUN_FILTERING)
		query_ask_rolled(run);
}

/* On a thread of the pool. */
static void filter_run(struct task *task)
{
	struct query_run *run = CONTAINER_OF(task, struct query_run, filter_task);
	struct executor *executor = run->engine->options.executor;
	found_filter(run);
	task->run = filter_done;
	executor->post(executor, task);
}

static int filter_in_pool(struct query_run *run)
{
	const struct query_spec *spec = &run->query.spec;
	run->state = RUN_FILTERING;
	run->filter_task.run = filter_run;
	run->filter_in_flight = true;
	spec->filter_hold(spec->filter_owner, true);
	int err = pool_submit(run->engine->options.pool, &run->filter_task);
	if (!err)
		return 0;
	run->filter_in_flight = false;
	spec->filter_hold(spec->filter_owner, false);
	return errbuf_set(&run->query.error, err,
			  "too many queries with filters that take long wait; try again later");
}

static void query_found(struct catalog_find *find, int err)
{
	struct query_run *run = FROM_OWNER(query_run, find->owner);
	const struct query_spec *spec = &run->query.spec;
	bool elsewhere = spec->filter && spec->filter_hold && run->engine->options.pool;
	run->query.find_us = run_mono_us(run) - run->asked_us;
	run->query.series_read = find->count;
	if (err)
		run->query.error = find->error;
	else if (find->count && elsewhere)
		err = filter_in_pool(run);
	else if (spec->filter)
		found_filter(run);
	if (!err && run->state == RUN_FILTERING)
		return;
	if (!err) {
		query_ask_rolled(run);
		return;
	}
	query_finish(run, err);
	run->ready(run->owner);
}

/* ---- Life of a query ----------------------------------------------------------------------- */

struct query *query_new(struct query_engine *engine, query_ready *ready, void *owner)
{
	struct query_run *run = mem_zalloc(sizeof(*run));
	run->magic = MAGIC_OF(query_run);
	run->engine = engine;
	run->ready = ready;
	run->owner = owner;
	arena_init(&run->query.arena, SERIES_MAX_BYTES);
	run->older = engine->runs;
	if (run->older)
		run->older->newer = run;
	engine->runs = run;
	return &run->query;
}

static struct query_run *run_of(const struct query *query)
{
	struct query_run *run = CONTAINER_OF(query, struct query_run, query);
	ASSERT_IS(query_run, run);
	return run;
}

static void query_job_free(struct query_job *job)
{
	if (!job)
		return;
	store_read_free(job->read);
	arena_release(&job->joined);
	mem_free(job->made);
	mem_free(job->grown);
	job->magic = 0;
	mem_free(job);
}

/* Everything but names. No job is in flight. */
static void free_buffers(struct query_run *run)
{
	void **buffers[] = {(void **)&run->order,  (void **)&run->values, (void **)&run->times,
			    (void **)&run->cells,  (void **)&run->merged, (void **)&run->spare,
			    (void **)&run->ts_ms,  (void **)&run->bits,   (void **)&run->types,
			    (void **)&run->before, (void **)&run->shared};
	for (size_t i = 0; i < JOBS_MAX; i++) {
		query_job_free(run->jobs[i]);
		run->jobs[i] = NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(buffers); i++) {
		mem_free(*buffers[i]);
		*buffers[i] = NULL;
	}
}

static void query_run_free(struct query_run *run)
{
	*(run->newer ? &run->newer->older : &run->engine->runs) = run->older;
	if (run->older)
		run->older->newer = run->newer;
	free_buffers(run);
	store_read_free(run->asking);
	arena_release(&run->query.arena);
	run->magic = 0;
	mem_free(run);
}

void query_free(struct query *query)
{
	if (!query)
		return;
	struct query_run *run = run_of(query);
	if (run->state == RUN_FINDING)
		catalog_find_cancel(&run->find);
	if (run->state != RUN_ENDED)
		place_leave(run);
	if (!run->in_flight && !run->filter_in_flight) {
		query_run_free(run);
		return;
	}
	run->dropped = true;
	atomic_store(&run->filter_dropped, true);
	cancel_jobs(run);
}

static int64_t clamp_time(int64_t ms)
{
	if (ms > PLAN_TIME_MAX_MS)
		return PLAN_TIME_MAX_MS;
	return ms < -PLAN_TIME_MAX_MS ? -PLAN_TIME_MAX_MS : ms;
}

static int check_spec(struct query_run *run)
{
	struct query *query = &run->query;
	const struct query_spec *spec = &query->spec;
	int64_t range_max_ms = run->engine->options.range_max_ms;
	bool newest = spec->fn == FN_LAST && spec->window_ms == 0 && !spec->agg;
	bool chosen = spec->window_ms == 0 && (spec->stored || spec->points_wanted);
	if (spec->fn != FN_NONE && !newest && !chosen &&
	    (spec->window_ms <= 0 || spec->window_ms > PLAN_TIME_MAX_MS))
		return errbuf_set(&query->error, ERR_INVALID,
				  "a window is at least one millisecond long");
	if (spec->points_wanted == 1)
		return errbuf_set(&query->error, ERR_INVALID, "at least two points are wanted");
	if (spec->start_ms > spec->end_ms)
		return errbuf_set(&query->error, ERR_INVALID, "start lies after end");
	if (range_max_ms && run->end_ms - 1 - run->start_ms > range_max_ms)
		return errbuf_set(
			&query->error, ERR_LIMIT,
			"the time from start to end is longer than %lld hours (query.range_max)",
			(long long)(range_max_ms / 3600000));
	return 0;
}

static void query_set_times(struct query_run *run)
{
	struct query_engine *engine = run->engine;
	const struct query_options *options = &engine->options;
	const struct query_spec *spec = &run->query.spec;
	run->now_ms = clock_wall_ms(options->clock);
	run->deadline_us = query_mono_us(engine) + options->timeout_ms * 1000;
	if (spec->deadline_us && spec->deadline_us < run->deadline_us)
		run->deadline_us = spec->deadline_us;
	run->start_ms = clamp_time(spec->start_ms);
	run->end_ms = clamp_time(spec->end_ms);
}

int query_start(struct query *query)
{
	struct query_run *run = run_of(query);
	struct query_engine *engine = run->engine;
	ASSERT(run->state == RUN_NEW);
	query_set_times(run);
	int err = check_spec(run);
	if (err)
		return err;
	run->find = (struct catalog_find){
		.catalog = engine->options.catalog,
		.tenant = query->spec.tenant,
		.metric = query->spec.metric,
		.selectors = query->spec.selectors,
		.selector_count = query->spec.selector_count,
		.series_max = engine->options.series_max * (query->spec.filter ? FILTER_FACTOR : 1),
		.series_option = "query.series_max",
		.done = query_found,
		.owner = run,
		.arena = &query->arena,
	};
	return place_begin(run);
}

const struct catalog_series *query_series(const struct query *query, size_t *count)
{
	const struct query_run *run = run_of(query);
	*count = run->rows ? run->row_count : run->find.count;
	return run->rows ? run->rows : run->find.series;
}

size_t query_group_of(const struct query *query, size_t series_index)
{
	const struct query_run *run = run_of(query);
	return run->ordered ? run->series_row[series_index] : series_index;
}

const struct catalog_series *query_group_next(const struct query *query, size_t group, size_t *i)
{
	const struct query_run *run = run_of(query);
	if (!run->rows && !run->ordered)
		return (*i)++ ? NULL : &run->find.series[group];
	for (size_t at; (at = run->row_first[group] + *i) < run->row_first[group + 1];) {
		++*i;
		if (run->series_found[run->row_series[at]])
			return &run->find.series[run->row_series[at]];
	}
	return NULL;
}

const struct query_part *query_parts(const struct query *query, size_t *count)
{
	const struct query_run *run = run_of(query);
	*count = run->plan.count;
	return run->plan.parts;
}

const struct granularities *query_granularities(const struct query_engine *engine)
{
	return engine->options.granularities;
}

void query_range(const struct query *query, int64_t *start_ms, int64_t *end_ms)
{
	const struct query_run *run = run_of(query);
	*start_ms = run->start_ms;
	*end_ms = run->end_ms;
}

bool query_next(struct query *query, size_t points_max, struct query_chunk *chunk)
{
	struct query_run *run = run_of(query);
	ASSERT(points_max > 0);
	if (run->state != RUN_ANSWERING)
		return false;
	place_wake(run);
	run->called = true;
	uint64_t left = run_points_allowed(run) - query->points;
	if (left == 0 && stage_has_points(run)) {
		end_cut(run, "points", "query.points_max");
		return false;
	}
	if (left && run->reader->next(run, left < points_max ? (size_t)left : points_max, chunk)) {
		if (run->ordered)
			run_found_value(run, chunk->series_index);
		chunk->first = chunk->series_index + 1 != run->last_series;
		run->last_series = chunk->series_index + 1;
		query->points += chunk->count;
		return true;
	}
	stage_read(run);
	return false;
}

/* ---- Time ---------------------------------------------------------------------------------- */

/* A run that reads is ended by the store, which knows the same deadline. */
static bool overdue(const struct query_run *run, int64_t now_us)
{
	return now_us >= run->deadline_us &&
	       (run->state == RUN_WAITING || run->state == RUN_FINDING ||
		run->state == RUN_FILTERING || run->state == RUN_ASKING ||
		run->state == RUN_ANSWERING);
}

static void end_overdue(struct query_run *run)
{
	bool giving = run->state == RUN_ANSWERING;
	if (run->state == RUN_FINDING)
		catalog_find_cancel(&run->find);
	if (run->state == RUN_ASKING) {
		store_read_free(run->asking);
		run->asking = NULL;
	}
	atomic_store(&run->filter_dropped, true);
	end_late(run);
	if (giving)
		free_buffers(run);
	/* Whoever is taking chunks learns of the end by himself; others wait to be told. */
	if (!giving)
		run->ready(run->owner);
}

void query_engine_tick(struct query_engine *engine)
{
	int64_t now_us = query_mono_us(engine);
	places_tick(engine);
	for (struct query_run *run = engine->runs; run;) {
		if (!overdue(run, now_us)) {
			run = run->older;
			continue;
		}
		end_overdue(run);
		run = engine->runs; /* the list may have changed */
	}
}
