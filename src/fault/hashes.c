#include "fault/hashes.h"

#include <ctype.h>

#include "base/stats.h"
#include "store/store.h"

enum {
	HASHES_YOUNG_MAX = 1 << 16,
	HASHES_ROW_BYTES = 4, /* of a hash: its version, -, and two digits */
};
#define HASHES_FRESH_MS INT64_C(86400000)
/* A cell expires HASHES_KEEP_MS after it was written. A report that finds less than HASHES_AGAIN_MS
 * left writes it again. */
#define HASHES_KEEP_MS  (100 * HASHES_FRESH_MS)
#define HASHES_AGAIN_MS (90 * HASHES_FRESH_MS)

void fault_hashes_release(struct fault_hashes *hashes)
{
	hash_table_release(&hashes->young);
	hash_table_release(&hashes->old);
}

/* ---- What is known here ---------------------------------------------------------------------- */

static void hashes_know(struct fault_hashes *hashes, const struct fault_known *known)
{
	bool added;
	if (hashes->young.count >= HASHES_YOUNG_MAX) {
		hash_table_release(&hashes->old);
		hashes->old = hashes->young;
		hashes->young = (struct hash_table){NULL};
	}
	struct fault_known *slot =
		hash_table_add(&hashes->young, known->key, sizeof(*known), &added);
	*slot = *known;
}

/* What is old and needed is among the young ones then. False: it is not known, or stale. */
static bool hashes_find(struct fault_hashes *hashes, int64_t now_ms, struct fault_known *known)
{
	const struct fault_known *found = hash_table_find(&hashes->young, known->key);
	bool is_old = !found;
	if (is_old)
		found = hash_table_find(&hashes->old, known->key);
	if (!found || found->until_ms <= now_ms)
		return false;
	*known = *found;
	if (is_old)
		hashes_know(hashes, known);
	return true;
}

/* ---- The way of a report --------------------------------------------------------------------- */

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
	const struct slice texts[] = {facts->texts[FAULT_GROUP], facts->texts[FAULT_GROUP_ALL]};
	*lookup = (struct fault_lookup){.count = 0};
	for (size_t i = 0; i < ARRAY_LEN(texts) && texts[i].len; i++) {
		struct fault_lookup_hash *hash = &lookup->hashes[lookup->count++];
		ASSERT(texts[i].len <= FAULT_GROUP_NAME_BYTES); /* group.h has made it */
		hash->text = texts[i];
		hash->known.key = hash128(texts[i].data, texts[i].len,
					  hash64(tenant.data, tenant.len, hashes->seed));
		hash->is_known = hashes_find(hashes, now_ms, &hash->known);
		if (!hash->is_known)
			hash->request = hashes_read(tenant, texts[i], read);
	}
}

/* As group.h makes them: letters and digits. Others were written by nobody. */
static bool hashes_is_group(struct slice value)
{
	bool good = value.len && value.len <= FAULT_GROUP_NAME_BYTES;
	for (size_t i = 0; good && i < value.len; i++)
		good = value.data[i] == '-' || value.data[i] == '.' ||
		       isalnum((unsigned char)value.data[i]);
	return good;
}

/* What was read. What has come to be known here meanwhile is newer. */
static void hashes_take(struct fault_hashes *hashes, struct fault_lookup_hash *hash, int64_t now_ms,
			int64_t wall_ms)
{
	struct fault_known *known = &hash->known;
	if (hashes_find(hashes, now_ms, known))
		hash->is_known = true;
	if (hash->is_known || hash->request->err || !hash->request->cell_get.found ||
	    !hashes_is_group(hash->request->cell_get.cell.value))
		return;
	const struct store_cell *cell = &hash->request->cell_get.cell;
	bool again = cell->expires_ms <= wall_ms + HASHES_AGAIN_MS;
	known->until_ms = now_ms + HASHES_FRESH_MS;
	known->state = again ? FAULT_HASH_NEW : FAULT_HASH_STORED;
	known->group_bytes = (uint8_t)cell->value.len;
	memcpy(known->group, cell->value.data, cell->value.len);
	hash->is_known = true;
	hashes_know(hashes, known);
}

/* One that was not known leads to the group of the report from now on. A cell that is damaged the
 * store does not replace. */
static void hashes_enter(struct fault_hashes *hashes, const struct fault_lookup *lookup,
			 struct fault_lookup_hash *hash, int64_t now_ms, size_t *room)
{
	struct fault_known *known = &hash->known;
	if (!hash->is_known) {
		bool has_room = *room && !hash->request->err;
		known->until_ms = now_ms + HASHES_FRESH_MS;
		known->state = has_room ? FAULT_HASH_NEW : FAULT_HASH_LEFT_OUT;
		known->group_bytes = (uint8_t)lookup->group_bytes;
		memcpy(known->group, lookup->group, lookup->group_bytes);
		stat_add(STAT_fault_hashes_left_out, !has_room);
		*room -= has_room;
	}
	hash->enters = known->state == FAULT_HASH_NEW;
	if (hash->enters)
		known->state = FAULT_HASH_ENTERING;
	if (hash->enters || !hash->is_known)
		hashes_know(hashes, known);
}

void fault_hashes_choose(struct fault_hashes *hashes, struct fault_lookup *lookup, int64_t now_ms,
			 int64_t wall_ms, size_t *room)
{
	struct slice group = lookup->hashes[0].text;
	/* Backwards, so that the hash of the application's frames decides. */
	for (size_t i = lookup->count; i-- > 0;) {
		struct fault_lookup_hash *hash = &lookup->hashes[i];
		hashes_take(hashes, hash, now_ms, wall_ms);
		if (hash->is_known)
			group = (struct slice){hash->known.group, hash->known.group_bytes};
	}
	lookup->group_bytes = group.len;
	if (group.len)
		memcpy(lookup->group, group.data, group.len);
	for (size_t i = 0; i < lookup->count; i++)
		hashes_enter(hashes, lookup, &lookup->hashes[i], now_ms, room);
}

void fault_lookup_apply(const struct fault_lookup *lookup, struct fault_facts *facts)
{
	if (!lookup->count)
		return;
	struct slice group = {(char *)lookup->group, lookup->group_bytes};
	struct slice all = lookup->hashes[lookup->count - 1].text;
	facts->texts[FAULT_GROUP] = group;
	facts->texts[FAULT_GROUP_ALL] = slice_equal(all, group) ? SLICE("") : all;
}

int fault_lookup_put(const struct fault_lookup *lookup, struct slice tenant, int64_t stamp_us,
		     int64_t wall_ms, struct store_write *write)
{
	int err = 0;
	for (size_t i = 0; i < lookup->count && !err; i++) {
		const struct fault_lookup_hash *hash = &lookup->hashes[i];
		const struct store_parts key = {{tenant, hashes_row(hash->text)}};
		const struct store_parts column = {{hash->text}};
		if (hash->enters)
			err = store_cell_put(
				write, TABLE_FAULT_HASHES, &key, &column,
				(struct slice){(char *)hash->known.group, hash->known.group_bytes},
				stamp_us, wall_ms + HASHES_KEEP_MS);
	}
	return err;
}

void fault_hashes_note_written(struct fault_hashes *hashes, const struct fault_lookup *lookup,
			       bool failed)
{
	for (size_t i = 0; i < lookup->count; i++) {
		struct fault_known known = lookup->hashes[i].known;
		if (!lookup->hashes[i].enters)
			continue;
		known.state = failed ? FAULT_HASH_NEW : FAULT_HASH_STORED;
		hashes_know(hashes, &known);
	}
}
