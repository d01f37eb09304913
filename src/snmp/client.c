/* The client as a whole: what comes in is given to its operation; a loop, two sockets and a timer
 * drive it. */
#include "snmp/private.h"

enum {
	IN_FLIGHT_DEFAULT = 4096,
	BUFFER_DEFAULT_BYTES = 4 << 20,
	DEVICE_IN_FLIGHT_DEFAULT = 2,
	TIMEOUT_MIN_DEFAULT_MS = 250,
	TIMEOUT_MAX_DEFAULT_MS = 5000,
	TIMEOUT_START_DEFAULT_MS = 1000,
	REPLY_DEFAULT_BYTES = 1400,
	/* While so many requests are in flight, replies are read that often, all that have come:
	 * waking for each one costs more than what is done with it. */
	GATHER_IN_FLIGHT = 8,
	GATHER_MS = 2,
	GATHER_MANY = 8, /* replies at one time: those to what is asked next are as close */
	GATHER_MANY_MS = 1,
	GATHER_ROUNDS_MAX = 8, /* of reading, then the timers have their turn */
};

/* ---- Life ------------------------------------------------------------------------------------ */

struct snmp_client *snmp_client_new(struct clock *clock, struct snmp_port *port,
				    unsigned in_flight_max)
{
	struct snmp_client *client = mem_zalloc(sizeof(*client));
	uint32_t start;
	client->clock = clock;
	client->port = port;
	client->in_flight_max = in_flight_max ? in_flight_max : IN_FLIGHT_DEFAULT;
	client->crypto = usm_crypto_new();
	client->slots = mem_zalloc(SLOTS * sizeof(*client->slots));
	client->batch_memory = mem_alloc_array(BATCH_MAX, MESSAGE_MAX_BYTES);
	client->open_memory = mem_alloc(SNMP_MESSAGE_MAX_BYTES);
	/* One more than are taken: it is read before it is refused. */
	client->cells = mem_alloc_array(SNMP_REPLY_VARBINDS_MAX + 1, sizeof(*client->cells));
	client->spans = mem_alloc_array(SNMP_REPLY_VARBINDS_MAX + 2, sizeof(*client->spans));
	/* Whoever does not see our requests must not guess the next id, and a salt must not come
	 * again after a restart. */
	usm_random(&client->salt, sizeof(client->salt));
	usm_random(&start, sizeof(start));
	client->slot_last = start % SLOTS;
	for (uint32_t i = 0; i < SLOTS; i++)
		client->slots[i].generation = start / SLOTS % GENERATIONS;
	link_init(&client->ready);
	for (size_t i = 0; i < WHEEL_SLOTS; i++)
		link_init(&client->wheel[i]);
	client_now(client);
	client->wheel_at = client->now_ms / WHEEL_MS;
	return client;
}

void snmp_client_free(struct snmp_client *client)
{
	ASSERT(client->device_count == 0 && client->in_flight == 0);
	op_free_spare(client);
	usm_crypto_free(client->crypto);
	mem_free(client->slots);
	mem_free(client->batch_memory);
	mem_free(client->open_memory);
	mem_free(client->cells);
	mem_free(client->spans);
	mem_free(client);
}

bool snmp_client_busy(const struct snmp_client *client)
{
	return client->wheel_count > 0 || !link_alone(&client->ready);
}

/* ---- Devices --------------------------------------------------------------------------------- */

static unsigned or_default(unsigned value, unsigned standard)
{
	return value ? value : standard;
}

struct snmp_device *snmp_device_new(struct snmp_client *client, const struct loop_address *address,
				    struct snmp_login *login,
				    const struct snmp_device_options *options)
{
	struct snmp_device *device = mem_zalloc(sizeof(*device));
	struct snmp_device_options *o = &device->options;
	*o = *options;
	o->in_flight_max = or_default(o->in_flight_max, DEVICE_IN_FLIGHT_DEFAULT);
	o->retries = o->retries < SNMP_RETRIES_MAX ? o->retries : SNMP_RETRIES_MAX;
	o->timeout_min_ms = or_default(o->timeout_min_ms, TIMEOUT_MIN_DEFAULT_MS);
	o->timeout_max_ms = or_default(o->timeout_max_ms, TIMEOUT_MAX_DEFAULT_MS);
	o->timeout_start_ms = or_default(o->timeout_start_ms, TIMEOUT_START_DEFAULT_MS);
	o->reply_max_bytes = or_default(o->reply_max_bytes, REPLY_DEFAULT_BYTES);
	device->client = client;
	device->address = *address;
	device->login = snmp_login_hold(login);
	device->varbinds_max = VARBINDS_START;
	device->varbinds_limit = SNMP_REPLY_VARBINDS_MAX;
	link_init(&device->operations);
	link_init(&device->waiting);
	link_init(&device->ready);
	client->device_count++;
	if (login->version == SNMP_V3)
		session_init(device);
	return device;
}

