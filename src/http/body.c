#include "http/body.h"

#define ZLIB_CONST
#include <zlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "wire/number.h"

/* ---- Chunks ---------------------------------------------------------------------------------
 *
 *   size [;extension] CR LF  data CR LF  ...  0 [;extension] CR LF  [trailer CR LF]...  CR LF
 */

enum chunk_state {
	CHUNK_SIZE, /* zero: a chunk begins */
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER_FIRST,
	CHUNK_TRAILER,
	CHUNK_TRAILER_LF,
	CHUNK_END_LF,
	CHUNK_DONE,
};

enum { CHUNK_DIGITS_MAX = 15, CHUNK_EXTENSION_MAX_BYTES = 256, CHUNK_TRAILERS_MAX_BYTES = 4096 };

/* Each of these takes one byte and gives NULL or the reason why it cannot stand there. */

static const char *take_size(struct chunked *chunked, uint8_t c)
{
	int digit = number_hex_digit((char)c);
	if (digit >= 0) {
		if (++chunked->digits > CHUNK_DIGITS_MAX)
			return "a chunk size is too long";
		chunked->left = chunked->left * 16 + (unsigned)digit;
		return NULL;
	}
	if (!chunked->digits || (c != '\r' && c != ';'))
		return "a chunk size is no hexadecimal number";
	chunked->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
	chunked->line_bytes = 0;
	return NULL;
}

static const char *take_extension(struct chunked *chunked, uint8_t c)
{
	if (c == '\r') {
		chunked->state = CHUNK_SIZE_LF;
		return NULL;
	}
	if ((c < ' ' && c != '\t') || c == 0x7f)
		return "a chunk extension has a control byte";
	return ++chunked->line_bytes > CHUNK_EXTENSION_MAX_BYTES ? "a chunk extension is too long"
								 : NULL;
}

static const char *take_line_end(struct chunked *chunked, uint8_t c, char want, uint8_t next)
{
	chunked->state = next;
	return c == (uint8_t)want ? NULL : "a chunk does not end in CR LF";
}

static const char *take_trailer(struct chunked *chunked, uint8_t c)
{
	bool first = chunked->state == CHUNK_TRAILER_FIRST;
	if (c == '\r') {
		chunked->state = first ? CHUNK_END_LF : CHUNK_TRAILER_LF;
		return NULL;
	}
	if ((c < ' ' && c != '\t') || c == 0x7f || (first && (c == ' ' || c == '\t')))
		return "a trailer is malformed";
	chunked->state = CHUNK_TRAILER;
	return ++chunked->trailer_bytes > CHUNK_TRAILERS_MAX_BYTES ? "the trailers are too long"
								   : NULL;
}

static const char *take_byte(struct chunked *chunked, uint8_t c)
{
	switch ((enum chunk_state)chunked->state) {
	case CHUNK_SIZE:
		return take_size(chunked, c);
	case CHUNK_EXTENSION:
		return take_extension(chunked, c);
	case CHUNK_SIZE_LF:
		return take_line_end(chunked, c, '\n',
				     chunked->left ? CHUNK_DATA : CHUNK_TRAILER_FIRST);
	case CHUNK_DATA_CR:
		return take_line_end(chunked, c, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		chunked->digits = 0;
		return take_line_end(chunked, c, '\n', CHUNK_SIZE);
	case CHUNK_TRAILER_FIRST:
	case CHUNK_TRAILER:
		return take_trailer(chunked, c);
	case CHUNK_TRAILER_LF:
		return take_line_end(chunked, c, '\n', CHUNK_TRAILER_FIRST);
	case CHUNK_END_LF:
		return take_line_end(chunked, c, '\n', CHUNK_DONE);
	case CHUNK_DATA:
	case CHUNK_DONE:
		break;
	}
	return "a chunk is malformed";
}

static struct slice take_data(struct chunked *chunked, struct slice *in)
{
	size_t len = chunked->left < in->len ? (size_t)chunked->left : in->len;
	struct slice piece = {in->data, len};
	*in = (struct slice){in->data + len, in->len - len};
	chunked->left -= len;
	if (!chunked->left)
		chunked->state = CHUNK_DATA_CR;
	return piece;
}

enum body_result chunked_next(struct chunked *chunked, struct slice *in, struct slice *piece,
			      const char **reason)
{
	while (in->len && chunked->state != CHUNK_DONE) {
		if (chunked->state == CHUNK_DATA) {
			*piece = take_data(chunked, in);
			return BODY_PIECE;
		}
		*reason = take_byte(chunked, (uint8_t)in->data[0]);
		if (*reason)
			return BODY_BAD;
		*in = (struct slice){in->data + 1, in->len - 1};
	}
	return chunked->state == CHUNK_DONE ? BODY_END : BODY_MORE;
}

/* ---- gzip ------------------------------------------------------------------------------------ */

enum {
	GUNZIP_PIECE_BYTES = 128 << 10,
	GZIP_HEADER = 16, /* zlib's way to ask for gzip instead of zlib headers */
	GZIP_LEVEL = 1,   /* of JSON it makes 1/8 where level 6 makes 1/10 at four times the time */
	GZIP_MEM_LEVEL = 8,
};

static void *zlib_alloc(void *opaque, unsigned count, unsigned size)
{
	(void)opaque;
	return mem_alloc_array(count, size);
}

static void zlib_free(void *opaque, void *ptr)
{
	(void)opaque;
	mem_free(ptr);
}

struct gunzip {
	z_stream stream;
	bool between; /* a member has ended and no other has begun */
	char piece[GUNZIP_PIECE_BYTES];
};

struct gunzip *gunzip_new(void)
{
	struct gunzip *gunzip = mem_alloc(sizeof(*gunzip));
	gunzip->stream = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free};
	gunzip->between = false;
	int err = inflateInit2(&gunzip->stream, MAX_WBITS + GZIP_HEADER);
	ASSERT(err == Z_OK); /* it fails for wrong arguments only */
	return gunzip;
}

