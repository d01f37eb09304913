#include "persist/layouts.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/stats.h"

enum { BUCKETS_MIN = 64 };

void layouts_init(struct layouts *layouts, size_t places_max)
{
	*layouts = (struct layouts){.places_max = places_max, .bucket_count = BUCKETS_MIN};
	layouts->buckets = mem_zalloc(BUCKETS_MIN * sizeof(struct layout *));
	layouts->ring.older = layouts->ring.newer = &layouts->ring;
	layouts->source_bucket_count = BUCKETS_MIN;
	layouts->source_buckets = mem_zalloc(BUCKETS_MIN * sizeof(struct source *));
	layouts->sources.before = layouts->sources.after = layouts->pass = &layouts->sources;
}

void layouts_release(struct layouts *layouts)
{
	layouts_clear(layouts);
	mem_free(layouts->buckets);
	mem_free(layouts->source_buckets);
}

void layouts_turn(struct layouts *layouts)
{
	layouts->turn++;
}

static uint64_t hash_of(const struct poll *poll)
{
	uint64_t hash = hash64(poll->device.data, poll->device.len, poll->part);
	hash = hash64(poll->oidset.data, poll->oidset.len, hash);
	return hash64(poll->names.data, poll->names.len, hash);
}

static struct layout **bucket(const struct layouts *layouts, uint64_t hash)
{
	return &layouts->buckets[hash & (layouts->bucket_count - 1)];
}

/* ---- By use ---------------------------------------------------------------------------------- */

static void take_out(struct layout *layout)
{
	layout->older->newer = layout->newer;
	layout->newer->older = layout->older;
}

static void use(struct layouts *layouts, struct layout *layout)
{
	layout->turn = layouts->turn;
	layout->newer = &layouts->ring;
	layout->older = layouts->ring.older;
	layouts->ring.older->newer = layout;
	layouts->ring.older = layout;
}

struct layout *layouts_find(struct layouts *layouts, const struct poll *poll)
{
	uint64_t hash = hash_of(poll);
	struct layout *layout = *bucket(layouts, hash);
	while (layout && !(layout->hash == hash && layout->part == poll->part &&
			   layout->row_count == poll->row_count &&
			   layout->column_count == poll->column_count &&
			   slice_equal(layout->device, poll->device) &&
			   slice_equal(layout->oidset->name, poll->oidset)))
		layout = layout->next;
	if (!layout)
		return NULL;
	take_out(layout);
	use(layouts, layout);
	return layout;
}

static struct slice copy(struct slice text)
{
	return (struct slice){mem_copy_text(text), text.len};
}

/* ---- Sources --------------------------------------------------------------------------------- */

static struct source **source_bucket(const struct layouts *layouts, uint64_t hash)
{
	return &layouts->source_buckets[hash & (layouts->source_bucket_count - 1)];
}

static void grow_sources(struct layouts *layouts)
{
	struct source *ring = &layouts->sources;
	mem_free(layouts->source_buckets);
	layouts->source_bucket_count *= 2;
	layouts->source_buckets =
		mem_zalloc(layouts->source_bucket_count * sizeof(struct source *));
	for (struct source *source = ring->after; source != ring; source = source->after) {
		struct source **at = source_bucket(layouts, source->hash);
		source->next = *at;
		*at = source;
	}
}

static struct source *source_new(struct layouts *layouts, uint64_t hash, const struct layout *of)
{
	struct source *source = mem_zalloc(sizeof(*source)), *ring = &layouts->sources;
	struct source **at = source_bucket(layouts, hash);
	source->hash = hash;
	source->device = copy(of->device);
	source->oidset = of->oidset->stored_as;
	source->newest_ms = source->writing_ms = INT64_MIN;
	source->next = *at;
	*at = source;
	source->before = ring->before;
	source->after = ring;
	ring->before->after = source;
	ring->before = source;
	if (++layouts->source_count > layouts->source_bucket_count)
		grow_sources(layouts);
	return source;
}

static uint64_t source_hash(struct slice device, struct slice set_name)
{
	return hash64(set_name.data, set_name.len, hash64(device.data, device.len, 0));
}

/* OIDSets that are stored under one name are one source. */
struct source *layouts_source(const struct layouts *layouts, struct slice device,
			      struct slice set_name)
{
	uint64_t hash = source_hash(device, set_name);
	struct source *source = *source_bucket(layouts, hash);
	while (source && !(source->hash == hash && slice_equal(source->device, device) &&
			   slice_equal(source->oidset->name, set_name)))
		source = source->next;
	return source;
}

