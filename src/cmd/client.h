/* The client commands. They talk to a server's API by HTTP; stats and verify can instead open a
 * data directory that no server has open, and compact and repair always do; restore makes one.
 * `snmp` asks a device.
 *
 * Their exit status: 0 all is well, 1 it could not be done (or verify found something), 2 the
 * command line is wrong. What is asked for goes to standard output, as a table on a terminal, else
 * as CSV, or as -o says; sentences go to standard error.
 *
 * One thread; blocking. */
#ifndef CMD_CLIENT_H
#define CMD_CLIENT_H

#include "cmd/command.h"

extern const struct command client_agent, client_backup, client_board, client_clock, client_compact,
	client_delete, client_device, client_export, client_fault, client_import, client_interface,
	client_metric, client_oidset, client_poller, client_put, client_query, client_queue,
	client_recompute, client_repair, client_restore, client_retention, client_rollup,
	client_series, client_session, client_snmp, client_stats, client_stream, client_token,
	client_user, client_verify;

#endif
