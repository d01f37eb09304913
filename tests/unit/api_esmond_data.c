/* /v2 of data, over a real connection: from raw samples in the store to points of an answer. What
 * bins hold is document E's; the rest is worked beside each case. */
#include "v2_harness.h"

static void put_device(void)
{
	static const struct interface list[] = {{"ge-1/0/0", "x :hide: y"},
						{"xe-0/0/0", "transit"}};
	add_device("rtr_a", "FastPollHC Errors IfRefPoll");
	poll_interfaces("rtr_a", HOUR_S - 86400, list, 2);
}

static uint64_t in_octets(const char *interface)
{
	return open_counter("rtr_a", "FastPollHC", "ifHCInOctets", interface);
}

#define IN "/v2/device/rtr_a/interface/xe-0@2F0@2F0/in"

#define ENVELOPE(path, begin, end, agg, cf, data)                                                  \
	"{'url':'http://localhost" path "','resource_uri':'" path "','begin_time':" begin          \
	",'end_time':" end ",'agg':'" agg "','cf':'" cf "','data':[" data "]}"

static void refuse_query(const char *path, const char *sentence)
{
	char body[700];
	snprintf(body, sizeof(body), "{\"query error\":\"'%s'\"}\n", sentence);
	expect(path, 400, body);
}

/* The document's 14000,100 -> 44000,400: 160 and 140. */
static void test_endpoint(void **state)
{
	(void)state;
	put_device();
	uint64_t handle = in_octets("xe-0/0/0");
	put_raw(handle, 30, HOUR_S * 1000 + 14000, 100);
	put_raw(handle, 30, HOUR_S * 1000 + 44000, 400);
	expect_like(IN "?begin=1598284799&end=1598284860", 200,
		    ENVELOPE(IN, "1598284799", "1598284860", "30", "average",
			     "{'ts':1598284800,'val':5.333333333333333},"
			     "{'ts':1598284830,'val':4.666666666666667},"
			     "{'ts':1598284860,'val':null}"));
	expect_like(IN "/?begin=1598284800.9&end=1598284830&cf=delta", 200,
		    ENVELOPE(IN, "1598284800", "1598284830", "30", "delta",
			     "{'ts':1598284800,'val':160},{'ts':1598284830,'val':140}"));
	expect_like(IN "?begin=1598284800&end=1598284844&cf=raw", 200,
		    ENVELOPE(IN, "1598284800", "1598284844", "30", "raw",
			     "{'ts':1598284814,'val':100},{'ts':1598284844,'val':400}"));
	/* 16 s of the first bin and 14 of the second were covered. */
	expect_like(IN "?begin=1598284800&end=1598284830&cf=exact", 200,
		    ENVELOPE(IN, "1598284800", "1598284830", "30", "exact",
			     "{'ts':1598284800,'val':10.0},{'ts':1598284830,'val':10.0}"));
	/* The hour: 300 of one delta; its rate is 10. */
	expect_like(IN "?begin=1598284800&end=1598284800&agg=3600", 200,
		    ENVELOPE(IN, "1598284800", "1598284800", "3600", "average",
			     "{'ts':1598284800,'val':10.0}"));
	expect_like(IN "?begin=1598284800&end=1598288400&agg=3600&cf=max", 200,
		    ENVELOPE(IN, "1598284800", "1598288400", "3600", "max",
			     "{'ts':1598284800,'val':10.0,'m_ts':1598284844},"
			     "{'ts':1598288400,'val':null}"));
	expect_like(IN "?begin=1598284800&end=1598284800&agg=86400&cf=raw", 200,
		    ENVELOPE(IN, "1598284800", "1598284800", "86400", "raw", ""));
	/* The interface by other spellings: the address is that of which lists have links. */
	static const char *const spellings[] = {"xe-0_0_0/in", "xe-0@2f0@2f0/in//",
						"xe-0%2F0%2F0/in/"};
	for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
		char path[200];
		snprintf(path, sizeof(path),
			 "/v2/device/rtr@5Fa/interface/%s?begin=1598284800&end=1598284800",
			 spellings[i]);
		expect_like(path, 200,
			    ENVELOPE(IN, "1598284800", "1598284800", "30", "average",
				     "{'ts':1598284800,'val':5.333333333333333}"));
	}
	/* Both ends by date, and by how long ago: now is 16:40. */
	expect_like(IN "?begin=40m-ago&end=2400s-ago", 200,
		    ENVELOPE(IN, "1598284800", "1598284800", "30", "average",
			     "{'ts':1598284800,'val':5.333333333333333}"));
	expect_like(IN "?begin=2020-08-24T16:00:00Z&end=2020-08-24T18:00%2B02:00", 200,
		    ENVELOPE(IN, "1598284800", "1598284800", "30", "average",
			     "{'ts':1598284800,'val':5.333333333333333}"));
}

