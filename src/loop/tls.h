/* Connections that speak TLS (1.2 and 1.3, by OpenSSL). Their owner uses them as any other:
 *
 *  - Reading, writing and ending are as loop.h says. What is written before the peers have shaken
 *    hands waits for that, and counts as unsent; afterwards unsent bytes are of the wire.
 *  - Handshakes go on while reading rests. One that fails, or takes longer than it may, is `broken`
 *    and logged with the peer and why, and is counted.
 *  - At most TLS_STEPS_A_TURN_MAX steps of handshakes, each with one operation of the private key
 *    or less, are made in a turn of a loop: those of a flood wait for each other, and the sockets
 *    of others are served between.
 *  - `eof` is only what the peer has said within TLS (close_notify). Where the network ends without
 *    that, somebody on the way may have cut it: that is `broken`, with -ECONNABORTED.
 *  - loop_conn_shutdown() says so to the peer. loop_conn_close() alone does not: to the peer its
 *    connection was cut off. An owner that is content closes after a shutdown.
 *
 * A context has what many connections share: the certificate, or whom clients trust. It never
 * changes; who wants others makes a new one, and old connections go on with theirs. Contexts are
 * counted, and may be used by the loops of several threads.
 *
 * No renegotiation (whoever asks is told so), no compression, no data before the handshake is over.
 * A client may resume a session by a ticket; the keys of tickets are made at the start of the
 * process and last as long, so that they outlive a change of certificate. */
#ifndef LOOP_TLS_H
#define LOOP_TLS_H

#include "base/clock.h"
#include "base/file.h"
#include "loop/loop.h"

enum {
	TLS_STEPS_A_TURN_MAX = 8,
	TLS_FILE_MAX_BYTES = 1 << 20,
	TLS_PROTOCOLS_MAX = 4,
	TLS_PROTOCOL_MAX_BYTES = 32,
};

struct tls_context;

/* The protocols that are spoken within TLS (ALPN, RFC 7301), the preferred first, as "http/1.1". A
 * client that names protocols, but none of these, is refused; one that names none is not. */
struct tls_protocols {
	const char *names[TLS_PROTOCOLS_MAX];
	size_t count; /* 0: ALPN is not spoken */
};

/* For the side that is called. `certificate` is a file with the certificate and those between it
 * and the root, in PEM, its own first; `key` holds its private key, in PEM. The clock says whether
 * it is valid; one that is not serves all the same, and `warning`, else empty, says so.
 * A file that is missing, wrong or may be read by others, a key that is encrypted, weak or does not
 * fit: an error with a sentence that names the file; `key_is_wrong` says that it is the key's. */
int tls_context_for_server(struct files *files, struct clock *clock, const char *certificate,
			   const char *key, const struct tls_protocols *protocols,
			   struct tls_context **context, bool *key_is_wrong, struct errbuf *warning,
			   struct errbuf *e) MUST_CHECK;
/* For the side that calls. `authorities` is a file of certificates in PEM that are trusted, and
 * nobody else; NULL: those that the system trusts. */
int tls_context_for_client(struct files *files, const char *authorities,
			   const struct tls_protocols *protocols, struct tls_context **context,
			   struct errbuf *e) MUST_CHECK;
void tls_context_hold(struct tls_context *context);    /* NULL is allowed */
void tls_context_release(struct tls_context *context); /* NULL is allowed */

struct loop_tls {
	struct tls_context *context; /* held by whoever is given it for as long as it is used */
	const char *name; /* of clients: whom they call, a host's name (<= 255 bytes) or address,
			   * which the other's certificate has to bear; copied */
	int64_t handshake_ms; /* within which the peers have to have shaken hands */
};

/* Connections that are accepted from now on speak TLS; those that are there stay as they are. May
 * be called again, with another context. Without one in `tls`, they do not. */
void loop_listener_speak_tls(struct loop_listener *listener, const struct loop_tls *tls);
/* Before it is started. The time of the handshake runs from its start. */
void loop_conn_speak_tls(struct loop_conn *conn, const struct loop_tls *tls);
bool loop_conn_speaks_tls(const struct loop_conn *conn);

#endif
