#include "queue/local/local.h"

#include "base/cursor.h"
#include "base/mem.h"
#include "base/stats.h"
#include "model/poll.h"
#include "queue/wait.h"

_Static_assert((int)POLL_BYTES_MAX <= (int)QUEUE_MESSAGE_MAX_BYTES, "every poll fits into a queue");

enum {
	HEADER_BYTES = 8 + 1,
	WRITE_ROOM_BYTES = 8192, /* of a write, beside the message */
	READ_ROOM_BYTES = 256 << 10,
};

/* first <= durable <= next */
struct shard {
	uint64_t first;                  /* the lowest that is not acknowledged */
	uint64_t durable;                /* all below are stored, or their put has failed */
	uint64_t next;                   /* the number of the next put */
	uint64_t messages, bytes;        /* that wait, those on their way among them */
	struct pending *puts, *last_put; /* on their way, by number */
};

/* A put on its way; it stays in the list until those before it have settled. */
struct pending {
	struct pending *next;
	struct local *local;
	struct queue_put *put; /* not to be touched once it is settled */
	unsigned shard;
	uint64_t sequence;
	size_t size_bytes;
	bool settled;
};

struct local {
	struct queue queue;
	uint64_t messages_max, bytes_max;
	size_t take_messages_max, take_bytes_max;
	size_t put_count; /* on their way */
	struct shard shards[QUEUE_SHARDS];
};

/* What a read asked of one shard. */
struct asked {
	struct store_request *request;
	unsigned shard;
	uint64_t durable; /* when it was asked */
};

struct batch {
	struct queue_batch batch;
	struct store_read *read; /* its arena has the messages */
	struct queue_message *messages;
	bool *parked; /* of each message, whether it is to be; NULL: none is */
	uint64_t parked_count, parked_bytes;
	size_t asked_count;
	struct asked asked[QUEUE_SHARDS];
};

/* The names of a row and of a column, and where they lie. */
struct place {
	uint8_t shard[8], column[8];
	struct store_parts row, at;
};

static struct local *local_of(struct queue *queue)
{
	return CONTAINER_OF(queue, struct local, queue);
}

static void place_of(const struct queue *queue, unsigned shard, uint64_t sequence,
		     struct place *place)
{
	be64_put(place->shard, shard);
	be64_put(place->column, sequence);
	place->row = (struct store_parts){{queue_name(queue), {(const char *)place->shard, 8}}};
	place->at = (struct store_parts){{{(const char *)place->column, 8}}};
}

static size_t size_of(const struct queue_message *message)
{
	if (message->malformed)
		return message->bytes.len;
	return HEADER_BYTES + message->key.len + message->bytes.len;
}

/* ---- Putting -------------------------------------------------------------------------------- */

/* All puts that are complete from the front on move `durable`. */
static void settle(struct shard *shard)
{
	while (shard->puts && shard->puts->settled) {
		struct pending *pending = shard->puts;
		shard->durable = pending->sequence + 1;
		shard->puts = pending->next;
		mem_free(pending);
	}
	if (!shard->puts)
		shard->last_put = NULL;
}

static void count_wait(struct queue *queue, struct shard *shard, int64_t messages, int64_t bytes)
{
	queue->messages += (uint64_t)messages;
	queue->bytes += (uint64_t)bytes;
	shard->messages += (uint64_t)messages;
	shard->bytes += (uint64_t)bytes;
	stat_add(STAT_queue_messages, messages);
	stat_add(STAT_queue_bytes, bytes);
}

static void put_done(struct store_write *write, int err)
{
	struct pending *pending = write->owner;
	struct queue_put *put = pending->put;
	struct local *local = pending->local;
	struct queue *queue = &local->queue;
	unsigned number = pending->shard;
	struct shard *shard = &local->shards[number];
	store_write_free(write);
	pthread_mutex_lock(&queue->lock);
	local->put_count--;
	if (err) {
		count_wait(queue, shard, -1, -(int64_t)pending->size_bytes);
	} else {
		queue->added++;
		stat_add(STAT_queue_added, 1);
	}
	pending->settled = true;
	settle(shard);
	queue_wake(queue, number);
	pthread_mutex_unlock(&queue->lock);
	put->done(put, err);
}

