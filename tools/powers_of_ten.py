#!/usr/bin/env python3
"""Writes src/wire's table of powers of ten: for each exponent the 128 leading bits of the power,
cut, not rounded. Exact integer arithmetic; the build runs it."""
import sys

LOWEST, HIGHEST = -342, 324


def leading_bits(exponent):
    if exponent >= 0:
        power = 10**exponent
        shift = power.bit_length() - 128
        return power >> shift if shift >= 0 else power << -shift
    divisor = 10**-exponent
    return (1 << (127 + divisor.bit_length())) // divisor


def main():
    print("/* Written by tools/powers_of_ten.py. */")
    print("enum { POWER_LOWEST = %d, POWER_HIGHEST = %d };" % (LOWEST, HIGHEST))
    print("static const struct power powers[] = {")
    for exponent in range(LOWEST, HIGHEST + 1):
        bits = leading_bits(exponent)
        assert bits.bit_length() == 128
        print("\t{0x%016x, 0x%016x}, /* %d */" % (bits >> 64, bits & (2**64 - 1), exponent))
    print("};")


sys.exit(main())
