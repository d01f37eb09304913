/* Messages that the queue in the store holds in memory: given without having been written, written
 * when they have waited too long or nobody takes them. Numbers are keys' own: 1 .. of k0. */
#include "naive.h"
#include "queue/local/local.h"
#include "queue_rig.h"

enum { NUMBERS_MAX = 40 };

static struct held {
	struct queue_put put;
	bool over;
	int err;
} held_puts[NUMBERS_MAX];

static struct queue *open_local(void *context, struct store *store,
				const struct queue_limits *limits)
{
	struct errbuf e = {""};
	struct queue *queue = NULL;
	struct queue_rig *q = context;
	const struct queue_local_options options = {
		.name = SLICE("q"),
		.workers = limits->workers,
		.store = store,
		.clock = &q->rig.clock.clock,
	};
	if (queue_local_open(&options, &queue, &e))
		fail_msg("%s", e.text);
	return queue;
}

static void nothing_to_clear(UNUSED void *context)
{
}

static int set_up(void **state)
{
	static struct queue_rig q;
	static struct contract_engine engine;
	static struct queue_driver driver;
	driver = (struct queue_driver){.name = "local",
				       .context = &q,
				       .open = open_local,
				       .clear = nothing_to_clear,
				       .message_max_bytes = QUEUE_MESSAGE_MAX_BYTES};
	engine = engine_naive();
	queue_rig_open(&q, &driver, &engine, &(struct queue_limits){.workers = 1});
	queue_rig_worker(&q, 0);
	*state = &q;
	return 0;
}

static int tear_down(void **state)
{
	queue_rig_close(*state);
	return 0;
}

static void put_over(struct queue_put *put, int err)
{
	struct held *held = put->owner;
	assert_false(held->over);
	held->over = true;
	held->err = err;
}

static void hold_bytes(struct queue_rig *q, const char *key, uint64_t number, struct slice bytes)
{
	struct held *held = &held_puts[number];
	*held = (struct held){.put = {.key = slice_of(key),
				      .bytes = bytes,
				      .held = true,
				      .executor = &q->rig.queue.executor,
				      .done = put_over,
				      .owner = held}};
	assert_int_equal(queue_put(q->queue, &held->put), 0);
}

static void hold(struct queue_rig *q, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n <= to; n++)
		hold_bytes(q, "k0", n, queue_rig_message(q, "k0", n));
}

/* Completes what the store has done. */
static void pump(struct queue_rig *q)
{
	while (task_queue_run(&q->rig.queue))
		;
}

static size_t count_over(struct queue_rig *q, uint64_t from, uint64_t to)
{
	size_t count = 0;
	pump(q);
	for (uint64_t n = from; n <= to; n++) {
		assert_int_equal(held_puts[n].err, 0);
		count += held_puts[n].over;
	}
	return count;
}

/* Asks, and is given these numbers. */
static struct queue_batch *take(struct queue_rig *q, uint64_t from, uint64_t to)
{
	queue_rig_ask(q, 0);
	assert_int_equal(queue_rig_wait(q, 0), 0);
	struct queue_batch *batch = q->workers[0].batch;
	assert_int_equal(batch->count, to - from + 1);
	for (uint64_t n = from; n <= to; n++)
		assert_int_equal(queue_rig_number(&batch->messages[n - from]), n);
	return batch;
}

/* Nothing waits, nor does anything lie there for the next start. */
static void assert_empty(struct queue_rig *q)
{
	pump(q);
	struct queue_stats stats = queue_rig_stats(q);
	assert_true(stats.pending == 0 && stats.pending_bytes == 0);
	assert_int_equal(stats.added, stats.done);
	queue_rig_reopen(q);
	assert_int_equal(queue_rig_stats(q).pending, 0);
}

/* Those lie in the store, in their order. */
static void assert_written(struct queue_rig *q, uint64_t from, uint64_t to)
{
	uint64_t numbers[NUMBERS_MAX];
	pump(q);
	queue_rig_reopen(q);
	assert_int_equal(queue_rig_stats(q).pending, to - from + 1);
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, to - from + 1, numbers);
	for (uint64_t n = from; n <= to; n++)
		assert_int_equal(numbers[n - from], n);
}

