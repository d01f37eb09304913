/* What the files of the embedded engine share. Private. */
#ifndef STORE_LMDB_ENGINE_H
#define STORE_LMDB_ENGINE_H

#include <pthread.h>

#include "base/clock_watch.h"
#include "base/log.h"
#include "base/owner.h"
#include "loop/pool.h"
#include "store/lmdb/unsettled.h"

enum {
	CELL_ROW_KEY_BYTES = 1 + 16,
	/* One more for the bound just after the longest column. */
	CELL_KEY_MAX_BYTES = CELL_ROW_KEY_BYTES + STORE_COLUMN_MAX_BYTES + 1,
};

struct cell_node {
	struct cell_node *next;
	struct store_cell_write cell;
};

struct forget_node {
	struct forget_node *next;
	uint64_t handle;
};

/* All of it lies in the batch's arena. */
struct store_stage {
	struct store_stage *next;
	struct record_chunk *first_chunk, *last_chunk;
	struct cell_node *first_cell, *last_cell;
	struct forget_node *forgets;
	const struct store_rekeying *rekeying; /* NULL: none */
	bool grows;                            /* holds something other than deletions */
	/* Of removals in slices (removal.c), the first range of which something is left: when the
	 * transaction commits, and as of the last commit. NULL: nothing is left, or no slice was
	 * taken yet. */
	struct cell_node *removing, *removed_to;
	/* Bit by table: its rows go to extents at once, not to journal and heads (bulk_append.c).
	 * Set when the stage is put into a transaction. */
	uint32_t straight;
	bool all_straight; /* it has no rows of other tables, nor deletions */
	uint32_t columns;  /* bit by table: it has columns of it */
	/* The records with rows in place of columns that do not go straight; NULL where there are
	 * none. In memory of their own: the batch's has its bound (bulk_to_rows.c). */
	struct record_chunk *unfolded;
	struct arena unfolded_arena;
};

/* As journal and heads have them. */
static inline struct record_chunk *stage_chunks(const struct store_stage *stage)
{
	return stage->unfolded ? stage->unfolded : stage->first_chunk;
}

static inline bool goes_straight(const struct store_stage *stage, enum table table)
{
	return stage->straight >> table & 1;
}

/* Whether a row is one of a registered shape. */
static inline bool record_fits(struct registry *registry, const struct record *row)
{
	unsigned fields = (unsigned)schema[row->sheet.table].field_count;
	return row->first_column + row->columns <= registry_columns(registry, row->shape) * fields;
}

/* A page of the journal that is still there. */
struct journal_entry {
	uint64_t first_sequence;
	int64_t written_ms;
	uint32_t bytes, records;
};

/* Groups that wait to be sealed. */
struct seal_request {
	struct group_id id;
	bool all; /* also heads that are small */
};

struct seal_queue {
	struct seal_request *list;
	size_t first, count, cap;
};

/* Rows of one band in one segment, one after the other in a batch. */
struct record_run {
	struct group_id id;
	uint32_t ordinal, ordinal_in_group;
	size_t number;     /* in order of the batch */
	const uint8_t *at; /* records with their prefixes: rows, or several in columns */
	size_t bytes, rows;
	int64_t min_ts_ms, max_ts_ms;
};

struct run_list {
	struct record_run *list;
	size_t count, cap;
};

struct scratch; /* read.h */

/* A reader's snapshot and memory, kept between reads. */
struct reader {
	struct reader *next;
	MDB_txn *txn;
	uint64_t epoch; /* heads.epoch when the snapshot was opened */
	struct scratch *scratch;
};

/* A pass over what is due to be swept (cells_sweep.c). */
struct sweep_pass {
	bool is_running;
	/* Where it goes on in the index; of the row there, in its cells. Nothing: where that
	 * begins. */
	uint8_t key[KEY_MAX_BYTES], cell[KEY_MAX_BYTES];
	size_t key_len, cell_len;
};

struct engine {
	uint32_t magic;
	struct store store;
	struct lmdb_options options;
	struct env env;
	struct registry registry;
	struct heads heads;

