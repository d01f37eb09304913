/* The suite of queues against the one in the store, on the embedded engine and on the naive one. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "naive.h"
#include "queue/local/local.h"
#include "queue_rig.h"

static struct queue *open_local(UNUSED void *context, struct store *store,
				const struct queue_limits *limits)
{
	struct errbuf e = {""};
	struct queue *queue = NULL;
	const struct queue_local_options options = {
		.name = SLICE("q"),
		.workers = limits->workers,
		.messages_max = limits->messages_max,
		.take_messages_max = limits->take_messages_max,
		.store = store,
		.clock = clock_real(),
	};
	if (queue_local_open(&options, &queue, &e))
		fail_msg("%s", e.text);
	return queue;
}

static void nothing_to_clear(UNUSED void *context)
{
}

/* ---- Killed ---------------------------------------------------------------------------------- */

enum { KILLS = 12, NUMBERS_MAX = 1 << 20 };

/* Shared with the process that will be killed: numbers 1 .. put were acknowledged to the poller. */
static struct shared {
	_Atomic uint64_t put, tried;
	useconds_t after_us;
} * shared;

static void die(UNUSED int signal)
{
	kill(getpid(), SIGKILL);
}

static const struct queue_driver local_driver = {
	.name = "local",
	.open = open_local,
	.clear = nothing_to_clear,
	.message_max_bytes = QUEUE_MESSAGE_MAX_BYTES,
};

static void begin_to_work(struct queue_rig *q, struct store *store)
{
	const struct itimerval soon = {.it_value = {.tv_usec = shared->after_us}};
	q->rig.store = store;
	clock_virtual_init(&q->rig.clock, T0 * 1000);
	task_queue_init(&q->rig.queue);
	q->queue = open_local(NULL, store, &(struct queue_limits){.workers = 1});
	poll_builder_init(&q->builder);
	buf_init(&q->bytes, POLL_BYTES_MAX);
	q->handle = rig_series(&q->rig, "number", "from=queue");
	queue_rig_worker(q, 0);
	signal(SIGALRM, die);
	setitimer(ITIMER_REAL, &soon, NULL);
}

static void put_some_more(struct queue_rig *q, uint64_t count)
{
	for (; count; count--) {
		char key[8];
		uint64_t number = atomic_load(&shared->put) + 1;
		ASSERT(number < NUMBERS_MAX);
		snprintf(key, sizeof(key), "k%d", (int)(number % 7));
		atomic_store(&shared->tried, number);
		ASSERT(!queue_rig_put(q, key, number));
		atomic_store(&shared->put, number);
	}
}

/* Puts and stores, turn by turn, until it dies. */
static void work_until_killed(struct store *store, UNUSED struct clock *clock)
{
	static struct queue_rig q;
	begin_to_work(&q, store);
	for (uint64_t round = 0;; round++) {
		put_some_more(&q, round % 4 + 1);
		if (round % 3)
			continue;
		queue_rig_ask(&q, 0);
		ASSERT(!queue_rig_wait(&q, 0));
		ASSERT(!queue_rig_store(&q, 0));
	}
}

/* Each number that was acknowledged is stored or waits, never both; no other is there but the one
 * that was on its way. */
static void check_what_is_there(struct queue_rig *q)
{
	uint64_t put = atomic_load(&shared->put), tried = atomic_load(&shared->tried);
	size_t stored = queue_rig_samples(q), pending = queue_rig_stats(q).pending;
	assert_in_range(stored + pending, put, tried);
	uint64_t *numbers = mem_alloc_array(pending + 1, sizeof(*numbers));
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, pending, numbers);
	queue_rig_free_worker(q, 0);
	/* As many as there were: so none was stored before. */
	assert_int_equal(queue_rig_samples(q), stored + pending);
	assert_int_equal(queue_rig_stats(q).pending, 0);
	atomic_store(&shared->put, stored + pending);
	mem_free(numbers);
}

