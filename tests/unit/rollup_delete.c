/* Deleting samples and their roll-ups: what goes, what is made again, what is kept and counted;
 * what breaks off and goes on. */
#include "rollup_harness.h"

#include "store/wait.h"

#include "base/fault.h"
#include "rollup/deletions.h"

struct deleting {
	struct rolled r;
	struct catalog_selector selectors[CATALOG_SELECTORS_MAX];
	size_t selector_count;
	struct arena arena;
	struct rollup_delete_result result;
};

static void tell_catalog(void *owner, const struct slice *metrics, size_t count)
{
	struct deleting *d = owner;
	for (size_t i = 0; i < count; i++)
		catalog_forgotten(d->r.h.catalog, SLICE("default"), metrics[i]);
}

static void deleting_open(struct deleting *d)
{
	*d = (struct deleting){0};
	rolled_open(&d->r, quarter_and_hour, 2);
	d->r.site.partitions = 8;
	rolled_set_ms(&d->r, AT(50, 0));
	arena_init(&d->arena, 1 << 20);
}

static void deleting_close(struct deleting *d)
{
	arena_release(&d->arena);
	rolled_close(&d->r);
}

/* The metric `m` of the tenant `default`. */
static struct rollup_delete_options options_of(struct deleting *d, int64_t from_ms, int64_t to_ms)
{
	return (struct rollup_delete_options){.site = &d->r.site,
					      .queue = &d->r.h.queue,
					      .tenant = SLICE("default"),
					      .metric = SLICE("m"),
					      .selectors = d->selectors,
					      .selector_count = d->selector_count,
					      .from_ms = from_ms,
					      .to_ms = to_ms,
					      .whole = from_ms == to_ms,
					      .forgotten = tell_catalog,
					      .owner = d};
}

static void tags(struct deleting *d, const char *text)
{
	struct errbuf e;
	d->selector_count = 0;
	assert_int_equal(catalog_selectors_parse(slice_of(text), &d->arena, d->selectors,
						 &d->selector_count, &e),
			 0);
}

static int run(struct deleting *d, const struct rollup_delete_options *options)
{
	struct errbuf e;
	int err = rollup_delete(options, &d->result, &e);
	harness_pump(&d->r.h);
	return err;
}

/* `series samples 15m 1h kept-15m kept-1h marks gone failed`, of the count and of the deletion that
 * follows. From from_ms to to_ms, or all where they are the same. */
static void expect(struct deleting *d, int64_t from_ms, int64_t to_ms, const char *want)
{
	struct rollup_delete_options options = options_of(d, from_ms, to_ms);
	for (int count = 1; count >= 0; count--) {
		char text[128];
		const struct rollup_delete_result *is = &d->result;
		options.only_count = count;
		assert_int_equal(run(d, &options), 0);
		snprintf(text, sizeof(text), "%d %d %d %d %d %d %d %d %d", (int)is->series,
			 (int)is->samples, (int)is->rows[0], (int)is->rows[1], (int)is->kept[0],
			 (int)is->kept[1], (int)is->marks, (int)is->forgotten, (int)is->failed);
		assert_string_equal(text, want);
	}
}

/* One in each quarter of the hour. */
static void write_example(struct deleting *d, const char *series)
{
	rolled_put(&d->r, series, "1.2", AT(1, 0));
	rolled_put(&d->r, series, "1.5", AT(16, 0));
	rolled_put(&d->r, series, "1.1", AT(31, 0));
	rolled_put(&d->r, series, "3.4", AT(47, 0));
}

static void roll_up(struct deleting *d)
{
	assert_int_equal(rolled_pass_at(&d->r, rolled_now_ms(&d->r) + 20 * MINUTE_MS).err, 0);
	assert_int_equal(rolled_pass(&d->r).slots, 0);
}

#define QUARTER(minute, value)                                                                     \
	minute ":min=" value ",max=" value ",sum=" value ",count=1,first=" value ",last=" value

/* ---- What goes ------------------------------------------------------------------------------- */

