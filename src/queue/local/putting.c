/* Puts: written at once, or held until a worker has stored them or they have waited too long. */
#include "queue/local/private.h"

enum {
	WRITE_ROOM_BYTES = 8192, /* of a write, beside each message */
	/* What may be held; one write has room for all of it. */
	HELD_MESSAGES_MAX = 4096,
	HELD_BYTES_MAX = 16 << 20,
	REFERENCES_OF_NO_BATCH = 2,
};

_Static_assert(HELD_MESSAGES_MAX *WRITE_ROOM_BYTES + HELD_BYTES_MAX <= STORE_BATCH_MAX_BYTES,
	       "what is held fits into a write");

/* ---- Ends ------------------------------------------------------------------------------------ */

void local_pending_release(struct local_pending *pending)
{
	if (--pending->references)
		return;
	mem_free((char *)pending->value.data);
	mem_free(pending);
}

/* On its executor. Behind the last of these the queue may be closed. */
static void local_put_end(struct local_pending *pending)
{
	struct local_queue *local = pending->local;
	struct queue_put *put = pending->put;
	int err = pending->err;
	pthread_mutex_lock(&local->queue.lock);
	local->put_count--;
	local_pending_release(pending);
	pthread_mutex_unlock(&local->queue.lock);
	put->done(put, err);
}

static void local_put_span_over(struct task *task)
{
	struct local_pending *pending = CONTAINER_OF(task, struct local_pending, over);
	local_put_end(pending);
}

static void post_over(struct local_pending *pending, int err)
{
	struct executor *executor = pending->put->executor;
	pending->err = err;
	pending->over.run = local_put_span_over;
	executor->post(executor, &pending->over);
}

static void local_put_hold(struct local_pending *pending)
{
	pending->state = PENDING_HELD;
	pending->local->held_messages++;
	pending->local->held_bytes += pending->value.len;
}

static void hold_no_more(struct local_pending *pending)
{
	pending->local->held_messages--;
	pending->local->held_bytes -= pending->value.len;
}

/* All that are settled from the front on move `durable`. */
static void local_put_settle(struct local_pending *pending)
{
	struct local_shard *shard = &pending->local->shards[pending->shard];
	pending->state = PENDING_SETTLED;
	while (shard->puts && shard->puts->state == PENDING_SETTLED) {
		struct local_pending *first = shard->puts;
		shard->durable = first->sequence + 1;
		shard->puts = first->next;
		local_pending_release(first);
	}
	if (!shard->puts)
		shard->last_put = NULL;
}