static void put_taken_aside(struct queue_rig *q)
{
	struct queue_batch *batch = q->workers[0].batch;
	struct store_write *write = queue_rig_write_of(q, batch);
	store_write_reset(write); /* nothing of it is stored */
	for (size_t i = 0; i < batch->count; i++)
		ASSERT(!queue_put_aside(batch, &batch->messages[i], "why", write));
	ASSERT(!queue_acknowledge(batch, write));
	ASSERT(!queue_submit(batch, write));
	ASSERT(!queue_rig_write_wait(q, write));
	queue_finish(batch, true);
	q->workers[0].batch = NULL;
}

/* What waits is put aside or stored, what lies aside given back; the kill comes where it comes. */
static void put_aside_until_killed(struct store *store, UNUSED struct clock *clock)
{
	static struct queue_rig q;
	struct queue_rig_retry retry;
	begin_to_work(&q, store);
	for (uint64_t round = 0;; round++) {
		put_some_more(&q, 5);
		queue_rig_ask(&q, 0);
		ASSERT(!queue_rig_wait(&q, 0));
		if (round % 3)
			put_taken_aside(&q);
		else
			ASSERT(!queue_rig_store(&q, 0));
		if (round % 4 == 3)
			ASSERT(!queue_rig_retry(&q, &retry));
	}
}

/* Each number lies aside, waits, or is stored: perhaps two of them. */
static void check_that_nothing_is_lost(struct queue_rig *q)
{
	struct queue_rig_retry retry;
	uint64_t put = atomic_load(&shared->put), tried = atomic_load(&shared->tried);
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	assert_int_equal(retry.result.kept, 0);
	assert_int_equal(queue_rig_stats(q).aside, 0);
	size_t pending = queue_rig_stats(q).pending;
	uint64_t *numbers = mem_alloc_array(pending + 1, sizeof(*numbers));
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, pending, numbers);
	queue_rig_free_worker(q, 0);
	mem_free(numbers);
	assert_in_range(queue_rig_samples(q), put, tried);
	atomic_store(&shared->put, queue_rig_samples(q));
}

static void kill_again_and_again(void (*work)(struct store *store, struct clock *clock),
				 void (*check)(struct queue_rig *q))
{
	const struct contract_engine engine = engine_lmdb("lmdb", 0, 0);
	const struct queue_limits limits = {.workers = 1};
	static struct queue_rig q;
	atomic_store(&shared->put, 0);
	queue_rig_open(&q, &local_driver, &engine, &limits);
	for (int i = 0; i < KILLS; i++) {
		shared->after_us = (useconds_t)(3000 + i * 4001);
		queue_close(q.queue);
		q.rig.store = engine.kill_in(engine.context, q.rig.store, &q.rig.clock.clock, work);
		q.handle = rig_series(&q.rig, "number", "from=queue");
		q.queue = open_local(NULL, q.rig.store, &limits);
		check(&q);
	}
	assert_true(atomic_load(&shared->put) > KILLS);
	queue_rig_close(&q);
}

static void killed_at_any_moment(UNUSED void **state)
{
	kill_again_and_again(work_until_killed, check_what_is_there);
}

static void killed_while_it_is_tried_again(UNUSED void **state)
{
	kill_again_and_again(put_aside_until_killed, check_that_nothing_is_lost);
}

/* ---- What the store refuses, sizes ----------------------------------------------------------- */

static int set_up(void **state)
{
	static struct queue_rig q;
	static struct contract_engine engine;
	engine = engine_naive();
	queue_rig_open(&q, &local_driver, &engine, &(struct queue_limits){.workers = 1});
	*state = &q;
	return 0;
}

static int tear_down(void **state)
{
	queue_rig_close(*state);
	return 0;
}

