#include "fault/attachment.h"

#include <zstd.h>

#include "base/put.h"

enum { ATTACHMENT_VERSION = 1, ATTACHMENT_PLAIN = 0, ATTACHMENT_PACKED = 1, ATTACHMENT_LEVEL = 3 };

void fault_attachment_encode(const struct fault_attachment *attachment, struct buf *out)
{
	buf_append_char(out, ATTACHMENT_VERSION);
	buf_append_char(out, attachment->kept);
	buf_put_varint(out, attachment->bytes);
	buf_put_text(out, attachment->name);
	buf_put_text(out, attachment->type);
}

int fault_attachment_decode(struct slice bytes, struct fault_attachment *attachment)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c), kept = cursor_u8(&c);
	if (!c.bad && version != ATTACHMENT_VERSION)
		return ERR_VERSION;
	*attachment = (struct fault_attachment){.kept = kept == 1, .bytes = cursor_varint(&c)};
	attachment->name = cursor_text(&c, FAULT_ATTACHMENT_TEXT_MAX_BYTES);
	attachment->type = cursor_text(&c, FAULT_ATTACHMENT_TEXT_MAX_BYTES);
	if (c.bad || kept > 1 || (kept && attachment->bytes > FAULT_ATTACHMENT_MAX_BYTES))
		return ERR_DAMAGED;
	return 0;
}

void fault_attachment_pack(struct slice content, struct buf *packed)
{
	size_t bound = ZSTD_compressBound(content.len);
	char *to = buf_reserve(packed, 1 + bound);
	if (!to)
		return;
	size_t len = ZSTD_compress(to + 1, bound, content.data, content.len, ATTACHMENT_LEVEL);
	bool smaller = !ZSTD_isError(len) && len < content.len;
	to[0] = smaller ? ATTACHMENT_PACKED : ATTACHMENT_PLAIN;
	if (!smaller && content.len)
		memcpy(to + 1, content.data, content.len);
	packed->len += 1 + (smaller ? len : content.len);
}

int fault_attachment_unpack(struct slice packed, uint64_t bytes, struct buf *out)
{
	struct slice rest = {packed.data + 1, packed.len - 1};
	if (!packed.len || bytes > FAULT_ATTACHMENT_MAX_BYTES)
		return ERR_DAMAGED;
	if (packed.data[0] == ATTACHMENT_PLAIN)
		return rest.len == bytes ? buf_append(out, rest.data, rest.len) : ERR_DAMAGED;
	if (packed.data[0] != ATTACHMENT_PACKED)
		return ERR_DAMAGED;
	char *to = buf_reserve(out, bytes);
	if (!to)
		return ERR_LIMIT;
	size_t len = ZSTD_decompress(to, bytes, rest.data, rest.len);
	if (ZSTD_isError(len) || len != bytes)
		return ERR_DAMAGED;
	out->len += len;
	return 0;
}
