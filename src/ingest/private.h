/* What the files of ingest/ share: the parts of a request behind struct ingest_request.
 *
 * A request's values take one of two ways. Known ones go straight into the flight, the store_write
 * that is being filled. Others go into the round that gathers; so do known ones while anything
 * waits, so that the order is kept. A round is opened (its groups go to the catalog), then its
 * points are appended in order. The flight that takes its first samples also takes its metric names
 * and keeps the round until it is written, since the catalog wants to know how that ended. */
#ifndef INGEST_PRIVATE_H
#define INGEST_PRIVATE_H

#include "base/hash_set.h"
#include "base/log.h"
#include "ingest/backpressure.h"
#include "ingest/cache.h"
#include "ingest/ingest.h"
#include "ingest/field_names.h"
#include "retention/retention.h"
#include "marks/recent.h"

enum {
	INGEST_SPARE_WRITES = 8,
	INGEST_ARENA_MAX_BYTES = 2 << 20,
	RESOLVING_OPEN_BYTES =
		4 << 20, /* a round that has grown so much is opened within a piece */
	/* A round that has grown so much while another one is opened pauses its request: all of it
	 * is applied in one turn of the loop, some 60 ms of work. */
	RESOLVING_CROWDED_BYTES = 8 << 20,
	RESOLVING_MAX_BYTES = 64 << 20,
	RESOLVING_FIXED_BYTES = 4096,
	/* Rounds of all requests that are being opened at once: each takes the catalog and the
	 * store a few MB that are not the request's. */
	RESOLVINGS_OPENING_MAX = 16,
	/* In the place of a level: late, and older than all roll-ups of its series are kept. */
	LEVEL_UNSEEN = RETENTION_LEVELS_MAX,
};

struct request;
struct resolving;

/* A store_write and what hangs on it; its write->owner. */
struct flight {
	struct request *request;
	struct store_write *write;
	struct resolving *resolvings; /* whose names it carries */
	size_t bytes;                 /* while submitted */
	size_t late;                  /* samples of data_late */
	bool marks;                   /* it carries marks of samples */
	/* Some of its samples rely on marks in earlier writes of the request: it waits until these
	 * are over, since an earlier write may fail and this one not. */
	bool leans;
	/* What has to be marked elsewhere before the write is handed to the store (marks.h); then
	 * it waits for its turn behind the request's earlier ones. */
	struct flight *next;
	struct marks_marking *marking;
	struct mark_touch *touches;
	bool marked;
	int mark_err;
	int64_t judged_ms; /* when the first of its points was found to need no mark, or any */
};

struct line_scratch;

/* A retention of raw samples: raw_retention.h. */
struct raw_level {
	int64_t retention_ms;
	enum retention_class retention;
};

struct ingest {
	struct ingest_options options;
	struct raw_level levels[RETENTION_LEVELS_MAX];
	size_t level_count;
	uint8_t longest; /* of these, which keeps samples the longest */
	struct retention_memo memo;
	enum retention_class late_retention;
	uint64_t seed; /* of keys */
	uint64_t generation;
	uint64_t losses; /* of marks, when touches were forgotten last */
	struct cache *cache;
	struct field_sets *field_sets;
	struct recent_touches touches;
	struct line_scratch *line;  /* line.c's, made at first use */
	struct hash_set told_texts; /* metrics whose texts the log has named */
	struct log_rate text_lines;
	struct request *requests; /* all that live */
	struct backpressure backpressure;
	size_t opening; /* rounds */
	struct store_write *spare[INGEST_SPARE_WRITES];
	size_t spare_count;
};

struct request {
	struct ingest_request r; /* first: what the door sees */
	struct request *next, **link;
	struct backpressure_sender sender;
	bool ended, abandoned, in_task;
	bool waits_to_open; /* `gathering` does, until the round of another request is open */
	int64_t judged_ms;  /* when what is appended now was found to need no mark, or any */
	int64_t age_ms;     /* by which ages are judged (clock_age_ms), beside r.now_ms */
	int64_t oldest_ms, newest_ms; /* accepted times, of the level that keeps longest */
	int64_t sure_ms;              /* from here on, of all of them */
	/* What is older may be late, and its series have rules of their own: it is taken as if they
	 * were not known. */
	int64_t closely_ms;
	int64_t unseen_ms; /* how long roll-ups of what is of LEVEL_UNSEEN are kept */
	int64_t level_oldest_ms[RETENTION_LEVELS_MAX + 1];
	int64_t level_open_ms[RETENTION_LEVELS_MAX]; /* what is older goes to data_late */
	struct flight *flight;                       /* being filled */
	struct flight *handing, **handing_last;      /* submitted, not handed to the store yet */
	size_t marks_under_way;                      /* flights with marks that the store has */
	bool leans; /* flights that are made now have samples that earlier ones mark */
	struct resolving *gathering, *opening; /* at most one of each */
	size_t flights;                        /* submitted, not over */
	size_t flight_bytes;                   /* of these */
	struct task task;
};

