/* Persisting on the real store: what lies in it after messages of esmond's went through a queue. */
#include "persist_harness.h"

static void test_raw_data_is_what_was_polled(void **state)
{
	(void)state;
	put("FastPollHC", "ifHCInOctets", T0_S + 31,
	    "[[[\"ifHCInOctets\",\"xe-0/2/0\"],16150333739148],"
	    "[[\"ifHCInOctets\",\"ge-0/0/1\"],18446744073709551615]]");
	put("FastPollHC", "sysUpTime", T0_S + 31, "[[[\"sysUpTime\"],4294967295]]");
	expect_raw(XE, "31=16150333739148");
	expect_raw(GE, "31=18446744073709551615");
	expect(TABLE_RAW_DATA, 30000, 0, "sysUpTime", "device=router_a,oidset=FastPollHC",
	       "31=4294967295");
	assert_int_equal(counted(STAT_persist_polls), 2);
	assert_int_equal(counted(STAT_persist_stored), 3);
}

/* The four that esmond made 250 of: its state went back to the late one. */
static void test_order_is_that_of_time(void **state)
{
	(void)state;
	put_octets(T0_S, "xe-0/2/0", 100);
	put_octets(T0_S + 30, "xe-0/2/0", 200);
	put_octets(T0_S + 15, "xe-0/2/0", 150);
	put_octets(T0_S + 60, "xe-0/2/0", 300);
	expect_raw(XE, "0=100 30=200 60=300");
	assert_int_equal(counted(STAT_persist_refused_order), 1);
	put_octets(T0_S + 60, "xe-0/2/0", 300); /* the same again */
	put_octets(T0_S + 60, "xe-0/2/0", 301); /* another at that time */
	expect_raw(XE, "0=100 30=200 60=300");
	assert_int_equal(counted(STAT_persist_repeated), 1);
	assert_int_equal(counted(STAT_persist_refused_order), 2);
}

/* What is remembered is what the store says, however the worker came to it. */
static void test_order_after_a_restart(void **state)
{
	(void)state;
	put_octets(T0_S + 30, "xe-0/2/0", 200);
	wait_until(nothing_pending, NULL);
	persist_end();
	persist_begin();
	put_octets(T0_S + 30, "xe-0/2/0", 200);
	put_octets(T0_S + 29, "xe-0/2/0", 199);
	put_octets(T0_S + 31, "xe-0/2/0", 201);
	expect_raw(XE, "30=200 31=201");
	assert_int_equal(counted(STAT_persist_repeated), 1);
	assert_int_equal(counted(STAT_persist_refused_order), 1);
}

/* Interfaces come and go, and the others keep their order. */
static void test_names_change(void **state)
{
	(void)state;
	put_octets(T0_S, "xe-0/2/0", 1);
	put("FastPollHC", "ifHCInOctets", T0_S + 30,
	    "[[[\"ifHCInOctets\",\"ge-0/0/1\"],5],[[\"ifHCInOctets\",\"xe-0/2/0\"],2]]");
	put_octets(T0_S + 15, "xe-0/2/0", 9);
	put_octets(T0_S + 60, "xe-0/2/0", 3);
	put_octets(T0_S + 60, "ge-0/0/1", 6);
	expect_raw(XE, "0=1 30=2 60=3");
	expect_raw(GE, "30=5 60=6");
	assert_int_equal(counted(STAT_persist_refused_order), 1);
}

