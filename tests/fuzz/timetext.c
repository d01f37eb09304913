/* Any bytes as a time or a duration: a sentence or a time that reads back after printing. */
#include "wire/timetext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_print(int64_t ms)
{
	char text[TIME_PRINT_MAX_BYTES];
	int64_t again;
	struct errbuf e;
	size_t len = time_print(text, ms);
	ASSERT(len <= TIME_PRINT_MAX_BYTES);
	/* Midnight of the first day lies before what 64 bits hold. */
	if (ms > INT64_MIN + 86400000)
		ASSERT(time_parse_iso((struct slice){text, len}, &again, &e) == 0 && again == ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct errbuf e = {""};
	int64_t ms;
	if (time_parse(text, INT64_C(1598286845000), &ms, &e) == 0)
		check_print(ms);
	else
		ASSERT(e.text[0]);
	if (duration_parse(text, &ms, &e) == 0)
		ASSERT(ms >= 0);
	return 0;
}
