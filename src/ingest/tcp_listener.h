/* Doors that are a listener of lines over TCP: line protocol, and OpenTSDB's telnet commands
 * (listener_protocol.h).
 *
 * The lines of a connection become durable in their order: whole lines are read, at most
 * LOOP_READ_BYTES of them, then nothing is read until they are on disk. So a store that is busy
 * slows the sender down, and lines that the server has not read wait in the kernels of both. While
 * the store accepts nothing (busy, full) the lines are kept and submitted again after a while. If
 * it fails otherwise, the connection is closed, so that the sender notices.
 *
 * Line protocol has no answers: refused lines are counted, and logged at level debug. The
 * telnet command `put` answers only what it refuses; version, help, stats and exit are answered as
 * well. A client that does not read its answers loses them; its lines are stored all the same.
 *
 * A line without its newline at the end of a connection may be half of one, and a half line may be
 * a wrong number: it is refused.
 *
 * A connection that begins with HTTP, as a browser's does, or with bytes of another protocol is
 * closed, and nothing of it is stored.
 *
 * Bounds: connections; bytes kept of each (a read and the longest line); the bytes of all requests
 * together, by ingest/ingest.h. Threads: the loop's. */
#ifndef INGEST_TCP_LISTENER_H
#define INGEST_TCP_LISTENER_H

#include "ingest/listener_protocol.h"
#include "loop/loop.h"

struct tcp_listener_options {
	struct loop *loop;
	struct ingest *ingest;
	struct clock *clock;
	const struct listener_protocol *protocol;
	struct loop_address address;
	struct slice tenant;           /* NULL data: by the lines' tags; the caller's */
	struct loop_networks networks; /* of whom it takes lines; none: of everybody */
	enum line_precision precision; /* where the protocol has one */
	size_t line_max_bytes;         /* at most LINE_MAX_BYTES */
	size_t connections_max;
	int64_t idle_timeout_ms;
};

struct tcp_listener;

int tcp_listener_open(const struct tcp_listener_options *options, struct tcp_listener **listener,
		      struct errbuf *e) MUST_CHECK;
struct loop_address tcp_listener_address(const struct tcp_listener *listener);

/* Takes no more connections; stores what the kernel has received of the others and closes them, but
 * gives up what has not come that far after `grace_ms`. `done` follows, then tcp_listener_free is
 * allowed. */
void tcp_listener_stop(struct tcp_listener *listener, int64_t grace_ms, void (*done)(void *owner),
		       void *owner);
void tcp_listener_free(struct tcp_listener *listener);

#endif
