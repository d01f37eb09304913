/* Tracking in a real Redis: its keys, and what becomes of marks when it goes, forgets or is not
 * ours. */
#include "ingest_harness.h"

#include "ingest/line_feed.h"
#include "rollup_drivers.h"

#define SLOT_S   INT64_C(1599933600) /* 2020-09-12T18:00:00Z */
#define SLOT_MS  (2 * 3600000)
#define QUIET_MS 300000

static const struct mark_slot slot = {SLOT_S, 50};

/* The vector of the document's program: tests/unit/lease_partition.c derives the partition. */
#define SERIES "some_metric,deployment=prod,host=h-1,os=linux"

struct rig {
	struct clock_virtual clock;
	struct task_queue queue;
	struct store *store;
	struct marks *marks;
	struct marks_reading reading;
};

static int64_t now_ms(struct rig *rig)
{
	return clock_wall_ms(&rig->clock.clock);
}

static void open_track(struct rig *rig)
{
	rig->marks = driver_open_redis(rig->store, &rig->clock.clock, SLOT_MS, QUIET_MS);
}

static void close_track(struct rig *rig)
{
	marks_reading_release(&rig->reading);
	rig->reading = (struct marks_reading){0};
	marks_close(rig->marks);
}

/* A hundred seconds into the slot. */
static void rig_open(struct rig *rig)
{
	*rig = (struct rig){0};
	clock_virtual_init(&rig->clock, (SLOT_S + 100) * 1000000);
	task_queue_init(&rig->queue);
	rig->store = naive_open(&rig->clock.clock);
	redis_say(&driver.redis, "FLUSHALL");
	open_track(rig);
}

static void rig_close(struct rig *rig)
{
	close_track(rig);
	store_close(rig->store);
	task_queue_release(&rig->queue);
}

static int mark(struct rig *rig, const char *series)
{
	struct mark_touch touch = {.slot = slot,
				   .tenant = SLICE("tenant-1"),
				   .series_set = series_set_split(slice_of(series))};
	return marks_mark_wait(rig->marks, &rig->queue, now_ms(rig), &touch, 1);
}

/* Marks of the next part: the first series and when it was touched. */
static size_t read_part(struct rig *rig, bool first, struct mark *mark, bool *more)
{
	struct marks_reading *reading = &rig->reading;
	if (first) {
		marks_reading_release(reading);
		*reading = (struct marks_reading){
			.marks = rig->marks, .slots = &slot, .slot_count = 1};
	}
	assert_int_equal(marks_read(reading, &rig->queue, now_ms(rig)), 0);
	*more = !reading->over;
	if (reading->count)
		*mark = reading->part[0];
	for (size_t i = 0; i < reading->count; i++)
		reading->part[i].finished = true;
	return reading->count;
}

/* It knows by itself, after a while. */
static void wait_state(struct rig *rig, bool degraded, uint64_t losses)
{
	for (int tries = 0;; tries++) {
		struct marks_state state = marks_state(rig->marks);
		if (state.degraded == degraded && state.losses == losses)
			return;
		assert_true(tries < 30000); /* a minute: only a failure takes as long */
		usleep(2000);
	}
}

