/* Datagrams, sent by a plain socket in the same process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/loop.h"

enum { SENT_MAX = 4096, WAIT_MS = 10000 };

struct seen {
	struct loop *loop;
	struct loop_udp *udp;
	struct loop_timer *limit;
	size_t count, wanted;
	size_t lengths[SENT_MAX];
	char first[SENT_MAX];
	bool cut[SENT_MAX];
	bool rest_after_first;
};

static void on_received(void *owner, const struct loop_datagram *datagrams, size_t count)
{
	struct seen *seen = owner;
	for (size_t i = 0; i < count; i++) {
		assert_true(seen->count < SENT_MAX);
		seen->lengths[seen->count] = datagrams[i].bytes.len;
		seen->first[seen->count] = datagrams[i].bytes.len ? *datagrams[i].bytes.data : 0;
		seen->cut[seen->count++] = datagrams[i].cut;
	}
	if (seen->rest_after_first)
		loop_udp_read(seen->udp, false);
	if (seen->count >= seen->wanted)
		loop_stop(seen->loop);
}

static void on_limit(void *owner)
{
	struct seen *seen = owner;
	loop_stop(seen->loop);
}

static void open_udp(struct seen *seen, size_t datagram_max_bytes, size_t buffer_bytes)
{
	struct errbuf e;
	*seen = (struct seen){.loop = loop_new()};
	struct loop_udp_options options = {.datagram_max_bytes = datagram_max_bytes,
					   .buffer_bytes = buffer_bytes,
					   .received = on_received,
					   .owner = seen};
	assert_int_equal(loop_address_parse(SLICE("127.0.0.1:0"), &options.address, &e), 0);
	assert_int_equal(loop_udp_open(seen->loop, &options, &seen->udp, &e), 0);
	assert_int_not_equal(loop_udp_address(seen->udp).port, 0);
	seen->limit = loop_timer_new(seen->loop, on_limit, seen);
}

static void close_udp(struct seen *seen)
{
	loop_udp_close(seen->udp);
	loop_timer_close(seen->limit);
	loop_free(seen->loop);
}

static void run_until(struct seen *seen, size_t wanted)
{
	seen->wanted = wanted;
	loop_timer_start(seen->limit, WAIT_MS, 0);
	loop_run(seen->loop);
	assert_int_equal(seen->count, wanted);
}

static int sender(const struct seen *seen)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(loop_udp_address(seen->udp).port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void in_order_with_their_lengths(void **state)
{
	static const size_t lengths[] = {0, 1, 511, 512, 513, 2000, 512, 3};
	static char bytes[2000];
	struct seen seen;
	(void)state;
	open_udp(&seen, 512, 0);
	int fd = sender(&seen);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		bytes[0] = (char)('a' + i);
		assert_int_equal(send(fd, bytes, lengths[i], 0), lengths[i]);
	}
	run_until(&seen, ARRAY_LEN(lengths));
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		bool cut = lengths[i] > 512;
		assert_int_equal(seen.lengths[i], cut ? 512 : lengths[i]);
		assert_int_equal(seen.cut[i], cut);
		if (lengths[i])
			assert_int_equal(seen.first[i], 'a' + (int)i);
	}
	assert_int_equal(loop_udp_lost(seen.udp), 0);
	close(fd);
	close_udp(&seen);
}

static void what_the_kernel_drops_is_known(void **state)
{
	enum { SENT = 2000 };
	static const char bytes[1000];
	struct seen seen;
	(void)state;
	open_udp(&seen, 1000, 64 << 10);
	int fd = sender(&seen);
	for (int i = 0; i < SENT; i++)
		assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	uint32_t lost = loop_udp_lost(seen.udp);
	assert_in_range(lost, 1, SENT - 1);
	assert_int_equal(loop_udp_lost(seen.udp), 0); /* told once */
	run_until(&seen, SENT - lost);
	assert_int_equal(loop_udp_lost(seen.udp), 0);
	assert_int_equal(send(fd, bytes, 1, 0), 1);
	run_until(&seen, SENT - lost + 1);
	close(fd);
	close_udp(&seen);
}

static void rests_and_goes_on(void **state)
{
	struct seen seen;
	(void)state;
	open_udp(&seen, 64 << 10, 0);
	seen.rest_after_first = true;
	int fd = sender(&seen);
	for (int i = 0; i < 20; i++)
		assert_int_equal(send(fd, "x", 1, 0), 1);
	/* Four datagrams of this size fit the read buffer. */
	run_until(&seen, 4);
	assert_true(loop_udp_read_now(seen.udp));
	assert_int_equal(seen.count, 8);
	seen.rest_after_first = false;
	loop_udp_read(seen.udp, true);
	run_until(&seen, 20);
	assert_false(loop_udp_read_now(seen.udp));
	close(fd);
	close_udp(&seen);
}

static void a_taken_address_is_an_error(void **state)
{
	struct seen seen;
	struct loop_udp *udp;
	struct errbuf e = {""};
	(void)state;
	open_udp(&seen, 512, 0);
	struct loop_udp_options options = {.datagram_max_bytes = 1,
					   .address = loop_udp_address(seen.udp)};
	assert_int_equal(loop_udp_open(seen.loop, &options, &udp, &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "cannot receive at 127.0.0.1:"));
	close_udp(&seen);
}

/* ---- Clients --------------------------------------------------------------------------------- */

