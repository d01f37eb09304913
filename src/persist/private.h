/* Private: the manager's books. */
#ifndef PERSIST_PRIVATE_H
#define PERSIST_PRIVATE_H

#include "persist/claims.h"
#include "persist/persist.h"
#include "persist/worker.h"

struct catch_up;

/* The place of a worker; after one that hung another has it. */
struct post {
	struct persist *persist;
	struct worker *worker;
	struct task stopped;
	const struct queue_def *def;
	struct queue *queue;
	unsigned index;
	/* Monotonic: when this worker began, and when one of this place last moved after its own
	 * beginning. */
	int64_t began_ms, moved_ms;
};

struct persist {
	struct persist_options options;
	_Atomic int64_t retention_ms; /* options.retention_ms, as it is now */
	struct loop_timer *looks;
	int64_t looked_ms, awake_ms; /* monotonic; awake_ms: the process stood still before */
	struct post *posts;
	size_t post_count, stopped_count;
	struct claims claims;
	struct catch_up *catch_up;
	void (*stopped)(void *owner);
	void *owner;
};

#endif
