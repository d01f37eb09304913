/* Listeners and connections.
 *
 * Accepting is done here with uv_poll and accept4, not by uv_listen: libuv's answer to a process
 * without descriptors is to accept and close, or, when it has lost its spare descriptor, to spin.
 * Here accepting rests for a while and the clients wait in the kernel's queue. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "loop/private.h"
#include "loop/tls.h"

enum {
	READS_MAX_US = 30000, /* of all connections in one turn, and what comes of it */
	READS_EACH = 4,
	READ_LITTLE_BYTES = 1024, /* a short request */
	LISTEN_BACKLOG = 1024,
	ACCEPTS_PER_EVENT_MAX = 64, /* then the other sockets have their turn */
	ACCEPT_REST_MS = 100,
	ACCEPT_CALM_MS = 5000, /* without a rest: descriptors are there again */
	WRITE_PIECES_MAX = 8,
	NOT_SENT_MAX_BYTES = 256 << 10,
};

struct loop_listener {
	uv_poll_t poll;
	struct loop *loop;
	int fd;
	struct loop_address address;
	char *path; /* of a socket of the machine; NULL: of the network */
	loop_accept_fn *accept;
	void *owner;
	struct loop_timer *rest, *calm;
	struct log_rate rest_lines;
	uint64_t rests; /* since it last was calm */
	bool rests_told;
	struct loop_tls tls; /* of connections that it accepts; no context: none */
};

/* ---- Listening ------------------------------------------------------------------------------- */

socklen_t loop_to_sockaddr(const struct loop_address *address, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (address->v6) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(address->port);
		memcpy(&in6->sin6_addr, address->bytes, 16);
		return sizeof(*in6);
	}
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	in->sin_family = AF_INET;
	in->sin_port = htons(address->port);
	memcpy(&in->sin_addr, address->bytes, 4);
	return sizeof(*in);
}

int loop_bound_port(int fd, uint16_t *port)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	if (getsockname(fd, (struct sockaddr *)&bound, &len))
		return -errno;
	*port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						  : ((struct sockaddr_in *)&bound)->sin_port);
	return 0;
}

/* The listening socket, or a negative error. */
static int loop_net_open_socket(struct loop_address *address)
{
	struct sockaddr_storage to;
	socklen_t len = loop_to_sockaddr(address, &to);
	int on = 1;
	int fd = socket(address->v6 ? AF_INET6 : AF_INET,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* A restarted server must not wait for connections of the old one in TIME_WAIT. */
	int err = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ? -errno : 0;
	if (!err && address->v6)
		err = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) ? -errno : 0;
	if (!err)
		err = bind(fd, (struct sockaddr *)&to, len) ? -errno : 0;
	if (!err)
		err = listen(fd, LISTEN_BACKLOG) ? -errno : 0;
	if (!err)
		err = loop_bound_port(fd, &address->port);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static const char *loop_listener_name(const struct loop_listener *listener,
				      char text[LOOP_ADDRESS_TEXT_BYTES])
{
	return listener->path ? listener->path : loop_address_text(&listener->address, text);
}

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void rest_over(void *owner)
{
	struct loop_listener *listener = owner;
	uv_poll_start(&listener->poll, UV_READABLE, on_acceptable);
}

/* Ten times a second it would fill the log, and the disk. */
static void tell_rest(struct loop_listener *listener, int err)
{
	char text[LOOP_ADDRESS_TEXT_BYTES];
	uint64_t left_out;
	listener->rests++;
	if (!log_rate_take(&listener->rest_lines, loop_now_ms(listener->loop), &left_out))
		return;
	listener->rests_told = true;
	log_warn("%s takes no new connections: %s; tried every %d ms, %llu times so far (the "
		 "process "
		 "may have `ulimit -n` descriptors)",
		 loop_listener_name(listener, text), err_text(err), ACCEPT_REST_MS,
		 (unsigned long long)listener->rests);
}

static void calm_again(void *owner)
{
	struct loop_listener *listener = owner;
	char text[LOOP_ADDRESS_TEXT_BYTES];
	if (listener->rests_told)
		log_info("connections to %s are accepted again, after %llu tries",
			 loop_listener_name(listener, text), (unsigned long long)listener->rests);
	listener->rests = 0;
	listener->rests_told = false;
}

static void loop_net_rest(struct loop_listener *listener, int err)
{
	stat_add(STAT_loop_accept_rests, 1);
	tell_rest(listener, err);
	uv_poll_stop(&listener->poll);
	loop_timer_start(listener->rest, ACCEPT_REST_MS, 0);
	loop_timer_start(listener->calm, ACCEPT_CALM_MS, 0);
}

static int accept_one(struct loop_listener *listener, struct loop_address *peer)
{
	struct sockaddr_storage from = {0};
	socklen_t len = sizeof(from);
	if (fault("loop.accept"))
		return -EMFILE;
	int fd =
		accept4(listener->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!listener->path)
		*peer = loop_address_of((struct sockaddr *)&from);
	return fd;
}

/* Left alone, the kernel takes megabytes for a peer that does not read, times the connections, and
 * tells of room only when a third of them has gone: a slow reader would look like none. */
static void bound_kernel_buffer(int fd)
{
	int bytes = NOT_SENT_MAX_BYTES;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes)))
		log_debug("TCP_NOTSENT_LOWAT: %s", err_text(-errno)); /* as good without */
}

