/* Marks in the store: what is touched, listed, read, and taken away. */
#include "ingest_harness.h"

#include "base/cursor.h"
#include "contract/far.h"
#include "rollup_drivers.h"

#define SLOT_S INT64_C(1598263200) /* 2020-08-24T10:00:00Z */

static const struct mark_slot slot = {SLOT_S, 3};

struct marks {
	struct clock_virtual clock;
	struct task_queue queue;
	struct store *store;
	struct marks *marks;
	struct marks_reading reading;
};

static void on_written(struct store_write *write, int err)
{
	assert_int_equal(err, 0);
	*(bool *)write->owner = true;
}

static void track_open_writing(struct marks *t, size_t write_max_bytes)
{
	*t = (struct marks){0};
	clock_virtual_init(&t->clock, SLOT_S * 1000000);
	task_queue_init(&t->queue);
	t->store = naive_open(&t->clock.clock);
	t->marks = marks_store_open(&(struct marks_store_options){
		.store = t->store, .writer = SLICE("w"), .write_max_bytes = write_max_bytes});
}

static void track_open(struct marks *t)
{
	*t = (struct marks){0};
	clock_virtual_init(&t->clock, SLOT_S * 1000000);
	task_queue_init(&t->queue);
	t->store = naive_open(&t->clock.clock);
	t->marks = driver_open(t->store, &t->clock.clock, 3600000, 300000);
}

static void track_close(struct marks *t)
{
	marks_reading_release(&t->reading);
	marks_close(t->marks);
	store_close(t->store);
	task_queue_release(&t->queue);
}

static struct store_write *begin_write(struct marks *t, size_t max_bytes)
{
	struct store_write *write = store_write_new(t->store, max_bytes);
	write->executor = &t->queue.executor;
	write->done = on_written;
	return write;
}

static void end_write(struct marks *t, struct store_write *write)
{
	bool written = false;
	write->owner = &written;
	assert_int_equal(store_write_submit(write), 0);
	while (!written)
		task_queue_wait(&t->queue);
	store_write_free(write);
}

/* One cell: `names` are series of the tenant "t", apart by blanks. */
static void touch_in(struct marks *t, struct mark_slot in, const char *names, int64_t now_ms)
{
	struct mark_touch touches[16];
	size_t count = 0;
	char copy[256], *at = copy;
	snprintf(copy, sizeof(copy), "%s", names);
	for (char *name; (name = strsep(&at, " "));)
		touches[count++] =
			(struct mark_touch){.slot = in,
					    .tenant = SLICE("t"),
					    .series_set = series_set_split(slice_of(name))};
	assert_int_equal(marks_mark_wait(t->marks, &t->queue, now_ms, touches, count), 0);
}

static void touch(struct marks *t, const char *names, int64_t now_ms)
{
	touch_in(t, slot, names, now_ms);
}

static void read_marks(struct marks *t)
{
	marks_reading_release(&t->reading);
	t->reading = (struct marks_reading){.marks = t->marks, .slots = &slot, .slot_count = 1};
	assert_int_equal(marks_read(&t->reading, &t->queue, SLOT_S * 1000), 0);
}

static int by_name(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	int order = slice_compare(x->series_set.metric, y->series_set.metric);
	return order ? order : slice_compare(x->series_set.tags, y->series_set.tags);
}

/* `name@touched` of each mark, in the order of names. */
static void expect(struct marks *t, const char *want)
{
	char text[1024] = "";
	size_t len = 0;
	read_marks(t);
	size_t count = t->reading.count;
	assert_true(t->reading.over);
	struct mark *sorted = mem_alloc_array(count + 1, sizeof(*sorted));
	if (count)
		memcpy(sorted, t->reading.part, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_name);
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s" SHOWN SHOWN "@%lld",
					i ? " " : "", SHOWN_OF(sorted[i].series_set.metric),
					SHOWN_OF(sorted[i].series_set.tags),
					(long long)sorted[i].touched_ms);
	mem_free(sorted);
	assert_string_equal(text, want);
}