	pthread_mutex_t queue_lock; /* guards up to `settled` */
	pthread_cond_t queue_arrived;
	struct task *queue_first, *queue_last; /* store_write.task of waiting batches */
	uint64_t queue_bytes;
	bool queue_hurries; /* some that waits cannot wait */
	bool stopping;
	_Atomic bool settle_wanted, settle_closed_only; /* the writer reads them without the lock */
	pthread_cond_t settled;

	_Atomic int dead;         /* the error that ended it, or 0; ERR_READ_ONLY to inspect */
	_Atomic int cycle_err;    /* the last one of the writer, until lmdb_settle clears it */
	_Atomic bool full;        /* no room: only what frees some is taken */
	_Atomic int64_t stamp_us; /* the last one given */
	_Atomic int64_t moved_ms; /* monotonic: when the writer last looked for work */
	/* A bit for each table that may have rows which were deleted: set before the commit that
	 * deletes the first, so that whoever sees such a row sees the bit. */
	_Atomic uint64_t deleted_rows;

	/* The writer's own, from here to `pool`. */
	pthread_t writer;
	uint64_t next_sequence, next_version;
	uint32_t next_flush, stored_flush; /* never used twice: it is part of keys */

	/* journal_list.c */
	struct journal_entry *journal; /* a ring */
	size_t journal_first, journal_count, journal_cap;
	_Atomic uint64_t journal_bytes, journal_records;
	uint64_t journal_grown; /* bytes, since heads were last sealed for that (seal_oldest) */
	size_t cut_count;       /* pages cut in the present transaction */
	bool cut_waits;         /* heads were sealed for the sake of it */

	/* maintain.c */
	uint64_t heads_most_bytes; /* since memory was last given back */
	int64_t give_back_due_us;

	/* seal.c */
	struct seal_queue seals;
	struct head **sealed; /* in the present transaction: they go once it is committed */
	size_t sealed_count, sealed_cap;
	struct strips strips; /* empty between two groups */
	struct run_list runs; /* of the present stage; bulk_append.c */
	bool has_runs;        /* the present transaction put some */
	int64_t scan_due_us;

	/* settle.c */
	struct unsettled_set unsettled;
	struct group_id *settled_groups; /* in the present transaction */
	size_t settled_count, settled_cap;
	bool settle_walks; /* over the unsettled groups; and where it goes on: */
	size_t settle_at;
	int64_t settle_least_ms; /* least end of the segments of those that it left */
	int64_t settle_due_us;
	bool found_unsettled; /* the keys have been looked through since the start */
	uint8_t find_key[EXTENT_KEY_BYTES];
	size_t find_key_len;

	/* expire.c */
	int64_t expire_due_us, expire_wall_ms;
	bool rekeys;        /* the present transaction does: nothing expires in it */
	int64_t rekeyed_us; /* when something was re-keyed last, 0 never: expiry waits */
	bool is_expiring, has_expired;
	struct segment_id expired; /* in the present transaction */
	struct sweep_pass sweep;
	bool is_indexed; /* all cells that are to be swept are in DB_SWEEP_INDEX */

	/* space.c */
	int64_t room_due_us;
	_Atomic bool disk_full;

	/* doubt.c; `watch` is from any thread, and options.clock is its clock */
	struct clock_watch watch;
	struct clock_mark kept_mark, new_mark; /* on disk; in the present transaction */
	bool has_kept_mark, has_new_mark, mark_is_lost;
	int64_t mark_due_us;
	struct clock_mark told_mark; /* in the log */

	_Atomic bool backing_up; /* backup.c */

	struct pool *pool;
	pthread_mutex_t readers_lock; /* guards what follows */
	struct reader *readers;
	struct log_rate damage_lines;
};

static inline struct engine *engine_of(struct store *store)
{
	struct engine *engine = CONTAINER_OF(store, struct engine, store);
	ASSERT_IS(engine, engine);
	return engine;
}

static inline int64_t engine_now_us(struct engine *engine)
{
	return engine->options.clock->mono_us(engine->options.clock);
}

