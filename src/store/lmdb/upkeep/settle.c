/* Settling: a group whose extents came in several flushes is read and written once more as one, in
 * long, dense blocks, when nothing more is expected of it: its segment is closed and it has been
 * quiet for a while. Then a query reads fewer extents and the disk holds fewer bytes.
 *
 * Which groups wait is known from the seals and deletes since the start, and from a walk over the
 * keys of the extents after it (settle_find). `settle_wanted` (lmdb_settle, compaction) makes them
 * due at once: those of closed segments, or all; whoever waits for that is told when the last one
 * is committed. A group that cannot be read is left as it is. */
#include "base/grow.h"
#include "base/stats.h"
#include "store/lmdb/upkeep/upkeep.h"

enum {
	SETTLE_INTERVAL_US = 1000000,
	STARTUP_KEYS = 5000, /* looked at in one slice after the start */
};

bool segment_closed(const struct segment_id *id, int64_t now_ms)
{
	int64_t width_ms = schema_segment_ms(id->sheet.table, id->sheet.period_ms);
	return id->segment < floor_div(now_ms - SEGMENT_LATE_MS, width_ms);
}

int64_t quiet_since_us(const struct engine *engine, int64_t now_us)
{
	return engine->settle_wanted ? now_us : now_us - engine->options.settle_delay_ms * 1000;
}

void settle_leave(struct engine *engine, const struct group_id *id)
{
	/* So that an abort can put it back. */
	GROW(engine->settled_groups, engine->settled_cap, engine->settled_count + 1);
	engine->settled_groups[engine->settled_count++] = *id;
	unsettled_remove(&engine->unsettled, id);
}

static int settle_group(struct engine *engine, MDB_txn *txn, const struct group_id *id,
			struct slice_budget *budget)
{
	struct sealing sealing;
	bool changed = false;
	seal_collect(engine, id, true, &sealing);
	int err = seal_write(engine, txn, id, &sealing, true, SETTLED_FLUSH, &budget->bytes,
			     &changed);
	if (err == ERR_DAMAGED && !changed) { /* as it is, for verify to name and repair to judge */
		unsettled_remove(&engine->unsettled, id);
		return 0;
	}
	if (err)
		return err;
	seal_mark_heads(engine, &sealing, true);
	settle_leave(engine, id);
	return 0;
}

/* Nearly all of very many groups are of segments that are still open: the groups are only walked
 * when one may be of another segment. */
static bool begin_walk(struct engine *engine, int64_t now, int64_t now_ms)
{
	struct unsettled_set *set = &engine->unsettled;
	if (engine->settle_walks)
		return true;
	if (now < engine->settle_due_us && !engine->settle_wanted)
		return false;
	if (set->least_end_ms > now_ms - SEGMENT_LATE_MS && !settles_all(engine))
		return false;
	engine->settle_walks = true;
	engine->settle_at = 0;
	engine->settle_least_ms = set->least_end_ms = INT64_MAX;
	return true;
}

static void end_walk(struct engine *engine, int64_t now)
{
	struct unsettled_set *set = &engine->unsettled;
	engine->settle_walks = false;
	engine->settle_due_us = now + SETTLE_INTERVAL_US;
	if (engine->settle_least_ms < set->least_end_ms)
		set->least_end_ms = engine->settle_least_ms;
}

/* Goes on where the last slice ended. */
int settle_quiet(struct engine *engine, MDB_txn *txn, struct slice_budget *budget)
{
	const struct hash_table *groups = &engine->unsettled.table;
	int64_t now = engine_now_us(engine), now_ms = clock_wall_ms(engine->options.clock);
	int64_t quiet_since = quiet_since_us(engine, now);
	if (!begin_walk(engine, now, now_ms))
		return 0;
	for (; engine->settle_at < groups->slot_count; engine->settle_at++) {
		size_t at = engine->settle_at;
		if (at % 64 == 0 && budget_spent(budget))
			return 0;
		for (const struct unsettled *entry; (entry = hash_table_at(groups, at));) {
			struct group_id id = entry->id;
			bool due = segment_closed(&id.segment, now_ms) &&
				   entry->touched_us <= quiet_since;
			if (!due && !settles_all(engine)) {
				int64_t end_ms = segment_end_ms(&id.segment);
				if (end_ms < engine->settle_least_ms)
					engine->settle_least_ms = end_ms;
				break;
			}
			int err = settle_group(engine, txn, &id, budget);
			if (err || budget_spent(budget))
				return err;
		}
	}
	end_walk(engine, now);
	return 0;
}

int settle_find(struct engine *engine, MDB_txn *txn, bool *more)
{
	if (engine->found_unsettled)
		return 0;
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_EXTENTS], &cursor));
	if (err)
		return err;
	struct slice key = {(const char *)engine->find_key, engine->find_key_len}, value;
	if (!key.len)
		key = SLICE("\0");
	err = env_seek(cursor, &key, &value);
	for (int n = 0; !err && n < STARTUP_KEYS; n++) {
		struct group_id id;
		int64_t first_ts_ms;
		uint32_t flush;
		if (!group_parse_key(key, &id, &first_ts_ms, &flush) && flush != SETTLED_FLUSH)
			unsettled_add(&engine->unsettled, &id, engine_now_us(engine));
		err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	engine->found_unsettled = err == ERR_NOT_FOUND;
	if (!err) { /* of a longer key, which is damage, the beginning: it comes once more */
		size_t room = sizeof(engine->find_key);
		engine->find_key_len = key.len < room ? key.len : room;
		memcpy(engine->find_key, key.data, engine->find_key_len);
	}
	*more = *more || !engine->found_unsettled;
	return err == ERR_NOT_FOUND ? 0 : err;
}

static bool cells_are_due(const struct engine *engine)
{
	return engine->sweep.is_running || !engine->is_indexed;
}

/* Nothing is left of segments that are closed. */
static bool closed_is_settled(struct engine *engine)
{
	int64_t now_ms = clock_wall_ms(engine->options.clock);
	const struct hash_table *groups = &engine->unsettled.table;
	for (const struct head *head = engine->heads.oldest; head; head = head->newer) {
		struct segment_id id = head_segment(head);
		if (segment_closed(&id, now_ms))
			return false;
	}
	for (size_t at = 0; at < groups->slot_count; at++) {
		const struct unsettled *entry = hash_table_at(groups, at);
		if (entry && segment_closed(&entry->id.segment, now_ms))
			return false;
	}
	return engine->seals.count == 0 && !journal_list_can_cut(engine) && !engine->is_expiring &&
	       !cells_are_due(engine) && engine->found_unsettled;
}

static bool settle_is_done(struct engine *engine)
{
	if (engine->settle_closed_only)
		return closed_is_settled(engine);
	return !engine->heads.oldest && engine->unsettled.table.count == 0 &&
	       engine->seals.count == 0 && engine->journal_count == 0 && !engine->is_expiring &&
	       !cells_are_due(engine) && engine->found_unsettled;
}

void settle_committed(struct engine *engine)
{
	engine->settled_count = 0;
	if (!engine->settle_wanted || !settle_is_done(engine))
		return;
	pthread_mutex_lock(&engine->queue_lock);
	engine->settle_wanted = false;
	pthread_cond_broadcast(&engine->settled);
	pthread_mutex_unlock(&engine->queue_lock);
}

void settle_aborted(struct engine *engine)
{
	for (size_t i = 0; i < engine->settled_count; i++)
		unsettled_add(&engine->unsettled, &engine->settled_groups[i],
			      engine_now_us(engine));
	engine->settled_count = 0;
}
