#include "http/coding.h"

#include <brotli/decode.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/buf.h"
#include "base/mem.h"
#include "http/head.h"

enum {
	CODING_PIECE_BYTES = 128 << 10,
	/* 8 MB, the most that RFC 9659 allows for Content-Encoding. */
	ZSTD_WINDOW_LOG_MAX = 23,
	ZSTD_FILE_WINDOW_LOG_MAX = 27, /* 128 MB */
	GZIP_HEADER = 16,              /* zlib's way to ask for gzip instead of zlib headers */
	GZIP_LEVEL = 1, /* of JSON it makes 1/8 where level 6 makes 1/10 at four times the time */
	GZIP_MEM_LEVEL = 8,
};

struct body_decoder {
	const struct coding *coding; /* of the body that is decoded; NULL: none is */
	bool ended;                  /* its end has come; of gzip: that of a member */
	size_t held_bytes, peak_bytes;
	z_stream zlib;  /* of gzip and of deflate, kept from one body to the next */
	bool zlib_open; /* of this body: it is known which format of zlib's it has */
	BrotliDecoderState *brotli;
	ZSTD_DCtx *zstd;
	size_t zstd_bytes; /* of held_bytes those that are its */
	bool zstd_holds;   /* it may have more to give without more input */
	bool zstd_is_file;
	const char *why; /* what was fed last is not decoded; NULL: the coding says it */
	char piece[CODING_PIECE_BYTES];
};

/* ---- Memory of the libraries ----------------------------------------------------------------- */

/* Has its size in front, since a library does not say it when it gives memory back. */
struct coding_block {
	size_t bytes;
	max_align_t memory[];
};

static void *coding_alloc(void *opaque, size_t bytes)
{
	struct body_decoder *decoder = opaque;
	struct coding_block *block = mem_alloc(sizeof(*block) + bytes);
	block->bytes = bytes;
	decoder->held_bytes += bytes;
	if (decoder->held_bytes > decoder->peak_bytes)
		decoder->peak_bytes = decoder->held_bytes;
	return block->memory;
}

static void coding_give_back(void *opaque, void *memory)
{
	struct body_decoder *decoder = opaque;
	if (!memory)
		return;
	struct coding_block *block =
		(struct coding_block *)((char *)memory - offsetof(struct coding_block, memory));
	decoder->held_bytes -= block->bytes;
	mem_free(block);
}

static void *coding_alloc_zlib(void *opaque, unsigned count, unsigned size)
{
	return coding_alloc(opaque, (size_t)count * size);
}

/* ---- gzip and deflate ------------------------------------------------------------------------ */

static void coding_reset_zlib(struct body_decoder *decoder, int window_bits)
{
	int err = inflateReset2(&decoder->zlib, window_bits);
	ASSERT(err == Z_OK); /* it fails for wrong arguments only */
	decoder->zlib_open = true;
}

static void coding_begin_gzip(struct body_decoder *decoder)
{
	coding_reset_zlib(decoder, MAX_WBITS + GZIP_HEADER);
}

static bool coding_feed_zlib(struct body_decoder *decoder, struct slice *in, struct slice *piece)
{
	z_stream *z = &decoder->zlib;
	z->next_in = (const Bytef *)in->data;
	z->avail_in = in->len > UINT32_MAX ? UINT32_MAX : (unsigned)in->len;
	z->next_out = (Bytef *)decoder->piece;
	z->avail_out = CODING_PIECE_BYTES;
	int err = inflate(z, Z_NO_FLUSH);
	size_t used = (size_t)((const char *)z->next_in - in->data);
	if (used) /* what is empty may be NULL, and nothing may be added to that, not even 0 */
		*in = (struct slice){in->data + used, in->len - used};
	*piece = (struct slice){decoder->piece, CODING_PIECE_BYTES - z->avail_out};
	decoder->ended = err == Z_STREAM_END;
	return err == Z_OK || err == Z_STREAM_END || err == Z_BUF_ERROR;
}

static void coding_begin_deflate(struct body_decoder *decoder)
{
	decoder->zlib_open = false;
}

/* `deflate` means the format of zlib (RFC 9110 8.4.1.2), but some send the data without zlib's head
 * and checksum. The low half of a zlib stream's first byte is 8 (RFC 1950 2.2). Raw data would
 * begin so where its first block were stored and had a bit set in its padding (RFC 1951 3.2.4),
 * which no encoder does. */
static bool coding_feed_deflate(struct body_decoder *decoder, struct slice *in, struct slice *piece)
{
	if (!decoder->zlib_open && !in->len)
		return true;
	if (!decoder->zlib_open) {
		bool has_head = (in->data[0] & 0x0f) == Z_DEFLATED;
		coding_reset_zlib(decoder, has_head ? MAX_WBITS : -MAX_WBITS);
	}
	return coding_feed_zlib(decoder, in, piece);
}

