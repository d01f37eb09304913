/* The client on a loop, with sockets: many devices at once, whose replies are read by the timer,
 * and few, whose replies are read as they come. */
#include "snmp_fake_agent.h"

#include "base/clock.h"
#include "snmp/client.h"

enum { DEVICES = 100, WALKS = 5, FEW = 2 };

static struct {
	struct loop *loop;
	struct agent agent;
	struct loop_udp *udp;
	struct snmp_client *client;
	struct snmp_login *login;
	struct snmp_device *devices[DEVICES];
	size_t device_count;
	unsigned walks_left[DEVICES], running, retries, wrong;
	size_t values;
} rig;

/* The agent's side: one socket is all devices. */
static void on_request(UNUSED void *owner, const struct loop_datagram *datagrams, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct slice answer = agent_answer(&rig.agent, datagrams[i].bytes);
		const struct loop_outgoing out = {answer, datagrams[i].from};
		assert_int_equal(loop_udp_send(rig.udp, &out, 1), 1);
	}
}

static void walk(size_t number);

static void on_reply(UNUSED void *owner, const struct snmp_reply *reply)
{
	rig.values += reply->count;
}

static void on_done(void *owner, const struct snmp_result *result)
{
	size_t number = (size_t)(uintptr_t)owner;
	rig.retries += result->retries;
	rig.wrong += result->err != 0;
	rig.running--;
	if (rig.walks_left[number])
		walk(number);
	else if (!rig.running)
		loop_stop(rig.loop);
}

static void walk(size_t number)
{
	static const struct snmp_events events = {on_reply, on_done};
	uint8_t memory[OID_MAX_BYTES];
	struct slice column = oid_of(IF_IN, memory);
	struct snmp_operation *operation;
	rig.walks_left[number]--;
	rig.running++;
	assert_int_equal(snmp_walk(rig.devices[number], &column, NULL, 1, &events,
				   (void *)(uintptr_t)number, &operation),
			 0);
}

static void open_rig(size_t devices)
{
	struct errbuf e;
	const struct snmp_credentials public = {.version = SNMP_V2C, .community = SLICE("public")};
	const struct snmp_client_options client_options = {0};
	const struct snmp_device_options options = {.retries = 7};
	const struct loop_udp_options udp = {
		.client = true, .datagram_max_bytes = 4096, .received = on_request};
	memset(&rig, 0, sizeof(rig));
	rig.loop = loop_new();
	agent_fill(&rig.agent);
	assert_int_equal(loop_udp_open(rig.loop, &udp, &rig.udp, &e), 0);
	assert_int_equal(snmp_client_open(rig.loop, clock_real(), &client_options, &rig.client, &e),
			 0);
	assert_int_equal(snmp_login_new(&public, &rig.login, &e), 0);
	struct loop_address address = {.bytes = {127, 0, 0, 1},
				       .port = loop_udp_address(rig.udp).port};
	for (size_t i = 0; i < devices; i++)
		rig.devices[i] = snmp_device_new(rig.client, &address, rig.login, &options);
	rig.device_count = devices;
}

static void run_walks(size_t devices, unsigned walks)
{
	rig.values = 0;
	for (size_t i = 0; i < devices; i++) {
		rig.walks_left[i] = walks;
		walk(i);
	}
	loop_run(rig.loop);
	assert_int_equal(rig.values, devices * walks * ROWS);
	assert_int_equal(rig.wrong, 0);
}

static void close_rig(void)
{
	for (size_t i = 0; i < rig.device_count; i++)
		snmp_device_free(rig.devices[i]);
	snmp_login_release(rig.login);
	snmp_client_close(rig.client);
	loop_udp_close(rig.udp);
	loop_free(rig.loop);
}

/* From few to many and back: whoever reads, every reply is read. */
static void replies_are_read_whether_many_or_few_are_awaited(UNUSED void **state)
{
	open_rig(DEVICES);
	run_walks(FEW, WALKS);
	run_walks(DEVICES, WALKS);
	run_walks(FEW, WALKS);
	run_walks(DEVICES, 1);
	close_rig();
}

/* Its sockets are read by the timer then. */
static void a_client_is_closed_while_many_replies_are_awaited(UNUSED void **state)
{
	open_rig(DEVICES);
	for (size_t i = 0; i < DEVICES; i++) {
		rig.walks_left[i] = 1 + (i != 0);
		walk(i);
	}
	/* Ends with the first walk that is over. */
	rig.running = 1;
	loop_run(rig.loop);
	close_rig();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_are_read_whether_many_or_few_are_awaited),
		cmocka_unit_test(a_client_is_closed_while_many_replies_are_awaited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
