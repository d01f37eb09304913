#include "store/lmdb/env.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mapped.h"
#include "base/stats.h"
#include "store/lmdb/datafile.h"

/* More than one transaction of the writer takes: with less free, a write may be cut short. */
enum { ROOM_SHORT_BYTES = 64 << 20 };

const char *const db_names[DB_COUNT] = {
	[DB_META] = "meta",
	[DB_SHAPES] = "shapes",
	[DB_SHAPE_INDEX] = "shape_index",
	[DB_METRIC_INDEX] = "metric_index",
	[DB_BANDS] = "bands",
	[DB_BAND_INDEX] = "band_index",
	[DB_JOURNAL] = "journal",
	[DB_EXTENTS] = "extents",
	[DB_CELL_ROWS] = "cell_rows",
	[DB_CELLS] = "cells",
	[DB_BLOBS] = "blobs",
	[DB_SWEEP_INDEX] = "sweep_index",
};

int env_error(int mdb_error)
{
	switch (mdb_error) {
	case 0:
		return 0;
	case MDB_NOTFOUND:
		return ERR_NOT_FOUND;
	case MDB_MAP_FULL:
	case MDB_TXN_FULL:
	case ENOSPC:
	case EDQUOT:
		return ERR_FULL;
	case MDB_READERS_FULL:
		return ERR_BUSY;
	case MDB_VERSION_MISMATCH:
		return ERR_VERSION;
	case MDB_PANIC:
		/* A commit broke on its last page: nobody knows what is on disk, and LMDB lets
		 * nobody go on. The writer, when it sees that, ends the process. */
		return ERR_UNKNOWN;
	default:
		/* LMDB's own numbers are negative: a broken page, a bad transaction. */
		return mdb_error < 0 ? ERR_DAMAGED : -mdb_error;
	}
}

/* LMDB says the same of a page that could not be written, of a sync that failed and of a meta page
 * that did not go out. After the first nothing has happened and the store may go on; after the
 * others nobody knows what is on disk. So: a meta page leaves the environment unusable; a failed
 * sync is told by the kernel once to every descriptor, so ours still hears of it. */
static bool is_undone(struct env *env)
{
	MDB_txn *txn;
	if (mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &txn))
		return false;
	mdb_txn_abort(txn);
	return fdatasync(env->sync_fd) == 0;
}

/* A disk that has room for a part of what is written takes that part, which LMDB calls EIO. */
static bool room_is_short(struct env *env)
{
	uint64_t free_bytes = 0;
	return env->files->free_bytes(env->files, env->path, &free_bytes) == 0 &&
	       free_bytes < ROOM_SHORT_BYTES;
}

int env_commit(struct env *env, MDB_txn *txn)
{
	int failed = mdb_txn_commit(txn), err = env_error(failed);
	if (failed <= 0) /* done, or undone for a reason of LMDB's own */
		return err;
	if ((err == ERR_FULL || (failed == EIO && room_is_short(env))) && is_undone(env))
		return ERR_FULL;
	return -failed;
}

enum { FREE_DBI = 0 /* LMDB's free list: its values have no limit of ours */ };

/* Longer than any that was stored: its page is damaged, and it would lead out of the file. */
static int entry_is_damaged(void)
{
	stat_add(STAT_store_damaged, 1);
	return ERR_DAMAGED;
}

int env_get(MDB_txn *txn, MDB_dbi dbi, struct slice key, struct slice *value)
{
	MDB_val k = val_of(key), v;
	int err = env_error(mdb_get(txn, dbi, &k, &v));
	if (!err && v.mv_size > PAGE_VALUE_MAX_BYTES)
		return entry_is_damaged();
	if (!err)
		*value = slice_of_val(v);
	return err;
}

int env_put(MDB_txn *txn, MDB_dbi dbi, struct slice key, struct slice value)
{
	ASSERT(value.len <= PAGE_VALUE_MAX_BYTES);
	MDB_val k = val_of(key), v = val_of(value);
	return env_error(mdb_put(txn, dbi, &k, &v, 0));
}

