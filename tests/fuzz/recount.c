/* Any bytes as what is stored of metrics that became counters, or ceased to be. The first line of
 * the input is the metric that is asked for. */
#include "rollup/stored_settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	if (!end)
		return 0;
	struct slice metric = {(const char *)data, (size_t)(end - data)};
	struct slice stored = {(const char *)end + 1, size - metric.len - 1};
	ASSERT(recount_before_ms(stored, metric) >= 0);
	return 0;
}
