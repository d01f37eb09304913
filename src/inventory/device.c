/* A device: made of what somebody says of it, as one object that is never changed. */
#include <stdlib.h>

#include "base/buf.h"
#include "inventory/private.h"

static int by_slice(const void *left, const void *right)
{
	return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

/* Copies what lives as long as the device. False: the arena is full. */
static bool copy_names(struct device *device, const struct device_spec *spec, struct slice host)
{
	struct slice *names =
		arena_alloc(&device->arena, (spec->oidset_count + 1) * sizeof(*names));
	bool renamed = !slice_equal(spec->stored_as, spec->name);
	const struct slice from[] = {spec->name, host, spec->credentials, spec->poller,
				     renamed ? spec->stored_as : SLICE("")};
	struct slice *const to[] = {&device->name, &device->address, &device->credentials_name,
				    &device->poller, &device->stored_as};
	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		*to[i] = arena_copy(&device->arena, from[i].data ? from[i] : SLICE(""));
		if (!to[i]->data)
			return false;
	}
	for (size_t i = 0; names && i < spec->oidset_count; i++) {
		names[i] = arena_copy(&device->arena, spec->oidsets[i]);
		if (!names[i].data)
			return false;
	}
	if (names && spec->oidset_count)
		qsort(names, spec->oidset_count, sizeof(*names), by_slice);
	device->oidset_names = names;
	device->oidset_name_count = spec->oidset_count;
	return names != NULL;
}

static void add_problem(struct buf *problem, const char *what, struct slice name)
{
	buf_printf(problem, "%s%s " SHOWN, problem->len ? ", " : "there is no ", what,
		   SHOWN_OF(name));
}

/* What the names mean in this configuration. */
static bool resolve(struct device *device)
{
	struct inventory_conf *conf = device->conf;
	const struct oidset **sets =
		arena_alloc(&device->arena, (device->oidset_name_count + 1) * sizeof(*sets));
	struct buf problem;
	if (!sets)
		return false;
	buf_init(&problem, DEVICE_PROBLEM_MAX_BYTES);
	device->credentials = inventory_conf_credentials(conf, device->credentials_name);
	/* Those of a device that somebody else polls lie where that one is. */
	if (!device->credentials && !device->poller.len)
		add_problem(&problem, "entry of the secrets file called", device->credentials_name);
	for (size_t i = 0; i < device->oidset_name_count; i++) {
		const struct oidset *set = inventory_conf_oidset(conf, device->oidset_names[i]);
		if (set)
			sets[device->oidset_count++] = set;
		else
			add_problem(&problem, "OIDSet", device->oidset_names[i]);
	}
	ASSERT(device->oidset_count <= device->oidset_name_count);
	device->oidsets = sets;
	device->problem = arena_copy(&device->arena, problem.len ? buf_slice(&problem) : SLICE(""));
	buf_release(&problem);
	return device->problem.data != NULL;
}

struct device *device_new(const struct device_spec *spec, struct slice host, uint16_t port,
			  struct inventory_conf *conf, struct device_state *state)
{
	ASSERT(conf && spec->name.len && spec->oidset_count <= DEVICE_OIDSETS_MAX);
	struct device *device = mem_zalloc(sizeof(*device));
	device->references = 1;
	arena_init_small(&device->arena, DEVICE_MAX_BYTES);
	inventory_conf_take(conf);
	device->conf = conf;
	if (state)
		device_state_take(state);
	device->state = state ? state : device_state_new();
	device->port = port;
	device->active = spec->active;
	device->begin_ms = spec->begin_ms;
	device->end_ms = spec->end_ms;
	if (copy_names(device, spec, host) && resolve(device))
		return device;
	device_release(device);
	return NULL;
}

/* References are counted in what is otherwise never changed. */
void device_take(const struct device *device)
{
	ASSERT(device->references > 0);
	((struct device *)device)->references++;
}

void device_release(const struct device *device)
{
	struct device *mine = (struct device *)device;
	ASSERT(mine->references > 0);
	if (--mine->references > 0)
		return;
	inventory_conf_release(mine->conf);
	device_state_release(mine->state);
	arena_release(&mine->arena);
	mem_free(mine);
}

struct device_spec device_spec_preset(void)
{
	return (struct device_spec){.active = true,
				    .address = SLICE(""),
				    .credentials = SLICE(""),
				    .poller = SLICE(""),
				    .stored_as = SLICE(""),
				    .begin_ms = DEVICE_BEGIN_NOW,
				    .end_ms = INVENTORY_FOREVER_MS};
}

struct device_spec device_spec_of(const struct device *device, struct arena *arena)
{
	bool v6 = memchr(device->address.data, ':', device->address.len) != NULL;
	const char *address =
		arena_printf(arena, v6 ? "[%s]:%u" : "%s:%u", device->address.data, device->port);
	return (struct device_spec){.name = device->name,
				    .address = address ? slice_of(address) : device->address,
				    .credentials = device->credentials_name,
				    .active = device->active,
				    .begin_ms = device->begin_ms,
				    .end_ms = device->end_ms,
				    .oidsets = device->oidset_names,
				    .oidset_count = device->oidset_name_count,
				    .poller = device->poller,
				    .stored_as = device->stored_as};
}
