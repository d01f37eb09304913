#include "loop/job.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/mem.h"

struct job {
	struct task_queue queue;
	pthread_t thread;
	void (*run)(struct job *job, void *owner);
	void (*done)(void *owner);
	void *owner;
	struct executor *executor; /* of `done` */
	struct task over;
};

static _Atomic int jobs_running;

static pthread_t job_thread(const char *name, void *(*run)(void *argument), void *argument)
{
	char shown[16]; /* what the kernel keeps */
	pthread_t thread;
	/* Fails only when the system has no room for a thread: as good as no memory. */
	ASSERT(pthread_create(&thread, NULL, run, argument) == 0);
	snprintf(shown, sizeof(shown), "%.15s", name);
	pthread_setname_np(thread, shown);
	return thread;
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
	task_queue_init(&job->queue);
	*started = job;
	job->thread = job_thread(name, job_main, job);
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
	void (*run)(struct task_queue *queue, void *owner);
	void *owner;
};

static void *job_part_main(void *argument)
{
	const struct job_part *part = argument;
	struct task_queue queue;
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
		parts[i] = (struct job_part){run, owners[i]};
	for (size_t i = 1; i < count; i++)
		threads[i] = job_thread(name, job_part_main, &parts[i]);
	job_part_main(&parts[0]);
	for (size_t i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
}
