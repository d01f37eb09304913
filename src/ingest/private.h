/* What the files of ingest/ share. A request is a struct ingest_request for its door, and a struct
 * request here.
 *
 * A value takes one of two ways:
 *  - A value whose series is known goes straight into the pending write that is being filled
 *    (request.filling).
 *  - A value whose series is not known goes into the round that gathers (struct resolving). While a
 *    round gathers or is being opened, values of known series go there too, so that the order
 * stays.
 *
 * A round is opened: the catalog is asked for the series of its groups. Then its points are
 * appended in their order. The pending write with the first of them also carries the names of the
 * round's metrics. It holds the round until the write is over, since the catalog has to be told
 * whether the names were written. */
#ifndef INGEST_PRIVATE_H
#define INGEST_PRIVATE_H

#include "base/hash_set.h"
#include "base/log.h"
#include "ingest/backpressure.h"
#include "ingest/cache.h"
#include "ingest/field_names.h"
#include "ingest/ingest.h"
#include "marks/recent.h"
#include "retention/retention.h"

enum {
	INGEST_SPARE_WRITES = 8,
	INGEST_ARENA_MAX_BYTES = 2 << 20,
	/* A round that has grown so much is opened within a piece. While another round is being
	 * opened it pauses its request: a round is appended in one turn of the loop, which took
	 * 60 ms where rounds had 8 MB. */
	RESOLVING_OPEN_BYTES = 4 << 20,
	RESOLVING_MAX_BYTES = 64 << 20,
	RESOLVING_FIXED_BYTES = 4096,
	/* Rounds of all requests that are being opened at once. Each needs a few MB of the catalog
	 * and the store, which are not counted as the request's. */
	RESOLVINGS_OPENING_MAX = 16,
	/* Instead of a level: the sample is late, and older than all roll-ups of its series. */
	LEVEL_UNSEEN = RETENTION_LEVELS_MAX,
};

struct request;
struct resolving;

/* A write to the store, from its first sample until it is over. It is the owner of its `write`. */
struct pending_write {
	struct request *request;
	struct store_write *write;
	struct resolving *resolvings; /* the write carries the names of their metrics */
	size_t bytes;                 /* counted while it is submitted */
	size_t late;                  /* samples of data_late */
	bool marks;                   /* the write carries marks of samples */
	/* Some of its samples rely on marks in earlier writes of the request. It waits until these
	 * writes are over: one of them may fail. */
	bool leans;
	/* Marks that are not kept in the store are made before the write goes to the store
	 * (marks.h). Then it waits until the request's earlier writes have gone there. */
	struct pending_write *next;
	struct mark_touch *touches;
	bool marked;
	int mark_err;
	int64_t judged_ms; /* when the marks for the first of its points were decided on */
};

struct line_scratch;

struct ingest {
	struct ingest_options options;
	enum retention_class level_classes[RETENTION_LEVELS_MAX];
	size_t level_count;
	uint8_t longest; /* index of the level that keeps samples the longest */
	struct retention_memo memo;
	enum retention_class late_retention;
	uint64_t seed; /* of keys */
	uint64_t generation;
	uint64_t losses; /* marks_losses() when touches were forgotten last */
	struct cache *cache;
	struct field_sets *field_sets;
	struct recent_touches touches;
	struct line_scratch *line;  /* of line.c, made at its first use */
	struct hash_set told_texts; /* metrics: the log has said that they had texts */
	struct log_rate text_lines;
	struct request *requests; /* all of them */
	struct backpressure backpressure;
	size_t opening; /* rounds */
	struct store_write *spare[INGEST_SPARE_WRITES];
	size_t spare_count;
};

