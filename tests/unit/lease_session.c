/* Sessions and claims of several processes, each with a clock of its own, on stores that they
 * share: the far one, whose thread lands what comes, and the naive one, which says that it is
 * shared. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "contract/far.h"
#include "contract/naive.h"
#include "lease/job_claim.h"
#include "lease/lease.h"
#include "store/wait.h"

#define LEASE_MS INT64_C(40000)
#define SKEW_MS  INT64_C(10000)
#define BEGIN_MS INT64_C(1600000000000)

enum { PROCESSES = 3, PARTITIONS = 8 };

struct process_clock {
	struct clock clock;
	struct clock_virtual *of;
	int64_t off_us;
	void (*once)(void *owner); /* runs behind the next reading of the wall clock */
	void *owner;
};

struct process {
	struct store *store;
	struct process_clock clock;
	char holder[32];
	struct lease_session *session; /* NULL: it is not there */
	struct leases *leases;
	struct job_claims *jobs;
	struct partitions held;
	int64_t until_ms;
};

struct shared {
	struct clock_virtual clock;
	struct task_queue queue;
	struct far *far; /* NULL: */
	pthread_t thread;
	struct store *naive;
	struct store_engine engine;
	struct partitions wanted;
	struct process processes[PROCESSES];
};

/* ---- Surroundings ---------------------------------------------------------------------------- */

static int64_t process_wall_us(struct clock *clock)
{
	struct process_clock *own = CONTAINER_OF(clock, struct process_clock, clock);
	int64_t wall_us = own->of->clock.wall_us(&own->of->clock) + own->off_us;
	void (*once)(void *owner) = own->once;
	own->once = NULL;
	if (once)
		once(own->owner);
	return wall_us;
}

static int64_t process_mono_us(struct clock *clock)
{
	struct process_clock *own = CONTAINER_OF(clock, struct process_clock, clock);
	return own->of->clock.mono_us(&own->of->clock);
}

static int64_t wall_ms(struct process *p)
{
	return clock_wall_ms(&p->clock.clock);
}

static void open_all(struct shared *s, bool far)
{
	static const struct far_faults none;
	*s = (struct shared){0};
	clock_virtual_init(&s->clock, BEGIN_MS * 1000);
	task_queue_init(&s->queue);
	for (uint32_t p = 0; p < PARTITIONS; p++)
		partitions_add(&s->wanted, p);
	if (far) {
		s->far = far_new(&s->clock.clock, 1, &none);
		assert_int_equal(pthread_create(&s->thread, NULL, far_run, s->far), 0);
		return;
	}
	s->naive = naive_open(&s->clock.clock);
	s->engine = *s->naive->engine;
	s->engine.can |= STORE_SHARED;
	s->naive->engine = &s->engine;
}

/* What is different from one that shares, with the name "h". */
struct begun {
	bool list;
	const char *name;
	int64_t off_ms;
};

static struct process *begin(struct shared *s, size_t i, struct begun begun)
{
	struct process *p = &s->processes[i];
	*p = (struct process){.clock = {{.wall_us = process_wall_us, .mono_us = process_mono_us},
					&s->clock,
					begun.off_ms * 1000}};
	const char *name = begun.name ? begun.name : "h";
	snprintf(p->holder, sizeof(p->holder), "%s-%zu", name, i);
	p->store = s->far ? far_open(s->far, &p->clock.clock, 0) : s->naive;
	p->session = lease_session_new(&(struct lease_session_options){
		.store = p->store,
		.clock = &p->clock.clock,
		.holder = slice_of(p->holder),
		.name = slice_of(name),
		.address = SLICE("10.0.0.1:8470"),
		.roles = SESSION_ROLLS_UP | (begun.list ? 0 : SESSION_SHARES),
		.lease_ms = LEASE_MS,
		.skew_max_ms = SKEW_MS,
	});
	p->leases = leases_new(&(struct leases_options){
		.session = p->session, .kind = "rollup", .share = !begun.list});
	p->jobs = job_claims_new(p->session);
	return p;
}

static void die(struct process *p)
{
	leases_free(p->leases);
	job_claims_free(p->jobs);
	lease_session_free(p->session);
	p->session = NULL;
}

