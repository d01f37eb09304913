/* The poller on a virtual clock: cadence, devices that do not answer, renumbered interfaces, a sink
 * that is busy, devices that come and go. */
#include "snmp_fake_net.h"

#include "base/stats.h"

enum { DEVICES = 20, INTERVAL_MS = 30000 };

static struct fake_net net;
static struct rig fast, refs, slow;
static const struct oidset *fast_only[1], *fast_and_refs[2], *slow_only[1];
static const struct device *all[FAKE_DEVICES_MAX];

static void open_sets(void)
{
	rig_open(&fast, "FastPollHC", CORRELATOR_IF_NAME);
	rig_oid(&fast, "ifHCInOctets", "1.3.6.1.2.1.31.1.1.1.6", OID_COUNTER64);
	rig_open(&refs, "IfRefPoll", CORRELATOR_NONE);
	rig_oid(&refs, "ifName", "1.3.6.1.2.1.31.1.1.1.1", OID_TEXT);
	refs.oidset.kind = OIDSET_INTERFACES;
	rig_open(&slow, "Slow", CORRELATOR_INDEX);
	rig_oid(&slow, "ifHCInOctets", "1.3.6.1.2.1.31.1.1.1.6", OID_COUNTER64);
	fast_only[0] = fast_and_refs[0] = &fast.oidset;
	fast_and_refs[1] = &refs.oidset;
	slow_only[0] = &slow.oidset;
}

static void close_sets(void)
{
	rig_close(&fast);
	rig_close(&refs);
	rig_close(&slow);
}

static void open_devices(size_t count, const struct oidset *const *oidsets, size_t oidset_count)
{
	open_sets();
	fake_open(&net);
	for (size_t i = 0; i < count; i++)
		all[i] = fake_device_add(&net, i, oidsets, oidset_count);
	fake_show(&net, all, count);
}

static void close_devices(void)
{
	fake_close(&net);
	close_sets();
}

/* Up to some time behind the first slot of device 0. */
static void run_behind_slot(const struct oidset *oidset, int64_t ms)
{
	int64_t phase = schedule_phase(SLICE("r00"), oidset->name, INTERVAL_MS);
	int64_t into = (fake_now(&net) - phase) % INTERVAL_MS;
	fake_run(&net, INTERVAL_MS - into + ms);
}

static void run_to_slot(void)
{
	run_behind_slot(&fast.oidset, 1000);
}

/* ---- Cadence --------------------------------------------------------------------------------- */

static void every_device_is_polled_in_each_of_its_slots(UNUSED void **state)
{
	open_devices(DEVICES, slow_only, 1);
	fake_run(&net, 600000);
	for (size_t i = 0; i < DEVICES; i++) {
		const struct fake_device *d = &net.devices[i];
		int64_t phase = schedule_phase(all[i]->name, slow.oidset.name, INTERVAL_MS);
		assert_int_equal(d->walks, 20);
		for (unsigned w = 0; w < d->walks; w++)
			assert_int_equal((d->asked_ms[w] - phase) % INTERVAL_MS, 0);
	}
	assert_int_equal(net.taken, DEVICES * 20);
	close_devices();
}

/* Half of them dead, one answering too late, one never: the others notice nothing. */
static void devices_that_do_not_answer_delay_no_other(UNUSED void **state)
{
	int64_t skipped = stat_get(STAT_poll_skipped), left_out = stat_get(STAT_poll_hanging);
	open_devices(DEVICES, slow_only, 1);
	for (size_t i = 0; i < 10; i++)
		net.devices[i].dead = true;
	net.devices[10].latency_ms = 31000;
	net.devices[11].hangs = true;
	fake_run(&net, 600000);
	for (size_t i = 12; i < DEVICES; i++)
		assert_int_equal(net.devices[i].walks, 20);
	assert_int_equal(net.taken, 8 * 20);
	/* Three polls, then one probe a slot. */
	assert_int_equal(net.devices[0].walks, 20);
	assert_int_equal(net.devices[0].probes, 17);
	/* Polled in slots 1, 2, 4, 8 and 16, whose polls end with the slot; 15 are left out. */
	assert_int_equal(stat_get(STAT_poll_skipped) - skipped, 0);
	assert_int_equal(stat_get(STAT_poll_hanging) - left_out, 30);
	assert_int_equal(net.devices[11].walks, 5);
	struct device_status status = device_state_read(all[0]->state);
	assert_string_equal(status.error, "no answer");
	assert_true(status.resolved);
	assert_in_range(status.failing_since_ms - FAKE_BEGIN_MS, 0, INTERVAL_MS + FAKE_TIMEOUT_MS);
	assert_string_equal(device_state_read(all[11]->state).error,
			    "the poll was not over when its interval was");
	close_devices();
}

