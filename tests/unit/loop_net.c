/* Addresses, listeners and connections, against blocking sockets in the same process; connections
 * a second time with TLS under them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/stats.h"
#include "loop/tls.h"
#include "tls_files.h"
#include "tools/tls_proxy.h"

static struct tls_context *context; /* with which servers speak TLS; NULL: they do not */

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *printed; /* NULL: refused */
		bool loopback;
	} cases[] = {
		{"127.0.0.1:8470", "127.0.0.1:8470", true},
		{"127.255.0.9:1", "127.255.0.9:1", true},
		{"localhost:0", "127.0.0.1:0", true},
		{"[::1]:65535", "[::1]:65535", true},
		{"[0:0::1]:80", "[::1]:80", true},
		{"0.0.0.0:8470", "0.0.0.0:8470", false},
		{"126.0.0.1:8470", "126.0.0.1:8470", false},
		{"[::]:8470", "[::]:8470", false},
		{"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", false},
		{"127.0.0.1", NULL, false},
		{"127.0.0.1:", NULL, false},
		{"127.0.0.1:65536", NULL, false},
		{"127.0.0.1:-1", NULL, false},
		{"127.0.0.1:+1", NULL, false},
		{"127.0.0.1: 1", NULL, false},
		{"127.0.0.1:80a", NULL, false},
		{"127.0.0.1:123456", NULL, false},
		{"::1:80", NULL, false},
		{"[::1:80", NULL, false},
		{"[]:80", NULL, false},
		{"[127.0.0.1]:80", NULL, false},
		{":80", NULL, false},
		{"", NULL, false},
		{"example.org:80", NULL, false},
		{"127.1:80", NULL, false},
		{"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]:80", NULL, false},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct loop_address address;
		struct errbuf e = {""};
		char text[LOOP_ADDRESS_TEXT_BYTES];
		int err = loop_address_parse(slice_of(cases[i].text), &address, &e);
		if (!cases[i].printed) {
			assert_int_equal(err, ERR_INVALID);
			assert_non_null(strstr(e.text, cases[i].text));
			continue;
		}
		assert_int_equal(err, 0);
		assert_string_equal(loop_address_text(&address, text), cases[i].printed);
		assert_int_equal(loop_address_is_loopback(&address), cases[i].loopback);
	}
	struct loop_address address;
	assert_int_equal(loop_address_parse((struct slice){"127.0.0.1\0:80", 13}, &address, NULL),
			 ERR_INVALID);
}

