/* What the server says about itself, asked over a connection without a socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../tools/http_fake.h"
#include "../tools/missing.h"

#include "api/routes.h"
#include "api/admin/admin.h"
#include "base/stats.h"
#include "catalog/catalog.h"
#include "naive.h"

static struct {
	struct clock_virtual clock;
	struct task_queue loop;
	struct arena arena;
	struct store *store;
	struct api api;
	struct http_core core;
	struct fake *fake;
	char *answer; /* zero-terminated */
} test;

static void pump(void)
{
	while (task_queue_run(&test.loop))
		;
}

static int set_up(void **state)
{
	struct catalog_options options = catalog_options_default();
	(void)state;
	clock_virtual_init(&test.clock, INT64_C(1600000000000000));
	task_queue_init(&test.loop);
	arena_init(&test.arena, 1 << 20);
	test.store = naive_open(&test.clock.clock);
	test.api = (struct api){.clock = &test.clock.clock, .store = test.store};
	test.api.catalog =
		catalog_new(test.store, &test.clock.clock, &test.loop.executor, &options);
	test.api.started_ms = clock_wall_ms(&test.clock.clock);
	http_core_init(&test.core, &test.clock.clock, &http_limits_default, api_routes,
		       api_route_count, &test.api);
	test.fake = fake_new(&test.core);
	return 0;
}

static void on_closed(void *owner)
{
	*(bool *)owner = true;
}

static int tear_down(void **state)
{
	bool closed = false;
	(void)state;
	fake_free(test.fake);
	http_core_release(&test.core);
	catalog_close(test.api.catalog, on_closed, &closed);
	pump();
	assert_true(closed);
	store_close(test.store);
	arena_release(&test.arena);
	task_queue_release(&test.loop);
	mem_free(test.answer);
	test.answer = NULL;
	return 0;
}

/* The whole answer, head included. */
static const char *get(const char *path)
{
	char request[300];
	struct buf *out = &test.fake->out;
	buf_clear(out);
	test.fake->sent = 0;
	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost:1\r\n\r\n", path);
	fake_input(test.fake, slice_of(request), SIZE_MAX);
	pump();
	mem_free(test.answer);
	test.answer = mem_copy_text(buf_slice(out));
	return test.answer;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %.3000s", part, text);
}

static void assert_begins(const char *text, const char *part)
{
	assert_memory_equal(text, part, strlen(part));
}

static void test_health(void **state)
{
	(void)state;
	assert_begins(get("/-/healthy"), "HTTP/1.1 200 OK\r\n");
	assert_begins(get("/-/ready"), "HTTP/1.1 503 Service Unavailable\r\n");
	test.api.ready = true;
	assert_begins(get("/-/ready"), "HTTP/1.1 200 OK\r\n");
}

/* Every line is a comment or `name[{labels}] value`; each family has one HELP and one TYPE, and its
 * lines stand together: what the format (Prometheus, exposition formats, text 0.0.4) asks. */
