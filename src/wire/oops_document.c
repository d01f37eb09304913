#include "wire/oops_document.h"

#include "wire/bson.h"
#include "wire/bunzip2.h"
#include "wire/oops_rfc822.h"

const char *oops_dialect_name(enum oops_dialect dialect)
{
	static const char *const names[] = {"JSON", "BSON", "rfc822"};
	return names[dialect];
}

static bool oops_document_is_bson(struct slice bytes)
{
	uint32_t len;
	if (bytes.len < sizeof(len))
		return false;
	memcpy(&len, bytes.data, sizeof(len));
	return len >> 24 == 0 || len <= bytes.len;
}

/* The blanks of JSON. */
static struct slice oops_document_skip_blanks(struct slice bytes)
{
	while (bytes.len && (*bytes.data == ' ' || *bytes.data == '\t' || *bytes.data == '\r' ||
			     *bytes.data == '\n'))
		bytes = (struct slice){bytes.data + 1, bytes.len - 1};
	return bytes;
}

static int oops_document_parse_plain(struct slice bytes, struct arena *arena, struct json **root,
				     enum oops_dialect *dialect, struct errbuf *e)
{
	struct slice text = oops_document_skip_blanks(bytes);
	if (!text.len)
		return errbuf_set(e, ERR_INVALID, "Empty OOPS report");
	if (oops_document_is_bson(bytes)) {
		*dialect = OOPS_BSON;
		return bson_parse(bytes, arena, root, e);
	}
	if (*text.data == '{' || *text.data == '[') {
		*dialect = OOPS_JSON;
		return json_parse_lax(bytes, arena, root, e);
	}
	*dialect = OOPS_RFC822;
	if (!oops_rfc822_begins(bytes))
		return errbuf_set(e, ERR_INVALID,
				  "neither JSON nor BSON nor rfc822: it begins with \"" SHOWN "\"",
				  SHOWN_OF(bytes));
	return oops_rfc822_parse(bytes, arena, root, e);
}

int oops_document_parse(struct slice bytes, size_t unpacked_max_bytes, struct buf *unpacked,
			struct arena *arena, struct json **root, enum oops_dialect *dialect,
			struct errbuf *e)
{
	*root = NULL;
	*dialect = OOPS_JSON;
	buf_clear(unpacked);
	if (!bunzip2_begins(bytes))
		return oops_document_parse_plain(bytes, arena, root, dialect, e);
	int err = bunzip2_whole(bytes, unpacked_max_bytes, unpacked, e);
	if (err)
		return err;
	return oops_document_parse_plain(buf_slice(unpacked), arena, root, dialect, e);
}
