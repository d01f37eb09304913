/* Quotas: the spans, on times worked out by hand; and processes on a far store that tell each other
 * what they have taken of one. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/stats.h"
#include "contract/far.h"
#include "fault/projects.h"
#include "store/wait.h"

/* 2023-11-14 22:13:20 UTC: 40 s before the end of its minute, 46 min 40 s before that of its hour,
 * 1 h 46 min 40 s before that of its day. */
#define T          INT64_C(1700000000000)
#define MINUTE_END (T + 40000)
#define HOUR_END   (T + 2800000)
#define DAY_END    (T + 6400000)
#define YEAR_MS    (INT64_C(366) * 86400000)

/* ---- Spans ----------------------------------------------------------------------------------- */

static const struct fault_quota nothing;
static enum fault_span full;

static void spans_are_those_of_the_wall_clock(void **state)
{
	(void)state;
	const struct fault_quota_limits limits = {{2, 3, 100}};
	struct fault_quota own = {0};
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, T, &full), 0);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, T, &full), 0);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, T, &full), 40000);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, MINUTE_END - 1, &full), 1);
	assert_int_equal(full, FAULT_MINUTE);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, MINUTE_END, &full), 0);
	/* Three in this hour; in the minute there would be room. */
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, MINUTE_END, &full), 2760000);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, HOUR_END - 1, &full), 1);
	assert_int_equal(full, FAULT_HOUR);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, HOUR_END, &full), 0);
	assert_int_equal(fault_quota_take_bytes(&own, &nothing, &limits, HOUR_END, 99), 0);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, HOUR_END, &full), 0);
	/* The last one may be too large. */
	assert_int_equal(fault_quota_take_bytes(&own, &nothing, &limits, HOUR_END, 500), 0);
	assert_int_equal(fault_quota_take_bytes(&own, &nothing, &limits, HOUR_END, 1), 3600000);
	assert_true(own.used[FAULT_DAY] == 599);
	/* The minute is full, too, until 23:01. */
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, HOUR_END, &full), 3600000);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, DAY_END - 1, &full), 1);
	assert_int_equal(full, FAULT_DAY);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, DAY_END, &full), 0);
}

static void no_limit_is_any_number(void **state)
{
	(void)state;
	const struct fault_quota_limits none = {{0}};
	struct fault_quota own = {0};
	for (int i = 0; i < 1000; i++)
		assert_int_equal(fault_quota_take(&own, &nothing, &none, T, &full), 0);
	assert_true(fault_quota_end_ms(&none, T) == INT64_MIN);
}

/* What others took of the same hour counts, also if it was in another minute. */
static void others_count_in_the_same_spans(void **state)
{
	(void)state;
	const struct fault_quota_limits limits = {{10, 20, 0}};
	const struct fault_quota others = {.at_ms = T, .used = {9, 18, 1 << 20}};
	struct fault_quota own = {0};
	assert_int_equal(fault_quota_take(&own, &others, &limits, T, &full), 0);
	assert_int_equal(fault_quota_take(&own, &others, &limits, T, &full), 40000);
	assert_int_equal(fault_quota_take(&own, &others, &limits, MINUTE_END, &full), 0);
	assert_int_equal(fault_quota_take(&own, &others, &limits, MINUTE_END, &full), 2760000);
	assert_int_equal(fault_quota_take(&own, &others, &limits, HOUR_END, &full), 0);
	/* A sum has its own spans, and takes what is of them. */
	struct fault_quota sum = {.at_ms = MINUTE_END, .used = {1, 1, 1}};
	fault_quota_add(&sum, &others);
	assert_int_equal(sum.used[FAULT_MINUTE], 1);
	assert_int_equal(sum.used[FAULT_HOUR], 19);
	assert_int_equal(sum.used[FAULT_DAY], 1 + (1 << 20));
}

static void numbers_that_are_too_large_stay_the_largest(void **state)
{
	(void)state;
	const struct fault_quota_limits limits = {{1000, 1000, 1000}};
	const struct fault_quota others = {.at_ms = T, .used = {0, 0, UINT64_MAX}};
	struct fault_quota own = {0};
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, T, &full), 0);
	const struct fault_quota_limits none = {{0}};
	assert_int_equal(fault_quota_take_bytes(&own, &nothing, &none, T, UINT64_MAX), 0);
	assert_int_equal(fault_quota_take_bytes(&own, &nothing, &none, T, 2), 0);
	assert_true(own.used[FAULT_DAY] == UINT64_MAX);
	assert_int_equal(fault_quota_take(&own, &others, &limits, T, &full), 6400000);
}