static void join_source(struct layouts *layouts, struct layout *layout)
{
	struct slice set = layout->oidset->set_name;
	struct source *source = layouts_source(layouts, layout->device, set);
	if (!source)
		source = source_new(layouts, source_hash(layout->device, set), layout);
	layout->source = source;
	layout->sibling = source->layouts;
	source->layouts = layout;
}

static void leave_source(struct layouts *layouts, struct layout *layout)
{
	struct source *source = layout->source;
	struct layout **sibling = &source->layouts;
	while (*sibling != layout)
		sibling = &(*sibling)->sibling;
	*sibling = layout->sibling;
	if (source->layouts)
		return;
	struct source **at = source_bucket(layouts, source->hash);
	while (*at != source)
		at = &(*at)->next;
	*at = source->next;
	if (layouts->pass == source)
		layouts->pass = source->after;
	source->before->after = source->after;
	source->after->before = source->before;
	layouts->source_count--;
	mem_free((char *)source->device.data);
	mem_free(source);
}

/* ---- Coming and going ------------------------------------------------------------------------ */

static void count_places(struct layouts *layouts, int64_t by)
{
	layouts->places = (size_t)((int64_t)layouts->places + by);
	stat_add(STAT_persist_places, by);
}

static void layout_free(struct layout *layout)
{
	mem_free((char *)layout->device.data);
	mem_free(layout->columns);
	mem_free(layout->oids);
	mem_free(layout->most);
	mem_free(layout->roots);
	layout_free_places(layout);
	mem_free(layout);
}

void layouts_remove(struct layouts *layouts, struct layout *layout)
{
	struct layout **at = bucket(layouts, layout->hash);
	while (*at != layout)
		at = &(*at)->next;
	*at = layout->next;
	take_out(layout);
	leave_source(layouts, layout);
	layouts->count--;
	count_places(layouts, -(int64_t)(layout->row_count * layout->column_count));
	layout_free(layout);
}

void layouts_clear(struct layouts *layouts)
{
	while (layouts->ring.newer != &layouts->ring)
		layouts_remove(layouts, layouts->ring.newer);
}

static void grow(struct layouts *layouts)
{
	struct layout **old = layouts->buckets;
	size_t old_count = layouts->bucket_count;
	layouts->bucket_count *= 2;
	layouts->buckets = mem_zalloc(layouts->bucket_count * sizeof(struct layout *));
	for (size_t i = 0; i < old_count; i++) {
		while (old[i]) {
			struct layout *layout = old[i];
			old[i] = layout->next;
			struct layout **at = bucket(layouts, layout->hash);
			layout->next = *at;
			*at = layout;
		}
	}
	mem_free(old);
}

static enum column_use use_of(const struct oid_def *oid)
{
	switch (oid->type) {
	case OID_COUNTER32:
	case OID_COUNTER64:
	case OID_TIMETICKS:
		return COLUMN_COUNTER;
	case OID_GAUGE32:
	case OID_INTEGER:
		return COLUMN_GAUGE;
	default:
		return COLUMN_TEXT;
	}
}

/* Of columns of one name the first counts. */
static void find_columns(struct layout *layout, const struct slice *names)
{
	for (size_t c = 0; c < layout->column_count; c++) {
		const struct oid_def *oid = oidset_oid(layout->oidset, names[c]);
		oid = oid ? oid : oid_companion(names[c]);
		for (size_t before = 0; oid && before < c; before++) {
			if (layout->oids[before] == oid)
				oid = NULL;
		}
		layout->oids[c] = oid;
		layout->columns[c] = oid ? use_of(oid) : COLUMN_UNKNOWN;
		bool narrow = layout->columns[c] == COLUMN_COUNTER && oid->type != OID_COUNTER64;
		layout->most[c] = narrow ? UINT32_MAX : UINT64_MAX;
	}
}

static uint64_t path_hash(const struct poll_row *row)
{
	uint64_t hash = row->part_count;
	for (size_t p = 0; p < row->part_count; p++)
		hash = hash64(row->parts[p].data, row->parts[p].len, hash);
	return hash;
}

struct path {
	uint64_t hash;
	size_t row;
};

static int by_hash_and_row(const void *a, const void *b)
{
	const struct path *left = a, *right = b;
	int order = (left->hash > right->hash) - (left->hash < right->hash);
	return order ? order : (left->row > right->row) - (left->row < right->row);
}