static void test_values_that_are_none(void **state)
{
	(void)state;
	put("FastPoll", "ifInOctets", T0_S, "[[[\"ifInOctets\",\"a\"],4294967295]]");
	put("FastPoll", "ifInOctets", T0_S + 1, "[[[\"ifInOctets\",\"a\"],4294967296]]");
	put("FastPoll", "ifInOctets", T0_S + 2, "[[[\"ifInOctets\",\"a\"],-1]]");
	put("FastPoll", "ifInOctets", T0_S + 3, "[[[\"ifInOctets\",\"a\"],1.5]]");
	put("FastPoll", "ifInOctets", T0_S + 4, "[[[\"ifInOctets\",\"a\"],null]]");
	put("FastPoll", "ifInOctets", T0_S + 5, "[[[\"ifInOctets\",\"a\"],\"up\"]]");
	put("FastPoll", "noSuchOid", T0_S + 6, "[[[\"noSuchOid\",\"a\"],1]]");
	put("FastPoll", "ifInOctets", T0_S + 7, "[[[\"ifInOctets\",\"a\"],7.0]]");
	put("FastPoll", "ifInOctets", T0_S + 8, "[[[\"ifInOctets\",\"\"],8]]");
	wait_until(nothing_pending, NULL);
	expect(TABLE_RAW_DATA, 30000, 0, "ifInOctets",
	       "device=router_a,interface=a,oidset=FastPoll", "0=4294967295 7=7");
	expect_text("snmp:router_a:FastPoll:ifInOctets:a:30000", T0_S + 5, "\"up\"");
	assert_int_equal(counted(STAT_persist_refused_value), 3);
	assert_int_equal(counted(STAT_persist_refused_name), 1);
	assert_int_equal(counted(STAT_persist_refused_series), 1);
	assert_int_equal(counted(STAT_persist_aside), 0);
}

static void put_text(int64_t ts_s, const char *oid, const char *row, const char *text)
{
	char data[200];
	snprintf(data, sizeof(data), "[[[\"%s\",\"%s\"],%s]]", oid, row, text);
	put("FastPoll", oid, ts_s, data);
}

/* As of numbers: refused where one is not later, wherever that was learnt; the same is the same. */
static void test_texts_have_an_order(void **state)
{
	(void)state;
	static const char in[] = "snmp:router_a:FastPoll:ifInOctets:a:30000";
	put_text(T0_S + 30, "ifInOctets", "a", "\"up\"");
	put_text(T0_S + 30, "ifInOctets", "a", "\"up\"");
	put_text(T0_S + 30, "ifInOctets", "a", "\"down\"");
	put_text(T0_S + 29, "ifInOctets", "a", "\"older\"");
	put_text(T0_S + 29, "ifInOctets", "b", "\"of another row\"");
	put_text(T0_S + 29, "ifOutOctets", "a", "\"of another counter\"");
	/* Numbers beside them have an order of their own. */
	put_text(T0_S + 10, "ifInOctets", "a", "7");
	put_text(T0_S + 60, "ifInOctets", "a", "{\"x\":1}");
	wait_until(nothing_pending, NULL);
	expect_text(in, T0_S + 30, "\"up\"");
	expect_no_text(in, T0_S + 29);
	expect_text(in, T0_S + 60, "{\"x\":1}");
	expect_text("snmp:router_a:FastPoll:ifInOctets:b:30000", T0_S + 29, "\"of another row\"");
	expect_text("snmp:router_a:FastPoll:ifOutOctets:a:30000", T0_S + 29,
		    "\"of another counter\"");
	assert_int_equal(counted(STAT_persist_repeated), 1);
	assert_int_equal(counted(STAT_persist_refused_order), 2);
	assert_int_equal(counted(STAT_persist_stored), 5);

	persist_end();
	persist_begin();
	put_text(T0_S + 60, "ifInOctets", "a", "{\"x\":1}");
	put_text(T0_S + 59, "ifInOctets", "a", "\"older\"");
	put_text(T0_S + 61, "ifInOctets", "a", "\"newer\"");
	wait_until(nothing_pending, NULL);
	expect_no_text(in, T0_S + 59);
	expect_text(in, T0_S + 61, "\"newer\"");
	assert_int_equal(counted(STAT_persist_repeated), 2);
	assert_int_equal(counted(STAT_persist_refused_order), 3);
	assert_int_equal(counted(STAT_persist_stored), 6);
}