void local_pending_acknowledge(struct local_pending *pending)
{
	if (pending->state != PENDING_HELD)
		return; /* its write ends it */
	hold_no_more(pending);
	post_over(pending, 0);
	local_put_settle(pending);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void count_added(struct queue *queue)
{
	queue->added++;
	stat_add(STAT_queue_added, 1);
}

static void local_put_count_lost(struct local_pending *pending)
{
	struct local_shard *shard = &pending->local->shards[pending->shard];
	local_count_wait(pending->local, shard, -1, -(int64_t)pending->value.len);
}

/* The write of a held message has failed: a worker will receive it, or has it. */
static bool can_be_held_on(const struct local_pending *pending)
{
	return pending->put->held && (queue_takes(&pending->local->queue, pending->shard) ||
				      pending->references > REFERENCES_OF_NO_BATCH);
}

/* Whether its put is over. */
static bool local_put_end_write(struct local_pending *pending, int err)
{
	if (pending->sequence < pending->local->shards[pending->shard].first) {
		err = 0;
	} else if (err && can_be_held_on(pending)) {
		local_put_hold(pending);
		return false;
	} else if (err) {
		local_put_count_lost(pending);
	} else if (!pending->put->held) {
		count_added(&pending->local->queue);
	}
	pending->err = err;
	local_put_settle(pending);
	return true;
}

/* With the lock held. Those of a write whose puts are over. */
static struct local_pending *end_writes(struct local_pending *first, int err)
{
	struct local_pending *over = NULL, **end = &over;
	for (struct local_pending *p = first, *next; p; p = next) {
		next = p->next_written;
		if (!local_put_end_write(p, err))
			continue;
		*end = p;
		end = &p->next_written;
	}
	*end = NULL;
	for (struct local_pending *p = over; p; p = p->next_written)
		queue_wake(&p->local->queue, p->shard);
	return over;
}

static void local_put_written(struct store_write *write, int err)
{
	struct local_pending *first = write->owner, *next;
	struct queue *queue = &first->local->queue;
	store_write_free(write);
	pthread_mutex_lock(&queue->lock);
	first = end_writes(first, err);
	pthread_mutex_unlock(&queue->lock);
	for (; first; first = next) {
		next = first->next_written;
		local_put_end(first);
	}
}

int local_pending_add(const struct local_pending *pending, struct store_write *write)
{
	struct local_place place;
	local_place_of(&pending->local->queue, pending->shard, pending->sequence, &place);
	return store_log_put(write, TABLE_QUEUE, &place.row, &place.at, pending->value);
}

/* The store has a copy; what was held may come back to it. */
static void set_out(struct local_pending *pending)
{
	pending->state = PENDING_ON_ITS_WAY;
	if (pending->put->held)
		return;
	mem_free((char *)pending->value.data);
	pending->value.data = NULL;
}

/* One write of these, all with the executor of the first. */
static int local_put_submit(struct local_pending *first, size_t bytes)
{
	struct store_write *write = store_write_new(first->local->queue.store, bytes);
	write->executor = first->put->executor;
	write->done = local_put_written;
	write->owner = first;
	int err = 0;
	for (struct local_pending *p = first; p && !err; p = p->next_written)
		err = local_pending_add(p, write);
	if (!err)
		err = store_write_submit(write);
	if (err) {
		store_write_free(write);
		return err;
	}
	for (struct local_pending *p = first; p; p = p->next_written)
		set_out(p);
	return 0;
}

/* ---- Held ------------------------------------------------------------------------------------ */

/* A message of a batch that is about to be stored needs no writing. */
static bool local_put_is_due(const struct local_pending *pending, int64_t until_ms,
			     const struct local_pending *first)
{
	return pending->state == PENDING_HELD && !pending->leaving && pending->put_ms <= until_ms &&
	       (!first || first->put->executor == pending->put->executor);
}

/* Messages of a worker's shards that have been held since then; those that are completed on one
 * executor. */
static struct local_pending *find_due(struct local_queue *local, unsigned worker, int64_t until_ms,
				      size_t *bytes)
{
	struct local_pending *first = NULL, **end = &first;
	*bytes = 0;
	for (unsigned s = worker; s < QUEUE_SHARDS; s += local->queue.worker_count) {
		for (struct local_pending *p = local->shards[s].puts; p; p = p->next) {
			if (!local_put_is_due(p, until_ms, first))
				continue;
			*end = p;
			end = &p->next_written;
			*bytes += p->value.len + WRITE_ROOM_BYTES;
		}
	}
	*end = NULL;
	return first;
}

static void local_put_lose(struct local_pending *first, int err)
{
	for (struct local_pending *p = first; p; p = p->next_written) {
		hold_no_more(p);
		local_put_count_lost(p);
		post_over(p, err);
		local_put_settle(p);
	}
}

/* A message that the store does not accept stays in memory while a worker may receive it. */
static void write_held(struct local_queue *local, unsigned worker, int64_t until_ms)
{
	struct local_pending *due;
	size_t bytes;
	int err = 0;
	while (!err && (due = find_due(local, worker, until_ms, &bytes))) {
		err = local_put_submit(due, bytes);
		for (struct local_pending *p = due; p && !err; p = p->next_written)
			hold_no_more(p);
		if (err && !queue_takes(&local->queue, worker)) {
			local_put_lose(due, err);
			err = 0;
		}
	}
}

void local_tick(struct queue *queue)
{
	int64_t now_ms = clock_mono_ms(queue->clock);
	for (unsigned w = 0; w < queue->worker_count; w++)
		write_held(local_of(queue), w, now_ms - QUEUE_HELD_MS);
}

void local_leave(struct queue *queue, unsigned worker)
{
	write_held(local_of(queue), worker, INT64_MAX);
}

/* ---- Putting --------------------------------------------------------------------------------- */

static struct slice make_value(const struct queue_put *put, int64_t now_ms)
{
	size_t len = LOCAL_HEADER_BYTES;
	char *to = mem_alloc(len + put->key.len + put->bytes.len);
	memcpy(to, &now_ms, sizeof(now_ms));
	to[8] = (char)(uint8_t)put->key.len;
	memcpy(to + len, put->key.data, put->key.len);
	len += put->key.len;
	if (put->bytes.len)
		memcpy(to + len, put->bytes.data, put->bytes.len);
	return (struct slice){to, len + put->bytes.len};
}

static bool may_be_held(const struct local_queue *local, const struct local_pending *pending)
{
	return pending->put->held && queue_takes(&local->queue, pending->shard) &&
	       local->held_messages < HELD_MESSAGES_MAX &&
	       local->held_bytes + pending->value.len <= HELD_BYTES_MAX;
}

static void local_put_append(struct local_shard *shard, struct local_pending *pending)
{
	if (shard->last_put)
		shard->last_put->next = pending;
	else
		shard->puts = pending;
	shard->last_put = pending;
}

/* With the lock held: the number is given and the message is held or on its way, or neither. */
static int local_put_accept(struct local_queue *local, struct local_pending *pending)
{
	struct queue *queue = &local->queue;
	struct local_shard *shard = &local->shards[pending->shard];
	size_t size = pending->value.len;
	if (queue->messages >= local->messages_max || queue->bytes + size > local->bytes_max)
		return ERR_FULL;
	pending->sequence = shard->next;
	bool held = may_be_held(local, pending);
	int err = held ? 0 : local_put_submit(pending, size + WRITE_ROOM_BYTES);
	if (err)
		return err;
	if (held)
		local_put_hold(pending);
	if (pending->put->held)
		count_added(queue);
	shard->next++;
	local_put_append(shard, pending);
	local->put_count++;
	local_count_wait(local, shard, 1, (int64_t)size);
	return 0;
}

int local_put(struct queue *queue, struct queue_put *put)
{
	struct local_queue *local = local_of(queue);
	struct local_pending *pending = mem_zalloc(sizeof(*pending));
	*pending = (struct local_pending){
		.local = local,
		.put = put,
		.shard = put->shard,
		.value = make_value(put, clock_wall_ms(queue->clock)),
		.put_ms = clock_mono_ms(queue->clock),
		.references = REFERENCES_OF_NO_BATCH,
	};
	pthread_mutex_lock(&queue->lock);
	int err = local_put_accept(local, pending);
	pthread_mutex_unlock(&queue->lock);
	if (err) {
		pending->references = 1;
		local_pending_release(pending);
	}
	return err;
}
