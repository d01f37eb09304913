/* Datagrams. Own recvmmsg over uv_poll: libuv tells neither which datagrams were cut nor how many
 * the kernel has dropped. */
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stats.h"
#include "loop/private.h"

enum {
	AT_ONCE_MAX = 32,     /* datagrams of one system call */
	ROUNDS_PER_EVENT = 8, /* then the other sockets have their turn */
};

struct loop_udp {
	uv_poll_t poll;
	struct loop *loop;
	int fd;
	struct loop_udp_options options;
	bool reading;
	bool in_pieces; /* datagrams may be longer than what the path takes at one go */
	uint32_t lost;  /* as the kernel counts, when it was last asked */
};

/* Datagrams that are never sent in pieces need no number by which these are put together again
 * (RFC 6864 section 4.1), and to draw one costs as much as to find the route. Where one is too long
 * for the path after all, all may be sent in pieces from then on, as is usual. */
static void send_in_pieces(struct loop_udp *udp, bool on)
{
	int how = on ? IP_PMTUDISC_WANT : IP_PMTUDISC_DO;
	bool can = !udp->options.address.v6 &&
		   !setsockopt(udp->fd, IPPROTO_IP, IP_MTU_DISCOVER, &how, sizeof(how));
	udp->in_pieces = on || !can;
}

