/* SystemMetrics of Chukwa's agents: one object of JSON, of Sigar's numbers,
 *
 *     {"cpu":[{"user":..},..],"loadavg":[1,5,15],"uptime":..,"memory":{..},"swap":{..},
 *      "network":[{"RxBytes":..},..],"disk":[{"Used":..},..],"timestamp":..}
 *
 * Chukwa's demux (org.apache.hadoop.chukwa.extraction.hbase.SystemMetrics) makes totals of it:
 * means over the processors, sums over interfaces but the first one, which is lo, and over file
 * systems. Single interfaces and file systems are left out, as there; single processors stay. */
#include "wire/fields.h"
#include "wire/number.h"

enum { FIELDS_DISK_TOTAL = 16, FIELDS_DISK_USED };

static const struct fields_total {
	struct slice name;
	uint64_t from; /* place of the first one that counts */
	bool is_mean;
} fields_totals[] = {
	{SLICE("cpu.combined"), 0, true},
	{SLICE("cpu.user"), 0, true},
	{SLICE("cpu.sys"), 0, true},
	{SLICE("cpu.idle"), 0, true},
	{SLICE("network.RxBytes"), 1, false},
	{SLICE("network.RxDropped"), 1, false},
	{SLICE("network.RxErrors"), 1, false},
	{SLICE("network.RxPackets"), 1, false},
	{SLICE("network.TxBytes"), 1, false},
	{SLICE("network.TxCollisions"), 1, false},
	{SLICE("network.TxErrors"), 1, false},
	{SLICE("network.TxPackets"), 1, false},
	{SLICE("disk.ReadBytes"), 0, false},
	{SLICE("disk.Reads"), 0, false},
	{SLICE("disk.WriteBytes"), 0, false},
	{SLICE("disk.Writes"), 0, false},
	[FIELDS_DISK_TOTAL] = {SLICE("disk.Total"), 0, false},
	[FIELDS_DISK_USED] = {SLICE("disk.Used"), 0, false},
};

static const struct {
	struct slice name, becomes;
} fields_renamed[] = {
	{SLICE("uptime"), SLICE("Uptime")},
	{SLICE("loadavg.0"), SLICE("LoadAverage.1")},
	{SLICE("loadavg.1"), SLICE("LoadAverage.5")},
	{SLICE("loadavg.2"), SLICE("LoadAverage.15")},
};

struct fields_sum {
	double sum;
	size_t count;
};

/* A name with a place behind it, as cpu.user.0, counts to the total of that name. */
static void fields_count_total(const struct fields_field *field,
			       struct fields_sum sums[static ARRAY_LEN(fields_totals)])
{
	const char *end = field->name.data + field->name.len;
	uint64_t place;
	struct value value;
	for (size_t i = 0; i < ARRAY_LEN(fields_totals); i++) {
		struct slice name = fields_totals[i].name;
		if (!slice_starts_with(field->name, name) || field->name.len < name.len + 2 ||
		    field->name.data[name.len] != '.' ||
		    number_parse_u64(field->name.data + name.len + 1, end, &place) ||
		    place < fields_totals[i].from || fields_number(field->text, 0, &value))
			continue;
		sums[i].sum += value_as_f64(value);
		sums[i].count++;
	}
}

static void fields_rename(struct fields_field *field)
{
	for (size_t i = 0; i < ARRAY_LEN(fields_renamed); i++)
		if (slice_equal(field->name, fields_renamed[i].name))
			field->name = fields_renamed[i].becomes;
}

static void fields_add_number(struct fields_reader *reader, struct slice name, double number)
{
	char text[NUMBER_PRINT_MAX_BYTES];
	struct slice copy =
		arena_copy(&reader->arena, (struct slice){text, number_print_f64(text, number)});
	struct fields_field *field = copy.data ? fields_next(reader) : NULL;
	if (field)
		*field = (struct fields_field){name, copy};
	else
		reader->cut = true;
}

void fields_make_totals(struct fields_reader *reader)
{
	struct fields_sum sums[ARRAY_LEN(fields_totals)] = {0};
	size_t kept = 0;
	for (size_t i = 0; i < reader->count; i++) {
		struct fields_field *field = &reader->list[i];
		fields_count_total(field, sums);
		fields_rename(field);
		if (!slice_starts_with(field->name, SLICE("network.")) &&
		    !slice_starts_with(field->name, SLICE("disk.")))
			reader->list[kept++] = *field;
	}
	reader->count = kept;
	for (size_t i = 0; i < ARRAY_LEN(fields_totals); i++)
		if (sums[i].count)
			fields_add_number(reader, fields_totals[i].name,
					  fields_totals[i].is_mean
						  ? sums[i].sum / (double)sums[i].count
						  : sums[i].sum);
	/* A share of 1, as Chukwa's. */
	if (sums[FIELDS_DISK_USED].count && sums[FIELDS_DISK_TOTAL].sum > 0)
		fields_add_number(reader, SLICE("disk.PercentUsed"),
				  sums[FIELDS_DISK_USED].sum / sums[FIELDS_DISK_TOTAL].sum);
}
