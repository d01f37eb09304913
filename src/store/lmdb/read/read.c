/* Reads, on the pool. Heads are copied first, then a snapshot is opened, then both are merged: what
 * is sealed in between is seen twice and the higher sequence wins. A snapshot serves several series
 * as long as no head has gone since it was opened (heads.epoch), and at most SNAPSHOT_MAX_US. */
#include "base/stats.h"
#include "store/lmdb/read/read.h"

enum {
	POINTS_MAX_DEFAULT = 1000000,
};

/* ---- Snapshots ------------------------------------------------------------------------------- */

static struct reader *reader_acquire(struct engine *engine)
{
	pthread_mutex_lock(&engine->readers_lock);
	struct reader *reader = engine->readers;
	if (reader)
		engine->readers = reader->next;
	pthread_mutex_unlock(&engine->readers_lock);
	if (reader)
		return reader;
	reader = mem_zalloc(sizeof(*reader));
	if (mdb_txn_begin(engine->env.mdb, NULL, MDB_RDONLY, &reader->txn)) {
		mem_free(reader);
		return NULL;
	}
	mdb_txn_reset(reader->txn);
	reader->scratch = mem_zalloc(sizeof(*reader->scratch));
	return reader;
}

static void reader_release(struct engine *engine, struct reader *reader)
{
	mdb_txn_reset(reader->txn);
	pthread_mutex_lock(&engine->readers_lock);
	reader->next = engine->readers;
	engine->readers = reader;
	pthread_mutex_unlock(&engine->readers_lock);
}

void readers_release(struct engine *engine)
{
	while (engine->readers) {
		struct reader *reader = engine->readers;
		engine->readers = reader->next;
		mdb_txn_abort(reader->txn);
		scratch_free(reader->scratch);
		mem_free(reader);
	}
}

int reader_renew(struct engine *engine, struct reader *reader)
{
	pthread_rwlock_rdlock(&engine->heads.lock);
	reader->epoch = engine->heads.epoch;
	pthread_rwlock_unlock(&engine->heads.lock);
	mdb_txn_reset(reader->txn);
	return env_error(mdb_txn_renew(reader->txn));
}

int reading_renew(struct reading *r)
{
	if (r->extents) {
		mdb_cursor_close(r->extents);
		r->extents = NULL;
	}
	int err = reader_renew(r->engine, r->reader);
	if (!err)
		err = env_error(mdb_cursor_open(r->reader->txn, r->engine->env.dbi[DB_EXTENTS],
						&r->extents));
	r->opened_us = engine_now_us(r->engine);
	return err;
}

