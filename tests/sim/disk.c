#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "machine.h"

enum { FDS_MAX = 8, SECTOR_BYTES = 512, PAGE_BYTES = 4096, WRITE_MAX_US = 30, SYNC_MAX_US = 3000 };

/* A write that no fdatasync has followed. */
struct unsynced {
	struct unsynced *older;
	off_t offset;
	size_t len;
	off_t length_before; /* of the file */
	uint8_t bytes[];     /* len bytes as they were, len bytes as they became */
};

static struct {
	bool runs, loud, dead, full;
	enum disk_end how;
	struct random random;
	int fds[FDS_MAX];
	bool is_dsync[FDS_MAX];
	unsigned fd_count;
	struct unsynced *newest;
	unsigned die_at, fail_write_at, fail_sync_at;
	char path[512];
} disk;

struct disk_counts disk_counts;

/* ---- What was written ------------------------------------------------------------------------ */

static void forget_unsynced(void)
{
	while (disk.newest) {
		struct unsynced *older = disk.newest->older;
		mem_free(disk.newest);
		disk.newest = older;
	}
}

static ssize_t raw_write(int fd, const void *bytes, size_t len, off_t offset)
{
	return syscall(SYS_pwrite64, fd, bytes, len, offset);
}

static off_t length_of(int fd)
{
	struct stat st;
	ASSERT(fstat(fd, &st) == 0);
	return st.st_size;
}

/* Writes, and remembers what was there (zeroes behind the end). */
static ssize_t do_write(int fd, const void *bytes, size_t len, off_t offset)
{
	struct unsynced *u = mem_zalloc(sizeof(*u) + 2 * len);
	u->offset = offset;
	u->len = len;
	u->length_before = length_of(fd);
	/* LMDB's descriptor for the last write of a commit cannot be read from. */
	int from = (int)syscall(SYS_openat, AT_FDCWD, disk.path, O_RDONLY);
	ASSERT(from >= 0 && syscall(SYS_pread64, from, u->bytes, len, offset) >= 0);
	syscall(SYS_close, from);
	memcpy(u->bytes + len, bytes, len);
	u->older = disk.newest;
	disk.newest = u;
	ssize_t n = raw_write(fd, bytes, len, offset);
	ASSERT(n == (ssize_t)len);
	return n;
}

/* ---- A power cut ----------------------------------------------------------------------------- */

static uint64_t pick(uint64_t bound)
{
	return random_below(&disk.random, bound);
}

/* The pieces of one write that reached the disk: all between borders of `unit` for which the seed
 * says so; from the front only, with `front`. */
static void keep_pieces(int fd, const struct unsynced *u, size_t unit, bool front)
{
	size_t units = (u->len + unit - 1) / unit + 1, first = front ? pick(units) : 0;
	off_t at = u->offset, end = u->offset + (off_t)u->len;
	for (size_t i = 0; at < end; i++) {
		off_t next = (at / (off_t)unit + 1) * (off_t)unit;
		if (next > end)
			next = end;
		if (front ? i < first : pick(2) != 0) {
			const uint8_t *now = u->bytes + u->len + (at - u->offset);
			ASSERT(raw_write(fd, now, (size_t)(next - at), at) == next - at);
		}
		at = next;
	}
}

static void replay_one(int fd, const struct unsynced *u, unsigned manner)
{
	if (manner == 3)
		manner = (unsigned)pick(8);
	switch (manner) {
	case 0: /* none of it */
	case 4:
		disk_counts.undone++;
		return;
	case 1: /* all of it */
	case 5:
		disk_counts.kept++;
		ASSERT(raw_write(fd, u->bytes + u->len, u->len, u->offset) == (ssize_t)u->len);
		return;
	default:
		disk_counts.torn++;
		keep_pieces(fd, u, pick(2) ? SECTOR_BYTES : PAGE_BYTES, pick(2) != 0);
	}
}

