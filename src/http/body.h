/* What is between the socket and a handler's body bytes: chunks and gzip. Bytes in, bytes out, no
 * I/O. Private to http/. */
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

/* A gzip stream of one or more members, inflated piece by piece: how much becomes of it is the
 * caller's to watch after each piece. */
struct gunzip;

struct gunzip *gunzip_new(void);
void gunzip_reset(struct gunzip *gunzip);
void gunzip_free(struct gunzip *gunzip);
/* *piece is valid until the next call. `last`: no bytes come after *in; then the end of the input
 * gives END, or BAD if the stream is cut off. */
enum body_result gunzip_next(struct gunzip *gunzip, struct slice *in, bool last,
			     struct slice *piece, const char **reason);

/* The other way. */
struct gzip;
struct buf;

struct gzip *gzip_new(void);
void gzip_reset(struct gzip *gzip);
void gzip_free(struct gzip *gzip);
/* Appends what has become of the bytes so far; with `last` all, and the end. The buffer must have
 * room for gzip_bound(bytes.len): ERR_LIMIT else. */
int gzip_write(struct gzip *gzip, struct slice bytes, bool last, struct buf *out) MUST_CHECK;
size_t gzip_bound(size_t bytes);

#endif
