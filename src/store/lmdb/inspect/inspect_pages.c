/* Where the bytes of the data file are, page by page: LMDB counts the pages of each database, we
 * know what of them is ours, and the difference is shared out among the tables of that database. */
#include "store/lmdb/engine.h"

enum {
	META_PAGES = 2,
	FREE_DBI = 0,
	MAIN_DBI = 1,
};

uint64_t extent_slack_bytes(const struct env *env, size_t key_bytes, size_t value_bytes)
{
	if (!env_has_own_page(env, key_bytes, value_bytes))
		return 0;
	return value_bytes < env->page_bytes ? env->page_bytes - value_bytes : 0;
}

static int add_pages(MDB_txn *txn, MDB_dbi dbi, uint64_t *bytes)
{
	MDB_stat stat;
	int err = env_error(mdb_stat(txn, dbi, &stat));
	if (!err)
		*bytes += (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) *
			  stat.ms_psize;
	return err;
}

static uint64_t content_bytes(const struct store_table_stats *table)
{
	return table->payload_bytes + table->header_bytes + table->key_bytes + table->page_bytes;
}

/* How many nodes of the databases' leaves are a table's. */
static uint64_t nodes_of(const struct store_table_stats *table, enum table_kind kind)
{
	return kind == TABLE_SAMPLES ? table->extents : table->samples + table->rows;
}

/* Gives the tables of that kind what their pages have besides their content, each by its nodes;
 * what is left of the division goes with the last. */
static void share_pages(struct store_stats *stats, enum table_kind kind, uint64_t pages_bytes)
{
	struct store_table_stats *last = NULL;
	uint64_t content = 0, nodes = 0, given = 0;
	for (int t = 0; t < TABLE_COUNT; t++) {
		if (schema[t].kind != kind)
			continue;
		content += content_bytes(&stats->tables[t]);
		nodes += nodes_of(&stats->tables[t], kind);
	}
	uint64_t rest = pages_bytes > content ? pages_bytes - content : 0;
	for (int t = 0; t < TABLE_COUNT && nodes; t++) {
		uint64_t own = schema[t].kind == kind ? nodes_of(&stats->tables[t], kind) : 0;
		uint64_t share = (uint64_t)((unsigned __int128)rest * own / nodes);
		stats->tables[t].page_bytes += share;
		given += share;
		last = own ? &stats->tables[t] : last;
	}
	if (last)
		last->page_bytes += rest - given;
	else
		stats->other_bytes += rest;
}

int stats_pages(struct env *env, MDB_txn *txn, struct store_stats *stats)
{
	uint64_t extents = 0, cells = 0;
	uint64_t *const owner[DB_COUNT] = {
		[DB_META] = &stats->other_bytes,
		[DB_SHAPES] = &stats->registry_bytes,
		[DB_SHAPE_INDEX] = &stats->registry_bytes,
		[DB_METRIC_INDEX] = &stats->registry_bytes,
		[DB_BANDS] = &stats->registry_bytes,
		[DB_BAND_INDEX] = &stats->registry_bytes,
		[DB_JOURNAL] = &stats->journal_page_bytes,
		[DB_EXTENTS] = &extents,
		[DB_CELL_ROWS] = &cells,
		[DB_CELLS] = &cells,
		[DB_BLOBS] = &stats->blob_bytes,
		[DB_SWEEP_INDEX] = &cells,
	};
	struct env_pages pages;
	int err = env_count_pages(env, UINT64_MAX, &pages);
	for (int db = 0; db < DB_COUNT && !err; db++)
		err = env_has(env, (enum db)db) ? add_pages(txn, env->dbi[db], owner[db]) : 0;
	if (!err)
		err = add_pages(txn, FREE_DBI, &stats->other_bytes);
	if (!err)
		err = add_pages(txn, MAIN_DBI, &stats->other_bytes);
	if (err)
		return err;
	stats->other_bytes += META_PAGES * pages.page_bytes;
	share_pages(stats, TABLE_SAMPLES, extents);
	share_pages(stats, TABLE_CELLS, cells);
	stats->used_bytes = pages.used * pages.page_bytes;
	stats->free_bytes = pages.free * pages.page_bytes;
	stats->file_bytes = stats->used_bytes + stats->free_bytes;
	return 0;
}