/* First everything as it was at the last fdatasync, then what reached the disk, in order. */
static void cut_power(int fd)
{
	struct unsynced *oldest = NULL;
	while (disk.newest) {
		struct unsynced *u = disk.newest;
		disk.newest = u->older;
		u->older = oldest;
		oldest = u;
		ASSERT(raw_write(fd, u->bytes, u->len, u->offset) == (ssize_t)u->len);
		ASSERT(ftruncate(fd, u->length_before) == 0);
	}
	unsigned manner = (unsigned)pick(6); /* 0: all undone, 1: all kept, 2: all torn */
	if (manner > 3)
		manner = 3;
	while (oldest) {
		struct unsynced *newer = oldest->older;
		replay_one(fd, oldest, manner);
		mem_free(oldest);
		oldest = newer;
	}
}

void disk_begin(uint64_t seed, bool loud)
{
	disk.loud = loud;
	random_init(&disk.random, seed ^ UINT64_C(0x6469736b));
	disk.runs = true;
	disk.dead = disk.full = false;
	disk.fd_count = 0;
	disk.die_at = disk.fail_write_at = disk.fail_sync_at = 0;
}

void disk_end(void)
{
	forget_unsynced();
	disk.runs = false;
}

void disk_die(enum disk_end how)
{
	disk.dead = true;
	disk.how = how;
	disk_counts.crashes++;
}

void disk_die_at(enum disk_end how, unsigned calls)
{
	disk.how = how;
	disk.die_at = calls;
}

bool disk_dead(void)
{
	return disk.dead;
}

void disk_revive(void)
{
	ASSERT(disk.dead && disk.fd_count == 0);
	if (disk.newest && disk.how == DISK_POWER) {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, disk.path, O_RDWR);
		ASSERT(fd >= 0);
		cut_power(fd);
		syscall(SYS_close, fd);
	}
	forget_unsynced();
	disk.dead = disk.full = false;
	disk.die_at = disk.fail_write_at = disk.fail_sync_at = 0;
}

void disk_fail_write(unsigned calls)
{
	disk.fail_write_at = calls;
}

void disk_fail_sync(unsigned calls)
{
	disk.fail_sync_at = calls;
}

void disk_fill(bool full)
{
	disk.full = full;
}

/* ---- In front of libc ------------------------------------------------------------------------ */

/* By the names that the linker knows: the headers give some of them others. */
int front_open(const char *path, int flags, ...) __asm__("open");
int front_open64(const char *path, int flags, ...) __asm__("open64");
int front_close(int fd) __asm__("close");
ssize_t front_pwrite(int fd, const void *bytes, size_t len, off_t offset) __asm__("pwrite");
ssize_t front_pwrite64(int fd, const void *bytes, size_t len, off_t offset) __asm__("pwrite64");
ssize_t front_write(int fd, const void *bytes, size_t len) __asm__("write");
ssize_t front_writev(int fd, const struct iovec *pieces, int count) __asm__("writev");
int front_fdatasync(int fd) __asm__("fdatasync");
int front_fsync(int fd) __asm__("fsync");

/* The place of a descriptor of the data file in our list, or -1. */
static int place_of(int fd)
{
	for (unsigned i = 0; disk.runs && i < disk.fd_count; i++) {
		if (disk.fds[i] == fd)
			return (int)i;
	}
	return -1;
}

static int fail_with(int number)
{
	disk_counts.failed++;
	errno = number;
	return -1;
}

/* Whether this is the call within which the end comes. */
static bool dies_now(void)
{
	if (disk.die_at == 0 || --disk.die_at > 0)
		return false;
	disk_die(disk.how);
	return true;
}

