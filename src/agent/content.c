#include "agent/content.h"

#include "base/hash.h"
#include "base/mem.h"
#include "http/coding.h"

enum { CONTENT_PACKED_PIECE_BYTES = 64 << 10 };

/* What is needed to unpack a content, one piece after the other. */
struct content_unpacking {
	struct body_decoder *decoder;
	const struct coding *coding;
	uint64_t packed_at;   /* of the file, behind what the decoder was given */
	uint64_t unpacked_at; /* of the content, at the first byte of `piece` */
	struct slice piece;   /* of the content, the decoder's */
	struct slice in;      /* of `packed`, what the decoder has not taken */
	bool ended;
	char packed[CONTENT_PACKED_PIECE_BYTES];
};

struct content {
	struct files *files;
	int handle;
	struct content_unpacking *unpacking; /* NULL: it is plain */
};

enum content_packing content_packing_of(struct slice name)
{
	enum content_packing packing = CONTENT_ZSTD;
	while (!slice_ends_with(name, slice_of(content_ending(packing))))
		packing--;
	return packing;
}

const char *content_ending(enum content_packing packing)
{
	static const char *const endings[] = {
		[CONTENT_PLAIN] = "", [CONTENT_GZIP] = ".gz", [CONTENT_ZSTD] = ".zst"};
	return endings[packing];
}

static struct content_unpacking *content_unpacking_new(enum content_packing packing)
{
	struct content_unpacking *u = mem_zalloc(sizeof(*u));
	u->decoder = body_decoder_new();
	u->coding = coding_find(packing == CONTENT_GZIP ? SLICE("gzip") : SLICE("zstd"));
	ASSERT(u->coding);
	body_decoder_begin(u->decoder, u->coding);
	return u;
}

int content_open(struct files *files, const char *path, enum content_packing packing,
		 struct content **content, struct file_look *look)
{
	int handle, err = files->open(files, path, &handle);
	if (err)
		return err;
	err = files->look(files, handle, look);
	if (!err && look->type != FILE_REGULAR)
		err = ERR_INVALID;
	if (err) {
		files->close(files, handle);
		return err;
	}
	*content = mem_zalloc(sizeof(**content));
	(*content)->files = files;
	(*content)->handle = handle;
	if (packing != CONTENT_PLAIN)
		(*content)->unpacking = content_unpacking_new(packing);
	return 0;
}

void content_close(struct content *content)
{
	if (!content)
		return;
	content->files->close(content->files, content->handle);
	if (content->unpacking)
		body_decoder_free(content->unpacking->decoder);
	mem_free(content->unpacking);
	mem_free(content);
}

bool content_is_packed(const struct content *content)
{
	return content->unpacking;
}

int content_look(const struct content *content, struct file_look *look)
{
	return content->files->look(content->files, content->handle, look);
}

/* ---- Unpacking ------------------------------------------------------------------------------- */

static void content_rewind(struct content_unpacking *u)
{
	body_decoder_begin(u->decoder, u->coding);
	u->packed_at = u->unpacked_at = 0;
	u->piece = u->in = (struct slice){NULL, 0};
	u->ended = false;
}

/* The next piece takes the place of the last; empty and ended: there is none. */
static int content_unpack_piece(struct content *content)
{
	struct content_unpacking *u = content->unpacking;
	const char *reason;
	u->unpacked_at += u->piece.len;
	u->piece = (struct slice){NULL, 0};
	while (!u->ended && !u->piece.len) {
		size_t bytes = 0;
		if (!u->in.len) {
			int err = content->files->read_at(content->files, content->handle,
							  u->packed_at, u->packed,
							  sizeof(u->packed), &bytes);
			if (err)
				return err;
			u->packed_at += bytes;
			u->in = (struct slice){u->packed, bytes};
		}
		enum body_result result =
			body_decoder_next(u->decoder, &u->in, !u->in.len, &u->piece, &reason);
		if (result == BODY_BAD)
			return ERR_DAMAGED;
		u->ended = result == BODY_END;
	}
	return 0;
}

/* The piece that has the byte at an offset; empty at the end. */
static int content_unpack_to(struct content *content, uint64_t offset)
{
	struct content_unpacking *u = content->unpacking;
	int err = 0;
	if (offset < u->unpacked_at)
		content_rewind(u);
	while (!err && !u->ended && offset >= u->unpacked_at + u->piece.len)
		err = content_unpack_piece(content);
	if (err)
		content_rewind(u);
	return err;
}

static int content_read_packed(struct content *content, uint64_t offset, char *to, size_t max_bytes,
			       size_t *bytes)
{
	struct content_unpacking *u = content->unpacking;
	*bytes = 0;
	while (*bytes < max_bytes) {
		int err = content_unpack_to(content, offset + *bytes);
		if (err)
			return err;
		uint64_t skip = offset + *bytes - u->unpacked_at;
		if (skip >= u->piece.len)
			return 0;
		size_t len = u->piece.len - (size_t)skip;
		len = len < max_bytes - *bytes ? len : max_bytes - *bytes;
		memcpy(to + *bytes, u->piece.data + skip, len);
		*bytes += len;
	}
	return 0;
}

int content_read(struct content *content, uint64_t offset, void *to, size_t max_bytes,
		 size_t *bytes)
{
	if (content->unpacking)
		return content_read_packed(content, offset, to, max_bytes, bytes);
	return content->files->read_at(content->files, content->handle, offset, to, max_bytes,
				       bytes);
}

/* ---- Marks ----------------------------------------------------------------------------------- */

struct content_mark content_mark_of(const void *bytes, size_t len)
{
	ASSERT(len <= CONTENT_MARK_MAX_BYTES);
	return (struct content_mark){(uint32_t)len, len ? hash64(bytes, len, 0) : 0};
}

static int content_mark_between(struct content *content, uint64_t from, size_t len,
				struct content_mark *mark)
{
	char bytes[CONTENT_MARK_MAX_BYTES];
	size_t got;
	int err = content_read(content, from, bytes, len, &got);
	if (!err && got < len)
		err = ERR_NOT_FOUND;
	if (!err)
		*mark = content_mark_of(bytes, len);
	return err;
}

int content_mark_at(struct content *content, uint64_t offset, struct content_mark *mark)
{
	size_t len = offset < CONTENT_MARK_MAX_BYTES ? (size_t)offset : CONTENT_MARK_MAX_BYTES;
	return content_mark_between(content, offset - len, len, mark);
}

int content_note_head(struct content *content, struct content_mark *head)
{
	char bytes[CONTENT_MARK_MAX_BYTES];
	size_t got;
	int err = content_read(content, 0, bytes, sizeof(bytes), &got);
	if (err)
		return err;
	if (got < head->bytes || content_mark_of(bytes, head->bytes).hash != head->hash)
		return ERR_NOT_FOUND;
	*head = content_mark_of(bytes, got);
	return 0;
}

int content_check(struct content *content, uint64_t offset, struct content_mark mark)
{
	struct content_mark found;
	if (mark.bytes > offset || mark.bytes > CONTENT_MARK_MAX_BYTES)
		return ERR_NOT_FOUND;
	int err = content_mark_between(content, offset - mark.bytes, mark.bytes, &found);
	return err ? err : found.hash == mark.hash ? 0 : ERR_NOT_FOUND;
}

int content_check_head(struct content *content, struct content_mark head)
{
	return content_check(content, head.bytes, head);
}
