/* The rate job: from the checkpoints of one table on, raw data becomes rows that are written for
 * good. Run by whoever owns the device, every few minutes.
 *
 * Each window of each run is one write: stage 1 the rows that closed in it, stage 2 the run's new
 * checkpoint. Whatever breaks off in between is repeated by the next job and writes the same. A run
 * that has grown too long is divided in the same stage. Rows of the checkpoint that the table does
 * not have are kept until they have been silent for RATE_JOB_SILENT_MS; OIDs that it does not have
 * are forgotten.
 *
 * A counter without a state begins with its first raw sample that is kept; so do all of a run whose
 * checkpoint is damaged, which is logged and counted. What is stored from raw data that has expired
 * since stays as it is. */
#ifndef RATE_JOB_H
#define RATE_JOB_H

#include "rate/rate.h"

#define RATE_JOB_SILENT_MS (INT64_C(400) * 86400000)

struct rate_job;
/* `err` 0: everything before until_ms that may be judged is in its rows. ERR_BUSY: the store takes
 * nothing now; what was done is kept. Else the store's error, or ERR_VERSION for a checkpoint of a
 * later program; rate_job_error says it in a sentence. */
typedef void rate_job_done(struct rate_job *job, int err);

struct rate_job_options {
	const struct rate_table *table; /* the caller's, until done */
	/* Raw data before it is complete: the newest time accepted of this device and OIDSet. What
	 * is newer than half a base interval before it waits for the next job. */
	int64_t until_ms;
	int64_t now_ms;                                     /* wall clock */
	enum retention_class retention[COUNTER_LEVELS_MAX]; /* of each level's rows */
	/* Somebody waits for its end: its writes do not lie until others share their commit. */
	bool awaited;
	rate_job_done *done;
	void *owner;
};

/* One job after the other; keeps its memory, some MB. */
struct rate_job *rate_job_new(struct store *store, struct executor *executor);
/* Not while it runs. */
void rate_job_free(struct rate_job *job);

/* ERR_INVALID, ERR_LIMIT: the table, see rate_job_error; ERR_BUSY as of the store. Then `done` is
 * not called. */
int rate_job_start(struct rate_job *job, const struct rate_job_options *options) MUST_CHECK;

/* Of the last job. */
void *rate_job_owner(const struct rate_job *job);
const char *rate_job_error(const struct rate_job *job);
struct rate_job_result {
	uint64_t samples; /* fed */
	uint64_t rows;    /* written */
	uint64_t wraps, restarts, lost, gaps;
};
struct rate_job_result rate_job_result(const struct rate_job *job);

#endif