static void test_networks(UNUSED void **state)
{
	static const struct {
		const char *network, *address; /* without an address: the network is refused */
		bool has;
	} cases[] = {
		{"192.0.2.0/24", "192.0.2.0", true},
		{"192.0.2.0/24", "192.0.2.255", true},
		{"192.0.2.0/24", "192.0.3.0", false},
		{"192.0.2.0/24", "192.0.1.255", false},
		{"192.0.2.128/25", "192.0.2.127", false},
		{"192.0.2.128/25", "192.0.2.128", true},
		{"192.0.2.252/30", "192.0.2.251", false},
		{"192.0.2.252/30", "192.0.2.255", true},
		{"192.0.2.7", "192.0.2.7", true},
		{"192.0.2.7", "192.0.2.6", false},
		{"192.0.2.7/32", "192.0.2.7", true},
		{"0.0.0.0/0", "255.255.255.255", true},
		{"0.0.0.0/0", "::1", false},
		{"::/0", "::1", true},
		{"::/0", "127.0.0.1", false},
		{"2001:db8::/33", "2001:db8:7fff::1", true},
		{"2001:db8::/33", "2001:db8:8000::1", false},
		{"[2001:db8::1]", "2001:db8::1", true},
		{"2001:db8::1", "[2001:db8::2]", false},
		{"192.0.2.1/24", NULL, false},
		{"192.0.2.0/33", NULL, false},
		{"192.0.2.0/", NULL, false},
		{"192.0.2.0/-1", NULL, false},
		{"192.0.2.0/24/24", NULL, false},
		{"192.0.2/24", NULL, false},
		{"2001:db8::/129", NULL, false},
		{"2001:db8::1/64", NULL, false},
		{"[2001:db8::", NULL, false},
		{"[192.0.2.0]/24", NULL, false},
		{"localhost", NULL, false},
		{"example.org", NULL, false},
		{"/8", NULL, false},
		{"", NULL, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct loop_networks networks = {.count = 1};
		struct loop_address address;
		struct errbuf e = {""};
		int err = loop_network_parse(slice_of(cases[i].network), &networks.list[0], &e);
		assert_int_equal(err, cases[i].address ? 0 : ERR_INVALID);
		assert_true(!err || strstr(e.text, cases[i].network));
		if (err)
			continue;
		assert_int_equal(loop_host_parse(slice_of(cases[i].address), &address), 0);
		assert_int_equal(loop_networks_have(&networks, &address), cases[i].has);
		networks.count = 0;
		assert_false(loop_networks_have(&networks, &address));
	}
}

/* One server that keeps what it reads; what happens is written to `events`. */
struct server {
	struct loop *loop;
	struct loop_listener *listener;
	struct loop_conn *conn;
	struct buf got;
	char events[64];
	size_t stop_at_bytes;
	bool stop_at_sent, stop_at_accept, stop_at_closed, stop_at_broken, stop_at_eof;
};

static void note(struct server *server, const char *event)
{
	size_t len = strlen(server->events);
	assert_true(len + strlen(event) < sizeof(server->events));
	memcpy(server->events + len, event, strlen(event) + 1);
}

static void on_read(void *owner, struct slice bytes)
{
	struct server *server = owner;
	buf_append(&server->got, bytes.data, bytes.len);
	if (server->got.len >= server->stop_at_bytes)
		loop_stop(server->loop);
}

static void on_eof(void *owner)
{
	struct server *server = owner;
	note(server, "eof ");
	if (server->stop_at_eof)
		loop_stop(server->loop);
}

static void on_broken(void *owner, int err)
{
	struct server *server = owner;
	assert_true(err < 0);
	note(server, "broken ");
	if (server->stop_at_broken)
		loop_stop(server->loop);
}

static void on_sent(void *owner)
{
	struct server *server = owner;
	assert_int_equal(loop_conn_unsent(server->conn), 0);
	note(server, "sent ");
	if (server->stop_at_sent)
		loop_stop(server->loop);
}

static void on_closed(void *owner)
{
	struct server *server = owner;
	note(server, "closed ");
	if (server->stop_at_closed)
		loop_stop(server->loop);
}

static const struct loop_conn_events events = {on_read, on_eof, on_broken, on_sent, on_closed};

static void on_accept(void *owner, struct loop_conn *conn)
{
	struct server *server = owner;
	server->conn = conn;
	loop_conn_start(conn, &events, server);
	if (server->stop_at_accept)
		loop_stop(server->loop);
}

static void server_open(struct server *server, const char *at)
{
	struct loop_address address;
	struct errbuf e;
	*server = (struct server){.loop = loop_new(), .stop_at_bytes = SIZE_MAX};
	buf_init(&server->got, 64 << 20);
	assert_int_equal(loop_address_parse(slice_of(at), &address, &e), 0);
	assert_int_equal(
		loop_listen(server->loop, &address, on_accept, server, &server->listener, &e), 0);
	if (context)
		loop_listener_speak_tls(
			server->listener,
			&(struct loop_tls){.context = context, .handshake_ms = 60000});
}

static void server_close(struct server *server)
{
	if (server->listener)
		loop_listener_close(server->listener);
	loop_free(server->loop);
	tls_proxies_join();
	buf_release(&server->got);
}

static int client_open(struct server *server)
{
	struct loop_address at = loop_listener_address(server->listener);
	assert_int_not_equal(at.port, 0);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(at.port)};
	memcpy(&to.sin_addr, at.bytes, 4);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return context ? tls_proxy_start(fd) : fd;
}

