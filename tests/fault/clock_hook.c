/* Preloaded into a program under test: its clocks are set from outside, while it runs.
 *
 *   CLOCK_HOOK=FILE   8 bytes: two numbers of 32 bits, signed, as the machine has them: by how many
 *                     seconds the wall clock is off, and how many more have passed by the clock
 *                     that counts a sleep (CLOCK_BOOTTIME)
 *
 * Both are read with one load, so that time passes for both at once. */
#include <fcntl.h>
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
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
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
	uint64_t both = offsets && !err ? *offsets : 0;
	if (id == CLOCK_REALTIME)
		now->tv_sec += (int32_t)(both & UINT32_MAX);
	else if (id == CLOCK_BOOTTIME)
		now->tv_sec += (int32_t)(both >> 32);
	return (int)err;
}