static void expect_say(const char *command, const char *want)
{
	assert_string_equal(redis_say(&driver.redis, command), want);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* The slot goes on for 7,100 s; then all is quiet after 300 more. */
static void keys_are_those_of_the_document(void **state)
{
	(void)state;
	struct rig rig;
	struct mark found;
	bool more;
	rig_open(&rig);
	assert_int_equal(mark(&rig, SERIES), 0);
	expect_say("SMEMBERS pending:50:1599933600", "tenant-1:" SERIES);
	expect_say("GET ingesting:50:1599933600", "");
	assert_in_range(strtol(redis_say(&driver.redis, "TTL ingesting:50:1599933600"), NULL, 10),
			7390, 7400);
	assert_int_equal(strtoll(redis_say(&driver.redis, "HVALS touches:50:1599933600"), NULL, 10),
			 SLOT_S * 1000 + 100000);
	assert_int_equal(read_part(&rig, true, &found, &more), 1);
	assert_false(more);
	assert_true(slice_equal(found.tenant, SLICE("tenant-1")));
	assert_true(series_set_equal(found.series_set, series_set_split(SLICE(SERIES))));
	assert_int_equal(marks_finish(&rig.reading, &rig.queue), 0);
	expect_say("KEYS *0", "ingesting:50:1599933600");
	rig_close(&rig);
}

static void the_separator_of_the_documents_program(void **state)
{
	(void)state;
	struct rig rig;
	struct mark found;
	struct errbuf e;
	bool more;
	rig_open(&rig);
	close_track(&rig);
	struct marks_redis_options options = {.store = rig.store,
					      .clock = &rig.clock.clock,
					      .url = {.port = (int)driver.redis.port},
					      .separator = '|',
					      .writer = SLICE("w"),
					      .slot_ms = SLOT_MS,
					      .quiet_ms = QUIET_MS};
	snprintf(options.url.host, sizeof(options.url.host), "localhost");
	assert_int_equal(marks_redis_open(&options, &rig.marks, &e), 0);
	assert_int_equal(mark(&rig, SERIES), 0);
	expect_say("SMEMBERS pending|50|1599933600", "tenant-1|" SERIES);
	expect_say("EXISTS ingesting|50|1599933600", "1");
	assert_int_equal(read_part(&rig, true, &found, &more), 1);
	assert_true(series_set_equal(found.series_set, series_set_split(SLICE(SERIES))));
	rig_close(&rig);
}

/* It has no touches: it is quiet when `ingesting` has gone. */
static void a_member_of_another_program_waits_for_its_ingesting(void **state)
{
	(void)state;
	struct rig rig;
	struct mark found;
	bool more;
	rig_open(&rig);
	redis_say(&driver.redis, "SETEX ingesting:50:1599933600 300 x");
	redis_say(&driver.redis, "SADD pending:50:1599933600 tenant-1:m");
	assert_int_equal(read_part(&rig, true, &found, &more), 1);
	assert_int_equal(found.touched_ms, now_ms(&rig));
	redis_say(&driver.redis, "DEL ingesting:50:1599933600");
	assert_int_equal(read_part(&rig, true, &found, &more), 1);
	assert_int_equal(found.touched_ms, 0);
	assert_int_equal(marks_finish(&rig.reading, &rig.queue), 0);
	expect_say("EXISTS pending:50:1599933600", "0");
	rig_close(&rig);
}

static void what_is_no_mark_of_ours_is_left_and_counted(void **state)
{
	(void)state;
	struct rig rig;
	struct mark found;
	bool more;
	rig_open(&rig);
	redis_say(&driver.redis, "SADD pending:50:1599933600 nothing :m t: tenant-1:m");
	redis_say(&driver.redis, "SET pending:50:x 1");
	redis_say(&driver.redis, "SADD pending:50:1599933601 tenant-1:m");
	assert_int_equal(read_part(&rig, true, &found, &more), 1);
	assert_int_equal(rig.reading.unread, 3);
	assert_non_null(strstr(rig.reading.unread_name, "of pending:50:1599933600 in Redis"));
	assert_int_equal(marks_finish(&rig.reading, &rig.queue), 0);
	expect_say("SCARD pending:50:1599933600", "3");
	redis_say(&driver.redis, "DEL pending:50:1599933600");
	redis_say(&driver.redis, "SET pending:50:1599933600 text");
	assert_int_equal(read_part(&rig, true, &found, &more), 0);
	assert_int_equal(rig.reading.unread, 1);
	assert_string_equal(rig.reading.unread_name,
			    "pending:50:1599933600 in Redis, which is no set");
	struct marks_listing listing = {.marks = rig.marks};
	assert_int_equal(marks_list(&listing, &rig.queue, now_ms(&rig)), 0);
	assert_true(listing.over);
	assert_int_equal(listing.count, 1);
	assert_int_equal(mark_slot_compare(listing.slots, &slot), 0);
	marks_listing_release(&listing);
	rig_close(&rig);
}

/* ---- Gone ------------------------------------------------------------------------------------ */

static void marks_are_kept_in_the_store_while_redis_is_away(void **state)
{
	(void)state;
	struct rig rig;
	struct mark found;
	bool more;
	rig_open(&rig);
	redis_kill(&driver.redis);
	assert_int_equal(mark(&rig, "a"), 0);
	wait_state(&rig, true, 0);
	assert_int_equal(mark(&rig, "b"), 0);
	assert_int_equal(read_part(&rig, true, &found, &more), 2);
	assert_true(more);
	assert_int_equal(marks_read(&rig.reading, &rig.queue, now_ms(&rig)), ERR_RETRY);
	redis_start(&driver.redis);
	wait_state(&rig, false, 1);
	assert_int_equal(mark(&rig, "c"), 0);
	expect_say("SMEMBERS pending:50:1599933600", "tenant-1:c");
	assert_int_equal(read_part(&rig, true, &found, &more), 2);
	assert_int_equal(marks_finish(&rig.reading, &rig.queue), 0);
	assert_int_equal(read_part(&rig, false, &found, &more), 1);
	assert_true(series_set_equal(found.series_set, series_set_split(SLICE("c"))));
	assert_false(more);
	rig_close(&rig);
}

/* The connection stands and nothing comes over it: two seconds, and the store has the mark. */
static void a_redis_that_hangs_holds_up_nobody_for_long(void **state)
{
	(void)state;
	struct rig rig;
	struct mark found;
	bool more;
	rig_open(&rig);
	kill(driver.redis.pid, SIGSTOP);
	assert_int_equal(mark(&rig, "a"), 0);
	assert_true(marks_state(rig.marks).degraded);
	kill(driver.redis.pid, SIGCONT);
	assert_int_equal(read_part(&rig, true, &found, &more), 1);
	assert_true(more);
	wait_state(&rig, false, 0);
	rig_close(&rig);
}

/* ---- Lies ------------------------------------------------------------------------------------ */

/* What listens at a port and answers the first command with this text, to the end of which it adds
 * an 'x' every 5 ms if `dribbles`. */
struct liar {
	pid_t pid;
	int port;
};

static void serve_lies(int listener, const char *answer, bool dribbles)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		char command[4096];
		int fd = accept(listener, NULL, NULL);
		bool open = read(fd, command, sizeof(command)) > 0 &&
			    write(fd, answer, strlen(answer)) >= 0;
		while (open && dribbles && write(fd, "x", 1) == 1)
			usleep(5000);
		while (open && read(fd, command, sizeof(command)) > 0)
			continue;
		close(fd);
	}
}

