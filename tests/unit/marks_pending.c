/* What waits, from the door to the list; and marks made again where they were lost. */
#include "rollup_harness.h"

#include "rollup_drivers.h"

#include "marks/pending.h"
#include "rollup/remark.h"

static const char *const hour[] = {"1h:365d"};

static struct marks_pending look(struct rolled *r, size_t slots_max, uint64_t marks_max)
{
	struct marks_pending pending;
	harness_pump(&r->h);
	int err = marks_pending_list(&(struct marks_pending_options){.marks = r->h.marks,
								     .clock = &r->h.clock.clock,
								     .queue = &r->h.queue,
								     .slot_ms = HOUR_MS,
								     .quiet_ms = 5 * MINUTE_MS,
								     .slots_max = slots_max,
								     .marks_max = marks_max},
				     &pending);
	assert_int_equal(err, 0);
	return pending;
}

/* `minute:series/ready<minute@minute` of each slot: since when something is ready, and when all
 * will be; `+` where not all was counted, `...` if there are more. */
static void expect_pending(struct rolled *r, size_t slots_max, uint64_t marks_max, const char *want)
{
	struct marks_pending p = look(r, slots_max, marks_max);
	struct buf out;
	buf_init(&out, 1 << 16);
	for (size_t i = 0; i < p.count; i++) {
		const struct marks_pending_slot *slot = &p.slots[i];
		buf_printf(&out, "%s%lld:%llu/%llu", i ? " " : "",
			   (long long)(slot->slot_s * 1000 - TEN_MS) / MINUTE_MS,
			   (unsigned long long)slot->series, (unsigned long long)slot->ready);
		if (slot->ready)
			buf_printf(&out, "<%lld", (long long)(slot->since_ms - TEN_MS) / MINUTE_MS);
		if (slot->ready_ms)
			buf_printf(&out, "@%lld", (long long)(slot->ready_ms - TEN_MS) / MINUTE_MS);
		buf_append_text(&out, slot->counted ? "" : "+");
		assert_in_range(slot->partitions, 1, 8);
	}
	buf_append_text(&out, p.cut ? " ..." : "");
	buf_append_char(&out, 0);
	assert_string_equal(out.data, want);
	buf_release(&out);
	marks_pending_release(&p);
}

static void begin(struct rolled *r)
{
	rolled_open(r, hour, 1);
	rolled_set_ms(r, AT(50, 0));
}

static void nothing_waits(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	expect_pending(&r, 10, 1000, "");
	rolled_close(&r);
}

/* Ten o'clock is over at minute 60 and quiet at 65; the late one of eight came at 50, and is ready
 * at 55. Series are counted once, however often they were touched. */
static void what_waits_and_until_when(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	rolled_put(&r, "m,h=a", "1", AT(1, 0));
	rolled_put(&r, "m,h=b", "1", AT(2, 0));
	rolled_put(&r, "m,h=a", "1", AT(3, 0));
	rolled_put(&r, "m,h=a", "1", AT(-120, 0));
	expect_pending(&r, 10, 1000, "-120:1/0@55 0:2/0@65");
	rolled_set_ms(&r, AT(55, 0));
	expect_pending(&r, 10, 1000, "-120:1/1<55@55 0:2/0@65");
	rolled_set_ms(&r, AT(64, 0));
	rolled_put(&r, "m,h=b", "1", AT(59, 0));
	rolled_set_ms(&r, AT(66, 0));
	expect_pending(&r, 10, 1000, "-120:1/1<55@55 0:2/1<65@69");
	rolled_pass(&r);
	expect_pending(&r, 10, 1000, "0:1/0@69");
	rolled_close(&r);
}

/* The oldest are kept, in whichever order they are found: partitions are listed one after the
 * other, and these series lie in several. */
