/* Jobs: where they run and where they end, what a stop ends, how many there may be. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop/job.h"
#include "loop/thread.h"

struct rig {
	struct task_queue queue; /* the thread that starts jobs */
	struct job *job;
	sem_t runs, may_end;
	pthread_t starter, ran_on, called_on;
	char name[16];
	int err;
	unsigned done;
};

static void rig_open(struct rig *rig)
{
	*rig = (struct rig){.starter = pthread_self()};
	task_queue_init(&rig->queue);
	sem_init(&rig->runs, 0, 0);
	sem_init(&rig->may_end, 0, 0);
}

static void rig_close(struct rig *rig)
{
	task_queue_release(&rig->queue);
	sem_destroy(&rig->runs);
	sem_destroy(&rig->may_end);
}

static void rig_done(void *owner)
{
	struct rig *rig = owner;
	assert_true(pthread_equal(pthread_self(), rig->starter));
	rig->done++;
}

static void rig_start(struct rig *rig, void (*run)(struct job *job, void *owner))
{
	assert_int_equal(job_start("a long name of a job", run, rig_done, rig, &rig->queue.executor,
				   &rig->job),
			 0);
}

static void rig_finish(struct rig *rig)
{
	while (!rig->done)
		task_queue_wait(&rig->queue);
	job_free(rig->job);
}

static void run_named(struct job *job, void *owner)
{
	struct rig *rig = owner;
	assert_false(job_is_stopping(job));
	rig->ran_on = pthread_self();
	sem_post(&rig->runs);
	while (sem_wait(&rig->may_end))
		;
}

static void it_runs_on_a_thread_of_its_name_and_ends_on_the_executor(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	rig_start(&rig, run_named);
	while (sem_wait(&rig.runs))
		;
	assert_false(pthread_equal(rig.ran_on, rig.starter));
	pthread_getname_np(rig.ran_on, rig.name, sizeof(rig.name));
	assert_string_equal(rig.name, "a long name of ");
	assert_int_equal(task_queue_run(&rig.queue), 0);
	sem_post(&rig.may_end);
	rig_finish(&rig);
	assert_int_equal(rig.done, 1);
	rig_close(&rig);
}

static void run_asleep(struct job *job, void *owner)
{
	struct rig *rig = owner;
	sem_post(&rig->runs);
	rig->err = job_sleep(job, INT64_C(1000) * 86400000);
	assert_true(job_is_stopping(job));
	assert_int_equal(job_sleep(job, 1), ERR_CANCELLED);
}

static void a_stop_ends_its_sleep(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	rig_start(&rig, run_asleep);
	while (sem_wait(&rig.runs))
		;
	job_stop(rig.job);
	job_stop(rig.job);
	rig_finish(&rig);
	assert_int_equal(rig.err, ERR_CANCELLED);
	rig_close(&rig);
}

static void run_short_sleep(struct job *job, void *owner)
{
	((struct rig *)owner)->err = job_sleep(job, 2);
}

static void a_sleep_ends_by_itself(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	rig.err = -1;
	rig_start(&rig, run_short_sleep);
	rig_finish(&rig);
	assert_int_equal(rig.err, 0);
	rig_close(&rig);
}

static void set_called(void *argument)
{
	((struct rig *)argument)->called_on = pthread_self();
}

static void run_calling(struct job *job, void *owner)
{
	struct rig *rig = owner;
	job_stop(job);
	job_call(job, &rig->queue.executor, set_called, rig);
	rig->err = pthread_equal(rig->called_on, rig->starter) ? 0 : ERR_INVALID;
}

/* It has returned before the job goes on, even if the job is to end. */
static void it_calls_what_belongs_to_another_thread(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	rig.err = ERR_INVALID;
	rig_start(&rig, run_calling);
	rig_finish(&rig);
	assert_int_equal(rig.err, 0);
	rig_close(&rig);
}

static void there_are_only_so_many(UNUSED void **state)
{
	struct rig rigs[JOBS_MAX], more;
	for (size_t i = 0; i < JOBS_MAX; i++) {
		rig_open(&rigs[i]);
		rig_start(&rigs[i], run_named);
	}
	rig_open(&more);
	assert_int_equal(
		job_start("more", run_named, rig_done, &more, &more.queue.executor, &more.job),
		ERR_LIMIT);
	sem_post(&rigs[3].may_end);
	rig_finish(&rigs[3]);
	sem_post(&more.may_end);
	rig_start(&more, run_named);
	rig_finish(&more);
	rig_close(&more);
	for (size_t i = 0; i < JOBS_MAX; i++) {
		sem_post(&rigs[i].may_end);
		if (i != 3)
			rig_finish(&rigs[i]);
		rig_close(&rigs[i]);
	}
}

/* ---- Over before its start has returned ------------------------------------------------------ */

static sem_t *slow_start; /* NULL: starting a thread is as quick as ever */

/* In place of the C library's. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
		   void *argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	int err = real(thread, attributes, run, argument);
	if (slow_start)
		sem_wait(slow_start);
	return err;
}

static atomic_uint joins_failed;

int pthread_join(pthread_t thread, void **result)
{
	int (*real)(pthread_t, void **);
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_join");
	int err = real(thread, result);
	atomic_fetch_add(&joins_failed, err != 0);
	return err;
}

static void run_short(UNUSED struct job *job, UNUSED void *owner)
{
}

struct over {
	struct job *job;
	sem_t sem;
};

static void note_over(void *owner)
{
	struct over *over = owner;
	job_free(over->job);
	sem_post(&over->sem);
}

static void one_that_is_over_while_it_is_started(UNUSED void **state)
{
	struct over over;
	struct loop_thread *thread = loop_thread_new("elsewhere");
	sem_init(&over.sem, 0, 0);
	slow_start = &over.sem;
	assert_int_equal(job_start("short", run_short, note_over, &over,
				   loop_executor(loop_thread_loop(thread)), &over.job),
			 0);
	slow_start = NULL;
	assert_int_equal(joins_failed, 0);
	loop_thread_free(thread);
	sem_destroy(&over.sem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_runs_on_a_thread_of_its_name_and_ends_on_the_executor),
		cmocka_unit_test(a_stop_ends_its_sleep),
		cmocka_unit_test(a_sleep_ends_by_itself),
		cmocka_unit_test(it_calls_what_belongs_to_another_thread),
		cmocka_unit_test(there_are_only_so_many),
		cmocka_unit_test(one_that_is_over_while_it_is_started),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
