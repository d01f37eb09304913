/* A picture of the inventory: immutable, counted. */
#include "inventory/private.h"

struct inventory *inventory_new(struct inventory_conf *conf, const struct device *const *devices,
				size_t count, uint64_t number)
{
	struct inventory *made = mem_zalloc(sizeof(*made));
	const struct device **copy = mem_alloc_array(count + 1, sizeof(*copy));
	for (size_t i = 0; i < count; i++) {
		device_take(devices[i]);
		copy[i] = devices[i];
	}
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
	((struct inventory *)inventory)->references++;
}

void inventory_release(const struct inventory *inventory)
{
	struct inventory *mine = (struct inventory *)inventory;
	if (!mine || --mine->references > 0)
		return;
	for (size_t i = 0; i < mine->device_count; i++)
		device_release(mine->devices[i]);
	inventory_conf_release(mine->conf);
	mem_free((void *)mine->devices);
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
