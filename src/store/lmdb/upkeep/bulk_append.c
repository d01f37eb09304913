/* Runs: rows that a batch has of many times of few series go straight to extents, in the
 * transaction of their batch, past journal and heads. They would be there soon in any case, and no
 * denser: a caller that says so (store_write.in_runs) writes what it has gathered itself, such as
 * the bins of the last minutes.
 *
 * What a head of such a group holds is sealed with them, so that a block never has a higher
 * sequence than a row of its band that is not in it: replay would pass over that. For the same
 * reason, and so that the later of two writes wins, a table goes to the journal as a whole if the
 * transaction has put rows of it there before, or if there are deletions among them. */
#include "base/grow.h"
#include "store/lmdb/upkeep/upkeep.h"

enum { ROWS_LEAST = 4 }; /* of a band, on average: fewer are gathered, if more come in time */

/* ---- The runs of a stage --------------------------------------------------------------------- */

/* Whether the row follows on those of the run, in memory as in its place. */
static bool bulk_goes_on(const struct record_run *run, const struct record *row,
			 const struct segment_id *segment, const uint8_t *at)
{
	return run->at + run->bytes == at && run->id.shape == row->shape &&
	       run->ordinal == row->ordinal && segment_order(&run->id.segment, segment) == 0;
}

static int64_t last_ts_ms(const struct record *row, size_t *rows)
{
	*rows = 1;
	if (row->kind == RECORD_ROW)
		return row->ts_ms;
	struct record_columns columns = record_columns(row);
	int64_t ts_ms;
	*rows = columns.count;
	memcpy(&ts_ms, columns.ts_ms + (columns.count - 1) * 8, sizeof(ts_ms));
	return ts_ms;
}

/* A row, or columns; `at`: where its prefix begins. */
static void add_record(struct engine *engine, const struct record *row, const uint8_t *at,
		       size_t bytes)
{
	size_t rows;
	int64_t end_ms = last_ts_ms(row, &rows);
	const struct store_target *sheet = &row->sheet;
	struct segment_id segment = {*sheet,
				     segment_of(sheet->table, sheet->period_ms, row->ts_ms)};
	struct run_list *runs = &engine->runs;
	struct record_run *run = runs->count ? &runs->list[runs->count - 1] : NULL;
	if (!run || !bulk_goes_on(run, row, &segment, at)) {
		GROW(runs->list, runs->cap, runs->count + 1);
		run = &runs->list[runs->count++];
		*run = (struct record_run){.ordinal = row->ordinal,
					   .number = runs->count,
					   .at = at,
					   .min_ts_ms = row->ts_ms,
					   .max_ts_ms = row->ts_ms};
		run->id = engine_group_of(engine, &segment, row->shape, row->ordinal,
					  &run->ordinal_in_group);
	}
	run->bytes += bytes;
	run->rows += rows;
	if (row->ts_ms < run->min_ts_ms)
		run->min_ts_ms = row->ts_ms;
	if (end_ms > run->max_ts_ms)
		run->max_ts_ms = end_ms;
}

/* All of them, whatever their table; false: there is a deletion among them. */
static bool find_runs(struct engine *engine, const struct store_stage *stage)
{
	engine->runs.count = 0;
	for (const struct record_chunk *c = stage->first_chunk; c; c = c->next) {
		const uint8_t *at = c->bytes, *before = at, *bytes;
		size_t left = c->used, len;
		for (; (bytes = record_next(&at, &left, &len)) != NULL; before = at) {
			struct record row;
			int err = record_view(bytes, len, &row);
			ASSERT(!err);
			if (row.kind != RECORD_ROW && row.kind != RECORD_COLUMNS)
				return false;
			add_record(engine, &row, before, (size_t)(at - before));
		}
	}
	return true;
}

/* Whether a series of these bands was forgotten: the journal looks at each row then. */
static bool may_have_dead(struct engine *engine)
{
	struct registry *registry = &engine->registry;
	for (size_t i = 0; registry->any_dead && i < engine->runs.count; i++) {
		const struct record_run *run = &engine->runs.list[i];
		unsigned columns = registry_columns(registry, run->id.shape);
		for (unsigned c = 0; c < columns; c++) {
			if (registry_is_dead(registry, handle_of(run->id.shape, run->ordinal, c)))
				return true;
		}
	}
	return false;
}

/* ---- Which of them go straight --------------------------------------------------------------- */

/* The rows of one table in a stage. */
struct bulk_tally {
	size_t rows, bands;
	int64_t period_ms;       /* the shortest */
	uint32_t shape, ordinal; /* of the last run */
};

