/* The arguments of `granary snmp`, whose options are letters in the manner of net-snmp. */
#ifndef CMD_SNMP_REQUEST_H
#define CMD_SNMP_REQUEST_H

#include "cmd/command.h"
#include "snmp/client.h"

enum { SNMP_HOST_MAX_BYTES = 256, SNMP_PORT_MAX_BYTES = 16 };

struct snmp_request {
	struct command_args line;
	const char *device, *oidset;
	struct command_words oids;
	struct snmp_credentials credentials; /* in argv, and in engine_id */
	struct snmp_device_options options;
	const enum snmp_level *level; /* NULL: as passwords are given */
	struct snmp_request_engine {
		uint8_t bytes[USM_ENGINE_ID_MAX_BYTES];
		size_t len;
	} engine_id;
	unsigned timeout_ms;
	int64_t retries, repetitions_max;
	bool numeric;
};

extern const struct command_type snmp_request_text, snmp_request_version, snmp_request_level,
	snmp_request_auth, snmp_request_priv, snmp_request_hex, snmp_request_seconds;

/* What options that go together come to. It points into itself: not to be copied afterwards. */
void snmp_request_finish(struct snmp_request *request);

/* `host`, `host:port`, `1.2.3.4:161`, `[::1]:161`, `::1`; `udp:` in front says nothing new. Text
 * that is too long is cut. */
void snmp_request_split(const char *device, char host[SNMP_HOST_MAX_BYTES],
			char port[SNMP_PORT_MAX_BYTES]);

/* `get`, `walk` and `discover` are in client_snmp.c, this is in client_snmp_poll.c. The exit
 * status.
 */
int client_snmp_poll_once(const struct command_args *args);

#endif
