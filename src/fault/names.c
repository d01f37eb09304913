#include "fault/names.h"

#include "base/mem.h"
#include "base/put.h"

enum { NAMES_VALUE_MAX_BYTES = 512 << 10 };
/* So many tallies are unpacked, which take some ten times their bytes then. Less is for tests. */
#ifndef FAULT_UNPACKED_MAX
#define FAULT_UNPACKED_MAX 4096
#endif
/* A group is a fact of reports, so it is no longer than a fact may be. */
_Static_assert(sizeof("group.") - 1 + FAULT_LABEL_MAX_BYTES <= FAULT_COLUMN_MAX_BYTES,
	       "a column has room for a group");

static struct slice names_prefix(const struct fault_names *names)
{
	return names->tallies ? FAULT_GROUP_PREFIX : FAULT_VOLUME_PREFIX;
}

void fault_names_init(struct fault_names *names, int64_t day_us, size_t max, bool tallies)
{
	ASSERT(max > 0);
	*names = (struct fault_names){.day_us = day_us, .max = max, .tallies = tallies};
}

static void names_drop_tally(struct fault_names *names, struct fault_name *name)
{
	if (name->tally) {
		fault_tally_release(name->tally);
		names->unpacked--;
	}
	mem_free(name->tally);
	name->tally = NULL;
	mem_free_slice(name->packed);
	name->packed = (struct slice){NULL, 0};
}

void fault_names_release(struct fault_names *names)
{
	for (size_t at = 0; at < names->table.slot_count; at++) {
		struct fault_name *name = hash_table_at(&names->table, at);
		if (!name)
			continue;
		names_drop_tally(names, name);
		mem_free_slice(name->name);
		mem_free_slice(name->written);
	}
	hash_table_release(&names->table);
	fault_names_init(names, names->day_us, names->max, names->tallies);
}

/* The slot of a name, which is there from then on. */
static struct fault_name *names_slot(struct fault_names *names, struct slice text)
{
	bool added;
	struct hash128 hash = hash128(text.data, text.len, 0);
	struct fault_name *name = hash_table_add(&names->table, hash, sizeof(*name), &added);
	if (added)
		name->name = mem_copy_slice(text);
	return name;
}

const struct fault_name *fault_names_find(const struct fault_names *names, struct slice text)
{
	const struct fault_name *name =
		hash_table_find(&names->table, hash128(text.data, text.len, 0));
	return name && name->count ? name : NULL;
}

const struct fault_name *fault_names_at(const struct fault_names *names, size_t at)
{
	const struct fault_name *name = hash_table_at(&names->table, at);
	return name && name->count ? name : NULL;
}

static int names_merge_bytes(const struct fault_names *names, struct slice value, unsigned facts,
			     struct fault_tally *to)
{
	struct fault_tally read;
	int err = fault_tally_take(&read, names->day_us, facts, value);
	if (!err)
		fault_tally_merge(to, &read, facts);
	fault_tally_release(&read);
	return err;
}

/* The tally of a group as it is now, which is to be released also after an error. */
static int names_take_all(const struct fault_names *names, const struct fault_name *name,
			  unsigned facts, struct fault_tally *tally)
{
	int err = fault_tally_take(tally, names->day_us, facts,
				   name->replaced ? SLICE("") : name->written);
	if (!err && name->tally)
		fault_tally_merge(tally, name->tally, facts);
	else if (!err)
		err = names_merge_bytes(names, name->packed, facts, tally);
	return err;
}

int fault_names_tally(const struct fault_names *names, const struct fault_name *name,
		      unsigned facts, struct fault_tally *to)
{
	struct fault_tally tally;
	int err = names_take_all(names, name, facts, &tally);
	if (!err)
		fault_tally_merge(to, &tally, facts);
	fault_tally_release(&tally);
	return err;
}

/* ---- Counting -------------------------------------------------------------------------------- */

static int64_t names_latest_first_us(const struct fault_names *names)
{
	int64_t latest_us = INT64_MIN;
	for (size_t at = 0; at < names->table.slot_count; at++) {
		const struct fault_name *name = fault_names_at(names, at);
		if (name)
			latest_us = larger_of(latest_us, name->first_us);
	}
	return latest_us;
}

