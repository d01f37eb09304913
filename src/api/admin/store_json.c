#include "api/admin/store_json.h"

/* Of what is sealed: heads have no encoded size. */
static void write_bytes_per_sample(struct json_writer *writer,
				   const struct store_table_stats *table)
{
	uint64_t bytes =
		table->payload_bytes + table->header_bytes + table->key_bytes + table->page_bytes;

	json_write_key(writer, "bytesPerSample");
	if (table->samples)
		json_write_f64(writer, (double)bytes / (double)table->samples);
	else
		json_write_null(writer);
}

static void write_table(struct json_writer *writer, enum table id,
			const struct store_table_stats *table)
{
	json_write_object_begin(writer);
	json_put_text(writer, "table", schema[id].name);
	json_put_text(writer, "kind", schema[id].kind == TABLE_SAMPLES ? "samples" : "cells");
	json_put_u64(writer, "rows", table->rows);
	json_put_u64(writer, "samples", table->samples + table->head_samples);
	write_bytes_per_sample(writer, table);
	json_put_u64(writer, "blocks", table->blocks);
	json_put_u64(writer, "extents", table->extents);
	json_put_u64(writer, "payloadBytes", table->payload_bytes);
	json_put_u64(writer, "headerBytes", table->header_bytes);
	json_put_u64(writer, "keyBytes", table->key_bytes);
	json_put_u64(writer, "pageBytes", table->page_bytes);
	json_put_u64(writer, "headSamples", table->head_samples);
	json_put_u64(writer, "headBytes", table->head_bytes);
	json_write_object_end(writer);
}

/* Samples are all that are stored, headSamples those of them that are not sealed yet.
 *
 * {"series": N, "registryBytes": N, "journalRecords": N, "journalBytes": N, "fileBytes": N,
 *  "usedBytes": N, "freeBytes": N, "journalPageBytes": N, "blobBytes": N, "otherBytes": N,
 *  "unsettledGroups": N, "memory": {see memory_json.h},
 *  "tables": [{"table": "data_raw", "kind": "samples", "rows": N, "samples": N,
 *              "bytesPerSample": X or null, "blocks": N, "extents": N, "payloadBytes": N,
 *              "headerBytes": N, "keyBytes": N, "pageBytes": N, "headSamples": N, "headBytes": N},
 *             ... all tables of the schema]}
 *
 * The last four kinds of bytes of all tables, and registry, journal pages, blobs, other and free
 * bytes, add up to the file. */
void store_stats_json(const struct store_stats *stats, void (*memory)(struct json_writer *writer),
		      struct json_writer *writer)
{
	json_write_object_begin(writer);
	json_put_u64(writer, "series", stats->series);
	json_put_u64(writer, "registryBytes", stats->registry_bytes);
	json_put_u64(writer, "journalRecords", stats->journal_records);
	json_put_u64(writer, "journalBytes", stats->journal_bytes);
	json_put_u64(writer, "fileBytes", stats->file_bytes);
	json_put_u64(writer, "usedBytes", stats->used_bytes);
	json_put_u64(writer, "freeBytes", stats->free_bytes);
	json_put_u64(writer, "journalPageBytes", stats->journal_page_bytes);
	json_put_u64(writer, "blobBytes", stats->blob_bytes);
	json_put_u64(writer, "otherBytes", stats->other_bytes);
	json_put_u64(writer, "unsettledGroups", stats->unsettled_groups);
	if (memory) {
		json_write_key(writer, "memory");
		memory(writer);
	}
	json_write_key(writer, "tables");
	json_write_array_begin(writer);
	for (int id = 0; id < TABLE_COUNT; id++)
		write_table(writer, (enum table)id, &stats->tables[id]);
	json_write_array_end(writer);
	json_write_object_end(writer);
}

/* {"checked": N, "problems": N, "orphans": N, "sentences": ["...", ...]} */
void store_verify_json(const struct store_verified *found, struct json_writer *writer)
{
	json_write_object_begin(writer);
	json_put_u64(writer, "checked", found->checked);
	json_put_u64(writer, "problems", found->problems);
	json_put_u64(writer, "orphans", found->orphans);
	json_write_key(writer, "sentences");
	json_write_array_begin(writer);
	for (size_t i = 0; i < found->sentence_count; i++)
		json_write_text(writer, found->sentences[i]);
	json_write_array_end(writer);
	json_write_object_end(writer);
}