static void the_oldest_slots_are_those_that_are_listed(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	for (int h = 9; h >= 0; h--) {
		char series[16];
		snprintf(series, sizeof(series), "m,h=%d", h);
		rolled_put(&r, series, "1", AT(-60 * h, 0));
		rolled_put(&r, "m,h=all", "1", AT(-60 * h, 0));
	}
	expect_pending(&r, 3, 1000, "-540:2/0@55 -480:2/0@55 -420:2/0@55 ...");
	expect_pending(&r, 1, 1000, "-540:2/0@55 ...");
	/* After three marks no further part is read: the second slot may be half-way. */
	struct marks_pending p = look(&r, 3, 3);
	assert_true(p.count == 3 && p.slots[0].counted && !p.slots[2].counted);
	assert_int_equal(p.slots[0].series, 2);
	assert_int_equal(p.slots[2].series, 0);
	marks_pending_release(&p);
	rolled_close(&r);
}

static void a_look_that_is_given_up_ends(void **state)
{
	(void)state;
	struct rolled r;
	struct marks_pending p;
	struct task_queue queue;
	begin(&r);
	rolled_put(&r, "m,h=a", "1", AT(1, 0));
	task_queue_init(&queue);
	task_queue_stop(&queue);
	int err = marks_pending_list(&(struct marks_pending_options){.marks = r.h.marks,
								     .clock = &r.h.clock.clock,
								     .queue = &queue,
								     .slot_ms = HOUR_MS,
								     .quiet_ms = 5 * MINUTE_MS,
								     .slots_max = 1,
								     .marks_max = 1},
				     &p);
	assert_int_equal(err, ERR_CANCELLED);
	marks_pending_release(&p);
	task_queue_release(&queue);
	rolled_close(&r);
}

/* ---- Rebuilding ------------------------------------------------------------------------------ */

struct range {
	const char *tenant, *metric;
	int64_t from_ms, to_ms;
	bool only_count;
};

static struct remark_result rebuild(struct rolled *r, const struct range *range)
{
	struct rollup_site site = r->site;
	struct remark_result result;
	site.partitions = 8;
	int err = remark(
		&(struct remark_options){.site = &site,
					 .queue = &r->h.queue,
					 .tenant = slice_of(range->tenant ? range->tenant : ""),
					 .metric = slice_of(range->metric ? range->metric : ""),
					 .from_ms = range->from_ms,
					 .to_ms = range->to_ms ? range->to_ms : AT(120, 0),
					 .only_count = range->only_count},
		&result);
	assert_int_equal(err, 0);
	return result;
}

/* A sample in each of three slots years apart, of another series in one. All are rolled up, so no
 * mark is left, as after a loss of all. */
static void begin_rolled_up(struct rolled *r)
{
	begin(r);
	rolled_put(r, "m,h=a", "1", AT(1, 0));
	rolled_put(r, "m,h=a", "1", AT(-60, 0));
	rolled_put(r, "m,h=a", "1", AT(-300000, 0));
	rolled_put(r, "m,h=a", "1", AT(-299999, 0));
	rolled_put(r, "n,h=a", "1", AT(1, 0));
	assert_int_equal(rolled_pass_at(r, AT(65, 0)).rolled_up, 4);
	expect_pending(r, 10, 1000, "");
}

static void all_that_has_raw_data_is_marked_again(void **state)
{
	(void)state;
	struct rolled r;
	begin_rolled_up(&r);
	struct remark_result result = rebuild(&r, &(struct range){0});
	assert_int_equal(result.series, 2);
	assert_int_equal(result.marked, 2);
	assert_int_equal(result.slots, 3);
	assert_int_equal(result.marks, 4);
	assert_int_equal(result.failed, 0);
	assert_true(result.oldest_slot_s * 1000 == AT(-300000, 0));
	assert_true(result.newest_slot_s * 1000 == TEN_MS);
	expect_pending(&r, 10, 1000, "-300000:1/0@70 -60:1/0@70 0:2/0@70");
	/* The same marks as ingest makes: the job finds what they stand for. */
	struct rollup_pass pass = rolled_pass_at(&r, AT(70, 0));
	assert_int_equal(pass.rolled_up, 4);
	assert_int_equal(pass.rows, 4);
	assert_int_equal(pass.slots, 4);
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS - 300000 * MINUTE_MS,
		      "0:min=1.0,max=1.0,sum=2.0,count=2,first=1.0,last=1.0 "
		      "299940:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0 "
		      "300000:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0");
	rolled_close(&r);
}

