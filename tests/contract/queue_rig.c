#include "queue_rig.h"

static struct queue *open_queue(struct queue_rig *q)
{
	return q->driver->open(q->driver->context, q->rig.store, &q->limits);
}

void queue_rig_open(struct queue_rig *q, const struct queue_driver *driver,
		    const struct contract_engine *engine, const struct queue_limits *limits)
{
	*q = (struct queue_rig){.driver = driver, .limits = *limits};
	if (!q->limits.workers)
		q->limits.workers = 1;
	driver->clear(driver->context);
	rig_open(&q->rig, engine);
	poll_builder_init(&q->builder);
	buf_init(&q->bytes, POLL_BYTES_MAX);
	arena_init(&q->arena, 1 << 20);
	q->handle = rig_series(&q->rig, "number", "from=queue");
	q->queue = open_queue(q);
}

static void free_workers(struct queue_rig *q)
{
	for (unsigned i = 0; i < RIG_WORKERS_MAX; i++)
		if (q->workers[i].worker)
			queue_rig_free_worker(q, i);
}

void queue_rig_close(struct queue_rig *q)
{
	free_workers(q);
	queue_close(q->queue);
	poll_builder_release(&q->builder);
	buf_release(&q->bytes);
	arena_release(&q->arena);
	rig_close(&q->rig);
}

void queue_rig_reopen(struct queue_rig *q)
{
	free_workers(q);
	queue_close(q->queue);
	rig_reopen(&q->rig);
	q->handle = rig_series(&q->rig, "number", "from=queue");
	q->queue = open_queue(q);
}

struct slice queue_rig_message(struct queue_rig *q, const char *key, uint64_t number)
{
	struct slice part = SLICE("a");
	struct errbuf e;
	int64_t ts_ms = (int64_t)number * 1000;
	ASSERT(!poll_begin(&q->builder, slice_of(key), SLICE("S"), ts_ms, &e));
	ASSERT(!poll_add_column(&q->builder, SLICE("o"), &e));
	ASSERT(!poll_add_row(&q->builder, &part, 1, ts_ms, &e));
	poll_set(&q->builder, 0, 0, value_u64(number));
	buf_clear(&q->bytes);
	ASSERT(!poll_encode(&q->builder, 0, true, &q->bytes, &e));
	return buf_slice(&q->bytes);
}

uint64_t queue_rig_number(const struct queue_message *message)
{
	struct arena arena;
	struct errbuf e;
	struct poll poll;
	struct poll_values values;
	arena_init(&arena, 1 << 20);
	ASSERT(!message->malformed);
	ASSERT(!poll_open(message->bytes, &poll, &e));
	ASSERT(slice_equal(poll.device, message->key));
	ASSERT(!poll_decode_values(&poll, &arena, &values, &e));
	ASSERT(poll.row_count == 1 && poll.column_count == 1);
	ASSERT(values.values[0].type == VALUE_U64);
	uint64_t number = values.values[0].bits;
	ASSERT(poll.ts_ms == (int64_t)number * 1000);
	arena_release(&arena);
	return number;
}

struct put_state {
	bool done;
	int err;
};

static void put_done(struct queue_put *put, int err)
{
	*(struct put_state *)put->owner = (struct put_state){true, err};
}

int queue_rig_put_bytes(struct queue_rig *q, const char *key, struct slice bytes)
{
	struct put_state state = {false, 0};
	struct queue_put put = {
		.key = slice_of(key),
		.bytes = bytes,
		.executor = &q->rig.queue.executor,
		.done = put_done,
		.owner = &state,
	};
	int err = queue_put(q->queue, &put);
	while (!err && !state.done)
		task_queue_wait(&q->rig.queue);
	return err ? err : state.err;
}

int queue_rig_put(struct queue_rig *q, const char *key, uint64_t number)
{
	return queue_rig_put_bytes(q, key, queue_rig_message(q, key, number));
}

int queue_rig_retry(struct queue_rig *q, struct queue_rig_retry *retry)
{
	return queue_retry(q->queue, &q->rig.queue, &retry->result, &retry->error);
}

static void run_retry(struct task_queue *tasks, void *owner)
{
	struct queue_rig_retry *retry = owner;
	retry->err = queue_retry(retry->queue, tasks, &retry->result, &retry->error);
}

void queue_rig_retry_begin(struct queue_rig *q, struct queue_rig_retry *retry)
{
	retry->queue = q->queue;
	stepped_start(&retry->work, run_retry, retry);
	stepped_step(&retry->work);
}

