/* The message of a poll: whatever it decodes to can be built and encoded again, and decodes to the
 * same; its names and texts lie within it. */
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "model/poll.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(struct slice message, struct arena *arena, const struct poll *poll,
		       const struct poll_values *values)
{
	struct poll again;
	struct poll_values same;
	ASSERT(poll_open(message, &again, NULL) == 0);
	ASSERT(again.ts_ms == poll->ts_ms && again.part == poll->part && again.last == poll->last);
	ASSERT(again.row_count == poll->row_count && again.column_count == poll->column_count);
	ASSERT(poll_decode_values(&again, arena, &same, NULL) == 0);
	ASSERT(same.text_count == values->text_count);
	for (size_t i = 0; i < same.text_count; i++)
		ASSERT(slice_equal(same.texts[i].text, values->texts[i].text));
	for (size_t i = 0; i < poll->row_count; i++)
		ASSERT(same.row_ts_ms[i] == values->row_ts_ms[i]);
	for (size_t i = 0; i < poll->row_count * poll->column_count; i++)
		ASSERT(value_identical(same.values[i], values->values[i]));
}

static void build_again(const struct poll *poll, const struct poll_names *names,
			const struct poll_values *values, struct buf *out)
{
	struct poll_builder b;
	poll_builder_init(&b);
	ASSERT(poll_begin(&b, poll->device, poll->oidset, poll->ts_ms, NULL) == 0);
	for (size_t c = 0; c < poll->column_count; c++)
		ASSERT(poll_add_column(&b, names->columns[c], NULL) == 0);
	for (size_t r = 0; r < poll->row_count; r++) {
		const struct poll_row *row = &names->rows[r];
		ASSERT(poll_add_row(&b, row->parts, row->part_count, values->row_ts_ms[r], NULL) ==
		       0);
		for (size_t c = 0; c < poll->column_count; c++)
			poll_set(&b, r, c, values->values[r * poll->column_count + c]);
	}
	for (size_t i = 0; i < values->text_count; i++) {
		const struct poll_text *t = &values->texts[i];
		ASSERT(poll_set_text(&b, t->row, t->column, t->text, t->json, NULL) == 0);
	}
	ASSERT(poll_encode(&b, poll->part, poll->last, out, NULL) == 0);
	poll_builder_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	if (size >= 12) { /* what a checksum would keep away */
		uint32_t crc = crc32c(crc32c(0, bytes, 4), bytes + 8, size - 8);
		memcpy(bytes + 4, &crc, sizeof(crc));
	}
	struct arena arena;
	struct errbuf e = {""};
	struct poll poll;
	struct poll_names names;
	struct poll_values values;
	arena_init(&arena, POLL_ARENA_MAX_BYTES);
	int err = poll_open((struct slice){bytes, size}, &poll, &e);
	if (!err)
		err = poll_decode_names(&poll, &arena, &names, &e);
	if (!err)
		err = poll_decode_values(&poll, &arena, &values, &e);
	ASSERT((err == 0) == (e.text[0] == 0));
	if (!err) {
		struct buf out;
		buf_init(&out, 2 * POLL_BYTES_MAX);
		build_again(&poll, &names, &values, &out);
		check_same(buf_slice(&out), &arena, &poll, &values);
		buf_release(&out);
	}
	arena_release(&arena);
	mem_free(bytes);
	return 0;
}