static void close_all(struct shared *s)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (s->processes[i].session)
			die(&s->processes[i]);
		if (s->far && s->processes[i].store)
			store_close(s->processes[i].store);
	}
	if (s->far) {
		far_stop(s->far);
		pthread_join(s->thread, NULL);
		far_free(s->far);
	} else {
		store_close(s->naive);
	}
	task_queue_release(&s->queue);
}

static void pass_ms(struct shared *s, int64_t ms)
{
	clock_virtual_advance(&s->clock, ms * 1000);
}

static unsigned take_of(struct shared *s, struct process *p, const char *wanted)
{
	struct partitions set = s->wanted;
	struct errbuf e;
	if (wanted)
		assert_int_equal(partitions_parse(slice_of(wanted), PARTITIONS, &set, &e), 0);
	assert_int_equal(leases_take(p->leases, &s->queue, &set, &p->held, &p->until_ms), 0);
	return (unsigned)p->held.bits[0];
}

static unsigned take(struct shared *s, struct process *p)
{
	return take_of(s, p, NULL);
}

static void put_cell(struct shared *s, struct store *store, const char *kind, const char *name,
		     const char *value, int64_t expires_ms)
{
	const struct store_parts row = {{slice_of(kind)}}, column = {{slice_of(name)}};
	struct store_write *write = store_write_new(store, 1 << 16);
	struct store_write_cond *outcome;
	assert_int_equal(store_cell_put_if(write, TABLE_LEASES, &row, &column, 0, slice_of(value),
					   expires_ms, &outcome),
			 0);
	assert_int_equal(store_write_wait(write, &s->queue), 0);
	assert_true(outcome->applied);
	store_write_free(write);
}

static uint64_t version_of(struct shared *s, struct store *store, const char *kind,
			   const char *name)
{
	struct store_read *read = store_read_new(store, 1 << 16);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	request->cell_get = (struct store_cell_get){
		.table = TABLE_LEASES, .key = {{slice_of(kind)}}, .column = {{slice_of(name)}}};
	read->now_ms = clock_wall_ms(&s->clock.clock);
	assert_int_equal(store_read_wait(read, &s->queue), 0);
	uint64_t version = request->cell_get.found ? request->cell_get.cell.version : 0;
	store_read_free(read);
	return version;
}

/* A test on the naive store, and on the far one. */
#define ON_BOTH(name)                                                                              \
	static void name##_naive(void **state)                                                     \
	{                                                                                          \
		struct shared s;                                                                   \
		(void)state;                                                                       \
		open_all(&s, false);                                                               \
		name(&s);                                                                          \
		close_all(&s);                                                                     \
	}                                                                                          \
	static void name##_far(void **state)                                                       \
	{                                                                                          \
		struct shared s;                                                                   \
		(void)state;                                                                       \
		open_all(&s, true);                                                                \
		name(&s);                                                                          \
		close_all(&s);                                                                     \
	}
#define TESTS_OF(name) cmocka_unit_test(name##_naive), cmocka_unit_test(name##_far)

/* ---- Claims ---------------------------------------------------------------------------------- */

static void two_of_one_name_share(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){0}), *b = begin(s, 1, (struct begun){0});
	assert_int_equal(take(s, a), 0xff);
	assert_int_equal(take(s, b), 0);
	assert_int_equal(__builtin_popcount(take(s, a)), 4);
	assert_int_equal(__builtin_popcount(take(s, b)), 4);
	assert_int_equal(a->held.bits[0] ^ b->held.bits[0], 0xff);
	assert_int_equal(__builtin_popcount(take(s, a)), 4);
}
ON_BOTH(two_of_one_name_share)

static void who_has_all_renews_one_cell(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){0});
	assert_int_equal(take(s, a), 0xff);
	uint64_t claim = version_of(s, a->store, "rollup", "3");
	uint64_t session = version_of(s, a->store, "session", "h-0");
	assert_true(claim && session);
	pass_ms(s, LEASE_MS - 1);
	assert_int_equal(take(s, a), 0xff);
	assert_int_equal(a->until_ms, wall_ms(a) + LEASE_MS);
	assert_true(version_of(s, a->store, "rollup", "3") == claim);
	assert_false(version_of(s, a->store, "session", "h-0") == session);
}
ON_BOTH(who_has_all_renews_one_cell)

