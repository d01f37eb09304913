/* Settings of several processes that share a far store (contract/far.h): who may start, what stays
 * of what others have, and how backfill of one process reaches the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/random.h"
#include "contract/far.h"
#include "lease/session.h"
#include "marks/store.h"
#include "rollup/backfill.h"
#include "rollup/follower.h"
#include "rollup/shared_settings.h"
#include "rollup/site.h"
#include "stepped.h"
#include "store/wait.h"
#include "tools/long_run.h"

enum {
	PARTITIONS = 8,
	LEASE_MS = 30000,
	MEMBERS = 3,
	SEED_STEPS = 2500,
#ifdef __SANITIZE_ADDRESS__
	SEEDS = 1000,
#else
	SEEDS = 10000,
#endif
};

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   INT64_C(3600000)
#define DAY_MS    (24 * HOUR_MS)
#define SKEW_MS   (10 * SECOND_MS)
#define NOON_MS   INT64_C(1700049600000) /* 2023-11-15T12:00:00Z */

/* What a process is configured as. */
struct configured {
	uint32_t partitions;
	int64_t slot_ms, raw_ms, quiet_ms, skew_ms;
	const char *granularities[2], *rule, *suffix;
	bool late, redis;
};

static const struct configured usual = {.partitions = PARTITIONS,
					.slot_ms = HOUR_MS,
					.raw_ms = 7 * DAY_MS,
					.quiet_ms = 5 * MINUTE_MS,
					.skew_ms = SKEW_MS,
					.granularities = {"5m:14d", "1h"},
					.suffix = "_total"};

/* A process. */
struct member {
	struct store *store;
	struct task_queue queue;
	struct rollup_site site;
	struct configured configured;
	const char *suffixes[1], *rules[1];
	struct errbuf error;
	int err;
	/* Of the seeds. */
	struct stepped start;
	bool starts, runs;
};

static struct far *far;
static struct clock_virtual clock_;
static unsigned incarnations;

static int64_t now_ms(void)
{
	return clock_wall_ms(&clock_.clock);
}

static void advance(int64_t by_ms)
{
	clock_virtual_advance(&clock_, by_ms * 1000);
}

static void member_wait(struct task_queue *queue)
{
	do {
		pthread_mutex_unlock(&queue->lock);
		assert_true(far_step(far));
		pthread_mutex_lock(&queue->lock);
	} while (!queue->first);
}

/* ---- What has landed ------------------------------------------------------------------------- */

static const char *const row_names[] = {"retention-raw", "rollup-since", "settings"};

static int put_cell(const struct store_cell *cell, void *owner)
{
	struct buf *out = owner;
	buf_printf(out, "  " SHOWN " = ", SHOWN_OF(cell->column.part[0]));
	buf_append(out, cell->value.data, cell->value.len);
	buf_append_char(out, '\n');
	return 0;
}

/* To be freed. */
static char *stored(void)
{
	struct task_queue queue;
	struct buf out;
	struct errbuf e;
	task_queue_init(&queue);
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(row_names); i++) {
		const struct store_parts row = {{slice_of(row_names[i])}};
		buf_printf(&out, "%s\n", row_names[i]);
		assert_int_equal(store_row_wait(far_landed(far), &queue, now_ms(), TABLE_LEASES,
						&row, put_cell, &out, &e),
				 0);
	}
	task_queue_release(&queue);
	char *text = mem_copy_text(buf_slice(&out));
	buf_release(&out);
	return text;
}

static bool is_stored(const char *line)
{
	char *text = stored();
	bool is = strstr(text, line) != NULL;
	mem_free(text);
	return is;
}

