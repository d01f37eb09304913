#include "wire/sentry_store.h"

#define ZLIB_CONST
#include <zlib.h>

#include "base/mem.h"

enum {
	SENTRY_STORE_PIECE_BYTES = 64 << 10,
	BASE64_BITS = 6, /* of a digit */
	BASE64_DIGITS = 4,
};

void sentry_store_init(struct sentry_store *store, size_t max_bytes)
{
	*store = (struct sentry_store){.event = {NULL, 0}};
	buf_init(&store->decoded, max_bytes);
	buf_init(&store->unpacked, max_bytes);
}

void sentry_store_release(struct sentry_store *store)
{
	buf_release(&store->decoded);
	buf_release(&store->unpacked);
}

/* ---- base64 ---------------------------------------------------------------------------------- */

struct base64 {
	uint32_t bits;           /* of digits that are no whole byte yet */
	size_t digits, paddings; /* so far */
};

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* False: it is none of base64's, or stands behind the end. */
static bool base64_take(struct base64 *b, char c, char **to)
{
	int value = base64_value(c);
	if (c == '\r' || c == '\n' || c == ' ' || c == '\t')
		return true;
	if (c == '=')
		return ++b->paddings <= 2;
	if (value < 0 || b->paddings)
		return false;
	b->bits = b->bits << BASE64_BITS | (uint32_t)value;
	/* The first digit of four makes no byte whole, each other one does. */
	size_t place = b->digits++ % BASE64_DIGITS;
	if (place)
		*(*to)++ = (char)(b->bits >> (BASE64_BITS - 2 * place));
	return true;
}

/* The end may be without padding. */
static bool base64_is_whole(const struct base64 *b)
{
	return b->digits % BASE64_DIGITS != 1 &&
	       (!b->paddings || (b->digits + b->paddings) % BASE64_DIGITS == 0);
}

static int base64_decode(struct slice text, struct buf *out, struct errbuf *e)
{
	struct base64 b = {0};
	char *begin = buf_reserve(out, text.len / BASE64_DIGITS * 3 + 3), *to = begin;
	if (!begin)
		return errbuf_set(e, ERR_LIMIT,
				  "base64: unpacked it has more bytes than are taken");
	for (size_t i = 0; i < text.len; i++)
		if (!base64_take(&b, text.data[i], &to))
			return errbuf_set(e, ERR_INVALID, "base64: byte %zu does not belong there",
					  i);
	if (!base64_is_whole(&b))
		return errbuf_set(e, ERR_INVALID, "base64: it is cut off before its end");
	out->len = (size_t)(to - begin);
	return 0;
}

/* ---- zlib ------------------------------------------------------------------------------------ */

static void *inflate_alloc(UNUSED void *owner, unsigned count, unsigned size_bytes)
{
	return mem_alloc_array(count, size_bytes);
}

static void inflate_free(UNUSED void *owner, void *memory)
{
	mem_free(memory);
}

/* One piece, at the end of `out`: 0, ERR_LIMIT, or what zlib says in *status. Where nothing more
 * may come out there is room for one byte, which shows whether more would. */
static int inflate_piece(z_stream *stream, struct buf *out, int *status)
{
	char beyond;
	size_t left = out->max - out->len;
	size_t room = left < SENTRY_STORE_PIECE_BYTES ? left : SENTRY_STORE_PIECE_BYTES;
	char *to = room ? buf_reserve(out, room) : &beyond;
	if (!to)
		return ERR_LIMIT;
	stream->next_out = (Bytef *)to;
	stream->avail_out = room ? (unsigned)room : 1;
	*status = inflate(stream, Z_NO_FLUSH);
	size_t made = (size_t)((char *)stream->next_out - to);
	if (made > room)
		return ERR_LIMIT;
	out->len += made;
	return 0;
}

static int inflate_whole(struct slice packed, struct buf *out, struct errbuf *e)
{
	ASSERT(packed.len <= UINT32_MAX);
	z_stream stream = {.next_in = (const Bytef *)packed.data,
			   .avail_in = (unsigned)packed.len,
			   .zalloc = inflate_alloc,
			   .zfree = inflate_free};
	int status = inflateInit(&stream), err = 0;
	ASSERT(status == Z_OK); /* memory does not fail, and the arguments are right */
	while (status == Z_OK && !err)
		err = inflate_piece(&stream, out, &status);
	inflateEnd(&stream);
	if (err)
		return errbuf_set(e, err, "zlib: unpacked it has more bytes than are taken");
	if (status == Z_BUF_ERROR)
		return errbuf_set(e, ERR_INVALID, "zlib: it is cut off before its end");
	if (status != Z_STREAM_END)
		return errbuf_set(e, ERR_INVALID, "zlib: it is damaged");
	if (stream.avail_in)
		return errbuf_set(e, ERR_INVALID, "zlib: something follows behind its end");
	return 0;
}

int sentry_store_unpack(struct sentry_store *store, struct slice body, struct errbuf *e)
{
	int err = 0;
	store->event = body;
	if (body.len && body.data[0] == 'e') {
		err = base64_decode(body, &store->decoded, e);
		store->event = buf_slice(&store->decoded);
	}
	if (!err && store->event.len && store->event.data[0] == 'x') {
		err = inflate_whole(store->event, &store->unpacked, e);
		store->event = buf_slice(&store->unpacked);
	}
	return err;
}
