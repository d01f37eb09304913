/* Reading: the thread reads items ahead into a bounded window, in the order of their numbers;
 * workers take them from their shards; what is stored from the window's front on is forgotten in
 * memcached. */
#include "base/stats.h"
#include "queue/memcached/private.h"
#include "wire/esmond_message.h"

enum {
	ARENA_MAX_BYTES = 256 << 20, /* while one message is read */
	WINDOW_MAX_BYTES = 64 << 20,
};

/* One message of memcached that was read ahead. Numbers rise by one through the window: what was
 * missing is there as done. */
struct memcached_item {
	struct memcached_item *next;       /* in the window */
	struct memcached_item *shard_next; /* in its shard, until it is done */
	uint64_t number, epoch;
	unsigned shard;
	bool done;
	size_t batches;          /* that hold it */
	struct slice key, bytes; /* owned */
	char *malformed;         /* owned; or NULL */
};

struct memcached_read_batch {
	struct queue_batch batch;
	struct queue_message *messages;
	struct memcached_item **items;
};

/* ---- Items ---------------------------------------------------------------------------------- */

static void free_item(struct memcached_item *item)
{
	memcached_free_copy(item->key);
	memcached_free_copy(item->bytes);
	mem_free(item->malformed);
	mem_free(item);
}

static void append_item(struct memcached *m, struct memcached_item *item)
{
	struct memcached_shard *shard = &m->reading.shards[item->shard];
	if (m->reading.last)
		m->reading.last->next = item;
	else
		m->reading.first = item;
	m->reading.last = item;
	m->reading.count++;
	m->reading.size_bytes += item->bytes.len;
	if (item->done)
		return;
	if (shard->last)
		shard->last->shard_next = item;
	else
		shard->first = item;
	shard->last = item;
	m->queue.messages++;
	m->queue.bytes += item->bytes.len;
	stat_add(STAT_queue_messages, 1);
}

static void item_done(struct memcached *m, struct memcached_item *item)
{
	struct memcached_shard *shard = &m->reading.shards[item->shard];
	if (item->done)
		return;
	item->done = true;
	m->queue.messages--;
	m->queue.bytes -= item->bytes.len;
	stat_add(STAT_queue_messages, -1);
	/* Batches are taken from the front, so this is one of the first. */
	struct memcached_item **link = &shard->first, *before = NULL;
	while (*link != item) {
		before = *link;
		link = &(*link)->shard_next;
	}
	*link = item->shard_next;
	if (shard->last == item)
		shard->last = before;
}

/* Takes what is done from the front of the window; gives the number of the last that memcached can
 * forget, or 0. What a batch still holds is freed by that. */
static uint64_t pop_done(struct memcached *m)
{
	uint64_t upto = 0;
	while (m->reading.first && m->reading.first->done) {
		struct memcached_item *item = m->reading.first;
		m->reading.first = item->next;
		m->reading.count--;
		m->reading.size_bytes -= item->bytes.len;
		if (item->epoch == m->reading.epoch)
			upto = item->number;
		item->number = 0; /* out of the window */
		if (!item->batches)
			free_item(item);
	}
	if (!m->reading.first)
		m->reading.last = NULL;
	return upto;
}

/* ---- Reading ahead -------------------------------------------------------------------------- */

static int make_poll(struct memcached *m, struct slice json, struct memcached_item *item,
		     struct errbuf *e)
{
	struct poll poll;
	arena_reset(&m->reading.arena);
	buf_clear(&m->reading.bytes);
	int err = esmond_message_read(json, &m->reading.arena, &m->reading.builder, e);
	if (!err)
		err = poll_encode(&m->reading.builder, 0, true, &m->reading.bytes, e);
	if (!err)
		err = poll_open(buf_slice(&m->reading.bytes), &poll, e);
	if (err)
		return err;
	item->key = memcached_copy(poll.device);
	item->bytes = memcached_copy(buf_slice(&m->reading.bytes));
	return 0;
}

