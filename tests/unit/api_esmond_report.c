/* The reports of /v2, over a real connection, of counters whose figures are worked beside them. */
#include "v2_harness.h"

/* 2020-08-23T00:00:00Z */
#define DAY_S INT64_C(1598140800)

static void put_devices(void)
{
	static const struct interface of_a[] = {{"ge-0", ":hide:"},
						{"xe-0", "Customer, A \\\"1\\\""}};
	static const struct interface of_b[] = {{"xe-0", "transit"}};
	add_device("rtr_a", "FastPollHC IfRefPoll");
	add_device("rtr_b", "FastPollHC IfRefPoll");
	poll_interfaces("rtr_a", DAY_S - 86400, of_a, 2);
	poll_interfaces("rtr_b", DAY_S - 86400, of_b, 1);
}

static uint64_t counter_of(const char *device, const char *oid, const char *interface)
{
	return open_counter(device, "FastPollHC", oid, interface);
}

/* Rates of 1, 2, 3 ... octets a second in each five minutes of a day: polls every 30 s. */
static void put_stairs(uint64_t handle, int64_t first_s)
{
	struct store_write *write = write_new();
	uint64_t number = 5;
	for (int64_t poll = 0; poll <= 2880; poll++) {
		struct value value = value_u64(number);
		assert_int_equal(
			store_append(write,
				     &(struct store_target){TABLE_RAW_DATA, RETENTION_EVER, 30000},
				     (first_s + poll * 30) * 1000, &handle, 1, &value),
			0);
		number += (uint64_t)(poll / 10 + 1) * 30;
	}
	write_out(write);
}

/* ---- Percentile ------------------------------------------------------------------------------ */

#define HEAD(zone, percentile, missing)                                                            \
	"{'zone':'" zone "','percentile':" percentile                                              \
	",'definition':'nearest rank of averages over 300 s','missing':'" missing                  \
	"','unit':'bit/s','children':["

#define A_XE0 "{'device':'rtr_a','interface':'xe-0','ifAlias':'Customer, A \\'1\\'','spans':["

#define DAY            "'day':'2020-08-23','begin':1598140800,'end':1598227200,'complete':true,"
#define UNMEASURED_DAY "'day':'2020-08-23','begin':1598140800,'end':1598227200,'complete':false,"

/* in: 8, 16 ... 2304 bit/s; of 288 the 95th is number 274 (273.6): 2192. out: 8000 in the first
 * half of the day, nothing after. Both are there in 144, of which it is number 137 (136.8): of the
 * larger of both 8000, of the sum 8000 + 8 * 137. */
static void put_day(void)
{
	put_devices();
	put_stairs(counter_of("rtr_a", "ifHCInOctets", "xe-0"), DAY_S);
	put_steady(counter_of("rtr_a", "ifHCOutOctets", "xe-0"), 30, DAY_S, 30, 1441, 9, 30000);
}

static void test_percentile(void **state)
{
	(void)state;
	put_day();
	expect_like("/v2/report/percentile?device=rtr_a&span=day&begin=1598140800&end=1598227199",
		    200,
		    HEAD("UTC", "95", "skip") A_XE0
		    "{" DAY "'in':2192.0,'out':8000.0,'larger':8000.0,'larger_of_bins':8000.0,"
		    "'sum':9096.0,'bins':288,'bins_in':288,'bins_out':144,'bins_both':144,"
		    "'unplaced_in':0,'unplaced_out':0}]}]}");
	/* With missing ones as 0 there are 288 of everything. out: 144 zeros below, so still 8000.
	 * sum: 8 * 145 ... 8 * 288 below, number 274 is the 130th above: 8000 + 8 * 130. */
	expect_like("/v2/report/percentile?device=rtr_a&span=day&begin=1598140800&end=1598227199"
		    "&missing=zero",
		    200,
		    HEAD("UTC", "95", "zero") A_XE0
		    "{" DAY "'in':2192.0,'out':8000.0,'larger':8000.0,'larger_of_bins':8000.0,"
		    "'sum':9040.0,'bins':288,'bins_in':288,'bins_out':144,'bins_both':144,"
		    "'unplaced_in':0,'unplaced_out':0}]}]}");
	/* The 40th of 288 is number 116 (115.2), of the zeros in out. */
	expect_like("/v2/report/percentile?device=rtr_a&span=day&begin=1598140800&end=1598227199"
		    "&missing=zero&percentile=40.0",
		    200,
		    HEAD("UTC", "40.0", "zero") A_XE0
		    "{" DAY "'in':928.0,'out':0.0,'larger':928.0,'larger_of_bins':2080.0,"
		    "'sum':2080.0,'bins':288,'bins_in':288,'bins_out':144,'bins_both':144,"
		    "'unplaced_in':0,'unplaced_out':0}]}]}");
}

