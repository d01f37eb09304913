/* Of the model of roll-ups: processes that take line protocol, and such that roll up. */
#include "rollup_model.h"

#include "retention/late.h"
#include "marks/recent.h"
#include "marks/store.h"
#include "marks/watermark.h"

/* ---- Processes ------------------------------------------------------------------------------- */

void run_all(struct process *p)
{
	while (task_step(&p->queue))
		;
}

static struct process_clock *process_clock_of(struct clock *clock)
{
	return CONTAINER_OF(clock, struct process_clock, clock);
}

static int64_t process_wall_us(struct clock *clock)
{
	struct process_clock *own = process_clock_of(clock);
	return own->of->clock.wall_us(&own->of->clock) + own->off_us;
}

static int64_t process_mono_us(struct clock *clock)
{
	struct process_clock *own = process_clock_of(clock);
	return own->of->clock.mono_us(&own->of->clock);
}

int64_t clock_off_us(struct model *m)
{
	return m->far ? ((int64_t)pick(m, SKEW_MS + 1) - SKEW_MS / 2) * 1000 : 0;
}

void process_open(struct model *m, struct process *p, const char *kind, size_t i)
{
	task_queue_init(&p->queue);
	p->dead = p->frozen = false;
	p->clock = (struct process_clock){{.wall_us = process_wall_us, .mono_us = process_mono_us},
					  &m->clock,
					  clock_off_us(m)};
	if (m->far) {
		p->store = far_open(m->far, &p->clock.clock, m->last_stamp_us);
		snprintf(p->name, sizeof(p->name), "%s%zu-%u", kind, i, ++m->incarnations);
	} else {
		slow_open(&p->slow, &m->slow, m->atomic);
		p->store = &p->slow.store;
		snprintf(p->name, sizeof(p->name), "%s%zu", kind, i);
	}
	p->marks = marks_store_open(&(struct marks_store_options){
		.store = p->store,
		.writer = slice_of(p->name),
		.clock = &p->clock.clock,
		.late_ms = recent_touches_write_max_ms(QUIET_MS, m->far ? SKEW_MS : 0),
	});
	p->watermark = m->far ? watermark_new(SLOT_MS, QUIET_MS, true) : NULL;
	if (p->watermark)
		marks_tell(p->marks, p->watermark);
}

void process_kill(struct model *m, struct process *p)
{
	p->dead = true;
	if (!m->far) {
		slow_kill(&p->slow);
		return;
	}
	far_kill(p->store);
	if (far_last_stamp_us(p->store) > m->last_stamp_us)
		m->last_stamp_us = far_last_stamp_us(p->store);
}

void process_freeze(struct process *p, bool frozen)
{
	p->frozen = frozen;
	far_freeze(p->store, frozen);
}

void process_release(struct process *p)
{
	marks_close(p->marks);
	if (p->watermark)
		watermark_free(p->watermark);
	store_close(p->store);
	task_queue_release(&p->queue);
}

void taker_open(struct model *m, struct taker *t, size_t i)
{
	*t = (struct taker){.retention.levels_ms = {m->open_ms}};
	process_open(m, &t->p, "taker", i);
	struct catalog_options catalog = catalog_options_default();
	t->catalog = catalog_new(t->p.store, &t->p.clock.clock, &t->p.queue.executor, &catalog);
	t->ingest = ingest_new(&(struct ingest_options){
		.store = t->p.store,
		.catalog = t->catalog,
		.clock = &t->p.clock.clock,
		.executor = &t->p.queue.executor,
		.ahead_ms = 2 * SLOT_MS + SKEW_MS,
		.retention = {.rules = &t->retention, .late_keep = m->late},
		.write_bytes = 300 + pick(m, 3000),
		.cache_max_bytes = m->cache_max_bytes,
		.partitions = PARTITIONS,
		.rollup_slot_ms = SLOT_MS,
		.rollup_quiet_ms = QUIET_MS,
		.rollup_skew_max_ms = m->far ? SKEW_MS : 0,
		.marks = t->p.marks,
		.seed = m->seed,
	});
}

static void on_closed(void *owner)
{
	((struct taker *)owner)->closed = true;
}

