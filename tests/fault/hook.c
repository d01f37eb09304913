/* Preloaded into a program under test: lets the n-th call of one kind go wrong, once or for ever.
 * Only calls that LMDB or the program itself make count, each told by where it returns to.
 *
 *   FAULT_HOOK=WHO:KIND:N:TIMES:HOW   WHO lmdb, main; TIMES 0: for ever
 *   FAULT_HOOK_LOG=FILE               gets a line "H ..." at the first fault, as the program's own
 *                                     log: so what came before it and after it is known
 *
 * KIND is the name of the call; `alloc` is malloc, calloc and realloc together. HOW is an error
 * (EIO, ENOSPC, ENOMEM, EINTR, EMFILE, ENOLCK), `short` (half of the bytes are written or read),
 * `late` (it is done, and EIO all the same: as a write whose sync fails), `slow` (it is done, a
 * quarter of a second later), or `kill`. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SHORT = -1, LATE = -2, KILL = -3, SLOW = -4, SLOW_US = 250000 };

static struct {
	char who[8], kind[16];
	long first, times;
	int how;
	uintptr_t from, to; /* the text of who counts */
	int log;
	bool ready;
} hook;

static _Atomic long passes;
/* The kernel tells a failed write-back once to each descriptor that was open then. */
static _Atomic int sync_failed_on = -1;

static int find_text(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	(void)context;
	bool wanted = strcmp(hook.who, "main") == 0 ? info->dlpi_name[0] == 0
						    : strstr(info->dlpi_name, "liblmdb") != NULL;
	for (int i = 0; wanted && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
			hook.from = info->dlpi_addr + part->p_vaddr;
			hook.to = hook.from + part->p_memsz;
			return 1;
		}
	}
	return 0;
}

static int parse_how(const char *how)
{
	static const struct {
		const char *name;
		int how;
	} names[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"ENOMEM", ENOMEM}, {"EINTR", EINTR},
		     {"EMFILE", EMFILE}, {"ENOLCK", ENOLCK}, {"short", SHORT},   {"late", LATE},
		     {"kill", KILL},     {"slow", SLOW}};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(how, names[i].name) == 0)
			return names[i].how;
	}
	fprintf(stderr, "FAULT_HOOK: what is %s?\n", how);
	_exit(99);
}

__attribute__((constructor)) static void prepare(void)
{
	const char *order = getenv("FAULT_HOOK"), *log = getenv("FAULT_HOOK_LOG");
	char how[16];
	if (!order || !log)
		return;
	if (sscanf(order, "%7[a-z]:%15[a-z]:%ld:%ld:%15s", hook.who, hook.kind, &hook.first,
		   &hook.times, how) != 5) {
		fprintf(stderr, "FAULT_HOOK: cannot read %s\n", order);
		_exit(99);
	}
	hook.how = parse_how(how);
	hook.log = (int)syscall(SYS_openat, AT_FDCWD, log,
				O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	dl_iterate_phdr(find_text, NULL);
	if (hook.log < 0 || !hook.from) {
		fprintf(stderr, "FAULT_HOOK: no log, or nobody is %s\n", hook.who);
		_exit(99);
	}
	hook.ready = true;
}

static void tell(const char *kind, long pass)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "H %s %ld\n", kind, pass);
	(void)!syscall(SYS_write, hook.log, line, n);
}

/* 0: the call goes through. Else what is to go wrong with it. */
static int strike(const char *kind, const void *caller)
{
	if (!hook.ready || strcmp(kind, hook.kind) != 0 || (uintptr_t)caller < hook.from ||
	    (uintptr_t)caller >= hook.to)
		return 0;
	long pass = ++passes;
	if (pass < hook.first || (hook.times && pass >= hook.first + hook.times))
		return 0;
	if (pass == hook.first)
		tell(kind, pass);
	if (hook.how == KILL)
		kill(getpid(), SIGKILL);
	if (hook.how == SLOW) {
		usleep(SLOW_US);
		return 0;
	}
	return hook.how;
}

#define CALLER __builtin_return_address(0)

/* How many bytes go through, or -1 with errno set. */
static ssize_t cut(int how, size_t bytes)
{
	if (how == SHORT)
		return (ssize_t)(bytes / 2);
	errno = how;
	return -1;
}

/* ---- Writing and reading --------------------------------------------------------------------- */

