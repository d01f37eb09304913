/* A fault report in any form: what is read is UTF-8, and can be written as JSON and in the old
 * form. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "wire/oops_document.h"
#include "wire/oops_rfc822.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX_BYTES = 16 << 20, UNPACKED_MAX_BYTES = 64 << 10 };

static void check_text(const struct json *node)
{
	ASSERT(utf8_is_valid(node->text) && utf8_is_valid(node->key));
	for (const struct json *child = node->first; child; child = child->next)
		check_text(child);
}

static void write_both_ways(const struct json *root, struct buf *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_write_tree(&writer, root);
	oops_rfc822_write(root, out);
	ASSERT(!out->failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct arena arena;
	struct buf unpacked, out;
	struct json *root;
	enum oops_dialect dialect;
	struct errbuf e = {""};
	arena_init(&arena, MEMORY_MAX_BYTES);
	buf_init(&unpacked, UNPACKED_MAX_BYTES);
	buf_init(&out, MEMORY_MAX_BYTES);
	int err = oops_document_parse((struct slice){bytes, size}, UNPACKED_MAX_BYTES, &unpacked,
				      &arena, &root, &dialect, &e);
	ASSERT((err == 0) == (e.text[0] == 0));
	ASSERT(unpacked.len <= UNPACKED_MAX_BYTES && oops_dialect_name(dialect));
	if (err == 0) {
		check_text(root);
		write_both_ways(root, &out);
	}
	buf_release(&out);
	buf_release(&unpacked);
	arena_release(&arena);
	mem_free(bytes);
	return 0;
}