static void test_percentile_csv(void **state)
{
	(void)state;
	put_day();
	expect("/v2/report/percentile?device=rtr_a&span=day&begin=1598140800&end=1598227199"
	       "&format=csv",
	       200,
	       "device,interface,ifAlias,span,begin,end,complete,in,out,larger,larger_of_bins,sum,"
	       "bins,bins_in,bins_out,bins_both,unplaced_in,unplaced_out\n"
	       "rtr_a,xe-0,\"Customer, A \"\"1\"\"\",2020-08-23,1598140800,1598227200,true,"
	       "2192.0,8000.0,8000.0,8000.0,9096.0,288,288,144,144,0,0\n");
	/* The other has no data: nothing stands where there is no figure. */
	expect("/v2/report/percentile?device=rtr_b&span=day&begin=1598140800&end=1598227199"
	       "&format=csv",
	       200,
	       "device,interface,ifAlias,span,begin,end,complete,in,out,larger,larger_of_bins,sum,"
	       "bins,bins_in,bins_out,bins_both,unplaced_in,unplaced_out\n"
	       "rtr_b,xe-0,transit,2020-08-23,1598140800,1598227200,false,,,,,,288,0,0,0,0,0\n");
}

/* Half of an interval suffices, and then its rate is that of the time covered: 300 octets in 150 s
 * are 16 bit/s. An interval of which 149 s were covered is missing; with nothing but that the day
 * is not complete. */
static void test_percentile_coverage(void **state)
{
	(void)state;
	put_devices();
	uint64_t in = counter_of("rtr_a", "ifHCInOctets", "xe-0");
	uint64_t out = counter_of("rtr_a", "ifHCOutOctets", "xe-0");
	put_steady(in, 30, DAY_S, 30, 6, 0, 60);
	put_steady(out, 30, DAY_S + 1, 30, 5, 0, 60);
	put_raw(out, 30, (DAY_S + 150) * 1000, 298);
	expect_like("/v2/report/percentile?device=rtr_a&interface=xe-0&span=day&begin=1598140800"
		    "&end=1598140800&percentile=100",
		    200,
		    HEAD("UTC", "100", "skip") A_XE0
		    "{" UNMEASURED_DAY "'in':16.0,'out':null,'larger':16.0,'larger_of_bins':null,"
		    "'sum':null,'bins':288,'bins_in':1,'bins_out':0,'bins_both':0,"
		    "'unplaced_in':0,'unplaced_out':0}]}]}");
}

/* A month of Berlin's summer time begins two hours before that of UTC; of the month at hand the
 * intervals that are over count. 2020-07-31T22:00Z is 1596232800, now is 2020-08-24T16:40Z: 23 days
 * of 288, 18 h 40 min of 224. */
