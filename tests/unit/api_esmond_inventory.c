/* /v2 of devices, interfaces, OIDSets and outlets, over a real connection. */
#include "v2_harness.h"

static void put_example_devices(void)
{
	static const struct interface of_a[] = {
		{"ge-1/0/0", ":hide:"},
		{"xe-0/0/0", "test interface"},
		{"xe-0/0/1", "Intercloud A"},
	};
	static const struct interface of_b[] = {{"xe-0/0/0", "intercloud B"}};
	add_device("rtr_a", "FastPollHC Errors IfRefPoll");
	add_device("rtr_b", "ALUFastPollHC IfRefPoll");
	poll_interfaces("rtr_a", HOUR_S, of_a, 3);
	poll_interfaces("rtr_b", HOUR_S, of_b, 1);
}

#define DEVICE_B                                                                                   \
	"'name':'rtr_b','active':true,'begin_time':1577836800,'end_time':253402127999,"            \
	"'oidsets':['ALUFastPollHC','IfRefPoll'],'leaf':false,"                                    \
	"'url':'http://localhost/v2/device/rtr_b/','uri':'/v2/device/rtr_b/',"                     \
	"'resource_uri':'/v2/device/rtr_b/','children':[{'leaf':false,'name':'interface',"         \
	"'uri':'/v2/device/rtr_b/interface/'}]}"

/* The answer holds all of it. */
static void expect_part(const char *path, const char *like)
{
	struct client c = {0};
	char *text = mem_copy_text(slice_of(like));
	for (char *at = text; (at = strchr(at, '\'')); at++)
		*at = '"';
	ask(&c, path);
	if (c.status != 200 || !strstr(c.body, text))
		fail_msg("%s: %s", path, c.answer);
	mem_free(text);
	mem_free(c.answer);
}

/* How many times the text stands in the answer. */
static size_t count_in(const char *path, const char *text)
{
	struct client c = {0};
	size_t count = 0;
	ask(&c, path);
	if (c.status != 200)
		fail_msg("%s: %s", path, c.answer);
	for (const char *at = c.body; (at = strstr(at, text)); at++)
		count++;
	mem_free(c.answer);
	return count;
}

static void refuse_like(const char *path, int status, const char *like)
{
	char text[600];
	snprintf(text, sizeof(text), "%s\n", like);
	expect_like(path, status, text);
}

static void test_devices(void **state)
{
	(void)state;
	expect("/v2/device/", 200, "[]");
	put_example_devices();
	expect_part("/v2/device/rtr_b/", DEVICE_B);
	expect_part("/v2/device/rtr_b", DEVICE_B);
	expect_part("/v2/device/rtr@5fb/", DEVICE_B);
	expect_part("/v2/device/", "," /* the second of the list */);
	assert_int_equal(count_in("/v2/device/", "\"oidsets\""), 2);
	assert_int_equal(count_in("/v2/device/?name=rtr_a", "\"oidsets\""), 1);
	assert_int_equal(
		count_in("/v2/device/?name__startswith=rtr&limit=1&offset=1", "\"name\":\"rtr_b\""),
		1);
	assert_int_equal(count_in("/v2/device/?end=1577836799", "\"oidsets\""), 0);
	assert_int_equal(count_in("/v2/device/?begin=0&end=1577836800", "\"oidsets\""), 2);
	refuse_like("/v2/device/nobody/", 404, "{'detail':'there is no device \\'nobody\\''}");
	refuse_like("/v2/device/nobody/interface/", 404,
		    "{'detail':'there is no device \\'nobody\\''}");
	refuse_like("/v2/device/nobody/interface/xe-0/", 404,
		    "{'detail':'there is no device \\'nobody\\''}");
	refuse_like("/v2/device/rtr_a/?x=1", 400, "{'error':'unknown parameter \\'x\\''}");
	refuse_like("/v2/device/?begin=y", 400,
		    "{'error':'begin \\'y\\' is not a time: seconds since 1970, "
		    "2020-08-24T16:34:05Z, or 1h-ago'}");
	refuse_like("/v2/device/rtr_a/system/", 404,
		    "{'detail':'there is nothing at /v2/device/rtr_a/system/'}");
	refuse_like("/v2/devices/", 404, "{'detail':'there is nothing at /v2/devices/'}");
}

