/* Correlators: what walks of the vendors' tables become. Indices are worked by hand from the MIBs'
 * INDEX clauses. */
#include "snmp_harness.h"

#define IN  "ifHCInOctets"
#define OUT "ifHCOutOctets"

static void open_fast_poll(struct rig *rig)
{
	rig_open(rig, "FastPollHC", CORRELATOR_IF_NAME);
	rig_oid(rig, "sysUpTime", "1.3.6.1.2.1.1.3", OID_TIMETICKS)->scalar = true;
	rig_oid(rig, IN, "1.3.6.1.2.1.31.1.1.1.6", OID_COUNTER64)->aggregate = true;
	rig_oid(rig, OUT, "1.3.6.1.2.1.31.1.1.1.10", OID_COUNTER64)->aggregate = true;
}

/* Rows that are called what their `label` says. */
static void begin_sensors(struct rig *rig)
{
	rig_open(rig, "Sensors", CORRELATOR_GENERIC);
	rig_oid(rig, "level", "1.3.6.1.4.1.99.1.2", OID_GAUGE32);
	rig_name_oid(rig, "label", "1.3.6.1.4.1.99.1.1", OID_TEXT);
	rig->oidset.correlate_oid = rig->oidset.name_oids[0];
	rig_begin(rig);
}

static const struct named two_ports[] = {
	{"1", "xe-0/0/0", NULL, "uplink"}, {"7", "xe-0/2/0", NULL, ""}, {NULL}};

/* ---- Interfaces ------------------------------------------------------------------------------ */

static void interfaces_are_called_by_their_name(UNUSED void **state)
{
	struct rig rig;
	open_fast_poll(&rig);
	rig_begin(&rig);
	/* The companions are polled beside, and the guard; uptime behind, and the time of the
	 * table's last change, are not stored. */
	assert_int_equal(rig.plan.value_count, 4);
	assert_int_equal(rig.plan.count, 7);
	struct if_names *names = make_names(two_ports, 0, 100, 5);
	correlate_set_reply(&rig.set, 1007);
	set_add(&rig.set, "sysUpTime", "0", ticks(200));
	set_add(&rig.set, "ifTableLastChange", "0", ticks(5));
	set_add(&rig.set, IN, "1", counter64(UINT64_MAX));
	set_add(&rig.set, OUT, "1", counter64(2));
	set_add(&rig.set, "ifCounterDiscontinuityTime", "1", ticks(9));
	set_add(&rig.set, IN, "7", counter64(0));
	assert_string_equal(rig_run_named(&rig, names),
			    " @1007 sysUpTime=200\n"
			    "xe-0/0/0 @1007 ifHCInOctets=18446744073709551615 ifHCOutOctets=2 "
			    "ifCounterDiscontinuityTime=9\n"
			    "xe-0/2/0 @1007 ifHCInOctets=0\n");
	assert_int_equal(rig.output.values, 5);
	if_names_release(names);
	rig_close(&rig);
}

/* Values of one row that came in two replies keep their times. */
static void each_value_has_the_time_of_its_own_reply(UNUSED void **state)
{
	struct rig rig;
	open_fast_poll(&rig);
	rig_begin(&rig);
	struct if_names *names = make_names(two_ports, 0, 100, 5);
	correlate_set_reply(&rig.set, 1007);
	set_add(&rig.set, IN, "1", counter64(1));
	set_add(&rig.set, OUT, "1", counter64(2));
	set_add(&rig.set, IN, "7", counter64(3));
	correlate_set_reply(&rig.set, 1031);
	set_add(&rig.set, OUT, "7", counter64(4));
	assert_string_equal(rig_run_named(&rig, names),
			    "xe-0/0/0 @1007 ifHCInOctets=1 ifHCOutOctets=2\n"
			    "xe-0/2/0 @1007 ifHCInOctets=3\n"
			    "xe-0/2/0 @1031 ifHCOutOctets=4\n");
	if_names_release(names);
	rig_close(&rig);
}

static void undescribed_interfaces_are_left_out_where_the_oidset_says_so(UNUSED void **state)
{
	struct rig rig;
	open_fast_poll(&rig);
	rig.oidset.skip_undescribed = true;
	rig_begin(&rig);
	struct if_names *names = make_names(two_ports, 0, 100, 5);
	set_add(&rig.set, IN, "1", counter64(1));
	set_add(&rig.set, IN, "7", counter64(3));
	assert_string_equal(rig_run_named(&rig, names), "xe-0/0/0 @1000 ifHCInOctets=1\n");
	assert_string_equal(rig.set.notes.first.text, ""); /* on purpose: no trouble */
	if_names_release(names);
	rig_close(&rig);
}