static void set_finished(struct marks *t, const char *name)
{
	for (size_t i = 0; i < t->reading.count; i++) {
		struct mark *mark = &t->reading.part[i];
		mark->finished |=
			series_set_equal(mark->series_set, series_set_split(slice_of(name)));
	}
}

static void finish(struct marks *t)
{
	assert_int_equal(marks_finish(&t->reading, &t->queue), 0);
}

static size_t count_cells(struct marks *t)
{
	struct store_read *read = store_read_new(t->store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_STATS);
	int err = 1;
	read->executor = &t->queue.executor;
	read->done = harness_read_done;
	read->owner = &err;
	assert_int_equal(store_read_submit(read), 0);
	while (err == 1)
		task_queue_wait(&t->queue);
	size_t cells = request->stats->tables[TABLE_MARKS].samples;
	store_read_free(read);
	return cells;
}

/* Cells in the store, or members in Redis, each with a touch. */
static void expect_kept(struct marks *t, size_t cells, long members)
{
	assert_int_equal(count_cells(t), driver.in_redis ? 0 : cells);
	if (!driver.in_redis)
		return;
	assert_int_equal(strtol(redis_say(&driver.redis, "SCARD pending:3:1598263200"), NULL, 10),
			 members);
	assert_int_equal(strtol(redis_say(&driver.redis, "HLEN touches:3:1598263200"), NULL, 10),
			 members);
}

static void a_series_of_several_cells_is_one_mark_of_the_last_touch(void **state)
{
	(void)state;
	struct marks t;
	track_open(&t);
	touch(&t, "a b", 100);
	touch(&t, "b c", 200);
	expect(&t, "a@100 b@200 c@200");
	/* A clock that is behind has the later stamp and the earlier time. Redis has the last
	 * touch, whose time is as right as the clocks are. */
	touch(&t, "c", 150);
	expect(&t, driver.in_redis ? "a@100 b@200 c@150" : "a@100 b@200 c@200");
	track_close(&t);
}

static void what_is_not_finished_stays_and_what_came_meanwhile(void **state)
{
	(void)state;
	struct marks t;
	track_open(&t);
	touch(&t, "a b", 100);
	touch(&t, "b c", 200);
	read_marks(&t);
	touch(&t, "a", 300);
	set_finished(&t, "a");
	set_finished(&t, "c");
	finish(&t);
	expect(&t, "a@300 b@200");
	expect_kept(&t, 2, 2);
	set_finished(&t, "b");
	set_finished(&t, "a");
	finish(&t);
	expect(&t, "");
	expect_kept(&t, 0, 0);
	track_close(&t);
}

/* Each cell has a touch of its own, and a write has no room for all of them. */
static void a_write_that_is_full_is_gone_on_with(void **state)
{
	(void)state;
	struct marks t;
	track_open_writing(&t, 4096);
	for (int i = 0; i < 40; i++) {
		char names[32];
		snprintf(names, sizeof(names), "x%d y%d", i, i);
		touch(&t, names, 100 + i);
	}
	read_marks(&t);
	for (int i = 0; i < 40; i++) {
		char name[16];
		snprintf(name, sizeof(name), "x%d", i);
		set_finished(&t, name);
	}
	finish(&t);
	read_marks(&t);
	assert_int_equal(t.reading.count, 40);
	for (size_t i = 0; i < t.reading.count; i++)
		assert_int_equal(t.reading.part[i].series_set.metric.data[0], 'y');
	track_close(&t);
}

