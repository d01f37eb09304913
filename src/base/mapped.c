#include "base/mapped.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/log.h"

enum { FILES_MAX = 16 };

static const char *_Atomic files[FILES_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The signal is that of an instruction which read the map, not of one in the middle of anything of
 * libc's: so logging is safe here. */
static void on_bus_error(int signum)
{
	for (size_t i = 0; i < FILES_MAX; i++) {
		const char *path = files[i];
		if (!path)
			continue;
		log_error("%s cannot be read: an error of the disk, or the file was shortened; "
			  "ending, since only a restart can tell what is on disk",
			  path);
		_exit(MAPPED_EXIT_STATUS);
	}
	/* Not ours: the instruction runs again, and ends the process as it would have. */
	signal(signum, SIG_DFL);
}

static void install(void)
{
	struct sigaction action = {.sa_handler = on_bus_error};
	sigemptyset(&action.sa_mask);
	int failed = sigaction(SIGBUS, &action, NULL);
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
