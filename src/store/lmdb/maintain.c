/* What the writer does beside committing: sealing heads, settling closed segments, cutting the
 * journal, dropping what expired, looking for room. All of it in slices, inside the transactions of
 * the group commits, so that no batch waits for more than a slice.
 *
 * Sealing takes all that a head holds. If nothing of its band lies on disk in that span of time,
 * its blocks go into new extents of the group; else the whole group is read, merged and written
 * anew. Either way the heads stay visible until the transaction is committed (maintain_committed).
 *
 * A group that got several flushes is settled when its segment is closed and it has been quiet: its
 * extents are read and written as one, in long blocks. */
#include "base/cursor.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/stats.h"
#include "store/lmdb/engine.h"

enum {
	SLICE_BYTES = 8 << 20,
	SLICE_US = 20000,
	CUT_PAGES = 4096,     /* journal pages deleted in one slice */
	EXPIRE_KEYS = 2000,   /* extents deleted in one slice */
	SEAL_ROWS_LEAST = 64, /* a smaller head is not sealed unless it must be */
	SCAN_INTERVAL_US = 5000000,
	SETTLE_INTERVAL_US = 1000000,
	EXPIRE_INTERVAL_US = 60000000,
	ROOM_INTERVAL_US = 1000000,
	STARTUP_KEYS = 5000, /* keys looked at in one slice after the start */
};

#define CLOCK_JUMP_US (INT64_C(3600) * 1000000)

/* The bounds of one slice. */
struct slice_budget {
	struct clock *clock;
	int64_t until_us;
	uint64_t bytes;
};

static bool spent(const struct slice_budget *budget)
{
	return budget->bytes >= SLICE_BYTES ||
	       budget->clock->mono_us(budget->clock) >= budget->until_us;
}

static int64_t now_us(struct engine *engine)
{
	return engine->options.clock->mono_us(engine->options.clock);
}

/* ---- The set of unsettled groups ------------------------------------------------------------- */

static bool same_group(const struct group_id *a, const struct group_id *b)
{
	return a->shape == b->shape && a->group == b->group &&
	       segment_order(&a->segment, &b->segment) == 0;
}

static size_t unsettled_slot(const struct unsettled_set *set, const struct group_id *id)
{
	size_t at = segment_hash(&id->segment, id->shape, id->group) & (set->cap - 1);
	while (set->used[at] && !same_group(&set->slots[at].id, id))
		at = (at + 1) & (set->cap - 1);
	return at;
}

static void unsettled_grow(struct unsettled_set *set)
{
	struct unsettled_set old = *set;
	set->cap = old.cap ? old.cap * 2 : 256;
	set->slots = mem_alloc_array(set->cap, sizeof(*set->slots));
	set->used = mem_zalloc(set->cap * sizeof(*set->used));
	for (size_t i = 0; i < old.cap; i++) {
		if (!old.used[i])
			continue;
		size_t at = unsettled_slot(set, &old.slots[i].id);
		set->slots[at] = old.slots[i];
		set->used[at] = true;
	}
	mem_free(old.slots);
	mem_free(old.used);
}

void unsettled_add(struct unsettled_set *set, const struct group_id *id, int64_t at_us)
{
	if (set->count * 2 >= set->cap)
		unsettled_grow(set);
	size_t at = unsettled_slot(set, id);
	set->count += !set->used[at];
	set->used[at] = true;
	set->slots[at] = (struct unsettled){*id, at_us};
}

/* Backward-shift deletion keeps every probe sequence whole. */
static void unsettled_remove(struct unsettled_set *set, const struct group_id *id)
{
	if (set->cap == 0)
		return;
	size_t hole = unsettled_slot(set, id);
	if (!set->used[hole])
		return;
	set->used[hole] = false;
	set->count--;
	for (size_t at = (hole + 1) & (set->cap - 1); set->used[at];
	     at = (at + 1) & (set->cap - 1)) {
		struct unsettled moved = set->slots[at];
		set->used[at] = false;
		size_t to = unsettled_slot(set, &moved.id);
		set->slots[to] = moved;
		set->used[to] = true;
	}
}

/* ---- Sealing --------------------------------------------------------------------------------- */