/* A gap beyond three intervals: 166 in the newest bin, the bins between are not valid. */
static void test_gap(void **state)
{
	(void)state;
	put_device();
	uint64_t handle = in_octets("xe-0/0/0");
	put_raw(handle, 30, INT64_C(1343953700000), 0);
	put_raw(handle, 30, INT64_C(1343953820000), 1000);
	expect_like(IN "?begin=1343953680&end=1343953830&cf=delta", 200,
		    ENVELOPE(IN, "1343953680", "1343953830", "30", "delta",
			     "{'ts':1343953680,'val':null},{'ts':1343953710,'val':null},"
			     "{'ts':1343953740,'val':null},{'ts':1343953770,'val':null},"
			     "{'ts':1343953800,'val':166},{'ts':1343953830,'val':null}"));
}

/* SC13's backwards counter: six bins, and an hour of 2236650 from 4 deltas. */
static void test_backwards(void **state)
{
	(void)state;
	static const struct {
		int64_t ts_s;
		uint64_t value;
	} polls[] = {{1384371885, 3983656138}, {1384371914, 3984242432}, {1384371945, 3985220546},
		     {1384371974, 3892978381}, {1384372005, 3893271099}, {1384372034, 3893650623}};
	put_device();
	uint64_t handle = in_octets("xe-0/0/0");
	for (size_t i = 0; i < ARRAY_LEN(polls); i++)
		put_raw(handle, 30, polls[i].ts_s * 1000, polls[i].value);
	expect_like(IN "?begin=1384371870&end=1384372020&cf=delta", 200,
		    ENVELOPE(IN, "1384371870", "1384372020", "30", "delta",
			     "{'ts':1384371870,'val':303256},{'ts':1384371900,'val':787871},"
			     "{'ts':1384371930,'val':473281},{'ts':1384371960,'val':151080},"
			     "{'ts':1384371990,'val':337944},{'ts':1384372020,'val':183218}"));
	expect_like(IN "?begin=1384369200&end=1384369200&agg=3600", 200,
		    ENVELOPE(IN, "1384369200", "1384369200", "3600", "average",
			     "{'ts':1384369200,'val':18638.75}"));
}

/* 2012-01-01T00:00:00Z is 1325376000: no query names a year. */
static void test_new_year(void **state)
{
	(void)state;
	put_device();
	put_steady(in_octets("xe-0/0/0"), 30, 1325375940, 30, 5, 7, 300);
	expect_like(IN "?begin=1325375940&end=1325376030", 200,
		    ENVELOPE(IN, "1325375940", "1325376030", "30", "average",
			     "{'ts':1325375940,'val':10.0},{'ts':1325375970,'val':10.0},"
			     "{'ts':1325376000,'val':10.0},{'ts':1325376030,'val':10.0}"));
	expect_like("/v2/timeseries/RawData/snmp/rtr_a/FastPollHC/ifHCInOctets/xe-0@2F0@2F0/30000"
		    "?begin=1325375970000&end=1325376000000",
		    200,
		    ENVELOPE("/v2/timeseries/RawData/snmp/rtr_a/FastPollHC/ifHCInOctets/"
			     "xe-0@2F0@2F0/30000",
			     "1325375970000", "1325376000000", "30000", "raw",
			     "{'ts':1325375970000,'val':307},{'ts':1325376000000,'val':607}"));
}

static void test_calc(void **state)
{
	(void)state;
	put_device();
	/* 10, 10, 10, 10 a second, then nothing. */
	put_steady(in_octets("xe-0/0/0"), 30, HOUR_S, 30, 5, 0, 300);
	expect_like(IN "?begin=1598284800&end=1598285099&calc=300", 200,
		    "{'url':'http://localhost" IN "','resource_uri':'" IN
		    "','begin_time':1598284800,'end_time':1598285099,'calc':'300',"
		    "'calc_func':'average','data':[{'ts':1598284800,'val':8.0}]}");
	/* The bin that the last poll opened has a zero, so five values: 40 / 5; and of ten slots
	 * 40 / 10. */
	expect_like(IN "?begin=1598284800&end=1598285099&calc=300&nulls=zero", 200,
		    "{'url':'http://localhost" IN "','resource_uri':'" IN
		    "','begin_time':1598284800,'end_time':1598285099,'calc':'300',"
		    "'calc_func':'average','data':[{'ts':1598284800,'val':4.0}]}");
	refuse_query(IN "?calc=45", "calc 45 is no multiple of 30");
	refuse_query(IN "?calc=300&cf=raw", "calc is of rates, not of cf raw");
}

