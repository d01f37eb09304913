#include "cmd/queue_sink.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "base/stats.h"
#include "queue/queue.h"

/* One message on its way. */
struct queue_sink_passage {
	struct queue_put put;
	struct queue_sink *sink;
};

/* What the store could not make durable after all is lost as a poll is that came too late: the next
 * one has what it counted. */
static void queue_sink_on_stored(struct queue_put *put, int err)
{
	struct queue_sink_passage *passage = CONTAINER_OF(put, struct queue_sink_passage, put);
	if (err)
		stat_add(STAT_polling_lost, 1);
	atomic_fetch_sub(&passage->sink->on_their_way, 1);
	mem_free(passage);
}

int queue_sink_put(struct queue_sink *sink, struct queue *queue, struct slice device,
		   struct slice message)
{
	struct queue_sink_passage *passage = mem_zalloc(sizeof(*passage));
	passage->sink = sink;
	passage->put = (struct queue_put){
		.key = device,
		.bytes = message,
		.held = sink->held,
		.executor = sink->executor,
		.done = queue_sink_on_stored,
	};
	atomic_fetch_add(&sink->on_their_way, 1);
	int err = queue_put(queue, &passage->put);
	if (err) {
		atomic_fetch_sub(&sink->on_their_way, 1);
		mem_free(passage);
	}
	return err;
}
