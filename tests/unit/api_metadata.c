/* /api/metadata over a real connection, of the data of the document's worked example. */
#include "api_harness.h"

static void test_metadata(void **state)
{
	(void)state;
	put_example();
	open_series("t-1", "mem_free", "");
	expect("/api/metadata/tenants", 200, "[\"t-1\",\"t-2\"]");
	expect("/api/metadata/tenants?prefix=t-2", 200, "[\"t-2\"]");
	expect("/api/metadata/metricNames?tenant=t-1", 200, "[\"cpu_idle\",\"mem_free\"]");
	expect("/api/metadata/metricNames?tenant=t-1&prefix=m", 200, "[\"mem_free\"]");
	expect("/api/metadata/metricNames?tenant=t-2", 200, "[\"cpu_idle\"]");
	expect("/api/metadata/metricNames", 200, "[]");
	expect("/api/metadata/tagKeys?tenant=t-1&metricName=cpu_idle", 200,
	       "[\"deployment\",\"host\",\"os\"]");
	expect("/api/metadata/tagKeys?tenant=t-1&metricName=mem_free", 200, "[]");
	expect("/api/metadata/tagValues?tenant=t-1&metricName=cpu_idle&tagKey=os", 200,
	       "[\"linux\",\"windows\"]");
	expect("/api/metadata/tagValues?tenant=t-2&metricName=cpu_idle&tagKey=os", 200,
	       "[\"linux\"]");
	expect("/api/metadata/tagValues?tenant=t-1&metricName=cpu_idle&tagKey=nil", 200, "[]");
	struct client c = {0};
	ask(&c, "/api/metadata/tagValues?tenant=t-1&metricName=cpu_idle&tagKey=host&limit=3");
	assert_string_equal(c.body, "[\"h-1\",\"h-2\",\"h-3\"]");
	assert_non_null(strstr(c.answer, "X-Granary-Cut: limit\r\n"));
	mem_free(c.answer);
	refuse("/api/metadata/tagKeys?tenant=t-1", 400, "metricName is missing");
	refuse("/api/metadata/tagValues?tenant=t-1&metricName=cpu_idle", 400, "tagKey is missing");
	refuse("/api/metadata/tenants?limit=0", 400,
	       "limit \\\"0\\\" is not a number from 1 to 100000");
	refuse("/api/metadata/tenants?limit=x", 400,
	       "limit \\\"x\\\" is not a number from 1 to 100000");
	refuse("/api/metadata/tenants?tenant=x", 400, "unknown parameter \\\"tenant\\\"");
}

static void test_metadata_series(void **state)
{
	(void)state;
	put_example();
	struct store_write *write = write_new();
	struct catalog_info info = {KIND_GAUGE, SLICE("%"), TABLE_DATA_RAW, 10000};
	assert_int_equal(catalog_info_put(store, write, SLICE("t-1"), SLICE("cpu_idle"), &info), 0);
	write_out(write);
	expect("/api/metadata/series?tenant=t-1&metricName=cpu_idle&tag=host=h-4", 200,
	       "[{\"seriesSet\":\"cpu_idle,deployment=prod,host=h-4,os=linux\",\"tenant\":\"t-1\","
	       "\"metricName\":\"cpu_idle\",\"tags\":{\"deployment\":\"prod\",\"host\":\"h-4\","
	       "\"os\":\"linux\"},\"kind\":\"gauge\",\"unit\":\"%\",\"description\":\"\","
	       "\"aggregators\":[\"raw\"],"
	       "\"table\":\"data_raw\","
	       "\"baseFrequencyMs\":10000,\"firstSeen\":\"2020-08-24T16:34:05Z\","
	       "\"lastSeen\":\"2020-08-24T16:34:05Z\"}]");
	open_series("t-1", "a,b", "c=d\\=e");
	expect("/api/metadata/series?tenant=t-1&metricName=a,b", 200,
	       "[{\"seriesSet\":\"a\\\\,b,c=d\\\\=e\",\"tenant\":\"t-1\",\"metricName\":\"a,b\","
	       "\"tags\":{\"c\":\"d=e\"},\"kind\":\"unknown\",\"unit\":\"\",\"description\":\"\","
	       "\"aggregators\":[\"raw\"],"
	       "\"table\":\"data_raw\","
	       "\"baseFrequencyMs\":0,\"firstSeen\":\"2020-08-24T16:40:00Z\",\"lastSeen\":null}]");
	expect("/api/metadata/series?tenant=t-1&metricName=none", 200, "[]");
	refuse("/api/metadata/series?tenant=t-1", 400, "metricName is missing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_metadata),
		TEST(test_metadata_series),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
