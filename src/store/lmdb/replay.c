/* The journal into the heads, at the start: what is not yet sealed becomes visible again.
 *
 * A record is skipped if its band has, in that segment, a block that contains its sequence: then it
 * was sealed. Deletions are applied to the heads alone; what they took out of extents they took in
 * the transaction that wrote them. */
#include "base/log.h"
#include "base/stats.h"
#include "store/lmdb/engine.h"

/* The highest sequences of the bands of a group, looked up once. */
struct known_group {
	struct known_group *next;
	struct group_id id;
	uint64_t highest[GROUP_BANDS_MAX];
};

enum {
	KNOWN_BUCKETS = 1 << 18,
	PAGES_A_STEP = 1024, /* of what the caller is told; some 4 MiB */
};

struct replaying {
	struct engine *engine;
	MDB_txn *txn;
	struct known_group *buckets[KNOWN_BUCKETS];
	struct known_group *last; /* neighbours in the journal are neighbours on disk */
	uint64_t samples;
	int64_t now_us;
	uint64_t pages, total;
	bool page_is_named; /* in the sentence of the error */
};

static int replay_find_group(struct replaying *r, const struct group_id *id,
			     struct known_group **out)
{
	if (r->last && group_same(&r->last->id, id)) {
		*out = r->last;
		return 0;
	}
	size_t hash = segment_hash(&id->segment, id->shape, id->group);
	struct known_group **bucket = &r->buckets[hash & (KNOWN_BUCKETS - 1)];
	for (struct known_group *k = *bucket; k; k = k->next) {
		if (group_same(&k->id, id)) {
			*out = r->last = k;
			return 0;
		}
	}
	struct band_span spans[GROUP_BANDS_MAX] = {0};
	int err = group_spans(r->txn, r->engine->env.dbi[DB_EXTENTS], id, spans);
	if (err == ERR_DAMAGED)
		/* What was sealed there may come again as a head: the same values, so no harm. */
		log_warn("store %s: table %s has a damaged group; the start goes on; `granary "
			 "verify` names "
			 "the group",
			 r->engine->options.path, schema[id->segment.sheet.table].name);
	else if (err)
		return err;
	struct known_group *known = mem_zalloc(sizeof(*known));
	known->id = *id;
	for (size_t i = 0; i < GROUP_BANDS_MAX; i++)
		known->highest[i] = spans[i].highest;
	known->next = *bucket;
	*bucket = known;
	*out = r->last = known;
	return 0;
}

static int replay_record(struct replaying *r, const struct incoming *row)
{
	const struct record *record = &row->record;
	struct engine *engine = r->engine;
	if (record->kind != RECORD_ROW) {
		heads_apply_delete(&engine->heads, record);
		return 0;
	}
	const struct store_target *sheet = &record->sheet;
	if (!record_fits(&engine->registry, record))
		return ERR_DAMAGED;
	struct segment_id segment = {*sheet,
				     segment_of(sheet->table, sheet->period_ms, record->ts_ms)};
	uint32_t ordinal_in_group;
	struct group_id id = engine_group_of(engine, &segment, record->shape, record->ordinal,
					     &ordinal_in_group);
	struct known_group *known;
	int err = replay_find_group(r, &id, &known);
	if (err || row->sequence <= known->highest[ordinal_in_group])
		return err;
	struct head *head = heads_apply_row(&engine->heads, &engine->registry, row, r->now_us);
	seal_if_full(engine, head);
	r->samples += record->columns;
	return 0;
}

static int replay_page(struct replaying *r, struct slice key, struct slice value)
{
	struct journal_view view;
	struct incoming rows[INCOMING_MAX];
	const uint8_t *bytes;
	size_t len;
	unsigned count;
	int err = journal_page_open(key, value, &view);
	if (err)
		return err;
	for (unsigned i = 0; i < view.records && !err; i += count) {
		for (count = 0; count < INCOMING_MAX && i + count < view.records && !err; count++) {
			bytes = record_next(&view.at, &view.left, &len);
			rows[count].sequence = view.first_sequence + i + count;
			err = bytes ? record_parse(bytes, len, &rows[count].record) : ERR_DAMAGED;
		}
		if (!err)
			heads_foresee(&r->engine->heads, rows, count);
		for (unsigned n = 0; n < count && !err; n++)
			err = replay_record(r, &rows[n]);
	}
	if (err)
		return err;
	struct journal_entry entry = {view.first_sequence, view.written_ms, (uint32_t)value.len,
				      view.records};
	journal_list_add(r->engine, &entry);
	r->engine->next_sequence = view.first_sequence + view.records;
	return 0;
}

static int damaged_page(struct replaying *r, struct slice key, struct slice value, struct errbuf *e)
{
	struct engine *engine = r->engine;
	char hex[2 * 16 + 1] = "";
	if (engine->options.inspect)
		return 0;
	for (size_t i = 0; i < key.len && i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", (uint8_t)key.data[i]);
	r->page_is_named = true;
	const char *why = inspect_journal_page(engine, key, value);
	return errbuf_set(e, ERR_DAMAGED,
			  "the journal in %s cannot be replayed: page %s is damaged: %s",
			  engine->options.path, hex, why ? why : "its records cannot be read");
}

static void replay_tell(struct replaying *r)
{
	if (r->engine->options.on_replay && r->pages % PAGES_A_STEP == 0)
		r->engine->options.on_replay(r->pages, r->total);
	r->pages++;
}

static void replay_forget_known(struct replaying *r)
{
	for (size_t i = 0; i < KNOWN_BUCKETS; i++) {
		while (r->buckets[i]) {
			struct known_group *next = r->buckets[i]->next;
			mem_free(r->buckets[i]);
			r->buckets[i] = next;
		}
	}
}

int replay(struct engine *engine, struct errbuf *e)
{
	struct replaying *r = mem_zalloc(sizeof(*r));
	r->engine = engine;
	r->now_us = engine_now_us(engine);
	MDB_cursor *cursor;
	struct slice key = SLICE("\0"), value;
	int err = env_error(mdb_txn_begin(engine->env.mdb, NULL, MDB_RDONLY, &r->txn));
	if (!err) {
		err = env_error(mdb_cursor_open(r->txn, engine->env.dbi[DB_JOURNAL], &cursor));
		if (!err) {
			MDB_stat stat;
			err = env_error(mdb_stat(r->txn, mdb_cursor_dbi(cursor), &stat));
			r->total = err ? 0 : stat.ms_entries;
			err = err ? err : env_seek(cursor, &key, &value);
			while (!err) {
				replay_tell(r);
				err = replay_page(r, key, value);
				if (err == ERR_DAMAGED)
					err = damaged_page(r, key, value, e);
				if (!err)
					err = env_next(cursor, &key, &value);
			}
			mdb_cursor_close(cursor);
		}
		mdb_txn_abort(r->txn);
	}
	if (err == ERR_NOT_FOUND)
		err = 0;
	if (err && !r->page_is_named)
		errbuf_set(e, err, "the journal in %s cannot be replayed: %s", engine->options.path,
			   err_text(err));
	stat_add(STAT_store_replayed_samples, (int64_t)r->samples);
	if (r->samples)
		log_info("store %s: replayed %llu samples in %lld ms", engine->options.path,
			 (unsigned long long)r->samples,
			 (long long)(engine_now_us(engine) - r->now_us) / 1000);
	replay_forget_known(r);
	mem_free(r);
	return err;
}
