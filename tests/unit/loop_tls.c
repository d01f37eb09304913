/* TLS under connections: what each side may count on. That the events of loop.h stay as they are is
 * in loop_net.c, whose tests run with TLS too; what hostile peers do is in loop_tls_hostile.c. */
#include "loop_tls_rig.h"

/* ---- Contexts -------------------------------------------------------------------------------- */

static void contexts_say_what_is_wrong(UNUSED void **state)
{
	static const struct {
		const char *made_by; /* in the directory; cert.pem and key.pem are a good pair */
		const char *certificate, *key;
		const char *file, *says; /* both are in the sentence */
	} cases[] = {
		{"true", "none.pem", "key.pem", "none.pem", "not found"},
		{"true", "cert.pem", "none.key", "none.key", "not found"},
		{"cp key.pem open.pem && chmod 644 open.pem", "cert.pem", "open.pem", "open.pem",
		 "chmod 600"},
		{"openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out other.pem",
		 "cert.pem", "other.pem", "other.pem", "does not fit"},
		{"openssl pkey -in key.pem -aes256 -passout pass:abcd -out locked.pem", "cert.pem",
		 "locked.pem", "locked.pem", "encrypted"},
		{"openssl pkey -in key.pem -traditional -aes256 -passout pass:abcd -out l2.pem",
		 "cert.pem", "l2.pem", "l2.pem", "encrypted"},
		{"true", "key.pem", "key.pem", "key.pem", "no certificate"},
		{"chmod 600 cert.pem", "cert.pem", "cert.pem", "cert.pem", "no private key"},
		{"sed 5d cert.pem >cut.pem", "cut.pem", "key.pem", "cut.pem",
		 "certificate 1 cannot be read"},
		{"cat cert.pem cut.pem >two.pem", "two.pem", "key.pem", "two.pem",
		 "certificate 2 cannot be read"},
		{"for i in $(seq 17); do cat cert.pem; done >many.pem", "many.pem", "key.pem",
		 "many.pem", "more than 16"},
		{"head -c 1048577 /dev/zero >long.pem", "long.pem", "key.pem", "long.pem",
		 "1048576 bytes"},
		{"openssl req -x509 -newkey rsa:1024 -nodes -keyout weak.key -out weak.pem "
		 "-days 9 -subj /CN=a",
		 "weak.pem", "weak.key", "weak.pem", "key too small"},
		{"mkdir folder.pem", "folder.pem", "key.pem", "folder.pem", "directory"},
	};
	char certificate[100], key[100];
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tls_context *context = NULL;
		struct errbuf e = {""}, warning;
		bool key_is_wrong;
		tls_files_run(&files, cases[i].made_by);
		snprintf(certificate, sizeof(certificate), "%s/%s", files.directory,
			 cases[i].certificate);
		snprintf(key, sizeof(key), "%s/%s", files.directory, cases[i].key);
		int err = tls_context_for_server(files_real(), clock_real(), certificate, key,
						 &(struct tls_protocols){{0}}, &context,
						 &key_is_wrong, &warning, &e);
		assert_true(err < 0);
		assert_null(context);
		if (!strstr(e.text, cases[i].file) || !strstr(e.text, cases[i].says))
			fail_msg("'%s' does not say '%s' of %s", e.text, cases[i].says,
				 cases[i].file);
	}
}

static void authorities_have_to_be_certificates(UNUSED void **state)
{
	struct tls_context *context = NULL;
	struct errbuf e = {""};
	assert_true(tls_context_for_client(files_real(), files.key, &(struct tls_protocols){{0}},
					   &context, &e) < 0);
	assert_non_null(strstr(e.text, "key.pem: holds no certificate"));
	assert_true(tls_context_for_client(files_real(), "/nowhere", &(struct tls_protocols){{0}},
					   &context, &e) < 0);
	assert_non_null(strstr(e.text, "/nowhere: not found"));
	assert_null(context);
	/* The system's, of which there may be none. */
	assert_int_equal(tls_context_for_client(files_real(), NULL, &(struct tls_protocols){{0}},
						&context, &e),
			 0);
	tls_context_release(context);
}