/* From 10:15 to 10:40 there are 1.5 and 1.1; the quarter from 10:30 and the hour are cut. */
static void what_lies_in_the_time_goes(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open(&d);
	write_example(&d, "m,h=a");
	write_example(&d, "m,h=b");
	write_example(&d, "n,h=a");
	roll_up(&d);
	tags(&d, "h=a");
	expect(&d, AT(15, 0), AT(40, 0), "1 2 1 0 0 0 1 0 0");
	rolled_expect(&d.r, "m,h=a", 15 * MINUTE_MS, TEN_MS,
		      QUARTER("0", "1.2") " " QUARTER("30", "1.1") " " QUARTER("45", "3.4"));
	roll_up(&d);
	rolled_expect(&d.r, "m,h=a", 15 * MINUTE_MS, TEN_MS,
		      QUARTER("0", "1.2") " " QUARTER("45", "3.4"));
	rolled_expect(&d.r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.2,max=3.4,sum=4.6,count=2,first=1.2,last=3.4");
	for (int i = 0; i < 2; i++)
		rolled_expect(&d.r, i ? "n,h=a" : "m,h=b", HOUR_MS, TEN_MS,
			      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4");
	expect(&d, AT(15, 0), AT(40, 0), "1 0 0 0 0 0 0 0 0");
	deleting_close(&d);
}

/* The end is not part of the time, the start is. */
static void the_edges_of_the_time(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open(&d);
	write_example(&d, "m");
	roll_up(&d);
	expect(&d, AT(16, 0), AT(31, 0), "1 1 0 0 0 0 1 0 0");
	expect(&d, AT(31, 0), AT(47, 0), "1 1 0 0 0 0 1 0 0");
	roll_up(&d);
	rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS,
		      QUARTER("0", "1.2") " " QUARTER("45", "3.4"));
	deleting_close(&d);
}

/* 300 hours, so that it takes several parts, and 600 series, so that it takes several groups. */
static void much_goes_piece_by_piece(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open(&d);
	for (int64_t hour = 0; hour < 300; hour++)
		rolled_put(&d.r, "m,h=long", "1", AT(-60 * hour, 0));
	struct buf lines;
	buf_init(&lines, 1 << 20);
	for (int i = 0; i < 600; i++)
		buf_printf(&lines, "m,h=h%d value=1 %lld\n", i, (long long)AT(2, 0));
	buf_append_char(&lines, 0);
	rolled_write(&d.r, lines.data);
	buf_release(&lines);
	roll_up(&d);
	expect(&d, AT(-60 * 400, 0), AT(1, 0), "601 300 299 299 0 0 300 0 0");
	roll_up(&d);
	rolled_expect(&d.r, "m,h=long", HOUR_MS, TEN_MS, "");
	rolled_expect(&d.r, "m,h=long", 15 * MINUTE_MS, TEN_MS, "");
	expect(&d, AT(0, 0), AT(60, 0), "601 600 600 600 0 0 600 0 0");
	deleting_close(&d);
}

/* Between the hours 18 and 1 before ten lie 16: 18 slots are marked. Between the hours 36 and 18
 * lie 17, and the former has a mark and a range of its own; between 35 and 18 lie 16. */
static void slots_between_are_marked_where_they_are_few(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open(&d);
	rolled_put(&d.r, "m", "1", AT(-1, 0));
	rolled_put(&d.r, "m", "1", AT(-18 * 60, 0));
	rolled_put(&d.r, "m", "1", AT(-36 * 60, 0));
	roll_up(&d);
	expect(&d, AT(-40 * 60, 0), AT(0, 0), "1 3 3 3 0 0 19 0 0");
	rolled_put(&d.r, "m", "1", AT(-1, 0));
	rolled_put(&d.r, "m", "1", AT(-18 * 60, 0));
	rolled_put(&d.r, "m", "1", AT(-35 * 60, 0));
	roll_up(&d);
	expect(&d, AT(-40 * 60, 0), AT(0, 0), "1 3 3 3 0 0 35 0 0");
	deleting_close(&d);
}

static void series_that_go_as_a_whole_are_not_there_any_more(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open(&d);
	write_example(&d, "m,h=a");
	write_example(&d, "m,h=b");
	roll_up(&d);
	rolled_put(&d.r, "m,h=a", "7", AT(80, 0));
	tags(&d, "h=a");
	expect(&d, 0, 0, "1 5 4 1 0 0 0 1 0");
	assert_true(rolled_handle(&d.r, "m,h=a") == 0);
	assert_true(rolled_handle(&d.r, "m,h=b") != 0);
	expect(&d, 0, 0, "0 0 0 0 0 0 0 0 0");
	/* The mark of the sample that went is of nobody. */
	rolled_put(&d.r, "m,h=a", "2", AT(2, 0));
	rolled_pass_at(&d.r, AT(200, 0));
	rolled_expect(&d.r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=2.0,max=2.0,sum=2.0,count=1,first=2.0,last=2.0");
	deleting_close(&d);
}

/* ---- What raw data has expired of ------------------------------------------------------------ */

/* A day is kept; that day's slot of ten o'clock is closed, so its rows go as a whole or not at all.
 */
static void rows_that_cannot_be_made_again_are_kept_and_counted(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open(&d);
	write_example(&d, "m");
	roll_up(&d);
	d.r.site.retention.levels_ms[0] = 24 * HOUR_MS;
	rolled_set_ms(&d.r, AT(30 * 60, 0));
	/* From 10:20 to 10:50: the quarter from 10:30 goes, those from 10:15 and 10:45 and the hour
	 * are cut. The samples are there still. */
	expect(&d, AT(20, 0), AT(50, 0), "1 2 1 0 2 1 0 0 0");
	rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS,
		      QUARTER("0", "1.2") " " QUARTER("15", "1.5") " " QUARTER("45", "3.4"));
	rolled_expect(&d.r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4");
	/* Both ends cut one bucket: it counts once. */
	expect(&d, AT(2, 0), AT(3, 0), "1 0 0 0 1 1 0 0 0");
	expect(&d, AT(0, 0), AT(60, 0), "1 2 3 1 0 0 0 0 0");
	deleting_close(&d);
}

/* Rows of 15 minutes are made; then only hours are configured. From 10:15 to 10:40 the quarter from
 * 10:15 goes, and that from 10:30 is cut: nothing makes it again. */
static void rows_of_a_granularity_of_before_go_too(void **state)
{
	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		struct deleting d;
		deleting_open(&d);
		write_example(&d, "m");
		roll_up(&d);
		d.r.site.granularities.list[0] =
			d.r.site.granularities.list[--d.r.site.granularities.count];
		if (whole) {
			expect(&d, 0, 0, "1 4 1 0 0 0 0 1 0");
			assert_int_equal(d.result.other_rows, 4);
			assert_int_equal(d.result.other_kept, 0);
		} else {
			expect(&d, AT(15, 0), AT(40, 0), "1 2 0 0 0 0 1 0 0");
			assert_int_equal(d.result.other_rows, 1);
			assert_int_equal(d.result.other_kept, 1);
			rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS,
				      QUARTER("0", "1.2") " " QUARTER("30", "1.1") " " QUARTER(
					      "45", "3.4"));
		}
		deleting_close(&d);
	}
}

