/* A line of VictoriaMetrics' export: whatever is made of the bytes ends, and what is wrong has a
 * reason. */
#include "base/mem.h"
#include "wire/vm_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	struct vm_line line;
	struct arena arena;
	struct value value;
	int64_t ts_ms;
	memcpy(copy, data, size);
	arena_init(&arena, 1 << 20);
	int err = vm_line_read(&line, (struct slice){copy, size}, &arena);
	ASSERT(err || (line.metric.len && line.tags.count <= TAGS_MAX));
	for (size_t i = 0; !err; i++) {
		err = vm_line_next(&line, &ts_ms, &value);
		ASSERT(err || value.type != VALUE_NONE);
		ASSERT(i <= size);
	}
	ASSERT(err == ERR_NOT_FOUND || (err == ERR_INVALID && line.reason));
	arena_release(&arena);
	mem_free(copy);
	return 0;
}
