/* A Redis of the test's own, on a free port of the loopback, that keeps nothing on disk unless it
 * is told to; and a plain client that says what any program would. */
#ifndef TESTS_UNIT_REDIS_SERVER_H
#define TESTS_UNIT_REDIS_SERVER_H

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

struct redis_server {
	pid_t pid;
	unsigned port;
	redisContext *context;
};

static inline unsigned redis_free_port(void)
{
	struct sockaddr_in place = {.sin_family = AF_INET};
	socklen_t len = sizeof(place);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ASSERT(fd >= 0 && bind(fd, (struct sockaddr *)&place, len) == 0);
	ASSERT(getsockname(fd, (struct sockaddr *)&place, &len) == 0);
	close(fd);
	return ntohs(place.sin_port);
}

static inline bool redis_answers(struct redis_server *s)
{
	s->context = redisConnect("127.0.0.1", (int)s->port);
	if (s->context && !s->context->err)
		return true;
	redisFree(s->context);
	return false;
}

/* On its port, if it has one already. It says nothing when it is ready, so it is asked. */
static inline void redis_start(struct redis_server *s)
{
	char port[16];
	if (!s->port)
		s->port = redis_free_port();
	snprintf(port, sizeof(port), "%u", s->port);
	s->pid = fork();
	ASSERT(s->pid >= 0);
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port,
		       "--save", "", "--dir", "/tmp", "--logfile", "/dev/null", (char *)NULL);
		fprintf(stderr, "redis-server (package redis-server) does not start: %m\n");
		_exit(127);
	}
	for (int tries = 0; !redis_answers(s); tries++) {
		ASSERT(waitpid(s->pid, NULL, WNOHANG) == 0); /* it has said why not */
		ASSERT(tries < 30000); /* a minute: only a failure takes as long */
		usleep(2000);
	}
}

static inline void redis_kill(struct redis_server *s)
{
	redisFree(s->context);
	kill(s->pid, SIGKILL);
	ASSERT(waitpid(s->pid, NULL, 0) == s->pid);
}

/* The answer of a command: its text, its number, or its texts in order, apart by blanks. Until the
 * next. */
static inline const char *redis_say(struct redis_server *s, const char *command)
{
	static char text[1 << 16];
	redisReply *reply = redisCommand(s->context, command);
	size_t len = 0;
	ASSERT(reply);
	text[0] = 0;
	if (reply->type == REDIS_REPLY_INTEGER)
		snprintf(text, sizeof(text), "%lld", reply->integer);
	else if (reply->str)
		snprintf(text, sizeof(text), "%s", reply->str);
	for (size_t i = 0; i < reply->elements; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "",
					reply->element[i]->str);
	freeReplyObject(reply);
	return text;
}

#endif