static struct slice make_value(const struct queue_put *put, int64_t now_ms, char *to)
{
	size_t len = HEADER_BYTES;
	memcpy(to, &now_ms, sizeof(now_ms));
	to[8] = (char)(uint8_t)put->key.len;
	memcpy(to + len, put->key.data, put->key.len);
	len += put->key.len;
	if (put->bytes.len)
		memcpy(to + len, put->bytes.data, put->bytes.len);
	return (struct slice){to, len + put->bytes.len};
}

static void append_pending(struct shard *shard, struct pending *pending)
{
	if (shard->last_put)
		shard->last_put->next = pending;
	else
		shard->puts = pending;
	shard->last_put = pending;
}

/* With the lock held: the number is given and the write is on its way, or neither. */
static int submit_put(struct local *local, struct pending *pending, struct store_write *write,
		      struct slice value)
{
	struct queue *queue = &local->queue;
	struct shard *shard = &local->shards[pending->shard];
	struct place place;
	if (queue->messages >= local->messages_max || queue->bytes + value.len > local->bytes_max)
		return ERR_FULL;
	pending->sequence = shard->next;
	place_of(queue, pending->shard, pending->sequence, &place);
	int err = store_log_put(write, TABLE_QUEUE, &place.row, &place.at, value);
	if (!err)
		err = store_write_submit(write);
	if (err)
		return err;
	shard->next++;
	append_pending(shard, pending);
	local->put_count++;
	count_wait(queue, shard, 1, (int64_t)value.len);
	return 0;
}

static int local_put(struct queue *queue, struct queue_put *put)
{
	struct local *local = local_of(queue);
	size_t size = HEADER_BYTES + put->key.len + put->bytes.len;
	char *bytes = mem_alloc(size);
	struct slice value = make_value(put, clock_wall_ms(queue->clock), bytes);
	struct store_write *write = store_write_new(queue->store, size + WRITE_ROOM_BYTES);
	struct pending *pending = mem_zalloc(sizeof(*pending));
	*pending = (struct pending){
		.local = local, .put = put, .shard = put->shard, .size_bytes = size};
	write->executor = put->executor;
	write->done = put_done;
	write->owner = pending;
	pthread_mutex_lock(&queue->lock);
	int err = submit_put(local, pending, write, value);
	pthread_mutex_unlock(&queue->lock);
	mem_free(bytes);
	if (err) {
		store_write_free(write);
		mem_free(pending);
	}
	return err;
}

/* ---- Taking --------------------------------------------------------------------------------- */

static bool has_some(const struct shard *shard)
{
	return shard->first < shard->durable;
}

static unsigned count_shards_with_some(const struct local *local, const struct queue_worker *worker)
{
	unsigned count = 0;
	for (unsigned s = worker->options.index; s < QUEUE_SHARDS; s += local->queue.worker_count)
		count += has_some(&local->shards[s]);
	return count;
}

