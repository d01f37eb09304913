#include "api/admin/memory_json.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "wire/procfs.h"

enum { STATUS_MAX_BYTES = 64 << 10 };

/* Parts that grow with the series or with what is under way; each is one gauge or two. */
static const struct {
	const char *name;
	enum stat_id gauges[2];
	size_t count;
} parts[] = {
	{"heads", {STAT_store_head_bytes}, 1},
	{"keyCache", {STAT_ingest_cache_bytes}, 1},
	{"tagIndexes", {STAT_catalog_index_bytes}, 1},
	{"registry", {STAT_store_registry_bytes}, 1},
	{"journalList", {STAT_store_journal_list_bytes}, 1},
	{"groupLists", {STAT_store_group_list_bytes}, 1},
	{"samplesInFlight", {STAT_ingest_in_flight_bytes}, 1},
	{"counters", {STAT_persist_memory_bytes}, 1},
	{"requests", {STAT_http_memory_bytes, STAT_tcp_memory_bytes}, 2},
};

static uint64_t anonymous_bytes(void)
{
	struct files *files = files_real();
	struct proc_self_status status = {0};
	struct buf text;
	buf_init(&text, STATUS_MAX_BYTES);
	if (!files->read(files, "/proc/self/status", STATUS_MAX_BYTES, &text) &&
	    proc_self_status_parse(buf_slice(&text), &status))
		status.anonymous = 0;
	buf_release(&text);
	return status.anonymous;
}

void memory_json(struct json_writer *writer)
{
	int64_t series = stat_get(STAT_store_series), sum = 0;
	uint64_t anonymous = anonymous_bytes();
	json_write_object_begin(writer);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		int64_t bytes = 0;
		for (size_t g = 0; g < parts[i].count; g++)
			bytes += stat_get(parts[i].gauges[g]);
		json_put_i64(writer, parts[i].name, bytes);
		sum += bytes;
	}
	size_t kept = mem_kept_bytes();
	json_put_u64(writer, "kept", kept);
	sum += (int64_t)kept;
	json_put_i64(writer, "parts", sum);
	json_put_u64(writer, "anonymous", anonymous);
	json_write_key(writer, "perSeries");
	if (series > 0)
		json_write_f64(writer, (double)anonymous / (double)series);
	else
		json_write_null(writer);
	json_write_object_end(writer);
}
