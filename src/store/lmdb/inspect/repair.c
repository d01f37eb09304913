/* Repair: what is whole in a damaged data file, as a new store. Nothing but pages.h reads the old
 * file, and LMDB writes the new one, so no byte of the damage reaches either.
 *
 * Order of events: every tree is walked, so that each page has its owner; then database after
 * database, first those that others refer to, is copied entry by entry, each looked at as verify
 * does, its checksum over key and value first. Indexes are made again. Then extents and journal
 * lose what has no series any more, and the directory gets its name.
 *
 * What is below a damaged branch is searched for among the pages that belong to nobody. That is
 * certain only where the list of free pages is whole: then a page that is neither in a tree nor
 * free was in that branch, in the newest state. Where it is not, such a page may be an old one,
 * with what has been deleted or overwritten since: it is left out. For the same reason a page that
 * a tree has and a whole list calls free is left out.
 *
 * Where a meta page is damaged, the newest state is searched for (repair_newest.c).
 *
 * Pages of the journal that are lost may have held a deletion, of samples that are in the pages
 * before them. Where that can be (unsure_below) these are left out, too. A sample of a lost page
 * that had taken the place of an older one cannot be known: the older one is there. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "base/grow.h"
#include "base/hash.h"
#include "store/lmdb/inspect/new_dir.h"
#include "store/lmdb/inspect/repair.h"
#include "store/lmdb/sweep_index.h"

enum {
	COMMIT_ENTRIES = 16384,
	LOSSES_MAX = 100000, /* of one database: what comes then is told as one */
};

void repair_tell(struct repairing *r, const struct lmdb_lost *lost)
{
	r->done->lost++;
	r->tell(r->context, lost);
}