/* Nobody waits for a year, nor for ever. */
static void a_clock_that_is_set_is_in_other_spans(void **state)
{
	(void)state;
	const struct fault_quota_limits limits = {{0, 1, 0}};
	for (int sign = -1; sign <= 1; sign += 2) {
		struct fault_quota own = {0};
		const struct fault_quota others = {.at_ms = T, .used = {5, 5, 5}};
		int64_t set_ms = T + sign * YEAR_MS;
		assert_int_equal(fault_quota_take(&own, &nothing, &limits, T, &full), 0);
		assert_int_equal(fault_quota_take(&own, &others, &limits, T, &full), 2800000);
		assert_int_equal(fault_quota_take(&own, &others, &limits, set_ms, &full), 0);
		assert_int_equal(fault_quota_take(&own, &others, &limits, set_ms, &full), 2800000);
		/* Back again: what the others said is true again. */
		assert_int_equal(fault_quota_take(&own, &others, &limits, T, &full), 2800000);
		assert_int_equal(fault_quota_take(&own, &nothing, &limits, T, &full), 0);
	}
	/* Before 1970 spans begin where they begin ever after. */
	struct fault_quota own = {0};
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, -2, &full), 0);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, -1, &full), 1);
	assert_int_equal(fault_quota_take(&own, &nothing, &limits, 0, &full), 0);
}

static void a_cell_stays_until_the_longest_span_ends(void **state)
{
	(void)state;
	const struct fault_quota_limits minute = {{1, 0, 0}}, hour = {{1, 1, 0}}, day = {{0, 0, 1}};
	assert_int_equal(fault_quota_end_ms(&minute, T), MINUTE_END);
	assert_int_equal(fault_quota_end_ms(&minute, MINUTE_END), MINUTE_END + 60000);
	assert_int_equal(fault_quota_end_ms(&hour, T), HOUR_END);
	assert_int_equal(fault_quota_end_ms(&day, T), DAY_END);
}

/* T is 0x18bcfe56800; 300 is 2 * 128 + 44. The second one: 1 request. */
#define CELL        "\x01\x00\x68\xe5\xcf\x8b\x01\x00\x00\x05\xac\x02\x00"
#define CELL_OF_ONE "\x01\x00\x68\xe5\xcf\x8b\x01\x00\x00\x01\x01\x00"

static void cells(void **state)
{
	(void)state;
	const struct fault_quota quota = {.at_ms = T, .used = {5, 300, 0}};
	struct fault_quota again;
	struct buf bytes;
	buf_init(&bytes, 64);
	fault_quota_encode(&quota, &bytes);
	assert_int_equal(bytes.len, sizeof(CELL) - 1);
	assert_memory_equal(bytes.data, CELL, bytes.len);
	assert_int_equal(fault_quota_decode(buf_slice(&bytes), &again), 0);
	assert_memory_equal(&again, &quota, sizeof(quota));
	for (size_t len = 0; len < bytes.len; len++)
		assert_int_equal(fault_quota_decode((struct slice){CELL, len}, &again),
				 ERR_DAMAGED);
	assert_int_equal(fault_quota_decode((struct slice){CELL, sizeof(CELL)}, &again),
			 ERR_DAMAGED);
	bytes.data[0] = 2;
	assert_int_equal(fault_quota_decode(buf_slice(&bytes), &again), ERR_VERSION);
	buf_release(&bytes);
}

/* ---- Processes ------------------------------------------------------------------------------- */

enum { PROCESSES = 3 };

struct process_clock {
	struct clock clock;
	struct clock_virtual *of;
	int64_t off_ms;
};

struct process {
	struct process_clock clock;
	struct store *store;
	struct fault_projects *projects; /* NULL: it is not there */
};

static struct world {
	struct clock_virtual clock;
	struct task_queue queue;
	struct far *far;
	pthread_t thread;
	struct fault_quota_limits limits;
	struct process a, b, c;
} w;

