#include "base/stats.h"

const struct stat_def stat_defs[STAT_COUNT] = {
#define STAT(id, kind, name, label, help) [STAT_##id] = {STAT_##kind, name, label, help},
#include "base/stats.def"
#undef STAT
};

_Atomic int64_t stat_values[STAT_COUNT];

const char *stat_text(enum stat_id stat, char text[STAT_TEXT_BYTES])
{
	long long value = stat_get(stat);
	if (stat_defs[stat].kind == STAT_GAUGE_US)
		snprintf(text, STAT_TEXT_BYTES, "%lld.%06lld", value / 1000000, value % 1000000);
	else
		snprintf(text, STAT_TEXT_BYTES, "%lld", value);
	return text;
}