/* One is 4.5 s behind, the other 4.5 s ahead: the second follows when the first one's own clock has
 * reached the end, and with higher stamps than the first could have given. */
static void clocks_nine_seconds_apart(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){.off_ms = -4500, .list = true});
	struct process *b = begin(s, 1, (struct begun){.off_ms = 4500, .list = true});
	assert_int_equal(take(s, a), 0xff);
	while (!take(s, b)) {
		assert_true(wall_ms(b) < a->until_ms + SKEW_MS);
		pass_ms(s, 500);
	}
	assert_int_equal(b->held.bits[0], 0xff);
	assert_true(wall_ms(b) == a->until_ms + SKEW_MS);
	assert_true(wall_ms(a) >= a->until_ms);
	assert_true(store_stamp(b->store) > a->until_ms * 1000);
	assert_int_equal(take(s, a), 0);
}
ON_BOTH(clocks_nine_seconds_apart)

/* It finds out at its next look which of its claims others have by now, and has the rest. */
static void who_comes_too_late_sees_what_was_taken(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){.list = true});
	struct process *b = begin(s, 1, (struct begun){.list = true});
	assert_int_equal(take(s, a), 0xff);
	pass_ms(s, LEASE_MS + SKEW_MS);
	assert_int_equal(take_of(s, b, "0-2"), 7);
	assert_int_equal(take(s, a), 0xf8);
	assert_int_equal(take_of(s, b, "0-2"), 7);
}
ON_BOTH(who_comes_too_late_sees_what_was_taken)

/* Somebody may have read that the session was dead, and be about to write. */
static void what_nobody_took_is_claimed_anew(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){.list = true});
	assert_int_equal(take(s, a), 0xff);
	uint64_t before = version_of(s, a->store, "rollup", "5");
	pass_ms(s, LEASE_MS);
	assert_int_equal(take(s, a), 0xff);
	assert_false(version_of(s, a->store, "rollup", "5") == before);
}
ON_BOTH(what_nobody_took_is_claimed_anew)

static void a_session_that_is_gone_has_broken(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){.list = true});
	struct process *b = begin(s, 1, (struct begun){.list = true});
	struct session_hold hold;
	assert_int_equal(take(s, a), 0xff);
	assert_int_equal(lease_session_renew(a->session, &s->queue, &hold), 0);
	assert_int_equal(hold.breaks, 1);
	/* Somebody takes its cell away. */
	const struct store_parts row = {{SLICE("session")}}, column = {{SLICE("h-0")}};
	struct store_write *write = store_write_new(b->store, 1 << 16);
	struct store_write_cond *outcome;
	assert_int_equal(store_cell_delete_if(write, TABLE_LEASES, &row, &column,
					      version_of(s, b->store, "session", "h-0"), &outcome),
			 0);
	assert_int_equal(store_write_wait(write, &s->queue), 0);
	store_write_free(write);
	assert_int_equal(take_of(s, b, "0"), 1);
	assert_int_equal(take(s, a), 0xfe);
}
ON_BOTH(a_session_that_is_gone_has_broken)

/* Claims had an end of their own and no session, and members cells of their own. */
static void what_the_version_before_wrote_is_taken(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){0});
	int64_t end_ms = BEGIN_MS + LEASE_MS;
	for (unsigned p = 0; p < PARTITIONS; p++) {
		char name[8];
		snprintf(name, sizeof(name), "%u", p);
		put_cell(s, a->store, "rollup", name, p % 2 ? "h" : "h-0", end_ms);
	}
	put_cell(s, a->store, "rollup-member", "h", "h", end_ms);
	assert_int_equal(take(s, a), 0xff);
	pass_ms(s, LEASE_MS - 1);
	assert_int_equal(take(s, a), 0xff);
	pass_ms(s, LEASE_MS - 1);
	assert_int_equal(take(s, a), 0xff);
}
ON_BOTH(what_the_version_before_wrote_is_taken)

