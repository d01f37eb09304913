#include "ingest/fault_series.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "fault/minutes.h"
#include "loop/job.h"

enum {
	SERIES_EVERY_MS = 2000,
	SERIES_POINTS_MAX =
		500, /* of one request of ingest: the loop does nothing else meanwhile */
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

static void fault_series_add_known(struct fault_series_known *known, struct slice tags)
{
	bool added;
	hash_table_add(&known->table, hash128(tags.data, tags.len, 0), sizeof(struct hash128),
		       &added);
}

/* Some may have left since it was loaded; then it is loaded once more when there is no room. */
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
	if (err)
		errbuf_set(e, err, "the series of metric " SHOWN " cannot be listed: %s",
			   SHOWN_OF(fault_metric_rows[metric].name), f.find.error.text);
	else
		hash_table_release(&known->table);
	for (size_t i = 0; i < f.find.count && !err; i++)
		fault_series_add_known(known, f.find.series[i].tags_text);
	known->loaded = known->loaded || !err;
	arena_release(&arena);
	return err;
}

/* Whether a point has a series, or may have a new one: there is room, and its texts can be tags. */
static bool fault_series_fits(struct fault_series *series, struct fault_series_tenant *tenant,
			      struct fault_series_point *point)
{
	struct fault_series_known *known = &tenant->known[point->metric];
	const struct tags tags = {point->tags, point->tag_count};
	struct errbuf e;
	if (tags_sort_and_check(point->tags, point->tag_count, &e))
		return false;
	buf_clear(&series->key);
	int err = tags_encode(tags, &series->key);
	ASSERT(!err); /* facts are short */
	struct slice text = buf_slice(&series->key);
	if (hash_table_find(&known->table, hash128(text.data, text.len, 0)))
		return true;
	if (!point->reports || known->table.count >= series->options.series_max)
		return false;
	fault_series_add_known(known, text);
	return true;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Points that are written together. The loop's while the job waits. */
struct fault_series_write {
	struct fault_series *series;
	struct slice tenant;
	int64_t ms;
	struct fault_series_point points[SERIES_POINTS_MAX];
	size_t count;
	struct executor *back;
	struct task over;
	struct task_answer answer;
	uint64_t refused;
	struct errbuf error; /* of the write, or why the first point was refused */
};

static void fault_series_on_over(struct task *task)
{
	CONTAINER_OF(task, struct fault_series_write, over)->answer.there = true;
}

static void fault_series_on_written(struct ingest_request *r)
{
	struct fault_series_write *w = ingest_owner(r);
	w->answer.err = r->err;
	w->refused = r->refused;
	if (r->err)
		w->error = r->error;
	else if (r->error_count)
		errbuf_set(&w->error, 0, "%s", r->errors[0].sentence);
	ingest_request_free(r);
	w->back->post(w->back, &w->over);
}

/* On the loop. */
static void fault_series_submit(void *owner)
{
	struct fault_series_write *w = owner;
	const struct ingest_door door = {
		.done = fault_series_on_written, .owner = w, .patient = true};
	struct ingest_request *r = ingest_request_new(w->series->options.ingest, &door);
	ingest_piece_begin(r);
	for (size_t i = 0; i < w->count; i++) {
		struct fault_series_point *point = &w->points[i];
		struct value value = value_i64((int64_t)point->reports);
		struct ingest_points points = {
			.tenant = w->tenant,
			.tags = point->tags,
			.tag_count = point->tag_count,
			.metrics = &fault_metric_rows[point->metric].name,
			.values = &value,
			.count = 1,
			.ts_ms = w->ms,
		};
		ingest_points(r, &points);
	}
	ingest_piece_end(r);
	ingest_request_end(r);
}

/* What is refused (a name, the limits of the catalog, a time before all that is kept) is counted by
 * ingest, and not tried again. */
static int fault_series_flush(struct fault_series_write *w, struct errbuf *e)
{
	struct fault_series *series = w->series;
	struct clock *clock = fault_site_of(series->options.fault)->clock;
	if (!w->count)
		return 0;
	w->answer = (struct task_answer){false, 0};
	job_call(series->running, series->options.executor, fault_series_submit, w);
	int err = task_queue_wait_for(job_queue(series->running), &w->answer);
	if (!err && w->refused)
		log_rated(&series->logs, clock_mono_ms(clock), LOG_WARN,
			  "faults: %llu of %zu samples of how many reports tenant " SHOWN
			  " had in a minute are left out: %s",
			  (unsigned long long)w->refused, w->count, SHOWN_OF(w->tenant),
			  w->error.text);
	w->count = 0;
	return err ? errbuf_set(e, err, "%s", w->error.text[0] ? w->error.text : err_text(err)) : 0;
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

static int fault_series_put_rest(struct fault_series_write *w, enum fault_metric metric,
				 uint64_t reports, struct errbuf *e)
{
	const struct fault_series_point point = {.metric = metric,
						 .tags = {{SLICE("rest"), SLICE("true")}},
						 .tag_count = 1,
						 .reports = reports};
	return reports ? fault_series_put(w, &point, e) : 0;
}

static int fault_series_put_all(struct fault_series_write *w, struct fault_series_tenant *tenant,
				const struct fault_minute *minute, struct errbuf *e)
{
	uint64_t rest[FAULT_METRICS] = {minute->names_rest, minute->groups_rest};
	int err = 0;
	for (size_t at = 0; at < minute->counts.slot_count && !err; at++) {
		const struct fault_minute_count *count = hash_table_at(&minute->counts, at);
		if (!count)
			continue;
		struct fault_series_point point = fault_series_point_of(count);
		if (fault_series_fits(w->series, tenant, &point))
			err = fault_series_put(w, &point, e);
		else
			rest[point.metric] += point.reports;
	}
	for (int metric = 0; metric < FAULT_METRICS && !err; metric++)
		err = fault_series_put_rest(w, (enum fault_metric)metric, rest[metric], e);
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
		if (!tenant->known[metric].loaded ||
		    tenant->known[metric].table.count >= series->options.series_max)
			err = fault_series_load(series, tenant, (enum fault_metric)metric, e);
	if (err)
		return err;
	struct fault_series_write *w = mem_zalloc(sizeof(*w));
	w->series = series;
	w->tenant = fault_book_tenant(turn->book);
	w->ms = minute->start_us / 1000;
	w->back = &job_queue(series->running)->executor;
	w->over = (struct task){.run = fault_series_on_over};
	err = fault_series_put_all(w, tenant, minute, e);
	mem_free(w);
	return err;
}

static void fault_series_look_at(struct fault_series *series, struct fault_book *book)
{
	const struct fault_site *site = fault_site_of(series->options.fault);
	struct fault_series_turn turn = {series, book};
	const struct fault_minute_taker taker = {fault_series_take, &turn};
	struct errbuf e = {""};
	bool more = true;
	int err = 0;
	while (more && !err && !job_is_stopping(series->running)) {
		int64_t until_us = site->clock->wall_us(site->clock) -
				   (site->write_max_ms + site->skew_max_ms) * 1000;
		err = fault_book_count_minutes(book, job_queue(series->running), until_us, &taker,
					       &more, &e);
	}
	if (err && err != ERR_RETRY && err != ERR_CANCELLED)
		log_rated(&series->logs, clock_mono_ms(site->clock), LOG_WARN,
			  "faults: how many reports tenant " SHOWN
			  " had in a minute is not written: %s; the server tries again",
			  SHOWN_OF(fault_book_tenant(book)), e.text);
}

static void fault_series_run(struct job *job, void *owner)
{
	struct fault_series *series = owner;
	series->running = job;
	do {
		size_t count;
		struct fault_book **books = fault_copy_books(series->options.fault, &count);
		for (size_t i = 0; i < count && !job_is_stopping(job); i++)
			fault_series_look_at(series, books[i]);
		mem_free(books);
	} while (!job_sleep(job, SERIES_EVERY_MS));
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