/* What LMDB puts in front of a page, and of each entry in one. */
enum { PAGE_HEADER_BYTES = 16, ENTRY_HEADER_BYTES = 8, ENTRY_POINTER_BYTES = 2 };

/* LMDB: two entries at least have to fit into a page of keys, each beginning at an even byte. */
bool env_has_own_page(const struct env *env, size_t key_bytes, size_t value_bytes)
{
	size_t half_bytes = (env->page_bytes - PAGE_HEADER_BYTES) / 2 & ~(size_t)1;
	return ENTRY_HEADER_BYTES + key_bytes + value_bytes > half_bytes - ENTRY_POINTER_BYTES;
}

static const struct env *env_of(MDB_txn *txn)
{
	return mdb_env_get_userctx(mdb_txn_env(txn));
}

/* LMDB moves the entries of a leaf as its header says, which may be out of the copy that it makes
 * of it. What this transaction has changed lies elsewhere than in the map, and was sound before. */
static bool leaf_is_sound(const struct env *env, struct slice key)
{
	uintptr_t at = (uintptr_t)key.data;
	if (!env->base || at < env->base || at >= env->base + env->map_bytes)
		return true;
	uint64_t number = (at - env->base) / env->page_bytes;
	return pages_leaf_is_sound((const uint8_t *)(env->base + number * env->page_bytes),
				   env->page_bytes, number);
}

/* A value that has a page of its own has its header in front: number u64, 2 bytes, flags u16 (4:
 * such a page), count of pages u32. LMDB believes the count when it frees them, and would go
 * through all that a damaged one says. No value of ours takes more than one. */
bool env_may_free(MDB_txn *txn, struct slice key, struct slice value)
{
	uint16_t flags;
	uint32_t pages;
	if (!leaf_is_sound(env_of(txn), key))
		return false;
	if (!env_has_own_page(env_of(txn), key.len, value.len))
		return true;
	memcpy(&flags, value.data - PAGE_HEADER_BYTES + 10, sizeof(flags));
	memcpy(&pages, value.data - PAGE_HEADER_BYTES + 12, sizeof(pages));
	return (flags & 4) && pages == 1;
}

static int cursor_get(MDB_cursor *cursor, struct slice *key, struct slice *value, MDB_cursor_op op)
{
	MDB_val k = val_of(*key), v;
	int err = env_error(mdb_cursor_get(cursor, &k, &v, op));
	if (!err && (k.mv_size > KEY_MAX_BYTES || v.mv_size > PAGE_VALUE_MAX_BYTES) &&
	    mdb_cursor_dbi(cursor) != FREE_DBI)
		return entry_is_damaged();
	if (!err) {
		*key = slice_of_val(k);
		*value = slice_of_val(v);
	}
	return err;
}

/* As env_get, with the key as it is stored: in its page. */
static int env_find(MDB_txn *txn, MDB_dbi dbi, struct slice *key, struct slice *value)
{
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(txn, dbi, &cursor));
	if (err)
		return err;
	err = cursor_get(cursor, key, value, MDB_SET_KEY);
	mdb_cursor_close(cursor);
	return err;
}

int env_delete(MDB_txn *txn, MDB_dbi dbi, struct slice key)
{
	MDB_val k = val_of(key);
	struct slice stored = key, value;
	if (env_find(txn, dbi, &stored, &value) == 0 && !env_may_free(txn, stored, value))
		return ERR_DAMAGED;
	int err = env_error(mdb_del(txn, dbi, &k, NULL));
	return err == ERR_NOT_FOUND ? 0 : err;
}

int env_seek(MDB_cursor *cursor, struct slice *key, struct slice *value)
{
	return cursor_get(cursor, key, value, MDB_SET_RANGE);
}

