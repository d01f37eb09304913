/* A log that is followed over rotations, step by step: what happened between two looks is written
 * down, and so is what the collector has in the end. agent_model.c has many more of these, made at
 * random; those that went wrong once stand here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/agent_private.h"
#include "agent_files.h"
#include "http/coding.h"

#define LOG "/log/app.log"

enum { LOOKS_TO_REST = 40, LOOK_US = 200000 };

struct world {
	struct sim_files sim;
	struct clock_virtual clock;
	struct agent *agent; /* its checkpoints are real, and nobody calls its turns */
	struct followed *followed;
	struct buf sent; /* holes are left out */
	unsigned renamed;
};

static const struct followed_rule rule = {.records.kind = RECORDS_LINES, .rest_ms = 1000};

static void begin_agent(struct world *world)
{
	static const char *const collectors[] = {"one"};
	struct errbuf e = {""};
	world->agent = agent_new(&(struct agent_options){
		.files = &world->sim.files,
		.clock = &world->clock.clock,
		.directory = "/state",
		.source = SLICE("host1"),
		.cluster = SLICE("demo"),
		.collectors = collectors,
		.collector_count = 1,
		.seed = 1,
	});
	assert_int_equal(agent_start(world->agent, &e), 0);
	if (!world->agent->had_checkpoint) {
		world->agent->had_checkpoint = true; /* nobody is asked */
		assert_int_equal(
			agent_add(world->agent, &rule, SLICE("app"), SLICE(LOG), &world->followed),
			0);
	}
	world->followed = world->agent->list[0];
	world->followed->rule = &rule;
}

static int make_world(void **state)
{
	struct world *world = mem_zalloc(sizeof(*world));
	log_set_level(LOG_ERROR);
	clock_virtual_init(&world->clock, 1795953600000000);
	sim_files_init(&world->sim, &world->clock.clock);
	world->sim.has_births = true;
	begin_agent(world);
	buf_init(&world->sent, 1 << 20);
	*state = world;
	return 0;
}

static int free_world(void **state)
{
	struct world *world = *state;
	agent_free(world->agent);
	assert_int_equal(world->sim.open_count, 0);
	sim_files_release(&world->sim);
	buf_release(&world->sent);
	mem_free(world);
	return 0;
}

/* ---- What writers do ------------------------------------------------------------------------- */

static void write_log(struct world *world, const char *text)
{
	struct sim_file *file = sim_find(&world->sim, LOG);
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, file ? file : sim_make(&world->sim, LOG), text, strlen(text));
}

static void empty_log(struct world *world)
{
	clock_virtual_advance(&world->clock, 1000);
	sim_truncate(&world->sim, sim_find(&world->sim, LOG));
}

static void copy_log(struct world *world, const char *to)
{
	const struct sim_file *file = sim_find(&world->sim, LOG);
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, sim_make(&world->sim, to), file->bytes.data, file->bytes.len);
	empty_log(world);
}

static void pack(struct world *world, const char *name, const char *to)
{
	struct gzip *gzip = gzip_new();
	struct buf packed;
	buf_init(&packed, 1 << 20);
	struct slice plain = buf_slice(&sim_find(&world->sim, name)->bytes);
	assert_int_equal(gzip_write(gzip, plain, true, &packed), 0);
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, sim_make(&world->sim, to), packed.data, packed.len);
	sim_unlink(&world->sim, name);
	gzip_free(gzip);
	buf_release(&packed);
}

/* ---- What the agent does --------------------------------------------------------------------- */

/* The collector does not answer: what is found stays in the plan. */
static void look(struct world *world)
{
	clock_virtual_advance(&world->clock, LOOK_US);
	followed_look(world->followed);
	struct errbuf e = {""};
	assert_int_equal(checkpoint_save(world->agent, &e), 0);
}

/* There is another name in the directory whenever it is read, so that nothing is known of it. */
static void rename_something(void *owner)
{
	struct world *world = owner;
	char from[64], to[64];
	snprintf(from, sizeof(from), LOG "-2026%05u", world->renamed);
	snprintf(to, sizeof(to), LOG "-2026%05u", ++world->renamed);
	sim_rename(&world->sim, from, to);
}

static void look_in_vain(struct world *world)
{
	char name[64];
	world->renamed = 90000;
	sim_make(&world->sim, LOG "-202690000");
	world->sim.owner = world;
	world->sim.meanwhile = rename_something;
	look(world);
	world->sim.meanwhile = NULL;
	snprintf(name, sizeof(name), LOG "-2026%05u", world->renamed);
	sim_unlink(&world->sim, name);
}

