#include "queue/retry.h"

#include "base/log.h"
#include "base/stats.h"

enum {
	READ_MAX_BYTES = 8 << 20, /* of a slice; several of the longest messages */
	WRITE_MAX_BYTES = 1 << 20,
};

static void read_slice(struct queue_retry *r);

/* ---- The end --------------------------------------------------------------------------------- */

static void end(struct queue_retry *r, int err)
{
	struct queue *queue = r->queue;
	store_read_free(r->read);
	store_write_free(r->write);
	if (err && !r->error.text[0])
		errbuf_set(&r->error, err, "%s",
			   err == ERR_FULL ? "the queue has no room for more" : err_text(err));
	if (r->given)
		log_info("queue %s: %zu messages that lay aside are tried again", queue->name,
			 r->given);
	pthread_mutex_lock(&queue->lock);
	queue->retries = false;
	pthread_mutex_unlock(&queue->lock);
	r->done(r, err);
}

/* ---- What is in the queue leaves the place aside --------------------------------------------- */

static void removed(struct store_write *write, int err)
{
	struct queue_retry *r = write->owner;
	if (err) {
		end(r, err);
		return;
	}
	pthread_mutex_lock(&r->queue->lock);
	for (size_t i = 0; i < r->count; i++) {
		if (!r->messages[i].arrived)
			continue;
		queue_aside_removed(&r->queue->aside, r->messages[i].sequence);
		r->given++;
		stat_add(STAT_queue_retried, 1);
	}
	pthread_mutex_unlock(&r->queue->lock);
	if (r->err)
		end(r, r->err);
	else
		read_slice(r);
}

static void remove_slice(struct queue_retry *r)
{
	int err = 0;
	store_write_reset(r->write);
	for (size_t i = 0; i < r->count && !err; i++) {
		if (r->messages[i].arrived)
			err = queue_aside_remove(&r->queue->aside, r->messages[i].sequence,
						 r->write);
	}
	if (!err)
		err = store_write_submit(r->write);
	if (err)
		end(r, err);
}

/* ---- Into the queue -------------------------------------------------------------------------- */

static void one_less_waits(struct queue_retry *r)
{
	if (--r->waiting == 0)
		remove_slice(r);
}

static void arrived(struct queue_put *put, int err)
{
	struct queue_retry *r = put->owner;
	CONTAINER_OF(put, struct retried, put)->arrived = !err;
	if (err && !r->err)
		r->err = err;
	one_less_waits(r);
}

/* 0: on its way, or it stays. Else no more of them can be put now. */
static int put_one(struct queue_retry *r, const struct store_cell *cell)
{
	struct retried *retried = &r->messages[r->count];
	struct queue_aside_message message;
	int err = queue_aside_decode(cell, &message);
	r->next = message.sequence + 1;
	if (err || message.bytes.len != message.whole_bytes) {
		r->kept++;
		return 0;
	}
	*retried = (struct retried){
		.put =
			{
				.key = message.key,
				.bytes = message.bytes,
				.again = true,
				.executor = r->executor,
				.done = arrived,
				.owner = r,
			},
		.sequence = message.sequence,
	};
	err = queue_put(r->queue, &retried->put);
	r->kept += err == ERR_LIMIT;
	r->count += !err;
	r->waiting += !err;
	return err == ERR_LIMIT ? 0 : err;
}

static void slice_read(struct store_read *read, int err)
{
	struct queue_retry *r = read->owner;
	const struct store_cell_scan *scan = &r->request->cell_scan;
	if (err)
		errbuf_set(&r->error, err, "%s", store_read_sentence(read, err));
	if (err || !scan->count) {
		end(r, err);
		return;
	}
	r->count = 0;
	r->waiting = 1; /* this loop */
	for (size_t i = 0; i < scan->count && !r->err; i++)
		r->err = put_one(r, &scan->cells[i]);
	one_less_waits(r);
}

static void read_slice(struct queue_retry *r)
{
	if (r->cancelled || r->next >= r->until) {
		end(r, r->cancelled ? ERR_CANCELLED : 0);
		return;
	}
	store_read_reset(r->read);
	r->read->now_ms = clock_wall_ms(r->queue->clock);
	r->request = store_read_add(r->read, STORE_CELL_SCAN);
	int err = r->request ? queue_aside_scan_from(&r->queue->aside, r->next, r->until,
						     &r->read->arena, &r->request->cell_scan)
			     : ERR_LIMIT;
	if (!err) {
		r->request->cell_scan.limit = RETRY_SLICE_MAX;
		err = store_read_submit(r->read);
	}
	if (err)
		end(r, err);
}

int queue_retry_start(struct queue_retry *r)
{
	struct queue *queue = r->queue;
	pthread_mutex_lock(&queue->lock);
	bool other = queue->retries;
	queue->retries = true;
	r->next = queue->aside.first;
	r->until = queue->aside.next;
	pthread_mutex_unlock(&queue->lock);
	if (other)
		return ERR_BUSY;
	r->read = store_read_new(queue->store, READ_MAX_BYTES);
	r->read->executor = r->executor;
	r->read->done = slice_read;
	r->read->owner = r;
	r->write = store_write_new(queue->store, WRITE_MAX_BYTES);
	r->write->executor = r->executor;
	r->write->done = removed;
	r->write->owner = r;
	read_slice(r);
	return 0;
}
