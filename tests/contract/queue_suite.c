/* What every queue does: order, bounds, redelivery, replacement, what lies aside. */
#include "queue/retry.h"
#include "queue_rig.h"

/* Keys k0 .. and numbers 1000 * key + n, n from 1. */
static const char *key_of(uint64_t key)
{
	static char text[32];
	snprintf(text, sizeof(text), "k%llu", (unsigned long long)key);
	return text;
}

static void put_some(struct queue_rig *q, uint64_t keys, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n <= to; n++)
		for (uint64_t k = 0; k < keys; k++)
			assert_int_equal(queue_rig_put(q, key_of(k), 1000 * k + n), 0);
}

/* Of each key the numbers from .. to, in order, and nothing else. */
static void assert_in_order(const uint64_t *numbers, size_t count, uint64_t keys, uint64_t from,
			    uint64_t to)
{
	uint64_t next[64];
	assert_int_equal(count, keys * (to - from + 1));
	for (uint64_t k = 0; k < keys; k++)
		next[k] = from;
	for (size_t i = 0; i < count; i++) {
		uint64_t key = numbers[i] / 1000;
		assert_in_range(key, 0, keys - 1);
		assert_int_equal(numbers[i] % 1000, next[key]);
		next[key]++;
	}
}

static size_t peek(struct queue_rig *q, unsigned index, uint64_t *numbers)
{
	queue_rig_ask(q, index);
	assert_int_equal(queue_rig_wait(q, index), 0);
	const struct queue_batch *batch = q->workers[index].batch;
	for (size_t i = 0; i < batch->count; i++)
		numbers[i] = queue_rig_number(&batch->messages[i]);
	return batch->count;
}

static void messages_of_a_key_keep_their_order(struct queue_rig *q)
{
	uint64_t numbers[300];
	put_some(q, 20, 1, 10);
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, 200, numbers);
	assert_in_order(numbers, 200, 20, 1, 10);
	struct queue_stats stats = queue_rig_stats(q);
	assert_int_equal(stats.added, 200);
	assert_int_equal(stats.done, 200);
	assert_int_equal(stats.pending, 0);
	assert_int_equal(stats.pending_bytes, 0);
	assert_int_equal(queue_rig_samples(q), 200);
}

static void a_worker_that_waits_is_woken(struct queue_rig *q)
{
	uint64_t number = 0;
	queue_rig_worker(q, 0);
	for (uint64_t n = 1; n <= 5; n++) {
		queue_rig_ask(q, 0);
		assert_int_equal(queue_rig_put(q, "k0", n), 0);
		assert_int_equal(queue_rig_wait(q, 0), 0);
		assert_int_equal(q->workers[0].batch->count, 1);
		number = queue_rig_number(&q->workers[0].batch->messages[0]);
		assert_int_equal(number, n);
		assert_int_equal(queue_rig_store(q, 0), 0);
	}
}

static void what_was_not_stored_is_given_again(struct queue_rig *q)
{
	uint64_t numbers[100];
	put_some(q, 3, 1, 4);
	queue_rig_worker(q, 0);
	size_t count = peek(q, 0, numbers);
	queue_rig_fail(q, 0);
	assert_int_equal(queue_rig_stats(q).redelivered, count);
	assert_int_equal(queue_rig_stats(q).done, 0);
	assert_int_equal(queue_rig_stats(q).pending, 12);
	count += peek(q, 0, numbers);
	queue_rig_fail(q, 0);
	assert_int_equal(queue_rig_stats(q).redelivered, count);
	queue_rig_drain(q, 0, 12, numbers);
	assert_in_order(numbers, 12, 3, 1, 4);
	assert_int_equal(queue_rig_stats(q).pending, 0);
}

static void what_was_not_stored_is_there_after_a_restart(struct queue_rig *q)
{
	uint64_t numbers[100], gone[100];
	put_some(q, 4, 1, 3);
	queue_rig_worker(q, 0);
	size_t count = peek(q, 0, gone);
	assert_int_equal(queue_rig_store(q, 0), 0);
	put_some(q, 4, 4, 5);
	queue_rig_reopen(q);
	size_t pending = queue_rig_stats(q).pending;
	assert_in_range(pending, 20 - count, q->driver->gives_again ? 20 : 20 - count);
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, pending, gone + count);
	if (pending == 20 - count)
		assert_in_order(gone, 20, 4, 1, 5);
	assert_int_equal(queue_rig_samples(q), 20);
	queue_rig_reopen(q);
	assert_int_equal(queue_rig_stats(q).pending, 0);
	put_some(q, 4, 6, 7);
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, 8, numbers);
	assert_in_order(numbers, 8, 4, 6, 7);
}

