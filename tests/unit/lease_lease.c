/* Leases of partitions, of several holders on one store and a virtual clock. */
#include "rollup_harness.h"

#include "lease/lease.h"

#define LEASE_MS (2 * MINUTE_MS)

enum { HOLDERS_MAX = 4 };

struct holder {
	struct lease_session *session;
	struct leases *leases;
	struct partitions held;
};

struct shared {
	struct harness h;
	struct partitions wanted;
	struct holder holders[HOLDERS_MAX];
};

static void open_all(struct shared *s, uint32_t partitions)
{
	*s = (struct shared){0};
	harness_open(&s->h, NULL);
	for (uint32_t p = 0; p < partitions; p++)
		partitions_add(&s->wanted, p);
}

static void begin(struct shared *s, size_t i, bool share)
{
	static const char *const names[HOLDERS_MAX] = {"a", "ab", "c", "d"};
	struct holder *holder = &s->holders[i];
	holder->session = lease_session_new(
		&(struct lease_session_options){.store = s->h.store,
						.clock = &s->h.clock.clock,
						.holder = slice_of(names[i]),
						.name = slice_of(names[i]),
						.roles = share ? SESSION_SHARES : 0,
						.lease_ms = LEASE_MS});
	holder->leases = leases_new(&(struct leases_options){
		.session = holder->session, .kind = "rollup", .share = share});
}

static void die(struct shared *s, size_t i)
{
	leases_free(s->holders[i].leases);
	lease_session_free(s->holders[i].session);
	s->holders[i] = (struct holder){0};
}

static void close_all(struct shared *s)
{
	for (size_t i = 0; i < HOLDERS_MAX; i++) {
		if (s->holders[i].leases)
			die(s, i);
	}
	harness_close(&s->h);
}

static int try_to_take(struct shared *s, size_t i, const struct partitions *wanted)
{
	int64_t until_ms;
	struct holder *holder = &s->holders[i];
	int err = leases_take(holder->leases, &s->h.queue, wanted, &holder->held, &until_ms);
	assert_true(err || until_ms == clock_wall_ms(&s->h.clock.clock) + LEASE_MS);
	return err;
}

static void take_of(struct shared *s, size_t i, const struct partitions *wanted)
{
	assert_int_equal(try_to_take(s, i, wanted), 0);
}

/* Which of 0 to 3 it has after it has asked for `wanted`. */
static unsigned take(struct shared *s, size_t i, const char *wanted)
{
	const struct partitions *held = &s->holders[i].held;
	struct partitions set;
	struct errbuf e;
	assert_int_equal(partitions_parse(slice_of(wanted), 8, &set, &e), 0);
	take_of(s, i, &set);
	assert_int_equal(held->count, (size_t)__builtin_popcountll(held->bits[0]));
	return (unsigned)held->bits[0];
}

static void give(struct shared *s, size_t i)
{
	assert_int_equal(leases_give(s->holders[i].leases, &s->h.queue), 0);
	assert_int_equal(lease_session_end(s->holders[i].session, &s->h.queue), 0);
	s->holders[i].held = (struct partitions){0};
}

/* All that live look once, a minute later. */
static void look(struct shared *s)
{
	clock_virtual_advance(&s->h.clock, MINUTE_MS * 1000);
	for (size_t i = 0; i < HOLDERS_MAX; i++) {
		if (s->holders[i].leases)
			take_of(s, i, &s->wanted);
	}
}

/* How many each has; nothing belongs to two. */
static void expect_shares(const struct shared *s, const char *want)
{
	struct buf out;
	buf_init(&out, 256);
	for (size_t i = 0; i < HOLDERS_MAX; i++) {
		if (s->holders[i].leases)
			buf_printf(&out, "%s%c:%zu", out.len ? " " : "", 'a' + (int)i,
				   s->holders[i].held.count);
		for (size_t j = 0; j < i; j++) {
			for (uint32_t p = 0; p < PARTITIONS_MAX; p++)
				assert_false(partitions_has(&s->holders[i].held, p) &&
					     partitions_has(&s->holders[j].held, p));
		}
	}
	buf_append_char(&out, 0);
	assert_string_equal(out.data, want);
	buf_release(&out);
}

