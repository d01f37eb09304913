/* A connection with a broker of AMQP 0-9-1 (RabbitMQ), by which the messages of one queue come, or
 * by which messages are published. The folder alone knows librabbitmq.
 *
 * Queues and exchanges have to exist: whoever made them knows how long they live, and what is bound
 * to what.
 *
 * Threads: one, which may wait; broker_interrupt may be called by any. */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "wire/amqp_address.h"

struct broker;

/* Closed. The address is the caller's. A message that comes is kept up to body_max_bytes. */
struct broker *broker_new(const struct amqp_address *address, size_t body_max_bytes);
void broker_free(struct broker *broker);

/* Connects and logs in. An error has a sentence, and leaves it to be closed; so does each of the
 * next but ERR_TIMEOUT. */
int broker_open(struct broker *broker, struct errbuf *e) MUST_CHECK;
/* As often as one likes. The broker is not waited for. */
void broker_close(struct broker *broker);

/* Ends what the broker's thread waits for, now and from now on; only a connection that is being
 * made is waited for, up to some seconds. */
void broker_interrupt(struct broker *broker);

/* ---- Reading --------------------------------------------------------------------------------- */

/* Asks for the messages of a queue. The broker keeps each until it is acknowledged, and sends up to
 * `prefetch` before the first of them is. What was not acknowledged when the connection ends comes
 * again. */
int broker_consume(struct broker *broker, const char *queue, uint16_t prefetch,
		   struct errbuf *e) MUST_CHECK;

struct broker_message {
	uint64_t tag;         /* rising from message to message of a connection */
	struct slice body;    /* up to body_max_bytes of it; until the next call */
	uint64_t whole_bytes; /* how many it has */
};

/* Waits for the next message, which begins within wait_ms. ERR_TIMEOUT: none did. Heartbeats are
 * answered within this call alone, so it is to be called every few seconds. */
int broker_next(struct broker *broker, int64_t wait_ms, struct broker_message *message,
		struct errbuf *e) MUST_CHECK;

/* Acknowledges the message of this tag and all before it. After an error nobody knows whether they
 * come again. */
int broker_acknowledge(struct broker *broker, uint64_t tag, struct errbuf *e) MUST_CHECK;

/* ---- Publishing ------------------------------------------------------------------------------ */

enum { BROKER_PUBLISH_MAX_BYTES = 64 << 10 };

/* Has the broker confirm from now on what is published. */
int broker_ask_confirms(struct broker *broker, struct errbuf *e) MUST_CHECK;

struct broker_publication {
	const char *exchange, *key; /* up to AMQP_TEXT_MAX_BYTES, as are the next two */
	const char *id, *type;      /* its properties message-id and type */
	int64_t made_s;             /* its property timestamp */
	struct slice body;          /* JSON, up to BROKER_PUBLISH_MAX_BYTES */
};

/* Publishes a persistent message, and waits until the broker has confirmed that a queue has it, 10
 * s at most. An error has its sentence: no queue takes it, or nobody knows whether one has it.
 * Heartbeats are sent within this call alone, so a connection by which nothing is published is to
 * be closed after a few seconds. */
int broker_publish(struct broker *broker, const struct broker_publication *publication,
		   struct errbuf *e) MUST_CHECK;

#endif
