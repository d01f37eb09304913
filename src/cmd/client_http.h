/* Requests to a server over HTTP, one after the other on a connection that is kept: what the client
 * commands and the poller talk through, and the only place that knows libcurl.
 *
 * Blocking; one thread at a time. */
#ifndef CMD_CLIENT_HTTP_H
#define CMD_CLIENT_HTTP_H

#include <stdatomic.h>

#include "base/base.h"

struct client_http;

struct client_http_options {
	const char *server; /* http://HOST:PORT; slashes at its end do not count */
	int64_t timeout_ms; /* of a whole request; 0: none but for connecting */
	const atomic_bool
		*cancelled;   /* ends what is under way, within about a second; may be NULL */
	bool compressed;      /* answers may come so */
	int64_t silent_max_s; /* without a byte for so long it is ended, ERR_TIMEOUT; 0: never */
};

enum {
	CLIENT_HEADERS_MAX = 4,
	CLIENT_ETAG_MAX_BYTES = 127,
	CLIENT_GRANULARITIES_MAX_BYTES = 511,
	CLIENT_NOTE_MAX_BYTES = 255
};

struct client_call {
	const char *path;                        /* with the query */
	const char *method;                      /* NULL: GET, or POST with a body */
	const char *headers[CLIENT_HEADERS_MAX]; /* `Name: value` */
	struct slice body;                       /* data NULL: none */
	/* A piece of the answer's body; false ends it with an error. NULL: nobody wants it. */
	bool (*take)(void *owner, long status, struct slice piece);
	void *owner;

	/* Result, where there was an answer. */
	long status;
	int64_t retry_after_ms; /* 0: not said */
	char etag[CLIENT_ETAG_MAX_BYTES + 1];
	char cut[16]; /* why there is more than the server gave: X-Granary-Cut; empty: this is all
		       */
	char granularities[CLIENT_GRANULARITIES_MAX_BYTES +
			   1];                /* X-Granary-Grain; longer ones are cut */
	char note[CLIENT_NOTE_MAX_BYTES + 1]; /* X-Granary-Note; likewise */
	int64_t offset;                       /* X-Granary-Offset; 0: none */
};

/* The options' texts outlive it. */
struct client_http *client_http_new(const struct client_http_options *options);
void client_http_free(struct client_http *http); /* NULL is allowed */

/* 0: an answer came, whatever its status. ERR_CANCELLED; ERR_TIMEOUT; ERR_NOT_FOUND: nobody listens
 * there; ERR_INVALID: else. With a sentence that names the server. What was sent may have arrived.
 */
int client_http_call(struct client_http *http, struct client_call *call,
		     struct errbuf *e) MUST_CHECK;

/* The sentence of an error's body: {"error":{"message":...}}, or the first of a list of errors of
 * single points; else the body as it is, cut. */
void client_http_sentence(struct slice body, char *sentence, size_t sentence_bytes);

#endif
