/* A log that is followed over rotations: what happened between two looks is written down, and so is
 * what the collector has in the end. agent_model.c has many more of these, made at random; those
 * that went wrong once stand here. In agent_followed_steps.c somebody acts in the middle of a look.
 */
#include "agent_followed_world.h"

/* The file begins so that six bytes of it have an offset. */
static const struct followed_rule rule_at_the_end = {.records.kind = RECORDS_LINES,
						     .rest_ms = 1000,
						     .from = INT64_MAX - 6,
						     .first = INT64_MAX - 6};

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

/* The log was packed while no agent was there. Its heading was delivered, and it has nothing more,
 * as a file before it had. It is not taken for that one, nor looked for in a younger file with the
 * heading, which would come before its turn. */
static void a_packed_heading_is_known_by_its_time(void **state)
{
	struct world *world = *state;
	for (int i = 0; i < 2; i++) {
		rename_log(world, LOG "-20261101");
		write_log(world, "# heading\n");
		look(world);
		deliver(world);
	}
	look(world);
	restart(world);
	rename_log(world, LOG "-20261102");
	pack(world, LOG "-20261102", LOG "-20261102.gz");
	write_log(world, "second\n");
	rename_log(world, LOG "-20261103");
	write_log(world, "# heading\nthird\n");
	rename_log(world, LOG "-20261104");
	write_log(world, "fourth\n");
	assert_sent(world, "# heading\n# heading\nsecond\n# heading\nthird\nfourth\n");
}

/* The log was begun with its heading at the time of the last line of the file before it. Both are
 * packed while no agent is there: the log is not looked for in the one before. */
static void a_packed_file_with_the_time_of_a_heading_is_the_one_before(void **state)
{
	struct world *world = *state;
	write_log(world, "# heading\nfirst\n");
	look(world);
	deliver(world);
	struct sim_file *before = sim_find(&world->sim, LOG);
	write_log(world, "second\n");
	sim_rename(&world->sim, LOG, LOG "-20261101");
	struct sim_file *log = sim_make(&world->sim, LOG);
	sim_append(&world->sim, log, "# heading\n", 10);
	assert_int_equal(log->changed_ns, before->changed_ns);
	for (int i = 0; i < 3; i++) {
		look(world);
		deliver(world);
	}
	restart(world);
	write_log(world, "third\n");
	rename_log(world, LOG "-20261102");
	pack(world, LOG "-20261101", LOG "-20261101.gz");
	pack(world, LOG "-20261102", LOG "-20261102.gz");
	assert_sent(world, "# heading\nfirst\nsecond\n# heading\nthird\n");
}

/* The copy is empty when the agent sees it. It is no renamed log that is written late. */
static void a_copy_is_empty_at_first(void **state)
{
	struct world *world = *state;
	world->sim.has_births = true;
	write_log(world, "first\n");
	look(world);
	deliver(world);
	struct sim_file *copy = sim_make(&world->sim, LOG "-20261101");
	write_log(world, "second\n");
	look(world);
	deliver(world);
	const struct sim_file *log = sim_find(&world->sim, LOG);
	sim_append(&world->sim, copy, log->bytes.data, log->bytes.len);
	empty_log(world);
	write_log(world, "third\n");
	assert_sent(world, "first\nsecond\nthird\n");
}

/* Whoever packs a file that was renamed has read it before its last line came, which the agent has.
 * The packed file is not sent again as another one. */