/* It hangs for as long as it is left alone at most, twice; then it has all of its slots again. */
static void a_device_that_hung_has_all_slots_again(UNUSED void **state)
{
	open_devices(1, slow_only, 1);
	net.devices[0].hangs = true;
	run_behind_slot(&slow.oidset, 19 * INTERVAL_MS + 1000);
	net.devices[0].hangs = false;
	/* The next slots: 21 to 31 left out, 32 polled. */
	fake_run(&net, 11 * INTERVAL_MS);
	assert_int_equal(net.taken, 0);
	fake_run(&net, 3 * INTERVAL_MS);
	assert_int_equal(net.taken, 3);
	/* One poll that hangs costs no slot but its own. */
	net.devices[0].hangs = true;
	fake_run(&net, INTERVAL_MS);
	net.devices[0].hangs = false;
	fake_run(&net, 2 * INTERVAL_MS);
	assert_int_equal(net.taken, 5);
	close_devices();
}

/* One that is added while others are polled, and one that somebody asks for. */
static void a_new_device_is_polled_at_once(UNUSED void **state)
{
	open_devices(2, slow_only, 1);
	fake_show(&net, all, 1);
	fake_run(&net, INTERVAL_MS);
	assert_int_equal(net.devices[1].walks, 0);
	fake_show(&net, all, 2);
	fake_run(&net, 10);
	assert_int_equal(net.devices[1].walks, 1);
	fake_run(&net, INTERVAL_MS);
	assert_int_equal(net.devices[1].walks, 2);
	core_poll_now(net.core, SLICE("r00"));
	core_poll_now(net.core, SLICE("nobody"));
	unsigned walks = net.devices[0].walks;
	fake_run(&net, 10);
	assert_int_equal(net.devices[0].walks, walks + 1);
	assert_int_equal(net.devices[1].walks, 2);
	close_devices();
}

/* It is back between two slots: the first slot after that gives values. */
static void a_device_that_is_back_is_polled_whole_in_its_next_slot(UNUSED void **state)
{
	open_devices(1, slow_only, 1);
	net.devices[0].dead = true;
	run_behind_slot(&slow.oidset, 3600000 - INTERVAL_MS + 15000);
	assert_int_equal(net.taken, 0);
	assert_int_equal(net.devices[0].walks, 120); /* cadence was kept all the time */
	net.devices[0].dead = false;
	fake_run(&net, INTERVAL_MS);
	assert_int_equal(net.taken, 1);
	struct device_status status = device_state_read(all[0]->state);
	assert_int_equal(status.failing_since_ms, 0);
	fake_run(&net, INTERVAL_MS);
	assert_int_equal(net.taken, 2);
	assert_int_equal(net.devices[0].probes, 118); /* 117 in vain, one that was answered */
	close_devices();
}

/* Several OIDSets of one device: one session, slots of their own. */
static void oidsets_of_a_device_share_its_session(UNUSED void **state)
{
	open_devices(1, fast_and_refs, 2);
	assert_int_equal(net.sessions, 1);
	fake_run(&net, INTERVAL_MS);
	assert_int_equal(net.taken, 2);
	assert_non_null(strstr(fake_taken(&net), "1  ifName=\"xe-0/0/0\"\n"));
	close_devices();
}

