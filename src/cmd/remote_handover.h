/* Takes polls from the spool, in order per device, and hands them over to a server: POST
 * /api/polls.
 *
 *  - A message leaves the spool when the server has said 204, which it does when the poll is
 * durable there; before that it is sent again and again. Sending twice is harmless: what is there
 * already is known by its time and value.
 *  - What the server refuses (400, 413, 422) is found by sending less and less at a time, and set
 *    aside with the reason; the rest goes on.
 *  - Anything else, an answer of somebody else included, is a reason to wait: from
 *    HANDOVER_REST_MIN_MS, doubled up to HANDOVER_REST_MAX_MS, or as long as the server says.
 *
 * Threads: one of its own, which blocks in requests; the functions here are the owner's. */
#ifndef CMD_REMOTE_HANDOVER_H
#define CMD_REMOTE_HANDOVER_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"

struct queue;
struct store;
struct remote_handover;

enum {
	HANDOVER_REST_MIN_MS = 500,
	HANDOVER_REST_MAX_MS = 30000,
	HANDOVER_TIMEOUT_MS = 60000, /* of one request */
};

struct remote_handover_options {
	const char *server, *token; /* NULL: it shows none */
	const char *ca;             /* as http_client_options have it */
	struct queue *spool;
	struct store *store;
	struct clock *clock;
	const atomic_bool *cancelled; /* set before remote_handover_stop */
	struct executor *executor;    /* where `stopped` runs */
};

struct remote_handover *remote_handover_new(const struct remote_handover_options *options);
/* What is being sent stays in the spool; then `stopped` is called and it is gone. */
void remote_handover_stop(struct remote_handover *handover, void (*stopped)(void *owner),
			  void *owner);

/* The server is there again: what waits for it waits no longer. Any thread. */
void remote_handover_hurry(struct remote_handover *handover);
/* Why nothing can be handed over at present; empty: no reason. Any thread. */
void remote_handover_problem(struct remote_handover *handover, struct errbuf *problem);

#endif