/* The device swapped the two while the values were read, or before: nobody can say. */
static void a_row_whose_name_changed_meanwhile_is_not_stored(UNUSED void **state)
{
	static const struct named swapped[] = {
		{"1", "xe-0/2/0"}, {"7", "xe-0/0/0"}, {"8", "same"}, {"9", "new"}, {NULL}};
	static const struct named before[] = {
		{"1", "xe-0/0/0"}, {"7", "xe-0/2/0"}, {"8", "same"}, {NULL}};
	struct rig rig;
	open_fast_poll(&rig);
	rig_begin(&rig);
	struct if_names *m0 = make_names(before, 0, 100, 5), *m1 = make_names(swapped, 0, 100, 5);
	static const char *const indices[] = {"1", "7", "8", "9"};
	for (size_t i = 0; i < ARRAY_LEN(indices); i++)
		set_add(&rig.set, IN, indices[i], counter64(i));
	struct correlate_naming naming = {.before = m0, .after = m1};
	assert_string_equal(rig_run(&rig, &naming), "same @1000 ifHCInOctets=2\n");
	assert_int_equal(rig.set.notes.counts[TROUBLE_RENAMED], 3);
	assert_non_null(
		strstr(rig.set.notes.first.text, "index 1: the device may have renumbered"));
	/* Where the device vouches for the names of the second walk, they hold. */
	naming.steady = true;
	assert_string_equal(rig_run(&rig, &naming), "xe-0/2/0 @1000 ifHCInOctets=0\n"
						    "xe-0/0/0 @1000 ifHCInOctets=1\n"
						    "same @1000 ifHCInOctets=2\n"
						    "new @1000 ifHCInOctets=3\n");
	if_names_release(m0);
	if_names_release(m1);
	rig_close(&rig);
}

static void interfaces_of_one_name_are_told_apart_by_their_indices(UNUSED void **state)
{
	static const struct named doubled[] = {{"1", "eth0"}, {"2", "eth1"},     {"3", "eth0"},
					       {"4", "", ""}, {"5", "", "five"}, {NULL}};
	struct rig rig;
	open_fast_poll(&rig);
	rig_begin(&rig);
	struct if_names *names = make_names(doubled, 0, 100, 5);
	/* Also when only one of them has values: its name would change from poll to poll. */
	set_add(&rig.set, IN, "3", counter64(3));
	set_add(&rig.set, IN, "2", counter64(2));
	set_add(&rig.set, IN, "4", counter64(4));
	set_add(&rig.set, IN, "5", counter64(5));
	set_add(&rig.set, IN, "6", counter64(6));
	assert_string_equal(rig_run_named(&rig, names), "eth1 @1000 ifHCInOctets=2\n"
							"eth0#3 @1000 ifHCInOctets=3\n"
							"#4 @1000 ifHCInOctets=4\n"
							"five @1000 ifHCInOctets=5\n");
	assert_int_equal(rig.set.notes.counts[TROUBLE_SHARED], 1);
	assert_int_equal(rig.set.notes.counts[TROUBLE_UNNAMED], 1);
	if_names_release(names);
	rig_close(&rig);
}

/* What has `#` in its name may be called like another with its index, and two rows may be of one
 * interface. */
static void no_two_rows_of_interfaces_share_a_path(UNUSED void **state)
{
	static const struct {
		const char *rows[3], *polls;
	} cases[] = {
		{{"1", "3"}, "x#1#1 @1000 ifHCInOctets=0\nx#1#3 @1000 ifHCInOctets=1\n"},
		{{"4", "5"}, "#4#4 @1000 ifHCInOctets=0\n#4#5 @1000 ifHCInOctets=1\n"},
		{{"6", "9.6"}, "y#6 @1000 ifHCInOctets=0\ny#9.6 @1000 ifHCInOctets=1\n"},
		{{"5", "6"}, "#4 @1000 ifHCInOctets=0\ny @1000 ifHCInOctets=1\n"},
	};
	static const struct named list[] = {{"1", "x"},  {"2", "x"}, {"3", "x#1"}, {"4", "", ""},
					    {"5", "#4"}, {"6", "y"}, {NULL}};
	struct if_names *names = make_names(list, 0, 100, 5);
	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		struct rig rig;
		open_fast_poll(&rig);
		rig_begin(&rig);
		for (size_t i = 0; cases[c].rows[i]; i++)
			set_add(&rig.set, IN, cases[c].rows[i], counter64(i));
		assert_string_equal(rig_run_named(&rig, names), cases[c].polls);
		rig_close(&rig);
	}
	if_names_release(names);
}

