/* Work of which one may be done at a time: in this process and, where others share the store, in
 * all. There it is a conditional cell (`leases`, kind "job", name the job's, value the holder),
 * which lives with the holder's session (session.h). Whoever stood still for longer than that, and
 * goes on, may be at it beside his successor: the work is such that doing it twice does no harm,
 * and a deletion has the stamp of the wish.
 *
 * Threads: any; taking and giving wait for the store where it is shared. */
#ifndef LEASE_JOB_CLAIM_H
#define LEASE_JOB_CLAIM_H

#include "lease/session.h"

enum job_claim_kind {
	JOB_CLAIM_DELETION,
	JOB_CLAIM_REBUILD,
	JOB_CLAIM_APPLY,   /* of retention */
	JOB_CLAIM_RESTORE, /* of marks that were lost */
	JOB_CLAIM_COUNT,
};

struct job_claims;

/* The session is the caller's. */
struct job_claims *job_claims_new(struct lease_session *session);
void job_claims_free(struct job_claims *claims);

/* ERR_BUSY with a sentence that names who does such work; or the store's error with a sentence. */
int job_claims_take(struct job_claims *claims, struct task_queue *queue, enum job_claim_kind kind,
		    struct errbuf *e) MUST_CHECK;
/* Of one that was taken, also when the job is to end. If the store does not take it back, it is
 * free when the session has ended. */
void job_claims_give(struct job_claims *claims, enum job_claim_kind kind);

#endif
