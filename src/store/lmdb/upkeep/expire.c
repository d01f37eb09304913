/* Expiry: what is older than its retention class allows, and than any query that may still be
 * reading it, leaves the disk.
 *
 * Samples go by whole segments, the first expired one of the directory at a time: its extents in
 * slices, then, with the commit that deleted the last of them, its heads, its unsettled groups and
 * its place in the directory. While that lasts upkeep writes no extents (is_expiring). When no
 * segment is left, the cells that are due are swept, in slices too (expire_cells). All of it once
 * in a minute, by either clock. While the clock is doubted (doubt.c) nothing goes, and what has
 * begun to go waits; but for the cells of rows that were deleted, which go by no clock. */
#include "base/stats.h"
#include "store/lmdb/sweep_index.h"
#include "store/lmdb/upkeep/upkeep.h"

enum {
	EXPIRE_KEYS = 2000, /* extents deleted in one slice */
	EXPIRE_US = 20000,
	EXPIRE_INTERVAL_US = 60000000,
	REKEYING_US = 10000000, /* after each batch that re-keys */
};

bool segment_expired(const struct segment_id *id, int64_t now_ms)
{
	int64_t lifetime_ms = retention_class_ms(id->sheet.retention);
	int64_t width_ms = schema_segment_ms(id->sheet.table, id->sheet.period_ms);
	if (lifetime_ms == 0)
		return false;
	int64_t gone_ms = now_ms - lifetime_ms - STORE_QUERY_DEADLINE_MAX_MS;
	return id->segment < floor_div(gone_ms, width_ms);
}

bool expires_now(struct engine *engine, const struct segment_id *id)
{
	struct clock_judgement now; /* of one look: between two the clock may have been set right */
	clock_judge(engine->options.clock, &now);
	return !now.doubted && segment_expired(id, floor_div(now.wall_us, 1000));
}

/* Deletes extents of the expired segment, a slice of them; *done when none is left. */
static int expire_slice(struct engine *engine, MDB_txn *txn, const struct segment_id *segment,
			bool *done)
{
	uint8_t from[EXTENT_KEY_BYTES + 1];
	size_t from_len = SEGMENT_PREFIX_BYTES;
	struct group_id id = {*segment, 0, 0};
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_EXTENTS], &cursor));
	if (err)
		return err;
	group_prefix(&id, from);
	*done = false;
	int64_t until_us = engine_now_us(engine) + EXPIRE_US;
	for (int n = 0; n < EXPIRE_KEYS && (n % 64 != 63 || engine_now_us(engine) < until_us);) {
		struct slice key = {(const char *)from, from_len}, value;
		err = env_seek(cursor, &key, &value);
		if (err || key.len < SEGMENT_PREFIX_BYTES ||
		    memcmp(key.data, from, SEGMENT_PREFIX_BYTES) != 0) {
			*done = !err || err == ERR_NOT_FOUND;
			break;
		}
		if (!env_may_free(txn, key, value) && key.len <= EXTENT_KEY_BYTES) {
			/* It stays, unseen, for verify to name: the rest has to go. */
			memcpy(from, key.data, key.len);
			from[key.len] = 0;
			from_len = key.len + 1;
			continue;
		}
		err = env_error(mdb_cursor_del(cursor, 0));
		if (err)
			break;
		stat_add(STAT_store_expired_extents, 1);
		n++;
	}
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}

static void forget_heads(struct engine *engine, const struct segment_id *segment)
{
	pthread_rwlock_wrlock(&engine->heads.lock);
	for (struct head *head = engine->heads.oldest; head;) {
		struct head *newer = head->newer;
		struct segment_id id = head_segment(head);
		if (segment_order(&id, segment) == 0 && !head->taken)
			heads_remove(&engine->heads, head);
		head = newer;
	}
	heads_remove_segment(&engine->heads, segment);
	pthread_rwlock_unlock(&engine->heads.lock);
}

static void forget_unsettled(struct unsettled_set *set, const struct segment_id *segment)
{
	for (size_t at = 0; at < set->table.slot_count; at++) {
		const struct unsettled *entry;
		while ((entry = hash_table_at(&set->table, at)) &&
		       segment_order(&entry->id.segment, segment) == 0) {
			struct group_id id = entry->id;
			unsettled_remove(set, &id);
		}
	}
}

/* Finished for now: the sweep of cells comes next. */
static void expire_rest(struct engine *engine, int64_t now_us, int64_t now_ms)
{
	engine->is_expiring = false;
	engine->expire_due_us = now_us + EXPIRE_INTERVAL_US;
	engine->expire_wall_ms = now_ms + EXPIRE_INTERVAL_US / 1000;
	engine->sweep.is_running = true;
}

/* What is re-keyed next may be just what would go. */
static bool waits_for_rekeying(const struct engine *engine, int64_t now_us)
{
	return engine->rekeyed_us && now_us - engine->rekeyed_us < REKEYING_US;
}

int expire(struct engine *engine, MDB_txn *txn, bool *more)
{
	int64_t now = engine_now_us(engine), now_ms = clock_wall_ms(engine->options.clock);
	bool due = now >= engine->expire_due_us || engine->settle_wanted ||
		   now_ms >= engine->expire_wall_ms;
	if (engine->rekeys || (!engine->is_expiring && (!due || waits_for_rekeying(engine, now))))
		return 0;
	for (size_t i = 0; i < engine->heads.directory_count; i++) {
		struct segment_id segment = engine->heads.directory[i];
		if (!expires_now(engine, &segment))
			continue;
		bool done;
		int err = expire_slice(engine, txn, &segment, &done);
		if (err)
			return err;
		engine->is_expiring = true;
		*more = true;
		if (done) {
			engine->expired = segment;
			engine->has_expired = true;
		}
		return 0;
	}
	expire_rest(engine, now, now_ms);
	return 0;
}

int expire_cells(struct engine *engine, MDB_txn *txn, bool *more)
{
	struct clock_judgement now;
	int err = sweep_index_fill(engine, txn, more);
	if (err || !engine->sweep.is_running)
		return err;
	clock_judge(engine->options.clock, &now);
	err = sweep_due(engine, txn,
			now.doubted ? SWEEP_NOW : sweep_minute(floor_div(now.wall_us, 1000)));
	*more = *more || engine->sweep.is_running;
	return err;
}

void expire_committed(struct engine *engine)
{
	if (engine->has_expired) {
		stat_add(STAT_store_expired_segments, 1);
		forget_heads(engine, &engine->expired);
		forget_unsettled(&engine->unsettled, &engine->expired);
	}
	engine->has_expired = false;
}

void expire_aborted(struct engine *engine)
{
	engine->has_expired = false;
	engine->sweep.key_len = engine->sweep.cell_len = 0;
}