static void a_clock_that_jumps_costs_slots_and_no_burst(UNUSED void **state)
{
	int64_t missed = stat_get(STAT_poll_missed);
	open_devices(DEVICES, slow_only, 1);
	fake_run(&net, 60000);
	assert_int_equal(net.taken, DEVICES * 2);
	net.clock.wall_us += INT64_C(3600000000); /* an hour forward */
	fake_run(&net, 1);
	assert_int_equal(net.taken, DEVICES * 2);
	assert_true(stat_get(STAT_poll_missed) - missed >= DEVICES * 119);
	fake_run(&net, 60000);
	assert_in_range(net.taken, DEVICES * 4 - 1, DEVICES * 4 + 1);
	net.clock.wall_us -= INT64_C(7200000000); /* two hours back */
	fake_run(&net, 60000);
	assert_in_range(net.taken, DEVICES * 6 - 1, DEVICES * 6 + 1);
	close_devices();
}

/* ---- Inventory ------------------------------------------------------------------------------- */

static void devices_come_and_go_without_a_restart(UNUSED void **state)
{
	static const struct device *first[2], *second[2];
	open_sets();
	fake_open(&net);
	first[0] = fake_device_add(&net, 0, slow_only, 1);
	first[1] = second[0] = fake_device_add(&net, 1, slow_only, 1);
	second[1] = fake_device_add(&net, 2, fast_and_refs, 2);
	fake_show(&net, first, 2);
	fake_run(&net, INTERVAL_MS);
	assert_int_equal(net.taken, 2);
	/* While a poll of the one that goes is under way. */
	net.devices[0].latency_ms = 20000;
	fake_run(&net, INTERVAL_MS - 1);
	fake_show(&net, second, 2);
	assert_int_equal(net.sessions, 2);
	unsigned walks = net.devices[0].walks;
	net.taken = 0;
	fake_run(&net, 2 * INTERVAL_MS);
	assert_int_equal(net.devices[0].walks, walks);
	assert_int_equal(net.devices[1].walks, 4);
	/* The new one's two OIDSets at once, then in their slots. */
	assert_int_equal(net.taken, 2 + 2 + 2 * 2);
	close_devices();
}

static void devices_of_other_pollers_are_left_alone(UNUSED void **state)
{
	open_devices(3, slow_only, 1);
	net.storage[1].poller = SLICE("site");
	fake_show(&net, all, 3);
	fake_run(&net, 600000);
	assert_int_equal(net.devices[0].walks, 20);
	assert_int_equal(net.devices[1].walks, 0);
	assert_int_equal(net.devices[2].walks, 20);
	net.storage[0].poller = SLICE("site");
	net.storage[1].poller = SLICE("");
	fake_show(&net, all, 3);
	fake_run(&net, 600000);
	assert_int_equal(net.devices[0].walks, 20);
	assert_int_equal(net.devices[1].walks, 1 + 20); /* new here: at once, too */
	assert_int_equal(net.devices[2].walks, 40);
	close_devices();
}

/* Begin and end, inactive ones, and an address that changes: the polls go there. */
static void only_active_devices_are_polled(UNUSED void **state)
{
	static struct device moved;
	static const struct device *list[3], *after[1];
	open_sets();
	fake_open(&net);
	struct device *d[3];
	for (size_t i = 0; i < 3; i++)
		list[i] = d[i] = fake_device_add(&net, i, slow_only, 1);
	d[0]->active = false;
	d[1]->begin_ms = FAKE_BEGIN_MS + 60000;
	d[2]->end_ms = FAKE_BEGIN_MS + 60000;
	fake_show(&net, list, 3);
	fake_run(&net, 120000);
	assert_int_equal(net.devices[0].walks, 0);
	assert_int_equal(net.devices[1].walks, 2);
	assert_int_equal(net.devices[2].walks, 2);
	moved = *d[1];
	moved.port = 7;
	after[0] = &moved;
	fake_show(&net, after, 1);
	fake_run(&net, 60000);
	assert_int_equal(net.devices[1].walks, 2);
	assert_int_equal(net.devices[7].walks, 2);
	close_devices();
}