static void test_metrics_are_families(void **state)
{
	char family[200] = "", *line, *rest;
	size_t families = 0, samples = 0;
	(void)state;
	stat_set(STAT_store_file_bytes, 123456789012);
	const char *answer = get("/metrics");
	assert_begins(answer, "HTTP/1.1 200 OK\r\n");
	assert_has(answer, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	assert_has(answer, "\ngranary_store_file_bytes 123456789012\n");
	assert_has(answer, "\ngranary_build_info{version=\"" GRANARY_VERSION "\"} 1\n");
	assert_has(answer, "\nprocess_start_time_seconds 1600000000.000\n");
	rest = strstr(answer, "\r\n\r\n") + 4;
	for (; *rest; rest = line + strlen(line) + 1) {
		line = rest;
		char *end = strchr(line, '\n');
		assert_non_null(end);
		*end = 0;
		if (strncmp(line, "# HELP ", 7) == 0) {
			size_t len = strcspn(line + 7, " ");
			snprintf(family, sizeof(family), "%.*s", (int)len, line + 7);
			assert_true(strlen(line + 7 + len) > 5); /* a sentence */
			families++;
		} else if (strncmp(line, "# TYPE ", 7) == 0) {
			assert_begins(line + 7, family);
		} else {
			assert_begins(line, family);
			assert_non_null(strchr("{ ", line[strlen(family)]));
			assert_true(strrchr(line, ' ')[1] != 0);
			samples++;
		}
	}
	assert_true(families > 20);
	assert_true(samples >= families);
}

/* Their own program for it; exit status 3 are complaints about names. */
static void test_promtool_has_no_complaints(void **state)
{
	struct buf out;
	(void)state;
	if (system("command -v promtool >/dev/null") != 0)
		missing("promtool (package prometheus) is not installed");
	buf_init(&out, 1 << 20);
	self_metrics_text(&out);
	FILE *promtool = popen("promtool check metrics", "w");
	assert_non_null(promtool);
	assert_int_equal(fwrite(out.data, 1, out.len, promtool), out.len);
	assert_int_equal(pclose(promtool), 0);
	buf_release(&out);
}

static void opened(struct catalog_open *open)
{
	*(bool *)open->owner = true;
}

static void written(struct store_write *write, int err)
{
	assert_int_equal(err, 0);
	*(bool *)write->owner = true;
}

static void collect(const char *tenant, const char *metric)
{
	bool done = false, stored = false;
	uint64_t handle;
	struct slice name = slice_of(metric);
	struct tags tags;
	assert_int_equal(tags_decode(SLICE("host=a"), &test.arena, &tags), 0);
	struct catalog_group group = {.tenant = slice_of(tenant),
				      .tags = tags,
				      .metrics = &name,
				      .count = 1,
				      .handles = &handle};
	struct catalog_open open = {.catalog = test.api.catalog,
				    .executor = &test.loop.executor,
				    .done = opened,
				    .owner = &done,
				    .groups = &group,
				    .count = 1};
	assert_int_equal(catalog_open_start(&open), 0);
	pump();
	assert_true(done);
	assert_int_equal(group.err, 0);
	struct store_write *write = store_write_new(test.store, 1 << 20);
	write->executor = &test.loop.executor;
	write->done = written;
	write->owner = &stored;
	assert_int_equal(catalog_open_add_names(&open, write), 0);
	assert_int_equal(store_write_submit(write), 0);
	pump();
	assert_true(stored);
	catalog_open_finish(&open, 0);
	store_write_free(write);
}

static void test_the_page(void **state)
{
	(void)state;
	collect("host", "SystemMetrics.cpu");
	collect("host", "a<b>&\"c'");
	collect("other-tenant", "m");
	test.api.program = "'/a b/granary'";
	stat_set(STAT_store_samples, 21600000);
	stat_set(STAT_store_series, 1234);
	stat_set(STAT_store_commits, 987);
	stat_set(STAT_store_file_bytes, 1500000);
	clock_virtual_advance(&test.clock, (INT64_C(3) * 86400 + 2 * 3600) * 1000000);
	const char *page = get("/");
	assert_begins(page, "HTTP/1.1 200 OK\r\n");
	assert_has(page, "\r\nContent-Type: text/html; charset=utf-8\r\n");
	assert_has(page, "\r\nContent-Security-Policy: default-src 'self';");
	assert_has(page, "21,600,000");
	assert_has(page, "1,234");
	assert_has(page, ">987<");
	assert_has(page, "1.5 MB");
	assert_has(page, "3 d 2 h");
	assert_has(page, GRANARY_VERSION);
	assert_has(page, "<li><code>dryRun</code> (true or false): Only counts the marks.</li>");
	assert_has(page, "<li><code>points</code> (a number from 2 to 1000000): ");
	assert_has(page, "<h3>host <small>2 metrics, the last ten minutes of each</small></h3>");
	assert_has(page, "<h3>other-tenant <small>1 metric, ");
	assert_has(page, ">SystemMetrics.<wbr>cpu</a>");
	assert_has(page, "metricName=a%3Cb%3E%26%22c%27&amp;");
	assert_has(page, ">a&lt;b&gt;&amp;&quot;c&#39;</a>");
	for (size_t i = 0; i < api_route_count; i++) {
		assert_has(page, api_routes[i].path);
		assert_true(api_routes[i].help[strlen(api_routes[i].help) - 1] == '.');
		assert_non_null(api_routes[i].example);
	}
	assert_null(strstr(page, "8470"));
	assert_has(page, "<code>&#39;/a b/granary&#39; verify</code>");
	assert_null(strstr(page, "all metrics"));
	assert_has(page, "&#39;http://localhost:1/write?precision=s&#39;</code>");
	/* What a policy of default-src 'self' would stop. */
	assert_null(strstr(page, "<script"));
	assert_null(strstr(page, "<style"));
	assert_null(strstr(page, "style=\""));
	assert_null(strstr(page, "onclick"));
	assert_begins(get("/style.css"), "HTTP/1.1 200 OK\r\n");
}

static void test_a_page_of_many_metrics_is_cut(void **state)
{
	char name[20];
	(void)state;
	for (int i = 0; i < 51; i++) {
		snprintf(name, sizeof(name), "m%02d", i);
		collect("h", name);
	}
	const char *page = get("/");
	assert_has(page, "<small>the first 50 metrics, ");
	assert_has(page, ">m49</a>");
	assert_null(strstr(page, ">m50</a>"));
	assert_has(page, "<a href=\"/api/metadata/metricNames?tenant=h\">all metrics</a>");
}

static void test_the_page_of_an_empty_store(void **state)
{
	(void)state;
	assert_has(get("/"), "Nothing yet.");
	assert_has(test.answer, "not ready");
	test.api.ready = true;
	assert_null(strstr(get("/"), "not ready"));
}

/* The client goes away while the catalog is being asked. */
static void test_nobody_waits_for_the_page(void **state)
{
	(void)state;
	collect("host", "m");
	fake_input(test.fake, SLICE("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), SIZE_MAX);
	assert_int_equal(test.fake->out.len, 0);
	http_conn_broken(&test.fake->conn);
	pump();
	assert_int_equal(test.fake->out.len, 0);
}

/* The table is what pages, dispatch and checks are made of. */
static void test_the_table_of_routes(void **state)
{
	(void)state;
	for (size_t i = 0; i < api_route_count; i++) {
		const struct http_route *route = &api_routes[i];
		assert_int_equal(route->path[0], '/');
		assert_true(route->verb != VERB_OTHER && route->verb != VERB_HEAD &&
			    route->verb != VERB_OPTIONS);
		/* Only the doors of Sentry's clients are for the pages of other sites. */
		assert_int_equal(route->any_origin, strncmp(route->path, "/api/#/", 7) == 0);
		assert_non_null(route->handler->end);
		assert_true(!route->decoded_max_bytes || route->body_max_bytes);
		for (size_t j = 0; j < i; j++) {
			const struct http_route *other = &api_routes[j];
			if (other->verb != route->verb)
				continue;
			assert_string_not_equal(other->path, route->path);
			/* A prefix must not stand before what it hides. */
			assert_false(other->prefix &&
				     strncmp(route->path, other->path, strlen(other->path)) == 0);
		}
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_health),
		TEST(test_metrics_are_families),
		TEST(test_promtool_has_no_complaints),
		TEST(test_the_page),
		TEST(test_a_page_of_many_metrics_is_cut),
		TEST(test_the_page_of_an_empty_store),
		TEST(test_nobody_waits_for_the_page),
		TEST(test_the_table_of_routes),
	};
#undef TEST
	return cmocka_run_group_tests(tests, NULL, NULL);
}