static ssize_t write_some(int how, int fd, const void *bytes, size_t len, off_t at)
{
	ssize_t n = how > 0 ? cut(how, len)
			    : syscall(SYS_pwrite64, fd, bytes, how == SHORT ? len / 2 : len, at);
	if (how != LATE)
		return n;
	errno = EIO;
	return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	return write_some(strike("pwrite", CALLER), fd, bytes, len, at);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	/* What is said to people is no file. */
	int how = fd > 2 ? strike("write", CALLER) : 0;
	ssize_t n = how > 0 ? cut(how, len)
			    : syscall(SYS_write, fd, bytes, how == SHORT ? len / 2 : len);
	if (how != LATE)
		return n;
	errno = EIO;
	return -1;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	int how = strike("writev", CALLER);
	if (how > 0)
		return cut(how, 0);
	/* Half of it: the first parts, and of the last of these a piece. */
	if (how == SHORT) {
		struct iovec piece = parts[count / 2];
		ssize_t n = count / 2 ? syscall(SYS_writev, fd, parts, count / 2) : 0;
		ssize_t m = syscall(SYS_write, fd, piece.iov_base, piece.iov_len / 2);
		return n < 0 || m < 0 ? -1 : n + m;
	}
	ssize_t n = syscall(SYS_writev, fd, parts, count);
	if (how != LATE)
		return n;
	errno = EIO;
	return -1;
}

ssize_t pread(int fd, void *bytes, size_t len, off_t at)
{
	int how = strike("pread", CALLER);
	if (how > 0)
		return cut(how, len);
	return syscall(SYS_pread64, fd, bytes, how == SHORT ? len / 2 : len, at);
}

off_t lseek(int fd, off_t at, int whence)
{
	int how = strike("lseek", CALLER);
	return how > 0 ? cut(how, 0) : syscall(SYS_lseek, fd, at, whence);
}

/* ---- Making durable -------------------------------------------------------------------------- */

static int sync_file(const char *kind, long number, int fd, const void *caller)
{
	int how = strike(kind, caller);
	int failed_on = sync_failed_on;
	if (how > 0 && how != EINTR)
		sync_failed_on = fd;
	else if (!how && failed_on >= 0 && failed_on != fd) {
		how = hook.how; /* the other descriptor is told, too */
		sync_failed_on = -1;
	}
	return how > 0 ? (int)cut(how, 0) : (int)syscall(number, fd);
}

int fsync(int fd)
{
	return sync_file("fsync", SYS_fsync, fd, CALLER);
}

int fdatasync(int fd)
{
	return sync_file("fdatasync", SYS_fdatasync, fd, CALLER);
}

int msync(void *start, size_t len, int flags)
{
	int how = strike("msync", CALLER);
	return how > 0 ? (int)cut(how, 0) : (int)syscall(SYS_msync, start, len, flags);
}

static int truncate_file(int fd, off_t len, const void *caller)
{
	int how = strike("ftruncate", caller);
	return how > 0 ? (int)cut(how, 0) : (int)syscall(SYS_ftruncate, fd, len);
}

int ftruncate(int fd, off_t len)
{
	return truncate_file(fd, len, CALLER);
}

int ftruncate64(int fd, off_t len)
{
	return truncate_file(fd, len, CALLER);
}

/* ---- Opening, locking, mapping --------------------------------------------------------------- */

static int open_file(const char *path, int flags, unsigned mode, const void *caller)
{
	int how = strike("open", caller);
	return how > 0 ? (int)cut(how, 0) : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define OPEN(name)                                                                                 \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		va_list rest;                                                                      \
		va_start(rest, flags);                                                             \
		unsigned mode = flags & O_CREAT ? va_arg(rest, unsigned) : 0;                      \
		va_end(rest);                                                                      \
		return open_file(path, flags, mode, CALLER);                                       \
	}

OPEN(open)
OPEN(open64)

#define FCNTL(name)                                                                                \
	int name(int fd, int what, ...)                                                            \
	{                                                                                          \
		va_list rest;                                                                      \
		va_start(rest, what);                                                              \
		long argument = va_arg(rest, long);                                                \
		va_end(rest);                                                                      \
		int how = strike("fcntl", CALLER);                                                 \
		return how > 0 ? (int)cut(how, 0) : (int)syscall(SYS_fcntl, fd, what, argument);   \
	}

FCNTL(fcntl)
FCNTL(fcntl64)

void *mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
	int how = strike("mmap", CALLER);
	if (how > 0) {
		errno = how;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, len, protection, flags, fd, offset);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static bool no_memory(const void *caller)
{
	if (strike("alloc", caller) == 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return no_memory(CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return no_memory(CALLER) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return no_memory(CALLER) ? NULL : __libc_realloc(old, size);
}