static void a_put_that_failed_leaves_no_gap(void **state)
{
	struct queue_rig *q = *state;
	uint64_t numbers[3];
	queue_rig_worker(q, 0);
	assert_int_equal(queue_rig_put(q, "k0", 1), 0);
	naive_fail_writes(q->rig.store, ERR_FULL, 1);
	assert_int_equal(queue_rig_put(q, "k0", 7), ERR_FULL);
	assert_int_equal(queue_rig_put(q, "k0", 2), 0);
	queue_rig_drain(q, 0, 2, numbers);
	assert_true(numbers[0] == 1 && numbers[1] == 2);
	/* Nothing but the gap: the worker goes on waiting. */
	queue_rig_ask(q, 0);
	naive_fail_writes(q->rig.store, ERR_FULL, 1);
	assert_int_equal(queue_rig_put(q, "k0", 8), ERR_FULL);
	task_queue_run(&q->workers[0].tasks);
	assert_false(q->workers[0].taken);
	assert_int_equal(queue_rig_put(q, "k0", 3), 0);
	assert_int_equal(queue_rig_wait(q, 0), 0);
	assert_int_equal(queue_rig_number(&q->workers[0].batch->messages[0]), 3);
	assert_int_equal(queue_rig_store(q, 0), 0);
	struct queue_stats stats = queue_rig_stats(q);
	assert_true(stats.added == 3 && stats.done == 3);
	assert_true(stats.pending == 0 && stats.pending_bytes == 0);
}

static void a_store_that_is_busy_is_said_so(void **state)
{
	struct queue_rig *q = *state;
	naive_refuse_writes(q->rig.store, ERR_BUSY, 1);
	assert_int_equal(queue_rig_put(q, "k0", 1), ERR_BUSY);
	assert_int_equal(queue_rig_put(q, "k0", 1), 0);
	queue_rig_worker(q, 0);
	naive_refuse_reads(q->rig.store, ERR_BUSY, 1);
	queue_rig_ask(q, 0);
	assert_int_equal(queue_rig_wait(q, 0), ERR_BUSY);
	queue_rig_ask(q, 0);
	assert_int_equal(queue_rig_wait(q, 0), 0);
	/* The write that would have stored it fails: it comes again. */
	naive_fail_writes(q->rig.store, ERR_FULL, 1);
	assert_int_equal(queue_rig_store(q, 0), ERR_FULL);
	assert_int_equal(queue_rig_samples(q), 0);
	uint64_t number;
	queue_rig_drain(q, 0, 1, &number);
	assert_int_equal(number, 1);
	assert_int_equal(queue_rig_stats(q).redelivered, 1);
	assert_int_equal(queue_rig_samples(q), 1);
}

/* Five messages of 9 MB: a batch has room for two or three at once, of whichever shard. */
static void large_messages_come_one_after_the_other(void **state)
{
	struct queue_rig *q = *state;
	enum { LARGE = 9 << 20, COUNT = 5 };
	char *bytes = mem_zalloc(LARGE);
	unsigned seen = 0;
	for (unsigned n = 0; n < COUNT; n++) {
		char key[2] = {(char)('a' + n % 3)};
		bytes[0] = bytes[LARGE - 1] = (char)n;
		assert_int_equal(queue_rig_put_bytes(q, key, (struct slice){bytes, LARGE}), 0);
	}
	queue_rig_worker(q, 0);
	for (unsigned takes = 0; seen != (1 << COUNT) - 1; takes++) {
		assert_in_range(takes, 0, COUNT);
		queue_rig_ask(q, 0);
		assert_int_equal(queue_rig_wait(q, 0), 0);
		struct queue_batch *batch = q->workers[0].batch;
		struct store_write *write = rig_write_new(&q->rig);
		for (size_t i = 0; i < batch->count; i++) {
			struct slice got = batch->messages[i].bytes;
			assert_int_equal(got.len, LARGE);
			assert_int_equal(got.data[0], got.data[LARGE - 1]);
			/* In the order of its key: of 0 and 3, 1 and 4. */
			assert_true(got.data[0] < 3 || seen & 1u << (got.data[0] - 3));
			seen |= 1u << got.data[0];
		}
		assert_int_equal(queue_acknowledge(batch, write), 0);
		rig_commit(&q->rig, write);
		queue_finish(batch, true);
		q->workers[0].batch = NULL;
	}
	assert_int_equal(queue_rig_stats(q).pending, 0);
	mem_free(bytes);
}

