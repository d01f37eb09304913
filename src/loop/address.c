#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "loop/loop.h"

/* The part before the last colon is the host, which is in brackets if it has colons itself. */
static int loop_address_split(struct slice text, struct slice *host, struct slice *port)
{
	const char *colon = memrchr(text.data, ':', text.len);
	if (!colon)
		return ERR_INVALID;
	*host = (struct slice){text.data, (size_t)(colon - text.data)};
	*port = (struct slice){colon + 1, text.len - host->len - 1};
	return 0;
}

static int parse_port(struct slice text, uint16_t *port)
{
	unsigned value = 0;
	if (!text.len || text.len > 5)
		return ERR_INVALID;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return ERR_INVALID;
		value = value * 10 + (unsigned)(text.data[i] - '0');
	}
	if (value > UINT16_MAX)
		return ERR_INVALID;
	*port = (uint16_t)value;
	return 0;
}

static int parse_host(struct slice host, struct loop_address *address)
{
	char text[INET6_ADDRSTRLEN];
	if (slice_equal(host, SLICE("localhost")))
		host = SLICE("127.0.0.1");
	if (host.len >= 2 && host.data[0] == '[' && host.data[host.len - 1] == ']') {
		address->v6 = true;
		host = (struct slice){host.data + 1, host.len - 2};
	}
	if (host.len >= sizeof(text) || memchr(host.data, 0, host.len))
		return ERR_INVALID;
	memcpy(text, host.data, host.len);
	text[host.len] = 0;
	int family = address->v6 ? AF_INET6 : AF_INET;
	return inet_pton(family, text, address->bytes) == 1 ? 0 : ERR_INVALID;
}

int loop_address_parse(struct slice text, struct loop_address *address, struct errbuf *e)
{
	struct slice host, port;
	*address = (struct loop_address){0};
	int shown = text.len > 100 ? 100 : (int)text.len;
	if (!text.len || loop_address_split(text, &host, &port))
		return errbuf_set(e, ERR_INVALID,
				  "address '%.*s' has no port: write it as 127.0.0.1:8470", shown,
				  text.data ? text.data : "");
	if (parse_port(port, &address->port))
		return errbuf_set(e, ERR_INVALID, "address '%.*s': the port is no number to 65535",
				  shown, text.data);
	if (parse_host(host, address))
		return errbuf_set(e, ERR_INVALID,
				  "address '%.*s': the host is neither an IPv4 address, nor an "
				  "IPv6 address in brackets, nor localhost",
				  shown, text.data);
	return 0;
}

const char *loop_address_text(const struct loop_address *address,
			      char text[LOOP_ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN];
	if (address->of_path) {
		snprintf(text, LOOP_ADDRESS_TEXT_BYTES, "the socket");
		return text;
	}
	inet_ntop(address->v6 ? AF_INET6 : AF_INET, address->bytes, host, sizeof(host));
	snprintf(text, LOOP_ADDRESS_TEXT_BYTES, address->v6 ? "[%s]:%u" : "%s:%u", host,
		 (unsigned)address->port);
	return text;
}

bool loop_address_is_loopback(const struct loop_address *address)
{
	static const uint8_t v6_loopback[16] = {[15] = 1};
	if (address->v6)
		return memcmp(address->bytes, v6_loopback, 16) == 0;
	return address->bytes[0] == 127; /* 127.0.0.0/8, RFC 1122 3.2.1.3 */
}

bool loop_address_equal(const struct loop_address *a, const struct loop_address *b)
{
	return a->v6 == b->v6 && a->port == b->port &&
	       memcmp(a->bytes, b->bytes, a->v6 ? 16 : 4) == 0;
}

struct loop_address loop_address_of(const struct sockaddr *from)
{
	struct loop_address address = {.v6 = from->sa_family == AF_INET6};
	if (address.v6) {
		const struct sockaddr_in6 *in6 = (const void *)from;
		memcpy(address.bytes, &in6->sin6_addr, 16);
		address.port = ntohs(in6->sin6_port);
	} else {
		const struct sockaddr_in *in = (const void *)from;
		memcpy(address.bytes, &in->sin_addr, 4);
		address.port = ntohs(in->sin_port);
	}
	return address;
}

/* ---- Networks -------------------------------------------------------------------------------- */

int loop_host_parse(struct slice text, struct loop_address *address)
{
	bool bracketed = text.len && *text.data == '[';
	/* parse_host() finds brackets by itself, and takes a name. */
	*address = (struct loop_address){.v6 = text.len && !bracketed &&
					       memchr(text.data, ':', text.len)};
	return slice_equal(text, SLICE("localhost")) ? ERR_INVALID : parse_host(text, address);
}

static bool loop_network_has(const struct loop_network *network, const struct loop_address *address)
{
	unsigned bytes = network->bits / 8, rest = network->bits % 8;
	if (address->v6 != network->first.v6 ||
	    memcmp(address->bytes, network->first.bytes, bytes) != 0)
		return false;
	return !rest || (address->bytes[bytes] ^ network->first.bytes[bytes]) >> (8 - rest) == 0;
}

/* The bits behind the first ones are none of the network's. */
static bool loop_network_is_exact(const struct loop_network *network)
{
	for (unsigned bit = network->bits; bit < (network->first.v6 ? 128 : 32); bit++) {
		if (network->first.bytes[bit / 8] >> (7 - bit % 8) & 1)
			return false;
	}
	return true;
}

int loop_network_parse(struct slice text, struct loop_network *network, struct errbuf *e)
{
	const char *slash = text.len ? memchr(text.data, '/', text.len) : NULL;
	struct slice host = {text.data, slash ? (size_t)(slash - text.data) : text.len};
	uint16_t bits = 0;
	int err = loop_host_parse(host, &network->first);
	unsigned bits_max = network->first.v6 ? 128 : 32;
	if (!err && slash)
		err = parse_port((struct slice){slash + 1, text.len - host.len - 1}, &bits);
	network->bits = slash ? bits : bits_max;
	if (err || network->bits > bits_max)
		return errbuf_set(e, ERR_INVALID,
				  "'" SHOWN "' is neither an address nor a network, such as "
				  "192.0.2.0/24 or 2001:db8::/32",
				  SHOWN_OF(text));
	if (!loop_network_is_exact(network))
		return errbuf_set(e, ERR_INVALID,
				  "'" SHOWN "' is an address within a network: behind its first %u "
				  "bits there are more",
				  SHOWN_OF(text), network->bits);
	return 0;
}

bool loop_networks_have(const struct loop_networks *networks, const struct loop_address *address)
{
	for (size_t i = 0; i < networks->count; i++) {
		if (loop_network_has(&networks->list[i], address))
			return true;
	}
	return false;
}