/* A cell becomes `value`, whatever it is; NULL: it goes. */
static void set_cell(const char *row, const char *name, const char *value, int64_t expires_ms)
{
	const struct store_parts key = {{slice_of(row)}}, column = {{slice_of(name)}};
	struct task_queue queue;
	struct store_write *write = store_write_new(far_landed(far), 1 << 20);
	struct store_write_cond *outcome;
	uint64_t version = 0;
	task_queue_init(&queue);
	for (bool applied = false; !applied;) {
		store_write_reset(write);
		if (value)
			assert_int_equal(store_cell_put_if(write, TABLE_LEASES, &key, &column,
							   version, slice_of(value), expires_ms,
							   &outcome),
					 0);
		else
			assert_int_equal(store_cell_delete_if(write, TABLE_LEASES, &key, &column,
							      version ? version : 1, &outcome),
					 0);
		assert_int_equal(store_write_wait(write, &queue), 0);
		applied = outcome->applied || (!value && !outcome->version);
		version = outcome->version;
	}
	store_write_free(write);
	task_queue_release(&queue);
}

/* As whoever renews its session does, until `until_ms`; 0: it goes on being at work. */
static void be_at_work(const struct member *p, int64_t until_ms)
{
	const struct session_cell cell = {.holder = slice_of(p->site.name),
					  .name = slice_of(p->site.name),
					  .address = SLICE(""),
					  .until_ms = until_ms ? until_ms : INT64_MAX / 2};
	struct buf value;
	buf_init(&value, 4096);
	session_cell_put(&cell, &value);
	buf_append_char(&value, 0);
	set_cell("session", p->site.name, value.data, 0);
	buf_release(&value);
}

static void leave(const struct member *p)
{
	set_cell("session", p->site.name, NULL, 0);
}