/* A message takes its bytes, its key and 9. */
static void bytes_have_a_bound(void **state)
{
	struct queue_rig *q = *state;
	struct errbuf e;
	static const char bytes[100];
	const struct queue_local_options options = {
		.name = SLICE("small"),
		.workers = 1,
		.bytes_max = 3 * (100 + 2 + 9),
		.store = q->rig.store,
		.clock = clock_real(),
	};
	queue_close(q->queue);
	for (int opened = 0; opened < 2; opened++) {
		assert_int_equal(queue_local_open(&options, &q->queue, &e), 0);
		for (int i = 0; i < 3 && !opened; i++)
			assert_int_equal(queue_rig_put_bytes(q, "k0", (struct slice){bytes, 100}),
					 0);
		assert_int_equal(queue_rig_stats(q).pending_bytes, 333);
		assert_int_equal(queue_rig_put_bytes(q, "", (struct slice){bytes, 0}), ERR_FULL);
		if (!opened)
			queue_close(q->queue);
	}
}

/* ---- Parked ---------------------------------------------------------------------------------- */

static struct queue_batch *ask_for_batch(struct queue_rig *q)
{
	queue_rig_ask(q, 0);
	assert_int_equal(queue_rig_wait(q, 0), 0);
	return q->workers[0].batch;
}

/* Parks the numbers of which this is true, as far as there is room, and says that the others are
 * stored. How many were refused. */
static size_t park_some(struct queue_rig *q, bool (*is_parked)(uint64_t number))
{
	struct queue_batch *batch = ask_for_batch(q);
	struct store_write *write = rig_write_new(&q->rig);
	size_t refused = 0;
	for (size_t i = 0; i < batch->count; i++) {
		const struct queue_message *message = &batch->messages[i];
		int err = is_parked(queue_rig_number(message))
				  ? queue_park(batch, message, "nobody knows it")
				  : 0;
		assert_true(!err || err == ERR_FULL);
		refused += err == ERR_FULL;
	}
	assert_int_equal(queue_acknowledge(batch, write), 0);
	rig_commit(&q->rig, write);
	queue_finish(batch, true);
	q->workers[0].batch = NULL;
	return refused;
}

static bool is_prime(uint64_t number)
{
	return number == 2 || number == 3 || number == 5 || number == 7;
}

static bool always(UNUSED uint64_t number)
{
	return true;
}

static void what_is_parked_is_given_first_after_the_next_start(void **state)
{
	struct queue_rig *q = *state;
	uint64_t numbers[6];
	size_t bytes = 4 * (9 + 2 + queue_rig_message(q, "k0", 1).len);
	for (uint64_t n = 1; n <= 8; n++)
		assert_int_equal(queue_rig_put(q, "k0", n), 0);
	queue_rig_worker(q, 0);
	assert_int_equal(park_some(q, is_prime), 0);
	struct queue_stats stats = queue_rig_stats(q);
	assert_true(stats.added == 8 && stats.done == 4 && stats.parked == 4);
	assert_true(stats.pending == 0 && stats.pending_bytes == 0);
	assert_int_equal(stats.parked_bytes, bytes);
	/* It stops nothing that comes. */
	assert_int_equal(queue_rig_put(q, "k0", 9), 0);
	queue_rig_drain(q, 0, 1, numbers);
	assert_int_equal(numbers[0], 9);
	for (int i = 0; i < 2; i++) {
		queue_rig_reopen(q);
		stats = queue_rig_stats(q);
		assert_true(stats.pending == 4 && stats.pending_bytes == bytes);
		assert_true(stats.parked == 0 && stats.parked_bytes == 0);
		queue_rig_worker(q, 0);
		if (i == 0)
			assert_int_equal(park_some(q, always), 0); /* still */
	}
	assert_int_equal(queue_rig_put(q, "k0", 10), 0);
	queue_rig_drain(q, 0, 5, numbers);
	for (int i = 0; i < 5; i++)
		assert_int_equal(numbers[i], ((int[]){2, 3, 5, 7, 10})[i]);
	queue_rig_reopen(q);
	assert_int_equal(queue_rig_stats(q).pending, 0);
}