/* `...=text` of Infinera's names; what is equal behind the `=` is told apart. */
static void infinera_names_are_what_stands_behind_the_equals_sign(UNUSED void **state)
{
	static const struct named names_of[] = {{"1", "GIGECLIENTCTP=1-A-2-T1"},
						{"2", "x=same"},
						{"3", "y=same"},
						{"4", "plain"},
						{NULL}};
	struct rig rig;
	rig_open(&rig, "InfFastPollHC", CORRELATOR_INF_IF_NAME);
	rig_oid(&rig, "rx", "1.3.6.1.4.1.21296.2.2.2.3.8.1.1.11", OID_COUNTER64);
	rig_begin(&rig);
	struct if_names *names = make_names(names_of, 0, 100, 5);
	static const char *const indices[] = {"1", "2", "3", "4"};
	for (size_t i = 0; i < ARRAY_LEN(indices); i++)
		set_add(&rig.set, "rx", indices[i], counter64(i));
	assert_string_equal(rig_run_named(&rig, names), "1-A-2-T1 @1000 rx=0\nsame#2 @1000 rx=1\n"
							"same#3 @1000 rx=2\nplain @1000 rx=3\n");
	if_names_release(names);
	rig_close(&rig);
}

/* ---- The vendors' tables --------------------------------------------------------------------- */

/* INDEX { jnxFWCounterFilterName, jnxFWCounterName, jnxFWCounterType }: two strings with their
 * lengths, then a number. "in" "http" counter(2). */
static void juniper_filters_are_named_by_their_index(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, "JnxFirewall", CORRELATOR_JNX_FIREWALL);
	rig_oid(&rig, "bytes", "1.3.6.1.4.1.2636.3.5.2.1.5", OID_COUNTER64);
	rig_begin(&rig);
	set_add(&rig.set, "bytes", "2.105.110.4.104.116.116.112.2", counter64(10));
	set_add(&rig.set, "bytes", "2.105.110.4.104.116.116.112.3", counter64(11));
	set_add(&rig.set, "bytes", "2.105.110.0.9", counter64(12));  /* an empty name */
	set_add(&rig.set, "bytes", "9.105.110", counter64(1));       /* a length beyond the end */
	set_add(&rig.set, "bytes", "1.300.1.105.2", counter64(1));   /* no byte */
	set_add(&rig.set, "bytes", "1.105.1.105.2.7", counter64(1)); /* more behind it */
	assert_string_equal(rig_run(&rig, NULL), "9|in|- @1000 bytes=12\n"
						 "counter|in|http @1000 bytes=10\n"
						 "policer|in|http @1000 bytes=11\n");
	assert_int_equal(rig.set.notes.counts[TROUBLE_INDEX], 3);
	rig_close(&rig);
}

/* INDEX { ifIndex, queue name }. */
static void juniper_queues_are_named_by_interface_and_queue(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, "JnxCOS", CORRELATOR_JNX_COS);
	rig_oid(&rig, "qed", "1.3.6.1.4.1.2636.3.15.1.1.5", OID_COUNTER64);
	rig_begin(&rig);
	struct if_names *names = make_names(two_ports, 0, 100, 5);
	set_add(&rig.set, "qed", "1.2.98.101", counter64(1)); /* "be" */
	set_add(&rig.set, "qed", "7.2.98.101", counter64(2));
	set_add(&rig.set, "qed", "7", counter64(3));
	set_add(&rig.set, "qed", "8.2.98.101", counter64(4));
	assert_string_equal(rig_run_named(&rig, names),
			    "xe-0/0/0|be @1000 qed=1\nxe-0/2/0|be @1000 qed=2\n");
	assert_int_equal(rig.set.notes.counts[TROUBLE_INDEX], 1);
	assert_int_equal(rig.set.notes.counts[TROUBLE_UNNAMED], 1);
	if_names_release(names);
	rig_close(&rig);
}

static void sentry_outlets_and_sensors_have_their_ids(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, "SentryPoll", CORRELATOR_SENTRY);
	rig_oid(&rig, "load", "1.3.6.1.4.1.1718.3.2.3.1.7", OID_INTEGER);
	rig_oid(&rig, "temp", "1.3.6.1.4.1.1718.3.2.5.1.6", OID_INTEGER);
	rig_name_oid(&rig, "outletID", "1.3.6.1.4.1.1718.3.2.3.1.2", OID_TEXT);
	rig_name_oid(&rig, "tempHumidSensorID", "1.3.6.1.4.1.1718.3.2.5.1.2", OID_TEXT);
	rig_begin(&rig);
	set_add(&rig.set, "load", "1.1.1", integer(205));
	set_add(&rig.set, "load", "1.1.2", integer(-1));
	set_add(&rig.set, "load", "1.1.3", integer(7)); /* without an ID */
	set_add(&rig.set, "load", "1.1.3.4", integer(7));
	set_add(&rig.set, "temp", "1.1", integer(23));
	set_add(&rig.set, "outletID", "1.1.1", text("AA1"));
	set_add(&rig.set, "outletID", "1.1.2", text("AA2"));
	set_add(&rig.set, "tempHumidSensorID", "1.1", text("A1"));
	assert_string_equal(rig_run(&rig, NULL),
			    "A1 @1000 temp=23\nAA1 @1000 load=205\nAA2 @1000 load=-1\n");
	assert_int_equal(rig.set.notes.counts[TROUBLE_UNNAMED], 1);
	assert_int_equal(rig.set.notes.counts[TROUBLE_INDEX], 1);
	rig_close(&rig);
}