static void put_cell(struct marks *t, const char *value, size_t len)
{
	struct store_write *write = begin_write(t, 1 << 20);
	uint8_t numbers[3][8];
	be64_put(numbers[0], slot.partition);
	be64_put(numbers[1], (uint64_t)slot.slot_s);
	be64_put(numbers[2], (uint64_t)store_stamp(t->store));
	struct store_parts row = {{{(char *)numbers[0], 8}, {(char *)numbers[1], 8}}};
	struct store_parts column = {{{(char *)numbers[2], 8}, SLICE("w")}};
	assert_int_equal(
		store_log_put(write, TABLE_MARKS, &row, &column, (struct slice){value, len}), 0);
	end_write(t, write);
}

/* One damaged cell ended the reading: nothing of its slot was ever rolled up again. */
static void a_cell_that_cannot_be_read_stays_and_holds_up_nobody_else(void **state)
{
	(void)state;
	static const char later[] = "\5........", cut[] = "\1........\1t\5\0abc";
	struct marks t;
	track_open(&t);
	touch(&t, "a", 100);
	put_cell(&t, later, sizeof(later) - 1);
	put_cell(&t, cut, sizeof(cut) - 1);
	put_cell(&t, "\1...", 4);
	put_cell(&t, "", 0);
	touch(&t, "b", 200);
	expect(&t, "a@100 b@200");
	assert_int_equal(t.reading.unread, 4);
	set_finished(&t, "a");
	set_finished(&t, "b");
	finish(&t);
	expect(&t, "");
	assert_int_equal(count_cells(&t), 4);
	track_close(&t);
}

/* Of a series that is marked once more, the later touch is no deletion's. */
static void that_samples_were_deleted_is_known_until_it_is_finished(void **state)
{
	(void)state;
	struct mark_touch touches[] = {
		{.slot = slot,
		 .tenant = SLICE("t"),
		 .series_set.metric = SLICE("a"),
		 .deleted = true},
		{.slot = slot, .tenant = SLICE("t"), .series_set.metric = SLICE("b")},
		{.slot = slot,
		 .tenant = SLICE("t"),
		 .series_set.metric = SLICE("c"),
		 .deleted = true}};
	struct marks t;
	size_t added = 0;
	track_open(&t);
	mark_touches_sort(touches, 3);
	struct store_write *write = begin_write(&t, 1 << 20);
	assert_int_equal(marks_touches_add(t.marks, write, 100, touches, 3, &added), 0);
	end_write(&t, write);
	assert_int_equal(count_cells(&t), 2);
	touch(&t, "a b c", 200);
	expect(&t, "a@200 b@200 c@200");
	set_finished(&t, "b");
	set_finished(&t, "c");
	finish(&t);
	expect(&t, "a@200");
	assert_true(t.reading.part->deleted);
	set_finished(&t, "a");
	finish(&t);
	expect(&t, "");
	assert_int_equal(count_cells(&t), 0);
	touch(&t, "a", 300);
	expect(&t, "a@300");
	assert_false(t.reading.part->deleted);
	track_close(&t);
}

/* Rows of one slot are read together, more than has room at once: the first must not leave the
 * others without any for ever. */
static void a_long_row_does_not_crowd_out_the_others(void **state)
{
	(void)state;
	enum { ROWS = 3, CELLS = 700 };
	static char name[30000];
	struct mark_slot slots[ROWS];
	struct marks t;
	size_t found = 0, parts = 0;
	track_open(&t);
	memset(name, 'n', sizeof(name) - 1);
	for (uint32_t p = 0; p < ROWS; p++) {
		slots[p] = (struct mark_slot){SLOT_S, p};
		for (uint32_t i = 0; i < (p == 1 ? 1 : CELLS); i++) {
			size_t added = 0, len = (size_t)snprintf(name, 32, "p%u i%u", p, i);
			struct mark_touch one = {
				slots[p], SLICE("t"), {.metric = {name, sizeof(name) - 1}}};
			name[len] = 'n';
			struct store_write *write = begin_write(&t, 1 << 20);
			assert_int_equal(marks_touches_add(t.marks, write, 1, &one, 1, &added), 0);
			end_write(&t, write);
		}
	}
	t.reading = (struct marks_reading){.marks = t.marks, .slots = slots, .slot_count = ROWS};
	while (!t.reading.over) {
		assert_int_equal(marks_read(&t.reading, &t.queue, SLOT_S * 1000), 0);
		found += t.reading.count;
		assert_true(++parts < 20);
	}
	assert_int_equal(found, 2 * CELLS + 1);
	track_close(&t);
}

