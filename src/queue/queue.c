/* The part that all drivers share: workers and who may still submit, messages that lie aside,
 * counts. */
#include "queue/queue.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"

unsigned queue_shard(struct slice key)
{
	return (unsigned)(hash64(key.data, key.len, 0) % QUEUE_SHARDS);
}

/* ---- Putting -------------------------------------------------------------------------------- */

int queue_put(struct queue *queue, struct queue_put *put)
{
	ASSERT(put->executor && put->done);
	if (put->key.len > QUEUE_KEY_MAX_BYTES || put->bytes.len > QUEUE_MESSAGE_MAX_BYTES)
		return ERR_LIMIT;
	put->shard = queue_shard(put->key);
	int err = queue->ops->put(queue, put);
	if (err) {
		pthread_mutex_lock(&queue->lock);
		queue->refused++;
		pthread_mutex_unlock(&queue->lock);
		stat_add(STAT_queue_refused, 1);
	}
	return err;
}

static void queue_offer_locked(struct queue *queue)
{
	for (unsigned i = 0; i < queue->worker_count; i++)
		queue_wake(queue, i);
}

void queue_offer(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue_offer_locked(queue);
	pthread_mutex_unlock(&queue->lock);
}

void queue_tick(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	if (queue->ops->tick)
		queue->ops->tick(queue);
	queue_offer_locked(queue);
	pthread_mutex_unlock(&queue->lock);
}

/* ---- Workers -------------------------------------------------------------------------------- */

void *queue_worker_owner(const struct queue_worker *worker)
{
	return worker->options.owner;
}

static bool queue_ended(const struct queue_worker *worker)
{
	return worker->stale || worker->cancelled;
}

static void queue_deliver(struct task *task)
{
	struct queue_worker *worker = CONTAINER_OF(task, struct queue_worker, task);
	struct queue *queue = worker->queue;
	pthread_mutex_lock(&queue->lock);
	struct queue_batch *batch = worker->fetched;
	int err = worker->err;
	worker->fetched = NULL;
	if (queue_ended(worker)) {
		if (batch)
			queue->ops->finish(batch, false);
		batch = NULL;
		err = ERR_CANCELLED;
	}
	worker->state = batch ? WORKER_HAS : WORKER_IDLE;
	pthread_mutex_unlock(&queue->lock);
	worker->options.received(worker, batch, err);
}

static void queue_post_batch(struct queue_worker *worker, struct queue_batch *batch, int err)
{
	worker->state = WORKER_FETCHES;
	worker->fetched = batch;
	worker->err = err;
	worker->task.run = queue_deliver;
	worker->options.executor->post(worker->options.executor, &worker->task);
}

static void fetch_or_wait(struct queue_worker *worker)
{
	worker->state = WORKER_FETCHES;
	if (!worker->queue->ops->fetch(worker))
		worker->state = WORKER_WAITS;
}

/* A worker that waits has no task under way, so one may be posted to end its wait. */
static void end_wait(struct queue_worker *worker)
{
	if (worker->state == WORKER_WAITS)
		queue_post_batch(worker, NULL, ERR_CANCELLED);
}

struct queue_worker *queue_worker_new(struct queue *queue,
				      const struct queue_worker_options *options)
{
	ASSERT(options->index < queue->worker_count && options->executor && options->received);
	struct queue_worker *worker = mem_zalloc(sizeof(*worker));
	worker->queue = queue;
	worker->options = *options;
	pthread_mutex_lock(&queue->lock);
	struct queue_worker *before = queue->workers[options->index];
	queue->workers[options->index] = worker;
	if (before) {
		before->stale = true;
		end_wait(before);
	}
	pthread_mutex_unlock(&queue->lock);
	return worker;
}

static void queue_leave(const struct queue_worker *worker)
{
	struct queue *queue = worker->queue;
	if (queue->ops->leave && !queue_takes(queue, worker->options.index))
		queue->ops->leave(queue, worker->options.index);
}

