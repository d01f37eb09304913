#include <amqp_tcp_socket.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/visible.h"
#include "broker/private.h"

enum {
	FRAME_MAX_BYTES = 128 << 10,
	/* Each side says so often that it is there; after two such times of silence it is not. */
	HEARTBEAT_S = 10,
	CONNECT_MS = 5000,
	TEXT_SHOWN_MAX_BYTES = 200,
};

struct broker *broker_new(const struct amqp_address *address, size_t body_max_bytes)
{
	struct broker *broker = mem_zalloc(sizeof(*broker));
	broker->address = address;
	broker->socket = -1;
	buf_init(&broker->body, body_max_bytes);
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

int broker_fail(int status, const char *what, struct errbuf *e)
{
	return errbuf_set(e, ERR_RETRY, "%s: %s", what, amqp_error_string2(status));
}

int broker_refuse(const amqp_method_t *method, const char *what, struct errbuf *e)
{
	amqp_bytes_t why = amqp_empty_bytes;
	const char *name = amqp_method_name(method->id);
	if (method->id == AMQP_CONNECTION_CLOSE_METHOD)
		why = ((const amqp_connection_close_t *)method->decoded)->reply_text;
	else if (method->id == AMQP_CHANNEL_CLOSE_METHOD)
		why = ((const amqp_channel_close_t *)method->decoded)->reply_text;
	else if (method->id == AMQP_CONNECTION_BLOCKED_METHOD)
		why = ((const amqp_connection_blocked_t *)method->decoded)->reason;
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

int broker_check(amqp_rpc_reply_t reply, const char *what, struct errbuf *e)
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
	const struct timeval timeout = {CONNECT_MS / 1000, 0},
			     answer = {BROKER_ANSWER_MS / 1000, 0};
	amqp_connection_state_t connection = amqp_new_connection();
	ASSERT(connection); /* NULL is no memory, as of the next */
	broker->connection = connection;
	amqp_socket_t *socket = amqp_tcp_socket_new(connection);
	ASSERT(socket);
	int status = amqp_socket_open_noblock(socket, broker->address->host, broker->address->port,
					      &timeout);
	if (status)
		return broker_fail(status, "cannot connect", e);
	status = amqp_set_handshake_timeout(connection, &answer);
	status = status ? status : amqp_set_rpc_timeout(connection, &answer);
	return status ? broker_fail(status, "cannot connect", e) : broker_share_socket(broker, e);
}

/* Without these capabilities a broker does not say that the queue was deleted, and that it takes no
 * messages as it lacks memory or room on its disk. */
static int broker_log_in(struct broker *broker, struct errbuf *e)
{
	const struct amqp_address *to = broker->address;
	amqp_connection_state_t connection = broker->connection;
	const amqp_field_value_t yes = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = true};
	amqp_table_entry_t known[] = {
		{.key = amqp_cstring_bytes("consumer_cancel_notify"), .value = yes},
		{.key = amqp_cstring_bytes("connection.blocked"), .value = yes}};
	amqp_table_entry_t property = {
		.key = amqp_cstring_bytes("capabilities"),
		.value = {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {ARRAY_LEN(known), known}}};
	const amqp_table_t properties = {1, &property};
	amqp_rpc_reply_t reply = amqp_login_with_properties(
		connection, to->vhost, BROKER_CHANNEL, FRAME_MAX_BYTES, HEARTBEAT_S, &properties,
		AMQP_SASL_METHOD_PLAIN, to->user, to->password);
	int err = broker_check(reply, "cannot log in", e);
	if (err)
		return err;
	amqp_channel_open(connection, BROKER_CHANNEL);
	return broker_check(amqp_get_rpc_reply(connection), "cannot open a channel", e);
}

int broker_open(struct broker *broker, struct errbuf *e)
{
	ASSERT(!broker->connection);
	int err = broker_connect(broker, e);
	return err ? err : broker_log_in(broker, e);
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

/* ---- Frames ---------------------------------------------------------------------------------- */

int broker_next_frame(struct broker *broker, int64_t wait_ms, amqp_frame_t *frame, struct errbuf *e)
{
	const struct timeval wait = {wait_ms / 1000, wait_ms % 1000 * 1000};
	amqp_maybe_release_buffers(broker->connection);
	int status = amqp_simple_wait_frame_noblock(broker->connection, frame, &wait);
	if (status == AMQP_STATUS_TIMEOUT)
		return errbuf_set(e, ERR_TIMEOUT, "a message does not go on");
	return status ? broker_fail(status, "the connection is broken", e) : 0;
}