int loop_conn_adopt(struct loop *loop, int fd, const struct loop_address *peer,
		    struct loop_conn **out)
{
	struct loop_conn *conn = mem_zalloc(sizeof(*conn));
	conn->loop = loop;
	conn->peer = *peer;
	uv_tcp_init(&loop->uv, &conn->tcp);
	int err = uv_tcp_open(&conn->tcp, fd); /* takes any stream's socket */
	if (err) {
		close(fd);
		loop_conn_close(conn);
		return err;
	}
	*out = conn;
	return 0;
}

static void loop_net_hand_over(struct loop_listener *listener, int fd, struct loop_address peer)
{
	struct loop_conn *conn;
	if (!listener->path)
		bound_kernel_buffer(fd);
	int err = loop_conn_adopt(listener->loop, fd, &peer, &conn);
	if (err) {
		log_warn("a new connection was closed: %s", err_text(err));
		return;
	}
	if (!listener->path)
		uv_tcp_nodelay(&conn->tcp, 1);
	if (listener->tls.context)
		loop_conn_speak_tls(conn, &listener->tls);
	listener->accept(listener->owner, conn);
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
	struct loop_listener *listener = CONTAINER_OF(poll, struct loop_listener, poll);
	(void)status; /* an error of the socket is found by accept */
	(void)events;
	for (int i = 0; i < ACCEPTS_PER_EVENT_MAX && !uv_is_closing((uv_handle_t *)poll); i++) {
		struct loop_address peer = {0};
		int fd = accept_one(listener, &peer);
		if (fd >= 0)
			loop_net_hand_over(listener, fd, peer);
		else if (fd == -EAGAIN)
			return;
		else if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
			loop_net_rest(listener, fd);
			return;
		}
		/* Anything else is an error of that one connection (accept(2)): on to the next. */
	}
}

static int loop_net_serve(struct loop *loop, int fd, loop_accept_fn *accept, void *owner,
			  struct loop_listener **out)
{
	struct loop_listener *listener = mem_zalloc(sizeof(*listener));
	int err = uv_poll_init(&loop->uv, &listener->poll, fd);
	if (err) {
		close(fd);
		mem_free(listener);
		return err;
	}
	listener->loop = loop;
	listener->fd = fd;
	listener->accept = accept;
	listener->owner = owner;
	listener->rest = loop_timer_new(loop, rest_over, listener);
	listener->calm = loop_timer_new(loop, calm_again, listener);
	listener->rest_lines.lines_max = 1;
	uv_poll_start(&listener->poll, UV_READABLE, on_acceptable);
	*out = listener;
	return 0;
}