static void test_percentile_month(void **state)
{
	(void)state;
	put_devices();
	uint64_t in = counter_of("rtr_b", "ifHCInOctets", "xe-0");
	/* One interval before the month, at 800 bit/s, and one within, at 80. */
	put_steady(in, 30, 1596232500, 30, 11, 0, 3000);
	put_steady(in, 30, 1596232830, 30, 10, 30300, 300);
	expect_like(
		"/v2/report/percentile?device__name=rtr_b&zone=Europe/Berlin&percentile=100", 200,
		HEAD("Europe/Berlin", "100",
		     "skip") "{'device':'rtr_b','interface':'xe-0','ifAlias':'transit','spans':["
			     "{'month':'2020-08','begin':1596232800,'end':1598911200,'complete':"
			     "false,"
			     "'in':80.0,'out':null,'larger':80.0,'larger_of_bins':null,'sum':null,"
			     "'bins':6848,'bins_in':1,'bins_out':0,'bins_both':0,'unplaced_in':0,"
			     "'unplaced_out':0}]}]}");
	/* With missing ones as 0 there are 6,848 (not a whole month's 8,928): of these the one of
	 * number 6,848 (6,847.1) is the 99.987th. */
	expect("/v2/report/percentile?device__name=rtr_b&zone=Europe/Berlin&percentile=99.987"
	       "&missing=zero&format=csv",
	       200,
	       "device,interface,ifAlias,span,begin,end,complete,in,out,larger,larger_of_bins,sum,"
	       "bins,bins_in,bins_out,bins_both,unplaced_in,unplaced_out\n"
	       "rtr_b,xe-0,transit,2020-08,1596232800,1598911200,false,80.0,0.0,80.0,80.0,80.0,"
	       "6848,1,0,0,0,0\n");
	expect_like(
		"/v2/report/percentile?device=rtr_b&interface=xe-0&zone=Europe/"
		"Berlin&percentile=100"
		"&month=2020-07",
		200,
		HEAD("Europe/Berlin", "100",
		     "skip") "{'device':'rtr_b','interface':'xe-0','ifAlias':'','spans':["
			     "{'month':'2020-07','begin':1593554400,'end':1596232800,'complete':"
			     "true,"
			     "'in':800.0,'out':null,'larger':800.0,'larger_of_bins':null,'sum':"
			     "null,"
			     "'bins':8928,'bins_in':1,'bins_out':0,'bins_both':0,'unplaced_in':0,"
			     "'unplaced_out':0}]}]}");
}

static void refuse_like(const char *path, const char *like)
{
	char text[600];
	snprintf(text, sizeof(text), "{'error':'%s'}\n", like);
	expect_like(path, 400, text);
}

static void test_percentile_refused(void **state)
{
	(void)state;
	put_devices();
	refuse_like("/v2/report/percentile?percentile=0",
		    "percentile \\'0\\' is not a number like 95 or 99.9");
	refuse_like("/v2/report/percentile?zone=Mars/Olympus",
		    "time zone \\'Mars/Olympus\\': this machine knows none of that name");
	refuse_like("/v2/report/percentile?zone=../etc/passwd",
		    "time zone \\'../etc/passwd\\' is no name like Europe/Berlin");
	refuse_like("/v2/report/percentile?month=2020-8", "month \\'2020-8\\' is not like 2026-10");
	refuse_like("/v2/report/percentile?month=2020-08&begin=5",
		    "month is given beside begin and end");
	refuse_like("/v2/report/percentile?span=week", "span \\'week\\' is neither day nor month");
	refuse_like("/v2/report/percentile?format=xml", "format \\'xml\\' is neither json nor csv");
	refuse_like("/v2/report/percentile?missing=no",
		    "missing \\'no\\' is neither skip nor zero");
	refuse_like("/v2/report/percentile?begin=0&end=1598227199&span=day",
		    "more than 4000 days or months are asked for: ask for less time");
	refuse_like("/v2/report/percentile?ifAlias__regex=(",
		    "ifAlias__regex: the expression \\'(\\' is not understood: a ( has no )");
	/* Nobody has such an interface: an empty report. */
	expect_like("/v2/report/percentile?device=nobody", 200, HEAD("UTC", "95", "skip") "]}");
	/* A hidden one is in none, though it is named. */
	expect_like("/v2/report/percentile?device=rtr_a&interface=ge-0", 200,
		    HEAD("UTC", "95", "skip") "]}");
}

/* ---- Volume ---------------------------------------------------------------------------------- */