void gunzip_reset(struct gunzip *gunzip)
{
	inflateReset(&gunzip->stream);
	gunzip->between = false;
}

void gunzip_free(struct gunzip *gunzip)
{
	if (!gunzip)
		return;
	inflateEnd(&gunzip->stream);
	mem_free(gunzip);
}

static size_t inflate_some(struct gunzip *gunzip, struct slice *in, int *err)
{
	z_stream *z = &gunzip->stream;
	z->next_in = (const Bytef *)in->data;
	z->avail_in = in->len > UINT32_MAX ? UINT32_MAX : (unsigned)in->len;
	z->next_out = (Bytef *)gunzip->piece;
	z->avail_out = GUNZIP_PIECE_BYTES;
	*err = inflate(z, Z_NO_FLUSH);
	size_t used = (size_t)((const char *)z->next_in - in->data);
	if (used) /* what is empty may be NULL, and nothing may be added to that, not even 0 */
		*in = (struct slice){in->data + used, in->len - used};
	return GUNZIP_PIECE_BYTES - z->avail_out;
}

enum body_result gunzip_next(struct gunzip *gunzip, struct slice *in, bool last,
			     struct slice *piece, const char **reason)
{
	for (;;) {
		if (gunzip->between) {
			if (!in->len)
				return last ? BODY_END : BODY_MORE;
			gunzip_reset(gunzip);
		}
		int err;
		size_t before = in->len;
		size_t len = inflate_some(gunzip, in, &err);
		gunzip->between = err == Z_STREAM_END;
		if (err != Z_OK && err != Z_STREAM_END && err != Z_BUF_ERROR) {
			*reason = "the gzip data is damaged";
			return BODY_BAD;
		}
		if (len) {
			*piece = (struct slice){gunzip->piece, len};
			return BODY_PIECE;
		}
		if (gunzip->between || in->len != before)
			continue;
		/* No progress: all input is used and all output given. */
		*reason = "the gzip data is cut off";
		return last ? BODY_BAD : BODY_MORE;
	}
}

struct gzip {
	z_stream stream;
};

struct gzip *gzip_new(void)
{
	struct gzip *gzip = mem_alloc(sizeof(*gzip));
	gzip->stream = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free};
	int err = deflateInit2(&gzip->stream, GZIP_LEVEL, Z_DEFLATED, MAX_WBITS + GZIP_HEADER,
			       GZIP_MEM_LEVEL, Z_DEFAULT_STRATEGY);
	ASSERT(err == Z_OK);
	return gzip;
}

void gzip_reset(struct gzip *gzip)
{
	deflateReset(&gzip->stream);
}

void gzip_free(struct gzip *gzip)
{
	if (!gzip)
		return;
	deflateEnd(&gzip->stream);
	mem_free(gzip);
}

/* zlib's own deflateBound, which wants a stream that has taken nothing yet, plus what such a stream
 * may still hold back from earlier calls (at most two buffers of its memory level). */
size_t gzip_bound(size_t bytes)
{
	return bytes + (bytes >> 3) + (bytes >> 6) + (256 << 10);
}

int gzip_write(struct gzip *gzip, struct slice bytes, bool last, struct buf *out)
{
	z_stream *z = &gzip->stream;
	size_t room = gzip_bound(bytes.len);
	ASSERT(bytes.len <= UINT32_MAX / 2);
	char *to = buf_reserve(out, room);
	if (!to)
		return ERR_LIMIT;
	z->next_in = (const Bytef *)bytes.data;
	z->avail_in = (unsigned)bytes.len;
	z->next_out = (Bytef *)to;
	z->avail_out = (unsigned)room;
	int err = deflate(z, last ? Z_FINISH : Z_NO_FLUSH);
	ASSERT(err == (last ? Z_STREAM_END : Z_OK) || (!last && err == Z_BUF_ERROR));
	ASSERT(z->avail_in == 0);
	out->len += room - z->avail_out;
	return 0;
}
