/* Inlets with connections, on the loop's thread and real sockets, with a clock of the test's own:
 * which of many connections gives its place to a new one, and what becomes of what has come when an
 * inlet ends. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/adaptors.h"
#include "agent/inlet.h"
#include "agent_files.h"
#include "base/log.h"
#include "base/stats.h"

enum {
	CONNECTIONS_MAX = 500,
	IDLE_US = 600000000,
	DESCRIPTORS = 2200, /* of both ends of these, and more */
	SPOOL_BYTES = 8 << 20,
	PATIENCE_S = 60,
};

struct world {
	struct sim_files sim;
	struct clock_virtual clock;
	struct clock real_and_more;
	_Atomic int64_t more_us; /* than the real time */
	struct spool *spool;
	struct inlets *inlets;
	struct adaptors *adaptors;
	char address[32];
	uint16_t port;
	int clients[CONNECTIONS_MAX + 2];
};

static int64_t later_mono_us(struct clock *clock)
{
	struct world *world = CONTAINER_OF(clock, struct world, real_and_more);
	return clock_real()->mono_us(clock_real()) + world->more_us;
}

static int64_t later_wall_us(UNUSED struct clock *clock)
{
	return clock_real()->wall_us(clock_real());
}

static void find_port(struct world *world)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	world->port = ntohs(address.sin_port);
	snprintf(world->address, sizeof(world->address), "127.0.0.1:%u", world->port);
	close(fd);
}

static struct adaptors *make_adaptors(struct world *world)
{
	struct adaptors *adaptors = mem_zalloc(sizeof(*adaptors));
	arena_init(&adaptors->arena, 1 << 20);
	adaptors->list = arena_zalloc(&adaptors->arena, sizeof(*adaptors->list));
	assert_non_null(adaptors->list);
	adaptors->count = 1;
	*adaptors->list = (struct adaptor){
		.kind = ADAPTOR_TCP,
		.name = SLICE("net"),
		.datatype = SLICE("raw"),
		.path = slice_of(world->address),
		.connections = true,
	};
	return adaptors;
}

static int make_world(void **state)
{
	struct world *world = mem_zalloc(sizeof(*world));
	struct errbuf e = {""};
	struct rlimit limit;
	log_set_level(LOG_ERROR);
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < DESCRIPTORS)
		limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	setrlimit(RLIMIT_NOFILE, &limit);
	world->real_and_more = (struct clock){.mono_us = later_mono_us, .wall_us = later_wall_us};
	clock_virtual_init(&world->clock, 1795953600000000);
	sim_files_init(&world->sim, &world->clock.clock);
	const struct spool_options options = {&world->sim.files, &world->real_and_more, "/spool",
					      SPOOL_BYTES};
	assert_int_equal(spool_open(&options, &world->spool, &e), 0);
	find_port(world);
	world->adaptors = make_adaptors(world);
	world->inlets = inlets_new(
		&(struct inlets_options){.spool = world->spool, .clock = &world->real_and_more});
	inlets_configure(world->inlets, world->adaptors);
	for (size_t i = 0; i < ARRAY_LEN(world->clients); i++)
		world->clients[i] = -1;
	*state = world;
	return 0;
}

static int free_world(void **state)
{
	struct world *world = *state;
	inlets_free(world->inlets);
	for (size_t i = 0; i < ARRAY_LEN(world->clients); i++)
		if (world->clients[i] >= 0)
			close(world->clients[i]);
	spool_close(world->spool);
	adaptors_free(world->adaptors);
	sim_files_release(&world->sim);
	mem_free(world);
	return 0;
}

static void open_client(struct world *world, size_t which)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(world->port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	world->clients[which] = fd;
}

static void say(struct world *world, size_t which, const char *text)
{
	assert_int_equal(send(world->clients[which], text, strlen(text), MSG_NOSIGNAL),
			 strlen(text));
}

/* Until so many bytes are in the spool: all that was said before is taken then. */
static void await_bytes(struct world *world, uint64_t bytes)
{
	int64_t until_us = clock_real()->mono_us(clock_real()) + PATIENCE_S * INT64_C(1000000);
	while (spool_bytes(world->spool) < bytes) {
		assert_true(clock_real()->mono_us(clock_real()) < until_us);
		usleep(1000);
	}
	assert_int_equal(spool_bytes(world->spool), bytes);
}

/* The inlet has closed it. */
static void assert_closed(struct world *world, size_t which)
{
	char byte;
	assert_int_equal(recv(world->clients[which], &byte, 1, 0), 0);
}

