#include "store/schema.h"

#define DAY_MS INT64_C(86400000)

/* clang-format off */
const struct table_def schema[TABLE_COUNT] = {
	[TABLE_RAW_DATA] = {
		.name = "raw_data", .kind = TABLE_SAMPLES,
		.help = "Polled values as they came (E).",
		.has_period = true, .field_count = 1, .fields = {"value"}, .derived_part = "year",
	},
	[TABLE_BASE_RATES] = {
		.name = "base_rates", .kind = TABLE_SAMPLES,
		.help = "Growth of a counter per bin of its base frequency (E).",
		.has_period = true, .field_count = 5,
		.fields = {"val", "is_valid", "covered_ms", "flags", "unplaced"},
		.derived_part = "year",
	},
	[TABLE_RATE_AGGREGATIONS] = {
		.name = "rate_aggregations", .kind = TABLE_SAMPLES,
		.help = "Growth of a counter per aggregation period (E).",
		.has_period = true, .field_count = 5,
		.fields = {"val", "count", "covered_ms", "flags", "unplaced"},
		.derived_part = "year",
	},
	[TABLE_STAT_AGGREGATIONS] = {
		.name = "stat_aggregations", .kind = TABLE_SAMPLES,
		.help = "Smallest and largest rate per aggregation period (E).",
		.has_period = true, .field_count = 4,
		.fields = {"min", "max", "min_ts", "max_ts"}, .derived_part = "year",
	},
	[TABLE_DATA_RAW] = {
		.name = "data_raw", .kind = TABLE_SAMPLES,
		.help = "Tagged metrics as they came (C).",
		.field_count = 1, .fields = {"value"},
	},
	[TABLE_DATA_DOWNSAMPLED] = {
		.name = "data_downsampled", .kind = TABLE_SAMPLES,
		.help = "Roll-ups per granularity (C); the document's aggregator is the field.",
		.has_period = true, .field_count = 8,
		.fields = {"min", "max", "sum", "count", "avg", "increase", "first", "last"},
	},
	[TABLE_DATA_LATE] = {
		.name = "data_late", .kind = TABLE_SAMPLES,
		.help = "Points that came after their slot had closed (C).",
		.field_count = 1, .fields = {"value"},
	},
	[TABLE_METRIC_NAMES] = {
		.name = "metric_names", .kind = TABLE_CELLS, .cell_kind = CELL_SET,
		.help = "Metrics of a tenant and the aggregators that exist of each (C).",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 1, .column = {{"metric_name", PART_TEXT}},
	},
	[TABLE_SERIES_SETS] = {
		.name = "series_sets", .kind = TABLE_CELLS, .cell_kind = CELL_SERIES,
		.help = "Series of a metric by each of their tags (C).",
		.key_count = 2, .key = {{"tenant", PART_TEXT}, {"metric_name", PART_TEXT}},
		.column_count = 3,
		.column = {{"tag_key", PART_TEXT}, {"tag_value", PART_TEXT},
			   {"series_set", PART_TEXT}},
	},
	[TABLE_CHUKWA] = {
		.name = "chukwa", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Metrics under the row key of K: day, metric md5, source md5.",
		.key_count = 1, .key = {{"day_metric_source", PART_BYTES}},
		.column_count = 2, .column = {{"family", PART_TEXT}, {"qualifier", PART_BYTES}},
	},
	[TABLE_CHUKWA_METADATA] = {
		.name = "chukwa_metadata", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "What metrics, sources and boards exist (K).",
		.key_count = 1, .key = {{"group", PART_TEXT}},
		.column_count = 2, .column = {{"family", PART_TEXT}, {"name", PART_TEXT}},
	},
	[TABLE_CHUNK_SINK] = {
		.name = "chunk_sink", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Chunks of a stream by the sequence id of their end (K).",
		.key_count = 2, .key = {{"stream", PART_TEXT}, {"day", PART_U64}},
		.column_count = 1, .column = {{"sequence_id", PART_U64}},
	},
	[TABLE_OOPS] = {
		.name = "oops", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Fault reports, an attribute a column (O).",
		.key_count = 1, .key = {{"oops_id", PART_TEXT}},
		.column_count = 1, .column = {{"attribute", PART_TEXT}},
	},
	[TABLE_SUMMARIES] = {
		.name = "summaries", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Top lists and counts of a day's reports (O).",
		.key_count = 1, .key = {{"day", PART_TEXT}},
		.column_count = 1, .column = {{"summary", PART_TEXT}},
	},
	[TABLE_DAY_OOPS] = {
		.name = "day_oops", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Reports of a day by the time of receipt (O).",
		.key_count = 1, .key = {{"day", PART_TEXT}},
		.column_count = 1, .column = {{"time_uuid", PART_BYTES}},
	},
	[TABLE_METRIC_INFO] = {
		.name = "metric_info", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Kind, unit and home table of a metric.",
		.key_count = 1, .key = {{"tenant", PART_TEXT}},
		.column_count = 2, .column = {{"metric_name", PART_TEXT}, {"property", PART_TEXT}},
	},
	[TABLE_LEASES] = {
		.name = "leases", .kind = TABLE_CELLS, .cell_kind = CELL_CONDITIONAL,
		.help = "Who owns a piece of derived work, until when.",
		.key_count = 1, .key = {{"kind", PART_TEXT}},
		.column_count = 1, .column = {{"name", PART_TEXT}},
	},
	[TABLE_MARKS] = {
		.name = "marks", .kind = TABLE_CELLS, .cell_kind = CELL_LOG,
		.help = "Series of a slot that wait for their roll-up, as each batch touched them.",
		.key_count = 2, .key = {{"partition", PART_U64}, {"slot", PART_U64}},
		.column_count = 2, .column = {{"stamp", PART_U64}, {"writer", PART_TEXT}},
	},
	[TABLE_QUEUE] = {
		.name = "queue", .kind = TABLE_CELLS, .cell_kind = CELL_LOG,
		.help = "Messages that wait for a persister, by shard of their key.",
		.key_count = 2, .key = {{"queue", PART_TEXT}, {"shard", PART_U64}},
		.column_count = 1, .column = {{"sequence", PART_U64}},
	},
	[TABLE_QUEUE_ASIDE] = {
		.name = "queue_aside", .kind = TABLE_CELLS, .cell_kind = CELL_LOG,
		.help = "Messages that no persister could read, with the reason.",
		.key_count = 1, .key = {{"queue", PART_TEXT}},
		.column_count = 1, .column = {{"sequence", PART_U64}},
	},
	[TABLE_RATE_CHECKPOINTS] = {
		.name = "rate_checkpoints", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Up to where bins are written, and what is open, by runs of counters.",
		.key_count = 2, .key = {{"device", PART_TEXT}, {"oidset", PART_TEXT}},
		.column_count = 1, .column = {{"first_row", PART_U64}},
	},
	[TABLE_DEVICES] = {
		.name = "devices", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "What is polled.",
		.key_count = 1, .key = {{"kind", PART_TEXT}},
		.column_count = 1, .column = {{"name", PART_TEXT}},
	},
	[TABLE_VERSIONED_ROWS] = {
		.name = "versioned_rows", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Interfaces, SAPs, LSPs, outlets of devices, each version a row.",
		.key_count = 2, .key = {{"kind", PART_TEXT}, {"device", PART_TEXT}},
		.column_count = 3,
		.column = {{"end_ms", PART_U64}, {"name", PART_TEXT}, {"begin_ms", PART_U64}},
	},
	[TABLE_RAW_TEXT] = {
		.name = "raw_text", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Polled values that are no numbers, as JSON, under the row key of E.",
		.key_count = 1, .key = {{"row_key", PART_TEXT}},
		.column_count = 1, .column = {{"ts", PART_U64}},
	},
	[TABLE_MARK_SLOTS] = {
		.name = "mark_slots", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Slots of a partition that may have marks, by who made the last of them.",
		.key_count = 1, .key = {{"partition", PART_U64}},
		.column_count = 2, .column = {{"slot", PART_U64}, {"writer", PART_TEXT}},
	},
	[TABLE_WATERMARKS] = {
		.name = "watermarks", .kind = TABLE_CELLS, .cell_kind = CELL_STAMPED,
		.help = "Up to when processes have rolled up, and which metrics are late.",
		.key_count = 3,
		.key = {{"kind", PART_TEXT}, {"tenant", PART_TEXT}, {"metric", PART_TEXT}},
		.column_count = 1, .column = {{"writer", PART_TEXT}},
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

int64_t schema_segment_ms(enum table table, int64_t period_ms)
{
	if (table == TABLE_RAW_DATA || table == TABLE_DATA_RAW || table == TABLE_DATA_LATE)
		return DAY_MS;
	return period_ms <= 3600000 ? 30 * DAY_MS : 360 * DAY_MS;
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
