#include "store/schema.h"

#define DAY_MS INT64_C(86400000)

/* clang-format off */
const struct table_def schema[TABLE_COUNT] = {
	[TABLE_RAW_DATA] = {
		.name = "raw_data", .kind = TABLE_SAMPLES, .place = PLACE_SHARED,
		.help = "Polled values as they came (E).",
		.has_period = true, .field_count = 1, .fields = {{"value", FIELD_ANY}},
		.derived_part = "year",
	},
	[TABLE_BASE_RATES] = {
		.name = "base_rates", .kind = TABLE_SAMPLES, .place = PLACE_SHARED,
		.help = "Growth of a counter per bin of its base frequency (E).",
		.has_period = true, .field_count = 5,
		.fields = {{"val", FIELD_INTEGER}, {"is_valid", FIELD_INTEGER},
			   {"covered_ms", FIELD_INTEGER}, {"flags", FIELD_INTEGER},
			   {"unplaced", FIELD_INTEGER}},
		.derived_part = "year",
	},
	[TABLE_RATE_AGGREGATIONS] = {
		.name = "rate_aggregations", .kind = TABLE_SAMPLES, .place = PLACE_SHARED,
		.help = "Growth of a counter per aggregation period (E).",
		.has_period = true, .field_count = 5,
		.fields = {{"val", FIELD_INTEGER}, {"count", FIELD_INTEGER},
			   {"covered_ms", FIELD_INTEGER}, {"flags", FIELD_INTEGER},
			   {"unplaced", FIELD_INTEGER}},
		.derived_part = "year",
	},
	[TABLE_STAT_AGGREGATIONS] = {
		.name = "stat_aggregations", .kind = TABLE_SAMPLES, .place = PLACE_SHARED,
		.help = "Smallest and largest rate per aggregation period (E).",
		.has_period = true, .field_count = 4,
		.fields = {{"min", FIELD_REAL}, {"max", FIELD_REAL}, {"min_ts", FIELD_INTEGER},
			   {"max_ts", FIELD_INTEGER}},
		.derived_part = "year",
	},
	[TABLE_DATA_RAW] = {
		.name = "data_raw", .kind = TABLE_SAMPLES, .place = PLACE_SHARED,
		.help = "Tagged metrics as they came (C).",
		.field_count = 1, .fields = {{"value", FIELD_ANY}},
	},
	[TABLE_DATA_DOWNSAMPLED] = {
		.name = "data_downsampled", .kind = TABLE_SAMPLES, .place = PLACE_SHARED,
		.help = "Roll-ups per granularity (C); the document's aggregator is the field.",
		.has_period = true, .field_count = 8,
		.fields = {{"min", FIELD_ANY}, {"max", FIELD_ANY}, {"sum", FIELD_ANY},
			   {"count", FIELD_INTEGER}, {"avg", FIELD_REAL},
			   {"increase", FIELD_ANY}, {"first", FIELD_ANY}, {"last", FIELD_ANY}},
	},
	[TABLE_DATA_LATE] = {
		.name = "data_late", .kind = TABLE_SAMPLES, .place = PLACE_SHARED,
		.help = "Points that came after their slot had closed (C).",
		.field_count = 1, .fields = {{"value", FIELD_ANY}},
	},
	[TABLE_METRIC_NAMES] = {
		.name = "metric_names", .kind = TABLE_CELLS, .cell_kind = CELL_SET,
		.place = PLACE_SHARED,
		.help = "Metrics of a tenant and the aggregators that exist of each (C).",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"metric_name", PART_TEXT}},
	},
	[TABLE_SERIES_SETS] = {
		.name = "series_sets", .kind = TABLE_CELLS, .cell_kind = CELL_SERIES,
		.place = PLACE_SHARED,
		.help = "Series of a metric by each of their tags (C).",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"metric_name", PART_TEXT}},
		.column_count = 3,
		.column = {{"tag_key", PART_TEXT}, {"tag_value", PART_TEXT},
			   {"series_set", PART_TEXT}},
	},
	[TABLE_CHUKWA] = {
		.name = "chukwa", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Texts and notes under the row key of K: day, metric md5, source md5.",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"day_metric_source", PART_BYTES}},
		.column_count = 2, .column = {{"family", PART_TEXT}, {"qualifier", PART_BYTES}},
	},
	[TABLE_CHUKWA_METADATA] = {
		.name = "chukwa_metadata", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "What metrics, sources and boards exist (K).",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"group", PART_TEXT}},
		.column_count = 2, .column = {{"family", PART_TEXT}, {"name", PART_TEXT}},
	},
	[TABLE_CHUNK_SINK] = {
		.name = "chunk_sink", .kind = TABLE_CELLS, .cell_kind = CELL_LOG,
		.place = PLACE_SHARED, .by_ranges = true,
		.help = "Bytes of a stream in blocks, by the sequence id of their end (K).",
		.key_count = 3,
		.key = {{"tenant", PART_TEXT}, {"stream", PART_TEXT}, {"part", PART_U64}},
		.column_count = 3,
		.column = {{"sequence_id", PART_U64}, {"length", PART_U64},
			   {"checksum", PART_U64}},
	},
	[TABLE_OOPS] = {
		.name = "oops", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Fault reports by id (O): where each lies, and what was noted on it since.",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"shard", PART_U64}},
		.column_count = 3,
		.column = {{"oops_id", PART_TEXT}, {"attribute", PART_TEXT},
			   {"arrival", PART_BYTES}},
	},
	[TABLE_SUMMARIES] = {
		.name = "summaries", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Top lists and counts of a day's reports (O).",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"day", PART_TEXT}},
		.column_count = 1, .column = {{"summary", PART_TEXT}},
	},
	[TABLE_DAY_OOPS] = {
		.name = "day_oops", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Reports of a day by the time of receipt (O); read from report_arrivals.",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"day", PART_TEXT}},
		.column_count = 2, .column = {{"date", PART_U64}, {"time_uuid", PART_BYTES}},
	},
	[TABLE_METRIC_INFO] = {
		.name = "metric_info", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Kind, unit and home table of a metric.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 2, .column = {{"metric_name", PART_TEXT}, {"property", PART_TEXT}},
	},
	[TABLE_LEASES] = {
		.name = "leases", .kind = TABLE_CELLS, .cell_kind = CELL_CONDITIONAL,
		.place = PLACE_SHARED,
		.help = "Who owns a piece of derived work, until when.",
		.key_count = 1, .key = {{"kind", PART_TEXT}},
		.column_count = 1, .column = {{"name", PART_TEXT}},
	},
	[TABLE_MARKS] = {
		.name = "marks", .kind = TABLE_CELLS, .cell_kind = CELL_LOG,
		.place = PLACE_SHARED, .by_ranges = true,
		.help = "Series of a slot that wait for their roll-up, as each batch touched them.",
		.key_count = 2, .key = {{"partition", PART_U64}, {"slot", PART_U64}},
		.column_count = 2, .column = {{"stamp", PART_U64}, {"writer", PART_TEXT}},
	},
	[TABLE_QUEUE] = {
		.name = "queue", .kind = TABLE_CELLS, .cell_kind = CELL_LOG,
		.place = PLACE_OWN,
		.help = "Messages that wait for a persister, by shard of their key.",
		.key_count = 2, .key = {{"queue", PART_TEXT}, {"shard", PART_U64}},
		.column_count = 1, .column = {{"sequence", PART_U64}},
	},
	[TABLE_QUEUE_ASIDE] = {
		.name = "queue_aside", .kind = TABLE_CELLS, .cell_kind = CELL_LOG,
		.place = PLACE_OWN,
		.help = "Messages that no persister could read, with the reason.",
		.key_count = 1, .key = {{"queue", PART_TEXT}},
		.column_count = 1, .column = {{"sequence", PART_U64}},
	},
	[TABLE_RATE_CHECKPOINTS] = {
		.name = "rate_checkpoints", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Up to where bins are written, and what is open, by runs of counters.",
		.key_count = 2, .key = {{"device", PART_TEXT}, {"oidset", PART_TEXT}},
		.column_count = 1, .column = {{"first_row", PART_U64}},
	},
	[TABLE_DEVICES] = {
		.name = "devices", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "What is polled.",
		.key_count = 1, .key = {{"kind", PART_TEXT}},
		.column_count = 1, .column = {{"name", PART_TEXT}},
	},
	[TABLE_VERSIONED_ROWS] = {
		.name = "versioned_rows", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Interfaces, SAPs, LSPs, outlets of devices, each version a row.",
		.key_count = 2, .key = {{"kind", PART_TEXT}, {"device", PART_TEXT}},
		.column_count = 3,
		.column = {{"end_ms", PART_U64}, {"name", PART_TEXT}, {"begin_ms", PART_U64}},
	},
	[TABLE_RAW_TEXT] = {
		.name = "raw_text", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Polled values that are no numbers, as JSON, under the row key of E.",
		.key_count = 1, .key = {{"row_key", PART_TEXT}},
		.column_count = 1, .column = {{"ts", PART_U64}},
	},
	[TABLE_MARK_SLOTS] = {
		.name = "mark_slots", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Slots of a partition that may have marks, by who made the last of them.",
		.key_count = 1, .key = {{"partition", PART_U64}},
		.column_count = 2, .column = {{"slot", PART_U64}, {"writer", PART_TEXT}},
	},
	[TABLE_WATERMARKS] = {
		.name = "watermarks", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Up to when processes have rolled up, and which metrics are late.",
		.key_count = 3,
		.key = {{"kind", PART_TEXT}, {"tenant", PART_TEXT}, {"metric", PART_TEXT}},
		.column_count = 1, .column = {{"writer", PART_TEXT}},
	},
	[TABLE_REPORT_WRITERS] = {
		.name = "report_writers", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Who takes a tenant's reports.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"writer", PART_U64}},
	},
	[TABLE_REPORT_ARRIVALS] = {
		.name = "report_arrivals", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Fault reports as they came, by who took them.",
		.key_count = 3,
		.key = {{"tenant", PART_TEXT}, {"writer", PART_U64}, {"run", PART_U64}},
		.column_count = 1, .column = {{"sequence", PART_U64}},
	},
	[TABLE_FAULT_BOOKS] = {
		.name = "fault_books", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Up to where a tenant's reports are counted.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"tenure", PART_U64}},
	},
	[TABLE_FAULT_PROJECTS] = {
		.name = "fault_projects", .kind = TABLE_CELLS, .cell_kind = CELL_CONDITIONAL,
		.place = PLACE_SHARED,
		.help = "Numbers of tenants and their keys, for Sentry's clients.",
		.key_count = 1, .key = {{"kind", PART_TEXT}},
		.column_count = 1, .column = {{"number", PART_U64}},
	},
	[TABLE_CREDENTIALS] = {
		.name = "credentials", .kind = TABLE_CELLS, .cell_kind = CELL_CONDITIONAL,
		.place = PLACE_SHARED,
		.help = "Who may ask for what; not their secrets, but what these are known by.",
		.key_count = 1, .key = {{"kind", PART_TEXT}},
		.column_count = 1, .column = {{"name", PART_TEXT}},
	},
	[TABLE_FAULT_GROUPS] = {
		.name = "fault_groups", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "On which days a group has reports.",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"group", PART_TEXT}},
		.column_count = 1, .column = {{"day", PART_TEXT}},
	},
	[TABLE_FAULT_SAID] = {
		.name = "fault_said", .kind = TABLE_CELLS, .cell_kind = CELL_CONDITIONAL,
		.place = PLACE_SHARED,
		.help = "What people have said of a group: resolved, muted, whose it is.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"group", PART_TEXT}},
	},
	[TABLE_REPORT_ATTACHMENTS] = {
		.name = "report_attachments", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Files that came with fault reports.",
		.key_count = 3,
		.key = {{"tenant", PART_TEXT}, {"writer", PART_U64}, {"run", PART_U64}},
		.column_count = 3,
		.column = {{"sequence", PART_U64}, {"part", PART_U64}, {"number", PART_U64}},
	},
	[TABLE_REPORT_SEGMENTS] = {
		.name = "report_segments", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Fault reports of full runs, packed close.",
		.key_count = 3,
		.key = {{"tenant", PART_TEXT}, {"writer", PART_U64}, {"run", PART_U64}},
		.column_count = 3,
		.column = {{"segment", PART_U64}, {"part", PART_U64}, {"number", PART_U64}},
	},
	[TABLE_REPORT_RUNS] = {
		.name = "report_runs", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Which runs of reports are packed close, and where.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 2, .column = {{"writer", PART_U64}, {"run", PART_U64}},
	},
	[TABLE_FAULT_CAUSES] = {
		.name = "fault_causes", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Groups and days that may be a message, until somebody has looked.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 2, .column = {{"day", PART_TEXT}, {"group", PART_TEXT}},
	},
	[TABLE_FAULT_MESSAGES] = {
		.name = "fault_messages", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "What reports have brought about that somebody is to be told of.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"id", PART_TEXT}},
	},
	[TABLE_FAULT_NOTES] = {
		.name = "fault_notes", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "How far each webhook is with the messages of a tenant.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"webhook", PART_TEXT}},
	},
	[TABLE_FAULT_ERASED] = {
		.name = "fault_erased", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Reports that are removed for their user, until their run is without them.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 2, .column = {{"writer", PART_U64}, {"sequence", PART_U64}},
	},
	[TABLE_FAULT_MERGES] = {
		.name = "fault_merges", .kind = TABLE_CELLS, .cell_kind = CELL_CONDITIONAL,
		.place = PLACE_SHARED,
		.help = "Which groups of reports people have merged into which.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"what", PART_TEXT}},
	},
	[TABLE_FAULT_HASHES] = {
		.name = "fault_hashes", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Which group each hash of a fault report leads to.",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"digits", PART_TEXT}},
		.column_count = 1, .column = {{"hash", PART_TEXT}},
	},
	[TABLE_FAULT_QUOTAS] = {
		.name = "fault_quotas", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "What each process has taken of the quota of a tenant.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"process", PART_TEXT}},
	},
	[TABLE_STREAMS] = {
		.name = "streams", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "Streams of a tenant, and which of their bytes are in blocks.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 3,
		.column = {{"names", PART_TEXT}, {"incarnation", PART_U64},
			   {"property", PART_TEXT}},
	},
	[TABLE_CHUNK_TAIL] = {
		.name = "chunk_tail", .kind = TABLE_CELLS, .cell_kind = CELL_LOG,
		.place = PLACE_SHARED, .by_ranges = true,
		.help = "Chunks of a stream as they came, until they are in blocks.",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"stream", PART_TEXT}},
		.column_count = 3,
		.column = {{"sequence_id", PART_U64}, {"length", PART_U64},
			   {"checksum", PART_U64}},
	},
	[TABLE_CHUNK_HEADS] = {
		.name = "chunk_heads", .kind = TABLE_CELLS, .cell_kind = CELL_LOG,
		.place = PLACE_SHARED, .by_ranges = true,
		.help = "What is known of each block of a stream without reading it.",
		.key_count = 3,
		.key = {{"tenant", PART_TEXT}, {"stream", PART_TEXT}, {"part", PART_U64}},
		.column_count = 4,
		.column = {{"kind", PART_U64}, {"sequence_id", PART_U64}, {"length", PART_U64},
			   {"checksum", PART_U64}},
	},
	[TABLE_DEMUX] = {
		.name = "demux", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.place = PLACE_SHARED,
		.help = "How far the lines of a stream are read into samples.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"names", PART_TEXT}},
	},
};
/* clang-format on */