/* More of them than are looked up at once, by two messages of one batch. */
static void test_many_texts(void **state)
{
	(void)state;
	static char data[64 << 10];
	for (int round = 0; round < 3; round++) {
		size_t n = 0;
		for (int row = 0; row < 500; row++)
			n += (size_t)snprintf(data + n, sizeof(data) - n,
					      "%s[[\"ifInOctets\",\"row %d\"],\"%d of %d\"]",
					      row ? "," : "[", row, row, round);
		snprintf(data + n, sizeof(data) - n, "]");
		put("FastPoll", "ifInOctets", T0_S + 30 * round, data);
		put("FastPoll", "ifInOctets", T0_S + 30 * round - 1, data);
	}
	wait_until(nothing_pending, NULL);
	assert_int_equal(counted(STAT_persist_stored), 1500);
	assert_int_equal(counted(STAT_persist_refused_order), 1500);
	expect_text("snmp:router_a:FastPoll:ifInOctets:row 499:30000", T0_S + 60, "\"499 of 2\"");
}

/* A message that is none is set aside; those beside it are stored. */
static void test_malformed_messages(void **state)
{
	(void)state;
	const char *queue = inventory_conf_oidset(conf, SLICE("FastPollHC"))->queue->name.data;
	struct queue_stats stats;
	put_octets(T0_S, "xe-0/2/0", 1);
	put_bytes(queue, "router_a", SLICE("no poll at all"));
	put("IfRefPoll", "", T0_S, "{\"ifAlias\":[[\"ifAlias.1\",\"x\"]]}");
	put_octets(T0_S + 30, "xe-0/2/0", 2);
	expect_raw(XE, "0=1 30=2");
	assert_int_equal(counted(STAT_persist_aside), 1);
	for (size_t i = 0; i < conf->queue_count; i++) {
		queue_stats(queues[i], &stats);
		assert_int_equal(stats.aside, slice_equal(conf->queues[i]->name, slice_of(queue)));
	}
}

/* One row of one text, as a message from elsewhere may have it. */
static void put_text_of(const char *device, const char *oidset, const char *oid, const char *path)
{
	const char *queue = inventory_conf_oidset(conf, slice_of(oidset))->queue->name.data;
	struct slice part = slice_of(path);
	struct poll_builder b;
	struct errbuf e;
	struct buf message;
	poll_builder_init(&b);
	buf_init(&message, 1 << 20);
	assert_int_equal(poll_begin(&b, slice_of(device), slice_of(oidset), T0_S * 1000, &e), 0);
	assert_int_equal(poll_add_column(&b, slice_of(oid), &e), 0);
	assert_int_equal(poll_add_row(&b, &part, 1, T0_S * 1000, &e), 0);
	assert_int_equal(poll_set_text(&b, 0, 0, SLICE("up"), false, &e), 0);
	assert_int_equal(poll_encode(&b, 0, true, &message, &e), 0);
	put_bytes(queue, "router_a", buf_slice(&message));
	poll_builder_release(&b);
	buf_release(&message);
}

/* The text of one is refused, the rows of a device of such a name lie aside; what comes behind them
 * is stored. */
static void test_names_that_are_not_utf8(void **state)
{
	(void)state;
	put_text_of("router_a", "FastPoll", "ifInOctets", "caf\xe9");
	put_text_of("rtr_\xe9", "IfRefPoll", "ifName", "1");
	put_text_of("router_a", "IfRefPoll", "ifName", "1");
	put_text_of("router_a", "FastPoll", "ifInOctets", "caf\xc3\xa9");
	wait_until(nothing_pending, NULL);
	expect_text("snmp:router_a:FastPoll:ifInOctets:caf\xc3\xa9:30000", T0_S, "\"up\"");
	assert_int_equal(counted(STAT_persist_refused_series), 1);
	assert_int_equal(counted(STAT_persist_aside), 1);
}

static void rows_read(struct inventory_rows_read *read, int err)
{
	assert_int_equal(err, 0);
	*(bool *)read->owner = true;
}

