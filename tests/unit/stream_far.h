/* Private to stream_far_model: processes that take, seal, remove and demux streams on one far store
 * (contract/far.h), who sends, and what its parts share.
 *
 * stream_far_model.c says what it is, sends, and runs seeds; stream_far_processes.c has the
 * processes and the threads of each; stream_far_right.c what is right. */
#ifndef TESTS_UNIT_STREAM_FAR_H
#define TESTS_UNIT_STREAM_FAR_H

#include <stdarg.h>
#include <stdio.h>

#include "base/random.h"
#include "contract/far.h"
#include "ingest/demux_samples.h"
#include "stepped.h"
#include "stream/streams.h"

enum {
	STREAMS = 3,
	PROCESSES_MAX = 3,
	SENDERS = 4,
	CHUNKS = 3, /* of a submission, at most */
	CHUNK_MAX_BYTES = 300,
	LINES = 40, /* of a content */
	CONTENT_MAX_BYTES = LINES * 40,
	CONTENTS_MAX = 60,
	WORKS_MAX = 12, /* examiners, readers and deletions of a process */
	LEASE_MS = 30000,
	SKEW_MS = 3000,
	WRITE_MAX_MS = 8000,
	LATE_MS = 180000, /* so long after a batch ended a row of it may land (far.h) */
	EVERY_MS = 2000,
	SEAL_AFTER_MS = 20000,
	RETAIN_EVERY_MS = 10000,
	KEEP_MS = 1200000,
	TIME_MAX_MS = 70000000, /* of a world: less than a day, so that no stream is forgotten */
	DAY_MS = 86400000,
	QUIET_MS = 200000, /* so long nobody does anything before all is right */
};

struct world;
struct process;

/* A line of a content. */
struct far_line {
	size_t begin, end; /* with its newline */
	int64_t ms, bytes;
	char method;
};

/* What one incarnation of a stream has: the incarnation is its place in the list, and 1. */
struct content {
	unsigned stream;
	char text[CONTENT_MAX_BYTES];
	size_t len, line_count;
	struct far_line lines[LINES];
	int64_t sent_ms[CONTENT_MAX_BYTES];  /* when each byte was sent for the first time; 0: never
					      */
	int64_t acked_ms[CONTENT_MAX_BYTES]; /* when each byte was first acknowledged; 0: never */
	size_t sent;                         /* behind the last byte that was sent */
	struct offsets acked;
	uint64_t kept_from; /* what is below has gone, as it has landed */
	uint64_t deletable; /* what a deletion may have seen ends there */
	uint64_t deleted;   /* what is below was held when one began that was acknowledged */
	uint64_t gone;      /* somebody saw that what is below has gone */
};

struct process_clock {
	struct clock clock;
	struct clock_virtual *of;
	int64_t off_us;
};

/* A function that waits, of a process: an examiner, a reader, a deletion. */
struct work {
	struct stepped stepped;
	struct process *process;
	struct work *next;
	struct stream_submission *submission; /* of an examiner */
	bool slow;                            /* others get on meanwhile */
	size_t content, stream;
	/* What was so when it began. */
	struct offsets acked[CONTENTS_MAX];
	uint64_t gone[CONTENTS_MAX];
	size_t contents;
};

struct process {
	struct world *world;
	size_t place;
	char name[24];
	struct process_clock clock;
	struct store *store;
	struct task_queue queue;
	struct lease_session *session;
	struct keep_rules keep;
	struct streams *streams;
	struct catalog *catalog;
	struct ingest *ingest;
	struct demux_samples samples;
	struct job *jobs;
	struct work *works;
	size_t work_count;
	bool frozen, dead, closed, owns;
};

/* Who sends the bytes of a content. */
struct sender {
	struct world *world;
	bool waits; /* for an answer */
	bool all;   /* it sends all of its content until it is there */
	unsigned stream;
	size_t content;
	size_t next; /* offset of what was never sent */
	size_t count;
	struct stream_chunk chunks[CHUNKS];
	struct buf frames;
	struct stream_submission submission;
};

enum removing { REMOVES_NOTHING, REMOVES_DELETED, REMOVES_OLD };

struct world {
	struct random random;
	struct clock_virtual clock;
	int64_t begun_ms;
	struct far *far;
	struct far_faults faults;
	int64_t last_stamp_us;
	unsigned incarnations; /* of processes */
	bool trace, rests, calm;
	size_t step;
	enum removing removes;
	bool one_owns_none, removed_come_back;
	bool same_source; /* all streams are of one, so that most of them say their names */
	struct process processes[PROCESSES_MAX];
	size_t process_count;
	struct sender senders[SENDERS];
	struct content contents[CONTENTS_MAX];
	size_t content_count;
	uint64_t acks, reads, lines_seen, points;
	char failure[500];
};

static inline uint64_t pick(struct world *w, uint64_t bound)
{
	return random_below(&w->random, bound);
}

static inline bool chance(struct world *w, unsigned percent)
{
	return pick(w, 100) < percent;
}

static inline int64_t now_ms(struct world *w)
{
	return clock_wall_ms(&w->clock.clock);
}

static inline void trace(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void trace(struct world *w, const char *fmt, ...)
{
	va_list args;
	if (!w->trace)
		return;
	printf("%6zu %9.3f  ", w->step, (double)(now_ms(w) - w->begun_ms) / 1000);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static inline void differ(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void differ(struct world *w, const char *fmt, ...)
{
	va_list args;
	if (w->failure[0])
		return;
	va_start(args, fmt);
	vsnprintf(w->failure, sizeof(w->failure), fmt, args);
	va_end(args);
	trace(w, "WRONG: %s", w->failure);
}

struct stream_id id_of(const struct world *w, unsigned stream, uint64_t incarnation);
/* Whether the seed goes well; if not, `how` says what is wrong. */
bool run_seed(uint64_t seed, bool trace, char *how, size_t how_bytes);
/* What the seeds have seen. */
extern struct world_sums {
	uint64_t acks, reads, lines, points;
} world_sums;

/* ---- stream_far_processes.c ------------------------------------------------------------------ */

void process_open(struct world *w, struct process *p, size_t place);
/* As a crash does: whatever is at work comes to nothing. */
void process_close(struct process *p);
void process_freeze(struct process *p, bool frozen);
/* Goes on by a step of one of its threads. False: there is nothing that it could do. */
bool process_step(struct process *p);
/* Something is at work that waits for the store. */
bool process_is_at_work(const struct process *p);
/* NULL: there are too many already. */
struct work *process_begin(struct process *p, void (*run)(struct task_queue *queue, void *owner));

/* ---- stream_far_right.c ---------------------------------------------------------------------- */

/* Reads a content, or the lines of a stream; deletes a content. */
void work_read(struct task_queue *queue, void *owner);
void work_search(struct task_queue *queue, void *owner);
void work_delete(struct task_queue *queue, void *owner);
/* Notes in the work what is so now. */
void work_note(struct work *work);
/* After each step, where what is old goes: each byte that has gone was old. */
void check_gone_is_old(struct world *w);
/* When nobody does anything any more: what has landed is right. */
void check_landed(struct world *w);
/* When all was sent and nothing was removed: the samples are those of all lines. */
void check_samples(struct world *w);
/* When all is old: nothing is left. */
void check_gone(struct world *w);

#endif
