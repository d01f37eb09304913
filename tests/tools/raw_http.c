#include "tools/raw_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

enum { RECEIVE_BYTES = 64 << 10, SEND_PARTS = 2 };

int raw_http_open(struct raw_http *client, uint16_t port, int timeout_s)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval timeout = {.tv_sec = timeout_s};
	int one = 1;

	*client = (struct raw_http){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	buf_init(&client->in, HTTP_CLIENT_REPLY_MAX_BYTES);
	buf_init(&client->body, HTTP_CLIENT_REPLY_MAX_BYTES);
	if (client->fd < 0)
		return -errno;
	setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return 0;
}

int raw_http_open_tls(struct raw_http *client, uint16_t port, int timeout_s)
{
	int err = raw_http_open(client, port, timeout_s);
	if (err)
		return err;
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	ASSERT(context);
	client->tls = SSL_new(context);
	SSL_CTX_free(context); /* the connection has it */
	ASSERT(client->tls && SSL_set_fd(client->tls, client->fd));
	return SSL_connect(client->tls) == 1 ? 0 : ERR_INVALID;
}

void raw_http_close(struct raw_http *client)
{
	SSL_free(client->tls);
	client->tls = NULL;
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	buf_release(&client->in);
	buf_release(&client->body);
}

void raw_http_head(struct buf *out, const char *method, const char *path, const char *type,
		   size_t body_len)
{
	buf_printf(out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, path);
	if (type)
		buf_printf(out, "Content-Type: %s\r\n", type);
	if (body_len != SIZE_MAX)
		buf_printf(out, "Content-Length: %zu\r\n", body_len);
	buf_append_text(out, "\r\n");
}

static size_t parts_advance(struct iovec *parts, size_t sent)
{
	size_t left = 0;

	for (size_t i = 0; i < SEND_PARTS; i++) {
		size_t n = sent < parts[i].iov_len ? sent : parts[i].iov_len;
		parts[i].iov_base = (char *)parts[i].iov_base + n;
		parts[i].iov_len -= n;
		sent -= n;
		left += parts[i].iov_len;
	}
	return left;
}

static int send_by_tls(struct raw_http *client, struct slice bytes)
{
	size_t sent;
	return !bytes.len || SSL_write_ex(client->tls, bytes.data, bytes.len, &sent) == 1 ? 0
											  : -EPIPE;
}

int raw_http_send(struct raw_http *client, struct slice head, struct slice body)
{
	if (client->tls) {
		int err = send_by_tls(client, head);
		return err ? err : send_by_tls(client, body);
	}
	struct iovec parts[SEND_PARTS] = {{(void *)(uintptr_t)head.data, head.len},
					  {(void *)(uintptr_t)body.data, body.len}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = SEND_PARTS};

	for (;;) {
		ssize_t sent = sendmsg(client->fd, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		if (parts_advance(parts, (size_t)sent) == 0)
			return 0;
	}
}

static int receive_more(struct raw_http *client)
{
	char *room = buf_reserve(&client->in, RECEIVE_BYTES);
	ssize_t n;

	if (!room)
		return ERR_LIMIT;
	do
		n = client->tls ? SSL_read(client->tls, room, RECEIVE_BYTES)
				: recv(client->fd, room, client->in.cap - client->in.len, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	client->in.len += (size_t)n;
	return n ? 0 : ERR_CANCELLED;
}

static int receive_head(struct raw_http *client, size_t *head_len)
{
	size_t seen = 0;

	for (;;) {
		const char *end = client->in.len < 4 ? NULL
						     : memmem(client->in.data + seen,
							      client->in.len - seen, "\r\n\r\n", 4);
		if (end) {
			*head_len = (size_t)(end - client->in.data) + 4;
			return 0;
		}
		seen = client->in.len > 3 ? client->in.len - 3 : 0;
		int err = receive_more(client);
		if (err)
			return err;
	}
}

/* The value of a field, without the blanks around it; a NULL slice when it is not there. */
static struct slice head_field(struct slice head, const char *name)
{
	size_t name_len = strlen(name);
	const char *at = head.data, *end = head.data + head.len;

	while (at < end) {
		const char *stop = memchr(at, '\r', (size_t)(end - at));
		if (!stop)
			break;
		if ((size_t)(stop - at) > name_len && at[name_len] == ':' &&
		    strncasecmp(at, name, name_len) == 0) {
			at += name_len + 1;
			while (at < stop && *at == ' ')
				at++;
			return (struct slice){at, (size_t)(stop - at)};
		}
		at = stop + 2;
	}
	return (struct slice){NULL, 0};
}

static int receive_until(struct raw_http *client, size_t len)
{
	while (client->in.len < len) {
		int err = receive_more(client);
		if (err)
			return err;
	}
	return 0;
}

/* One chunk from *at on; *size 0 is the last. */
static int receive_chunk(struct raw_http *client, size_t *at, size_t *size)
{
	char *end;
	int err;

	while (!memmem(client->in.data + *at, client->in.len - *at, "\r\n", 2)) {
		err = receive_more(client);
		if (err)
			return err;
	}
	*size = strtoul(client->in.data + *at, &end, 16);
	if (end == client->in.data + *at || *size > HTTP_CLIENT_REPLY_MAX_BYTES)
		return ERR_INVALID;
	while (*end != '\n')
		end++;
	*at = (size_t)(end + 1 - client->in.data);
	err = receive_until(client, *at + *size + 2);
	if (err)
		return err;
	err = buf_append(&client->body, client->in.data + *at, *size);
	*at += *size + 2;
	return err;
}

static int receive_chunked(struct raw_http *client, size_t at, struct slice *body)
{
	size_t size;

	do {
		int err = receive_chunk(client, &at, &size);
		if (err)
			return err;
	} while (size);
	*body = buf_slice(&client->body);
	return 0;
}

static int receive_body(struct raw_http *client, size_t head_len, int status, struct slice *body)
{
	struct slice head = {client->in.data, head_len};
	struct slice length = head_field(head, "Content-Length");
	int err;

	*body = (struct slice){NULL, 0};
	if (status == 204 || status == 304)
		return 0;
	if (head_field(head, "Transfer-Encoding").data)
		return receive_chunked(client, head_len, body);
	size_t len = length.data ? strtoul(length.data, NULL, 10) : 0;
	err = receive_until(client, head_len + len);
	if (err)
		return err;
	*body = (struct slice){client->in.data + head_len, len};
	return 0;
}

int raw_http_receive(struct raw_http *client, struct http_reply *reply)
{
	size_t head_len;
	int err;

	buf_clear(&client->in);
	buf_clear(&client->body);
	err = receive_head(client, &head_len);
	if (err)
		return err;
	if (head_len < 12 || memcmp(client->in.data, "HTTP/1.", 7) != 0)
		return ERR_INVALID;
	reply->status = (int)strtol(client->in.data + 9, NULL, 10);
	err = receive_body(client, head_len, reply->status, &reply->body);
	reply->head = (struct slice){client->in.data, head_len};
	return err;
}
