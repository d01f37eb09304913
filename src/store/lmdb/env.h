/* LMDB as the engine uses it: the environment with its databases, error numbers turned into ours,
 * and values that carry a checksum over their key. Private to store/lmdb. */
#ifndef STORE_LMDB_ENV_H
#define STORE_LMDB_ENV_H

#include <lmdb.h>

#include "store/lmdb/lmdb.h"

enum db {
	DB_META,         /* text -> format version, counters, deletions, clock, sweep_index */
	DB_SHAPES,       /* shape -> tenant, metrics */
	DB_SHAPE_INDEX,  /* hash(tenant, metrics), shape */
	DB_METRIC_INDEX, /* hash(tenant, metric), shape */
	DB_BANDS,        /* shape, ordinal -> tags */
	DB_BAND_INDEX,   /* hash(tenant, tags[, metric]), shape, ordinal */
	DB_JOURNAL,      /* sequence -> a page of records */
	DB_EXTENTS,      /* doc/format-store.md -> blocks */
	DB_CELL_ROWS,    /* table, hash(key) -> key, deletion */
	DB_CELLS,        /* table, hash(key), column -> cell */
	DB_BLOBS,        /* blob, part -> bytes of a long cell */
	DB_SWEEP_INDEX,  /* table, minute, hash(key)[, column]: what may go. Not before format 3 */
	DB_COUNT
};

enum {
	FORMAT_VERSION = 4,
	PAGE_VALUE_MAX_BYTES = 4080, /* a value that fills one page of LMDB and no more */
	KEY_MAX_BYTES = 511,         /* LMDB's own */
	RECORD_HEADER_BYTES = 4,     /* CRC-32C over key and the rest of the value */
};

struct env {
	MDB_env *mdb;
	MDB_dbi dbi[DB_COUNT]; /* 0, which is LMDB's own free list: not there */
	int lock_fd;
	bool only_read; /* nothing can be written, and nothing is */
	int sync_fd;    /* of the data file: hears of syncs that failed on LMDB's */
	char *path;
	struct files *files;
	uintptr_t base; /* where page 0 lies in memory */
	size_t page_bytes, map_bytes;
};

/* In DB_META: the highest sequence of a deletion, u64 after the checksum. */
#define ENV_DELETIONS "deletions"
#define ENV_CLOCK     "clock"
/* Whether DB_SWEEP_INDEX has all cells of DB_CELLS that it should have (sweep_index.h). */
#define ENV_SWEEP_INDEX "sweep_index"

/* The data file, and the one that compaction writes beside it. */
#define ENV_FILE     "data.mdb"
#define ENV_NEW_FILE "data.mdb.new"
/* A longer name of the directory is cut, and not found. */
enum { ENV_NAME_MAX_BYTES = 4096 };

extern const char *const db_names[DB_COUNT];

/* A store of an earlier format that is only looked at lacks what came later. */
static inline bool env_has(const struct env *env, enum db db)
{
	return env->dbi[db] != 0;
}
/* Whether the store of a format has the database. */
static inline bool format_has(uint32_t version, enum db db)
{
	return db != DB_SWEEP_INDEX || version >= 3;
}

/* LMDB knows `env` by its address: it stays where it is until env_close. */
int env_open(struct env *env, const struct lmdb_options *options, struct errbuf *e) MUST_CHECK;
void env_close(struct env *env);
/* Says in the directory that a store was made there; env_open does, unless it is not durable. */
int env_mark_made(struct env *env, struct errbuf *e) MUST_CHECK;
/* Only the lock of a directory with a store in it, for who reads the data file without LMDB. */
int env_lock_shared(struct env *env, const struct lmdb_options *options,
		    struct errbuf *e) MUST_CHECK;

/* Our number for one of LMDB's. */
int env_error(int mdb_error);

/* 0; ERR_FULL: no room, and nothing has happened; else an error after which nobody knows what is on
 * disk, or LMDB's own reason. */
int env_commit(struct env *env, MDB_txn *txn) MUST_CHECK;

/* ERR_NOT_FOUND if absent. The value points into the map: valid until the transaction ends. */
int env_get(MDB_txn *txn, MDB_dbi dbi, struct slice key, struct slice *value) MUST_CHECK;
int env_put(MDB_txn *txn, MDB_dbi dbi, struct slice key, struct slice value) MUST_CHECK;
/* Whether LMDB keeps such a value in a page of its own, not among others. */
bool env_has_own_page(const struct env *env, size_t key_bytes, size_t value_bytes);
/* Whether this entry of the transaction can be deleted: false if its page is not what it should be.
 */
bool env_may_free(MDB_txn *txn, struct slice key, struct slice value);
/* 0 also if it was not there. */
int env_delete(MDB_txn *txn, MDB_dbi dbi, struct slice key) MUST_CHECK;
/* The first entry with a key >= `key`; ERR_NOT_FOUND at the end. Key and value are replaced. */
int env_seek(MDB_cursor *cursor, struct slice *key, struct slice *value) MUST_CHECK;
int env_next(MDB_cursor *cursor, struct slice *key, struct slice *value) MUST_CHECK;
/* The last entry of the database. */
int env_last(MDB_txn *txn, MDB_dbi dbi, struct slice *key, struct slice *value) MUST_CHECK;

/* Fills in the first four bytes of a value of `len` bytes. */
void record_seal(struct slice key, uint8_t *value, size_t len);
/* Puts a value after its checksum. */
int env_put_record(MDB_txn *txn, MDB_dbi dbi, struct slice key, struct slice payload) MUST_CHECK;
/* What follows the checksum; ERR_DAMAGED (counted) if it does not match. */
int record_open(struct slice key, struct slice value, struct slice *payload) MUST_CHECK;

/* Whether the page that a key points into is the one with its number: false for one that was copied
 * over another, which LMDB itself does not notice. */
bool env_page_is_its_own(const struct env *env, struct slice key);

/* Pages in use and pages on the free list, of `page_bytes` each; of the latter those that were
 * freed by transactions after `since`. Walks the free list. */
struct env_pages {
	uint64_t page_bytes, used, free, freed_since, map;
};
int env_count_pages(struct env *env, uint64_t since, struct env_pages *pages) MUST_CHECK;

static inline MDB_val val_of(struct slice s)
{
	return (MDB_val){s.len, (void *)(uintptr_t)s.data};
}

static inline struct slice slice_of_val(MDB_val v)
{
	return (struct slice){v.mv_data, v.mv_size};
}

#endif
