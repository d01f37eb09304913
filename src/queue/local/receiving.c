/* Batches: of what is stored, read for each; of what is held, that which is there. */
#include "base/cursor.h"
#include "queue/local/private.h"

enum { READ_ROOM_BYTES = 256 << 10 };

/* The part of a read for one shard. */
struct local_receive_asked {
	struct store_request *request;
	unsigned shard;
	uint64_t durable; /* when it was asked */
};

struct local_receive_batch {
	struct queue_batch batch;
	struct store_read *read; /* its arena has the messages; NULL: nothing is asked */
	struct queue_message *messages;
	struct local_pending **held; /* the first held_count of the messages; NULL: none are */
	size_t held_count;
	bool acknowledged; /* these are */
	bool *parked;      /* of each message, whether it is to be; NULL: none is */
	uint64_t parked_count, parked_bytes;
	size_t asked_count;
	struct local_receive_asked asked[QUEUE_SHARDS];
};

static size_t local_receive_bytes(const struct queue_message *message)
{
	if (message->malformed)
		return message->bytes.len;
	return LOCAL_HEADER_BYTES + message->key.len + message->bytes.len;
}

/* ---- Receiving ------------------------------------------------------------------------------ */

static bool has_stored(const struct local_shard *shard)
{
	return shard->first < shard->durable;
}

/* All that is held comes after what is stored, so that is taken first. */
static bool has_held(const struct local_shard *shard)
{
	return !has_stored(shard) && shard->puts && shard->puts->state == PENDING_HELD;
}

static unsigned count_shards_with_some(const struct local_queue *local,
				       const struct queue_worker *worker)
{
	unsigned count = 0;
	for (unsigned s = worker->options.index; s < QUEUE_SHARDS; s += local->queue.worker_count)
		count += has_stored(&local->shards[s]) || has_held(&local->shards[s]);
	return count;
}

static void local_receive_held(struct local_receive_batch *batch, const struct local_shard *shard,
			       size_t limit)
{
	size_t end = batch->held_count + limit;
	if (!batch->held)
		batch->held = mem_alloc_array(shard->puts->local->held_messages,
					      sizeof(struct local_pending *));
	for (struct local_pending *p = shard->puts;
	     p && p->state == PENDING_HELD && batch->held_count < end; p = p->next) {
		batch->held[batch->held_count++] = p;
		p->references++;
	}
}

static void local_receive_read_done(struct store_read *read, int err);

static void local_receive_begin_read(struct local_queue *local, struct local_receive_batch *batch)
{
	batch->read = store_read_new(local->queue.store, local->take_bytes_max + READ_ROOM_BYTES);
	batch->read->executor = batch->batch.worker->options.executor;
	batch->read->done = local_receive_read_done;
	batch->read->owner = batch;
	batch->read->now_ms = clock_wall_ms(local->queue.clock);
}

/* Messages from `first` up to what is durable now. False: no room for the request. */
static bool local_receive_ask(struct local_queue *local, struct local_receive_batch *batch,
			      unsigned shard, size_t limit)
{
	if (!batch->read)
		local_receive_begin_read(local, batch);
	struct local_receive_asked *asked = &batch->asked[batch->asked_count];
	struct local_place *from = arena_alloc(&batch->read->arena, 2 * sizeof(*from)),
			   *to = from + 1;
	struct store_request *request = from ? store_read_add(batch->read, STORE_CELL_SCAN) : NULL;
	if (!request)
		return false;
	*asked = (struct local_receive_asked){request, shard, local->shards[shard].durable};
	local_place_of(&local->queue, shard, local->shards[shard].first, from);
	local_place_of(&local->queue, shard, asked->durable, to);
	request->cell_scan = (struct store_cell_scan){
		.table = TABLE_QUEUE,
		.key = from->row,
		.from = from->at,
		.to = to->at,
		.limit = limit,
	};
	batch->asked_count++;
	return true;
}

/* With the lock held. */
static void free_batch(struct local_receive_batch *batch)
{
	if (batch->read)
		store_read_free(batch->read);
	for (size_t i = 0; i < batch->held_count; i++) {
		batch->held[i]->leaving -= batch->acknowledged;
		local_pending_release(batch->held[i]);
	}
	mem_free(batch->held);
	mem_free(batch->messages);
	mem_free(batch->parked);
	mem_free(batch);
}

static bool make_message(struct slice value, unsigned shard, uint64_t sequence,
			 struct queue_message *message)
{
	struct cursor c = cursor_of(value.data, value.len);
	*message = (struct queue_message){.shard = shard, .sequence = sequence};
	message->put_ms = (int64_t)cursor_u64(&c);
	message->key.len = cursor_u8(&c);
	message->key.data = (const char *)cursor_take(&c, message->key.len);
	message->bytes = (struct slice){(const char *)c.at, cursor_left(&c)};
	if (!c.bad)
		return true;
	message->key = SLICE("");
	message->bytes = value;
	message->malformed = "it is not as the queue wrote it";
	return false;
}

