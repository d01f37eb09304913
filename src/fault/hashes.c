#include "fault/hashes.h"

#include "base/stats.h"
#include "fault/tables.h"

enum {
	HASHES_YOUNG_MAX = 1 << 16,
	HASHES_ROW_BYTES = 5, /* of a hash: its version, -, and the first digits */
};
#define HASHES_FRESH_MS INT64_C(86400000)
/* A hash is known for so long after it was stored; it is stored again when a report has it and less
 * than the second is left. */
#define HASHES_KEEP_MS  (100 * HASHES_FRESH_MS)
#define HASHES_AGAIN_MS (90 * HASHES_FRESH_MS)

/* A slot of a table. */
struct hashes_known {
	struct hash128 key;
	int64_t until_ms; /* monotonic: it is read again then */
	bool stored;
	uint8_t group_bytes;
	char group[FAULT_GROUP_NAME_BYTES];
};

void fault_hashes_release(struct fault_hashes *hashes)
{
	hash_table_release(&hashes->young);
	hash_table_release(&hashes->old);
}

static struct hash128 hashes_key(struct slice tenant, struct slice text)
{
	return hash128(text.data, text.len, hash64(tenant.data, tenant.len, 0));
}

/* ---- What is known here ---------------------------------------------------------------------- */

static void hashes_know(struct fault_hashes *hashes, const struct hashes_known *known)
{
	bool added;
	if (hashes->young.count >= HASHES_YOUNG_MAX) {
		hash_table_release(&hashes->old);
		hashes->old = hashes->young;
		hashes->young = (struct hash_table){NULL};
	}
	struct hashes_known *slot =
		hash_table_add(&hashes->young, known->key, sizeof(*known), &added);
	*slot = *known;
}

/* It is among the young ones then, so it is still here when a report that needs it comes back from
 * the store. */
static bool hashes_find(struct fault_hashes *hashes, struct hash128 key, struct hashes_known *found)
{
	const struct hashes_known *known = hash_table_find(&hashes->young, key);
	if (known) {
		*found = *known;
		return true;
	}
	known = hash_table_find(&hashes->old, key);
	if (!known)
		return false;
	*found = *known;
	hashes_know(hashes, found);
	return true;
}

/* ---- The way of a report --------------------------------------------------------------------- */

static void hashes_add(struct fault_lookup *lookup, struct slice tenant, struct slice text)
{
	if (!text.len || text.len > FAULT_GROUP_NAME_BYTES)
		return;
	lookup->hashes[lookup->count].text = text;
	lookup->hashes[lookup->count].key = hashes_key(tenant, text);
	lookup->count++;
}

/* The row of a hash: those with its first digits. */
static struct slice hashes_row(struct slice text)
{
	return (struct slice){text.data, smaller_of(text.len, HASHES_ROW_BYTES)};
}

static struct store_request *hashes_read(struct slice tenant, struct slice text,
					 struct store_read *read)
{
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request);
	request->cell_get = (struct store_cell_get){.table = TABLE_FAULT_HASHES,
						    .key = {{tenant, hashes_row(text)}},
						    .column = {{text}}};
	return request;
}

void fault_hashes_ask(struct fault_hashes *hashes, struct slice tenant,
		      const struct fault_facts *facts, int64_t now_ms, struct store_read *read,
		      struct fault_lookup *lookup)
{
	*lookup = (struct fault_lookup){.count = 0};
	hashes_add(lookup, tenant, facts->texts[FAULT_GROUP]);
	if (lookup->count)
		hashes_add(lookup, tenant, facts->texts[FAULT_GROUP_ALL]);
	for (size_t i = 0; i < lookup->count; i++) {
		struct hashes_known known;
		if (!hashes_find(hashes, lookup->hashes[i].key, &known) || known.until_ms <= now_ms)
			lookup->hashes[i].request =
				hashes_read(tenant, lookup->hashes[i].text, read);
	}
}