static struct liar start_liar(const char *answer, bool dribbles)
{
	struct sockaddr_in place = {.sin_family = AF_INET};
	socklen_t len = sizeof(place);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&place, len), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&place, &len), 0);
	pid_t pid = fork();
	if (pid == 0)
		serve_lies(listener, answer, dribbles);
	assert_true(pid > 0);
	close(listener);
	return (struct liar){pid, ntohs(place.sin_port)};
}

/* One answer too many ended the process, by an assertion of hiredis' asynchronous interface. */
static void what_answers_wrongly_is_not_used_and_named(void **state)
{
	(void)state;
	static const struct {
		const char *answer, *why;
		bool dribbles;
	} lies[] = {
		{"+OK\r\n+OK\r\n", "nobody has asked", false},
		{"-ERR max number of clients reached\r\n", "max number of clients", false},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", "Protocol error", false},
		{"$-7\r\n", "length out of range", false},
		{"$99999999999999999999\r\n", "length", false},
		{"*2147483648\r\n", "length out of range", false},
		{"*2147483647\r\n", "too long", false},
		{"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "nested",
		 false},
		{"$9223372036854775807\r\nabc", "does not answer", false},
		{"$1000000\r\n", "does not answer", true},
		{"", "does not answer", false},
	};
	struct rig rig;
	struct errbuf e;
	rig_open(&rig);
	close_track(&rig);
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct liar liar = start_liar(lies[i].answer, lies[i].dribbles);
		struct marks_redis_options options = {
			.store = rig.store,
			.clock = &rig.clock.clock,
			.url = {.host = "127.0.0.1", .port = liar.port},
			.separator = ':',
			.writer = SLICE("w"),
			.slot_ms = SLOT_MS,
			.quiet_ms = 1000};
		assert_int_equal(marks_redis_open(&options, &rig.marks, &e), 0);
		struct marks_state seen = marks_state(rig.marks);
		for (int tries = 0; !strstr(seen.why, lies[i].why); tries++) {
			if (tries == 2500)
				fail_msg("lie %zu: %s", i, seen.why);
			usleep(2000);
			seen = marks_state(rig.marks);
		}
		assert_true(seen.degraded);
		assert_int_equal(mark(&rig, "a"), 0); /* in the store */
		marks_close(rig.marks);
		kill(liar.pid, SIGKILL);
		assert_int_equal(waitpid(liar.pid, NULL, 0), liar.pid);
	}
	open_track(&rig);
	rig_close(&rig);
}

