#include "base/mapped.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/log.h"

enum { FILES_MAX = 16 };

static const char *_Atomic files[FILES_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction bus_before, fault_before; /* a sanitizer's, perhaps */

static const char *first_file(void)
{
	for (size_t i = 0; i < FILES_MAX; i++) {
		const char *path = files[i];
		if (path)
			return path;
	}
	return NULL;
}

/* The signal comes again as soon as its handler returns, whoever sent it. */
static void end_as_before(int signum, const struct sigaction *before)
{
	sigaction(signum, before, NULL);
	raise(signum);
}

/* The signals are those of an instruction that read the map, or followed what it read there: not of
 * one in the middle of anything of libc's that logging needs. */
static void on_bus_error(int signum)
{
	const char *path = first_file();
	if (path) {
		log_error("%s cannot be read: an error of the disk, or the file was shortened; "
			  "ending, since only a restart can tell what is on disk",
			  path);
		_exit(MAPPED_EXIT_STATUS);
	}
	end_as_before(signum, &bus_before);
}

/* A program that reads pages without sums may follow a damaged one anywhere. It may be a bug as
 * well: so the process ends as it would have, with a word before it. */
static void on_wild_pointer(int signum)
{
	const char *path = first_file();
	if (path)
		log_error("a wild pointer: a bug, or a damaged page in %s; `granary verify` tells",
			  path);
	end_as_before(signum, &fault_before);
}

static void install(void)
{
	struct sigaction bus = {.sa_handler = on_bus_error};
	struct sigaction wild = {.sa_handler = on_wild_pointer};
	sigemptyset(&bus.sa_mask);
	sigemptyset(&wild.sa_mask);
	int failed = sigaction(SIGBUS, &bus, &bus_before);
	failed |= sigaction(SIGSEGV, &wild, &fault_before);
	ASSERT(!failed);
}

static void replace(const char *from, const char *to)
{
	for (size_t i = 0; i < FILES_MAX; i++) {
		const char *expected = from;
		if (atomic_compare_exchange_strong(&files[i], &expected, to))
			return;
	}
}

void mapped_watch(const char *path)
{
	pthread_once(&once, install);
	replace(NULL, path);
}

void mapped_forget(const char *path)
{
	replace(path, NULL);
}