static void count_runs(const struct run_list *runs, struct bulk_tally tallies[TABLE_COUNT])
{
	for (const struct record_run *run = runs->list; run < runs->list + runs->count; run++) {
		const struct store_target *sheet = &run->id.segment.sheet;
		struct bulk_tally *tally = &tallies[sheet->table];
		if (!tally->rows || sheet->period_ms < tally->period_ms)
			tally->period_ms = sheet->period_ms;
		tally->bands += !tally->rows || tally->shape != run->id.shape ||
				tally->ordinal != run->ordinal;
		tally->rows += run->rows;
		tally->shape = run->id.shape;
		tally->ordinal = run->ordinal;
	}
}

/* How long a head is likely to gather rows before it is sealed for the journal's sake. */
static int64_t gathering_ms(const struct engine *engine)
{
	const struct lmdb_options *options = &engine->options;
	if (!engine->journal_count || engine->journal_bytes < options->journal_max_bytes / 2)
		return options->journal_max_age_ms;
	return clock_wall_ms(options->clock) - engine->journal[engine->journal_first].written_ms;
}

/* Hours would mostly be alone in their heads. */
static bool is_enough(const struct bulk_tally *tally, int64_t gathers_ms)
{
	return tally->rows >= ROWS_LEAST * tally->bands || tally->period_ms > gathers_ms / 2;
}

/* While a segment expires its groups are gone in one moment and looked for in the next. */
void runs_choose(struct engine *engine, struct store_stage *stage, uint32_t journaled)
{
	struct bulk_tally tallies[TABLE_COUNT] = {0};
	if (engine->is_expiring || engine->has_expired || !find_runs(engine, stage) ||
	    may_have_dead(engine))
		return;
	count_runs(&engine->runs, tallies);
	int64_t gathers_ms = gathering_ms(engine);
	bool others = false;
	for (unsigned t = 0; t < TABLE_COUNT; t++) {
		if (tallies[t].rows && is_enough(&tallies[t], gathers_ms))
			stage->straight |= UINT32_C(1) << t & ~journaled;
		others |= tallies[t].rows && !goes_straight(stage, (enum table)t);
	}
	stage->all_straight = stage->straight && !others;
}

/* ---- Into extents ---------------------------------------------------------------------------- */

static void bulk_filter_straight(struct run_list *runs, const struct store_stage *stage)
{
	size_t kept = 0;
	for (size_t i = 0; i < runs->count; i++) {
		if (goes_straight(stage, runs->list[i].id.segment.sheet.table))
			runs->list[kept++] = runs->list[i];
	}
	runs->count = kept;
}

/* By group, and then as they came. */
static int run_order(const void *a, const void *b)
{
	const struct record_run *x = a, *y = b;
	int order = segment_order(&x->id.segment, &y->id.segment);
	if (order)
		return order;
	if (x->id.shape != y->id.shape)
		return x->id.shape < y->id.shape ? -1 : 1;
	if (x->id.group != y->id.group)
		return x->id.group < y->id.group ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Should the transaction be undone, the directory names a segment that is empty. */
static void bulk_name_segment(struct heads *heads, const struct segment_id *segment)
{
	if (heads_has_segment(heads, segment))
		return;
	pthread_rwlock_wrlock(&heads->lock);
	heads_add_segment(heads, segment);
	pthread_rwlock_unlock(&heads->lock);
}

static int put_group(struct engine *engine, MDB_txn *txn, const struct record_run *runs,
		     size_t count, uint64_t sequence)
{
	struct sealing sealing;
	uint64_t bytes = 0;
	seal_collect(engine, &runs->id, true, &sealing);
	sealing.runs = runs;
	sealing.run_count = count;
	sealing.sequence = sequence;
	bulk_name_segment(&engine->heads, &runs->id.segment);
	engine->has_runs = true;
	return seal_put(engine, txn, &runs->id, &sealing, &bytes);
}

int runs_put(struct engine *engine, MDB_txn *txn, const struct store_stage *stage,
	     uint64_t sequence)
{
	struct run_list *runs = &engine->runs; /* as runs_choose has found them */
	int err = 0;
	bulk_filter_straight(runs, stage);
	if (runs->count)
		qsort(runs->list, runs->count, sizeof(*runs->list), run_order);
	for (size_t at = 0, end; at < runs->count && !err; at = end) {
		end = at + 1;
		while (end < runs->count && group_same(&runs->list[end].id, &runs->list[at].id))
			end++;
		err = put_group(engine, txn, &runs->list[at], end - at, sequence);
	}
	return err;
}