static void a_name_that_has_no_address_is_said_and_tried_again(UNUSED void **state)
{
	open_sets();
	fake_open(&net);
	struct device *d = fake_device_add(&net, 0, slow_only, 1);
	d->address = SLICE("router.example.net");
	all[0] = d;
	fake_show(&net, all, 1);
	fake_run(&net, 60000);
	struct device_status status = device_state_read(d->state);
	assert_false(status.resolved);
	assert_string_equal(status.error, "its name is not known");
	assert_true(status.failing_since_ms >= FAKE_BEGIN_MS);
	net.resolves_to = 3;
	fake_run(&net, 60000);
	assert_in_range(net.devices[3].walks, 1, 2);
	assert_int_equal(device_state_read(d->state).failing_since_ms, 0);
	/* It moves: looked up again within the time that addresses are relied on. */
	net.resolves_to = 4;
	fake_run(&net, POLLER_RESOLVE_MS + 60000);
	assert_true(net.devices[4].walks >= 1);
	/* The name server goes away: the address is used on. */
	net.resolves_to = 0;
	unsigned walks = net.devices[4].walks;
	fake_run(&net, 600000);
	assert_int_equal(net.devices[4].walks - walks, 20);
	close_devices();
}

static void a_device_without_credentials_says_so(UNUSED void **state)
{
	open_sets();
	fake_open(&net);
	struct device *d = fake_device_add(&net, 0, slow_only, 1);
	d->credentials = NULL;
	all[0] = d;
	fake_show(&net, all, 1);
	fake_run(&net, 60000);
	assert_string_equal(device_state_read(d->state).error,
			    "its credentials are not in the secrets file");
	assert_int_equal(net.sessions, 0);
	/* And what is wrong with those that are there. */
	static struct device other;
	static const struct device *after[1] = {&other};
	net.credentials.user = SLICE("monitor");
	other = *d;
	other.credentials = &net.credentials;
	fake_show(&net, after, 1);
	fake_run(&net, 60000);
	assert_string_equal(device_state_read(d->state).error, "the password is too short");
	close_devices();
}

/* ---- Names of interfaces --------------------------------------------------------------------- */

static void names_are_walked_once_while_the_device_vouches(UNUSED void **state)
{
	open_devices(1, fast_only, 1);
	run_to_slot();
	assert_string_equal(fake_taken(&net), "xe-0/0/0  ifHCInOctets=100\n"
					      "xe-0/0/1  ifHCInOctets=200\n");
	assert_int_equal(net.devices[0].name_walks, 1);
	fake_run(&net, 570000);
	assert_int_equal(net.devices[0].name_walks, 1);
	fake_run(&net, 60000); /* older than ten minutes */
	assert_int_equal(net.devices[0].name_walks, 2);
	assert_int_equal(net.taken, 22);
	close_devices();
}

static void swap_ports(struct fake_device *device)
{
	const char *name = device->ports[0].name;
	device->ports[0].name = device->ports[1].name;
	device->ports[1].name = name;
	uint64_t counter = device->ports[0].counter;
	device->ports[0].counter = device->ports[1].counter;
	device->ports[1].counter = counter;
}

static void swap_with_notice(struct fake_device *device)
{
	swap_ports(device);
	device->last_change++;
}

/* Between two polls: the counters follow their names, without a gap. */
static void rows_follow_the_name_when_the_device_says_so(UNUSED void **state)
{
	open_devices(1, fast_only, 1);
	run_to_slot();
	fake_taken(&net);
	swap_with_notice(&net.devices[0]);
	fake_run(&net, INTERVAL_MS);
	assert_string_equal(fake_taken(&net), "xe-0/0/1  ifHCInOctets=200\n"
					      "xe-0/0/0  ifHCInOctets=100\n");
	close_devices();
}

