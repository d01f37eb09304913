/* The writer: one thread that turns batches into commits.
 *
 * A cycle: take what waits; begin a transaction; put pending registrations, a slice of upkeep
 * (maintain.c), then each batch (samples into journal pages, cells, forgets); commit; show the
 * samples in the heads; complete the batches. What an error does to a cycle stands at after_error.
 *
 * What is in memory changes only after the commit: until then pages and sequences are the cycle's
 * own, and heads are untouched. So an error before it needs nothing taken back here; registrations
 * and upkeep, which do, are told. */
#include <errno.h>

#include "base/fault.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "store/lmdb/engine.h"

enum {
	CYCLE_BYTES_MAX = 32 << 20, /* of batches in one transaction */
	IDLE_WAIT_MS = 200,         /* and that of batches that can wait */
	APPLY_RECORDS = 512,        /* under one hold of the write lock */
};

/* What one transaction holds. */
struct cycle {
	struct engine *engine;
	MDB_txn *txn;
	struct task *batches; /* store_write.task */
	struct registry_written written;
	struct journal_page page;
	struct journal_entry *pages;
	size_t page_count, page_cap;
	uint64_t sequence;      /* of the next record */
	uint64_t last_deletion; /* its sequence; 0: there was none */
	int64_t now_ms;
	bool has_cells;
	uint32_t journaled;            /* bit by table: it has rows in these pages */
	bool with_upkeep, more_upkeep; /* more: there is more to do at once */
	struct store_write *blamed;    /* failed for a reason of its own */
	struct removal_slice removal;
	bool removal_left; /* some batch goes on in the next cycle */
};

static struct store_write *write_of(struct task *task)
{
	return CONTAINER_OF(task, struct store_write, task);
}

/* ---- The queue ------------------------------------------------------------------------------- */

static bool batch_grows(const struct store_write *write)
{
	for (const struct store_stage *s = write->stages; s; s = s->next) {
		if (s->grows)
			return true;
	}
	return false;
}

int writer_submit(struct store_write *write)
{
	struct engine *engine = engine_of(write->store);
	if (engine->dead)
		return ERR_READ_ONLY;
	if (engine->full && batch_grows(write)) {
		stat_add(STAT_store_refused_full, 1);
		return room_sentence(engine, &write->error);
	}
	pthread_mutex_lock(&engine->queue_lock);
	int err = engine->stopping ? ERR_CANCELLED : 0;
	if (!err && engine->queue_bytes > engine->options.queue_max_bytes)
		err = ERR_BUSY;
	if (!err) {
		write->task.next = NULL;
		if (engine->queue_last)
			engine->queue_last->next = &write->task;
		else
			engine->queue_first = &write->task;
		engine->queue_last = &write->task;
		engine->queue_bytes += write->arena.used_bytes;
		engine->queue_hurries |= !write->can_wait || engine->queue_bytes > CYCLE_BYTES_MAX;
		if (engine->queue_hurries)
			pthread_cond_signal(&engine->queue_arrived);
	}
	pthread_mutex_unlock(&engine->queue_lock);
	if (err == ERR_BUSY) {
		stat_add(STAT_store_refused_busy, 1);
		errbuf_set(&write->error, err,
			   "busy: writes of store.queue_max (%llu bytes) wait for their commit",
			   (unsigned long long)engine->options.queue_max_bytes);
	}
	return err;
}

/* So that what came before it is in the heads, and what comes after it finds series dead or samples
 * in their new class. */
static bool is_alone(const struct store_write *write)
{
	return forget_wanted(write) || rekey_wanted(write);
}

/* Up to CYCLE_BYTES_MAX of what waits, at least one batch if there is any. Removals that go on
 * (they stand first) come in addition, and with whoever is to be alone: they touch no samples. */
static struct task *writer_next_batches(struct engine *engine)
{
	struct task *first = engine->queue_first, *last = NULL;
	uint64_t bytes = 0, bytes_going_on = 0;
	for (struct task *t = first; t && bytes - bytes_going_on < CYCLE_BYTES_MAX; t = t->next) {
		bool goes_on = removal_goes_on(write_of(t)), alone = is_alone(write_of(t));
		if (alone && bytes > bytes_going_on)
			break;
		bytes += write_of(t)->arena.used_bytes;
		if (goes_on)
			bytes_going_on += write_of(t)->arena.used_bytes;
		last = t;
		if (alone)
			break;
	}
	if (!last)
		return NULL;
	engine->queue_first = last->next;
	if (!engine->queue_first)
		engine->queue_last = NULL;
	engine->queue_hurries = engine->queue_first != NULL;
	last->next = NULL;
	engine->queue_bytes -= bytes < engine->queue_bytes ? bytes : engine->queue_bytes;
	return first;
}