int env_next(MDB_cursor *cursor, struct slice *key, struct slice *value)
{
	return cursor_get(cursor, key, value, MDB_NEXT);
}

int env_last(MDB_txn *txn, MDB_dbi dbi, struct slice *key, struct slice *value)
{
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(txn, dbi, &cursor));
	if (err)
		return err;
	*key = (struct slice){NULL, 0};
	err = cursor_get(cursor, key, value, MDB_LAST);
	mdb_cursor_close(cursor);
	return err;
}

static uint32_t record_crc(struct slice key, const uint8_t *rest, size_t len)
{
	return crc32c(crc32c(0, key.data, key.len), rest, len);
}

void record_seal(struct slice key, uint8_t *value, size_t len)
{
	ASSERT(len >= RECORD_HEADER_BYTES);
	uint32_t crc = record_crc(key, value + RECORD_HEADER_BYTES, len - RECORD_HEADER_BYTES);
	memcpy(value, &crc, sizeof(crc));
}

int env_put_record(MDB_txn *txn, MDB_dbi dbi, struct slice key, struct slice payload)
{
	uint8_t value[PAGE_VALUE_MAX_BYTES];
	size_t len = RECORD_HEADER_BYTES + payload.len;
	ASSERT(len <= sizeof(value));
	memcpy(value + RECORD_HEADER_BYTES, payload.data, payload.len);
	record_seal(key, value, len);
	return env_put(txn, dbi, key, (struct slice){(const char *)value, len});
}

int record_open(struct slice key, struct slice value, struct slice *payload)
{
	uint32_t stored;
	if (value.len >= RECORD_HEADER_BYTES) {
		const uint8_t *rest = (const uint8_t *)value.data + RECORD_HEADER_BYTES;
		memcpy(&stored, value.data, sizeof(stored));
		if (stored == record_crc(key, rest, value.len - RECORD_HEADER_BYTES)) {
			*payload =
				(struct slice){(const char *)rest, value.len - RECORD_HEADER_BYTES};
			return 0;
		}
	}
	stat_add(STAT_store_damaged, 1);
	return ERR_DAMAGED;
}

int env_count_pages(struct env *env, uint64_t since, struct env_pages *pages)
{
	MDB_envinfo info;
	MDB_stat stat;
	MDB_txn *txn;
	MDB_cursor *cursor;
	int err = env_error(mdb_env_info(env->mdb, &info));
	if (!err)
		err = env_error(mdb_env_stat(env->mdb, &stat));
	if (!err)
		err = env_error(mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &txn));
	if (err)
		return err;
	/* Transaction -> count, page numbers. */
	uint64_t free_pages = 0, freed_since = 0;
	err = env_error(mdb_cursor_open(txn, FREE_DBI, &cursor));
	if (!err) {
		struct slice key = {NULL, 0}, value;
		err = cursor_get(cursor, &key, &value, MDB_FIRST);
		for (; !err; err = env_next(cursor, &key, &value)) {
			size_t transaction, count;
			memcpy(&transaction, key.data, sizeof(transaction));
			memcpy(&count, value.data, sizeof(count));
			free_pages += count;
			freed_since += transaction > since ? count : 0;
		}
		mdb_cursor_close(cursor);
		err = err == ERR_NOT_FOUND ? 0 : err;
	}
	mdb_txn_abort(txn);
	uint64_t end = info.me_last_pgno + 1;
	*pages = (struct env_pages){
		.page_bytes = stat.ms_psize,
		.used = end > free_pages ? end - free_pages : 0,
		.free = free_pages,
		.freed_since = freed_since,
		.map = info.me_mapsize / stat.ms_psize,
	};
	return err;
}

/* A page begins with its number, u64. */
static uint64_t page_number(uintptr_t page)
{
	uint64_t number;
	memcpy(&number, (const void *)page, sizeof(number));
	return number;
}

