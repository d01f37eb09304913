/* TLS under connections, and what hostile peers do to it. */
#include "loop_tls_rig.h"

/* ---- Handshakes that fail -------------------------------------------------------------------- */

/* The first bytes of a client of OpenSSL. */
static struct slice hello_of(SSL_CTX *context, char *to, size_t max_bytes)
{
	SSL *ssl = SSL_new(context);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	SSL_set_bio(ssl, in, out);
	assert_int_equal(SSL_connect(ssl), -1);
	int len = BIO_read(out, to, (int)max_bytes);
	assert_true(len > 0 && len < (int)max_bytes);
	SSL_free(ssl);
	SSL_CTX_free(context);
	return (struct slice){to, (size_t)len};
}

static struct slice hello_good(char *to, size_t max_bytes)
{
	return hello_of(SSL_CTX_new(TLS_client_method()), to, max_bytes);
}

static struct slice hello_old(char *to, size_t max_bytes)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_security_level(context, 0);
	SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
	SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
	return hello_of(context, to, max_bytes);
}

static struct slice hello_cbc(char *to, size_t max_bytes)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
	assert_int_equal(SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-SHA256"), 1);
	return hello_of(context, to, max_bytes);
}

static struct slice hello_h2(char *to, size_t max_bytes)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_alpn_protos(context, (const uint8_t *)"\2h2", 3);
	return hello_of(context, to, max_bytes);
}

static struct slice hello_cut(char *to, size_t max_bytes)
{
	struct slice hello = hello_good(to, max_bytes);
	return (struct slice){hello.data, hello.len / 2};
}

static struct slice hello_and_more(char *to, size_t max_bytes)
{
	struct slice hello = hello_good(to, max_bytes);
	memcpy(to + hello.len, "\x16\x03\x03\0\4abcd", 9);
	return (struct slice){to, hello.len + 9};
}

static struct slice hello_none(UNUSED char *to, UNUSED size_t max_bytes)
{
	return (struct slice){"", 0};
}

static struct slice hello_text(UNUSED char *to, UNUSED size_t max_bytes)
{
	return SLICE("put cpu.load 1700000000 1 host=a\n");
}

static struct slice hello_zeros(char *to, UNUSED size_t max_bytes)
{
	memset(to, 0, 4000);
	return (struct slice){to, 4000};
}

