#include "store/lmdb/tenant_shapes.h"

#include "base/hash.h"
#include "base/mem.h"

enum { SLOTS_MIN = 64, IDS_MIN = 2 };

static struct shapes_of_tenant *slot_of(const struct tenant_shapes *shapes, uint64_t hash)
{
	size_t mask = shapes->slot_count - 1, at = hash & mask;
	while (shapes->slots[at].ids && shapes->slots[at].hash != hash)
		at = (at + 1) & mask;
	return &shapes->slots[at];
}

static void grow_slots(struct tenant_shapes *shapes)
{
	struct tenant_shapes grown = {.slot_count = shapes->slot_count ? shapes->slot_count * 2
								       : SLOTS_MIN};
	grown.slots = mem_zalloc(grown.slot_count * sizeof(*grown.slots));
	for (size_t i = 0; i < shapes->slot_count; i++) {
		if (shapes->slots[i].ids)
			*slot_of(&grown, shapes->slots[i].hash) = shapes->slots[i];
	}
	mem_free(shapes->slots);
	shapes->bytes += (grown.slot_count - shapes->slot_count) * sizeof(*grown.slots);
	shapes->slots = grown.slots;
	shapes->slot_count = grown.slot_count;
}

static void grow_ids(struct tenant_shapes *shapes, struct shapes_of_tenant *tenant)
{
	uint32_t cap = tenant->cap ? tenant->cap * 2 : IDS_MIN;
	tenant->ids = mem_resize_array(tenant->ids, cap, sizeof(*tenant->ids));
	shapes->bytes += (cap - tenant->cap) * sizeof(*tenant->ids);
	tenant->cap = cap;
}

void tenant_shapes_add(struct tenant_shapes *shapes, struct slice name, uint32_t id)
{
	if (shapes->count * 2 >= shapes->slot_count)
		grow_slots(shapes);
	uint64_t hash = hash64(name.data, name.len, 0);
	struct shapes_of_tenant *tenant = slot_of(shapes, hash);
	tenant->hash = hash;
	shapes->count += !tenant->ids;
	if (tenant->count == tenant->cap)
		grow_ids(shapes, tenant);
	ASSERT(tenant->count == 0 || tenant->ids[tenant->count - 1] < id);
	tenant->ids[tenant->count++] = id;
}

uint32_t tenant_shapes_next(const struct tenant_shapes *shapes, struct slice name, uint32_t from)
{
	if (!shapes->slot_count)
		return 0;
	const struct shapes_of_tenant *tenant = slot_of(shapes, hash64(name.data, name.len, 0));
	uint32_t low = 0, high = tenant->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (tenant->ids[middle] < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low < tenant->count ? tenant->ids[low] : 0;
}

void tenant_shapes_release(struct tenant_shapes *shapes)
{
	for (size_t i = 0; i < shapes->slot_count; i++)
		mem_free(shapes->slots[i].ids);
	mem_free(shapes->slots);
	*shapes = (struct tenant_shapes){0};
}
