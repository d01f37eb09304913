/* The poller alone, on real sockets: polls the devices that the command line names until standard
 * input ends, and prints what it gives.
 *
 *   poller_run NAME=HOST:PORT=OIDSET[,OIDSET...] ... [--CONFIGURATION...]
 *
 * Lines `device,oidset,path,oid,value,row's time in ms`; behind them its counters, and of each
 * device `state NAME: error`. Community `public`. */
#include <unistd.h>

#include "base/stats.h"
#include "inventory/private.h"
#include "model/poll.h"
#include "snmp/poller.h"

enum { DEVICES_MAX = 1000, SPEC_OIDSETS_MAX = 16 };

static const struct credentials credentials = {
	.name = SLICE("test"), .version = SNMP_V2C, .community = SLICE("public")};

/* ---- Printing -------------------------------------------------------------------------------- */

static void print_value(const struct poll *poll, const struct poll_names *names,
			const struct poll_values *values, size_t row, size_t column)
{
	struct value v = values->values[row * poll->column_count + column];
	const struct poll_row *path = &names->rows[row];
	if (v.type == VALUE_NONE)
		return;
	printf("%.*s,%.*s,", (int)poll->device.len, poll->device.data, (int)poll->oidset.len,
	       poll->oidset.data);
	for (size_t i = 0; i < path->part_count; i++)
		printf(i ? ":%.*s" : "%.*s", (int)path->parts[i].len, path->parts[i].data);
	printf(",%.*s,%llu,%lld\n", (int)names->columns[column].len, names->columns[column].data,
	       (unsigned long long)v.bits, (long long)values->row_ts_ms[row]);
}

static int print_message(UNUSED void *owner, UNUSED const struct oidset *oidset,
			 UNUSED struct slice device, struct slice message)
{
	struct poll poll;
	struct poll_names names;
	struct poll_values values;
	struct arena arena;
	struct errbuf e;
	arena_init(&arena, POLL_ARENA_MAX_BYTES);
	ASSERT(poll_open(message, &poll, &e) == 0);
	ASSERT(poll_decode_names(&poll, &arena, &names, &e) == 0);
	ASSERT(poll_decode_values(&poll, &arena, &values, &e) == 0);
	for (size_t row = 0; row < poll.row_count; row++)
		for (size_t c = 0; c < poll.column_count; c++)
			print_value(&poll, &names, &values, row, c);
	fflush(stdout);
	arena_release(&arena);
	return 0;
}

static void print_stats(void)
{
	for (size_t i = 0; i < STAT_COUNT; i++)
		if (strncmp(stat_defs[i].name, "granary_poll", 12) == 0 && stat_values[i])
			printf("%s{%s} %lld\n", stat_defs[i].name, stat_defs[i].label,
			       (long long)stat_values[i]);
}

/* ---- Devices --------------------------------------------------------------------------------- */

static struct device *make_device(char *text, struct inventory_conf *conf)
{
	struct slice oidsets[SPEC_OIDSETS_MAX];
	char *rest = text, *name = strsep(&rest, "="), *host = strsep(&rest, "="), *one;
	char *port = host ? strrchr(host, ':') : NULL;
	struct device_spec spec = device_spec_preset();
	ASSERT(port && rest);
	*port++ = 0;
	spec.name = slice_of(name);
	spec.oidsets = oidsets;
	while ((one = strsep(&rest, ",")) && spec.oidset_count < SPEC_OIDSETS_MAX)
		oidsets[spec.oidset_count++] = slice_of(one);
	struct device *device =
		device_new(&spec, slice_of(host), (uint16_t)strtoul(port, NULL, 10), conf, NULL);
	ASSERT(device && device->oidset_count == spec.oidset_count);
	device->credentials = &credentials;
	device->begin_ms = 0;
	return device;
}

static void print_states(const struct inventory *inventory)
{
	for (size_t i = 0; i < inventory->device_count; i++) {
		const struct device *device = inventory->devices[i];
		struct device_status status = device_state_read(device->state);
		printf("state %.*s: %s\n", (int)device->name.len, device->name.data, status.error);
	}
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void closed(void *owner)
{
	*(bool *)owner = true;
}

static void run_poller(struct inventory *inventory)
{
	struct task_queue queue;
	struct poller *poller;
	struct errbuf e;
	bool over = false;
	char bytes[64];
	task_queue_init(&queue);
	struct poller_options options = {
		.clock = clock_real(), .sink = {print_message, NULL}, .executor = &queue.executor};
	if (poller_open(&options, &poller, &e)) {
		fprintf(stderr, "%s\n", e.text);
		exit(1);
	}
	poller_set_inventory(poller, inventory);
	while (read(STDIN_FILENO, bytes, sizeof(bytes)) > 0)
		;
	poller_close(poller, closed, &over);
	while (!over)
		task_queue_wait(&queue);
	task_queue_release(&queue);
}

int main(int argc, char **argv)
{
	const struct device *devices[DEVICES_MAX];
	struct inventory_conf *inventory_conf;
	struct conf *conf = conf_new();
	struct errbuf e;
	size_t count = 0;
	int first = 1;
	while (first < argc && strncmp(argv[first], "--", 2) != 0)
		first++;
	int err = conf_read(conf, files_real(), argc - first, argv + first, &e);
	err = err ? err : inventory_conf_read(conf, files_real(), &inventory_conf, &e);
	if (err) {
		fprintf(stderr, "%s\n", e.text);
		return 2;
	}
	for (int i = 1; i < first && count < DEVICES_MAX; i++)
		devices[count++] = make_device(argv[i], inventory_conf);
	struct inventory *inventory = inventory_new(inventory_conf, devices, count, 1);
	run_poller(inventory);
	print_states(inventory);
	print_stats();
	inventory_release(inventory);
	for (size_t i = 0; i < count; i++)
		device_release(devices[i]);
	inventory_conf_release(inventory_conf);
	conf_free(conf);
	return 0;
}