static struct slice hello_http(UNUSED char *to, UNUSED size_t max_bytes)
{
	return SLICE("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

static struct slice hello_huge(UNUSED char *to, UNUSED size_t max_bytes)
{
	return SLICE("\x16\x03\x01\xff\xff\1\0\xff\xfb");
}

static struct slice hello_sslv2(UNUSED char *to, UNUSED size_t max_bytes)
{
	/* CLIENT-HELLO of SSL 2.0: one cipher, no session, a challenge of 16 bytes. */
	return SLICE("\x80\x1c\1\0\2\0\3\0\0\0\x10\1\0\x80"
		     "0123456789abcdef");
}

static const struct failing {
	const char *name;
	struct slice (*hello)(char *to, size_t max_bytes);
	bool leaves;
	enum stat_id counted;
	int err;
	const char *says; /* NULL: nothing is logged */
} failing[] = {
	{"text", hello_text, false, STAT_tls_not_tls, -EPROTO, "does not speak TLS"},
	{"zeros", hello_zeros, false, STAT_tls_not_tls, -EPROTO, "does not speak TLS"},
	{"http", hello_http, false, STAT_tls_plain_http, -EPROTO, "https://"},
	{"old", hello_old, false, STAT_tls_version, -EPROTO, "no version of TLS from 1.2 on"},
	{"sslv2", hello_sslv2, false, STAT_tls_not_tls, -EPROTO, "does not speak TLS"},
	{"cbc", hello_cbc, false, STAT_tls_cipher, -EPROTO, "no cipher"},
	{"h2", hello_h2, false, STAT_tls_protocol, -EPROTO, "none of the protocols"},
	{"huge", hello_huge, false, STAT_tls_wrong, -EPROTO, "breaks the rules"},
	{"more", hello_and_more, false, STAT_tls_wrong, -EPROTO, "breaks the rules"},
	{"leaves in it", hello_cut, true, STAT_tls_left, -ECONNABORTED, "it left"},
	{"leaves before Finished", hello_good, true, STAT_tls_left, -ECONNABORTED, "it left"},
	{"leaves at once", hello_none, true, STAT_tls_left, -ECONNABORTED, NULL},
};

static void fail_once(const struct failing *f)
{
	char bytes[8000], peer[60];
	struct sockaddr_in at;
	socklen_t at_len = sizeof(at);
	int64_t counted = stat_get(f->counted), full = stat_get(STAT_tls_full);
	rig_open(HANDSHAKE_MS);
	int fd = rig_connect();
	struct slice hello = f->hello(bytes, sizeof(bytes));
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &at_len), 0);
	assert_int_equal(write(fd, hello.data, hello.len), hello.len);
	if (f->leaves)
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
	log_catch();
	WAIT_FOR(rig.count && rig.sides[0].events[0]);
	log_caught();
	assert_string_equal(rig.sides[0].events, "broken ");
	assert_int_equal(rig.sides[0].err, f->err);
	if (stat_get(f->counted) - counted != 1)
		fail_msg("%s is counted as something else: %s", f->name, logged.text);
	assert_int_equal(stat_get(STAT_tls_full), full);
	assert_int_equal(rig.sides[0].got.len, 0);
	snprintf(peer, sizeof(peer), "127.0.0.1:%u ", ntohs(at.sin_port));
	if (f->says && (!strstr(logged.text, f->says) || !strstr(logged.text, peer)))
		fail_msg("%s: '%s' does not say '%s' of %s", f->name, logged.text, f->says, peer);
	if (!f->says)
		assert_string_equal(logged.text, "");
	else
		assert_ptr_equal(strchr(logged.text, '\n'), logged.text + strlen(logged.text) - 1);
	close(fd);
	rig_close();
}

static void each_failure_is_counted_and_told(UNUSED void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(failing); i++)
		fail_once(&failing[i]);
}

/* Six lines a minute; the counter has all. */
static void a_flood_of_failures_does_not_fill_the_log(UNUSED void **state)
{
	enum { FAILURES = 20 };
	size_t lines = 0;
	int64_t counted = stat_get(STAT_tls_plain_http);
	rig_open(HANDSHAKE_MS);
	log_catch();
	for (size_t i = 0; i < FAILURES; i++) {
		int fd = rig_connect();
		assert_int_equal(write(fd, "GET / HTTP/1.1\r\n\r\n", 18), 18);
		WAIT_FOR(rig.count == i + 1 && rig.sides[i].events[0]);
		close(fd);
	}
	for (const char *c = log_caught(); *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 6);
	assert_int_equal(stat_get(STAT_tls_plain_http) - counted, FAILURES);
	rig_close();
}

/* The owner may have enough before the peers have shaken hands. */
static void one_that_is_closed_meanwhile_is_counted(UNUSED void **state)
{
	int64_t given_up = stat_get(STAT_tls_given_up);
	rig_open(HANDSHAKE_MS);
	int fd = rig_connect();
	WAIT_FOR(rig.count == 1);
	rig.sides[0].close_in_read = true; /* for rig_close: it is closed here */
	loop_conn_close(rig.sides[0].conn);
	WAIT_FOR(rig.sides[0].events[0]);
	assert_string_equal(rig.sides[0].events, "closed ");
	assert_int_equal(stat_get(STAT_tls_given_up) - given_up, 1);
	close(fd);
	rig_close();
}

/* ---- Time ------------------------------------------------------------------------------------ */

struct dribble {
	struct loop_timer *timer;
	int fd;
	struct slice left;
};

static void dribble_one(void *owner)
{
	struct dribble *dribble = owner;
	assert_true(dribble->left.len > 1); /* the deadline is earlier */
	assert_int_equal(send(dribble->fd, dribble->left.data, 1, MSG_NOSIGNAL), 1);
	dribble->left.data++;
	dribble->left.len--;
}

