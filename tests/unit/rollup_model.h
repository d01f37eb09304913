/* Private to rollup_model: the processes, who sends and who deletes, and what its parts share.
 *
 * rollup_model.c says what it is and runs seeds, rollup_model_run.c one of them,
 * rollup_model_processes.c has those that take line protocol and those that roll up,
 * rollup_model_clients.c who sends and who deletes, rollup_model_right.c what is right when all is
 * at rest. */
#ifndef TESTS_UNIT_ROLLUP_MODEL_H
#define TESTS_UNIT_ROLLUP_MODEL_H

#include <stdio.h>

#include "catalog/catalog.h"
#include "ingest/ingest.h"
#include "ingest/line_feed.h"
#include "contract/far.h"
#include "rollup/delete.h"
#include "rollup/job.h"
#include "lease/lease.h"
#include "slow_store.h"
#include "stepped.h"
#include "task_step.h"

enum {
	SLOT_MS = 60000,
	QUIET_MS = 20000,
	LEASE_MS = 30000,
	SKEW_MS = 3000, /* of the clocks of any two processes of a far store, at most */
	EVERY_MS = 5000,
	TICK_MS = 1000,
	PARTITIONS = 4,
	TAKERS = 2,
	LANES_MAX = 8,
	WORKERS = 3,
	CLIENTS = 6,
	TEXT_MAX_BYTES = 4096,
	POINTS_MAX = 64, /* of one text */
	TENANTS = 2,
	MEASUREMENTS = 2,
	HOSTS = 2,
	FIELDS = 5,
	SHAPES = 6,
	SERIES = TENANTS * MEASUREMENTS * HOSTS * FIELDS,
	ACCEPTED_MAX = 100000,
	RESTS_MAX = 30000, /* rounds until all is at rest */
	LATE_SLOTS = 70,   /* so far back points lie where late ones are kept */
	/* So much longer than a slot is open its raw data is there: nothing waits for so long. */
	LAG_MS = 2400000,
};
#define BEGIN_MS INT64_C(1600000020000) /* a slot begins */

static const char *const granularity_items[] = {"10s", "30s", "1m"};
static const char *const field_names[FIELDS] = {"value", "x", "y", "z", "n_total"};

/* A process' own clock, so far from the model's. */
struct process_clock {
	struct clock clock;
	struct clock_virtual *of;
	int64_t off_us;
};

struct process {
	struct store *store; /* a far one, or: */
	struct slow_store slow;
	struct process_clock clock;
	struct task_queue queue;
	struct marks *marks;
	struct watermark *watermark; /* of a far store */
	char name[24];
	bool dead, frozen;
};

/* Takes line protocol. */
struct taker {
	struct process p;
	struct catalog *catalog;
	struct ingest *ingest;
	struct retention_rules retention;
	bool closed;
};

/* A thread of a worker, which the machine may leave alone for a while. */
struct thread {
	struct stepped stepped;
	bool stands;
	int64_t until_ms;
};

/* Rolls up, as rollup.c does: takes its leases and does a pass, with some lanes. */
struct worker {
	struct process p;
	struct model *model;
	struct lease_session *session;
	struct leases *leases;
	struct partitions held; /* it believes to hold them */
	int64_t until_ms;       /* until then, by its clock */
	struct rollup_site site;
	struct rollup_job *job;
	struct partitions own;
	bool share;
	struct thread work, lanes[LANES_MAX];
	size_t lane_count; /* that it waits for */
	bool works;
	int64_t next_ms;
};

/* Deletes samples of one series, or of all hosts. */
struct deleter {
	struct process p;
	struct model *model;
	struct stepped work;
	bool works; /* else it is to be begun (again) if there is something to do */
	bool wanted, whole, again;
	int64_t stamp_us, wish_ms; /* of the wish */
	int err;                   /* what it ended with */
	unsigned series;           /* of its hosts any, if there is no selector */
	char name[64];
	struct slice host;
	struct catalog_pattern host_pattern;
	struct catalog_selector selector;
	bool has_selector;
	int64_t from_ms, to_ms;
};

/* Of a far store: makes the marks of all raw data and late points again. */
struct rebuilder {
	struct process p;
	struct model *model;
	struct stepped work;
	bool works;
	bool wanted; /* it was begun, and is to be begun again if it broke off */
	int err;     /* what it ended with */
};

struct point {
	unsigned series;
	int64_t ts_ms;
	int64_t begun_ms; /* when it was sent (again) */
	bool deleted;     /* or maybe */
	/* Of a far store: the stamp of its sending is above this; of one that is lost, not above.
	 */
	int64_t stamp_us;
};

/* Who sends a text until it is taken. */
struct client {
	struct model *model;
	struct taker *taker;
	struct ingest_request *r; /* NULL: it is not sending */
	struct line_feed feed;
	bool waits, ended; /* to send it (again); all is sent */
	bool failed;       /* a sending of this text */
	size_t len, at, point_count;
	struct point points[POINTS_MAX];
	char text[TEXT_MAX_BYTES];
};

