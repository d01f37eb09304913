/* Shared by the files of loop/ only. */
#ifndef LOOP_PRIVATE_H
#define LOOP_PRIVATE_H

#include <stdatomic.h>
#include <sys/socket.h>
#include <uv.h>

#include "loop/loop.h"

struct tls_conn;
struct tls_room;

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
	char *read_buffer;    /* LOOP_READ_BYTES: filled and emptied within one read event */
	struct tls_room *tls; /* what connections that speak TLS share; NULL: there was none yet */
};

struct loop_conn {
	uv_tcp_t tcp;
	uv_shutdown_t shutdown;
	struct loop *loop;
	struct tls_conn *tls; /* NULL: its bytes go as they are */
	struct loop_address peer;
	const struct loop_conn_events *events; /* NULL until started */
	void *owner;
	size_t read_max_bytes; /* 0: reading rests */
	uint64_t turn;         /* of the loop, in which it last read, */
	unsigned turn_reads;   /* and how often */
	bool at_end;           /* the peer has said that no more comes */
	bool broken;           /* said so */
};

/* net.c: what sockets of both kinds need. */
socklen_t loop_to_sockaddr(const struct loop_address *address, struct sockaddr_storage *out);
/* The port that a socket is bound to. */
int loop_bound_port(int fd, uint16_t *port) MUST_CHECK;
/* A connected socket of any family becomes a connection, which is not started yet. After an error
 * the socket is closed. */
int loop_conn_adopt(struct loop *loop, int fd, const struct loop_address *peer,
		    struct loop_conn **conn) MUST_CHECK;
/* How much of max_bytes may be read from a connection now. */
size_t loop_net_readable(struct loop_conn *conn, size_t max_bytes);
/* Bytes as they go over the wire: see loop_conn_write. */
void loop_net_write(struct loop_conn *conn, const struct slice *pieces, size_t count);
/* Bytes of the wire that the kernel has not taken yet. */
size_t loop_net_unsent(const struct loop_conn *conn);
void loop_net_shutdown(struct loop_conn *conn);
/* Tells the owner that it is gone, once. Not from inside a call of the owner. */
void loop_net_fail(struct loop_conn *conn, int err);
bool loop_net_is_closing(const struct loop_conn *conn);

/* tls_conn.c: the part of each of these for connections that speak TLS. */
void tls_conn_start(struct loop_conn *conn);
/* Reading shall go on or rest, as read_max_bytes now says. */
void tls_conn_read(struct loop_conn *conn);
void tls_conn_write(struct loop_conn *conn, const struct slice *pieces, size_t count);
/* Written by the owner while the peers still shake hands. */
size_t tls_conn_unsent(const struct loop_conn *conn);
/* Taken from the kernel and not yet given to the owner. */
size_t tls_conn_unread(const struct loop_conn *conn);
/* The kernel has taken everything. Whether the owner is told so. */
bool tls_conn_all_sent(struct loop_conn *conn);
void tls_conn_shutdown(struct loop_conn *conn);
/* The network has broken it. */
void tls_conn_lost(struct loop_conn *conn, int err);
/* Closing has begun: nothing happens to it any more. */
void tls_conn_end(struct loop_conn *conn);
void tls_conn_free(struct tls_conn *tls);  /* NULL is allowed */
void tls_room_free(struct tls_room *room); /* NULL is allowed */

#endif