/* What such a session has claimed is left to it; a claim that is none is left as it is. */
static void cells_that_cannot_be_read_disturb_nothing_else(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){.list = true});
	put_cell(s, a->store, "session", "x-9", "{\"version\": 2}", 0);
	put_cell(s, a->store, "session", "x-8", "\xff{", 0);
	put_cell(s, a->store, "rollup", "0", "x-9", 0);
	put_cell(s, a->store, "rollup", "1", "x-8", 0);
	put_cell(s, a->store, "rollup", "2", "\x01", 0);
	put_cell(s, a->store, "rollup", "three", "h-0", 0);
	put_cell(s, a->store, "rollup", "99999", "h-0", 0);
	assert_int_equal(take(s, a), 0xf8);
	assert_int_equal(take(s, a), 0xf8);
}
ON_BOTH(cells_that_cannot_be_read_disturb_nothing_else)

/* ---- The start ------------------------------------------------------------------------------- */

/* How many lines are said of the others. */
static unsigned lines_of_others(struct shared *s, struct process *p)
{
	struct sessions all = {0};
	assert_int_equal(sessions_look(&all, p->session, &s->queue), 0);
	unsigned lines = all.lines.lines;
	sessions_release(&all);
	return lines;
}

static void a_clock_that_is_too_far_ahead_is_named(struct shared *s)
{
	struct errbuf e = {""};
	struct process *a = begin(s, 0, (struct begun){.off_ms = SKEW_MS});
	struct process *b = begin(s, 1, (struct begun){0});
	assert_int_equal(lease_session_open(a->session, &s->queue, &e), 0);
	assert_int_equal(lease_session_open(b->session, &s->queue, &e), 0);
	assert_int_equal(lines_of_others(s, b), 0);
	struct process *c = begin(s, 2, (struct begun){.off_ms = SKEW_MS + 1});
	assert_int_equal(lease_session_open(c->session, &s->queue, &e), 0);
	assert_int_equal(lines_of_others(s, b), 1);
	assert_int_equal(lines_of_others(s, a), 0);
	assert_int_equal(lines_of_others(s, c), 0);
}
ON_BOTH(a_clock_that_is_too_far_ahead_is_named)

static void renew_later(void *owner)
{
	struct shared *s = owner;
	struct session_hold hold;
	pass_ms(s, SKEW_MS + 1);
	assert_int_equal(lease_session_renew(s->processes[0].session, &s->queue, &hold), 0);
}

/* It was renewed after its reader had looked at the clock, and before the read was answered. */
static void a_session_that_is_renewed_during_a_slow_read_is_not_ahead(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){0}), *b = begin(s, 1, (struct begun){0});
	assert_int_equal(take(s, a), 0xff);
	b->clock.once = renew_later;
	b->clock.owner = s;
	assert_int_equal(lines_of_others(s, b), 0);
	assert_null(b->clock.once);
}
ON_BOTH(a_session_that_is_renewed_during_a_slow_read_is_not_ahead)

/* ---- Jobs ------------------------------------------------------------------------------------ */

static int take_job(struct shared *s, struct process *p, struct errbuf *e)
{
	*e = (struct errbuf){""};
	return job_claims_take(p->jobs, &s->queue, JOB_CLAIM_DELETION, e);
}

static void a_job_runs_once_at_a_time(struct shared *s)
{
	struct errbuf e;
	struct process *a = begin(s, 0, (struct begun){0}), *b = begin(s, 1, (struct begun){0});
	assert_int_equal(take_job(s, a, &e), 0);
	assert_int_equal(take_job(s, a, &e), ERR_BUSY);
	assert_string_equal(e.text, "another deletion is at work, in this process");
	assert_int_equal(take_job(s, b, &e), ERR_BUSY);
	assert_string_equal(e.text,
			    "another deletion is at work, in the process h-0 at 10.0.0.1:8470");
	assert_int_equal(job_claims_take(b->jobs, &s->queue, JOB_CLAIM_REBUILD, &e), 0);
	job_claims_give(b->jobs, JOB_CLAIM_REBUILD);
	job_claims_give(a->jobs, JOB_CLAIM_DELETION);
	assert_int_equal(take_job(s, b, &e), 0);
	assert_int_equal(take_job(s, a, &e), ERR_BUSY);
	job_claims_give(b->jobs, JOB_CLAIM_DELETION);
}
ON_BOTH(a_job_runs_once_at_a_time)

