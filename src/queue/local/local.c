#include "queue/local/local.h"

#include "base/cursor.h"
#include "model/poll.h"
#include "queue/local/private.h"
#include "store/wait.h"

_Static_assert((int)POLL_BYTES_MAX <= (int)QUEUE_MESSAGE_MAX_BYTES, "every poll fits into a queue");

void local_place_of(const struct queue *queue, unsigned shard, uint64_t sequence,
		    struct local_place *place)
{
	be64_put(place->shard, shard);
	be64_put(place->column, sequence);
	place->row = (struct store_parts){{queue_name(queue), {(const char *)place->shard, 8}}};
	place->at = (struct store_parts){{{(const char *)place->column, 8}}};
}

void local_count_wait(struct local_queue *local, struct local_shard *shard, int64_t messages,
		      int64_t bytes)
{
	struct queue *queue = &local->queue;
	queue->messages += (uint64_t)messages;
	queue->bytes += (uint64_t)bytes;
	shard->messages += (uint64_t)messages;
	shard->bytes += (uint64_t)bytes;
	stat_add(STAT_queue_messages, messages);
	stat_add(STAT_queue_bytes, bytes);
}

/* ---- Life ----------------------------------------------------------------------------------- */

struct counting {
	struct local_queue *local;
	struct local_shard *shard;
};

static int count_cell(const struct store_cell *cell, void *owner)
{
	struct counting *counting = owner;
	struct local_shard *shard = counting->shard;
	uint64_t sequence = be64_get((const uint8_t *)cell->column.part[0].data);
	if (shard->first == shard->next)
		shard->first = sequence;
	shard->durable = shard->next = sequence + 1;
	counting->local->queue.added++;
	local_count_wait(counting->local, shard, 1, (int64_t)cell->value.len);
	return 0;
}

static int count_shards(struct local_queue *local, struct errbuf *e)
{
	struct task_queue tasks;
	int err = 0;
	task_queue_init(&tasks);
	for (unsigned s = 0; s < QUEUE_SHARDS && !err; s++) {
		struct local_place place;
		struct counting counting = {local, &local->shards[s]};
		local->shards[s] = (struct local_shard){.first = 1, .durable = 1, .next = 1};
		local_place_of(&local->queue, s, 0, &place);
		err = store_row_wait(local->queue.store, &tasks, clock_wall_ms(local->queue.clock),
				     TABLE_QUEUE, &place.row, count_cell, &counting, e);
	}
	task_queue_release(&tasks);
	return err;
}

static void local_queue_close(struct queue *queue)
{
	struct local_queue *local = local_of(queue);
	ASSERT(local->put_count == 0);
	stat_add(STAT_queue_messages, -(int64_t)queue->messages);
	stat_add(STAT_queue_bytes, -(int64_t)queue->bytes);
	queue_release(queue);
	mem_free(local);
}

static const struct queue_ops local_ops = {
	.put = local_put,
	.fetch = local_fetch,
	.acknowledge = local_acknowledge,
	.park = local_park,
	.finish = local_finish,
	.tick = local_tick,
	.leave = local_leave,
	.close = local_queue_close,
};

int queue_local_open(const struct queue_local_options *o, struct queue **queue, struct errbuf *e)
{
	struct local_queue *local = mem_zalloc(sizeof(*local));
	int err = queue_init(&local->queue, &local_ops, o->name, o->workers, o->store, o->clock, e);
	if (err) {
		mem_free(local);
		return err;
	}
	local->messages_max = o->messages_max ? o->messages_max : 1000000;
	local->bytes_max = o->bytes_max ? o->bytes_max : UINT64_C(1) << 30;
	local->take_messages_max = o->take_messages_max ? o->take_messages_max : 512;
	/* A single message must always have room. */
	local->take_bytes_max =
		STORE_VALUE_MAX_BYTES + (o->take_bytes_max ? o->take_bytes_max : 8 << 20);
	err = count_shards(local, e);
	if (err) {
		local_queue_close(&local->queue);
		return errbuf_prefix(e, err, "queue " SHOWN, SHOWN_OF(o->name));
	}
	*queue = &local->queue;
	return 0;
}
