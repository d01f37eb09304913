/* The door of fault reports that come by AMQP 0-9-1, as python-oops' oops-amqp publishes them: a
 * job that takes the messages of one queue of RabbitMQ. Each message is a report in one of the
 * forms of oops.h, and is submitted as one that was sent to POST /oops is.
 *
 * A message is acknowledged when its report is durable, or was before. What can never be taken, as
 * it is no report, or as another report has its id, is set aside with the reason (queue/aside.h)
 * and then acknowledged. While the store takes nothing, up to `prefetch` messages are held and
 * tried again; all others stay in the broker. So nothing is lost, whatever ends; what comes twice
 * is known by its id.
 *
 * The job goes round: it connects; it takes what there is, submits it, waits until all of that is
 * durable, and acknowledges it; when the connection breaks, it rests, longer each time, and
 * connects again.
 *
 * Threads: new, start, stop, is_over and free belong to the loop of the executor; look and retry to
 * any. */
#ifndef INGEST_OOPS_AMQP_H
#define INGEST_OOPS_AMQP_H

#include "fault/fault.h"
#include "loop/job.h"
#include "queue/retry.h"
#include "wire/amqp_address.h"

enum { OOPS_AMQP_PREFETCH_MAX = 1000, OOPS_AMQP_NAME_MAX_BYTES = 264 };

/* Texts are the caller's. */
struct oops_amqp_options {
	struct amqp_address broker;
	const char *queue;
	size_t prefetch; /* messages that are held at once */
	struct slice tenant;
	size_t report_max_bytes;
	struct fault *fault;
	struct store *store;
	struct executor *executor;
};

struct oops_amqp;

/* Finds out what lies aside; blocks. The store's error with a sentence. */
int oops_amqp_new(const struct oops_amqp_options *options, struct oops_amqp **to,
		  struct errbuf *e) MUST_CHECK;
void oops_amqp_start(struct oops_amqp *amqp);
/* What is being stored is acknowledged if it can be; all else stays in the broker. NULL is allowed
 * for these three. */
void oops_amqp_stop(struct oops_amqp *amqp);
bool oops_amqp_is_over(const struct oops_amqp *amqp);
void oops_amqp_free(struct oops_amqp *amqp);

struct oops_amqp_state {
	/* Messages since the start. */
	uint64_t received, acknowledged, dropped; /* dropped: lay aside, and had to go */
	uint64_t held, aside;                     /* now */
	struct errbuf trouble; /* why none is taken at present; empty: they are taken */
};
void oops_amqp_look(struct oops_amqp *amqp, struct oops_amqp_state *state);

/* Tries what was set aside again, as much as lay there at the beginning, the oldest first: of an id
 * that is free now, or by a program that can read more. `kept`: what stays. For a job. The store's
 * error, with a sentence. */
int oops_amqp_retry(struct oops_amqp *amqp, struct job *job, struct queue_retry_result *result,
		    struct errbuf *e) MUST_CHECK;

/* `amqp/` and the queue, by which others call it: queues of polls have no / in their names. */
struct slice oops_amqp_name(const struct oops_amqp *amqp);

#endif