/* From now on the store is not empty. */
static void register_series(void)
{
	static const struct slice metric = SLICE("m");
	struct task_queue queue;
	task_queue_init(&queue);
	struct store_read *read = store_read_new(far_landed(far), 1 << 20);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open =
		(struct store_series_open){.tenant = SLICE("t"), .metrics = &metric, .count = 1};
	read->now_ms = now_ms();
	assert_int_equal(store_read_wait(read, &queue), 0);
	store_read_free(read);
	task_queue_release(&queue);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void member_configure(struct member *p)
{
	const struct configured *c = &p->configured;
	struct rollup_site *site = &p->site;
	size_t count = 1 + (c->granularities[1] != NULL);
	*site = (struct rollup_site){
		.store = p->store,
		.clock = &clock_.clock,
		.partitions = c->partitions,
		.quiet_ms = c->quiet_ms,
		.skew_max_ms = c->skew_ms,
		.ahead_ms = HOUR_MS,
		.counter_suffixes = p->suffixes,
		.counter_suffix_count = c->suffix != NULL,
	};
	p->suffixes[0] = c->suffix;
	p->rules[0] = c->rule;
	assert_int_equal(granularities_parse(c->granularities, count, c->slot_ms,
					     &site->granularities, &p->error),
			 0);
	assert_int_equal(retention_parse(p->rules, c->rule != NULL, &site->granularities,
					 c->slot_ms, &site->retention, &p->error),
			 0);
	site->retention.levels_ms[0] = c->raw_ms;
	site->retention.keeps_late = c->late;
	site->retention.late.kept_ms = retention_longest_ms(&site->retention, &site->granularities);
	snprintf(site->redis.host, sizeof(site->redis.host), "%s", c->redis ? "redis" : "");
	snprintf(site->name, sizeof(site->name), "host-%u", ++incarnations);
	site->session = lease_session_new(&(struct lease_session_options){
		.store = p->store,
		.clock = &clock_.clock,
		.holder = slice_of(site->name),
		.name = slice_of(site->name),
		.lease_ms = HOUR_MS,
		.skew_max_ms = c->skew_ms,
	});
}

static void member_open(struct member *p, struct configured configured)
{
	*p = (struct member){.configured = configured};
	p->store = far_open(far, &clock_.clock, 0);
	task_queue_init(&p->queue);
	p->queue.wait = member_wait;
	member_configure(p);
	be_at_work(p, 0);
}

/* Whether it has started. */
static bool member_start(struct member *p, struct configured configured)
{
	member_open(p, configured);
	p->err = stored_settings_settle(&p->site, &p->queue, now_ms(), &p->error);
	if (p->err)
		leave(p);
	return !p->err;
}

static void member_close(struct member *p)
{
	stored_settings_release(&p->site.settings);
	while (far_step(far))
		;
	lease_session_free(p->site.session);
	store_close(p->store);
	task_queue_release(&p->queue);
}

static void member_stop(struct member *p)
{
	leave(p);
	member_close(p);
}

static void world_open(uint64_t seed)
{
	static const struct far_faults none;
	clock_virtual_init(&clock_, NOON_MS * 1000);
	far = far_new(&clock_.clock, seed, &none);
	incarnations = 0;
}

/* ---- Who may start --------------------------------------------------------------------------- */

/* Each option that all have in common. */
static void another_configuration_is_refused_while_one_is_at_work(void **state)
{
	(void)state;
	struct configured others[10];
	static const char *const sentences[] = {
		"rollup.partitions is 8 in the store and 9 here,",
		"rollup.slot is 1h in the store and 2h here,",
		"rollup.granularities is 5m:14d,1h:0 in the store and 5m:14d here,",
		"retention.raw is 7d in the store and 8d here,",
		"retention.rules is empty in the store and t/*/raw:2d here,",
		"rollup.counter_suffixes is _total in the store and _count here,",
		"rollup.quiet is 5m in the store and 6m here,",
		"rollup.clock_difference is 10s in the store and 5s here,",
		"rollup.late is refuse in the store and keep here,",
		"rollup.tracking is store in the store and redis here,",
	};
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		others[i] = usual;
	others[0].partitions = 9;
	others[1].slot_ms = 2 * HOUR_MS;
	others[2].granularities[1] = NULL;
	others[3].raw_ms = 8 * DAY_MS;
	others[4].rule = "t/*/raw:2d";
	others[5].suffix = "_count";
	others[6].quiet_ms = 6 * MINUTE_MS;
	others[7].skew_ms = SKEW_MS / 2;
	others[8].late = true;
	others[9].redis = true;
	struct member first, second;
	world_open(1);
	assert_true(member_start(&first, usual));
	register_series();
	char *before = stored();
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		advance(HOUR_MS);
		assert_false(member_start(&second, others[i]));
		assert_int_equal(second.err, ERR_INVALID);
		assert_true(strstr(second.error.text, sentences[i]) == second.error.text);
		assert_non_null(strstr(second.error.text,
				       "host-1 is at work with the stored value: start with that, "
				       "or stop all processes and start one with the new value"));
		member_close(&second);
		char *after = stored();
		assert_string_equal(after, before);
		mem_free(after);
	}
	assert_true(member_start(&second, usual));
	char *after = stored();
	assert_string_equal(after, before);
	mem_free(after);
	mem_free(before);
	member_stop(&second);
	member_stop(&first);
	far_free(far);
}

static void how_many_more_differ_is_said(void **state)
{
	(void)state;
	struct configured other = usual;
	struct member first, second;
	world_open(1);
	assert_true(member_start(&first, usual));
	other.partitions = 9;
	other.suffix = "a\\b\nc";
	other.raw_ms = 0;
	assert_false(member_start(&second, other));
	assert_non_null(strstr(second.error.text, "8 in the store and 9 here (and 2 more), and"));
	member_close(&second);
	leave(&first);
	member_close(&first);
	assert_true(member_start(&second, other));
	assert_true(is_stored("rollup.counter_suffixes a\\\\b\\nc\n"));
	assert_true(is_stored("retention.raw 0\n"));
	member_stop(&second);
	far_free(far);
}

