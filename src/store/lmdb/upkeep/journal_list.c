/* The journal's pages that are still there, as a ring in memory, oldest first: filled by the replay
 * and by each commit, and cut from the front where all records of a page are sealed, which the
 * oldest head tells. So the writer knows how long and how old the journal is without reading it. */
#include "base/cursor.h"
#include "base/stats.h"
#include "store/lmdb/upkeep/upkeep.h"

enum { CUT_PAGES = 4096 }; /* deleted in one slice */

void journal_list_add(struct engine *engine, const struct journal_entry *entry)
{
	if (engine->journal_count == engine->journal_cap) {
		size_t cap = engine->journal_cap ? engine->journal_cap * 2 : 1024;
		struct journal_entry *ring = mem_alloc_array(cap, sizeof(*ring));
		for (size_t i = 0; i < engine->journal_count; i++)
			ring[i] =
				engine->journal[(engine->journal_first + i) % engine->journal_cap];
		mem_free(engine->journal);
		engine->journal = ring;
		engine->journal_cap = cap;
		engine->journal_first = 0;
		stat_set(STAT_store_journal_list_bytes, (int64_t)(cap * sizeof(*ring)));
	}
	size_t at = (engine->journal_first + engine->journal_count++) % engine->journal_cap;
	engine->journal[at] = *entry;
	engine->journal_bytes += entry->bytes;
	engine->journal_records += entry->records;
	engine->journal_grown += entry->bytes;
}

bool journal_list_can_cut(const struct engine *engine)
{
	uint64_t keep =
		engine->heads.oldest ? engine->heads.oldest->first_sequence : engine->next_sequence;
	if (!engine->journal_count)
		return false;
	const struct journal_entry *entry = &engine->journal[engine->journal_first];
	return entry->first_sequence + entry->records <= keep;
}

int journal_list_cut(struct engine *engine, MDB_txn *txn, bool *more)
{
	for (int cut = 0; journal_list_can_cut(engine); cut++) {
		const struct journal_entry *entry = &engine->journal[engine->journal_first];
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
		ASSERT(engine->journal_bytes >= entry->bytes &&
		       engine->journal_records >= entry->records);
		engine->journal_bytes -= entry->bytes;
		engine->journal_records -= entry->records;
		engine->journal_first = (engine->journal_first + 1) % engine->journal_cap;
		engine->journal_count--;
		engine->cut_count++;
	}
	return 0;
}

/* The pages are still there, and their entries still stand in the ring, before its beginning. */
void journal_list_aborted(struct engine *engine)
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

void journal_list_committed(struct engine *engine)
{
	engine->cut_count = 0;
}