/* A slot that is closed but not over: what a job makes of it now is made once more. */
static void a_slot_that_is_about_to_expire_is_marked(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open(&d);
	write_example(&d, "m");
	roll_up(&d);
	d.r.site.retention.levels_ms[0] = 24 * HOUR_MS;
	rolled_set_ms(&d.r, AT(24 * 60 - 6, 0));
	expect(&d, AT(0, 0), AT(20, 0), "1 2 1 0 1 1 1 0 0");
	deleting_close(&d);
}

/* Three days later, when its hour is closed, 9 came for 10:20 and 8 for 10:40. Rows of late points
 * are made again of those that are left: the hour's own row is kept, that of the late ones is not.
 */
static void late_samples_go_and_their_rows_are_made_again(void **state)
{
	(void)state;
	struct deleting d = {0};
	rolled_begin(&d.r, quarter_and_hour, 2, 24 * HOUR_MS, NULL);
	rolled_set_ms(&d.r, AT(50, 0));
	arena_init(&d.arena, 1 << 20);
	write_example(&d, "m");
	roll_up(&d);
	rolled_set_ms(&d.r, AT(3 * 24 * 60, 0));
	rolled_put(&d.r, "m", "9", AT(20, 0));
	rolled_put(&d.r, "m", "8", AT(40, 0));
	roll_up(&d);
	rolled_expect(&d.r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4 "
		      "0+:min=8.0,max=9.0,sum=17.0,count=2");
	expect(&d, AT(15, 0), AT(30, 0), "1 0 2 0 0 1 1 0 0");
	assert_int_equal(d.result.late, 1);
	roll_up(&d);
	rolled_expect(
		&d.r, "m", 15 * MINUTE_MS, TEN_MS,
		QUARTER("0", "1.2") " " QUARTER(
			"30", "1.1") " "
				     "30+:min=8.0,max=8.0,sum=8.0,count=1 " QUARTER("45", "3.4"));
	rolled_expect(&d.r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4 "
		      "0+:min=8.0,max=8.0,sum=8.0,count=1");
	deleting_close(&d);
}

/* ---- What goes wrong ------------------------------------------------------------------------- */

