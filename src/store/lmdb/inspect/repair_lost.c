#include "base/buf.h"
#include "base/cursor.h"
#include "base/grow.h"
#include "store/lmdb/inspect/repair.h"

enum { LOST_BANDS_MAX = 100000, NAME_MAX_BYTES = 1000, COMMIT_PAGES = 16384 };

static const char no_names[] = "the names of its series are lost";
static const char may_be_deleted[] = "a lost page of the journal may have deleted it";

/* ---- Bands that lose rows -------------------------------------------------------------------- */

static int lost_band_order(const void *a, const void *b)
{
	const struct lost_band *x = a, *y = b;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	if (x->shape != y->shape)
		return x->shape < y->shape ? -1 : 1;
	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

/* One entry for each band. */
static void lost_bands_join(struct repairing *r)
{
	size_t kept = 0;
	if (r->band_count)
		qsort(r->bands, r->band_count, sizeof(*r->bands), lost_band_order);
	for (size_t i = 0; i < r->band_count; i++) {
		struct lost_band *last = kept ? &r->bands[kept - 1] : NULL;
		const struct lost_band *next = &r->bands[i];
		if (!last || lost_band_order(last, next) != 0) {
			r->bands[kept++] = *next;
			continue;
		}
		last->from_ms = next->from_ms < last->from_ms ? next->from_ms : last->from_ms;
		last->to_ms = next->to_ms > last->to_ms ? next->to_ms : last->to_ms;
	}
	r->band_count = kept;
}

static void lost_bands_add(struct repairing *r, const struct lost_band *band)
{
	if (r->band_count == r->band_cap && r->band_cap >= LOST_BANDS_MAX)
		lost_bands_join(r);
	GROW(r->bands, r->band_cap, r->band_count + 1);
	r->bands[r->band_count++] = *band;
}

static void lost_band_name(struct repairing *r, const struct lost_band *lost, struct buf *out)
{
	uint8_t bytes[8];
	struct slice key = {(const char *)bytes, 8}, shape_key = {(const char *)bytes, 4}, value;
	struct band_view band = {.tags_text = SLICE("?")};
	be32_put(bytes, lost->shape);
	be32_put(bytes + 4, lost->ordinal);
	if (env_get(r->txn, r->engine->env.dbi[DB_SHAPES], shape_key, &value) ||
	    shape_parse(shape_key, value, &r->shape)) {
		buf_printf(out, "series of shape %u, band %u", lost->shape, lost->ordinal);
	} else {
		if (!env_get(r->txn, r->engine->env.dbi[DB_BANDS], key, &value) &&
		    band_parse(key, value, &band))
			band.tags_text = SLICE("?");
		datafile_name_band(&r->shape, &band, out);
	}
	(void)!buf_append(out, "", 1);
}

static void lost_bands_tell(struct repairing *r, const char *what)
{
	lost_bands_join(r);
	for (size_t i = 0; i < r->band_count; i++) {
		const struct lost_band *band = &r->bands[i];
		struct buf name;
		buf_init(&name, NAME_MAX_BYTES);
		lost_band_name(r, band, &name);
		struct lmdb_lost lost = {.what = what,
					 .table = schema[band->table].name,
					 .series = name.failed ? "a series of a long name"
							       : name.data,
					 .from_ms = band->from_ms,
					 .to_ms = band->to_ms,
					 .why = band->why};
		repair_tell(r, &lost);
		buf_release(&name);
	}
	r->band_count = 0;
}

void repair_release_lost(struct repairing *r)
{
	mem_free(r->bands);
	mem_free(r->groups);
}

static bool has_band(struct repairing *r, uint32_t shape, uint32_t ordinal)
{
	uint8_t bytes[8];
	struct slice key = {(const char *)bytes, 8}, value;
	be32_put(bytes, shape);
	be32_put(bytes + 4, ordinal);
	return env_get(r->txn, r->engine->env.dbi[DB_BANDS], key, &value) == 0;
}

/* ---- Extents --------------------------------------------------------------------------------- */

void repair_note_group(struct repairing *r, struct slice key)
{
	struct group_id id;
	int64_t first_ts_ms;
	uint32_t flush;
	if (group_parse_key(key, &id, &first_ts_ms, &flush))
		return;
	if (r->group_count && group_same(&r->groups[r->group_count - 1], &id))
		return;
	GROW(r->groups, r->group_cap, r->group_count + 1);
	r->groups[r->group_count++] = id;
}

static void drop_strips(struct repairing *r, const struct group_id *id, struct strips *strips)
{
	uint32_t bands = group_bands(registry_columns(&r->engine->registry, id->shape));
	for (size_t i = 0; i < strips->count;) {
		struct strip strip = strips->list[i];
		uint32_t ordinal = id->group * bands + strip.ordinal_in_group;
		if (has_band(r, id->shape, ordinal)) {
			i++;
			continue;
		}
		struct lost_band lost = {id->segment.sheet.table,
					 id->shape,
					 ordinal,
					 INT64_MAX,
					 INT64_MIN,
					 no_names};
		for (size_t n = 0; n < strip.samples.count; n++) {
			int64_t ts_ms = strip.samples.ts_ms[n];
			lost.from_ms = ts_ms < lost.from_ms ? ts_ms : lost.from_ms;
			lost.to_ms = ts_ms > lost.to_ms ? ts_ms : lost.to_ms;
		}
		lost_bands_add(r, &lost);
		strips->list[i] = strips->list[--strips->count];
		strips->list[strips->count] = strip;
	}
}

static int repair_group(struct repairing *r, const struct group_id *id, struct strips *strips)
{
	MDB_dbi dbi = r->engine->env.dbi[DB_EXTENTS];
	bool changed = false;
	uint64_t bytes = 0;
	strips_reset(strips);
	int err = strips_load(strips, r->txn, dbi, id);
	if (err)
		return err;
	drop_strips(r, id, strips);
	err = group_clear(r->txn, dbi, id, &changed);
	if (!err && strips->count)
		err = group_store(r->txn, dbi, id, strips, (uint32_t)r->counters[COUNTER_FLUSH]++,
				  &bytes);
	return err ? err : repair_commit(r);
}

int repair_groups(struct repairing *r)
{
	struct strips strips = {0};
	int err = 0;
	for (size_t i = 0; i < r->group_count && !err; i++)
		err = repair_group(r, &r->groups[i], &strips);
	strips_release(&strips);
	lost_bands_tell(r, db_names[DB_EXTENTS]);
	return err;
}

/* ---- The journal ----------------------------------------------------------------------------- */

/* Rows of a lower sequence may have been deleted by what is lost. */
static uint64_t unsure_below(const struct repairing *r)
{
	const struct repair_losses *kept = &r->losses[DB_JOURNAL];
	const struct pages_tree *tree = &r->file.trees[DB_JOURNAL];
	uint64_t below = 0, least = UINT64_MAX;
	bool some_lost = r->seen[DB_JOURNAL] < tree->entries || !r->file.found[DB_JOURNAL];
	for (size_t i = 0; i < kept->count; i++) {
		const struct pages_loss *loss = &kept->list[i];
		if (loss->one && i >= kept->walked)
			continue; /* r->damaged says more of it */
		struct slice to = loss->one ? loss->from : loss->to;
		uint64_t from =
			loss->from.len == 8 ? be64_get((const uint8_t *)loss->from.data) : 0;
		uint64_t end = to.len == 8 ? be64_get((const uint8_t *)to.data) : UINT64_MAX;
		if (!loss->one && !some_lost)
			continue; /* all of it has been found again */
		least = from < least ? from : least;
		below = end > below ? end : below;
	}
	if (r->damaged.from < r->damaged.below) {
		least = r->damaged.from < least ? r->damaged.from : least;
		below = r->damaged.below > below ? r->damaged.below : below;
	}
	if (kept->more) /* of these nothing is known */
		below = UINT64_MAX;
	if (some_lost && !kept->count) {
		below = UINT64_MAX;
		least = 0;
	}
	return r->last_deletion < least ? 0 : below;
}

static void lose_row(struct repairing *r, const struct record *record, const char *why)
{
	struct lost_band lost = {record->sheet.table, record->shape, record->ordinal,
				 record->ts_ms,       record->ts_ms, why};
	if (record->kind == RECORD_ROW)
		lost_bands_add(r, &lost);
}

static int put_page(struct repairing *r, struct journal_page *page)
{
	uint8_t bytes[8];
	if (!page->records)
		return 0;
	journal_page_finish(page, bytes);
	return env_put(r->txn, r->engine->env.dbi[DB_JOURNAL],
		       (struct slice){(const char *)bytes, 8},
		       (struct slice){(const char *)page->bytes, page->used});
}

/* A page without the rows that cannot stay becomes several, so that each record keeps its sequence.
 */
static int repair_page(struct repairing *r, struct slice key, struct slice value, bool unsure)
{
	struct journal_page *page = mem_alloc(sizeof(*page));
	struct journal_view view;
	struct record record;
	char *copy = mem_copy_text(value);
	size_t len;
	int err = journal_page_open(key, (struct slice){copy, value.len}, &view);
	if (!err)
		err = env_delete(r->txn, r->engine->env.dbi[DB_JOURNAL], key);
	if (!err)
		journal_page_init(page, view.first_sequence, view.written_ms);
	for (unsigned i = 0; i < view.records && !err; i++) {
		const uint8_t *bytes = record_next(&view.at, &view.left, &len);
		err = bytes ? record_parse(bytes, len, &record) : ERR_DAMAGED;
		if (err)
			break;
		if (!unsure && has_band(r, record.shape, record.ordinal)) {
			bool added = journal_page_add(page, bytes, len);
			ASSERT(added);
			continue;
		}
		lose_row(r, &record, unsure ? may_be_deleted : no_names);
		err = put_page(r, page);
		journal_page_init(page, view.first_sequence + i + 1, view.written_ms);
	}
	if (!err)
		err = put_page(r, page);
	mem_free(copy);
	mem_free(page);
	return err;
}

static bool page_is_whole(struct repairing *r, struct slice key, struct slice value)
{
	struct journal_view view;
	struct record record;
	size_t len;
	bool whole = journal_page_open(key, value, &view) == 0;
	for (unsigned i = 0; i < view.records && whole; i++) {
		const uint8_t *bytes = record_next(&view.at, &view.left, &len);
		whole = bytes && !record_parse(bytes, len, &record) &&
			has_band(r, record.shape, record.ordinal);
	}
	return whole;
}

/* The first page from `next` on. */
static int seek_page(struct repairing *r, uint8_t next[8], struct slice *key, struct slice *value)
{
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(r->txn, r->engine->env.dbi[DB_JOURNAL], &cursor));
	if (err)
		return err;
	*key = (struct slice){(const char *)next, 8};
	err = env_seek(cursor, key, value);
	mdb_cursor_close(cursor);
	return err;
}

int repair_journal(struct repairing *r)
{
	uint64_t below = unsure_below(r);
	uint8_t next[8] = {0};
	struct slice key, value;
	int err = seek_page(r, next, &key, &value);
	while (!err) {
		uint64_t sequence = be64_get((const uint8_t *)key.data);
		bool unsure = sequence < below;
		memcpy(next, key.data, sizeof(next));
		key.data = (const char *)next;
		if (unsure || !page_is_whole(r, key, value))
			err = repair_page(r, key, value, unsure);
		if (!err && ++r->uncommitted >= COMMIT_PAGES)
			err = repair_commit(r);
		/* What it has become lies between it and the next one, and is looked at, too. */
		be64_put(next, sequence + 1);
		if (!err)
			err = seek_page(r, next, &key, &value);
	}
	lost_bands_tell(r, db_names[DB_JOURNAL]);
	return err == ERR_NOT_FOUND ? 0 : err;
}
