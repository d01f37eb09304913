/* Processes of the model of streams on a far store, and their threads. Jobs and pools are not those
 * of loop/, but functions that the model lets go on a step at a time. */
#include "stream_far.h"

#include "conf/conf.h"
#include "loop/job.h"
#include "loop/pool.h"
#include "task_step.h"

enum { CLOSE_ROUNDS_MAX = 100000 };

static const char rules[] = "datatypes:\n"
			    "  acc:\n"
			    "    pattern: '<_> <method> <bytes>'\n"
			    "    events: {tags: [method], values: [bytes]}\n";

/* ---- Jobs ------------------------------------------------------------------------------------ */

struct job {
	struct stepped stepped;
	struct process *process;
	struct job *next;
	void (*run)(struct job *job, void *owner);
	void (*done)(void *owner);
	void *owner;
	struct executor *executor;
	struct task over;
	bool sleeps;
	int64_t wake_us; /* monotonic */
};

static struct process *opening; /* whose threads are started */

static void job_on_over(struct task *task)
{
	struct job *job = CONTAINER_OF(task, struct job, over);
	job->done(job->owner);
}

static void job_main(UNUSED struct task_queue *queue, void *owner)
{
	struct job *job = owner;
	job->run(job, job->owner);
	job->executor->post(job->executor, &job->over);
}

int job_start(UNUSED const char *name, void (*run)(struct job *job, void *owner),
	      void (*done)(void *owner), void *owner, struct executor *executor,
	      struct job **started)
{
	struct job *job = mem_zalloc(sizeof(*job));
	*job = (struct job){.process = opening,
			    .next = opening->jobs,
			    .run = run,
			    .done = done,
			    .owner = owner,
			    .executor = executor,
			    .over = {.run = job_on_over},
			    .sleeps = true};
	opening->jobs = *started = job;
	stepped_start(&job->stepped, job_main, job);
	return 0;
}

void job_free(struct job *job)
{
	if (!job)
		return;
	struct job **place = &job->process->jobs;
	while (*place != job)
		place = &(*place)->next;
	*place = job->next;
	stepped_release(&job->stepped);
	mem_free(job);
}

void job_stop(struct job *job)
{
	task_queue_stop(&job->stepped.queue);
}

void jobs_run_all(UNUSED const char *name,
		  UNUSED void (*run)(struct task_queue *queue, void *owner),
		  UNUSED void *const *owners, UNUSED size_t count)
{
	ASSERT(false); /* no job here has parts */
}

bool job_is_stopping(const struct job *job)
{
	return task_queue_is_stopped(&job->stepped.queue);
}

struct task_queue *job_queue(struct job *job)
{
	return &job->stepped.queue;
}

static int64_t job_now_us(const struct job *job)
{
	struct clock *clock = &job->process->clock.clock;
	return clock->mono_us(clock);
}

int job_sleep(struct job *job, int64_t ms)
{
	job->sleeps = true;
	job->wake_us = job_now_us(job) + ms * 1000;
	stepped_yield(&job->stepped);
	return job_is_stopping(job) ? ERR_CANCELLED : 0;
}

struct job_calling {
	struct task there, back;
	struct job *job;
	void (*fn)(void *argument);
	void *argument;
	struct task_answer answer;
};

static void job_called_back(struct task *task)
{
	CONTAINER_OF(task, struct job_calling, back)->answer.there = true;
}

static void job_called(struct task *task)
{
	struct job_calling *calling = CONTAINER_OF(task, struct job_calling, there);
	struct executor *executor = &calling->job->stepped.queue.executor;
	calling->fn(calling->argument);
	executor->post(executor, &calling->back);
}

void job_call(struct job *job, struct executor *executor, void (*fn)(void *argument),
	      void *argument)
{
	struct job_calling calling = {.there = {.run = job_called},
				      .back = {.run = job_called_back},
				      .job = job,
				      .fn = fn,
				      .argument = argument};
	executor->post(executor, &calling.there);
	(void)task_queue_wait_for(&job->stepped.queue, &calling.answer);
}

/* The jobs of a process take turns: whoever renews the session has its lock while he waits. */
static bool job_is_ready(const struct job *job)
{
	if (stepped_over(&job->stepped))
		return false;
	if (!job->sleeps)
		return stepped_ready(&job->stepped);
	for (const struct job *other = job->process->jobs; other; other = other->next)
		if (!other->sleeps && !stepped_over(&other->stepped))
			return false;
	return job_is_stopping(job) || job_now_us(job) >= job->wake_us;
}