/* A worker that was replaced may have had a write on its way, and never say that it was stored:
 * what that one took is counted when its shard has been emptied. */
static void square(struct local_queue *local, struct local_shard *shard)
{
	if (shard->puts || !shard->messages || shard->first != shard->next)
		return;
	local->queue.done += shard->messages;
	stat_add(STAT_queue_done, (int64_t)shard->messages);
	local_count_wait(local, shard, -(int64_t)shard->messages, -(int64_t)shard->bytes);
}

/* Messages that were asked for and are not there will not come any more: a put that failed leaves a
 * hole, and so does a worker that was replaced. */
static void pass_over(struct local_queue *local, struct local_shard *shard, uint64_t durable)
{
	if (shard->first < durable)
		shard->first = durable;
	square(local, shard);
}

static void collect_one(struct local_queue *local, struct local_receive_batch *batch,
			const struct local_receive_asked *asked)
{
	const struct store_cell_scan *scan = &asked->request->cell_scan;
	if (asked->request->err)
		return;
	if (scan->count == 0 && !asked->request->more)
		pass_over(local, &local->shards[asked->shard], asked->durable);
	for (size_t i = 0; i < scan->count; i++) {
		const struct store_cell *cell = &scan->cells[i];
		uint64_t sequence = be64_get((const uint8_t *)cell->column.part[0].data);
		bool whole = make_message(cell->value, asked->shard, sequence,
					  &batch->messages[batch->batch.count++]);
		if (!whole)
			stat_add(STAT_queue_malformed, 1);
	}
}

static void collect_held(struct local_receive_batch *batch)
{
	for (size_t i = 0; i < batch->held_count; i++) {
		const struct local_pending *held = batch->held[i];
		bool whole = make_message(held->value, held->shard, held->sequence,
					  &batch->messages[batch->batch.count++]);
		ASSERT(whole);
	}
}

/* Whether the read is complete, and how many messages it has. A shard for which it had no room is
 * read another time. */
static int local_receive_check(const struct local_receive_batch *batch, int err, size_t *count)
{
	*count = 0;
	for (size_t i = 0; i < batch->asked_count; i++) {
		const struct store_request *request = batch->asked[i].request;
		if (request->err && request->err != ERR_LIMIT)
			err = request->err;
		else if (!request->err)
			*count += request->cell_scan.count;
	}
	return err == ERR_LIMIT && *count ? 0 : err;
}

/* With an error there is what was held, or nothing. */
static int local_receive_collect(struct local_queue *local, struct local_receive_batch *batch,
				 int err)
{
	size_t count;
	err = local_receive_check(batch, err, &count);
	if (err && !batch->held_count)
		return err;
	batch->messages = mem_alloc_array(batch->held_count + count + 1, sizeof(*batch->messages));
	collect_held(batch);
	for (size_t i = 0; i < batch->asked_count && !err; i++)
		collect_one(local, batch, &batch->asked[i]);
	batch->batch.messages = batch->messages;
	return 0;
}

/* With the lock held. */
static void fetched(struct local_receive_batch *batch, int err)
{
	struct queue_worker *worker = batch->batch.worker;
	err = local_receive_collect(local_of(worker->queue), batch, err);
	bool empty = err || batch->batch.count == 0;
	queue_fetched(worker, empty ? NULL : &batch->batch, err);
	if (empty)
		free_batch(batch);
}

static void local_receive_read_done(struct store_read *read, int err)
{
	struct local_receive_batch *batch = read->owner;
	struct queue *queue = batch->batch.worker->queue;
	pthread_mutex_lock(&queue->lock);
	fetched(batch, err);
	pthread_mutex_unlock(&queue->lock);
}

/* Asks the shards in turn, so that one which is never empty does not keep the others waiting: each
 * has its part of the batch, and a part that is not used is not given to another shard. */
static void ask_shards(struct local_queue *local, struct local_receive_batch *batch, unsigned index,
		       size_t limit)
{
	bool room = true;
	for (unsigned s = index; s < QUEUE_SHARDS; s += local->queue.worker_count) {
		if (has_held(&local->shards[s]))
			local_receive_held(batch, &local->shards[s], limit);
		else if (room && has_stored(&local->shards[s]))
			room = local_receive_ask(local, batch, s, limit);
	}
}

bool local_fetch(struct queue_worker *worker)
{
	struct local_queue *local = local_of(worker->queue);
	unsigned count = count_shards_with_some(local, worker);
	if (!count)
		return false;
	struct local_receive_batch *batch = mem_zalloc(sizeof(*batch));
	batch->batch.worker = worker;
	ask_shards(local, batch, worker->options.index, local->take_messages_max / count + 1);
	int err = batch->asked_count  ? store_read_submit(batch->read)
		  : batch->held_count ? 0
				      : ERR_LIMIT;
	if (err || !batch->asked_count)
		fetched(batch, err);
	return true;
}

