/* A queue that is run a task at a time, for tests in which something happens between two. */
#ifndef TESTS_UNIT_TASK_STEP_H
#define TESTS_UNIT_TASK_STEP_H

#include "base/exec.h"

/* False: there is none. */
static inline bool task_step(struct task_queue *queue)
{
	struct task *task = queue->first;
	if (!task)
		return false;
	queue->first = task->next;
	if (!queue->first)
		queue->last = NULL;
	task->run(task);
	return true;
}

#endif
