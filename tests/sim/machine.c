#include "machine.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/mem.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

enum { FIBERS_MAX = 32, STACK_BYTES = 1 << 20, LOOK_MAX_US = 40 };

enum fiber_state { FIBER_FREE, FIBER_READY, FIBER_WAITS, FIBER_ENDED };

struct fiber {
	enum fiber_state state;
	ucontext_t context;
	char *stack; /* NULL: the program's own; kept for the next fiber of this number */
	void *(*run)(void *argument);
	void *argument;
	const void *waits_for;
	int64_t until_us; /* wall clock; INT64_MAX: for ever */
	bool signalled;
	void *fake_stack; /* the sanitizer's */
};

static struct {
	bool runs;
	struct random random;
	unsigned switch_percent;
	int64_t wall_us, mono_us;
	struct fiber fibers[FIBERS_MAX];
	unsigned current, count, came_from;
} machine;

void (*machine_stuck)(void);

/* libc's, found at the first use. */
static void *real(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	if (!found)
		_exit(99);
	return found;
}

#define REAL(type, name) ((type)(uintptr_t)real(name))

uint64_t machine_pick(uint64_t bound)
{
	return random_below(&machine.random, bound);
}

/* ---- Fibers ---------------------------------------------------------------------------------- */

static struct fiber *current(void)
{
	return &machine.fibers[machine.current];
}

/* What the sanitizer wants to know about stacks. */
#ifdef __SANITIZE_ADDRESS__
static const void *main_bottom;
static size_t main_size;

static void tell_leaving(const struct fiber *to, void **fake_stack)
{
	__sanitizer_start_switch_fiber(fake_stack, to->stack ? to->stack : main_bottom,
				       to->stack ? (size_t)STACK_BYTES : main_size);
}

static void tell_arrived(void *fake_stack)
{
	const void *bottom;
	size_t size;
	__sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
	if (machine.came_from == 0) {
		main_bottom = bottom;
		main_size = size;
	}
}
#else
static void tell_leaving(UNUSED const struct fiber *to, UNUSED void **fake_stack)
{
}

static void tell_arrived(UNUSED void *fake_stack)
{
}
#endif

static void switch_to(unsigned to)
{
	unsigned from = machine.current;
	if (from == to)
		return;
	machine.current = to;
	machine.came_from = from;
	bool ended = machine.fibers[from].state == FIBER_ENDED;
	tell_leaving(&machine.fibers[to], ended ? NULL : &machine.fibers[from].fake_stack);
	swapcontext(&machine.fibers[from].context, &machine.fibers[to].context);
	tell_arrived(machine.fibers[from].fake_stack);
}

static void wake_late(void)
{
	for (unsigned i = 0; i < machine.count; i++) {
		struct fiber *f = &machine.fibers[i];
		if (f->state == FIBER_WAITS && f->until_us <= machine.wall_us)
			f->state = FIBER_READY;
	}
}

/* Everybody waits: time goes on to the first time limit. */
static bool jump_to_limit(void)
{
	int64_t first_us = INT64_MAX;
	for (unsigned i = 0; i < machine.count; i++) {
		const struct fiber *f = &machine.fibers[i];
		if (f->state == FIBER_WAITS && f->until_us < first_us)
			first_us = f->until_us;
	}
	if (first_us == INT64_MAX)
		return false;
	if (first_us > machine.wall_us)
		machine_pass(first_us - machine.wall_us);
	wake_late();
	return true;
}

/* Any of those that can go on, but for `except`. */
static bool pick_ready(unsigned except, unsigned *picked)
{
	unsigned ready[FIBERS_MAX], n = 0;
	for (unsigned i = 0; i < machine.count; i++) {
		if (machine.fibers[i].state == FIBER_READY && i != except)
			ready[n++] = i;
	}
	if (n)
		*picked = ready[n == 1 ? 0 : machine_pick(n)];
	return n > 0;
}

/* Somebody goes on; the present fiber too, if it can. */
static void schedule(void)
{
	unsigned next;
	wake_late();
	while (!pick_ready(FIBERS_MAX, &next)) {
		if (!jump_to_limit())
			machine_stuck();
	}
	switch_to(next);
}