int loop_listen(struct loop *loop, const struct loop_address *address, loop_accept_fn *accept,
		void *owner, struct loop_listener **out, struct errbuf *e)
{
	char text[LOOP_ADDRESS_TEXT_BYTES];
	loop_address_text(address, text);
	struct loop_address bound = *address;
	int fd = loop_net_open_socket(&bound);
	int err = fd < 0 ? fd : loop_net_serve(loop, fd, accept, owner, out);
	if (err)
		return errbuf_set(e, err, "cannot listen on %s: %s", text, err_text(err));
	(*out)->address = bound;
	return 0;
}

/* 0: somebody serves it. -ECONNREFUSED: nobody does. */
static int loop_net_try_path(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int err = connect(fd, (const struct sockaddr *)at, sizeof(*at)) ? -errno : 0;
	close(fd);
	return err == -EAGAIN ? 0 : err; /* its queue is full */
}

bool loop_path_is_served(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(at.sun_path))
		return false;
	memcpy(at.sun_path, path, strlen(path));
	return loop_net_try_path(&at) == 0;
}

/* Removes the socket that a killed process has left. ERR_LOCKED: somebody serves it; ERR_EXISTS: it
 * is no socket. Both stay. */
static int loop_net_clear_path(const struct sockaddr_un *at)
{
	struct stat seen;
	if (lstat(at->sun_path, &seen))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(seen.st_mode))
		return ERR_EXISTS;
	int err = loop_net_try_path(at);
	if (!err)
		return ERR_LOCKED;
	if (err != -ECONNREFUSED)
		return err;
	return unlink(at->sun_path) ? -errno : 0;
}

/* The listening socket, or a negative error. Its mode is set before anybody can connect. */
static int loop_net_open_path(const char *path, mode_t mode)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	_Static_assert(sizeof(to.sun_path) == LOOP_PATH_MAX_BYTES, "as unix(7) has it");
	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, strlen(path));
	int err = loop_net_clear_path(&to);
	if (err)
		return err;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&to, sizeof(to)) || chmod(path, mode) ||
	    listen(fd, LISTEN_BACKLOG)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int loop_listen_path(struct loop *loop, const char *path, mode_t mode, loop_accept_fn *accept,
		     void *owner, struct loop_listener **out, struct errbuf *e)
{
	int fd = loop_net_open_path(path, mode);
	int err = fd < 0 ? fd : loop_net_serve(loop, fd, accept, owner, out);
	if (err == ERR_EXISTS)
		return errbuf_set(e, err, "cannot listen on %s: what is there is no socket", path);
	if (err)
		return errbuf_set(e, err, "cannot listen on %s: %s", path, err_text(err));
	(*out)->path = mem_copy_text(slice_of(path));
	return 0;
}

struct loop_address loop_listener_address(const struct loop_listener *listener)
{
	return listener->address;
}

void loop_listener_speak_tls(struct loop_listener *listener, const struct loop_tls *tls)
{
	tls_context_hold(tls->context);
	tls_context_release(listener->tls.context);
	listener->tls = *tls;
}

static void on_listener_closed(uv_handle_t *handle)
{
	struct loop_listener *listener =
		CONTAINER_OF((uv_poll_t *)handle, struct loop_listener, poll);
	tls_context_release(listener->tls.context);
	mem_free(listener->path);
	mem_free(listener);
}

void loop_listener_close(struct loop_listener *listener)
{
	if (!listener)
		return;
	loop_timer_close(listener->rest);
	loop_timer_close(listener->calm);
	uv_close((uv_handle_t *)&listener->poll, on_listener_closed);
	close(listener->fd); /* libuv has stopped polling it */
	if (listener->path)
		unlink(listener->path);
}

/* ---- Reading --------------------------------------------------------------------------------- */

bool loop_net_is_closing(const struct loop_conn *conn)
{
	return uv_is_closing((const uv_handle_t *)&conn->tcp);
}

void loop_net_fail(struct loop_conn *conn, int err)
{
	if (conn->broken || loop_net_is_closing(conn))
		return;
	conn->broken = true;
	uv_read_stop((uv_stream_t *)&conn->tcp);
	conn->events->broken(conn->owner, err);
}