static int64_t process_wall_us(struct clock *clock)
{
	struct process_clock *own = CONTAINER_OF(clock, struct process_clock, clock);
	return own->of->clock.wall_us(&own->of->clock) + own->off_ms * 1000;
}

static int64_t process_mono_us(struct clock *clock)
{
	struct process_clock *own = CONTAINER_OF(clock, struct process_clock, clock);
	return own->of->clock.mono_us(&own->of->clock);
}

static int start(void **state)
{
	static const struct far_faults none;
	(void)state;
	w = (struct world){.limits = {{0, 10, 0}}};
	clock_virtual_init(&w.clock, T * 1000);
	task_queue_init(&w.queue);
	w.far = far_new(&w.clock.clock, 1, &none);
	assert_int_equal(pthread_create(&w.thread, NULL, far_run, w.far), 0);
	return 0;
}

static void set_faults(struct far_faults faults)
{
	far_set_faults(w.far, &faults);
}

static int exchange(struct process *p)
{
	struct errbuf e = {""};
	int err = fault_projects_exchange_quotas(p->projects, &w.queue, &e);
	assert_int_equal(err != 0, e.text[0] != 0);
	return err;
}

static void open_projects(struct process *p, int64_t off_ms)
{
	struct errbuf e = {""};
	p->clock = (struct process_clock){
		{.wall_us = process_wall_us, .mono_us = process_mono_us}, &w.clock, off_ms};
	p->store = far_open(w.far, &p->clock.clock, 0);
	p->projects = fault_projects_new(p->store, &p->clock.clock, &w.limits);
	assert_int_equal(fault_projects_open(p->projects, &w.queue, &e), 0);
}

static void begin(struct process *p, int64_t off_ms)
{
	open_projects(p, off_ms);
	assert_int_equal(exchange(p), 0);
}

static void finish(struct process *p)
{
	if (p->store)
		store_close(p->store);
	fault_projects_free(p->projects);
	*p = (struct process){.store = NULL};
}

static int end(void **state)
{
	(void)state;
	finish(&w.a);
	finish(&w.b);
	finish(&w.c);
	far_stop(w.far);
	pthread_join(w.thread, NULL);
	far_free(w.far);
	task_queue_release(&w.queue);
	return 0;
}

static int64_t take(struct process *p)
{
	return fault_projects_take_quota(p->projects, 1, &full);
}

static void take_all(struct process *p, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(take(p), 0);
}

/* The cells of the tenant's row, as they are now. */
struct row {
	size_t count;
	int64_t stamp_us, expires_ms; /* of the last one */
};

static int see_cell(const struct store_cell *cell, void *owner)
{
	struct row *row = owner;
	*row = (struct row){row->count + 1, cell->stamp_us, cell->expires_ms};
	return 0;
}

static struct row read_row(struct process *p)
{
	const struct store_parts key = {{SLICE("default")}};
	struct row row = {0};
	struct errbuf e = {""};
	assert_int_equal(store_row_wait(p->store, &w.queue, clock_wall_ms(&w.clock.clock),
					TABLE_FAULT_QUOTAS, &key, see_cell, &row, &e),
			 0);
	return row;
}

static void put_note(struct process *p, const char *column, struct slice value)
{
	const struct store_parts key = {{SLICE("default")}}, columns = {{slice_of(column)}};
	struct store_write *write = store_write_new(p->store, 1 << 16);
	assert_int_equal(store_cell_put(write, TABLE_FAULT_QUOTAS, &key, &columns, value,
					store_stamp(p->store), 0),
			 0);
	assert_int_equal(store_write_wait(write, &w.queue), 0);
	store_write_free(write);
}

