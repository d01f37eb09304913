/* Of the model of roll-ups: processes that take line protocol, and such that roll up. */
#include "rollup_model.h"

#include "retention/late.h"
#include "marks/store.h"

/* ---- Processes ------------------------------------------------------------------------------- */

void run_all(struct process *p)
{
	while (task_step(&p->queue))
		;
}

void process_open(struct model *m, struct process *p, const char *kind, size_t i)
{
	slow_open(&p->store, &m->slow, m->atomic);
	task_queue_init(&p->queue);
	snprintf(p->name, sizeof(p->name), "%s%zu", kind, i);
	p->marks = marks_store_open(&(struct marks_store_options){.store = &p->store.store,
								  .writer = slice_of(p->name)});
}

void process_release(struct process *p)
{
	marks_close(p->marks);
	task_queue_release(&p->queue);
}

void taker_open(struct model *m, struct taker *t, size_t i)
{
	*t = (struct taker){.retention.levels_ms = {m->open_ms}};
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
		.retention = &t->retention,
		.late_keep = m->late,
		.write_bytes = 300 + pick(m, 3000),
		.cache_max_bytes = m->cache_max_bytes,
		.partitions = PARTITIONS,
		.rollup_slot_ms = SLOT_MS,
		.rollup_quiet_ms = QUIET_MS,
		.marks = t->p.marks,
	});
}

static void on_closed(void *owner)
{
	((struct taker *)owner)->closed = true;
}

void taker_kill(struct model *m, struct taker *t)
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

static struct worker *stepping; /* whose step it is */

static bool lanes_over(const struct worker *w)
{
	bool over = true;
	for (size_t i = 0; i < w->lane_count; i++)
		over &= stepped_over(&w->lanes[i]);
	return over;
}

/* The first lane runs on the thread of the pass, which then waits for the others. */
static void run_lanes(UNUSED const char *name, void (*run)(struct task_queue *queue, void *owner),
		      void *const *owners, size_t count)
{
	struct worker *w = stepping;
	ASSERT(count <= LANES_MAX + 1);
	for (size_t i = 1; i < count; i++)
		stepped_start(&w->lanes[i - 1], run, owners[i]);
	w->lane_count = count - 1;
	run(&w->work.queue, owners[0]);
	while (!lanes_over(w))
		stepped_yield(&w->work);
	for (size_t i = 0; i < w->lane_count; i++)
		stepped_release(&w->lanes[i]);
	w->lane_count = 0;
}

static void run_worker(struct task_queue *queue, void *owner)
{
	struct worker *w = owner;
	struct model *m = w->model;
	struct partitions held;
	int64_t asof_ms = now_ms(m), until_ms;
	int err = leases_take(w->leases, queue, &w->own, &held, &until_ms);
	trace(m, "%s: leases of %zu, error %d", w->p.name, held.count, err);
	w->next_ms = now_ms(m) + (err ? TICK_MS : EVERY_MS);
	if (err || !held.count)
		return;
	struct rollup_pass pass =
		rollup_job_run(w->job, queue, &held, asof_ms, until_ms - LEASE_MS / 4);
	w->next_ms = now_ms(m) + (pass.err ? TICK_MS : EVERY_MS);
	if (pass.next_ready_ms < w->next_ms)
		w->next_ms = pass.next_ready_ms;
	trace(m, "%s: %llu rolled up, %llu wait, error %d", w->p.name,
	      (unsigned long long)pass.rolled_up, (unsigned long long)pass.waiting, pass.err);
}

/* Those that can go on: a lane, or the pass if it does not wait for lanes. */
static size_t list_ready(struct worker *w, struct stepped *ready[LANES_MAX + 1])
{
	size_t n = 0;
	bool waits = w->lane_count && w->work.begun && !w->work.queue.first;
	if (stepped_ready(&w->work) || (waits && lanes_over(w)))
		ready[n++] = &w->work;
	for (size_t i = 0; i < w->lane_count; i++) {
		if (stepped_ready(&w->lanes[i]))
			ready[n++] = &w->lanes[i];
	}
	return n;
}

bool worker_step(struct worker *w)
{
	struct stepped *ready[LANES_MAX + 1];
	size_t n = w->works ? list_ready(w, ready) : 0;
	if (!n)
		return false;
	stepping = w;
	(void)stepped_step(ready[n == 1 ? 0 : pick(w->model, n)]);
	if (stepped_over(&w->work)) {
		stepped_release(&w->work);
		w->works = false;
	}
	return true;
}

static struct late_samples late_of(const struct model *m)
{
	return (struct late_samples){
		.after_ms = m->late ? late_samples_after_ms(m->open_ms, SLOT_MS, QUIET_MS) : 0};
}

void worker_open(struct model *m, struct worker *w, size_t i)
{
	static const char *const counters[] = {"_total"};
	struct partitions own = w->own;
	*w = (struct worker){.model = m, .own = own, .next_ms = now_ms(m)};
	process_open(m, &w->p, "worker", m->one_name ? 0 : i);
	w->site = (struct rollup_site){.store = &w->p.store.store,
				       .marks = w->p.marks,
				       .clock = &m->clock.clock,
				       .granularities = m->granularities,
				       .slice_points = m->slice_points,
				       .quiet_ms = QUIET_MS,
				       .retention.levels_ms = {m->raw_ms},
				       .late = late_of(m),
				       .counter_suffixes = counters,
				       .counter_suffix_count = 1};
	w->job = rollup_job_new(&w->site, run_lanes);
	w->leases = leases_new(&(struct leases_options){.store = &w->p.store.store,
							.clock = &m->clock.clock,
							.holder = slice_of(w->p.name),
							.lease_ms = LEASE_MS});
}

void worker_tick(struct worker *w)
{
	if (w->works || now_ms(w->model) < w->next_ms)
		return;
	stepped_start(&w->work, run_worker, w);
	w->works = true;
}

void worker_kill(struct worker *w)
{
	slow_kill(&w->p.store);
	while (worker_step(w))
		;
	ASSERT(!w->works);
	rollup_job_free(w->job);
	leases_free(w->leases);
	process_release(&w->p);
}
