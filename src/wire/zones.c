#include "wire/zones.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

enum { ZONE_ARENA_BYTES = 256 << 10, ZONE_PATH_BYTES = 512 };

struct zones_kept {
	char name[ZONE_NAME_MAX_BYTES + 1];
	struct zone zone;
	struct arena arena;
	uint64_t used; /* when last, by count of calls; 0: the place is free */
};

struct zones {
	struct files *files;
	char *folder;
	uint64_t calls;
	struct zones_kept kept[ZONES_MAX];
};

struct zones *zones_new(struct files *files, const char *folder)
{
	struct zones *zones = mem_zalloc(sizeof(*zones));
	zones->files = files;
	zones->folder = mem_copy_text(slice_of(folder));
	for (size_t i = 0; i < ZONES_MAX; i++)
		arena_init(&zones->kept[i].arena, ZONE_ARENA_BYTES);
	return zones;
}

void zones_free(struct zones *zones)
{
	if (!zones)
		return;
	for (size_t i = 0; i < ZONES_MAX; i++)
		arena_release(&zones->kept[i].arena);
	mem_free(zones->folder);
	mem_free(zones);
}

bool zone_name_valid(struct slice name)
{
	bool in_part = false;
	if (name.len > ZONE_NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '_' || c == '+' || c == '-';
		if (!plain && (c != '/' || !in_part))
			return false;
		in_part = plain;
	}
	return in_part;
}

static struct zones_kept *zones_find(struct zones *zones, struct slice name)
{
	for (size_t i = 0; i < ZONES_MAX; i++) {
		if (zones->kept[i].used && slice_equal(slice_of(zones->kept[i].name), name))
			return &zones->kept[i];
	}
	return NULL;
}

static struct zones_kept *zones_oldest(struct zones *zones)
{
	struct zones_kept *found = &zones->kept[0];
	for (size_t i = 1; i < ZONES_MAX; i++) {
		if (zones->kept[i].used < found->used)
			found = &zones->kept[i];
	}
	return found;
}

static int zones_load(struct zones *zones, struct slice name, struct zones_kept *kept,
		      struct errbuf *e)
{
	char path[ZONE_PATH_BYTES];
	struct buf bytes;
	snprintf(path, sizeof(path), "%s/%.*s", zones->folder, (int)name.len, name.data);
	buf_init(&bytes, TZIF_MAX_BYTES);
	int err = zones->files->read(zones->files, path, TZIF_MAX_BYTES, &bytes);
	if (err)
		err = errbuf_set(e, ERR_INVALID, "this machine knows none of that name");
	else
		err = zone_parse(buf_slice(&bytes), &kept->arena, &kept->zone, e);
	buf_release(&bytes);
	return err ? errbuf_prefix(e, ERR_INVALID, "time zone \"" SHOWN "\"", SHOWN_OF(name)) : 0;
}

int zones_get(struct zones *zones, struct slice name, const struct zone **zone, struct errbuf *e)
{
	if (slice_equal(name, SLICE("UTC"))) {
		*zone = &zone_utc;
		return 0;
	}
	if (!zone_name_valid(name))
		return errbuf_set(e, ERR_INVALID,
				  "time zone \"" SHOWN "\" is no name like Europe/Berlin",
				  SHOWN_OF(name));
	struct zones_kept *kept = zones_find(zones, name);
	if (!kept) {
		kept = zones_oldest(zones);
		kept->used = 0;
		arena_reset(&kept->arena);
		int err = zones_load(zones, name, kept, e);
		if (err)
			return err;
		ASSERT(name.len < sizeof(kept->name)); /* zone_name_valid */
		memcpy(kept->name, name.data, name.len);
		kept->name[name.len] = 0;
	}
	kept->used = ++zones->calls;
	*zone = &kept->zone;
	return 0;
}
