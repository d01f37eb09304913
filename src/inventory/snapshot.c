/* A snapshot of the inventory: immutable, counted. */
#include <stdlib.h>

#include "inventory/private.h"

static int snapshot_by_stored_as(const void *left, const void *right)
{
	return slice_compare((*(const struct device *const *)left)->stored_as,
			     (*(const struct device *const *)right)->stored_as);
}

struct inventory *inventory_new(struct inventory_conf *conf, const struct device *const *devices,
				size_t count, uint64_t number)
{
	ASSERT(conf);
	struct inventory *made = mem_zalloc(sizeof(*made));
	const struct device **copy = mem_alloc_array(count + 1, sizeof(*copy));
	size_t renamed = 0;
	for (size_t i = 0; i < count; i++) {
		ASSERT(!i || slice_compare(devices[i - 1]->name, devices[i]->name) <= 0);
		device_take(devices[i]);
		copy[i] = devices[i];
		renamed += devices[i]->stored_as.len > 0;
	}
	made->renamed = mem_alloc_array(renamed + 1, sizeof(*made->renamed));
	for (size_t i = 0; i < count; i++) {
		if (devices[i]->stored_as.len)
			made->renamed[made->renamed_count++] = devices[i];
	}
	ASSERT(made->renamed_count == renamed);
	if (renamed > 1)
		qsort(made->renamed, renamed, sizeof(*made->renamed), snapshot_by_stored_as);
	inventory_conf_take(conf);
	made->conf = conf;
	made->devices = copy;
	made->device_count = count;
	made->number = number;
	made->references = 1;
	return made;
}

void inventory_take(const struct inventory *inventory)
{
	ASSERT(inventory->references > 0);
	((struct inventory *)inventory)->references++;
}

void inventory_release(const struct inventory *inventory)
{
	struct inventory *mine = (struct inventory *)inventory;
	ASSERT(!mine || mine->references > 0);
	if (!mine || --mine->references > 0)
		return;
	for (size_t i = 0; i < mine->device_count; i++)
		device_release(mine->devices[i]);
	inventory_conf_release(mine->conf);
	mem_free((void *)mine->devices);
	mem_free((void *)mine->renamed);
	mem_free(mine);
}

const struct device *inventory_device(const struct inventory *inventory, struct slice name)
{
	size_t low = 0, high = inventory->device_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = slice_compare(inventory->devices[middle]->name, name);
		if (order == 0)
			return inventory->devices[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Nearly always the one of that name. */
const struct device *inventory_device_stored(const struct inventory *inventory,
					     struct slice stored_as)
{
	const struct device *device = inventory_device(inventory, stored_as);
	if (device && !device->stored_as.len)
		return device;
	const struct device wanted = {.stored_as = stored_as}, *key = &wanted;
	const struct device **found =
		inventory->renamed_count
			? bsearch(&key, inventory->renamed, inventory->renamed_count,
				  sizeof(*inventory->renamed), snapshot_by_stored_as)
			: NULL;
	return found ? *found : NULL;
}

struct slice inventory_stored_as(const struct inventory *inventory, struct slice name)
{
	const struct device *device = inventory_device(inventory, name);
	return device ? device_stored_as(device) : name;
}