bool env_page_is_its_own(const struct env *env, struct slice key)
{
	uintptr_t page = (uintptr_t)key.data & ~(uintptr_t)(env->page_bytes - 1);
	return page == env->base + page_number(page) * env->page_bytes;
}

/* LMDB does not tell where its map begins; the page of any value does. */
static void find_base(struct env *env, struct slice value, size_t page_bytes)
{
	uintptr_t page = (uintptr_t)value.data & ~(uintptr_t)(page_bytes - 1);
	env->page_bytes = page_bytes;
	env->base = page - page_number(page) * page_bytes;
}

/* LMDB takes the newer of two meta pages for that of its place. */
static int env_check_meta_pages(struct env *env, const char *file, struct errbuf *e)
{
	for (uint64_t n = 0; n < 2; n++) {
		uint64_t number;
		ssize_t got =
			pread(env->sync_fd, &number, sizeof(number), (off_t)(n * env->page_bytes));
		if (got < 0)
			return errbuf_set(e, -errno, "%s: %s", file, err_text(-errno));
		if (got != sizeof(number) || number != n)
			return errbuf_set(e, ERR_DAMAGED,
					  "%s is damaged: its page %d is not what belongs there",
					  file, (int)n);
	}
	return 0;
}

/* Counts the free pages at `from` or after it: the list itself may lie there. */
struct free_walk {
	MDB_cursor *cursor;
	uint64_t from, count;
	int err;
};

static void env_walk_free_list(void *context)
{
	struct free_walk *walk = context;
	struct slice key = {NULL, 0}, value;
	walk->err = cursor_get(walk->cursor, &key, &value, MDB_FIRST);
	while (!walk->err) {
		size_t pages, page;
		memcpy(&pages, value.data, sizeof(pages));
		for (size_t i = 1; i <= pages && i < value.len / sizeof(page); i++) {
			memcpy(&page, value.data + i * sizeof(page), sizeof(page));
			walk->count += page >= walk->from;
		}
		walk->err = env_next(walk->cursor, &key, &value);
	}
}

/* Whether all pages from `there` to the last one are free. Such were taken and given back within
 * one transaction, and never written: so the file ends before them. */
static bool rest_is_free(struct env *env, uint64_t there, uint64_t last)
{
	struct free_walk walk = {.from = there};
	MDB_txn *txn;
	if (mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &txn))
		return false;
	bool walked = false;
	if (mdb_cursor_open(txn, FREE_DBI, &walk.cursor) == 0) {
		walked = mapped_try(env_walk_free_list, &walk) && walk.err == ERR_NOT_FOUND;
		mdb_cursor_close(walk.cursor);
	}
	mdb_txn_abort(txn);
	return walked && walk.count == last + 1 - there;
}

/* LMDB opens a shortened file gladly and dies of SIGBUS at the first missing page. */
static int env_check_length(struct env *env, const struct lmdb_options *options, const char *file,
			    struct errbuf *e)
{
	MDB_envinfo info;
	MDB_stat stat;
	uint64_t length = 0;
	int err = env_error(mdb_env_info(env->mdb, &info));
	if (!err)
		err = env_error(mdb_env_stat(env->mdb, &stat));
	if (!err)
		err = options->files->length(options->files, file, &length);
	if (err)
		return errbuf_set(e, err, "%s: %s", file, err_text(err));
	uint64_t need = (uint64_t)(info.me_last_pgno + 1) * stat.ms_psize;
	if (length < need && !rest_is_free(env, length / stat.ms_psize, info.me_last_pgno))
		return errbuf_set(e, ERR_DAMAGED,
				  "%s is damaged: %llu bytes long, but its last page ends at %llu",
				  file, (unsigned long long)length, (unsigned long long)need);
	return 0;
}

static int put_format(struct env *env, MDB_txn *txn)
{
	const uint32_t version = FORMAT_VERSION;
	return env_put(txn, env->dbi[DB_META], SLICE("format"),
		       (struct slice){(const char *)&version, sizeof(version)});
}