static bool step_jobs(struct process *p)
{
	size_t ready = 0;
	for (struct job *job = p->jobs; job; job = job->next)
		ready += job_is_ready(job);
	size_t which = ready ? pick(p->world, ready) : 0;
	for (struct job *job = p->jobs; job; job = job->next) {
		if (!job_is_ready(job) || which--)
			continue;
		job->sleeps = false;
		(void)stepped_step(&job->stepped);
		return true;
	}
	return false;
}

bool process_is_at_work(const struct process *p)
{
	for (const struct job *job = p->jobs; job; job = job->next)
		if (!job->sleeps)
			return true;
	return false;
}

/* ---- Works ----------------------------------------------------------------------------------- */

struct work *process_begin(struct process *p, void (*run)(struct task_queue *queue, void *owner))
{
	if (p->work_count == WORKS_MAX)
		return NULL;
	struct work *work = mem_zalloc(sizeof(*work));
	work->process = p;
	work->next = p->works;
	p->works = work;
	p->work_count++;
	stepped_start(&work->stepped, run, work);
	return work;
}

static void work_end(struct process *p, struct work **place)
{
	struct work *work = *place;
	*place = work->next;
	p->work_count--;
	stepped_release(&work->stepped);
	for (size_t i = 0; i < work->contents; i++)
		offsets_release(&work->acked[i]);
	mem_free(work);
}

static bool work_is_ready(const struct work *work)
{
	const struct process *p = work->process;
	const struct world *w = p->world;
	bool slow = work->slow && !w->rests && !p->dead && w->step % 32;
	return stepped_ready(&work->stepped) && !slow;
}

static bool step_works(struct process *p)
{
	size_t ready = 0;
	for (struct work *work = p->works; work; work = work->next)
		ready += work_is_ready(work);
	size_t which = ready ? pick(p->world, ready) : 0;
	for (struct work **place = &p->works; *place; place = &(*place)->next) {
		struct work *work = *place;
		if (!work_is_ready(work) || which--)
			continue;
		(void)stepped_step(&work->stepped);
		if (stepped_over(&work->stepped))
			work_end(p, place);
		return true;
	}
	return false;
}

/* ---- Pools: that of the examiner, and one of readers whom there are none of -------------------
 */

struct pool {
	struct process *process;
};

struct pool *pool_new(UNUSED unsigned threads, UNUSED size_t queue_max, UNUSED const char *name)
{
	struct pool *pool = mem_zalloc(sizeof(*pool));
	pool->process = opening;
	return pool;
}

static void work_examine(struct task_queue *queue, void *owner)
{
	const struct work *work = owner;
	collector_examine_now(work->submission, queue);
}

int pool_submit(struct pool *pool, struct task *task)
{
	struct work *work = process_begin(pool->process, work_examine);
	if (!work)
		return ERR_BUSY;
	work->submission = CONTAINER_OF(task, struct stream_submission, task);
	return 0;
}

