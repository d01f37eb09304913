#include "ingest/fault_series.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "fault/minutes.h"
#include "ingest/job_write.h"
#include "loop/job.h"

enum {
	SERIES_EVERY_MS = 2000,
	/* One request of ingest has so many points: it gives the reason of so many refusals. */
	SERIES_POINTS_MAX = INGEST_ERRORS_MAX,
	SERIES_LOAD_MS = 60000, /* so often it is looked whether series have left */
	SERIES_FIND_MAX_BYTES = 256 << 20,
	SERIES_KEY_MAX_BYTES = 16 << 10,
	SERIES_LOGS_A_MINUTE = 3,
};

enum fault_metric { FAULT_METRIC_NAMES, FAULT_METRIC_GROUPS, FAULT_METRICS };

static const struct fault_metric_row {
	struct slice name;
	const char *tags[FAULT_MINUTE_TEXTS]; /* by key */
	size_t tag_count;
} fault_metric_rows[FAULT_METRICS] = {
	[FAULT_METRIC_NAMES] = {SLICE("faults"), {"context", "exception", "release"}, 3},
	[FAULT_METRIC_GROUPS] = {SLICE("fault_groups"), {"group"}, 1},
};

/* Which series of a metric there are: hashes of their tags. */
struct fault_series_known {
	struct hash_table table;
	bool loaded;
	bool full;         /* there are more than can be listed */
	int64_t loaded_ms; /* monotonic */
};

/* A tenant that minutes were written of. */
struct fault_series_tenant {
	struct fault_book *book;
	struct fault_series_known known[FAULT_METRICS];
};

/* A sample that is to be written. */
struct fault_series_point {
	enum fault_metric metric;
	struct tag tags[FAULT_MINUTE_TEXTS];
	size_t tag_count;
	struct hash128 hash; /* of the tags */
	uint64_t reports;
};

struct fault_series {
	struct fault_series_options options;
	struct job *job; /* NULL: it is over */
	/* The job's. */
	struct job *running; /* `job`, as it knows itself */
	struct fault_series_tenant **tenants;
	size_t count, room;
	struct buf key;
	struct log_rate logs;
};

static int64_t fault_series_now_ms(const struct fault_series *series)
{
	return clock_mono_ms(fault_site_of(series->options.fault)->clock);
}

/* ---- Which series there are ------------------------------------------------------------------ */

struct fault_series_find {
	struct catalog_find find;
	struct executor *back;
	struct task found;
	struct task_answer answer;
};

static void fault_series_on_back(struct task *task)
{
	CONTAINER_OF(task, struct fault_series_find, found)->answer.there = true;
}

static void fault_series_on_found(struct catalog_find *find, int err)
{
	struct fault_series_find *f = find->owner;
	f->answer.err = err;
	f->back->post(f->back, &f->found);
}

/* On the loop. */
static void fault_series_begin_find(void *owner)
{
	catalog_find_start(&((struct fault_series_find *)owner)->find);
}

static void fault_series_add_known(struct fault_series_known *known, struct hash128 tags)
{
	bool added;
	hash_table_add(&known->table, tags, sizeof(struct hash128), &added);
}

static struct hash128 fault_series_hash(struct slice tags)
{
	return hash128(tags.data, tags.len, 0);
}