/* The cases of esmond's own test_get_device_list, its rtr_b being one that has ended. */
static void test_lives(void **state)
{
	(void)state;
	const int64_t begin = 1325376000, end = 1356998400; /* 2012 */
	add_device_of("rtr_b", "FastPollHC", begin, end * 1000);
	add_device("rtr_a", "FastPollHC");
	assert_int_equal(count_in("/v2/device/", "\"name\":\"rtr_"), 1);
	assert_int_equal(count_in("/v2/device/?begin=1325376000", "\"oidsets\""), 2);
	assert_int_equal(count_in("/v2/device/?begin=1577836800", "\"oidsets\""), 1);
	assert_int_equal(count_in("/v2/device/?end=0", "\"oidsets\""), 0);
	assert_int_equal(count_in("/v2/device/?begin=0&end=1325376000", "rtr_b/\",\"uri"), 1);
	assert_int_equal(count_in("/v2/device/?begin=0&end=1356998400", "rtr_b/\",\"uri"), 1);
	assert_int_equal(count_in("/v2/device/?begin=0&end=1356998400", "\"oidsets\""), 1);
	/* Without a begin it is now, so that one that has ended since is left out. */
	assert_int_equal(count_in("/v2/device/?end=1340000000", "\"oidsets\""), 0);
	assert_int_equal(count_in("/v2/device/?begin=1700000000", "\"oidsets\""), 1);
	/* By name likewise. */
	refuse_like("/v2/device/rtr_b/", 404, "{'detail':'there is no device \\'rtr_b\\''}");
	refuse_like("/v2/device/rtr_b/?begin=1356998401", 404,
		    "{'detail':'there is no device \\'rtr_b\\''}");
	assert_int_equal(count_in("/v2/device/rtr_b/?begin=1356998400", "\"rtr_b\""), 1);
	assert_int_equal(count_in("/v2/device/rtr_b/?begin=2012-12-31&end=1h-ago", "\"rtr_b\""), 1);
	refuse_like("/v2/device/rtr_b/?begin=2&end=1", 400, "{'error':'begin 2 lies after end 1'}");
	assert_int_equal(count_in("/v2/device/rtr_b/interface/", "\"total_count\":0"), 1);
}

static void test_put(void **state)
{
	(void)state;
	put_example_devices();
	struct client c = {0};
	ask(&c, "/v2/device/rtr_b/");
	/* What was got is put back with one change. */
	const char *active = strstr(c.body, "\"active\":true");
	char *body = mem_alloc(strlen(c.body) + 2);
	snprintf(body, strlen(c.body) + 2, "%.*s\"active\":false%s", (int)(active - c.body), c.body,
		 active + strlen("\"active\":true"));
	char *expected = mem_copy_text(slice_of(body));
	send_json("PUT", "/v2/device/rtr_b/", body, 200, expected);
	mem_free(body);
	mem_free(expected);
	mem_free(c.answer);
	assert_int_equal(count_in("/v2/device/", "\"oidsets\""), 1);
	assert_int_equal(count_in("/v2/device/rtr_b/", "\"active\":false"), 1);
	c = (struct client){.verb = "PUT",
			    .headers = "Content-Type: application/json\r\nContent-Length: 26\r\n"
				       "\r\n{\"oidsets\":[\"FastPollHC\"]}"};
	ask(&c, "/v2/device/rtr_a/");
	assert_int_equal(c.status, 200);
	mem_free(c.answer);
	assert_int_equal(count_in("/v2/device/rtr_a/", "\"oidsets\":[\"FastPollHC\"]"), 1);
}