/* 270565376 = 0x10208000: 000 1000 0001 000001 000000000000000, slot 8, mda 1, port 1. */
static void saps_are_service_port_and_vlan(UNUSED void **state)
{
	static const struct {
		const char *index, *path;
	} cases[] = {
		{"1.270565376.100", "1-8/1/1-100"},
		{"1.503316480.0", "1-invalid-portid-0"}, /* 0x1e000000 */
		{"9.1342177285.4095", "9-lag-5-4095"},   /* 0x50000005 */
		{"9.1073741826.1", "9-virtual-2-1"},     /* 0x40000002 */
		{"9.807436291.1", "9-8/1/1.3-1"},        /* 0x30208003: channel 3 */
		{"9.270565377.1", "9-270565377-1"},      /* a physical port has no channel */
		{"9.1610612736.1", "9-1610612736-1"},    /* 0x60000000: another scheme */
		{"4294967295.4294967295.4294967295", "4294967295-4294967295-4294967295"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig rig;
		char expected[200];
		rig_open(&rig, "ALUSAPPoll", CORRELATOR_ALU_SAP);
		rig_oid(&rig, "octets", "1.3.6.1.4.1.6527.3.1.2.4.3.6.1.12", OID_COUNTER64);
		rig_begin(&rig);
		set_add(&rig.set, "octets", cases[i].index, counter64(5));
		snprintf(expected, sizeof(expected), "%s @1000 octets=5\n", cases[i].path);
		assert_string_equal(rig_run(&rig, NULL), expected);
		rig_close(&rig);
	}
}

static void cisco_processors_are_named_by_their_entity(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, "CiscoCPU", CORRELATOR_CISCO_CPU);
	rig_oid(&rig, "cpmCPUTotal5min", "1.3.6.1.4.1.9.9.109.1.1.1.1.5", OID_GAUGE32);
	rig_name_oid(&rig, "cpmCPUTotalPhysicalIndex", "1.3.6.1.4.1.9.9.109.1.1.1.1.2",
		     OID_INTEGER);
	rig_name_oid(&rig, "entPhysicalName", "1.3.6.1.2.1.47.1.1.1.1.7", OID_TEXT);
	rig_begin(&rig);
	for (int cpu = 1; cpu <= 3; cpu++) {
		char index[4] = {(char)('0' + cpu)};
		set_add(&rig.set, "cpmCPUTotal5min", index,
			(struct snmp_value){.type = SNMP_GAUGE32, .u64 = (uint64_t)cpu * 10});
		set_add(&rig.set, "cpmCPUTotalPhysicalIndex", index,
			integer(cpu == 3 ? 0 : 7 + cpu));
	}
	set_add(&rig.set, "entPhysicalName", "1", text("Chassis"));
	set_add(&rig.set, "entPhysicalName", "8", text("CPU_of_Module_2"));
	set_add(&rig.set, "entPhysicalName", "9", text("CPU of Slot 3"));
	assert_string_equal(rig_run(&rig, NULL), "Module_2 @1000 cpmCPUTotal5min=10\n"
						 "Slot 3 @1000 cpmCPUTotal5min=20\n");
	assert_int_equal(rig.set.notes.counts[TROUBLE_UNNAMED], 1); /* entity 0: none */
	rig_close(&rig);
}

static void generic_rows_have_the_value_of_the_named_oid(UNUSED void **state)
{
	struct rig rig;
	begin_sensors(&rig);
	static const char *const labels[] = {"inlet", "outlet", "outlet", "caf\xe9\x01", ""};
	for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
		char index[8];
		snprintf(index, sizeof(index), "5.%zu", i);
		set_add(&rig.set, "level", index, integer((int64_t)i));
		set_add(&rig.set, "label", index, text(labels[i]));
	}
	assert_string_equal(rig_run(&rig, NULL),
			    "inlet @1000 level=0\noutlet#5.1 @1000 level=1\n"
			    "outlet#5.2 @1000 level=2\n"
			    "caf\\xe9\\x01 @1000 level=3\n#5.4 @1000 level=4\n");
	assert_int_equal(rig.set.notes.counts[TROUBLE_SHARED], 2);
	rig_close(&rig);
}

