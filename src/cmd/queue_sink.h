/* What a poller gives, on its way into queues. */
#ifndef CMD_QUEUE_SINK_H
#define CMD_QUEUE_SINK_H

#include "base/base.h"
#include "base/exec.h"

struct queue;

struct queue_sink {
	struct executor *executor; /* where puts are completed */
	bool held;                 /* as in queue_put */
	_Atomic size_t on_their_way;
};

/* On the poller's thread. 0: the queue took it, and it is counted as on its way until it is durable
 * or lost; else as queue_put. */
int queue_sink_put(struct queue_sink *sink, struct queue *queue, struct slice device,
		   struct slice message) MUST_CHECK;

#endif
