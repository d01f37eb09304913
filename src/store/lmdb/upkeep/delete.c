/* Deleting samples: a record of kind RECORD_DELETE takes a series' samples of a span of time out of
 * what is sealed, when the writer puts it into the journal and in the same transaction. Each group
 * that holds some is read, the samples are blanked, and it is written again. The heads lose theirs
 * after the commit (heads_apply_delete), and again at each replay of the record. */
#include "store/lmdb/engine.h"
#include "store/lmdb/upkeep/upkeep.h"

/* Deletes the samples of one strip that the record names. */
static void delete_blank(struct strip *strip, const struct record *record)
{
	struct samples *samples = &strip->samples;
	for (unsigned c = 0; c < record->columns; c++) {
		unsigned column = record->first_column + c;
		if (column < strip->first_column || column >= strip->first_column + samples->fields)
			continue;
		uint8_t *types = samples->types[column - strip->first_column];
		for (size_t i = 0; i < samples->count; i++) {
			if (samples->ts_ms[i] >= record->ts_ms &&
			    samples->ts_ms[i] < record->end_ms)
				types[i] = VALUE_NONE;
		}
	}
}

static int delete_in_group(struct engine *engine, MDB_txn *txn, const struct group_id *id,
			   uint32_t ordinal_in_group, const struct record *record)
{
	MDB_dbi extents = engine->env.dbi[DB_EXTENTS];
	struct strips strips = {0};
	struct band_span spans[GROUP_BANDS_MAX] = {0};
	uint64_t bytes = 0;
	bool changed = false; /* any error undoes the batch */
	spans[ordinal_in_group].min_ts_ms = record->ts_ms;
	spans[ordinal_in_group].max_ts_ms = record->end_ms - 1;
	int err = group_spans(txn, extents, id, spans);
	if (err || !spans[ordinal_in_group].overlaps)
		return err;
	err = strips_load(&strips, txn, extents, id);
	for (size_t i = 0; i < strips.count && !err; i++) {
		if (strips.list[i].ordinal_in_group == ordinal_in_group)
			delete_blank(&strips.list[i], record);
	}
	if (!err)
		err = group_clear(txn, extents, id, &changed);
	if (!err)
		err = group_store(txn, extents, id, &strips, engine->next_flush++, &bytes);
	strips_release(&strips);
	if (!err && bytes == 0) /* nothing is left of it */
		settle_leave(engine, id);
	else
		unsettled_add(&engine->unsettled, id, engine_now_us(engine));
	return err;
}

int delete_from_extents(struct engine *engine, MDB_txn *txn, const struct record *record)
{
	const struct store_target *sheet = &record->sheet;
	int64_t first = segment_of(sheet->table, sheet->period_ms, record->ts_ms);
	int64_t last = segment_of(sheet->table, sheet->period_ms, record->end_ms - 1);
	if (registry_columns(&engine->registry, record->shape) == 0)
		return 0;
	for (size_t i = 0; i < engine->heads.directory_count; i++) {
		const struct segment_id *segment = &engine->heads.directory[i];
		if (segment->sheet.table != sheet->table ||
		    segment->sheet.period_ms != sheet->period_ms || segment->segment < first ||
		    segment->segment > last)
			continue;
		uint32_t ordinal_in_group;
		struct group_id id = engine_group_of(engine, segment, record->shape,
						     record->ordinal, &ordinal_in_group);
		int err = delete_in_group(engine, txn, &id, ordinal_in_group, record);
		if (err)
			return err;
	}
	return 0;
}
