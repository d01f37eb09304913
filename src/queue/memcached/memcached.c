#include "queue/memcached/memcached.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "model/poll.h"
#include "queue/memcached/server.h"
#include "wire/esmond_message.h"

enum {
	ARENA_MAX_BYTES = 256 << 20, /* while one message is read or written */
	WINDOW_MAX_BYTES = 64 << 20,
};

/* One message of memcached that was read ahead. Numbers rise by one through the window: what was
 * missing is there as done. */
struct item {
	struct item *next;       /* in the window */
	struct item *shard_next; /* in its shard, until it is done */
	uint64_t number, epoch;
	unsigned shard;
	bool done;
	size_t batches;          /* that hold it */
	struct slice key, bytes; /* owned */
	char *malformed;         /* owned; or NULL */
};

/* A put until memcached has all its items. */
struct pending {
	struct pending *next;
	struct queue_put *put;
	int64_t until_ms;
	struct slice *items; /* owned, as JSON */
	size_t item_count, sent;
	uint64_t number; /* of the item to be sent; 0: it has none yet */
	int err;
	struct task task;
};

struct shard {
	struct item *first, *last;
};

struct memcached {
	struct queue queue;
	struct queue_memcached_options options;
	char *address;
	struct slice *uncorrelated;
	struct server *server;
	pthread_t thread;
	pthread_cond_t something; /* to do: for the thread */

	/* guarded by queue.lock */
	bool stopping, to_do;
	struct pending *puts, *last_put;
	size_t put_items, puts_under_way;
	struct item *window, *last_item; /* by number */
	size_t window_count, window_bytes;
	struct shard shards[QUEUE_SHARDS];
	uint64_t epoch;      /* of memcached's life */
	uint64_t last_added; /* as last seen */
	uint64_t last_read;  /* likewise */
	uint64_t next;       /* the item to be read next */
	uint64_t missing, restarts;

	/* the thread's */
	bool known; /* the counters have been seen */
	bool reachable;
	uint64_t forget_upto;  /* all up to this are stored: last_read is to become it */
	int64_t hole_since_ms; /* 0: there is none */
	uint64_t hole_upto;    /* all up to this were numbered when the hole was seen */
	struct arena arena;
	struct poll_builder builder;
	struct buf bytes;
};

struct batch {
	struct queue_batch batch;
	struct queue_message *messages;
	struct item **items;
};

static struct memcached *memcached_of(struct queue *queue)
{
	return CONTAINER_OF(queue, struct memcached, queue);
}

static void free_slice(struct slice slice)
{
	mem_free((void *)(uintptr_t)slice.data);
}

static struct slice copy_of(struct slice bytes)
{
	char *copy = mem_alloc(bytes.len + 1);
	if (bytes.len)
		memcpy(copy, bytes.data, bytes.len);
	return (struct slice){copy, bytes.len};
}

static void wake_thread(struct memcached *m)
{
	m->to_do = true;
	pthread_cond_signal(&m->something);
}

static int64_t now_ms(const struct memcached *m)
{
	return clock_mono_ms(m->queue.clock);
}

/* Numbered, as far as is known, and not yet read ahead. */
static uint64_t count_unread(const struct memcached *m)
{
	return m->last_added >= m->next ? m->last_added - m->next + 1 : 0;
}

/* ---- Items ---------------------------------------------------------------------------------- */

static void free_item(struct item *item)
{
	free_slice(item->key);
	free_slice(item->bytes);
	mem_free(item->malformed);
	mem_free(item);
}