/* `name begin end|open, ...` in seconds from T0, of all versions. */
static void expect_interfaces(const char *wanted)
{
	bool done = false;
	struct arena arena;
	char text[4096] = "";
	arena_init(&arena, 1 << 20);
	struct inventory_rows_read read = {
		.store = store,
		.executor = loop_executor(loop),
		.clock = clock_real(),
		.arena = &arena,
		.kind = OIDSET_INTERFACES,
		.device = SLICE("router_a"),
		.begin_ms = 0,
		.end_ms = INVENTORY_FOREVER_MS,
		.done = rows_read,
		.owner = &done,
	};
	wait_until(nothing_pending, NULL);
	assert_int_equal(inventory_rows_read_start(&read), 0);
	wait_until(is_true, &done);
	for (size_t i = 0; i < read.count; i++) {
		const struct inventory_row *row = &read.rows[i];
		char end[32] = "open";
		if (row->end_ms != INVENTORY_FOREVER_MS)
			snprintf(end, sizeof(end), "%lld", (long long)(row->end_ms / 1000 - T0_S));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s %lld %s",
			 i ? ", " : "", (int)row->name.len, row->name.data,
			 (long long)(row->begin_ms / 1000 - T0_S), end);
	}
	assert_string_equal(text, wanted);
	arena_release(&arena);
}

/* Another alias, another version; a walk that saw nothing says nothing. */
static void test_interfaces_have_versions(void **state)
{
	(void)state;
	put("IfRefPoll", "", T0_S,
	    "{\"ifName\":[[\"ifName.1\",\"xe-0/2/0\"]],\"ifAlias\":[[\"ifAlias.1\",\"test "
	    "one\"]]}");
	expect_interfaces("xe-0/2/0 0 open");
	put("IfRefPoll", "", T0_S + 60,
	    "{\"ifName\":[[\"ifName.1\",\"xe-0/2/0\"]],\"ifAlias\":[[\"ifAlias.1\",\"test "
	    "one\"]]}");
	put("IfRefPoll", "", T0_S + 120,
	    "{\"ifName\":[[\"ifName.1\",\"xe-0/2/0\"]],\"ifAlias\":[[\"ifAlias.1\",\"test "
	    "two\"]]}");
	put("IfRefPoll", "", T0_S + 180, "{\"ifName\":[],\"ifAlias\":[]}");
	expect_interfaces("xe-0/2/0 0 120, xe-0/2/0 120 open");
	assert_int_equal(counted(STAT_persist_row_polls), 4);
}

/* A name of 255 bytes that are no UTF-8, which a DisplayString may be: 1,020 as they are written.
 */
static void test_a_long_name_froze_all_interfaces_of_its_device(void **state)
{
	(void)state;
	char m[1021] = "", poll[2048], wanted[4096];
	for (int i = 0; i < 255; i++)
		memcpy(m + 4 * i, "_xe9", 4);
	put("IfRefPoll", "", T0_S,
	    "{\"ifName\":[[\"ifName.1\",\"aaa\"],[\"ifName.2\",\"mmm\"],[\"ifName.3\",\"zzz\"]],"
	    "\"ifAlias\":[[\"ifAlias.1\",\"old\"],[\"ifAlias.3\",\"old\"]]}");
	for (int64_t ts_s = T0_S + 60; ts_s <= T0_S + 120; ts_s += 60) {
		snprintf(poll, sizeof(poll),
			 "{\"ifName\":[[\"ifName.1\",\"aaa\"],[\"ifName.2\",\"%s\"],"
			 "[\"ifName.3\",\"zzz\"]],"
			 "\"ifAlias\":[[\"ifAlias.1\",\"%lld\"],[\"ifAlias.3\",\"%lld\"]]}",
			 m, (long long)ts_s, (long long)ts_s);
		put("IfRefPoll", "", ts_s, poll);
	}
	snprintf(wanted, sizeof(wanted),
		 "aaa 0 60, mmm 0 60, zzz 0 60, aaa 60 120, zzz 60 120, %s 60 open, aaa 120 open, "
		 "zzz 120 open",
		 m);
	/* The open ones lie by name: `_` is before `a`. */
	expect_interfaces(wanted);
	assert_int_equal(counted(STAT_persist_aside), 0);
}

