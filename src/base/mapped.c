#include "base/mapped.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/log.h"

enum { FILES_MAX = 16 };

/* Behind the end of a map: offsets within a page lead no farther than this. */
enum { ASTRAY_BYTES = 1 << 20 };

static const char *_Atomic files[FILES_MAX];
static _Atomic uintptr_t begins[FILES_MAX], ends[FILES_MAX]; /* where each lies; 0: not known */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;     /* of installing */
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

/* Within a map, which may only be read, or just behind it: a page of it led there. */
static const char *file_at(uintptr_t at)
{
	for (size_t i = 0; i < FILES_MAX; i++) {
		const char *path = files[i];
		if (path && begins[i] && at >= begins[i] && at < ends[i] + ASTRAY_BYTES)
			return path;
	}
	return NULL;
}

/* Where the code of the library lies that reads the pages; 0: not known. */
static _Atomic uintptr_t reader_begins, reader_ends;

static bool is_of_reader(uintptr_t at)
{
	return reader_begins && at >= reader_begins && at < reader_ends;
}

/* The instruction is one of the library's, or one that it called to copy bytes: such a function has
 * nothing of its own on the stack. */
static bool reader_failed(const void *context)
{
#ifdef __x86_64__
	const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
	return is_of_reader((uintptr_t)registers[REG_RIP]) ||
	       is_of_reader(*(const uintptr_t *)registers[REG_RSP]);
#else
	(void)context;
	return false;
#endif
}

void mapped_reader(uintptr_t begin, uintptr_t end)
{
	reader_ends = end;
	reader_begins = begin;
}

/* A program that reads pages without sums may follow a damaged one anywhere. Elsewhere than at the
 * map it may be a bug as well: so the process ends as it would have, with a word before it. */
static void on_wild_pointer(int signum, siginfo_t *info, void *context)
{
	/* One that was sent has no address. */
	const char *path = NULL;
	if (info->si_code > 0)
		path = reader_failed(context) ? first_file() : file_at((uintptr_t)info->si_addr);
	if (path) {
		log_error(
			"a damaged page in %s made the server read wrong memory; the server ends; "
			"`granary verify` lists what is damaged, `granary repair` copies what is "
			"whole",
			path);
		_exit(MAPPED_EXIT_STATUS);
	}
	path = first_file();
	if (path)
		log_error("the server crashed: a bug, or a damaged page in %s; `granary verify` "
			  "tells "
			  "which",
			  path);
	end_as_before(signum, &fault_before);
}

static void install(int signum, const struct sigaction *wanted, struct sigaction *before)
{
	struct sigaction now, ours = *wanted;
	sigemptyset(&ours.sa_mask);
	pthread_mutex_lock(&lock);
	int failed = sigaction(signum, NULL, &now);
	/* Again, where somebody has put another one in its place: a test program does. */
	if (!failed && now.sa_handler != ours.sa_handler)
		failed = sigaction(signum, &ours, before);
	pthread_mutex_unlock(&lock);
	ASSERT(!failed);
}

static void install_both(void)
{
	const struct sigaction bus = {.sa_handler = on_bus_error};
	const struct sigaction fault = {.sa_sigaction = on_wild_pointer, .sa_flags = SA_SIGINFO};
	install(SIGBUS, &bus, &bus_before);
	install(SIGSEGV, &fault, &fault_before);
}

static void mapped_replace(const char *from, const char *to)
{
	for (size_t i = 0; i < FILES_MAX; i++) {
		const char *expected = from;
		if (atomic_compare_exchange_strong(&files[i], &expected, to)) {
			begins[i] = ends[i] = 0;
			return;
		}
	}
}

void mapped_lies(const char *path, uintptr_t begin, size_t bytes)
{
	for (size_t i = 0; i < FILES_MAX; i++) {
		if (files[i] != path)
			continue;
		ends[i] = begin + bytes;
		begins[i] = begin;
	}
}

void mapped_watch(const char *path)
{
	install_both();
	mapped_replace(NULL, path);
}

void mapped_forget(const char *path)
{
	mapped_replace(path, NULL);
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