static void a_damaged_series_is_left_and_counted(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open(&d);
	for (char host = 'a'; host <= 'f'; host++) {
		char series[] = {'m', ',', 'h', '=', host, 0};
		write_example(&d, series);
	}
	roll_up(&d);
	naive_damage(d.r.h.store, rolled_handle(&d.r, "m,h=c"));
	expect(&d, AT(0, 0), AT(60, 0), "6 20 20 5 0 0 5 0 1");
	naive_damage(d.r.h.store, 0);
	expect(&d, AT(0, 0), AT(60, 0), "6 4 4 1 0 0 1 0 0");
	deleting_close(&d);
}

/* Whatever is refused first, what is left is deleted by the same once more. */
static void what_breaks_off_is_done_by_the_same_again(void **state)
{
	(void)state;
	for (unsigned broken = 0; broken < 4; broken++) {
		struct deleting d;
		deleting_open(&d);
		write_example(&d, "m,h=a");
		write_example(&d, "m,h=b");
		roll_up(&d);
		struct rollup_delete_options options = options_of(&d, AT(15, 0), AT(45, 0));
		fault_arm("rollup_delete", FAULT_ERROR, 1 + broken, 1);
		int err = run(&d, &options);
		fault_disarm_all();
		assert_int_equal(err, broken < 2 ? ERR_FAULT : 0);
		naive_refuse_writes(d.r.h.store, ERR_BUSY, 1);
		(void)run(&d, &options);
		naive_refuse_writes(d.r.h.store, 0, 0);
		assert_int_equal(run(&d, &options), 0);
		roll_up(&d);
		rolled_expect(&d.r, "m,h=b", 15 * MINUTE_MS, TEN_MS,
			      QUARTER("0", "1.2") " " QUARTER("45", "3.4"));
		rolled_expect(&d.r, "m,h=b", HOUR_MS, TEN_MS,
			      "0:min=1.2,max=3.4,sum=4.6,count=2,first=1.2,last=3.4");
		deleting_close(&d);
	}
}

static void write_long(struct deleting *d, const char *tag, int64_t hours)
{
	struct buf lines;
	for (int64_t hour = 0; hour < hours; hour++) {
		buf_init(&lines, 8 << 20);
		for (int i = 0; i < 28; i++)
			buf_printf(&lines, "m,i=%d,%s value=1 %lld\n", i, tag,
				   (long long)AT(-60 * hour + 1, 0));
		buf_append_char(&lines, 0);
		rolled_write(&d->r, lines.data);
		buf_release(&lines);
	}
}

/* Of 16 series with such names 250 marks each do not fit into one write: the next one, of 8, had
 * marks of all 16, and deleted slots that were marked by a later one, if that came. It is the
 * eleventh or so that is full. */
static void marks_that_do_not_fit_are_still_those_of_their_write(void **state)
{
	(void)state;
	char tag[2800], series[2900];
	snprintf(tag, sizeof(tag), "a=%0900d,b=%0900d,c=%0900d", 1, 2, 3);
	int err = ERR_FAULT;
	for (unsigned broken = 10; err; broken++) {
		struct deleting d;
		deleting_open(&d);
		write_long(&d, tag, 250);
		roll_up(&d);
		struct rollup_delete_options options =
			options_of(&d, AT(-60 * 249 + 1, 0), AT(2, 0));
		fault_arm("rollup_delete", FAULT_ERROR, broken, 1);
		err = run(&d, &options);
		fault_disarm_all();
		assert_int_equal(run(&d, &options), 0);
		roll_up(&d);
		for (int i = 0; i < 28; i++) {
			snprintf(series, sizeof(series), "m,%s,i=%d", tag, i);
			rolled_expect(&d.r, series, HOUR_MS, TEN_MS, "");
		}
		deleting_close(&d);
	}
}

/* ---- What is asked for ----------------------------------------------------------------------- */

struct asked {
	bool over;
	int err;
	struct rollup_delete_result result;
};

static void on_asked(void *owner, int err, const char *sentence,
		     const struct rollup_delete_result *result)
{
	*(struct asked *)owner = (struct asked){true, err, *result};
	assert_true((err != 0) == (sentence != NULL));
}

static struct rollup_deletions *deletions_of(struct deleting *d)
{
	return rollup_deletions_new(&d->r.site, &d->r.h.queue.executor, d->r.h.catalog);
}

