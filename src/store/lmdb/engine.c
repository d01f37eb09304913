/* The engine as the contract sees it: adders that encode on the caller's thread, opening, closing.
 */
#include "store/lmdb/engine.h"

#include "base/cursor.h"
#include "base/log.h"
#include "base/stats.h"
#include "store/lmdb/sweep_index.h"

/* ---- Adders ---------------------------------------------------------------------------------- */

static struct store_stage *new_stage(struct store_write *write)
{
	struct store_stage *stage = arena_zalloc(&write->arena, sizeof(*stage));
	if (!stage)
		return NULL;
	if (write->last_stage)
		write->last_stage->next = stage;
	else
		write->stages = stage;
	write->last_stage = stage;
	return stage;
}

/* The stage that requests are added to. A fresh one is begun only here, so that an arena that is
 * full is an error of the request that comes next. */
static struct store_stage *stage_of(struct store_write *write)
{
	if (write->stages && !(write->stage_requests == 0 && write->stage_count))
		return write->last_stage;
	return new_stage(write);
}

/* How many handles from `at` on are neighbouring columns of one band. */
static size_t neighbours(const uint64_t *handles, size_t at, size_t n, size_t max)
{
	uint64_t others = 0;
	size_t count = 1;
	if (at == 0 && n <= max) { /* mostly all are: without a branch for each */
		for (size_t i = 0; i < n; i++)
			others |= handles[i] ^ (handles[0] + i);
		if (!others)
			return n;
	}
	while (at + count < n && count < max && handles[at + count] == handles[at] + count)
		count++;
	return count;
}

static int check_handle(struct engine *engine, uint64_t handle)
{
	return !registry_issued(&engine->registry, handle) ||
			       registry_is_dead(&engine->registry, handle)
		       ? ERR_NOT_FOUND
		       : 0;
}

/* What an adder has put into the record stream, so that it can be taken back. */
struct chunk_mark {
	struct record_chunk *chunk;
	uint32_t used;
};

static struct chunk_mark mark(const struct store_stage *stage)
{
	struct record_chunk *last = stage->last_chunk;
	return (struct chunk_mark){last, last ? last->used : 0};
}

static void stage_undo(struct store_stage *stage, struct chunk_mark to)
{
	stage->last_chunk = to.chunk;
	if (!to.chunk) {
		stage->first_chunk = NULL;
		return;
	}
	to.chunk->used = to.used;
	to.chunk->next = NULL;
}

static int engine_append(struct store_write *write, const struct store_target *target,
			 int64_t ts_ms, unsigned fields, const uint64_t *handles, size_t n,
			 const struct value *values)
{
	struct engine *engine = engine_of(write->store);
	size_t all = schema[target->table].field_count;
	/* One record takes them all, nearly always: then nothing is divided. */
	size_t handles_max = n * all <= RECORD_VALUES_MAX ? n : RECORD_VALUES_MAX / all;
	size_t given = fields_count(fields);
	struct store_stage *stage = stage_of(write);
	if (!stage)
		return ERR_LIMIT;
	struct chunk_mark before = mark(stage);
	int err = 0;
	for (size_t i = 0; i < n && !err;) {
		size_t count = neighbours(handles, i, n, handles_max);
		err = check_handle(engine, handles[i]);
		if (!err && count > 1)
			err = check_handle(engine, handles[i + count - 1]);
		if (!err)
			err = record_put_row(&write->arena, &stage->last_chunk, target, handles[i],
					     (unsigned)count, fields, ts_ms, values + i * given);
		if (!err && !stage->first_chunk)
			stage->first_chunk = stage->last_chunk;
		i += count;
	}
	if (err)
		stage_undo(stage, before);
	stage->grows = true;
	return err;
}

/* How many of the times from `at` on one record takes: what follows lies in another segment, or has
 * no room. */
static size_t times_together(const struct store_target *sheet, const int64_t *ts_ms, size_t at,
			     size_t count, size_t max)
{
	int64_t segment = segment_of(sheet->table, sheet->period_ms, ts_ms[at]);
	size_t n = count - at < max ? count - at : max;
	while (segment_of(sheet->table, sheet->period_ms, ts_ms[at + n - 1]) != segment)
		n--;
	return n;
}

/* Of neighbours. */
static int engine_put_columns(struct store_write *write, const struct store_target *sheet,
			      uint64_t first, unsigned series, const struct store_columns *columns,
			      const uint64_t *bits)
{
	struct store_stage *stage = write->last_stage;
	size_t max = record_columns_max(series, columns->fields);
	int err = 0;
	for (size_t at = 0, n; at < columns->count && !err; at += n) {
		n = times_together(sheet, columns->ts_ms, at, columns->count, max);
		struct record_columns part = {
			.series = series,
			.fields = columns->fields,
			.type = (uint8_t)columns->type,
			.count = n,
			.ts_ms = (const uint8_t *)(columns->ts_ms + at),
			.bits = (const uint8_t *)(bits + at),
		};
		err = record_put_columns(&write->arena, &stage->last_chunk, sheet, first, &part,
					 columns->count);
		if (!err && !stage->first_chunk)
			stage->first_chunk = stage->last_chunk;
	}
	return err;
}