/* Commits; after an error undoes it. */
static int env_end_write(MDB_txn *txn, int err, const char *file, struct errbuf *e)
{
	if (!err)
		err = env_error(mdb_txn_commit(txn));
	else
		mdb_txn_abort(txn);
	return err ? errbuf_set(e, err, "%s: %s", file, err_text(err)) : 0;
}

/* Nothing was deleted, and nothing lacks in the index of what is swept. */
static int put_notes(struct env *env, MDB_txn *txn)
{
	const uint64_t no_deletion = 0;
	int err = env_put_record(txn, env->dbi[DB_META], SLICE(ENV_DELETIONS),
				 (struct slice){(const char *)&no_deletion, sizeof(no_deletion)});
	return err ? err
		   : env_put_record(txn, env->dbi[DB_META], SLICE(ENV_SWEEP_INDEX), SLICE("\1"));
}

/* `found`: the format of what is there, 0: nothing is. What an earlier format holds the present one
 * holds too, so the store is made one of the present: from now on earlier programs refuse it, since
 * they could not read what this one writes. */
static int open_databases(struct env *env, uint32_t found, bool only_look, const char *file,
			  struct errbuf *e)
{
	MDB_txn *txn;
	bool raises = found < FORMAT_VERSION && !only_look;
	int err = env_error(mdb_txn_begin(env->mdb, NULL, raises ? 0 : MDB_RDONLY, &txn));
	if (err)
		return errbuf_set(e, err, "%s: %s", file, err_text(err));
	for (enum db db = 0; db < DB_COUNT; db++) {
		bool is_missing = !found || !format_has(found, db);
		if (is_missing && !raises)
			continue;
		err = env_error(mdb_dbi_open(txn, db_names[db], is_missing ? MDB_CREATE : 0,
					     &env->dbi[db]));
		if (err) {
			mdb_txn_abort(txn);
			return errbuf_set(e, ERR_DAMAGED, "%s is damaged: no database \"%s\" (%s)",
					  file, db_names[db], err_text(err));
		}
	}
	if (raises)
		err = put_format(env, txn);
	if (!found && !err)
		err = put_notes(env, txn);
	return env_end_write(txn, err, file, e);
}

/* *found 0: there is no store yet. */
static int env_check_format(struct env *env, const char *file, uint32_t *found, struct errbuf *e)
{
	MDB_txn *txn;
	MDB_dbi meta;
	struct slice value;
	int err = env_error(mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &txn));
	if (err)
		return errbuf_set(e, err, "%s: %s", file, err_text(err));
	*found = 0;
	err = env_error(mdb_dbi_open(txn, db_names[DB_META], 0, &meta));
	if (err == ERR_NOT_FOUND) {
		err = 0;
	} else if (!err) {
		uint32_t version = 0;
		err = env_get(txn, meta, SLICE("format"), &value);
		if (!err && value.len == sizeof(version))
			memcpy(&version, value.data, sizeof(version));
		if (version > FORMAT_VERSION)
			err = errbuf_set(e, ERR_VERSION,
					 "%s was written in format %u; this program reads up to %d:"
					 " use the newer program",
					 file, version, FORMAT_VERSION);
		else if (err || version == 0)
			err = errbuf_set(e, ERR_DAMAGED, "%s is damaged: no format version", file);
		*found = version;
	} else {
		errbuf_set(e, err, "%s: %s", file, err_text(err));
	}
	mdb_txn_abort(txn);
	return err;
}

/* LMDB met pages that do not fit together, in the middle of something. */
static void on_damage(MDB_env *mdb, const char *what)
{
	const struct env *env = mdb_env_get_userctx(mdb);
	log_error("%s/" ENV_FILE " is damaged: %s; ending", env->path, what);
	_exit(MAPPED_EXIT_STATUS);
}

