/* Property test of roll-ups. Some processes that take line protocol and some that roll up share a
 * store that is far away (slow_store.h); a seed decides who does what next, what fails, who dies
 * and is started again, and how the clock moves on. One more deletes samples, of some time or of
 * all, and goes on when it was broken off. Whenever all has come to rest, every row of every
 * granularity is what a plain loop makes of the raw data, those of late points what it makes of
 * late data, every sample of a request that was answered well is in one of the two unless a
 * deletion since was of its time, and no mark is left. */
#include <stdio.h>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "ingest/ingest.h"
#include "ingest/line_feed.h"
#include "naive.h"
#include "rollup/delete.h"
#include "rollup/job.h"
#include "rollup/late.h"
#include "rollup/leases.h"
#include "rollup/row.h"
#include "rollup/track_store.h"
#include "slow_store.h"
#include "tools/long_run.h"

enum {
	SLOT_MS = 60000,
	QUIET_MS = 20000,
	LEASE_MS = 30000,
	EVERY_MS = 5000,
	TICK_MS = 1000,
	PARTITIONS = 4,
	TAKERS = 2,
	WORKERS = 3,
	CLIENTS = 6,
	TEXT_MAX_BYTES = 4096,
	POINTS_MAX = 64, /* of one text */
	TENANTS = 2,
	MEASUREMENTS = 2,
	HOSTS = 2,
	FIELDS = 5,
	SHAPES = 6,
	SERIES = TENANTS * MEASUREMENTS * HOSTS * FIELDS,
	ACCEPTED_MAX = 100000,
	RESTS_MAX = 3000, /* rounds until all is at rest */
	LATE_SLOTS = 70,  /* so far back points lie where late ones are kept */
	/* So much longer than a slot is open its raw data is there: nothing waits for so long. */
	LAG_MS = 2400000,
};
#define BEGIN_MS INT64_C(1600000020000) /* a slot begins */

static const char *const grain_items[] = {"10s", "30s", "1m"};
static const char *const field_names[FIELDS] = {"value", "x", "y", "z", "n_total"};

struct process {
	struct slow_store store;
	struct task_queue queue;
	struct rollup_track *track;
	char name[16];
};

/* Takes line protocol. */
struct taker {
	struct process p;
	struct catalog *catalog;
	struct ingest *ingest;
	bool closed;
};

enum state { RESTS, TAKES, WORKS };

/* Rolls up, as rollup.c does. */
struct worker {
	struct process p;
	struct model *model;
	struct rollup_leases *leases;
	struct rollup_job *job;
	struct rollup_partitions own;
	enum state state;
	int64_t next_ms, asof_ms, until_ms;
};

/* Deletes samples of one series, or of all hosts. */
struct deleter {
	struct process p;
	struct model *model;
	struct rollup_delete
		*work; /* NULL: it is to be begun (again) if there is something to do */
	bool wanted, whole;
	unsigned series; /* of its hosts any, if there is no selector */
	char name[64];
	struct slice host;
	struct catalog_pattern host_pattern;
	struct catalog_selector selector;
	bool has_selector;
	int64_t from_ms, to_ms;
};

struct point {
	unsigned series;
	int64_t ts_ms;
	bool deleted; /* or maybe */
};

/* Who sends a text until it is taken. */
struct client {
	struct model *model;
	struct taker *taker;
	struct ingest_request *r; /* NULL: it is not sending */
	struct line_feed feed;
	bool waits, ended; /* to send it (again); all is sent */
	size_t len, at, point_count;
	struct point points[POINTS_MAX];
	char text[TEXT_MAX_BYTES];
};

struct model {
	uint64_t seed;
	struct random random;
	struct clock_virtual clock;
	struct slow slow;
	struct task_queue own; /* of the test's own reads */
	struct rollup_grains grains;
	bool trace, loses;
	size_t slice_points; /* of a job's reads */
	size_t cache_max_bytes, step;
	uint64_t pace_ms; /* the most that passes at a time, mostly */
	uint64_t edges;   /* how many steps of a thousand go to an edge of time */
	uint64_t measurements, hosts, shapes, used_takers;
	unsigned texts;           /* percent of the fields */
	unsigned store, sluggish; /* how readily these move, in percent */
	size_t which;             /* of the processes is sluggish */
	size_t check_steps;       /* how often all comes to rest */
	struct {
		size_t first, count;
	} shape[SHAPES]; /* of the lines: fields one after the other */
	bool atomic, one_name;
	bool late;               /* points of closed slots are kept */
	int64_t open_ms, raw_ms; /* how long raw data is said to be kept: to takers, to workers */
	struct taker takers[TAKERS];
	struct worker workers[WORKERS];
	struct client clients[CLIENTS];
	struct deleter deleter;
	unsigned deletes; /* how readily it begins, in percent */
	struct point *accepted;
	size_t accepted_count;
	uint64_t late_seen; /* late samples that were looked at */
	char failure[512];
};

