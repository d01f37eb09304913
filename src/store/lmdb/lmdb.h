/* The embedded engine: the store contract on LMDB, one process, one machine.
 *
 * LMDB is the only thing that touches the disk; doc/format-store.md says what lies in it.
 *
 * Order of events of a write: the caller's thread encodes each request into the batch's arena. The
 * writer thread gathers the batches that arrived while its last commit was in flight, packs their
 * samples into journal pages, applies their cells, and commits with one fsync. Then it shows the
 * samples in the heads (one per band of series and segment of time, in memory) and completes the
 * batches. Between, in bounded slices of the same transactions, it seals heads into extents, cuts
 * the journal, settles closed segments and drops expired ones.
 *
 * Readers run on a pool: they copy the heads, then open a snapshot, then merge; so a head that is
 * sealed in between is seen twice, never not at all, and the higher journal sequence wins.
 *
 * Threads and locks, in lock order:
 *   registry.lock  shapes and bands that are registered but not yet committed (registry.h)
 *   heads.lock     the table of heads and the directory of segments (heads.h); the writer alone
 *                  changes them, readers copy
 *   queue_lock     the batches that wait for the writer
 *   watch.lock     what is thought of the clock (base/clock_watch.h)
 *
 * Failure: an I/O error in a commit ends the engine for good (the waiting batches get ERR_UNKNOWN,
 * later ones ERR_READ_ONLY, and lmdb_options.on_dead is told): what the disk holds is known again
 * only after a restart. No room (map or disk) aborts the one transaction with ERR_FULL and the
 * engine refuses writes until there is room again. */
#ifndef STORE_LMDB_LMDB_H
#define STORE_LMDB_LMDB_H

#include "base/clock.h"
#include "base/file.h"
#include "store/store.h"

struct lmdb_options {
	const char *path;           /* directory; made if absent */
	uint64_t map_bytes;         /* the file's maximum; never grown while running. 0 = 64 GiB */
	uint64_t journal_max_bytes; /* 0 = 512 MiB */
	int64_t journal_max_age_ms; /* 0 = 2 h */
	uint64_t head_max_bytes;    /* 0 = 512 MiB */
	uint64_t queue_max_bytes;   /* of batches waiting for the writer; 0 = 256 MiB */
	uint64_t min_free_bytes;    /* of the file system; below it writes are refused */
	int64_t settle_delay_ms; /* quiet time after which a closed segment is settled; 0 = 60 s */
	unsigned read_threads;   /* 0 = 2 */
	bool not_durable;        /* no fsync: only for tests that do not test durability */
	bool must_exist;         /* ERR_NOT_FOUND instead of a new store: for the tools */
	/* To look at a store that may be damaged: it must exist, nothing in it is changed (writes
	 * get ERR_READ_ONLY, upkeep rests), and what of the journal cannot be replayed is left out
	 * rather than an error; STORE_VERIFY names it. */
	bool inspect;
	struct clock *clock; /* NULL = the real one; the store watches it */
	struct files *files; /* NULL = the real ones */
	/* Runs on the writer thread, once, after a commit failed for another reason than room. */
	void (*on_dead)(void *context, int err);
	void *context;
	/* Runs within lmdb_open, at the first page of the journal and then every so many, so that
	 * somebody sees that it goes on. NULL: nobody does. */
	void (*on_replay)(uint64_t pages, uint64_t total);
};

/* ERR_LOCKED: another process has the directory, and e names it. ERR_VERSION: written by a newer
 * format. ERR_DAMAGED: the file is shorter than its pages, a database is missing, or a page of the
 * journal cannot be replayed, and e names it. */
int lmdb_open(const struct lmdb_options *options, struct store **store,
	      struct errbuf *e) MUST_CHECK;

/* The clock of the options, watched: nothing expires in the store while it is doubted, whose mark
 * is kept there over restarts. For all who judge ages of what is stored. As long as the store is
 * open.
 */
struct clock *lmdb_clock(struct store *store);

/* When the writer last moved, ms by the store's clock. It does so several times a second, unless it
 * is at one write; so it stands while the disk does. From any thread. */
