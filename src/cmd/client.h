/* The client commands: query, series, metric, put, stats, verify, compact, repair, delete, queue,
 * rollup, retention, clock, device, oidset, interface, poller. They talk to a server's API by HTTP;
 * stats and verify can instead open a data directory that no server has open, and compact and
 * repair always do. `snmp` asks a device.
 *
 * Each takes the arguments after its name and gives the exit status: 0 all is well, 1 it could not
 * be done (or verify found something), 2 the command line is wrong. What is asked for goes to
 * standard output, as a table on a terminal, else as CSV, or as -o says; sentences go to standard
 * error.
 *
 * One thread; blocking. */
#ifndef CMD_CLIENT_H
#define CMD_CLIENT_H

int client_query(int argc, char *const *argv);
int client_series(int argc, char *const *argv);
int client_metric(int argc, char *const *argv);
int client_put(int argc, char *const *argv);
int client_stats(int argc, char *const *argv);
int client_verify(int argc, char *const *argv);
int client_compact(int argc, char *const *argv);
int client_repair(int argc, char *const *argv);
int client_snmp(int argc, char *const *argv);
int client_recompute(int argc, char *const *argv);
int client_rollup(int argc, char *const *argv);
int client_retention(int argc, char *const *argv);
int client_clock(int argc, char *const *argv);
int client_delete(int argc, char *const *argv);
int client_queue(int argc, char *const *argv);
int client_device(int argc, char *const *argv);
int client_oidset(int argc, char *const *argv);
int client_interface(int argc, char *const *argv);
int client_poller(int argc, char *const *argv);

/* Usage, options and examples, as `granary help NAME` prints them. */
extern const char client_query_help[];
extern const char client_series_help[];
extern const char client_metric_help[];
extern const char client_put_help[];
extern const char client_stats_help[];
extern const char client_verify_help[];
extern const char client_compact_help[];
extern const char client_repair_help[];
extern const char client_snmp_help[];
extern const char client_queue_help[];
extern const char client_rollup_help[];
extern const char client_retention_help[];
extern const char client_clock_help[];
extern const char client_delete_help[];
extern const char client_recompute_help[];
extern const char client_device_help[];
extern const char client_oidset_help[];
extern const char client_interface_help[];
extern const char client_poller_help[];

#endif