static void a_certificate_out_of_its_time_is_a_warning(UNUSED void **state)
{
	enum { DAY_S = 86400 };
	static const struct {
		int64_t days;
		const char *says; /* NULL: nothing */
	} cases[] = {{-1, "is valid only from"}, {1, NULL}, {29, NULL}, {31, "has expired:"}};
	int64_t now_us = clock_real()->wall_us(clock_real());
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct clock_virtual clock;
		struct tls_context *context;
		struct errbuf e = {""}, warning = {"as it was"};
		bool key_is_wrong;
		clock_virtual_init(&clock, now_us + cases[i].days * DAY_S * 1000000);
		assert_int_equal(tls_context_for_server(files_real(), &clock.clock,
							files.certificate, files.key,
							&(struct tls_protocols){{0}}, &context,
							&key_is_wrong, &warning, &e),
				 0);
		if (cases[i].says)
			assert_non_null(strstr(warning.text, cases[i].says));
		else
			assert_string_equal(warning.text, "");
		if (cases[i].says)
			assert_non_null(strstr(warning.text, files.certificate));
		tls_context_release(context);
	}
}

/* ---- Both sides of ours ---------------------------------------------------------------------- */

static void both_sides_talk_and_end(UNUSED void **state)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int64_t full = stat_get(STAT_tls_full);
		rig_open(HANDSHAKE_MS);
		rig_call(names[i], files.certificate, "http/1.1");
		side_write(&rig.client, "question"); /* before hands are shaken */
		assert_int_equal(loop_conn_unsent(rig.client.conn), 8);
		loop_conn_shutdown(rig.client.conn);
		WAIT_FOR(rig.sides[0].events[0]);
		assert_got(&rig.sides[0], "question");
		assert_string_equal(rig.sides[0].events, "eof ");
		assert_string_equal(rig.client.events, "sent ");
		side_write(&rig.sides[0], "an");
		side_write(&rig.sides[0], "swer");
		loop_conn_shutdown(rig.sides[0].conn);
		WAIT_FOR(strstr(rig.client.events, "eof "));
		assert_got(&rig.client, "answer");
		assert_string_equal(rig.client.events, "sent eof ");
		assert_string_equal(rig.sides[0].events, "eof ");
		assert_int_equal(stat_get(STAT_tls_full) - full, 2);
		rig_close();
	}
}

