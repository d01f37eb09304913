/* Every table of Granary, declared once (schema.c); nothing about tables stands anywhere else.
 *
 * `samples` tables hold numbers by time: a row is a series (and a period, where the table has one),
 * a column is a time in ms, the value is one number per field. `cells` tables hold anything: a row
 * key and a column of named parts, a value of bytes. Names, keys and fields are the documents'.
 *
 * Where a table lives is declared beside what kind it is: in the store that all processes share, or
 * in this node's own. Where the only store is the embedded one, both are the same. */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include "base/base.h"
#include "model/value.h"

/* The numbers are on disk: never renumber, only append. */
enum table {
	TABLE_RAW_DATA = 0,
	TABLE_BASE_RATES = 1,
	TABLE_RATE_AGGREGATIONS = 2,
	TABLE_STAT_AGGREGATIONS = 3,
	TABLE_DATA_RAW = 4,
	TABLE_DATA_DOWNSAMPLED = 5,
	TABLE_DATA_LATE = 6,
	TABLE_METRIC_NAMES = 7,
	TABLE_SERIES_SETS = 8,
	TABLE_CHUKWA = 9,
	TABLE_CHUKWA_METADATA = 10,
	TABLE_CHUNK_SINK = 11,
	TABLE_OOPS = 12,
	TABLE_SUMMARIES = 13,
	TABLE_DAY_OOPS = 14,
	TABLE_METRIC_INFO = 15,
	TABLE_LEASES = 16,
	TABLE_MARKS = 17,
	TABLE_QUEUE = 18,
	TABLE_QUEUE_ASIDE = 19,
	TABLE_RATE_CHECKPOINTS = 20,
	TABLE_DEVICES = 21,
	TABLE_VERSIONED_ROWS = 22,
	TABLE_RAW_TEXT = 23,
	TABLE_MARK_SLOTS = 24,
	TABLE_WATERMARKS = 25,
	TABLE_REPORT_WRITERS = 26,
	TABLE_REPORT_ARRIVALS = 27,
	TABLE_FAULT_BOOKS = 28,
	TABLE_FAULT_PROJECTS = 29,
	TABLE_FAULT_GROUPS = 30,
	TABLE_FAULT_SAID = 31,
	TABLE_REPORT_ATTACHMENTS = 32,
	TABLE_REPORT_SEGMENTS = 33,
	TABLE_REPORT_RUNS = 34,
	TABLE_FAULT_CAUSES = 35,
	TABLE_FAULT_MESSAGES = 36,
	TABLE_FAULT_NOTES = 37,
	TABLE_FAULT_ERASED = 38,
	TABLE_FAULT_MERGES = 39,
	TABLE_FAULT_HASHES = 40,
	TABLE_FAULT_QUOTAS = 41,
	TABLE_STREAMS = 42,
	TABLE_CHUNK_TAIL = 43,
	TABLE_CHUNK_HEADS = 44,
	TABLE_DEMUX = 45,
	TABLE_CREDENTIALS = 46,
	TABLE_COUNT
};

enum table_kind { TABLE_SAMPLES, TABLE_CELLS };

enum cell_kind {
	CELL_STAMPED,     /* put, delete; the higher stamp wins */
	CELL_CONDITIONAL, /* put_if, delete_if by version: rare, never on the path of samples */
	CELL_SET,         /* the value is a set of texts that only grows */
	CELL_LOG,         /* put in rising order by one writer a row, removed for good */
	CELL_SERIES,      /* series_sets: written by registering a series, read as cells */
};

/* What is removed from a shared log may come back, and what is put into a removed range may not be
 * seen. So only a table whose readers go by ranges of columns, and whose writers never put into a
 * range that was removed, may be both a log and shared. */
enum table_place {
	PLACE_SHARED, /* in the store of all processes */
	PLACE_OWN,    /* in a store of this node alone, whatever the processes share */
};

enum part_type {
	PART_TEXT, /* valid UTF-8, any characters, NUL too */
	PART_BYTES,
	PART_U64, /* 8 bytes, big endian, so that byte order is number order */
};

/* Which numbers a field of samples holds. An engine may keep those of a type in a column of its
 * own, so a field says no more than what is really written to it. What older versions wrote of
 * other types is read all the same. */
enum field_type {
	FIELD_ANY = 1,
	FIELD_REAL,
	FIELD_INTEGER, /* signed or not */
};

enum { TABLE_FIELDS_MAX = 8, TABLE_PARTS_MAX = 4 };

struct field_def {
	const char *name;
	enum field_type type;
};

struct part_def {
	const char *name;
	enum part_type type;
};

struct table_def {
	const char *name;
	enum table_kind kind;
	enum table_place place;
	const char *help;

	/* samples */
	bool has_period; /* one row per series and period_ms; else period_ms is 0 */
	size_t field_count;
	struct field_def fields[TABLE_FIELDS_MAX];
	/* What follows from ts and no caller names: the documents' year and Cassandra's buckets. */
	const char *derived_part;

	/* cells */
	enum cell_kind cell_kind;
	bool by_ranges; /* of a log: its readers go by ranges, so that it may be shared */
	size_t key_count, column_count;
	struct part_def key[TABLE_PARTS_MAX], column[TABLE_PARTS_MAX];
};

extern const struct table_def schema[TABLE_COUNT];

/* The table of that name, or -1. */
int schema_find(struct slice name);

/* What in the declaration contradicts something else in it, or NULL. */
const char *schema_fault(const struct table_def *def);

/* VALUE_NONE may stand in every field. */
static inline bool field_takes(enum field_type type, enum value_type value)
{
	return type == FIELD_ANY || value == VALUE_NONE ||
	       (type == FIELD_REAL) == (value == VALUE_F64);
}

/* Of a cell's value. A store of several processes sends a row's cells whole, and keeps whole what
 * it reads, so what all share is in small pieces. */
enum {
	TABLE_SHARED_VALUE_MAX_BYTES = 1 << 20,
	TABLE_OWN_VALUE_MAX_BYTES = 16 << 20,
};
size_t schema_value_max_bytes(enum table table);

/* The span of time whose samples lie together on disk, in ms: about a day for raw data, a month
 * (30 days) for periods up to an hour, a year (360 days) for longer ones. Segments are aligned
 * to the epoch. */
int64_t schema_segment_ms(enum table table, int64_t period_ms);

/* The span of time whose samples of a series an engine with rows keeps in one partition, in ms; so
 * wide that a partition of ten series has some ten thousands of rows, at most about 10 MB. Buckets
 * are aligned to the epoch, and each width is a whole number of the next smaller ones. An engine
 * that has written with a width keeps it. */
int64_t schema_bucket_ms(enum table table, int64_t period_ms);

/* Physical lifetimes; fixed at writing. The configured retention clips reads. On disk. */
enum retention_class {
	RETENTION_2_DAYS = 0,
	RETENTION_7_DAYS = 1,
	RETENTION_35_DAYS = 2,
	RETENTION_400_DAYS = 3,
	RETENTION_EVER = 4,
	RETENTION_CLASSES
};

/* The shortest class that keeps `retention_ms` (0: for ever). */
enum retention_class retention_class_for(int64_t retention_ms);
/* 0 for RETENTION_EVER. */
int64_t retention_class_ms(enum retention_class c);

/* How many fields a set of them has, one bit each. */
static inline unsigned fields_count(unsigned fields)
{
	unsigned count = 0;
	for (; fields; fields &= fields - 1)
		count++;
	return count;
}

#endif
