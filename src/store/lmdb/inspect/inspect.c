/* What is stored, and whether it is sound: both walk the databases in slices. Token of either:
 * database u8, then the key that comes next; of stats also rows counted in the present segment. */
#include "base/cursor.h"
#include "base/hash.h"
#include "base/stats.h"
#include "store/lmdb/sweep_index.h"

enum {
	SLICE_EXTENTS = 2000,
	SLICE_VALUES = 2000,
	SENTENCES_MAX = 100,
	GROUP_BITS = GROUP_BANDS_MAX * SHAPE_COLUMNS_MAX * TABLE_FIELDS_MAX,
};

/* ---- Stats ----------------------------------------------------------------------------------- */

/* Series of one segment are counted group by group: a bit for each column of each band. */
struct row_counter {
	struct group_id group;
	bool any, unsettled; /* unsettled: the group has extents that are */
	uint64_t rows;       /* of the segment */
	uint64_t seen[GROUP_BITS / 64];
};

static void count_row(struct row_counter *counter, uint32_t ordinal, unsigned column)
{
	size_t bit = (size_t)ordinal * (SHAPE_COLUMNS_MAX * TABLE_FIELDS_MAX) + column;
	if (bit >= GROUP_BITS || counter->seen[bit / 64] >> (bit % 64) & 1)
		return;
	counter->seen[bit / 64] |= UINT64_C(1) << (bit % 64);
	counter->rows++;
}

static int stats_block(struct store_table_stats *table, const struct block *block,
		       size_t field_count, struct row_counter *counter)
{
	table->blocks++;
	table->payload_bytes += block->times.len + block->body.len;
	for (unsigned c = 0; c < block->meta.columns; c++) {
		struct block_summary summary;
		int err = block_read_summary(block, c, &summary);
		if (err)
			return err;
		table->samples += summary.count;
		if (summary.count)
			count_row(counter, block->meta.ordinal,
				  (unsigned)((block->meta.first_column + c) / field_count));
	}
	return 0;
}

/* A new group begins: bits are cleared; with a new segment the count of the last one is kept if it
 * is the greatest of its table. */
static void next_group(struct store_stats *stats, struct row_counter *counter,
		       const struct group_id *id)
{
	if (counter->any) {
		enum table table = counter->group.segment.sheet.table;
		if (counter->rows > stats->tables[table].rows)
			stats->tables[table].rows = counter->rows;
	}
	if (!counter->any || segment_order(&counter->group.segment, &id->segment) != 0)
		counter->rows = 0;
	memset(counter->seen, 0, sizeof(counter->seen));
	counter->group = *id;
	counter->any = true;
	counter->unsettled = false;
}

/* Its group is written once more, denser, when its time has passed: counted once. */
static void see_flush(struct store_stats *stats, struct row_counter *counter, uint32_t flush)
{
	bool waits = flush != SETTLED_FLUSH;
	stats->unsettled_groups += waits && !counter->unsettled;
	counter->unsettled = counter->unsettled || waits;
}

static int stats_extent(const struct env *env, struct store_stats *stats,
			struct row_counter *counter, struct slice key, struct slice value)
{
	enum table number = counter->group.segment.sheet.table;
	struct store_table_stats *table = &stats->tables[number];
	struct extent extent;
	struct block block;
	uint64_t before = table->payload_bytes;
	int err = extent_open(&extent, key, value);
	table->extents++;
	table->key_bytes += key.len;
	table->page_bytes += extent_slack_bytes(env, key.len, value.len);
	while (!err && extent_next(&extent, &block))
		err = stats_block(table, &block, schema[number].field_count, counter);
	table->header_bytes += value.len - (table->payload_bytes - before);
	return err;
}

/* The token: the database, the rows counted so far in the segment of `key`, and `key`. */
static void stats_until(struct store_request *request, const struct row_counter *counter,
			const struct group_id *next, struct slice key)
{
	bool same = segment_order(&next->segment, &counter->group.segment) == 0;
	uint64_t rows = same ? counter->rows : 0;
	request->token.bytes[0] = DB_EXTENTS;
	memcpy(request->token.bytes + 1, &rows, 8);
	memcpy(request->token.bytes + 9, key.data, key.len);
	request->token.len = 9 + key.len;
	request->more = true;
}