static void refuse_put(const char *body, const char *like)
{
	char text[600];
	snprintf(text, sizeof(text), "%s\n", like);
	for (char *at = text; (at = strchr(at, '\'')); at++)
		*at = '"';
	send_json("PUT", "/v2/device/rtr_a/", body, 400, text);
}

static void test_put_refused(void **state)
{
	(void)state;
	put_example_devices();
	refuse_put("{\"name\":\"x\"}", "{'error':'\\'name\\' is not changed here: only oidsets and "
				       "active are'}");
	refuse_put("{\"end_time\":5}", "{'error':'\\'end_time\\' is not changed here: only oidsets "
				       "and active are'}");
	refuse_put("{\"oidset\":[]}",
		   "{'error':'\\'oidset\\' is not changed here: only oidsets and "
		   "active are'}");
	refuse_put("[]", "{'error':'the body is no object'}");
	refuse_put("{\"oidsets\":[5]}", "{'error':'oidsets is a list of names'}");
	send_json("PUT", "/v2/device/nobody/", "{}", 404,
		  "{\"detail\":\"there is no device \\\"nobody\\\"\"}\n");
	send_json("PUT", "/v2/device/", "{}", 404,
		  "{\"detail\":\"there is nothing at /v2/device/\"}\n");
	struct client c = {.verb = "PUT", .headers = "Content-Length: 2\r\n\r\n{}"};
	ask(&c, "/v2/device/rtr_a/");
	assert_int_equal(c.status, 400);
	assert_string_equal(c.body, "{\"error\":\"the body must have the type "
				    "application/json\"}\n");
	mem_free(c.answer);
	/* An OIDSet that nobody knows, whatever the sentence. */
	c = (struct client){.verb = "PUT",
			    .headers = "Content-Type: application/json\r\nContent-Length: 21\r\n"
				       "\r\n{\"oidsets\":[\"FastP\"]}"};
	ask(&c, "/v2/device/rtr_a/");
	assert_int_equal(c.status, 400);
	assert_non_null(strstr(c.body, "{\"error\":"));
	assert_non_null(strstr(c.body, "FastP"));
	mem_free(c.answer);
	assert_int_equal(count_in("/v2/device/rtr_a/", "\"Errors\""), 1);
	c = (struct client){.verb = "DELETE"};
	ask(&c, "/v2/device/rtr_a/");
	assert_int_equal(c.status, 405);
	mem_free(c.answer);
}

#define CHILD(interface, name)                                                                     \
	"{'name':'" name                                                                           \
	"','leaf':true,'url':'http://localhost/v2/device/rtr_b/interface/" interface "/" name      \
	"','uri':'/v2/device/rtr_b/interface/" interface "/" name                                  \
	"','resource_uri':'/v2/device/rtr_b/interface/" interface "/" name "'}"