static void once(struct fake_device *device)
{
	device->meanwhile = NULL;
	swap_with_notice(device);
}

/* In the middle of a walk, behind its guard: what was read belongs to nobody for sure. */
static void a_swap_in_the_middle_of_a_walk_is_found(UNUSED void **state)
{
	open_devices(1, fast_only, 1);
	run_to_slot();
	fake_taken(&net);
	int64_t renamed = stat_get(STAT_poll_refused_renamed);
	net.devices[0].meanwhile = once;
	fake_run(&net, INTERVAL_MS);
	assert_string_equal(fake_taken(&net), "");
	assert_int_equal(stat_get(STAT_poll_refused_renamed) - renamed, 2);
	fake_run(&net, INTERVAL_MS);
	assert_string_equal(fake_taken(&net), "xe-0/0/1  ifHCInOctets=200\n"
					      "xe-0/0/0  ifHCInOctets=100\n");
	close_devices();
}

/* Uptime fell, or grew by less than the time that passed; the table's time is the same. */
static void a_restart_makes_names_be_read_again(UNUSED void **state)
{
	open_devices(1, fast_only, 1);
	run_to_slot();
	net.devices[0].booted_ms = fake_now(&net);
	swap_ports(&net.devices[0]);
	fake_taken(&net);
	fake_run(&net, INTERVAL_MS);
	/* Nobody vouches for the time before: left out once. */
	assert_int_equal(net.devices[0].name_walks, 2);
	fake_run(&net, INTERVAL_MS);
	assert_non_null(strstr(fake_taken(&net), "xe-0/0/0  ifHCInOctets=100\n"));
	assert_int_equal(net.devices[0].name_walks, 2);
	close_devices();
}

/* Without ifTableLastChange: names with every poll, and never a value under the other's name. */
static void a_device_that_vouches_for_nothing_is_asked_every_time(UNUSED void **state)
{
	open_devices(1, fast_only, 1);
	net.devices[0].without_change = true;
	fake_run(&net, 600000);
	assert_int_equal(net.devices[0].name_walks, 21); /* and once before the first */
	assert_int_equal(net.taken, 20);
	fake_taken(&net);
	swap_ports(&net.devices[0]);
	fake_run(&net, INTERVAL_MS);
	assert_string_equal(fake_taken(&net), "");
	fake_run(&net, INTERVAL_MS);
	assert_string_equal(fake_taken(&net), "xe-0/0/1  ifHCInOctets=200\n"
					      "xe-0/0/0  ifHCInOctets=100\n");
	close_devices();
}

/* ifTableLastChange stands still although names move: found when the names are read again, and not
 * believed any more. */
static void a_device_that_vouches_wrongly_is_not_believed_again(UNUSED void **state)
{
	int64_t distrusted = stat_get(STAT_poll_guards_distrusted);
	open_devices(1, fast_only, 1);
	run_to_slot();
	swap_ports(&net.devices[0]);
	fake_run(&net, 630000);
	assert_int_equal(stat_get(STAT_poll_guards_distrusted) - distrusted, 1);
	unsigned walks = net.devices[0].name_walks;
	fake_taken(&net);
	swap_ports(&net.devices[0]);
	fake_run(&net, INTERVAL_MS);
	assert_string_equal(fake_taken(&net), ""); /* found at once */
	assert_int_equal(net.devices[0].name_walks, walks + 1);
	close_devices();
}

/* A line card is put in: its interface has values in the very next poll. */
static void a_new_interface_is_stored_at_once(UNUSED void **state)
{
	open_devices(1, fast_only, 1);
	run_to_slot();
	fake_taken(&net);
	net.devices[0].ports[2] = (struct fake_port){3, "xe-1/0/0", "", 300};
	net.devices[0].last_change++;
	fake_run(&net, INTERVAL_MS);
	assert_non_null(strstr(fake_taken(&net), "xe-1/0/0  ifHCInOctets=300\n"));
	close_devices();
}