static int fault_series_load(struct fault_series *series, struct fault_series_tenant *tenant,
			     enum fault_metric metric, struct errbuf *e)
{
	struct fault_series_known *known = &tenant->known[metric];
	struct arena arena;
	arena_init_small(&arena, SERIES_FIND_MAX_BYTES);
	struct fault_series_find f = {
		.find = {.catalog = series->options.catalog,
			 .tenant = fault_book_tenant(tenant->book),
			 .metric = fault_metric_rows[metric].name,
			 .series_max = FAULT_SERIES_MAX,
			 .done = fault_series_on_found,
			 .owner = &f,
			 .arena = &arena},
		.back = &job_queue(series->running)->executor,
		.found = {.run = fault_series_on_back},
	};
	job_call(series->running, series->options.executor, fault_series_begin_find, &f);
	int err = task_queue_wait_for(job_queue(series->running), &f.answer);
	known->full = err == ERR_LIMIT;
	if (!err)
		hash_table_release(&known->table);
	else if (!known->full)
		errbuf_set(e, err, "the series of metric " SHOWN " cannot be listed: %s",
			   SHOWN_OF(fault_metric_rows[metric].name), f.find.error.text);
	for (size_t i = 0; i < f.find.count && !err; i++)
		fault_series_add_known(known, fault_series_hash(f.find.series[i].tags_text));
	known->loaded = known->loaded || !err || known->full;
	known->loaded_ms = fault_series_now_ms(series);
	arena_release(&arena);
	return known->full ? 0 : err;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Points that are written together. */
struct fault_series_write {
	struct fault_series *series;
	struct slice tenant;
	int64_t ms;
	struct fault_series_point points[SERIES_POINTS_MAX];
	size_t count;
	struct job_write write;
	struct ingest_points written[SERIES_POINTS_MAX];
	struct value values[SERIES_POINTS_MAX];
	struct fault_series_tenant *series_of;
	uint64_t rest[FAULT_METRICS]; /* reports that have no series */
};

/* What is refused, as by the limits of the catalog, is of the rest. If that is refused, too, its
 * reports are left out. */
static void fault_series_take_back(struct fault_series_write *w)
{
	struct fault_series *series = w->series;
	for (size_t i = 0; i < w->write.refused_count; i++) {
		const struct fault_series_point *point = &w->points[w->write.refused[i]];
		w->rest[point->metric] += point->reports;
		hash_table_remove(&w->series_of->known[point->metric].table, point->hash);
	}
	if (w->write.refused_count)
		log_rated(&series->logs, fault_series_now_ms(series), LOG_WARN,
			  "faults: %zu of %zu samples of how many reports tenant " SHOWN
			  " had in a minute are refused: %s; reports of a name are counted in the "
			  "series rest=true",
			  w->write.refused_count, w->count, SHOWN_OF(w->tenant), w->write.why.text);
}

static int fault_series_flush(struct fault_series_write *w, struct errbuf *e)
{
	if (!w->count)
		return 0;
	for (size_t i = 0; i < w->count; i++) {
		struct fault_series_point *point = &w->points[i];
		w->values[i] = value_i64((int64_t)point->reports);
		w->written[i] =
			(struct ingest_points){.tenant = w->tenant,
					       .tags = point->tags,
					       .tag_count = point->tag_count,
					       .metrics = &fault_metric_rows[point->metric].name,
					       .values = &w->values[i],
					       .count = 1,
					       .ts_ms = w->ms};
	}
	w->write.count = w->count;
	int err = job_write_wait(&w->write, e);
	if (!err)
		fault_series_take_back(w);
	w->count = 0;
	return err;
}

/* Whether there is room for one more. Where there is none it is looked again now and then: series
 * expire. What was put before is written first, so that the catalog has its series, too. */
static int fault_series_make_room(struct fault_series_write *w, enum fault_metric metric,
				  bool *room, struct errbuf *e)
{
	struct fault_series *series = w->series;
	struct fault_series_known *known = &w->series_of->known[metric];
	int64_t now_ms = fault_series_now_ms(series);
	bool full = known->full || known->table.count >= series->options.series_max;
	int err = 0;
	if (full && now_ms - known->loaded_ms >= SERIES_LOAD_MS) {
		err = fault_series_flush(w, e);
		err = err ? err : fault_series_load(series, w->series_of, metric, e);
	}
	*room = !known->full && known->table.count < series->options.series_max;
	return err;
}

/* Whether a point has a series, or may have a new one: there is room, and its texts can be tags. */
static int fault_series_fits(struct fault_series_write *w, struct fault_series_point *point,
			     bool *fits, struct errbuf *e)
{
	struct fault_series *series = w->series;
	struct fault_series_known *known = &w->series_of->known[point->metric];
	const struct tags tags = {point->tags, point->tag_count};
	struct errbuf why;
	*fits = false;
	if (tags_sort_and_check(point->tags, point->tag_count, &why))
		return 0;
	buf_clear(&series->key);
	int err = tags_encode(tags, &series->key);
	ASSERT(!err); /* facts are short */
	point->hash = fault_series_hash(buf_slice(&series->key));
	*fits = hash_table_find(&known->table, point->hash) != NULL;
	if (*fits || !point->reports)
		return 0;
	err = fault_series_make_room(w, point->metric, fits, e);
	*fits = *fits || hash_table_find(&known->table, point->hash) != NULL;
	if (!err && *fits)
		fault_series_add_known(known, point->hash);
	return err;
}

static int fault_series_put(struct fault_series_write *w, const struct fault_series_point *point,
			    struct errbuf *e)
{
	w->points[w->count++] = *point;
	return w->count == SERIES_POINTS_MAX ? fault_series_flush(w, e) : 0;
}

static struct fault_series_point fault_series_point_of(const struct fault_minute_count *count)
{
	struct fault_series_point point = {.metric = count->group ? FAULT_METRIC_GROUPS
								  : FAULT_METRIC_NAMES,
					   .reports = count->reports};
	const struct fault_metric_row *row = &fault_metric_rows[point.metric];
	for (size_t i = 0; i < row->tag_count; i++)
		if (count->texts[i].len)
			point.tags[point.tag_count++] =
				(struct tag){slice_of(row->tags[i]), count->texts[i]};
	return point;
}

/* A rest that is there already is written also if it is 0 now: this minute may have had one. */
static int fault_series_put_rest(struct fault_series_write *w, enum fault_metric metric,
				 struct errbuf *e)
{
	struct fault_series_point point = {.metric = metric,
					   .tags = {{SLICE("rest"), SLICE("true")}},
					   .tag_count = 1,
					   .reports = w->rest[metric],
					   .hash = fault_series_hash(SLICE("rest=true"))};
	struct fault_series_known *known = &w->series_of->known[metric];
	if (!point.reports && !hash_table_find(&known->table, point.hash))
		return 0;
	fault_series_add_known(known, point.hash);
	return fault_series_put(w, &point, e);
}

static int fault_series_put_all(struct fault_series_write *w, const struct fault_minute *minute,
				struct errbuf *e)
{
	int err = 0;
	w->rest[FAULT_METRIC_NAMES] = minute->names_rest;
	w->rest[FAULT_METRIC_GROUPS] = minute->groups_rest;
	for (size_t at = 0; at < minute->counts.slot_count && !err; at++) {
		const struct fault_minute_count *count = hash_table_at(&minute->counts, at);
		bool fits;
		if (!count)
			continue;
		struct fault_series_point point = fault_series_point_of(count);
		err = fault_series_fits(w, &point, &fits, e);
		if (!err && fits)
			err = fault_series_put(w, &point, e);
		else
			w->rest[point.metric] += point.reports;
	}
	err = err ? err : fault_series_flush(w, e);
	for (int metric = 0; metric < FAULT_METRICS && !err; metric++)
		err = fault_series_put_rest(w, (enum fault_metric)metric, e);
	return err ? err : fault_series_flush(w, e);
}

/* ---- The job --------------------------------------------------------------------------------- */

struct fault_series_turn {
	struct fault_series *series;
	struct fault_book *book;
};

static struct fault_series_tenant *fault_series_tenant_of(struct fault_series *series,
							  struct fault_book *book)
{
	for (size_t i = 0; i < series->count; i++)
		if (series->tenants[i]->book == book)
			return series->tenants[i];
	struct fault_series_tenant *tenant = mem_zalloc(sizeof(*tenant));
	tenant->book = book;
	GROW(series->tenants, series->room, series->count + 1);
	series->tenants[series->count++] = tenant;
	return tenant;
}

static int fault_series_take(void *owner, const struct fault_minute *minute, struct errbuf *e)
{
	const struct fault_series_turn *turn = owner;
	struct fault_series *series = turn->series;
	struct fault_series_tenant *tenant = fault_series_tenant_of(series, turn->book);
	int err = 0;
	for (int metric = 0; metric < FAULT_METRICS && !err; metric++)
		if (!tenant->known[metric].loaded)
			err = fault_series_load(series, tenant, (enum fault_metric)metric, e);
	if (err)
		return err;
	struct fault_series_write *w = mem_zalloc(sizeof(*w));
	w->series = series;
	w->series_of = tenant;
	w->tenant = fault_book_tenant(turn->book);
	w->ms = minute->start_us / 1000;
	w->write = (struct job_write){.ingest = series->options.ingest,
				      .executor = series->options.executor,
				      .job = series->running,
				      .points = w->written};
	err = fault_series_put_all(w, minute, e);
	mem_free(w);
	return err;
}

/* True: there is more to do. */
static bool fault_series_look_at(struct fault_series *series, struct fault_book *book)
{
	const struct fault_site *site = fault_site_of(series->options.fault);
	struct fault_series_turn turn = {series, book};
	const struct fault_minute_taker taker = {fault_series_take, &turn};
	struct errbuf e = {""};
	bool more;
	int64_t until_ms = clock_age_ms(site->clock) - site->write_max_ms - site->skew_max_ms;
	int err = fault_book_count_minutes(book, job_queue(series->running), until_ms * 1000,
					   &taker, &more, &e);
	if (err && err != ERR_RETRY && err != ERR_CANCELLED)
		log_rated(&series->logs, fault_series_now_ms(series), LOG_WARN,
			  "faults: how many reports tenant " SHOWN
			  " had in a minute is not written: %s; the server tries again",
			  SHOWN_OF(fault_book_tenant(book)), e.text);
	return more && !err;
}

/* Each tenant has its turn. */
static void fault_series_run(struct job *job, void *owner)
{
	struct fault_series *series = owner;
	bool more = false;
	series->running = job;
	do {
		size_t count;
		struct fault_book **books = fault_copy_books(series->options.fault, &count);
		more = false;
		for (size_t i = 0; i < count && !job_is_stopping(job); i++)
			more = fault_series_look_at(series, books[i]) || more;
		mem_free(books);
	} while (!job_sleep(job, more ? 0 : SERIES_EVERY_MS));
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void fault_series_over(void *owner)
{
	struct fault_series *series = owner;
	job_free(series->job);
	series->job = NULL;
}

struct fault_series *fault_series_start(const struct fault_series_options *options)
{
	struct fault_series *series = mem_zalloc(sizeof(*series));
	ASSERT(options->series_max <= FAULT_SERIES_MAX);
	series->options = *options;
	series->logs = (struct log_rate){.lines_max = SERIES_LOGS_A_MINUTE};
	buf_init(&series->key, SERIES_KEY_MAX_BYTES);
	int err = job_start("fault series", fault_series_run, fault_series_over, series,
			    options->executor, &series->job);
	ASSERT(!err); /* one of the first */
	return series;
}

void fault_series_stop(struct fault_series *series)
{
	if (series->job)
		job_stop(series->job);
}

bool fault_series_is_over(const struct fault_series *series)
{
	return !series->job;
}

void fault_series_free(struct fault_series *series)
{
	if (!series)
		return;
	ASSERT(fault_series_is_over(series));
	for (size_t i = 0; i < series->count; i++) {
		for (int metric = 0; metric < FAULT_METRICS; metric++)
			hash_table_release(&series->tenants[i]->known[metric].table);
		mem_free(series->tenants[i]);
	}
	mem_free(series->tenants);
	buf_release(&series->key);
	mem_free(series);
}