static void writer_run_done(struct task *task)
{
	struct store_write *write = write_of(task);
	store_write_end(write);
}

static void writer_complete(struct store_write *write, int err)
{
	unfold_release(write);
	removal_ended(write);
	if (err)
		write->err = err;
	if (err == ERR_FULL && !write->error.text[0])
		err = room_sentence(engine_of(write->store), &write->error);
	if (!err)
		write->stages_kept = write->stage_count;
	write->task.run = writer_run_done;
	write->executor->post(write->executor, &write->task);
}

static void complete_all(struct task *batches, int err)
{
	while (batches) {
		struct task *next = batches->next;
		writer_complete(write_of(batches), err);
		batches = next;
	}
}

/* ---- Journal pages --------------------------------------------------------------------------- */

static int flush_page(struct cycle *cycle)
{
	struct journal_page *page = &cycle->page;
	if (page->records == 0)
		return 0;
	uint8_t key[8];
	journal_page_finish(page, key);
	MDB_val k = {sizeof(key), key}, v = {page->used, page->bytes};
	int err = env_error(
		mdb_put(cycle->txn, cycle->engine->env.dbi[DB_JOURNAL], &k, &v, MDB_APPEND));
	if (err)
		return err;
	GROW(cycle->pages, cycle->page_cap, cycle->page_count + 1);
	cycle->pages[cycle->page_count++] = (struct journal_entry){
		page->first_sequence, cycle->now_ms, (uint32_t)page->used, page->records};
	journal_page_init(page, cycle->sequence, cycle->now_ms);
	return 0;
}

static int journal_record(struct cycle *cycle, const uint8_t *record, size_t len)
{
	cycle->journaled |= UINT32_C(1) << record_table(record);
	if (!journal_page_add(&cycle->page, record, len)) {
		int err = flush_page(cycle);
		if (err)
			return err;
		bool added = journal_page_add(&cycle->page, record, len);
		ASSERT(added);
	}
	cycle->sequence++;
	return 0;
}

/* Whether a row has a series that was forgotten since it was added. */
static bool has_dead_series(struct cycle *cycle, const struct store_write *write,
			    const struct store_stage *stage, const struct record *row)
{
	unsigned fields = (unsigned)schema[row->sheet.table].field_count;
	for (unsigned c = 0; c < row->columns; c += fields) {
		uint64_t handle =
			handle_of(row->shape, row->ordinal, (row->first_column + c) / fields);
		if (registry_is_dead(&cycle->engine->registry, handle) ||
		    forget_happened(write, stage, handle))
			return true;
	}
	return false;
}

/* One by one: deletions, and rows whose series may have been forgotten. What is cleared has been
 * taken out of the extents with its group. */
static int journal_checked(struct cycle *cycle, const struct store_write *write,
			   const struct store_stage *stage, const uint8_t *record, size_t len)
{
	struct record parsed;
	int err = record_view(record, len, &parsed);
	ASSERT(!err);
	if (parsed.kind == RECORD_DELETE)
		err = delete_from_extents(cycle->engine, cycle->txn, &parsed);
	else if (parsed.kind == RECORD_ROW && has_dead_series(cycle, write, stage, &parsed))
		err = ERR_NOT_FOUND;
	if (parsed.kind != RECORD_ROW)
		cycle->last_deletion = cycle->sequence;
	return err ? err : journal_record(cycle, record, len);
}

/* As many rows as the page has room for, with one copy; gives how many bytes they take. */
static size_t journal_rows(struct cycle *cycle, const uint8_t *at, size_t left)
{
	const uint8_t *begin = at, *record;
	size_t room = journal_page_room(&cycle->page), len, taken = 0;
	unsigned count = 0;
	while ((record = record_next(&at, &left, &len)) != NULL && record[0] == RECORD_ROW &&
	       (size_t)(at - begin) <= room) {
		cycle->journaled |= UINT32_C(1) << record_table(record);
		taken = (size_t)(at - begin);
		count++;
	}
	journal_page_add_many(&cycle->page, begin, taken, count);
	cycle->sequence += count;
	return taken;
}