/* The rest waits for the next turn, so that neither one connection nor many together hold up
 * timers, tasks and each other: each reads at most READS_EACH times a turn, and when all have taken
 * READS_MAX_US, once and a little. */
size_t loop_net_readable(struct loop_conn *conn, size_t max_bytes)
{
	struct loop *loop = conn->loop;
	int64_t now_us = (int64_t)(uv_hrtime() / 1000);
	if (conn->turn != loop->turns) {
		conn->turn = loop->turns;
		conn->turn_reads = 0;
	}
	if (!loop->reads_began_us)
		loop->reads_began_us = now_us;
	bool is_over = now_us - loop->reads_began_us > READS_MAX_US;
	if (conn->turn_reads++ >= (is_over ? 1 : READS_EACH))
		return 0;
	return is_over && max_bytes > READ_LITTLE_BYTES ? READ_LITTLE_BYTES : max_bytes;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct loop_conn *conn = CONTAINER_OF((uv_tcp_t *)handle, struct loop_conn, tcp);
	size_t max_bytes = loop_net_readable(conn, conn->read_max_bytes);
	(void)suggested;
	/* libuv reads into it and calls loop_net_on_read before it does anything else, so that all
	 * connections can share one. */
	*buf = uv_buf_init(max_bytes ? conn->loop->read_buffer : NULL, (unsigned)max_bytes);
}

static void loop_net_on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
	struct loop_conn *conn = CONTAINER_OF((uv_tcp_t *)stream, struct loop_conn, tcp);
	if (len > 0) {
		conn->events->read(conn->owner, (struct slice){buf->base, (size_t)len});
	} else if (len == UV_EOF) {
		conn->at_end = true;
		uv_read_stop(stream);
		conn->events->eof(conn->owner);
	} else if (len < 0 && len != UV_ENOBUFS) {
		loop_net_fail(conn, (int)len);
	}
}

void loop_conn_start(struct loop_conn *conn, const struct loop_conn_events *events, void *owner)
{
	ASSERT(!conn->events);
	conn->events = events;
	conn->owner = owner;
	if (conn->tls)
		tls_conn_start(conn);
	loop_conn_read(conn, LOOP_READ_BYTES);
}

void loop_conn_read(struct loop_conn *conn, size_t max_bytes)
{
	ASSERT(max_bytes <= LOOP_READ_BYTES);
	bool was_reading = conn->read_max_bytes > 0;
	conn->read_max_bytes = max_bytes;
	if (conn->tls) {
		tls_conn_read(conn);
		return;
	}
	if (conn->at_end || conn->broken || was_reading == (max_bytes > 0))
		return;
	if (max_bytes)
		uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, loop_net_on_read);
	else
		uv_read_stop((uv_stream_t *)&conn->tcp);
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct write {
	uv_write_t uv;
	char bytes[];
};

static void loop_net_on_written(uv_write_t *uv, int status)
{
	struct loop_conn *conn = CONTAINER_OF((uv_tcp_t *)uv->handle, struct loop_conn, tcp);
	mem_free(CONTAINER_OF(uv, struct write, uv));
	if (loop_net_is_closing(conn))
		return;
	if (status < 0 && conn->tls)
		tls_conn_lost(conn, status);
	else if (status < 0)
		loop_net_fail(conn, status);
	else if (loop_conn_unsent(conn) == 0 && (!conn->tls || tls_conn_all_sent(conn)))
		conn->events->sent(conn->owner);
}

/* What the kernel takes now. An error is not looked at: the write of the rest meets it again and
 * reports it as an event. */
static size_t try_write(struct loop_conn *conn, const struct slice *pieces, size_t count)
{
	uv_buf_t bufs[WRITE_PIECES_MAX];
	for (size_t i = 0; i < count; i++)
		bufs[i] = uv_buf_init((char *)(uintptr_t)pieces[i].data, (unsigned)pieces[i].len);
	int sent = uv_try_write((uv_stream_t *)&conn->tcp, bufs, (unsigned)count);
	return sent < 0 ? 0 : (size_t)sent;
}