static struct memcached_item *make_item(struct memcached *m, uint64_t number, struct slice json)
{
	struct errbuf e = {""};
	struct memcached_item *item = mem_zalloc(sizeof(*item));
	item->number = number;
	item->epoch = m->reading.epoch;
	if (make_poll(m, json, item, &e)) {
		item->key = memcached_copy(SLICE(""));
		item->bytes = memcached_copy(json);
		item->malformed = mem_copy_text(slice_of(e.text));
		stat_add(STAT_queue_malformed, 1);
	}
	item->shard = queue_shard(item->key);
	return item;
}

static struct memcached_item *make_missing(struct memcached *m, uint64_t number)
{
	struct memcached_item *item = mem_zalloc(sizeof(*item));
	item->number = number;
	item->epoch = m->reading.epoch;
	item->done = true;
	m->reading.missing++;
	stat_add(STAT_queue_missing, 1);
	return item;
}

/* Between a poller's two calls a number has no item for a moment: that is waited for. What was
 * numbered before the wait began has waited with it. */
static bool hole_is_over(struct memcached *m, uint64_t number)
{
	int64_t now = memcached_now_ms(m);
	if (m->reading.hole_since_ms && number <= m->reading.hole_upto)
		return now - m->reading.hole_since_ms >= m->options.hole_wait_ms;
	m->reading.hole_since_ms = now ? now : 1;
	m->reading.hole_upto = m->last_added;
	return false;
}

struct fetched {
	struct memcached *m;
	uint64_t from;
	struct memcached_item *items[SERVER_ITEMS_MAX];
};

static void memcached_add_item(void *owner, uint64_t number, struct slice json)
{
	struct fetched *fetched = owner;
	struct memcached_item **item = &fetched->items[number - fetched->from];
	if (!*item)
		*item = make_item(fetched->m, number, json);
}

/* In their order, up to a hole that may yet be filled; how many went into the window. */
static size_t put_into_window(struct memcached *m, struct fetched *fetched, size_t count)
{
	size_t i = 0;
	pthread_mutex_lock(&m->queue.lock);
	for (; i < count; i++) {
		struct memcached_item *item = fetched->items[i];
		if (!item && !hole_is_over(m, fetched->from + i))
			break;
		if (!item)
			item = make_missing(m, fetched->from + i);
		append_item(m, item);
		m->reading.next++;
		if (!item->done)
			queue_wake(&m->queue, item->shard);
	}
	pthread_mutex_unlock(&m->queue.lock);
	for (size_t rest = i; rest < count; rest++)
		if (fetched->items[rest])
			free_item(fetched->items[rest]);
	return i;
}

static size_t count_to_read(struct memcached *m)
{
	pthread_mutex_lock(&m->queue.lock);
	uint64_t count = memcached_unread(m);
	if (m->reading.count >= m->options.window_max || m->reading.size_bytes >= WINDOW_MAX_BYTES)
		count = 0;
	pthread_mutex_unlock(&m->queue.lock);
	return count < SERVER_ITEMS_MAX ? (size_t)count : SERVER_ITEMS_MAX;
}

/* *some: a part at least could be read. */
int reading_go_on(struct memcached *m, bool *some)
{
	size_t count;
	*some = false;
	while ((count = count_to_read(m))) {
		struct fetched fetched = {.m = m, .from = m->reading.next};
		int err =
			server_get(m->server, m->reading.next, count, memcached_add_item, &fetched);
		size_t got = err ? 0 : put_into_window(m, &fetched, count);
		if (err) {
			for (size_t i = 0; i < count; i++)
				if (fetched.items[i])
					free_item(fetched.items[i]);
			return err;
		}
		*some = *some || got;
		if (got < count)
			return 0;
	}
	return 0;
}

/* ---- Forgetting ----------------------------------------------------------------------------- */

/* First the counter, then the items: a crash in between leaves items that nobody will read, never
 * numbers without items. */