static void a_quota_is_of_all_processes(void **state)
{
	(void)state;
	begin(&w.a, 0);
	begin(&w.b, 0);
	take_all(&w.a, 4);
	take_all(&w.b, 5);
	assert_int_equal(exchange(&w.a), 0);
	assert_int_equal(exchange(&w.b), 0); /* it knows of the four */
	take_all(&w.b, 1);
	assert_int_equal(take(&w.b), 2800000);
	assert_int_equal(exchange(&w.b), 0);
	/* Nobody asked a since, so it has heard of nothing; it is asked, and hears. */
	take_all(&w.a, 1);
	assert_int_equal(exchange(&w.a), 0);
	assert_int_equal(take(&w.a), 2800000);
	/* Who comes later has heard of all, before anybody asked. */
	begin(&w.c, 0);
	assert_int_equal(take(&w.c), 2800000);
	clock_virtual_advance(&w.clock, 2800000 * INT64_C(1000));
	take_all(&w.a, 10);
	take_all(&w.b, 10);
	assert_int_equal(take(&w.b), 3600000);
}

/* Of bytes as of requests; and each tenant has its own. */
static void a_quota_of_bytes(void **state)
{
	(void)state;
	struct fault_project other;
	struct errbuf e = {""};
	w.limits = (struct fault_quota_limits){{0, 0, 1000}};
	begin(&w.a, 0);
	assert_int_equal(fault_projects_add(w.a.projects, &w.queue, SLICE("other"), &other, &e), 0);
	begin(&w.b, 0);
	take_all(&w.a, 1);
	assert_int_equal(fault_projects_take_bytes(w.a.projects, 1, 600), 0);
	take_all(&w.b, 1);
	assert_int_equal(fault_projects_take_bytes(w.b.projects, 1, 400), 0);
	assert_int_equal(exchange(&w.a), 0);
	assert_int_equal(exchange(&w.b), 0);
	assert_int_equal(take(&w.b), 6400000);
	assert_int_equal(fault_projects_take_quota(w.b.projects, other.number, &full), 0);
	assert_int_equal(fault_projects_take_quota(w.b.projects, 99, &full), 0); /* no project */
}

/* The end of a span is not that of its process. */
static void a_process_that_died_counts_until_the_span_ends(void **state)
{
	(void)state;
	begin(&w.a, 0);
	take_all(&w.a, 10);
	assert_int_equal(exchange(&w.a), 0);
	far_kill(w.a.store);
	finish(&w.a);
	begin(&w.a, 0);
	assert_int_equal(take(&w.a), 2800000);
	/* What it writes of its own is beside that. */
	clock_virtual_advance(&w.clock, (2800000 - 1) * INT64_C(1000));
	assert_int_equal(take(&w.a), 1);
	assert_int_equal(exchange(&w.a), 0);
	assert_int_equal(take(&w.a), 1);
	assert_int_equal(read_row(&w.a).count, 1);
	clock_virtual_advance(&w.clock, 1000);
	assert_int_equal(read_row(&w.a).count, 0);
	take_all(&w.a, 10);
}

static void only_what_has_changed_is_written(void **state)
{
	(void)state;
	w.limits = (struct fault_quota_limits){{0, 2, 1000}};
	begin(&w.a, 0);
	assert_int_equal(read_row(&w.a).count, 0);
	take_all(&w.a, 2);
	assert_int_equal(exchange(&w.a), 0);
	struct row first = read_row(&w.a);
	assert_int_equal(first.count, 1);
	assert_int_equal(first.expires_ms, DAY_END);
	clock_virtual_advance(&w.clock, 1000000);
	assert_int_equal(take(&w.a), 2799000);
	assert_int_equal(exchange(&w.a), 0);
	assert_int_equal(read_row(&w.a).stamp_us, first.stamp_us);
	assert_int_equal(fault_projects_take_bytes(w.a.projects, 1, 1), 0);
	assert_int_equal(exchange(&w.a), 0);
	assert_int_equal(read_row(&w.a).count, 1);
	assert_true(read_row(&w.a).stamp_us > first.stamp_us);
}

/* With a store that takes nothing and answers nothing. */
static void without_limits_nothing_is_written_or_read(void **state)
{
	(void)state;
	w.limits = (struct fault_quota_limits){{0}};
	open_projects(&w.a, 0);
	assert_false(fault_projects_have_quotas(w.a.projects));
	take_all(&w.a, 1000);
	assert_int_equal(fault_projects_take_bytes(w.a.projects, 1, UINT64_MAX), 0);
	set_faults((struct far_faults){.refused = 1000});
	assert_int_equal(exchange(&w.a), 0);
	set_faults((struct far_faults){0});
	assert_int_equal(read_row(&w.a).count, 0);
}

