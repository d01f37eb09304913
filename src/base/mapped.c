#include "base/mapped.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/log.h"

enum { FILES_MAX = 16 };

static const char *_Atomic files[FILES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of installing */
static _Thread_local sigjmp_buf *trying;          /* where mapped_try of this thread goes on */
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
	if (trying)
		siglongjmp(*trying, 1);
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

static void install(int signum, void (*handler)(int), struct sigaction *before)
{
	struct sigaction now, ours = {.sa_handler = handler};
	sigemptyset(&ours.sa_mask);
	pthread_mutex_lock(&lock);
	int failed = sigaction(signum, NULL, &now);
	/* Again, where somebody has put another one in its place: a test program does. */
	if (!failed && now.sa_handler != handler)
		failed = sigaction(signum, &ours, before);
	pthread_mutex_unlock(&lock);
	ASSERT(!failed);
}

static void install_both(void)
{
	install(SIGBUS, on_bus_error, &bus_before);
	install(SIGSEGV, on_wild_pointer, &fault_before);
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
	install_both();
	replace(NULL, path);
}

void mapped_forget(const char *path)
{
	replace(path, NULL);
}

bool mapped_try(void (*touch)(void *context), void *context)
{
	sigjmp_buf here;
	install_both();
	bool failed = sigsetjmp(here, 1) != 0;
	if (!failed) {
		trying = &here;
		touch(context);
	}
	trying = NULL;
	return !failed;
}
