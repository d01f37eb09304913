/* The suite of queues against esmond's in memcached, and what only that one does: messages of an
 * esmond poller, for an esmond persister, holes, restarts. */
#include "memcached_server.h"
#include "queue/memcached/memcached.h"
#include "queue_rig.h"
#include "wire/json.h"

enum { TRIES_MAX = 30000 }; /* of 1 or 2 ms each; only a failure takes them all */

static struct memcached_server server;

static const struct slice uncorrelated[] = {{"Table", 5}};
static int put_timeout_ms;
/* Of the queue; the real one but where a case stops it. */
static struct clock *queue_clock;

static struct queue *open_memcached(UNUSED void *context, struct store *store,
				    const struct queue_limits *limits)
{
	struct errbuf e = {""};
	struct queue *queue = NULL;
	const struct queue_memcached_options options = {
		.name = SLICE("q"),
		.server = slice_of(server.address),
		.workers = limits->workers,
		.uncorrelated = uncorrelated,
		.uncorrelated_count = 1,
		.messages_max = limits->messages_max,
		.take_messages_max = limits->take_messages_max,
		.poll_ms = 10,
		.hole_wait_ms = 300,
		.put_timeout_ms = put_timeout_ms,
		.store = store,
		.clock = queue_clock,
	};
	if (queue_memcached_open(&options, &queue, &e))
		fail_msg("%s", e.text);
	return queue;
}

static void clear(UNUSED void *context)
{
	memcached_say(&server, "flush_all", "OK\r\n");
}

static const struct queue_driver driver = {
	.name = "memcached",
	.open = open_memcached,
	.clear = clear,
	.message_max_bytes = QUEUE_MESSAGE_MAX_BYTES,
	.gives_again = true,
};

static int set_up(void **state)
{
	static struct queue_rig q;
	static struct contract_engine engine;
	engine = engine_naive();
	put_timeout_ms = 0;
	queue_rig_open(&q, &driver, &engine, &(struct queue_limits){.workers = 1});
	*state = &q;
	return 0;
}

/* The queue's time stands still until the case moves it. */
static int set_up_stopped(void **state)
{
	static struct clock_virtual clock;
	clock_virtual_init(&clock, T0 * 1000);
	queue_clock = &clock.clock;
	return set_up(state);
}

static int tear_down(void **state)
{
	queue_rig_close(*state);
	queue_clock = clock_real();
	return 0;
}

/* ---- Others at the same queue --------------------------------------------------------------- */

static void feed(const char *json)
{
	memcached_item(&server, memcached_number(&server), json);
}

static void summaries_fold_one(struct queue_rig *q)
{
	queue_rig_ask(q, 0);
	assert_int_equal(queue_rig_wait(q, 0), 0);
}

static void finish(struct queue_rig *q)
{
	queue_finish(q->workers[0].batch, true);
	q->workers[0].batch = NULL;
}

static void assert_there(const char *key, const char *value)
{
	const char *there = memcached_value(&server, key);
	if (!value)
		assert_null(there);
	else
		assert_string_equal(there ? there : "nothing", value);
}

/* What our thread does in its own time: looked at until it is so; only a failure takes them all. */
static void wait_for_value(const char *key, const char *value)
{
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		const char *there = memcached_value(&server, key);
		if (there ? value && strcmp(there, value) == 0 : !value)
			return;
		usleep(2000);
	}
	assert_there(key, value);
}

static void wait_for_restart(struct queue_rig *q)
{
	for (int tries = 0; !queue_rig_stats(q).restarts && tries < TRIES_MAX; tries++)
		usleep(2000);
}

static const char *load_alu(void)
{
	static char text[100000];
	FILE *file = fopen(TESTS_DATA "/rtr_alu_ifhcin_long.json", "r");
	assert_non_null(file);
	size_t len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = 0;
	return text;
}

static size_t feed_alu(void)
{
	struct arena arena;
	struct json_reader reader;
	enum json_event event;
	size_t count = 0;
	arena_init(&arena, 1 << 20);
	json_reader_init(&reader, slice_of(load_alu()), &arena);
	assert_int_equal(json_next(&reader), JSON_ARRAY_BEGIN);
	while ((event = json_next(&reader)) == JSON_OBJECT_BEGIN) {
		size_t from = reader.offset;
		assert_true(json_skip(&reader, event));
		char *one = mem_copy_text(json_text_from(&reader, from));
		feed(one);
		mem_free(one);
		count++;
	}
	arena_release(&arena);
	return count;
}