static void a_client_refuses_whom_it_did_not_call(UNUSED void **state)
{
	tls_files_run(&files, "openssl req -x509 -newkey rsa:2048 -nodes -keyout else.key "
			      "-out else.pem -days 9 -subj /CN=localhost");
	char elsewhere[100];
	snprintf(elsewhere, sizeof(elsewhere), "%s/else.pem", files.directory);
	const struct {
		const char *name, *authorities, *says;
	} cases[] = {
		{"example.org", files.certificate, "hostname mismatch"},
		{"local", files.certificate, "hostname mismatch"},
		{"127.0.0.2", files.certificate, "IP address mismatch"},
		{"localhost", elsewhere, "self-signed certificate"},
		{"localhost", NULL, "self-signed certificate"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t certificate = stat_get(STAT_tls_certificate);
		int64_t refused = stat_get(STAT_tls_refused);
		rig_open(HANDSHAKE_MS);
		log_catch();
		rig_call(cases[i].name, cases[i].authorities, NULL);
		side_write(&rig.client, "secret");
		WAIT_FOR(rig.client.events[0] && rig.count && rig.sides[0].events[0]);
		log_caught();
		assert_string_equal(rig.client.events, "broken ");
		assert_int_equal(rig.client.err, -EPROTO);
		assert_string_equal(rig.sides[0].events, "broken ");
		assert_int_equal(rig.sides[0].got.len, 0);
		assert_int_equal(stat_get(STAT_tls_certificate) - certificate, 1);
		assert_int_equal(stat_get(STAT_tls_refused) - refused, 1);
		if (!strstr(logged.text, cases[i].says))
			fail_msg("'%s' does not say '%s'", logged.text, cases[i].says);
		rig_close();
	}
}

/* OpenSSL's server on a thread, over a socket of this machine: our client alone is tried. */
struct called {
	int fd;
	pthread_t thread;
	char name[64];     /* what the client called it (SNI) */
	char protocol[16]; /* what they agreed on (ALPN) */
	char got[16];
};

static int called_choose(UNUSED SSL *ssl, const uint8_t **chosen, uint8_t *len,
			 const uint8_t *offered, unsigned offered_len, UNUSED void *owner)
{
	return SSL_select_next_proto((uint8_t **)(uintptr_t)chosen, len, (const uint8_t *)"\4amqp",
				     5, offered, offered_len) == OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_NOACK;
}

static void *called_run(void *argument)
{
	struct called *called = argument;
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	SSL_CTX_use_certificate_chain_file(context, files.certificate);
	SSL_CTX_use_PrivateKey_file(context, files.key, SSL_FILETYPE_PEM);
	SSL_CTX_set_alpn_select_cb(context, called_choose, NULL);
	SSL *ssl = SSL_new(context);
	SSL_set_fd(ssl, called->fd);
	if (SSL_accept(ssl) == 1 && SSL_read(ssl, called->got, sizeof(called->got) - 1) > 0) {
		const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
		const uint8_t *protocol;
		unsigned len;
		SSL_get0_alpn_selected(ssl, &protocol, &len);
		snprintf(called->name, sizeof(called->name), "%s", name ? name : "(none)");
		snprintf(called->protocol, sizeof(called->protocol), "%.*s", (int)len,
			 (const char *)protocol);
		SSL_write(ssl, "answer", 6);
		SSL_shutdown(ssl);
	}
	SSL_free(ssl);
	SSL_CTX_free(context);
	close(called->fd);
	return NULL;
}

static void our_client_says_whom_it_calls(UNUSED void **state)
{
	static const struct {
		const char *name, *protocol, *called, *agreed;
	} cases[] = {{"localhost", "amqp", "localhost", "amqp"},
		     {"localhost", "h2", "localhost", ""},
		     {"::1", NULL, "(none)", ""}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int pair[2];
		struct loop_conn *conn;
		struct tls_context *context = client_context(files.certificate, cases[i].protocol);
		rig_open(HANDSHAKE_MS);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		struct called called = {.fd = pair[0]};
		assert_int_equal(pthread_create(&called.thread, NULL, called_run, &called), 0);
		assert_int_equal(
			loop_conn_adopt(rig.loop, pair[1], &(struct loop_address){0}, &conn), 0);
		loop_conn_speak_tls(conn, &(struct loop_tls){context, cases[i].name, HANDSHAKE_MS});
		tls_context_release(context);
		side_start(&rig.client, conn);
		side_write(&rig.client, "question");
		WAIT_FOR(strstr(rig.client.events, "eof "));
		pthread_join(called.thread, NULL);
		assert_got(&rig.client, "answer");
		assert_string_equal(called.got, "question");
		assert_string_equal(called.name, cases[i].called);
		assert_string_equal(called.protocol, cases[i].agreed);
		rig_close();
	}
}

/* More than the kernel takes, after the handshake: nothing is lost, and `sent` comes once. */
static void what_is_written_in_any_pieces_arrives(UNUSED void **state)
{
	enum { LEN = 20 << 20 };
	static const size_t lens[] = {1, 3, 16383, 16384, 16385, 65536, 100000, 300000};
	rig_open(HANDSHAKE_MS);
	rig_call("localhost", files.certificate, NULL);
	side_write(&rig.client, "!");
	WAIT_FOR(rig.count && rig.sides[0].got.len);
	struct side *from = &rig.sides[0], *to = &rig.client;
	char *bytes = mem_alloc(LEN);
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (char)(i * 7 % 251);
	loop_conn_read(to->conn, 0);
	size_t done = 0;
	for (size_t i = 0; done < LEN; i++) {
		struct slice pieces[3] = {{0}};
		for (size_t k = 0; k < 3; k++) {
			size_t len = lens[(i + k * k) % ARRAY_LEN(lens)];
			len = len < LEN - done ? len : LEN - done;
			pieces[k] = (struct slice){bytes + done, len};
			done += len;
		}
		rig.calling = true;
		loop_conn_write(from->conn, pieces, 3);
		rig.calling = false;
	}
	assert_true(loop_conn_unsent(from->conn) > 0);
	assert_true(loop_conn_unsent(from->conn) < LEN + LEN / 100);
	loop_conn_read(to->conn, 100000);
	WAIT_FOR(to->got.len == LEN);
	WAIT_FOR(from->events[0]);
	assert_memory_equal(to->got.data, bytes, LEN);
	assert_string_equal(from->events, "sent ");
	assert_true(to->largest_piece > 16384 && to->largest_piece <= 100000);
	mem_free(bytes);
	rig_close();
}

/* The chain is more than the kernel takes, so that the rest of it waits: the owner wrote nothing.
 */
static void what_tls_itself_sends_is_no_event(UNUSED void **state)
{
	int pair[2], bytes = 1; /* as little as the kernel permits, about 4 KB */
	struct loop_conn *conn;
	struct tls_files one = files;
	tls_files_run(&files, "for i in $(seq 16); do cat cert.pem; done >chain.pem");
	snprintf(files.certificate, sizeof(files.certificate), "%s/chain.pem", files.directory);
	struct tls_context *context = context_new(NULL);
	files = one;
	rig_open(HANDSHAKE_MS);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	assert_int_equal(loop_conn_adopt(rig.loop, pair[0], &(struct loop_address){0}, &conn), 0);
	loop_conn_speak_tls(conn, &(struct loop_tls){context, NULL, HANDSHAKE_MS});
	tls_context_release(context);
	struct side *side = &rig.sides[rig.count++];
	side_start(side, conn);
	int fd = tls_proxy_start(pair[1]);
	assert_int_equal(write(fd, "!", 1), 1);
	WAIT_FOR(side->got.len == 1);
	assert_string_equal(side->events, "");
	close(fd);
	rig_close();
}

/* ---- Resting --------------------------------------------------------------------------------- */

struct noted_task {
	struct task task;
	bool ran;
};

static void noted_task_run(struct task *task)
{
	CONTAINER_OF(task, struct noted_task, task)->ran = true;
	loop_stop(rig.loop);
}

/* Bytes that rest inside are counted, and come without the socket and not in the call. */
static void what_rests_inside_comes_when_reading_goes_on(UNUSED void **state)
{
	int fd, pending;
	rig_open(HANDSHAKE_MS);
	int tcp = rig_connect();
	fd = tls_proxy_start(tcp);
	WAIT_FOR(rig.count == 1);
	struct side *side = &rig.sides[0];
	loop_conn_read(side->conn, 0);
	/* The handshake goes on while the owner rests. */
	side_write(side, "early");
	WAIT_FOR(side->events[0]);
	assert_string_equal(side->events, "sent ");
	assert_int_equal(write(fd, "!", 1), 1);
	loop_conn_read(side->conn, 1);
	side->rest_after_read = true;
	WAIT_FOR(side->got.len == 1);
	/* One record of ten bytes. */
	assert_int_equal(write(fd, "abcdefghij", 10), 10);
	loop_conn_read(side->conn, 3);
	WAIT_FOR(side->got.len == 4);
	assert_got(side, "!abc");
	assert_int_equal(loop_conn_unread(side->conn), 7);
	for (size_t len = 7; len <= 11; len += len == 10 ? 1 : 3) {
		rig.calling = true;
		loop_conn_read(side->conn, 3);
		rig.calling = false;
		/* Nothing of the network can wake it. */
		assert_int_equal(ioctl(tcp, FIONREAD, &pending), 0);
		WAIT_FOR(side->got.len >= len);
		assert_int_equal(side->got.len, len);
		assert_int_equal(loop_conn_unread(side->conn), 11 - len);
	}
	assert_got(side, "!abcdefghij");
	assert_string_equal(side->events, "sent ");
	/* Resting and going on before the task runs: it comes once all the same; resting at last:
	 * it does not come. */
	assert_int_equal(write(fd, "klmnop", 6), 6);
	loop_conn_read(side->conn, 2);
	WAIT_FOR(side->got.len == 13);
	loop_conn_read(side->conn, 2);
	loop_conn_read(side->conn, 0);
	struct noted_task later = {{noted_task_run}, false};
	loop_executor(rig.loop)->post(loop_executor(rig.loop), &later.task);
	WAIT_FOR(later.ran);
	assert_int_equal(side->got.len, 13);
	loop_conn_read(side->conn, 2);
	loop_conn_read(side->conn, 0);
	loop_conn_read(side->conn, 4);
	WAIT_FOR(side->got.len == 17);
	assert_got(side, "!abcdefghijklmnop");
	close(fd);
	rig_close();
}

/* Also while the loop's buffer is used for others. */
static void what_was_read_and_rests_is_bounded_and_whole(UNUSED void **state)
{
	enum { LEN = 3 << 20, ANSWER = 300000 };
	rig_open(HANDSHAKE_MS);
	rig_call("localhost", files.certificate, NULL);
	side_write(&rig.client, "!");
	WAIT_FOR(rig.count && rig.sides[0].got.len);
	struct side *side = &rig.sides[0];
	char *bytes = mem_alloc(LEN), *answer = mem_zalloc(ANSWER);
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (char)(i * 11 % 253);
	loop_conn_write(rig.client.conn, (struct slice[]){{bytes, LEN}}, 1);
	side->rest_after_read = true;
	for (size_t i = 0; side->got.len < 1 + LEN; i++) {
		size_t before = side->got.len;
		WAIT_FOR(side->got.len > before);
		assert_true(tls_conn_unread(side->conn) <= LOOP_READ_BYTES + TLS_RECORD_BYTES);
		loop_conn_write(side->conn, (struct slice[]){{answer, ANSWER}}, 1);
		WAIT_FOR(rig.client.got.len == ANSWER);
		buf_clear(&rig.client.got);
		loop_conn_read(side->conn, i % 2 ? 1000 : LOOP_READ_BYTES);
	}
	assert_memory_equal(side->got.data + 1, bytes, LEN);
	mem_free(bytes);
	mem_free(answer);
	rig_close();
}

static void it_may_be_closed_while_it_reads(UNUSED void **state)
{
	rig_open(HANDSHAKE_MS);
	int fd = rig_proxy();
	WAIT_FOR(rig.count == 1);
	struct side *side = &rig.sides[0];
	side->close_in_read = true;
	loop_conn_read(side->conn, 1);
	assert_int_equal(write(fd, "abcd", 4), 4);
	WAIT_FOR(side->events[0]);
	assert_string_equal(side->events, "closed ");
	assert_got(side, "a");
	close(fd);
	rig_close();
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Whoever closes without a shutdown has cut the connection, to the peer. */
static void an_end_outside_of_tls_is_none(UNUSED void **state)
{
	int64_t cut = stat_get(STAT_tls_cut);
	rig_open(HANDSHAKE_MS);
	rig_call("localhost", files.certificate, NULL);
	side_write(&rig.client, "half a li");
	WAIT_FOR(rig.count && rig.sides[0].got.len);
	log_catch();
	loop_conn_close(rig.client.conn);
	rig.client.conn = NULL;
	WAIT_FOR(rig.sides[0].events[0]);
	assert_string_equal(log_caught(), "");
	assert_string_equal(rig.sides[0].events, "broken ");
	assert_int_equal(rig.sides[0].err, -ECONNABORTED);
	assert_got(&rig.sides[0], "half a li");
	assert_int_equal(stat_get(STAT_tls_cut) - cut, 1);
	/* Quiet, as on every connection that is broken. */
	side_write(&rig.sides[0], "x");
	loop_conn_shutdown(rig.sides[0].conn);
	loop_conn_read(rig.sides[0].conn, 10);
	rig_close();
}

static void what_follows_the_handshake_may_be_wrong(UNUSED void **state)
{
	static const struct {
		struct slice bytes;
		bool ends;
		int err;
		enum stat_id counted;
	} cases[] = {
		/* Application data that nobody has encrypted. */
		{{"\x17\x03\x03\0\x20"
		  "0123456789abcdef0123456789abcdef",
		  37},
		 false,
		 -EPROTO,
		 STAT_tls_broken},
		{{"\x17\x03\x03\xff\xff", 5}, false, -EPROTO, STAT_tls_broken},
		{{"GET / HTTP/1.1\r\n\r\n", 18}, false, -EPROTO, STAT_tls_broken},
		/* A record that never ends. */
		{{"\x17\x03\x03\0\x20"
		  "0123",
		  9},
		 true,
		 -ECONNABORTED,
		 STAT_tls_cut},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t counted = stat_get(cases[i].counted);
		rig_open(HANDSHAKE_MS);
		int tcp = rig_connect(), fd = tls_proxy_start(tcp);
		assert_int_equal(write(fd, "!", 1), 1);
		WAIT_FOR(rig.count && rig.sides[0].got.len == 1);
		assert_int_equal(write(tcp, cases[i].bytes.data, cases[i].bytes.len),
				 cases[i].bytes.len);
		if (cases[i].ends)
			shutdown(tcp, SHUT_WR);
		log_catch();
		WAIT_FOR(rig.sides[0].events[0]);
		log_caught();
		assert_string_equal(rig.sides[0].events, "broken ");
		assert_int_equal(rig.sides[0].err, cases[i].err);
		assert_int_equal(rig.sides[0].got.len, 1);
		assert_int_equal(stat_get(cases[i].counted) - counted, 1);
		close(fd);
		rig_close();
	}
}

/* ---- Another context ------------------------------------------------------------------------- */

static void a_new_certificate_is_for_new_connections(UNUSED void **state)
{
	char other[100];
	struct tls_files old = files;
	tls_files_run(&files,
		      "openssl req -x509 -newkey rsa:2048 -nodes -keyout new.key -out new.pem "
		      "-days 9 -subj /CN=localhost -addext subjectAltName=DNS:localhost");
	rig_open(HANDSHAKE_MS);
	int fd = rig_proxy();
	assert_int_equal(write(fd, "one", 3), 3);
	WAIT_FOR(rig.count == 1 && rig.sides[0].got.len == 3);
	snprintf(other, sizeof(other), "%s/new.pem", files.directory);
	snprintf(files.certificate, sizeof(files.certificate), "%s", other);
	snprintf(files.key, sizeof(files.key), "%s/new.key", files.directory);
	rig_speak(context_new(NULL), HANDSHAKE_MS);
	files = old;
	/* Only who trusts the new one comes in now; its name is another. */
	rig_call("localhost", other, NULL);
	side_write(&rig.client, "two");
	WAIT_FOR(rig.count == 2 && rig.sides[1].got.len == 3);
	assert_string_equal(rig.client.events, "sent ");
	/* The old connection lives on. */
	assert_int_equal(write(fd, "more", 4), 4);
	WAIT_FOR(rig.sides[0].got.len == 7);
	assert_got(&rig.sides[0], "onemore");
	/* Without a context new ones are plain. */
	loop_listener_speak_tls(rig.listener, &(struct loop_tls){0});
	int plain = rig_connect();
	assert_int_equal(write(plain, "plain", 5), 5);
	WAIT_FOR(rig.count == 3 && rig.sides[2].got.len == 5);
	assert_false(loop_conn_speaks_tls(rig.sides[2].conn));
	close(plain);
	close(fd);
	rig_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contexts_say_what_is_wrong),
		cmocka_unit_test(authorities_have_to_be_certificates),
		cmocka_unit_test(a_certificate_out_of_its_time_is_a_warning),
		cmocka_unit_test(both_sides_talk_and_end),
		cmocka_unit_test(a_client_refuses_whom_it_did_not_call),
		cmocka_unit_test(our_client_says_whom_it_calls),
		cmocka_unit_test(what_is_written_in_any_pieces_arrives),
		cmocka_unit_test(what_tls_itself_sends_is_no_event),
		cmocka_unit_test(what_rests_inside_comes_when_reading_goes_on),
		cmocka_unit_test(what_was_read_and_rests_is_bounded_and_whole),
		cmocka_unit_test(it_may_be_closed_while_it_reads),
		cmocka_unit_test(an_end_outside_of_tls_is_none),
		cmocka_unit_test(what_follows_the_handshake_may_be_wrong),
		cmocka_unit_test(a_new_certificate_is_for_new_connections),
	};
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
