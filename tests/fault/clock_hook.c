/* Preloaded into a program under test: its clocks are set from outside, while it runs.
 *
 *   CLOCK_HOOK=FILE   16 bytes: two numbers of 32 bits, signed, as the machine has them: by how
 *                     many seconds the wall clock is off, and how many more have passed by the
 *                     clock that counts a sleep (CLOCK_BOOTTIME); and one of 64 bits: how many more
 *                     by the clock that does not (CLOCK_MONOTONIC)
 *
 * The first two are read with one load, so that time passes for both at once. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile uint64_t *offsets;

__attribute__((constructor)) static void prepare(void)
{
	const char *path = getenv("CLOCK_HOOK");
	if (!path)
		return;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		fprintf(stderr, "CLOCK_HOOK: cannot read %s\n", path);
		_exit(99);
	}
	close(fd);
	offsets = at;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	long err = syscall(SYS_clock_gettime, id, now);
	uint64_t both = offsets && !err ? offsets[0] : 0;
	if (id == CLOCK_REALTIME)
		now->tv_sec += (int32_t)(both & UINT32_MAX);
	else if (id == CLOCK_BOOTTIME)
		now->tv_sec += (int32_t)(both >> 32);
	else if (id == CLOCK_MONOTONIC && offsets && !err)
		now->tv_sec += (int64_t)offsets[1];
	return (int)err;
}

/* The kernel waits by its own clock. */
int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t id,
			   const struct timespec *until)
{
	static int (*real)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
	struct timespec at = *until;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	if (id == CLOCK_MONOTONIC && offsets)
		at.tv_sec -= (int64_t)offsets[1];
	return real(cond, lock, id, &at);
}
