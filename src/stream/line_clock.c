#include "stream/line_clock.h"

#include "base/file.h"

void line_clock_init(struct line_clock *clock)
{
	*clock = (struct line_clock){.zones = zones_new(files_real(), ZONES_FOLDER),
				     .context = {.zone = &zone_utc}};
}

void line_clock_release(struct line_clock *clock)
{
	zones_free(clock->zones);
}

void line_clock_set_zone(struct line_clock *clock, struct slice zone)
{
	struct errbuf e;
	/* The context forgets the zone before: the next one may lie in the same memory. */
	clock->context = (struct line_time_context){.zone = &zone_utc};
	if (!zone.len || zones_get(clock->zones, zone, &clock->context.zone, &e))
		clock->context.zone = &zone_utc;
}

int64_t line_clock_next(struct line_clock *clock, struct slice line, int64_t received_ms)
{
	struct line_carry *carry = &clock->carry;
	clock->context.near_ms = received_ms;
	clock->of_receipt = clock->year_of_receipt = false;
	int64_t ms;
	if (line_time_find(line, &clock->context, &ms)) {
		clock->year_of_receipt = clock->context.of_near;
		*carry = (struct line_carry){LINE_CARRY_MAX, ms};
		return ms;
	}
	clock->of_receipt = !carry->left;
	carry->left -= carry->left > 0;
	return clock->of_receipt ? received_ms : carry->ms;
}

size_t line_records_ended(const struct line_records *records)
{
	const struct slice data = records->data;
	if (!records->lines)
		return records->end_count ? records->ends[records->end_count - 1] : 0;
	const char *newline = data.len ? memrchr(data.data, '\n', data.len) : NULL;
	return newline ? (size_t)(newline - data.data) + 1 : 0;
}

static void records_set_end(struct line_records *records)
{
	const struct slice data = records->data;
	records->end = data.len;
	if (records->lines) {
		const char *newline =
			memchr(data.data + records->begin, '\n', data.len - records->begin);
		if (newline)
			records->end = (size_t)(newline - data.data) + 1;
	} else if (records->next < records->end_count) {
		records->end = smaller_of(records->ends[records->next], data.len);
	}
	records->end = smaller_of(records->end, records->begin + LINE_RECORD_MAX_BYTES);
}

bool line_records_next(struct line_records *records)
{
	records->begin = records->end;
	while (!records->lines && records->next < records->end_count &&
	       records->ends[records->next] <= records->begin)
		records->next++;
	if (records->begin >= records->data.len)
		return false;
	records_set_end(records);
	return true;
}

struct slice line_records_text(const struct line_records *records)
{
	const char *text = records->data.data + records->begin;
	size_t len = records->end - records->begin;
	len -= len && text[len - 1] == '\n';
	len -= len && text[len - 1] == '\r';
	return (struct slice){text, len};
}