static void test_endpoint_refused(void **state)
{
	(void)state;
	put_device();
	put_raw(in_octets("ge-1/0/0"), 30, HOUR_S * 1000, 1);
	refuse_query(IN "?agg=60", "agg 60 is not stored: FastPollHC has 30, 3600, 86400");
	refuse_query(IN "?cf=avg",
		     "cf \\\"avg\\\" is none of average, exact, min, max, raw, delta");
	refuse_query(IN "?cf=max", "cf max is of aggregates: give an agg above 30");
	refuse_query(IN "?begin=2&end=1", "begin 2 lies after end 1");
	refuse_query(IN "?begin=0&end=253402300799",
		     "that are 8446743360 points, and one answer has at most 10000000 "
		     "(query.points_max): ask for less time or a longer agg");
	expect_like("/v2/device/rtr_a/interface/xe-0_0_0/inn", 400,
		    "{'error':'no OIDSet of the device has an endpoint \\'inn\\''}\n");
	expect_like(IN "?oidset=Errors", 400,
		    "{'error':'no OIDSet of the device has an endpoint \\'in\\''}\n");
	expect_like("/v2/device/rtr_b/interface/xe-0_0_0/in", 400,
		    "{'error':'there is no device \\'rtr_b\\''}\n");
	expect_like("/v2/device/rtr_a/interface/xe-7/in", 400,
		    "{'error':'the device has no interface \\'xe-7\\''}\n");
	/* A hidden one is not there, though it has data. */
	expect_like("/v2/device/rtr_a/interface/ge-1_0_0/in", 400,
		    "{'error':'the device has no interface \\'ge-1_0_0\\''}\n");
	/* One that is there and has none is all nulls. */
	expect_like("/v2/device/rtr_a/interface/xe-0_0_0/error/in?begin=1598284800&end=1598285100",
		    200,
		    ENVELOPE("/v2/device/rtr_a/interface/xe-0@2F0@2F0/error/in", "1598284800",
			     "1598285100", "300", "average",
			     "{'ts':1598284800,'val':null},{'ts':1598285100,'val':null}"));
}

/* One that nobody's walk has seen, but has data, is there. */
static void test_not_in_inventory(void **state)
{
	(void)state;
	put_device();
	put_steady(in_octets("lo0"), 30, HOUR_S, 30, 2, 0, 300);
	expect_like("/v2/device/rtr_a/interface/lo0/in?begin=1598284800&end=1598284800", 200,
		    ENVELOPE("/v2/device/rtr_a/interface/lo0/in", "1598284800", "1598284800", "30",
			     "average", "{'ts':1598284800,'val':10.0}"));
}

#define SERIES "/v2/timeseries/"
#define ROW    "/snmp/rtr_a/FastPollHC/ifHCInOctets/xe-0@2F0@2F0/"