static bool deliver_one(struct world *world)
{
	struct followed_chunk chunk;
	int64_t wait_ms;
	if (!followed_read(world->followed, &chunk, &wait_ms))
		return false;
	buf_append(&world->sent, chunk.data.data.data, chunk.data.data.len);
	followed_acknowledge(world->followed, &chunk.after);
	return true;
}

static void deliver(struct world *world)
{
	while (deliver_one(world))
		;
}

/* What it knows is what the checkpoint said. More may have been sent. */
static void restart(struct world *world)
{
	agent_free(world->agent);
	begin_agent(world);
}

static void assert_sent(struct world *world, const char *expected)
{
	for (int i = 0; i < LOOKS_TO_REST; i++) {
		look(world);
		deliver(world);
	}
	buf_append_char(&world->sent, 0);
	assert_string_equal(world->sent.data, expected);
}

/* ---- What went wrong ------------------------------------------------------------------------- */

/* The log is emptied, and so a part of it is lost; but its file is still at the path. The lost part
 * waits in the plan, as the hole that it will be, while copies of what came later are made. */
static void a_copy_comes_behind_a_part_that_is_lost(void **state)
{
	struct world *world = *state;
	write_log(world, "first\n");
	look(world);
	copy_log(world, LOG "-20261101");
	write_log(world, "second: lost\n");
	look(world);
	empty_log(world);
	write_log(world, "third\n");
	look(world);
	copy_log(world, LOG "-20261102");
	write_log(world, "fourth\n");
	copy_log(world, LOG "-20261103");
	write_log(world, "fifth\n");
	assert_sent(world, "first\nthird\nfourth\nfifth\n");
	assert_int_equal(world->followed->lost_bytes, strlen("second: lost\n"));
}

/* The same, where the lost part was nothing but the heading that the next contents have, too. */
static void a_heading_that_is_lost_is_not_found_at_the_path(void **state)
{
	struct world *world = *state;
	write_log(world, "first\n");
	look(world);
	copy_log(world, LOG "-20261101");
	write_log(world, "# heading\n");
	look(world);
	empty_log(world);
	write_log(world, "second\n");
	look(world);
	copy_log(world, LOG "-20261102");
	write_log(world, "# heading\nthird\n");
	assert_sent(world, "first\nsecond\n# heading\nthird\n");
}

/* A writer has not noticed yet that its log was renamed. All that its file has is the heading that
 * each file has; what it writes comes later, with no name changed since. */
static void a_renamed_file_with_a_heading_is_no_copy(void **state)
{
	struct world *world = *state;
	write_log(world, "# heading\nfirst\n");
	look(world);
	sim_rename(&world->sim, LOG, LOG "-20261101");
	look(world);
	write_log(world, "# heading\n");
	sim_rename(&world->sim, LOG, LOG "-20261102");
	look(world);
	struct sim_file *late = sim_find(&world->sim, LOG "-20261102");
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, late, "second\n", 7);
	assert_sent(world, "# heading\nfirst\n# heading\nsecond\n");
}

/* But a copy is one while it is made, however short it is yet. */
static void a_short_copy_of_the_log_is_one(void **state)
{
	struct world *world = *state;
	write_log(world, "first\nsecond\n");
	look(world);
	struct sim_file *copy = sim_make(&world->sim, LOG "-20261101");
	sim_append(&world->sim, copy, "first\n", 6);
	look(world);
	deliver(world);
	sim_append(&world->sim, copy, "second\n", 7);
	look(world);
	empty_log(world);
	write_log(world, "third\n");
	assert_sent(world, "first\nsecond\nthird\n");
}

/* Lines of one length, filled up: the last bytes of two files are the same, but not their first. */
static void a_file_that_ends_as_another_one_is_no_copy(void **state)
{
	struct world *world = *state;
	char lines[2][2 * CONTENT_MARK_MAX_BYTES + 1], expected[2 * sizeof(lines)];
	for (size_t i = 0; i < 2; i++) {
		memset(lines[i], ' ', sizeof(lines[i]));
		lines[i][0] = (char)('1' + i);
		memcpy(&lines[i][sizeof(lines[i]) - 2], "\n", 2);
	}
	write_log(world, lines[0]);
	look(world);
	sim_rename(&world->sim, LOG, LOG "-20261101");
	write_log(world, lines[1]);
	sim_rename(&world->sim, LOG, LOG "-20261102");
	write_log(world, "third\n");
	snprintf(expected, sizeof(expected), "%s%sthird\n", lines[0], lines[1]);
	assert_sent(world, expected);
}