/* ---- Emptied --------------------------------------------------------------------------------- */

static void that_it_was_emptied_is_known_until_all_is_marked_again(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig);
	assert_false(marks_state(rig.marks).incomplete);
	assert_int_equal(mark(&rig, "a"), 0);
	redis_say(&driver.redis, "FLUSHALL");
	assert_int_equal(mark(&rig, "b"), 0);
	wait_state(&rig, false, 1);
	expect_say("SMEMBERS pending:50:1599933600", "tenant-1:b");
	assert_true(marks_state(rig.marks).incomplete);
	/* Nor is it forgotten with the process. */
	close_track(&rig);
	open_track(&rig);
	struct marks_state seen = marks_state(rig.marks);
	assert_true(seen.incomplete);
	marks_restored(rig.marks, seen.losses - 1);
	marks_restored(rig.marks, seen.losses);
	while (marks_state(rig.marks).incomplete)
		usleep(1000);
	close_track(&rig);
	open_track(&rig);
	assert_false(marks_state(rig.marks).incomplete);
	rig_close(&rig);
}

static void without_anybody_marking_it_is_found_out_as_well(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig);
	redis_say(&driver.redis, "FLUSHALL");
	wait_state(&rig, false, 1);
	close_track(&rig);
	redis_say(&driver.redis, "FLUSHALL");
	open_track(&rig);
	assert_true(marks_state(rig.marks).incomplete);
	rig_close(&rig);
}

/* What it had saved last may be of long before. */
static void what_a_restarted_redis_has_kept_may_be_old(void **state)
{
	(void)state;
	struct rig rig;
	char epoch[300];
	rig_open(&rig);
	snprintf(epoch, sizeof(epoch), "%s", redis_say(&driver.redis, "GET granary:epoch"));
	redis_kill(&driver.redis);
	close_track(&rig);
	redis_start(&driver.redis);
	freeReplyObject(redisCommand(driver.redis.context, "SET granary:epoch %s", epoch));
	open_track(&rig);
	assert_true(marks_state(rig.marks).incomplete);
	rig_close(&rig);
}

/* Each would roll up nothing for the marks of the other, and take them away. */
static void the_marks_of_another_store_are_left_alone(void **state)
{
	(void)state;
	struct rig rig, other = {0};
	rig_open(&rig);
	clock_virtual_init(&other.clock, (SLOT_S + 100) * 1000000);
	task_queue_init(&other.queue);
	other.store = naive_open(&other.clock.clock);
	struct marks_redis_options options = {.store = other.store,
					      .clock = &other.clock.clock,
					      .url = {.port = (int)driver.redis.port},
					      .separator = ':',
					      .writer = SLICE("w"),
					      .slot_ms = SLOT_MS,
					      .quiet_ms = QUIET_MS};
	struct errbuf e;
	snprintf(options.url.host, sizeof(options.url.host), "127.0.0.1");
	assert_int_equal(marks_redis_open(&options, &other.marks, &e), 0);
	struct marks_state seen = marks_state(other.marks);
	assert_true(seen.degraded);
	assert_non_null(strstr(seen.why, "another data directory"));
	assert_int_equal(mark(&other, "a"), 0);
	expect_say("EXISTS pending:50:1599933600", "0");
	/* In a database of its own it may. */
	marks_close(other.marks);
	options.url.database = 3;
	assert_int_equal(marks_redis_open(&options, &other.marks, &e), 0);
	assert_false(marks_state(other.marks).degraded);
	assert_int_equal(mark(&other, "a"), 0);
	expect_say("EXISTS pending:50:1599933600", "0");
	marks_close(other.marks);
	store_close(other.store);
	task_queue_release(&other.queue);
	rig_close(&rig);
}