void pool_close(struct pool *pool)
{
	mem_free(pool);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

bool process_step(struct process *p)
{
	size_t first = pick(p->world, 3);
	for (size_t i = 0; i < 3; i++) {
		size_t which = (first + i) % 3;
		if (which == 0 ? task_step(&p->queue) : which == 1 ? step_jobs(p) : step_works(p))
			return true;
	}
	return false;
}

void process_freeze(struct process *p, bool frozen)
{
	if (p->frozen != frozen)
		trace(p->world, "%s %s", p->name, frozen ? "freezes" : "goes on");
	p->frozen = frozen;
	far_freeze(p->store, frozen);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int64_t process_wall_us(struct clock *clock)
{
	struct process_clock *own = CONTAINER_OF(clock, struct process_clock, clock);
	return own->of->clock.wall_us(&own->of->clock) + own->off_us;
}

static int64_t process_mono_us(struct clock *clock)
{
	struct process_clock *own = CONTAINER_OF(clock, struct process_clock, clock);
	return own->of->clock.mono_us(&own->of->clock);
}

static struct datatypes *process_read_datatypes(void)
{
	struct conf *conf = conf_new();
	struct datatypes *datatypes;
	struct errbuf e = {""};
	int err = conf_read_yaml(conf, "g.yml", slice_of(rules), &e);
	err = err ? err : datatypes_read(conf->sections[CONF_SECTION_DATATYPES], &datatypes, &e);
	ASSERT(!err);
	conf_free(conf);
	return datatypes;
}

static void process_open_streams(struct world *w, struct process *p)
{
	const struct streams_options options = {
		.store = p->store,
		.clock = &p->clock.clock,
		.executor = &p->queue.executor,
		.session = p->session,
		.limits = {.streams_max = 1000000,
			   .new_a_minute = 1000000000,
			   .tail_max_bytes = UINT64_MAX,
			   .holes_max = 1000},
		.level = 1,
		.every_ms = EVERY_MS,
		.seal_after_ms = SEAL_AFTER_MS,
		.write_max_ms = WRITE_MAX_MS,
		.keep = &p->keep,
		.retain_every_ms = RETAIN_EVERY_MS,
		.late_max_ms = DAY_MS,
		.seed = random_next(&w->random),
		.owns_none = !p->owns,
	};
	struct datatypes *datatypes = process_read_datatypes();
	p->keep.preset_ms = w->removes == REMOVES_OLD ? KEEP_MS : 0;
	p->streams = streams_open(&options);
	streams_start(p->streams);
	demux_samples_init(&p->samples, p->ingest, p->store, &p->clock.clock, &p->queue.executor,
			   NULL, NULL);
	streams_start_demux(p->streams, &datatypes, &p->samples.sink);
	datatypes_free(datatypes);
}

static void process_open_ingest(struct world *w, struct process *p)
{
	const struct catalog_options catalog = catalog_options_default();
	p->catalog = catalog_new(p->store, &p->clock.clock, &p->queue.executor, &catalog);
	p->ingest = ingest_new(&(struct ingest_options){.store = p->store,
							.catalog = p->catalog,
							.clock = &p->clock.clock,
							.executor = &p->queue.executor,
							.seed = random_next(&w->random)});
}

void process_open(struct world *w, struct process *p, size_t place)
{
	/* The last one of three may be one that only takes chunks and answers. */
	*p = (struct process){.world = w, .place = place, .owns = !w->one_owns_none || place < 2};
	p->clock = (struct process_clock){{.wall_us = process_wall_us, .mono_us = process_mono_us},
					  &w->clock,
					  ((int64_t)pick(w, SKEW_MS + 1) - SKEW_MS / 2) * 1000};
	snprintf(p->name, sizeof(p->name), "p%zu-%u", place, ++w->incarnations);
	p->store = far_open(w->far, &p->clock.clock, w->last_stamp_us);
	task_queue_init(&p->queue);
	p->session = lease_session_new(
		&(struct lease_session_options){.store = p->store,
						.clock = &p->clock.clock,
						.holder = slice_of(p->name),
						.name = SLICE("p"),
						.roles = p->owns ? SESSION_OWNS_STREAMS : 0,
						.lease_ms = LEASE_MS,
						.skew_max_ms = SKEW_MS});
	opening = p;
	process_open_ingest(w, p);
	process_open_streams(w, p);
}

static bool process_is_over(const struct process *p)
{
	return streams_is_over(p->streams) && ingest_idle(p->ingest) && !p->works;
}

static void process_on_catalog_closed(void *owner)
{
	((struct process *)owner)->closed = true;
}

static void process_run_tasks(struct process *p)
{
	while (task_step(&p->queue))
		;
}

void process_close(struct process *p)
{
	struct world *w = p->world;
	process_freeze(p, false);
	far_kill(p->store);
	p->dead = true;
	if (far_last_stamp_us(p->store) > w->last_stamp_us)
		w->last_stamp_us = far_last_stamp_us(p->store);
	streams_stop(p->streams);
	for (int i = 0; !process_is_over(p); i++) {
		ASSERT(i < CLOSE_ROUNDS_MAX);
		if (!process_step(p))
			(void)far_step(w->far);
	}
	process_run_tasks(p);
	demux_samples_release(&p->samples);
	ingest_free(p->ingest);
	catalog_close(p->catalog, process_on_catalog_closed, p);
	process_run_tasks(p);
	ASSERT(p->closed);
	streams_close(p->streams);
	lease_session_free(p->session);
	store_close(p->store);
	task_queue_release(&p->queue);
}
