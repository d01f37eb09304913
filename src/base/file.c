#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"

enum {
	PATH_MAX_BYTES = 4096,
	FILE_SECRET_MAX_BYTES = 4096,
	FILE_PIPE_WAIT_MS = 5000,
	OPEN_TRIES = 100, /* of a file that goes whenever it has been opened */
};

static int open_retry(const char *path, int flags, unsigned mode)
{
	int fd;
	do
		fd = open(path, flags | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

/* Until a pipe has something, or its end: whoever wrote it has closed it. */
static int file_wait_readable(int fd, int64_t until_ms)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};
	int64_t left_ms = until_ms - clock_mono_ms(clock_real());
	int n = left_ms > 0 ? poll(&wanted, 1, (int)left_ms) : 0;
	if (n < 0 && errno != EINTR)
		return -errno;
	return n ? 0 : ERR_TIMEOUT;
}

/* A pipe has to give all it has within FILE_PIPE_WAIT_MS. */
static int file_read_all(int fd, size_t max_bytes, struct buf *out)
{
	struct stat found;
	bool is_pipe = fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode);
	int64_t until_ms = clock_mono_ms(clock_real()) + FILE_PIPE_WAIT_MS;
	for (;;) {
		char piece[65536];
		int err = is_pipe ? file_wait_readable(fd, until_ms) : 0;
		if (err)
			return err;
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		if ((size_t)n > max_bytes - out->len || buf_append(out, piece, (size_t)n))
			return ERR_LIMIT;
	}
}

