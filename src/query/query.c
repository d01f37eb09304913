#include "query/private.h"

#include "base/stats.h"

/* Times of queries are cut to this, 36 million years either way: sums with them are safe. */
#define TIME_MAX_MS (INT64_C(1) << 60)

enum { TICK_MS = 1000 };

/* ---- The engine ---------------------------------------------------------------------------- */

static void tick(void *owner)
{
	query_engine_tick(owner);
}

struct query_engine *query_engine_new(const struct query_options *options)
{
	struct query_engine *engine = mem_zalloc(sizeof(*engine));
	struct query_options *o = &engine->options;
	*o = *options;
	o->series_max = o->series_max ? o->series_max : 10000;
	o->points_max = o->points_max ? o->points_max : 10000000;
	o->timeout_ms = o->timeout_ms ? o->timeout_ms : 60000;
	o->concurrent_max = o->concurrent_max ? o->concurrent_max : 32;
	o->waiting_max = o->waiting_max ? o->waiting_max : 1000;
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

static int64_t mono_us(const struct query_engine *engine)
{
	return engine->options.clock->mono_us(engine->options.clock);
}

/* ---- Places -------------------------------------------------------------------------------- */

static bool has_place(const struct query_run *run)
{
	return run->state >= RUN_FINDING && run->state <= RUN_GIVING;
}

static void begin(struct query_run *run)
{
	run->engine->running++;
	run->state = RUN_FINDING;
	stat_set(STAT_queries_running, (int64_t)run->engine->running);
	catalog_find_start(&run->find);
}

static void wait_remove(struct query_run *run)
{
	struct query_engine *engine = run->engine;
	struct query_run **link = &engine->first;
	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	if (engine->last == &run->next)
		engine->last = link;
	engine->waiting--;
}

static void begin_waiting(struct query_engine *engine)
{
	while (engine->first && engine->running < engine->options.concurrent_max) {
		struct query_run *run = engine->first;
		wait_remove(run);
		begin(run);
	}
}

/* The run gives up its place or its turn; it may be ended or on its way to be freed. */
static void leave(struct query_run *run)
{
	struct query_engine *engine = run->engine;
	if (run->state == RUN_WAITING) {
		wait_remove(run);
	} else if (has_place(run)) {
		engine->running--;
		stat_set(STAT_queries_running, (int64_t)engine->running);
	}
	run->state = RUN_ENDED;
	begin_waiting(engine);
}

/* ---- Ends ---------------------------------------------------------------------------------- */

static void end(struct query_run *run, int err)
{
	struct query *query = &run->query;
	leave(run);
	query->ended = true;
	query->err = err;
	if (err && !query->error.text[0])
		errbuf_set(&query->error, err, "%s", err_text(err));
}

static void end_cut(struct query_run *run, const char *why)
{
	run->query.cut = true;
	run->query.cut_why = why;
	stat_add(STAT_queries_cut, 1);
	end(run, 0);
}

/* Before the first chunk it can still be refused, afterwards only be cut. */
static void end_late(struct query_run *run)
{
	if (run->query.points) {
		end_cut(run, "time");
		return;
	}
	errbuf_set(&run->query.error, ERR_TIMEOUT,
		   "the query took longer than %lld ms; ask for fewer series or less time",
		   (long long)run->engine->options.timeout_ms);
	end(run, ERR_TIMEOUT);
}

/* ---- Reading ------------------------------------------------------------------------------- */

bool run_next_batch(struct query_run *run, size_t count)
{
	run->batch += run->batch_count;
	size_t left = run->find.count - run->batch;
	run->batch_count = left < count ? left : count;
	if (run->batch_count == 0 && left)
		run->batch_count = 1;
	for (size_t i = 0; i < run->batch_count; i++)
		run->handles[i] = run->find.series[run->batch + i].handle;
	return run->batch_count != 0;
}

static int submit(struct query_run *run)
{
	run->in_flight = true;
	run->state = RUN_READING;
	int err = store_read_submit(run->read);
	if (err)
		run->in_flight = false;
	return err;
}

/* Submits the next slice; afterwards the run reads or has ended. */
static void read_next(struct query_run *run)
{
	if (mono_us(run->engine) >= run->deadline_us) {
		end_late(run);
		return;
	}
	store_read_reset(run->read);
	if (!run->reader->next(run)) {
		end(run, 0);
		return;
	}
	int err = submit(run);
	if (err)
		end(run, err);
}

static void add_work(struct query *query, const struct store_read_work *work)
{
	query->work.extents += work->extents;
	query->work.blocks_decoded += work->blocks_decoded;
	query->work.blocks_summarised += work->blocks_summarised;
	query->work.blocks_skipped += work->blocks_skipped;
	query->work.points += work->points;
}

/* True if a point of the slice is left. It is not consumed. */
static bool slice_has_points(struct query_run *run)
{
	struct query_chunk chunk;
	size_t series = run->next_series, offset = run->offset;
	bool has = run->reader->take(run, 1, &chunk);
	if (has && series == run->next_series)
		run->offset = offset;
	else if (has)
		run->offset = 0;
	return has;
}

static void run_free(struct query_run *run);

static void read_done(struct store_read *read, int err)
{
	struct query_run *run = read->owner;
	run->in_flight = false;
	if (run->dropped) {
		run_free(run);
		return;
	}
	add_work(&run->query, &read->work);
	if (err == ERR_TIMEOUT) {
		end_late(run);
	} else if (err) {
		end(run, err);
	} else if (run->reader->arrived(run)) {
		err = submit(run);
		if (!err)
			return;
		end(run, err);
	} else {
		run->state = RUN_GIVING;
		run->next_series = run->offset = 0;
		if (!slice_has_points(run)) {
			read_next(run);
			if (!run->query.ended)
				return;
		}
	}
	run->ready(run->owner);
}

/* ---- Finding ------------------------------------------------------------------------------- */

/* How many points the answer has at most, if it is made of windows. */
static int check_windows(struct query_run *run)
{
	const struct query_spec *spec = &run->query.spec;
	if (spec->fn == FN_NONE)
		return 0;
	uint64_t each = (uint64_t)(floor_div(run->end_ms - 1, spec->window_ms) -
				   floor_div(run->start_ms, spec->window_ms) + 1);
	uint64_t max = run->engine->options.points_max;
	if (run->find.count == 0 || each <= max / run->find.count)
		return 0;
	return errbuf_set(&run->query.error, ERR_LIMIT,
			  "%zu series in %llu windows are more than the %llu points of an answer; "
			  "take a wider window, less time or fewer series",
			  run->find.count, (unsigned long long)each, (unsigned long long)max);
}

static void prepare(struct query_run *run)
{
	const struct query_spec *spec = &run->query.spec;
	struct query_options *options = &run->engine->options;
	run->handles = mem_alloc_array(BATCH_SERIES, sizeof(*run->handles));
	run->read = store_read_new(options->store, READ_MAX_BYTES);
	run->read->executor = options->executor;
	run->read->done = read_done;
	run->read->owner = run;
	run->read->now_ms = run->now_ms;
	run->read->deadline_us = run->deadline_us;
	run->reader = &reader_raw;
	if (spec->fn == FN_NONE) {
		run->read->points_max = options->slice_points;
		return;
	}
	struct query_windows *w = &run->windows;
	run->reader = &reader_windows;
	w->head_end_ms = floor_to(run->start_ms + spec->window_ms - 1, spec->window_ms);
	if (w->head_end_ms > run->end_ms)
		w->head_end_ms = run->end_ms;
	w->heads = mem_alloc_array(BATCH_SERIES, sizeof(*w->heads));
	w->mains = mem_alloc_array(SLICE_WINDOWS, sizeof(*w->mains));
	run->ts_ms = mem_alloc_array(WINDOW_POINTS, sizeof(*run->ts_ms));
	run->bits = mem_alloc_array(WINDOW_POINTS, sizeof(*run->bits));
	run->types = mem_alloc_array(WINDOW_POINTS, sizeof(*run->types));
}

static void found(struct catalog_find *find, int err)
{
	struct query_run *run = find->owner;
	if (err)
		run->query.error = find->error;
	else
		err = check_windows(run);
	if (err) {
		end(run, err);
	} else if (find->count == 0 || run->start_ms >= run->end_ms) {
		end(run, 0);
	} else {
		prepare(run);
		read_next(run);
		if (!run->query.ended)
			return;
	}
	run->ready(run->owner);
}

/* ---- Life of a query ----------------------------------------------------------------------- */

struct query *query_new(struct query_engine *engine, query_ready *ready, void *owner)
{
	struct query_run *run = mem_zalloc(sizeof(*run));
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
	return CONTAINER_OF(query, struct query_run, query);
}

static void free_buffers(struct query_run *run)
{
	store_read_free(run->read);
	mem_free(run->handles);
	mem_free(run->windows.heads);
	mem_free(run->windows.mains);
	mem_free(run->ts_ms);
	mem_free(run->bits);
	mem_free(run->types);
	run->read = NULL;
	run->handles = NULL;
	run->windows.heads = run->windows.mains = NULL;
	run->ts_ms = NULL;
	run->bits = NULL;
	run->types = NULL;
}

static void run_free(struct query_run *run)
{
	*(run->newer ? &run->newer->older : &run->engine->runs) = run->older;
	if (run->older)
		run->older->newer = run->newer;
	free_buffers(run);
	arena_release(&run->query.arena);
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
		leave(run);
	if (!run->in_flight) {
		run_free(run);
		return;
	}
	run->dropped = true;
	store_read_cancel(run->read);
}

static int64_t clamp_time(int64_t ms)
{
	if (ms > TIME_MAX_MS)
		return TIME_MAX_MS;
	return ms < -TIME_MAX_MS ? -TIME_MAX_MS : ms;
}

static int check_spec(struct query_run *run)
{
	struct query *query = &run->query;
	const struct query_spec *spec = &query->spec;
	int64_t range_max_ms = run->engine->options.range_max_ms;
	if (spec->fn != FN_NONE && (spec->window_ms <= 0 || spec->window_ms > TIME_MAX_MS))
		return errbuf_set(&query->error, ERR_INVALID,
				  "a window is at least one millisecond long");
	if (spec->start_ms > spec->end_ms)
		return errbuf_set(&query->error, ERR_INVALID, "start lies after end");
	if (range_max_ms && run->end_ms - run->start_ms > range_max_ms)
		return errbuf_set(&query->error, ERR_LIMIT,
				  "the time from start to end is longer than %lld hours",
				  (long long)(range_max_ms / 3600000));
	return 0;
}

static void set_times(struct query_run *run)
{
	struct query_engine *engine = run->engine;
	const struct query_options *options = &engine->options;
	const struct query_spec *spec = &run->query.spec;
	run->now_ms = clock_wall_ms(options->clock);
	run->deadline_us = mono_us(engine) + options->timeout_ms * 1000;
	run->start_ms = clamp_time(spec->start_ms);
	run->end_ms = clamp_time(spec->end_ms);
}

/* After check_spec: how far back data goes is no reason to refuse a query. */
static void clip_to_retention(struct query_run *run)
{
	int64_t retention_ms = run->engine->options.retention_ms;
	if (retention_ms && run->start_ms < run->now_ms - retention_ms)
		run->start_ms = run->now_ms - retention_ms;
}

int query_start(struct query *query)
{
	struct query_run *run = run_of(query);
	struct query_engine *engine = run->engine;
	ASSERT(run->state == RUN_NEW);
	set_times(run);
	int err = check_spec(run);
	if (err)
		return err;
	clip_to_retention(run);
	run->find = (struct catalog_find){
		.catalog = engine->options.catalog,
		.tenant = query->spec.tenant,
		.metric = query->spec.metric,
		.selectors = query->spec.selectors,
		.selector_count = query->spec.selector_count,
		.series_max = engine->options.series_max,
		.done = found,
		.owner = run,
		.arena = &query->arena,
	};
	if (engine->running < engine->options.concurrent_max) {
		begin(run);
		return 0;
	}
	if (engine->waiting == engine->options.waiting_max)
		return errbuf_set(&query->error, ERR_BUSY,
				  "%zu queries run and %zu wait; try again later", engine->running,
				  engine->waiting);
	run->state = RUN_WAITING;
	run->next = NULL;
	*engine->last = run;
	engine->last = &run->next;
	engine->waiting++;
	return 0;
}

const struct catalog_series *query_series(const struct query *query, size_t *count)
{
	const struct query_run *run = run_of(query);
	*count = run->find.count;
	return run->find.series;
}

bool query_take(struct query *query, size_t points_max, struct query_chunk *chunk)
{
	struct query_run *run = run_of(query);
	ASSERT(points_max > 0);
	if (run->state != RUN_GIVING)
		return false;
	uint64_t left = run->engine->options.points_max - query->points;
	if (left == 0 && slice_has_points(run)) {
		end_cut(run, "points");
		return false;
	}
	if (left && run->reader->take(run, left < points_max ? (size_t)left : points_max, chunk)) {
		chunk->first = chunk->series_index + 1 != run->last_given;
		run->last_given = chunk->series_index + 1;
		query->points += chunk->count;
		return true;
	}
	read_next(run);
	return false;
}

/* ---- Time ---------------------------------------------------------------------------------- */

/* A run that reads is ended by the store, which knows the same deadline. */
static bool overdue(const struct query_run *run, int64_t now_us)
{
	return now_us >= run->deadline_us &&
	       (run->state == RUN_WAITING || run->state == RUN_FINDING || run->state == RUN_GIVING);
}

static void end_overdue(struct query_run *run)
{
	bool giving = run->state == RUN_GIVING;
	if (run->state == RUN_FINDING)
		catalog_find_cancel(&run->find);
	end_late(run);
	if (giving)
		free_buffers(run);
	/* Whoever is taking chunks learns of the end by himself; others wait to be told. */
	if (!giving)
		run->ready(run->owner);
}

void query_engine_tick(struct query_engine *engine)
{
	int64_t now_us = mono_us(engine);
	for (struct query_run *run = engine->runs; run;) {
		if (!overdue(run, now_us)) {
			run = run->older;
			continue;
		}
		end_overdue(run);
		run = engine->runs; /* the list may have changed */
	}
}

/* ---- Functions ----------------------------------------------------------------------------- */

int query_fn_parse(struct slice text, enum query_fn *fn)
{
	static const char *const names[] = {"min", "max", "sum", "avg", "count", "first", "last"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (slice_equal(text, slice_of(names[i]))) {
			*fn = (enum query_fn)(FN_MIN + (int)i);
			return 0;
		}
	}
	return ERR_INVALID;
}
