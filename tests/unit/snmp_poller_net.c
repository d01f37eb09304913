/* The poller's network on a loop, with sockets: an agent that answers when it is told to. */
#include "snmp_fake_agent.h"

#include "base/clock.h"
#include "snmp/poller_net.h"

static const struct credentials public = {.version = SNMP_V2C, .community = SLICE("public")};

enum { ASKED_MAX = 8, ASKED_BYTES = 512 };

/* A walk, and what came of it. */
struct asker {
	struct poller_walk *walk;
	size_t cells;
	bool done;
	int err;
};

static struct {
	struct loop *loop;
	struct loop_udp *udp;
	struct agent agent;
	struct poller_net *net;
	struct poller_session *session;
	struct correlate_plan uptime;
	/* Requests that the agent has not answered. */
	struct {
		uint8_t bytes[ASKED_BYTES];
		size_t len;
		struct loop_address from;
	} asked[ASKED_MAX];
	size_t asked_count, awaited; /* awaited: stop when so many are there */
} rig;

static void on_request(UNUSED void *owner, const struct loop_datagram *datagrams, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = rig.asked_count++;
		assert_true(at < ASKED_MAX && datagrams[i].bytes.len <= ASKED_BYTES);
		memcpy(rig.asked[at].bytes, datagrams[i].bytes.data, datagrams[i].bytes.len);
		rig.asked[at].len = datagrams[i].bytes.len;
		rig.asked[at].from = datagrams[i].from;
	}
	if (rig.asked_count == rig.awaited)
		loop_stop(rig.loop);
}

static void await_requests(size_t count)
{
	rig.awaited = count;
	if (rig.asked_count < count)
		loop_run(rig.loop);
}

static void answer(size_t at)
{
	struct slice asked = {(char *)rig.asked[at].bytes, rig.asked[at].len};
	const struct loop_outgoing out = {agent_answer(&rig.agent, asked), rig.asked[at].from};
	assert_int_equal(loop_udp_send(rig.udp, &out, 1), 1);
}

static void on_reply(void *owner, const struct snmp_reply *reply)
{
	((struct asker *)owner)->cells += reply->count;
}

static void on_done(void *owner, int err, UNUSED const char *why, UNUSED const struct oid_def *cut)
{
	struct asker *asker = owner;
	asker->done = true;
	asker->err = err;
	loop_stop(rig.loop);
}

static void on_foresee(UNUSED const void *owner)
{
}

static void ask(struct asker *asker, bool probe)
{
	static const struct poller_walk_events events = {on_reply, on_done, on_foresee};
	struct poller_io *io = poller_net_io(rig.net);
	*asker = (struct asker){0};
	assert_int_equal(
		io->walk(io, rig.session, &rig.uptime, probe, &events, asker, &asker->walk), 0);
}

static void await(const struct asker *asker)
{
	while (!asker->done)
		loop_run(rig.loop);
}

static void open_rig(void)
{
	const struct loop_udp_options udp = {
		.client = true, .datagram_max_bytes = 4096, .received = on_request};
	struct errbuf e;
	memset(&rig, 0, sizeof(rig));
	rig.loop = loop_new();
	agent_fill(&rig.agent);
	correlate_plan_init_probe(&rig.uptime);
	assert_int_equal(loop_udp_open(rig.loop, &udp, &rig.udp, &e), 0);
	assert_int_equal(poller_net_open(&(struct poller_net_options){.loop = rig.loop,
								      .clock = clock_real(),
								      .device_in_flight_max = 4,
								      .tries = 1},
					 &rig.net, &e),
			 0);
	struct loop_address address = {.bytes = {127, 0, 0, 1},
				       .port = loop_udp_address(rig.udp).port};
	struct poller_io *io = poller_net_io(rig.net);
	assert_int_equal(io->session_new(io, &address, &public, &rig.session, &e), 0);
}

static void close_rig(void)
{
	struct poller_io *io = poller_net_io(rig.net);
	io->session_free(io, rig.session);
	poller_net_stop_resolving(rig.net);
	poller_net_close(rig.net);
	loop_udp_close(rig.udp);
	loop_free(rig.loop);
}

/* Two OIDSets of a device that was away look at once whether it is back. The first one that is
 * answered goes on, and took the probe of the other one with it: whoever ended that one freed it a
 * second time. */
static void probes_of_one_device_know_nothing_of_each_other(UNUSED void **state)
{
	struct poller_io *io;
	struct asker first, second, third, values;
	open_rig();
	io = poller_net_io(rig.net);
	ask(&first, true);
	ask(&second, true);
	ask(&third, true);
	await_requests(3);
	answer(0);
	await(&first);
	assert_true(first.err == 0 && first.cells == 1);
	ask(&values, false);
	await_requests(4);
	io->cancel(io, third.walk);
	answer(1);
	await(&second);
	assert_true(second.err == 0 && second.cells == 1);
	answer(3);
	await(&values);
	assert_true(values.err == 0 && values.cells == 1);
	assert_false(third.done);
	close_rig();
}

/* What the probes were asked by goes when none is left, and comes again. */
static void a_device_that_goes_away_again_is_probed_again(UNUSED void **state)
{
	struct asker asker;
	open_rig();
	for (size_t i = 0; i < 4; i++) {
		ask(&asker, i % 2 == 0);
		await_requests(i + 1);
		answer(i);
		await(&asker);
		assert_true(asker.err == 0 && asker.cells == 1);
	}
	close_rig();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_of_one_device_know_nothing_of_each_other),
		cmocka_unit_test(a_device_that_goes_away_again_is_probed_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
