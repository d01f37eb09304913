#include "base/supervisor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { SUPERVISOR_TEXT_BYTES = 1024, SUPERVISOR_STEP_S = 60, SUPERVISOR_WAIT_S = 1 };

static struct {
	int fd; /* 0: nobody is told anything */
	struct sockaddr_un address;
	socklen_t address_bytes;
	int64_t watchdog_ms;
} supervisor;

/* A path, or a name of the abstract namespace with an @ for its first byte, which is a zero. */
static void supervisor_open_socket(const char *name)
{
	struct sockaddr_un *address = &supervisor.address;
	size_t len = strlen(name);
	if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof(address->sun_path)) {
		log_warn("NOTIFY_SOCKET is \"%s\", which is no address of a socket: the supervisor "
			 "is told nothing",
			 name);
		return;
	}
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, name, len);
	if (name[0] == '@')
		address->sun_path[0] = 0;
	supervisor.address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	const struct timeval wait = {.tv_sec = SUPERVISOR_WAIT_S};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)))
		log_warn("the supervisor may not be told all: %s", strerror(errno));
	supervisor.fd = fd < 0 ? 0 : fd;
}

/* WATCHDOG_PID says whose watchdog it is; without it, it is that of whoever reads this. */
static int64_t supervisor_read_watchdog(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	if (!interval || (pid && strtoll(pid, NULL, 10) != getpid()))
		return 0;
	return strtoll(interval, NULL, 10) / 1000;
}

void supervisor_find(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	if (name && *name)
		supervisor_open_socket(name);
	if (supervisor.fd)
		supervisor.watchdog_ms = supervisor_read_watchdog();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

int64_t supervisor_watchdog_ms(void)
{
	return supervisor.watchdog_ms;
}

/* Others come again, or are for people. */
static bool supervisor_waits_for(const char *text)
{
	static const char *const names[] = {"READY=", "RELOADING=", "STOPPING="};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strncmp(text, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

void supervisor_tell(const char *lines, ...)
{
	char text[SUPERVISOR_TEXT_BYTES];
	va_list list;
	if (!supervisor.fd)
		return;
	va_start(list, lines);
	int len = vsnprintf(text, sizeof(text), lines, list);
	va_end(list);
	ASSERT(len > 0 && len < (int)sizeof(text));
	int flags = MSG_NOSIGNAL | (supervisor_waits_for(text) ? 0 : MSG_DONTWAIT);
	if (sendto(supervisor.fd, text, (size_t)len, flags,
		   (const struct sockaddr *)&supervisor.address, supervisor.address_bytes) < 0)
		log_warn("the supervisor could not be told %.*s: %s", (int)strcspn(text, "\n"),
			 text, strerror(errno));
}

void supervisor_tell_reload(struct clock *clock)
{
	supervisor_tell("RELOADING=1\nMONOTONIC_USEC=%lld\nSTATUS=reads the configuration again",
			(long long)clock->mono_us(clock));
}

void supervisor_tell_reloaded(bool changed)
{
	supervisor_tell("READY=1\nSTATUS=ready%s",
			changed ? "" : "; the last reload changed nothing, the log says why");
}

void supervisor_tell_progress(const char *what, uint64_t done, uint64_t total)
{
	supervisor_tell("EXTEND_TIMEOUT_USEC=%d000000\nSTATUS=%s: %llu of %llu", SUPERVISOR_STEP_S,
			what, (unsigned long long)done, (unsigned long long)total);
}
