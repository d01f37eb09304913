/* Any bytes as the cell that remembers retentions: what is taken for one has no more rules than
 * there may be, and written and read again it says the same. */
#include "retention/lengthened_cell.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_same(const struct lengthened_cell *a, const struct lengthened_cell *b)
{
	ASSERT(a->preset_ms == b->preset_ms && a->until_ms == b->until_ms);
	ASSERT(a->kept_ms == b->kept_ms && a->preset == b->preset && a->rules == b->rules);
	ASSERT(a->count == b->count);
	for (size_t i = 0; i < a->count; i++)
		ASSERT(a->list[i].hash == b->list[i].hash && a->list[i].ms == b->list[i].ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lengthened_cell kept, again;
	char text[LENGTHENED_CELL_MAX_BYTES];
	if (lengthened_cell_decode((struct slice){(const char *)data, size}, &kept))
		return 0;
	ASSERT(kept.count <= RETENTION_RULES_MAX);
	ASSERT(kept.preset_ms >= 0 && kept.until_ms >= 0 && kept.kept_ms >= 0);
	int err = lengthened_cell_decode(lengthened_cell_encode(&kept, text), &again);
	ASSERT(!err);
	is_same(&kept, &again);
	return 0;
}
