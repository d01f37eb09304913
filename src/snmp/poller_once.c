#include "snmp/poller_once.h"

#include "snmp/poller_core.h"
#include "snmp/poller_net.h"

enum { LOOK_MS = 10 };

struct one_poll {
	const struct poller_once *once;
	struct loop *loop;
	struct loop_timer *timer;
	struct core *core;
	bool begun, over;
	int err;
	struct errbuf *e;
};

static int poller_once_deliver(void *owner, UNUSED const struct oidset *oidset,
			       UNUSED struct slice device, struct slice message)
{
	struct one_poll *one = owner;
	one->once->message(one->once->owner, message);
	return 0;
}

/* `why` NULL: it gave what there is. */
static void over(void *owner, const char *why)
{
	struct one_poll *one = owner;
	one->over = true;
	one->err = why ? errbuf_set(one->e, ERR_INVALID, "%s", why) : 0;
	loop_stop(one->loop);
}

/* Begins when the name has an address. */
static void poller_once_start_polls(void *owner)
{
	struct one_poll *one = owner;
	struct polled_device *device = one->core->devices[0];
	if (one->over)
		return;
	if (device->why_unusable.text[0]) {
		over(one, device->why_unusable.text);
	} else if (device->session && !one->begun) {
		one->begun = true;
		device->sets[0]->wanted = true;
		run_start(one->core, device->sets[0]);
	}
	run_check_deadlines(one->core);
}

/* A snapshot of that device alone; nobody else knows it, so nobody's counts end it. */
static void poll_device(struct one_poll *one)
{
	const struct oidset *const oidsets[] = {one->once->oidset};
	struct device device = {
		.name = one->once->host,
		.address = one->once->host,
		.port = one->once->port,
		.credentials = one->once->credentials,
		.active = true,
		.end_ms = INVENTORY_FOREVER_MS,
		.oidsets = oidsets,
		.oidset_count = 1,
		.references = 1,
	};
	const struct device *const devices[] = {&device};
	struct inventory snapshot = {.devices = devices, .device_count = 1, .references = 1};
	one->timer = loop_timer_new(one->loop, poller_once_start_polls, one);
	core_set_inventory(one->core, &snapshot);
	loop_timer_start(one->timer, 0, LOOK_MS);
	loop_run(one->loop);
	loop_timer_close(one->timer);
	/* The snapshot lies here: the core lets go of it. */
	static const struct inventory empty = {.references = 1};
	struct inventory none = empty;
	core_set_inventory(one->core, &none);
	core_free(one->core);
}

int poller_once(const struct poller_once *once, struct errbuf *e)
{
	struct one_poll one = {.once = once, .e = e, .loop = loop_new()};
	const struct poller_options options = {.clock = once->clock,
					       .sink = {.put = poller_once_deliver, .owner = &one}};
	const struct poller_net_options net_options = {
		.loop = one.loop,
		.clock = once->clock,
		.tries = once->tries ? once->tries : POLLER_TRIES,
		.timeout_max_ms = once->timeout_max_ms,
	};
	struct poller_net *net;
	one.err = poller_net_open(&net_options, &net, e);
	if (!one.err) {
		one.core = core_new(&options, poller_net_io(net));
		one.core->over = over;
		one.core->over_owner = &one;
		poll_device(&one);
		poller_net_stop_resolving(net);
		poller_net_close(net);
	}
	loop_free(one.loop);
	return one.err;
}
