/* Any bytes as BSON: what is read can be written as JSON that reads again. */
#include "base/buf.h"
#include "base/mem.h"
#include "wire/bson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX_BYTES = 16 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct arena arena;
	struct buf out;
	struct json_writer writer;
	struct json *root;
	struct errbuf e = {""};
	arena_init(&arena, MEMORY_MAX_BYTES);
	buf_init(&out, MEMORY_MAX_BYTES);
	int err = bson_parse((struct slice){bytes, size}, &arena, &root, &e);
	ASSERT((err == 0) == (e.text[0] == 0));
	if (err == 0) {
		json_writer_init(&writer, &out);
		json_write_tree(&writer, root);
		ASSERT(!out.failed && root->type == JSON_T_OBJECT);
		err = json_parse(buf_slice(&out), &arena, &root, &e);
		ASSERT(err == 0 || err == ERR_LIMIT);
	}
	buf_release(&out);
	arena_release(&arena);
	mem_free(bytes);
	return 0;
}