static struct slice stats_from(const struct store_request *request, uint64_t *rows)
{
	if (request->token.len <= 9)
		return SLICE("\0");
	memcpy(rows, request->token.bytes + 1, 8);
	return (struct slice){(const char *)request->token.bytes + 9, request->token.len - 9};
}

static int stats_extents(const struct env *env, MDB_cursor *cursor, struct store_stats *stats,
			 struct store_request *request)
{
	struct row_counter *counter = mem_zalloc(sizeof(*counter));
	uint64_t carried = 0;
	struct slice key = stats_from(request, &carried), value;
	int err = env_seek(cursor, &key, &value);
	for (size_t n = 0; !err; n++) {
		struct group_id id;
		int64_t first_ts_ms;
		uint32_t flush;
		err = group_parse_key(key, &id, &first_ts_ms, &flush);
		if (err)
			break;
		if (!counter->any || !group_same(&id, &counter->group)) {
			if (n > SLICE_EXTENTS) { /* groups are counted whole */
				stats_until(request, counter, &id, key);
				break;
			}
			next_group(stats, counter, &id);
			if (n == 0)
				counter->rows = carried;
		}
		see_flush(stats, counter, flush);
		err = stats_extent(env, stats, counter, key, value);
		if (!err)
			err = env_next(cursor, &key, &value);
	}
	next_group(stats, counter, &counter->group);
	mem_free(counter);
	return err == ERR_NOT_FOUND ? 0 : err;
}

static void stats_heads(struct engine *engine, struct store_stats *stats)
{
	pthread_rwlock_rdlock(&engine->heads.lock);
	for (const struct head *head = engine->heads.oldest; head; head = head->newer) {
		struct store_table_stats *table = &stats->tables[head->table];
		table->head_bytes += head_bytes(head);
		table->head_samples += head_samples(head);
	}
	pthread_rwlock_unlock(&engine->heads.lock);
}

static int count_series(struct engine *engine, MDB_txn *txn, uint64_t *series)
{
	MDB_cursor *cursor;
	struct slice key = SLICE("\0"), value;
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_BANDS], &cursor));
	if (err)
		return err;
	*series = 0;
	err = env_seek(cursor, &key, &value);
	while (!err) {
		struct band_view band;
		err = band_parse(key, value, &band);
		if (!err) {
			*series +=
				registry_columns(&engine->registry, band.shape) - band.dead_count;
			err = env_next(cursor, &key, &value);
		}
	}
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}

static int stats_cells(MDB_txn *txn, struct engine *engine, struct store_stats *stats, enum db db)
{
	MDB_cursor *cursor;
	struct slice key = SLICE("\0"), value;
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[db], &cursor));
	if (err)
		return err;
	err = env_seek(cursor, &key, &value);
	while (!err) {
		uint8_t table = (uint8_t)key.data[0];
		if (table < TABLE_COUNT && db == DB_CELLS) {
			stats->tables[table].samples++;
			stats->tables[table].payload_bytes += value.len;
			stats->tables[table].key_bytes += key.len;
		} else if (table < TABLE_COUNT) {
			stats->tables[table].rows++;
			stats->tables[table].key_bytes += key.len + value.len;
		}
		err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}

static int stats_rest(struct engine *engine, MDB_txn *txn, struct store_stats *stats)
{
	int err = count_series(engine, txn, &stats->series);
	if (!err)
		err = stats_cells(txn, engine, stats, DB_CELLS);
	if (!err)
		err = stats_cells(txn, engine, stats, DB_CELL_ROWS);
	if (!err)
		err = stats_pages(&engine->env, txn, stats);
	if (err)
		return err;
	stats_heads(engine, stats);
	stats->journal_records = engine->journal_records;
	stats->journal_bytes = engine->journal_bytes;
	return 0;
}

int inspect_stats(struct engine *engine, struct reader *reader, struct store_request *request)
{
	MDB_cursor *cursor;
	struct store_stats *stats = request->stats;
	if (request->token.len == 0)
		*stats = (struct store_stats){0};
	request->more = false;
	int err = env_error(mdb_cursor_open(reader->txn, engine->env.dbi[DB_EXTENTS], &cursor));
	if (err)
		return err;
	err = stats_extents(&engine->env, cursor, stats, request);
	mdb_cursor_close(cursor);
	return err || request->more ? err : stats_rest(engine, reader->txn, stats);
}

