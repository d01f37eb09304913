/* The suite of queues against the one in the store, on the embedded engine and on the naive one. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

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

/* Puts and stores, turn by turn, until it dies. */
static void work_until_killed(struct store *store, UNUSED struct clock *clock)
{
	static struct queue_rig q;
	const struct itimerval soon = {.it_value = {.tv_usec = shared->after_us}};
	q.rig.store = store;
	clock_virtual_init(&q.rig.clock, T0 * 1000);
	task_queue_init(&q.rig.queue);
	q.queue = open_local(NULL, store, &(struct queue_limits){.workers = 1});
	poll_builder_init(&q.builder);
	buf_init(&q.bytes, POLL_BYTES_MAX);
	q.handle = rig_series(&q.rig, "number", "from=queue");
	queue_rig_worker(&q, 0);
	signal(SIGALRM, die);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (uint64_t round = 0;; round++) {
		for (uint64_t n = round % 4 + 1; n; n--) {
			char key[8];
			uint64_t number = atomic_load(&shared->put) + 1;
			ASSERT(number < NUMBERS_MAX);
			snprintf(key, sizeof(key), "k%d", (int)(number % 7));
			atomic_store(&shared->tried, number);
			ASSERT(!queue_rig_put(&q, key, number));
			atomic_store(&shared->put, number);
		}
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

static void killed_at_any_moment(UNUSED void **state)
{
	const struct contract_engine engine = engine_lmdb("lmdb", 0, 0);
	const struct queue_limits limits = {.workers = 1};
	static struct queue_rig q;
	queue_rig_open(&q, &local_driver, &engine, &limits);
	for (int i = 0; i < KILLS; i++) {
		shared->after_us = (useconds_t)(3000 + i * 4001);
		queue_close(q.queue);
		q.rig.store = engine.kill_in(engine.context, q.rig.store, &q.rig.clock.clock,
					     work_until_killed);
		q.handle = rig_series(&q.rig, "number", "from=queue");
		q.queue = open_local(NULL, q.rig.store, &limits);
		check_what_is_there(&q);
	}
	assert_true(atomic_load(&shared->put) > KILLS);
	queue_rig_close(&q);
}

static int run_kills(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	ASSERT(shared != MAP_FAILED);
	const struct CMUnitTest tests[] = {cmocka_unit_test(killed_at_any_moment)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	const struct contract_engine lmdb = engine_lmdb("lmdb", 0, 0), naive = engine_naive();
	struct queue_driver driver = local_driver;
	if (argc > 1 && strcmp(argv[1], "kill") == 0)
		return run_kills();
	int failed = queue_contract_run(&driver, &lmdb, argc, argv);
	driver.name = "local on naive";
	if (argc == 1)
		failed += run_kills();
	return failed + queue_contract_run(&driver, &naive, argc, argv);
}