/* The counter of a message of rtr_alu. */
static uint64_t counter_of(const struct queue_message *message, int64_t *ts_ms)
{
	struct arena arena;
	struct poll poll;
	struct poll_values values;
	struct errbuf e;
	arena_init(&arena, 1 << 20);
	assert_null(message->malformed);
	assert_slice(message->key, SLICE("rtr_alu"));
	assert_int_equal(poll_open(message->bytes, &poll, &e), 0);
	assert_int_equal(poll_decode_values(&poll, &arena, &values, &e), 0);
	uint64_t counter = values.values[0].bits;
	*ts_ms = poll.ts_ms;
	arena_release(&arena);
	return counter;
}

/* 118 polls, 117 deltas that sum to 8656, the largest 736 at 1343957211. */
static void an_esmond_poller_is_read(void **state)
{
	struct queue_rig *q = *state;
	uint64_t last = 0, sum = 0, largest = 0;
	size_t got = 0;
	assert_int_equal(feed_alu(), 118);
	queue_rig_worker(q, 0);
	while (got < 118) {
		summaries_fold_one(q);
		for (size_t i = 0; i < q->workers[0].batch->count; i++) {
			int64_t ts_ms;
			uint64_t counter = counter_of(&q->workers[0].batch->messages[i], &ts_ms);
			uint64_t delta = got++ ? counter - last : 0;
			if (delta > largest)
				assert_true(delta < 736 || ts_ms == 1343957211000);
			largest = delta > largest ? delta : largest;
			sum += delta;
			last = counter;
		}
		finish(q);
	}
	assert_int_equal(sum, 8656);
	assert_int_equal(largest, 736);
	wait_for_value("_mcpq__q_last_read", "118");
	wait_for_value("_mcpq__q_118", NULL);
	assert_there("_mcpq__q_1", NULL);
	assert_there("_mcpq__q_last_added", "118");
	assert_int_equal(queue_rig_stats(q).missing, 0);
}

static void build(struct queue_rig *q, const char *oidset)
{
	struct errbuf e;
	struct slice part = SLICE("17");
	assert_int_equal(poll_begin(&q->builder, SLICE("r"), slice_of(oidset), 7000, &e), 0);
	assert_int_equal(poll_add_column(&q->builder, SLICE("in"), &e), 0);
	assert_int_equal(poll_add_column(&q->builder, SLICE("out"), &e), 0);
	assert_int_equal(poll_add_row(&q->builder, &part, 1, 7000, &e), 0);
	poll_set(&q->builder, 0, 0, value_u64(5));
	poll_set(&q->builder, 0, 1, value_u64(6));
}

static int put_built(struct queue_rig *q)
{
	struct errbuf e;
	buf_clear(&q->bytes);
	assert_int_equal(poll_encode(&q->builder, 0, true, &q->bytes, &e), 0);
	return queue_rig_put_bytes(q, "r", buf_slice(&q->bytes));
}

static void an_esmond_persister_can_read(void **state)
{
	struct queue_rig *q = *state;
	build(q, "S");
	assert_int_equal(put_built(q), 0);
	build(q, "Table");
	assert_int_equal(put_built(q), 0);
	assert_there("_mcpq__q_last_added", "3");
	assert_there("_mcpq__q_1",
		     "{\"oidset_name\":\"S\",\"device_name\":\"r\",\"oid_name\":\"in\","
		     "\"timestamp\":7.0,\"data\":[[[\"in\",\"17\"],5]],"
		     "\"metadata\":{}}");
	assert_there("_mcpq__q_2",
		     "{\"oidset_name\":\"S\",\"device_name\":\"r\",\"oid_name\":\"out\","
		     "\"timestamp\":7.0,\"data\":[[[\"out\",\"17\"],6]],"
		     "\"metadata\":{}}");
	assert_there("_mcpq__q_3", "{\"oidset_name\":\"Table\",\"device_name\":\"r\","
				   "\"oid_name\":\"\",\"timestamp\":7.0,"
				   "\"data\":{\"in\":[[\"in.17\",5]],\"out\":[[\"out.17\",6]]},"
				   "\"metadata\":{}}");
	assert_there("_mcpq__q_last_read", "0"); /* nobody has stored them */
}

/* ---- What memcached loses ------------------------------------------------------------------- */

#define ONE(n)                                                                                     \
	"{\"oidset_name\":\"S\",\"device_name\":\"k0\",\"oid_name\":\"o\",\"timestamp\":" n ".0,"  \
	"\"data\":[[[\"o\",\"a\"]," n "]],\"metadata\":{}}"

/* How often memcached was asked for something. */
static unsigned long count_gets(void)
{
	const char *stats = memcached_say(&server, "stats", "END\r\n");
	return strtoul(strstr(stats, "cmd_get ") + 8, NULL, 10);
}

/* Each look of our thread asks for two counters and for what is there. */
static void wait_for_looks(void)
{
	unsigned long before = count_gets();
	for (int tries = 0; count_gets() < before + 40 && tries < TRIES_MAX; tries++)
		usleep(2000);
	assert_true(count_gets() >= before + 40);
}

