/* Compaction: the data file of a store that nobody has open, written again without free pages and
 * with full ones. Order of events: open, settle, close; copy every entry in order of its key, which
 * fills pages to the brim; sync the copy; rename; sync the directory. Only the rename changes what
 * a later start finds. */
#include "base/fault.h"
#include "base/log.h"
#include "store/lmdb/engine.h"

/* In one transaction, so that its pages need not all be in memory. */
enum { COMMIT_ENTRIES = 16384 };

struct copying {
	MDB_txn *from;
	MDB_env *to;
	MDB_txn *txn; /* on `to` */
	MDB_dbi dbi[DB_COUNT];
	size_t entries; /* in txn */
};

static int open_target(struct copying *c, const char *file, uint64_t map_bytes)
{
	/* Nobody else looks at it, and it is synced once, at the end. */
	unsigned flags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC | MDB_NORDAHEAD;
	int err = env_error(mdb_env_create(&c->to));
	if (!err)
		err = env_error(mdb_env_set_mapsize(c->to, map_bytes));
	if (!err)
		err = env_error(mdb_env_set_maxdbs(c->to, DB_COUNT));
	if (!err)
		err = env_error(mdb_env_open(c->to, file, flags, 0600));
	if (!err)
		err = env_error(mdb_txn_begin(c->to, NULL, 0, &c->txn));
	for (int i = 0; i < DB_COUNT && !err; i++)
		err = env_error(mdb_dbi_open(c->txn, db_names[i], MDB_CREATE, &c->dbi[i]));
	return err;
}

static int commit_some(struct copying *c)
{
	int err = env_error(mdb_txn_commit(c->txn));
	c->txn = NULL;
	c->entries = 0;
	return err ? err : env_error(mdb_txn_begin(c->to, NULL, 0, &c->txn));
}

/* Appending refuses keys that do not ascend: a damaged page does not get into the copy. */
static int compact_copy_entry(struct copying *c, enum db db, struct slice key, struct slice value)
{
	MDB_val k = val_of(key), v = val_of(value);
	int err = env_error(mdb_put(c->txn, c->dbi[db], &k, &v, MDB_APPEND));
	if (!err && ++c->entries == COMMIT_ENTRIES)
		err = commit_some(c);
	return err;
}

static int compact_copy_db(struct copying *c, const struct env *env, enum db db)
{
	MDB_cursor *cursor;
	struct slice key = SLICE("\0"), value;
	int err = env_error(mdb_cursor_open(c->from, env->dbi[db], &cursor));
	if (err)
		return err;
	err = env_seek(cursor, &key, &value);
	while (!err) {
		err = compact_copy_entry(c, db, key, value);
		if (!err)
			err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* All entries, on disk. */
static int compact_copy_all(struct env *env, const char *file, uint64_t map_bytes)
{
	struct copying c = {.from = NULL};
	int err = env_error(mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &c.from));
	if (!err)
		err = open_target(&c, file, map_bytes);
	for (int db = 0; db < DB_COUNT && !err; db++)
		err = compact_copy_db(&c, env, (enum db)db);
	if (!err) {
		err = env_error(mdb_txn_commit(c.txn));
		c.txn = NULL;
	}
	if (!err)
		err = fault("compact.sync");
	if (!err)
		err = env_error(mdb_env_sync(c.to, 1));
	if (c.txn)
		mdb_txn_abort(c.txn);
	if (c.to)
		mdb_env_close(c.to);
	if (c.from)
		mdb_txn_abort(c.from);
	return err;
}

/* What to do about it stands after what was the matter. */
static int say_room(const struct lmdb_options *options, const struct lmdb_compaction *done, int err,
		    struct errbuf *e)
{
	struct errbuf said = *e;
	if (err != ERR_FULL)
		return err;
	return errbuf_set(
		e, err,
		"%s. Compacting writes a second file beside the first: make room in %s, up "
		"to %llu MB",
		said.text, options->path, (unsigned long long)(done->before_bytes / 1000000 + 1));
}

static int replace_file(struct env *env, const struct lmdb_options *options,
			struct lmdb_compaction *done, struct errbuf *e)
{
	struct files *files = options->files;
	char file[ENV_NAME_MAX_BYTES], copy[ENV_NAME_MAX_BYTES];
	snprintf(file, sizeof(file), "%s/" ENV_FILE, options->path);
	snprintf(copy, sizeof(copy), "%s/" ENV_NEW_FILE, options->path);
	int err = compact_copy_all(env, copy, options->map_bytes);
	if (!err)
		err = files->length(files, copy, &done->after_bytes);
	if (!err)
		err = fault("compact.rename");
	if (err) {
		(void)!files->remove(files, copy);
		return errbuf_set(e, err, "%s cannot be copied: %s; it is as it was", file,
				  err_text(err));
	}
	err = files->rename(files, copy, file);
	if (!err)
		err = fault("compact.renamed");
	return err ? errbuf_set(e, err, "cannot put %s in the place of %s: %s", copy, file,
				err_text(err))
		   : 0;
}

static int settle_store(const struct lmdb_options *options, bool all, struct errbuf *e)
{
	struct store *store;
	int err = lmdb_open(options, &store, e);
	if (err)
		return err;
	err = all ? lmdb_settle(store) : lmdb_settle_closed(store);
	store_close(store);
	return err ? errbuf_set(e, err, "%s cannot be settled: %s", options->path, err_text(err))
		   : 0;
}

int lmdb_compact(const struct lmdb_options *wanted, bool all, struct lmdb_compaction *done,
		 struct errbuf *e)
{
	struct lmdb_options options = *wanted;
	struct env env;
	char file[ENV_NAME_MAX_BYTES];
	lmdb_options_fill(&options);
	options.must_exist = true;
	snprintf(file, sizeof(file), "%s/" ENV_FILE, options.path);
	int err = options.files->length(options.files, file, &done->before_bytes);
	if (err)
		return errbuf_set(e, err, "no store in %s", options.path);
	err = settle_store(&options, all, e);
	if (!err)
		err = env_open(&env, &options, e);
	if (err)
		return say_room(&options, done, err, e);
	err = replace_file(&env, &options, done, e);
	env_close(&env);
	return say_room(&options, done, err, e);
}
