/* A connection with a broker of AMQP 0-9-1 (RabbitMQ), by which the messages of one queue come. It
 * alone knows librabbitmq. Private to ingest/.
 *
 * The queue has to exist: whoever made it knows how long it lives, and what is bound to it. The
 * broker keeps each message until it is acknowledged, and sends up to `prefetch` before the first
 * of them is. What was not acknowledged when the connection ends comes again.
 *
 * A message is read frame by frame: librabbitmq's own reader takes as much memory as the broker
 * says that a body has, and waits for the body without an end.
 *
 * Threads: one, which may wait; broker_interrupt may be called by any. */
#ifndef INGEST_BROKER_H
#define INGEST_BROKER_H

#include "base/base.h"

struct broker_options {
	const char *host;
	int port;
	const char *vhost, *user, *password, *queue;
	uint16_t prefetch;
	size_t body_max_bytes;
};

struct broker;

/* Closed. The texts are the caller's. */
struct broker *broker_new(const struct broker_options *options);
void broker_free(struct broker *broker);

/* Connects, logs in, and asks for messages. An error has a sentence, and leaves it to be closed. */
int broker_open(struct broker *broker, struct errbuf *e) MUST_CHECK;
/* As often as one likes. The broker is not waited for. */
void broker_close(struct broker *broker);

struct broker_message {
	uint64_t tag;         /* rising from message to message of a connection */
	struct slice body;    /* up to body_max_bytes of it; until the next call */
	uint64_t whole_bytes; /* how many it has */
};

/* Waits for the next message, which begins within wait_ms. ERR_TIMEOUT: none did. Else the
 * connection is of no use any more, with a sentence. Heartbeats are answered within this call
 * alone, so it is to be called every few seconds. */
int broker_next(struct broker *broker, int64_t wait_ms, struct broker_message *message,
		struct errbuf *e) MUST_CHECK;

/* Acknowledges the message of this tag and all before it. An error has a sentence: nobody knows
 * whether they come again. */
int broker_acknowledge(struct broker *broker, uint64_t tag, struct errbuf *e) MUST_CHECK;

/* Ends what the broker's thread waits for, now and from now on; only a connection that is being
 * made is waited for, up to some seconds. */
void broker_interrupt(struct broker *broker);

#endif