void queue_rig_retry_step(struct queue_rig_retry *retry)
{
	struct task_queue *tasks = &retry->work.queue;
	pthread_mutex_lock(&tasks->lock);
	while (!tasks->first)
		pthread_cond_wait(&tasks->arrived, &tasks->lock);
	pthread_mutex_unlock(&tasks->lock);
	stepped_step(&retry->work);
}

int queue_rig_retry_wait(struct queue_rig_retry *retry)
{
	while (!stepped_over(&retry->work))
		queue_rig_retry_step(retry);
	stepped_release(&retry->work);
	return retry->err;
}

static void taken(struct queue_worker *worker, struct queue_batch *batch, int err)
{
	struct rig_worker *w = queue_worker_owner(worker);
	ASSERT(!w->taken && !w->batch);
	w->taken = true;
	w->batch = batch;
	w->err = err;
}

struct queue_worker *queue_rig_worker(struct queue_rig *q, unsigned index)
{
	struct rig_worker *w = &q->workers[index];
	struct queue_worker *before = w->worker;
	if (!before)
		task_queue_init(&w->tasks);
	w->worker = queue_worker_new(q->queue, &(struct queue_worker_options){
						       .index = index,
						       .executor = &w->tasks.executor,
						       .received = taken,
						       .owner = w,
					       });
	return before;
}

void queue_rig_free_worker(struct queue_rig *q, unsigned index)
{
	struct rig_worker *w = &q->workers[index];
	if (w->batch)
		queue_rig_fail(q, index);
	queue_worker_free(w->worker);
	w->worker = NULL;
	task_queue_release(&w->tasks);
}

void queue_rig_ask(struct queue_rig *q, unsigned index)
{
	q->workers[index].taken = false;
	queue_receive(q->workers[index].worker);
}

int queue_rig_wait(struct queue_rig *q, unsigned index)
{
	struct rig_worker *w = &q->workers[index];
	while (!w->taken)
		task_queue_wait(&w->tasks);
	return w->err;
}

struct write_state {
	bool done;
	int err;
};

static void write_done(struct store_write *write, int err)
{
	*(struct write_state *)write->owner = (struct write_state){true, err};
}

struct store_write *queue_rig_write_of(struct queue_rig *q, struct queue_batch *batch)
{
	struct store_write *write = rig_write_new(&q->rig);
	for (size_t i = 0; i < batch->count; i++) {
		struct value value = value_u64(queue_rig_number(&batch->messages[i]));
		assert_int_equal(store_append(write, &RAW, T0 + (int64_t)value.bits * 1000,
					      &q->handle, 1, &value),
				 0);
	}
	assert_int_equal(queue_acknowledge(batch, write), 0);
	write->done = write_done;
	write->owner = mem_zalloc(sizeof(struct write_state));
	return write;
}

int queue_rig_write_wait(struct queue_rig *q, struct store_write *write)
{
	struct write_state *state = write->owner;
	while (!state->done)
		task_queue_wait(&q->rig.queue);
	int err = state->err;
	mem_free(state);
	store_write_free(write);
	return err;
}

int queue_rig_store(struct queue_rig *q, unsigned index)
{
	struct rig_worker *w = &q->workers[index];
	struct store_write *write = queue_rig_write_of(q, w->batch);
	int err = queue_submit(w->batch, write);
	if (err)
		write_done(write, err);
	err = queue_rig_write_wait(q, write);
	queue_finish(w->batch, !err);
	w->batch = NULL;
	return err;
}

void queue_rig_fail(struct queue_rig *q, unsigned index)
{
	queue_finish(q->workers[index].batch, false);
	q->workers[index].batch = NULL;
}

void queue_rig_drain(struct queue_rig *q, unsigned index, size_t count, uint64_t *numbers)
{
	for (size_t got = 0; got < count;) {
		queue_rig_ask(q, index);
		assert_int_equal(queue_rig_wait(q, index), 0);
		struct queue_batch *batch = q->workers[index].batch;
		assert_in_range(batch->count, 1, count - got);
		for (size_t i = 0; i < batch->count; i++)
			numbers[got++] = queue_rig_number(&batch->messages[i]);
		assert_int_equal(queue_rig_store(q, index), 0);
	}
}

struct queue_stats queue_rig_stats(struct queue_rig *q)
{
	struct queue_stats stats;
	queue_stats(q->queue, &stats);
	return stats;
}

size_t queue_rig_samples(struct queue_rig *q)
{
	struct points points;
	const struct store_range range = {
		.table = TABLE_DATA_RAW,
		.handles = &q->handle,
		.handle_count = 1,
		.start_ms = STORE_TS_MIN,
		.end_ms = STORE_TS_MAX,
	};
	assert_int_equal(rig_range(&q->rig, &range, 0, &points), 0);
	return points.count;
}
