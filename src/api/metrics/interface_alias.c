#include "api/metrics/interface_alias.h"

#include "base/mem.h"
#include "base/owner.h"
#include "catalog/selector.h"
#include "model/counter_key.h"
#include "wire/json.h"

enum { ROWS_ARENA_BYTES = 64 << 20 };

static const struct slice alias_key = SLICE("alias"), device_key = SLICE("device");

bool alias_is_asked(const struct query_spec *spec)
{
	if (!slice_equal(spec->tenant, COUNTER_TENANT))
		return false;
	for (size_t i = 0; i < spec->selector_count; i++) {
		if (slice_equal(spec->selectors[i].key, alias_key))
			return true;
	}
	return false;
}

/* Whether all selectors of this key hold. */
static bool alias_matches(const struct query_spec *spec, struct slice key, struct slice value)
{
	for (size_t i = 0; i < spec->selector_count; i++) {
		if (slice_equal(spec->selectors[i].key, key) &&
		    !selector_match(&spec->selectors[i], value))
			return false;
	}
	return true;
}

/* ---- What was found -------------------------------------------------------------------------- */

static struct hash128 alias_hash_of(struct slice device, struct slice interface)
{
	return hash128(interface.data, interface.len, hash64(device.data, device.len, 0));
}

static bool alias_keep(void *owner, struct slice tags_text)
{
	const struct alias *alias = FROM_OWNER(alias, owner);
	struct arena arena;
	struct tags tags;
	bool found = false;
	arena_init(&arena, 2 * TAGS_TEXT_MAX_BYTES);
	if (tags_decode(tags_text, &arena, &tags) == 0)
		found = hash_set_has(&alias->rows,
				     alias_hash_of(tags_find(tags, device_key),
						   tags_find(tags, SLICE("interface"))));
	arena_release(&arena);
	return found;
}

/* ---- Going through the rows ------------------------------------------------------------------ */

static void alias_next_device(struct alias *alias);

/* NULL data: it has none. */
static struct slice if_alias_of(const struct inventory_row *row, struct arena *arena)
{
	struct json_reader reader;
	json_reader_init(&reader, row->attributes, arena);
	if (json_next(&reader) != JSON_OBJECT_BEGIN)
		return (struct slice){NULL, 0};
	while (json_next(&reader) == JSON_KEY) {
		bool wanted = slice_equal(reader.text, SLICE("ifAlias"));
		enum json_event event = json_next(&reader);
		if (wanted && event == JSON_STRING)
			return reader.text;
		if (!json_skip(&reader, event))
			break;
	}
	return (struct slice){NULL, 0};
}

static void alias_take_rows(struct alias *alias)
{
	const struct inventory_rows_read *read = &alias->read;
	for (size_t i = 0; i < read->count; i++) {
		struct slice text = if_alias_of(&read->rows[i], &alias->arena);
		if (text.data && alias_matches(alias->spec, alias_key, text))
			hash_set_add(&alias->rows, alias_hash_of(read->device, read->rows[i].name),
				     SIZE_MAX);
	}
}

static void device_read(struct inventory_rows_read *read, int err)
{
	struct alias *alias = FROM_OWNER(alias, read->owner);
	ASSERT(alias->reading);
	alias->reading = false;
	if (err)
		alias->error = read->error;
	else
		alias_take_rows(alias);
	if (!err && alias->rows.table.count > ALIAS_ROWS_MAX)
		err = errbuf_set(&alias->error, ERR_LIMIT,
				 "more than %d interfaces have such an alias: ask for less",
				 ALIAS_ROWS_MAX);
	if (err)
		alias->done(alias, err);
	else
		alias_next_device(alias);
}

static int alias_read_device(struct alias *alias, const struct device *device)
{
	arena_reset(&alias->arena);
	alias->read = (struct inventory_rows_read){
		.store = alias->api->store,
		.executor = loop_executor(alias->api->loop),
		.clock = alias->api->clock,
		.arena = &alias->arena,
		.kind = OIDSET_INTERFACES,
		.device = device_stored_as(device),
		.begin_ms = alias->spec->start_ms,
		.end_ms = alias->spec->end_ms,
		.done = device_read,
		.owner = alias,
	};
	int err = inventory_rows_read_start(&alias->read);
	alias->reading = !err;
	return err;
}

static void alias_next_device(struct alias *alias)
{
	const struct inventory *inventory = alias->inventory;
	while (alias->next < inventory->device_count) {
		const struct device *device = inventory->devices[alias->next++];
		if (!alias_matches(alias->spec, device_key, device->name))
			continue;
		int err = alias_read_device(alias, device);
		if (err) {
			errbuf_set(&alias->error, err, "%s", err_text(err));
			alias->done(alias, err);
		}
		return;
	}
	alias->done(alias, 0);
}

/* ---- The owner's calls ----------------------------------------------------------------------- */

void alias_start(struct alias *alias)
{
	ASSERT(alias->done && !alias->inventory && alias_is_asked(alias->spec));
	alias->magic = MAGIC_OF(alias);
	alias->inventory = inventory_keeper_take(alias->api->inventory);
	arena_init(&alias->arena, ROWS_ARENA_BYTES);
	alias_next_device(alias);
}

void alias_apply(struct alias *alias, struct query_spec *spec)
{
	struct catalog_selector *selectors = spec->selectors;
	size_t count = 0;
	ASSERT(alias->spec == spec && !alias->reading);
	for (size_t i = 0; i < spec->selector_count; i++) {
		if (!slice_equal(selectors[i].key, alias_key))
			selectors[count++] = selectors[i];
	}
	ASSERT(count < spec->selector_count);
	spec->selector_count = count;
	spec->filter = alias_keep;
	spec->filter_owner = alias;
}

void alias_release(struct alias *alias)
{
	if (alias->reading)
		inventory_rows_read_cancel(&alias->read);
	if (alias->inventory) {
		inventory_release(alias->inventory);
		arena_release(&alias->arena);
	}
	hash_set_release(&alias->rows);
	*alias = (struct alias){.api = NULL};
}
