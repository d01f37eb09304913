/* What the doors of fault reports share: a body is read by a worker, what it gives is submitted on
 * the loop, and the door answers. Private to api/fault/. */
#ifndef API_FAULT_TAKE_H
#define API_FAULT_TAKE_H

#include "api/call.h"
#include "fault/fault.h"
#include "ingest/minute_sums.h"
#include "ingest/oops.h"
#include "loop/pool.h"

struct take_call;

struct take_door {
	/* On a worker: from call->call.body to call->batch. ERR_INVALID or ERR_LIMIT with a
	 * sentence in call->error: the body as a whole. */
	int (*read)(struct take_call *call);
	void (*answer)(struct take_call *call);
};

struct take_call {
	struct api_call call;
	const struct take_door *door;
	struct slice tenant; /* in the call's arena */
	/* The report's, given beside the body; where it has no data there is none. In the call's
	 * arena, or, of one that the door has read, in the batch's. */
	struct slice id;
	struct fault_report_options options;
	struct task task; /* on the worker, then back */
	struct oops_batch batch;
	struct minute_counts counts; /* beside reports; in the batch's arena */
	int err;                     /* of the body as a whole */
	struct errbuf error;
	struct fault_submission submission;
};

struct take_order {
	const struct take_door *door;
	struct slice tenant, id;
};

/* In the handler's `end`. */
void take_begin(struct http_request *request, const struct take_order *order);

/* 201 taken, 200 repeated; else why not. */
int take_status(const struct take_call *call, const struct oops_report *report);
/* Why a report was not taken. */
void take_sentence(const struct take_call *call, const struct oops_report *report, int status,
		   struct errbuf *e);

#endif
