/* The command line of `granary snmp`, for its subcommands that lie in other files. */
#ifndef CMD_SNMP_REQUEST_H
#define CMD_SNMP_REQUEST_H

#include "snmp/client.h"

struct snmp_request {
	struct snmp_credentials credentials; /* by the option letters of net-snmp */
	struct snmp_device_options options;
	const char *const *words; /* what is no option */
	size_t word_count;
};

enum { SNMP_HOST_MAX_BYTES = 256 };

/* ERR_INVALID after a complaint. Points into argv and static memory: one at a time. */
int snmp_request_parse(int argc, char *const *argv, struct snmp_request *request) MUST_CHECK;
/* HOST, HOST:PORT, [IPv6]:PORT. ERR_INVALID after a complaint. */
int snmp_request_device(const char *device, char host[SNMP_HOST_MAX_BYTES],
			uint16_t *port) MUST_CHECK;

/* `poll-once`, with the arguments after it: client_snmp_poll.c. The exit status. */
int client_snmp_poll(int argc, char *const *argv);

#endif