static int loop_udp_open_socket(struct loop_udp *udp)
{
	struct loop_address *address = &udp->options.address;
	struct sockaddr_storage to;
	socklen_t len = loop_to_sockaddr(address, &to);
	int on = 1, bytes = (int)udp->options.buffer_bytes;
	udp->fd = socket(address->v6 ? AF_INET6 : AF_INET,
			 SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (udp->fd < 0)
		return -errno;
	int err = 0;
	if (address->v6)
		err = setsockopt(udp->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) ? -errno : 0;
	/* What the kernel allows at most is taken without an error; root may take more. */
	if (!err && bytes && setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		err = setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) ? -errno
											: 0;
	if (!err)
		err = bind(udp->fd, (struct sockaddr *)&to, len) ? -errno : 0;
	if (!err)
		err = loop_bound_port(udp->fd, &address->port);
	if (err)
		close(udp->fd);
	return err;
}

/* How many were read; *more: there may be more of them. */
static size_t read_some(struct loop_udp *udp, bool *more)
{
	struct mmsghdr messages[AT_ONCE_MAX];
	struct iovec pieces[AT_ONCE_MAX];
	struct loop_datagram datagrams[AT_ONCE_MAX];
	struct sockaddr_storage from[AT_ONCE_MAX];
	size_t max_bytes = udp->options.datagram_max_bytes;
	bool named = udp->options.client || udp->options.senders;
	size_t places = LOOP_READ_BYTES / max_bytes;
	if (places > AT_ONCE_MAX)
		places = AT_ONCE_MAX;
	memset(messages, 0, sizeof(messages));
	for (size_t i = 0; i < places; i++) {
		pieces[i] = (struct iovec){udp->loop->read_buffer + i * max_bytes, max_bytes};
		messages[i].msg_hdr.msg_iov = &pieces[i];
		messages[i].msg_hdr.msg_iovlen = 1;
		if (named) {
			messages[i].msg_hdr.msg_name = &from[i];
			messages[i].msg_hdr.msg_namelen = sizeof(from[i]);
		}
	}
	/* An error is of one datagram (an ICMP answer to nobody) or passes: the next event tells.
	 */
	int count = recvmmsg(udp->fd, messages, (unsigned)places, MSG_DONTWAIT, NULL);
	*more = count == (int)places;
	if (count <= 0)
		return 0;
	for (int i = 0; i < count; i++)
		datagrams[i] =
			(struct loop_datagram){.bytes = {pieces[i].iov_base, messages[i].msg_len},
					       .cut = messages[i].msg_hdr.msg_flags & MSG_TRUNC};
	for (int i = 0; i < count && named; i++)
		datagrams[i].from = loop_address_of((const struct sockaddr *)&from[i]);
	udp->options.received(udp->options.owner, datagrams, (size_t)count);
	return (size_t)count;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct loop_udp *udp = CONTAINER_OF(poll, struct loop_udp, poll);
	(void)status;
	(void)events;
	bool more = true;
	for (int i = 0; i < ROUNDS_PER_EVENT && udp->reading && more; i++)
		(void)read_some(udp, &more);
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* At most AT_ONCE_MAX. How many were taken, or an error of the first. */
static int send_some(struct loop_udp *udp, const struct loop_outgoing *outgoing, size_t count)
{
	struct mmsghdr messages[AT_ONCE_MAX];
	struct iovec pieces[AT_ONCE_MAX];
	struct sockaddr_storage to[AT_ONCE_MAX];
	memset(messages, 0, sizeof(messages[0]) * count);
	for (size_t i = 0; i < count; i++) {
		ASSERT(outgoing[i].to.v6 == udp->options.address.v6);
		pieces[i] = (struct iovec){(void *)(uintptr_t)outgoing[i].bytes.data,
					   outgoing[i].bytes.len};
		messages[i].msg_hdr.msg_iov = &pieces[i];
		messages[i].msg_hdr.msg_iovlen = 1;
		messages[i].msg_hdr.msg_name = &to[i];
		messages[i].msg_hdr.msg_namelen = loop_to_sockaddr(&outgoing[i].to, &to[i]);
	}
	int sent = sendmmsg(udp->fd, messages, (unsigned)count, MSG_DONTWAIT);
	return sent < 0 ? -errno : sent;
}

size_t loop_udp_send(struct loop_udp *udp, const struct loop_outgoing *outgoing, size_t count)
{
	size_t taken = 0;
	ASSERT(udp->options.client);
	while (taken < count) {
		size_t n = count - taken < AT_ONCE_MAX ? count - taken : AT_ONCE_MAX;
		int sent = send_some(udp, outgoing + taken, n);
		if (sent == -EAGAIN || sent == -ENOBUFS || sent == -EINTR)
			break;
		if (sent == -EMSGSIZE && !udp->in_pieces) {
			send_in_pieces(udp, true);
			continue;
		}
		if (sent < 0)
			stat_add(STAT_udp_unsendable, 1);
		taken += sent > 0 ? (size_t)sent : 1;
	}
	return taken;
}

/* ---- Life ------------------------------------------------------------------------------------ */

void loop_udp_read(struct loop_udp *udp, bool on)
{
	if (udp->reading == on)
		return;
	udp->reading = on;
	if (on)
		uv_poll_start(&udp->poll, UV_READABLE, on_readable);
	else
		uv_poll_stop(&udp->poll);
}

bool loop_udp_read_now(struct loop_udp *udp)
{
	bool more;
	(void)read_some(udp, &more);
	return more;
}

uint32_t loop_udp_lost(struct loop_udp *udp)
{
	uint32_t memory[SK_MEMINFO_VARS];
	socklen_t len = sizeof(memory);
	if (getsockopt(udp->fd, SOL_SOCKET, SO_MEMINFO, memory, &len) || len < sizeof(memory))
		return 0; /* a kernel before 4.12 does not tell */
	uint32_t more = memory[SK_MEMINFO_DROPS] - udp->lost;
	udp->lost = memory[SK_MEMINFO_DROPS];
	return more;
}

int loop_udp_open(struct loop *loop, const struct loop_udp_options *options, struct loop_udp **out,
		  struct errbuf *e)
{
	char text[LOOP_ADDRESS_TEXT_BYTES];
	ASSERT(options->datagram_max_bytes &&
	       options->datagram_max_bytes <= LOOP_DATAGRAM_MAX_BYTES);
	struct loop_udp *udp = mem_zalloc(sizeof(*udp));
	udp->loop = loop;
	udp->options = *options;
	int err = loop_udp_open_socket(udp);
	if (!err) {
		err = uv_poll_init(&loop->uv, &udp->poll, udp->fd);
		if (err)
			close(udp->fd);
	}
	if (err) {
		mem_free(udp);
		return errbuf_set(e, err, "cannot receive at %s: %s",
				  loop_address_text(&options->address, text), err_text(err));
	}
	send_in_pieces(udp, false);
	loop_udp_read(udp, true);
	*out = udp;
	return 0;
}

struct loop_address loop_udp_address(const struct loop_udp *udp)
{
	return udp->options.address;
}

static void loop_udp_on_closed(uv_handle_t *handle)
{
	mem_free(CONTAINER_OF((uv_poll_t *)handle, struct loop_udp, poll));
}

void loop_udp_close(struct loop_udp *udp)
{
	if (!udp)
		return;
	udp->reading = false;
	uv_close((uv_handle_t *)&udp->poll, loop_udp_on_closed);
	close(udp->fd); /* libuv has stopped polling it */
}
