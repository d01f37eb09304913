/* What goes to a supervisor, on a socket of the test's. The environment is read once in a process,
 * so each test is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/supervisor.h"

static int heard_fd;
static char heard[2048];

/* An abstract name, of which the kernel says which it took. */
static void hear(char name[8])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(address);
	heard_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(heard_fd, (void *)&address, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(heard_fd, (void *)&address, &bytes), 0);
	size_t len = bytes - offsetof(struct sockaddr_un, sun_path);
	assert_in_range(len, 2, 7); /* a zero and five digits */
	memcpy(name, address.sun_path, len);
	name[0] = '@';
	name[len] = 0;
}

static const char *next_heard(void)
{
	ssize_t len = recv(heard_fd, heard, sizeof(heard) - 1, 0);
	heard[len < 0 ? 0 : len] = 0;
	return len < 0 ? NULL : heard;
}

/* In a process of its own, whose assertions end it. */
static void alone(void (*run)(void))
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void tell_one(void)
{
	char name[8], interval[] = "3000000", pid[16];
	struct clock_virtual clock;
	hear(name);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("NOTIFY_SOCKET", name, 1);
	setenv("WATCHDOG_USEC", interval, 1);
	setenv("WATCHDOG_PID", pid, 1);
	supervisor_find();
	ASSERT(!getenv("NOTIFY_SOCKET") && !getenv("WATCHDOG_USEC") && !getenv("WATCHDOG_PID"));
	ASSERT(supervisor_watchdog_ms() == 3000);
	supervisor_tell("READY=1\nSTATUS=%s", "as it should be");
	ASSERT(strcmp(next_heard(), "READY=1\nSTATUS=as it should be") == 0);
	clock_virtual_init(&clock, 0);
	clock_virtual_advance(&clock, 1234567);
	supervisor_tell_reload(&clock.clock);
	ASSERT(strstr(next_heard(), "RELOADING=1\nMONOTONIC_USEC=1234567\n") == heard);
	supervisor_tell_reloaded(true);
	ASSERT(strcmp(next_heard(), "READY=1\nSTATUS=ready") == 0);
	supervisor_tell_progress("reads", 5, 9);
	ASSERT(strcmp(next_heard(), "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=reads: 5 of 9") == 0);
	ASSERT(!next_heard());
	/* Whoever has gone is no reason to wait, or to end. */
	close(heard_fd);
	supervisor_tell("WATCHDOG=1");
}

static void it_is_told_and_nobody_inherits_it(UNUSED void **state)
{
	alone(tell_one);
}

static const char *name_tried;

static void tell_nobody(void)
{
	setenv("NOTIFY_SOCKET", name_tried, 1);
	setenv("WATCHDOG_USEC", "3000000", 1);
	supervisor_find();
	ASSERT(supervisor_watchdog_ms() == 0);
	supervisor_tell("READY=1");
}

static void names_that_are_none(UNUSED void **state)
{
	char long_name[200];
	memset(long_name, 'a', sizeof(long_name));
	long_name[0] = '/';
	long_name[sizeof(long_name) - 1] = 0;
	const char *const names[] = {"", "/", "@", "notify", "vsock:2:1234", long_name};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		name_tried = names[i];
		alone(tell_nobody);
	}
}

static void *read_until_ready(UNUSED void *argument)
{
	struct pollfd one = {.fd = heard_fd, .events = POLLIN};
	do {
		while (!next_heard())
			poll(&one, 1, -1);
	} while (strcmp(heard, "READY=1") != 0);
	return NULL;
}

/* The socket's queue is full, and nobody reads: what is lost is only that. */
static void tell_too_much(void)
{
	char name[8];
	hear(name);
	setenv("NOTIFY_SOCKET", name, 1);
	supervisor_find();
	ASSERT(freopen("/dev/null", "w", stderr));
	for (int i = 0; i < 5000; i++)
		supervisor_tell("WATCHDOG=1");
	/* For this one there is room soon. */
	pthread_t reader;
	ASSERT(!pthread_create(&reader, NULL, read_until_ready, NULL));
	supervisor_tell("READY=1");
	ASSERT(!pthread_join(reader, NULL));
}

static void one_that_does_not_read_stops_nobody(UNUSED void **state)
{
	alone(tell_too_much);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_told_and_nobody_inherits_it),
		cmocka_unit_test(names_that_are_none),
		cmocka_unit_test(one_that_does_not_read_stops_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
