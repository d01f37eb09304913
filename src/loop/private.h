/* Shared by the files of loop/ only. */
#ifndef LOOP_PRIVATE_H
#define LOOP_PRIVATE_H

#include <stdatomic.h>
#include <sys/socket.h>
#include <uv.h>

#include "loop/loop.h"

struct loop {
	uv_loop_t uv;
	struct executor executor;
	uv_async_t wake;
	uv_prepare_t turn; /* comes before each look at the sockets */
	_Atomic(enum loop_kind) kind;
	/* Turns that are not looked at yet: CPU time of the thread in loop_run(), and monotonic. */
	int64_t turns_began_us, turns_seen_us;
	uint64_t turns;
	int64_t reads_began_us; /* monotonic, of connections in this turn; 0: none yet */
	pthread_mutex_t lock;   /* guards first, last */
	struct task *first, *last;
	atomic_bool stopping;
	char *read_buffer; /* LOOP_READ_BYTES: filled and emptied within one read event */
};

/* net.c: what sockets of both kinds need. */
socklen_t loop_to_sockaddr(const struct loop_address *address, struct sockaddr_storage *out);
/* The port that a socket is bound to. */
int loop_bound_port(int fd, uint16_t *port) MUST_CHECK;
/* ERR_INVALID with a sentence. */
int loop_check_loopback(const struct loop_address *address, struct errbuf *e) MUST_CHECK;

#endif
