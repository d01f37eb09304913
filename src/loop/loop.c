/* Tasks, timers and signals; sockets are in net.c.
 *
 * Other threads reach the loop through one list under a lock and one uv_async handle, which libuv
 * coalesces: a thousand posts between two turns of the loop cost one wake-up. */
#include "loop/loop.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "loop/private.h"

static void loop_post(struct executor *executor, struct task *task)
{
	struct loop *loop = CONTAINER_OF(executor, struct loop, executor);
	task->next = NULL;
	pthread_mutex_lock(&loop->lock);
	bool was_empty = !loop->first;
	if (was_empty)
		loop->first = task;
	else
		loop->last->next = task;
	loop->last = task;
	pthread_mutex_unlock(&loop->lock);
	/* When there was a task already, its sender wakes the loop. */
	if (was_empty)
		uv_async_send(&loop->wake);
}

/* Runs what was there at the call: a task that posts itself again does not keep the loop from its
 * sockets. */
static bool run_tasks(struct loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	struct task *task = loop->first;
	loop->first = loop->last = NULL;
	pthread_mutex_unlock(&loop->lock);
	bool any = task;
	while (task) {
		struct task *next = task->next;
		task->run(task);
		task = next;
	}
	return any;
}

static void on_wake(uv_async_t *wake)
{
	struct loop *loop = CONTAINER_OF(wake, struct loop, wake);
	run_tasks(loop);
	if (atomic_exchange(&loop->stopping, false))
		uv_stop(&loop->uv);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

static const struct loop_kind_row {
	const char *name;
	enum stat_id longest, slow;
} loop_kinds[] = {
	[LOOP_OTHER] = {"other", STAT_loop_longest_other, STAT_loop_slow_other},
	[LOOP_MAIN] = {"main", STAT_loop_longest_main, STAT_loop_slow_main},
	[LOOP_POLLER] = {"poller", STAT_loop_longest_poller, STAT_loop_slow_poller},
	[LOOP_PERSIST] = {"persist", STAT_loop_longest_persist, STAT_loop_slow_persist},
};

void loop_set_kind(struct loop *loop, enum loop_kind kind)
{
	atomic_store(&loop->kind, kind);
}

enum { TURNS_TOGETHER_US = 2000 };

static void loop_begin_turns(struct loop *loop)
{
	loop->turns_began_us = clock_thread_us();
	loop->turns_seen_us = (int64_t)(uv_hrtime() / 1000);
}

/* The clock of a thread is a call of the system. So the turns of TURNS_TOGETHER_US, or a
 * longer one and those just before it, are looked at as one. */
static void loop_turn_over(struct loop *loop)
{
	const struct loop_kind_row *row = &loop_kinds[atomic_load(&loop->kind)];
	if ((int64_t)(uv_hrtime() / 1000) - loop->turns_seen_us < TURNS_TOGETHER_US)
		return;
	int64_t began_us = loop->turns_began_us;
	loop_begin_turns(loop);
	int64_t took_us = loop->turns_began_us - began_us;
	if (took_us > LOOP_TURN_SLOW_MS * 1000)
		stat_add(row->slow, 1);
	if (stat_raise(row->longest, took_us) && took_us >= LOOP_TURN_MAX_MS * 1000)
		log_warn("one turn of the %s loop took %lld ms of CPU time, the longest so far: "
			 "whoever is served by it waited as long; if it comes again, look which "
			 "requests came then",
			 row->name, (long long)(took_us / 1000));
}

/* Before each look at the sockets. */
static void on_turn(uv_prepare_t *turn)
{
	struct loop *loop = CONTAINER_OF(turn, struct loop, turn);
	loop->reads_began_us = 0;
	loop->turns++;
	loop_turn_over(loop);
}

/* ---- The loop -------------------------------------------------------------------------------- */

struct loop *loop_new(void)
{
	struct loop *loop = mem_zalloc(sizeof(*loop));
	/* A peer that has gone is an error of the write, not the end of the process. */
	signal(SIGPIPE, SIG_IGN);
	loop->executor.post = loop_post;
	loop->read_buffer = mem_alloc(LOOP_READ_BYTES);
	pthread_mutex_init(&loop->lock, NULL);
	int err = uv_loop_init(&loop->uv);
	if (!err)
		err = uv_async_init(&loop->uv, &loop->wake, on_wake);
	if (!err)
		err = uv_prepare_init(&loop->uv, &loop->turn);
	if (!err)
		err = uv_prepare_start(&loop->turn, on_turn);
	if (err) {
		/* Nothing goes on without it, as without memory: but descriptors can be had. */
		log_error("an event loop cannot be made: %s; the process may have too few "
			  "descriptors (`ulimit -n`)",
			  err_text(err));
		_exit(EXIT_FAILURE);
	}
	uv_unref((uv_handle_t *)&loop->turn);
	return loop;
}

void loop_run(struct loop *loop)
{
	loop_begin_turns(loop);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	loop_turn_over(loop);
}

void loop_stop(struct loop *loop)
{
	atomic_store(&loop->stopping, true);
	uv_async_send(&loop->wake);
}

static void check_closing(uv_handle_t *handle, void *owner)
{
	struct loop *loop = owner;
	ASSERT(handle == (uv_handle_t *)&loop->wake || handle == (uv_handle_t *)&loop->turn ||
	       uv_is_closing(handle));
}

void loop_free(struct loop *loop)
{
	while (run_tasks(loop))
		;
	uv_walk(&loop->uv, check_closing, loop);
	uv_close((uv_handle_t *)&loop->wake, NULL);
	uv_close((uv_handle_t *)&loop->turn, NULL);
	/* A `closed` event may post once more; nobody would run it, so it is run here. */
	while (uv_run(&loop->uv, UV_RUN_DEFAULT) || run_tasks(loop))
		;
	ASSERT(uv_loop_close(&loop->uv) == 0);
	pthread_mutex_destroy(&loop->lock);
	tls_room_free(loop->tls);
	mem_free(loop->read_buffer);
	mem_free(loop);
}

struct executor *loop_executor(struct loop *loop)
{
	return &loop->executor;
}

int64_t loop_now_ms(struct loop *loop)
{
	return (int64_t)uv_now(&loop->uv);
}

/* ---- Timers ---------------------------------------------------------------------------------- */

struct loop_timer {
	uv_timer_t uv;
	loop_timer_fn *fn;
	void *owner;
};

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *fn, void *owner)
{
	struct loop_timer *timer = mem_zalloc(sizeof(*timer));
	timer->fn = fn;
	timer->owner = owner;
	uv_timer_init(&loop->uv, &timer->uv);
	return timer;
}