/* A rolling restart: nothing of what the first have goes while one of them is left, or may be. */
static void a_rolling_restart_changes_nothing(void **state)
{
	(void)state;
	struct configured other = usual;
	struct member first, second, third;
	other.granularities[1] = NULL;
	other.suffix = "_count";
	other.raw_ms = 14 * DAY_MS;
	world_open(1);
	assert_true(member_start(&first, usual));
	assert_true(member_start(&second, usual));
	register_series();
	char *before = stored();
	member_stop(&first);
	assert_false(member_start(&third, other));
	member_close(&third);
	be_at_work(&second, now_ms() + LEASE_MS); /* it is killed */
	advance(LEASE_MS + SKEW_MS - 1);
	assert_false(member_start(&third, other));
	member_close(&third);
	char *after = stored();
	assert_string_equal(after, before);
	mem_free(after);
	mem_free(before);
	advance(1);
	assert_true(member_start(&third, other));
	assert_false(is_stored("  1h = "));
	assert_true(is_stored("  5m = 0\n"));
	assert_true(is_stored("  counters = _count\n"));
	assert_true(third.site.retention.raise.until_ms == now_ms() + HOUR_MS);
	assert_false(member_start(&first, usual));
	assert_non_null(strstr(first.error.text, "5m:14d in the store and 5m:14d,1h:0 here"));
	member_close(&first);
	assert_true(member_start(&first, other));
	assert_memory_equal(&first.site.retention.raise, &third.site.retention.raise,
			    sizeof(first.site.retention.raise));
	assert_true(stored_settings_recount_ms(&first.site.settings, SLICE("x_count")) ==
		    stored_settings_recount_ms(&third.site.settings, SLICE("x_count")));
	member_close(&second);
	member_stop(&first);
	member_stop(&third);
	far_free(far);
}

/* Somebody was about to begin with a granularity more, and ended; its cell came when others were at
 * work, who have nothing of that granularity. */
static void a_cell_that_comes_late_counts_for_nothing(void **state)
{
	(void)state;
	struct configured without = usual;
	struct member first, second;
	without.granularities[1] = NULL;
	world_open(1);
	assert_true(member_start(&first, without));
	register_series();
	set_cell("rollup-since", "1h", "1700046000000", 0);
	advance(3 * HOUR_MS);
	member_stop(&first);
	assert_true(member_start(&second, usual));
	assert_true(second.site.settings.since_ms[1] == NOON_MS + 4 * HOUR_MS);
	assert_true(is_stored("  1h = 1700064000000\n"));
	member_stop(&second);
	far_free(far);
}

/* A process that nobody could see has another configuration, or one that was started beside it: it
 * rolls nothing up. */
static void settings_that_others_change_are_seen(void **state)
{
	(void)state;
	struct configured other = usual;
	struct member first, second;
	unsigned rebuilt;
	other.quiet_ms = HOUR_MS;
	world_open(1);
	assert_true(member_start(&first, usual));
	assert_int_equal(stored_settings_follow(&first.site, &first.queue, &rebuilt), 0);
	assert_false(first.site.settings.are_others);
	leave(&first);
	assert_true(member_start(&second, other));
	assert_int_equal(stored_settings_follow(&first.site, &first.queue, &rebuilt), 0);
	assert_true(first.site.settings.are_others);
	assert_int_equal(stored_settings_follow(&second.site, &second.queue, &rebuilt), 0);
	assert_false(second.site.settings.are_others);
	member_stop(&second);
	member_close(&first);
	far_free(far);
}

/* ---- Seeds ----------------------------------------------------------------------------------- */

/* Processes with two configurations are started, stopped and killed at any moment; outcomes are not
 * learned and conditions land late. */
struct seeded {
	struct random random;
	struct member members[MEMBERS];
	/* Until when somebody was at work without the second granularity. */
	int64_t without_ms;
	size_t started, refused, changed;
	const struct configured *last;
};

static struct configured few, many;

static void seeded_run_start(struct task_queue *queue, void *owner)
{
	struct member *p = owner;
	p->err = stored_settings_settle(&p->site, queue, now_ms(), &p->error);
}

static bool is_many(const struct member *p)
{
	return p->configured.granularities[1] != NULL;
}

