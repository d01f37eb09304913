/* Push doors: what /api/put, line protocol and the host metrics share on the way into data_raw.
 *
 * A door parses; this does the rest. There is one struct ingest per server and one struct
 * ingest_request per HTTP request (or round of host metrics). Order of events in a request:
 *
 *     r = ingest_request_new(ingest, &door)
 *     for each piece of the body:
 *             ingest_piece_begin(r)             the request's "now" is read
 *             ingest_points(r, &points) ...     known series are appended at once, others wait
 *             ingest_refuse(r, ...) ...         what the door itself cannot take
 *             ingest_piece_end(r)               the unknown ones go to the catalog, in one call
 *             if (ingest_request_must_pause(r)) stop reading until `resume` is called
 *     ingest_request_end(r)
 *     ... `done` runs: everything that was accepted is durable, or r->err says why not
 *     ingest_request_free(r)
 *
 * or, when the client goes away before `done`, ingest_request_abandon(r) and nothing more.
 *
 * Known means: the 128-bit hash of tenant, tags and metrics (or of the raw bytes that stand for
 * them) is in the cache and gives the handles. An unknown series is found or registered by the
 * catalog, a round of groups at a time; one round is in flight per request, the next one gathers
 * meanwhile. Points keep their order within a request, also when some wait and others would not
 * have to: of two values of one sample the later wins. A point that waits is copied; nothing that a
 * door hands over needs to live longer than the call.
 *
 * Samples are gathered in a store_write of about write_bytes, submitted when it is full and at the
 * end. So a long body is written while it still arrives; what was accepted before an error stays.
 *
 * Bounds. The bytes of all requests that are waiting or being written are at most about
 * in_flight_max_bytes, those of one request about a quarter of that: above, requests are told to
 * pause and are resumed in the order in which they paused. One that has paused for wait_max_ms is
 * failed with ERR_BUSY instead, so that its client learns in time that it has to come again; from
 * half of that on, doors need not begin new ones (ingest_turns_away). A door that goes on
 * nevertheless gets ERR_BUSY at twice the bound. The cache is bounded in bytes, sentences in number
 * and length.
 *
 * Threads: everything here belongs to the thread of `executor` (the loop's), completions included.
 * `done` and `resume` are never called from within a call of the door. */
#ifndef INGEST_INGEST_H
#define INGEST_INGEST_H

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/hash.h"
#include "base/mem.h"
#include "catalog/catalog.h"
#include "marks/marks.h"
#include "model/series.h"
#include "model/value.h"
#include "store/store.h"

struct retention_rules;

enum {
	INGEST_POINTS_MAX = STORE_GROUP_MAX, /* metrics of one ingest_points */
	INGEST_ERRORS_MAX = 100,             /* sentences kept of one request */
	INGEST_SENTENCE_MAX_BYTES = 512,
	INGEST_SOURCE_MAX_BYTES =
		4096, /* of points.source, kept for a refusal; longer ones are cut */
};

/* ---- The server's part ---------------------------------------------------------------------- */

/* How long samples are kept. */
struct ingest_retention {
	const struct retention_rules *rules; /* older points are refused; NULL: for ever */
	/* A sample that comes when its slot is closed goes to data_late (retention/late.h), and is
	 * kept for so long, 0 for ever. Else it is refused. */
	bool late_keep;
	int64_t late_ms;
};

