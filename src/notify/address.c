#include "notify/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

struct address_network {
	uint8_t bytes[16];
	unsigned bits;
};

static const struct address_network address_internal_4[] = {
	{{0}, 8},             /* this network */
	{{10}, 8},            /* private */
	{{100, 64}, 10},      /* shared, behind carriers' translators */
	{{127}, 8},           /* this machine */
	{{169, 254}, 16},     /* the link; machines of clouds have their keys there */
	{{172, 16}, 12},      /* private */
	{{192, 0, 0}, 24},    /* assignments of protocols */
	{{192, 0, 2}, 24},    /* documents */
	{{192, 88, 99}, 24},  /* 6to4 relays */
	{{192, 168}, 16},     /* private */
	{{198, 18}, 15},      /* benchmarks */
	{{198, 51, 100}, 24}, /* documents */
	{{203, 0, 113}, 24},  /* documents */
	{{224}, 4},           /* many receivers */
	{{240}, 4},           /* reserved; the last is for all of a link */
};

static const struct address_network address_internal_6[] = {
	{{0}, 64},                                  /* none, this machine, and old forms of IPv4 */
	{{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48}, /* translators' own */
	{{0x01, 0x00}, 64},                         /* discarded */
	{{0x20, 0x01, 0x00}, 23},       /* assignments of protocols, Teredo among them */
	{{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documents */
	{{0x3f, 0xff}, 20},             /* documents */
	{{0x5f, 0x00}, 16},             /* segments */
	{{0xfc}, 7},                    /* private */
	{{0xfe, 0x80}, 10},             /* the link */
	{{0xfe, 0xc0}, 10},             /* the site, of old */
	{{0xff}, 8},                    /* many receivers */
};

/* An IPv4 address in one of IPv6: behind this many bytes. */
static const struct {
	struct address_network network;
	size_t at;
} address_within[] = {
	{{{[10] = 0xff, [11] = 0xff}, 96}, 12},
	{{{0x00, 0x64, 0xff, 0x9b}, 96}, 12},
	{{{0x20, 0x02}, 16}, 2},
};

static bool address_is_of(const uint8_t *bytes, const struct address_network *network)
{
	unsigned whole = network->bits / 8, rest = network->bits % 8;
	if (memcmp(bytes, network->bytes, whole) != 0)
		return false;
	return !rest || ((bytes[whole] ^ network->bytes[whole]) >> (8 - rest)) == 0;
}

static bool address_is_internal_4(const uint8_t *bytes)
{
	for (size_t i = 0; i < ARRAY_LEN(address_internal_4); i++)
		if (address_is_of(bytes, &address_internal_4[i]))
			return true;
	return false;
}

static bool address_is_internal_6(const uint8_t *bytes)
{
	for (size_t i = 0; i < ARRAY_LEN(address_within); i++)
		if (address_is_of(bytes, &address_within[i].network))
			return address_is_internal_4(bytes + address_within[i].at);
	for (size_t i = 0; i < ARRAY_LEN(address_internal_6); i++)
		if (address_is_of(bytes, &address_internal_6[i]))
			return true;
	return false;
}

bool address_is_internal(const struct sockaddr *address, size_t len)
{
	struct sockaddr_in four;
	struct sockaddr_in6 six;
	if (address->sa_family == AF_INET && len >= sizeof(four)) {
		memcpy(&four, address, sizeof(four));
		return address_is_internal_4((const uint8_t *)&four.sin_addr);
	}
	if (address->sa_family == AF_INET6 && len >= sizeof(six)) {
		memcpy(&six, address, sizeof(six));
		return address_is_internal_6((const uint8_t *)&six.sin6_addr);
	}
	return true;
}

static bool address_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
		      &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
		      sizeof(struct in6_addr)) == 0;
}

/* Where the kernel does not say which there are, all are. */
bool address_is_own(const struct sockaddr *address)
{
	struct ifaddrs *all;
	if (getifaddrs(&all))
		return true;
	bool own = false;
	for (const struct ifaddrs *one = all; one && !own; one = one->ifa_next)
		own = one->ifa_addr && address_is_same(one->ifa_addr, address);
	freeifaddrs(all);
	return own;
}
