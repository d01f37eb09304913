/* Private to api/: an answer that is sent while it is made. What is short leaves whole, what is
 * long as a stream, as fast as the client reads. */
#ifndef API_SENDING_H
#define API_SENDING_H

#include "base/base.h"
#include "base/buf.h"

struct http_request;

enum { SENDING_FLUSH_BYTES = 64 << 10 }; /* gathered before it is sent */

struct sending {
	const char *content_type;
	int status;
	bool streaming;
	bool stalled; /* the client does not read; whoever is told that it does clears it */
};

/* Sends what was gathered. ERR_BUSY: it is stalled, and to be asked again with the rest; another
 * error: the client gets no more, break the answer off. */
int sending_send(struct sending *sending, struct http_request *request, struct buf *out) MUST_CHECK;
/* The answer is complete: whole if nothing of it was sent yet; of a stream all was. `cut` (NULL:
 * nothing was) says why it is not all, in a header or a trailer. */
void sending_end(struct sending *sending, struct http_request *request, struct slice whole,
		 const char *cut);
/* Instead of the answer an error; a stream breaks off, which is logged under `what` it was. */
void sending_fail(struct sending *sending, struct http_request *request, const char *what,
		  int status, const char *sentence);

#endif