/* A walk that comes after a later one changes nothing, also when the server was started between. */
static void test_walks_have_one_order(void **state)
{
	(void)state;
	static const char both[] =
		"{\"ifName\":[[\"ifName.1\",\"xe-0/2/0\"],[\"ifName.2\",\"xe-0/2/1\"]],"
		"\"ifAlias\":[[\"ifAlias.1\",\"one\"],[\"ifAlias.2\",\"two\"]]}";
	static const char old[] = "{\"ifName\":[[\"ifName.1\",\"xe-0/2/0\"]],"
				  "\"ifAlias\":[[\"ifAlias.1\",\"zero\"]]}";
	put("IfRefPoll", "", T0_S, both);
	put("IfRefPoll", "", T0_S + 600, both);
	put("IfRefPoll", "", T0_S + 60, old);
	expect_interfaces("xe-0/2/0 0 open, xe-0/2/1 0 open");
	persist_end();
	persist_begin();
	put("IfRefPoll", "", T0_S + 540, old);
	put("IfRefPoll", "", T0_S + 600, both); /* again */
	expect_interfaces("xe-0/2/0 0 open, xe-0/2/1 0 open");
	assert_int_equal(counted(STAT_persist_row_polls_late), 2);
	put("IfRefPoll", "", clock_wall_ms(clock_real()) / 1000 + 2 * 86400, both);
	wait_until(nothing_pending, NULL);
	assert_int_equal(counted(STAT_persist_aside), 1);
	put("IfRefPoll", "", T0_S + 660, old);
	expect_interfaces("xe-0/2/0 0 660, xe-0/2/1 0 660, xe-0/2/0 660 open");
}

/* 31 s: 100, 62 s: 213 gives the bin at 30 s 106 and the one at 60 s 7; a third one
 * closes the latter. */
static void test_bins_follow(void **state)
{
	(void)state;
	put_octets(T0_S + 31, "xe-0/2/0", 100);
	put_octets(T0_S + 62, "xe-0/2/0", 213);
	put_octets(T0_S + 120, "xe-0/2/0", 213);
	put_octets(T0_S + 150, "xe-0/2/0", 213);
	expect_bins(0, "ifHCInOctets", "30=106 60=7 90=0");
	expect_bins(1, "ifHCInOctets", "30=1 60=2 90=1");
}

static void add_row(struct poll_builder *builder, const char *interface, int64_t ts_s,
		    size_t column, uint64_t value)
{
	struct errbuf e;
	struct slice path = slice_of(interface);
	assert_int_equal(poll_add_row(builder, &path, 1, ts_s * 1000, &e), 0);
	poll_set(builder, builder->row_count - 1, column, value_u64(value));
}

/* A message of that OIDSet, in the queue of FastPollHC, that says it is this part of a poll. */
static void put_part_of(const char *oidset, int64_t ts_s, uint32_t part, uint64_t octets)
{
	struct errbuf e;
	struct poll_builder b;
	struct buf bytes;
	struct slice path = SLICE("xe-0/2/0");
	poll_builder_init(&b);
	buf_init(&bytes, 1 << 20);
	assert_int_equal(poll_begin(&b, SLICE("router_a"), slice_of(oidset), ts_s * 1000, &e), 0);
	assert_int_equal(poll_add_column(&b, SLICE("ifHCInOctets"), &e), 0);
	assert_int_equal(poll_add_row(&b, &path, 1, ts_s * 1000, &e), 0);
	poll_set(&b, 0, 0, value_u64(octets));
	assert_int_equal(poll_encode(&b, part, true, &bytes, &e), 0);
	put_bytes(inventory_conf_oidset(conf, SLICE("FastPollHC"))->queue->name.data, "router_a",
		  buf_slice(&bytes));
	poll_builder_release(&b);
	buf_release(&bytes);
}

static void put_part(int64_t ts_s, uint32_t part, uint64_t octets)
{
	put_part_of("FastPollHC", ts_s, part, octets);
}