static struct group_id group_of_head(struct engine *engine, const struct head *head)
{
	struct segment_id segment = {head->sheet, head->segment};
	return engine_group_of(engine, &segment, head->shape, head->ordinal, NULL);
}

void maintain_request_seal(struct engine *engine, const struct head *head, bool all)
{
	struct seal_queue *queue = &engine->seals;
	if (queue->first + queue->count == queue->cap) {
		if (queue->first > queue->count) {
			memmove(queue->list, queue->list + queue->first,
				queue->count * sizeof(*queue->list));
			queue->first = 0;
		} else {
			queue->cap = queue->cap ? queue->cap * 2 : 256;
			queue->list =
				mem_resize_array(queue->list, queue->cap, sizeof(*queue->list));
		}
	}
	queue->list[queue->first + queue->count++] =
		(struct seal_request){group_of_head(engine, head), all};
}

static void take_head(struct engine *engine, struct head *head)
{
	if (engine->sealed_count == engine->sealed_cap) {
		engine->sealed_cap = engine->sealed_cap ? engine->sealed_cap * 2 : 256;
		engine->sealed = mem_resize_array(engine->sealed, engine->sealed_cap,
						  sizeof(*engine->sealed));
	}
	head->taken = true;
	engine->sealed[engine->sealed_count++] = head;
}

struct sealing {
	struct head *heads[GROUP_BANDS_MAX];
	uint32_t ordinal_in_group[GROUP_BANDS_MAX];
	size_t count;
};

/* The heads of the group that are to be sealed now. */
static void collect_heads(struct engine *engine, const struct group_id *id, bool all,
			  struct sealing *sealing)
{
	uint32_t bands = group_bands(registry_columns(&engine->registry, id->shape));
	sealing->count = 0;
	for (uint32_t i = 0; i < bands; i++) {
		struct head *head =
			heads_find(&engine->heads, &id->segment, id->shape, id->group * bands + i);
		if (!head || (!all && head->rows < SEAL_ROWS_LEAST) || head->taken)
			continue;
		sealing->ordinal_in_group[sealing->count] = i;
		sealing->heads[sealing->count++] = head;
	}
}

static int must_rewrite(struct engine *engine, MDB_txn *txn, const struct group_id *id,
			const struct sealing *sealing, bool *rewrite)
{
	struct band_span spans[GROUP_BANDS_MAX];
	for (size_t i = 0; i < ARRAY_LEN(spans); i++)
		spans[i] = (struct band_span){.min_ts_ms = INT64_MAX, .max_ts_ms = INT64_MIN};
	for (size_t i = 0; i < sealing->count; i++) {
		spans[sealing->ordinal_in_group[i]].min_ts_ms = sealing->heads[i]->min_ts_ms;
		spans[sealing->ordinal_in_group[i]].max_ts_ms = sealing->heads[i]->max_ts_ms;
	}
	int err = group_spans(txn, engine->env.dbi[DB_EXTENTS], id, spans);
	*rewrite = false;
	for (size_t i = 0; i < ARRAY_LEN(spans); i++)
		*rewrite = *rewrite || spans[i].overlaps;
	return err;
}

/* Writes what the heads hold; with `rewrite` merged with all that the group has on disk. An error
 * with *changed false left the group as it was, so that one may go on; else the transaction has to
 * be aborted. */
static int write_group(struct engine *engine, MDB_txn *txn, const struct group_id *id,
		       const struct sealing *sealing, bool rewrite, uint32_t flush, uint64_t *bytes,
		       bool *changed)
{
	struct strips strips = {0};
	MDB_dbi extents = engine->env.dbi[DB_EXTENTS];
	int err = rewrite ? strips_load(&strips, txn, extents, id) : 0;
	for (size_t i = 0; i < sealing->count && !err; i++)
		strips_add_head(&strips, sealing->heads[i], sealing->ordinal_in_group[i]);
	if (!err && rewrite)
		err = group_clear(txn, extents, id, changed);
	if (!err) {
		*changed = true;
		err = group_store(txn, extents, id, &strips, flush, bytes);
	}
	strips_release(&strips);
	return err;
}

