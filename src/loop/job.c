#include "loop/job.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/mem.h"

enum { JOB_NAME_BYTES = 16 }; /* as many as the kernel keeps */

struct job {
	struct task_queue queue;
	char name[JOB_NAME_BYTES];
	pthread_t thread; /* its own, which says so before `over` is posted */
	void (*run)(struct job *job, void *owner);
	void (*done)(void *owner);
	void *owner;
	struct executor *executor; /* of `done` */
	struct task over;
};

static _Atomic int jobs_running;

static pthread_t job_thread(void *(*run)(void *argument), void *argument)
{
	pthread_t thread;
	/* Fails only when the system has no room for a thread: as good as no memory. */
	ASSERT(pthread_create(&thread, NULL, run, argument) == 0);
	return thread;
}

static void job_set_name(char to[JOB_NAME_BYTES], const char *name)
{
	snprintf(to, JOB_NAME_BYTES, "%.*s", JOB_NAME_BYTES - 1, name);
}

static void job_over(struct task *task)
{
	struct job *job = CONTAINER_OF(task, struct job, over);
	pthread_join(job->thread, NULL);
	atomic_fetch_sub(&jobs_running, 1);
	job->done(job->owner);
}

static void *job_main(void *argument)
{
	struct job *job = argument;
	job->thread = pthread_self();
	pthread_setname_np(job->thread, job->name);
	job->run(job, job->owner);
	job->executor->post(job->executor, &job->over);
	return NULL;
}

int job_start(const char *name, void (*run)(struct job *job, void *owner),
	      void (*done)(void *owner), void *owner, struct executor *executor,
	      struct job **started)
{
	if (atomic_fetch_add(&jobs_running, 1) >= JOBS_MAX) {
		atomic_fetch_sub(&jobs_running, 1);
		return ERR_LIMIT;
	}
	struct job *job = mem_zalloc(sizeof(*job));
	*job = (struct job){.run = run,
			    .done = done,
			    .owner = owner,
			    .executor = executor,
			    .over = {.run = job_over}};
	job_set_name(job->name, name);
	task_queue_init(&job->queue);
	*started = job;
	/* The job may be over, and freed, before this returns. */
	(void)job_thread(job_main, job);
	return 0;
}

void job_free(struct job *job)
{
	if (!job)
		return;
	task_queue_release(&job->queue);
	mem_free(job);
}

void job_stop(struct job *job)
{
	task_queue_stop(&job->queue);
}

bool job_is_stopping(const struct job *job)
{
	return task_queue_is_stopped(&job->queue);
}

struct task_queue *job_queue(struct job *job)
{
	return &job->queue;
}

int job_sleep(struct job *job, int64_t ms)
{
	return task_queue_sleep(&job->queue, ms);
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
	struct executor *executor = &calling->job->queue.executor;
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
	(void)task_queue_wait_for(&job->queue, &calling.answer);
}

/* ---- At once --------------------------------------------------------------------------------- */

struct job_part {
	char name[JOB_NAME_BYTES];
	void (*run)(struct task_queue *queue, void *owner);
	void *owner;
};

static void *job_part_main(void *argument)
{
	const struct job_part *part = argument;
	struct task_queue queue;
	if (part->name[0])
		pthread_setname_np(pthread_self(), part->name);
	task_queue_init(&queue);
	part->run(&queue, part->owner);
	task_queue_release(&queue);
	return NULL;
}

void jobs_run_all(const char *name, void (*run)(struct task_queue *queue, void *owner),
		  void *const *owners, size_t count)
{
	struct job_part parts[JOBS_ALL_OF_MAX];
	pthread_t threads[JOBS_ALL_OF_MAX];
	ASSERT(count && count <= JOBS_ALL_OF_MAX);
	for (size_t i = 0; i < count; i++)
		parts[i] = (struct job_part){.run = run, .owner = owners[i]};
	for (size_t i = 1; i < count; i++) {
		job_set_name(parts[i].name, name);
		threads[i] = job_thread(job_part_main, &parts[i]);
	}
	job_part_main(&parts[0]);
	for (size_t i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
}
