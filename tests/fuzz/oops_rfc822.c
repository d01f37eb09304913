/* python-oops' old form: any bytes are read; what is written of them is ASCII and reads again. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "wire/oops_rfc822.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX_BYTES = 16 << 20 };

static void read_and_write(struct slice text, struct arena *arena, struct buf *out)
{
	struct json *root;
	ASSERT(oops_rfc822_parse(text, arena, &root, NULL) == 0);
	oops_rfc822_write(root, out);
	ASSERT(!out->failed);
	for (size_t i = 0; i < out->len; i++)
		ASSERT((out->data[i] & 0x80) == 0);
	ASSERT(utf8_is_valid(json_member(root, "tb_text")->text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct arena arena;
	struct buf once, twice;
	arena_init(&arena, MEMORY_MAX_BYTES);
	buf_init(&once, MEMORY_MAX_BYTES);
	buf_init(&twice, MEMORY_MAX_BYTES);
	read_and_write((struct slice){bytes, size}, &arena, &once);
	read_and_write(buf_slice(&once), &arena, &twice);
	buf_release(&once);
	buf_release(&twice);
	arena_release(&arena);
	mem_free(bytes);
	return 0;
}