static int seal_group(struct engine *engine, MDB_txn *txn, const struct seal_request *request,
		      struct slice_budget *budget)
{
	struct sealing sealing;
	bool rewrite = false, changed = false;
	collect_heads(engine, &request->id, request->all, &sealing);
	if (sealing.count == 0)
		return 0;
	int err = fault("store.seal");
	if (!err)
		err = must_rewrite(engine, txn, &request->id, &sealing, &rewrite);
	if (!err)
		err = write_group(engine, txn, &request->id, &sealing, rewrite,
				  engine->next_flush++, &budget->bytes, &changed);
	if (err == ERR_DAMAGED && !changed) {
		/* What cannot be read cannot be merged: it stays as it is, reads of it fail, and
		 * what is new goes beside it. */
		log_warn("store %s: table %s has a damaged group; new data is kept beside it",
			 engine->options.path, schema[request->id.segment.sheet.table].name);
		rewrite = false;
		err = write_group(engine, txn, &request->id, &sealing, false, engine->next_flush++,
				  &budget->bytes, &changed);
	}
	if (err)
		return err;
	for (size_t i = 0; i < sealing.count; i++)
		take_head(engine, sealing.heads[i]);
	stat_add(STAT_store_seals, (int64_t)sealing.count);
	stat_add(STAT_store_seal_rewrites, rewrite);
	unsettled_add(&engine->unsettled, &request->id, now_us(engine));
	return 0;
}

static int seal_requested(struct engine *engine, MDB_txn *txn, struct slice_budget *budget)
{
	struct seal_queue *queue = &engine->seals;
	while (queue->count && !spent(budget)) {
		struct seal_request request = queue->list[queue->first];
		int err = seal_group(engine, txn, &request, budget);
		if (err)
			return err; /* it stays asked for */
		queue->first++;
		queue->count--;
	}
	if (!queue->count)
		queue->first = 0;
	return 0;
}

static bool journal_too_old(struct engine *engine, int64_t now_ms)
{
	if (engine->journal_count == 0)
		return false;
	return engine->journal[engine->journal_first].written_ms <
	       now_ms - engine->options.journal_max_age_ms;
}

static bool under_pressure(struct engine *engine)
{
	/* Without room: extents take far less of it than the journal. */
	return engine->full || engine->journal_bytes > engine->options.journal_max_bytes ||
	       engine->heads.bytes > engine->options.head_max_bytes ||
	       journal_too_old(engine, clock_wall_ms(engine->options.clock));
}

static bool settles_all(const struct engine *engine)
{
	return engine->settle_wanted && !engine->settle_closed_only;
}

/* How far the journal must be cut: a quarter of it when it is too long or old, or all. */
static uint64_t pressure_sequence(struct engine *engine)
{
	if (settles_all(engine) || engine->full)
		return engine->next_sequence;
	size_t at = engine->journal_first + engine->journal_count / 4;
	if (engine->journal_count < 4)
		return engine->next_sequence;
	return engine->journal[at % engine->journal_cap].first_sequence;
}

/* Seals the heads that hold the journal, oldest first. */
static int seal_oldest(struct engine *engine, MDB_txn *txn, struct slice_budget *budget)
{
	if (!settles_all(engine) && !under_pressure(engine))
		return 0;
	uint64_t target = pressure_sequence(engine);
	struct head *head = engine->heads.oldest;
	while (head && head->first_sequence < target && !spent(budget)) {
		if (!head->taken) {
			struct seal_request request = {group_of_head(engine, head), true};
			int err = seal_group(engine, txn, &request, budget);
			if (err)
				return err;
		}
		head = head->newer;
	}
	return 0;
}

/* A segment that lies wholly in the past; the hour is for samples that are a little late. */
static bool segment_closed(const struct segment_id *id, int64_t now_ms)
{
	int64_t width_ms = schema_segment_ms(id->sheet.table, id->sheet.period_ms);
	return id->segment < floor_div(now_ms - 3600000, width_ms);
}

/* Asks for the heads of closed segments that have been quiet to be sealed. */
static void scan_heads(struct engine *engine)
{
	int64_t now = now_us(engine), now_ms = clock_wall_ms(engine->options.clock);
	if (now < engine->scan_due_us && !engine->settle_wanted)
		return;
	engine->scan_due_us = now + SCAN_INTERVAL_US;
	int64_t quiet_since =
		engine->settle_wanted ? now : now - engine->options.settle_delay_ms * 1000;
	for (struct head *head = engine->heads.oldest; head; head = head->newer) {
		struct segment_id id = {head->sheet, head->segment};
		if (head->queued || head->touched_us > quiet_since || !segment_closed(&id, now_ms))
			continue;
		head->queued = true;
		maintain_request_seal(engine, head, true);
	}
}

