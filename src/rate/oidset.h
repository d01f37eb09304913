/* What an OIDSet of the inventory is to the rates: the one rule by which all who make a struct
 * rate_table fill it in, so that the rows that are written and those that are computed agree. */
#ifndef RATE_OIDSET_H
#define RATE_OIDSET_H

#include "inventory/inventory.h"
#include "rate/rate.h"

/* Its frequency and aggregates. */
struct counter_config rate_config_of(const struct oidset *oidset);

/* False: no rates are made of that OID. */
bool rate_column_of(const struct oid_def *oid, struct rate_column *column);

#endif