static void seeded_note_time(struct seeded *s)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		if (s->members[i].runs && !is_many(&s->members[i]))
			s->without_ms = now_ms();
	}
}

/* The store remembers the configuration of who is at work. A cell of a granularity more is one of
 * somebody who has ended. */
static void seeded_expect_stored(const struct member *p)
{
	assert_true(is_stored("  5s = 0\n"));
	assert_true(!is_many(p) || is_stored("  10s = "));
	assert_true(is_stored(is_many(p) ? "  counters = _total\n" : "  counters = _count\n"));
}

/* All that are at work have the same configuration, and believe the same. */
static void seeded_judge(struct seeded *s, const struct member *p)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		const struct member *other = &s->members[i];
		if (other == p || !other->runs)
			continue;
		assert_true(is_many(other) == is_many(p));
		for (size_t g = 0; g < p->site.granularities.count; g++)
			assert_true(other->site.settings.since_ms[g] ==
				    p->site.settings.since_ms[g]);
	}
	assert_true(p->site.settings.since_ms[0] == 0);
	assert_true(!is_many(p) || p->site.settings.since_ms[1] > s->without_ms);
	seeded_expect_stored(p);
}

static void seeded_finish_start(struct seeded *s, struct member *p)
{
	const struct configured *of = is_many(p) ? &many : &few;
	stepped_release(&p->start);
	p->starts = false;
	p->runs = !p->err;
	if (!p->err) {
		s->started++;
		s->changed += s->last && s->last != of;
		s->last = of;
		seeded_judge(s, p);
		return;
	}
	s->refused += p->err == ERR_INVALID;
	assert_true(p->err == ERR_INVALID || p->err == ERR_UNKNOWN || p->err == ERR_BUSY ||
		    p->err == ERR_RETRY);
	leave(p);
	stored_settings_release(&p->site.settings);
	lease_session_free(p->site.session);
	far_kill(p->store);
	store_close(p->store);
	task_queue_release(&p->queue);
	p->store = NULL;
}

static void seeded_begin(struct seeded *s, struct member *p)
{
	member_open(p, random_below(&s->random, 3) ? many : few);
	p->starts = true;
	stepped_start(&p->start, seeded_run_start, p);
}

/* It ends as it should, or is killed, and then seems to be at work for a while. */
static void seeded_end(struct member *p, bool killed)
{
	if (p->runs)
		seeded_expect_stored(p);
	if (killed)
		be_at_work(p, now_ms() + LEASE_MS);
	else
		leave(p);
	far_kill(p->store);
	while (p->starts && stepped_step(&p->start))
		;
	if (p->starts)
		stepped_release(&p->start);
	stored_settings_release(&p->site.settings);
	lease_session_free(p->site.session);
	store_close(p->store);
	task_queue_release(&p->queue);
	*p = (struct member){0};
}

static void seeded_end_all(struct seeded *s)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		if (s->members[i].store)
			seeded_end(&s->members[i], false);
	}
}

static void seeded_step(struct seeded *s)
{
	struct member *p = &s->members[random_below(&s->random, MEMBERS)];
	uint64_t kind = random_below(&s->random, 1000);
	if (kind < 500)
		(void)far_step(far);
	else if (kind < 900 && p->starts && stepped_ready(&p->start))
		(void)stepped_step(&p->start);
	else if (kind >= 900 && kind < 910 && !p->store)
		seeded_begin(s, p);
	else if (kind >= 940 && kind < 946 && p->store)
		seeded_end(p, kind < 943 || p->starts);
	else if (kind >= 960 && kind < 980)
		advance((int64_t)random_below(&s->random, 20000));
	else if (kind >= 980 && kind < 986)
		seeded_end_all(s);
	else if (kind >= 986 && p->starts)
		seeded_end(p, false);
	if (p->starts && stepped_over(&p->start))
		seeded_finish_start(s, p);
	seeded_note_time(s);
}