/* in: 300 * (1 + ... + 288); out: 144 * 300 * 1000. */
static void test_volume(void **state)
{
	(void)state;
	put_day();
	expect_like("/v2/report/volume?device=rtr_a&begin=1598140800&end=1598227199", 200,
		    "{'zone':'UTC','unit':'octets','children':[" A_XE0 "{" DAY
		    "'in':{'total':12484800,'bins':12484800,'unplaced':0,'covered_s':86400},"
		    "'out':{'total':43200000,'bins':43200000,'unplaced':0,'covered_s':43200}}"
		    "]}]}");
	expect("/v2/report/volume?device=rtr_a&begin=1598140800&end=1598227199&format=csv", 200,
	       "device,interface,ifAlias,span,begin,end,complete,in,in_bins,in_unplaced,"
	       "in_covered_s,out,out_bins,out_unplaced,out_covered_s\n"
	       "rtr_a,xe-0,\"Customer, A \"\"1\"\"\",2020-08-23,1598140800,1598227200,true,"
	       "12484800,12484800,0,86400,43200000,43200000,0,43200\n");
}

/* A gap over midnight: 1000 octets in 120 s, of which 20 lie in the newest bin (166); the rest,
 * 834, is booked where the gap begins, on the day before, which has no other value. */
static void test_volume_of_gaps(void **state)
{
	(void)state;
	put_devices();
	uint64_t in = counter_of("rtr_b", "ifHCInOctets", "xe-0");
	put_raw(in, 30, (DAY_S - 100) * 1000, 7);
	put_raw(in, 30, (DAY_S + 20) * 1000, 1007);
	expect("/v2/report/volume?device=rtr_b&begin=1598140799&end=1598140800&format=csv", 200,
	       "device,interface,ifAlias,span,begin,end,complete,in,in_bins,in_unplaced,"
	       "in_covered_s,out,out_bins,out_unplaced,out_covered_s\n"
	       "rtr_b,xe-0,transit,2020-08-22,1598054400,1598140800,false,834,0,834,0,0,0,0,0\n"
	       "rtr_b,xe-0,transit,2020-08-23,1598140800,1598227200,true,166,166,0,20,0,0,0,0\n");
}

/* A day is complete when it is over and of each counter that there is something was measured in it:
 * on the 22nd both, on the 23rd in alone, on the 24th (not over) nothing. */
static void test_volume_of_what_nobody_measured(void **state)
{
	(void)state;
	put_devices();
	uint64_t in = counter_of("rtr_a", "ifHCInOctets", "xe-0");
	put_steady(in, 30, DAY_S - 60, 30, 4, 0, 300);
	put_steady(counter_of("rtr_a", "ifHCOutOctets", "xe-0"), 30, DAY_S - 90, 30, 4, 0, 60);
	expect("/v2/report/volume?ifAlias__contains=r&begin=1598054400&end=1598227200&format=csv",
	       200,
	       "device,interface,ifAlias,span,begin,end,complete,in,in_bins,in_unplaced,"
	       "in_covered_s,out,out_bins,out_unplaced,out_covered_s\n"
	       "rtr_a,xe-0,\"Customer, A \"\"1\"\"\",2020-08-22,1598054400,1598140800,true,"
	       "600,600,0,60,180,180,0,90\n"
	       "rtr_a,xe-0,\"Customer, A \"\"1\"\"\",2020-08-23,1598140800,1598227200,false,"
	       "300,300,0,30,0,0,0,0\n"
	       "rtr_a,xe-0,\"Customer, A \"\"1\"\"\",2020-08-24,1598227200,1598313600,false,"
	       "0,0,0,0,0,0,0,0\n"
	       "rtr_b,xe-0,transit,2020-08-22,1598054400,1598140800,false,0,0,0,0,0,0,0,0\n"
	       "rtr_b,xe-0,transit,2020-08-23,1598140800,1598227200,false,0,0,0,0,0,0,0,0\n"
	       "rtr_b,xe-0,transit,2020-08-24,1598227200,1598313600,false,0,0,0,0,0,0,0,0\n");
}

