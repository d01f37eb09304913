/* A log that is renamed, or copied and emptied, between any two operations of the agent on files:
 * each case is gone through once for each of them, until there is no further one. */
#include "agent_followed_world.h"

enum { STEPS_MIN = 20 }; /* a look that makes fewer is none */

static const struct followed_rule rule_from_end = {
	.records.kind = RECORDS_LINES, .rest_ms = 1000, .from_end = true};

static struct world *begin_world(void)
{
	void *made;
	make_world(&made);
	return made;
}

static void end_world(struct world *world)
{
	void *made = world;
	free_world(&made);
}

static void rotate(struct world *world)
{
	rename_log(world, LOG "-20261101");
	write_log(world, "second\n");
}

/* What is there at the first look is not sent. So the second file is sent, or was there, too, and
 * never the first one. */
static void a_log_is_rotated_while_it_is_begun_at_its_end(UNUSED void **state)
{
	unsigned step = 0, sent_count = 0;
	for (bool acted = true; acted;) {
		struct world *world = begin_world();
		world->followed->rule = world->rule = &rule_from_end;
		write_log(world, "first\n");
		act_at(world, ++step, rotate);
		look(world);
		acted = has_acted(world);
		look(world);
		rename_log(world, LOG "-20261102");
		write_log(world, "third\n");
		const char *sent = all_sent(world);
		bool is_sent = *sent == 's';
		sent_count += acted && is_sent;
		assert_string_equal(sent, is_sent ? "second\nthird\n" : "third\n");
		end_world(world);
	}
	assert_true(step > STEPS_MIN);
	assert_in_range(sent_count, 1, step - 2); /* it was there at times */
}

static void write_and_copy(struct world *world)
{
	write_log(world, "second\n");
	copy_log(world, LOG "-20261102");
}

/* A line is written to an empty log, which is copied and emptied again. What the log has now was
 * seen before or after that; the copy is found in any case. */
static void a_log_is_copied_and_emptied_while_it_is_looked_for(UNUSED void **state)
{
	unsigned step = 0;
	for (bool acted = true; acted;) {
		struct world *world = begin_world();
		write_log(world, "first\n");
		look(world);
		deliver(world);
		copy_log(world, LOG "-20261101");
		restart(world);
		act_at(world, ++step, write_and_copy);
		look(world);
		look(world);
		acted = has_acted(world);
		assert_sent(world, acted ? "first\nsecond\n" : "first\n");
		end_world(world);
	}
	assert_true(step > STEPS_MIN);
}

/* The copy has the beginning of the log, or its name alone. */
static void finish_copy_and_begin(struct world *world, const char *text)
{
	const struct sim_file *log = sim_find(&world->sim, LOG);
	struct sim_file *copy = sim_find(&world->sim, LOG "-20261101");
	size_t had = copy->bytes.len;
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, copy, log->bytes.data + had, log->bytes.len - had);
	empty_log(world);
	write_log(world, text);
}

static void begin_longer(struct world *world)
{
	finish_copy_and_begin(world, "# heading\nthe third\n");
}

static void begin_shorter(struct world *world)
{
	finish_copy_and_begin(world, "# heading\n");
}

static void assert_copied_alike(bool births, const char *copied)
{
	unsigned step = 0;
	for (bool acted = true; acted;) {
		struct world *world = begin_world();
		world->sim.has_births = births;
		write_log(world, "# heading\n");
		look(world);
		deliver(world);
		struct sim_file *copy = sim_make(&world->sim, LOG "-20261101");
		sim_append(&world->sim, copy, copied, strlen(copied));
		look(world);
		write_log(world, "second\n");
		act_at(world, ++step, begin_longer);
		look(world);
		deliver(world);
		look(world);
		deliver(world);
		acted = has_acted(world);
		assert_sent(world, acted ? "# heading\nsecond\n# heading\nthe third\n"
					 : "# heading\nsecond\n");
		end_world(world);
	}
	assert_true(step > STEPS_MIN);
}

/* A copy is finished, and the log emptied and begun with its heading, during looks and what is
 * read after them. */
static void a_log_is_copied_and_begins_alike(UNUSED void **state)
{
	for (int births = 0; births < 2; births++) {
		assert_copied_alike(births, "");
		assert_copied_alike(births, "# hea");
	}
}

/* The same of a log that is shorter then than when the names were read. */
static void a_log_begins_shorter_while_it_is_looked_for(UNUSED void **state)
{
	enum { STEPS = 16 }; /* in front of the one that measures the log */
	for (unsigned step = 1; step <= STEPS; step++) {
		struct world *world = begin_world();
		write_log(world, "# heading\n");
		look(world);
		deliver(world);
		look(world);
		sim_append(&world->sim, sim_make(&world->sim, LOG "-20261101"), "# hea", 5);
		look(world);
		write_log(world, "second\n");
		act_at(world, step, begin_shorter);
		look(world);
		assert_true(has_acted(world));
		assert_sent(world, "# heading\nsecond\n# heading\n");
		end_world(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_is_rotated_while_it_is_begun_at_its_end),
		cmocka_unit_test(a_log_is_copied_and_emptied_while_it_is_looked_for),
		cmocka_unit_test(a_log_is_copied_and_begins_alike),
		cmocka_unit_test(a_log_begins_shorter_while_it_is_looked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
