#include "store/wait.h"

enum { WRITE_TRIES = 3, PUT_MEMORY_BYTES = 64 << 10 /* beside the value */ };
enum { SLICE_MAX_BYTES = 2 * STORE_VALUE_MAX_BYTES, SLICE_ROWS_MAX = 10000 };

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

int store_write_wait_known(struct store_write *write, struct task_queue *queue)
{
	int err = ERR_UNKNOWN;
	for (int i = 0; i < WRITE_TRIES && err == ERR_UNKNOWN; i++)
		err = store_write_wait(write, queue);
	return err;
}

/* What goes through what a request gives; one of these. */
struct wait_each {
	int (*cell)(const struct store_cell *cell, void *owner);
	int (*row)(const struct store_row *row, void *owner);
	void *owner;
};

static int wait_deliver(const struct store_request *request, const struct wait_each *each)
{
	int err = 0;
	for (size_t i = 0; each->cell && i < request->cell_scan.count && !err; i++)
		err = each->cell(&request->cell_scan.cells[i], each->owner);
	for (size_t i = 0; each->row && i < request->enumerate.count && !err; i++)
		err = each->row(&request->enumerate.rows[i], each->owner);
	return err;
}

/* All that `asked` gives, in slices that begin again in the read's memory. */
static int wait_slices(struct store *store, struct task_queue *queue, int64_t now_ms,
		       struct store_request asked, const struct wait_each *each, struct errbuf *e)
{
	struct store_read *read = store_read_new(store, SLICE_MAX_BYTES);
	int err = 0;
	for (bool more = true; more && !err;) {
		store_read_reset(read);
		read->now_ms = now_ms;
		struct store_request *request = store_read_add(read, asked.op);
		ASSERT(request); /* the first of an empty arena */
		*request = asked;
		err = store_read_wait(read, queue);
		if (err)
			errbuf_set(e, err, "%s", store_read_sentence(read, err));
		else
			err = wait_deliver(request, each);
		more = request->more;
		asked.token = request->token;
	}
	store_read_free(read);
	return err;
}

int store_put_if_wait(struct store *store, struct task_queue *queue, enum table table,
		      const struct store_parts *key, const struct store_parts *column,
		      uint64_t version, struct slice value)
{
	struct store_write *write = store_write_new(store, value.len + PUT_MEMORY_BYTES);
	struct store_write_cond *outcome = NULL;
	int err = value.data ? store_cell_put_if(write, table, key, column, version, value, 0,
						 &outcome)
			     : store_cell_delete_if(write, table, key, column, version, &outcome);
	err = err ? err : store_write_wait(write, queue);
	if (!err && !outcome->applied)
		err = ERR_EXISTS;
	store_write_free(write);
	return err;
}

int store_cells_wait(struct store *store, struct task_queue *queue, int64_t now_ms,
		     const struct store_cell_scan *scan,
		     int (*each)(const struct store_cell *cell, void *owner), void *owner,
		     struct errbuf *e)
{
	const struct store_request asked = {.op = STORE_CELL_SCAN, .cell_scan = *scan};
	const struct wait_each cells = {.cell = each, .owner = owner};
	return wait_slices(store, queue, now_ms, asked, &cells, e);
}

int store_row_wait(struct store *store, struct task_queue *queue, int64_t now_ms, enum table table,
		   const struct store_parts *key,
		   int (*each)(const struct store_cell *cell, void *owner), void *owner,
		   struct errbuf *e)
{
	const struct store_cell_scan scan = {.table = table, .key = *key};
	return store_cells_wait(store, queue, now_ms, &scan, each, owner, e);
}

int store_rows_wait(struct store *store, struct task_queue *queue, int64_t now_ms, enum table table,
		    int (*each)(const struct store_row *row, void *owner), void *owner,
		    struct errbuf *e)
{
	const struct store_request asked = {.op = STORE_ENUMERATE,
					    .enumerate = {.table = table, .limit = SLICE_ROWS_MAX}};
	const struct wait_each rows = {.row = each, .owner = owner};
	return wait_slices(store, queue, now_ms, asked, &rows, e);
}