static ssize_t disk_write(int place, const void *bytes, size_t len, off_t offset)
{
	int fd = disk.fds[place];
	machine_pass((int64_t)machine_pick(WRITE_MAX_US));
	machine_yield();
	if (disk.dead)
		return fail_with(EIO);
	disk_counts.writes++;
	if (disk.fail_write_at && --disk.fail_write_at == 0)
		return fail_with(EIO);
	if (disk.full && !disk.is_dsync[place])
		return fail_with(ENOSPC);
	if (dies_now()) {
		if (pick(2))
			do_write(fd, bytes, len, offset);
		return fail_with(EIO);
	}
	if (disk.is_dsync[place]) {
		machine_pass((int64_t)machine_pick(SYNC_MAX_US));
		return raw_write(fd, bytes, len, offset);
	}
	return do_write(fd, bytes, len, offset);
}

static int disk_sync(void)
{
	machine_pass((int64_t)machine_pick(SYNC_MAX_US));
	machine_yield();
	if (disk.dead || dies_now())
		return fail_with(EIO);
	disk_counts.syncs++;
	if (disk.fail_sync_at && --disk.fail_sync_at == 0)
		return fail_with(EIO);
	forget_unsynced();
	return 0;
}

static bool is_data_file(const char *path)
{
	size_t len = strlen(path);
	return disk.runs && len > 9 && len < sizeof(disk.path) &&
	       strcmp(path + len - 9, "/data.mdb") == 0;
}

static int open_file(const char *path, int flags, unsigned mode)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (fd >= 0 && is_data_file(path)) {
		ASSERT(disk.fd_count < FDS_MAX);
		snprintf(disk.path, sizeof(disk.path), "%s", path);
		disk.is_dsync[disk.fd_count] = (flags & O_DSYNC) != 0;
		disk.fds[disk.fd_count++] = fd;
	}
	return fd;
}

static unsigned mode_of(int flags, va_list args)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, unsigned) : 0;
}

int front_open(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	unsigned mode = mode_of(flags, args);
	va_end(args);
	return open_file(path, flags, mode);
}

int front_open64(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	unsigned mode = mode_of(flags, args);
	va_end(args);
	return open_file(path, flags, mode);
}

int front_close(int fd)
{
	int place = place_of(fd);
	if (place >= 0) {
		disk.fd_count--;
		disk.fds[place] = disk.fds[disk.fd_count];
		disk.is_dsync[place] = disk.is_dsync[disk.fd_count];
	}
	return (int)syscall(SYS_close, fd);
}

ssize_t front_pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
	int place = place_of(fd);
	return place >= 0 ? disk_write(place, bytes, len, offset)
			  : raw_write(fd, bytes, len, offset);
}

ssize_t front_pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
	return front_pwrite(fd, bytes, len, offset);
}

ssize_t front_write(int fd, const void *bytes, size_t len)
{
	int place = place_of(fd);
	bool is_log = disk.runs && fd == STDERR_FILENO && len && *(const char *)bytes == '2';
	if (is_log && !disk.loud)
		return (ssize_t)len; /* begins with the year */
	if (place < 0)
		return syscall(SYS_write, fd, bytes, len);
	off_t offset = lseek(fd, 0, SEEK_CUR);
	ssize_t n = disk_write(place, bytes, len, offset);
	if (n > 0)
		lseek(fd, offset + n, SEEK_SET);
	return n;
}

ssize_t front_writev(int fd, const struct iovec *pieces, int count)
{
	int place = place_of(fd);
	if (place < 0)
		return syscall(SYS_writev, fd, pieces, count);
	size_t len = 0;
	for (int i = 0; i < count; i++)
		len += pieces[i].iov_len;
	uint8_t *bytes = mem_alloc(len), *at = bytes;
	for (int i = 0; i < count; i++) {
		memcpy(at, pieces[i].iov_base, pieces[i].iov_len);
		at += pieces[i].iov_len;
	}
	ssize_t n = front_write(fd, bytes, len);
	mem_free(bytes);
	return n;
}

int front_fdatasync(int fd)
{
	return place_of(fd) >= 0 ? disk_sync() : (int)syscall(SYS_fdatasync, fd);
}

int front_fsync(int fd)
{
	if (place_of(fd) >= 0)
		return disk_sync();
	return disk.runs ? 0 : (int)syscall(SYS_fsync, fd);
}
