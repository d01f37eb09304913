/* Devices without a network, on a virtual clock, for tests of the poller: each answers a walk after
 * its latency, from a table that the test changes as it likes. */
#ifndef TESTS_UNIT_SNMP_FAKE_NET_H
#define TESTS_UNIT_SNMP_FAKE_NET_H

#include "inventory/private.h"
#include "snmp/poller_core.h"
#include "snmp_harness.h"

enum {
	FAKE_DEVICES_MAX = 64,
	FAKE_PORTS_MAX = 8,
	FAKE_WALKS_MAX = 256,
	FAKE_TIMEOUT_MS = 6000,
	FAKE_PROBE_TIMEOUT_MS = 1000,
};

#define FAKE_BEGIN_MS INT64_C(1700000000000) /* 2023-11-14 22:13:20 UTC */

struct fake_port {
	uint32_t index; /* 0: none */
	const char *name, *alias;
	uint64_t counter;
	const char *descr;
};

struct fake_device {
	struct fake_port ports[FAKE_PORTS_MAX];
	int64_t latency_ms;
	bool dead;           /* no answer to anything */
	bool hangs;          /* not even the end of a walk */
	bool without_change; /* no ifTableLastChange */
	const char *cut;     /* this column comes to no end */
	uint32_t last_change;
	int64_t booted_ms;
	/* Called when the walk of values begins to be answered, then between its replies. */
	void (*meanwhile)(struct fake_device *device);
	unsigned walks, probes, name_walks;
	int64_t asked_ms[4096]; /* when walks were begun; the latest ones */
};

struct poller_session {
	struct fake_device *device;
};

struct poller_walk {
	struct fake_device *device;
	const struct correlate_plan *plan;
	struct poller_walk_events events;
	void *owner;
	int64_t due_ms;
	bool used;
};

struct fake_resolve {
	poller_resolved_fn *resolved;
	void *owner;
	int64_t due_ms;
};

struct fake_net {
	struct poller_io io;
	struct clock_virtual clock;
	struct core *core;
	struct fake_device devices[FAKE_DEVICES_MAX]; /* by their port */
	struct poller_walk walks[FAKE_WALKS_MAX];
	struct fake_resolve resolves[FAKE_DEVICES_MAX];
	size_t resolve_count, resolved_count;
	uint16_t resolves_to; /* a port; 0: nothing */
	unsigned sessions;
	/* The sink. */
	int sink_err;
	size_t ends;     /* how often that was all for now */
	struct buf text; /* what it took, as lines */
	size_t taken;
	/* The inventory. */
	struct inventory_conf conf;
	struct device storage[FAKE_DEVICES_MAX];
	char names[FAKE_DEVICES_MAX][8];
	const struct device *list[FAKE_DEVICES_MAX];
	struct inventory snapshots[8];
	size_t snapshot_count;
	struct credentials credentials;
};

/* ---- The network ---------------------------------------------------------------------------- */

static inline int64_t fake_now(struct fake_net *net)
{
	return clock_wall_ms(&net->clock.clock);
}

static inline int fake_session_new(struct poller_io *io, const struct loop_address *address,
				   const struct credentials *credentials,
				   struct poller_session **out, struct errbuf *e)
{
	struct fake_net *net = CONTAINER_OF(io, struct fake_net, io);
	assert_non_null(credentials);
	if (credentials->user.len) /* of version 3: not here */
		return errbuf_set(e, ERR_INVALID, "the password is too short");
	struct poller_session *session = mem_alloc(sizeof(*session));
	assert_true(address->port < FAKE_DEVICES_MAX);
	session->device = &net->devices[address->port];
	net->sessions++;
	*out = session;
	return 0;
}

static inline void fake_session_free(struct poller_io *io, struct poller_session *session)
{
	struct fake_net *net = CONTAINER_OF(io, struct fake_net, io);
	for (size_t i = 0; i < FAKE_WALKS_MAX; i++)
		assert_false(net->walks[i].used && net->walks[i].device == session->device);
	net->sessions--;
	mem_free(session);
}

static inline int fake_walk(struct poller_io *io, struct poller_session *session,
			    const struct correlate_plan *plan, bool probe,
			    const struct poller_walk_events *events, void *owner,
			    struct poller_walk **out)
{
	struct fake_net *net = CONTAINER_OF(io, struct fake_net, io);
	struct fake_device *device = session->device;
	struct poller_walk *walk = net->walks;
	while (walk->used)
		walk++;
	assert_true(walk < net->walks + FAKE_WALKS_MAX);
	*walk = (struct poller_walk){device, plan, *events, owner, 0, true};
	int64_t takes_ms = device->hangs   ? INT64_MAX / 4
			   : !device->dead ? device->latency_ms
			   : probe         ? FAKE_PROBE_TIMEOUT_MS
					   : FAKE_TIMEOUT_MS;
	walk->due_ms = fake_now(net) + takes_ms;
	device->probes += probe;
	device->name_walks += !plan->oidset && plan->if_name != SIZE_MAX;
	device->asked_ms[device->walks++ % ARRAY_LEN(device->asked_ms)] = fake_now(net);
	*out = walk;
	return 0;
}