struct peer {
	struct loop *loop;
	struct loop_udp *udp;
	struct loop_address from;
	size_t count, wanted;
	char last;
};

static void on_heard(void *owner, const struct loop_datagram *datagrams, size_t count)
{
	struct peer *peer = owner;
	for (size_t i = 0; i < count; i++) {
		peer->from = datagrams[i].from;
		peer->last = *datagrams[i].bytes.data;
		if (++peer->count == peer->wanted)
			loop_stop(peer->loop);
	}
}

static void open_peer(struct peer *peer, struct loop *loop, const char *address, size_t wanted)
{
	struct errbuf e;
	*peer = (struct peer){.loop = loop, .wanted = wanted};
	struct loop_udp_options options = {
		.client = true, .datagram_max_bytes = 1000, .received = on_heard, .owner = peer};
	assert_int_equal(loop_address_parse(slice_of(address), &options.address, &e), 0);
	assert_int_equal(loop_udp_open(loop, &options, &peer->udp, &e), 0);
}

static void on_too_late(void *owner)
{
	(void)owner;
	fail_msg("nothing came");
}

static void clients_send_and_know_who_answers(void **state)
{
	static const char *const addresses[] = {"0.0.0.0:0", "[::]:0"};
	enum { SENT = 100 };
	(void)state;
	for (size_t a = 0; a < ARRAY_LEN(addresses); a++) {
		struct loop *loop = loop_new();
		struct loop_timer *limit = loop_timer_new(loop, on_too_late, NULL);
		struct loop_outgoing outgoing[SENT];
		struct peer one, other;
		open_peer(&one, loop, addresses[a], 1);
		open_peer(&other, loop, addresses[a], SENT);
		struct loop_address to = {.v6 = a, .port = loop_udp_address(other.udp).port};
		to.bytes[a ? 15 : 3] = 1; /* ::1, or 127.0.0.1 */
		if (!a)
			to.bytes[0] = 127;
		for (int i = 0; i < SENT; i++)
			outgoing[i] = (struct loop_outgoing){{&"abcd"[i % 4], 1}, to};
		assert_int_equal(loop_udp_send(one.udp, outgoing, SENT), SENT);
		loop_timer_start(limit, WAIT_MS, 0);
		loop_run(loop);
		assert_int_equal(other.count, SENT);
		assert_int_equal(other.last, 'd');
		assert_int_equal(other.from.port, loop_udp_address(one.udp).port);
		assert_int_equal(other.from.v6, a);
		assert_memory_equal(other.from.bytes, to.bytes, a ? 16 : 4);
		/* What cannot be sent (port 0) is as lost, and the rest goes on. */
		outgoing[0].to.port = 0;
		outgoing[1].to = other.from;
		assert_int_equal(loop_udp_send(other.udp, outgoing, 2), 2);
		loop_run(loop);
		assert_int_equal(one.count, 1);
		assert_int_equal(one.last, 'b');
		loop_udp_close(one.udp);
		loop_udp_close(other.udp);
		loop_timer_close(limit);
		loop_free(loop);
	}
}

/* A network of our own, whose only interface takes 576 bytes at one go. False: not permitted. */
static bool enter_narrow_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_mtu = 576};
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool set = ioctl(fd, SIOCSIFMTU, &lo) == 0;
	lo.ifr_flags = IFF_UP;
	set = set && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
	close(fd);
	return set;
}

static void send_through_narrow_network(void)
{
	char text[900], more[70000] = {0};
	struct loop *loop = loop_new();
	struct loop_timer *limit = loop_timer_new(loop, on_too_late, NULL);
	struct peer one, other;
	open_peer(&one, loop, "0.0.0.0:0", 1);
	open_peer(&other, loop, "0.0.0.0:0", 3);
	struct loop_address to = {.bytes = {127, 0, 0, 1},
				  .port = loop_udp_address(other.udp).port};
	memset(text, 'l', sizeof(text));
	const struct loop_outgoing outgoing[] = {
		{{"s", 1}, to},
		{{text, sizeof(text)}, to},
		{{more, sizeof(more)}, to}, /* more than any datagram holds */
		{{"e", 1}, to},
	};
	assert_int_equal(loop_udp_send(one.udp, outgoing, 4), 4);
	loop_timer_start(limit, WAIT_MS, 0);
	loop_run(loop);
	assert_int_equal(other.count, 3);
	assert_int_equal(other.last, 'e');
	loop_udp_close(one.udp);
	loop_udp_close(other.udp);
	loop_timer_close(limit);
	loop_free(loop);
}

static void what_is_too_long_for_the_path_goes_in_pieces(void **state)
{
	enum { NOT_PERMITTED = 77 };
	int status = 0;
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		if (!enter_narrow_network())
			_exit(NOT_PERMITTED);
		send_through_narrow_network();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	/* Containers often are not; nothing that could be installed is missing. */
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_PERMITTED)
		print_message("a network of its own is not permitted here\n");
	else
		assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_with_their_lengths),
		cmocka_unit_test(what_the_kernel_drops_is_known),
		cmocka_unit_test(rests_and_goes_on),
		cmocka_unit_test(a_taken_address_is_an_error),
		cmocka_unit_test(clients_send_and_know_who_answers),
		cmocka_unit_test(what_is_too_long_for_the_path_goes_in_pieces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