static int journal_chunk(struct cycle *cycle, const struct store_write *write,
			 const struct store_stage *stage, const struct record_chunk *chunk)
{
	bool may_be_dead = cycle->engine->registry.any_dead || forget_wanted(write);
	const uint8_t *at = chunk->bytes, *record;
	size_t left = chunk->used, len;
	int err = 0;
	while (left && !err) {
		bool one_by_one = may_be_dead || stage->straight;
		size_t taken = one_by_one ? 0 : journal_rows(cycle, at, left);
		at += taken;
		left -= taken;
		if (taken || !left)
			continue;
		/* A deletion, or the page is full, or not all are for it. */
		record = record_next(&at, &left, &len);
		if (goes_straight(stage, record_table(record)))
			continue;
		err = may_be_dead || record[0] != RECORD_ROW
			      ? journal_checked(cycle, write, stage, record, len)
			      : journal_record(cycle, record, len);
	}
	return err;
}

/* ---- One batch in the transaction ------------------------------------------------------------ */

/* What goes straight to extents is sealing, so it is done where that is. */
static void choose_runs(struct cycle *cycle, const struct store_write *write,
			struct store_stage *stage)
{
	stage->straight = 0;
	stage->all_straight = false;
	if (write->in_runs && cycle->with_upkeep && !forget_wanted(write))
		runs_choose(cycle->engine, stage, cycle->journaled);
}

/* Heads of the class are sealed with it, as upkeep does. */
static int put_rekeying(struct cycle *cycle, const struct store_rekeying *rekeying)
{
	return cycle->with_upkeep ? rekey(cycle->engine, cycle->txn, rekeying) : ERR_RETRY;
}

/* For journal and heads. */
static struct record_chunk *chunks_left(const struct store_stage *stage)
{
	return stage->all_straight ? NULL : stage_chunks(stage);
}

static int put_batch(struct cycle *cycle, struct store_write *write)
{
	bool refused = false;
	int err = fault("store.batch");
	if (!err && cycle->engine->full && batch_grows(write))
		err = ERR_FULL;
	if (!err && removal_alone(write)) {
		cycle->has_cells = true;
		err = removal_put(&cycle->removal, cycle->txn, write->stages);
		cycle->removal_left |= removal_is_left(write);
		return err;
	}
	for (struct store_stage *s = write->stages; s && !err; s = s->next) {
		if (s->rekeying)
			err = put_rekeying(cycle, s->rekeying);
		choose_runs(cycle, write, s);
		unfold(s);
		for (struct record_chunk *c = chunks_left(s); c && !err; c = c->next)
			err = journal_chunk(cycle, write, s, c);
		if (!err && s->straight)
			err = runs_put(cycle->engine, cycle->txn, s, cycle->sequence - 1);
		for (struct cell_node *c = s->first_cell; c && !err; c = c->next) {
			err = cells_apply(cycle->engine, cycle->txn, write, &c->cell, &refused);
			cycle->has_cells = true;
		}
		if (!err)
			err = forget_stage(cycle->engine, cycle->txn, write, s);
	}
	if (!err && refused) {
		write->err = ERR_LIMIT;
		errbuf_set(&write->error, ERR_LIMIT, "a set of more than %d elements",
			   STORE_SET_ELEMENTS_MAX);
	}
	return err;
}

/* Where stamps, versions, sequences and flushes go on after a restart. The journal itself says the
 * last, but for what has been cut from it. */
static int writer_put_counters(struct cycle *cycle)
{
	struct engine *engine = cycle->engine;
	uint64_t high[4] = {(uint64_t)engine->stamp_us, engine->next_version, cycle->sequence,
			    engine->next_flush};
	if (!cycle->has_cells && !engine->cut_count && engine->next_flush == engine->stored_flush)
		return 0;
	return env_put_record(cycle->txn, engine->env.dbi[DB_META], SLICE("counters"),
			      (struct slice){(const char *)high, sizeof(high)});
}