static void test_interfaces(void **state)
{
	(void)state;
	put_example_devices();
	expect_part("/v2/device/rtr_b/interface/xe-0@2F0@2F0/",
		    "'device':'rtr_b','device_uri':'/v2/device/rtr_b/','ifIndex':1,'ifDescr':'d1',"
		    "'ifName':'xe-0/0/0','ifAlias':'intercloud B','ifHighSpeed':10000,"
		    "'begin_time':1598284800,'end_time':253402127999,'leaf':false,"
		    "'url':'http://localhost/v2/device/rtr_b/interface/xe-0@2F0@2F0',"
		    "'uri':'/v2/device/rtr_b/interface/xe-0@2F0@2F0',"
		    "'resource_uri':'/v2/device/rtr_b/interface/xe-0@2F0@2F0','children':[" CHILD(
			    "xe-0@2F0@2F0", "in") "," CHILD("xe-0@2F0@2F0", "out") "]}");
	/* The same by other spellings: lower case, as a percent code, as the document has it. */
	assert_int_equal(count_in("/v2/device/rtr_b/interface/xe-0@2f0@2f0", "\"ifIndex\":1"), 1);
	assert_int_equal(count_in("/v2/device/rtr_b/interface/xe-0%2F0%2F0/", "\"ifIndex\":1"), 1);
	assert_int_equal(count_in("/v2/device/rtr_b/interface/xe-0_0_0/", "\"ifIndex\":1"), 1);
	/* Endpoints of both OIDSets. */
	assert_int_equal(count_in("/v2/device/rtr_a/interface/xe-0_0_0/", "\"leaf\":true"), 6);
	assert_int_equal(count_in("/v2/device/rtr_a/interface/xe-0_0_0/", "/error/in\",\"uri\""),
			 1);
	refuse_like("/v2/device/rtr_b/interface/xe-9/", 404,
		    "{'detail':'the device has no interface \\'xe-9\\''}");
	/* A hidden one is not there, unless it is asked for by configuration. */
	refuse_like("/v2/device/rtr_a/interface/ge-1@2F0@2F0/", 404,
		    "{'detail':'the device has no interface \\'ge-1@2F0@2F0\\''}");
	assert_int_equal(count_in("/v2/device/rtr_a/interface/", "\"ifIndex\""), 2);
	conf->v2_show_hidden = true;
	assert_int_equal(count_in("/v2/device/rtr_a/interface/", "\"ifIndex\""), 3);
}

static void test_versions(void **state)
{
	(void)state;
	static const struct interface before[] = {{"xe-0", "test one"}};
	static const struct interface after[] = {{"xe-0", "test two"}};
	add_device("rtr_a", "FastPollHC IfRefPoll");
	poll_interfaces("rtr_a", HOUR_S, before, 1);
	poll_interfaces("rtr_a", HOUR_S + 600, after, 1);
	/* Now there is one; over the change there are two, and by name the later one. */
	assert_int_equal(count_in("/v2/device/rtr_a/interface/", "\"ifIndex\""), 1);
	assert_int_equal(count_in("/v2/device/rtr_a/interface/", "test two"), 1);
	assert_int_equal(
		count_in("/v2/device/rtr_a/interface/?begin=1598284800&end=1598285400", "test "),
		2);
	assert_int_equal(count_in("/v2/device/rtr_a/interface/xe-0?begin=1598284800&end=1598285400",
				  "test two"),
			 1);
	assert_int_equal(count_in("/v2/device/rtr_a/interface/xe-0?begin=1598284800&end=1598285000",
				  "test one"),
			 1);
	refuse_like("/v2/device/rtr_a/interface/xe-0?begin=1598200000&end=1598284799", 404,
		    "{'detail':'the device has no interface \\'xe-0\\''}");
}

static void test_search(void **state)
{
	(void)state;
	put_example_devices();
	assert_int_equal(count_in("/v2/interface/", "\"ifIndex\""), 3);
	assert_int_equal(count_in("/v2/interface/?ifAlias__contains=ntercloud", "\"ifIndex\""), 2);
	assert_int_equal(count_in("/v2/interface/?ifAlias__startswith=inter", "\"ifIndex\""), 1);
	assert_int_equal(count_in("/v2/interface/?ifAlias__istartswith=INTER", "\"ifIndex\""), 2);
	assert_int_equal(count_in("/v2/interface/?ifName=xe-0/0/0", "\"ifIndex\""), 2);
	assert_int_equal(
		count_in("/v2/interface/?ifName=xe-0/0/0&device__name=rtr_a", "\"ifIndex\""), 1);
	assert_int_equal(count_in("/v2/interface/?ifName__regex=0/1$", "\"ifIndex\""), 1);
}