static void parking_has_a_bound(void **state)
{
	struct queue_rig *q = *state;
	struct errbuf e;
	const struct queue_local_options options = {
		.name = SLICE("small"),
		.workers = 1,
		.messages_max = 3,
		.store = q->rig.store,
		.clock = clock_real(),
	};
	queue_close(q->queue);
	assert_int_equal(queue_local_open(&options, &q->queue, &e), 0);
	for (uint64_t n = 1; n <= 3; n++)
		assert_int_equal(queue_rig_put(q, "k0", n), 0);
	queue_rig_worker(q, 0);
	assert_int_equal(park_some(q, always), 0);
	/* What is parked leaves its room to others. */
	for (uint64_t n = 4; n <= 6; n++)
		assert_int_equal(queue_rig_put(q, "k0", n), 0);
	assert_int_equal(park_some(q, always), 3);
	struct queue_stats stats = queue_rig_stats(q);
	assert_true(stats.parked == 3 && stats.unparked == 3 && stats.pending == 0);
	queue_rig_free_worker(q, 0);
	queue_close(q->queue);
	/* Until it is parked once more, it waits. */
	assert_int_equal(queue_local_open(&options, &q->queue, &e), 0);
	assert_int_equal(queue_rig_stats(q).pending, 3);
	assert_int_equal(queue_rig_put(q, "k0", 7), ERR_FULL);
	queue_rig_worker(q, 0);
	assert_int_equal(park_some(q, always), 0);
	assert_int_equal(queue_rig_put(q, "k0", 7), 0);
	assert_int_equal(queue_rig_stats(q).parked, 3);
}

static void what_was_to_be_parked_by_a_batch_that_failed(void **state)
{
	struct queue_rig *q = *state;
	uint64_t numbers[2];
	assert_int_equal(queue_rig_put(q, "k0", 1), 0);
	assert_int_equal(queue_rig_put(q, "k0", 2), 0);
	queue_rig_worker(q, 0);
	struct queue_batch *batch = ask_for_batch(q);
	assert_int_equal(queue_park(batch, &batch->messages[0], "why"), 0);
	queue_rig_fail(q, 0);
	assert_true(queue_rig_stats(q).parked == 0 && queue_rig_stats(q).pending == 2);
	queue_rig_drain(q, 0, 2, numbers);
	assert_true(numbers[0] == 1 && numbers[1] == 2);
}

/* Its write comes through, but it says so only after the other has had its shard: each message
 * counts once. */
static void a_worker_that_parked_hangs(void **state)
{
	struct queue_rig *q = *state;
	for (uint64_t n = 1; n <= 3; n++)
		assert_int_equal(queue_rig_put(q, "k0", n), 0);
	queue_rig_worker(q, 0);
	struct queue_batch *batch = ask_for_batch(q);
	q->workers[0].batch = NULL;
	assert_int_equal(queue_park(batch, &batch->messages[1], "why"), 0);
	struct store_write *write = rig_write_new(&q->rig);
	assert_int_equal(queue_acknowledge(batch, write), 0);
	rig_commit(&q->rig, write);
	struct queue_worker *old = queue_rig_worker(q, 0);
	assert_int_equal(queue_park(batch, &batch->messages[2], "why"), ERR_CANCELLED);
	assert_int_equal(park_some(q, always), 0); /* of 2 alone */
	queue_finish(batch, true);
	queue_worker_free(old);
	assert_int_equal(queue_rig_put(q, "k0", 4), 0);
	uint64_t number;
	queue_rig_drain(q, 0, 1, &number);
	struct queue_stats stats = queue_rig_stats(q);
	assert_true(number == 4 && stats.parked == 1 && stats.done == 3);
	assert_true(stats.pending == 0 && stats.pending_bytes == 0);
}

