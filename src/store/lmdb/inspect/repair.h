/* What the files of repair share; repair.c says what it does. Private to store/lmdb. */
#ifndef STORE_LMDB_INSPECT_REPAIR_H
#define STORE_LMDB_INSPECT_REPAIR_H

#include "store/lmdb/cell.h"
#include "store/lmdb/datafile.h"

enum { REPAIR_LINES_MAX = 1000 /* about one damaged place */ };

/* As `counters` has them. */
enum { COUNTER_STAMP, COUNTER_VERSION, COUNTER_SEQUENCE, COUNTER_FLUSH, COUNTERS };

struct repair_losses {
	struct pages_loss *list; /* its keys are copies */
	size_t count, cap;
	size_t walked;   /* of these from the walk over the tree: in the order of their keys */
	size_t branches; /* those that are not of one entry */
	size_t unread;   /* entries whose values could not be read */
	bool more;       /* than the list takes */
};

/* Rows of a band that are left out although they can be read. */
struct lost_band {
	enum table table;
	uint32_t shape, ordinal;
	int64_t from_ms, to_ms;
	const char *why;
};

struct repairing {
	struct datafile file;  /* the old one */
	bool free_is_whole;    /* its list of free pages */
	struct engine *engine; /* the new one: environment and registry */
	MDB_txn *txn;          /* there */
	size_t uncommitted;
	enum db db;                    /* that is copied */
	bool is_copying, is_searching; /* not: the trees are walked for the first time */
	bool has_lost_band;            /* the extent looked at last */
	struct shape_view shape;
	struct repair_losses losses[DB_COUNT];
	uint64_t seen[DB_COUNT]; /* entries of the old trees that could be read */
	uint64_t counters[COUNTERS];
	uint64_t last_deletion; /* the highest sequence of one; UINT64_MAX: not known */
	/* Sequences that damaged pages of the journal may have had. Their neighbours say so, since
	 * the key may be what is damaged. */
	struct {
		uint64_t from, below; /* equal: there are no such pages */
		uint64_t end;         /* of the whole page before */
		bool open;            /* the page before is damaged */
	} damaged;
	uint8_t clock[32]; /* the record of doubt.c, as it is */
	size_t clock_len;  /* 0: there is none that can be read */

	/* repair_lost.c */
	struct group_id *groups; /* that hold blocks of lost bands */
	size_t group_count, group_cap;
	struct lost_band *bands;
	size_t band_count, band_cap;

	void (*tell)(void *context, const struct lmdb_lost *lost);
	void *context;
	struct lmdb_repaired *done;
};

void repair_tell(struct repairing *r, const struct lmdb_lost *lost);
static inline void repair_tell_of(void *r, const struct lmdb_lost *lost)
{
	repair_tell(r, lost);
}
/* repair_newest.c: one meta page is damaged. *found: there is a later state than that of the other,
 * whose databases are then r->file's. */
int repair_find_newest(struct repairing *r, bool *found) MUST_CHECK;
/* Ends the transaction and begins the next. */
int repair_commit(struct repairing *r) MUST_CHECK;

/* repair_lost.c: after all else is copied, what has no series any more, or what a lost page of the
 * journal may have deleted, goes from the new store, and is told. */
void repair_note_group(struct repairing *r, struct slice key);
int repair_groups(struct repairing *r) MUST_CHECK;
int repair_journal(struct repairing *r) MUST_CHECK;
void repair_release_lost(struct repairing *r);

#endif