static void a_line_comes_while_its_file_is_packed(void **state)
{
	struct world *world = *state;
	char text[1500], expected[1600];
	memset(text, 'x', sizeof(text));
	text[1498] = '\n';
	text[1499] = 0;
	write_log(world, text);
	look(world);
	deliver(world);
	rename_log(world, LOG "-20261101");
	write_log(world, "second\n");
	look(world);
	deliver(world);
	struct sim_file *renamed = sim_find(&world->sim, LOG "-20261101");
	sim_append(&world->sim, sim_make(&world->sim, "/other/plain"), renamed->bytes.data,
		   renamed->bytes.len);
	pack(world, "/other/plain", "/other/packed");
	sim_append(&world->sim, renamed, "late\n", 5);
	look(world);
	deliver(world);
	sim_unlink(&world->sim, LOG "-20261101");
	sim_rename(&world->sim, "/other/packed", LOG "-20261101.gz");
	rename_log(world, LOG "-20261102");
	write_log(world, "third\n");
	snprintf(expected, sizeof(expected), "%ssecond\nlate\nthird\n", text);
	assert_sent(world, expected);
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

/* After a restart a line comes late to a delivered file, and the log is renamed again. All is sent
 * by then, though the plan has another file: the new log, which is empty. */
static void what_comes_late_does_not_wait_for_an_empty_log(void **state)
{
	struct world *world = *state;
	write_log(world, "first\n");
	look(world);
	deliver(world);
	rename_log(world, LOG "-20261101");
	write_log(world, "second\n");
	look(world);
	deliver(world);
	look(world);
	restart(world);
	rename_log(world, LOG "-20261102");
	sim_make(&world->sim, LOG);
	sim_append(&world->sim, sim_find(&world->sim, LOG "-20261101"), "late\n", 5);
	assert_sent(world, "first\nsecond\nlate\n");
}

/* What is known of a file is its first three bytes. It grew, was copied and emptied, and begins
 * again with these bytes; at first it cannot be read. */
static void a_short_file_is_looked_for_in_its_copy(void **state)
{
	struct world *world = *state;
	write_log(world, "log");
	look(world);
	look(world); /* both files of the checkpoint are there: no names change by them */
	restart(world);
	write_log(world, " one\n");
	copy_log(world, LOG "-20261101");
	write_log(world, "log two\n");
	sim_find(&world->sim, LOG)->unreadable = true;
	look(world);
	sim_find(&world->sim, LOG)->unreadable = false;
	assert_sent(world, "log one\nlog two\n");
}

/* But while the copy has nothing that the file at the path has not, that file was not emptied. */
static void a_short_file_that_was_copied_is_not_emptied_yet(void **state)
{
	struct world *world = *state;
	write_log(world, "log");
	look(world);
	restart(world);
	write_log(world, " one\n");
	struct sim_file *copy = sim_make(&world->sim, LOG "-20261101");
	sim_append(&world->sim, copy, "log one\n", 8);
	write_log(world, "two\n");
	look(world);
	deliver(world);
	sim_append(&world->sim, copy, "two\n", 4);
	empty_log(world);
	write_log(world, "three\n");
	assert_sent(world, "log one\ntwo\nthree\n");
}

/* The file is gone, and nothing is known of it but its heading. Another one has it, too, and is
 * being copied: the copy is not what is gone. */
static void a_copy_that_is_being_made_is_none_of_a_file_that_is_gone(void **state)
{
	struct world *world = *state;
	write_log(world, "# heading\n");
	look(world);
	restart(world);
	sim_unlink(&world->sim, LOG);
	write_log(world, "# heading\nfirst\n");
	struct sim_file *copy = sim_make(&world->sim, LOG "-20261101");
	sim_append(&world->sim, copy, "# heading\nfi", 12);
	for (int i = 0; i < 10; i++) { /* what is gone is looked for for a while */
		look(world);
		deliver(world);
	}
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, copy, "rst\n", 4);
	empty_log(world);
	write_log(world, "second\n");
	assert_sent(world, "# heading\nfirst\nsecond\n");
	assert_int_equal(world->followed->lost_bytes, strlen("# heading\n"));
}

/* The first content was nothing but the heading, and so was its copy. The second one, with the same
 * heading, was sent further than the checkpoint says, and is in a copy, too, by now. */
static void a_copy_of_a_heading_is_none_of_what_came_later(void **state)
{
	struct world *world = *state;
	write_log(world, "# heading\n");
	look(world);
	deliver(world);
	sim_append(&world->sim, sim_make(&world->sim, LOG "-20261101"), "# heading\n", 10);
	look(world);
	empty_log(world);
	write_log(world, "# heading\n");
	look(world);
	write_log(world, "second\n");
	deliver(world);
	copy_log(world, LOG "-20261102");
	write_log(world, "third\n");
	restart(world);
	assert_sent(world, "# heading\nsecond\nthird\n");
}

/* The copy was begun when the log was looked at last. It was finished since, the log was emptied,
 * and has the same heading again: no name has changed. */
static void a_copy_is_finished_between_two_looks(void **state)
{
	struct world *world = *state;
	write_log(world, "# heading\n");
	look(world);
	deliver(world);
	look(world); /* both files of the checkpoint are there: no names change by them */
	struct sim_file *copy = sim_make(&world->sim, LOG "-20261101");
	sim_append(&world->sim, copy, "# head", 6);
	write_log(world, "one\n");
	look(world);
	deliver(world);
	look(world);
	write_log(world, "two\n");
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, copy, "ing\none\ntwo\n", 12);
	empty_log(world);
	write_log(world, "# heading\none\n");
	assert_sent(world, "# heading\none\ntwo\n# heading\none\n");
}

