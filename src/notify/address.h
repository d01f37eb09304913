/* Addresses of sockets. */
#ifndef NOTIFY_ADDRESS_H
#define NOTIFY_ADDRESS_H

#include <sys/socket.h>

#include "base/base.h"

/* Pure. Whether an address is of this machine, of a network that is not the public one, or of no
 * machine at all: by the registries of special purposes (RFC 6890), and whatever IPv6 has them in
 * (::ffff:0:0/96, 64:ff9b::/96, 2002::/16). So is whatever is neither IPv4 nor IPv6. */
bool address_is_internal(const struct sockaddr *address, size_t len);

/* Whether an interface of this machine has the address now. Asks the kernel. */
bool address_is_own(const struct sockaddr *address);

#endif
