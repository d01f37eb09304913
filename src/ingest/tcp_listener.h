/* Doors that are a stream of lines over TCP: line protocol, and OpenTSDB's telnet commands
 * (stream_protocol.h).
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

#include "ingest/stream_protocol.h"
#include "loop/loop.h"

struct stream_options {
	struct loop *loop;
	struct ingest *ingest;
	struct clock *clock;
	const struct stream_protocol *protocol;
	struct loop_address address;
	struct slice tenant;           /* NULL data: by the lines' tags; the caller's */
	enum line_precision precision; /* where the protocol has one */
	size_t line_max_bytes;         /* at most LINE_MAX_BYTES */
	size_t connections_max;
	int64_t idle_timeout_ms;
};

struct stream;

int stream_open(const struct stream_options *options, struct stream **stream,
		struct errbuf *e) MUST_CHECK;
struct loop_address stream_address(const struct stream *stream);

/* Takes no more connections; stores what the kernel has received of the others and closes them, but
 * gives up what has not come that far after `grace_ms`. `done` follows, then stream_free is
 * allowed. */
void stream_stop(struct stream *stream, int64_t grace_ms, void (*done)(void *owner), void *owner);
void stream_free(struct stream *stream);

#endif