struct request {
	struct ingest_request r; /* the first member: the door has a pointer to it */
	struct request *next, **link;
	struct backpressure_sender sender;
	bool ended, abandoned, in_task;
	bool waits_to_open; /* `gathering` waits until the round of another request is open */
	int64_t judged_ms;  /* when the marks for what is appended now were decided on */
	int64_t age_ms;     /* now, for the age of samples (clock_age_ms); not r.now_ms */
	int64_t oldest_ms, newest_ms; /* times that the level that keeps longest accepts */
	int64_t sure_ms;              /* all levels accept times from here on */
	/* An older sample may be late, and its series may have rules of their own: the sample is
	 * treated as if its series were not known. */
	int64_t closely_ms;
	int64_t unseen_ms; /* how long the roll-ups of samples at LEVEL_UNSEEN are kept */
	int64_t level_oldest_ms[RETENTION_LEVELS_MAX + 1];
	int64_t level_open_ms[RETENTION_LEVELS_MAX];   /* an older sample goes to data_late */
	struct pending_write *filling;                 /* being filled */
	struct pending_write *waiting, **waiting_last; /* submitted, not handed to the store yet */
	size_t marks_under_way; /* pending writes with marks that the store has */
	bool leans; /* pending writes that begin now have samples that earlier ones mark */
	struct resolving *gathering, *opening; /* at most one of each */
	size_t pending_count;                  /* submitted, not over */
	size_t pending_bytes;                  /* of these */
	struct task task;
};

static inline struct request *request_of(struct ingest_request *r)
{
	return (struct request *)r;
}

/* ---- ingest.c -------------------------------------------------------------------------------- */

/* The first error ends the request: samples that are not submitted are dropped. */
void request_fail(struct request *q, int err, const char *sentence);
/* Where samples of a level go. A sample lies in one of two tables, never in both. */
struct store_target request_target(const struct request *q, uint8_t level, int64_t ts_ms);
/* Appends `count` values of `handles` at once. No value is NONE, no handle is 0, all are of one
 * target. */
void request_append_to(struct request *q, const struct store_target *target, int64_t ts_ms,
		       const uint64_t *handles, const struct value *values, size_t count);
/* The same, of one level. */
static inline void request_append(struct request *q, uint8_t level, int64_t ts_ms,
				  const uint64_t *handles, const struct value *values, size_t count)
{
	const struct store_target target = request_target(q, level, ts_ms);
	request_append_to(q, &target, ts_ms, handles, values, count);
}
/* The pending write that is being filled; made if there is none. */
struct pending_write *request_pending(struct request *q);
void request_submit(struct request *q);
void request_account(struct request *q);
/* Something of the request has ended: starts whatever waited for it. The request may be freed. */
void request_progress(struct request *q);
/* Whether the time is within the accepted times; refuses it if not. */
bool request_time(struct request *q, int64_t ts_ms, struct ingest_place place, struct slice source);
/* Refuses a time that the level does not accept. */
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
	uint32_t time_column; /* of the time in the line of `place`; 0: the time is at `place` */
	bool one_by_one;
	struct slice source;
};

void resolving_add_unknown(struct request *q, const struct unknown *u);
/* The same, of the values that their level accepts. */
void resolving_put(struct request *q, const struct unknown *u);
/* The same, of values whose series are in the round already: u->tenant and u->tags may be empty.
 * False: they are not in the round, or it is not sure that the level accepts the time. */
bool resolving_put_again(struct request *q, const struct unknown *u) MUST_CHECK;
void resolving_add_known(struct request *q, uint8_t level, int64_t ts_ms, const uint64_t *handles,
			 const struct value *values, size_t count);
/* Opens the round that gathers, unless another round is being opened: then it waits for its turn.
 * A round that needs nothing of the catalog goes into the pending write at once. */
void resolving_start(struct request *q);
/* The same, except for a round that needs nothing but marks: it gathers further, so that a request
 * marks a series once only. */
void resolving_piece_end(struct request *q);
/* The same, for such a round only. */
void resolving_settle(struct request *q);
/* A round is being opened, or waits to be. */
static inline bool resolving_pending(const struct request *q)
{
	return q->opening || q->waits_to_open;
}
/* Before and after the rules of retention change: samples of known series that wait go where they
 * were to go; those of others go where the levels of now say. */
void resolving_keep_targets(struct request *q);
void resolving_match_again(struct request *q);
/* Memory of the rounds that gather, are being opened, or hang on the write being filled. */
size_t resolving_bytes(const struct request *q);
void resolving_drop_gathering(struct request *q);
/* The write that carried the names of these rounds is over. */
void resolving_finish_all(struct resolving *resolvings, int err);
/* A round is being opened or waits for that, and the round that gathers is crowded: the request
 * pauses until the first is open. */
bool resolving_crowded(const struct request *q);

/* Adds values of known series, of one level that accepts them; at once, or after all that waits. */
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

/* Whether a sample of the entry's series may be written without a mark, and without reading the
 * series' rules. */
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
