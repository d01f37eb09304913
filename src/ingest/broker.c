#include "ingest/broker.h"

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/visible.h"

enum {
	CHANNEL = 1, /* the only one */
	FRAME_MAX_BYTES = 128 << 10,
	/* Each side says so often that it is there; after two such times of silence it is not. */
	HEARTBEAT_S = 10,
	CONNECT_MS = 5000,
	ANSWER_MS = 10000, /* for each answer, and for each further frame of a message */
	TEXT_SHOWN_MAX_BYTES = 200,
};

static const char consumer[] = "granary"; /* what the broker's lists show */

struct broker {
	struct broker_options options;
	amqp_connection_state_t connection; /* NULL: closed */
	struct buf body;

	pthread_mutex_t lock; /* guards the rest */
	/* A copy of librabbitmq's, which may close its own at any time; -1: none. */
	int socket;
	bool interrupted;
};

struct broker *broker_new(const struct broker_options *options)
{
	struct broker *broker = mem_zalloc(sizeof(*broker));
	broker->options = *options;
	broker->socket = -1;
	buf_init(&broker->body, options->body_max_bytes);
	pthread_mutex_init(&broker->lock, NULL);
	return broker;
}

void broker_free(struct broker *broker)
{
	ASSERT(!broker->connection);
	pthread_mutex_destroy(&broker->lock);
	buf_release(&broker->body);
	mem_free(broker);
}

/* Reading ends, writing does not: the end of the connection is still sent. */
void broker_interrupt(struct broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	broker->interrupted = true;
	if (broker->socket >= 0)
		shutdown(broker->socket, SHUT_RD);
	pthread_mutex_unlock(&broker->lock);
}

/* Has the connection interrupted from now on. */
static int broker_share_socket(struct broker *broker, struct errbuf *e)
{
	int copy = fcntl(amqp_get_sockfd(broker->connection), F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return errbuf_set(e, -errno, "cannot connect: %s", err_text(-errno));
	pthread_mutex_lock(&broker->lock);
	broker->socket = copy;
	bool interrupted = broker->interrupted;
	pthread_mutex_unlock(&broker->lock);
	return interrupted ? errbuf_set(e, ERR_CANCELLED, "the server stops") : 0;
}

static void broker_close_socket(struct broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	if (broker->socket >= 0)
		close(broker->socket);
	broker->socket = -1;
	pthread_mutex_unlock(&broker->lock);
}

/* ---- What is wrong --------------------------------------------------------------------------- */

static int broker_fail(int status, const char *what, struct errbuf *e)
{
	return errbuf_set(e, ERR_RETRY, "%s: %s", what, amqp_error_string2(status));
}

/* A method that is not what was waited for: the broker says why it goes on no more. */
static int broker_refuse(const amqp_method_t *method, const char *what, struct errbuf *e)
{
	amqp_bytes_t why = amqp_empty_bytes;
	const char *name = amqp_method_name(method->id);
	if (method->id == AMQP_CONNECTION_CLOSE_METHOD)
		why = ((const amqp_connection_close_t *)method->decoded)->reply_text;
	else if (method->id == AMQP_CHANNEL_CLOSE_METHOD)
		why = ((const amqp_channel_close_t *)method->decoded)->reply_text;
	else if (method->id == AMQP_BASIC_CANCEL_METHOD)
		why = amqp_cstring_bytes("the queue was deleted");
	if (!why.len)
		return errbuf_set(e, ERR_RETRY, "%s: it says %s", what, name ? name : "nonsense");
	struct buf shown;
	buf_init(&shown, VISIBLE_MAX_BYTES * TEXT_SHOWN_MAX_BYTES);
	visible_append(&shown, (struct slice){why.bytes, why.len < TEXT_SHOWN_MAX_BYTES
								 ? why.len
								 : TEXT_SHOWN_MAX_BYTES});
	errbuf_set(e, ERR_RETRY, "%s: %.*s", what, (int)shown.len, shown.data);
	buf_release(&shown);
	return ERR_RETRY;
}

static int broker_check(amqp_rpc_reply_t reply, const char *what, struct errbuf *e)
{
	if (reply.reply_type == AMQP_RESPONSE_NORMAL)
		return 0;
	if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION)
		return broker_refuse(&reply.reply, what, e);
	return broker_fail(reply.library_error, what, e);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static int broker_connect(struct broker *broker, struct errbuf *e)
{
	const struct timeval timeout = {CONNECT_MS / 1000, 0}, answer = {ANSWER_MS / 1000, 0};
	amqp_connection_state_t connection = amqp_new_connection();
	ASSERT(connection); /* NULL is no memory, as of the next */
	broker->connection = connection;
	amqp_socket_t *socket = amqp_tcp_socket_new(connection);
	ASSERT(socket);
	int status = amqp_socket_open_noblock(socket, broker->options.host, broker->options.port,
					      &timeout);
	if (status)
		return broker_fail(status, "cannot connect", e);
	status = amqp_set_handshake_timeout(connection, &answer);
	status = status ? status : amqp_set_rpc_timeout(connection, &answer);
	return status ? broker_fail(status, "cannot connect", e) : broker_share_socket(broker, e);
}

/* Without this capability a broker does not say that the queue was deleted. */
static int broker_log_in(struct broker *broker, struct errbuf *e)
{
	const struct broker_options *o = &broker->options;
	amqp_connection_state_t connection = broker->connection;
	amqp_table_entry_t capability = {
		.key = amqp_cstring_bytes("consumer_cancel_notify"),
		.value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = true}};
	amqp_table_entry_t property = {
		.key = amqp_cstring_bytes("capabilities"),
		.value = {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {1, &capability}}};
	const amqp_table_t properties = {1, &property};
	amqp_rpc_reply_t reply = amqp_login_with_properties(
		connection, o->vhost, CHANNEL, FRAME_MAX_BYTES, HEARTBEAT_S, &properties,
		AMQP_SASL_METHOD_PLAIN, o->user, o->password);
	int err = broker_check(reply, "cannot log in", e);
	if (err)
		return err;
	amqp_channel_open(connection, CHANNEL);
	return broker_check(amqp_get_rpc_reply(connection), "cannot open a channel", e);
}

