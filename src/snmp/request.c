/* One request in flight: its slot, its turn, its way to the kernel, its time-out.
 *
 * The id of a request, from the highest bit: 01, the generation of the slot (11 bits), the attempt
 * (3), the slot (16). Slots are taken in turns, so that an id comes again after 2^27 requests, and
 * those in flight lie side by side. */
#include "snmp/private.h"

void client_now(struct snmp_client *client)
{
	client->now_ms = clock_mono_ms(client->clock);
	client->wall_ms = clock_wall_ms(client->clock);
}

/* ---- Ids ------------------------------------------------------------------------------------- */

uint32_t op_id(const struct snmp_operation *op, unsigned attempt)
{
	return (uint32_t)ID_MARK | op->generation << (SLOT_BITS + ATTEMPT_BITS) |
	       attempt << SLOT_BITS | op->slot;
}

struct snmp_operation *client_find(struct snmp_client *client, uint32_t id, unsigned *attempt)
{
	const struct slot *slot = &client->slots[id % SLOTS];
	uint32_t generation = (id >> (SLOT_BITS + ATTEMPT_BITS)) % GENERATIONS;
	*attempt = id >> SLOT_BITS & ((1u << ATTEMPT_BITS) - 1);
	if (id >> (SLOT_BITS + ATTEMPT_BITS + GENERATION_BITS) != 1) {
		stat_add(STAT_snmp_ignored_id, 1);
		return NULL;
	}
	if (slot->op && slot->generation == generation && *attempt <= slot->op->attempt)
		return slot->op;
	stat_add(STAT_snmp_ignored_late, 1);
	return NULL;
}

static void op_acquire_slot(struct snmp_client *client, struct snmp_operation *op)
{
	ASSERT(client->slots_taken < SLOTS);
	do
		client->slot_last = (client->slot_last + 1) % SLOTS;
	while (client->slots[client->slot_last].op);
	client->slots_taken++;
	op->slot = client->slot_last;
	struct slot *slot = &client->slots[op->slot];
	slot->op = op;
	slot->generation = (slot->generation + 1) % GENERATIONS;
	op->generation = slot->generation;
}

/* ---- Time ------------------------------------------------------------------------------------ */

unsigned device_timeout_ms(const struct snmp_device *device)
{
	const struct snmp_device_options *o = &device->options;
	/* RFC 6298 section 2.3, with what a busy agent may need more. */
	unsigned timeout =
		device->srtt_ms ? device->srtt_ms / 8 + device->rttvar_ms : o->timeout_start_ms;
	if (timeout < o->timeout_min_ms)
		return o->timeout_min_ms;
	return timeout < o->timeout_max_ms ? timeout : o->timeout_max_ms;
}

void device_measure(struct snmp_device *device, const struct snmp_operation *op, unsigned attempt)
{
	int64_t took = device->client->now_ms - op->attempts[attempt].at_ms;
	unsigned rtt = took < 1 ? 1 : took > 60000 ? 60000 : (unsigned)took;
	if (!device->srtt_ms) {
		device->srtt_ms = rtt * 8;
		device->rttvar_ms = rtt * 2;
		return;
	}
	unsigned smooth = device->srtt_ms / 8;
	unsigned off = smooth > rtt ? smooth - rtt : rtt - smooth;
	device->rttvar_ms += off - device->rttvar_ms / 4;
	device->srtt_ms += rtt - device->srtt_ms / 8;
	if (!device->srtt_ms)
		device->srtt_ms = 1;
}

static void wheel_put(struct snmp_operation *op, int64_t deadline_ms)
{
	struct snmp_client *client = op->device->client;
	op->deadline_ms = deadline_ms;
	if (link_alone(&op->wheel))
		client->wheel_count++;
	link_append(&client->wheel[(deadline_ms / WHEEL_MS + 1) % WHEEL_SLOTS], &op->wheel);
}

static void wheel_remove(struct snmp_operation *op)
{
	if (link_alone(&op->wheel))
		return;
	link_remove(&op->wheel);
	op->device->client->wheel_count--;
}

/* ---- Sending --------------------------------------------------------------------------------- */

void client_flush(struct snmp_client *client)
{
	size_t count = client->batch_count;
	client->batch_count = 0;
	if (!count)
		return;
	size_t taken = client->port->send(client->port, client->batch, count);
	stat_add(STAT_snmp_requests, (int64_t)taken);
	for (size_t i = 0; i < count; i++) {
		struct snmp_operation *op = client->batch_ops[i];
		op->batched = false;
		if (i < taken)
			continue;
		op->unsent = true;
		stat_add(STAT_snmp_unsent, 1);
		wheel_put(op, client->now_ms + WHEEL_MS);
	}
}

/* False: the operation has ended, since its request cannot be made. */
static bool put_into_batch(struct snmp_operation *op)
{
	struct snmp_client *client = op->device->client;
	if (client->batch_count == BATCH_MAX)
		client_flush(client);
	size_t at = client->batch_count;
	struct slice message = op->message;
	if (op->device->login->version == SNMP_V3 &&
	    session_seal(op, client->batch_memory[at], &message)) {
		op_end(op, ERR_LIMIT, "the request does not fit into a datagram");
		return false;
	}
	client->batch[at] = (struct loop_outgoing){message, op->device->address};
	client->batch_ops[at] = op;
	client->batch_count++;
	op->batched = true;
	return true;
}