/* What was read; what is known here is newer, unless it is stale. */
static bool hashes_take(struct fault_hashes *hashes, const struct fault_lookup *lookup, size_t i,
			int64_t now_ms, int64_t wall_ms, struct hashes_known *known)
{
	const struct store_request *request = lookup->hashes[i].request;
	bool found = hashes_find(hashes, lookup->hashes[i].key, known);
	if (!request || (found && known->until_ms > now_ms))
		return found;
	const struct store_cell *cell = &request->cell_get.cell;
	if (!request->cell_get.found || !cell->value.len ||
	    cell->value.len > FAULT_GROUP_NAME_BYTES)
		return false;
	*known = (struct hashes_known){.key = lookup->hashes[i].key,
				       .until_ms = now_ms + HASHES_FRESH_MS,
				       .stored = cell->expires_ms > wall_ms + HASHES_AGAIN_MS,
				       .group_bytes = (uint8_t)cell->value.len};
	memcpy(known->group, cell->value.data, cell->value.len);
	hashes_know(hashes, known);
	return true;
}

/* One that was not known leads to the group of the report from now on. */
static void hashes_enter(struct fault_hashes *hashes, struct fault_lookup *lookup, size_t i,
			 const struct hashes_known *known, size_t *room)
{
	if (known->stored)
		return;
	hashes_know(hashes, known);
	if (!*room) {
		stat_add(STAT_fault_hashes_left_out, 1);
		return;
	}
	(*room)--;
	lookup->hashes[i].enters = true;
}

void fault_hashes_choose(struct fault_hashes *hashes, struct fault_lookup *lookup, int64_t now_ms,
			 int64_t wall_ms, size_t *room, struct fault_facts *facts)
{
	struct hashes_known known[FAULT_HASHES_OF_REPORT];
	bool found[FAULT_HASHES_OF_REPORT];
	struct slice *texts = facts->texts, group = texts[FAULT_GROUP];
	if (!lookup->count)
		return;
	for (size_t i = lookup->count; i-- > 0;) {
		found[i] = hashes_take(hashes, lookup, i, now_ms, wall_ms, &known[i]);
		if (found[i])
			group = (struct slice){known[i].group, known[i].group_bytes};
	}
	memcpy(lookup->group, group.data, group.len);
	group.data = lookup->group;
	for (size_t i = 0; i < lookup->count; i++) {
		if (!found[i]) {
			known[i] = (struct hashes_known){.key = lookup->hashes[i].key,
							 .until_ms = now_ms + HASHES_FRESH_MS,
							 .group_bytes = (uint8_t)group.len};
			memcpy(known[i].group, group.data, group.len);
		}
		hashes_enter(hashes, lookup, i, &known[i], room);
	}
	/* The hash of all frames stays a fact where it is not the group. */
	if (lookup->count == 1 && !slice_equal(group, lookup->hashes[0].text))
		texts[FAULT_GROUP_ALL] = lookup->hashes[0].text;
	texts[FAULT_GROUP] = group;
}

int fault_hashes_put(struct fault_hashes *hashes, const struct fault_lookup *lookup,
		     struct slice tenant, int64_t stamp_us, int64_t wall_ms,
		     struct store_write *write)
{
	int err = 0;
	for (size_t i = 0; i < lookup->count && !err; i++) {
		const struct slice text = lookup->hashes[i].text;
		const struct store_parts key = {{tenant, hashes_row(text)}}, column = {{text}};
		struct hashes_known known;
		if (!lookup->hashes[i].enters ||
		    !hashes_find(hashes, lookup->hashes[i].key, &known))
			continue;
		err = store_cell_put(write, TABLE_FAULT_HASHES, &key, &column,
				     (struct slice){known.group, known.group_bytes}, stamp_us,
				     wall_ms + HASHES_KEEP_MS);
	}
	return err;
}

void fault_hashes_note_stored(struct fault_hashes *hashes, const struct fault_lookup *lookup)
{
	for (size_t i = 0; i < lookup->count; i++) {
		struct hashes_known known;
		if (!lookup->hashes[i].enters ||
		    !hashes_find(hashes, lookup->hashes[i].key, &known))
			continue;
		known.stored = true;
		hashes_know(hashes, &known);
	}
}
