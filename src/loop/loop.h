/* The event loop: the only user of libuv and libssl. Sockets, timers, signals and tasks posted by
 * other threads, all served by the one thread that is in loop_run().
 *
 *  - Everything here is called on the loop's thread, except loop_stop() and posting to
 *    loop_executor(), which any thread may do at any time between loop_new and loop_free.
 *  - Close is asynchronous: after x_close() none of the thing's events is called again (but a
 *    connection's `closed`), and its memory goes when libuv has let go of it.
 *  - Events are never called from inside a call into this module, so that a caller's state is not
 *    changed behind its back: an error found by loop_conn_write() arrives later as `broken`.
 *  - Nothing here limits how much is written: callers look at loop_conn_unsent(). */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <sys/types.h>

#include "base/base.h"
#include "base/exec.h"

struct loop;

/* Also makes the process ignore SIGPIPE. Without descriptors the process ends, with a sentence. */
struct loop *loop_new(void);
/* Turns. What a loop does from one look at its sockets to the next is a turn; meanwhile nobody else
 * is served. CPU time of its thread is what counts, so that a busy machine does not: the longest
 * turn and the number of slow ones are counted by kind of loop (granary_loop_...), and one of
 * LOOP_TURN_MAX_MS or more that is the longest so far is logged. It may count 2 ms too much. */
enum { LOOP_TURN_SLOW_MS = 20, LOOP_TURN_MAX_MS = 200 };
enum loop_kind { LOOP_OTHER, LOOP_MAIN, LOOP_POLLER, LOOP_PERSIST };
/* What its turns are counted as from now on; LOOP_OTHER at first. From any thread. */
void loop_set_kind(struct loop *loop, enum loop_kind kind);

/* Serves until loop_stop(). May be called again afterwards. */
void loop_run(struct loop *loop);
/* Makes loop_run() return after the present events. From any thread, also before loop_run(). */
void loop_stop(struct loop *loop);
/* After loop_run() has returned and everything that lives on the loop was closed (asserted): runs
 * the tasks still queued and the outstanding close callbacks. */
void loop_free(struct loop *loop);

/* Tasks posted run on the loop's thread, in the order of posting. */
struct executor *loop_executor(struct loop *loop);

/* Monotonic, as of the beginning of this turn of the loop: cheap, for deadlines. */
int64_t loop_now_ms(struct loop *loop);

/* ---- Timers and signals ---------------------------------------------------------------------- */

struct loop_timer;
typedef void loop_timer_fn(void *owner);

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *fn, void *owner);
/* Starts or restarts it; `repeat_ms` 0 fires once. */
void loop_timer_start(struct loop_timer *timer, uint64_t after_ms, uint64_t repeat_ms);
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_close(struct loop_timer *timer); /* NULL is allowed */

struct loop_signal;
typedef void loop_signal_fn(void *owner, int signum);

/* ERR_INVALID for a signal that cannot be caught. */
int loop_signal_open(struct loop *loop, int signum, loop_signal_fn *fn, void *owner,
		     struct loop_signal **signal) MUST_CHECK;
void loop_signal_close(struct loop_signal *signal); /* NULL is allowed */

/* ---- Addresses ------------------------------------------------------------------------------- */

struct loop_address {
	bool v6;
	uint8_t bytes[16]; /* network order; 4 of them for v4 */
	uint16_t port;
	bool of_path; /* a peer that came by a socket of this machine: the bytes are loopback's */
};

enum { LOOP_ADDRESS_TEXT_BYTES = 56 };

/* `127.0.0.1:8470`, `[::1]:8470`, `localhost:8470` (which is 127.0.0.1). No other names: a name may
 * mean anything tomorrow. ERR_INVALID with a sentence. */
int loop_address_parse(struct slice text, struct loop_address *address,
		       struct errbuf *e) MUST_CHECK;
/* As loop_address_parse reads it; `the socket` of a peer that came by one. */
const char *loop_address_text(const struct loop_address *address,
			      char text[LOOP_ADDRESS_TEXT_BYTES]);
bool loop_address_is_loopback(const struct loop_address *address);
bool loop_address_equal(const struct loop_address *a, const struct loop_address *b);

/* An address without port, with or without the brackets of IPv6; it has port 0. */
int loop_host_parse(struct slice text, struct loop_address *address) MUST_CHECK;

/* `192.0.2.0/24`, `2001:db8::/32`, or one address: those that begin with so many bits. */
struct loop_network {
	struct loop_address first;
	unsigned bits;
};
enum { LOOP_NETWORKS_MAX = 64 };
struct loop_networks {
	struct loop_network list[LOOP_NETWORKS_MAX];
	size_t count;
};
/* ERR_INVALID with a sentence, also where an address has bits behind those. */
int loop_network_parse(struct slice text, struct loop_network *network,
		       struct errbuf *e) MUST_CHECK;
/* Whatever the port. */
bool loop_networks_have(const struct loop_networks *networks,
			const struct loop_address *address) MUST_CHECK;

struct sockaddr;
/* `from` is of AF_INET or AF_INET6, as the kernel and getaddrinfo() give them. */
struct loop_address loop_address_of(const struct sockaddr *from);

/* ---- Listening ------------------------------------------------------------------------------- */

struct loop_listener;
struct loop_conn;

/* The connection is the callee's: it opens it with loop_conn_start() or closes it. */
typedef void loop_accept_fn(void *owner, struct loop_conn *conn);

/* Binds and listens; port 0 takes a free one. Whether the address may be reached from other
 * machines is for the caller to say. When the process is out of descriptors, accepting rests for
 * 100 ms at a time (counted). */
