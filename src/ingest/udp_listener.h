/* The door of line protocol over UDP: each datagram holds whole lines (the last may lack its
 * newline), and nobody is told what became of them.
 *
 * Datagrams are lost when the store does not keep up: then reading rests, and the kernel drops what
 * does not fit its buffer. That is counted (granary_udp_lost_datagrams_total), like what the store
 * refused. If a sample is in several datagrams, any of them may win: UDP keeps no order.
 *
 * Bounds: requests in flight, the bytes of all requests (ingest/ingest.h), the kernel's buffer.
 * Threads: the loop's. */
#ifndef INGEST_UDP_LISTENER_H
#define INGEST_UDP_LISTENER_H

#include "ingest/listener_protocol.h"
#include "loop/loop.h"

struct datagrams_options {
	struct loop *loop;
	struct ingest *ingest;
	const struct listener_protocol *protocol;
	struct loop_address address;
	struct slice tenant;           /* NULL data: by the lines' tags; the caller's */
	struct loop_networks networks; /* of whom it takes datagrams; none: of everybody */
	enum line_precision precision;
	size_t datagram_max_bytes, buffer_bytes;
};

struct datagrams;

int datagrams_open(const struct datagrams_options *options, struct datagrams **datagrams,
		   struct errbuf *e) MUST_CHECK;
struct loop_address datagrams_address(const struct datagrams *datagrams);

/* Stores what the kernel has received, but gives up after `grace_ms`. `done` follows, then
 * datagrams_free is allowed. */
void datagrams_stop(struct datagrams *datagrams, int64_t grace_ms, void (*done)(void *owner),
		    void *owner);
void datagrams_free(struct datagrams *datagrams);

#endif
