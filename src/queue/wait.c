#include "queue/wait.h"

enum { READ_MAX_BYTES = 2 * STORE_VALUE_MAX_BYTES };

struct waited {
	bool done;
	int err;
};

static void read_done(struct store_read *read, int err)
{
	*(struct waited *)read->owner = (struct waited){true, err};
}

static int read_and_wait(struct store_read *read, struct task_queue *queue)
{
	struct waited waited = {false, 0};
	read->owner = &waited;
	int err = store_read_submit(read);
	while (!err && !waited.done)
		task_queue_wait(queue);
	return err ? err : waited.err;
}

static int give_cells(const struct store_cell_scan *scan,
		      int (*each)(const struct store_cell *cell, void *owner), void *owner)
{
	int err = 0;
	for (size_t i = 0; i < scan->count && !err; i++)
		err = each(&scan->cells[i], owner);
	return err;
}

int queue_read_row(struct store *store, struct clock *clock, enum table table,
		   const struct store_parts *key,
		   int (*each)(const struct store_cell *cell, void *owner), void *owner,
		   struct errbuf *e)
{
	struct task_queue queue;
	struct store_token token = {0};
	bool more = true;
	int err = 0;
	task_queue_init(&queue);
	struct store_read *read = store_read_new(store, READ_MAX_BYTES);
	read->executor = &queue.executor;
	read->done = read_done;
	while (more && !err) {
		store_read_reset(read);
		read->now_ms = clock_wall_ms(clock);
		struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
		ASSERT(request); /* the first thing in an arena of this size */
		request->cell_scan = (struct store_cell_scan){.table = table, .key = *key};
		request->token = token;
		err = read_and_wait(read, &queue);
		if (err)
			errbuf_set(e, err, "%s", store_read_sentence(read, err));
		else
			err = give_cells(&request->cell_scan, each, owner);
		more = request->more;
		token = request->token;
	}
	store_read_free(read);
	task_queue_release(&queue);
	return err;
}
