/* A line of our CSV: what is read is written again by the rules of tags_encode, and what is wrong
 * has a reason. */
#include "base/buf.h"
#include "base/mem.h"
#include "wire/sample_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	struct slice names, metric;
	const char *reason = NULL;
	struct arena arena;
	struct value value;
	struct tags tags;
	struct buf text;
	int64_t ts_ms;
	memcpy(copy, data, size);
	arena_init(&arena, 1 << 20);
	buf_init(&text, 2 * size + 1);
	int err = sample_csv_split((struct slice){copy, size}, &names, &ts_ms, &value, &reason);
	ASSERT(err || value.type != VALUE_NONE);
	err = err ? err : sample_csv_names(names, &arena, &metric, &tags, &reason);
	ASSERT(!err == !reason);
	if (!err) {
		ASSERT(tags_encode(tags, &text) == 0);
		ASSERT(metric.len + text.len <= size);
	}
	buf_release(&text);
	arena_release(&arena);
	mem_free(copy);
	return 0;
}
