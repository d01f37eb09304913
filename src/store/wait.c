#include "store/wait.h"

enum { ROW_READ_MAX_BYTES = 2 * STORE_VALUE_MAX_BYTES };

static void wait_read_done(struct store_read *read, int err)
{
	*(struct task_answer *)read->owner = (struct task_answer){true, err};
}

int store_read_wait(struct store_read *read, struct task_queue *queue)
{
	struct task_answer answer = {false, 0};
	if (task_queue_is_stopped(queue))
		return ERR_CANCELLED;
	read->executor = &queue->executor;
	read->done = wait_read_done;
	read->owner = &answer;
	int err = store_read_submit(read);
	while (!err && !answer.there) {
		task_queue_wait(queue);
		if (!answer.there && task_queue_is_stopped(queue))
			store_read_cancel(read);
	}
	return err ? err : answer.err;
}

static void wait_write_done(struct store_write *write, int err)
{
	*(struct task_answer *)write->owner = (struct task_answer){true, err};
}

int store_write_wait(struct store_write *write, struct task_queue *queue)
{
	struct task_answer answer = {false, 0};
	if (task_queue_is_stopped(queue))
		return ERR_CANCELLED;
	write->executor = &queue->executor;
	write->done = wait_write_done;
	write->owner = &answer;
	int err = store_write_submit(write);
	return err ? err : task_queue_wait_for(queue, &answer);
}

/* One slice of the row. */
static int wait_row_slice(struct store_read *read, struct task_queue *queue,
			  int (*each)(const struct store_cell *cell, void *owner), void *owner,
			  struct errbuf *e)
{
	const struct store_cell_scan *scan = &read->requests->cell_scan;
	int err = store_read_wait(read, queue);
	if (err)
		return errbuf_set(e, err, "%s", store_read_sentence(read, err));
	for (size_t i = 0; i < scan->count && !err; i++)
		err = each(&scan->cells[i], owner);
	return err;
}

int store_row_wait(struct store *store, struct task_queue *queue, int64_t now_ms, enum table table,
		   const struct store_parts *key,
		   int (*each)(const struct store_cell *cell, void *owner), void *owner,
		   struct errbuf *e)
{
	struct store_read *read = store_read_new(store, ROW_READ_MAX_BYTES);
	struct store_token token = {0};
	int err = 0;
	for (bool more = true; more && !err;) {
		store_read_reset(read);
		read->now_ms = now_ms;
		struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
		ASSERT(request); /* the first of an empty arena */
		request->cell_scan = (struct store_cell_scan){.table = table, .key = *key};
		request->token = token;
		err = wait_row_slice(read, queue, each, owner, e);
		more = request->more;
		token = request->token;
	}
	store_read_free(read);
	return err;
}