/* ---- br -------------------------------------------------------------------------------------- */

static void coding_begin_br(struct body_decoder *decoder)
{
	decoder->brotli = BrotliDecoderCreateInstance(coding_alloc, coding_give_back, decoder);
	ASSERT(decoder->brotli); /* it fails for want of memory only */
}

/* The library is given no room for output: it decodes into its window, from where it is taken. */
static bool coding_feed_br(struct body_decoder *decoder, struct slice *in, struct slice *piece)
{
	const uint8_t *next = (const uint8_t *)in->data;
	size_t left = in->len, room = 0, len = CODING_PIECE_BYTES;
	BrotliDecoderResult result =
		BrotliDecoderDecompressStream(decoder->brotli, &left, &next, &room, NULL, NULL);
	if (left != in->len)
		*in = (struct slice){(const char *)next, left};
	if (result == BROTLI_DECODER_RESULT_ERROR)
		return false;
	const uint8_t *data = BrotliDecoderTakeOutput(decoder->brotli, &len);
	*piece = (struct slice){(const char *)data, len};
	/* It says so only when all output has been taken. */
	decoder->ended = result == BROTLI_DECODER_RESULT_SUCCESS;
	return true;
}

static void coding_end_br(struct body_decoder *decoder)
{
	BrotliDecoderDestroyInstance(decoder->brotli);
	decoder->brotli = NULL;
}

/* ---- zstd ------------------------------------------------------------------------------------ */

/* The library says how much memory it has only when it is asked. */
static void coding_count_zstd(struct body_decoder *decoder)
{
	size_t bytes = decoder->zstd ? ZSTD_sizeof_DCtx(decoder->zstd) : 0;
	decoder->held_bytes += bytes - decoder->zstd_bytes;
	decoder->zstd_bytes = bytes;
	if (decoder->held_bytes > decoder->peak_bytes)
		decoder->peak_bytes = decoder->held_bytes;
}

/* Also where a frame has ended and another one begins. */
static void coding_begin_zstd(struct body_decoder *decoder)
{
	if (decoder->zstd)
		return;
	decoder->zstd = ZSTD_createDCtx();
	ASSERT(decoder->zstd); /* it fails for want of memory only */
	int log_max = decoder->zstd_is_file ? ZSTD_FILE_WINDOW_LOG_MAX : ZSTD_WINDOW_LOG_MAX;
	size_t err = ZSTD_DCtx_setParameter(decoder->zstd, ZSTD_d_windowLogMax, log_max);
	ASSERT(!ZSTD_isError(err));
	coding_count_zstd(decoder);
}

static bool coding_feed_zstd(struct body_decoder *decoder, struct slice *in, struct slice *piece)
{
	ZSTD_inBuffer from = {in->data, in->len, 0};
	ZSTD_outBuffer to = {decoder->piece, CODING_PIECE_BYTES, 0};
	size_t left = ZSTD_decompressStream(decoder->zstd, &to, &from);
	if (from.pos)
		*in = (struct slice){in->data + from.pos, in->len - from.pos};
	coding_count_zstd(decoder);
	*piece = (struct slice){decoder->piece, to.pos};
	/* 0: a frame has ended, and all of it was given out. */
	decoder->ended = left == 0;
	decoder->zstd_holds = left && to.pos == CODING_PIECE_BYTES;
	if (ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge)
		decoder->why = decoder->zstd_is_file
				       ? "the window of the zstd data is larger than 128 MB"
				       : "the window of the zstd data is larger than 8 MB";
	return !ZSTD_isError(left);
}

static void coding_end_zstd(struct body_decoder *decoder)
{
	ZSTD_freeDCtx(decoder->zstd);
	decoder->zstd = NULL;
	decoder->zstd_holds = false;
	coding_count_zstd(decoder);
}

/* ---- The table ------------------------------------------------------------------------------- */

#define REASONS(what)                                                                              \
	.damaged = "the " what " data is damaged", .cut_off = "the " what " data is cut off",      \
	.behind = "there is something behind the end of the " what " data"