/* The day on which Berlin's clocks are put back has 25 hours: at 10 a second, 900,000. */
static void test_volume_of_a_long_day(void **state)
{
	(void)state;
	put_devices();
	/* 2019-10-26T20:00Z and 30 hours on */
	put_steady(counter_of("rtr_b", "ifHCInOctets", "xe-0"), 30, 1572120000, 30, 3601, 0, 300);
	expect_like("/v2/report/volume?device=rtr_b&interface=xe-0&zone=Europe/Berlin"
		    "&begin=1572127200&end=1572127200",
		    200,
		    "{'zone':'Europe/Berlin','unit':'octets','children':["
		    "{'device':'rtr_b','interface':'xe-0','ifAlias':'','spans':["
		    "{'day':'2019-10-27','begin':1572127200,'end':1572217200,'complete':true,"
		    "'in':{'total':900000,'bins':900000,'unplaced':0,'covered_s':90000},"
		    "'out':{'total':0,'bins':0,'unplaced':0,'covered_s':0}}]}]}");
}

/* ---- Sum and top ----------------------------------------------------------------------------- */

static void put_two(void)
{
	put_devices();
	put_steady(counter_of("rtr_a", "ifHCInOctets", "xe-0"), 30, DAY_S, 30, 3, 0, 300);
	put_steady(counter_of("rtr_b", "ifHCInOctets", "xe-0"), 30, DAY_S + 30, 30, 3, 0, 900);
	put_steady(counter_of("rtr_a", "ifHCInOctets", "ge-0"), 30, DAY_S, 30, 3, 0, 99999);
}

#define SELECTED_A "{'device':'rtr_a','interface':'xe-0','ifAlias':'Customer, A \\'1\\''"
#define SELECTED_B "{'device':'rtr_b','interface':'xe-0','ifAlias':'transit'"

static void test_sum(void **state)
{
	(void)state;
	put_two();
	/* The last bin of each has a zero that no time was covered of. */
	expect_like("/v2/report/sum?endpoint=in&begin=1598140800&end=1598140920", 200,
		    "{'interfaces':[" SELECTED_A "}," SELECTED_B "}],'errors':[],'endpoint':'in',"
		    "'begin_time':1598140800,'end_time':1598140920,'agg':'30','cf':'average',"
		    "'data':[{'ts':1598140800,'val':10.0,'of':1},"
		    "{'ts':1598140830,'val':40.0,'of':2},{'ts':1598140860,'val':30.0,'of':2},"
		    "{'ts':1598140890,'val':0.0,'of':1},{'ts':1598140920,'val':null,'of':0}]}");
	expect_like("/v2/report/sum?endpoint=in&begin=1598140830&end=1598140830&cf=delta"
		    "&ifAlias__contains=tra",
		    200,
		    "{'interfaces':[" SELECTED_B "}],'errors':[],'endpoint':'in',"
		    "'begin_time':1598140830,'end_time':1598140830,'agg':'30','cf':'delta',"
		    "'data':[{'ts':1598140830,'val':900,'of':1}]}");
	expect_like("/v2/report/sum?endpoint=in&begin=1598140800&end=1598140800&agg=60", 200,
		    "{'interfaces':[],'errors':["
		    "{'device':'rtr_a','interface':'xe-0',"
		    "'error':'agg 60 is not stored: FastPollHC has 30, 3600, 86400'},"
		    "{'device':'rtr_b','interface':'xe-0',"
		    "'error':'agg 60 is not stored: FastPollHC has 30, 3600, 86400'}],"
		    "'endpoint':'in','begin_time':1598140800,'end_time':1598140800,'agg':'60',"
		    "'cf':'average','data':[]}");
	expect_like("/v2/report/sum?endpoint=up&ifName=none", 200,
		    "{'interfaces':[],'errors':[],'endpoint':'up','begin_time':1598283600,"
		    "'end_time':1598287200,'agg':null,'cf':'average','data':[]}");
	refuse_like("/v2/report/sum", "endpoint is missing: in, out, error/in ...");
	expect("/v2/report/sum?endpoint=in&cf=max", 400,
	       "{\"query error\":\"'smallest and largest rates have no sum'\"}\n");
}

/* It answered as if delta were asked for. */
static void test_a_sum_of_raw_samples_is_refused(void **state)
{
	(void)state;
	expect("/v2/report/sum?endpoint=in&cf=raw", 400,
	       "{\"query error\":\"'raw samples have no sum; cf is average, exact or delta'\"}\n");
}

