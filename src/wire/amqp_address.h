/* Addresses of brokers of AMQP 0-9-1, as RabbitMQ writes them
 * (https://www.rabbitmq.com/docs/uri-spec):
 *
 *     amqp://USER:PASSWORD@HOST:PORT/VHOST
 *
 * Pure. */
#ifndef WIRE_AMQP_ADDRESS_H
#define WIRE_AMQP_ADDRESS_H

#include "base/mem.h"

enum {
	AMQP_PORT = 5672,
	AMQP_TEXT_MAX_BYTES = 255, /* of a short string (AMQP 0-9-1, 4.2.5.3) */
};

struct amqp_address {
	const char *host; /* a name or an address; an IPv6 address has no brackets */
	int port;
	const char *vhost, *user, *password;
};

/* What is missing is as RabbitMQ has it preset: port 5672, virtual host /, user and password guest.
 * The texts are copies in the arena. ERR_INVALID with a constant reason, ERR_LIMIT when the arena
 * is full. */
int amqp_address_parse(struct slice text, struct arena *arena, struct amqp_address *address,
		       const char **reason) MUST_CHECK;

#endif