static void one_has_all(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 64);
	begin(&s, 0, true);
	look(&s);
	expect_shares(&s, "a:64");
	look(&s);
	expect_shares(&s, "a:64");
	close_all(&s);
}

/* The second finds nothing free; the first gives half back when it looks next. */
static void two_share_evenly(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 64);
	begin(&s, 0, true);
	look(&s);
	begin(&s, 1, true);
	take_of(&s, 1, &s.wanted);
	expect_shares(&s, "a:64 b:0");
	look(&s);
	expect_shares(&s, "a:32 b:32");
	look(&s);
	expect_shares(&s, "a:32 b:32");
	close_all(&s);
}

/* 8 by 3 is 3, 3 and 2. */
static void three_share_what_does_not_divide(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 8);
	for (size_t i = 0; i < 3; i++)
		begin(&s, i, true);
	for (size_t i = 0; i < 3; i++)
		look(&s);
	expect_shares(&s, "a:3 b:3 c:2");
	close_all(&s);
}

/* Within the lease of two minutes and the minute until the next look. */
static void others_take_over_from_one_that_dies(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 12);
	for (size_t i = 0; i < 3; i++)
		begin(&s, i, true);
	for (size_t i = 0; i < 3; i++)
		look(&s);
	expect_shares(&s, "a:4 b:4 c:4");
	die(&s, 1);
	look(&s);
	expect_shares(&s, "a:4 c:4");
	look(&s);
	expect_shares(&s, "a:6 c:6");
	/* It comes back, and is given its share. */
	begin(&s, 1, true);
	look(&s);
	look(&s);
	expect_shares(&s, "a:4 b:4 c:4");
	close_all(&s);
}

/* Who begins again under its name has its leases at once. */
static void after_a_restart_its_own_are_its_own(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 12);
	begin(&s, 0, true);
	begin(&s, 1, true);
	look(&s);
	look(&s);
	expect_shares(&s, "a:6 b:6");
	die(&s, 1);
	begin(&s, 1, true);
	take_of(&s, 1, &s.wanted);
	expect_shares(&s, "a:6 b:6");
	close_all(&s);
}

static void who_ends_gives_back_at_once(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 12);
	begin(&s, 0, true);
	begin(&s, 1, true);
	look(&s);
	look(&s);
	give(&s, 1);
	take_of(&s, 0, &s.wanted);
	expect_shares(&s, "a:12 b:0");
	/* What others have by now is not given back for them. */
	give(&s, 1);
	take_of(&s, 0, &s.wanted);
	expect_shares(&s, "a:12 b:0");
	close_all(&s);
}

static void who_has_nothing_gives_nothing_back(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 4);
	begin(&s, 0, false);
	naive_fail_writes(s.h.store, ERR_UNKNOWN, 1); /* there is none */
	give(&s, 0);
	naive_fail_writes(s.h.store, 0, 0);
	assert_int_equal(take(&s, 0, "0-3"), 15);
	close_all(&s);
}

/* One has been told to have 0-3 of 12: two others share the 8 that are left. */
static void what_a_stranger_has_is_not_shared(void **state)
{
	(void)state;
	struct shared s;
	struct partitions list = {0};
	open_all(&s, 12);
	for (uint32_t p = 0; p < 4; p++)
		partitions_add(&list, p);
	begin(&s, 0, false);
	begin(&s, 1, true);
	begin(&s, 2, true);
	for (size_t i = 0; i < 3; i++) {
		clock_virtual_advance(&s.h.clock, MINUTE_MS * 1000);
		take_of(&s, 0, &list);
		take_of(&s, 1, &s.wanted);
		take_of(&s, 2, &s.wanted);
	}
	expect_shares(&s, "a:4 b:4 c:4");
	close_all(&s);
}