/* The bytes of `tally` take the place of what the slot has of one; it may be the slot's. */
static void names_pack(struct fault_names *names, struct fault_name *name,
		       const struct fault_tally *tally)
{
	struct buf value;
	buf_init(&value, NAMES_VALUE_MAX_BYTES);
	fault_tally_put(tally, names->day_us, &value);
	ASSERT(!value.failed); /* values are short, and so many at most */
	names_drop_tally(names, name);
	name->packed = mem_copy_slice(buf_slice(&value));
	buf_release(&value);
}

static void names_pack_all(struct fault_names *names)
{
	for (size_t at = 0; at < names->table.slot_count; at++) {
		struct fault_name *name = hash_table_at(&names->table, at);
		if (name && name->tally)
			names_pack(names, name, name->tally);
	}
}

static void names_unpack(struct fault_names *names, struct fault_name *name)
{
	if (name->tally)
		return;
	if (names->unpacked >= FAULT_UNPACKED_MAX)
		names_pack_all(names);
	name->tally = mem_zalloc(sizeof(*name->tally));
	names->unpacked++;
	int err = fault_tally_take(name->tally, names->day_us, FAULT_TALLY_ALL, name->packed);
	ASSERT(!err);
}

bool fault_names_add(struct fault_names *names, struct slice text,
		     const struct fault_arrival *arrival)
{
	int64_t date_us = arrival->date_us;
	if (!fault_names_find(names, text) && names->count >= names->max) {
		if (!names->latest_known)
			names->latest_first_us = names_latest_first_us(names);
		names->latest_known = true;
		names->rest++;
		names->disordered |= date_us <= names->latest_first_us;
		return false;
	}
	struct fault_name *name = names_slot(names, text);
	if (names->tallies) {
		names_unpack(names, name);
		fault_tally_add(name->tally, arrival);
	}
	name->first_us = name->count ? smaller_of(name->first_us, date_us) : date_us;
	names->count += name->count == 0;
	name->count++;
	name->dirty = true;
	names->latest_known &= name->count > 1;
	return true;
}

static bool names_erase_one(struct fault_names *names, struct fault_name *name, struct slice user,
			    const struct hash_table *ids)
{
	struct fault_tally tally;
	int err = names_take_all(names, name, FAULT_TALLY_ALL, &tally);
	ASSERT(!err); /* fault_names_load has read the cell */
	bool changed = fault_tally_erase(&tally, user, ids);
	if (changed) {
		names_pack(names, name, &tally);
		name->replaced = name->dirty = true;
	}
	fault_tally_release(&tally);
	return changed;
}

bool fault_names_erase(struct fault_names *names, struct slice user, const struct hash_table *ids)
{
	bool any = false;
	for (size_t at = 0; at < names->table.slot_count; at++) {
		struct fault_name *name = hash_table_at(&names->table, at);
		if (name && name->count)
			any = names_erase_one(names, name, user, ids) || any;
	}
	return any;
}

void fault_names_write_again(struct fault_names *names)
{
	for (size_t at = 0; at < names->table.slot_count; at++) {
		struct fault_name *name = hash_table_at(&names->table, at);
		if (name)
			name->dirty = true;
	}
}

/* The slots stay: the next checkpoint has to write that these names have no reports. */
static void names_empty(struct fault_names *names)
{
	for (size_t at = 0; at < names->table.slot_count; at++) {
		struct fault_name *name = hash_table_at(&names->table, at);
		if (!name || !name->count)
			continue;
		names_drop_tally(names, name);
		name->count = 0;
		name->replaced = name->dirty = true;
	}
}

