/* esmond's queue message: what is read can be encoded, and written as JSON that reads again. */
#include "base/buf.h"
#include "base/mem.h"
#include "wire/esmond_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct one {
	struct arena arena;
	struct poll_builder builder;
	struct buf bytes;
	struct poll poll;
	struct poll_names names;
	struct poll_values values;
};

static int read_one(struct one *one, struct slice json)
{
	struct errbuf e = {""};
	int err = esmond_message_read(json, &one->arena, &one->builder, &e);
	ASSERT((err == 0) == (e.text[0] == 0));
	if (err)
		return err;
	buf_clear(&one->bytes);
	ASSERT(poll_encode(&one->builder, 0, true, &one->bytes, NULL) == 0);
	ASSERT(poll_open(buf_slice(&one->bytes), &one->poll, NULL) == 0);
	ASSERT(poll_decode_names(&one->poll, &one->arena, &one->names, NULL) == 0);
	ASSERT(poll_decode_values(&one->poll, &one->arena, &one->values, NULL) == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct one one;
	struct buf json;
	arena_init(&one.arena, POLL_ARENA_MAX_BYTES);
	poll_builder_init(&one.builder);
	buf_init(&one.bytes, POLL_BYTES_MAX);
	buf_init(&json, POLL_BYTES_MAX);
	if (read_one(&one, (struct slice){bytes, size}) == 0) {
		for (size_t i = 0; i < one.poll.column_count; i++) {
			struct buf text;
			buf_init(&text, POLL_BYTES_MAX);
			ASSERT(esmond_message_write(&one.poll, &one.names, &one.values, i, &text) ==
			       0);
			if (i == 0)
				buf_append(&json, text.data, text.len);
			buf_release(&text);
		}
		if (json.len)
			ASSERT(read_one(&one, buf_slice(&json)) == 0);
	}
	buf_release(&json);
	buf_release(&one.bytes);
	poll_builder_release(&one.builder);
	arena_release(&one.arena);
	mem_free(bytes);
	return 0;
}