static int open_mdb(struct env *env, const struct lmdb_options *options, struct errbuf *e)
{
	unsigned flags = MDB_NOTLS | MDB_NORDAHEAD;
	if (options->not_durable)
		flags |= MDB_NOSYNC;
	if (env->only_read)
		flags |= MDB_RDONLY | MDB_NOLOCK;
	int err = env_error(mdb_env_create(&env->mdb));
	if (!err)
		err = env_error(mdb_env_set_userctx(env->mdb, env));
	if (!err)
		err = env_error(mdb_env_set_assert(env->mdb, on_damage));
	if (!err)
		err = env_error(mdb_env_set_mapsize(env->mdb, options->map_bytes));
	if (!err)
		err = env_error(mdb_env_set_maxdbs(env->mdb, DB_COUNT));
	if (!err)
		err = env_error(mdb_env_set_maxreaders(env->mdb, 256));
	if (!err)
		err = env_error(mdb_env_open(env->mdb, env->path, flags, 0600));
	if (err)
		return errbuf_set(e, err, "cannot open %s/" ENV_FILE ": %s", env->path,
				  err_text(err));
	int dead = 0;
	mdb_reader_check(env->mdb, &dead);
	return 0;
}

/* What a compaction left when it was broken off. */
static int remove_rest(const struct lmdb_options *options, struct errbuf *e)
{
	char file[ENV_NAME_MAX_BYTES];
	snprintf(file, sizeof(file), "%s/" ENV_NEW_FILE, options->path);
	int err = options->inspect ? 0 : options->files->remove(options->files, file);
	if (err && err != ERR_NOT_FOUND)
		return errbuf_set(e, err, "cannot remove %s: %s", file, err_text(err));
	return 0;
}

/* ---- The directory ---------------------------------------------------------------------------
 * The file `made` is written when the store has been made. LMDB makes a new store of a data file
 * that is missing or empty; so beside `made` that is a loss to be named, and without it an attempt
 * that was cut short, to be made again. */

#define MADE_TEXT "A store was made in this directory; its data.mdb belongs here.\n"

/* Who only looks may do so where nothing can be written: with a lock that keeps servers away all
 * the same, or none if the file system is read-only and none has ever been there. LMDB's own lock
 * file is then not needed: nobody writes. */
static int lock_directory(struct env *env, bool only_look, struct errbuf *e)
{
	char lock[ENV_NAME_MAX_BYTES];
	snprintf(lock, sizeof(lock), "%s/lock", env->path);
	int err = file_lock(lock, &env->lock_fd, e);
	bool no_writing = err == -EROFS;
	if (!only_look || (!no_writing && err != -EACCES))
		return err;
	env->only_read = true;
	err = file_lock_shared(lock, &env->lock_fd, e);
	if (err == ERR_NOT_FOUND && no_writing)
		return 0;
	if (err == -EACCES || err == ERR_NOT_FOUND)
		return errbuf_set(e, err,
				  "%s: Permission denied; look as the user whose directory it is, "
				  "or at a copy of it",
				  lock);
	return err;
}

static int make_directory(struct env *env, struct errbuf *e)
{
	int err = env->files->make_dir(env->files, env->path, 0700);
	return err ? errbuf_set(e, err, "cannot make the directory %s: %s", env->path,
				err_text(err))
		   : 0;
}

static int must_be_there(struct env *env, const char *file, struct errbuf *e)
{
	uint64_t length;
	int err = env->files->length(env->files, file, &length);
	if (err == ERR_NOT_FOUND)
		return errbuf_set(e, err, "no store in %s", env->path);
	if (err == -ENOTDIR)
		return errbuf_set(e, err, "%s is not a directory", env->path);
	return err ? errbuf_set(e, err, "%s: %s", file, err_text(err)) : 0;
}