static void transmit(struct snmp_operation *op)
{
	struct snmp_device *device = op->device;
	int64_t now_ms = device->client->now_ms;
	if (op->batched)
		client_flush(device->client);
	op_build(op);
	uint64_t timeout_ms = (uint64_t)device_timeout_ms(device) << op->attempt;
	if (timeout_ms > device->options.timeout_max_ms)
		timeout_ms = device->options.timeout_max_ms;
	op->attempts[op->attempt].at_ms = now_ms;
	op->requests++;
	wheel_put(op, now_ms + (int64_t)timeout_ms);
	(void)put_into_batch(op);
}

void op_start(struct snmp_operation *op)
{
	struct snmp_client *client = op->device->client;
	op_acquire_slot(client, op);
	op->sent = op->counted = true;
	op->attempt = 0;
	op->device->in_flight++;
	client->in_flight++;
	stat_add(STAT_snmp_in_flight, 1);
	op_pick(op);
	transmit(op);
}

static void uncount(struct snmp_operation *op)
{
	if (op->counted)
		op->device->client->in_flight--;
	op->counted = false;
}

void op_unsend(struct snmp_operation *op)
{
	struct snmp_device *device = op->device;
	if (op->batched)
		client_flush(device->client);
	if (!op->sent)
		return;
	wheel_remove(op);
	uncount(op);
	device->client->slots[op->slot].op = NULL;
	device->client->slots_taken--;
	op->sent = op->unsent = false;
	device->in_flight--;
	stat_add(STAT_snmp_in_flight, -1);
	device_check(device);
}

/* An agent that cannot decrypt says nothing, as a rule. */
static const char *silence(const struct snmp_device *device)
{
	bool deaf = device->login->priv && device->session.known && !device->session.authentic;
	return deaf ? "the device is there, but does not answer this user: perhaps the privacy "
		      "password or protocol is wrong"
		    : "the device does not answer";
}

void op_expire(struct snmp_operation *op)
{
	wheel_remove(op);
	if (op->unsent) {
		op->unsent = false;
		transmit(op);
		return;
	}
	if (op->attempt >= op->device->options.retries) {
		stat_add(STAT_snmp_timeouts, 1);
		const struct attempt *last = &op->attempts[op->attempt];
		device_forget_size(op->device, attempt_varbinds(last));
		op_end(op, ERR_TIMEOUT, silence(op->device));
		return;
	}
	op->attempt++;
	op->retries++;
	stat_add(STAT_snmp_retries, 1);
	uncount(op);
	device_shrink(op->device, false);
	transmit(op);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

static bool may_start(const struct snmp_device *device)
{
	return !link_alone(&device->waiting) && !device->session.discovery &&
	       device->in_flight < device->options.in_flight_max;
}

void device_check(struct snmp_device *device)
{
	if (may_start(device) && link_alone(&device->ready))
		link_append(&device->client->ready, &device->ready);
}

void op_wait(struct snmp_operation *op)
{
	link_append(&op->device->waiting, &op->waiting);
	device_check(op->device);
}

/* Each device sends one request and goes to the end. */
void client_pump(struct snmp_client *client)
{
	while (!link_alone(&client->ready) && client->in_flight < client->in_flight_max &&
	       client->slots_taken < SLOTS) {
		struct snmp_device *device =
			CONTAINER_OF(client->ready.next, struct snmp_device, ready);
		link_remove(&device->ready);
		if (!may_start(device) || !session_ready(device))
			continue;
		struct snmp_operation *op =
			CONTAINER_OF(device->waiting.next, struct snmp_operation, waiting);
		link_remove(&op->waiting);
		op_start(op);
		/* op_start may have ended it, and `done` freed the device: what has more to send
		 * was looked at by op_unsend then. */
		if (client->batch_count && client->batch_ops[client->batch_count - 1] == op)
			device_check(device);
	}
	client_flush(client);
}

/* ---- The client's clock ---------------------------------------------------------------------- */

static void turn_wheel(struct snmp_client *client, struct link *bucket)
{
	struct link due;
	link_init(&due);
	while (!link_alone(bucket)) {
		struct link *first = bucket->next;
		link_remove(first);
		link_append(&due, first);
	}
	while (!link_alone(&due)) {
		struct snmp_operation *op = CONTAINER_OF(due.next, struct snmp_operation, wheel);
		if (op->deadline_ms > client->now_ms)
			wheel_put(op, op->deadline_ms);
		else
			op_expire(op);
	}
}

void snmp_client_tick(struct snmp_client *client)
{
	client_now(client);
	int64_t to = client->now_ms / WHEEL_MS;
	if (to - client->wheel_at > WHEEL_SLOTS)
		client->wheel_at = to - WHEEL_SLOTS;
	while (client->wheel_at < to) {
		client->wheel_at++;
		if (client->wheel_count)
			turn_wheel(client, &client->wheel[client->wheel_at % WHEEL_SLOTS]);
	}
	client_pump(client);
}