static void whoever_starts_when_one_configuration_is_at_work(void **state)
{
	struct seeded sum = {0};
	size_t seeds = long_run() ? 100000 : SEEDS;
	(void)state;
	many = usual;
	many.slot_ms = 10 * SECOND_MS;
	many.granularities[0] = "5s";
	many.granularities[1] = "10s";
	few = many;
	few.granularities[1] = NULL;
	few.suffix = "_count";
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct seeded *s = mem_zalloc(sizeof(*s));
		random_init(&s->random, seed);
		world_open(seed);
		member_start(&s->members[0], few);
		member_stop(&s->members[0]);
		s->members[0] = (struct member){0};
		register_series();
		s->without_ms = now_ms();
		if (seed % 2)
			far_set_faults(far, &(struct far_faults){
						    (unsigned)random_below(&s->random, 100),
						    (unsigned)random_below(&s->random, 30), 0,
						    (unsigned)random_below(&s->random, 1000)});
		for (size_t step = 0; step < SEED_STEPS; step++)
			seeded_step(s);
		seeded_end_all(s);
		sum.started += s->started;
		sum.refused += s->refused;
		sum.changed += s->changed;
		mem_free(s);
		far_free(far);
	}
	print_message("%zu starts, %zu refused, %zu changes\n", sum.started, sum.refused,
		      sum.changed);
	assert_true(sum.started > seeds && sum.refused > seeds && sum.changed > seeds / 2);
}

/* ---- Backfill -------------------------------------------------------------------------------- */

/* Two that roll up half of the partitions each, and one that only answers queries; since noon they
 * have a granularity of an hour more. */
struct cluster {
	struct member members[3];
};

static void cluster_open(struct cluster *c, struct configured configured, uint64_t seed)
{
	struct configured before = usual;
	struct member first;
	before.granularities[1] = NULL;
	before.suffix = "_count";
	before.raw_ms = configured.raw_ms;
	world_open(seed);
	assert_true(member_start(&first, before));
	register_series();
	member_stop(&first);
	for (size_t i = 0; i < 3; i++) {
		struct member *p = &c->members[i];
		assert_true(member_start(p, configured));
		p->site.marks = marks_store_open(
			&(struct marks_store_options){.store = p->store,
						      .writer = slice_of(p->site.name),
						      .clock = &clock_.clock,
						      .late_ms = HOUR_MS});
		p->site.backfill = backfill_new(&p->site);
		assert_true(p->site.settings.since_ms[0] == 0);
		assert_true(p->site.settings.since_ms[1] == NOON_MS + HOUR_MS);
		assert_true(stored_settings_recount_last_ms(&p->site.settings) ==
			    NOON_MS + HOUR_MS);
	}
}

static void cluster_close(struct cluster *c)
{
	for (size_t i = 0; i < 3; i++) {
		marks_close(c->members[i].site.marks);
		backfill_free(c->members[i].site.backfill);
		member_stop(&c->members[i]);
	}
	far_free(far);
}

static void pass(struct member *p)
{
	backfill_begin_pass(p->site.backfill);
	backfill_end_pass(p->site.backfill, &p->queue, 0);
}

static bool is_all_rolled_up(const struct member *p)
{
	return !p->site.settings.since_ms[1] && !stored_settings_recount_last_ms(&p->site.settings);
}

/* A series is marked at eleven, in partition 5. */
static void mark(struct member *p)
{
	const struct mark_touch touch = {.slot = {(NOON_MS - HOUR_MS) / 1000, 5},
					 .tenant = SLICE("t"),
					 .series_set = {SLICE("m"), {0}}};
	assert_int_equal(marks_mark_wait(p->site.marks, &p->queue, now_ms(), &touch, 1), 0);
}