/* The first bytes of a line were lost, and are the first ones of a younger file, too. */
static void what_is_lost_is_not_found_in_what_comes_later(void **state)
{
	struct world *world = *state;
	write_log(world, "first\n");
	look(world);
	rename_log(world, LOG "-20261101");
	write_log(world, "log");
	look(world);
	empty_log(world);
	write_log(world, "second\n");
	look(world);
	rename_log(world, LOG "-20261102");
	write_log(world, "log third\n");
	rename_log(world, LOG "-20261103");
	write_log(world, "fourth\n");
	assert_sent(world, "first\nsecond\nlog third\nfourth\n");
}

/* A line came to a renamed file with the heading of the log. It is older than the log, and so no
 * copy of it. */
static void a_renamed_file_that_grows_is_no_copy_of_a_heading(void **state)
{
	struct world *world = *state;
	write_log(world, "# heading\nfirst\n");
	look(world);
	rename_log(world, LOG "-20261101");
	write_log(world, "# heading\n");
	look(world);
	deliver(world);
	look(world);
	restart(world);
	struct sim_file *late = sim_find(&world->sim, LOG "-20261101");
	write_log(world, "second\n");
	sim_append(&world->sim, late, "late\n", 5);
	assert_sent(world, "# heading\nfirst\n# heading\nsecond\nlate\n");
}

/* Births of files are not known. A delivered file was removed; a packed one has got its inode, and
 * is as long as that one was. */
static void a_packed_file_with_the_inode_of_a_delivered_one_is_another(void **state)
{
	struct world *world = *state;
	char first[100], expected[sizeof(first) + 20];
	world->sim.has_births = false;
	sim_append(&world->sim, sim_make(&world->sim, "/other/plain"), "second\n", 7);
	pack(world, "/other/plain", "/other/packed");
	size_t len = sim_find(&world->sim, "/other/packed")->bytes.len;
	assert_in_range(len, 2, sizeof(first) - 1);
	memset(first, '1', len);
	memcpy(first + len - 1, "\n", 2);
	write_log(world, first);
	uint64_t inode = sim_find(&world->sim, LOG)->id.inode;
	look(world);
	deliver(world);
	rename_log(world, LOG "-20261101");
	write_log(world, "second\n");
	look(world);
	restart(world); /* it is open no more */
	sim_unlink(&world->sim, LOG "-20261101");
	rename_log(world, LOG "-20261102");
	pack(world, LOG "-20261102", LOG "-20261102.gz");
	assert_int_equal(sim_find(&world->sim, LOG "-20261102.gz")->id.inode, inode);
	write_log(world, "third\n");
	snprintf(expected, sizeof(expected), "%ssecond\nthird\n", first);
	assert_sent(world, expected);
}

/* A rotated file could not be read when the log was begun, so that only its time and length are
 * known. Packed, it is a new file with that time. */
static void a_file_that_could_not_be_read_is_known_when_it_is_packed(void **state)
{
	struct world *world = *state;
	write_log(world, "of before\n");
	rename_log(world, LOG "-20261101");
	sim_find(&world->sim, LOG "-20261101")->unreadable = true;
	write_log(world, "first\n");
	look(world);
	deliver(world);
	pack(world, LOG "-20261101", LOG "-20261101.gz");
	rename_log(world, LOG "-20261102");
	write_log(world, "second\n");
	assert_sent(world, "first\nsecond\n");
}

/* Nothing waits for a packed file that stays damaged. It is counted once. */
static void a_damaged_packed_file_is_passed_over(void **state)
{
	struct world *world = *state;
	int64_t before = stat_get(STAT_agent_damaged_files);
	write_log(world, "first\n");
	look(world);
	deliver(world);
	sim_append(&world->sim, sim_make(&world->sim, LOG "-20261031.gz"), "\x1f\x8b\x08", 3);
	rename_log(world, LOG "-20261101");
	write_log(world, "second\n");
	look(world); /* it may not be written whole yet */
	assert_false(deliver_one(world));
	clock_virtual_advance(&world->clock, FOLLOWED_STILL_MS * INT64_C(1000));
	look(world);
	deliver(world);
	restart(world);
	rename_log(world, LOG "-20261102");
	write_log(world, "third\n");
	assert_sent(world, "first\nsecond\nthird\n");
	assert_int_equal(stat_get(STAT_agent_damaged_files) - before, 1);
}

/* A line comes to an empty log between looking and reading. The log is copied and emptied before it
 * is looked at again, and its copy is not sent a second time. */