/* ---- Aside ----------------------------------------------------------------------------------- */

static void put_aside(struct queue_rig *q, struct slice bytes)
{
	assert_int_equal(queue_rig_put_bytes(q, "k0", bytes), 0);
	struct queue_batch *batch = ask_for_batch(q);
	struct store_write *write = rig_write_new(&q->rig);
	assert_int_equal(batch->count, 1);
	assert_int_equal(queue_put_aside(batch, &batch->messages[0], "why", write), 0);
	assert_int_equal(queue_acknowledge(batch, write), 0);
	rig_commit(&q->rig, write);
	queue_finish(batch, true);
	q->workers[0].batch = NULL;
}

/* Of one byte more than is kept nothing is given back; it stays, with a hole behind it. */
static void what_is_not_kept_whole_stays_aside(void **state)
{
	struct queue_rig *q = *state;
	struct queue_rig_retry retry;
	char *bytes = mem_zalloc(ASIDE_BYTES_MAX + 1);
	queue_rig_worker(q, 0);
	put_aside(q, (struct slice){bytes, ASIDE_BYTES_MAX + 1});
	put_aside(q, queue_rig_message(q, "k0", 7));
	put_aside(q, (struct slice){bytes, ASIDE_BYTES_MAX});
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	assert_true(retry.result.given == 2 && retry.result.kept == 1);
	struct queue_batch *batch = ask_for_batch(q);
	assert_int_equal(batch->count, 2);
	assert_int_equal(queue_rig_number(&batch->messages[0]), 7);
	assert_int_equal(batch->messages[1].bytes.len, ASIDE_BYTES_MAX);
	assert_slice(batch->messages[1].key, SLICE("k0"));
	queue_rig_fail(q, 0);
	mem_free(bytes);
	for (int reopened = 0; reopened < 2; reopened++) {
		assert_int_equal(queue_rig_stats(q).aside, 1);
		assert_int_equal(queue_rig_retry(q, &retry), 0);
		assert_true(retry.result.given == 0 && retry.result.kept == 1);
		queue_rig_reopen(q);
	}
	assert_int_equal(queue_rig_stats(q).pending, 2);
}

/* A place that was left empty counts for none: after 1,000 more the first has to go, no other. */
static void holes_count_for_none(void **state)
{
	struct queue_rig *q = *state;
	struct queue_rig_retry retry;
	uint64_t number;
	char *bytes = mem_zalloc(ASIDE_BYTES_MAX + 1);
	queue_rig_worker(q, 0);
	put_aside(q, (struct slice){bytes, ASIDE_BYTES_MAX + 1});
	mem_free(bytes);
	put_aside(q, queue_rig_message(q, "k0", 1));
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	queue_rig_drain(q, 0, 1, &number);
	for (uint64_t n = 0; n < ASIDE_MESSAGES_MAX; n++)
		put_aside(q, queue_rig_message(q, "k0", 1 + n % 9));
	struct queue_stats stats = queue_rig_stats(q);
	assert_true(stats.aside == ASIDE_MESSAGES_MAX && stats.aside_dropped == 1);
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	assert_true(retry.result.given == ASIDE_MESSAGES_MAX && retry.result.kept == 0);
	stats = queue_rig_stats(q);
	assert_true(stats.aside == 0 && stats.pending == ASIDE_MESSAGES_MAX);
}