static inline void fake_cancel(struct poller_io *io, struct poller_walk *walk)
{
	(void)io;
	assert_true(walk->used);
	walk->used = false;
}

static inline int fake_resolve(struct poller_io *io, struct slice host, uint16_t port,
			       poller_resolved_fn *resolved, void *owner)
{
	struct fake_net *net = CONTAINER_OF(io, struct fake_net, io);
	(void)host;
	(void)port;
	assert_true(net->resolve_count < FAKE_DEVICES_MAX);
	net->resolves[net->resolve_count++] =
		(struct fake_resolve){resolved, owner, fake_now(net) + 20};
	return 0;
}

/* ---- What devices answer -------------------------------------------------------------------- */

/* Every value is a reply of its own, so that each walk takes several. */
static inline void fake_value(const struct poller_walk *walk, int64_t ts_ms, size_t column,
			      uint32_t index, const struct snmp_value *value)
{
	uint8_t memory[8];
	struct snmp_cell cell = {
		.column = column,
		.index = {(char *)memory, oid_put_arc(memory, index)},
		.value = *value,
	};
	walk->events.reply(walk->owner, &(struct snmp_reply){ts_ms, &cell, 1});
}

static inline void fake_scalar(const struct poller_walk *walk, int64_t now_ms, size_t column)
{
	const struct fake_device *device = walk->device;
	struct snmp_value value = {.type = SNMP_TIMETICKS};
	if (slice_equal(walk->plan->columns[column].def->name, SLICE("sysUpTime")))
		value.u64 = (uint64_t)(now_ms - device->booted_ms) / 10;
	else if (device->without_change)
		return;
	else
		value.u64 = device->last_change;
	fake_value(walk, now_ms, column, 0, &value);
}

static inline void fake_port_value(const struct poller_walk *walk, int64_t now_ms, size_t column,
				   const struct fake_port *port)
{
	struct slice name = walk->plan->columns[column].def->name;
	struct snmp_value value = {.type = SNMP_COUNTER64, .u64 = port->counter};
	if (slice_equal(name, SLICE("ifName")))
		value = text(port->name ? port->name : "");
	else if (slice_equal(name, SLICE("ifDescr")) && port->descr)
		value = text(port->descr);
	else if (slice_equal(name, SLICE("ifAlias")) && port->alias)
		value = text(port->alias);
	else if (!slice_equal(name, SLICE("ifHCInOctets")))
		return;
	fake_value(walk, now_ms, column, port->index, &value);
}

static inline const struct oid_def *fake_cut(const struct poller_walk *walk)
{
	for (size_t c = 0; walk->device->cut && c < walk->plan->count; c++)
		if (slice_equal(walk->plan->columns[c].def->name, slice_of(walk->device->cut)))
			return walk->plan->columns[c].def;
	return NULL;
}

static inline void fake_scalars(struct fake_net *net, const struct poller_walk *walk, bool closing)
{
	const struct correlate_plan *plan = walk->plan;
	for (size_t c = 0; c < plan->count; c++)
		if (plan->columns[c].def->scalar && plan->columns[c].closing == closing)
			fake_scalar(walk, fake_now(net), c);
}

/* Scalars first, as they come, but for those that close; `meanwhile` lies between them and the
 * rows. */
static inline void fake_answer(struct fake_net *net, struct poller_walk *walk)
{
	struct fake_device *device = walk->device;
	const struct correlate_plan *plan = walk->plan;
	if (device->dead) {
		walk->events.done(walk->owner, ERR_TIMEOUT, "no answer", NULL);
		return;
	}
	fake_scalars(net, walk, false);
	if (plan->oidset && device->meanwhile)
		device->meanwhile(device);
	for (size_t p = 0; p < FAKE_PORTS_MAX; p++)
		for (size_t c = 0; c < plan->count && device->ports[p].index; c++)
			if (!plan->columns[c].def->scalar)
				fake_port_value(walk, fake_now(net), c, &device->ports[p]);
	fake_scalars(net, walk, true);
	walk->events.done(walk->owner, 0, "", fake_cut(walk));
}

static inline void fake_deliver(struct fake_net *net)
{
	for (size_t i = 0; i < FAKE_WALKS_MAX; i++) {
		struct poller_walk walk = net->walks[i];
		if (!walk.used || walk.due_ms > fake_now(net))
			continue;
		net->walks[i].used = false;
		fake_answer(net, &walk);
	}
	while (net->resolved_count < net->resolve_count &&
	       net->resolves[net->resolved_count].due_ms <= fake_now(net)) {
		struct fake_resolve *r = &net->resolves[net->resolved_count++];
		struct loop_address address = {.bytes = {127, 0, 0, 1}, .port = net->resolves_to};
		r->resolved(r->owner, net->resolves_to ? &address : NULL, "its name is not known");
	}
}

