#include "api/metrics/device_names.h"

#include <stdlib.h>

#include "base/buf.h"
#include "catalog/selector.h"
#include "model/counter_key.h"
#include "model/series.h"

enum { TAGS_ARENA_BYTES = 2 * TAGS_TEXT_MAX_BYTES };

static const struct slice device_key = SLICE("device");

void device_names_init(struct device_names *names, struct api *api, struct slice tenant)
{
	*names = (struct device_names){.inventory = NULL};
	if (!api->inventory || !slice_equal(tenant, COUNTER_TENANT))
		return;
	names->inventory = inventory_keeper_take(api->inventory);
	if (!names->inventory->renamed_count)
		device_names_release(names);
}

void device_names_release(struct device_names *names)
{
	inventory_release(names->inventory);
	names->inventory = NULL;
}

static struct slice device_names_name_of(const struct device_names *names, struct slice stored_as)
{
	ASSERT(names->inventory);
	const struct device *device = inventory_device_stored(names->inventory, stored_as);
	return device ? device->name : stored_as;
}

/* ---- Selectors ------------------------------------------------------------------------------- */

/* Adds what is stored of devices whose names match. */
static int select_stored(const struct device_names *names, struct catalog_selector *selector,
			 struct arena *arena, bool *strict)
{
	const struct inventory *inventory = names->inventory;
	const struct catalog_selector asked = *selector;
	size_t room = asked.value_count + inventory->renamed_count;
	struct catalog_pattern *values = arena_alloc(arena, room * sizeof(*values));
	if (!values)
		return ERR_LIMIT;
	memcpy(values, asked.values, asked.value_count * sizeof(*values));
	selector->values = values;
	for (size_t i = 0; i < inventory->renamed_count; i++) {
		const struct device *device = inventory->renamed[i];
		bool stored = selector_match(&asked, device->stored_as);
		if (stored == selector_match(&asked, device->name))
			continue;
		*strict = *strict || stored;
		if (!stored)
			values[selector->value_count++] =
				(struct catalog_pattern){&device->stored_as, 1};
	}
	ASSERT(selector->value_count <= room);
	return 0;
}

int device_names_select(struct device_names *names, struct catalog_selector *selectors,
			size_t count, struct arena *arena, bool *strict)
{
	int err = 0;
	*strict = false;
	for (size_t i = 0; i < count && names->inventory && !err; i++) {
		if (!slice_equal(selectors[i].key, device_key))
			continue;
		ASSERT(names->asked_count < ARRAY_LEN(names->asked));
		names->asked[names->asked_count++] = selectors[i];
		err = select_stored(names, &selectors[i], arena, strict);
	}
	return err;
}

bool device_names_keep(void *owner, struct slice tags_text)
{
	const struct device_names *names = owner;
	struct arena arena;
	struct tags tags;
	arena_init(&arena, TAGS_ARENA_BYTES);
	bool kept = tags_decode(tags_text, &arena, &tags) == 0;
	struct slice name =
		kept ? device_names_name_of(names, tags_find(tags, device_key)) : SLICE("");
	for (size_t i = 0; i < names->asked_count && kept; i++)
		kept = selector_match(&names->asked[i], name);
	arena_release(&arena);
	return kept;
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Tags as they are stored, where nothing is to be said in another way. */
struct slice device_names_tags(void *owner, struct slice tags_text, struct arena *arena)
{
	const struct device_names *names = owner;
	struct slice said = tags_text;
	struct tags tags;
	struct buf text;
	if (!names->inventory || tags_decode(tags_text, arena, &tags))
		return tags_text;
	struct slice stored_as = tags_find(tags, device_key);
	struct slice name = stored_as.data ? device_names_name_of(names, stored_as) : stored_as;
	if (!stored_as.data || slice_equal(name, stored_as))
		return tags_text;
	for (size_t i = 0; i < tags.count; i++) {
		if (slice_equal(tags.list[i].key, device_key))
			((struct tag *)tags.list)[i].value = name; /* the arena's */
	}
	buf_init(&text, TAGS_TEXT_MAX_BYTES);
	if (tags_encode(tags, &text) == 0)
		said = arena_copy(arena, buf_slice(&text));
	buf_release(&text);
	return said.data ? said : tags_text;
}

static int device_names_by_bytes(const void *left, const void *right)
{
	return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

int device_names_list(const struct device_names *names, struct slice prefix, struct arena *arena,
		      struct slice *values, size_t *count)
{
	size_t kept = 0, unique = 0;
	for (size_t i = 0; i < *count; i++) {
		struct slice name = arena_copy(arena, device_names_name_of(names, values[i]));
		if (!name.data)
			return ERR_LIMIT;
		if (slice_starts_with(name, prefix))
			values[kept++] = name;
	}
	if (kept > 1)
		qsort(values, kept, sizeof(*values), device_names_by_bytes);
	for (size_t i = 0; i < kept; i++) {
		if (!unique || !slice_equal(values[unique - 1], values[i]))
			values[unique++] = values[i];
	}
	*count = unique;
	return 0;
}