/* Messages from `first` up to what is durable now. False: no room for the request. */
static bool ask(struct local *local, struct batch *batch, unsigned shard, size_t limit)
{
	struct asked *asked = &batch->asked[batch->asked_count];
	struct place *from = arena_alloc(&batch->read->arena, 2 * sizeof(*from)), *to = from + 1;
	struct store_request *request = from ? store_read_add(batch->read, STORE_CELL_SCAN) : NULL;
	if (!request)
		return false;
	*asked = (struct asked){request, shard, local->shards[shard].durable};
	place_of(&local->queue, shard, local->shards[shard].first, from);
	place_of(&local->queue, shard, asked->durable, to);
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

static void free_batch(struct batch *batch)
{
	store_read_free(batch->read);
	mem_free(batch->messages);
	mem_free(batch->parked);
	mem_free(batch);
}

static bool make_message(const struct store_cell *cell, unsigned shard,
			 struct queue_message *message)
{
	struct cursor c = cursor_of(cell->value.data, cell->value.len);
	*message = (struct queue_message){
		.shard = shard,
		.sequence = be64_get((const uint8_t *)cell->column.part[0].data),
	};
	message->put_ms = (int64_t)cursor_u64(&c);
	message->key.len = cursor_u8(&c);
	message->key.data = (const char *)cursor_take(&c, message->key.len);
	message->bytes = (struct slice){(const char *)c.at, cursor_left(&c)};
	if (!c.bad)
		return true;
	message->key = SLICE("");
	message->bytes = cell->value;
	message->malformed = "it is not as the queue wrote it";
	return false;
}

/* A worker that was replaced may have had a write on its way, and never say that it was stored:
 * what that one took is counted when its shard has been emptied. */
static void square(struct local *local, struct shard *shard)
{
	if (shard->puts || !shard->messages || shard->first != shard->next)
		return;
	local->queue.done += shard->messages;
	stat_add(STAT_queue_done, (int64_t)shard->messages);
	count_wait(&local->queue, shard, -(int64_t)shard->messages, -(int64_t)shard->bytes);
}

/* What was asked for and is not there will not come any more: a put that failed leaves a hole, and
 * so does a worker that was replaced. */
static void pass_over(struct local *local, struct shard *shard, uint64_t durable)
{
	if (shard->first < durable)
		shard->first = durable;
	square(local, shard);
}

static void collect_one(struct local *local, struct batch *batch, const struct asked *asked)
{
	const struct store_cell_scan *scan = &asked->request->cell_scan;
	if (asked->request->err)
		return;
	if (scan->count == 0 && !asked->request->more)
		pass_over(local, &local->shards[asked->shard], asked->durable);
	for (size_t i = 0; i < scan->count; i++) {
		struct queue_message *message = &batch->messages[batch->batch.count++];
		bool whole = make_message(&scan->cells[i], asked->shard, message);
		if (!whole)
			stat_add(STAT_queue_malformed, 1);
	}
}

/* A shard for which the read had no room is read another time. */
static int collect(struct local *local, struct batch *batch, int err)
{
	size_t count = 0;
	for (size_t i = 0; i < batch->asked_count; i++) {
		const struct store_request *request = batch->asked[i].request;
		if (request->err && request->err != ERR_LIMIT)
			err = request->err;
		else if (!request->err)
			count += request->cell_scan.count;
	}
	if (err && (err != ERR_LIMIT || count == 0))
		return err;
	batch->messages = mem_alloc_array(count + 1, sizeof(*batch->messages));
	for (size_t i = 0; i < batch->asked_count; i++)
		collect_one(local, batch, &batch->asked[i]);
	batch->batch.messages = batch->messages;
	return 0;
}

static void read_done(struct store_read *read, int err)
{
	struct batch *batch = read->owner;
	struct queue_worker *worker = batch->batch.worker;
	struct local *local = local_of(worker->queue);
	pthread_mutex_lock(&local->queue.lock);
	err = collect(local, batch, err);
	bool empty = err || batch->batch.count == 0;
	queue_fetched(worker, empty ? NULL : &batch->batch, err);
	pthread_mutex_unlock(&local->queue.lock);
	if (empty)
		free_batch(batch);
}

static struct batch *new_batch(struct local *local, struct queue_worker *worker)
{
	struct batch *batch = mem_zalloc(sizeof(*batch));
	batch->batch.worker = worker;
	batch->read = store_read_new(local->queue.store, local->take_bytes_max + READ_ROOM_BYTES);
	batch->read->executor = worker->options.executor;
	batch->read->done = read_done;
	batch->read->owner = batch;
	batch->read->now_ms = clock_wall_ms(local->queue.clock);
	return batch;
}

/* The shards in turn, so that one which is never empty does not keep the others waiting: each has
 * its part of the batch, and what one leaves is not given to another. */
static bool local_fetch(struct queue_worker *worker)
{
	struct local *local = local_of(worker->queue);
	unsigned count = count_shards_with_some(local, worker);
	if (!count)
		return false;
	size_t limit = local->take_messages_max / count + 1;
	struct batch *batch = new_batch(local, worker);
	unsigned step = local->queue.worker_count;
	for (unsigned s = worker->options.index; s < QUEUE_SHARDS; s += step)
		if (has_some(&local->shards[s]) && !ask(local, batch, s, limit))
			break;
	int err = batch->asked_count ? store_read_submit(batch->read) : ERR_LIMIT;
	if (err) {
		free_batch(batch);
		queue_fetched(worker, NULL, err);
	}
	return true;
}

/* ---- Acknowledging -------------------------------------------------------------------------- */

static struct batch *batch_of(struct queue_batch *batch)
{
	return CONTAINER_OF(batch, struct batch, batch);
}

static bool is_parked(const struct batch *batch, size_t i)
{
	return batch->parked && batch->parked[i];
}

static int local_park(struct queue_batch *queue_batch, const struct queue_message *message)
{
	struct batch *batch = batch_of(queue_batch);
	const struct local *local = local_of(queue_batch->worker->queue);
	const struct queue_parked *parked = &local->queue.parked;
	size_t i = (size_t)(message - batch->messages);
	ASSERT(i < batch->batch.count && !is_parked(batch, i));
	if (parked->messages + batch->parked_count >= local->messages_max ||
	    parked->bytes + batch->parked_bytes + size_of(message) > local->bytes_max)
		return ERR_FULL;
	if (!batch->parked)
		batch->parked = mem_zalloc(batch->batch.count * sizeof(*batch->parked));
	batch->parked[i] = true;
	batch->parked_count++;
	batch->parked_bytes += size_of(message);
	return 0;
}

/* Messages of one shard from `from` on, up to one that is parked: the index behind the last of
 * them. */
static size_t end_of_run(const struct batch *batch, size_t from)
{
	const struct queue_message *messages = batch->messages;
	size_t to = from + 1;
	while (to < batch->batch.count && messages[to].shard == messages[from].shard &&
	       !is_parked(batch, to))
		to++;
	return to;
}

static int local_acknowledge(struct queue_batch *batch, struct store_write *write)
{
	const struct queue *queue = batch->worker->queue;
	for (size_t from = 0; from < batch->count;) {
		size_t to = end_of_run(batch_of(batch), from);
		if (is_parked(batch_of(batch), from)) {
			from++;
			continue;
		}
		struct place first, behind;
		place_of(queue, batch->messages[from].shard, batch->messages[from].sequence,
			 &first);
		place_of(queue, batch->messages[from].shard, batch->messages[to - 1].sequence + 1,
			 &behind);
		int err = store_log_remove(write, TABLE_QUEUE, &first.row, &first.at, &behind.at);
		if (err)
			return err;
		from = to;
	}
	return 0;
}

/* A worker that was replaced may have stored its batch all the same, and the other have been given
 * it too: each message counts once. */
static void book(struct local *local, const struct queue_message *message, bool parked)
{
	struct shard *shard = &local->shards[message->shard];
	if (message->sequence < shard->first)
		return;
	shard->first = message->sequence + 1;
	if (parked) {
		queue_parked_add(&local->queue.parked, size_of(message));
	} else {
		local->queue.done++;
		stat_add(STAT_queue_done, 1);
	}
	count_wait(&local->queue, shard, -1, -(int64_t)size_of(message));
	square(local, shard);
}

static void local_finish(struct queue_batch *queue_batch, bool stored)
{
	struct local *local = local_of(queue_batch->worker->queue);
	struct batch *batch = batch_of(queue_batch);
	for (size_t i = 0; stored && i < batch->batch.count; i++)
		book(local, &batch->messages[i], is_parked(batch, i));
	free_batch(batch);
}

/* ---- Life ----------------------------------------------------------------------------------- */

struct counting {
	struct local *local;
	struct shard *shard;
};

static int count_cell(const struct store_cell *cell, void *owner)
{
	struct counting *counting = owner;
	struct shard *shard = counting->shard;
	uint64_t sequence = be64_get((const uint8_t *)cell->column.part[0].data);
	if (shard->first == shard->next)
		shard->first = sequence;
	shard->durable = shard->next = sequence + 1;
	counting->local->queue.added++;
	count_wait(&counting->local->queue, shard, 1, (int64_t)cell->value.len);
	return 0;
}

static int count_shards(struct local *local, struct errbuf *e)
{
	int err = 0;
	for (unsigned s = 0; s < QUEUE_SHARDS && !err; s++) {
		struct place place;
		struct counting counting = {local, &local->shards[s]};
		local->shards[s] = (struct shard){.first = 1, .durable = 1, .next = 1};
		place_of(&local->queue, s, 0, &place);
		err = queue_read_row(local->queue.store, local->queue.clock, TABLE_QUEUE,
				     &place.row, count_cell, &counting, e);
	}
	return err;
}

static void local_close(struct queue *queue)
{
	struct local *local = local_of(queue);
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
	.close = local_close,
};

int queue_local_open(const struct queue_local_options *o, struct queue **queue, struct errbuf *e)
{
	struct local *local = mem_zalloc(sizeof(*local));
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
		local_close(&local->queue);
		return errbuf_prefix(e, err, "queue " SHOWN, SHOWN_OF(o->name));
	}
	*queue = &local->queue;
	return 0;
}
