/* Codings of bodies (Content-Encoding): the table of those that clients may send, and gzip for
 * answers. Bytes in, bytes out, no I/O. For http/, and for whoever unpacks files (agent/content.h).
 *
 * gzip and zlib end in a checksum: a body that is damaged is noticed. Brotli and raw deflate have
 * none: that such a body is cut off, or that something follows it, is noticed always, a byte that
 * is another one only where the format forbids it. */
#ifndef HTTP_CODING_H
#define HTTP_CODING_H

#include "base/stats.h"
#include "http/body.h"

struct buf;
struct body_decoder;

/* One row of the table. */
struct coding {
	const char *name;     /* as Content-Encoding has it, in lower case */
	const char *also;     /* another name of the same; NULL: none */
	enum stat_id refused; /* counts bodies that are damaged or cut off */
	bool in_members;      /* behind its end another one may begin */
	/* Of refusals. */
	const char *damaged, *cut_off, *behind;
	void (*begin)(struct body_decoder *decoder);
	/* Takes from the front of *in. *piece is what became of it, empty if nothing did; the
	 * decoder notes the end. False: the data is damaged. */
	bool (*feed)(struct body_decoder *decoder, struct slice *in, struct slice *piece);
	/* Gives back what begin and feed took. May be NULL. */
	void (*end)(struct body_decoder *decoder);
};

enum { CODING_NAMES_BYTES = 64 };

/* The coding of that name, in any case; NULL: none of ours. */
const struct coding *coding_find(struct slice name);
/* All of them, as Accept-Encoding lists them. */
const char *coding_names(char text[CODING_NAMES_BYTES]);

/* A body of any coding, decoded piece by piece: how much becomes of it is the caller's to watch
 * after each piece. One after the other may be decoded by the same decoder. */
struct body_decoder *body_decoder_new(void);
void body_decoder_free(struct body_decoder *decoder);

/* From now on windows of zstd may be as large as zstd(1) takes unasked, 128 MB: for files, of which
 * the sender is not a stranger, or not one of many. */
void body_decoder_allow_files(struct body_decoder *decoder);

/* The front of a body comes. */
void body_decoder_begin(struct body_decoder *decoder, const struct coding *coding);
/* The body is not decoded on; the decoder keeps for the next one what each may keep. */
void body_decoder_end(struct body_decoder *decoder);
/* *piece is valid until the next call. `last`: no bytes come after *in; then the end of the input
 * gives END, or BAD if the body is cut off. Brotli may decode a whole window in one call, 16 MB in
 * some 25 ms, and gives it in pieces after that. */
enum body_result body_decoder_next(struct body_decoder *decoder, struct slice *in, bool last,
				   struct slice *piece, const char **reason);
/* Whether it holds pieces for which it needs no more input: brotli and zstd hold up to a window. */
bool body_decoder_holds_pieces(const struct body_decoder *decoder);
/* The most memory that this body has had at once, beside the decoder itself. With zlib it is
 * less than 64 KB; with brotli and zstd it is what the body says, within the 16 MB and 8 MB of
 * their windows and some more. It does not depend on how the body was cut into pieces. */
size_t body_decoder_peak_bytes(const struct body_decoder *decoder);

/* The other way. */
struct gzip;

struct gzip *gzip_new(void);
void gzip_reset(struct gzip *gzip);
void gzip_free(struct gzip *gzip);
/* Appends what has become of the bytes so far; with `last` all, and the end. The buffer must have
 * room for gzip_bound(bytes.len): ERR_LIMIT else. */
int gzip_write(struct gzip *gzip, struct slice bytes, bool last, struct buf *out) MUST_CHECK;
size_t gzip_bound(size_t bytes);

#endif