/* The paths of so many rows, ascending by hash; to be freed. */
static struct path *paths_of(const struct poll_row *rows, size_t count)
{
	struct path *paths = mem_alloc_array(count + 1, sizeof(*paths));
	for (size_t r = 0; r < count; r++)
		paths[r] = (struct path){path_hash(&rows[r]), r};
	qsort(paths, count, sizeof(*paths), by_hash_and_row);
	return paths;
}

static bool has_path(const struct path *paths, size_t count, uint64_t hash)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (paths[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && paths[low].hash == hash;
}

static void set_root(struct layout *layout, size_t row, size_t before)
{
	if (!layout->roots) {
		layout->roots = mem_alloc_array(layout->row_count, sizeof(*layout->roots));
		for (size_t r = 0; r < layout->row_count; r++)
			layout->roots[r] = r;
	}
	layout->roots[row] = layout->roots[before];
}

static void find_paths(struct layout *layout, const struct poll_row *rows)
{
	struct path *paths = paths_of(rows, layout->row_count);
	for (size_t i = 0; i < layout->row_count; i++) {
		layout->rows[paths[i].row].path = paths[i].hash;
		if (i && paths[i].hash == paths[i - 1].hash)
			set_root(layout, paths[i].row, paths[i - 1].row);
	}
	mem_free(paths);
}

static struct layout *layout_new(const struct poll *poll, const struct oidset *oidset,
				 const struct poll_names *names)
{
	struct layout *layout = mem_zalloc(sizeof(*layout));
	layout->hash = hash_of(poll);
	layout->device = copy(poll->device);
	layout->oidset = oidset;
	layout->part = poll->part;
	layout->row_count = poll->row_count;
	layout->column_count = poll->column_count;
	layout->columns = mem_alloc_array(poll->column_count, sizeof(*layout->columns));
	layout->oids = mem_alloc_array(poll->column_count, sizeof(*layout->oids));
	layout->most = mem_alloc_array(poll->column_count, sizeof(*layout->most));
	layout_make_places(layout);
	find_columns(layout, names->columns);
	find_paths(layout, names->rows);
	return layout;
}

static bool has_column(const struct layout *layout, struct slice name)
{
	for (size_t c = 0; c < layout->column_count; c++) {
		if (layout->oids[c] && slice_equal(layout->oids[c]->name, name))
			return true;
	}
	return false;
}

static bool has_path_of(const struct layout *layout, const struct path *paths, size_t count)
{
	for (size_t r = 0; r < layout->row_count; r++) {
		if (has_path(paths, count, layout->rows[r].path))
			return true;
	}
	return false;
}

/* Whether the layout has series that such a poll may have, too: OIDs and paths in common. */
static bool overlaps(const struct layout *layout, const struct poll *poll,
		     const struct poll_names *names, const struct path *paths)
{
	for (size_t c = 0; c < poll->column_count; c++) {
		if (has_column(layout, names->columns[c]))
			return has_path_of(layout, paths, poll->row_count);
	}
	return false;
}

bool layouts_occupied(const struct layouts *layouts, const struct poll *poll,
		      const struct oidset *oidset, const struct poll_names *names)
{
	const struct source *source = layouts_source(layouts, poll->device, oidset->set_name);
	const struct layout *layout = source ? source->layouts : NULL;
	struct path *paths = paths_of(names->rows, poll->row_count);
	while (layout && !(layout->turn == layouts->turn && overlaps(layout, poll, names, paths)))
		layout = layout->sibling;
	mem_free(paths);
	return layout != NULL;
}

static void remove_overlapping(struct layouts *layouts, const struct layout *kept,
			       const struct poll *poll, const struct poll_names *names)
{
	struct path *paths = paths_of(names->rows, poll->row_count);
	struct layout *layout = kept->source->layouts;
	while (layout) {
		struct layout *next = layout->sibling;
		if (layout != kept && overlaps(layout, poll, names, paths))
			layouts_remove(layouts, layout);
		layout = next;
	}
	mem_free(paths);
}

struct layout *layouts_add(struct layouts *layouts, const struct poll *poll,
			   const struct oidset *oidset, const struct poll_names *names)
{
	struct layout *layout = layout_new(poll, oidset, names);
	struct layout **at = bucket(layouts, layout->hash);
	layout->next = *at;
	*at = layout;
	use(layouts, layout);
	join_source(layouts, layout);
	count_places(layouts, (int64_t)(layout->row_count * layout->column_count));
	if (++layouts->count > layouts->bucket_count)
		grow(layouts);
	remove_overlapping(layouts, layout, poll, names);
	while (layouts->places > layouts->places_max && layouts->ring.newer->turn != layouts->turn)
		layouts_remove(layouts, layouts->ring.newer);
	return layout;
}
