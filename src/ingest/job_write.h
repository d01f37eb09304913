/* Writing samples from a job: they are given to ingest on its thread, and the job waits until they
 * are durable. */
#ifndef INGEST_JOB_WRITE_H
#define INGEST_JOB_WRITE_H

#include "ingest/ingest.h"
#include "loop/job.h"

struct job_write {
	struct ingest *ingest;
	struct executor *executor; /* of ingest */
	struct job *job;
	/* Each has the place {its index}. In number they are few: none of them waits for room. */
	struct ingest_points *points;
	size_t count;
	int64_t stamp_us; /* as of struct ingest_door */

	/* Result: those that were refused for good, the first INGEST_ERRORS_MAX; and why the first
	 * of them was. */
	size_t refused[INGEST_ERRORS_MAX], refused_count;
	uint64_t refused_values; /* of all */
	struct errbuf why;

	/* private */
	struct task over;
	struct task_answer answer;
	struct errbuf error;
};

/* What was accepted is durable. An error of the write has its sentence; then all of it is to be
 * written again. */
int job_write_wait(struct job_write *write, struct errbuf *e) MUST_CHECK;

#endif
