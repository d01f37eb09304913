/* Boards of one process: reading, and writing under the lock (boards.c), several at once
 * (transfer.c). */
#ifndef BOARD_PRIVATE_H
#define BOARD_PRIVATE_H

#include <pthread.h>

#include "board/boards.h"
#include "board/shipped.h"

enum {
	BOARD_CELL_MAX_BYTES = 4 << 10, /* beside its value */
	BOARD_LOCKS = 64,
};

struct boards {
	struct store *store;
	struct clock *clock;
	struct boards_limits limits;
	struct board_shipped shipped;
	/* One for the boards of a tenant (boards_lock), held from reading what a change depends on
	 * until the change is durable. */
	pthread_mutex_t changing[BOARD_LOCKS];
};

pthread_mutex_t *boards_lock(struct boards *boards, struct slice tenant);

/* ERR_EXISTS with a sentence, and is_stale: the conditions do not hold for what is there now. */
int boards_check_conditions(struct board_change *change, const struct board *now,
			    struct errbuf *e) MUST_CHECK;

/* What is there, the user's before the shipped one. text.data NULL: neither. */
int boards_find(struct boards *boards, struct task_queue *queue, struct slice tenant,
		enum board_kind kind, struct slice id, struct arena *arena, struct board *board,
		struct errbuf *e) MUST_CHECK;

/* ERR_LIMIT with a sentence: there is no room for so many more that are stored. */
int boards_check_room(struct boards *boards, struct task_queue *queue, struct slice tenant,
		      enum board_kind kind, size_t more, struct errbuf *e) MUST_CHECK;

int boards_add_put(struct store_write *write, struct slice tenant,
		   const struct board_document *document, int64_t stamp_us) MUST_CHECK;
/* Submits what was added, if `err` is 0, waits, and frees it. An error gets a sentence. */
int boards_write_wait(struct task_queue *queue, struct store_write *write, int err,
		      struct errbuf *e) MUST_CHECK;

#endif
