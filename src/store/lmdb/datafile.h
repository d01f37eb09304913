/* The data file of a store as pages.h reads it, with its databases, and what of the stored data a
 * damaged page takes with it: by table, series and time. For verify, repair and the start, each of
 * which looks before LMDB does. Private to store/lmdb; one thread. */
#ifndef STORE_LMDB_DATAFILE_H
#define STORE_LMDB_DATAFILE_H

#include "store/lmdb/pages.h"
#include "store/lmdb/registry.h"

struct buf;

struct datafile {
	int fd;
	struct pages pages;
	struct pages_tree trees[DB_COUNT]; /* of those that are there */
	bool found[DB_COUNT];
};

/* The owner of a database's pages. */
static inline unsigned datafile_owner(enum db db)
{
	return (unsigned)PAGES_TREES + db;
}

/* Called for each loss; `what` is the tree. */
typedef void datafile_lost(void *context, const char *what, const struct pages_loss *loss);

/* `file` is its path. datafile_close in any case. */
int datafile_open(struct datafile *file, const char *path, struct errbuf *e) MUST_CHECK;
void datafile_close(struct datafile *file);
/* Finds the databases; a loss is of one that is not found. */
int datafile_find(struct datafile *file, datafile_lost *lost, void *context) MUST_CHECK;

/* 0: it cannot be read. */
int datafile_format(struct datafile *file, uint32_t *version) MUST_CHECK;
/* Whether that page, whatever leads to it, is a list of all databases: which are then found. What
 * earlier formats lack may be missing. */
bool datafile_find_in(struct datafile *file, uint64_t page) MUST_CHECK;

/* What a server's start does not survive: both meta pages, the whole free list, the list of
 * databases and the root of each. Reads little of even a large file. */
int datafile_check_start(const char *path, struct errbuf *e) MUST_CHECK;

/* Says by table, series and time what lay there, each tag set by itself, at most `told_max`; then
 * comes one line for the others. Names are looked up in the file itself. */
void datafile_tell_lost(struct datafile *file, enum db db, const struct pages_loss *loss,
			size_t told_max, void (*tell)(void *context, const struct lmdb_lost *lost),
			void *context);
/* `metric,metric{tags}` */
void datafile_name_band(const struct shape_view *shape, const struct band_view *band,
			struct buf *out);

#endif
