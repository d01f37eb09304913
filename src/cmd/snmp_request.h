/* The command line of `granary snmp`: option letters in the manner of net-snmp, and words. */
#ifndef CMD_SNMP_REQUEST_H
#define CMD_SNMP_REQUEST_H

#include "snmp/client.h"

enum {
	SNMP_HOST_MAX_BYTES = 256,
	SNMP_PORT_MAX_BYTES = 16,
	SNMP_REQUEST_WORDS_MAX = SNMP_COLUMNS_MAX + 2,
};

struct snmp_request {
	struct snmp_credentials credentials; /* in argv, and in engine_id */
	struct snmp_device_options options;
	bool numeric, level_given;
	uint8_t engine_id[USM_ENGINE_ID_MAX_BYTES];
	const char *words[SNMP_REQUEST_WORDS_MAX]; /* what is no option */
	size_t word_count;
};

/* ERR_INVALID after a complaint. It points into argv and into itself: not to be copied. */
int snmp_request_parse(int argc, char *const *argv, struct snmp_request *request) MUST_CHECK;
/* `host`, `host:port`, `1.2.3.4:161`, `[::1]:161`, `::1`; `udp:` in front says nothing new. Text
 * that is too long is cut. */
void snmp_request_split(const char *device, char host[SNMP_HOST_MAX_BYTES],
			char port[SNMP_PORT_MAX_BYTES]);
/* The same, where the port is a number. ERR_INVALID after a complaint. */
int snmp_request_device(const char *device, char host[SNMP_HOST_MAX_BYTES],
			uint16_t *port) MUST_CHECK;

/* `poll-once`, with the arguments after it: client_snmp_poll.c. The exit status. */
int client_snmp_poll(int argc, char *const *argv);

#endif
