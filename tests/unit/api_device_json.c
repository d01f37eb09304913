/* What a list of devices says of those that are polled elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "api/admin/inventory_json.h"
#include "base/buf.h"
#include "conf/conf.h"
#include "inventory/private.h"

#define NOW_MS INT64_C(1600000000000) /* 2020-09-13T12:26:40Z */

static void check(const struct device *device, int64_t heard_ms, const char *state,
		  const char *reason, const char *since)
{
	struct json_writer writer;
	struct arena arena;
	struct json *root;
	struct slice text;
	struct buf body;
	arena_init(&arena, 1 << 20);
	buf_init(&body, 1 << 20);
	json_writer_init(&writer, &body);
	device_json(device, true, heard_ms, NOW_MS, &writer);
	assert_int_equal(json_parse(buf_slice(&body), &arena, &root, NULL), 0);
	assert_int_equal(json_get_text(root, "state", &text, NULL), 0);
	assert_true(slice_equal(text, slice_of(state)));
	assert_int_equal(json_get_text(root, "reason", &text, NULL), 0);
	assert_true(slice_equal(text, slice_of(reason)));
	if (json_get_text(root, "since", &text, NULL))
		text = SLICE("");
	assert_true(slice_equal(text, slice_of(since)));
	buf_release(&body);
	arena_release(&arena);
}

static void a_poller_that_is_silent_is_the_reason(UNUSED void **state)
{
	struct conf *conf = conf_new();
	struct inventory_conf *sets;
	struct errbuf e;
	assert_int_equal(inventory_conf_read(conf, files_real(), &sets, &e), 0);
	struct device_spec spec = device_spec_preset();
	spec.name = SLICE("a");
	spec.credentials = SLICE("theirs");
	spec.begin_ms = 1;
	spec.poller = SLICE("site");
	struct device *d = device_new(&spec, SLICE("h"), 161, sets, NULL);
	check(d, 0, "waiting", "its poller has not been heard of", "");
	check(d, NOW_MS, "waiting", "", "");
	const struct device_status failing = {.failing_since_ms = NOW_MS - 60000,
					      .error = "no answer"};
	device_state_set(d->state, &failing);
	check(d, NOW_MS - 30000, "failing", "no answer", "2020-09-13T12:25:40Z");
	/* What it said last is old. */
	check(d, NOW_MS - 30001, "failing", "its poller is not heard of any more",
	      "2020-09-13T12:26:09.999Z");
	const struct device_status ok = {.last_success_ms = NOW_MS};
	device_state_set(d->state, &ok);
	check(d, NOW_MS, "ok", "", "");
	check(d, NOW_MS - 30001, "failing", "its poller is not heard of any more",
	      "2020-09-13T12:26:09.999Z");
	device_release(d);
	/* The server's own does not need to be heard of. */
	spec.poller = SLICE("");
	spec.credentials = SLICE("public");
	d = device_new(&spec, SLICE("h"), 161, sets, NULL);
	check(d, 0, "waiting", "", "");
	device_state_set(d->state, &ok);
	check(d, 0, "ok", "", "");
	device_release(d);
	inventory_conf_release(sets);
	conf_free(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poller_that_is_silent_is_the_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