/* Repair asks whether a page of the journal that is lost can have held a deletion. */
static int put_deletions(struct cycle *cycle)
{
	if (!cycle->last_deletion)
		return 0;
	return env_put_record(
		cycle->txn, cycle->engine->env.dbi[DB_META], SLICE(ENV_DELETIONS),
		(struct slice){(const char *)&cycle->last_deletion, sizeof(cycle->last_deletion)});
}

/* ---- After the commit ------------------------------------------------------------------------ */

static void apply_record(struct engine *engine, const struct incoming *row, int64_t now_us)
{
	if (row->record.kind != RECORD_ROW) {
		heads_apply_delete(&engine->heads, &row->record);
		return;
	}
	struct head *head = heads_apply_row(&engine->heads, &engine->registry, row, now_us);
	if (head->parts == 1)
		seal_begun(engine, head);
	seal_if_full(engine, head);
}

static void apply_chunk(struct cycle *cycle, const struct store_stage *stage,
			const struct record_chunk *chunk, int64_t now_us)
{
	struct engine *engine = cycle->engine;
	struct incoming rows[INCOMING_MAX];
	const uint8_t *at = chunk->bytes, *record = at;
	size_t left = chunk->used, len, held = 0;
	pthread_rwlock_wrlock(&engine->heads.lock);
	while (record) {
		size_t count = 0;
		while (count < INCOMING_MAX && (record = record_next(&at, &left, &len)) != NULL) {
			if (goes_straight(stage, record_table(record)))
				continue;
			int err = record_view(record, len, &rows[count].record);
			ASSERT(!err);
			rows[count++].sequence = cycle->sequence++;
		}
		heads_foresee(&engine->heads, rows, count);
		for (size_t i = 0; i < count; i++)
			apply_record(engine, &rows[i], now_us);
		held += count;
		if (held >= APPLY_RECORDS) {
			pthread_rwlock_unlock(&engine->heads.lock);
			held = 0;
			pthread_rwlock_wrlock(&engine->heads.lock);
		}
	}
	pthread_rwlock_unlock(&engine->heads.lock);
}

static void apply_batches(struct cycle *cycle)
{
	struct engine *engine = cycle->engine;
	int64_t now_us = engine_now_us(engine);
	size_t samples = 0, cells = 0;
	for (struct task *t = cycle->batches; t; t = t->next) {
		struct store_write *write = write_of(t);
		samples += write->samples;
		cells += removal_is_left(write) ? 0 : write->cells;
		for (struct store_stage *s = write->stages; s; s = s->next) {
			for (struct record_chunk *c = chunks_left(s); c; c = c->next)
				apply_chunk(cycle, s, c, now_us);
			for (struct forget_node *f = s->forgets; f; f = f->next)
				registry_forgotten(&engine->registry, f->handle);
		}
	}
	stat_add(STAT_store_samples, (int64_t)samples);
	stat_add(STAT_store_cells, (int64_t)cells);
}

static void committed(struct cycle *cycle)
{
	struct engine *engine = cycle->engine;
	stat_add(STAT_store_commits, 1);
	engine->stored_flush = engine->next_flush;
	registry_committed(&engine->registry, &cycle->written);
	for (size_t i = 0; i < cycle->page_count; i++)
		journal_list_add(engine, &cycle->pages[i]);
	uint64_t end = cycle->sequence;
	/* Sealed heads go before new rows come: a new row of theirs begins a new head. */
	if (cycle->with_upkeep)
		maintain_committed(engine);
	cycle->sequence = engine->next_sequence;
	apply_batches(cycle);
	ASSERT(cycle->sequence == end);
	engine->next_sequence = end;
}

/* ---- Removals that take several commits (removal.c) ------------------------------------------ */

/* Before all that waits. */
static void writer_put_back(struct engine *engine, struct task *first)
{
	uint64_t bytes = 0;
	struct task *last = NULL;
	for (struct task *t = first; t; t = t->next) {
		bytes += write_of(t)->arena.used_bytes;
		last = t;
	}
	if (!last)
		return;
	pthread_mutex_lock(&engine->queue_lock);
	last->next = engine->queue_first;
	engine->queue_first = first;
	if (!engine->queue_last)
		engine->queue_last = last;
	engine->queue_bytes += bytes;
	engine->queue_hurries = true;
	pthread_mutex_unlock(&engine->queue_lock);
}