static void test_timeseries(void **state)
{
	(void)state;
	put_device();
	put_steady(in_octets("xe-0/0/0"), 30, HOUR_S, 30, 3, 0, 300);
	uint64_t uptime = open_counter("rtr_a", "FastPollHC", "sysUpTime", NULL);
	put_raw(uptime, 30, HOUR_S * 1000 + 123, 4711);
	expect_like(SERIES "BaseRate" ROW "30000?begin=1598284800000&end=1598284830000", 200,
		    ENVELOPE(SERIES "BaseRate" ROW "30000", "1598284800000", "1598284830000",
			     "30000", "average",
			     "{'ts':1598284800000,'val':10.0},{'ts':1598284830000,'val':10.0}"));
	expect_like(SERIES "Aggs" ROW "3600000?begin=1598284800000&end=1598284800000&cf=raw", 200,
		    ENVELOPE(SERIES "Aggs" ROW "3600000", "1598284800000", "1598284800000",
			     "3600000", "raw", "{'ts':1598284800000,'val':600}"));
	/* By the document's spelling of the interface; one that has another is not it. */
	expect_like(SERIES "BaseRate/snmp/rtr_a/FastPollHC/ifHCInOctets/xe-0_0_0/30000"
			   "?begin=1598284800000&end=1598284800000",
		    200,
		    ENVELOPE(SERIES "BaseRate/snmp/rtr_a/FastPollHC/ifHCInOctets/xe-0_0_0/30000",
			     "1598284800000", "1598284800000", "30000", "average",
			     "{'ts':1598284800000,'val':10.0}"));
	refuse_query(SERIES "BaseRate/snmp/rtr_a/FastPollHC/ifHCInOctets/xe-0_0_1/30000",
		     "no corresponding keys");
	/* A row without a path. */
	expect_like(SERIES "RawData/snmp/rtr_a/FastPollHC/sysUpTime/30000?begin=1598284800000"
			   "&end=1598284800123",
		    200,
		    ENVELOPE(SERIES "RawData/snmp/rtr_a/FastPollHC/sysUpTime/30000",
			     "1598284800000", "1598284800123", "30000", "raw",
			     "{'ts':1598284800123,'val':4711}"));
	refuse_query(SERIES "BaseRate/snmp/rtr_x/FastPollHC/ifHCInOctets/xe-0/30000",
		     "no corresponding keys");
	refuse_query(SERIES "BaseRate/snmp/rtr_a/FastPollHC/ifHCInOctets//30000",
		     "no corresponding keys");
	refuse_query(SERIES "BaseRate" ROW "60000",
		     "60000 is not the base frequency of FastPollHC");
	refuse_query(SERIES "Aggs" ROW "30000",
		     "30000 is the base frequency, not an aggregate, of FastPollHC");
	refuse_query(SERIES "Aggs" ROW "7200000",
		     "agg 7200 is not stored: FastPollHC has 30, 3600, 86400");
	refuse_query(SERIES "BaseRate/snmp/rtr_a/FastPollHC/sysUpTime/30000",
		     "sysUpTime has no rates: ask for cf=raw");
	expect_like(SERIES "Base" ROW "30000", 400,
		    "{'error':'type \\'Base\\' is none of RawData, BaseRate, Aggs'}\n");
	expect_like(SERIES "BaseRate/ip/rtr_a/FastPollHC/ifHCInOctets/xe-0/30000", 400,
		    "{'error':'there is no namespace \\'ip\\': only snmp'}\n");
	expect_like(SERIES "BaseRate/snmp/rtr_a/Fast/ifHCInOctets/xe-0/30000", 400,
		    "{'error':'there is no oidset \\'Fast\\''}\n");
	expect_like(SERIES "BaseRate/snmp/rtr_a/FastPollHC/ifX/xe-0/30000", 400,
		    "{'error':'oidset FastPollHC has no OID \\'ifX\\''}\n");
	expect_like(SERIES "BaseRate/snmp/rtr_a/FastPollHC/ifHCInOctets/a/b/30000", 400,
		    "{'error':'rows of ifHCInOctets in FastPollHC have a path of 1 parts, not "
		    "2'}\n");
	expect_like(SERIES "BaseRate" ROW "30s", 400,
		    "{'error':'\\'30s\\' is not a frequency in milliseconds'}\n");
	expect_like(SERIES "BaseRate/snmp", 404,
		    "{'detail':'there is nothing at /v2/timeseries/BaseRate/snmp'}\n");
}

#define IN_KEY "snmp:rtr_a:FastPollHC:ifHCInOctets:xe-0/0/0:30000"

/* What came and is no number stands between the numbers; of one time the number is first. Both ends
 * of the range belong to it. */