static void a_store_that_fails_loses_nothing_that_lay_aside(void **state)
{
	struct queue_rig *q = *state;
	struct queue_rig_retry retry;
	uint64_t numbers[4];
	queue_rig_worker(q, 0);
	put_aside(q, queue_rig_message(q, "k0", 1));
	put_aside(q, queue_rig_message(q, "k0", 2));
	naive_refuse_reads(q->rig.store, ERR_BUSY, 1);
	assert_int_equal(queue_rig_retry(q, &retry), ERR_BUSY);
	naive_refuse_writes(q->rig.store, ERR_FULL, 1);
	assert_int_equal(queue_rig_retry(q, &retry), ERR_FULL);
	naive_fail_writes(q->rig.store, ERR_FULL, 2); /* both puts */
	assert_int_equal(queue_rig_retry(q, &retry), ERR_FULL);
	assert_true(retry.result.given == 0 && queue_rig_stats(q).aside == 2);
	assert_int_equal(queue_rig_stats(q).pending, 0);
	/* In the queue, but not away from where they lay: they come twice. */
	queue_rig_retry_begin(q, &retry);
	queue_rig_retry_step(&retry);
	assert_int_equal(queue_rig_stats(q).pending, 2);
	naive_fail_writes(q->rig.store, ERR_FULL, 1);
	assert_int_equal(queue_rig_retry_wait(&retry), ERR_FULL);
	assert_true(retry.result.given == 0 && queue_rig_stats(q).aside == 2);
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	assert_true(retry.result.given == 2 && queue_rig_stats(q).aside == 0);
	queue_rig_drain(q, 0, 4, numbers);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(numbers[i], 1 + i % 2);
}

static void wrong_options(void **state)
{
	struct queue_rig *q = *state;
	static const char name[QUEUE_NAME_MAX_BYTES + 1] = "a name";
	struct errbuf e;
	struct queue *queue;
	struct queue_local_options options = {.name = {name, sizeof(name)},
					      .workers = 1,
					      .store = q->rig.store,
					      .clock = clock_real()};
	assert_int_equal(queue_local_open(&options, &queue, &e), ERR_INVALID);
	options.name = SLICE("");
	assert_int_equal(queue_local_open(&options, &queue, &e), ERR_INVALID);
	options.name = SLICE("q2");
	options.workers = 0;
	assert_int_equal(queue_local_open(&options, &queue, &e), ERR_INVALID);
	options.workers = QUEUE_WORKERS_MAX + 1;
	assert_int_equal(queue_local_open(&options, &queue, &e), ERR_INVALID);
	options.workers = 1;
	naive_refuse_reads(q->rig.store, ERR_BUSY, 1);
	assert_int_equal(queue_local_open(&options, &queue, &e), ERR_BUSY);
	assert_non_null(strstr(e.text, "q2"));
}

static int run_own(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_put_that_failed_leaves_no_gap),
		TEST(a_store_that_is_busy_is_said_so),
		TEST(large_messages_come_one_after_the_other),
		TEST(bytes_have_a_bound),
		TEST(what_is_parked_is_given_first_after_the_next_start),
		TEST(parking_has_a_bound),
		TEST(what_was_to_be_parked_by_a_batch_that_failed),
		TEST(a_worker_that_parked_hangs),
		TEST(what_is_not_kept_whole_stays_aside),
		TEST(holes_count_for_none),
		TEST(a_store_that_fails_loses_nothing_that_lay_aside),
		TEST(wrong_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

static int run_kills(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	ASSERT(shared != MAP_FAILED);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_any_moment),
		cmocka_unit_test(killed_while_it_is_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	const struct contract_engine lmdb = engine_lmdb("lmdb", 0, 0), naive = engine_naive();
	struct queue_driver driver = local_driver;
	if (argc > 1 && strcmp(argv[1], "own") == 0)
		return run_own() + run_kills();
	int failed = queue_contract_run(&driver, &lmdb, argc, argv);
	driver.name = "local on naive";
	if (argc == 1)
		failed += run_own() + run_kills();
	return failed + queue_contract_run(&driver, &naive, argc, argv);
}
