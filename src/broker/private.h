/* What the files of broker/ share. */
#ifndef BROKER_PRIVATE_H
#define BROKER_PRIVATE_H

#include <amqp.h>
#include <pthread.h>

#include "base/buf.h"
#include "broker/broker.h"

enum {
	BROKER_CHANNEL = 1,       /* the only one */
	BROKER_ANSWER_MS = 10000, /* for each answer, and for each further frame of a message */
};

struct broker {
	const struct amqp_address *address;
	amqp_connection_state_t connection; /* NULL: closed */
	struct buf body;

	pthread_mutex_t lock; /* guards the rest */
	/* A copy of librabbitmq's, which may close its own at any time; -1: none. */
	int socket;
	bool interrupted;
};

/* Each returns its error, with a sentence that begins with `what`. */
int broker_fail(int status, const char *what, struct errbuf *e);
/* A method that is not what was waited for: the broker says why it goes on no more. */
int broker_refuse(const amqp_method_t *method, const char *what, struct errbuf *e);
/* 0: the answer is what was asked for. */
int broker_check(amqp_rpc_reply_t reply, const char *what, struct errbuf *e) MUST_CHECK;

/* What the frame before pointed to is gone. ERR_TIMEOUT: none came within wait_ms. */
int broker_next_frame(struct broker *broker, int64_t wait_ms, amqp_frame_t *frame,
		      struct errbuf *e) MUST_CHECK;

#endif