static void another_takes_the_place_of_a_worker_that_hangs(struct queue_rig *q)
{
	uint64_t numbers[100];
	put_some(q, 3, 1, 4);
	queue_rig_worker(q, 0);
	size_t held = peek(q, 0, numbers);
	struct queue_batch *old_batch = q->workers[0].batch;
	q->workers[0].batch = NULL;
	struct queue_worker *old = queue_rig_worker(q, 0);
	assert_non_null(old);
	/* The old one wakes up: what it writes is refused, and it is given nothing. */
	struct store_write *write = rig_write_new(&q->rig);
	assert_int_equal(queue_acknowledge(old_batch, write), 0);
	assert_int_equal(queue_submit(old_batch, write), ERR_CANCELLED);
	assert_int_equal(queue_put_aside(old_batch, &old_batch->messages[0], "no", write),
			 ERR_CANCELLED);
	store_write_free(write);
	queue_finish(old_batch, false);
	q->workers[0].taken = false;
	queue_receive(old); /* on the same executor */
	assert_int_equal(queue_rig_wait(q, 0), ERR_CANCELLED);
	queue_worker_free(old);
	assert_true(held > 0);
	queue_rig_drain(q, 0, 12, numbers);
	assert_in_order(numbers, 12, 3, 1, 4);
	assert_int_equal(queue_rig_stats(q).pending, 0);
	assert_int_equal(queue_rig_stats(q).done, 12);
}

/* Its last write is on its way while another comes: nothing is lost, nothing stays. */
static void a_write_on_its_way_counts(struct queue_rig *q)
{
	uint64_t numbers[100];
	put_some(q, 3, 1, 4);
	queue_rig_worker(q, 0);
	size_t held = peek(q, 0, numbers);
	struct queue_batch *batch = q->workers[0].batch;
	q->workers[0].batch = NULL;
	struct store_write *write = queue_rig_write_of(q, batch);
	assert_int_equal(queue_submit(batch, write), 0);
	struct queue_worker *old = queue_rig_worker(q, 0);
	assert_int_equal(queue_rig_write_wait(q, write), 0);
	if (q->driver->gives_again)
		held = 0; /* that it was stored is not known before it is said */
	queue_rig_drain(q, 0, 12 - held, numbers + held);
	queue_finish(batch, true); /* which it says only now */
	queue_worker_free(old);
	assert_in_order(numbers, 12, 3, 1, 4);
	assert_int_equal(queue_rig_stats(q).pending, 0);
	assert_int_equal(queue_rig_samples(q), 12);
}

static void a_wait_can_be_ended(struct queue_rig *q)
{
	queue_rig_worker(q, 0);
	queue_rig_ask(q, 0);
	queue_worker_cancel(q->workers[0].worker);
	assert_int_equal(queue_rig_wait(q, 0), ERR_CANCELLED);
	queue_rig_ask(q, 0);
	assert_int_equal(queue_rig_wait(q, 0), ERR_CANCELLED);
	assert_int_equal(queue_rig_put(q, "k0", 1), 0);
	queue_rig_free_worker(q, 0);
	queue_rig_worker(q, 0);
	uint64_t number;
	queue_rig_drain(q, 0, 1, &number);
	assert_int_equal(number, 1);
}

static void a_key_stays_with_its_worker(struct queue_rig *q)
{
	uint64_t numbers[3][100];
	size_t got[3] = {0};
	put_some(q, 30, 1, 2);
	for (unsigned w = 0; w < 3; w++)
		queue_rig_worker(q, w);
	for (uint64_t round = 0; round < 2; round++) {
		size_t sum = 0;
		for (unsigned w = 0; w < 3; w++) {
			/* As many as its keys have. */
			size_t mine = 0;
			for (uint64_t k = 0; k < 30; k++)
				mine += queue_shard(slice_of(key_of(k))) % 3 == w;
			queue_rig_drain(q, w, 2 * mine, numbers[w]);
			got[w] = 2 * mine;
			sum += got[w];
			for (size_t i = 0; i < got[w]; i++) {
				uint64_t key = numbers[w][i] / 1000;
				assert_int_equal(queue_shard(slice_of(key_of(key))) % 3, w);
			}
		}
		assert_int_equal(sum, 60);
		if (round == 0)
			put_some(q, 30, 3, 4);
	}
	for (unsigned w = 0; w < 3; w++)
		assert_true(got[w] > 0);
}

