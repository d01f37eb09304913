/* Damage that a read has met, told to people: in the read's sentence what of the data asked for is
 * lost, in the log what is wrong where, in the words of STORE_VERIFY. Whoever reads found out only
 * that something is; here the group it looked at last is gone through once more. */
#include "base/log.h"
#include "store/lmdb/read/read.h"
#include "wire/timetext.h"

enum {
	FAULTS_MAX = 4, /* told of one group */
	EXTENTS_LOOKED_AT = 1000,
	SHOWN_MAX_BYTES = 120, /* of a metric's name, and of a series' tags */
	LINES_A_MINUTE_MAX = 10,
	NAMES_MAX_BYTES = 64 << 10,
};

struct damage_place {
	char hex[2 * EXTENT_KEY_BYTES + 1];
	uint64_t page;
	const char *what;
};

struct damage {
	struct reading *r;
	char series[2 * SHOWN_MAX_BYTES + 64], segment[TIME_PRINT_MAX_BYTES + 1];
	struct damage_place places[FAULTS_MAX];
	size_t count; /* of faults: may be more than places */
};

static bool damage_may_log(struct engine *engine, uint64_t *left_out)
{
	pthread_mutex_lock(&engine->readers_lock);
	engine->damage_lines.lines_max = LINES_A_MINUTE_MAX;
	bool taken = log_rate_take(&engine->damage_lines, engine_now_us(engine) / 1000, left_out);
	pthread_mutex_unlock(&engine->readers_lock);
	return taken;
}

static void log_damage(struct engine *engine, const char *sentence)
{
	uint64_t left_out;
	if (!damage_may_log(engine, &left_out))
		return;
	if (left_out)
		log_error("store %s: %s (%llu more lines like this were left out)",
			  engine->options.path, sentence, (unsigned long long)left_out);
	else
		log_error("store %s: %s", engine->options.path, sentence);
}

/* ---- A group -------------------------------------------------------------------------------- */

static void note(struct damage *d, struct slice key, struct slice value, const char *what)
{
	const struct env *env = &d->r->engine->env;
	if (d->count++ >= FAULTS_MAX)
		return;
	struct damage_place *place = &d->places[d->count - 1];
	for (size_t i = 0; i < key.len && i < EXTENT_KEY_BYTES; i++)
		snprintf(place->hex + 2 * i, 3, "%02x", (uint8_t)key.data[i]);
	place->page = ((uintptr_t)value.data - env->base) / env->page_bytes;
	place->what = what;
}

static void damage_inspect_group(struct damage *d)
{
	struct reading *r = d->r;
	uint8_t prefix[GROUP_PREFIX_BYTES];
	struct slice key = {(const char *)prefix, sizeof(prefix)}, value;
	group_prefix(&r->group, prefix);
	int err = r->extents ? env_seek(r->extents, &key, &value) : ERR_NOT_FOUND;
	for (size_t n = 0; !err && n < EXTENTS_LOOKED_AT; n++) {
		if (key.len < sizeof(prefix) || memcmp(key.data, prefix, sizeof(prefix)) != 0)
			break;
		const char *what = inspect_extent(r->engine, r->reader->txn, key, value);
		if (what)
			note(d, key, value, what);
		err = env_next(r->extents, &key, &value);
	}
}

/* `metric{tags}`; the numbers of the series where its names cannot be read either. */
static void damage_name_series(struct damage *d)
{
	struct reading *r = d->r;
	struct arena arena;
	struct store_series_describe describe = {.handles = &r->handle, .count = 1};
	arena_init(&arena, NAMES_MAX_BYTES);
	if (r->extents)
		mdb_cursor_close(r->extents); /* describing takes a new snapshot */
	r->extents = NULL;
	int err = registry_series_describe(&r->engine->registry, r->reader->txn, &describe, &arena);
	if (err || !describe.series[0].handle) {
		snprintf(d->series, sizeof(d->series), "shape %u, band %u, column %u",
			 handle_shape(r->handle), handle_ordinal(r->handle),
			 handle_column(r->handle));
	} else {
		struct slice metric = describe.series[0].metric,
			     tags = describe.series[0].tags_text;
		bool cut = metric.len > SHOWN_MAX_BYTES, tags_cut = tags.len > SHOWN_MAX_BYTES;
		snprintf(d->series, sizeof(d->series), "%.*s%s{%.*s%s}",
			 (int)(cut ? SHOWN_MAX_BYTES : metric.len), metric.data, cut ? "..." : "",
			 (int)(tags_cut ? SHOWN_MAX_BYTES : tags.len), tags.data,
			 tags_cut ? "..." : "");
	}
	arena_release(&arena);
}

static void damage_name_segment(struct damage *d)
{
	const struct segment_id *id = &d->r->group.segment;
	int64_t width_ms = schema_segment_ms(id->sheet.table, id->sheet.period_ms), begin_ms;
	if (__builtin_mul_overflow(id->segment, width_ms, &begin_ms))
		begin_ms = 0; /* no sample has such a time */
	d->segment[time_print(d->segment, begin_ms)] = 0;
}

static void tell_group(struct damage *d)
{
	const char *table = schema[d->r->group.segment.sheet.table].name;
	struct errbuf e;
	for (size_t i = 0; i < d->count && i < FAULTS_MAX; i++) {
		const struct damage_place *place = &d->places[i];
		errbuf_set(&e, ERR_DAMAGED,
			   "damaged: table %s, segment of %s, met on reading %s: %s: %s: %s, page "
			   "%llu",
			   table, d->segment, d->series, db_names[DB_EXTENTS], place->hex,
			   place->what, (unsigned long long)place->page);
		log_damage(d->r->engine, e.text);
	}
	if (d->count && d->count <= FAULTS_MAX)
		return;
	errbuf_set(&e, ERR_DAMAGED,
		   "damaged: table %s, segment of %s, met on reading %s: %zu extents that can be "
		   "reached; granary "
		   "verify --data %s lists all that is",
		   table, d->segment, d->series, d->count, d->r->engine->options.path);
	log_damage(d->r->engine, e.text);
}

static void damaged_group(struct reading *r)
{
	struct damage d = {.r = r};
	damage_inspect_group(&d);
	damage_name_series(&d);
	damage_name_segment(&d);
	tell_group(&d);
	errbuf_set(&r->read->error, ERR_DAMAGED,
		   "a block of %s at %s is damaged; granary verify --data %s lists what is",
		   d.series, d.segment, r->engine->options.path);
}

/* ---- Anything else -------------------------------------------------------------------------- */

static const char *what_was_asked(enum store_op op)
{
	switch (op) {
	case STORE_SERIES_OPEN:
	case STORE_SERIES_LIST:
	case STORE_SERIES_DESCRIBE:
		return "names of series";
	case STORE_CELL_GET:
	case STORE_CELL_SCAN:
		return "cells";
	default:
		return "something stored";
	}
}

void reading_damaged(struct reading *r, const struct store_request *request)
{
	struct errbuf e;
	if (r->read->error.text[0])
		return;
	if (r->looked) {
		damaged_group(r);
		return;
	}
	errbuf_set(&e, ERR_DAMAGED, "damaged: %s; granary verify --data %s lists what is",
		   what_was_asked(request->op), r->engine->options.path);
	log_damage(r->engine, e.text);
	r->read->error = e;
}