void taker_kill(struct model *m, struct taker *t)
{
	process_kill(m, &t->p);
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &m->clients[i];
		if (c->taker != t || !c->r || c->ended)
			continue;
		ingest_request_abandon(c->r);
		line_feed_release(&c->feed);
		c->r = NULL;
		client_failed(c, !m->loses || chance(m, 50));
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

static struct worker *stepping;        /* whose step it is */
static struct thread *stepping_thread; /* and of which of its threads */

static bool lanes_over(const struct worker *w)
{
	bool over = true;
	for (size_t i = 0; i < w->lane_count; i++)
		over &= stepped_over(&w->lanes[i].stepped);
	return over;
}

/* The first lane runs on the thread of the pass, which then waits for the others. */
static void run_lanes(UNUSED const char *name, void (*run)(struct task_queue *queue, void *owner),
		      void *const *owners, size_t count)
{
	struct worker *w = stepping;
	ASSERT(count <= LANES_MAX + 1);
	for (size_t i = 1; i < count; i++)
		stepped_start(&w->lanes[i - 1].stepped, run, owners[i]);
	w->lane_count = count - 1;
	run(&w->work.stepped.queue, owners[0]);
	while (!lanes_over(w))
		stepped_yield(&w->work.stepped);
	for (size_t i = 0; i < w->lane_count; i++)
		stepped_release(&w->lanes[i].stepped);
	w->lane_count = 0;
}

void worker_pause(UNUSED const char *name)
{
	struct worker *w = stepping;
	struct thread *thread = stepping_thread;
	if (!w || w->p.dead || !chance(w->model, w->model->pauses))
		return;
	thread->stands = true;
	thread->until_ms = now_ms(w->model) + (int64_t)pick(w->model, 3 * QUIET_MS);
	trace(w->model, "%s: a thread stands at %s", w->p.name, name);
	stepped_yield(&thread->stepped);
	thread->stands = false;
}

static int64_t own_wall_ms(struct worker *w)
{
	return clock_wall_ms(&w->p.clock.clock);
}

/* Never two owners at one moment, each by its own clock; and whoever follows has stamps above all
 * that the one before could give. */
static void check_owners(struct worker *w)
{
	struct model *m = w->model;
	for (uint32_t p = 0; p < PARTITIONS; p++) {
		if (partitions_has(&w->held, p) && own_wall_ms(w) < m->dead_until_ms[p])
			differ(m,
			       "%s follows one that died in partition %u with stamps that are "
			       "not above",
			       w->p.name, p);
	}
	for (size_t i = 0; i < WORKERS; i++) {
		struct worker *other = &m->workers[i];
		for (uint32_t p = 0; p < PARTITIONS && other != w; p++) {
			if (!partitions_has(&w->held, p) || !partitions_has(&other->held, p))
				continue;
			if (own_wall_ms(other) < other->until_ms)
				differ(m, "%s and %s own partition %u at once", w->p.name,
				       other->p.name, p);
			if (own_wall_ms(w) < other->until_ms)
				differ(m,
				       "%s follows %s in partition %u with stamps that are not "
				       "above",
				       w->p.name, other->p.name, p);
		}
	}
}

static int take_leases(struct worker *w, struct task_queue *queue)
{
	struct partitions held;
	int64_t until_ms;
	/* Nothing is begun meanwhile, and what is given back may be another's before this one hears
	 * of it. */
	w->held = (struct partitions){0};
	int err = leases_take(w->leases, queue, &w->own, &held, &until_ms);
	w->held = held;
	w->until_ms = until_ms;
	trace(w->model, "%s: leases of %zu until %lld, error %d", w->p.name, w->held.count,
	      (long long)(w->until_ms - BEGIN_MS), err);
	if (w->model->far && !w->p.dead && own_wall_ms(w) < w->until_ms)
		check_owners(w);
	return err;
}

static void run_worker(struct task_queue *queue, void *owner)
{
	struct worker *w = owner;
	struct model *m = w->model;
	int64_t asof_ms = own_wall_ms(w);
	int err = take_leases(w, queue);
	w->next_ms = now_ms(m) + (err ? TICK_MS : EVERY_MS);
	if (err || !w->held.count)
		return;
	struct rollup_pass pass =
		rollup_job_run(w->job, queue, &w->held, asof_ms, w->until_ms - LEASE_MS / 4);
	w->next_ms = now_ms(m) + (pass.err ? TICK_MS : EVERY_MS);
	if (pass.next_ready_ms < w->next_ms)
		w->next_ms = pass.next_ready_ms;
	trace(m, "%s: %llu rolled up, %llu wait, error %d", w->p.name,
	      (unsigned long long)pass.rolled_up, (unsigned long long)pass.waiting, pass.err);
}

static bool goes_on(const struct worker *w, const struct thread *thread)
{
	if (thread->stands)
		return w->p.dead || now_ms(w->model) >= thread->until_ms;
	return stepped_ready(&thread->stepped);
}

/* Those that can go on: a lane, or the pass if it does not wait for lanes. */
static size_t list_ready(struct worker *w, struct thread *ready[LANES_MAX + 1])
{
	size_t n = 0;
	const struct stepped *work = &w->work.stepped;
	bool waits = w->lane_count && work->begun && !work->queue.first && !w->work.stands;
	if (goes_on(w, &w->work) || (waits && lanes_over(w)))
		ready[n++] = &w->work;
	for (size_t i = 0; i < w->lane_count; i++) {
		if (goes_on(w, &w->lanes[i]))
			ready[n++] = &w->lanes[i];
	}
	return n;
}

bool worker_step(struct worker *w)
{
	struct thread *ready[LANES_MAX + 1];
	size_t n = w->works ? list_ready(w, ready) : 0;
	if (!n)
		return false;
	stepping = w;
	stepping_thread = ready[n == 1 ? 0 : pick(w->model, n)];
	(void)stepped_step(&stepping_thread->stepped);
	stepping = NULL;
	if (stepped_over(&w->work.stepped)) {
		stepped_release(&w->work.stepped);
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
	bool share = w->share;
	*w = (struct worker){.model = m, .own = own, .share = share, .next_ms = now_ms(m)};
	process_open(m, &w->p, "worker", m->one_name ? 0 : i);
	w->site = (struct rollup_site){.store = w->p.store,
				       .marks = w->p.marks,
				       .watermark = w->p.watermark,
				       .partitions = PARTITIONS,
				       .clock = &w->p.clock.clock,
				       .granularities = m->granularities,
				       .slice_points = m->slice_points,
				       .quiet_ms = QUIET_MS,
				       .skew_max_ms = m->far ? SKEW_MS : 0,
				       .retention = {.levels_ms = {m->raw_ms}, .late = late_of(m)},
				       .counter_suffixes = counters,
				       .counter_suffix_count = 1};
	snprintf(w->site.name, sizeof(w->site.name), "%s", w->p.name);
	w->job = rollup_job_new(&w->site, run_lanes);
	w->session = lease_session_new(&(struct lease_session_options){
		.store = w->p.store,
		.clock = &w->p.clock.clock,
		.holder = slice_of(w->p.name),
		.name = SLICE("worker"),
		.roles = SESSION_ROLLS_UP | (share ? SESSION_SHARES : 0),
		.lease_ms = LEASE_MS,
		.skew_max_ms = m->far ? SKEW_MS : 0,
	});
	w->leases = leases_new(
		&(struct leases_options){.session = w->session, .kind = "rollup", .share = share});
}

void worker_tick(struct worker *w)
{
	if (w->works || now_ms(w->model) < w->next_ms)
		return;
	stepped_start(&w->work.stepped, run_worker, w);
	w->works = true;
}

void worker_kill(struct worker *w)
{
	struct model *m = w->model;
	for (uint32_t p = 0; p < PARTITIONS; p++) {
		if (partitions_has(&w->held, p) && w->until_ms > m->dead_until_ms[p])
			m->dead_until_ms[p] = w->until_ms;
	}
	process_kill(m, &w->p);
	while (worker_step(w))
		;
	ASSERT(!w->works);
	rollup_job_free(w->job);
	leases_free(w->leases);
	lease_session_free(w->session);
	process_release(&w->p);
}