static void append_item(struct memcached *m, struct item *item)
{
	struct shard *shard = &m->shards[item->shard];
	if (m->last_item)
		m->last_item->next = item;
	else
		m->window = item;
	m->last_item = item;
	m->window_count++;
	m->window_bytes += item->bytes.len;
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

static void item_done(struct memcached *m, struct item *item)
{
	struct shard *shard = &m->shards[item->shard];
	if (item->done)
		return;
	item->done = true;
	m->queue.messages--;
	m->queue.bytes -= item->bytes.len;
	stat_add(STAT_queue_messages, -1);
	/* Batches are taken from the front, so this is one of the first. */
	struct item **link = &shard->first, *before = NULL;
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
	while (m->window && m->window->done) {
		struct item *item = m->window;
		m->window = item->next;
		m->window_count--;
		m->window_bytes -= item->bytes.len;
		if (item->epoch == m->epoch)
			upto = item->number;
		item->number = 0; /* out of the window */
		if (!item->batches)
			free_item(item);
	}
	if (!m->window)
		m->last_item = NULL;
	return upto;
}

/* ---- Putting -------------------------------------------------------------------------------- */

static bool is_uncorrelated(const struct memcached *m, struct slice oidset)
{
	for (size_t i = 0; i < m->options.uncorrelated_count; i++)
		if (slice_equal(m->uncorrelated[i], oidset))
			return true;
	return false;
}

static void free_pending(struct pending *pending)
{
	for (size_t i = 0; i < pending->item_count; i++)
		free_slice(pending->items[i]);
	mem_free(pending->items);
	mem_free(pending);
}

static int add_message(struct pending *pending, struct buf *json, int err)
{
	if (err || json->len > SERVER_ITEM_MAX_BYTES)
		return ERR_LIMIT;
	pending->items[pending->item_count++] = copy_of(buf_slice(json));
	buf_clear(json);
	return 0;
}

static int write_messages(const struct memcached *m, struct pending *pending,
			  const struct poll *poll, struct arena *arena)
{
	struct poll_names names;
	struct poll_values values;
	struct buf json;
	int err = poll_decode_names(poll, arena, &names, NULL);
	if (!err)
		err = poll_decode_values(poll, arena, &values, NULL);
	if (err)
		return err;
	buf_init(&json, 2 * SERVER_ITEM_MAX_BYTES);
	pending->items = mem_alloc_array(poll->column_count + 1, sizeof(*pending->items));
	if (is_uncorrelated(m, poll->oidset)) {
		err = esmond_message_write_uncorrelated(poll, &names, &values, &json);
		err = add_message(pending, &json, err);
	} else {
		for (size_t i = 0; i < poll->column_count && !err; i++) {
			err = esmond_message_write(poll, &names, &values, i, &json);
			err = add_message(pending, &json, err);
		}
	}
	buf_release(&json);
	return err;
}

static int make_pending(const struct memcached *m, struct queue_put *put, struct pending **out)
{
	struct arena arena;
	struct poll poll;
	int err = poll_open(put->bytes, &poll, NULL);
	if (err)
		return err;
	struct pending *pending = mem_zalloc(sizeof(*pending));
	pending->put = put;
	pending->until_ms = now_ms(m) + m->options.put_timeout_ms;
	arena_init(&arena, ARENA_MAX_BYTES);
	err = write_messages(m, pending, &poll, &arena);
	arena_release(&arena);
	if (err)
		free_pending(pending);
	else
		*out = pending;
	return err;
}

static uint64_t count_pending(const struct memcached *m)
{
	return m->queue.messages + count_unread(m);
}

static int memcached_put(struct queue *queue, struct queue_put *put)
{
	struct memcached *m = memcached_of(queue);
	struct pending *pending = NULL;
	int err = make_pending(m, put, &pending);
	if (err)
		return err;
	pthread_mutex_lock(&queue->lock);
	if (count_pending(m) + m->put_items + pending->item_count > m->options.messages_max) {
		pthread_mutex_unlock(&queue->lock);
		free_pending(pending);
		return ERR_FULL;
	}
	if (m->last_put)
		m->last_put->next = pending;
	else
		m->puts = pending;
	m->last_put = pending;
	m->put_items += pending->item_count;
	m->puts_under_way++;
	wake_thread(m);
	pthread_mutex_unlock(&queue->lock);
	return 0;
}

static void put_done(struct task *task)
{
	struct pending *pending = CONTAINER_OF(task, struct pending, task);
	struct queue_put *put = pending->put;
	int err = pending->err;
	free_pending(pending);
	put->done(put, err);
}

static void end_put(struct memcached *m, struct pending *pending, int err)
{
	pthread_mutex_lock(&m->queue.lock);
	m->puts = pending->next;
	if (!m->puts)
		m->last_put = NULL;
	m->put_items -= pending->item_count - pending->sent;
	m->puts_under_way--;
	pthread_mutex_unlock(&m->queue.lock);
	if (!err)
		stat_add(STAT_queue_added, (int64_t)pending->item_count);
	pending->err = err;
	pending->task.run = put_done;
	pending->put->executor->post(pending->put->executor, &pending->task);
}

/* A number that was given is kept until its item is there, so that no hole comes of a connection
 * that broke in between. */
static int send_items(struct memcached *m, struct pending *pending)
{
	while (pending->sent < pending->item_count) {
		int err = 0;
		if (!pending->number)
			err = server_next_number(m->server, &pending->number);
		if (!err)
			err = server_set(m->server, pending->number, pending->items[pending->sent]);
		if (err)
			return err;
		pthread_mutex_lock(&m->queue.lock);
		if (pending->number > m->last_added)
			m->last_added = pending->number;
		m->put_items--;
		pending->sent++;
		pthread_mutex_unlock(&m->queue.lock);
		pending->number = 0;
	}
	return 0;
}

static struct pending *first_put(struct memcached *m)
{
	pthread_mutex_lock(&m->queue.lock);
	struct pending *pending = m->puts;
	pthread_mutex_unlock(&m->queue.lock);
	return pending;
}

static int send_puts(struct memcached *m)
{
	struct pending *pending;
	while ((pending = first_put(m))) {
		int err = send_items(m, pending);
		if (err)
			return err;
		end_put(m, pending, 0);
	}
	return 0;
}

static void expire_puts(struct memcached *m)
{
	struct pending *pending;
	while ((pending = first_put(m)) && now_ms(m) >= pending->until_ms)
		end_put(m, pending, ERR_TIMEOUT);
}

/* ---- Reading ahead -------------------------------------------------------------------------- */

/* Memcached was started anew, or emptied: what was there and not read has gone. What was read is in
 * the window and stays. */
static void restarted(struct memcached *m, const struct counters *now)
{
	uint64_t lost = count_unread(m);
	log_warn("queue %s: memcached has forgotten it, and with it %llu messages", m->queue.name,
		 (unsigned long long)lost);
	pthread_mutex_lock(&m->queue.lock);
	m->epoch++;
	m->restarts++;
	m->missing += lost;
	m->last_added = now->last_added;
	m->last_read = now->last_read;
	m->next = now->last_read + 1;
	m->hole_since_ms = 0;
	m->forget_upto = 0;
	for (struct pending *p = m->puts; p; p = p->next)
		p->number = 0;
	pthread_mutex_unlock(&m->queue.lock);
	stat_add(STAT_queue_restarts, 1);
	stat_add(STAT_queue_missing, (int64_t)lost);
}

static void take_over(struct memcached *m, const struct counters *now)
{
	pthread_mutex_lock(&m->queue.lock);
	m->last_added = now->last_added;
	m->last_read = now->last_read;
	m->next = now->last_read + 1;
	m->known = true;
	pthread_mutex_unlock(&m->queue.lock);
}

static int look_at_counters(struct memcached *m)
{
	struct counters now;
	int err = server_counters(m->server, &now);
	bool forgot = !err && !now.found;
	if (forgot)
		err = server_make_counters(m->server);
	if (forgot && !err)
		err = server_counters(m->server, &now);
	if (err)
		return err;
	if (!m->known) {
		take_over(m, &now);
	} else if (forgot || now.last_added < m->last_added || now.last_read < m->last_read) {
		restarted(m, &now);
	} else {
		pthread_mutex_lock(&m->queue.lock);
		m->last_added = now.last_added;
		m->last_read = now.last_read; /* what was sent and had no answer may have arrived */
		pthread_mutex_unlock(&m->queue.lock);
	}
	return 0;
}

static int make_poll(struct memcached *m, struct slice json, struct item *item, struct errbuf *e)
{
	struct poll poll;
	arena_reset(&m->arena);
	buf_clear(&m->bytes);
	int err = esmond_message_read(json, &m->arena, &m->builder, e);
	if (!err)
		err = poll_encode(&m->builder, 0, true, &m->bytes, e);
	if (!err)
		err = poll_open(buf_slice(&m->bytes), &poll, e);
	if (err)
		return err;
	item->key = copy_of(poll.device);
	item->bytes = copy_of(buf_slice(&m->bytes));
	return 0;
}

static struct item *make_item(struct memcached *m, uint64_t number, struct slice json)
{
	struct errbuf e = {""};
	struct item *item = mem_zalloc(sizeof(*item));
	item->number = number;
	item->epoch = m->epoch;
	if (make_poll(m, json, item, &e)) {
		item->key = copy_of(SLICE(""));
		item->bytes = copy_of(json);
		item->malformed = mem_copy_text(slice_of(e.text));
		stat_add(STAT_queue_malformed, 1);
	}
	item->shard = queue_shard(item->key);
	return item;
}

static struct item *make_missing(struct memcached *m, uint64_t number)
{
	struct item *item = mem_zalloc(sizeof(*item));
	item->number = number;
	item->epoch = m->epoch;
	item->done = true;
	m->missing++;
	stat_add(STAT_queue_missing, 1);
	return item;
}

/* Between a poller's two calls a number has no item for a moment: that is waited for. What was
 * numbered before the wait began has waited with it. */
static bool hole_is_over(struct memcached *m, uint64_t number)
{
	int64_t now = now_ms(m);
	if (m->hole_since_ms && number <= m->hole_upto)
		return now - m->hole_since_ms >= m->options.hole_wait_ms;
	m->hole_since_ms = now ? now : 1;
	m->hole_upto = m->last_added;
	return false;
}

struct fetched {
	struct memcached *m;
	uint64_t from;
	struct item *items[SERVER_ITEMS_MAX];
};

static void keep_item(void *owner, uint64_t number, struct slice json)
{
	struct fetched *fetched = owner;
	struct item **item = &fetched->items[number - fetched->from];
	if (!*item)
		*item = make_item(fetched->m, number, json);
}

/* In their order, up to a hole that may yet be filled; how many went into the window. */
static size_t put_into_window(struct memcached *m, struct fetched *fetched, size_t count)
{
	size_t i = 0;
	pthread_mutex_lock(&m->queue.lock);
	for (; i < count; i++) {
		struct item *item = fetched->items[i];
		if (!item && !hole_is_over(m, fetched->from + i))
			break;
		if (!item)
			item = make_missing(m, fetched->from + i);
		append_item(m, item);
		m->next++;
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
	uint64_t count = count_unread(m);
	if (m->window_count >= m->options.window_max || m->window_bytes >= WINDOW_MAX_BYTES)
		count = 0;
	pthread_mutex_unlock(&m->queue.lock);
	return count < SERVER_ITEMS_MAX ? (size_t)count : SERVER_ITEMS_MAX;
}

/* *some: a part at least could be read. */
static int read_ahead(struct memcached *m, bool *some)
{
	size_t count;
	*some = false;
	while ((count = count_to_read(m))) {
		struct fetched fetched = {.m = m, .from = m->next};
		int err = server_get(m->server, m->next, count, keep_item, &fetched);
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
static int forget_done(struct memcached *m)
{
	pthread_mutex_lock(&m->queue.lock);
	uint64_t upto = pop_done(m), from = m->last_read, last_read = from;
	pthread_mutex_unlock(&m->queue.lock);
	if (upto > m->forget_upto)
		m->forget_upto = upto;
	if (m->forget_upto <= from)
		return 0;
	int err = server_add_read(m->server, m->forget_upto - from, &last_read);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err;
	pthread_mutex_lock(&m->queue.lock);
	m->last_read = last_read;
	pthread_mutex_unlock(&m->queue.lock);
	for (uint64_t n = from + 1; n <= m->forget_upto && !err; n++)
		err = server_delete(m->server, n);
	return err;
}

/* ---- The thread ----------------------------------------------------------------------------- */

static void note_reachable(struct memcached *m, bool reachable)
{
	if (m->reachable == reachable)
		return;
	m->reachable = reachable;
	if (reachable)
		log_info("queue %s: memcached at %s answers", m->queue.name, m->address);
	else
		log_warn("queue %s: memcached at %s does not answer", m->queue.name, m->address);
}

static bool work(struct memcached *m)
{
	bool some = false;
	int err = look_at_counters(m);
	if (!err)
		err = send_puts(m);
	if (!err)
		err = forget_done(m);
	if (!err)
		err = read_ahead(m, &some);
	expire_puts(m);
	note_reachable(m, !err);
	return some;
}

static void *run(void *context)
{
	struct memcached *m = context;
	bool stopping = false;
	while (!stopping) {
		pthread_mutex_lock(&m->queue.lock);
		if (!m->to_do && !m->stopping)
			cond_wait_ms(&m->something, &m->queue.lock, m->options.poll_ms);
		m->to_do = false;
		stopping = m->stopping;
		pthread_mutex_unlock(&m->queue.lock);
		if (!stopping && work(m)) {
			pthread_mutex_lock(&m->queue.lock);
			m->to_do = true;
			pthread_mutex_unlock(&m->queue.lock);
		}
	}
	/* What cannot be forgotten now is given again after the next start. */
	if (m->known && m->reachable && forget_done(m))
		note_reachable(m, false);
	return NULL;
}

/* ---- Taking --------------------------------------------------------------------------------- */

static void add_to_batch(struct batch *batch, struct item *item)
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
static bool memcached_fetch(struct queue_worker *worker)
{
	struct memcached *m = memcached_of(worker->queue);
	size_t max = m->options.take_messages_max, shards = 0;
	unsigned step = m->queue.worker_count;
	for (unsigned s = worker->options.index; s < QUEUE_SHARDS; s += step)
		shards += m->shards[s].first != NULL;
	if (!shards)
		return false;
	struct batch *batch = mem_zalloc(sizeof(*batch));
	batch->batch.worker = worker;
	batch->messages = mem_alloc_array(max + shards, sizeof(*batch->messages));
	batch->items = mem_alloc_array(max + shards, sizeof(struct item *));
	batch->batch.messages = batch->messages;
	for (unsigned s = worker->options.index; s < QUEUE_SHARDS; s += step) {
		size_t limit = max / shards + 1;
		for (struct item *i = m->shards[s].first; i && limit; i = i->shard_next, limit--)
			add_to_batch(batch, i);
	}
	queue_fetched(worker, &batch->batch, 0);
	return true;
}

/* Nothing of memcached can be part of the store's write: it is told afterwards. */
static int memcached_acknowledge(UNUSED struct queue_batch *batch, UNUSED struct store_write *write)
{
	return 0;
}

static void memcached_finish(struct queue_batch *queue_batch, bool stored)
{
	struct memcached *m = memcached_of(queue_batch->worker->queue);
	struct batch *batch = CONTAINER_OF(queue_batch, struct batch, batch);
	size_t done = 0;
	for (size_t i = 0; i < batch->batch.count; i++) {
		struct item *item = batch->items[i];
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
		wake_thread(m);
}

/* ---- Life ----------------------------------------------------------------------------------- */

static void memcached_stats(struct queue *queue, struct queue_stats *stats)
{
	struct memcached *m = memcached_of(queue);
	stats->added = m->last_added;
	stats->pending = count_pending(m);
	stats->done = stats->added >= stats->pending ? stats->added - stats->pending : 0;
	stats->missing = m->missing;
	stats->restarts = m->restarts;
}

static void release(struct memcached *m)
{
	for (struct item *item = m->window; item;) {
		struct item *next = item->next;
		if (!item->done)
			stat_add(STAT_queue_messages, -1);
		free_item(item);
		item = next;
	}
	server_close(m->server);
	arena_release(&m->arena);
	poll_builder_release(&m->builder);
	buf_release(&m->bytes);
	for (size_t i = 0; i < m->options.uncorrelated_count; i++)
		free_slice(m->uncorrelated[i]);
	mem_free(m->uncorrelated);
	mem_free(m->address);
	pthread_cond_destroy(&m->something);
	queue_release(&m->queue);
	mem_free(m);
}

static void memcached_close(struct queue *queue)
{
	struct memcached *m = memcached_of(queue);
	pthread_mutex_lock(&queue->lock);
	ASSERT(m->puts_under_way == 0);
	m->stopping = true;
	wake_thread(m);
	pthread_mutex_unlock(&queue->lock);
	pthread_join(m->thread, NULL);
	release(m);
}

static const struct queue_ops memcached_ops = {
	.put = memcached_put,
	.fetch = memcached_fetch,
	.acknowledge = memcached_acknowledge,
	.finish = memcached_finish,
	.stats = memcached_stats,
	.close = memcached_close,
};

static void set_options(struct memcached *m, const struct queue_memcached_options *o)
{
	m->options = *o;
	if (!o->messages_max)
		m->options.messages_max = 50000;
	if (!o->take_messages_max)
		m->options.take_messages_max = 512;
	if (!o->window_max)
		m->options.window_max = 4096;
	if (!o->poll_ms)
		m->options.poll_ms = 200;
	if (!o->hole_wait_ms)
		m->options.hole_wait_ms = 1000;
	if (!o->put_timeout_ms)
		m->options.put_timeout_ms = 10000;
	m->uncorrelated = mem_alloc_array(o->uncorrelated_count + 1, sizeof(*m->uncorrelated));
	for (size_t i = 0; i < o->uncorrelated_count; i++)
		m->uncorrelated[i] = copy_of(o->uncorrelated[i]);
	m->address = mem_copy_text(o->server);
}

/* It becomes part of memcached's keys. */
static int check_name(struct slice name, struct errbuf *e)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.data[i] <= ' ' || name.data[i] > '~')
			return errbuf_set(e, ERR_INVALID,
					  "queue " SHOWN ": memcached takes no such name",
					  SHOWN_OF(name));
	return 0;
}

int queue_memcached_open(const struct queue_memcached_options *o, struct queue **queue,
			 struct errbuf *e)
{
	int err = check_name(o->name, e);
	if (err)
		return err;
	struct memcached *m = mem_zalloc(sizeof(*m));
	err = queue_init(&m->queue, &memcached_ops, o->name, o->workers, o->store, o->clock, e);
	if (err) {
		mem_free(m);
		return err;
	}
	set_options(m, o);
	m->next = 1;
	m->reachable = true;
	pthread_cond_init(&m->something, NULL);
	arena_init(&m->arena, ARENA_MAX_BYTES);
	poll_builder_init(&m->builder);
	buf_init(&m->bytes, POLL_BYTES_MAX);
	err = server_open(o->server, m->queue.name, &m->server, e);
	if (!err) {
		note_reachable(m, look_at_counters(m) == 0);
		if (pthread_create(&m->thread, NULL, run, m))
			err = errbuf_set(e, ERR_RETRY, "a thread cannot be started");
	}
	if (err) {
		release(m);
		return errbuf_prefix(e, err, "queue " SHOWN, SHOWN_OF(o->name));
	}
	*queue = &m->queue;
	return 0;
}