static void test_polls_that_the_configuration_does_not_know_stay(void **state)
{
	(void)state;
	struct queue_stats stats;
	struct queue *queue =
		queues[inventory_conf_oidset(conf, SLICE("FastPollHC"))->queue->place];
	for (int i = 0; i < 2; i++) {
		put_part_of("NoSuchSet", T0_S, 0, 1);
		put_part_of("FastPollHC", T0_S + 30 * i, 0, (uint64_t)i);
		put_part_of("IfRefPoll", T0_S, 0, 1); /* is for queues of interfaces */
		wait_until(nothing_pending, NULL);
	}
	expect_raw(XE, "0=0 30=1");
	assert_int_equal(counted(STAT_persist_polls), 2);
	assert_int_equal(counted(STAT_persist_aside), 0);
	queue_stats(queue, &stats);
	assert_true(stats.parked == 4 && stats.aside == 0);
}

#define DOUBLED(a, b, c)                                                                           \
	"[[[\"ifHCInOctets\",\"xe-0/2/0\"]," a "],[[\"ifHCInOctets\",\"ge-0/0/1\"],7],"            \
	"[[\"ifHCInOctets\",\"xe-0/2/0\"]," b "],[[\"ifHCInOctets\",\"xe-0/2/0\"]," c "]]"

/* An interface that stands twice in a message: the first value counts, as that of a poll does, and
 * whoever has the message again finds the same. Whichever row a value comes in, it is tested
 * against the newest of its series. */
static void test_doubled_in_one_message(void **state)
{
	(void)state;
	put("FastPollHC", "ifHCInOctets", T0_S, DOUBLED("1", "2", "3"));
	expect_raw(XE, "0=1");
	expect_raw(GE, "0=7");
	assert_int_equal(counted(STAT_persist_refused_order), 2);
	persist_end();
	persist_begin();
	put("FastPollHC", "ifHCInOctets", T0_S, DOUBLED("1", "2", "3"));
	expect_raw(XE, "0=1");
	assert_int_equal(counted(STAT_persist_repeated), 2);
	assert_int_equal(counted(STAT_persist_refused_order), 4);
	put("FastPollHC", "ifHCInOctets", T0_S + 60, DOUBLED("5", "null", "null"));
	put("FastPollHC", "ifHCInOctets", T0_S + 30, DOUBLED("null", "9", "null"));
	put("FastPollHC", "ifHCInOctets", T0_S + 60, DOUBLED("null", "null", "9"));
	put("FastPollHC", "ifHCInOctets", T0_S + 90, DOUBLED("null", "6", "null"));
	expect_raw(XE, "0=1 60=5 90=6");
}

/* The same series by way of two OIDSets that are stored under one name, and of two parts. */
static void test_one_order_for_all_ways(void **state)
{
	(void)state;
	put("ALUFastPollHC", "ifHCInOctets", T0_S, "[[[\"ifHCInOctets\",\"xe-0/2/0\"],1]]");
	put_octets(T0_S + 60, "xe-0/2/0", 3);
	put("ALUFastPollHC", "ifHCInOctets", T0_S + 30, "[[[\"ifHCInOctets\",\"xe-0/2/0\"],9]]");
	put("ALUFastPollHC", "ifHCInOctets", T0_S + 60, "[[[\"ifHCInOctets\",\"xe-0/2/0\"],9]]");
	put_octets(T0_S + 90, "xe-0/2/0", 4);
	put_part(T0_S + 75, 1, 9);
	put_part(T0_S + 120, 1, 5);
	put_octets(T0_S + 105, "xe-0/2/0", 9);
	expect_raw(XE, "0=1 60=3 90=4 120=5");
	assert_int_equal(counted(STAT_persist_refused_order), 4);
}