/* engine.c */
/* The defaults of what is 0. */
void lmdb_options_fill(struct lmdb_options *options);
struct group_id engine_group_of(struct engine *engine, const struct segment_id *segment,
				uint32_t shape, uint32_t ordinal, uint32_t *ordinal_in_group);

/* writer.c: the writer's thread; write_submit of the contract. */
void *writer_main(void *engine);
int writer_submit(struct store_write *write) MUST_CHECK;

/* maintain.c: in the writer's transaction. One slice of whatever is due; *more: there is more to do
 * at once. After an abort call maintain_aborted, after a commit maintain_committed. */
int maintain(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;
void maintain_committed(struct engine *engine);
void maintain_aborted(struct engine *engine);
bool maintain_due(struct engine *engine);

/* bulk_append.c: which tables' rows of the stage go straight to extents; `journaled` are the tables
 * (bits) that the present transaction has put into the journal. */
void runs_choose(struct engine *engine, struct store_stage *stage, uint32_t journaled);
/* Writes them, after runs_choose of this stage, and with them the heads of their groups.
 * `sequence`: of the last record before. */
int runs_put(struct engine *engine, MDB_txn *txn, const struct store_stage *stage,
	     uint64_t sequence) MUST_CHECK;

/* bulk_to_rows.c: what of a stage's columns does not go straight becomes rows, after runs_choose;
 * until unfold_release, or the next time. */
void unfold(struct store_stage *stage);
void unfold_release(struct store_write *write);

/* seal.c: a head has begun, beside blocks or not. */
void seal_begun(struct engine *engine, struct head *head);
/* Asks for a head that is full to be sealed, with its group. */
void seal_if_full(struct engine *engine, struct head *head);

/* journal_list.c: a page that has been written, or replayed. */
void journal_list_add(struct engine *engine, const struct journal_entry *entry);

/* delete.c: out of the extents, in the writer's transaction; the heads follow after the commit. */
int delete_from_extents(struct engine *engine, MDB_txn *txn,
			const struct record *record) MUST_CHECK;

/* rekey.c: in the writer's transaction, with upkeep, by a batch of its own. */
int rekey(struct engine *engine, MDB_txn *txn, const struct store_rekeying *rekeying) MUST_CHECK;
bool rekey_wanted(const struct store_write *write);

/* doubt.c: what the last run knew of the clock; then, when the journal has been replayed, that is
 * what this one goes on with. */
int doubt_load(struct engine *engine, MDB_txn *txn) MUST_CHECK;
void doubt_resume(struct engine *engine);

/* backup.c: backup_begin to backup_end of the contract. */
int backup_begin(struct store *store, uint64_t growth_max_bytes, struct store_backup **backup,
		 struct errbuf *e) MUST_CHECK;
int backup_read(struct store_backup *backup, void *to, size_t max_bytes, size_t *bytes,
		struct errbuf *e) MUST_CHECK;
int backup_look(struct store_backup *backup, struct store_backup_cost *cost,
		struct errbuf *e) MUST_CHECK;
void backup_end(struct store_backup *backup);

/* space.c: how many of the map's pages only deleting and sealing may take. */
uint64_t room_reserved_pages(uint64_t map_pages);
/* The engine is full, as a transaction has found out. */
void room_refuse(struct engine *engine);
/* ERR_FULL, and what is full, with the option that bounds it. From any thread. */
int room_sentence(struct engine *engine, struct errbuf *e);

/* forget.c: in the writer's transaction, after all else of the stage. What has data stays, and is
 * taken out of the list. */
int forget_stage(struct engine *engine, MDB_txn *txn, const struct store_write *write,
		 struct store_stage *stage) MUST_CHECK;
/* Whether a stage before this one forgot the series. */
bool forget_happened(const struct store_write *write, const struct store_stage *before,
		     uint64_t handle);
bool forget_wanted(const struct store_write *write);

/* replay.c: the journal into the heads, at the start. A page that is damaged is an error, which
 * names it, or is left out with options.inspect. */
int replay(struct engine *engine, struct errbuf *e) MUST_CHECK;

/* removal.c: what one transaction removes from logs for batches that do nothing else. */
struct removal_slice {
	struct engine *engine;
	int64_t until_us;
	uint64_t bytes;
	unsigned steps;
	bool spent;
};
void removal_begin(struct removal_slice *slice, struct engine *engine);
/* Its time runs from the first of these on. */
void removal_start(struct removal_slice *slice);
/* A step has been done: a cell of so many bytes is removed, or a range is at its end. */
void removal_charge(struct removal_slice *slice, size_t bytes);
bool removal_alone(const struct store_write *write);
/* Of a batch that removal_alone is true of: goes on with it. */
int removal_put(struct removal_slice *slice, MDB_txn *txn, struct store_stage *stage) MUST_CHECK;
/* Whether the transaction leaves some of it; after the commit; and when the batch has ended. */
bool removal_is_left(const struct store_write *write);
/* Whether a commit has begun it and not ended it. */
bool removal_goes_on(const struct store_write *write);
void removal_committed(struct store_write *write);
void removal_ended(struct store_write *write);
/* Whether a batch touches a row of which the one that is `left` goes on to remove. */
bool removal_meets(const struct store_write *left, const struct store_write *write);

/* cells.c, cells_read.c; how a cell is stored: cell.h. */
int cells_add(struct store_write *write, const struct store_cell_write *cell) MUST_CHECK;
/* Until the slice is spent; *left: there is more. NULL: all. */
int cells_remove(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
		 struct removal_slice *slice, bool *left) MUST_CHECK;
/* *refused: a set was full; everything else is done. */
int cells_apply(struct engine *engine, MDB_txn *txn, struct store_write *write,
		const struct store_cell_write *cell, bool *refused) MUST_CHECK;
int cells_get(struct engine *engine, MDB_txn *txn, struct store_read *read,
	      struct store_cell_get *get) MUST_CHECK;
int cells_scan(struct engine *engine, MDB_txn *txn, struct store_read *read,
	       struct store_request *request, size_t *budget) MUST_CHECK;
int cells_enumerate(struct engine *engine, MDB_txn *txn, struct store_read *read,
		    struct store_request *request, size_t *budget) MUST_CHECK;

/* cells_sweep.c: goes on with engine->sweep, a slice of it, up to what is due in that minute by a
 * clock that is believed (sweep_index.h). */
int sweep_due(struct engine *engine, MDB_txn *txn, uint32_t minute) MUST_CHECK;
/* Goes on to put the cells of a store of before the index into it, until engine->is_indexed. */
int sweep_index_fill(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;

/* read.c: on the pool. */
int read_submit(struct store_read *read) MUST_CHECK;
void readers_release(struct engine *engine);
/* The newest snapshot. */
int reader_renew(struct engine *engine, struct reader *reader) MUST_CHECK;

/* inspect_pages.c: at the end of the counting, when the tables' contents are known. */
int stats_pages(struct env *env, MDB_txn *txn, struct store_stats *stats) MUST_CHECK;
/* What a page of its own that an extent takes has besides; 0 where it lies among others. */
uint64_t extent_slack_bytes(const struct env *env, size_t key_bytes, size_t value_bytes);

/* inspect.c */
/* What is wrong with an entry that is to be copied beside what `txn` has; NULL: nothing. */
const char *inspect_entry(struct engine *engine, MDB_txn *txn, enum db db, struct slice key,
			  struct slice value);
/* The one answer about an extent that is whole itself. */
extern const char inspect_no_band[];
/* What is wrong with an entry of DB_EXTENTS or its page, or NULL. */
const char *inspect_extent(struct engine *engine, MDB_txn *txn, struct slice key,
			   struct slice value);
/* Why a page of the journal cannot be replayed, or NULL. */
const char *inspect_journal_page(struct engine *engine, struct slice key, struct slice value);
int inspect_stats(struct engine *engine, struct reader *reader,
		  struct store_request *request) MUST_CHECK;
int inspect_verify(struct engine *engine, struct reader *reader, struct store_read *read,
		   struct store_request *request) MUST_CHECK;

#endif