static int ask(struct rollup_deletions *deletions, struct asked *asked)
{
	struct errbuf e;
	*asked = (struct asked){0};
	return rollup_deletions_start(deletions,
				      &(struct rollup_deletion_spec){.tenant = SLICE("default"),
								     .metric = SLICE("m"),
								     .tags = {SLICE("h=a|c")},
								     .tag_count = 1,
								     .from_ms = AT(15, 0),
								     .to_ms = AT(45, 0)},
				      on_asked, asked, &e);
}

static void finish(struct deleting *d, const struct rollup_deletions *deletions)
{
	while (!rollup_deletions_idle(deletions))
		task_queue_wait(&d->r.h.queue);
}

/* What is to happen when that many batches more have been submitted to the store. */
static struct {
	struct store_engine engine;
	const struct store_engine *real;
	unsigned left;
	void (*happens)(void *argument);
	void *argument;
} later;

static void later_count(void)
{
	if (later.left && !--later.left)
		later.happens(later.argument);
}

static int later_read(struct store_read *read)
{
	later_count();
	return later.real->read_submit(read);
}

static int later_write(struct store_write *write)
{
	later_count();
	return later.real->write_submit(write);
}

static void later_arm(struct store *store, unsigned batches, void (*happens)(void *argument),
		      void *argument)
{
	later.real = store->engine;
	later.engine = *store->engine;
	later.engine.read_submit = later_read;
	later.engine.write_submit = later_write;
	later.left = batches;
	later.happens = happens;
	later.argument = argument;
	store->engine = &later.engine;
}

static void later_disarm(struct store *store)
{
	store->engine = later.real;
}

static void stop_deletions(void *argument)
{
	rollup_deletions_stop(argument);
}