/* Names that come to no end would be ifDescr instead: no poll without them. */
static void names_that_are_cut_are_not_used(UNUSED void **state)
{
	open_devices(1, fast_and_refs, 2);
	net.devices[0].cut = "ifName";
	fake_run(&net, INTERVAL_MS);
	assert_int_equal(net.taken, 0); /* nor do versioned rows end */
	assert_string_equal(device_state_read(all[0]->state).error,
			    "the device does not give all of ifName");
	net.devices[0].cut = "ifHCInOctets"; /* counters go as far as they go */
	fake_run(&net, INTERVAL_MS);
	assert_int_equal(net.taken, 2);
	close_devices();
}

/* ifDescr takes the place of an ifName that is empty; it is asked for only then. */
static void what_has_no_name_has_a_description(UNUSED void **state)
{
	open_devices(1, fast_only, 1);
	net.devices[0].ports[1] = (struct fake_port){2, NULL, "", 200, "Ethernet 2"};
	net.devices[0].ports[2] = (struct fake_port){3, NULL, "", 300, NULL};
	run_to_slot();
	assert_string_equal(fake_taken(&net), "xe-0/0/0  ifHCInOctets=100\n"
					      "Ethernet 2  ifHCInOctets=200\n"
					      "#3  ifHCInOctets=300\n");
	assert_int_equal(net.devices[0].name_walks, 2); /* without, then with */
	fake_run(&net, INTERVAL_MS);
	assert_int_equal(net.devices[0].name_walks, 2);
	close_devices();
}

static void descriptions_are_asked_for_where_an_oidset_wants_them(UNUSED void **state)
{
	open_sets();
	fast.oidset.skip_undescribed = true;
	fake_open(&net);
	all[0] = fake_device_add(&net, 0, fast_only, 1);
	fake_show(&net, all, 1);
	run_to_slot();
	assert_string_equal(fake_taken(&net), "xe-0/0/0  ifHCInOctets=100\n");
	close_devices();
}

/* ---- The sink -------------------------------------------------------------------------------- */

static void a_busy_sink_delays_no_poll_and_loses_the_oldest(UNUSED void **state)
{
	int64_t dropped = stat_get(STAT_poll_dropped_full);
	open_devices(1, slow_only, 1);
	net.sink_err = ERR_BUSY;
	for (int i = 1; i <= 8; i++) {
		net.devices[0].ports[0].counter = (uint64_t)i;
		net.devices[0].ports[1].index = 0;
		fake_run(&net, INTERVAL_MS);
	}
	assert_int_equal(net.devices[0].walks, 8);
	assert_int_equal(net.taken, 0);
	assert_int_equal(stat_get(STAT_poll_dropped_full) - dropped, 3); /* the ring holds 5 */
	net.sink_err = 0;
	fake_run(&net, 100); /* it is offered again soon */
	assert_string_equal(fake_taken(&net), "1  ifHCInOctets=4\n1  ifHCInOctets=5\n"
					      "1  ifHCInOctets=6\n1  ifHCInOctets=7\n"
					      "1  ifHCInOctets=8\n");
	close_devices();
}

/* Six polls that end 10 ms after each other, from 3 s before the end of the interval on. */
static void open_gathering(void)
{
	open_devices(6, slow_only, 1);
	for (int i = 0; i < 6; i++) {
		int64_t phase = schedule_phase(all[i]->name, slow.oidset.name, INTERVAL_MS);
		int64_t end = INTERVAL_MS - 3000 + 10 * i;
		net.devices[i].latency_ms = (end - phase + INTERVAL_MS) % INTERVAL_MS;
	}
	/* Begins when all are polled: 4 s before the end of the second interval. */
	int64_t into = fake_now(&net) % INTERVAL_MS;
	fake_run(&net, 2 * INTERVAL_MS - 4000 - into);
	net.taken = net.ends = 0;
}