/* ---- Settling -------------------------------------------------------------------------------- */

/* So that an abort can put it back. */
static void remember_settled(struct engine *engine, const struct group_id *id)
{
	if (engine->settled_count == engine->settled_cap) {
		engine->settled_cap = engine->settled_cap ? engine->settled_cap * 2 : 64;
		engine->settled_groups =
			mem_resize_array(engine->settled_groups, engine->settled_cap,
					 sizeof(*engine->settled_groups));
	}
	engine->settled_groups[engine->settled_count++] = *id;
}

static int settle_group(struct engine *engine, MDB_txn *txn, const struct group_id *id,
			struct slice_budget *budget)
{
	struct sealing sealing;
	bool changed = false;
	collect_heads(engine, id, true, &sealing);
	int err = write_group(engine, txn, id, &sealing, true, 0, &budget->bytes, &changed);
	if (err == ERR_DAMAGED && !changed) { /* as it is, for verify to name and repair to judge */
		unsettled_remove(&engine->unsettled, id);
		return 0;
	}
	if (err)
		return err;
	for (size_t i = 0; i < sealing.count; i++)
		take_head(engine, sealing.heads[i]);
	stat_add(STAT_store_seals, (int64_t)sealing.count);
	stat_add(STAT_store_seal_rewrites, 1);
	remember_settled(engine, id);
	unsettled_remove(&engine->unsettled, id);
	return 0;
}

/* Walks the set once in SETTLE_INTERVAL_US, going on where the last slice ended. */
static int settle_quiet(struct engine *engine, MDB_txn *txn, struct slice_budget *budget)
{
	struct unsettled_set *set = &engine->unsettled;
	int64_t now = now_us(engine), now_ms = clock_wall_ms(engine->options.clock);
	int64_t quiet_since =
		engine->settle_wanted ? now : now - engine->options.settle_delay_ms * 1000;
	if (engine->settle_at == 0 && now < engine->settle_due_us && !engine->settle_wanted)
		return 0;
	for (; engine->settle_at < set->cap; engine->settle_at++) {
		size_t at = engine->settle_at;
		if (at % 64 == 0 && spent(budget))
			return 0;
		while (at < set->cap && set->used[at]) {
			struct unsettled entry = set->slots[at];
			bool due = segment_closed(&entry.id.segment, now_ms) &&
				   entry.touched_us <= quiet_since;
			if (!due && !settles_all(engine))
				break;
			int err = settle_group(engine, txn, &entry.id, budget);
			if (err || spent(budget))
				return err;
		}
	}
	engine->settle_at = 0;
	engine->settle_due_us = now + SETTLE_INTERVAL_US;
	return 0;
}

/* ---- The journal ----------------------------------------------------------------------------- */

/* Drops pages whose records are all sealed. What this transaction seals counts from the next on. */
static int cut_journal(struct engine *engine, MDB_txn *txn, bool *more)
{
	uint64_t keep =
		engine->heads.oldest ? engine->heads.oldest->first_sequence : engine->next_sequence;
	for (int cut = 0; engine->journal_count; cut++) {
		const struct journal_entry *entry = &engine->journal[engine->journal_first];
		if (entry->first_sequence + entry->records > keep)
			return 0;
		if (cut == CUT_PAGES) {
			*more = true;
			return 0;
		}
		uint8_t key[8];
		be64_put(key, entry->first_sequence);
		int err = env_delete(txn, engine->env.dbi[DB_JOURNAL],
				     (struct slice){(const char *)key, sizeof(key)});
		if (err)
			return err;
		/* Counted at once: after an abort the page is deleted again or replayed, both
		 * harmless; see maintain_aborted. */
		engine->journal_bytes -= entry->bytes;
		engine->journal_records -= entry->records;
		engine->journal_first = (engine->journal_first + 1) % engine->journal_cap;
		engine->journal_count--;
		engine->cut_count++;
	}
	return 0;
}

/* ---- Expiry ---------------------------------------------------------------------------------- */