/* 10:00 to 11:00, quiet for 5 minutes. A touch that is ahead by the difference of clocks counts,
 * one of tomorrow does not. */
static void a_touch_of_a_clock_that_is_ahead_counts(void **state)
{
	(void)state;
	const int64_t end_ms = SLOT_S * 1000 + 3600000, minute_ms = 60000;
	int64_t now_ms = end_ms + 60 * minute_ms;
	assert_int_equal(slot_ready_ms(SLOT_S, end_ms - 1, 3600000, 5 * minute_ms, now_ms),
			 end_ms + 5 * minute_ms);
	assert_int_equal(slot_ready_ms(SLOT_S, now_ms + 2000, 3600000, 5 * minute_ms, now_ms),
			 now_ms + 2000 + 5 * minute_ms);
	assert_int_equal(slot_ready_ms(SLOT_S, now_ms + 86400000, 3600000, 5 * minute_ms, now_ms),
			 end_ms + 5 * minute_ms);
}

/* ---- A store that several processes share ---------------------------------------------------- */

static const struct mark_slot others = {SLOT_S + 3600, 4};

struct shared {
	struct marks t;
	struct far *far;
	pthread_t thread;
};

static void shared_open(struct shared *s)
{
	static const struct far_faults none;
	*s = (struct shared){0};
	clock_virtual_init(&s->t.clock, SLOT_S * 1000000);
	task_queue_init(&s->t.queue);
	s->far = far_new(&s->t.clock.clock, 1, &none);
	assert_int_equal(pthread_create(&s->thread, NULL, far_run, s->far), 0);
	s->t.store = far_open(s->far, &s->t.clock.clock, 0);
	s->t.marks = marks_store_open(&(struct marks_store_options){.store = s->t.store,
								    .writer = SLICE("w"),
								    .clock = &s->t.clock.clock,
								    .late_ms = 1000});
}

static void shared_close(struct shared *s)
{
	marks_reading_release(&s->t.reading);
	marks_close(s->t.marks);
	store_close(s->t.store);
	far_stop(s->far);
	pthread_join(s->thread, NULL);
	far_free(s->far);
	task_queue_release(&s->t.queue);
}

/* How many slots are listed for whoever has partition 3, and that theirs is among them. */
static size_t list_own(struct marks *t)
{
	struct partitions own = {0};
	partitions_add(&own, slot.partition);
	struct marks_listing listing = {.marks = t->marks, .own = &own};
	size_t count = 0;
	bool found = false;
	while (!listing.over) {
		assert_int_equal(marks_list(&listing, &t->queue, SLOT_S * 1000), 0);
		for (size_t i = 0; i < listing.count; i++, count++)
			found |= mark_slot_compare(&listing.slots[i], &slot) == 0;
	}
	marks_listing_release(&listing);
	assert_int_equal(found, count != 0);
	return count;
}

static void finish_all(struct marks *t, int64_t settled_ms)
{
	marks_reading_release(&t->reading);
	t->reading = (struct marks_reading){
		.marks = t->marks, .slots = &slot, .slot_count = 1, .settled_ms = settled_ms};
	assert_int_equal(marks_read(&t->reading, &t->queue, SLOT_S * 1000), 0);
	for (size_t i = 0; i < t->reading.count; i++)
		t->reading.part[i].finished = true;
	assert_true(t->reading.over);
	finish(t);
}

