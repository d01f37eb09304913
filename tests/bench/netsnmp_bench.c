/* The peer: net-snmp's asynchronous client, polling alone. Sessions, one request in flight each,
 * walk the ten counters of their agent's interfaces over and over, and what they parse is counted
 * and dropped.
 *
 *   netsnmp_bench --port N [--sessions 64] [--rows 48] [--seconds 5]
 *
 * Requests are made as good as may be: GETBULK of all ten columns with as many rows as fit into a
 * frame, and none behind the last one. Prints one JSON object: varbinds, CPU seconds, and varbinds
 * per CPU second of this process. */
#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/cpu_time.h"

enum { COLUMNS = 10, OID_ARCS = 11, ROWS_AT_ONCE = 5, SESSIONS_MAX = 256 };

static const oid columns[COLUMNS][OID_ARCS] = {
	{1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6},  {1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7},
	{1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 8},  {1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 9},
	{1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10}, {1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11},
	{1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 12}, {1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 13},
	{1, 3, 6, 1, 2, 1, 2, 2, 1, 14},     {1, 3, 6, 1, 2, 1, 2, 2, 1, 20},
};
static const size_t column_arcs[COLUMNS] = {11, 11, 11, 11, 11, 11, 11, 11, 10, 10};

struct session {
	netsnmp_session *handle;
	long row; /* the last one that came */
};

static struct {
	long rows, port, count, seconds;
	struct session sessions[SESSIONS_MAX];
	uint64_t varbinds, sum;
	time_t end;
} bench = {.rows = 48, .count = 64, .seconds = 5};

static void die(const char *what)
{
	fprintf(stderr, "netsnmp_bench: %s\n", what);
	exit(1);
}

static void ask(struct session *session)
{
	long left = bench.rows - session->row;
	netsnmp_pdu *pdu = snmp_pdu_create(SNMP_MSG_GETBULK);

	pdu->non_repeaters = 0;
	pdu->max_repetitions = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
	for (size_t i = 0; i < COLUMNS; i++) {
		oid name[OID_ARCS + 1];
		memcpy(name, columns[i], column_arcs[i] * sizeof(oid));
		name[column_arcs[i]] = (oid)session->row;
		snmp_add_null_var(pdu, name, column_arcs[i] + (session->row > 0));
	}
	if (!snmp_send(session->handle, pdu))
		die("a request cannot be sent");
}

/* Looks at every value, as anybody would who wants it. */
static void take(struct session *session, const netsnmp_pdu *pdu)
{
	long count = 0;

	for (const netsnmp_variable_list *v = pdu->variables; v; v = v->next_variable, count++) {
		if (v->type == ASN_COUNTER64)
			bench.sum += v->val.counter64->low;
		else if (v->type == ASN_COUNTER)
			bench.sum += (uint64_t)*v->val.integer;
		else
			die("a value of another type");
	}
	bench.varbinds += (uint64_t)count;
	session->row += count / COLUMNS;
	if (session->row >= bench.rows)
		session->row = 0;
}

static int replied(int operation, netsnmp_session *handle, int id, netsnmp_pdu *pdu, void *magic)
{
	struct session *session = magic;

	(void)handle;
	(void)id;
	if (operation != NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE)
		session->row = 0;
	else
		take(session, pdu);
	if (time(NULL) < bench.end)
		ask(session);
	else
		bench.count--;
	return 1;
}

static void open_session(struct session *session, long number)
{
	netsnmp_session options;
	char peer[64];

	snmp_sess_init(&options);
	snprintf(peer, sizeof(peer), "udp:127.1.%ld.%ld:%ld", number / 250, number % 250 + 1,
		 bench.port);
	options.version = SNMP_VERSION_2c;
	options.peername = peer;
	options.community = (u_char *)"public";
	options.community_len = 6;
	options.retries = 3;
	options.callback = replied;
	options.callback_magic = session;
	session->handle = snmp_open(&options);
	if (!session->handle)
		die("a session cannot be opened");
}

static void serve(void)
{
	while (bench.count) {
		struct timeval timeout = {1, 0};
		fd_set set;
		int last = 0, block = 0;
		FD_ZERO(&set);
		snmp_select_info(&last, &set, &timeout, &block);
		if (select(last, &set, NULL, NULL, &timeout) > 0)
			snmp_read(&set);
		else
			snmp_timeout();
	}
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"port", required_argument, NULL, 'p'},
		{"sessions", required_argument, NULL, 's'},
		{"rows", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 't'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		long value = optarg ? strtol(optarg, NULL, 10) : 0;
		if (option == 'p')
			bench.port = value;
		else if (option == 's')
			bench.count = value;
		else if (option == 'r')
			bench.rows = value;
		else if (option == 't')
			bench.seconds = value;
		else
			exit(2);
	}
	if (bench.port <= 0 || bench.count <= 0 || bench.count > SESSIONS_MAX || bench.rows <= 0)
		die("--port N [--sessions 1..256] [--rows N] [--seconds N]");
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	setenv("MIBS", "", 1);
	setenv("SNMPCONFPATH", "/tmp", 0);
	setenv("SNMP_PERSISTENT_DIR", "/tmp", 0);
	init_snmp("netsnmp_bench");
	long count = bench.count;
	for (long i = 0; i < count; i++)
		open_session(&bench.sessions[i], i);
	bench.end = time(NULL) + bench.seconds;
	double begun_s = cpu_s();
	for (long i = 0; i < count; i++)
		ask(&bench.sessions[i]);
	serve();
	double took_s = cpu_s() - begun_s;
	printf("{\"varbinds\": %llu, \"cpu_s\": %.3f, \"varbinds per CPU-s\": %.0f}\n",
	       (unsigned long long)bench.varbinds, took_s, (double)bench.varbinds / took_s);
	return 0;
}