static void write_rest(struct loop_conn *conn, const struct slice *pieces, size_t count,
		       size_t skip, size_t len)
{
	struct write *write = mem_alloc(sizeof(*write) + len);
	char *to = write->bytes;
	for (size_t i = 0; i < count; i++) {
		size_t from = skip < pieces[i].len ? skip : pieces[i].len;
		skip -= from;
		if (pieces[i].len > from)
			memcpy(to, pieces[i].data + from, pieces[i].len - from);
		to += pieces[i].len - from;
	}
	uv_buf_t buf = uv_buf_init(write->bytes, (unsigned)len);
	int err = uv_write(&write->uv, (uv_stream_t *)&conn->tcp, &buf, 1, loop_net_on_written);
	/* It fails at once only for a handle without socket. */
	ASSERT(!err);
}

static size_t loop_net_len(const struct slice *pieces, size_t count)
{
	size_t len = 0;
	ASSERT(count <= WRITE_PIECES_MAX);
	for (size_t i = 0; i < count; i++)
		len += pieces[i].len;
	ASSERT(len <= UINT32_MAX);
	return len;
}

void loop_net_write(struct loop_conn *conn, const struct slice *pieces, size_t count)
{
	size_t len = loop_net_len(pieces, count);
	if (conn->broken || !len)
		return;
	size_t sent = loop_net_unsent(conn) ? 0 : try_write(conn, pieces, count);
	if (sent < len)
		write_rest(conn, pieces, count, sent, len - sent);
}

void loop_conn_write(struct loop_conn *conn, const struct slice *pieces, size_t count)
{
	if (conn->tls)
		tls_conn_write(conn, pieces, count);
	else
		loop_net_write(conn, pieces, count);
}

size_t loop_net_unsent(const struct loop_conn *conn)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&conn->tcp);
}

size_t loop_conn_unsent(const struct loop_conn *conn)
{
	return loop_net_unsent(conn) + (conn->tls ? tls_conn_unsent(conn) : 0);
}

size_t loop_conn_unread(const struct loop_conn *conn)
{
	uv_os_fd_t fd;
	int bytes = 0;
	if (uv_fileno((const uv_handle_t *)&conn->tcp, &fd) || ioctl(fd, FIONREAD, &bytes) ||
	    bytes < 0)
		bytes = 0;
	return (size_t)bytes + (conn->tls ? tls_conn_unread(conn) : 0);
}

/* ---- Closing --------------------------------------------------------------------------------- */

struct loop_address loop_conn_peer(const struct loop_conn *conn)
{
	return conn->peer;
}

int loop_conn_peer_uid(const struct loop_conn *conn, uid_t *uid)
{
	uv_os_fd_t fd;
	struct ucred peer;
	int family;
	socklen_t len = sizeof(family), peer_len = sizeof(peer);
	int err = uv_fileno((const uv_handle_t *)&conn->tcp, &fd);
	if (err)
		return err;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len))
		return -errno;
	if (family != AF_UNIX)
		return ERR_NOT_FOUND;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len))
		return -errno;
	*uid = peer.uid;
	return 0;
}

void loop_net_shutdown(struct loop_conn *conn)
{
	/* A failure means that the connection is gone, which reading or writing will tell. */
	if (!conn->broken)
		uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, NULL);
}

void loop_conn_shutdown(struct loop_conn *conn)
{
	if (conn->tls)
		tls_conn_shutdown(conn);
	else
		loop_net_shutdown(conn);
}

static void on_conn_closed(uv_handle_t *handle)
{
	struct loop_conn *conn = CONTAINER_OF((uv_tcp_t *)handle, struct loop_conn, tcp);
	if (conn->events)
		conn->events->closed(conn->owner);
	tls_conn_free(conn->tls);
	mem_free(conn);
}

void loop_conn_close(struct loop_conn *conn)
{
	if (conn->tls)
		tls_conn_end(conn);
	uv_close((uv_handle_t *)&conn->tcp, on_conn_closed);
}
