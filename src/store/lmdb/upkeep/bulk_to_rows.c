/* Columns become rows where they do not go straight to extents: the journal, heads and replay know
 * rows only. That is rare, since what is handed over by column comes in runs (store_write.in_runs),
 * so it is done again each time that the batch is put into a transaction. */
#include "store/lmdb/engine.h"

static void unfold_put_row(struct store_stage *stage, struct record_chunk **last,
			   const struct record *record, const struct record_columns *columns,
			   size_t t)
{
	unsigned all = (unsigned)schema[record->sheet.table].field_count;
	unsigned given = columns->series * fields_count(columns->fields);
	uint64_t first = handle_of(record->shape, record->ordinal, record->first_column / all);
	struct value values[RECORD_VALUES_MAX];
	int64_t ts_ms;
	memcpy(&ts_ms, columns->ts_ms + t * 8, sizeof(ts_ms));
	for (unsigned c = 0; c < given; c++) {
		memcpy(&values[c].bits, columns->bits + (c * columns->count + t) * 8, 8);
		values[c].type = columns->type;
	}
	int err = record_put_row(&stage->unfolded_arena, last, &record->sheet, first,
				 columns->series, columns->fields, ts_ms, values);
	ASSERT(!err);
	if (!stage->unfolded)
		stage->unfolded = *last;
}

static void put_copy(struct store_stage *stage, struct record_chunk **last, const uint8_t *record,
		     size_t len)
{
	int err = record_put_copy(&stage->unfolded_arena, last, record, len);
	ASSERT(!err);
	if (!stage->unfolded)
		stage->unfolded = *last;
}

/* The others stay as they are and where they are, since their order is that of the writes. */
static void unfold_chunk(struct store_stage *stage, const struct record_chunk *chunk,
			 struct record_chunk **last)
{
	const uint8_t *at = chunk->bytes, *bytes;
	size_t left = chunk->used, len;
	while ((bytes = record_next(&at, &left, &len)) != NULL) {
		struct record record;
		int err = record_view(bytes, len, &record);
		ASSERT(!err);
		if (record.kind != RECORD_COLUMNS || goes_straight(stage, record.sheet.table)) {
			put_copy(stage, last, bytes, len);
			continue;
		}
		struct record_columns columns = record_columns(&record);
		for (size_t t = 0; t < columns.count; t++)
			unfold_put_row(stage, last, &record, &columns, t);
	}
}

static void unfold_free(struct store_stage *stage)
{
	if (stage->unfolded)
		arena_release(&stage->unfolded_arena);
	stage->unfolded = NULL;
}

void unfold(struct store_stage *stage)
{
	struct record_chunk *last = NULL;
	unfold_free(stage);
	if (!(stage->columns & ~stage->straight))
		return;
	/* A few times what the batch was allowed to hold. */
	arena_init(&stage->unfolded_arena, SIZE_MAX / 2);
	for (const struct record_chunk *c = stage->first_chunk; c; c = c->next)
		unfold_chunk(stage, c, &last);
}

void unfold_release(struct store_write *write)
{
	for (struct store_stage *s = write->stages; s; s = s->next)
		unfold_free(s);
}