static bool segment_expired(const struct segment_id *id, int64_t now_ms)
{
	int64_t lifetime_ms = retention_class_ms(id->sheet.retention);
	int64_t width_ms = schema_segment_ms(id->sheet.table, id->sheet.period_ms);
	if (lifetime_ms == 0)
		return false;
	int64_t gone_ms = now_ms - lifetime_ms - STORE_QUERY_DEADLINE_MAX_MS;
	return id->segment < floor_div(gone_ms, width_ms);
}

/* Deletes extents of the expired segment, a slice of them; *done when none is left. */
static int expire_slice(struct engine *engine, MDB_txn *txn, const struct segment_id *segment,
			bool *done)
{
	uint8_t from[GROUP_PREFIX_BYTES + EXTENT_KEY_BYTES + 1];
	size_t from_len = SEGMENT_PREFIX_BYTES;
	struct group_id id = {*segment, 0, 0};
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_EXTENTS], &cursor));
	if (err)
		return err;
	group_prefix(&id, from);
	*done = false;
	for (int n = 0; n < EXPIRE_KEYS;) {
		struct slice key = {(const char *)from, from_len}, value;
		err = env_seek(cursor, &key, &value);
		if (err || key.len < SEGMENT_PREFIX_BYTES ||
		    memcmp(key.data, from, SEGMENT_PREFIX_BYTES) != 0) {
			*done = !err || err == ERR_NOT_FOUND;
			break;
		}
		if (!env_may_free(key, value) && key.len <= EXTENT_KEY_BYTES) {
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

/* The heads of the segment go too, and its place in the directory. */
static void forget_segment(struct engine *engine, const struct segment_id *segment)
{
	pthread_rwlock_wrlock(&engine->heads.lock);
	for (struct head *head = engine->heads.oldest; head;) {
		struct head *newer = head->newer;
		struct segment_id id = {head->sheet, head->segment};
		if (segment_order(&id, segment) == 0 && !head->taken)
			heads_remove(&engine->heads, head);
		head = newer;
	}
	heads_remove_segment(&engine->heads, segment);
	pthread_rwlock_unlock(&engine->heads.lock);
	struct unsettled_set *set = &engine->unsettled;
	for (size_t i = 0; i < set->cap;) {
		if (set->used[i] && segment_order(&set->slots[i].id.segment, segment) == 0) {
			struct group_id id = set->slots[i].id;
			unsettled_remove(set, &id);
		} else {
			i++;
		}
	}
}

static int expire(struct engine *engine, MDB_txn *txn, bool *more)
{
	int64_t now = now_us(engine), now_ms = clock_wall_ms(engine->options.clock);
	bool due = now >= engine->expire_due_us || engine->settle_wanted ||
		   now_ms >= engine->expire_wall_ms;
	if (!engine->is_expiring && !due)
		return 0;
	for (size_t i = 0; i < engine->heads.directory_count; i++) {
		struct segment_id segment = engine->heads.directory[i];
		if (!segment_expired(&segment, now_ms))
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
	engine->is_expiring = false;
	engine->expire_due_us = now + EXPIRE_INTERVAL_US;
	engine->expire_wall_ms = now_ms + EXPIRE_INTERVAL_US / 1000;
	if (!engine->is_sweeping) {
		engine->is_sweeping = true;
		engine->sweep_key_len = 0;
	}
	return 0;
}

static int sweep(struct engine *engine, MDB_txn *txn, bool *more)
{
	if (!engine->is_sweeping)
		return 0;
	int err = cells_sweep(engine, txn, engine->sweep_key, &engine->sweep_key_len);
	engine->is_sweeping = !err && engine->sweep_key_len;
	*more = *more || engine->is_sweeping;
	return err;
}

/* ---- After the start --------------------------------------------------------------------------
 */

/* Finds the groups that were left unsettled, a slice of the keys at a time. */
static int find_unsettled(struct engine *engine, MDB_txn *txn, bool *more)
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
		if (!group_parse_key(key, &id, &first_ts_ms, &flush) && flush)
			unsettled_add(&engine->unsettled, &id, now_us(engine));
		err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	engine->found_unsettled = err == ERR_NOT_FOUND;
	if (!err && key.len <= sizeof(engine->find_key)) {
		engine->find_key_len = key.len;
		memcpy(engine->find_key, key.data, key.len);
	}
	*more = *more || !engine->found_unsettled;
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* ---- Room ------------------------------------------------------------------------------------ */

/* Pages that only deleting and sealing may take. */
static uint64_t reserved_pages(uint64_t map_pages)
{
	uint64_t reserve = map_pages / 50;
	return reserve < 64 ? 64 : reserve > 16384 ? 16384 : reserve;
}

/* Whether the file has grown so far that free pages must be counted before each commit. */
static bool near_the_end(struct engine *engine)
{
	MDB_envinfo info;
	if (mdb_env_info(engine->env.mdb, &info))
		return true;
	uint64_t map_pages = info.me_mapsize / 4096;
	return info.me_last_pgno + 2 * reserved_pages(map_pages) >= map_pages;
}

/* Expiry and the age of the journal go by the wall clock: whoever wonders at them finds this. */
static void look_at_clock(struct engine *engine)
{
	struct clock *clock = engine->options.clock;
	int64_t skew_us = clock->wall_us(clock) - clock->mono_us(clock);
	int64_t jump_us = skew_us - engine->clock_skew_us;
	if (engine->clock_skew_us && (jump_us > CLOCK_JUMP_US || jump_us < -CLOCK_JUMP_US))
		log_warn("store %s: the clock jumped by %lld s", engine->options.path,
			 (long long)(jump_us / 1000000));
	engine->clock_skew_us = skew_us;
}

/* Writes that grow the store stop while there are few pages left, so that deleting and sealing,
 * which need pages too, still can. */
static void look_for_room(struct engine *engine)
{
	int64_t now = now_us(engine);
	bool due = now >= engine->room_due_us || !engine->room_due_us;
	if (!due && !near_the_end(engine))
		return;
	struct env_pages pages;
	if (env_count_pages(&engine->env, &pages))
		return;
	if (due) {
		struct files *files = engine->options.files;
		uint64_t free_bytes = UINT64_MAX;
		engine->room_due_us = now + ROOM_INTERVAL_US;
		look_at_clock(engine);
		if (files->free_bytes(files, engine->options.path, &free_bytes))
			return;
		engine->disk_full = free_bytes < engine->options.min_free_bytes;
		stat_set(STAT_store_used_bytes, (int64_t)(pages.used * pages.page_bytes));
		stat_set(STAT_store_file_bytes,
			 (int64_t)((pages.used + pages.free) * pages.page_bytes));
		stat_set(STAT_store_journal_bytes, (int64_t)engine->journal_bytes);
		engine_tell_memory(engine);
	}
	bool full = engine->disk_full || pages.map < pages.used + reserved_pages(pages.map);
	if (full != engine->full)
		log_warn("store %s: %s", engine->options.path,
			 full ? "no room left; writes are refused until there is"
			      : "there is room again; writes are taken");
	engine->full = engine->registry.full = full;
	stat_set(STAT_store_read_only, full);
}

/* ---- Deletions ------------------------------------------------------------------------------- */

static void blank(struct strip *strip, const struct record *record)
{
	struct run *run = &strip->run;
	for (unsigned c = 0; c < record->columns; c++) {
		unsigned column = record->first_column + c;
		if (column < strip->first_column || column >= strip->first_column + run->fields)
			continue;
		uint8_t *types = run->types[column - strip->first_column];
		for (size_t i = 0; i < run->count; i++) {
			if (run->ts_ms[i] >= record->ts_ms && run->ts_ms[i] < record->end_ms)
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
			blank(&strips.list[i], record);
	}
	if (!err)
		err = group_clear(txn, extents, id, &changed);
	if (!err)
		err = group_store(txn, extents, id, &strips, engine->next_flush++, &bytes);
	strips_release(&strips);
	unsettled_add(&engine->unsettled, id, now_us(engine));
	return err;
}

/* Out of the extents, in the transaction; the heads follow after the commit. */
int maintain_delete(struct engine *engine, MDB_txn *txn, const struct record *record)
{
	const struct sheet *sheet = &record->sheet;
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

/* ---- One slice ------------------------------------------------------------------------------- */

bool maintain_due(struct engine *engine)
{
	int64_t now = now_us(engine);
	return engine->settle_wanted || engine->seals.count || !engine->found_unsettled ||
	       now >= engine->room_due_us || engine->is_expiring || engine->is_sweeping;
}

/* Nothing is left of segments that are closed. */
static bool closed_is_settled(struct engine *engine)
{
	int64_t now_ms = clock_wall_ms(engine->options.clock);
	const struct unsettled_set *set = &engine->unsettled;
	for (const struct head *head = engine->heads.oldest; head; head = head->newer) {
		struct segment_id id = {head->sheet, head->segment};
		if (segment_closed(&id, now_ms))
			return false;
	}
	for (size_t i = 0; i < set->cap; i++) {
		if (set->used[i] && segment_closed(&set->slots[i].id.segment, now_ms))
			return false;
	}
	return engine->seals.count == 0 && !engine->is_expiring && engine->found_unsettled;
}

static bool settled(struct engine *engine)
{
	if (engine->settle_closed_only)
		return closed_is_settled(engine);
	return !engine->heads.oldest && engine->unsettled.count == 0 && engine->seals.count == 0 &&
	       engine->journal_count == 0 && !engine->is_expiring && engine->found_unsettled;
}

int maintain(struct engine *engine, MDB_txn *txn, bool *more)
{
	struct slice_budget budget = {.clock = engine->options.clock,
				      .until_us = now_us(engine) + SLICE_US};
	*more = false;
	engine->cut_count = 0;
	look_for_room(engine);
	scan_heads(engine);
	if (engine->heads.bytes / 3 > engine->options.head_max_bytes / 2 ||
	    engine->journal_bytes / 3 > engine->options.journal_max_bytes / 2)
		budget.until_us = INT64_MAX; /* writers wait rather than memory growing */
	int err = find_unsettled(engine, txn, more);
	if (!err)
		err = cut_journal(engine, txn, more);
	if (!err)
		err = expire(engine, txn, more);
	if (!err)
		err = sweep(engine, txn, more);
	if (!err && !engine->is_expiring)
		err = seal_requested(engine, txn, &budget);
	if (!err && !engine->is_expiring)
		err = seal_oldest(engine, txn, &budget);
	if (!err && !engine->is_expiring)
		err = settle_quiet(engine, txn, &budget);
	*more = *more || engine->seals.count || spent(&budget) || engine->sealed_count;
	return err;
}

void maintain_committed(struct engine *engine)
{
	if (engine->has_expired)
		forget_segment(engine, &engine->expired);
	engine->has_expired = false;
	if (engine->sealed_count) {
		pthread_rwlock_wrlock(&engine->heads.lock);
		for (size_t i = 0; i < engine->sealed_count; i++)
			heads_remove(&engine->heads, engine->sealed[i]);
		pthread_rwlock_unlock(&engine->heads.lock);
		engine->sealed_count = 0;
	}
	engine->cut_count = engine->settled_count = 0;
	if (!engine->settle_wanted || !settled(engine))
		return;
	pthread_mutex_lock(&engine->queue_lock);
	engine->settle_wanted = false;
	pthread_cond_broadcast(&engine->settled);
	pthread_mutex_unlock(&engine->queue_lock);
}

/* The journal's pages are still there: their entries still stand in the ring behind its beginning.
 */
static void uncut_journal(struct engine *engine)
{
	while (engine->cut_count) {
		engine->cut_count--;
		engine->journal_first =
			(engine->journal_first + engine->journal_cap - 1) % engine->journal_cap;
		engine->journal_count++;
		const struct journal_entry *entry = &engine->journal[engine->journal_first];
		engine->journal_bytes += entry->bytes;
		engine->journal_records += entry->records;
	}
}

void maintain_aborted(struct engine *engine)
{
	uncut_journal(engine);
	engine->has_expired = false;
	/* Heads that were to go stay, and so do their groups in need of settling. */
	for (size_t i = 0; i < engine->sealed_count; i++) {
		engine->sealed[i]->taken = false;
		maintain_request_seal(engine, engine->sealed[i], true);
	}
	for (size_t i = 0; i < engine->settled_count; i++)
		unsettled_add(&engine->unsettled, &engine->settled_groups[i], now_us(engine));
	engine->sealed_count = engine->settled_count = 0;
}
