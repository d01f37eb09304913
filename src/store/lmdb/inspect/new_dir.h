/* A directory that is made under another name beside its own, and named when all in it is on disk.
 * Private to store/lmdb. */
#ifndef STORE_LMDB_INSPECT_NEW_DIR_H
#define STORE_LMDB_INSPECT_NEW_DIR_H

#include "store/lmdb/env.h"

struct new_dir {
	struct files *files;
	char to[ENV_NAME_MAX_BYTES], part[ENV_NAME_MAX_BYTES];
};

/* The other name is `to` with the suffix. ERR_EXISTS: something has one of the names. */
int new_dir_choose(struct new_dir *dir, struct files *files, const char *to, const char *suffix,
		   struct errbuf *e) MUST_CHECK;
/* Makes the directory with the other name, and its parents. ERR_EXISTS: somebody has made one since
 * the names were chosen, and may have let in others; it is left alone. */
int new_dir_make(const struct new_dir *dir, struct errbuf *e) MUST_CHECK;
/* On an error what was made is removed. */
int new_dir_name(const struct new_dir *dir, struct errbuf *e) MUST_CHECK;
void new_dir_remove(const struct new_dir *dir);

#endif