static inline int64_t fake_next_ms(const struct fake_net *net)
{
	int64_t next_ms = INT64_MAX;
	for (size_t i = 0; i < FAKE_WALKS_MAX; i++)
		if (net->walks[i].used && net->walks[i].due_ms < next_ms)
			next_ms = net->walks[i].due_ms;
	for (size_t i = net->resolved_count; i < net->resolve_count; i++)
		if (net->resolves[i].due_ms < next_ms)
			next_ms = net->resolves[i].due_ms;
	return next_ms;
}

/* Lets that much time pass. */
static inline void fake_run(struct fake_net *net, int64_t for_ms)
{
	int64_t until_ms = fake_now(net) + for_ms;
	for (;;) {
		fake_deliver(net);
		int64_t now_ms = fake_now(net), next_ms = now_ms + core_step(net->core);
		if (fake_next_ms(net) < next_ms)
			next_ms = fake_next_ms(net);
		if (next_ms > until_ms)
			break;
		clock_virtual_advance(&net->clock, (next_ms - now_ms) * 1000);
	}
	clock_virtual_advance(&net->clock, (until_ms - fake_now(net)) * 1000);
}

/* ---- The sink ------------------------------------------------------------------------------- */

/* Lines `device oidset | row`. */
static inline int fake_put(void *owner, const struct oidset *oidset, struct slice device,
			   struct slice message)
{
	struct fake_net *net = owner;
	struct poll poll;
	struct errbuf e;
	if (net->sink_err)
		return net->sink_err;
	assert_int_equal(poll_open(message, &poll, &e), 0);
	assert_true(slice_equal(poll.device, device));
	assert_true(slice_equal(poll.oidset, oidset->name));
	net->taken++;
	if (net->text.len < RIG_TEXT_BYTES / 2)
		print_rig_poll(&net->text, &poll);
	return 0;
}

static inline void fake_end(void *owner)
{
	struct fake_net *net = owner;
	net->ends++;
}

/* What the sink took since the last call, without times. */
static inline const char *fake_taken(struct fake_net *net)
{
	static char out[4096];
	size_t len = 0;
	bool skip = false;
	for (size_t i = 0; i < net->text.len && len + 1 < sizeof(out); i++) {
		char c = net->text.data[i];
		skip = c == '@' || (skip && c != ' ' && c != '\n');
		if (!skip)
			out[len++] = c;
	}
	out[len] = 0;
	buf_clear(&net->text);
	return out;
}

/* ---- The inventory -------------------------------------------------------------------------- */

static inline struct device *fake_device_add(struct fake_net *net, size_t number,
					     const struct oidset *const *oidsets, size_t count)
{
	struct device *d = &net->storage[number];
	snprintf(net->names[number], sizeof(net->names[number]), "r%02zu", number);
	*d = (struct device){
		.name = slice_of(net->names[number]),
		.address = SLICE("127.0.0.1"),
		.port = (uint16_t)number,
		.credentials = &net->credentials,
		.active = true,
		.end_ms = INVENTORY_FOREVER_MS,
		.oidsets = oidsets,
		.oidset_count = count,
		.state = d->state ? d->state : device_state_new(),
	};
	return d;
}

/* A snapshot with these; snapshots are never freed here. */
static inline void fake_show(struct fake_net *net, const struct device *const *list, size_t count)
{
	struct inventory *snapshot = &net->snapshots[net->snapshot_count++];
	*snapshot = (struct inventory){
		.conf = &net->conf, .devices = list, .device_count = count, .references = 1000};
	core_set_inventory(net->core, snapshot);
}

static inline void fake_open(struct fake_net *net)
{
	memset(net, 0, sizeof(*net));
	clock_virtual_init(&net->clock, FAKE_BEGIN_MS * 1000);
	net->io = (struct poller_io){fake_session_new, fake_session_free, fake_walk, fake_cancel,
				     fake_resolve};
	buf_init(&net->text, RIG_TEXT_BYTES);
	struct poller_options options = {.clock = &net->clock.clock,
					 .sink = {.put = fake_put, .end = fake_end, .owner = net},
					 .ring_messages_max = 5};
	for (size_t i = 0; i < FAKE_DEVICES_MAX; i++) {
		struct fake_device *d = &net->devices[i];
		d->latency_ms = 5;
		d->last_change = 77;
		d->booted_ms = FAKE_BEGIN_MS - 100000000;
		d->ports[0] = (struct fake_port){1, "xe-0/0/0", "up", 100};
		d->ports[1] = (struct fake_port){2, "xe-0/0/1", "", 200};
	}
	net->core = core_new(&options, &net->io);
}

static inline void fake_close(struct fake_net *net)
{
	if (net->core)
		core_free(net->core);
	assert_int_equal(net->sessions, 0);
	for (size_t i = 0; i < FAKE_DEVICES_MAX; i++)
		if (net->storage[i].state)
			device_state_release(net->storage[i].state);
	buf_release(&net->text);
}

#endif
