/* Requests to a server over HTTP, one after the other on a connection that is kept: what the client
 * commands and the poller talk through.
 *
 * Blocking; one thread at a time. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <stdatomic.h>

#include "base/base.h"

struct buf;
struct http_client;

struct http_client_options {
	const char *server; /* http[s]://HOST:PORT, slashes at its end do not count; or unix:PATH */
	const char *token;  /* shown with each request; NULL: none. It is copied */
	bool own_socket; /* a socket is used only if root or this user listens there: ERR_DENIED */
	const char *ca; /* a file of certificates in PEM, and no server but theirs is trusted; NULL:
			 * those that the system trusts */
	int64_t timeout_ms; /* of a whole request; 0: none but for connecting */
	const atomic_bool
		*cancelled;   /* ends what is under way, within about a second; may be NULL */
	bool compressed;      /* answers may come so */
	int64_t silent_max_s; /* without a byte for so long it is ended, ERR_TIMEOUT; 0: never */
};

#define HTTP_CLIENT_UNIX "unix:" /* begins the path of a socket of this machine */

enum {
	CLIENT_HEADERS_MAX = 4,
	CLIENT_ETAG_MAX_BYTES = 127,
	CLIENT_GRANULARITIES_MAX_BYTES = 511,
	CLIENT_NOTE_MAX_BYTES = 255
};

struct http_call {
	const char *path;                        /* with the query */
	const char *method;                      /* NULL: GET, or POST with a body */
	const char *headers[CLIENT_HEADERS_MAX]; /* `Name: value` */
	struct slice body;                       /* data NULL: none */
	/* A piece of the answer's body; false ends it with an error. NULL: nobody wants it. */
	bool (*take)(void *owner, long status, struct slice piece);
	void *owner;

	/* Result, where there was an answer; there before the first piece is taken. */
	long status;
	int64_t retry_after_ms; /* 0: not said */
	char etag[CLIENT_ETAG_MAX_BYTES + 1];
	char cut[16]; /* why there is more than the server gave: X-Granary-Cut; empty: this is all
		       */
	char granularities[CLIENT_GRANULARITIES_MAX_BYTES +
			   1];                /* X-Granary-Grain; longer ones are cut */
	char note[CLIENT_NOTE_MAX_BYTES + 1]; /* X-Granary-Note; likewise */
	int64_t offset;                       /* X-Granary-Offset; 0: none */
	int64_t lost;                         /* X-Granary-Lost; likewise */
	int64_t left_out;                     /* X-Granary-Left-Out; likewise */
	struct buf *next; /* takes X-Granary-Next; empty: the answer has none. NULL: nobody wants it
			   */
};

/* The options' texts outlive it. */
struct http_client *http_client_new(const struct http_client_options *options);
void http_client_free(struct http_client *http); /* NULL is allowed */

/* 0: an answer came, whatever its status. ERR_CANCELLED; ERR_TIMEOUT; ERR_NOT_FOUND: nobody listens
 * there; ERR_INVALID: else, as where its certificate is not to be trusted. With a sentence that
 * names the server. What was sent may have arrived.
 */
int http_client_call(struct http_client *http, struct http_call *call, struct errbuf *e) MUST_CHECK;

/* The sentence of an error's body: {"error":{"message":...}}, or the first of a list of errors of
 * single points; else the body as it is, cut. */
void http_client_sentence(struct slice body, char *sentence, size_t sentence_bytes);

#endif