/* Whenever the process ends, the next one goes on; it need not be asked. */
static void what_was_broken_off_goes_on_at_the_next_start(void **state)
{
	(void)state;
	unsigned broken_off = 0;
	for (unsigned steps = 1; steps < 40; steps++) {
		struct deleting d;
		struct asked asked, other;
		deleting_open(&d);
		write_example(&d, "m,h=a");
		write_example(&d, "m,h=b");
		roll_up(&d);
		struct rollup_deletions *first = deletions_of(&d);
		assert_true(rollup_deletions_idle(first));
		later_arm(d.r.h.store, steps, stop_deletions, first);
		assert_int_equal(ask(first, &asked), 0);
		assert_int_equal(ask(first, &other), ERR_BUSY);
		finish(&d, first);
		later_disarm(d.r.h.store);
		broken_off += asked.err == ERR_CANCELLED;
		rollup_deletions_free(first);
		struct rollup_deletions *second = deletions_of(&d);
		finish(&d, second);
		roll_up(&d);
		rolled_expect(&d.r, "m,h=a", 15 * MINUTE_MS, TEN_MS,
			      QUARTER("0", "1.2") " " QUARTER("45", "3.4"));
		rolled_expect(&d.r, "m,h=b", HOUR_MS, TEN_MS,
			      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4");
		assert_int_equal(ask(second, &asked), 0);
		finish(&d, second);
		assert_true(asked.over);
		assert_int_equal(asked.result.samples, 0);
		rollup_deletions_free(second);
		deleting_close(&d);
	}
	assert_in_range(broken_off, 5, 30);
}

/* Its note went by the name of the deletion before it, the first one's by none, so it stayed. */
static void what_was_written_after_a_deletion_outlives_the_next_start(void **state)
{
	(void)state;
	struct deleting d;
	struct asked asked;
	deleting_open(&d);
	for (size_t i = 0; i < 2; i++) {
		write_example(&d, "m,h=a");
		struct rollup_deletions *deletions = deletions_of(&d);
		assert_true(rollup_deletions_idle(deletions));
		assert_int_equal(ask(deletions, &asked), 0);
		finish(&d, deletions);
		assert_true(asked.over);
		assert_int_equal(asked.result.samples, 2);
		rollup_deletions_free(deletions);
	}
	write_example(&d, "m,h=a");
	struct rollup_deletions *next = deletions_of(&d);
	assert_true(rollup_deletions_idle(next));
	rollup_deletions_free(next);
	roll_up(&d);
	rolled_expect(&d.r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4");
	deleting_close(&d);
}

static void fail_write(void *argument)
{
	naive_fail_writes(argument, ERR_UNKNOWN, 3); /* as often as it is tried */
}

/* The next start will delete once more, so whoever asked has to know. */
static void a_note_that_stays_is_said(void **state)
{
	(void)state;
	struct deleting d;
	struct asked asked;
	bool said = false;
	for (unsigned steps = 1; steps < 40 && !said; steps++) {
		deleting_open(&d);
		write_example(&d, "m,h=a");
		struct rollup_deletions *deletions = deletions_of(&d);
		later_arm(d.r.h.store, steps, fail_write, d.r.h.store);
		assert_int_equal(ask(deletions, &asked), 0);
		finish(&d, deletions);
		later_disarm(d.r.h.store);
		said = asked.err == ERR_UNKNOWN && asked.result.samples == 2;
		naive_fail_writes(d.r.h.store, 0, 0);
		rollup_deletions_free(deletions);
		struct rollup_deletions *next = deletions_of(&d);
		assert_true(!said || !rollup_deletions_idle(next));
		finish(&d, next);
		rollup_deletions_free(next);
		deleting_close(&d);
	}
	assert_true(said);
}

static void put_note(struct deleting *d)
{
	static const char note[] = "{\"version\": 1, \"tenant\": \"default\", \"metric\": \"m\", "
				   "\"tags\": [], \"from\": 0, \"to\": 1, \"whole\": true, "
				   "\"by\": \"somebody\"}";
	const struct store_parts row = {{SLICE("deletion")}};
	char name[32];
	snprintf(name, sizeof(name), "%020lld", (long long)store_stamp(d->r.h.store));
	const struct store_parts column = {{slice_of(name)}};
	struct store_write *write = store_write_new(d->r.h.store, 1 << 16);
	struct store_write_cond *outcome;
	assert_int_equal(store_cell_put_if(write, TABLE_LEASES, &row, &column, 0, slice_of(note), 0,
					   &outcome),
			 0);
	assert_int_equal(store_write_wait(write, &d->r.h.queue), 0);
	store_write_free(write);
}

/* Every process that started repeated what another one was at. */
static void what_another_process_is_at_is_left_to_it(void **state)
{
	(void)state;
	struct deleting d;
	struct asked asked;
	struct errbuf e;
	deleting_open(&d);
	later_arm(d.r.h.store, 0, NULL, NULL);
	later.engine.can |= STORE_SHARED;
	write_example(&d, "m,h=a");
	struct lease_session_options options = *lease_session_options_of(d.r.site.session);
	options.holder = SLICE("other");
	struct lease_session *session = lease_session_new(&options);
	struct job_claims *claims = job_claims_new(session);
	assert_int_equal(job_claims_take(claims, &d.r.h.queue, JOB_CLAIM_DELETION, &e), 0);
	put_note(&d);
	struct rollup_deletions *waits = deletions_of(&d);
	assert_int_equal(ask(waits, &asked), ERR_BUSY);
	rollup_deletions_stop(waits);
	finish(&d, waits);
	rollup_deletions_free(waits);
	assert_int_equal(rolled_samples(&d.r, TABLE_DATA_RAW, "m,h=a"), 4);
	/* It dies, and its session ends. */
	rolled_set_ms(&d.r, rolled_now_ms(&d.r) + options.lease_ms);
	struct rollup_deletions *next = deletions_of(&d);
	finish(&d, next);
	rollup_deletions_free(next);
	assert_int_equal(rolled_handle(&d.r, "m,h=a"), 0);
	job_claims_free(claims);
	lease_session_free(session);
	later_disarm(d.r.h.store);
	deleting_close(&d);
}

/* It is what makes room. */
static void a_store_without_room_deletes_all_the_same(void **state)
{
	(void)state;
	struct deleting d;
	struct asked asked;
	deleting_open(&d);
	write_example(&d, "m,h=a");
	roll_up(&d);
	struct rollup_deletions *deletions = deletions_of(&d);
	naive_refuse_writes(d.r.h.store, ERR_FULL, 1);
	assert_int_equal(ask(deletions, &asked), 0);
	finish(&d, deletions);
	assert_true(asked.over);
	assert_int_equal(asked.err, 0);
	assert_int_equal(asked.result.samples, 2);
	rollup_deletions_free(deletions);
	deleting_close(&d);
}

/* ---- A store whose writes are not serial ----------------------------------------------------- */

/* The harness' store says so; what is late or comes from the dead, the test writes itself. */
static void deleting_make_far(struct deleting *d)
{
	static struct store_engine far;
	far = *d->r.h.store->engine;
	far.can &= ~(unsigned)STORE_SERIAL_WRITES;
	d->r.h.store->engine = &far;
}

static void deleting_open_far(struct deleting *d)
{
	deleting_open(d);
	deleting_make_far(d);
}

/* Of the row of 10:15 of the metric m: what somebody made of 1.5, with the stamp that he took. */
static void put_stale_row(struct deleting *d, int64_t stamp_us)
{
	const struct value v = value_f64(1.5);
	const struct value values[] = {v, v, v, value_u64(1), v, v};
	const struct store_target target = {.table = TABLE_DATA_DOWNSAMPLED,
					    .retention = RETENTION_35_DAYS,
					    .period_ms = 15 * MINUTE_MS};
	uint64_t handle = rolled_handle(&d->r, "m");
	struct store_write *write = store_write_new(d->r.h.store, 1 << 20);
	write->stamp_us = stamp_us;
	assert_int_equal(store_append_fields(write, &target, AT(15, 0),
					     1u << ROLLUP_MIN | 1u << ROLLUP_MAX |
						     1u << ROLLUP_SUM | 1u << ROLLUP_COUNT |
						     1u << ROLLUP_FIRST | 1u << ROLLUP_LAST,
					     &handle, 1, values),
			 0);
	harness_write(&d->r.h, write);
	store_write_free(write);
}

static void delete_raw(struct deleting *d, int64_t stamp_us)
{
	const struct store_target target = {.table = TABLE_DATA_RAW};
	uint64_t handle = rolled_handle(&d->r, "m");
	struct store_write *write = store_write_new(d->r.h.store, 1 << 20);
	write->stamp_us = stamp_us;
	assert_int_equal(store_delete_range(write, &target, &handle, 1, AT(15, 0), AT(40, 0)), 0);
	harness_write(&d->r.h, write);
	store_write_free(write);
}

/* A job had read 1.5 before it was deleted, and its row comes when the mark of the deletion has
 * been worked on. */
static void a_row_that_comes_after_all_stays_away(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open_far(&d);
	write_example(&d, "m");
	roll_up(&d);
	struct rollup_delete_options options = options_of(&d, AT(15, 0), AT(40, 0));
	assert_int_equal(run(&d, &options), 0);
	int64_t stale_us = store_stamp(d.r.h.store);
	roll_up(&d);
	put_stale_row(&d, stale_us);
	rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS,
		      QUARTER("0", "1.2") " " QUARTER("45", "3.4"));
	deleting_close(&d);
}

/* Who deleted the samples died, and the mark that he had made was worked on before they went: rows
 * that know of them stand, with stamps above his wish, and no mark speaks of them. Only who goes on
 * for him takes them away, and has what is left made again. */
static void who_goes_on_takes_rows_that_nothing_corrects(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open_far(&d);
	write_example(&d, "m");
	struct rollup_delete_options options = options_of(&d, AT(15, 0), AT(40, 0));
	options.stamp_us = store_stamp(d.r.h.store);
	roll_up(&d);
	int64_t stale_us = store_stamp(d.r.h.store);
	delete_raw(&d, options.stamp_us);
	assert_int_equal(run(&d, &options), 0);
	roll_up(&d);
	rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS,
		      QUARTER("0", "1.2") " " QUARTER("15", "1.5") " " QUARTER(
			      "30", "1.1") " " QUARTER("45", "3.4"));
	options.again = true;
	assert_int_equal(run(&d, &options), 0);
	rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS, "");
	roll_up(&d);
	put_stale_row(&d, stale_us);
	rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS,
		      QUARTER("0", "1.2") " " QUARTER("45", "3.4"));
	rolled_expect(&d.r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.2,max=3.4,sum=4.6,count=2,first=1.2,last=3.4");
	deleting_close(&d);
}

