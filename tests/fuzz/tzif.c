/* Any bytes as a time zone: what is taken has spans that follow each other and days in order. */
#include "base/mem.h"
#include "wire/tzif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_around(const struct zone *zone, int64_t at_s)
{
	struct zone_span span = zone_span_at(zone, at_s);
	ASSERT(span.from_s <= at_s && at_s < span.to_s);
	ASSERT(span.offset_s >= -TZIF_OFFSET_MAX_S && span.offset_s <= TZIF_OFFSET_MAX_S);
	int64_t day = zone_day_of(zone, at_s);
	ASSERT(zone_day_begin(zone, day) <= at_s && at_s < zone_day_begin(zone, day + 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct zone zone;
	struct errbuf e = {""};
	arena_init(&arena, 1 << 20);
	if (zone_parse((struct slice){(const char *)data, size}, &arena, &zone, &e) == 0) {
		for (int64_t at_s = INT64_C(-3000000000); at_s < INT64_C(6000000000);
		     at_s += 77777777)
			check_around(&zone, at_s);
	} else {
		ASSERT(e.text[0]);
	}
	arena_release(&arena);
	return 0;
}