/* Whether a batch before this one in the cycle goes on to remove from a row that it touches. */
static bool writer_waits_for_removal(const struct cycle *cycle, struct store_write *write)
{
	for (struct task *t = cycle->batches; cycle->removal_left && t != &write->task; t = t->next)
		if (removal_is_left(write_of(t)) && removal_meets(write_of(t), write))
			return true;
	return false;
}

/* The batch that waits, and all behind it, are no longer the cycle's. */
static void writer_leave_waiting(struct cycle *cycle, struct task *first)
{
	struct task **at = &cycle->batches;
	while (*at != first)
		at = &(*at)->next;
	*at = NULL;
	writer_put_back(cycle->engine, first);
}

/* What has ended is completed, the others go on. */
static void writer_complete_or_go_on(struct cycle *cycle)
{
	struct task *left = NULL, **end = &left;
	for (struct task *t = cycle->batches, *next; t; t = next) {
		next = t->next;
		t->next = NULL;
		removal_committed(write_of(t));
		if (!removal_is_left(write_of(t))) {
			writer_complete(write_of(t), 0);
			continue;
		}
		*end = t;
		end = &t->next;
	}
	cycle->batches = NULL;
	writer_put_back(cycle->engine, left);
}

/* ---- Cycles ---------------------------------------------------------------------------------- */

/* Heads are sealed before the batches come: a deletion takes its samples out of extents within this
 * transaction and out of heads after it, so what a head holds must be an extent before the deletion
 * or stay a head. Sealed after it, deleted samples would be there again. */
static int writer_fill(struct cycle *cycle)
{
	cycle->engine->rekeys = false;
	for (struct task *t = cycle->batches; t; t = t->next)
		cycle->engine->rekeys |= rekey_wanted(write_of(t));
	int err = registry_write(&cycle->engine->registry, cycle->txn, &cycle->written);
	if (!err && cycle->with_upkeep)
		err = maintain(cycle->engine, cycle->txn, &cycle->more_upkeep);
	for (struct task *t = cycle->batches; t && !err; t = t->next) {
		if (writer_waits_for_removal(cycle, write_of(t))) {
			writer_leave_waiting(cycle, t);
			break;
		}
		err = put_batch(cycle, write_of(t));
		if (err)
			cycle->blamed = write_of(t);
	}
	if (!err)
		err = flush_page(cycle);
	if (!err)
		err = writer_put_counters(cycle);
	if (!err)
		err = put_deletions(cycle);
	return err;
}

static void die(struct engine *engine, int err)
{
	stat_add(STAT_store_commit_errors, 1);
	log_error("store %s: commit failed: %s; no more writes are accepted", engine->options.path,
		  err_text(err));
	engine->dead = err;
	if (engine->options.on_dead)
		engine->options.on_dead(engine->options.context, err);
}

/* LMDB lets nobody write any more (MDB_PANIC): a commit before this one broke on its last page. */
static int begin_failed(struct engine *engine, int err)
{
	if (err == ERR_UNKNOWN || err == ERR_DAMAGED)
		die(engine, err);
	return err;
}

static void begin_empty(struct cycle *cycle)
{
	cycle->page_count = 0;
	cycle->has_cells = cycle->more_upkeep = false;
	cycle->last_deletion = 0;
	cycle->journaled = 0;
	cycle->blamed = NULL;
	cycle->sequence = cycle->engine->next_sequence;
	cycle->now_ms = clock_wall_ms(cycle->engine->options.clock);
	journal_page_init(&cycle->page, cycle->sequence, cycle->now_ms);
	removal_begin(&cycle->removal, cycle->engine);
	cycle->removal_left = false;
}

/* One transaction. An error that is returned undid everything; the batches are still the cycle's.
 */
static int try_commit(struct cycle *cycle)
{
	struct engine *engine = cycle->engine;
	begin_empty(cycle);
	int err = env_error(mdb_txn_begin(engine->env.mdb, NULL, 0, &cycle->txn));
	if (err)
		return begin_failed(engine, err);
	err = writer_fill(cycle);
	if (!err && fault("store.commit"))
		err = ERR_FAULT;
	if (err) {
		mdb_txn_abort(cycle->txn);
	} else {
		err = env_commit(&engine->env, cycle->txn);
		if (!err && fault("store.sync"))
			err = -EIO;
		if (err && err != ERR_FULL) {
			die(engine, err);
			err = ERR_UNKNOWN;
		}
	}
	if (err && cycle->with_upkeep)
		maintain_aborted(engine);
	/* Only for a kill between the commit and its answers: it is durable, whatever comes. */
	if (!err)
		(void)fault("store.committed");
	return err;
}