static const struct coding coding_table[] = {
	{.name = "gzip",
	 .also = "x-gzip",
	 .refused = STAT_http_refused_gzip,
	 .in_members = true,
	 REASONS("gzip"),
	 .begin = coding_begin_gzip,
	 .feed = coding_feed_zlib},
	{.name = "deflate",
	 .refused = STAT_http_refused_deflate,
	 REASONS("deflate"),
	 .begin = coding_begin_deflate,
	 .feed = coding_feed_deflate},
	{.name = "br",
	 .refused = STAT_http_refused_br,
	 REASONS("brotli"),
	 .begin = coding_begin_br,
	 .feed = coding_feed_br,
	 .end = coding_end_br},
	{.name = "zstd",
	 .refused = STAT_http_refused_zstd,
	 .in_members = true,
	 REASONS("zstd"),
	 .begin = coding_begin_zstd,
	 .feed = coding_feed_zstd,
	 .end = coding_end_zstd},
};
#undef REASONS

const struct coding *coding_find(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(coding_table); i++) {
		const struct coding *coding = &coding_table[i];
		if (head_name_is(name, coding->name) ||
		    (coding->also && head_name_is(name, coding->also)))
			return coding;
	}
	return NULL;
}

const char *coding_names(char text[CODING_NAMES_BYTES])
{
	size_t len = 0;
	for (size_t i = 0; i < ARRAY_LEN(coding_table); i++) {
		len += (size_t)snprintf(text + len, CODING_NAMES_BYTES - len, "%s%s", i ? ", " : "",
					coding_table[i].name);
		ASSERT(len < CODING_NAMES_BYTES);
	}
	return text;
}

/* ---- Decoding -------------------------------------------------------------------------------- */

struct body_decoder *body_decoder_new(void)
{
	struct body_decoder *decoder = mem_alloc(sizeof(*decoder));
	decoder->coding = NULL;
	decoder->brotli = NULL;
	decoder->zstd = NULL;
	decoder->zstd_holds = decoder->zstd_is_file = false;
	decoder->why = NULL;
	decoder->zstd_bytes = decoder->held_bytes = decoder->peak_bytes = 0;
	decoder->zlib = (z_stream){
		.zalloc = coding_alloc_zlib, .zfree = coding_give_back, .opaque = decoder};
	int err = inflateInit2(&decoder->zlib, MAX_WBITS);
	ASSERT(err == Z_OK);
	return decoder;
}

void body_decoder_free(struct body_decoder *decoder)
{
	if (!decoder)
		return;
	body_decoder_end(decoder);
	inflateEnd(&decoder->zlib);
	ASSERT(!decoder->held_bytes);
	mem_free(decoder);
}

void body_decoder_allow_files(struct body_decoder *decoder)
{
	decoder->zstd_is_file = true;
}

void body_decoder_begin(struct body_decoder *decoder, const struct coding *coding)
{
	body_decoder_end(decoder);
	decoder->coding = coding;
	decoder->ended = false;
	decoder->peak_bytes = decoder->held_bytes;
	coding->begin(decoder);
}

void body_decoder_end(struct body_decoder *decoder)
{
	if (decoder->coding && decoder->coding->end)
		decoder->coding->end(decoder);
	decoder->coding = NULL;
}

bool body_decoder_holds_pieces(const struct body_decoder *decoder)
{
	return decoder->zstd_holds ||
	       (decoder->brotli && BrotliDecoderHasMoreOutput(decoder->brotli));
}

size_t body_decoder_peak_bytes(const struct body_decoder *decoder)
{
	return decoder->peak_bytes;
}

enum body_result body_decoder_next(struct body_decoder *decoder, struct slice *in, bool last,
				   struct slice *piece, const char **reason)
{
	const struct coding *coding = decoder->coding;
	for (;;) {
		if (decoder->ended) {
			if (!in->len)
				return last ? BODY_END : BODY_MORE;
			*reason = coding->behind;
			if (!coding->in_members)
				return BODY_BAD;
			decoder->ended = false;
			coding->begin(decoder);
		}
		size_t before = in->len;
		*piece = (struct slice){NULL, 0};
		decoder->why = NULL;
		bool fed = coding->feed(decoder, in, piece);
		*reason = decoder->why ? decoder->why : coding->damaged;
		if (!fed)
			return BODY_BAD;
		if (piece->len)
			return BODY_PIECE;
		if (decoder->ended || in->len != before)
			continue;
		/* No progress: all input is used and all output given. */
		*reason = coding->cut_off;
		return last ? BODY_BAD : BODY_MORE;
	}
}

/* ---- gzip, the other way --------------------------------------------------------------------- */

static void *gzip_alloc(void *opaque, unsigned count, unsigned size)
{
	(void)opaque;
	return mem_alloc_array(count, size);
}

static void gzip_give_back(void *opaque, void *memory)
{
	(void)opaque;
	mem_free(memory);
}

struct gzip {
	z_stream stream;
};

struct gzip *gzip_new(void)
{
	struct gzip *gzip = mem_alloc(sizeof(*gzip));
	gzip->stream = (z_stream){.zalloc = gzip_alloc, .zfree = gzip_give_back};
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
