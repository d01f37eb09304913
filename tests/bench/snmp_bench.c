/* Our client, polling alone: devices are walked over and over, and what came is dropped.
 *
 *   snmp_bench --port N [--devices 64] [--seconds 5]
 *
 * The ten counters of the canned agent's interfaces, as netsnmp_bench asks for them. Prints one
 * JSON object: varbinds, CPU seconds, and varbinds per CPU second of this process. */
#include <getopt.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"
#include "bench/cpu_time.h"
#include "loop/loop.h"
#include "snmp/client.h"
#include "wire/oid.h"

enum { COLUMNS = 10, ADDRESS_BYTES = 32 };

static const char *const columns[COLUMNS] = {
	"1.3.6.1.2.1.31.1.1.1.6",  "1.3.6.1.2.1.31.1.1.1.7",  "1.3.6.1.2.1.31.1.1.1.8",
	"1.3.6.1.2.1.31.1.1.1.9",  "1.3.6.1.2.1.31.1.1.1.10", "1.3.6.1.2.1.31.1.1.1.11",
	"1.3.6.1.2.1.31.1.1.1.12", "1.3.6.1.2.1.31.1.1.1.13", "1.3.6.1.2.1.2.2.1.14",
	"1.3.6.1.2.1.2.2.1.20",
};

static struct {
	size_t devices, running;
	int64_t seconds, end_ms;
	unsigned port;
	struct loop *loop;
	struct snmp_client *client;
	struct snmp_device **list;
	uint8_t memory[COLUMNS][OID_MAX_BYTES];
	struct slice oids[COLUMNS];
	uint64_t varbinds, sum, requests;
} bench = {.devices = 64, .seconds = 5};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "snmp_bench: %s: %s\n", what, why);
	exit(1);
}

static void walk(struct snmp_device *device);

static void took(UNUSED void *owner, const struct snmp_reply *reply)
{
	for (size_t i = 0; i < reply->count; i++)
		bench.sum += reply->cells[i].value.u64;
	bench.varbinds += reply->count;
}

static void walked(void *owner, const struct snmp_result *result)
{
	bench.requests += result->requests;
	if (result->err)
		die("a walk", result->sentence);
	if (clock_mono_ms(clock_real()) < bench.end_ms)
		walk(owner);
	else if (--bench.running == 0)
		loop_stop(bench.loop);
}

static void walk(struct snmp_device *device)
{
	static const struct snmp_events events = {took, walked};
	int err = snmp_walk(device, bench.oids, NULL, COLUMNS, &events, device, NULL);
	if (err)
		die("a walk", err_text(err));
}

static struct snmp_device *open_device(size_t number, struct snmp_login *login)
{
	const struct snmp_device_options options = {.retries = 3};
	struct loop_address address;
	char text[ADDRESS_BYTES];
	struct errbuf e;

	snprintf(text, sizeof(text), "127.1.%zu.%zu:%u", number / 250, number % 250 + 1,
		 bench.port);
	if (loop_address_parse(slice_of(text), &address, &e))
		die(text, e.text);
	return snmp_device_new(bench.client, &address, login, &options);
}

static void open_all(void)
{
	const struct snmp_client_options options = {0};
	const struct snmp_credentials credentials = {.version = SNMP_V2C,
						     .community = SLICE("public")};
	struct snmp_login *login;
	struct errbuf e;

	bench.loop = loop_new();
	if (snmp_client_open(bench.loop, clock_real(), &options, &bench.client, &e) ||
	    snmp_login_new(&credentials, &login, &e))
		die("client", e.text);
	for (size_t i = 0; i < COLUMNS; i++)
		if (oid_parse(slice_of(columns[i]), bench.memory[i], &bench.oids[i], &e))
			die(columns[i], e.text);
	bench.list = mem_alloc_array(bench.devices, sizeof(*bench.list));
	for (size_t i = 0; i < bench.devices; i++)
		bench.list[i] = open_device(i, login);
	snmp_login_release(login);
}

static void close_all(void)
{
	for (size_t i = 0; i < bench.devices; i++)
		snmp_device_free(bench.list[i]);
	mem_free(bench.list);
	snmp_client_close(bench.client);
	loop_free(bench.loop);
}

static double run(void)
{
	double begun_s = cpu_s();

	bench.end_ms = clock_mono_ms(clock_real()) + bench.seconds * 1000;
	bench.running = bench.devices;
	for (size_t i = 0; i < bench.devices; i++)
		walk(bench.list[i]);
	loop_run(bench.loop);
	return cpu_s() - begun_s;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"port", required_argument, NULL, 'p'},
		{"devices", required_argument, NULL, 'd'},
		{"seconds", required_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'p')
			bench.port = (unsigned)strtoul(optarg, NULL, 10);
		else if (option == 'd')
			bench.devices = strtoul(optarg, NULL, 10);
		else if (option == 's')
			bench.seconds = strtol(optarg, NULL, 10);
		else
			return 2;
	}
	if (!bench.port || !bench.devices)
		die("usage", "--port N [--devices N] [--seconds N]");
	open_all();
	double took_s = run();
	printf("{\"varbinds\": %llu, \"requests\": %llu, \"cpu_s\": %.3f, \"varbinds per CPU-s\": "
	       "%.0f}\n",
	       (unsigned long long)bench.varbinds, (unsigned long long)bench.requests, took_s,
	       (double)bench.varbinds / took_s);
	close_all();
	return 0;
}
