/* TLS without sockets: bytes of the wire in, bytes of the owner out, and back. Shared by tls.c,
 * tls_context.c and tls_conn.c only. */
#ifndef LOOP_TLS_PRIVATE_H
#define LOOP_TLS_PRIVATE_H

#include <openssl/ssl.h>

#include "base/buf.h"
#include "loop/tls.h"

/* Why TLS ended before its time. */
enum tls_fault {
	TLS_NOT_TLS,     /* the first bytes are of another protocol */
	TLS_PLAIN_HTTP,  /* they are a request of HTTP */
	TLS_VERSION,     /* no version in common */
	TLS_CIPHER,      /* no cipher, group or signature in common */
	TLS_PROTOCOL,    /* no protocol within TLS in common */
	TLS_CERTIFICATE, /* the peer's certificate is refused */
	TLS_REFUSED,     /* the peer has refused: an alert */
	TLS_LEFT,        /* the peer ended or broke the connection */
	TLS_LATE,        /* the handshake took too long */
	TLS_WRONG,       /* anything else that breaks the rules of TLS */
	TLS_FAULTS,
};

enum tls_result {
	TLS_DONE,
	TLS_WANTS_INPUT,
	TLS_AT_END, /* the peer has said that no more comes */
	TLS_FAILED, /* tls->fault says why; the only thing left is to send `out` */
};

/* One side of one connection. */
struct tls {
	SSL *ssl;
	struct tls_context *context;
	struct slice in; /* of the wire, not looked at yet; the caller's */
	struct buf *out; /* for the wire; the caller's, who takes from it after each call */
	enum tls_fault fault;
	char why[160]; /* in words, for the log; "" unless it has failed */
};

void tls_init(struct tls *tls, const struct loop_tls *options, struct buf *out);
void tls_release(struct tls *tls);

/* TLS_DONE, TLS_WANTS_INPUT or TLS_FAILED. *worked: it was more than waiting for the rest of a
 * message. */
enum tls_result tls_shake_hands(struct tls *tls, bool *worked);
/* From outside: it has failed, since the wire has ended, since the time is over, or since it does
 * what it may not. */
void tls_be_cut(struct tls *tls);
void tls_be_late(struct tls *tls);
void tls_be_wrong(struct tls *tls, const char *why);
/* As much as there is, up to max_bytes. TLS_DONE: *len > 0. */
enum tls_result tls_read(struct tls *tls, char *to, size_t max_bytes, size_t *len);
/* Bytes that tls_read can give without input. */
size_t tls_pending(const struct tls *tls);
/* TLS_DONE or TLS_FAILED. At most TLS_WRITE_MAX_BYTES at a time. */
enum { TLS_RECORD_BYTES = 16384, TLS_WRITE_MAX_BYTES = 4 * TLS_RECORD_BYTES };
enum tls_result tls_write(struct tls *tls, struct slice bytes);
/* Tells the peer that no more comes. */
void tls_end(struct tls *tls);

/* tls_context.c */
struct tls_context {
	SSL_CTX *ssl;
	bool is_server;
	_Atomic unsigned users;
	uint8_t protocols[TLS_PROTOCOLS_MAX * (1 + TLS_PROTOCOL_MAX_BYTES)]; /* as ALPN has them */
	unsigned protocols_len;
};

#endif
