/* The protocols of lines that have a port of their own: a row each, from which the configuration
 * opens the doors (cmd/serve_listeners.h) and the listeners know what to do with what comes in.
 *
 * A row of datagrams is line protocol, and read by udp_listener.h; the others are connections of
 * tcp_listener.h. */
#ifndef INGEST_LISTENER_PROTOCOL_H
#define INGEST_LISTENER_PROTOCOL_H

#include "base/buf.h"
#include "base/log.h"
#include "conf/conf.h"
#include "ingest/ingest.h"
#include "loop/loop.h"
#include "wire/line.h"

/* Lines of a connection, and how far they were taken. */
struct listener_lines {
	struct ingest_request *r;
	struct slice tenant;           /* NULL data: by the lines' tags */
	enum line_precision precision; /* where the protocol has one */
	size_t line_max_bytes;
	struct slice bytes; /* whole lines, each with its \n */
	bool last;          /* nothing follows: a text that is still open is bad */
	uint64_t line;      /* number of the first line; then of the first that is not taken */
	/* From `feed`: */
	size_t taken; /* bytes from the front */
	size_t open;  /* bytes after these which end in an open text, and are to be tried again */
};

struct listener_protocol {
	const char *name, *what; /* in the log: the section of its options; in words */
	enum conf_id listen;     /* option of an address; empty: it is not open */
	enum conf_id tenant;     /* option; empty: by the lines' tags */
	enum conf_id networks;   /* option of who may send; empty: everybody */
	enum conf_id precision;  /* option; CONF_OPTIONS: there is none */
	bool datagrams;
	/* What follows is of connections. */
	void (*feed)(struct listener_lines *lines);
	/* Tells the sender about the refusals of a request; NULL: they are logged, at debug. */
	void (*tell_refusals)(const struct ingest_request *r, struct buf *out);
	/* Whether the first line is a command with an answer, at which `feed` stops; NULL: there
	 * are none. And its answer; *over: the sender wishes to end. */
	bool (*find_command)(struct slice bytes, struct slice *command);
	void (*answer)(struct slice command, int64_t now_s, struct buf *out, bool *over);
};

enum { LISTENER_PROTOCOLS = 3 };
extern const struct listener_protocol listener_protocols[LISTENER_PROTOCOLS];

/* Whether this one may send; one that may not is counted, and logged. */
bool listener_protocol_lets_in(const struct listener_protocol *protocol,
			       const struct loop_networks *networks,
			       const struct loop_address *sender, struct log_rate *lines,
			       int64_t now_ms) MUST_CHECK;

void listener_protocol_log_refusals(const struct listener_protocol *protocol,
				    const struct ingest_request *r);

#endif