/* Two sessions, of which each has the role of what it shares. */
static void who_has_another_role_is_not_counted(void **state)
{
	(void)state;
	struct shared s;
	struct partitions held;
	int64_t until_ms;
	open_all(&s, 4);
	begin(&s, 0, true);
	take_of(&s, 0, &s.wanted);
	struct lease_session *session =
		lease_session_new(&(struct lease_session_options){.store = s.h.store,
								  .clock = &s.h.clock.clock,
								  .holder = SLICE("c"),
								  .name = SLICE("c"),
								  .roles = SESSION_OWNS_STREAMS,
								  .lease_ms = LEASE_MS});
	struct leases *leases =
		leases_new(&(struct leases_options){.session = session,
						    .kind = "stream",
						    .share = true,
						    .sharing = SESSION_OWNS_STREAMS});
	assert_int_equal(leases_take(leases, &s.h.queue, &s.wanted, &held, &until_ms), 0);
	assert_int_equal(held.count, 4);
	take_of(&s, 0, &s.wanted);
	assert_int_equal(s.holders[0].held.count, 4);
	leases_free(leases);
	lease_session_free(session);
	close_all(&s);
}

/* A list is not shared: the first has all of it until it ends. */
static void a_list_is_taken_whole(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 12);
	begin(&s, 0, false);
	begin(&s, 1, false);
	look(&s);
	look(&s);
	expect_shares(&s, "a:12 b:0");
	die(&s, 0);
	look(&s);
	look(&s);
	expect_shares(&s, "b:12");
	close_all(&s);
}

/* One that is gone is followed when its lease ends, not a millisecond before. */
static void a_lease_lasts_until_its_end(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 4);
	begin(&s, 0, false);
	begin(&s, 1, false);
	assert_int_equal(take(&s, 0, "0-1"), 3);
	assert_int_equal(take(&s, 1, "0-3"), 12);
	clock_virtual_advance(&s.h.clock, (LEASE_MS - 1) * 1000);
	assert_int_equal(take(&s, 1, "0-3"), 12);
	/* Renewed in the last moment: it goes on from there. */
	assert_int_equal(take(&s, 0, "0-1"), 3);
	clock_virtual_advance(&s.h.clock, (LEASE_MS - 1) * 1000);
	assert_int_equal(take(&s, 1, "0-3"), 12);
	clock_virtual_advance(&s.h.clock, 1000);
	assert_int_equal(take(&s, 1, "0-3"), 15);
	assert_int_equal(take(&s, 0, "0-1"), 0);
	close_all(&s);
}

/* It was found out then, and only asked for again a pass later. */
static void a_lease_of_ones_own_that_has_ended_is_taken_again(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 4);
	begin(&s, 0, false);
	assert_int_equal(take(&s, 0, "0-3"), 15);
	clock_virtual_advance(&s.h.clock, LEASE_MS * 1000);
	assert_int_equal(take(&s, 0, "0-3"), 15);
	close_all(&s);
}

static void a_write_that_fails_or_is_refused_is_tried_again(void **state)
{
	(void)state;
	struct shared s;
	open_all(&s, 4);
	begin(&s, 0, false);
	naive_refuse_writes(s.h.store, ERR_BUSY, 1);
	assert_int_equal(try_to_take(&s, 0, &s.wanted), ERR_BUSY);
	assert_int_equal(s.holders[0].held.count, 0);
	naive_fail_writes(s.h.store, ERR_UNKNOWN, 1);
	assert_int_equal(try_to_take(&s, 0, &s.wanted), ERR_UNKNOWN);
	assert_int_equal(take(&s, 0, "0-3"), 15);
	close_all(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_has_all),
		cmocka_unit_test(two_share_evenly),
		cmocka_unit_test(three_share_what_does_not_divide),
		cmocka_unit_test(others_take_over_from_one_that_dies),
		cmocka_unit_test(after_a_restart_its_own_are_its_own),
		cmocka_unit_test(who_ends_gives_back_at_once),
		cmocka_unit_test(what_a_stranger_has_is_not_shared),
		cmocka_unit_test(who_has_another_role_is_not_counted),
		cmocka_unit_test(a_list_is_taken_whole),
		cmocka_unit_test(who_has_nothing_gives_nothing_back),
		cmocka_unit_test(a_lease_lasts_until_its_end),
		cmocka_unit_test(a_lease_of_ones_own_that_has_ended_is_taken_again),
		cmocka_unit_test(a_write_that_fails_or_is_refused_is_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