int reading_forget(struct memcached *m)
{
	pthread_mutex_lock(&m->queue.lock);
	uint64_t upto = pop_done(m), from = m->last_read, last_read = from;
	pthread_mutex_unlock(&m->queue.lock);
	if (upto > m->reading.forget_upto)
		m->reading.forget_upto = upto;
	if (m->reading.forget_upto <= from)
		return 0;
	int err = server_add_read(m->server, m->reading.forget_upto - from, &last_read);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err;
	pthread_mutex_lock(&m->queue.lock);
	m->last_read = last_read;
	pthread_mutex_unlock(&m->queue.lock);
	for (uint64_t n = from + 1; n <= m->reading.forget_upto && !err; n++)
		err = server_delete(m->server, n);
	return err;
}

/* ---- Taking --------------------------------------------------------------------------------- */

static void add_to_batch(struct memcached_read_batch *batch, struct memcached_item *item)
{
	size_t i = batch->batch.count++;
	item->batches++;
	batch->items[i] = item;
	batch->messages[i] = (struct queue_message){
		.key = item->key,
		.bytes = item->bytes,
		.shard = item->shard,
		.sequence = item->number,
		.malformed = item->malformed,
	};
}

/* From the front of each shard, with a part for each. */
bool reading_fetch(struct queue_worker *worker)
{
	struct memcached *m = memcached_of(worker->queue);
	size_t max = m->options.take_messages_max, shards = 0;
	unsigned step = m->queue.worker_count;
	for (unsigned s = worker->options.index; s < QUEUE_SHARDS; s += step)
		shards += m->reading.shards[s].first != NULL;
	if (!shards)
		return false;
	struct memcached_read_batch *batch = mem_zalloc(sizeof(*batch));
	batch->batch.worker = worker;
	batch->messages = mem_alloc_array(max + shards, sizeof(*batch->messages));
	batch->items = mem_alloc_array(max + shards, sizeof(struct memcached_item *));
	batch->batch.messages = batch->messages;
	for (unsigned s = worker->options.index; s < QUEUE_SHARDS; s += step) {
		size_t limit = max / shards + 1;
		for (struct memcached_item *i = m->reading.shards[s].first; i && limit;
		     i = i->shard_next, limit--)
			add_to_batch(batch, i);
	}
	queue_fetched(worker, &batch->batch, 0);
	return true;
}

void memcached_read_finish(struct queue_batch *queue_batch, bool stored)
{
	struct memcached *m = memcached_of(queue_batch->worker->queue);
	struct memcached_read_batch *batch =
		CONTAINER_OF(queue_batch, struct memcached_read_batch, batch);
	size_t done = 0;
	for (size_t i = 0; i < batch->batch.count; i++) {
		struct memcached_item *item = batch->items[i];
		item->batches--;
		done += stored && !item->done;
		if (stored)
			item_done(m, item);
		if (!item->number && !item->batches)
			free_item(item);
	}
	stat_add(STAT_queue_done, (int64_t)done);
	mem_free(batch->messages);
	mem_free(batch->items);
	mem_free(batch);
	if (stored)
		memcached_wake(m);
}

/* ---- Life ----------------------------------------------------------------------------------- */

void reading_begin_again(struct memcached *m, uint64_t lost)
{
	m->reading.epoch++;
	m->reading.missing += lost;
	m->reading.hole_since_ms = 0;
	m->reading.forget_upto = 0;
}

void reading_init(struct memcached *m)
{
	m->reading.next = 1;
	arena_init(&m->reading.arena, ARENA_MAX_BYTES);
	poll_builder_init(&m->reading.builder);
	buf_init(&m->reading.bytes, POLL_BYTES_MAX);
}

void reading_release(struct memcached *m)
{
	for (struct memcached_item *item = m->reading.first; item;) {
		struct memcached_item *next = item->next;
		if (!item->done)
			stat_add(STAT_queue_messages, -1);
		free_item(item);
		item = next;
	}
	arena_release(&m->reading.arena);
	poll_builder_release(&m->reading.builder);
	buf_release(&m->reading.bytes);
}