int schema_find(struct slice name)
{
	for (int i = 0; i < TABLE_COUNT; i++) {
		if (slice_equal(slice_of(schema[i].name), name))
			return i;
	}
	return -1;
}

static const char *samples_fault(const struct table_def *def)
{
	if (def->field_count < 1 || def->field_count > TABLE_FIELDS_MAX)
		return "a table of samples without fields, or with too many";
	if (def->key_count || def->column_count)
		return "a table of samples with parts of a key or a column";
	for (size_t f = 0; f < def->field_count; f++)
		if (!def->fields[f].name || def->fields[f].type < FIELD_ANY ||
		    def->fields[f].type > FIELD_INTEGER)
			return "a field without a name or a type";
	/* Their handles are of the registry, which all processes share. */
	return def->place == PLACE_SHARED ? NULL : "a table of samples that is not shared";
}

static const char *parts_fault(const struct part_def *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!parts[i].name)
			return "a part of a key or a column without a name";
	return NULL;
}

static const char *cells_fault(const struct table_def *def)
{
	bool is_log = def->cell_kind == CELL_LOG;
	if (def->key_count < 1 || def->key_count > TABLE_PARTS_MAX || def->column_count < 1 ||
	    def->column_count > TABLE_PARTS_MAX)
		return "a table of cells without parts of a key or a column, or with too many";
	if (def->field_count || def->has_period)
		return "a table of cells with fields or a period";
	if (def->by_ranges && !is_log)
		return "by_ranges of a table that is no log";
	if (is_log && def->place == PLACE_SHARED && !def->by_ranges)
		return "a log that is shared though its readers do not go by ranges";
	if (!is_log && def->place == PLACE_OWN)
		return "a table that is no log and not shared";
	const char *fault = parts_fault(def->key, def->key_count);
	return fault ? fault : parts_fault(def->column, def->column_count);
}