void snmp_device_free(struct snmp_device *device)
{
	if (!device)
		return;
	while (!link_alone(&device->operations))
		op_free(CONTAINER_OF(device->operations.next, struct snmp_operation, of_device));
	link_remove(&device->ready);
	device->client->device_count--;
	snmp_login_release(device->login);
	mem_free(device);
}

void snmp_device_view(const struct snmp_device *device, struct snmp_device_view *view)
{
	const struct session *session = &device->session;
	*view = (struct snmp_device_view){
		.engine_id = session->engine_id,
		.engine_boots = session->boots,
		.engine_time = session->time,
		.rtt_ms = (device->srtt_ms + 7) / 8,
		.timeout_ms = device_timeout_ms(device),
		.varbinds_max = device->varbinds_max,
	};
}

/* ---- Receiving ------------------------------------------------------------------------------- */

struct arrival {
	const struct loop_datagram *datagram;
	struct snmp_message message;
	int err;                   /* of reading it */
	struct snmp_operation *op; /* perhaps its own: to foresee only */
};

static void client_read_one(const struct snmp_client *client, struct arrival *arrival,
			    const struct loop_datagram *datagram)
{
	const char *why;
	arrival->datagram = datagram;
	arrival->err =
		datagram->cut ? ERR_INVALID : snmp_decode(datagram->bytes, &arrival->message, &why);
	uint32_t id = arrival->err ? 0 : (uint32_t)arrival->message.pdu.request_id;
	arrival->op = client->slots[id % SLOTS].op;
}

/* A reply leads to its operation, and on to the device and to the owner, whose memory has not been
 * touched since the request. The replies of a batch take each of these steps together, and so wait
 * for memory together. */
static void foresee(const struct arrival *arrivals, size_t count)
{
	for (size_t i = 0; i < count; i++)
		op_foresee(arrivals[i].op);
	for (size_t i = 0; i < count; i++)
		if (arrivals[i].op)
			op_foresee_more(arrivals[i].op);
	for (size_t i = 0; i < count; i++)
		if (arrivals[i].op && arrivals[i].op->events.foresee)
			arrivals[i].op->events.foresee(arrivals[i].op->owner);
}

static void receive_one(struct snmp_client *client, const struct arrival *arrival)
{
	const struct snmp_message *message = &arrival->message;
	unsigned attempt;
	if (arrival->err == ERR_VERSION) {
		session_receive(client, arrival->datagram);
		return;
	}
	if (arrival->err || message->pdu.type != SNMP_RESPONSE) {
		stat_add(STAT_snmp_ignored_malformed, 1);
		return;
	}
	struct snmp_pdu pdu = message->pdu;
	struct snmp_operation *op = client_find(client, (uint32_t)pdu.request_id, &attempt);
	if (!op)
		return;
	if (!loop_address_equal(&op->device->address, &arrival->datagram->from))
		stat_add(STAT_snmp_ignored_source, 1);
	else if (op->device->login->version != message->version)
		stat_add(STAT_snmp_ignored_version, 1);
	else
		op_reply(op, attempt, &pdu, arrival->datagram->bytes.len);
}

static void receive_some(struct snmp_client *client, const struct loop_datagram *datagrams,
			 size_t count)
{
	struct arrival arrivals[BATCH_MAX];
	for (size_t i = 0; i < count; i++)
		client_read_one(client, &arrivals[i], &datagrams[i]);
	foresee(arrivals, count);
	for (size_t i = 0; i < count; i++)
		receive_one(client, &arrivals[i]);
}

void snmp_client_receive(struct snmp_client *client, const struct loop_datagram *datagrams,
			 size_t count)
{
	client_now(client);
	for (size_t at = 0; at < count; at += BATCH_MAX)
		receive_some(client, datagrams + at,
			     count - at < BATCH_MAX ? count - at : BATCH_MAX);
	client_pump(client);
}

/* ---- On a loop ------------------------------------------------------------------------------- */

struct on_loop {
	struct snmp_port port;
	struct snmp_client *client;
	struct loop *loop;
	struct loop_udp *udp[2]; /* IPv4, IPv6; the second may be missing */
	struct loop_timer *timer, *gather;
	bool ticking, gathering; /* gathering: sockets are read by the timer */
	size_t came;             /* the last time that they were */
	bool has_v6;             /* devices that were asked */
};

