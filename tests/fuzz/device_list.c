/* Lists of devices for an import. The first byte says which format: c is CSV, all else YAML. */
#include "inventory/inventory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct device_spec *specs;
	struct arena arena;
	struct errbuf e;
	size_t count;
	if (!size)
		return 0;
	arena_init(&arena, 16 << 20);
	struct slice text = {(const char *)data + 1, size - 1};
	const char *name = data[0] == 'c' ? "f.csv" : "f.yml";
	if (device_list_parse(name, text, &arena, &specs, &count, &e)) {
		ASSERT(e.text[0]);
	} else {
		for (size_t i = 0; i < count; i++)
			ASSERT(specs[i].name.len && specs[i].address.len && specs[i].line);
	}
	arena_release(&arena);
	return 0;
}