int loop_listen(struct loop *loop, const struct loop_address *address, loop_accept_fn *accept,
		void *owner, struct loop_listener **listener, struct errbuf *e) MUST_CHECK;
enum { LOOP_PATH_MAX_BYTES = 108 }; /* of a socket, with its zero */
/* The same on a socket of this machine (unix(7)), which those may open who may write to a file of
 * that mode. One that a process has left behind is removed before; ERR_LOCKED: somebody serves it;
 * ERR_EXISTS: what is at the path is no socket. Of two that start at once the later has it: whoever
 * calls sees to that. Closing removes it, too. */
int loop_listen_path(struct loop *loop, const char *path, mode_t mode, loop_accept_fn *accept,
		     void *owner, struct loop_listener **listener, struct errbuf *e) MUST_CHECK;
/* Whether somebody serves a socket of this machine, and lets us in. */
bool loop_path_is_served(const char *path) MUST_CHECK;
/* What is really bound, with the port that was chosen. */
struct loop_address loop_listener_address(const struct loop_listener *listener);
void loop_listener_close(struct loop_listener *listener); /* NULL is allowed */

/* ---- Connections ----------------------------------------------------------------------------- */

struct loop_conn_events {
	/* Bytes of the shared read buffer: valid until the call returns. */
	void (*read)(void *owner, struct slice bytes);
	/* The peer will send no more; it may still read. */
	void (*eof)(void *owner);
	/* The connection is gone in both directions; the owner closes it. */
	void (*broken)(void *owner, int err);
	/* Everything written so far has been given to the kernel. */
	void (*sent)(void *owner);
	/* After loop_conn_close(): the last call. */
	void (*closed)(void *owner);
};

enum { LOOP_READ_BYTES = 256 << 10 };

/* Starts events and reading. TCP_NODELAY is set. */
void loop_conn_start(struct loop_conn *conn, const struct loop_conn_events *events, void *owner);

/* Reading goes on or rests; at most `max_bytes` come in one piece (<= LOOP_READ_BYTES; 0 = rest).
 * While it rests nobody notices that the peer has gone. */
void loop_conn_read(struct loop_conn *conn, size_t max_bytes);

/* Sends what the kernel takes at once and copies the rest; if there was a rest, `sent` is called
 * when all of it has gone. */
void loop_conn_write(struct loop_conn *conn, const struct slice *pieces, size_t count);
/* Bytes written but not yet given to the kernel. */
size_t loop_conn_unsent(const struct loop_conn *conn);
/* Bytes that the kernel has received and that were not read; 0 also when it does not say. */
size_t loop_conn_unread(const struct loop_conn *conn);
/* Who is at the other end; all zeros on a socket of this machine. */
struct loop_address loop_conn_peer(const struct loop_conn *conn);
/* The user of the process that connected to a socket of this machine, as the kernel saw it then.
 * ERR_NOT_FOUND: it is a connection of the network. */
int loop_conn_peer_uid(const struct loop_conn *conn, uid_t *uid) MUST_CHECK;
/* After the last byte has gone, tells the peer that no more comes. */
void loop_conn_shutdown(struct loop_conn *conn);
/* What is unsent is lost. A connection that was never started has no `closed`. */
void loop_conn_close(struct loop_conn *conn);

/* ---- Datagrams ------------------------------------------------------------------------------- */

struct loop_udp;

struct loop_datagram {
	struct slice bytes;       /* of the shared read buffer: valid until the call returns */
	bool cut;                 /* it was longer than datagram_max_bytes */
	struct loop_address from; /* where it is known: of clients, and by `senders` */
};

/* Some datagrams, in the order in which they came. */
typedef void loop_datagrams_fn(void *owner, const struct loop_datagram *datagrams, size_t count);

struct loop_udp_options {
	struct loop_address address; /* port 0 takes a free one */
	bool client;  /* asks others: bound to any address, sends, and knows who answers */
	bool senders; /* who sends is known, as it is of clients */
	size_t datagram_max_bytes; /* at most LOOP_DATAGRAM_MAX_BYTES */
	size_t buffer_bytes;       /* asked of the kernel; 0: as it likes */
	loop_datagrams_fn *received;
	void *owner;
};

enum { LOOP_DATAGRAM_MAX_BYTES = 64 << 10 };

/* Reads from the start. */
int loop_udp_open(struct loop *loop, const struct loop_udp_options *options, struct loop_udp **udp,
		  struct errbuf *e) MUST_CHECK;
struct loop_address loop_udp_address(const struct loop_udp *udp);
/* Reading goes on or rests; what comes meanwhile waits in the kernel, or is lost and counted. */
void loop_udp_read(struct loop_udp *udp, bool on);
/* Reads now, and calls `received` from inside: the one exception, for stopping. False when nothing
 * is left. */
bool loop_udp_read_now(struct loop_udp *udp);
/* Datagrams that the kernel dropped since the last call. */
uint32_t loop_udp_lost(struct loop_udp *udp);

struct loop_outgoing {
	struct slice bytes;
	struct loop_address to; /* of the family of the socket */
};

/* Of clients: gives them to the kernel in as few calls as may be, and returns how many it took; the
 * others may be tried again when it has sent some. One that cannot be sent (no route) counts as
 * taken: to the caller it is lost on its way. */
size_t loop_udp_send(struct loop_udp *udp, const struct loop_outgoing *outgoing, size_t count);
void loop_udp_close(struct loop_udp *udp); /* NULL is allowed */

#endif
