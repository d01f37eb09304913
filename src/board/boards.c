#include "board/boards.h"

#include "base/hash.h"
#include "board/private.h"
#include "http/http.h"
#include "store/wait.h"

enum { BOARDS_READ_MAX_BYTES = 2 << 20 };

struct boards *boards_new(struct store *store, struct clock *clock,
			  const struct boards_limits *limits)
{
	struct boards *boards = mem_zalloc(sizeof(*boards));
	boards->store = store;
	boards->clock = clock;
	boards->limits = *limits;
	board_shipped_init(&boards->shipped);
	for (size_t i = 0; i < BOARD_LOCKS; i++)
		pthread_mutex_init(&boards->changing[i], NULL);
	return boards;
}

void boards_free(struct boards *boards)
{
	if (!boards)
		return;
	for (size_t i = 0; i < BOARD_LOCKS; i++)
		pthread_mutex_destroy(&boards->changing[i]);
	board_shipped_release(&boards->shipped);
	mem_free(boards);
}

pthread_mutex_t *boards_lock(struct boards *boards, struct slice tenant)
{
	return &boards->changing[hash64(tenant.data, tenant.len, 0) % BOARD_LOCKS];
}

static struct store_parts boards_row(struct slice tenant, enum board_kind kind)
{
	return (struct store_parts){{tenant, slice_of(board_kinds[kind].row)}};
}

