#include "base/stats.h"

const struct stat_def stat_defs[STAT_COUNT] = {
#define STAT(id, kind, name, label, help) [STAT_##id] = {STAT_##kind, name, label, help},
#include "base/stats.def"
#undef STAT
};

_Atomic int64_t stat_values[STAT_COUNT];