static void test_texts_among_numbers(void **state)
{
	(void)state;
	put_device();
	put_steady(in_octets("xe-0/0/0"), 30, HOUR_S, 60, 2, 100, 300);
	put_text(IN_KEY, HOUR_S * 1000 - 1, "\"before\"");
	put_text(IN_KEY, HOUR_S * 1000 + 30123, "\"n/a\"");
	put_text(IN_KEY, HOUR_S * 1000 + 60000, "{\"state\":[1,null]}");
	put_text(IN_KEY, HOUR_S * 1000 + 90000, "true");
	put_text(IN_KEY, HOUR_S * 1000 + 90001, "\"behind\"");
	expect_like(SERIES "RawData" ROW "30000?begin=1598284800000&end=1598284890000", 200,
		    ENVELOPE(SERIES "RawData" ROW "30000", "1598284800000", "1598284890000",
			     "30000", "raw",
			     "{'ts':1598284800000,'val':100},{'ts':1598284830123,'val':'n/a'},"
			     "{'ts':1598284860000,'val':400},"
			     "{'ts':1598284860000,'val':{'state':[1,null]}},"
			     "{'ts':1598284890000,'val':true}"));
	/* In seconds, of which the whole last one belongs to the range. */
	expect_like(IN "?cf=raw&begin=1598284861&end=1598284890", 200,
		    ENVELOPE(IN, "1598284861", "1598284890", "30", "raw",
			     "{'ts':1598284890,'val':true},{'ts':1598284890,'val':'behind'}"));
	/* No rate is made of them. */
	expect_like(IN "?cf=delta&begin=1598284800&end=1598284830", 200,
		    ENVELOPE(IN, "1598284800", "1598284830", "30", "delta",
			     "{'ts':1598284800,'val':150},{'ts':1598284830,'val':150}"));
	expect_like(IN "?cf=raw&begin=-100&end=-50", 200,
		    ENVELOPE(IN, "-100", "-50", "30", "raw", ""));
}

/* An OID of texts has no series; its row is found by its key, and by the document's spelling where
 * another OID of the row has one. */
static void test_texts_alone(void **state)
{
	(void)state;
	close_inventory();
	open_inventory("snmp: {secrets_file: s.yml}\n"
		       "oids: {note: {oid: 1.3.6.1.4.1.32473.1, type: DisplayString}}\n"
		       "oidsets: {Notes: {frequency: 60s, correlator: IfName, "
		       "oids: [note, ifInErrors]}}\n");
	add_device("rtr_a", "Notes");
	put_text("snmp:rtr_a:Notes:note:xe-0/0/0:60000", HOUR_S * 1000, "\"up \\\"1\\\"\"");
#define NOTE "/v2/timeseries/RawData/snmp/rtr_a/Notes/note/"
	expect_like(NOTE "xe-0@2F0@2F0/60000?begin=1598284800000&end=1598284800000", 200,
		    ENVELOPE(NOTE "xe-0@2F0@2F0/60000", "1598284800000", "1598284800000", "60000",
			     "raw", "{'ts':1598284800000,'val':'up \\'1\\''}"));
	/* Nothing at that time, and nothing at any. */
	expect_like(NOTE "xe-0@2F0@2F0/60000?begin=1598284800001&end=1598284800002", 200,
		    ENVELOPE(NOTE "xe-0@2F0@2F0/60000", "1598284800001", "1598284800002", "60000",
			     "raw", ""));
	refuse_query(NOTE "xe-0@2F0@2F1/60000", "no corresponding keys");
	refuse_query(NOTE "xe-0_0_0/60000", "no corresponding keys");
	open_counter("rtr_a", "Notes", "ifInErrors", "xe-0/0/0");
	expect_like(NOTE "xe-0_0_0/60000?begin=1598284800000&end=1598284800000", 200,
		    ENVELOPE(NOTE "xe-0_0_0/60000", "1598284800000", "1598284800000", "60000",
			     "raw", "{'ts':1598284800000,'val':'up \\'1\\''}"));
}

/* More texts than one piece has (1024), and numbers half a second beside every third of them. */
static void test_many_texts(void **state)
{
	(void)state;
	enum { TEXTS = 2500 };
	struct buf like;
	put_device();
	uint64_t handle = in_octets("xe-0/0/0");
	struct store_write *write = write_new();
	buf_init(&like, 1 << 20);
	for (int64_t i = 0; i < TEXTS; i++) {
		int64_t ts_ms = (HOUR_S + i) * 1000;
		struct value value = value_u64((uint64_t)i);
		uint8_t bytes[8];
		be64_put(bytes, (uint64_t)ts_ms);
		struct store_parts key = {.part = {SLICE(IN_KEY)}};
		struct store_parts column = {.part = {{(const char *)bytes, sizeof(bytes)}}};
		assert_int_equal(store_cell_put(write, TABLE_RAW_TEXT, &key, &column,
						SLICE("\"t\""), store_stamp(store), 0),
				 0);
		buf_printf(&like, "%s{'ts':%lld,'val':'t'}", i ? "," : "", (long long)ts_ms);
		if (i % 3)
			continue;
		assert_int_equal(
			store_append(write,
				     &(struct store_target){TABLE_RAW_DATA, RETENTION_EVER, 30000},
				     ts_ms + 500, &handle, 1, &value),
			0);
		buf_printf(&like, ",{'ts':%lld,'val':%lld}", (long long)ts_ms + 500, (long long)i);
	}
	write_out(write);
	buf_append_text(&like, "]}");
	for (char *at = like.data; (at = memchr(at, '\'', like.len - (size_t)(at - like.data)));)
		*at = '"';
	struct client c = {0};
	ask(&c, SERIES "RawData" ROW "30000?begin=1598284800000&end=1598287300000");
	assert_int_equal(c.status, 200);
	const char *data = strstr(c.body, "\"data\":[");
	assert_non_null(data);
	assert_true(slice_equal(slice_of(data + strlen("\"data\":[")), buf_slice(&like)));
	mem_free(c.answer);
	buf_release(&like);
}

