/* A listener that speaks TLS and its ends, for tests of TLS under connections. */
#ifndef UNIT_LOOP_TLS_RIG_H
#define UNIT_LOOP_TLS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "loop/private.h"
#include "loop/tls_private.h"
#include "tls_files.h"
#include "tools/tls_proxy.h"

enum { HANDSHAKE_MS = 60000, LIMIT_MS = 60000, SIDES_MAX = 1000 };

static struct tls_files files;

/* One end of a connection; what happens to it is written to `events`. */
struct side {
	struct loop *loop;
	struct loop_conn *conn;
	struct buf got;
	char events[64];
	int err;
	size_t largest_piece;
	bool rest_after_read, close_in_read;
};

static struct rig {
	struct loop *loop;
	struct loop_listener *listener;
	struct loop_timer *limit;
	struct side sides[SIDES_MAX]; /* of the server, in the order in which they came */
	size_t count;
	struct side client;
	bool calling; /* the test is in a call: no event may come */
} rig;

static inline void note(struct side *side, const char *event)
{
	size_t len = strlen(side->events);
	assert_false(rig.calling);
	assert_true(len + strlen(event) < sizeof(side->events));
	memcpy(side->events + len, event, strlen(event) + 1);
	loop_stop(rig.loop);
}

static inline void side_on_read(void *owner, struct slice bytes)
{
	struct side *side = owner;
	assert_false(rig.calling);
	assert_int_equal(buf_append(&side->got, bytes.data, bytes.len), 0);
	if (bytes.len > side->largest_piece)
		side->largest_piece = bytes.len;
	if (side->rest_after_read)
		loop_conn_read(side->conn, 0);
	if (side->close_in_read)
		loop_conn_close(side->conn);
	loop_stop(rig.loop);
}

static inline void side_on_eof(void *owner)
{
	note(owner, "eof ");
}

static inline void side_on_broken(void *owner, int err)
{
	struct side *side = owner;
	side->err = err;
	note(side, "broken ");
}

static inline void side_on_sent(void *owner)
{
	struct side *side = owner;
	assert_int_equal(loop_conn_unsent(side->conn), 0);
	note(side, "sent ");
}

static inline void side_on_closed(void *owner)
{
	note(owner, "closed ");
}

static const struct loop_conn_events side_events = {side_on_read, side_on_eof, side_on_broken,
						    side_on_sent, side_on_closed};

static inline void side_start(struct side *side, struct loop_conn *conn)
{
	side->conn = conn;
	buf_init(&side->got, 64 << 20);
	loop_conn_start(conn, &side_events, side);
}

static inline void rig_on_accept(UNUSED void *owner, struct loop_conn *conn)
{
	assert_true(rig.count < SIDES_MAX);
	side_start(&rig.sides[rig.count++], conn);
	loop_stop(rig.loop);
}

static inline void rig_on_limit(UNUSED void *owner)
{
	fail_msg("what was waited for has not come");
}

#define WAIT_FOR(condition)                                                                        \
	while (!(condition))                                                                       \
	loop_run(rig.loop)

static inline struct tls_context *context_new(const char *protocol)
{
	struct tls_protocols protocols = {{protocol}, protocol ? 1 : 0};
	struct tls_context *context;
	struct errbuf e = {""}, warning;
	bool key_is_wrong;
	if (tls_context_for_server(files_real(), clock_real(), files.certificate, files.key,
				   &protocols, &context, &key_is_wrong, &warning, &e))
		fail_msg("%s", e.text);
	assert_string_equal(warning.text, "");
	return context;
}

static inline void rig_speak(struct tls_context *context, int64_t handshake_ms)
{
	loop_listener_speak_tls(rig.listener, &(struct loop_tls){context, NULL, handshake_ms});
	tls_context_release(context);
}

static inline void rig_open(int64_t handshake_ms)
{
	struct loop_address address = {.bytes = {127, 0, 0, 1}};
	struct errbuf e;
	rig = (struct rig){.loop = loop_new()};
	rig.limit = loop_timer_new(rig.loop, rig_on_limit, NULL);
	loop_timer_start(rig.limit, LIMIT_MS, 0);
	assert_int_equal(loop_listen(rig.loop, &address, rig_on_accept, NULL, &rig.listener, &e),
			 0);
	rig_speak(context_new("http/1.1"), handshake_ms);
}

static inline void side_close(struct side *side)
{
	if (side->conn && !side->close_in_read)
		loop_conn_close(side->conn);
	buf_release(&side->got);
}

static inline void rig_close(void)
{
	for (size_t i = 0; i < rig.count; i++)
		side_close(&rig.sides[i]);
	side_close(&rig.client);
	loop_listener_close(rig.listener);
	loop_timer_close(rig.limit);
	loop_free(rig.loop);
	tls_proxies_join();
}

static inline int rig_connect(void)
{
	struct loop_address at = loop_listener_address(rig.listener);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(at.port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(&to.sin_addr, at.bytes, 4);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static inline int rig_proxy(void)
{
	return tls_proxy_start(rig_connect());
}

static inline struct tls_context *client_context(const char *authorities, const char *protocol)
{
	struct tls_protocols protocols = {{protocol}, protocol ? 1 : 0};
	struct tls_context *context;
	struct errbuf e = {""};
	if (tls_context_for_client(files_real(), authorities, &protocols, &context, &e))
		fail_msg("%s", e.text);
	return context;
}

/* Our own client. */
static inline void rig_call(const char *name, const char *authorities, const char *protocol)
{
	struct tls_context *context = client_context(authorities, protocol);
	struct loop_address at = loop_listener_address(rig.listener);
	struct loop_conn *conn;
	assert_int_equal(loop_conn_adopt(rig.loop, rig_connect(), &at, &conn), 0);
	assert_false(loop_conn_speaks_tls(conn));
	loop_conn_speak_tls(conn, &(struct loop_tls){context, name, HANDSHAKE_MS});
	assert_true(loop_conn_speaks_tls(conn));
	tls_context_release(context);
	side_start(&rig.client, conn);
}

static inline void side_write(struct side *side, const char *text)
{
	rig.calling = true;
	loop_conn_write(side->conn, (struct slice[]){slice_of(text)}, 1);
	rig.calling = false;
}

static inline void assert_got(const struct side *side, const char *text)
{
	assert_int_equal(side->got.len, strlen(text));
	assert_memory_equal(side->got.data, text, strlen(text));
}

/* The lines of the log between the two calls. */
static struct {
	int saved, pipe[2];
	char text[4000];
} logged;

static inline void log_catch(void)
{
	logged.saved = dup(STDERR_FILENO);
	assert_int_equal(pipe2(logged.pipe, O_NONBLOCK), 0);
	assert_true(dup2(logged.pipe[1], STDERR_FILENO) >= 0);
}

static inline const char *log_caught(void)
{
	assert_true(dup2(logged.saved, STDERR_FILENO) >= 0);
	close(logged.saved);
	ssize_t len = read(logged.pipe[0], logged.text, sizeof(logged.text) - 1);
	logged.text[len < 0 ? 0 : len] = 0;
	close(logged.pipe[0]);
	close(logged.pipe[1]);
	return logged.text;
}

static inline int make_files(UNUSED void **state)
{
	tls_files_make(&files);
	return 0;
}

static inline int remove_files(UNUSED void **state)
{
	tls_files_remove(&files);
	return 0;
}

#endif
