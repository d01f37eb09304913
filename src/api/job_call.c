#include "api/job_call.h"

#include "loop/loop.h"

static void job_call_done(void *owner)
{
	struct job_call *call = owner;
	struct job_call **at = &call->api->job_calls;
	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	job_free(call->job);
	call->over(call);
}

static void job_call_run(UNUSED struct job *job, void *owner)
{
	struct job_call *call = owner;
	call->run(call);
}

void job_call_start(struct job_call *call, const char *name, struct http_request *request)
{
	struct api *api = api_of(request);
	call->request = request;
	call->api = api;
	if (job_start(name, job_call_run, job_call_done, call, loop_executor(api->loop),
		      &call->job)) {
		http_reply_error(request, 503, "%d jobs are at work, and more may not be",
				 JOBS_MAX);
		call->request = NULL;
		call->over(call);
		return;
	}
	request->owner = call;
	call->next = api->job_calls;
	api->job_calls = call;
}

void job_call_abort(struct http_request *request, UNUSED int err)
{
	struct job_call *call = request->owner;
	if (!call)
		return;
	call->request = NULL;
	if (!call->carried_through)
		job_stop(call->job);
}

bool job_call_runs(const struct api *api, void (*run)(struct job_call *call))
{
	const struct job_call *call = api->job_calls;
	while (call && call->run != run)
		call = call->next;
	return call != NULL;
}

void job_calls_stop(const struct api *api)
{
	for (const struct job_call *call = api->job_calls; call; call = call->next)
		job_stop(call->job);
}
