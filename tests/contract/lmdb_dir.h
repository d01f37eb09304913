/* A directory for one store of a test, under $TMPDIR or /tmp. */
#ifndef TESTS_CONTRACT_LMDB_DIR_H
#define TESTS_CONTRACT_LMDB_DIR_H

#include <ftw.h>
#include <unistd.h>

#include "base/base.h"

struct lmdb_dir {
	char path[256];
};

static inline void lmdb_dir_make(struct lmdb_dir *dir)
{
	const char *parent = getenv("TMPDIR");
	snprintf(dir->path, sizeof(dir->path), "%s/granary-contract-XXXXXX",
		 parent && *parent ? parent : "/tmp");
	ASSERT(mkdtemp(dir->path));
}

static inline int lmdb_dir_remove_one(const char *path, UNUSED const struct stat *st,
				      UNUSED int type, UNUSED struct FTW *ftw)
{
	return remove(path);
}

static inline void lmdb_dir_remove(struct lmdb_dir *dir)
{
	nftw(dir->path, lmdb_dir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
