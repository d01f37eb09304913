/* Streams in the server: what takes them and puts them into blocks (stream/streams.h), and the
 * workers that read chunks of version 1. */
#ifndef CMD_SERVE_STREAMS_H
#define CMD_SERVE_STREAMS_H

#include "ingest/chunks_door.h"
#include "ingest/demux_samples.h"
#include "retention/keep.h"
#include "stream/streams.h"

struct clock;
struct conf;
struct lease_session;
struct loop;
struct pool;
struct store;
struct streams;

struct serve_streams {
	struct streams *streams; /* NULL: not open */
	struct pool *pool;
	struct streams_options options;
	struct keep_rules keep;
	struct chunks_door door;
	struct demux_samples samples;
};

struct serve_streams_options {
	const struct conf *conf;
	struct store *store;
	struct clock *clock;
	struct loop *loop;
	struct lease_session *session;
};

/* Reads what the configuration says of streams. With a sentence. */
int serve_streams_read(const struct conf *conf, struct datatypes **datatypes,
		       struct errbuf *e) MUST_CHECK;
/* After serve_streams_read. */
void serve_streams_open(struct serve_streams *streams, const struct serve_streams_options *options);
/* From now on samples are made of their lines. Takes the datatypes. */
void serve_streams_start_demux(struct serve_streams *streams, struct datatypes **datatypes,
			       struct ingest *ingest, struct board_keys *keys,
			       const struct row_site *rows);
void serve_streams_tick(struct serve_streams *streams); /* several times a second */
void serve_streams_stop(struct serve_streams *streams); /* when no request is at work any more */
bool serve_streams_are_over(const struct serve_streams *streams);
void serve_streams_close(struct serve_streams *streams); /* over */

#endif