static void only_what_is_asked_for_is_marked(void **state)
{
	(void)state;
	struct rolled r;
	begin_rolled_up(&r);
	assert_int_equal(rebuild(&r, &(struct range){.only_count = true}).marks, 4);
	expect_pending(&r, 10, 1000, "");
	assert_int_equal(rebuild(&r, &(struct range){.tenant = "other"}).series, 0);
	assert_int_equal(rebuild(&r, &(struct range){.metric = "m"}).marks, 3);
	assert_int_equal(rebuild(&r, &(struct range){.tenant = "default", .metric = "n"}).marks, 1);
	rolled_pass_at(&r, AT(80, 0));
	/* From the slot before ten to ten, exclusively. */
	const struct range range = {.from_ms = AT(-60, 0), .to_ms = TEN_MS};
	assert_int_equal(rebuild(&r, &range).marks, 1);
	expect_pending(&r, 10, 1000, "-60:1/0@85");
	rolled_close(&r);
}

/* More series and slots than are looked at at once: 300 series, 300 slots of one of them. */
static void more_than_fits_at_once(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	for (int i = 0; i < 300; i++) {
		char series[16];
		snprintf(series, sizeof(series), "m,h=%d", i);
		rolled_put(&r, series, "1", AT(0, 0));
		rolled_put(&r, "m,h=0", "1", AT(-60 * i, 0));
	}
	assert_int_equal(rolled_pass_at(&r, AT(70, 0)).rolled_up, 599);
	struct remark_result result = rebuild(&r, &(struct range){0});
	assert_int_equal(result.series, 300);
	assert_int_equal(result.marked, 300);
	assert_int_equal(result.slots, 300);
	assert_int_equal(result.marks, 599);
	assert_int_equal(rolled_pass_at(&r, AT(75, 0)).rolled_up, 599);
	rolled_close(&r);
}

/* Raw data of two hours at 11:05, quiet for 5 min: what is there from 9:05 on will be there at 9:15
 * only, so the slot of ten is the first. */
static void slots_whose_raw_data_expires_are_left_alone(void **state)
{
	(void)state;
	int64_t quiet_ms = 5 * MINUTE_MS;
	assert_true(slot_open_from_ms(AT(65, 0), 2 * HOUR_MS, HOUR_MS, quiet_ms) == TEN_MS);
	assert_true(slot_open_from_ms(AT(110, 0), 2 * HOUR_MS, HOUR_MS, quiet_ms) == TEN_MS);
	assert_true(slot_open_from_ms(AT(110, 1), 2 * HOUR_MS, HOUR_MS, quiet_ms) ==
		    TEN_MS + HOUR_MS);
	assert_int_equal(slot_open_from_ms(AT(65, 0), 0, HOUR_MS, quiet_ms), 0);
	assert_int_equal(slot_open_from_ms(1000, 2 * HOUR_MS, HOUR_MS, quiet_ms), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_waits),
		cmocka_unit_test(what_waits_and_until_when),
		cmocka_unit_test(the_oldest_slots_are_those_that_are_listed),
		cmocka_unit_test(a_look_that_is_given_up_ends),
		cmocka_unit_test(all_that_has_raw_data_is_marked_again),
		cmocka_unit_test(only_what_is_asked_for_is_marked),
		cmocka_unit_test(more_than_fits_at_once),
		cmocka_unit_test(slots_whose_raw_data_expires_are_left_alone),
	};
	harness_track = driver_open;
	return driver_run(tests);
}
