/* A sample's value: a 64-bit pattern and what it is. */
#ifndef MODEL_VALUE_H
#define MODEL_VALUE_H

#include "base/base.h"

enum value_type {
	VALUE_NONE = 0, /* no value at this time for this column: not zero, not NaN */
	VALUE_F64 = 1,
	VALUE_I64 = 2,
	VALUE_U64 = 3,
};

struct value {
	uint64_t bits; /* IEEE 754 binary64, two's complement, or unsigned, by type */
	enum value_type type;
};

static inline struct value value_f64(double d)
{
	struct value v = {.type = VALUE_F64};
	memcpy(&v.bits, &d, sizeof(d));
	return v;
}

static inline struct value value_i64(int64_t i)
{
	return (struct value){(uint64_t)i, VALUE_I64};
}

static inline struct value value_u64(uint64_t u)
{
	return (struct value){u, VALUE_U64};
}

/* As a double; integers beyond 2^53 are rounded to nearest. NONE is NaN. */
double value_as_f64(struct value v);

/* Equal if the numbers are equal, whatever the types: f64 3 equals i64 3, f64 2^53 does not equal
 * i64 2^53+1. All NaNs are equal to each other; -0 equals 0; NONE equals only NONE. */
bool value_equal(struct value a, struct value b);

/* <0, 0, >0 by exact number across types; NaN and NONE sort above everything. */
int value_compare(struct value a, struct value b);

/* The same bits and type: what a store must give back. */
static inline bool value_identical(struct value a, struct value b)
{
	return a.bits == b.bits && a.type == b.type;
}

#endif
