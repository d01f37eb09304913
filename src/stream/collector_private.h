/* Private to the collector: the streams that it knows, and what the examiner does. */
#ifndef STREAM_COLLECTOR_PRIVATE_H
#define STREAM_COLLECTOR_PRIVATE_H

#include <stdatomic.h>

#include "base/hash_table.h"
#include "base/log.h"
#include "base/random.h"
#include "loop/pool.h"
#include "stream/collector.h"
#include "stream/recent.h"

/* One incarnation, as far as it is known. */
struct collector_incarnation {
	uint64_t incarnation;
	bool read;       /* `made` and `held` are known */
	bool made;       /* it stands in the table of streams */
	bool here;       /* the collector made it, for a sender that knows of none */
	bool appended;   /* the collector made it, to append to it */
	bool begun;      /* it is new, and may be; the next two are of such */
	bool put;        /* the write that is under way makes it */
	bool empty;      /* nothing of it was held before the round */
	int64_t sure_ms; /* monotonic: when it was seen in that table, or put there */
	int64_t made_ms; /* when it was made */
	struct offsets held;
	/* What is below has gone. If its sender says the incarnation it counts as held; else what
	 * comes there is the beginning of another one. */
	uint64_t kept_from;
	struct recent recent; /* the last records, where it is appended to */
	struct collector_incarnation *next;
};

/* Streams of these names: all of their incarnations. While a submission has it, only that one and
 * its examiner may look at what follows `busy`. */
struct collector_stream {
	struct hash128 hash;
	struct collector_stream *newer, *older; /* by when they were asked for */
	unsigned waiting;                       /* submissions that wait for it */
	bool busy;                              /* a submission has it */
	bool doubted;                           /* what is known of it may be wrong */

	struct collector_tenant *tenant;
	char *texts; /* has the names */
	struct stream_names names;
	struct collector_incarnation *incarnations;
	size_t incarnation_count;
	/* Which one the chunks of a sender go to that knows of no incarnations, and the one before
	 * it. NULL: there is none. */
	struct collector_incarnation *present, *previous;
	bool present_read;    /* whether there are any was looked for */
	uint64_t appended;    /* the incarnation that is appended to; 0: none is known */
	int64_t made_ms;      /* of the last of all these */
	struct offsets round; /* of chunks of the round */
};

/* A right to so many units, which come back with time. */
struct collector_rate {
	double left;
	int64_t at_ms;
	bool begun;
};

/* None goes before the end. */
struct collector_tenant {
	struct hash128 hash;
	char *text;
	struct slice tenant;
	size_t streams;         /* in memory */
	_Atomic int64_t stored; /* incarnations in the store, about; some may have been forgotten */
	_Atomic int64_t counted_ms; /* monotonic: when they were counted; 0: they are to be */
	struct collector_rate fresh, bytes;
};

struct collector {
	struct collector_options options;
	const struct stream_site *site;
	struct random random;
	uint64_t seed;
	struct hash_table streams, tenants; /* slots: struct collector_slot */
	struct collector_stream *newest, *oldest;
	struct pool *examiner;
	struct stream_submission *active, *waiting, **waiting_end;
	size_t chunks, bytes;      /* of all submissions */
	bool begins, begins_again; /* what waits is looked at, and is to be once more */
	struct log_rate lines;     /* the examiner's */
	/* Names the incarnations that this process appends to where the store is shared: so it
	 * finds the one of a stream that it has forgotten. */
	uint64_t appended_seed;
	_Atomic int64_t recent_bytes; /* of hashes of records */
	_Atomic int64_t tail_bytes;
	_Atomic bool stops;
};

struct collector_slot {
	struct hash128 hash;
	void *what;
};

/* ---- collector_streams.c --------------------------------------------------------------------- */

/* The stream of these names. NULL: it is not in memory. */
struct collector_stream *collector_known_stream(struct collector *collector,
						const struct stream_id *id);
/* The same, made where there is none. NULL: of a tenant more than there may be. */
struct collector_stream *collector_find_stream(struct collector *collector,
					       const struct stream_id *id);
/* Forgets streams that nobody has had for longest, while there are too many. */
void collector_forget_some(struct collector *collector);
void collector_forget_all(struct collector *collector);
/* Forgets the incarnations of a stream, which are read anew when they are asked for, where they are
 * doubted or too many. */
void collector_settle(struct collector *collector, struct collector_stream *stream);
/* Forgets hashes of records while they are too many, first of the streams that nobody has had for
 * longest. */
void collector_forget_records(struct collector *collector);
/* Remembers the hash of a record that is held. */
void collector_remember(struct collector *collector, struct collector_incarnation *place,
			uint64_t hash);
/* The incarnation that is appended to. NULL: it is not known. */
struct collector_incarnation *collector_appended(const struct collector_stream *stream);
/* That incarnation, added where it is not known. */
struct collector_incarnation *collector_find_incarnation(struct collector_stream *stream,
							 uint64_t incarnation);
struct stream_id collector_id_of(const struct collector_stream *stream,
				 const struct collector_incarnation *place);
/* Takes units, of which so many come back in a second, and burst_s seconds' worth are there at
 * most. False: none is left. */
bool collector_rate_take(struct collector_rate *rate, double units, double a_second, double burst_s,
			 int64_t now_ms);

/* ---- examine.c: on the examiner's thread ------------------------------------------------------
 */

/* Whether a chunk of this round needs the examiner. */
bool collector_must_examine(const struct collector *collector, const struct stream_chunk *chunk);
/* Reads what the chunks of the round need, and says of those that overlap what is held whether the
 * bytes are the same: STREAM_HELD, STREAM_OTHER, or STREAM_WAITS: it is to be written. */
int collector_examine(struct stream_submission *submission, struct task_queue *queue);

#endif
