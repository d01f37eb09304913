#include "api/esmond/zone.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "wire/calendar.h"

enum { ZONE_ARENA_BYTES = 256 << 10, PATH_BYTES = 512 };

struct kept {
	char name[V2_ZONE_NAME_MAX_BYTES + 1];
	struct zone zone;
	struct arena arena;
	uint64_t used; /* when last, by count of calls; 0: the place is free */
};

struct v2_zones {
	struct files *files;
	char *folder;
	uint64_t calls;
	struct kept kept[V2_ZONES_MAX];
};

struct v2_zones *v2_zones_new(struct files *files, const char *folder)
{
	struct v2_zones *zones = mem_zalloc(sizeof(*zones));
	zones->files = files;
	zones->folder = mem_copy_text(slice_of(folder));
	for (size_t i = 0; i < V2_ZONES_MAX; i++)
		arena_init(&zones->kept[i].arena, ZONE_ARENA_BYTES);
	return zones;
}

void v2_zones_free(struct v2_zones *zones)
{
	if (!zones)
		return;
	for (size_t i = 0; i < V2_ZONES_MAX; i++)
		arena_release(&zones->kept[i].arena);
	mem_free(zones->folder);
	mem_free(zones);
}

bool v2_zone_name_valid(struct slice name)
{
	bool in_part = false;
	if (name.len > V2_ZONE_NAME_MAX_BYTES)
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

static struct kept *find_kept(struct v2_zones *zones, struct slice name)
{
	for (size_t i = 0; i < V2_ZONES_MAX; i++) {
		if (zones->kept[i].used && slice_equal(slice_of(zones->kept[i].name), name))
			return &zones->kept[i];
	}
	return NULL;
}

static struct kept *v2_zone_oldest(struct v2_zones *zones)
{
	struct kept *found = &zones->kept[0];
	for (size_t i = 1; i < V2_ZONES_MAX; i++) {
		if (zones->kept[i].used < found->used)
			found = &zones->kept[i];
	}
	return found;
}

static int v2_zone_load(struct v2_zones *zones, struct slice name, struct kept *kept,
			struct errbuf *e)
{
	char path[PATH_BYTES];
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

int v2_zones_get(struct v2_zones *zones, struct slice name, const struct zone **zone,
		 struct errbuf *e)
{
	if (slice_equal(name, SLICE("UTC"))) {
		*zone = &zone_utc;
		return 0;
	}
	if (!v2_zone_name_valid(name))
		return errbuf_set(e, ERR_INVALID,
				  "time zone \"" SHOWN "\" is no name like Europe/Berlin",
				  SHOWN_OF(name));
	struct kept *kept = find_kept(zones, name);
	if (!kept) {
		kept = v2_zone_oldest(zones);
		kept->used = 0;
		arena_reset(&kept->arena);
		int err = v2_zone_load(zones, name, kept, e);
		if (err)
			return err;
		ASSERT(name.len < sizeof(kept->name)); /* v2_zone_name_valid */
		memcpy(kept->name, name.data, name.len);
		kept->name[name.len] = 0;
	}
	kept->used = ++zones->calls;
	*zone = &kept->zone;
	return 0;
}

/* ---- Days and months ------------------------------------------------------------------------- */

static int64_t first_day(enum v2_span span, int64_t day)
{
	struct date date = date_of_days(day);
	return span == SPAN_DAY ? day : day - (date.day - 1);
}

int64_t v2_next_month(int64_t day)
{
	struct date date = date_of_days(day);
	date.day = 1;
	date.month++;
	if (date.month > 12) {
		date.month = 1;
		date.year++;
	}
	return days_of_date(date);
}

static int64_t next_day(enum v2_span span, int64_t day)
{
	return span == SPAN_DAY ? day + 1 : v2_next_month(day);
}

int v2_spans(const struct zone *zone, enum v2_span span, int64_t begin_s, int64_t end_s,
	     int64_t *edges_s, int64_t *days, size_t *count)
{
	int64_t day = first_day(span, zone_day_of(zone, begin_s));
	edges_s[0] = zone_day_begin(zone, day);
	*count = 0;
	while (edges_s[*count] <= end_s) {
		int64_t next = next_day(span, day), next_s = zone_day_begin(zone, next);
		if (*count == V2_SPANS_MAX)
			return ERR_LIMIT;
		days[*count] = day;
		if (next_s > edges_s[*count])
			edges_s[++*count] = next_s;
		day = next;
	}
	ASSERT(*count <= V2_SPANS_MAX);
	return 0;
}

void v2_span_text(enum v2_span span, int64_t day, char *to)
{
	struct date date = date_of_days(day);
	int n = snprintf(to, V2_SPAN_TEXT_BYTES, "%04lld-%02d", (long long)date.year, date.month);
	if (span == SPAN_DAY)
		snprintf(to + n, (size_t)(V2_SPAN_TEXT_BYTES - n), "-%02d", date.day);
}

int v2_month_parse(struct slice text, int64_t *day)
{
	int number = 0;
	if (text.len != 7 || text.data[4] != '-')
		return ERR_INVALID;
	for (size_t i = 0; i < text.len; i++) {
		if (i == 4)
			continue;
		if (text.data[i] < '0' || text.data[i] > '9')
			return ERR_INVALID;
		number = number * 10 + (text.data[i] - '0');
	}
	if (number / 100 < 1 || number % 100 < 1 || number % 100 > 12)
		return ERR_INVALID;
	*day = days_of_date((struct date){number / 100, number % 100, 1});
	return 0;
}
