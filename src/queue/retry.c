#include "queue/retry.h"

#include "base/log.h"
#include "base/stats.h"
#include "store/wait.h"

enum {
	READ_MAX_BYTES = 8 << 20, /* of a slice; several of the longest messages */
	WRITE_MAX_BYTES = 1 << 20,
};

struct retry {
	struct queue *queue;
	struct task_queue *tasks;
	struct queue_retry_result *result;
	struct errbuf *error;
	struct store_read *read;
	struct store_write *write;
	uint64_t next, until; /* of what lies aside */
	struct retried {
		struct queue_put put;
		uint64_t sequence;
		bool arrived;
	} messages[RETRY_SLICE_MAX];
	size_t count, waiting;
	int err; /* the first of a put */
};

/* ---- Into the queue -------------------------------------------------------------------------- */

static void retry_arrived(struct queue_put *put, int err)
{
	struct retry *r = put->owner;
	CONTAINER_OF(put, struct retried, put)->arrived = !err;
	if (err && !r->err)
		r->err = err;
	r->waiting--;
}

/* 0: on its way, or it stays. Else no more of them can be put now. */
static int retry_put(struct retry *r, const struct store_cell *cell)
{
	struct retried *retried = &r->messages[r->count];
	struct queue_aside_message message;
	int err = queue_aside_decode(cell, &message);
	r->next = message.sequence + 1;
	if (err || message.bytes.len != message.whole_bytes) {
		r->result->kept++;
		return 0;
	}
	*retried = (struct retried){
		.put =
			{
				.key = message.key,
				.bytes = message.bytes,
				.again = true,
				.executor = &r->tasks->executor,
				.done = retry_arrived,
				.owner = r,
			},
		.sequence = message.sequence,
	};
	err = queue_put(r->queue, &retried->put);
	r->result->kept += err == ERR_LIMIT;
	r->count += !err;
	r->waiting += !err;
	return err == ERR_LIMIT ? 0 : err;
}

static void retry_put_slice(struct retry *r, const struct store_cell_scan *scan)
{
	r->count = 0;
	for (size_t i = 0; i < scan->count && !r->err; i++)
		r->err = retry_put(r, &scan->cells[i]);
	while (r->waiting)
		task_queue_wait(r->tasks);
}

/* ---- Away from where they lay ---------------------------------------------------------------- */

/* Carried out also when this is to end: what is in the queue does not lie aside any more. */
static int retry_write(struct store_write *write)
{
	struct task_queue tasks;
	task_queue_init(&tasks);
	int err = store_write_wait(write, &tasks);
	task_queue_release(&tasks);
	return err;
}

static int retry_remove(struct retry *r)
{
	int err = 0;
	store_write_reset(r->write);
	for (size_t i = 0; i < r->count && !err; i++) {
		if (r->messages[i].arrived)
			err = queue_aside_remove(&r->queue->aside, r->messages[i].sequence,
						 r->write);
	}
	err = err ? err : retry_write(r->write);
	if (err)
		return err;
	pthread_mutex_lock(&r->queue->lock);
	for (size_t i = 0; i < r->count; i++) {
		if (!r->messages[i].arrived)
			continue;
		queue_aside_removed(&r->queue->aside, r->messages[i].sequence);
		r->result->given++;
		stat_add(STAT_queue_retried, 1);
	}
	pthread_mutex_unlock(&r->queue->lock);
	return 0;
}

/* ---- Slice by slice -------------------------------------------------------------------------- */

static int retry_read(struct retry *r, struct store_cell_scan **scan)
{
	store_read_reset(r->read);
	r->read->now_ms = clock_wall_ms(r->queue->clock);
	struct store_request *request = store_read_add(r->read, STORE_CELL_SCAN);
	ASSERT(request); /* the first of an empty read */
	*scan = &request->cell_scan;
	int err =
		queue_aside_scan_from(&r->queue->aside, r->next, r->until, &r->read->arena, *scan);
	if (err)
		return err;
	(*scan)->limit = RETRY_SLICE_MAX;
	err = store_read_wait(r->read, r->tasks);
	return err ? errbuf_set(r->error, err, "%s", store_read_sentence(r->read, err)) : 0;
}

static int retry_all(struct retry *r)
{
	struct store_cell_scan *scan;
	int err = 0;
	while (!err && r->next < r->until) {
		err = retry_read(r, &scan);
		if (err || !scan->count)
			break;
		retry_put_slice(r, scan);
		err = retry_remove(r);
		err = err ? err : r->err;
	}
	return err;
}

/* False: another has begun. */
static bool retry_begin(struct retry *r)
{
	struct queue *queue = r->queue;
	pthread_mutex_lock(&queue->lock);
	bool other = queue->retries;
	queue->retries = true;
	r->next = queue->aside.first;
	r->until = queue->aside.next;
	pthread_mutex_unlock(&queue->lock);
	return !other;
}

static void retry_end(struct retry *r)
{
	pthread_mutex_lock(&r->queue->lock);
	r->queue->retries = false;
	pthread_mutex_unlock(&r->queue->lock);
	if (r->result->given)
		log_info("queue %s: %zu messages that lay aside are tried again", r->queue->name,
			 r->result->given);
}

int queue_retry(struct queue *queue, struct task_queue *tasks, struct queue_retry_result *result,
		struct errbuf *e)
{
	struct retry r = {.queue = queue, .tasks = tasks, .result = result, .error = e};
	*result = (struct queue_retry_result){0};
	e->text[0] = 0;
	if (!retry_begin(&r))
		return errbuf_set(e, ERR_EXISTS,
				  "what lies aside there is being tried again already");
	r.read = store_read_new(queue->store, READ_MAX_BYTES);
	r.write = store_write_new(queue->store, WRITE_MAX_BYTES);
	int err = retry_all(&r);
	store_read_free(r.read);
	store_write_free(r.write);
	retry_end(&r);
	if (err && !e->text[0])
		errbuf_set(e, err, "%s",
			   err == ERR_FULL ? "the queue has no room for more" : err_text(err));
	return err;
}
