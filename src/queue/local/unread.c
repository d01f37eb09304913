#include "queue/local/unread.h"

#include "base/log.h"

enum { SLICE_MAX_BYTES = 4 << 20, SLICE_ROWS_MAX = 1000 };

static void unread_end(struct queue_unread *u, int err)
{
	if (err)
		log_warn("queues that nobody reads were not looked for: %s",
			 store_read_sentence(u->read, err));
	store_read_free(u->read);
	u->read = NULL;
}

/* Rows of one queue, which are its shards, follow each other. */
static void unread_tell(const struct queue_unread *u)
{
	const struct store_enumerate *rows = &u->request->enumerate;
	for (size_t i = 0; i < rows->count; i++) {
		struct slice name = rows->rows[i].key.part[0];
		bool again = i && slice_equal(name, rows->rows[i - 1].key.part[0]);
		if (!again && !u->is_read(u->owner, name))
			log_error("queue " SHOWN ": polls wait in it, but persist_queue has no "
				  "local queue of that name any more; they stay until it has",
				  SHOWN_OF(name));
	}
}

static void unread_rows_read(struct store_read *read, int err)
{
	struct queue_unread *u = read->owner;
	if (!err)
		unread_tell(u);
	if (!err && u->request->more)
		err = store_read_submit(read);
	else if (!err)
		unread_end(u, 0);
	if (err)
		unread_end(u, err);
}

void queue_unread_look(struct queue_unread *u)
{
	u->read = store_read_new(u->store, SLICE_MAX_BYTES);
	u->read->executor = u->executor;
	u->read->done = unread_rows_read;
	u->read->owner = u;
	u->read->now_ms = clock_wall_ms(u->clock);
	u->request = store_read_add(u->read, STORE_ENUMERATE);
	ASSERT(u->request); /* the first of an empty read */
	u->request->enumerate.table = TABLE_QUEUE;
	u->request->enumerate.limit = SLICE_ROWS_MAX;
	int err = store_read_submit(u->read);
	if (err)
		unread_end(u, err);
}
