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

/* What a line carries in octets a second, of ifHighSpeed (Mbit/s; 0: unknown), with headroom, since
 * links are faster than they say and ifHighSpeed is rounded. */
uint64_t rate_octets_max(uint64_t if_high_speed_mbit);

#endif