static int broker_consume(struct broker *broker, struct errbuf *e)
{
	amqp_connection_state_t connection = broker->connection;
	amqp_basic_qos(connection, CHANNEL, 0, broker->options.prefetch, false);
	int err = broker_check(amqp_get_rpc_reply(connection), "cannot bound what it sends", e);
	if (err)
		return err;
	amqp_basic_consume(connection, CHANNEL, amqp_cstring_bytes(broker->options.queue),
			   amqp_cstring_bytes(consumer), false, false, false, amqp_empty_table);
	return broker_check(amqp_get_rpc_reply(connection), "cannot read the queue", e);
}

int broker_open(struct broker *broker, struct errbuf *e)
{
	ASSERT(!broker->connection);
	int err = broker_connect(broker, e);
	err = err ? err : broker_log_in(broker, e);
	return err ? err : broker_consume(broker, e);
}

/* The broker is told, so that it gives the messages to others at once; its answer is not waited
 * for. */
void broker_close(struct broker *broker)
{
	amqp_connection_close_t close = {.reply_code = AMQP_REPLY_SUCCESS};
	if (!broker->connection)
		return;
	if (broker->socket >= 0)
		(void)amqp_send_method(broker->connection, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
	broker_close_socket(broker);
	amqp_destroy_connection(broker->connection);
	broker->connection = NULL;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* What the frame before pointed to is gone. ERR_TIMEOUT: none came within wait_ms. */
static int broker_next_frame(struct broker *broker, int64_t wait_ms, amqp_frame_t *frame,
			     struct errbuf *e)
{
	const struct timeval wait = {wait_ms / 1000, wait_ms % 1000 * 1000};
	amqp_maybe_release_buffers(broker->connection);
	int status = amqp_simple_wait_frame_noblock(broker->connection, frame, &wait);
	if (status == AMQP_STATUS_TIMEOUT)
		return errbuf_set(e, ERR_TIMEOUT, "a message does not go on");
	return status ? broker_fail(status, "the connection is broken", e) : 0;
}

/* A further frame of a message. */
static int broker_next_part(struct broker *broker, uint8_t type, amqp_frame_t *frame,
			    struct errbuf *e)
{
	int err = broker_next_frame(broker, ANSWER_MS, frame, e);
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
	size_t room = broker->options.body_max_bytes;
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
	int status = amqp_basic_ack(broker->connection, CHANNEL, tag, true);
	return status ? broker_fail(status, "cannot acknowledge", e) : 0;
}