static int real_read(UNUSED struct files *files, const char *path, size_t max_bytes,
		     struct buf *out)
{
	/* A pipe that nobody writes does not hold the opening up. */
	int fd = open_retry(path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return fd == -ENOENT ? ERR_NOT_FOUND : fd;
	buf_clear(out);
	int err = file_read_all(fd, max_bytes, out);
	close(fd);
	return err;
}

int file_write_all(int fd, struct slice bytes, size_t *done)
{
	*done = 0;
	while (*done < bytes.len) {
		ssize_t n = write(fd, bytes.data + *done, bytes.len - *done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		*done += (size_t)n;
	}
	return 0;
}

static int write_synced(const char *path, struct slice bytes, unsigned mode)
{
	size_t done;
	/* One that a kill has left goes; what somebody puts there instead is not written to. */
	if (unlink(path) && errno != ENOENT)
		return -errno;
	int fd = open_retry(path, O_WRONLY | O_CREAT | O_EXCL, mode);
	if (fd < 0)
		return fd;
	int err = fault("file.write");
	if (!err)
		err = file_write_all(fd, bytes, &done);
	if (!err)
		err = fault("file.fsync");
	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

/* The directory part of `path`, "." where there is none. */
static int parent_of(const char *path, char parent[PATH_MAX_BYTES])
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 1;
	if (len >= PATH_MAX_BYTES)
		return -ENAMETOOLONG;
	memcpy(parent, slash ? path : ".", len);
	if (slash == path)
		parent[len++] = '/';
	parent[len] = 0;
	return 0;
}

static int real_sync_dir(UNUSED struct files *files, const char *path)
{
	int fd = open_retry(path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	int err = fsync(fd) ? -errno : 0;
	close(fd);
	return err;
}

static int real_replace(struct files *files, const char *path, struct slice bytes, unsigned mode)
{
	char temporary[PATH_MAX_BYTES], parent[PATH_MAX_BYTES];
	int n = snprintf(temporary, sizeof(temporary), "%s.tmp", path);
	if (n < 0 || (size_t)n >= sizeof(temporary))
		return -ENAMETOOLONG;
	int err = parent_of(path, parent);
	if (!err)
		err = write_synced(temporary, bytes, mode);
	if (!err)
		err = fault("file.rename");
	if (!err && rename(temporary, path))
		err = -errno;
	if (err) {
		unlink(temporary);
		return err;
	}
	/* Only for a kill behind it: it is done, whatever comes. */
	(void)fault("file.renamed");
	return real_sync_dir(files, parent);
}

static int make_one_dir(struct files *files, const char *path, unsigned mode)
{
	if (mkdir(path, mode)) {
		struct stat st;
		if (errno != EEXIST)
			return -errno;
		if (stat(path, &st))
			return -errno;
		return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	}
	char parent[PATH_MAX_BYTES];
	int err = parent_of(path, parent);
	return err ? err : real_sync_dir(files, parent);
}

static int real_make_dir(struct files *files, const char *path, unsigned mode)
{
	char partial[PATH_MAX_BYTES];
	size_t len = strlen(path);
	if (len == 0 || len >= sizeof(partial))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		memcpy(partial, path, i);
		partial[i] = 0;
		int err = make_one_dir(files, partial, mode);
		if (err)
			return err;
	}
	return 0;
}

static int real_remove(UNUSED struct files *files, const char *path)
{
	if (unlink(path) == 0)
		return 0;
	return errno == ENOENT ? ERR_NOT_FOUND : -errno;
}

static int real_rename(struct files *files, const char *from, const char *to)
{
	char parent[PATH_MAX_BYTES];
	int err = parent_of(to, parent);
	if (err)
		return err;
	return rename(from, to) ? -errno : real_sync_dir(files, parent);
}

static int real_free_bytes(UNUSED struct files *files, const char *path, uint64_t *bytes)
{
	struct statvfs st;
	if (statvfs(path, &st))
		return -errno;
	*bytes = (uint64_t)st.f_bavail * st.f_frsize;
	return 0;
}

static int real_room(UNUSED struct files *files, const char *path, struct file_room *room)
{
	struct statvfs st;
	if (statvfs(path, &st))
		return -errno;
	*room = (struct file_room){.total_bytes = (uint64_t)st.f_blocks * st.f_frsize,
				   .free_bytes = (uint64_t)st.f_bfree * st.f_frsize,
				   .available_bytes = (uint64_t)st.f_bavail * st.f_frsize};
	return 0;
}

static int real_length(UNUSED struct files *files, const char *path, uint64_t *bytes)
{
	struct stat st;
	if (stat(path, &st))
		return errno == ENOENT ? ERR_NOT_FOUND : -errno;
	*bytes = (uint64_t)st.st_size;
	return 0;
}

static int real_mode(UNUSED struct files *files, const char *path, unsigned *mode)
{
	struct stat st;
	if (stat(path, &st))
		return errno == ENOENT ? ERR_NOT_FOUND : -errno;
	*mode = st.st_mode & 0777;
	return 0;
}

static int real_open(UNUSED struct files *files, const char *path, int *handle)
{
	int fd = open_retry(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? ERR_NOT_FOUND : fd;
	*handle = fd;
	return 0;
}

static int real_read_at(UNUSED struct files *files, int handle, uint64_t offset, void *to,
			size_t max_bytes, size_t *bytes)
{
	size_t done = 0;
	/* No file has bytes there, and the system would take it for a wrong argument. */
	if (max_bytes > INT64_MAX || offset > INT64_MAX - max_bytes)
		max_bytes = offset < INT64_MAX ? (size_t)(INT64_MAX - offset) : 0;
	while (done < max_bytes) {
		ssize_t n =
			pread(handle, (char *)to + done, max_bytes - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	*bytes = done;
	return 0;
}

static int64_t file_time_ns(const struct statx_timestamp *time)
{
	return time->tv_sec * 1000000000 + time->tv_nsec;
}

static int file_look_by(int fd, const char *path, int flags, struct file_look *look)
{
	struct statx st;
	if (statx(fd, path, flags, STATX_BASIC_STATS | STATX_BTIME, &st))
		return errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : -errno;
	*look = (struct file_look){
		.id = {.device = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor,
		       .inode = st.stx_ino},
		.bytes = st.stx_size,
		.changed_ns = file_time_ns(&st.stx_mtime),
		.type = S_ISREG(st.stx_mode)   ? FILE_REGULAR
			: S_ISDIR(st.stx_mode) ? FILE_DIRECTORY
					       : FILE_OTHER,
	};
	if (st.stx_mask & STATX_BTIME)
		look->id.born_ns = file_time_ns(&st.stx_btime);
	return 0;
}

static int real_look(UNUSED struct files *files, int handle, struct file_look *look)
{
	return file_look_by(handle, "", AT_EMPTY_PATH, look);
}

static void real_close(UNUSED struct files *files, int handle)
{
	close(handle);
}

static int real_look_at(UNUSED struct files *files, const char *path, struct file_look *look)
{
	return file_look_by(AT_FDCWD, path, 0, look);
}

static int real_look_link(UNUSED struct files *files, const char *path, struct file_look *look)
{
	return file_look_by(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, look);
}

static int real_list(UNUSED struct files *files, const char *path, file_name_fn *each, void *owner)
{
	DIR *dir = opendir(path);
	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : -errno;
	const struct dirent *entry;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			each(owner, entry->d_name);
	}
	int err = -errno;
	closedir(dir);
	return err;
}

static int real_resolve(UNUSED struct files *files, const char *path, char *out, size_t max_bytes)
{
	char whole[PATH_MAX];
	if (!realpath(path, whole))
		return errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : -errno;
	size_t len = strlen(whole);
	if (len >= max_bytes)
		return ERR_LIMIT;
	memcpy(out, whole, len + 1);
	return 0;
}

static int real_open_end(UNUSED struct files *files, const char *path, unsigned mode, int *handle)
{
	int fd = open_retry(path, O_WRONLY | O_APPEND | O_CREAT, mode);
	if (fd < 0)
		return fd;
	*handle = fd;
	return 0;
}

static int real_append(UNUSED struct files *files, int handle, struct slice data, size_t *bytes)
{
	return file_write_all(handle, data, bytes);
}

/* pwrite() appends where a file was opened for that, whatever the offset. */
static int real_write_over(UNUSED struct files *files, int handle, uint64_t offset,
			   struct slice data)
{
	int flags = fcntl(handle, F_GETFL), err = 0;
	if (flags < 0 || fcntl(handle, F_SETFL, flags & ~O_APPEND))
		return -errno;
	for (size_t done = 0; done < data.len && !err;) {
		ssize_t n =
			pwrite(handle, data.data + done, data.len - done, (off_t)(offset + done));
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			err = -errno;
	}
	if (fcntl(handle, F_SETFL, flags) && !err)
		err = -errno;
	return err;
}

static int real_sync(UNUSED struct files *files, int handle)
{
	return fdatasync(handle) ? -errno : 0;
}

struct files *files_real(void)
{
	static struct files real = {
		.read = real_read,
		.replace = real_replace,
		.make_dir = real_make_dir,
		.sync_dir = real_sync_dir,
		.remove = real_remove,
		.rename = real_rename,
		.free_bytes = real_free_bytes,
		.room = real_room,
		.length = real_length,
		.mode = real_mode,
		.open = real_open,
		.read_at = real_read_at,
		.look = real_look,
		.close = real_close,
		.look_at = real_look_at,
		.look_link = real_look_link,
		.list = real_list,
		.resolve = real_resolve,
		.open_end = real_open_end,
		.append = real_append,
		.write_over = real_write_over,
		.sync = real_sync,
	};
	return &real;
}

static int refuse_locked(int fd, const char *path, struct errbuf *e)
{
	char holder[32] = "";
	ssize_t n = pread(fd, holder, sizeof(holder) - 1, 0);
	if (n > 0)
		holder[strcspn(holder, "\n")] = 0;
	close(fd);
	return errbuf_set(e, ERR_LOCKED, "%s is in use by process %s", path,
			  *holder ? holder : "(unknown)");
}

/* The descriptor is closed after an error. */
static int lock_whole(int fd, short type, const char *path, struct errbuf *e)
{
	struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
	if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return refuse_locked(fd, path, e);
	int err = -errno;
	close(fd);
	return errbuf_set(e, err, "cannot lock %s: %s", path, err_text(err));
}

int file_lock_shared(const char *path, int *fd_out, struct errbuf *e)
{
	int fd = open_retry(path, O_RDONLY, 0);
	if (fd < 0)
		return errbuf_set(e, fd == -ENOENT ? ERR_NOT_FOUND : fd, "cannot open %s: %s", path,
				  err_text(fd));
	int err = lock_whole(fd, F_RDLCK, path, e);
	if (!err)
		*fd_out = fd;
	return err;
}

int file_lock(const char *path, int *fd_out, struct errbuf *e)
{
	int fd = open_retry(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return errbuf_set(e, fd, "cannot open %s: %s", path, err_text(fd));
	int err = lock_whole(fd, F_WRLCK, path, e);
	if (err)
		return err;
	char pid[32];
	size_t done;
	int len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	err = ftruncate(fd, 0) ? -errno
			       : file_write_all(fd, (struct slice){pid, (size_t)len}, &done);
	if (err) {
		close(fd);
		return errbuf_set(e, err, "cannot write %s: %s", path, err_text(err));
	}
	*fd_out = fd;
	return 0;
}

void file_unlock(int fd)
{
	close(fd);
}

/* ---- A file of this user's ---------------------------------------------------------------------
 */

/* Looks at a file that was not made by this call, once it is open. */
static int check_own(int fd, const char *path, struct stat *st, struct errbuf *e)
{
	const char *why = NULL;
	if (fstat(fd, st))
		return errbuf_set(e, -errno, "%s: %s", path, err_text(-errno));
	if (!S_ISREG(st->st_mode))
		why = "is no regular file";
	else if (st->st_uid != geteuid())
		why = "belongs to another user";
	else if (st->st_nlink > 1)
		why = "has a second name (a hard link)";
	return why ? errbuf_set(e, ERR_INVALID, "%s %s: remove it, or name another file", path, why)
		   : 0;
}

/* A descriptor or an error. O_NONBLOCK: nobody waits for the other end of a pipe. */
static int open_there(const char *path, int flags, struct stat *st, struct errbuf *e)
{
	int fd = open_retry(path, flags | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd == -ELOOP)
		return errbuf_set(e, ERR_INVALID,
				  "%s is a link, which is not followed: remove it, or name another "
				  "file",
				  path);
	if (fd == -ENOENT)
		return ERR_NOT_FOUND;
	if (fd < 0)
		return errbuf_set(e, fd, "%s: %s", path, err_text(fd));
	int err = check_own(fd, path, st, e);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* A descriptor or an error. ERR_NOT_FOUND: what was there has gone meanwhile. */
static int open_or_make(const char *path, unsigned mode, struct errbuf *e)
{
	struct stat st;
	int fd = open_retry(path, O_WRONLY | O_CREAT | O_EXCL, mode);
	if (fd >= 0)
		return fd;
	if (fd != -EEXIST)
		return errbuf_set(e, fd, "cannot write %s: %s", path, err_text(fd));
	fd = open_there(path, O_WRONLY, &st, e);
	if (fd < 0 || !(st.st_mode & ALLPERMS & ~mode) || fchmod(fd, st.st_mode & mode) == 0)
		return fd;
	int err = errbuf_set(e, -errno, "%s: %s", path, err_text(-errno));
	close(fd);
	return err;
}

/* Whether the path still leads to the open file. */
static bool is_at(int fd, const char *path)
{
	struct stat open, there;
	return fstat(fd, &open) == 0 && lstat(path, &there) == 0 && open.st_dev == there.st_dev &&
	       open.st_ino == there.st_ino;
}

int file_open_own(const char *path, unsigned mode, int *fd_out, struct errbuf *e)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		int fd = open_or_make(path, mode, e);
		if (fd < 0 && fd != ERR_NOT_FOUND)
			return fd;
		bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
		if (locked && is_at(fd, path)) {
			*fd_out = fd;
			return 0;
		}
		int err = fd >= 0 && !locked ? -errno : 0;
		if (fd >= 0)
			close(fd);
		if (err && err != -EWOULDBLOCK)
			return errbuf_set(e, err, "cannot lock %s: %s", path, err_text(err));
		if (err)
			break;
	}
	return errbuf_set(e, ERR_BUSY, "another process is writing %s", path);
}

int file_read_own(const char *path, size_t max_bytes, struct buf *out, struct errbuf *e)
{
	struct stat st;
	int fd = open_there(path, O_RDONLY, &st, e);
	if (fd < 0)
		return fd;
	buf_clear(out);
	int err = file_read_all(fd, max_bytes, out);
	close(fd);
	return err ? errbuf_set(e, err, "%s: %s", path, err_text(err)) : 0;
}

/* ---- Secrets -----------------------------------------------------------------------------------
 */

int file_check_secret(struct files *files, const char *path, struct errbuf *e)
{
	unsigned mode;
	int err = files->mode(files, path, &mode);
	if (err)
		return errbuf_set(e, err, "%s: %s", path, err_text(err));
	if (mode & (S_IRWXO | S_IWGRP))
		return errbuf_set(
			e, ERR_INVALID,
			"%s: holds secrets, but others than its owner and group may read "
			"it, or others than its owner may write it (mode %03o); chmod 600 "
			"it",
			path, mode & 0777);
	return 0;
}

bool secret_is_placeholder(struct slice secret)
{
	static const char *const words[] = {
		"changeme",    "change_me",     "change-me",     "change me",    "password",
		"your_secret", "your-password", "your_password", "yourpassword", "placeholder",
		"secret_here", "example",       "insert_here",   "todo",
	};
	bool all_same = secret.len > 1, is = false;
	for (size_t i = 1; i < secret.len; i++)
		all_same &= secret.data[i] == secret.data[0];
	for (size_t i = 0; i < ARRAY_LEN(words) && !is; i++)
		is = strlen(words[i]) == secret.len &&
		     strncasecmp(words[i], secret.data, secret.len) == 0;
	return is || all_same ||
	       (secret.len > 1 && secret.data[0] == '<' && secret.data[secret.len - 1] == '>');
}

int file_read_secret(struct files *files, const char *path, char *line, size_t size,
		     struct errbuf *e)
{
	struct buf text;
	int err = file_check_secret(files, path, e);
	if (err)
		return err;
	buf_init(&text, FILE_SECRET_MAX_BYTES);
	err = files->read(files, path, FILE_SECRET_MAX_BYTES, &text);
	const char *end = err || !text.len ? NULL : memchr(text.data, '\n', text.len);
	size_t len = end ? (size_t)(end - text.data) : text.len;
	len -= len && text.data[len - 1] == '\r';
	if (err)
		errbuf_set(e, err, "%s: %s", path, err_text(err));
	else if (!len || len >= size || memchr(text.data, 0, len))
		err = errbuf_set(e, ERR_INVALID,
				 "%s: the first line has to be a secret of 1 to %zu bytes", path,
				 size - 1);
	else if (secret_is_placeholder((struct slice){text.data, len}))
		err = errbuf_set(e, ERR_INVALID,
				 "%s: its first line stands where a secret belongs, and is none",
				 path);
	else
		snprintf(line, size, "%.*s", (int)len, text.data);
	if (text.data)
		explicit_bzero(text.data, text.len);
	buf_release(&text);
	return err;
}