static void test_search_pages(void **state)
{
	(void)state;
	put_example_devices();
	expect_part("/v2/interface/?limit=2",
		    "],'meta':{'limit':2,'offset':0,'total_count':3,"
		    "'next':'http://localhost/v2/interface/?limit=2&offset=2','previous':null}}");
	assert_int_equal(count_in("/v2/interface/?limit=2", "\"ifIndex\""), 2);
	expect_part("/v2/interface/?limit=2&offset=2",
		    "'total_count':3,'next':null,"
		    "'previous':'http://localhost/v2/interface/?limit=2&offset=0'}}");
	assert_int_equal(count_in("/v2/interface/?limit=2&offset=2", "\"ifIndex\""), 1);
	assert_int_equal(count_in("/v2/interface/?limit=0", "\"ifIndex\""), 3);
	expect_like("/v2/interface/?ifName=none", 200,
		    "{'children':[],'meta':{'limit':20,'offset':0,'total_count':0,'next':null,"
		    "'previous':null}}");
	refuse_like(
		"/v2/interface/?ifAlias__like=x", 400,
		"{'error':'ifAlias__like: unknown look-up \\'like\\': there are exact, contains, "
		"startswith, endswith, regex, and each with an i before it'}");
	refuse_like("/v2/interface/x", 404, "{'detail':'there is nothing at /v2/interface/x'}");
}

static void test_oidsets(void **state)
{
	(void)state;
	assert_int_equal(count_in("/v2/oidset/", "\"FastPollHC\""), 1);
	assert_int_equal(count_in("/v2/oidset/", "\"IfRefPoll\""), 1);
	expect_part("/v2/oidsetmap/", "'FastPollHC':{'in':'ifHCInOctets','out':'ifHCOutOctets'}");
	expect_part("/v2/oidsetmap/", "'Errors':{'error/in':'ifInErrors','error/out':'ifOutErrors',"
				      "'discard/in':'ifInDiscards','discard/out':'ifOutDiscards'}");
	assert_int_equal(count_in("/v2/oidsetmap/", "IfRefPoll"), 0);
	refuse_like("/v2/oidset/x/", 404, "{'detail':'there is nothing at /v2/oidset/x/'}");
}