static size_t send_on_loop(struct snmp_port *port, const struct loop_outgoing *outgoing,
			   size_t count)
{
	struct on_loop *on = CONTAINER_OF(port, struct on_loop, port);
	size_t taken = 0;
	while (taken < count) {
		bool v6 = outgoing[taken].to.v6;
		on->has_v6 |= v6;
		size_t n = 1;
		while (taken + n < count && outgoing[taken + n].to.v6 == v6)
			n++;
		size_t sent = on->udp[v6] ? loop_udp_send(on->udp[v6], outgoing + taken, n) : n;
		taken += sent;
		if (sent < n)
			break;
	}
	return taken;
}

static void rest_if_idle(struct on_loop *on)
{
	if (snmp_client_busy(on->client))
		return;
	loop_timer_stop(on->timer);
	on->ticking = false;
}

static void wake_on_loop(struct snmp_port *port)
{
	struct on_loop *on = CONTAINER_OF(port, struct on_loop, port);
	if (!on->ticking)
		loop_timer_start(on->timer, 0, WHEEL_MS);
	on->ticking = true;
}

static void read_by_event(struct on_loop *on, bool by_event)
{
	if (on->gathering != by_event)
		return;
	on->gathering = !by_event;
	loop_udp_read(on->udp[0], by_event);
	if (on->has_v6 && on->udp[1])
		loop_udp_read(on->udp[1], by_event);
	if (by_event)
		loop_timer_stop(on->gather);
	else
		loop_timer_start(on->gather, GATHER_MANY_MS, 0);
}

static void read_as_is_due(struct on_loop *on)
{
	if (on->client->in_flight >= GATHER_IN_FLIGHT)
		read_by_event(on, false);
}

static void client_on_tick(void *owner)
{
	struct on_loop *on = owner;
	snmp_client_tick(on->client);
	read_as_is_due(on);
	rest_if_idle(on);
}

static void client_on_received(void *owner, const struct loop_datagram *datagrams, size_t count)
{
	struct on_loop *on = owner;
	snmp_client_receive(on->client, datagrams, count);
	on->came += count;
	read_as_is_due(on);
}

/* Where many came, replies to what was asked with the first of them may be there already: to look
 * costs little beside a sleep. */
static void on_gathered(void *owner)
{
	struct on_loop *on = owner;
	bool more = true;
	on->came = 0;
	for (int round = 0; more && round < GATHER_ROUNDS_MAX; round++) {
		size_t before = on->came;
		(void)loop_udp_read_now(on->udp[0]);
		if (on->has_v6 && on->udp[1])
			(void)loop_udp_read_now(on->udp[1]);
		more = on->came - before >= GATHER_MANY;
	}
	rest_if_idle(on);
	if (on->client->in_flight < GATHER_IN_FLIGHT)
		read_by_event(on, true);
	else
		loop_timer_start(on->gather,
				 more                      ? 0
				 : on->came >= GATHER_MANY ? GATHER_MANY_MS
							   : GATHER_MS,
				 0);
}

static int open_sockets(struct on_loop *on, size_t buffer_bytes, struct errbuf *e)
{
	struct loop_udp_options options = {
		.client = true,
		.datagram_max_bytes = REPLY_MAX_BYTES,
		.buffer_bytes = buffer_bytes ? buffer_bytes : BUFFER_DEFAULT_BYTES,
		.received = client_on_received,
		.owner = on,
	};
	int err = loop_udp_open(on->loop, &options, &on->udp[0], e);
	options.address.v6 = true;
	/* A machine without IPv6 has no devices there. */
	if (!err && loop_udp_open(on->loop, &options, &on->udp[1], NULL))
		on->udp[1] = NULL;
	return err;
}

int snmp_client_open(struct loop *loop, struct clock *clock,
		     const struct snmp_client_options *options, struct snmp_client **client,
		     struct errbuf *e)
{
	struct on_loop *on = mem_zalloc(sizeof(*on));
	on->loop = loop;
	on->port = (struct snmp_port){send_on_loop, wake_on_loop};
	int err = open_sockets(on, options->buffer_bytes, e);
	if (err) {
		mem_free(on);
		return err;
	}
	on->timer = loop_timer_new(loop, client_on_tick, on);
	on->gather = loop_timer_new(loop, on_gathered, on);
	on->client = snmp_client_new(clock, &on->port, options->in_flight_max);
	*client = on->client;
	return 0;
}

void snmp_client_close(struct snmp_client *client)
{
	if (!client)
		return;
	struct on_loop *on = CONTAINER_OF(client->port, struct on_loop, port);
	loop_timer_close(on->timer);
	loop_timer_close(on->gather);
	loop_udp_close(on->udp[0]);
	loop_udp_close(on->udp[1]);
	snmp_client_free(client);
	mem_free(on);
}