static void there_is_room_for_so_many_and_no_more(struct queue_rig *q)
{
	uint64_t numbers[10];
	put_some(q, 1, 1, 10);
	assert_int_equal(queue_rig_put(q, "k0", 11), ERR_FULL);
	assert_int_equal(queue_rig_put(q, "k1", 11), ERR_FULL);
	assert_int_equal(queue_rig_stats(q).refused, 2);
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, 10, numbers);
	assert_in_order(numbers, 10, 1, 1, 10);
	put_some(q, 1, 11, 20);
	assert_int_equal(queue_rig_put(q, "k0", 21), ERR_FULL);
	queue_rig_drain(q, 0, 10, numbers);
	assert_in_order(numbers, 10, 1, 11, 20);
}

static void what_is_too_long_is_refused(struct queue_rig *q)
{
	static char key[QUEUE_KEY_MAX_BYTES + 2];
	memset(key, 'k', sizeof(key) - 1);
	assert_int_equal(queue_rig_put(q, "k0", 1), 0);
	struct slice bytes = queue_rig_message(q, "k0", 2);
	assert_int_equal(queue_rig_put_bytes(q, key, bytes), ERR_LIMIT);
	char *longer = mem_zalloc(q->driver->message_max_bytes + 1);
	struct slice all = {longer, q->driver->message_max_bytes + 1};
	assert_int_equal(queue_rig_put_bytes(q, "k0", all), ERR_LIMIT);
	mem_free(longer);
	uint64_t number;
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, 1, &number);
	assert_int_equal(number, 1);
}

/* ---- What lies aside */

struct shown {
	size_t count;
	struct queue_aside_message list[1100];
	struct store_read *read;
};

static void shown_done(struct store_read *read, int err)
{
	*(int *)read->owner = err;
}

static void show(struct queue_rig *q, struct shown *shown)
{
	int err = 1;
	shown->read = rig_read_new(&q->rig);
	shown->read->done = shown_done;
	shown->read->owner = &err;
	struct store_request *request = store_read_add(shown->read, STORE_CELL_SCAN);
	queue_aside_scan(queue_name(q->queue), &request->cell_scan);
	assert_int_equal(store_read_submit(shown->read), 0);
	while (err == 1)
		task_queue_wait(&q->rig.queue);
	assert_int_equal(err, 0);
	shown->count = request->cell_scan.count;
	for (size_t i = 0; i < shown->count; i++)
		assert_int_equal(queue_aside_decode(&request->cell_scan.cells[i], &shown->list[i]),
				 0);
}

static int put_batch_aside(struct queue_rig *q, const char *reason)
{
	struct rig_worker *w = &q->workers[0];
	struct store_write *write = rig_write_new(&q->rig);
	for (size_t i = 0; i < w->batch->count; i++)
		assert_int_equal(queue_put_aside(w->batch, &w->batch->messages[i], reason, write),
				 0);
	assert_int_equal(queue_acknowledge(w->batch, write), 0);
	int err = rig_write(&q->rig, write);
	queue_finish(w->batch, !err);
	w->batch = NULL;
	store_write_free(write);
	return err;
}

static void a_message_put_aside_can_be_looked_at(struct queue_rig *q)
{
	static struct shown shown;
	put_some(q, 1, 1, 3);
	queue_rig_worker(q, 0);
	for (size_t done = 0; done < 3;) {
		queue_rig_ask(q, 0);
		assert_int_equal(queue_rig_wait(q, 0), 0);
		done += q->workers[0].batch->count;
		assert_int_equal(put_batch_aside(q, "a colon is missing"), 0);
	}
	assert_int_equal(queue_rig_stats(q).aside, 3);
	assert_int_equal(queue_rig_stats(q).pending, 0);
	queue_rig_reopen(q);
	assert_int_equal(queue_rig_stats(q).aside, 3);
	show(q, &shown);
	assert_int_equal(shown.count, 3);
	for (size_t i = 0; i < 3; i++) { /* the newest first */
		const struct queue_aside_message *m = &shown.list[i];
		const struct queue_message message = {.key = m->key, .bytes = m->bytes};
		assert_slice(m->reason, TEXT("a colon is missing"));
		assert_slice(m->key, TEXT("k0"));
		assert_int_equal(m->whole_bytes, m->bytes.len);
		assert_int_equal(queue_rig_number(&message), 3 - i);
	}
	store_read_free(shown.read);
}

