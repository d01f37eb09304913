/* Streams (document K, Chukwa): taken, put into blocks, read.
 *
 *     door  --submission-->  collector  --chunks-->  store  --owner: a pass each second-->  blocks
 *
 * This is the whole of it for one process: its collector, those who read lines as they come
 * (tail.h), the job that owns streams: it takes the leases of their partitions, seals what is due
 * (seal.h), and removes what is old (retain.h); and the job that makes samples of lines (demux.h).
 *
 * Threads: all of it belongs to the thread of the executor. */
#ifndef STREAM_STREAMS_H
#define STREAM_STREAMS_H

#include "lease/session.h"
#include "retention/keep.h"
#include "stream/collector.h"
#include "stream/demux.h"
#include "stream/tail.h"

struct streams_options {
	struct store *store;
	struct clock *clock;
	struct executor *executor;
	struct lease_session *session;
	struct stream_limits limits;
	int level;             /* of zstd, for blocks */
	int64_t every_ms;      /* between passes */
	int64_t seal_after_ms; /* what waits for so long goes into a block that is not full */
	int64_t write_max_ms;  /* how long a write may take */
	const struct keep_rules *keep; /* by datatype; the caller's */
	int64_t retain_every_ms;       /* between looks for what has expired or was deleted */
	int64_t late_max_ms;           /* so late a line is counted where it belongs */
	/* This process owns no streams: others that share the store do. */
	bool owns_none;
	uint64_t seed; /* of incarnations */
};

struct streams;

struct streams *streams_open(const struct streams_options *options);
/* Begins to own streams, unless it is to own none. */
void streams_start(struct streams *streams);
/* Takes the datatypes: searches know fields of lines from then on, and samples are made, unless
 * this process is to own no streams. */
void streams_start_demux(struct streams *streams, struct datatypes **datatypes,
			 struct demux_sink *sink);
/* Takes other rules. Searches and passes that have begun go on by the rules of before. */
void streams_reload(struct streams *streams, struct datatypes **datatypes);
void streams_tick(struct streams *streams); /* several times a second */
/* The owner ends after the stream that is at work. */
void streams_stop(struct streams *streams);
bool streams_is_over(const struct streams *streams); /* no submission, and no reader is there */
void streams_close(struct streams *streams);

struct collector *streams_collector(struct streams *streams);
struct stream_tail *streams_tail(struct streams *streams);
const struct stream_site *streams_site(const struct streams *streams);
/* A share of the rules of datatypes, which whoever asks lets go; NULL: there are none yet. */
struct datatypes *streams_datatypes(const struct streams *streams);
/* NULL: it has not begun, or never will. */
struct demux *streams_demux(struct streams *streams);
/* Of a stream something was deleted: that is carried through soon. */
void streams_note_deleted(struct streams *streams, const struct stream_id *id);

#endif