/* A file with nothing but a heading is delivered. Another one with the same heading was packed
 * before it was found: it does not go on where the first one ended. */
static void a_packed_file_with_the_same_heading_is_another_one(void **state)
{
	struct world *world = *state;
	write_log(world, "# heading\n");
	look(world);
	sim_rename(&world->sim, LOG, LOG "-20261101");
	write_log(world, "# heading\nsecond\n");
	look(world);
	deliver(world);
	sim_rename(&world->sim, LOG, LOG "-20261102");
	write_log(world, "# heading\nthird\n");
	sim_rename(&world->sim, LOG, LOG "-20261103");
	pack(world, LOG "-20261103", LOG "-20261103.gz");
	write_log(world, "# heading\nfourth\n");
	assert_sent(world, "# heading\n# heading\nsecond\n# heading\nthird\n# heading\nfourth\n");
}

/* Two files are gone after a restart. How long the first one was is known; the second one may have
 * been sent further than the checkpoint says, so nothing else may come at its offsets. */
static void what_is_lost_behind_a_known_end_may_have_been_sent(void **state)
{
	struct world *world = *state;
	write_log(world, "first\n");
	look(world);
	sim_rename(&world->sim, LOG, LOG "-20261101");
	write_log(world, "second\n");
	look(world);
	uint64_t incarnation = world->followed->incarnation;
	restart(world);
	sim_unlink(&world->sim, LOG "-20261101");
	sim_unlink(&world->sim, LOG);
	write_log(world, "third\n");
	assert_sent(world, "third\n");
	assert_int_equal(world->followed->lost_bytes, strlen("first\nsecond\n"));
	assert_true(world->followed->incarnation != incarnation);
}

/* A log is copied and emptied twice while no agent is there. The next one sees what the log has,
 * and not yet what is beside it, before it is killed, too: nothing of that was sent, so the one
 * after it puts the copy in front. */
static void a_copy_comes_in_front_of_what_was_not_sent(void **state)
{
	struct world *world = *state;
	write_log(world, "first\n");
	look(world);
	sim_rename(&world->sim, LOG, LOG "-20261101");
	sim_make(&world->sim, LOG);
	look(world);
	write_log(world, "second\n");
	copy_log(world, LOG "-20261102");
	write_log(world, "third\n");
	restart(world);
	look_in_vain(world);
	restart(world);
	assert_sent(world, "first\nsecond\nthird\n");
}

/* A line that came late to a renamed file waits, since the line behind it may have been sent before
 * a kill. It waits on after the next kill, while no name changes. */
static void what_waits_to_be_put_in_front_waits_after_a_restart(void **state)
{
	struct world *world = *state;
	write_log(world, "first\n");
	look(world);
	sim_rename(&world->sim, LOG, LOG "-20261101");
	write_log(world, "second\n");
	look(world);
	deliver(world);
	look(world);
	restart(world);
	write_log(world, "third\n");
	struct sim_file *late = sim_find(&world->sim, LOG "-20261101");
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, late, "late\n", 5);
	sim_rename(&world->sim, LOG, LOG "-20261102");
	write_log(world, "fourth\n");
	look(world);
	deliver_one(world);
	look(world);
	restart(world);
	assert_sent(world, "first\nsecond\nthird\nfourth\nlate\n");
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, make_world, free_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_copy_comes_behind_a_part_that_is_lost),
		IN_WORLD(a_heading_that_is_lost_is_not_found_at_the_path),
		IN_WORLD(a_renamed_file_with_a_heading_is_no_copy),
		IN_WORLD(a_short_copy_of_the_log_is_one),
		IN_WORLD(a_file_that_ends_as_another_one_is_no_copy),
		IN_WORLD(a_packed_file_with_the_same_heading_is_another_one),
		IN_WORLD(what_is_lost_behind_a_known_end_may_have_been_sent),
		IN_WORLD(a_copy_comes_in_front_of_what_was_not_sent),
		IN_WORLD(what_waits_to_be_put_in_front_waits_after_a_restart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
