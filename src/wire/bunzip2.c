#include "wire/bunzip2.h"

#include <bzlib.h>

#include "base/mem.h"

enum { BUNZIP2_PIECE_BYTES = 64 << 10 };

struct bunzip2 {
	struct slice rest; /* what is still packed */
	size_t left_bytes; /* how much may still come out */
	struct buf *out;
	bz_stream stream;
};

static void *bunzip2_alloc(void *owner, int count, int size_bytes)
{
	(void)owner;
	return mem_alloc_array((size_t)count, (size_t)size_bytes);
}

static void bunzip2_free(void *owner, void *memory)
{
	(void)owner;
	mem_free(memory);
}

/* One piece, at the end of `out`: 0, ERR_LIMIT, or what libbz2 says in *status. Where nothing more
 * may come out there is room for one byte, which shows whether more would. */
static int bunzip2_piece(struct bunzip2 *b, int *status)
{
	char beyond;
	size_t room = b->left_bytes < BUNZIP2_PIECE_BYTES ? b->left_bytes : BUNZIP2_PIECE_BYTES;
	char *to = room ? buf_reserve(b->out, room) : &beyond;
	if (!to)
		return ERR_LIMIT;
	size_t packed = b->rest.len < BUNZIP2_PIECE_BYTES ? b->rest.len : BUNZIP2_PIECE_BYTES;
	b->stream.next_in = (char *)b->rest.data; /* libbz2 has no const, and does not write */
	b->stream.avail_in = (unsigned)packed;
	b->stream.next_out = to;
	b->stream.avail_out = room ? (unsigned)room : 1;
	*status = BZ2_bzDecompress(&b->stream);
	size_t taken = packed - b->stream.avail_in, made = (size_t)(b->stream.next_out - to);
	b->rest = (struct slice){b->rest.data + taken, b->rest.len - taken};
	if (made > room)
		return ERR_LIMIT;
	b->out->len += made;
	b->left_bytes -= made;
	if (*status == BZ_OK && !made && !taken)
		*status = BZ_UNEXPECTED_EOF; /* it waits for more, and there is no more */
	return 0;
}

static int bunzip2_stream(struct bunzip2 *b, struct errbuf *e)
{
	b->stream = (bz_stream){.bzalloc = bunzip2_alloc, .bzfree = bunzip2_free};
	int status = BZ2_bzDecompressInit(&b->stream, 0, 0), err = 0;
	ASSERT(status == BZ_OK); /* memory does not fail, and the arguments are right */
	while (status == BZ_OK && !err)
		err = bunzip2_piece(b, &status);
	BZ2_bzDecompressEnd(&b->stream);
	if (err)
		return errbuf_set(e, err, "bzip2: unpacked it has more bytes than are taken");
	if (status == BZ_UNEXPECTED_EOF)
		return errbuf_set(e, ERR_INVALID, "bzip2: it is cut off before its end");
	if (status != BZ_STREAM_END)
		return errbuf_set(e, ERR_INVALID, "bzip2: it is damaged (libbz2: %d)", status);
	return 0;
}

int bunzip2_whole(struct slice packed, size_t max_bytes, struct buf *out, struct errbuf *e)
{
	size_t room = out->max - out->len;
	struct bunzip2 b = {packed, .left_bytes = max_bytes < room ? max_bytes : room, .out = out};
	if (!bunzip2_begins(packed))
		return errbuf_set(e, ERR_INVALID, "not bzip2: it does not begin with BZh");
	for (int streams = 0; bunzip2_begins(b.rest); streams++) {
		if (streams == BUNZIP2_STREAMS_MAX)
			return errbuf_set(e, ERR_LIMIT, "bzip2: more than %d streams",
					  BUNZIP2_STREAMS_MAX);
		int err = bunzip2_stream(&b, e);
		if (err)
			return err;
	}
	return 0;
}
