/* One message at a time is under way: what the broker confirms or returns is that one. After an
 * error the connection is of no use, so an answer that comes too late is not taken for the next
 * one's. */
#include <errno.h>
#include <sys/socket.h>

#include "broker/private.h"

/* librabbitmq waits without an end until the kernel takes what it sends, so the kernel is given
 * room for a whole message: the one before was read to its end when it was confirmed. */
int broker_ask_confirms(struct broker *broker, struct errbuf *e)
{
	const int room = 2 * BROKER_PUBLISH_MAX_BYTES;
	if (setsockopt(broker->socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)))
		return errbuf_set(e, -errno, "cannot publish: %s", err_text(-errno));
	amqp_confirm_select(broker->connection, BROKER_CHANNEL);
	return broker_check(amqp_get_rpc_reply(broker->connection), "it confirms no messages", e);
}

static int broker_await_confirm(struct broker *broker, struct errbuf *e)
{
	amqp_frame_t frame;
	int err = broker_next_frame(broker, BROKER_ANSWER_MS, &frame, e);
	if (err == ERR_TIMEOUT)
		return errbuf_set(e, ERR_RETRY, "it has not confirmed the message within %d s",
				  BROKER_ANSWER_MS / 1000);
	if (err)
		return err;
	if (frame.frame_type != AMQP_FRAME_METHOD)
		return errbuf_set(e, ERR_RETRY, "it sends a part of a message that has not begun");
	switch (frame.payload.method.id) {
	case AMQP_BASIC_ACK_METHOD:
		return 0;
	case AMQP_BASIC_NACK_METHOD:
		return errbuf_set(e, ERR_RETRY, "a queue did not take the message");
	case AMQP_BASIC_RETURN_METHOD: /* comes before the confirm, which nobody waits for */
		return errbuf_set(e, ERR_RETRY, "no queue takes the message");
	default:
		return broker_refuse(&frame.payload.method, "it did not take the message", e);
	}
}

int broker_publish(struct broker *broker, const struct broker_publication *publication,
		   struct errbuf *e)
{
	const amqp_basic_properties_t properties = {
		._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
			  AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TYPE_FLAG |
			  AMQP_BASIC_TIMESTAMP_FLAG,
		.content_type = amqp_cstring_bytes("application/json"),
		.delivery_mode = AMQP_DELIVERY_PERSISTENT,
		.message_id = amqp_cstring_bytes(publication->id),
		.type = amqp_cstring_bytes(publication->type),
		.timestamp = (uint64_t)publication->made_s,
	};
	const amqp_bytes_t body = {publication->body.len,
				   (void *)(uintptr_t)publication->body.data};
	ASSERT(body.len <= BROKER_PUBLISH_MAX_BYTES);
	int status = amqp_basic_publish(
		broker->connection, BROKER_CHANNEL, amqp_cstring_bytes(publication->exchange),
		amqp_cstring_bytes(publication->key), true, false, &properties, body);
	return status ? broker_fail(status, "cannot publish", e) : broker_await_confirm(broker, e);
}
