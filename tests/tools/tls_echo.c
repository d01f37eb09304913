/* A server that sends back what it reads, over TLS, for tests/e2e/test_tls.py. Prints `listening
 * ADDR:PORT`, reads its certificate anew on SIGHUP and says how that went, ends cleanly on SIGTERM.
 *
 *   tls_echo CERTIFICATE KEY */
#include <signal.h>

#include "base/mem.h"
#include "loop/tls.h"

enum { HANDSHAKE_MS = 10000, UNSENT_MAX_BYTES = 1 << 20 };

struct echo {
	struct loop_conn *conn;
	bool ended, closed;
	struct echo *next, **link;
};

static struct {
	char **files;
	struct loop *loop;
	struct loop_listener *listener;
	struct echo *echoes;
} tool;

static void echo_step(struct echo *echo)
{
	size_t unsent = loop_conn_unsent(echo->conn);
	if (echo->closed)
		return;
	loop_conn_read(echo->conn, unsent > UNSENT_MAX_BYTES ? 0 : LOOP_READ_BYTES);
	if (!echo->ended || unsent)
		return;
	loop_conn_shutdown(echo->conn);
	loop_conn_close(echo->conn);
	echo->closed = true;
}

static void echo_on_read(void *owner, struct slice bytes)
{
	struct echo *echo = owner;
	loop_conn_write(echo->conn, &bytes, 1);
	echo_step(echo);
}

static void echo_on_eof(void *owner)
{
	((struct echo *)owner)->ended = true;
	echo_step(owner);
}

static void echo_on_sent(void *owner)
{
	echo_step(owner);
}

static void echo_on_broken(void *owner, UNUSED int err)
{
	struct echo *echo = owner;
	loop_conn_close(echo->conn);
	echo->closed = true;
}

static void echo_on_closed(void *owner)
{
	struct echo *echo = owner;
	*echo->link = echo->next;
	if (echo->next)
		echo->next->link = echo->link;
	mem_free(echo);
}

static void tool_on_accept(UNUSED void *owner, struct loop_conn *conn)
{
	static const struct loop_conn_events events = {echo_on_read, echo_on_eof, echo_on_broken,
						       echo_on_sent, echo_on_closed};
	struct echo *echo = mem_zalloc(sizeof(*echo));
	echo->conn = conn;
	echo->next = tool.echoes;
	echo->link = &tool.echoes;
	if (echo->next)
		echo->next->link = &echo->next;
	tool.echoes = echo;
	loop_conn_start(conn, &events, echo);
}

/* Says how it went. False: there is none. */
static bool tool_read_certificate(void)
{
	static const struct tls_protocols protocols = {{"http/1.1"}, 1};
	struct loop_tls tls = {.handshake_ms = HANDSHAKE_MS};
	struct errbuf e, warning;
	bool key_is_wrong;
	if (tls_context_for_server(files_real(), clock_real(), tool.files[0], tool.files[1],
				   &protocols, &tls.context, &key_is_wrong, &warning, &e)) {
		printf("refused: %s\n", e.text);
		return false;
	}
	loop_listener_speak_tls(tool.listener, &tls);
	tls_context_release(tls.context);
	printf("certificate read %s\n", warning.text);
	return true;
}

static void tool_on_signal(UNUSED void *owner, int signum)
{
	if (signum == SIGTERM) {
		loop_stop(tool.loop);
		return;
	}
	tool_read_certificate();
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct loop_address address = {.bytes = {127, 0, 0, 1}};
	char text[LOOP_ADDRESS_TEXT_BYTES];
	struct loop_signal *term, *hup;
	struct errbuf e;
	if (argc != 3)
		return 2;
	tool.files = argv + 1;
	tool.loop = loop_new();
	if (loop_listen(tool.loop, &address, tool_on_accept, NULL, &tool.listener, &e) ||
	    loop_signal_open(tool.loop, SIGTERM, tool_on_signal, NULL, &term) ||
	    loop_signal_open(tool.loop, SIGHUP, tool_on_signal, NULL, &hup) ||
	    !tool_read_certificate())
		return 1;
	address = loop_listener_address(tool.listener);
	printf("listening %s\n", loop_address_text(&address, text));
	fflush(stdout);
	loop_run(tool.loop);
	for (struct echo *echo = tool.echoes; echo; echo = echo->next) {
		if (!echo->closed)
			loop_conn_close(echo->conn);
		echo->closed = true;
	}
	loop_listener_close(tool.listener);
	loop_signal_close(term);
	loop_signal_close(hup);
	loop_free(tool.loop);
	return 0;
}