/* It answered that nothing is above nothing, and not why. */
static void test_top_names_what_it_leaves_out(void **state)
{
	(void)state;
	put_two();
	expect_like("/v2/report/top?endpoint=nope&begin=1598140800&end=1598144399&device=rtr_b",
		    200,
		    "{'endpoint':'nope','by':'average','begin_time':1598140800,"
		    "'end_time':1598144399,'interfaces':1,'errors':["
		    "{'device':'rtr_b','interface':'xe-0',"
		    "'error':'no OIDSet of the device has such an endpoint'}],'children':[]}");
	expect_like("/v2/report/top?endpoint=in&begin=1598140800&end=1598144399&device=rtr_b"
		    "&agg=60",
		    200,
		    "{'endpoint':'in','by':'average','begin_time':1598140800,"
		    "'end_time':1598144399,'interfaces':1,'errors':["
		    "{'device':'rtr_b','interface':'xe-0',"
		    "'error':'agg 60 is not stored: FastPollHC has 30, 3600, 86400'}],"
		    "'children':[]}");
}

static void test_top(void **state)
{
	(void)state;
	put_two();
	expect_like("/v2/report/top?endpoint=in&begin=1598140800&end=1598144399", 200,
		    "{'endpoint':'in','by':'average','begin_time':1598140800,"
		    "'end_time':1598144399,'interfaces':2,'errors':[],'children':[" SELECTED_B
		    ",'val':30.0}," SELECTED_A ",'val':10.0}]}");
	expect_like("/v2/report/top?endpoint=in&begin=1598140800&end=1598144399&by=max&n=1", 200,
		    "{'endpoint':'in','by':'max','begin_time':1598140800,'end_time':1598144399,"
		    "'interfaces':2,'errors':[],'children':[" SELECTED_B
		    ",'val':30.0,'ts':1598140830}]}");
	expect_like("/v2/report/top?endpoint=in&begin=1598140800&end=1598140829&by=volume", 200,
		    "{'endpoint':'in','by':'volume','begin_time':1598140800,"
		    "'end_time':1598140829,'interfaces':2,'errors':[],'children':[" SELECTED_A
		    ",'val':300}]}");
	expect_like("/v2/report/top?endpoint=in&begin=1598140800&end=1598144399&by=max&agg=3600"
		    "&device=rtr_a",
		    200,
		    "{'endpoint':'in','by':'max','begin_time':1598140800,'end_time':1598144399,"
		    "'interfaces':1,'errors':[],'children':[" SELECTED_A
		    ",'val':10.0,'ts':1598140830}]}");
	refuse_like("/v2/report/top", "endpoint is missing: in, out, error/in ...");
	refuse_like("/v2/report/top?endpoint=in&by=p95",
		    "by \\'p95\\' is none of average, max, volume");
	refuse_like("/v2/report/top?endpoint=in&n=1001",
		    "n \\'1001\\' is not a number from 1 to 1000");
}

/* ---- Devices without rows -------------------------------------------------------------------- */

#define VOLUME_CSV                                                                                 \
	"device,interface,ifAlias,span,begin,end,complete,in,in_bins,in_unplaced,in_covered_s,"    \
	"out,out_bins,out_unplaced,out_covered_s\n"
#define OF_THE_DAY "begin=1598140800&end=1598227199"

/* Nobody polls which interfaces rtr_c has; those of rtr_d are polled from the day after on, when
 * ge-0 is hidden. Each has 600 octets in a minute of the day, on one interface in both directions;
 * what rtr_c had on ge-9 was a day before. */
