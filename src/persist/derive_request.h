/* Private: what is asked of a worker besides what it does by itself: rates of a table up to its
 * newest raw data, and then, where from < to, a recomputation. */
#ifndef PERSIST_DERIVE_REQUEST_H
#define PERSIST_DERIVE_REQUEST_H

#include <stdatomic.h>

#include "base/exec.h"
#include "rate/recompute.h"

struct derive_request {
	const struct rate_table *table;
	int64_t newest_ms; /* raw data of the table that is in the store */
	int64_t from_ms, to_ms;
	bool only_report;
	/* Nothing is done: ERR_EXISTS if the worker knows the device and OIDSet. */
	bool only_probe;
	_Atomic bool cancelled;
	struct executor *executor; /* where `done` is posted */
	struct task done;

	/* Results. */
	int err;
	struct errbuf error;
	struct rate_recompute_result result;

	/* The worker's. */
	struct task begin;
	void *worker;
	struct derive_request *next;
};

/* On the worker's thread: it is over. */
static inline void derive_request_end(struct derive_request *request, int err, const char *sentence)
{
	request->err = errbuf_set(&request->error, err, "%s",
				  err && !*sentence ? err_text(err) : sentence);
	request->executor->post(request->executor, &request->done);
}

#endif