/* ---- Acknowledging -------------------------------------------------------------------------- */

static struct local_receive_batch *batch_of(struct queue_batch *batch)
{
	return CONTAINER_OF(batch, struct local_receive_batch, batch);
}

static bool is_parked(const struct local_receive_batch *batch, size_t i)
{
	return batch->parked && batch->parked[i];
}

int local_park(struct queue_batch *queue_batch, const struct queue_message *message)
{
	struct local_receive_batch *batch = batch_of(queue_batch);
	const struct local_queue *local = local_of(queue_batch->worker->queue);
	const struct queue_parked *parked = &local->queue.parked;
	size_t i = (size_t)(message - batch->messages);
	ASSERT(i < batch->batch.count && !is_parked(batch, i));
	if (parked->messages + batch->parked_count >= local->messages_max ||
	    parked->bytes + batch->parked_bytes + local_receive_bytes(message) > local->bytes_max)
		return ERR_FULL;
	if (!batch->parked)
		batch->parked = mem_zalloc(batch->batch.count * sizeof(*batch->parked));
	batch->parked[i] = true;
	batch->parked_count++;
	batch->parked_bytes += local_receive_bytes(message);
	return 0;
}

static bool is_held(const struct local_receive_batch *batch, size_t i)
{
	return i < batch->held_count && batch->held[i]->state == PENDING_HELD;
}

/* The messages of one shard from `from` on, up to one that is to stay; returns the index after the
 * last of them. */
static size_t local_span_end(const struct local_receive_batch *batch, size_t from)
{
	const struct queue_message *messages = batch->messages;
	size_t to = from + 1;
	while (to < batch->batch.count && messages[to].shard == messages[from].shard &&
	       !is_parked(batch, to) && !is_held(batch, to))
		to++;
	return to;
}

static int local_span_remove(const struct local_receive_batch *batch, size_t from, size_t to,
			     struct store_write *write)
{
	const struct queue *queue = batch->batch.worker->queue;
	const struct queue_message *messages = batch->messages;
	struct local_place first, end;
	local_place_of(queue, messages[from].shard, messages[from].sequence, &first);
	local_place_of(queue, messages[from].shard, messages[to - 1].sequence + 1, &end);
	return store_log_remove(write, TABLE_QUEUE, &first.row, &first.at, &end.at);
}

/* A held message has nothing in the store to be removed; if it is parked, it is written there. */
static int acknowledge_some(const struct local_receive_batch *batch, size_t from, size_t *to,
			    struct store_write *write)
{
	*to = from + 1;
	if (is_held(batch, from))
		return is_parked(batch, from) ? local_pending_add(batch->held[from], write) : 0;
	if (is_parked(batch, from))
		return 0;
	*to = local_span_end(batch, from);
	return local_span_remove(batch, from, *to, write);
}

int local_acknowledge(struct queue_batch *queue_batch, struct store_write *write)
{
	struct local_receive_batch *batch = batch_of(queue_batch);
	struct queue *queue = queue_batch->worker->queue;
	int err = 0;
	pthread_mutex_lock(&queue->lock);
	for (size_t i = 0, to; i < batch->batch.count && !err; i = to)
		err = acknowledge_some(batch, i, &to, write);
	for (size_t i = 0; i < batch->held_count && !err && !batch->acknowledged; i++)
		batch->held[i]->leaving++;
	batch->acknowledged |= !err;
	pthread_mutex_unlock(&queue->lock);
	return err;
}

/* A worker that was replaced may have stored its batch all the same, and the other have been given
 * it too: each message counts once. */
static void book(struct local_queue *local, const struct queue_message *message, bool parked)
{
	struct local_shard *shard = &local->shards[message->shard];
	if (message->sequence < shard->first)
		return;
	shard->first = message->sequence + 1;
	if (parked) {
		queue_parked_add(&local->queue.parked, local_receive_bytes(message));
	} else {
		local->queue.done++;
		stat_add(STAT_queue_done, 1);
	}
	local_count_wait(local, shard, -1, -(int64_t)local_receive_bytes(message));
	square(local, shard);
}

void local_finish(struct queue_batch *queue_batch, bool stored)
{
	struct queue *queue = queue_batch->worker->queue;
	struct local_receive_batch *batch = batch_of(queue_batch);
	unsigned index = queue_batch->worker->options.index;
	for (size_t i = 0; stored && i < batch->batch.count; i++) {
		book(local_of(queue), &batch->messages[i], is_parked(batch, i));
		if (i < batch->held_count)
			local_pending_acknowledge(batch->held[i]);
	}
	free_batch(batch);
	if (!queue_takes(queue, index))
		local_leave(queue, index);
}