void queue_worker_cancel(struct queue_worker *worker)
{
	pthread_mutex_lock(&worker->queue->lock);
	worker->cancelled = true;
	end_wait(worker);
	queue_leave(worker);
	pthread_mutex_unlock(&worker->queue->lock);
}

void queue_worker_free(struct queue_worker *worker)
{
	if (!worker)
		return;
	struct queue *queue = worker->queue;
	pthread_mutex_lock(&queue->lock);
	ASSERT(worker->state == WORKER_IDLE);
	if (queue->workers[worker->options.index] == worker)
		queue->workers[worker->options.index] = NULL;
	queue_leave(worker);
	pthread_mutex_unlock(&queue->lock);
	mem_free(worker);
}

void queue_receive(struct queue_worker *worker)
{
	pthread_mutex_lock(&worker->queue->lock);
	ASSERT(worker->state == WORKER_IDLE);
	if (queue_ended(worker))
		queue_post_batch(worker, NULL, ERR_CANCELLED);
	else
		fetch_or_wait(worker);
	pthread_mutex_unlock(&worker->queue->lock);
}

void queue_wake(struct queue *queue, unsigned shard)
{
	struct queue_worker *worker = queue_worker_of(queue, shard);
	if (worker && worker->state == WORKER_WAITS)
		fetch_or_wait(worker);
}

void queue_fetched(struct queue_worker *worker, struct queue_batch *batch, int err)
{
	ASSERT(worker->state == WORKER_FETCHES);
	if (batch || err || queue_ended(worker))
		queue_post_batch(worker, batch, err);
	else
		fetch_or_wait(worker);
}

/* ---- Batches -------------------------------------------------------------------------------- */

int queue_acknowledge(struct queue_batch *batch, struct store_write *write)
{
	return batch->worker->queue->ops->acknowledge(batch, write);
}

int queue_put_aside(struct queue_batch *batch, const struct queue_message *message,
		    const char *reason, struct store_write *write)
{
	struct queue *queue = batch->worker->queue;
	const struct queue_aside_message aside = {
		.at_ms = clock_wall_ms(queue->clock),
		.key = message->key,
		.reason = slice_of(reason),
		.bytes = message->bytes,
		.whole_bytes = message->bytes.len,
	};
	pthread_mutex_lock(&queue->lock);
	ASSERT(batch->worker->state == WORKER_HAS);
	int err = batch->worker->stale ? ERR_CANCELLED
				       : queue_aside_add(&queue->aside, &aside, write);
	pthread_mutex_unlock(&queue->lock);
	if (!err)
		stat_add(STAT_queue_aside, 1);
	return err;
}

static void tell_parked(const struct queue *queue, const char *reason, int err)
{
	if (err == ERR_FULL)
		log_error("queue %s: as many polls are parked as may be; new ones (%s) are set "
			  "aside, and the oldest of these are deleted when there are too many; "
			  "correct the configuration and start again",
			  queue->name, reason);
	else
		log_error("queue %s: polls are parked: %s; they stay until a start with a "
			  "configuration that fits them",
			  queue->name, reason);
}

int queue_park(struct queue_batch *batch, const struct queue_message *message, const char *reason)
{
	struct queue *queue = batch->worker->queue;
	bool news = false;
	if (!queue->ops->park)
		return ERR_INVALID;
	pthread_mutex_lock(&queue->lock);
	ASSERT(batch->worker->state == WORKER_HAS);
	int err = batch->worker->stale ? ERR_CANCELLED : queue->ops->park(batch, message);
	if (!err)
		news = queue_parked_is_news(&queue->parked, reason);
	else if (err == ERR_FULL)
		news = queue_parked_refused(&queue->parked, clock_mono_ms(queue->clock));
	pthread_mutex_unlock(&queue->lock);
	if (news)
		tell_parked(queue, reason, err);
	return err;
}

