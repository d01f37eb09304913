/* Restoring: the data file of a backup in a directory that is not there yet. Order of events: the
 * file is written, beside its place; whoever reads the backup finds all of it right; the file is
 * synced and looked at as by a start; it is opened once, so that the directory is marked as one
 * with a store; the directory gets its name. Whatever ends that leaves the name free. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"
#include "store/lmdb/datafile.h"
#include "store/lmdb/engine.h"
#include "store/lmdb/inspect/new_dir.h"

/* The kernel is asked to write this often, so that the sync at the end is short. */
enum { RESTORE_FLUSH_BYTES = 16 << 20 };

struct lmdb_restore {
	struct new_dir dir;
	char file[ENV_NAME_MAX_BYTES + sizeof(ENV_FILE)];
	int fd;
	uint64_t bytes;
	bool is_named;
};

int lmdb_restore_begin(const char *to, struct lmdb_restore **restore, struct errbuf *e)
{
	struct files *files = files_real();
	struct lmdb_restore *r = mem_zalloc(sizeof(*r));
	int err = new_dir_choose(&r->dir, files, to, ".restoring", e);
	if (!err)
		err = new_dir_make(&r->dir, e);
	if (err) {
		mem_free(r);
		return err;
	}
	snprintf(r->file, sizeof(r->file), "%s/" ENV_FILE, r->dir.part);
	r->fd = open(r->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (r->fd < 0) {
		err = errbuf_set(e, -errno, "cannot write %s: %s", r->file, err_text(-errno));
		(void)rmdir(r->dir.part);
		mem_free(r);
		return err;
	}
	*restore = r;
	return 0;
}

int lmdb_restore_write(struct lmdb_restore *r, struct slice piece, struct errbuf *e)
{
	if (fault("restore.write"))
		return errbuf_set(e, ERR_FAULT, "cannot write %s", r->file);
	size_t done;
	int err = file_write_all(r->fd, piece, &done);
	if (err)
		return errbuf_set(e, err, "cannot write %s: %s", r->file, err_text(err));
	r->bytes += done;
	if (r->bytes % RESTORE_FLUSH_BYTES < done)
		(void)!sync_file_range(r->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return 0;
}

int lmdb_restore_written(struct lmdb_restore *r, struct errbuf *e)
{
	int err = fsync(r->fd) || close(r->fd) ? -errno : 0;
	r->fd = -1;
	if (!err)
		err = fault("restore.synced");
	if (err)
		return errbuf_set(e, err, "cannot write %s: %s", r->file, err_text(err));
	return datafile_check_start(r->file, e);
}

struct lmdb_options lmdb_restore_options(const struct lmdb_restore *r)
{
	struct lmdb_options options = {.path = r->dir.part, .must_exist = true};
	lmdb_options_fill(&options);
	if (options.map_bytes < 2 * r->bytes)
		options.map_bytes = 2 * r->bytes;
	return options;
}

int lmdb_restore_end(struct lmdb_restore *r, struct errbuf *e)
{
	int err = fault("restore.named");
	if (!err)
		err = r->dir.files->sync_dir(r->dir.files, r->dir.part);
	if (err)
		return errbuf_set(e, err, "%s: %s", r->dir.part, err_text(err));
	err = new_dir_name(&r->dir, e);
	r->is_named = !err;
	return err;
}

void lmdb_restore_free(struct lmdb_restore *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	if (!r->is_named)
		new_dir_remove(&r->dir);
	mem_free(r);
}

/* ---- Reading a backup where it lies ---------------------------------------------------------- */

int lmdb_backup_link(const char *backup, const char *dir, struct errbuf *e)
{
	char target[PATH_MAX], name[ENV_NAME_MAX_BYTES];
	snprintf(name, sizeof(name), "%s/" ENV_FILE, dir);
	if (!realpath(backup, target) || symlink(target, name))
		return errbuf_set(e, -errno, "%s: %s", backup, err_text(-errno));
	return 0;
}

void lmdb_backup_unlink(const char *dir)
{
	struct new_dir made = {.files = files_real()};
	snprintf(made.part, sizeof(made.part), "%s", dir);
	new_dir_remove(&made);
}