static void the_first_poll_goes_at_once_and_those_behind_it_together(UNUSED void **state)
{
	open_gathering();
	net.core->ring.messages_max = 100;
	fake_run(&net, 999);
	assert_int_equal(net.taken, 0);
	assert_int_equal(net.ends, 0);
	fake_run(&net, 2);
	assert_true(net.taken == 1 && net.ends == 1);
	fake_run(&net, 198);
	assert_true(net.taken == 1 && net.ends == 1);
	assert_int_equal(net.core->ring.messages, 5);
	fake_run(&net, 2);
	assert_true(net.taken == 6 && net.ends == 2);
	close_devices();
}

/* The ring holds 5: three are more than half. */
static void a_small_ring_is_not_filled_by_waiting(UNUSED void **state)
{
	int64_t dropped = stat_get(STAT_poll_dropped_full);
	open_gathering();
	fake_run(&net, 1025); /* of 0, 10 and 20 ms */
	assert_int_equal(net.taken, 1);
	fake_run(&net, 10);
	assert_int_equal(net.taken, 4);
	fake_run(&net, 965);
	assert_int_equal(net.taken, 6);
	assert_int_equal(stat_get(STAT_poll_dropped_full) - dropped, 0);
	close_devices();
}

static void what_waits_is_handed_over_at_the_end(UNUSED void **state)
{
	open_gathering();
	net.core->ring.messages_max = 100;
	fake_run(&net, 1100);
	assert_int_equal(net.taken, 1);
	core_free(net.core);
	assert_int_equal(net.taken, 6);
	net.core = NULL;
	close_devices();
}

static void what_the_sink_refuses_for_good_is_counted(UNUSED void **state)
{
	int64_t refused = stat_get(STAT_poll_dropped_refused);
	open_devices(1, slow_only, 1);
	net.sink_err = ERR_LIMIT;
	fake_run(&net, 2 * INTERVAL_MS);
	assert_int_equal(stat_get(STAT_poll_dropped_refused) - refused, 2);
	assert_int_equal(net.core->ring.messages, 0);
	close_devices();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_device_is_polled_in_each_of_its_slots),
		cmocka_unit_test(devices_that_do_not_answer_delay_no_other),
		cmocka_unit_test(a_device_that_hung_has_all_slots_again),
		cmocka_unit_test(a_new_device_is_polled_at_once),
		cmocka_unit_test(a_device_that_is_back_is_polled_whole_in_its_next_slot),
		cmocka_unit_test(oidsets_of_a_device_share_its_session),
		cmocka_unit_test(a_clock_that_jumps_costs_slots_and_no_burst),
		cmocka_unit_test(devices_come_and_go_without_a_restart),
		cmocka_unit_test(only_active_devices_are_polled),
		cmocka_unit_test(devices_of_other_pollers_are_left_alone),
		cmocka_unit_test(a_name_that_has_no_address_is_said_and_tried_again),
		cmocka_unit_test(a_device_without_credentials_says_so),
		cmocka_unit_test(names_are_walked_once_while_the_device_vouches),
		cmocka_unit_test(rows_follow_the_name_when_the_device_says_so),
		cmocka_unit_test(a_swap_in_the_middle_of_a_walk_is_found),
		cmocka_unit_test(a_restart_makes_names_be_read_again),
		cmocka_unit_test(a_device_that_vouches_for_nothing_is_asked_every_time),
		cmocka_unit_test(a_device_that_vouches_wrongly_is_not_believed_again),
		cmocka_unit_test(a_new_interface_is_stored_at_once),
		cmocka_unit_test(names_that_are_cut_are_not_used),
		cmocka_unit_test(what_has_no_name_has_a_description),
		cmocka_unit_test(descriptions_are_asked_for_where_an_oidset_wants_them),
		cmocka_unit_test(a_busy_sink_delays_no_poll_and_loses_the_oldest),
		cmocka_unit_test(the_first_poll_goes_at_once_and_those_behind_it_together),
		cmocka_unit_test(a_small_ring_is_not_filled_by_waiting),
		cmocka_unit_test(what_waits_is_handed_over_at_the_end),
		cmocka_unit_test(what_the_sink_refuses_for_good_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
