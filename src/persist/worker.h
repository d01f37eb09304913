/* Private: a thread that persists the polls of some shards of a queue. */
#ifndef PERSIST_WORKER_H
#define PERSIST_WORKER_H

#include "persist/persister.h"

struct queue;
struct worker;

struct worker_options {
	struct persist_base base; /* its executor and worker are set by the worker */
	const struct inventory_conf *conf;
	const struct queue_def *def;
	struct queue *queue;
	unsigned index; /* of the queue's workers */
};

struct worker *worker_new(const struct worker_options *options);

/* When the worker last moved, monotonic ms. Any thread. */
int64_t worker_moved_ms(const struct worker *worker);

/* Ends it after the batch at work; then posts `stopped`. */
void worker_stop(struct worker *worker, struct executor *executor, struct task *stopped);
/* Once it has stopped. */
void worker_free(struct worker *worker);
/* For one that hangs: nothing waits for it, and it is never freed. */
void worker_abandon(struct worker *worker);

#endif