static void roll_up(struct member *p)
{
	const struct mark_slot slot = {(NOON_MS - HOUR_MS) / 1000, 5};
	struct marks_reading reading = {
		.marks = p->site.marks, .slots = &slot, .slot_count = 1, .settled_ms = now_ms()};
	advance(1);
	reading.settled_ms = now_ms();
	while (!reading.over) {
		assert_int_equal(marks_read(&reading, &p->queue, now_ms()), 0);
		for (size_t i = 0; i < reading.count; i++)
			reading.part[i].finished = true;
		assert_int_equal(marks_finish(&reading, &p->queue), 0);
	}
	marks_reading_release(&reading);
}

static struct configured for_ever(void)
{
	struct configured configured = usual;
	configured.raw_ms = 0;
	return configured;
}

/* The process that answers queries made the marks. A pass of the one that has no marks of them says
 * nothing of the other's. */
static void backfill_ends_when_no_process_has_marks_left(void **state)
{
	(void)state;
	struct cluster c;
	struct member *a = &c.members[0], *b = &c.members[1], *reader = &c.members[2];
	cluster_open(&c, for_ever(), 1);
	pass(a);
	mark(reader);
	backfill_rebuilt(reader->site.backfill, &reader->queue);
	assert_true(is_stored("  1h = 1700053200000 rebuilt\n"));
	pass(a); /* had begun before it knew */
	pass(a);
	pass(b);
	pass(b);
	assert_false(is_all_rolled_up(a) || is_all_rolled_up(b));
	roll_up(b);
	pass(a);
	assert_true(is_all_rolled_up(a));
	assert_true(is_stored("  1h = 0\n"));
	assert_false(is_stored("  recount"));
	assert_false(is_all_rolled_up(reader) || is_all_rolled_up(b));
	backfill_look(reader->site.backfill, &reader->queue);
	assert_true(is_all_rolled_up(reader));
	pass(b);
	assert_true(is_all_rolled_up(b));
	cluster_close(&c);
}

/* Each notes the end, at once; nothing is begun anew by the second. */
static void backfill_may_end_in_two_processes(void **state)
{
	(void)state;
	for (uint64_t order = 0; order < 2; order++) {
		struct cluster c;
		struct member *a = &c.members[0], *b = &c.members[1];
		cluster_open(&c, for_ever(), 1);
		backfill_rebuilt(a->site.backfill, &a->queue);
		pass(b);
		/* Both have found that it is at its end, and read the cells. */
		assert_int_equal(stored_settings_note(&b->site, &b->queue, 6, true), 0);
		assert_true(is_stored("  1h = 0\n"));
		assert_int_equal(stored_settings_note(&a->site, &a->queue, 6, true), 0);
		assert_int_equal(stored_settings_note(&a->site, &a->queue, 6, false), 0);
		assert_true(is_stored("  1h = 0\n"));
		assert_false(is_stored("  recount"));
		pass(order ? a : b);
		pass(order ? b : a);
		assert_true(is_all_rolled_up(a) && is_all_rolled_up(b));
		cluster_close(&c);
	}
}

/* A process that stood still while all others were stopped and others started: what it knows is not
 * what stands there. */
static void an_end_of_before_is_not_noted(void **state)
{
	(void)state;
	struct cluster c;
	struct member *a = &c.members[0];
	cluster_open(&c, for_ever(), 1);
	backfill_rebuilt(a->site.backfill, &a->queue);
	set_cell("rollup-since", "1h", "1700060400000 rebuilt", 0);
	assert_int_equal(stored_settings_note(&a->site, &a->queue, 2, true), ERR_EXISTS);
	set_cell("rollup-since", "1h", "1700053200000", 0);
	assert_int_equal(stored_settings_note(&a->site, &a->queue, 2, true), ERR_EXISTS);
	pass(a);
	pass(a);
	assert_true(is_stored("  1h = 1700053200000\n"));
	assert_true(a->site.settings.since_ms[1] == NOON_MS + HOUR_MS);
	cluster_close(&c);
}

/* Raw data is kept for a week: the slots that were closed have to be gone, by the clock of whoever
 * ends it, also when the one that waited first was killed. */