/* Nor is anything read of a tenant that nobody has asked for. */
static void what_is_not_asked_for_is_not_read(void **state)
{
	(void)state;
	begin(&w.a, 0);
	set_faults((struct far_faults){.refused = 1000});
	assert_int_equal(exchange(&w.a), 0);
	take_all(&w.a, 1);
	assert_int_not_equal(exchange(&w.a), 0);
}

static void a_store_that_does_not_answer(void **state)
{
	(void)state;
	begin(&w.a, 0);
	begin(&w.b, 0);
	take_all(&w.a, 3);
	assert_int_equal(exchange(&w.a), 0);
	take_all(&w.b, 1);
	assert_int_equal(exchange(&w.b), 0);
	set_faults((struct far_faults){.refused = 1000});
	take_all(&w.b, 2);
	assert_int_equal(exchange(&w.b), ERR_BUSY);
	take_all(&w.b, 4); /* 3 and 7 are 10 */
	assert_int_equal(take(&w.b), 2800000);
	assert_int_equal(exchange(&w.b), ERR_BUSY);
	set_faults((struct far_faults){.failed = 1000}); /* what is written lands */
	assert_int_equal(exchange(&w.b), ERR_UNKNOWN);
	set_faults((struct far_faults){0});
	assert_int_equal(take(&w.b), 2800000);
	begin(&w.c, 0);
	assert_int_equal(take(&w.c), 2800000);
	/* What could not be written is written though nothing was taken since. */
	clock_virtual_advance(&w.clock, 2800000 * INT64_C(1000));
	take_all(&w.b, 10);
	set_faults((struct far_faults){.full = 1000});
	assert_int_equal(exchange(&w.b), ERR_FULL);
	set_faults((struct far_faults){0});
	assert_int_equal(exchange(&w.b), 0);
	take_all(&w.c, 1);
	assert_int_equal(exchange(&w.c), 0);
	assert_int_equal(take(&w.c), 3600000);
}

/* At its start the store did not answer: it is asked again, though nobody has sent. */
static void a_start_without_the_store(void **state)
{
	(void)state;
	begin(&w.a, 0);
	take_all(&w.a, 10);
	assert_int_equal(exchange(&w.a), 0);
	open_projects(&w.b, 0);
	set_faults((struct far_faults){.failed = 1000});
	assert_int_equal(exchange(&w.b), ERR_UNKNOWN);
	set_faults((struct far_faults){0});
	assert_int_equal(exchange(&w.b), 0);
	assert_int_equal(take(&w.b), 2800000);
}