static void a_job_of_the_dead_is_free_when_their_session_has_ended(struct shared *s)
{
	struct errbuf e;
	struct process *a = begin(s, 0, (struct begun){0}), *b = begin(s, 1, (struct begun){0});
	assert_int_equal(take_job(s, a, &e), 0);
	pass_ms(s, LEASE_MS + SKEW_MS - 1);
	assert_int_equal(take_job(s, b, &e), ERR_BUSY);
	pass_ms(s, 1);
	assert_int_equal(take_job(s, b, &e), 0);
	/* The first was not dead after all, and gives back only what it has. */
	job_claims_give(a->jobs, JOB_CLAIM_DELETION);
	assert_int_equal(take_job(s, a, &e), ERR_BUSY);
	job_claims_give(b->jobs, JOB_CLAIM_DELETION);
}
ON_BOTH(a_job_of_the_dead_is_free_when_their_session_has_ended)

/* The cell says what it said, and has another version: of a write whose outcome was lost. */
static void write_again(struct shared *s, struct process *p, const char *kind, const char *name)
{
	const struct store_parts row = {{slice_of(kind)}}, column = {{slice_of(name)}};
	struct store_read *read = store_read_new(p->store, 1 << 16);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	request->cell_get =
		(struct store_cell_get){.table = TABLE_LEASES, .key = row, .column = column};
	read->now_ms = clock_wall_ms(&s->clock.clock);
	assert_int_equal(store_read_wait(read, &s->queue), 0);
	assert_true(request->cell_get.found);
	struct store_write *write = store_write_new(p->store, 1 << 16);
	struct store_write_cond *outcome;
	assert_int_equal(store_cell_put_if(write, TABLE_LEASES, &row, &column,
					   request->cell_get.cell.version,
					   request->cell_get.cell.value, 0, &outcome),
			 0);
	assert_int_equal(store_write_wait(write, &s->queue), 0);
	assert_true(outcome->applied);
	store_write_free(write);
	store_read_free(read);
}

/* They stayed, and the others had to wait for the end of the session, or for ever. */
static void what_is_given_back_goes_by_any_version(struct shared *s)
{
	struct errbuf e;
	struct process *a = begin(s, 0, (struct begun){0});
	assert_int_equal(take(s, a), 0xff);
	assert_int_equal(take_job(s, a, &e), 0);
	write_again(s, a, "job", "deletion");
	job_claims_give(a->jobs, JOB_CLAIM_DELETION);
	assert_true(version_of(s, a->store, "job", "deletion") == 0);
	write_again(s, a, "rollup", "3");
	assert_int_equal(leases_give(a->leases, &s->queue), 0);
	for (const char *name = "01234567"; *name; name++)
		assert_true(version_of(s, a->store, "rollup", (char[]){*name, 0}) == 0);
	write_again(s, a, "session", "h-0");
	assert_int_equal(lease_session_end(a->session, &s->queue), 0);
	assert_true(version_of(s, a->store, "session", "h-0") == 0);
}
ON_BOTH(what_is_given_back_goes_by_any_version)

/* It was taken over meanwhile. */
static void what_another_has_is_not_given_back(struct shared *s)
{
	struct process *a = begin(s, 0, (struct begun){.list = true});
	struct process *b = begin(s, 1, (struct begun){.list = true});
	assert_int_equal(take(s, a), 0xff);
	pass_ms(s, LEASE_MS + SKEW_MS);
	assert_int_equal(take_of(s, b, "0-2"), 7);
	assert_int_equal(leases_give(a->leases, &s->queue), 0);
	assert_true(version_of(s, a->store, "rollup", "2") != 0);
	assert_true(version_of(s, a->store, "rollup", "3") == 0);
	assert_int_equal(take_of(s, b, "0-2"), 7);
}
ON_BOTH(what_another_has_is_not_given_back)

/* ---- Rows ------------------------------------------------------------------------------------ */