static void a_slow_handshake_ends_by_its_deadline(UNUSED void **state)
{
	char bytes[8000];
	int64_t late = stat_get(STAT_tls_late);
	rig_open(300);
	struct dribble dribble = {.fd = rig_connect(), .left = hello_good(bytes, sizeof(bytes))};
	dribble.timer = loop_timer_new(rig.loop, dribble_one, &dribble);
	loop_timer_start(dribble.timer, 1, 10);
	log_catch();
	WAIT_FOR(rig.count && rig.sides[0].events[0]);
	assert_non_null(strstr(log_caught(), "took too long"));
	assert_string_equal(rig.sides[0].events, "broken ");
	assert_int_equal(rig.sides[0].err, ERR_TIMEOUT);
	assert_int_equal(stat_get(STAT_tls_late) - late, 1);
	loop_timer_close(dribble.timer);
	close(dribble.fd);
	rig_close();
}

/* One that is through lives on. */
static void a_thousand_that_only_connect_end_by_theirs(UNUSED void **state)
{
	enum { SILENT = SIDES_MAX - 1 };
	static int fds[SILENT];
	struct rlimit files_max;
	int64_t late = stat_get(STAT_tls_late);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files_max), 0);
	files_max.rlim_cur = files_max.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files_max), 0);
	rig_open(HANDSHAKE_MS);
	int other = rig_proxy();
	assert_int_equal(write(other, "!", 1), 1);
	WAIT_FOR(rig.count == 1 && rig.sides[0].got.len == 1);
	rig_speak(context_new(NULL), 300);
	log_catch();
	for (size_t i = 0; i < SILENT; i++) {
		fds[i] = rig_connect();
		WAIT_FOR(rig.count == i + 2);
	}
	WAIT_FOR(stat_get(STAT_tls_late) - late == SILENT);
	log_caught();
	assert_int_equal(write(other, "?", 1), 1);
	WAIT_FOR(rig.sides[0].got.len == 2);
	assert_string_equal(rig.sides[0].events, "");
	for (size_t i = 0; i < SILENT; i++) {
		assert_string_equal(rig.sides[i + 1].events, "broken ");
		close(fds[i]);
	}
	close(other);
	rig_close();
}

/* ---- A flood --------------------------------------------------------------------------------- */

enum { FLOOD = 100 };

struct flood {
	struct task turn; /* runs once a turn */
	int fds[FLOOD];
	size_t answered, most, turns;
};

static size_t flood_answers(const struct flood *flood)
{
	size_t count = 0;
	for (size_t i = 0; i < FLOOD; i++) {
		int bytes = 0;
		assert_int_equal(ioctl(flood->fds[i], FIONREAD, &bytes), 0);
		count += bytes > 0;
	}
	return count;
}

static void flood_on_turn(struct task *task)
{
	struct flood *flood = CONTAINER_OF(task, struct flood, turn);
	size_t answered = flood_answers(flood), more = answered - flood->answered;
	flood->answered = answered;
	flood->turns++;
	if (more > flood->most)
		flood->most = more;
	if (answered < FLOOD)
		loop_executor(rig.loop)->post(loop_executor(rig.loop), task);
	else
		loop_stop(rig.loop);
}

static void a_turn_answers_only_so_many_hellos(UNUSED void **state)
{
	static struct flood flood;
	char bytes[8000];
	struct slice hello = hello_good(bytes, sizeof(bytes));
	int64_t waits = stat_get(STAT_tls_waits);
	rig_open(HANDSHAKE_MS);
	flood = (struct flood){.turn = {flood_on_turn}};
	for (size_t i = 0; i < FLOOD; i++) {
		flood.fds[i] = rig_connect();
		assert_int_equal(write(flood.fds[i], hello.data, hello.len), hello.len);
	}
	loop_executor(rig.loop)->post(loop_executor(rig.loop), &flood.turn);
	WAIT_FOR(flood.answered == FLOOD);
	/* The task comes before or after the sockets of its turn: two turns may fall between two
	 * looks, never more. */
	assert_true(flood.most > 0 && flood.most <= 2 * TLS_STEPS_A_TURN_MAX);
	assert_true(flood.turns >= FLOOD / TLS_STEPS_A_TURN_MAX);
	assert_true(stat_get(STAT_tls_waits) - waits >= FLOOD - 64);
	/* Who waits may be closed. */
	for (size_t i = 0; i < FLOOD; i++)
		close(flood.fds[i]);
	log_catch();
	rig_close();
	log_caught();
}