/* A clock that is a year off is in other spans: neither keeps the other from anything. */
static void clocks_that_are_off(void **state)
{
	(void)state;
	begin(&w.a, YEAR_MS);
	begin(&w.b, -YEAR_MS);
	begin(&w.c, 0);
	struct process *all[] = {&w.a, &w.b, &w.c};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		take_all(all[i], 10);
		assert_int_equal(exchange(all[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		assert_int_equal(exchange(all[i]), 0);
		assert_int_equal(take(all[i]), 2800000);
	}
	/* It is set right, and its quota is that of the others. */
	w.a.clock.off_ms = 0;
	take_all(&w.a, 1);
	assert_int_equal(exchange(&w.a), 0);
	assert_int_equal(take(&w.a), 2800000);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static int log_ends[2], log_saved;

static void log_begin(void)
{
	assert_int_equal(pipe(log_ends), 0);
	log_saved = dup(STDERR_FILENO);
	assert_true(dup2(log_ends[1], STDERR_FILENO) >= 0);
}

static void log_end(char *text, size_t room)
{
	assert_true(dup2(log_saved, STDERR_FILENO) >= 0);
	close(log_saved);
	close(log_ends[1]);
	ssize_t len = read(log_ends[0], text, room - 1);
	assert_true(len >= 0);
	text[len] = 0;
	close(log_ends[0]);
}

static void a_cell_that_cannot_be_read(void **state)
{
	(void)state;
	int64_t before = stat_values[STAT_sentry_quotas_unread];
	char text[1000];
	begin(&w.a, 0);
	put_note(&w.a, "damaged", SLICE("\x02 of later"));
	put_note(&w.a, "of another", SLICE(CELL)); /* 300 in the hour */
	log_begin();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(take(&w.a) != 0, i > 0);
		assert_int_equal(exchange(&w.a), 0);
	}
	log_end(text, sizeof(text));
	char *line = strstr(text, "quota of tenant default (table fault_quotas, column "
				  "damaged) cannot be read: ");
	assert_non_null(line);
	assert_null(strstr(line + 1, "quota of tenant"));
	assert_int_equal(stat_values[STAT_sentry_quotas_unread] - before, 3);
}

/* More cells than a scan gives at once; each says that 1 request was taken. */
static void a_process_that_began_anew_very_often(void **state)
{
	(void)state;
	char column[40];
	w.limits = (struct fault_quota_limits){{0, 601, 0}};
	begin(&w.a, 0);
	for (unsigned i = 1; i <= 600; i++) {
		snprintf(column, sizeof(column), "%016x", i);
		put_note(&w.a, column, SLICE(CELL_OF_ONE));
		if (i != 255 && i != 256 && i != 257 && i != 600)
			continue;
		w.limits.most[FAULT_HOUR] = i + 1;
		begin(&w.b, 0);
		assert_int_equal(take(&w.b), 0);
		assert_int_equal(take(&w.b), 2800000);
		finish(&w.b);
	}
}

/* Of more tenants than one write and one read have. */
static void many_tenants(void **state)
{
	(void)state;
	enum { TENANTS = 257 };
	struct fault_project project;
	char tenant[20];
	struct errbuf e = {""};
	w.limits = (struct fault_quota_limits){{0, 1, 0}};
	begin(&w.a, 0);
	for (unsigned i = 2; i <= TENANTS; i++) {
		snprintf(tenant, sizeof(tenant), "t%u", i);
		assert_int_equal(
			fault_projects_add(w.a.projects, &w.queue, slice_of(tenant), &project, &e),
			0);
		assert_int_equal(project.number, i);
	}
	for (unsigned i = 1; i <= TENANTS; i++)
		assert_int_equal(fault_projects_take_quota(w.a.projects, i, &full), 0);
	assert_int_equal(exchange(&w.a), 0);
	begin(&w.b, 0);
	for (unsigned i = 1; i <= TENANTS; i++)
		assert_int_equal(fault_projects_take_quota(w.b.projects, i, &full), 2800000);
}

/* ---- Meanwhile ------------------------------------------------------------------------------- */

static void (*wait_before)(struct task_queue *queue);

static void take_and_wait(struct task_queue *queue)
{
	queue->wait = wait_before;
	take_all(&w.a, 1);
	wait_before(queue);
}

/* A request comes while the exchange waits for the store. */
static void what_is_taken_meanwhile_is_told_the_next_time(void **state)
{
	(void)state;
	begin(&w.a, 0);
	take_all(&w.a, 9);
	wait_before = w.queue.wait;
	w.queue.wait = take_and_wait;
	assert_int_equal(exchange(&w.a), 0);
	assert_int_equal(take(&w.a), 2800000);
	assert_int_equal(exchange(&w.a), 0);
	begin(&w.b, 0);
	assert_int_equal(take(&w.b), 2800000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_are_those_of_the_wall_clock),
		cmocka_unit_test(no_limit_is_any_number),
		cmocka_unit_test(others_count_in_the_same_spans),
		cmocka_unit_test(numbers_that_are_too_large_stay_the_largest),
		cmocka_unit_test(a_clock_that_is_set_is_in_other_spans),
		cmocka_unit_test(a_cell_stays_until_the_longest_span_ends),
		cmocka_unit_test(cells),
		TEST(a_quota_is_of_all_processes),
		TEST(a_quota_of_bytes),
		TEST(a_process_that_died_counts_until_the_span_ends),
		TEST(only_what_has_changed_is_written),
		TEST(without_limits_nothing_is_written_or_read),
		TEST(what_is_not_asked_for_is_not_read),
		TEST(a_store_that_does_not_answer),
		TEST(a_start_without_the_store),
		TEST(clocks_that_are_off),
		TEST(a_cell_that_cannot_be_read),
		TEST(a_process_that_began_anew_very_often),
		TEST(many_tenants),
		TEST(what_is_taken_meanwhile_is_told_the_next_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
