/* A client of TLS behind a plain socket: what a test writes to its end goes to the server within
 * TLS, and back; half a connection ends on both sides. It is OpenSSL alone, blocking, on a thread
 * of its own: nothing of src/ is in it. Include it after <cmocka.h>. */
#ifndef TESTS_TOOLS_TLS_PROXY_H
#define TESTS_TOOLS_TLS_PROXY_H

#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TLS_PROXIES_MAX = 16 };

struct tls_proxy {
	int tcp, inner, outer;
	pthread_t thread;
	atomic_bool resets; /* when the test closes its end */
};

static struct tls_proxy tls_proxies[TLS_PROXIES_MAX];
static size_t tls_proxy_count;

static bool tls_proxy_to_server(struct tls_proxy *proxy, SSL *ssl, bool *ended)
{
	char bytes[16384];
	ssize_t n = read(proxy->inner, bytes, sizeof(bytes));
	if (n > 0)
		return SSL_write(ssl, bytes, (int)n) == n;
	*ended = true;
	return !proxy->resets && SSL_shutdown(ssl) >= 0;
}

static bool tls_proxy_to_test(struct tls_proxy *proxy, SSL *ssl, bool *ended)
{
	char bytes[16384];
	int n = SSL_read(ssl, bytes, sizeof(bytes));
	if (n <= 0) {
		int why = SSL_get_error(ssl, n);
		*ended = why == SSL_ERROR_ZERO_RETURN;
		if (*ended)
			shutdown(proxy->inner, SHUT_WR);
		return *ended || why == SSL_ERROR_WANT_READ;
	}
	for (int done = 0; done < n;) {
		ssize_t more = send(proxy->inner, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
		if (more <= 0)
			return false;
		done += (int)more;
	}
	return true;
}

static void *tls_proxy_run(void *argument)
{
	struct tls_proxy *proxy = argument;
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY); /* a ticket is no reason to wait */
	SSL *ssl = SSL_new(context);
	SSL_set_fd(ssl, proxy->tcp);
	bool goes = SSL_connect(ssl) == 1, test_ended = false, server_ended = false;
	while (goes && !(test_ended && server_ended)) {
		struct pollfd fds[] = {{test_ended ? -1 : proxy->inner, POLLIN, 0},
				       {server_ended ? -1 : proxy->tcp, POLLIN, 0}};
		if (!SSL_pending(ssl))
			poll(fds, 2, -1);
		if (fds[0].revents)
			goes = tls_proxy_to_server(proxy, ssl, &test_ended);
		if (goes && (fds[1].revents || SSL_pending(ssl)))
			goes = tls_proxy_to_test(proxy, ssl, &server_ended);
	}
	SSL_free(ssl);
	SSL_CTX_free(context);
	struct linger reset = {1, 0};
	if (proxy->resets)
		setsockopt(proxy->tcp, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(proxy->tcp);
	close(proxy->inner);
	return NULL;
}

/* `tcp` is connected; it is the proxy's from now on. The test's end. */
static inline int tls_proxy_start(int tcp)
{
	int pair[2];
	assert_true(tls_proxy_count < TLS_PROXIES_MAX);
	struct tls_proxy *proxy = &tls_proxies[tls_proxy_count++];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	proxy->tcp = tcp;
	proxy->inner = pair[1];
	proxy->outer = pair[0];
	proxy->resets = false;
	assert_int_equal(pthread_create(&proxy->thread, NULL, tls_proxy_run, proxy), 0);
	return pair[0];
}

/* The server shall see a reset when the test closes this end, which it does now. */
static inline void tls_proxy_reset(int outer)
{
	for (size_t i = 0; i < tls_proxy_count; i++)
		if (tls_proxies[i].outer == outer)
			tls_proxies[i].resets = true;
	close(outer);
}

/* When the test and the server have closed their ends. */
static inline void tls_proxies_join(void)
{
	for (size_t i = 0; i < tls_proxy_count; i++)
		pthread_join(tls_proxies[i].thread, NULL);
	tls_proxy_count = 0;
}

#endif