/* ---- Verify ---------------------------------------------------------------------------------- */

struct verifying {
	struct engine *engine;
	MDB_txn *txn;
	struct store_read *read;
	struct store_verify *out;
	enum db db;
	bool is_copying;    /* indexes are made later */
	bool cells_indexed; /* the index of what is swept has all cells that it should have */
	/* Of this database so far, as long as all slices saw one state of the store: else 0. */
	uint64_t txn_id, entries;
};

static void problem(struct verifying *v, struct slice key, const char *what)
{
	char hex[2 * 64 + 1] = "";
	for (size_t i = 0; i < key.len && i < 64; i++)
		snprintf(hex + 2 * i, 3, "%02x", (uint8_t)key.data[i]);
	v->out->problems++;
	if (v->out->sentence_count == SENTENCES_MAX)
		return;
	char *text = arena_printf(&v->read->arena, "%s: %s: %s", db_names[v->db], hex, what);
	if (text)
		v->out->sentences[v->out->sentence_count++] = text;
}

static bool inspect_has_key(struct verifying *v, enum db db, const void *key, size_t len)
{
	struct slice value;
	return env_get(v->txn, v->engine->env.dbi[db], (struct slice){key, len}, &value) == 0;
}

static const char *check_block(const struct group_id *id, const struct block *block,
			       unsigned columns, struct samples *samples)
{
	const struct block_meta *meta = &block->meta;
	int64_t width_ms = schema_segment_ms(id->segment.sheet.table, id->segment.sheet.period_ms);
	if ((unsigned)meta->first_column + meta->columns > columns)
		return "a block has more columns than its shape";
	if (floor_div(meta->first_ts_ms, width_ms) != id->segment.segment ||
	    floor_div(meta->last_ts_ms, width_ms) != id->segment.segment)
		return "a block lies outside its segment";
	samples_reserve(samples, meta->rows);
	samples->count = 0;
	for (unsigned c = 0; c < meta->columns; c++) {
		struct block_summary stored, counted;
		if (block_decode_times(block, samples->ts_ms) ||
		    block_decode_column(block, c, samples->bits[0], samples->types[0]) ||
		    block_read_summary(block, c, &stored))
			return "a block cannot be decoded";
		block_summarise(samples->ts_ms, samples->bits[0], samples->types[0], VALUE_NONE,
				meta->rows, &counted);
		if (stored.count != counted.count ||
		    (stored.count && (!value_equal(stored.min, counted.min) ||
				      !value_equal(stored.max, counted.max) ||
				      !value_identical(stored.first, counted.first) ||
				      !value_identical(stored.last, counted.last))))
			return "a block's summary differs from its values";
	}
	for (uint32_t i = 1; i < meta->rows; i++) {
		if (samples->ts_ms[i] <= samples->ts_ms[i - 1])
			return "the times of a block do not ascend";
	}
	return NULL;
}

const char inspect_no_band[] = "a block's band is not registered";

static const char *verify_extent(struct verifying *v, struct slice key, struct slice value)
{
	struct group_id id;
	struct extent extent;
	struct block block;
	int64_t first_ts_ms, least = INT64_MAX;
	uint32_t flush;
	if (group_parse_key(key, &id, &first_ts_ms, &flush))
		return "the key cannot be read";
	if (extent_open(&extent, key, value))
		return "the checksum or the index is wrong";
	unsigned bands = registry_columns(&v->engine->registry, id.shape);
	if (bands == 0)
		return "its shape is not registered";
	unsigned columns = bands * (unsigned)schema[id.segment.sheet.table].field_count;
	struct samples samples;
	samples_init(&samples, 1);
	const char *fault = NULL;
	while (!fault && extent_next(&extent, &block)) {
		uint8_t band[8];
		be32_put(band, id.shape);
		be32_put(band + 4, id.group * group_bands(bands) + block.meta.ordinal);
		if (block.meta.first_ts_ms < least)
			least = block.meta.first_ts_ms;
		fault = check_block(&id, &block, columns, &samples);
		if (!fault && !inspect_has_key(v, DB_BANDS, band, sizeof(band)))
			fault = inspect_no_band;
	}
	samples_release(&samples);
	if (!fault && least != first_ts_ms)
		fault = "the key's time is not that of its first block";
	return fault;
}

