/* A memcached of the test's own, on a free port of the loopback, and a plain client that does what
 * an esmond poller or persister does. */
#ifndef TESTS_CONTRACT_MEMCACHED_SERVER_H
#define TESTS_CONTRACT_MEMCACHED_SERVER_H

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

struct memcached_server {
	pid_t pid;
	unsigned port;
	char address[32];
	int fd; /* the client's connection */
};

static inline struct sockaddr_in memcached_place(unsigned port)
{
	struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return place;
}

static inline unsigned memcached_free_port(void)
{
	struct sockaddr_in place = memcached_place(0);
	socklen_t len = sizeof(place);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ASSERT(fd >= 0 && bind(fd, (struct sockaddr *)&place, len) == 0);
	ASSERT(getsockname(fd, (struct sockaddr *)&place, &len) == 0);
	close(fd);
	return ntohs(place.sin_port);
}

static inline bool memcached_connect(struct memcached_server *s)
{
	struct sockaddr_in place = memcached_place(s->port);
	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	ASSERT(s->fd >= 0);
	if (connect(s->fd, (struct sockaddr *)&place, sizeof(place)) == 0)
		return true;
	close(s->fd);
	return false;
}

/* On its port, if it has one already. It says nothing when it is ready, so it is asked. */
static inline void memcached_start(struct memcached_server *s)
{
	char port[16];
	if (!s->port)
		s->port = memcached_free_port();
	snprintf(port, sizeof(port), "%u", s->port);
	snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", s->port);
	s->pid = fork();
	ASSERT(s->pid >= 0);
	if (s->pid == 0) {
		execlp("memcached", "memcached", "-u", "nobody", "-l", "127.0.0.1", "-U", "0", "-p",
		       port, (char *)NULL);
		fprintf(stderr, "memcached (package memcached) does not start: %m\n");
		_exit(127);
	}
	for (int tries = 0; !memcached_connect(s); tries++) {
		ASSERT(waitpid(s->pid, NULL, WNOHANG) == 0); /* it has said why not */
		ASSERT(tries < 30000); /* a minute: only a failure takes as long */
		usleep(2000);
	}
}

static inline void memcached_stop(struct memcached_server *s)
{
	close(s->fd);
	kill(s->pid, SIGKILL);
	ASSERT(waitpid(s->pid, NULL, 0) == s->pid);
}

/* Sends and reads until `end`; at most so much that it fits. */
static inline const char *memcached_ask(struct memcached_server *s, const char *text, size_t len,
					const char *end)
{
	static char answer[1 << 20];
	size_t got = 0;
	ASSERT(send(s->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len);
	do {
		ssize_t n = recv(s->fd, answer + got, sizeof(answer) - 1 - got, 0);
		ASSERT(n > 0);
		got += (size_t)n;
		answer[got] = 0;
	} while (got < strlen(end) || strcmp(answer + got - strlen(end), end) != 0);
	return answer;
}

static inline const char *memcached_say(struct memcached_server *s, const char *line,
					const char *end)
{
	char text[256];
	int len = snprintf(text, sizeof(text), "%s\r\n", line);
	return memcached_ask(s, text, (size_t)len, end);
}

/* A value's bytes, or NULL. */
static inline const char *memcached_value(struct memcached_server *s, const char *key)
{
	char line[200];
	snprintf(line, sizeof(line), "get %s", key);
	const char *answer = memcached_say(s, line, "END\r\n");
	if (strncmp(answer, "VALUE ", 6) != 0)
		return NULL;
	char *value = strstr(answer, "\r\n") + 2;
	strstr(answer, "\r\nEND\r\n")[0] = 0;
	return value;
}

static inline void memcached_set_text(struct memcached_server *s, const char *key,
				      const char *value)
{
	size_t len = strlen(value), room = len + 200;
	char *text = mem_alloc(room);
	int n = snprintf(text, room, "set %s 0 0 %zu\r\n%s\r\n", key, len, value);
	ASSERT(strcmp(memcached_ask(s, text, (size_t)n, "\r\n"), "STORED\r\n") == 0);
	mem_free(text);
}

/* esmond's put, in its two steps. */
static inline unsigned memcached_number(struct memcached_server *s)
{
	const char *answer = memcached_say(s, "incr _mcpq__q_last_added 1", "\r\n");
	return (unsigned)strtoul(answer, NULL, 10);
}

static inline void memcached_item(struct memcached_server *s, unsigned number, const char *json)
{
	char key[64];
	snprintf(key, sizeof(key), "_mcpq__q_%u", number);
	memcached_set_text(s, key, json);
}

#endif
