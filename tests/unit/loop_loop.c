/* Tasks from other threads, timers, signals, the worker pool. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stats.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/thread.h"

enum { SENDERS = 4, TASKS_EACH = 5000 };

struct numbered {
	struct task task;
	struct counting *counting;
	unsigned sender, number;
};

struct counting {
	struct loop *loop;
	pthread_t thread;
	unsigned next[SENDERS], total;
	struct numbered tasks[SENDERS][TASKS_EACH];
};

static void count_task(struct task *task)
{
	struct numbered *numbered = CONTAINER_OF(task, struct numbered, task);
	struct counting *counting = numbered->counting;
	assert_true(pthread_equal(pthread_self(), counting->thread));
	assert_int_equal(numbered->number, counting->next[numbered->sender]++);
	if (++counting->total == SENDERS * TASKS_EACH)
		loop_stop(counting->loop);
}

struct sender {
	struct counting *counting;
	unsigned index;
};

static void *send_all(void *arg)
{
	struct sender *sender = arg;
	for (unsigned i = 0; i < TASKS_EACH; i++) {
		struct numbered *numbered = &sender->counting->tasks[sender->index][i];
		*numbered = (struct numbered){{count_task}, sender->counting, sender->index, i};
		struct executor *executor = loop_executor(sender->counting->loop);
		executor->post(executor, &numbered->task);
	}
	return NULL;
}

static void test_posts_of_each_thread_keep_their_order(void **state)
{
	static struct counting counting;
	struct sender senders[SENDERS];
	pthread_t threads[SENDERS];
	(void)state;
	counting.loop = loop_new();
	counting.thread = pthread_self();
	for (unsigned i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){&counting, i};
		assert_int_equal(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
	}
	loop_run(counting.loop);
	assert_int_equal(counting.total, SENDERS * TASKS_EACH);
	for (unsigned i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	loop_free(counting.loop);
}

struct ran {
	struct task task;
	bool ran;
};

static void mark_ran(struct task *task)
{
	CONTAINER_OF(task, struct ran, task)->ran = true;
}

static void test_free_runs_what_was_posted(void **state)
{
	struct ran ran = {{mark_ran}};
	struct loop *loop = loop_new();
	(void)state;
	loop_executor(loop)->post(loop_executor(loop), &ran.task);
	loop_free(loop);
	assert_true(ran.ran);
}

static void test_stop_before_run(void **state)
{
	struct loop *loop = loop_new();
	(void)state;
	loop_stop(loop);
	loop_run(loop); /* returns */
	loop_free(loop);
}

struct ticking {
	struct loop *loop;
	struct loop_timer *repeating, *once, *never;
	unsigned ticks, onces;
};

static void tick(void *owner)
{
	struct ticking *ticking = owner;
	if (++ticking->ticks == 3)
		loop_timer_stop(ticking->repeating);
}

static void once(void *owner)
{
	struct ticking *ticking = owner;
	ticking->onces++;
	if (ticking->ticks >= 3)
		loop_stop(ticking->loop);
	else
		loop_timer_start(ticking->once, 20, 0);
}

static void never(void *owner)
{
	(void)owner;
	fail();
}

static void test_timers(void **state)
{
	struct ticking ticking = {.loop = loop_new()};
	(void)state;
	ticking.repeating = loop_timer_new(ticking.loop, tick, &ticking);
	ticking.once = loop_timer_new(ticking.loop, once, &ticking);
	ticking.never = loop_timer_new(ticking.loop, never, &ticking);
	loop_timer_start(ticking.never, 1, 1);
	loop_timer_close(ticking.never); /* its event must not come any more */
	loop_timer_start(ticking.repeating, 1, 1);
	loop_timer_start(ticking.once, 20, 0);
	int64_t before = loop_now_ms(ticking.loop);
	loop_run(ticking.loop);
	assert_int_equal(ticking.ticks, 3);
	assert_true(loop_now_ms(ticking.loop) >= before + 20);
	loop_timer_close(ticking.repeating);
	loop_timer_close(ticking.once);
	loop_timer_close(NULL);
	loop_free(ticking.loop);
}

static int signal_seen;

static void on_signal(void *owner, int signum)
{
	signal_seen = signum;
	loop_stop(owner);
}

static void test_signals(void **state)
{
	struct loop *loop = loop_new();
	struct loop_signal *handle = NULL;
	(void)state;
	assert_int_equal(loop_signal_open(loop, SIGKILL, on_signal, loop, &handle), ERR_INVALID);
	assert_null(handle);
	assert_int_equal(loop_signal_open(loop, SIGUSR1, on_signal, loop, &handle), 0);
	raise(SIGUSR1);
	loop_run(loop);
	assert_int_equal(signal_seen, SIGUSR1);
	loop_signal_close(handle);
	loop_free(loop);
}

/* ---- The pool -------------------------------------------------------------------------------- */

struct gate {
	struct task task;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool entered, open;
};