/* An OIDSet with a set_name is read where its series are. */
static void test_set_name(void **state)
{
	(void)state;
	add_device("alu", "ALUFastPollHC");
	put_steady(open_counter("alu", "FastPollHC", "ifHCInOctets", "1/1/1"), 30, HOUR_S, 30, 2, 0,
		   300);
	expect_like("/v2/device/alu/interface/1@2F1@2F1/in?begin=1598284800&end=1598284800", 200,
		    ENVELOPE("/v2/device/alu/interface/1@2F1@2F1/in", "1598284800", "1598284800",
			     "30", "average", "{'ts':1598284800,'val':10.0}"));
}

/* ---- Bulk ------------------------------------------------------------------------------------ */

static void expect_bulk(const char *path, const char *body, int status, const char *like)
{
	char *sent = mem_copy_text(slice_of(body)), *text = mem_copy_text(slice_of(like));
	for (char *at = sent; (at = strchr(at, '\'')); at++)
		*at = '"';
	for (char *at = text; (at = strchr(at, '\'')); at++)
		*at = '"';
	send_json("POST", path, sent, status, text);
	mem_free(sent);
	mem_free(text);
}

static void test_bulk_interfaces(void **state)
{
	(void)state;
	put_device();
	put_steady(in_octets("xe-0/0/0"), 30, HOUR_S, 30, 3, 0, 300);
	expect_bulk(
		"/v2/bulk/interface/",
		"{'interfaces':[{'device':'rtr_a','iface':'xe-0/0/0'},"
		"{'device':'rtr_a','iface':'xe-7'},{'iface':'x'},{'device':'nobody','iface':'x'},"
		"{'device':'rtr_a','iface':'ge-1/0/0'}],'endpoint':['in','up'],"
		"'begin':1598284800,'end':1598284830,'cf':'average','agg':30}",
		201,
		"{'data':[{'path':{'dev':'rtr_a','iface':'xe-0/0/0','endpoint':'in'},"
		"'data':[{'ts':1598284800,'val':10.0},{'ts':1598284830,'val':10.0}]},"
		"{'path':{'dev':'rtr_a','iface':'xe-0/0/0','endpoint':'up'},"
		"'error':'no OIDSet of the device has such an endpoint'},"
		"{'path':{'dev':'rtr_a','iface':'xe-7','endpoint':'in'},"
		"'error':'the device has no such interface'},"
		"{'path':{'dev':'rtr_a','iface':'xe-7','endpoint':'up'},"
		"'error':'no OIDSet of the device has such an endpoint'},"
		"{'path':{'dev':null,'iface':'x','endpoint':'in'},'error':'\\'device\\' is "
		"missing'},"
		"{'path':{'dev':null,'iface':'x','endpoint':'up'},'error':'\\'device\\' is "
		"missing'},"
		"{'path':{'dev':'nobody','iface':'x','endpoint':'in'},"
		"'error':'there is no such device'},"
		"{'path':{'dev':'nobody','iface':'x','endpoint':'up'},"
		"'error':'there is no such device'},"
		"{'path':{'dev':'rtr_a','iface':'ge-1/0/0','endpoint':'in'},"
		"'error':'the device has no such interface'},"
		"{'path':{'dev':'rtr_a','iface':'ge-1/0/0','endpoint':'up'},"
		"'error':'the device has no such interface'}],"
		"'iface_dataset':['in','up'],'device_names':['rtr_a','nobody','rtr_a'],"
		"'begin_time':1598284800,'end_time':1598284830,'agg':'30','cf':'average',"
		"'url':'http://localhost/v2/bulk/interface/','resource_uri':'/v2/bulk/interface/"
		"'}");
	expect_bulk("/v2/bulk/interface/", "{'interfaces':[],'endpoint':'in','begin':1,'end':2}",
		    201,
		    "{'data':[],'iface_dataset':['in'],'device_names':[],'begin_time':1,"
		    "'end_time':2,'agg':null,'cf':'average','url':'http://localhost/v2/bulk/"
		    "interface/',"
		    "'resource_uri':'/v2/bulk/interface/'}");
	expect_bulk("/v2/bulk/interface/", "{'interfaces':[]}", 400,
		    "{'error':'endpoint is missing'}\n");
	expect_bulk("/v2/bulk/interface/", "{'interfaces':{},'endpoint':'in'}", 400,
		    "{'error':'interfaces is not a list'}\n");
	expect_bulk("/v2/bulk/interface/", "{'interfaces':[],'endpoint':'in','calc':5}", 400,
		    "{'error':'unknown member \\'calc\\''}\n");
	expect_bulk("/v2/bulk/interface/", "[]", 400, "{'error':'the body is no object'}\n");
	expect("/v2/bulk/interface/", 405,
	       "{\"error\":{\"code\":405,\"message\":\"the method is not allowed here\"}}\n");
}