static void test_outlets(void **state)
{
	(void)state;
	static const struct inventory_row rows[] = {
		{SLICE("AA1"), HOUR_S * 1000, INVENTORY_FOREVER_MS,
		 SLICE("{\"outletID\":\"AA1\",\"outletName\":\"rtr_a feed\",\"outletStatus\":1}")},
		{SLICE("AA2"), HOUR_S * 1000, INVENTORY_FOREVER_MS,
		 SLICE("{\"outletID\":\"AA2\",\"outletName\":\"spare\",\"outletStatus\":0}")},
	};
	put_example_devices();
	add_device("pdu_a", "SentryPoll SentryOutletRefPoll");
	poll_rows("pdu_a", OIDSET_OUTLETS, HOUR_S, rows, 2);
	/* A plain list of what a device is, too. */
	static const char strip[] =
		"'name':'pdu_a','active':true,'begin_time':1577836800,'end_time':253402127999,"
		"'oidsets':['SentryOutletRefPoll','SentryPoll'],'leaf':false,"
		"'url':'http://localhost/v2/pdu/pdu_a/','uri':'/v2/pdu/pdu_a/',"
		"'resource_uri':'/v2/pdu/pdu_a/','children':[{'leaf':false,'name':'outlet',"
		"'uri':'/v2/pdu/pdu_a/outlet/'}]}";
	struct client c = {0};
	ask(&c, "/v2/pdu/");
	assert_int_equal(strncmp(c.body, "[{\"id\":", 7), 0);
	assert_string_equal(c.body + strlen(c.body) - 2, "}]");
	mem_free(c.answer);
	expect_part("/v2/pdu/", strip);
	expect_part("/v2/pdu/pdu_a/", strip);
	assert_int_equal(count_in("/v2/pdu/", "\"oidsets\""), 1);
	assert_int_equal(count_in("/v2/pdu/?name=rtr_a", "\"oidsets\""), 0);
	assert_int_equal(count_in("/v2/pdu/?end=0", "\"oidsets\""), 0);
	refuse_like("/v2/pdu/pdu_a/?end=0", 404, "{'detail':'there is no device \\'pdu_a\\''}");
	expect_part(
		"/v2/pdu/pdu_a/outlet/AA2/",
		"'pdu':'pdu_a','pdu_uri':'/v2/pdu/pdu_a/','outletID':'AA2','outletName':'spare',"
		"'outletStatus':0,'begin_time':1598284800,'end_time':253402127999,"
		"'leaf':false,'url':'http://localhost/v2/pdu/pdu_a/outlet/AA2',"
		"'uri':'/v2/pdu/pdu_a/outlet/AA2','resource_uri':'/v2/pdu/pdu_a/outlet/AA2',"
		"'children':[{'name':'load','leaf':true,"
		"'url':'http://localhost/v2/pdu/pdu_a/outlet/AA2/load',"
		"'uri':'/v2/pdu/pdu_a/outlet/AA2/load',"
		"'resource_uri':'/v2/pdu/pdu_a/outlet/AA2/load'}]}");
	assert_int_equal(count_in("/v2/pdu/pdu_a/outlet/", "\"outletID\""), 2);
	assert_int_equal(count_in("/v2/pdu/pdu_a/outlet/AA2/", "\"outletName\":\"spare\""), 1);
	assert_int_equal(count_in("/v2/pdu/pdu_a/outlet/AA2/", "\"outletID\""), 1);
	assert_int_equal(count_in("/v2/outlet/?outletName__contains=rtr_a", "\"outletID\""), 1);
	assert_int_equal(count_in("/v2/outlet/", "\"outletID\""), 2);
	refuse_like("/v2/pdu/pdu_a/outlet/AA3/", 404,
		    "{'detail':'the device has no outlet \\'AA3\\''}");
	refuse_like("/v2/pdu/rtr_a/", 404, "{'detail':'there is no device \\'rtr_a\\''}");
	refuse_like("/v2/pdu/rtr_a/outlet/", 404,
		    "{'detail':'there is no power strip \\'rtr_a\\''}");
	refuse_like("/v2/pdu/rtr_a/outlet/AA1/load", 400,
		    "{'error':'there is no power strip \\'rtr_a\\''}");
	refuse_like("/v2/pdu/pdu_a/outlet/AA1/load", 400,
		    "{'error':'nothing is known of the load of this outlet'}");
	refuse_like("/v2/pdu/pdu_a/outlet/AA1/bogus_dataset", 400,
		    "{'error':'outlets have a load, and no \\'bogus_dataset\\''}");
	/* The document's times: 1391216201, 262 and 323 are put down to 160, 220 and 280. */
	uint64_t handle = open_counter("pdu_a", "SentryPoll", "outletLoadValue", NULL);
	assert_int_not_equal(handle, 0);
	handle = open_series("snmp", "outletLoadValue", "device=pdu_a,id=AA1,oidset=SentryPoll");
	put_raw(handle, 60, INT64_C(1391216201000), 11);
	put_raw(handle, 60, INT64_C(1391216262000), 12);
	put_raw(handle, 60, INT64_C(1391216323000), 13);
	expect_part("/v2/pdu/pdu_a/outlet/AA1/load/?begin=1391216160&end=1391216340",
		    "{'url':'http://localhost/v2/pdu/pdu_a/outlet/AA1/load',"
		    "'resource_uri':'/v2/pdu/pdu_a/outlet/AA1/load','begin_time':1391216160,"
		    "'end_time':1391216340,'agg':'60','cf':'raw',"
		    "'data':[{'ts':1391216160,'val':11},{'ts':1391216220,'val':12},"
		    "{'ts':1391216280,'val':13}]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		V2_TEST(test_devices),     V2_TEST(test_lives),        V2_TEST(test_put),
		V2_TEST(test_put_refused), V2_TEST(test_interfaces),   V2_TEST(test_versions),
		V2_TEST(test_search),      V2_TEST(test_search_pages), V2_TEST(test_oidsets),
		V2_TEST(test_outlets),
	};
	V2_RUN(tests);
}