static void another_process_waits_to_the_end(void **state)
{
	(void)state;
	struct cluster c;
	struct member *a = &c.members[0], *b = &c.members[1];
	cluster_open(&c, usual, 1);
	backfill_rebuilt(a->site.backfill, &a->queue);
	pass(a);
	pass(a);
	pass(b);
	pass(b);
	advance(HOUR_MS - 1);
	pass(b);
	assert_false(is_all_rolled_up(b));
	advance(1);
	pass(b);
	assert_true(is_all_rolled_up(b));
	backfill_look(a->site.backfill, &a->queue);
	assert_true(is_all_rolled_up(a));
	cluster_close(&c);
}

/* What became of a start or of the note is not learned, or another's comes between: it is read
 * again. */
static void outcomes_that_are_not_learned(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct cluster c;
		struct member *a = &c.members[0], *b = &c.members[1];
		cluster_open(&c, for_ever(), seed);
		struct member fourth;
		far_set_faults(far, &(struct far_faults){200, 0, 0, 500});
		assert_true(member_start(&fourth, for_ever()));
		member_stop(&fourth);
		far_set_faults(far, &(struct far_faults){400, 0, 0, 500});
		backfill_rebuilt(a->site.backfill, &a->queue);
		for (int i = 0; i < 40; i++) {
			pass(a);
			pass(b);
		}
		assert_true(is_all_rolled_up(a) && is_all_rolled_up(b));
		assert_true(is_stored("  1h = 0\n"));
		assert_false(is_stored("  recount"));
		far_set_faults(far, &(struct far_faults){0});
		cluster_close(&c);
	}
}

static void note_others(void *owner)
{
	*(bool *)owner = true;
}

/* Until it is over; the store goes on meanwhile. */
static void wait_for_follower(struct rollup_follower *follower, struct task_queue *loop)
{
	while (!rollup_follower_is_over(follower)) {
		(void)far_step(far);
		task_queue_run(loop);
	}
	rollup_follower_free(follower);
}

/* It ends when it is asked to, or when the settings are others. Where one process has the store
 * there is none. */
static void the_follower_ends(void **state)
{
	(void)state;
	struct cluster c;
	struct member other, *p = &c.members[2];
	struct configured with_other = usual;
	struct task_queue loop;
	struct rollup_site of_one = {.store = NULL};
	bool others = false;
	cluster_open(&c, usual, 1);
	task_queue_init(&loop);
	struct rollup_follower *follower =
		rollup_follower_new(&p->site, &loop.executor, note_others, &others);
	assert_false(rollup_follower_is_over(follower));
	rollup_follower_stop(follower);
	wait_for_follower(follower, &loop);
	assert_false(others);
	for (size_t i = 0; i < 3; i++)
		leave(&c.members[i]); /* they stand still, say */
	with_other.quiet_ms = HOUR_MS;
	assert_true(member_start(&other, with_other));
	follower = rollup_follower_new(&p->site, &loop.executor, note_others, &others);
	wait_for_follower(follower, &loop);
	assert_true(others);
	of_one.store = far_landed(far);
	assert_null(rollup_follower_new(&of_one, &loop.executor, note_others, &others));
	task_queue_release(&loop);
	member_stop(&other);
	cluster_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_configuration_is_refused_while_one_is_at_work),
		cmocka_unit_test(how_many_more_differ_is_said),
		cmocka_unit_test(a_rolling_restart_changes_nothing),
		cmocka_unit_test(a_cell_that_comes_late_counts_for_nothing),
		cmocka_unit_test(settings_that_others_change_are_seen),
		cmocka_unit_test(whoever_starts_when_one_configuration_is_at_work),
		cmocka_unit_test(backfill_ends_when_no_process_has_marks_left),
		cmocka_unit_test(backfill_may_end_in_two_processes),
		cmocka_unit_test(an_end_of_before_is_not_noted),
		cmocka_unit_test(another_process_waits_to_the_end),
		cmocka_unit_test(outcomes_that_are_not_learned),
		cmocka_unit_test(the_follower_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