struct model {
	uint64_t seed;
	struct random random;
	struct clock_virtual clock;
	struct slow slow;
	struct far *far;       /* NULL: the slow store */
	struct store *landed;  /* what is stored */
	int64_t last_stamp_us; /* of processes that died */
	unsigned incarnations;
	struct task_queue own; /* of the test's own reads */
	struct granularities granularities;
	bool trace, loses;
	size_t slice_points; /* of a job's reads */
	size_t cache_max_bytes, step;
	uint64_t pace_ms; /* the most that passes at a time, mostly */
	uint64_t edges;   /* how many steps of a thousand go to an edge of time */
	uint64_t measurements, hosts, shapes, used_takers;
	unsigned texts;           /* percent of the fields */
	unsigned disturbs;        /* how often clocks are set and processes freeze, per mille */
	unsigned pauses;          /* how often threads stand, in percent */
	unsigned store, sluggish; /* how readily these move, in percent */
	size_t which;             /* of the processes is sluggish */
	size_t check_steps;       /* how often all comes to rest */
	struct {
		size_t first, count;
	} shape[SHAPES]; /* of the lines: fields one after the other */
	bool atomic, one_name;
	bool late;               /* points of closed slots are kept */
	int64_t open_ms, raw_ms; /* how long raw data is said to be kept: to takers, to workers */
	struct taker takers[TAKERS];
	struct worker workers[WORKERS];
	struct client clients[CLIENTS];
	int64_t dead_until_ms[PARTITIONS]; /* what workers that died had, until then */
	struct deleter deleter;
	unsigned deletes; /* how readily it begins, in percent */
	struct rebuilder rebuilder;
	unsigned rebuilds; /* how readily it begins, per mille */
	/* Of a far store, those that were done. */
	struct deleter *deletions;
	size_t deletion_count;
	struct point *accepted;
	size_t accepted_count;
	/* Of a far store: samples of which nobody knows whether they are there, or are there
	 * without anybody's knowledge. Rows of their buckets may know of them or not. */
	struct point *doubtful;
	size_t doubtful_count;
	/* Of a far store: samples of sendings that failed, and may land later. */
	struct point *lost;
	size_t lost_count;
	uint64_t late_seen; /* late samples that were looked at */
	uint64_t from_rows; /* samples that queries found in rows */
	char failure[512];
};

static inline uint64_t pick(struct model *m, uint64_t bound)
{
	return random_below(&m->random, bound);
}

static inline bool chance(struct model *m, unsigned percent)
{
	return pick(m, 100) < percent;
}

static inline int64_t now_ms(struct model *m)
{
	return clock_wall_ms(&m->clock.clock);
}

static inline void trace(struct model *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void trace(struct model *m, const char *fmt, ...)
{
	va_list args;
	if (!m->trace)
		return;
	printf("%6zu %8lld  ", m->step, (long long)(now_ms(m) - BEGIN_MS));
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static inline bool differ(struct model *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline bool differ(struct model *m, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!m->failure[0])
		vsnprintf(m->failure, sizeof(m->failure), fmt, args);
	va_end(args);
	return false;
}

/* Of a series; its host is a tag. */
static inline void metric_name(unsigned series, char to[64])
{
	unsigned field = series % FIELDS, measurement = series / FIELDS / HOSTS % MEASUREMENTS;
	snprintf(to, 64, "m%u%s%s", measurement, field ? "_" : "", field ? field_names[field] : "");
}

/* ---- rollup_model_run.c ---------------------------------------------------------------------- */

/* How the seeds are run. */
struct run {
	size_t steps;
	bool far;         /* on a far store, else on the slow one */
	bool deletes;     /* in every seed, and often */
	enum far_bug bug; /* that is planted there */
	bool trace;
	uint64_t late, from_rows, wrong; /* samples seen, and seeds */
};

/* Whether the seed goes well; if not, `how` says what is wrong. */
bool run_seed(struct run *run, uint64_t seed, char *how, size_t how_bytes);

/* ---- rollup_model_processes.c ---------------------------------------------------------------- */

void process_open(struct model *m, struct process *p, const char *kind, size_t i);
/* It is dead; what it still tries comes to nothing. */
void process_kill(struct model *m, struct process *p);
/* Neither it nor what it has handed over gets on. Of a far store. */
void process_freeze(struct process *p, bool frozen);
void process_release(struct process *p);
/* How far a process' clock is off, of a far store. */
int64_t clock_off_us(struct model *m);
void run_all(struct process *p);
void taker_open(struct model *m, struct taker *t, size_t i);
/* Sometimes the thread that comes to a fault point stands there for a while. */
void worker_pause(const char *name);
/* As a crash does: whatever is at work comes to nothing. */
void taker_kill(struct model *m, struct taker *t);
void worker_open(struct model *m, struct worker *w, size_t i);
void worker_tick(struct worker *w);
/* Goes on by a step. False: there is nothing that it could do. */
bool worker_step(struct worker *w);
void worker_kill(struct worker *w);

/* ---- rollup_model_clients.c ------------------------------------------------------------------ */

/* Sends a text, the same one again if it is to. */
void client_begin(struct client *c);
/* Nobody has said that the text was taken. `again`: it is sent again. */
void client_failed(struct client *c, bool again);
/* Sends some more of it, or all, and ends it. */
void client_step(struct client *c, bool all);
void deleter_open(struct model *m);
/* Does what is wanted. */
void deleter_begin(struct deleter *d);
void deleter_tick(struct deleter *d);
/* Goes on by a step. False: there is nothing that it could do. */
bool deleter_step(struct deleter *d);
/* What was wanted is wanted still. */
void deleter_kill(struct deleter *d);

void rebuilder_open(struct model *m);
void rebuilder_tick(struct rebuilder *r);
/* Goes on by a step. False: there is nothing that it could do. */
bool rebuilder_step(struct rebuilder *r);
/* What was begun is wanted still. */
void rebuilder_kill(struct rebuilder *r);

/* ---- rollup_model_right.c -------------------------------------------------------------------- */

size_t marked_rows(struct model *m);
/* Of a far store, at any moment: a query has one of the samples that were taken, from a row if the
 * watermark says so, else from raw data. */
bool check_query(struct model *m);
/* Its rows are what a plain loop makes of its samples, and what was taken is there. */
bool check_series(struct model *m, unsigned series);

#endif
