/* Numbers of stored bins and periods, as doc/rates.md says that they are kept: what is usual is
 * left out. */
#ifndef TESTS_UNIT_STORED_BIN_H
#define TESTS_UNIT_STORED_BIN_H

#include "model/value.h"
#include "store/schema.h"

enum { BIN_VAL, BIN_IS_VALID, BIN_COVERED_MS, BIN_FLAGS, BIN_UNPLACED };

/* The value, or what it means that there is none. */
static inline struct value stored_bin_number(enum table table, int64_t period_ms, unsigned field,
					     struct value value)
{
	bool bin = table == TABLE_BASE_RATES;
	if (value.type != VALUE_NONE || (!bin && table != TABLE_RATE_AGGREGATIONS))
		return value;
	switch (field) {
	case BIN_IS_VALID:
		return value_u64(bin ? 2 : 0);
	case BIN_COVERED_MS:
		return value_u64((uint64_t)period_ms);
	case BIN_FLAGS:
	case BIN_UNPLACED:
		return value_u64(0);
	default:
		return value;
	}
}

#endif
