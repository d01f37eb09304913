/* A message is read frame by frame: librabbitmq's own reader takes as much memory as the broker
 * says that a body has, and waits for the body without an end. */
#include "broker/private.h"

static const char broker_consumer[] = "granary"; /* what the broker's lists show */

int broker_consume(struct broker *broker, const char *queue, uint16_t prefetch, struct errbuf *e)
{
	amqp_connection_state_t connection = broker->connection;
	amqp_basic_qos(connection, BROKER_CHANNEL, 0, prefetch, false);
	int err = broker_check(amqp_get_rpc_reply(connection), "cannot bound what it sends", e);
	if (err)
		return err;
	amqp_basic_consume(connection, BROKER_CHANNEL, amqp_cstring_bytes(queue),
			   amqp_cstring_bytes(broker_consumer), false, false, false,
			   amqp_empty_table);
	return broker_check(amqp_get_rpc_reply(connection), "cannot read the queue", e);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* A further frame of a message. */
static int broker_next_part(struct broker *broker, uint8_t type, amqp_frame_t *frame,
			    struct errbuf *e)
{
	int err = broker_next_frame(broker, BROKER_ANSWER_MS, frame, e);
	if (err)
		return err == ERR_TIMEOUT ? ERR_RETRY : err;
	if (frame->frame_type == type)
		return 0;
	if (frame->frame_type == AMQP_FRAME_METHOD)
		return broker_refuse(&frame->payload.method, "within a message", e);
	return errbuf_set(e, ERR_RETRY, "a message has a frame that is not its next");
}

/* AMQP 0-9-1, 4.2.6.1: a header with the length of the body, then the body in frames. */
static int broker_read_content(struct broker *broker, struct broker_message *message,
			       struct errbuf *e)
{
	amqp_frame_t frame;
	uint64_t read = 0;
	size_t room = broker->body.max;
	buf_clear(&broker->body);
	int err = broker_next_part(broker, AMQP_FRAME_HEADER, &frame, e);
	message->whole_bytes = err ? 0 : frame.payload.properties.body_size;
	while (!err && read < message->whole_bytes) {
		err = broker_next_part(broker, AMQP_FRAME_BODY, &frame, e);
		if (err)
			return err;
		amqp_bytes_t part = frame.payload.body_fragment;
		if (!part.len)
			return errbuf_set(e, ERR_RETRY, "a message has an empty frame");
		if (part.len > message->whole_bytes - read)
			return errbuf_set(e, ERR_RETRY, "a message is longer than it says");
		size_t left = room - broker->body.len;
		buf_append(&broker->body, part.bytes, part.len < left ? part.len : left);
		read += part.len;
	}
	message->body = buf_slice(&broker->body);
	return err;
}

int broker_next(struct broker *broker, int64_t wait_ms, struct broker_message *message,
		struct errbuf *e)
{
	amqp_frame_t frame;
	int err = broker_next_frame(broker, wait_ms, &frame, e);
	if (err)
		return err;
	if (frame.frame_type != AMQP_FRAME_METHOD)
		return errbuf_set(e, ERR_RETRY, "it sends a part of a message that has not begun");
	if (frame.payload.method.id != AMQP_BASIC_DELIVER_METHOD)
		return broker_refuse(&frame.payload.method, "the connection ends", e);
	message->tag = ((const amqp_basic_deliver_t *)frame.payload.method.decoded)->delivery_tag;
	return broker_read_content(broker, message, e);
}

int broker_acknowledge(struct broker *broker, uint64_t tag, struct errbuf *e)
{
	int status = amqp_basic_ack(broker->connection, BROKER_CHANNEL, tag, true);
	return status ? broker_fail(status, "cannot acknowledge", e) : 0;
}