/* As a poller gives them when the replies with its values came at different times. */
static void put_in_two_rows(int64_t ts_s, uint64_t in, uint64_t out)
{
	struct errbuf e;
	struct poll_builder b;
	struct buf bytes;
	poll_builder_init(&b);
	buf_init(&bytes, 1 << 20);
	assert_int_equal(poll_begin(&b, SLICE("router_a"), SLICE("FastPollHC"), ts_s * 1000, &e),
			 0);
	assert_int_equal(poll_add_column(&b, SLICE("ifHCInOctets"), &e), 0);
	assert_int_equal(poll_add_column(&b, SLICE("ifHCOutOctets"), &e), 0);
	add_row(&b, "xe-0/2/0", ts_s, 0, in);
	add_row(&b, "xe-0/2/0", ts_s + 1, 1, out);
	assert_int_equal(poll_encode(&b, 0, true, &bytes, &e), 0);
	put_bytes(inventory_conf_oidset(conf, SLICE("FastPollHC"))->queue->name.data, "router_a",
		  buf_slice(&bytes));
	poll_builder_release(&b);
	buf_release(&bytes);
}

/* In: 10 in the bin from 0 s, 20 in that from 30 s. Out is read a second later: of 60 in 30 s two
 * lie in the bin after. */
static void test_rows_of_one_path_are_one_interface(void **state)
{
	(void)state;
	put_in_two_rows(T0_S, 100, 100);
	put_in_two_rows(T0_S + 30, 110, 160);
	put_in_two_rows(T0_S + 60, 130, 220);
	put_in_two_rows(T0_S + 90, 130, 220);
	put_in_two_rows(T0_S + 120, 130, 220);
	expect_bins(0, "ifHCInOctets", "0=10 30=20 60=0");
	expect_bins(0, "ifHCOutOctets", "0=58 30=60 60=2");
}

/* esmond's shape, a message for each OID: a counter that begins again with its device
 * (what it has since then is its growth), whatever else comes between its values. */
static void test_oids_in_messages_of_their_own(void **state)
{
	(void)state;
	static const uint64_t uptimes[] = {100000, 103000, 106000, 1700, 4700, 7700};
	static const uint64_t values[] = {1000, 2000, 3000, 50, 1050, 1050};
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		char uptime[64], out[128];
		int64_t ts_s = T0_S + 30 * (int64_t)i;
		snprintf(uptime, sizeof(uptime), "[[[\"sysUpTime\"],%llu]]",
			 (unsigned long long)uptimes[i]);
		snprintf(out, sizeof(out), "[[[\"ifHCOutOctets\",\"xe-0/2/0\"],%llu]]",
			 (unsigned long long)values[i]);
		put("FastPollHC", "sysUpTime", ts_s, uptime);
		put_octets(ts_s, "xe-0/2/0", values[i]);
		put("FastPollHC", "ifHCOutOctets", ts_s, out);
	}
	expect_bins(0, "ifHCInOctets", "0=1000 30=1000 60=50 90=1000");
	expect_bins(0, "ifHCOutOctets", "0=1000 30=1000 60=50 90=1000");
}

/* Of two interfaces the catalog takes one; what it does not take is refused and holds up nothing.
 */
static void test_a_limit_of_the_catalog(void **state)
{
	(void)state;
	struct catalog_options one = catalog_options_default();
	one.series_per_tenant_max = 1;
	persist_end();
	catalog_close(catalog, stop_loop, NULL);
	loop_run(loop);
	catalog = options.catalog = catalog_new(store, clock_real(), loop_executor(loop), &one);
	persist_begin();
	put_octets(T0_S, "xe-0/2/0", 1);
	put_octets(T0_S, "ge-0/0/1", 1); /* all that it has is refused */
	put_octets(T0_S + 30, "ge-0/0/1", 2);
	put_octets(T0_S + 30, "xe-0/2/0", 2);
	expect_raw(XE, "0=1 30=2");
	assert_int_equal(find("ifHCInOctets", GE), 0);
	assert_int_equal(counted(STAT_persist_refused_series), 2);
}

/* What is polled of a device whose data was deleted begins again, also at times that were there. */
static void test_a_device_that_was_wiped(void **state)
{
	(void)state;
	struct task_queue queue;
	const struct device_wipe_options wipe = {
		.store = store,
		.clock = clock_real(),
		.queue = &queue,
		.device = SLICE("router_a"),
	};
	uint64_t series;
	struct errbuf e;
	task_queue_init(&queue);
	put_octets(T0_S, "xe-0/2/0", 1);
	put_octets(T0_S + 30, "xe-0/2/0", 2);
	expect_raw(XE, "0=1 30=2");
	assert_int_equal(device_wipe(&wipe, &series, &e), 0);
	assert_int_equal(series, 1);
	task_queue_release(&queue);
	put_octets(T0_S + 30, "xe-0/2/0", 3);
	put_octets(T0_S + 60, "xe-0/2/0", 4);
	expect_raw(XE, "30=3 60=4");
}

