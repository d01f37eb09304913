#include "ingest/listener_stop.h"

void stopping_begin(struct stopping *stopping, struct loop *loop, int64_t grace_ms,
		    loop_timer_fn *give_up, void *door, void (*done)(void *owner), void *owner)
{
	ASSERT(!stopping->begun);
	*stopping = (struct stopping){.begun = true,
				      .loop = loop,
				      .grace = loop_timer_new(loop, give_up, door),
				      .done = done,
				      .owner = owner};
	loop_timer_start(stopping->grace, (uint64_t)grace_ms, 0);
}

static void stopping_tell(struct task *task)
{
	struct stopping *stopping = CONTAINER_OF(task, struct stopping, told);
	stopping->done(stopping->owner);
}

void stopping_end(struct stopping *stopping)
{
	struct executor *executor = loop_executor(stopping->loop);
	if (stopping->told.run)
		return;
	loop_timer_close(stopping->grace);
	stopping->grace = NULL;
	stopping->told.run = stopping_tell;
	executor->post(executor, &stopping->told);
}

void stopping_release(struct stopping *stopping)
{
	loop_timer_close(stopping->grace);
	stopping->grace = NULL;
}