int64_t lmdb_moved_ms(struct store *store);

/* Seals all heads, settles all segments, drops what expired, cuts the journal; blocks. */
int lmdb_settle(struct store *store) MUST_CHECK;
/* Only closed segments, but without waiting until they are quiet. */
int lmdb_settle_closed(struct store *store) MUST_CHECK;

struct lmdb_compaction {
	uint64_t before_bytes, after_bytes; /* of the data file */
};

/* Rewrites the data file of a directory that no process has open: settles closed segments (`all`:
 * everything), then copies every entry, in order, to a file beside it that takes its place by a
 * rename. Whatever happens, at any moment the one file or the other is there, whole. Needs room for
 * both. ERR_LOCKED: a process has the directory, and e names it. */
int lmdb_compact(const struct lmdb_options *options, bool all, struct lmdb_compaction *done,
		 struct errbuf *e) MUST_CHECK;

/* Stored data that cannot be had any more, or may have been there. */
struct lmdb_lost {
	const char *what;       /* the database, or the tree */
	uint64_t page;          /* which is damaged; 0: no one page is */
	const char *table;      /* NULL: it may be any */
	const char *series;     /* the same */
	int64_t from_ms, to_ms; /* times; INT64_MIN, INT64_MAX: any */
	const char *why;
};
/* One line for people; ends with a zero. */
enum { LMDB_LOST_TEXT_BYTES = 2048 };
void lmdb_lost_text(const struct lmdb_lost *lost, char to[LMDB_LOST_TEXT_BYTES]);

/* Looks at every page of the data file of a directory that no process has open, without LMDB and
 * whatever the pages say: each is part of one tree, or free, once. Calls `tell` for what is not so,
 * with what of the stored data that concerns. An error: the file cannot be looked at. */
int lmdb_verify_pages(const struct lmdb_options *options,
		      void (*tell)(void *context, const struct lmdb_lost *lost), void *context,
		      uint64_t *checked, struct errbuf *e) MUST_CHECK;

struct lmdb_repaired {
	uint64_t copied; /* entries: extents, pages of the journal, cells, names */
	uint64_t lost;   /* calls of `tell` */
};

/* Copies what is whole in a directory that no process has open to the directory `to`, which must
 * not be there, and calls `tell` for what is not in the copy, or may have been there. Changes
 * nothing in the first. `to` appears when all is on disk. The copy has nothing that was deleted or
 * overwritten, as far as the damaged file lets anybody know (see repair.c). */
int lmdb_repair(const struct lmdb_options *options, const char *to,
		void (*tell)(void *context, const struct lmdb_lost *lost), void *context,
		struct lmdb_repaired *done, struct errbuf *e) MUST_CHECK;

/* Makes the store that a backup begins with one of an empty directory, to be inspected there: a
 * link. Unlink removes the directory and what inspecting has made in it, and nothing else. */
int lmdb_backup_link(const char *backup, const char *dir, struct errbuf *e) MUST_CHECK;
void lmdb_backup_unlink(const char *dir);

/* A store made of a backup, which comes in pieces. It lies in `TO.restoring` until all is there and
 * lmdb_restore_end names it `to`. */
struct lmdb_restore;

/* ERR_EXISTS: `to` is there, or another restore is at work in TO.restoring or left it. */
int lmdb_restore_begin(const char *to, struct lmdb_restore **restore, struct errbuf *e) MUST_CHECK;
int lmdb_restore_write(struct lmdb_restore *restore, struct slice piece,
		       struct errbuf *e) MUST_CHECK;
/* All is written and right: it is a store now, on disk, and may be opened in its directory. */
int lmdb_restore_written(struct lmdb_restore *restore, struct errbuf *e) MUST_CHECK;
/* What lmdb_open takes for it. */
struct lmdb_options lmdb_restore_options(const struct lmdb_restore *restore);
int lmdb_restore_end(struct lmdb_restore *restore, struct errbuf *e) MUST_CHECK;
/* Removes what has not come to its end. */
void lmdb_restore_free(struct lmdb_restore *restore);

#endif
