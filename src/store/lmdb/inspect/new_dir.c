#include "store/lmdb/inspect/new_dir.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int new_dir_must_not_be_there(const char *path, const char *what, struct errbuf *e)
{
	struct stat st;
	if (lstat(path, &st) == 0)
		return errbuf_set(e, ERR_EXISTS, "%s is there already: %s", path, what);
	return errno == ENOENT ? 0 : errbuf_set(e, -errno, "%s: %s", path, err_text(-errno));
}

int new_dir_choose(struct new_dir *dir, struct files *files, const char *to, const char *suffix,
		   struct errbuf *e)
{
	size_t to_bytes = strlen(to);
	dir->files = files;
	if (!to_bytes)
		return errbuf_set(e, ERR_INVALID, "the name of the directory is empty");
	while (to_bytes > 1 && to[to_bytes - 1] == '/')
		to_bytes--;
	if (to_bytes + strlen(suffix) + sizeof("/lock.mdb") > ENV_NAME_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "%.100s...: the name is too long", to);
	snprintf(dir->to, sizeof(dir->to), "%.*s", (int)to_bytes, to);
	snprintf(dir->part, sizeof(dir->part), "%.*s%s", (int)to_bytes, to, suffix);
	int err = new_dir_must_not_be_there(dir->to, "name a directory that is not", e);
	return err ? err
		   : new_dir_must_not_be_there(dir->part,
					       "another one is making it, or was ended before its "
					       "end; then remove it",
					       e);
}

int new_dir_make(const struct new_dir *dir, struct errbuf *e)
{
	char parent[ENV_NAME_MAX_BYTES];
	const char *slash = strrchr(dir->part, '/');
	int err = 0;
	if (slash && slash > dir->part) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - dir->part), dir->part);
		err = dir->files->make_dir(dir->files, parent, 0700);
	}
	if (!err && mkdir(dir->part, 0700))
		err = errno == EEXIST ? ERR_EXISTS : -errno;
	return err ? errbuf_set(e, err, "cannot make the directory %s: %s", dir->part,
				err_text(err))
		   : 0;
}

int new_dir_name(const struct new_dir *dir, struct errbuf *e)
{
	int err = dir->files->rename(dir->files, dir->part, dir->to);
	if (!err)
		return 0;
	errbuf_set(e, err, "cannot name %s %s: %s", dir->part, dir->to, err_text(err));
	new_dir_remove(dir);
	return err;
}

void new_dir_remove(const struct new_dir *dir)
{
	static const char *const names[] = {ENV_FILE, "lock.mdb", "lock", "made"};
	char path[ENV_NAME_MAX_BYTES + sizeof("/lock.mdb")];
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir->part, names[i]);
		(void)!dir->files->remove(dir->files, path);
	}
	(void)!rmdir(dir->part);
}
