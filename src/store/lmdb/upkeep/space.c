/* Room: LMDB's map and the disk may fill up, and what frees room needs some itself.
 *
 * A delete or a seal writes new pages before it gives old ones back. So the last pages of the map
 * are kept for those: when no more are left, or the disk falls below its own reserve while the file
 * has no free pages left to write into without growing, the engine is full: writes that grow the
 * store are refused, before the queue (writer_submit) and after it (put_batch), until there
 * is room again. Looked at once in a second, before each commit when the file has nearly grown to
 * its end, and told by a transaction that failed for want of room (room_refuse). What takes up
 * room, on disk and in memory, goes into the gauges on the way. */
#include "base/log.h"
#include "base/stats.h"
#include "store/lmdb/upkeep/upkeep.h"

enum { ROOM_INTERVAL_US = 1000000 };

uint64_t room_reserved_pages(uint64_t map_pages)
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
	uint64_t map_pages = info.me_mapsize / engine->env.page_bytes;
	return info.me_last_pgno + 2 * room_reserved_pages(map_pages) >= map_pages;
}

/* What the lists of upkeep and the registry hold, into the gauges. */
static void tell_memory(struct engine *engine)
{
	size_t groups = engine->unsettled.table.slot_count * sizeof(struct unsettled) +
			engine->seals.cap * sizeof(*engine->seals.list) +
			engine->sealed_cap * sizeof(struct head *) +
			engine->settled_cap * sizeof(*engine->settled_groups);
	stat_set(STAT_store_registry_bytes, (int64_t)registry_memory_bytes(&engine->registry));
	stat_set(STAT_store_group_list_bytes, (int64_t)groups);
}

static void tell_pages(struct engine *engine, const struct env_pages *pages)
{
	uint64_t all = pages->used + pages->free;
	stat_set(STAT_store_used_bytes, (int64_t)(pages->used * pages->page_bytes));
	stat_set(STAT_store_file_bytes, (int64_t)(all * pages->page_bytes));
	stat_set(STAT_store_journal_bytes, (int64_t)engine->journal_bytes);
}

static int room_read_disk(struct engine *engine)
{
	struct files *files = engine->options.files;
	uint64_t free_bytes;
	int err = files->free_bytes(files, engine->options.path, &free_bytes);
	if (!err)
		engine->disk_full = free_bytes < engine->options.min_free_bytes;
	return err;
}

int room_sentence(struct engine *engine, struct errbuf *e)
{
	const char *path = engine->options.path;
	if (engine->disk_full)
		return errbuf_set(e, ERR_FULL,
				  "no room in %s: its file system has less free than "
				  "store.min_free (%llu bytes), and the file has no free pages",
				  path, (unsigned long long)engine->options.min_free_bytes);
	return errbuf_set(e, ERR_FULL,
			  "no room in %s: its file has grown to store.map_size, or its file system "
			  "is full",
			  path);
}

static void set_full(struct engine *engine, bool full)
{
	struct errbuf why = {""};
	if (full && !engine->full) {
		room_sentence(engine, &why);
		log_warn("store %s: writes are refused until there is room: %s",
			 engine->options.path, why.text);
	} else if (!full && engine->full) {
		log_warn("store %s: there is room again; writes are accepted",
			 engine->options.path);
	}
	engine->full = engine->registry.full = full;
	stat_set(STAT_store_read_only, full);
}

/* Where the disk or the pages cannot be looked at, all stays as it was. */
void room_update(struct engine *engine)
{
	int64_t now = engine_now_us(engine);
	bool due = now >= engine->room_due_us || !engine->room_due_us;
	if (!due && !near_the_end(engine))
		return;
	struct env_pages pages;
	if (env_count_pages(&engine->env, UINT64_MAX, &pages))
		return;
	if (due) {
		engine->room_due_us = now + ROOM_INTERVAL_US;
		if (room_read_disk(engine))
			return;
		tell_pages(engine, &pages);
		tell_memory(engine);
	}
	uint64_t reserve = room_reserved_pages(pages.map);
	set_full(engine,
		 (engine->disk_full && pages.free < reserve) || pages.map < pages.used + reserve);
}

void room_refuse(struct engine *engine)
{
	set_full(engine, true);
}
