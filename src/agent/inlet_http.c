/* Answers of servers, asked for again and again: the body of each is a record, without the newline
 * at its end. An empty one is none. */
#include "agent/inlet.h"
#include "agent/pull.h"
#include "base/stats.h"

struct http_inlet {
	struct inlet *inlet;
	struct job *job;
	struct spool_stream *stream;
	struct pull *pull;
};

static void http_inlet_once(void *owner)
{
	struct http_inlet *h = owner;
	struct errbuf e = {""};
	struct slice body;
	int err = pull_get(h->pull, &body, &e);
	if (job_is_stopping(h->job))
		return;
	stat_add(err ? STAT_pull_failed : STAT_pull_taken, 1);
	inlet_set_problem(h->inlet, err ? "%s" : NULL, e.text);
	if (err)
		return;
	body.len -= body.len && body.data[body.len - 1] == '\n';
	body.len -= body.len && body.data[body.len - 1] == '\r';
	if (body.len)
		inlet_keep(h->inlet, h->job, h->stream, &body, 1);
}

static void http_inlet_run(struct inlet *inlet, struct job *job)
{
	const struct adaptor *adaptor = inlet_adaptor(inlet);
	struct http_inlet h = {.inlet = inlet, .job = job};
	if (inlet_own_stream(inlet, &h.stream))
		return;
	h.pull = pull_new(adaptor->path, adaptor->timeout_ms, &job_queue(job)->stopped);
	inlet_repeat(inlet, job, http_inlet_once, &h);
	pull_free(h.pull);
}

const struct inlet_kind inlet_http = {.run = http_inlet_run};
