/* Puts: a poll becomes items, one for each column as esmond has one OID a message, and the thread
 * sends them. */
#include "base/stats.h"
#include "queue/memcached/private.h"
#include "wire/esmond_message.h"

enum { ARENA_MAX_BYTES = 256 << 20 }; /* while one message is written */

/* A put until memcached has all its items. */
struct memcached_put {
	struct memcached_put *next;
	struct queue_put *put;
	int64_t until_ms;
	struct slice *items; /* owned, as JSON */
	size_t item_count, sent;
	uint64_t number; /* of the item to be sent; 0: it has none yet */
	int err;
	struct task task;
};

/* ---- What is put ---------------------------------------------------------------------------- */

static bool is_uncorrelated(const struct memcached *m, struct slice oidset)
{
	for (size_t i = 0; i < m->options.uncorrelated_count; i++)
		if (slice_equal(m->putting.uncorrelated[i], oidset))
			return true;
	return false;
}

static void free_pending(struct memcached_put *pending)
{
	for (size_t i = 0; i < pending->item_count; i++)
		memcached_free_copy(pending->items[i]);
	mem_free(pending->items);
	mem_free(pending);
}

static int add_message(struct memcached_put *pending, struct buf *json, int err)
{
	if (err || json->len > SERVER_ITEM_MAX_BYTES)
		return ERR_LIMIT;
	pending->items[pending->item_count++] = memcached_copy(buf_slice(json));
	buf_clear(json);
	return 0;
}

static int write_messages(const struct memcached *m, struct memcached_put *pending,
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

/* A message that nobody could read when it came; it may be read now. */
static int copy_item(struct memcached_put *pending, struct slice item)
{
	if (item.len > SERVER_ITEM_MAX_BYTES)
		return ERR_LIMIT;
	pending->items = mem_alloc_array(1, sizeof(*pending->items));
	pending->items[pending->item_count++] = memcached_copy(item);
	return 0;
}

static int make_pending(const struct memcached *m, struct queue_put *put,
			struct memcached_put **out)
{
	struct arena arena;
	struct poll poll;
	int err = poll_open(put->bytes, &poll, NULL);
	bool is_poll = !err;
	if (err && !put->again)
		return err;
	struct memcached_put *pending = mem_zalloc(sizeof(*pending));
	pending->put = put;
	pending->until_ms = memcached_now_ms(m) + m->options.put_timeout_ms;
	arena_init(&arena, ARENA_MAX_BYTES);
	err = is_poll ? write_messages(m, pending, &poll, &arena) : copy_item(pending, put->bytes);
	arena_release(&arena);
	if (err)
		free_pending(pending);
	else
		*out = pending;
	return err;
}

int putting_put(struct queue *queue, struct queue_put *put)
{
	struct memcached *m = memcached_of(queue);
	struct memcached_put *pending = NULL;
	int err = make_pending(m, put, &pending);
	if (err)
		return err;
	pthread_mutex_lock(&queue->lock);
	if (memcached_pending(m) + m->putting.items + pending->item_count >
	    m->options.messages_max) {
		pthread_mutex_unlock(&queue->lock);
		free_pending(pending);
		return ERR_FULL;
	}
	if (m->putting.last)
		m->putting.last->next = pending;
	else
		m->putting.first = pending;
	m->putting.last = pending;
	m->putting.items += pending->item_count;
	m->putting.under_way++;
	memcached_wake(m);
	pthread_mutex_unlock(&queue->lock);
	return 0;
}

static void memcached_put_done(struct task *task)
{
	struct memcached_put *pending = CONTAINER_OF(task, struct memcached_put, task);
	struct queue_put *put = pending->put;
	int err = pending->err;
	free_pending(pending);
	put->done(put, err);
}

static void memcached_put_end(struct memcached *m, struct memcached_put *pending, int err)
{
	pthread_mutex_lock(&m->queue.lock);
	m->putting.first = pending->next;
	if (!m->putting.first)
		m->putting.last = NULL;
	m->putting.items -= pending->item_count - pending->sent;
	m->putting.under_way--;
	pthread_mutex_unlock(&m->queue.lock);
	if (!err)
		stat_add(STAT_queue_added, (int64_t)pending->item_count);
	pending->err = err;
	pending->task.run = memcached_put_done;
	pending->put->executor->post(pending->put->executor, &pending->task);
}

/* ---- On the thread -------------------------------------------------------------------------- */

/* A number that was given is kept until its item is there, so that no hole comes of a connection
 * that broke in between. */
static int send_items(struct memcached *m, struct memcached_put *pending)
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
		m->putting.items--;
		pending->sent++;
		pthread_mutex_unlock(&m->queue.lock);
		pending->number = 0;
	}
	return 0;
}

static struct memcached_put *first_put(struct memcached *m)
{
	pthread_mutex_lock(&m->queue.lock);
	struct memcached_put *pending = m->putting.first;
	pthread_mutex_unlock(&m->queue.lock);
	return pending;
}

int putting_send(struct memcached *m)
{
	struct memcached_put *pending;
	while ((pending = first_put(m))) {
		int err = send_items(m, pending);
		if (err)
			return err;
		memcached_put_end(m, pending, 0);
	}
	return 0;
}

void putting_expire(struct memcached *m)
{
	struct memcached_put *pending;
	while ((pending = first_put(m)) && memcached_now_ms(m) >= pending->until_ms)
		memcached_put_end(m, pending, ERR_TIMEOUT);
}

void putting_forget_numbers(struct memcached *m)
{
	for (struct memcached_put *p = m->putting.first; p; p = p->next)
		p->number = 0;
}

/* ---- Life ----------------------------------------------------------------------------------- */

void putting_init(struct memcached *m, const struct slice *uncorrelated)
{
	size_t count = m->options.uncorrelated_count;
	m->putting.uncorrelated = mem_alloc_array(count + 1, sizeof(*m->putting.uncorrelated));
	for (size_t i = 0; i < count; i++)
		m->putting.uncorrelated[i] = memcached_copy(uncorrelated[i]);
}

void putting_release(struct memcached *m)
{
	for (size_t i = 0; i < m->options.uncorrelated_count; i++)
		memcached_free_copy(m->putting.uncorrelated[i]);
	mem_free(m->putting.uncorrelated);
}