static uint64_t pick(struct model *m, uint64_t bound)
{
	return random_below(&m->random, bound);
}

static bool chance(struct model *m, unsigned percent)
{
	return pick(m, 100) < percent;
}

static int64_t now_ms(struct model *m)
{
	return clock_wall_ms(&m->clock.clock);
}

static void trace(struct model *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void trace(struct model *m, const char *fmt, ...)
{
	va_list args;
	if (!m->trace)
		return;
	printf("%6zu %8lld  ", m->step, (long long)(now_ms(m) - BEGIN_MS));
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static bool differ(struct model *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool differ(struct model *m, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!m->failure[0])
		vsnprintf(m->failure, sizeof(m->failure), fmt, args);
	va_end(args);
	return false;
}

/* ---- Processes ------------------------------------------------------------------------------- */

static bool run_one(struct task_queue *queue)
{
	struct task *task = queue->first;
	if (!task)
		return false;
	queue->first = task->next;
	if (!queue->first)
		queue->last = NULL;
	task->run(task);
	return true;
}

static void run_all(struct process *p)
{
	while (run_one(&p->queue))
		;
}

static void process_open(struct model *m, struct process *p, const char *kind, size_t i)
{
	slow_open(&p->store, &m->slow, m->atomic);
	task_queue_init(&p->queue);
	snprintf(p->name, sizeof(p->name), "%s%zu", kind, i);
	p->track = rollup_track_store_open(&(struct rollup_track_store_options){
		.store = &p->store.store, .writer = slice_of(p->name)});
}

static void process_release(struct process *p)
{
	rollup_track_close(p->track);
	task_queue_release(&p->queue);
}

static void taker_open(struct model *m, struct taker *t, size_t i)
{
	*t = (struct taker){0};
	process_open(m, &t->p, "taker", i);
	struct catalog_options catalog = catalog_options_default();
	t->catalog =
		catalog_new(&t->p.store.store, &m->clock.clock, &t->p.queue.executor, &catalog);
	t->ingest = ingest_new(&(struct ingest_options){
		.store = &t->p.store.store,
		.catalog = t->catalog,
		.clock = &m->clock.clock,
		.executor = &t->p.queue.executor,
		.ahead_ms = 2 * SLOT_MS,
		.retention_ms = m->open_ms,
		.late_keep = m->late,
		.write_bytes = 300 + pick(m, 3000),
		.cache_max_bytes = m->cache_max_bytes,
		.rollup_partitions = PARTITIONS,
		.rollup_slot_ms = SLOT_MS,
		.rollup_quiet_ms = QUIET_MS,
		.rollup_track = t->p.track,
	});
}

static void on_closed(void *owner)
{
	((struct taker *)owner)->closed = true;
}

/* As a crash does: whatever is at work comes to nothing. */
static void taker_kill(struct model *m, struct taker *t)
{
	slow_kill(&t->p.store);
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &m->clients[i];
		if (c->taker != t || !c->r || c->ended)
			continue;
		ingest_request_abandon(c->r);
		line_feed_release(&c->feed);
		c->r = NULL;
		c->waits = !m->loses || chance(m, 50);
	}
	run_all(&t->p);
	ASSERT(ingest_idle(t->ingest));
	ingest_free(t->ingest);
	catalog_close(t->catalog, on_closed, t);
	run_all(&t->p);
	ASSERT(t->closed);
	process_release(&t->p);
}

/* ---- Who rolls up ---------------------------------------------------------------------------- */

static void on_pass(void *owner)
{
	struct worker *w = owner;
	struct rollup_pass pass = rollup_job_pass(w->job);
	int64_t now = now_ms(w->model);
	w->state = RESTS;
	w->next_ms = now + (pass.err ? TICK_MS : EVERY_MS);
	if (pass.next_ready_ms < w->next_ms)
		w->next_ms = pass.next_ready_ms;
	trace(w->model, "%s: %llu rolled up, %llu wait, error %d", w->p.name,
	      (unsigned long long)pass.rolled_up, (unsigned long long)pass.waiting, pass.err);
}

static void on_leases(void *owner, int err, const struct rollup_partitions *held, int64_t until_ms)
{
	struct worker *w = owner;
	w->until_ms = until_ms;
	w->state = RESTS;
	w->next_ms = now_ms(w->model) + (err ? TICK_MS : EVERY_MS);
	trace(w->model, "%s: leases of %zu, error %d", w->p.name, held->count, err);
	if (err || !held->count)
		return;
	w->state = WORKS;
	rollup_job_start(w->job, held, w->asof_ms);
}

static struct rollup_late late_of(const struct model *m)
{
	return (struct rollup_late){
		.after_ms = m->late ? rollup_late_after_ms(m->open_ms, SLOT_MS, QUIET_MS) : 0};
}

static void worker_open(struct model *m, struct worker *w, size_t i)
{
	static const char *const counters[] = {"_total"};
	struct rollup_partitions own = w->own;
	*w = (struct worker){.model = m, .own = own, .next_ms = now_ms(m)};
	process_open(m, &w->p, "worker", m->one_name ? 0 : i);
	w->job = rollup_job_new(&(struct rollup_job_options){.store = &w->p.store.store,
							     .track = w->p.track,
							     .clock = &m->clock.clock,
							     .executor = &w->p.queue.executor,
							     .grains = &m->grains,
							     .slice_points = m->slice_points,
							     .quiet_ms = QUIET_MS,
							     .raw_retention_ms = m->raw_ms,
							     .late = late_of(m),
							     .counter_suffixes = counters,
							     .counter_suffix_count = 1,
							     .done = on_pass,
							     .owner = w});
	w->leases =
		rollup_leases_new(&(struct rollup_leases_options){.store = &w->p.store.store,
								  .clock = &m->clock.clock,
								  .executor = &w->p.queue.executor,
								  .holder = slice_of(w->p.name),
								  .lease_ms = LEASE_MS,
								  .done = on_leases,
								  .owner = w});
}

static void worker_tick(struct worker *w)
{
	int64_t now = now_ms(w->model);
	if (w->state == WORKS && now > w->until_ms - LEASE_MS / 4)
		rollup_job_stop(w->job);
	if (w->state != RESTS || now < w->next_ms)
		return;
	w->asof_ms = now;
	w->state = TAKES;
	if (!rollup_leases_take(w->leases, &w->own))
		return;
	w->state = RESTS;
	w->next_ms = now + TICK_MS;
}

static void worker_kill(struct worker *w)
{
	slow_kill(&w->p.store);
	run_all(&w->p);
	ASSERT(w->state == RESTS);
	rollup_job_free(w->job);
	rollup_leases_free(w->leases);
	process_release(&w->p);
}

/* ---- Clients --------------------------------------------------------------------------------- */

static void put(struct client *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void put(struct client *c, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int len = vsnprintf(c->text + c->len, sizeof(c->text) - c->len, fmt, args);
	va_end(args);
	ASSERT(len >= 0 && (size_t)len < sizeof(c->text) - c->len);
	c->len += (size_t)len;
}

static void put_value(struct client *c)
{
	struct model *m = c->model;
	int number = (int)pick(m, 200) - 100;
	switch (pick(m, 4)) {
	case 0:
		put(c, "%di", number);
		break;
	case 1:
		put(c, "%du", number + 100);
		break;
	default:
		put(c, "%.1f", number / 2.0);
	}
}

static int64_t some_ts(struct model *m)
{
	int64_t now = now_ms(m), slot = now / SLOT_MS * SLOT_MS;
	switch (pick(m, 10)) {
	case 0:
		slot += SLOT_MS;
		break;
	case 1:
	case 2:
		slot -= (int64_t)pick(m, m->late ? LATE_SLOTS : 4) * SLOT_MS;
		break;
	case 3:
	case 4:
	case 5:
		slot -= SLOT_MS;
		break;
	case 6:
		return now;
	}
	return slot + (int64_t)pick(m, 12) * 5000 + (chance(m, 20) ? 4999 : 0);
}

static void put_line(struct client *c)
{
	struct model *m = c->model;
	size_t tenant = pick(m, 4) == 0, measurement = pick(m, m->measurements);
	size_t host = pick(m, m->hosts);
	size_t shape = pick(m, m->shapes), first = m->shape[shape].first;
	int64_t ts_ms = some_ts(m);
	put(c, "m%zu,h=%zu%s ", measurement, host, tenant ? ",tenant=u" : "");
	for (size_t i = 0; i < m->shape[shape].count; i++) {
		size_t field = (first + i) % FIELDS;
		put(c, "%s%s=", i ? "," : "", field_names[field]);
		if (chance(m, m->texts)) {
			put(c, "\"text\"");
			continue;
		}
		put_value(c);
		unsigned series =
			(unsigned)(((tenant * MEASUREMENTS + measurement) * HOSTS + host) * FIELDS +
				   field);
		c->points[c->point_count++] = (struct point){series, ts_ms, false};
	}
	put(c, " %lld\n", (long long)ts_ms);
}

static void put_text(struct client *c)
{
	size_t lines = 1 + pick(c->model, chance(c->model, 80) ? 3 : 12);
	c->len = c->point_count = 0;
	while (lines--)
		put_line(c);
	c->waits = true;
}

static void on_done(struct ingest_request *r)
{
	struct client *c = ingest_owner(r);
	struct model *m = c->model;
	trace(m, "client %zu: done, error %d", (size_t)(c - m->clients), r->err);
	c->waits = r->err && (!m->loses || !c->taker->p.store.dead || chance(m, 50));
	for (size_t i = 0; !r->err && i < c->point_count; i++) {
		ASSERT(m->accepted_count < ACCEPTED_MAX);
		if (!c->points[i].deleted)
			m->accepted[m->accepted_count++] = c->points[i];
	}
	line_feed_release(&c->feed);
	ingest_request_free(r);
	c->r = NULL;
}

static void client_begin(struct client *c)
{
	struct model *m = c->model;
	if (!c->waits)
		put_text(c);
	c->waits = c->ended = false;
	c->at = 0;
	for (size_t i = 0; i < c->point_count; i++)
		c->points[i].deleted = false;
	c->taker = &m->takers[pick(m, m->used_takers)];
	c->r = ingest_request_new(c->taker->ingest,
				  &(struct ingest_door){.done = on_done, .owner = c});
	line_feed_init(&c->feed, c->r, (struct slice){NULL, 0}, LINE_MS);
	trace(m, "client %zu to %s:\n%.*s", (size_t)(c - m->clients), c->taker->p.name, (int)c->len,
	      c->text);
}

static void client_step(struct client *c, bool all)
{
	struct model *m = c->model;
	size_t left = c->len - c->at;
	if (!c->r || c->ended)
		return;
	if (left && !c->r->err) {
		size_t n = all || chance(m, 60) ? left : 1 + pick(m, left);
		line_feed_piece(&c->feed, (struct slice){c->text + c->at, n});
		c->at += n;
		return;
	}
	line_feed_end(&c->feed);
	c->ended = true;
	ingest_request_end(c->r);
}

/* ---- Who deletes ----------------------------------------------------------------------------- */

static bool is_of(const struct deleter *d, const struct point *point)
{
	unsigned series = point->series, of = d->series;
	bool same = series % FIELDS == of % FIELDS &&
		    series / FIELDS / HOSTS == of / FIELDS / HOSTS &&
		    (!d->has_selector || series / FIELDS % HOSTS == of / FIELDS % HOSTS);
	return same && (d->whole || (point->ts_ms >= d->from_ms && point->ts_ms < d->to_ms));
}

/* What is still on its way may have come before it. */
static void take_deleted(struct model *m)
{
	const struct deleter *d = &m->deleter;
	size_t kept = 0;
	for (size_t i = 0; i < m->accepted_count; i++) {
		if (!is_of(d, &m->accepted[i]))
			m->accepted[kept++] = m->accepted[i];
	}
	m->accepted_count = kept;
	for (size_t c = 0; c < CLIENTS; c++) {
		for (size_t i = 0; i < m->clients[c].point_count; i++)
			m->clients[c].points[i].deleted |= is_of(d, &m->clients[c].points[i]);
	}
}

static void on_deleted(void *owner, int err)
{
	struct deleter *d = owner;
	struct model *m = d->model;
	trace(m, "deleter: done, error %d", err);
	d->wanted = err != 0;
	if (!err)
		take_deleted(m);
	rollup_delete_free(d->work);
	d->work = NULL;
}

static void metric_name(unsigned series, char to[64])
{
	unsigned field = series % FIELDS, measurement = series / FIELDS / HOSTS % MEASUREMENTS;
	snprintf(to, 64, "m%u%s%s", measurement, field ? "_" : "", field ? field_names[field] : "");
}

static void choose_deletion(struct deleter *d)
{
	static const struct slice hosts[HOSTS] = {SLICE("0"), SLICE("1")};
	struct model *m = d->model;
	d->series = (unsigned)pick(m, SERIES);
	d->host = hosts[d->series / FIELDS % HOSTS];
	d->has_selector = chance(m, 50);
	d->whole = chance(m, 20);
	d->from_ms = now_ms(m) / SLOT_MS * SLOT_MS -
		     (int64_t)pick(m, m->late && chance(m, 50) ? LATE_SLOTS : 5) * SLOT_MS;
	d->to_ms = d->from_ms + (1 + (int64_t)pick(m, 4)) * SLOT_MS;
	/* Of a slot that is closed for good, rows of buckets that are cut would stay. */
	if (!m->raw_ms) {
		d->from_ms += (int64_t)pick(m, 13) * 5000;
		d->to_ms = d->from_ms + 1 + (int64_t)pick(m, 40) * 5000;
	}
	d->wanted = true;
	metric_name(d->series, d->name);
}

static void deleter_begin(struct deleter *d)
{
	struct model *m = d->model;
	trace(m, "deleter: %s of %lld to %lld", d->name, (long long)(d->from_ms - BEGIN_MS),
	      (long long)(d->to_ms - BEGIN_MS));
	d->host_pattern = (struct catalog_pattern){&d->host, 1};
	d->selector = (struct catalog_selector){SLICE("h"), &d->host_pattern, 1};
	d->work = rollup_delete_start(&(struct rollup_delete_options){
		.store = &d->p.store.store,
		.track = d->p.track,
		.clock = &m->clock.clock,
		.executor = &d->p.queue.executor,
		.grains = &m->grains,
		.partitions = PARTITIONS,
		.quiet_ms = QUIET_MS,
		.raw_retention_ms = m->raw_ms,
		.tenant = d->series / FIELDS / HOSTS / MEASUREMENTS ? SLICE("u") : SLICE("default"),
		.metric = slice_of(d->name),
		.selectors = &d->selector,
		.selector_count = d->has_selector,
		.from_ms = d->from_ms,
		.to_ms = d->to_ms,
		.whole = d->whole,
		.done = on_deleted,
		.owner = d,
	});
}

static void deleter_open(struct model *m)
{
	struct deleter *d = &m->deleter;
	d->model = m;
	d->work = NULL;
	process_open(m, &d->p, "deleter", 0);
}

static void deleter_tick(struct deleter *d)
{
	if (!d->work && !d->wanted && chance(d->model, d->model->deletes))
		choose_deletion(d);
	if (!d->work && d->wanted)
		deleter_begin(d);
}

/* What was wanted is wanted still. */
static void deleter_kill(struct deleter *d)
{
	slow_kill(&d->p.store);
	run_all(&d->p);
	ASSERT(!d->work);
	process_release(&d->p);
}

/* ---- What is right --------------------------------------------------------------------------- */

static void on_own_read(struct store_read *read, int err)
{
	ASSERT(!err);
	*(bool *)read->owner = true;
}

static void own_read(struct model *m, struct store_read *read)
{
	bool over = false;
	read->executor = &m->own.executor;
	read->done = on_own_read;
	read->owner = &over;
	read->now_ms = now_ms(m);
	int err = store_read_submit(read);
	ASSERT(!err);
	while (!over)
		run_one(&m->own);
}

static size_t marked_rows(struct model *m)
{
	struct store_read *read = store_read_new(m->slow.store, 16 << 20);
	struct store_request *request = store_read_add(read, STORE_ENUMERATE);
	request->enumerate.table = TABLE_MARKS;
	own_read(m, read);
	size_t count = request->enumerate.count;
	store_read_free(read);
	return count;
}

static const struct store_points *points_of(struct model *m, struct store_read *read,
					    enum table table, int64_t period_ms,
					    const uint64_t *handle)
{
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){.table = table,
					      .period_ms = period_ms,
					      .handles = handle,
					      .handle_count = 1,
					      .start_ms = STORE_TS_MIN,
					      .end_ms = STORE_TS_MAX};
	own_read(m, read);
	ASSERT(!request->more);
	return &request->range.points[0];
}

static struct value value_at(const struct store_points *points, size_t field, size_t i)
{
	return (struct value){points->bits[field][i], (enum value_type)points->types[field][i]};
}

/* Sums of some thousand multiples of 0.5 are exact. */
struct want {
	struct value min, max, first, last;
	double sum, increase;
	uint64_t count;
};

static void want_value(struct want *want, struct value value)
{
	double number = value_as_f64(value), last = value_as_f64(want->last);
	if (!want->count || value_compare(value, want->min) < 0)
		want->min = value;
	if (!want->count || value_compare(value, want->max) > 0)
		want->max = value;
	if (!want->count)
		want->first = value;
	else
		want->increase += number < last ? number : number - last;
	want->last = value;
	want->sum += number;
	want->count++;
}

/* `whole`: it says what came first and last. */
static bool row_is(const struct store_points *rows, size_t i, const struct want *want, bool counter,
		   bool whole)
{
	struct value none = {0, VALUE_NONE};
	const struct value values[ROLLUP_FIELDS] = {
		[ROLLUP_MIN] = counter ? none : want->min,
		[ROLLUP_MAX] = counter ? none : want->max,
		[ROLLUP_SUM] = value_f64(want->sum),
		[ROLLUP_COUNT] = counter ? none : value_u64(want->count),
		[ROLLUP_AVG] = none,
		[ROLLUP_INCREASE] = counter && whole ? value_f64(want->increase) : none,
		[ROLLUP_FIRST] = whole ? want->first : none,
		[ROLLUP_LAST] = whole ? want->last : none,
	};
	for (size_t f = 0; f < ROLLUP_FIELDS; f++) {
		if (!value_equal(value_at(rows, f, i), values[f]))
			return false;
	}
	return true;
}

/* Samples of a series in the order of time, up to where they have been looked at. */
struct samples {
	const struct store_points *points;
	size_t at;
};

static int64_t next_bucket(const struct samples *samples, int64_t width_ms)
{
	return samples->at < samples->points->count
		       ? samples->points->ts_ms[samples->at] / width_ms * width_ms
		       : INT64_MAX;
}

static struct want want_bucket(struct samples *samples, int64_t from_ms, int64_t width_ms)
{
	struct want want = {0};
	while (next_bucket(samples, width_ms) == from_ms)
		want_value(&want, value_at(samples->points, 0, samples->at++));
	return want;
}

/* One series in one granularity. */
struct checked {
	const char *name;
	const struct store_points *rows;
	size_t row;
	int64_t width_ms;
	bool counter;
};

/* The next row, if there is to be one. */
static bool check_row(struct model *m, struct checked *c, int64_t ts_ms, const struct want *want,
		      bool whole)
{
	if (!want->count)
		return true;
	if (c->row >= c->rows->count || c->rows->ts_ms[c->row] != ts_ms)
		return differ(m, "%s: the row of %lld, width %lld, is missing", c->name,
			      (long long)(ts_ms - BEGIN_MS), (long long)c->width_ms);
	if (!row_is(c->rows, c->row, want, c->counter, whole))
		return differ(m,
			      "%s: the row of %lld, width %lld, is not what the samples make: sum "
			      "%g, should be %g",
			      c->name, (long long)(ts_ms - BEGIN_MS), (long long)c->width_ms,
			      value_as_f64(value_at(c->rows, ROLLUP_SUM, c->row)), want->sum);
	c->row++;
	return true;
}

static bool check_rows(struct model *m, struct checked *c, struct samples raw, struct samples late)
{
	for (;;) {
		int64_t ts_ms = next_bucket(&raw, c->width_ms);
		int64_t late_ms = next_bucket(&late, c->width_ms);
		ts_ms = late_ms < ts_ms ? late_ms : ts_ms;
		if (ts_ms == INT64_MAX)
			return c->row == c->rows->count ||
			       differ(m, "%s has rows of nothing", c->name);
		struct want of_raw = want_bucket(&raw, ts_ms, c->width_ms);
		struct want of_late = want_bucket(&late, ts_ms, c->width_ms);
		if (!check_row(m, c, ts_ms, &of_raw, true) ||
		    !check_row(m, c, ts_ms + LATE_ROW_BEHIND_MS, &of_late, !of_raw.count))
			return false;
	}
}

static bool has_sample(const struct store_points *points, int64_t ts_ms)
{
	size_t low = 0, high = points->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (points->ts_ms[middle] < ts_ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low < points->count && points->ts_ms[low] == ts_ms;
}

static bool check_accepted(struct model *m, const char *name, unsigned series,
			   const struct store_points *raw, const struct store_points *late)
{
	for (size_t i = 0; i < m->accepted_count; i++) {
		int64_t ts_ms = m->accepted[i].ts_ms;
		if (m->accepted[i].series == series && !has_sample(raw, ts_ms) &&
		    !has_sample(late, ts_ms))
			return differ(m, "%s: a sample that was taken is not there", name);
	}
	return true;
}

static bool check_series(struct model *m, unsigned series)
{
	unsigned field = series % FIELDS, host = series / FIELDS % HOSTS;
	unsigned measurement = series / FIELDS / HOSTS % MEASUREMENTS;
	char name[64], value[8];
	bool tenant = series / FIELDS / HOSTS / MEASUREMENTS, counter = field == FIELDS - 1;
	snprintf(value, sizeof(value), "%u", host);
	snprintf(name, sizeof(name), "m%u%s%s", measurement, field ? "_" : "",
		 field ? field_names[field] : "");
	struct store_read *read = store_read_new(m->slow.store, 256 << 20);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	struct tag tag = {SLICE("h"), slice_of(value)};
	struct slice metric = slice_of(name);
	request->series_open =
		(struct store_series_open){.tenant = tenant ? SLICE("u") : SLICE("default"),
					   .tags = {&tag, 1},
					   .metrics = &metric,
					   .count = 1,
					   .find_only = true};
	own_read(m, read);
	uint64_t handle = request->series_open.handles[0];
	const struct store_points *raw = points_of(m, read, TABLE_DATA_RAW, 0, &handle);
	const struct store_points *late = points_of(m, read, TABLE_DATA_LATE, 0, &handle);
	bool right = check_accepted(m, name, series, raw, late);
	m->late_seen += late->count;
	for (size_t g = 0; g < m->grains.count && right; g++) {
		int64_t width_ms = m->grains.list[g].width_ms;
		struct checked c = {
			.name = name,
			.rows = points_of(m, read, TABLE_DATA_DOWNSAMPLED, width_ms, &handle),
			.width_ms = width_ms,
			.counter = counter};
		right = check_rows(m, &c, (struct samples){raw, 0}, (struct samples){late, 0});
	}
	store_read_free(read);
	return right;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void advance(struct model *m, int64_t by_ms)
{
	clock_virtual_advance(&m->clock, by_ms * 1000);
}

/* To where something is decided, or just beside it. */
static void advance_to_edge(struct model *m)
{
	static const int64_t after_ms[] = {QUIET_MS / 5, QUIET_MS - QUIET_MS / 5, QUIET_MS,
					   LEASE_MS};
	int64_t end_ms = SLOT_MS - now_ms(m) % SLOT_MS;
	int64_t by_ms = chance(m, 60) ? after_ms[pick(m, ARRAY_LEN(after_ms))]
				      : end_ms + (chance(m, 50) ? QUIET_MS : 0);
	advance(m, by_ms + (int64_t)pick(m, 3) - 1);
}

static struct process *some_process(struct model *m)
{
	size_t i = pick(m, TAKERS + WORKERS);
	if (i == m->which && !chance(m, m->sluggish))
		i = pick(m, TAKERS + WORKERS);
	return i < TAKERS ? &m->takers[i].p : &m->workers[i - TAKERS].p;
}

static void restart_something(struct model *m)
{
	size_t i = pick(m, TAKERS + WORKERS + (m->deletes != 0));
	if (i == TAKERS + WORKERS) {
		trace(m, "deleter dies");
		deleter_kill(&m->deleter);
		deleter_open(m);
		return;
	}
	if (i < TAKERS) {
		trace(m, "taker%zu dies", i);
		taker_kill(m, &m->takers[i]);
		taker_open(m, &m->takers[i], i);
		return;
	}
	trace(m, "worker%zu dies", i - TAKERS);
	worker_kill(&m->workers[i - TAKERS]);
	worker_open(m, &m->workers[i - TAKERS], i - TAKERS);
}

static void client_any(struct model *m)
{
	struct client *c = &m->clients[pick(m, CLIENTS)];
	if (c->r)
		client_step(c, false);
	else
		client_begin(c);
}

static void run_step(struct model *m)
{
	unsigned kind = (unsigned)pick(m, 1000);
	if (m->deletes && chance(m, 10)) {
		deleter_tick(&m->deleter);
		run_one(&m->deleter.p.queue);
	}
	if (kind >= 350 && kind < 750 && !chance(m, m->store))
		return;
	if (kind < 350)
		run_one(&some_process(m)->queue);
	else if (kind < 550)
		slow_write(&m->slow);
	else if (kind < 750)
		slow_read(&m->slow, pick(m, m->slow.read_count + 1));
	else if (kind < 850)
		client_any(m);
	else if (kind < 920)
		worker_tick(&m->workers[pick(m, WORKERS)]);
	else if (kind < 970)
		advance(m, (int64_t)pick(m, m->pace_ms));
	else if (kind < 971)
		advance(m, (int64_t)pick(m, 3 * SLOT_MS));
	else if (kind < 980)
		ingest_tick(m->takers[pick(m, TAKERS)].ingest);
	else if (kind < 983)
		restart_something(m);
	else if (pick(m, 17) < m->edges)
		advance_to_edge(m);
}

static bool work_off(struct model *m)
{
	bool any = false;
	for (size_t i = 0; i < TAKERS; i++)
		any |= run_one(&m->takers[i].p.queue);
	for (size_t i = 0; i < WORKERS; i++)
		any |= run_one(&m->workers[i].p.queue);
	any |= run_one(&m->deleter.p.queue);
	any |= m->slow.write_count || m->slow.read_count;
	slow_write(&m->slow);
	if (m->slow.read_count)
		slow_read(&m->slow, 0);
	return any;
}

static bool all_sent(struct model *m)
{
	bool sent = true;
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &m->clients[i];
		if (c->waits && !c->r)
			client_begin(c);
		client_step(c, true);
		sent &= !c->r && !c->waits;
	}
	return sent;
}

/* Nothing fails any more, and time passes. */
static bool come_to_rest(struct model *m)
{
	unsigned fails = m->slow.fails, refuses = m->slow.refuses;
	m->slow.fails = m->slow.refuses = 0;
	size_t rounds = 0;
	for (; rounds < RESTS_MAX; rounds++) {
		if (work_off(m))
			continue;
		if (m->deleter.wanted && !m->deleter.work)
			deleter_begin(&m->deleter);
		if (all_sent(m) && !marked_rows(m) && !m->deleter.wanted)
			break;
		advance(m, TICK_MS);
		for (size_t i = 0; i < WORKERS; i++)
			worker_tick(&m->workers[i]);
	}
	m->slow.fails = fails;
	m->slow.refuses = refuses;
	return rounds < RESTS_MAX || differ(m, "it does not come to rest");
}

static bool check_all(struct model *m)
{
	bool right = come_to_rest(m);
	trace(m, "all is at rest");
	for (unsigned s = 0; s < SERIES && right; s++)
		right = check_series(m, s);
	return right;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static void begin(struct model *m, uint64_t seed, bool with_trace)
{
	static const size_t cache_bytes[] = {1, 17000, 18000, 1 << 20};
	static const uint64_t paces_ms[] = {10, 100, 800};
	struct errbuf e = {""};
	*m = (struct model){.seed = seed, .trace = with_trace};
	random_init(&m->random, seed);
	clock_virtual_init(&m->clock, (BEGIN_MS + (int64_t)pick(m, SLOT_MS)) * 1000);
	task_queue_init(&m->own);
	int err = rollup_grains_parse(grain_items, ARRAY_LEN(grain_items), SLOT_MS, &m->grains, &e);
	ASSERT(!err);
	m->slow = (struct slow){.store = naive_open(&m->clock.clock), .random = &m->random};
	m->loses = chance(m, 50);
	m->slice_points = chance(m, 50) ? 0 : 1 + pick(m, 40);
	if (!m->loses && chance(m, 60)) {
		m->slow.fails = (unsigned)pick(m, 30);
		m->slow.refuses = (unsigned)pick(m, 30);
	}
	m->atomic = chance(m, 50);
	m->pace_ms = paces_ms[pick(m, ARRAY_LEN(paces_ms))];
	m->one_name = chance(m, 20);
	m->late = chance(m, 50);
	if (m->late) {
		m->open_ms = SLOT_MS + 2 * QUIET_MS + (int64_t)pick(m, 8 * SLOT_MS);
		m->raw_ms = chance(m, 50) ? m->open_ms + LAG_MS : 0;
	}
	m->edges = 1 + pick(m, 17);
	m->measurements = 1 + pick(m, MEASUREMENTS);
	m->hosts = 1 + pick(m, HOSTS);
	m->used_takers = 1 + pick(m, TAKERS);
	m->shapes = 1 + pick(m, SHAPES);
	for (size_t i = 0; i < SHAPES; i++) {
		m->shape[i].first = pick(m, FIELDS);
		m->shape[i].count = 1 + pick(m, FIELDS);
	}
	m->store = chance(m, 30) ? 10 : 100;
	m->sluggish = chance(m, 50) ? 2 : 100;
	m->which = pick(m, TAKERS + WORKERS);
	m->check_steps = 200 + pick(m, 2000);
	m->texts = chance(m, 50) ? 10 : 50;
	m->cache_max_bytes = cache_bytes[pick(m, ARRAY_LEN(cache_bytes))];
	m->accepted = mem_alloc_array(ACCEPTED_MAX, sizeof(*m->accepted));
	for (size_t i = 0; i < TAKERS; i++)
		taker_open(m, &m->takers[i], i);
	for (size_t i = 0; i < WORKERS; i++) {
		const char *own[] = {"0-3", "0-3", "1,3", "0", "2-3"};
		const char *text = own[i ? pick(m, ARRAY_LEN(own)) : 0];
		err = rollup_partitions_parse(slice_of(text), PARTITIONS, &m->workers[i].own, &e);
		ASSERT(!err);
		worker_open(m, &m->workers[i], i);
	}
	for (size_t i = 0; i < CLIENTS; i++)
		m->clients[i].model = m;
	m->deletes = chance(m, 50) ? 1 + (unsigned)pick(m, 100) : 0;
	deleter_open(m);
}

static void end(struct model *m)
{
	for (size_t i = 0; i < TAKERS; i++)
		taker_kill(m, &m->takers[i]);
	for (size_t i = 0; i < WORKERS; i++)
		worker_kill(&m->workers[i]);
	deleter_kill(&m->deleter);
	store_close(m->slow.store);
	task_queue_release(&m->own);
	mem_free(m->accepted);
}

static bool run_seed(uint64_t seed, size_t steps, bool with_trace, uint64_t *late)
{
	struct model *m = mem_alloc(sizeof(*m));
	bool right = true;
	begin(m, seed, with_trace);
	for (m->step = 1; m->step <= steps && right; m->step++) {
		run_step(m);
		if (m->step % m->check_steps == 0 || m->step == steps)
			right = check_all(m);
	}
	if (!right)
		printf("seed %llu, step %zu: %s\n", (unsigned long long)seed, m->step - 1,
		       m->failure);
	*late += m->late_seen;
	end(m);
	mem_free(m);
	return right;
}

int main(int argc, char **argv)
{
	unsigned long long first = 1, last = long_run() ? 6000 : 300;
	size_t steps = 9000, wrong = 0;
	uint64_t late = 0;
	bool with_trace = false;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--trace") == 0)
			with_trace = true;
		else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
			steps = strtoul(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0 &&
			 sscanf(argv[++i], "%llu..%llu", &first, &last) == 1)
			last = first;
	}
	for (unsigned long long seed = first; seed <= last && wrong < 5; seed++)
		wrong += !run_seed(seed, steps, with_trace, &late);
	printf("roll-ups: seeds %llu..%llu, %zu steps each, %llu late samples: %zu are wrong\n",
	       first, last, steps, (unsigned long long)late, wrong);
	return wrong != 0;
}
