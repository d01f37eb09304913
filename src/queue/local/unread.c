#include "queue/local/unread.h"

#include "base/hash_set.h"
#include "base/log.h"
#include "store/wait.h"

enum { TOLD_MAX = 1000 };

struct unread {
	bool (*is_read)(void *owner, struct slice name);
	void *owner;
	struct hash_set told;
};

/* A row is a shard of a queue. */
static int unread_tell(const struct store_row *row, void *owner)
{
	struct unread *u = owner;
	struct slice name = row->key.part[0];
	if (!u->is_read(u->owner, name) &&
	    hash_set_add(&u->told, hash128(name.data, name.len, 0), TOLD_MAX))
		log_error("queue " SHOWN ": polls wait in it, but persist_queue has no "
			  "local queue of that name any more; they stay until it has",
			  SHOWN_OF(name));
	return 0;
}

void queue_unread_report(struct store *store, struct clock *clock,
			 bool (*is_read)(void *owner, struct slice name), void *owner)
{
	struct unread unread = {.is_read = is_read, .owner = owner};
	struct task_queue queue;
	struct errbuf e;
	task_queue_init(&queue);
	if (store_rows_wait(store, &queue, clock_wall_ms(clock), TABLE_QUEUE, unread_tell, &unread,
			    &e))
		log_warn("queues that nobody reads were not looked for: %s", e.text);
	task_queue_release(&queue);
	hash_set_release(&unread.told);
}
