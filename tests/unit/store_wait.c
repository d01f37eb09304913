/* Waiting for the store: what comes back, and what a stop does to a batch under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "naive.h"
#include "slow_store.h"
#include "store/wait.h"

static const struct store_parts row = {{SLICE("row")}}, column = {{SLICE("a")}};

/* A store that answers when the waiting thread has nothing to do. */
struct rig {
	struct task_queue queue;
	struct clock_virtual clock;
	struct random random;
	struct slow slow;
	struct slow_store store;
	bool stops; /* the queue is stopped before the store answers */
	bool was_cancelled;
	struct store_read *read;
	unsigned idles;
};

static struct rig *rig_of(struct task_queue *queue)
{
	return CONTAINER_OF(queue, struct rig, queue);
}

static void rig_idle(struct task_queue *queue)
{
	struct rig *rig = rig_of(queue);
	if (queue->first)
		return;
	pthread_mutex_unlock(&queue->lock);
	rig->idles++;
	if (rig->stops && rig->idles == 1) {
		task_queue_stop(queue);
	} else {
		rig->was_cancelled = rig->read && rig->read->cancelled;
		slow_write(&rig->slow);
		slow_read(&rig->slow, 0);
	}
	pthread_mutex_lock(&queue->lock);
}

static void rig_open(struct rig *rig)
{
	*rig = (struct rig){.stops = false};
	clock_virtual_init(&rig->clock, 1600000000000000);
	random_init(&rig->random, 1);
	rig->slow = (struct slow){.store = naive_open(&rig->clock.clock), .random = &rig->random};
	slow_open(&rig->store, &rig->slow, true);
	task_queue_init(&rig->queue);
	rig->queue.wait = rig_idle;
}

static void rig_close(struct rig *rig)
{
	store_close(rig->slow.store);
	task_queue_release(&rig->queue);
}

static struct store_write *put(struct rig *rig, struct slice value)
{
	struct store_write *write = store_write_new(&rig->store.store, 20 << 20);
	assert_int_equal(store_cell_put(write, TABLE_DEVICES, &row, &column, value, 1, 0), 0);
	return write;
}

static struct store_request *get(struct rig *rig)
{
	rig->read = store_read_new(&rig->store.store, 1 << 20);
	rig->read->now_ms = clock_wall_ms(&rig->clock.clock);
	struct store_request *request = store_read_add(rig->read, STORE_CELL_GET);
	request->cell_get.table = TABLE_DEVICES;
	request->cell_get.key = row;
	request->cell_get.column = column;
	return request;
}

static void what_is_written_is_there_when_the_wait_returns(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	struct store_write *write = put(&rig, SLICE("value"));
	assert_int_equal(store_write_wait(write, &rig.queue), 0);
	struct store_request *request = get(&rig);
	assert_int_equal(store_read_wait(rig.read, &rig.queue), 0);
	assert_true(slice_equal(request->cell_get.cell.value, SLICE("value")));
	assert_int_equal(rig.idles, 2);
	store_read_free(rig.read);
	store_write_free(write);
	rig_close(&rig);
}

static void a_refusal_is_returned_at_once(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	rig.slow.refuses = 1000;
	struct store_write *write = put(&rig, SLICE("value"));
	assert_int_equal(store_write_wait(write, &rig.queue), ERR_BUSY);
	get(&rig);
	assert_int_equal(store_read_wait(rig.read, &rig.queue), ERR_BUSY);
	assert_int_equal(rig.idles, 0);
	store_read_free(rig.read);
	store_write_free(write);
	rig_close(&rig);
}

static void nothing_is_submitted_after_a_stop(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	task_queue_stop(&rig.queue);
	task_queue_stop(&rig.queue);
	struct store_write *write = put(&rig, SLICE("value"));
	assert_int_equal(store_write_wait(write, &rig.queue), ERR_CANCELLED);
	get(&rig);
	assert_int_equal(store_read_wait(rig.read, &rig.queue), ERR_CANCELLED);
	assert_int_equal(rig.slow.write_count + rig.slow.read_count, 0);
	store_read_free(rig.read);
	store_write_free(write);
	rig_close(&rig);
}

static void a_stop_cancels_the_read_under_way(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	rig.stops = true;
	get(&rig);
	(void)!store_read_wait(rig.read, &rig.queue);
	assert_int_equal(rig.idles, 2);
	assert_true(rig.was_cancelled);
	store_read_free(rig.read);
	rig_close(&rig);
}

/* Its caller has to know whether it is durable. */
static void a_stop_waits_for_the_write_under_way(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	rig.stops = true;
	struct store_write *write = put(&rig, SLICE("value"));
	assert_int_equal(store_write_wait(write, &rig.queue), 0);
	assert_int_equal(rig.idles, 2);
	store_write_free(write);
	rig_close(&rig);
}

static int add_cell(const struct store_cell *cell, void *owner)
{
	struct buf *found = owner;
	buf_append(found, cell->column.part[0].data, cell->column.part[0].len);
	buf_printf(found, "=%zu ", cell->value.len);
	return cell->value.len == 3 ? ERR_DAMAGED : 0;
}