/* `n`, `n`, and one that is called what the first of them becomes. */
static void a_name_with_its_index_may_be_taken_already(UNUSED void **state)
{
	struct rig rig;
	begin_sensors(&rig);
	static const char *const labels[] = {"n", "n", "n#1", "m"};
	for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
		char index[8];
		snprintf(index, sizeof(index), "%zu", i + 1);
		set_add(&rig.set, "level", index, integer((int64_t)i));
		set_add(&rig.set, "label", index, text(labels[i]));
	}
	assert_string_equal(rig_run(&rig, NULL), "n#1#1 @1000 level=0\nn#2 @1000 level=1\n"
						 "n#1#3 @1000 level=2\nm @1000 level=3\n");
	rig_close(&rig);
}

static void scalars_have_no_path_and_indices_are_written_with_dots(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, "Scalars", CORRELATOR_OID);
	rig_oid(&rig, "load", "1.3.6.1.4.1.99.3", OID_INTEGER);
	rig_begin(&rig);
	set_add(&rig.set, "load", "0", integer(-3));
	assert_string_equal(rig_run(&rig, NULL), " @1000 load=-3\n");
	rig_close(&rig);
	rig_open(&rig, "Rows", CORRELATOR_INDEX);
	rig_oid(&rig, "load", "1.3.6.1.4.1.99.4", OID_INTEGER);
	rig_begin(&rig);
	set_add(&rig.set, "load", "4294967295.128.0", integer(1));
	set_add(&rig.set, "load", "0", integer(2));
	set_add(&rig.set, "load", "16384", integer(4));
	set_add(&rig.set, "load", "16383", integer(3));
	/* By number, not by byte: 16383 is ff 7f, 16384 is 81 80 00. */
	assert_string_equal(rig_run(&rig, NULL), "0 @1000 load=2\n16383 @1000 load=3\n"
						 "16384 @1000 load=4\n"
						 "4294967295.128.0 @1000 load=1\n");
	rig_close(&rig);
}

/* ---- Versioned rows -------------------------------------------------------------------------- */

static void versioned_rows_have_their_index_and_texts(UNUSED void **state)
{
	struct rig rig;
	static const uint8_t mac[] = {0, 0x1b, 0x21, 0xff, 0, 0x0a}, address[] = {10, 0, 0, 1};
	rig_open(&rig, "IfRefPoll", CORRELATOR_NONE);
	rig.oidset.kind = OIDSET_INTERFACES;
	rig_oid(&rig, "ifDescr", "1.3.6.1.2.1.2.2.1.2", OID_TEXT);
	rig_oid(&rig, "ifSpeed", "1.3.6.1.2.1.2.2.1.5", OID_GAUGE32);
	rig_oid(&rig, "ifPhysAddress", "1.3.6.1.2.1.2.2.1.6", OID_PHYS_ADDRESS);
	rig_oid(&rig, "ipAdEntIfIndex", "1.3.6.1.2.1.4.20.1.2", OID_INTEGER);
	rig_oid(&rig, "to", "1.3.6.1.4.1.99.5", OID_IP_ADDRESS);
	rig_oid(&rig, "sysObjectID", "1.3.6.1.4.1.99.6", OID_OBJECT_ID);
	rig_begin(&rig);
	set_add(&rig.set, "ifDescr", "1", octets("lo\0\0", 4)); /* zeros as C writes them */
	set_add(&rig.set, "ifDescr", "2", text(""));
	correlate_set_reply(&rig.set, 1020); /* a versioned row stays whole */
	set_add(&rig.set, "ifSpeed", "1",
		(struct snmp_value){.type = SNMP_GAUGE32, .u64 = 4294967295});
	set_add(&rig.set, "ifPhysAddress", "1", octets(mac, sizeof(mac)));
	set_add(&rig.set, "ifPhysAddress", "2", octets("", 0));
	set_add(&rig.set, "ipAdEntIfIndex", "10.0.0.1", integer(2));
	set_add(&rig.set, "to", "1",
		(struct snmp_value){.type = SNMP_IPADDRESS, .bytes = {(const char *)address, 4}});
	set_add(&rig.set, "sysObjectID", "1",
		(struct snmp_value){.type = SNMP_OID, .bytes = {"\x2b\x06\x01", 3}});
	assert_string_equal(rig_run(&rig, NULL),
			    "1 @1000 ifDescr=\"lo\" ifSpeed=4294967295 "
			    "ifPhysAddress=\"00:1b:21:ff:00:0a\" to=\"10.0.0.1\" "
			    "sysObjectID=\"1.3.6.1\"\n"
			    "2 @1000 ifDescr=\"\" ifPhysAddress=\"\"\n"
			    "10.0.0.1 @1020 ipAdEntIfIndex=2\n");
	rig_close(&rig);
}