static void pass_gate(struct task *task)
{
	struct gate *gate = CONTAINER_OF(task, struct gate, task);
	pthread_mutex_lock(&gate->lock);
	gate->entered = true;
	pthread_cond_broadcast(&gate->changed);
	while (!gate->open)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static void gate_wait_entered(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	while (!gate->entered)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static void gate_open(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

static void test_pool_is_bounded_and_finishes_what_it_took(void **state)
{
	struct gate gate = {.task = {pass_gate}};
	struct ran first = {{mark_ran}}, second = {{mark_ran}}, third = {{mark_ran}};
	(void)state;
	pthread_mutex_init(&gate.lock, NULL);
	pthread_cond_init(&gate.changed, NULL);
	struct pool *pool = pool_new(1, 2, "a-name-that-is-too-long");
	assert_int_equal(pool_submit(pool, &gate.task), 0);
	gate_wait_entered(&gate); /* the worker has it: the queue is empty */
	assert_int_equal(pool_submit(pool, &first.task), 0);
	assert_int_equal(pool_submit(pool, &second.task), 0);
	assert_int_equal(pool_submit(pool, &third.task), ERR_BUSY);
	gate_open(&gate);
	pool_close(pool);
	assert_true(first.ran && second.ran);
	assert_false(third.ran);
}

static void test_pool_runs_side_by_side(void **state)
{
	struct gate one = {.task = {pass_gate}}, two = {.task = {pass_gate}};
	struct gate *gates[] = {&one, &two};
	(void)state;
	struct pool *pool = pool_new(2, 8, "two");
	for (size_t i = 0; i < 2; i++) {
		pthread_mutex_init(&gates[i]->lock, NULL);
		pthread_cond_init(&gates[i]->changed, NULL);
		assert_int_equal(pool_submit(pool, &gates[i]->task), 0);
	}
	/* Both are inside at once, or this waits for ever. */
	gate_wait_entered(&one);
	gate_wait_entered(&two);
	gate_open(&one);
	gate_open(&two);
	pool_close(pool);
}

struct timed {
	struct task begin;
	struct loop_thread *thread;
	struct loop_timer *timer;
	pthread_t seen;
	struct gate gate;
};

static void timed_out(void *owner)
{
	struct timed *timed = owner;
	timed->seen = pthread_self();
	loop_timer_close(timed->timer);
	pass_gate(&timed->gate.task);
}

static void begin_timed(struct task *task)
{
	struct timed *timed = CONTAINER_OF(task, struct timed, begin);
	timed->timer = loop_timer_new(loop_thread_loop(timed->thread), timed_out, timed);
	loop_timer_start(timed->timer, 1, 0);
}

static void test_threads_have_loops_of_their_own(void **state)
{
	struct timed one = {.begin = {begin_timed}}, two = {.begin = {begin_timed}};
	struct timed *both[] = {&one, &two};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		pthread_mutex_init(&both[i]->gate.lock, NULL);
		pthread_cond_init(&both[i]->gate.changed, NULL);
		both[i]->thread = loop_thread_new("test");
		struct executor *executor = loop_executor(loop_thread_loop(both[i]->thread));
		executor->post(executor, &both[i]->begin);
	}
	/* Both wait in their timers at once, or this waits for ever. */
	gate_wait_entered(&one.gate);
	gate_wait_entered(&two.gate);
	assert_false(pthread_equal(one.seen, two.seen));
	assert_false(pthread_equal(one.seen, pthread_self()));
	gate_open(&one.gate);
	gate_open(&two.gate);
	loop_thread_free(one.thread);
	loop_thread_free(two.thread);
}

struct burning {
	struct loop *loop;
	struct loop_timer *timer;
	int64_t turn_us;
	unsigned left;
};

static void burn(void *owner)
{
	struct burning *b = owner;
	int64_t end_us = clock_thread_us() + b->turn_us;
	while (clock_thread_us() < end_us)
		;
	if (--b->left == 0)
		loop_stop(b->loop);
}

/* Turns of so much CPU time each, with time between them in which nothing is done. */
static void burn_turns(int64_t turn_us, unsigned count)
{
	struct burning b = {loop_new(), NULL, turn_us, count};
	loop_set_kind(b.loop, LOOP_POLLER);
	b.timer = loop_timer_new(b.loop, burn, &b);
	loop_timer_start(b.timer, 1, 30);
	loop_run(b.loop);
	loop_timer_close(b.timer);
	loop_free(b.loop);
}

static void test_the_longest_turn_is_known_and_slow_ones_are_counted(void **state)
{
	char text[STAT_TEXT_BYTES];
	(void)state;
	burn_turns(11000, 3); /* 33 ms in all, and more on the clock on the wall */
	int64_t longest = stat_get(STAT_loop_longest_poller);
	assert_in_range(longest, 11000, 20000);
	assert_int_equal(stat_get(STAT_loop_slow_poller), 0);
	burn_turns(22000, 2);
	assert_true(stat_get(STAT_loop_longest_poller) >= 22000);
	assert_int_equal(stat_get(STAT_loop_slow_poller), 2);
	longest = stat_get(STAT_loop_longest_poller);
	burn_turns(1000, 1); /* it stays the longest */
	assert_int_equal(stat_get(STAT_loop_longest_poller), longest);
	assert_int_equal(stat_get(STAT_loop_longest_main), 0);
	stat_set(STAT_loop_longest_poller, 1022003);
	assert_string_equal(stat_text(STAT_loop_longest_poller, text), "1.022003");
	assert_string_equal(stat_text(STAT_loop_slow_poller, text), "2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posts_of_each_thread_keep_their_order),
		cmocka_unit_test(test_free_runs_what_was_posted),
		cmocka_unit_test(test_stop_before_run),
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_pool_is_bounded_and_finishes_what_it_took),
		cmocka_unit_test(test_pool_runs_side_by_side),
		cmocka_unit_test(test_threads_have_loops_of_their_own),
		cmocka_unit_test(test_the_longest_turn_is_known_and_slow_ones_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