struct ingest_options {
	struct store *store;
	struct catalog *catalog;
	struct clock *clock;
	struct executor *executor;
	struct slice tenant_tag; /* copied; empty: no tag names a tenant. NULL data: "tenant" */
	struct ingest_retention retention;
	int64_t ahead_ms; /* how far after now points may lie; 0 = one day, negative = not */
	size_t in_flight_max_bytes; /* 0 = 128 MB */
	size_t write_bytes;         /* of one store_write; 0 = 1 MB */
	size_t cache_max_bytes;     /* 0 = 256 MB */
	int64_t wait_max_ms;        /* how long a request may pause; 0 = 5 s */
	/* Fields of line protocol that are texts are left out, not refused. */
	bool texts_left_out;
	/* Roll-ups: what is written is marked for them; 0 partitions: it is not. */
	uint32_t partitions;
	int64_t rollup_slot_ms, rollup_quiet_ms, rollup_skew_max_ms;
	struct marks *marks; /* the caller's */
	/* A sample that is older than all roll-ups of its series is refused all the same; the
	 * caller's. NULL: it is not known. */
	const struct granularities *granularities;
	uint64_t seed; /* of hashes; 0: the system's */
};

struct ingest;

struct ingest *ingest_new(const struct ingest_options *options);
/* From now on these rules hold; they and those of before stay with the caller until ingest is
 * freed. The caller sees to it that what is stored under those of before is remembered
 * (retention/lengthened.h). */
void ingest_set_retention(struct ingest *ingest, const struct ingest_retention *retention);
/* No request may be left, abandoned ones included: pump the executor until ingest_idle(). */
void ingest_free(struct ingest *ingest);
/* No request lives and nothing is in flight. */
bool ingest_idle(const struct ingest *ingest);

/* Fails what has waited for too long, and writes what is about to. To be called a few times a
 * second. */
void ingest_tick(struct ingest *ingest);
/* True when a request that began now would have to wait for long: the door answers 503 at once,
 * with the sentence, and begins none. Counted. */
bool ingest_turns_away(const struct ingest *ingest, const char **sentence);

/* The begin of the HTTP server's context (http_server_new), so that the doors find their
 * server. */
struct ingest_context {
	struct ingest *ingest;
};

/* ---- A request ------------------------------------------------------------------------------ */

/* Why something was refused; each is a counter, granary_ingest_refused_total{reason="..."}. */
enum ingest_reason {
	INGEST_SYNTAX,   /* could not be parsed */
	INGEST_TOO_LONG, /* a line, a name, a text over its maximum */
	INGEST_NAME,     /* a metric, tag or tenant that may not be stored */
	INGEST_TIME,     /* a time that is none */
	INGEST_TOO_OLD,
	INGEST_TOO_NEW,
	INGEST_NOT_FINITE,   /* NaN or infinite */
	INGEST_NOT_NUMBER,   /* a string, an object: a value that is no number */
	INGEST_OUT_OF_RANGE, /* an integer that its type does not hold */
	INGEST_LIMIT, /* the catalog's limits: series of a tenant, new series, tags, lengths */
	INGEST_STORE, /* the store could not resolve the series; the request has the error too */
	INGEST_REASONS
};

/* Where in the input: a point's index from 0 or a line's number from 1, as the door counts, and a
 * column from 1 (0: none). */
struct ingest_place {
	uint64_t index;
	uint32_t column;
};

struct ingest_error {
	struct ingest_place place;
	enum ingest_reason reason;
	const char *sentence; /* in r->arena, like the next */
	struct slice source;  /* points.source; may be empty */
};

struct ingest_request;

struct ingest_door {
	/* Everything accepted is durable, or r->err is set. The door answers and frees it. */
	void (*done)(struct ingest_request *r);
	/* The request may go on reading. May be NULL for doors that never ask must_pause. */
	void (*resume)(struct ingest_request *r);
	void *owner; /* the door's, see ingest_owner */
	bool keep_source;
	bool patient; /* may pause for ever: nobody waits for an answer */
	/* The stamp of its samples (struct store_write), taken before what they are made of was
	 * read; 0: they are made of nothing that is stored. */
	int64_t stamp_us;
};

/* The door may read this. */
struct ingest_request {
	struct ingest *ingest;
	struct ingest_door door;
	struct arena arena; /* small things of the door and the sentences; at most 2 MB */
	int64_t now_ms;     /* wall clock at ingest_piece_begin */