static uint64_t open_series(struct shared *s, struct store *store)
{
	struct store_read *read = store_read_new(store, 1 << 16);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	struct slice metric = SLICE("m");
	request->series_open =
		(struct store_series_open){.tenant = SLICE("t"), .metrics = &metric, .count = 1};
	read->now_ms = BEGIN_MS;
	assert_int_equal(store_read_wait(read, &s->queue), 0);
	uint64_t handle = request->series_open.handles[0];
	store_read_free(read);
	return handle;
}

static struct store_write *make_row(struct shared *s, struct process *p, uint64_t value)
{
	struct store_write *write = store_write_new(p->store, 1 << 16);
	const struct store_target target = {TABLE_DATA_RAW, 0, 0};
	uint64_t handle = open_series(s, p->store);
	struct value v = value_u64(value);
	write->stamp_us = store_stamp(p->store);
	assert_true(write->stamp_us < p->until_ms * 1000);
	assert_int_equal(store_append(write, &target, BEGIN_MS, &handle, 1, &v), 0);
	return write;
}

static void on_written(struct store_write *write, int err)
{
	*(int *)write->owner = err;
}

static uint64_t read_row(struct shared *s, struct process *p)
{
	struct store_read *read = store_read_new(p->store, 1 << 16);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	uint64_t handle = open_series(s, p->store);
	request->range = (struct store_range){.table = TABLE_DATA_RAW,
					      .handles = &handle,
					      .handle_count = 1,
					      .start_ms = STORE_TS_MIN,
					      .end_ms = STORE_TS_MAX};
	read->now_ms = BEGIN_MS;
	assert_int_equal(store_read_wait(read, &s->queue), 0);
	assert_int_equal(request->range.points[0].count, 1);
	uint64_t value = request->range.points[0].bits[0][0];
	store_read_free(read);
	return value;
}

/* Between its last check and its socket: what it wakes up with lands after its successor's work. */
static void who_was_frozen_overwrites_nothing(void **state)
{
	struct shared s;
	int err = 1;
	(void)state;
	open_all(&s, true);
	struct process *a = begin(&s, 0, (struct begun){.list = true, .off_ms = 4500});
	struct process *b = begin(&s, 1, (struct begun){.list = true, .off_ms = -4500});
	assert_int_equal(take(&s, a), 0xff);
	pass_ms(&s, LEASE_MS - 1);
	struct store_write *late = make_row(&s, a, 1);
	far_freeze(a->store, true);
	late->executor = &s.queue.executor;
	late->done = on_written;
	late->owner = &err;
	assert_int_equal(store_write_submit(late), 0);
	while (!take(&s, b))
		pass_ms(&s, 500);
	struct store_write *row = make_row(&s, b, 2);
	assert_true(row->stamp_us > late->stamp_us);
	assert_int_equal(store_write_wait(row, &s.queue), 0);
	far_freeze(a->store, false);
	while (err == 1)
		task_queue_wait(&s.queue);
	assert_int_equal(err, 0);
	assert_int_equal(read_row(&s, b), 2);
	assert_int_equal(take(&s, a), 0);
	store_write_free(late);
	store_write_free(row);
	close_all(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TESTS_OF(two_of_one_name_share),
		TESTS_OF(who_has_all_renews_one_cell),
		TESTS_OF(clocks_nine_seconds_apart),
		TESTS_OF(who_comes_too_late_sees_what_was_taken),
		TESTS_OF(what_nobody_took_is_claimed_anew),
		TESTS_OF(a_session_that_is_gone_has_broken),
		TESTS_OF(what_the_version_before_wrote_is_taken),
		TESTS_OF(cells_that_cannot_be_read_disturb_nothing_else),
		TESTS_OF(a_clock_that_is_too_far_ahead_is_named),
		TESTS_OF(a_session_that_is_renewed_during_a_slow_read_is_not_ahead),
		TESTS_OF(a_job_runs_once_at_a_time),
		TESTS_OF(a_job_of_the_dead_is_free_when_their_session_has_ended),
		TESTS_OF(what_is_given_back_goes_by_any_version),
		TESTS_OF(what_another_has_is_not_given_back),
		cmocka_unit_test(who_was_frozen_overwrites_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
