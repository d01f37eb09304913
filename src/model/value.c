#include "model/value.h"

#include <math.h>

static double bits_f64(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof(d));
	return d;
}

double value_as_f64(struct value v)
{
	switch (v.type) {
	case VALUE_F64:
		return bits_f64(v.bits);
	case VALUE_I64:
		return (double)(int64_t)v.bits;
	case VALUE_U64:
		return (double)v.bits;
	case VALUE_NONE:
		break;
	}
	return NAN;
}

static bool is_number(struct value v)
{
	return v.type != VALUE_NONE && !(v.type == VALUE_F64 && isnan(bits_f64(v.bits)));
}

/* Any 64-bit integer of either signedness. */
static __int128 as_integer(struct value v)
{
	return v.type == VALUE_I64 ? (__int128)(int64_t)v.bits : (__int128)v.bits;
}

/* Compares without rounding: a double of magnitude 2^65 or more lies outside every integer's range,
 * any other converts to __int128 after its fraction was set aside. */
static int compare_f64_integer(double d, __int128 integer)
{
	if (d >= 0x1p65)
		return 1;
	if (d <= -0x1p65)
		return -1;
	double whole = floor(d);
	__int128 w = (__int128)whole;
	if (w != integer)
		return w < integer ? -1 : 1;
	return d > whole;
}

int value_compare(struct value a, struct value b)
{
	bool a_number = is_number(a), b_number = is_number(b);
	if (!a_number || !b_number)
		return a_number ? -1 : b_number;
	if (a.type == VALUE_F64 && b.type == VALUE_F64) {
		double x = bits_f64(a.bits), y = bits_f64(b.bits);
		return (x > y) - (x < y);
	}
	if (a.type == VALUE_F64)
		return compare_f64_integer(bits_f64(a.bits), as_integer(b));
	if (b.type == VALUE_F64)
		return -compare_f64_integer(bits_f64(b.bits), as_integer(a));
	__int128 x = as_integer(a), y = as_integer(b);
	return (x > y) - (x < y);
}

bool value_equal(struct value a, struct value b)
{
	if ((a.type == VALUE_NONE) != (b.type == VALUE_NONE))
		return false;
	return value_compare(a, b) == 0;
}