static int check_made(struct env *env, const char *file, bool *was_made, struct errbuf *e)
{
	char made[ENV_NAME_MAX_BYTES];
	uint64_t length = 0;
	snprintf(made, sizeof(made), "%s/made", env->path);
	int err = env->files->length(env->files, made, &length);
	*was_made = !err;
	if (err && err != ERR_NOT_FOUND)
		return errbuf_set(e, err, "%s: %s", made, err_text(err));
	err = env->files->length(env->files, file, &length);
	if (err && err != ERR_NOT_FOUND)
		return errbuf_set(e, err, "%s: %s", file, err_text(err));
	if (*was_made && (err || length == 0))
		return errbuf_set(e, ERR_DAMAGED,
				  "%s is %s, though there was a store: put it back, or remove %s "
				  "to begin again",
				  file, err ? "missing" : "empty", made);
	return 0;
}

/* What LMDB writes first are two meta pages, which a power cut may leave as zeros although the file
 * has the length that the pages after them gave it. Each begins with its number, u64, and 8 bytes
 * more; then stands LMDB's mark. */
static bool is_meta_page(const char *page)
{
	static const uint8_t mark[4] = {0xde, 0xc0, 0xef, 0xbe};
	return memcmp(page + 16, mark, sizeof(mark)) == 0;
}

/* A store without anything in it takes four pages. */
enum { ATTEMPT_PAGES_MAX = 4 };

/* What an attempt to make the store has left is removed: not more than the two first pages, or not
 * even those. */
static int remove_attempt(struct env *env, const char *file, struct errbuf *e)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct buf bytes;
	buf_init(&bytes, ATTEMPT_PAGES_MAX * page_bytes);
	int err = env->files->read(env->files, file, ATTEMPT_PAGES_MAX * page_bytes, &bytes);
	struct slice s = buf_slice(&bytes);
	bool made_nothing = !err && (s.len <= 2 * page_bytes || !is_meta_page(s.data) ||
				     !is_meta_page(s.data + page_bytes));
	if (made_nothing) {
		log_warn("%s: an earlier start ended before the store was made; nothing was in it; "
			 "it is made "
			 "now",
			 file);
		err = env->files->remove(env->files, file);
	}
	buf_release(&bytes);
	if (err == ERR_NOT_FOUND || err == ERR_LIMIT)
		return 0;
	return err ? errbuf_set(e, err, "%s: %s", file, err_text(err)) : 0;
}

static int write_made(struct env *env, bool is_new, struct errbuf *e)
{
	char made[ENV_NAME_MAX_BYTES];
	snprintf(made, sizeof(made), "%s/made", env->path);
	int err = env->files->replace(env->files, made, SLICE(MADE_TEXT), 0600);
	if (err && is_new)
		return errbuf_set(e, err, "cannot write %s: %s", made, err_text(err));
	if (err) /* the store of an earlier program, perhaps on a disk that is full */
		log_warn("cannot write %s: %s", made, err_text(err));
	return 0;
}

int env_mark_made(struct env *env, struct errbuf *e)
{
	return write_made(env, true, e);
}

static int find_pages(struct env *env, const char *file, struct errbuf *e)
{
	MDB_envinfo info;
	MDB_stat stat;
	MDB_txn *txn;
	struct slice value;
	int err = env_error(mdb_env_stat(env->mdb, &stat));
	if (!err)
		err = env_error(mdb_env_info(env->mdb, &info));
	if (!err)
		err = env_error(mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &txn));
	if (err)
		return errbuf_set(e, err, "%s: %s", file, err_text(err));
	err = env_get(txn, env->dbi[DB_META], SLICE("format"), &value);
	if (!err) {
		find_base(env, value, stat.ms_psize);
		env->map_bytes = info.me_mapsize;
		mapped_lies(env->path, env->base, env->map_bytes);
	}
	mdb_txn_abort(txn);
	return err ? errbuf_set(e, err, "%s: %s", file, err_text(err))
		   : env_check_meta_pages(env, file, e);
}