static void tell_whole(struct repairing *r, const char *what, uint64_t page, const char *why)
{
	struct lmdb_lost lost = {what, page, NULL, NULL, INT64_MIN, INT64_MAX, why};
	repair_tell(r, &lost);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static void repair_add_loss(struct pages_walk *walk, const struct pages_loss *loss)
{
	struct repairing *r = walk->context;
	struct repair_losses *kept = &r->losses[r->db];
	kept->unread += !r->is_copying && loss->one;
	if (kept->count == LOSSES_MAX) {
		kept->more = true;
		return;
	}
	GROW(kept->list, kept->cap, kept->count + 1);
	struct pages_loss *copy = &kept->list[kept->count++];
	*copy = *loss;
	copy->from.data = mem_copy_text(loss->from);
	copy->to.data = mem_copy_text(loss->to);
	kept->branches += !loss->one;
}

static void release_losses(struct repairing *r)
{
	for (int db = 0; db < DB_COUNT; db++) {
		for (size_t i = 0; i < r->losses[db].count; i++) {
			mem_free((void *)(uintptr_t)r->losses[db].list[i].from.data);
			mem_free((void *)(uintptr_t)r->losses[db].list[i].to.data);
		}
		mem_free(r->losses[db].list);
	}
}

/* Whether it lies below a lost branch. */
static bool is_lost(const struct repair_losses *kept, struct slice key)
{
	size_t low = 0, high = kept->walked;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (slice_compare(kept->list[middle].from, key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	const struct pages_loss *loss = low ? &kept->list[low - 1] : NULL;
	return loss && !loss->one && (!loss->to.len || slice_compare(key, loss->to) < 0);
}

/* An entry that is there, but not as it was written. */
static void lose_entry(struct repairing *r, struct slice key, uint64_t page, const char *why)
{
	struct pages_loss loss = {page, why, key, key, true};
	struct pages_walk walk = {.context = r};
	repair_add_loss(&walk, &loss);
}

/* All entries below a lost branch may have been found again: then nothing is lost. */
static void tell_losses(struct repairing *r, enum db db)
{
	const struct repair_losses *kept = &r->losses[db];
	uint64_t found = r->seen[db] + kept->unread;
	bool all_found = found >= r->file.trees[db].entries;
	for (size_t i = 0; i < kept->count; i++) {
		if (kept->list[i].one || !all_found)
			datafile_tell_lost(&r->file, db, &kept->list[i], REPAIR_LINES_MAX,
					   repair_tell_of, r);
	}
	if (r->file.found[db] && !all_found && !kept->branches)
		tell_whole(
			r, db_names[db], 0,
			"it has fewer entries than it should: a page of an earlier time, perhaps");
	if (kept->more)
		tell_whole(r, db_names[db], 0, "more is lost than can be told");
	if (!r->file.found[db])
		tell_whole(r, db_names[db], 0, "its root is lost, and everything in it");
}

/* ---- The new store --------------------------------------------------------------------------- */

static int repair_count_entry(struct repairing *r)
{
	if (++r->uncommitted < COMMIT_ENTRIES)
		return 0;
	return repair_commit(r);
}

int repair_commit(struct repairing *r)
{
	int err = r->txn ? env_commit(&r->engine->env, r->txn) : 0;
	r->txn = NULL;
	r->uncommitted = 0;
	return err ? err : env_error(mdb_txn_begin(r->engine->env.mdb, NULL, 0, &r->txn));
}

/* What is there already stays: *is_new false. */
static int put_new(struct repairing *r, enum db db, struct slice key, struct slice value,
		   bool *is_new)
{
	struct slice present;
	int err = env_get(r->txn, r->engine->env.dbi[db], key, &present);
	*is_new = err == ERR_NOT_FOUND;
	if (!*is_new)
		return err;
	err = env_put(r->txn, r->engine->env.dbi[db], key, value);
	r->done->copied += !err;
	return err ? err : repair_count_entry(r);
}

static void rise(uint64_t *high, uint64_t to)
{
	if (to > *high)
		*high = to;
}

/* Where sequences, flushes, versions and stamps go on: above all that is there. */
static void see_counters(struct repairing *r, struct slice key, struct slice value)
{
	struct journal_view view;
	struct group_id id;
	struct extent extent;
	struct block block;
	struct cell_row row;
	struct cell cell;
	int64_t first_ts_ms;
	uint32_t flush;
	if (r->db == DB_JOURNAL && !journal_page_open(key, value, &view)) {
		rise(&r->counters[COUNTER_SEQUENCE], view.first_sequence + view.records);
	} else if (r->db == DB_EXTENTS && !group_parse_key(key, &id, &first_ts_ms, &flush) &&
		   !extent_open(&extent, key, value)) {
		rise(&r->counters[COUNTER_FLUSH], (uint64_t)flush + 1);
		while (extent_next(&extent, &block))
			rise(&r->counters[COUNTER_SEQUENCE], block.meta.sequence + 1);
	} else if (r->db == DB_CELLS && !cell_parse(key, value, &cell)) {
		rise(&r->counters[COUNTER_VERSION], cell.version + 1);
		rise(&r->counters[COUNTER_VERSION], cell.blob + 1);
		if (cell.stamp_us > 0)
			rise(&r->counters[COUNTER_STAMP], (uint64_t)cell.stamp_us);
	} else if (r->db == DB_CELL_ROWS && !cell_row_parse(key, value, &row)) {
		if (row.stamp_us > 0)
			rise(&r->counters[COUNTER_STAMP], (uint64_t)row.stamp_us);
	}
}

/* Beside the counters: a doubt of the clock stays one; where none can be read, a start doubts. */
static int repair_put_counters(struct repairing *r)
{
	MDB_dbi meta = r->engine->env.dbi[DB_META];
	struct slice deletions = {(const char *)&r->last_deletion, sizeof(r->last_deletion)};
	int err = env_put_record(r->txn, meta, SLICE("counters"),
				 (struct slice){(const char *)r->counters, sizeof(r->counters)});
	if (!err)
		err = env_put_record(r->txn, meta, SLICE(ENV_DELETIONS), deletions);
	return err ? err
		   : env_put_record(r->txn, meta, SLICE(ENV_CLOCK),
				    (struct slice){(const char *)r->clock, r->clock_len});
}

/* ---- Entries --------------------------------------------------------------------------------- */

static const char *check_band(struct repairing *r, struct slice key, struct slice value)
{
	struct slice shape;
	struct slice shape_key = {key.data, 4};
	const char *fault = inspect_entry(r->engine, r->txn, DB_BANDS, key, value);
	if (fault)
		return fault;
	bool there = !env_get(r->txn, r->engine->env.dbi[DB_SHAPES], shape_key, &shape) &&
		     !shape_parse(shape_key, shape, &r->shape);
	return there ? NULL : "its shape is not registered";
}

static const char *check_cell(struct repairing *r, struct slice key, struct slice value)
{
	struct cell cell;
	const char *fault = inspect_entry(r->engine, r->txn, DB_CELLS, key, value);
	if (fault)
		return fault;
	if (cell_parse(key, value, &cell))
		return "it cannot be read";
	if (!(cell.flags & CELL_IN_BLOB))
		return NULL;
	char *bytes = mem_alloc(cell.blob_len + 1);
	fault = cell_blob_read(r->engine, r->txn, &cell, bytes) ? "a part of it is lost" : NULL;
	mem_free(bytes);
	return fault;
}

/* What may be found wrong with an extent of a series that is lost is put right later. */
static const char *check_entry(struct repairing *r, enum db db, struct slice key,
			       struct slice value)
{
	const char *fault;
	switch (db) {
	case DB_SHAPES:
		return shape_parse(key, value, &r->shape) ? "it cannot be read" : NULL;
	case DB_BANDS:
		return check_band(r, key, value);
	case DB_CELLS:
		return check_cell(r, key, value);
	case DB_EXTENTS:
		fault = inspect_entry(r->engine, r->txn, db, key, value);
		r->has_lost_band = fault == inspect_no_band;
		return r->has_lost_band ? NULL : fault;
	default:
		return inspect_entry(r->engine, r->txn, db, key, value);
	}
}

static int index_cell(struct repairing *r, struct slice key, struct slice value)
{
	struct cell cell;
	int err = cell_parse(key, value, &cell);
	return err ? err
		   : sweep_index_move_cell(&r->engine->env, r->txn, key, SWEEP_NEVER,
					   sweep_cell_minute((enum table)key.data[0], &cell));
}

/* Whether its cells have gone, the old index may no longer say. */
static int index_row(struct repairing *r, struct slice key, struct slice value)
{
	const struct env *env = &r->engine->env;
	const uint8_t *bytes = (const uint8_t *)key.data;
	struct cell_row row;
	int err = cell_row_parse(key, value, &row);
	if (err || !row.is_deleted)
		return err;
	err = sweep_index_put_row(env, r->txn, bytes, SWEEP_NOW);
	return err ? err : sweep_index_put_row(env, r->txn, bytes, sweep_row_minute(&row));
}

static bool has_index(enum db db)
{
	return db == DB_SHAPES || db == DB_BANDS || db == DB_CELL_ROWS || db == DB_CELLS;
}

static int index_entry(struct repairing *r, enum db db, struct slice key, struct slice value)
{
	struct band_view band;
	struct slice payload;
	if (db == DB_CELL_ROWS)
		return index_row(r, key, value);
	if (db == DB_CELLS)
		return index_cell(r, key, value);
	if (db == DB_SHAPES) {
		int err = record_open(key, value, &payload);
		return err ? err
			   : registry_index_shape(&r->engine->env, r->txn, &r->shape, payload);
	}
	int err = band_parse(key, value, &band);
	return err ? err : registry_index_band(&r->engine->env, r->txn, &r->shape, &band);
}

/* Entries come in the order of their keys, but for leaves that are searched for. */
static void repair_see_journal(struct repairing *r, struct slice key, struct slice value,
			       bool whole)
{
	struct journal_view view;
	bool any = r->damaged.from < r->damaged.below;
	uint64_t from = r->is_searching ? 0 : r->damaged.end;
	if (!whole) {
		r->damaged.from = any && r->damaged.from < from ? r->damaged.from : from;
		r->damaged.below = UINT64_MAX;
		r->damaged.open = true;
	} else if (!r->is_searching && !journal_page_open(key, value, &view)) {
		if (r->damaged.open)
			r->damaged.below = view.first_sequence;
		r->damaged.open = false;
		r->damaged.end = view.first_sequence + view.records;
	}
}

static int repair_copy_entry(struct pages_walk *walk, struct slice key, struct slice value,
			     uint64_t page)
{
	struct repairing *r = walk->context;
	bool searching = r->is_searching;
	if (searching && !is_lost(&r->losses[r->db], key))
		return 0;
	r->seen[r->db]++;
	const char *fault = check_entry(r, r->db, key, value);
	if (r->db == DB_JOURNAL)
		repair_see_journal(r, key, value, !fault);
	if (fault) {
		lose_entry(r, key, page, fault);
		return 0;
	}
	see_counters(r, key, value);
	bool is_new;
	int err = put_new(r, r->db, key, value, &is_new);
	if (!err && is_new && has_index(r->db))
		err = index_entry(r, r->db, key, value);
	if (!err && r->db == DB_EXTENTS && r->has_lost_band)
		repair_note_group(r, key);
	return err;
}

/* ---- Leaves that no branch leads to ---------------------------------------------------------- */

struct guess {
	struct repairing *r;
	size_t votes[DB_COUNT];
};

static int guess_entry(struct pages_walk *walk, struct slice key, struct slice value,
		       UNUSED uint64_t page)
{
	struct guess *guess = walk->context;
	for (int db = 0; db < DB_COUNT; db++) {
		if (guess->r->losses[db].branches && is_lost(&guess->r->losses[db], key) &&
		    !check_entry(guess->r, (enum db)db, key, value))
			guess->votes[db]++;
	}
	return 0;
}

/* A leaf does not say which database it is of: its keys and what their sums say do. */
static bool repair_is_of(struct repairing *r, uint64_t page, enum db db)
{
	struct guess guess = {.r = r};
	struct pages_walk walk = {.pages = &r->file.pages, .context = &guess, .entry = guess_entry};
	if (pages_leaf(&walk, page))
		return false;
	for (int other = 0; other < DB_COUNT; other++) {
		if (other != (int)db && guess.votes[other])
			return false;
	}
	return guess.votes[db] > 0;
}

static int search_leaves(struct repairing *r, enum db db)
{
	struct pages *pages = &r->file.pages;
	struct pages_walk walk = {.pages = pages,
				  .owner = datafile_owner(db),
				  .context = r,
				  .entry = repair_copy_entry,
				  .lost = repair_add_loss};
	int err = 0;
	if (!r->free_is_whole || !r->losses[db].branches)
		return 0;
	r->is_searching = true;
	for (uint64_t page = 2; page <= pages->meta.last_page && !err; page++) {
		if (pages->owners[page] == PAGES_NOBODY && repair_is_of(r, page, db))
			err = pages_leaf(&walk, page);
	}
	r->is_searching = false;
	return err;
}

/* ---- Databases ------------------------------------------------------------------------------- */

static int own_pages(struct repairing *r, enum db db)
{
	struct pages_walk walk = {.pages = &r->file.pages,
				  .tree = r->file.trees[db],
				  .owner = datafile_owner(db),
				  .context = r,
				  .lost = repair_add_loss};
	r->db = db;
	int err = r->file.found[db] ? pages_walk(&walk) : 0;
	r->losses[db].walked = r->losses[db].count;
	return err;
}

static int repair_copy_db(struct repairing *r, enum db db)
{
	struct pages_walk walk = {.pages = &r->file.pages,
				  .tree = r->file.trees[db],
				  .owner = datafile_owner(db),
				  .again = true,
				  .context = r,
				  .entry = repair_copy_entry};
	r->db = db;
	int err = r->file.found[db] ? pages_walk(&walk) : 0;
	if (!err)
		err = search_leaves(r, db);
	return err ? err : repair_commit(r);
}

static int meta_entry(struct pages_walk *walk, struct slice key, struct slice value,
		      UNUSED uint64_t page)
{
	struct repairing *r = walk->context;
	struct slice payload;
	uint32_t version = 0;
	if (slice_equal(key, SLICE("format")) && value.len == sizeof(version)) {
		memcpy(&version, value.data, sizeof(version));
		return version > FORMAT_VERSION ? ERR_VERSION : 0;
	}
	if (record_open(key, value, &payload))
		return 0;
	if (slice_equal(key, SLICE("counters")) && payload.len == sizeof(r->counters))
		memcpy(r->counters, payload.data, sizeof(r->counters));
	if (slice_equal(key, SLICE(ENV_CLOCK)) && payload.len == sizeof(r->clock))
		memcpy(r->clock, payload.data, r->clock_len = payload.len);
	if (slice_equal(key, SLICE(ENV_DELETIONS)) && payload.len == sizeof(r->last_deletion))
		memcpy(&r->last_deletion, payload.data, sizeof(r->last_deletion));
	return 0;
}

static int repair_read_meta(struct repairing *r)
{
	struct pages_walk walk = {.pages = &r->file.pages,
				  .tree = r->file.trees[DB_META],
				  .owner = datafile_owner(DB_META),
				  .again = true,
				  .context = r,
				  .entry = meta_entry};
	for (int i = 0; i < COUNTERS; i++)
		r->counters[i] = i != COUNTER_STAMP;
	r->last_deletion = UINT64_MAX;
	return r->file.found[DB_META] ? pages_walk(&walk) : 0;
}

/* In this order each finds what it refers to. */
static const enum db copied[] = {DB_SHAPES,    DB_BANDS, DB_EXTENTS, DB_JOURNAL,
				 DB_CELL_ROWS, DB_BLOBS, DB_CELLS};

static int repair_copy_all(struct repairing *r)
{
	int err = repair_commit(r);
	r->is_copying = true;
	for (size_t i = 0; i < ARRAY_LEN(copied) && !err; i++) {
		err = repair_copy_db(r, copied[i]);
		if (!err && copied[i] == DB_BANDS)
			err = registry_open(&r->engine->registry, &r->engine->env);
	}
	if (!err)
		err = repair_groups(r);
	if (!err)
		err = repair_journal(r);
	if (!err)
		err = repair_put_counters(r);
	if (!err)
		err = repair_commit(r);
	for (size_t i = 0; i < ARRAY_LEN(copied) && !err; i++)
		tell_losses(r, copied[i]);
	return err;
}

/* ---- The old file ---------------------------------------------------------------------------- */

static void find_lost(void *context, const char *what, const struct pages_loss *loss)
{
	tell_whole(context, what, loss->page, loss->why);
}

static int see_free_list(struct repairing *r)
{
	struct pages *pages = &r->file.pages;
	size_t losses;
	int err = pages_walk_free(pages, NULL, NULL, &losses);
	r->free_is_whole = !losses && pages_free_is_newest(pages);
	if (!r->free_is_whole)
		pages_forget_free(pages);
	return err;
}

/* If both meta pages may be used, the newer one is the state to copy; one whose free list is not of
 * its transaction may be a copy of something else, if the other one's is. */
static int choose_meta(struct repairing *r)
{
	struct pages *pages = &r->file.pages;
	int err = pages_use_meta(pages, &pages->meta);
	if (!err)
		err = see_free_list(r);
	if (err || r->free_is_whole || pages->metas[0].fault || pages->metas[1].fault)
		return err;
	uint64_t a = pages->metas[0].transaction, b = pages->metas[1].transaction;
	if ((a > b ? a - b : b - a) <= 1)
		return 0;
	struct pages_meta newer = pages->meta;
	err = pages_use_older_meta(pages);
	if (!err)
		err = see_free_list(r);
	if (!err && !r->free_is_whole) {
		err = pages_use_meta(pages, &newer);
		if (!err)
			err = see_free_list(r);
	}
	return err;
}

static int find_databases(struct repairing *r)
{
	const struct pages_meta *metas = r->file.pages.metas;
	bool found = false;
	int err = 0;
	if (metas[0].fault || metas[1].fault)
		err = repair_find_newest(r, &found);
	if (err || found) {
		r->free_is_whole = false; /* where the list of free pages lies, nobody knows */
		return err;
	}
	if (metas[0].fault || metas[1].fault)
		tell_whole(
			r, "the meta pages", metas[1].fault != NULL,
			"no later state than that of the other meta page was found: if there was "
			"one, what its commit wrote is missing, and what it deleted is there");
	err = choose_meta(r);
	return err ? err : datafile_find(&r->file, find_lost, r);
}

static int open_old(struct repairing *r, const struct lmdb_options *options, struct errbuf *e)
{
	char path[ENV_NAME_MAX_BYTES];
	snprintf(path, sizeof(path), "%s/" ENV_FILE, options->path);
	int err = datafile_open(&r->file, path, e);
	if (err)
		return err;
	err = find_databases(r);
	for (int db = 0; db < DB_COUNT && !err; db++)
		err = own_pages(r, (enum db)db);
	if (!err)
		err = repair_read_meta(r);
	if (err == ERR_VERSION)
		return errbuf_set(e, err, "%s was written by a newer program: use that", path);
	return err ? errbuf_set(e, err, "%s: %s", path, err_text(err)) : 0;
}

/* ---- The new directory ----------------------------------------------------------------------- */

static int make_new(struct repairing *r, const struct lmdb_options *options, const char *part,
		    struct errbuf *e)
{
	struct lmdb_options fresh = *options;
	fresh.path = part;
	fresh.inspect = fresh.must_exist = false;
	fresh.not_durable = true; /* synced once, at the end */
	if (fresh.map_bytes < 2 * r->file.pages.source.bytes)
		fresh.map_bytes = 2 * r->file.pages.source.bytes;
	r->engine->options = fresh;
	int err = env_open(&r->engine->env, &fresh, e);
	if (err)
		return err;
	err = repair_copy_all(r);
	if (!err)
		err = env_error(mdb_env_sync(r->engine->env.mdb, 1));
	if (!err)
		err = env_mark_made(&r->engine->env, e);
	if (err == ERR_FULL)
		return errbuf_set(
			e, err, "cannot write %s: no room there; the copy takes up to %llu MB",
			part, (unsigned long long)(r->file.pages.source.bytes / 1000000 + 1));
	return err ? errbuf_set(e, err, "cannot write %s: %s", part, err_text(err)) : 0;
}

static void close_new(struct repairing *r)
{
	if (r->txn)
		mdb_txn_abort(r->txn);
	if (r->engine->registry.env)
		registry_release(&r->engine->registry);
	if (r->engine->env.path)
		env_close(&r->engine->env);
	repair_release_lost(r);
	release_losses(r);
	mem_free(r->engine);
}

int lmdb_repair(const struct lmdb_options *wanted, const char *to,
		void (*tell)(void *context, const struct lmdb_lost *lost), void *context,
		struct lmdb_repaired *done, struct errbuf *e)
{
	struct lmdb_options options = *wanted;
	struct repairing *r = mem_zalloc(sizeof(*r));
	struct new_dir dir;
	struct env lock;
	lmdb_options_fill(&options);
	*done = (struct lmdb_repaired){0};
	r->file.fd = -1;
	r->engine = mem_zalloc(sizeof(*r->engine));
	r->tell = tell;
	r->context = context;
	r->done = done;
	int err = new_dir_choose(&dir, options.files, to, ".part", e);
	if (!err)
		err = env_lock_shared(&lock, &options, e);
	if (!err) {
		err = open_old(r, &options, e);
		if (!err)
			err = new_dir_make(&dir, e);
		bool made = !err;
		if (made)
			err = make_new(r, &options, dir.part, e);
		close_new(r);
		if (err && made)
			new_dir_remove(&dir);
		datafile_close(&r->file);
		env_close(&lock);
	}
	if (!err)
		err = new_dir_name(&dir, e);
	mem_free(r);
	return err;
}