static const struct store_engine *whole_engine;
static int reads_left; /* until one is refused */

static int submit_but_one(struct store_read *read)
{
	return reads_left-- == 0 ? ERR_BUSY : whole_engine->read_submit(read);
}

/* The second endpoint was answered by the name as it was asked for, hidden or not, as if the rows
 * that could not be read had been. The first read are the rows of the only interface. */
static void test_rows_that_could_not_be_read_hide_nothing_from_the_next_endpoint(void **state)
{
	(void)state;
	put_device();
	put_steady(in_octets("ge-1/0/0"), 30, HOUR_S, 30, 3, 0, 300);
	whole_engine = api.store->engine;
	struct store_engine engine = *whole_engine;
	engine.read_submit = submit_but_one;
	reads_left = 0;
	api.store->engine = &engine;
	expect_bulk("/v2/bulk/interface/",
		    "{'interfaces':[{'device':'rtr_a','iface':'ge-1/0/0'}],'endpoint':['in','in'],"
		    "'begin':1598284800,'end':1598284830,'cf':'average','agg':30}",
		    201,
		    "{'data':[{'path':{'dev':'rtr_a','iface':'ge-1/0/0','endpoint':'in'},"
		    "'error':'busy: a queue is full'},"
		    "{'path':{'dev':'rtr_a','iface':'ge-1/0/0','endpoint':'in'},"
		    "'error':'the device has no such interface'}],"
		    "'iface_dataset':['in','in'],'device_names':['rtr_a'],"
		    "'begin_time':1598284800,'end_time':1598284830,'agg':'30','cf':'average',"
		    "'url':'http://localhost/v2/bulk/interface/','resource_uri':'/v2/bulk/"
		    "interface/'}");
	api.store->engine = whole_engine;
	assert_true(reads_left < 0);
}

static void test_bulk_timeseries(void **state)
{
	(void)state;
	put_device();
	put_steady(in_octets("xe-0/0/0"), 30, HOUR_S, 30, 3, 0, 300);
	expect_bulk("/v2/bulk/timeseries/",
		    "{'type':'BaseRate','paths':[['snmp','rtr_a','FastPollHC','ifHCInOctets',"
		    "'xe-0/0/0',30000],['snmp','rtr_a','FastPollHC','ifHCInOctets','xe-1',30000],"
		    "['snmp'],7],'begin':1598284800000,'end':'1598284800000'}",
		    201,
		    "{'data':[{'path':['snmp','rtr_a','FastPollHC','ifHCInOctets','xe-0/0/0',"
		    "30000],'data':[{'ts':1598284800000,'val':10.0}]},"
		    "{'path':['snmp','rtr_a','FastPollHC','ifHCInOctets','xe-1',30000],"
		    "'error':'no corresponding keys'},"
		    "{'path':['snmp'],'error':'a path is namespace, device, oidset, oid, the parts "
		    "of its row, frequency in ms'},"
		    "{'path':7,'error':'a path is an array of its parts'}],"
		    "'begin_time':1598284800000,'end_time':1598284800000,'agg':null,"
		    "'cf':'average','url':'http://localhost/v2/bulk/timeseries/',"
		    "'resource_uri':'/v2/bulk/timeseries/'}");
	expect_bulk("/v2/bulk/timeseries/", "{'type':'X','paths':[]}", 400,
		    "{'error':'type \\'X\\' is none of RawData, BaseRate, Aggs'}\n");
	send_json("POST", "/v2/bulk/timeseries/",
		  "{\"type\":\"Aggs\",\"paths\":[],\"begin\":5,\"end\":4}", 400,
		  "{\"query error\":\"'begin 5 lies after end 4'\"}\n");
}