/* The data file, its databases and a descriptor of our own. *is_new: they were made. */
static int open_file(struct env *env, const struct lmdb_options *options, const char *file,
		     bool *is_new, struct errbuf *e)
{
	uint32_t found = 0;
	uint64_t length = 0;
	int err = remove_rest(options, e);
	if (!err && !options->inspect && !options->files->length(options->files, file, &length))
		err = datafile_check_start(file, e);
	if (!err)
		err = open_mdb(env, options, e);
	if (!err)
		err = env_check_length(env, options, file, e);
	if (!err)
		err = env_check_format(env, file, &found, e);
	if (!err && !found && options->inspect)
		err = errbuf_set(e, ERR_NOT_FOUND, "no store in %s: %s is empty", options->path,
				 file);
	*is_new = !found;
	if (!err)
		err = open_databases(env, found, options->inspect, file, e);
	if (err)
		return err;
	env->sync_fd = open(file, O_RDONLY | O_CLOEXEC);
	if (env->sync_fd < 0)
		return errbuf_set(e, -errno, "%s: %s", file, err_text(-errno));
	return find_pages(env, file, e);
}

int env_lock_shared(struct env *env, const struct lmdb_options *options, struct errbuf *e)
{
	char file[ENV_NAME_MAX_BYTES];
	bool was_made;
	struct files *files = options->files ? options->files : files_real();
	*env = (struct env){.lock_fd = -1,
			    .sync_fd = -1,
			    .files = files,
			    .path = mem_copy_text(slice_of(options->path))};
	snprintf(file, sizeof(file), "%s/" ENV_FILE, options->path);
	int err = must_be_there(env, file, e);
	if (!err)
		err = lock_directory(env, true, e);
	if (!err)
		err = check_made(env, file, &was_made, e);
	if (err)
		env_close(env);
	return err;
}

/* The segment of code with mdb_env_open in it: LMDB's, as long as it is a library by itself. */
static int find_reader(struct dl_phdr_info *info, UNUSED size_t size, UNUSED void *context)
{
	uintptr_t at = (uintptr_t)dlsym(RTLD_DEFAULT, "mdb_env_open");
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
		if (info->dlpi_phdr[i].p_type == PT_LOAD && at >= begin && at < end &&
		    strstr(info->dlpi_name, "liblmdb"))
			mapped_reader(begin, end);
	}
	return 0;
}

int env_open(struct env *env, const struct lmdb_options *options, struct errbuf *e)
{
	char file[ENV_NAME_MAX_BYTES];
	bool is_new = false, was_made = false;
	bool only_look = options->inspect, no_mark = only_look || options->not_durable;
	*env = (struct env){.lock_fd = -1,
			    .sync_fd = -1,
			    .files = options->files,
			    .path = mem_copy_text(slice_of(options->path))};
	snprintf(file, sizeof(file), "%s/" ENV_FILE, options->path);
	mapped_watch(env->path);
	dl_iterate_phdr(find_reader, NULL);
	int err = only_look || options->must_exist ? must_be_there(env, file, e)
						   : make_directory(env, e);
	if (!err)
		err = lock_directory(env, only_look, e);
	if (!err)
		err = check_made(env, file, &was_made, e);
	if (!err && !was_made && !only_look)
		err = remove_attempt(env, file, e);
	if (!err)
		err = open_file(env, options, file, &is_new, e);
	if (!err && is_new && was_made)
		err = errbuf_set(e, ERR_DAMAGED, "%s is damaged: it holds nothing", file);
	if (!err && !was_made && !no_mark)
		err = write_made(env, is_new, e);
	if (err)
		env_close(env);
	return err;
}

void env_close(struct env *env)
{
	if (env->mdb)
		mdb_env_close(env->mdb);
	if (env->lock_fd >= 0)
		file_unlock(env->lock_fd);
	if (env->sync_fd >= 0)
		close(env->sync_fd);
	mapped_forget(env->path);
	mem_free(env->path);
	*env = (struct env){.lock_fd = -1, .sync_fd = -1};
}
