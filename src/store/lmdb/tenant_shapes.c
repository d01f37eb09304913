#include "store/lmdb/tenant_shapes.h"

#include "base/mem.h"

enum { IDS_MIN = 2 }; /* most tenants have few */

static struct hash128 tenant_hash(struct slice name)
{
	return hash128(name.data, name.len, 0);
}

void tenant_shapes_add(struct tenant_shapes *shapes, struct slice name, uint32_t id)
{
	bool added;
	struct shapes_of_tenant *tenant =
		hash_table_add(&shapes->tenants, tenant_hash(name), sizeof(*tenant), &added);
	if (tenant->count == tenant->cap) {
		uint32_t cap = tenant->cap ? tenant->cap * 2 : IDS_MIN;
		tenant->ids = mem_resize_array(tenant->ids, cap, sizeof(*tenant->ids));
		shapes->id_bytes += (cap - tenant->cap) * sizeof(*tenant->ids);
		tenant->cap = cap;
	}
	ASSERT(tenant->count == 0 || tenant->ids[tenant->count - 1] < id);
	tenant->ids[tenant->count++] = id;
}

size_t tenant_shapes_bytes(const struct tenant_shapes *shapes)
{
	return shapes->id_bytes + shapes->tenants.slot_count * shapes->tenants.slot_bytes;
}

uint32_t tenant_shapes_next(const struct tenant_shapes *shapes, struct slice name, uint32_t from)
{
	const struct shapes_of_tenant *tenant =
		hash_table_find(&shapes->tenants, tenant_hash(name));
	if (!tenant)
		return 0;
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
	for (size_t at = 0; at < shapes->tenants.slot_count; at++) {
		struct shapes_of_tenant *tenant = hash_table_at(&shapes->tenants, at);
		if (tenant)
			mem_free(tenant->ids);
	}
	hash_table_release(&shapes->tenants);
	shapes->id_bytes = 0;
}