static void what_lies_aside_has_a_bound(struct queue_rig *q)
{
	static struct shown shown;
	queue_rig_worker(q, 0);
	for (uint64_t n = 1; n <= 21; n++) {
		assert_int_equal(queue_rig_put(q, "k0", n), 0);
		queue_rig_ask(q, 0);
		assert_int_equal(queue_rig_wait(q, 0), 0);
		struct queue_batch *batch = q->workers[0].batch;
		struct store_write *write = rig_write_new(&q->rig);
		/* As if there were as many of it. */
		for (size_t i = 0; i < ASIDE_MESSAGES_MAX / 20; i++)
			assert_int_equal(queue_put_aside(batch, &batch->messages[0], "why", write),
					 0);
		assert_int_equal(queue_acknowledge(batch, write), 0);
		rig_commit(&q->rig, write);
		queue_finish(batch, true);
		q->workers[0].batch = NULL;
	}
	for (int reopened = 0; reopened < 2; reopened++) {
		assert_int_equal(queue_rig_stats(q).aside, ASIDE_MESSAGES_MAX);
		show(q, &shown);
		assert_int_equal(shown.count, ASIDE_MESSAGES_MAX);
		const struct queue_aside_message *oldest = &shown.list[shown.count - 1];
		const struct queue_message message = {.key = oldest->key, .bytes = oldest->bytes};
		assert_int_equal(queue_rig_number(&message), 2);
		store_read_free(shown.read);
		queue_rig_reopen(q);
	}
}

static void put_numbers_aside(struct queue_rig *q, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n <= to; n++)
		assert_int_equal(queue_rig_put(q, "k0", n), 0);
	for (size_t left = to - from + 1; left;) {
		queue_rig_ask(q, 0);
		assert_int_equal(queue_rig_wait(q, 0), 0);
		left -= q->workers[0].batch->count;
		assert_int_equal(put_batch_aside(q, "why"), 0);
	}
}

static void what_lies_aside_is_given_back(struct queue_rig *q)
{
	static struct shown shown;
	uint64_t numbers[6];
	struct queue_rig_retry retry;
	queue_rig_worker(q, 0);
	assert_int_equal(queue_rig_retry(q, &retry), 0); /* nothing */
	assert_true(retry.result.given == 0 && retry.result.kept == 0);
	put_numbers_aside(q, 1, 3);
	assert_int_equal(queue_rig_put(q, "k0", 4), 0);
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	assert_true(retry.result.given == 3 && retry.result.kept == 0);
	assert_int_equal(queue_rig_stats(q).aside, 0);
	queue_rig_drain(q, 0, 4, numbers);
	assert_true(numbers[0] == 4 && numbers[1] == 1 && numbers[2] == 2 && numbers[3] == 3);
	show(q, &shown);
	assert_int_equal(shown.count, 0);
	store_read_free(shown.read);
	/* And again, behind what was there. */
	put_numbers_aside(q, 5, 6);
	queue_rig_reopen(q);
	assert_int_equal(queue_rig_stats(q).aside, 2);
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	assert_int_equal(retry.result.given, 2);
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, 2, numbers);
	assert_true(numbers[0] == 5 && numbers[1] == 6);
	queue_rig_reopen(q);
	assert_int_equal(queue_rig_stats(q).aside, 0);
	assert_int_equal(queue_rig_samples(q), 6);
}

static void a_slice_after_the_other_is_given_back(struct queue_rig *q)
{
	static uint64_t numbers[3 * RETRY_SLICE_MAX];
	struct queue_rig_retry retry;
	queue_rig_worker(q, 0);
	put_numbers_aside(q, 1, 2 * RETRY_SLICE_MAX + 1);
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	assert_int_equal(retry.result.given, 2 * RETRY_SLICE_MAX + 1);
	queue_rig_drain(q, 0, retry.result.given, numbers);
	assert_in_order(numbers, retry.result.given, 1, 1, retry.result.given);
}