static inline struct request *request_of(struct ingest_request *r)
{
	return (struct request *)r;
}

/* ---- ingest.c -------------------------------------------------------------------------------- */

/* The first error ends it: what is not submitted is dropped. */
void request_fail(struct request *q, int err, const char *sentence);
/* Appends at once; `count` values of `handles`, none of them NONE, no handle 0, all of one level.
 */
void request_append(struct request *q, uint8_t level, int64_t ts_ms, const uint64_t *handles,
		    const struct value *values, size_t count);
/* The flight, made if there is none. */
struct flight *request_flight(struct request *q);
void request_submit(struct request *q);
void request_account(struct request *q);
/* After anything ended: goes on with what waits. The request may be gone afterwards. */
void request_progress(struct request *q);
/* Whether the time is in the accepted window; refuses it if not. */
bool request_time(struct request *q, int64_t ts_ms, struct ingest_place place, struct slice source);
/* Refuses a time that the level does not take. */
void request_refuse_time(struct request *q, uint8_t level, int64_t ts_ms, struct ingest_place place,
			 struct slice source);

/* ---- resolving.c ----------------------------------------------------------------------------- */

/* Values whose series are not known. Tags are sorted and checked, metrics checked. */
struct unknown {
	struct hash128 key;         /* of the cache entry to make */
	struct field_names *fields; /* then `metrics` is its list; else metrics are copied */
	bool no_cache;
	struct slice tenant;
	struct tags tags;
	const struct slice *metrics;
	size_t metric_count;
	const uint16_t *positions; /* values[i] is of metrics[positions[i]]; NULL: of metrics[i] */
	const struct value *values;
	size_t count;
	int64_t ts_ms;
	struct ingest_place place;
	uint32_t time_column; /* of the time in place's line; 0: place says where it is */
	bool one_by_one;
	struct slice source;
};

void resolving_add_unknown(struct request *q, const struct unknown *u);
/* The same of those whose level takes them. */
void resolving_put(struct request *q, const struct unknown *u);
/* Likewise, of values whose series gather already: then tenant and tags need not be there. False:
 * they do not, or it is not sure that the level takes them. */
bool resolving_put_again(struct request *q, const struct unknown *u) MUST_CHECK;
void resolving_add_known(struct request *q, uint8_t level, int64_t ts_ms, const uint64_t *handles,
			 const struct value *values, size_t count);
/* Opens what gathers, if anything does and nothing else is being opened; or has it wait for its
 * turn. What the catalog need not be asked about goes into the flight at once. */
void resolving_start(struct request *q);
/* The same, but for what only waits to be marked: that waits for more, so that a request marks a
 * series but once. */
void resolving_piece_end(struct request *q);
/* The same, of just that. */
void resolving_settle(struct request *q);
/* A round is being opened, or waits to be. */
static inline bool resolving_pending(const struct request *q)
{
	return q->opening || q->waits_to_open;
}
/* Bytes held by what gathers or is being opened. */
size_t resolving_bytes(const struct request *q);
void resolving_drop_gathering(struct request *q);
/* The write that carried its names is over. */
void resolving_finish_all(struct resolving *resolvings, int err);
/* A round is being opened or waits for that, and what gathers is half full: the request waits for
 * the first. */
bool resolving_crowded(const struct request *q);

/* Known values of one level that takes them, at once or behind what waits. */
static inline void request_add(struct request *q, uint8_t level, int64_t ts_ms,
			       const uint64_t *handles, const struct value *values, size_t count)
{
	if (UNLIKELY(q->gathering || q->opening))
		resolving_add_known(q, level, ts_ms, handles, values, count);
	else
		request_append(q, level, ts_ms, handles, values, count);
}

/* ---- marks.c --------------------------------------------------------------------------------- */

bool ingest_marks_touched(struct request *q, const struct cache_entry *entry, int64_t ts_ms);

/* Whether samples of the entry's series may be written without marking them, or a look at their
 * rules. */
static inline bool request_touched(struct request *q, const struct cache_entry *entry,
				   int64_t ts_ms)
{
	struct ingest *ingest = q->r.ingest;
	return !ingest->options.partitions ||
	       (ts_ms >= q->closely_ms &&
		(recent_touches_has_again(&ingest->touches, entry->slot, ts_ms, q->r.now_ms) ||
		 ingest_marks_touched(q, entry, ts_ms)));
}

/* ---- line.c ---------------------------------------------------------------------------------- */

void line_scratch_free(struct line_scratch *scratch);

#endif
