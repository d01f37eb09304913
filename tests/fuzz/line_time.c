/* Any bytes as lines: each has the result that a context of its own would give, whatever lines were
 * read before, and a time is at least 0. The first byte chooses when the lines were received. */
#include "base/mem.h"
#include "wire/line_time.h"
#include "wire/tzif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Europe/Berlin, of 1970 and 2038: with its changes, and with the rule that follows them. */
static const int64_t changes_s[] = {1774746000, 1792890000};
static const int32_t offsets_s[] = {7200, 3600};
static const struct zone berlin = {
	.count = 2,
	.at_s = changes_s,
	.offset_s = offsets_s,
	.first_offset_s = 3600,
	.has_tail = true,
	.has_daylight = true,
	.standard_s = 3600,
	.daylight_s = 7200,
	.begins = {ZONE_WEEKDAY, 3, 5, 0, 7200},
	.ends = {ZONE_WEEKDAY, 10, 5, 0, 10800},
};

/* The bytes are copied, so that a byte too far is seen. */
static void check_line(struct slice line, struct line_time_context *used)
{
	struct line_time_context fresh = {.near_ms = used->near_ms, .zone = used->zone};
	int64_t ms = -1, again = -1;
	char *bytes = mem_alloc(line.len);
	if (line.len)
		memcpy(bytes, line.data, line.len);
	bool found = line_time_find((struct slice){bytes, line.len}, used, &ms);
	ASSERT(found == (ms >= 0));
	ASSERT(line_time_find(line, &fresh, &again) == found && again == ms);
	mem_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_time_context utc = {.zone = &zone_utc}, used = {.zone = &berlin};
	if (!size)
		return 0;
	utc.near_ms = used.near_ms = (int64_t)data[0] * 20000000000 - 20000000000;
	const char *p = (const char *)data + 1, *end = (const char *)data + size;
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		struct slice line = {p, (size_t)((newline ? newline : end) - p)};
		check_line(line, &used);
		check_line(line, &utc);
		p += line.len + 1;
	}
	return 0;
}