static bool was_replaced(void *owner)
{
	(void)owner;
	return counted(STAT_persist_replaced) > 0;
}

/* In one place at least two have hung. */
static bool was_replaced_again(void *owner)
{
	(void)owner;
	int64_t workers = 0;
	for (size_t i = 0; i < options.conf->queue_count; i++)
		workers += options.conf->queues[i]->workers;
	return counted(STAT_persist_replaced) > workers;
}

static bool has_moved_since(void *owner)
{
	return persist_moved_ms(persist) > *(const int64_t *)owner;
}

/* The first worker that looks at its clock hangs; its polls are another's then. */
static void test_a_worker_that_hangs(void **state)
{
	(void)state;
	persist_end();
	options.hang_timeout_ms = 2500;
	fault_arm("persist_hang", FAULT_ERROR, 1, 1000);
	int64_t before_ms = clock_mono_ms(options.clock);
	persist_begin();
	wait_until(was_replaced_again, NULL);
	int64_t replaced_ms = clock_mono_ms(options.clock);
	/* Those that took the places have not moved by themselves. */
	assert_in_range(persist_moved_ms(persist), before_ms, replaced_ms - 2 * 2500);
	fault_disarm_all();
	wait_until(has_moved_since, &replaced_ms);
	put_octets(T0_S, "xe-0/2/0", 1);
	put_octets(T0_S + 30, "xe-0/2/0", 2);
	expect_raw(XE, "0=1 30=2");
}

static _Atomic int64_t passed_us;

static int64_t late_wall_us(UNUSED struct clock *clock)
{
	return clock_real()->wall_us(clock_real());
}

static int64_t late_mono_us(UNUSED struct clock *clock)
{
	return clock_real()->mono_us(clock_real()) + passed_us;
}

/* All threads stood still for a while, as under SIGSTOP; after that one hangs. */
static void test_a_process_that_was_frozen(void **state)
{
	(void)state;
	static struct clock late = {.wall_us = late_wall_us, .mono_us = late_mono_us};
	persist_end();
	options.hang_timeout_ms = 2500;
	options.clock = &late;
	persist_begin();
	passed_us = 100000000;
	fault_arm("persist_hang", FAULT_ERROR, 1, 1);
	wait_until(was_replaced, NULL);
	fault_disarm_all();
	put_octets(T0_S, "xe-0/2/0", 1);
	put_octets(T0_S + 30, "xe-0/2/0", 2);
	expect_raw(XE, "0=1 30=2");
	assert_int_equal(counted(STAT_persist_replaced), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_raw_data_is_what_was_polled),
		TEST(test_order_is_that_of_time),
		TEST(test_order_after_a_restart),
		TEST(test_names_change),
		TEST(test_values_that_are_none),
		TEST(test_texts_have_an_order),
		TEST(test_many_texts),
		TEST(test_malformed_messages),
		TEST(test_names_that_are_not_utf8),
		TEST(test_polls_that_the_configuration_does_not_know_stay),
		TEST(test_interfaces_have_versions),
		TEST(test_a_long_name_froze_all_interfaces_of_its_device),
		TEST(test_walks_have_one_order),
		TEST(test_bins_follow),
		TEST(test_doubled_in_one_message),
		TEST(test_one_order_for_all_ways),
		TEST(test_rows_of_one_path_are_one_interface),
		TEST(test_oids_in_messages_of_their_own),
		TEST(test_a_limit_of_the_catalog),
		TEST(test_a_device_that_was_wiped),
		TEST(test_a_worker_that_hangs),
		TEST(test_a_process_that_was_frozen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
