/* A request that a job works on (loop/job.h), so that it may wait; it is answered when the job is
 * over, if its client is still there then.
 *
 * A call is embedded in its owner, which is freed by `over`. Everything but `run` is on the loop's
 * thread, and nothing of the request may be read by `run`: what that needs is copied. */
#ifndef API_JOB_CALL_H
#define API_JOB_CALL_H

#include "api/routes.h"
#include "loop/job.h"

struct job_call {
	struct http_request *request; /* NULL: the client has gone */
	struct api *api;
	struct job *job;
	/* On the job's thread. */
	void (*run)(struct job_call *call);
	/* The job is over: answers the request, if there is one, and frees the owner. */
	void (*over)(struct job_call *call);
	bool carried_through; /* `run` goes on when the client has gone; else it is stopped */
	struct job_call *next;
};

/* Starts `run` on a thread called `name`, for this request, whose handler has job_call_abort. Where
 * too many jobs run, the request is answered by 503, and `over` is called without a request. */
void job_call_start(struct job_call *call, const char *name, struct http_request *request);
void job_call_abort(struct http_request *request, int err);

/* One with this function is at work. */
bool job_call_runs(const struct api *api, void (*run)(struct job_call *call));
/* All of them end soon; api->job_calls is NULL then. */
void job_calls_stop(const struct api *api);

#endif