/* ---- Peers that work hard -------------------------------------------------------------------- */

/* OpenSSL's client on a thread, which does `work` after the handshake and one byte. */
struct worker {
	int tcp, version;
	bool (*work)(struct worker *worker, SSL *ssl);
	bool well;
	pthread_t thread;
};

static void *worker_run(void *argument)
{
	struct worker *worker = argument;
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_min_proto_version(context, worker->version);
	SSL_CTX_set_max_proto_version(context, worker->version);
	SSL *ssl = SSL_new(context);
	SSL_set_fd(ssl, worker->tcp);
	worker->well =
		SSL_connect(ssl) == 1 && SSL_write(ssl, "!", 1) == 1 && worker->work(worker, ssl);
	SSL_free(ssl);
	SSL_CTX_free(context);
	return NULL;
}

static bool renegotiate(UNUSED struct worker *worker, SSL *ssl)
{
	/* It asks; the answer is a warning, on which OpenSSL's client gives up. */
	bool refused = SSL_renegotiate(ssl) == 1 && SSL_do_handshake(ssl) != 1;
	return refused;
}

static void renegotiation_is_refused(UNUSED void **state)
{
	rig_open(HANDSHAKE_MS);
	struct worker worker = {
		.tcp = rig_connect(), .version = TLS1_2_VERSION, .work = renegotiate};
	int64_t full = stat_get(STAT_tls_full);
	assert_int_equal(pthread_create(&worker.thread, NULL, worker_run, &worker), 0);
	WAIT_FOR(rig.count && rig.sides[0].events[0]);
	pthread_join(worker.thread, NULL);
	assert_true(worker.well);
	assert_int_equal(stat_get(STAT_tls_full) - full, 1);
	assert_got(&rig.sides[0], "!");
	close(worker.tcp);
	rig_close();
}

/* Each asks for an answer; nobody takes them. */
static bool ask_for_keys(struct worker *worker, SSL *ssl)
{
	int bytes = 4096;
	setsockopt(worker->tcp, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	for (;;) {
		if (SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) != 1 ||
		    SSL_do_handshake(ssl) != 1)
			return true;
	}
}

static void answers_that_nobody_takes_have_an_end(UNUSED void **state)
{
	int64_t broken = stat_get(STAT_tls_broken);
	rig_open(HANDSHAKE_MS);
	struct worker worker = {
		.tcp = rig_connect(), .version = TLS1_3_VERSION, .work = ask_for_keys};
	assert_int_equal(pthread_create(&worker.thread, NULL, worker_run, &worker), 0);
	log_catch();
	WAIT_FOR(rig.count && rig.sides[0].events[0]);
	log_caught();
	/* One read causes no more than it has bytes; before it the limit was not reached. */
	assert_true(loop_conn_unsent(rig.sides[0].conn) <= LOOP_READ_BYTES + (16 << 10));
	loop_conn_close(rig.sides[0].conn);
	rig.sides[0].conn = NULL;
	WAIT_FOR(strstr(rig.sides[0].events, "closed"));
	pthread_join(worker.thread, NULL);
	assert_string_equal(rig.sides[0].events, "broken closed ");
	assert_int_equal(rig.sides[0].err, -EPROTO);
	assert_non_null(strstr(logged.text, "answers that it does not take"));
	assert_int_equal(stat_get(STAT_tls_broken) - broken, 1);
	close(worker.tcp);
	rig_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failure_is_counted_and_told),
		cmocka_unit_test(a_flood_of_failures_does_not_fill_the_log),
		cmocka_unit_test(one_that_is_closed_meanwhile_is_counted),
		cmocka_unit_test(a_slow_handshake_ends_by_its_deadline),
		cmocka_unit_test(a_thousand_that_only_connect_end_by_theirs),
		cmocka_unit_test(a_turn_answers_only_so_many_hellos),
		cmocka_unit_test(renegotiation_is_refused),
		cmocka_unit_test(answers_that_nobody_takes_have_an_end),
	};
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
