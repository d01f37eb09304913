/* Inlets: adaptors that read no files but take in what cannot be asked again, and put it into the
 * spool (spool.h), from which the agent delivers it.
 *
 * An inlet has one of two forms. One that waits is a function that loops on a thread of its own
 * (a job). One with sockets lives on the loop that all of them share. Which one, its kind says
 * (struct inlet_kind); inlets.c has the list of kinds.
 *
 * What an inlet says of itself, its state and what is wrong with it, the agent reports
 * (`granary agent list`).
 *
 * Threads: inlets_*() and inlets_said() are for one thread, the agent's. The others are for the
 * thread of the inlet. */
#ifndef AGENT_INLET_H
#define AGENT_INLET_H

#include "agent/adaptor.h"
#include "agent/spool.h"
#include "host/host_metrics.h"
#include "loop/job.h"
#include "loop/loop.h"

enum {
	INLET_RECORD_MAX_BYTES = 64 << 10, /* of a connection; a longer one is cut */
	INLET_ROOM_MS = 200,               /* who waits for room looks again after so long */
	INLET_STREAM_NAME_MAX_BYTES = 300,
	INLET_PROBLEM_MAX_BYTES = 512,
};

struct inlet;
struct inlets;

struct inlet_kind {
	/* Until job_is_stopping(). Where no thread is to be had, that is tried again, too. NULL: it
	 * lives on the loop. */
	void (*run)(struct inlet *inlet, struct job *job);
	/* On the loop's thread. With a sentence, which is reported; it is tried again from time to
	 * time. */
	int (*open)(struct inlet *inlet, struct errbuf *e);
	/* Afterwards nothing of it is on the loop but what goes by itself; inlet_closed() follows,
	 * also at once. */
	void (*close)(struct inlet *inlet);
	size_t bytes; /* of its state, which is zero at first: inlet_state() */
	bool goes_on; /* where the one before it stopped; so that one is waited for */
};

extern const struct inlet_kind inlet_exec, inlet_net, inlet_http, inlet_system, inlet_heartbeat,
	inlet_journal;

/* ---- For inlets ----------------------------------------------------------------------------- */

const struct adaptor *inlet_adaptor(const struct inlet *inlet);
void *inlet_state(struct inlet *inlet);
struct spool *inlet_spool(struct inlet *inlet);
struct clock *inlet_clock(struct inlet *inlet);
struct loop *inlet_loop(struct inlet *inlet);
/* The stream of an inlet that has one alone (inlet_stream_name). An error is said in its report. */
int inlet_own_stream(struct inlet *inlet, struct spool_stream **stream) MUST_CHECK;
const struct host_rules *inlet_host_rules(const struct inlet *inlet);
/* For one on a thread of its own: calls `once` every so often as its adaptor says, until the job is
 * to end. What it would have done while it waited is not made up for. */
void inlet_repeat(struct inlet *inlet, struct job *job, void (*once)(void *owner), void *owner);

/* Adds records, and counts them. An error that is said in the report until all is well again. */
int inlet_append(struct inlet *inlet, struct spool_stream *stream, const struct slice *records,
		 size_t count) MUST_CHECK;
/* The same with a note (spool.h). */
int inlet_append_noted(struct inlet *inlet, struct spool_stream *stream,
		       const struct slice *records, size_t count, struct slice note) MUST_CHECK;
/* For one on a thread of its own: waits for room. ERR_CANCELLED: it is to end, and the
 * records are counted as lost. */
int inlet_append_patiently(struct inlet *inlet, struct job *job, struct spool_stream *stream,
			   const struct slice *records, size_t count) MUST_CHECK;
/* The same where nothing is to be done for records that are lost. */
void inlet_keep(struct inlet *inlet, struct job *job, struct spool_stream *stream,
		const struct slice *records, size_t count);
/* What is wrong, or NULL; it is said in the log, too. */
void inlet_set_problem(struct inlet *inlet, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Everything of it is gone. On the loop's thread. */
void inlet_closed(struct inlet *inlet);

/* Whether this machine has a journal (inlet_journal.c). */
bool inlet_journal_is_there(void);

/* ---- For the agent --------------------------------------------------------------------------- */

struct inlets_options {
	struct spool *spool;
	struct clock *clock;
	struct host_rules host; /* what is left out of this machine's metrics; texts outlive it */
};

struct inlets *inlets_new(const struct inlets_options *options);
/* From now on there are the inlets of these adaptors; those that are the same stay as they are. */
void inlets_configure(struct inlets *inlets, const struct adaptors *adaptors);
/* Ends all of them. NULL is allowed. */
void inlets_free(struct inlets *inlets);

/* What an inlet says of itself. */
struct inlet_said {
	struct slice name, datatype, place; /* until the next inlets_configure() */
	enum adaptor_kind kind;
	const char *state; /* following, waiting (for room), stopped (until it can be opened) */
	char problem[INLET_PROBLEM_MAX_BYTES]; /* empty: none */
	int64_t last_ms;                       /* when it has had its last record; 0: never */
};
/* False: there are no more. */
bool inlets_said(struct inlets *inlets, size_t place, struct inlet_said *said);

/* The name of the stream of an inlet that has one alone: `exec:NAME`, `udp:PORT`,
 * `system:TENANT`. */
struct slice inlet_stream_name(const struct adaptor *adaptor,
			       char name[INLET_STREAM_NAME_MAX_BYTES]);
/* The tenant of a stream that has one other than the agent's, which its name says: `system:TENANT`.
 * len 0: the agent's. */
struct slice inlet_stream_tenant(struct slice name);

#endif