/* Under the lock, so that either this write is on its way before another worker reads, or it never
 * will be. */
int queue_submit(struct queue_batch *batch, struct store_write *write)
{
	struct queue *queue = batch->worker->queue;
	pthread_mutex_lock(&queue->lock);
	ASSERT(batch->worker->state == WORKER_HAS);
	int err = batch->worker->stale ? ERR_CANCELLED : store_write_submit(write);
	pthread_mutex_unlock(&queue->lock);
	return err;
}

void queue_finish(struct queue_batch *batch, bool stored)
{
	struct queue_worker *worker = batch->worker;
	struct queue *queue = worker->queue;
	size_t count = batch->count;
	pthread_mutex_lock(&queue->lock);
	ASSERT(worker->state == WORKER_HAS);
	if (!stored) {
		queue->redelivered += count;
		stat_add(STAT_queue_redelivered, (int64_t)count);
	}
	queue->ops->finish(batch, stored);
	worker->state = WORKER_IDLE;
	pthread_mutex_unlock(&queue->lock);
}

/* ---- Looking -------------------------------------------------------------------------------- */

struct slice queue_name(const struct queue *queue)
{
	return slice_of(queue->name);
}

void queue_stats(struct queue *queue, struct queue_stats *stats)
{
	pthread_mutex_lock(&queue->lock);
	*stats = (struct queue_stats){
		.added = queue->added,
		.done = queue->done,
		.pending = queue->messages,
		.pending_bytes = queue->bytes,
		.refused = queue->refused,
		.redelivered = queue->redelivered,
		.aside = queue->aside.count,
		.aside_dropped = queue->aside.dropped,
		.parked = queue->parked.messages,
		.parked_bytes = queue->parked.bytes,
		.unparked = queue->parked.refused,
	};
	if (queue->ops->stats)
		queue->ops->stats(queue, stats);
	pthread_mutex_unlock(&queue->lock);
}

/* A counter that fell was begun again (memcached was started again): all of it is new. */
static uint64_t grown(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

struct queue_line queue_line(const struct queue_stats *before, const struct queue_stats *now)
{
	struct queue_line line = {
		.pending = now->pending,
		.new = grown(before->added, now->added),
		.done = grown(before->done, now->done),
		.max = now->added,
	};
	line.delta = (int64_t)(line.new - line.done);
	return line;
}

/* ---- Life ----------------------------------------------------------------------------------- */

int queue_init(struct queue *queue, const struct queue_ops *ops, struct slice name,
	       unsigned worker_count, struct store *store, struct clock *clock, struct errbuf *e)
{
	if (name.len < 1 || name.len > QUEUE_NAME_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "a queue's name has 1 to %d bytes",
				  QUEUE_NAME_MAX_BYTES);
	if (worker_count < 1 || worker_count > QUEUE_WORKERS_MAX)
		return errbuf_set(e, ERR_INVALID, "queue " SHOWN " has 1 to %d workers",
				  SHOWN_OF(name), QUEUE_WORKERS_MAX);
	*queue = (struct queue){
		.ops = ops,
		.store = store,
		.clock = clock,
		.worker_count = worker_count,
	};
	memcpy(queue->name, name.data, name.len);
	int err = queue_aside_open(&queue->aside, queue_name(queue), store, clock, e);
	if (err)
		return errbuf_prefix(e, err, "queue %s", queue->name);
	queue_parked_init(&queue->parked);
	pthread_mutex_init(&queue->lock, NULL);
	return 0;
}

void queue_release(struct queue *queue)
{
	for (unsigned i = 0; i < queue->worker_count; i++)
		ASSERT(!queue->workers[i]);
	queue_parked_release(&queue->parked);
	pthread_mutex_destroy(&queue->lock);
}

void queue_close(struct queue *queue)
{
	if (queue)
		queue->ops->close(queue);
}