static int engine_append_columns(struct store_write *write, const struct store_target *target,
				 const struct store_columns *columns)
{
	struct engine *engine = engine_of(write->store);
	size_t handles_max = RECORD_VALUES_MAX / schema[target->table].field_count;
	size_t step = fields_count(columns->fields) * columns->count;
	struct store_stage *stage = stage_of(write);
	if (!stage)
		return ERR_LIMIT;
	struct chunk_mark before = mark(stage);
	int err = 0;
	for (size_t i = 0, count; i < columns->n && !err; i += count) {
		const uint64_t *handles = columns->handles;
		count = neighbours(handles, i, columns->n, handles_max);
		err = check_handle(engine, handles[i]);
		if (!err && count > 1)
			err = check_handle(engine, handles[i + count - 1]);
		if (!err)
			err = engine_put_columns(write, target, handles[i], (unsigned)count,
						 columns, columns->bits + i * step);
	}
	if (err)
		stage_undo(stage, before);
	stage->columns |= UINT32_C(1) << target->table;
	stage->grows = true;
	return err;
}

static int engine_delete_range(struct store_write *write, const struct store_target *target,
			       const uint64_t *handles, size_t n, int64_t start_ms, int64_t end_ms)
{
	struct engine *engine = engine_of(write->store);
	struct store_stage *stage = stage_of(write);
	struct store_target sheet = {.table = target->table, .period_ms = target->period_ms};
	if (!stage)
		return ERR_LIMIT;
	struct chunk_mark before = mark(stage);
	int err = 0;
	for (size_t i = 0; i < n && !err; i++) {
		if (check_handle(engine, handles[i]))
			continue;
		err = record_put_delete(&write->arena, &stage->last_chunk, RECORD_DELETE, &sheet,
					handles[i], start_ms, end_ms);
		if (!err && !stage->first_chunk)
			stage->first_chunk = stage->last_chunk;
	}
	if (err)
		stage_undo(stage, before);
	return err;
}

static int engine_add_cell(struct store_write *write, const struct store_cell_write *cell)
{
	return stage_of(write) ? cells_add(write, cell) : ERR_LIMIT;
}

static int engine_add_forget(struct store_write *write, const uint64_t *handles, size_t n)
{
	struct store_stage *stage = stage_of(write);
	struct forget_node *nodes = arena_alloc(&write->arena, n * sizeof(*nodes));
	if (!stage || !nodes)
		return ERR_LIMIT;
	for (size_t i = 0; i < n; i++) {
		nodes[i] = (struct forget_node){stage->forgets, handles[i]};
		stage->forgets = &nodes[i];
	}
	return 0;
}

/* What is cleared is a deletion to replay: the records of it come after what is done here. */
static int put_clears(struct store_write *write, struct store_stage *stage,
		      const struct store_rekeying *rekeying)
{
	int err = 0;
	for (size_t i = 0; i < rekeying->n && !err; i++) {
		if (check_handle(engine_of(write->store), rekeying->handles[i]))
			continue;
		err = record_put_delete(&write->arena, &stage->last_chunk, RECORD_CLEAR,
					&rekeying->target, rekeying->handles[i], rekeying->start_ms,
					rekeying->end_ms);
		if (!err && !stage->first_chunk)
			stage->first_chunk = stage->last_chunk;
	}
	return err;
}

static int engine_add_rekey(struct store_write *write, const struct store_rekeying *rekeying)
{
	struct store_stage *stage = stage_of(write);
	struct store_rekeying *kept = arena_alloc(&write->arena, sizeof(*kept));
	struct slice handles = {(const char *)rekeying->handles,
				rekeying->n * sizeof(*rekeying->handles)};
	if (!stage || !kept)
		return ERR_LIMIT;
	*kept = *rekeying;
	handles = arena_copy(&write->arena, handles);
	kept->handles = (const uint64_t *)(const void *)handles.data;
	if (!kept->handles)
		return ERR_LIMIT;
	struct chunk_mark before = mark(stage);
	int err = rekeying->step == STORE_REKEY_CLEAR ? put_clears(write, stage, kept) : 0;
	if (err) {
		stage_undo(stage, before);
		return err;
	}
	stage->rekeying = kept;
	stage->grows = true;
	return 0;
}

/* store.c counts stages; stage_of begins the next when something is added to it. */
static void engine_next_stage(UNUSED struct store_write *write)
{
}