static void put_without_rows(void)
{
	static const struct interface of_d[] = {{"ge-0", ":hide:"}, {"xe-0", "late"}};
	put_devices();
	add_device("rtr_c", "FastPollHC");
	add_device("rtr_d", "FastPollHC IfRefPoll");
	add_device("rtr_e", "FastPollHC");
	poll_interfaces("rtr_d", DAY_S + 86400, of_d, 2);
	put_steady(counter_of("rtr_c", "ifHCInOctets", "xe-1/0"), 30, DAY_S, 30, 3, 0, 300);
	put_steady(counter_of("rtr_c", "ifHCOutOctets", "xe-1/0"), 30, DAY_S, 30, 3, 0, 300);
	put_steady(counter_of("rtr_c", "ifHCOutOctets", "ge-1"), 30, DAY_S, 30, 3, 0, 300);
	put_steady(counter_of("rtr_c", "ifHCInOctets", "ge-9"), 30, DAY_S - 86400, 30, 3, 0, 300);
	put_steady(counter_of("rtr_d", "ifHCInOctets", "xe-0"), 30, DAY_S, 30, 3, 0, 300);
	put_steady(counter_of("rtr_d", "ifHCInOctets", "ge-0"), 30, DAY_S, 30, 3, 0, 300);
}

#define C_GE1 "rtr_c,ge-1,,2020-08-23,1598140800,1598227200,true,0,0,0,0,600,600,0,60\n"
#define C_XE1 "rtr_c,xe-1/0,,2020-08-23,1598140800,1598227200,true,600,600,0,60,600,600,0,60\n"
#define D_XE0 "rtr_d,xe-0,,2020-08-23,1598140800,1598227200,true,600,600,0,60,0,0,0,0\n"

static void test_devices_without_rows(void **state)
{
	(void)state;
	put_without_rows();
#define VOLUME "/v2/report/volume?format=csv&" OF_THE_DAY
	expect(VOLUME "&device=rtr_c", 200, VOLUME_CSV C_GE1 C_XE1);
	/* In the order of names, among those that have rows. */
	expect(VOLUME "&device__regex=[bcde]$", 200,
	       VOLUME_CSV "rtr_b,xe-0,transit,2020-08-23,1598140800,1598227200,false,0,0,0,0,"
			  "0,0,0,0\n" C_GE1 C_XE1 D_XE0);
	/* Nothing but names is known: an alias of today is none of that day. */
	expect(VOLUME "&ifName__startswith=xe-1", 200, VOLUME_CSV C_XE1);
	expect(VOLUME "&ifAlias=late", 200, VOLUME_CSV);
	expect(VOLUME "&device__name=rtr_d&ifDescr__contains=d", 200, VOLUME_CSV);
	/* By name, also in the document's spelling; a hidden one is not there for that either. */
	expect(VOLUME "&device=rtr_c&interface=xe-1_0", 200, VOLUME_CSV C_XE1);
	expect(VOLUME "&device=rtr_c&interface=xe-9", 200, VOLUME_CSV);
	expect(VOLUME "&device=rtr_d&interface=ge-0", 200, VOLUME_CSV);
	expect(VOLUME "&interface=ge-1", 200, VOLUME_CSV C_GE1);
}

static void test_sum_and_top_without_rows(void **state)
{
	(void)state;
	put_without_rows();
	expect_like("/v2/report/sum?endpoint=out&device__contains=c&cf=delta&begin=1598140800"
		    "&end=1598140830",
		    200,
		    "{'interfaces':[{'device':'rtr_c','interface':'ge-1','ifAlias':''},"
		    "{'device':'rtr_c','interface':'xe-1/0','ifAlias':''}],'errors':[],"
		    "'endpoint':'out','begin_time':1598140800,'end_time':1598140830,'agg':'30',"
		    "'cf':'delta','data':[{'ts':1598140800,'val':600,'of':2},"
		    "{'ts':1598140830,'val':600,'of':2}]}");
	expect_like("/v2/report/top?endpoint=in&by=volume&device__contains=_&begin=1598140800"
		    "&end=1598144399",
		    200,
		    "{'endpoint':'in','by':'volume','begin_time':1598140800,'end_time':1598144399,"
		    "'interfaces':4,'errors':[],'children':["
		    "{'device':'rtr_c','interface':'xe-1/0','ifAlias':'','val':600},"
		    "{'device':'rtr_d','interface':'xe-0','ifAlias':'','val':600}]}");
}