static void what_comes_to_an_empty_log_is_looked_at_first(void **state)
{
	struct world *world = *state;
	sim_make(&world->sim, LOG);
	look(world);
	write_log(world, "first\n");
	assert_false(deliver_one(world));
	copy_log(world, LOG "-20261101");
	write_log(world, "second\n");
	assert_sent(world, "first\nsecond\n");
}

/* The log was empty when it was looked at last. Since then it was copied, emptied, and removed;
 * what the open file has is younger than the copy. */
static void a_removed_file_comes_behind_its_copy(void **state)
{
	struct world *world = *state;
	sim_make(&world->sim, LOG);
	look(world);
	write_log(world, "first\n");
	copy_log(world, LOG "-20261101");
	write_log(world, "second\n");
	sim_unlink(&world->sim, LOG);
	write_log(world, "third\n");
	assert_sent(world, "first\nsecond\nthird\n");
}

/* A writer has not noticed that its log was renamed before anybody followed it. */
static void a_line_comes_late_to_a_file_of_before(void **state)
{
	struct world *world = *state;
	write_log(world, "of before\n");
	rename_log(world, LOG "-20261101");
	sim_make(&world->sim, LOG);
	look(world);
	look(world); /* both files of the checkpoint are there: no names change by them */
	write_log(world, "first\n");
	look(world);
	deliver(world);
	sim_append(&world->sim, sim_find(&world->sim, LOG "-20261101"), "second\n", 7);
	write_log(world, "third\n");
	assert_sent(world, "first\nsecond\nthird\n");
}

/* But a copy of the log that is being made when it is begun is no such file. */
static void a_log_is_begun_while_it_is_copied(void **state)
{
	struct world *world = *state;
	write_log(world, "first\nsecond\n");
	struct sim_file *copy = sim_make(&world->sim, LOG "-20261101");
	sim_append(&world->sim, copy, "first\n", 6);
	look(world);
	deliver(world);
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, copy, "second\n", 7);
	empty_log(world);
	write_log(world, "third\n");
	assert_sent(world, "first\nsecond\nthird\n");
}

/* Files that wait are removed while no agent is there. They are given up together, not one after
 * the other. */
static void files_that_are_gone_are_given_up_together(void **state)
{
	struct world *world = *state;
	char name[64];
	for (int i = 1; i <= 8; i++) {
		write_log(world, "a line\n");
		look(world);
		snprintf(name, sizeof(name), LOG "-2026110%d", i);
		rename_log(world, name);
	}
	write_log(world, "the last\n");
	look(world);
	restart(world);
	for (int i = 1; i <= 8; i++) {
		snprintf(name, sizeof(name), LOG "-2026110%d", i);
		sim_unlink(&world->sim, name);
	}
	look(world);
	assert_int_equal(world->followed->plan_count, 9);
	clock_virtual_advance(&world->clock, 1000000);
	look(world);
	look(world);
	assert_int_equal(world->followed->plan_count, 1);
	assert_true(world->followed->offset == 8 * 7);
	assert_int_equal(world->followed->lost_bytes, 8 * 7);
	assert_sent(world, "the last\n");
}

/* While the agent is away, two files go, and a third one that begins alike is packed. Its heading
 * is taken for the first file; its lines are sent, too. */
static void a_packed_file_begins_as_one_did_that_is_gone(void **state)
{
	struct world *world = *state;
	write_log(world, "# heading\n");
	look(world);
	rename_log(world, LOG "-20261101");
	write_log(world, "# heading\nsecond\n");
	look(world);
	rename_log(world, LOG "-20261102");
	sim_unlink(&world->sim, LOG "-20261101");
	sim_unlink(&world->sim, LOG "-20261102");
	write_log(world, "# heading\nthird\n");
	rename_log(world, LOG "-20261103");
	pack(world, LOG "-20261103", LOG "-20261103.gz");
	write_log(world, "# heading\nfourth\n");
	restart(world);
	assert_sent(world, "# heading\nthird\n# heading\nfourth\n");
}

/* Nobody takes a chunk for long. The log is renamed meanwhile, again and again, emptied at last,
 * and what was renamed is removed. */