/* Their raw data is gone, so nobody could make the marks again. */
static void marks_of_late_points_and_deletions_are_in_the_store(void **state)
{
	(void)state;
	struct rig rig;
	struct mark found;
	bool more;
	rig_open(&rig);
	close_track(&rig);
	driver.late_after_ms = 100001;
	open_track(&rig);
	assert_int_equal(mark(&rig, "a"), 0);
	expect_say("SMEMBERS pending:50:1599933600", "tenant-1:a");
	clock_virtual_advance(&rig.clock, 2000);
	assert_int_equal(mark(&rig, "b"), 0);
	expect_say("SMEMBERS pending:50:1599933600", "tenant-1:a");
	assert_int_equal(read_part(&rig, true, &found, &more), 1);
	assert_true(series_set_equal(found.series_set, series_set_split(SLICE("b"))));
	driver.late_after_ms = 0;
	rig_close(&rig);
}

/* ---- Doors ----------------------------------------------------------------------------------- */

static void doors_open(struct harness *h)
{
	redis_say(&driver.redis, "FLUSHALL");
	*h = (struct harness){0};
	harness_open(h, &(struct ingest_options){.partitions = 1,
						 .rollup_slot_ms = SLOT_MS,
						 .rollup_quiet_ms = QUIET_MS});
}

static void send_line(struct ingest_request *r, const char *line)
{
	struct line_feed feed;
	line_feed_init(&feed, r, (struct slice){NULL, 0}, LINE_MS);
	line_feed_piece(&feed, slice_of(line));
	line_feed_release(&feed);
}

/* A first value waits behind a new series for its mark, a second one needs none and is the later
 * one. */
static void values_keep_their_order_while_marks_are_waited_for(void **state)
{
	(void)state;
	struct harness h;
	doors_open(&h);
	struct ingest_request *r = harness_request(&h);
	send_line(r, "m value=0 1700000000000\n");
	harness_finish(&h, r);
	ingest_request_free(r);
	kill(driver.redis.pid, SIGSTOP);
	r = harness_request(&h);
	send_line(r, "n value=5 1700000000000\nm value=1 1700000000000\n");
	ingest_piece_end(r);
	harness_pump(&h);
	/* What has been gathered for a minute is written. */
	clock_virtual_advance(&h.clock, 61000000);
	ingest_tick(h.ingest);
	ingest_piece_begin(r);
	send_line(r, "m value=2 1700000000000\n");
	ingest_request_end(r);
	harness_pump(&h);
	assert_false(h.done);
	kill(driver.redis.pid, SIGCONT);
	harness_pump_until(&h, &h.done);
	assert_int_equal(ingest_status(r), 204);
	ingest_request_free(r);
	harness_expect(&h, "default:m 1700000000000=2.0f\n"
			   "default:n 1700000000000=5.0f\n");
	expect_say("SCARD pending:0:1699999200", "2");
	harness_close(&h);
}

/* Nothing of it is in the store before Redis has said yes. */
static void samples_are_stored_behind_their_marks(void **state)
{
	(void)state;
	struct harness h;
	doors_open(&h);
	kill(driver.redis.pid, SIGSTOP);
	struct ingest_request *r = harness_request(&h);
	send_line(r, "m value=1 1700000000000\n");
	ingest_request_end(r);
	harness_pump(&h);
	harness_expect(&h, "default:m\n");
	kill(driver.redis.pid, SIGCONT);
	harness_pump_until(&h, &h.done);
	ingest_request_free(r);
	harness_expect(&h, "default:m 1700000000000=1.0f\n");
	harness_close(&h);
}

static void a_client_that_goes_while_marks_are_waited_for(void **state)
{
	(void)state;
	struct harness h;
	doors_open(&h);
	kill(driver.redis.pid, SIGSTOP);
	struct ingest_request *r = harness_request(&h);
	send_line(r, "m value=1 1700000000000\n");
	ingest_request_end(r);
	harness_pump(&h);
	ingest_request_abandon(r);
	assert_false(ingest_idle(h.ingest));
	kill(driver.redis.pid, SIGCONT);
	while (!ingest_idle(h.ingest))
		task_queue_wait(&h.queue);
	assert_false(h.done);
	harness_close(&h);
}

/* ---- Where it is ----------------------------------------------------------------------------- */

