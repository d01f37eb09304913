/* What an agent and a collector say to each other beside chunks: where a log goes on that no
 * checkpoint knows (ask.c), and how the logs are followed (report.c). Files, clock and collectors
 * are simulated. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/adaptors.h"
#include "agent/agent_private.h"
#include "agent_files.h"

#define LOG         "/log/app.log"
#define INCARNATION "00c1d2e3f4a5b6c7"

enum { LINE_BYTES = 10, LINES = 40, HELD_TO = 300, HELD_FROM = 200 };

struct world {
	struct sim_files sim;
	struct clock_virtual clock;
	struct agent_net net;
	struct agent *agent;
	bool first_is_down;
	long report_status;
	size_t reports[2]; /* that each collector was sent */
	uint64_t begin, incarnation;
};

/* Of 100 ranges that are listed none is the last one. */
static void answer_list(struct buf *answer)
{
	buf_append_text(answer, "{\"streams\":[{\"datatype\":\"app\",\"name\":\"" LOG
				"\",\"incarnation\":\"" INCARNATION "\",\"made\":1,\"held\":[");
	for (int i = 0; i < 100; i++)
		buf_printf(answer, "%s[%d,%d]", i ? "," : "", 2 * i, 2 * i + 1);
	buf_printf(answer, "],\"sealed\":[],\"more_ranges\":true,\"held_to\":%d}]}", HELD_TO);
}

/* Takes all that is held from there on. */
static void answer_post(struct world *world, struct slice body, struct buf *answer)
{
	struct chunk_frame frame;
	const char *why;
	assert_int_equal(chunk_frame_next(&body, &frame, &why), CHUNK_FOUND);
	world->begin = chunk_begin(&frame.fields);
	world->incarnation = frame.fields.incarnation;
	buf_printf(answer,
		   "ok: %u bytes ending at offset %" PRIu64 "\nheld: %" PRIu64 " to %" PRIu64
		   " of %016" PRIx64 "\n",
		   frame.fields.data_bytes, frame.fields.sequence_id - 1, world->begin,
		   frame.fields.sequence_id, frame.fields.incarnation);
}

static int answer(struct agent_net *net, const char *collector, struct http_call *call,
		  struct errbuf *e)
{
	struct world *world = CONTAINER_OF(net, struct world, net);
	bool is_second = strcmp(collector, "two") == 0;
	struct buf text;
	if (strcmp(call->path, "/api/agents/web1/report") == 0) {
		world->reports[is_second]++;
		call->status = world->report_status;
		return 0;
	}
	if (world->first_is_down && !is_second)
		return errbuf_set(e, ERR_TIMEOUT, "no answer");
	buf_init(&text, 1 << 20);
	if (call->body.data) {
		answer_post(world, call->body, &text);
	} else if (strstr(call->path, "/export?")) {
		assert_non_null(strstr(call->path, "from=0&to=300"));
		buf_append(&text, sim_find(&world->sim, LOG)->bytes.data + HELD_FROM,
			   HELD_TO - HELD_FROM);
		call->offset = HELD_FROM;
	} else {
		answer_list(&text);
	}
	call->status = 200;
	assert_true(call->take(call->owner, 200, buf_slice(&text)));
	buf_release(&text);
	return 0;
}

static struct adaptors *make_adaptors(void)
{
	struct adaptors *adaptors = adaptors_new();
	adaptors->list = arena_zalloc(&adaptors->arena, sizeof(*adaptors->list));
	adaptors->count = 1;
	*adaptors->list = (struct adaptor){
		.kind = ADAPTOR_TAIL,
		.name = SLICE("app"),
		.datatype = SLICE("app"),
		.path = SLICE(LOG),
		.rule = {.records.kind = RECORDS_LINES, .rest_ms = 1000},
	};
	return adaptors;
}

static void write_lines(struct world *world, int count)
{
	struct sim_file *file = sim_find(&world->sim, LOG);
	char line[LINE_BYTES + 1];
	for (int i = 0; i < count; i++) {
		snprintf(line, sizeof(line), "line %04d\n", i);
		sim_append(&world->sim, file, line, LINE_BYTES);
	}
}

static int make_world(void **state)
{
	static const char *const collectors[] = {"one", "two"};
	struct world *world = mem_zalloc(sizeof(*world));
	struct adaptors *adaptors = make_adaptors();
	log_set_level(LOG_ERROR);
	clock_virtual_init(&world->clock, 1795953600000000);
	sim_files_init(&world->sim, &world->clock.clock);
	sim_make(&world->sim, LOG);
	write_lines(world, LINES);
	world->net.call = answer;
	world->report_status = 204;
	world->agent = agent_new(&(struct agent_options){
		.files = &world->sim.files,
		.clock = &world->clock.clock,
		.net = &world->net,
		.directory = "/state",
		.source = SLICE("host1"),
		.cluster = SLICE("demo"),
		.name = SLICE("web1"),
		.collectors = collectors,
		.collector_count = ARRAY_LEN(collectors),
		.open_max = 20,
		.seed = 1,
	});
	agent_configure(world->agent, &adaptors);
	*state = world;
	return 0;
}

static int free_world(void **state)
{
	struct world *world = *state;
	agent_free(world->agent);
	sim_files_release(&world->sim);
	mem_free(world);
	return 0;
}

static void run(struct world *world, int64_t ms)
{
	int64_t end_ms = clock_mono_ms(&world->clock.clock) + ms;
	for (;;) {
		int64_t left_ms = end_ms - clock_mono_ms(&world->clock.clock);
		int64_t wait_ms = larger_of(1, agent_turn(world->agent));
		if (wait_ms >= left_ms)
			return clock_virtual_advance(&world->clock, left_ms * 1000);
		clock_virtual_advance(&world->clock, wait_ms * 1000);
	}
}

static void a_log_goes_on_behind_the_last_of_many_ranges(void **state)
{
	struct world *world = *state;
	run(world, 1000);
	assert_int_equal(world->begin, HELD_TO);
	assert_true(world->incarnation == UINT64_C(0x00c1d2e3f4a5b6c7));
	assert_int_equal(world->agent->list[0]->offset, LINES * LINE_BYTES);
}

/* One report in five seconds. A collector that knows no reports gets one in ten minutes. */
static void a_collector_without_reports_is_left_alone(void **state)
{
	struct world *world = *state;
	run(world, 9999);
	assert_int_equal(world->reports[0], 2);
	world->report_status = 404;
	run(world, 600000);
	assert_int_equal(world->reports[0], 3);
	run(world, 600000);
	assert_int_equal(world->reports[0], 4);
	/* Another collector is told at once that the agent is its own now. */
	world->report_status = 204;
	world->first_is_down = true;
	write_lines(world, 1);
	agent_notice(world->agent, "/log", "app.log");
	run(world, 9999);
	assert_int_equal(world->reports[0], 4);
	assert_int_equal(world->reports[1], 2);
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, make_world, free_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_log_goes_on_behind_the_last_of_many_ranges),
		IN_WORLD(a_collector_without_reports_is_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
