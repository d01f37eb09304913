/* Forgetting series, in the writer's transaction: one that has data stays.
 *
 * Data lies in three places: in extents, which deletions of this transaction have already been
 * taken out of; in heads, which deletions reach only after the commit; and in the records of the
 * batch itself. A batch that forgets is alone in its cycle, so nobody else's records matter. */
#include "store/lmdb/engine.h"

/* A series, and the records that come before its forgetting: those of the stages to `last`. */
struct leaving {
	struct engine *engine;
	MDB_txn *txn;
	uint64_t handle;
	const struct store_write *write;
	const struct store_stage *last;
};

/* A walk over those records. */
struct forget_walk {
	const struct leaving *leaving;
	const struct store_stage *stage;
	const struct record_chunk *chunk;
	const uint8_t *at;
	size_t left;
};

static void enter_chunk(struct forget_walk *walk, const struct record_chunk *chunk)
{
	walk->chunk = chunk;
	walk->at = chunk ? chunk->bytes : NULL;
	walk->left = chunk ? chunk->used : 0;
}

static struct forget_walk forget_walk_begin(const struct leaving *leaving)
{
	struct forget_walk walk = {.leaving = leaving, .stage = leaving->write->stages};
	enter_chunk(&walk, stage_chunks(walk.stage));
	return walk;
}

/* The next record of the series' band; false at the end. */
static bool forget_walk_next(struct forget_walk *walk, struct record *record)
{
	uint64_t handle = walk->leaving->handle;
	size_t len;
	for (;;) {
		const uint8_t *bytes =
			walk->chunk ? record_next(&walk->at, &walk->left, &len) : NULL;
		if (bytes) {
			int err = record_parse(bytes, len, record);
			ASSERT(!err);
			if (record->shape == handle_shape(handle) &&
			    record->ordinal == handle_ordinal(handle))
				return true;
		} else if (walk->chunk) {
			enter_chunk(walk, walk->chunk->next);
		} else if (walk->stage == walk->leaving->last) {
			return false;
		} else {
			walk->stage = walk->stage->next;
			enter_chunk(walk, stage_chunks(walk->stage));
		}
	}
}

/* Whether a sample is deleted by what follows in the walk, which is left as it is. */
static bool deleted_later(struct forget_walk walk, enum table table, int64_t period_ms,
			  int64_t ts_ms)
{
	unsigned fields = (unsigned)schema[table].field_count;
	unsigned column = handle_column(walk.leaving->handle) * fields;
	struct record record;
	while (forget_walk_next(&walk, &record)) {
		if (record.kind == RECORD_DELETE && record.sheet.table == table &&
		    record.sheet.period_ms == period_ms && record.first_column == column &&
		    record.ts_ms <= ts_ms && ts_ms < record.end_ms)
			return true;
	}
	return false;
}

static bool row_has_series(const struct record *record, unsigned column, unsigned fields)
{
	uint64_t bits[RECORD_VALUES_MAX];
	uint8_t types[RECORD_VALUES_MAX];
	int err = row_get(record->values, record->values_bytes, record->columns, bits, types);
	ASSERT(!err);
	for (unsigned c = 0; c < record->columns; c++) {
		unsigned at = record->first_column + c;
		if (at >= column && at < column + fields && types[c] != VALUE_NONE)
			return true;
	}
	return false;
}

static bool batch_has_data(const struct leaving *leaving)
{
	struct forget_walk walk = forget_walk_begin(leaving);
	struct record record;
	while (forget_walk_next(&walk, &record)) {
		unsigned fields = (unsigned)schema[record.sheet.table].field_count;
		if (record.kind == RECORD_ROW &&
		    row_has_series(&record, handle_column(leaving->handle) * fields, fields) &&
		    !deleted_later(walk, record.sheet.table, record.sheet.period_ms, record.ts_ms))
			return true;
	}
	return false;
}

static bool head_has_data(const struct leaving *leaving, const struct head *head, unsigned fields)
{
	struct samples samples;
	bool has = false;
	samples_init(&samples, fields);
	head_copy(head, handle_column(leaving->handle) * fields, INT64_MIN, INT64_MAX, &samples);
	samples_sort(&samples);
	for (size_t i = 0; i < samples.count && !has; i++)
		has = !deleted_later(forget_walk_begin(leaving), (enum table)head->table,
				     head->period_ms, samples.ts_ms[i]);
	samples_release(&samples);
	return has;
}

static int group_has_column(struct engine *engine, MDB_txn *txn, const struct group_id *id,
			    uint32_t ordinal_in_group, unsigned column, unsigned fields, bool *has)
{
	struct block_refs refs = {0};
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_EXTENTS], &cursor));
	if (err)
		return err;
	err = group_find(cursor, id, ordinal_in_group, column * fields, INT64_MIN, INT64_MAX,
			 &refs);
	for (size_t i = 0; i < refs.count && !err && !*has; i++) {
		const struct block *block = &refs.list[i].block;
		for (unsigned f = 0; f < fields && !err && !*has; f++) {
			struct block_summary summary;
			err = block_read_summary(
				block, column * fields + f - block->meta.first_column, &summary);
			*has = !err && summary.count > 0;
		}
	}
	block_refs_release(&refs);
	mdb_cursor_close(cursor);
	return err;
}

static int series_has_data(const struct leaving *leaving, bool *has)
{
	struct engine *engine = leaving->engine;
	uint32_t shape = handle_shape(leaving->handle), ordinal = handle_ordinal(leaving->handle);
	*has = batch_has_data(leaving);
	for (size_t i = 0; i < engine->heads.directory_count && !*has; i++) {
		const struct segment_id *segment = &engine->heads.directory[i];
		unsigned fields = (unsigned)schema[segment->sheet.table].field_count;
		uint32_t ordinal_in_group;
		struct group_id id =
			engine_group_of(engine, segment, shape, ordinal, &ordinal_in_group);
		const struct head *head = heads_find(&engine->heads, segment, shape, ordinal);
		*has = head && head_has_data(leaving, head, fields);
		int err = *has ? 0
			       : group_has_column(engine, leaving->txn, &id, ordinal_in_group,
						  handle_column(leaving->handle), fields, has);
		if (err)
			return err;
	}
	return 0;
}

int forget_stage(struct engine *engine, MDB_txn *txn, const struct store_write *write,
		 struct store_stage *stage)
{
	struct forget_node **node = &stage->forgets;
	while (*node) {
		struct leaving leaving = {engine, txn, (*node)->handle, write, stage};
		bool known = registry_columns(&engine->registry, handle_shape(leaving.handle)) > 0;
		bool has = false;
		int err = known ? series_has_data(&leaving, &has) : 0;
		if (!err && known && !has)
			err = registry_forget(&engine->registry, txn, leaving.handle);
		if (err)
			return err;
		/* What stays is taken out of the list: the rest is dead after the commit. */
		if (has)
			*node = (*node)->next;
		else
			node = &(*node)->next;
	}
	return 0;
}

bool forget_happened(const struct store_write *write, const struct store_stage *before,
		     uint64_t handle)
{
	for (const struct store_stage *s = write->stages; s != before; s = s->next) {
		for (const struct forget_node *f = s->forgets; f; f = f->next) {
			if (f->handle == handle)
				return true;
		}
	}
	return false;
}

bool forget_wanted(const struct store_write *write)
{
	for (const struct store_stage *s = write->stages; s; s = s->next) {
		if (s->forgets)
			return true;
	}
	return false;
}