static void test_a_taken_port_is_a_sentence(void **state)
{
	struct server server;
	struct errbuf e = {""};
	struct loop_listener *second = NULL;
	(void)state;
	server_open(&server, "127.0.0.1:0");
	struct loop_address taken = loop_listener_address(server.listener);
	assert_int_equal(loop_listen(server.loop, &taken, on_accept, NULL, &second, &e),
			 -EADDRINUSE);
	assert_non_null(strstr(e.text, "127.0.0.1:"));
	server_close(&server);
}

static void test_a_socket_of_the_machine(void **state)
{
	char directory[] = "/tmp/loop_net.XXXXXX", path[64];
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct server server = {.loop = loop_new(), .stop_at_bytes = 5};
	struct errbuf e = {""};
	struct stat seen;
	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/door", directory);
	memcpy(to.sun_path, path, strlen(path));
	buf_init(&server.got, 64);
	uid_t uid = 0;
	/* What a process left that was killed is in the way. */
	int left = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(left, (struct sockaddr *)&to, sizeof(to)), 0);
	close(left);
	umask(0);
	assert_int_equal(
		loop_listen_path(server.loop, path, 0600, on_accept, &server, &server.listener, &e),
		0);
	assert_int_equal(stat(path, &seen), 0);
	assert_int_equal(seen.st_mode, S_IFSOCK | 0600);
	/* The client has a name of its own, which is no address of the network. */
	struct sockaddr_un own = {.sun_family = AF_UNIX};
	memcpy(own.sun_path + 1, directory, sizeof(directory));
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(write(fd, "hello", 5), 5);
	loop_run(server.loop);
	assert_memory_equal(server.got.data, "hello", 5);
	assert_int_equal(loop_conn_peer_uid(server.conn, &uid), 0);
	assert_int_equal(uid, getuid());
	struct loop_address nobody = {0}, peer = loop_conn_peer(server.conn);
	assert_true(loop_address_equal(&peer, &nobody));
	loop_conn_write(server.conn, (struct slice[]){SLICE("yes")}, 1);
	char answer[4];
	assert_int_equal(read(fd, answer, sizeof(answer)), 3);
	assert_memory_equal(answer, "yes", 3);
	loop_conn_close(server.conn);
	server_close(&server);
	assert_int_equal(stat(path, &seen), -1);
	close(fd);
	assert_int_equal(rmdir(directory), 0);
}

static void test_a_path_that_no_socket_can_have(void **state)
{
	char path[LOOP_PATH_MAX_BYTES + 1];
	struct loop *loop = loop_new();
	struct loop_listener *listener = NULL;
	struct errbuf e = {""};
	(void)state;
	memset(path, 'a', sizeof(path));
	path[LOOP_PATH_MAX_BYTES] = 0;
	assert_int_equal(loop_listen_path(loop, path, 0600, on_accept, NULL, &listener, &e),
			 -ENAMETOOLONG);
	assert_int_equal(
		loop_listen_path(loop, "/nowhere/at/all", 0600, on_accept, NULL, &listener, &e),
		-ENOENT);
	assert_non_null(strstr(e.text, "/nowhere/at/all"));
	assert_null(listener);
	loop_free(loop);
}

