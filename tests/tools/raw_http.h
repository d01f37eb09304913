/* A small blocking HTTP/1.1 client for test tools: one connection, one request at a time, answers
 * by length or chunked. It costs little, since it shares the machine with the server it measures;
 * it trusts the server no further than to bound what it reads. One thread per client. */
#ifndef TOOLS_RAW_HTTP_H
#define TOOLS_RAW_HTTP_H

#include "base/base.h"
#include "base/buf.h"

enum { HTTP_CLIENT_REPLY_MAX_BYTES = 1 << 30 };

struct raw_http {
	int fd;
	struct ssl_st *tls; /* NULL: it does not speak TLS */
	struct buf in;      /* bytes received, from the head of the answer on */
	struct buf body;    /* a chunked body, decoded */
};

/* Valid until the next call on the same client. */
struct http_reply {
	int status;
	struct slice head; /* status line and fields */
	struct slice body;
};

/* Connects to 127.0.0.1; 0 or -errno. */
int raw_http_open(struct raw_http *client, uint16_t port, int timeout_s) MUST_CHECK;
/* The same by TLS, whoever is there; ERR_INVALID: TLS is not spoken there. */
int raw_http_open_tls(struct raw_http *client, uint16_t port, int timeout_s) MUST_CHECK;
void raw_http_close(struct raw_http *client);

/* Sends head and body as they are; 0 or -errno. */
int raw_http_send(struct raw_http *client, struct slice head, struct slice body) MUST_CHECK;

/* 0, -errno, ERR_CANCELLED when the server closed the connection before a whole answer, or
 * ERR_INVALID for an answer that is not HTTP. */
int raw_http_receive(struct raw_http *client, struct http_reply *reply) MUST_CHECK;

/* Writes a request head for the loopback server; `body_len` SIZE_MAX for none. */
void raw_http_head(struct buf *out, const char *method, const char *path, const char *type,
		   size_t body_len);

#endif