static void saps_and_paths_of_labels_are_named_beside_their_index(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, "ALUSAPRefPoll", CORRELATOR_NONE);
	rig.oidset.kind = OIDSET_SAPS;
	rig_oid(&rig, "sapDescription", "1.3.6.1.4.1.6527.3.1.2.4.3.2.1.5", OID_TEXT);
	rig_begin(&rig);
	set_add(&rig.set, "sapDescription", "1.270565376.100", text("one"));
	assert_string_equal(rig_run(&rig, NULL),
			    "1.270565376.100|1-8/1/1-100 @1000 sapDescription=\"one\"\n");
	rig_close(&rig);
	rig_open(&rig, "LSPOpStatus", CORRELATOR_NONE);
	rig.oidset.kind = OIDSET_LSPS;
	rig_oid(&rig, "state", "1.3.6.1.4.1.2636.3.2.5.1.2", OID_INTEGER);
	rig_begin(&rig);
	set_add(&rig.set, "state", "97.45.98", integer(2)); /* IMPLIED: no length */
	set_add(&rig.set, "state", "3.97.45.98", integer(2));
	set_add(&rig.set, "state", "97.300", integer(3));
	assert_string_equal(rig_run(&rig, NULL), "3.97.45.98|a-b @1000 state=2\n"
						 "97.45.98|a-b @1000 state=2\n"
						 "97.300 @1000 state=3\n");
	rig_close(&rig);
}

/* ---- What agents send that they should not --------------------------------------------------- */

static void odd_types_are_counted_and_described(UNUSED void **state)
{
	struct rig rig;
	open_fast_poll(&rig);
	rig_oid(&rig, "ifInErrors", "1.3.6.1.2.1.2.2.1.14", OID_COUNTER32);
	rig_oid(&rig, "ifOperStatus", "1.3.6.1.2.1.2.2.1.8", OID_INTEGER);
	rig_begin(&rig);
	struct if_names *names = make_names(two_ports, 0, 100, 5);
	set_add(&rig.set, IN, "1", octets("12", 2));
	set_add(&rig.set, OUT, "1", integer(-1));
	set_add(&rig.set, IN, "7", (struct snmp_value){.type = SNMP_NO_SUCH_INSTANCE});
	set_add(&rig.set, OUT, "7", integer(5));                     /* a number all the same */
	set_add(&rig.set, "ifInErrors", "1", counter64(1ULL << 32)); /* beyond its width */
	set_add(&rig.set, "ifInErrors", "7", counter64(UINT32_MAX));
	set_add(&rig.set, "ifOperStatus", "1", counter64(1ULL << 63));
	set_add(&rig.set, "ifOperStatus", "7",
		(struct snmp_value){.type = SNMP_DOUBLE, .f64 = 1.5});
	set_add(&rig.set, "ifOperStatus", "8", (struct snmp_value){.type = SNMP_UNREADABLE});
	assert_string_equal(
		rig_run_named(&rig, names),
		"xe-0/2/0 @1000 ifHCOutOctets=5 ifInErrors=4294967295 ifOperStatus=1.5\n");
	assert_int_equal(rig.set.notes.counts[TROUBLE_TYPE], 5);
	assert_string_equal(rig.set.notes.first.text,
			    "ifHCInOctets.1: a value of tag 0x04 where a Counter64 belongs");
	if_names_release(names);
	rig_close(&rig);
}

static void doubled_and_missing_indices_are_counted(UNUSED void **state)
{
	struct rig rig;
	open_fast_poll(&rig);
	rig_begin(&rig);
	struct if_names *names = make_names(two_ports, 0, 100, 5);
	set_add(&rig.set, IN, "7", counter64(7));
	set_add(&rig.set, IN, "1", counter64(1)); /* backwards */
	set_add(&rig.set, IN, "7", counter64(8));
	set_add(&rig.set, IN, "7", counter64(7));
	set_add(&rig.set, IN, "", counter64(9));
	assert_string_equal(rig_run_named(&rig, names), "xe-0/0/0 @1000 ifHCInOctets=1\n"
							"xe-0/2/0 @1000 ifHCInOctets=7\n");
	assert_int_equal(rig.set.notes.counts[TROUBLE_DOUBLED], 2);
	assert_int_equal(rig.set.notes.counts[TROUBLE_INDEX], 1);
	if_names_release(names);
	rig_close(&rig);
}

/* All 256 bytes, alone and among others: always valid, and different names stay different. */
static void names_may_hold_every_byte(UNUSED void **state)
{
	struct rig rig;
	begin_sensors(&rig);
	for (unsigned byte = 0; byte < 256; byte++) {
		char name[3] = {'a', (char)byte, 'b'}, index[8];
		snprintf(index, sizeof(index), "%u", byte + 1);
		set_add(&rig.set, "level", index, integer(byte));
		set_add(&rig.set, "label", index, octets(name, 3));
	}
	const char *out = rig_run(&rig, NULL);
	assert_int_equal(rig.output.rows, 256);
	assert_int_equal(rig.set.notes.counts[TROUBLE_SHARED], 0);
	assert_non_null(strstr(out, "a\\x00b @1000 level=0\n"));
	assert_non_null(strstr(out, "a\\x7fb @1000 level=127\n"));
	assert_non_null(strstr(out, "a\\xffb @1000 level=255\n"));
	assert_non_null(strstr(out, "a\\b @1000 level=92\n"));
	for (const char *at = out; *at; at++)
		assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
	rig_close(&rig);
}