static void what_comes_while_a_chunk_is_on_its_way_is_held(void **state)
{
	struct world *world = *state;
	struct followed_place after;
	write_log(world, "first\n");
	look(world);
	assert_true(send_one(world, &after));
	world->followed->pending_count = 1;
	write_log(world, "second\n");
	rename_log(world, LOG "-20261101");
	sim_make(&world->sim, LOG);
	look(world);
	rename_log(world, LOG "-20261102");
	write_log(world, "third\n");
	look(world);
	rename_log(world, LOG "-20261103");
	write_log(world, "fourth\n");
	look(world);
	copy_log(world, LOG "-20261104");
	write_log(world, "fifth\n");
	look(world);
	for (int i = 1; i <= 4; i++) {
		char name[64];
		snprintf(name, sizeof(name), LOG "-2026110%d", i);
		sim_unlink(&world->sim, name);
	}
	world->followed->pending_count = 0;
	followed_acknowledge(world->followed, &after);
	assert_sent(world, "first\nsecond\nthird\nfourth\nfifth\n");
}

/* Offsets end at 2^63 - 1. What would have one beyond is not sent, and said. */
static void a_stream_ends_where_offsets_do(void **state)
{
	struct world *world = *state;
	struct followed_chunk chunk;
	int64_t wait_ms;
	world->followed->rule = world->rule = &rule_at_the_end;
	write_log(world, "first\n");
	look(world);
	assert_true(followed_read(world->followed, &chunk, &wait_ms));
	assert_true(chunk.fields.sequence_id == INT64_MAX);
	write_log(world, "second\n");
	assert_false(followed_read(world->followed, &chunk, &wait_ms));
	assert_int_equal(world->followed->state, FOLLOWED_READING); /* the first one is awaited */
	followed_acknowledge(world->followed, &chunk.after);
	look(world);
	assert_false(followed_read(world->followed, &chunk, &wait_ms));
	assert_int_equal(world->followed->state, FOLLOWED_STOPPED);
	assert_non_null(strstr(world->followed->problem, "2^63"));
	restart(world); /* such a checkpoint can be read */
	assert_true(world->followed->offset == INT64_MAX);
}

static void what_is_lost_goes_no_further_than_offsets_do(void **state)
{
	struct world *world = *state;
	world->followed->rule = world->rule = &rule_at_the_end;
	write_log(world, "first\nsecond\n");
	look(world);
	followed_rest(world->followed);
	sim_unlink(&world->sim, LOG);
	for (int i = 0; i < LOOKS_TO_REST; i++)
		look(world);
	restart(world);
	assert_true(world->followed->offset == INT64_MAX);
	assert_false(world->followed->asks);
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
		IN_WORLD(a_packed_heading_is_known_by_its_time),
		IN_WORLD(a_packed_file_with_the_time_of_a_heading_is_the_one_before),
		IN_WORLD(a_copy_is_empty_at_first),
		IN_WORLD(a_line_comes_while_its_file_is_packed),
		IN_WORLD(what_is_lost_behind_a_known_end_may_have_been_sent),
		IN_WORLD(a_copy_comes_in_front_of_what_was_not_sent),
		IN_WORLD(what_waits_to_be_put_in_front_waits_after_a_restart),
		IN_WORLD(what_comes_late_does_not_wait_for_an_empty_log),
		IN_WORLD(a_short_file_is_looked_for_in_its_copy),
		IN_WORLD(a_short_file_that_was_copied_is_not_emptied_yet),
		IN_WORLD(a_copy_that_is_being_made_is_none_of_a_file_that_is_gone),
		IN_WORLD(a_copy_of_a_heading_is_none_of_what_came_later),
		IN_WORLD(a_copy_is_finished_between_two_looks),
		IN_WORLD(what_is_lost_is_not_found_in_what_comes_later),
		IN_WORLD(a_renamed_file_that_grows_is_no_copy_of_a_heading),
		IN_WORLD(a_packed_file_with_the_inode_of_a_delivered_one_is_another),
		IN_WORLD(a_file_that_could_not_be_read_is_known_when_it_is_packed),
		IN_WORLD(a_damaged_packed_file_is_passed_over),
		IN_WORLD(what_comes_to_an_empty_log_is_looked_at_first),
		IN_WORLD(a_removed_file_comes_behind_its_copy),
		IN_WORLD(a_line_comes_late_to_a_file_of_before),
		IN_WORLD(a_log_is_begun_while_it_is_copied),
		IN_WORLD(files_that_are_gone_are_given_up_together),
		IN_WORLD(a_packed_file_begins_as_one_did_that_is_gone),
		IN_WORLD(what_comes_while_a_chunk_is_on_its_way_is_held),
		IN_WORLD(a_stream_ends_where_offsets_do),
		IN_WORLD(what_is_lost_goes_no_further_than_offsets_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