/* What no room is found for stays, and is given another time. */
static void a_full_queue_is_given_nothing_back(struct queue_rig *q)
{
	uint64_t numbers[10];
	struct queue_rig_retry retry;
	queue_rig_worker(q, 0);
	put_numbers_aside(q, 1, 4);
	put_some(q, 1, 5, 12); /* there is room for ten */
	assert_int_equal(queue_rig_retry(q, &retry), ERR_FULL);
	assert_string_equal(retry.error.text, "the queue has no room for more");
	assert_int_equal(retry.result.given, 2);
	assert_int_equal(queue_rig_stats(q).aside, 2);
	queue_rig_drain(q, 0, 10, numbers);
	assert_true(numbers[7] == 12 && numbers[8] == 1 && numbers[9] == 2);
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	assert_int_equal(retry.result.given, 2);
	queue_rig_drain(q, 0, 2, numbers);
	assert_true(numbers[0] == 3 && numbers[1] == 4);
	assert_int_equal(queue_rig_stats(q).aside, 0);
}

static void one_retry_at_a_time(struct queue_rig *q)
{
	static uint64_t numbers[RETRY_SLICE_MAX + 1];
	struct queue_rig_retry first, second;
	queue_rig_worker(q, 0);
	put_numbers_aside(q, 1, ARRAY_LEN(numbers));
	queue_rig_retry_begin(q, &first);
	assert_int_equal(queue_rig_retry(q, &second), ERR_EXISTS);
	queue_rig_retry_step(&first);
	task_queue_stop(&first.work.queue); /* what is on its way arrives */
	assert_int_equal(queue_rig_retry_wait(&first), ERR_CANCELLED);
	assert_int_equal(first.result.given, RETRY_SLICE_MAX);
	assert_int_equal(queue_rig_retry(q, &second), 0);
	assert_int_equal(second.result.given, 1);
	queue_rig_drain(q, 0, ARRAY_LEN(numbers), numbers);
	assert_in_order(numbers, ARRAY_LEN(numbers), 1, 1, ARRAY_LEN(numbers));
}

/* ---- Threads */

enum { THREADS = 4, THREAD_KEYS = 8, THREAD_NUMBERS = 60 };

struct putting {
	struct queue_rig *q;
	struct task_queue tasks;
	pthread_t thread;
	unsigned number;
	size_t done;
};

static void thread_put_done(struct queue_put *put, int err)
{
	struct putting *p = put->owner;
	ASSERT(!err);
	p->done++;
	mem_free(put);
}

/* Many under way at once; all of a key from one thread. */
static void *put_from_thread(void *context)
{
	struct putting *p = context;
	struct queue_rig builder = {0};
	size_t put_count = 0;
	poll_builder_init(&builder.builder);
	buf_init(&builder.bytes, POLL_BYTES_MAX);
	for (uint64_t n = 1; n <= THREAD_NUMBERS; n++) {
		for (uint64_t k = p->number; k < THREAD_KEYS * THREADS; k += THREADS) {
			char key[32];
			snprintf(key, sizeof(key), "k%llu", (unsigned long long)k);
			struct queue_put *put = mem_zalloc(sizeof(*put));
			*put = (struct queue_put){
				.key = slice_of(key),
				.bytes = queue_rig_message(&builder, key, 1000 * k + n),
				.executor = &p->tasks.executor,
				.done = thread_put_done,
				.owner = p,
			};
			int err;
			while ((err = queue_put(p->q->queue, put)) == ERR_BUSY)
				task_queue_run(&p->tasks);
			ASSERT(!err);
			put_count++;
		}
	}
	while (p->done < put_count)
		task_queue_wait(&p->tasks);
	poll_builder_release(&builder.builder);
	buf_release(&builder.bytes);
	return NULL;
}