static void too_many_rows_are_cut_and_counted(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, "Rows", CORRELATOR_INDEX);
	rig_oid(&rig, "a", "1.3.6.1.4.1.99.4", OID_INTEGER);
	rig_oid(&rig, "b", "1.3.6.1.4.1.99.5", OID_TEXT);
	rig_begin(&rig);
	uint8_t index[8];
	struct snmp_value one = integer(1), name = text("n");
	for (uint32_t i = 0; i < POLL_ROWS_MAX + 10; i++) {
		size_t len = oid_put_arc(index, i);
		correlate_set_add(&rig.set, 0, (struct slice){(char *)index, len}, &one);
		correlate_set_add(&rig.set, 1, (struct slice){(char *)index, len}, &name);
	}
	rig_run(&rig, NULL);
	assert_int_equal(rig.output.rows, POLL_ROWS_MAX);
	assert_int_equal(rig.set.notes.counts[TROUBLE_LIMIT], 20);
	assert_int_equal(rig.messages, 1);
	rig_close(&rig);
}

/* What one message does not take goes on in the next. */
static void long_polls_are_several_messages(UNUSED void **state)
{
	enum { ROWS = 300 };
	struct rig rig;
	rig_open(&rig, "Rows", CORRELATOR_INDEX);
	rig_oid(&rig, "a", "1.3.6.1.4.1.99.5", OID_TEXT);
	rig_begin(&rig);
	char *long_text = mem_alloc(POLL_TEXT_MAX_BYTES + 1);
	memset(long_text, 'x', POLL_TEXT_MAX_BYTES + 1);
	uint8_t index[8];
	for (uint32_t i = 0; i < ROWS; i++) {
		/* One byte more than a text may have: the last one alone. */
		struct snmp_value value = octets(long_text, POLL_TEXT_MAX_BYTES + (i == ROWS - 1));
		size_t len = oid_put_arc(index, i);
		correlate_set_add(&rig.set, 0, (struct slice){(char *)index, len}, &value);
	}
	buf_release(&rig.text);
	buf_init(&rig.text, 64 << 20);
	rig_run(&rig, NULL);
	assert_int_equal(rig.output.rows, ROWS - 1);
	assert_int_equal(rig.set.notes.counts[TROUBLE_TYPE], 1);
	assert_true(rig.messages >= 5);
	mem_free(long_text);
	rig_close(&rig);
}

/* A set is used again: nothing of the walk before is left. */
static void a_second_walk_begins_empty(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, "Rows", CORRELATOR_INDEX);
	rig_oid(&rig, "a", "1.3.6.1.4.1.99.4", OID_INTEGER);
	rig_begin(&rig);
	set_add(&rig.set, "a", "5", integer(1));
	set_add(&rig.set, "a", "4", integer(1));
	rig_run(&rig, NULL);
	correlate_set_begin(&rig.set, &rig.plan, 2000);
	set_add(&rig.set, "a", "6", integer(2));
	assert_string_equal(rig_run(&rig, NULL), "6 @2000 a=2\n");
	correlate_set_begin(&rig.set, &rig.plan, 3000);
	assert_string_equal(rig_run(&rig, NULL), ""); /* an empty walk is an empty poll */
	assert_int_equal(rig.messages, 1);
	rig_close(&rig);
}

/* Object identifiers that stand in the source as bytes are those that stand beside them as text. */
static void what_is_walked_beside_is_spelt_right(UNUSED void **state)
{
	struct rig rig;
	struct correlate_plan names;
	open_fast_poll(&rig);
	rig_begin(&rig);
	correlate_plan_init_names(&names, true, true);
	const struct correlate_plan *const plans[] = {&rig.plan, &names};
	for (size_t p = 0; p < ARRAY_LEN(plans); p++)
		for (size_t c = 0; c < plans[p]->count; c++) {
			const struct oid_def *def = plans[p]->columns[c].def;
			uint8_t memory[OID_MAX_BYTES];
			struct slice ber;
			assert_int_equal(oid_parse(def->oid, memory, &ber, NULL), 0);
			assert_true(slice_equal(ber, def->ber));
		}
	assert_int_equal(names.count, 7);
	assert_null(oid_companion(SLICE("ifName")));
	rig_close(&rig);
}

/* ---- The guard ------------------------------------------------------------------------------- */

static struct correlate_guard guard_at(int64_t ts_ms, uint32_t uptime, uint32_t change)
{
	return (struct correlate_guard){.has_uptime = true,
					.has_change = true,
					.uptime_ticks = uptime,
					.last_change = change,
					.ts_ms = ts_ms};
}

