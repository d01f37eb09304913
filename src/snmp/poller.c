/* The poller's thread: a loop with the network on it, a timer that steps the core. What other
 * threads want of it comes as tasks. */
#include "snmp/poller.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "loop/thread.h"
#include "snmp/poller_core.h"
#include "snmp/poller_net.h"

struct poller {
	struct poller_options options;
	struct loop_thread *thread;
	struct loop_timer *timer;
	struct poller_net *net;
	struct core *core;
	/* Opening: the caller waits for it. */
	struct task open_task;
	struct task_queue opened;
	struct task opened_task;
	int open_err;
	struct errbuf *open_error;
	/* Wishes of other threads. */
	struct task close_task, finish_task, closed_task;
	void (*closed)(void *owner);
	void *closed_owner;
};

static void poller_post(struct poller *poller, struct task *task)
{
	struct executor *executor = loop_executor(loop_thread_loop(poller->thread));
	executor->post(executor, task);
}

/* ---- On the poller's thread ------------------------------------------------------------------ */

static void poller_step(void *owner)
{
	struct poller *poller = owner;
	if (!poller->timer)
		return; /* it is closing */
	int64_t wait_ms = core_step(poller->core);
	/* The milliseconds of the loop do not begin when those of the wall clock do: without one
	 * more, the timer is early as a rule, and has to wait once again. */
	loop_timer_start(poller->timer, (uint64_t)wait_ms + (wait_ms > 0), 0);
}

static void open_all(struct task *task)
{
	struct poller *poller = CONTAINER_OF(task, struct poller, open_task);
	const struct poller_options *o = &poller->options;
	const struct poller_net_options net_options = {
		.loop = loop_thread_loop(poller->thread),
		.clock = o->clock,
		.in_flight_max = o->in_flight_max,
		.device_in_flight_max = o->device_in_flight_max,
		.tries = o->tries ? o->tries : POLLER_TRIES,
		.timeout_max_ms = o->timeout_max_ms,
	};
	poller->open_err = poller_net_open(&net_options, &poller->net, poller->open_error);
	if (!poller->open_err) {
		poller->core = core_new(o, poller_net_io(poller->net));
		poller->timer = loop_timer_new(net_options.loop, poller_step, poller);
		poller_step(poller);
	}
	poller->opened.executor.post(&poller->opened.executor, &poller->opened_task);
}

struct new_inventory {
	struct task task;
	struct poller *poller;
	const struct inventory *inventory;
};

static void use_inventory(struct task *task)
{
	struct new_inventory *wish = CONTAINER_OF(task, struct new_inventory, task);
	struct poller *poller = wish->poller;
	if (poller->core) {
		core_set_inventory(poller->core, wish->inventory);
		poller_step(poller);
	}
	inventory_release(wish->inventory);
	mem_free(wish);
}

struct poll_wish {
	struct task task;
	struct poller *poller;
	struct slice device; /* a copy */
};

static void use_poll_wish(struct task *task)
{
	struct poll_wish *wish = CONTAINER_OF(task, struct poll_wish, task);
	if (wish->poller->core) {
		core_poll_now(wish->poller->core, wish->device);
		poller_step(wish->poller);
	}
	mem_free((char *)wish->device.data);
	mem_free(wish);
}

/* ---- Closing --------------------------------------------------------------------------------- */

/* Back on the owner's thread. */
static void poller_run_closed(struct task *task)
{
	struct poller *poller = CONTAINER_OF(task, struct poller, closed_task);
	void (*closed)(void *owner) = poller->closed;
	void *owner = poller->closed_owner;
	loop_thread_free(poller->thread);
	task_queue_release(&poller->opened);
	mem_free(poller);
	closed(owner);
}

/* Behind the tasks that told what was looked up. */
static void poller_finish(struct task *task)
{
	struct poller *poller = CONTAINER_OF(task, struct poller, finish_task);
	struct executor *executor = poller->options.executor;
	core_free(poller->core);
	poller->core = NULL;
	poller_net_close(poller->net);
	executor->post(executor, &poller->closed_task);
}

static void begin_close(struct task *task)
{
	struct poller *poller = CONTAINER_OF(task, struct poller, close_task);
	loop_timer_close(poller->timer);
	poller->timer = NULL;
	poller_net_stop_resolving(poller->net);
	poller_post(poller, &poller->finish_task);
}

/* ---- For other threads ----------------------------------------------------------------------- */

static void nothing(UNUSED struct task *task)
{
}

int poller_open(const struct poller_options *options, struct poller **out, struct errbuf *e)
{
	struct poller *poller = mem_zalloc(sizeof(*poller));
	poller->options = *options;
	poller->open_error = e;
	poller->open_task.run = open_all;
	poller->opened_task.run = nothing;
	poller->close_task.run = begin_close;
	poller->finish_task.run = poller_finish;
	poller->closed_task.run = poller_run_closed;
	task_queue_init(&poller->opened);
	poller->thread = loop_thread_new("poller");
	loop_set_kind(loop_thread_loop(poller->thread), LOOP_POLLER);
	poller_post(poller, &poller->open_task);
	task_queue_wait(&poller->opened);
	if (poller->open_err) {
		int err = poller->open_err;
		loop_thread_free(poller->thread);
		task_queue_release(&poller->opened);
		mem_free(poller);
		return errbuf_prefix(e, err, "the poller");
	}
	*out = poller;
	return 0;
}

void poller_set_inventory(struct poller *poller, const struct inventory *inventory)
{
	struct new_inventory *wish = mem_zalloc(sizeof(*wish));
	*wish = (struct new_inventory){{.run = use_inventory}, poller, inventory};
	inventory_take(inventory);
	poller_post(poller, &wish->task);
}

void poller_poll_now(struct poller *poller, struct slice device)
{
	struct poll_wish *wish = mem_zalloc(sizeof(*wish));
	*wish = (struct poll_wish){
		{.run = use_poll_wish}, poller, {mem_copy_text(device), device.len}};
	poller_post(poller, &wish->task);
}

void poller_close(struct poller *poller, void (*closed)(void *owner), void *owner)
{
	poller->closed = closed;
	poller->closed_owner = owner;
	poller_post(poller, &poller->close_task);
}