int reading_check_time(struct reading *r)
{
	if (r->read->cancelled)
		return ERR_CANCELLED;
	return engine_now_us(r->engine) > r->deadline_us ? ERR_TIMEOUT : 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static int do_enumerate(struct reading *r, struct store_request *request)
{
	enum table table = request->enumerate.table;
	if (schema[table].kind == TABLE_SAMPLES)
		return reading_enumerate_samples(r, request);
	if (schema[table].cell_kind == CELL_SERIES)
		return registry_series_set_rows(&r->engine->registry, r->reader->txn, request,
						&r->read->arena, &r->budget);
	return cells_enumerate(r->engine, r->reader->txn, r->read, request, &r->budget);
}

static int series_list(struct reading *r, struct store_request *request)
{
	struct store_series_list *list = &request->series_list;
	size_t limit = list->limit;
	if (r->budget == 0) {
		list->count = 0;
		request->more = true;
		return 0;
	}
	if (limit == 0 || limit > r->budget)
		list->limit = r->budget;
	int err = registry_series_list(&r->engine->registry, r->reader->txn, request,
				       &r->read->arena);
	list->limit = limit;
	r->budget -= list->count < r->budget ? list->count : r->budget;
	return err;
}

/* A tenant without any registered series: each new tenant is asked for once. */
static bool lists_nobody(struct engine *engine, const struct store_series_list *list)
{
	return list->tenant.len && !registry_has_tenant(&engine->registry, list->tenant);
}

/* Lists show what is registered, durable or not: so what is pending becomes durable first. */
static bool needs_flush(struct engine *engine, const struct store_request *request)
{
	switch (request->op) {
	case STORE_SERIES_LIST:
		return !lists_nobody(engine, &request->series_list);
	case STORE_CELL_GET:
		return schema[request->cell_get.table].cell_kind == CELL_SERIES;
	case STORE_CELL_SCAN:
		return schema[request->cell_scan.table].cell_kind == CELL_SERIES;
	case STORE_ENUMERATE:
		return schema[request->enumerate.table].kind == TABLE_SAMPLES ||
		       schema[request->enumerate.table].cell_kind == CELL_SERIES;
	default:
		return false;
	}
}

static void flush_registry(struct engine *engine)
{
	if (atomic_load_explicit(&engine->registry.pending_count, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&engine->queue_lock);
	pthread_cond_signal(&engine->queue_arrived);
	pthread_mutex_unlock(&engine->queue_lock);
	registry_flush(&engine->registry);
}

static int do_request(struct reading *r, struct store_request *request)
{
	struct engine *engine = r->engine;
	switch (request->op) {
	case STORE_RANGE:
		return reading_range(r, request);
	case STORE_LAST_BEFORE:
		return reading_last_before(r, request);
	case STORE_AGGREGATE:
		return reading_aggregate(r, request);
	case STORE_CELL_GET:
		return cells_get(engine, r->reader->txn, r->read, &request->cell_get);
	case STORE_CELL_SCAN:
		return cells_scan(engine, r->reader->txn, r->read, request, &r->budget);
	case STORE_ENUMERATE:
		return do_enumerate(r, request);
	case STORE_SERIES_OPEN:
		return registry_series_open(&engine->registry, r->reader->txn,
					    &request->series_open, &r->read->arena,
					    clock_wall_ms(engine->options.clock));
	case STORE_SERIES_LIST:
		return series_list(r, request);
	case STORE_SERIES_NEWS:
		return ERR_INVALID; /* store.c refuses it, the engine does not have STORE_NEWS */
	case STORE_SERIES_DESCRIBE:
		return registry_series_describe(&engine->registry, r->reader->txn,
						&request->series_describe, &r->read->arena);
	case STORE_SHARES:
		return reading_shares(r, request);
	case STORE_PERIODS:
		return reading_periods(r, &request->periods);
	case STORE_STATS:
		return inspect_stats(engine, r->reader, request);
	case STORE_VERIFY:
		return inspect_verify(engine, r->reader, r->read, request);
	}
	return ERR_INVALID;
}

static void post_done(struct task *task)
{
	struct store_read *read = CONTAINER_OF(task, struct store_read, task);
	store_read_end(read);
}

static void run_read(struct task *task)
{
	struct store_read *read = CONTAINER_OF(task, struct store_read, task);
	struct engine *engine = engine_of(read->store);
	struct reading r = {.engine = engine, .read = read, .deadline_us = read->deadline_us};
	r.budget = read->points_max ? read->points_max : POINTS_MAX_DEFAULT;
	if (!r.deadline_us)
		r.deadline_us = engine_now_us(engine) + STORE_DEADLINE_PRESET_MS * INT64_C(1000);
	r.reader = reader_acquire(engine);
	int err = r.reader ? 0 : ERR_BUSY;
	r.scratch = r.reader ? r.reader->scratch : NULL;
	read->err = err;
	read->error.text[0] = 0;
	int64_t begun_us = engine_now_us(engine);
	for (struct store_request *q = read->requests; q && r.reader; q = q->next) {
		q->err = reading_check_time(&r);
		q->more = q->err != 0;
		r.looked = false;
		if (!q->err && needs_flush(engine, q))
			flush_registry(engine);
		if (!q->err)
			q->err = reading_renew(&r);
		if (!q->err)
			q->err = do_request(&r, q);
		if (q->err == ERR_DAMAGED)
			reading_damaged(&r, q);
		if (q->err == ERR_FULL && !read->err)
			room_sentence(engine, &read->error);
		if (q->err && !read->err)
			read->err = q->err;
	}
	read->work.took_us += engine_now_us(engine) - begun_us;
	if (r.extents)
		mdb_cursor_close(r.extents);
	if (r.reader)
		reader_release(engine, r.reader);
	read->task.run = post_done;
	read->executor->post(read->executor, &read->task);
}

int read_submit(struct store_read *read)
{
	struct engine *engine = engine_of(read->store);
	read->task.run = run_read;
	int err = pool_submit(engine->pool, &read->task);
	if (err == ERR_BUSY)
		errbuf_set(&read->error, err,
			   "busy: too many reads of the store wait (store.read_threads)");
	return err;
}