const char *inspect_journal_page(struct engine *engine, struct slice key, struct slice value)
{
	struct journal_view view;
	struct record record;
	const uint8_t *bytes;
	size_t len;
	if (journal_page_open(key, value, &view))
		return "the checksum or the header is wrong";
	for (unsigned i = 0; i < view.records; i++) {
		bytes = record_next(&view.at, &view.left, &len);
		if (!bytes || record_parse(bytes, len, &record))
			return "a record cannot be read";
		if (record.kind == RECORD_ROW && !record_fits(&engine->registry, &record))
			return "a record's shape is not registered";
	}
	return view.left ? "bytes follow the last record" : NULL;
}

static const char *verify_shape(struct verifying *v, struct slice key, struct slice value)
{
	struct shape_view *shape = mem_alloc(sizeof(*shape));
	const char *fault = shape_parse(key, value, shape) ? "it cannot be read" : NULL;
	uint64_t seed = fault ? 0 : hash64(shape->tenant.data, shape->tenant.len, 0);
	for (unsigned i = 0; !fault && i < shape->count; i++) {
		uint8_t index[12];
		be64_put(index, hash64(shape->metric[i].data, shape->metric[i].len, seed));
		be32_put(index + 8, shape->id);
		if (!inspect_has_key(v, DB_METRIC_INDEX, index, sizeof(index)))
			fault = "a metric is not in the index";
	}
	mem_free(shape);
	return fault;
}

/* Whether who looks for its tags finds it. */
static bool is_indexed(struct verifying *v, struct slice key, const struct band_view *band)
{
	struct slice shape_key = {key.data, 4}, value;
	struct shape_view *shape = mem_alloc(sizeof(*shape));
	uint8_t index[16];
	bool found = !env_get(v->txn, v->engine->env.dbi[DB_SHAPES], shape_key, &value) &&
		     !shape_parse(shape_key, value, shape);
	if (found) {
		registry_band_index_key(shape, band, index);
		found = inspect_has_key(v, DB_BAND_INDEX, index, sizeof(index));
	}
	mem_free(shape);
	return found;
}

static const char *verify_band(struct verifying *v, struct slice key, struct slice value)
{
	struct band_view band;
	if (band_parse(key, value, &band))
		return "it cannot be read";
	struct arena arena;
	struct tags tags;
	arena_init(&arena, 1 << 20);
	int err = tags_decode(band.tags_text, &arena, &tags);
	arena_release(&arena);
	if (err)
		return "its tags cannot be read";
	if (!inspect_has_key(v, DB_SHAPES, key.data, 4))
		return "its shape is not registered";
	return v->is_copying || is_indexed(v, key, &band) ? NULL : "it is not in the index";
}

/* Index entries end in the key of what they point to. */
static const char *verify_index(struct verifying *v, struct slice key, enum db target, size_t len)
{
	if (key.len != 8 + len)
		return "the key cannot be read";
	return inspect_has_key(v, target, key.data + 8, len) ? NULL : "it points to nothing";
}

static const char *verify_cell(struct verifying *v, struct slice key, struct slice value)
{
	struct cell cell;
	if (key.len < CELL_ROW_KEY_BYTES || key.len > CELL_KEY_MAX_BYTES ||
	    (uint8_t)key.data[0] >= TABLE_COUNT || schema[(uint8_t)key.data[0]].kind != TABLE_CELLS)
		return "the key cannot be read";
	if (cell_parse(key, value, &cell))
		return "the checksum or the header is wrong";
	if (!inspect_has_key(v, DB_CELL_ROWS, key.data, CELL_ROW_KEY_BYTES))
		return "its row is not registered";
	uint32_t minute = sweep_cell_minute((enum table)key.data[0], &cell);
	if (minute == SWEEP_NEVER || !v->cells_indexed)
		return NULL;
	return sweep_index_has_cell(&v->engine->env, v->txn, key, minute)
		       ? NULL
		       : "it is not in the index of what is swept";
}