static void a_restart_is_seen_by_uptime_and_time(UNUSED void **state)
{
	struct correlate_guard a = guard_at(0, 100000, 5), b = guard_at(30000, 103000, 5);
	assert_false(correlate_guard_restarted(&a, &b));
	assert_true(correlate_guard_unchanged(&a, &b));
	b = guard_at(30000, 500, 5); /* uptime fell */
	assert_true(correlate_guard_restarted(&a, &b));
	assert_false(correlate_guard_unchanged(&a, &b));
	/* It was away for an hour, and has been up for longer than before: 20 min, then 50. */
	a = guard_at(0, 120000, 5);
	b = guard_at(3600000, 300000, 5);
	assert_true(correlate_guard_restarted(&a, &b));
	/* The 497th day: 2^32 ticks. */
	a = guard_at(0, UINT32_MAX - 999, 5);
	b = guard_at(30000, 2000, 5);
	assert_false(correlate_guard_restarted(&a, &b));
	b.has_uptime = false;
	assert_true(correlate_guard_restarted(&a, &b));
}

static void only_a_table_time_that_is_kept_vouches(UNUSED void **state)
{
	struct correlate_guard a = guard_at(0, 100000, 0), b = guard_at(30000, 103000, 0);
	assert_false(correlate_guard_unchanged(&a, &b)); /* 0 for ever: nobody keeps it */
	a.last_change = 5;
	b.last_change = 102000;
	assert_false(correlate_guard_unchanged(&a, &b));
	b.last_change = 5;
	assert_true(correlate_guard_unchanged(&a, &b));
	b.has_change = false;
	assert_false(correlate_guard_unchanged(&a, &b));
}

static void names_that_moved_are_told_from_names_that_came(UNUSED void **state)
{
	static const struct named one[] = {{"1", "a"}, {"2", "b"}, {NULL}};
	static const struct named more[] = {{"1", "a"}, {"2", "b"}, {"3", "c"}, {NULL}};
	static const struct named moved[] = {{"1", "b"}, {"2", "a"}, {NULL}};
	struct if_names *a = make_names(one, 0, 1, 1), *b = make_names(more, 0, 1, 1);
	struct if_names *c = make_names(moved, 0, 1, 1), *d = make_names(one, 9, 9, 9);
	assert_false(if_names_moved(a, b));
	assert_false(if_names_equal(a, b));
	assert_true(if_names_moved(a, c));
	assert_true(if_names_equal(a, d));
	assert_null(if_names_find(a, 3));
	assert_null(if_names_find(NULL, 3));
	assert_int_equal(if_names_find(b, 3)->index, 3);
	if_names_release(a);
	if_names_release(b);
	if_names_release(c);
	if_names_release(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interfaces_are_called_by_their_name),
		cmocka_unit_test(each_value_has_the_time_of_its_own_reply),
		cmocka_unit_test(undescribed_interfaces_are_left_out_where_the_oidset_says_so),
		cmocka_unit_test(a_row_whose_name_changed_meanwhile_is_not_stored),
		cmocka_unit_test(interfaces_of_one_name_are_told_apart_by_their_indices),
		cmocka_unit_test(no_two_rows_of_interfaces_share_a_path),
		cmocka_unit_test(infinera_names_are_what_stands_behind_the_equals_sign),
		cmocka_unit_test(juniper_filters_are_named_by_their_index),
		cmocka_unit_test(juniper_queues_are_named_by_interface_and_queue),
		cmocka_unit_test(sentry_outlets_and_sensors_have_their_ids),
		cmocka_unit_test(saps_are_service_port_and_vlan),
		cmocka_unit_test(cisco_processors_are_named_by_their_entity),
		cmocka_unit_test(generic_rows_have_the_value_of_the_named_oid),
		cmocka_unit_test(a_name_with_its_index_may_be_taken_already),
		cmocka_unit_test(scalars_have_no_path_and_indices_are_written_with_dots),
		cmocka_unit_test(versioned_rows_have_their_index_and_texts),
		cmocka_unit_test(saps_and_paths_of_labels_are_named_beside_their_index),
		cmocka_unit_test(odd_types_are_counted_and_described),
		cmocka_unit_test(doubled_and_missing_indices_are_counted),
		cmocka_unit_test(names_may_hold_every_byte),
		cmocka_unit_test(too_many_rows_are_cut_and_counted),
		cmocka_unit_test(long_polls_are_several_messages),
		cmocka_unit_test(a_second_walk_begins_empty),
		cmocka_unit_test(what_is_walked_beside_is_spelt_right),
		cmocka_unit_test(a_restart_is_seen_by_uptime_and_time),
		cmocka_unit_test(only_a_table_time_that_is_kept_vouches),
		cmocka_unit_test(names_that_moved_are_told_from_names_that_came),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