/* ---- Row keys -------------------------------------------------------------------------------- */

/* Of the years of the data, not of when it came; a gap of a year is one. */
static void test_row_keys(void **state)
{
	(void)state;
	const int64_t new_year_s = 1577836800; /* 2020 */
	put_device();
	uint64_t handle = in_octets("xe-0/0/0");
	put_raw(handle, 30, (new_year_s - 2 * 365 * 86400) * 1000, 1); /* 2018-01-01T00:00:00Z */
	put_raw(handle, 30, (new_year_s - 2 * 365 * 86400 + 30) * 1000, 2);
	put_raw(handle, 30, new_year_s * 1000, 3);
	put_raw(in_octets("xe-0/0/1"), 30, new_year_s * 1000 - 1, 1);
#define KEY(interface, freq, year)                                                                 \
	"'snmp:rtr_a:FastPollHC:ifHCInOctets:" interface ":" freq ":" year "'"
#define KEYS(interface, freq) KEY(interface, freq, "2018") "," KEY(interface, freq, "2020")
	expect_like("/v2/inventory/?row_key__contains=0/0/0:", 200,
		    "[" KEYS("xe-0/0/0", "30000") "," KEYS("xe-0/0/0", "3600000") "," KEYS(
			    "xe-0/0/0", "86400000") "]");
	expect_like("/v2/inventory/?row_key__contains=0/0/1:", 200,
		    "[" KEY("xe-0/0/1", "30000",
			    "2019") "," KEY("xe-0/0/1", "3600000",
					    "2019") "," KEY("xe-0/0/1", "86400000", "2019") "]");
	expect("/v2/inventory/?row_key__contains=ifHCOut", 200, "[]");
	expect_like("/v2/inventory/?row_key__endswith=86400000:2020&limit=1&offset=0", 200,
		    "[" KEY("xe-0/0/0", "86400000", "2020") "]");
	expect("/v2/inventory/?row_key__endswith=86400000:2020&limit=1&offset=1", 200, "[]");
}

/* Rows of an hour whose samples have long gone. */
static void test_row_keys_without_samples(void **state)
{
	(void)state;
	put_device();
	uint64_t handle = in_octets("xe-0/0/0");
	struct store_write *write = write_new();
	struct value row[5] = {value_u64(1), value_u64(1), value_u64(1), value_u64(1),
			       value_u64(1)};
	assert_int_equal(store_append(write,
				      &(struct store_target){TABLE_RATE_AGGREGATIONS,
							     RETENTION_EVER, 3600000},
				      (HOUR_S - 366 * 86400) * 1000, &handle, 1, row),
			 0);
	write_out(write);
	put_raw(handle, 30, HOUR_S * 1000, 1);
	expect_like(
		"/v2/inventory/", 200,
		"[" KEY("xe-0/0/0", "30000", "2020") "," KEY("xe-0/0/0", "3600000", "2019") "," KEY(
			"xe-0/0/0", "3600000", "2020") "," KEY("xe-0/0/0", "86400000", "2020") "]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		V2_TEST(test_endpoint),
		V2_TEST(test_gap),
		V2_TEST(test_backwards),
		V2_TEST(test_new_year),
		V2_TEST(test_calc),
		V2_TEST(test_endpoint_refused),
		V2_TEST(test_not_in_inventory),
		V2_TEST(test_timeseries),
		V2_TEST(test_texts_among_numbers),
		V2_TEST(test_texts_alone),
		V2_TEST(test_many_texts),
		V2_TEST(test_set_name),
		V2_TEST(test_bulk_interfaces),
		V2_TEST(test_rows_that_could_not_be_read_hide_nothing_from_the_next_endpoint),
		V2_TEST(test_bulk_timeseries),
		V2_TEST(test_row_keys),
		V2_TEST(test_row_keys_without_samples),
	};
	V2_RUN(tests);
}