static const char *verify_cell_row(struct verifying *v, struct slice key, struct slice value)
{
	struct cell_row row;
	if (cell_row_parse(key, value, &row))
		return "the checksum is wrong, or the hash is not that of the key";
	if (!row.is_deleted || v->is_copying)
		return NULL;
	return sweep_index_has_row(&v->engine->env, v->txn, (const uint8_t *)key.data,
				   sweep_row_minute(&row))
		       ? NULL
		       : "its deletion is not in the index of what is swept";
}

static const char *verify_sweep_row(struct verifying *v, const struct sweep_entry *entry)
{
	struct slice key = cell_key_slice(&entry->key), value;
	struct cell_row row;
	if (env_get(v->txn, v->engine->env.dbi[DB_CELL_ROWS], key, &value))
		return "it points to nothing";
	if (cell_row_parse(key, value, &row) || !row.is_deleted)
		return "the row that it points to was not deleted";
	return sweep_row_is_due(&row, entry->minute)
		       ? NULL
		       : "the row that it points to is due at another time";
}

static const char *verify_sweep_cell(struct verifying *v, const struct sweep_entry *entry)
{
	struct slice key = cell_key_slice(&entry->key), value;
	struct cell cell;
	if (env_get(v->txn, v->engine->env.dbi[DB_CELLS], key, &value))
		return "it points to nothing";
	return cell_parse(key, value, &cell) ||
			       sweep_cell_minute((enum table)key.data[0], &cell) != entry->minute
		       ? "the cell that it points to is due at another time, or never"
		       : NULL;
}

static const char *verify_sweep_index(struct verifying *v, struct slice key)
{
	struct sweep_entry entry;
	if (sweep_index_parse(key, &entry))
		return "the key cannot be read";
	return entry.is_row ? verify_sweep_row(v, &entry) : verify_sweep_cell(v, &entry);
}

static const char *verify_entry(struct verifying *v, struct slice key, struct slice value)
{
	struct slice payload;
	switch (v->db) {
	case DB_EXTENTS:
		return verify_extent(v, key, value);
	case DB_JOURNAL:
		return inspect_journal_page(v->engine, key, value);
	case DB_SHAPES:
		return verify_shape(v, key, value);
	case DB_BANDS:
		return verify_band(v, key, value);
	case DB_BAND_INDEX:
		return verify_index(v, key, DB_BANDS, 8);
	case DB_SHAPE_INDEX:
	case DB_METRIC_INDEX:
		return verify_index(v, key, DB_SHAPES, 4);
	case DB_CELLS:
		return verify_cell(v, key, value);
	case DB_CELL_ROWS:
		return verify_cell_row(v, key, value);
	case DB_BLOBS:
		return record_open(key, value, &payload) ? "the checksum is wrong" : NULL;
	case DB_SWEEP_INDEX:
		return verify_sweep_index(v, key);
	case DB_META:
	case DB_COUNT:
		break;
	}
	return NULL;
}

const char *inspect_entry(struct engine *engine, MDB_txn *txn, enum db db, struct slice key,
			  struct slice value)
{
	struct verifying v = {.engine = engine, .txn = txn, .db = db, .is_copying = true};
	return verify_entry(&v, key, value);
}

static const char *verify_page_and_entry(struct verifying *v, struct slice key, struct slice value)
{
	if (!env_page_is_its_own(&v->engine->env, key))
		return "its page belongs elsewhere";
	if (!env_may_free(v->txn, key, value))
		return "the header of its page is damaged";
	return verify_entry(v, key, value);
}

const char *inspect_extent(struct engine *engine, MDB_txn *txn, struct slice key,
			   struct slice value)
{
	struct verifying v = {.engine = engine, .txn = txn, .db = DB_EXTENTS};
	return verify_page_and_entry(&v, key, value);
}

/* The token: database u8, verifying.txn_id and .entries, then the key that comes next. */
enum { VERIFY_TOKEN_BYTES = 17 };

static void inspect_put_token(const struct verifying *v, struct slice key,
			      struct store_token *token)
{
	token->bytes[0] = (uint8_t)v->db;
	memcpy(token->bytes + 1, &v->txn_id, 8);
	memcpy(token->bytes + 9, &v->entries, 8);
	memcpy(token->bytes + VERIFY_TOKEN_BYTES, key.data, key.len);
	token->len = VERIFY_TOKEN_BYTES + key.len;
}

/* A page that came from elsewhere, or from an earlier time, is sound in itself; what is missing
 * because of it shows in LMDB's own count. */