/* However often it is looked for. */
static void a_late_item_is_waited_for(void **state)
{
	struct queue_rig *q = *state;
	uint64_t numbers[3];
	unsigned late = memcached_number(&server);
	feed(ONE("2"));
	queue_rig_worker(q, 0);
	queue_rig_ask(q, 0);
	wait_for_looks();
	task_queue_run(&q->workers[0].tasks);
	assert_false(q->workers[0].taken);
	memcached_item(&server, late, ONE("1"));
	assert_int_equal(queue_rig_wait(q, 0), 0);
	queue_rig_fail(q, 0);
	queue_rig_drain(q, 0, 2, numbers);
	assert_int_equal(numbers[0], 1);
	assert_int_equal(numbers[1], 2);
	assert_int_equal(queue_rig_stats(q).missing, 0);
}

static void a_missing_item_is_counted(void **state)
{
	struct queue_rig *q = *state;
	uint64_t numbers[2];
	feed(ONE("1"));
	assert_int_equal(memcached_number(&server), 2);
	assert_int_equal(memcached_number(&server), 3);
	feed(ONE("4"));
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, 1, numbers);
	wait_for_looks();
	assert_int_equal(queue_rig_stats(q).missing, 0);
	clock_virtual_advance(CONTAINER_OF(queue_clock, struct clock_virtual, clock), 301000);
	queue_rig_drain(q, 0, 1, numbers + 1);
	assert_int_equal(numbers[0], 1);
	assert_int_equal(numbers[1], 4);
	struct queue_stats stats = queue_rig_stats(q);
	assert_int_equal(stats.missing, 2);
	assert_int_equal(stats.added, 4);
	assert_int_equal(stats.done, 4);
	wait_for_value("_mcpq__q_last_read", "4");
}

static void a_malformed_item_stops_nobody(void **state)
{
	struct queue_rig *q = *state;
	size_t good = 0, bad = 0;
	feed("{\"device_name\":\"k0\",\"oidset_name\":");
	feed(ONE("2"));
	queue_rig_worker(q, 0);
	while (good + bad < 2) {
		summaries_fold_one(q);
		struct queue_batch *batch = q->workers[0].batch;
		struct store_write *write = rig_write_new(&q->rig);
		for (size_t i = 0; i < batch->count; i++) {
			const struct queue_message *message = &batch->messages[i];
			good += !message->malformed;
			if (!message->malformed)
				continue;
			bad++;
			assert_int_equal(queue_park(batch, message, "why"), ERR_INVALID);
			assert_non_null(strstr(message->malformed, "line 1"));
			assert_int_equal(queue_put_aside(batch, message, message->malformed, write),
					 0);
		}
		rig_commit(&q->rig, write);
		finish(q);
	}
	assert_int_equal(bad, 1);
	assert_int_equal(queue_rig_stats(q).aside, 1);
	assert_int_equal(queue_rig_stats(q).pending, 0);
	/* Tried again it is the item that it was. */
	struct queue_rig_retry retry;
	assert_int_equal(queue_rig_retry(q, &retry), 0);
	assert_true(retry.result.given == 1 && queue_rig_stats(q).aside == 0);
	summaries_fold_one(q);
	const struct queue_message *again = &q->workers[0].batch->messages[0];
	assert_non_null(strstr(again->malformed, "line 1"));
	assert_slice(again->bytes, SLICE("{\"device_name\":\"k0\",\"oidset_name\":"));
	queue_rig_fail(q, 0);
}

/* What was read is stored all the same; what was not is counted; what comes then is taken. */
static void a_restart_is_noticed(void **state)
{
	struct queue_rig *q = *state;
	uint64_t numbers[3];
	assert_int_equal(queue_rig_put(q, "k0", 1), 0);
	queue_rig_worker(q, 0);
	summaries_fold_one(q);
	memcached_stop(&server);
	memcached_start(&server);
	wait_for_restart(q);
	assert_there("_mcpq__q_last_read", "0"); /* made again by us */
	assert_int_equal(queue_rig_store(q, 0), 0);
	assert_int_equal(queue_rig_put(q, "k0", 2), 0);
	assert_int_equal(queue_rig_put(q, "k0", 3), 0);
	queue_rig_drain(q, 0, 2, numbers);
	assert_int_equal(numbers[0], 2);
	assert_int_equal(numbers[1], 3);
	struct queue_stats stats = queue_rig_stats(q);
	assert_int_equal(stats.restarts, 1);
	assert_int_equal(stats.missing, 0);
	assert_int_equal(stats.added, 2);
	assert_int_equal(stats.pending, 0);
	assert_int_equal(queue_rig_samples(q), 3);
	wait_for_value("_mcpq__q_last_read", "2");
}