static void advance(struct queue_rig *q, int64_t ms)
{
	clock_virtual_advance(&q->rig.clock, ms * 1000);
	queue_tick(q->queue);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void what_is_held_is_given_together_and_never_read(void **state)
{
	struct queue_rig *q = *state;
	queue_rig_ask(q, 0);
	hold(q, 1, 3);
	task_queue_run(&q->workers[0].tasks);
	assert_false(q->workers[0].taken);
	assert_int_equal(queue_rig_stats(q).pending, 3);
	naive_refuse_reads(q->rig.store, ERR_BUSY, 1);
	queue_offer(q->queue);
	assert_int_equal(queue_rig_wait(q, 0), 0);
	assert_int_equal(q->workers[0].batch->count, 3);
	assert_int_equal(count_over(q, 1, 3), 0);
	assert_int_equal(queue_rig_store(q, 0), 0);
	assert_int_equal(count_over(q, 1, 3), 3);
	naive_refuse_reads(q->rig.store, ERR_BUSY, 0);
	assert_int_equal(queue_rig_samples(q), 3);
	assert_empty(q);
}

static void held_or_not_the_order_is_that_of_the_puts(void **state)
{
	struct queue_rig *q = *state;
	uint64_t numbers[6];
	assert_int_equal(queue_rig_put(q, "k0", 1), 0);
	hold(q, 2, 3);
	assert_int_equal(queue_rig_put(q, "k0", 4), 0);
	hold(q, 5, 6);
	queue_rig_drain(q, 0, 6, numbers);
	for (uint64_t n = 1; n <= 6; n++)
		assert_int_equal(numbers[n - 1], n);
	assert_int_equal(count_over(q, 2, 3) + count_over(q, 5, 6), 4);
	assert_empty(q);
}

static void of_several_shards_some_are_held(void **state)
{
	struct queue_rig *q = *state;
	uint64_t numbers[4];
	assert_true(queue_shard(SLICE("k0")) != queue_shard(SLICE("k1")));
	assert_int_equal(queue_rig_put(q, "k1", 7), 0);
	assert_int_equal(queue_rig_put(q, "k1", 8), 0);
	hold(q, 1, 2);
	queue_rig_drain(q, 0, 4, numbers);
	assert_true(numbers[0] == 1 && numbers[1] == 2 && numbers[2] == 7 && numbers[3] == 8);
	assert_empty(q);
}

/* Of a read that fails they are not made to wait; what was to be read comes another time. */
static void a_read_that_fails_keeps_nothing_that_is_held(void **state)
{
	struct queue_rig *q = *state;
	uint64_t number;
	assert_int_equal(queue_rig_put(q, "k1", 7), 0);
	hold(q, 1, 2);
	naive_refuse_reads(q->rig.store, ERR_BUSY, 1);
	take(q, 1, 2);
	assert_int_equal(queue_rig_store(q, 0), 0);
	queue_rig_drain(q, 0, 1, &number);
	assert_int_equal(number, 7);
	assert_empty(q);
}

static void what_waits_too_long_is_written(void **state)
{
	struct queue_rig *q = *state;
	hold(q, 1, 2);
	advance(q, QUEUE_HELD_MS - 1);
	hold(q, 3, 3);
	assert_int_equal(count_over(q, 1, 3), 0);
	advance(q, 1);
	assert_int_equal(count_over(q, 1, 2), 2);
	assert_int_equal(count_over(q, 3, 3), 0);
	advance(q, QUEUE_HELD_MS);
	assert_int_equal(count_over(q, 3, 3), 1);
	assert_int_equal(queue_rig_stats(q).pending, 3);
	assert_written(q, 1, 3);
}

/* As one that hangs has them. */
static void what_a_worker_has_too_long_is_written(void **state)
{
	struct queue_rig *q = *state;
	hold(q, 1, 2);
	take(q, 1, 2);
	advance(q, QUEUE_HELD_MS);
	assert_int_equal(count_over(q, 1, 2), 2);
	assert_int_equal(queue_rig_store(q, 0), 0);
	assert_int_equal(queue_rig_samples(q), 2);
	assert_empty(q);
}

/* Its write is told to remove what is on its way, not what it has said is stored. */
static void a_worker_stores_what_is_being_written(void **state)
{
	struct queue_rig *q = *state;
	hold(q, 1, 2);
	struct queue_batch *batch = take(q, 1, 2);
	advance(q, QUEUE_HELD_MS); /* not pumped: on its way */
	struct store_write *write = queue_rig_write_of(q, batch);
	assert_int_equal(queue_submit(batch, write), 0);
	queue_finish(batch, true);
	q->workers[0].batch = NULL;
	assert_int_equal(queue_rig_stats(q).pending, 0);
	assert_int_equal(queue_rig_write_wait(q, write), 0);
	assert_int_equal(count_over(q, 1, 2), 2);
	hold(q, 3, 3);
	batch = take(q, 3, 3);
	write = queue_rig_write_of(q, batch);
	advance(q, QUEUE_HELD_MS);
	assert_int_equal(count_over(q, 3, 3), 0);
	assert_int_equal(queue_submit(batch, write), 0);
	assert_int_equal(queue_rig_write_wait(q, write), 0);
	queue_finish(batch, true);
	q->workers[0].batch = NULL;
	assert_int_equal(count_over(q, 3, 3), 1);
	assert_empty(q);
}

static void what_was_not_stored_is_held_on(void **state)
{
	struct queue_rig *q = *state;
	hold(q, 1, 2);
	take(q, 1, 2);
	naive_fail_writes(q->rig.store, ERR_FULL, 1);
	assert_int_equal(queue_rig_store(q, 0), ERR_FULL);
	assert_int_equal(count_over(q, 1, 2), 0);
	hold(q, 3, 3);
	take(q, 1, 3);
	queue_rig_fail(q, 0);
	assert_int_equal(queue_rig_stats(q).redelivered, 5);
	advance(q, QUEUE_HELD_MS);
	assert_int_equal(count_over(q, 1, 3), 3);
	assert_written(q, 1, 3);
}

static void another_worker_is_given_what_is_held(void **state)
{
	struct queue_rig *q = *state;
	uint64_t numbers[3];
	hold(q, 1, 2);
	struct queue_batch *batch = take(q, 1, 2);
	struct store_write *write = queue_rig_write_of(q, batch);
	assert_int_equal(queue_submit(batch, write), 0);
	q->workers[0].batch = NULL;
	struct queue_worker *old = queue_rig_worker(q, 0);
	hold(q, 3, 3);
	take(q, 1, 3);
	assert_int_equal(queue_rig_write_wait(q, write), 0);
	queue_finish(batch, true);
	queue_worker_free(old);
	assert_int_equal(count_over(q, 1, 3), 2);
	assert_int_equal(queue_rig_stats(q).pending, 1);
	queue_rig_fail(q, 0);
	queue_rig_drain(q, 0, 1, numbers);
	assert_int_equal(numbers[0], 3);
	assert_int_equal(count_over(q, 3, 3), 1);
	assert_empty(q);
}

static void a_worker_that_goes_leaves_nothing_in_memory(void **state)
{
	struct queue_rig *q = *state;
	hold(q, 1, 3);
	take(q, 1, 3);
	hold(q, 4, 4);
	queue_worker_cancel(q->workers[0].worker);
	hold(q, 5, 5); /* written at once */
	assert_int_equal(count_over(q, 1, 5), 5);
	queue_rig_fail(q, 0);
	assert_written(q, 1, 5);
}

static void what_it_had_said_is_stored_is_written_when_it_was_not(void **state)
{
	struct queue_rig *q = *state;
	hold(q, 1, 2);
	struct queue_batch *batch = take(q, 1, 2);
	struct store_write *write = queue_rig_write_of(q, batch);
	queue_worker_cancel(q->workers[0].worker);
	assert_int_equal(count_over(q, 1, 2), 0);
	mem_free(write->owner);
	store_write_free(write);
	queue_rig_fail(q, 0);
	assert_int_equal(count_over(q, 1, 2), 2);
	assert_written(q, 1, 2);
}

static void a_store_that_takes_nothing_is_asked_again(void **state)
{
	struct queue_rig *q = *state;
	hold(q, 1, 2);
	naive_refuse_writes(q->rig.store, ERR_BUSY, 1);
	advance(q, QUEUE_HELD_MS);
	assert_int_equal(count_over(q, 1, 2), 0);
	advance(q, 1);
	assert_int_equal(count_over(q, 1, 2), 2);
	/* Where nobody takes them either, they are lost, and that is said. */
	hold(q, 3, 3);
	naive_refuse_writes(q->rig.store, ERR_BUSY, 1);
	queue_worker_cancel(q->workers[0].worker);
	pump(q);
	assert_true(held_puts[3].over && held_puts[3].err == ERR_BUSY);
	assert_int_equal(queue_rig_stats(q).pending, 2);
	assert_written(q, 1, 2);
}

/* It is none where a worker had it and stored it. */
static void a_write_that_fails_is_no_loss(void **state)
{
	struct queue_rig *q = *state;
	hold(q, 1, 2);
	naive_fail_writes(q->rig.store, ERR_FULL, 1);
	advance(q, QUEUE_HELD_MS);
	assert_int_equal(count_over(q, 1, 2), 0);
	assert_int_equal(queue_rig_stats(q).pending, 2);
	struct queue_batch *batch = take(q, 1, 2);
	naive_fail_writes(q->rig.store, ERR_FULL, 1);
	advance(q, 1);
	struct store_write *write = queue_rig_write_of(q, batch);
	assert_int_equal(queue_submit(batch, write), 0);
	queue_finish(batch, true);
	q->workers[0].batch = NULL;
	assert_int_equal(queue_rig_write_wait(q, write), 0);
	assert_int_equal(count_over(q, 1, 2), 2);
	/* Nor while a worker that is to go has it still. */
	hold(q, 3, 3);
	take(q, 3, 3);
	naive_fail_writes(q->rig.store, ERR_FULL, 1);
	queue_worker_cancel(q->workers[0].worker);
	assert_int_equal(count_over(q, 3, 3), 0);
	queue_rig_fail(q, 0);
	assert_int_equal(count_over(q, 3, 3), 1);
	assert_written(q, 3, 3);
}

static void what_is_held_has_a_bound(void **state)
{
	struct queue_rig *q = *state;
	enum { LARGE = 1 << 20 };
	char *bytes = mem_zalloc(LARGE);
	for (uint64_t n = 1; n <= 16; n++)
		hold_bytes(q, "k0", n, (struct slice){bytes, LARGE});
	mem_free(bytes);
	assert_int_equal(count_over(q, 1, 16), 1); /* 16 of them with their keys are too much */
	assert_true(held_puts[16].over);
	advance(q, QUEUE_HELD_MS);
	assert_int_equal(count_over(q, 1, 16), 16);
}

/* It is written by the write that stores the others. */
static void what_is_held_and_parked_lies_in_the_store(void **state)
{
	struct queue_rig *q = *state;
	hold(q, 1, 3);
	struct queue_batch *batch = take(q, 1, 3);
	assert_int_equal(queue_park(batch, &batch->messages[1], "nobody knows it"), 0);
	assert_int_equal(queue_rig_store(q, 0), 0);
	assert_int_equal(count_over(q, 1, 3), 3);
	struct queue_stats stats = queue_rig_stats(q);
	assert_true(stats.parked == 1 && stats.pending == 0 && stats.done == 2);
	assert_written(q, 2, 2);
}

static void without_a_worker_nothing_is_held(void **state)
{
	struct queue_rig *q = *state;
	queue_rig_free_worker(q, 0);
	hold(q, 1, 2);
	assert_int_equal(count_over(q, 1, 2), 2);
	assert_written(q, 1, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(what_is_held_is_given_together_and_never_read),
		TEST(held_or_not_the_order_is_that_of_the_puts),
		TEST(of_several_shards_some_are_held),
		TEST(a_read_that_fails_keeps_nothing_that_is_held),
		TEST(what_waits_too_long_is_written),
		TEST(what_a_worker_has_too_long_is_written),
		TEST(a_worker_stores_what_is_being_written),
		TEST(what_was_not_stored_is_held_on),
		TEST(another_worker_is_given_what_is_held),
		TEST(a_worker_that_goes_leaves_nothing_in_memory),
		TEST(what_it_had_said_is_stored_is_written_when_it_was_not),
		TEST(a_store_that_takes_nothing_is_asked_again),
		TEST(a_write_that_fails_is_no_loss),
		TEST(what_is_held_has_a_bound),
		TEST(what_is_held_and_parked_lies_in_the_store),
		TEST(without_a_worker_nothing_is_held),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