/* Each batch fails once in a while, and comes again. */
static void many_threads_put_and_the_order_holds(struct queue_rig *q)
{
	static struct putting threads[THREADS];
	static uint64_t next[THREADS * THREAD_KEYS];
	size_t stored = 0, takes = 0;
	for (size_t k = 0; k < ARRAY_LEN(next); k++)
		next[k] = 1;
	for (unsigned t = 0; t < THREADS; t++) {
		threads[t] = (struct putting){.q = q, .number = t};
		task_queue_init(&threads[t].tasks);
		pthread_create(&threads[t].thread, NULL, put_from_thread, &threads[t]);
	}
	queue_rig_worker(q, 0);
	while (stored < THREADS * THREAD_KEYS * THREAD_NUMBERS) {
		queue_rig_ask(q, 0);
		assert_int_equal(queue_rig_wait(q, 0), 0);
		struct queue_batch *batch = q->workers[0].batch;
		if (++takes % 3 == 0) {
			queue_rig_fail(q, 0);
			continue;
		}
		for (size_t i = 0; i < batch->count; i++) {
			uint64_t number = queue_rig_number(&batch->messages[i]);
			assert_int_equal(number % 1000, next[number / 1000]);
			next[number / 1000]++;
		}
		stored += batch->count;
		assert_int_equal(queue_rig_store(q, 0), 0);
	}
	for (unsigned t = 0; t < THREADS; t++) {
		pthread_join(threads[t].thread, NULL);
		task_queue_release(&threads[t].tasks);
	}
	assert_int_equal(queue_rig_samples(q), THREADS * THREAD_KEYS * THREAD_NUMBERS);
	assert_int_equal(queue_rig_stats(q).pending, 0);
}

static void the_line_of_the_statistics(UNUSED struct queue_rig *q)
{
	const struct queue_stats before = {.added = 100, .done = 90, .pending = 10};
	const struct queue_stats now = {.added = 130, .done = 125, .pending = 5};
	struct queue_line line = queue_line(&before, &now);
	assert_int_equal(line.pending, 5);
	assert_int_equal(line.new, 30);
	assert_int_equal(line.done, 35);
	assert_int_equal(line.delta, -5);
	assert_int_equal(line.max, 130);
	/* Begun again. */
	line = queue_line(&now, &(struct queue_stats){.added = 3, .done = 1, .pending = 2});
	assert_int_equal(line.new, 3);
	assert_int_equal(line.done, 1);
	assert_int_equal(line.delta, 2);
}

static const struct queue_case {
	const char *name;
	void (*run)(struct queue_rig *q);
	struct queue_limits limits;
} cases[] = {
#define QUEUE_CASE(f, ...)                                                                         \
	{                                                                                          \
#f, f,                                                                             \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
	QUEUE_CASE(messages_of_a_key_keep_their_order, .take_messages_max = 30),
	QUEUE_CASE(a_worker_that_waits_is_woken),
	QUEUE_CASE(what_was_not_stored_is_given_again, .take_messages_max = 4),
	QUEUE_CASE(what_was_not_stored_is_there_after_a_restart, .take_messages_max = 4),
	QUEUE_CASE(another_takes_the_place_of_a_worker_that_hangs, .take_messages_max = 4),
	QUEUE_CASE(a_write_on_its_way_counts, .take_messages_max = 4),
	QUEUE_CASE(a_wait_can_be_ended),
	QUEUE_CASE(a_key_stays_with_its_worker, .workers = 3),
	QUEUE_CASE(there_is_room_for_so_many_and_no_more, .messages_max = 10),
	QUEUE_CASE(what_is_too_long_is_refused),
	QUEUE_CASE(a_message_put_aside_can_be_looked_at),
	QUEUE_CASE(what_lies_aside_has_a_bound),
	QUEUE_CASE(what_lies_aside_is_given_back),
	QUEUE_CASE(a_slice_after_the_other_is_given_back),
	QUEUE_CASE(a_full_queue_is_given_nothing_back, .messages_max = 10),
	QUEUE_CASE(one_retry_at_a_time),
	QUEUE_CASE(many_threads_put_and_the_order_holds),
	QUEUE_CASE(the_line_of_the_statistics),
};

struct run {
	const struct queue_case *test;
	const struct queue_driver *driver;
	const struct contract_engine *engine;
};

static void run_case(void **state)
{
	const struct run *run = *state;
	static struct queue_rig q;
	queue_rig_open(&q, run->driver, run->engine, &run->test->limits);
	run->test->run(&q);
	queue_rig_close(&q);
}

int queue_contract_run(const struct queue_driver *driver, const struct contract_engine *engine,
		       int argc, char **argv)
{
	static struct run runs[ARRAY_LEN(cases)];
	struct CMUnitTest tests[ARRAY_LEN(cases)];
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (argc > 1 && !strstr(cases[i].name, argv[1]))
			continue;
		runs[count] = (struct run){&cases[i], driver, engine};
		tests[count] = (struct CMUnitTest){.name = cases[i].name,
						   .test_func = run_case,
						   .initial_state = &runs[count]};
		count++;
	}
	return _cmocka_run_group_tests(driver->name, tests, count, NULL, NULL);
}