static int read_row(struct rig *rig, const char *want)
{
	struct errbuf e = {""};
	struct buf found;
	buf_init(&found, 1000);
	int err = store_row_wait(&rig->store.store, &rig->queue, clock_wall_ms(&rig->clock.clock),
				 TABLE_DEVICES, &row, add_cell, &found, &e);
	buf_append_char(&found, 0);
	assert_string_equal(found.data, want);
	buf_release(&found);
	return err;
}

/* 50 cells of 1 MiB are more than one read holds; they are put in another order than theirs. */
static void a_row_comes_in_slices_and_in_order(UNUSED void **state)
{
	enum { COUNT = 50, LONG_BYTES = TABLE_SHARED_VALUE_MAX_BYTES };
	char wanted[COUNT * 12 + 1] = "";
	struct rig rig;
	char *value = mem_zalloc(LONG_BYTES);
	rig_open(&rig);
	assert_int_equal(read_row(&rig, ""), 0);
	for (size_t i = 0; i < COUNT; i++) {
		char text[8];
		snprintf(text, sizeof(text), "%02zu", i * 7 % COUNT);
		snprintf(wanted + i * 11, sizeof(wanted) - i * 11, "%02zu=1048576 ", i);
		struct store_write *write = store_write_new(&rig.store.store, 20 << 20);
		const struct store_parts name = {{slice_of(text)}};
		assert_int_equal(store_cell_put(write, TABLE_DEVICES, &row, &name,
						(struct slice){value, LONG_BYTES}, 1, 0),
				 0);
		assert_int_equal(store_write_wait(write, &rig.queue), 0);
		store_write_free(write);
	}
	rig.idles = 0;
	assert_int_equal(read_row(&rig, wanted), 0);
	assert_in_range(rig.idles, 2, 4);
	mem_free(value);
	rig_close(&rig);
}

static void a_row_ends_at_the_first_error(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig);
	struct store_write *write = store_write_new(&rig.store.store, 1 << 20);
	for (size_t i = 0; i < 3; i++) {
		char name[2] = {(char)('a' + i), 0};
		const struct store_parts at = {{slice_of(name)}};
		assert_int_equal(store_cell_put(write, TABLE_DEVICES, &row, &at,
						i == 1 ? SLICE("123") : SLICE("1"), 1, 0),
				 0);
	}
	assert_int_equal(store_write_wait(write, &rig.queue), 0);
	assert_int_equal(read_row(&rig, "a=1 b=3 "), ERR_DAMAGED);
	store_write_free(write);
	rig_close(&rig);
}

struct rows_seen {
	char names[10];
	size_t count, ends_at;
};

static int see_row(const struct store_row *found, void *owner)
{
	struct rows_seen *seen = owner;
	assert_true(seen->count < sizeof(seen->names) - 1);
	seen->names[seen->count++] = *found->key.part[0].data;
	return seen->count == seen->ends_at ? ERR_DAMAGED : 0;
}

static int see_rows(struct rig *rig, struct rows_seen *seen)
{
	struct errbuf e = {""};
	return store_rows_wait(&rig->store.store, &rig->queue, clock_wall_ms(&rig->clock.clock),
			       TABLE_DEVICES, see_row, seen, &e);
}

/* Of three cells of "b" its row comes once; after an error nothing does. */
static void rows_come_until_an_error(UNUSED void **state)
{
	static const char *const names[] = {"b", "d", "a", "b", "c", "b"};
	struct rows_seen all = {.ends_at = 100}, two = {.ends_at = 2};
	struct rig rig;
	rig_open(&rig);
	struct store_write *write = store_write_new(&rig.store.store, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char name[2] = {(char)('a' + i), 0};
		const struct store_parts key = {{slice_of(names[i])}}, at = {{slice_of(name)}};
		assert_int_equal(store_cell_put(write, TABLE_DEVICES, &key, &at, SLICE("1"), 1, 0),
				 0);
	}
	assert_int_equal(store_write_wait(write, &rig.queue), 0);
	store_write_free(write);
	assert_int_equal(see_rows(&rig, &all), 0);
	assert_int_equal(all.count, 4);
	for (char name = 'a'; name <= 'd'; name++)
		assert_non_null(strchr(all.names, name));
	assert_int_equal(see_rows(&rig, &two), ERR_DAMAGED);
	assert_int_equal(two.count, 2);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_there_when_the_wait_returns),
		cmocka_unit_test(a_refusal_is_returned_at_once),
		cmocka_unit_test(nothing_is_submitted_after_a_stop),
		cmocka_unit_test(a_stop_cancels_the_read_under_way),
		cmocka_unit_test(a_stop_waits_for_the_write_under_way),
		cmocka_unit_test(a_row_comes_in_slices_and_in_order),
		cmocka_unit_test(a_row_ends_at_the_first_error),
		cmocka_unit_test(rows_come_until_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
