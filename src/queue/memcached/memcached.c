#include "queue/memcached/memcached.h"

#include "base/log.h"
#include "base/stats.h"
#include "queue/memcached/private.h"

/* ---- The counters --------------------------------------------------------------------------- */

/* Memcached was started again, or emptied: what was there and not read has gone. What was read is
 * in the window and stays. */
static void restarted(struct memcached *m, const struct memcached_counters *now)
{
	uint64_t lost = memcached_unread(m);
	log_warn("queue %s: memcached has forgotten it, and with it %llu messages", m->queue.name,
		 (unsigned long long)lost);
	pthread_mutex_lock(&m->queue.lock);
	m->restarts++;
	m->last_added = now->last_added;
	m->last_read = now->last_read;
	m->reading.next = now->last_read + 1;
	reading_begin_again(m, lost);
	putting_forget_numbers(m);
	pthread_mutex_unlock(&m->queue.lock);
	stat_add(STAT_queue_restarts, 1);
	stat_add(STAT_queue_missing, (int64_t)lost);
}

static void memcached_adopt_counters(struct memcached *m, const struct memcached_counters *now)
{
	pthread_mutex_lock(&m->queue.lock);
	m->last_added = now->last_added;
	m->last_read = now->last_read;
	m->reading.next = now->last_read + 1;
	m->known = true;
	pthread_mutex_unlock(&m->queue.lock);
}

static int memcached_read_counters(struct memcached *m)
{
	struct memcached_counters now;
	int err = server_counters(m->server, &now);
	bool forgot = !err && !now.found;
	if (forgot)
		err = server_make_counters(m->server);
	if (forgot && !err)
		err = server_counters(m->server, &now);
	if (err)
		return err;
	if (!m->known) {
		memcached_adopt_counters(m, &now);
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

static bool memcached_work(struct memcached *m)
{
	bool some = false;
	int err = memcached_read_counters(m);
	if (!err)
		err = putting_send(m);
	if (!err)
		err = reading_forget(m);
	if (!err)
		err = reading_go_on(m, &some);
	putting_expire(m);
	note_reachable(m, !err);
	return some;
}

static void *memcached_run(void *context)
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
		if (!stopping && memcached_work(m)) {
			pthread_mutex_lock(&m->queue.lock);
			m->to_do = true;
			pthread_mutex_unlock(&m->queue.lock);
		}
	}
	/* Messages that cannot be forgotten now are delivered again after the next start. */
	if (m->known && m->reachable && reading_forget(m))
		note_reachable(m, false);
	return NULL;
}

/* ---- Life ----------------------------------------------------------------------------------- */

/* Nothing of memcached can be part of the store's write: it is told afterwards. */
static int memcached_acknowledge(UNUSED struct queue_batch *batch, UNUSED struct store_write *write)
{
	return 0;
}

static void memcached_stats(struct queue *queue, struct queue_stats *stats)
{
	struct memcached *m = memcached_of(queue);
	stats->added = m->last_added;
	stats->pending = memcached_pending(m);
	stats->done = stats->added >= stats->pending ? stats->added - stats->pending : 0;
	stats->missing = m->reading.missing;
	stats->restarts = m->restarts;
}

static void memcached_release(struct memcached *m)
{
	reading_release(m);
	putting_release(m);
	server_close(m->server);
	mem_free(m->address);
	pthread_cond_destroy(&m->something);
	queue_release(&m->queue);
	mem_free(m);
}

static void memcached_close(struct queue *queue)
{
	struct memcached *m = memcached_of(queue);
	pthread_mutex_lock(&queue->lock);
	ASSERT(m->putting.under_way == 0);
	m->stopping = true;
	memcached_wake(m);
	pthread_mutex_unlock(&queue->lock);
	pthread_join(m->thread, NULL);
	memcached_release(m);
}

static const struct queue_ops memcached_ops = {
	.put = putting_put,
	.fetch = reading_fetch,
	.acknowledge = memcached_acknowledge,
	.finish = memcached_read_finish,
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
	putting_init(m, o->uncorrelated);
	m->address = mem_copy_text(o->server);
}

/* It becomes part of memcached's keys. */
static int memcached_check_name(struct slice name, struct errbuf *e)
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
	int err = memcached_check_name(o->name, e);
	if (err)
		return err;
	struct memcached *m = mem_zalloc(sizeof(*m));
	err = queue_init(&m->queue, &memcached_ops, o->name, o->workers, o->store, o->clock, e);
	if (err) {
		mem_free(m);
		return err;
	}
	set_options(m, o);
	m->reachable = true;
	pthread_cond_init(&m->something, NULL);
	reading_init(m);
	err = server_open(o->server, m->queue.name, &m->server, e);
	if (!err) {
		note_reachable(m, memcached_read_counters(m) == 0);
		if (pthread_create(&m->thread, NULL, memcached_run, m))
			err = errbuf_set(e, ERR_RETRY, "a thread cannot be started");
	}
	if (err) {
		memcached_release(m);
		return errbuf_prefix(e, err, "queue " SHOWN, SHOWN_OF(o->name));
	}
	*queue = &m->queue;
	return 0;
}
