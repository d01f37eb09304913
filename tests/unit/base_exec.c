/* The task queue: order, threads, tasks that post. And the virtual clock and the random numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/exec.h"
#include "base/random.h"

enum { TASKS = 1000, THREADS = 4 };

struct counted {
	struct task task;
	struct task_queue *queue;
	int thread, number;
	bool again;
};

static int ran[THREADS], ran_total;

static void run_counted(struct task *task)
{
	struct counted *c = CONTAINER_OF(task, struct counted, task);
	assert_int_equal(c->number, ran[c->thread]);
	ran[c->thread]++;
	ran_total++;
	if (c->again) {
		c->again = false;
		c->number = ran[c->thread];
		c->queue->executor.post(&c->queue->executor, &c->task);
	}
}

static void tasks_run_in_their_order(UNUSED void **state)
{
	struct task_queue queue;
	struct counted tasks[3] = {0};
	memset(ran, 0, sizeof(ran));
	task_queue_init(&queue);
	assert_int_equal(task_queue_run(&queue), 0);
	for (int i = 0; i < 3; i++) {
		tasks[i] = (struct counted){.task = {.run = run_counted}, .number = i};
		queue.executor.post(&queue.executor, &tasks[i].task);
	}
	assert_int_equal(ran[0], 0); /* posting runs nothing */
	assert_int_equal(task_queue_run(&queue), 3);
	assert_int_equal(ran[0], 3);
	task_queue_release(&queue);
}

/* A task may post itself: it runs in the next turn, not in this one. */
static void posted_while_running_waits_for_the_next_turn(UNUSED void **state)
{
	struct task_queue queue;
	memset(ran, 0, sizeof(ran));
	task_queue_init(&queue);
	struct counted task = {.task = {.run = run_counted}, .queue = &queue, .again = true};
	queue.executor.post(&queue.executor, &task.task);
	assert_int_equal(task_queue_wait(&queue), 1);
	assert_int_equal(task_queue_wait(&queue), 1);
	assert_int_equal(task_queue_run(&queue), 0);
	task_queue_release(&queue);
}

struct poster {
	struct task_queue *queue;
	int number;
	struct counted tasks[TASKS];
};

static void *post_all(void *argument)
{
	struct poster *poster = argument;
	for (int i = 0; i < TASKS; i++) {
		poster->tasks[i] = (struct counted){
			.task = {.run = run_counted}, .thread = poster->number, .number = i};
		poster->queue->executor.post(&poster->queue->executor, &poster->tasks[i].task);
	}
	return NULL;
}

static void each_threads_tasks_keep_their_order(UNUSED void **state)
{
	static struct poster posters[THREADS];
	struct task_queue queue;
	pthread_t threads[THREADS];
	memset(ran, 0, sizeof(ran));
	ran_total = 0;
	task_queue_init(&queue);
	for (int i = 0; i < THREADS; i++) {
		posters[i].queue = &queue;
		posters[i].number = i;
		assert_int_equal(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
	}
	size_t waited = 0;
	while (waited < THREADS * TASKS)
		waited += task_queue_wait(&queue);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(waited, THREADS * TASKS);
	assert_int_equal(ran_total, THREADS * TASKS);
	task_queue_release(&queue);
}

static void virtual_clock_stands_still(UNUSED void **state)
{
	struct clock_virtual clock;
	clock_virtual_init(&clock, -1500);
	assert_int_equal(clock.clock.wall_us(&clock.clock), -1500);
	assert_int_equal(clock_wall_ms(&clock.clock), -2); /* before 1970 rounds down too */
	assert_int_equal(clock_mono_ms(&clock.clock), 0);
	clock_virtual_advance(&clock, 2500);
	assert_int_equal(clock_wall_ms(&clock.clock), 1);
	assert_int_equal(clock_mono_ms(&clock.clock), 2);
	struct clock *real = clock_real();
	int64_t mono_us = real->mono_us(real);
	assert_true(real->mono_us(real) >= mono_us);
	assert_true(clock_wall_ms(real) > INT64_C(1700000000000));
}

static void same_seed_same_numbers(UNUSED void **state)
{
	struct random a, b, other;
	unsigned seen = 0, different = 0;
	random_init(&a, 7);
	random_init(&b, 7);
	random_init(&other, 8);
	for (int i = 0; i < 1000; i++) {
		uint64_t n = random_next(&a);
		assert_true(n == random_next(&b));
		different += n != random_next(&other);
		uint64_t below = random_below(&a, 7);
		assert_true(below < 7);
		assert_true(below == random_below(&b, 7));
		seen |= 1u << below;
		double unit = random_unit(&a);
		assert_true(unit >= 0 && unit < 1);
		assert_true(unit == random_unit(&b));
	}
	assert_int_equal(seen, 0x7f);
	assert_int_equal(different, 1000);
	assert_int_equal(random_below(&a, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_run_in_their_order),
		cmocka_unit_test(posted_while_running_waits_for_the_next_turn),
		cmocka_unit_test(each_threads_tasks_keep_their_order),
		cmocka_unit_test(virtual_clock_stands_still),
		cmocka_unit_test(same_seed_same_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