static int64_t engine_stamp(struct store *store)
{
	struct engine *engine = engine_of(store);
	int64_t now_us = engine->options.clock->wall_us(engine->options.clock);
	int64_t last = engine->stamp_us, next;
	do
		next = now_us > last ? now_us : last + 1;
	while (!atomic_compare_exchange_weak(&engine->stamp_us, &last, next));
	return next;
}

static uint64_t engine_series_generation(struct store *store)
{
	return engine_of(store)->registry.generation;
}

/* ---- Opening --------------------------------------------------------------------------------- */

struct group_id engine_group_of(struct engine *engine, const struct segment_id *segment,
				uint32_t shape, uint32_t ordinal, uint32_t *ordinal_in_group)
{
	unsigned columns = registry_columns(&engine->registry, shape);
	ASSERT(columns > 0);
	uint32_t bands = group_bands(columns);
	if (ordinal_in_group)
		*ordinal_in_group = ordinal % bands;
	return (struct group_id){*segment, shape, ordinal / bands};
}

/* Which segments have extents: one seek for each. */
static int load_directory(struct engine *engine, MDB_txn *txn)
{
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_EXTENTS], &cursor));
	if (err)
		return err;
	struct slice key = SLICE("\0"), value;
	uint8_t next[GROUP_PREFIX_BYTES];
	err = env_seek(cursor, &key, &value);
	while (!err) {
		struct group_id id;
		int64_t first_ts_ms;
		uint32_t flush;
		err = group_parse_key(key, &id, &first_ts_ms, &flush);
		if (err)
			break;
		heads_add_segment(&engine->heads, &id.segment);
		id = (struct group_id){id.segment, UINT32_MAX, UINT32_MAX};
		group_prefix(&id, next);
		key = (struct slice){(const char *)next, sizeof(next)};
		err = env_seek(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* Where sequences, flushes and versions go on: above everything that was used before. */
static int load_counters(struct engine *engine, MDB_txn *txn)
{
	struct slice key = SLICE("counters"), value, payload;
	uint64_t high[4] = {0, 1, 1, 1};
	int err = env_get(txn, engine->env.dbi[DB_META], key, &value);
	if (!err)
		err = record_open(key, value, &payload);
	if (!err && payload.len == sizeof(high))
		memcpy(high, payload.data, sizeof(high));
	engine->stamp_us = (int64_t)high[0];
	engine->next_version = high[1];
	engine->next_sequence = high[2];
	engine->next_flush = engine->stored_flush = (uint32_t)high[3];
	return err == ERR_NOT_FOUND ? 0 : err;
}

void lmdb_options_fill(struct lmdb_options *o)
{
	if (!o->map_bytes)
		o->map_bytes = UINT64_C(64) << 30;
	if (!o->journal_max_bytes)
		o->journal_max_bytes = 512 << 20;
	if (!o->journal_max_age_ms)
		o->journal_max_age_ms = 2 * 3600000;
	if (!o->head_max_bytes)
		o->head_max_bytes = 512 << 20;
	if (!o->queue_max_bytes)
		o->queue_max_bytes = 256 << 20;
	if (!o->settle_delay_ms)
		o->settle_delay_ms = 60000;
	if (!o->read_threads)
		o->read_threads = 2;
	if (!o->clock)
		o->clock = clock_real();
	if (!o->files)
		o->files = files_real();
}

static const struct store_engine lmdb_engine;

struct clock *lmdb_clock(struct store *store)
{
	return &engine_of(store)->watch.clock;
}

static void free_engine(struct engine *engine)
{
	engine->magic = 0;
	readers_release(engine);
	if (engine->registry.env)
		registry_release(&engine->registry);
	heads_release(&engine->heads);
	env_close(&engine->env);
	pthread_mutex_destroy(&engine->queue_lock);
	pthread_mutex_destroy(&engine->readers_lock);
	pthread_cond_destroy(&engine->queue_arrived);
	pthread_cond_destroy(&engine->settled);
	clock_watch_release(&engine->watch);
	mem_free(engine->journal);
	hash_table_release(&engine->unsettled.table);
	mem_free(engine->seals.list);
	mem_free(engine->sealed);
	strips_release(&engine->strips);
	mem_free(engine->runs.list);
	mem_free(engine->settled_groups);
	mem_free((void *)(uintptr_t)engine->options.path);
	mem_free(engine);
}

static int engine_load(struct engine *engine, struct errbuf *e)
{
	MDB_txn *txn;
	int err = registry_open(&engine->registry, &engine->env);
	if (err)
		return errbuf_set(e, err, "the registry of series in %s cannot be read: %s",
				  engine->options.path, err_text(err));
	err = env_error(mdb_txn_begin(engine->env.mdb, NULL, MDB_RDONLY, &txn));
	if (!err) {
		err = load_counters(engine, txn);
		if (!err)
			err = doubt_load(engine, txn);
		if (!err)
			err = load_directory(engine, txn);
		engine->deleted_rows = sweep_index_tables(&engine->env, txn);
		mdb_txn_abort(txn);
	}
	if (err)
		return errbuf_set(e, err, "the store in %s cannot be read: %s",
				  engine->options.path, err_text(err));
	err = replay(engine, e);
	if (!err)
		doubt_resume(engine);
	return err;
}

/* Behind what is the matter, what helps. */
static int say_what_helps(const struct lmdb_options *options, int err, struct errbuf *e)
{
	struct errbuf said = *e;
	if (err != ERR_DAMAGED || options->inspect)
		return err;
	return errbuf_set(e, err,
			  "%s; `granary verify` lists what is damaged, `granary repair` copies "
			  "what is whole",
			  said.text);
}

int lmdb_open(const struct lmdb_options *options, struct store **store, struct errbuf *e)
{
	struct engine *engine = mem_zalloc(sizeof(*engine));
	engine->magic = MAGIC_OF(engine);
	engine->store.engine = &lmdb_engine;
	engine->options = *options;
	engine->options.path = mem_copy_text(slice_of(options->path));
	lmdb_options_fill(&engine->options);
	clock_watch_init(&engine->watch, engine->options.clock);
	engine->options.clock = &engine->watch.clock;
	pthread_mutex_init(&engine->queue_lock, NULL);
	pthread_mutex_init(&engine->readers_lock, NULL);
	pthread_cond_init(&engine->queue_arrived, NULL);
	pthread_cond_init(&engine->settled, NULL);
	heads_init(&engine->heads);
	if (options->inspect)
		engine->dead = ERR_READ_ONLY;
	int err = env_open(&engine->env, &engine->options, e);
	if (!err)
		err = engine_load(engine, e);
	if (err) {
		free_engine(engine);
		return say_what_helps(options, err, e);
	}
	engine->pool = pool_new(engine->options.read_threads, 4096, "store");
	engine->moved_ms = clock_mono_ms(engine->options.clock);
	int failed = pthread_create(&engine->writer, NULL, writer_main, engine);
	ASSERT(!failed);
	pthread_setname_np(engine->writer, "store-writer");
	*store = &engine->store;
	return 0;
}

int64_t lmdb_moved_ms(struct store *store)
{
	return engine_of(store)->moved_ms;
}

static void engine_close(struct store *store)
{
	struct engine *engine = engine_of(store);
	ASSERT(!engine->backing_up);
	pthread_mutex_lock(&engine->queue_lock);
	engine->stopping = true;
	pthread_cond_signal(&engine->queue_arrived);
	pthread_mutex_unlock(&engine->queue_lock);
	pthread_join(engine->writer, NULL);
	pool_close(engine->pool);
	free_engine(engine);
}

static int engine_settle(struct engine *engine, bool closed_only)
{
	int err = 0;
	pthread_mutex_lock(&engine->queue_lock);
	engine->settle_closed_only = closed_only;
	engine->settle_wanted = true;
	engine->cycle_err = 0;
	pthread_cond_signal(&engine->queue_arrived);
	while (engine->settle_wanted && !err) {
		cond_wait_ms(&engine->settled, &engine->queue_lock, 100);
		err = engine->dead ? ERR_READ_ONLY : engine->full ? ERR_FULL : engine->cycle_err;
	}
	engine->settle_wanted = false;
	pthread_mutex_unlock(&engine->queue_lock);
	return err;
}

int lmdb_settle(struct store *store)
{
	return engine_settle(engine_of(store), false);
}

int lmdb_settle_closed(struct store *store)
{
	return engine_settle(engine_of(store), true);
}

static const struct store_engine lmdb_engine = {
	.name = "lmdb",
	.can = STORE_ATOMIC_STAGES | STORE_SURVIVES_KILL | STORE_SERIAL_WRITES |
	       STORE_EXACT_FORGETTING | STORE_EXACT_SETS | STORE_COUNTS | STORE_VERIFIES |
	       STORE_HAS_SHARES | STORE_REKEYS | STORE_BACKS_UP,
	.append = engine_append,
	.append_columns = engine_append_columns,
	.add_delete_range = engine_delete_range,
	.add_cell = engine_add_cell,
	.add_forget = engine_add_forget,
	.add_rekey = engine_add_rekey,
	.next_stage = engine_next_stage,
	.write_submit = writer_submit,
	.read_submit = read_submit,
	.stamp = engine_stamp,
	.series_generation = engine_series_generation,
	.backup_begin = backup_begin,
	.backup_read = backup_read,
	.backup_look = backup_look,
	.backup_end = backup_end,
	.close = engine_close,
};