/* "x\n" of each of 500 makes 1,000 bytes. */
static void fill(struct world *world)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		open_client(world, i);
		say(world, i, "x\n");
		await_bytes(world, 2 * (i + 1));
	}
}

static void the_one_that_was_silent_for_long_gives_its_place(void **state)
{
	struct world *world = *state;
	int64_t idle = stat_get(STAT_inlet_idle), refused = stat_get(STAT_inlet_refused);
	fill(world);
	world->more_us += IDLE_US / 2;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (i != 7)
			say(world, i, i == 8 ? "no end" : "y\n");
	await_bytes(world, 1000 + 2 * 498);
	/* Half of the time is too little. */
	open_client(world, CONNECTIONS_MAX);
	assert_closed(world, CONNECTIONS_MAX);
	assert_int_equal(stat_get(STAT_inlet_refused) - refused, 1);
	world->more_us += IDLE_US / 2;
	open_client(world, CONNECTIONS_MAX + 1);
	assert_closed(world, 7);
	say(world, CONNECTIONS_MAX + 1, "new\n");
	say(world, 8, "\n");
	await_bytes(world, 1000 + 2 * 498 + 4 + 7);
	assert_int_equal(stat_get(STAT_inlet_idle) - idle, 1);
	assert_int_equal(stat_get(STAT_inlet_refused) - refused, 1);
}

/* Its half line is a record. */
static void what_a_silent_one_had_sent_is_kept(void **state)
{
	struct world *world = *state;
	fill(world);
	say(world, 0, "half");
	for (size_t i = 1; i < CONNECTIONS_MAX; i++)
		say(world, i, "y\n");
	await_bytes(world, 1000 + 2 * 499);
	world->more_us += IDLE_US / 2;
	for (size_t i = 1; i < CONNECTIONS_MAX; i++)
		say(world, i, "y\n");
	await_bytes(world, 1000 + 4 * 499);
	world->more_us += IDLE_US / 2;
	open_client(world, CONNECTIONS_MAX);
	assert_closed(world, 0);
	await_bytes(world, 1000 + 4 * 499 + 5);
}

static void await_state(struct world *world, const char *state)
{
	int64_t until_us = clock_real()->mono_us(clock_real()) + PATIENCE_S * INT64_C(1000000);
	struct inlet_said said;
	while (inlets_said(world->inlets, 0, &said) && strcmp(said.state, state) != 0) {
		assert_true(clock_real()->mono_us(clock_real()) < until_us);
		usleep(1000);
	}
}

/* Lines of 1,000 bytes, until the kernel takes no more, since the spool takes nothing and the inlet
 * does not read; at most half of the spool. Gives their bytes. */
static uint64_t say_much(struct world *world)
{
	static char text[1 << 20];
	uint64_t sent = 0;
	memset(text, 'z', sizeof(text));
	for (size_t i = 999; i < sizeof(text); i += 1000)
		text[i] = '\n';
	world->sim.free_bytes = 0;
	for (ssize_t got = 1; got > 0 && sent < SPOOL_BYTES / 2;) {
		got = send(world->clients[0], text + sent % 1000, sent ? sizeof(text) - 1000 : 1000,
			   MSG_DONTWAIT | MSG_NOSIGNAL);
		assert_true(got > 0 || errno == EAGAIN);
		if (!sent)
			await_state(world, "waiting");
		sent += got > 0 ? (uint64_t)got : 0;
	}
	return sent;
}

/* The spool takes nothing any more: what waits for it, and what nobody has read, is counted. */
static void what_nobody_reads_any_more_is_counted(void **state)
{
	struct world *world = *state;
	int64_t unread = stat_get(STAT_inlet_unread_bytes);
	int64_t dropped = stat_get(STAT_inlet_dropped_ended);
	open_client(world, 0);
	say(world, 0, "first\n");
	await_bytes(world, 6);
	int64_t sent = (int64_t)say_much(world);
	inlets_free(world->inlets);
	world->inlets = NULL;
	unread = stat_get(STAT_inlet_unread_bytes) - unread;
	dropped = stat_get(STAT_inlet_dropped_ended) - dropped;
	assert_int_equal(spool_bytes(world->spool), 6);
	assert_true(unread > 0 && dropped > 0);
	/* What the kernel of the sender has is not known. */
	assert_true(unread + (dropped - 1) * 1000 <= sent);
}

/* The spool takes records again when the inlet is to end: all that has come is read. A line without
 * its end gets one. */