static void what_was_there_and_not_read_is_counted(void **state)
{
	struct queue_rig *q = *state;
	/* A hole keeps what follows from being read. */
	memcached_number(&server);
	for (int i = 0; i < 4; i++)
		feed(ONE("7"));
	queue_rig_worker(q, 0);
	for (int tries = 0; queue_rig_stats(q).added < 5 && tries < TRIES_MAX; tries++)
		usleep(1000);
	memcached_stop(&server);
	memcached_start(&server);
	wait_for_restart(q);
	struct queue_stats stats = queue_rig_stats(q);
	assert_int_equal(stats.restarts, 1);
	/* Had the wait for the hole ended before, one is missing and four were read. */
	assert_int_equal(stats.missing + stats.pending, 5);
}

static void without_memcached_a_put_fails_in_time(void **state)
{
	struct queue_rig *q = *state;
	uint64_t number;
	memcached_stop(&server);
	queue_close(q->queue);
	put_timeout_ms = 100;
	q->queue = open_memcached(NULL, q->rig.store, &q->limits);
	assert_int_equal(queue_rig_put(q, "k0", 1), ERR_TIMEOUT);
	memcached_start(&server);
	put_timeout_ms = 0;
	queue_close(q->queue);
	q->queue = open_memcached(NULL, q->rig.store, &q->limits);
	assert_int_equal(queue_rig_put(q, "k0", 2), 0);
	queue_rig_worker(q, 0);
	queue_rig_drain(q, 0, 1, &number);
	assert_int_equal(number, 2);
}

static void an_item_of_more_than_a_megabyte_is_refused(void **state)
{
	struct queue_rig *q = *state;
	static char text[POLL_TEXT_MAX_BYTES];
	struct errbuf e;
	memset(text, 'x', sizeof(text));
	assert_int_equal(poll_begin(&q->builder, SLICE("r"), SLICE("S"), 0, &e), 0);
	assert_int_equal(poll_add_column(&q->builder, SLICE("o"), &e), 0);
	for (size_t row = 0; row < 15; row++) {
		assert_int_equal(poll_add_row(&q->builder, NULL, 0, 0, &e), 0);
		assert_int_equal(poll_set_text(&q->builder, row, 0,
					       (struct slice){text, sizeof(text)}, false, &e),
				 0);
	}
	assert_int_equal(put_built(q), 0); /* 983,000 bytes */
	assert_int_equal(poll_add_row(&q->builder, NULL, 0, 0, &e), 0);
	assert_int_equal(
		poll_set_text(&q->builder, 15, 0, (struct slice){text, sizeof(text)}, false, &e),
		0);
	assert_int_equal(put_built(q), ERR_LIMIT);
	assert_int_equal(queue_rig_stats(q).refused, 1);
	queue_rig_worker(q, 0);
	summaries_fold_one(q);
	assert_true(q->workers[0].batch->messages[0].bytes.len > 15 * POLL_TEXT_MAX_BYTES);
	finish(q);
}

static void wrong_addresses_and_names(UNUSED void **state)
{
	struct queue_rig *q = *state;
	static const char *const wrong[] = {
		"", "host", ":11211", "host:", "host:0", "host:65536", "host:1x"};
	struct errbuf e;
	struct queue *queue;
	struct queue_memcached_options options = {
		.name = SLICE("q"), .workers = 1, .store = q->rig.store, .clock = clock_real()};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		options.server = slice_of(wrong[i]);
		assert_int_equal(queue_memcached_open(&options, &queue, &e), ERR_INVALID);
		assert_non_null(strstr(e.text, "HOST:PORT"));
	}
	options.name = SLICE("two words");
	options.server = slice_of(server.address);
	assert_int_equal(queue_memcached_open(&options, &queue, &e), ERR_INVALID);
}

int main(int argc, char **argv)
{
#define TEST(name)    cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define STOPPED(name) cmocka_unit_test_setup_teardown(name, set_up_stopped, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_esmond_poller_is_read),
		TEST(an_esmond_persister_can_read),
		STOPPED(a_late_item_is_waited_for),
		STOPPED(a_missing_item_is_counted),
		TEST(a_malformed_item_stops_nobody),
		TEST(a_restart_is_noticed),
		TEST(what_was_there_and_not_read_is_counted),
		TEST(without_memcached_a_put_fails_in_time),
		TEST(an_item_of_more_than_a_megabyte_is_refused),
		TEST(wrong_addresses_and_names),
	};
	const struct contract_engine engine = engine_naive();
	queue_clock = clock_real();
	memcached_start(&server);
	int failed = queue_contract_run(&driver, &engine, argc, argv);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed += cmocka_run_group_tests(tests, NULL, NULL);
	memcached_stop(&server);
	return failed;
}
