#include "rate/oidset.h"

/* What the configuration lets through, rates can be made of. */
_Static_assert((int)OIDSET_RATED_MAX == (int)RATE_COLUMNS_MAX, "OIDs");
_Static_assert((int)OIDSET_AGGREGATES_MAX <= (int)COUNTER_PERIODS_MAX, "aggregates");
_Static_assert(OIDSET_AGGREGATE_MAX_MS == COUNTER_PERIOD_MAX_MS, "periods");

struct counter_config rate_config_of(const struct oidset *oidset)
{
	struct counter_config config = {.base_ms = oidset->frequency_ms,
					.period_count = oidset->aggregate_count};
	memcpy(config.periods_ms, oidset->aggregates_ms,
	       oidset->aggregate_count * sizeof(config.periods_ms[0]));
	return config;
}

bool rate_column_of(const struct oid_def *oid, struct rate_column *column)
{
	if (!oid->aggregate)
		return false;
	*column = (struct rate_column){
		.name = oid->name,
		.width_bits = oid->type == OID_COUNTER32 ? 32 : 64,
		.octets = slice_ends_with(oid->name, SLICE("Octets")),
	};
	return true;
}
