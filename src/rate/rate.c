#include "rate/rate.h"

#include "base/hash.h"

uint64_t rate_row_id(struct slice tags_text)
{
	return hash64(tags_text.data, tags_text.len, 0) & RATE_ID_MAX;
}

/* A heap: no recursion, and no worst case, whatever a device calls its interfaces. */
static void sink_down(struct rate_row *rows, size_t at, size_t count)
{
	struct rate_row row = rows[at];
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && rows[child + 1].id > rows[child].id)
			child++;
		if (rows[child].id <= row.id)
			break;
		rows[at] = rows[child];
	}
	rows[at] = row;
}

void rate_rows_sort(struct rate_row *rows, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sink_down(rows, i, count);
	while (count > 1) {
		struct rate_row last = rows[--count];
		rows[count] = rows[0];
		rows[0] = last;
		sink_down(rows, 0, count);
	}
}

int rate_table_check(const struct rate_table *table, struct errbuf *e)
{
	int err = counter_config_check(&table->config, e);
	if (err)
		return err;
	if (!table->device.len || !table->oidset.len)
		return errbuf_set(e, ERR_INVALID, "rates need a device and an OIDSet");
	if (!table->column_count || table->column_count > RATE_COLUMNS_MAX)
		return errbuf_set(e, ERR_LIMIT, "an OIDSet has 1 to %d OIDs to be aggregated",
				  RATE_COLUMNS_MAX);
	for (size_t i = 0; i < table->row_count; i++)
		if (table->rows[i].id > RATE_ID_MAX ||
		    (i > 0 && table->rows[i].id <= table->rows[i - 1].id))
			return errbuf_set(e, ERR_INVALID, "rows are not in the order of their ids");
	return 0;
}

enum table rate_level_table(size_t level)
{
	return level ? TABLE_RATE_AGGREGATIONS : TABLE_BASE_RATES;
}