/* The slot was rolled up between the wish and the deletion, and is closed by now: no job corrects
 * the row of 10:15, which has the higher stamp, nor one that comes later. From 10:30 on the bucket
 * is cut, as is the hour: their rows stay. */
static void rows_of_a_closed_slot_go_whenever_they_were_made(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open_far(&d);
	write_example(&d, "m");
	struct rollup_delete_options options = options_of(&d, AT(15, 0), AT(40, 0));
	options.stamp_us = store_stamp(d.r.h.store);
	roll_up(&d);
	int64_t stale_us = store_stamp(d.r.h.store);
	d.r.site.retention.levels_ms[0] = 24 * HOUR_MS;
	rolled_set_ms(&d.r, AT(30 * 60, 0));
	assert_int_equal(run(&d, &options), 0);
	put_stale_row(&d, stale_us);
	rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS,
		      QUARTER("0", "1.2") " " QUARTER("30", "1.1") " " QUARTER("45", "3.4"));
	rolled_expect(&d.r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4");
	deleting_close(&d);
}

/* The open slot was rolled up between the wish and the deletion. Nothing is left of the series, so
 * no job would take away these rows, which have higher stamps. */
static void rows_of_a_series_that_goes_as_a_whole_go_whenever_they_were_made(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open_far(&d);
	write_example(&d, "m");
	struct rollup_delete_options options = options_of(&d, 0, 0);
	options.whole = true;
	options.stamp_us = store_stamp(d.r.h.store);
	roll_up(&d);
	assert_int_equal(run(&d, &options), 0);
	roll_up(&d);
	rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS, "");
	deleting_close(&d);
}