static void test_a_path_that_is_taken(void **state)
{
	char directory[] = "/tmp/loop_net.XXXXXX", path[64];
	struct server server = {.loop = loop_new()};
	struct loop_listener *second = NULL;
	struct errbuf e = {""};
	struct stat seen;
	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/door", directory);
	assert_int_equal(
		loop_listen_path(server.loop, path, 0600, on_accept, &server, &server.listener, &e),
		0);
	assert_int_equal(loop_listen_path(server.loop, path, 0600, on_accept, &server, &second, &e),
			 ERR_LOCKED);
	assert_non_null(strstr(e.text, path));
	assert_non_null(strstr(e.text, "in use by another process"));
	assert_int_equal(stat(path, &seen), 0);
	loop_listener_close(server.listener);
	/* A file that somebody made stays. */
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(loop_listen_path(server.loop, path, 0600, on_accept, &server, &second, &e),
			 ERR_EXISTS);
	assert_non_null(strstr(e.text, "no socket"));
	assert_int_equal(stat(path, &seen), 0);
	assert_null(second);
	loop_free(server.loop);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void test_reading_to_the_end(void **state)
{
	struct server server;
	(void)state;
	server_open(&server, "127.0.0.1:0");
	int fd = client_open(&server);
	assert_int_equal(write(fd, "hello", 5), 5);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	server.stop_at_eof = true;
	loop_run(server.loop);
	assert_int_equal(server.got.len, 5);
	assert_memory_equal(server.got.data, "hello", 5);
	assert_string_equal(server.events, "eof ");
	/* The other direction is still open. */
	loop_conn_write(server.conn, (struct slice[]){SLICE("good"), SLICE("bye")}, 2);
	loop_conn_shutdown(server.conn);
	server.stop_at_closed = true;
	char reply[16];
	assert_int_equal(recv(fd, reply, 7, MSG_WAITALL), 7);
	assert_memory_equal(reply, "goodbye", 7);
	loop_conn_close(server.conn);
	loop_run(server.loop);
	assert_int_equal(read(fd, reply, 1), 0);
	close(fd);
	server_close(&server);
}

struct reader {
	int fd;
	size_t want, got;
	bool right;
};

static void *read_slowly(void *arg)
{
	struct reader *reader = arg;
	char bytes[8192];
	reader->right = true;
	while (reader->got < reader->want) {
		ssize_t n = read(reader->fd, bytes, sizeof(bytes));
		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			reader->right &= bytes[i] == (char)((reader->got + (size_t)i) % 251);
		reader->got += (size_t)n;
	}
	return NULL;
}

/* More than the kernel takes, in three pieces: the rest is kept, sent in order, and told of. */
static void test_writing_more_than_the_kernel_takes(void **state)
{
	enum { LEN = 24 << 20 };
	struct server server;
	pthread_t thread;
	(void)state;
	server_open(&server, "127.0.0.1:0");
	struct reader reader = {.fd = client_open(&server), .want = LEN};
	server.stop_at_accept = true;
	loop_run(server.loop);
	char *bytes = mem_alloc(LEN);
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (char)(i % 251);
	struct slice pieces[] = {{bytes, 1}, {bytes + 1, LEN / 2}, {bytes + 1 + LEN / 2, LEN / 4}};
	loop_conn_write(server.conn, pieces, 3);
	assert_true(loop_conn_unsent(server.conn) > 0);
	assert_string_equal(server.events, "");
	size_t done = 1 + LEN / 2 + LEN / 4;
	loop_conn_write(server.conn, (struct slice[]){{bytes + done, LEN - done}}, 1);
	mem_free(bytes); /* what was left is copied */
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
	server.stop_at_sent = true;
	loop_run(server.loop);
	assert_string_equal(server.events, "sent ");
	pthread_join(thread, NULL);
	assert_int_equal(reader.got, LEN);
	assert_true(reader.right);
	loop_conn_close(server.conn);
	close(reader.fd);
	server_close(&server);
}

static void test_a_resting_reader_reads_nothing(void **state)
{
	struct server server;
	(void)state;
	server_open(&server, "127.0.0.1:0");
	int fd = client_open(&server);
	server.stop_at_accept = true;
	loop_run(server.loop);
	loop_conn_read(server.conn, 0);
	assert_int_equal(write(fd, "abcdef", 6), 6);
	/* A second connection is a later event: what could be read would have been read. */
	struct loop_conn *first = server.conn;
	int other = client_open(&server);
	loop_run(server.loop);
	assert_int_equal(server.got.len, 0);
	loop_conn_read(first, 2); /* at most two bytes a piece */
	server.stop_at_bytes = 6;
	loop_run(server.loop);
	assert_memory_equal(server.got.data, "abcdef", 6);
	loop_conn_close(first);
	loop_conn_close(server.conn);
	close(fd);
	close(other);
	server_close(&server);
}

static void test_a_reset_is_an_event(void **state)
{
	struct server server;
	struct linger reset = {1, 0};
	(void)state;
	server_open(&server, "127.0.0.1:0");
	int fd = client_open(&server);
	server.stop_at_accept = true;
	loop_run(server.loop);
	if (!context)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	tls_proxy_reset(fd);
	server.stop_at_broken = true;
	loop_run(server.loop);
	assert_string_equal(server.events, "broken ");
	/* Writing after it is quiet. */
	loop_conn_write(server.conn, (struct slice[]){SLICE("x")}, 1);
	loop_conn_shutdown(server.conn);
	server.stop_at_closed = true;
	loop_conn_close(server.conn);
	loop_run(server.loop);
	assert_string_equal(server.events, "broken closed ");
	server_close(&server);
}

static void test_out_of_descriptors_rests_and_goes_on(void **state)
{
	struct server server;
	(void)state;
	int64_t rests = stat_get(STAT_loop_accept_rests);
	server_open(&server, "127.0.0.1:0");
	fault_arm("loop.accept", FAULT_ERROR, 1, 2);
	int fd = client_open(&server);
	server.stop_at_accept = true;
	int64_t before = loop_now_ms(server.loop);
	int logged[2], saved = dup(STDERR_FILENO);
	char text[1000];
	assert_int_equal(pipe(logged), 0);
	assert_true(dup2(logged[1], STDERR_FILENO) >= 0);
	loop_run(server.loop);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	close(logged[1]);
	ssize_t len = read(logged[0], text, sizeof(text) - 1);
	close(logged[0]);
	fault_disarm_all();
	/* Two rests, one line. */
	assert_true(len > 0);
	text[len] = 0;
	assert_non_null(strstr(text, "Too many open files; tried every 100 ms, 1 times so far"));
	assert_ptr_equal(strchr(text, '\n'), text + len - 1);
	assert_int_equal(stat_get(STAT_loop_accept_rests) - rests, 2);
	assert_true(loop_now_ms(server.loop) - before >= 190);
	loop_conn_close(server.conn);
	close(fd);
	server_close(&server);
}

static int make_context(UNUSED void **state)
{
	struct tls_files files;
	struct errbuf e, warning;
	bool key_is_wrong;
	tls_files_make(&files);
	assert_int_equal(tls_context_for_server(files_real(), clock_real(), files.certificate,
						files.key, &(struct tls_protocols){{0}}, &context,
						&key_is_wrong, &warning, &e),
			 0);
	tls_files_remove(&files);
	return 0;
}

static int release_context(UNUSED void **state)
{
	tls_context_release(context);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_networks),
		cmocka_unit_test(test_a_taken_port_is_a_sentence),
		cmocka_unit_test(test_a_socket_of_the_machine),
		cmocka_unit_test(test_a_path_that_no_socket_can_have),
		cmocka_unit_test(test_a_path_that_is_taken),
	};
	const struct CMUnitTest of_connections[] = {
		cmocka_unit_test(test_reading_to_the_end),
		cmocka_unit_test(test_writing_more_than_the_kernel_takes),
		cmocka_unit_test(test_a_resting_reader_reads_nothing),
		cmocka_unit_test(test_a_reset_is_an_event),
		cmocka_unit_test(test_out_of_descriptors_rests_and_goes_on),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	failed += cmocka_run_group_tests_name("plain", of_connections, NULL, NULL);
	return failed +
	       cmocka_run_group_tests_name("TLS", of_connections, make_context, release_context);
}