static void loop_on_timer(uv_timer_t *uv)
{
	struct loop_timer *timer = CONTAINER_OF(uv, struct loop_timer, uv);
	timer->fn(timer->owner);
}

void loop_timer_start(struct loop_timer *timer, uint64_t after_ms, uint64_t repeat_ms)
{
	/* The loop's idea of now may be as old as the present event is long. */
	uv_update_time(timer->uv.loop);
	uv_timer_start(&timer->uv, loop_on_timer, after_ms, repeat_ms);
}

void loop_timer_stop(struct loop_timer *timer)
{
	uv_timer_stop(&timer->uv);
}

static void on_timer_closed(uv_handle_t *handle)
{
	mem_free(CONTAINER_OF((uv_timer_t *)handle, struct loop_timer, uv));
}

void loop_timer_close(struct loop_timer *timer)
{
	if (timer)
		uv_close((uv_handle_t *)&timer->uv, on_timer_closed);
}

/* ---- Signals --------------------------------------------------------------------------------- */

struct loop_signal {
	uv_signal_t uv;
	loop_signal_fn *fn;
	void *owner;
};

static void on_signal(uv_signal_t *uv, int signum)
{
	struct loop_signal *handle = CONTAINER_OF(uv, struct loop_signal, uv);
	handle->fn(handle->owner, signum);
}

static void on_signal_closed(uv_handle_t *handle)
{
	mem_free(CONTAINER_OF((uv_signal_t *)handle, struct loop_signal, uv));
}

int loop_signal_open(struct loop *loop, int signum, loop_signal_fn *fn, void *owner,
		     struct loop_signal **signal)
{
	struct loop_signal *handle = mem_zalloc(sizeof(*handle));
	handle->fn = fn;
	handle->owner = owner;
	int err = uv_signal_init(&loop->uv, &handle->uv);
	if (err) {
		mem_free(handle);
		return err;
	}
	if (uv_signal_start(&handle->uv, on_signal, signum)) {
		uv_close((uv_handle_t *)&handle->uv, on_signal_closed);
		return ERR_INVALID;
	}
	*signal = handle;
	return 0;
}

void loop_signal_close(struct loop_signal *signal)
{
	if (signal)
		uv_close((uv_handle_t *)&signal->uv, on_signal_closed);
}