/* 9 came for 10:20 when its hour was closed, and after the wish. */
static void rows_of_late_points_that_stay_are_made_again(void **state)
{
	(void)state;
	struct deleting d = {0};
	rolled_begin(&d.r, quarter_and_hour, 2, 24 * HOUR_MS, NULL);
	rolled_set_ms(&d.r, AT(50, 0));
	deleting_make_far(&d);
	write_example(&d, "m");
	roll_up(&d);
	rolled_set_ms(&d.r, AT(3 * 24 * 60, 0));
	struct rollup_delete_options options = options_of(&d, AT(15, 0), AT(30, 0));
	options.stamp_us = store_stamp(d.r.h.store);
	rolled_put(&d.r, "m", "9", AT(20, 0));
	roll_up(&d);
	assert_int_equal(run(&d, &options), 0);
	roll_up(&d);
	rolled_expect(
		&d.r, "m", 15 * MINUTE_MS, TEN_MS,
		QUARTER("0",
			"1.2") " "
			       "15+:min=9.0,max=9.0,sum=9.0,count=1,first=9.0,last=9.0 " QUARTER(
				       "30", "1.1") " " QUARTER("45", "3.4"));
	rolled_close(&d.r);
}

/* The wish is of before the second 1.5 came. */
static void what_came_after_the_wish_stays(void **state)
{
	(void)state;
	struct deleting d;
	deleting_open_far(&d);
	write_example(&d, "m");
	struct rollup_delete_options options = options_of(&d, AT(15, 0), AT(40, 0));
	options.stamp_us = store_stamp(d.r.h.store);
	rolled_put(&d.r, "m", "1.5", AT(16, 0));
	assert_int_equal(run(&d, &options), 0);
	roll_up(&d);
	rolled_expect(&d.r, "m", 15 * MINUTE_MS, TEN_MS,
		      QUARTER("0", "1.2") " " QUARTER("15", "1.5") " " QUARTER("45", "3.4"));
	deleting_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_that_comes_after_all_stays_away),
		cmocka_unit_test(who_goes_on_takes_rows_that_nothing_corrects),
		cmocka_unit_test(what_came_after_the_wish_stays),
		cmocka_unit_test(rows_of_a_closed_slot_go_whenever_they_were_made),
		cmocka_unit_test(rows_of_a_series_that_goes_as_a_whole_go_whenever_they_were_made),
		cmocka_unit_test(rows_of_late_points_that_stay_are_made_again),
		cmocka_unit_test(what_lies_in_the_time_goes),
		cmocka_unit_test(the_edges_of_the_time),
		cmocka_unit_test(much_goes_piece_by_piece),
		cmocka_unit_test(slots_between_are_marked_where_they_are_few),
		cmocka_unit_test(series_that_go_as_a_whole_are_not_there_any_more),
		cmocka_unit_test(rows_that_cannot_be_made_again_are_kept_and_counted),
		cmocka_unit_test(rows_of_a_granularity_of_before_go_too),
		cmocka_unit_test(a_slot_that_is_about_to_expire_is_marked),
		cmocka_unit_test(late_samples_go_and_their_rows_are_made_again),
		cmocka_unit_test(a_damaged_series_is_left_and_counted),
		cmocka_unit_test(what_breaks_off_is_done_by_the_same_again),
		cmocka_unit_test(marks_that_do_not_fit_are_still_those_of_their_write),
		cmocka_unit_test(what_was_broken_off_goes_on_at_the_next_start),
		cmocka_unit_test(what_was_written_after_a_deletion_outlives_the_next_start),
		cmocka_unit_test(a_note_that_stays_is_said),
		cmocka_unit_test(a_store_without_room_deletes_all_the_same),
		cmocka_unit_test(what_another_process_is_at_is_left_to_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