static struct store_parts boards_column(struct slice id)
{
	return (struct store_parts){{SLICE("c"), id}};
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int boards_read(struct boards *boards, struct task_queue *queue, struct slice tenant,
		       enum board_kind kind, struct slice id, struct arena *arena,
		       struct slice *text, struct errbuf *e)
{
	struct store_read *read = store_read_new(boards->store, BOARDS_READ_MAX_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get = (struct store_cell_get){.table = TABLE_CHUKWA_METADATA,
						    .key = boards_row(tenant, kind),
						    .column = boards_column(id)};
	read->now_ms = clock_wall_ms(boards->clock);
	int err = store_read_wait(read, queue);
	const struct store_cell_get *got = &request->cell_get;
	if (err)
		err = errbuf_set(e, err, "%s", store_read_sentence(read, err));
	else if (got->found && !(*text = arena_copy(arena, got->cell.value)).data)
		err = errbuf_set(e, ERR_LIMIT, "the boards take more memory than is allowed for");
	store_read_free(read);
	return err;
}

int boards_find(struct boards *boards, struct task_queue *queue, struct slice tenant,
		enum board_kind kind, struct slice id, struct arena *arena, struct board *board,
		struct errbuf *e)
{
	*board = (struct board){.id = id};
	if (!id.len || id.len > BOARD_ID_MAX_BYTES)
		return 0;
	int err = boards_read(boards, queue, tenant, kind, id, arena, &board->text, e);
	if (err || board->text.data)
		return err;
	const struct board_document *shipped = board_shipped_find(&boards->shipped, kind, id);
	if (shipped)
		*board = (struct board){shipped->id, shipped->text, true};
	return 0;
}

static int boards_not_found(enum board_kind kind, struct slice id, struct errbuf *e)
{
	return errbuf_set(e, ERR_NOT_FOUND, "there is no %s \"" SHOWN "\"", board_kinds[kind].name,
			  SHOWN_OF(id));
}

int boards_get(struct boards *boards, struct task_queue *queue, struct slice tenant,
	       enum board_kind kind, struct slice id, struct arena *arena, struct board *board,
	       struct errbuf *e)
{
	int err = boards_find(boards, queue, tenant, kind, id, arena, board, e);
	return err || board->text.data ? err : boards_not_found(kind, id, e);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

struct boards_walk {
	const struct board_document *shipped, *shipped_end; /* those that are still to come */
	struct slice prefix;
	size_t skip, left;
	int (*each)(const struct board *board, void *owner);
	void *owner;
};

static int boards_walk_give(struct boards_walk *walk, const struct board *board)
{
	if (!slice_starts_with(board->id, walk->prefix) || !walk->left)
		return 0;
	if (walk->skip) {
		walk->skip--;
		return 0;
	}
	walk->left--;
	return walk->each(board, walk->owner);
}

/* The shipped ones before `id`, and not one with it; of NULL data all. */
static int boards_walk_shipped(struct boards_walk *walk, struct slice id)
{
	int err = 0;
	for (; !err && walk->shipped < walk->shipped_end; walk->shipped++) {
		int order = id.data ? slice_compare(walk->shipped->id, id) : -1;
		if (order > 0)
			return 0;
		if (order < 0)
			err = boards_walk_give(walk, &(struct board){walk->shipped->id,
								     walk->shipped->text, true});
	}
	return err;
}

static int boards_walk_cell(const struct store_cell *cell, void *owner)
{
	struct boards_walk *walk = owner;
	const struct board board = {cell->column.part[1], cell->value, false};
	int err = boards_walk_shipped(walk, board.id);
	return err ? err : boards_walk_give(walk, &board);
}

int boards_list(struct boards *boards, struct task_queue *queue,
		const struct boards_listing *listing,
		int (*each)(const struct board *board, void *owner), void *owner, struct errbuf *e)
{
	char past[BOARD_ID_MAX_BYTES + 1];
	const struct board_document *shipped = boards->shipped.list[listing->kind];
	struct boards_walk walk = {.shipped = shipped,
				   .shipped_end = shipped + boards->shipped.count[listing->kind],
				   .prefix = listing->prefix,
				   .skip = listing->offset,
				   .left = listing->limit,
				   .each = each,
				   .owner = owner};
	if (listing->prefix.len > BOARD_ID_MAX_BYTES)
		return 0;
	/* No id has this byte, which is not of UTF-8. */
	memcpy(past, listing->prefix.data, listing->prefix.len);
	past[listing->prefix.len] = (char)0xff;
	const struct store_cell_scan scan = {
		.table = TABLE_CHUKWA_METADATA,
		.key = boards_row(listing->tenant, listing->kind),
		.from = boards_column(listing->prefix),
		.to = boards_column((struct slice){past, listing->prefix.len + 1}),
		.limit = listing->offset + listing->limit,
	};
	int err = store_cells_wait(boards->store, queue, clock_wall_ms(boards->clock), &scan,
				   boards_walk_cell, &walk, e);
	return err ? err : boards_walk_shipped(&walk, (struct slice){NULL, 0});
}

static int boards_count_cell(UNUSED const struct store_cell *cell, void *owner)
{
	++*(size_t *)owner;
	return 0;
}

int boards_check_room(struct boards *boards, struct task_queue *queue, struct slice tenant,
		      enum board_kind kind, size_t more, struct errbuf *e)
{
	size_t count = 0;
	const struct store_cell_scan scan = {
		.table = TABLE_CHUKWA_METADATA,
		.key = boards_row(tenant, kind),
		.from = boards_column(SLICE("")),
		.to = boards_column(SLICE("\xff")),
		.limit = boards->limits.each_max,
	};
	int err = store_cells_wait(boards->store, queue, clock_wall_ms(boards->clock), &scan,
				   boards_count_cell, &count, e);
	if (err || count + more <= boards->limits.each_max)
		return err;
	return errbuf_set(e, ERR_LIMIT,
			  "the tenant has %zu %ss already; boards.each_max allows for %zu", count,
			  board_kinds[kind].name, boards->limits.each_max);
}

/* ---- Changes --------------------------------------------------------------------------------- */

int boards_check_conditions(struct board_change *change, const struct board *now, struct errbuf *e)
{
	char tag[BOARD_TAG_BYTES] = "";
	bool is_there = now->text.data;
	if (is_there)
		board_tag(now->text, tag);
	if (change->if_match.data)
		change->is_stale =
			!is_there || !http_tag_is_listed(change->if_match, slice_of(tag));
	if (change->if_none_match.data)
		change->is_stale |=
			is_there && http_tag_is_listed(change->if_none_match, slice_of(tag));
	if (!change->is_stale)
		return 0;
	return errbuf_set(e, ERR_EXISTS,
			  is_there ? "the %s \"" SHOWN
				     "\" is another one by now: somebody else has "
				     "saved it meanwhile"
				   : "there is no %s \"" SHOWN "\" any more",
			  board_kinds[change->kind].name, SHOWN_OF(now->id));
}

/* What is under change->id goes to another id, where nothing may be. */
static int boards_check_rename(struct boards *boards, struct task_queue *queue,
			       const struct board_change *change, const struct board *now,
			       const struct board_document *document, struct arena *arena,
			       struct errbuf *e)
{
	const char *name = board_kinds[change->kind].name;
	struct board there;
	if (now->is_shipped)
		return errbuf_set(e, ERR_EXISTS,
				  "the %s \"" SHOWN "\" is part of the program and keeps its %s",
				  name, SHOWN_OF(change->id), board_kinds[change->kind].id_member);
	if (!now->text.data)
		return boards_not_found(change->kind, change->id, e);
	int err = boards_find(boards, queue, change->tenant, change->kind, document->id, arena,
			      &there, e);
	if (err || !there.text.data)
		return err;
	return errbuf_set(e, ERR_EXISTS, "there is a %s \"" SHOWN "\" already", name,
			  SHOWN_OF(document->id));
}

int boards_write_wait(struct task_queue *queue, struct store_write *write, int err,
		      struct errbuf *e)
{
	/* The same again is no other change. */
	err = err ? err : store_write_wait_known(write, queue);
	if (err)
		errbuf_set(e, err, "%s", write->error.text[0] ? write->error.text : err_text(err));
	store_write_free(write);
	return err;
}

int boards_add_put(struct store_write *write, struct slice tenant,
		   const struct board_document *document, int64_t stamp_us)
{
	const struct store_parts row = boards_row(tenant, document->kind);
	const struct store_parts column = boards_column(document->id);
	return store_cell_put(write, TABLE_CHUKWA_METADATA, &row, &column, document->text, stamp_us,
			      0);
}

static int boards_add_delete(struct store_write *write, const struct board_change *change,
			     int64_t stamp_us)
{
	const struct store_parts row = boards_row(change->tenant, change->kind);
	const struct store_parts column = boards_column(change->id);
	return store_cell_delete(write, TABLE_CHUKWA_METADATA, &row, &column, stamp_us);
}

static int boards_write(struct boards *boards, struct task_queue *queue,
			const struct board_change *change, const struct board_document *document,
			bool is_renamed, struct errbuf *e)
{
	struct store_write *write =
		store_write_new(boards->store, document->text.len + 2 * BOARD_CELL_MAX_BYTES);
	int64_t stamp_us = store_stamp(boards->store);
	int err = boards_add_put(write, change->tenant, document, stamp_us);
	if (!err && is_renamed)
		err = boards_add_delete(write, change, stamp_us);
	return boards_write_wait(queue, write, err, e);
}

/* With the lock. */
static int boards_put_changing(struct boards *boards, struct task_queue *queue,
			       struct board_change *change, const struct board_document *document,
			       struct arena *arena, struct errbuf *e)
{
	struct board now;
	struct slice id = change->id.data ? change->id : document->id;
	bool is_renamed = !slice_equal(id, document->id);
	int err = boards_find(boards, queue, change->tenant, change->kind, id, arena, &now, e);
	err = err ? err : boards_check_conditions(change, &now, e);
	if (err)
		return err;
	if (!change->id.data && now.text.data)
		return errbuf_set(e, ERR_EXISTS, "there is a %s \"" SHOWN "\" already",
				  board_kinds[change->kind].name, SHOWN_OF(id));
	change->is_new = !now.text.data;
	if (is_renamed)
		err = boards_check_rename(boards, queue, change, &now, document, arena, e);
	else if (!now.text.data || now.is_shipped)
		err = boards_check_room(boards, queue, change->tenant, change->kind, 1, e);
	return err ? err : boards_write(boards, queue, change, document, is_renamed, e);
}

int boards_put(struct boards *boards, struct task_queue *queue, struct board_change *change,
	       const struct board_document *document, struct errbuf *e)
{
	struct arena arena;
	ASSERT(document->kind == change->kind);
	arena_init(&arena, BOARDS_READ_MAX_BYTES);
	pthread_mutex_lock(boards_lock(boards, change->tenant));
	int err = boards_put_changing(boards, queue, change, document, &arena, e);
	pthread_mutex_unlock(boards_lock(boards, change->tenant));
	arena_release(&arena);
	return err;
}

/* With the lock. */
static int boards_delete_changing(struct boards *boards, struct task_queue *queue,
				  struct board_change *change, struct arena *arena,
				  struct errbuf *e)
{
	struct board now;
	int err = boards_find(boards, queue, change->tenant, change->kind, change->id, arena, &now,
			      e);
	err = err ? err : boards_check_conditions(change, &now, e);
	if (err)
		return err;
	if (!now.text.data)
		return boards_not_found(change->kind, change->id, e);
	if (now.is_shipped)
		return errbuf_set(e, ERR_EXISTS,
				  "the %s \"" SHOWN "\" is part of the program and stays",
				  board_kinds[change->kind].name, SHOWN_OF(change->id));
	struct store_write *write = store_write_new(boards->store, 2 * BOARD_CELL_MAX_BYTES);
	err = boards_add_delete(write, change, store_stamp(boards->store));
	return boards_write_wait(queue, write, err, e);
}

int boards_delete(struct boards *boards, struct task_queue *queue, struct board_change *change,
		  struct errbuf *e)
{
	struct arena arena;
	arena_init(&arena, BOARDS_READ_MAX_BYTES);
	pthread_mutex_lock(boards_lock(boards, change->tenant));
	int err = boards_delete_changing(boards, queue, change, &arena, e);
	pthread_mutex_unlock(boards_lock(boards, change->tenant));
	arena_release(&arena);
	change->is_back = board_shipped_find(&boards->shipped, change->kind, change->id);
	return err;
}
