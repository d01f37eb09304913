/* Demultiplexing (document K, Chukwa's demux): the job that makes samples of the lines of streams
 * whose datatypes have rules. It owns streams by lease, by their names; one at a time has its pass
 * (demux_pass.h): soon where much has come, else some seconds after something came.
 *
 * Threads: demux_note() is for any thread; what else is here belongs to the thread of the
 * executor. */
#ifndef STREAM_DEMUX_H
#define STREAM_DEMUX_H

#include "lease/session.h"
#include "stream/demux_pass.h"

struct demux_options {
	const struct stream_site *site;
	struct executor *executor;
	struct lease_session *session;
	struct demux_sink *sink;
	int64_t every_ms;     /* between turns */
	int64_t write_max_ms; /* how long a write may take */
	int64_t late_max_ms;  /* of demux_pass.h */
	uint64_t seed;
};

struct demux;

/* Takes the datatypes. */
struct demux *demux_open(const struct demux_options *options, struct datatypes **datatypes);
void demux_start(struct demux *demux);
/* It ends after the pass that is at work. */
void demux_stop(struct demux *demux);
bool demux_is_over(const struct demux *demux);
void demux_close(struct demux *demux);

/* From the next turn on these are the rules. */
void demux_reload(struct demux *demux, struct datatypes **datatypes);

/* Bytes of a stream have come. */
void demux_note(struct demux *demux, const struct stream_id *id, uint64_t bytes);

/* All samples of a stream are made again, from the beginning of what is held. ERR_NOT_FOUND: its
 * datatype has no rule; ERR_BUSY: too many streams wait. On a store that is shared it has no effect
 * in a process that does not own the stream. */
int demux_again(struct demux *demux, const struct stream_id *id) MUST_CHECK;

#endif