static void unlink_batch(struct cycle *cycle, struct store_write *write)
{
	struct task **at = &cycle->batches;
	while (*at != &write->task)
		at = &(*at)->next;
	*at = write->task.next;
}

enum verdict { AGAIN, WITHOUT_UPKEEP, GIVE_UP };

/* What becomes of a cycle whose transaction an error has undone, from the first line that fits:
 *
 *   the engine is dead           every batch gets the error: nobody knows what is on disk
 *   no room, with upkeep         without it: that needs room too
 *   no room                      the store refuses what grows it from now on; and as below
 *   damage, met by upkeep        without it: the batches do not touch what is damaged; what comes
 *     or by rows in runs             in runs goes to the journal then
 *   a batch is to blame          that one gets the error, the others are tried again
 *   anything else                every batch gets the error
 */
static enum verdict after_error(struct cycle *cycle, int err)
{
	struct engine *engine = cycle->engine;
	if (!cycle->blamed)
		engine->cycle_err = err; /* for lmdb_settle, which waits for upkeep */
	if (engine->dead)
		return GIVE_UP;
	if (err == ERR_FULL && cycle->with_upkeep)
		return WITHOUT_UPKEEP;
	if (err == ERR_FULL)
		room_refuse(engine);
	if (err == ERR_DAMAGED && cycle->with_upkeep &&
	    (!cycle->blamed || cycle->blamed->in_runs)) {
		log_error("store %s: upkeep met damaged data and was left out; writes go on; "
			  "`granary verify` "
			  "names the data",
			  engine->options.path);
		return WITHOUT_UPKEEP;
	}
	if (cycle->blamed) {
		unlink_batch(cycle, cycle->blamed);
		writer_complete(cycle->blamed, err);
		cycle->blamed = NULL;
		return cycle->batches ? AGAIN : GIVE_UP;
	}
	return GIVE_UP;
}

/* Commits what the cycle holds, dropping what cannot be done. Returns whether there is more upkeep
 * to do at once. */
static bool run_cycle(struct cycle *cycle)
{
	enum verdict verdict = AGAIN;
	int err = 0;
	cycle->with_upkeep = true;
	while (verdict != GIVE_UP) {
		err = cycle->engine->dead ? ERR_READ_ONLY : try_commit(cycle);
		if (!err) {
			committed(cycle);
			writer_complete_or_go_on(cycle);
			return cycle->more_upkeep;
		}
		verdict = after_error(cycle, err);
		if (verdict == WITHOUT_UPKEEP)
			cycle->with_upkeep = false;
	}
	complete_all(cycle->batches, err);
	return false;
}

/* Waits until there is something to do; false: the end. */
static bool wait_for_work(struct engine *engine, struct cycle *cycle, bool more)
{
	engine->moved_ms = clock_mono_ms(engine->options.clock);
	pthread_mutex_lock(&engine->queue_lock);
	if (!more && !engine->queue_hurries && !engine->stopping && !engine->settle_wanted)
		cond_wait_ms(&engine->queue_arrived, &engine->queue_lock, IDLE_WAIT_MS);
	cycle->batches = writer_next_batches(engine);
	bool go_on = cycle->batches || !engine->stopping;
	pthread_mutex_unlock(&engine->queue_lock);
	return go_on;
}

void *writer_main(void *context)
{
	struct engine *engine = FROM_OWNER(engine, context);
	struct cycle *cycle = mem_zalloc(sizeof(*cycle));
	cycle->engine = engine;
	bool more = false;
	while (wait_for_work(engine, cycle, more)) {
		bool pending =
			atomic_load_explicit(&engine->registry.pending_count, memory_order_relaxed);
		bool again = more;
		more = false;
		if (cycle->batches || pending || again || maintain_due(engine))
			more = run_cycle(cycle);
	}
	mem_free(cycle->pages);
	mem_free(cycle);
	return NULL;
}