void fault_names_replace(struct fault_names *names, struct fault_names *fresh)
{
	names_empty(names);
	for (size_t at = 0; at < fresh->table.slot_count; at++) {
		struct fault_name *from = hash_table_at(&fresh->table, at);
		if (!from || !from->count)
			continue;
		struct fault_name *name = names_slot(names, from->name);
		name->count = from->count;
		name->first_us = from->first_us;
		name->tally = from->tally;
		name->packed = from->packed;
		name->replaced = name->dirty = true;
		from->tally = NULL;
		from->packed = (struct slice){NULL, 0};
	}
	names->unpacked = fresh->unpacked;
	names->count = fresh->count;
	names->latest_known = false;
	names->rest = fresh->rest;
	names->disordered = false;
	fault_names_release(fresh);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static void names_put_tally(const struct fault_names *names, const struct fault_name *name,
			    struct buf *out)
{
	struct fault_tally tally;
	if (!name->replaced && !name->tally && !name->packed.len) {
		buf_append(out, name->written.data, name->written.len);
		return;
	}
	int err = names_take_all(names, name, FAULT_TALLY_ALL, &tally);
	ASSERT(!err); /* fault_names_load has read the cell */
	fault_tally_put(&tally, names->day_us, out);
	fault_tally_release(&tally);
}

/* The value of a name's cell. It is empty for a name without reports. */
static void names_put(const struct fault_names *names, const struct fault_name *name,
		      struct buf *out)
{
	if (!name->count)
		return;
	if (names->tallies) {
		names_put_tally(names, name, out);
		return;
	}
	buf_put_varint(out, name->count);
	buf_put_varint(out, (uint64_t)name->first_us);
}

static int names_take(const struct fault_names *names, struct slice value, uint64_t *count,
		      int64_t *first_us)
{
	*count = 0;
	*first_us = 0;
	if (names->tallies) {
		struct fault_tally tally;
		int err = fault_tally_take(&tally, names->day_us, 0, value);
		*count = err ? 0 : tally.count;
		*first_us = tally.first.date_us;
		fault_tally_release(&tally);
		return err;
	}
	struct cursor c = cursor_of(value.data, value.len);
	if (!value.len)
		return 0;
	*count = cursor_varint(&c);
	*first_us = (int64_t)cursor_varint(&c);
	return c.bad ? ERR_DAMAGED : 0;
}

int fault_names_load(struct fault_names *names, struct slice column, struct slice value,
		     struct fault_version version)
{
	struct slice prefix = names_prefix(names);
	uint64_t count;
	int64_t first_us;
	if (!slice_starts_with(column, prefix))
		return 0;
	int err = names_take(names, value, &count, &first_us);
	if (err)
		return err;
	struct fault_name *name = names_slot(
		names, (struct slice){column.data + prefix.len, column.len - prefix.len});
	if (!count) { /* it had some: the cell has what it was before */
		name->version = version;
		return 0;
	}
	names->count += name->count == 0;
	name->count = count;
	name->first_us = first_us;
	name->entered = true;
	name->version = version;
	mem_free_slice(name->written);
	name->written = mem_copy_slice(value);
	names->latest_known = false;
	return 0;
}

static int names_write_one(const struct fault_names *names, const struct fault_name *name,
			   struct fault_version version, fault_names_put *put, void *owner)
{
	struct slice prefix = names_prefix(names);
	char column[FAULT_COLUMN_MAX_BYTES];
	struct buf value, cell;
	ASSERT(prefix.len + name->name.len <= sizeof(column));
	memcpy(column, prefix.data, prefix.len);
	memcpy(column + prefix.len, name->name.data, name->name.len);
	buf_init(&value, NAMES_VALUE_MAX_BYTES);
	buf_init(&cell, 2 * NAMES_VALUE_MAX_BYTES);
	names_put(names, name, &value);
	const struct fault_versioned versioned = {
		.version = version,
		.value = buf_slice(&value),
		.has_before = name->version.tenure != 0,
		.before_version = name->version,
		.before = name->written,
	};
	fault_versioned_encode(&versioned, &cell);
	const struct fault_name_cell given = {
		.column = {column, prefix.len + name->name.len},
		.value = buf_slice(&cell),
		.enters = names->tallies && name->count && !name->entered ? name->name : SLICE(""),
	};
	int err = value.failed || cell.failed ? ERR_LIMIT : put(owner, &given);
	buf_release(&value);
	buf_release(&cell);
	return err;
}

int fault_names_write(const struct fault_names *names, struct fault_version version,
		      fault_names_put *put, void *owner)
{
	int err = 0;
	for (size_t at = 0; at < names->table.slot_count && !err; at++) {
		const struct fault_name *name = hash_table_at(&names->table, at);
		if (name && name->dirty)
			err = names_write_one(names, name, version, put, owner);
	}
	return err;
}

static void names_note_written(struct fault_names *names, struct fault_name *name,
			       struct fault_version version)
{
	struct buf value;
	buf_init(&value, NAMES_VALUE_MAX_BYTES);
	names_put(names, name, &value);
	mem_free_slice(name->written);
	name->written = mem_copy_slice(buf_slice(&value));
	name->version = version;
	name->entered |= name->count > 0;
	name->replaced = name->dirty = false;
	names_drop_tally(names, name);
	buf_release(&value);
}

void fault_names_written(struct fault_names *names, struct fault_version version)
{
	for (size_t at = 0; at < names->table.slot_count; at++) {
		struct fault_name *name = hash_table_at(&names->table, at);
		if (name && name->dirty)
			names_note_written(names, name, version);
	}
}