static void test_too_many_without_rows(void **state)
{
	(void)state;
	close_inventory();
	open_inventory("snmp: {secrets_file: s.yml}\nquery: {series_max: 1}\n");
	put_without_rows();
	expect(VOLUME "&device=rtr_c", 422,
	       "{\"detail\":\"more than 1 interfaces match (query.series_max): ask for "
	       "fewer\"}\n");
	expect(VOLUME "&device=rtr_c&ifName=ge-1", 200, VOLUME_CSV C_GE1);
}

/* A clock that says a second more whenever it is asked for the time that passes. */
static struct clock hasty;

static int64_t hasty_wall_us(UNUSED struct clock *clock)
{
	return clock_.clock.wall_us(&clock_.clock);
}

static int64_t hasty_mono_us(UNUSED struct clock *clock)
{
	clock_virtual_advance(&clock_, 1000000);
	return clock_.clock.mono_us(&clock_.clock);
}

static void expect_good(const char *path)
{
	struct client c = {0};
	ask(&c, path);
	if (c.status != 200)
		fail_msg("%s: %s", path, c.answer);
	mem_free(c.answer);
}

/* Each of them takes some turns, which is more than 3 s here. No read of the store may take longer
 * than the answer that it is for. */
static void test_what_takes_too_long(void **state)
{
	static const char *const paths[] = {
		"/v2/report/percentile?device=rtr_a&span=day&begin=1598140800&end=1598227199",
		"/v2/report/volume?device=rtr_a&begin=1598140800&end=1598227199",
		"/v2/report/sum?endpoint=in&begin=1598140800&end=1598140920",
		"/v2/report/top?endpoint=in&begin=1598140800&end=1598144399",
		"/v2/device/rtr_a/interface/xe-0/in?begin=1598140800&end=1598140920",
		"/v2/interface/",
		"/v2/inventory/",
	};
	(void)state;
	hasty = (struct clock){hasty_wall_us, hasty_mono_us};
	put_day();
	uint64_t endless = on_lmdb ? 0 : naive_endless_reads(store);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		expect_good(paths[i]);
	if (!on_lmdb)
		assert_int_equal(naive_endless_reads(store), endless);
	close_inventory();
	open_inventory("snmp: {secrets_file: s.yml}\nquery: {timeout: 3s}\n");
	api.clock = &hasty;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		expect(paths[i], 422,
		       "{\"detail\":\"the query took longer than 3000 ms (query.timeout); ask for "
		       "less: less time, or fewer series\"}\n");
	api.clock = &clock_.clock;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		expect_good(paths[i]);
}

/* A client who goes at whatever point of it leaves nothing behind. */
static void test_client_goes(void **state)
{
	(void)state;
	static const char request[] =
		"GET " VOLUME "&device__contains=rtr HTTP/1.1\r\nHost: localhost\r\n\r\n";
	put_without_rows();
	for (int turns = 0; turns < 60; turns++) {
		int fd = dial();
		assert_int_equal(write(fd, request, strlen(request)), strlen(request));
		for (int i = 0; i < turns; i++) {
			loop_stop(loop);
			loop_run(loop);
		}
		close(fd);
	}
	expect(VOLUME "&device=rtr_c", 200, VOLUME_CSV C_GE1 C_XE1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		V2_TEST(test_percentile),
		V2_TEST(test_percentile_csv),
		V2_TEST(test_percentile_coverage),
		V2_TEST(test_percentile_month),
		V2_TEST(test_percentile_refused),
		V2_TEST(test_volume),
		V2_TEST(test_volume_of_gaps),
		V2_TEST(test_volume_of_what_nobody_measured),
		V2_TEST(test_volume_of_a_long_day),
		V2_TEST(test_sum),
		V2_TEST(test_a_sum_of_raw_samples_is_refused),
		V2_TEST(test_top),
		V2_TEST(test_top_names_what_it_leaves_out),
		V2_TEST(test_devices_without_rows),
		V2_TEST(test_sum_and_top_without_rows),
		V2_TEST(test_too_many_without_rows),
		V2_TEST(test_what_takes_too_long),
		V2_TEST(test_client_goes),
	};
	V2_RUN(tests);
}