static void what_has_come_is_read_at_the_end(void **state)
{
	struct world *world = *state;
	int64_t unread = stat_get(STAT_inlet_unread_bytes);
	open_client(world, 0);
	uint64_t sent = say_much(world);
	assert_true(sent > 200000);
	world->sim.free_bytes = UINT64_MAX;
	inlets_free(world->inlets);
	world->inlets = NULL;
	assert_int_equal(stat_get(STAT_inlet_unread_bytes) - unread, 0);
	assert_int_equal(spool_bytes(world->spool), sent + (sent % 1000 != 0));
}

/* One that loses datagrams waits for none that come later. */
static void who_lost_datagrams_waits_while_the_spool_is_full(void **state)
{
	struct world *world = *state;
	const struct adaptors none = {.count = 0};
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(world->port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct inlet_said said;
	inlets_configure(world->inlets, &none);
	world->adaptors->list->kind = ADAPTOR_UDP;
	world->adaptors->list->datagrams = true;
	world->adaptors->list->connections = false;
	world->sim.free_bytes = 0;
	inlets_configure(world->inlets, world->adaptors);
	world->clients[0] = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(
		sendto(world->clients[0], "x", 1, 0, (struct sockaddr *)&address, sizeof(address)),
		1);
	await_state(world, "waiting");
	world->sim.free_bytes = UINT64_MAX;
	await_state(world, "following");
	assert_true(inlets_said(world->inlets, 0, &said));
	assert_string_equal(said.problem, "1 datagrams are lost since the spool took none, and 0 "
					  "since the kernel had no room for them");
}

/* Commands need a moment to end, and nobody waits for them; but more of them than may be at once
 * wait for those of before. */
static void commands_come_and_go(void **state)
{
	struct world *world = *state;
	const struct adaptors none = {.count = 0};
	struct inlet_said said;
	*world->adaptors->list = (struct adaptor){.kind = ADAPTOR_EXEC,
						  .name = SLICE("exec"),
						  .datatype = SLICE("raw"),
						  .path = SLICE("echo x; sleep 1000"),
						  .every_ms = 60000,
						  .timeout_ms = 60000};
	for (unsigned i = 0; i < 2 * JOBS_MAX; i++) {
		inlets_configure(world->inlets, world->adaptors);
		assert_true(inlets_said(world->inlets, 0, &said));
		assert_string_equal(said.state, "following");
		assert_string_equal(said.problem, "");
		inlets_configure(world->inlets, &none);
		assert_false(inlets_said(world->inlets, 0, &said));
	}
}

static void sleep_until_stopped(struct job *job, UNUSED void *owner)
{
	while (!job_sleep(job, 1000000))
		;
}

static void note_end(void *owner)
{
	++*(size_t *)owner;
}

/* There is no thread to be had at first. */
static void a_command_waits_for_its_thread(void **state)
{
	struct world *world = *state;
	const struct adaptors none = {.count = 0};
	struct inlet_said said;
	struct task_queue queue;
	struct job *jobs[JOBS_MAX];
	size_t count = 0, ended = 0;
	task_queue_init(&queue);
	inlets_configure(world->inlets, &none);
	while (count < JOBS_MAX && !job_start("idle", sleep_until_stopped, note_end, &ended,
					      &queue.executor, &jobs[count]))
		count++;
	*world->adaptors->list = (struct adaptor){.kind = ADAPTOR_EXEC,
						  .name = SLICE("exec"),
						  .datatype = SLICE("raw"),
						  .path = SLICE("echo x"),
						  .every_ms = 60000,
						  .timeout_ms = 60000};
	for (int i = 0; i < 2; i++) { /* the first one ends without having had one */
		inlets_configure(world->inlets, &none);
		inlets_configure(world->inlets, world->adaptors);
		assert_true(inlets_said(world->inlets, 0, &said));
		assert_string_equal(said.state, "stopped");
		assert_string_equal(said.problem,
				    "there are too many threads; it is not followed yet");
	}
	for (size_t i = 0; i < count; i++)
		job_stop(jobs[i]);
	while (ended < count)
		task_queue_wait(&queue);
	await_state(world, "following");
	assert_true(inlets_said(world->inlets, 0, &said));
	assert_string_equal(said.problem, "");
	for (size_t i = 0; i < count; i++)
		job_free(jobs[i]);
	task_queue_release(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, free_world)
		TEST(the_one_that_was_silent_for_long_gives_its_place),
		TEST(what_a_silent_one_had_sent_is_kept),
		TEST(what_nobody_reads_any_more_is_counted),
		TEST(what_has_come_is_read_at_the_end),
		TEST(who_lost_datagrams_waits_while_the_spool_is_full),
		TEST(commands_come_and_go),
		TEST(a_command_waits_for_its_thread),
#undef TEST
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