	/* 0, or the first error that is not about a single point: ERR_BUSY, ERR_RETRY and
	 * ERR_UNKNOWN (send it again), ERR_FULL and ERR_READ_ONLY (no room), ERR_DAMAGED... From
	 * then on the request takes nothing more: calls are no-ops, and `done` comes as ever. */
	int err;
	struct errbuf error;

	uint64_t accepted; /* values; durable at `done` if err is 0 */
	uint64_t refused;  /* points, fields or lines, each refusal counts one */
	struct ingest_error errors[INGEST_ERRORS_MAX]; /* the first ones, by place at `done` */
	size_t error_count;
};

struct ingest_request *ingest_request_new(struct ingest *ingest, const struct ingest_door *door);
/* After `done`, also from within it. */
void ingest_request_free(struct ingest_request *r);
/* Instead of waiting for `done`: neither callback comes any more. A write that was submitted is
 * written, the rest is dropped; the request frees itself. */
void ingest_request_abandon(struct ingest_request *r);

static inline void *ingest_owner(const struct ingest_request *r)
{
	return r->door.owner;
}

void ingest_piece_begin(struct ingest_request *r);
void ingest_piece_end(struct ingest_request *r);
/* True once it should read no more for now; `resume` will be called. To be asked after each piece,
 * and within a long one. */
bool ingest_request_must_pause(struct ingest_request *r);
/* The last call of the door; between pieces. `done` follows. */
void ingest_request_end(struct ingest_request *r);

/* One time of n metrics that share tenant and tags. */
struct ingest_points {
	struct slice tenant; /* see ingest_tenant */
	struct tag *tags;    /* in any order; may be reordered by the call */
	size_t tag_count;
	const struct slice *metrics; /* no two alike; unescaped, unchecked */
	const struct value *values;  /* as many; NaN, infinite and VALUE_NONE are left out */
	size_t count;                /* 1 to INGEST_POINTS_MAX */
	int64_t ts_ms;
	struct ingest_place place;
	/* If metrics and tags are slices of one line: its beginning, by which a name that is
	 * refused has a column of its own. NULL: place.column is told. */
	const char *line;
	/* Each metric is a point of its own, the i-th at place.index + i, and refused by itself;
	 * the door has seen to it that names are good and values finite. Else they are refused as
	 * one. */
	bool one_by_one;
	struct slice source; /* as it came, for the answer; only looked at with door.keep_source */
};

/* Checks time, values and names; refuses what is wrong (one refusal per value not finite, else one
 * for all of it, see one_by_one) and takes the rest. VALUE_NONE is skipped without a word: the door
 * has counted it. Never fails as a call: see r->refused and r->err. */
void ingest_points(struct ingest_request *r, const struct ingest_points *points);

/* Counts a refusal and keeps its sentence, if it is among the first. */
void ingest_refuse(struct ingest_request *r, struct ingest_place place, enum ingest_reason reason,
		   struct slice source, const char *fmt, ...) PRINTF_LIKE(5, 6);

/* Whose points these are: the header X-Tenant (NULL data: none sent), else the tag that the options
 * name, which is then taken out of the tags, else `default`. Beside a header the tag is an ordinary
 * one. ERR_INVALID: not a tenant's name, or (*tenant is one) the tag stands twice; refuse the
 * points with INGEST_NAME and e's sentence. */
int ingest_tenant(const struct ingest *ingest, struct slice header, struct tag *tags,
		  size_t *tag_count, struct slice *tenant, struct errbuf *e) MUST_CHECK;

/* The HTTP status at `done`: 204 nothing was wrong; 400 something was refused; 503 send it all
 * again after a while; 507 no room; 500 else. Samples may be sent twice: they are stored once.
 */
int ingest_status(const struct ingest_request *r);

/* The reason as it stands in counters and answers: "too_old". */
const char *ingest_reason_text(enum ingest_reason reason);

#endif