void machine_yield(void)
{
	if (machine.runs && machine.count > 1 && machine_pick(100) < machine.switch_percent)
		schedule();
}

void machine_idle(unsigned turns)
{
	unsigned next;
	wake_late();
	while (turns-- && pick_ready(machine.current, &next)) {
		switch_to(next);
		wake_late();
	}
}

static void wait_for(const void *what, int64_t until_us)
{
	struct fiber *f = current();
	f->waits_for = what;
	f->until_us = until_us;
	f->state = FIBER_WAITS;
	schedule();
	f->waits_for = NULL;
}

static void wake(const void *what, bool all)
{
	unsigned waiting[FIBERS_MAX], n = 0;
	for (unsigned i = 0; i < machine.count; i++) {
		if (machine.fibers[i].state == FIBER_WAITS && machine.fibers[i].waits_for == what)
			waiting[n++] = i;
	}
	if (n && !all) {
		waiting[0] = waiting[machine_pick(n)];
		n = 1;
	}
	for (unsigned i = 0; i < n; i++) {
		machine.fibers[waiting[i]].state = FIBER_READY;
		machine.fibers[waiting[i]].signalled = true;
	}
}

static void fiber_main(void)
{
	tell_arrived(NULL);
	struct fiber *f = current();
	f->run(f->argument);
	f->state = FIBER_ENDED;
	wake(f, true);
	schedule();
	__builtin_unreachable();
}

static unsigned new_fiber(void *(*run)(void *argument), void *argument)
{
	unsigned i = 1;
	while (i < FIBERS_MAX && machine.fibers[i].state != FIBER_FREE)
		i++;
	ASSERT(i < FIBERS_MAX);
	struct fiber *f = &machine.fibers[i];
	if (!f->stack) {
		f->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
		ASSERT(f->stack != MAP_FAILED);
	}
	getcontext(&f->context);
	f->context.uc_stack = (stack_t){.ss_sp = f->stack, .ss_size = STACK_BYTES};
	f->context.uc_link = NULL;
	makecontext(&f->context, fiber_main, 0);
	f->run = run;
	f->argument = argument;
	f->state = FIBER_READY;
	if (i >= machine.count)
		machine.count = i + 1;
	return i;
}

void machine_sleep(int64_t us)
{
	wait_for(&machine, machine.wall_us + us);
}

/* ---- Life and time --------------------------------------------------------------------------- */

void machine_begin(uint64_t seed, int64_t wall_us, unsigned switch_percent)
{
	random_init(&machine.random, seed ^ UINT64_C(0x6d616368696e65));
	machine.wall_us = wall_us;
	machine.mono_us = 1000000;
	machine.switch_percent = switch_percent;
	machine.fibers[0].state = FIBER_READY;
	machine.current = 0;
	machine.count = 1;
	machine.runs = true;
}

void machine_end(void)
{
	for (unsigned i = 1; i < FIBERS_MAX; i++)
		ASSERT(machine.fibers[i].state == FIBER_FREE);
	machine.runs = false;
}

void machine_pass(int64_t us)
{
	machine.wall_us += us;
	machine.mono_us += us;
}

void machine_jump(int64_t us)
{
	machine.wall_us += us;
	for (unsigned i = 0; i < machine.count; i++) {
		struct fiber *f = &machine.fibers[i];
		if (f->state == FIBER_WAITS && f->until_us != INT64_MAX)
			f->until_us += us;
	}
}

int64_t machine_wall_us(void)
{
	return machine.wall_us;
}

int64_t machine_mono_us(void)
{
	return machine.mono_us;
}

/* ---- In front of libc ------------------------------------------------------------------------ */

int clock_gettime(clockid_t id, struct timespec *time)
{
	if (!machine.runs)
		return (int)syscall(SYS_clock_gettime, id, time);
	machine_pass((int64_t)machine_pick(LOOK_MAX_US));
	int64_t us = id == CLOCK_REALTIME ? machine.wall_us : machine.mono_us;
	*time = (struct timespec){.tv_sec = (time_t)(us / 1000000),
				  .tv_nsec = (long)(us % 1000000) * 1000};
	machine_yield();
	return 0;
}