static void check_count(struct verifying *v)
{
	MDB_stat stat;
	if (!v->txn_id || mdb_stat(v->txn, v->engine->env.dbi[v->db], &stat))
		return;
	if (stat.ms_entries != v->entries)
		problem(v, SLICE(""), "the number of entries is not that of the database");
}

static const char *verify_order(const uint8_t *previous, size_t previous_len, struct slice key)
{
	struct slice before = {(const char *)previous, previous_len};
	return previous_len && slice_compare(before, key) >= 0 ? "the keys do not ascend" : NULL;
}

/* Up to SLICE_VALUES entries of one database from `from` on; *at_end: there are no more, or going
 * on would come to the same ones again. */
static int verify_db(struct verifying *v, struct slice from, struct store_token *token,
		     bool *at_end)
{
	MDB_cursor *cursor;
	struct slice key = from.len ? from : SLICE("\0"), value;
	uint8_t previous[512];
	size_t previous_len = 0;
	int err = env_error(mdb_cursor_open(v->txn, v->engine->env.dbi[v->db], &cursor));
	if (err)
		return err;
	err = env_seek(cursor, &key, &value);
	for (size_t n = 0; !err && n < SLICE_VALUES; n++, v->entries++) {
		const char *fault = verify_page_and_entry(v, key, value);
		if (!fault)
			fault = verify_order(previous, previous_len, key);
		if (fault)
			problem(v, key, fault);
		v->out->checked++;
		previous_len = key.len < sizeof(previous) ? key.len : sizeof(previous);
		memcpy(previous, key.data, previous_len);
		err = env_next(cursor, &key, &value);
	}
	*at_end = err == ERR_NOT_FOUND;
	if (*at_end)
		check_count(v);
	if (!err &&
	    (slice_compare(key, from) <= 0 || VERIFY_TOKEN_BYTES + key.len > STORE_TOKEN_MAX_BYTES))
		*at_end = true;
	if (!err && !*at_end)
		inspect_put_token(v, key, token);
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* Where a resumed request goes on, and with which count. */
static int verify_token_decode(struct verifying *v, const struct store_token *from,
			       struct slice *key)
{
	uint64_t txn_id = 0;
	*key = (struct slice){NULL, 0};
	if (from->len == 0)
		return 0;
	v->db = (enum db)from->bytes[0];
	if (from->len < VERIFY_TOKEN_BYTES || (unsigned)v->db >= DB_COUNT)
		return ERR_INVALID;
	memcpy(&txn_id, from->bytes + 1, 8);
	memcpy(&v->entries, from->bytes + 9, 8);
	*key = (struct slice){(const char *)from->bytes + VERIFY_TOKEN_BYTES,
			      from->len - VERIFY_TOKEN_BYTES};
	if (key->len && txn_id != v->txn_id)
		v->txn_id = 0;
	return 0;
}

int inspect_verify(struct engine *engine, struct reader *reader, struct store_read *read,
		   struct store_request *request)
{
	struct verifying v = {.engine = engine,
			      .txn = reader->txn,
			      .read = read,
			      .out = &request->verify,
			      .db = DB_SHAPES,
			      .txn_id = mdb_txn_id(reader->txn)};
	struct store_token from = request->token;
	struct cell_key next;
	struct slice key;
	request->verify.sentence_count = 0;
	request->verify.sentences =
		arena_alloc(&read->arena, SENTENCES_MAX * sizeof(*request->verify.sentences));
	if (!request->verify.sentences)
		return ERR_LIMIT;
	if (from.len == 0)
		request->verify.checked = request->verify.problems = 0;
	int err = verify_token_decode(&v, &from, &key);
	if (!err && env_has(&engine->env, DB_SWEEP_INDEX))
		err = sweep_index_note_read(&engine->env, v.txn, &v.cells_indexed, &next);
	if (err)
		return err;
	bool at_end = !env_has(&engine->env, v.db);
	if (!at_end)
		err = verify_db(&v, key, &request->token, &at_end);
	request->more = !at_end || v.db + 1 < DB_COUNT;
	if (at_end && request->more) {
		v.db++;
		v.entries = 0;
		inspect_put_token(&v, SLICE(""), &request->token);
	}
	return err;
}
