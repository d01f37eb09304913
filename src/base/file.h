/* Files outside the database, each operation through a table so that tests can replace or break it.
 * The real one checks every result; a short write is continued, EINTR repeated. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/base.h"

struct buf;

struct file_room {
	uint64_t total_bytes, free_bytes, available_bytes;
};

enum file_type { FILE_REGULAR, FILE_DIRECTORY, FILE_OTHER };

/* Which file it is, whatever its name. An inode is used again when its file is gone, and a device
 * may have another number after the machine was started again. */
struct file_id {
	uint64_t device, inode;
	int64_t born_ns; /* when it was made, since the epoch; 0: the file system does not say */
};

/* What is known of a file without reading it. */
struct file_look {
	struct file_id id;
	uint64_t bytes;
	int64_t changed_ns; /* when it was last written to, since the epoch, by the wall clock */
	enum file_type type;
};

/* Called with each name in a directory but `.` and `..`, in any order. */
typedef void file_name_fn(void *owner, const char *name);

struct files {
	/* Reads the whole file, at most `max_bytes` (ERR_LIMIT beyond). ERR_TIMEOUT: a pipe does
	 * not give all it has, and its end, within five seconds. */
	int (*read)(struct files *files, const char *path, size_t max_bytes, struct buf *out);
	/* Writes a temporary beside it, fsync, rename, fsync of the directory: after success the
	 * new content survives a power cut, before it the old one does. */
	int (*replace)(struct files *files, const char *path, struct slice bytes, unsigned mode);
	/* Creates the directory and its parents; fsyncs the parent of each one made. */
	int (*make_dir)(struct files *files, const char *path, unsigned mode);
	int (*sync_dir)(struct files *files, const char *path);
	int (*remove)(struct files *files, const char *path);
	/* Puts `from` in the place of `to`, in the same directory, and fsyncs that. What `from`
	 * holds must be synced before. */
	int (*rename)(struct files *files, const char *from, const char *to);
	/* Free bytes for an unprivileged writer on the file system of `path`. */
	int (*free_bytes)(struct files *files, const char *path, uint64_t *bytes);
	/* How large the file system of `path` is, what of it is not used, and what of that an
	 * unprivileged writer may take. */
	int (*room)(struct files *files, const char *path, struct file_room *room);
	/* 0 and the length, or ERR_NOT_FOUND. */
	int (*length)(struct files *files, const char *path, uint64_t *bytes);
	/* Who may read and write it: the lowest nine bits as chmod has them. ERR_NOT_FOUND. */
	int (*mode)(struct files *files, const char *path, unsigned *mode);

	/* Opens a file for reading, and waits for nobody if it is a pipe. `handle` is closed by
	 * close(). ERR_NOT_FOUND. */
	int (*open)(struct files *files, const char *path, int *handle);
	/* As many bytes from an offset on as there are, at most max_bytes: *bytes is less only at
	 * the end. */
	int (*read_at)(struct files *files, int handle, uint64_t offset, void *to, size_t max_bytes,
		       size_t *bytes);
	int (*look)(struct files *files, int handle, struct file_look *look);
	void (*close)(struct files *files, int handle);
	/* Links are followed. ERR_NOT_FOUND. */
	int (*look_at)(struct files *files, const char *path, struct file_look *look);
	/* The same of a link itself. */
	int (*look_link)(struct files *files, const char *path, struct file_look *look);
	/* ERR_NOT_FOUND. A directory that changes meanwhile gives names of before and after. */
	int (*list)(struct files *files, const char *path, file_name_fn *each, void *owner);
	/* The path without links, at most max_bytes with its zero. ERR_NOT_FOUND; ERR_LIMIT: it is
	 * longer. */
	int (*resolve)(struct files *files, const char *path, char *out, size_t max_bytes);

	/* Opens a file for writing at its end, and makes it if it is absent: with the mode, and
	 * without fsync of the directory. `handle` is closed by close(). */
	int (*open_end)(struct files *files, const char *path, unsigned mode, int *handle);
	/* Writes at the end. After an error *bytes, which is less, are there all the same. */
	int (*append)(struct files *files, int handle, struct slice data, size_t *bytes);
	/* The same handle: writes over what is there from an offset on. Nobody appends by this
	 * handle meanwhile. */
	int (*write_over)(struct files *files, int handle, uint64_t offset, struct slice data);
	/* What was written survives a power cut, if the name does. After an error it may be lost,
	 * also when a second call gives 0: the system tells an error of the disk once, and takes
	 * what it could not write for written. */
	int (*sync)(struct files *files, int handle);
};

static inline bool file_id_equal(const struct file_id *a, const struct file_id *b)
{
	return a->inode == b->inode && a->born_ns == b->born_ns &&
	       (a->born_ns || a->device == b->device);
}

/* Whether a file was made before another one, so that it cannot be its copy; false: or not known.
 */
static inline bool file_id_is_older(const struct file_id *a, const struct file_id *b)
{
	return a->born_ns && b->born_ns && a->born_ns < b->born_ns;
}

struct files *files_real(void);

/* Writes all of it to a descriptor where it stands. -errno: *done bytes are written all the same.
 */
int file_write_all(int fd, struct slice bytes, size_t *done) MUST_CHECK;

/* Whether it stands where somebody was to put a secret: `changeme`, `<password>`, `********`. */
bool secret_is_placeholder(struct slice secret);

/* A file of this user's where others may write, too: no link, and nothing that somebody else has
 * put there or that has a second name. Errors have a sentence that names the file. */

/* Opens such a file for writing, or makes it with the mode; the mode of one that is there is cut
 * down to it, and its content stays. Only one process has it, until the descriptor is closed:
 * before that the process may rename or unlink it. ERR_BUSY: another process has it. */
int file_open_own(const char *path, unsigned mode, int *fd, struct errbuf *e) MUST_CHECK;
/* All of such a file, at most max_bytes (ERR_LIMIT beyond). ERR_NOT_FOUND. */
int file_read_own(const char *path, size_t max_bytes, struct buf *out, struct errbuf *e) MUST_CHECK;

/* A file that holds secrets: refused if others than its owner and group may read it, or others than
 * its owner may write it. ERR_INVALID, or why it cannot be looked at, with a sentence. */
int file_check_secret(struct files *files, const char *path, struct errbuf *e) MUST_CHECK;
/* The first line of such a file, of 1 to size - 1 bytes, with a zero behind it. ERR_INVALID, or why
 * it cannot be read, with a sentence that names the file. */
int file_read_secret(struct files *files, const char *path, char *line, size_t size,
		     struct errbuf *e) MUST_CHECK;

/* An exclusive lock on `path` (made if absent) by an open-file-description lock: released by
 * file_unlock or the end of the process. The file holds the holder's process id for people.
 * ERR_LOCKED: somebody has it, and e names the process. */
int file_lock(const char *path, int *fd, struct errbuf *e) MUST_CHECK;
/* For who only looks and may not write: a lock on a file that is there, which others that look may
 * have too; nobody gets the exclusive one meanwhile, and is told of the last who had that.
 * ERR_NOT_FOUND, ERR_LOCKED. */
int file_lock_shared(const char *path, int *fd, struct errbuf *e) MUST_CHECK;
void file_unlock(int fd);

#endif
