#include "catalog/private.h"

uint64_t name_seed(struct slice tenant)
{
	return hash64(tenant.data, tenant.len, 0);
}

struct hash128 name_hash(uint64_t seed, struct slice metric)
{
	return hash128(metric.data, metric.len, seed);
}