ssize_t getrandom(void *to, size_t len, unsigned flags)
{
	if (!machine.runs)
		return syscall(SYS_getrandom, to, len, flags);
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)machine_pick(256);
	return (ssize_t)len;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
		   void *argument)
{
	typedef int fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	if (!machine.runs)
		return REAL(fn *, "pthread_create")(thread, attributes, run, argument);
	*thread = (pthread_t)new_fiber(run, argument);
	machine_yield();
	return 0;
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	typedef int fn(pthread_t, const char *);
	return machine.runs ? 0 : REAL(fn *, "pthread_setname_np")(thread, name);
}

int pthread_join(pthread_t thread, void **result)
{
	typedef int fn(pthread_t, void **);
	if (!machine.runs)
		return REAL(fn *, "pthread_join")(thread, result);
	struct fiber *f = &machine.fibers[thread];
	while (f->state != FIBER_ENDED)
		wait_for(f, INT64_MAX);
	f->state = FIBER_FREE;
	return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	typedef int fn(pthread_mutex_t *);
	static fn *real_lock;
	if (!machine.runs) {
		if (!real_lock)
			real_lock = REAL(fn *, "pthread_mutex_lock");
		return real_lock(mutex);
	}
	machine.wall_us++, machine.mono_us++; /* who only turns round takes time, too */
	machine_yield();
	int err;
	while ((err = pthread_mutex_trylock(mutex)) == EBUSY)
		wait_for(mutex, INT64_MAX);
	return err;
}

static int mutex_unlock(pthread_mutex_t *mutex)
{
	typedef int fn(pthread_mutex_t *);
	static fn *real_unlock;
	if (!real_unlock)
		real_unlock = REAL(fn *, "pthread_mutex_unlock");
	int err = real_unlock(mutex);
	if (machine.runs)
		wake(mutex, true);
	return err;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int err = mutex_unlock(mutex);
	machine_yield();
	return err;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	typedef int fn(pthread_rwlock_t *);
	if (!machine.runs)
		return REAL(fn *, "pthread_rwlock_rdlock")(lock);
	machine_yield();
	int err;
	while ((err = pthread_rwlock_tryrdlock(lock)) == EBUSY)
		wait_for(lock, INT64_MAX);
	return err;
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	typedef int fn(pthread_rwlock_t *);
	if (!machine.runs)
		return REAL(fn *, "pthread_rwlock_wrlock")(lock);
	machine_yield();
	int err;
	while ((err = pthread_rwlock_trywrlock(lock)) == EBUSY)
		wait_for(lock, INT64_MAX);
	return err;
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	typedef int fn(pthread_rwlock_t *);
	static fn *real_unlock;
	if (!real_unlock)
		real_unlock = REAL(fn *, "pthread_rwlock_unlock");
	int err = real_unlock(lock);
	if (machine.runs)
		wake(lock, true);
	machine_yield();
	return err;
}

static void wait_signal(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us)
{
	current()->signalled = false;
	mutex_unlock(mutex);
	wait_for(cond, until_us);
	while (pthread_mutex_trylock(mutex) == EBUSY)
		wait_for(mutex, INT64_MAX);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	typedef int fn(pthread_cond_t *, pthread_mutex_t *);
	if (!machine.runs)
		return REAL(fn *, "pthread_cond_wait")(cond, mutex);
	wait_signal(cond, mutex, INT64_MAX);
	return 0;
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			   const struct timespec *until)
{
	typedef int fn(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
	int64_t until_us = (int64_t)until->tv_sec * 1000000 + until->tv_nsec / 1000;
	if (!machine.runs)
		return REAL(fn *, "pthread_cond_clockwait")(cond, mutex, clock, until);
	if (clock != CLOCK_REALTIME)
		until_us += machine.wall_us - machine.mono_us;
	wait_signal(cond, mutex, until_us);
	return current()->signalled ? 0 : ETIMEDOUT;
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	typedef int fn(pthread_cond_t *);
	if (!machine.runs)
		return REAL(fn *, "pthread_cond_signal")(cond);
	wake(cond, false);
	return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	typedef int fn(pthread_cond_t *);
	if (!machine.runs)
		return REAL(fn *, "pthread_cond_broadcast")(cond);
	wake(cond, true);
	return 0;
}