static void it_logs_in_with_a_password(void **state)
{
	(void)state;
	struct rig rig;
	struct errbuf e;
	rig_open(&rig);
	close_track(&rig);
	redis_say(&driver.redis, "CONFIG SET requirepass s:@/%");
	char url[100];
	struct marks_redis_options options = {.store = rig.store,
					      .clock = &rig.clock.clock,
					      .separator = ':',
					      .writer = SLICE("w"),
					      .slot_ms = SLOT_MS,
					      .quiet_ms = QUIET_MS};
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", driver.redis.port);
	assert_int_equal(redis_url_parse(slice_of(url), &options.url, &e), 0);
	snprintf(options.url.password, sizeof(options.url.password), "s:@/%%");
	assert_int_equal(marks_redis_open(&options, &rig.marks, &e), 0);
	assert_false(marks_state(rig.marks).degraded);
	marks_close(rig.marks);
	options.url.password[0] = 'x';
	assert_int_equal(marks_redis_open(&options, &rig.marks, &e), 0);
	struct marks_state seen = marks_state(rig.marks);
	assert_true(seen.degraded);
	assert_non_null(strstr(seen.why, "WRONGPASS"));
	redis_say(&driver.redis, "CONFIG SET requirepass \"\"");
	rig_close(&rig);
}

static void places_are_read_as_redis_cli_reads_them(void **state)
{
	(void)state;
	static const struct {
		const char *text, *host, *user;
		int port, database;
	} good[] = {
		{"redis://h", "h", "", 6379, 0},
		{"redis://127.0.0.1:6380/15", "127.0.0.1", "", 6380, 15},
		{"redis://[::1]:7/", "::1", "", 7, 0},
		{"redis://u@h", "h", "u", 6379, 0},
		{"redis://u%3Av%41%2f@h:1", "h", "u:vA/", 1, 0},
	};
	static const char *const bad[] = {"redis://",        "redis:///1",    "redis://h:0",
					  "redis://h:65536", "redis://h:x",   "redis://h/x",
					  "redis://h/-1",    "redis://@h",    "redis://[::1",
					  "redis://[::1]7",  "rediss://h",    "store:h",
					  "redis://%4@h",    "redis://%zz@h", "redis://%00@h",
					  "redis://h/1/2",   "redis://u:@h"};
	/* A password is refused, and not said again. */
	static const char *const secret[] = {"redis://:hush@h", "redis://u:hush@h",
					     "redis://:a@hush:c@h:1"};
	struct redis_url url;
	struct errbuf e;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(redis_url_parse(slice_of(good[i].text), &url, &e), 0);
		assert_string_equal(url.host, good[i].host);
		assert_string_equal(url.user, good[i].user);
		assert_string_equal(url.password, "");
		assert_int_equal(url.port, good[i].port);
		assert_int_equal(url.database, good[i].database);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (redis_url_parse(slice_of(bad[i]), &url, &e) != ERR_INVALID)
			fail_msg("taken: %s", bad[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(secret); i++) {
		assert_int_equal(redis_url_parse(slice_of(secret[i]), &url, &e), ERR_INVALID);
		assert_non_null(strstr(e.text, "rollup.redis_password_file"));
		assert_null(strstr(e.text, "hush"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_those_of_the_document),
		cmocka_unit_test(the_separator_of_the_documents_program),
		cmocka_unit_test(a_member_of_another_program_waits_for_its_ingesting),
		cmocka_unit_test(what_is_no_mark_of_ours_is_left_and_counted),
		cmocka_unit_test(marks_are_kept_in_the_store_while_redis_is_away),
		cmocka_unit_test(a_redis_that_hangs_holds_up_nobody_for_long),
		cmocka_unit_test(what_answers_wrongly_is_not_used_and_named),
		cmocka_unit_test(that_it_was_emptied_is_known_until_all_is_marked_again),
		cmocka_unit_test(without_anybody_marking_it_is_found_out_as_well),
		cmocka_unit_test(what_a_restarted_redis_has_kept_may_be_old),
		cmocka_unit_test(the_marks_of_another_store_are_left_alone),
		cmocka_unit_test(marks_of_late_points_and_deletions_are_in_the_store),
		cmocka_unit_test(values_keep_their_order_while_marks_are_waited_for),
		cmocka_unit_test(samples_are_stored_behind_their_marks),
		cmocka_unit_test(a_client_that_goes_while_marks_are_waited_for),
		cmocka_unit_test(it_logs_in_with_a_password),
		cmocka_unit_test(places_are_read_as_redis_cli_reads_them),
	};
	harness_track = driver_open_redis;
	redis_start(&driver.redis);
	return driver_stop(cmocka_run_group_tests(tests, NULL, NULL));
}
