/* Private: the manager's books. */
#ifndef PERSIST_PRIVATE_H
#define PERSIST_PRIVATE_H

#include "persist/persist.h"
#include "persist/worker.h"

struct recompute;
struct silent;

/* The place of a worker; after one that hung another has it. */
struct post {
	struct persist *persist;
	struct worker *worker;
	struct task stopped;
	const struct queue_def *def;
	struct queue *queue;
	unsigned index;
};

struct persist {
	struct persist_options options;
	struct loop_timer *looks;
	struct post *posts;
	size_t post_count, stopped_count;
	struct recompute *recomputes; /* at work */
	struct silent *silent;
	void (*stopped)(void *owner);
	void *owner;
};

/* The place of the worker of a queue that has a device. */
struct post *persist_post(struct persist *persist, const struct queue_def *def,
			  struct slice device);

/* Whatever the worker of this place was asked for ends here. */
void recompute_abandon(struct post *post);

#endif
