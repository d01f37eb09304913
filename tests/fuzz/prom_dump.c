/* A line of promtool tsdb dump: what is read lies within its memory, and what is wrong has a
 * reason.
 */
#include "base/mem.h"
#include "wire/prom_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	struct slice names, metric;
	const char *reason = NULL;
	struct arena arena;
	struct value value;
	struct tags tags;
	int64_t ts_ms;
	memcpy(copy, data, size);
	arena_init(&arena, 1 << 20);
	int err = prom_dump_split((struct slice){copy, size}, &names, &ts_ms, &value, &reason);
	ASSERT(err || value.type == VALUE_F64);
	err = err ? err : prom_dump_names(names, &arena, &metric, &tags, &reason);
	ASSERT(!err == !reason);
	size_t bytes = err ? 0 : metric.len;
	for (size_t i = 0; !err && i < tags.count; i++)
		bytes += tags.list[i].key.len + tags.list[i].value.len;
	ASSERT(bytes <= size);
	arena_release(&arena);
	mem_free(copy);
	return 0;
}
