/* What is between the socket and a handler's body bytes: chunks here, what is compressed in
 * coding.h. Bytes in, bytes out, no I/O. Private to http/. */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include "base/base.h"

enum body_result {
	BODY_PIECE, /* *piece is data */
	BODY_MORE,  /* all of *in is used */
	BODY_END,   /* the body is complete; *in is what follows it */
	BODY_BAD,   /* *reason */
};

/* The chunked coding, read strictly (RFC 9112 7.1). http-parser as packaged is built without its
 * strict mode and takes any two bytes for the line end behind a chunk's data, so that two readers
 * may disagree about where a body ends; therefore this one. */
struct chunked {
	uint8_t state;
	uint8_t digits;
	uint16_t line_bytes;    /* of the extension */
	uint16_t trailer_bytes; /* of all trailers, which are checked and thrown away */
	uint64_t left;          /* of this chunk */
};

/* Zeroed is ready. Takes from the front of *in; call again until it is neither PIECE nor has bytes.
 */
enum body_result chunked_next(struct chunked *chunked, struct slice *in, struct slice *piece,
			      const char **reason);

#endif