/* At first all rows are enumerated, since there may be marks without; then its own are read. */
static void whoever_shares_a_store_lists_its_own_partitions(void **state)
{
	(void)state;
	struct shared s;
	shared_open(&s);
	touch(&s.t, "a b", SLOT_S * 1000);
	touch_in(&s.t, others, "a", SLOT_S * 1000);
	assert_int_equal(list_own(&s.t), 2);
	assert_int_equal(list_own(&s.t), 1);
	shared_close(&s);
}

/* The mark was made at SLOT_S. One that was made as late as the job has looked at may not be here.
 */
static void a_slot_is_listed_until_its_last_mark_is_settled(void **state)
{
	(void)state;
	struct shared s;
	shared_open(&s);
	touch(&s.t, "a", SLOT_S * 1000);
	assert_int_equal(list_own(&s.t), 1);
	finish_all(&s.t, SLOT_S * 1000);
	assert_int_equal(list_own(&s.t), 1);
	finish_all(&s.t, SLOT_S * 1000 + 1000);
	assert_int_equal(list_own(&s.t), 0);
	touch(&s.t, "a", SLOT_S * 1000);
	assert_int_equal(list_own(&s.t), 1);
	shared_close(&s);
}

/* It was read as of one stamp; a later one, of the same writer, stands. */
static void a_slot_that_is_touched_meanwhile_stays_listed(void **state)
{
	(void)state;
	struct shared s;
	shared_open(&s);
	touch(&s.t, "a", SLOT_S * 1000);
	assert_int_equal(list_own(&s.t), 1);
	s.t.reading = (struct marks_reading){.marks = s.t.marks,
					     .slots = &slot,
					     .slot_count = 1,
					     .settled_ms = SLOT_S * 1000 + 1000};
	assert_int_equal(marks_read(&s.t.reading, &s.t.queue, SLOT_S * 1000), 0);
	s.t.reading.part[0].finished = true;
	touch(&s.t, "b", SLOT_S * 1000);
	finish(&s.t);
	assert_int_equal(list_own(&s.t), 1);
	expect(&s.t, "b@1598263200000");
	shared_close(&s);
}

/* It took longer than a job waits for it. */
static void marks_that_come_late_have_failed(void **state)
{
	(void)state;
	struct shared s;
	struct mark_touch late = {
		.slot = slot, .tenant = SLICE("t"), .series_set = series_set_split(SLICE("a"))};
	shared_open(&s);
	assert_int_equal(marks_mark_wait(s.t.marks, &s.t.queue, SLOT_S * 1000 - 999, &late, 1), 0);
	assert_int_equal(marks_mark_wait(s.t.marks, &s.t.queue, SLOT_S * 1000 - 1000, &late, 1),
			 ERR_UNKNOWN);
	shared_close(&s);
}

int main(void)
{
	const struct CMUnitTest of_shared[] = {
		cmocka_unit_test(whoever_shares_a_store_lists_its_own_partitions),
		cmocka_unit_test(a_slot_is_listed_until_its_last_mark_is_settled),
		cmocka_unit_test(a_slot_that_is_touched_meanwhile_stays_listed),
		cmocka_unit_test(marks_that_come_late_have_failed),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_series_of_several_cells_is_one_mark_of_the_last_touch),
		cmocka_unit_test(what_is_not_finished_stays_and_what_came_meanwhile),
	};
	const struct CMUnitTest of_store[] = {
		cmocka_unit_test(a_write_that_is_full_is_gone_on_with),
		cmocka_unit_test(that_samples_were_deleted_is_known_until_it_is_finished),
		cmocka_unit_test(a_cell_that_cannot_be_read_stays_and_holds_up_nobody_else),
		cmocka_unit_test(a_long_row_does_not_crowd_out_the_others),
		cmocka_unit_test(a_touch_of_a_clock_that_is_ahead_counts),
	};
	return cmocka_run_group_tests(of_store, NULL, NULL) +
	       cmocka_run_group_tests(of_shared, NULL, NULL) + driver_run(tests);
}
