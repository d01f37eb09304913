#include "base/log.h"
#include "base/stats.h"
#include "store/lmdb/upkeep.h"

enum {
	ROOM_INTERVAL_US = 1000000,
};

#define CLOCK_JUMP_US (INT64_C(3600) * 1000000)

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

static void tell_memory(struct engine *engine)
{
	const struct unsettled_set *set = &engine->unsettled;
	size_t groups = set->cap * (sizeof(*set->slots) + sizeof(*set->used)) +
			engine->seals.cap * sizeof(*engine->seals.list) +
			engine->sealed_cap * sizeof(struct head *) +
			engine->settled_cap * sizeof(*engine->settled_groups);
	stat_set(STAT_store_registry_bytes, (int64_t)registry_memory_bytes(&engine->registry));
	stat_set(STAT_store_group_list_bytes, (int64_t)groups);
}

/* Writes that grow the store stop while there are few pages left, so that deleting and sealing,
 * which need pages too, still can. */
void room_look(struct engine *engine)
{
	int64_t now = engine_now_us(engine);
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
		tell_memory(engine);
	}
	bool full = engine->disk_full || pages.map < pages.used + reserved_pages(pages.map);
	if (full != engine->full)
		log_warn("store %s: %s", engine->options.path,
			 full ? "no room left; writes are refused until there is"
			      : "there is room again; writes are taken");
	engine->full = engine->registry.full = full;
	stat_set(STAT_store_read_only, full);
}

void room_refuse(struct engine *engine)
{
	if (!engine->full)
		log_warn("store %s: no room left; writes are refused until there is",
			 engine->options.path);
	engine->full = engine->registry.full = true;
	stat_set(STAT_store_read_only, 1);
}