const char *schema_fault(const struct table_def *def)
{
	if (!def->name || !def->help)
		return "a table without a name or a help text";
	return def->kind == TABLE_SAMPLES ? samples_fault(def) : cells_fault(def);
}

size_t schema_value_max_bytes(enum table table)
{
	return schema[table].place == PLACE_OWN ? TABLE_OWN_VALUE_MAX_BYTES
						: TABLE_SHARED_VALUE_MAX_BYTES;
}

int64_t schema_segment_ms(enum table table, int64_t period_ms)
{
	if (table == TABLE_RAW_DATA || table == TABLE_DATA_RAW || table == TABLE_DATA_LATE)
		return DAY_MS;
	return period_ms <= 3600000 ? 30 * DAY_MS : 360 * DAY_MS;
}

int64_t schema_bucket_ms(enum table table, int64_t period_ms)
{
	if (table == TABLE_RAW_DATA || table == TABLE_DATA_RAW || table == TABLE_DATA_LATE ||
	    period_ms < 30000)
		return DAY_MS;
	if (period_ms < 300000)
		return 7 * DAY_MS;
	return period_ms < 3600000 ? 28 * DAY_MS : 364 * DAY_MS;
}

static const int64_t class_days[RETENTION_CLASSES] = {2, 7, 35, 400, 0};

enum retention_class retention_class_for(int64_t retention_ms)
{
	if (retention_ms <= 0)
		return RETENTION_EVER;
	for (int c = 0; c < RETENTION_EVER; c++) {
		if (retention_ms <= class_days[c] * DAY_MS)
			return (enum retention_class)c;
	}
	return RETENTION_EVER;
}

int64_t retention_class_ms(enum retention_class c)
{
	return class_days[c] * DAY_MS;
}
